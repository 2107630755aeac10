"""What the documentation site has beside the pages in docs/: the library's reference, and links to files of the repository."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)")


def library_reference() -> str:
    """A page with every public name of the library, explained by its docstring."""
    source = (ROOT / "src" / "steelyard" / "__init__.py").read_text("utf-8")
    homes = dict(re.findall(r'^    "(\w+)": "([\w.]+:\w+)",$', source, re.MULTILINE))
    seen: set[str] = set()
    parts = ["# Library reference", "Every name that `from steelyard import ...` gives. [How to use them](library.md)."]
    for home in homes.values():
        if home not in seen:
            seen.add(home)
            parts.append(f"::: {home.replace(':', '.')}")
    return "\n\n".join(parts) + "\n"


def without_dead_links(markdown: str, page: str, address: str) -> str:
    """A page in which links to files outside of docs/ lead to the repository, or are only their names where it has no address."""

    def link(match: re.Match[str]) -> str:
        target = (ROOT / "docs" / page).parent.joinpath(match[2]).resolve()
        if target.is_relative_to(ROOT / "docs"):
            return match[0]
        name = target.relative_to(ROOT).as_posix()
        return f"[{match[1]}]({address.rstrip('/')}/blob/main/{name})" if address else f"{match[1]} (`{name}`)"

    return LINK.sub(link, markdown)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made here."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "library-reference.md", content=library_reference()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Mend the links of a page."""
    return without_dead_links(markdown, page.file.src_uri, os.environ.get("STEELYARD_URL", ""))
