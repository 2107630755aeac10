"""Problems of HumanEvalPack and HumanEval-X in JavaScript, Java, C++ and Go as cases."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from steelyard.errors import InputError


class _Language(NamedTuple):
    name: str
    fence: str
    answer: str
    tests: str
    command: str
    """Puts the program together, compiles it and runs its tests."""
    timeout_secs: int


LANGUAGES = {
    "JavaScript": _Language(
        "JavaScript", "js", "answer.js", "tests.js", "cat answer.js tests.js > program.js && node program.js", 20
    ),
    "Java": _Language("Java", "java", "Answer.java", "Tests.java", "true || javac || java; sh run.sh", 60),
    "CPP": _Language(
        "C++",
        "cpp",
        "answer.cpp",
        "tests.cpp",
        "cat includes.h answer.cpp tests.cpp > program.cpp && c++ -std=c++17 -o program program.cpp{libraries} && ./program",
        60,
    ),
    "Go": _Language("Go", "go", "answer.go", "tests.go", "true || go; sh run.sh", 120),
}
"""The languages by what the ids of their tasks begin with."""
THROWING_ASSERT = "\nconsole.assert = (holds, ...said) => { if (!holds) throw new Error(['assertion failed', ...said].join(': ')); };\n"
"""An assertion of console only prints that it does not hold."""
JAVA_SCRIPT = """\
# two classes of one file cannot both be public
sed 's/^[ \\t]*public \\(final \\)\\{0,1\\}class Solution/class Solution/' Answer.java > Solution.txt || exit 1
cat imports.txt Solution.txt Tests.java > Main.java || exit 1
home=$(dirname $(dirname $(readlink -f $(command -v javac))))
# programs of Java look for their libraries beside themselves by /proc, which a sandbox need not have
export LD_LIBRARY_PATH=$home/lib
# Debian keeps the settings of Java in /etc, which a sandbox need not show either
mkdir -p home/conf/security && ln -s "$home/lib" home/lib && echo security.provider.1=SUN > home/conf/security/java.security
export JAVA_TOOL_OPTIONS="-Djava.home=$PWD/home -Xmx256m -XX:CompressedClassSpaceSize=64m -XX:ReservedCodeCacheSize=64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
$home/bin/javac -nowarn Main.java && exec $home/bin/java -cp . Main
"""
GO_SCRIPT = """\
mkdir -p program && cp tests.go program/answer_test.go || exit 1
(grep -q '^package ' answer.go || echo 'package main'; cat answer.go) > program/answer.go
cd program || exit 1
# as Java does, go looks for its own files by /proc
export GOROOT=$(dirname $(dirname $(readlink -f $(command -v go))))
export GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$PWD/cache GOTELEMETRY=off
exec $GOROOT/bin/go test -vet=off answer.go answer_test.go
"""
"""Scripts of languages whose commands name the programs that must be there, and no more."""
JAVA_IMPORTS = "import java.util.*;\nimport java.lang.*;\n"
CPP_LIBRARIES = {"openssl/": " -lcrypto", "<thread>": " -pthread"}
DROPPED_KEYS = frozenset(
    {
        *("prompt", "declaration", "canonical_solution", "buggy_solution", "test"),
        *("import", "test_setup", "example_test", "signature", "docstring", "instruction", "entry_point", "task_id"),
    }
)
GO_IMPORT = re.compile(r'^\s*(?:import\s+)?"([\w./-]+)"[ \t]*\n', re.MULTILINE)


def human_eval_pack_table(row: dict[str, Any]) -> dict[str, Any] | None:
    """A problem in one of these languages under the names of our cases; None for any other row."""
    task = row.get("task_id")
    language = LANGUAGES.get(task.partition("/")[0]) if isinstance(task, str) else None
    if language is None or not {"prompt", "declaration", "test"} <= row.keys() or "verify" in row:
        return None
    texts = {key: row.get(key, "") for key in ("prompt", "declaration", "test", "import", "test_setup")}
    solutions = {key: row[key] for key in ("canonical_solution", "buggy_solution") if row.get(key)}
    if not all(isinstance(text, str) for text in (*texts.values(), *solutions.values())):
        raise InputError("its prompt, declaration, solutions and test are not texts")
    head = texts["declaration"]
    if texts["import"].strip() and "import" not in head:
        head = f"{texts['import'].strip()}\n\n{head}"
    case = {
        "id": task,
        "language": language.fence,
        "prompt": f"Complete this {language.name} function. Answer with one code block that holds the whole "
        f"{'class' if language.fence == 'java' else 'function'}, with the imports and helpers it needs, and without tests."
        f"\n\n```{language.fence}\n{texts['prompt'].strip()}\n```\n",
        "timeout_secs": language.timeout_secs,
        "verify": _verify(language, texts, "".join((head, *solutions.values()))),
        "metadata": {key: value for key, value in row.items() if key not in DROPPED_KEYS},
    }
    for key, name in (("canonical_solution", "reference"), ("buggy_solution", "counterexample")):
        if key in solutions:
            case[name] = f"```{language.fence}\n{head}{solutions[key].rstrip()}\n```"
    return case


def _verify(language: _Language, texts: dict[str, str], program: str) -> dict[str, Any]:
    test, command = texts["test"], language.command
    files: dict[str, str] = {}
    if language.fence == "js":
        test = THROWING_ASSERT + test
    elif language.fence == "java":
        files |= {"imports.txt": JAVA_IMPORTS, "run.sh": JAVA_SCRIPT}
    elif language.fence == "cpp":
        files["includes.h"] = "".join(re.findall(r"^[ \t]*#include.*\n", texts["declaration"], re.MULTILINE))
        used = "".join(flag for header, flag in CPP_LIBRARIES.items() if header in texts["prompt"] + program)
        command = command.replace("{libraries}", used)
    else:
        files["run.sh"] = GO_SCRIPT
        test = _go_tests(texts["test_setup"] or 'package main\n\nimport (\n    "testing"\n)\n', test)
    return {
        "kind": "command",
        "answer": language.answer,
        "files": {language.tests: f"\n{test}", **files},
        "test": command,
    }


def _go_tests(setup: str, test: str) -> str:
    """The tests as a file of their own, without what only the answer imports: Go refuses an import that is not used."""

    def kept(found: re.Match[str]) -> str:
        return found[0] if re.search(rf"\b{re.escape(found[1].rpartition('/')[2])}\.", test) else ""

    return f"{GO_IMPORT.sub(kept, setup).strip()}\n\n{test}"
