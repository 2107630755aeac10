"""Problems of MultiPL-E as cases: HumanEval and MBPP in other languages."""

from __future__ import annotations

import re
from typing import Any

from steelyard.errors import InputError
from steelyard.languages.table import languages_of

OPEN_BRACE_TESTS = re.compile(r"\A\s*\}\s*\n")
"""Tests of some languages begin with the end of the function, which whole answers have themselves."""
CHECK_CALL = re.compile(r"^def test_check\(\).*", re.MULTILINE | re.DOTALL)
DROPPED_KEYS = {"prompt", "tests", "name", "language", "stop_tokens", "doctests", "original", "prompt_terminology"}


def multipl_e_table(row: dict[str, Any]) -> dict[str, Any] | None:
    """A problem of MultiPL-E under the names of our cases; None for any other row."""
    if not {"name", "language", "prompt", "tests", "stop_tokens"} <= row.keys():
        return None
    name, language, prompt, tests = (row[key] for key in ("name", "language", "prompt", "tests"))
    if not all(isinstance(text, str) for text in (name, language, prompt, tests)):
        raise InputError("its name, language, prompt and tests are not texts")
    case = {
        "id": name if language == "py" else f"{name}-{language}",
        "prompt": "Complete this function. Answer with one code block that holds the whole function, with the imports and "
        f"helpers it needs.\n\n```{language}\n{prompt.rstrip()}\n```\n",
        "metadata": {key: value for key, value in row.items() if key not in DROPPED_KEYS},
    }
    if language == "py":
        entry_point = _tested_function(tests)
        verify = {"kind": "python", "style": "check", "entry_point": entry_point, "stub": prompt}
        return {**case, "language": "python", "test": CHECK_CALL.sub("", tests), "verify": verify}
    known = languages_of("multipl_e")
    if language not in known:
        raise InputError(f"the language {language} of MultiPL-E is not run here; py, {', '.join(known)} are")
    verify = known[language].verify(OPEN_BRACE_TESTS.sub("\n", tests), prompt=prompt)
    limits = {"timeout_secs": known[language].timeout_secs, "follows_reference": True}
    return {**case, "language": language, **limits, "verify": {**verify, "stub": prompt}}


def _tested_function(tests: str) -> str:
    found = re.search(r"check\((\w+)\)\s*$", tests.partition("def test_check")[2], re.MULTILINE)
    if found is None:
        raise InputError("its tests call no check(FUNCTION)")
    return found[1]
