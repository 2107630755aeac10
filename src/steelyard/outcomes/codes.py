"""Names as small numbers, so that rows can be counted as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.outcomes.problems import UnreadableOutcomesError

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    import numpy.typing as npt

MAX_TOTAL_NAME_CHARACTERS = 1 << 30
"""Characters of all names together; a file of nothing but new names must not fill the memory."""

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


class NameCodes:
    """Names numbered from 0 in the order of their first appearance; blanks around a name are no part of it."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """The number of each name."""
        self._spelled = _SpellingCodes(self.numbers)

    def __getitem__(self, name: str) -> int:
        return self._spelled[name]

    def array(self, names: Collection[str]) -> npt.NDArray[Any]:
        """The number of each name; -1 for an empty one."""
        import numpy as np

        return np.fromiter(map(self._spelled.__getitem__, names), np.int32, len(names))


class _SpellingCodes(dict[str, int]):
    """The numbers of names as they are spelled, so that each spelling is looked at once."""

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
