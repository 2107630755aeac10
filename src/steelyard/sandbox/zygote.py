"""A warm, isolated process that forks one contained process for each job.

Only the standard library is used: an interpreter that knows nothing of steelyard loads this module, and what runs here is
ours; an answer only ever runs in a child that has given up its rights. Jobs come over a socket, one at a time.
"""

from __future__ import annotations

import contextlib
import functools
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
from steelyard.sandbox.folders import (
    enter,
    has_too_many_files,
    is_folder,
    is_over_disk_limit,
    path_parts,
    put_aside,
    wipe,
)
from steelyard.sandbox.mode_requests import ModeRequests, ask_for_modes
from steelyard.sandbox.open_files import can_see_open_files, unnamed_bytes
from steelyard.sandbox.private_root import DEVICE_PATHS, SHARED_MEMORY_FOLDER, SYSTEM_PATHS, enter_private_root
from steelyard.sandbox.streams import STREAM_NAMES, AgentStreams, ProgramStreams, copy_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

SETTINGS_PATHS = ("/etc/ssl/openssl.cnf",)
"""Files that programs can do without, unless they exist and cannot be read; none of them is secret."""
MAX_OPEN_FILES, MAX_AGENT_OPEN_FILES = 256, 1024
DISK_CHECK_SECONDS = 0.25
"""Seconds between checks of the folder's size, where the file system does not limit it."""
WATCHED_SECONDS, REAP_DELAY_SECONDS = 0.25, 0.004
"""Seconds after which a process may have been looked at from outside, and seconds to wait with reaping such a one."""
TASK_COUNT_TTL_SECONDS = 0.5
"""Seconds for which a count of a user's processes is good enough."""
MAX_JOB_HEADER_BYTES = 1 << 20


def enter_namespaces(control: socket.socket) -> None:
    """Enter namespaces of our own, in a new process if a library has started threads here: the kernel refuses them to such a one."""
    has_threads = len(os.listdir("/proc/self/task")) > 1
    if has_threads and (alone := os.fork()):
        control.close()
        os.waitpid(alone, 0)
        os._exit(0)
    kernel.unshare(kernel.EVERY_NAMESPACE)
    if has_threads:
        # the one that waits for us may be killed
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)


class Zygote:
    """Serves jobs until the other side is gone."""

    def __init__(
        self, control: socket.socket, config: dict[str, Any], guest: Callable[[list[int]], None] | None
    ) -> None:
        self._control = control
        self._guest = guest
        self._namespaces: bool = config["namespaces"]
        self._landlock: bool = config["landlock"]
        self._filter: bytes = bytes.fromhex(config["filter"])
        """The filter of system calls; empty if there is none."""
        self._readable: list[str] = config["readable"]
        self._writable: list[str] = config["writable"]
        self._is_agents: bool = config["agent"]
        self._has_descriptor_paths: bool = config["descriptor_paths"]
        self._uid: int | None = config["uid"]
        """The user that children run as; None if we cannot change the user."""
        self._keeps: tuple[int, ...] = tuple(config["keeps"])
        self._home: str = config["home"]
        self._streams: str = config["streams"]
        """The folder of a program's standard streams."""
        self._shared_memory: tuple[str, ...] = (SHARED_MEMORY_FOLDER,) if config["own_root"] else ()
        self._alone = False
        """Whether we are the first process of a namespace of our own."""
        self._own_root: bool = config["own_root"]
        # a user of its own, or one that is counted separately, has no processes yet
        self._counts = self._uid is None and not self._own_root
        self._tasks: int | None = 0
        self._counted = -TASK_COUNT_TTL_SECONDS
        self._grants_modes = bool(self._filter) and not self._own_root and self._uid is None
        """Whether a process must ask us for every change of a mode: all that it can see belongs to its user."""
        self._transparent = self._landlock
        """Whether we may inspect our children from outside: without /proc nothing else in the sandbox can."""
        self._sees_open_files = False
        """Whether we can see what our children hold open, and need to."""
        self._bounded = self._namespaces
        """Whether the file system itself keeps the folder from growing without end."""

    def serve(self) -> None:
        """Do one job after the other."""
        os.umask(
            0o022
        )  # the user's own could close the folders that we make for another user, and answers could see that
        if self._namespaces:
            enter_private_root(
                self._readable,
                self._home,
                self._streams,
                self._uid,
                self._writable,
                agent=self._is_agents,
                # without landlock what is there could be written
                descriptor_paths=self._has_descriptor_paths and self._landlock,
            )
            if self._is_agents:
                kernel.start_loopback()
        elif kernel.RUNS_ON_LINUX:
            # every process that an answer leaves behind becomes our child
            kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        if kernel.RUNS_ON_LINUX:
            if self._own_root:  # elsewhere our children would live on without us
                kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            # no other process may read our memory, not even one of the same user
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        # a child may run as the same user, and could then send even process 1 a signal that it handles
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if self._uid is not None and not self._namespaces:
            for folder in (self._home, *self._shared_memory):
                os.chown(folder, self._uid, self._uid)
        os.chdir(self._home)
        if kernel.RUNS_ON_LINUX and not self._own_root:
            self._sees_open_files = can_see_open_files(self._uid, dumpable=self._transparent)
        self._alone = os.getpid() == 1
        if self._alone:
            # a filter that we install is inherited by every child at no cost
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
            self._give_up_reach()
        # as little as possible between a fork and its end: what we touch meanwhile is copied
        self._waiting = select.poll()
        self._waiting.register(self._control, select.POLLIN)
        # a first compilation fills caches that every child then finds filled
        compile("x = 1", "warm.py", "exec")
        gc.collect()
        gc.freeze()
        gc.disable()
        self._reply({"ready": True})
        jobs = {"run": self._run, "call": self._call, "write": self._write, "read": self._read, "wipe": self._wipe}
        jobs |= {"open": self._open, "agent": self._run_agent, "join": self._join}
        while True:
            header, fds = self._request()
            if header["do"] in jobs:  # a stop that came too late is ignored
                try:
                    jobs[header["do"]](header, fds)
                except OSError as error:
                    self._reply({"error": f"{header['do']}: {error}"})
            for fd in fds:
                os.close(fd)

    def leave(self) -> None:
        """End, and clean up what is ours."""
        if not self._alone:  # the end of process 1 is the end of all
            with contextlib.suppress(Exception):
                clean_up(self._home, self._streams)
        os._exit(0)

    def _request(self) -> tuple[dict[str, Any], list[int]]:
        size, fds, _, _ = socket.recv_fds(self._control, 4, 8)
        if not size:
            self.leave()
        (length,) = struct.unpack("I", size + self._exactly(4 - len(size)))
        header: dict[str, Any] = json.loads(self._exactly(min(length, MAX_JOB_HEADER_BYTES)))
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

        def start(_: int) -> None:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.execvpe(argv[0], argv, environment)  # noqa: S606  this is the place where programs are started

        self._reply(self._with_streams(job, fds[:3], [], start))

    def _join(self, job: dict[str, Any], fds: list[int]) -> None:  # noqa: ARG002  every job has the same shape
        """Move into the control group whose list of processes we are given."""
        joined = False
        with contextlib.suppress(OSError):
            joined = bool(os.write(fds[0], b"0"))
        self._reply({"joined": joined})

    def _open(self, job: dict[str, Any], fds: list[int]) -> None:  # noqa: ARG002  every job has the same shape
        """Hand out a socket that listens here, our folder, and the ends of the pipes that an agent prints to."""
        self._agent_streams = AgentStreams(self._streams, self._uid)
        ours = [os.open(self._home, os.O_PATH | os.O_DIRECTORY), *self._agent_streams.readers]
        with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket(fileno=os.dup(fds[0])) as line:
            socket.send_fds(line, [b"!"], [listening.fileno(), *ours])
        for fd in ours:
            os.close(fd)
        self._reply({})

    def _run_agent(self, job: dict[str, Any], fds: list[int]) -> None:
        """Start an agent on a task that it is given, and wait for its end."""
        argv, environment = job["argv"], job["environment"]

        def start(_: int) -> None:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.chdir(job["folder"])
            os.execve(argv[0], argv, environment)  # noqa: S606  this is the place where agents are started

        ended = self._contain(job["limits"], self._agent_streams.fds(fds[0]), [], start)
        self._agent_streams.close()
        self._reply(ended)

    def _call(self, job: dict[str, Any], fds: list[int]) -> None:
        """Let the guest run with the sockets that it is given."""
        guest = self._guest

        def start(error_writer: int) -> None:
            os.close(error_writer)
            if guest is not None:
                guest(list(range(3, len(fds))))
            os._exit(0)

        if job["program"]:
            ended = self._with_streams(job, fds[:3], fds[3:], start)
        else:
            ended = self._contain(job["limits"], fds[:3], fds[3:], start)
        self._wipe({}, [])
        self._reply(ended)

    def _with_streams(
        self, job: dict[str, Any], given: list[int], others: list[int], start: Callable[[int], None]
    ) -> dict[str, Any]:
        """Contain a program whose standard streams are files in the sandbox."""
        wipe(self._streams)
        os.chmod(self._streams, 0o711)  # noqa: S103  the way to files that are its own
        enter(self._home)
        streams = ProgramStreams(self._streams, self._uid, given, kept=job["most"], most=int(job["limits"][3]))
        watched = {reader: functools.partial(streams.take, reader) for reader in streams.readers}
        try:
            stdin, stdout, stderr = streams.fds
            std = [stdin, stdout, stdout if job.get("one_output") else stderr]
            ended = self._contain(job["limits"], std, others, start, watched)
            streams.collect()
        finally:
            streams.close()
            wipe(self._streams)
            enter(self._home)
        return ended

    def _contain(
        self,
        limits: Sequence[float],
        std: list[int],
        others: list[int],
        start: Callable[[int], None],
        handlers: Mapping[int, Callable[[], bool]] = {},
    ) -> dict[str, Any]:
        """Fork a child that gives up its rights and starts; how it ended, with nothing of it left running.

        The handlers are called when something has come through their descriptors, until one returns False.
        """
        began = time.monotonic()
        if self._counts and began - self._counted > TASK_COUNT_TTL_SECONDS:
            self._tasks, self._counted = tasks_of_this_user(), began
        error_reader, error_writer = os.pipe()
        line = socket.socketpair() if self._grants_modes else None
        child = os.fork()
        if child == 0:
            # the last of its files, which `start` closes: what is written there comes from us, never from an answer
            try:
                self._become_contained(limits, [*std, *others, error_writer], line and line[1])
                start(len(std) + len(others))
            except BaseException as error:  # noqa: BLE001  nothing may come back into our loop in a child
                with contextlib.suppress(BaseException):
                    os.write(len(std) + len(others), str(error).encode()[:1000] or b"for no reason")
            finally:
                os._exit(127)
        os.close(error_writer)
        requests = ModeRequests.received(line, self._home) if line is not None else None
        if requests is not None:
            handlers = {**handlers, requests.listener: requests.answer}
        limit = self._ended(child, began + limits[1], int(limits[3]), handlers)
        if limit is not None:
            kill_everything(child)
        elif time.monotonic() - began > WATCHED_SECONDS:
            # its threads still take away what a look from outside left in /proc; reaping would keep a processor busy until then
            time.sleep(REAP_DELAY_SECONDS)
        _, status, used = os.wait4(child, 0)
        seconds = time.monotonic() - began
        reap(child)
        cpu = used.ru_utime + used.ru_stime
        code = os.waitstatus_to_exitcode(status)
        wrong = os.read(error_reader, 1000)
        os.close(error_reader)
        if requests is not None:
            requests.close()
        if wrong:
            return {"error": f"could not start: {wrong.decode('utf-8', 'replace')}"}
        out_of_cpu = limit is None and (code == -signal.SIGXCPU or (code == -signal.SIGKILL and cpu >= int(limits[0])))
        named = "cpu limit" if out_of_cpu else limit or ""
        return {"code": code, "limit": named, "stopped": limit == "", "seconds": seconds, "cpu": cpu}

    def _ended(
        self, child: int, deadline: float, largest: int, handlers: Mapping[int, Callable[[], bool]]
    ) -> str | None:
        """Wait for the child's end; returns the limit that came before it, an empty one when we are asked to stop."""
        waiting = self._waiting
        watched = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
        registered = set(handlers) if watched is None else {watched, *handlers}
        for fd in registered:
            waiting.register(fd, select.POLLIN)
        try:
            while (left := deadline - time.monotonic()) > 0:
                pause = min(left, 3600 if self._bounded else DISK_CHECK_SECONDS) if watched is not None else 0.005
                ready = {fd for fd, _ in waiting.poll(pause * 1000)}
                if watched in ready:
                    return None
                if watched is None and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    return None
                if self._control.fileno() in ready:
                    self._request()  # the only request that can come now is to stop
                    return ""
                for fd in ready & registered:
                    if not handlers[fd]():
                        registered.remove(fd)
                        waiting.unregister(fd)
                if not self._bounded and watched is not None and self._is_over_disk_limit(largest):
                    return "disk limit"
            return "time limit"
        finally:
            for fd in registered:
                waiting.unregister(fd)
            if watched is not None:
                os.close(watched)

    def _is_over_disk_limit(self, largest: int) -> bool:
        if self._own_root:
            return any(map(has_too_many_files, (self._home, self._streams, *self._shared_memory)))
        unnamed = unnamed_bytes(self._home, largest) if self._sees_open_files else 0
        return is_over_disk_limit(self._home, unnamed)

    def _become_contained(self, limits: Sequence[float], fds: list[int], line: socket.socket | None) -> None:
        os.setsid()
        fds = [*fds, line.fileno()] if line is not None else fds
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # first moved out of the way, so that none is overwritten before it is copied
        far = [os.dup2(fd, 64 + place, inheritable=False) for place, fd in enumerate(fds)]
        for place, fd in enumerate(far):
            os.dup2(fd, place, inheritable=place < 3)
        os.closerange(len(fds), MAX_OPEN_FILES)
        cpu, memory, file, processes = max(1, round(limits[0])), *map(int, limits[2:5])
        # 0 would still wake a program of the system's that collects crashes; 1 does not
        _set_limit(resource.RLIMIT_CORE, 1, 1)
        _set_limit(resource.RLIMIT_CPU, cpu, cpu + 1)
        _set_limit(resource.RLIMIT_FSIZE, file, file)
        open_files = MAX_AGENT_OPEN_FILES if self._is_agents else MAX_OPEN_FILES
        _set_limit(resource.RLIMIT_NOFILE, open_files, open_files)
        if kernel.RUNS_ON_LINUX:
            # node reserves gigabytes of addresses for each WebAssembly module, and fetches by one
            kind = resource.RLIMIT_DATA if self._is_agents else resource.RLIMIT_AS
            _set_limit(kind, memory, memory)
        if self._tasks is not None:
            _set_limit(resource.RLIMIT_NPROC, self._tasks + processes, self._tasks + processes)
        if self._uid is not None:
            if self._keeps:
                kernel.prctl(kernel.PR_SET_KEEPCAPS, 1)
            if not self._namespaces:
                os.setgroups([])
            os.setresgid(self._uid, self._uid, self._uid)
            os.setresuid(self._uid, self._uid, self._uid)
        if kernel.RUNS_ON_LINUX and (self._uid is None or self._keeps):  # another user has no capabilities left
            kernel.keep_capabilities(*self._keeps)
        if self._transparent:
            kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        if not self._alone:
            if kernel.RUNS_ON_LINUX:
                kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
            if line is not None:
                with socket.socket(fileno=len(fds) - 1) as sending:
                    ask_for_modes(sending)
            if self._filter and self._uid is None and not (self._landlock and kernel.landlock_version() >= 6):
                # neither another user nor landlock keeps our signals from others
                kernel.filter_signals()
            # the zygote has yet to clean up behind us, so it cannot have done this for us
            self._give_up_reach()

    def _give_up_reach(self) -> None:
        if self._landlock:
            everything = [*filter(os.path.exists, (*SYSTEM_PATHS, *SETTINGS_PATHS)), *self._readable]
            writable = [self._home, "/dev/null", *self._shared_memory, *self._writable]
            if self._alone:
                kernel.landlock(["/"], [*writable, self._streams], ports=self._is_agents)
            else:  # its streams, but no other file beside them
                streams = filter(os.path.exists, (os.path.join(self._streams, name) for name in STREAM_NAMES))
                kernel.landlock([*everything, *DEVICE_PATHS], [*writable, *streams])
        if self._filter:
            kernel.install_filter(self._filter)

    def _write(self, job: dict[str, Any], fds: list[int]) -> None:
        """Write files whose contents are one behind the other in a file that we are given."""
        start = 0
        for name, length in job["files"]:
            *folders, last = path_parts(name)
            place = self._walk(folders, make=True)
            try:
                put_aside(last, place)
                file = os.open(last, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o755, dir_fd=place)
            finally:
                os.close(place)
            try:
                copy_file(fds[0], file, length, start)
                self._hand_over(file)
            finally:
                os.close(file)
            start += length
        self._reply({})

    def _read(self, job: dict[str, Any], fds: list[int]) -> None:  # noqa: ARG002  every job has the same shape
        content = None
        try:
            *folders, last = path_parts(job["name"])
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
        enter(self._home)
        place = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        for folder in folders:
            made = make and not is_folder(folder, place)
            if made:
                put_aside(folder, place)
                os.mkdir(folder, 0o755, dir_fd=place)
            elif make:
                os.chmod(folder, 0o700, dir_fd=place)  # an answer may have locked it
            below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            if made:
                self._hand_over(below)
            os.close(place)
            place = below
        return place

    def _hand_over(self, fd: int) -> None:
        if self._uid is not None:
            os.fchown(fd, self._uid, self._uid)

    def _wipe(self, job: dict[str, Any], fds: list[int]) -> None:  # noqa: ARG002  every job has the same shape
        for folder in (*self._shared_memory, self._home):  # the last one is the current folder afterwards
            wipe(folder)
        if job:
            self._reply({})


def guard(first: int, home: str, streams: str) -> None:
    """Wait for the end of a zygote that has no namespace to take its children along, and end them in its place."""
    if kernel.RUNS_ON_LINUX:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # ending us must end everything in the sandbox
    signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGKILL))
    os.waitpid(first, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(Exception):
        clean_up(home, streams)
    os._exit(0)


def clean_up(*folders: str) -> None:
    """End everything that an answer started, and remove the folders."""
    kill_everything()
    reap()
    for folder in filter(os.path.isdir, folders):
        wipe(folder)
        os.rmdir(folder)


def kill_everything(child: int = 0) -> None:
    """End everything that an answer started, the child first."""
    if child:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
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


def reap(child: int = 0) -> None:
    """Reap the processes that an answer left behind; normally there are none."""
    if child and not kernel.RUNS_ON_LINUX:
        # what is left does not come to us there, but it may still be of the same group
        kill_everything(child)
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
                # one that is dead by name may live on in other threads than its first
                parents.setdefault(int(file.read().rpartition(b")")[2].split()[1]), []).append(int(name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def tasks_of_this_user() -> int | None:
    """How many processes and threads this user already has, because the limit counts them all; None if unknown."""
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


_HARD_LIMITS = {
    kind: resource.getrlimit(kind)[1]
    for kind in (
        *(resource.RLIMIT_CORE, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE),
        *(resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_NPROC),
    )
}
"""Our own hard limits, which no child can exceed."""


def _set_limit(kind: int, soft: int, hard: int) -> None:
    most = _HARD_LIMITS[kind]
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(kind, (soft, hard))
