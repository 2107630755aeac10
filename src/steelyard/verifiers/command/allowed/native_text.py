"""Whether the text of an answer in C or C++ has nothing but listed headers and plain code."""

from __future__ import annotations

import re
from collections.abc import Sequence

from steelyard.verifiers.code.comments import without_comments
from steelyard.verifiers.command.allowed import vocabulary
from steelyard.verifiers.command.allowed.asked import AskedNames
from steelyard.verifiers.command.allowed.constants import equal_constants_of
from steelyard.verifiers.command.allowed.native_constants import equal_members
from steelyard.verifiers.command.allowed.native_types import (
    adds_to_library,
    caught_alias,
    own_comparison,
)
from steelyard.verifiers.command.allowed.tokens import Token, closing, text_at, tokens

_DIRECTIVE_PATTERN = re.compile(r"^[ \t]*#[ \t]*(\w*)[ \t]*(.*)$", re.MULTILINE)
_MACRO_PATTERN = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\b(?!\()[ \t]*(.*)$", re.MULTILINE)
"""A macro without parameters."""
_SPLICE_PATTERN = re.compile(r"\\\r?\n")


def unlisted_in_c(code: str, asked: AskedNames) -> str:
    """The first thing in an answer that the list does not have; empty if there is none."""
    return _in_native(code, asked, "c", vocabulary.C_HEADERS)


def unlisted_in_cpp(code: str, asked: AskedNames) -> str:
    """The first thing in an answer that the list does not have; empty if there is none."""
    return _in_native(code, asked, "cpp", vocabulary.CPP_HEADERS)


def _in_native(code: str, asked: AskedNames, language: str, headers: frozenset[str]) -> str:
    """What the text of an answer in C or C++ holds beside listed headers and plain code; `native` looks at its object file."""
    spliced = _SPLICE_PATTERN.sub("", code)
    if "??" in re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', spliced) or "%:" in spliced:
        return "a sign in another spelling"
    is_threaded = bool(vocabulary.C_THREAD_PATTERN.search(asked.prompt))
    if is_threaded:
        headers |= vocabulary.C_THREAD_HEADERS
    plain = without_comments(spliced)
    defined: list[str] = []
    guard = ""
    for directive in _DIRECTIVE_PATTERN.finditer(plain):
        word, rest = directive[1], directive[2].strip()
        if word == "include":
            name = rest.strip('<>" ')
            is_own = rest.startswith('"') and name.endswith((".h", ".hpp"))
            if name not in headers and not is_own:
                return f"#include {rest[:60]}"
            if early := next((macro for macro in defined if macro not in vocabulary.C_DEFINES and macro != guard), ""):
                return f"#define {early} before an #include"
        elif word == "define":
            name = re.split(r"\W", rest, maxsplit=1)[0]
            if name.startswith("_") and name not in vocabulary.C_DEFINES and name != guard:
                return f"#define {name}"
            defined.append(name)
        elif (
            word == "ifndef"
            and not guard
            and re.match(rf"\s*#\s*define\s+{re.escape(rest)}\b", plain[directive.end() :])
        ):
            guard = rest
        elif not (
            word in ("endif", "")
            or (word == "pragma" and rest == "once")
            or (word in ("ifdef", "else") and rest in ("__cplusplus", ""))
        ):
            return f"#{word}"
    body = _DIRECTIVE_PATTERN.sub(lambda found: found[2] if found[1] == "define" else "", plain)
    found = tokens(body, language)
    problem = _native_words(found, is_threaded) or equal_members(found, asked.test_words)
    macros = {each[1]: each[2] for each in _MACRO_PATTERN.finditer(plain)}
    code_alone = tokens(_DIRECTIVE_PATTERN.sub("", plain), language)
    problem = problem or equal_constants_of(code_alone, asked, language, macros)
    if language == "cpp" and not problem:
        is_pasted = any("##" in each[2] for each in _DIRECTIVE_PATTERN.finditer(plain) if each[1] == "define")
        problem = (
            "a name that is pasted together"
            if is_pasted
            else own_comparison(found, defined) or adds_to_library(found, defined) or caught_alias(found, asked.tests)
        )
    return problem


def _native_words(found: Sequence[Token], is_threaded: bool) -> str:
    for place, token in enumerate(found):
        if token.kind != "name":
            continue
        is_reserved = token.text.startswith("__") or bool(re.match(r"_[A-Z]", token.text))
        if is_reserved and token.text not in vocabulary.C_RESERVED:
            return token.text
        if token.text in ("__attribute__", "alignas"):
            end = closing(found, place + 1) if text_at(found, place + 1) == "(" else place
            named = {each.text for each in found[place + 1 : end] if each.kind == "name"}
            if strange := named - vocabulary.C_ATTRIBUTES:
                return f"{token.text} {min(strange)}"
        is_plain = (token.text == "volatile" and is_threaded) or (
            token.text == "extern" and _is_function_declaration(found, place)
        )
        if token.text in vocabulary.C_UNLISTED_KEYWORDS and not is_plain:
            return token.text
    return ""


def _is_function_declaration(found: Sequence[Token], place: int) -> bool:
    end = next((at for at in range(place, len(found)) if found[at].text in (";", "{", "=")), len(found))
    return any(token.text == "(" for token in found[place:end])
