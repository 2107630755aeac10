"""Which claims of tests compare what an answer makes only with what the same answer makes, so that all of it may be the same."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from steelyard.text import word_set
from steelyard.verifiers.code.kept_fields import Maker, closing_place, keeps_what_it_is_given

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
    r"|^[ \t]*(?!(?:return|else|new|throw|let|const|var|if|while|for|match|assert)\b)(?:[\w:<>,\[\]]+[ \t*&]+){1,8}([A-Za-z_]\w*)[ \t]*\([^;{}]{0,400}\)[^;{}()=]{0,80}\{",
    re.MULTILINE,
)
_EQUALITY_PATTERN = re.compile(r"[=!]==?(?![=>])|(?<![\w$@%])(?:eq|ne|is\s+not|is)(?![\w(=])")
_EQUAL_CALL_PATTERN = re.compile(
    r"(?P<name>[\w:.]*(?:[eE]qual|EQ\b|NE\b|_eq|_ne|[eE]q\b|[sS]ame|\bis(?:nt|_deeply)?\b|[cC]ompare|(?:mem|str)n?cmp|_cmp|\bcmp)\w*)\s*!?\s*(?P<opening>\()"
)
"""A call that says whether two values are the same, by its name."""
_EXPECT_PATTERN = re.compile(r"\bexpect\s*(?P<opening>\()")
_COMPARING_NAME_PATTERN = re.compile(r"cmp\b|[cC]ompare(?:To)?$")
_MEMBER_PATTERN = re.compile(
    r"\b(?:find|count|contains|includes|indexOf|containsKey|has|lookup|index|remove)\s*(?P<opening>\()"
)
"""A call that looks a value up."""
_NEGATIVE_NAME_PATTERN = re.compile(r"\bnot|Not[A-Z]|_ne\b|_NE\b|isnt|Different")
_ASSERTING_PATTERN = re.compile(
    r"(?:^|\W)(?:assert|ok|check|require|expect|ensure|verify|assertTrue|isTrue|ASSERT_TRUE|EXPECT_TRUE|CHECK|REQUIRE)(?:\.\w+)?\s*!?\s*[\s(]"
)
_REFUTING_PATTERN = re.compile(r"(?:assertFalse|_FALSE|isFalse|refute|CHECK_FALSE|REQUIRE_FALSE)\s*\($")
_FAILING_PATTERN = re.compile(
    r"\b(?:throw|raise|die|panic|abort|exit|fail\w*|Fatal\w*|Error\w*|return\s+1|assert)\b|\bt\.Error"
)
_FILLED_PATTERN = re.compile(r"^(?P<names>\s*(?:const\s+)?[\w:]+<[^=(){}]*>\s+\w+)\s*(?P<value>[({].*)", re.DOTALL)
_ASSIGNMENT_PATTERN = re.compile(
    r"^(?P<names>[^=()!]*?)(?P<sign>:=|(?<![=!<>+*/|&^%-])=(?![=>~]))(?P<value>.*)", re.DOTALL
)
_ASKING_PATTERN = re.compile(r"(?:(?<=\.)|(?<=->))\s*([A-Za-z_]\w*)|\b(?=(?:str|repr|String|format|hash)\s*!?\()(\w+)")
_MADE_PATTERN = re.compile(
    r"\s*(?:<[^()]*>)?\s*(?:(?:::|\.|->)\s*(?:<[^()]*>::)?(?P<method>[a-z_]\w*)\s*)?(?:\(\s*[^)\s]|\{\s*[^}\s])"
)
"""What follows a type where a value of it is made of something: `T(1)`, `T{1}`, `T::new(1)`, `T.of(1)`, `T->new(1)`."""
_CALLED_PATTERN = re.compile(r"\s*(?:::?<[^()]*>)?\s*\(\s*[^)\s]")
_CONTAINER_WORDS = word_set(
    "new Some Ok vec List Set of Arrays asList std optional make_optional Box unwrap clone const Optional"
)
"""Words that only wrap values."""
_SAME_VALUE_METHODS = word_set("unwrap clone expect ok get value copied cloned into as_ref deref stringify new of from")
_ORDER_PATTERN = re.compile(r"(?<=\s)[<>]=?(?=\s)|(?<=[\w)\]])[<>]=?(?=-?\d)")
_LARGEST_PATTERN = re.compile(r"\b(?:std::)?f?(?:max|min)[fl]?\s*\(|\bf(?:32|64)::(?:max|min)\b\s*\)?()")
_TRUTH_PATTERN = re.compile(
    r"(?:[\w.]+\.)?(?!\w*(?:[fF]alse|FALSE|[nN]ot|[eE]qual|EQ|[fF]ail|throw))(?:debug_)?(?:assert|check|expect|verify|ensure|require|must|ok|test|is_?[tT]rue|ASSERT|CHECK|EXPECT|REQUIRE|OK|TEST)\w*"
)
_LOOP_PATTERN = re.compile(r"\s*(?:\}?\s*)?(?:for|while|until|do)\b")
_WHOLE_PATTERN = re.compile(r"\b(?:u?int\d*(?:_t)?|long|short|size_t|char|[iu](?:8|16|32|64|128|size))\b")
_WHOLE_VALUE_PATTERN = re.compile(r"\.\(u?int\d*\)\s*$")
_COUNT_PATTERN = re.compile(
    r"(?:\.|->)\s*(?:length|size|len|count|Len)\b|\b(?:len|strlen|sizeof|scalar|indexOf|find|compareTo|cmp|localeCompare)\b"
)
_WORD_BETWEEN_PATTERN = re.compile(r"\s(?:or|and)\s")
_CONDITION_PATTERN = re.compile(r"^\s*(?:\}?\s*else\s+)?(?:if|elif|unless)\b")


MAX_READ_CHARS = 20_000
"""Longer answers are not read: patterns take time by the square of the length."""


class OwnClaim(NamedTuple):
    """A claim of tests that two things are equal which the answer has made."""

    names: frozenset[str]
    """The answer's types and functions by which the two sides are made."""
    makers: tuple[frozenset[Maker], ...] = ()
    """How each side is made that is nothing but values."""
    methods: frozenset[str] = frozenset()
    """What both sides are asked by, where both are."""
    seen: frozenset[Maker] = frozenset()
    """How all values in it are made."""


def vacuous_claim(tests: str, code: str, language: str) -> str:
    """Why tests may say nothing of what an answer makes, because they compare it only with itself; empty if they say something."""
    if len(code) > MAX_READ_CHARS:
        return "the answer is too long to see whether the tests compare it with more than itself"
    if language == "shell":
        return _vacuous_in_shell(tests, code)
    claims = own_claims(tests, code)
    kept = {maker for claim in claims for maker in claim.seen if keeps_what_it_is_given(code, language, maker)}
    # what is compared with a value that is plainly kept has to be right
    pinned = {maker for claim in claims if any(side <= kept for side in claim.makers) for maker in claim.seen}
    for claim in claims:
        if any(side <= kept | pinned for side in claim.makers):
            continue
        if claim.makers or not claim.methods:
            return f"the tests compare what {min(claim.names)} makes only with each other, and it does not plainly keep what it is given; assert that two of them differ"
        return f"the tests compare {min(claim.methods)} of {min(claim.names)} only with itself; compare it with a value"
    return ""


def _vacuous_in_shell(tests: str, code: str) -> str:
    """The same for a shell, where tests compare what functions print."""
    own = set(re.findall(r"^\s*(?:function\s+)?(\w+)\s*\(\s*\)", code, re.MULTILINE))
    sides = re.findall(r"\[\[?\s+(\S.*?)\s+(!?==?)\s+(.*?)\s+\]\]?", tests)
    printed = [
        (
            [name for name in re.findall(r"\$\(\s*(\w+)", left) if name in own],
            sign,
            [name for name in re.findall(r"\$\(\s*(\w+)", right) if name in own],
        )
        for left, sign, right in sides
    ]
    told = {name for one, sign, other in printed if not (one and other) or sign == "!=" for name in (*one, *other)}
    alone = [name for one, sign, other in printed if one and other and sign != "!=" for name in (*one, *other)]
    if alone and not told & set(alone):
        return f"the tests compare what {min(alone)} prints only with what the answer prints; compare it with a value"
    return ""


def own_claims(tests: str, code: str) -> list[OwnClaim]:
    """The claims that have something of the answer on both sides, without those of which others say that the answer tells its values apart.

    >>> own_claims("assert(Money(1) + Money(2) == Money(3));", "class Money { public: Money(int) {} };")
    [OwnClaim(names=frozenset({'Money'}), makers=(frozenset({Maker(name='Money', method='')}),), methods=frozenset(), seen=frozenset({Maker(name='Money', method='')}))]
    >>> own_claims("assert(Money(1) + Money(2) == Money(3)); assert(Money(1) != Money(2));", "class Money {};")
    []
    """
    return _Reader(tests, code).doubtful()


def too_far_only(tests: str, code: str) -> bool:
    """Whether tests fail a number of the answer's where an order is true, which none is of NaN: `if (got < 2 || got > 4) fail()`."""
    return len(code) <= MAX_READ_CHARS and _Reader(tests, code).fails_by_order()


class _Statement(NamedTuple):
    text: str
    following: str
    """What stands in the block that it opens."""


class _Reader:
    """The claims of tests about what an answer declares."""

    def __init__(self, tests: str, code: str) -> None:
        plain = _TEXT_OR_COMMENT_PATTERN.sub('""', code)
        self._statements = list(_statements(_TEXT_OR_COMMENT_PATTERN.sub('""', tests)))
        self._tests = tests
        enums = set(_ENUM_PATTERN.findall(plain))
        declared = _flat(_DECLARED_TYPE_PATTERN.findall(plain))
        words = set(re.findall(r"[A-Za-z_$][\w$]*", tests))
        of_tests = _flat(_DECLARED_FUNCTION_PATTERN.findall(tests)) | _flat(_DECLARED_TYPE_PATTERN.findall(tests))
        self._types = ((declared | enums) & words) - of_tests
        # what an answer calls a method is one of its functions, too
        self._functions = (_flat(_DECLARED_FUNCTION_PATTERN.findall(plain)) & words) - of_tests - self._types
        self._variables: dict[str, frozenset[str]] = {}
        self._makers: dict[str, frozenset[Maker]] = {}
        self._whole: set[str] = set()
        self._arrays = set(re.findall(r"\b(\w+)\s*\[", tests))
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
                elif "hashCode" in left and "hashCode" in right:
                    continue  # no value of it is right by itself
                elif left is right and not one & self._types:
                    continue  # a text that is looked up in another one
                elif _bare(left) == _bare(right) in self._variables:
                    continue  # a copy of a value
                elif is_negative:
                    told_apart |= one | other
                else:
                    methods = asked[0] | asked[1] if asked[0] and asked[1] else set()
                    makers = tuple(made for side in (left, right) if (made := self._made(side)))
                    seen = self._values(left)[0] | self._values(right)[0]
                    claims.append(OwnClaim(one | other, makers, frozenset(methods), seen))
            told_apart |= self._ordered(statement.text)
        return [
            claim
            for claim in claims
            if not claim.names & told_apart
            and not (
                claim.names & anchored and not any(each.name in self._types for side in claim.makers for each in side)
            )
        ]

    def fails_by_order(self) -> bool:
        """Whether a number of the answer's, which is in no claim that must hold, is in an order that must not."""
        strict: set[str] = set()
        loose: list[set[str]] = []
        for written in self._statements:
            statement = written._replace(text=_without_loop(written.text))
            text = statement.text
            if any(self._fractions(text[each.end() :]) for each in _LARGEST_PATTERN.finditer(text)):
                return True
            for sign in _ORDER_PATTERN.finditer(text):
                left, right = _side_before(text, sign.start()), _side_after(text, sign.end())
                sides = [side for side in (left, right) if self._fractions(side)]
                if not sides or any(_COUNT_PATTERN.search(side) for side in sides):
                    continue
                words = set(re.findall(r"\w+", " ".join(sides)))
                if _must_hold(statement, sign.start() - len(left), sign.end() + len(right), self._tests):
                    strict |= words & set(self._variables)
                else:
                    loose.append(words)
        return any(not words & strict for words in loose)

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
        for each in re.finditer(r"[A-Za-z_][\w$]*", text):
            word, after = each[0], text[each.end() : each.end() + 40]
            owner = re.search(r"(\w*)\)?\s*(?:\.|::|->)\s*$", text[max(0, each.start() - 60) : each.start()])
            is_member = owner is not None and (not owner[1] or owner[1] in self._types)
            is_made = bool(
                (word in self._types and _MADE_PATTERN.match(after))
                or (word in self._functions and not is_member and _CALLED_PATTERN.match(after))
            )
            is_made = is_made or (word in self._types and re.search(r"::\s*<\s*$", text[: each.start()]) is not None)
            found |= self._variables.get(word, frozenset({word} if is_made else ()))
        return frozenset(found)

    def _fractions(self, text: str) -> frozenset[str]:
        """The names by which a part is made, without variables that hold whole numbers."""
        return self._names(re.sub(r"\w+", lambda word: "0" if word[0] in self._whole else word[0], text))

    def _made(self, side: str) -> frozenset[Maker]:
        """How a side is made, if it is nothing but values of the answer's; empty if it is more."""
        made, rest = self._values(side)
        is_more = set(re.findall(r"\w+", rest)) - _CONTAINER_WORDS or re.search(r"[-+/%]|\w\s*\*", rest)
        return frozenset() if is_more else made

    def _values(self, side: str) -> tuple[frozenset[Maker], str]:
        """How the values in a side are made, and what else is in it."""
        made: set[Maker] = set()
        rest, at = "", 0
        for each in re.finditer(r"[A-Za-z_]\w*", side):
            if each.start() < at:
                continue
            word, after = each[0], side[each.end() :]
            found = (_MADE_PATTERN if word in self._types else _CALLED_PATTERN).match(after)
            if word in self._makers:
                made |= self._makers[word]
                rest, at = rest + side[at : each.start()], each.end()
            elif found and word in self._types | self._functions:
                opening = max(after.rfind("(", 0, found.end()), after.rfind("{", 0, found.end()))
                method = (found["method"] or "") if word in self._types else "()"
                made.add(Maker(word, "{}" if after[opening] == "{" else method))
                rest, at = rest + side[at : each.start()], each.end() + closing_place(after, opening) + 1
        return frozenset(made), rest + side[at:]

    def _assign(self, statement: str) -> None:
        for name in self._types:
            # `Money a(1), b{2};` of C++
            if found := re.match(rf"\s*(?:const\s+)?{name}\s+(\w+\s*[({{].*)", statement, re.DOTALL):
                for variable in re.findall(r"(?:^|,)\s*(\w+)\s*[({]", found[1]):
                    self._variables[variable] = frozenset({name})
                    self._makers[variable] = frozenset({Maker(name, "")})
        # Go and C++ assign in a condition, too
        plain = re.sub(r"^\s*(?:if|for|switch|while)\b\s*\(?", "", statement)
        assigned = _ASSIGNMENT_PATTERN.match(plain) or _FILLED_PATTERN.match(plain)
        if not assigned:
            self._fill(plain)
            return
        target = assigned["names"]
        given = next((name for name in self._types if re.search(rf":\s*(?:\w+<)?{name}\b", target)), "")
        names, made = self._names(assigned["value"]), self._made(assigned["value"])
        if given and not names:
            # Rust makes a value of the type that a variable has
            names, made = frozenset({given}), frozenset({Maker(given, "into")})
        if not names:
            return
        target = re.sub(r"(?<!:):(?!:)[^,]*|\[[^\]]*\]", "", target)
        variables = re.findall(r"[A-Za-z_]\w*(?=\s*(?:,|\)|\}|$))", target)
        variables += re.findall(r",\s*\*?(\w+)\s*=(?!=)", assigned["value"])
        for variable in set(variables) - self._types - self._functions:
            is_whole = _WHOLE_PATTERN.search(assigned["names"]) or _WHOLE_VALUE_PATTERN.search(assigned["value"])
            if is_whole or not self._fractions(assigned["value"]):
                self._whole.add(variable)
            self._variables[variable] = names
            if made:
                self._makers[variable] = made

    def _fill(self, statement: str) -> None:
        """A call as a statement may write to what it is given."""
        called = re.match(r"\s*(\w+)\s*\((.*)\)\s*$", statement, re.DOTALL)
        if called and called[1] in self._functions:
            for part in _parts(called[2]):
                variable = re.fullmatch(r"\s*(&?)\s*([A-Za-z_]\w*)\s*", part)
                if variable and (variable[1] or variable[2] in self._arrays):
                    self._variables.setdefault(variable[2], frozenset({called[1]}))


def _must_hold(statement: _Statement, start: int, end: int, tests: str) -> bool:
    """Whether tests pass only if the comparison from one place to another is true, as it never is of NaN."""
    text = statement.text
    while True:
        # each part of `a && b` must hold where the whole must; what is counted, chosen by or compared is another thing
        before, after = text[:start], text[end:]
        if re.match(r"\s*(?:[-+*/%?]|[=!<>]=|\|\|(?!\s*(?:die|fail|throw)))", after) or re.search(
            r"\|\|\s*$|[-+*/%]\s*$", before
        ):
            return False
        opening = _opening(before)
        if opening < 0:
            return _statement_must_hold(statement, start, end, tests)
        head = before[:opening]
        if text[opening] != "(":
            return False
        if re.search(r"(?<!\w)!\s*$|\bnot\s*$", head):
            return bool(re.search(r"(?:\bif\s*\(?\s*|[-+|&]=\s*)(?:[^&|=]*(?:\|\||\bor)\s*)?!\s*$", head))
        name = (re.search(r"([\w.]*)\s*!?\s*$", head) or [""] * 2)[1]
        if name in ("if", "elif"):
            return _may_pass_over(statement, after)
        if _TRUTH_PATTERN.fullmatch(name) or name == "unless":
            compared = re.match(r"\s*(?:[=!]=|is\b)", text[closing_place(text, opening) + 1 :])
            return not (compared or re.match(r"\s*,\s*(?:false|False)\b", after))
        if name and name.rpartition(".")[2] not in ("every", "all"):
            return False
        start, end = opening - len(name), closing_place(text, opening) + 1


def _statement_must_hold(statement: _Statement, start: int, end: int, tests: str) -> bool:
    """The same for a comparison that is in no brackets."""
    text = statement.text
    before, after, compared = text[:start], text[end:], text[start:end]
    if re.match(r"\s*(?:assert|ok)\s+(?!not\b|!)", before + compared) or re.search(r"\bunless\s", before + compared):
        return True
    if re.match(r"\s*(?:\|\||or)\s*(?:die|fail|throw)", after) or re.search(r"(?:&&|&=|\band)\s*$", before):
        return True
    if _CONDITION_PATTERN.match(before + compared):
        return _may_pass_over(statement, after)
    if re.search(r"\breturn\b", before + compared):
        return re.search(r"<", compared) is not None
    named = re.search(r"(\w+)\s*(?::\s*\w+\s*)?:?=\s*$", before)
    claimed = (
        rf"(?:\b(?:assert\w*|ok|check|expect|CHECK|REQUIRE)\b[.\w]*!?\s*\(?|\bif\s*\(?\s*!|\bunless\s*\(?)\s*\$?{named[1]}\b"
        if named
        else "(?!)"
    )
    return re.search(claimed, tests) is not None


def _may_pass_over(statement: _Statement, after: str) -> bool:
    """Whether a condition neither fails a test nor keeps the largest number so far."""
    keeps_largest = re.search(r"\)\s*\{?\s*\w+\s*=[^=]", after) or re.match(r"\s*\w+\s*=[^=]", statement.following)
    return not _FAILING_PATTERN.search(statement.text + statement.following) and not keeps_largest


def _without_loop(text: str) -> str:
    """A statement without the head of a loop before it."""
    while _LOOP_PATTERN.match(text):
        opening = text.find("(")
        text = text[closing_place(text, opening) + 1 :] if opening >= 0 else ""
    return text


def _opening(text: str) -> int:
    """The place of the innermost bracket that is not closed before the end of a text; -1 if there is none."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] in ")]}") - (text[at] in "([{")
        if depth < 0:
            return at
    return -1


def _bare(side: str) -> str:
    return re.sub(r"\.clone\(\)|[&*\s]", "", side)


def _comparisons(statement: _Statement) -> Iterator[tuple[str, str, bool]]:
    """The two sides of each comparison in a statement, and whether it says that they differ."""
    text = statement.text
    is_condition = bool(_CONDITION_PATTERN.match(text))
    is_unless = bool(re.match(r"\s*unless\b|.*\bunless\b", text, re.DOTALL))
    is_failing = is_condition and bool(_FAILING_PATTERN.search(text + statement.following))
    is_asserting = bool(_ASSERTING_PATTERN.search(text)) and not is_condition
    for found in _EQUALITY_PATTERN.finditer(text):
        left, right = _side_before(text, found.start()), _side_after(text, found.end())
        if re.search(r"\bc?end\s*(?:\(\s*\)|\([\w\s]+\))\s*$", right):
            continue  # whether something was found is read elsewhere
        if re.search(r"(?:cmp|[cC]ompare(?:To)?)\s*\(", left) and re.fullmatch(r"\s*(?:0|(?:\w+::)*Equal)\s*", right):
            continue
        is_different = found[0].startswith("!") or found[0] == "ne" or "not" in found[0]
        is_negated = bool(re.search(r"!\s*\($|\bnot\s*\(?\s*$", text[: found.start() - len(left)]))
        says_different = is_different != is_negated
        yield left, right, (says_different if is_asserting or is_unless else not says_different and is_failing)
    for found in _MEMBER_PATTERN.finditer(text):
        looked_up = _parts(text[found.start("opening") + 1 : closing_place(text, found.start("opening"))])[-1]
        yield looked_up, looked_up, False
    for found in re.finditer(r"(?<=[)\w])\s+in\s+(?=[\[({\w])", text):
        looked_up = _side_before(text, found.start())
        yield looked_up, (looked_up if is_asserting or is_condition else ""), False
    for pattern in (_EQUAL_CALL_PATTERN, _EXPECT_PATTERN):
        for found in pattern.finditer(text):
            yield from _called(text, found, is_asserting=is_asserting, is_failing=is_failing, is_unless=is_unless)


def _called(
    text: str, found: re.Match[str], *, is_asserting: bool, is_failing: bool, is_unless: bool
) -> Iterator[tuple[str, str, bool]]:
    opening = found.start("opening")
    end = closing_place(text, opening)
    parts = _parts(text[opening + 1 : end])
    before = _side_before(text, found.start())
    name = found["name"] if "name" in found.groupdict() else "expect"
    if name == "expect":
        after = re.match(r"\s*((?:\.\s*\w+\s*)+)\(", text[end + 1 :])
        if after:
            second = end + 1 + after.end() - 1
            yield parts[0], text[second + 1 : closing_place(text, second)], bool(re.search(r"\bnot\b", after[1]))
        return
    owner, dot, _ = name.rpartition(".")
    start = found.start() - len(before)
    is_negated = bool(
        re.match(r"\s*(?:!|not\b)", before)
        or re.search(r"!\s*\(?\s*$|\bnot\s*\(?\s*$", text[:start])
        or _REFUTING_PATTERN.search(text[:start])
    )
    following = text[end + 1 :]
    if _COMPARING_NAME_PATTERN.search(name):
        # such a call is 0 where both are the same
        if re.match(r"\s*(?:[<>]|,\s*-)", following):
            return
        is_negated = is_negated != (re.match(r"\s*={2,3}\s*(?:\w+::)*(?:0|Equal)\b", following) is None)
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
            yield _Statement(called, tests[end : end + 160] if opens_block else "")


def _opens_block(tests: str, place: int, stack: Sequence[str]) -> bool:
    before = tests[max(0, place - 80) : place]
    if re.search(r"(?:=>|->|\)|\|)\s*$", before):
        return True
    return (
        stack[-1] == ""
        and bool(re.search(r"\s$", before))
        and not re.search(r"[=:,(\[]\s*$|\b(?:return|assert|in|and|or|not)\s*$", before)
    )


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
        if depth < 0 or (
            depth == 0 and (sign in ",;?" or text[at : at + 2] in ("&&", "||") or _WORD_BETWEEN_PATTERN.match(text, at))
        ):
            break
        at += 1
    return text[place:at]


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
