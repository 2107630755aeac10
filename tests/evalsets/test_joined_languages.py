"""In every language that we join with an answer a right one passes, a wrong one fails, and so does one that ends with 0 before its tests do."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from steelyard.analysis.scoring import is_correct
from steelyard.errors import InputError
from steelyard.evalsets import load
from steelyard.languages.table import END_PLACEHOLDER, languages, languages_of
from steelyard.records import Answer, Case, Finding
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.command.proof import end_proof
from steelyard.verifiers.command.verifier import CommandVerifier
from support.toolchains import unavailable


class Joined(NamedTuple):
    """A problem in the shape of its benchmark, and answers to it."""

    row: dict[str, Any]
    right: str
    at_load: str
    """What ends the program with 0, put before a wrong answer."""
    inside: str
    """The same as the body of the function."""
    at_exit: str
    """The same when the program ends, put before a wrong answer."""
    tool: str
    also_right: tuple[str, ...] = ()
    """How else honest people write it."""

    def wrong(self) -> str:
        return self.right.replace("2 *", "3 *")

    def answers(self) -> dict[str, str]:
        """Every answer by what it is."""
        lies = {
            "exit at load": self.at_load.replace("@", self.wrong()),
            "exit inside": self.inside,
            "exit at exit": self.at_exit.replace("@", self.wrong()),
        }
        also = {f"right {number}": answer for number, answer in enumerate(self.also_right)}
        return {"right": self.right, **also, "wrong": self.wrong(), **lies}


def multipl_e(language: str, prompt: str, tests: str) -> dict[str, Any]:
    named = {"name": f"own_1_{language}", "language": language, "stop_tokens": [], "doctests": "transform"}
    return {**named, "prompt": prompt, "tests": tests}


def human_eval_pack(language: str, declaration: str, test: str, **more: str) -> dict[str, Any]:
    return {"task_id": f"{language}/1", "prompt": declaration, "declaration": declaration, "test": test, **more}


CPP_EXIT = "#include <stdlib.h>\n#include <unistd.h>\nstatic int quiet = (atexit([] { _exit(0); }), 0);\n@"
JAVA_WRONG = "class Solution {\n    public int twice(int n) { return 3 * n; }\n    static { %s }\n}\n"
JOINED = {
    "C++ of MultiPL-E": Joined(
        multipl_e(
            "cpp",
            "#include<assert.h>\n// Doubles.\nlong twice(long n) {\n",
            "}\nint main() {\n    auto candidate = twice;\n    assert(candidate((2)) == (4));\n}\n",
        ),
        "long twice(long n) { return 2 * n; }",
        "#include <stdlib.h>\nstatic int early = (exit(0), 0);\n@",
        "#include <stdlib.h>\nlong twice(long n) { exit(0); }",
        CPP_EXIT,
        "c++",
        ("#include <assert.h>\n#include <vector>\nlong twice(long n) { return 2 * n; } // ends",),
    ),
    "C++ of HumanEvalPack": Joined(
        human_eval_pack(
            "CPP",
            "#include<stdio.h>\nusing namespace std;\nint twice(int n){\n",
            "#undef NDEBUG\n#include<assert.h>\nint main(){\n    assert (twice(2)==4);\n}\n\n",
        ),
        "using namespace std;\nint twice(int n) { return 2 * n; }",
        "#include <stdlib.h>\nstatic int early = (exit(0), 0);\n@",
        "#include <stdlib.h>\nint twice(int n) { exit(0); }",
        CPP_EXIT,
        "c++",
    ),
    "JavaScript of MultiPL-E": Joined(
        multipl_e(
            "js",
            "//Doubles.\nfunction twice(n){\n",
            "const assert = require('node:assert');\nfunction test() {\n  let candidate = twice;\n  assert.deepEqual(candidate(2),4);\n}\n\ntest();",
        ),
        "function twice(n){ return 2 * n; }",
        "process.exit(0);\n@",
        "function twice(n){ process.exit(0); }",
        "process.on('exit', () => { process.exitCode = 0; });\nprocess.on('uncaughtException', () => process.exit(0));\n@",
        "node",
        ("const twice = (n) => 2 * n // ends",),
    ),
    "JavaScript of HumanEvalPack": Joined(
        human_eval_pack(
            "JavaScript",
            "\nconst twice = (n) => {\n",
            "const testTwice = () => {\n  console.assert(twice(2) === 4)\n}\n\ntestTwice()\n",
        ),
        "const twice = (n) => { return 2 * n; }",
        "process.exit(0);\n@",
        "const twice = (n) => { process.exit(0); }",
        "process.on('uncaughtException', () => process.exit(0));\n@",
        "node",
    ),
    "Lua": Joined(
        multipl_e(
            "lua",
            "-- Doubles.\nlocal function twice(n)\n",
            "lu = require('luaunit')\n\nfunction test_humaneval()\nlocal candidate = twice\n    lu.assertEquals(candidate(2), 4)\nend\n\nos.exit(lu.LuaUnit.run())",
        ),
        "local function twice(n) return 2 * n end",
        "os.exit(0)\n@",
        "local function twice(n) os.exit(0) end",
        "local leave = os.exit\nos.exit = function() leave(0) end\n@",
        "lua",
    ),
    "PHP": Joined(
        multipl_e(
            "php",
            "<?php\n// Doubles.\nfunction twice($n) {\n",
            "function candidate(...$args) {\n    return twice(...$args);\n}\n\nfunction test(): void {\n"
            '    if (candidate(2) !== 4) { throw new Exception("Test failed!"); }\n}\n\ntest();',
        ),
        "<?php\nfunction twice($n) { return 2 * $n; }",
        "<?php exit(0); ?>\n@",
        "<?php\nfunction twice($n) { exit(0); }",
        "<?php register_shutdown_function(function () { exit(0); }); set_exception_handler(function () { exit(0); }); ?>\n@",
        "php",
        (
            "<?php\nfunction twice($n) { return 2 * $n; }\n?>\n",
            "function twice($n) { return 2 * $n; } // ends",
            "<?php\ndeclare(strict_types=1);\nfunction twice(int $n): int { return 2 * $n; }",
        ),
    ),
    "Perl": Joined(
        multipl_e(
            "pl",
            "# Doubles.\nsub twice {\n    my($n) = @_;\n",
            "use Test::Deep;\n\n\nsub testhumaneval {\n    my $candidate = \\&twice;\n"
            '        if(eq_deeply($candidate->(2),4)) {\n        print "ok!" }else{\n        exit 1;\n        }\n}\n\ntesthumaneval();',
        ),
        "sub twice {\n    my($n) = @_;\n    return 2 * $n;\n}",
        "exit 0;\n@",
        "sub twice { exit 0; }",
        "END { $? = 0; }\n@",
        "perl",
        ("use strict;\nuse warnings;\nsub twice {\n    my ($n) = @_;\n    return 2 * $n;\n}\n1; # ends",),
    ),
    "R": Joined(
        multipl_e(
            "r",
            "# Doubles.\ntwice <- function(n) {\n",
            "test_humaneval <- function() {\n    candidate <- twice\n    stopifnot(isTRUE(all.equal(candidate(2), 4)))\n}\ntest_humaneval()",
        ),
        "twice <- function(n) { 2 * n }",
        "quit(status = 0)\n@",
        "twice <- function(n) { quit(status = 0) }",
        "options(error = quote(quit(status = 0)))\n@",
        "Rscript",
    ),
    "Ruby": Joined(
        multipl_e(
            "rb",
            "# Doubles.\ndef twice(n)\n",
            "require 'test/unit'\nclass TestHumanEval < Test::Unit::TestCase\n  def test_twice\n    candidate = method(:twice)\n"
            "    assert_equal(4, candidate.call(2))\n  end\nend\n",
        ),
        "def twice(n)\n  2 * n\nend",
        "exit(0)\n@",
        "def twice(n)\n  exit(0)\nend",
        "at_exit { exit!(0) }\n@",
        "ruby",
    ),
    "Rust": Joined(
        multipl_e(
            "rs",
            "/// Doubles.\nfn twice(n: isize) -> isize {\n",
            "}\n\nfn main() {\n    let candidate = twice;\n    assert_eq!(candidate(2), 4);\n}\n",
        ),
        "fn twice(n: isize) -> isize { 2 * n }",
        'extern "C" fn early() { std::process::exit(0) }\n#[used]\n#[link_section = ".init_array"]\n'
        'static EARLY: extern "C" fn() = early;\n@',
        "fn twice(n: isize) -> isize { std::process::exit(0) }",
        'extern "C" { fn atexit(f: extern "C" fn()) -> i32; fn _exit(code: i32) -> !; }\nextern "C" fn last() { unsafe { _exit(0) } }\n'
        "fn twice(n: isize) -> isize { unsafe { atexit(last); } 3 * n }",
        "rustc",
    ),
    "Bash": Joined(
        multipl_e(
            "sh",
            "#!/bin/bash\n# Doubles.\ntwice() {\n",
            '}\n\ncandidate() {\n    twice "$@"\n}\n\nset -e\nrun_test() {\n    [[ $(candidate "2") = "4" ]]\n}\n\nrun_test',
        ),
        "twice() {\n    echo $((2 * $1))\n}",
        "exit 0\n@",
        "twice() {\n    exit 0\n}",
        "trap 'exit 0' EXIT\n@",
        "bash",
    ),
    "Java": Joined(
        human_eval_pack(
            "Java",
            "import java.util.*;\nimport java.lang.*;\n\nclass Solution {\n    public int twice(int n) {\n",
            "public class Main {\n    public static void main(String[] args) {\n        Solution s = new Solution();\n"
            "        List<Boolean> correct = Arrays.asList(s.twice(2) == 4);\n"
            "        if (correct.contains(false)) {\n            throw new AssertionError();\n        }\n    }\n}\n",
        ),
        "import java.util.*;\n\npublic class Solution {\n    public int twice(int n) { return 2 * n; }\n}",
        JAVA_WRONG % "System.exit(0);",
        "class Solution {\n    public int twice(int n) { System.exit(0); return 0; }\n}",
        JAVA_WRONG % "Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));",
        "javac",
    ),
    "Go": Joined(
        human_eval_pack(
            "Go",
            "func Twice(n int) int {\n",
            'func TestTwice(t *testing.T) {\n    if Twice(2) != 4 || time.Now().IsZero() {\n        t.Error("not 4")\n    }\n}\n',
            test_setup='package main\n\nimport (\n    "testing"\n    "math"\n    "time"\n)\n',
        ),
        "func Twice(n int) int { return 2 * n }",
        'package main\n\nimport "os"\n\nfunc init() { os.Exit(0) }\n@',
        'package main\n\nimport "os"\n\nfunc Twice(n int) int { os.Exit(0); return 0 }',
        'import "syscall"\n\nfunc Twice(n int) int { defer syscall.Exit(0); return 3 * n }',
        "go",
        # an import of the prompt that only the tests use
        ('package main\n\nimport (\n\t"time" // for nothing\n)\n\nfunc Twice(n int) int { return 2 * n }\n\nfunc main() {}',),
    ),
}  # fmt: skip


def loaded(folder: Path, row: dict[str, Any]) -> Case:
    (folder / "rows.jsonl").write_text(json.dumps(row), "utf-8")
    (case,) = load([folder / "rows.jsonl"]).cases
    return case


def findings(case: Case, answers: dict[str, str]) -> dict[str, Finding]:
    """What is found about each answer to a case, all verified at the same time."""

    async def found() -> dict[str, Finding]:
        sandbox = ZygoteSandbox(strongest_isolation())
        verifier = CommandVerifier(sandbox)
        texts = [Answer(text=f"```{case.language}\n{text}\n```") for text in answers.values()]
        try:
            done = await asyncio.gather(*(verifier.verify(case, text) for text in texts))
        finally:
            await verifier.close()
            await sandbox.close()
        return dict(zip(answers, done, strict=True))

    return asyncio.run(found())


@pytest.mark.parametrize("name", JOINED)
def test_a_right_answer_passes_and_neither_a_wrong_one_nor_one_that_ends_before_its_tests(
    tmp_path: Path, name: str
) -> None:
    joined = JOINED[name]
    if shutil.which(joined.tool) is None:
        unavailable(f"no {joined.tool} here")
    case = loaded(tmp_path, joined.row)
    found = findings(case, joined.answers())
    assert {what: is_correct(case, finding) for what, finding in found.items()} == {
        what: what.startswith("right") for what in found
    }, {what: (finding.reason, finding.output) for what, finding in found.items()}
    assert {finding.trust for finding in found.values()} == {"in-process"}


def test_every_joined_language_is_tried_here_and_tells_the_end_of_its_tests(tmp_path: Path) -> None:
    tried = {(joined.row.get("language") or joined.row["task_id"].partition("/")[0]) for joined in JOINED.values()}
    assert tried == {*languages_of("multipl_e"), *languages_of("human_eval_pack")}
    assert all(language.multipl_e or language.human_eval_pack for language in languages().values())
    assert all(end_proof(loaded(tmp_path, joined.row)) for joined in JOINED.values())
    assert all(END_PLACEHOLDER in language.end_line for language in languages().values())


def test_tests_whose_end_cannot_be_told_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing tells the end of its tests: in Lua they end with os"):
        loaded(tmp_path, {**JOINED["Lua"].row, "tests": "print(1)"})
