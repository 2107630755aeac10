"""Runs against a server that fails in every way it can: they end, and nothing is lost or counted twice."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

import steelyard
from asking import KEY
from facts import facts
from fault_server import (
    Behaviour,
    FaultServer,
    Request,
    breaks_json,
    by_prompt,
    closes_mid_body,
    closes_mid_chunk,
    drips,
    hangs,
    hangs_up,
    healthy,
    ok,
    refuses,
    says,
    sends,
    sends_too_much,
    sends_wrong_type,
)
from steelyard import Case, Means, Settings
from steelyard.errors import InputError
from steelyard.records import Price

SETTINGS = Settings(max_retries=2, retry_delay_ms=5, deadline_secs=30)
WIRES = ["openai", "anthropic"]
SOON = {"retry-after": "0.05"}


def cases(*names: str) -> list[Case]:
    return [Case(id=name, prompt=f"prompt of {name}", target="answer") for name in names]


def run(server: FaultServer, folder: Path, asked: list[Case], wire: str = "openai", **given: Any) -> steelyard.Run:
    settings = given.pop("settings", SETTINGS)
    means = Means(
        settings=settings,
        environment={"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY},
        max_cost=given.pop("max_cost", None),
    )
    base_url = f"{server.url}/v1"
    return steelyard.run(asked, models=f"{wire}/m", base_url=base_url, output=folder, means=means, **given)


def resume(folder: Path, **means: Any) -> steelyard.Run:
    environment = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
    return steelyard.resume(folder, means=Means(**{"settings": SETTINGS, "environment": environment, **means}))


def settled(server: FaultServer, folder: Path, planned: set[str]) -> None:
    """Every attempt has one reply and one verdict, and every answer the server sent whole is one of the replies."""
    found = facts(folder)
    assert found.replied() == planned
    assert Counter(verdict.case for verdict in found.verdicts) == dict.fromkeys(planned, 1)
    assert found.texts == sorted(server.answered)


RETRIED: dict[str, Behaviour] = {
    "429 with seconds": refuses(429, headers=SOON),
    "429 with milliseconds": refuses(429, headers={"retry-after-ms": "20"}),
    "429 with a date": refuses(
        429, headers={"retry-after": format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)}
    ),
    "429 without": refuses(429),
    "500": refuses(500),
    "503": refuses(503),
    "503 with seconds": refuses(503, headers=SOON),
    "529": refuses(529),
    "408": refuses(408),
    "hangs up": hangs_up,
    "closes mid-body": closes_mid_body,
    "closes mid-chunk": closes_mid_chunk,
    "broken JSON": breaks_json,
    "html": sends(b"<html>Welcome to nginx!</html>", headers={"content-type": "text/html"}),
    "nothing": sends(b""),
    "an error that comes as success": sends({"error": {"message": "overloaded"}}),
    "no choices": sends({"choices": []}),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", RETRIED)
def test_a_passing_fault_costs_a_retry_and_a_lasting_one_its_own_attempts(
    server: FaultServer, tmp_path: Path, fault: str, wire: str
) -> None:
    fails = RETRIED[fault]
    server.script = by_prompt({"prompt of flaky": [fails], "prompt of shaky": [fails, fails], "prompt of dead": fails})
    done = run(server, tmp_path / "run", cases("flaky", "shaky", "dead", "fine"), wire)
    found = facts(done.folder)
    assert found.replied() == {"flaky", "shaky", "fine"}
    assert found.failed() == {"dead"}
    assert len(found.failures) == 1
    assert found.texts == sorted(server.answered)
    asked = [server.asked(f"prompt of {name}") for name in ("fine", "flaky", "shaky", "dead")]
    assert asked == [1, 2, 3, 3]
    assert done.summary.models[0].missing == 1

    server.script = healthy
    resume(done.folder)
    settled(server, done.folder, {"flaky", "shaky", "dead", "fine"})
    assert len(server.requests) == sum(asked) + 1


@pytest.mark.parametrize("wire", WIRES)
def test_a_server_that_hangs_is_left_at_the_deadline(server: FaultServer, tmp_path: Path, wire: str) -> None:
    server.script = by_prompt({"prompt of flaky": [hangs], "prompt of dead": hangs})
    settings = Settings(max_retries=1, retry_delay_ms=5, deadline_secs=1.5)
    done = run(server, tmp_path / "run", cases("dead", "flaky", "fine"), wire, settings=settings)
    found = facts(done.folder)
    assert found.replied() == {"flaky", "fine"}
    assert [failure.message for failure in found.failures if failure.case == "dead"] != []
    assert "no answer within 1.5 s" in found.failures[0].message
    assert found.texts == sorted(server.answered)
    assert server.asked("prompt of dead") == 2


def test_an_answer_in_drips_is_a_reply_in_time_and_a_failure_too_late(server: FaultServer, tmp_path: Path) -> None:
    server.script = by_prompt({"prompt of quick": drips(0.01), "prompt of slow": drips(0.5, pieces=20)})
    settings = Settings(max_retries=0, deadline_secs=2)
    done = run(server, tmp_path / "run", cases("quick", "slow", "fine"), settings=settings)
    found = facts(done.folder)
    assert found.replied() == {"quick", "fine"}
    assert found.failed() == {"slow"}
    assert found.texts == sorted(server.answered)


ALONE: dict[str, Behaviour] = {
    "400": refuses(400),
    "402": refuses(402),
    "413": refuses(413),
    "422": refuses(422),
    "too much": sends_too_much,
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", ALONE)
def test_a_request_that_is_refused_is_not_repeated_and_stops_nobody_else(
    server: FaultServer, tmp_path: Path, fault: str, wire: str
) -> None:
    server.script = by_prompt({"prompt of bad": ALONE[fault], "prompt of worse": ALONE[fault]})
    done = run(server, tmp_path / "run", cases("bad", "worse", "fine", "well"), wire)
    found = facts(done.folder)
    assert found.replied() == {"fine", "well"}
    assert found.failed() == {"bad", "worse"}
    assert done.stopped == ()
    assert set(Counter(request.prompt for request in server.requests).values()) == {1}

    server.script = healthy
    resume(done.folder)
    settled(server, done.folder, {"bad", "worse", "fine", "well"})


EVERYONE: dict[str, Behaviour] = {
    "401": refuses(401, f"Incorrect API key: {KEY}"),
    "403": refuses(403),
    "404": refuses(404, "no such model"),
    "redirect": sends(b"", status=302, headers={"location": "https://elsewhere.example/"}),
    "empty purse": sends({"error": {"message": "pay first", "code": "insufficient_quota"}}, status=429),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", EVERYONE)
def test_what_no_request_can_survive_is_asked_a_few_times_and_told_once(
    server: FaultServer, tmp_path: Path, fault: str, wire: str
) -> None:
    server.script = lambda request: EVERYONE[fault]
    planned = [f"case-{number}" for number in range(100)]
    done = run(server, tmp_path / "run", cases(*planned), wire)
    (reason,) = done.stopped
    assert reason.startswith(f"{wire}/m was given up: {server.url}")
    assert not done.complete
    # those in flight when the first was refused, and none of them twice
    assert len(server.requests) <= 4
    assert set(Counter(request.prompt for request in server.requests).values()) == {1}
    assert facts(done.folder).replies == []

    server.script = healthy
    again = resume(done.folder)
    assert again.stopped == ()
    settled(server, done.folder, set(planned))


ODD: dict[str, tuple[Behaviour, str, str]] = {
    "empty": (says(""), "", "stop"),
    "cut off": (says("half an answ", finish="length"), "half an answ", "length"),
    "refusal": (says("I will not.", finish="refusal"), "I will not.", "refusal"),
    "any character": (says("answer \x00\x1b[31m\u2028\U0001f600"), "answer \x00\x1b[31m\u2028\U0001f600", "stop"),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", ODD)
def test_an_odd_answer_is_an_answer(server: FaultServer, tmp_path: Path, kind: str, wire: str) -> None:
    behaviour, text, finish = ODD[kind]
    server.script = by_prompt({"prompt of odd": behaviour})
    done = run(server, tmp_path / "run", cases("odd", "fine"), wire)
    found = facts(done.folder)
    assert found.failures == []
    (reply,) = [reply for reply in found.replies if reply.case == "odd"]
    assert (reply.answer.text, reply.answer.finish) == (text, finish)
    assert len(found.verdicts) == 2
    assert server.asked("prompt of odd") == 1


@pytest.mark.parametrize("wire", WIRES)
def test_the_right_json_under_a_wrong_name_is_an_answer(server: FaultServer, tmp_path: Path, wire: str) -> None:
    server.script = by_prompt({"prompt of odd": sends_wrong_type})
    done = run(server, tmp_path / "run", cases("odd", "fine"), wire)
    settled(server, done.folder, {"odd", "fine"})


def test_faults_of_every_kind_at_once_lose_nothing_and_count_nothing_twice(server: FaultServer, tmp_path: Path) -> None:
    kinds = [*RETRIED.values(), ok, drips(0.001), sends_wrong_type]
    numbers = iter(range(10**6))
    # four faults in seven requests, in an order that no attempt knows
    server.script = lambda request: kinds[(next(numbers) * 7) % len(kinds)] if next(numbers) % 7 < 4 else ok
    planned = {f"case-{number}" for number in range(40)}
    done = run(server, tmp_path / "run", cases(*planned), samples=3, settings=Settings(max_retries=9, retry_delay_ms=1))
    for _ in range(20):
        found = facts(done.folder)
        assert found.texts == sorted(server.answered)
        if len(found.replies) == 120:
            break
        done = resume(done.folder)
    assert found.replied() == planned
    assert Counter(verdict.ask for verdict in found.verdicts) == {reply.key: 1 for reply in found.replies}
    assert Counter((reply.case, reply.number) for reply in found.replies) == {
        (case, number): 1 for case in planned for number in (1, 2, 3)
    }


def test_a_dead_server_does_not_get_the_whole_run_and_another_model_does_not_suffer(
    server: FaultServer, tmp_path: Path
) -> None:
    def script(request: Request) -> Behaviour:
        return refuses(500, "the model is on fire") if request.body["model"] == "dead" else ok

    server.script = script
    planned = [f"case-{number}" for number in range(200)]
    done = steelyard.run(
        cases(*planned),
        models=["openai/dead", "openai/well"],
        base_url=f"{server.url}/v1",
        output=tmp_path / "run",
        means=Means(settings=SETTINGS, environment={}),
    )
    found = facts(done.folder)
    assert sorted(reply.case for reply in found.replies) == sorted(planned)
    assert {reply.model for reply in found.replies} == {"openai/well"}
    (reason,) = done.stopped
    assert "openai/dead was given up: 8 attempts in a row got no answer" in reason
    assert "500 the model is on fire" in reason
    to_dead = [request for request in server.requests if request.body["model"] == "dead"]
    assert len(to_dead) <= 100


def test_a_server_that_is_not_there_is_given_up(tmp_path: Path) -> None:
    means = Means(settings=SETTINGS, environment={})
    done = steelyard.run(
        cases(*(f"case-{number}" for number in range(200))),
        models="openai/m",
        base_url="http://127.0.0.1:9/v1",
        output=tmp_path / "run",
        means=means,
    )
    (reason,) = done.stopped
    assert "ConnectError" in reason
    assert len(facts(done.folder).failures) <= 100
    assert not done.summary.conclusive


def test_no_key_is_in_the_folder_of_a_run_whatever_the_server_says(server: FaultServer, tmp_path: Path) -> None:
    leaks = {
        "prompt of a": refuses(400, f"your key {KEY} is bad"),
        "prompt of b": refuses(500, f"{'x' * 280} {KEY}"),
        "prompt of c": sends({"error": {"message": f"key {KEY}"}}),
        "prompt of d": sends(f"{KEY} {KEY}".encode()),
        "prompt of e": refuses(401, f"Incorrect API key provided: {KEY}"),
    }
    server.script = by_prompt(leaks)
    for wire in WIRES:
        done = run(server, tmp_path / wire, cases("a", "b", "c", "d", "e", "f"), wire)
        assert done.stopped
        assert KEY not in " ".join(done.stopped)
        for path in done.folder.iterdir():
            assert KEY.encode() not in path.read_bytes()


def test_a_wait_of_hours_is_not_waited_for(server: FaultServer, tmp_path: Path) -> None:
    server.script = by_prompt({"prompt of later": refuses(429, headers={"retry-after": "7200"})})
    done = run(server, tmp_path / "run", cases("later", "fine"))
    found = facts(done.folder)
    assert found.failed() == {"later"}
    assert found.replied() == {"fine"}
    assert server.asked("prompt of later") == 1


def test_parallelism_is_a_cap_on_requests_in_flight(server: FaultServer, tmp_path: Path) -> None:
    server.script = lambda request: drips(0.01, pieces=3)
    means = Means(settings=SETTINGS, parallelism=2, environment={})
    planned = cases(*(f"case-{number}" for number in range(12)))
    steelyard.run(planned, models="openai/m", base_url=server.url, output=tmp_path / "run", means=means)
    assert server.most_at_once == 2


PRICED = Settings(max_retries=1, retry_delay_ms=5, prices={"openai/m": Price(input=1000, output=2000)})
"""A request with 10 tokens in and 5 out costs two cents; with at most 20 tokens out it may cost more than five."""


def test_a_budget_is_never_exceeded_and_a_larger_one_carries_on(server: FaultServer, tmp_path: Path) -> None:
    planned = cases(*(f"case-{number}" for number in range(30)))
    server.script = lambda request: drips(0.005, pieces=2)
    done = run(server, tmp_path / "run", planned, settings=PRICED, max_cost=0.3, parameters={"max_tokens": 20})
    found = facts(done.folder)
    assert 0.2 <= found.spent <= 0.3
    assert found.failures == []
    (reason,) = done.stopped
    assert reason == "the budget of $0.3 does not suffice for another request"
    assert done.summary.models[0].cost_usd == pytest.approx(found.spent)

    again = resume(done.folder, settings=PRICED, max_cost=0.4)
    assert again.stopped
    assert found.spent < facts(done.folder).spent <= 0.4

    resume(done.folder, settings=PRICED)
    settled(server, done.folder, {case.id for case in planned})


def test_what_is_in_flight_is_counted_before_it_is_answered(server: FaultServer, tmp_path: Path) -> None:
    # every reply is as long as it may be: a budget that looked only at what is spent would let four begin at once
    usage = {"input": 40, "output": 20}
    server.script = lambda request: says(usage=usage)
    planned = cases(*(f"case-{number}" for number in range(20)))
    done = run(server, tmp_path / "run", planned, settings=PRICED, max_cost=0.2, parameters={"max_tokens": 20})
    assert 0.08 <= facts(done.folder).spent <= 0.2
    assert done.stopped


def test_an_answer_whose_cost_nobody_tells_counts_as_the_most_it_can_cost(server: FaultServer, tmp_path: Path) -> None:
    def silent(request: Request) -> Behaviour:
        return sends({"choices": [{"message": {"content": f"answer to {request.prompt}"}}]})

    server.script = silent
    planned = cases(*(f"case-{number}" for number in range(40)))
    done = run(server, tmp_path / "run", planned, settings=PRICED, max_cost=0.5, parameters={"max_tokens": 20})
    assert done.stopped
    asked = len(server.requests)
    assert 1 <= asked <= 8

    resume(done.folder, settings=PRICED, max_cost=0.5)
    assert len(server.requests) == asked


def test_a_budget_without_a_price_is_refused_before_anything_is_asked(server: FaultServer, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the price of openai/m is not known.*\[prices\.\"openai/m\"\]"):
        run(server, tmp_path / "run", cases("a"), max_cost=1.0)
    assert server.requests == []
    assert not (tmp_path / "run").exists()

    done = run(server, tmp_path / "run", cases("a"))
    with pytest.raises(InputError, match="the price of openai/m is not known"):
        resume(done.folder, max_cost=1.0)
