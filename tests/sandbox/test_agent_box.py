"""What an agent that declares what it needs can reach, and what not: real processes at the levels that contain them."""

import asyncio
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks.scenes import NOBODY, interpreter, run_as
from steelyard.providers.agent.containment import AgentAccess, AgentEnd
from steelyard.sandbox.agents.agent_sandbox import ZygoteAgentSandbox
from steelyard.sandbox.levels import probe_isolation
from steelyard.sandbox.worker import base_interpreter, base_python_folders
from support.text_server import text_server
from support.toolchains import isolation_level, needs, unavailable

LEVELS = ("full", "bubblewrap")
PYTHON = base_interpreter()
NOTHING = AgentAccess()


class Boxed:
    """What became of one agent."""

    def __init__(self, end: AgentEnd, printed: str, errors: str, refusals: list[str], files: dict[str, str]) -> None:
        self.end, self.printed, self.errors, self.refusals, self.files = end, printed, errors, refusals, files


@pytest.fixture(params=LEVELS)
def sandbox(request: pytest.FixtureRequest) -> ZygoteAgentSandbox:
    level = isolation_level(request.param)
    if not probe_isolation(request.param).holds:
        pytest.skip(f"{request.param} does not hold")
    return ZygoteAgentSandbox(level)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with text_server("hello from outside") as address:
        yield address


def boxed(
    sandbox: ZygoteAgentSandbox,
    *argv: str,
    access: AgentAccess = NOTHING,
    time_limit: float = 60,
    **environment: str,
) -> Boxed:
    """Let a program work on a workspace with one file."""
    heard: dict[bool, list[bytes]] = {True: [], False: []}
    access = access._replace(readable=(*access.readable, *base_python_folders()))

    async def work() -> Boxed:
        async with sandbox.box(access) as box:
            workspace = box.folder / "workspace"
            workspace.mkdir()
            (workspace / "given.txt").write_text("given\n")
            end = await box.run(
                argv,
                stdin=b"the task",
                environment=environment,
                time_limit=time_limit,
                hear=lambda piece, is_stdout: heard[is_stdout].append(piece),
            )
            files = {path.name: path.read_text() for path in workspace.iterdir() if path.stat().st_size < 1000}
            printed, errors = (b"".join(heard[which]).decode() for which in (True, False))
            return Boxed(end, printed, errors, list(box.refusals), files)

    return asyncio.run(asyncio.wait_for(work(), 240))


HONEST = """
import os, sys, urllib.request
task = sys.stdin.read()
said = urllib.request.urlopen(f"http://{os.environ['SERVER']}/").read().decode()
open("given.txt", "a").write("changed\\n")
open("made.txt", "w").write(f"{task}: {said}")
print(os.environ["MODEL_KEY"])
print("problem", file=sys.stderr)
"""


def test_an_honest_agent_reads_its_task_changes_its_workspace_and_reaches_what_it_declares(
    sandbox: ZygoteAgentSandbox, server: str
) -> None:
    done = boxed(sandbox, PYTHON, "-c", HONEST, access=AgentAccess(hosts=(server,)), SERVER=server, MODEL_KEY="sk-1")
    assert (done.end.exit_code, done.end.limit, done.refusals) == (0, "", [])
    assert (done.printed, done.errors) == ("sk-1\n", "problem\n")
    assert done.files == {"given.txt": "given\nchanged\n", "made.txt": "the task: hello from outside"}


NOSY = """
import os, pwd, socket, sys
def tried(name, what):
    try:
        found = what()
    except OSError as error:
        return
    print(name, repr(found)[:200])
server, secret, local, home, pid = sys.argv[1:6]
host, _, port = server.rpartition(":")
def connected(family, address):
    with socket.socket(family) as made:
        made.settimeout(5)
        made.connect(address)
        return address
for path in (secret, os.path.join(home, ".ssh"), os.path.join(home, ".ssh/id_ed25519"), "/etc/shadow", "/etc/hostname", "/etc/resolv.conf",
             "/proc/1/environ", f"/proc/{pid}/environ", "/tmp/x", "/var/log", "/run", "/sys/kernel"):
    tried(path, lambda: os.listdir(path) if os.path.isdir(path) else open(path).read())
for path in (secret, "/usr/bin/made", "/made", "/etc/made", "/dev/shm/../made"):
    tried(f"write {path}", lambda: open(path, "w"))
tried("outside server", lambda: connected(socket.AF_INET, (host, int(port))))
tried("internet", lambda: connected(socket.AF_INET, ("1.1.1.1", 443)))
tried("metadata", lambda: connected(socket.AF_INET, ("169.254.169.254", 80)))
tried("IPv6", lambda: connected(socket.AF_INET6, ("::1", int(port))))
tried("local socket", lambda: connected(socket.AF_UNIX, local))
tried("abstract socket", lambda: connected(socket.AF_UNIX, "\\0steelyard-test"))
tried("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
tried("netlink", lambda: socket.socket(16, socket.SOCK_RAW, 0))
tried("packet", lambda: socket.socket(17, socket.SOCK_RAW, 0))
tried("name", lambda: socket.getaddrinfo("example.com", 80))
tried("users", lambda: pwd.getpwuid(0) if len(pwd.getpwall()) > 1 else (_ for _ in ()).throw(OSError()))
tried("kill", lambda: os.kill(int(pid), 0))
try:
    os.kill(1, 9)  # who runs as the same user may try, and the kernel spares the first process
except OSError:
    pass
tried("unshare", lambda: os.unshare(0x10000000) if hasattr(os, "unshare") else (_ for _ in ()).throw(OSError()))
print("environment", sorted(name for name in os.environ if "SECRET" in name or "KEY" in name))
"""


def test_a_nosy_agent_finds_nothing_of_ours(
    sandbox: ZygoteAgentSandbox, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    secret.chmod(0o666)
    monkeypatch.setenv("SOME_SECRET_KEY", "sk-secret")
    with socket.socket(socket.AF_UNIX) as local, socket.socket(socket.AF_UNIX) as abstract:
        local.bind(str(tmp_path / "line"))
        (tmp_path / "line").chmod(0o666)
        local.listen()
        abstract.bind("\0steelyard-test")
        abstract.listen()
        home = os.environ.get("HOME", "/root")
        arguments = [server, str(secret), str(tmp_path / "line"), home, str(os.getpid())]
        done = boxed(sandbox, PYTHON, "-c", NOSY, *arguments)
    assert done.errors == ""
    assert done.printed == "environment []\n"
    assert secret.read_text() == "secret"


def test_what_it_wants_from_the_network_without_having_declared_it_is_refused_and_told(
    sandbox: ZygoteAgentSandbox, server: str
) -> None:
    code = (
        "import sys, urllib.request\n"
        "for url in sys.argv[1:]:\n"
        "    try: print(urllib.request.urlopen(url).read())\n"
        "    except OSError as error: print(error)\n"
    )
    other = "127.0.0.1:1"
    urls = [f"http://{server}/", "https://example.com/", "http://169.254.169.254/latest/", f"http://{other}/"]
    done = boxed(sandbox, PYTHON, "-c", code, *urls, access=AgentAccess(hosts=(server,)))
    assert done.printed.startswith("b'hello from outside'\n")
    assert [text.split(":")[0] for text in done.refusals] == [
        "refused example.com",
        "refused 169.254.169.254",
        "refused 127.0.0.1",
    ]


HARMFUL = """
import os, threading, time
def tried(name, what):
    try:
        what()
        print(name, "without end")
    except (OSError, RuntimeError, MemoryError) as error:
        print(name, type(error).__name__)
def threads():
    for _ in range(10_000): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
def memory():
    b"x" * (5 << 30)
def disk():
    for number in range(100): open(f"y{number}", "wb").write(b"x" * (100 << 20))
def nameless():
    for _ in range(100):
        kept.append(open("z", "wb", 0)); os.unlink("z")
        if kept[-1].write(b"x" * (100 << 20)) < 100 << 20: raise OSError
kept = []
for what in (memory, nameless, disk): tried(what.__name__, what)
tried("threads", threads)
"""


def test_limits_hold_for_agents(sandbox: ZygoteAgentSandbox) -> None:
    done = boxed(sandbox, PYTHON, "-c", HARMFUL)
    assert done.printed == "memory MemoryError\nnameless OSError\ndisk OSError\nthreads RuntimeError\n"


def test_a_fork_bomb_ends_at_the_time_limit(sandbox: ZygoteAgentSandbox) -> None:
    code = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    assert boxed(sandbox, PYTHON, "-c", code, time_limit=1).end.limit == "time limit"


def test_nothing_of_an_agent_outlives_it_and_it_holds_nobody_up(sandbox: ZygoteAgentSandbox) -> None:
    done = boxed(
        sandbox,
        "/bin/sh",
        "-c",
        "setsid sleep 4711 & (trap '' TERM INT HUP; exec sleep 4712) & echo done",
        time_limit=100,
    )
    assert (done.printed, done.end.limit) == ("done\n", "")
    assert done.end.seconds < 60
    assert not _running("4711")
    assert not _running("4712")


def test_at_its_time_limit_it_ends_and_what_it_did_so_far_is_there(sandbox: ZygoteAgentSandbox) -> None:
    done = boxed(
        sandbox, "/bin/sh", "-c", "echo half > made.txt; trap '' TERM; while :; do sleep 1; done", time_limit=1
    )
    assert done.end.limit == "time limit"
    assert done.files["made.txt"] == "half\n"


def test_nothing_is_left_of_an_agent_whose_answer_nobody_wants_any_more(sandbox: ZygoteAgentSandbox) -> None:
    async def give_up() -> None:
        async with sandbox.box(AgentAccess()) as box:
            (box.folder / "workspace").mkdir()
            begun = asyncio.Event()
            running = box.run(
                ["/bin/sh", "-c", "setsid sleep 4713 & echo begun; sleep 4713"],
                stdin=b"",
                environment={},
                time_limit=600,
                hear=lambda *_: begun.set(),
            )
            task = asyncio.create_task(running)
            await begun.wait()
            task.cancel()
            await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(give_up())
    assert not _running("4713")


def test_folders_are_seen_as_they_were_declared(sandbox: ZygoteAgentSandbox, tmp_path: Path) -> None:
    for name in ("read", "write", "neither"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    access = AgentAccess(readable=(str(tmp_path / "read"),), writable=(str(tmp_path / "write"),))
    script = (
        "cd $1; cat read/file write/file neither/file; echo; touch read/new; echo more >> write/file; mkdir write/new; "
        "echo x > write/new/x; ls neither; mknod write/null c 1 3"
    )
    for _ in range(2):  # what one attempt wrote, the next one can change
        done = boxed(sandbox, "/bin/sh", "-c", f"{script}; rm -r write/new", "sh", str(tmp_path), access=access)
        assert done.printed.startswith("readwrite")
    assert (tmp_path / "write" / "file").read_text() == "writemore\nmore\n"
    assert [path.name for path in (tmp_path / "read").iterdir()] == ["file"]
    boxed(sandbox, "/bin/sh", "-c", script, "sh", str(tmp_path), access=access)
    assert (tmp_path / "write" / "new" / "x").stat().st_uid == os.geteuid()


def test_much_output_is_heard_to_its_end(sandbox: ZygoteAgentSandbox) -> None:
    done = boxed(sandbox, "/bin/sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x; echo end")
    assert len(done.printed) == 20_000_004


def test_it_has_a_name_and_knows_its_own_machine(sandbox: ZygoteAgentSandbox) -> None:
    code = "import os, pwd, socket; print(pwd.getpwuid(os.getuid())[0], socket.gethostbyname('localhost'))"
    assert boxed(sandbox, PYTHON, "-c", code).printed == "agent 127.0.0.1\n"


def test_streams_have_their_usual_names(sandbox: ZygoteAgentSandbox) -> None:
    done = boxed(
        sandbox, "/bin/sh", "-c", "cat /dev/stdin; echo one >/dev/stdout; echo two >/dev/stderr; echo three; cat"
    )
    assert (done.printed, done.errors) == ("the taskone\nthree\nthe task", "two\n")


@needs("curl")
def test_curl_takes_the_proxy_by_itself(sandbox: ZygoteAgentSandbox, server: str) -> None:
    done = boxed(sandbox, "/usr/bin/curl", "-sS", f"http://{server}/", access=AgentAccess(hosts=(server,)))
    assert (done.printed, done.errors) == ("hello from outside", "")


@needs("node")
def test_node_starts_and_can_fetch_from_a_server_of_its_own(sandbox: ZygoteAgentSandbox) -> None:
    code = (
        "const server = require('http').createServer((q, a) => a.end('own')).listen(0, '127.0.0.1', async () => {"
        "const came = await fetch(`http://127.0.0.1:${server.address().port}/`);"
        "console.log(await came.text()); process.exit(0)})"
    )
    done = boxed(sandbox, str(shutil.which("node")), "-e", code)
    assert (done.printed, done.errors) == ("own\n", "")


def _running(seconds: str) -> bool:
    """Whether a `sleep` of so many seconds runs anywhere on this machine."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().split(b"\0")[:2] == [b"sleep", seconds.encode()]:
                return True
        except OSError:
            continue
    return False


@pytest.mark.skipif(os.geteuid() != 0, reason="this is an ordinary user")
@pytest.mark.parametrize(
    "chosen",
    [
        # an id with words of the expression would choose this test, too
        pytest.param("(honest or nosy or declared) and full", id="some"),
        pytest.param(
            "honest or nosy or declared or limits or outlives or streams or name", id="whole", marks=pytest.mark.slow
        ),
    ],
)
def test_all_of_this_holds_for_an_ordinary_user(chosen: str) -> None:
    python = interpreter("nobody")
    if not python:
        unavailable("no Python of this version with our packages that nobody can read")
    options = ["-q", "-n0", "-p", "no:cacheprovider", "--rootdir", str(Path(__file__).parents[1]), "-k", chosen]
    done = run_as("nobody", [python, "-m", "pytest", *options, __file__], uid=NOBODY - 1001)
    assert done.returncode == 0, done.stdout[-3000:]
    # where a level is missing, it is missing for everybody
    assert "skipped" not in done.stdout or not all(probe_isolation(level).held for level in ("full", "bubblewrap"))
