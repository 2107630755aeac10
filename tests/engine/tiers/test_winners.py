"""A tier may extend the best of several others, which is known only once they were run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import steelyard
from steelyard import Means, Settings
from steelyard.engine.preflight.forecast import forecast_experiment, forecast_text
from steelyard.engine.resume import resume
from steelyard.engine.tiers.tier_runs import analysis, tier_experiment
from steelyard.engine.tiers.winners import run_staged_experiment, with_later_stages
from steelyard.errors import InputError
from steelyard.evalsets import experiments
from steelyard.records import Price
from steelyard.store.journal import StoredRun
from support.fault_server import Behaviour, FaultServer, Request, refuses, says

EXPERIMENT = """
[experiment]
id = "ladder"
cases = ["cases.jsonl"]
runs = 2

[[tiers]]
name = "T0"
model = "openai/model"

[[tiers]]
name = "T1-short"
extends = "T0"
system = "Be short."

[[tiers]]
name = "T1-long"
extends = "T0"
system = "Take your time."
parameters = { temperature = 0.5 }

[[tiers]]
name = "T2-a"
extends = ["T1-short", "T1-long"]
parameters = { top_p = 0.9 }

[[tiers]]
name = "T2-b"
extends = ["T1-short", "T1-long"]
parameters = { top_p = 0.1 }

[[tiers]]
name = "T3"
extends = ["T2-a", "T2-b"]
prompt = "{{prompt}} Please."
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    lines = [f'{{"id": "{name}", "prompt": "Say yes.", "target": "yes"}}\n' for name in "abc"]
    (tmp_path / "cases.jsonl").write_text("".join(lines))
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    return tmp_path / "experiment.toml"


def means(server: FaultServer) -> Means:
    settings = Settings(max_retries=0, retry_delay_ms=1, prices={"openai/model": Price(input=1, output=1)})
    environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-none", "HOME": os.environ.get("HOME", "/")}
    return Means(settings=settings, environment=environment, parallelism=2)


def answer(request: Request) -> Behaviour:
    """The patient tier is right, and with top_p 0.1 as well."""
    is_patient = "Take your time." in str(request.body["messages"][0])
    return says("yes" if is_patient and request.body.get("top_p") != 0.9 else "no")


def test_the_best_of_a_tier_is_the_base_of_the_next(server: FaultServer, file: Path, tmp_path: Path) -> None:
    server.script = answer
    done = run_staged_experiment(experiments.load(file), output=tmp_path / "run", means=means(server))
    assert done.stopped == ()
    stored = StoredRun(tmp_path / "run")
    experiment = stored.info.experiment
    assert experiment is not None
    assert [tier.name for tier in experiment.tiers] == ["T0", "T1-short", "T1-long", "T2-a", "T2-b", "T3"]
    assert experiment.winners == {"T2-a": "T1-long", "T2-b": "T1-long", "T3": "T2-b"}
    assert experiment.inheriting == ()
    last = experiment.tiers[-1]
    assert (last.system, last.parameters) == ("Take your time.", {"temperature": 0.5, "top_p": 0.1})
    assert last.prompt == "{{prompt}} Please."
    assert len(server.requests) == 6 * 3 * 2
    found = analysis(tier_experiment(stored))
    assert [tier.pass_rate.value for tier in found.models[0].tiers] == [0, 0, 1, 0, 1, 1]
    assert any("T3 extends T2-b, which was the best of several" in warning for warning in found.warnings)
    # nothing is owed, and nothing is asked twice
    server.requests.clear()
    assert with_later_stages(resume(tmp_path / "run", means=means(server)), means(server)).stopped == ()
    assert server.requests == []


def test_a_stage_that_is_not_complete_chooses_nobody_and_resuming_it_goes_on(
    server: FaultServer, file: Path, tmp_path: Path
) -> None:
    server.script = lambda request: refuses(400, "no") if "Be short." in str(request.body) else answer(request)
    done = run_staged_experiment(experiments.load(file), output=tmp_path / "run", means=means(server))
    assert done.stopped != ()
    stored = StoredRun(tmp_path / "run")
    assert stored.info.tiers == ("T0", "T1-short", "T1-long")
    assert any(
        "T3 was not run yet: it extends the best of T2-a, T2-b" in note for note in tier_experiment(stored).notes
    )
    server.script = answer
    again = with_later_stages(steelyard.resume(tmp_path / "run", means=means(server)), means(server))
    assert again.stopped == ()
    assert again.info.tiers[-1] == "T3"


def test_a_forecast_has_the_tiers_that_wait(server: FaultServer, file: Path) -> None:
    said = forecast_text(forecast_experiment(experiments.load(file), means=means(server)), about="request about")
    assert "T2-a, on the best of T1-short, T1-long: 6 requests about 3 cases, at most $" in said
    assert "T3, on the best of T2-a, T2-b: 6 requests about 3 cases, at most $" in said


def test_a_shard_cannot_choose(server: FaultServer, file: Path) -> None:
    with pytest.raises(InputError, match='tier "T2-a" extends the best of others, which a shard cannot know'):
        run_staged_experiment(experiments.load(file), shard=(1, 2), means=means(server))


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('["T2-a", "T2-b"]', '["T2-a", "T9"]', 'tier "T3" extends "T9", which is not defined above it'),
        ("{{prompt}} Please.", "Please.", "the case's own prompt is not in it"),
        ("{ top_p = 0.9 }", "{ n = 3 }", 'parameter "n" cannot be sent'),
    ],
)
def test_what_is_wrong_with_a_later_tier_is_said_before_anything_is_asked(
    server: FaultServer, file: Path, old: str, new: str, what: str
) -> None:
    file.write_text(EXPERIMENT.replace(old, new))
    with pytest.raises(InputError, match=what) as refused:
        run_staged_experiment(experiments.load(file), means=means(server))
    assert str(refused.value).count(what) <= 2
    assert server.requests == []
