"""`steelyard tiers` and `steelyard judge` as a contract: what they print where, and how they exit."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from steelyard.cli import main as cli
from steelyard.records import Failure, Judgment, Reply, Verdict
from steelyard.store.journal import StoredRun
from support.fault_server import Behaviour, FaultServer, Request, refuses, says

CASES = """
[eval_set]
id = "tiny"
name = "Tiny"
[[cases]]
id = "a"
name = "a"
prompt = "Say yes."
target = "yes"
[[cases]]
id = "b"
name = "b"
prompt = "Say yes again."
target = "yes"
"""
EXPERIMENT = """
[experiment]
id = "tiny"
cases = ["cases.toml"]
runs = 2
[judging]
judges = ["openai/judge"]
rubric = "rubric.toml"
[[tiers]]
name = "T0"
model = "openai/small"
[[tiers]]
name = "T1"
extends = "T0"
prompt = "Please: {{prompt}}"
"""
RUBRIC = '[categories.works]\ncheck = "It works."\n'
PRICES = """
[prices."openai/small"]
input = 1
output = 2
[prices."openai/judge"]
input = 3
output = 4
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "cases.toml").write_text(CASES)
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    (tmp_path / "rubric.toml").write_text(RUBRIC)
    (tmp_path / "model.py").write_text("def yes(prompt): return 'yes'\ndef no(prompt): return 'no'\n")
    return tmp_path


class Ended(NamedTuple):
    """What a command said."""

    stdout: str
    stderr: str


Command = Callable[..., Ended]


@pytest.fixture
def steelyard(
    place: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    for name in os.environ:
        if name.startswith(("STEELYARD_", "OPENAI_", "CI")):
            monkeypatch.delenv(name)
    for name, value in {"COLUMNS": "200", "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-none"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(place)

    def run(*arguments: str, code: int = 0) -> Ended:
        capsys.readouterr()
        ended = cli.main(arguments)
        said = Ended(*capsys.readouterr())
        assert ended == code, said
        return said

    return run


def judgment(score: float) -> str:
    return json.dumps(
        {"criteria_scores": {"works": {"reason": "", "score": score}}, "score": score, "passed": score >= 0.6}
    )


def script(request: Request) -> Behaviour:
    """A model that says yes when it is asked politely, and a judge that likes that."""
    if request.body["model"].startswith("judge"):
        return says(judgment(0.9 if "| yes" in request.prompt else 0.3))
    return says("yes" if request.prompt.startswith("Please") else "no")


def asked(server: FaultServer, model: str) -> int:
    return sum(request.body["model"] == model for request in server.requests)


def one_sentence(said: str) -> bool:
    (line,) = said.strip().splitlines()
    return line.startswith("steelyard: ")


# ---- the document's worked examples

HEAD = "experiment,agent_model,tier,subtest,run_number,passed,impl_rate,cost_usd\n"


def report(steelyard: Command, place: Path, rows: list[tuple[Any, ...]], *options: str) -> dict[str, Any]:
    (place / "runs.csv").write_text(HEAD + "".join(",".join(map(str, row)) + "\n" for row in rows))
    found: dict[str, Any] = json.loads(
        steelyard("tiers", "--runs-csv", "runs.csv", "--format", "json", *options).stdout
    )
    return found


def test_the_first_example_of_the_document_is_a_single_run(steelyard: Command, place: Path) -> None:
    found = report(steelyard, place, [("e", "m", "T0", "s", 1, True, 0.85, 0.50)])
    (run,) = found["runs"]
    assert (run["pass_rate"], run["impl_rate"], run["cost_of_pass"]) == (1.0, 0.85, 0.5)
    assert run["composite"] == pytest.approx(0.925, abs=1e-15)
    (tier,) = found["models"][0]["tiers"]
    assert tier["grade"]["letter"] == "B"
    assert tier["cost_of_pass"]["value"] == 0.5


def test_the_second_example_of_the_document_is_ten_runs(steelyard: Command, place: Path) -> None:
    passes = [1, 1, 0, 1, 1, 1, 0, 1, 1, 1]
    rows = [("e", "m", "T0", "s", number, passed, 0.5, 0.1) for number, passed in enumerate(passes, 1)]
    (tier,) = report(steelyard, place, rows)["models"][0]["tiers"]
    found = tier["statistics"]["pass_rate"]
    assert {name: found[name] for name in ("median", "mean", "mode", "min", "max", "count")} == {
        "median": 1.0,
        "mean": 0.8,
        "mode": 1.0,
        "min": 0.0,
        "max": 1.0,
        "count": 10,
    }
    assert found["std_dev"] == pytest.approx(0.4, abs=1e-15)
    assert tier["statistics"]["cost_of_pass"]["infinite"] == ["mean", "max"]


def test_the_third_example_of_the_document_is_four_tiers(steelyard: Command, place: Path) -> None:
    medians = {"T0": 0.70, "T1": 0.80, "T2": 0.85, "T3": 0.90}
    rows = [
        ("e", "m", tier, case, 1, True, 2 * median - 1, 0.1)
        for tier, median in medians.items()
        for case in ("a", "b", "c")
    ]
    (model,) = report(steelyard, place, rows)["models"]
    assert [tier["composite_median"]["value"] for tier in model["tiers"]] == pytest.approx(list(medians.values()))
    uplifts = [tier["uplift"]["value"] for tier in model["tiers"][1:]]
    assert uplifts == pytest.approx([0.142857142857, 0.214285714286, 0.285714285714], abs=1e-11)
    assert model["composite_variance"] == pytest.approx(0.00546875)
    assert model["pass_rate_variance"] == model["cost_variance"] == 0


def test_another_tier_can_be_the_baseline_and_an_unknown_one_cannot(steelyard: Command, place: Path) -> None:
    rows = [("e", "m", tier, case, 1, True, 0.5, 0.1) for tier in ("T0", "T1") for case in "ab"]
    assert report(steelyard, place, rows, "--baseline", "T1")["baseline"] == "T1"
    ended = steelyard("tiers", "--runs-csv", "runs.csv", "--baseline", "T7", code=2)
    assert one_sentence(ended.stderr)
    assert '"T7"' in ended.stderr
    assert "known: T0, T1" in ended.stderr


def test_tables_and_charts_are_written_where_they_are_wanted(steelyard: Command, place: Path) -> None:
    rows = [("e", "m", tier, case, 1, case == "a", 0.5, 0.1) for tier in ("T0", "T1") for case in "abc"]
    files = [option for suffix in ("json", "md", "csv") for option in ("-o", f"out.{suffix}")]
    found = report(steelyard, place, rows, *files, "--charts", "charts")
    assert json.loads((place / "out.json").read_text()) == found
    assert (place / "out.md").read_text().startswith("### Tiers")
    digest = found["sources"][0]["digest"]
    for suffix in ("json", "md", "csv"):
        assert digest in (place / f"out.{suffix}").read_text()
    names = sorted(path.name for path in (place / "charts").iterdir())
    assert {name.partition(".")[2] for name in names} == {"svg"}
    assert all((place / "charts" / name).stat().st_size > 100 for name in names)
    assert (place / "charts" / "pass-rate.svg").read_text().startswith("<svg ")
    again = steelyard("tiers", "--runs-csv", "runs.csv", "--format", "csv").stdout
    assert again == (place / "out.csv").read_text()
    wrong = steelyard("tiers", "--runs-csv", "runs.csv", "-o", "out.pdf", code=2)
    assert ".pdf" in wrong.stderr


# ---- what is wrong is one sentence


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('[[tiers]]\nname = "T0"', "[tiers\n", "not TOML"),
        ("[[tiers]]", "[[tires]]", "no tiers; write each as a [[tiers]] table"),
        ('extends = "T0"', 'extends = "T5"', '"T1" extends "T5", which is not defined above it'),
        ("openai/judge", "openai/small", '"openai/small" would judge its own answers in T0, T1'),
        ("runs = 2", "runs = 0", "runs must be 1 or more"),
        ('model = "openai/small"', 'agent = "no-such-program-here"', "no such program"),
        ('"rubric.toml"', '"nowhere.yaml"', "nowhere.yaml"),
        ('"cases.toml"', '"nowhere.toml"', "nowhere.toml"),
        ("openai/small", "opnai/small", 'unknown provider "opnai"'),
    ],
)
def test_an_experiment_that_cannot_be_run_is_refused_before_anybody_is_asked(
    steelyard: Command, place: Path, server: FaultServer, old: str, new: str, said: str
) -> None:
    (place / "experiment.toml").write_text(EXPERIMENT.replace(old, new))
    ended = steelyard("tiers", "experiment.toml", code=2)
    assert said in ended.stderr
    lines = [line for line in ended.stderr.splitlines() if not re.search("note: |warning: |unknown key", line)]
    assert one_sentence("\n".join(lines))
    assert server.requests == []
    assert not (place / "steelyard-runs").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.toml"], "nowhere.toml: not a file"),
        (["nowhere"], "nowhere"),
        ([], "name one of these: an experiment (.toml), a run, or recorded runs with --runs-csv FILE"),
        (["experiment.toml", "--runs-csv", "runs.csv"], "name one of these"),
        (["--runs-csv", "nowhere.csv"], "nowhere.csv"),
        (["experiment.toml", "--judges-csv", "judges.csv"], "belong to --runs-csv"),
        (["latest", "--dry-run"], "--dry-run is for an experiment (.toml)"),
    ],
)
def test_what_cannot_be_analysed_is_said_in_one_sentence(steelyard: Command, arguments: list[str], said: str) -> None:
    ended = steelyard("tiers", *arguments, code=2)
    assert said in ended.stderr
    assert one_sentence(ended.stderr)


def test_an_unknown_key_is_warned_of_and_the_rest_counts(steelyard: Command, place: Path) -> None:
    (place / "experiment.toml").write_text(EXPERIMENT.replace("runs = 2", "runs = 2\nruns_ = 3"))
    ended = steelyard("tiers", "experiment.toml", "--dry-run")
    assert 'experiment.toml:6: unknown key "runs_"' in ended.stderr
    assert ended.stderr.startswith("warning: ")


# ---- what it would cost


def test_a_dry_run_tells_the_most_it_can_cost_and_asks_nobody(
    steelyard: Command, place: Path, server: FaultServer
) -> None:
    (place / "steelyard.toml").write_text(PRICES)
    (place / "experiment.toml").write_text(EXPERIMENT.replace("runs = 2", "runs = 2\nparameters = { max_tokens = 50 }"))
    lines = steelyard("tiers", "experiment.toml", "--dry-run").stdout.splitlines()
    # a byte is a token at the most, and every message has some around it
    most = {
        tier: 2 * sum((len(before) + len(prompt) + 16) + 50 * 2 for prompt in ("Say yes.", "Say yes again.")) / 1e6
        for tier, before in (("T0", ""), ("T1", "Please: "))
    }
    assert lines[:2] == [f"{tier}: 4 requests about 2 cases, at most ${dollars:.4f}" for tier, dollars in most.items()]
    assert lines[2].startswith("judge openai/judge: 8 requests about 2 cases, at most $")
    # what a judge is asked for may be long: nothing bounds it here
    judge, total = (float(line.rpartition("$")[2].split()[0]) for line in lines[2:])
    assert judge > 8 * 8192 * 4 / 1e6
    assert total == pytest.approx(sum(most.values()) + judge, abs=1e-3)
    assert server.requests == []
    assert not (place / "steelyard-runs").exists()


def test_a_dry_run_does_not_call_free_what_has_no_price(steelyard: Command, place: Path) -> None:
    lines = steelyard("tiers", "experiment.toml", "--dry-run").stdout.splitlines()
    assert len(lines) == 3
    assert all(line.endswith("at an unknown price") for line in lines)


def test_a_dry_run_says_whose_price_is_not_known(steelyard: Command, place: Path) -> None:
    (place / "steelyard.toml").write_text(PRICES.replace("openai/judge", "openai/another"))
    (place / "experiment.toml").write_text(EXPERIMENT.replace('"openai/judge"', '"openai/judge-of-nobody"'))
    *_, judge, total = steelyard("tiers", "experiment.toml", "--dry-run").stdout.splitlines()
    assert judge == "judge openai/judge-of-nobody: 8 requests about 2 cases, at an unknown price"
    assert total.endswith("without models whose price is unknown")


def test_the_prices_of_the_document_can_be_used(steelyard: Command, place: Path) -> None:
    (place / "steelyard.toml").write_text('price_table = "worked-examples"\n')
    parameters = "runs = 2\nparameters = { max_tokens = 1000000 }"
    text = EXPERIMENT.replace("runs = 2", parameters).replace("openai/small", "anthropic/claude-sonnet-4")
    (place / "experiment.toml").write_text(text.replace("[judging]", "[judging]\nallow_self = true"))
    # nobody is asked, so no key is needed
    first = steelyard("tiers", "experiment.toml", "--dry-run").stdout.splitlines()[0]
    assert first == "T0: 4 requests about 2 cases, at most $60.0003"
    (place / "steelyard.toml").write_text('price_table = "worked"\n')
    assert 'unknown price_table "worked"' in steelyard("tiers", "experiment.toml", "--dry-run", code=2).stderr


# ---- running one


def test_an_experiment_is_run_judged_and_analysed(steelyard: Command, place: Path, server: FaultServer) -> None:
    server.script = script
    (place / "steelyard.toml").write_text(PRICES)
    ended = steelyard("tiers", "experiment.toml", "--output", "run", "--format", "json")
    found = json.loads(ended.stdout)
    assert [tier["pass_rate"]["value"] for tier in found["models"][0]["tiers"]] == [0, 1]
    assert [tier["impl_rate"]["value"] for tier in found["models"][0]["tiers"]] == pytest.approx([0.3, 0.9])
    assert found["judges_usd"] == pytest.approx(8 * (10 * 3 + 5 * 4) / 1e6)
    assert (asked(server, "small"), asked(server, "judge")) == (8, 8)
    assert json.loads(steelyard("tiers", "run", "--format", "json").stdout) == found
    text = steelyard("tiers", "run").stdout
    assert "Against T0, case by case" in text
    assert "the judges cost $0.0004000, which is in no figure of the tiers" in text
    shown = steelyard("show", "run", "a", "2").stdout
    assert re.findall(r"Judge  openai/judge  (\S+), (.*)\n +\S+  works", shown) == [
        ("0.300", "does not pass"),
        ("0.900", "passes"),
    ]
    steelyard("resume", "run")
    assert (asked(server, "small"), asked(server, "judge")) == (8, 8)


def test_a_budget_stops_an_experiment_and_it_can_be_carried_on(
    steelyard: Command, place: Path, server: FaultServer
) -> None:
    server.script = script
    (place / "steelyard.toml").write_text(PRICES)
    limited = EXPERIMENT.replace("runs = 2", "runs = 2\nparameters = { max_tokens = 10 }\nbudget_usd = 0.0003")
    (place / "experiment.toml").write_text(limited.replace("[judging]", "[judging]\nparameters = { max_tokens = 10 }"))
    ended = steelyard("tiers", "experiment.toml", "--output", "run", "-j", "1", code=3)
    assert "the budget of $0.0003 does not cover another request; continue with: steelyard resume run" in ended.stderr
    before = asked(server, "judge")
    assert before < 8
    # the budget is the experiment's own, so it holds when it is carried on
    again = steelyard("resume", "run", "-j", "1", code=3)
    assert "the budget of $0.0003" in again.stderr
    assert asked(server, "judge") == before
    steelyard("resume", "run", "--max-cost", "1")
    assert (asked(server, "small"), asked(server, "judge")) == (8, 8)


def test_tiers_and_their_cases_have_budgets_of_their_own(steelyard: Command, place: Path, server: FaultServer) -> None:
    server.script = script
    (place / "steelyard.toml").write_text(PRICES)
    text = EXPERIMENT[: EXPERIMENT.index("[judging]")] + EXPERIMENT[EXPERIMENT.index("[[tiers]]") :]
    text = text.replace("runs = 2", "runs = 2\nparameters = { max_tokens = 5 }")
    # a request costs 0.00002, and can cost at most 0.0001
    (place / "experiment.toml").write_text(
        text.replace('model = "openai/small"', 'model = "openai/small"\ncase_budget_usd = 0.000101')
        + "case_budget_usd = 1\nbudget_usd = 0.000101\n"
    )
    ended = steelyard("tiers", "experiment.toml", "--output", "run", "-j", "1", code=3)
    done = [fact for fact in StoredRun(Path("run")).facts() if isinstance(fact, Reply)]
    by_tier = {tier: sum(reply.tier == tier for reply in done) for tier in ("T0", "T1")}
    assert 0 < by_tier["T1"] < 4
    assert "the budget of $0.000101 of tier T1 does not cover another attempt" in ended.stderr
    assert steelyard("resume", "run", code=3)
    assert len([fact for fact in StoredRun(Path("run")).facts() if isinstance(fact, Reply)]) == len(done)
    (place / "steelyard.toml").write_text("")
    refused = steelyard("tiers", "experiment.toml", "--output", "other", code=2).stderr
    assert "the budget of tier T0 cannot be enforced: the price of openai/small is unknown" in refused


def test_a_budget_that_cannot_be_kept_is_refused(steelyard: Command, place: Path, server: FaultServer) -> None:
    (place / "steelyard.toml").write_text(PRICES.replace("openai/judge", "openai/another"))
    (place / "experiment.toml").write_text(EXPERIMENT.replace('"openai/judge"', '"openai/judge-of-nobody"'))
    ended = steelyard("tiers", "experiment.toml", "--max-cost", "1", code=2)
    assert "the price of openai/judge-of-nobody is unknown" in ended.stderr
    assert server.requests == []


def test_a_tier_that_cannot_be_asked_is_missing_and_not_wrong(
    steelyard: Command, place: Path, server: FaultServer
) -> None:
    def without_politeness(request: Request) -> Behaviour:
        return refuses(401, "not for you") if request.prompt.startswith("Please") else script(request)

    server.script = without_politeness
    (place / "steelyard.toml").write_text("max_retries = 0\nretry_delay_ms = 1\n")
    ended = steelyard("tiers", "experiment.toml", "--output", "run", "--format", "json", code=3)
    found = json.loads(ended.stdout)
    assert [tier["tier"] for tier in found["models"][0]["tiers"]] == ["T0"]
    assert found["warnings"][0].startswith("T1: 4 of 4 runs are missing, most often: ")
    assert found["conclusive"] is False
    assert "T1 was given up" in ended.stderr
    server.script = script
    steelyard("resume", "run")
    assert json.loads(steelyard("tiers", "run", "--format", "json").stdout)["models"][0]["tiers"][1]["runs"] == 4


def test_without_the_baseline_nothing_is_compared(steelyard: Command, place: Path, server: FaultServer) -> None:
    server.script = lambda request: script(request) if request.prompt.startswith("Please") else refuses(401, "no")
    (place / "steelyard.toml").write_text("max_retries = 0\nretry_delay_ms = 1\n")
    (place / "experiment.toml").write_text(
        EXPERIMENT.partition("[judging]")[0] + "[[tiers]]" + EXPERIMENT.partition("[[tiers]]")[2]
    )
    ended = steelyard("tiers", "experiment.toml", "--output", "run", code=3)
    assert "T0 was given up" in ended.stderr
    assert ended.stdout == ""
    again = steelyard("tiers", "run", code=2)
    assert 'no run of tier "T0", the baseline; T0: 4 of 4 runs are missing' in again.stderr
    assert one_sentence(again.stderr)


# ---- judging what is there


@pytest.fixture
def old(steelyard: Command) -> str:
    """A plain run of two models, which nobody has judged."""
    steelyard("run", "cases.toml", "-m", "python:model.py:yes,python:model.py:no", "-n", "2", "--output", "old")
    return "old"


def facts(place: Path, kind: type[Any], run: str = "old") -> list[Any]:
    return [fact for fact in StoredRun(place / run).facts() if isinstance(fact, kind)]


def test_an_old_run_is_judged_once_and_by_another_rubric_anew(
    steelyard: Command, place: Path, server: FaultServer, old: str
) -> None:
    server.script = script
    before = facts(place, Reply), facts(place, Verdict)
    options = ["judge", old, "--judges", "openai/judge", "--rubric", "rubric.toml", "--format", "json"]
    found = json.loads(steelyard(*options).stdout)
    assert len(server.requests) == 8
    assert (facts(place, Reply), facts(place, Verdict)) == before
    assert found["tiers"] == ["python/model.py:yes", "python/model.py:no"]
    assert [tier["impl_rate"]["value"] for tier in found["models"][0]["tiers"]] == pytest.approx([0.9, 0.3])
    # the same panel has said all that it has to say
    assert json.loads(steelyard(*options).stdout) == found
    assert len(server.requests) == 8
    # a second judge is asked, and the first is not asked again
    assert json.loads(steelyard(*options, "--judges", "openai:judge2").stdout)["panel"]["ratings"] == 16
    assert (asked(server, "judge"), asked(server, "judge2")) == (8, 8)
    (place / "rubric.toml").write_text(RUBRIC.replace("It works.", "It really works."))
    again = json.loads(steelyard(*options).stdout)
    assert again["panel"]["ratings"] == 8
    assert asked(server, "judge") == 16
    repeated = json.loads(steelyard(*options, "--repeats", "2").stdout)
    assert repeated["panel"]["ratings"] == 16
    assert asked(server, "judge") == 24


def test_judging_needs_no_verifier(steelyard: Command, place: Path, server: FaultServer, old: str) -> None:
    server.script = script
    # as if it came from a machine with another verifier
    stored = place / "old" / "cases.jsonl"
    stored.write_text(stored.read_text().replace('"target":"yes"', '"verify":{"kind":"cobol"}'))
    steelyard("judge", old, "--judges", "openai/judge", "--rubric", "rubric.toml", code=2)
    # ... judged, but with verdicts of other tests nothing can be told
    assert len(facts(place, Judgment)) == 8


def test_a_judge_that_is_out_is_asked_again_later(
    steelyard: Command, place: Path, server: FaultServer, old: str
) -> None:
    server.script = lambda request: refuses(401, "no")
    (place / "steelyard.toml").write_text("max_retries = 0\nretry_delay_ms = 1\n")
    options = ["judge", old, "--judges", "openai/judge", "--rubric", "rubric.toml"]
    ended = steelyard(*options, code=3)
    assert "judge openai/judge was given up" in ended.stderr
    assert "continue with the same command" in ended.stderr
    assert "openai/judge: 8 of 8 judgments are missing" in ended.stdout
    assert facts(place, Judgment) == []
    assert {failure.stage for failure in facts(place, Failure)} == {"judge"}
    # what judges fail at is nothing that the run failed at
    assert re.search(r"missing +0 +0\n", steelyard("show", old).stdout)
    server.script = script
    assert "are missing" not in steelyard("resume", old).stdout
    assert len(facts(place, Judgment)) == 8
    asked_so_far = len(server.requests)
    steelyard(*options)
    assert len(server.requests) == asked_so_far


def test_with_too_few_judgments_nothing_can_be_told(
    steelyard: Command, place: Path, server: FaultServer, old: str
) -> None:
    # of two judges one talks about the weather, and never judges
    server.script = lambda request: says(judgment(0.9) if request.body["model"] == "judge" else "It rains.")
    options = ["judge", old, "--judges", "openai/judge,openai/poet", "--rubric", "rubric.toml"]
    ended = steelyard(*options, code=3)
    assert "openai/poet: 8 of 8 judgments are missing" in ended.stdout
    assert "openai/judge" not in "".join(re.findall(r".*are missing", ended.stdout))
    # ... each told twice what is wrong
    assert (asked(server, "judge"), asked(server, "poet")) == (8, 24)


def test_the_default_temperature_is_not_for_judges(
    steelyard: Command, place: Path, server: FaultServer, old: str
) -> None:
    server.script = script
    (place / "steelyard.toml").write_text("default_temperature = 0.8\n")
    options = ["judge", old, "--judges", "openai/judge", "--rubric", "rubric.toml"]
    steelyard(*options)
    assert not any("temperature" in request.body for request in server.requests)
    steelyard(*options, "--temperature", "0.1")
    assert server.requests[-1].body["temperature"] == 0.1


def test_a_budget_of_judges_is_kept(steelyard: Command, place: Path, server: FaultServer, old: str) -> None:
    server.script = lambda request: says(judgment(0.9), usage={"input": 2000})
    options = ["judge", old, "--judges", "openai/judge", "--rubric", "rubric.toml", "--max-tokens", "10", "-j", "1"]
    assert "the price of openai/judge is unknown" in steelyard(*options, "--max-cost", "1", code=2).stderr
    (place / "steelyard.toml").write_text(PRICES)
    ended = steelyard(*options, "--max-cost", "0.03", code=3)
    assert "the budget of $0.03 does not cover another request" in ended.stderr
    judged = len(facts(place, Judgment))
    assert 0 < judged < 8
    assert sum(fact.answer.cost.usd for fact in facts(place, Judgment)) <= 0.03
    steelyard(*options, "--max-cost", "1")
    assert len(facts(place, Judgment)) == 8
    assert len(server.requests) == 8


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "no judges; name one or several with --judges"),
        (["--judges", "python:model.py:yes"], "would judge its own answers; name another judge, or say --allow-self"),
        (["--judges", "openai/judge", "--rubric", "nowhere.yaml"], "nowhere.yaml"),
        (["--judges", "nobody/judge"], 'unknown provider "nobody"'),
    ],
)
def test_a_panel_that_cannot_judge_is_refused_and_the_run_stays_as_it_is(
    steelyard: Command, place: Path, server: FaultServer, old: str, options: list[str], said: str
) -> None:
    before = (place / "old" / "run.json").read_bytes()
    ended = steelyard("judge", old, *options, code=2)
    assert said in ended.stderr
    assert one_sentence(ended.stderr)
    assert (place / "old" / "run.json").read_bytes() == before
    assert server.requests == []


# ---- what only judges can tell


def test_cases_for_judges_alone_are_not_verified_and_pass_by_their_majority(
    steelyard: Command, place: Path, server: FaultServer
) -> None:
    server.script = script
    (place / "cases.toml").write_text(CASES.replace('target = "yes"', 'verify = { kind = "judge" }', 1))
    found = json.loads(steelyard("tiers", "experiment.toml", "--output", "run", "--format", "json").stdout)
    assert {fact.case for fact in facts(place, Verdict, "run")} == {"b"}
    assert facts(place, Failure, "run") == []
    rows = {(row["tier"], row["case"], row["number"]): row for row in found["runs"]}
    assert {(place_[1], row["passed_by"]) for place_, row in rows.items()} == {("a", "judges"), ("b", "record")}
    assert {(place_[0], row["passed"]) for place_, row in rows.items()} == {("T0", False), ("T1", True)}
    assert any("have no recorded outcome: the majority of their judges decides" in each for each in found["warnings"])
    shown = steelyard("resume", "run").stdout
    assert (
        "1 case is for judges alone to decide, and in no figure here: see steelyard tiers, or steelyard pairs" in shown
    )
    assert "steelyard tiers run" in shown
    steelyard("verify", "run")
    assert {fact.case for fact in facts(place, Verdict, "run")} == {"b"}
    assert "only judges can tell" in steelyard("show", "run", "a", "1").stdout
    (place / "steelyard-runs").mkdir()
    (place / "run").rename(place / "steelyard-runs" / "run")
    asked_for = "select tier, reply, correct from attempts order by all"
    assert json.loads(steelyard("query", asked_for, "--format", "json").stdout) == [
        {"tier": tier, "reply": reply, "correct": correct}
        for tier, reply in (("T0", "no"), ("T1", "yes"))
        for correct in (tier == "T1", tier == "T1", None, None)
    ]


def test_a_set_for_judges_alone_can_be_run_and_judged_later(
    steelyard: Command, place: Path, server: FaultServer
) -> None:
    server.script = script
    (place / "cases.toml").write_text(CASES.replace('target = "yes"', 'verify = { kind = "judge" }'))
    assert "2 cases in 1 file; 0 answers proved; 0 problems" in steelyard("validate", "cases.toml").stdout
    steelyard("run", "cases.toml", "-m", "python:model.py:yes", "-n", "2", "--output", "run")
    found = json.loads(
        steelyard("judge", "run", "--judges", "openai/judge", "--rubric", "rubric.toml", "--format", "json").stdout
    )
    assert found["models"][0]["tiers"][0]["pass_rate"]["value"] == 1
