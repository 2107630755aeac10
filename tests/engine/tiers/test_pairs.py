"""Two models are held against each other by judges that are asked in both orders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from steelyard.cli.main import main
from steelyard.engine import run as engine
from steelyard.engine.options import RunOptions
from steelyard.engine.tiers.pairs import is_pairs_run, judge_pairs, pair_preferences
from steelyard.errors import InputError
from steelyard.records import Case, Verify
from steelyard.settings import Settings
from steelyard.store.journal import StoredRun
from steelyard.store.run_folders import find_run

MODELS = """
import json

def good(prompt): return "Paris, the capital."
def bad(prompt): return "No idea."

def fair(prompt):
    text = prompt if isinstance(prompt, str) else json.dumps(prompt)
    first = text.index("FIRST ANSWER")
    return json.dumps({"reason": "r", "winner": "first" if "Paris" in text[first:text.index("SECOND ANSWER")] else "second"})

def lazy(prompt): return json.dumps({"reason": "r", "winner": "first"})
def broken(prompt): return "I like both."
"""


@pytest.fixture
def answered(tmp_path: Path) -> tuple[StoredRun, RunOptions, str]:
    (tmp_path / "models.py").write_text(MODELS, "utf-8")
    means = RunOptions(settings=Settings(output_dir=str(tmp_path / "runs")), allow_code=True)
    cases = [Case(id=f"c{n}", prompt=f"Question {n}?", verify=Verify(kind="judge")) for n in range(6)]
    file = f"python:{tmp_path}/models.py"
    done = engine.run(cases, models=[f"{file}:good", f"{file}:bad"], means=means, output=tmp_path / "run")
    return StoredRun(done.folder), means, file


def test_a_fair_judge_prefers_the_better_and_a_lazy_one_is_found_out(
    answered: tuple[StoredRun, RunOptions, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stored, means, file = answered
    judges = [f"{file}:{name}" for name in ("fair", "lazy", "broken")]
    done = judge_pairs(stored, judges, means=means, output=tmp_path / "pairs")
    kept = StoredRun(done.folder)
    assert is_pairs_run(kept)
    assert not is_pairs_run(stored)
    fair, lazy, broken = pair_preferences(kept)
    assert (fair.pairs, fair.a_wins, fair.preferred.value, fair.position.share) == (6, 6, 1.0, 0.0)
    assert fair.preferred.low is not None
    assert 0.3 < fair.preferred.low < 1, "six cases are not certain"
    assert (lazy.ties, lazy.swayed, lazy.preferred.value) == (6, 6, 0.5)
    assert lazy.position.first == 6
    assert (broken.pairs, broken.unusable, broken.preferred.value) == (0, 6, None)
    with pytest.raises(InputError, match="has no judgments of pairs"):
        pair_preferences(stored)
    assert find_run("latest", tmp_path) == stored.folder, "the answers, not what judges think of them"
    assert find_run("latest", tmp_path, with_comparisons=True) == kept.folder
    capfd.readouterr()
    assert main(["pairs", str(kept.folder)]) == 3
    assert capfd.readouterr().err.splitlines() == [
        f"steelyard: {broken.judge} gave no usable answer to 6 of 6 pairs; at most 5% may lack one"
    ]


def test_a_run_that_does_not_name_its_models_has_pairs(
    answered: tuple[StoredRun, RunOptions, str], tmp_path: Path
) -> None:
    stored, means, file = answered
    older = StoredRun(shutil.copytree(stored.folder, tmp_path / "older"))
    described = json.loads((older.folder / "run.json").read_text())
    del described["names"]
    (older.folder / "run.json").write_text(json.dumps(described))
    with pytest.raises(InputError, match="no answers of"):
        judge_pairs(older, [f"{file}:fair"], between=["nobody", "else"], means=means)


def test_a_pair_is_of_two_models(answered: tuple[StoredRun, RunOptions, str]) -> None:
    stored, means, file = answered
    with pytest.raises(InputError, match="no answers of"):
        judge_pairs(stored, [f"{file}:fair"], between=["nobody", "else"], means=means)
    name = stored.info.names[0]
    with pytest.raises(InputError, match="a pair is of two models"):
        judge_pairs(stored, [f"{file}:fair"], between=[name, name], means=means)
