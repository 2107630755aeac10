"""Whether tests are Rust is found out without a trace on the machine."""

from __future__ import annotations

from pathlib import Path

from steelyard.verifiers.rust.syntax import rust_syntax_problem
from support.toolchains import needs


@needs("rustc")
def test_parsing_says_where_tests_are_not_rust_and_replaces_no_device() -> None:
    assert rust_syntax_problem("#[test]\nfn one() { assert_eq!(1, 1); }\n") == ""
    assert rust_syntax_problem("#[test]\nfn one( {}\n").startswith("line 2: ")
    assert Path("/dev/null").is_char_device()
