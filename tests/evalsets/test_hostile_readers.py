"""Damaged and hostile files of other tools: each is cases or one refusal, never a crash."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from steelyard.errors import InputError
from steelyard.evalsets import load

ROUNDS = 60
CONFIG = {
    "prompts": [
        "Hi {{a}}",
        {"raw": "Ho {{b}}", "label": "x"},
        "file://p.txt",
        '[{"role": "user", "content": "{{a}}"}]',
    ],
    "providers": ["echo", {"id": "x"}],
    "defaultTest": {"vars": {"b": 1}, "assert": [{"type": "not-contains", "value": "x"}], "options": {"prefix": "p"}},
    "scenarios": [{"config": [{"vars": {"a": "s"}}], "tests": [{"assert": [{"type": "equals", "value": {"k": [1]}}]}]}],
    "assertionTemplates": {"t": {"type": "regex", "value": "a+"}},
    "tests": [
        {
            "vars": {"a": ["1", "2"]},
            "assert": [{"$ref": "#/assertionTemplates/t"}, {"type": "is-json", "value": "type: x"}],
        },
        {
            "vars": {"a": "v"},
            "threshold": 0.5,
            "assert": [{"type": "assert-set", "assert": [{"type": "cost", "threshold": 1}]}],
        },
        {
            "assert": [
                {"type": "javascript", "value": "true"},
                {"type": "python", "value": "1"},
                {"type": "similar", "value": ["q"]},
            ]
        },
        "file://t.csv",
    ],
}
ROWS: list[dict[str, Any]] = [
    {"question": "q", "answer": "#### 1,000"},
    {"input": "q", "target": "B", "choices": ["x", "y"], "metadata": {"a": 1}},
    {"question": "q", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": "2"},
    {"input": [{"role": "user", "content": "q"}], "ideal": ["a", "b"]},
    {"question": "q", "context": "c", "answers": {"text": ["a"]}},
    {
        "question_id": 1,
        "question_content": "q",
        "public_test_cases": '[{"input": "1", "output": "2", "testtype": "stdin"}]',
    },
    {"problem_id": 1, "question": "q", "input_output": '{"inputs": ["1"], "outputs": ["2"]}', "solutions": '["x"]'},
    {
        "name": "n",
        "description": "d",
        "public_tests": {"input": ["1"], "output": ["2"]},
        "solutions": {"language": [3]},
    },
    {"id": "c", "prompt": "q", "checks": [{"contains": "a", "weight": 2}, {"json_schema": {"type": "object"}}]},
]
ODD: list[Any] = [
    None,
    True,
    -1,
    1e308,
    10**30,
    "",
    "\ud800",
    "{{",
    "{% x",
    "file://x",
    "a" * 5000,
    [],
    {},
    [[]],
    {"": {}},
    [None],
]


def mutated(value: Any, chance: random.Random) -> Any:
    """The value with something in it replaced, left out or doubled."""
    if chance.random() < 0.06:
        return chance.choice(ODD)
    if isinstance(value, dict):
        items = [(key, mutated(inner, chance)) for key, inner in value.items() if chance.random() > 0.04]
        return dict(items)
    if isinstance(value, list):
        return [mutated(inner, chance) for inner in value for _ in range(chance.choice((1, 1, 1, 1, 2, 0)))]
    return value


def survives(path: Path) -> None:
    problems = []
    try:
        load([path])
    except InputError as refused:
        problems = list(refused.problems)
    assert [problem for problem in problems if not str(problem).isprintable() or len(problem.what) > 1500] == []


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_a_damaged_config_is_cases_or_a_refusal(tmp_path: Path, suffix: str) -> None:
    chance = random.Random(f"config{suffix}")
    (tmp_path / "p.txt").write_text("One {{a}}\n---\nTwo")
    (tmp_path / "t.csv").write_text("a,__expected\nx,contains: y\n")
    for _ in range(ROUNDS // 2):
        path = tmp_path / f"c{suffix}"
        path.write_text(json.dumps(mutated(CONFIG, chance)), "utf-8", "surrogatepass")
        survives(path)


def test_damaged_rows_are_cases_or_a_refusal(tmp_path: Path) -> None:
    chance = random.Random("rows")
    for _ in range(ROUNDS):
        path = tmp_path / "rows.jsonl"
        path.write_text("\n".join(json.dumps(mutated(row, chance)) for row in ROWS))
        survives(path)


@pytest.mark.parametrize("suffix", [".csv", ".yaml", ".parquet", ".arrow", ".json"])
def test_damaged_bytes_are_cases_or_a_refusal(tmp_path: Path, suffix: str) -> None:
    chance = random.Random(f"bytes{suffix}")
    seeds = [
        b'question,answer\nq,a\n"x",y\n',
        json.dumps(CONFIG).encode(),
        b"PAR1\x15\x04PAR1",
        b"ARROW1\0\0\xff\xff\xff\xff",
    ]
    for number in range(ROUNDS // 4):
        data = bytearray(seeds[number % len(seeds)])
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        (tmp_path / f"c{suffix}").write_bytes(bytes(data))
        survives(tmp_path / f"c{suffix}")


@pytest.mark.parametrize(
    "document",
    [
        '{"prompts": ["Hi"], "providers": [], "tests": [{"vars": {"a": "\\ud800"}}]}',
        '{"prompts": ["Hi"], "tests": [{"vars": "file://"}, "file://"]}',
        '[{"question": "q", "answer": "a", "extra": "\\ud800"}]',
        '[{"description": "d", "public_tests": {"input": ["1"], "output": ["2"]}, "solutions": {"language": null}}]',
    ],
)
def test_what_fuzzing_found_stays_fixed(tmp_path: Path, document: str) -> None:
    (tmp_path / "c.json").write_text(document)
    survives(tmp_path / "c.json")
