"""Runs against a server that fails in every way it can: they end, and nothing is lost or counted twice."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import steelyard
from steelyard import Case, Means, Settings
from steelyard.engine.plan import plan_warnings
from steelyard.engine.tiers.experiment import run_experiment
from steelyard.errors import InputError
from steelyard.evalsets import experiments
from steelyard.records import Answer, Attempt, Price, Reply, Verify
from steelyard.settings import load as load_settings
from support.asking import KEY
from support.facts import facts, response_bodies
from support.fault_server import (
    Behaviour,
    FaultServer,
    Request,
    breaks_json,
    by_prompt,
    closes_mid_body,
    closes_mid_chunk,
    drips,
    drops_next,
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

SETTINGS = Settings(max_retries=2, retry_delay_ms=5, deadline_secs=30)
KEYS = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
HOW: dict[str, Any] = {"settings": SETTINGS, "environment": KEYS}
BOTH = ["openai/m", "anthropic/m"]
"""Every fault is met in both wire formats."""
SOON = {"retry-after": "0.05"}


def cases(*names: str) -> list[Case]:
    return [Case(id=name, prompt=f"prompt of {name}", target="answer") for name in names]


def each(*names: str, count: int = 1, models: Iterable[str] = BOTH) -> Counter[tuple[str, str]]:
    """So many of something for each model and case."""
    return Counter({(model, name): count for model in models for name in names})


def run(server: FaultServer, folder: Path, asked: list[Case], models: Any = BOTH, **given: Any) -> steelyard.Run:
    chosen: dict[str, Any] = {
        name: given.pop(name) for name in ("settings", "max_cost", "parallelism") if name in given
    }
    url = f"{server.url}/v1"
    # a key goes only to an address that the same environment names
    environment = {**KEYS, "OPENAI_BASE_URL": url, "ANTHROPIC_BASE_URL": url}
    means = Means(**{**HOW, "environment": environment, **chosen})
    return steelyard.run(asked, models=models, base_url=url, output=folder, means=means, **given)


def resume(folder: Path, **means: Any) -> steelyard.Run:
    return steelyard.resume(folder, means=Means(**{**HOW, **means}))


def settled(server: FaultServer, folder: Path, planned: Counter[tuple[str, str]]) -> None:
    """Every attempt has one reply and one verdict, and every answer the server sent whole is one of the replies."""
    found = facts(folder)
    assert found.replied() == planned
    assert found.judged() == planned
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


@pytest.mark.parametrize("fault", RETRIED)
def test_a_passing_fault_costs_a_retry_and_a_lasting_one_its_own_attempts(
    server: FaultServer, tmp_path: Path, fault: str
) -> None:
    fails = RETRIED[fault]
    server.script = by_prompt({"prompt of flaky": [fails], "prompt of shaky": [fails, fails], "prompt of dead": fails})
    done = run(server, tmp_path / "run", cases("flaky", "shaky", "dead", "fine"))
    found = facts(done.folder)
    assert found.replied() == found.judged() == each("flaky", "shaky", "fine")
    assert found.failed() == each("dead")
    assert len(found.failures) == 2
    assert found.texts == sorted(server.answered)
    asked = [server.asked(f"prompt of {name}") for name in ("fine", "flaky", "shaky", "dead")]
    assert asked == [2, 4, 6, 6]
    assert [model.missing for model in done.summary.models] == [1, 1]


def test_a_server_that_hangs_is_left_at_the_deadline(server: FaultServer, tmp_path: Path) -> None:
    server.script = by_prompt({"prompt of flaky": [hangs], "prompt of dead": hangs})
    settings = Settings(max_retries=1, retry_delay_ms=5, deadline_secs=2)
    done = run(server, tmp_path / "run", cases("dead", "flaky", "fine"), settings=settings)
    found = facts(done.folder)
    assert found.replied() == each("flaky", "fine", "dead")
    assert [reply.case for reply in found.replies if reply.answer.finish == "timeout"] == ["dead"] * 2
    assert found.texts == sorted(["", "", *server.answered])
    assert server.asked("prompt of dead") == 4


def test_an_answer_in_drips_is_a_reply_in_time_and_none_too_late(server: FaultServer, tmp_path: Path) -> None:
    server.script = by_prompt({"prompt of quick": drips(0.01), "prompt of slow": drips(0.5, pieces=20)})
    settings = Settings(max_retries=0, deadline_secs=2)
    done = run(server, tmp_path / "run", cases("quick", "slow", "fine"), settings=settings)
    found = facts(done.folder)
    assert found.replied() == each("quick", "fine", "slow")
    assert [reply.case for reply in found.replies if reply.answer.finish == "timeout"] == ["slow"] * 2
    assert found.texts == sorted(["", "", *server.answered])


ALONE: dict[str, Behaviour] = {
    "400": refuses(400),
    "402": refuses(402),
    "413": refuses(413),
    "422": refuses(422),
    "too much": sends_too_much,
}


@pytest.mark.parametrize("fault", ALONE)
def test_a_request_that_is_refused_is_not_repeated_and_stops_nobody_else(
    server: FaultServer, tmp_path: Path, fault: str
) -> None:
    server.script = by_prompt({"prompt of bad": ALONE[fault], "prompt of worse": ALONE[fault]})
    done = run(server, tmp_path / "run", cases("bad", "worse", "fine", "well"))
    found = facts(done.folder)
    assert found.replied() == each("fine", "well")
    assert found.failed() == each("bad", "worse")
    assert done.stopped == ()
    assert set(Counter((request.path, request.prompt) for request in server.requests).values()) == {1}

    server.script = healthy
    resume(done.folder)
    settled(server, done.folder, each("bad", "worse", "fine", "well"))


EVERYONE: dict[str, Behaviour] = {
    "401": refuses(401, f"Incorrect API key: {KEY}"),
    "403": refuses(403),
    "404": refuses(404, "no such model"),
    "redirect": sends(b"", status=302, headers={"location": "https://elsewhere.example/"}),
    "empty purse": sends({"error": {"message": "pay first", "code": "insufficient_quota"}}, status=429),
}


@pytest.mark.parametrize("fault", EVERYONE)
def test_what_no_request_can_survive_is_asked_a_few_times_and_told_once(
    server: FaultServer, tmp_path: Path, fault: str
) -> None:
    server.script = lambda request: EVERYONE[fault]
    planned = [f"case-{number}" for number in range(30)]
    done = run(server, tmp_path / "run", cases(*planned))
    assert [reason.partition(" was given up: ")[0] for reason in done.stopped] == BOTH
    assert all(server.url in reason for reason in done.stopped)
    assert not done.complete
    # three in a row, and those that were in flight by then, and none of them twice
    assert len(server.requests) <= 14
    assert set(Counter((request.path, request.prompt) for request in server.requests).values()) == {1}
    assert facts(done.folder).replies == []

    server.script = healthy
    again = resume(done.folder)
    assert again.stopped == ()
    settled(server, done.folder, each(*planned))


def odd_body(text: str = "answer", **usage: Any) -> bytes:
    """A body that both wire formats read, with odd numbers."""
    counts = {"prompt_tokens": 1, "completion_tokens": 2, "input_tokens": 1, "output_tokens": 2} | usage
    choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
    content = [{"type": "text", "text": text}]
    return json.dumps({"choices": [choice], "content": content, "stop_reason": "end_turn", "usage": counts}).encode()


CHOICE = {"index": 0, "message": {"content": "half an ans"}}
SAYS_IT_FAILED: dict[str, Behaviour] = {
    "finish error": says("half an ans", finish="error"),
    "finish abort": says("half an ans", finish="abort"),
    "no resources": says("", finish="insufficient_system_resource"),
    "an error beside": says("half an ans", error={"message": "upstream died"}),
    "an error within": sends({"choices": [{**CHOICE, "error": {"code": 502, "message": "upstream died"}}]}),
    "an odd end": says("", finish="vexed"),
    "an error behind": sends(odd_body("half an ans") + b'{"error": {"message": "upstream died"}}'),
    "lines of a stream": sends(
        b"".join(odd_body("half").replace(b'"stop"', b"null").replace(b'"end_turn"', b"null") + b"\n" for _ in "ab")
    ),
    "a stream": sends(b'data: {"choices": [{"delta": {"content": "half"}}]}\n\ndata: {"error": "died"}\n\n'),
}


def test_a_success_that_says_it_failed_is_asked_for_again_and_never_judged(server: FaultServer, tmp_path: Path) -> None:
    planned = [name.replace(" ", "-") for name in SAYS_IT_FAILED]
    faults = {f"prompt of {name.replace(' ', '-')}": fault for name, fault in SAYS_IT_FAILED.items()}
    server.script = by_prompt({prompt: [fault] for prompt, fault in faults.items()})
    done = run(server, tmp_path / "run", cases(*planned))
    found = facts(done.folder)
    assert found.replied() == found.judged() == each(*planned)
    assert not any("half" in reply.answer.text for reply in found.replies)
    assert {server.asked(prompt) for prompt in faults} == {4}

    server.script = by_prompt(faults)
    down = run(server, tmp_path / "down", cases(*planned), settings=Settings(max_retries=0))
    assert facts(down.folder).replies == []
    assert [(model.attempts, model.missing) for model in down.summary.models] == [(0, len(planned))] * 2
    assert down.exit_code == 3


def test_a_filtered_input_is_a_refusal_where_that_is_a_class_and_else_missing_and_stops_nobody(
    server: FaultServer, tmp_path: Path
) -> None:
    # more than it takes to give a model up
    hostile = [f"hostile-{number}" for number in range(12)]
    server.script = by_prompt({f"prompt of {name}": refuses(403, "Your input was flagged") for name in hostile})
    done = run(server, tmp_path / "responses", cases(*hostile, "fine"))
    found = facts(done.folder)
    assert (found.failures, done.stopped) == ([], ())
    assert found.replied() == found.judged() == each(*hostile, "fine")
    refused = [verdict.found.label for verdict in found.verdicts if verdict.case != "fine"]
    assert refused == ["refusal"] * 24

    judged = [msgspec.structs.replace(case, target="", verify=Verify(kind="judge")) for case in cases(*hostile, "fine")]
    other = run(server, tmp_path / "others", judged)
    assert other.stopped == ()
    assert facts(other.folder).failed() == each(*hostile)
    assert facts(other.folder).replied() == each("fine")
    assert {server.asked(f"prompt of {name}") for name in hostile} == {4}


PAID: dict[str, tuple[bytes, str]] = {
    "half a surrogate pair": (odd_body("answer \ud83d"), "answer \ufffd"),
    "a bad byte": (odd_body("answer @").replace(b"@", b"\xff"), "answer \ufffd"),
    "a raw newline": (odd_body("answer @").replace(b"@", b"\n"), "answer \n"),
    "no usage": (odd_body().replace(b'"usage": {', b'"usage": null, "x": {'), "answer"),
    "usage that is a list": (odd_body().replace(b'"usage": {', b'"usage": [], "x": {'), "answer"),
    "tokens 1e30": (odd_body(completion_tokens=1e30, output_tokens=1e30), "answer"),
    "tokens in words": (odd_body(completion_tokens="abc", output_tokens="abc"), "answer"),
    "tokens below zero": (odd_body(prompt_tokens=-5, input_tokens=-5), "answer"),
    "tokens without end": (odd_body(prompt_tokens=0).replace(b": 0,", b": 1" + b"0" * 5000 + b","), "answer"),
    "tokens that are true": (odd_body(completion_tokens=True, output_tokens=True), "answer"),
    "cost NaN": (odd_body(cost=float("nan")), "answer"),
    "cost -1": (odd_body(cost=-1), "answer"),
    "cost 1e308": (odd_body(cost=1e308), "answer"),
    "cost infinite": (odd_body(cost=float("inf")), "answer"),
    "cost in words": (odd_body(cost="free"), "answer"),
    "more cached than sent": (
        odd_body(prompt_tokens_details={"cached_tokens": 10**6}, cache_read_input_tokens=10**6),
        "answer",
    ),
    "a quoted key": (odd_body(f"answer {KEY}"), "answer ***"),
    "garbage after the end": (odd_body() + b"\r\n<html>502 Bad Gateway</html>", "answer"),
    "garbage with a key": (odd_body() + f" {KEY}".encode(), "answer"),
    "the same twice": (odd_body() + b"\n" + odd_body(), "answer"),
    "a bad byte after the end": (odd_body() + b"\xff\x00", "answer"),
    "brackets after the end": (odd_body() + b"}" + b"[" * 100_000, "answer"),
}


def test_a_paid_reply_is_stored_whatever_its_accounting_says(server: FaultServer, tmp_path: Path) -> None:
    names = {name.replace(" ", "-"): name for name in PAID}
    server.script = by_prompt({f"prompt of {name}": sends(PAID[key][0]) for name, key in names.items()})
    prices = {model: Price(input=1, output=2, cached=0.5) for model in BOTH}
    done = run(server, tmp_path / "run", cases(*names), settings=Settings(max_retries=2, prices=prices))
    found = facts(done.folder)
    assert found.failures == []
    assert found.replied() == found.judged() == each(*names)
    assert len(server.requests) == 2 * len(names)
    for reply in found.replies:
        assert reply.answer.text == PAID[names[reply.case]][1]
        if reply.case.startswith(("tokens", "cost")) and reply.model == "openai/m":
            assert reply.answer.note, reply.case
        follows = reply.case.endswith("after-the-end") or reply.case in ("garbage-with-a-key", "the-same-twice")
        assert ("characters after the answer were left out" in reply.answer.note) is follows
        assert KEY[:8] not in reply.answer.note
        assert reply.answer.cost is None or 0 <= reply.answer.cost.usd < 1
    assert all(model.missing == 0 for model in done.summary.models)
    kept = {(model, case): body for model, case, body in response_bodies(done.folder)}
    assert kept == {
        (model, name): PAID[key][0].replace(KEY.encode(), b"***") for model in BOTH for name, key in names.items()
    }


def test_a_response_that_no_answer_can_be_made_of_is_kept_too(server: FaultServer, tmp_path: Path) -> None:
    broken = b'{"choices": [{"message": {"content": "dear words"}, "finish_reason": "error"}]}'
    server.script = by_prompt({"prompt of broken": [sends(broken)]})
    done = run(server, tmp_path / "run", cases("broken"), "openai/m")
    bodies = [body for _, _, body in response_bodies(done.folder)]
    assert bodies[0] == broken
    assert len(bodies) == 2


ODD: dict[str, tuple[Behaviour, str, str]] = {
    "empty": (says(""), "", "stop"),
    "cut off": (says("half an answ", finish="length"), "half an answ", "length"),
    "refusal": (says("I will not.", finish="refusal"), "I will not.", "refusal"),
    "any character": (says("answer \x00\x1b[31m\u2028\U0001f600"), "answer \x00\x1b[31m\u2028\U0001f600", "stop"),
}


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_answer_is_an_answer(server: FaultServer, tmp_path: Path, kind: str) -> None:
    behaviour, text, finish = ODD[kind]
    server.script = by_prompt({"prompt of odd": behaviour})
    done = run(server, tmp_path / "run", cases("odd", "fine"))
    found = facts(done.folder)
    assert found.failures == []
    assert found.replied() == found.judged() == each("odd", "fine")
    odd = [reply.answer for reply in found.replies if reply.case == "odd"]
    assert [(answer.text, answer.finish) for answer in odd] == [(text, finish)] * 2
    assert server.asked("prompt of odd") == 2


def test_the_right_json_under_a_wrong_name_is_an_answer(server: FaultServer, tmp_path: Path) -> None:
    server.script = by_prompt({"prompt of odd": sends_wrong_type})
    done = run(server, tmp_path / "run", cases("odd", "fine"))
    settled(server, done.folder, each("odd", "fine"))


def test_faults_of_every_kind_at_once_lose_nothing_and_count_nothing_twice(server: FaultServer, tmp_path: Path) -> None:
    kinds = [*RETRIED.values(), *ALONE.values(), drips(0.001), sends_wrong_type]
    numbers = iter(range(10**6))

    def script(request: Request) -> Behaviour:
        # three requests in five meet a fault, each time another one
        number = next(numbers)
        return kinds[number * 7 % len(kinds)] if number % 5 < 3 else ok

    server.script = script
    planned = [f"case-{number}" for number in range(15)]
    wanted = each(*planned, count=3)
    settings = Settings(max_retries=4, retry_delay_ms=1, deadline_secs=30)
    done = run(server, tmp_path / "run", cases(*planned), samples=3, settings=settings)
    sittings = 1
    while facts(done.folder).replied() != wanted:
        assert facts(done.folder).texts == sorted(server.answered)
        assert sittings < 20
        resume(done.folder, settings=settings)
        sittings += 1
    settled(server, done.folder, wanted)
    assert sittings > 1


def test_a_dead_model_does_not_get_the_whole_run_and_another_one_does_not_suffer(
    server: FaultServer, tmp_path: Path
) -> None:
    def script(request: Request) -> Behaviour:
        return refuses(500, "the model is on fire") if request.body["model"] == "dead" else ok

    server.script = script
    planned = [f"case-{number}" for number in range(200)]
    done = run(server, tmp_path / "run", cases(*planned), ["openai/dead", "openai/well"])
    assert facts(done.folder).replied() == each(*planned, models=["openai/well"])
    (reason,) = done.stopped
    assert "openai/dead was given up: 8 attempts in a row got no answer" in reason
    assert "500 the model is on fire" in reason
    to_dead = [request for request in server.requests if request.body["model"] == "dead"]
    assert len(to_dead) <= 100


def test_a_server_that_is_not_there_is_given_up(tmp_path: Path) -> None:
    done = steelyard.run(
        cases(*(f"case-{number}" for number in range(200))),
        models="openai/m",
        base_url="http://127.0.0.1:9/v1",
        output=tmp_path / "run",
        means=Means(settings=SETTINGS, environment={}),
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
        **{f"prompt of e{number}": refuses(401, f"Incorrect API key provided: {KEY}") for number in range(3)},
    }
    server.script = by_prompt(leaks)
    refused = ("a", "b", "c", "d", "e0", "e1", "e2")
    done = run(server, tmp_path / "run", cases(*refused, "f"), parallelism=1)
    assert facts(done.folder).failed() == each(*refused)
    assert len(done.stopped) == 2
    assert KEY[:8] not in " ".join(done.stopped)
    for path in done.folder.rglob("*.*"):
        assert path.is_dir() or KEY[:8].encode() not in path.read_bytes()


def test_a_wait_of_hours_is_not_waited_for(server: FaultServer, tmp_path: Path) -> None:
    server.script = by_prompt({"prompt of later": refuses(429, headers={"retry-after": "7200"})})
    done = run(server, tmp_path / "run", cases("later", "fine"))
    found = facts(done.folder)
    assert found.failed() == each("later")
    assert found.replied() == each("fine")
    assert server.asked("prompt of later") == 2
    assert [" was left for later: it asks for 7,200 s" in reason for reason in done.stopped] == [True, True]
    assert all(re.search(r"; resume after 20\d\d-\d\d-\d\dT[\d:]+Z$", reason) for reason in done.stopped)
    assert done.exit_code == 3


def test_a_used_up_rate_limit_that_names_a_far_moment_leaves_a_model_for_later(
    server: FaultServer, tmp_path: Path
) -> None:
    for place, reset in enumerate(("1999999999", "1999999999000", "24h", "86400")):
        headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": reset}
        server.script = lambda request, headers=headers: says(headers=headers)  # type: ignore[misc]
        planned = [f"case-{number}" for number in range(20)]
        done = run(server, tmp_path / f"run-{place}", cases(*planned), "openai/m")
        assert "openai/m was left for later: it asks for" in done.stopped[0]
        assert "the rate limit is used up" in done.stopped[0]
        assert done.exit_code == 3
        # every answer that came is kept
        assert 1 <= len(facts(done.folder).replies) < 20


def test_short_waits_without_an_answer_add_up_to_the_bound(server: FaultServer, tmp_path: Path) -> None:
    server.script = lambda request: refuses(429, "slow down", headers={"retry-after": "0.2"})
    settings = Settings(max_retries=1000, max_wait_secs=1)
    done = run(server, tmp_path / "run", cases("a", "b"), "openai/m", settings=settings)
    assert "openai/m was left for later" in done.stopped[0]
    assert "slow down" in done.stopped[0]
    server.script = healthy
    resume(done.folder, settings=settings)
    settled(server, done.folder, each("a", "b", models=["openai/m"]))


def test_one_refusal_between_answers_concerns_its_attempt_alone(server: FaultServer, tmp_path: Path) -> None:
    refusals = {"x401": refuses(401, "stray"), "x403": refuses(403), "x404": refuses(404, "no allowed providers")}
    server.script = by_prompt({f"prompt of {name}": refusal for name, refusal in refusals.items()})
    order = ["a", "x401", "b", "x403", "x404", "c", "x401-fine", "d"]
    done = run(server, tmp_path / "run", cases(*order), parallelism=1)
    assert done.stopped == ()
    assert facts(done.folder).failed() == each(*refusals)
    assert facts(done.folder).replied() == each(*(name for name in order if name not in refusals))


def test_a_request_that_was_never_read_is_sent_again_without_counting(server: FaultServer, tmp_path: Path) -> None:
    server.script = lambda request: drops_next
    planned = [f"case-{number}" for number in range(12)]
    done = run(server, tmp_path / "run", cases(*planned), parallelism=2, settings=Settings(max_retries=0))
    assert facts(done.folder).failures == []
    settled(server, done.folder, each(*planned))
    assert len(server.requests) == 2 * len(planned)
    assert server.connections > 4


# the client leaves a handshake that is given up to the garbage collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_tls_to_a_plain_port_is_named(server: FaultServer, tmp_path: Path) -> None:
    server.script = healthy
    silent = run_at(f"https://127.0.0.1:{server.port}/v1", tmp_path / "silent", deadline=1.5)
    assert "the TLS handshake was not answered: write http:// instead of https://" in silent

    def answers(connection: socket.socket) -> None:
        with connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=lambda: answers(listener.accept()[0]))
        serving.start()
        plain = run_at(f"https://127.0.0.1:{listener.getsockname()[1]}/v1", tmp_path / "plain", deadline=30)
        serving.join()
    assert "the port does not speak TLS: write http:// instead of https://" in plain


def run_at(url: str, folder: Path, deadline: float) -> str:
    """Why one attempt at a server failed."""
    means = Means(settings=Settings(max_retries=0, deadline_secs=deadline), environment={})
    done = steelyard.run(cases("a"), models="openai/m", base_url=url, output=folder, means=means)
    (failure,) = facts(done.folder).failures
    return failure.message


def test_only_a_provider_that_is_asked_needs_its_key(server: FaultServer, tmp_path: Path) -> None:
    config = tmp_path / "steelyard.toml"
    config.write_text(
        f'[providers.local]\ntype = "openai"\nbase_url = "{server.url}/v1"\n'
        '[providers.other]\ntype = "openai"\nbase_url = "https://example.invalid"\napi_key = "${NOT_SET}"\n'
        'headers = { x-team = "${NOT_SET_EITHER}" }\n'
    )
    settings, problems = load_settings(config, {})
    assert problems == []
    means = Means(settings=settings, environment={})
    done = steelyard.run(cases("a"), models="local/m", output=tmp_path / "run", means=means)
    assert facts(done.folder).replied() == each("a", models=["local/m"])
    with pytest.raises(InputError, match="provider other: api_key asks for the environment variable NOT_SET, which is"):
        steelyard.run(cases("a"), models="other/m", output=tmp_path / "other", means=means)

    # what has all its replies is asked no more
    url = f"{server.url}/v1"
    keys = {**KEYS, "OPENAI_BASE_URL": url, "ANTHROPIC_BASE_URL": url}
    both = steelyard.run(
        cases("a"), models=BOTH, output=tmp_path / "both", means=Means(settings=SETTINGS, environment=keys)
    )
    assert steelyard.resume(both.folder, means=Means(settings=SETTINGS, environment={})).stopped == ()
    with pytest.raises(InputError, match="provider openai: no key"):
        steelyard.resume(both.folder, samples=2, means=Means(settings=SETTINGS, environment={}))

    # nor is a model that lacks nothing asked for its key because another one lacks a reply
    server.script = lambda request: refuses(400) if request.path.endswith("/messages") else ok
    half = steelyard.run(
        cases("a"), models=BOTH, output=tmp_path / "half", means=Means(settings=SETTINGS, environment=keys)
    )
    server.script = healthy
    lacking = {name: value for name, value in keys.items() if not name.startswith("OPENAI")}
    steelyard.resume(half.folder, means=Means(settings=SETTINGS, environment=lacking))
    assert facts(half.folder).replied() == each("a")


def test_only_judges_and_tiers_that_are_asked_need_their_keys(server: FaultServer, tmp_path: Path) -> None:
    (tmp_path / "cases.toml").write_text(
        '[eval_set]\nid = "s"\nname = "s"\n[[cases]]\nid = "a"\nname = "a"\nprompt = "prompt of a"\ntarget = "answer"\n'
    )
    (tmp_path / "rubric.toml").write_text('[categories.works]\ncheck = "It works."\n')
    (tmp_path / "experiment.toml").write_text(
        '[experiment]\nid = "e"\nname = "e"\ncases = ["cases.toml"]\nruns = 1\n'
        '[judging]\nrubric = "rubric.toml"\njudges = ["anthropic/j"]\n[[tiers]]\nname = "T0"\nmodel = "openai/m"\n'
    )
    judged = says('{"categories": {"works": {"score": 1, "reason": "r"}}}')
    server.script = lambda request: judged if request.path.endswith("/messages") else ok
    url = f"{server.url}/v1"
    keys = {**KEYS, "OPENAI_BASE_URL": url, "ANTHROPIC_BASE_URL": url}
    done = run_experiment(
        experiments.load(tmp_path / "experiment.toml"),
        output=tmp_path / "run",
        means=Means(settings=SETTINGS, environment=keys),
    )
    assert done.stopped == ()
    asked = len(server.requests)
    assert asked == 2
    assert steelyard.resume(done.folder, means=Means(settings=SETTINGS, environment={})).stopped == ()
    assert len(server.requests) == asked
    journal = done.folder / "attempts.jsonl"
    journal.write_bytes(b"".join(line for line in journal.read_bytes().splitlines(True) if b'"appraisal"' not in line))
    with pytest.raises(InputError, match="provider anthropic: no key"):
        steelyard.resume(done.folder, means=Means(settings=SETTINGS, environment={}))
    lacking = {name: value for name, value in keys.items() if not name.startswith("OPENAI")}
    assert steelyard.resume(done.folder, means=Means(settings=SETTINGS, environment=lacking)).stopped == ()
    assert len(server.requests) == asked + 1


def test_a_temperature_that_most_servers_refuse_is_warned_of() -> None:
    assert plan_warnings({"temperature": 2}, 3, (1,)) == plan_warnings({}, 3, (1,)) == []
    for odd in (2.5, -0.1, float("nan"), float("inf")):
        assert "outside 0 to 2" in plan_warnings({"temperature": odd}, 3, (1,))[0]


def test_parallelism_is_a_cap_on_requests_in_flight(server: FaultServer, tmp_path: Path) -> None:
    server.script = lambda request: drips(0.01, pieces=3)
    planned = cases(*(f"case-{number}" for number in range(12)))
    run(server, tmp_path / "run", planned, "openai/m", parallelism=2)
    assert server.most_at_once == 2


def recording(path: Path, lines: Iterable[tuple[str, bool]]) -> Path:
    """Our own replies to cases, fresh or to another prompt."""
    with path.open("wb") as file:
        for case, fresh in lines:
            asked = Attempt(case=cases(case)[0], model="openai/m").asked if fresh else "0" * 32
            reply = Reply(
                key=case, at="", case=case, model="openai/m", number=1, asked=asked, answer=Answer(text="answer")
            )
            file.write(msgspec.json.encode(reply) + b"\n")
    return path


def test_a_recording_is_never_given_up_and_what_it_lacks_is_counted(tmp_path: Path) -> None:
    planned = [f"case-{number}" for number in range(30)]
    lines = [(name, number >= 20) for number, name in enumerate(planned)]
    path = recording(tmp_path / "stale.jsonl", [*lines, ("elsewhere", True), ("nowhere", True)])
    done = steelyard.run(cases(*planned, "new"), models=f"replay:{path}", output=tmp_path / "run")
    found = facts(done.folder)
    assert done.stopped == ()
    assert found.replied() == found.judged() == each(*planned[20:], models=["openai/m"])
    assert found.failed() == each(*planned[:20], models=["openai/m"])
    assert "openai/m: 2 recorded replies are for no case of this run" in done.notes
    assert done.summary.models[0].missing == 20

    with pytest.raises(InputError, match=r'no recorded reply belongs to a case of this run, such as "other"'):
        steelyard.run(cases("other"), models=f"replay:{path}", output=tmp_path / "other")
    assert not (tmp_path / "other").exists()


PRICED = Settings(max_retries=1, retry_delay_ms=5, prices={"openai/m": Price(input=1000, output=2000)})
"""An answer with 10 tokens in and 5 out costs two cents; a request for at most 20 tokens out may cost over seven."""
SHORT = {"max_tokens": 20}


def test_a_budget_is_never_exceeded_and_a_larger_one_carries_on(server: FaultServer, tmp_path: Path) -> None:
    planned = [f"case-{number}" for number in range(30)]
    server.script = lambda request: drips(0.005, pieces=2)
    done = run(server, tmp_path / "run", cases(*planned), "openai/m", settings=PRICED, max_cost=0.3, parameters=SHORT)
    found = facts(done.folder)
    assert 0.2 <= found.spent <= 0.3
    assert found.failures == []
    assert done.stopped == ("the budget of $0.3 does not cover another request",)
    assert done.summary.models[0].cost_usd == pytest.approx(found.spent)

    again = resume(done.folder, settings=PRICED, max_cost=0.4)
    assert again.stopped
    assert found.spent < facts(done.folder).spent <= 0.4

    resume(done.folder, settings=PRICED)
    settled(server, done.folder, each(*planned, models=["openai/m"]))


def test_what_is_in_flight_is_counted_before_it_is_answered(server: FaultServer, tmp_path: Path) -> None:
    # each reply is as long as it may be: whoever looks only at what is spent lets too many begin at once
    server.script = lambda request: says(usage={"input": 32, "output": 20})
    planned = cases(*(f"case-{number}" for number in range(20)))
    done = run(server, tmp_path / "run", planned, "openai/m", settings=PRICED, max_cost=0.2, parameters=SHORT)
    assert 0.07 <= facts(done.folder).spent <= 0.2
    assert done.stopped


def test_an_answer_whose_cost_nobody_tells_counts_as_the_most_it_can_cost(server: FaultServer, tmp_path: Path) -> None:
    server.script = lambda request: sends(
        {"choices": [{"message": {"content": "answer"}}], "content": [{"type": "text", "text": "answer"}]}
    )
    planned = cases(*(f"case-{number}" for number in range(40)))
    done = run(server, tmp_path / "run", planned, "openai/m", settings=PRICED, max_cost=0.5, parameters=SHORT)
    assert done.stopped
    asked = len(server.requests)
    assert 1 <= asked <= 8

    resume(done.folder, settings=PRICED, max_cost=0.5)
    assert len(server.requests) == asked


def test_a_budget_without_a_price_is_refused_before_anything_is_asked(server: FaultServer, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the price of openai/m is unknown.*\[prices\.\"openai/m\"\]"):
        run(server, tmp_path / "run", cases("a"), "openai/m", max_cost=1.0)
    assert server.requests == []
    assert not (tmp_path / "run").exists()

    done = run(server, tmp_path / "run", cases("a"), "openai/m")
    with pytest.raises(InputError, match="the price of openai/m is unknown"):
        resume(done.folder, max_cost=1.0)


def test_a_budget_that_suffices_for_nothing_asks_nothing(server: FaultServer, tmp_path: Path) -> None:
    done = run(server, tmp_path / "run", cases("a", "b"), "openai/m", settings=PRICED, max_cost=0.01, parameters=SHORT)
    assert done.stopped == ("the budget of $0.01 does not cover another request",)
    assert server.requests == []
    assert not done.summary.conclusive
    resume(done.folder, settings=PRICED)
    settled(server, done.folder, each("a", "b", models=["openai/m"]))
