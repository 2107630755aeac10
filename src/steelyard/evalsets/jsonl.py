"""Cases in JSON: one per line, or a list of them; read, and written so that they load as the same cases."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from steelyard.errors import InputError
from steelyard.evalsets.benchmarks import code_problems
from steelyard.evalsets.benchmarks.contests import contest_table
from steelyard.evalsets.benchmarks.datasets import DATASET_COLUMNS, dataset_table, with_columns
from steelyard.evalsets.benchmarks.human_eval_pack import human_eval_pack_table
from steelyard.evalsets.benchmarks.multipl_e import multipl_e_table
from steelyard.evalsets.schema import Draft, ProblemCollector
from steelyard.records import DEFAULT_TIMEOUT_SECONDS, JUDGE_ONLY_KIND, Case, Verify, digest
from steelyard.text import json_error_location, short_quote

MAX_CASE_LINE_BYTES = 32 << 20
MAX_CASE_LIST_BYTES = 256 << 20
MAX_UNPACKED_CASES_BYTES = 4 << 30
"""Bytes after unpacking, so that a small archive cannot fill the memory."""

CASE_FIELD_SYNONYMS = {
    "id": ("id", "task_id", "case_id"),
    "prompt": ("prompt", "input", "question", "messages"),
    "target": ("target", "expected", "ideal", "expected_response"),
    "reference": ("reference", "canonical_solution"),
    "vars": ("vars", "prompt_vars"),
    "suite": ("suite", "suite_id", "family"),
    "tests": ("test", "tests"),
}
"""Our words, and those of the files."""
CASE_FIELD_SPELLINGS = {ours: f"{ours} (or {', '.join(words[1:])})" for ours, words in CASE_FIELD_SYNONYMS.items()}
FIELDS_WITHOUT_SYNONYMS = ("entry_point", "expect")
CHECKS_FIELD = "checks"
"""The list of checks, which the loader puts where the verifier looks for it."""
KNOWN_CASE_FIELDS = {
    *Case.__struct_fields__,
    *FIELDS_WITHOUT_SYNONYMS,
    CHECKS_FIELD,
    *(word for words in CASE_FIELD_SYNONYMS.values() for word in words),
}

MAPPED_FIELDS = KNOWN_CASE_FIELDS | {*DATASET_COLUMNS}
"""What a column can be mapped to."""


def check_mapped_fields(columns: Mapping[str, str]) -> None:
    """Raises an InputError if a column is mapped to a name that nothing here reads."""
    for ours, theirs in columns.items():
        if ours not in MAPPED_FIELDS:
            close = get_close_matches(ours[:80], MAPPED_FIELDS, 1)
            way_out = f"did you mean {short_quote(close[0])}?" if close else "such as prompt, target, id or choices"
            raise InputError(f"--map {ours}={theirs}: cases have no field {short_quote(ours)} ({way_out})")


class JsonlByteSource(Protocol):
    """A file being read, unpacked."""

    size: int
    """The bytes read so far."""

    def read(self, limit: int) -> bytes:
        """The next bytes."""
        ...

    def readline(self, limit: int) -> bytes:
        """The next line, or as much of it as the limit allows."""
        ...


def drafts(content: JsonlByteSource, path: str, problems: ProblemCollector) -> Iterator[Draft]:
    """The cases of a JSONL file; blank lines are fine."""
    line = 0
    try:
        while raw := content.readline(MAX_CASE_LINE_BYTES + 1):
            line += 1
            if len(raw) > MAX_CASE_LINE_BYTES:
                problems.error(
                    path, line, f"a line of more than {MAX_CASE_LINE_BYTES >> 20} MB; split the case or shorten it"
                )
                while not raw.endswith(b"\n") and (raw := content.readline(MAX_CASE_LINE_BYTES)):
                    pass
            elif text := (raw.removeprefix(b"\xef\xbb\xbf") if line == 1 else raw).rstrip():
                yield from _drafts(text, path, line, problems, content)
            if content.size > MAX_UNPACKED_CASES_BYTES:
                problems.error(path, line, f"more than {MAX_UNPACKED_CASES_BYTES >> 30} GB of cases; split the file")
                return
    except (EOFError, OSError, zlib.error) as error:
        problems.error(path, line + 1, f"cannot be read from this line on: {error}")


def list_drafts(raw: bytes, path: str, problems: ProblemCollector, content: object = None) -> Iterator[Draft]:
    """The cases of a text that is a JSON list of them."""
    end = raw.index(b"[") + 1
    line = 1 + raw.count(b"\n", 0, end)
    for item in decoded_json(raw, path, 1, problems, list[msgspec.Raw]) or ():
        # only blanks and a comma lie between two items, so the next one is found at once
        start = raw.index(bytes(item), end)
        line += raw.count(b"\n", end, start)
        yield from _drafts(bytes(item), path, line, problems, content)
        end = start + len(bytes(item))
        line += raw.count(b"\n", start, end)


def _drafts(raw: bytes, path: str, line: int, problems: ProblemCollector, content: object) -> Iterator[Draft]:
    """The one case in a text, or none if it holds anything else."""
    table = decoded_json(raw, path, line, problems, Any)
    if table is not None or raw == b"null":
        yield from table_drafts(table, path, line, problems, content)


def table_drafts(
    table: Any, path: str, line: int, problems: ProblemCollector, content: object = None
) -> Iterator[Draft]:
    """The one case of a value, or none if it is anything else; `content` has the user's column names."""
    if isinstance(table, dict):
        try:
            given = {key: value for key, value in table.items() if value is not None}
            named = with_columns(given, getattr(content, "columns", {}))
            case = contest_table(named) or multipl_e_table(named) or human_eval_pack_table(named)
            if case is None:
                case = dataset_table(code_problems.case_table_from_benchmark(named))
            if "timeout_secs" in named:
                # what the row says, and not what is known of its benchmark
                case = {**case, "follows_reference": named.get("follows_reference", False)}
            if not any(case.get(name) not in (None, "") for name in CASE_FIELD_SYNONYMS["id"]) and _has_prompt(case):
                # the same row is the same case, wherever it stands
                case = {**case, "id": f"case-{digest(given)[:12]}"}
                if problems.is_repeated(path, case["id"]):
                    problems.left_out(path, "duplicate rows: each counts once")
                    return
            yield _draft(case, path, line, problems)
        except InputError as error:
            problems.error(path, line, f"{_subject(table.get('task_id'))}: {error}")
        except UnicodeEncodeError:
            problems.error(path, line, "contains half of a surrogate pair, which is not text")
        except RecursionError:
            problems.error(path, line, "nested too deeply to be read; nest lists and objects less deeply")
    else:
        kind = (
            "a string that contains JSON" if isinstance(table, str) and table.lstrip()[:1] == "{" else "no JSON object"
        )
        problems.error(path, line, f'column 1: {kind}; write each case as an object, {{"id": ..., "prompt": ...}}')


def _has_prompt(case: dict[str, Any]) -> bool:
    return any(name in case for name in CASE_FIELD_SYNONYMS["prompt"])


def decoded_json(raw: bytes, path: str, line: int, problems: ProblemCollector, kind: Any) -> Any:
    """The JSON in a text; None after saying at which line and column it is broken."""
    if kind is Any and b'"base_input"' in raw:
        # Python's own reader knows what EvalPlus has beyond JSON: NaN, Infinity, numbers of any length
        with suppress(ValueError, RecursionError):
            return json.loads(raw)
    try:
        raw.decode()
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        fault = json_error_location(raw, error)
        problems.error(path, line + fault.line, f"column {fault.column}: {fault.what}")
    return None


def _draft(table: dict[str, Any], path: str, line: int, problems: ProblemCollector) -> Draft:
    """The same case under our names; what we do not know is warned of, and kept with the metadata."""
    # the defaults of TOML sets: a case must be the same in every format, down to the digest of its tests
    native: dict[str, Any] = {
        "timeout_secs": DEFAULT_TIMEOUT_SECONDS,
        "follows_reference": "timeout_secs" not in table,
    }
    native |= {key: value for key, value in table.items() if key in Case.__struct_fields__ or key == CHECKS_FIELD}
    spelled = dict(CASE_FIELD_SPELLINGS)
    for ours, words in CASE_FIELD_SYNONYMS.items():
        given = [word for word in words if word in table]
        for other in given[1:]:
            if table[other] != table[given[0]]:
                problems.error(path, line, f'"{given[0]}" and "{other}" mean the same but differ; keep one of them')
        if given:
            native[ours], spelled[ours] = table[given[0]], given[0]
    if isinstance(native.get("id"), int) and not isinstance(native["id"], bool):
        native["id"] = str(native["id"])
    extra = {key: value for key, value in table.items() if key not in KNOWN_CASE_FIELDS}
    for key in extra:
        problems.unknown(path, line, key, KNOWN_CASE_FIELDS)
    if extra and isinstance(native.get("metadata", {}), dict):
        native["metadata"] = {**extra, **native.get("metadata", {})}
    if isinstance(native.get("verify", {}), dict):
        native["verify"] = _verify(native, table, path, line, problems)
    native.pop("tests", None)
    spelled |= {"verify.tests": spelled["tests"], **{f"verify.{key}": key for key in FIELDS_WITHOUT_SYNONYMS}}
    return Draft(native, path, _subject(native.get("id")), lambda _: line, spelled=spelled)


def _subject(name: Any) -> str:
    return f"case {short_quote(name)}" if isinstance(name, str) else "a case"


def _verify(
    native: dict[str, Any], table: dict[str, Any], path: str, line: int, problems: ProblemCollector
) -> dict[str, Any]:
    """How the answer is verified: by its tests, otherwise by its expectations, otherwise by its target."""
    flat = {"tests": native.get("tests"), **{key: table.get(key) for key in FIELDS_WITHOUT_SYNONYMS}}
    flat = {key: value for key, value in flat.items() if value is not None}
    verify = {**flat, **native.get("verify", {})}
    for key in flat:
        if verify[key] != flat[key]:
            problems.error(path, line, f'"{key}" and "verify.{key}" mean the same but differ; keep one of them')
    expectations = native.get("expectations")
    is_settled = bool(verify.keys() & {"kind", "python", CHECKS_FIELD}) or CHECKS_FIELD in native
    if verify.get("tests") or (isinstance(expectations, dict) and expectations.get("test_file")):
        if "entry_point" in verify:
            verify.setdefault("style", "check" if "def check(" in str(verify.get("tests")) else "asserts")
        if not is_settled and native.setdefault("language", "python") == "python":
            verify["kind"] = "python"
    elif not is_settled and not verify.get("expect") and ("target" in native or _is_response_case(native, table)):
        # a response that nothing is said about is left to judges
        verify["kind"] = "response" if native.get("target") else JUDGE_ONLY_KIND
        verify.pop("expect", None)
        if "expected_response" in table:
            verify.setdefault("style", "regex")
    return verify


def _is_response_case(native: dict[str, Any], table: dict[str, Any]) -> bool:
    """Whether a table is a case of the suite dialects, which ask for text and never for code."""
    return "expected_classification" in table or bool(native.get("suite") and not native.get("language"))


def case_json_lines(cases: Iterable[Case]) -> Iterator[str]:
    """Each case as one line, including the line break.

    A case that is judged as the dialect knows it has its names; beside them stands only what is not at its default. What the
    dialect cannot say, the tests of code for example, stands under our own names. A function of the user's is named by the
    path it was loaded from, which another machine need not have.
    """
    for case in cases:
        text = msgspec.json.encode(_table(case)).decode()
        # invisible characters and unusual line ends would not survive every editor
        yield f"{text if text.isprintable() else ''.join(map(_escaped_if_invisible, text))}\n"


def _escaped_if_invisible(letter: str) -> str:
    if letter.isprintable():
        return letter
    halves = letter.encode("utf-16-be")
    return "".join(f"\\u{halves[at : at + 2].hex()}" for at in range(0, len(halves), 2))


def _table(case: Case) -> dict[str, Any]:
    own: dict[str, Any] = msgspec.to_builtins(case)
    for renamed in ("id", "suite", "prompt", "target", "verify", "expected_classification", "tags"):
        own.pop(renamed, None)
    own["timeout_secs"] = case.timeout_secs
    if case.follows_reference and case.timeout_secs == DEFAULT_TIMEOUT_SECONDS:
        del own["timeout_secs"], own["follows_reference"]
    return {
        "case_id": case.id,
        "suite_id": case.suite,
        "prompt" if isinstance(case.prompt, str) else "messages": msgspec.to_builtins(case.prompt),
        **_verification_fields(case),
        **({"expected_classification": case.expected_classification} if case.expected_classification else {}),
        **({"tags": case.tags} if case.tags else {}),
        **own,
    }


def _verification_fields(case: Case) -> dict[str, Any]:
    """How an answer is judged: in the words of the dialect where it has them."""
    verify, target = case.verify, {"target": case.target} if case.target else {}
    if verify == Verify(expect=verify.expect) and verify.expect and not (case.tests or case.target):
        return {"expect": verify.expect}
    if case.target and not case.tests:
        if verify == Verify(kind="response", style="regex"):
            return {"expected_response": case.target}
        if verify == Verify(kind="response"):
            return target
    if verify.python or case.expectations.custom_check:
        # the digest of the files; the loader computes it again
        verify = replace(verify, source="")
    # written even where they are empty, because a reader of the dialect would otherwise guess them from the rest
    settings_table = msgspec.to_builtins(replace(verify, settings={})) | verify.settings
    return {**target, "verify": {"kind": verify.kind, "style": verify.style, **settings_table}}
