"""Answers that mean something else in a process of their own, known by their source."""

from __future__ import annotations

import re

CALLER_PATTERN = re.compile(
    r"\b(?:_getframe\w*|_current_frames|currentframe|getouterframes|f_back"
    r"|(?:extract|format|print|walk)_stack|findCaller)\b"
)
"""Names by which a function finds its caller."""
CALLER_WORDS = (("inspect", "stack"), ("logging", "stacklevel"))
"""Modules, each with a word that means the caller in code that uses it."""
MODULE_ATTRIBUTES_PATTERN = re.compile(r"^def (?:__getattr__|__dir__)\(", re.MULTILINE)
"""Functions by which a module makes its attributes when it is asked for them."""

SETTING_PATTERN = re.compile(r"\b(?:setrecursionlimit|set_int_max_str_digits)\b|\bgetcontext\(\)\.prec *= *[3-9]\d\b")
"""What changes a setting of the interpreter, which tests share with an answer in one process, and makes none of them less strict."""
CONTEXT_PATTERN = re.compile(r"\w*[cC]ontext\b(?!\(\)\.prec *= *[3-9]\d\b)|\.prec\b(?! *= *[3-9]\d\b)")
"""What may change how tests compute with decimal numbers, but for a higher precision."""
IMPORT_LINE_PATTERN = re.compile(r"^[ \t]*(?:from|import)\b.*$", re.MULTILINE)


def why_inseparable(code: str) -> str:
    """Why an answer can only be judged beside its tests; empty where nothing says so."""
    is_about_callers = CALLER_PATTERN.search(code) is not None or any(
        module in code and re.search(rf"\b{word}\b", code) for module, word in CALLER_WORDS
    )
    if is_about_callers:
        return "it looks at the functions that call it"
    return "its module makes attributes of its own" if MODULE_ATTRIBUTES_PATTERN.search(code) else ""


def changes_settings(code: str) -> bool:
    """Whether an answer changes a setting that its tests may rely on, and nothing by which they would compare less exactly."""
    unimported = IMPORT_LINE_PATTERN.sub("", code)
    return SETTING_PATTERN.search(code) is not None and CONTEXT_PATTERN.search(unimported) is None
