"""What the cells of a table mean: names, outcomes and numbers, as arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from steelyard.outcomes.codes import BOOLEAN_CODES, FALSE_CODE, MISSING_CODE, TRUE_CODE, UNCLEAR_CODE, boolean_codes
from steelyard.text import short_quote

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy.typing as npt

INVALID_NUMBER = -1.0
"""The sentinel for what is not a number; neither costs nor scores are negative."""


def name_texts(values: Sequence[Any]) -> Sequence[str]:
    """Names as text; empty for what names nothing, because it is of another kind."""
    return values if set(map(type, values)) == {str} else [_name(value) for value in values]


def _name(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**100 else ""


def outcome_codes(values: Sequence[Any]) -> npt.NDArray[Any]:
    """How attempts came out, as numbers."""
    import numpy as np

    kinds = set(map(type, values))
    if kinds == {str}:
        return boolean_codes(values)
    if kinds == {bool}:
        return np.fromiter(values, np.int8, len(values))
    return np.fromiter(map(outcome_code, values), np.int8, len(values))


def outcome_code(value: Any) -> int:
    """How an attempt came out, as a number."""
    if value is None:
        return MISSING_CODE
    if isinstance(value, str):
        return BOOLEAN_CODES.get(value.strip().lower(), UNCLEAR_CODE)
    if isinstance(value, bool | int | float):
        return TRUE_CODE if value == 1 else FALSE_CODE if value == 0 else UNCLEAR_CODE
    return UNCLEAR_CODE


def numbers(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Costs or scores; NaN where there is nothing, INVALID_NUMBER for any other value."""
    import numpy as np

    return np.fromiter(map(_number, values), np.float64, len(values))


def _number(value: Any) -> float:
    if value is None or value == "":
        return math.nan
    try:
        if isinstance(value, str):
            if not value.strip():
                return math.nan
            # Python takes 1_000 for a number; other programs do not
            number = INVALID_NUMBER if "_" in value else float(value)
        elif isinstance(value, bool) or not isinstance(value, int | float):
            return INVALID_NUMBER
        else:
            number = float(value)
    except (ValueError, OverflowError):
        return INVALID_NUMBER
    return number if math.isfinite(number) else INVALID_NUMBER


def quoted_cell(value: Any) -> str:
    """A cell as a short quotation.

    >>> quoted_cell("maybe"), quoted_cell(None), quoted_cell([1])
    ('"maybe"', 'empty', 'a list')
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return "empty"
    if isinstance(value, str):
        return short_quote(value.strip())
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a huge number" if isinstance(value, int) and abs(value) >= 10**100 else f"{value:.6g}"
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else "something else"
