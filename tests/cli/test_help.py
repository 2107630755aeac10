"""What the help of a command shows: the options that most people use, and all of them where it is asked to."""

from __future__ import annotations

import argparse

import pytest

from steelyard.cli.main import COMMANDS, command_parser, main

MAX_OPTIONS = 22


def options(name: str) -> list[argparse.Action]:
    """All options of a command that are not hidden."""
    parser = argparse.ArgumentParser()
    COMMANDS[name].add_options(parser)
    return [one for one in parser._actions[1:] if one.option_strings and one.help != argparse.SUPPRESS]


def shown(name: str, word: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What `--help` or `--help-all` prints."""
    with pytest.raises(SystemExit) as ended:
        main([name, word])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_few_options_and_says_how_to_see_all(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    every = options(name)
    short, long = (shown(name, word, capsys) for word in ("--help", "--help-all"))
    lines = [line for line in short.splitlines() if line.startswith("  -")]
    assert len(lines) <= MAX_OPTIONS
    assert (f"steelyard {name} --help-all shows all" in short) == (len(lines) <= len(every))
    assert [one.dest for one in every if one.option_strings[-1] not in long] == []


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.common])
def test_what_help_shows_are_options_of_the_command(name: str) -> None:
    known = {word for one in options(name) for word in one.option_strings}
    assert [word for word in COMMANDS[name].common.split() if word not in known] == []


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if not command.common])
def test_a_command_with_many_options_names_the_common_ones(name: str) -> None:
    assert len(options(name)) <= 20


def test_output_is_a_folder_and_o_a_file_in_every_command_and_names_of_before_are_understood() -> None:
    for name in COMMANDS:
        for option in options(name):
            if "-o" in option.option_strings or "--report" in option.option_strings:
                assert (option.option_strings, option.metavar) == (["-o", "--report"], "FILE"), name
            if option.option_strings[-1] == "--output":
                assert option.metavar == "DIR", name
    parser = command_parser(COMMANDS)
    assert parser.parse_args(["import", "a.eval", "-o", "runs/a"]).output == "runs/a"
    assert parser.parse_args(["synth", "--out", "data"]).output == "data"
