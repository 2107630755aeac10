"""Tables, and the text, Markdown, CSV and JSON that all reports write them in."""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from steelyard.text import escaped_json, line

CsvValue = str | int | float | bool | None
_FORMULA_PREFIXES = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
"""What a spreadsheet takes for the start of a formula; the wide ones in an East Asian locale."""


class ReportTable(NamedTuple):
    """A table that every format can show: its cells are harmless and on one line each."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    sentences: tuple[str, ...] = ()
    """Beneath it."""

    def markdown(self) -> str:
        """The table without its title; the first column holds names that others chose."""
        return markdown_table(map(escaped, self.head), ([code(row[0]), *row[1:]] for row in self.rows))


REPORT_FORMAT = 1
"""The number of the JSON reports: it goes up when readers of earlier reports would fail, not when a field is added."""


def json_report(report: Any) -> str:
    """A report that a program reads, with the number of its format: indented, and everything invisible in it is escaped."""
    fields = report if isinstance(report, dict) else msgspec.to_builtins(report)
    whole = {"format": REPORT_FORMAT, **fields}
    return escaped_json(msgspec.json.format(msgspec.json.encode(whole), indent=2).decode()) + "\n"


def csv_text(head: Iterable[str], rows: Iterable[Iterable[CsvValue]]) -> str:
    """Rows for a spreadsheet beneath their head; what is not known is empty."""
    return "".join(csv_lines(head, rows))


def csv_lines(head: Iterable[str], rows: Iterable[Iterable[CsvValue]]) -> Iterator[str]:
    """The same, a line each."""
    write: Callable[[Iterable[Any]], str] = csv.writer(_ReturnedText(), lineterminator="\n").writerow
    yield write(head)
    yield from (write([cell(value) for value in row]) for row in rows)


class _ReturnedText:
    """A file that returns what is written to it."""

    def write(self, text: str) -> str:
        return text


def cell(value: CsvValue) -> str | int | float:
    """A value that is safe in a spreadsheet: text that is not a formula, and an empty cell for an unknown value."""
    if isinstance(value, str):
        return _short_text_cell(value) if len(value) <= MAX_SHORT_CELL_CHARACTERS else _text_cell(value)
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else value


MAX_SHORT_CELL_CHARACTERS = 64
"""Characters of a text that is probably in many rows, such as the name of a model."""


def _text_cell(value: str) -> str:
    text = line(value)
    return f"'{text}" if value.startswith(("\t", "\r")) or text.startswith(_FORMULA_PREFIXES) else text


_short_text_cell = lru_cache(maxsize=1 << 12)(_text_cell)


def aligned_lines(rows: Sequence[Sequence[str]], *, to_the_right: bool = False) -> list[str]:
    """Rows as indented lines of plain text, whose columns are below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    align = str.rjust if to_the_right else str.ljust
    return ["  " + "  ".join(map(align, row, widths)).rstrip() for row in rows]


def warning_lines(warnings: Sequence[str]) -> list[str]:
    """Warnings at the end of a text; empty without warnings."""
    return ["", "Warnings", *(f"  ! {line(warning)}" for warning in warnings)] if warnings else []


def warning_parts(warnings: Sequence[str]) -> list[str]:
    """Warnings at the end of a Markdown page; empty without warnings."""
    return ["#### Warnings", bullets(warnings)] if warnings else []


def bullets(sentences: Iterable[str]) -> str:
    """A list in Markdown, of text that has no markup."""
    return "\n".join(f"- {escaped(sentence)}" for sentence in sentences)


def markdown_table(head: Iterable[str], rows: Iterable[Sequence[str]], alignment: str = "---:") -> str:
    """A table whose cells are Markdown already; the alignment is that of all columns but the first."""
    names = list(head)
    lines = [names, ["---", *(alignment for _ in names[1:])], *rows]
    return "\n".join("| " + " | ".join(map(_table_cell, cells)) + " |" for cells in lines)


def html_table(head: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for a notebook; what others wrote is text in it.

    >>> html_table(["", "m"], [("pass@1", "<b>")])
    '<table><thead><tr><th></th><th>m</th></tr></thead><tbody><tr><td>pass@1</td><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    titles = "".join(f"<th>{html.escape(line(name))}</th>" for name in head)
    body = ("".join(f"<td>{html.escape(line(value))}</td>" for value in row) for row in rows)
    lines = "".join(f"<tr>{cells}</tr>" for cells in body)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>"


def _table_cell(text: str) -> str:
    # a table splits at every bar, code or not, and reads two backslashes before it as one that is not an escape
    return re.sub(r"\\(?=\|)", r"\\ ", text).replace("|", r"\|")


def code(text: str) -> str:
    """The text as a code span, where no markup, mention or link is seen; the fence outruns the backticks inside.

    >>> code("a`b")
    '``a`b``'
    """
    text = line(text)
    if not text:
        return "-"
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    blank = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{blank}{text}{blank}{fence}"


def escaped(text: str) -> str:
    r"""The text as plain prose: no markup, HTML, links, mentions or references.

    >>> escaped("<b> & *pass@1*")
    '\\<b\\> \\& \\*pass@1\\*'
    """
    text = re.sub(r"^[-+]|^\d+(?=[.)])|[\\`*_\[\]<>#~&$]|:(?=//)|(?<=www)\.", _backslash_escaped, line(text))
    # GitHub looks for mentions and issues after the escapes are gone, so something must stand between
    return re.sub(r"(?<!pass)([@#])(?=\w)", "\\1\u200b", text)


def _backslash_escaped(match: re.Match[str]) -> str:
    # a number cannot be escaped, but the point after it can
    return match[0] + "\\" if match[0].isdigit() else "\\" + match[0]
