"""Cases in JSON, well-formed and hostile."""

from __future__ import annotations

import gzip
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.errors import InputError, Problem
from steelyard.evalsets import jsonl, load
from steelyard.records import Case, Message

if TYPE_CHECKING:
    from pathlib import Path

CHECK = "def check(candidate):\n    assert candidate(1) == 2\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cases.jsonl"


def case(file: Path, **table: Any) -> Case:
    file.write_text(json.dumps({"id": "a", "prompt": "p"} | table))
    (only,) = load([file]).cases
    return only


def wrong(file: Path, content: bytes) -> list[Problem]:
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load([file])
    return list(caught.value.problems)


def wrong_case(file: Path, **table: Any) -> str:
    (problem,) = wrong(file, json.dumps({"id": "a", "prompt": "p"} | table).encode())
    return problem.what


@pytest.mark.parametrize("name", ["id", "task_id", "case_id"])
@pytest.mark.parametrize("prompt", ["prompt", "input", "question"])
@pytest.mark.parametrize("target", ["target", "expected", "ideal", "expected_response"])
def test_every_dialect_says_the_same(file: Path, name: str, prompt: str, target: str) -> None:
    file.write_text(json.dumps({name: "HumanEval/0", prompt: "p", target: "t"}))
    loaded = load([file])
    (one,) = loaded.cases
    assert (one.id, one.prompt, one.target, one.kind) == ("HumanEval/0", "p", "t", "response")
    assert loaded.problems == ()


def test_messages_are_a_conversation(file: Path) -> None:
    file.write_text('{"id": 7, "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]}')
    (one,) = load([file]).cases
    assert one.id == "7"
    assert one.messages == (Message(role="system", content="s"), Message(role="user", content="u"))


def test_a_humaneval_problem_is_a_python_case_whose_reference_stands_alone(file: Path) -> None:
    problem = {
        "task_id": "test/0",
        "prompt": "def more(x):\n",
        "canonical_solution": "    return x + 1\n",
        "test": CHECK,
        "entry_point": "more",
    }
    file.write_text(json.dumps(problem))
    (one,) = load([file]).cases
    assert (one.kind, one.language, one.verify.style, one.verify.entry_point) == ("python", "python", "check", "more")
    assert one.tests == CHECK
    assert one.reference == "def more(x):\n    return x + 1\n"


def test_a_whole_canonical_solution_is_left_as_it_is(file: Path) -> None:
    whole = "def more(x):\n    return x + 1\n"
    asked = case(file, prompt="Write `more`.", canonical_solution=whole, test=CHECK, entry_point="more")
    headed = case(file, prompt="def more(x):\n", canonical_solution=whole, test=CHECK, entry_point="more")
    assert asked.reference == headed.reference == whole


def test_tests_alone_are_run_by_the_verifier_of_the_language(file: Path) -> None:
    assert case(file, tests="assert f() == 1").kind == "python"
    assert case(file, test="mod tests {}", language="rust").kind == "rust"
    assert case(file, expectations={"test_file": "assert f()"}).kind == "python"


def test_tests_without_check_are_asserts_even_with_an_entry_point(file: Path) -> None:
    assert case(file, test="assert f() == 1", entry_point="f").verify.style == "asserts"


def test_tests_come_before_expectations_and_these_before_a_target(file: Path) -> None:
    expect = {"type": "json", "schema": {}}
    assert case(file, test=CHECK, entry_point="f", expect=expect, target="t").kind == "python"
    assert case(file, expect=expect, target="t").verify.expect == expect


def test_what_is_expected_of_a_response_is_part_of_its_tests(file: Path) -> None:
    one = case(file, family="json", expect={"type": "csv", "columns": ["a"]})
    other = case(file, family="json", expect={"type": "csv", "columns": ["b"]})
    assert (one.kind, one.suite, one.verify.expect) == ("response", "json", {"type": "csv", "columns": ["a"]})
    assert one.tests_digest != other.tests_digest


def test_a_suite_of_responses_loads_without_warnings(file: Path) -> None:
    suite = {"case_id": "c", "suite_id": "s", "prompt": "Hi {{name}}", "prompt_vars": {"name": "Ada"}}
    file.write_text(
        json.dumps(suite | {"expected_response": "^Hel+o", "expected_classification": "fail", "tags": ["x"]})
    )
    loaded = load([file])
    (one,) = loaded.cases
    assert (one.prompt, one.suite, one.target, one.tags) == ("Hi Ada", "s", "^Hel+o", ("x",))
    assert (one.kind, one.verify.style) == ("response", "regex")
    assert (one.expected_classification, one.metadata) == ("fail", {})
    assert loaded.problems == ()


def test_native_fields_are_read_too(file: Path) -> None:
    (file.parent / "checks.py").write_text("def score(text): return True\n")
    one = case(file, weight=2, group="g", critical=True, metadata={"k": 1}, verify={"python": "checks.py:score"})
    assert (one.weight, one.group, one.critical, one.metadata, one.kind) == (2, "g", True, {"k": 1}, "function")


def test_file_addresses_in_hostile_prompts_are_only_text(file: Path) -> None:
    assert case(file, prompt="file:///etc/passwd").prompt == "file:///etc/passwd"


def test_null_is_as_good_as_absent(file: Path) -> None:
    assert case(file, target=None, tags=None, max_tokens=None) == Case(
        id="a", prompt="p", follows_reference=True, verify=Case(id="", prompt="").verify
    )


def test_an_unknown_key_is_a_warning_and_its_value_is_kept(file: Path) -> None:
    file.write_text('\n{"id": "a", "prompt": "p", "targt": "t"}\n{"id": "b", "prompt": "p", "targt": "u"}\n')
    loaded = load([file])
    (warning,) = loaded.problems
    assert (warning.where, warning.line, warning.fatal) == (str(file), 2, False)
    assert 'did you mean "target"?' in warning.what
    assert warning.what.endswith("1 more in this file")
    assert [one.metadata for one in loaded.cases] == [{"targt": "t"}, {"targt": "u"}]


def test_twenty_thousand_different_unknown_keys_are_counted_not_shown(file: Path) -> None:
    file.write_text("\n".join(f'{{"id": "{n}", "prompt": "p", "key{n}": 1}}' for n in range(20_000)))
    started = time.process_time()
    loaded = load([file])
    assert time.process_time() - started < 5
    assert len(loaded.cases) == 20_000
    assert loaded.problems[-1].what == "19900 further unknown keys are not shown"
    assert len(loaded.problems) == 101


def test_two_words_for_one_thing_must_agree(file: Path) -> None:
    assert case(file, task_id="a").id == "a"
    assert wrong_case(file, task_id="b") == '"id" and "task_id" mean the same but differ; keep one of them'
    assert '"prompt" and "messages"' in wrong_case(file, messages=[])
    assert '"tests" and "verify.tests"' in wrong_case(file, test="x", verify={"tests": "y"})


def test_wrong_types_are_named_in_the_words_of_the_file(file: Path) -> None:
    assert wrong_case(file, expected=["x"]) == 'case "a": expected: expected text, got a list'
    assert wrong_case(file, test=[1]) == 'case "a": test: expected text, got a list'
    assert wrong_case(file, expect="x") == 'case "a": expect: expected a table, got text'
    expected = 'case "a": expected_classification: unknown value "maybe" (known: fail, pass)'
    assert wrong_case(file, target="t", expected_classification="maybe") == expected
    problems = wrong(file, b'{"tags": []}')
    assert problems[0].what == "a case: id (or task_id, case_id) is missing"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b'{"id": "a", "prompt": "p"} {"id": "b", "prompt": "p"}', "column 28: a second value after the first"),
        (b'{"id": "a", "prompt": "p"}{"id": "b", "prompt": "p"}', "column 27: a second value after the first"),
        (b'"{\\"id\\": \\"a\\"}"', "column 1: a string that contains JSON"),
        (b'[{"id": "a", "prompt": "p"}]', "column 1: no JSON object"),
        (b"null", "column 1: no JSON object"),
        (b'{"id": "\xc3\xa4", "weight": NaN}', "column 23: NaN and Infinity are not JSON"),
        (b'{"id": "a", "weight": -Infinity}', "NaN and Infinity are not JSON"),
        (b'{"id": "a", "pro', "column 17: Input data was truncated"),
        (b'{"id": "\xff"}', "column 9: not UTF-8"),
        (b"\0\0\0", "column 1: "),
        (b"[" * 1_000_000, "nested too deeply"),
        (b'{"metadata": ' * 100_000, "nested too deeply"),
        (b'{"id": "a", "weight": 1e999}', "out of range"),
        (
            b'{"id": "a", "prompt": "p", "metadata": ' + b'{"a":' * 400 + b"1" + b"}" * 401,
            "nested more than 100 levels deep",
        ),
    ],
)
def test_a_broken_line_is_an_error_with_line_and_column(file: Path, line: bytes, what: str) -> None:
    (problem,) = wrong(file, b'\n{"id": "0", "prompt": "p"}\n' + line + b'\n\n{"id": "z", "prompt": "p"}\n')
    assert problem.line == 3
    assert what in problem.what
    assert len(problem.what) < 300


def test_a_line_that_is_too_long_is_refused_and_the_rest_is_still_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "MAX_CASE_LINE_BYTES", 100)
    long = b'{"id": "a", "prompt": "' + b"x" * 1000 + b'"}\n'
    problems = wrong(file, long + b"{\n")
    assert [problem.line for problem in problems] == [1, 2]
    assert "a line of more than" in problems[0].what


def test_packed_cases_are_the_same_cases_with_the_same_digest(tmp_path: Path) -> None:
    content = b'{"id": "a", "prompt": "p"}\n'
    (tmp_path / "plain.jsonl").write_bytes(content)
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(content))
    plain, packed = load([tmp_path / "plain.jsonl"]), load([tmp_path / "packed.jsonl.gz"])
    assert plain.cases == packed.cases
    assert plain.files[0].digest == packed.files[0].digest


def test_a_truncated_archive_is_an_error_with_the_line_it_ends_at(tmp_path: Path) -> None:
    lines = b"".join(b'{"id": "%d", "prompt": "p%d"}\n' % (number, number * 7919) for number in range(1000))
    packed = gzip.compress(lines)
    (problem,) = wrong(tmp_path / "c.jsonl.gz", packed[: len(packed) // 2])
    assert problem.line > 100
    assert "cannot be read from this line on" in problem.what


def test_a_file_that_is_no_archive_is_an_error(tmp_path: Path) -> None:
    (problem,) = wrong(tmp_path / "c.jsonl.gz", b'{"id": "a"}')
    assert "Not a gzipped file" in problem.what


def test_an_archive_cannot_unpack_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_UNPACKED_CASES_BYTES", 1 << 20)
    (problem,) = wrong(tmp_path / "c.jsonl.gz", gzip.compress(b"\n" * (64 << 20)))
    assert problem.line == (1 << 20) + 1


def test_a_line_without_end_cannot_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_CASE_LINE_BYTES", 1 << 20)
    monkeypatch.setattr(jsonl, "MAX_UNPACKED_CASES_BYTES", 4 << 20)
    problems = wrong(tmp_path / "c.jsonl.gz", gzip.compress(b"x" * (64 << 20)))
    assert "a line of more than 1 MB" in problems[0].what


def test_a_json_list_of_cases_is_read_and_its_lines_are_known(tmp_path: Path) -> None:
    listed = tmp_path / "cases.json"
    listed.write_text('\n[\n  {"id": "a",\n   "prompt": "p"},\n\n  {"id": "b", "prompt": "p", "colour": 1}]\n')
    loaded = load([listed])
    assert [one.id for one in loaded.cases] == ["a", "b"]
    assert loaded.problems[0].line == 6
    assert wrong(listed, b'[\n[["x"]],\n {"id": 1.5, "prompt": "p"}]')[1].line == 3
    assert wrong(listed, b'[\n {"id": "a"}\n {}]')[0][1:3] == (3, "column 2: JSON is malformed: expected ',' or ']'")
    assert "not a list of cases" in wrong(listed, b'{"id": "a"}')[0].what
    assert "no cases in this file" in wrong(listed, b"[]")[0].what


@pytest.mark.parametrize("content", [b"", b"\n \n\n", b"\xef\xbb\xbf"])
def test_a_file_without_cases_is_an_error(file: Path, content: bytes) -> None:
    assert "no cases in this file" in wrong(file, content)[0].what


def test_a_byte_order_mark_does_no_harm(file: Path) -> None:
    file.write_bytes(b'\xef\xbb\xbf{"id": "a", "prompt": "p"}\r\n')
    assert load([file]).cases[0].id == "a"


def test_a_folder_without_toml_means_its_jsonl(file: Path) -> None:
    case(file)
    assert [one.id for one in load([file.parent]).cases] == ["a"]


def test_a_hundred_thousand_broken_lines_make_a_hundred_problems(file: Path) -> None:
    problems = wrong(file, b"{\n" * 100_000)
    assert len(problems) == 101
    assert problems[-1].line == 100


def test_the_same_id_twice_names_both_lines(file: Path) -> None:
    (problem,) = wrong(file, b'{"id": "a", "prompt": "p"}\n{"id": "a", "prompt": "q"}\n')
    assert problem.line == 2
    assert f"{file}:1" in problem.what


def test_no_message_carries_control_characters(file: Path) -> None:
    table = {"id": "\x1b[2J", "prompt": 3, "\x1b]0;x\x07": 1}
    problems = wrong(file, json.dumps(table).encode())
    assert all(str(problem).isprintable() for problem in problems)
    assert len(problems) == 3
