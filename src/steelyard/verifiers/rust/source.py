"""Rust source seen as tokens: what an answer defines, and the file that it becomes.

Nothing here parses Rust. A reply is hostile and may not even be Rust, so everything is decided on tokens, in one pass
that respects strings, raw strings, characters, lifetimes and nested comments. Where this reading and the compiler's
could differ, the difference may cost the answer its verdict but never win it one.
"""

from __future__ import annotations

import bisect
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

RUST_TOKEN_PATTERN = re.compile(
    r"""
    [\s\u200e\u200f]*+
    (?: (?P<inner> //! [^\n]* )
    | (?P<comment> // [^\n]* )
    | (?P<nested> /\* )
    | (?P<raw> [bc]? r (?P<hashes>\#*) " )
    | (?P<text> [bc]? " [^"\\]* (?: \\. [^"\\]* )* (?P<closed>")? )
    | (?P<character> b? ' (?: \\ (?: u\{ [0-9a-fA-F_]* \} | x[0-9a-fA-F]{2} | . ) | [^\\'\n] ) ' )
    | (?P<lifetime> ' \w+ )
    | (?P<word> (?:r\#)? [^\W\d] \w* )
    | (?P<number> \d \w* )
    | (?P<mark> :: | -> | => | . ) )
    """,
    re.VERBOSE | re.DOTALL,
)
LITERAL_SUFFIX_PATTERN = re.compile(r"[^\W\d]\w*")
SHEBANG_PATTERN = re.compile(r"\ufeff?#!(?!(?:\s|//[^\n]*\n|/\*.*?\*/)*\[)[^\n]*", re.DOTALL)
"""A first line for a shell, which the compiler skips; `#![` begins an attribute instead."""
COMMENT_EDGE_PATTERN = re.compile(r"/\*|\*/")
BRACKET_PAIRS = {"(": ")", "[": "]", "{": "}"}
TYPE_KEYWORDS = {"struct", "enum", "trait", "type", "union"}
ITEM_QUALIFIERS = {"async", "const", "unsafe", "extern"}


class RustToken(NamedTuple):
    """A word, a mark or a literal, and its position."""

    kind: str
    """`word`, `mark`, `text`, `number`, `lifetime`, or `inner` for a comment that documents what it is in."""
    text: str
    """A word without its `r#`, as the compiler compares it."""
    start: int
    end: int


def rust_tokens(source: str) -> list[RustToken]:
    """The tokens of a source, comments left out; what is never closed is one token to the end."""
    found: list[RustToken] = []
    shebang = SHEBANG_PATTERN.match(source)
    position = shebang.end() if shebang else 0
    while position < len(source):
        match = RUST_TOKEN_PATTERN.match(source, position)
        if match is None:
            break
        kind = match.lastgroup or ""
        start, position = match.start(kind), match.end()
        if kind == "comment":
            continue
        if kind == "nested":
            position = _comment_end(source, start)
            if not source.startswith("/*!", start):
                continue
            kind = "inner"
        elif kind == "raw":
            closing = source.find('"' + match["hashes"], position)
            position = len(source) if closing < 0 else closing + 1 + len(match["hashes"])
        if kind in ("raw", "text", "character"):
            kind = "text"
            if suffix := LITERAL_SUFFIX_PATTERN.match(source, position):
                # the compiler takes a word behind a literal for a part of it, even one that could begin the next literal
                position = suffix.end()
        text = source[start:position]
        if kind == "word":
            text = unicodedata.normalize("NFC", text.removeprefix("r#"))
        found.append(RustToken(kind, text, start, position))
    return found


def _comment_end(source: str, start: int) -> int:
    depth = 0
    for edge in COMMENT_EDGE_PATTERN.finditer(source, start):
        depth += 1 if edge[0] == "/*" else -1
        if not depth:
            return edge.end()
    return len(source)


class EditedSource(NamedTuple):
    """A source with pieces put in, and the way back from its columns to those of the original."""

    text: str
    original: str
    columns: dict[int, list[tuple[int, int]]]
    """By line: the columns where something was put in, in the edited text, and how long it is."""

    def column(self, line: int, column: int) -> int:
        """The column of the original that is at this place; lines are the same in both."""
        shift = 0
        for place, length in self.columns.get(line, ()):
            if column >= place + length:
                shift += length
            elif column > place:
                return place - shift
        return column - shift


def edited_source(
    source: str, insertions: Sequence[tuple[int, str]], blanks: Sequence[tuple[int, int]] = ()
) -> EditedSource:
    """The source with texts put in at their places, none of which may hold a newline, and stretches blanked out."""
    for start, end in blanks:
        source = source[:start] + re.sub(r"[^\n]", " ", source[start:end]) + source[end:]
    starts = [0, *(match.end() for match in re.finditer("\n", source))]
    columns: dict[int, list[tuple[int, int]]] = {}
    pieces: list[str] = []
    since = shifted = here = 0
    for place, text in sorted(insertions, key=lambda insertion: insertion[0]):
        pieces += [source[since:place], text]
        since = place
        line = bisect.bisect_right(starts, place)
        here, shifted = line, (shifted if line == here else 0)
        columns.setdefault(line, []).append((place - starts[line - 1] + 1 + shifted, len(text)))
        shifted += len(text)
    return EditedSource("".join([*pieces, source[since:]]), source, columns)


def in_attribute(code: Sequence[RustToken], number: int) -> bool:
    """Whether a token is between `#[` and its `]`, judged by the hundred tokens before it."""
    depth = 0
    for place in range(number - 1, max(-1, number - 100), -1):
        text = code[place].text
        if text in (")", "]", "}"):
            depth += 1
        elif text in BRACKET_PAIRS:
            if depth:
                depth -= 1
            elif text == "[":
                return place > 0 and code[place - 1].text in ("#", "!")
            elif text == "{":
                return False
    return False


class ImplHead(NamedTuple):
    """The head of an `impl`."""

    trait: tuple[str, ...]
    """The tokens before `for`; empty when it implements no trait."""
    type: tuple[str, ...]


def impl_heads(code: Sequence[RustToken]) -> Iterator[ImplHead]:
    """The heads of all `impl` items."""
    for number, token in enumerate(code):
        before = code[number - 1].text if number else ""
        if token.text != "impl" or token.kind != "word" or before not in ("", "}", ";", "]", "{", "unsafe", "default"):
            continue
        begin = after_generics(code, number + 1)
        trait: tuple[str, ...] = ()
        words: list[str] = []
        # no honest head has more than a few hundred tokens
        for place in range(begin, min(len(code), begin + 400)):
            text = code[place].text
            if text in ("{", ";", "where"):
                break
            if text == "for" and not (place + 1 < len(code) and code[place + 1].text == "<"):
                trait, words = tuple(words), []
            else:
                words.append(text)
        yield ImplHead(trait, tuple(words))


def after_generics(code: Sequence[RustToken], place: int) -> int:
    """The number of the token behind the generics that begin at `place`, if any do."""
    if place >= len(code) or code[place].text != "<":
        return place
    depth = 0
    for end in range(place, min(len(code), place + 400)):
        depth += {"<": 1, ">": -1}.get(code[end].text, 0)
        if not depth:
            return end + 1
    return place


def type_head_name(words: Sequence[str]) -> str:
    """The name a type or trait is known by: `Vec` for `&mut std::vec::Vec<T>`."""
    name = ""
    for number, word in enumerate(words):
        if word in ("<", "("):
            if name:
                break
        elif word == "$":
            return "$"
        elif re.match(r"[^\W\d]", word) and word not in ("mut", "dyn", "const", "impl"):
            name = word
            if number + 1 < len(words) and words[number + 1] != "::":
                break
    return name


class DefinedNames(NamedTuple):
    """The names an answer gives to things."""

    functions: frozenset[str]
    types: frozenset[str]
    macros: frozenset[str]
    exported_macros: frozenset[str]
    """Those that belong to the root of the crate, wherever they are in the source."""


def defined_names(code: Sequence[RustToken]) -> DefinedNames:
    """All definitions in the answer."""
    functions, types, macros, exported = set(), set(), set(), set()
    is_exported = False
    for word, name in pairwise(code):
        if name.kind == "word" and word.kind == "word":
            if word.text == "fn":
                functions.add(name.text)
            elif word.text in TYPE_KEYWORDS:
                types.add(name.text)
    for word, mark, name in zip(code, code[1:], code[2:], strict=False):
        if word.text == "macro_rules" and mark.text == "!" and name.kind == "word":
            macros.add(name.text)
            exported |= {name.text} if is_exported else set()
            is_exported = False
        elif word.text == "macro_export":
            is_exported = True
    return DefinedNames(frozenset(functions), frozenset(types), frozenset(macros), frozenset(exported))


CRATE_WIDE_WORDS = {
    "macro_export": "its macros belong to the whole crate",
    "macro_use": "its macros reach what follows it",
    "extern": "foreign functions are declared for the whole crate",
    "global_allocator": "a program has one",
    "long_running_const_eval": "it may be computed for ever",
}
"""Words that make an answer more than a module among others."""


def affects_whole_crate(code: Sequence[RustToken]) -> bool:
    """Whether the answer could be noticed by other answers in its crate."""
    if any(token.text in CRATE_WIDE_WORDS and token.kind == "word" for token in code):
        return True
    own = defined_names(code).types
    # an implementation between foreign types takes part in what the compiler infers everywhere
    return any(
        found.trait and type_head_name(found.trait) not in own and type_head_name(found.type) not in own
        for found in impl_heads(code)
    )


def silenced_lints(code: Sequence[RustToken]) -> str:
    """The lints that the answer silences."""
    names: list[str] = []
    for number, token in enumerate(code):
        if token.text in ("allow", "expect") and number + 1 < len(code) and code[number + 1].text == "(":
            if not in_attribute(code, number):
                continue
            listed = []
            for place in range(number + 2, min(len(code), number + 60)):
                if code[place].text == ")":
                    break
                listed.append(code[place].text)
            names.append("".join(listed).replace(",", ", "))
    return ", ".join(names)[:300]


def module_source(source: str, code: Sequence[RustToken], module: str, head_text: str, tail: str) -> EditedSource:
    """The answer as the file of a module: `head_text` after its inner attributes, `tail` behind its end.

    A module that is declared before the answer's first item sees none of the macros that the answer defines.
    """
    insertions = [(after_inner_attributes(source, code, 0), head_text)] if head_text else []
    names = defined_names(code)
    for number, (word, mark) in enumerate(pairwise(code)):
        if word.text != "crate" or word.kind != "word" or mark.text != "::" or source[word.start] == "r":
            continue
        name, after = (token.text for token in (*code[number + 2 : number + 4], mark, mark)[:2])
        # an exported macro is in the root, not in our module
        if name not in names.exported_macros or (after != "!" and name in names.functions):
            insertions.append((word.end, f"::{module}"))
    answer = edited_source(source, insertions)
    return answer._replace(text=f"{answer.text}\n{tail}\n" if tail else answer.text)


def after_inner_attributes(source: str, code: Sequence[RustToken], number: int) -> int:
    """Where the first item of a module may stand whose first token is the one at `number`."""
    end = code[number - 1].end if number else 0
    if not number and SHEBANG_PATTERN.match(source):
        end = source.find("\n") + 1 or len(source)
        number = next((place for place, token in enumerate(code) if token.start >= end), len(code))
    while number < len(code):
        if code[number].kind == "inner":
            # what follows on the line of such a comment would be part of it
            end = code[number].end + 1 if source.startswith("//", code[number].start) else code[number].end
            number += 1
        elif [token.text for token in code[number : number + 3]] == ["#", "!", "["]:
            number = closing_token(code, number + 2) + 1
            end = code[number - 1].end
        else:
            break
    return min(end, len(source))


def closing_token(code: Sequence[RustToken], number: int) -> int:
    """The number of the token that closes the one at `number`; the last one when nothing does."""
    depth = 0
    for place in range(number, len(code)):
        depth += (code[place].text in BRACKET_PAIRS) - (code[place].text in BRACKET_PAIRS.values())
        if not depth:
            return place
    return len(code) - 1
