"""A folder of runs is listed whatever it holds, and runs are opened by the names of their folders alone."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

import steelyard
from steelyard.analysis.attempts import attempt_table
from steelyard.analysis.headlines import ModelHeadline, headlines
from steelyard.errors import InputError
from steelyard.records import Answer, Reply, RunInfo
from steelyard.store.journal import Journal, StoredRun, create_run
from steelyard.store.run_folders import HEADLINE_FILE, run_folder_snapshot
from steelyard.viewer.run_list import ListedRun, RunCatalog, RunListing
from support.mixed_runs import CASES, encoded, journal, mixed_run, prepared

BEGUN = "2026-01-01T00:00:00Z"


def run(folder: Path, attempts: int = 1, *, text: str = "answer", started_at: str = BEGUN) -> Path:
    """A run that was never ended."""
    info = RunInfo(id=folder.name, started_at=started_at, names=("m",), samples=attempts)
    with create_run(folder, info, CASES[:1]) as journal:
        for number in range(1, attempts + 1):
            journal.append(reply(number, text))
    return folder


def reply(number: int, text: str = "answer", at: str = BEGUN) -> Reply:
    return Reply(
        key=f"k{number}", at=at, case=CASES[0].id, model="m", number=number, asked="", answer=Answer(text=text)
    )


def ended(folder: Path, at: str = "2026-01-02T00:00:00Z") -> Path:
    """The same run, after its last sitting."""
    with Journal(folder) as journal:
        journal.describe(msgspec.structs.replace(journal.info, ended_at=at))
    return prepared(folder)


def by_name(listing: RunListing) -> dict[str, ListedRun]:
    return {run.name: run for run in listing.runs}


def worked_out(library: RunCatalog) -> RunListing:
    """The list once all figures are known."""
    listing = library.listed()
    while listing.pending:
        before, listing = listing, library.listed()
        assert listing.version != before.version or listing.pending == before.pending
    return listing


def expected(folder: Path) -> tuple[ModelHeadline, ...]:
    stored = StoredRun(folder)
    return headlines(stored.info, stored.cases, attempt_table(stored.info, stored.cases, stored.facts()))


def test_what_a_run_says_at_its_end_is_what_the_list_says(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded.jsonl"
    recorded.write_text("".join(f'{{"task_id": "sum", "solution": "{text}"}}\n' for text in ("4", "5", "4")))
    case = steelyard.Case(id="sum", prompt="2 + 2?", target="4")
    done = steelyard.run([case], models=f"replay:{recorded}", k=(2,), output=tmp_path / "runs" / "one")
    assert done.notes == ()
    library = RunCatalog(tmp_path / "runs")
    (listed,) = library.listed().runs
    assert (listed.name, listed.state, listed.problem, listed.cases) == ("one", "done", "", 1)
    assert (listed.id, listed.started_at, listed.eval_sets) == (done.info.id, done.info.started_at, ())
    (headline,) = listed.models
    assert (headline.model, headline.attempts, headline.correct, headline.missing) == ("recorded", 3, 2, 0)
    # the run did not ask for pass@1
    assert headline.pass_at_1 is not None
    assert headline.pass_at_1.value == 2 / 3
    assert listed.models == expected(done.folder)
    opened = library.open("one")
    assert opened.summary() == done.summary
    assert [row.outcome for row in opened.rows] == ["correct", "wrong", "correct"]


@pytest.mark.parametrize("seed", range(100, 112))
def test_figures_are_the_same_whether_they_were_written_down_or_not(tmp_path: Path, seed: int) -> None:
    folder = mixed_run(tmp_path / "run", seed)
    (scanned,) = worked_out(RunCatalog(tmp_path)).runs
    assert scanned.models == expected(folder)
    assert scanned.cases == len(CASES)
    prepared(folder)
    (listed,) = RunCatalog(tmp_path).listed().runs
    assert listed.models == scanned.models
    assert listed.cases == scanned.cases


def test_the_newest_run_comes_first(tmp_path: Path) -> None:
    for day in (2, 3, 1):
        run(tmp_path / f"day-{day}", started_at=f"2026-01-0{day}T00:00:00Z")
    (tmp_path / "broken").mkdir()
    assert [run.name for run in RunCatalog(tmp_path).listed().runs] == ["day-3", "day-2", "day-1", "broken"]


def test_a_run_is_done_growing_or_stopped(tmp_path: Path) -> None:
    run(tmp_path / "killed")
    ended(run(tmp_path / "done"))
    old = ended(run(tmp_path / "done before figures were written down"))
    (old / HEADLINE_FILE).unlink()
    again = ended(run(tmp_path / "carried on and killed"))
    with Journal(again) as journal:
        journal.append(reply(2, at="2026-01-03T00:00:00Z"))
    growing = run(tmp_path / "growing")
    library = RunCatalog(tmp_path)
    with Journal(growing):
        states = {run.name: run.state for run in library.listed().runs}
    assert states == {
        "killed": "stopped",
        "done": "done",
        "done before figures were written down": "done",
        "carried on and killed": "stopped",
        "growing": "growing",
    }
    assert by_name(library.listed())["growing"].state == "stopped"


def test_a_growing_run_is_listed_with_the_figures_it_has_so_far(tmp_path: Path) -> None:
    folder = ended(run(tmp_path / "run"))
    library = RunCatalog(tmp_path)
    first = library.listed()
    with Journal(folder) as journal:
        seen = []
        for number in range(2, 6):
            journal.append(reply(number))
            listing = library.listed()
            (listed,) = listing.runs
            seen.append((listed.state, listed.models[0].missing))
        assert library.listed().version == listing.version != first.version
    assert seen == [("growing", number) for number in range(2, 6)]
    (listed,) = library.listed().runs
    assert listed.models == expected(folder)


def test_a_growing_run_whose_tests_are_changed_is_read_anew_for_the_list(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", 2)
    library = RunCatalog(tmp_path)
    with Journal(folder) as journal:
        library.listed()
        journal.ask([msgspec.structs.replace(CASES[0], id="another"), CASES[0]])
        journal.append(reply(3))
        (listed,) = library.listed().runs
    assert (listed.models, listed.cases) == (expected(folder), 2)


def test_figures_that_take_long_to_work_out_are_worked_out_little_by_little(tmp_path: Path) -> None:
    for number in range(6):
        run(tmp_path / f"run-{number}", 40, text="x" * 20_000, started_at=f"2026-01-0{number + 1}T00:00:00Z")
    library = RunCatalog(tmp_path)
    pending: list[int] = []
    while not pending or pending[-1]:
        listing = library.listed()
        pending.append(listing.pending)
        # what is not known yet is nothing at all, and the newest is known first
        known = [bool(run.models) for run in listing.runs]
        assert known == sorted(known, reverse=True)
        assert len(pending) < 20
    assert pending[0] > 0
    assert pending == sorted(pending, reverse=True)
    assert all(run.models == expected(tmp_path / run.name) for run in library.listed().runs)


def test_what_is_no_run_is_listed_with_a_sentence_and_what_has_nothing_to_do_with_runs_is_not(tmp_path: Path) -> None:
    root, outside = tmp_path / "runs", run(tmp_path / "outside")
    run(root / "good")
    (root / "empty").mkdir()
    (run(root / "no description") / "run.json").unlink()
    (run(root / "cut off") / "run.json").write_text('{"id": "x"')
    (run(root / "not text") / "run.json").write_bytes(b"\xff\xfe")
    (run(root / "nested") / "run.json").write_bytes(b"[" * 200_000)
    (run(root / "huge") / "run.json").write_bytes(b" " * (17 << 20))
    (run(root / "no cases") / "cases.jsonl").unlink()
    (run(root / "bad cases") / "cases.jsonl").write_text("{\n")
    rule = run(root / "no such rule")
    info = msgspec.structs.replace(StoredRun(rule).info, rule="gone")
    (rule / "run.json").write_bytes(msgspec.json.encode(info))
    (root / "link").symlink_to(outside)
    (root / "loop").symlink_to(root / "loop")
    linked = run(root / "linked description") / "run.json"
    linked.unlink()
    linked.symlink_to(outside / "run.json")
    pipe = run(root / "pipe") / "run.json"
    pipe.unlink()
    os.mkfifo(pipe)
    (run(root / "a folder in its place") / "run.json").unlink()
    (root / "a folder in its place" / "run.json").mkdir()
    (root / "notes").mkdir()
    (root / "notes" / "todo.txt").touch()
    (root / ".hidden").mkdir()
    (root / "file").touch()
    library = RunCatalog(root)
    listed = by_name(worked_out(library))
    assert listed.pop("good").state == "stopped"
    assert all((one.state, one.models) == ("broken", ()) for one in listed.values())
    # another sentence for each kind, and none of them tells where the folder lies
    assert {one.name: one.problem.removeprefix(one.name).strip(":/ ") for one in listed.values()} == {
        "empty": "not a run (an empty folder)",
        "no description": "not a run (no run.json)",
        "cut off": "run.json: not the description of a run: Input data was truncated",
        "not text": "run.json: not the description of a run: JSON is malformed: invalid character (byte 0)",
        "nested": "run.json: not the description of a run: Expected `object`, got `array`",
        "huge": "run.json: larger than 16 MB, which is too large to read",
        "no cases": "cases.jsonl: not there",
        "bad cases": "cases.jsonl:1: not a case: Input data was truncated",
        "no such rule": 'unknown rule "gone"; known: code, code-structured',
        "link": "a link, and links are not followed",
        "linked description": "not a run (no run.json)",
        "pipe": "not a run (no run.json)",
        "a folder in its place": "not a run (no run.json)",
    }
    assert library.listed() == library.listed()
    for name in listed:
        with pytest.raises(InputError):
            library.open(name)


def test_a_run_is_opened_by_the_name_of_its_folder_and_by_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    run(root / "one")
    run(root / "one" / "within")
    run(tmp_path / "outside")
    (root / "link").symlink_to(tmp_path / "outside")
    library = RunCatalog(root)
    assert library.open("one").name == "one"
    names = ["", ".", "..", "../outside", "one/within", "one/", "./one", "one\0", "two", "link", "x" * 5000, "\ud800"]
    for name in [*names, str(root / "one"), str(tmp_path / "outside")]:
        with pytest.raises(InputError, match=r"^no run .* here; the list of runs shows what there is$") as caught:
            library.open(name)
        assert str(caught.value).isprintable()


def test_a_folder_that_is_itself_a_run_is_the_only_one(tmp_path: Path) -> None:
    folder = run(tmp_path / "one")
    run(folder / "within")
    (tmp_path / "link").symlink_to(folder)
    for root in (folder, tmp_path / "link"):
        library = RunCatalog(root)
        assert [run.name for run in library.listed().runs] == ["one"]
        assert library.open("one").folder == folder
        with pytest.raises(InputError, match="no run"):
            library.open("within")


def test_a_folder_that_is_not_there_holds_no_runs_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, why in (("none", "No such file or directory"), ("file", "Not a directory")):
        listing = RunCatalog(tmp_path / name).listed()
        assert (listing.runs, listing.pending) == ((), 0)
        assert listing.problem == f"{tmp_path / name}: cannot be read: {why}"
    assert RunCatalog(tmp_path).listed().problem == ""


def test_a_run_in_two_folders_is_listed_twice_with_a_word_about_it(tmp_path: Path) -> None:
    ended(run(tmp_path / "one"))
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    library = RunCatalog(tmp_path)
    listed = by_name(library.listed())
    assert {run.name: (run.state, run.problem) for run in listed.values()} == {
        "one": ("done", ""),
        "copy": ("done", "copy: is the same run as one"),
    }
    # a copy is younger than what it was made from, and yet nothing has to be worked out for the list
    assert listed["one"].models == listed["copy"].models != ()
    assert library.open("copy").rows == library.open("one").rows


def test_a_folder_that_may_not_be_read_is_broken_and_the_others_are_not(tmp_path: Path) -> None:
    names = ("open", "shut", "half shut")
    for name in names:
        run(tmp_path / name)
    tmp_path.chmod(0o755)
    (tmp_path / "shut").chmod(0)
    (tmp_path / "half shut" / "run.json").chmod(0)
    script = (
        "import os, sys; from pathlib import Path; from steelyard.viewer.run_list import RunCatalog\n"
        "library = RunCatalog(Path(sys.argv[1]))\n"
        "import steelyard.analysis.scoring\n"
        "os.chdir(sys.argv[1]); os.geteuid() or os.setuid(65534)\n"
        "library.root = Path('.')\n"
        "for run in library.listed().runs: print(run.name, run.state, run.problem, sep='|')\n"
    )
    try:
        command = [sys.executable, "-c", script, str(tmp_path)]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    finally:
        (tmp_path / "shut").chmod(0o755)
    assert sorted(told.splitlines()) == [
        "half shut|broken|half shut/run.json: Permission denied",
        "open|stopped|",
        "shut|broken|shut: cannot be read: Permission denied",
    ]


COME_AND_GO = """
import shutil, sys
from pathlib import Path
root, run = map(Path, sys.argv[1:])
print("begun", flush=True)
while True:
    for number in range(5):
        shutil.copytree(run, root / f"fleeting-{number}")
    for number in range(5):
        shutil.rmtree(root / f"fleeting-{number}")
"""


def test_folders_may_come_and_go_while_they_are_listed(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    run(root / "steady")
    library = RunCatalog(root)
    command = [sys.executable, "-c", COME_AND_GO, str(root), str(mixed_run(tmp_path / "fleeting", 1))]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as coming:
        try:
            assert coming.stdout is not None
            assert coming.stdout.readline() == b"begun\n"
            seen = set()
            for _ in range(1000):
                listed = by_name(library.listed())
                seen |= {one.state for one in listed.values()}
                assert listed["steady"].state == "stopped"
            assert coming.poll() is None
        finally:
            coming.kill()
    # some were seen half written, and some when they were whole
    assert {"stopped", "broken"} <= seen


def test_looking_whether_a_run_is_being_written_keeps_nobody_from_writing_it(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    over = threading.Event()

    def look() -> int:
        seen = 0
        while not over.is_set():
            seen += run_folder_snapshot(folder).is_locked
        return seen

    with ThreadPoolExecutor(2) as threads:
        looking = [threads.submit(look) for _ in range(2)]
        try:
            for number in range(200):
                with Journal(folder) as journal:
                    journal.append(reply(number))
        finally:
            over.set()
        assert sum(one.result() for one in looking) > 0


def test_a_run_is_read_once_however_many_want_it(tmp_path: Path) -> None:
    mixed_run(tmp_path / "run", 5, lines=2000)
    library = RunCatalog(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        opened = list(threads.map(lambda _: library.open("run"), range(8)))
    assert all(one is opened[0] for one in opened)
    path = tmp_path / "run" / "attempts.jsonl"
    with path.open("ab") as file:
        file.write(b"\n" + journal(random.Random(6), 50))
    assert library.open("run") is not opened[0]
    assert library.open("run") is library.open("run")


def test_a_run_that_is_gone_is_forgotten_and_one_in_its_place_is_another(tmp_path: Path) -> None:
    run(tmp_path / "run", 3)
    library = RunCatalog(tmp_path)
    first = library.open("run")
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(InputError, match="no run"):
        library.open("run")
    assert library.listed().runs == ()
    run(tmp_path / "run", 2)
    assert len(library.open("run").rows) == 2
    assert len(first.rows) == 3


def test_figures_of_another_state_of_the_run_are_not_shown(tmp_path: Path) -> None:
    folder = ended(run(tmp_path / "run", 2))
    kept = (folder / HEADLINE_FILE).read_bytes()
    library = RunCatalog(tmp_path)
    assert library.listed().pending == 0
    with (folder / "attempts.jsonl").open("ab") as file:
        file.write(encoded(reply(3)))
    (listed,) = worked_out(library).runs
    assert listed.models[0].missing == 3
    for damaged in (b"", b"{", kept[:-20], b"[" * 100_000, b"\xff", b'{"made_of": "", "cases": 1}', b" " * (2 << 20)):
        (folder / HEADLINE_FILE).write_bytes(damaged)
        (listed,) = worked_out(RunCatalog(tmp_path)).runs
        assert (listed.state, listed.models) == ("done", expected(folder))


def test_figures_that_count_what_a_link_leads_to_are_not_shown(tmp_path: Path) -> None:
    folder, outside = run(tmp_path / "run", 2), tmp_path / "outside.jsonl"
    outside.write_bytes(encoded(reply(3)))
    (folder / "attempts-1.jsonl").symlink_to(outside)
    ended(folder)
    library = RunCatalog(tmp_path)
    (listed,) = worked_out(library).runs
    assert listed.models[0].missing == len(library.open("run").rows) == 2


def test_nothing_is_written_into_the_folder(tmp_path: Path) -> None:
    mixed_run(tmp_path / "one", 1)
    prepared(mixed_run(tmp_path / "two", 2))

    def states() -> list[tuple[str, int, bytes]]:
        files = (path for path in sorted(tmp_path.rglob("*")) if path.is_file())
        return [(str(path), path.stat().st_mtime_ns, path.read_bytes()) for path in files]

    before = states()
    library = RunCatalog(tmp_path)
    worked_out(library)
    for name in ("one", "two"):
        opened = library.open(name)
        opened.summary()
        opened.refreshed()
    assert states() == before
