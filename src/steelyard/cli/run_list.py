"""The list of runs."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from steelyard.engine.results.headline_cache import RunLines

MAX_LISTED_NAME_COLUMNS = 32
LINES_PER_WRITE = 1000
BOLD, NOT_BOLD = "\x1b[1m", "\x1b[0m"


def print_runs(root: Path, *, width: int, color: bool) -> None:
    """Print the runs below a folder, oldest first, and then why others cannot be read."""
    from steelyard.engine.results.headline_cache import run_headlines
    from steelyard.text import line

    runs = run_headlines(root)
    lines = [run.lines for run in runs if run.lines is not None]
    problems = [line(f"{run.name} cannot be read: {run.problem}", 500) for run in runs if run.problem]
    shown = [text.rstrip() for text in listed_lines(lines, width=width, color=color)] + problems
    # each write is a call to the system
    for first in range(0, len(shown), LINES_PER_WRITE):
        sys.stdout.write("\n".join([*shown[first : first + LINES_PER_WRITE], ""]))


def listed_lines(runs: Iterable[RunLines], *, width: int, color: bool) -> Iterator[str]:
    """Each run with its date and eval sets, and below it a line per model, with figures of all models in columns."""
    runs = list(runs)
    if not runs:
        yield "no runs yet"
    models = [model for run in runs for model in run.models]
    wide = min(max((_columns(name) for name, *_ in models), default=0), MAX_LISTED_NAME_COLUMNS)
    layout = _figure_layout(models)
    for run in runs:
        # a name that is cut cannot be copied: what follows it is
        text = _fitted(f"{run.name}  {run.about}", width)
        yield f"{BOLD}{text[: len(run.name)]}{NOT_BOLD}{text[len(run.name) :]}" if color else text
        for model in run.models:
            name, figures = model[0], (layout % model[1:]).rstrip()
            taken = _columns(name)
            if 2 + max(taken, wide) + 2 + len(figures) <= width:
                yield f"  {name}{' ' * (wide - taken)}  {figures}"
            else:
                # a number that is cut says something else
                yield _fitted(f"  {name}", width)
                yield _fitted(f"    {figures}", width)


def _figure_layout(models: Sequence[tuple[str, str, str, str, str, str]]) -> str:
    """How the figures of a model are laid out in columns that all of them share; a column that no model needs takes no room."""
    share, interval, *others = [max(map(len, column)) for column in list(zip(*models, strict=True))[1:]] or [0] * 5
    layout = f"%{share}s" + (f" %-{interval}s" if interval else "%s")
    return layout + "".join(f"  %{columns}s" if columns else "%s" for columns in others)


# runs share few names of models
@functools.lru_cache(maxsize=1 << 12)
def _columns(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _fitted(text: str, width: int) -> str:
    """A line, cut at the width."""
    if (text.isascii() and len(text) <= width) or _columns(text) <= width:
        return text
    from rich.cells import set_cell_size

    return set_cell_size(text, width - 1) + "…"
