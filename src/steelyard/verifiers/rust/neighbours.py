"""Which compile errors of answers that share a crate are those that each would have by itself.

Two things could make a difference. The compiler stops after a stage that found errors, so the errors of one answer can keep it from looking
for further ones in another: what it says is complete only when it went on to the bodies of functions. And an implementation
in one answer can change what is inferred in another, which an honest answer hardly ever does and a hostile one may try.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from steelyard.records import Diagnostic
from steelyard.verifiers.rust.source import BRACKET_PAIRS, RustToken, after_generics

BODY_CODES = frozenset(
    [
        "E0023",
        "E0026",
        "E0027",
        "E0040",
        "E0054",
        "E0057",
        "E0061",
        "E0067",
        "E0070",
        "E0277",
        "E0282",
        "E0283",
        "E0308",
        "E0368",
        "E0369",
        "E0560",
        "E0599",
        "E0600",
        "E0604",
        "E0605",
        "E0606",
        "E0607",
        "E0608",
        "E0609",
        "E0610",
        "E0614",
        "E0615",
        "E0616",
        "E0618",
        "E0620",
        "E0689",
    ]
)
"""Codes of errors that are found when the types in functions are checked, which the compiler does for all answers or for none."""
NAME_CODES = frozenset(["E0412", "E0422", "E0423", "E0424", "E0425", "E0432", "E0433", "E0531", "E0574"])
"""Codes of names that were not found, after which the compiler goes on."""
INFERENCE_CODES = frozenset(["E0117", "E0119", "E0210", "E0275", "E0282", "E0283", "E0284", "E0790"])
"""Codes of errors that an implementation elsewhere in the crate can cause."""
TYPE_KEYWORDS = frozenset({"struct", "enum", "union"})
QUOTE_END_PATTERN = re.compile(r"""["']#*\w*\Z""")
MAX_HEAD_TOKENS = 400
"""No honest head of an `impl` has more than a few hundred tokens."""


def reached_bodies(errors: Mapping[str, Sequence[Diagnostic]]) -> bool:
    """Whether the compiler went on to the bodies of functions, given the errors of all answers."""
    return any(error.code in BODY_CODES for found in errors.values() for error in found)


def stops_the_compiler(errors: Iterable[Diagnostic]) -> bool:
    """Whether errors of one answer may have kept the compiler from looking further."""
    return not all(error.code in NAME_CODES for error in errors)


def depends_on_inference(errors: Iterable[Diagnostic]) -> bool:
    """Whether another answer can have caused one of the errors."""
    return any(error.code in INFERENCE_CODES for error in errors)


def may_change_inference(code: Sequence[RustToken]) -> bool:
    """Whether an answer may hold an implementation that changes what is inferred in other answers of its crate; true in doubt.

    Only a trait with arguments can be implemented for a foreign type (`impl Mul<Mine> for f64`). It is harmless for a type that
    the answer defines at its top level: there the name cannot mean another type.
    """
    own: set[str] = set()
    heads: list[tuple[int, int]] = []
    depth = 0
    for number, token in enumerate(code):
        text = token.text
        depth += (text in ("{", "(", "[")) - (text in ("}", ")", "]"))
        if token.kind != "word":
            continue
        if text in ("macro_rules", "macro"):
            return True
        if text == "impl":
            heads.append((number, depth))
        elif text in TYPE_KEYWORDS and not depth and number + 1 < len(code) and not _is_conditional(code, number):
            own.add(code[number + 1].text)
    return any(not _is_harmless(code, number, depth, own) for number, depth in heads)


def _is_conditional(code: Sequence[RustToken], number: int) -> bool:
    """Whether the item whose keyword is at this token may be left out by an attribute."""
    for place in range(number - 1, -1, -1):
        text = code[place].text
        if text in ("}", ";"):
            return False
        if text.startswith(("cfg", "test")):
            return True
    return False


def _is_harmless(code: Sequence[RustToken], number: int, depth: int, own: set[str]) -> bool:
    """Whether the `impl` at this token has a trait without arguments, or a type of the answer's own, or is no item."""
    has_arguments = False
    brackets = 0
    begin = after_generics(code, number + 1)
    for place in range(begin, min(len(code), begin + MAX_HEAD_TOKENS)):
        text = code[place].text
        # a block in arguments is a constant, any other ends the head
        is_argument = brackets > 0 or code[place - 1].text in ("<", ",", "=")
        if text in ("(", "[") or (text == "{" and is_argument):
            brackets += 1
        elif text in (")", "]", "}") and brackets:
            brackets -= 1
        elif not brackets and text in ("{", "}", ")", "]", ";", "where"):
            return True
        elif text == "for" and not (place + 1 < len(code) and code[place + 1].text == "<"):
            return not has_arguments or (depth == 0 and _type_name(code, place + 1) in own)
        has_arguments = has_arguments or text in ("<", "$")
    return len(code) < begin + MAX_HEAD_TOKENS


def _type_name(code: Sequence[RustToken], place: int) -> str:
    """The first word of the type at this token, behind references to it."""
    while place < len(code) and (code[place].text in ("&", "mut") or code[place].kind == "lifetime"):
        place += 1
    return code[place].text if place < len(code) else ""


def is_never_closed(code: Sequence[RustToken]) -> bool:
    """Whether a bracket or a text of the answer is not closed, after which the compiler looks at no other answer."""
    expected: list[str] = []
    for token in code:
        if token.text in BRACKET_PAIRS:
            expected.append(BRACKET_PAIRS[token.text])
        elif token.text in BRACKET_PAIRS.values() and (not expected or expected.pop() != token.text):
            return True
    last = code[-1] if code else None
    is_open = last is not None and last.kind == "text" and not QUOTE_END_PATTERN.search(last.text)
    return bool(expected) or is_open
