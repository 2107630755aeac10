"""Replies of earlier runs that are taken instead of asking again, and what they may not be used for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import steelyard
from steelyard import Case, Means, Settings, reports
from steelyard.comparison.sides import pair_sides
from steelyard.comparison.threshold import compare
from steelyard.engine.gate.gate import gate, gate_sides
from steelyard.engine.gate.sides import bless, side
from steelyard.engine.results.merge import merge
from steelyard.engine.results.read_outcomes import parquet_outcomes
from steelyard.engine.results.stored_results import stored_results
from steelyard.errors import ExitCode, NotComparableError
from steelyard.records import Price
from steelyard.store.journal import StoredRun
from support.facts import facts
from support.fault_server import FaultServer, says

PRICES = {"openai/m": Price(input=1000, output=1000)}
MEANS = Means(settings=Settings(max_retries=0, retry_delay_ms=1, prices=PRICES), environment={})
CACHED = MEANS._replace(cache_days=float("inf"))
NAMES = ("a", "b", "c")


def cases(changed: str = "") -> list[Case]:
    return [
        Case(id=name, prompt=f"prompt of {name}{changed if name == 'a' else ''}", target="answer") for name in NAMES
    ]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "steelyard-runs"


def asked(
    server: FaultServer,
    folder: Path,
    means: Means = MEANS,
    *,
    samples: int = 2,
    changed: str = "",
    models: str = "openai/m",
) -> steelyard.Run:
    return steelyard.run(
        cases(changed), models=models, samples=samples, base_url=server.url, output=folder, means=means
    )


def test_a_changed_prompt_pays_for_its_case_alone_and_each_reply_says_where_it_is_from(
    server: FaultServer, runs: Path
) -> None:
    first = asked(server, runs / "first")
    before = facts(first.folder)
    done = asked(server, runs / "second", CACHED, changed=", improved")
    assert [request.prompt for request in server.requests[6:]] == ["prompt of a, improved"] * 2
    found = facts(done.folder)
    taken = [reply for reply in found.replies if reply.cached_from]
    texts = {(reply.case, reply.number): reply.answer.text for reply in before.replies}
    # sample i is reply i of the older run, with the time at which that came
    assert {(reply.case, reply.number): reply.answer.text for reply in taken} == {
        key: text for key, text in texts.items() if key[0] != "a"
    }
    assert {reply.cached_from for reply in taken} == {(first.info.id,)}
    assert {(reply.case, reply.number): reply.answer.recorded_at for reply in taken} == {
        (reply.case, reply.number): reply.at for reply in before.replies if reply.case != "a"
    }
    assert len(found.verdicts) == 6
    assert done.info.cached_replies == {first.info.id: 4}
    assert any(f"4 of 6 replies were taken from run {first.info.id}, which paid $" in w for w in done.summary.warnings)


def test_without_the_option_all_is_asked_and_the_run_says_what_it_would_save(server: FaultServer, runs: Path) -> None:
    said: list[str] = []
    asked(server, runs / "first", MEANS._replace(say=said.append))
    assert said == []
    paid = sum(
        reply.answer.cost.usd for reply in facts(runs / "first").replies if reply.answer.cost and reply.case != "a"
    )
    done = asked(server, runs / "second", MEANS._replace(say=said.append), changed="!")
    assert len(server.requests) == 12
    assert said == [f"4 of 6 asks are in {(runs / 'first').resolve()}, ${paid:.2f}; --cache takes them from there"]
    assert not any(reply.cached_from for reply in facts(done.folder).replies)


def test_replies_that_are_too_old_are_asked_for_again(server: FaultServer, runs: Path) -> None:
    journal = asked(server, runs / "first").folder / "attempts.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for line in lines:
        line["at"] = line["at"] if line["case"] == "a" else "2020-01-01T00:00:00.000Z"
    journal.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    done = asked(server, runs / "second", MEANS._replace(cache_days=2.0))
    assert {reply.case for reply in facts(done.folder).replies if reply.cached_from} == {"a"}
    # a reply that was taken is as old as it was where it came from
    third = asked(server, runs / "third", MEANS._replace(cache_days=0.0))
    assert not third.info.cached_replies


def test_a_reply_that_is_taken_on_names_the_run_that_asked_for_it(server: FaultServer, runs: Path) -> None:
    first = asked(server, runs / "first")
    asked(server, runs / "second", CACHED)
    third = asked(server, runs / "third", CACHED)
    assert len(server.requests) == 6
    assert {reply.cached_from for reply in facts(third.folder).replies} == {(first.info.id,)}


def test_another_address_has_another_model_behind_its_name(server: FaultServer, runs: Path) -> None:
    asked(server, runs / "first")
    other = steelyard.run(
        cases(), models="openai/m", samples=2, base_url=f"{server.url}/v1", output=runs / "second", means=CACHED
    )
    assert not other.info.cached_replies


def test_a_budget_does_not_count_what_an_earlier_run_has_paid(server: FaultServer, runs: Path) -> None:
    asked(server, runs / "first")
    done = asked(server, runs / "second", CACHED._replace(max_cost=1e-9))
    assert done.complete


def test_resuming_takes_what_is_still_owed_and_keeps_the_marks(server: FaultServer, runs: Path) -> None:
    first = asked(server, runs / "first", samples=3)
    done = asked(server, runs / "second", CACHED, samples=2)
    again = steelyard.resume(done.folder, samples=4, means=CACHED)
    assert len(server.requests) == 9 + 3
    assert again.info.cached_replies == {first.info.id: 9}
    numbers = {reply.number: bool(reply.cached_from) for reply in facts(done.folder).replies}
    assert numbers == {1: True, 2: True, 3: True, 4: False}


def test_merged_shards_keep_the_marks_and_count_them(server: FaultServer, runs: Path) -> None:
    first = asked(server, runs / "first")
    one, two = (
        steelyard.run(
            cases(),
            models="openai/m",
            samples=2,
            base_url=server.url,
            output=runs / f"part-{number}",
            means=CACHED if number == 2 else MEANS,
            shard=(number, 2),
        ).folder
        for number in (1, 2)
    )
    merged = merge([str(one), str(two)], output=runs / "merged")
    assert merged.info.cached_replies == {first.info.id: 2}
    assert {reply.case for reply in facts(merged.folder).replies if reply.cached_from} == {"b"}
    # ... and what is taken from the merged run is known to be of its parts as well
    away = one.rename(runs.parent / "away")
    later = asked(server, runs / "later", CACHED)
    assert {reply.cached_from[0] for reply in facts(later.folder).replies} == {first.info.id, merged.info.id}
    assert pair_sides(side(str(away)), side(str(later.folder))).replies_shared == ("a", "c")


def test_cases_whose_sides_share_replies_are_in_no_test_and_are_named(server: FaultServer, runs: Path) -> None:
    first = asked(server, runs / "first", samples=5)
    server.script = lambda _: says("wrong")
    done = asked(server, runs / "second", CACHED, samples=5, changed="!")
    found = gate(first.folder, done.folder)
    assert [change.case for model in found.decision.models for change in model.confirmed] == ["a"]
    assert found.pairing.replies_shared == ("b", "c")
    assert any("2 cases with the same replies as" in warning and "b, c" in warning for warning in found.warnings)
    compared = compare(side(str(first.folder)), side(str(done.folder)))
    assert (compared.compared, compared.replies_shared) == (1, ("b", "c"))
    # ... the other way round, by a model's name, by a baseline and by reports as well
    bless([str(first.folder)], "main")
    for one in (first, done):
        stored = StoredRun(one.folder)
        Path(f"{one.folder.name}.json").write_text(reports.render("json", stored_results(stored)))
    for old, new in (
        (str(done.folder), str(first.folder)),
        (f"{first.folder}@openai/m", f"{done.folder}@openai/m"),
        ("main", str(done.folder)),
        ("first.json", "second.json"),
    ):
        assert gate_sides(side(old), side(new)).pairing.replies_shared == ("b", "c")


def test_two_runs_with_nothing_but_shared_replies_cannot_be_compared(server: FaultServer, runs: Path) -> None:
    first = asked(server, runs / "first")
    second, third = (asked(server, runs / name, CACHED) for name in ("second", "third"))
    for old, new in ((first, second), (second, third), (third, first)):
        with pytest.raises(
            NotComparableError, match=r"3 cases with the same replies as .* run without --cache"
        ) as error:
            gate(old.folder, new.folder)
        assert error.value.exit_code == ExitCode.CANNOT_TELL
        with pytest.raises(NotComparableError, match="run without --cache"):
            compare(side(str(old.folder)), side(str(new.folder)))


def test_a_baseline_and_a_folder_of_runs_count_a_shared_reply_once(server: FaultServer, runs: Path) -> None:
    first = asked(server, runs / "first", samples=2)
    second = asked(server, runs / "second", CACHED, samples=3, changed="!")
    blessed = bless([str(first.folder), str(second.folder)], "main")
    assert {trials.case: trials.attempts for trials in blessed.side.models["openai/m"]} == {"a": 5, "b": 3, "c": 3}
    assert [str(problem) for problem in blessed.problems] == [
        f'openai/m: case "{case}": 1 of 2 runs share replies with another one and are left out: each counts once'
        for case in ("b", "c")
    ]
    tallies, problems = parquet_outcomes([str(runs)])
    assert {case: int(tried) for case, tried in zip(tallies[0].cases, tallies[0].tried, strict=True)} == dict.fromkeys(
        NAMES, 2
    )
    assert "second: left out, because it has replies of other runs" in " ".join(map(str, problems))
