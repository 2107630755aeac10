"""Problems of programming contests as cases."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest

from steelyard.engine.preflight.references import check_references
from steelyard.errors import InputError
from steelyard.evalsets import load
from steelyard.records import Case


def loaded(folder: Path, row: dict[str, Any]) -> Case:
    (folder / "rows.jsonl").write_text(json.dumps(row))
    (case,) = load([folder / "rows.jsonl"]).cases
    return case


def packed(tests: object) -> str:
    return base64.b64encode(
        zlib.compress(pickle.dumps(tests if isinstance(tests, bytes) else json.dumps(tests)))
    ).decode()


STDIN = {"input": "1 2\n", "output": "3\n", "testtype": "stdin"}
PRIVATE = {"input": "2 2\n", "output": "4\n", "testtype": "stdin"}
CALL = {"input": "[1, 2]\n3", "output": "[4, 5]", "testtype": "functional"}
STUB = "class Solution:\n    def shift(self, numbers: List[int], by: int) -> List[int]:\n        "


def live(*public: dict[str, str], private: str = "", stub: str = "", function: str = "") -> dict[str, Any]:
    metadata = json.dumps({"func_name": function} if function else {})
    row = {"question_id": "q1", "question_content": "Add.", "starter_code": stub, "metadata": metadata}
    return {**row, "public_test_cases": json.dumps(public), "private_test_cases": private}


def test_public_and_private_tests_of_livecodebench_are_pairs(tmp_path: Path) -> None:
    case = loaded(tmp_path, live(STDIN, private=packed([PRIVATE])))
    assert (case.id, case.kind, case.verify.style) == ("q1", "python", "io")
    assert [(pair.input, pair.output) for pair in case.verify.pairs] == [("1 2\n", "3\n"), ("2 2\n", "4\n")]


def test_a_pickle_of_anything_but_text_is_not_loaded(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "ran",))

    hostile = base64.b64encode(zlib.compress(pickle.dumps(Evil()))).decode()
    with pytest.raises(InputError, match="a pickle of more than text, which is not loaded"):
        loaded(tmp_path, live(STDIN, private=hostile))
    assert not (tmp_path / "ran").exists()


def test_the_references_of_each_kind_pass_and_the_wrong_answers_fail(tmp_path: Path) -> None:
    right = "class Solution:\n    def shift(self, numbers, by):\n        return [number + by for number in numbers]\n"
    program = "print(sum(map(int, input().split())))"
    tests = {"input": ["1 2\n"], "output": ["3\n"]}
    apps = {"problem_id": 7, "question": "Add.", "solutions": json.dumps([program])}
    call = {"inputs": [[[1, 2], 3]], "outputs": [[[4, 5]]], "fn_name": "shift"}
    contest = {"name": "c", "description": "Add.", "public_tests": tests, "private_tests": tests}
    rows = [
        {**live(CALL, stub=STUB, function="shift"), "question_id": "method"},
        {**apps, "input_output": json.dumps({"inputs": ["1 2\n"], "outputs": ["3\n"]})},
        {**apps, "problem_id": 8, "input_output": call, "solutions": json.dumps([right]), "starter_code": STUB},
        {**contest, "solutions": {"language": [1, 3], "solution": ["x", program]}},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    cases = [*load([tmp_path / "rows.jsonl"]).cases]
    import msgspec

    cases[0] = msgspec.structs.replace(cases[0], reference=right)
    wrong = [right.replace("+", "-"), "print(0)", right.replace("+", "-"), "print(0)"]
    both = [msgspec.structs.replace(case, counterexample=other) for case, other in zip(cases, wrong, strict=True)]
    checked = check_references(both)
    assert [case.id for case in both] == ["method", "apps-7", "apps-8", "c"]
    assert not checked.problems, checked.problems


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (live(), "no tests, neither public nor private"),
        (live(STDIN, private="x"), "cannot be unpacked"),
        (live(CALL, stub=STUB), "name of its function is missing"),
        ({"question": "q", "input_output": "{}"}, "no inputs with an output for each"),
        ({"question": "q", "input_output": "{"}, "cannot be read as JSON"),
        ({"description": "d", "public_tests": {"input": ["a"], "output": []}}, "no output for each input"),
    ],
)
def test_half_a_problem_is_refused(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        loaded(tmp_path, row)
