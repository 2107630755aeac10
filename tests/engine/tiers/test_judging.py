"""Judges are asked once for every answer, told what is wrong with theirs, and counted when they fail."""

from __future__ import annotations

import gc
import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest

import steelyard
from steelyard import Case, Means, Settings
from steelyard.engine.progress import SessionProgress
from steelyard.engine.resume import judge
from steelyard.engine.tiers.judging import wanted_judgments
from steelyard.engine.tiers.tier_runs import analysis, tier_experiment
from steelyard.errors import InputError
from steelyard.records import Answer, Failure, Judgment, Panel, Price, Reply, RunInfo, Verdict, digest
from steelyard.reports import tiers as tables
from steelyard.store.journal import StoredRun, create_run
from steelyard.tiers.rubrics import Rubric, RubricCategory
from support.fault_server import Behaviour, FaultServer, Request, in_turn, refuses, says, sends

PRICES = {"openai/judge": Price(input=100, output=100)}
RUBRIC = Rubric(id="r", categories=(RubricCategory(name="works", check="It works."),))
PANEL = Panel(judges=("openai/judge",), rubric=msgspec.to_builtins(RUBRIC), digest=RUBRIC.digest)
GOOD = json.dumps({"criteria_scores": {"works": {"reason": "", "score": 0.8}}, "score": 0.8, "passed": True})
CASES = [
    Case(id="a", prompt="Say yes.", target="yes"),
    Case(id="b", prompt="Say it.", verify=steelyard.records.Verify(kind="judge")),
]


def means(server: FaultServer, watch: Any = None) -> Means:
    settings = Settings(max_retries=0, retry_delay_ms=1, prices=PRICES)
    environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-none"}
    return Means(settings=settings, environment=environment, parallelism=1, watch=watch)


@pytest.fixture
def answered(server: FaultServer, tmp_path: Path) -> Path:
    server.script = lambda request: says("yes")
    done = steelyard.run(CASES, models="openai/model", samples=1, output=tmp_path / "run", means=means(server))
    server.requests.clear()
    return done.folder


def kept(folder: Path, kind: type[Any]) -> list[Any]:
    return [fact for fact in StoredRun(folder).facts() if isinstance(fact, kind)]


def test_what_was_paid_for_an_answer_that_cannot_be_used_is_kept_though_the_judge_then_fails(
    server: FaultServer, answered: Path
) -> None:
    server.script = in_turn(says("hm"), refuses(400, "no more"), then=says(GOOD))
    done = judge(answered, PANEL, means=means(server))
    (reason,) = done.stopped
    assert reason.startswith("judge openai/judge gave no usable answer for 1 of 2 judgments, the last because")
    assert "400 no more" in reason
    assert done.exit_code == 3
    first, second = kept(answered, Judgment)
    assert (first.requests, bool(first.unusable), second.unusable) == (1, True, "")
    (failure,) = kept(answered, Failure)
    assert failure.message.startswith("openai/judge could not be asked: ")
    assert "no more" in failure.message
    found = tier_experiment(StoredRun(answered))
    assert found.judges_usd == pytest.approx(2 * (10 + 5) * 100 / 1e6)
    assert found.notes == ("openai/judge: 1 of 2 judgments are missing",)
    # it is owed, and asked for once more
    judge(answered, PANEL, means=means(server))
    assert len(server.requests) == 4
    assert tier_experiment(StoredRun(answered)).notes == ()
    assert tier_experiment(StoredRun(answered)).judges_usd == pytest.approx(3 * (10 + 5) * 100 / 1e6)


def test_a_missing_judges_answer_is_why_a_run_cannot_tell_and_resuming_it_ends_alike(
    server: FaultServer, answered: Path
) -> None:
    server.script = lambda request: refuses(400, "no more")
    for done in (judge(answered, PANEL, means=means(server)), steelyard.resume(answered, means=means(server))):
        assert done.exit_code == 3
        assert "judge openai/judge gave no usable answer for 2 of 2 judgments, the last because" in done.stopped[0]
    server.script = lambda request: says(GOOD)
    assert steelyard.resume(answered, means=means(server)).exit_code == 0


def test_one_judgment_of_unknown_cost_makes_the_sum_a_lower_bound(server: FaultServer, answered: Path) -> None:
    unpriced = sends({"choices": [{"message": {"content": GOOD}, "finish_reason": "stop"}]})
    server.script = in_turn(unpriced, then=says(GOOD))
    judge(answered, PANEL, means=means(server))
    found = tier_experiment(StoredRun(answered))
    assert found.judges_usd == pytest.approx((10 + 5) * 100 / 1e6)
    assert found.judges_unpriced == 1
    said = " ".join(tables.text(analysis(found)).split())
    assert re.search(r"the judges cost at least \$[\d.]+ \(1 judgment of unknown cost\)", said), said


def test_a_judge_is_told_what_was_wrong_and_shown_what_it_said(server: FaultServer, answered: Path) -> None:
    server.script = in_turn(says("hm"), says(GOOD.replace("0.8", "8")), then=says(GOOD))
    judge(answered, PANEL, means=means(server))
    first, second, third, _ = (request.body["messages"] for request in server.requests)
    assert second[:-2] == first
    assert third[:-2] == second
    assert [message["role"] for message in third] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert third[2]["content"] == "hm"
    assert "score is 8, more than 1" in third[-1]["content"]
    assert [fact.requests for fact in kept(answered, Judgment)] == [3, 1]


def test_a_server_that_knows_no_schema_is_asked_without(server: FaultServer, answered: Path) -> None:
    def script(request: Request) -> Behaviour:
        return refuses(400, "response_format: no") if "response_format" in request.body else says(GOOD)

    server.script = script
    judge(answered, PANEL, means=means(server))
    assert ["response_format" in request.body for request in server.requests] == [True, False, False]
    assert len(kept(answered, Judgment)) == 2
    assert kept(answered, Failure) == []


def test_a_judge_that_refuses_for_another_reason_is_still_sent_the_schema(server: FaultServer, answered: Path) -> None:
    server.script = in_turn(refuses(400, "not this one"), then=says(GOOD))
    judge(answered, PANEL, means=means(server))
    assert all("response_format" in request.body for request in server.requests)
    assert len(kept(answered, Failure)) == 1


def test_judging_verifies_nothing(server: FaultServer, answered: Path) -> None:
    journal = answered / "attempts.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(line for line in lines if b'"kind":"verdict"' not in line))
    server.script = lambda request: says(GOOD)
    judge(answered, PANEL, means=means(server))
    assert kept(answered, Verdict) == []
    # and what should have been verified is not passed by its judges
    found = tier_experiment(StoredRun(answered))
    assert [run.case for run in found.runs] == ["b"]
    assert found.notes == ("openai/model: 1 of 2 runs are missing",)
    assert not analysis(found).conclusive


def test_whoever_watches_sees_the_judges_at_work(server: FaultServer, answered: Path) -> None:
    seen: list[tuple[int, int, int]] = []

    def watch(progress: SessionProgress) -> None:
        seen.append((progress.judgments, progress.judgments_made, progress.judgments_failed))

    server.script = in_turn(refuses(400, "not this one"), then=says(GOOD))
    judge(answered, PANEL, means=means(server, watch))
    assert seen[-1] == (2, 1, 1)


def test_a_model_does_not_judge_itself_unless_asked_to(server: FaultServer, answered: Path) -> None:
    itself = msgspec.structs.replace(PANEL, judges=("openai/model",))
    with pytest.raises(InputError, match="openai/model would judge its own answers"):
        judge(answered, itself, means=means(server))
    assert StoredRun(answered).info.panel is None
    server.script = lambda request: says(GOOD)
    judge(answered, msgspec.structs.replace(itself, allow_self=True), means=means(server))
    found = analysis(tier_experiment(StoredRun(answered)))
    assert "openai/model is a judge of its own runs" in found.warnings
    assert len(kept(answered, Reply)) == 2


def test_judgments_are_analysed_without_holding_the_texts_of_answers_or_judges(tmp_path: Path) -> None:
    info = RunInfo(
        id="run", started_at="2026-01-02T03:04:05Z", models=("p/m",), names=("p/m",), samples=40, k=(1,), panel=PANEL
    )
    words = "x" * 200_000
    with create_run(tmp_path / "run", info, CASES[1:]) as journal:
        for number in range(1, 41):
            where: dict[str, Any] = {"at": "2026-01-02T03:04:05Z", "case": "b", "model": "p/m", "number": number}
            journal.append(Reply(key=f"k{number}", asked="", answer=Answer(text=words), **where))
            said = Answer(text=f"{words}\n{GOOD}")
            judged: dict[str, Any] = {
                "ask": f"k{number}",
                "judge": "openai/judge",
                "rubric": RUBRIC.digest,
                "answer": said,
            }
            journal.append(Judgment(key=f"j{number}", **judged, **where))
    stored = StoredRun(tmp_path / "run")
    tier_experiment(stored)
    tracemalloc.start()
    found = tier_experiment(stored)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(found.runs), [rating.passed for rating in found.judgments.ratings()]) == (40, [True] * 40)
    assert most < 5_000_000, "of 16 MB of texts"


def test_attempts_are_held_as_columns_and_not_one_by_one(tmp_path: Path) -> None:
    cases = [
        Case(id=f"{number:04}", prompt="Say it.", verify=steelyard.records.Verify(kind="judge"))
        for number in range(2000)
    ]
    info = RunInfo(
        id="run", started_at="2026-01-02T03:04:05Z", models=("p/m",), names=("p/m",), samples=1, k=(1,), panel=PANEL
    )
    with create_run(tmp_path / "run", info, cases) as journal:
        for case in cases:
            where: dict[str, Any] = {"at": "2026-01-02T03:04:05Z", "case": case.id, "model": "p/m", "number": 1}
            key = digest(case.id)
            journal.append(Reply(key=key, asked="", answer=Answer(text="it"), **where))
            journal.append(
                Judgment(
                    key=f"j{key}",
                    ask=key,
                    judge="openai/judge",
                    rubric=RUBRIC.digest,
                    answer=Answer(text=GOOD),
                    **where,
                )
            )
    stored = StoredRun(tmp_path / "run")
    assert len(stored.cases) == 2000
    tier_experiment(stored)
    gc.collect()
    tracemalloc.start()
    found = tier_experiment(stored)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(found.runs), len(found.judgments)) == (2000, 2000)
    assert held < 500 * 2000


def test_cases_that_nothing_was_tried_at_are_missing_in_every_tier(tmp_path: Path) -> None:
    info = RunInfo(
        id="run", started_at="2026-01-02T03:04:05Z", models=("p/a", "p/b"), names=("p/a", "p/b"), samples=2, k=(1,)
    )
    cases = [Case(id=name, prompt="Say it.", verify=steelyard.records.Verify(kind="judge")) for name in "abc"]
    with create_run(tmp_path / "run", info, cases) as journal:
        for model, name, number in (
            ("p/a", "a", 1),
            ("p/a", "a", 2),
            ("p/a", "c", 1),
            ("p/b", "a", 1),
            ("p/b", "a", 3),
        ):
            where: dict[str, Any] = {"at": "2026-01-02T03:04:05Z", "case": name, "model": model, "number": number}
            journal.append(Reply(key=f"{model}{name}{number}", asked="", answer=Answer(text="it"), **where))
        journal.append(
            Failure(
                key="f", at="2026-01-02T03:04:05Z", case="c", model="p/b", number=1, stage="ask", message="no\nanswer"
            )
        )
    found = tier_experiment(StoredRun(tmp_path / "run"))
    assert found.notes == (
        "p/a: 3 of 6 runs are missing",
        "p/b: 4 of 6 runs are missing, most often: no answer",
    )
    assert not found.conclusive


def test_the_digest_of_an_experiment_is_that_of_its_records(answered: Path) -> None:
    found = tier_experiment(StoredRun(answered))
    (source,) = found.sources
    assert source.digest == digest(
        tuple(found.runs), tuple(found.judgments.ratings()), tuple(found.judgments.criteria())
    )


def test_only_the_last_reply_of_an_attempt_is_judged_and_others_are_not_counted(tmp_path: Path) -> None:
    info = RunInfo(
        id="run", started_at="2026-01-02T03:04:05Z", models=("p/m",), names=("p/m",), samples=2, k=(1,), panel=PANEL
    )
    with create_run(tmp_path / "run", info, CASES[1:]) as journal:
        for key, number in (("old", 1), ("other", 2), ("new", 1)):
            where: dict[str, Any] = {"at": "2026-01-02T03:04:05Z", "case": "b", "model": "p/m", "number": number}
            journal.append(Reply(key=key, asked="", answer=Answer(text=key), **where))
    wanted = list(wanted_judgments(StoredRun(tmp_path / "run"), PANEL, "openai/judge", {"b"}))
    assert [(each.reply.key, each.is_given) for each in wanted] == [("other", False), ("new", False)]
