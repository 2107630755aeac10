"""What the tests of a case need and the machine lacks is missing data, never a wrong answer, and takes the passes of the case along."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

import steelyard
from evalsets.test_joined_languages import JOINED, loaded
from steelyard.engine.resume import verify_again
from steelyard.records import Case, Expectations, Verify
from support.facts import facts
from support.toolchains import unavailable

NEEDS = {
    "C++ of MultiPL-E": ("int main() {", "#include <no_such_library.h>\nint main() {"),
    "JavaScript of MultiPL-E": ("node:assert", "no-such-library"),
    "Lua": ("luaunit", "no_such_library"),
    "Perl": ("Test::Deep", "No::Such_library"),
    "R": ("test_humaneval()", "library(no.such.library)\ntest_humaneval()"),
    "Ruby": ("test/unit", "no/such/library"),
}
"""What tests load, and what they load instead."""


def run(folder: Path, case: Case, *answers: str, samples: int | None = None) -> steelyard.Run:
    """A run in which a model gives these answers to a case."""
    lines = [json.dumps({"case_id": case.id, "raw_response": f"```{case.language}\n{text}\n```"}) for text in answers]
    (folder / "samples.jsonl").write_text("\n".join(lines) + "\n")
    return steelyard.run([case], models=f"replay:{folder}/samples.jsonl", output=folder / "run", samples=samples)


@pytest.mark.parametrize("name", NEEDS)
def test_a_library_that_only_tests_load_is_named_when_it_is_missing(tmp_path: Path, name: str) -> None:
    joined = JOINED[name]
    if shutil.which(joined.tool) is None:
        unavailable(f"no {joined.tool} here")
    usual, lacking = NEEDS[name]
    assert joined.row["tests"].count(usual)
    case = loaded(tmp_path, {**joined.row, "tests": joined.row["tests"].replace(usual, lacking, 1)})
    done = run(tmp_path, case, joined.right)
    (model,) = done.summary.models
    (failure,) = facts(done.folder).failures
    assert (model.attempts, model.missing) == (0, 1), facts(done.folder).verdicts
    assert "such" in failure.message[:200].partition("a correct one fails:")[2].lower(), failure.message


def test_where_all_is_there_a_wrong_answer_is_wrong(tmp_path: Path) -> None:
    done = run(tmp_path, loaded(tmp_path, JOINED["Ruby"].row), JOINED["Ruby"].wrong(), JOINED["Ruby"].right)
    (model,) = done.summary.models
    assert (model.attempts, model.missing) == (2, 0)


def test_a_library_that_is_missing_is_named_before_the_reference_that_fails_without_it(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        unavailable("no go here")
    setup = 'package main\n\nimport (\n    "testing"\n    "example.org/no/such/assert"\n)\n'
    test = "func TestTwice(t *testing.T) {\n    assert.Equal(t, 4, Twice(2))\n}\n"
    solved = {"canonical_solution": "    return 2 * n\n}\n", "test_setup": setup, "test": test}
    case = loaded(tmp_path, {**JOINED["Go"].row, **solved})
    done = run(tmp_path, case, JOINED["Go"].right)
    (failure,) = facts(done.folder).failures
    assert 'cannot find package "example.org/no/such/assert"' in failure.message


def own_case(**verify: Any) -> Case:
    return Case(id="own", prompt="?", language="python", timeout_secs=20, verify=Verify(kind="command", **verify))


TESTED = {"answer": "answer.py", "files": {"checks.py": "from answer import twice\nassert twice(2) == 4\n"}}
RIGHT = "def twice(n):\n    return 2 * n\n"


@pytest.mark.parametrize(
    "case",
    [
        own_case(**TESTED, test="python3 -B -m no_such_runner checks.py"),
        own_case(answer="answer.py", files={"checks.py": "import no_such_library\n"}, test="python3 checks.py"),
        own_case(**TESTED, test="false", settings={"needs": "echo no_such_thing; false"}),
    ],
    ids=["runner", "import", "stated"],
)
def test_what_the_tests_of_an_own_command_lack_is_named(tmp_path: Path, case: Case) -> None:
    done = run(tmp_path, case, RIGHT)
    (model,) = done.summary.models
    assert (model.attempts, model.missing) == (0, 1)
    assert "no_such_" in facts(done.folder).failures[0].message


@pytest.mark.parametrize(
    "case",
    [
        own_case(**TESTED, test="python3 checks.py"),
        own_case(**TESTED, test="python3 -m checks"),
        own_case(**TESTED, test="cp answer.py other.py && python3 -c 'import other' && python3 checks.py"),
        own_case(**TESTED, test="python3 -m unittest checks", results="exit code", settings={"needs": "true"}),
    ],
    ids=["script", "own module", "several", "stated"],
)
def test_what_is_there_makes_a_wrong_answer_wrong(tmp_path: Path, case: Case) -> None:
    done = run(tmp_path, case, RIGHT.replace("2 *", "3 *"))
    (model,) = done.summary.models
    assert (model.attempts, model.missing, model.correct) == (1, 0, 0)


def test_a_runner_that_a_workspace_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/calc.py").write_text("def twice(n):\n    return 3 * n\n")
    verify = Verify(kind="command", test="python3 -m no_such_runner", files={"checks.py": "import calc\n"})
    case = Case(id="own", prompt="?", workspace=str(tmp_path / "project"), timeout_secs=20, verify=verify)
    patch = "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def twice(n):\n-    return 3 * n\n+    return 2 * n\n"
    lines = json.dumps({"case_id": "own", "raw_response": patch})
    (tmp_path / "samples.jsonl").write_text(f"{lines}\n")
    done = steelyard.run([case], models=f"replay:{tmp_path}/samples.jsonl", output=tmp_path / "run")
    assert [model.missing for model in done.summary.models] == [1], facts(done.folder).verdicts
    assert "no_such_runner" in facts(done.folder).failures[0].message


TESTS = Expectations(test_file="assert twice(2) == 4\nassert twice(3) == 6\n")
DIES = "import os\n\ndef twice(n):\n    os._exit(3)\n"


def python_case(reference: str) -> Case:
    return Case(id="own", prompt="?", language="python", timeout_secs=20, expectations=TESTS, reference=reference)


def counts(done: steelyard.Run) -> tuple[int, int, int]:
    """How many attempts of the only model count, are missing, and are correct."""
    (model,) = done.summary.models
    return model.attempts, model.missing, model.correct


def test_passes_of_an_earlier_session_are_missing_where_the_witness_fails_and_count_once_it_passes(
    tmp_path: Path,
) -> None:
    wrong, right = (python_case(RIGHT.replace("2 *", factor)) for factor in ("4 *", "2 *"))
    done = run(tmp_path, wrong, RIGHT, DIES, RIGHT, samples=1)
    assert counts(done) == (1, 0, 1), "nothing failed, so no witness was needed"
    assert counts(steelyard.resume(done.folder, samples=3)) == (0, 3, 0)
    assert counts(steelyard.resume(done.folder)) == (0, 3, 0), "the reference is as wrong as before"
    (tmp_path / "mended.jsonl").write_text(json.dumps(msgspec.to_builtins(right)) + "\n")
    assert counts(verify_again(done.folder, eval_sets=[tmp_path / "mended.jsonl"])) == (3, 0, 2)
    (tmp_path / "broken.jsonl").write_text(json.dumps(msgspec.to_builtins(wrong)) + "\n")
    assert counts(verify_again(done.folder, eval_sets=[tmp_path / "broken.jsonl"])) == (0, 3, 0), "older verdicts stay"
