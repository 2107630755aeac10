"""The syntax of a Terraform file, checked by a library where Terraform is not installed.

This is far less than validating: a file that refers to nothing that exists has a fine syntax. The library is also more
lenient than Terraform, and reads no file in JSON.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

from steelyard.errors import MissingToolError, VerifierError

MAX_HCL_CHARACTERS = 100_000
"""Characters that are parsed: it takes a second for some ten thousand."""


def version() -> str:
    """The library and its version; says so when there is none."""
    try:
        return f"python-hcl2 {installed('python-hcl2')}"
    except PackageNotFoundError:
        return "no program"


def check() -> None:
    """Raise VerifierError when the library is not installed."""
    try:
        import hcl2  # noqa: F401  whether it is there is the question
    except ImportError:
        raise MissingToolError(
            "looking at syntax alone needs a library; install it with: pip install 'steelyard[hcl]'"
        ) from None


def error(source: str) -> str:
    """What is wrong with the syntax of a file, in one line; empty when nothing is."""
    import hcl2
    from lark.exceptions import LarkError

    if len(source) > MAX_HCL_CHARACTERS:
        raise VerifierError(
            f"more than {MAX_HCL_CHARACTERS:,} characters are not parsed; validate it with a Terraform instead"
        )
    try:
        hcl2.loads(source if source.endswith("\n") else f"{source}\n")
    except LarkError as wrong:
        return str(wrong).strip().partition("\n")[0]
    except RecursionError:
        return "it is nested too deeply"
    return ""
