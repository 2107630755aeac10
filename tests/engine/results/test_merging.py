"""Shards are merged to the run that one machine would have done; whatever does not belong together is refused."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import steelyard
from steelyard import Case, Means, reports
from steelyard.analysis import summary
from steelyard.engine import plan
from steelyard.engine.gate import sides
from steelyard.engine.gate.gate import gate
from steelyard.engine.results import query
from steelyard.engine.results.merge import MAX_MERGED_JOURNALS, merge
from steelyard.engine.results.report_files import html_page
from steelyard.errors import BoundedProblemList, InputError, StoreError
from steelyard.records import Answer, ContentPart, Message, Price, Reply, RunInfo, Verify
from steelyard.store.assembled_runs import append_facts
from steelyard.store.journal import Journal, StoredRun, create_run
from steelyard.store.parquet import copy_to_parquet
from steelyard.store.run_folders import ATTEMPT_INDEX_FILE, HEADLINE_FILE, DeliveredRun, find_run, runs
from steelyard.viewer.run_list import RunCatalog
from steelyard.viewer.run_view import RunView
from support import mixed_runs
from support.facts import facts
from support.fault_server import FaultServer, by_prompt, healthy, refuses
from support.sharded import CASES, MEANS, crafted, recorded, run, sharded, timeless, told
from support.studies import with_slow
from support.whole_results import run_results


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return recorded(tmp_path_factory.mktemp("recording") / "recording.jsonl")


@pytest.fixture(scope="module")
def three(model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the three shards of a run, and with the same run in one go; tests copy it before they change it."""
    folder = tmp_path_factory.mktemp("three")
    run(model, folder / "whole")
    sharded(model, folder / "shards", 3)
    return folder


@pytest.fixture
def place(three: Path, tmp_path: Path) -> Path:
    shutil.copytree(three, tmp_path / "place")
    return tmp_path / "place"


def parts(place: Path) -> list[Path]:
    return sorted((place / "shards").iterdir())


def refused(place: Path, what: str, folders: list[Path] | None = None, kind: type[Exception] = InputError) -> None:
    """What cannot be merged leaves nothing behind, not even out of sight."""
    with pytest.raises(kind, match=what) as caught:
        merge(folders or parts(place), output=place / "all", means=MEANS)
    assert "Traceback" not in str(caught.value)
    assert [path.name for path in place.iterdir() if "all" in path.name] == []


def changed(path: Path, change: Callable[[Any], object]) -> None:
    """A JSON file with something changed by hand."""
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))


# --- dealing


def test_a_shard_has_the_same_cases_wherever_their_attached_files_lie() -> None:
    def case(folder: str, content: str = "1") -> Case:
        picture = ContentPart(type="image", path=f"{folder}/a.png", media_type="image/png", digest=content)
        return Case(id="a", prompt=(Message(role="user", content=(picture,)),), target="4")

    info = RunInfo(id="r", started_at="")
    shard = plan.shard_record(info, [case("/here")], 1, 1)
    assert plan.are_shard_cases_unchanged(shard, [case("/there")])
    assert not plan.are_shard_cases_unchanged(shard, [case("/here", "2")])


def test_whole_cases_are_dealt_out_in_turn(place: Path) -> None:
    dealt = [[case.id for case in StoredRun(folder).cases] for folder in parts(place)]
    assert dealt == [[case.id for case in CASES[first::3]] for first in range(3)]
    for folder, cases in zip(parts(place), dealt, strict=True):
        assert {fact.case for fact in StoredRun(folder).facts()} <= set(cases)


def test_a_shard_is_an_ordinary_run_that_says_which_part_it_is(place: Path) -> None:
    for number, folder in enumerate(parts(place), 1):
        info = StoredRun(folder).info
        assert info.shard is not None
        assert (info.shard.numbers, info.shard.of, info.shard.cases) == ((number,), 3, 11)
        assert told(folder).summary.warnings[0] == (
            f"shard {number} of 3, so not all of the 11 cases: steelyard merge joins the shards"
        )


def test_a_plan_is_the_same_wherever_the_files_of_its_cases_lie() -> None:
    info = RunInfo(id="a", started_at="t")
    here, there = (
        [Case(id="c", prompt="p", workspace=f"{home}/w", verify=Verify(python=f"{home}/checks.py:f", source="1"))]
        for home in ("/home/a", "/builds/b")
    )
    assert plan.shard_record(info, here, 1, 2) == plan.shard_record(info, there, 1, 2)
    other = [Case(id="c", prompt="p", workspace="/w", verify=Verify(python="/checks.py:f", source="2"))]
    assert plan.shard_record(info, here, 1, 2).plan != plan.shard_record(info, other, 1, 2).plan


@pytest.mark.parametrize("shard", [(0, 3), (4, 3), (1, 0), (-1, 2), (1, 1001)])
def test_there_is_no_shard_beyond_the_last(tmp_path: Path, model: str, shard: tuple[int, int]) -> None:
    with pytest.raises(InputError, match=f"no shard {shard[0]}/{shard[1]}; write I/N for shard I of N"):
        run(model, tmp_path / "run", shard)
    assert not (tmp_path / "run").exists()


# --- the merged run is the run in one go


def test_a_merged_run_tells_what_the_run_in_one_go_tells(place: Path) -> None:
    done = merge(parts(place), output=place / "all", means=MEANS)
    whole, merged = told(place / "whole"), told(place / "all")
    assert merged.summary == whole.summary == done.summary
    assert [model.pass_at for model in merged.summary.models] == [model.pass_at for model in whole.summary.models]
    assert merged.cases == whole.cases == tuple(CASES)
    assert [tried[:4] for tried in merged.attempts] == [tried[:4] for tried in whole.attempts]
    for kind in ("json", "csv", "markdown", "junit"):
        texts = [reports.render(kind, results._replace(info=whole.info)) for results in (whole, merged)]
        texts = [json.dumps(timeless(text)) if kind == "json" else text for text in texts]
        assert texts[0] == texts[1], kind
    assert timeless(reports.render("json", merged)) == timeless(reports.render("json", whole))
    mine, yours = (plan.comparable_plan(results.info) for results in (whole, merged))
    assert mine == yours
    assert done.notes == ()
    assert (done.info.shard, done.info.unrecorded) == (None, whole.info.unrecorded)


def test_the_order_in_which_shards_are_named_makes_no_difference(place: Path) -> None:
    one = merge(parts(place), output=place / "one", means=MEANS)
    two = merge(parts(place)[::-1], output=place / "two", means=MEANS)
    assert told(one.folder).attempts == told(two.folder).attempts
    assert one.summary == two.summary


def test_a_merged_run_begins_with_its_first_shard_ends_with_its_last_and_names_them(place: Path) -> None:
    infos = [StoredRun(folder).info for folder in parts(place)]
    info = merge(parts(place), output=place / "all", means=MEANS).info
    assert info.started_at == min(each.started_at for each in infos)
    assert info.ended_at == max(each.ended_at or "" for each in infos)
    assert [(part.id, part.numbers) for part in info.merged] == [
        (each.id, (number,)) for number, each in enumerate(infos, 1)
    ]
    assert info.id not in {each.id for each in infos}


def test_the_shards_stay_as_they_are(place: Path) -> None:
    def content() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for folder in parts(place) for path in folder.rglob("*.*")}

    before = content()
    merge(parts(place), output=place / "all", means=MEANS)
    assert content() == before


def test_costs_add_up(place: Path) -> None:
    spent = sum(facts(folder).spent for folder in parts(place))
    done = merge(parts(place), output=place / "all", means=MEANS)
    assert sum(model.cost_usd or 0 for model in done.summary.models) == pytest.approx(spent)


def test_more_shards_than_cases_leave_some_without_any_and_merge_all_the_same(tmp_path: Path, model: str) -> None:
    folders = sharded(model, tmp_path / "shards", 14)
    empty = told(folders[12])
    assert (empty.cases, empty.attempts, empty.summary.conclusive) == ((), (), True)
    done = merge(folders, output=tmp_path / "all", means=MEANS)
    assert done.summary == run(model, tmp_path / "whole").summary
    # an empty shard is a shard: without it nobody can tell that nothing is missing
    with pytest.raises(InputError, match="shard 13 of 14 is missing"):
        merge([folder for folder in folders if folder.name != "13"], output=tmp_path / "other", means=MEANS)


def test_one_shard_of_one_is_the_whole_run(tmp_path: Path, model: str) -> None:
    done = merge([run(model, tmp_path / "1", (1, 1)).folder], output=tmp_path / "all", means=MEANS)
    assert done.summary == run(model, tmp_path / "whole").summary


@pytest.mark.parametrize("seed", with_slow(range(4), range(4, 12)))
def test_whatever_journals_can_tell_is_told_by_the_merged_run_too(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    info = mixed_runs.described(chance, started_at="2026-01-01T00:00:00.000Z", until=None)
    lines = [mixed_runs.line(chance, moment) for moment in range(150)]
    lines = [line for line in lines if line not in mixed_runs.DAMAGE and b'"of no case"' not in line]
    of = chance.choice([2, 3, 7])
    shuffled = list(range(1, of + 1))
    chance.shuffle(shuffled)
    for number in shuffled:
        cases = plan.shard_cases(mixed_runs.CASES, number, of)
        described = msgspec.structs.replace(
            info, id=f"s{number}", shard=plan.shard_record(info, mixed_runs.CASES, number, of)
        )
        create_run(tmp_path / f"{number}", described, cases).close()
        mine = [line for line in lines if json.loads(line)["case"] in {case.id for case in cases}]
        cut = chance.randrange(len(mine) + 1)
        # a shard may have been put together itself
        (tmp_path / f"{number}" / "attempts-0.jsonl").write_bytes(b"".join(mine[:cut]))
        (tmp_path / f"{number}" / "attempts.jsonl").write_bytes(b"".join(mine[cut:]) + b'{"kind":"reply","key')
    with create_run(tmp_path / "whole", info, mixed_runs.CASES) as journal:
        (journal.folder / "attempts.jsonl").write_bytes(b"".join(lines))
    folders = [tmp_path / f"{number}" for number in shuffled]
    done = merge(folders, output=tmp_path / "all", means=MEANS)
    # unrecorded cases are counted by shard
    unrecorded = {model: count * of for model, count in info.unrecorded.items()}
    described = msgspec.structs.replace(info, unrecorded=unrecorded)
    whole = StoredRun(tmp_path / "whole")
    expected = run_results(described, whole.cases, whole.facts())
    assert told(done.folder)[1:] == expected[1:]
    opened = RunView(done.folder)
    assert opened.summary() == done.summary == expected.summary
    for row, tried in zip(opened.rows, expected.attempts, strict=True):
        assert opened.attempt(tried.case.id, tried.model, tried.tier, tried.number) == tried
        assert row.score == tried.score
    sql = 'SELECT "case", model, tier, number, kind, "at", counts, correct, score FROM stored.facts ORDER BY ALL'
    for folder in (done.folder, tmp_path / "whole"):
        copy_to_parquet(folder, query.fact_scores)
    found = [asked(folder, sql) for folder in (done.folder, tmp_path / "whole")]
    assert found[0] == found[1] != []


def asked(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with query.run_query(sql, folder) as answer:
        return list(answer.rows)


# --- what is still owed


def test_an_interrupted_shard_is_merged_and_the_merged_run_asks_for_what_is_owed(
    server: FaultServer, tmp_path: Path
) -> None:
    asking: dict[str, Any] = {"base_url": server.url, "seed": 10, "samples": 2}
    first = run("openai/m", tmp_path / "1", (1, 2), **asking)
    server.script = by_prompt({"question 3": refuses(500), "question 7": refuses(400)})
    second = run("openai/m", tmp_path / "2", (2, 2), **asking)
    server.script = healthy
    owed = {(failure.case, failure.number) for failure in facts(second.folder).failures}
    assert len(owed) == 4
    # ... and killed while it wrote: no end, and half a line
    changed(second.folder / "run.json", lambda info: info.pop("ended_at"))
    journal = second.folder / "attempts.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    done = merge([first.folder, second.folder], output=tmp_path / "all", means=MEANS)
    assert done.info.ended_at is None
    assert done.notes == (
        f"shard 2 of 2 ({second.folder}) is unfinished; continue with: steelyard resume {tmp_path / 'all'}",
    )
    asked_before = len(server.requests)
    again = steelyard.resume(done.folder, means=MEANS)
    new = {(request.prompt.split()[-1], request.body["seed"] - 9) for request in server.requests[asked_before:]}
    assert new == {(str(int(case[5:])), number) for case, number in owed}
    assert again.summary.models[0].attempts == 22
    assert again.summary.models[0].missing == 0
    found = facts(done.folder)
    assert len(found.replies) == len({reply.key for reply in found.replies}) == 22
    assert len({verdict.ask for verdict in found.verdicts}) == 22
    # ... and a second time nobody is asked
    steelyard.resume(done.folder, means=MEANS)
    assert len(server.requests) == asked_before + len(new)


def test_a_merged_run_is_extended_like_any_other(server: FaultServer, tmp_path: Path) -> None:
    folders = sharded("openai/m", tmp_path, 2, base_url=server.url, samples=1)
    done = merge(folders, output=tmp_path / "all", means=MEANS)
    again = steelyard.resume(done.folder, samples=3, means=MEANS)
    assert again.summary.models[0].attempts == 33
    assert len(server.requests) == 33


def test_shards_that_were_all_extended_alike_are_merged_and_others_are_not(server: FaultServer, tmp_path: Path) -> None:
    folders = sharded("openai/m", tmp_path, 2, base_url=server.url, samples=1)
    steelyard.resume(folders[0], samples=3, means=MEANS)
    with pytest.raises(InputError, match=r"not the same plan as .*: samples . instead of ."):
        merge(folders, output=tmp_path / "all", means=MEANS)
    steelyard.resume(folders[1], samples=3, means=MEANS)
    done = merge(folders, output=tmp_path / "all", means=MEANS)
    assert done.summary.models[0].attempts == 33


def test_a_budget_holds_for_all_that_the_merged_run_has_spent(server: FaultServer, tmp_path: Path) -> None:
    settings = msgspec.structs.replace(
        MEANS.settings,
        prices={"openai/m": Price(input=0, output=1e6)},
    )
    means = MEANS._replace(settings=settings)
    asking: dict[str, Any] = {"base_url": server.url, "samples": 1, "parameters": {"max_tokens": 5}, "means": means}
    # every reply costs five dollars, and each shard may spend twelve
    folders = [
        run("openai/m", tmp_path / f"{number}", (number, 2), **{**asking, "means": means._replace(max_cost=12)}).folder
        for number in (1, 2)
    ]
    assert [facts(folder).spent for folder in folders] == [10, 10]
    done = merge(folders, output=tmp_path / "all", means=MEANS)
    assert sum(model.cost_usd or 0 for model in done.summary.models) == 20
    before = len(server.requests)
    stopped = steelyard.resume(done.folder, means=means._replace(max_cost=24))
    assert stopped.out_of_budget
    assert len(server.requests) == before
    steelyard.resume(done.folder, means=means._replace(max_cost=26))
    assert len(server.requests) == before + 1


# --- what does not belong together


def test_a_shard_that_comes_twice_is_refused_whoever_did_it(place: Path, model: str) -> None:
    run(model, place / "shards" / "2-again", (2, 3))
    refused(place, r"shard 2 of 3 is in .*/2 and in .*/2-again; leave one of them out")
    (place / "link").symlink_to(place / "shards" / "1")
    one, two, _, three = parts(place)
    refused(place, r"shard 1 of 3 is in ", [one, two, three, place / "link"])
    refused(place, r"shard 1 of 3 is in ", [one, two, three, one])


def test_missing_shards_are_named_and_how_to_get_them(place: Path, tmp_path: Path, model: str) -> None:
    one, two, three = parts(place)
    refused(
        place, r"shard 2 of 3 is missing; run it with --shard 2/3, or merge what is there with --partial", [one, three]
    )
    refused(place, r"shards 1, 3 of 3 are missing; run them with --shard 1/3 and so on", [two])
    folders = sharded(model, tmp_path / "many", 9)
    with pytest.raises(InputError, match="shards 2-6, 8 of 9 are missing"):
        merge([folders[0], folders[6], folders[8]], output=tmp_path / "all", means=MEANS)


def test_what_is_there_can_be_merged_and_the_rest_later(place: Path) -> None:
    one, two, three = parts(place)
    some = merge([three, one], output=place / "some", partial=True, means=MEANS)
    assert some.notes == ("shard 2 of 3 is missing: these are not all of the cases",)
    assert [case.id for case in StoredRun(some.folder).cases] == [
        case.id for at, case in enumerate(CASES) if at % 3 != 1
    ]
    assert some.summary.warnings[0] == "2 shards of 3, so not all of the 11 cases: steelyard merge joins the shards"
    with pytest.raises(InputError, match=r"shard 3 of 3 is in "):
        merge([some.folder, two, three], output=place / "all", means=MEANS)
    done = merge([two, some.folder], output=place / "all", means=MEANS)
    assert done.info.shard is None
    assert told(done.folder).summary == told(place / "whole").summary
    assert told(done.folder).cases == tuple(CASES)
    assert [part.numbers for part in done.info.merged] == [(1, 3), (2,)]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"samples": 3}, "samples 3 instead of 4"),
        ({"samples": None}, "samples null instead of 4"),
        ({"k": (1, 3)}, r"pass-k \[1,3\] instead of \[1,2,4\]"),
        ({"seed": 5}, "seed 5 instead of null"),
        ({"system": "Be brief."}, 'system "Be brief." instead of ""'),
        ({"rule": "code-structured"}, 'rule "code-structured" instead of "code"'),
        ({"parameters": {"temperature": 0.5}}, r'parameters {"temperature":0.5} instead of {}'),
        ({"cases": CASES[:10]}, "10 cases instead of 11"),
        ({"cases": [*CASES[1:], CASES[0]]}, "other cases or tests in shards 1-3"),
        (
            {"cases": [*CASES[:4], msgspec.structs.replace(CASES[4], target="no"), *CASES[5:]]},
            "other cases or tests in shard 2",
        ),
        (
            {"cases": [msgspec.structs.replace(CASES[0], weight=9), *CASES[1:]]},
            "other cases or tests in shard 1",
        ),
    ],
)
def test_another_plan_is_refused_with_what_differs(place: Path, model: str, other: dict[str, Any], said: str) -> None:
    shutil.rmtree(place / "shards" / "3")
    run(model, place / "shards" / "3", (3, 3), **other)
    refused(place, rf"shards/3: not the same plan as .*/shards/1: .*{said}")


def test_other_models_and_another_number_of_shards_are_another_plan(place: Path, tmp_path: Path, model: str) -> None:
    shutil.rmtree(place / "shards" / "2")
    run(recorded(tmp_path / "other.jsonl"), place / "shards" / "2", (2, 3))
    refused(place, r"shards/2: not the same plan as .*: models .*other.jsonl.* instead of ")
    shutil.rmtree(place / "shards" / "2")
    run(model, place / "shards" / "2", (2, 4))
    refused(place, "shards/2: not the same plan as .*: split into 4 shards instead of 3")


def test_of_many_odd_ones_the_first_are_told_and_the_others_counted(place: Path, model: str) -> None:
    for number in range(7):
        run(model, place / "shards" / f"odd-{number}", (1, 3), samples=1, seed=number)
    with pytest.raises(InputError) as caught:
        merge(parts(place), output=place / "all", means=MEANS)
    assert len(caught.value.problems) == 6
    assert str(caught.value.problems[-1]) == "and 2 more that are not of the same plan"


def test_a_whole_run_is_no_shard(place: Path) -> None:
    refused(
        place, r"whole: a whole run, not a shard; shards come from: steelyard run", [*parts(place), place / "whole"]
    )


def test_everything_that_is_wrong_with_all_folders_is_told_at_once(place: Path) -> None:
    one, two, three = parts(place)
    (one / "run.json").write_text("{")
    (two / "cases.jsonl").unlink()
    changed(three / "run.json", lambda info: info.update(samples=9))
    with pytest.raises(InputError) as caught:
        merge(parts(place), output=place / "all", means=MEANS)
    first, second, third = map(str, caught.value.problems)
    assert "1/run.json: not the description of a run" in first
    assert "2/cases.jsonl: No such file" in second
    assert "3/run.json: changed since it was written" in third


def test_nothing_to_merge_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to merge; name the run folders of all shards"):
        merge([], output=tmp_path / "all", means=MEANS)
    with pytest.raises(InputError, match='no run "nowhere"'):
        merge(["nowhere"], output=tmp_path / "all", means=MEANS)


# --- what somebody has meddled with


@pytest.mark.parametrize(
    "meddle",
    [
        lambda info: info.update(samples=3),
        lambda info: info.update(models=["command:true"]),
        lambda info: info.update(base_url="http://elsewhere.example"),
        lambda info: info.update(parameters={"temperature": 2}),
        lambda info: info["shard"].update(numbers=[]),
        lambda info: info["shard"].update(numbers=[0]),
        lambda info: info["shard"].update(numbers=[-1]),
        lambda info: info["shard"].update(numbers=[4]),
        lambda info: info["shard"].update(numbers=[2, 1]),
        lambda info: info["shard"].update(numbers=[2, 2]),
        lambda info: info["shard"].update(of=0),
        lambda info: info["shard"].update(of=2),
        lambda info: info["shard"].update(of=10**9),
        lambda info: info["shard"].update(cases=12),
        lambda info: info["shard"].update(dealt=[]),
        lambda info: info["shard"].update(plan="0"),
        lambda info: info["shard"]["dealt"].reverse(),
    ],
    ids=range(17),
)
def test_a_description_that_was_changed_by_hand_is_refused(place: Path, meddle: Callable[[Any], object]) -> None:
    changed(place / "shards" / "2" / "run.json", meddle)
    refused(place, r"shards/2/run.json: changed since it was written: its plan does not match its digest")


def test_a_shard_that_gives_itself_another_number_is_found_by_its_cases(place: Path) -> None:
    changed(place / "shards" / "2" / "run.json", lambda info: info["shard"].update(numbers=[3]))
    refused(place, r"shards/2/cases.jsonl: not the cases of shard 3 of 3", parts(place)[:2])
    changed(place / "shards" / "2" / "run.json", lambda info: info["shard"].update(numbers=[2, 3]))
    refused(place, r"shards/2/cases.jsonl: not the cases of shards 2, 3 of 3", parts(place)[:2])


@pytest.mark.parametrize("meddle", ["tests", "order", "fewer", "more"])
def test_cases_that_are_not_those_that_were_dealt_are_refused(place: Path, meddle: str) -> None:
    path = place / "shards" / "2" / "cases.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    other = {
        "tests": [lines[0].replace(b'"yes"', b'"no"'), *lines[1:]],
        "order": lines[::-1],
        "fewer": lines[1:],
        "more": [*lines, (place / "shards" / "1" / "cases.jsonl").read_bytes().splitlines(keepends=True)[0]],
    }
    path.write_bytes(b"".join(other[meddle]))
    refused(place, r"shards/2/cases.jsonl: not the cases of shard 2 of 3, or not with their original tests")


@pytest.mark.parametrize("moment", ["../../../tmp/x", "2026-01-01/00:00:00", "", "yesterday", "9" * 400])
def test_a_moment_that_is_none_leads_nowhere(place: Path, moment: str) -> None:
    changed(place / "shards" / "1" / "run.json", lambda info: info.update(started_at=moment))
    refused(place, r"shards/1/run.json: .* is not a timestamp; restore the file")


def test_changed_tests_are_for_the_merged_run(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "evals.jsonl"
    lines = [{"id": case.id, "prompt": case.prompt, "target": "no"} for case in CASES]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    one, two, three = parts(place)
    with pytest.raises(InputError, match="a shard, and its cases or their tests have changed; merge the shards first"):
        steelyard.verify(one, eval_sets=[path], means=MEANS)
    done = merge([one, two, three], output=place / "all", means=MEANS)
    again = steelyard.verify(done.folder, eval_sets=[path], means=MEANS)
    assert [model.attempts for model in again.summary.models] == [model.attempts for model in done.summary.models]
    assert [model.correct for model in again.summary.models] != [model.correct for model in done.summary.models]
    whole = steelyard.verify(place / "whole", eval_sets=[path], means=MEANS)
    assert again.summary == whole.summary


def test_a_shard_is_verified_again_as_long_as_its_tests_are_the_same(place: Path) -> None:
    one = parts(place)[0]
    before = told(one).summary
    assert steelyard.verify(one, means=MEANS).summary == before
    assert merge(parts(place), output=place / "all", means=MEANS).summary == told(place / "whole").summary


def test_links_and_what_is_no_plain_file_are_not_followed(place: Path, tmp_path: Path) -> None:
    two = place / "shards" / "2"
    (tmp_path / "secret").write_text("secret")
    (two / "attempts-x.jsonl").symlink_to(tmp_path / "secret")
    refused(place, r"shards/2/attempts-x.jsonl: a link or a special file")
    (two / "attempts-x.jsonl").unlink()
    (two / "attempts-x.jsonl").mkdir()
    refused(place, r"shards/2/attempts-x.jsonl: a link or a special file")
    (two / "attempts-x.jsonl").rmdir()
    os.mkfifo(two / "attempts-x.jsonl")
    refused(place, r"shards/2/attempts-x.jsonl: a link or a special file")
    (two / "attempts-x.jsonl").unlink()
    for name in ("run.json", "cases.jsonl"):
        (two / name).rename(tmp_path / name)
        (two / name).symlink_to(tmp_path / name)
        refused(place, rf"shards/2/{name}: a link, which is not followed")
        (two / name).unlink()
        os.mkfifo(two / name)
        refused(place, rf"{name}: not a plain file|not a run folder|no run")
        (two / name).unlink()
        (tmp_path / name).rename(two / name)
    merge(parts(place), output=place / "all", means=MEANS)


def test_a_folder_may_be_named_by_a_link(place: Path) -> None:
    (place / "link").symlink_to(place / "shards" / "1")
    done = merge([place / "link", *parts(place)[1:]], output=place / "all", means=MEANS)
    assert done.summary == told(place / "whole").summary


def test_foreign_files_stay_behind(place: Path) -> None:
    two = place / "shards" / "2"
    for name in ("notes.txt", ".DS_Store", "copy.json", "attempts.index", "headline.json", "attempts.jsonl.bak"):
        (two / name).write_bytes(b"\xff\0 not ours")
    (two / "deep").mkdir()
    done = merge(parts(place), output=place / "all", means=MEANS)
    assert sorted(path.name for path in done.folder.iterdir()) == [
        *(f"attempts-{number}-of-3.jsonl" for number in (1, 2, 3)),
        *("attempts.index", "attempts.jsonl", "cases.jsonl", "headline.json", "run.json"),
    ]
    assert done.summary == told(place / "whole").summary


def test_damaged_lines_stay_behind_and_are_told(place: Path) -> None:
    path = place / "shards" / "2" / "attempts.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        b"".join([b"\xff\n", lines[0], b"{}\n", *lines[1:], b"[" * 100_000 + b"\n", *[b"x\n"] * 4, b'{"cut'])
    )
    done = merge(parts(place), output=place / "all", means=MEANS)
    assert len(done.notes) == 6
    assert f"{path}:1: not a fact, left out" in done.notes[0]
    assert f"{path}:3: not a fact, left out" in done.notes[1]
    assert done.notes[5] == f"{path.parent}: 2 more lines that are not facts were left out"
    stored = StoredRun(done.folder)
    assert summary.summarise(done.info, stored.cases, stored.facts()) == told(place / "whole").summary
    assert stored.damaged == []


def test_a_fact_about_a_case_of_another_shard_is_refused_with_its_line(place: Path) -> None:
    one, two, _ = parts(place)
    line = (one / "attempts.jsonl").read_bytes().splitlines(keepends=True)[0]
    before = (two / "attempts.jsonl").read_bytes()
    (two / "attempts.jsonl").write_bytes(before + line)
    count = before.count(b"\n") + 1
    refused(place, rf'2/attempts.jsonl:{count}: is about case "case-..", which belongs to shard 1 of 3')
    (two / "attempts.jsonl").write_bytes(before + line.replace(b"case-0", b"cas\\u0001-"))
    refused(place, rf'2/attempts.jsonl:{count}: is about case "cas.u0001-.", which belongs to no shard')


def test_the_same_ask_key_in_two_shards_is_refused(place: Path) -> None:
    one, two, _ = parts(place)
    key = facts(one).replies[3].key
    chosen = facts(two).replies[5]
    content = (two / "attempts.jsonl").read_bytes()
    (two / "attempts.jsonl").write_bytes(content.replace(chosen.key.encode(), key.encode()))
    refused(
        place,
        rf"1 and .*/2 contain replies with the same key, such as attempt {chosen.number} at case \"{chosen.case}\"",
    )


# --- where it goes


def test_a_folder_that_is_there_already_is_left_alone(place: Path) -> None:
    before = sorted(path.name for path in place.iterdir())
    (place / "file").write_text("mine")
    (place / "full").mkdir()
    (place / "full" / "mine").write_text("mine")
    (place / "empty").mkdir()
    (place / "link").symlink_to(place / "empty")
    for name, why in (
        ("whole", "already contains a run; name another folder with --output"),
        ("file", "already exists, and is not an empty folder"),
        ("full", "already exists, and is not an empty folder"),
        ("link", "already exists, and is not an empty folder"),
    ):
        with pytest.raises(InputError, match=f"{name}: {why}"):
            merge(parts(place), output=place / name, means=MEANS)
    with pytest.raises(StoreError, match=r"cannot be written: (Not a directory|File exists)"):
        merge(parts(place), output=place / "file" / "all", means=MEANS)
    with pytest.raises(StoreError, match="cannot be written: File name too long; nothing was written there"):
        merge(parts(place), output=place / ("x" * 300), means=MEANS)
    assert sorted(path.name for path in place.iterdir()) == sorted([*before, "empty", "file", "full", "link"])
    assert (place / "file").read_text() == (place / "full" / "mine").read_text() == "mine"
    merge(parts(place), output=place / "empty", means=MEANS)
    assert told(place / "empty").summary == told(place / "whole").summary


def test_without_a_name_it_goes_where_runs_go(place: Path) -> None:
    means = MEANS._replace(settings=msgspec.structs.replace(MEANS.settings, output_dir=str(place / "runs")))
    done = merge(parts(place), means=means)
    assert done.folder == place / "runs" / done.info.id
    assert [run.folder for run in runs(place / "runs")] == [done.folder]


def test_a_shard_that_is_being_written_is_refused(place: Path) -> None:
    hold = (
        "import sys; from pathlib import Path; from steelyard.store.journal import Journal\n"
        "with Journal(Path(sys.argv[1])):\n    print('held', flush=True); sys.stdin.read()"
    )
    two = place / "shards" / "2"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(two)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        refused(place, "shards/2: another process is writing this run", kind=StoreError)
        process.kill()
    merge(parts(place), output=place / "all", means=MEANS)


def test_what_somebody_left_who_was_killed_is_cleared_away(place: Path) -> None:
    aside = place / ".all.arising"
    aside.mkdir()
    (aside / "attempts-1-of-3.jsonl").write_text("half")
    (aside / "run.json").write_text("half")
    assert [run.folder.name for run in runs(place)] == ["whole"]
    merge(parts(place), output=place / "all", means=MEANS)
    assert not aside.exists()
    assert told(place / "all").summary == told(place / "whole").summary


def test_a_shard_without_its_caches_is_merged_all_the_same(place: Path) -> None:
    for folder in parts(place):
        for name in ("attempts.index", "headline.json"):
            (folder / name).unlink()
    done = merge(parts(place), output=place / "all", means=MEANS)
    assert done.summary == told(place / "whole").summary


def test_many_shards_share_few_journals(tmp_path: Path) -> None:
    done = merge(crafted(tmp_path / "shards", replies=2, size=1, of=130), output=tmp_path / "all", means=MEANS)
    journals = [path.name for path in StoredRun(done.folder).journals()]
    assert len(journals) <= MAX_MERGED_JOURNALS + 1
    assert journals[0] == "attempts-001-of-130.jsonl"
    assert journals[-1] == "attempts.jsonl"
    assert sum(1 for _ in StoredRun(done.folder).facts()) == 260
    assert [case.id for case in StoredRun(done.folder).cases] == [f"c{number}" for number in range(130)]


def test_taking_over_a_journal_needs_memory_for_a_line_and_not_for_all_of_them(tmp_path: Path) -> None:
    (folder,) = crafted(tmp_path / "shards", replies=400, size=100_000, of=1)
    with (folder / "attempts.jsonl").open("ab") as file:
        file.write(b"x\n" * 50_000)
    damages = BoundedProblemList(5)
    tracemalloc.start()
    try:
        append_facts(DeliveredRun(folder), tmp_path / "copy.jsonl", lambda *_: None, damages.add)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(damages.first), damages.more) == (5, 49_995)
    assert (tmp_path / "copy.jsonl").read_bytes() + b"x\n" * 50_000 == (folder / "attempts.jsonl").read_bytes()
    assert (tmp_path / "copy.jsonl").stat().st_size > 40_000_000
    assert peak < 4_000_000


def test_differences_between_machines_are_told(place: Path) -> None:
    changed(place / "shards" / "2" / "run.json", lambda info: info["versions"].update(python="3.14.0", system="other"))
    gate(place / "whole", place / "shards" / "3")
    done = merge(parts(place), output=place / "all", means=MEANS)
    python = StoredRun(place / "whole").info.versions["python"]
    assert done.notes == (
        f"the shards were run with different versions of python: {python}, 3.14.0",
        f"{place / 'shards' / '3'}: a gate looked at this shard alone; that look is no longer counted",
    )
    assert done.info.versions["python"] == f"{python}, 3.14.0"
    assert [part.versions["python"] for part in done.info.merged] == [python, "3.14.0", python]


# --- everybody reads it


def test_every_reader_takes_a_run_of_several_journals(place: Path) -> None:
    done = merge(parts(place), output=place / "runs" / "all", means=MEANS)
    whole = place / "whole"
    assert [fact.key for fact in StoredRun(done.folder).facts() if isinstance(fact, Reply)] != []
    # the viewer: from its index, from its journals, in its list
    listed = RunCatalog(place / "runs").listed()
    assert [(run.name, run.state, run.cases) for run in listed.runs] == [("all", "done", 11)]
    assert listed.runs[0].models == RunCatalog(whole).listed().runs[0].models
    assert RunView(done.folder).summary() == RunView(whole).summary()
    (done.folder / ATTEMPT_INDEX_FILE).unlink()
    (done.folder / HEADLINE_FILE).unlink()
    assert RunCatalog(place / "runs").listed().runs[0].models == listed.runs[0].models
    assert RunView(done.folder).summary() == RunView(whole).summary()
    # pages, questions, gates, baselines
    assert html_page(StoredRun(done.folder)).count("case-03") == html_page(StoredRun(whole)).count("case-03") > 0
    sql = 'SELECT "case", model, number, reply, correct, score, cost_usd, latency FROM attempts ORDER BY ALL'
    assert asked(done.folder, sql) == asked(whole, sql) != []
    assert gate(whole, done.folder).decision.verdict == gate(whole, whole).decision.verdict
    assert sides.side(str(done.folder)).models == sides.side(str(whole)).models
    # and as a recording
    again = run(f"replay:{done.folder}", place / "again", samples=None)
    assert again.summary == run(f"replay:{whole}", place / "again-whole", samples=None).summary
    assert {(model.model, model.attempts) for model in again.summary.models} == {("p/a", 39), ("p/b", 43)}


def test_a_viewer_reads_on_when_a_merged_run_is_resumed(server: FaultServer, tmp_path: Path) -> None:
    folders = sharded("openai/m", tmp_path / "shards", 2, base_url=server.url, samples=1)
    done = merge(folders, output=tmp_path / "runs" / "all", means=MEANS)
    opened = RunView(done.folder)
    assert len(opened.rows) == 11
    with Journal(done.folder) as journal:
        growing = opened.refreshed()
        assert growing.is_growing
        chosen = next(fact for fact in journal.facts() if isinstance(fact, Reply) and fact.case == "case-07")
        journal.append(msgspec.structs.replace(chosen, key="later", answer=Answer(text="the last word")))
        later = growing.refreshed()
        assert later.goes_on
        tried = later.attempt("case-07", "openai/m", "", 1)
        assert tried is not None
        assert tried.reply is not None
        assert tried.reply.answer.text == "the last word"


def test_the_last_verdict_is_the_one_that_counts_in_a_merged_run_too(server: FaultServer, tmp_path: Path) -> None:
    # what it says depends on something that is not among the tests
    (tmp_path / "checks.py").write_text(
        "from pathlib import Path\ndef score(reply):\n    return not Path(__file__).with_name('flag').exists()\n"
    )
    path = tmp_path / "evals.jsonl"
    lines = [{"id": f"c{n}", "prompt": f"q{n}", "verify": {"python": "checks.py:score"}} for n in range(5)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    loaded = steelyard.load([path])
    asking: dict[str, Any] = {"cases": loaded.cases, "base_url": server.url, "samples": 1, "eval_sets": loaded.files}
    done = merge(sharded("openai/m", tmp_path / "shards", 2, **asking), output=tmp_path / "all", means=MEANS)
    assert done.summary.models[0].correct == 5
    (tmp_path / "flag").touch()
    again = steelyard.verify(done.folder, means=MEANS)
    assert again.summary.models[0].correct == 0
    assert again.summary.models[0].attempts == 5
    assert RunView(done.folder).summary() == again.summary
    assert asked(done.folder, "SELECT count(*), count(*) FILTER (correct) FROM attempts") == [(5, 0)]


def test_latest_is_the_merged_run_and_no_part_of_it(place: Path) -> None:
    shutil.rmtree(place / "whole")
    (place / "shards").rename(place / "runs")
    assert find_run("latest", place / "runs").name == "3"
    merge(sorted((place / "runs").iterdir()), output=place / "runs" / "0-all", means=MEANS)
    assert find_run("latest", place / "runs").name == "0-all"


def test_questions_over_all_runs_count_no_attempt_twice(place: Path) -> None:
    (place / "shards").rename(place / "runs")
    merge(sorted((place / "runs").iterdir()), output=place / "runs" / "all", means=MEANS)
    with query.run_query("SELECT count(*) FROM attempts", place / "runs") as answer:
        assert list(answer.rows) == asked(place / "whole", "SELECT count(*) FROM attempts")
        assert [warning.partition("runs/")[2] for warning in answer.warnings] == [
            f"{number}: left out, because it was merged into {place / 'runs' / 'all'}" for number in (1, 2, 3)
        ]


def test_a_baseline_pools_no_run_with_its_own_part(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    merge(parts(place), output=place / "all", means=MEANS)
    with pytest.raises(InputError, match="is in this baseline twice; its attempts count once"):
        sides.bless([str(place / "all"), str(place / "shards" / "1")], "main")


def test_merging_needs_no_key_and_asks_nobody(server: FaultServer, tmp_path: Path) -> None:
    means = Means(settings=MEANS.settings, environment={"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-none"})
    folders = sharded("openai/m", tmp_path / "shards", 2, samples=1, means=means)
    before = len(server.requests)
    done = merge(folders, output=tmp_path / "all", means=Means(environment={}))
    assert done.summary.models[0].attempts == 11
    assert len(server.requests) == before
