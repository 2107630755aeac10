"""Eval sets read from files, folders and the suites that come with us, every problem named with its line."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard import plugins
from steelyard.errors import InputError, Problem, did_you_mean
from steelyard.evalsets import toml
from steelyard.evalsets.benchmarks.datasets import column_map
from steelyard.evalsets.benchmarks.hub import HUB_PREFIX, folder_tables, hub_files
from steelyard.evalsets.companions import CompanionFiles, rendered_prompt, system_error_reason, with_check_list
from steelyard.evalsets.jsonl import check_mapped_fields
from steelyard.evalsets.schema import (
    Draft,
    ProblemCollector,
    TooManyProblemsError,
    record_from_draft,
    with_verifier_settings,
)
from steelyard.evalsets.suites import SUITE_PREFIX, matching_suites, open_suite
from steelyard.evalsets.tools import with_completed_tools, with_tool_tables
from steelyard.protocols import EvalSetFormat
from steelyard.records import JUDGE_ONLY_KIND, Case, EvalSetFile, Message, Rule, digest
from steelyard.store.stored_cases import CaseCollector, changed_cases
from steelyard.text import printable, short_quote

SETTINGS_FILE_NAME = "steelyard.toml"
"""The settings file, which is often beside eval sets but is not one."""
EVAL_SET_CHUNK_BYTES = 1 << 20
MAX_CASE_NESTING_DEPTH = 100
"""Levels of lists and tables in each other; more may not fit on the stack when a run is stored."""


def is_eval_set_available(path: str) -> bool:
    """Whether an eval set that a run was made from can be read again."""
    return path.startswith(SUITE_PREFIX) or Path(split_columns(path)[0]).exists()


def split_columns(given: str) -> tuple[str, str]:
    """A path followed by names of columns, as in `rows.csv#prompt=question`; a file may have such a name itself."""
    path, _, columns = given.rpartition("#")
    return (path, columns) if path and "=" in columns and not os.path.lexists(given) else (given, "")


class EvalSets(NamedTuple):
    """The cases of some files, where they came from, and what looked odd."""

    cases: Sequence[Case]
    files: tuple[EvalSetFile, ...]
    problems: tuple[Problem, ...]
    """Warnings only; what is wrong is raised."""
    rules: tuple[Rule, ...] = ()
    """The rules of the files."""
    rule: str = ""
    """The scoring rule that the files name, if any."""


class EvalSetError(InputError):
    """Eval sets that cannot be used as they are."""

    def __init__(self, problems: Iterable[Problem], cases: Sequence[Case]) -> None:
        super().__init__(problems)
        self.cases = cases
        """Those that could be read: more may be wrong with them."""


def load(paths: Sequence[str | Path]) -> EvalSets:
    """The cases of files and folders, in order; raises one InputError with everything that is wrong with them.

    Many or long cases stay in a file without a name.
    """
    problems = ProblemCollector()
    files: list[EvalSetFile] = []
    cases = CaseCollector()
    found: list[str] = []
    scoring = ScoringRuleSet()
    try:
        found = list(_files([paths] if isinstance(paths, str | Path) else paths, problems))
        places: dict[str, str] = {}
        companions = CompanionFiles()
        for path in found:
            files += [_read(path, cases, places, companions, scoring, problems)]
    except TooManyProblemsError:
        *_, last = problems.errors
        rest = f"what follows here, and {max(0, len(found) - len(files) - 1)} further files, were not read"
        problems.errors.append(last._replace(what=f"stopped after {len(problems.errors)} problems; {rest}"))
    if not found and not problems.errors:
        raise InputError("no eval set was given; name a .toml or .jsonl file, a folder of them, or suite:all")
    if problems.errors:
        raise EvalSetError([*problems.errors, *problems.warnings()], cases.cases())
    rules = tuple(rule for rule, _ in scoring.rules.values())
    return EvalSets(cases.cases(), tuple(files), tuple(problems.warnings()), rules, scoring.rule)


def with_default_checks(sets: EvalSets, checks: Mapping[str, Mapping[str, Any]]) -> EvalSets:
    """The cases that were left to judges with the check that the user names for their suite; "" stands for any other suite."""
    if not checks:
        return sets
    suites = {case.suite for case in sets.cases}
    for suite in checks.keys() - suites - {""}:
        raise InputError(f"default check: no suite {short_quote(suite)} ({did_you_mean(suite[:80], suites - {''})})")

    def with_check(case: Case) -> Case:
        check = checks.get(case.suite, checks.get("")) if case.by_judges else None
        return replace(case, verify=replace(case.verify, kind="response", expect=dict(check))) if check else case

    return sets._replace(cases=changed_cases(sets.cases, with_check))


def _files(paths: Iterable[str | Path], problems: ProblemCollector) -> Iterator[str]:
    """Every file that is meant, once, in the order given and sorted within folders."""
    seen = set()
    for given in (os.fspath(path) for path in paths):
        try:
            if given.startswith(SUITE_PREFIX):
                inside = list(matching_suites(given))
            else:
                path, columns = split_columns(given)
                inside = [given]
                if columns:
                    check_mapped_fields(column_map(columns))
                if path.startswith(HUB_PREFIX):
                    inside = [f"{file}#{columns}" if columns else file for file in hub_files(path)]
                elif stat.S_ISDIR(Path(path).stat().st_mode):
                    end = f"#{columns}" if columns else ""
                    inside = [f"{file}{end}" for file in _files_in_folder(path, problems)]
        except InputError as error:
            problems.error(given, 0, str(error))
            continue
        except (OSError, ValueError) as error:
            problems.error(given, 0, f"cannot be read: {system_error_reason(error)}; name a file or folder that exists")
            continue
        if not inside:
            problems.error(
                given,
                0,
                "no eval sets in this folder; it needs .toml, .jsonl, .parquet, .arrow or .csv files, or name others one by one",
            )
        for path in inside:
            if os.path.realpath(path) not in seen:
                seen.add(os.path.realpath(path))
                yield path


def _files_in_folder(folder: str, problems: ProblemCollector) -> list[str]:
    """The TOML files below a folder, or the JSONL files when there are none, otherwise its tables."""

    def refused(error: OSError) -> None:
        problems.error(str(error.filename), 0, f"cannot be read: {system_error_reason(error)}")

    # links to folders are not followed, so a loop of links has an end
    walked = ((root, name) for root, _, names in os.walk(folder, onerror=refused) for name in names)
    below = sorted(Path(root, name) for root, name in walked if name != SETTINGS_FILE_NAME)
    kinds = [".toml"], [".jsonl", ".jsonl.gz"]
    toml_files, jsonl_files = ([str(path) for path in below if _suffix(path.name) in kind] for kind in kinds)
    found = [path for path in toml_files if not _holds_experiment(path)] or jsonl_files
    return found or folder_tables([*map(str, below)], folder, problems.left_out)


def _holds_experiment(path: str) -> bool:
    try:
        stream, _ = _open_with_format(path)
        with stream:
            return toml.is_experiment(HashingFileReader(stream).read(toml.MAX_TOML_EVAL_SET_BYTES))
    except (OSError, InputError):
        return False  # the loader reports what is wrong with it


def _suffix(name: str) -> str:
    name = name.lower()
    return ".jsonl.gz" if name.endswith(".jsonl.gz") else Path(name).suffix


@dataclass
class HashingFileReader:
    """A file being read, with the size and the digest of the part read so far."""

    stream: BinaryIO | gzip.GzipFile
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our names of columns that are called otherwise in the file."""
    size: int = 0
    hash: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    def read(self, limit: int) -> bytes:
        """The next bytes, as many as there are up to the limit."""
        # reading everything at once would allocate the maximum even for a small file
        pieces: list[bytes] = []
        while limit > 0 and (piece := self.stream.read(min(limit, EVAL_SET_CHUNK_BYTES))):
            pieces.append(piece)
            limit -= len(piece)
        return self._noted(b"".join(pieces))

    def readline(self, limit: int) -> bytes:
        """The next line, or as much of it as the limit allows."""
        return self._noted(self.stream.readline(limit))

    def _noted(self, data: bytes) -> bytes:
        self.hash.update(data)
        self.size += len(data)
        return data


@dataclass
class ScoringRuleSet:
    """What the files say about scoring, taken together."""

    rules: dict[str, tuple[Rule, str]] = field(default_factory=dict)
    """By name, with the file that defines it."""
    rule: str = ""
    _says: str = ""
    """The file it is in."""

    def add(self, draft: Draft, problems: ProblemCollector) -> None:
        """Take over what one file says; it must not contradict another."""
        for rule in draft.rules:
            if rule.name in RESERVED_RULE_NAMES:
                problems.error(draft.path, 0, f"rule {short_quote(rule.name)} is built in; give yours another name")
            first, where = self.rules.setdefault(rule.name, (rule, draft.path))
            if first != rule:
                place = "this file" if where == draft.path else printable(where)
                problems.error(
                    draft.path,
                    0,
                    f"rule {short_quote(rule.name)} is defined differently in {place}; rename one of them",
                )
        if not draft.rule:
            return
        known = [*RESERVED_RULE_NAMES, *self.rules]
        if draft.rule not in known:
            what = f"eval_set.rule: unknown rule {short_quote(draft.rule)} ({did_you_mean(draft.rule[:80], known)})"
            problems.error(draft.path, 0, what)
        if self.rule and self.rule != draft.rule:
            other = f"{printable(self._says)} wants {short_quote(self.rule)}"
            problems.error(draft.path, 0, f"asks for rule {short_quote(draft.rule)}, but {other}; run them separately")
        self.rule, self._says = draft.rule, draft.path


WHERE_CASES_STAND = {
    ".toml": "write [[cases]] tables",
    ".jsonl": "write one JSON object per line",
    ".jsonl.gz": "write one JSON object per line",
    ".csv": "write the names of the columns on the first line, such as prompt,target, and a case on each further one",
}
"""How a file of a kind would have cases."""
RESERVED_RULE_NAMES = ("code", "code-structured")
"""The names of rules that no file can take."""


def _read(
    path: str,
    cases: CaseCollector,
    places: dict[str, str],
    companions: CompanionFiles,
    scoring: ScoringRuleSet,
    problems: ProblemCollector,
) -> EvalSetFile:
    """Add the cases of one file."""
    before = len(problems.errors)
    is_any, content_digest = False, ""
    try:
        file, columns = split_columns(path)
        opened, format_name = _open_with_format(file)
        with opened as stream:
            content = HashingFileReader(stream, column_map(columns) if columns else {})
            for draft in _drafts(format_name, content, file, problems):
                if not is_any:
                    scoring.add(draft, problems)
                is_any = True
                case = _case(draft, places, companions, problems)
                if case:
                    cases.append(case)
        content_digest = content.hash.hexdigest()
        for outside in companions.outside(Path(file).absolute().parent) if is_any else ():
            problems.warning(
                path, f'reads "{printable(outside)}", which is outside of its folder; models get to see it'
            )
    except OSError as error:
        problems.error(path, 0, f"cannot be read: {system_error_reason(error)}")
    except InputError as error:
        problems.error(path, 0, str(error))
    if not is_any and len(problems.errors) == before:
        problems.error(
            path, 0, f"no cases in this file; {WHERE_CASES_STAND.get(_suffix(path), 'write one case at least')}"
        )
    return EvalSetFile(path=printable(path), digest=content_digest)


def _drafts(name: str, content: HashingFileReader, path: str, problems: ProblemCollector) -> Iterator[Draft]:
    """The drafts that the format of this name finds in a file."""
    read: EvalSetFormat = plugins.load_plugin("evalsets", name)
    with plugins.explain_plugin_errors("evalsets", name):
        yield from read(content, path, problems)


def _open_with_format(path: str) -> tuple[BinaryIO | gzip.GzipFile, str]:
    """A file that can be read, and the name of its format."""
    if path.startswith(SUITE_PREFIX):
        stream, suffix = open_suite(path)
        return stream, plugins.plugin_for_suffix("evalsets", suffix)
    suffix = _suffix(path)
    if not Path(path).is_file():
        raise InputError("not a regular file; name a file or a folder")
    name = plugins.plugin_for_suffix("evalsets", suffix)
    if not name:
        known = did_you_mean(suffix[:80], plugins.known_suffixes("evalsets"))
        raise InputError(f"unknown kind of file {short_quote(suffix)} ({known})")
    return gzip.open(path) if suffix.endswith(".gz") else Path(path).open("rb"), name


def _case(draft: Draft, places: dict[str, str], companions: CompanionFiles, problems: ProblemCollector) -> Case | None:
    """The draft as a case with everything it refers to; None after saying what is wrong with it."""
    before = len(problems.errors)
    line = draft.line(("id",))
    try:
        checked = with_check_list(with_tool_tables(draft), companions, problems)
        case = record_from_draft(Case, with_verifier_settings(checked, problems), problems)
        name = draft.table.get("id")
        if isinstance(name, str):
            if not name or len(name) > 200 or not name.isprintable():
                what = "an id must have 1 to 200 characters, and no control characters"
                problems.error(draft.path, line, f"{draft.subject}: {what}")
            elif name in places:
                problems.error(draft.path, line, f"{draft.subject} is also in {places[name]}; ids must be unique")
            places.setdefault(name, f"{printable(draft.path)}:{line}")
        if case:
            case = _complete(case, draft, companions, problems)
            msgspec.json.encode(case)  # what cannot be stored would break a run later
    except UnicodeEncodeError:
        problems.error(draft.path, line, f"{draft.subject}: contains half of a surrogate pair, which is not text")
    return case if len(problems.errors) == before else None


class _CaseCompletion(NamedTuple):
    """One case being completed, and where its problems are reported."""

    draft: Draft
    companions: CompanionFiles
    problems: ProblemCollector

    def wrong(self, what: str, *keys: str) -> None:
        place = self.draft.line(keys)
        self.problems.error(self.draft.path, place, f"{self.draft.subject}: {'.'.join(keys)}: {what}")

    @property
    def folder(self) -> Path:
        return Path(self.draft.path).absolute().parent

    def check(self, case: Case) -> None:
        """Report the values that no case can have."""
        kind = case.verify.kind
        if kind not in ("", JUDGE_ONLY_KIND) and not plugins.is_plugin("verifiers", kind):
            known = {*plugins.plugin_names("verifiers"), JUDGE_ONLY_KIND}
            self.wrong(f"unknown verifier {short_quote(kind)} ({did_you_mean(kind[:80], known)})", "verify", "kind")
        for name, seconds in (("timeout_secs", case.timeout_secs), ("compile_secs", case.compile_secs)):
            if seconds is not None and not 0 < seconds < math.inf:
                self.wrong("must be a number of seconds above 0", name)
        if not (0 <= case.weight < math.inf):
            self.wrong("must be a number from 0 up", "weight")
        nested = (("metadata",), case.metadata), (("vars",), case.vars), (("verify", "expect"), case.verify.expect)
        for keys, value in (*nested, (("checks",), case.verify.settings)):
            if _is_deeper(value, MAX_CASE_NESTING_DEPTH):
                what = f"nested more than {MAX_CASE_NESTING_DEPTH} levels deep; nest lists and tables less deeply"
                self.wrong(what, *keys)
        if case.max_tokens is not None and not 0 < case.max_tokens < 1 << 31:
            self.wrong("must be a number of tokens from 1 up", "max_tokens")

    def with_functions(self, case: Case) -> Case:
        """The case with its functions by their full paths, and a digest of their files."""
        verify, expectations = case.verify, case.expectations
        sources = []
        for where in ("verify", "python"), ("expectations", "custom_check"):
            function = getattr(getattr(case, where[0]), where[1])
            if not function:
                continue
            try:
                full, source = self.companions.function(self.folder, function)
            except InputError as error:
                self.wrong(str(error), *where)
                continue
            sources.append(source)
            if where[0] == "verify":
                verify = replace(verify, python=full)
            else:
                expectations = replace(expectations, custom_check=full)
        if sources:
            verify = replace(verify, source=digest(*sources))
        return replace(case, verify=verify, expectations=expectations)

    def with_workspace(self, case: Case) -> Case:
        """The case with its workspace by its full path, and a digest of the files in it."""
        if not case.workspace:
            return case
        verify, workspace = case.verify, ""
        try:
            workspace, content = self.companions.workspace(self.folder, case.workspace)
            verify = replace(verify, workspace_digest=content)
        except InputError as error:
            self.wrong(str(error), "workspace")
        if not (verify.kind or verify.python or verify.expect):
            verify = replace(verify, kind="command")
        return replace(case, verify=verify, workspace=workspace)

    def prompt(self, case: Case) -> str | tuple[Message, ...]:
        """The prompt, from its file and with its variables filled in."""
        prompt = case.prompt
        try:
            if self.draft.prompt_files and isinstance(prompt, str) and prompt.startswith("file://"):
                prompt = self.companions.text(self.folder / prompt.removeprefix("file://"))
            if case.vars:
                prompt = rendered_prompt(prompt, case.vars)
            if not isinstance(prompt, str):
                prompt = self.companions.attached(self.folder, prompt)
        except InputError as error:
            self.wrong(str(error), "prompt")
        return prompt


def _complete(case: Case, draft: Draft, companions: CompanionFiles, problems: ProblemCollector) -> Case:
    """The case with its prompt rendered and the functions it names looked up; says what is wrong with them."""
    completion = _CaseCompletion(draft, companions, problems)
    completion.check(case)
    case = completion.with_workspace(completion.with_functions(case))
    case = with_completed_tools(case, completion.folder, companions, completion.wrong, files=draft.prompt_files)
    verify = case.verify
    if verify.python_env:
        verify = replace(verify, python_env=str(completion.folder / verify.python_env))
    if case.target and not (case.tests or verify.kind or verify.python):
        verify = replace(verify, kind="response")
    return replace(case, verify=verify, prompt=completion.prompt(case), vars={})


def _is_deeper(value: Any, levels: int) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(levels == 0 or _is_deeper(item, levels - 1) for item in inside)
