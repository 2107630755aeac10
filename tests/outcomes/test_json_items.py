"""The items of a long JSON document are the same when they are decoded one at a time."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.engine.results.recordings import RecordedFiles
from steelyard.errors import InputError
from steelyard.outcomes.readers import json_items as splitting
from steelyard.outcomes.readers.inspect import InspectReader
from steelyard.outcomes.readers.json_items import json_items
from steelyard.outcomes.readers.promptfoo import PromptfooReader
from steelyard.protocols import AttemptReader, ForeignFile

OTHER_TOOLS = Path(__file__).parents[2] / "examples" / "other-tools"
ITEMS = [
    {"text": 'brackets ]}"{[ and a backslash \\', "samples": [[1], [{"samples": [2]}]]},
    {},
    {"NaN": float("nan"), "accent": "é", "deep": {"a": [{"b": []}]}},
]


@pytest.fixture(autouse=True)
def _every_document_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "MIN_SPLIT_BYTES", 1)
    monkeypatch.setattr(splitting, "RELEASED_BYTES", 1)


def split(path: Path, *keys: str) -> tuple[Any, list[Any]] | None:
    with json_items(path, keys) as found:
        return None if found is None else (found.document(dict, "a document"), list(found.items(dict, "an item")))


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("is_packed", [False, True])
def test_items_and_the_rest_are_what_the_whole_document_holds(tmp_path: Path, indent: int, is_packed: bool) -> None:
    before, after = {"other": {"samples": [7]}, "word": "samples"}, {"list": ["samples", [1]], "end": 1.5}
    text = json.dumps({**before, "samples": ITEMS, **after}, indent=indent).encode()
    path = tmp_path / ("log.json.gz" if is_packed else "log.json")
    path.write_bytes(gzip.compress(text) if is_packed else b"\xef\xbb\xbf" + text)
    found = split(path, "samples")
    assert found is not None
    assert repr(found) == repr(({**before, "samples": [], **after}, ITEMS))
    path.write_bytes(json.dumps({"results": {"results": ITEMS, "samples": []}}).encode())
    assert repr(split(path, "results", "results")) == repr(({"results": {"results": [], "samples": []}}, ITEMS))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "nonsense",
        '{"samples": null}',
        '{"samples": [1, {}]}',
        '{"samples": [{},]}',
        '{"samples": [{} {}]}',
        '{"samples": [{}, "x"]}',
        '{"samples": [{}], "samples": [{}]}',
        '{"samples": [{"a": 1}',
        '{"samples": [{"a": "',
        '[{"samples": 1}, [{}]]',
        "]" * 100,
        "[" * 5000,
    ],
)
def test_any_other_document_is_read_as_a_whole(tmp_path: Path, text: str) -> None:
    (tmp_path / "log.json").write_text(text)
    assert split(tmp_path / "log.json", "samples") is None


def test_readers_find_the_same_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = sorted((OTHER_TOOLS / "inspect").glob("*.json"))
    files: list[tuple[AttemptReader, Path]] = [
        (InspectReader(), path) for path in logs if InspectReader().recognises(_file(path))
    ]
    files.append((PromptfooReader(), OTHER_TOOLS / "promptfoo" / "results.json"))
    assert len(files) > 1
    parted = [list(reader.attempts(path)) for reader, path in files]
    monkeypatch.setattr(splitting, "MIN_SPLIT_BYTES", 1 << 40)
    assert parted == [list(reader.attempts(path)) for reader, path in files]
    assert all(parted)


def _file(path: Path) -> Any:

    return ForeignFile(path, path.read_bytes()[: 1 << 16])


def test_an_item_that_is_no_result_is_refused_in_one_sentence(tmp_path: Path) -> None:

    path = tmp_path / "results.json"
    path.write_text('{"evalId": "e", "results": {"results": [{"success": true}, {"success": 5}]}}')
    with pytest.raises(InputError, match=r"results.json: not results of promptfoo: Expected `bool`, got `int`"):
        list(RecordedFiles([path]).attempts())
