"""Logs of Inspect: what is counted from the summaries in them is what their samples say."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.comparison.sides import Trials
from steelyard.engine.results.recordings import RecordedFiles, recorded_side
from steelyard.outcomes.files import UnreadableOutcomesError
from steelyard.outcomes.readers.inspect_archive import ZSTANDARD_METHOD, InspectArchive

LOGS = Path(__file__).parents[2] / "examples" / "other-tools" / "inspect"
Members = dict[str, Any]
MANY = 6
"""Copies of the samples of a log: enough that not every one is compared with its summary."""


def members_of(path: Path) -> Members:
    """What each member of a log says, in order."""
    with zipfile.ZipFile(path) as zipped, path.open("rb") as file:
        log = InspectArchive(zipped, file)
        return {member.filename: json.loads(bytes(log.unpacked(member))) for member in zipped.infolist()}


@pytest.fixture(scope="module")
def members() -> Members:
    """A log of many samples, made of those of a real one."""
    found = members_of(LOGS / "better.eval")
    samples = {name: found.pop(name) for name in list(found) if name.startswith("samples/")}
    many: Members = {}
    summaries = []
    for copy in range(MANY):
        for sample, summary in zip(samples.values(), found["summaries.json"], strict=True):
            key = {"id": f"{sample['id']}{copy}"}
            many[f"samples/{key['id']}_epoch_{sample['epoch']}.json"] = {**sample, **key, "events": []}
            summaries.append({**summary, **key})
    return {**many, **found, "_journal/summaries/1.json": summaries, "summaries.json": summaries}


def written(path: Path, members: Members) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return path


def trials(path: Path) -> tuple[Trials, ...]:
    (found,) = recorded_side(str(path)).models.values()
    return found


def without_summaries(members: Members) -> Members:
    return {name: content for name, content in members.items() if "summaries" not in name}


def changed_summary(members: Members, position: int, **change: Any) -> Members:
    summaries = list(members["summaries.json"])
    summaries[position] = {**summaries[position], **change}
    return {**members, "summaries.json": summaries, "_journal/summaries/1.json": summaries}


def test_counts_come_from_the_summaries_of_a_log(members: Members, tmp_path: Path) -> None:
    slow = trials(written(tmp_path / "slow.eval", without_summaries(members)))
    assert trials(written(tmp_path / "quick.eval", members)) == slow
    last = "samples/es3_epoch_3.json"
    broken = written(tmp_path / "broken.eval", {**members, last: b"{"})
    assert trials(broken) == slow, "no sample is opened that is not compared"
    in_pieces = {**members, "_journal/summaries/2.json": members["summaries.json"][100:]}
    in_pieces["_journal/summaries/1.json"] = members["summaries.json"][:100]
    del in_pieces["summaries.json"]
    assert trials(written(tmp_path / "cut-off.eval", {**in_pieces, last: b"{"})) == slow, "a log that was cut off"


WRONG: list[tuple[str, Callable[[Members], Members]]] = [
    ("a summary that differs", lambda log: changed_summary(log, 0, scores={"match": {"value": "I"}})),
    ("no usage, as in old logs", lambda log: changed_summary(log, 7, model_usage=None)),
    ("another epoch", lambda log: changed_summary(log, 7, epoch=9)),
    ("a target cut off", lambda log: changed_summary(log, 7, target="Paris and m...\n(content truncated)")),
    ("one target of several cut off", lambda log: changed_summary(log, 7, target=["P...\n(content truncated)", "x"])),
    ("not summaries", lambda log: {**log, "summaries.json": {"a": 1}, "_journal/summaries/1.json": [5]}),
    ("too few", lambda log: {**log, "summaries.json": log["summaries.json"][:-1], "_journal/summaries/1.json": []}),
    ("too many", lambda log: {name: log[name] for name in log if name != "samples/it3_epoch_1.json"}),
    ("a sample written after them", lambda log: _moved(log, "samples/it3_epoch_1.json")),
]


def _moved(members: Members, name: str) -> Members:
    """A log in which one sample was judged again at the end."""
    again = {**members[name], "scores": {"match": {"value": "C"}}}
    return {**{other: members[other] for other in members if other != name}, name: again}


@pytest.mark.parametrize(("what", "change"), WRONG, ids=[what for what, _ in WRONG])
def test_summaries_that_say_something_else_are_not_believed(
    members: Members, tmp_path: Path, what: str, change: Callable[[Members], Members]
) -> None:
    log = change(members)
    slow = trials(written(tmp_path / "slow.eval", without_summaries(log)))
    assert trials(written(tmp_path / "quick.eval", log)) == slow, what


def test_samples_that_inspect_keeps_in_parts_are_read() -> None:
    whole, parts = (
        sorted(RecordedFiles([LOGS / name]).attempts(), key=lambda each: (each.case, each.number))
        for name in ("better.eval", "better-chunked.eval")
    )
    assert parts == whole
    assert trials(LOGS / "better-chunked.eval") == trials(LOGS / "better.eval")


def test_a_text_in_another_part_of_a_sample_is_found(tmp_path: Path) -> None:
    members = members_of(LOGS / "better-chunked.eval")
    sample = members["samples/fr_epoch_1/sample.json"]
    sample["output"]["completion"] = "attachment://1"
    parts = {"samples/fr_epoch_1/attachments/0.json": ["no"], "samples/fr_epoch_1/attachments/1.json": ["It is Paris."]}
    path = written(tmp_path / "log.eval", {**members, **parts})
    first = next(each for each in RecordedFiles([path]).attempts() if (each.case, each.number) == ("capitals/fr", 1))
    assert first.answer is not None
    assert first.answer.text == "It is Paris."


def test_a_log_is_read_where_no_library_unpacks_zstandard(monkeypatch: pytest.MonkeyPatch) -> None:
    log = LOGS / "better.eval"
    with log.open("rb") as file, zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        assert {member.compress_type for member in members} == {ZSTANDARD_METHOD}
        usual = InspectArchive(archive, file)
        expected = [bytes(usual.unpacked(member)) for member in members]
        for library in ("compression.zstd", "zstandard", "pyarrow"):
            monkeypatch.setitem(sys.modules, library, None)
        plain = InspectArchive(archive, file)
        assert [plain.unpacked(member) for member in members] == expected
        # a value that is longer than the archive says is refused before it is unpacked
        largest = max(members, key=lambda member: member.file_size)
        largest.file_size = 1000
        with pytest.raises(UnreadableOutcomesError, match="cannot be unpacked"):
            plain.unpacked(largest)
