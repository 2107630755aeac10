"""Tests in C and JavaScript that nobody can pass are found without a right answer, by stubs of what the prompt states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from steelyard.cli.main import main
from steelyard.errors import ExitCode
from steelyard.records import Case, Verify
from steelyard.verifiers.command.stubs import command_stub
from support.toolchains import needs

if TYPE_CHECKING:
    from pathlib import Path


def stub(language: str, prompt: str, **files: str) -> str:
    verify = Verify(kind="command", answer="answer", build="make", test="./test", files=files)
    return command_stub(Case(id="c", prompt=prompt, language=language, verify=verify))


@pytest.mark.parametrize(
    ("prompt", "functions"),
    [
        ("Write void reverse(char *s) in place.", ["void reverse(char *s) { }"]),
        ("Implement `bool is_ok(void)`.", ["bool is_ok(void) { return 0; }"]),
        ("```c\nint *two_sum(int nums[], int n);\n```", ["int *two_sum(int nums[], int n) { return 0; }"]),
        ("Return the sum (of all numbers) and call push(head, 3).", []),
    ],
)
def test_a_stub_in_c_has_the_signatures_of_the_prompt(prompt: str, functions: list[str]) -> None:
    assert [line for line in stub("c", prompt).splitlines() if not line.startswith("#include")] == functions


def test_a_stub_of_a_script_exports_what_the_prompt_names_as_the_tests_load_it() -> None:
    assert stub("js", "Write `add(a, b)` and a class Stack.").endswith("export { add, Stack };\n")
    assert stub("js", "Write `add(a, b)`.", test="require('./answer')").endswith("module.exports = { add };\n")
    assert "function add(...given: any[]): any" in stub("ts", "export function add(a: number, b: number): number")
    assert stub("js", "Write a parser.") == ""


C_TESTS = "#include <assert.h>\nint add(int, int);\nint helper(int);\nint main(void) {{ assert({}); return 0; }}\n"


@needs("cc")
@needs("node")
def test_validate_warns_of_tests_that_do_not_compile_with_a_stub(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def row(name: str, prompt: str, test: str) -> dict[str, Any]:
        build = "cc -o test test.c answer.c"
        verify = {"kind": "command", "answer": "answer.c", "build": build, "test": "./test", "files": {"test.c": test}}
        return {"id": name, "prompt": prompt, "language": "c", "verify": verify}

    script = {"answer": "answer.mjs", "build": "node --check test.mjs", "test": "node test.mjs"}
    rows = [
        row("fine", "Write int add(int a, int b).", C_TESTS.format("add(1, 2) == 3")),
        row("untold", "Write int add(int a, int b).", C_TESTS.format("add(1, 2) == helper(3)")),
        row("broken", "Write int add(int a, int b).", C_TESTS.format("add(1, 2")),
        row("unknown type", "Write struct pair make(int a, int b).", C_TESTS.format("1")),
        {
            "id": "broken script",
            "prompt": "Write `add(a, b)`.",
            "language": "javascript",
            "verify": {"kind": "command", **script, "files": {"test.mjs": "import './answer.mjs'; f(;"}},
        },
    ]
    (tmp_path / "set.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    assert main(["validate", str(tmp_path / "set.jsonl")]) == ExitCode.OK
    captured = capsys.readouterr()
    warned = [line for line in (captured.out + captured.err).splitlines() if "the tests do not compile with it" in line]
    assert sorted(line.split('"')[1] for line in warned) == ["broken", "broken script", "untold"]
