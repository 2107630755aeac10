"""Whether code is deterministic, judged by its words."""

from __future__ import annotations

import re

from steelyard.records import Case

PYTHON_CHANCE_PATTERN = re.compile(
    r"\b(?:__import__|ctypes|concurrent|datetime|environ|gc|hypothesis|importlib|multiprocessing|os|platform|psutil|random|resource"
    r"|secrets|signal|socket|subprocess|tempfile|time|timeit|tracemalloc|uuid|weakref|_?thread(?:ing)?|async\w*)\b"
    r"|random|\b(?:eval|exec|hash|id|open)\s*\("
)
RUST_CHANCE_PATTERN = re.compile(
    # the order of a hash map is another in every process
    r"rand|[Hh]ash|\b(?:time|Instant|SystemTime|thread|sync|process|env|fs|io|net|unsafe)\b|[Aa]tomic|as\s*\*|:p\}|uninit"
)
"""Words for chance, time, other processes or addresses; a harmless use only costs time."""


def is_repeatable_code(pattern: re.Pattern[str], case: Case, text: str) -> bool:
    """Whether a reply and the tests of its case have no word that could make a result differ between runs.

    >>> case = Case(id="a", prompt="?", language="python")
    >>> texts = "def double(x): return 2 * x", "from random import choice", "print(id(double))"
    >>> [is_repeatable_code(PYTHON_CHANCE_PATTERN, case, text) for text in texts]
    [True, False, False]
    """
    return not any(map(pattern.search, (text, case.tests, case.verify.stub or "")))
