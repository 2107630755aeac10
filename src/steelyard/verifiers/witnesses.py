"""Tiny answers that are known to be right, one for each language and style: where they fail, the machine is at fault."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from steelyard.records import Case, Expectations, Pair, Verify

WITNESS_ID = "witness"
"""The id of every built-in witness."""

PYTHON_FUNCTION = "def double(number):\n    return 2 * number\n"
PYTHON_PROGRAM = "print(2 * int(input()))\n"
PYTHON_WITNESS_TESTS = {
    "asserts": Verify(tests="assert double(2) == 4"),
    "check": Verify(tests="def check(candidate):\n    assert candidate(2) == 4\n", entry_point="double"),
    "doctest": Verify(tests=">>> double(2)\n4\n"),
    "pytest": Verify(tests="from answer import double\n\n\ndef test_double():\n    assert double(2) == 4\n"),
    "unittest": Verify(
        tests="import unittest\nfrom answer import double\n\n\nclass TestDouble(unittest.TestCase):\n"
        "    def test_double(self):\n        self.assertEqual(double(2), 4)\n"
    ),
}
"""Tests of the function in each style but `io`."""

RUST_FUNCTION = "pub fn double(number: i64) -> i64 {\n    2 * number\n}\n"
RUST_TESTS = (
    "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn doubles() {\n"
    "        assert_eq!(double(2), 4);\n    }\n}\n"
)
TERRAFORM_MODULE = 'output "four" {\n  value = 2 + 2\n}\n'


def python_witness(case: Case, style: str) -> Case:
    """A Python case in a style, with the environment and the limits of another case."""
    is_program = style == "io" and not case.verify.entry_point
    if is_program:
        verify = Verify(pairs=(Pair(input="2\n", output="4\n"),))
    elif style == "io":
        verify = Verify(pairs=(Pair(input=[2], output=4),), entry_point="double")
    else:
        verify = PYTHON_WITNESS_TESTS[style]
    return Case(
        id=WITNESS_ID,
        prompt="",
        language="python",
        timeout_secs=case.timeout_secs,
        verify=Verify(
            kind="python",
            style=style,
            python_env=case.verify.python_env,
            tests=verify.tests,
            entry_point=verify.entry_point,
            pairs=verify.pairs,
        ),
        reference=PYTHON_PROGRAM if is_program else PYTHON_FUNCTION,
    )


def rust_witness(case: Case) -> Case:
    """A Rust case with the dependencies and the limits of another case."""
    return Case(
        id=WITNESS_ID,
        prompt="",
        language="rust",
        timeout_secs=case.timeout_secs,
        dependencies=case.dependencies,
        expectations=Expectations(test_file=RUST_TESTS),
        reference=RUST_FUNCTION,
    )


def terraform_witness(case: Case) -> Case:
    """A module of one output, without any provider, with the limits of another case."""
    return Case(
        id=WITNESS_ID,
        prompt="",
        language="terraform",
        timeout_secs=case.timeout_secs,
        verify=Verify(kind="terraform", syntax_only=case.verify.syntax_only),
        reference=TERRAFORM_MODULE,
    )


class ToolWitness(NamedTuple):
    """A program that a tool must be able to build or run."""

    tools: frozenset[str]
    file: str
    source: str
    build: str
    """The command that builds it, with `{tool}` in it; empty if nothing is built."""
    test: str


C_SOURCE = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { char* four = malloc(2); if (!four) return 1; snprintf(four, 2, \"%d\", 2 + 2); return four[0] != '4'; }\n"
CPP_SOURCE = '#include <string>\nint main() { return std::to_string(2 + 2) != "4"; }\n'
NODE_SOURCE = (
    'import { readFile } from "node:fs/promises"\n'
    'const own = await readFile("witness.mjs", "utf8")\nprocess.exit(own && 2 + 2 === 4 ? 0 : 1)\n'
)
"""Reads a file, because that needs the threads that most programs need."""

TOOL_WITNESSES = (
    ToolWitness(
        frozenset({"cc", "gcc", "clang"}), "witness.c", C_SOURCE, "{tool} -o witness-c witness.c", "./witness-c"
    ),
    ToolWitness(
        frozenset({"c++", "g++", "clang++"}),
        "witness.cc",
        CPP_SOURCE,
        "{tool} -o witness-cc witness.cc",
        "./witness-cc",
    ),
    ToolWitness(frozenset({"node", "nodejs"}), "witness.mjs", NODE_SOURCE, "", "{tool} witness.mjs"),
    ToolWitness(frozenset({"python3", "python"}), "witness.py", "assert 2 + 2 == 4\n", "", "{tool} witness.py"),
    ToolWitness(frozenset({"ruby"}), "witness.rb", "exit(2 + 2 == 4)\n", "", "{tool} witness.rb"),
    ToolWitness(frozenset({"perl"}), "witness.pl", "exit(2 + 2 != 4);\n", "", "{tool} witness.pl"),
    ToolWitness(frozenset({"php"}), "witness.php", "<?php exit(2 + 2 == 4 ? 0 : 1);\n", "", "{tool} witness.php"),
    ToolWitness(frozenset({"lua"}), "witness.lua", "assert(2 + 2 == 4)\n", "", "{tool} witness.lua"),
    ToolWitness(frozenset({"Rscript"}), "witness.r", "stopifnot(2 + 2 == 4)\n", "", "{tool} witness.r"),
    ToolWitness(frozenset({"bash", "dash", "sh"}), "witness.sh", "test $((2 + 2)) = 4\n", "", "{tool} witness.sh"),
)
"""What is known of the tools that commands name; about other tools only the case's own reference can tell."""


def command_witness(case: Case, tools: Iterable[str], needs: Iterable[str] = ()) -> Case:
    """A case that builds and runs one program for each known tool, and proves what tests need, with the limits of another case."""
    named = [(tool, witness) for tool in dict.fromkeys(tools) for witness in TOOL_WITNESSES if tool in witness.tools]
    builds = [witness.build.format(tool=tool) for tool, witness in named if witness.build]
    tests = [*(witness.test.format(tool=tool) for tool, witness in named), *needs]
    return Case(
        id=WITNESS_ID,
        prompt="",
        timeout_secs=case.timeout_secs,
        verify=Verify(
            kind="command",
            answer="witness.txt",
            files={witness.file: witness.source for _, witness in named},
            build=" && ".join(builds),
            test=" && ".join(tests) or "true",
        ),
        reference="```\n2 + 2 = 4\n```\n",
    )
