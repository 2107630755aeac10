"""What a case says to the verifier `command`."""

from __future__ import annotations

from steelyard.records import Pair, VerifierSettings


class CommandSettings(VerifierSettings, frozen=True, kw_only=True):
    """Shell commands, and the files that they find."""

    answer: str = ""
    """The file that the answer is written to."""
    files: dict[str, str] = {}
    """Other files by name, tests for example."""
    build: str = ""
    """Must succeed before anything is tested."""
    test: str = ""
    """Runs the tests."""
    needs: str = ""
    """Succeeds where everything is installed that the tests need; where it fails, no attempt is judged."""
    run: str = ""
    """Runs the answer as a program, once for each of the `pairs`."""
    pairs: tuple[Pair, ...] = ()
    tolerance: float = 0
    """How far numbers that a program prints may be off, absolutely or relatively."""
    lint: str = ""
    """Its lines are warnings."""
    results: str = ""
    """How the results of the tests are read."""
    fixes: tuple[str, ...] = ()
    """The tests that a right change of a workspace makes pass."""
