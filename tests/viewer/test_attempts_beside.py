"""Two attempts of one cell beside each other, and the sentence that a comparison begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.viewer.pages import compare, run
from steelyard.viewer.query_params import QueryParameters, ViewerRequestError
from steelyard.viewer.run_cache import RunCache
from steelyard.viewer.run_list import RunCatalog

KEPT_RUNS = Path(__file__).parents[1] / "data" / "run-0.1.0" / "runs"
SPOT = "case=shout&model=small&number=1"


@pytest.fixture(scope="module")
def runs() -> RunCache:
    return RunCache(RunCatalog(KEPT_RUNS))


def test_an_attempt_is_shown_beside_another_of_its_cell(runs: RunCache) -> None:
    alone = run.attempt(runs, "whole", QueryParameters(SPOT))
    assert 'id="against"' not in alone
    assert "against=2#against" in alone
    beside = run.attempt(runs, "whole", QueryParameters(f"{SPOT}&against=2"))
    assert 'id="against"' in beside
    assert beside.count('<td class="no">') >= 2


def test_an_attempt_that_is_not_there_cannot_be_compared_with(runs: RunCache) -> None:
    with pytest.raises(ViewerRequestError, match="no attempt 9 of this model at this case"):
        run.attempt(runs, "whole", QueryParameters(f"{SPOT}&against=9"))
    with pytest.raises(ViewerRequestError, match="whole number"):
        run.attempt(runs, "whole", QueryParameters(f"{SPOT}&against=x"))


def test_a_comparison_begins_with_one_sentence_and_its_reasons_unfold(runs: RunCache) -> None:
    page = compare.compare(runs, QueryParameters("baseline=whole@small&current=whole@large"))
    lead = page.partition('<p class="lead">')[2].partition("</p>")[0]
    assert lead.endswith("on 3 cases.")
    assert "passed before" in lead
    assert page.count("passed before") == 1, "the verdict below does not repeat it"
    assert (
        page.index('class="lead"') < page.index("<summary>How sure that is</summary>") < page.index('class="reasons"')
    )
