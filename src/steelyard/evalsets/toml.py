"""Eval sets in TOML, and the lines their keys stand on."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from steelyard.errors import InputError
from steelyard.evalsets.companions import CompanionFiles
from steelyard.evalsets.schema import (
    DEFAULT_CASE_LANGUAGE,
    ByteSource,
    Draft,
    EvalSet,
    Header,
    KeyPath,
    ProblemCollector,
    record_from_draft,
    source_text,
)
from steelyard.evalsets.set_tools import set_tools
from steelyard.records import DEFAULT_TIMEOUT_SECONDS, Rule
from steelyard.text import short_quote

MAX_TOML_EVAL_SET_BYTES = 64 << 20
MAX_TOML_KEY_PARTS = 100
"""Parts of a dotted key; tomllib's time grows with the square of them."""

# every alternative matches whatever follows and never backtracks, so that no text can make scanning slow
TOML_TOKEN_PATTERN = re.compile(
    r'''"""(?:[^"\\]++|\\(?s:.)|"(?!""))*+"{0,5}'''
    r"""|'{3}(?:[^']++|'(?!''))*+'{0,5}"""
    r"""|"(?:[^"\\\n]++|\\.)*+"?|'[^'\n]*+'?|\#[^\n]*+|[\[\]{}=,.\n]|[A-Za-z0-9_-]++"""
)
EXPERIMENT_HEADER_PATTERN = re.compile(rb"^[ \t]*\[experiment\]", re.MULTILINE)


@dataclass
class TomlLineIndex:
    r"""Where the keys of a TOML text stand: a guess that is only used in messages, so it never fails.

    >>> lines = TomlLineIndex()
    >>> lines.scan('[[cases]]\nid = "a"\n[cases.verify]\nkind = "python"')
    >>> lines.of(("cases", 0, "verify", "kind"))
    4
    """

    too_deep: int = 0
    """The line of a key with too many parts; 0 if there is none."""
    _found: dict[KeyPath, int] = field(default_factory=dict)
    _last: dict[KeyPath, int] = field(default_factory=dict)

    def of(self, keys: KeyPath) -> int:
        """The line of a key, otherwise of the table around it."""
        while keys and keys not in self._found:
            keys = keys[:-1]
        return self._found.get(keys, 0)

    def scan(self, text: str) -> None:
        """Note the keys of a text, in one pass over it."""
        table: KeyPath = ()
        parts: list[str] = []
        line, opened, depth, dots, in_value = 1, 0, 0, 0, False
        for match in TOML_TOKEN_PATTERN.finditer(text):
            token = match[0]
            start = token[0]
            dots = dots + 1 if start == "." else 0 if start in "=,[]{}\n" else dots
            if dots > MAX_TOML_KEY_PARTS:
                self.too_deep = line
                return
            if start == "\n":
                if depth <= 0:
                    parts, opened, depth, in_value = [], 0, 0, False
            elif in_value:
                depth += (start in "[{") - (start in "]}")
            elif start == "[":
                opened += 1
            elif start in "]=":
                if start == "]":
                    table = self._resolved(parts, is_array=opened > 1)
                self._found.setdefault(table if start == "]" else (*table, *parts), line)
                in_value = True
            elif start not in "#.,{}" and len(parts) < 6:
                parts.append(token.strip("\"'"))
            line += token.count("\n")

    def _resolved(self, parts: list[str], *, is_array: bool) -> KeyPath:
        """A table's name with the numbers of the arrays it is in."""
        keys: KeyPath = ()
        for number, part in enumerate(parts, 1):
            keys = (*keys, part)
            if is_array and number == len(parts):
                self._last[keys] = self._last.get(keys, -1) + 1
            if keys in self._last:
                keys = (*keys, self._last[keys])
        return keys


def is_experiment(raw: bytes) -> bool:
    r"""Whether a file describes the tiers of an experiment instead of cases.

    >>> is_experiment(b"# tiers\n[experiment]\nid = 'x'"), is_experiment(b"[[cases]]\nid = 'x'")
    (True, False)
    """
    return bool(EXPERIMENT_HEADER_PATTERN.search(raw)) and b"[[cases]]" not in raw


def drafts(content: ByteSource, path: str, problems: ProblemCollector) -> Iterator[Draft]:
    """The cases of one file with the set's defaults applied; an empty file has none."""
    text = (source_text(content, MAX_TOML_EVAL_SET_BYTES, path, problems) or "").replace("\r\n", "\n")
    if not text.strip():
        return
    if is_experiment(text.encode()):
        problems.error(path, 0, f"an experiment, not an eval set; run it with: steelyard tiers {path}")
        return
    lines = TomlLineIndex()
    lines.scan(text)
    document = toml_document(text, path, lines, problems)
    if document is None:
        return
    for key in document:
        if key not in EvalSet.__struct_fields__:
            problems.unknown(path, lines.of((key,)), key, EvalSet.__struct_fields__)
    header = _header(document.get("eval_set"), path, lines, problems)
    rules = tuple(_rules(document.get("rules", []), path, lines, problems))
    tools = set_tools(document, path, lines.of, problems)
    cases = document.get("cases", [])
    if not isinstance(cases, list) or not cases:
        problems.error(path, lines.of(("cases",)), "no cases; write each as a [[cases]] table")
        return
    companions = CompanionFiles()
    for number, table in enumerate(cases):
        if isinstance(table, dict):
            draft = _draft(table, number, header, path, lines)._replace(rule=header.rule, rules=rules, tools=tools)
            yield _with_files(draft, companions, problems)
        else:
            problems.error(path, lines.of(("cases", number)), f"case {number + 1} is not a [[cases]] table")


def toml_document(text: str, path: str, lines: TomlLineIndex, problems: ProblemCollector) -> dict[str, Any] | None:
    """The tables of a TOML file whose lines were scanned; None after saying where it is broken."""
    if lines.too_deep:
        problems.error(path, lines.too_deep, f"a key of more than {MAX_TOML_KEY_PARTS} parts; nest less deeply")
        return None
    try:
        return tomllib.loads(text)
    except RecursionError:
        problems.error(path, 0, "nested too deeply to be read; nest lists and tables less deeply")
    except ValueError as error:
        place = re.search(r" \(at (?:line (\d+), (column \d+)|end of document)\)$", str(error))
        line = int(place[1] or text.count("\n") + 1) if place else 0
        what = str(error)[: place.start()] if place else str(error)
        column = place[2] or "end of the file" if place else "somewhere"
        problems.error(path, line, f"not TOML: {what} ({column})")
    return None


def _header(table: Any, path: str, lines: TomlLineIndex, problems: ProblemCollector) -> Header:
    """What the set says, with no language where it names none."""
    header = None
    if isinstance(table, dict):
        draft = Draft(table, path, "[eval_set]", lambda keys: lines.of(("eval_set", *keys)))
        header = record_from_draft(Header, draft, problems)
    else:
        problems.error(path, lines.of(("eval_set",)), 'no [eval_set] table; write one with an "id"')
    if header and "default_language" in table:
        return header
    return replace(header or Header(id=""), default_language="")


def _rules(tables: Any, path: str, lines: TomlLineIndex, problems: ProblemCollector) -> Iterator[Rule]:
    """The set's own ways to score, each with at least one weight."""
    for number, table in enumerate(tables if isinstance(tables, list) else [tables]):
        line = lines.of(("rules", number))
        if not isinstance(table, dict):
            problems.error(path, line, "rules are [[rules]] tables with a name and weights")
            continue
        name = table.get("name")
        subject = f"rule {short_quote(name)}" if isinstance(name, str) else f"rule {number + 1}"
        rule = record_from_draft(
            Rule, Draft(table, path, subject, partial(_line_in, lines, ("rules", number))), problems
        )
        if rule is None:
            continue
        weights = [getattr(rule, field) for field in Rule.__struct_fields__ if field != "name"]
        if not all(0 <= weight < math.inf for weight in weights) or not 0 < sum(weights) < math.inf:
            problems.error(path, line, f"{subject}: weights are numbers from 0 up, and one must be above 0")
        elif not rule.name or len(rule.name) > 80 or not rule.name.isprintable():
            problems.error(path, line, f"{subject}: a name must have 1 to 80 characters, and no control characters")
        else:
            yield rule


def _line_in(lines: TomlLineIndex, table: KeyPath, keys: KeyPath) -> int:
    return lines.of((*table, *keys))


def _draft(table: dict[str, Any], number: int, header: Header, path: str, lines: TomlLineIndex) -> Draft:
    verify = table.get("verify")
    # a case with a verifier of its own is not a Rust case merely because its set names no language
    needs_none = bool(
        table.get("target")
        or table.get("workspace")
        or (isinstance(verify, dict) and verify.keys() & {"kind", "python", "expect"})
    )
    language = header.default_language or ("" if needs_none else DEFAULT_CASE_LANGUAGE)
    name = table.get("id")
    seconds = header.default_timeout_secs
    limits = {
        "timeout_secs": DEFAULT_TIMEOUT_SECONDS if seconds is None else seconds,
        "follows_reference": seconds is None and "timeout_secs" not in table,
    }
    return Draft(
        {"language": language, **limits, "suite": header.suite, **table},
        path,
        subject=f"case {short_quote(name)}" if isinstance(name, str) else f"case {number + 1}",
        line=lambda keys: lines.of(("cases", number, *keys)),
        prompt_files=True,
    )


def _with_files(draft: Draft, companions: CompanionFiles, problems: ProblemCollector) -> Draft:
    """The draft with the content of the files that its verifier names as `file://tests/sum.c`, and of its patches."""
    folder = Path(draft.path).absolute().parent

    def content(given: Any, what: str, *keys: str) -> Any:
        if not isinstance(given, str) or not given.startswith("file://"):
            return given
        try:
            return companions.text(folder / given.removeprefix("file://"))
        except InputError as error:
            problems.error(draft.path, draft.line(keys), f"{draft.subject}: {what}: {error}")
            return given

    table = dict(draft.table)
    if table.get("workspace"):
        answers = [key for key in ("reference", "counterexample") if key in table]
        table |= {key: content(table[key], key, key) for key in answers}
    verify = table.get("verify")
    files = verify.get("files") if isinstance(verify, dict) else None
    if isinstance(verify, dict) and isinstance(files, dict):
        contents = {name: content(given, "verify.files", "verify", "files", name) for name, given in files.items()}
        table["verify"] = {**verify, "files": contents}
    return draft._replace(table=table)
