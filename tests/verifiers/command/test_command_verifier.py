"""Answers in any language are judged by the eval set's own commands, and no answer talks its way past them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from steelyard import evalsets
from steelyard.analysis.scoring import SCORING_RULES, is_correct, score
from steelyard.engine.preflight.references import check_references
from steelyard.errors import InputError, VerifierError
from steelyard.protocols import ProcessResult, ResourceLimits, Workspace
from steelyard.records import Answer, Case, Expectations, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.command.verifier import CommandVerifier
from support.toolchains import needs

EXAMPLES = Path(__file__).parents[3] / "examples"


def case(*, timeout_secs: float = 20, language: str = "shell", expected: Any = None, **verify: Any) -> Case:
    return Case(
        id="a",
        prompt="p",
        language=language,
        timeout_secs=timeout_secs,
        expectations=expected or Expectations(),
        verify=Verify(kind="command", **{"answer": "answer.sh", "test": "sh answer.sh", **verify}),
    )


RUNNER = asyncio.Runner()


@cache
def sandbox() -> ZygoteSandbox:
    """The strongest sandbox of this machine, kept warm."""
    return ZygoteSandbox(strongest_isolation(allow_weak=True))


@pytest.fixture(scope="session", autouse=True)
def _closed() -> Iterator[None]:
    yield
    RUNNER.run(sandbox().close())
    RUNNER.close()


def judge(code: str, of: Case, within: ZygoteSandbox | None = None) -> Finding:
    fenced = f"Here you are:\n\n```{of.language}\n{code}\n```\n"
    return RUNNER.run(CommandVerifier(within or sandbox()).verify(of, Answer(text=fenced)))


class Watched(ZygoteSandbox):
    """The same sandbox with little patience, and with a count of its workspaces."""

    def __init__(self, **limits: float) -> None:
        super().__init__(strongest_isolation(allow_weak=True))
        self.limits = {"wall_seconds": 60.0, **limits}
        self.workspaces = 0

    @asynccontextmanager
    async def workspace(self, *arguments: Any, **named: Any) -> AsyncIterator[Any]:
        self.workspaces += 1
        async with super().workspace(*arguments, **named) as place:
            yield Hasty(place, self.limits)


class Hasty:
    def __init__(self, place: Workspace, limits: dict[str, Any]) -> None:
        self.read, self.write = place.read, place.write
        self._run, self._limits = place.run, limits

    async def run(self, argv: Sequence[str], **named: Any) -> ProcessResult:
        limits = named.pop("limits", ResourceLimits())._replace(**self._limits)
        return await self._run(argv, limits=limits, **named)


def outcomes(finding: Finding) -> dict[str, str]:
    return {test.name: test.outcome for test in finding.tests}


# ---- examples


@needs("node")
def test_the_case_on_the_page_works(tmp_path: Path) -> None:
    page = (EXAMPLES.parent / "docs" / "verifying-other-languages.md").read_text("utf-8")
    shown = page.partition("```toml\n")[2].partition("```\n")[0]
    (tmp_path / "set.toml").write_text(f'[eval_set]\nid = "s"\nname = "S"\n{shown}')
    assert check_references(evalsets.load([tmp_path / "set.toml"]).cases) == (2, [])


@needs("node")
@needs("gcc")
def test_a_right_answer_has_the_full_score() -> None:
    for of in evalsets.load([EXAMPLES / "javascript-basics.toml", EXAMPLES / "c-basics.toml"]).cases[::4]:
        assert score(of, judge(of.reference, of), SCORING_RULES["code-structured"]) == 1


# ---- exit codes


def test_without_a_format_the_exit_code_is_the_one_test() -> None:
    right = judge("exit 0", case())
    assert outcomes(right) == {"sh answer.sh": "passed"}
    assert (right.compiled, right.label, right.reason) == (None, "", "")
    assert (right.trust, right.isolation) == ("in-process", sandbox().level)
    assert is_correct(case(), right)
    wrong = judge("echo 'Error: got 3' >&2; exit 3", case(results="exit code"))
    assert (wrong.label, wrong.reason) == ("wrong answer", "sh answer.sh: Error: got 3")
    assert not is_correct(case(), wrong)


def test_a_reply_without_code_has_failed() -> None:
    finding = RUNNER.run(CommandVerifier(sandbox()).verify(case(language="c"), Answer(text="I cannot do that.")))
    assert finding.label == "no code"
    assert not is_correct(case(), finding)


@pytest.mark.parametrize(
    ("code", "label", "reason"),
    [
        ("while :; do :; done", "cpu limit", "cpu limit"),
        ("true; sh -c 'while :; do :; done'; exit $?", "cpu limit", "cpu limit"),
        ("kill -SEGV $$", "died", "signal 11"),
        ("kill -KILL $$", "died", "signal 9"),
        ("echo 'Assertion `x == 3` failed' >&2; kill -ABRT $$", "wrong answer", "Assertion `x == 3` failed"),
        ("echo 'JavaScript heap out of memory' >&2; exit 134", "memory limit", "memory limit"),
    ],
)
def test_the_label_says_how_an_answer_ended(code: str, label: str, reason: str) -> None:
    finding = judge(code, case(timeout_secs=1))
    assert finding.label == label
    assert reason in finding.reason
    assert not is_correct(case(), finding)


def test_an_answer_that_waits_for_ever_meets_the_time_limit() -> None:
    hasty = Watched(wall_seconds=1)
    finding = judge("sleep 60", case(), hasty)
    RUNNER.run(hasty.close())
    assert finding.label == "time limit"
    assert not is_correct(case(), finding)


# ---- building

C: dict[str, Any] = {"language": "c", "answer": "answer.c", "build": "gcc -c answer.c", "test": "true"}


@needs("gcc")
def test_what_does_not_build_says_where() -> None:
    finding = judge("int add(int a, int b)\n{\n    return a + c;\n}", case(**C))
    assert finding.compiled is False
    assert finding.label == "does not compile"
    assert "undeclared" in finding.reason
    (diagnostic,) = finding.diagnostics
    assert diagnostic.level == "error"
    span = diagnostic.spans[0]
    assert (span.file, span.line_start, span.column_start) == ("answer.c", 3, 16)
    assert finding.tests == ()
    assert not is_correct(case(**C), finding)


@needs("node")
def test_node_says_where_as_well() -> None:
    of = case(language="javascript", answer="src/answer.mjs", build="node --check src/answer.mjs", test="true")
    finding = judge("export const a = 1;\nexport function add(a, b) { return a + ; }", of)
    assert finding.reason == "SyntaxError: Unexpected token ';'"
    assert [(span.file, span.line_start) for span in finding.diagnostics[0].spans] == [("src/answer.mjs", 2)]


@pytest.mark.parametrize(
    ("line", "file", "place", "message", "code"),
    [
        ("./answer.go:3:5: undefined: x", "answer.go", (3, 5), "undefined: x", None),
        ("answer.go(7,9): error TS2322: no number", "answer.go", (7, 9), "no number", "TS2322"),
        ("/tmp/x/answer.go:3: error: bad", "answer.go", (3, 1), "bad", None),
        ("other.go:3:1: fatal error: no [-Wx=2]", "other.go", (3, 1), "no", "-Wx=2"),
    ],
)
def test_the_lines_of_most_compilers_are_understood(
    line: str, file: str, place: tuple[int, int], message: str, code: str
) -> None:
    of = case(answer="answer.go", files={"said": line}, build="cat said; exit 1")
    (diagnostic,) = judge("package p", of).diagnostics
    assert (diagnostic.level, diagnostic.message, diagnostic.code) == ("error", message, code)
    span = diagnostic.spans[0]
    assert (span.file, (span.line_start, span.column_start)) == (file, place)


def test_a_case_can_want_an_answer_that_does_not_build() -> None:
    of = case(build="sh -n answer.sh", test="", expected=Expectations(should_compile=False))
    assert is_correct(of, judge("if", of))
    assert not is_correct(of, judge("true", of))


def test_a_case_can_want_an_answer_that_only_builds() -> None:
    of = case(build="sh -n answer.sh", expected=Expectations(should_pass_tests=False))
    finding = judge("exit 1", of)
    assert finding.tests == ()
    assert is_correct(of, finding)
    assert not is_correct(of, judge("if", of))


def test_a_build_that_never_ends_is_the_answers_fault() -> None:
    # a build has a minute, however little time the case gives its tests
    hasty = Watched(cpu_seconds=1)
    finding = judge("while :; do :; done", case(build="sh answer.sh"), hasty)
    RUNNER.run(hasty.close())
    assert (finding.compiled, finding.label) == (False, "cpu limit")


# ---- files


def test_files_may_lie_in_folders() -> None:
    of = case(answer="src/answer.sh", files={"tests/run.sh": ". ./src/answer.sh; [ $x = 3 ]"}, test="sh tests/run.sh")
    assert is_correct(of, judge("x=3", of))
    assert not is_correct(of, judge("x=4", of))


SPOILS = [
    "echo exit 0 > tests/run.sh",
    "rm tests/run.sh; mkdir tests/run.sh",
    "rm tests/run.sh; ln -s ../kept tests/run.sh; echo exit 0 > kept",
    "rm -r tests; ln -s other tests; mkdir other; echo exit 0 > other/run.sh",
    "rm -r tests; echo no folder > tests",
    "rm -r tests; mkfifo tests",
    "chmod 000 tests/run.sh tests; chmod 500 .",
    "echo x=3 > answer.sh",
    "rm -r tests; (number=0; while [ $number -lt 25000 ]; do : > full$number; number=$((number + 1)); done); true",
]


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_build_that_runs_the_answer_cannot_change_the_tests(spoil: str) -> None:
    files = {"tests/run.sh": ". ./answer.sh; [ $x = 3 ]"}
    of = case(files=files, build="sh answer.sh", test="sh tests/run.sh")
    honest, spoiled = judge("x=3", of), judge(f'x=4; if [ "$0" = answer.sh ]; then {spoil}; fi', of)
    assert is_correct(of, honest)
    assert spoiled.tests
    assert not is_correct(of, spoiled)


def test_a_build_cannot_reach_through_a_link_that_it_left(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("kept")
    of = case(files={"tests/run.sh": "exit 1"}, build="sh answer.sh", test="sh tests/run.sh")
    judge(f"rm -r tests; ln -s {tmp_path} tests", of)
    assert (tmp_path / "run.sh").read_text() == "kept"


def test_results_that_a_build_left_do_not_count() -> None:
    of = case(build="sh answer.sh", test="true", results="tap:results.tap")
    finding = judge("printf '1..1\\nok 1 - forged\\n' > results.tap", of)
    assert outcomes(finding) == {"true": "failed"}
    assert not is_correct(of, finding)


@pytest.mark.parametrize(
    "verify",
    [
        {"answer": ""},
        {"answer": "../answer.sh"},
        {"answer": "/tmp/answer.sh"},
        {"answer": "a/../b"},
        {"answer": "a//b"},
        {"answer": "./a"},
        {"answer": "."},
        {"answer": "a\nb"},
        {"files": {"../x": ""}},
        {"files": {"answer.sh": ""}},
        {"files": {"Answer.sh": ""}},
        {"files": {"answer.sh/x": ""}},
        {"files": {"report.xml": ""}, "results": "junit:report.xml"},
        {"results": "junit:../report.xml"},
        {"results": "junti"},
        {"results": "exit code:x"},
        {"test": ""},
        {"test": "echo 'open"},
        {"expected": Expectations(should_compile=False)},
    ],
)
def test_a_case_that_could_never_be_verified_is_refused_before_anyone_is_asked(verify: dict[str, Any]) -> None:
    with pytest.raises(VerifierError):
        CommandVerifier(sandbox()).check(case(**verify))


def test_a_mistyped_format_is_named_with_the_nearest() -> None:
    with pytest.raises(VerifierError, match='did you mean "junit"'):
        CommandVerifier(sandbox()).check(case(results="junti:report.xml"))


SET = """[eval_set]
id = "s"
name = "S"
[[cases]]
id = "a"
name = "A"
prompt = "p"
[cases.verify]
kind = "command"
answer = "a.c"
test = "true"
[cases.verify.files]
"tests.c" = "file://more/tests.c"
"""


def test_files_can_come_from_beside_the_eval_set(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "tests.c").write_text("int main(void);\n")
    (tmp_path / "set.toml").write_text(SET)
    (loaded,) = evalsets.load([tmp_path / "set.toml"]).cases
    assert loaded.verify.files == {"tests.c": "int main(void);\n"}
    (tmp_path / "more" / "tests.c").write_text("int main(void) {}\n")
    (changed,) = evalsets.load([tmp_path / "set.toml"]).cases
    assert loaded.tests_digest != changed.tests_digest


def test_a_file_that_is_not_there_is_an_error_that_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "set.toml").write_text(SET)
    with pytest.raises(InputError, match=r'set.toml:13: case "a": verify.files: .*No such file'):
        evalsets.load([tmp_path / "set.toml"])


# ---- results

TAP: dict[str, Any] = {
    "files": {"test.sh": "echo 1..2; echo ok 1 - a; . ./answer.sh; echo ok 2 - b"},
    "test": "sh test.sh",
}


@pytest.mark.parametrize(
    ("code", "passed", "failed"),
    [
        ("true", ["a", "b"], []),
        ("exit 0", ["a"], ["plan"]),
        ("exit 1", ["a"], ["plan"]),
        ("trap 'exit 4' EXIT", ["a", "b"], ["exit code"]),
        ("kill -SEGV $$", ["a"], ["plan", "exit code"]),
        ("echo Bail out!", ["a", "b"], ["Bail out!"]),
        ("exec >&-", ["a"], ["plan"]),
    ],
)
def test_results_count_only_with_their_plan_and_a_good_end(code: str, passed: list[str], failed: list[str]) -> None:
    of = case(results="tap", **TAP)
    finding = judge(code, of)
    assert outcomes(finding) == {**dict.fromkeys(passed, "passed"), **dict.fromkeys(failed, "failed")}
    assert is_correct(of, finding) == (not failed)
    assert bool(finding.label) == bool(failed)


@pytest.mark.parametrize(
    "code",
    [
        "echo ok 2 - b",
        "printf 'ok 2 - '",
        "printf '1..1\\n'; exit 0",
        "printf 'ok 2 - b\\nok 3 - c\\n'",
    ],
)
def test_forged_results_that_contradict_the_real_ones_are_evidence(code: str) -> None:
    of = case(
        results="tap", files={"test.sh": "echo 1..2; echo ok 1 - a; . ./answer.sh; echo not ok 2 - b"}, test=TAP["test"]
    )
    finding = judge(code, of)
    assert finding.label == "tampered"
    assert finding.tampered
    assert finding.reason.startswith("tampered with the results: ")
    assert not is_correct(of, finding)
    assert score(of, finding, SCORING_RULES["code"]) == 0


def test_results_can_be_read_from_a_file_that_printing_does_not_reach() -> None:
    files = {"test.sh": "echo 1..1 > r.tap; . ./answer.sh; echo not ok 1 - a >> r.tap"}
    of = case(results="tap:r.tap", files=files, test="sh test.sh")
    finding = judge("printf '1..1\\nok 1 - a\\n'", of)
    assert outcomes(finding) == {"a": "failed"}


@pytest.mark.parametrize(
    "code", ["rm r.tap", "rm r.tap; mkdir r.tap", "rm r.tap; mkfifo r.tap", "rm r.tap; ln -s x r.tap"]
)
def test_a_report_that_is_no_plain_file_is_no_pass(code: str) -> None:
    of = case(results="tap:r.tap", test="sh answer.sh")
    finding = judge(f"printf '1..1\\nok 1 - a\\n' > x; {code}", of)
    assert outcomes(finding) == {"sh answer.sh": "failed"}
    assert finding.reason == "sh answer.sh: no file r.tap"


def test_an_attempt_whose_tests_are_all_ignored_has_failed() -> None:
    of = case(results="tap")
    finding = judge("echo 1..2; echo ok 1 '#' skip; echo ok 2 '#' todo", of)
    assert (finding.label, finding.reason) == ("wrong answer", "all 2 tests were ignored")
    assert not is_correct(of, finding)


def test_an_attempt_without_a_test_has_failed() -> None:
    of = case(results="tap")
    finding = judge("true", of)
    assert (finding.label, finding.reason) == ("wrong answer", "sh answer.sh: no test ran")
    assert not is_correct(of, finding)


# ---- JavaScript

NODE: dict[str, Any] = {
    "language": "javascript",
    "answer": "answer.mjs",
    "files": {
        "test.mjs": 'import { test } from "node:test";\nimport { strictEqual as equal } from "node:assert";\n'
        'import { add } from "./answer.mjs";\n'
        'test("adds", () => equal(add(1, 2), 3));\ntest("adds more", () => equal(add(2, 2), 4));\n'
    },
}
PLAIN = "node --test-reporter=tap --test-reporter-destination=r.tap test.mjs"
RUNNERS: list[dict[str, Any]] = [
    {"test": PLAIN, "results": "tap:r.tap"},
    {"test": "node --test-reporter=tap test.mjs", "results": "tap"},
    {"test": "node --test --test-reporter=tap test.mjs", "results": "tap"},
    {"test": "node --test --test-reporter=junit --test-reporter-destination=r.xml test.mjs", "results": "junit:r.xml"},
]
ADD = "export const add = (a, b) => a + b;\n"


@needs("node")
@pytest.mark.parametrize("runner", RUNNERS, ids=lambda runner: runner["test"])
def test_the_ways_to_run_tests_with_node_agree(runner: dict[str, Any]) -> None:
    of = case(**NODE, **runner)
    assert is_correct(of, judge(ADD, of))
    wrong = judge("export const add = (a, b) => 3;\n", of)
    assert sorted(outcomes(wrong).values()) == ["failed", "passed"]
    assert "3 !== 4" in wrong.reason


@needs("node")
@pytest.mark.parametrize("runner", RUNNERS, ids=lambda runner: runner["test"])
@pytest.mark.parametrize(
    "attack",
    [
        "process.exit(0); export const add = () => 0;",
        "export const add = () => process.exit(0);",
        "export const add = () => process.reallyExit(0);",
        "let called = 0; export const add = () => { if (called++) process.exit(0); return 3; };",
        "export const add = () => process.kill(process.pid, 'SIGKILL');",
        "export const add = () => { console.log('ok 1 - adds'); return 0; };",
        "import { test } from 'node:test'; test.skip('adds'); export const add = () => 0;",
        "export const add = () => new Promise(() => {});",
        "process.on('exit', () => { process.exitCode = 0; }); export const add = () => 0;",
        "export const add = () => ({ valueOf: () => 3, toString: () => '3' });",
    ],
)
def test_leaving_early_or_printing_in_node_is_no_pass(attack: str, runner: dict[str, Any]) -> None:
    of = case(**NODE, **runner)
    finding = judge(attack, of)
    assert finding.label
    assert not is_correct(of, finding)


@needs("node")
def test_a_memory_bomb_in_node_meets_the_memory_limit() -> None:
    of = case(**NODE, **RUNNERS[0])
    finding = judge("export const add = () => { const all = []; for (;;) all.push(new Array(1e6).fill(0.5)); };", of)
    assert finding.label == "memory limit"


# ---- C


@needs("gcc")
@pytest.mark.parametrize(
    "attack",
    [
        "#include <stdlib.h>\nint clamp(int a, int b, int c) { exit(0); }",
        "#include <unistd.h>\nint clamp(int a, int b, int c) { _exit(0); }",
        "#include <stdlib.h>\n__attribute__((constructor)) void f(void) { _Exit(0); }\nint clamp(int a, int b, int c);",
        "int main(void) { return 0; }\nint clamp(int a, int b, int c) { return 0; }",
        '#include <stdio.h>\nint clamp(int a, int b, int c) { puts("1..1\\nok 1 - x"); return 0; }',
        "int clamp(int a, int b, int c) { return *(volatile int *)0; }",
        "int clamp(int a, int b, int c) { for (;;); }",
        "int clamp(int a, int b, int c) { return clamp(a, b, c) + 1; }",
        '#include "/etc/hostname"\nint clamp(int a, int b, int c) { return 0; }',
        "#define clamp other\nint clamp(int a, int b, int c) { return 0; }",
        "#error on purpose",
    ],
)
def test_attacks_in_c_are_no_pass(attack: str) -> None:
    of = evalsets.load([EXAMPLES / "c-basics.toml"]).cases[0]
    finding = judge(attack, replace(of, timeout_secs=2))
    assert finding.label
    assert not is_correct(of, finding)
    assert is_correct(of, judge(of.reference, of))


# ---- linting

LINT: dict[str, Any] = {**C, "lint": "gcc -Wall -Wextra -fsyntax-only answer.c", "build": ""}


@needs("gcc")
def test_warnings_are_counted_and_say_where() -> None:
    finding = judge("int one(int unused)\n{\n    int idle;\n    return 1;\n}", case(**LINT))
    assert finding.warnings == 2
    assert {diagnostic.code for diagnostic in finding.diagnostics} == {"-Wunused-parameter", "-Wunused-variable"}
    assert {span.file for diagnostic in finding.diagnostics for span in diagnostic.spans} == {"answer.c"}
    strict = case(**LINT, expected=Expectations(max_clippy_warnings=1))
    assert is_correct(case(**LINT), finding)
    assert not is_correct(strict, finding)


@needs("gcc")
def test_an_answer_cannot_shift_its_warnings_to_a_file_that_is_not_there() -> None:
    assert judge('#line 1 "elsewhere.c"\nint one(int unused) { return 1; }', case(**LINT)).warnings == 1


@pytest.mark.parametrize(
    ("said", "warnings"),
    [
        ("", 0),
        ("answer.sh:1:1: warning: a\nanswer.sh:2:1: note: b\n  2 | x\nanswer.sh:3:1: error: c", 2),
        ("other.sh:1:1: warning: in a file of ours", 0),
        ("answer.sh\n\nsecond line", 2),
        ("answer.sh:3:7: no such thing [rule/name]", 1),
    ],
)
def test_lines_of_a_linter_are_warnings_about_the_answer(said: str, warnings: int) -> None:
    of = case(files={"other.sh": "", "said": said}, lint="cat said")
    assert judge("true", of).warnings == warnings


@pytest.mark.parametrize("lint", ["exit 1", "kill -KILL $$", "while :; do :; done"])
def test_a_linter_that_breaks_on_an_answer_has_not_found_it_clean(lint: str) -> None:
    hasty = Watched(cpu_seconds=1)
    finding = judge("true", case(lint=lint), hasty)
    RUNNER.run(hasty.close())
    assert finding.warnings == 1


# ---- names


@needs("node")
def test_expected_names_are_looked_for_in_any_language() -> None:
    names = Expectations(expected_functions=("add", "push", "gone"), expected_types=("Stack",))
    of = case(language="javascript", answer="a.js", test="true", expected=names)
    code = "export class Stack {\n  push(value) {\n    add(value);\n  }\n}\nconst add = (a) => a;"
    assert judge(code, of).missing == ("gone",)


# ---- missing tools


@pytest.mark.parametrize(
    "verify", [{"build": "no-such-cc -c x"}, {"test": "cd . && no-such-tool"}, {"lint": "/no/such"}]
)
def test_a_tool_that_is_not_there_is_our_failure(verify: dict[str, Any]) -> None:
    with pytest.raises(VerifierError, match=r"not found in the sandbox: (no-such|/no/such)"):
        judge("true", case(**verify))


def test_an_answer_cannot_feign_a_missing_tool() -> None:
    finding = judge("echo 'sh: 1: gcc: not found' >&2; exit 127", case())
    assert finding.label == "wrong answer"


def test_a_tool_is_looked_up_once() -> None:
    watched = Watched()
    verifier = CommandVerifier(watched)
    for _ in range(2):
        RUNNER.run(verifier.verify(case(), Answer(text="```sh\ntrue\n```")))
    RUNNER.run(watched.close())
    assert watched.workspaces == 3


@pytest.mark.parametrize(
    "command", ["x=1 sh -c true", "( cd . && true )", "run() { true; }; run", "if true; then true; fi", "./made; true"]
)
def test_only_plain_names_of_tools_are_looked_up(command: str) -> None:
    assert judge("true", case(test=f"{command} || true")).label == ""
