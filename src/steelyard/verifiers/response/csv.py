"""Checks of a response that must be a table in CSV (RFC 4180)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from steelyard.records import Evidence
from steelyard.text import counted, short_quote
from steelyard.verifiers.response.judged import (
    FAIL,
    PASS,
    WRONG_FORMAT,
    CheckTable,
    ResponseCheckResult,
    check_result,
    evidence,
)
from steelyard.verifiers.response.text import fenced_texts
from steelyard.verifiers.response.unicode import printable_excerpt

MAX_CSV_ROWS = 200_000
"""Rows that are read; a longer table is refused, so that a reply of line breaks cannot fill the memory."""
TOO_MANY_CSV_ROWS = f"more than {MAX_CSV_ROWS} rows"
MARKDOWN_TABLE = re.compile(
    r"^ {0,3}(?:\|[ \t]*+)?:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)++\|?[ \t]*+\r?$|^ {0,3}\|[ \t]*+:?-++:?[ \t]*+\|[ \t]*+\r?$",
    re.MULTILINE,
)
"""The line of dashes below the head of a table in Markdown."""
QUOTE = '"'
OTHER_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
BLANK_LINE = re.compile(r"\n\r?\n")


class CsvRow(NamedTuple):
    """One record of a table."""

    start: int
    fields: list[str]
    fault: str = ""
    """Why the text is not CSV from here on; empty if it is."""


def csv_rows(text: str, delimiter: str = ",") -> list[CsvRow]:
    r"""The records of a text up to its end, or up to the first fault.

    >>> [row.fields for row in csv_rows('a,b\n1,"x, y"\n')]
    [['a', 'b'], ['1', 'x, y']]
    """
    stream = io.StringIO(text, newline="\n")
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    found: list[CsvRow] = []
    while len(found) <= MAX_CSV_ROWS:
        start = stream.tell()
        try:
            fields = next(reader, None)
        except csv.Error as error:
            fault = "a field that is too long" if "limit" in str(error) else "a quotation mark out of place"
            return [*found, CsvRow(start, [], fault)]
        if fields is None:
            return found
        quoted = (f'"{field.replace(QUOTE, QUOTE * 2)}"' for field in fields if QUOTE in field)
        if any(field not in text[start : stream.tell()] for field in quoted):
            # the library takes a mark within a field that is not quoted, RFC 4180 does not
            return [*found, CsvRow(start, [], "a quotation mark out of place")]
        found.append(CsvRow(start, fields or [""]))
    return [*found, CsvRow(stream.tell(), [], TOO_MANY_CSV_ROWS)]


@dataclass(frozen=True)
class CsvCheck:
    """The reply is a table with these columns, and with these rows or this number of rows."""

    rule: str
    columns: tuple[str, ...]
    rows: int | tuple[tuple[str, ...], ...] | None
    strict: bool
    delimiter: str
    asks: ClassVar[bool] = True

    def judge(self, text: str) -> ResponseCheckResult:
        found = fenced_texts(text)
        if self.strict:
            return self._whole(text, 0, text, is_fenced=bool(found))
        if len(found) == 1:
            return self._whole(text, found[0].start, found[0].body)
        start = self._header(text)
        if start is None:
            other = self._other_format(text)
            what = f"no line with the columns {self._named()}{f': {other}' if other else ''}"
            return check_result(WRONG_FORMAT, Evidence(rule=self.rule, what=what))
        blank = BLANK_LINE.search(text, start)
        body = text[start : blank.start() + 1 if blank else len(text)]
        table = csv_rows(body, self.delimiter)
        # prose may follow without a blank line: the table ends where a line has another number of fields
        width = len(self.columns)
        count = next((n for n, row in enumerate(table) if len(row.fields) != width or row.fault), len(table))
        return self._compared(text, start, table[:count])

    def _named(self) -> str:
        return printable_excerpt(self.delimiter.join(self.columns))

    def _header(self, text: str) -> int | None:
        """Where the line with the columns begins."""
        match = self._header_line.search(text)
        return match.start() if match else None

    @cached_property
    def _header_line(self) -> re.Pattern[str]:
        fields = [f'(?:{re.escape(name)}|"{re.escape(name.replace(chr(34), chr(34) * 2))}")' for name in self.columns]
        blanks = "" if self.delimiter in " \t" else "[ \\t]*+"
        line = f"{blanks}{re.escape(self.delimiter)}{blanks}".join(fields)
        return re.compile(rf"^{blanks}{line}{blanks}\r?$", re.MULTILINE)

    def _whole(self, text: str, start: int, body: str, *, is_fenced: bool = False) -> ResponseCheckResult:
        table = csv_rows(body, self.delimiter)
        while not self.strict and table and table[-1].fields == [""]:
            table.pop()
        mended = ("fence",) if is_fenced else ("text around it",) if self._header(text) else ()
        if not body.strip():
            return check_result(WRONG_FORMAT, Evidence(rule=self.rule, what="the reply is empty"))
        for row in table:
            width = len(row.fields)
            if row.fault or width != len(table[0].fields):
                other = self._other_format(body)
                fields = f"a row of {counted(width, 'field')} beside {counted(len(table[0].fields), 'column')}"
                what = other or row.fault or fields
                detail = evidence(self.rule, f"no CSV: {what}", text, start + row.start, start + row.start + 40)
                return check_result(WRONG_FORMAT, replace(detail, mended=mended))
        if is_fenced or (mended and len(table[0].fields) != len(self.columns)):
            detail = evidence(self.rule, "text around the table, which is not permitted", text, 0, 40)
            return check_result(WRONG_FORMAT, replace(detail, mended=mended))
        return self._compared(text, start, table)

    def _other_format(self, body: str) -> str:
        """What a text is instead of CSV, judged by its beginning; empty if that is not known."""
        if MARKDOWN_TABLE.search(body):
            return "a Markdown table"
        if len(self.columns) < 2:
            return ""
        first = next(iter(body.strip().splitlines()), "")
        for sign, name in OTHER_DELIMITERS.items():
            if sign != self.delimiter and len(first.split(sign)) >= len(self.columns) > len(
                first.split(self.delimiter)
            ):
                return f"the fields are separated by {name}"
        if first[:1] in ("{", "[", "<"):
            return "the reply begins like JSON or markup"
        return "" if self.delimiter in first else "the first line has only one field"

    def _compared(self, text: str, start: int, table: list[CsvRow]) -> ResponseCheckResult:
        """A table in the right format, compared with the expected one field by field, including blanks."""
        header = table[0].fields
        if header != list(self.columns):
            if other := self._other_format(text[start:]):
                return check_result(WRONG_FORMAT, evidence(self.rule, f"no CSV: {other}", text, start, start + 100))
            what = f"the columns are not {self._named()}"
            return self._unequal(text, start, what, header, self.columns)
        # neither programs nor people take a row of empty fields for one, unless the case asks for it
        is_kept = isinstance(self.rows, tuple) and any(not any(fields) for fields in self.rows)
        body = [row for row in table[1:] if is_kept or any(map(str.strip, row.fields))]
        wanted = len(self.rows) if isinstance(self.rows, tuple) else self.rows
        if wanted is not None and len(body) != wanted:
            empty = len(table) - 1 - len(body)
            what = f"{counted(len(body), 'row')} instead of {wanted:,}"
            what += f"; {counted(empty, 'empty row does', 'empty rows do')} not count" if empty else ""
            return check_result(FAIL, Evidence(rule=self.rule, what=what))
        if self.strict and len(body) < len(table) - 1:
            first = next(row for row in table[1:] if not any(field.strip() for field in row.fields))
            place = start + first.start
            return check_result(
                FAIL, evidence(self.rule, "an empty row, which is not permitted", text, place, place + 40)
            )
        if isinstance(self.rows, tuple):
            for row, fields in zip(body, self.rows, strict=True):
                if tuple(row.fields) != fields:
                    what = f"the row is not {printable_excerpt(self.delimiter.join(fields))}"
                    return self._unequal(text, start + row.start, what, row.fields, fields)
        return check_result(PASS, Evidence(rule=self.rule, what=f"a table with {counted(len(body), 'row')}"))

    def _unequal(
        self, text: str, place: int, what: str, given: Sequence[str], wanted: Sequence[str]
    ) -> ResponseCheckResult:
        """A row that differs from the expected one; invisible blanks are named."""
        is_blank = [field.strip() for field in given] == list(wanted)
        detail = evidence(self.rule, what, text, place, place + 100)
        if is_blank:
            field = next(field for field, right in zip(given, wanted, strict=True) if field != right)
            said = f"{what}: the field {short_quote(field)} has blanks at an end, which count"
            detail = replace(detail, what=said, mended=("blanks around fields",))
        return check_result(FAIL, detail)


def csv_check(table: CheckTable) -> CsvCheck:
    """Columns in their order; `rows` is their number or the rows themselves."""
    columns = table.texts("columns")
    delimiter = table.text("delimiter", ",")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise table.wrong("delimiter", "expected one character, and neither a quotation mark nor a line break")
    given = table.take("rows")
    wanted: int | tuple[tuple[str, ...], ...] | None
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and given >= 0):
        wanted = given
    elif isinstance(given, list):
        for number, row in enumerate(given):
            if not isinstance(row, list) or len(row) != len(columns):
                raise table.wrong(f"rows[{number}]", f"expected a list of {len(columns)} fields")
        wanted = tuple(tuple(map(str, row)) for row in given)
    else:
        raise table.wrong("rows", "expected the number of rows, or a list of them")
    return CsvCheck(table.path, columns, wanted, table.flag("strict_no_extra_text"), delimiter)
