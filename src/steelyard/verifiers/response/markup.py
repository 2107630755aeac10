"""Checks of a response that must be HTML or XML with certain tags."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import ClassVar, NamedTuple
from xml.parsers import expat

from msgspec.structs import replace

from steelyard.records import Evidence
from steelyard.verifiers.response.judged import (
    FAIL,
    PASS,
    WRONG_FORMAT,
    CheckTable,
    ResponseCheckResult,
    check_result,
    evidence,
    line_and_column,
)
from steelyard.verifiers.response.text import fenced_texts
from steelyard.verifiers.response.unicode import printable_excerpt

# every alternative matches whatever follows and never backtracks, so that no text can make scanning slow
HTML_TOKEN = re.compile(
    r"<(?:(?P<name>[A-Za-z][^\s/>]*+)(?:[^>\"']++|\"[^\"]*+\"?|'[^']*+'?)*+(?P<end>>)?"
    r"|/(?P<closes>[A-Za-z][^\s/>]*+)[^>]*+>?"
    r"|!--(?:[^-]++|-(?!->))*+(?:-->)?|![^>]*+>?)"
)
RAW_TEXT_ELEMENTS = frozenset(("script", "style", "textarea", "title", "iframe", "noembed", "noframes", "xmp"))
"""Elements whose content is always text."""
VOID_ELEMENTS = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
"""Elements without content, which have no end tag."""
OPTIONAL_END_ELEMENTS = frozenset(
    ("body", "caption", "colgroup", "dd", "dt", "head", "html", "li", "optgroup", "option", "p", "rp", "rt", "tbody")
) | {"td", "tfoot", "th", "thead", "tr"}
"""Elements whose end tag HTML lets people leave out."""
XML_FORBIDDEN_CHARACTER = re.compile("[\x00\ud800-\udfff\ufffe\uffff]")


class _XmlDeclarationError(Exception):
    """XML that declares types or entities."""


class HtmlElements(NamedTuple):
    """The parts of a text that may be HTML."""

    opened: dict[str, int]
    """The tags that are opened, in small letters, each with the place where it is first opened."""
    complete: frozenset[str]
    """Those that are elements: closed, or without a need to be."""
    outside: int | None
    """Where text outside all elements begins; None if there is none."""


def html_elements(text: str) -> HtmlElements:
    """The elements of HTML, and what is only the name of one in prose.

    >>> html_elements("<p>a<!-- <b> --><BR/></p>").opened
    {'p': 0, 'br': 16}
    >>> html_elements("Use <h1> for a heading.").complete
    frozenset()
    """
    opened: dict[str, int] = {}
    complete: set[str] = set()
    within: list[str] = []
    # a Counter takes several times as long to change
    counts: defaultdict[str, int] = defaultdict(int)
    outside: int | None = None
    position = 0
    has_code = "`" in text
    while match := HTML_TOKEN.search(text, position):
        start, end = match.span()
        if not within and outside is None and (before := text[position:start]).strip():
            outside = position + len(before) - len(before.lstrip())
        position = end
        if has_code and text[start - 1 : start] == "`" != text[start - 2 : start - 1]:
            continue  # code within a sentence of Markdown
        name, is_ended, closes = match.groups()
        if is_ended:
            name = name.lower()
            if name not in opened:
                opened[name] = start
            if name in VOID_ELEMENTS:
                complete.add(name)
                continue
            within.append(name)
            counts[name] += 1
            if name in RAW_TEXT_ELEMENTS:
                closing = re.compile(f"</{name}", re.IGNORECASE).search(text, position)
                position = closing.start() if closing else len(text)
        elif closes and counts[name := closes.lower()]:
            complete.add(name)
            while (last := within.pop()) != name:
                counts[last] -= 1
            counts[name] -= 1
    if not within and outside is None and (rest := text[position:]).strip():
        outside = position + len(rest) - len(rest.lstrip())
    if outside is None:
        # a text that is markup from its beginning on may leave out what HTML lets it leave out
        complete.update(opened.keys() & OPTIONAL_END_ELEMENTS)
    return HtmlElements(opened, frozenset(complete), outside)


def xml_tags(text: str) -> dict[str, int] | Evidence:
    """The tags of well-formed XML, with and without their prefix; otherwise where and why it is not well-formed."""
    if bad := XML_FORBIDDEN_CHARACTER.search(text):
        return evidence("", f"U+{ord(bad[0]):04X}, which XML cannot hold", text, *bad.span())
    tags: dict[str, int] = {}

    def note(name: str, _: dict[str, str]) -> None:
        tags.setdefault(name, 0)
        tags.setdefault(name.rpartition(":")[2], 0)

    def refuse(*_: object) -> None:
        raise _XmlDeclarationError

    parser = expat.ParserCreate()
    parser.StartElementHandler = note
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except _XmlDeclarationError:
        line, column = parser.CurrentLineNumber, parser.CurrentColumnNumber + 1
        return Evidence(rule="", what="a document type declaration, which is refused", line=line, column=column)
    except expat.ExpatError as error:
        what = "the reply is empty" if not text.strip() else expat.ErrorString(error.code)
        return Evidence(rule="", what=what, line=error.lineno, column=error.offset + 1)
    return tags


@dataclass(frozen=True)
class HtmlCheck:
    """The reply is HTML with every required element; as in browsers, what is not well-formed is still read."""

    rule: str
    tags: tuple[str, ...]
    strict: bool
    """Whether nothing may stand around the markup."""
    asks: ClassVar[bool] = True

    def judge(self, text: str) -> ResponseCheckResult:
        fenced = fenced_texts(text)
        start, body = fenced[0] if len(fenced) == 1 and not self.strict else (0, text)
        found = html_elements(body)
        if not found.complete:
            tag = next(iter(found.opened), "")
            what = f": <{printable_excerpt(tag)}> is only opened" if tag else ""
            return check_result(WRONG_FORMAT, Evidence(rule=self.rule, what=f"the reply holds no HTML elements{what}"))
        if self.strict and found.outside is not None:
            place = found.outside
            detail = evidence(self.rule, "text around the markup, which is not permitted", text, place, place + 40)
            return check_result(WRONG_FORMAT, replace(detail, mended=("fence" if fenced else "text around it",)))
        for tag in self.tags:
            if tag.lower() not in found.complete:
                place = found.opened.get(tag.lower(), -1)
                what = (
                    f"the element <{printable_excerpt(tag)}> is {'missing' if place < 0 else 'opened and never closed'}"
                )
                detail = Evidence(rule=self.rule, what=what)
                if place >= 0:
                    detail = evidence(self.rule, what, text, start + place, start + place + 40)
                return check_result(FAIL, detail)
        return check_result(PASS, Evidence(rule=self.rule, what="the reply is HTML with every required element"))


@dataclass(frozen=True)
class XmlCheck:
    """The reply is well-formed XML that opens every required tag."""

    rule: str
    tags: tuple[str, ...]
    fenced: bool
    asks: ClassVar[bool] = True

    def judge(self, text: str) -> ResponseCheckResult:
        start, body = 0, text
        if self.fenced and len(found := fenced_texts(text)) == 1:
            start, body = found[0]
            body = body.removesuffix("\n")
        tags = xml_tags(body.strip(" \t\r\n"))
        if isinstance(tags, Evidence):
            return check_result(WRONG_FORMAT, self._located(tags, text, start, body))
        for tag in self.tags:
            if tag not in tags:
                return check_result(
                    FAIL, Evidence(rule=self.rule, what=f"the tag <{printable_excerpt(tag)}> is missing")
                )
        return check_result(PASS, Evidence(rule=self.rule, what="the reply is XML with every required tag"))

    def _located(self, fault: Evidence, text: str, start: int, body: str) -> Evidence:
        """The fault with its place in the whole reply."""
        start += len(body) - len(body.lstrip(" \t\r\n"))
        first_line, first_column = line_and_column(text, start)
        line, column = fault.line or 1, fault.column or 1
        return Evidence(
            rule=self.rule,
            what=f"not well-formed XML: {fault.what}",
            matched=fault.matched,
            position=None if fault.position is None else start + fault.position,
            line=first_line + line - 1,
            column=column + first_column - 1 if line == 1 else column,
        )


def html_check(table: CheckTable) -> HtmlCheck:
    """HTML with the required elements; `strict_no_extra_text` forbids prose and fences around it."""
    return HtmlCheck(table.path, table.texts("required_tags"), table.flag("strict_no_extra_text"))


def xml_check(table: CheckTable) -> XmlCheck:
    """Well-formed XML with the required tags, by full or by local name; declarations of types are refused."""
    tags = table.texts("required_tags") if "required_tags" in table else ()
    return XmlCheck(table.path, tags, table.flag("fenced"))
