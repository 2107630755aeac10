"""Encodings in which a text can be told: base32 and its relatives, escapes of programs and pages, Braille, invisible characters."""

from __future__ import annotations

import base64
import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

from steelyard.verifiers.response.disguises import MAX_DISGUISE_CHARACTERS, DisguiseFinding

MIN_BASE32_SIGNS = 7
MIN_BASE58_SIGNS = 7
MIN_BASE85_SIGNS = 10
"""Signs of an encoded text below which prose may hold it by chance."""
MAX_BASE58_BYTES = 500
"""The longest text that is looked for in base58, a single large number."""
MAX_BIT_KINDS = 4
"""Different invisible characters, the most common ones, of which two are read as bits."""
BASE32_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
BASE32_ALPHABETS = (
    BASE32_ALPHABET,
    "0123456789ABCDEFGHIJKLMNOPQRSTUV",  # RFC 4648, section 7
    "0123456789ABCDEFGHJKMNPQRSTVWXYZ",  # Crockford's
)
BASE58_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
BASE85_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
Z85_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
BRAILLE_START = 0x2800
BRAILLE_LETTERS = dict(
    zip("⠁⠃⠉⠙⠑⠋⠛⠓⠊⠚⠅⠇⠍⠝⠕⠏⠟⠗⠎⠞⠥⠧⠺⠭⠽⠵", "abcdefghijklmnopqrstuvwxyz", strict=True),
)
BRAILLE_DIGITS = str.maketrans("1234567890", "abcdefghij")
"""The cells of digits are those of letters, after a sign that some leave out."""

_ESCAPE = re.compile(
    r"\\[uUx]\{(?P<braced>[0-9a-fA-F]{1,6})\}|\\u(?P<short>[0-9a-fA-F]{4})|\\U(?P<long>[0-9a-fA-F]{8})|\\x(?P<byte>[0-9a-fA-F]{2})"
    r"|[uU]\+(?P<point>[0-9a-fA-F]{4,6})|%u(?P<old>[0-9a-fA-F]{4})|%(?P<percent>[0-9a-fA-F]{2})|=(?P<quoted>[0-9A-F]{2})"
    r"|&#[xX](?P<page>[0-9a-fA-F]{1,6});?|&#(?P<decimal>[0-9]{1,7});?|(?:\\o?\{?|0o)(?P<octal>[0-7]{2,3})\}?"
    r"|(?P<entity>&[A-Za-z]{2,31};)|\\N\{(?P<named>[A-Za-z0-9 -]{1,80})\}"
)
_STYLE_ESCAPE = re.compile(r"\\(?P<style>[0-9a-fA-F]{2,6}) ?")
_BASES = {"decimal": 10, "octal": 8}
_BLANKS = bytes(code for code in range(128) if chr(code).isspace())
_BRAILLE = re.compile(r"[\u2800-\u28ff]")
_VARIATION = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")


class EncodedSecret(NamedTuple):
    """A text that must not be told: its letters and digits, and its bytes in several spellings."""

    key: str
    braille_key: str
    """The same with the letters whose cells the digits have."""
    values: tuple[bytes, ...]


class _Base32Keys(NamedTuple):
    """Texts in one alphabet, and those of them that have no digit: many replies have none, either."""

    all: tuple[str, ...]
    letters: tuple[str, ...]


class _EncodedKeys(NamedTuple):
    """What a secret looks like in each encoding."""

    base32: tuple[_Base32Keys, ...]
    """For each alphabet."""
    base85: tuple[str, ...]
    base58: tuple[str, ...]


class _Unescaped(NamedTuple):
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class EncodedReply:
    """A reply in the forms that these encodings need; each form is computed once for all texts."""

    text: str
    fold: Callable[[str], str]
    """The letters and digits of a text, folded."""
    invisible: Callable[[int], bool]
    """Whether no screen shows a character."""

    def find(self, secret: EncodedSecret, is_told: Callable[[str], bool]) -> DisguiseFinding | None:
        """The first encoding in which a secret appears; `is_told` says whether a text reveals it as it is."""
        for escapes in self._unescaped:
            if is_told(escapes.text):
                return DisguiseFinding("escapes", escapes.start, escapes.end)
        if not self._looked_at.isascii() and (found := self._unusual(secret)):
            return found
        return self._encoded(_encoded_keys(secret.values))

    def _unusual(self, secret: EncodedSecret) -> DisguiseFinding | None:
        """A secret in dots, or in characters that nobody sees."""
        cells, codes = self._braille
        if secret.braille_key in cells or secret.key in codes:
            return DisguiseFinding("Braille", *_span(_BRAILLE, self._looked_at))
        if secret.key in self._variations:
            return DisguiseFinding("variation selectors", *_span(_VARIATION, self._looked_at))
        return self._hidden(secret.values)

    @cached_property
    def _looked_at(self) -> str:
        return self.text[:MAX_DISGUISE_CHARACTERS]

    @cached_property
    def _unescaped(self) -> list[_Unescaped]:
        """The reply with its escapes undone: those of programs and pages, and those of style sheets."""
        text = self._looked_at
        if not any(mark in text for mark in "\\%&=+") and "0o" not in text:
            return []
        found = []
        for pattern in (_ESCAPE, _STYLE_ESCAPE):
            undone = pattern.sub(_character, text)
            if undone != text:
                found.append(_Unescaped(undone, *_span(pattern, text)))
        return found

    @cached_property
    def _braille(self) -> tuple[str, str]:
        """The dots read as letters, and as bytes."""
        cells = _BRAILLE.findall(self._looked_at)
        letters = "".join(BRAILLE_LETTERS.get(cell, " ") for cell in cells)
        codes = bytes(ord(cell) - BRAILLE_START for cell in cells)
        return self.fold(letters), self.fold(codes.decode("utf-8", "replace"))

    @cached_property
    def _variations(self) -> str:
        """The bytes that variation selectors stand for."""
        points = map(ord, _VARIATION.findall(self._looked_at))
        codes = bytes(point - 0xFE00 if point < 0xFE10 else point - 0xE0100 + 16 for point in points)
        return self.fold(codes.decode("utf-8", "replace"))

    def _encoded(self, keys: _EncodedKeys) -> DisguiseFinding | None:
        for alphabet, (view, is_alpha), wanted in zip(BASE32_ALPHABETS, self._base32, keys.base32, strict=True):
            if found := _first(view, wanted.letters if is_alpha else wanted.all):
                either_case = f"[{alphabet}{alphabet.lower()}]"
                return DisguiseFinding("base32", *_place(re.compile(either_case), self.text, *found))
        if found := _first(self._without_blanks, keys.base85):
            return DisguiseFinding("base85", *_place(re.compile(r"\S"), self.text, *found))
        if found := _first(self._looked_at, keys.base58):
            return DisguiseFinding("base58", found[0], sum(found))
        return None

    def _hidden(self, values: Sequence[bytes]) -> DisguiseFinding | None:
        """The bits of a value in invisible characters, which few replies have."""
        if not self._bits:
            return None
        for value in values:
            for width in (8, 7):
                wanted = "".join(f"{code:0{width}b}" for code in value)
                if any(wanted in bits for bits in self._bits):
                    return DisguiseFinding("invisible bits", *_span(re.compile(r"[^\x00-\x7f]"), self._looked_at))
        return None

    @cached_property
    def _base32(self) -> list[tuple[str, bool]]:
        """The signs of each alphabet, without everything else, and whether all are letters; large and small ones are the same."""
        large = self._looked_at.encode("ascii", "ignore").upper()
        views = [large.translate(None, _others(alphabet)) for alphabet in BASE32_ALPHABETS]
        return [(view.decode(), view.isalpha()) for view in views]

    @cached_property
    def _without_blanks(self) -> str:
        text = self._looked_at
        # the same, but many times as fast
        return text.encode().translate(None, _BLANKS).decode() if text.isascii() else "".join(text.split())

    @cached_property
    def _bits(self) -> list[str]:
        """What pairs of invisible characters spell as bits."""
        hidden = [sign for sign in self._looked_at if not sign.isascii() and self.invisible(ord(sign))]
        common = [sign for sign, _ in Counter(hidden).most_common(MAX_BIT_KINDS)]
        line = "".join(hidden)
        found = []
        for zero in common:
            for one in common:
                if zero != one:
                    others = dict.fromkeys(map(ord, {*common} - {zero, one}))
                    found.append(line.translate({**others, ord(zero): "0", ord(one): "1"}))
        return found


def _character(escape: re.Match[str]) -> str:
    """The character that an escape stands for; the escape itself if there is none."""
    kind, value = str(escape.lastgroup), escape[str(escape.lastgroup)]
    if kind == "entity":
        return html.unescape(value)
    if kind == "named":
        try:
            return unicodedata.lookup(value)
        except KeyError:
            return escape[0]
    code = int(value, _BASES.get(kind, 16))
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else escape[0]


def _span(pattern: re.Pattern[str], text: str) -> tuple[int, int]:
    """From the beginning of the first match to the end of the last one."""
    start = end = 0
    for number, found in enumerate(pattern.finditer(text)):
        start = found.start() if not number else start
        end = found.end()
    return start, end


def _place(sign: re.Pattern[str], text: str, at: int, length: int) -> tuple[int, int]:
    """Where signs, counted without the characters between them, begin and end."""
    start = 0
    for number, found in enumerate(sign.finditer(text)):
        start = found.start() if number == at else start
        if number == at + length - 1:
            return start, found.end()
    return start, len(text)


@cache
def _others(alphabet: str) -> bytes:
    """Every byte that is not in an alphabet."""
    return bytes(set(range(256)) - set(alphabet.encode()))


def _first(view: str, keys: tuple[str, ...]) -> tuple[int, int] | None:
    """Where the first of several texts begins that a reply holds, and how long it is."""
    for key in keys:
        if key in view:
            return view.find(key), len(key)
    return None


@cache
def _encoded_keys(values: tuple[bytes, ...]) -> _EncodedKeys:
    by_value = [_base32_keys(value) for value in values]
    base32 = []
    for number in range(len(BASE32_ALPHABETS)):
        keys = tuple(dict.fromkeys(key for keys in by_value for key in keys[number]))
        base32.append(_Base32Keys(keys, tuple(filter(str.isalpha, keys))))
    base58 = (key for key in map(_base58, values) if len(key) >= MIN_BASE58_SIGNS)
    return _EncodedKeys(
        base32=tuple(base32),
        base85=tuple(dict.fromkeys(key for value in values for key in _base85_keys(value))),
        base58=tuple(dict.fromkeys(base58)),
    )


def _base32_keys(value: bytes) -> tuple[tuple[str, ...], ...]:
    """The signs that belong to a value alone, for each offset of its first byte, in each alphabet."""
    found = []
    for before in range(5):
        signs = base64.b32encode(b"\0" * before + value).decode().rstrip("=")
        found.append(signs[-(-before * 8 // 5) : (before + len(value)) * 8 // 5])
    long_enough = [signs for signs in dict.fromkeys(found) if len(signs) >= MIN_BASE32_SIGNS]
    return tuple(
        tuple(signs.translate(str.maketrans(BASE32_ALPHABET, alphabet)) for signs in long_enough)
        for alphabet in BASE32_ALPHABETS
    )


def _base85_keys(value: bytes) -> tuple[str, ...]:
    """The whole groups of five signs that belong to a value alone, for each offset of its first byte, in each alphabet."""
    return tuple(key for key in dict.fromkeys(_base85_groups(value)) if len(key) >= MIN_BASE85_SIGNS)


def _base85_groups(value: bytes) -> Iterator[str]:
    encoders: Sequence[Callable[[bytes], bytes]] = (base64.b85encode, base64.a85encode)
    for before in range(4):
        # the first bytes must not be zero: four of them have a sign of their own
        given = b"\1" * before + value
        first, last = -(-before // 4) * 5, len(given) // 4 * 5
        for encode in encoders:
            yield encode(given).decode()[first:last]
        yield base64.b85encode(given).decode().translate(str.maketrans(BASE85_ALPHABET, Z85_ALPHABET))[first:last]


def _base58(value: bytes) -> str:
    number, signs = int.from_bytes(value, "big") if len(value) <= MAX_BASE58_BYTES else 0, ""
    while number:
        number, place = divmod(number, 58)
        signs = BASE58_ALPHABET[place] + signs
    return signs
