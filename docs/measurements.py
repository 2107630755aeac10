"""The page of measurements, from the tables in benchmarks/results."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
HEAD = """# Measurements

Every table behind a claim of these pages, with the command that makes it. CPU times of a busy machine vary by a third. The files are in
`benchmarks/results`; this page is made of them by `make docs`."""


def measurements() -> str:
    """The page: a section for each table that `index.toml` names."""
    index = tomllib.loads((RESULTS / "index.toml").read_text("utf-8"))
    sections = [_section(**entry) for entry in index["tables"]]
    return "\n\n".join([HEAD, *sections]) + "\n"


def _section(file: str, title: str, about: str, by: str = "", columns: Sequence[str] = (), shown: bool = True) -> str:
    with (RESULTS / file).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    link = f"[`{file}`](../benchmarks/results/{file})"
    if not shown:
        return f"## {title}\n\n{about} The table is {link}."
    if by:
        about += f" Shown are the mean over the cells and, in brackets, the largest; {link} has all cells."
        rows = _grouped(rows, by, columns)
    lines_of_table = [[*rows[0]], ["---"] * len(rows[0]), *(row.values() for row in rows)]
    return f"## {title}\n\n{about}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines_of_table)


def _grouped(rows: Sequence[Mapping[str, str]], by: str, columns: Sequence[str]) -> list[dict[str, str]]:
    groups: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        groups.setdefault(row[by], []).append(row)
    return [
        {by: name} | {column: _mean_and_most([row[column] for row in of]) for column in columns}
        for name, of in groups.items()
    ]


def _mean_and_most(cells: Sequence[str]) -> str:
    values = [float(cell) for cell in cells if cell]
    return f"{fmean(values):.1f} ({max(values):g})" if values else "-"
