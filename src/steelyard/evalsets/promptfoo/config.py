"""The cases of a config: every prompt with every test."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import msgspec

from steelyard.errors import InputError
from steelyard.evalsets.benchmarks.hub import HUB_PREFIX, hub_files, parquet_tables
from steelyard.evalsets.companions import CompanionFiles, rendered_prompt
from steelyard.evalsets.promptfoo.assertions import (
    LeftOutError,
    assertion_checks,
    assertion_from_text,
    has_plain_value,
    is_graded,
)
from steelyard.evalsets.schema import Draft, KeyPath, ProblemCollector
from steelyard.evalsets.yaml import MAX_EVAL_SET_YAML_VALUES, yaml_document
from steelyard.records import DEFAULT_TIMEOUT_SECONDS, Message, digest
from steelyard.text import short_quote

CONFIG_KEYS = {"prompts", "tests", "providers", "targets", "defaultTest", "scenarios"}
"""What distinguishes a config from other files of tables."""
CARRIED_KEYS = {*CONFIG_KEYS, "description", "assertionTemplates", "$schema", "tags", "metadata"}
TEST_KEYS = {
    "description",
    "vars",
    "assert",
    "threshold",
    "options",
    "metadata",
    "prompts",
    "provider",
    "providers",
    "id",
}
PROMPT_FILE = re.compile(r"^[^\n{}]+\.(txt|md|json|j2|yaml|yml|csv|py|js|mjs|cjs|ts)$")
MAX_CONFIG_CASES = 100_000
PROMPT_SEPARATOR = re.compile(r"^---\s*$", re.MULTILINE)


def is_config(document: Any) -> bool:
    """Whether a document is a config of promptfoo.

    >>> is_config({"prompts": ["Hi"], "providers": ["echo"]}), is_config([{"id": "a"}])
    (True, False)
    """
    return (
        isinstance(document, dict)
        and bool(document.keys() & {"prompts", "defaultTest", "scenarios"})
        and (bool(document.keys() & {"tests", "providers", "targets", "scenarios", "defaultTest"}))
    )


class PromptTemplate(NamedTuple):
    """A prompt as the config has it."""

    label: str
    text: str
    names: tuple[str, ...] = ()
    """What tests may call it."""


def config_drafts(
    document: dict[str, Any], path: str, line: Callable[[KeyPath], int], problems: ProblemCollector
) -> Iterator[Draft]:
    """The drafts of a config's cases; everything that is not carried over is reported with its count."""
    reader = _ConfigReader(document, path, line, problems)
    try:
        yield from reader.drafts()
    finally:
        reader.report()


class _ConfigReader:
    def __init__(
        self, document: dict[str, Any], path: str, line: Callable[[KeyPath], int], problems: ProblemCollector
    ) -> None:
        self._document = document
        self._path = path
        self._line = line
        self._problems = problems
        self._files = ConfigFiles(path, problems)
        self._left_out: Counter[str] = Counter()
        self._ids: Counter[str] = Counter()

    def report(self) -> None:
        """Say once what was left out, and how often."""
        for what, count in sorted(self._left_out.items()):
            self._problems.left_out(self._path, what, count)

    def drafts(self) -> Iterator[Draft]:
        document = self._document
        for key in sorted(document.keys() - CARRIED_KEYS):
            self._left_out[f"the key {short_quote(key)[1:-1]} of the config: set such options on the command line"] += 1
        if models := [_provider_name(one) for one in _listed(document.get("providers", document.get("targets")))]:
            names = ", ".join(filter(None, models))[:200]
            self._left_out[f"providers: name models with --models (the config has {names})"] += len(models)
        prompts = self._prompts()
        default = self._default_test()
        made = 0
        for number, test in enumerate(self._tests()):
            try:
                for case in self._test_cases(_merged(default, test), prompts):
                    made += 1
                    if made > MAX_CONFIG_CASES:
                        raise InputError(f"more than {MAX_CONFIG_CASES} cases; split the config")
                    yield self._draft(case, number)
            except LeftOutError as left_out:
                self._left_out[str(left_out)] += 1
            except UnicodeEncodeError:
                what = f"test {number + 1}: contains half of a surrogate pair, which is not text"
                self._problems.error(self._path, self._line(("tests", number)), what)
            except InputError as error:
                self._problems.error(self._path, self._line(("tests", number)), f"test {number + 1}: {error}")

    def _draft(self, table: dict[str, Any], number: int) -> Draft:
        return Draft(table, self._path, f"test {number + 1}", lambda _: self._line(("tests", number)))

    def _prompts(self) -> list[PromptTemplate]:
        found: list[PromptTemplate] = []
        given = self._document.get("prompts", ["{{prompt}}"])
        for number, one in enumerate(_listed(given)):
            try:
                found += self._prompt(one)
            except LeftOutError as left_out:
                self._left_out[str(left_out)] += 1
            except InputError as error:
                self._problems.error(self._path, self._line(("prompts", number)), f"prompt {number + 1}: {error}")
        return found

    def _prompt(self, given: Any) -> Iterator[PromptTemplate]:
        label, names = "", []
        if isinstance(given, dict):
            label = str(given.get("label") or given.get("display") or "")
            names = [str(given[key]) for key in ("id", "label") if given.get(key)]
            given = given.get("raw") or given.get("id") or given.get("prompt")
        if not isinstance(given, str):
            raise InputError("neither text nor a file")
        if not given.startswith(FILE_PREFIX) and not PROMPT_FILE.match(given.strip()):
            yield PromptTemplate(label or given[:60], given, (*names, given))
            return
        if re.search(r"\.(py|m?js|cjs|ts)(:\w+)?$", given.strip()):
            raise LeftOutError("prompts that are functions: write what they return as text")
        for path in self._files.found(given.strip()):
            for text in _file_prompts(path, self._files):
                yield PromptTemplate(label or path.name, text, (*names, given, path.name))

    def _default_test(self) -> dict[str, Any]:
        given = self._document.get("defaultTest") or {}
        try:
            if isinstance(given, str):
                given = self._files.data(self._files.found(given)[0])
            if not isinstance(given, dict):
                raise InputError("no table")
        except InputError as error:
            self._problems.error(self._path, self._line(("defaultTest",)), f"defaultTest: {error}")
            return {}
        return given

    def _tests(self) -> Iterator[Any]:
        """The tests, those of files and scenarios included; a config without tests has one for each prompt."""
        given = self._document.get("tests")
        scenarios = [test for one in _listed(self._document.get("scenarios")) for test in self._scenario_tests(one)]
        if not given and not scenarios:
            yield {}
        yield from scenarios
        for number, one in enumerate(_listed(given)):
            reference = one.get("path") if isinstance(one, dict) and "path" in one and "vars" not in one else one
            if not isinstance(reference, str):
                yield one
                continue
            try:
                if reference.startswith(DATASET_PREFIX):
                    yield from dataset_tests(reference)
                    continue
                for path in self._files.found(reference):
                    rows = self._files.data(path)
                    yield from map(_test_of_row, rows) if path.suffix.lower() == ".csv" else _listed(rows)
            except InputError as error:
                self._problems.error(self._path, self._line(("tests", number)), f"tests: {error}")

    def _scenario_tests(self, scenario: Any) -> Iterator[dict[str, Any]]:
        """Every test of a scenario with every of its configurations."""
        if not isinstance(scenario, dict):
            raise InputError("a scenario is not a table")
        tests = self._scenario_tables(scenario.get("tests")) or [{}]
        for config in self._scenario_tables(scenario.get("config")):
            if not isinstance(config, dict):
                raise InputError("a config of a scenario is not a table")
            yield from (_merged(config, test) for test in tests)

    def _scenario_tables(self, given: Any) -> list[Any]:
        """What a scenario lists, itself or in files."""
        found: list[Any] = []
        for one in _listed(given):
            for path in self._files.found(one) if isinstance(one, str) else ():
                rows = self._files.data(path)
                found += map(_test_of_row, rows) if path.suffix.lower() == ".csv" else _listed(rows)
            found += [] if isinstance(one, str) else [one]
        return found

    def _test_cases(self, test: dict[str, Any], prompts: list[PromptTemplate]) -> Iterator[dict[str, Any]]:
        for key in sorted(test.keys() - TEST_KEYS):
            self._left_out[f"the key {short_quote(key)[1:-1]} of tests: leave it to promptfoo"] += 1
        options = test.get("options") or {}
        if not isinstance(options, dict) or options.get("transform") or options.get("postprocess"):
            raise LeftOutError(
                "tests whose options transform the reply: do the same in a python or javascript assertion"
            )
        wanted = set(map(str, _listed(test.get("prompts"))))
        if wanted and not any(wanted.intersection((prompt.label, *prompt.names)) for prompt in prompts):
            raise LeftOutError("tests whose prompts are not among those of the config: name them by id or label")
        for values in self._combinations(test.get("vars") or {}, options):
            checks = self._checks(test, values)
            group = digest(values, test.get("assert"))[:12]
            for prompt in prompts:
                if wanted and not wanted.intersection((prompt.label, *prompt.names)):
                    continue
                text = f"{options.get('prefix') or ''}{prompt.text}{options.get('suffix') or ''}"
                yield self._case(test, text, values, checks, {"group": group, "prompt": prompt.label}, len(prompts) > 1)

    def _case(
        self,
        test: dict[str, Any],
        template: str,
        values: dict[str, Any],
        checks: list[dict[str, Any]],
        origin: dict[str, str],
        is_one_of_many: bool,
    ) -> dict[str, Any]:
        prompt = _rendered(template, values)
        name = str(test.get("description") or "")
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower())[:40].strip("-")
        base = f"{slug or 'test'}-{digest(template, values, test.get('assert'))[:8]}"
        self._ids[base] += 1
        metadata = {"promptfoo_prompt": origin["prompt"], **_plain_table(test.get("metadata"))}
        verify: dict[str, Any] = {"imported": "promptfoo", "vars": values} if checks else {"kind": "judge"}
        if checks and test.get("threshold") is not None:
            verify["threshold"] = test["threshold"]
        return {
            "id": base if self._ids[base] == 1 else f"{base}-{self._ids[base]}",
            "name": name,
            "prompt": prompt,
            "timeout_secs": DEFAULT_TIMEOUT_SECONDS,
            "follows_reference": True,
            "verify": verify,
            **({"checks": checks} if checks else {}),
            **({"group": origin["group"], "tags": [f"prompt:{origin['prompt']}"[:100]]} if is_one_of_many else {}),
            "metadata": metadata,
        }

    def _combinations(self, given: Any, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The values of the variables; each list of texts is tried one by one."""
        if isinstance(given, str):
            given = self._files.data(self._files.found(given)[0])
        if not isinstance(given, dict):
            raise InputError("vars is not a table")
        choices = []
        for name, value in given.items():
            values = value if _is_expanded(value, options) else [value]
            choices.append([(str(name), one) for value in values for one in self._file_values(value)])
        for combination in itertools.islice(itertools.product(*choices), MAX_CONFIG_CASES + 1):
            values = dict(combination)
            yield {
                name: _rendered_text(value, values) if isinstance(value, str) else value
                for name, value in values.items()
            }

    def _file_values(self, value: Any) -> list[Any]:
        if not isinstance(value, str) or not value.startswith(FILE_PREFIX):
            return [value]
        if re.search(r"\.(py|m?js|cjs|ts)(:\w+)?$", value):
            raise LeftOutError("variables that are functions: write what they return as text")
        if not re.search(r"\.(txt|md|json|yaml|yml|csv|html|xml|j2)$", value):
            raise LeftOutError("variables from images, audio and other files: nothing but text is sent")
        return [self._files.text(path).strip() for path in self._files.found(value)]

    def _checks(self, test: dict[str, Any], values: dict[str, Any]) -> list[dict[str, Any]]:
        checks: list[dict[str, Any]] = []
        options = _plain_table(test.get("options"))
        for assertion in _listed(test.get("assert")):
            if is_graded(assertion) and (assertion.get("provider") or options.get("provider") or test.get("provider")):
                self._left_out["the provider that grades assertions: name judges with --judges"] += 1
            if is_graded(assertion) and options.get("rubricPrompt"):
                self._left_out["the option rubricPrompt of tests: judges are asked in our words"] += 1
            try:
                checks += assertion_checks(self._assertion(assertion, values), self._schema)
            except LeftOutError as left_out:
                self._left_out[str(left_out)] += 1
        return checks

    def _assertion(self, given: Any, values: dict[str, Any]) -> Any:
        """An assertion with its reference followed and its value filled in."""
        reference = given.get("$ref") if isinstance(given, dict) else None
        if isinstance(reference, str):
            templates = self._document.get("assertionTemplates")
            given = templates.get(reference.rpartition("/")[2]) if isinstance(templates, dict) else None
        if isinstance(given, str):
            given = assertion_from_text(given)
        if not isinstance(given, dict):
            raise InputError("an assertion is not a table")
        if "assert" in given:
            return {**given, "assert": [self._assertion(one, values) for one in _listed(given["assert"])]}
        if "value" not in given:
            return given
        value = _filled(given["value"], values)
        return {**given, "value": self._file_value(value) if has_plain_value(given.get("type")) else value}

    def _file_value(self, value: Any) -> Any:
        """What an assertion compares with; where it names a file, what the file holds."""
        if not isinstance(value, str) or not value.startswith(FILE_PREFIX):
            return value
        if value.endswith(".txt"):
            return self._files.text(self._files.found(value)[0]).strip()
        if not value.endswith((".json", ".yaml", ".yml")):
            raise LeftOutError("assertions whose value comes from code or another file: write it into a .txt file")
        return self._files.data(self._files.found(value)[0])

    def _schema(self, text: str) -> Any:
        """A schema in a file, or in the text itself."""
        if text.startswith(FILE_PREFIX):
            return self._files.data(self._files.found(text)[0])
        document = yaml_document(text, self._path, self._problems)
        return None if document is None else document.value


def _file_prompts(path: Path, files: ConfigFiles) -> Iterator[str]:
    if path.suffix.lower() == ".csv":
        yield from (row["prompt"] for row in files.data(path) if row.get("prompt"))
    elif path.suffix.lower() in (".yaml", ".yml"):
        yield json.dumps(files.data(path), ensure_ascii=False)
    elif path.suffix.lower() == ".json":
        yield files.text(path)
    else:
        yield from (part.strip() for part in PROMPT_SEPARATOR.split(files.text(path)) if part.strip())


def _rendered(template: str, values: dict[str, Any]) -> Any:
    """The prompt filled in: text, or the messages of a conversation where it is a list of them in JSON."""
    try:
        messages = msgspec.json.decode(template, type=list[Message]) if template.lstrip()[:1] == "[" else None
    except msgspec.MsgspecError:
        messages = None
    if not messages or not all(isinstance(one.content, str) for one in messages):
        return _rendered_text(template, values)
    return [{"role": one.role, "content": _rendered_text(one.text, values)} for one in messages]


def _rendered_text(text: str, values: dict[str, Any]) -> str:
    """A text with its variables filled in; one that has no value is empty, as promptfoo has it."""
    if "{{" not in text and "{%" not in text:
        return text
    names = re.findall(r"\{[{%][^}]*?\b([A-Za-z_]\w*)", text)
    known = {**dict.fromkeys(names, ""), **values}
    rendered = rendered_prompt(text, known)
    return rendered if isinstance(rendered, str) else text


def _filled(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, str):
        return _rendered_text(value, values)
    if isinstance(value, list):
        return [_filled(one, values) for one in value]
    return {key: _filled(one, values) for key, one in value.items()} if isinstance(value, dict) else value


def _merged(default: dict[str, Any], test: Any) -> dict[str, Any]:
    """A test with what the config says for all of them."""
    if not isinstance(test, dict):
        raise InputError("a test is not a table")
    options = {**_plain_table(default.get("options")), **_plain_table(test.get("options"))}
    asserts = [] if options.get("disableDefaultAsserts") else _listed(default.get("assert"))
    return {
        **default,
        **test,
        "vars": test["vars"] if isinstance(test.get("vars"), str) else {**_variables(default), **_variables(test)},
        "assert": [*asserts, *_listed(test.get("assert"))],
        "options": options,
        "metadata": {**_plain_table(default.get("metadata")), **_plain_table(test.get("metadata"))},
    }


def _variables(test: dict[str, Any]) -> dict[str, Any]:
    given = test.get("vars")
    if given is not None and not isinstance(given, dict):
        raise InputError("vars is not a table")
    return given or {}


def _test_of_row(row: dict[str, str]) -> dict[str, Any]:
    """A test as a row of a table has it."""
    test: dict[str, Any] = {"vars": {}, "assert": [], "options": {}, "metadata": {}}
    for name, cell in row.items():
        if name.startswith("__expected"):
            test["assert"] += [assertion_from_text(cell.strip())] if cell.strip() else []
        elif name in ("__prefix", "__suffix"):
            test["options"][name[2:]] = cell
        elif name == "__description":
            test["description"] = cell
        elif name == "__threshold" and cell.strip():
            test["threshold"] = _number(cell)
        elif name.startswith("__metadata:") and cell.strip():
            test["metadata"][name.partition(":")[2].removesuffix("[]")] = cell
        elif name.startswith("__config:") and cell.strip():
            continue  # applied below, when all assertions of the row are known
        elif not name.startswith("__"):
            test["vars"][name] = cell
    for name, cell in row.items():
        match = re.fullmatch(r"__config:__expected(\d*):threshold", name)
        if match and cell.strip() and 0 < int(match[1] or 1) <= len(test["assert"]):
            test["assert"][int(match[1] or 1) - 1]["threshold"] = _number(cell)
    return test


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise InputError(f"{short_quote(cell)} is not a number") from None


def _is_expanded(value: Any, options: dict[str, Any]) -> bool:
    return (
        isinstance(value, list) and bool(value) and isinstance(value[0], str) and not options.get("disableVarExpansion")
    )


def _provider_name(given: Any) -> str:
    if isinstance(given, dict):
        given = given.get("id") or next(iter(given), "")
    return str(given)


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [] if given is None else [given]


def _plain_table(given: Any) -> dict[str, Any]:
    return given if isinstance(given, dict) else {}


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
        raise InputError(f"line {rows.line_num}: not CSV: {error}") from None
    return found


def _json_lines(text: str) -> list[Any]:
    return [msgspec.json.decode(line) for line in text.splitlines() if line.strip()]
