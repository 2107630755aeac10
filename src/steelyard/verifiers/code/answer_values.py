"""Which values in tests come from their answer: what its functions give, and what its types make."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from steelyard.text import word_set

MAX_READ_CHARS = 20_000
"""Longer answers are not read: patterns take time by the square of the length."""
TEXT_OR_COMMENT_PATTERN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|`[^`\n]*`|(?<![\w&<])\'(?:[^\'\\\n]|\\.)*\'|//[^\n]*|/\*.*?\*/|(?:^|(?<=\s))#(?![\w[!])[^\n]*',
    re.DOTALL | re.MULTILINE,
)
_TYPE_PATTERN = re.compile(
    r"\b(?:class|struct|record|union|package|enum|interface)\s+(?:class\s+|struct\s+)?([A-Za-z_]\w*)|\btype\s+([A-Za-z_]\w*)\s+[^=\s]|\}\s*([A-Za-z_]\w*)\s*;"
)
_FUNCTION_PATTERN = re.compile(
    r"\b(?:fn|func|function\s*\*?|def|sub)\s+([A-Za-z_$][\w$]*)|\b(?:const|let|var|auto)\s+([A-Za-z_$][\w$]*)\s*(?::[^=\n]{1,200})?=\s*(?:async\s*)?(?:func(?:tion)?\b|\(|\[|\w+\s*=>)"
)
_TYPED_FUNCTION_PATTERN = re.compile(
    r"^[ \t]*(?!(?:return|else|new|throw|let|const|var|if|while|for|match|assert)\b)(?:[\w:<>,\[\]]+[ \t*&]+){1,8}([A-Za-z_]\w*)[ \t]*\([^;{}]{0,400}\)[^;{}()=]{0,80}\{",
    re.MULTILINE,
)
_ANY_FUNCTION_PATTERN = re.compile(
    r"\b(?!(?:if|for|while|switch|catch|return|function|constructor|void|bool|char|int|long|float|double|unsigned)\b)([A-Za-z_]\w*)[ \t]*(?=\([^;{}]{0,400}\)[^;{}()=]{0,80}\{)"
)
"""A function without a keyword, and other words before brackets and a block."""
_BRACE_LANGUAGES = frozenset(("c", "cpp", "java", "javascript", "typescript"))
"""Languages whose functions may have no keyword."""
_HELPER_PATTERN = re.compile(
    r"\b(\w+)[ \t]*(?:=[ \t]*\[[^\]\n]*\][ \t]*)?\([^;{}\n]{0,200}\)[^;{}\n]{0,60}[{:]\s*(?:return\b)?([^;}\n]*)"
)
_ANSWER_IMPORT_PATTERN = re.compile(
    r"\bimport\s+([^;\"']*?)\s+from\s+[\"']\./|\b(?:const|let|var)\s+([^;=]*?)\s*=\s*require\([\"']\./"
)
"""What tests in JavaScript import from the answer, by whatever name."""
_EDGE_PATTERN = re.compile(r"([{};]|:$)", re.MULTILINE)
_FILLED_PATTERN = re.compile(r"^(?P<names>\s*(?:const\s+)?[\w:]+<[^=(){}]*>\s+\w+)\s*(?P<value>[({].*)", re.DOTALL)
_ASSIGNMENT_PATTERN = re.compile(
    r"^(?P<names>[^=()!]*?)(?P<sign>:=|(?<![=!<>+*/|&^%-])=(?![=>~]))(?P<value>.*)", re.DOTALL
)
IMPORT_PATTERN = re.compile(
    r"^\s*use\b[^;]*;|^\s*(?:import|from|using|namespace)\b(?:[^;\n(){}]|\([^()]*\)|\{[^{}]*\})*"
    r"|\b(?:const|let|var)\s*(?:\{[^{}]*\}|\w+)\s*=\s*(?:await\s+)?(?:require|import)\b[^\n;]*",
    re.MULTILINE,
)
_OWNER_PATTERN = re.compile(r"([\w$]*)\)?\s*(?:\.|::|->)\s*$")
_CALLED_PATTERN = re.compile(r"\s*(?:::\s*)?(?:<[^()]*>)?\s*\(")
_MADE_PATTERN = re.compile(r"\s*(?:<[^()]*>)?\s*[({]")
_ERASING_WORDS = word_set("impl dyn auto Object Comparable")
"""Words by which a result may have any type."""
_WHOLE_PATTERN = re.compile(r"\b(?:u?int\d*(?:_t)?|long|short|size_t|char|[iu](?:8|16|32|64|128|size))\b")
_WHOLE_VALUE_PATTERN = re.compile(r"\.\(u?int\d*\)\s*$")


class Statement(NamedTuple):
    """A statement of tests."""

    text: str
    following: str
    """What stands in the block that it opens."""


class DeclaredNames(NamedTuple):
    """All that reading the tests needs to know of an answer; most answers to one case agree in it."""

    all_types: frozenset[str]
    """The types that it declares, and the tests do not."""
    types: frozenset[str]
    """Those of them that the tests name."""
    functions: frozenset[str]
    """Its functions that the tests name."""
    heads: tuple[frozenset[str], ...]
    """For each head of a function, type or block that has one of these names: what of it matters."""


def answer_values(tests: str, code: str, language: str) -> AnswerValues:
    """Where in tests the values of an answer are."""
    plain = TEXT_OR_COMMENT_PATTERN.sub('""', code)
    names_of = _names_in_tests(tests)
    all_types = frozenset(flat(_TYPE_PATTERN.findall(plain))) - names_of.declared
    types = all_types & names_of.words
    found = flat(_FUNCTION_PATTERN.findall(plain)) | names_of.called_imports
    found |= set(_ANY_FUNCTION_PATTERN.findall(plain) if language in _BRACE_LANGUAGES else ())
    functions = (frozenset(found) & names_of.words) - names_of.declared - types
    names = all_types | functions
    known = names | _ERASING_WORDS | {"self", "Self"}
    heads = (frozenset(head & known) for head in _heads(plain) if not head.isdisjoint(names))
    # to look at the same head twice in a row changes nothing
    different = tuple(head for head, _ in groupby(heads))
    return _read_values(tests, DeclaredNames(all_types, types, functions, different), language)


class _NamesInTests(NamedTuple):
    words: frozenset[str]
    functions: frozenset[str]
    """What the tests declare themselves."""
    declared: frozenset[str]
    """The same, and their types."""
    called_imports: frozenset[str]
    """What they import from the answer and call."""


@lru_cache(maxsize=256)
def _names_in_tests(tests: str) -> _NamesInTests:
    functions = flat(_FUNCTION_PATTERN.findall(tests)) | set(_TYPED_FUNCTION_PATTERN.findall(tests))
    imported = set(re.findall(r"\w+", " ".join(flat(_ANSWER_IMPORT_PATTERN.findall(tests)))))
    called = set(re.findall(r"(\w+)\s*\(", TEXT_OR_COMMENT_PATTERN.sub('""', tests)))
    declared = functions | flat(_TYPE_PATTERN.findall(tests))
    words = re.findall(r"[A-Za-z_$][\w$]*", tests)
    return _NamesInTests(*map(frozenset, (words, functions, declared, imported & called)))


@lru_cache(maxsize=256)
def _read_values(tests: str, declared: DeclaredNames, language: str) -> AnswerValues:
    return AnswerValues(tests, declared, language)


class AnswerValues:
    """What an answer declares and its tests name, and where in the tests its values are."""

    def __init__(self, tests: str, declared: DeclaredNames, language: str) -> None:
        self.tests = TEXT_OR_COMMENT_PATTERN.sub('""', tests)
        self.statements = list(_statements(self.tests))
        self.words, self.functions_of_tests, *_ = _names_in_tests(tests)
        self.all_types, self.types, self.functions, self._heads = declared
        self._language = language
        # Rust and Go make `Point { x: 1 }` and `Point(1)` themselves
        self._makes_literals = language in ("rust", "go")
        self.imported = set(re.findall(r"\w+", " ".join(IMPORT_PATTERN.findall(tests)))) | {"super", "crate"}
        self.variables: dict[str, frozenset[str]] = {}
        """The variables of the tests that hold something of the answer's, with the names that it is made by."""
        self._whole: set[str] = set()
        self._arrays = set(re.findall(r"\b(\w+)\s*\[", tests))
        for _ in range(3):
            for statement in self.statements:
                self._assign(statement.text)
            self._read_helpers()

    def names(self, text: str) -> frozenset[str]:
        """The answer's types and functions by which a part of the tests is made."""
        found: set[str] = set()
        for each in re.finditer(r"[A-Za-z_][\w$]*", text):
            if (word := each[0]) in self.variables:
                found |= self.variables[word]
            elif word in self.types or word in self.functions:
                found |= self._made(text, each)
        return frozenset(found)

    def fractions(self, text: str) -> frozenset[str]:
        """The same, without variables that hold whole numbers."""
        return self.names(re.sub(r"\w+", lambda word: "0" if word[0] in self._whole else word[0], text))

    def is_free_function(self, name: str) -> bool:
        """Whether tests that write just this name mean a function of the answer, and neither a method nor a variable of theirs."""
        heads = [head for head in self._heads if name in head]
        is_method = bool(heads) and all({"self", "Self"} & head for head in heads)
        is_assigned = re.search(rf"\b{name}\s*(?::[^=\n]*)?:?=(?![=>])", IMPORT_PATTERN.sub("", self.tests))
        is_named = name in self.imported or self._language not in ("javascript", "typescript", "java")
        return is_named and not is_method and not is_assigned

    def visible_types(self) -> frozenset[str]:
        """The types of the answer that its tests can see: those that they name, or that the heads of what they name do."""
        visible = self.types | self.functions
        for _ in range(3):
            for head in self._heads:
                if head & visible:
                    visible |= self.all_types if head & _ERASING_WORDS else head & self.all_types
        return visible & self.all_types

    def _made(self, text: str, word: re.Match[str]) -> set[str]:
        name, before, after = word[0], text[max(0, word.start() - 60) : word.start()], text[word.end() :]
        if name in self.types:
            is_converted = self._language == "rust" and bool(
                re.search(r"::\s*<[^()]*$", before) or re.match(r"\s*::\s*[A-Z][A-Z0-9_]+\b", after)
            )
            is_made = is_converted or (not self._makes_literals and _MADE_PATTERN.match(after) is not None)
            return {name} if is_made else set()
        owner = _OWNER_PATTERN.search(before)
        is_own = owner is None or owner[1] in self.types or owner[1] in self.imported
        if not is_own or not _CALLED_PATTERN.match(after):
            return set()
        beside = {other for head in self._heads if name in head for other in head}
        is_constructor = owner is not None and owner[1] in self.types and (name == "new" or "Self" in beside)
        return {name} | (beside & self.types) | ({owner[1]} if is_constructor and owner else set())

    def _assign(self, statement: str) -> None:
        for name in self.types if self._language == "cpp" else ():
            # `Money a(1), b{2};`
            if found := re.match(rf"\s*(?:const\s+)?{name}\s+(\w+\s*[({{].*)", statement, re.DOTALL):
                for variable in re.findall(r"(?:^|,)\s*(\w+)\s*[({]", found[1]):
                    self.variables[variable] = frozenset({name})
        # Go and C++ assign in a condition, too
        plain = re.sub(r"^\s*(?:if|for|switch|while)\b\s*\(?", "", statement)
        assigned = _ASSIGNMENT_PATTERN.match(plain) or _FILLED_PATTERN.match(plain)
        if not assigned:
            self._fill(plain)
            return
        # the head of a loop goes on after a semicolon
        target, value = assigned["names"], assigned["value"].partition(";")[0]
        # Rust makes a value of the type that a variable has
        given = {name for name in self.types if self._language == "rust" and re.search(rf":[^=]*\b{name}\b", target)}
        names = self.names(value) or (frozenset(given) if ".into()" in value or ".parse()" in value else frozenset())
        if not names:
            return
        target = re.sub(r"(?<!:):(?!:)[^,]*|\[[^\]]*\]", "", target)
        variables = re.findall(r"[A-Za-z_]\w*(?=\s*(?:,|\)|\}|$))", target) + re.findall(
            r",\s*\*?(\w+)\s*=(?!=)", value
        )
        for variable in set(variables) - self.types - self.functions:
            is_whole = _WHOLE_PATTERN.search(assigned["names"]) or _WHOLE_VALUE_PATTERN.search(value)
            if is_whole or not self.fractions(value):
                self._whole.add(variable)
            self.variables[variable] = names

    def _read_helpers(self) -> None:
        """A function of the tests gives what its first statement makes: `fn m(n: i32) -> Money { Money::new(n) }`."""
        for found in _HELPER_PATTERN.finditer(self.tests):
            if found[1] in self.functions_of_tests and (names := self.names(found[2])):
                self.variables[found[1]] = names

    def _fill(self, statement: str) -> None:
        """A call as a statement may write to what it is given."""
        called = re.match(r"\s*(\w+)\s*\((.*)\)\s*$", statement, re.DOTALL)
        if called and called[1] in self.functions:
            for part in parts_of(called[2]):
                variable = re.fullmatch(r"\s*(&?)\s*([A-Za-z_]\w*)\s*", part)
                if variable and (variable[1] or variable[2] in self._arrays):
                    self.variables.setdefault(variable[2], frozenset({called[1]}))


def _heads(code: str) -> Iterator[set[str]]:
    """The words before the body of each function, type and block."""
    pieces = _EDGE_PATTERN.split(code)
    for piece, edge in zip(pieces[::2], pieces[1::2], strict=False):
        if edge in ("{", ":"):
            yield set(re.findall(r"\w+", piece.rpartition("\n")[2] if edge == ":" else piece))


def _statements(tests: str) -> Iterator[Statement]:
    """The statements of tests in any language: they end at a semicolon, at the edge of a block, and at a line outside of brackets."""
    pieces: list[tuple[str, int]] = []
    start, stack = 0, [""]
    for place, sign in enumerate(tests):
        is_block = sign == "{" and _opens_block(tests, place, stack)
        if sign in "([" or (sign == "{" and not is_block):
            stack.append(sign)
        elif (sign in ")]" and stack[-1] in ("(", "[")) or (sign == "}" and stack[-1] == "{"):
            stack.pop()
        elif is_block or sign == "}" or (sign == ";" and stack[-1] != "(") or (sign == "\n" and not stack[-1]):
            pieces.append((tests[start:place], place + 1))
            start = place + 1
            if is_block:
                stack.append("")
            elif sign == "}" and len(stack) > 1:
                stack.pop()
    pieces.append((tests[start:], len(tests)))
    for text, end in pieces:
        # Perl's functions need no brackets
        called = re.sub(r"^(\s*(?:is|isnt|is_deeply|cmp_ok))\s+(?![(=])(.*)$", r"\1(\2)", text, flags=re.DOTALL)
        if text.strip():
            opens_block = tests[end - 1 : end] == "{" or text.rstrip().endswith(":")
            yield Statement(called, tests[end : end + 160] if opens_block else "")


def _opens_block(tests: str, place: int, stack: Sequence[str]) -> bool:
    before = tests[max(0, place - 80) : place]
    if re.search(r"(?:=>|->|\)|\|)\s*$", before):
        return True
    return (
        stack[-1] == ""
        and bool(re.search(r"\s$", before))
        and not re.search(r"[=:,(\[]\s*$|\b(?:return|assert|in|and|or|not)\s*$", before)
    )


def closing_place(text: str, place: int) -> int:
    """Where the bracket at a place is closed; the end of the text if it is not."""
    depth = 0
    for at in range(place, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at
    return len(text)


def side_before(text: str, place: int) -> str:
    """What stands on the left of a comparison at a place."""
    depth, at = 0, place
    while at > 0:
        sign = text[at - 1]
        depth += (sign in ")]}") - (sign in "([{")
        if depth < 0 or (depth == 0 and (sign in ",;?" or text[at - 2 : at] in ("&&", "||"))):
            break
        at -= 1
    side = text[at:place]
    assigned = re.match(r"[^=()!<>]*[^=!<>]=(?![=>])", side)
    return side[assigned.end() :] if assigned else side


def side_after(text: str, place: int) -> str:
    """What stands on the right of a comparison that ends at a place."""
    return parts_of(text[place:], ends=re.compile(r"[,;?]|&&|\|\||\s(?:or|and)\s"))[0]


def parts_of(text: str, ends: re.Pattern[str] = re.compile(",")) -> list[str]:
    """What stands between commas outside of brackets, up to a bracket that closes more than was opened."""
    parts: list[str] = []
    depth = begin = 0
    for at, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0:
            return [*parts, text[begin:at]]
        if depth == 0 and ends.match(text, at):
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]]


def flat(found: Collection[str | tuple[str, ...]]) -> set[str]:
    """The names that any group of a pattern found."""
    return {name for names in found for name in (names if isinstance(names, tuple) else (names,)) if name}
