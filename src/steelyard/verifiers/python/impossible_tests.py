"""Tests of Python cases that no answer could pass, found without running anything."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import symtable
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.errors import MissingToolError, VerifierError
from steelyard.text import short_quote
from steelyard.verifiers.code.join_stub import entry_name, is_entry_point
from steelyard.verifiers.python.plan import ANSWER_MODULES
from steelyard.verifiers.python.settings import PythonSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from steelyard.records import Case

TEST_PACKAGES = frozenset({"pytest", "_pytest"})
"""Packages that tests of style pytest find without an environment of their own."""
USUAL_MODULE_NAMES = frozenset({"np", "numpy", "pandas", "pd", "plt", "pytest", "scipy"})
"""Names of packages, which a prompt may mention without asking for them."""
MODULE_ATTRIBUTES = frozenset(
    {"__file__", "__name__", "__doc__", "__builtins__", "__spec__", "__loader__", "__package__"}
)


def check_tests(case: Case, style: str) -> None:
    """Raise where the case expects names that cannot be, or its tests import what is not here or never speak of an answer."""
    _check_names(case)
    if style in ("io", "doctest") or not case.tests:
        return
    body = ast.parse(case.tests).body
    missing = [name for name in _imported_packages(body) if not _is_installed(name, case, style)]
    if missing:
        raise MissingToolError(_missing_packages(missing, case))
    nodes = [node for part in body for node in ast.walk(part)]
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    is_asked = style == "check" or asked_builtin(case, called.intersection(dir(builtins)))
    if not is_asked and not _speaks_of_an_answer(case.tests, body):
        raise VerifierError(
            "its tests never use the answer: they import nothing of it and use no name that it could define"
        )


def _missing_packages(missing: Iterable[str], case: Case) -> str:
    where = PythonSettings.of(case).python_env or "the sandbox"
    return (
        f"its tests import {', '.join(missing)}, which {where} does not have; "
        "install it into a virtual environment and name that with --python-env"
    )


def _check_names(case: Case) -> None:
    if (entry_point := case.verify.entry_point) and not is_entry_point(entry_point):
        raise VerifierError(
            f"entry_point {short_quote(entry_point)} is neither a function such as two_sum nor a method such as Solution().two_sum"
        )
    for name in (*case.expectations.expected_functions, *case.expectations.expected_types):
        if not all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split(".")):
            raise VerifierError(
                f"it expects {short_quote(name)}, which is not a name in Python; write it without its arguments"
            )


def check_defined(case: Case, names: Iterable[str]) -> None:
    """Raise where tests used a name that they should have defined themselves, or a package that is not here; an answer may have missed one as well."""
    if ">>>" in case.tests and not _is_python(case.tests):
        return  # examples are not a file; `validate` finds names in them that are not defined
    for name in names:
        if name in _every_import(ast.parse(case.tests).body) and not _is_installed(name, case, case.verify.style):
            raise MissingToolError(_missing_packages([name], case))
        if name in _free_names(symtable.symtable(case.tests, "tests.py", "exec")) and not _is_asked(case, name):
            raise VerifierError(f"its tests use {name}, which they neither import nor define")


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _is_asked(case: Case, name: str) -> bool:
    """Whether the answer may have been meant to define a name."""
    body = ast.parse(case.tests).body
    imports = [node for each in body for node in ast.walk(each) if isinstance(node, ast.ImportFrom)]
    has_star = any(node.module in ANSWER_MODULES and node.names[0].name == "*" for node in imports)
    if not has_star and any(package in ANSWER_MODULES for package in _every_import(body)):
        return False  # such a file says itself what it takes from the answer
    if case.reference or is_told(case, name):
        return is_told(case, name)
    # if the prompt has no name at all, a model may miss the one that the tests use
    return not told_names(case)


def told_names(case: Case) -> list[str]:
    """The names that the tests assume and that the prompt mentions."""
    wanted = _free_names(symtable.symtable(case.tests, "tests.py", "exec")) - set(dir(builtins)) - MODULE_ATTRIBUTES
    wanted |= {entry_name(case.verify.entry_point)} - {""}
    for node in (node for each in ast.parse(case.tests).body for node in ast.walk(each)):
        if isinstance(node, ast.ImportFrom) and node.module in ANSWER_MODULES:
            wanted |= {alias.name for alias in node.names} - {"*"}
    return sorted(name for name in wanted if is_told(case, name))


def is_told(case: Case, name: str) -> bool:
    """Whether the case names something that its answer must define."""
    texts = (*(message.text for message in case.messages), case.verify.stub or "", case.reference or "")
    entry = entry_name(case.verify.entry_point)
    expected = (*case.expectations.expected_functions, *case.expectations.expected_types, entry)
    # a prompt that speaks of math does not ask for the module
    is_module = name in sys.stdlib_module_names or name in USUAL_MODULE_NAMES
    pattern = rf"\b(?:import|as)[ \t].*\b{re.escape(name)}\b" if is_module else rf"\b{re.escape(name)}\b"
    return name in expected or any(re.search(pattern, text) for text in texts)


def asked_builtin(case: Case, called: Iterable[str]) -> str:
    """The one of these builtin functions that the case asks for a version of; empty if that is none, or not certain."""
    texts = (*(message.text for message in case.messages), case.verify.stub or "", case.reference or "")
    asked = [name for name in called if any(re.search(rf"(?<![\w.]){name}\(", text) for text in texts)]
    defined = [name for name in asked if re.search(rf"^def {name}\(", "\n".join(texts), re.MULTILINE)] or asked
    return defined[0] if len(defined) == 1 else ""


def _imported_packages(body: list[ast.stmt]) -> Iterator[str]:
    """Packages that the tests always import; imports in `try`, `if` or a function may not be needed."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def _is_installed(package: str, case: Case, style: str) -> bool:
    if package in sys.stdlib_module_names or package in ANSWER_MODULES:
        return True
    environment = PythonSettings.of(case).python_env
    if not environment:
        return style == "pytest" and package in TEST_PACKAGES
    folders = list(Path(environment).glob("lib/python*/site-packages"))
    # what a .pth file or an import hook adds is known only to the interpreter
    return (
        any(
            (folder / package).is_dir() or any(folder.glob(f"{package}.*")) or any(folder.glob("*.pth"))
            for folder in folders
        )
        or not folders
    )


def _speaks_of_an_answer(tests: str, body: list[ast.stmt]) -> bool:
    """Whether something in the tests could be the answer's: an import, a name that they do not define, or its file."""
    if any(name in ANSWER_MODULES for name in _every_import(body)):
        return True
    if any(
        isinstance(node, ast.Constant) and _names_the_answer(node.value) for each in body for node in ast.walk(each)
    ):
        return True
    return bool(_free_names(symtable.symtable(tests, "tests.py", "exec")) - set(dir(builtins)) - MODULE_ATTRIBUTES)


def _every_import(body: list[ast.stmt]) -> Iterator[str]:
    for each in body:
        for node in ast.walk(each):
            yield from _imported_packages([node]) if isinstance(node, ast.stmt) else ()


def _names_the_answer(value: object) -> bool:
    return isinstance(value, str) and any(name in value for name in ANSWER_MODULES)


def _free_names(table: symtable.SymbolTable) -> set[str]:
    """Names that are used and that the module itself does not define."""
    defined = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    used: set[str] = set()
    stack = [table]
    while stack:
        each = stack.pop()
        stack += each.get_children()
        for symbol in each.get_symbols():
            if symbol.is_global() and symbol.is_assigned():
                defined.add(symbol.get_name())
            elif symbol.is_referenced() and (symbol.is_global() or each is table):
                used.add(symbol.get_name())
    return used - defined
