"""One program from the stub of a problem and the code of a reply."""

from __future__ import annotations

import ast
import keyword
import re
import textwrap
import warnings
from functools import lru_cache

from steelyard.records import Case
from steelyard.text import verbatim_code
from steelyard.verifiers.code.extract import (
    MAX_PARSED_CHARS,
    ExtractedCode,
    canonical_language,
    extract,
    is_python,
    without_thinking,
)

FUNCTION_HEAD_PATTERN = re.compile(r"^(?:@.*\n)*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
"""A line at the left margin that begins a function or a class, with its decorators."""
TOP_LEVEL_BINDING_PATTERN = re.compile(
    r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE
)
"""A line at the left margin that gives a name to something."""
ENTRY_POINT_PATTERN = re.compile(r"[^\W\d]\w*(?:(?:\(\))?\.[^\W\d]\w*)*")
"""A dotted name in which calls have no arguments, such as `Solution().two_sum`."""
MAX_CACHED_PREAMBLES = 256
RUST_USE_PATTERN = re.compile(r"^[ \t]*(?:pub[ \t]+)?use\b", re.MULTILINE)


def is_entry_point(text: str) -> bool:
    """Whether a text names what tests call: a function, or a method of a class that is made without arguments.

    >>> [is_entry_point(text) for text in ("two_sum", "Solution().twoSum", "Solution(3).twoSum", "two_sum()")]
    [True, True, False, False]
    """
    words = re.findall(r"\w+", text)
    return ENTRY_POINT_PATTERN.fullmatch(text) is not None and not any(map(keyword.iskeyword, words))


def entry_name(entry_point: str) -> str:
    """The name that an answer must define: `Solution` of `Solution().two_sum`."""
    return re.split(r"[.(]", entry_point)[0]


def code_from_reply(case: Case, text: str) -> ExtractedCode:
    """The program in a reply to this case: verbatim if it is marked so, otherwise extracted and joined with the stub."""
    verbatim = verbatim_code(text)
    if verbatim is not None:
        return ExtractedCode(verbatim, "as it stands") if verbatim.strip() else ExtractedCode(None, "empty reply")
    expected = (*case.expectations.expected_functions, *case.expectations.expected_types)
    entry_point, language = entry_name(case.verify.entry_point), canonical_language(case.language)
    found = extract(text, language, defines=(entry_point,) if entry_point else expected)
    if not case.verify.stub:
        return found
    stub = case.verify.stub
    if language != "python":
        return found if found.code is None else found._replace(code=_joined_unparsed(stub, entry_point, found.code))
    if "```" not in text and not (found.code and _defines(found.code, entry_point)):
        # a body without a fence is no code to someone who does not know the stub
        bare = without_thinking(text.replace("\r\n", "\n")).strip("\n")
        for body in (_indented_body(stub, entry_point, part) for part in (bare, _longest_indented_run(bare))):
            if body and is_python(textwrap.dedent(body)):
                return ExtractedCode(_newline_terminated(stub) + body, "a body, joined to its stub")
    return found if found.code is None else found._replace(code=joined_program(stub, entry_point, found.code))


def joined_program(stub: str, entry_point: str, text: str) -> str:
    r"""A Python program from a stub and the code of a reply: the whole function, or only its body.

    >>> print(joined_program("import math\n\ndef root(x):\n", "root", "return math.sqrt(x)"), end="")
    import math
    <BLANKLINE>
    def root(x):
        return math.sqrt(x)
    >>> print(joined_program("import math\n\ndef root(x):\n", "root", "def root(y):\n    return math.sqrt(y)\n"), end="")
    import math
    <BLANKLINE>
    def root(y):
        return math.sqrt(y)
    """
    head = _function_head(stub, entry_point)
    if head is None:
        return _with_preamble(stub, text) if entry_point and _preamble_names(stub) else text
    body = None if _defines(text, entry_point) else _indented_body(stub, entry_point, text)
    return _with_preamble(stub[: head.start()], text) if body is None else _newline_terminated(stub) + body


def _newline_terminated(stub: str) -> str:
    return stub if stub.endswith("\n") else stub + "\n"


def _function_head(stub: str, entry_point: str) -> re.Match[str] | None:
    """The last line of the stub that begins to define the function."""
    heads = [head for head in FUNCTION_HEAD_PATTERN.finditer(stub) if head[1] == entry_point]
    return heads[-1] if heads else None


def _defines(code: str, name: str) -> bool:
    """Whether some line at the left margin gives the name to something."""
    return name in code and any(name in found.groups() for found in TOP_LEVEL_BINDING_PATTERN.finditer(code))


def _indented_body(stub: str, entry_point: str, text: str) -> str | None:
    """The text indented as the stub needs it; None if it is not a body of its function."""
    head = _function_head(stub, entry_point)
    if head is None or not text.strip():
        return None
    written = text.rstrip() + "\n"
    inside = [line for line in stub[head.end() :].splitlines() if line[:1] in (" ", "\t") and line.strip()]
    indentation = inside[-1][: len(inside[-1]) - len(inside[-1].lstrip())] if inside else "    "
    first = next((line for line in written.splitlines() if line.strip() and not line.startswith("#")), "")
    if first[:1] in (" ", "\t"):
        variants = [written, textwrap.indent(textwrap.dedent(written), indentation)]
    elif _returns_outside_function(written):
        variants = [textwrap.indent(written, indentation)]
    else:
        # who strips a reply strips the first line's indentation, and only that
        variants = [indentation + written.lstrip()]
    return next((variant for variant in variants if _parsed(_newline_terminated(stub) + variant) is not None), None)


def _longest_indented_run(text: str) -> str:
    """The longest stretch of indented lines: a body with prose around it."""
    stretches: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.strip() and line[0] not in " \t":
            stretches.append([])
        else:
            stretches[-1].append(line)
    longest = max(stretches, key=lambda stretch: len(stretch))
    return "\n".join(longest).strip("\n")


def _returns_outside_function(code: str) -> bool:
    """Whether the code returns or yields outside of any function: then it is the body of one."""
    tree = _parsed(code)
    inside: list[ast.AST] = [tree] if tree else []
    while inside:
        node = inside.pop()
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            inside.extend(ast.iter_child_nodes(node))
    return False


def _with_preamble(preamble: str, code: str) -> str:
    """The code with the lines before its function in the stub, unless it contains all of them itself."""
    if not preamble.strip():
        return code
    tree, needed = _parsed(code), _preamble_names(preamble)
    if tree and needed is not None and needed <= _bound_names(tree):
        return code
    start = 0
    if tree and "__future__" in code:
        # nothing but a docstring may stand before these
        future = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
        start = max((node.end_lineno or 0 for node in future), default=0)
    lines = code.splitlines(keepends=True)
    return "".join([*lines[:start], preamble, *lines[start:]])


@lru_cache(MAX_CACHED_PREAMBLES)
def _preamble_names(preamble: str) -> frozenset[str] | None:
    """The names that a stub binds before its function; None if it does not parse."""
    tree = _parsed(preamble)
    return frozenset(_bound_names(tree)) if tree else None


def _bound_names(tree: ast.Module) -> set[str]:
    """The names that exist once these statements have run; those in branches are not counted."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def _parsed(code: str) -> ast.Module | None:
    if len(code) > MAX_PARSED_CHARS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _joined_unparsed(stub: str, entry_point: str, code: str) -> str:
    """The same for a language we do not parse: a function needs its imports, a body its function."""
    name = re.escape(entry_point) if entry_point else r"\w+"
    head = re.search(rf"^[ \t]*(?:pub[ \t]+)?(?:fn|func|function)[ \t]+{name}\b", stub, re.MULTILINE)
    if head is None or re.search(rf"\b(?:fn|func|function)[ \t]+{name}\b", code):
        # a second import of a name is an error in Rust, so a reply that imports for itself is left alone
        return code if head is None or RUST_USE_PATTERN.search(code) else stub[: head.start()] + code
    return stub + code
