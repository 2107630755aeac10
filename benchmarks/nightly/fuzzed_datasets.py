"""Configs of promptfoo and rows of datasets with a map of their columns, small and sound: to be damaged."""

from __future__ import annotations

import importlib.util
import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from steelyard import evalsets

CONFIG = Path(__file__).resolve().parent.parent.parent / "tests" / "data" / "promptfoo"
SMALL_CONFIG: dict[str, Any] = {
    "prompts": ["Capital of {{country}}? {{hint}}", "file://prompts/second.txt"],
    "defaultTest": {"vars": {"hint": "brief"}, "assert": [{"type": "not-contains", "value": "sorry"}]},
    "scenarios": [
        {"config": [{"vars": {"city": "Lima"}}], "tests": [{"assert": [{"type": "equals", "value": "{{city}}"}]}]}
    ],
    "tests": [
        {
            "vars": {"country": ["Spain", "Italy"], "n": 7},
            "threshold": 0.5,
            "assert": [
                {"type": "contains-any", "value": ["Madrid", "Rome"], "weight": 2},
                {"type": "is-json", "value": {"type": "object", "required": ["a"]}},
                {"type": "levenshtein", "value": "x", "threshold": 3},
                {"type": "assert-set", "assert": [{"type": "regex", "value": "^[a-z]+$"}]},
            ],
        },
        "file://more.csv",
        "file://more.jsonl",
    ],
}
ROWS = [
    {"frage": "1 + 1?", "antwort": {"text": ["two", "2"]}, "thema": "sums", "nummer": 1},
    {"frage": "2 + 2?", "antwort": {"text": ["four"]}, "thema": "sums", "nummer": 2},
]
CHOICES = [{"frage": "Which?", "wahl": ["a", "b", "c"], "antwort": 1, "id": "x"}]
MAP = "prompt=frage,target=antwort"
DEEP_MAP = "prompt=frage,answers=antwort.text"
CHOICE_MAP = "question=frage,choices=wahl,answer=antwort"


def dataset_files(folder: Path) -> Iterator[tuple[str, bytes, Callable[[bytes], object], float]]:
    """The name of each kind, a sound file of it, what reads it, and how often it has its turn."""
    for name, file, content, weight in (
        ("config of promptfoo in YAML", "promptfooconfig.yaml", (CONFIG / "promptfooconfig.yaml").read_bytes(), 0.3),
        ("config of promptfoo in JSON", "promptfooconfig.json", json.dumps(SMALL_CONFIG).encode(), 1.0),
        ("tests of promptfoo in CSV", "more.csv", (CONFIG / "more.csv").read_bytes(), 0.5),
        ("tests of promptfoo in JSONL", "more.jsonl", (CONFIG / "more.jsonl").read_bytes(), 0.5),
        (
            "prompt of promptfoo",
            "prompts/second.txt",
            b"About {{country}}.\n---\nMore {% if hint %}x{% endif %}\n",
            0.5,
        ),
    ):
        own = folder / name
        shutil.copytree(CONFIG, own)
        (own / "small.json").write_text(json.dumps(SMALL_CONFIG))
        yield name, content, _config_reader(own / file, own / (file if "config" in file else "small.json")), weight
    flat = "frage,antwort,thema\n1 + 1?,two,sums\n2 + 2?,four,sums\n"
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    yaml = "".join(f"- {json.dumps(row)}\n" for row in ROWS)
    files: list[tuple[str, str, str, bytes, float]] = [
        ("CSV", "rows.csv", MAP, flat.encode(), 1.0),
        ("JSONL", "rows.jsonl", DEEP_MAP, lines.encode(), 1.0),
        ("JSON", "rows.json", DEEP_MAP, json.dumps({"data": ROWS}).encode(), 1.0),
        ("YAML", "rows.yaml", DEEP_MAP, yaml.encode(), 0.3),
        ("JSONL with choices", "choices.jsonl", CHOICE_MAP, json.dumps(CHOICES[0]).encode() + b"\n", 1.0),
    ]
    if importlib.util.find_spec("pyarrow"):
        files += [("Parquet", "rows.parquet", MAP, _parquet(), 0.1), ("Arrow", "rows.arrow", MAP, _arrow(), 0.2)]
    for name, file, columns, content, weight in files:
        (folder / "rows").mkdir(parents=True, exist_ok=True)
        yield (
            f"rows with a map in {name}",
            columns.encode() + b"\n" + content,
            _mapped_reader(folder / "rows" / file),
            weight,
        )


def _config_reader(path: Path, config: Path) -> Callable[[bytes], object]:
    def read(content: bytes) -> object:
        path.write_bytes(content)
        return evalsets.load([config])

    return read


def _mapped_reader(path: Path) -> Callable[[bytes], object]:
    """What reads a file whose first line is the map."""

    def read(content: bytes) -> object:
        columns, _, rows = content.partition(b"\n")
        path.write_bytes(rows)
        return evalsets.load([f"{path}#{columns.decode('utf-8', 'surrogateescape')}"])

    return read


def _table() -> Any:
    import pyarrow

    return pyarrow.table({"frage": ["1 + 1?", "2 + 2?"], "antwort": ["two", "four"]})


def _parquet() -> bytes:
    from pyarrow import parquet

    packed = io.BytesIO()
    parquet.write_table(_table(), packed)
    return packed.getvalue()


def _arrow() -> bytes:
    from pyarrow import ipc

    packed = io.BytesIO()
    table = _table()
    with ipc.new_stream(packed, table.schema) as writer:
        writer.write_table(table)
    return packed.getvalue()
