"""No answer in time: the model's where it answers others, an outage where it does not."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import steelyard
from steelyard import Case, Means, Settings
from steelyard.engine.pace import MAX_FAILURES_IN_A_ROW
from steelyard.records import Verify
from support.asking import KEY
from support.facts import facts
from support.fault_server import Behaviour, Exchange, FaultServer, Request, by_prompt, hangs, hangs_up, healthy, ok

SOON = Settings(max_retries=0, retry_delay_ms=5, deadline_secs=2)
KEYS = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}


def cases(*names: str) -> list[Case]:
    return [Case(id=name, prompt=name, target="answer", verify=Verify(kind="response")) for name in names]


def numbered(count: int) -> list[str]:
    return [f"case-{number}" for number in range(count)]


def means(settings: Settings = SOON, **others: Any) -> Means:
    return Means(settings=settings, environment=KEYS, **others)


def run(server: FaultServer, folder: Path, names: list[str], models: Any = "openai/m", **given: Any) -> steelyard.Run:
    return steelyard.run(
        cases(*names), models=models, base_url=f"{server.url}/v1", output=folder / "run", means=means(**given)
    )


def timed_out(folder: Path) -> Counter[tuple[str, str]]:
    replies = facts(folder).replies
    return Counter((reply.model, reply.case) for reply in replies if reply.answer.finish == "timeout")


def labels(folder: Path) -> dict[str, str]:
    """The last verdict on each case."""
    return {verdict.case: verdict.found.label for verdict in facts(folder).verdicts}


def answers_first(count: int, then: Behaviour) -> Any:
    """A server that does something else from some request on."""
    left = iter([ok] * count)
    return lambda request: next(left, then)


def test_no_answer_in_time_is_the_models_where_it_answers_others(server: FaultServer, tmp_path: Path) -> None:
    server.script = by_prompt({"case-1": hangs, "case-5": hangs})
    models = ["openai/m", "anthropic/m"]
    done = run(server, tmp_path, numbered(8), models, settings=replace(SOON, max_retries=1))
    found = facts(done.folder)
    assert found.failures == []
    assert timed_out(done.folder) == Counter({(model, case): 1 for model in models for case in ("case-1", "case-5")})
    (answer, *_) = (reply.answer for reply in found.replies if reply.case == "case-1")
    assert (answer.text, answer.error, answer.latency) == ("", "no answer within 2 s", 2)
    assert Counter(labels(done.folder).values()) == {"": 6, "timeout": 2}
    assert (server.asked("case-1"), server.asked("case-0")) == (4, 2)
    assert done.complete


def test_what_timed_out_is_not_asked_again_and_stays_what_it_is(server: FaultServer, tmp_path: Path) -> None:
    server.script = by_prompt({"case-1": hangs})
    done = run(server, tmp_path, numbered(4))
    asked = len(server.requests)
    again = steelyard.resume(done.folder, means=means())
    assert (len(server.requests), again.complete) == (asked, True)
    before = len(facts(done.folder).verdicts)
    steelyard.verify(done.folder, means=means())
    assert len(facts(done.folder).verdicts) > before
    assert labels(done.folder) == {"case-0": "", "case-1": "timeout", "case-2": "", "case-3": ""}


def test_one_at_a_time_a_time_out_after_an_answer_is_the_models_and_one_before_any_is_owed(
    server: FaultServer, tmp_path: Path
) -> None:
    server.script = by_prompt({"case-0": hangs, "case-2": hangs})
    done = run(server, tmp_path, numbered(4), parallelism=1)
    assert timed_out(done.folder) == {("openai/m", "case-2"): 1}
    assert facts(done.folder).failed() == {("openai/m", "case-0"): 1}
    assert "taken for an outage" in facts(done.folder).failures[0].message

    server.script = healthy
    assert steelyard.resume(done.folder, means=means()).complete
    assert labels(done.folder)["case-0"] == ""


def test_a_server_that_answers_nobody_is_an_outage(server: FaultServer, tmp_path: Path) -> None:
    server.script = lambda request: hangs
    done = run(server, tmp_path, numbered(30))
    assert facts(done.folder).replies == []
    (reason,) = done.stopped
    assert f"openai/m was given up: {MAX_FAILURES_IN_A_ROW} attempts in a row got no answer" in reason


@pytest.mark.parametrize("answered", [1, 6])
def test_an_outage_that_begins_in_the_middle_is_no_wrong_answer(
    server: FaultServer, tmp_path: Path, answered: int
) -> None:
    server.script = answers_first(answered, then=hangs)
    done = run(server, tmp_path, numbered(40))
    assert timed_out(done.folder) == {}
    assert len(facts(done.folder).replies) == answered
    assert len(done.stopped) == 1
    assert all("taken for an outage" in failure.message for failure in facts(done.folder).failures)

    server.script = healthy
    assert steelyard.resume(done.folder, means=means()).complete
    assert facts(done.folder).judged() == Counter({("openai/m", name): 1 for name in numbered(40)})
    assert timed_out(done.folder) == {}


def test_one_at_a_time_an_outage_ends_the_asking_after_as_many_attempts_as_ever(
    server: FaultServer, tmp_path: Path
) -> None:
    server.script = answers_first(2, then=hangs)
    settings = Settings(max_retries=0, deadline_secs=1)
    done = run(server, tmp_path, numbered(40), parallelism=1, settings=settings)
    found = facts(done.folder)
    assert len(server.requests) == 2 + MAX_FAILURES_IN_A_ROW
    assert timed_out(done.folder).total() == MAX_FAILURES_IN_A_ROW - 1
    assert len(found.failures) == len(done.stopped) == 1
    assert not done.complete


def test_many_that_time_out_together_are_no_outage_where_others_were_answered_meanwhile(
    server: FaultServer, tmp_path: Path
) -> None:
    hanging = numbered(2 * MAX_FAILURES_IN_A_ROW)[::2] + numbered(60)[40::3]
    server.script = by_prompt(dict.fromkeys(hanging, hangs))
    done = run(server, tmp_path, numbered(60))
    assert len(hanging) > MAX_FAILURES_IN_A_ROW
    assert timed_out(done.folder) == Counter({("openai/m", name): 1 for name in hanging})
    assert done.complete


def test_one_model_that_hangs_is_not_proved_to_live_by_another(server: FaultServer, tmp_path: Path) -> None:
    def script(request: Request) -> Behaviour:
        return hangs if request.body["model"] == "dead" else ok

    server.script = script
    done = run(server, tmp_path, numbered(20), ["openai/dead", "openai/well"])
    assert {reply.model for reply in facts(done.folder).replies} == {"openai/well"}
    assert len(done.stopped) == 1


async def turns_down_without_an_end(exchange: Exchange) -> None:
    await exchange.begin(503, {"content-length": "1000"})
    await exchange.gone.wait()


@pytest.mark.parametrize("fault", [turns_down_without_an_end, hangs_up])
def test_a_request_that_was_not_accepted_did_not_time_out(
    server: FaultServer, tmp_path: Path, fault: Behaviour
) -> None:
    server.script = by_prompt({"case-1": fault})
    done = run(server, tmp_path, numbered(4))
    assert timed_out(done.folder) == {}
    assert facts(done.folder).failed() == {("openai/m", "case-1"): 1}


def test_a_server_that_is_not_there_has_not_timed_out(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        done = steelyard.run(
            cases(*numbered(4)), models="openai/m", base_url=url, output=tmp_path / "run", means=means()
        )
    assert facts(done.folder).replies == []
    assert len(facts(done.folder).failures) == 4


def test_a_prompt_that_was_not_read_whole_was_not_accepted(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connections = []

        def answer_small_ones() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                connections.append(connection)
                threading.Thread(target=respond, args=(connection,), daemon=True).start()

        def respond(connection: socket.socket) -> None:
            # one request per connection, told by its size
            head = connection.recv(300)
            if b"content-length: 3" in head.lower():
                return
            body = b'{"choices": [{"message": {"content": "answer"}}]}'
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))

        accepting = threading.Thread(target=answer_small_ones, daemon=True)
        accepting.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        long = Case(id="long", prompt="x" * 32_000_000, target="answer")
        done = steelyard.run(
            [long, *cases("short", "brief")], models="openai/m", base_url=url, output=tmp_path / "run", means=means()
        )
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()
        for connection in connections:
            connection.close()
    assert facts(done.folder).replied() == {("openai/m", "short"): 1, ("openai/m", "brief"): 1}
    assert [failure.case for failure in facts(done.folder).failures] == ["long"]


def test_a_function_or_a_program_that_was_started_has_accepted(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import time\n\ndef ask(prompt):\n    time.sleep(1000 if prompt == 'case-1' else 0)\n    return 'answer'\n"
    )
    program = tmp_path / "model.sh"
    program.write_text('#!/bin/sh\nread prompt\n[ "$prompt" = case-1 ] && sleep 1000\necho answer\n')
    program.chmod(0o755)
    done = steelyard.run(
        cases(*numbered(4)),
        models=[f"python:{tmp_path}/model.py:ask", f"command:{program}"],
        output=tmp_path / "run",
        means=means(),
    )
    assert [case for _, case in timed_out(done.folder).elements()] == ["case-1"] * 2
    assert facts(done.folder).failures == []
