"""Programs in any language are run once for each input, and what they print is compared where they cannot reach it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from steelyard.errors import VerifierError
from steelyard.records import Answer, Case, Finding, Pair, Verify
from steelyard.sandbox.levels import ISOLATION_LEVELS, strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.command.verifier import CommandVerifier
from support.toolchains import needs

PAIRS = (Pair(input="3\n1 2 3\n", output="6"), Pair(input="1\n5\n", output="5\n"))
COMMANDS: dict[str, dict[str, str]] = {
    "javascript": {"answer": "answer.mjs", "run": "node answer.mjs"},
    "commonjs": {"answer": "answer.cjs", "run": "node answer.cjs"},
    "c": {"answer": "answer.c", "build": "cc -O2 -o answer answer.c", "run": "./answer"},
    "shell": {"answer": "answer.sh", "run": "sh answer.sh"},
    "perl": {"answer": "answer.pl", "run": "perl answer.pl"},
    "python": {"answer": "answer.py", "run": "/usr/bin/python3 answer.py"},
    "java": {"answer": "Main.java", "build": "javac Main.java", "run": "java Main"},
    "go": {"answer": "answer.go", "run": "go run answer.go"},
    "r": {"answer": "answer.R", "run": "Rscript answer.R"},
}

HONEST: dict[str, Sequence[str]] = {
    "r": (
        "input <- file('stdin')\nlines <- readLines(input)\ncat(sum(as.integer(strsplit(lines[2], ' ')[[1]])), '\\n')",
        "x <- scan(file('stdin'), quiet = TRUE)\ncat(sum(utils::tail(x, -1)), fill = TRUE)",
    ),
    "javascript": (
        ("import { readFileSync } from 'node:fs';\n"
        "const [n, ...a] = readFileSync(0, 'utf8').trim().split(/\\s+/).map(Number);\nconsole.log(a.reduce((x, y) => x + y, 0));"),
        ("import { readFileSync } from 'fs';\n"
        "const lines = readFileSync('/dev/stdin', 'utf8').split('\\n');\nconsole.log(lines[1].split(' ').reduce((x, y) => x + +y, 0));"),
        ("import readline from 'node:readline';\nconst rl = readline.createInterface({ input: process.stdin });\n"
        "const lines = [];\nrl.on('line', line => lines.push(line));\n"
        "rl.on('close', () => console.log(lines[1].split(' ').map(Number).reduce((x, y) => x + y)));"),
        ("let text = '';\nfor await (const chunk of process.stdin) text += chunk;\n"
        "process.stdout.write(String(eval(text.trim().split('\\n')[1].split(' ').join('+'))));"),
        ("process.stdin.setEncoding('utf8');\nlet s = '';\nprocess.stdin.on('data', d => s += d);\n"
        "process.stdin.on('end', () => { console.error('debug'); console.log(s.split(/\\s+/).slice(1).reduce((x, y) => x + +y, 0)); process.exit(0); });"),
    ),
    "commonjs": (
        ("const input = require('fs').readFileSync('/dev/stdin').toString().trim().split('\\n');\n"
        "console.log(input[1].split(' ').map(Number).reduce((a, b) => a + b, 0));"),
    ),
    "c": (
        "#include <stdio.h>\nint main(void) { int n, x, s = 0; scanf(\"%d\", &n); while (n--) { scanf(\"%d\", &x); s += x; } printf(\"%d\\n\", s); return 0; }",
        ("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint main() { char line[100]; fgets(line, 100, stdin); fgets(line, 100, stdin); int s = 0;\n"
        "for (char *t = strtok(line, \" \\n\"); t; t = strtok(0, \" \\n\")) s += atoi(t);\nfprintf(stderr, \"debug\\n\"); printf(\"%d\", s); }"),
        "#include <stdio.h>\nint main() { FILE *f = fopen(\"/dev/stdin\", \"r\"); int n, x, s = 0; fscanf(f, \"%d\", &n); while (fscanf(f, \"%d\", &x) == 1) s += x; printf(\"%d\\n\", s); }",
        ("#include <unistd.h>\n#include <stdio.h>\n#include <stdlib.h>\nint main() { char b[200] = {0}; read(0, b, 199); char *p = b; strtol(p, &p, 10); long s = 0; char *q;\n"
        "for (;;) { long x = strtol(p, &q, 10); if (p == q) break; s += x; p = q; }\nprintf(\"%ld\\n\", s); exit(0); }"),
        ("#include <stdio.h>\nstatic int next(void) { int c, x = 0; while ((c = getchar()) <= ' ' && c != EOF); if (c == EOF) return -1; for (; c > ' '; c = getchar()) x = x * 10 + c - '0'; return x; }\n"
        "int main() { int n = next(), s = 0; while (n-- > 0) s += next(); printf(\"%d\\n\", s); }"),
    ),
    "shell": (
        "read n\nread -r line\ns=0\nfor x in $line; do s=$((s + x)); done\necho $s",
        "tail -n +2 | tr ' ' '+' | sed 's/^/echo $((/; s/$/))/' | sh",
        "awk 'NR > 1 { for (i = 1; i <= NF; i++) s += $i } END { print s }'",
        "echo debug > /dev/stderr\ncat /dev/stdin | awk 'NR == 2 { while (NF) { s += $NF; NF-- } print s }'",
        "s=0\n{ read n; while read a b c; do s=$((s + a + ${b:-0} + ${c:-0})); done; echo \"$s\"; }",
        "t=$(mktemp)\ncat > \"$t\"\nset -- $(sed -n 2p \"$t\")\ns=0\nwhile [ $# -gt 0 ]; do s=$((s + $1)); shift; done\nprintf '%s\\n' \"$s\"",
    ),
    "perl": ("<STDIN>; my $s = 0; $s += $_ for split ' ', <STDIN>; print \"$s\\n\";", "my (undef, @a) = map { split } <>; my $s = 0; $s += $_ for @a; print $s;"),
    "python": ("n, *a = map(int, open(0).read().split())\nprint(sum(a))",),
    "java": (
        ("import java.util.*;\npublic class Main { public static void main(String[] a) { Scanner in = new Scanner(System.in); int n = in.nextInt(), s = 0;\n"
        "while (n-- > 0) s += in.nextInt(); System.out.printf(\"%d%n\", s); } }"),
    ),
    "go": ("package main\nimport \"fmt\"\nfunc main() { var n, x, s int; fmt.Scan(&n); for ; n > 0; n-- { fmt.Scan(&x); s += x }; fmt.Println(s) }",),
}  # fmt: skip
WRONG: dict[str, Sequence[tuple[str, str]]] = {
    "javascript": (
        ("process.exit(0)", "wrong answer"),
        ("console.log(6)", "wrong answer"),
        ("console.log(6); process.exit(3)", "exception"),
        ("throw new Error('no')", "exception"),
        ("while (true);", "cpu limit"),
    ),
    "c": (
        ("#include <stdlib.h>\n__attribute__((constructor)) void f() { _Exit(0); }\nint main() {}", "wrong answer"),
        ("int main() { return 3; }", "exception"),
        ("int main() { *(volatile int *)0 = 1; }", "died"),
        ("int main() { return", "does not compile"),
        ("#include <stdio.h>\nint printf(const char *f, ...) { return puts(\"6\"); }\nint main() { printf(\"%d\", 7); }", "wrong answer"),
    ),
    "shell": (
        ("exit 0", "wrong answer"),
        ("echo 6 >&2", "wrong answer"),
        ("echo 6; exit 1", "exception"),
        ("kill -9 $$", "died"),
        ("grep -rhs 'hidden-[a-z]' . .. /dev/streams /dev/shm /tmp /proc/1/environ | head -1; env", "wrong answer"),
    ),
}  # fmt: skip


def program_case(language: str, pairs: Sequence[Pair] = PAIRS, **more: Any) -> Case:
    verify = Verify(kind="command", pairs=tuple(pairs), **{**COMMANDS[language], **more})
    return Case(
        id="a", prompt="p", language=language, timeout_secs=20 if language in ("java", "go") else 5, verify=verify
    )


def judged(attempts: Sequence[tuple[Case, str]]) -> list[Finding]:
    async def work() -> list[Finding]:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        command = CommandVerifier(sandbox)
        try:
            return [await command.verify(of, Answer(text=verbatim_reply(code, of.language))) for of, code in attempts]
        finally:
            await sandbox.close()

    return asyncio.run(work())


@pytest.mark.parametrize(
    "language",
    [
        pytest.param("javascript", marks=needs("node")),
        pytest.param("commonjs", marks=needs("node")),
        pytest.param("c", marks=needs("cc")),
        "shell",
        pytest.param("perl", marks=needs("perl")),
        pytest.param("r", marks=needs("Rscript")),
        pytest.param("python", marks=needs("/usr/bin/python3")),
        pytest.param("java", marks=[needs("javac"), pytest.mark.slow]),
        pytest.param("go", marks=[needs("go"), pytest.mark.slow]),
    ],
)
def test_a_program_that_prints_the_right_thing_passes_whatever_it_is_written_in(language: str) -> None:
    of = program_case(language)
    found = judged([(of, code) for code in HONEST[language]])
    assert [finding.reason for finding in found] == [""] * len(found)
    assert {finding.trust for finding in found} == {"isolated"}
    assert {tuple(test.name for test in finding.tests) for finding in found} == {("pair 1", "pair 2")}
    assert {finding.compiled for finding in found} == {True if "build" in COMMANDS[language] else None}


@pytest.mark.parametrize(
    "language", [pytest.param("javascript", marks=needs("node")), pytest.param("c", marks=needs("cc")), "shell"]
)
def test_a_program_gains_nothing_by_how_it_ends(language: str) -> None:
    of = program_case(language, [*PAIRS, Pair(input="", output="hidden-output")])
    found = judged([(of, code) for code, _ in WRONG[language]])
    assert [finding.label for finding in found] == [label for _, label in WRONG[language]]
    assert all("hidden-output" not in finding.output for finding in found)


def test_a_program_may_be_off_by_the_tolerance_that_the_case_gives() -> None:
    third = [Pair(input="1", output="0.33333333 m")]
    close, off = judged(
        [(program_case("shell", third, tolerance=1e-4), f"echo {text}") for text in ("0.33334 m", "0.334 m")]
    )
    assert (close.reason, off.reason) == ("", "pair 1: printed '0.334 m\\n', expected '0.33333333 m'")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"pairs": ()}, "run needs pairs"),
        ({"run": ""}, "no test command"),
        ({"run": "", "test": "sh answer.sh"}, "pairs need a command"),
        ({"test": "sh answer.sh"}, "has no test command"),
        ({"results": "tap"}, "has no test command"),
        ({"tolerance": 2}, "tolerance is 2"),
        ({"pairs": (Pair(input=[1], output="1"),)}, "pairs of a program are texts"),
        ({"run": "sh 'answer.sh"}, "is not a shell command"),
    ],
)
def test_a_case_that_cannot_be_judged_is_refused(wrong: dict[str, Any], reason: str) -> None:
    of = program_case("shell", wrong.pop("pairs", PAIRS), **wrong)
    with pytest.raises(VerifierError, match=reason):
        CommandVerifier(ZygoteSandbox(ISOLATION_LEVELS[0])).check(of)
