"""Whether code in a shell or in Perl could leave a loop that is not its own: `break` and `last` in a function leave the caller's."""

from __future__ import annotations

import re

_SHELL_COMMENT_PATTERN = re.compile(r"(?:^|(?<=\s))#[^\n]*")
_SHELL_STEP_PATTERN = re.compile(
    r"(?P<function>\(\s*\)\s*[{(]|\bfunction\s+\S+\s*[{(])|\b(?P<word>do|done|(?:break|continue)\b(?:[ \t]+(?P<levels>[^\s;&|#}]+))?)(?!\w)"
)
_PERL_TEXT_PATTERN = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(?<![$@%&\w])#[^\n]*|^=\w+.*?^=cut\b", re.DOTALL | re.MULTILINE
)
_PERL_STEP_PATTERN = re.compile(r"(?P<bracket>[{}])|(?<![$@%&\w>])\b(?P<word>last|next|redo)\b(?!\s*=>)")
_PERL_LOOP_PATTERN = re.compile(r"(?:^|[;{}])\s*(?:\w+\s*:\s*)?(?:(?:for|foreach|while|until)\b[^;{}]*)?$")
_PERL_LIST_LOOP_PATTERN = re.compile(r"\bfor(?:each)?\b[^{}]*$")
_PERL_NAME_PATTERN = re.compile(r"(?:\bsub\s|(?<!\bels)(?<!\bd)[\w\]}>]\{)\s*$")
"""What stands before the name of a function, or of an entry of a hash."""
_PERL_FUNCTION_PATTERN = re.compile(r"\bsub\b[^;{}]*$")


def leaves_loop_of_shell(code: str) -> bool:
    """Whether `break` or `continue` stands in no loop of the same function, or leaves more loops than there are."""
    depth = 0
    for found in _SHELL_STEP_PATTERN.finditer(_SHELL_COMMENT_PATTERN.sub("", code)):
        word, levels = found["word"], found["levels"] or ""
        if found["function"]:
            depth = 0
        elif word == "do":
            depth += 1
        elif word == "done":
            depth = max(0, depth - 1)
        elif depth < (int(levels) if levels.isdigit() else 1) or levels.startswith(("$", '"')):
            return True
    return False


def leaves_loop_of_perl(code: str) -> bool:
    """Whether `last`, `next` or `redo` stands in no loop of the same function, or names one that the code does not have."""
    text = _PERL_TEXT_PATTERN.sub('""', code)
    blocks: list[str] = []
    for found in _PERL_STEP_PATTERN.finditer(text):
        if found["bracket"] == "{":
            before = text[max(0, found.start() - 300) : found.start()]
            is_function = _PERL_FUNCTION_PATTERN.search(before)
            is_loop = _PERL_LOOP_PATTERN.search(before) or _PERL_LIST_LOOP_PATTERN.search(before)
            blocks.append("function" if is_function else "loop" if is_loop else "")
        elif found["bracket"]:
            blocks[-1:] = []
        elif not _PERL_NAME_PATTERN.search(text, max(0, found.start() - 40), found.start()):
            label = re.match(r"\s+([A-Z_]\w*)\b", text[found.end() :])
            own = blocks[max((place for place, kind in enumerate(blocks) if kind == "function"), default=-1) + 1 :]
            if "loop" not in own or (label and not re.search(rf"\b{label[1]}\s*:(?!:)", text)):
                return True
    return False
