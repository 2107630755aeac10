"""Whether an answer in Java names nothing but what its list has."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from steelyard.verifiers.command.allowed import vocabulary
from steelyard.verifiers.command.allowed.asked import AskedNames
from steelyard.verifiers.command.allowed.constants import equal_constants_of
from steelyard.verifiers.command.allowed.tokens import Token, closing, text_at, tokens

_ASCII_ESCAPE_PATTERN = re.compile(r"\\u+00[0-7][0-9a-fA-F]")
"""An escape that Java reads before anything else, so that it may end a comment or a text."""
_TYPE_OF_TESTS_PATTERN = re.compile(r"\b(?:class|interface|enum|record)\s+([A-Z]\w*)")
_ASSIGNING = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", ">>>=", "++", "--"))


def unlisted_in_java(code: str, asked: AskedNames) -> str:
    """The first thing in an answer that the list does not have; empty if there is none."""
    if escape := _ASCII_ESCAPE_PATTERN.search(code):
        return escape[0]
    found = tokens(code, "java")
    own = {
        after.text
        for before, after in pairwise(found)
        if before.text in ("class", "interface", "enum", "record") and before.kind == "name"
    }
    types = vocabulary.JAVA_TYPES | own | asked.called
    if vocabulary.JAVA_CONCURRENCY_PATTERN.search(asked.prompt):
        types |= vocabulary.JAVA_CONCURRENT_TYPES
    if shadowed := own & (vocabulary.JAVA_TYPES | asked.test_words) - asked.called - _public_types(found):
        return f"its own {min(shadowed)}"
    of_tests = set(_TYPE_OF_TESTS_PATTERN.findall(asked.tests)) - own
    for place, token in enumerate(found):
        if token.kind == "name" and token.text in of_tests and text_at(found, place - 1) not in (".", "::"):
            return token.text
        if token.kind == "name" and (problem := _unlisted_word(found, place, types, own, asked)):
            return problem
    return _meaning_in_java(found, own, asked) or equal_constants_of(found, asked, "java")


def _unlisted_word(
    found: Sequence[Token], place: int, types: Collection[str], own: Collection[str], asked: AskedNames
) -> str:
    word = found[place].text
    before, after = text_at(found, place - 1), text_at(found, place + 1)
    if before in (".", "::"):
        return f".{word}" if word in vocabulary.JAVA_UNLISTED_MEMBERS else ""
    if word in ("import", "package"):
        return _java_import(found, place)
    if word == "System":
        return _java_system(found, place, asked)
    if word in vocabulary.JAVA_PACKAGE_ROOTS and after == "." and not _is_in_import(found, place):
        return f"{word}."
    if word in ("extends", "implements"):
        # a bound of a type parameter is no base
        is_bound = before == "?" or (word == "extends" and text_at(found, place - 2) in ("<", ","))
        strange = _java_bases(found, place + 1) - vocabulary.JAVA_BASES - set(own) - asked.called - set("TKVERSABU")
        return f"{word} {min(strange)}" if strange and not is_bound else ""
    if word in ("native", "synchronized", "volatile"):
        return "" if vocabulary.JAVA_CONCURRENCY_PATTERN.search(asked.prompt) else word
    is_type = word[0].isupper() and not re.fullmatch(r"[A-Z][A-Z0-9_]*", word)
    return word if is_type and word not in types else ""


def _public_types(found: Sequence[Token]) -> set[str]:
    return {
        found[place + 2].text
        for place in range(len(found) - 2)
        if found[place].text == "public" and found[place + 1].text in ("class", "interface", "enum", "record")
    }


def _is_in_import(found: Sequence[Token], place: int) -> bool:
    return text_at(found, place - 1) in ("import", "package") or text_at(found, place - 2) == "import"


def _java_import(found: Sequence[Token], place: int) -> str:
    end = next((at for at in range(place, len(found)) if found[at].text == ";"), len(found))
    parts = [token.text for token in found[place + 1 : end] if token.text != "static"]
    path = "".join(parts)
    if found[place].text == "package":
        return f"package {path}"
    if not path.startswith(vocabulary.JAVA_PACKAGES):
        return f"import {path}"
    strange = (
        {part for part in parts if part[:1].isupper()}
        - vocabulary.JAVA_TYPES
        - vocabulary.JAVA_CONCURRENT_TYPES
        - {"AbstractMap"}
    )
    return f"import {path}" if strange and not re.search(r"[A-Z_]{2,}$", path) else ""


def _java_system(found: Sequence[Token], place: int, asked: AskedNames) -> str:
    member, call = text_at(found, place + 2), text_at(found, place + 4)
    if text_at(found, place + 1) != "." or member not in vocabulary.JAVA_SYSTEM_MEMBERS:
        return f"System.{member}"
    if member in ("out", "err"):
        is_printing = text_at(found, place + 3) in (".", "::") and call in vocabulary.JAVA_PRINTING
        if not is_printing or (asked.is_printed and member == "out"):
            return f"System.{member}"
    return ""


def _java_bases(found: Sequence[Token], place: int) -> set[str]:
    bases, depth = set(), 0
    while place < len(found) and found[place].text not in ("{", ")", ";", "extends", "implements"):
        depth += (found[place].text == "<") - found[place].text.count(">")
        if found[place].kind == "name" and not depth and found[place].text != "permits":
            bases.add(found[place].text)
        if depth < 0:
            break
        place += 1
    return bases


def _meaning_in_java(found: Sequence[Token], own: Collection[str], asked: AskedNames) -> str:
    helpers = set(own) - asked.called - _public_types(found)
    # an order that calls everything the same makes a set equal to every other
    has_order = any(one.text == "Comparator" and other.text != "." for one, other in pairwise(found)) or bool(
        re.search(
            r"new (?:TreeSet|TreeMap) (?:< [\w ,<>]*> )?\( [^;]*?(?:->|::|\w+ \()",
            " ".join(token.text for token in found),
        )
    )
    for place, token in enumerate(found):
        before, after = text_at(found, place - 1), text_at(found, place + 1)
        is_method = (
            token.kind == "name"
            and after == "("
            and before not in (".", "::", "new")
            and text_at(found, closing(found, place + 1) + 1) == "{"
        )
        is_judging = token.text in ("equals", "hashCode") or (token.text == "toString" and helpers)
        if is_method and is_judging and token.text not in asked.words:
            return f"its own {token.text}"
        if token.text == "new" and token.kind == "name":
            at = place + 2
            if text_at(found, at) == "<":
                at = next((n for n in range(at, len(found)) if found[n].text == "("), len(found))
            is_anonymous = text_at(found, at) == "(" and text_at(found, closing(found, at) + 1) == "{"
            is_sorted = after in ("TreeSet", "TreeMap") and text_at(found, at + 1) not in ("", ")")
            if is_sorted and has_order:
                return f"a {after} with an order of its own"
            if is_anonymous and after not in {*vocabulary.JAVA_BASES, *own, *asked.called}:
                return f"a {after} of its own"
    return ""
