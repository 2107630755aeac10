"""What the tests of a case need that no answer brings, proved by commands: where one fails, the machine lacks it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import PurePosixPath

from steelyard.records import Case
from steelyard.verifiers.command.settings import CommandSettings

PYTHON_PATTERN = re.compile(r"(?<![\w./-])python[\d.]*(?![\w./-])")
PYTHON_MODULE_PATTERN = re.compile(
    rf"(?P<python>{PYTHON_PATTERN.pattern})(?: +-(?!m)\S+)* +-m +(?P<module>[A-Za-z_]\w*)"
)
"""A runner of tests that Python is asked for by name, such as `python -m pytest`."""
SEVERAL_COMMANDS_PATTERN = re.compile(r"[;&|\n]")


def needs(case: Case, own_names: frozenset[str]) -> list[str]:
    """The commands that must succeed; `own_names` are what the case has itself, and a module of that name is no one else's."""
    said = CommandSettings.of(case)
    modules = [*_python_runners(f"{said.build}\n{said.test}"), *_python_imports(case)]
    wanted = (f"{python} -c 'import {module}'" for python, module in modules if module not in own_names)
    return [*filter(None, [said.needs]), *dict.fromkeys(wanted)]


def _python_runners(commands: str) -> Iterator[tuple[str, str]]:
    for found in PYTHON_MODULE_PATTERN.finditer(commands):
        yield found["python"], found["module"]


def _python_imports(case: Case) -> Iterator[tuple[str, str]]:
    """What tests in Python import, where nothing but the tests can make it: no build, no second command, no patch."""
    said = CommandSettings.of(case)
    python = PYTHON_PATTERN.match(said.test.strip())
    if python is None or said.build or case.workspace or SEVERAL_COMMANDS_PATTERN.search(said.test.strip()):
        return
    for name, text in said.files.items():
        if PurePosixPath(name).suffix == ".py":
            yield from ((python[0], module) for module in _imported(text) if module not in sys.stdlib_module_names)


def _imported(text: str) -> Iterator[str]:
    """The modules that a file imports in any case, the first part of each name."""
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module.partition(".")[0]
