"""The benchmark of one large run measures every command and every report format."""

from __future__ import annotations

from benchmarks.large_run import REPORTS, WITHOUT_ATTEMPTS, commands

from steelyard.cli.main import COMMANDS
from steelyard.plugins import known_suffixes
from steelyard.reports import PARQUET_SUFFIX


def test_every_command_about_attempts_is_in_the_table() -> None:
    measured = {arguments[0] for arguments in commands([]).values()}
    assert not measured & WITHOUT_ATTEMPTS.keys()
    assert measured | WITHOUT_ATTEMPTS.keys() == COMMANDS.keys()


def test_every_report_format_is_in_the_table() -> None:
    suffixes = {name[name.index(".") :] for name in REPORTS}
    assert suffixes == {*known_suffixes("reports"), PARQUET_SUFFIX}
