"""Writes what follows from the code: commands, the schema of eval sets, whose fault it is, and the HTTP API."""

import argparse
import importlib.util
import json
import os
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
TABLE_BEGIN, TABLE_END = "<!-- generated: whose fault -->", "<!-- end -->"


def commands() -> str:
    """The page of commands: what `--help` prints, for each of them."""
    os.environ["COLUMNS"] = "100"
    parser = command_parser(COMMANDS)
    pages = ["# Commands", "Generated from the command line itself by `make docs`.", _block(parser)]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                pages += [f"## steelyard {name}", _block(sub)]
    return "\n\n".join(pages) + "\n"


def _module(name: str) -> ModuleType:
    """A module beside this one, which is no package."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _block(parser: argparse.ArgumentParser) -> str:
    return f"```text\n{parser.format_help().rstrip()}\n```"


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
        HERE / "openapi.json": json.dumps(api_document(ANSWERS), indent=2, ensure_ascii=False) + "\n",
    }


if __name__ == "__main__":
    for path, content in pages().items():
        path.write_text(content, "utf-8")
    for copy, original in SHIPPED_COPIES.items():
        copy.write_bytes(original.read_bytes())
