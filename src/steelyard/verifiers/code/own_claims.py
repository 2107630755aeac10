"""Whether an answer may have decided its tests itself: by its own equality or order, or by values that are compared only with its own.

A claim of tests proves something if the language compares plain data. It proves nothing for sure, whatever the answer's code looks like, if
- both sides of a comparison are made by the answer: `Money(1) + Money(2) == Money(3)`;
- a type that the tests can see says itself when its values are equal, or in which order they come;
- the tests hand a function of the answer over as a value, such as a comparator to a sort.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import pairwise

from steelyard.text import word_set
from steelyard.verifiers.code.answer_values import (
    IMPORT_PATTERN,
    MAX_READ_CHARS,
    TEXT_OR_COMMENT_PATTERN,
    AnswerValues,
    answer_values,
    closing_place,
    parts_of,
    side_after,
    side_before,
)

_COMPARISON_PATTERN = re.compile(
    r"[=!]==?(?![=>])|(?<=\s)[<>]=?(?=\s)|(?<![\w$@%])(?:eq|ne|lt|gt|le|ge|is\s+not|is)(?![\w(=])"
)
_EQUAL_CALL_PATTERN = re.compile(
    r"(?P<name>[\w:.]*(?:[eE]qual|EQ\b|NE\b|_eq|_ne|[eE]q\b|[sS]ame|\bis(?:nt|_deeply)?\b|[cC]ompare|(?:mem|str)n?cmp|_cmp|\bcmp)\w*)\s*!?\s*(?P<opening>\()"
)
"""A call that says whether two values are the same, by its name."""
_EXPECT_PATTERN = re.compile(r"\bexpect\s*(?P<opening>\()")
_LOOKUP_PATTERN = re.compile(
    r"\b(?:find|count|contains|includes|indexOf|containsKey|has|lookup|index|remove)\s*(?P<opening>\()"
)
_SORT_PATTERN = re.compile(r"(?P<dot>[.>:]?)\b(?:\w*[sS]ort\w*)\s*(?P<opening>\()")
_TYPE_OR_EDGE = r"\b(?:class|struct|record|enum)\s+(?:class\s+)?(?P<type>\w+)|(?P<edge>[{};])"
_OWN_ORDER_PATTERNS = {
    "cpp": re.compile(
        rf"{_TYPE_OR_EDGE}|(?P<given>(?:\b\w+\s*::\s*)?\boperator\s*(?P<method>[=!]=|<=>|<=|>=|<(?!<)|>(?!>)|\(\s*\))\s*\([^(){{}};]*\))(?!\s*const\s*=\s*default)"
    ),
    "java": re.compile(
        rf"{_TYPE_OR_EDGE}|(?<![.\w])(?P<method>equals|hashCode|compareTo|compare)\s*(?P<given>\([^(){{}};]*\))\s*\{{"
    ),
    "python": re.compile(rf"{_TYPE_OR_EDGE}|\bdef\s+__(?P<method>eq|ne|lt|le|gt|ge|hash)__\s*(?P<given>\()"),
}
"""By language: the functions by which a type compares its values, and what their owner is found by."""
_RUST_ORDER_TRAITS = word_set("PartialEq PartialOrd Ord Hash")
_GO_ORDER_PATTERN = re.compile(r"\bfunc\s*\([^()]*\)\s*(Len|Less|Swap|Push|Pop)\s*\(")
_GO_ORDERED_PATTERN = re.compile(r"\b(?:heap\.\w+|sort\.(?:Sort|Stable|Reverse|IsSorted))\(")
"""Functions of Go that ask a type for its order."""
_TRUTH_PATTERN = re.compile(r"[\s(]*(?:0|[tT]rue|[fF]alse)?[\s)]*")
"""What says only whether something holds."""
_ASSERTING_PATTERN = re.compile(r"\b(?:assert\w*|ok|check\w*|require|expect|if|unless|die|throw)\b")
_METHOD_PATTERN = re.compile(r"(?:\.|->)\s*\w+\s*(?P<opening>\()")
_COMPARATOR_PATTERN = re.compile(r"\bComparator\b[^;{}=(]{0,200}?\b(\w+)\s*[=(]")


Both = list[tuple[frozenset[str], frozenset[str]]]
"""The names of the answer's on the two sides of each claim that has some on both."""


def own_decision(tests: str, code: str, language: str) -> str:
    """Why an answer may have decided its tests itself; empty if it has not.

    >>> own_decision("assert(add(1, 2) == 3);", "int add(int a, int b) { return a + b; }", "c")
    ''
    >>> own_decision("assert(Money(1) + Money(2) == Money(3));", "class Money { public: Money(int) {} };", "cpp")
    'the tests compare what Money makes only with what the answer makes; compare it with a plain value'
    """
    if len(code) > MAX_READ_CHARS:
        return "the answer is too long to see whether it decides its tests itself"
    if language == "shell":
        return _compared_only(*_compared_in_shell(tests, code), frozenset())
    values = answer_values(tests, code, language)
    if name := _own_order(values, TEXT_OR_COMMENT_PATTERN.sub('""', code), language):
        return f"{name} says itself when values are equal, or in which order they come"
    both, anchored = _compared(values)
    if compared := _compared_only(both, anchored, values.types):
        return compared
    if name := min(_handed_over(values) - anchored, default=""):
        return f"the tests hand {name} over as a value, so that it may decide what is equal, or in which order"
    return ""


def _own_order(values: AnswerValues, code: str, language: str) -> str:
    """A type that tests can see and that compares or orders its values by code of its own."""
    if language == "go":
        found = _GO_ORDER_PATTERN.search(code) if _GO_ORDERED_PATTERN.search(values.tests) else None
        return found[1] if found else ""
    visible = values.visible_types()
    if language == "rust":
        return min(visible & set(_ordered_in_rust(code)), default="")
    owners = values.words & set(_COMPARATOR_PATTERN.findall(code)) if language == "java" else set()
    pattern = _OWN_ORDER_PATTERNS.get(language)
    declared, stack = "", [""]
    for each in pattern.finditer(code) if pattern else ():
        if each["method"]:
            # an operator of C++ outside of its type is known by what it is given
            owner = declared if language == "python" else stack[-1]
            owners |= ({owner} if owner else set(re.findall(r"\w+", each["given"]))) & visible
            if each[0].endswith("{"):
                stack.append(stack[-1])
        elif each["type"]:
            declared = each["type"]
        elif each["edge"] == "{":
            stack.append(declared or stack[-1])
            declared = ""
        elif each["edge"] == "}":
            stack[1:] = stack[1:-1]
        elif language != "python":
            declared = ""
    return min(owners, default="")


def _ordered_in_rust(code: str) -> Iterator[str]:
    """The types that have an order, an equality or a hash which is not derived."""
    code = re.sub(r"#\[[^\]]*\]", "", code)
    traits = _RUST_ORDER_TRAITS | set(re.findall(r"\b(?:PartialEq|PartialOrd|Ord|Hash)\s+as\s+(\w+)", code))
    if "macro_rules" in code and traits & set(re.findall(r"\w+", code)):
        yield from re.findall(r"\w+", code)
    for _ in range(4):
        code = re.sub(r"<[^<>{};]*>", "", code)
    for piece in re.split(r"[{};]", code):
        trait, _, owner = piece.partition(" for ")
        if "impl" in trait and (re.findall(r"\w+", trait) or [""])[-1] in traits:
            yield from re.findall(r"\w+", owner)


@lru_cache(maxsize=256)
def _handed_over(values: AnswerValues) -> frozenset[str]:
    """The functions of the answer that tests hand over without calling them, or whose results they sort by."""
    tests = re.sub(r"#\[[^\]\n]*\]", "", IMPORT_PATTERN.sub("", values.tests))
    written = set(re.findall(r"[(,=\[{&\\]\s*&?(?:(\w+)(?:::|\.))*([A-Za-z_]\w*)\s*(?=[),;\]\n}])", tests))
    found = {
        name
        for owner, name in written
        if name in values.functions
        and (owner in values.types | values.imported if owner else values.is_free_function(name))
    }
    for each in _SORT_PATTERN.finditer(tests):
        parts = parts_of(tests[each.end() : closing_place(tests, each.start("opening"))])
        found |= values.names(",".join(parts if each["dot"] else parts[1:]))
    return frozenset(found)


def _compared_only(both: Both, anchored: Collection[str], types: Collection[str]) -> str:
    for one, other in both:
        typed = (one | other).intersection(types)
        if typed or not (one.issubset(anchored) or other.issubset(anchored)):
            name = min(typed or one | other)
            return f"the tests compare what {name} makes only with what the answer makes; compare it with a plain value"
    return ""


@lru_cache(maxsize=256)
def _compared(values: AnswerValues) -> tuple[Both, frozenset[str]]:
    """The claims with something of the answer on both sides, and what is elsewhere compared with plain data."""
    both: Both = []
    anchored: set[str] = set()
    for left, right in _claims(values):
        one, other = values.names(left), values.names(right)
        if one and other:
            both.append((one, other))
        elif not _TRUTH_PATTERN.fullmatch(right if one else left):
            anchored |= one | other
    return both, frozenset(anchored)


def _claims(values: AnswerValues) -> Iterator[tuple[str, str]]:
    """The two sides of each comparison in tests; a value of the answer's type that is looked up is both."""
    for statement in values.statements:
        text = statement.text
        helpers = [each for each in re.finditer(r"\b(\w+)\s*\(", text) if each[1] in values.functions_of_tests]
        for found in _COMPARISON_PATTERN.finditer(text):
            left, right = side_before(text, found.start()), side_after(text, found.end())
            # an order says too little of a value; whether something was found is read elsewhere
            is_order = found[0][0] in "<>" and not (values.names(left) and values.names(right))
            if not is_order and not re.search(r"\bc?end\s*\([\w\s]*\)\s*$", right):
                yield left, right
        for found in _LOOKUP_PATTERN.finditer(text):
            sought = parts_of(text[found.end() :])[-1]
            if values.names(sought) & values.types:
                yield sought, sought
        for found in re.finditer(r"(?<=[)\w])\s+in\s+(?=[\[({\w])", text):
            sought = side_before(text, found.start())
            yield sought, sought if values.names(sought) & values.types else ""
        for found in _EXPECT_PATTERN.finditer(text):
            end = closing_place(text, found.start("opening"))
            if after := re.match(r"\s*(?:\.\s*\w+\s*)+\(", text[end + 1 :]):
                yield text[found.end() : end], parts_of(text[end + 1 + after.end() :])[0]
        # what nothing else is compared with may be a comparison itself, by any name
        claiming = (_COMPARISON_PATTERN, _EQUAL_CALL_PATTERN, _EXPECT_PATTERN)
        is_claim = _ASSERTING_PATTERN.search(text) and not (helpers or any(each.search(text) for each in claiming))
        for found in _METHOD_PATTERN.finditer(text) if is_claim else ():
            receiver, given = side_before(text, found.start()), parts_of(text[found.end() :])[0]
            if values.names(receiver) & values.types and values.names(given) & values.types:
                yield receiver, given
        for found in (*_EQUAL_CALL_PATTERN.finditer(text), *helpers):
            parts = parts_of(text[found.end() :])
            receiver = side_before(text, found.start()) + found.groupdict().get("name", "").rpartition(".")[0]
            yield from pairwise(parts) if len(parts) > 1 else [(receiver, parts[0])]


def _compared_in_shell(tests: str, code: str) -> tuple[Both, set[str]]:
    """The same for a shell, where tests compare what functions print."""
    for name, value in re.findall(r"^[ \t]*(\w+)=\"?(\$\(\s*\w+)", tests, re.MULTILINE):
        tests = re.sub(rf"\$\{{?{name}\b", value, tests)
    own = frozenset(re.findall(r"^[ \t]*(?:function[ \t]+)?(\w+)[ \t]*\([ \t]*\)", code, re.MULTILINE))
    sides = re.findall(r"\[\[?\s+(\S.*?)\s+!?==?\s+(.*?)\s+\]\]?", tests)
    printed = [tuple(own & set(re.findall(r"\$\(\s*(\w+)", side)) for side in pair) for pair in sides]
    both = [(one, other) for one, other in printed if one and other]
    return both, {name for one, other in printed if not (one and other) for name in one | other}
