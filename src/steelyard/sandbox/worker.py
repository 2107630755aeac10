"""One zygote process seen from outside: it is started, given jobs, and ended."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import importlib.util
import marshal
import os
import secrets
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import CodeType
from typing import IO, Any, Literal, NamedTuple

import msgspec

from steelyard.errors import VerifierError
from steelyard.protocols import ENDLESS_SECONDS, GuestHost, GuestModules, ProcessLimit, ProcessResult, ResourceLimits
from steelyard.sandbox import kernel
from steelyard.sandbox.control_group import ControlGroup, new_control_group
from steelyard.sandbox.fair_clock import FairClock, patience_seconds
from steelyard.sandbox.memory import process_tree_memory_bytes
from steelyard.sandbox.process_room import CrowdWatch
from steelyard.sandbox.syscall_filter import FilterOptions, syscall_filter

SANDBOX_HOME, SANDBOX_STREAMS = "/steelyard", "/dev/streams"
ZYGOTE_BOOT_SCRIPT = """
import base64, json, marshal, os, socket, struct, sys, types
control = socket.socket(fileno=0)
def exactly(length):
    pieces = bytearray()
    while len(pieces) < length:
        piece = control.recv(length - len(pieces))
        if not piece: os._exit(1)
        pieces += piece
    return bytes(pieces)
def tell(**said):
    text = json.dumps({"length": 0, **said}).encode()
    control.sendall(struct.pack("I", len(text)) + text)
start = json.loads(exactly(struct.unpack("I", exactly(4))[0]))
try:
    for name, source, code in start.pop("modules"):
        parents = name.split(".")[:-1]
        for above in map(".".join, (parents[:depth] for depth in range(1, len(parents) + 1))):
            sys.modules.setdefault(above, types.ModuleType(above)).__path__ = []
        made = sys.modules[name] = types.ModuleType(name)
        exec(marshal.loads(base64.b64decode(code)) if code else compile(source, name + ".py", "exec"), made.__dict__)
    source = code = None
    guest = getattr(made, "main", None)
    getattr(made, "rehearse", lambda: None)()
    from steelyard.sandbox import kernel, zygote
    for name in [name for name in sys.modules if name.startswith("steelyard")]:
        del sys.modules[name]  # what an answer imports is not ours
    if start["namespaces"]:
        zygote.enter_namespaces(control)
        tell(pid=os.getpid())
        exactly(struct.unpack("I", exactly(4))[0])
    if start["namespaces"] or not start["own_root"]:
        if not start["own_root"]:
            # the process that removes it also makes it: the engine may be killed at any moment, and would leave it behind
            os.mkdir(start["home"], 0o700)
            os.mkdir(start["streams"], 0o700)
        first = os.fork()
        if first:
            control.close()
            if not start["namespaces"]:
                zygote.guard(first, start["home"], start["streams"])
            os.waitpid(first, 0)
            os._exit(0)
    zygote.Zygote(control, start, guest).serve()
except Exception as error:
    try: tell(error=f"{type(error).__name__}: {error}")
    finally: os._exit(1)
"""
"""What a new interpreter runs first: our modules come over the socket, so that it need not read any of our files."""

FIRST_SANDBOX_UID = 0x7000_0000
"""The first user id that answers run as when we are root: one for each worker, unknown to the system."""
ZYGOTE_TIMEOUT_SECONDS = 60
"""Seconds in which a zygote must answer, even on a busy machine."""
MAX_SANDBOX_STDERR_BYTES = 64 << 10
"""Bytes of error output that are kept."""
MAX_SANDBOX_OUTPUT_BYTES = 16 << 20
"""Bytes of output that are read."""
LANDLOCK_VERSION_WITH_TRUNCATE = 3
READ_BYTES = 1 << 12
"""What is read from a sandbox at once, if as much is there."""
WATCH_SECONDS = 0.25
"""Seconds between looks at the memory and the time in use."""


IsolationName = Literal["full", "bubblewrap", "landlock", "seatbelt", "process"]


class IsolationLevel(NamedTuple):
    """How a zygote is isolated."""

    level: IsolationName
    namespaces: bool = False
    landlock: bool = False
    filter: bool = False
    """Whether system calls are filtered."""
    wrapper: Callable[[Sequence[str], GuestModules], Sequence[str]] | None = None
    """The command of an external program that encloses an interpreter, given what must be readable and for whom."""
    own_root: bool = False
    """Whether it has a file system of its own."""

    def wrapped(self, readable: Sequence[str], guest: GuestModules) -> Sequence[str]:
        return () if self.wrapper is None else self.wrapper(readable, guest)


class AgentDescriptors(NamedTuple):
    """What an agent is reached by from outside its sandbox."""

    listening: socket.socket
    """Listens in its network."""
    home: int
    stdout: int
    stderr: int
    """The ends of the pipes that it prints to."""


class SandboxWorker:
    """A zygote, and what its children print."""

    def __init__(self, enclosure: IsolationLevel, guest: GuestModules, crowd: CrowdWatch | None = None) -> None:
        self._enclosure = enclosure
        self._guest = guest
        self._crowd = crowd
        self._log = new_file()
        """What the zygote itself prints."""
        self._process: subprocess.Popen[bytes] | None = None
        self._busy = False
        self._group: ControlGroup | None = None
        self._is_out_of_memory = False
        """Whether the kernel ended it together with its folder: afterwards every job ends at that limit."""
        self.uid: int | None = None
        """The user that code in it runs as, where that is not ours."""

    async def start(self) -> None:
        """Start it; raises VerifierError when it does not get ready."""
        enclosure, guest = self._enclosure, self._guest
        if kernel.RUNS_ON_LINUX and not enclosure.own_root:
            # what runs as the same user, beside us, must not look into our memory
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        unique = f"steelyard-{secrets.token_hex(8)}"
        self._home, self._streams = SANDBOX_HOME, SANDBOX_STREAMS
        if not enclosure.own_root:
            # code that runs as another user must be able to name its own files
            is_other_user = kernel.RUNS_ON_LINUX and os.geteuid() == 0
            self._home = str(Path(reachable_folder() if is_other_user else tempfile.gettempdir(), unique))
            self._streams = f"{self._home}-streams"
        self._control, theirs = socket.socketpair()
        self._received = bytearray()
        """Output that was received but not read yet."""
        self._control.setblocking(False)
        self._readable = (*guest.readable, *base_python_folders())
        site = () if guest.python else ("-S",)
        python = [guest.python or base_interpreter(), "-P", "-s", *site, "-B", "-X", "utf8", "-c", ZYGOTE_BOOT_SCRIPT]
        try:
            with theirs:
                self._process = subprocess.Popen(  # noqa: ASYNC220  a start takes a millisecond
                    [*enclosure.wrapped(self._readable, guest), *python],
                    stdin=theirs.fileno(),
                    stdout=self._log,
                    stderr=self._log,
                    cwd="/",
                    env=sandbox_environment(self._home),
                    start_new_session=True,
                )
            async with asyncio.timeout(ZYGOTE_TIMEOUT_SECONDS):
                await self._prepare(self._process.pid)
                await self._join_group()
        except (OSError, TimeoutError) as error:
            printed = leading_bytes(self._log, 2000).decode("utf-8", "replace").strip()
            self.kill()
            raise VerifierError(f"the sandbox did not start: {printed or str(error) or 'it took too long'}") from None
        except BaseException:
            self.kill()
            raise

    async def _prepare(self, pid: int) -> None:
        root = os.geteuid() == 0
        enclosure = self._enclosure
        stranger = FIRST_SANDBOX_UID + pid
        self.uid = stranger if root else None
        uid: int | None = None
        keeps: tuple[int, ...] = ()
        if root and enclosure.namespaces:
            uid = 1
        elif root and kernel.RUNS_ON_LINUX:
            uid = stranger
            # a toolchain may be in a folder of root; landlock, where there is one, decides what of it can be read
            private = not enclosure.own_root and (
                enclosure.landlock or not all(map(_is_world_readable, self._readable))
            )
            # a container may not have it: then what only root can read is not there for answers either
            keeps = (
                (kernel.CAP_DAC_READ_SEARCH,) if private and kernel.has_capability(kernel.CAP_DAC_READ_SEARCH) else ()
            )
        if root and self._guest.agent:
            # the folders that it is given are mostly root's; all others in its root are read-only
            keeps = (kernel.CAP_DAC_OVERRIDE,)
        # compiling takes an interpreter longer than all the rest of its start, and leaves it twice as large for every fork
        is_ours = self._guest.python in ("", sys.executable)
        start = {
            "modules": [
                (name, "", compiled_module(name, source)) if is_ours else (name, source, "")
                for name, source in (*_zygote_modules(), *self._guest.modules)
            ],
            "namespaces": enclosure.namespaces,
            "own_root": enclosure.own_root,
            "landlock": enclosure.landlock,
            "filter": self._filter().hex(),
            "readable": self._readable,
            "writable": self._guest.writable,
            "agent": self._guest.agent,
            "descriptor_paths": self._guest.descriptor_paths,
            "uid": uid,
            "keeps": keeps,
            "home": self._home,
            "streams": self._streams,
        }
        await self._send(msgspec.json.encode(start))
        if enclosure.namespaces:
            _map_users((await self._reply())[0]["pid"], f"0 0 1\n1 {stranger} 1\n" if root else "")
            await self._send(b"mapped")
        await self._reply()

    async def _join_group(self) -> None:
        """Let the zygote, and so all that it starts, live in a control group, where there is one."""
        self._group = new_control_group()
        if self._group is not None:
            reply, _ = await self._request({"do": "join"}, fds=[self._group.door])
            if not reply["joined"]:
                self._group.remove()
                self._group = None

    def _filter(self) -> bytes:
        """The filter of system calls; empty if this level has none."""
        if not self._enclosure.filter:
            return b""
        own_root = self._enclosure.own_root
        return syscall_filter(
            FilterOptions(
                own_root=own_root,
                # a root of its own comes with a network of its own, in which there is nothing else to talk to
                local_sockets=self._guest.local_sockets and own_root,
                loopback=self._guest.agent and own_root,
                truncation_guarded=own_root or kernel.landlock_version() >= LANDLOCK_VERSION_WITH_TRUNCATE,
            )
        )

    async def write(self, files: Mapping[str, bytes]) -> None:
        """Put files into its folder."""
        # the sandbox copies from a file without reading it into its memory
        with new_file() as given:
            given.write(b"".join(files.values()))
            sizes = [(name, len(content)) for name, content in files.items()]
            await self._request({"do": "write", "files": sizes}, fds=[given.fileno()])

    async def read(self, name: str, most: int) -> bytes | None:
        """The beginning of a plain file in its folder."""
        reply, content = await self._request({"do": "read", "name": name, "most": most})
        return content if reply["there"] else None

    async def wipe(self) -> None:
        """Empty its folder."""
        await self._request({"do": "wipe"})

    async def run(self, program: Mapping[str, Any], stdin: bytes, limits: ResourceLimits) -> ProcessResult:
        """Run a program, given as the zygote is told about it, to its end."""
        return await self._contained({"do": "run", **program}, limits, stdin, FairClock(self.pids))

    @property
    def has_own_users(self) -> bool:
        """Whether its users have numbers of its own."""
        return self._enclosure.namespaces

    async def open_for_agent(self) -> AgentDescriptors:
        """What an agent is reached by from outside."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            await self._request({"do": "open"}, fds=[theirs.fileno()])
            _, fds, _, _ = socket.recv_fds(ours, 1, 4)
        return AgentDescriptors(socket.socket(fileno=fds[0]), *fds[1:])

    async def run_agent(
        self,
        argv: Sequence[str],
        stdin: bytes,
        limits: ResourceLimits,
        environment: Mapping[str, str],
        folder: str,
    ) -> tuple[int, ProcessLimit]:
        """Run an agent to its end; its exit code, and the limit that ended it."""
        header = {"do": "agent", "argv": argv, "environment": environment, "folder": folder}
        with new_file() as given:
            given.write(stdin)
            reply = await self._reply_of_contained(header, [given.fileno()], limits, FairClock(self.pids), ())
        return reply["code"], self._exceeded if reply["stopped"] else reply["limit"]

    async def call(
        self,
        sockets: Sequence[socket.socket],
        limits: ResourceLimits,
        *,
        stdin: bytes | None = None,
        beside: GuestHost | None = None,
    ) -> ProcessResult:
        """Let the guest run over these sockets until it ends."""
        clock = FairClock([*self.pids, *(beside.pids if beside is not None else ())])
        return await self._contained({"do": "call"}, limits, stdin, clock, sockets)

    async def _contained(
        self,
        header: dict[str, Any],
        limits: ResourceLimits,
        stdin: bytes | None,
        clock: FairClock,
        handed_over: Sequence[socket.socket] = (),
    ) -> ProcessResult:
        # new files every time: a flag, a lock or a lease on one of them ends with its attempt
        # a guest that is not a program has one output, in which both streams keep their order
        with (
            new_file() as given,
            new_file() as stdout,
            new_file() if stdin is not None else contextlib.nullcontext() as stderr,
        ):
            if stdin:
                given.write(stdin)
                given.seek(0)
            files = [given, stdout, stderr or stdout]
            reply = await self._reply_of_contained(
                header | {"program": stdin is not None, "most": MAX_SANDBOX_OUTPUT_BYTES},
                [file.fileno() for file in files],
                limits,
                clock,
                handed_over,
            )
            return ProcessResult(
                exit_code=reply["code"],
                stdout=leading_bytes(stdout, MAX_SANDBOX_OUTPUT_BYTES),
                stderr=leading_bytes(stderr, MAX_SANDBOX_STDERR_BYTES) if stderr else b"",
                limit=self._exceeded if reply["stopped"] else reply["limit"],
                seconds=reply["seconds"],
                cpu_seconds=reply["cpu"],
            )

    async def _reply_of_contained(
        self,
        header: dict[str, Any],
        fds: list[int],
        limits: ResourceLimits,
        clock: FairClock,
        handed_over: Sequence[socket.socket],
    ) -> dict[str, Any]:
        first_look = min(WATCH_SECONDS, limits.wall_seconds)
        watching = asyncio.get_running_loop().call_later(first_look, self._look, limits, clock)
        self._watch: asyncio.TimerHandle | None = watching
        self._exceeded: ProcessLimit = ""
        self._starved = False
        self._busy = True
        if self._group is not None:
            self._group.set_limits(limits)
        # we look at the clock from outside; the zygote only knows when we must be gone
        longest = patience_seconds(limits.wall_seconds) + ZYGOTE_TIMEOUT_SECONDS
        header["limits"] = limits._replace(wall_seconds=longest)
        try:
            async with asyncio.timeout(longest + ZYGOTE_TIMEOUT_SECONDS):
                try:
                    fds += [given.fileno() for given in handed_over]
                    # only an agent is given keys
                    await self._send(msgspec.json.encode(header, enc_hook=str), fds=fds)
                finally:
                    # while we hold a copy, the other side would not notice that it was closed
                    for given in handed_over:
                        given.close()
                reply, _ = await self._reply()
        except TimeoutError:
            raise VerifierError("the sandbox did not respond") from None
        except OSError as error:
            self._is_out_of_memory = self._group is not None and self._group.is_out_of_memory()
            if not self._is_out_of_memory:
                raise VerifierError(f"the sandbox failed: {error}") from None
            return {
                "code": -signal.SIGKILL,
                "limit": "memory limit",
                "stopped": False,
                "seconds": clock.elapsed,
                "cpu": 0.0,
            }
        finally:
            if self._watch is not None:
                self._watch.cancel()
        self._busy = False
        if self._starved and reply["stopped"]:
            raise VerifierError(
                f"this machine was too busy: in {clock.elapsed:.0f} s it gave the code {clock.counted:.1f} s; run less at the same time"
            )
        return reply

    def stop(self) -> None:
        """End the job that is running, from our side."""
        with contextlib.suppress(OSError):
            self._control.send(_frame(b'{"do": "stop"}'))

    def _look(self, limits: ResourceLimits, clock: FairClock) -> None:
        """Many processes together must not use more memory than one may, and none may sleep forever."""
        self._watch = None
        if self._crowd is not None:
            self._crowd.look(self.pids)
        if limits.wall_seconds < ENDLESS_SECONDS:
            clock.look()
        left = limits.wall_seconds - clock.counted
        if left <= 0:
            self._exceeded = "time limit"
        elif clock.elapsed > patience_seconds(limits.wall_seconds):
            self._starved = True
        elif (
            self._process is not None
            and process_tree_memory_bytes(self._process.pid, limits.memory_bytes) > limits.memory_bytes
        ):
            self._exceeded = "memory limit"
        if self._exceeded or self._starved:
            self.stop()
            return
        pause = max(0.01, min(WATCH_SECONDS if limits.wall_seconds < ENDLESS_SECONDS else 1, left))
        self._watch = asyncio.get_running_loop().call_later(pause, self._look, limits, clock)

    @property
    def pids(self) -> Sequence[int]:
        """The process that everything in it comes from, as it is called outside."""
        return () if self._process is None else (self._process.pid,)

    def kill(self) -> None:
        """End it with everything in it."""
        with contextlib.suppress(RuntimeError):  # outside of a loop nobody waits for a reply
            # a cancelled wait that has not ended yet would otherwise belong to the next socket of the same number
            asyncio.get_running_loop().remove_reader(self._control)
        self._control.close()  # the zygote cleans up behind itself
        if self._process is not None:
            for end in (self._process.terminate, self._kill_group):
                try:
                    self._process.wait(2)
                    break
                except subprocess.TimeoutExpired:
                    end()
            self._process.wait()
        if self._group is not None:
            self._group.remove()
            self._group = None
        if not self._enclosure.own_root:  # a zygote that never came to serve leaves it
            for folder in (self._home, self._streams):
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()
        self._log.close()

    def _kill_group(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    @property
    def usable(self) -> bool:
        """Whether it still runs and no job was left unfinished."""
        return not self._busy and self._process is not None and self._process.poll() is None

    async def _request(self, header: dict[str, Any], fds: Sequence[int] = ()) -> tuple[dict[str, Any], bytes]:
        if self._is_out_of_memory:
            return {"there": False}, b""
        self._busy = True
        try:
            await self._send(msgspec.json.encode(header), fds)
            reply = await self._reply()
        except OSError as error:
            raise VerifierError(f"the sandbox failed: {error}") from None
        self._busy = False
        return reply

    async def _send(self, header: bytes, fds: Sequence[int] = ()) -> None:
        frame = _frame(header)
        if fds:
            # they travel with the first bytes, of which a socket at rest takes some at once
            sent = socket.send_fds(self._control, [frame], list(fds))
            frame = frame[sent:]
        if frame:
            await asyncio.get_running_loop().sock_sendall(self._control, frame)

    async def _reply(self) -> tuple[dict[str, Any], bytes]:
        (length,) = struct.unpack("I", await self._exactly(4))
        header: dict[str, Any] = msgspec.json.decode(await self._exactly(length))
        if "error" in header:
            raise OSError(header["error"])
        return header, await self._exactly(header["length"])

    async def _exactly(self, length: int) -> bytes:
        received = self._received
        while len(received) < length:
            # a whole reply is usually there at once
            piece = await asyncio.get_running_loop().sock_recv(self._control, max(READ_BYTES, length - len(received)))
            if not piece:
                raise ConnectionResetError("it ended")
            received += piece
        taken = bytes(received[:length])
        del received[:length]
        return taken


def reachable_folder() -> str:
    """A folder for temporary files that any user can pass through, also where ours is a private one."""
    for folder in (Path(tempfile.gettempdir()).resolve(), *map(Path, ("/tmp", "/var/tmp"))):  # noqa: S108  ours has a new name
        writable = os.access(folder, os.W_OK | os.X_OK)
        if writable and all(above.stat().st_mode & 0o001 for above in (folder, *folder.parents)):
            return str(folder)
    return tempfile.gettempdir()


def sandbox_environment(home: str) -> dict[str, str]:
    """What programs find in their environment: nothing of ours."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        # an answer that passes by the luck of a hash order must pass or fail every time
        "PYTHONHASHSEED": "0",
        # each thread would reserve 64 MB of addresses, on a machine of many processors more than a limit on memory allows
        "MALLOC_ARENA_MAX": "2",
        # and so would the threads of numeric libraries, one for each processor: a right answer must not end by the machine it is on
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENCV_FOR_THREADS_NUM"), "1"),
    }


def base_interpreter() -> str:
    """The Python we run on, not that of a virtual environment, which is among the user's own files."""
    return os.path.realpath(sys.executable)


def base_python_folders() -> tuple[str, ...]:
    """What that Python needs to import its own library, where that is not the system's."""
    prefix = os.path.realpath(sys.base_prefix)
    return () if prefix == "/usr" or prefix.startswith("/usr/") else (prefix,)


def leading_bytes(file: IO[bytes], most: int) -> bytes:
    """The beginning of what was printed."""
    return os.pread(file.fileno(), min(most, os.fstat(file.fileno()).st_size), 0)


def new_file() -> IO[bytes]:
    """An empty file that has no name."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("stream"), "w+b", buffering=0)  # noqa: PTH123  it has no path
    return tempfile.TemporaryFile(buffering=0)


def _frame(header: bytes) -> bytes:
    return struct.pack("I", len(header)) + header


@cache
def _zygote_modules() -> list[tuple[str, str]]:
    here = Path(__file__)
    return [
        (f"steelyard.sandbox.{name}", here.with_name(f"{name}.py").read_text("utf-8"))
        for name in ("kernel", "folders", "mode_requests", "open_files", "streams", "private_root", "zygote")
    ]


@cache
def compiled_module(name: str, source: str) -> str:
    """A module in the form that our interpreter loads fastest, without our paths in it."""
    spec = importlib.util.find_spec(name) if name.startswith("steelyard.") else None
    loader: Any = None if spec is None else spec.loader
    # the code that lies beside its file, already compiled
    found = loader.get_code(name) if hasattr(loader, "get_code") else None
    code = compile(source, "", "exec", dont_inherit=True) if found is None else found
    return base64.b64encode(marshal.dumps(_renamed(code, f"{name}.py"))).decode()


def _renamed(code: CodeType, filename: str) -> CodeType:
    inner = [_renamed(part, filename) if isinstance(part, CodeType) else part for part in code.co_consts]
    return code.replace(co_filename=filename, co_consts=tuple(inner))


def _map_users(pid: int, both: str) -> None:
    """Map the users of a new namespace to users outside it; by default only to ourselves."""
    about = Path("/proc", str(pid))
    if not both:
        (about / "setgroups").write_text("deny")
    (about / "uid_map").write_text(both or f"1 {os.geteuid()} 1\n")
    (about / "gid_map").write_text(both or f"1 {os.getegid()} 1\n")


def _is_world_readable(folder: str) -> bool:
    """Whether any user can read what is in a folder, also where a link leads to it."""
    places = [Path(folder), Path(folder).resolve()]
    return all(path.stat().st_mode & 0o5 == 0o5 for place in places for path in (place, *place.parents))
