"""A sandbox runs what it is given, within limits, and is empty afterwards: tried with real processes at every level."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from steelyard.errors import InputError, VerifierError
from steelyard.protocols import GuestModules, ProcessResult, ResourceLimits, Workspace
from steelyard.sandbox import fair_clock
from steelyard.sandbox.fair_clock import (
    has_fair_clock,
    is_in_its_own_way,
    patience_seconds,
    process_tree_pids,
    tree_usage,
)
from steelyard.sandbox.levels import (
    ISOLATION_CLAIMS,
    ISOLATION_LEVEL_NAMES,
    ISOLATION_LEVELS,
    REQUIRED_ISOLATION_CLAIMS,
    probe_isolation,
    strongest_isolation,
)
from steelyard.sandbox.memory import process_tree_memory_bytes
from steelyard.sandbox.processors import processor_count
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.sandbox.worker import IsolationName, base_interpreter
from support.toolchains import isolation_level, unavailable

Made = TypeVar("Made")
Use = Callable[[Workspace], Awaitable[Made]]
SHORT = ResourceLimits(cpu_seconds=1, wall_seconds=1.5)


@pytest.fixture(params=[level for level in ISOLATION_LEVEL_NAMES if level != "seatbelt"])
def sandbox(request: pytest.FixtureRequest) -> ZygoteSandbox:
    return ZygoteSandbox(isolation_level(request.param))


def used(sandbox: ZygoteSandbox, use: Use[Made], files: dict[str, str | bytes] | None = None) -> Made:
    """What comes of using a workspace; nothing of it is left afterwards."""

    async def work() -> Made:
        try:
            async with sandbox.workspace(files or {}) as place:
                return await use(place)
        finally:
            await sandbox.close()

    return asyncio.run(work())


def shell(sandbox: ZygoteSandbox, script: str, limits: ResourceLimits = SHORT, **more: Any) -> ProcessResult:
    return used(sandbox, lambda place: place.run(["/bin/sh", "-c", script], limits=limits, **more))


def test_a_program_finds_its_files_its_input_and_its_environment(sandbox: ZygoteSandbox) -> None:
    async def use(place: Workspace) -> ProcessResult:
        return await place.run(
            ["/bin/sh", "-c", "cat a/b/file -; echo $WORD; echo to stderr >&2; exit 3"],
            stdin=b"input\n",
            environment={"WORD": "given"},
        )

    outcome = used(sandbox, use, {"a/b/file": "content\n"})
    assert outcome.stdout == b"content\ninput\ngiven\n"
    assert outcome.stderr == b"to stderr\n"
    assert (outcome.exit_code, outcome.limit) == (3, "")
    assert outcome.seconds > 0


def test_both_outputs_of_a_program_can_come_as_one_in_their_order(sandbox: ZygoteSandbox) -> None:
    outcome = shell(sandbox, "echo first; echo second >&2; echo third", one_output=True)
    assert (outcome.stdout, outcome.stderr) == (b"first\nsecond\nthird\n", b"")


def test_what_is_readable_may_lie_anywhere(sandbox: ZygoteSandbox) -> None:
    async def read(folder: str) -> ProcessResult:
        try:
            async with sandbox.workspace({}, readable=[folder]) as place:
                return await place.run(["/bin/cat", f"{folder}/given"])
        finally:
            await sandbox.close()

    for above in ("/tmp", "/var/tmp"):
        with tempfile.TemporaryDirectory(dir=above) as folder:
            Path(folder).chmod(0o755)
            (Path(folder) / "given").write_text("found")
            assert asyncio.run(read(folder)).stdout == b"found"


def test_a_program_may_lie_anywhere_and_be_reached_through_links(sandbox: ZygoteSandbox, tmp_path: Path) -> None:
    async def run(path: Path) -> ProcessResult:
        try:
            async with sandbox.workspace({}, readable=[str(path)]) as place:
                return await place.run([str(path)])
        finally:
            await sandbox.close()

    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid():
            # nothing is taken away: one of these may be /tmp itself
            folder.chmod(stat.S_IMODE(folder.stat().st_mode) | 0o055)
    program = tmp_path / "home" / "of" / "someone" / "program"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    link = tmp_path / "link"
    link.symlink_to(program)
    (tmp_path / "folder").symlink_to(program.parent)
    for path in (program, link, tmp_path / "folder" / "program", tmp_path / "home" / ".." / "link"):
        assert asyncio.run(run(path)).stdout == b"found\n", path
    # below a folder of the system, which is shown already
    for path in (Path("/usr/bin/env"), Path("/bin/sh")):
        assert asyncio.run(run(path)).exit_code == 0, path


IN_PRIVATE_USR = """
mount -t tmpfs none /usr/local/bin && mount -t tmpfs none /opt && mkdir /opt/there &&
printf '#!/bin/sh\\necho found' > /usr/local/bin/program && printf '#!/bin/sh\\necho found' > /opt/there/program &&
chmod 755 /usr/local/bin/program /opt/there/program && ln -s /opt/there/program /usr/local/bin/link && exec "$@"
"""
RUN_READABLE_PROGRAM = """
import asyncio, sys
from steelyard.sandbox.levels import ISOLATION_LEVELS
from steelyard.sandbox.sandbox import ZygoteSandbox
async def run(sandbox, path):
    async with sandbox.workspace({}, readable=[path]) as place:
        print((await place.run([path])).stdout.decode())
async def main():
    sandbox = ZygoteSandbox(next(each for each in ISOLATION_LEVELS if each.level == sys.argv[1]))
    for path in sys.argv[2:]:
        await run(sandbox, path)
    await sandbox.close()
asyncio.run(main())
"""


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="only root can put files below /usr")
def test_a_program_below_usr_or_linked_from_there_is_readable(sandbox: ZygoteSandbox) -> None:
    places = ("/usr/local/bin/program", "/usr/local/bin/link", "/opt/there/program")
    if any(each.startswith(("/usr/local/bin", "/opt")) for each in (base_interpreter(), sys.executable)):
        pytest.skip("Python itself lies there")
    enclosed = ("unshare", "--mount", "/bin/sh", "-c", f"umask 077; {IN_PRIVATE_USR}", "sh")
    ran = subprocess.run(
        [*enclosed, sys.executable, "-c", RUN_READABLE_PROGRAM, sandbox.level, *places],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout.split(), ran.stderr) == (["found"] * len(places), "")


@contextmanager
def busy_processor(others: int) -> Iterator[None]:
    """Everything that we start shares one processor with so many processes that only burn it."""
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    # the kernel shares processors among sessions first
    burn = [base_interpreter(), "-c", "while True: pass"]
    burning = [subprocess.Popen(burn, start_new_session=True) for _ in range(others)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()
        os.sched_setaffinity(0, processors)


BURN = [base_interpreter(), "-c", "import time\nwhile time.process_time() < 0.5: pass\nprint('done')"]
with_and_without_a_root_of_its_own = pytest.mark.parametrize(
    "sandbox", ["full", pytest.param("process", marks=pytest.mark.slow)], indirect=True
)
"""The clock is the same everywhere, but for how the processes of an answer are found."""
fair = pytest.mark.skipif(not has_fair_clock(), reason="the kernel does not tell how long processes wait")


@fair
@with_and_without_a_root_of_its_own
def test_time_in_which_code_waits_for_a_processor_does_not_count(sandbox: ZygoteSandbox) -> None:
    limits = ResourceLimits(cpu_seconds=10, wall_seconds=1)
    with busy_processor(4):
        outcome = used(sandbox, lambda place: place.run(BURN, limits=limits))
    assert (outcome.stdout, outcome.limit) == (b"done\n", "")
    assert outcome.seconds > limits.wall_seconds


@fair
@with_and_without_a_root_of_its_own
def test_code_that_sleeps_is_ended_on_a_busy_machine_too(sandbox: ZygoteSandbox) -> None:
    with busy_processor(4):
        outcome = shell(sandbox, "sleep 600", ResourceLimits(cpu_seconds=10, wall_seconds=1))
        ended = shell(sandbox, "while :; do sleep 1; done", ResourceLimits(cpu_seconds=10, wall_seconds=2))
    assert (outcome.limit, ended.limit) == ("time limit", "time limit")


@fair
def test_code_that_gets_little_of_a_processor_has_a_minute_however_short_its_limit() -> None:
    assert [patience_seconds(limit) for limit in (0.1, 1, 10, 20)] == [60, 60, 60, 120]


@fair
def test_code_that_never_gets_a_processor_is_a_failure_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_clock, "MIN_STARVED_SECONDS", 0.0)
    sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
    endless = [base_interpreter(), "-c", "while True: pass"]
    with busy_processor(12), pytest.raises(VerifierError, match="this machine was too busy"):
        used(sandbox, lambda place: place.run(endless, limits=ResourceLimits(cpu_seconds=60, wall_seconds=0.6)))


CROWD = """
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(30):
    try:
        if os.fork() == 0:
            break
    except OSError:
        break
while True:
    try:
        if os.fork() == 0:
            os._exit(0)
    except OSError:
        pass
"""
"""Processes whose CPU time nobody is told, and which keep each other waiting."""


@fair
@with_and_without_a_root_of_its_own
def test_code_that_is_in_its_own_way_reaches_its_limit(sandbox: ZygoteSandbox) -> None:
    limits = ResourceLimits(cpu_seconds=60, wall_seconds=2)
    assert (
        used(sandbox, lambda place: place.run([base_interpreter(), "-c", CROWD], limits=limits)).limit == "time limit"
    )


@fair
def test_a_crowd_waits_for_itself_whatever_else_runs_and_one_that_fits_never_does() -> None:
    assert not is_in_its_own_way(processor_count())
    assert is_in_its_own_way(8 * processor_count() + 1)


@fair
@pytest.mark.parametrize("script", ["while :; do :; done", "while :; do /bin/true; done"])
def test_a_loop_without_end_stops_at_a_limit_on_a_quiet_machine(script: str) -> None:
    sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
    assert shell(sandbox, script, ResourceLimits(cpu_seconds=30, wall_seconds=1)).limit == "time limit"


SHORT_SPELLS = """
import os, time
for _ in range(24):
    if os.fork() == 0:
        while time.process_time() < 0.006:
            pass
        print(end="x", flush=True)
        time.sleep(600)
time.sleep(600)
"""
"""Processes of which none has run for as long as the kernel's tick."""


@fair
def test_many_who_ran_for_less_than_a_tick_have_run() -> None:
    with subprocess.Popen(
        [base_interpreter(), "-c", SHORT_SPELLS], stdout=subprocess.PIPE, start_new_session=True
    ) as family:
        try:
            assert family.stdout is not None
            assert family.stdout.read(24) == b"x" * 24
            parent = tree_usage([family.pid]).cpu_seconds
            children = tree_usage([pid for pid in process_tree_pids(family.pid) if pid != family.pid]).cpu_seconds
        finally:
            os.killpg(family.pid, signal.SIGKILL)
    assert parent > children >= 24 * 0.006


MANY_THREADS = """
import threading
held = threading.Event()
def work():
    kept = [str(number) * 50 for number in range(2000)]
    held.wait()
threads = [threading.Thread(target=work) for _ in range(50)]
for thread in threads:
    thread.start()
held.set()
print("started")
"""


def test_as_many_threads_as_are_promised_fit_into_the_memory_of_an_answer(sandbox: ZygoteSandbox) -> None:
    outcome = used(
        sandbox,
        lambda place: place.run([base_interpreter(), "-c", MANY_THREADS], limits=ResourceLimits(cpu_seconds=10)),
    )
    assert outcome.stdout == b"started\n", outcome.stderr


def test_nothing_of_our_environment_is_in_it(sandbox: ZygoteSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET_KEY", "hidden")
    names = {line.split(b"=")[0] for line in shell(sandbox, "env").stdout.splitlines()}
    ours = {
        b"PATH",
        b"HOME",
        b"TMPDIR",
        b"LANG",
        b"TZ",
        b"PYTHONHASHSEED",
        b"MALLOC_ARENA_MAX",
        b"OMP_NUM_THREADS",
        b"OPENBLAS_NUM_THREADS",
        b"OPENCV_FOR_THREADS_NUM",
    }
    assert names <= {*ours, b"PWD", b"OLDPWD", b"_", b"SHLVL"}
    assert names >= {b"PATH", b"HOME", b"TMPDIR", b"LANG", b"TZ"}


def test_one_program_finds_what_the_last_one_left(sandbox: ZygoteSandbox) -> None:
    async def use(place: Workspace) -> tuple[bytes, bytes | None]:
        await place.run(["/bin/sh", "-c", "echo made > made; mkdir folder; echo inner > folder/inner"], limits=SHORT)
        outcome = await place.run(["/bin/cat", "made"], limits=SHORT)
        return outcome.stdout, await place.read("folder/inner")

    assert used(sandbox, use) == (b"made\n", b"inner\n")


def test_a_workspace_is_empty_when_it_is_lent_again(sandbox: ZygoteSandbox) -> None:
    async def work() -> tuple[bytes, bytes]:
        try:
            for _ in range(2):
                async with sandbox.workspace({"given": "x"}) as place:
                    listed = await place.run(["/bin/sh", "-c", "ls -A"], limits=SHORT)
                    script = "mkdir -p a/b; touch a/b/c .hidden; ln -s / root; chmod 000 a/b a; mkfifo fifo"
                    await place.run(["/bin/sh", "-c", script], limits=SHORT)
                    left = await place.run(["/bin/sh", "-c", "ls -A"], limits=SHORT)
            return listed.stdout, left.stdout
        finally:
            await sandbox.close()

    assert asyncio.run(work()) == (b"given\n", b".hidden\na\nfifo\ngiven\nroot\n")


@pytest.mark.parametrize(
    ("script", "limits", "label"),
    [
        ("while :; do :; done", ResourceLimits(cpu_seconds=1, wall_seconds=20), "cpu limit"),
        ("trap '' XCPU TERM INT HUP; while :; do :; done", ResourceLimits(cpu_seconds=1, wall_seconds=20), "cpu limit"),
        ("sleep 60", ResourceLimits(cpu_seconds=1, wall_seconds=0.5), "time limit"),
        ("trap '' TERM INT HUP; sleep 60; sleep 60", ResourceLimits(cpu_seconds=1, wall_seconds=0.5), "time limit"),
        ("kill -STOP $$", ResourceLimits(cpu_seconds=1, wall_seconds=0.5), "time limit"),
        ("kill -SEGV $$", SHORT, ""),
        ("exit 0", SHORT, ""),
    ],
)
def test_the_limit_that_was_hit_is_named(
    sandbox: ZygoteSandbox, script: str, limits: ResourceLimits, label: str
) -> None:
    outcome = shell(sandbox, script, limits)
    assert outcome.limit == label
    assert (outcome.exit_code < 0) == (script != "exit 0")


MANY_FILES = """
import os, time
os.mkdir("x")
made = 0
try:
    for number in range(30_000):
        os.close(os.open(f"x/{number}", os.O_CREAT))
        made += 1
except OSError:
    pass
os.chmod("x", 0)
print(made)
if made == 30_000:
    time.sleep(600)
"""


@pytest.mark.parametrize("level", ["full", "bubblewrap"])
def test_the_number_of_files_in_memory_is_limited(level: str) -> None:
    sandbox = ZygoteSandbox(isolation_level(level))
    limits = ResourceLimits(cpu_seconds=60, wall_seconds=300)
    outcome = used(sandbox, lambda place: place.run([base_interpreter(), "-c", MANY_FILES], limits=limits))
    assert outcome.limit == "disk limit" or int(outcome.stdout) < 20_000


def test_what_a_program_leaves_running_is_killed(sandbox: ZygoteSandbox) -> None:
    token = f"600.{os.getpid()}"
    outcome = shell(sandbox, f"setsid sleep {token} & setsid sh -c 'sleep {token} & sleep {token}' & echo done")
    assert outcome.stdout == b"done\n"
    assert not _running(token)


SOCKETS = """
import socket
families = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
for family in families:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            socket.socket(family, kind).close()
            print(family.name, kind.name)
        except OSError:
            pass
"""
TALKING = """
import os, socket
listening = socket.socket(socket.AF_UNIX)
listening.bind("line")
listening.listen()
if not os.fork():
    calling = socket.socket(socket.AF_UNIX)
    calling.connect("line")
    calling.sendall(b"hello")
    os._exit(0)
print(listening.accept()[0].recv(5))
"""


def test_no_socket_can_be_made(sandbox: ZygoteSandbox) -> None:
    assert used(sandbox, lambda place: place.run([base_interpreter(), "-c", SOCKETS])).stdout == b""


def test_processes_talk_to_each_other_where_they_may_and_nobody_else_is_there(sandbox: ZygoteSandbox) -> None:
    async def work() -> tuple[bytes, bytes]:
        try:
            async with sandbox.workspace({}, local_sockets=True) as place:
                made = await place.run([base_interpreter(), "-c", SOCKETS])
                said = await place.run([base_interpreter(), "-c", TALKING])
                return made.stdout, said.stdout
        finally:
            await sandbox.close()

    has_own_root = ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index(sandbox.level)].own_root
    assert asyncio.run(work()) == ((b"AF_UNIX SOCK_STREAM\n", b"b'hello'\n") if has_own_root else (b"", b""))


def test_a_program_that_is_not_there_is_our_failure_and_no_answers(sandbox: ZygoteSandbox) -> None:
    with pytest.raises(VerifierError, match=r"could not start: .*No such file"):
        used(sandbox, lambda place: place.run(["no-such-program"], limits=SHORT))
    # an answer that claims the same has merely ended
    outcome = shell(sandbox, "echo 'could not start: no such file' >&2; exit 127")
    assert outcome.exit_code == 127


def test_output_is_capped_and_blocks_nobody(sandbox: ZygoteSandbox) -> None:
    outcome = shell(sandbox, "yes | head -c 40000000; yes >&2 | head -c 1; echo", SHORT._replace(file_bytes=20 << 20))
    assert len(outcome.stdout) <= 16 << 20
    assert len(outcome.stderr) <= 64 << 10


def test_memory_is_counted_over_all_processes(sandbox: ZygoteSandbox) -> None:
    script = (
        "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n        room = bytearray(b'x') * (40 << 20)\n"
        "        time.sleep(60)\ntime.sleep(60)\n"
    )
    limits = ResourceLimits(cpu_seconds=20, wall_seconds=20, memory_bytes=200 << 20)
    python = os.path.realpath(sys.executable)
    outcome = used(sandbox, lambda place: place.run([python, "-I", "-S", "-c", script], limits=limits))
    assert outcome.limit == "memory limit"


def test_memory_that_processes_share_is_counted_once() -> None:
    if os.geteuid():
        pytest.skip("only root may look that closely")
    before = process_tree_memory_bytes(os.getpid(), most=1)
    room = bytearray(os.urandom(1 << 20) * 64)
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        children.append(child)
    try:
        assert process_tree_memory_bytes(os.getpid(), most=1) - before < 2 * len(room)
        assert {*children} <= {*process_tree_pids(os.getpid())}
    finally:
        for child in children:
            os.kill(child, 9)
            os.waitpid(child, 0)


def test_processes_are_counted(sandbox: ZygoteSandbox) -> None:
    script = (
        "import os, time\nmade = 0\n"
        "try:\n    while made < 300:\n        if os.fork() == 0: time.sleep(60)\n        made += 1\nexcept OSError: pass\n"
        "print(made)"
    )
    python = os.path.realpath(sys.executable)
    outcome = used(
        sandbox, lambda place: place.run([python, "-I", "-S", "-c", script], limits=SHORT._replace(processes=20))
    )
    assert int(outcome.stdout or b"0") < 100, outcome


@pytest.mark.parametrize(
    "name", ["../outside", "a/../../outside", "/etc/outside", "", ".", "..", "a//b", "a/", "./a", "a/./b", "a\0b"]
)
def test_a_name_that_leads_out_of_the_folder_is_refused(name: str) -> None:
    sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))

    async def read(place: Workspace) -> bytes | None:
        return await place.read(name)

    assert used(sandbox, read) is None
    with pytest.raises(VerifierError, match="is not a path below the folder"):
        used(sandbox, lambda place: place.write({name: "x"}))


def test_only_plain_files_of_its_own_are_read(sandbox: ZygoteSandbox) -> None:
    script = (
        "echo x > plain; ln -s plain link; ln -s /usr folder; mkfifo fifo; mkdir inner; echo y > inner/file; "
        "echo z > one; ln one two; ln -s inner way; chmod 000 inner/file"
    )
    names = ["plain", "link", "folder/bin/sh", "fifo", "inner", "one", "two", "way/file", "missing", "plain/below"]

    async def use(place: Workspace) -> dict[str, bytes | None]:
        await place.run(["/bin/sh", "-c", script], limits=SHORT)
        return {name: await place.read(name) for name in names}

    found = used(sandbox, use)
    assert found.pop("plain") == b"x\n"
    assert set(found.values()) == {None}


def test_only_the_beginning_of_a_file_is_read(sandbox: ZygoteSandbox) -> None:
    async def use(place: Workspace) -> bytes | None:
        return await place.read("file", 3)

    assert used(sandbox, use, {"file": b"\x00\xff\xfe and more"}) == b"\x00\xff\xfe"


def test_files_are_put_where_they_belong_whatever_lies_in_the_way(sandbox: ZygoteSandbox) -> None:
    script = (
        "mkdir file; echo x > file/inner; echo x > folder; ln -s /usr link; ln -s /etc/passwd other; "
        "mkdir locked; chmod 000 locked; mkfifo fifo; chmod 500 ."
    )
    names = ("file", "folder/file", "link/file", "other", "locked/file", "fifo")

    async def use(place: Workspace) -> dict[str, bytes | None]:
        await place.run(["/bin/sh", "-c", script], limits=SHORT)
        await place.run(["/bin/sh", "-c", "chmod 700 ."], limits=SHORT)
        await place.write(dict.fromkeys(names, "ours"))
        return {name: await place.read(name) for name in names}

    assert used(sandbox, use) == dict.fromkeys(names, b"ours")


def test_folders_of_any_depth_are_wiped() -> None:
    sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
    depth = 2000 if sandbox.level in ("full", "bubblewrap") else 50
    script = (
        f"import os\nfor _ in range({depth}):\n    os.mkdir('x' * 200)\n    os.chdir('x' * 200)\nos.chmod('.', 0)\n"
    )
    python = os.path.realpath(sys.executable)

    async def work() -> bytes:
        try:
            for _ in range(2):
                async with sandbox.workspace({}) as place:
                    listed = await place.run(["/bin/ls", "-A"], limits=SHORT)
                    made = await place.run([python, "-I", "-S", "-c", script], limits=ResourceLimits(cpu_seconds=20))
                    assert made.exit_code == 0, made
            return listed.stdout
        finally:
            await sandbox.close()

    assert asyncio.run(work()) == b""


def test_a_worker_that_was_killed_while_it_waited_is_replaced(sandbox: ZygoteSandbox) -> None:
    async def work() -> list[bytes]:
        said = []
        try:
            for _ in range(2):
                async with sandbox.workspace({}) as place:
                    said.append((await place.run(["/bin/echo", "hello"], limits=SHORT)).stdout)
                for workers in sandbox._idle.values():
                    for worker in workers:
                        assert worker._process is not None
                        worker._process.kill()
                        worker._process.wait()
            return said
        finally:
            await sandbox.close()

    assert asyncio.run(work()) == [b"hello\n", b"hello\n"]


GUEST = """
import os, sys, time
def main(fds):
    while True:
        said = os.read(fds[0], 100)
        if said == b"wait":
            time.sleep(60)
        if not said:
            os._exit(5)
        os.write(fds[0], said.upper())
"""
THREADED_GUEST = f"""
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
{GUEST}"""
"""As with a plug-in of pytest that imports numpy, which starts threads."""


@pytest.mark.parametrize("guest", [GUEST, THREADED_GUEST], ids=["one thread", "two threads"])
def test_a_guest_talks_over_its_sockets_to_its_end(sandbox: ZygoteSandbox, guest: str) -> None:
    async def work() -> tuple[bytes, ProcessResult]:
        ours, theirs = socket.socketpair()
        try:
            async with sandbox.host(GuestModules(modules=(("loud", guest),))) as host:
                call = asyncio.ensure_future(host.call([theirs], SHORT))
                ours.sendall(b"hello")
                said = await asyncio.to_thread(ours.recv, 100)
                ours.close()
                return said, await call
        finally:
            await sandbox.close()

    said, outcome = asyncio.run(work())
    assert said == b"HELLO"
    assert (outcome.exit_code, outcome.limit) == (5, "")


@pytest.mark.parametrize("level", ["full", "bubblewrap"])
def test_a_killed_guest_with_threads_leaves_no_process(level: IsolationName) -> None:
    sandbox = ZygoteSandbox(isolation_level(level))

    async def work() -> None:
        try:
            async with sandbox.host(GuestModules(modules=(("loud", THREADED_GUEST),))) as host:
                family = process_tree_pids(host.pids[0])
                os.kill(host.pids[0], signal.SIGKILL)
                until = time.monotonic() + 20
                while any(map(_is_running, family)):
                    assert time.monotonic() < until
                    await asyncio.sleep(0.05)
        finally:
            await sandbox.close()

    asyncio.run(work())


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_guest_that_is_stopped_hit_no_limit(sandbox: ZygoteSandbox) -> None:
    async def work() -> tuple[ProcessResult, bytes]:
        try:
            async with sandbox.host(GuestModules(modules=(("loud", GUEST),))) as host:
                ours, theirs = socket.socketpair()
                call = asyncio.ensure_future(host.call([theirs], ResourceLimits(wall_seconds=30)))
                ours.sendall(b"wait")
                await asyncio.sleep(0.1)
                host.stop()
                stopped = await call
                ours.close()
                # a stop that comes too late is for nobody
                host.stop()
                ours, theirs = socket.socketpair()
                call = asyncio.ensure_future(host.call([theirs], SHORT))
                ours.sendall(b"again")
                said = await asyncio.to_thread(ours.recv, 100)
                ours.close()
                await call
                return stopped, said
        finally:
            await sandbox.close()

    stopped, said = asyncio.run(work())
    assert (stopped.exit_code, stopped.limit) == (-9, "")
    assert said == b"AGAIN"


def test_closing_leaves_no_process_and_no_folder(
    sandbox: ZygoteSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    others = set(process_tree_pids(os.getpid()))  # other tests may have theirs here
    shell(sandbox, "mkdir -p a/b; echo x > a/b/c; (setsid sleep 60 &)")
    assert list(tmp_path.iterdir()) == []
    assert set(process_tree_pids(os.getpid())) <= others


def test_an_interpreter_that_does_not_start_is_our_failure(sandbox: ZygoteSandbox, tmp_path: Path) -> None:
    async def work() -> None:
        async with sandbox.host(GuestModules(python=str(tmp_path / "no-python"))):
            pass

    with pytest.raises(VerifierError, match=r"the sandbox did not start|no-python"):
        asyncio.run(work())


def test_a_level_says_what_it_holds() -> None:
    for level in ISOLATION_LEVEL_NAMES:
        found = probe_isolation(level)
        assert set(found.held) in (set(), set(ISOLATION_CLAIMS))
        assert bool(found.held) != bool(found.problem)
        if level in ("full", "bubblewrap", "landlock") and found.held:
            assert found.holds
            assert all(found.held[claim] for claim in REQUIRED_ISOLATION_CLAIMS)
    assert not probe_isolation("process").holds


def test_the_strongest_level_that_holds_is_chosen() -> None:
    holding = [level for level in ISOLATION_LEVEL_NAMES if probe_isolation(level).holds]
    if not holding:
        with pytest.raises(InputError, match="--allow-weak-sandbox"):
            strongest_isolation()
        return
    assert strongest_isolation().level == holding[0]
    # what is required is the least that will do
    for level in ISOLATION_LEVEL_NAMES[ISOLATION_LEVEL_NAMES.index(holding[0]) :]:
        assert strongest_isolation(level).level == holding[0]


def test_a_level_that_is_not_to_be_had_is_not_replaced_by_a_weaker_one() -> None:
    missing = [level for level in ISOLATION_LEVEL_NAMES if not probe_isolation(level).held]
    stronger = [
        level
        for level in missing
        if not any(
            probe_isolation(above).holds for above in ISOLATION_LEVEL_NAMES[: ISOLATION_LEVEL_NAMES.index(level)]
        )
    ]
    for level in stronger:
        with pytest.raises(InputError, match=f"this machine does not support isolation level {level}"):
            strongest_isolation(level)


def test_an_unknown_level_is_named() -> None:
    with pytest.raises(InputError, match=r'--require-isolation: unknown level "ful".*full'):
        strongest_isolation("ful")


def _running(token: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if token.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    "command",
    ["node -p 1+1", "perl -e 'print 2'", "python3 -c 'import ssl, random; print(2)'", "awk 'BEGIN {print 2}'"],
)
def test_interpreters_start_at_every_level(sandbox: ZygoteSandbox, command: str) -> None:
    if shutil.which(command.partition(" ")[0], path="/usr/local/bin:/usr/bin:/bin") is None:
        unavailable(f"{command.partition(' ')[0]} is not installed")
    ran = shell(sandbox, command)
    assert (ran.exit_code, ran.stdout.strip()) == (0, b"2"), ran.stderr
