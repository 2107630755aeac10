"""The steps of an isolated verdict on a Python answer, done in the plainest way: what no grader of fresh processes can leave out.

A process waits in namespaces of its own, with private folders, landlock and the same filter of system calls as in ours. For each
answer it forks a child that gives up its rights, takes the answer and all calls of its tests in one message, and sends the results
back, which are compared outside. As in ours, nothing but plain data goes back. It looks at nothing that an answer could do to its tests,
has no clock and no limit on what is sent, and gives no reason.
"""

from __future__ import annotations

import ctypes
import gc
import marshal
import os
import random
import re
import resource
import select
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

from steelyard.sandbox import kernel
from steelyard.sandbox.syscall_filter import FilterOptions, syscall_filter

PRELOADED = (
    "bisect",
    "collections",
    "copy",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "math",
    "random",
    "re",
    "string",
    "typing",
)
"""All that the answers import: what they run as may not be able to read this Python."""
MODULES = {name: __import__(name) for name in PRELOADED}
HOME, SHARED = "/tmp", "/dev/shm"
STRANGER = 1
LIMITS = (
    (resource.RLIMIT_CORE, 1),
    (resource.RLIMIT_CPU, 10),
    (resource.RLIMIT_FSIZE, 64 << 20),
    (resource.RLIMIT_NOFILE, 256),
    (resource.RLIMIT_AS, 1 << 30),
    (resource.RLIMIT_NPROC, 64),
)


def judge_all(problems: list[dict[str, str]], samples: int, at_once: int) -> None:
    """Judge right answers to all problems in so many pairs of sandboxes."""
    todo = [(problem, number) for problem in problems for number in range(samples)]
    for worker in range(at_once):
        if os.fork() == 0:
            _judge(todo[worker::at_once])
    for _ in range(at_once):
        if os.waitstatus_to_exitcode(os.wait()[1]):
            raise SystemExit("this machine does not allow the namespaces of the floor")


def _judge(todo: list[tuple[dict[str, str], int]]) -> None:
    """What an engine does for each: files for what is printed, one request, the calls, the results, and the end of the answer."""
    control = _zygote()
    known: dict[str, tuple[Any, list[Any]]] = {}
    for problem, number in todo:
        code = f"{problem['prompt']}{problem['canonical_solution']}\n# {number}\n"
        if problem["task_id"] not in known:
            known[problem["task_id"]] = _tests_and_calls(problem, code)
        tests, calls = known[problem["task_id"]]
        theirs, line = socket.socketpair()
        files = [os.memfd_create("given"), os.memfd_create("printed")]
        _send(control, [], [*files, theirs.fileno()])
        theirs.close()
        _send(line, [code, calls])
        results = iter(_receive(line))
        random.seed(0)
        line.close()
        exec(tests, {name: lambda *_, results=results: next(results) for name in _function_names(code)})
        ended = _receive(control)[0]
        os.pread(files[1], 1 << 20, 0)
        for file in files:
            os.close(file)
        if ended["code"]:
            os._exit(2)
    control.close()
    os.wait()  # what it used counts once it is waited for
    os._exit(0)


def _tests_and_calls(problem: dict[str, str], code: str) -> tuple[Any, list[Any]]:
    """The tests of a problem, compiled, and the calls that they make."""
    tests = compile(f"{problem['test']}\ncheck({problem['entry_point']})", "tests.py", "exec")
    answer: dict[str, Any] = {}
    exec(code, answer)
    calls: list[Any] = []

    def noted(name: str) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            calls.append((name, marshal.loads(marshal.dumps(given))))
            return answer[name](*given)

        return call

    random.seed(0)  # the same calls every time, also where a test makes them up
    exec(tests, {name: noted(name) for name in _function_names(code)})
    return tests, calls


def _function_names(code: str) -> list[str]:
    return re.findall(r"^def (\w+)", code, re.MULTILINE)


def _zygote() -> socket.socket:
    """A process in namespaces of its own that does one job after the other."""
    ours, control = socket.socketpair()
    if os.fork():
        control.close()
        return ours
    ours.close()
    unshared = 0x00020000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000
    if ctypes.CDLL(None).unshare(unshared | (0 if os.getuid() == 0 else 0x10000000)):
        os._exit(1)
    if child := os.fork():
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    mount = ctypes.CDLL(None).mount
    mount(None, b"/", None, 0x44000, None)
    for folder in (HOME, SHARED):
        mount(b"tmpfs", folder.encode(), b"tmpfs", 6, b"size=64m,mode=777")
    os.chdir(HOME)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if kernel.landlock_version():
        kernel.landlock(["/"], [HOME, SHARED, "/dev/null"])
    kernel.install_filter(syscall_filter(FilterOptions(own_root=True)))
    gc.collect()
    gc.freeze()
    gc.disable()
    while True:
        try:
            _, fds = _receive_with_files(control)
        except EOFError:
            os._exit(0)
        reply = _contained(fds)
        for fd in fds:
            os.close(fd)
        _send(control, [reply])


def _contained(fds: list[int]) -> dict[str, Any]:
    """Let an answer do its calls in a fork that has given up its rights; how it ended, with nothing left of it."""
    child = os.fork()
    if child == 0:
        os.setsid()
        for place, fd in enumerate((fds[0], fds[1], fds[1], fds[2])):
            os.dup2(fd, 64 + place)
        for place in range(4):
            os.dup2(64 + place, place)
        os.closerange(4, 256)
        for kind, limit in LIMITS:
            resource.setrlimit(kind, (limit, limit))
        if os.getuid() == 0:
            os.setresgid(STRANGER, STRANGER, STRANGER)
            os.setresuid(STRANGER, STRANGER, STRANGER)
        gc.enable()
        line = socket.socket(fileno=3)
        known: dict[str, Any] = {"__name__": "answer"}
        code, calls = _receive(line)
        exec(compile(code, "answer.py", "exec"), known)
        _send(line, [known[name](*given) for name, given in calls])
        os._exit(0)
    watched = os.pidfd_open(child)
    waiting = select.poll()
    waiting.register(watched, select.POLLIN)
    waiting.poll(10_000)
    os.close(watched)
    _, status, _ = os.wait4(child, 0)
    for folder in (SHARED, HOME):
        os.listdir(folder)  # noqa: PTH208  the cheapest way to see that nothing is left
    return {"code": os.waitstatus_to_exitcode(status)}


def _send(line: socket.socket, message: list[Any], fds: list[int] | None = None) -> None:
    body = marshal.dumps(message)
    frame = struct.pack("I", len(body)) + body
    if fds:
        socket.send_fds(line, [frame], fds)
    else:
        line.sendall(frame)


def _receive(line: socket.socket) -> list[Any]:
    return _receive_with_files(line)[0]


def _receive_with_files(line: socket.socket) -> tuple[list[Any], list[int]]:
    size, fds, _, _ = socket.recv_fds(line, 4, 8)
    if not size:
        raise EOFError
    (length,) = struct.unpack("I", size)
    body = b"".join(_exactly(line, length))
    return marshal.loads(body), list(fds)


def _exactly(line: socket.socket, length: int) -> Iterator[bytes]:
    while length:
        piece = line.recv(length)
        if not piece:
            raise EOFError
        length -= len(piece)
        yield piece
