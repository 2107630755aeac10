"""A warm process inside an enclosure that forks one contained process for each job.

Only the standard library is used: an interpreter that knows nothing of steelyard loads this module, and what runs here is
ours; an answer only ever runs in a child that has given up its rights. Jobs come over a socket, one at a time.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import socket
import stat
import struct
import time

from steelyard.sandbox import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
)
"""What programs need to start; nothing in it is anyone's secret."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
ROOM, FILES = "512m", 20_000
"""How much fits into a workspace, in bytes and in files."""
OPEN_FILES = 256
LONGEST_HEADER = 1 << 20


class Zygote:
    """Serves jobs until the other side is gone."""

    def __init__(
        self, control: socket.socket, config: dict[str, Any], guest: Callable[[list[int]], None] | None
    ) -> None:
        self._control = control
        self._guest = guest
        self._namespaces: bool = config["namespaces"]
        self._landlock: bool = config["landlock"]
        self._filter: bool = config["filter"]
        self._readable: list[str] = config["readable"]
        self._uid: int | None = config["uid"]
        """Who the children become; None where nobody else can be become."""
        self._keeps: tuple[int, ...] = tuple(config["keeps"])
        self._home: str = config["home"]
        self._alone = False
        """Whether we are the first process of a namespace of our own."""
        self._tasks = 0 if self._namespaces else tasks_of_this_user()

    def serve(self) -> None:
        """Do one job after the other."""
        if self._namespaces:
            enclose(self._readable, self._home, self._uid)
        elif kernel.LINUX:
            # what an answer leaves behind becomes our child, wherever it hides
            kernel.prctl(kernel.SET_CHILD_SUBREAPER, 1)
        if kernel.LINUX:
            kernel.prctl(kernel.SET_PDEATHSIG, signal.SIGKILL)
            # nobody else's eyes in our memory, not even those of the same user
            kernel.prctl(kernel.SET_DUMPABLE, 0)
        os.chdir(self._home)
        self._alone = os.getpid() == 1
        if self._alone:
            # what is refused to us is refused to every child, and costs none of them anything
            self._give_up_reach()
        # a first compilation fills caches that every child then finds filled
        compile("x = 1", "warm.py", "exec")
        gc.collect()
        gc.freeze()
        gc.disable()
        self._reply({"ready": True})
        jobs = {"run": self._run, "call": self._call, "write": self._write, "read": self._read, "wipe": self._wipe}
        while True:
            header, fds = self._request()
            if header["do"] in jobs:  # a stop that came too late is for nobody
                jobs[header["do"]](header, fds)
            for fd in fds:
                os.close(fd)

    def leave(self) -> None:
        """End with everything that is ours."""
        if not self._alone:  # the end of process 1 is the end of all
            with contextlib.suppress(Exception):
                kill_everything()
                self._wipe({}, [])
                os.rmdir(self._home)
        os._exit(0)

    def _request(self) -> tuple[dict[str, Any], list[int]]:
        size, fds, _, _ = socket.recv_fds(self._control, 4, 8)
        if not size:
            self.leave()
        (length,) = struct.unpack("I", size + self._exactly(4 - len(size)))
        header: dict[str, Any] = json.loads(self._exactly(min(length, LONGEST_HEADER)))
        return header, fds

    def _exactly(self, length: int) -> bytes:
        pieces = bytearray()
        while len(pieces) < length:
            piece = self._control.recv(min(1 << 20, length - len(pieces)))
            if not piece:
                self.leave()
            pieces += piece
        return bytes(pieces)

    def _reply(self, header: dict[str, Any], payload: bytes = b"") -> None:
        text = json.dumps({**header, "length": len(payload)}).encode()
        try:
            self._control.sendall(struct.pack("I", len(text)) + text + payload)
        except OSError:
            self.leave()

    def _run(self, job: dict[str, Any], fds: list[int]) -> None:
        """Start a program and wait for its end."""
        argv, environment = job["argv"], {**os.environ, **job["environment"]}

        def start() -> None:
            os.execvpe(argv[0], argv, environment)  # noqa: S606  this is the place where programs are started

        self._reply(self._contain(job["limits"], fds[:3], [], start))

    def _call(self, job: dict[str, Any], fds: list[int]) -> None:
        """Let the guest talk over the sockets it is given."""
        guest = self._guest

        def start() -> None:
            if guest is not None:
                guest(list(range(3, 3 + len(fds) - 1)))
            os._exit(0)

        nothing = os.open("/dev/null", os.O_RDONLY)
        ended = self._contain(job["limits"], [nothing, fds[0], fds[0]], fds[1:], start)
        os.close(nothing)
        self._wipe({}, [])
        self._reply(ended)

    def _contain(
        self, limits: Sequence[float], std: list[int], others: list[int], start: Callable[[], None]
    ) -> dict[str, Any]:
        """Fork a child that gives up its rights and starts; how it ended, with nothing of it left running."""
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            try:
                self._become_contained(limits, [*std, *others])
                start()
            except BaseException as error:  # noqa: BLE001  nothing may come back into our loop in a child
                with contextlib.suppress(BaseException):
                    os.write(2, f"steelyard: could not start: {error}\n".encode())
            finally:
                os._exit(127)
        overdue = not self._ended(child, began + limits[1])
        if overdue:
            kill_everything()
        _, status, used = os.wait4(child, 0)
        seconds = time.monotonic() - began
        reap()
        cpu = used.ru_utime + used.ru_stime
        code = os.waitstatus_to_exitcode(status)
        out_of_cpu = code == -signal.SIGXCPU or (code == -signal.SIGKILL and not overdue and cpu >= int(limits[0]))
        limit = "time limit" if overdue else "cpu limit" if out_of_cpu else ""
        # what we were asked to stop ran into no limit
        return {"code": code, "limit": limit if self._running else "", "seconds": seconds}

    def _ended(self, child: int, deadline: float) -> bool:
        """Wait for the child's end; false when it did not come in time, or when we are asked to stop."""
        self._running = True
        waiting = select.poll()
        waiting.register(self._control, select.POLLIN)
        watched = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
        if watched is not None:
            waiting.register(watched, select.POLLIN)
        try:
            while (left := deadline - time.monotonic()) > 0:
                events = waiting.poll(min(left, 3600) * 1000 if watched is not None else 5)
                if any(fd == watched for fd, _ in events):
                    return True
                if watched is None and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    return True
                if events:
                    self._request()  # there is nothing else to be asked now but to stop
                    self._running = False
                    return False
            return False
        finally:
            if watched is not None:
                os.close(watched)

    def _become_contained(self, limits: Sequence[float], fds: list[int]) -> None:
        os.setsid()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        # first out of the way, so that no one is overwritten before it is copied
        far = [os.dup2(fd, 64 + place, inheritable=False) for place, fd in enumerate(fds)]
        for place, fd in enumerate(far):
            os.dup2(fd, place, inheritable=place < 3)
        os.closerange(len(fds), OPEN_FILES)
        cpu, memory, file, processes = max(1, round(limits[0])), *map(int, limits[2:5])
        _limit(resource.RLIMIT_CORE, 0, 0)
        _limit(resource.RLIMIT_CPU, cpu, cpu + 1)
        _limit(resource.RLIMIT_FSIZE, file, file)
        _limit(resource.RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES)
        if kernel.LINUX:
            _limit(resource.RLIMIT_AS, memory, memory)
        if self._tasks is not None:
            _limit(resource.RLIMIT_NPROC, self._tasks + processes, self._tasks + processes)
        if self._uid is not None:
            if self._keeps:
                kernel.prctl(kernel.SET_KEEPCAPS, 1)
            if not self._namespaces:
                os.setgroups([])
            os.setresgid(self._uid, self._uid, self._uid)
            os.setresuid(self._uid, self._uid, self._uid)
        if kernel.LINUX:
            kernel.keep_capabilities(*self._keeps)
            kernel.prctl(kernel.SET_NO_NEW_PRIVS, 1)
        if not self._alone:
            # the zygote has yet to clean up behind us, so it cannot have done this for us
            self._give_up_reach()
            if self._filter:
                kernel.filter_signals()

    def _give_up_reach(self) -> None:
        if self._landlock:
            everything = [*filter(os.path.exists, SYSTEM), *self._readable]
            kernel.landlock(["/"] if self._alone else everything, [self._home, "/dev/null"])
        if self._filter:
            kernel.filter_calls()

    def _write(self, job: dict[str, Any], fds: list[int]) -> None:  # noqa: ARG002  every job has the same shape
        for name, length in job["files"]:
            content = self._exactly(length)
            *folders, last = name.split("/")
            place = self._walk(folders, make=True)
            try:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(last, dir_fd=place)
                file = os.open(last, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o755, dir_fd=place)
                with open(file, "wb") as opened:
                    opened.write(content)
                    self._hand_over(file)
            finally:
                os.close(place)
        self._reply({})

    def _read(self, job: dict[str, Any], fds: list[int]) -> None:  # noqa: ARG002  every job has the same shape
        content = None
        *folders, last = job["name"].split("/")
        try:
            place = self._walk(folders, make=False)
            try:
                file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
            finally:
                os.close(place)
            with open(file, "rb") as opened:
                about = os.fstat(file)
                if stat.S_ISREG(about.st_mode) and about.st_nlink == 1:
                    content = opened.read(job["most"])
        except OSError:
            pass  # not there, or not what it should be
        self._reply({"there": content is not None}, content or b"")

    def _walk(self, folders: Sequence[str], *, make: bool) -> int:
        """A folder below home, reached without following any link that code may have laid."""
        place = os.open(self._home, os.O_RDONLY | os.O_DIRECTORY)
        for folder in folders:
            if make:
                try:
                    os.mkdir(folder, 0o755, dir_fd=place)
                    made = True
                except FileExistsError:
                    made = False
            below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            if make and made:
                self._hand_over(below)
            os.close(place)
            place = below
        return place

    def _hand_over(self, fd: int) -> None:
        if self._uid is not None:
            os.fchown(fd, self._uid, self._uid)

    def _wipe(self, job: dict[str, Any], fds: list[int]) -> None:  # noqa: ARG002  every job has the same shape
        """Empty the folder, however deep and locked what is in it: folders are brought up instead of walked down."""
        count = 0
        os.chmod(self._home, 0o700)
        while entries := list(os.scandir(self._home)):
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                os.chmod(entry.path, 0o700)
                for inner in os.scandir(entry.path):
                    count += 1
                    if inner.is_dir(follow_symlinks=False):
                        os.chmod(inner.path, 0o700)
                        os.rename(inner.path, os.path.join(self._home, f".wiped-{count}-{os.urandom(4).hex()}"))
                    else:
                        os.unlink(inner.path)
                os.rmdir(entry.path)
        if job:
            self._reply({})


def enclose(readable: Sequence[str], home: str, uid: int | None) -> None:
    """A root of our own that holds the system, what is readable, and an empty home; nothing else is there."""
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    # a folder that exists everywhere and that nobody wants to read
    root = "/proc"
    kernel.mount("tmpfs", root, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m,mode=755")
    for path in (*SYSTEM, *readable):
        if os.path.islink(path):
            os.symlink(os.readlink(path), root + path)
        elif os.path.exists(path):
            bind(path, root + path)
            kernel.make_read_only(root + path)
    for device in DEVICES:
        bind(device, root + device)
    os.makedirs(root + home)
    owner = "" if uid is None else f",uid={uid},gid={uid}"
    options = f"size={ROOM},nr_inodes={FILES},mode=700{owner}"
    kernel.mount("tmpfs", root + home, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
    if not os.path.exists(root + "/tmp"):  # noqa: S108  its own, not ours; something readable may lie there
        os.symlink(home, root + "/tmp")  # noqa: S108
    kernel.change_root(root)
    kernel.mount("none", "/", None, kernel.MS_BIND | 32 | kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV)


def bind(source: str, target: str) -> None:
    """The same file or folder a second time, in another place."""
    os.makedirs(target if os.path.isdir(source) else os.path.dirname(target), exist_ok=True)
    if not os.path.isdir(source):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    kernel.mount(source, target, None, kernel.MS_BIND | kernel.MS_REC)


def kill_everything() -> None:
    """End whatever an answer started."""
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        return
    # stopped first, so that what multiplies cannot outrun us
    for with_signal in (signal.SIGSTOP, signal.SIGKILL):
        seen: set[int] = set()
        while fresh := set(descendants()) - seen:
            for pid in fresh:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, with_signal)
            seen |= fresh


def reap() -> None:
    """Bury whoever an answer left behind; normally there is nobody."""
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        kill_everything()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def descendants() -> list[int]:
    """Our children and theirs."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                after = file.read().rpartition(b")")[2].split()
                if after[0] != b"Z":
                    parents.setdefault(int(after[1]), []).append(int(name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def tasks_of_this_user() -> int | None:
    """How many processes and threads this user has already, where a limit counts them all; None where it cannot be told."""
    user, count = os.getuid(), 0
    try:
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError):
                    if os.stat(f"/proc/{name}").st_uid == user:
                        count += len(os.listdir(f"/proc/{name}/task"))
    except OSError:
        return None
    return count


def _limit(kind: int, soft: int, hard: int) -> None:
    most = resource.getrlimit(kind)[1]
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(kind, (soft, hard))
