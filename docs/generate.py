"""Writes what follows from code and data: commands, the schema of eval sets, whose fault it is, the HTTP API, and measurements."""

import argparse
import importlib.util
import json
import os
from collections.abc import Collection
from pathlib import Path
from types import ModuleType

from steelyard.cli.main import COMMANDS, command_parser
from steelyard.evalsets.schema import schema
from steelyard.providers.faults import FINISH_REASONS
from steelyard.viewer.api import ANSWERS
from steelyard.viewer.openapi import api_document

HERE = Path(__file__).parent
EXAMPLES, SHIPPED = (HERE.parent / name for name in ("examples", "src/steelyard/evalsets/shipped"))
SHIPPED_COPIES = {
    SHIPPED / "demo" / original.name: original
    for language in ("python", "rust")
    for original in (EXAMPLES / f"{language}-basics.toml", EXAMPLES / "recordings" / f"{language}-basics.jsonl.gz")
}
"""What the wheel has of the examples. They are copies: links get lost in archives and on some systems."""
HELP_ALL = "Where a command has more than 20 options, its `--help` shows those that most people use; `--help-all` shows all, as this page does."
TABLE_BEGIN, TABLE_END = "<!-- generated: whose fault -->", "<!-- end -->"


def commands() -> str:
    """The page of commands: what `--help` prints for each of them, with the options of several commands only once."""
    os.environ["COLUMNS"] = "100"
    parser = command_parser(COMMANDS)
    (subparsers,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    takers: dict[tuple[str, str], list[str]] = {}
    for name, sub in subparsers.choices.items():
        for option in _options(sub):
            takers.setdefault(_said(sub, option), []).append(name)
    shared = {said: names for said, names in takers.items() if len(names) > 1}
    pages = [
        "# Commands",
        "Generated from the command line itself by `make docs`.",
        HELP_ALL,
        _block(parser.format_help()),
    ]
    pages += [_command(name, sub, shared) for name, sub in subparsers.choices.items()]
    rows = ["| option | what it does | commands |", "|---|---|---|"]
    for (names, about), commands_of in sorted(shared.items()):
        by = ", ".join(commands_of) if len(commands_of) < len(COMMANDS) / 2 else "nearly all"
        cells = (f"`{names}`", about, by)
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    pages += ["## Options of several commands", "\n".join(rows)]
    return "\n\n".join(pages) + "\n"


def _command(name: str, sub: argparse.ArgumentParser, shared: Collection[tuple[str, str]]) -> str:
    """The section of a command: its own options in full, the others by name."""
    formatter = sub.formatter_class(prog=sub.prog)
    positionals = [
        formatter._format_args(each, each.metavar or each.dest)  # type: ignore[arg-type]  # as argparse itself calls it
        for each in sub._get_positional_actions()
    ]
    formatter.add_usage(f"{sub.prog} [OPTION]...{' ' if positionals else ''}{' '.join(positionals)}", [], [])
    formatter.add_text(sub.description)
    for group in sub._action_groups:
        formatter.start_section(group.title)
        formatter.add_arguments(
            [each for each in group._group_actions if each.dest != "help" and _said(sub, each) not in shared]
        )
        formatter.end_section()
    formatter.add_text(sub.epilog)
    others = [f"`{option.option_strings[-1]}`" for option in _options(sub) if _said(sub, option) in shared]
    also = f"\n\nAlso [{', '.join(others)}](#options-of-several-commands)." if others else ""
    return f"## steelyard {name}\n\n{_block(formatter.format_help())}{also}"


def _options(sub: argparse.ArgumentParser) -> list[argparse.Action]:
    return [
        action
        for action in sub._actions
        if action.option_strings and action.dest != "help" and action.help is not argparse.SUPPRESS
    ]


def _said(sub: argparse.ArgumentParser, option: argparse.Action) -> tuple[str, str]:
    """What the help says of an option, its names and its text: two that say the same are one on the page."""
    formatter = argparse.HelpFormatter(sub.prog, width=10_000)
    value = "" if option.nargs == 0 else formatter._format_args(option, option.metavar or option.dest.upper())  # type: ignore[arg-type]  # as argparse itself calls it
    return f"{', '.join(option.option_strings)} {value}".strip(), formatter._expand_help(option)


def _module(name: str) -> ModuleType:
    """A module beside this one, which is no package."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _block(text: str) -> str:
    return f"```text\n{text.strip(chr(10)).rstrip()}\n```"


def providers() -> str:
    """The page of providers with the table of finish reasons."""
    page = (HERE / "providers.md").read_text("utf-8")
    before, _, rest = page.partition(TABLE_BEGIN)
    lines = ["| finish reason | sent by | taken for |", "|---|---|---|"]
    for row in FINISH_REASONS:
        words = ", ".join(f"`{word}`" for word in row.words)
        lines.append(f"| {words or row.who} | {row.who if words else ''} | {row.kind} |")
    table = "\n".join(lines)
    return f"{before}{TABLE_BEGIN}\n\n{table}\n\n{TABLE_END}{rest.partition(TABLE_END)[2]}"


def pages() -> dict[Path, str]:
    """Each generated file with what it must hold."""
    eval_set_schema = json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
    return {
        HERE / "commands.md": commands(),
        HERE / "steelyard.1": _module("man_page").man_page(command_parser(COMMANDS)),
        HERE / "eval-set.schema.json": eval_set_schema,
        SHIPPED / "eval-set.schema.json": eval_set_schema,
        HERE / "providers.md": providers(),
        HERE / "measurements.md": _module("measurements").measurements(),
        HERE / "openapi.json": json.dumps(api_document(ANSWERS), indent=2, ensure_ascii=False) + "\n",
    }


if __name__ == "__main__":
    for path, content in pages().items():
        path.write_text(content, "utf-8")
    for copy, original in SHIPPED_COPIES.items():
        copy.write_bytes(original.read_bytes())
