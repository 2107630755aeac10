"""False tests in any language of the table: an expected value of an equality changed, in the text of the tests.

Only values are changed that stand by themselves beside an equality. What is inside the call of a function is an input, and what is
compared otherwise may be a bound or a tolerance. Whether a change really makes the tests false is seen by running them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.languages.table import Language, language_of, languages_by_suffix
from steelyard.protocols import FalseTests
from steelyard.records import Case

OPENING, CLOSING = "([{", ")]}"
OPERAND_ENDS = (",", ";", "&&", "||", "?", "\n")
FAR = 101
"""What is added to a small number; large ones are divided, so that they fit their types."""
CALLED_NAME = re.compile(r"((?:\bnew\s+)?[\w.:]+!?|\$|->)\s*(?:<[^()\n]*>)?\s*\Z")

INTERPOLATION = re.compile(r"\$[\w({]|#\{")
"""What a text looks like that computes something."""


class Change(NamedTuple):
    """A literal in a text, and what takes its place."""

    begin: int
    end: int
    text: str


class SourceToken(NamedTuple):
    """A piece of a program."""

    kind: str
    """`comment`, `string`, `number`, `word` or `other`."""
    text: str
    begin: int
    end: int


def false_tests(case: Case) -> FalseTests:
    """The tests of a case made false, one expected value at a time and all at once; none where its language is not in the table."""
    places = [
        (write, text, change)
        for language, text, write in _test_texts(case)
        for change in expected_changes(text, language)
    ]
    if not places:
        return FalseTests()
    one_by_one = tuple(write(case, _changed(text, [change])) for write, text, change in places)
    every = case
    for write, text in {text: (write, text) for write, text, _ in places}.values():
        every = write(every, _changed(text, [change for _, of, change in places if of == text]))
    return FalseTests(one_by_one, every)


def expected_changes(text: str, language: Language) -> list[Change]:
    """A change for each equality of a text that asserts a value."""
    if not language.equal and not language.same:
        return []
    tokens = [token for token in _tokens(text, language) if token.kind != "comment"]
    changes = (_change(operand, text, language) for operand in _operands(text, tokens, language))
    return sorted({change for change in changes if change is not None})


def _test_texts(case: Case) -> list[tuple[Language, str, Callable[[Case, str], Case]]]:
    """The texts of a case's tests, each with its language and with what puts another text in its place."""
    language = language_of(case)
    if case.tests and language is not None:
        return [(language, case.tests, _with_tests)]
    own = language.files if language is not None else {}
    files = case.verify.files
    if language is not None and language.tests in files:
        files = {language.tests: files[language.tests]}
    known = languages_by_suffix()
    return [
        (known[suffix], text, _with_file(name))
        for name, text in files.items()
        if (suffix := PurePosixPath(name).suffix[1:]) in known and name not in own
    ]


def _with_tests(case: Case, text: str) -> Case:
    if case.verify.tests:
        return replace(case, verify=replace(case.verify, tests=text))
    return replace(case, expectations=replace(case.expectations, test_file=text))


def _with_file(name: str) -> Callable[[Case, str], Case]:
    def changed(case: Case, text: str) -> Case:
        return replace(case, verify=replace(case.verify, files={**case.verify.files, name: text}))

    return changed


def _changed(text: str, changes: Sequence[Change]) -> str:
    for begin, end, new in sorted(changes, reverse=True):
        text = f"{text[:begin]}{new}{text[end:]}"
    return text


@cache
def _token_pattern(comment: str, quotes: str) -> re.Pattern[str]:
    # only between backticks may a text have several lines
    inside = {quote: rf"[^{quote}\\]" if quote == "`" else rf"[^{quote}\\\n]" for quote in quotes}
    strings = "|".join(rf"{quote}(?:{one}|\\.)*{quote}" for quote, one in inside.items())
    # a lifetime of Rust begins as a character does
    strings += r"|'(?:[^'\\\n]|\\[^'\n]+|\\')'" if "'" not in quotes else ""
    kinds: tuple[str, ...] = (rf"(?P<comment>{comment})",) if comment else ()
    kinds += (rf"(?P<string>{strings})", r"(?P<number>\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)", r"(?P<word>[A-Za-z_]\w*)")
    return re.compile("|".join((*kinds, r"(?P<other>&&|\|\||[^\s\w]|\n)")))


def _tokens(text: str, language: Language) -> Iterator[SourceToken]:
    for found in _token_pattern(language.comment, language.quotes).finditer(text):
        yield SourceToken(found.lastgroup or "", found[0], found.start(), found.end())


def _operands(text: str, tokens: Sequence[SourceToken], language: Language) -> Iterator[Sequence[SourceToken]]:
    """What stands beside each equality that is asserted."""
    starts = {token.begin: place for place, token in enumerate(tokens)}
    code = {place for token in tokens if token.kind != "string" for place in range(token.begin, token.end)}
    for call in re.finditer(language.equal, text) if language.equal else ():
        first = next((starts[at] for at in range(call.end(), len(text)) if at in starts), None)
        if call.start() in code and first is not None:
            yield from _arguments(tokens, first)[:2]
    for sign in re.finditer(language.same, text) if language.same else ():
        line = text[text.rfind("\n", 0, sign.start()) + 1 : text.find("\n", sign.end()) % (len(text) + 1)]
        if sign.start() in code and sign.start() in starts and re.search(language.asserts, line):
            yield _beside(tokens, starts[sign.start()] - 1, -1, text)
            right = next((place for place, token in enumerate(tokens) if token.begin >= sign.end()), len(tokens))
            yield _beside(tokens, right, 1, text)


def _arguments(tokens: Sequence[SourceToken], first: int) -> list[list[SourceToken]]:
    """The arguments of a call, from the first token of the first one on."""
    found: list[list[SourceToken]] = [[]]
    depth = 0
    ends = (";",) if tokens[first - 1].text == "(" else (";", "\n")
    for token in tokens[first:]:
        depth += (token.text in OPENING) - (token.text in CLOSING)
        if depth < 0 or (depth == 0 and token.text in ends):
            break
        if depth == 0 and token.text == ",":
            found.append([])
        else:
            found[-1].append(token)
    return found


def _beside(tokens: Sequence[SourceToken], place: int, step: int, text: str) -> list[SourceToken]:
    """The operand that begins at a place and is read in a direction."""
    found: list[SourceToken] = []
    depth = 0
    opening, closing = (OPENING, CLOSING) if step > 0 else (CLOSING, OPENING)
    while 0 <= place < len(tokens):
        token = tokens[place]
        is_block = token.text == "{" and text[token.begin - 1].isspace()
        if depth == 0 and (token.text in OPERAND_ENDS or (is_block and found)):
            break
        depth += (token.text in opening) - (token.text in closing)
        if depth < 0:
            break
        found.append(token)
        place += step
    return found[::step]


def _change(operand: Sequence[SourceToken], text: str, language: Language) -> Change | None:
    """A change of the first value in an operand; None if it has none, or computes something."""
    if not operand or _computes(operand, text, language):
        return None
    for token in operand:
        if (new := _another(token, text, language)) is not None:
            return Change(token.begin, token.end, new)
    return None


def _computes(operand: Sequence[SourceToken], text: str, language: Language) -> bool:
    """Whether an operand calls something that does not just build a value, or looks a value up."""
    for token in operand:
        if token.kind == "string" and INTERPOLATION.search(token.text) and token.text[0] != "'":
            return True
        before = text[: token.begin]
        if token.text == "(":
            called = CALLED_NAME.search(before[-200:])
            if called and re.fullmatch(language.values, called[1]) is None:
                return True
        elif token.text == "[" and re.search(r"[\w)\]]\Z", before) and not text[token.end :].startswith("]"):
            return re.search(rf"(?:{language.values})\Z", before) is None if language.values else True
    return False


def _another(token: SourceToken, text: str, language: Language) -> str | None:
    """Another value in place of a literal, far from it and of its type."""
    if token.kind == "string":
        quote, content = token.text[0], token.text[1:-1]
        if quote == "'" and "'" not in language.quotes:
            return "'#'" if content == "~" else "'~'"
        return f"{quote}~7{content}{quote}"
    if token.kind == "number":
        is_other_base = token.text.startswith("0") and text[token.end : token.end + 1] in ("x", "b", "o")
        return None if is_other_base or text[token.begin - 1 : token.begin] == "." else _far_number(token.text)
    words = language.truth
    if token.kind == "word" and token.text in words:
        return words[1 - words.index(token.text)]
    return None


def _far_number(text: str) -> str:
    """A number of the same type that no tolerance takes for this one.

    >>> _far_number("4"), _far_number("1_000"), _far_number("0.5"), _far_number("1e9")
    ('105', '333', '101.5', '333333333.3333333')
    """
    digits = text.replace("_", "")
    if digits.isdigit():
        number = int(digits)
        return str(number + FAR if number < FAR else number // 3)
    return repr(float(digits) + FAR if float(digits) < FAR else float(digits) / 3)
