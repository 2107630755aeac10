"""What a case says to the verifier `python`."""

from __future__ import annotations

from steelyard.records import Pair, VerifierSettings


class PythonSettings(VerifierSettings, frozen=True, kw_only=True):
    """What a case says to the verifier `python`."""

    pairs: tuple[Pair, ...] = ()
    """Inputs and outputs, for the style `io`."""
    tolerance: float = 0
    """How far numbers that a program prints may be off, absolutely or relatively."""
    python_env: str = ""
    """A virtual environment with the packages that answers and tests may import."""
