"""The words, texts and signs of code in a language with braces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

TokenKind = Literal["name", "text", "number", "sign"]


class Token(NamedTuple):
    """A piece of code; a comment is none."""

    kind: TokenKind
    text: str
    """For a text, what is between its quotes."""


class UnreadableCodeError(ValueError):
    """Code in which a text or a comment does not end."""


_COMMENT_PATTERN = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME_PATTERN = re.compile(r"[^\W\d][\w$]*|[$@#][\w$]+")
_NUMBER_PATTERN = re.compile(r"(?:0[xXbBoO][\da-fA-F_]+|\.?\d[\d_']*(?:\.[\d_]*)?(?:[eEpP][-+]?\d+)?)[A-Za-z]*")
_SIGN_PATTERN = re.compile(r"=>|\?\.(?!\d)|\.\.\.|->|::|\+\+|--|[-+*/%&|^]=(?!=)|(?:<<|>>>?|\*\*|&&|\|\||\?\?)=|[=!]==?|<=|>=|&&|\|\||.", re.DOTALL)  # fmt: skip
_TEXT_PATTERNS = {
    "javascript": re.compile(r'"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'', re.DOTALL),
    "java": re.compile(r'"""((?:[^\\]|\\.)*?)"""|"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)+)\'', re.DOTALL),
    "go": re.compile(r'"((?:[^"\\\n]|\\.)*)"|`([^`]*)`|\'((?:[^\'\\\n]|\\.)+)\''),
    "c": re.compile(r'(?:u8|[uUL])?(?:"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)+)\')'),
    "cpp": re.compile(
        r'(?:u8|[uUL])?(?:R"([^()\\\s]{0,16})\((.*?)\)\1"|"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)+)\')', re.DOTALL
    ),
}
_REGEX_PATTERN = re.compile(r"/((?:[^/\\\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*\])+)/[a-z]*")
_OPERAND_KEYWORDS = frozenset(("return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "do", "yield", "await"))  # fmt: skip
"""Words of JavaScript after which a slash begins a regular expression."""
_OTHER_LINE_END_PATTERN = re.compile(r"\r(?!\n)|[\u2028\u2029]")
"""What ends a line, and with it a comment, in some languages only."""
_OTHER_COMMENT_PATTERN = re.compile(r"\A#!|<!--|-->")
"""What begins a comment in some kinds of JavaScript only."""


def tokens(code: str, language: str) -> list[Token]:
    """The tokens of code in C, C++, Java, Go or JavaScript.

    >>> [token.text for token in tokens("f(`a${b}`) // c", "javascript")]
    ['f', '(', 'a', '(', 'b', ')', '', ')']
    """
    found: list[Token] = []
    language = "javascript" if language == "typescript" else language
    if _OTHER_LINE_END_PATTERN.search(code):
        raise UnreadableCodeError("a line that may end or not")
    if language == "javascript" and _OTHER_COMMENT_PATTERN.search(code):
        raise UnreadableCodeError("a comment as in a page")
    end = _read(code, 0, language, found, is_inside=False)
    if end < len(code):
        raise UnreadableCodeError("a bracket too many")
    check_depth(token.text for token in found if token.kind == "sign")
    return found


def check_depth(signs: Iterable[str]) -> None:
    """Raise an UnreadableCodeError where brackets are in each other so often that reading them takes too long."""
    depth = 0
    for sign in signs:
        depth += (sign in BRACKETS) - (sign in BRACKETS.values())
        if depth > MAX_BRACKET_DEPTH:
            raise UnreadableCodeError("brackets in each other that are too many to be read")


def _read(code: str, place: int, language: str, found: list[Token], *, is_inside: bool) -> int:
    """Read tokens up to the end, or up to the brace that closes a `${` in a template."""
    depth = 0
    while place < len(code):
        if code[place].isspace():
            place += 1
        elif comment := _COMMENT_PATTERN.match(code, place):
            place = comment.end()
        elif code.startswith("/*", place):
            raise UnreadableCodeError("a comment that does not end")
        elif language == "javascript" and code[place] == "`":
            place = _read_template(code, place + 1, found)
        elif text := _TEXT_PATTERNS[language].match(code, place):
            found.append(Token("text", next((part for part in text.groups()[::-1] if part is not None), "")))
            place = text.end()
        elif (
            language == "javascript"
            and (regex := _REGEX_PATTERN.match(code, place))
            and not _is_division(found, regex[1])
        ):
            found.append(Token("text", regex[1]))
            place = regex.end()
        elif name := _NAME_PATTERN.match(code, place):
            found.append(Token("name", name[0]))
            place = name.end()
        elif number := _NUMBER_PATTERN.match(code, place):
            found.append(Token("number", number[0]))
            place = number.end()
        else:
            sign = _SIGN_PATTERN.match(code, place)
            text_of_sign = sign[0] if sign else code[place]
            if text_of_sign in ('"', "'", "`", "\\"):
                raise UnreadableCodeError(f"a {text_of_sign} that belongs to no text")
            depth += (text_of_sign == "{") - (text_of_sign == "}")
            if is_inside and depth < 0:
                return place + 1
            found.append(Token("sign", text_of_sign))
            place += len(text_of_sign)
    if is_inside:
        raise UnreadableCodeError("a template that does not end")
    return place


def _read_template(code: str, place: int, found: list[Token]) -> int:
    begin = place
    while place < len(code):
        if code[place] == "\\":
            place += 2
        elif code[place] == "`":
            found.append(Token("text", code[begin:place]))
            return place + 1
        elif code.startswith("${", place):
            found.append(Token("text", code[begin:place]))
            found.append(Token("sign", "("))
            place = begin = _read(code, place + 2, "javascript", found, is_inside=True)
            found.append(Token("sign", ")"))
        else:
            place += 1
    raise UnreadableCodeError("a template that does not end")


def _is_division(found: list[Token], body: str) -> bool:
    """Whether a slash divides; behind a bracket that cannot be told, so what could hide something there is not read."""
    if not found:
        return False
    last = found[-1]
    if last.kind == "name":
        return last.text not in _OPERAND_KEYWORDS
    if last.kind == "sign" and last.text in (")", "}") and re.search(r"[/\"'`\\]", body):
        raise UnreadableCodeError("a slash that may divide or not")
    return last.kind != "sign" or last.text in (")", "]", "}", "++", "--")


BRACKETS = {"(": ")", "[": "]", "{": "}"}
MAX_BRACKET_DEPTH = 100
"""Each bracket is read as often as there are others around it."""


def text_at(found: Sequence[Token], place: int) -> str:
    """The word or sign at a place; empty for a text, and beyond the ends."""
    return found[place].text if 0 <= place < len(found) and found[place].kind != "text" else ""


def closing(found: Sequence[Token], place: int) -> int:
    """The place of the bracket that closes the one at a place."""
    opening, depth = found[place].text, 0
    for at in range(place, len(found)):
        if found[at].kind == "sign":
            depth += (found[at].text == opening) - (found[at].text == BRACKETS[opening])
            if not depth:
                return at
    return len(found)


def line_end(code: str, place: int) -> int:
    """Where the line at a place ends."""
    end = code.find("\n", place)
    return len(code) if end < 0 else end
