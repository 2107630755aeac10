"""Whether an answer that shares a process with its tests has the means to end them, or to change what they said.

A pass of such an answer counts, but only as `unproved`: the tests may have been made to say what they did not find. This looks at
the text of an answer, so it is a bar and not a wall; compiled programs are looked into as well (`native`).
"""

from __future__ import annotations

import re

from steelyard.records import Case
from steelyard.verifiers.code.extract import canonical_language

MEANS_PATTERNS = {
    "javascript": re.compile(
        r"\b(?:process|require|globalThis|global|eval|Function|Reflect|Worker|setPrototypeOf|defineProperty|defineProperties"
        r"|__proto__|__defineGetter__|captureStackTrace|prepareStackTrace)\b|\bimport\b(?!\s*[^;\n]*[\"']\./)"
        r"|\.\s*(?:constructor|prototype)\b|\\u|\\x|\[\s*[\"'`][^\"'`\n]*[\"'`]\s*\+"
        r"|\b(?:setTimeout|setInterval|setImmediate|queueMicrotask|console\.\w+)\s*=(?![=>])"
    ),
    "python": re.compile(
        r"\b(?:os|sys|signal|atexit|inspect|gc|ctypes|builtins|importlib|threading|traceback|unittest|pytest|subprocess|exit|quit"
        r"|open|eval|exec|compile|getattr|setattr|globals|vars)\b"
        r"|__(?:globals|closure|code|main|builtins|import|subclasses|dict|class|getattribute|traceback|file)__"
    ),
    "shell": re.compile(
        r"\b(?:exit|exec|trap|kill|eval|alias|source|unset)\b|\$\{?0|\$\$|\bBASH_|[<>]&?\d"
        r"|^\s*(?:function\s+)?(?:\[|test|true|false|echo|printf|diff|cmp|grep|cat)\s*\(\)",
        re.MULTILINE,
    ),
    "perl": re.compile(
        r"\b(?:exit|exec|die|kill|fork|open|eval|require|BEGIN|END|CORE|DATA|syscall|POSIX|main)\b|\$0|[%$]SIG|\*\{"
    ),
}  # fmt: skip
"""By language: what in an answer reaches the process that its tests run in, or their files."""
COMPILED_LANGUAGES = ("c", "cpp")
"""Languages whose programs are looked into once they are built."""
OTHER_MEANS_PATTERN = re.compile(
    r"\b(?:exit|_exit|_Exit|Exit|quick_exit|quit|halt|abort|kill|exec|execve|fork|atexit|at_exit|syscall|Syscall|Runtime|unsafe|reflect|asm)\b"
)


def has_means_to_end_tests(case: Case, code: str) -> bool:
    """Whether the text of an answer names what could end its tests, or their files."""
    language = canonical_language(case.language)
    if language in COMPILED_LANGUAGES:
        return False
    pattern = MEANS_PATTERNS.get("javascript" if language == "typescript" else language, OTHER_MEANS_PATTERN)
    is_naming_tests = any(name in code for name in case.verify.files)
    return is_naming_tests or bool(pattern.search(code))
