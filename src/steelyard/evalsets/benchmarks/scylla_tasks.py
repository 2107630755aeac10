"""Tasks of ProjectScylla, `test.yaml`: one case each, with the prompt beside it; judges decide by the rubric that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from steelyard.evalsets.schema import Draft, KeyPath, ProblemCollector
from steelyard.records import JUDGE_ONLY_KIND
from steelyard.text import printable, short_quote


def is_scylla_task(document: Any) -> bool:
    """Whether a document is a task of ProjectScylla."""
    task = document.get("task") if isinstance(document, dict) else None
    return isinstance(task, dict) and "prompt_file" in task and isinstance(document.get("source"), dict)


def scylla_task_drafts(
    document: dict[str, Any], path: str, line: Callable[[KeyPath], int], problems: ProblemCollector
) -> Iterator[Draft]:
    """The one case of a task."""
    prompt, language = document["task"]["prompt_file"], document.get("language")
    name = printable(str(document.get("id") or Path(path).absolute().parent.name))
    # another tool's file says which file is sent to models: none but those below it
    is_below = isinstance(prompt, str) and not Path(prompt).is_absolute() and ".." not in Path(prompt).parts
    if not is_below or not prompt:
        what = f"task.prompt_file is {short_quote(str(prompt))}; name a file below this folder"
        problems.error(path, line(("task", "prompt_file")), what)
        return
    table: dict[str, Any] = {
        "id": name,
        "name": document.get("name") or "",
        "prompt": f"file://{prompt}",
        "tags": [language] if isinstance(language, str) and language else [],
        "verify": {"kind": JUDGE_ONLY_KIND},
    }
    table |= _workspace(document["source"], path, problems)
    yield Draft(table, path, f"task {short_quote(name)}", line, prompt_files=True)


def _workspace(source: dict[str, Any], path: str, problems: ProblemCollector) -> dict[str, str]:
    """The clone of the task's repository beside it, at its commit; nothing is fetched."""
    repository, commit = source.get("repo"), source.get("hash")
    if not isinstance(repository, str) or not isinstance(commit, str) or not repository or not commit:
        return {}
    folder = repository.rstrip("/").rpartition("/")[2].removesuffix(".git")
    if folder not in ("", ".", "..") and (Path(path).parent / folder).is_dir():
        return {"workspace": f"{folder}@{commit}"}
    problems.left_out(
        path, f"the workspace: clone {short_quote(repository)} beside this file, as {short_quote(folder)}"
    )
    return {}
