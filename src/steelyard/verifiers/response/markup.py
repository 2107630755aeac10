"""Checks of a response that must be HTML or XML with certain tags."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.parsers import expat

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
HTML_TAG = re.compile(
    r"<!--(?:[^-]++|-(?!->))*+(?:-->)?"
    r"|<(?P<raw>script|style|textarea|title)(?=[\s/>])(?:[^>\"']++|\"[^\"]*+\"?|'[^']*+'?)*+(?P<rawend>>)?"
    r"|<(?P<name>[A-Za-z][^\s/>]*+)(?:[^>\"']++|\"[^\"]*+\"?|'[^']*+'?)*+(?P<end>>)?",
    re.IGNORECASE,
)
XML_FORBIDDEN_CHARACTER = re.compile("[\x00\ud800-\udfff\ufffe\uffff]")


class _XmlDeclarationError(Exception):
    """XML that declares types or entities."""


def html_tags(text: str) -> dict[str, int]:
    """The tags that are opened in HTML, in small letters, each with the place where it is first opened.

    >>> html_tags("<p>a<!-- <b> --><BR/></p>")
    {'p': 0, 'br': 16}
    """
    tags: dict[str, int] = {}
    position = 0
    while match := HTML_TAG.search(text, position):
        position = match.end()
        name = match["raw"] or match["name"]
        if name and (match["rawend"] or match["end"]):
            tags.setdefault(name.lower(), match.start())
            if match["raw"]:
                # what stands in these elements is text, whatever it looks like
                closing = re.compile(f"</{name}", re.IGNORECASE).search(text, position)
                position = closing.start() + 1 if closing else len(text)
    return tags


def xml_tags(text: str) -> dict[str, int] | Evidence:
    """The tags of well-formed XML, with and without their prefix; else where and why it is not."""
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
class MarkupCheck:
    """The reply is markup that opens every required tag."""

    rule: str
    kind: str
    tags: tuple[str, ...]
    fenced: bool

    def judge(self, text: str) -> ResponseCheckResult:
        start, body = 0, text
        if self.fenced and len(found := fenced_texts(text)) == 1:
            start, body = found[0]
            body = body.removesuffix("\n") if self.kind == "xml" else body
        tags = html_tags(body) if self.kind == "html" else xml_tags(body.strip(" \t\r\n"))
        if isinstance(tags, Evidence):
            return check_result(WRONG_FORMAT, self._located(tags, text, start, body))
        if not tags:
            return check_result(WRONG_FORMAT, Evidence(rule=self.rule, what="the reply holds no tags"))
        for tag in self.tags:
            if (tag.lower() if self.kind == "html" else tag) not in tags:
                return check_result(
                    FAIL, Evidence(rule=self.rule, what=f"the tag <{printable_excerpt(tag)}> is missing")
                )
        return check_result(
            PASS, Evidence(rule=self.rule, what=f"the reply is {self.kind.upper()} with every required tag")
        )

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


def html_check(table: CheckTable) -> MarkupCheck:
    """HTML with the required tags; as in browsers, what is not well-formed is still read."""
    return MarkupCheck(table.path, "html", table.texts("required_tags"), fenced=False)


def xml_check(table: CheckTable) -> MarkupCheck:
    """Well-formed XML with the required tags, by full or by local name; declarations of types are refused."""
    tags = table.texts("required_tags") if "required_tags" in table else ()
    return MarkupCheck(table.path, "xml", tags, table.flag("fenced"))
