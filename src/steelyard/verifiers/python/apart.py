"""The tests once more in a process of their own: a pass there cannot have been made by an answer that sits among its tests.

The answer is in a sandbox of its own, and plain data goes to and fro by value. Whatever else the tests need is not tried.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import socket
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

from steelyard.verifiers.python.guest.wire import ANSWER_MODULE_NAMES
from steelyard.verifiers.python.guests import GuestChannel, answer_guest, finish_call, python_guest, python_limits
from steelyard.verifiers.python.plain import RunReport, run_job, run_report
from steelyard.verifiers.python.plan import imported_modules
from steelyard.verifiers.python.settings import PythonSettings
from steelyard.verifiers.python.stubs import bound_names

if TYPE_CHECKING:
    from steelyard.protocols import Sandbox
    from steelyard.records import Case
    from steelyard.verifiers.python.plan import PythonTestPlan

MAX_CACHED_CLAIMS = 1000
PURE_MODULES = frozenset(
    {
        *("__future__", "abc", "ast", "bisect", "calendar", "cmath", "collections", "copy", "dataclasses", "datetime"),
        *("decimal", "enum", "fractions", "functools", "heapq", "itertools", "json", "math", "numbers", "operator"),
        *("pprint", "pytest", "re", "statistics", "string", "textwrap", "typing", "unittest"),
        *ANSWER_MODULE_NAMES,
    }
)
"""What tests may import that mean the same in a process of their own: nothing here has to do with a process or its files."""
PROCESS_NAMES = frozenset(
    {
        *("__import__", "breakpoint", "compile", "eval", "exec", "globals", "id", "input", "locals", "open", "vars"),
        *("assertLogs", "assertNoLogs", "assertWarns", "assertWarnsRegex", "deprecated_call", "mock", "warns"),
        *("cache", "caplog", "capfd", "capfdbinary", "capsys", "capsysbinary", "monkeypatch", "pytester", "recwarn"),
        *("request", "testdir", "tmp_path", "tmp_path_factory", "tmpdir", "tmpdir_factory", "assertIs", "assertIsNot"),
        *("__cause__", "__context__", "__suppress_context__", "__traceback__", "tb"),
        *("__all__", "__dict__", "__file__", "dir"),
        "addTypeEqualityFunc",
    }
)
"""What tests say that look at their process, at its files, at which object something is, at what a module or an exception is besides its own data,
or that let a function of the answer compare."""


async def report_apart(sandbox: Sandbox, case: Case, plan: PythonTestPlan, code: str) -> RunReport:
    """What tests report that reach their answer over a socket alone."""
    limits = python_limits(case)
    ours, theirs = socket.socketpair()
    calling, answering = socket.socketpair()
    environment = PythonSettings.of(case).python_env
    with ours, theirs, calling, answering:
        async with (
            sandbox.host(python_guest("tests", environment, plan.style)) as tests,
            sandbox.host(answer_guest("answer", case, plan.style, code)) as answer,
        ):
            answered = asyncio.ensure_future(answer.call([answering], limits))
            running = asyncio.ensure_future(tests.call([theirs, calling], limits, beside=answer))
            try:
                job = run_job(case, plan, code, sorted(_used_names(case.tests)))
                report = await run_report(GuestChannel(ours), job, running, tests)
                await finish_call(answer, answered)
            finally:
                running.cancel()
                answered.cancel()
    return report


@lru_cache(maxsize=MAX_CACHED_CLAIMS)
def why_not_apart(tests: str, style: str) -> str:
    """Why tests mean something only in one process with the answer; empty if they may be tried in another."""
    try:
        nodes = list(ast.walk(ast.parse(tests))) if style != "doctest" else []
    except (SyntaxError, ValueError):
        return "they cannot be read"
    packages = {module.partition(".")[0] for module in imported_modules(nodes)}
    if others := packages - PURE_MODULES:
        return f"they import {min(others)}"
    if "unittest.mock" in imported_modules(nodes):
        return "they import unittest.mock"
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    # a module that the answer has imported, or that we import for the tests
    if others := used & (sys.stdlib_module_names - PURE_MODULES) - bound_names(nodes):
        return f"they use {min(others)}"
    if names := PROCESS_NAMES & _names(nodes):
        return f"they speak of {min(names)}"
    if any(map(_is_identity_comparison, nodes)):
        return "they ask which object something is"
    return ""


def _used_names(tests: str) -> set[str]:
    try:
        return {node.id for node in ast.walk(ast.parse(tests)) if isinstance(node, ast.Name)}
    except SyntaxError:
        return set()


def _names(nodes: list[ast.AST]) -> set[str]:
    """Every name in tests, whatever it stands for."""
    return {getattr(node, field, "") or "" for node in nodes for field in ("id", "attr", "arg", "name")}


def _is_identity_comparison(node: ast.AST) -> bool:
    """Whether this asks if two objects are the same one."""
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    return any(
        isinstance(operator, ast.Is | ast.IsNot) and not (_is_singleton(left) or _is_singleton(right))
        for operator, left, right in zip(node.ops, sides, node.comparators, strict=False)
    )


def _is_singleton(node: ast.expr) -> bool:
    """Whether there is one such object in every process: None, a truth value, a type of the language."""
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and hasattr(builtins, node.id))
