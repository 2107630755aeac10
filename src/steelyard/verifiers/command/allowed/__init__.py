"""Whether an answer to a test command has nothing but what the list of its language allows.

In: the text of an answer and its case, for C and C++ also its object file. Out: the first thing that is not on the list, or nothing.
A deny list misses what nobody has thought of; what is not on this list makes a pass `unproved`, however harmless it is.
`vocabulary` has the lists, and each language has a module that reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from steelyard.records import Case
from steelyard.verifiers.code.extract import canonical_language
from steelyard.verifiers.command.allowed.asked import AskedNames, asked_names
from steelyard.verifiers.command.allowed.go import unlisted_in_go
from steelyard.verifiers.command.allowed.java import unlisted_in_java
from steelyard.verifiers.command.allowed.javascript import unlisted_in_javascript
from steelyard.verifiers.command.allowed.native_text import unlisted_in_c, unlisted_in_cpp
from steelyard.verifiers.command.allowed.perl.script import unlisted_in_perl
from steelyard.verifiers.command.allowed.python import unlisted_in_python
from steelyard.verifiers.command.allowed.shell.script import unlisted_in_shell
from steelyard.verifiers.command.allowed.tokens import UnreadableCodeError
from steelyard.verifiers.command.settings import CommandSettings

CHECKS: dict[str, Callable[[str, AskedNames], str]] = {
    "c": unlisted_in_c,
    "cpp": unlisted_in_cpp,
    "go": unlisted_in_go,
    "java": unlisted_in_java,
    "javascript": unlisted_in_javascript,
    "typescript": unlisted_in_javascript,
    "perl": unlisted_in_perl,
    "pl": unlisted_in_perl,
    "pm": unlisted_in_perl,
    "python": unlisted_in_python,
    "shell": unlisted_in_shell,
}
"""By language, or by the ending of the answer's file."""


def unlisted(case: Case, code: str) -> str:
    """The first thing in an answer that the list of its language does not have; empty if there is none."""
    language = canonical_language(case.language)
    suffix = PurePosixPath(CommandSettings.of(case).answer).suffix
    check = CHECKS.get(language) or CHECKS.get(canonical_language(suffix.removeprefix(".")))
    if check is None:
        return f"code in {language or 'a language without a name'}, for which there is no list"
    try:
        return check(code, asked_names(case))
    except (UnreadableCodeError, RecursionError) as error:
        return str(error) or "code that is nested too deep"
