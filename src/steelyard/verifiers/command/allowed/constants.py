"""Whether the constants that a prompt asks for and tests use have plainly different values, so that a comparison of them says something."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from steelyard.text import word_set
from steelyard.verifiers.command.allowed.asked import AskedNames
from steelyard.verifiers.command.allowed.native_constants import native_constants, native_members
from steelyard.verifiers.command.allowed.tokens import Token, UnreadableCodeError, closing, text_at, tokens

_CONSTANT_PATTERN = re.compile(r"[A-Z][A-Z0-9_]+")
_TAKEN_PATTERN = re.compile(
    r"\bimport\s+\{([^{}]*)\}\s*from\s+[\"']\./|\b(?:const|let|var)\s+\{([^{}]*)\}\s*=\s*require\([\"']\./"
)
"""The names that tests in JavaScript take from an answer."""
_MODULE_PATTERN = re.compile(
    r"\bimport\s+\*\s*as\s+(\w+)\s+from\s*[\"']\./|\b(?:const|let|var)\s+(\w+)\s*=\s*(?:await\s+)?(?:require|import)\([\"']\./"
)
"""The name under which they have all of it."""
_ENDS = frozenset((",", ";", "}", ")", ""))
_STATEMENT_WORDS = word_set("return else case throw and or not co_return typeof await")


def equal_constants_of(
    found: Sequence[Token], asked: AskedNames, language: str, macros: Mapping[str, str] | None = None
) -> str:
    """The first constant that tests use and whose value is not plainly its own; empty if there is none."""
    try:
        tests = tokens(asked.tests, language)
        used = {token.text for token in tests if token.kind == "name"}
    except UnreadableCodeError:
        tests, used = [], asked.test_words
    named = {name for name in used & asked.words if _CONSTANT_PATTERN.fullmatch(name)}
    own = {token.text for token in found if token.kind == "name"} | set(macros or ())
    # what neither the answer nor its prompt has as a name of code is the library's, or a word
    named = {name for name in named if name in own or re.search(rf"\.\s*{name}\b", asked.tests)} - _library(asked.tests)
    called = set(re.findall(r"\b(\w+)\s*\(", asked.tests))
    named -= called
    is_native = language in ("c", "cpp")
    values = native_constants(found, macros or {}) if is_native else _values(found, language)
    members = native_members(found) if is_native else dict.fromkeys(_members(found), "")
    types = _types(found) - set(values)
    if is_native:
        more = (_qualified(tests, None) | (_bare(tests) & set(values))) - types
    elif language == "java":
        more = _qualified(tests, types)
    else:
        more = _of_module(tests, asked.tests) - called - types - _functions(found)
    # a single one is compared with plain data
    named |= more if len(named | more) > 1 else set()
    if strange := sorted(name for name in named if "" in values.get(name, () if name in members else {""})):
        return f"{strange[0]} without a plain value"
    plain = [value for name in named for value in values.get(name, ())]
    # members of one enumeration are looked at elsewhere, and those of two are never compared
    plain += {members[name] for name in named & set(members) - set(values)} & set(plain)
    return "constants with one value" if len(set(plain)) < len(plain) else ""


def _library(tests: str) -> set[str]:
    """The constants of the language's own objects that tests use, such as `Math.PI`."""
    named = re.findall(r"\b(?:Math|Number|Integer|Long|Double|Character|Float|System)\s*\.\s*([A-Z][A-Z0-9_]+)", tests)
    return set(named) | {"STEELYARD_END_OF_TESTS", "NULL", "EOF", "JSON", "URL", "INT_MAX", "INT_MIN"}


def _qualified(tests: Sequence[Token], owners: Collection[str] | None) -> set[str]:
    """The names that tests take from a type or a namespace and neither call nor declare something with: `Color::Red`."""
    named = set()
    for place, token in enumerate(tests):
        owner, at = "", place
        while text_at(tests, at - 1) in (".", "::"):
            at -= 2
            owner = text_at(tests, at)
        is_owned = owner in owners if owners is not None else text_at(tests, place - 1) == "::" and owner != ">"
        is_value = place + 1 < len(tests) and tests[place + 1].kind == "sign"
        is_value = is_value and tests[place + 1].text not in ("(", "{", "<", "::", ".", "?.", "=", "*", "&", "->")
        is_value = is_value and text_at(tests, at - 1) != "using"
        if owner and is_owned and is_value and token.kind == "name" and owner != "std":
            named.add(token.text)
    return named


def _of_module(tests: Sequence[Token], text: str) -> set[str]:
    """The names of values that tests in JavaScript take from a module: `red` of `import { red }`, `Color.red`, `colors.red`."""
    taken = set(re.findall(r"\w+", " ".join(map(" ".join, _TAKEN_PATTERN.findall(text)))))
    modules = {name for names in _MODULE_PATTERN.findall(text) for name in names if name}
    owners = {name for name in taken if name[:1].isupper()} | modules
    # what begins a path is no value of its own
    begun = set(re.findall(r"\b(\w+)\s*\.\s*[A-Za-z_]", text))
    return (_bare(tests) & taken) - begun | _qualified(tests, owners)


def _functions(found: Sequence[Token]) -> set[str]:
    """The names of functions in JavaScript that are nothing else as well."""
    named: dict[str, list[bool]] = {}
    for place, token in enumerate(found):
        after, value = text_at(found, place + 1), text_at(found, place + 2)
        is_declared = text_at(found, place - 1) in ("const", "let", "var", "function") or after == "="
        if token.kind == "name" and is_declared:
            end = closing(found, place + 2) if value == "(" else place + 2
            is_arrow = after == "=" and text_at(found, end + 1) == "=>"
            is_function = text_at(found, place - 1) == "function" or value in ("function", "async")
            named.setdefault(token.text, []).append(is_arrow or is_function)
    return {name for name, kinds in named.items() if kinds == [True]}


def _bare(tests: Sequence[Token]) -> set[str]:
    """The names by which tests read a value, without those that they declare."""
    read, declared = set(), set()
    for place, token in enumerate(tests):
        before, after = text_at(tests, place - 1), text_at(tests, place + 1)
        if token.kind != "name" or before in (".", "->", "::") or after in ("(", "::"):
            continue
        if place + 1 < len(tests) and tests[place + 1].kind == "name":
            continue
        is_typed = place > 0 and tests[place - 1].kind == "name" and before not in _STATEMENT_WORDS
        if is_typed or after == "=" or (before in ("*", "&", ">") and after in (";", ",", ")", "[")):
            declared.add(token.text)
        read.add(token.text)
    return read - declared


def _types(found: Sequence[Token]) -> set[str]:
    """The names of types and namespaces."""
    named = set()
    for place, token in enumerate(found):
        if token.text in (
            "struct",
            "class",
            "union",
            "enum",
            "namespace",
            "using",
            "interface",
            "record",
            "typename",
            "function",
        ):
            at = place + 2 if text_at(found, place + 1) in ("class", "struct") else place + 1
            named.add(text_at(found, at))
        elif token.text == "typedef":
            end = next((at for at in range(place, len(found)) if text_at(found, at) == ";"), place)
            named.add(text_at(found, end - 1))
    return named


def _values(found: Sequence[Token], language: str) -> dict[str, set[str]]:
    """By name, the plain values that code gives to it."""
    values: dict[str, set[str]] = {}
    for place, token in enumerate(found):
        if token.kind not in ("name", "text") or text_at(found, place + 1) not in ("=", ":"):
            continue
        at = place + 2
        sign = "-" if text_at(found, at) == "-" else ""
        at += len(sign)
        if at >= len(found) or text_at(found, place - 1) == "?":
            continue
        value = found[at]
        is_symbol = value.text == "Symbol" and text_at(found, at + 1) == "("
        if is_symbol and text_at(found, closing(found, at + 1) + 1) in _ENDS | {"export", "const"}:
            values.setdefault(token.text, set()).add(f"symbol {token.text}")
        elif value.kind in ("number", "text") and _ends(found, at + 1):
            is_sign = language == "java" and value.kind == "text" and len(value.text) == 1
            read = str(ord(value.text)) if is_sign else _number(sign + value.text)
            values.setdefault(token.text, set()).add(read)
    return values


def _ends(found: Sequence[Token], place: int) -> bool:
    return place >= len(found) or (
        found[place].kind != "text" and (found[place].text in _ENDS or found[place].kind == "name")
    )


def _number(text: str) -> str:
    """A number as it is compared, whichever way it is written; any other text as it is.

    >>> [_number(text) for text in ("1", "1.0", "0x1", "1L", "-0", "red")]
    ['1', '1', '1', '1', '0', 'red']
    """
    plain = text.replace("_", "")
    try:
        whole = int(plain.rstrip("uUlLn"), 0)
    except ValueError:
        try:
            return f"{float(plain.rstrip('fFdD')):.6g}"
        except ValueError:
            return text
    return str(whole) if abs(whole) < 10**6 else f"{float(whole):.12g}"


def _members(found: Sequence[Token]) -> set[str]:
    """The members of enumerations, which are looked at elsewhere or are always different."""
    names: set[str] = set()
    for place, token in enumerate(found):
        if token.text == "enum" and token.kind == "name":
            opening = next((at for at in range(place, len(found)) if text_at(found, at) in ("{", ";", "(")), len(found))
            if text_at(found, opening) == "{":
                names |= {each.text for each in found[opening : closing(found, opening)] if each.kind == "name"}
    return names
