"""A function of the user's own as a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.errors import InputError, Unavailable
from steelyard.protocols import OfferedModel, Provider, ProviderSettings
from steelyard.providers.bodies import sound_answer
from steelyard.providers.command import connect_function
from steelyard.records import Answer, Cost
from support.asking import answer, attempt, offers

FUNCTIONS = """
from __future__ import annotations

from dataclasses import dataclass
from steelyard.records import Answer, Cost

@dataclass
class Said:
    text: str

def plain(prompt):
    return Said(prompt.upper()).text

async def waits(prompt):
    import asyncio
    await asyncio.sleep(0)
    return prompt + "!"

def knows(prompt, attempt):
    return f"{attempt.case.id} {attempt.number} {prompt}"

def optional(prompt, temperature=1.0, **more):
    return f"{prompt} {temperature}"

def full(prompt):
    return Answer(text="hi", finish="length", output_tokens=3, cost=Cost(usd=0.5, source="mine"), latency=0.25)

def table(prompt):
    return {"text": "hi", "input_tokens": 3, "cost": {"usd": 0.5, "source": "mine"}}

def odd(prompt):
    return {"text": "half: \\ud83d", "finish": "max-tokens", "tool_calls": [{"name": "\\udcff"}]}

def noted(prompt):
    return {"text": "hi", "input_tokens": -1, "output_tokens": 3, "note": "from a cache"}

def outage(prompt):
    return Answer(text="half", finish="insufficient_system_resource")

def nothing(prompt):
    return None

def raises(prompt):
    raise KeyError("lost")

def escaped(prompt):
    return "half a pair: \\udcff"

value = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(FUNCTIONS)
    return path


def function(path: str) -> Provider:
    return connect_function(path, ProviderSettings(type="python"))[path]


@pytest.mark.parametrize(
    ("name", "text"),
    [("plain", "SAY HI"), ("waits", "say hi!"), ("knows", "greet 2 say hi"), ("optional", "say hi 1.0")],
)
def test_functions_are_called_plain_or_async_with_or_without_the_attempt(file: Path, name: str, text: str) -> None:
    said = answer(function(f"{file}:{name}"), attempt(number=2))
    assert said.text == text
    assert (said.latency or 0) > 0


def test_a_system_prompt_stands_before_the_prompt(file: Path) -> None:
    assert answer(function(f"{file}:waits"), attempt(system="be brief")).text == "be brief\n\nsay hi!"


def test_a_function_may_return_a_whole_answer_or_its_fields(file: Path) -> None:
    cost = Cost(usd=0.5, source="mine")
    assert answer(function(f"{file}:full")) == Answer(
        text="hi", finish="length", output_tokens=3, cost=cost, latency=0.25
    )
    assert answer(function(f"{file}:table")) == Answer(text="hi", input_tokens=3, cost=cost)


def test_what_a_function_returns_is_stored_and_its_finish_means_what_the_table_says(file: Path) -> None:
    said = sound_answer(answer(function(f"{file}:odd")))
    assert (said.text, said.finish, said.tool_calls[0].name) == ("half: \ufffd", "length", "\ufffd")
    with pytest.raises(Unavailable, match="insufficient_system_resource"):
        answer(function(f"{file}:outage"))


def test_an_impossible_number_becomes_a_note_beside_that_of_the_function(file: Path) -> None:
    said = answer(function(f"{file}:noted"))
    assert (said.text, said.input_tokens, said.output_tokens) == ("hi", None, 3)
    assert said.note == "from a cache; input_tokens is -1, which is no count of tokens"
    assert answer(function(f"{file}:table")).note == ""


def test_what_a_function_raises_or_returns_wrongly_leaves_it(file: Path) -> None:
    with pytest.raises(KeyError):
        answer(function(f"{file}:raises"))
    with pytest.raises(ValueError, match="Expected `object`"):
        answer(function(f"{file}:nothing"))


def test_a_module_is_found_where_the_command_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_own_model_module.py").write_text("def ask(prompt):\n    return 'found'\n")
    monkeypatch.chdir(tmp_path)
    assert answer(function("my_own_model_module:ask")).text == "found"


def test_a_file_is_not_taken_for_a_module_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "colorsys.py").write_text("def ask(prompt):\n    return 'ours'\n")
    assert answer(function(f"{tmp_path / 'colorsys.py'}:ask")).text == "ours"
    import colorsys

    assert hasattr(colorsys, "rgb_to_hsv")


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("ask", 'not "file.py:function"'),
        ("no_such_module_at_all:ask", "No module named"),
        ("{folder}/none.py:ask", "No such file"),
        ("{folder}/model.py:value", 'has no function "value"'),
        ("{folder}/model.py:asked", 'has no function "asked"'),
        ("{folder}/broken.py:ask", "ZeroDivisionError"),
    ],
)
def test_a_function_that_is_not_there_is_found_out_before_anything_is_asked(file: Path, path: str, what: str) -> None:
    (file.parent / "broken.py").write_text("1 / 0\n")
    with pytest.raises(InputError, match=what):
        function(path.format(folder=file.parent))


def test_it_offers_itself(file: Path) -> None:
    assert offers(function(f"{file}:plain")) == [OfferedModel(f"python:{file}:plain")]
