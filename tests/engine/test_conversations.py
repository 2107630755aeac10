"""Replies that take several requests: tools are called, users are played, and no turn is paid for twice."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import steelyard
from steelyard import Case, Means, Settings
from steelyard.engine.asking.conversation import next_step
from steelyard.engine.asking.tool_runner import tool_results
from steelyard.engine.plan import planned_attempts
from steelyard.engine.plugin_guard import round_tripped
from steelyard.engine.preflight.conversations import ASSUMED_TOOL_TOKENS
from steelyard.engine.preflight.forecast import Forecast, forecast, forecast_text
from steelyard.errors import InputError, Unavailable
from steelyard.providers.bodies import sound_answer
from steelyard.records import (
    Answer,
    Attempt,
    CannedResult,
    CaseTool,
    Message,
    Price,
    Reply,
    RunInfo,
    SimulatedUser,
    ToolCall,
    Turn,
)
from steelyard.store.journal import StoredRun
from support.facts import facts

Script = Callable[[Attempt], Answer]
MODEL = "python/scripted_model:answer"
MEANS = Means(
    settings=Settings(max_retries=0, retry_delay_ms=1, prices={MODEL: Price(input=1, output=10)}), parallelism=1
)
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = CaseTool(
    name="weather",
    description="The weather in a city.",
    parameters=CITY,
    results=(
        CannedResult(arguments={"city": "Paris"}, result={"celsius": 21}),
        CannedResult(arguments={"city": "Atlantis"}, error="no such city"),
    ),
)
CASE = Case(id="paris", prompt="How warm is it in Paris?", target="21", tools=(WEATHER,))


def call(city: str, name: str = "weather", id: str = "") -> Answer:  # noqa: A002  as it is called there
    wanted = ToolCall(name=name, arguments=json.dumps({"city": city}), id=id)
    return Answer(text="", finish="tool_calls", tool_calls=(wanted,), input_tokens=1000, output_tokens=100, latency=0.5)


def say(text: str) -> Answer:
    return Answer(text=text, input_tokens=2000, output_tokens=50, latency=0.25)


class Scripted:
    """A model that answers as the test says, and keeps what it was asked."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Attempt] = []

    async def answer(self, prompt: str, attempt: Attempt) -> Answer:
        self.asked.append(attempt)
        return self.script(attempt)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Script], Scripted]:
    """Makes a model of a function; it is reached as `python:scripted_model:answer`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def make(script: Script) -> Scripted:
        made = Scripted(script)
        monkeypatch.setitem(sys.modules, "scripted_model", made)
        return made

    return make


def results(attempt: Attempt) -> list[str]:
    return [message.text for message in attempt.messages if message.role == "tool"]


def run(folder: Path, *cases: Case, means: Means = MEANS) -> Reply:
    steelyard.run(cases or [CASE], models="python:scripted_model:answer", output=folder, means=means)
    (reply,) = facts(folder).replies
    return reply


def test_what_tools_return_goes_back_to_the_model_and_every_turn_counts(
    scripted: Callable[[Script], Scripted], tmp_path: Path
) -> None:
    def script(attempt: Attempt) -> Answer:
        known = results(attempt)
        return [call("Atlantis"), call("Paris"), say(f"It is {known[-1] if known else ''}")][len(known)]

    model = scripted(script)
    answer = run(tmp_path / "run").answer
    assert answer.text == 'It is {"celsius":21}'
    assert [tool.name for tool in model.asked[0].tools] == ["weather"]
    failed, called, last = answer.turns
    assert (failed.results[0].content, failed.results[0].is_error) == ("no such city", True)
    assert (called.results[0].content, called.results[0].is_error) == ('{"celsius":21}', False)
    assert last.results == ()
    assert (answer.input_tokens, answer.output_tokens) == (4000, 250)
    assert answer.cost is not None
    assert answer.cost.usd == pytest.approx((4000 + 2500) / 1e6)
    assert sum(turn.cost.usd for turn in answer.turns if turn.cost) == pytest.approx(answer.cost.usd)
    assert answer.latency is not None
    assert answer.latency >= 1.25
    (verdict,) = facts(tmp_path / "run").verdicts
    assert verdict.found.passed


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"city": ', "not JSON"),
        ("[1]", "must be a JSON object"),
        ("{}", "'city' is a required property"),
        ('{"city": "Rome"}', "no result for these arguments"),
    ],
)
def test_a_call_that_cannot_be_made_is_an_error_that_the_model_is_told(
    scripted: Callable[[Script], Scripted], tmp_path: Path, arguments: str, told: str
) -> None:
    wanted = Answer(text="", finish="tool_calls", tool_calls=(ToolCall(name="weather", arguments=arguments),))
    scripted(lambda attempt: say("I give up") if results(attempt) else wanted)
    (result,) = run(tmp_path / "run").answer.turns[0].results
    assert result.is_error
    assert told in result.content


def test_an_unknown_tool_is_an_error_that_the_model_is_told(
    scripted: Callable[[Script], Scripted], tmp_path: Path
) -> None:
    scripted(lambda attempt: say("ok") if results(attempt) else call("Paris", "wether"))
    (result,) = run(tmp_path / "run").answer.turns[0].results
    assert result.is_error
    assert result.content.startswith('there is no tool "wether"')
    assert 'did you mean "weather"?' in result.content


def test_functions_of_the_user_are_tools_and_what_they_raise_is_told(
    scripted: Callable[[Script], Scripted], tmp_path: Path
) -> None:
    (tmp_path / "tools.py").write_text(
        "async def weather(city):\n    return {'Paris': 21}[city]\n\n\ndef slow(city):\n    import time\n    time.sleep(5)\n",
        "utf-8",
    )
    (tmp_path / "set.toml").write_text(
        """
[eval_set]
id = "s"
[[tools]]
name = "slow"
python = "tools.py:slow"
timeout_secs = 0.05
[[cases]]
id = "paris"
prompt = "How warm is it?"
target = "21"
[[cases.tools]]
name = "weather"
python = "tools.py:weather"
""",
        "utf-8",
    )
    steps = [call("Paris"), call("Rome"), call("Paris", "slow"), say("21")]
    scripted(lambda attempt: steps[len(results(attempt))])
    run_ = steelyard.run(
        tmp_path / "set.toml", models="python:scripted_model:answer", output=tmp_path / "r", means=MEANS
    )
    (reply,) = facts(run_.folder).replies
    told = [(result.content, result.is_error) for turn in reply.answer.turns for result in turn.results]
    assert told == [("21", False), ("KeyError: 'Rome'", True), ("slow returned nothing within 0.05 s", True)]

    # a changed tool is another question
    (tmp_path / "tools.py").write_text("def weather(city):\n    return 0\n\n\ndef slow(city):\n    return 0\n", "utf-8")
    with pytest.raises(InputError, match="the prompt or the tools changed since this run asked: paris"):
        steelyard.resume(run_.folder, means=MEANS._replace(allow_code=True))


ODD_TOOLS = """
import asyncio, sys

class Mute(Exception):
    def __str__(self):
        raise RuntimeError

def endless(city):
    returned = []
    returned.append(returned)
    return returned

def mute(city):
    return Mute()

def mute_error(city):
    raise Mute

async def leaves(city):
    sys.exit(3)

async def cancels(city):
    raise asyncio.CancelledError

def generator(city):
    yield {"city": city}
    yield from range(2)

async def async_generator(city):
    yield 1

async def inner_generator(city):
    return {"letters": map(str.upper, "ab")}

def breaks_off(city):
    yield 1
    raise ValueError("broke off")

def never_ends(city):
    while True:
        yield 1

def function(city):
    return [function]

class Callable:
    async def __call__(self, city):
        return city

callable_object = Callable()

def own_timeout(city):
    raise TimeoutError("the other service")
"""


def test_no_odd_function_of_the_user_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ODD_TOOLS, "utf-8")
    words = "endless mute mute_error leaves cancels generator async_generator inner_generator breaks_off never_ends function"
    names = [*words.split(), "callable_object", "own_timeout"]
    tools = tuple(CaseTool(name=name, python=f"{tmp_path / 'odd.py'}:{name}") for name in names)
    calls = [ToolCall(name=name, arguments='{"city": "Paris"}') for name in names]
    told = asyncio.run(tool_results(Case(id="odd", prompt="?", tools=tools), calls))
    assert [(result.content, result.is_error) for result in told] == [
        ("[[...]]", False),
        ("Mute that cannot be written as text (RuntimeError)", False),
        ("Mute: Mute that cannot be written as text (RuntimeError)", True),
        ("RuntimeError: SystemExit: 3", True),
        ("RuntimeError: CancelledError: the function was cancelled by its own code", True),
        ('[{"city":"Paris"},0,1]', False),
        ("[1]", False),
        ('{"letters":["A","B"]}', False),
        ("ValueError: broke off", True),
        ("OverflowError: the tool yielded more than 10,000 items", True),
        (
            "TypeError: the tool returned [<function function>], which is not a value for a model; return text or JSON values",
            True,
        ),
        ("Paris", False),
        ("TimeoutError: the other service", True),
    ]


def test_half_characters_in_calls_and_ids_are_mended_and_nothing_is_asked_again() -> None:
    half = "a\ud800"
    mended = sound_answer(
        Answer(
            text=half,
            finish=half,
            request_id=half,
            tool_calls=(ToolCall(name=half, arguments=f'{{"city": "{half}"}}', id=half),),
            turns=(Turn(text=half, tool_calls=(ToolCall(name=half),)),),
            native=({half: [half]},),
            other_choices=(half,),
            input_tokens=7,
        )
    )
    assert "\ud800" not in str(mended)
    assert mended.tool_calls[0].arguments == '{"city": "a\ufffd"}'
    assert round_tripped(mended, Answer) == mended


def test_a_conversation_ends_at_max_turns(scripted: Callable[[Script], Scripted], tmp_path: Path) -> None:
    model = scripted(lambda _: call("Paris"))
    answer = run(tmp_path / "run", Case(id="a", prompt="?", target="21", tools=(WEATHER,), max_turns=3)).answer
    assert (len(model.asked), answer.finish, len(answer.turns)) == (3, "max_turns", 3)
    # what nobody would hear is not called
    assert [len(turn.results) for turn in answer.turns] == [1, 1, 0]


def test_a_tool_that_is_only_offered_ends_the_conversation_with_its_call(
    scripted: Callable[[Script], Scripted], tmp_path: Path
) -> None:
    model = scripted(lambda _: call("Paris"))
    answer = run(tmp_path / "run", Case(id="a", prompt="?", target="x", tools=(CaseTool(name="weather"),))).answer
    assert (len(model.asked), answer.finish, [one.name for one in answer.tool_calls]) == (1, "tool_calls", ["weather"])


def test_an_outage_in_turn_3_is_a_failure_of_ours_and_resuming_asks_for_no_turn_twice(
    scripted: Callable[[Script], Scripted], tmp_path: Path
) -> None:
    is_down = True

    def script(attempt: Attempt) -> Answer:
        if len(results(attempt)) == 2 and is_down:
            raise Unavailable("down")
        return call("Paris") if len(results(attempt)) < 3 else say("21")

    model = scripted(script)
    folder = tmp_path / "run"
    steelyard.run([CASE], models="python:scripted_model:answer", output=folder, means=MEANS)
    assert (len(facts(folder).replies), len(facts(folder).failures), len(model.asked)) == (0, 1, 3)
    assert facts(folder).failures[0].model == MODEL
    spending = StoredRun(folder).info.spending
    assert spending is not None
    assert spending.unfinished_usd == pytest.approx(2 * 0.002)
    is_down = False
    assert steelyard.resume(folder, means=MEANS).summary.spending is None
    (reply,) = facts(folder).replies
    # two turns were stored; the third and the fourth were asked for now
    assert (len(model.asked), len(reply.answer.turns), reply.answer.text) == (5, 4, "21")
    assert [len(results(attempt)) for attempt in model.asked] == [0, 1, 2, 2, 3]


@pytest.mark.parametrize("lines", [1, 2, 5])
def test_a_kill_after_any_line_loses_no_turn_that_was_paid_for(
    scripted: Callable[[Script], Scripted], tmp_path: Path, lines: int
) -> None:
    model = scripted(lambda attempt: call("Paris") if len(results(attempt)) < 3 else say("21"))
    folder = tmp_path / "run"
    run(folder)
    written = (folder / "turns.jsonl").read_bytes().splitlines(keepends=True)
    assert len(written) == 7  # three turns, each with and without its results, and the last
    # as a kill leaves it: so many lines, then half a line, and no reply
    (folder / "turns.jsonl").write_bytes(b"".join(written[:lines]) + written[lines][:20])
    (folder / "attempts.jsonl").write_bytes(b"")
    asked_before = len(model.asked)
    steelyard.resume(folder, means=MEANS)
    (reply,) = facts(folder).replies
    stored = (lines + 1) // 2
    assert len(model.asked) - asked_before == 4 - stored
    assert (reply.answer.text, reply.answer.input_tokens) == ("21", 5000)


def test_a_budget_counts_every_turn_also_those_of_an_earlier_session(
    scripted: Callable[[Script], Scripted], tmp_path: Path
) -> None:
    model = scripted(lambda attempt: call("Paris") if len(results(attempt)) < 3 else say("21"))
    folder = tmp_path / "run"
    parameters = {"max_tokens": 100}
    # a turn costs $0.002; a fourth would not fit into the money, whatever it cost
    done = steelyard.run(
        [CASE],
        models="python:scripted_model:answer",
        parameters=parameters,
        output=folder,
        means=MEANS._replace(max_cost=0.0065),
    )
    assert done.out_of_budget
    asked = len(model.asked)
    assert 2 <= asked <= 3
    again = steelyard.resume(folder, means=MEANS._replace(max_cost=0.0065))
    assert (again.out_of_budget, len(model.asked)) == (True, asked)
    steelyard.resume(folder, means=MEANS._replace(max_cost=1.0))
    (reply,) = facts(folder).replies
    assert len(model.asked) == 4
    assert reply.answer.cost is not None
    assert reply.answer.cost.usd == pytest.approx(3 * 0.002 + 0.0025)


def test_a_model_plays_the_user_until_it_has_what_it_wants(
    scripted: Callable[[Script], Scripted], tmp_path: Path
) -> None:
    user = SimulatedUser(model="python:scripted_model:answer", script="You want to know about Paris.", max_turns=3)
    lines = iter(["And tomorrow?", "Thanks! [END]"])

    def script(attempt: Attempt) -> Answer:
        if "You play the user" in attempt.system:
            assert "You want to know about Paris." in attempt.system
            return say(next(lines))
        return say(f"answer {sum(message.role == 'user' for message in attempt.messages)}")

    model = scripted(script)
    answer = run(tmp_path / "run", Case(id="a", prompt="And today?", target="answer 2", user=user)).answer
    assert [(turn.role, turn.text) for turn in answer.turns] == [
        ("assistant", "answer 1"),
        ("user", "And tomorrow?"),
        ("assistant", "answer 2"),
        ("user", "Thanks! [END]"),
    ]
    assert (answer.text, answer.turns[1].model, len(model.asked)) == ("answer 2", MODEL, 4)
    # what the user costs is paid for this reply; the tokens are those of the model that is tested
    assert answer.cost is not None
    assert answer.cost.usd == pytest.approx(4 * 0.0025)
    assert answer.input_tokens == 4000
    shown = model.asked[1].case.messages[0].text
    assert "And today?" in shown
    assert "answer 1" in shown


def test_a_user_that_writes_nothing_is_a_failure_of_ours(
    scripted: Callable[[Script], Scripted], tmp_path: Path
) -> None:
    user = SimulatedUser(model="python:scripted_model:answer", script="Say something.")
    is_silent = True
    scripted(lambda attempt: say(("" if is_silent else "[END]") if "You play the user" in attempt.system else "hello"))
    folder = tmp_path / "run"
    steelyard.run(
        [Case(id="a", prompt="?", target="hello", user=user)],
        models="python:scripted_model:answer",
        output=folder,
        means=MEANS,
    )
    (failure,) = facts(folder).failures
    assert "plays the user, wrote nothing" in failure.message
    assert failure.model == MODEL
    is_silent = False
    steelyard.resume(folder, means=MEANS)
    (reply,) = facts(folder).replies
    assert [turn.role for turn in reply.answer.turns] == ["assistant", "user"]


def test_a_provider_without_tools_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'command/cat: this provider has no tools, and case "paris" has some'):
        steelyard.run([CASE], models="command:cat", output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_tools_and_what_they_return_are_a_part_of_the_question() -> None:
    def key(case: Case) -> str:
        (attempt,) = planned_attempts(RunInfo(id="", started_at="", samples=1), [case], {"m": _Live()})
        return attempt.key

    def tooled(**fields: Any) -> Case:
        return Case(id="a", prompt="?", tools=(CaseTool(name="weather", **fields),))

    user = SimulatedUser(model="m", script="s")
    others = [
        Case(id="a", prompt="?"),
        tooled(),
        tooled(result=1),
        tooled(result=2),
        tooled(python="/x/tools.py:f", source="1"),
        tooled(python="/x/tools.py:f", source="2"),
        Case(id="a", prompt="?", user=user),
    ]
    assert len({key(case) for case in others}) == len(others)
    # wherever the file of a function lies
    assert key(tooled(python="/y/tools.py:f", source="1")) == key(tooled(python="/x/tools.py:f", source="1"))
    assert key(Case(id="a", prompt="?")) == Attempt(case=Case(id="a", prompt="?"), model="m").key


class _Live:
    endpoint, at_once = "", 1

    def available(self, case: str) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


def test_recorded_conversations_are_replayed_whole(scripted: Callable[[Script], Scripted], tmp_path: Path) -> None:
    scripted(lambda attempt: say("21") if results(attempt) else call("Paris"))
    first = run(tmp_path / "run")
    steelyard.run([CASE], models=f"replay:{tmp_path / 'run'}", output=tmp_path / "again", means=MEANS)
    (replayed,) = facts(tmp_path / "again").replies
    assert replayed.answer.turns == first.answer.turns


def test_a_turn_of_unknown_length_is_followed_by_what_it_needs() -> None:
    truncated = Turn(tool_calls=(ToolCall(name="weather"),), finish="length")
    assert next_step(CASE, [truncated]).value == "it is over"
    assert next_step(CASE, [Turn(tool_calls=(ToolCall(name="weather"),), finish="stop")]).value == "tools are called"


def test_messages_of_a_conversation_are_stored_with_the_case(
    scripted: Callable[[Script], Scripted], tmp_path: Path
) -> None:
    scripted(lambda _: say("21"))
    run(tmp_path / "run", Case(id="paris", prompt=(Message(role="user", content="?"),), target="21", tools=(WEATHER,)))
    (stored,) = StoredRun(tmp_path / "run").cases
    assert stored.tools == (WEATHER,)


def test_a_dry_run_bounds_conversations_with_their_users(scripted: Callable[[Script], Scripted]) -> None:
    scripted(lambda _: say("never asked"))
    name = "python:scripted_model:answer"
    user = SimulatedUser(model=name, script="s", max_turns=2, parameters={"max_tokens": 50})

    def bounds(case: Case, samples: int = 1) -> list[Forecast]:
        return forecast(
            [case],
            models=[name],
            samples=samples,
            k=[1],
            parameters={"max_tokens": 100},
            system="",
            base_url="",
            means=MEANS,
        )

    talk = Case(id="a", prompt="?", target="x", tools=(CaseTool(name="weather", result="x"),), max_turns=3, user=user)
    model, played = bounds(talk)
    # three answers of 100 tokens, and each later request repeats answers, results and messages
    most = (3 * 100 * 10 + (1 + 2) * (100 + 50 + ASSUMED_TOOL_TOKENS)) / 1e6
    assert model.most_usd is not None
    assert most < model.most_usd < most + 0.002
    assert (model.turns, played.attempts, played.model) == (3, 2, f"user {name}")
    assert played.most_usd is not None
    assert played.most_usd > 2 * 50 * 10 / 1e6
    doubled = bounds(talk, samples=2)[0].most_usd
    assert doubled == pytest.approx(2 * model.most_usd)
    assert "of up to 3 turns, at most $" in forecast_text([model])
    assert forecast_text([played]).startswith(f"user {name}: 2 requests about 1 case, at most $")
    longer = bounds(msgspec.structs.replace(talk, max_turns=5000))[0].most_usd
    assert longer is not None
    assert longer > 1000 * model.most_usd


def test_kills_in_the_middle_of_conversations_lose_and_repeat_no_turn() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "benchmarks.nightly.conversation_kills", "--kills", "3", "--seed", "2"]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    assert "3 kills, " in ended.stdout
    assert ", 0 problems" in ended.stdout
