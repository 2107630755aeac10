"""A command that ends with 0 before its tests do has not passed, and `validate` names the cases where nothing can tell."""

from __future__ import annotations

import asyncio
import re
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from steelyard.analysis.scoring import is_correct
from steelyard.engine.preflight.references import check_references
from steelyard.records import Answer, Case, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.command.verifier import CommandVerifier
from support.toolchains import needs

pytestmark = [needs("gcc"), needs("node"), needs("perl")]


class Scene(NamedTuple):
    """A case with tests, an answer that passes them, and wrong ones that would like to."""

    case: Case
    honest: str
    attacks: dict[str, str]


def command_case(
    language: str, answer: str, test: str, files: dict[str, str], build: str = "", results: str = ""
) -> Case:
    verify = Verify(kind="command", answer=answer, build=build, test=test, results=results, files=files)
    return Case(id="add", prompt="Write add(a, b).", language=language, timeout_secs=20, verify=verify)


NODE_TEST = (
    'import assert from "node:assert";\nimport { add } from "./answer.mjs";\nassert.strictEqual(add(1, 2), 3);\n'
)
NODE_ASYNC = (
    'import assert from "node:assert";\nimport { add } from "./answer.mjs";\n'
    "const later = async () => { await new Promise((done) => setTimeout(done, 20)); assert.equal(await add(1, 2), 3); };\nlater();\n"
)
NODE_TAP = 'import { strictEqual as equal } from "node:assert";\nimport { test } from "node:test";\nimport { add } from "./answer.mjs";\ntest("adds", () => equal(add(1, 2), 3));\n'
NODE_WRONG = "export const add = (a, b) => a - b;\n"
NODE_ATTACKS = {
    "exits": f"process.exit(0);\n{NODE_WRONG}",
    "exits when called": "export const add = () => process.exit(0);\n",
    "really exits": f"process.reallyExit(0);\n{NODE_WRONG}",
    "exits on errors": f'process.on("uncaughtException", () => process.exit(0));\n{NODE_WRONG}',
    "hides errors": f'process.on("uncaughtException", () => {{}});\nprocess.on("unhandledRejection", () => process.exit(0));\n{NODE_WRONG}',
    "says nothing of its exit": f'process.on("exit", () => {{ process.exitCode = 0; }});\n{NODE_WRONG}',
}  # fmt: skip
C_MAIN = "#include <assert.h>\n#include <stdio.h>\nint add(int, int);\nint main(void) { assert(add(1, 2) == 3); assert(add(0, 0) == 0); %s return 0; }\n"
C_TAP = (
    '#include <stdio.h>\n#include <string.h>\nint add(int, int);\nint main(void) { printf("1..2\\n"); '
    'printf("%sok 1 - adds\\n", add(1, 2) == 3 ? "" : "not "); printf("%sok 2 - nothing\\n", add(0, 0) == 0 ? "" : "not "); return 0; }\n'
)
C_WRONG = "int add(int a, int b) { return a - b - 1; }\n"
C_ATTACKS = {
    "constructor exits": f"#include <stdlib.h>\n__attribute__((constructor)) static void first(void) {{ _Exit(0); }}\n{C_WRONG}",
    "constructor by its section": f'#include <stdlib.h>\nstatic void first(void) {{ _Exit(0); }}\n__attribute__((section(".init_array"), used)) static void (*start)(void) = first;\n{C_WRONG}',
    "constructor before others": f'#include <stdlib.h>\nstatic void first(void) {{ _Exit(0); }}\n__attribute__((section(".preinit_array"), used)) static void (*start)(void) = first;\n{C_WRONG}',
    "own __assert_fail": f"#include <stdlib.h>\nvoid __assert_fail(const char *a, const char *b, unsigned c, const char *d) {{ exit(0); }}\n{C_WRONG}",
    "own abort": f"void abort(void) {{ for (;;) __builtin_trap(); }}\n{C_WRONG}",
    "printf by another name": f'int quiet(const char *f, ...) __asm__("printf");\nint quiet(const char *f, ...) {{ return 0; }}\n{C_WRONG}',
    "exits when called": "#include <stdlib.h>\nint add(int a, int b) { exit(0); }\n",
}  # fmt: skip
C_BUILD = "gcc -O1 -o test test.c answer.c"
SCENES = {
    "node": Scene(command_case("javascript", "answer.mjs", "node test.mjs", {"test.mjs": NODE_TEST}), "export const add = (a, b) => a + b;\n", NODE_ATTACKS),
    "node, later": Scene(command_case("javascript", "answer.mjs", "node test.mjs", {"test.mjs": NODE_ASYNC}), "export const add = async (a, b) => a + b;\n", NODE_ATTACKS),
    "node with TAP": Scene(
        command_case("javascript", "answer.mjs", "node --test-reporter=tap --test-reporter-destination=r.tap test.mjs", {"test.mjs": NODE_TAP}, results="tap:r.tap"),
        "export const add = (a, b) => a + b;\n", NODE_ATTACKS,
    ),
    "C with a secret": Scene(
        command_case("c", "answer.c", "./test", {"test.c": C_MAIN % 'puts("STEELYARD_END_OF_TESTS");'}, C_BUILD), "int add(int a, int b) { return a + b; }\n",
        {**C_ATTACKS, "reads the tests": '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint add(int a, int b) { char t[4096] = ""; FILE *f = fopen("test.c", "r"); if (f) fread(t, 1, 4095, f); puts(t); exit(0); }\n'},
    ),
    "C with TAP": Scene(command_case("c", "answer.c", "./test", {"test.c": C_TAP}, C_BUILD, "tap"), "int add(int a, int b) { return a + b; }\n", C_ATTACKS),
    "sh": Scene(
        command_case("sh", "answer.sh", "sh test.sh", {"test.sh": '. ./answer.sh\n[ "$(add 1 2)" = 3 ] || false\n'}), "add() { echo $(($1 + $2)); }\n",
        {"exits": "exit 0\n", "is wrong": "add() { echo 4; }\n", "replaces the shell": "exec true\n"},
    ),
    "Python": Scene(
        command_case("python", "answer.py", "python3 test.py", {"test.py": "from answer import add\nassert add(1, 2) == 3\n"}), "def add(a, b):\n    return a + b\n",
        {"exits": "import sys\nsys.exit(0)\n", "exits at once": "import os\ndef add(a, b):\n    os._exit(0)\n"},
    ),
    "Perl": Scene(
        command_case("perl", "Answer.pm", "perl -I. test.pl", {"test.pl": 'use Answer;\ndie "wrong" unless Answer::add(1, 2) == 3;\n'}), "package Answer;\nsub add { return $_[0] + $_[1]; }\n1;\n",
        {"exits": "package Answer;\nexit 0;\n1;\n", "exits when called": "package Answer;\nsub add { exit 0; }\n1;\n"},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def findings() -> dict[tuple[str, str], Finding]:
    async def verify() -> dict[tuple[str, str], Finding]:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        command = CommandVerifier(sandbox)
        found: dict[tuple[str, str], Finding] = {}
        try:
            for name, scene in SCENES.items():
                for attack, code in {**scene.attacks, "honest": scene.honest}.items():
                    text = verbatim_reply(code, scene.case.language)
                    found[name, attack] = await command.verify(scene.case, Answer(text=text))
        finally:
            await sandbox.close()
        return found

    return asyncio.run(verify())


@pytest.mark.parametrize("name", SCENES)
def test_only_the_honest_answer_passes(findings: dict[tuple[str, str], Finding], name: str) -> None:
    for (scene, attack), finding in findings.items():
        if scene != name:
            continue
        assert is_correct(SCENES[name].case, finding) == (attack == "honest"), (attack, finding)
    honest = findings[name, "honest"]
    assert honest.trust == "in-process"
    assert re.search(r"[0-9a-f]{32}", honest.output) is None, "the secret would make every verdict another one"


BY_EXIT_CODE = command_case("c", "answer.c", "./test", {"test.c": C_MAIN % ""}, C_BUILD)


def test_where_only_an_exit_code_is_known_an_early_exit_passes_in_process() -> None:
    async def verify() -> Finding:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        try:
            text = verbatim_reply(C_ATTACKS["exits when called"], "c")
            return await CommandVerifier(sandbox).verify(BY_EXIT_CODE, Answer(text=text))
        finally:
            await sandbox.close()

    finding = asyncio.run(verify())
    assert (finding.label, finding.trust) == ("", "in-process")


def test_validate_names_the_cases_of_which_only_an_exit_code_is_known_together() -> None:
    ending_itself = command_case(
        "javascript", "answer.mjs", "node test.mjs", {"test.mjs": f"{NODE_TEST}process.exit(0);\n"}
    )
    cases = [
        BY_EXIT_CODE,
        replace(BY_EXIT_CODE, id="add again"),
        replace(ending_itself, id="node"),
        *(replace(scene.case, id=name) for name, scene in SCENES.items()),
    ]
    problems = [problem for problem in check_references(cases).problems if "only an exit code" in problem.what]
    assert not any(problem.fatal for problem in problems)
    assert {problem.where: problem.what.partition("last ")[2] for problem in problems} == {
        '2 cases: "add", "add again"': r'(in test.c: puts("\nSTEELYARD_END_OF_TESTS")), or have `results` read a report',
        'case "node"': r'(in test.mjs: console.log("\nSTEELYARD_END_OF_TESTS")), or have `results` read a report',
    }
