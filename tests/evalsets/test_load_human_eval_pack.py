"""Problems of HumanEvalPack in other languages than Python and Rust as cases."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steelyard.engine.preflight.references import check_references
from steelyard.errors import InputError
from steelyard.evalsets import load
from steelyard.records import Case
from steelyard.verifiers.command.settings import CommandSettings
from support.studies import with_slow
from support.toolchains import unavailable

ROWS: dict[str, dict[str, str]] = {
    "JavaScript": {
        "prompt": "/* The part below 1.\n  */\nconst fraction = (number) => {\n",
        "declaration": "\nconst fraction = (number) => {\n",
        "canonical_solution": "  return number % 1.0;\n}\n\n",
        "buggy_solution": "  return number % 1.0 + number;\n}\n\n",
        "test": "const testFraction = () => {\n  console.assert(fraction(3.5) === 0.5)\n}\n\ntestFraction()\n",
    },
    "Java": {
        "prompt": "import java.util.*;\nimport java.lang.*;\n\nclass Solution {\n    /** The part below 1. */\n"
        "    public double fraction(double number) {\n",
        "declaration": "import java.util.*;\nimport java.lang.*;\n\nclass Solution {\n    public double fraction(double number) {\n",
        "canonical_solution": "        return number % 1.0;\n    }\n}",
        "buggy_solution": "        return number % 1.0 + number;\n    }\n}",
        "test": "public class Main {\n    public static void main(String[] args) {\n        Solution s = new Solution();\n"
        "        List<Boolean> correct = Arrays.asList(s.fraction(3.5) == 0.5);\n"
        "        if (correct.contains(false)) {\n            throw new AssertionError();\n        }\n    }\n}\n",
    },
    "CPP": {
        "prompt": "/*\nThe part below 1.\n*/\n#include<stdio.h>\n#include<math.h>\nusing namespace std;\nfloat fraction(float number){\n",
        "declaration": "#include<stdio.h>\n#include<math.h>\nusing namespace std;\n#include<stdlib.h>\nfloat fraction(float number){\n",
        "canonical_solution": "    return number-int(number);\n}\n",
        "buggy_solution": "    return number-int(number)+number;\n}\n",
        "test": "#undef NDEBUG\n#include<assert.h>\nint main(){\n    assert (abs(fraction(3.5)-0.5)<1e-4);\n}\n",
    },
    "Go": {
        "prompt": 'import (\n    "math"\n)\n\n// The part below 1.\nfunc Fraction(number float64) float64 {\n',
        "import": 'import (\n    "math"\n)\n',
        "declaration": "func Fraction(number float64) float64 {\n",
        "canonical_solution": "    return math.Mod(number, 1)\n}\n\n",
        "buggy_solution": "    return math.Mod(number, 1) + number\n}\n\n",
        "test_setup": 'package main\n\nimport (\n    "testing"\n    "math"\n    "github.com/stretchr/testify/assert"\n)\n',
        "test": "func TestFraction(t *testing.T) {\n    assert := assert.New(t)\n    assert.Equal(0.5, Fraction(3.5))\n}\n",
    },
}
PROGRAMS = {"JavaScript": "node", "Java": "javac", "CPP": "c++", "Go": "go"}
TESTIFY = Path("/usr/share/gocode/src/github.com/stretchr/testify")


def loaded(folder: Path, language: str, **changed: Any) -> Case:
    row = {"task_id": f"{language}/2", "entry_point": "fraction", "bug_type": "excess logic", **ROWS[language]}
    (folder / "rows.jsonl").write_text(json.dumps({**row, **changed}), "utf-8")
    (case,) = load([folder / "rows.jsonl"]).cases
    return case


@pytest.mark.parametrize("language", with_slow(["JavaScript", "CPP"], ["Java", "Go"]))
def test_a_solution_passes_and_one_with_a_bug_fails(tmp_path: Path, language: str) -> None:
    if shutil.which(PROGRAMS[language]) is None or (language == "Go" and not TESTIFY.exists()):
        unavailable(f"no {PROGRAMS[language]} here")
    case = loaded(tmp_path, language)
    assert (case.id, case.metadata["bug_type"]) == (f"{language}/2", "excess logic")
    assert case.reference
    assert case.counterexample
    public = case.reference.replace("class Solution", "public class Solution")
    checked = check_references([msgspec.structs.replace(case, reference=public)])
    assert [problem for problem in checked.problems if problem.fatal] == []


def test_tests_in_go_import_what_they_use(tmp_path: Path) -> None:
    case = loaded(tmp_path, "Go")
    tests = CommandSettings.of(case).files["tests.go"]
    assert '"math"' not in tests
    assert '"testing"' in tests
    assert '"github.com/stretchr/testify/assert"' in tests
    assert case.reference.startswith('```go\nimport (\n    "math"\n)\n\n// The part below 1.\nfunc Fraction')
    ends_otherwise = loaded(tmp_path, "Go", prompt="// Write Fraction.\n")
    assert ends_otherwise.reference.startswith('```go\nimport (\n    "math"\n)\n\nfunc Fraction')


def test_helpers_that_stand_only_in_the_prompt_belong_to_the_reference(tmp_path: Path) -> None:
    helper = "float rest(float number){\n    return number-int(number);\n}\n"
    signature = "float fraction(float number) {\n"
    case = loaded(
        tmp_path,
        "CPP",
        prompt=f"#include<math.h>\n{helper}/* The part below 1. */\n{signature}",
        declaration="#include<math.h>\n#include<stdlib.h>\nfloat fraction(float number){\n",
        canonical_solution="    return rest(number);\n}\n",
        buggy_solution="    return rest(number)+number;\n}\n",
    )
    assert check_references([case]) == (2, [])


def test_libraries_are_linked_where_a_program_includes_them(tmp_path: Path) -> None:
    hashed = "#include<openssl/md5.h>\n" + ROWS["CPP"]["declaration"]
    assert "program.cpp -lcrypto &&" in CommandSettings.of(loaded(tmp_path, "CPP", declaration=hashed)).test
    assert "program.cpp && ./program" in CommandSettings.of(loaded(tmp_path, "CPP")).test


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="its prompt, declaration, solutions and test are not texts"):
        loaded(tmp_path, "Java", test=5)
