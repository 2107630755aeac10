"""Why an answer is refused before it is compiled: words that no answer needs, and implementations that can only deceive."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from steelyard.verifiers.rust.source import (
    BRACKET_PAIRS,
    TYPE_KEYWORDS,
    ImplHead,
    RustToken,
    after_generics,
    defined_names,
    impl_heads,
    in_attribute,
    rust_tokens,
    type_head_name,
)


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
COMPARISON_TRAITS = {"PartialEq", "PartialOrd"}
ARITHMETIC_TRAITS = {"Add", "Sub", "Mul", "Div", "Rem"}
OPERATOR_TRAITS = COMPARISON_TRAITS | ARITHMETIC_TRAITS | {"Not", "Neg", "Deref", "Index"}
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
            if in_attribute(code, number):
                return RustRefusal(False, f"#[{token.text}] is not allowed: it reaches for files outside the answer")
        elif token.text == "extern" and (after == "{" or (number + 2 < len(code) and code[number + 2].text == "{")):
            foreign = token
        elif token.text in ESCAPE_FUNCTIONS:
            reaching = token.text
    if foreign and reaching:
        return RustRefusal(False, f"{reaching} is not allowed: with it a process could reach around the tests' harness")
    lie = _deceptive_implementation(code, asked, tested)
    return RustRefusal(True, lie) if lie else None


def _deceptive_implementation(code: Sequence[RustToken], asked: str, tested: str) -> str:
    """How the answer gives what the tests do another meaning, if it does.

    Tests compare results with values of their own. An answer that returns a type of its own, or lends methods to foreign
    types that the tests `use super::*`, decides what such a comparison says. Types and traits that the author names are
    honest, and so are operators among the answer's own types.
    """
    own = defined_names(code).types
    author = _author_names(asked, tested)
    returned, methods = _returned_types(code), _trait_methods(code)
    for found in impl_heads(code):
        trait, type_name = type_head_name(found.trait), type_head_name(found.type)
        operand = _foreign_operand(found, own)
        if trait == "PartialEq" and operand and not {type_name, type_head_name(operand)} & own & author.types:
            return f"compares {''.join(found.type)} with {''.join(operand)} as it likes"
        decides = bool(operand) and trait in COMPARISON_TRAITS | ARITHMETIC_TRAITS
        decides = decides or (trait == "Not" and not _negation_gives_itself(code, type_name))
        if decides and type_name in own - author.types and returned.get(type_name, "") in author.words:
            return f"{returned[type_name]} returns a type of its own, {type_name}, whose {trait} is whatever it likes"
        if trait in own - author.types and type_name not in own:
            lent = sorted(methods.get(trait, set()) & author.called - author.asked_for)
            if lent:
                return f"gives {''.join(found.type)} another {lent[0]}, which the tests call"
    for name, renamed in pairwise(code):
        if name.text in OPERATOR_TRAITS and name.kind == "word" and renamed.text == "as":
            return f"{name.text} is given another name"
    return ""


def _foreign_operand(found: ImplHead, own: frozenset[str]) -> tuple[str, ...]:
    """The type on the other side of an operator; empty when it is the same type, or both are the answer's own."""
    if "<" not in found.trait:
        return ()
    other = found.trait[found.trait.index("<") + 1 : -1]
    if other in (found.type, ("Self",)) or (type_head_name(other) in own and type_head_name(found.type) in own):
        return ()
    return other


def _negation_gives_itself(code: Sequence[RustToken], type_name: str) -> bool:
    """Whether no `!` of the answer makes something else of this type: `assert!` asks for `!` of what it is given."""
    texts = [token.text for token in code]
    made = [
        texts[place + 4]
        for place in range(len(texts) - 4)
        if texts[place : place + 4] == ["{", "type", "Output", "="]
        and "Not" in texts[max(0, place - 12) : place]
        and texts[place - 1] in (type_name, ">")
    ]
    return bool(made) and all(name in ("Self", type_name) for name in made)


class AuthorNames(NamedTuple):
    """The names that the author of a case uses."""

    asked_for: frozenset[str]
    """Every word of the prompt, the reference and the expected names."""
    words: frozenset[str]
    """These and every word of the tests."""
    types: frozenset[str]
    """The types and traits among them that an answer may define."""
    called: frozenset[str]
    """The methods that the tests call."""


PROMPT_TYPE_PATTERN = re.compile(
    r"""
      (?: struct | enum | trait | union | type | class ) [ ] (?: (?:called|named) [ ] )? `? (?P<declared> [^\W\d]\w* )
    | ` [^`\n]* `                      # code in a sentence
    | (?<= [\w,;:(] [ ] ) (?P<capital> [^\W\d_]\w* )   # not at the beginning of a sentence
    """,
    re.VERBOSE,
)
COMMON_CAPITALIZED_WORDS = frozenset(
    ("Rust", "Vec", "String", "Option", "Result", "Some", "None", "Ok", "Err", "Box", "Self")
)
"""Words that begin with a capital letter and are no types that an answer is asked to define."""


@lru_cache(maxsize=1000)
def _author_names(asked: str, tested: str) -> AuthorNames:
    asked_for = frozenset(token.text for token in rust_tokens(asked))
    tests = rust_tokens(tested)
    called = frozenset(token.text for dot, token in pairwise(tests) if dot.text == ".")
    types: set[str] = set()
    for found in PROMPT_TYPE_PATTERN.finditer(asked):
        words = re.findall(r"[^\W\d]\w*", found[0]) if found[0].startswith("`") else ()
        types |= {found["declared"] or found["capital"] or "", *words}
    types |= _types_of_tests(tests)
    types = {name for name in types if name[:1].isupper()} - COMMON_CAPITALIZED_WORDS
    return AuthorNames(asked_for, asked_for | {token.text for token in tests}, frozenset(types), called)


def _types_of_tests(tests: Sequence[RustToken]) -> set[str]:
    """The words of the tests that they neither define nor take from the standard library."""
    foreign: set[str] = set()
    used: set[str] = set()
    path: list[str] | None = None
    for before, token in pairwise(tests):
        if token.text == "use":
            path = []
        elif path is not None and token.text == ";":
            foreign |= set(path) if path[:1] and path[0] in ("std", "core", "alloc") else set()
            path = None
        if token.kind == "word":
            used.add(token.text)
            if path is not None and token.text != "use":
                path.append(token.text)
            if before.text in TYPE_KEYWORDS:
                foreign.add(token.text)
    return used - foreign


def _returned_types(code: Sequence[RustToken]) -> dict[str, str]:
    """The types that functions return, by their heads, each with one of its functions."""
    returned: dict[str, str] = {}
    ends = _closing_tokens(code)
    for number, (word, name) in enumerate(pairwise(code)):
        if word.text != "fn" or word.kind != "word":
            continue
        place = ends.get(after_generics(code, number + 2), len(code)) + 1
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
