"""Unicode as version 14 defines it, independent of the interpreter's version."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

import msgspec

from steelyard.text import printable

NormalizationForm = Literal["NFC", "NFD", "NFKC", "NFKD"]


class UnicodeTables(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """The tables of `unicode.toml`, which explains each of them."""

    newer_than_unicode_14: str
    bidi_controls: str
    zero_width: str
    homoglyphs: dict[str, str]

    @cached_property
    def newer(self) -> re.Pattern[str]:
        """One character that came after Unicode 14."""
        return re.compile(f"[{self.newer_than_unicode_14}]")


@cache
def unicode_tables() -> UnicodeTables:
    """The tables; the file is read when they are first needed."""
    return msgspec.toml.decode(Path(__file__).with_name("unicode.toml").read_bytes(), type=UnicodeTables)


def normalized_unicode(text: str, form: NormalizationForm) -> str:
    r"""The text in a normal form; characters newer than Unicode 14 stay as they are, as if unassigned.

    >>> normalized_unicode("e\u0301", "NFC") == "\u00e9"
    True
    """
    if text.isascii() or not (newer := unicode_tables().newer).search(text):
        return unicodedata.normalize(form, text)
    parts, end = [], 0
    for match in newer.finditer(text):
        parts += [unicodedata.normalize(form, text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*parts, unicodedata.normalize(form, text[end:])])


def printable_excerpt(text: str, longest: int = 100) -> str:
    r"""Text of a reply that any terminal, file and machine can take.

    >>> printable_excerpt("a\ud800\x1b[1m")
    'a\\ud800\\u001b[1m'
    """
    cut = text[:longest]
    if not cut.isascii():
        cut = unicode_tables().newer.sub(lambda match: f"\\u{ord(match[0]):04x}", cut)
    return f"{printable(cut)}{'...' if len(text) > longest else ''}"
