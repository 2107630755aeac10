"""Rust source seen as tokens: what an answer defines, and what it may not say.

Nothing here parses Rust. A reply is hostile and may not even be Rust, so everything is decided on tokens, in one pass
that respects strings, raw strings, characters, lifetimes and nested comments. Where this reading and the compiler's
could differ, the difference may cost the answer its verdict but never win it one.
"""

from __future__ import annotations

import bisect
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

RUST_TOKEN_PATTERN = re.compile(
    r"""
      (?P<space> \s+ )
    | (?P<inner> //! [^\n]* )
    | (?P<comment> // [^\n]* )
    | (?P<nested> /\* )
    | (?P<raw> [bc]? r (?P<hashes>\#*) " )
    | (?P<text> [bc]? " [^"\\]* (?: \\. [^"\\]* )* (?P<closed>")? )
    | (?P<character> b? ' (?: \\ (?: u\{ [^}'\n]{0,12} \} | x[0-9a-fA-F]{2} | . ) | [^\\'\n] ) ' )
    | (?P<lifetime> ' \w+ )
    | (?P<word> (?:r\#)? [^\W\d] \w* )
    | (?P<number> \d \w* )
    | (?P<mark> :: | -> | => | . )
    """,
    re.VERBOSE | re.DOTALL,
)
COMMENT_EDGE_PATTERN = re.compile(r"/\*|\*/")
BRACKET_PAIRS = {"(": ")", "[": "]", "{": "}"}
TYPE_KEYWORDS = {"struct", "enum", "trait", "type", "union"}
ITEM_QUALIFIERS = {"async", "const", "unsafe", "extern"}


class RustToken(NamedTuple):
    """A word, a mark or a literal, and where it stands."""

    kind: str
    """`word`, `mark`, `text`, `number`, `lifetime`, or `inner` for a comment that documents what it stands in."""
    text: str
    """A word without its `r#`, as the compiler compares it."""
    start: int
    end: int


def rust_tokens(source: str) -> list[RustToken]:
    """The tokens of a source, comments left out; what is never closed is one token to the end."""
    found: list[RustToken] = []
    position = 0
    while position < len(source):
        match = RUST_TOKEN_PATTERN.match(source, position)
        if match is None:
            break
        start, position = position, match.end()
        kind = match.lastgroup or ""
        if kind == "nested":
            position = _comment_end(source, start)
            kind = "inner" if source.startswith("/*!", start) else "comment"
        elif match["raw"] is not None:
            closing = source.find('"' + match["hashes"], position)
            position = len(source) if closing < 0 else closing + 1 + len(match["hashes"])
            kind = "text"
        elif match["text"] is not None or kind == "character":
            kind = "text"
        if kind in ("space", "comment"):
            continue
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
        """The column of the original that stands at this place; lines are the same in both."""
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


# ---- the answer


class RustRefusal(NamedTuple):
    """Why an answer is not even compiled."""

    tampered: bool
    """It can serve nothing but a forged result."""
    reason: str


FORBIDDEN_WORDS = {
    "no_mangle": "could replace a function that the tests' harness calls",
    "link_name": "could call any function of the system under another name",
    "global_allocator": "would run code of the answer inside the tests' harness",
    "panic_handler": "belongs to programs without a standard library",
    "no_main": "belongs to programs without an entry point",
    "include_str": "reads files while it is compiled",
    "include_bytes": "reads files while it is compiled",
    "asm": "is machine code",
    "global_asm": "is machine code",
    "naked_asm": "is machine code",
    "proc_macro": "runs while it is compiled",
    "proc_macro_derive": "runs while it is compiled",
    "proc_macro_attribute": "runs while it is compiled",
}
"""Words that no answer to a task with tests needs, and what they are for."""
TAMPERING_ATTRIBUTES = {
    "link_section": "puts code where it runs before any test",
    "export_name": "replaces functions of the system",
}
OPERATOR_TRAITS = {"PartialEq", "PartialOrd", "Not", "Neg", "Add", "Sub", "Mul", "Div", "Rem", "Deref", "Index"}
"""Traits that decide what an expression of the tests means."""
MACRO_ONLY_WORDS = {"asm", "global_asm", "naked_asm", "include"}
"""Words that mean something only when they are called as a macro, brought in or renamed."""
ESCAPE_FUNCTION_NAMES = (
    "mprotect mmap mmap64 mremap munmap pkey_mprotect ptrace syscall dlsym dlopen dlvsym fork vfork clone clone3 "
    "longjmp siglongjmp _longjmp setcontext swapcontext makecontext sigaction signal process_vm_readv "
    "process_vm_writev waitpid wait4 _exit memfd_create userfaultfd"
)
"""Functions of the system with which a process could reach around the harness that shares it."""
ESCAPE_FUNCTIONS = frozenset(ESCAPE_FUNCTION_NAMES.split())


def rust_refusal(code: Sequence[RustToken], asked: str, tested: str) -> RustRefusal | None:
    """Why this answer is refused, if it is; the case's author wrote what was asked and how it is tested."""
    foreign = None
    reaching = None
    for number, token in enumerate(code):
        if token.kind != "word":
            continue
        before = code[number - 1].text if number else ""
        after = code[number + 1].text if number + 1 < len(code) else ""
        is_macro = after == "!" or before == "::" or after == "as"
        if token.text in TAMPERING_ATTRIBUTES:
            return RustRefusal(True, f"{token.text} {TAMPERING_ATTRIBUTES[token.text]}")
        if token.text in FORBIDDEN_WORDS and (token.text not in MACRO_ONLY_WORDS or is_macro):
            return RustRefusal(False, f"{token.text} is not allowed: it {FORBIDDEN_WORDS[token.text]}")
        if token.text == "include" and is_macro:
            return RustRefusal(False, "include is not allowed: it reads files while it is compiled")
        if token.text in ("path", "link") and before in ("[", "(", ",") and after in ("=", "("):
            if _in_attribute(code, number):
                return RustRefusal(False, f"#[{token.text}] is not allowed: it reaches for files outside the answer")
        elif token.text == "extern" and (after == "{" or (number + 2 < len(code) and code[number + 2].text == "{")):
            foreign = token
        elif token.text in ESCAPE_FUNCTIONS:
            reaching = token.text
    if foreign and reaching:
        return RustRefusal(False, f"{reaching} is not allowed: with it a process could reach around the tests' harness")
    lie = _deceptive_implementation(code, asked, tested)
    return RustRefusal(True, lie) if lie else None


def _in_attribute(code: Sequence[RustToken], number: int) -> bool:
    """Whether a token stands between `#[` and its `]`, as far as the hundred tokens before it tell."""
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
        begin = _after_generics(code, number + 1)
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


def _after_generics(code: Sequence[RustToken], place: int) -> int:
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


def _deceptive_implementation(code: Sequence[RustToken], asked: str, tested: str) -> str:
    """How the answer gives what the tests do another meaning, if it does.

    Tests compare results with values of their own. An answer that returns a type of its own, or lends methods to foreign
    types that the tests `use super::*`, decides what such a comparison says. Whatever the author has named is honest.
    """
    own = defined_names(code).types
    asked_for, named, called = _author_names(asked, tested)
    returned, methods = _returned_types(code), _trait_methods(code)
    for found in impl_heads(code):
        trait, type_name = type_head_name(found.trait), type_head_name(found.type)
        if trait == "PartialEq" and "<" in found.trait and "PartialEq<" not in f"{asked}{tested}".replace(" ", ""):
            other = found.trait[found.trait.index("<") + 1 : -1]
            if other not in (found.type, ("Self",)) and not (type_head_name(other) in own and type_name in own):
                return f"compares {''.join(found.type)} with {''.join(other)} as it likes"
        if trait in OPERATOR_TRAITS and type_name in own - named and returned.get(type_name, "") in named:
            return f"{returned[type_name]} returns a type of its own, {type_name}, whose {trait} is whatever it likes"
        if trait in own and type_name not in own:
            lent = sorted(methods.get(trait, set()) & called - asked_for)
            if lent:
                return f"gives {''.join(found.type)} another {lent[0]}, which the tests call"
    for name, renamed in pairwise(code):
        if name.text in OPERATOR_TRAITS and name.kind == "word" and renamed.text == "as":
            return f"{name.text} is given another name"
    return ""


@lru_cache(maxsize=1000)
def _author_names(asked: str, tested: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The words that were asked for, those that the author names at all, and the methods that the tests call."""
    asked_for = frozenset(token.text for token in rust_tokens(asked))
    tests = rust_tokens(tested)
    called = frozenset(token.text for dot, token in pairwise(tests) if dot.text == ".")
    return asked_for, asked_for | {token.text for token in tests}, called


def _returned_types(code: Sequence[RustToken]) -> dict[str, str]:
    """The types that functions return, by their heads, each with one of its functions."""
    returned: dict[str, str] = {}
    ends = _closing_tokens(code)
    for number, (word, name) in enumerate(pairwise(code)):
        if word.text != "fn" or word.kind != "word":
            continue
        place = ends.get(_after_generics(code, number + 2), len(code)) + 1
        if place < len(code) and code[place].text == "->":
            returned[type_head_name([token.text for token in code[place + 1 : place + 60]])] = name.text
    return returned


def _closing_tokens(code: Sequence[RustToken]) -> dict[int, int]:
    """For each token that opens something the number of the one that closes it."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for number, token in enumerate(code):
        if token.text in BRACKET_PAIRS:
            opened.append(number)
        elif token.text in BRACKET_PAIRS.values() and opened:
            ends[opened.pop()] = number
    return ends


def _trait_methods(code: Sequence[RustToken]) -> dict[str, set[str]]:
    """The names of the functions in each trait's block."""
    methods: dict[str, set[str]] = {}
    around = [""]
    coming = ""
    for word, name in pairwise(code):
        if word.text == "trait":
            coming = name.text
        elif word.text == "{":
            around.append(coming or around[-1])
            coming = ""
        elif word.text == "}" and len(around) > 1:
            around.pop()
        elif word.text == "fn":
            methods.setdefault(around[-1], set()).add(name.text)
    return methods


class DefinedNames(NamedTuple):
    """The names an answer gives to things."""

    functions: frozenset[str]
    types: frozenset[str]
    macros: frozenset[str]


def defined_names(code: Sequence[RustToken]) -> DefinedNames:
    """What the answer defines, wherever in it."""
    functions, types, macros = set(), set(), set()
    for word, name in pairwise(code):
        if name.kind == "word" and word.kind == "word":
            if word.text == "fn":
                functions.add(name.text)
            elif word.text in TYPE_KEYWORDS:
                types.add(name.text)
    for word, mark, name in zip(code, code[1:], code[2:], strict=False):
        if word.text == "macro_rules" and mark.text == "!" and name.kind == "word":
            macros.add(name.text)
    return DefinedNames(frozenset(functions), frozenset(types), frozenset(macros))


CRATE_WIDE_WORDS = {
    "macro_export": "its macros belong to the whole crate",
    "macro_use": "its macros reach what follows it",
    "extern": "foreign functions are declared for the whole crate",
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
            if not _in_attribute(code, number):
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
    insertions += [
        (word.end, f"::{module}")
        for word, mark in pairwise(code)
        if word.text == "crate" and word.kind == "word" and mark.text == "::" and source[word.start] != "r"
    ]
    answer = edited_source(source, insertions)
    return answer._replace(text=f"{answer.text}\n{tail}\n" if tail else answer.text)


def after_inner_attributes(source: str, code: Sequence[RustToken], number: int) -> int:
    """Where the first item of a module may stand whose first token is the one at `number`."""
    end = code[number - 1].end if number else 0
    if not number and source.startswith("#!") and not source[2:].lstrip().startswith("["):
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
