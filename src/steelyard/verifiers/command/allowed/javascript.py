"""Whether an answer in JavaScript names nothing but what its list has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from steelyard.verifiers.command.allowed import vocabulary
from steelyard.verifiers.command.allowed.arrays import unlisted_array
from steelyard.verifiers.command.allowed.asked import AskedNames
from steelyard.verifiers.command.allowed.javascript_types import unlisted_type
from steelyard.verifiers.command.allowed.tokens import BRACKETS, Token, closing, text_at, tokens

_LOOSE_PATTERN = re.compile(r"(?<![=!<>])[=!]=(?!=)(?!\s*(?:null|undefined)\b)|\b(?:not)?[eE]qual\b")
"""A comparison that makes a text or a number of an object."""
_STRICT_PATTERN = re.compile(
    r"assert/strict\b|\bstrict\s*(?:as|:)\s*\w+|\.\s*strict\b|\bstrictEqual\s*(?:as|:)\s*equal\b"
)
"""What makes `equal` strict."""
_GROUP_KEYWORDS = frozenset(("if", "for", "while", "switch", "with"))


def unlisted_in_javascript(code: str, asked: AskedNames) -> str:
    """The first thing in an answer that the list does not have; empty if there is none."""
    found = tokens(code, "javascript")
    declared = _declared_in_javascript(found)
    allowed = vocabulary.JAVASCRIPT_GLOBALS | vocabulary.JAVASCRIPT_KEYWORDS
    if vocabulary.JAVASCRIPT_ASYNC_PATTERN.search(asked.prompt + asked.tests):
        allowed |= vocabulary.JAVASCRIPT_ASYNC_GLOBALS
    allowed |= {"Proxy"} & asked.words
    keys = _keys_of_javascript(found)
    members = (
        vocabulary.JAVASCRIPT_MEMBERS
        | {token.text for token in found if token.text.startswith("#")}
        | keys
        | asked.words
        | asked.test_words
        | declared
    )
    members -= vocabulary.JAVASCRIPT_IMPLICIT_METHODS - {"toString", "then", "toLocaleString"}
    for place, token in enumerate(found):
        if token.kind != "name":
            continue
        before = found[place - 1].text if place and found[place - 1].kind != "text" else ""
        after = text_at(found, place + 1)
        if before in (".", "?."):
            owner = text_at(found, place - 2)
            if owner == "console":
                if token.text not in vocabulary.JAVASCRIPT_PRINTING or asked.is_printed or after != "(":
                    return f"console.{token.text}"
            elif owner == "import" or token.text not in members:
                return f".{token.text}"
            elif (
                token.text == "create"
                and after == "("
                and any(
                    found[at].text == "," for at in range(place, closing(found, place + 1)) if found[at].kind == "sign"
                )
            ):
                return "Object.create with properties"
        elif token.text == "console":
            if after not in (".", "?."):
                return "console"
        elif token.text in vocabulary.JAVASCRIPT_GLOBALS - {"module", "exports"} and after in ("=", "++", "--", "+="):
            return f"another {token.text}"
        elif token.text.startswith("@"):
            return token.text
        elif token.text.startswith("#"):
            continue
        elif not (
            token.text in declared or token.text in allowed or (after == ":" and before in ("{", ",", ";", "}", ""))
        ) and not (token.text in keys and _is_defined_here(found, place)):
            return token.text
    return _meaning_in_javascript(found, keys, asked) or unlisted_array(found) or unlisted_type(found, asked)


def _is_defined_here(found: Sequence[Token], place: int) -> bool:
    """Whether a name is that of a method or a field of a class or an object, rather than a call."""
    after = text_at(found, place + 1)
    if after == "(":
        return text_at(found, closing(found, place + 1) + 1) in ("{", ":")
    before = text_at(found, place - 1)
    starts = ("{", "}", ";", "static", ",", "readonly", "private", "public")
    return after in ("=", ";", "}", ",", ":") and before in starts


def _keys_of_javascript(found: Sequence[Token]) -> frozenset[str]:
    """The names of properties that code gives to its own objects."""
    keys = set()
    for place, token in enumerate(found):
        if token.kind != "name":
            continue
        before, after = text_at(found, place - 1), text_at(found, place + 1)
        is_set = before == "." and after in ("=", "+=", "-=", "*=", "||=", "??=", "++", "--")
        if is_set or (before not in (".", "?.") and _is_defined_here(found, place)):
            keys.add(token.text)
    return frozenset(keys)


def _declared_in_javascript(found: Sequence[Token]) -> frozenset[str]:
    """The names of variables, functions, classes and parameters of code."""
    names: set[str] = set()
    for place, token in enumerate(found):
        if token.kind == "name" and token.text in ("const", "let", "var"):
            names |= _declarators(found, place + 1)
        elif token.kind == "name" and token.text in ("function", "class", "import", "interface", "type", "enum"):
            at = place + 2 if text_at(found, place + 1) in ("*", "type") else place + 1
            if at < len(found) and found[at].kind == "name":
                names.add(found[at].text)
            if token.text == "import":
                names |= _names_in(
                    found, place + 1, next((n for n in range(place, len(found)) if found[n].text == "from"), place)
                )
        elif token.text == "=>" and place and found[place - 1].kind == "name":
            names.add(found[place - 1].text)
        elif token.text == "(" and token.kind == "sign":
            end = closing(found, place)
            after = text_at(found, end + 1)
            if after in ("=>", "{", ":") and text_at(found, place - 1) not in _GROUP_KEYWORDS:
                names |= _names_in(found, place + 1, end)
    return frozenset(names - vocabulary.JAVASCRIPT_KEYWORDS)


def _declarators(found: Sequence[Token], place: int) -> set[str]:
    names: set[str] = set()
    while place < len(found):
        if found[place].text in ("{", "[") and found[place].kind == "sign":
            end = closing(found, place)
            names |= _names_in(found, place, end)
            place = end + 1
        elif found[place].kind == "name":
            names.add(found[place].text)
            place += 1
        # the value up to the next comma of the same list
        while place < len(found) and found[place].text not in (",", ";", "of", "in", ")"):
            if found[place].text in BRACKETS and found[place].kind == "sign":
                place = closing(found, place)
            elif found[place].text in (
                "}",
                "const",
                "let",
                "var",
                "function",
                "return",
                "if",
                "for",
                "class",
                "export",
            ):
                return names
            place += 1
        if place >= len(found) or found[place].text != ",":
            return names
        place += 1
    return names


def _names_in(found: Sequence[Token], begin: int, end: int) -> set[str]:
    """The names of a list of parameters or of a pattern, without the values that they have otherwise."""
    names = set()
    for place in range(begin, min(end, len(found))):
        is_value = place > begin and text_at(found, place - 1) in ("=", ".", "?.")
        if found[place].kind == "name" and not is_value:
            names.add(found[place].text)
    return names


def _meaning_in_javascript(found: Sequence[Token], keys: frozenset[str], asked: AskedNames) -> str:
    """What gives a result another meaning than its value."""
    functions = _functions_of_javascript(found)
    # elsewhere it may be the global object
    classes = [
        range(at, closing(found, at))
        for begin, token in enumerate(found)
        if token.text == "class" and token.kind == "name"
        for at in [next((n for n in range(begin, len(found)) if found[n].text == "{"), len(found) - 1)]
    ]
    own = {other.text for one, other in pairwise(found) if one.text in ("class", "interface")}
    is_loose = _is_loose(asked.tests)
    is_by_json = bool(re.search(r"\bstringify\b(?:[^;\n]*\bstringify\b)" + "?" * is_loose, asked.tests))
    hooks = vocabulary.JAVASCRIPT_IMPLICIT_METHODS | ({"toString"} if is_loose else set())
    hooks |= {"toJSON"} if is_by_json else set()
    for place, token in enumerate(found):
        before, after = text_at(found, place - 1), text_at(found, place + 1)
        if before == "." and after != "(" and token.text in hooks & {"toString", "toJSON"} - asked.called:
            return f".{token.text}"
        if token.kind == "name" and before not in (".", "?."):
            is_hook = token.text in hooks and token.text in keys
            is_constructor = token.text == "constructor" and after == "("
            if is_hook and not is_constructor and token.text not in asked.called:
                return token.text
            is_accessor = token.text == "get" and text_at(found, place + 2) == "("
            if is_accessor and after in vocabulary.JAVASCRIPT_MEMBERS - asked.called:
                return f"get {after}"
            if token.text == "extends" and after not in vocabulary.JAVASCRIPT_BASES | asked.called | own:
                return f"extends {after}"
            if token.text == "import" and after in ("(", "."):
                return f"import{after}"
            if token.text == "this" and after not in (".", "?.") and not any(place in body for body in classes):
                return "this"
        # a property whose name is computed, with a function in it
        if token.text == "]" and token.kind == "sign" and after in (":", "=", "("):
            value = place + 2 if after != "(" else place + 1
            if _is_function(found, value, is_method=after == "(") or (
                after == "=" and text_at(found, value) in functions
            ):
                opening = _opening(found, place)
                if after != "=" and text_at(found, opening - 1) not in ("{", ",", "}", "async", "*", "static"):
                    continue
                if text_at(found, place - 1) not in ("iterator", "asyncIterator"):
                    return "a function under a name that is computed"
    judging = keys & vocabulary.JAVASCRIPT_METHODS & set(re.findall(r"\.\s*(\w+)", asked.tests)) - asked.called
    if judging:
        return f"its own {min(judging)}"
    return _built_word(found)


def _is_loose(tests: str) -> bool:
    """Whether tests compare with `==`, or with an `equal` that does."""
    plain = re.sub(r"//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", '""', tests)
    is_strict = bool(_STRICT_PATTERN.search(tests))
    return any(not (is_strict and found[0].endswith("qual")) for found in _LOOSE_PATTERN.finditer(plain))


def _functions_of_javascript(found: Sequence[Token]) -> set[str]:
    """The names of functions, and of variables that hold one."""
    named = {
        after.text for before, after in pairwise(found) if before.text in ("function", "*") and after.kind == "name"
    }
    for place in range(2, len(found)):
        if (
            found[place - 1].text == "="
            and found[place - 2].kind == "name"
            and _is_function(found, place, is_method=False)
        ):
            named.add(found[place - 2].text)
    return named


def _opening(found: Sequence[Token], place: int) -> int:
    depth = 0
    for at in range(place, -1, -1):
        if found[at].kind == "sign":
            depth += (found[at].text == "]") - (found[at].text == "[")
            if not depth:
                return at
    return 0


def _is_function(found: Sequence[Token], place: int, *, is_method: bool) -> bool:
    text = text_at(found, place)
    if text == "(":
        return text_at(found, closing(found, place) + 1) == ("{" if is_method else "=>")
    if is_method:
        return False
    return text in ("function", "async") or text_at(found, place + 1) == "=>"


def _built_word(found: Sequence[Token]) -> str:
    """A word that the language calls by itself, in a text or made of several."""
    texts = {token.text for token in found if token.kind == "text" and token.text}
    unwritten = {"then", "inspect", "toLocaleString"}
    for word in vocabulary.JAVASCRIPT_IMPLICIT_METHODS - unwritten | {"toString", "toJSON"}:
        if any(word in text or word[::-1] in text for text in texts):
            return word
        made = {0}
        for place in range(len(word)):
            if place in made:
                made |= {place + len(text) for text in texts if word.startswith(text, place)}
        if len(word) in made:
            return f"{word}, made of texts"
    return ""
