"""What we ship works: every case accepts its reference and refuses its counterexample."""

from pathlib import Path

import pytest

from steelyard import load
from steelyard.engine.options import RunOptions
from steelyard.engine.preflight.references import check_references

EXAMPLES = Path(__file__).parents[1] / "examples"
# the pages on languages validate the others
PROVED = [
    EXAMPLES / "python-basics.toml",
    EXAMPLES / "own-check" / "haiku.toml",
    EXAMPLES / "capitals.jsonl",
]


@pytest.mark.parametrize("path", PROVED, ids=lambda path: path.name)
def test_every_reference_passes_and_every_counterexample_fails(path: Path) -> None:
    loaded = load([path])
    assert loaded.problems == ()
    means = RunOptions(allow_code=True)  # one of them has a check of its own
    assert check_references(loaded.cases, means) == (2 * len(loaded.cases), [])


@pytest.mark.parametrize("language", ["python", "rust"])
def test_at_least_fifteen_cases_of_a_language_come_with_tests_and_both_answers(language: str) -> None:
    cases = load([EXAMPLES / f"{language}-basics.toml"]).cases
    complete = [case for case in cases if case.tests and case.reference and case.counterexample]
    assert len(complete) == len(cases) >= 15
    assert {case.language for case in cases} == {language}
