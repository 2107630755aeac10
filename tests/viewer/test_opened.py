"""A run in memory says what its journals say, however it got there."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steelyard import records
from steelyard.analysis import summary
from steelyard.analysis.attempt_texts import attempt_texts
from steelyard.engine.results.attempt_index import INDEX_END
from steelyard.engine.tiers.reply_judgments import reply_judgments
from steelyard.errors import InputError, StoreError
from steelyard.records import Answer, Finding, Reply, RunInfo, Verdict
from steelyard.reports.figures import outcome
from steelyard.store.journal import Journal, StoredRun, create_run
from steelyard.store.run_folders import ATTEMPT_INDEX_FILE
from steelyard.viewer.run_view import AttemptRow, Column, RunView
from steelyard.viewer.tier_views import judgments
from support.mixed_runs import CASES, described, encoded, journal, mixed_run, prepared
from support.studies import with_slow

A = CASES[0]
INFO = RunInfo(id="run", started_at="2026-01-01T00:00:00Z", names=("m",), samples=2)


def reply(number: int, text: str = "answer", model: str = "m") -> Reply:
    return Reply(
        key=f"k{number}", at="t", case=A.id, model=model, number=number, asked="", answer=Answer(text=text, latency=1.5)
    )


def verdict(number: int, passed: bool = True, model: str = "m") -> Verdict:
    tests = (records.Test(name="t", outcome="passed" if passed else "failed"),)
    return Verdict(
        key="v",
        at="t",
        case=A.id,
        model=model,
        number=number,
        ask=f"k{number}",
        tests=A.tests_digest,
        verifier="v",
        found=Finding(code="x", compiled=True, tests=tests, warnings=0),
    )


def run(folder: Path, *facts: Reply | Verdict) -> Path:
    with create_run(folder, INFO, [A]) as journal:
        for fact in facts:
            journal.append(fact)
    return folder


def hold(opened: RunView) -> None:
    """Hold all that is known of a run against what its journals tell when they are read from their beginning."""
    stored = StoredRun(opened.folder)
    info, cases = stored.info, stored.cases
    tried = attempt_texts(info, cases, stored.facts())
    assert opened.info == info
    assert opened.cases == cases
    assert len(opened.problems) == len(stored.damaged)
    assert opened.summary() == summary.summarise(info, cases, stored.facts())
    assert [
        (one.model, one.tier, one.attempts, one.correct, one.missing, one.cost_usd) for one in opened.headlines
    ] == [
        (one.model, one.tier, one.attempts, one.correct, one.missing, one.cost_usd) for one in opened.summary().models
    ]
    assert {Column(model.model, model.tier) for model in opened.summary().models} <= set(opened.columns)
    assert list(opened.columns) == sorted(opened.columns)
    assert len(opened.rows) == len(tried)
    told = reply_judgments(stored, {one.reply.key for one in tried if one.reply})
    for row, one in zip(opened.rows, tried, strict=True):
        assert (cases[row.case], *opened.columns[row.column], row.number) == one[:4]
        assert (row.outcome, row.score) == (outcome(one), one.score)
        answer = one.reply.answer if one.reply else Answer(text="", finish="")
        assert row.latency == (answer.latency if one.reply else None)
        assert (row.finish, row.input_tokens, row.output_tokens) == (
            answer.finish,
            answer.input_tokens,
            answer.output_tokens,
        )
        assert row.cost_usd == (answer.cost.usd if answer.cost else None)
        assert opened.attempt(one.case.id, one.model, one.tier, one.number) == one
        assert judgments(opened, one) == (told.get(one.reply.key, []) if one.reply else [])


@pytest.mark.parametrize("seed", with_slow(range(8), range(8, 25)))
def test_rows_add_up_to_what_facts_add_up_to(tmp_path: Path, seed: int) -> None:
    opened = RunView(mixed_run(tmp_path / "run", seed))
    hold(opened)
    stored = StoredRun(opened.folder)
    asked: list[dict[str, Any]] = [{"k": (3, 1)}, {"rule": "code-structured"}, {"rule": "own", "k": (1, 2, 3)}]
    for other in asked:
        expected = summary.summarise(stored.info, stored.cases, stored.facts(), **other)
        assert opened.summary(**other) == opened.summary(**other) == expected


@pytest.mark.parametrize("seed", with_slow(range(25, 33), range(33, 50)))
def test_so_do_those_that_were_written_down_when_a_sitting_ended(tmp_path: Path, seed: int) -> None:
    folder = prepared(mixed_run(tmp_path / "run", seed))
    opened = RunView(folder)
    hold(opened)
    (folder / ATTEMPT_INDEX_FILE).unlink()
    scanned = RunView(folder)
    assert scanned.rows == opened.rows
    assert scanned.problems == opened.problems
    stored = StoredRun(folder)
    expected = summary.summarise(stored.info, stored.cases, stored.facts(), k=(1, 3), rule="code-structured")
    assert opened.summary((1, 3), "code-structured") == expected


@pytest.mark.parametrize("seed", with_slow(range(50, 54), range(54, 62)))
def test_so_do_those_of_a_run_that_grew_in_many_small_steps(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    content = journal(chance, 90)
    path = tmp_path / "run" / "attempts.jsonl"
    with create_run(path.parent, described(chance), CASES):
        opened = RunView(path.parent)
        assert opened.is_growing
        assert opened.rows == ()
        begin = 0
        while begin < len(content):
            end = begin + chance.choice([1, 40, 700, 5000])
            with path.open("ab") as file:
                file.write(content[begin:end])
            begin = end
            before, opened = opened, opened.refreshed()
            assert opened.version != before.version
            if chance.random() < 0.2:
                hold(opened)
        assert path.read_bytes() == content
        hold(opened)
        assert opened.refreshed() is opened
    ended = opened.refreshed()
    assert not ended.is_growing
    assert ended.version != opened.version
    hold(ended)


def test_a_row_is_without_texts_and_says_why_it_is_not_correct(tmp_path: Path) -> None:
    failed = msgspec.structs.replace(verdict(2, passed=False), found=Finding(code="x", label="time limit"))
    late = msgspec.structs.replace(reply(3), at="later")
    opened = RunView(run(tmp_path, reply(1), verdict(1), reply(2, " "), failed, late))
    assert [row[:8] for row in opened.rows] == [
        (0, 0, 1, "correct", 1.0, "", "", "stop"),
        (0, 0, 2, "wrong", 0.0, "time limit", "time limit", "stop"),
        (0, 0, 3, "missing", None, "verify", "not verified yet", "stop"),
    ]
    assert [row.at for row in opened.rows] == ["t", "t", "later"]
    assert isinstance(opened.rows[0], AttemptRow)


def test_a_finished_run_is_opened_without_reading_its_journal(tmp_path: Path) -> None:
    folder = prepared(mixed_run(tmp_path / "run", 7))
    known = RunView(folder)
    path = folder / "attempts.jsonl"
    state = path.stat()
    # as large and as old as before, but there is nothing in it any more
    path.write_bytes(b"\n" * state.st_size)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    opened = RunView(folder)
    assert opened.rows == known.rows
    assert opened.summary() == known.summary()


def test_a_growing_run_is_read_on_from_where_it_was(tmp_path: Path) -> None:
    path = run(tmp_path / "run", reply(1), verdict(1), reply(2, "x" * 500)) / "attempts.jsonl"
    with Journal(path.parent) as journal:
        opened = RunView(path.parent)
        first, rest = path.read_bytes().split(b"\n", 1)
        # nobody who reads on will notice
        with path.open("r+b") as file:
            file.write(b" " * len(first))
        journal.append(verdict(2))
        grown = opened.refreshed()
    assert [row.outcome for row in grown.rows] == ["correct", "correct"]
    assert [row.outcome for row in opened.rows] == ["correct", "missing"]
    assert rest in path.read_bytes()


def test_what_is_not_finished_is_not_there_yet(tmp_path: Path) -> None:
    path = run(tmp_path / "run", reply(1), verdict(1), reply(2)) / "attempts.jsonl"
    whole = path.read_bytes()
    for end in range(len(whole) - 60, len(whole)):
        path.write_bytes(whole[:end])
        opened = RunView(path.parent)
        assert len(opened.rows) == 1
        assert opened.problems == ()
    path.write_bytes(whole)
    assert len(opened.refreshed().rows) == 2


def test_a_new_model_and_a_new_journal_are_seen_in_a_growing_run(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", reply(1), verdict(1))
    with Journal(folder) as journal:
        opened = RunView(folder)
        journal.append(reply(1, model="another"))
        second = opened.refreshed()
        assert second.columns == (Column("another", ""), Column("m", ""))
        assert [(row.case, row.column, row.number) for row in second.rows] == [(0, 0, 1), (0, 1, 1)]
        (folder / "attempts-1.jsonl").write_bytes(encoded(reply(2)))
        third = second.refreshed()
        assert len(third.rows) == 3
        hold(third)


def test_what_was_changed_and_not_only_added_to_is_read_anew(tmp_path: Path) -> None:
    path = run(tmp_path / "run", reply(1), verdict(1), reply(2)) / "attempts.jsonl"
    with Journal(path.parent) as journal:
        opened = RunView(path.parent)
        path.write_bytes(b"".join(map(encoded, (reply(1, "y"), verdict(1, passed=False), reply(2), verdict(2)))))
        hold(opened := opened.refreshed())
        assert [row.outcome for row in opened.rows] == ["wrong", "correct"]
        other = msgspec.structs.replace(A, target="other tests")
        journal.ask([other])
        hold(opened := opened.refreshed())
        assert [row.outcome for row in opened.rows] == ["missing", "missing"]
        journal.ask([A])
        hold(opened := opened.refreshed())
        journal.describe(msgspec.structs.replace(INFO, rule="code-structured"))
        hold(opened := opened.refreshed())
        journal.describe(msgspec.structs.replace(INFO, samples=5))
        hold(opened := opened.refreshed())
        journal.describe(msgspec.structs.replace(INFO, samples=6))
        hold(opened.refreshed())


def test_an_index_of_another_state_is_not_believed(tmp_path: Path) -> None:
    folder = prepared(run(tmp_path / "run", reply(1), verdict(1), reply(2)))
    with Journal(folder) as journal:
        journal.append(verdict(2, passed=False))
    assert [row.outcome for row in RunView(folder).rows] == ["correct", "wrong"]
    prepared(folder)
    path = folder / "attempts.jsonl"
    # as long as before, and by chance as old
    path.write_bytes(path.read_bytes().replace(b'"failed"', b'"passed"'))
    os.utime(path, ns=(1, 1))
    assert [row.outcome for row in RunView(folder).rows] == ["correct", "correct"]


def test_an_index_that_is_damaged_costs_time_and_nothing_else(tmp_path: Path) -> None:
    folder = prepared(mixed_run(tmp_path / "run", 3))
    index = folder / ATTEMPT_INDEX_FILE
    whole, expected = index.read_bytes(), RunView(folder).rows
    chance = random.Random(0)
    damages = [b"", b"\xc0", whole[:-1], whole[: len(whole) // 2], b"\x91" * 100_000, msgspec.msgpack.encode([1, 2])]
    index_size = int.from_bytes(whole[-15:-7], "little")
    made_of, (columns, gists, _, *rest), size, ((place, length, count),) = msgspec.msgpack.decode(
        whole[-15 - index_size : -15]
    )
    told, rows = whole[:size], msgspec.msgpack.decode(whole[place : place + length])
    nan, digest = float("nan"), AttemptRow._fields.index("digest")

    def spoilt(
        gists: list[Any] = gists, rows: list[Any] = rows, rest: list[Any] = rest, summary: bytes = told
    ) -> bytes:
        block = msgspec.msgpack.encode(rows)
        blocks = [[len(summary), len(block), count]]
        footer = msgspec.msgpack.encode([made_of, [columns, gists, [], *rest], len(summary), blocks])
        return summary + block + footer + len(footer).to_bytes(8, "little") + INDEX_END

    assert spoilt() == whole
    for field, value in ((0, -1), (0, 99), (1, 99), (digest, 99), (digest, -2), (8, nan), (9, nan), (4, float("inf"))):
        changed = [list(row) for row in rows]
        changed[3][field] = value
        damages.append(spoilt(rows=changed))
    gist = [[True, nan, None, [nan] * 5], *gists[0][1:]]
    damages.append(spoilt(gists=[gist, *gists[1:]]))
    damages.append(spoilt(rest=[["\0", "../run"], *rest[1:]]))
    damages.append(spoilt(summary=b"no summary"))
    for damaged in damages:
        index.write_bytes(damaged)
        opened = RunView(folder)
        assert opened.rows == expected
        hold(opened)
    for _ in range(80):
        spoiled_byte = bytearray(whole)
        spoiled_byte[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        index.write_bytes(spoiled_byte)
        # what a spoiled index says may be wrong, but it is said without a fall
        opened = RunView(folder)
        opened.summary()
        for row in opened.rows:
            column = opened.columns[row.column]
            with suppress(StoreError):
                opened.attempt(opened.cases[row.case].id, column.model, column.tier, row.number)


def test_an_attempt_that_lies_no_longer_where_it_lay_is_refused(tmp_path: Path) -> None:
    path = run(tmp_path / "run", reply(1), verdict(1), reply(2), verdict(2)) / "attempts.jsonl"
    opened = RunView(path.parent)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[2], lines[3], lines[0], lines[1]]))
    with pytest.raises(
        StoreError, match="the file has changed and another attempt is at this place; read the run again"
    ):
        opened.attempt(A.id, "m", "", 1)
    path.write_bytes(b"[]\n" * 400)
    with pytest.raises(StoreError, match=r"attempts.jsonl: no fact at byte 0; it has changed, so read it again"):
        opened.attempt(A.id, "m", "", 1)
    path.unlink()
    with pytest.raises(StoreError, match=r"attempts.jsonl: cannot be read: No such file"):
        opened.attempt(A.id, "m", "", 1)


def test_an_attempt_that_is_not_there_is_none(tmp_path: Path) -> None:
    opened = RunView(run(tmp_path / "run", reply(1)))
    assert opened.attempt(A.id, "m", "", 1) is not None
    for asked in ((A.id, "m", "", 2), (A.id, "m", "T1", 1), (A.id, "n", "", 1), ("none", "m", "", 1)):
        assert opened.attempt(*asked) is None


def test_nothing_outside_of_a_run_folder_is_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(encoded(reply(2, "secret")))
    folder = run(tmp_path / "run", reply(1))
    (folder / "attempts-1.jsonl").symlink_to(outside)
    os.mkfifo(folder / "attempts-2.jsonl")
    opened = RunView(folder)
    assert [row.number for row in opened.rows] == [1]
    assert [problem.partition(":")[0] for problem in opened.problems] == ["attempts-1.jsonl", "attempts-2.jsonl"]
    (folder / "run.json").rename(tmp_path / "run.json")
    (folder / "run.json").symlink_to(tmp_path / "run.json")
    with pytest.raises(InputError, match=r"run\.json: a link, which is not followed"):
        opened.refreshed()
    (folder / "run.json").unlink()
    os.mkfifo(folder / "run.json")
    with pytest.raises(InputError, match=r"run\.json: not a plain file"):
        RunView(folder)
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(InputError, match="link: cannot be read"):
        RunView(link)


def test_a_line_without_end_is_left_out_and_said(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", reply(1), reply(2, "x" * (17 << 20)), reply(3))
    opened = RunView(folder)
    assert [row.number for row in opened.rows] == [1, 3]
    assert opened.problems == ("attempts.jsonl:2: not a fact, left out: longer than 16 MB",)
    assert opened.attempt(A.id, "m", "", 3) is not None


def test_of_many_damaged_lines_the_first_are_named_and_the_others_counted(tmp_path: Path) -> None:
    path = run(tmp_path / "run", reply(1)) / "attempts.jsonl"
    path.write_bytes(b"damaged\n" * 5000 + path.read_bytes())
    opened = RunView(path.parent)
    assert len(opened.problems) == 21
    assert opened.problems[0].startswith("attempts.jsonl:1: not a fact, left out: ")
    assert opened.problems[-1] == "and 4,980 more such lines"
    assert len(opened.rows) == 1


def test_a_folder_that_is_no_run_or_gone_is_refused_in_a_sentence(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", reply(1))
    opened = RunView(folder)
    shutil.rmtree(folder)
    with pytest.raises(InputError, match="run: cannot be read: No such file or directory"):
        opened.refreshed()
    folder.mkdir()
    with pytest.raises(InputError, match=r"not a run folder \(it has no run\.json\)"):
        RunView(folder)
    (folder / "run.json").write_bytes(msgspec.json.encode(INFO))
    with pytest.raises(InputError, match=r"cases\.jsonl: No such file"):
        RunView(folder)
    (folder / "run.json").write_bytes(b" " * (17 << 20))
    with pytest.raises(InputError, match=r"run\.json: larger than 16 MB, which is too large to read"):
        RunView(folder)


def test_an_unknown_rule_is_refused(tmp_path: Path) -> None:
    opened = RunView(run(tmp_path / "run", reply(1)))
    with pytest.raises(InputError, match='unknown rule "mine"'):
        opened.summary(rule="mine")
