"""The filter lets through the system calls that are listed, bounds their arguments, and knows no others: tried at every level."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from typing import Any

import pytest

from steelyard.sandbox import kernel
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.sandbox.syscall_filter import ARGUMENT_RULES, LOCAL_SOCKET_SYSCALLS, syscalls
from steelyard.sandbox.worker import base_interpreter
from support.toolchains import isolation_level, needs, unavailable

if not kernel.RUNS_ON_LINUX or kernel.CPU_ARCHITECTURE not in ("x86_64", "aarch64"):
    pytest.skip("the filter is for Linux on two architectures", allow_module_level=True)

ARCHITECTURE = ("x86_64", "aarch64").index(kernel.CPU_ARCHITECTURE)
ALLOWED_SYSCALLS, REFUSED_SYSCALLS = syscalls("allowed"), syscalls("refused")
ALLOWED_NUMBERS = {numbers[ARCHITECTURE] for numbers in ALLOWED_SYSCALLS.values()} - {None}


@pytest.fixture(params=[level for level in ISOLATION_LEVEL_NAMES if level != "seatbelt"])
def sandbox(request: pytest.FixtureRequest) -> ZygoteSandbox:
    return ZygoteSandbox(isolation_level(request.param))


def printed(sandbox: ZygoteSandbox, script: str) -> Any:
    """What a program in the sandbox prints, which is JSON."""

    async def work() -> Any:
        try:
            async with sandbox.workspace({}) as place:
                ran = await place.run([base_interpreter(), "-I", "-S", "-c", script])
                assert ran.exit_code == 0, (ran.stdout, ran.stderr)
                return json.loads(ran.stdout)
        finally:
            await sandbox.close()

    return asyncio.run(work())


CALL_EVERYTHING_ELSE = """
import ctypes, errno, json, platform
libc = ctypes.CDLL(None, use_errno=True)
answers = {}
# the kernel handles these before any filter, and ends whoever calls them from anywhere but its own trampolines
beyond_filters = (335, 336) if platform.machine() == "x86_64" else ()
for number in [*range(600), *range(0x40000000, 0x40000000 + 600)]:
    if number not in @ALLOWED@ and number not in beyond_filters:
        returned = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
        if returned != -1 or ctypes.get_errno() != errno.ENOSYS:
            answers[number] = [returned, ctypes.get_errno()]
print(json.dumps(answers))
"""


def test_a_call_that_is_not_listed_does_not_exist(sandbox: ZygoteSandbox) -> None:
    # with arguments that would do nothing, should the kernel be asked after all
    assert printed(sandbox, CALL_EVERYTHING_ELSE.replace("@ALLOWED@", repr(ALLOWED_NUMBERS))) == {}


BOUNDED_ARGUMENTS = """
import ctypes, errno, fcntl, json, os, socket
libc = ctypes.CDLL(None, use_errno=True)
answers = {}
def ask(name, *given):
    ctypes.set_errno(0)
    returned = getattr(libc, name)(*[ctypes.c_long(one) if isinstance(one, int) else one for one in given])
    answers[f"{name} {given[:3]}"] = errno.errorcode.get(ctypes.get_errno(), "") if returned < 0 else "done"
file = os.open("file", os.O_RDWR | os.O_CREAT)
for flag in (os.O_DIRECT, os.O_ASYNC, os.O_NOATIME):
    ask("fcntl", file, fcntl.F_SETFL, os.O_RDWR | flag)
for command in (fcntl.F_SETOWN, fcntl.F_SETSIG, 15, fcntl.F_SETLEASE, fcntl.F_NOTIFY, 1033, 1036):
    ask("fcntl", file, command, 0)
for command in (0x40086602, 0x5412, 0x5452, 0x8901, 0x8902, 0x40049409):
    ask("ioctl", file, command, ctypes.create_string_buffer(8))
pair = (ctypes.c_int * 2)()
for family in (2, 10, 16, 30, 31, 40):
    ask("socketpair", family, 1, 0, pair)
ask("socketpair", 1, 2, 0, pair)
for option in (4, 22, 28, 35, 0x59616D61):
    ask("prctl", option, 0, 0, 0, 0)
ask("sched_setaffinity", 1, 8, ctypes.create_string_buffer(b"\\xff" * 8))
ask("setpriority", 0, 1, 19)
ask("setpriority", 1, 0, 19)
refused = dict(answers)
answers.clear()
ask("fcntl", file, fcntl.F_SETFL, os.O_RDWR | os.O_NONBLOCK | os.O_APPEND)
ask("fcntl", file, fcntl.F_DUPFD_CLOEXEC, 0)
ask("socketpair", 1, 1, 0, pair)
ask("prctl", 15, ctypes.create_string_buffer(b"name"), 0, 0, 0)
one, other = socket.socketpair()
before = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
grown = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) > before
print(json.dumps([refused, answers, grown]))
"""


def test_the_arguments_of_a_call_that_is_listed_are_bounded(sandbox: ZygoteSandbox) -> None:
    refused, allowed, grown = printed(sandbox, BOUNDED_ARGUMENTS)
    assert set(refused.values()) <= {"EPERM", "ENOTTY", "EINVAL"}
    assert len(refused) > 25
    assert set(allowed.values()) == {"done"}
    assert not grown


@needs("cc")
def test_the_table_holds_what_the_headers_of_this_machine_name() -> None:
    asked = subprocess.run(
        ["cc", "-E", "-dM", "-include", "asm/unistd.h", "-x", "c", "/dev/null"],
        capture_output=True,
        text=True,
        check=False,
    )
    defined = dict(re.findall(r"#define (__NR\w+) (\w+)", asked.stdout))
    if not defined:
        unavailable("no headers of the kernel")
    known = ALLOWED_SYSCALLS | REFUSED_SYSCALLS
    newest = max(number for _, number in known.values() if number is not None)
    for name, value in defined.items():
        while not value.isdigit() and value in defined:
            value = defined[value]
        call = name.removeprefix("__NR_")
        if name.startswith("__NR_") and value.isdigit() and call not in ("syscalls", "arch_specific_syscall"):
            assert int(value) > newest or known[call][ARCHITECTURE] == int(value), call


def test_no_call_is_in_two_tables_and_every_rule_is_for_one_that_is_listed() -> None:
    assert not ALLOWED_SYSCALLS.keys() & REFUSED_SYSCALLS.keys()
    assert {*ARGUMENT_RULES, *LOCAL_SOCKET_SYSCALLS} <= ALLOWED_SYSCALLS.keys()
    for architecture in range(2):
        numbers = [each[architecture] for each in (ALLOWED_SYSCALLS | REFUSED_SYSCALLS).values()]
        listed = [number for number in numbers if number is not None]
        assert len(listed) == len(set(listed))
    for name, ours in kernel.SYSCALL_NUMBERS.items():
        table = (ALLOWED_SYSCALLS | REFUSED_SYSCALLS)[name]
        assert ours == tuple(-1 if number is None else number for number in table)
