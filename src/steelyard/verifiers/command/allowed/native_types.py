"""Whether what an answer in C or C++ declares is equal only where its contents are: containers and operators."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from steelyard.text import word_set
from steelyard.verifiers.command.allowed.tokens import Token, closing, text_at

_ELEMENT_TYPES = {
    **dict.fromkeys(("set", "multiset", "unordered_set", "unordered_multiset"), 1),
    **dict.fromkeys(("map", "multimap", "unordered_map", "unordered_multimap"), 2),
    **dict.fromkeys(("vector", "deque", "list", "forward_list"), 1),
}
"""By container, how many of its template arguments say what it holds; those after them say how it compares or gets its memory."""
_DEDUCED = word_set("vector deque list forward_list")
"""Containers whose arguments may be left out: they compare their elements one by one."""
_TEXT_TEMPLATES = word_set("char_traits basic_string basic_string_view")
_ORDER_PATTERN = re.compile(r"std :: (?:less|greater) < [\w:<> ]*>")
_LIBRARY_NAMESPACES = word_set("std __gnu_cxx __cxxabiv1")
_COMPARISONS = frozenset(("==", "!=", "<", ">", "<=", ">="))


def own_comparison(found: Sequence[Token], macros: Collection[str]) -> str:
    """The first container, text or operator in code in C++ that compares in a way of its own; empty if there is none."""
    has_short_names = any(
        token.text == "using" and text_at(found, place + 1) in ("namespace", "std") for place, token in enumerate(found)
    )
    for place, token in enumerate(found):
        if token.kind != "name":
            continue
        if token.text in _TEXT_TEMPLATES:
            return token.text
        if token.text in _ELEMENT_TYPES and (problem := _container(found, place, macros, has_short_names)):
            return problem
        if token.text == "operator" and (problem := _operator(found, place)):
            return problem
    return ""


def adds_to_library(found: Sequence[Token], macros: Collection[str]) -> str:
    """What in an answer in C++ defines something in a namespace of the library's; empty if there is nothing."""
    texts = [text_at(found, place) for place in range(len(found))]
    for place, text in enumerate(texts):
        after = texts[place + 1] if place + 1 < len(texts) else ""
        if (
            text == "namespace"
            and texts[place - 1 : place] != ["using"]
            and (after in _LIBRARY_NAMESPACES or after in macros)
        ):
            return f"namespace {after}"
        if text == "template" and texts[place + 1 : place + 3] == ["<", ">"]:
            end = next((at for at in range(place, len(texts)) if texts[at] in ("{", ";")), len(texts))
            if any(each in _LIBRARY_NAMESPACES or each in macros for each in texts[place:end]):
                return "a template of the library that is specialised"
        if text in _LIBRARY_NAMESPACES and _is_definition(found, texts, place + 1):
            return "a function of the library's that it defines"
    return ""


def caught_alias(found: Sequence[Token], tests: str) -> str:
    """The first class that tests catch and that the answer only gives another name; empty if there is none."""
    caught = set(re.findall(r"\bcatch\s*\(\s*(?:const\s+)?(?:\w+::)*(\w+)", tests))
    named = {token.text for token in found if token.kind == "name"}
    declared = {text_at(found, place + 1) for place, token in enumerate(found) if token.text in ("class", "struct")}
    aliases = sorted(name for name in caught & named - declared if name[:1].isupper())
    return f"{aliases[0]}, which is not a class of its own" if aliases else ""


def _is_definition(found: Sequence[Token], texts: Sequence[str], at: int) -> bool:
    """Whether the rest of a qualified name is followed by parameters and a body."""
    while at + 1 < len(texts) and texts[at] == "::" and texts[at + 1].isidentifier():
        at += 2
    if at >= len(texts) or texts[at] != "(":
        return False
    end = closing(found, at) + 1
    while end < len(texts) and texts[end] in ("const", "noexcept"):
        end += 1
    return end < len(texts) and texts[end] == "{"


def _container(found: Sequence[Token], place: int, macros: Collection[str], has_short_names: bool) -> str:
    name, before, after = found[place].text, text_at(found, place - 1), text_at(found, place + 1)
    if after != "<":
        is_imported = before == "::" and text_at(found, place - 3) == "using" and after == ";"
        is_argument = before in ("<", ",") and after in (">", ",")
        is_short = has_short_names and (after in ("(", "{") or is_argument or after.isidentifier())
        is_type = (before == "::" and not is_imported) or (is_short and before not in (".", "->"))
        return f"{name} without its types" if is_type and name not in _DEDUCED else ""
    end = _closing_angle(found, place + 1)
    inside = found[place + 2 : end]
    if any(token.text in ("...", "__VA_ARGS__") or token.text in macros for token in inside):
        return f"{name} of types that are not written out"
    parts = list(comma_parts(found, place + 2, end))
    for part in parts[_ELEMENT_TYPES[name] :]:
        if not _ORDER_PATTERN.fullmatch(joined(part)):
            return f"{name} with {joined(part)[:40]}"
    return ""


def _operator(found: Sequence[Token], place: int) -> str:
    """An operator that compares and does more than to compare each member with the same one of the other side."""
    sign, at = text_at(found, place + 1), place + 2
    if sign == "<=" and text_at(found, at) == ">":
        sign, at = "<=>", at + 1
    if sign in ("<", ">") and text_at(found, at) == sign and text_at(found, at + 1) == "(":
        return ""  # `<<` and `>>`
    if sign not in _COMPARISONS and sign != "<=>":
        return ""
    if text_at(found, at) != "(":
        return f"an operator{sign} of its own"
    end = closing(found, at)
    opening = next((where for where in range(end, len(found)) if found[where].text in ("{", ";", "=")), len(found))
    if text_at(found, opening) != "{":
        return ""
    names = [re.escape(part[-1].text) for part in comma_parts(found, at + 1, end) if part]
    if not 1 <= len(names) <= 2:
        return f"an operator{sign} of its own"
    body = joined(found[opening + 1 : closing(found, opening)])
    terms = body.removeprefix("return ").removesuffix(" ;").split(" && ")
    other = names[-1]
    first, owner = (r"\* this", "(?:this -> )?") if len(names) == 1 else (names[0], rf"{names[0]} \. ")
    same = re.compile(rf"{owner}(?!{other} )(\w+) {re.escape(sign)} {other} \. \1")
    opposite = re.compile(rf"! \( {first} (?:==|<|>) {other} \)|{other} [<>] {first}")
    is_plain = (sign in ("==", "<", ">") and all(same.fullmatch(term) for term in terms)) or (
        sign != "==" and bool(opposite.fullmatch(terms[0])) and len(terms) == 1
    )
    return "" if is_plain else f"an operator{sign} of its own"


def comma_parts(found: Sequence[Token], start: int, end: int, brackets: str = "()[]{}<>") -> Iterator[Sequence[Token]]:
    """What stands between the commas from one place to another, outside of inner brackets."""
    depth, begin = 0, start
    for at in range(start, min(end, len(found))):
        text = text_at(found, at)
        depth += (text in tuple(brackets[::2])) - (text in tuple(brackets[1::2]))
        if text == "," and depth <= 0:
            yield found[begin:at]
            begin = at + 1
    if begin < end:
        yield found[begin:end]


def _closing_angle(found: Sequence[Token], place: int) -> int:
    depth, at = 0, place
    while at < len(found):
        if found[at].kind == "sign" and found[at].text in ("(", "[", "{"):
            at = closing(found, at)
        elif text_at(found, at) in ("<", ">"):
            depth += 1 if text_at(found, at) == "<" else -1
        if depth == 0 or text_at(found, at) == ";":
            return at
        at += 1
    return at


def joined(found: Sequence[Token]) -> str:
    """The texts of tokens with a space between them."""
    return " ".join(token.text for token in found)
