"""Streams that are closed, full or stuck change nothing about a command, and an error of ours is not a failed gate."""

from __future__ import annotations

import errno
import io
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
import tty
from contextlib import suppress
from pathlib import Path

import pytest

from steelyard.cli.entry import INTERRUPTED_EXIT_CODE
from steelyard.cli.last_resort import conclude_unexpected
from steelyard.cli.main import lost_interrupts_repeated, main
from steelyard.cli.streams import CI_VARIABLES, GuardedStream, is_ci
from steelyard.errors import DiskFullError, ExitCode
from support.command_line import steelyard
from support.facts import facts

STEELYARD = f"{shlex.quote(sys.executable)} -m steelyard.cli"
MODELS = """
import asyncio

def right(prompt):
    return "blue"

def wrong(prompt):
    return "red"

async def slow(prompt):
    await asyncio.sleep(0.25)
    return "blue"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that is right, and one that is wrong."""
    folder = tmp_path_factory.mktemp("streams")
    (folder / "models.py").write_text(MODELS)
    cases = [f'[[cases]]\nid = "c{number}"\nname = "c"\nprompt = "p"\ntarget = "blue"' for number in range(12)]
    (folder / "evals.toml").write_text("\n".join(['[eval_set]\nid = "s"\nname = "s"', *cases]))
    for name in ("right", "wrong"):
        arguments = (
            "run",
            "evals.toml",
            "-m",
            f"python:models.py:{name}",
            "-n",
            "4",
            "--output",
            f"steelyard-runs/{name}",
        )
        assert steelyard(folder, *arguments).returncode == 0
    return folder


def bash(place: Path, line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        cwd=place,
        env={**{name: value for name, value in os.environ.items() if name != "CI"}, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


GATE = f"{STEELYARD} gate --baseline right --current wrong"


def test_a_stream_that_nobody_reads_leaves_the_exit_code_as_it_is(place: Path) -> None:
    expected = {
        f"{GATE} | true": 1,
        f"{GATE} >&- 2>&-": 1,
        f"{GATE} 2>&1 > /dev/full | true": 1,
        f"{STEELYARD} verify wrong --fail-under 0.9 | true": 1,
        f"CI=1 {STEELYARD} show right | true": 0,
        f"{STEELYARD} query 'SELECT * FROM range(100000)' --format csv | true": 0,
        f"{STEELYARD} query 'SELECT * FROM range(100000)' --format csv > /dev/full": 3,
        f"{STEELYARD} --help > /dev/full": 3,
        f"{STEELYARD} show no-such-run 2>&-": 2,
        f"{STEELYARD} list 1< /dev/null": 0,
    }
    for line, code in expected.items():
        ran = bash(place, line)
        assert (ran.returncode, "Traceback" in ran.stderr, "ignored" in ran.stderr) == (code, False, False), ran


def test_a_run_without_any_stream_is_whole_and_nothing_is_printed_into_its_files(place: Path) -> None:
    ran = bash(place, f"{STEELYARD} run evals.toml -m python:models.py:right --output closed <&- >&- 2>&-")
    assert ran.returncode == 0
    found = facts(place / "closed")
    assert (len(found.replies), len(found.verdicts)) == (12, 12)


@pytest.mark.parametrize("trouble", ["closed", "full"])
def test_a_terminal_that_is_closed_or_never_read_does_not_end_or_hold_up_a_run(place: Path, trouble: str) -> None:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    if trouble == "full":
        os.set_blocking(theirs, False)
        with suppress(BlockingIOError):
            while os.write(theirs, b"x" * 100):
                pass
    command = [sys.executable, "-m", "steelyard.cli", "run", "evals.toml", "-m", "python:models.py:slow", "-j", "1"]
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    process = subprocess.Popen(
        [*command, "--output", f"terminal-{trouble}"],
        cwd=place,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    if trouble == "closed":
        said = b""
        while b"done" not in said:
            said += os.read(ours, 1000)
        os.close(ours)
    assert process.wait(60) == 0
    assert len(facts(place / f"terminal-{trouble}").verdicts) == 12


def test_an_error_of_ours_is_one_line_and_a_file_with_the_traceback_and_no_failed_gate(
    place: Path, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import shutil\n\ndef get_terminal_size(*_):\n    raise ZeroDivisionError('no columns')\n\n"
        "shutil.get_terminal_size = get_terminal_size\n"
    )
    environment = {"PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    ran = bash(place, f"{STEELYARD} show right", **environment)
    assert ran.returncode == 70
    assert ran.stderr.startswith("steelyard: an internal error at sitecustomize.py:4: ZeroDivisionError: no columns; ")
    assert len(ran.stderr.splitlines()) == 1
    (stored,) = tmp_path.glob("steelyard-error-*.txt")
    assert ran.stderr.endswith(f"; report it with {stored}\n")
    assert "Traceback (most recent call last)" in stored.read_text()
    assert stored.stat().st_mode & 0o077 == 0


def test_an_interrupt_that_a_library_turns_into_an_error_is_an_interrupt(place: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, shutil, signal, time\n\ndef get_terminal_size(*_):\n"
        "    try:\n        os.kill(os.getpid(), int(os.environ['NUMBER']))\n        time.sleep(60)\n"
        "    except KeyboardInterrupt:\n        pass\n    raise RuntimeError('Query interrupted')\n\n"
        "shutil.get_terminal_size = get_terminal_size\n"
    )
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        environment = {"PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path), "NUMBER": str(int(number))}
        ran = bash(place, f"{STEELYARD} show right", **environment)
        assert (ran.returncode, ran.stderr) == (130, "\ninterrupted\n")
    assert not list(tmp_path.glob("steelyard-error-*.txt"))


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "out of memory"),
        (OSError(errno.EMFILE, "Too many open files"), "ulimit -n"),
        (ExceptionGroup("", [ValueError(), OSError(errno.EIO, "Input/output error", "f")]), "f: Input/output error"),
        (ExceptionGroup("", [ValueError(), DiskFullError("no space left")]), "no space left"),
    ],
)
def test_a_machine_in_trouble_is_no_error_of_ours(error: Exception, says: str) -> None:
    code, sentence = conclude_unexpected(error)
    assert (code, says in sentence) == (3, True), sentence


def test_a_command_in_a_folder_that_is_gone_says_so(tmp_path: Path) -> None:
    ran = bash(tmp_path, f"mkdir gone; cd gone; rmdir ../gone; {STEELYARD} query 'SELECT 1'")
    assert "Traceback" not in ran.stderr
    assert (ran.returncode, len(ran.stderr.splitlines())) == (3, 1), ran.stderr


def test_few_open_files_are_named_and_blame_no_answer(place: Path) -> None:
    (place / "code.toml").write_text(
        '[eval_set]\nid = "s"\nname = "s"\n[[cases]]\nid = "double"\nname = "d"\nprompt = "p"\n\n'
        "[cases.verify]\nkind = 'python'\ntests = 'assert double(2) == 4'\n"
    )
    (place / "r.jsonl").write_text(
        '{"case_id": "double", "model": "m", "response": "```python\\ndef double(n):\\n    return n + n\\n```"}\n'
    )
    ran = bash(place, f"ulimit -n 48; {STEELYARD} run code.toml -m replay:r.jsonl --output few-files")
    assert ("Traceback" in ran.stderr, ran.returncode, "ulimit -n" in ran.stderr) == (False, 3, True), ran.stderr


@pytest.mark.parametrize("limit", ["-n 5", "-v 250000", "-d 250000"])
def test_a_limit_that_libraries_do_not_survive_is_refused_before_they_are_loaded(place: Path, limit: str) -> None:
    """Numpy's library would end the process with the exit code of a failed gate, crash it or hang."""
    ran = bash(place, f"ulimit {limit}; exec {STEELYARD} list")
    assert (ran.returncode, len(ran.stderr.splitlines()), limit[:2] in ran.stderr) == (3, 1, True), ran.stderr


def test_the_signal_of_a_closed_terminal_ends_a_run_as_ctrl_c_does(place: Path) -> None:
    command = [sys.executable, "-m", "steelyard.cli", "run", "evals.toml", "-m", "python:models.py:slow", "-j", "1"]
    process = subprocess.Popen(
        [*command, "-n", "40", "--output", "hung-up"], cwd=place, stderr=subprocess.PIPE, text=True
    )
    while not (place / "hung-up" / "attempts.jsonl").exists() or not facts(place / "hung-up").replies:
        assert process.poll() is None
    process.send_signal(signal.SIGHUP)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "continue with: steelyard resume hung-up" in said


def test_bytes_that_a_ci_service_reads_hold_no_commands_and_files_stay_as_they_are() -> None:
    for content, written in (
        (b"id,reply\n1,a\n::error::forged\n2,##[group]\xff\n", b"id,reply\n1,a\n: :error::forged\n2,# #[group]\xff\n"),
        (b"PAR1\n::error::data", b"PAR1\n::error::data"),
        # GitHub takes any blank away that .NET knows, and ends a line at a carriage return
        (
            "\u3000\u00a0::error::a\nb\r::stop-commands::c\n".encode(),
            "\u3000\u00a0: :error::a\nb\r: :stop-commands::c\n".encode(),
        ),
        (b"\r\n \t::add-mask::a\n", b"\r\n \t: :add-mask::a\n"),
        (b"section_start:1:x[collapsed=true]\r\x1b[0Ky", b"section_ start:1:x[collapsed=true]\r\x1b[0Ky"),
        (b"a ::b:: c::d\n", b"a ::b:: c::d\n"),
    ):
        held = io.BytesIO()
        GuardedStream(io.TextIOWrapper(held), is_ci_log=True).buffer.write(content)
        assert held.getvalue() == written


@pytest.mark.parametrize(
    ("pieces", "written"),
    [
        (("\n:", ":error::x\n"), "\n: :error::x\n"),
        (("\n ", " ", "::error::x\n"), "\n  : :error::x\n"),
        (("a #", "#[error]x"), "a # #[error]x"),
        (("##vs", "o[task.complete]x"), "##vs o[task.complete]x"),
        (("##teamcity", "[buildStatus"), "##teamcity [buildStatus"),
        (("section_st", "art:1:x"), "section_st art:1:x"),
        (("x" * 100 + " ", "::a"), "x" * 100 + " ::a"),
        (("x", "PAR1", "\n::error::x"), "xPAR1\n: :error::x"),
    ],
)
def test_a_command_in_two_pieces_is_none_to_a_ci_service(pieces: tuple[str, ...], written: str) -> None:
    for is_text in (True, False):
        held = io.BytesIO()
        stream = GuardedStream(io.TextIOWrapper(held, "utf-8"), is_ci_log=True)
        for piece in pieces:
            stream.write(piece) if is_text else stream.buffer.write(piece.encode())
        stream.flush()
        assert held.getvalue().decode() == written


def test_a_letter_in_two_pieces_hides_no_command_from_us_and_half_a_letter_is_written() -> None:
    held = io.BytesIO()
    stream = GuardedStream(io.TextIOWrapper(held, "utf-8"), is_ci_log=True)
    for piece in (b"\n\xe3\x80", b"\x80::error::x\n\xe3"):
        stream.buffer.write(piece)
    stream.flush()
    assert held.getvalue() == b"\n\xe3\x80\x80: :error::x\n\xe3"


@pytest.mark.parametrize("name", CI_VARIABLES)
def test_every_ci_service_is_known_by_what_it_sets(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for known in CI_VARIABLES:
        monkeypatch.delenv(known, raising=False)
    assert not is_ci()
    monkeypatch.setenv(name, "")
    assert is_ci()


INTERRUPTED_IMPORT = """
import signal, sys
from steelyard.cli.entry import main
class Interrupting:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
class Finder:
    def find_spec(self, name, path, target=None):
        Interrupting()
sys.meta_path.insert(0, Finder())
sys.argv = ["steelyard", "--version"]
sys.exit(main())
"""


def test_an_interrupt_during_an_import_ends_the_command_as_interrupted_and_without_a_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.INTERRUPTED, "", "\ninterrupted\n")
    assert INTERRUPTED_EXIT_CODE == ExitCode.INTERRUPTED


NUMPY_THREADS = """
import os, subprocess, sys
from steelyard.cli.entry import main
sys.argv = ["steelyard", "--version"]
try:
    main()
except SystemExit:
    pass
import numpy
shown = ["sh", "-c", "echo ${OPENBLAS_NUM_THREADS-unset}"]
print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS", "unset"))
print(subprocess.run(shown, capture_output=True, text=True).stdout, end="")
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted as Linux shows them")
@pytest.mark.parametrize("chosen", ["", "2"])
def test_numpy_starts_no_threads_and_other_programs_are_told_nothing_about_it(chosen: str) -> None:
    unset = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment = {**unset, "OPENBLAS_NUM_THREADS": chosen} if chosen else unset
    done = subprocess.run(
        [sys.executable, "-c", NUMPY_THREADS], capture_output=True, text=True, check=True, env=environment
    )
    threads = min(int(chosen or 1), len(os.sched_getaffinity(0)))
    assert done.stdout.splitlines()[1:] == [f"{threads} {chosen or 'unset'}", chosen or "unset"]


def test_an_interrupt_that_python_loses_in_a_callback_comes_again() -> None:
    class Interrupting:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def wait() -> None:
        Interrupting()
        time.sleep(30)

    with pytest.raises(KeyboardInterrupt), lost_interrupts_repeated():
        wait()


def test_what_functions_of_the_user_print_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "talkative.py").write_text(
        "import subprocess\n"
        "print('imported')\n"
        "def blue(prompt):\n"
        "    print('asked')\n"
        "    subprocess.run(['echo', 'by a program'])\n"
        "    return 'blue'\n"
    )
    (tmp_path / "one.jsonl").write_text('{"id": "a", "prompt": "?", "target": "blue"}\n')
    assert main(["run", "one.jsonl", "-m", "python:talkative.py:blue", "--format", "json", "--output", "run"]) == 0
    printed = capfd.readouterr()
    assert json.loads(printed.out)["summary"]
    assert {"imported", "asked", "by a program"} <= set(printed.err.splitlines())
    print("afterwards")
    assert capfd.readouterr().out == "afterwards\n"
