"""Configs of promptfoo as eval sets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.errors import InputError
from steelyard.evalsets import load
from steelyard.records import Case, Message

CONFIG = """
prompts:
  - "Capital of {{country}}? {{hint}}"
  - file://prompts/*.txt
providers: [openai:gpt-4o, {id: echo}]
evaluateOptions: {maxConcurrency: 2}
defaultTest:
  vars: {style: brief}
  assert: [{type: not-contains, value: sorry}]
tests:
  - description: The capital of France
    vars: {country: France, city: Paris}
    assert:
      - {type: icontains, value: "{{city}}"}
      - {type: latency, threshold: 1500}
      - {type: moderation}
      - {type: contains, value: a, weight: 2}
  - vars: {country: [Spain, Italy]}
    threshold: 0.5
    assert: [{type: javascript, value: "const n = 1; output.length > n"}, {type: python, value: "file://own.py"}]
  - file://tests.csv
  - file://tests.jsonl
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "two.txt").write_text("About {{country}}.\n---\nMore about {{country}}.\n")
    (tmp_path / "own.py").write_text("def get_assert(output, context):\n    return True\n")
    (tmp_path / "tests.csv").write_text(
        'country,__expected,__expected2,__description,__threshold\nPeru,contains: Lima,"similar(0.9): Lima",Peru,0.5\nChad,just this,,,\n'
    )
    row = {"vars": {"country": "Mali"}, "assert": [{"type": "is-json", "value": "type: object"}]}
    (tmp_path / "tests.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "promptfooconfig.yaml").write_text(CONFIG)
    return tmp_path / "promptfooconfig.yaml"


def by_prompt(path: Path) -> dict[str, Case]:
    return {str(case.prompt): case for case in load([path]).cases}


def test_every_prompt_with_every_test_is_a_case(config: Path) -> None:
    cases = by_prompt(config)
    countries = ("France", "Spain", "Italy", "Peru", "Chad", "Mali")
    prompts = ("Capital of {}? ", "About {}.", "More about {}.")
    assert set(cases) == {prompt.format(country) for country in countries for prompt in prompts}
    assert len({case.id for case in cases.values()}) == len(cases)
    groups = {cases[prompt.format("France")].group for prompt in prompts}
    assert len(groups) == 1
    assert groups != {cases["About Spain."].group}


def test_assertions_are_checks_with_those_of_the_default_test_first(config: Path) -> None:
    cases = by_prompt(config)
    none = {"contains": "sorry", "not": True}
    assert cases["About France."].verify.settings["checks"] == [
        none,
        {"contains": "Paris", "ignore_case": True},
        {"latency_below": 1.5},
        {"contains": "a", "weight": 2},
    ]
    settings = cases["About Spain."].verify.settings
    assert settings["threshold"] == 0.5
    assert settings["checks"][1]["javascript_code"] == "const n = 1; return output.length > n"
    assert settings["checks"][2]["python"] == "own.py:get_assert"
    assert "def get_assert" in settings["checks"][2]["code"]
    assert settings["vars"] == {"style": "brief", "country": "Spain"}
    checks = cases["About Peru."].verify.settings["checks"]
    assert checks == [none, {"contains": "Lima"}, {"similar": "Lima", "at_least": 0.9}]
    assert cases["About Chad."].verify.settings["checks"] == [none, {"equals": "just this"}]
    assert cases["About Mali."].verify.settings["checks"] == [none, {"json_schema": {"type": "object"}}]


def test_what_is_not_carried_over_is_said_once_with_its_count(config: Path) -> None:
    said = [problem.what for problem in load([config]).problems]
    assert said == [
        "not carried over: 1 × assertions of the type moderation: write a python or javascript assertion instead",
        "not carried over: 2 × providers: name models with --models (the config has openai:gpt-4o, echo)",
        "not carried over: 1 × the key evaluateOptions of the config: set such options on the command line",
    ]


def test_ids_do_not_depend_on_the_order_of_the_tests(config: Path) -> None:
    before = {case.id for case in by_prompt(config).values()}
    head, _, tests = CONFIG.partition("tests:\n")
    first, second = tests.split("  - file://tests.csv")
    config.write_text(f"{head}tests:\n  - file://tests.csv{second}{first}")
    assert {case.id for case in by_prompt(config).values()} == before


def test_a_config_in_json_with_a_conversation_loads_as_well(tmp_path: Path) -> None:
    conversation = json.dumps([{"role": "system", "content": "Be {{how}}."}, {"role": "user", "content": "Hi"}])
    config = {"prompts": [conversation], "providers": ["echo"], "tests": [{"vars": {"how": "kind"}}]}
    (tmp_path / "c.json").write_text(json.dumps(config))
    (case,) = load([tmp_path / "c.json"]).cases
    assert case.prompt == (Message(role="system", content="Be kind."), Message(role="user", content="Hi"))
    assert case.by_judges


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("file://../outside.csv", "no file .* in the folder of the config"),
        ("file:///etc/passwd", "no file .* in the folder of the config"),
        ({"vars": {"a": "file://../secret.txt"}}, "no file .* in the folder of the config"),
        ({"vars": 3}, "vars is not a table"),
        ({"vars": [{"a": 1}]}, "vars is not a table"),
        ({"assert": [{"type": "contains"}]}, "has no text as its value"),
        ({"assert": [{"type": "equals", "value": "file://../secret.txt"}]}, "no file .* in the folder of the config"),
        ({"assert": [{"value": "x"}]}, "not a table with a type"),
        ({"assert": [{"type": "latency"}]}, "has no number as its threshold"),
        (7, "a test is not a table"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_test(tmp_path: Path, test: object, message: str) -> None:
    (tmp_path / "secret.txt").write_text("x")
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "c.json").write_text(json.dumps({"prompts": ["Hi {{a}}"], "providers": ["echo"], "tests": [test]}))
    with pytest.raises(InputError, match=message):
        load([folder / "c.json"])


def test_values_in_files_and_numbers_are_compared_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "expected.txt").write_text("Paris\n")
    (tmp_path / "list.yaml").write_text("[a, b]")
    asserts = [
        {"type": "equals", "value": "file://expected.txt"},
        {"type": "contains-any", "value": "file://list.yaml"},
        {"type": "contains", "value": 3.14159265},
        {"type": "contains", "value": 1234567.0},
        {"type": "equals", "value": "file://value.js"},
    ]
    config = {"prompts": ["Hi"], "providers": ["echo"], "tests": [{"assert": asserts}]}
    (tmp_path / "c.json").write_text(json.dumps(config))
    loaded = load([tmp_path / "c.json"])
    (case,) = loaded.cases
    assert case.verify.settings["checks"] == [
        {"equals": "Paris"},
        {"contains_any": ["a", "b"]},
        {"contains": "3.14159265"},
        {"contains": "1234567"},
    ]
    assert any("whose value comes from code" in problem.what for problem in loaded.problems)


def test_scenarios_may_stand_in_files(tmp_path: Path) -> None:
    (tmp_path / "configs.yaml").write_text("- {vars: {a: 1}}\n- {vars: {a: 2}}\n")
    (tmp_path / "tests.csv").write_text("b,__expected\n3,contains: x\n")
    scenario = {"config": "file://configs.yaml", "tests": "file://tests.csv"}
    (tmp_path / "c.json").write_text(json.dumps({"prompts": ["{{a}} {{b}}"], "scenarios": [scenario]}))
    assert set(by_prompt(tmp_path / "c.json")) == {"1 3", "2 3"}


def test_a_test_for_a_prompt_that_is_not_there_is_counted(tmp_path: Path) -> None:
    tests = [{"prompts": ["nosuch"], "vars": {"a": "x"}}, {"prompts": ["one"], "vars": {"a": "y"}}]
    config = {"prompts": [{"id": "one", "raw": "Hi {{a}}"}], "providers": ["echo"], "tests": tests}
    (tmp_path / "c.json").write_text(json.dumps(config))
    loaded = load([tmp_path / "c.json"])
    assert [case.prompt for case in loaded.cases] == ["Hi y"]
    assert any("1 × tests whose prompts are not among" in problem.what for problem in loaded.problems)
