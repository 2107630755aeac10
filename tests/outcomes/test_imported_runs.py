"""What other tools recorded is reported, shown, compared by tiers and merged like a run of ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.cli.main import main
from steelyard.engine.results.import_run import import_recordings, runs_of_recordings
from steelyard.engine.results.merge import merge
from steelyard.engine.tiers.tier_runs import analysis, tier_experiment
from steelyard.errors import InputError
from steelyard.store.journal import StoredRun
from steelyard.viewer.run_cache import RunCache
from steelyard.viewer.run_list import RunCatalog

OTHER_TOOLS = Path(__file__).parents[2] / "examples" / "other-tools"
INSPECT = OTHER_TOOLS / "inspect"
PROMPTFOO = OTHER_TOOLS / "promptfoo" / "results.json"


def test_report_takes_a_file_of_another_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reports = ["-o", "r.json", "-o", "r.html"]
    assert main(["report", str(INSPECT / "better.eval"), "--baseline", str(INSPECT / "worse.eval"), *reports]) == 0
    assert "worse.eval" in (tmp_path / "r.html").read_text("utf-8")
    results = json.loads((tmp_path / "r.json").read_bytes())["results"]
    assert sum(result["correct"] for result in results) == 8
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "r.json"], "no run is left behind"


def test_the_viewer_takes_files_of_other_tools() -> None:
    with runs_of_recordings([str(INSPECT / "better.eval"), str(INSPECT / "better.json"), str(PROMPTFOO)]) as runs:
        place = runs[0].folder.parent
        listing = RunCache(RunCatalog(place)).listing()
        assert {run.name for run in listing.runs} == {"better.eval", "better.json", "results.json"}
    assert not place.exists()
    assert main(["view", str(INSPECT / "better.eval"), str(INSPECT)]) == 2


def test_tiers_of_another_tool_are_compared_and_none_is_made_up(tmp_path: Path) -> None:
    done = import_recordings([PROMPTFOO], output=tmp_path / "run", root=tmp_path)
    assert [(model.model, model.tier, model.missing) for model in done.summary.models] == [
        ("mock", "polite", 2),
        ("mock", "short", 2),
    ]
    found = tier_experiment(StoredRun(done.folder))
    assert found.order == ("short", "polite"), "the first in the file is the baseline"
    passed = {tier: [run.passed for run in found.runs if run.tier == tier] for tier in found.order}
    assert {tier: (sum(map(bool, each)), len(each)) for tier, each in passed.items()} == {
        "short": (4, 6),
        "polite": (2, 6),
    }
    assert analysis(found).tiers == found.order


def test_imported_runs_are_merged_as_if_their_files_were_imported_together(tmp_path: Path) -> None:
    paths = [INSPECT / "better.eval", INSPECT / "worse.eval", PROMPTFOO]
    together = import_recordings(paths, output=tmp_path / "together", root=tmp_path)
    apart = [import_recordings([path], output=tmp_path / str(at), root=tmp_path) for at, path in enumerate(paths)]
    merged = merge([done.folder for done in apart], output=tmp_path / "merged")
    assert merged.summary.models == together.summary.models
    assert merged.summary.cases == together.summary.cases
    assert merged.info.recordings == together.info.recordings
    assert merged.info.versions == together.info.versions
    with pytest.raises(InputError, match="leave one of them out"):
        merge([merged.folder, apart[0].folder], output=tmp_path / "twice")
    two = json.loads((INSPECT / "better.json").read_bytes())
    two["results"]["headline"]["score"] = "includes"
    (tmp_path / "includes.json").write_text(json.dumps(two), "utf-8")
    other = import_recordings([tmp_path / "includes.json"], output=tmp_path / "includes", root=tmp_path)
    both = merge([merged.folder, other.folder], output=tmp_path / "both")
    again = merge([both.folder], output=tmp_path / "again")
    assert {case.case for case in both.summary.cases} == {case.case for case in again.summary.cases}
    assert "capitals/fr#2" in {case.case for case in again.summary.cases}
