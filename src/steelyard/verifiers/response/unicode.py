"""Unicode as version 14 defines it, whatever version the interpreter knows."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from steelyard.text import printable

NormalizationForm = Literal["NFC", "NFD", "NFKC", "NFKD"]

# Python 3.11 knows Unicode 14, 3.13 knows 15.1: what lies between must not be judged differently by the two
NEWER_THAN_UNICODE_14 = re.compile(
    "[\u0cf3\u0ece\u2ffc-\u2fff\u31ef\U00010efd-\U00010eff\U0001123f-\U00011241\U00011b00-\U00011b09"
    "\U00011f00-\U00011f10\U00011f12-\U00011f3a\U00011f3e-\U00011f59\U0001342f\U00013439-\U00013455\U0001b132"
    "\U0001b155\U0001d2c0-\U0001d2d3\U0001df25-\U0001df2a\U0001e030-\U0001e06d\U0001e08f\U0001e4d0-\U0001e4f9"
    "\U0001f6dc\U0001f774-\U0001f776\U0001f77b-\U0001f77f\U0001f7d9\U0001fa75-\U0001fa77\U0001fa87-\U0001fa88"
    "\U0001faad-\U0001faaf\U0001fabb-\U0001fabd\U0001fabf\U0001face-\U0001facf\U0001fada-\U0001fadb\U0001fae8"
    "\U0001faf7-\U0001faf8\U0002b739\U0002ebf0-\U0002ee5d\U00031350-\U000323af]"
)
"""Characters that came with Unicode 15.0 or 15.1."""

BIDI_CONTROLS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Controls that change the direction of what follows (Unicode Standard Annex 9, section 2)."""

ZERO_WIDTH_CHARACTERS = "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\u3164\ufeff\uffa0"
"""Characters that take no room on a screen, apart from accents and the controls of direction."""


def normalized_unicode(text: str, form: NormalizationForm) -> str:
    r"""The text in a normal form; characters newer than Unicode 14 stay as they are, as if unassigned.

    >>> normalized_unicode("e\u0301", "NFC") == "\u00e9"
    True
    """
    if text.isascii() or not NEWER_THAN_UNICODE_14.search(text):
        return unicodedata.normalize(form, text)
    parts, end = [], 0
    for match in NEWER_THAN_UNICODE_14.finditer(text):
        parts += [unicodedata.normalize(form, text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*parts, unicodedata.normalize(form, text[end:])])


def printable_excerpt(text: str, longest: int = 100) -> str:
    r"""Text of a reply that any terminal, file and machine can take.

    >>> printable_excerpt("a\ud800\x1b[1m")
    'a\\ud800\\u001b[1m'
    """
    cut = NEWER_THAN_UNICODE_14.sub(lambda match: f"\\u{ord(match[0]):04x}", text[:longest])
    return f"{printable(cut)}{'...' if len(text) > longest else ''}"
