"""Rubrics as people have them: in YAML, TOML or JSON."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.errors import InputError, Problem, did_you_mean
from steelyard.evalsets import toml, yaml
from steelyard.evalsets.companions import system_error_reason
from steelyard.evalsets.schema import (
    AnyRecord,
    Draft,
    KeyPath,
    ProblemCollector,
    TooManyProblemsError,
    dotted_key_path,
    record_from_draft,
)
from steelyard.evalsets.yaml import LocatedDocument, nearest_line
from steelyard.records import EvalSetFile, Record
from steelyard.text import printable, short_quote
from steelyard.tiers.rubrics import BINARY_EVALUATION, SCALED_EVALUATION, Rubric, RubricCategory, RubricItem

MAX_RUBRIC_FILE_BYTES = 256 << 10
"""Bytes of a rubric: all of it goes into every question to a judge."""
MAX_RUBRIC_ENTRIES = 200
"""Categories and items of one rubric, because a judge answers for all of them at once."""
MAX_RUBRIC_WEIGHT = 1_000_000
RUBRIC_NAME_RULE_TEXT = "a name must have 1 to 80 characters, no control characters, and no blanks around it"
PORTABLE_NAME_PATTERN = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names that every provider takes as keys of a forced answer."""
# every alternative matches whatever follows and never backtracks, so that no text can make scanning slow
JSON_TOKEN_PATTERN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}:,\n]', re.DOTALL)


class RubricFile(NamedTuple):
    """A rubric, the file it came from, and what looked odd there."""

    rubric: Rubric
    file: EvalSetFile
    problems: tuple[Problem, ...]
    """Warnings only; what is wrong is raised."""


class RubricRequirement(Record, frozen=True, kw_only=True):
    """One entry of `requirements`: a category that is one item."""

    id: str
    check: str
    weight: float = 1
    na_condition: str = ""
    evaluation: str = SCALED_EVALUATION
    scoring: dict[str, str] = {}


class RubricCategoryTable(Record, frozen=True, kw_only=True):
    """One entry of `categories`, whose key is its name."""

    weight: float = 1
    check: str = ""
    na_condition: str = ""
    items: tuple[RubricItem, ...] = ()


class RubricGrading(Record, frozen=True, kw_only=True):
    """What a score leads to."""

    pass_threshold: float = 0.6
    grade_scale: dict[str, float] = {}


class RubricDocument(Record, frozen=True, kw_only=True):
    """A rubric as it is written."""

    id: str = ""
    name: str = ""
    description: str = ""
    requirements: Any = ()
    categories: Any = {}
    grading: Any = {}


def load(path: str | Path) -> RubricFile:
    """The rubric of a .yaml, .yml, .toml or .json file; raises one InputError with everything that is wrong with it."""
    name = str(path)
    problems = ProblemCollector()
    try:
        raw = _content(Path(path), problems)
        rubric = None if raw is None else _rubric(raw, name, problems)
    except TooManyProblemsError:
        *_, last = problems.errors
        problems.errors.append(last._replace(what=f"stopped after {len(problems.errors)} problems"))
        rubric = None
    if raw is None or rubric is None or problems.errors:
        raise InputError([*problems.errors, *problems.warnings()])
    file = EvalSetFile(path=printable(name), digest=hashlib.blake2b(raw, digest_size=16).hexdigest())
    return RubricFile(rubric, file, (*problems.warnings(), *_unportable_name_warnings(rubric, file.path)))


def _content(path: Path, problems: ProblemCollector) -> bytes | None:
    try:
        if not path.is_file():
            what = "a folder" if path.is_dir() else "not a regular file" if path.exists() else "does not exist"
            problems.error(str(path), 0, f"{what}; name a .yaml, .toml or .json file with a rubric")
            return None
        with path.open("rb") as stream:
            raw = stream.read(MAX_RUBRIC_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        problems.error(str(path), 0, f"cannot be read: {system_error_reason(error)}")
        return None
    if len(raw) > MAX_RUBRIC_FILE_BYTES:
        problems.error(
            str(path), 0, f"larger than {MAX_RUBRIC_FILE_BYTES >> 10} KB; a judge is asked about all of it at once"
        )
        return None
    return raw


def _rubric(raw: bytes, path: str, problems: ProblemCollector) -> Rubric | None:
    suffix = Path(path).suffix.lower()
    if suffix not in RUBRIC_READERS:
        problems.error(
            path, 0, f"unknown kind of file {short_quote(suffix)} ({did_you_mean(suffix[:80], RUBRIC_READERS)})"
        )
        return None
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        problems.error(path, raw.count(b"\n", 0, error.start) + 1, "not UTF-8 text; save the file as UTF-8")
        return None
    tree = RUBRIC_READERS[suffix](text, path, problems)
    if tree is None:
        return None
    if not isinstance(tree.value, dict):
        what = "empty" if tree.value is None else "not a table"
        problems.error(path, 0, f'{what}; a rubric has "requirements" or "categories"')
        return None
    return _RubricFileReader(path, tree, problems).rubric()


def _from_toml(text: str, path: str, problems: ProblemCollector) -> LocatedDocument | None:
    lines = toml.TomlLineIndex()
    lines.scan(text)
    document = toml.toml_document(text, path, lines, problems)
    return None if document is None else LocatedDocument(document, lines.of)


def _from_json(text: str, path: str, problems: ProblemCollector) -> LocatedDocument | None:
    repeated = False

    def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        repeated = repeated or len(dict(pairs)) < len(pairs)
        return dict(pairs)

    if line := _too_deep_line(text):
        what = f"nested more than {yaml.MAX_YAML_DEPTH} levels deep; nest lists and objects less deeply"
        problems.error(path, line, what)
        return None
    try:
        value = (
            json.loads(text, object_pairs_hook=table, parse_constant=_reject_non_finite_number)
            if text.strip()
            else None
        )
    except json.JSONDecodeError as error:
        problems.error(path, error.lineno, f"not JSON: {error.msg} (column {error.colno})")
        return None
    except ValueError as error:
        problems.error(path, 0, f"not JSON: {short_quote(str(error))[1:-1]}")
        return None
    lines, again = _json_lines(text)
    for place, keys in again if repeated else ():
        problems.error(path, place, f"{dotted_key_path(keys)}: appears twice, first in line {lines[keys]}")
    return None if repeated else LocatedDocument(value, nearest_line(lines))


def _reject_non_finite_number(word: str) -> Any:
    raise ValueError(f"{word} is not JSON; write a number")


def _too_deep_line(text: str) -> int:
    """The line of a bracket that is nested too deeply; 0 if there is none."""
    depth = 0
    for match in JSON_TOKEN_PATTERN.finditer(text):
        depth += (match[0] in "{[") - (match[0] in "}]")
        if depth > yaml.MAX_YAML_DEPTH:
            return text.count("\n", 0, match.start()) + 1
    return 0


def _json_lines(text: str) -> tuple[dict[KeyPath, int], list[tuple[int, KeyPath]]]:
    """The line of each key of a JSON text, and where one stands again."""
    lines: dict[KeyPath, int] = {}
    again: list[tuple[int, KeyPath]] = []
    keys: list[str | int] = []
    line, is_key = 1, False
    for match in JSON_TOKEN_PATTERN.finditer(text):
        sign = match[0]
        if sign == "\n":
            line += 1
        elif sign in "{[":
            lines.setdefault(tuple(keys), line)
            keys.append("" if sign == "{" else 0)
            is_key = sign == "{"
        elif sign in "}]":
            keys.pop()
            is_key = False
        elif sign == "," and keys:
            last = keys[-1]
            keys[-1] = last + 1 if isinstance(last, int) else ""
            is_key = isinstance(last, str)
        elif sign[0] == '"' and is_key:
            keys[-1] = json.loads(sign)
            is_key = False
            if tuple(keys) in lines:
                again.append((line, tuple(keys)))
            lines.setdefault(tuple(keys), line)
    return lines, again


RUBRIC_READERS: dict[str, Callable[[str, str, ProblemCollector], LocatedDocument | None]] = {
    ".yaml": yaml.yaml_document,
    ".yml": yaml.yaml_document,
    ".toml": _from_toml,
    ".json": _from_json,
}


class _RubricFileReader(NamedTuple):
    path: str
    tree: LocatedDocument
    problems: ProblemCollector

    def rubric(self) -> Rubric | None:
        """The rubric of a file; None after naming everything that is wrong with it."""
        before = len(self.problems.errors)
        # in YAML a key with nothing after it says nothing
        given = {key: value for key, value in self.tree.value.items() if value is not None}
        document = record_from_draft(
            RubricDocument, Draft(given, self.path, "the rubric", self.tree.line), self.problems
        )
        if document is None:
            return None
        categories = [*self._requirements(document.requirements), *self._categories(document.categories)]
        grading = self._grading(document.grading)
        self._check_names(categories)
        if len(self.problems.errors) > before or grading is None:
            return None
        rubric = Rubric(
            id=document.id or document.name or Path(self.path).stem,
            categories=tuple(categories),
            pass_threshold=grading.pass_threshold,
        )
        if grading.grade_scale:
            rubric = msgspec.structs.replace(rubric, grades=grading.grade_scale)
        try:
            msgspec.json.encode(rubric)
        except UnicodeEncodeError:
            self._error((), "contains half of a surrogate pair, which is not text")
            return None
        return rubric

    def _requirements(self, given: Any) -> Iterator[RubricCategory]:
        if not isinstance(given, list | tuple):
            self._error(("requirements",), "requirements: expected a list of tables with id, description and weight")
            return
        for number, table in enumerate(given):
            keys = ("requirements", number)
            name = table.get("id") if isinstance(table, dict) else None
            subject = f"requirement {short_quote(name)}" if isinstance(name, str) else f"requirement {number + 1}"
            found = self._checked(RubricRequirement, table, keys, subject)
            if found is None:
                continue
            item = RubricItem(
                id=found.id,
                check=found.check,
                na_condition=found.na_condition,
                evaluation=found.evaluation,
                scoring=found.scoring,
            )
            category = RubricCategory(name=found.id, weight=found.weight, items=(item,))
            self._check(category, keys, subject)
            yield category

    def _categories(self, given: Any) -> Iterator[RubricCategory]:
        if not isinstance(given, dict):
            what = 'expected a table by name, such as {"clarity": {"weight": 1}}'
            self._error(("categories",), f"categories: {what}")
            return
        for name, table in given.items():
            keys = ("categories", name)
            subject = f"category {short_quote(name)}"
            found = self._checked(RubricCategoryTable, {} if table is None else table, keys, subject)
            if found is None:
                continue
            if found.items and found.na_condition:
                what = "na_condition belongs to the items, each of which has its own; move it there"
                self._error((*keys, "na_condition"), f"{subject}: {what}")
            category = RubricCategory(
                name=name,
                weight=found.weight,
                check=found.check,
                na_condition=found.na_condition,
                items=found.items,
            )
            self._check(category, keys, subject)
            yield category

    def _grading(self, given: Any) -> RubricGrading | None:
        keys = ("grading",)
        grading = self._checked(RubricGrading, given, keys, "grading")
        if grading is None:
            return None
        if not 0 <= grading.pass_threshold <= 1:
            self._error((*keys, "pass_threshold"), "grading: pass_threshold: must be a number from 0 to 1")
        begins: dict[float, str] = {}
        for letter, least in grading.grade_scale.items():
            here = (*keys, "grade_scale", letter)
            if not 0 <= least <= 1:
                self._error(here, f"grading: grade {short_quote(letter)}: must begin at a number from 0 to 1")
            elif least in begins:
                what = f"begins where {short_quote(begins[least])} does; give each its own lowest score"
                self._error(here, f"grading: grade {short_quote(letter)}: {what}")
            if not letter or len(letter) > 20 or not letter.isprintable():
                what = "a grade must have 1 to 20 characters, and no control characters"
                self._error(here, f"grading: grade {short_quote(letter)}: {what}")
            begins.setdefault(least, letter)
        return grading

    def _checked(self, kind: type[AnyRecord], table: Any, keys: KeyPath, subject: str) -> AnyRecord | None:
        """The table as a record; None after naming every field that is wrong."""
        if not isinstance(table, dict):
            self._error(keys, f"{subject}: expected a table")
            return None

        def line(inner: KeyPath) -> int:
            return self.tree.line((*keys, *inner))

        spelled = {"check": "description"} if keys[0] == "requirements" else {}
        draft = Draft(_with_normalized_keys(table), self.path, subject, line, spelled=spelled)
        return record_from_draft(kind, draft, self.problems)

    def _check(self, category: RubricCategory, keys: KeyPath, subject: str) -> None:
        """Say what is wrong with the numbers and words of a category."""
        if not 0 <= category.weight <= MAX_RUBRIC_WEIGHT:
            self._error((*keys, "weight"), f"{subject}: weight: must be a number from 0 to {MAX_RUBRIC_WEIGHT}")
        names: set[str] = set()
        for number, item in enumerate(category.items):
            is_requirement = keys[0] == "requirements"
            here = keys if is_requirement else (*keys, "items", number)
            what = subject if is_requirement else f"{subject}: item {short_quote(item.id)}"
            if not 0 < item.points <= MAX_RUBRIC_WEIGHT:
                self._error((*here, "points"), f"{what}: points: must be a number above 0, up to {MAX_RUBRIC_WEIGHT}")
            if item.evaluation not in (BINARY_EVALUATION, SCALED_EVALUATION):
                way_out = did_you_mean(item.evaluation[:80], (BINARY_EVALUATION, SCALED_EVALUATION))
                self._error(
                    (*here, "evaluation"), f"{what}: unknown evaluation {short_quote(item.evaluation)} ({way_out})"
                )
            if not item.check.strip():
                self._error(here, f"{what}: does not say what to look at; write that as its check")
            if not _is_name(item.id):
                self._error(here, f"{what}: {RUBRIC_NAME_RULE_TEXT}")
            if item.id in names:
                self._error(here, f"{what}: appears twice in this category; ids must be unique")
            names.add(item.id)

    def _check_names(self, categories: list[RubricCategory]) -> None:
        """Say what is wrong with the categories taken together."""
        if not categories:
            if not self.problems.errors:
                self._error((), 'asks for nothing; list "requirements", or "categories" by name')
            return
        if len(categories) + sum(len(category.items) for category in categories) > MAX_RUBRIC_ENTRIES:
            self._error(
                (), f"more than {MAX_RUBRIC_ENTRIES} categories and items; a judge answers for all of them at once"
            )
        if not any(category.weight for category in categories):
            self._error((), "all weights are 0; one must be above 0")
        seen: set[str] = set()
        for category in categories:
            keys = ("categories", category.name)
            if not _is_name(category.name):
                self._error(keys, f"category {short_quote(category.name)}: {RUBRIC_NAME_RULE_TEXT}")
            if category.name in seen:
                self._error(
                    keys, f"{short_quote(category.name)} appears twice; requirements and categories need unique names"
                )
            seen.add(category.name)

    def _error(self, keys: KeyPath, what: str) -> None:
        self.problems.error(self.path, self.tree.line(keys), what)


def _is_name(name: str) -> bool:
    return 0 < len(name) <= 80 and name.isprintable() and name == name.strip()


def _with_normalized_keys(table: dict[str, Any]) -> dict[str, Any]:
    """The table under our names: what some call a description is a check; a key with nothing after it says nothing."""
    given = {key: value for key, value in table.items() if value is not None}
    if "description" in given and "check" not in given:
        given = {"check" if key == "description" else key: value for key, value in given.items()}
    if isinstance(given.get("items"), list):
        given["items"] = [_with_normalized_keys(item) if isinstance(item, dict) else item for item in given["items"]]
    return given


def _unportable_name_warnings(rubric: Rubric, path: str) -> Iterator[Problem]:
    """A warning for names that not every provider takes as keys."""
    names = [name for category in rubric.categories for name in (category.name, *(item.id for item in category.items))]
    if odd := next((name for name in names if not PORTABLE_NAME_PATTERN.fullmatch(name)), None):
        what = "some providers cannot be held to an answer with such a key; use letters, digits, _, . and -, up to 64"
        yield Problem(path, 0, f"{short_quote(odd)}: {what}", fatal=False)
