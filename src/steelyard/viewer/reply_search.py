"""Which replies of a run hold a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from steelyard.store.untrusted import UntrustedRun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.viewer.run_view import RunView


class _ReplyText(msgspec.Struct):
    text: str = ""


class _JournalReplyLine(msgspec.Struct):
    """What is looked at of a line of the journal; the rest of it is not even decoded."""

    kind: str
    case: str
    model: str
    number: int
    tier: str = ""
    answer: _ReplyText | None = None


_decoder = msgspec.json.Decoder(_JournalReplyLine)


def rows_with_text(opened: RunView, text: str) -> frozenset[int]:
    """The places of the rows whose last reply holds a text, whatever the case of its letters; reads the journal once."""
    wanted = text.casefold()
    cases = {case.id: place for place, case in enumerate(opened.cases)}
    columns = {(column.model, column.tier): place for place, column in enumerate(opened.columns)}
    rows = {row[:3]: place for place, row in enumerate(opened.rows)}
    found: dict[int, bool] = {}
    stored = UntrustedRun(opened.folder)
    for path in stored.journals():
        for entry in _lines(stored, path):
            key = cases.get(entry.case, -1), columns.get((entry.model, entry.tier), -1), entry.number
            if entry.answer is not None and entry.kind == "reply" and key in rows:
                # of several replies to one asking the last counts
                found[rows[key]] = wanted in entry.answer.text.casefold()
    return frozenset(place for place, holds in found.items() if holds)


def _lines(stored: UntrustedRun, path: Path) -> Iterator[_JournalReplyLine]:
    try:
        lines = stored.open(path)
    except OSError:
        # gone meanwhile, or a link that leads elsewhere
        return
    with lines:
        for line in iter(lambda: lines.readline(stored.largest), b""):
            # a verdict is longer than its reply, and holds nothing that is looked for here
            if b'"reply"' not in line[:40]:
                continue
            try:
                yield _decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
