"""The viewer's pages as files: a folder that any web server, CI artifact or browser shows without us."""

from __future__ import annotations

import hashlib
import html
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from steelyard.errors import InputError, SteelyardError
from steelyard.viewer.pages import compare, history, rendering, run, runs
from steelyard.viewer.query_params import MAX_QUERY_VALUE_CHARACTERS, QueryParameters, ViewerRequestError
from steelyard.viewer.run_cache import RunCache
from steelyard.viewer.run_list import RunCatalog

LINK_PATTERN = re.compile(r'(href|src)="([^"]*)"')
"""What models wrote is escaped on every page, so a quotation mark behind an equals sign is always ours."""
LISTING_POLL_SECONDS = 0.05
MAX_SLUG_CHARACTERS = 60

COMPARE_KEYS = ("baseline", "current", "state", "page")
SIDE_BY_SIDE_KEYS = ("baseline", "current", "case", "of", "what")
ATTEMPT_KEYS = ("case", "model", "tier", "number")


class PageKey(NamedTuple):
    """One page of the export: its kind, its run, and the values that make it what it is."""

    kind: str
    run: str = ""
    values: tuple[tuple[str, str], ...] = ()

    @property
    def asked(self) -> QueryParameters:
        return QueryParameters(urlencode(self.values, errors="surrogateescape"))


class ExportedPages(NamedTuple):
    """What was written."""

    pages: int
    bytes: int
    problems: tuple[str, ...]
    """Pages that only explain why there is nothing to show."""


def export(root: Path, target: Path) -> ExportedPages:
    """Write the pages of all runs below a folder, as they are now, to a new folder."""
    if target.is_symlink() or (target.exists() and not (target.is_dir() and not any(target.iterdir()))):
        raise InputError(f"{target}: already exists, and is not an empty folder; name another, or remove it first")
    catalog = RunCatalog(root)
    while catalog.listed().pending:
        time.sleep(LISTING_POLL_SECONDS)
    beside = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        beside.mkdir(parents=True)
        written = _PageWriter(RunCache(catalog), beside).write_all()
        if target.exists():
            target.rmdir()
        beside.replace(target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror}; name a folder that can be written") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return written


class _PageWriter:
    """Makes the first page, then every page that one of the others leads to."""

    def __init__(self, run_cache: RunCache, folder: Path) -> None:
        self._run_cache = run_cache
        self._folder = folder
        self._places: dict[PageKey, str] = {}
        self._waiting: list[PageKey] = []
        self._problems: list[str] = []

    def write_all(self) -> ExportedPages:
        """Write pages until none is missing."""
        for name, (content, _) in rendering.static_files().items():
            if not name.endswith(".js"):
                self._write(f"static/{name}", content)
        self._place(PageKey("runs"))
        self._place(PageKey("comparisons"))
        size = 0
        while self._waiting:
            # the list of comparisons is last: it shows what the others lead to
            self._waiting.sort(key=lambda key: key.kind == "comparisons")
            key = self._waiting.pop(0)
            with rendering.exported_pages():
                page = self._rewritten(self._page(key), self._places[key])
            content = page.encode("utf-8")
            self._write(self._places[key], content)
            size += len(content)
        return ExportedPages(len(self._places), size, tuple(self._problems))

    def _write(self, place: str, content: bytes) -> None:
        path = self._folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def _page(self, key: PageKey) -> str:
        try:
            return self._made(key)
        except ViewerRequestError as refused:
            status, message = refused.status, refused.message
        except SteelyardError as error:
            status, message = 409, str(error)
        self._problems.append(f"{key.run or key.kind}: {message}")
        return rendering.error_page(status, message)

    def _made(self, key: PageKey) -> str:
        if key.kind == "runs":
            return runs.runs(self._run_cache, key.asked)
        if key.kind == "compare":
            return compare.compare(self._run_cache, key.asked)
        if key.kind == "history":
            return history.history()
        if key.kind == "comparisons":
            return rendering.comparisons_page(list(self._comparisons()))
        if key.kind == "run":
            return run.run(self._run_cache, key.run, key.asked)
        if key.kind == "attempt":
            return run.attempt(self._run_cache, key.run, key.asked)
        return (run.tiers if key.kind == "tiers" else run.suites)(self._run_cache, key.run)

    def _comparisons(self) -> Iterator[tuple[str, str, str]]:
        """The comparisons that some page leads to: the two sides, and where they are."""
        for key in self._places:
            values = dict(key.values)
            if key.kind == "compare" and values.keys() == {"baseline", "current"}:
                yield values["baseline"], values["current"], f"/compare?{urlencode(values)}"

    def _rewritten(self, page: str, place: str) -> str:
        """A page whose links lead to files; links to what is not exported lead nowhere."""

        def link(match: re.Match[str]) -> str:
            address = html.unescape(match[2])
            if address.startswith("#"):
                return match[0]
            target = self._target(address)
            if target is None:
                return ""
            relative = os.path.relpath(target, Path(place).parent)
            mark = urlsplit(address).fragment
            marked = f"#{mark}" if mark and mark != "pane" else ""
            return f'{match[1]}="{html.escape(relative)}{marked}"'

        return LINK_PATTERN.sub(link, page)

    def _target(self, address: str) -> str | None:
        """The file that an address of the viewer becomes; None if there is none."""
        parts = urlsplit(address)
        pieces = [unquote(piece, errors="surrogateescape") for piece in parts.path.strip("/").split("/")]
        values = dict(parse_qsl(parts.query, errors="surrogateescape"))
        if pieces[0] == "static":
            return f"static/{pieces[1]}"
        key = self._key(pieces, values)
        return None if key is None else self._place(key)

    def _key(self, pieces: list[str], values: Mapping[str, str]) -> PageKey | None:
        """The page that an address asks for; filters and single letters of a search are for a viewer that runs."""
        if any(len(value) > MAX_QUERY_VALUE_CHARACTERS for value in values.values()):
            return None
        if pieces == [""]:
            return PageKey("runs", values=_chosen(values, ("page",)))
        if pieces == ["compare"]:
            if not values.get("baseline") or not values.get("current"):
                return PageKey("comparisons")
            return PageKey("compare", values=_chosen(values, SIDE_BY_SIDE_KEYS if "case" in values else COMPARE_KEYS))
        if pieces == ["history"]:
            return PageKey("history")
        if pieces[0] != "runs" or len(pieces) < 2:
            return None
        name, rest = pieces[1], pieces[2:]
        if rest in (["tiers"], ["suites"]):
            return PageKey(rest[0], name)
        if rest == ["attempt"] or (not rest and "case" in values):
            if "against" in values:
                return None
            chosen = dict(_chosen(values, ATTEMPT_KEYS))
            try:
                chosen["number"] = str(run.number_to_read(self._run_cache, name, QueryParameters(urlencode(chosen))))
            except ViewerRequestError:
                return None
            return PageKey("attempt", name, _chosen(chosen, ATTEMPT_KEYS))
        return PageKey("run", name, _chosen(values, ("page",))) if not rest else None

    def _place(self, key: PageKey) -> str:
        """The path of a page; it is also noted for writing."""
        if key not in self._places:
            self._places[key] = _file_name(key)
            self._waiting.append(key)
        return self._places[key]


def _chosen(values: Mapping[str, str], names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, values[name]) for name in names if values.get(name))


def _file_name(key: PageKey) -> str:
    r"""The file of a page; for all names it is below the folder, and unique.

    >>> _file_name(PageKey("run", "a run"))
    'runs/a-run-5bf05884/index.html'
    >>> _file_name(PageKey("tiers", "20261117-090311-7d9a"))
    'runs/20261117-090311-7d9a/tiers.html'
    """
    values = dict(key.values)
    if key.kind in ("runs", "comparisons", "history"):
        stem = {"runs": "index", "comparisons": "compare", "history": "history"}[key.kind]
        return f"{stem}-{values['page']}.html" if "page" in values else f"{stem}.html"
    digest = hashlib.blake2b(repr(key.values).encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
    if key.kind == "compare":
        return f"compare/{digest}.html"
    folder = f"runs/{_slug(key.run)}"
    if key.kind == "attempt":
        return f"{folder}/attempts/{_slug(values['case'])}-{values['number']}-{digest}.html"
    if key.kind == "run":
        return f"{folder}/page-{values['page']}.html" if "page" in values else f"{folder}/index.html"
    return f"{folder}/{key.kind}.html"


def _slug(name: str) -> str:
    """A name that every file system takes; if characters were removed, a digest makes it unique."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:MAX_SLUG_CHARACTERS]
    # some file systems take capital letters for small ones
    if plain and plain == name == name.lower():
        return plain
    digest = hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    return f"{plain}-{digest}" if plain else digest
