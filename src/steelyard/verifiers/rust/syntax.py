"""Whether the tests of a case are Rust at all, by the compiler's own parser."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from typing import Any

import msgspec

from steelyard.errors import VerifierError
from steelyard.text import printable
from steelyard.verifiers.rust.source import rust_tokens
from steelyard.verifiers.rust.toolchain import toolchain

ASSERTION_MACROS = frozenset(("assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne"))
"""Macros whose arguments are expressions, so that a call of one can be read like a call of a function."""
PARSE_TIMEOUT_SECONDS = 60
NEVER_COMPILED = "#![cfg(any())] "
"""Makes the compiler parse a file and leave everything in it out: no macro is expanded, no name looked up."""


def require_rust(tests: str) -> None:
    """Raise VerifierError if tests cannot be parsed, so that no answer is blamed for it."""
    if problem := rust_syntax_problem(tests):
        raise VerifierError(f"its tests are not Rust: {problem}")


@cache
def rust_syntax_problem(source: str) -> str:
    """The first mistake that keeps a source from being Rust, with its line; empty when it can be parsed."""
    code = rust_tokens(source)
    for word, mark, opening in zip(code, code[1:], code[2:], strict=False):
        if word.text in ASSERTION_MACROS and mark.text == "!" and opening.text == "(":
            source = f"{source[: mark.start]} {source[mark.end :]}"
    argv = [toolchain().rustc, "--crate-type", "lib", "--emit", "metadata=parsed", "--edition=2021"]
    try:
        # the compiler replaces the file that it writes, so that as root it would replace /dev/null
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run(
                [*argv, "--error-format=json", "-"],
                cwd=folder,
                input=f"{NEVER_COMPILED}{source}".encode(),
                capture_output=True,
                timeout=PARSE_TIMEOUT_SECONDS,
                check=False,
            )
    except (OSError, subprocess.SubprocessError) as error:
        raise VerifierError(f"the Rust compiler does not run: {error}") from error
    for line in ran.stderr.splitlines() if ran.returncode else ():
        message: dict[str, Any] = msgspec.json.decode(line)
        spans = [span["line_start"] for span in message["spans"] if span["is_primary"]]
        if message["level"] == "error" and spans:
            return f"line {spans[0]}: {printable(message['message'])[:300]}"
    return ""
