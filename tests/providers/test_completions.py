"""What goes to a completions server, and what is made of the code that comes back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import steelyard
from steelyard import Means
from steelyard.errors import InputError, Rejected, Unavailable
from steelyard.evalsets import load
from steelyard.protocols import Provider, ProviderSettings
from steelyard.providers.formats.completions import connect as connect_completions
from steelyard.records import Attempt, Case, Verify
from steelyard.text import verbatim_code
from support.asking import KEY, answer
from support.fault_server import FaultServer, in_turn, sends

if TYPE_CHECKING:
    from pathlib import Path

STUB = 'def double(x):\n    """ Twice x. """\n'


def base_model(server: FaultServer, **settings: Any) -> Provider:
    reached = {"api_key": KEY, "base_url": f"{server.url}/v1", **settings}
    return connect_completions("base", ProviderSettings(type="openai-completions", **reached))["base"]


def asked(stub: str | None = STUB, language: str = "python", **parameters: Any) -> Attempt:
    case = Case(
        id="double", prompt="Complete it.", language=language, verify=Verify(stub=stub, entry_point="double", tests="t")
    )
    return Attempt(case=case, model="p/base", parameters=parameters)


def continues(text: str, finish: str | None = "stop", **fields: Any) -> dict[str, Any]:
    return {"id": "cmpl-1", "choices": [{"index": 0, "text": text, "finish_reason": finish}], **fields}


def test_a_base_model_is_given_the_bare_stub_and_told_where_a_function_ends(server: FaultServer) -> None:
    server.script = in_turn(sends(continues("    return 2 * x\n")))
    answer(base_model(server), asked())
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/completions")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "base",
        "prompt": STUB,
        "max_tokens": 512,
        "stop": ["\nclass", "\ndef", "\n#", "\nif"],
    }


def test_parameters_of_the_user_come_first(server: FaultServer) -> None:
    server.script = in_turn(sends(continues("    return 2 * x\nprint(1)\n")))
    said = answer(base_model(server), asked(max_tokens=64, stop=["END"], temperature=0.2))
    (request,) = server.requests
    assert (request.body["max_tokens"], request.body["stop"], request.body["temperature"]) == (64, ["END"], 0.2)
    assert verbatim_code(said.text) == f"{STUB}    return 2 * x\nprint(1)\n"


def test_the_answer_is_stub_and_completion_to_the_letter_with_what_it_took(server: FaultServer) -> None:
    usage = {"prompt_tokens": 20, "completion_tokens": 7, "cost": 0.5}
    server.script = in_turn(sends(continues("    return 2 * x", "length", usage=usage)))
    said = answer(base_model(server), asked())
    assert verbatim_code(said.text) == f"{STUB}    return 2 * x"
    assert (said.finish, said.input_tokens, said.output_tokens, said.request_id) == ("length", 20, 7, "cmpl-1")
    assert said.cost is not None
    assert (said.latency or 0) > 0


@pytest.mark.parametrize(
    "rest", ["\nprint(double(2))", "\n# next\n", "\nclass A:\n", "\ndef other():\n", "\nif True:\n"]
)
def test_what_a_server_adds_behind_the_function_is_cut_off(server: FaultServer, rest: str) -> None:
    server.script = in_turn(sends(continues(f"    return 2 * x{rest}", "length")))
    said = answer(base_model(server), asked())
    assert verbatim_code(said.text) == f"{STUB}    return 2 * x"
    assert said.finish == "stop"


def test_a_stub_without_the_function_is_continued_with_the_function(server: FaultServer) -> None:
    stub = '"""\nWrite double.\n"""\n'
    server.script = in_turn(sends(continues("\ndef double(x):\n    return 2 * x\n\nassert double(1) == 2\n")))
    said = answer(base_model(server), asked(stub))
    assert verbatim_code(said.text) == f"{stub}\ndef double(x):\n    return 2 * x\n"


def test_a_rust_function_ends_where_another_thing_begins(server: FaultServer) -> None:
    stub = "fn double(x: i32) -> i32 {\n"
    server.script = in_turn(sends(continues("    x * 2\n}\n\nfn main() {\n")))
    assert verbatim_code(answer(base_model(server), asked(stub, "rust")).text) == f"{stub}    x * 2\n}}\n"


@pytest.mark.parametrize("stub", [None, ""])
def test_a_case_without_a_stub_is_not_asked(server: FaultServer, stub: str | None) -> None:
    with pytest.raises(Rejected, match='case "double" has no stub'):
        answer(base_model(server), asked(stub))
    assert server.requests == []


@pytest.mark.parametrize("body", [{"choices": []}, {"error": {"message": "overloaded"}}, {"choices": [{"text": None}]}])
def test_a_response_without_an_answer_may_be_asked_for_again(server: FaultServer, body: object) -> None:
    server.script = in_turn(sends(body))
    with pytest.raises(Unavailable):
        answer(base_model(server), asked())


def test_without_an_address_it_says_how_to_give_one() -> None:
    with pytest.raises(InputError, match="no base_url"):
        connect_completions("base", ProviderSettings(type="openai-completions"))


def test_a_base_model_solves_a_problem_file_from_the_command_line_on(server: FaultServer, tmp_path: Path) -> None:
    problem = {
        "task_id": "HumanEval/0",
        "prompt": STUB,
        "entry_point": "double",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    }
    (tmp_path / "problems.jsonl").write_text(json.dumps(problem))
    server.script = in_turn(sends(continues("    return x + x\n")), sends(continues("    return x\n")))
    done = steelyard.run(
        load([tmp_path / "problems.jsonl"]).cases,
        models="openai-completions/base",
        samples=2,
        base_url=f"{server.url}/v1",
        output=tmp_path / "run",
        means=Means(environment={}),
    )
    assert (done.summary.models[0].correct, done.summary.models[0].attempts) == (1, 2)
