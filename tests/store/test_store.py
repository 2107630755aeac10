"""Runs on disk: what was written stays, and what was not written whole is owed again."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from steelyard.errors import InputError, StoreError
from steelyard.records import Answer, Case, Fact, Failure, Finding, Reply, RunInfo, Verdict
from steelyard.store.assembled_runs import create_run_atomically
from steelyard.store.fact_rows import FactScore
from steelyard.store.files import TolerantDecoder
from steelyard.store.journal import Journal, StoredRun, create_run
from steelyard.store.parquet import copy_to_parquet
from steelyard.store.run_folders import find_run, runs

CASES = (Case(id="a", prompt="a?", target="x"), Case(id="b", prompt="b?", target="x", tags=("t",)))
INFO = RunInfo(id="run-1", started_at="2026-01-01T00:00:00Z", models=("openai/m",), samples=2)


def reply(number: int = 1, text: str = 'naïve 答案\n"x"') -> Reply:
    return Reply(
        key=f"k{number}", at="t", case="a", model="m", number=number, asked="q", answer=Answer(text=text, latency=0.5)
    )


def verdict(number: int = 1) -> Verdict:
    found = Finding(passed=True)
    return Verdict(
        key=f"v{number}",
        at="t",
        case="a",
        model="m",
        number=number,
        ask=f"k{number}",
        tests="d",
        verifier="v",
        found=found,
    )


def failure(number: int = 1) -> Failure:
    return Failure(key=f"k{number}", at="t", case="a", model="m", number=number, stage="ask", message="503")


def written(folder: Path, *facts: Fact) -> Path:
    """A run folder with these facts; returns its journal."""
    with create_run(folder, INFO, CASES) as journal:
        for fact in facts:
            journal.append(fact)
    return folder / "attempts.jsonl"


def read(folder: Path) -> list[Fact]:
    return list(StoredRun(folder).facts())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    facts = [reply(), verdict(), failure(2), reply(2, ""), reply(3, "\x00\u2028\U0001f600" * 1000)]
    written(tmp_path / "run", *facts)
    stored = StoredRun(tmp_path / "run")
    assert list(stored.facts()) == facts
    assert stored.damaged == []
    assert stored.info == INFO
    assert stored.cases == CASES


def test_a_fact_can_be_read_as_soon_as_it_is_acknowledged(tmp_path: Path) -> None:
    with create_run(tmp_path, INFO, CASES) as journal:
        for number in range(1, 4):
            journal.append(reply(number))
            assert len(read(tmp_path)) == number


def test_a_line_is_whole_or_owed_wherever_it_was_cut_off(tmp_path: Path) -> None:
    path = written(tmp_path / "run", reply(1), reply(2))
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for end in range(last, len(whole)):
        path.write_bytes(whole[:end])
        assert read(path.parent) == [reply(1)]
        with Journal(path.parent) as journal:
            assert list(journal.facts()) == [reply(1)]
            journal.append(failure(2))
        assert read(path.parent) == [reply(1), failure(2)]


def test_a_first_line_that_was_cut_off_leaves_an_empty_journal(tmp_path: Path) -> None:
    path = written(tmp_path / "run", reply(1, "x" * 200_000))
    path.write_bytes(path.read_bytes()[:-1])
    with Journal(path.parent) as journal:
        journal.append(reply(2))
    assert read(path.parent) == [reply(2)]


def test_a_tail_of_zeros_as_a_power_cut_leaves_it_is_cut_off(tmp_path: Path) -> None:
    path = written(tmp_path / "run", reply(1))
    path.write_bytes(path.read_bytes() + b"\0" * 5000)
    assert read(path.parent) == [reply(1)]
    with Journal(path.parent) as journal:
        journal.append(reply(2))
    assert read(path.parent) == [reply(1), reply(2)]


def test_a_damaged_line_is_left_out_and_reported_and_the_others_stand(tmp_path: Path) -> None:
    path = written(tmp_path / "run", reply(1), reply(2), reply(3))
    first, second, third = path.read_bytes().splitlines(keepends=True)
    damages = [
        b"\n",
        b"not json\n",
        b"[]\n",
        second[: len(second) // 2] + b"\n",
        second.replace(b'"reply"', b'"gossip"'),
        second.replace(b'"number":2', b'"number":"two"'),
        b"[" * 100_000 + b"\n",
        b"\0" * 100 + b"\n",
        *(second[:place] + b"\xff" + second[place + 1 :] for place in range(0, len(second) - 1, 3)),
    ]
    for damaged in damages:
        path.write_bytes(first + damaged + third)
        stored = StoredRun(path.parent)
        assert list(stored.facts()) == [reply(1), reply(3)]
        (problem,) = stored.damaged
        assert (problem.where, problem.line, problem.fatal) == (str(path), 2, False)


def test_a_run_with_a_damaged_line_can_be_carried_on(tmp_path: Path) -> None:
    path = written(tmp_path / "run", reply(1), reply(2))
    path.write_bytes(path.read_bytes().replace(b'"k1"', b'"k\xff"'))
    with Journal(path.parent) as journal:
        assert list(journal.facts()) == [reply(2)]
        journal.append(reply(1))
    assert read(path.parent) == [reply(2), reply(1)]


def test_shards_of_a_journal_are_read_together(tmp_path: Path) -> None:
    path = written(tmp_path / "run", reply(1))
    path.with_name("attempts-2.jsonl").write_bytes(msgspec.json.encode(reply(2)) + b"\n")
    assert sorted(fact.key for fact in read(path.parent)) == ["k1", "k2"]


def judged(_: RunInfo, __: Sequence[Case], facts: Iterable[Fact]) -> list[FactScore]:
    """An opinion that tells which fact it is of."""
    return [FactScore(fact.number == 1, isinstance(fact, Verdict) or None, float(fact.number)) for fact in facts]


def rows(folder: Path, columns: str) -> list[tuple[Any, ...]]:
    return duckdb.execute(f"SELECT {columns} FROM '{folder}/attempts/*/*/*.parquet'").fetchall()


def test_the_copy_for_questions_has_one_row_per_fact_whatever_else_the_journal_holds(tmp_path: Path) -> None:
    path = written(tmp_path, failure(1), reply(1, "nul \x00, \u2028"), verdict(1), failure(2), reply(3, ""))
    path.write_bytes(path.read_bytes() + b'\xff\xfe\n[\n\n{"kind":"reply"\n{"cut')
    copy_to_parquet(tmp_path, judged)
    assert rows(tmp_path, "kind, number, reply, passed, failure") == [
        ("failure", 1, None, None, "503"),
        ("reply", 1, "nul \x00, \u2028", None, None),
        ("verdict", 1, None, True, None),
        ("failure", 2, None, None, "503"),
        ("reply", 3, "", None, None),
    ]


DAMAGES = [b"\n", b"{}\n", b"[]\n", b"null\n", b"\xff\n", b"\0\n", b'{"kind":"gossip"}\n', b'{"kind":"reply"}\n']


@pytest.mark.parametrize("damaged", DAMAGES)
def test_every_fact_has_its_own_opinion_whatever_stands_between_them(tmp_path: Path, damaged: bytes) -> None:
    path = written(tmp_path, reply(1), verdict(2), reply(3))
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(damaged + first + damaged + second + damaged + third + first.rstrip())
    path.with_name("attempts-2.jsonl").write_bytes(damaged + second + third.replace(b":3", b":4") + damaged)
    path.with_name("attempts-3.jsonl").write_bytes(damaged)
    copy_to_parquet(tmp_path, judged)
    expected = [(1, True, None, 1.0), (2, False, True, 2.0), (3, False, None, 3.0)]
    shard = [(2, False, True, 2.0), (4, False, None, 4.0)]
    assert sorted(rows(tmp_path, "number, counts, correct, score")) == sorted(expected + shard)
    assert sorted(names(tmp_path)) == sorted([*FILES, *COPY, "attempts-2.jsonl", "attempts-3.jsonl"])


FILES, COPY = ["attempts.jsonl", "cases.jsonl", "run.json"], ["attempts", "copy.json"]


def test_what_a_run_adds_while_it_is_copied_waits_for_the_next_copy(tmp_path: Path) -> None:
    path = written(tmp_path, reply(1), reply(2))
    path.with_name("attempts-2.jsonl").write_bytes(msgspec.json.encode(verdict(3)) + b"\n")

    def growing(info: RunInfo, cases: Sequence[Case], facts: Iterable[Fact]) -> list[FactScore]:
        made = judged(info, cases, facts)
        with path.open("ab") as file, path.with_name("attempts-2.jsonl").open("ab") as shard:
            file.write(msgspec.json.encode(reply(8)) + b'\n{"half')
            shard.write(msgspec.json.encode(reply(9)) + b"\n")
        return made

    copy_to_parquet(tmp_path, growing)
    assert sorted(rows(tmp_path, "number, score")) == [(1, 1.0), (2, 2.0), (3, 3.0)]


def test_a_run_without_a_single_fact_has_an_empty_copy(tmp_path: Path) -> None:
    written(tmp_path).unlink()
    copy_to_parquet(tmp_path, judged)
    assert rows(tmp_path, "run, correct, score") == []


def test_unknown_is_null_in_the_copy_and_zero_is_zero(tmp_path: Path) -> None:
    facts = written(tmp_path, reply(1), verdict(1), failure(2))
    found = [FactScore(True), FactScore(False, False, 0.0), FactScore()]
    copy_to_parquet(facts.parent, lambda _, __, facts: [found[place] for place, _ in enumerate(facts)])
    assert rows(tmp_path, "counts, correct, score") == [(True, None, None), (False, False, 0.0), (None, None, None)]
    assert rows(tmp_path, "tampered, rechecked, disagreed, own_score") == [
        (None, None, None, None),
        (None, 0, 0, None),
        (None, None, None, None),
    ]


def test_a_very_long_reply_is_in_the_copy_too(tmp_path: Path) -> None:
    written(tmp_path, reply(1, "x" * (6 << 20)), reply(2))
    copy_to_parquet(tmp_path, judged)
    found = rows(tmp_path, "number, length(reply)")
    assert [number for number, _ in found] == [1, 2]
    assert found[0][1] == 6 << 20


def test_a_copy_that_fails_leaves_the_one_before_it(tmp_path: Path) -> None:
    written(tmp_path, reply(1))
    copy_to_parquet(tmp_path, judged)
    with pytest.raises(StoreError, match="it holds 0 of 1 facts"):
        copy_to_parquet(tmp_path, lambda _, __, facts: [FactScore() for _ in facts][1:])
    with pytest.raises(StoreError, match="could not be written"):
        copy_to_parquet(tmp_path, judged, tmp_path / "run.json" / "none")
    assert rows(tmp_path, "number") == [(1,)]
    assert names(tmp_path) == sorted([*FILES, *COPY])


HOLD = """
import sys
from pathlib import Path
from steelyard.store.journal import Journal
with Journal(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holding(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes to this run."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_second_process_is_refused_until_the_first_one_ends_however_it_ends(tmp_path: Path) -> None:
    written(tmp_path / "run", reply(1))
    with holding(tmp_path / "run") as process:
        with pytest.raises(StoreError, match="another process is writing this run"):
            Journal(tmp_path / "run")
        # whoever only reads is not in the way
        assert read(tmp_path / "run") == [reply(1)]
        process.kill()
        process.wait()
        Journal(tmp_path / "run").close()


def test_a_cut_off_line_is_not_cut_away_under_the_process_that_is_writing_it(tmp_path: Path) -> None:
    path = written(tmp_path / "run", reply(1))
    with holding(path.parent):
        path.write_bytes(path.read_bytes() + b'{"half')
        with pytest.raises(StoreError):
            Journal(path.parent)
        assert path.read_bytes().endswith(b'{"half')


FILL = """
import resource, sys
from pathlib import Path
from steelyard.errors import StoreError
from steelyard.records import Answer, Reply
from steelyard.store.journal import Journal

def reply(number, size=300):
    return Reply(key=f"k{number}", at="t", case="a", model="m", number=number, asked="q", answer=Answer(text="x" * size))

folder, limit = Path(sys.argv[1]), int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
with Journal(folder) as journal:
    number = 0
    try:
        for number in range(1, 100_000):
            journal.append(reply(number, 300 + number % 7))
    except StoreError as error:
        print(error)
    # a smaller fact that still fits must not be glued to half of a larger one
    try:
        journal.append(reply(10**6, 1))
    except StoreError:
        pass
print(number)
"""


def fill(folder: Path, limit: int = 0) -> tuple[str, int]:
    """Write until there is no room; what was said then, and how many facts were acknowledged before."""
    ran = subprocess.run([sys.executable, "-c", FILL, str(folder), str(limit)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    said, number = ran.stdout.splitlines()
    return said, int(number) - 1


def test_a_file_that_may_not_grow_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    for limit in (1, 3000, 4096, 10_001):
        folder = tmp_path / str(limit)
        written(folder)
        said, count = fill(folder, limit)
        assert said == f"{folder}: no space left (File too large); free some space, then: steelyard resume {folder}"
        stored = StoredRun(folder)
        numbers = [fact.number for fact in stored.facts()]
        assert [number for number in numbers if number < 10**6] == list(range(1, count + 1))
        assert stored.damaged == []
        assert (folder / "attempts.jsonl").read_bytes()[-1:] in (b"\n", b"")


def test_a_full_disk_loses_nothing_that_was_acknowledged_and_the_run_carries_on_when_there_is_room(
    tmp_path: Path,
) -> None:
    mounted = tmp_path / "small"
    mounted.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", mounted], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount a small disk")
    try:
        folder = mounted / "run"
        written(folder)
        said, count = fill(folder)
        assert "no space left (No space left on device)" in said
        assert count > 50
        with pytest.raises(StoreError, match="no space left"), Journal(folder) as journal:
            journal.describe(msgspec.structs.replace(INFO, system="x" * 100_000))
        # a description that could not be written whole leaves the old one
        assert StoredRun(folder).info == INFO
        assert names(folder) == ["attempts.jsonl", "cases.jsonl", "run.json"]
        subprocess.run(["mount", "-o", "remount,size=256k", mounted], check=True)
        with Journal(folder) as journal:
            journal.append(reply(count + 1))
        numbers = [fact.number for fact in StoredRun(folder).facts()]
        assert [number for number in numbers if number < 10**6] == list(range(1, count + 2))
    finally:
        subprocess.run(["umount", mounted], check=True)


def test_a_folder_is_the_home_of_one_run(tmp_path: Path) -> None:
    path = written(tmp_path / "deep" / "run", reply(1))
    with pytest.raises(InputError, match=r"already contains a run; continue it with: steelyard resume"):
        create_run(path.parent, INFO, CASES)
    assert read(path.parent) == [reply(1)]


def test_a_folder_that_cannot_be_made_or_written_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file.*: (File exists|Not a directory)"):
        create_run(tmp_path / "file", INFO, CASES)
    with pytest.raises(StoreError, match="Not a directory"):
        create_run(tmp_path / "file" / "run", INFO, CASES)
    with pytest.raises(StoreError, match="No such file"):
        Journal(tmp_path / "none")


DESCRIBE = """
import resource, sys
from pathlib import Path
import msgspec
from steelyard.store.journal import Journal
with Journal(Path(sys.argv[1])) as journal:
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, resource.RLIM_INFINITY))
    journal.describe(msgspec.structs.replace(journal.info, system="x" * 1000))
"""


def test_a_description_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    written(tmp_path)
    ran = subprocess.run([sys.executable, "-c", DESCRIBE, str(tmp_path)], capture_output=True, text=True)
    assert "no space left" in ran.stderr
    assert StoredRun(tmp_path).info == INFO
    assert names(tmp_path) == ["attempts.jsonl", "cases.jsonl", "run.json"]


def test_a_reader_never_sees_half_a_description(tmp_path: Path) -> None:
    written(tmp_path)
    with Journal(tmp_path) as journal:
        opened = (tmp_path / "run.json").open("rb")
        journal.describe(msgspec.structs.replace(INFO, samples=9))
        with opened:
            assert TolerantDecoder[RunInfo](RunInfo).decode(opened.read()) == INFO
    assert StoredRun(tmp_path).info.samples == 9


@pytest.mark.parametrize("content", [b"", b"{", b'{"id": 3}', b'{"id": "\xff"}', b"[" * 100_000])
def test_a_broken_run_folder_is_the_users_to_mend(tmp_path: Path, content: bytes) -> None:
    written(tmp_path / "run", reply(1))
    (tmp_path / "run" / "cases.jsonl").write_bytes(content + b"\n")
    if content:
        with pytest.raises(InputError, match=r"cases\.jsonl"):
            _ = StoredRun(tmp_path / "run").cases
    (tmp_path / "run" / "run.json").write_bytes(content)
    with pytest.raises(InputError, match=r"run\.json: not the description of a run"):
        _ = StoredRun(tmp_path / "run").info
    # it is passed over where runs are listed
    assert runs(tmp_path) == []


def test_latest_is_the_run_that_began_last(tmp_path: Path) -> None:
    for name, started_at in (
        ("z-old", "2026-01-01T00:00:00Z"),
        ("a-new", "2026-01-03T00:00:00Z"),
        ("m", "2026-01-02T00:00:00Z"),
    ):
        info = msgspec.structs.replace(INFO, id=name, started_at=started_at)
        create_run(tmp_path / name, info, CASES).close()
    (tmp_path / "empty").mkdir()
    assert [run.folder.name for run in runs(tmp_path)] == ["z-old", "m", "a-new"]
    assert find_run("latest", tmp_path) == tmp_path / "a-new"


def test_a_run_is_found_by_path_or_by_name(tmp_path: Path) -> None:
    written(tmp_path / "runs" / "one")
    assert find_run(str(tmp_path / "runs" / "one"), tmp_path / "elsewhere") == tmp_path / "runs" / "one"
    assert find_run("one", tmp_path / "runs") == tmp_path / "runs" / "one"


def test_a_run_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="no runs here yet; start one with: steelyard run"):
        find_run("latest", tmp_path)
    with pytest.raises(InputError, match=r'no run "none" here or under .*; `steelyard list` shows what there is'):
        find_run("none", tmp_path)
    with pytest.raises(InputError, match=r'^no run "a\\u000ab" here'):
        find_run("a\nb", tmp_path)
    with pytest.raises(InputError, match=r"folder: not a run folder \(it has no run\.json\)"):
        find_run(str(tmp_path / "folder"), tmp_path)
    (tmp_path / "notes.csv").write_text("a,b\n")
    with pytest.raises(InputError, match=r"notes.csv: neither a run folder nor a file of results that we recognise"):
        find_run(str(tmp_path / "notes.csv"), tmp_path)
    with pytest.raises(InputError, match="not a run folder"):
        _ = StoredRun(tmp_path / "folder").info


def test_nothing_is_left_behind_but_the_files_of_the_run(tmp_path: Path) -> None:
    written(tmp_path, reply(1))
    assert names(tmp_path) == ["attempts.jsonl", "cases.jsonl", "run.json"]


def is_opened(folder: Path, but: int) -> bool:
    """Whether this process has a folder open, by another descriptor than this one."""
    for link in Path("/proc/self/fd").iterdir():
        try:
            if link.name != str(but) and link.readlink() == folder:
                return True
        except OSError:
            continue
    return False


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="nothing tells what is open here")
def test_a_run_that_is_finished_while_another_waits_for_it_costs_a_third_one_nothing(tmp_path: Path) -> None:
    place, aside = tmp_path / "all", tmp_path / ".all.arising"
    aside.mkdir()
    first = os.open(aside, os.O_RDONLY)
    fcntl.flock(first, fcntl.LOCK_EX)
    said: list[str] = []

    def second() -> None:
        try:
            with create_run_atomically(place):
                said.append("made")
        except (InputError, StoreError) as error:
            said.append(str(error))

    waiting = threading.Thread(target=second)
    waiting.start()
    while waiting.is_alive() and not is_opened(aside, first):
        pass
    # the first one gets its place, and a third one begins, before the second has the lock
    aside.rename(place)
    (place / "run.json").write_text("{}")
    aside.mkdir()
    (aside / "attempts.jsonl").write_text("paid for")
    third = os.open(aside, os.O_RDONLY)
    fcntl.flock(third, fcntl.LOCK_EX)
    os.close(first)
    waiting.join()
    os.close(third)
    assert (aside / "attempts.jsonl").read_text() == "paid for"
    assert (place / "run.json").exists()
    assert len(said) == 1
    assert "another process is putting a run together there" in said[0]


def test_a_run_that_is_finished_just_now_is_found_in_its_place(tmp_path: Path) -> None:
    place, aside = tmp_path / "all", tmp_path / ".all.arising"
    with create_run_atomically(place) as journal:
        journal.ask(CASES)
        journal.describe(INFO)
        with (
            pytest.raises(StoreError, match="another process is putting a run together there"),
            create_run_atomically(place),
        ):
            pass
        assert aside.is_dir()
    with pytest.raises(InputError, match="already contains a run"), create_run_atomically(place):
        pass
    assert not aside.exists()
    assert StoredRun(place).info == INFO


def test_a_pipe_among_the_files_of_a_run_keeps_nobody_waiting(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with create_run(folder, INFO, CASES) as journal:
        journal.append(reply())
    os.mkfifo(folder / "attempts-2.jsonl")
    stored = StoredRun(folder)
    with pytest.raises(StoreError, match="not a plain file"):
        list(stored.facts())
    (folder / "cases.jsonl").unlink()
    (folder / "cases.jsonl").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="not a plain file"):
        _ = stored.cases
