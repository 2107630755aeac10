"""A verdict is what a plain run says: on references of public benchmarks and on recorded answers of real models.

`tools/agreement/fetch FOLDER` brings their files, and STEELYARD_AGREEMENT_DATA names that folder.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from benchmarks.agreement.samples import SOURCES
from benchmarks.agreement.study import EXPLAINED, Row, explained, study, unexplained

MAX_DISAGREEMENTS = 3
VARIABLE = "STEELYARD_AGREEMENT_DATA"


@pytest.fixture(scope="module")
def data() -> Path:
    folder = os.environ.get(VARIABLE)
    if folder:
        return Path(folder)
    sentence = f"{VARIABLE} names no folder with the data; `tools/agreement/fetch FOLDER` brings them"
    if os.environ.get("CI"):
        pytest.fail(sentence)
    pytest.skip(sentence)


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_our_verdicts_are_those_of_a_plain_run(source: str, data: Path) -> None:
    rows: list[Row] = study(data, [source], jobs=os.cpu_count() or 1)
    left = unexplained(rows)
    assert not left, "\n".join(left)
    accused = [row.id for row in rows if row.ours.outcome == "tampered" and not row.is_recorded]
    assert not accused, "a reference is right, whatever its libraries do"


def test_few_disagreements_are_explained_and_each_with_a_reason() -> None:
    written = tomllib.loads(EXPLAINED.read_text("utf-8"))
    assert written.keys() <= {"disagreements", "unjudged"}
    assert len(written.get("disagreements", ())) <= MAX_DISAGREEMENTS
    assert len(explained()) == sum(map(len, written.values()))
    assert all(len(why.split()) > 8 for why in explained().values())
