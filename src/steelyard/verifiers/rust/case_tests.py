"""The tests of a Rust case, found in their source before anything runs, and the module that they become."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from steelyard.text import word_set
from steelyard.verifiers.rust.source import (
    BRACKET_PAIRS,
    ITEM_QUALIFIERS,
    TYPE_KEYWORDS,
    RustToken,
    after_inner_attributes,
    closing_token,
    edited_source,
    rust_tokens,
)
from steelyard.verifiers.rust.type_names import PRIMITIVE_TYPES


class RustTest(NamedTuple):
    """A test, known from its source before anything has run."""

    name: str
    """Its path within the tests, `tests::adds_up`."""
    panics: str | None = None
    """The text that its panic must hold, if it must panic."""
    ignored: bool = False
    tells_its_end: bool = False
    """Whether its last statement reports that to the harness: a macro of the answer's in it could return before."""
    runtime: str = ""
    """For an async test: what runs it to its end, with CALL_PLACEHOLDER for the call."""


class RustTests(NamedTuple):
    """The tests of a case, as the file of a module that only our harness calls."""

    found: tuple[RustTest, ...]
    unsupported: str
    """A test that cannot be counted beforehand, if there is one."""
    called: frozenset[str]
    """The macros that they call and do not define."""
    source: str
    """Without what would make them part of another harness."""
    runtimes: tuple[str, ...] = ()
    """The attributes of async tests, such as `tokio::test`, whose crates the case must depend on."""

    def within(self, module: str, macros_module: str, stub: str = "") -> str:
        """The file for an answer in this module, whose macros are in another one, if there are any.

        A stub is a function that replaces one of the answer.
        """
        macros = f"crate::{module}::{macros_module}" if macros_module else ""
        text = self.source.replace(MACROS_PLACEHOLDER, f"#[allow(unused_imports)] use {macros}::*;" if macros else "")
        text = text.replace(MACRO_PATH_PLACEHOLDER, f"{module}::{macros_module}" if macros_module else module)
        return text.replace(STUB_PLACEHOLDER, stub).replace(MODULE_PLACEHOLDER, module)


HARNESS_ALIAS = f"h_{secrets.token_hex(8)}"
"""What a program calls the harness, which no answer can guess."""
END_OF_TEST = f"; ::{HARNESS_ALIAS}::tell_end();"
"""What a test says last."""
END_BEFORE_RESULT = f"::{HARNESS_ALIAS}::tell_end(); "
"""What a test says before `Ok(())`, with which it ends."""
RETURNED_OK = ["Ok", "(", "(", ")", ")", "}"]
CALL_PLACEHOLDER = "__the_call__"
ASYNC_TEST_RUNTIMES = {
    "tokio::test": f"::tokio::runtime::Builder::__flavor__.enable_all().build().unwrap().block_on({CALL_PLACEHOLDER})",
    "async_std::test": f"::async_std::task::block_on({CALL_PLACEHOLDER})",
}
"""The kind of test that these attributes declare."""
MODULE_PLACEHOLDER = "__the_module_of_the_answer__"
STUB_PLACEHOLDER = "__the_stub__"
MACROS_PLACEHOLDER = "__the_macros_of_the_answer__"
MACRO_PATH_PLACEHOLDER = "__the_path_of_a_macro_of_the_answer__"
STANDARD_MACRO_NAMES = (
    "assert assert_eq assert_ne debug_assert debug_assert_eq debug_assert_ne panic todo unimplemented unreachable "
    "vec format format_args matches print println eprint eprintln dbg write writeln concat stringify line column file "
    "cfg env option_env module_path compile_error thread_local include include_str include_bytes"
)
STD_MACROS = tuple(STANDARD_MACRO_NAMES.split())
PRELUDE_PATHS = {
    "Option": "option::Option",
    "Some": "option::Option::Some",
    "None": "option::Option::None",
    "Ok": "result::Result::Ok",
    "Err": "result::Result::Err",
    "Vec": "vec::Vec",
    "String": "string::String",
    "Box": "boxed::Box",
    "ToOwned": "borrow::ToOwned",
    "ToString": "string::ToString",
    "Iterator": "iter::Iterator",
    "IntoIterator": "iter::IntoIterator",
    "FromIterator": "iter::FromIterator",
    "Extend": "iter::Extend",
    "From": "convert::From",
    "Into": "convert::Into",
    "TryFrom": "convert::TryFrom",
    "TryInto": "convert::TryInto",
    "AsRef": "convert::AsRef",
    "AsMut": "convert::AsMut",
    "Default": "default::Default",
    "Clone": "clone::Clone",
    "PartialEq": "cmp::PartialEq",
    "PartialOrd": "cmp::PartialOrd",
    "Ord": "cmp::Ord",
    "drop": "mem::drop",
    "size_of": "mem::size_of",
    "size_of_val": "mem::size_of_val",
    "align_of": "mem::align_of",
    "align_of_val": "mem::align_of_val",
}
"""Names that tests assume and that `use super::*` could redefine."""
KEYWORDS = word_set(
    "as async await become box break const continue crate do dyn else enum extern false final fn for gen if impl in let loop macro match "
    "mod move mut override priv pub ref return self static struct super trait true try type typeof unsafe unsized use virtual where while yield"
)
COLLECTION_NAMES = ("HashMap", "HashSet", "BTreeMap", "BTreeSet", "BinaryHeap", "VecDeque")


def parse_rust_tests(source: str, expected: Collection[str], crates: Collection[str] = ()) -> RustTests:
    """The tests in a source; the answer must define the names in `expected`, even if they have another meaning.

    The names of `crates` mean these crates, whatever the answer calls like them.
    """
    code = rust_tokens(source)
    texts = [token.text for token in code]
    called = frozenset(word for word, mark in pairwise(texts) if mark == "!")
    bound = _names_bound_by_tests(code)
    # a function or a test that is called like a macro of the library leaves that alone
    bound_macros = _names_bound_by_tests(code, ())
    # macros reach modules that import nothing
    meant = f"{MACROS_PLACEHOLDER} {_standard_imports(texts, called - bound_macros, bound | set(expected), crates)}"
    meant += _pinned_variables(code, bound)
    insertions: list[tuple[int, str]] = [
        (after_inner_attributes(source, code, 0), f"use super::*; {STUB_PLACEHOLDER} {meant} ")
    ]
    blanks: list[tuple[int, int]] = []
    found: list[RustTest] = []
    unsupported = ""
    runtimes: set[str] = set()
    modules: list[tuple[str, int]] = []
    attributes: list[tuple[int, int]] = []
    number = 0
    while number < len(code):
        while modules and number >= modules[-1][1]:
            modules.pop()
        if texts[number] == "}" or code[number].kind == "inner":
            number += 1
            continue
        if texts[number] == "#":
            is_inner = texts[number + 1 : number + 2] == ["!"]
            end = closing_token(code, number + 1 + is_inner)
            if not is_inner:
                attributes.append((number, end))
            number = end + 1
            continue
        item = _item_keyword_index(texts, number)
        keyword, name = texts[item : item + 1], texts[item + 1 : item + 2]
        marked = {_attribute(texts, start): (start, end) for start, end in attributes}
        blanks += [
            (code[start].start, code[end].end) for start, end in attributes if _is_harness_attribute(texts, start, end)
        ]
        attributes = []
        if keyword == ["mod"] and texts[item + 2 : item + 3] == ["{"]:
            if number == item:
                insertions.append((code[number].start, "pub(crate) "))
            insertions.append((after_inner_attributes(source, code, item + 3), f" {meant} "))
            modules.append((_written(source, code[item + 1]), closing_token(code, item + 2)))
            number = item + 3
            continue
        if keyword == ["fn"] and name:
            other = next((mark for mark in marked if mark != "test" and mark.rpartition("::")[2] == "test"), "")
            runtime = _async_runtime(texts[slice(*marked[other])], other) if other in ASYNC_TEST_RUNTIMES else ""
            runtimes |= {other} if runtime else set()
            if (other and not runtime) or (("test" in marked or other) and name == ["$"]):
                unsupported = unsupported or (f"#[{other}]" if other else "a test made by a macro")
            elif "test" in marked or other:
                if texts[number] != "pub":
                    insertions.append((code[number].start, "pub(crate) "))
                path = "::".join([*(module for module, _ in modules), _written(source, code[item + 1])])
                panics = _expected_panic(code, marked.get("should_panic"))
                end = _end_after_foreign_macros(code, item, bound)
                insertions += (
                    [(code[end].start, END_OF_TEST if texts[end] == "}" else END_BEFORE_RESULT)] if end else []
                )
                found.append(RustTest(path, panics, "ignore" in marked, bool(end), runtime))
        number = _after_item(code, item)
    insertions += [
        (word.end, f"::{MACRO_PATH_PLACEHOLDER if texts[number + 3 : number + 4] == ['!'] else MODULE_PLACEHOLDER}")
        for number, (word, mark) in enumerate(pairwise(code))
        if word.text == "crate" and word.kind == "word" and mark.text == "::"
    ]
    insertions += [(code[number].start, "::std::") for number in _standard_macro_calls(code, bound_macros)]
    edited = edited_source(source, insertions, blanks).text
    called -= _macros_of_tests(texts)
    return RustTests(tuple(found), unsupported, called, edited, tuple(sorted(runtimes)))


def _standard_macro_calls(code: Sequence[RustToken], taken: Collection[str]) -> Iterator[int]:
    """Where a macro of the standard library is called by its name alone, which a macro of the answer's could define again."""
    before = ""
    for number, (word, mark, opening) in enumerate(zip(code, code[1:], code[2:], strict=False)):
        is_call = word.kind == "word" and mark.text == "!" and opening.text in BRACKET_PAIRS
        if is_call and word.text in STD_MACROS and word.text not in taken and before not in ("::", "$"):
            yield number
        before = word.text


def _end_after_foreign_macros(code: Sequence[RustToken], item: int, bound: Collection[str]) -> int:
    """The token before which a test that calls macros which are not its own is at its end; 0 for all other tests.

    That is the token that closes it, or its last `Ok(())`.
    """
    parameters_end = closing_token(code, item + 2)
    opening = next((place for place in range(parameters_end, len(code)) if code[place].text == "{"), len(code))
    if opening >= len(code):
        return 0
    end = closing_token(code, opening)
    body = [token.text for token in code[opening : end + 1]]
    is_plain = opening == parameters_end + 1
    calls = {
        word
        for word, mark, next_ in zip(body, body[1:], body[2:], strict=False)
        if mark == "!" and next_ in BRACKET_PAIRS
    }
    returned = {after for word, after in pairwise(body) if word == "return"}
    if not calls - set(bound) - set(STD_MACROS) or (is_plain and returned) or not returned <= {"Err"}:
        return 0
    if is_plain:
        return end
    return end - 5 if body[-6:] == RETURNED_OK and body[-7] in (";", "}", "{") else 0


def _pinned_variables(code: Sequence[RustToken], bound: Collection[str]) -> str:
    """A function that does not compile if a variable of the tests is a constant of the answer's.

    In a pattern such as `if let Some(n) = ...` a constant called `n` would be compared instead of bound, and what follows left out.
    """
    names = sorted(_names_in_patterns(code) - set(bound))
    return (
        f" #[allow(unused)] fn __variables() {{ {' '.join(f'let {name} @ _ = ();' for name in names)} }}"
        if names
        else ""
    )


def _names_in_patterns(code: Sequence[RustToken]) -> set[str]:
    """The variables in the patterns of `let`, of `match` and of `matches!`."""
    names: set[str] = set()
    for number, token in enumerate(code):
        if token.text == "let" and token.kind == "word":
            names |= _variables(code, number + 1, 1, ("=", ";", ":"))
        elif token.text == "=>":
            names |= _variables(code, number - 1, -1, ("{", "}", ",", ";", "=>"))
        elif token.text == "matches" and code[number + 1 : number + 2] and code[number + 1].text == "!":
            closing = closing_token(code, number + 2)
            names |= _variables(code, closing - 1, -1, (",", ";", "{", "}"))
    return names


def _variables(code: Sequence[RustToken], place: int, step: int, ends: Collection[str]) -> set[str]:
    """The words from a token on, up to one of the ends outside of brackets, that could be variables."""
    names: set[str] = set()
    depth = 0
    while 0 <= place < len(code):
        text = code[place].text
        depth += step * ((text in BRACKET_PAIRS) - (text in BRACKET_PAIRS.values()))
        if depth < 0 or (not depth and text in ends and not (step < 0 and text in BRACKET_PAIRS.values())):
            break
        before, after = (code[other].text if 0 <= other < len(code) else "" for other in (place - 1, place + 1))
        is_variable = code[place].kind == "word" and (text[0].islower() or text[0] == "_") and text not in KEYWORDS
        if is_variable and after not in ("::", "(", "!", ":", ".", "{") and before not in ("::", "."):
            names.add(text)
        place += step
    return names - {"_"}


def with_standard_paths(signature: str) -> str:
    """A signature in which collections of the standard library need no import."""
    return re.sub(rf"(?<![\w:])({'|'.join(COLLECTION_NAMES)})\b", r"::std::collections::\1", signature)


def _async_runtime(attribute: Sequence[str], path: str) -> str:
    """What runs an async test with this attribute to its end."""
    flavor = "new_multi_thread()" if '"multi_thread"' in attribute else "new_current_thread()"
    for option in ("worker_threads", "start_paused"):
        if option in attribute:
            flavor += f".{option}({attribute[attribute.index(option) + 2]})"
    return ASYNC_TEST_RUNTIMES[path].replace("__flavor__", flavor)


def _macros_of_tests(texts: Sequence[str]) -> set[str]:
    return {name for word, _, name in zip(texts, texts[1:], texts[2:], strict=False) if word == "macro_rules"}


def _written(source: str, token: RustToken) -> str:
    """A name as it is written, which for a keyword is another one than it is compared by: `r#match`."""
    return source[token.start : token.end]


def _item_keyword_index(texts: Sequence[str], number: int) -> int:
    """Where the keyword of an item stands, behind its visibility and qualifiers."""
    if texts[number] == "pub":
        number += 1
        if texts[number : number + 1] == ["("]:
            number = texts.index(")", number) + 1 if ")" in texts[number:] else len(texts)
    while number < len(texts) and (texts[number] in ITEM_QUALIFIERS or texts[number].startswith('"')):
        number += 1
    return number


def _after_item(code: Sequence[RustToken], number: int) -> int:
    """The number of the token behind an item: behind its `;` or its block."""
    while number < len(code):
        text = code[number].text
        if text == ";":
            return number + 1
        if text in BRACKET_PAIRS:
            number = closing_token(code, number)
            if text == "{":
                return number + 1
        number += 1
    return number


def _attribute(texts: Sequence[str], start: int) -> str:
    """The path of an attribute: `test`, `should_panic`, `tokio::test`."""
    path = []
    for text in texts[start + 2 :]:
        if text in ("]", "(", "="):
            break
        path.append(text)
    return "".join(path)


def _is_harness_attribute(texts: Sequence[str], start: int, end: int) -> bool:
    """Whether an attribute speaks to the harness, not to the compiler."""
    first = texts[start + 2]
    return (
        _attribute(texts, start) in ASYNC_TEST_RUNTIMES
        or first in ("test", "should_panic", "ignore")
        or (first == "cfg" and "test" in texts[start:end])
    )


def _expected_panic(code: Sequence[RustToken], attribute: tuple[int, int] | None) -> str | None:
    if attribute is None:
        return None
    literals = [token.text for token in code[attribute[0] : attribute[1]] if token.kind == "text"]
    return literals[0] if literals else '""'


def _names_bound_by_tests(
    code: Sequence[RustToken], keywords: Collection[str] = frozenset(TYPE_KEYWORDS | {"fn", "mod", "const", "static"})
) -> set[str]:
    """The names that the tests import, or define themselves by a macro or one of these keywords."""
    names: set[str] = set()
    bringing_in = False
    for number, token in enumerate(code):
        before = code[number - 1].text if number else ""
        if token.text == "use" and token.kind == "word":
            bringing_in = True
        elif token.text == ";":
            bringing_in = False
        elif token.kind == "word" and (
            bringing_in
            or before in keywords
            or (before == "!" and number > 1 and code[number - 2].text == "macro_rules")
        ):
            names.add(token.text)
    return names


def _standard_imports(
    texts: Sequence[str], called: Collection[str], taken: Collection[str], libraries: Collection[str]
) -> str:
    """Imports that keep the usual meaning of common names; they take precedence over `use super::*`."""
    used = set(texts)
    # a type and the module of its constants have the same name, and the module leads to both
    modules = {name for name, _, last in zip(texts, texts[1:], texts[2:], strict=False) if last == "consts"}
    paths = [name for name in STD_MACROS if name in called and name not in taken]
    primitives = [name for name in sorted(PRIMITIVE_TYPES) if name in used and name not in taken]
    paths += [name if name in modules else f"primitive::{name}" for name in primitives]
    paths += [path for name, path in PRELUDE_PATHS.items() if name in used and name not in taken]
    # what the tests import themselves, under its own name or as something else, is theirs to name
    imported = {
        name
        for word, name, after in zip(texts, texts[1:], texts[2:], strict=False)
        if word in ("use", "crate", "::") and after in (";", "as")
    }
    crates = "".join(f"use ::{name}; " for name in ("std", "core", *sorted(set(libraries) - imported)) if name in used)
    return f"{crates}use ::std::{{{', '.join(paths)}}};" if paths else crates.rstrip()
