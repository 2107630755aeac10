"""The files that a config names, read only below its own folder."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from steelyard.errors import InputError
from steelyard.evalsets.benchmarks.hub.remote import HUB_PREFIX, hub_files
from steelyard.evalsets.benchmarks.hub.tables import parquet_tables
from steelyard.evalsets.companions import CompanionFiles
from steelyard.evalsets.schema import ProblemCollector
from steelyard.evalsets.yaml import MAX_EVAL_SET_YAML_VALUES, yaml_document
from steelyard.text import short_quote

FILE_PREFIX = "file://"
DATASET_PREFIX = "huggingface://datasets/"
MAX_GLOB_FILES = 1000
"""The maximum number of files that one pattern may match."""


class ConfigFiles:
    """The files beside a config."""

    def __init__(self, config: str, problems: ProblemCollector) -> None:
        self._folder = Path(config).absolute().parent
        self._problems = problems
        self._companions = CompanionFiles()

    def found(self, reference: str) -> list[Path]:
        """The files that a reference matches, such as `prompts/*.txt`; InputError without any."""
        name = reference.removeprefix(FILE_PREFIX)
        try:
            pattern = Path(name)
            if pattern.is_absolute():
                pattern = pattern.relative_to(self._folder)
            paths = sorted(self._folder.glob(str(pattern)))[:MAX_GLOB_FILES]
        except (ValueError, NotImplementedError, OSError, IndexError):
            paths = []
        inside = [path for path in paths if path.resolve().is_relative_to(self._folder.resolve()) and path.is_file()]
        if not inside:
            raise InputError(f"no file {short_quote(name)} in the folder of the config or below it; copy it there")
        return inside

    def text(self, path: Path) -> str:
        """The text of a file."""
        return self._companions.text(path)

    def data(self, path: Path) -> Any:
        """What a file of data holds: YAML, JSON, or the rows of JSONL and CSV."""
        suffix = path.suffix.lower()
        text = self.text(path)
        if suffix in (".yaml", ".yml"):
            document = yaml_document(text, str(path), self._problems, MAX_EVAL_SET_YAML_VALUES)
            return None if document is None else document.value
        if suffix == ".csv":
            return csv_rows(text)
        readers: dict[str, Callable[[str], Any]] = {".json": msgspec.json.decode, ".jsonl": _json_lines}
        if suffix not in readers:
            raise InputError(f"{short_quote(path.name)} is neither YAML, JSON, JSONL nor CSV; write it as one of them")
        try:
            return readers[suffix](text)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise InputError(f"{short_quote(path.name)}: {error}") from None


def dataset_tests(reference: str) -> Iterator[dict[str, Any]]:
    """The rows of a dataset of a hub as tests, named as in `huggingface://datasets/cais/mmlu?split=test&limit=10`."""
    address = urlsplit(reference)
    given = {name: values[-1] for name, values in parse_qs(address.query).items()}
    config = given.get("config") or given.get("subset") or ""
    parts = [address.path.strip("/"), *([config] if config else []), given.get("split") or "test"]
    limit = given.get("limit", "")
    if limit and not limit.isdecimal():
        raise InputError(f"limit={limit[:80]}: expected a whole number")
    rows = (row for file in hub_files(HUB_PREFIX + ":".join(parts)) for row in parquet_tables(file))
    for row in islice(rows, int(limit) if limit else None):
        yield {"vars": row, "options": {"disableVarExpansion": True}}


def csv_rows(text: str) -> list[dict[str, str]]:
    """The rows of a CSV text by the names of its columns; InputError for a row that has more, and for a name that is there twice."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = [name.strip() for name in next(rows, [])]
        twice = next((name for name, times in Counter(names).items() if name and times > 1), None)
        if twice is not None:
            raise InputError(f"line 1: two columns are called {short_quote(twice)}; rename one")
        found = []
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) > len(names):
                raise InputError(
                    f"line {rows.line_num}: {len(row)} cells below {len(names)} columns; put text in quotes"
                )
            found.append(dict(zip(names, row, strict=False)))
    except csv.Error as error:
        raise InputError(f"line {rows.line_num}: no CSV: {error}") from None
    return found


def _json_lines(text: str) -> list[Any]:
    return [msgspec.json.decode(line) for line in text.splitlines() if line.strip()]
