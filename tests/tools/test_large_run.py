"""The benchmark of one large run measures every command and every report format."""

from __future__ import annotations

from benchmarks.large_run import REPORTS, WITHOUT_ATTEMPTS, Shape, commands

from steelyard.cli.main import COMMANDS
from steelyard.plugins import known_suffixes
from steelyard.reports import PARQUET_SUFFIX


def test_every_command_about_attempts_is_in_the_table() -> None:
    measured = {arguments[0] for arguments in commands([], Shape.of(100_000, 1000)).values()}
    assert not measured & WITHOUT_ATTEMPTS.keys()
    assert measured | WITHOUT_ATTEMPTS.keys() == COMMANDS.keys()


def test_every_report_format_is_in_the_table() -> None:
    suffixes = {name[name.index(".") :] for name in REPORTS}
    assert suffixes == {*known_suffixes("reports"), PARQUET_SUFFIX}


def test_both_shapes_have_as_many_attempts() -> None:
    few, many = (Shape.of(100_000, cases) for cases in (1000, 100_000))
    assert few.attempts == many.attempts == 100_000
    assert (len(few.models), few.samples, len(many.models), many.samples) == (2, 50, 1, 1)
