"""The language of a response, recognised by its script and its commonest words."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from string import ascii_lowercase
from typing import ClassVar

import msgspec

from steelyard.records import Evidence
from steelyard.verifiers.response.judged import FAIL, PASS, CheckTable, ResponseCheckResult, check_result
from steelyard.verifiers.response.text import fenced_texts
from steelyard.verifiers.response.unicode import normalized_unicode

MAX_LANGUAGE_SAMPLE_CHARACTERS = 20_000
"""The maximum number of characters that are read; more would not make the result more certain."""
MIN_SCRIPT_SHARE = 0.6
"""The part of the letters that one script must have."""
MIN_LANGUAGE_LEAD = 1.15
"""How far the likeliest language must be ahead of the next."""

_ASCII_LETTERS = bytes(code if chr(code) in ascii_lowercase else ord(" ") for code in range(128)).ljust(256)


class _Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ranges: str
    languages: tuple[str, ...]


class LanguageTables(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """The tables of `languages.toml`, which explains each of them."""

    scripts: dict[str, _Script]
    words: dict[str, str]
    letters: dict[str, str]

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The languages that are recognised, as codes of ISO 639-1."""
        return tuple(sorted(code for script in self.scripts.values() for code in script.languages))

    @cached_property
    def word(self) -> re.Pattern[str]:
        return re.compile(f"[{''.join(script.ranges for script in self.scripts.values())}]+")

    @cached_property
    def script_letters(self) -> dict[str, re.Pattern[str]]:
        return {name: re.compile(f"[{script.ranges}]") for name, script in self.scripts.items()}


@cache
def language_tables() -> LanguageTables:
    """The tables; the file is read when they are first needed."""
    return msgspec.toml.decode(Path(__file__).with_name("languages.toml").read_bytes(), type=LanguageTables)


@cache
def _weights(script: str) -> dict[str, tuple[tuple[str, float], ...]]:
    """Each common word with its languages; a word of many languages says little about each."""
    tables = language_tables()
    owners: dict[str, list[str]] = {}
    for language in tables.scripts[script].languages:
        for word in dict.fromkeys(tables.words[language].split()):
            owners.setdefault(word, []).append(language)
    return {word: tuple((owner, 1 / len(known)) for owner in known) for word, known in owners.items()}


def language_of(text: str) -> str | None:
    """The language of a text, as a code of ISO 639-1; None when it is not clear.

    Fenced blocks are passed over. Of 66 sentences of three to ten words in the 26 languages that we know, which the lists were
    not fitted to, 48 are recognised, 17 are not, and one is taken for another language; taken together, those of 25
    languages are recognised and those of one are not. So ask for a language only where replies have several sentences. Other languages of the
    same script are recognised as a similar one, or not at all.

    >>> language_of("Das ist nicht der richtige Weg, aber es geht auch so.")
    'de'
    """
    text = normalized_unicode(_prose(text), "NFC").lower()
    if text.isascii():
        return _likeliest(text, "latin")
    scripts = language_tables().scripts
    counts = dict.fromkeys(scripts, 0)
    for letter, count in Counter(text).items():
        if script := _script(letter):
            counts[script] += count
    total = sum(counts.values())
    east = counts["han"] + counts["kana"]
    if not total:
        return None
    if east >= MIN_SCRIPT_SHARE * total / 2 and east > max(
        count for name, count in counts.items() if name not in ("han", "kana")
    ):
        return "ja" if counts["kana"] * 20 >= east else "zh"
    script = max(counts, key=lambda name: counts[name])
    if counts[script] < MIN_SCRIPT_SHARE * total:
        return None
    languages = scripts[script].languages
    return languages[0] if len(languages) == 1 else _likeliest(text, script)


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    """The script that a letter belongs to; empty for a script that we do not know."""
    return next((name for name, letters in language_tables().script_letters.items() if letters.match(letter)), "")


def _prose(text: str) -> str:
    text = text[:MAX_LANGUAGE_SAMPLE_CHARACTERS]
    for block in reversed(fenced_texts(text)):
        text = text[: block.start] + text[block.start + len(block.body) :]
    return text


def _likeliest(text: str, script: str) -> str | None:
    tables, weights = language_tables(), _weights(script)
    points = dict.fromkeys(tables.scripts[script].languages, 0.0)
    # splitting ASCII takes a fifth of the time that a pattern takes
    is_ascii = text.isascii()
    words = text.encode().translate(_ASCII_LETTERS).decode().split() if is_ascii else tables.word.findall(text)
    for word, count in Counter(words).items():
        for language, weight in weights.get(word, ()):
            points[language] += weight * count
    for language in () if is_ascii else points:
        points[language] += 0.5 * min(20, sum(map(text.count, tables.letters.get(language, ""))))
    (first, most), (_, next_most) = sorted(points.items(), key=lambda item: (-item[1], item[0]))[:2]
    return first if most >= 1 and most >= MIN_LANGUAGE_LEAD * next_most else None


@dataclass(frozen=True)
class LanguageCheck:
    """The reply is written in one of the languages."""

    rule: str
    codes: tuple[str, ...]
    asks: ClassVar[bool] = True

    def judge(self, text: str) -> ResponseCheckResult:
        language = language_of(text)
        if language in self.codes:
            return check_result(PASS, Evidence(rule=self.rule, what=f"the reply is in {language}"))
        what = f"the reply is in {language}" if language else "the language of the reply cannot be recognised"
        return check_result(FAIL, Evidence(rule=self.rule, what=f"{what}, not in {' or '.join(self.codes)}"))


def language_check(table: CheckTable) -> LanguageCheck:
    """One language or several, as codes of ISO 639-1."""
    codes = table.texts("value")
    known = language_tables().known
    for code in codes:
        if code not in known:
            raise table.wrong("value", f'unknown language "{code[:20]}" (known: {", ".join(known)})')
    return LanguageCheck(table.path, codes)
