"""Problems of MultiPL-E as cases."""

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
from support.toolchains import unavailable

PROMPTS = {
    "py": 'def strlen(string: str) -> int:\n    """ Length. """\n',
    "js": "//Length.\nfunction strlen(string){\n",
    "cpp": "#include<assert.h>\n#include<string>\nlong string_length(std::string string) {\n",
}
TESTS = {
    "py": "def check(candidate):\n    assert candidate('') == 0\n    assert candidate('abc') == 3\n\ndef test_check():\n    check(strlen)\n\ntest_check()\n",
    "js": "const assert = require('node:assert');\nfunction test() {\n  let candidate = strlen;\n  assert.deepEqual(candidate(\"abc\"),3);\n}\ntest();",
    "cpp": '}\nint main() {\n    auto candidate = string_length;\n    assert(candidate(("abc")) == (3));\n}\n',
}
RIGHT = {
    "py": "def strlen(string):\n    return len(string)\n",
    "js": "function strlen(string){ return string.length; }\n",
    "cpp": "#include<assert.h>\n#include<string>\nlong string_length(std::string string) { return string.length(); }\n",
}
PROGRAMS = {"py": "python3", "js": "node", "cpp": "c++"}


def loaded(folder: Path, language: str, **changed: Any) -> Case:
    row = {"name": "HumanEval_23_strlen", "language": language, "stop_tokens": ["\n}"], "doctests": "transform"}
    row |= {"prompt": PROMPTS.get(language, "x"), "tests": TESTS.get(language, "x")}
    (folder / "rows.jsonl").write_text(json.dumps({**row, **changed}))
    (case,) = load([folder / "rows.jsonl"]).cases
    return case


@pytest.mark.parametrize("language", ["py", "js", "cpp"])
def test_a_right_answer_passes_and_a_wrong_one_fails(tmp_path: Path, language: str) -> None:
    if shutil.which(PROGRAMS[language]) is None:
        unavailable(f"{PROGRAMS[language]} is not installed")
    case = loaded(tmp_path, language)
    fenced = f"```{language}\n{RIGHT[language]}```"
    wrong = fenced.replace("return ", "return 1 + ")
    checked = check_references([msgspec.structs.replace(case, reference=fenced, counterexample=wrong)])
    assert [problem for problem in checked.problems if problem.fatal] == []


def test_a_language_that_is_not_run_here_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the language hs of MultiPL-E is not run here; py, cpp, js"):
        loaded(tmp_path, "hs")
    with pytest.raises(InputError, match=r"call no check\(FUNCTION\)"):
        loaded(tmp_path, "py", tests="x")
