"""An answer without the part that runs only where the answer itself is the program, as its tests load it."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import PurePosixPath

from steelyard.records import Case
from steelyard.verifiers.code.extract import canonical_language
from steelyard.verifiers.command.settings import CommandSettings

_SHELL_PATTERN = re.compile(r"\[\[?\s+\"?\$\{BASH_SOURCE(?:\[0\])?\}\"?\s+==?\s+\"?(?:\$0|\$\{0\})\"?\s+\]\]?")
_PERL_PATTERN = re.compile(r"\bunless\s*(?:caller(?:\s*\(\s*\))?\s*(?=;)|\(\s*caller(?:\s*\(\s*\))?\s*\))")
_NODE_PATTERN = re.compile(r"\bif\s*\(\s*require\.main\s*===?\s*module\s*\)")
_STRICT_PATTERN = re.compile(r"^[ \t]*set[ \t]+-(?:eu?|ue?)(?:o[ \t]+pipefail)?[ \t]*(?:#[^\n]*)?$", re.MULTILINE)


def as_loaded(case: Case, code: str) -> str:
    """The code that runs when tests load an answer; all of it if they may start it as a program."""
    said = CommandSettings.of(case)
    name = PurePosixPath(said.answer).name
    if not name or name in said.test or any(_starts(text, name) for text in said.files.values()):
        return code
    language = canonical_language(case.language)
    if language == "shell":
        return _shell(code, "\n".join(said.files.values()))
    if language == "perl":
        return _PERL_PATTERN.sub("if (0)", code)
    if language == "javascript":
        return _NODE_PATTERN.sub("if (false)", code)
    return _python(code) if language == "python" else code


def _starts(text: str, name: str) -> bool:
    """Whether tests may start a file as a program of its own."""
    named = re.escape(name)
    return bool(
        re.search(
            rf"\b(?:ba|da|k|z)?sh\s+(?:-\w+\s+)*[\"']?(?:\./)?{named}|\b(?:perl|python3?|node)\s+(?:\./)?{named}", text
        )
        or re.search(r"\b(?:runpy|subprocess|child_process|os\.system|run_path)\b", text)
        or re.search(
            rf"(?:^|[\s;&|(])\./{named}", re.sub(rf"(?:\.|\bsource)\s+[\"']?\./{named}", "", text), re.MULTILINE
        )
    )


def _shell(code: str, tests: str) -> str:
    code = _SHELL_PATTERN.sub("[ 1 = 2 ]", code)
    # a command that fails ends what it is in; a pipe, a subshell or a trap would hide that from the tests
    plain = re.sub(r"\|\||\$\(\(|\(\(|\$\(|\(\s*\)", " ", tests)
    return code if re.search(r"[|(]|\btrap\b|&\s", plain) else _STRICT_PATTERN.sub("", code)


def _python(code: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code
    lines = code.split("\n")
    for node in body:
        if isinstance(node, ast.If) and not node.orelse and _is_main_guard(node.test):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    rest = "\n".join(lines)
    # who gives the module another name runs that part
    return code if "__name__" in rest else rest


def _is_main_guard(node: ast.expr) -> bool:
    match node:
        case ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]):
            return True
    return False
