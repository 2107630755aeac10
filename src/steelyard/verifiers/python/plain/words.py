"""Answers that cannot find what else their process holds, by the words of their source: a look at every answer, so a quick one.

Who finds a frame of another function finds what it will be called with next. Every way there has a name, which must stand in the
source where nothing in it makes names at run time. An answer with any doubtful word may well be honest; it is only treated with care.
"""

from __future__ import annotations

import re
import sys
import unicodedata

from steelyard.verifiers.python.plain.names import (
    FRAME_ATTRIBUTES,
    LISTED_DUNDERS,
    LISTED_METHODS,
    REACHING_ATTRIBUTES,
    REACHING_BUILTINS,
)

HARMLESS_MODULES = frozenset(
    {
        *("__future__", "bisect", "cmath", "collections", "copy", "datetime", "decimal", "fractions", "functools"),
        *(
            "array",
            "hashlib",
            "heapq",
            "itertools",
            "math",
            "operator",
            "random",
            "re",
            "statistics",
            "string",
            "typing",
        ),
    }
)
"""Modules that lead nowhere but by an attribute that is named."""
WORD_PATTERN = re.compile(r"[^\W\d]\w*")
ATTRIBUTE_PATTERN = re.compile(r"\.[\s\\]*(#|[^\W\d]\w*)")
"""What stands behind a dot; a comment there is as doubtful as a name."""
IMPORT_PATTERN = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import|import)[ \t]+([\w., \t]+?)[ \t\r]*(?:#.*)?$", re.MULTILINE
)
CASE_PATTERN = re.compile(r"^\s*case\b", re.MULTILINE)
"""A pattern may name attributes: `case object(gi_frame=frame)`."""
DOUBTFUL_WORDS = (REACHING_BUILTINS - {"compile"}) | {"open"}
"""Builtin functions that reach things without naming them."""
DOUBTFUL_ATTRIBUTES = (
    REACHING_ATTRIBUTES
    | {"#", "bltns", "format", "format_map", "vformat"}
    | (sys.stdlib_module_names - HARMLESS_MODULES)
)
"""What an attribute may be called that leads on, or reads attributes by their names."""
HARMLESS_DUNDERS = LISTED_DUNDERS | LISTED_METHODS | {"__main__"}


def is_without_surroundings(code: str) -> bool:
    r"""Whether an answer certainly cannot look at the frames around it.

    >>> is_without_surroundings("import re\ndef f(x):\n    return re.compile('a').findall(x)")
    True
    >>> [is_without_surroundings(f"import typing\n{line}") for line in ("typing.sys", "getattr(f, 'a')", "g.gi_frame")]
    [False, False, False]
    """
    if not code.isascii():
        code = unicodedata.normalize("NFKC", code)  # as names are read
    words = set(WORD_PATTERN.findall(code))
    if not words.isdisjoint(DOUBTFUL_WORDS) or any(map(FRAME_ATTRIBUTES.fullmatch, words)):
        return False
    if any("__" in word and word not in HARMLESS_DUNDERS for word in words):
        return False
    attributes = set(ATTRIBUTE_PATTERN.findall(code))
    if any(name[0] == "_" and name not in HARMLESS_DUNDERS for name in attributes):
        return False
    if code.count("compile") != code.count("re.compile") or not attributes.isdisjoint(DOUBTFUL_ATTRIBUTES):
        return False
    if "case" in words and CASE_PATTERN.search(code):
        return False
    return "import" not in words or _imports_are_harmless(code)


def _imports_are_harmless(code: str) -> bool:
    lines = IMPORT_PATTERN.findall(code)
    if len(lines) != len(re.findall(r"\bimport\b", code)):
        return False
    for module, names in lines:
        parts = [part.split() for part in names.split(",")]
        imported = [part[0] if part else "" for part in parts]
        if any(name[:1] == "_" or name in DOUBTFUL_ATTRIBUTES for name in imported):
            return False
        if not {name.partition(".")[0] for name in ([module] if module else imported)} <= HARMLESS_MODULES:
            return False
    return True
