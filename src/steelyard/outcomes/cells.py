"""What the cells of a table mean: names as small numbers, outcomes and numbers, as arrays."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from steelyard.outcomes.files import UnreadableOutcomesError
from steelyard.records.base import MAX_NUMBER, is_bounded
from steelyard.text import short_quote

if TYPE_CHECKING:
    import numpy.typing as npt


MAX_TOTAL_NAME_CHARACTERS = 1 << 30
"""The maximum number of characters of all names; a file of new names must not fill the memory."""

TRUE_CODE, FALSE_CODE, MISSING_CODE, UNCLEAR_CODE = 1, 0, -1, -2
"""How an attempt came out, as a number: the last two for no outcome, and for one that cannot be read."""

BOOLEAN_CODES = {
    "true": TRUE_CODE,
    "1": TRUE_CODE,
    "1.0": TRUE_CODE,
    "yes": TRUE_CODE,
    "false": FALSE_CODE,
    "0": FALSE_CODE,
    "0.0": FALSE_CODE,
    "no": FALSE_CODE,
    "": MISSING_CODE,
}
EXPECTED_BOOLEAN_TEXT = "true or false, 1 or 0, yes or no"


class CodedCells:
    """The cells of a column of which many are the same: each different one once, and which of them each row has."""

    def __init__(self, different: Sequence[Any], codes: npt.NDArray[Any]) -> None:
        self.different, self.codes = different, codes

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> Any:
        return self.different[int(self.codes[row])]


class NameCodes:
    """Names numbered from 0 in the order of their first appearance; blanks around a name are stripped."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """The number of each name."""
        self._spelled = _SpellingCodes(self.numbers)

    def __getitem__(self, name: str) -> int:
        return self._spelled[name]

    def array(self, names: Collection[Any] | CodedCells) -> npt.NDArray[Any]:
        """The number of each name; -1 for an empty one, and for what names nothing because it is of another kind."""
        import numpy as np

        if isinstance(names, CodedCells):
            return self.array(names.different).take(names.codes)
        if set(map(type, names)) != {str}:
            names = list(map(_name, names))
        return np.fromiter(map(self._spelled.__getitem__, names), np.int32, len(names))


class _SpellingCodes(dict[str, int]):
    """The numbers of names by spelling, so that each spelling is parsed once."""

    def __init__(self, numbers: dict[str, int]) -> None:
        super().__init__({"": -1})
        self._numbers = numbers
        self._characters = 0

    def __missing__(self, spelled: str) -> int:
        self._characters += len(spelled)
        if self._characters > MAX_TOTAL_NAME_CHARACTERS:
            raise UnreadableOutcomesError(
                f"more than {MAX_TOTAL_NAME_CHARACTERS >> 30} GB of different names; is this the right column?"
            )
        name = spelled.strip()
        number = self[spelled] = self._numbers.setdefault(name, len(self._numbers)) if name else -1
        return number


class _BooleanCodes(dict[str, int]):
    def __missing__(self, text: str) -> int:
        outcome = (
            BOOLEAN_CODES.get(text.strip().lower(), UNCLEAR_CODE)
            if len(text) <= 100 or text.isspace()
            else UNCLEAR_CODE
        )
        # few texts mean an outcome, but what means none may be anything
        if outcome != UNCLEAR_CODE:
            self[text] = outcome
        return outcome


def boolean_codes(texts: Collection[str]) -> npt.NDArray[Any]:
    """How attempts came out, as numbers."""
    import numpy as np

    return np.fromiter(map(_BooleanCodes(BOOLEAN_CODES).__getitem__, texts), np.int8, len(texts))


INVALID_NUMBER = -1e300
"""The sentinel for what is not a number: it is below every cost and every score."""


def _name(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**100 else ""


def outcome_codes(values: Any) -> npt.NDArray[Any]:
    """How attempts came out, as numbers."""
    import numpy as np

    if isinstance(values, CodedCells):
        return outcome_codes(values.different).take(values.codes)
    if isinstance(values, np.ma.MaskedArray):
        found = np.where(values.data == 1, TRUE_CODE, np.where(values.data == 0, FALSE_CODE, UNCLEAR_CODE))
        return np.where(values.mask, MISSING_CODE, found).astype(np.int8)
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


def numbers(values: Any) -> npt.NDArray[Any]:
    """Costs or scores; NaN for an empty cell, INVALID_NUMBER for any other value."""
    import numpy as np

    if isinstance(values, CodedCells):
        return numbers(values.different).take(values.codes)
    if isinstance(values, np.ma.MaskedArray):
        return np.where(values.mask, np.nan, np.where(np.abs(values.data) <= MAX_NUMBER, values.data, INVALID_NUMBER))
    plain = plain_numbers(values)
    return np.fromiter(map(_number, values), np.float64, len(values)) if plain is None else plain


def plain_numbers(texts: Sequence[Any]) -> npt.NDArray[Any] | None:
    """The same where every text is a number of a usual size or empty; None if one needs a closer look."""
    import numpy as np

    try:
        found = np.fromiter((float(text or "nan") for text in texts), np.float64, len(texts))
        # Python takes 1_000 for a number; other programs do not
        has_separator = "_" in "".join(texts)
    except (TypeError, ValueError):
        return None
    is_empty = np.isnan(found)
    if has_separator or is_empty.sum() != texts.count("") or not (np.abs(found) <= MAX_NUMBER)[~is_empty].all():
        return None
    return found


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
    return number if is_bounded(number, least=-MAX_NUMBER) else INVALID_NUMBER


def quoted_cell(value: Any) -> str:
    """A cell as a short quotation.

    >>> quoted_cell("maybe"), quoted_cell(None), quoted_cell([1])
    ('"maybe"', 'empty', 'a list')
    """
    import numpy as np

    if value is None or value is np.ma.masked or (isinstance(value, str) and not value.strip()):
        return "empty"
    if isinstance(value, str):
        return short_quote(value.strip())
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a huge number" if isinstance(value, int) and abs(value) >= 10**100 else f"{value:.6g}"
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else "something else"
