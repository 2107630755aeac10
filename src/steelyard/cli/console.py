"""What commands print, and where."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from steelyard.cli import arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.engine.options import RunOptions
    from steelyard.engine.results.conclusion import Conclusion
    from steelyard.errors import Problem
    from steelyard.settings import Settings


def print_to_stderr(text: str) -> None:
    """Print a line on standard error, with nothing in it that a terminal would obey."""
    from steelyard.text import plain

    print(plain(text), file=sys.stderr)


def warn(problems: Iterable[Problem | str]) -> None:
    """Print problems as warnings."""
    for problem in problems:
        print_to_stderr(f"warning: {problem}")


def is_color_wanted() -> bool:
    """Whether standard output takes colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and "CI" not in os.environ


def terminal_width() -> int:
    """Columns of the terminal."""
    import shutil

    return shutil.get_terminal_size((100, 40)).columns


def print_report(text: str, report_format: str = "text") -> None:
    """Print a report; on a terminal, lines that are too wide are wrapped."""
    is_folded = report_format == "text" and sys.stdout.isatty()
    print(folded(text, terminal_width()) if is_folded else text, end="")


def settings_and_run_options(options: argparse.Namespace) -> tuple[Settings, RunOptions]:
    """The settings, and how a run is carried out, with its progress shown."""
    from steelyard.engine.progress import ProgressDisplay

    is_shown = hasattr(options, "parallelism") and not getattr(options, "quiet", False)
    watch = ProgressDisplay() if is_shown else None
    settings, means = arguments.settings_and_run_options(options, watch)
    can_ask = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    return settings, means._replace(say=print_to_stderr, ask_user=is_agreed if can_ask else None)


def is_agreed(text: str) -> bool:
    """Whether the user agrees to run what the text names."""
    print_to_stderr(text)
    print("Run it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def find_named_run(name: str, settings: Settings, *, with_comparisons: bool = False) -> Path:
    """The folder of a run that the user named; `with_comparisons`, the latest may be judges' comparisons."""
    from steelyard.store.run_folders import find_run

    return find_run(name, Path(settings.output_dir), with_comparisons=with_comparisons)


def conclude(conclusion: Conclusion) -> int:
    """Print the messages beside the results; returns the exit code."""
    for message in conclusion.messages:
        print_to_stderr(message)
    return conclusion.exit_code


def print_written(paths: Sequence[Path]) -> None:
    """Say which files were written."""
    for path in paths:
        print_to_stderr(f"wrote {path}")


_COLUMN_GAP_PATTERN = re.compile(r"\S {2,}\S")
_COMMAND_PREFIX = "  steelyard "
"""How a line begins that is copied whole: a terminal wraps it without breaking it."""


def folded(text: str, width: int) -> str:
    r"""The text in lines of at most `width` columns: sentences are wrapped and indented, and tables become several with the same first column.

    >>> print(folded("  one sentence that is too long\n", 20), end="")
      one sentence that
        is too long
    >>> print(folded("case  before  after\nperu   1.000  0.000\n", 12), end="")
    case  before
    peru   1.000
    <BLANKLINE>
    case  after
    peru  0.000
    """
    lines = text.splitlines()
    if all(len(line) <= width for line in lines):
        return text
    parts: list[str] = []
    for is_table, block in groupby(lines, key=lambda line: _COLUMN_GAP_PATTERN.search(line) is not None):
        rows = list(block)
        parts += _narrow_table(rows, width) if is_table else _narrow_lines(rows, width)
    return "".join(f"{line}\n" for line in parts)


def filled(text: str, width: int) -> str:
    r"""The text with its paragraphs laid out anew in this width; indented lines, such as examples, stay as they are.

    >>> print(filled("two short\nlines\n\nexample:\n  a command of some length", 18), end="")
    two short lines
    <BLANKLINE>
    example:
      a command of some length
    """
    parts: list[str] = []
    for is_paragraph, block in groupby(text.splitlines(), key=lambda line: bool(line) and not line.startswith(" ")):
        lines = list(block)
        parts += wrap(" ".join(lines), width, break_long_words=False, break_on_hyphens=False) if is_paragraph else lines
    return "".join(f"{line}\n" for line in parts)


def _narrow_lines(lines: Iterable[str], width: int) -> Iterator[str]:
    for line in lines:
        if len(line) <= width or line.startswith(_COMMAND_PREFIX):
            yield line
        else:
            indent = " " * (len(line) - len(line.lstrip()))
            yield from wrap(
                line,
                width,
                subsequent_indent=f"{indent}  ",
                break_long_words=False,
                break_on_hyphens=False,
            )


def _narrow_table(rows: Sequence[str], width: int) -> Iterator[str]:
    """Rows whose columns stand beneath each other, as several tables where they do not fit; rows without common columns, line by line."""
    starts = _column_starts(rows)
    if len(starts) < 2 or all(len(row) <= width for row in rows):
        yield from _narrow_lines(rows, width)
        return
    ends = [*starts[1:], max(map(len, rows))]
    columns = [[row[start:end].rstrip() for row in rows] for start, end in zip(starts, ends, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    place = 1
    while place < len(columns):
        chosen, used = [place], widths[0] + 2 + widths[place]
        while (last := chosen[-1] + 1) < len(columns) and used + 2 + widths[last] <= width:
            chosen.append(last)
            used += 2 + widths[last]
        if place > 1:
            yield ""
        cells = [_aligned(columns[0]), *(_aligned(columns[number]) for number in chosen)]
        yield from _narrow_lines(("  ".join(row).rstrip() for row in zip(*cells, strict=True)), width)
        place = chosen[-1] + 1


def _column_starts(rows: Sequence[str]) -> list[int]:
    """Where columns begin: after two blanks that every row has there."""
    longest = max(map(len, rows))
    blank = [all(row[place : place + 1] in {"", " "} for row in rows) for place in range(longest)]
    indent = next((place for place, is_blank in enumerate(blank) if not is_blank), 0)
    return [0] + [
        place for place in range(indent + 3, longest) if blank[place - 2] and blank[place - 1] and not blank[place]
    ]


def _aligned(column: Sequence[str]) -> list[str]:
    width = max(map(len, column))
    return [cell.ljust(width) for cell in column]
