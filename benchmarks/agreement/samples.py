"""Answers of other people's, as cases of ours and as orders of the plain way.

They are read from the folder that `tools/agreement/fetch` fills; that program says where each file comes from.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from steelyard import evalsets
from steelyard.records import Case, Expectations, Pair, Verify

LIMIT_CPU_SECONDS = 3
"""For recorded answers, of which thousands never end."""
REFERENCE_CPU_SECONDS = 60
RUST_CPU_SECONDS = 12
IMPORT_OF_ANSWER = re.compile(r"\b(?:from|import) answer\b|import_module\(.answer\b")
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Sample:
    """One answer, as both sides get it."""

    source: str
    """A row of the published table."""
    case: Case
    code: str
    order: dict[str, Any] | None = None
    """What the plain way runs, where that is not made of the case."""
    is_recorded: bool = True
    """Whether a model wrote it; else it is canonical or mutated."""

    @property
    def key(self) -> str:
        """A digest of the answer with its tests."""
        parts = (self.case.id, self.case.tests, repr(self.case.verify.pairs), self.code)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def plain_order(case: Case, code: str) -> dict[str, Any]:
    """An answer with the tests of a case, as `plain.py` reads it."""
    verify = case.verify
    style = verify.style or ("io" if verify.pairs else "check" if verify.entry_point else "asserts")
    if case.language == "rust":
        own_tests_renamed = code.replace("mod tests {", "mod own_tests {")
        return {"style": "rust", "files": {"answer.rs": f"{own_tests_renamed}\n{case.tests}\n"}}
    if style == "io":
        pairs = [[pair.input, pair.output] for pair in verify.pairs]
        if not verify.entry_point:
            return {"style": "io", "files": {"answer.py": code}, "pairs": pairs}
        lines = {"program": code, "test_line": code.count("\n") + 2}
        return {"style": "calls", "pairs": pairs, "entry_point": verify.entry_point, **lines}
    if style in ("unittest", "pytest"):
        # a file that says what it calls, and imports nothing of the answer, stands below it
        is_below = verify.entry_point and not IMPORT_OF_ANSWER.search(case.tests)
        above = f"import unittest\n{code}\n" if is_below else ""
        return {
            "style": style,
            "main": "test_answer",
            "files": {"answer.py": code, "test_answer.py": above + case.tests},
        }
    lines = {"program": code, "test_line": code.count("\n") + 2}
    if style == "doctest":
        return {"style": style, "tests": case.tests, **lines}
    call = f"\ncheck({verify.entry_point})" if style == "check" else ""
    return {"style": "exec", **lines, "program": f"{code}\n{case.tests}\n{call}"}


class Data:
    """The files of repositories below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def files(self, repository: str, pattern: str = "**/*") -> Iterator[tuple[str, str]]:
        """Path and text of the files whose path matches."""
        place = self._folder / repository
        if not place.is_dir():
            raise FileNotFoundError(f"{place}: it is not there; bring it with tools/agreement/fetch {self._folder}")
        for path in sorted(place.glob(pattern)):
            if path.is_file():
                yield path.relative_to(place).as_posix(), path.read_text("utf-8", "replace")

    def rows(self, repository: str, pattern: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Path and object of every line of JSONL files."""
        for path, text in self.files(repository, pattern):
            for line in text.splitlines():
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                if isinstance(row, dict):
                    yield path, row

    @cache  # noqa: B019  one of these lives as long as the program
    def cases(self, *paths: str) -> dict[str, Case]:
        """The problems of a benchmark's own files, by their ids."""
        return {case.id: case for case in evalsets.load([self._folder / path for path in paths]).cases}

    @property
    def human_eval(self) -> dict[str, Case]:
        """The problems of HumanEval, with the time that recorded answers get."""
        cases = self.cases("openai/human-eval/data/HumanEval.jsonl.gz").values()
        return {case.id: replace(case, timeout_secs=LIMIT_CPU_SECONDS) for case in cases}


# References


def references(name: str, *paths: str) -> Callable[[Data], Iterator[Sample]]:
    """The canonical answers in a benchmark's own files."""

    def read(data: Data) -> Iterator[Sample]:
        for case in data.cases(*paths).values():
            timed = replace(case, timeout_secs=REFERENCE_CPU_SECONDS)
            yield Sample(f"{name}, references", timed, case.reference, is_recorded=False)

    return read


def exercism(data: Data) -> Iterator[Sample]:
    """Exercises with a file of tests that imports the answer by its file's name; our tests import a module `answer`.

    Two of the 140 exercises have a helper file beside their tests, which our cases cannot have: they are left out.
    """
    folders: dict[str, dict[str, str]] = {}
    for path, text in data.files("exercism/python", "exercises/practice/**/*.py"):
        _, _, name, file = path.split("/", 3)
        folders.setdefault(name, {})[file] = text
    for name, files in folders.items():
        module = name.replace("-", "_")
        if "test_utils.py" in files:
            continue
        answer, tests = files[".meta/example.py"], files[f"{module}_test.py"]
        for pattern, ours in (
            (rf"^(\s*from) {module}(?= import)", r"\1 answer"),
            (rf"^(\s*import) {module}(?= as)", r"\1 answer"),
            (rf"^(\s*import) {module}$", rf"\1 answer as {module}"),
            (rf"(['\"]){module}(?=\.)", r"\1answer"),  # what is patched by its name
        ):
            tests = re.sub(pattern, ours, tests, flags=re.MULTILINE)
        case = Case(
            id=f"exercism/{name}",
            prompt=name,
            language="python",
            timeout_secs=REFERENCE_CPU_SECONDS,
            reference=answer,
            verify=Verify(style="unittest", tests=tests),
        )
        order = {"style": "unittest", "main": f"{module}_test", "files": {**files, f"{module}.py": answer}}
        yield Sample("Exercism, references", case, answer, order, is_recorded=False)


# Recorded answers


def check_case(case_id: str, prompt: str, tests: str, entry_point: str) -> Case:
    return Case(
        id=case_id,
        prompt=prompt,
        language="python",
        timeout_secs=LIMIT_CPU_SECONDS,
        verify=Verify(style="check", entry_point=entry_point, tests=tests),
    )


def whole(case: Case, code: str) -> str:
    """A whole answer after the prompt, whose helpers it may use; the prompt's own function is then replaced."""
    return f"{case.verify.stub}\n\n{code}"


def head(prompt: str) -> str:
    """The last function that a prompt begins: prompts are recorded without their examples."""
    return str(re.findall(r"^def \w+\(.*", prompt, re.MULTILINE)[-1])


def codet(data: Data) -> Iterator[Sample]:
    by_head = {head(case.verify.stub or ""): case for case in data.human_eval.values()}
    for _, row in data.rows("microsoft/CodeT", "**/*.jsonl"):
        case = by_head.get(head(row["prompt"]))
        for completion in row["samples"] if case else ():
            assert case
            yield Sample("CodeT, codegen-16B", case, row["prompt"] + completion)


def code_quality(data: Data) -> Iterator[Sample]:
    for path, text in data.files("JueH-96/Code-Quality-HumanEval", "*/HumanEval_*.py"):
        if number := re.search(r"HumanEval_(\d+)\.py$", path):
            case = data.human_eval[f"HumanEval/{number[1]}"]
            yield Sample("Code-Quality-HumanEval, thirty models", case, whole(case, text))


def humaneval_results(data: Data) -> Iterator[Sample]:
    for path, text in data.files("jamesmurdza/humaneval-results", "*/*.md"):
        case = data.human_eval.get(f"HumanEval/{Path(path).stem}")
        for code in re.findall(r"^Result: [^\n]*\n```python\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL):
            if case:
                yield Sample("humaneval-results, GPT-4, GPT-3.5, Code Llama", case, whole(case, code))


def mistral_zephyr(data: Data) -> Iterator[Sample]:
    for _, row in data.rows("bdytx5/humanEval_mistral_vs_zephyr", "**/*_samples.jsonl"):
        if case := data.human_eval.get(row["task_id"]):
            yield Sample("mistral_vs_zephyr", case, f"{case.verify.stub}{row['completion']}")


def debugger(data: Data) -> Iterator[Sample]:
    name = "FloridSleeves/LLMDebugger"
    tests = {row["task_id"]: row for _, row in data.rows(name, "**/probs.jsonl")}
    for path, row in data.rows(name, "**/*.jsonl"):
        known = tests.get(row.get("task_id", ""), row)
        code = row.get("solution")
        if path.endswith("probs.jsonl") or not code or not known.get("test") or not known.get("entry_point"):
            continue
        case = check_case(row["task_id"], known["prompt"], known["test"], known["entry_point"])
        yield Sample("LLMDebugger, five models", case, code)


def reflexion(data: Data) -> Iterator[Sample]:
    return (sample for sample in _reflexion(data) if sample.case.language == "python")


def reflexion_rust(data: Data) -> Iterator[Sample]:
    return (sample for sample in _reflexion(data) if sample.case.language == "rust")


def _reflexion(data: Data) -> Iterator[Sample]:
    for _, row in data.rows("noahshinn/reflexion", "**/*.jsonl"):
        code, test, name = row.get("solution"), row.get("test"), row.get("entry_point", "")
        if not (isinstance(code, str) and isinstance(test, str) and test and name.isidentifier()):
            continue
        case_id = str(row.get("name") or row.get("task_id"))
        if "fn main()" in test:
            tests = test.replace("fn main()", "#[test]\nfn tests()")
            yield Sample("reflexion, GPT-4, in Rust", rust_case(case_id, row["prompt"], tests), code)
        else:
            yield Sample("reflexion, GPT-4, in Python", check_case(case_id, row["prompt"], test, name), code)


def rust_case(case_id: str, prompt: str, tests: str) -> Case:
    return Case(
        id=case_id,
        prompt=prompt,
        language="rust",
        timeout_secs=RUST_CPU_SECONDS,
        expectations=Expectations(test_file=tests),
    )


# Where recorded answers are too few: canonical and mutated ones, which are counted apart


def rust_written(_: Data) -> Iterator[Sample]:
    """The canonical answers of our own Rust cases, their counterexamples, and mutations."""
    sets = [ROOT / "examples" / "rust-basics.toml", ROOT / "tests" / "honest" / "rust.toml"]
    for case in evalsets.load(sets).cases:
        bare = rust_case(case.id, str(case.prompt), case.tests)
        for code in filter(None, (case.reference, case.counterexample, *mutated_text(case.reference))):
            yield Sample("our Rust cases: canonical, counterexamples, mutations", bare, code, is_recorded=False)


def mutated_text(code: str) -> Iterator[str]:
    """The code with one operator or number changed, in each of a few ways."""
    for old, new in ((" < ", " <= "), (" > ", " >= "), (" + ", " - "), (" * ", " + "), ("== 0", "!= 0"), ("0", "1")):
        place = code.rfind(old)
        if place >= 0:
            yield code[:place] + new + code[place + len(old) :]


def programs(data: Data) -> Iterator[Sample]:
    """Canonical answers of HumanEval as programs that read their arguments and print the result, and mutations."""
    for problem in data.human_eval.values():
        pairs = literal_pairs(problem.tests)
        if not pairs:
            continue
        case = Case(
            id=problem.id,
            prompt=problem.prompt,
            language="python",
            timeout_secs=LIMIT_CPU_SECONDS,
            verify=Verify(style="io", pairs=tuple(pairs[:3])),
        )
        variants = [problem.reference, *islice(mutated_python(problem.reference), 3)]
        for number, code in enumerate(variants):
            end = PROGRAM_ENDINGS[number % len(PROGRAM_ENDINGS)].format(name=problem.verify.entry_point)
            yield Sample("HumanEval as programs: canonical, mutations", case, code + end, is_recorded=False)


PROGRAM_ENDINGS = (
    "\nimport ast, sys\nprint(repr({name}(*ast.literal_eval(sys.stdin.read()))))\n",
    "\nif __name__ == '__main__':\n    print(repr({name}(*eval(input()))))\n    exit()\n",
    "\nimport sys\nfor line in open(0):\n    sys.stdout.write(repr({name}(*eval(line))) + '\\n')\n",
)


def literal_pairs(tests: str) -> list[Pair]:
    """Arguments and results of the asserts that have them written out."""
    found = []
    for node in ast.walk(ast.parse(tests)):
        match node:
            case ast.Compare(
                left=ast.Call(func=ast.Name(id="candidate"), args=arguments, keywords=[]),
                ops=[ast.Eq()],
                comparators=[expected],
            ):
                try:
                    given = tuple(ast.literal_eval(argument) for argument in arguments)
                    found.append(Pair(input=f"{given!r}\n", output=repr(ast.literal_eval(expected))))
                except ValueError:
                    continue
    return found


def mutated_python(code: str) -> Iterator[str]:
    """The code with one comparison, operation or number changed, each time another."""
    places = sum(1 for node in ast.walk(ast.parse(code)) if changed_node(node) is not None)
    for place in range(places):
        tree = ast.parse(code)
        node = [node for node in ast.walk(tree) if changed_node(node) is not None][place]
        change = changed_node(node)
        assert change
        setattr(node, *change)
        yield ast.unparse(tree)


def changed_node(node: ast.AST) -> tuple[str, Any] | None:
    """The field of a node to change, and its new value."""
    match node:
        case ast.Compare(ops=[operator]):
            other = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq}
            return ("ops", [other[type(operator)]()]) if type(operator) in other else None
        case ast.BinOp(op=ast.Add()):
            return "op", ast.Sub()
        case ast.BinOp(op=ast.Sub() | ast.Mult()):
            return "op", ast.Add()
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return "value", value + 1
    return None


LEET_CODE = "newfacade/LeetCodeDataset/data/LeetCodeDataset-v0.2.0"
SOURCES: dict[str, Callable[[Data], Iterator[Sample]]] = {
    "bigcodebench": references("BigCodeBench", "bigcode-project/bigcodebench-annotation/hf_data/BigCodeBench.jsonl.gz"),
    "leetcode": references("LeetCodeDataset", f"{LEET_CODE}-train.jsonl.gz", f"{LEET_CODE}-test.jsonl.gz"),
    "humaneval": references("HumanEval", "openai/human-eval/data/HumanEval.jsonl.gz"),
    "mbpp": references("MBPP", "google-research/google-research/mbpp/mbpp.jsonl"),
    "exercism": exercism,
    "code-quality": code_quality,
    "humaneval-results": humaneval_results,
    "mistral-zephyr": mistral_zephyr,
    "debugger": debugger,
    "reflexion": reflexion,
    "programs": programs,
    "rust": rust_written,
    "reflexion-rust": reflexion_rust,
    "codet": codet,  # the last, because its endless loops take most of the time
}


def distinct(samples: Iterable[Sample]) -> list[Sample]:
    """The samples without repetitions of the same answer to the same case."""
    return list({sample.key: sample for sample in samples}.values())
