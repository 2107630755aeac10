"""The fields of an eval set, and the problems of one that does not follow them."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType, UnionType
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, get_args, get_origin

import msgspec

from steelyard.errors import Problem, did_you_mean
from steelyard.plugins import has_unchecked_settings, settings_type
from steelyard.plugins.built_in import BUILT_IN_PLUGINS
from steelyard.records import Case, CaseTool, Record, Rule, VerifierSettings, Verify, cases, messages, runs
from steelyard.text import printable, short_quote

MAX_REPORTED_PROBLEMS = 100
"""Problems, and as many warnings, after which more would not help."""

MAX_WAY_OUT_CHARACTERS = 300
"""Characters of a list of known keys that still help."""

DEFAULT_CASE_LANGUAGE = "rust"
"""The language of sets that name none: the format comes from people who test Rust."""

KeyPath = tuple[str | int, ...]
Fields = dict[str, msgspec.structs.FieldInfo]
AnyRecord = TypeVar("AnyRecord", bound=msgspec.Struct)


class Header(Record, frozen=True, kw_only=True):
    """What a TOML eval set says about itself and for all its cases."""

    id: str
    name: str = ""
    description: str = ""
    default_language: str = DEFAULT_CASE_LANGUAGE
    """The language of the cases that name none."""
    default_timeout_secs: float | None = None
    """How long verifying one answer may take, in the cases that do not say; when left out, their limits follow their references."""
    rule: str = ""
    """The rule that scores the attempts unless --rule names another; `code` when left out."""
    suite: str = ""
    """The suite that all its cases belong to."""


class EvalSet(Record, frozen=True, kw_only=True):
    """A TOML eval set as it is written."""

    eval_set: Header
    cases: tuple[Case, ...]
    rules: tuple[Rule, ...] = ()
    """Ways to score code, beside the built-in ones."""
    tools: tuple[CaseTool, ...] = ()
    """Tools that the models may call in all its cases."""


class Draft(NamedTuple):
    """A case as read from a file, under our names but not yet checked."""

    table: dict[str, Any]
    path: str
    subject: str
    """What messages call it, for example `case "borrow-1"`."""
    line: Callable[[KeyPath], int]
    """The line a key stands on."""
    spelled: Mapping[str, str] = {}
    """Our keys as the file spells them, where it has another word."""
    prompt_files: bool = False
    """Whether `file://` in a prompt names a file; in a suite of hostile prompts it is only text."""
    rule: str = ""
    """The scoring rule of its set, if the set names one."""
    rules: tuple[Rule, ...] = ()
    """The rules of its set."""
    settings: type[msgspec.Struct] | None = None
    """The struct of its verifier, which checks the keys of `verify` that it owns."""
    tools: tuple[dict[str, Any], ...] = ()
    """The tools that its set declares for all its cases."""


class TooManyProblemsError(Exception):
    """There are so many problems that reading further would not help."""


@dataclass
class ProblemCollector:
    """The problems so far; bounded, so that a hostile file cannot flood its reader."""

    errors: list[Problem] = field(default_factory=list)
    _unknown: dict[tuple[str, str], Problem] = field(default_factory=dict)
    _again: Counter[tuple[str, str]] = field(default_factory=Counter)
    _left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    _rows: set[tuple[str, str]] = field(default_factory=set)

    def error(self, path: str, line: int, what: str) -> None:
        """Something that cannot be used."""
        self.errors.append(Problem(printable(path), line, what))
        if len(self.errors) >= MAX_REPORTED_PROBLEMS:
            raise TooManyProblemsError

    def unknown(self, path: str, line: int, key: str, known: Iterable[str]) -> None:
        """Warn of an unknown key, once per file, because it is usually in every case."""
        topic = path, key
        if topic not in self._unknown and len(self._unknown) < MAX_REPORTED_PROBLEMS:
            way_out = did_you_mean(key.rpartition(".")[2][:80], known)
            if len(way_out) > MAX_WAY_OUT_CHARACTERS:
                suggested = way_out.rfind("did you mean")
                way_out = (
                    way_out[suggested:] if suggested >= 0 else "no known key is like it; --map says what columns mean"
                )
            what = f"unknown key {short_quote(key)} ({way_out})"
            self._unknown[topic] = Problem(printable(path), line, what, fatal=False)
        else:
            self._again[topic if topic in self._unknown else ("", "")] += 1

    def warning(self, path: str, what: str) -> None:
        """Something that can be used and that the user should know, once per file."""
        if len(self._unknown) < MAX_REPORTED_PROBLEMS:
            self._unknown.setdefault((path, what), Problem(printable(path), 0, what, fatal=False))

    def is_repeated(self, path: str, row: str) -> bool:
        """Whether the same row of a file was asked about before."""
        is_known = (path, row) in self._rows
        self._rows.add((path, row))
        return is_known

    def left_out(self, path: str, what: str, count: int = 1) -> None:
        """Something of another tool's file that is not carried over; it is reported once per file, with its count."""
        topic = path, what[:300]
        if topic in self._left_out or len(self._left_out) < MAX_REPORTED_PROBLEMS:
            self._left_out[topic] += count

    def warnings(self) -> Iterator[Problem]:
        """What was odd, and how often."""
        for (path, what), count in self._left_out.items():
            yield Problem(printable(path), 0, f"not carried over: {count} × {printable(what)}", fatal=False)
        for topic, problem in self._unknown.items():
            again = f"; {self._again[topic]} more in this file" if topic in self._again else ""
            yield problem._replace(what=problem.what + again)
        if unsaid := self._again["", ""]:
            yield Problem("", 0, f"{unsaid} further unknown keys are not shown", fatal=False)


def record_from_draft(kind: type[AnyRecord], draft: Draft, problems: ProblemCollector) -> AnyRecord | None:
    """The draft as a record; None after naming every field that is wrong. Unknown keys are only warned of."""
    before = len(problems.errors)
    record = _record(kind, draft.table, (), draft, problems)
    return record if len(problems.errors) == before else None


def _record(
    kind: type[AnyRecord], table: dict[str, Any], keys: KeyPath, draft: Draft, problems: ProblemCollector
) -> AnyRecord | None:
    before = len(problems.errors)
    fields = _verify_fields(draft.settings) if kind is Verify and draft.settings else _fields(kind)
    values = _values(fields, table, keys, draft, problems)
    return kind(**values) if len(problems.errors) == before else None


def _values(
    fields: Fields, table: dict[str, Any], keys: KeyPath, draft: Draft, problems: ProblemCollector
) -> dict[str, Any]:
    values = {}
    for key, value in table.items():
        here = (*keys, key)
        if key in fields:
            values[key] = _value(fields[key].type, value, here, draft, problems)
        else:
            problems.unknown(draft.path, draft.line(here), dotted_key_path(here), fields)
    for name, info in fields.items():
        if name not in table and info.required:
            key = draft.spelled.get(name, dotted_key_path((*keys, name)))
            problems.error(draft.path, draft.line(keys), f"{draft.subject}: {key} is missing")
    return values


@cache
def _fields(kind: type[msgspec.Struct]) -> Fields:
    return {info.name: info for info in msgspec.structs.fields(kind)}


@cache
def _verify_fields(owner: type[msgspec.Struct]) -> Fields:
    """The keys of `verify` that a stored case has at this level, each as the struct of its verifier wants it."""
    return _fields(Verify) | {key: info for key, info in _fields(owner).items() if key in _fields(Verify)}


def _value(kind: Any, value: Any, keys: KeyPath, draft: Draft, problems: ProblemCollector) -> Any:
    for option in get_args(kind) if isinstance(kind, UnionType) else (kind,):
        if isinstance(value, dict) and isinstance(option, type) and issubclass(option, Record):
            return _record(option, value, keys, draft, problems)
        if isinstance(value, list) and get_origin(option) is tuple and get_args(option)[0] is not str:
            items = enumerate(value)
            return tuple(_value(get_args(option)[0], item, (*keys, i), draft, problems) for i, item in items)
    try:
        return msgspec.convert(value, kind)
    except UnicodeEncodeError:
        what = "contains half of a surrogate pair, which is not text"
        problems.error(draft.path, draft.line(keys), f"{draft.subject}: {dotted_key_path(keys)}: {what}")
    except msgspec.ValidationError as error:
        key = draft.spelled.get(dotted_key_path(keys), dotted_key_path(keys))
        what = _plain_validation_message(str(error))
        if get_origin(kind) is Literal and isinstance(value, str):
            what = f": unknown value {short_quote(value)} ({did_you_mean(value[:80], filter(None, get_args(kind)))})"
        problems.error(draft.path, draft.line(keys), f"{draft.subject}: {key}{what}")


def with_verifier_settings(draft: Draft, problems: ProblemCollector) -> Draft:
    """The draft with the struct that checks its `verify`; keys that only this struct knows are checked here, and become settings."""
    verify = draft.table.get("verify")
    if not isinstance(verify, dict):
        return draft
    kind = _verifier_name(draft.table, verify)
    is_ours = isinstance(kind, str) and kind in BUILT_IN_PLUGINS["verifiers"]
    if is_ours and verify.keys() <= {*VerifierSettings.__struct_fields__}:
        # a list of cases must not wait for their verifiers
        return draft._replace(settings=VerifierSettings)
    shape = settings_type("verifiers", kind) if isinstance(kind, str) and kind else None
    own = frozenset(() if shape is None else shape.__struct_fields__)
    stored = _fields(Verify).keys() - {"settings"}
    if isinstance(kind, str) and has_unchecked_settings("verifiers", kind):
        own = frozenset(verify)
    known = own if shape is not None and is_ours else stored.union(own)
    for key in verify:
        if key not in known:
            problems.unknown(draft.path, draft.line(("verify", key)), f"verify.{key}", own or known)
    ours = {key: value for key, value in verify.items() if key in stored}
    settings = {key: value for key, value in verify.items() if key in own and key not in stored}
    # a stranger's struct may narrow a key that stored cases have; what it accepts must still be readable once it is stored
    skipped = stored if is_ours else frozenset[str]()
    if shape is not None and not own <= stored:
        further = {key: info for key, info in _fields(shape).items() if key not in skipped}
        _values(further, {key: value for key, value in verify.items() if key in further}, ("verify",), draft, problems)
    table = {**draft.table, "verify": {**ours, **({"settings": settings} if settings else {})}}
    return draft._replace(table=table, settings=shape if is_ours else None)


def _verifier_name(table: dict[str, Any], verify: dict[str, Any]) -> Any:
    """The name of the verifier that a draft asks for, as `Case.kind` finds it once the draft is completed."""
    if verify.get("kind"):
        return verify["kind"]
    if verify.get("python"):
        return "function"
    if verify.get("expect"):
        return "response"
    if table.get("workspace"):
        return "command"
    return "response" if table.get("target") and not verify.get("tests") else table.get("language")


def dotted_key_path(keys: KeyPath) -> str:
    """Keys as a person writes them.

    >>> dotted_key_path(("dependencies", 0, "name"))
    'dependencies[0].name'
    """
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")


JSON_TYPE_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}


def _plain_validation_message(message: str) -> str:
    """What msgspec says, in the words of the files.

    >>> _plain_validation_message("Expected `int | null`, got `str` - at `$[0]`")
    '[0]: expected a whole number or nothing, got text'
    """
    what, _, place = message.partition(" - at ")
    plain = re.sub(
        r"`([^`]*)`", lambda match: " or ".join(JSON_TYPE_WORDS.get(w, w) for w in match[1].split(" | ")), what
    )
    return f"{place.strip('`').removeprefix('$')}: {plain[:1].lower()}{plain[1:]}"


def schema() -> dict[str, Any]:
    """The JSON Schema of TOML eval sets, for editors; the same bytes every time."""
    result: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(EvalSet)))
    described = cases, messages, runs, sys.modules[__name__]
    descriptions = {name: fields for module in described for name, fields in field_descriptions(module).items()}
    for name, definition in result["$defs"].items():
        for key, what in descriptions.get(name, {}).items():
            definition["properties"][key]["description"] = what
    result["$defs"]["Case"]["properties"]["checks"] = {
        "type": "array",
        "items": {"type": "object"},
        "description": 'The checks that a right answer meets, such as `{contains = "Paris"}`: all, unless a weight says otherwise.',
    }
    del result["$defs"]["Verify"]["properties"]["settings"]  # filled by the loader, not written by people
    for name in BUILT_IN_PLUGINS["verifiers"]:
        _add_settings(result["$defs"], settings_type("verifiers", name))
    result["$defs"]["Case"]["required"] = ["id", "prompt"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Eval set", **result}


def _add_settings(definitions: dict[str, Any], owner: type[msgspec.Struct] | None) -> None:
    """Add the keys of `verify` that only the struct of this verifier knows."""
    if owner is None:
        return
    made = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(owner)))["$defs"]
    described = field_descriptions(sys.modules[owner.__module__]).get(owner.__name__, {})
    known = definitions["Verify"]["properties"]
    for key, what in made.pop(owner.__name__)["properties"].items():
        if key not in known:
            known[key] = {**what, "description": described[key]}
    for name, definition in made.items():
        definitions.setdefault(name, definition)


def field_descriptions(module: ModuleType) -> dict[str, dict[str, str]]:
    """The strings beneath fields, by class and field."""
    return {
        node.name: {
            above.target.id: below.value.value
            for above, below in zip(node.body, node.body[1:], strict=False)
            if isinstance(above, ast.AnnAssign) and isinstance(above.target, ast.Name)
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            if isinstance(below.value.value, str)
        }
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.ClassDef)
    }


class ByteSource(Protocol):
    """A file being read."""

    def read(self, limit: int) -> bytes:
        """The next bytes."""
        ...


def source_text(content: ByteSource, max_bytes: int, path: str, problems: ProblemCollector) -> str | None:
    """The whole file as text; None after saying what is wrong with it."""
    raw = content.read(max_bytes + 1)
    if len(raw) > max_bytes:
        problems.error(path, 0, f"larger than {max_bytes >> 20} MB; write the cases as JSONL, one per line")
        return None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problems.error(path, raw.count(b"\n", 0, error.start) + 1, "not UTF-8 text; save the file as UTF-8")
        return None
