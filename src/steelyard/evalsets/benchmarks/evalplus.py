"""EvalPlus's way of testing: the reference and the answer get the same inputs, and must return the same."""

from __future__ import annotations

import json
from typing import Any

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
"""What JSON made lists or text of, by the numbers of the MBPP+ tasks whose arguments were something else."""
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
