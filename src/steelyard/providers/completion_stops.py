"""What ends the completion of a base model."""

from __future__ import annotations

import re

from steelyard.records import Verify

FUNCTION_STOPS = {
    "python": ("\nclass", "\ndef", "\n#", "\nif", "\nprint"),
    "rust": ("\nfn", "\npub", "\nmod", "\n#[", "\n//", "\n/*"),
}
"""What ends the body of a function; for Python as in the paper on HumanEval."""
PROGRAM_STOPS = ('\n"""', "\nassert", "\nif __name__", "\nprint")
"""What ends a program that a docstring began."""


def completion_stops(verify: Verify, language: str) -> tuple[str, ...]:
    """What ends a completion, when it begins inside a function or before one."""
    head = rf"^[ \t]*(?:\w+[ \t]+)*(?:def|fn)[ \t]+{re.escape(verify.entry_point)}\b"
    if language == "python" and not re.search(head, verify.stub or "", re.MULTILINE):
        return PROGRAM_STOPS
    return FUNCTION_STOPS.get(language, ())
