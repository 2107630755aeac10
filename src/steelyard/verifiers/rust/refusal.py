"""Why an answer is refused before it is compiled: words that no answer needs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import NamedTuple

from steelyard.text import word_set
from steelyard.verifiers.rust.author import IMPORTED_TYPE_NAMES
from steelyard.verifiers.rust.harness import HARNESS_CRATE
from steelyard.verifiers.rust.source import RustToken, closing_token, in_attribute


class RustRefusal(NamedTuple):
    """Why an answer is not even compiled."""

    tampered: bool
    """Its only use is to forge a result."""
    reason: str


FORBIDDEN_WORDS = {
    "no_mangle": "could replace a function that the tests' harness calls",
    "link_name": "could call any function of the system under another name",
    "global_allocator": "would run code of the answer inside the tests' harness",
    "panic_handler": "belongs to programs without a standard library",
    "no_main": "belongs to programs without an entry point",
    "no_implicit_prelude": "would take from the tests what every module has",
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
TAMPERING_WORDS = {
    HARNESS_CRATE: "is the tests' harness",
    "link_section": "puts code where it runs before any test",
    "export_name": "replaces functions of the system",
}
MACRO_ONLY_WORDS = {"asm", "global_asm", "naked_asm", "include"}
"""Words that matter only when they are called as a macro, imported or renamed."""
ESCAPE_FUNCTIONS = word_set(
    "mprotect mmap mmap64 mremap munmap pkey_mprotect ptrace syscall dlsym dlopen dlvsym fork vfork clone clone3 "
    "longjmp siglongjmp _longjmp setcontext swapcontext makecontext sigaction signal process_vm_readv "
    "process_vm_writev waitpid wait4 _exit memfd_create userfaultfd"
)
"""Functions of the system with which a process could reach around the harness that shares it."""
FILE_WORDS = word_set("fs File OpenOptions Command")
CATCHING_WORDS = word_set("catch_unwind set_hook take_hook update_hook always_abort")
LEAVING_WORDS = word_set("break continue return")
DEFINING_WORDS = word_set("fn struct enum union use type mod impl static const trait macro_rules extern")
"""Words that begin an item; in the body of a macro they may belong to one that its caller sees."""


def uses_unsafe(code: Sequence[RustToken]) -> bool:
    """Whether an answer can read and write memory that is not its own."""
    return any(token.text == "unsafe" and token.kind == "word" for token in code)


def grows_lifetimes(code: Sequence[RustToken]) -> bool:
    """Whether an answer has a reference to a reference with two lifetimes, by which safe code can reach any memory.

    The compiler accepts it although it should not (rust-lang/rust#25860); honest code hardly ever writes it.
    """
    marks = ["lifetime" if token.kind == "lifetime" else token.text for token in code]
    return any(marks[place : place + 4] == ["&", "lifetime", "&", "lifetime"] for place in range(len(marks)))


def swallows_panics(code: Sequence[RustToken]) -> bool:
    """Whether an answer could hide that a function which it was given has panicked: by catching it, or in a thread."""
    words = [token.text for token in code if token.kind != "text"]
    if not CATCHING_WORDS.isdisjoint(words):
        return True
    if "spawn" not in words and "spawn_scoped" not in words:
        return False
    joins = [words[place + 1 : place + 5] for place, word in enumerate(words) if word == "join"]
    is_told = [after[:2] == ["(", ")"] and after[2:] in ([".", "unwrap"], [".", "expect"]) for after in joins]
    # a scope waits for its threads, and panics if one of them did
    return not all(is_told) or (not joins and "scope" not in words)


def reads_files(code: Sequence[RustToken]) -> bool:
    """Whether an answer can open files or start programs; without `unsafe` there is no other way to read a file."""
    return any(token.text in FILE_WORDS and token.kind == "word" for token in code)


def leaving_macro(code: Sequence[RustToken], statements: Collection[str]) -> str:
    """A macro of the answer with a word in it by which it could leave a test that calls it.

    One that the tests call as a statement could also define again what they name.
    """
    for number, token in enumerate(code):
        if token.text != "macro_rules" or number + 3 >= len(code):
            continue
        body = code[number + 3 : closing_token(code, number + 3)]
        leaving = LEAVING_WORDS | DEFINING_WORDS if code[number + 2].text in statements else LEAVING_WORDS
        if any(word.text in leaving and word.kind == "word" for word in body):
            return code[number + 2].text
    return ""


def replaced_standard_name(code: Sequence[RustToken], imported: Collection[str], modules: Collection[str]) -> str:
    """A name that tests take for the standard library's, and that the answer gives to something else; empty if none is.

    A struct or an enum of such a name is found by the types that the tests see.
    """
    for number, token in enumerate(code):
        if number and token.text in modules and code[number - 1].text in ("mod", "as"):
            return token.text
        if token.text not in imported or token.kind != "word" or not number:
            continue
        before = code[number - 1].text
        if before in ("mod", "const", "static", "fn"):
            return token.text
        if before == "as" and code[number - 2].text not in IMPORTED_TYPE_NAMES:
            return token.text
        aliased = takewhile(lambda token: token.text != ";", code[number + 1 :])
        if before == "type" and not any(other.text == token.text for other in aliased):
            return token.text
    return ""


def rust_refusal(code: Sequence[RustToken]) -> RustRefusal | None:
    """Why this answer is refused, if it is."""
    foreign = None
    reaching = None
    for number, token in enumerate(code):
        if token.kind != "word":
            continue
        before = code[number - 1].text if number else ""
        after = code[number + 1].text if number + 1 < len(code) else ""
        is_macro = after == "!" or before == "::" or after == "as"
        if token.text in TAMPERING_WORDS:
            return RustRefusal(True, f"{token.text} {TAMPERING_WORDS[token.text]}")
        if token.text in FORBIDDEN_WORDS and (token.text not in MACRO_ONLY_WORDS or is_macro):
            return RustRefusal(False, f"{token.text} is not allowed: it {FORBIDDEN_WORDS[token.text]}")
        if token.text == "include" and is_macro:
            return RustRefusal(False, "include is not allowed: it reads files while it is compiled")
        if token.text in ("path", "link") and before in ("[", "(", ",") and after in ("=", "("):
            if in_attribute(code, number):
                return RustRefusal(False, f"#[{token.text}] is not allowed: it reaches for files outside the answer")
        elif token.text == "mod" and _is_module_of_a_file(code, number):
            return RustRefusal(False, f"mod {after}; is not allowed: an answer is a single file")
        elif token.text == "extern" and (after == "{" or (number + 2 < len(code) and code[number + 2].text == "{")):
            foreign = token
        elif token.text in ESCAPE_FUNCTIONS:
            reaching = token.text
    if foreign and reaching:
        return RustRefusal(False, f"{reaching} is not allowed: with it a process could reach around the tests' harness")
    return None


def _is_module_of_a_file(code: Sequence[RustToken], number: int) -> bool:
    """Whether `mod name;` stands here, which takes its content from another file."""
    return number + 2 < len(code) and code[number + 1].kind == "word" and code[number + 2].text == ";"
