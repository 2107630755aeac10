"""Whether a type that an answer in Rust is asked for can tell its values apart, so that a comparison of them says something."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from steelyard.verifiers.code.nan_orders import too_far_only
from steelyard.verifiers.code.nan_tests import accepts_nan, may_give_nan
from steelyard.verifiers.code.own_claims import own_decision
from steelyard.verifiers.rust.source import RustToken, closing_token, rust_tokens

_COMPARING_PATTERN = re.compile(r"\b(?:debug_)?assert_(?:eq|ne)\b|[=!]=|\bcontains\w*\b|\bHashSet\b|\bmatches!")
_DECLARED_PATTERN = re.compile(r"\b(?:struct|enum|class|newtype)s?\s+(?:(?:called|named)\s+)?`?([A-Z]\w*)")


def doubtful_claim(tests: str, prompt: str, code: str, read: Sequence[RustToken]) -> str:
    """What in an answer could make its tests say nothing; empty if there is nothing."""
    if may_give_nan(code, "rust") and (accepts_nan(tests) or too_far_only(tests, code, "rust")):
        return "could give NaN, which these tests let pass: write `assert!((got - want).abs() <= limit)`"
    if doubt := _doubtful_type(tests, prompt, read) if _COMPARING_PATTERN.search(tests) else "":
        return doubt
    decision = own_decision(tests, code, "rust")
    return f"may have decided its tests itself: {decision}" if decision else ""


def _doubtful_type(tests: str, prompt: str, read: Sequence[RustToken]) -> str:
    used, made = _words_of_tests(tests)
    texts = [token.text for token in read]
    declared = {name for keyword, name in pairwise(texts) if keyword in ("struct", "enum", "union")}
    if posing := sorted(set(_DECLARED_PATTERN.findall(prompt)) & used & set(texts) - declared):
        return f"makes something else of {posing[0]} than the type that it is asked for"
    return next(_doubts(read, texts, used, made), "")


@lru_cache(maxsize=256)
def _words_of_tests(tests: str) -> tuple[frozenset[str], frozenset[str]]:
    """All words of tests, and those by whose paths they name something."""
    words = [token.text for token in rust_tokens(tests)]
    return frozenset(words), frozenset(name for name, after in pairwise(words) if after == "::")


def _doubts(
    read: Sequence[RustToken], texts: Sequence[str], used: frozenset[str], made: frozenset[str]
) -> Iterator[str]:
    values: dict[str, str] = {}
    for place, text in enumerate(texts):
        name = texts[place + 1] if place + 1 < len(texts) else ""
        is_empty = (text == "struct" and _is_empty_struct(texts, place + 2)) or (
            text == "enum" and _has_one_variant(read, texts, place + 2)
        )
        if is_empty and name in made and _is_compared(texts, place, name):
            yield f"has a type {name} of which all values are the same"
        elif text in ("const", "static") and name != "fn" and name in used:
            end = next((at for at in range(place, len(texts)) if texts[at] == ";"), len(texts))
            begin = next((at for at in range(place, end) if texts[at] == "="), end)
            value = " ".join(texts[begin + 1 : end])
            value = str(int(value, 0)) if re.fullmatch(r"0[xob][\da-fA-F]+|[1-9]\d*", value) else value
            same = values.setdefault(value, name)
            values.setdefault(name, name)
            if same != name or (name.isupper() and end - begin > 3 and re.fullmatch(r"[\d\s+*/-]+", value)):
                yield f"gives {name} and another constant one value"


def _compared_type(texts: Sequence[str], place: int) -> str:
    """The type whose values `PartialEq` at a place compares with each other; empty if it is not an implementation of that."""
    head = list(texts[place + 1 : place + 6])
    if head[:1] == ["for"]:
        return head[1] if len(head) > 1 else ""
    is_own = len(head) == 5 and head[0] == "<" and head[2:4] == [">", "for"] and head[1] in ("Self", head[4])
    return head[4] if is_own else ""


def _is_compared(texts: Sequence[str], place: int, name: str) -> bool:
    """Whether a type that is declared at a place derives or implements an equality."""
    begin = max((at for at in range(place) if texts[at] in (";", "}")), default=0)
    is_derived = "PartialEq" in texts[begin:place]
    return is_derived or any(text == "PartialEq" and _compared_type(texts, at) == name for at, text in enumerate(texts))


def _is_empty_struct(texts: Sequence[str], place: int) -> bool:
    after = " ".join(texts[place : place + 3])
    return after.startswith((";", "{ }", "( )", "( (", "where", "( PhantomData")) or "; 0 ]" in " ".join(
        texts[place : place + 6]
    )


def _has_one_variant(read: Sequence[RustToken], texts: Sequence[str], place: int) -> bool:
    opening = next((at for at in range(place, len(texts)) if texts[at] == "{"), len(texts) - 1)
    end = closing_token(read, opening)
    inner = [at for at in range(opening + 1, end) if texts[at] in ("(", "{", "[")]
    covered = {at for begin in inner for at in range(begin, closing_token(read, begin) + 1)}
    variants = [at for at in range(opening + 1, end) if at not in covered and read[at].kind == "word"]
    return len(variants) <= 1 and not covered
