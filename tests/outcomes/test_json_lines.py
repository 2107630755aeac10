"""Lines of JSON mean the same wherever the pieces begin in which a file is read, complaints included."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from steelyard.errors import InputError
from steelyard.outcomes import files
from steelyard.outcomes.tables import table

ODD_LINES = (
    *("", "   ", "[1]", "7", "{", "{}", '{"case": "c"}', "{} {}", '{"case": "c",\n"passed": true}'),
    *('{"case": "c", "passed": true, "case": "d"}', '{"case": "c", "passed": null, "model": null}'),
    *('{"case": 7, "model": "m", "passed": 1, "sample": "x"}', '{"case": 1.5, "model": true, "passed": "yes"}'),
    *('{"case": "\\u00fc", "passed": "maybe"}', '{"case": "ü", "passed": 0.5}', '{"case": " c ", "passed": " TRUE "}'),
    *('{"case": "c", "passed": true, "score": 1e400}', '{"case": "c", "passed": true, "score": NaN}'),
    *('{"case": "c", "passed": true, "sample": 1234567890123456789012, "score": "0.5"}', '{"case": "\t"}'),
    *('{"case": "c", "passed": true, "note": {"deep": [1]}}', '{"case": "c", "passed": true, "note": "\udcff"}'),
    *('{"case": "c", "passed": true, "score": 2}', '{"case": "c", "passed": false, "score": 1}', '{"cas\\u0065": "c"}'),
)


def rows(chance: random.Random, *, has_model: bool) -> list[str]:
    model = {"model": "m"} if has_model else {}
    return [
        json.dumps({"case": f"case-{at % 7}", "passed": chance.random() < 0.5, "sample": at, "score": 0.5, **model})
        for at in range(60)
    ]


def found(path: Path) -> Any:
    try:
        return table([path], sample="sample", score="score")
    except InputError as error:
        return [str(problem) for problem in error.problems]


@pytest.mark.parametrize("has_model", [True, False])
@pytest.mark.parametrize("odd", ODD_LINES, ids=range(len(ODD_LINES)))
def test_a_file_in_many_pieces_says_what_it_says_in_one(
    odd: str, has_model: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(1)
    lines = rows(chance, has_model=has_model)
    for line in (odd, chance.choice(ODD_LINES)):
        lines.insert(chance.randrange(20, len(lines)), line)
    path = tmp_path / "table.jsonl"
    path.write_bytes("\n".join(lines).encode(errors="surrogateescape"))
    at_once = found(path)
    monkeypatch.setattr(files, "READ_CHUNK_BYTES", 300)
    assert found(path) == at_once
