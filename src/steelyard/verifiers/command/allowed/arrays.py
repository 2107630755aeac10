"""Whether an answer in JavaScript makes arrays with holes, which `every` and `forEach` of its tests pass over."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.verifiers.command.allowed.tokens import Token, closing, text_at

_ASSIGNING = frozenset(
    ("=", "+=", "-=", "*=", "/=", "%=", "**=", "||=", "&&=", "??=", "<<=", ">>=", ">>>=", "++", "--")
)
_DENSE_METHODS = frozenset(("join", "keys", "values", "entries"))


def unlisted_array(found: Sequence[Token]) -> str:
    """The first thing by which an array may get a hole; empty if there is none."""
    for place, token in enumerate(found):
        before, after = text_at(found, place - 1), text_at(found, place + 1)
        if token.kind == "text" and token.text == "length":
            return "length as a text"
        if token.kind == "name" and token.text == "delete" and before not in (".", "?."):
            return "delete"
        if _sets_length(found, place):
            return "another length"
        if (
            token.kind == "name"
            and token.text == "Array"
            and before not in (".", "?.")
            and _may_have_holes(found, place)
        ):
            return "an array with holes"
        if token.kind == "sign" and token.text in ("[", ",") and after == "," and not _is_in_pattern(found, place + 1):
            return "an array with holes"
    return ""


def _sets_length(found: Sequence[Token], place: int) -> bool:
    """Whether `.length` at a place is given a value, or a `++` there counts one up."""
    text, after = text_at(found, place), text_at(found, place + 1)
    if text in ("++", "--"):
        at = place + 1
        while at < len(found) and (found[at].kind == "name" or text_at(found, at) in (".", "?.", "(", "[")):
            at = closing(found, at) + 1 if text_at(found, at) in ("(", "[") else at + 1
        return "length" in (text_at(found, at - 1), text_at(found, at - 2))
    if text != "length" or text_at(found, place - 1) not in (".", "?."):
        return False
    return after in _ASSIGNING or after == "of" or (after in ("]", "}", ",") and _is_in_pattern(found, place))


def _may_have_holes(found: Sequence[Token], place: int) -> bool:
    """Whether `Array` at a place is more than a name before a dot, a type, or a call whose result is filled at once."""
    after = text_at(found, place + 1)
    if after in (".", "<"):
        return text_at(found, place + 2) in ("call", "apply", "bind")
    begin = place - 1 if text_at(found, place - 1) == "new" else place
    if after != "(":
        return text_at(found, place - 1) not in ("instanceof", "===", "!==", "==", "!=")
    end = closing(found, place + 1)
    if end == place + 2 or text_at(found, begin - 1) == "..." or _is_copied(found, begin):
        return False
    method = text_at(found, end + 2) if text_at(found, end + 1) == "." else ""
    if method == "fill" and text_at(found, end + 3) == "(":
        return _has_comma(found, end + 3)
    return method not in _DENSE_METHODS


def _is_copied(found: Sequence[Token], place: int) -> bool:
    """Whether what begins at a place is what `Array.from` copies, which fills holes."""
    return [text_at(found, at) for at in range(place - 4, place)] == ["Array", ".", "from", "("]


def _has_comma(found: Sequence[Token], place: int) -> bool:
    """Whether the brackets at a place have more than one part."""
    end, at = closing(found, place), place + 1
    while at < end:
        if text_at(found, at) in ("(", "[", "{"):
            at = closing(found, at)
        elif text_at(found, at) == ",":
            return True
        at += 1
    return False


def _is_in_pattern(found: Sequence[Token], place: int) -> bool:
    """Whether a comma stands in a pattern such as `[, second]`, which makes no array."""
    depth = 0
    for at in range(place - 1, -1, -1):
        text = text_at(found, at)
        depth += text in (")", "]", "}")
        if text not in ("(", "[", "{"):
            continue
        if depth:
            depth -= 1
            continue
        before, after = text_at(found, at - 1), text_at(found, closing(found, at) + 1)
        if text == "(":
            return after == "=>" or "function" in (before, text_at(found, at - 2))
        is_index = text == "[" and at > 0 and found[at - 1].kind == "name" and before not in ("const", "let", "var")
        if text in ("[", "{") and not is_index and after in ("=", "of") and before not in ("=", "=>", ")", "]"):
            return True
        if before in ("=", "=>", ")", "return", "of"):
            return False
    return False
