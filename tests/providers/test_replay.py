"""Recorded replies, given again."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

import steelyard
from steelyard import Case, Means, Message
from steelyard.errors import InputError, RecordedFailure, Rejected
from steelyard.protocols import Delivery, Provider, ProviderSettings
from steelyard.providers.replay import connect
from steelyard.records import Answer, Attempt, Cost, Failure, Reply, Verdict, Verify
from steelyard.store.journal import StoredRun
from steelyard.text import verbatim_code
from support.asking import answer, offers

CASE = Case(id="greet", prompt="say hi", target="hi")


def replay(path: Path) -> Mapping[str, Provider]:
    return connect(str(path), ProviderSettings(type="replay"))


def attempt(number: int = 1, case: Case = CASE) -> Attempt:
    return Attempt(case=case, model="m", number=number)


def reply(text: str, number: int = 1, model: str = "openai/m") -> Reply:
    return Reply(
        key=attempt(number).key,
        at="2026-01-01T00:00:00.000Z",
        case=CASE.id,
        model=model,
        number=number,
        asked=attempt(number).asked,
        answer=Answer(text=text, output_tokens=3, cost=Cost(usd=0.5, source="list", date="2026-01-01"), latency=0.25),
    )


def written(path: Path, *lines: Any) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return path


def close(found: Mapping[str, Provider]) -> None:
    for provider in found.values():
        asyncio.run(provider.close())


def texts(found: Mapping[str, Provider], model: str, case: Case = CASE) -> list[str]:
    """All that a model has to say to a case."""

    async def say() -> list[str]:
        numbers = range(1, (found[model].available(case.id) or 0) + 1)
        return [(await found[model].ask(attempt(number, case), Delivery())).text for number in numbers]

    try:
        return asyncio.run(say())
    finally:
        close(found)


def test_replies_come_back_whole_in_the_order_they_were_recorded(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", reply("two", 2), reply("other", model="other/m"), reply("one", 1))
    assert texts(replay(path), "openai/m") == ["two", "one"]
    assert texts(replay(path), "other/m") == ["other"]
    assert answer(replay(path)["openai/m"], attempt()) == reply("two").answer


def test_a_run_folder_is_a_recording_of_its_models(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def ask(prompt, attempt):\n    return f'hi {attempt.number}'\n")
    model, means = f"python:{tmp_path}/model.py:ask", Means(environment={})
    first = steelyard.run([CASE], models=model, samples=3, output=tmp_path / "first", means=means)
    again = steelyard.run([CASE], models=f"replay:{first.folder}", output=tmp_path / "again", means=means)
    for done in (first, again):
        replies = [fact for fact in StoredRun(done.folder).facts() if isinstance(fact, Reply)]
        assert sorted(fact.answer.text for fact in replies) == ["hi 1", "hi 2", "hi 3"]
        assert {fact.model for fact in replies} == {f"python/{model.removeprefix('python:')}"}


def test_a_completion_continues_its_prompt_and_a_solution_stands_alone(tmp_path: Path) -> None:
    talk = (Message(role="user", content="def f():\n"), Message(role="user", content="    # body\n"))
    case = Case(id="greet", prompt=talk, target="x")
    path = written(
        tmp_path / "samples.jsonl",
        {"task_id": "greet", "completion": "    return 1\n", "passed": True},
        {"task_id": "greet", "solution": "def f(): return 2\n", "result": "passed"},
        {"task_id": "greet", "completion": ""},
    )
    whole = "def f():\n\n\n    # body\n"
    assert texts(replay(path), "samples", case) == [f"{whole}    return 1\n", "def f(): return 2\n", whole]


def test_samples_of_a_benchmark_are_code_to_the_letter(tmp_path: Path) -> None:
    stub = "def f():\n"
    case = Case(id="7", prompt="Complete f.", language="python", verify=Verify(stub=stub, entry_point="f"))
    path = written(
        tmp_path / "samples.jsonl",
        {"task_id": 7, "completion": "    return '```'\n\nThat is all."},
        {"task_id": "7", "solution": "def f(): return 2"},
        {"task_id": "7", "completion": ""},
    )
    given = [verbatim_code(text) for text in texts(replay(path), "samples", case)]
    assert given == [f"{stub}    return '```'\n\nThat is all.", "def f(): return 2", stub]


def test_a_reply_to_a_benchmark_stays_a_reply(tmp_path: Path) -> None:
    case = Case(id="greet", prompt="Complete f.", language="python", verify=Verify(stub="def f():\n", entry_point="f"))
    path = written(tmp_path / "replies.jsonl", {"case_id": "greet", "raw_response": "Sure: ..."})
    assert texts(replay(path), "replies", case) == ["Sure: ..."]


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (
            {
                "latency_ms": 955,
                "usage": {"prompt_tokens": 3, "completion_tokens": 4},
                "timestamp_utc": "2025-08-10T07:41:00Z",
            },
            (0.955, 3, 4, "2025-08-10T07:41:00Z"),
        ),
        ({"latency_ms": 0, "input_tokens": 0, "token_usage": {"completion_tokens": 7}}, (None, 0, 7, "")),
        ({"latency_ms": -5, "input_tokens": "many", "timestamp": 12}, (None, None, None, "")),
        ({}, (None, None, None, "")),
    ],
)
def test_what_a_result_took_is_kept_and_what_it_does_not_tell_is_unknown(
    tmp_path: Path, told: dict[str, Any], wanted: tuple[Any, ...]
) -> None:
    line = {"case_id": CASE.id, "model_id": "m", "raw_response": "yes"} | told
    found = connect(str(written(tmp_path / "results.jsonl", line)), ProviderSettings(type="replay"))
    said = asyncio.run(found["m"].ask(attempt(1), Delivery()))
    close(found)
    assert (said.latency, said.input_tokens, said.output_tokens, said.recorded_at) == wanted


def test_results_of_a_suite_bring_their_own_models(tmp_path: Path) -> None:
    line = {"suite_id": "s", "run_id": "r", "timestamp_utc": "t", "classification": {"primary": "pass"}}
    path = written(
        tmp_path / "results.jsonl",
        {**line, "case_id": "greet", "model_id": "m1", "raw_response": "hi"},
        {**line, "case_id": "greet", "model_id": "m2", "raw_response": ""},
        {**line, "case_id": "greet", "model_id": "m3", "raw_response": None, "error": "timeout"},
    )
    assert texts(replay(path), "m1") == ["hi"]
    assert texts(replay(path), "m2") == [""]
    assert texts(replay(path), "m3") == [""]


RESULT = {"case_id": "greet", "suite_id": "s", "run_id": "r", "model_id": "m", "timestamp_utc": "2026-01-01T00:00:00Z"}


def recorded(path: Path, line: Any, case: Case = CASE) -> Answer:
    """What is replayed of one line of a file."""
    return answer(next(iter(replay(written(path / "results.jsonl", line)).values())), attempt(case=case))


@pytest.mark.parametrize(
    ("line", "finish"),
    [
        ({"raw_response": None, "error": "x", "classification": {"primary": "timeout"}}, "timeout"),
        ({"raw_response": None, "error": "timed out", "classification": {"primary": "crash", "details": {}}}, "crash"),
        ({"raw_response": None, "classification": {"primary": "error"}}, "error"),
        ({"raw_response": None, "error": "ReadTimeout", "classification": {"primary": "fail"}}, "timeout"),
        ({"raw_response": None, "error": "request timed out"}, "timeout"),
        ({"raw_response": None, "error": "context deadline exceeded"}, "timeout"),
        ({"raw_response": None, "error": "connect ETIMEDOUT 10.0.0.1:443"}, "timeout"),
        ({"raw_response": None, "error": "killed after the time-out"}, "timeout"),
        ({"error": "thread 'main' panicked"}, "crash"),
        ({"error": "Segmentation fault (core dumped)"}, "crash"),
        ({"error": "exited on signal 9"}, "crash"),
        ({"error": {"code": 500, "message": "no Hispanic model"}}, "error"),
        ({"raw_response": "", "error": "timeout"}, "timeout"),
        ({"raw_response": None, "error": None}, "stop"),
        ({"raw_response": None, "error": ""}, "stop"),
        ({}, "stop"),
        ({"classification": None, "scores": {"accuracy": 0}}, "stop"),
        ({"finish_reason": "length", "raw_response": ""}, "length"),
        ({"finish_reason": "content_filter"}, "content_filter"),
    ],
)
def test_what_came_instead_of_an_answer_is_told_by_its_class_and_else_by_its_words(
    tmp_path: Path, line: dict[str, Any], finish: str
) -> None:
    said = recorded(tmp_path, RESULT | line)
    assert (said.text, said.finish) == ("", finish)
    error = line.get("error") or ""
    assert said.error == (error if isinstance(error, str) else msgspec.json.encode(error).decode())


@pytest.mark.parametrize(
    ("line", "finish"),
    [
        ({"error": "timeout"}, "stop"),
        ({"error": "timeout", "classification": {"primary": "fail"}}, "stop"),
        ({"error": "lost", "classification": {"primary": "timeout"}}, "timeout"),
        ({"classification": {"primary": "crash"}}, "crash"),
        ({"classification": {"primary": "refusal"}}, "stop"),
        ({"finish_reason": "max_tokens"}, "length"),
    ],
)
def test_a_reply_is_judged_as_one_whatever_the_file_calls_it_unless_it_says_that_none_came(
    tmp_path: Path, line: dict[str, Any], finish: str
) -> None:
    said = recorded(tmp_path, RESULT | {"raw_response": "hi"} | line)
    assert (said.text, said.finish, said.error) == ("hi", finish, line.get("error", ""))


def test_the_class_that_a_file_records_is_not_believed(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"raw_response": "hi", "classification": {"primary": "fail"}, "scores": {"accuracy": 0}},
        {"raw_response": "ho", "classification": {"primary": "pass"}, "scores": {"accuracy": 1}},
        {"raw_response": None, "error": "the request timed out", "classification": {"primary": "fail"}},
        {"raw_response": "hi", "finish_reason": "length"},
        {"raw_response": None},
    ]
    path = written(tmp_path / "results.jsonl", *(RESULT | line for line in lines))
    done = steelyard.run([CASE], models=f"replay:{path}", output=tmp_path / "run", means=Means(environment={}))
    verdicts = {fact.number: fact.found for fact in StoredRun(done.folder).facts() if isinstance(fact, Verdict)}
    assert [verdicts[number].label for number in range(1, 6)] == ["", "fail", "timeout", "truncated", "fail"]
    assert "the request timed out" in verdicts[3].reason


def test_code_that_was_never_written_is_missing_and_not_wrong(tmp_path: Path) -> None:
    case = Case(id="greet", prompt="Write f.", language="python")
    with pytest.raises(RecordedFailure, match='for case "greet" an error was recorded and no reply: the API timed out'):
        recorded(tmp_path, RESULT | {"raw_response": None, "error": "the API timed out"}, case)
    # there, running out of time is something that the code did
    said = recorded(tmp_path, RESULT | {"raw_response": "def f(): ...", "classification": {"primary": "timeout"}}, case)
    assert (said.text, said.finish) == ("def f(): ...", "stop")


@pytest.mark.parametrize("key", ["response", "output"])
def test_results_in_other_words_are_read_too(tmp_path: Path, key: str) -> None:
    assert recorded(tmp_path, {"id": "greet", "family": "s", key: "hi", "error": None}).text == "hi"
    assert recorded(tmp_path, {"id": "greet", "family": "s", key: None, "error": "timeout"}).finish == "timeout"
    assert recorded(tmp_path, {"id": "greet", "family": "s", "error": "crashed"}).finish == "crash"
    assert recorded(tmp_path, {"id": "greet", "response": "hi", "output": "hi"}).text == "hi"
    # a row's own number is not the case's
    assert recorded(tmp_path, {"id": 17, "case_id": "greet", key: "hi"}).text == "hi"
    assert recorded(tmp_path, RESULT | {"raw_response": "hi", key: {"tokens": 3}}).text == "hi"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ({"raw_response": 3}, "raw_response is a number, not text; write the reply as a JSON string, or null"),
        ({"raw_response": {"text": "hi"}}, "raw_response is an object, not text"),
        ({"raw_response": ["hi"]}, "raw_response is a list, not text"),
        ({"raw_response": False}, "raw_response is true or false, not text"),
        ({"output": {"text": "hi"}}, "output is an object, not text"),
        ({"response": "hi", "output": "ho"}, "response and output differ, so it is not clear which is the reply"),
    ],
)
def test_a_result_that_holds_no_reply_is_named_in_one_sentence(tmp_path: Path, line: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError) as caught:
        replay(written(tmp_path / "results.jsonl", RESULT | {"raw_response": "x"}, RESULT | line))
    (problem,) = caught.value.problems
    assert problem.line == 2
    assert problem.what.startswith(what)


@pytest.mark.parametrize("half", ["\\ud83d", "\\uDE00", "\\ud83d\\ud83d", "\\ude00\\ud83d"])
def test_half_of_a_character_is_replaced_and_nothing_else_is_touched(tmp_path: Path, half: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(
        f'{{"case_id": "greet", "raw_response": "a{half}b", "note": "{half}"}}\n'
        f'{{"case_id": "greet", "raw_response": "\\ud83d\\ude00 \\\\ud83d {half}"}}'
    )
    lost = "\ufffd" * (len(half) // 6)
    assert texts(replay(path), "results") == [f"a{lost}b", f"\U0001f600 \\ud83d {lost}"]


def test_a_reply_with_half_a_character_is_judged_and_stored(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"case_id": "greet", "raw_response": "hi \\ud83d"}\n')
    done = steelyard.run([CASE], models=f"replay:{path}", output=tmp_path / "run", means=Means(environment={}))
    (reply,) = (fact for fact in StoredRun(done.folder).facts() if isinstance(fact, Reply))
    assert reply.answer.text == "hi \ufffd"
    assert done.summary.models[0].correct == 1


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"case_id": "greet", "raw_response": "one"}\r\n{"case_id": "greet", "raw_response": "two"}'
    )
    assert texts(replay(path), "results") == ["one", "two"]


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b'{"case_id": "a", "raw_response": "x"} {"case_id": "b"}', "column 39: a second value after the first"),
        (b'{"case_id": "\xc3\xa4", "raw_response": "x"}{}', "column 38: a second value after the first"),
        (b'"{\\"case_id\\": \\"a\\"}"', "column 1: a string that contains JSON"),
        (b'[{"case_id": "a"}]', "column 1: no JSON object"),
    ],
)
def test_what_is_no_line_of_its_own_is_named_with_line_and_column(
    tmp_path: Path, line: bytes, what: str, end: bytes
) -> None:
    path = written(tmp_path / "results.jsonl", RESULT)
    path.write_bytes(path.read_bytes() + b"\n" + line + end)
    with pytest.raises(InputError) as caught:
        replay(path)
    (problem,) = caught.value.problems
    assert problem.line == 3
    assert what in problem.what


def test_a_packed_recording_is_unpacked(tmp_path: Path) -> None:
    plain = written(tmp_path / "r.jsonl", reply("one"), reply("two", 2)).read_bytes()
    packed = tmp_path / "pack.jsonl.gz"
    packed.write_bytes(gzip.compress(plain))
    assert texts(replay(packed), "openai/m") == ["one", "two"]


@pytest.mark.parametrize("spoil", ["cut off", "not packed", "flipped"])
def test_a_packed_recording_that_is_damaged_is_refused(tmp_path: Path, spoil: str) -> None:
    packed = bytearray(gzip.compress(msgspec.json.encode([reply(f"text {n}") for n in range(50)])))
    if spoil == "cut off":
        packed = packed[: len(packed) // 2]
    elif spoil == "not packed":
        packed = bytearray(b"plain text")
    else:
        packed[20:40] = b"\xff" * 20
    (tmp_path / "r.jsonl.gz").write_bytes(packed)
    with pytest.raises(InputError, match=r"^replay:.*give a run folder or a file of recorded replies"):
        replay(tmp_path / "r.jsonl.gz")


def test_a_reply_to_another_prompt_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", reply("hi"))
    with pytest.raises(Rejected, match='case "greet" answers another prompt') as caught:
        answer(replay(path)["openai/m"], attempt(case=Case(id="greet", prompt="say hello", target="hi")))
    assert not caught.value.everyone


def test_a_reply_of_a_later_version_is_replayed_without_what_this_one_does_not_know(tmp_path: Path) -> None:
    later = msgspec.to_builtins(reply("hi"))
    later["answer"]["images"] = ["a"]
    later["seal"] = 7
    path = written(tmp_path / "later.jsonl", later)
    assert texts(replay(path), "openai/m") == ["hi"]


def test_a_stale_recording_is_missing_data_not_wrong_answers(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", reply("hi"), reply("hi", 2))
    case = Case(id="greet", prompt="say hello", target="hi")
    done = steelyard.run([case], models=f"replay:{path}", output=tmp_path / "run", means=Means(environment={}))
    facts = list(StoredRun(done.folder).facts())
    assert [type(fact) for fact in facts] == [Failure, Failure]
    assert done.summary.models[0].attempts == 0


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    whole = written(tmp_path / "r.jsonl", reply("one"), reply("two", 2)).read_bytes()
    for cut in (1, 2, 10, 100):
        (tmp_path / "cut.jsonl").write_bytes(whole[:-cut])
        expected = ["one", "two"] if cut == 1 else ["one"]
        assert texts(replay(tmp_path / "cut.jsonl"), "openai/m") == expected


@pytest.mark.parametrize(
    "line", [b"not json", b'{"kind": "reply", "case": 3}', b'{"case": "\xff"}', b"[" * 99_999, b"[]"]
)
def test_a_broken_line_is_named(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path / "r.jsonl", reply("one"))
    path.write_bytes(path.read_bytes() + b"\n" + line + b"\n" + path.read_bytes())
    with pytest.raises(InputError, match=r"r\.jsonl:3: not a recorded reply"):
        replay(path)


def test_a_reply_to_no_case_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", {"case_id": "a", "completion": "x"}, {"completion": "x"})
    with pytest.raises(InputError, match=r"r\.jsonl:2: a reply without case"):
        replay(path)


def test_a_recording_without_replies_says_what_it_needs(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", {"task_id": "a", "prompt": "x"})
    with pytest.raises(InputError, match="no recorded replies in it"):
        replay(path)


@pytest.mark.parametrize("name", ["none.jsonl", "none.jsonl.gz", "folder"])
def test_a_recording_that_is_not_there_says_what_to_give(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="No such file or directory; give a run folder or a file"):
        replay(tmp_path / name)


def test_it_says_what_it_holds(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", reply("one"), reply("two", 2))
    found = replay(path)
    assert found["openai/m"].available("greet") == 2
    assert found["openai/m"].available("other") == 0
    assert [offer.detail for offer in offers(found["openai/m"])] == ["2 replies to 1 cases"]


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    blanks = b" " * (1 << 20)
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as packed:
        for _ in range(200):
            packed.write(blanks)
    plain = tmp_path / "bomb.jsonl"
    with plain.open("wb") as file:
        file.truncate(200 << 20)
    for bomb in (path, plain):
        with pytest.raises(InputError, match="a line of more than 128 MB; write one reply to a line"):
            replay(bomb)
