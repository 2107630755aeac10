"""Which claims of tests compare what an answer makes only with what the same answer makes, so that all of it may be the same."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from steelyard.text import word_set
from steelyard.verifiers.code.kept_fields import Maker, keeps_what_it_is_given

_TEXT_OR_COMMENT_PATTERN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|`[^`\n]*`|(?<![\w&<])\'(?:[^\'\\\n]|\\.)*\'|//[^\n]*|/\*.*?\*/|(?:^|(?<=\s))#(?![\w[!])[^\n]*',
    re.DOTALL | re.MULTILINE,
)
_DECLARED_TYPE_PATTERN = re.compile(
    r"\b(?:class|struct|record|union|package)\s+([A-Za-z_]\w*)|\btype\s+([A-Za-z_]\w*)\s+[^=\s]|\}\s*([A-Za-z_]\w*)\s*;"
)
_ENUM_PATTERN = re.compile(r"\benum\s+(?:class\s+|struct\s+)?([A-Za-z_]\w*)")
_DECLARED_FUNCTION_PATTERN = re.compile(
    r"\b(?:fn|func|function\s*\*?|def|sub)\s+([A-Za-z_$][\w$]*)|\b(?:const|let|var)\s+([A-Za-z_$][\w$]*)\s*(?::[^=\n]+)?=\s*(?:async\s*)?(?:func(?:tion)?\b|\(|\w+\s*=>)"
    r"|^[ \t]*(?!(?:return|else|new|throw|let|const|var|if|while|for|match|assert)\b)(?:[\w:<>,&*\[\]]+[ \t*&]+)+([A-Za-z_]\w*)[ \t]*\([^;{}]*\)[^;{}()=]*\{",
    re.MULTILINE,
)
_EQUALITY_PATTERN = re.compile(r"[=!]==?(?![=>])|(?<![\w$@%])(?:eq|ne|is\s+not|is)(?![\w(=])")
_EQUAL_CALL_PATTERN = re.compile(
    r"(?P<name>[\w:.]*(?:[eE]qual|EQ\b|NE\b|_eq|_ne|[eE]q\b|[sS]ame|\bis(?:nt|_deeply)?\b|[cC]ompare|_cmp|\bcmp)\w*)\s*!?\s*(?P<opening>\()"
)
"""A call that says whether two values are the same, by its name."""
_EXPECT_PATTERN = re.compile(r"\bexpect\s*(?P<opening>\()")
_NEGATIVE_NAME_PATTERN = re.compile(r"\bnot|Not[A-Z]|_ne\b|_NE\b|isnt|Different")
_ASSERTING_PATTERN = re.compile(
    r"(?:^|\W)(?:assert|ok|check|require|expect|ensure|verify|assertTrue|isTrue|ASSERT_TRUE|EXPECT_TRUE|CHECK|REQUIRE)(?:\.\w+)?\s*!?\s*[\s(]"
)
_REFUTING_PATTERN = re.compile(r"(?:assertFalse|_FALSE|isFalse|refute|CHECK_FALSE|REQUIRE_FALSE)\s*\($")
_FAILING_PATTERN = re.compile(
    r"\b(?:throw|raise|die|panic|abort|exit|fail\w*|Fatal\w*|Error\w*|return\s+1|assert)\b|\bt\.Error"
)
_ASSIGNMENT_PATTERN = re.compile(
    r"^(?P<names>[^=()!<>]*?)(?P<sign>:=|(?<![=!<>+*/|&^%-])=(?![=>~]))(?P<value>.*)", re.DOTALL
)
_ASKING_PATTERN = re.compile(r"(?:(?<=\.)|(?<=->))\s*([A-Za-z_]\w*)|\b(?=(?:str|repr|String|format|hash)\s*!?\()(\w+)")
_MADE_PATTERN = re.compile(
    r"\s*(?:<[^()]*>)?\s*(?:(?:::|\.|->)\s*(?:<[^()]*>::)?(?P<method>[a-z_]\w*)\s*)?(?:\(\s*[^)\s]|\{\s*[^}\s])"
)
"""What follows a type where a value of it is made of something: `T(1)`, `T{1}`, `T::new(1)`, `T.of(1)`, `T->new(1)`."""
_CALLED_PATTERN = re.compile(r"\s*(?:::?<[^()]*>)?\s*\(\s*[^)\s]")
_SAME_VALUE_METHODS = word_set("unwrap clone expect ok get value copied cloned into as_ref deref stringify new of from")
_ORDER_PATTERN = re.compile(r"(?<=\s)[<>]=?(?=\s)|(?<=[\w)\]])[<>]=?(?=-?\d)")
_LOOP_PATTERN = re.compile(r"\s*(?:\}?\s*)?(?:for|while|until|do)\b")
_WHOLE_PATTERN = re.compile(r"\b(?:u?int\d*(?:_t)?|long|short|size_t|char|[iu](?:8|16|32|64|128|size))\b")
_WHOLE_VALUE_PATTERN = re.compile(r"\.\(u?int\d*\)\s*$")
_COUNT_PATTERN = re.compile(
    r"(?:\.|->)\s*(?:length|size|len|count|Len)\b|\b(?:len|strlen|sizeof|scalar|indexOf|find|compareTo|cmp|localeCompare)\b"
)
_CONDITION_PATTERN = re.compile(r"^\s*(?:\}?\s*else\s+)?(?:if|elif|unless)\b")


class OwnClaim(NamedTuple):
    """A claim of tests that two things are equal which the answer has made."""

    names: frozenset[str]
    """The answer's types and functions by which the two sides are made."""
    makers: frozenset[Maker] = frozenset()
    """How a side is made that is nothing but one value."""
    methods: frozenset[str] = frozenset()
    """What both sides are asked by, where both are."""


def vacuous_claim(tests: str, code: str, language: str) -> str:
    """Why tests may say nothing of what an answer makes, because they compare it only with itself; empty if they say something."""
    for claim in own_claims(tests, code):
        if any(keeps_what_it_is_given(code, language, maker) for maker in claim.makers):
            continue
        if claim.makers or not claim.methods:
            return f"the tests compare what {min(claim.names)} makes only with each other, and it does not plainly keep what it is given; assert that two of them differ"
        return f"the tests compare {min(claim.methods)} of {min(claim.names)} only with itself; compare it with a value"
    return ""


def own_claims(tests: str, code: str) -> list[OwnClaim]:
    """The claims that have something of the answer on both sides, without those of which others say that the answer tells its values apart.

    >>> own_claims("assert(Money(1) + Money(2) == Money(3));", "class Money { public: Money(int) {} };")
    [OwnClaim(names=frozenset({'Money'}), makers=frozenset({Maker(name='Money', method='')}), methods=frozenset())]
    >>> own_claims("assert(Money(1) + Money(2) == Money(3)); assert(Money(1) != Money(2));", "class Money {};")
    []
    """
    return _Reader(tests, code).doubtful()


def too_far_only(tests: str, code: str) -> bool:
    """Whether tests fail a number of the answer's where an order is true, which none is of NaN: `if (got < 2 || got > 4) fail()`."""
    return _Reader(tests, code).fails_by_order()


class _Statement(NamedTuple):
    text: str
    following: str
    """What stands in the block that it opens."""


class _Reader:
    """The claims of tests about what an answer declares."""

    def __init__(self, tests: str, code: str) -> None:
        plain = _TEXT_OR_COMMENT_PATTERN.sub('""', code)
        self._statements = list(_statements(_TEXT_OR_COMMENT_PATTERN.sub('""', tests)))
        enums = set(_ENUM_PATTERN.findall(plain))
        declared = _flat(_DECLARED_TYPE_PATTERN.findall(plain))
        words = set(re.findall(r"[A-Za-z_$][\w$]*", tests))
        of_tests = _flat(_DECLARED_FUNCTION_PATTERN.findall(tests)) | _flat(_DECLARED_TYPE_PATTERN.findall(tests))
        self._types = ((declared | enums) & words) - of_tests
        # what an answer calls a method is one of its functions, too
        self._functions = (_flat(_DECLARED_FUNCTION_PATTERN.findall(plain)) & words) - of_tests - self._types
        self._variables: dict[str, frozenset[str]] = {}
        self._makers: dict[str, Maker] = {}
        self._whole: set[str] = set()
        for _ in range(3):
            for statement in self._statements:
                self._assign(statement.text)

    def doubtful(self) -> list[OwnClaim]:
        claims: list[OwnClaim] = []
        told_apart: set[str] = set()
        anchored: set[str] = set()
        for statement in self._statements:
            for left, right, is_negative in _comparisons(statement):
                one, other = self._names(left), self._names(right)
                asked = self._methods(left), self._methods(right)
                if not (one and other):
                    anchored |= one | other | (asked[0] if one else asked[1] if other else set())
                elif is_negative:
                    told_apart |= one | other
                else:
                    methods = asked[0] | asked[1] if asked[0] and asked[1] else set()
                    makers = frozenset(made for side in (left, right) if (made := self._maker(side)))
                    claims.append(OwnClaim(one | other, makers, frozenset(methods)))
            told_apart |= self._ordered(statement.text)
        return [
            claim
            for claim in claims
            if not claim.names & told_apart
            and not (claim.names & anchored and not any(made.name in self._types for made in claim.makers))
        ]

    def fails_by_order(self) -> bool:
        for statement in self._statements:
            text = statement.text
            is_condition = bool(_CONDITION_PATTERN.match(text))
            if _LOOP_PATTERN.match(text) or (is_condition and not _FAILING_PATTERN.search(text + statement.following)):
                continue
            for sign in _ORDER_PATTERN.finditer(text):
                left, right = _side_before(text, sign.start()), _side_after(text, sign.end())
                one, other = self._fractions(left), self._fractions(right)
                if not (one or other) or _COUNT_PATTERN.search(f"{left if one else ''} {right if other else ''}"):
                    continue
                is_large = bool(one) if sign[0].startswith(">") else bool(other)
                start = sign.start() - len(left)
                is_denied = bool(re.search(r"!\s*\($|\bnot\s*\(?$|\bunless\b[\s(]*$", text[:start].rstrip(" ")))
                is_claimed = not is_condition and bool(
                    _ASSERTING_PATTERN.search(text[:start] + "(") or re.match(r"\s*assert\s+(?!not\b)", left)
                )
                if not is_denied and not is_claimed and (is_condition or is_large or "||" in text):
                    return True
        return False

    def _ordered(self, statement: str) -> set[str]:
        """The functions of which an assertion says that one result is smaller than another."""
        if not _ASSERTING_PATTERN.search(statement):
            return set()
        found: set[str] = set()
        for sign in re.finditer(r"(?<=\s)[<>]=?(?=\s)", statement):
            one = self._names(_side_before(statement, sign.start()))
            other = self._names(_side_after(statement, sign.end()))
            found |= one | other if one and other else set()
        return found & self._functions

    def _methods(self, side: str) -> set[str]:
        """By what a side asks the value that it has, beside how that was made."""
        names = "|".join(map(re.escape, sorted(self._types))) or "(?!)"
        rest = re.sub(rf"\b(?:{names})\s*(?:\.|->)\s*\w+", "", side)
        return _flat(_ASKING_PATTERN.findall(rest)) - _SAME_VALUE_METHODS

    def _names(self, text: str) -> frozenset[str]:
        """The answer's types and functions by which a part of the tests is made."""
        found: set[str] = set()
        for each in re.finditer(r"[A-Za-z_$][\w$]*", text):
            word, after = each[0], text[each.end() : each.end() + 40]
            is_member = text[: each.start()].rstrip().endswith((".", "::", "->"))
            is_made = (word in self._types and _MADE_PATTERN.match(after)) or (
                word in self._functions and not is_member and _CALLED_PATTERN.match(after)
            )
            found |= self._variables.get(word, frozenset({word} if is_made else ()))
        return frozenset(found)

    def _fractions(self, text: str) -> frozenset[str]:
        """The names by which a part is made, without variables that hold whole numbers."""
        return self._names(re.sub(r"\w+", lambda word: "0" if word[0] in self._whole else word[0], text))

    def _maker(self, side: str) -> Maker | None:
        """How a side is made, if it is nothing but one value of the answer's."""
        text = re.sub(r"^[\s&*(]*(?:new\s+|(?:Some|Ok)\s*\(\s*)?[&*]*", "", side)
        word = re.match(r"[A-Za-z_$][\w$]*", text)
        if not word:
            return None
        rest = text[word.end() :]
        if word[0] in self._makers and not re.search(r"\w|[-+*/%]", rest):
            return self._makers[word[0]]
        made = (_MADE_PATTERN if word[0] in self._types else _CALLED_PATTERN).match(rest)
        if not made or word[0] not in self._types | self._functions:
            return None
        opening = max(rest.rfind("(", 0, made.end()), rest.rfind("{", 0, made.end()))
        after = rest[_closing(rest, opening) + 1 :]
        is_asked = re.search(r"\w|[-+*/%]", re.sub(r"\.\s*(?:unwrap|clone)\(\)", "", after))
        method = made["method"] if word[0] in self._types else "()"
        return None if is_asked else Maker(word[0], "{}" if rest[opening] == "{" else method or "")

    def _assign(self, statement: str) -> None:
        for name in self._types:
            # `Money a(1), b{2};` of C++
            if made := re.match(rf"\s*(?:const\s+)?{name}\s+(\w+\s*[({{].*)", statement, re.DOTALL):
                for variable in re.findall(r"(?:^|,)\s*(\w+)\s*[({]", made[1]):
                    self._variables[variable] = frozenset({name})
                    self._makers[variable] = Maker(name, "")
        # Go and C++ assign in a condition, too
        assigned = _ASSIGNMENT_PATTERN.match(re.sub(r"^\s*(?:if|for|switch|while)\b\s*\(?", "", statement))
        if not assigned:
            return
        if names := self._names(assigned["value"]):
            target = re.sub(r":[^,]*", "", assigned["names"])
            for variable in re.findall(r"[A-Za-z_]\w*(?=\s*(?:,|\)|\]|\}|$))", target):
                if variable in self._types | self._functions:
                    continue
                is_whole = _WHOLE_PATTERN.search(assigned["names"]) or _WHOLE_VALUE_PATTERN.search(assigned["value"])
                if is_whole or not self._fractions(assigned["value"]):
                    self._whole.add(variable)
                self._variables[variable] = names
                if maker := self._maker(assigned["value"]):
                    self._makers[variable] = maker


def _comparisons(statement: _Statement) -> Iterator[tuple[str, str, bool]]:
    """The two sides of each comparison in a statement, and whether it says that they differ."""
    text = statement.text
    is_condition = bool(_CONDITION_PATTERN.match(text))
    is_unless = bool(re.match(r"\s*unless\b|.*\bunless\b", text, re.DOTALL))
    is_failing = is_condition and bool(_FAILING_PATTERN.search(text + statement.following))
    is_asserting = bool(_ASSERTING_PATTERN.search(text)) and not is_condition
    for found in _EQUALITY_PATTERN.finditer(text):
        left, right = _side_before(text, found.start()), _side_after(text, found.end())
        is_different = found[0].startswith("!") or found[0] == "ne" or "not" in found[0]
        is_negated = bool(re.search(r"!\s*\($|\bnot\s*\(?\s*$", text[: found.start() - len(left)]))
        says_different = is_different != is_negated
        yield left, right, (says_different if is_asserting or is_unless else not says_different and is_failing)
    for pattern in (_EQUAL_CALL_PATTERN, _EXPECT_PATTERN):
        for found in pattern.finditer(text):
            yield from _called(text, found, is_asserting=is_asserting, is_failing=is_failing, is_unless=is_unless)


def _called(
    text: str, found: re.Match[str], *, is_asserting: bool, is_failing: bool, is_unless: bool
) -> Iterator[tuple[str, str, bool]]:
    opening = found.start("opening")
    end = _closing(text, opening)
    parts = _parts(text[opening + 1 : end])
    before = _side_before(text, found.start())
    name = found["name"] if "name" in found.groupdict() else "expect"
    if name == "expect":
        after = re.match(r"\s*((?:\.\s*\w+\s*)+)\(", text[end + 1 :])
        if after:
            second = end + 1 + after.end() - 1
            yield parts[0], text[second + 1 : _closing(text, second)], bool(re.search(r"\bnot\b", after[1]))
        return
    owner, dot, _ = name.rpartition(".")
    start = found.start() - len(before)
    is_negated = bool(
        re.match(r"\s*(?:!|not\b)", before)
        or re.search(r"!\s*\(?\s*$|\bnot\s*\(?\s*$", text[:start])
        or _REFUTING_PATTERN.search(text[:start])
    )
    is_claim = bool(re.search(r"assert|EXPECT|ASSERT|REQUIRE|CHECK|\bis|deeply|isnt|cmp_ok", name))
    is_different = bool(_NEGATIVE_NAME_PATTERN.search(name))
    is_negative = (
        is_different if is_claim else is_negated if is_asserting or is_unless else not is_negated and is_failing
    )
    if len(parts) >= 2:
        yield parts[0], parts[1], is_negative
    elif len(parts) == 1 and parts[0].strip():
        receiver = f"{before}{owner}" if dot else before
        yield receiver, parts[0], is_negative


def _statements(tests: str) -> Iterator[_Statement]:
    """The statements of tests in any language: they end at a semicolon, at the edge of a block, and at a line outside of brackets."""
    pieces: list[tuple[str, int]] = []
    start, stack = 0, [""]
    for place, sign in enumerate(tests):
        is_block = sign == "{" and _opens_block(tests, place, stack)
        if sign in "([" or (sign == "{" and not is_block):
            stack.append(sign)
        elif (sign in ")]" and stack[-1] in ("(", "[")) or (sign == "}" and stack[-1] == "{"):
            stack.pop()
        elif is_block or sign in ";}" or (sign == "\n" and not stack[-1]):
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
            yield _Statement(called, tests[end : end + 160] if opens_block else "")


def _opens_block(tests: str, place: int, stack: Sequence[str]) -> bool:
    before = tests[max(0, place - 80) : place]
    if re.search(r"(?:=>|->|\)|\|)\s*$", before):
        return True
    return stack[-1] == "" and bool(re.search(r"\s$", before)) and not re.search(r"[=:,(\[]\s*$|\breturn\s*$", before)


def _side_before(text: str, place: int) -> str:
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


def _side_after(text: str, place: int) -> str:
    depth, at = 0, place
    while at < len(text):
        sign = text[at]
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0 or (depth == 0 and (sign in ",;?" or text[at : at + 2] in ("&&", "||"))):
            break
        at += 1
    return text[place:at]


def _closing(text: str, place: int) -> int:
    depth = 0
    for at in range(place, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at
    return len(text)


def _parts(text: str) -> list[str]:
    depth, begin, parts = 0, 0, []
    for at, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]]


def _flat(found: Collection[str | tuple[str, ...]]) -> set[str]:
    return {name for names in found for name in (names if isinstance(names, tuple) else (names,)) if name}
