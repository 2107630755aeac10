"""Problems of the code benchmarks people have, as cases that prove themselves."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

import steelyard
from steelyard import Means
from steelyard.engine.preflight.references import check_references
from steelyard.errors import InputError
from steelyard.evalsets import load
from steelyard.records import Case, Dependency
from steelyard.verifiers.code.join_stub import code_from_reply
from support.facts import facts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STUB = 'from typing import List\n\n\ndef total(numbers: List[int]) -> int:\n    """ Their sum. """\n'
HUMAN_EVAL = {
    "task_id": "HumanEval/7",
    "prompt": STUB,
    "entry_point": "total",
    "canonical_solution": "    return sum(numbers)\n",
    "test": "METADATA = {}\n\n\ndef check(candidate):\n    assert candidate([1, 2]) == 3\n",
}
EVALPLUS = {
    **HUMAN_EVAL,
    "contract": '\n    assert isinstance(numbers, list), "invalid inputs" # $_CONTRACT_$\n',
    "base_input": [[[1, 2]], [[]]],
    "plus_input": [[[10**30, 1]], [[-5, 5]]],
    "atol": 0,
}
MBPP = {
    "task_id": 602,
    "text": "Write a function to add two numbers.",
    "code": "import math\r\ndef helper(a):\r\n  return a\r\ndef add(a, b):\r\n  return helper(a) + b",
    "test_list": ["assert add(1, 2) == 3", "assert math.isclose(add(0.5, BASE), 0.5)"],
    "test_setup_code": "BASE = 0",
    "challenge_test_list": ["assert add('a', 'b') == 'ab'"],
}
RUST = {
    "task_id": "Rust/0",
    "prompt": "\n/*\n Double a number.\n*/\n",
    "declaration": "\nuse std::cmp::max;\nuse rand::Rng;\nuse regex::Regex;\nuse md5;\n\nfn double(x: i32) -> i32 {\n",
    "canonical_solution": "    x * 2\n}\n",
    "test": "\n#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn doubles() { assert_eq!(double(2), 4); }\n}\n",
    "example_test": None,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "problems.jsonl"


def loaded(file: Path, *problems: dict[str, Any]) -> Sequence[Case]:
    """The cases of these problems; none of their keys is unknown."""
    file.write_text("".join(json.dumps(problem) + "\n" for problem in problems))
    found = load([file])
    assert found.problems == ()
    return found.cases


def case(file: Path, problem: dict[str, Any], **changed: Any) -> Case:
    (only,) = loaded(file, {**problem, **changed})
    return only


def wrong(file: Path, problem: dict[str, Any], **changed: Any) -> str:
    file.write_text(json.dumps({key: value for key, value in {**problem, **changed}.items() if value != "absent"}))
    with pytest.raises(InputError) as caught:
        load([file])
    return caught.value.problems[0].what


def verdicts(folder: Path, cases: Sequence[Case], *texts: str) -> list[bool]:
    """Whether each text, as the reply of a chat model to the first case, is correct."""
    lines = [{"case_id": cases[0].id, "raw_response": text} for text in texts]
    recording = folder / "replies.jsonl"
    recording.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = steelyard.run(cases, models=f"replay:{recording}", output=folder / "run", means=Means(environment={}))
    found = sorted(facts(done.folder).verdicts, key=lambda verdict: verdict.number)
    return [all(test.outcome == "passed" for test in verdict.found.tests) for verdict in found]


# HumanEval


def test_a_chat_model_is_asked_for_the_whole_function_and_shown_the_stub_in_a_fence(file: Path) -> None:
    prompt = case(file, HUMAN_EVAL).prompt
    assert isinstance(prompt, str)
    assert prompt.startswith("Complete this Python function. Answer with one code block that holds the whole function")
    assert f"```python\n{STUB.strip()}\n```" in prompt


def test_a_stub_with_a_fence_in_it_is_shown_in_a_longer_one(file: Path) -> None:
    prompt = case(
        file, HUMAN_EVAL, prompt='def total(numbers):\n    """\n    ```\n    total([])\n    ```\n    """\n'
    ).prompt
    assert str(prompt).count("````") == 2


def test_a_human_eval_case_keeps_its_stub_and_proves_its_solution(file: Path) -> None:
    one = case(file, HUMAN_EVAL)
    assert (one.id, one.kind, one.verify.style, one.verify.entry_point) == ("HumanEval/7", "python", "check", "total")
    assert one.verify.stub == STUB
    assert one.timeout_secs == 10
    assert check_references([one]) == (1, [])


def test_what_the_line_says_itself_counts(file: Path) -> None:
    one = case(file, HUMAN_EVAL, timeout_secs=3, tags=["easy"], metadata={"author": "me"})
    assert (one.timeout_secs, one.tags, one.metadata) == (3, ("easy",), {"author": "me"})


def test_a_prompt_in_words_is_asked_as_it_is(file: Path) -> None:
    one = case(
        file, HUMAN_EVAL, prompt="Write total(numbers).", canonical_solution="def total(n):\n    return sum(n)\n"
    )
    assert (one.prompt, one.verify.stub) == ("Write total(numbers).", None)


def test_a_key_no_benchmark_has_is_still_warned_of(file: Path) -> None:
    file.write_text(json.dumps({**HUMAN_EVAL, "entrypoint": "total"}))
    (warning,) = load([file]).problems
    assert 'unknown key "entrypoint"' in warning.what


def test_packed_problems_are_the_same_cases(file: Path, tmp_path: Path) -> None:
    one = case(file, HUMAN_EVAL)
    packed = tmp_path / "problems.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert load([packed]).cases == (one,)


# EvalPlus


def test_base_and_plus_inputs_are_two_tests_against_the_reference(file: Path, tmp_path: Path) -> None:
    one = case(file, EVALPLUS)
    assert check_references([one]) == (1, [])
    only_base = "```python\ndef total(numbers):\n    return 3 if numbers == [1, 2] else 0\n```"
    assert verdicts(tmp_path, (one,), only_base) == [False]
    (verdict,) = facts(tmp_path / "run").verdicts
    assert [(test.name, test.outcome) for test in verdict.found.tests] == [
        ("test_base", "passed"),
        ("test_plus", "failed"),
    ]


def test_a_contract_is_neither_asked_nor_tested(file: Path) -> None:
    with_contract, without = case(file, EVALPLUS), case(file, EVALPLUS, contract="")
    assert with_contract == without


def test_tasks_without_plus_inputs_have_one_test(file: Path) -> None:
    empty: tuple[Any, ...] = ([], {}, None)
    for none in empty:
        one = case(file, EVALPLUS, plus_input=none)
        assert "def test_base" in one.tests
        assert "def test_plus" not in one.tests


def test_inputs_beyond_json_are_read(file: Path, tmp_path: Path) -> None:
    one = case(file, EVALPLUS, base_input=[[[float("inf"), 1.0]], [[10**400]]], plus_input=[])
    right = "```python\ndef total(numbers):\n    return sum(numbers)\n```"
    assert verdicts(tmp_path, (one,), right, right.replace("sum", "len")) == [True, False]


@pytest.mark.parametrize(
    ("atol", "result", "is_right"),
    [
        (0, "0.1 + 0.2", True),
        (0, "0.3 + 1e-5", False),
        (1e-4, "0.3 + 1e-5", True),
        (1e-4, "'0.3'", False),
        (0, "[0.1 + 0.2]", False),
        (0, "None", False),
    ],
)
def test_floats_may_differ_by_the_tolerance_and_other_results_not_at_all(
    file: Path, tmp_path: Path, atol: float, result: str, is_right: bool
) -> None:
    one = case(file, EVALPLUS, canonical_solution="    return 0.3\n", atol=atol, base_input=[[[]]], plus_input=[])
    assert verdicts(tmp_path, (one,), f"```python\ndef total(numbers):\n    return {result}\n```") == [is_right]


def test_nested_floats_are_compared_one_by_one(file: Path, tmp_path: Path) -> None:
    solution = "    return [[0.3, 1], (float('inf'), 2.0)]\n"
    one = case(file, EVALPLUS, canonical_solution=solution, atol=1e-6, base_input=[[[]]], plus_input=[])
    replies = [
        f"```python\ndef total(numbers):\n    return {result}\n```"
        for result in (
            "[[0.1 + 0.2, 1], (float('inf'), 2.0)]",
            "[[0.1 + 0.2, 1], (1e300, 2.0)]",
            "[[0.1 + 0.2, 1], (float('inf'),)]",
            "([0.1 + 0.2, 1], (float('inf'), 2.0))",
        )
    ]
    assert verdicts(tmp_path, (one,), *replies) == [True, False, False, False]


def test_an_answer_that_spoils_its_arguments_spoils_only_its_own(file: Path, tmp_path: Path) -> None:
    one = case(file, EVALPLUS)
    assert verdicts(tmp_path, (one,), "```python\ndef total(n):\n    s = sum(n)\n    n.clear()\n    return s\n```") == [
        True
    ]


def test_mbpp_plus_knows_what_json_made_of_tuples_and_which_lists_have_no_order(file: Path, tmp_path: Path) -> None:
    problem = {
        "task_id": "Mbpp/2",
        "prompt": '"""\nWrite a function to find the shared elements of two tuples.\nassert set(similar_elements((1,), (1,))) == {1}\n"""\n',
        "entry_point": "similar_elements",
        "canonical_solution": "\ndef similar_elements(a, b):\n  assert type(a) is tuple\n  return tuple(set(a) & set(b))\n",
        "contract": "",
        "assertion": "\nassert set(similar_elements((1,), (1,))) == {1}\n",
        "base_input": [[[3, 4, 5, 6], [5, 7, 4, 10]]],
        "plus_input": [[[], []]],
        "atol": 0,
    }
    one = case(file, problem)
    assert "whole program" in str(one.prompt)
    assert check_references([one]) == (1, [])
    other_order = "```python\ndef similar_elements(a, b):\n    return sorted({*a} & {*b}, reverse=True)\n```"
    assert verdicts(tmp_path, (one,), other_order, other_order.replace("&", "|")) == [True, False]


def test_any_zero_of_a_polynomial_will_do(file: Path, tmp_path: Path) -> None:
    stub = "def poly(xs, x):\n    return sum(c * x**i for i, c in enumerate(xs))\n\n\ndef find_zero(xs):\n"
    problem = {**EVALPLUS, "prompt": stub, "entry_point": "find_zero", "canonical_solution": "    return 1.0\n"}
    one = case(file, problem, base_input=[[[-1, 0, 1]]], plus_input=[], atol=1e-4)
    reply = "```python\ndef find_zero(xs):\n    return -1.0\n```"
    assert verdicts(tmp_path, (one,), reply, reply.replace("-1.0", "0.99")) == [True, False]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"base_input": [], "plus_input": []}, "nothing would be tested"),
        ({"base_input": [1]}, "base_input is not a list of lists of arguments"),
        ({"canonical_solution": "absent"}, "reference is missing"),
        ({"atol": "small"}, "atol is not a number"),
        ({"entry_point": "f(); import os"}, "entry_point is not the name"),
    ],
)
def test_half_a_problem_is_an_error_that_says_what_it_lacks(file: Path, changed: dict[str, Any], what: str) -> None:
    message = wrong(file, EVALPLUS, **changed)
    assert message.startswith('case "HumanEval/7": ')
    assert what in message


# MBPP


def test_mbpp_is_asked_as_in_the_paper_and_proves_its_code(file: Path) -> None:
    one = case(file, MBPP)
    assert (one.id, one.language, one.verify.style, one.verify.entry_point) == ("602", "python", "asserts", "add")
    assert str(one.prompt).startswith(
        "You are an expert Python programmer, and here is your task: Write a function to add two numbers. "
        "Your code should pass these tests:\n\nassert add(1, 2) == 3\n"
    )
    assert "'ab'" not in one.tests
    assert check_references([one]) == (1, [])


def test_the_sanitized_file_is_a_list_with_other_names(tmp_path: Path) -> None:
    problem = {
        "source_file": "x.ipynb",
        "task_id": 2,
        "prompt": "Write a function to add.",
        "code": "def add(a, b):\n  return a + b",
        "test_imports": ["import math"],
        "test_list": ["assert math.isclose(add(1, 2), 3)"],
    }
    (tmp_path / "sanitized-mbpp.json").write_text(json.dumps([problem]))
    found = load([tmp_path / "sanitized-mbpp.json"])
    assert found.problems == ()
    assert check_references(found.cases) == (1, [])


def test_an_mbpp_sample_stands_alone(file: Path, tmp_path: Path) -> None:
    cases = loaded(file, MBPP)
    samples = tmp_path / "samples.jsonl"
    right = "import math\ndef add(a, b):\n    return a + b\n"
    lines = [{"task_id": 602, "completion": right}, {"task_id": "602", "solution": right.replace("+", "-")}]
    samples.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = steelyard.run(cases, models=f"replay:{samples}", output=tmp_path / "run", means=Means(environment={}))
    assert (done.summary.models[0].correct, done.summary.models[0].attempts) == (1, 2)


@pytest.mark.parametrize("tests", [[], "assert add(1, 2) == 3", [1]])
def test_an_mbpp_line_without_asserts_is_an_error(file: Path, tests: Any) -> None:
    assert "test_list is " in wrong(file, MBPP, test_list=tests)


# HumanEval in Rust


def test_rust_problems_keep_only_the_crates_they_use(file: Path) -> None:
    one = case(file, RUST)
    assert (one.language, one.kind, one.verify.entry_point, one.dependencies) == ("rust", "rust", "double", ())
    assert one.verify.stub == "\nuse std::cmp::max;\n\nfn double(x: i32) -> i32 {\n"
    assert one.reference == one.verify.stub + "    x * 2\n}\n"
    assert one.tests == RUST["test"]
    hashed = case(file, RUST, canonical_solution='    md5::compute("x");\n    x * 2\n}\n')
    assert hashed.dependencies == (Dependency(name="md5", version="0.7"),)
    assert "use md5;" in str(hashed.verify.stub)


def test_a_rust_chat_prompt_shows_comment_and_declaration(file: Path) -> None:
    prompt = str(case(file, RUST).prompt)
    assert "```rust\n/*\n Double a number.\n*/\nuse std::cmp::max;" in prompt
    assert "no crates" in prompt


def test_rust_tests_that_are_commented_out_are_not_run(file: Path) -> None:
    assert case(file, RUST).expectations.should_pass_tests
    assert not case(file, RUST, test=f"/*{RUST['test']}*/").expectations.should_pass_tests


# HumanEvalPack and BigCodeBench

BIG_CODE_BENCH = {
    "task_id": "BigCodeBench/3",
    "complete_prompt": "LIMIT = 1\n" + STUB.replace("total", "task_func"),
    "instruct_prompt": "Write a function.",
    "code_prompt": "from typing import List\n\ndef task_func(numbers):\n",
    "canonical_solution": "    return sum(numbers)\n",
    "test": "class TestCases(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(task_func([LIMIT, 2]), 3)\n",
    "entry_point": "task_func",
    "doc_struct": "{}",
    "libs": "['typing']",
}
PACK = {
    "bug_type": "operator misuse",
    "signature": "total(numbers)",
    "docstring": "Their sum.",
    "instruction": "Write it.",
}


def test_what_other_benchmarks_add_is_understood_and_proves_itself(file: Path) -> None:
    pack = {**PACK, "import": "", "test_setup": "", "example_test": "", "declaration": STUB, "failure_symptoms": ""}
    fixes = {**HUMAN_EVAL, **pack, "task_id": "Python/0", "buggy_solution": "    return max(numbers)\n"}
    no_bug = {**fixes, "task_id": "Python/1", "buggy_solution": "    return -(-sum(numbers))\n"}
    cases = loaded(file, fixes, no_bug, BIG_CODE_BENCH)
    assert cases[0].counterexample == STUB + "    return max(numbers)\n"
    proved, problems = check_references(cases)
    assert proved == 4
    assert [problem.where for problem in problems] == ['case "Python/1"']


LEET_CODE = {
    "task_id": "add-node",
    "prompt": "from typing import *\nfrom math import *\ninf = float('inf')\n\nclass Node:\n    def __init__(self, value):\n"
    "        self.value = value\n\ndef node(value):\n    return Node(value)\n",
    "completion": "class Solution:\n    def add(self, one: Optional[Node], more: int = 0) -> int:\n"
    "        return one.value + more if isinstance(one, Node) else more\n",
    "entry_point": "Solution().add",
    "test": "def check(candidate):\n    assert candidate(one = node(3), more = 4) == 7\n    assert candidate(one = None) == 0\n",
    "query": "Add a number to that of a node.\n```python\nclass Solution:\n    def add(self, one: Optional[Node], more: int = 0) -> int:\n```",
    "response": "Like this.",
    "input_output": [{"input": "one = None", "output": "0"}],
    "meta": {"question_id": 1, "difficulty": "Easy"},
}


def test_a_problem_of_leetcode_is_a_method_below_imports_and_classes(file: Path) -> None:
    literal = {
        **LEET_CODE,
        "task_id": "none",
        "test": "def check(candidate):\n    assert candidate(None, more = 2) == 2\n",
    }
    cases = loaded(file, LEET_CODE, literal)
    assert cases[0].messages[0].text == LEET_CODE["query"]
    assert (cases[0].metadata, cases[0].verify.style) == ({"difficulty": "Easy"}, "check")
    assert check_references(cases) == (2, [])
    # a model answers with the class alone
    assert [code_from_reply(one, f"```python\n{LEET_CODE['completion']}```").code for one in cases] == [
        f"{LEET_CODE['prompt']}{LEET_CODE['completion']}"
    ] * 2


def test_the_buggy_solution_of_a_rust_problem_is_a_counterexample(file: Path) -> None:
    one = case(file, {**RUST, **PACK}, buggy_solution="    x + 2\n}\n")
    assert one.counterexample == f"{one.verify.stub}    x + 2\n}}\n"
