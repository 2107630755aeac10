"""The names of Rust types as text: comparing one that a prompt states with one that the compiler prints."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from steelyard.text import word_set

PRIMITIVE_TYPES = word_set("i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64 bool char str")
COMPARABLE_TYPES = PRIMITIVE_TYPES | word_set(
    "String Vec Option Result Box Rc Arc HashMap HashSet BTreeMap BTreeSet VecDeque BinaryHeap Ordering"
)
"""The types whose names mean the same in a prompt and in what the compiler prints."""
TYPE_TOKEN_PATTERN = re.compile(r"'\w+|\w+(?:::\w+)*|->|[^\s\w]")
OPENING_MARKS = {"<": ">", "(": ")", "[": "]"}


class TypeTree(NamedTuple):
    """A type: its head, without a path, and what is in its brackets."""

    head: str
    """A name, `&`, `&mut`, `()` for tuples, `[]` for slices and arrays, and `_` for what cannot be compared."""
    parts: tuple[TypeTree, ...] = ()


UNKNOWN_TYPE = TypeTree("_")


@lru_cache(maxsize=4096)
def type_tree(text: str) -> TypeTree:
    """A type by its text; anything but names, references, tuples and slices cannot be compared."""
    tokens = [token for token in TYPE_TOKEN_PATTERN.findall(text) if not token.startswith("'")]
    tree, end = _parsed(tokens, 0)
    return tree if end == len(tokens) else UNKNOWN_TYPE


def type_prefix(text: str) -> str:
    """The type with which a text begins; empty when none does that could be compared."""
    tokens = list(TYPE_TOKEN_PATTERN.finditer(text))
    # a lifetime is part of the text and not of the tree
    kept = [token for token in tokens if not token[0].startswith("'")]
    tree, end = _parsed([token[0] for token in kept], 0)
    return "" if tree == UNKNOWN_TYPE else text[: kept[end - 1].end()] if 0 < end <= len(kept) else ""


def _parsed(tokens: list[str], place: int) -> tuple[TypeTree, int]:
    mark = tokens[place] if place < len(tokens) else ""
    if mark == "&":
        is_mutable = tokens[place + 1 : place + 2] == ["mut"]
        inner, end = _parsed(tokens, place + 1 + is_mutable)
        return TypeTree("&mut" if is_mutable else "&", (inner,)), end
    if mark in ("(", "["):
        parts, end = _list(tokens, place)
        return TypeTree(mark + OPENING_MARKS[mark], parts), end
    if not re.match(r"[^\W\d]", mark) or mark in ("impl", "dyn", "fn", "for", "mut", "const"):
        return UNKNOWN_TYPE, len(tokens)
    head = mark.rpartition("::")[2]
    if tokens[place + 1 : place + 2] != ["<"]:
        return TypeTree(head), place + 1
    parts, end = _list(tokens, place + 1)
    return TypeTree(head, parts), end


def _list(tokens: list[str], place: int) -> tuple[tuple[TypeTree, ...], int]:
    """The types between brackets, and the number of the token behind them; an array's length is left out."""
    closing = OPENING_MARKS[tokens[place]]
    parts: list[TypeTree] = []
    place += 1
    while place < len(tokens) and tokens[place] != closing:
        if tokens[place] == ";":
            while place < len(tokens) and tokens[place] != closing:
                place += 1
            break
        part, place = _parsed(tokens, place)
        parts.append(part)
        if place < len(tokens) and tokens[place] == ",":
            place += 1
        elif place < len(tokens) and tokens[place] not in (closing, ";"):
            return (UNKNOWN_TYPE,), len(tokens)
    return tuple(parts), place + 1


def agrees(stated: TypeTree, actual: TypeTree) -> bool:
    """Whether a type can be what was stated: a name that is not the standard library's can be anything."""
    if stated.head == "_" or actual.head == "_":
        return True
    if stated.head not in COMPARABLE_TYPES and stated.head not in ("&", "&mut", "()", "[]"):
        return True
    if stated.head in ("Result", "HashMap", "HashSet", "Vec", "Box") and len(stated.parts) != len(actual.parts):
        # an alias such as io::Result<T>, or parameters that have defaults
        return stated.head == actual.head
    return (
        stated.head == actual.head
        and len(stated.parts) == len(actual.parts)
        and all(map(agrees, stated.parts, actual.parts))
    )
