"""Problems of programming contests as cases: LiveCodeBench, APPS and CodeContests."""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import zlib
from typing import Any

from steelyard.errors import InputError

CONTEST_LIMITS = {"timeout_secs": 60, "follows_reference": True}
MAX_TESTS_BYTES = 256 << 20
"""Bytes of the tests of one problem, unpacked."""
PLAIN_PICKLE_OPCODES = {
    *("PROTO", "FRAME", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE"),
    *("MEMOIZE", "BINPUT", "PUT", "LONG_BINPUT", "STOP"),
}
"""The opcodes in a pickle of one text; any other could run code."""
CODE_CONTESTS_PYTHON = 3
"""The number of Python 3 among the languages of CodeContests."""
STDIN_PROMPT = (
    "Solve this problem with a Python program that reads standard input and writes standard output. "
    "Answer with one Python code block that holds the whole program.\n\n{text}"
)
FUNCTION_PROMPT = (
    "Solve this problem by completing the code below. Answer with one Python code block that holds the whole code.\n\n"
    "{text}\n\n```python\n{stub}\n```\n"
)


def contest_table(row: dict[str, Any]) -> dict[str, Any] | None:
    """A problem of a contest under the names of our cases; None for any other row."""
    if "question_content" in row and "public_test_cases" in row:
        return _live_code_bench(row)
    if "input_output" in row and "question" in row:
        return _apps(row)
    if "description" in row and isinstance(row.get("public_tests"), dict):
        return _code_contests(row)
    return None


def _live_code_bench(row: dict[str, Any]) -> dict[str, Any]:
    """LiveCodeBench: public and private tests, for a program or for a method."""
    tests = [*_tests(row["public_test_cases"]), *_tests(row.get("private_test_cases") or "[]")]
    if not tests:
        raise InputError("no tests, neither public nor private")
    metadata = row.get("metadata") or {}
    if isinstance(metadata, str):
        metadata = _decoded(metadata, "metadata")
    function = metadata.get("func_name", "") if isinstance(metadata, dict) else ""
    text, stub = str(row["question_content"]), str(row.get("starter_code") or "")
    kept = {key: row[key] for key in ("question_title", "platform", "difficulty", "contest_date") if key in row}
    case = {"id": str(row.get("question_id", "")), "metadata": {key: str(value) for key, value in kept.items()}}
    if any(test.get("testtype") == "functional" for test in tests):
        calls = [([_value(line) for line in test["input"].split("\n")], _value(test["output"])) for test in tests]
        return case | _of_calls(text, stub, function, calls)
    return case | _of_programs(text, [(test["input"], test["output"]) for test in tests])


def _tests(given: Any) -> list[dict[str, Any]]:
    """The tests in a column: a list, JSON, or JSON that was pickled, packed and encoded."""
    if isinstance(given, str):
        text = given if given.lstrip().startswith("[") else _unpacked(given)
        given = _decoded(text, "the test cases")
    if not isinstance(given, list) or not all(
        isinstance(test, dict) and isinstance(test.get("input"), str) and isinstance(test.get("output"), str)
        for test in given
    ):
        raise InputError("its test cases are not a list of inputs and outputs")
    return given


def _unpacked(text: str) -> str:
    """The text in a packed pickle, which is read and never loaded: loading one can run code."""
    try:
        unpack = zlib.decompressobj()
        data = unpack.decompress(base64.b64decode(text, validate=True), MAX_TESTS_BYTES)
        if unpack.unconsumed_tail:
            raise InputError(f"its private tests take more than {MAX_TESTS_BYTES >> 20} MB")
        found = ""
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name not in PLAIN_PICKLE_OPCODES:
                raise InputError("its private tests are a pickle of more than text, which is not loaded")
            if "UNICODE" in opcode.name:
                found = str(argument)
    except (ValueError, zlib.error, binascii.Error) as error:
        raise InputError(f"its private tests cannot be unpacked: {error}") from None
    return found


def _apps(row: dict[str, Any]) -> dict[str, Any]:
    """APPS: inputs and outputs in JSON, for a program or for a function."""
    given = row["input_output"]
    tests = _decoded(given, "input_output") if isinstance(given, str) else given
    inputs, outputs = (tests.get(key) if isinstance(tests, dict) else None for key in ("inputs", "outputs"))
    if not isinstance(inputs, list) or not isinstance(outputs, list) or not inputs or len(inputs) != len(outputs):
        raise InputError("input_output has no inputs with an output for each")
    text, stub = str(row["question"]), str(row.get("starter_code") or "")
    name = row.get("problem_id", row.get("id"))
    kept = {key: str(row[key]) for key in ("difficulty", "url") if key in row}
    case: dict[str, Any] = {**({} if name is None else {"id": f"apps-{name}"}), "metadata": kept}
    if solution := _first_solution(row.get("solutions")):
        case["reference"] = solution
    function = tests.get("fn_name")
    if function:
        # a function's output is in a list of its own
        pairs = zip(inputs, outputs, strict=True)
        calls = [(given, wanted[0] if isinstance(wanted, list) and wanted else wanted) for given, wanted in pairs]
        return case | _of_calls(text, stub, str(function), calls)
    return case | _of_programs(text, [(_joined(one), _joined(two)) for one, two in zip(inputs, outputs, strict=True)])


def _code_contests(row: dict[str, Any]) -> dict[str, Any]:
    """CodeContests: public, private and generated tests of a program."""
    pairs: list[tuple[str, str]] = []
    for kind in ("public_tests", "private_tests", "generated_tests"):
        tests = row.get(kind) or {}
        inputs, outputs = (tests.get(key, []) if isinstance(tests, dict) else None for key in ("input", "output"))
        if not isinstance(inputs, list) or not isinstance(outputs, list) or len(inputs) != len(outputs):
            raise InputError(f"{kind} has no output for each input")
        pairs += [(str(one), str(two)) for one, two in zip(inputs, outputs, strict=True)]
    if not pairs:
        raise InputError("no tests, neither public, private nor generated")
    case: dict[str, Any] = {**({"id": str(row["name"])} if row.get("name") else {})}
    solutions = row.get("solutions")
    if isinstance(solutions, dict):
        languages, codes = (solutions.get(key) for key in ("language", "solution"))
        written = zip(languages, codes, strict=False) if isinstance(languages, list) and isinstance(codes, list) else ()
        reference = next((code for language, code in written if language in (CODE_CONTESTS_PYTHON, "PYTHON3")), None)
        case |= {"reference": reference} if isinstance(reference, str) else {}
    return case | _of_programs(str(row["description"]), pairs)


def _of_programs(text: str, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    listed = [{"input": given, "output": wanted} for given, wanted in pairs]
    return {
        "prompt": STDIN_PROMPT.format(text=text),
        "language": "python",
        **CONTEST_LIMITS,
        "verify": {"kind": "python", "style": "io", "pairs": listed},
    }


def _of_calls(text: str, stub: str, function: str, calls: list[tuple[Any, Any]]) -> dict[str, Any]:
    """A case that calls a function, or a method of a class Solution."""
    if not function.isidentifier():
        raise InputError("the name of its function is missing")
    if not all(isinstance(given, list) for given, _ in calls):
        raise InputError("the arguments of a call are not a list")
    case = {
        "prompt": FUNCTION_PROMPT.format(text=text, stub=stub),
        "language": "python",
        **CONTEST_LIMITS,
    }
    if "class Solution" not in stub:
        pairs = [{"input": given, "output": wanted} for given, wanted in calls]
        return {**case, "verify": {"kind": "python", "style": "io", "entry_point": function, "pairs": pairs}}
    tests = [
        f"import json\nCALLS = json.loads({json.dumps(calls)!r})",
        *(
            f"def test_call_{n}():\n    given, wanted = CALLS[{n - 1}]\n    found = Solution().{function}(*given)\n"
            "    assert (list(found) if isinstance(found, tuple) else found) == wanted"
            for n in range(1, len(calls) + 1)
        ),
    ]
    return {**case, "test": "\n\n".join(tests), "verify": {"kind": "python", "style": "asserts"}}


def _first_solution(given: Any) -> str:
    solutions = _decoded(given, "solutions") if isinstance(given, str) and given.strip() else given
    return solutions[0] if isinstance(solutions, list) and solutions and isinstance(solutions[0], str) else ""


def _joined(given: Any) -> str:
    return "\n".join(map(str, given)) if isinstance(given, list) else str(given)


def _value(text: str) -> Any:
    return _decoded(text, "a value of its tests")


def _decoded(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} cannot be read as JSON: {error}") from None
