"""The filter that lets an answer make the system calls it needs and no others, as a program for the kernel.

The number of a call is found by binary search. A call whose arguments do not matter costs next to nothing: the kernel
remembers, when the filter is installed, that it is always allowed.
"""

from __future__ import annotations

import csv
import errno
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from steelyard.sandbox.kernel import (
    BPF_AND,
    BPF_JUMP,
    BPF_JUMP_ANY_BIT,
    BPF_JUMP_AT_LEAST,
    BPF_JUMP_EQUAL,
    BPF_LOAD,
    BPF_RETURN,
    CPU_ARCHITECTURE,
    EVERY_NAMESPACE,
    PR_SET_DUMPABLE,
    SECCOMP_ARGS_OFFSET,
    SECCOMP_RET_ALLOW,
    SECCOMP_RET_ERRNO,
    BpfInstruction,
    filter_prologue,
    pack_filter,
)

SyscallNumbers = tuple[int | None, int | None]
"""The numbers on x86_64 and on aarch64; None if there is no such call. What came after 2019 has one number everywhere."""
MAX_BPF_JUMP = 255
"""How many instructions a jump with a condition can skip."""
AF_UNIX, AF_INET, AF_INET6, SOL_SOCKET = 1, 2, 10, 1
SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCKET_TYPE_MASK = 1, 2, 5, 0xF
CLONE_PARENT = 0x8000
F_SETFL, O_ASYNC, O_NOATIME = 4, 0x2000, 0x40000
O_DIRECT = {"x86_64": 0x4000, "aarch64": 0x10000}.get(CPU_ARCHITECTURE, 0)
O_ACCMODE, O_TRUNC = 3, 0x200

FCNTL_COMMANDS = (
    *(0, 1030),  # a second descriptor
    *(1, 2, 3, F_SETFL),  # flags
    *(5, 6, 7, 36, 37, 38),  # locks
    *(9, 11, 16, 1025),  # who gets signals, and leases, to be asked for only
    *(1027, 1028),  # whether it is the same file, or a new one
    *(1031, 1032, 1034, 1035, 1037),  # size of a pipe; seals and hints to be asked for
)
IOCTL_COMMANDS = (
    *(0x5401, 0x802C542A, 0x5413, 0x540F),  # whether it is a terminal, and how large
    *(0x541B, 0x5411, 0x5421),  # how much can be read or is unsent; not to block
    *(0x5450, 0x5451),  # whether a new program inherits it
)
PRCTL_OPTIONS = (
    *(1, 2, 3, PR_SET_DUMPABLE, 7, 8, 13, 15, 16),  # signal at the parent's death, capabilities kept, timing, name
    *(21, 23, 27, 29, 30, 36, 37, 38, 39, 40, 41, 42, 47),  # restrictions of itself, adoption of orphans
    *(*range(50, 57), *range(63, 67), *range(69, 74), 0x53564D41),  # vector, pointer and memory features
)
SOCKET_BUFFER_OPTIONS = (7, 8, 32, 33)
"""The sizes of a socket's buffers: memory that is counted by the number of sockets."""
SOCKET_OPTIONS = (*(2, 6, 9, 10, 13, 15, 16, 18, 20, 21, 42, 66, 67), *SOCKET_BUFFER_OPTIONS)

OWNER_AND_TIME_SYSCALLS = ("chown", "fchown", "fchownat", "lchown", "futimesat", "utime", "utimensat", "utimes")
ATTRIBUTE_SYSCALLS = ("fremovexattr", "fsetxattr", "lremovexattr", "lsetxattr", "removexattr", "setxattr")
MODE_ARGUMENTS = {
    "chmod": 1,
    "creat": 1,
    "fchmod": 1,
    "mknod": 1,
    "fchmodat": 2,
    "fchmodat2": 2,
    "mknodat": 2,
    "open": 2,
}
MODE_ARGUMENTS["openat"] = 3
"""Which argument is the mode that a file gets."""
OTHER_USER_BITS = 0o6000
"""Bits of a mode by which a program runs with the rights of its owner or group, whoever starts it."""
LOCAL_SOCKET_SYSCALLS = ("accept", "accept4", "bind", "connect", "listen")


class ArgumentRule(NamedTuple):
    """A condition on an argument of a call; otherwise the call returns an error."""

    argument: int
    one_of: tuple[int, ...] | None = None
    none_of: tuple[int, ...] = ()
    without_bits: int = 0
    mask: int = 0xFFFF_FFFF
    """The bits that are looked at."""
    when: tuple[int, int] | None = None
    """Another argument and its value: elsewhere this rule says nothing."""
    error: int = errno.EPERM


class FilterOptions(NamedTuple):
    """What an isolation level asks of the filter."""

    own_root: bool
    """Whether nothing outside its folder can be seen: elsewhere names of files lead to the user's own."""
    local_sockets: bool = False
    loopback: bool = False
    """Whether it is an agent's, which may make sockets of the internet: its network holds nothing but its own loopback."""
    truncation_guarded: bool = True
    """Whether landlock keeps files that may only be read from being cut short."""


ARGUMENT_RULES: dict[str, tuple[ArgumentRule, ...]] = {
    "clone": (ArgumentRule(0, without_bits=EVERY_NAMESPACE | CLONE_PARENT),),
    "fcntl": (
        ArgumentRule(1, one_of=FCNTL_COMMANDS),
        # no answer needs these, and a stream that has them does not work as before
        ArgumentRule(2, without_bits=O_ASYNC | O_DIRECT | O_NOATIME, when=(1, F_SETFL)),
    ),
    "ioctl": (ArgumentRule(1, one_of=IOCTL_COMMANDS, error=errno.ENOTTY),),
    "prctl": (
        ArgumentRule(0, one_of=PRCTL_OPTIONS, error=errno.EINVAL),
        # nothing can hide from us what it holds open
        ArgumentRule(1, one_of=(1,), when=(0, PR_SET_DUMPABLE)),
    ),
    # 0 is the caller itself
    **dict.fromkeys(
        ("prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"),
        (ArgumentRule(0, one_of=(0,)),),
    ),
    "setpriority": (ArgumentRule(0, one_of=(0,)), ArgumentRule(1, one_of=(0,))),
    "setsockopt": (
        ArgumentRule(2, one_of=SOCKET_OPTIONS, when=(1, SOL_SOCKET), error=errno.ENOPROTOOPT),
        ArgumentRule(2, none_of=SOCKET_BUFFER_OPTIONS, when=(1, SOL_SOCKET), error=0),  # it was a wish anyway
    ),
    "socket": (ArgumentRule(0, one_of=()),),
    "socketpair": (
        ArgumentRule(0, one_of=(AF_UNIX,)),
        # a pair of datagram sockets could be turned to others; a stream cannot
        ArgumentRule(1, one_of=(SOCK_STREAM, SOCK_SEQPACKET), mask=SOCKET_TYPE_MASK),
    ),
}


@cache
def syscalls(rule: Literal["allowed", "refused"]) -> dict[str, SyscallNumbers]:
    """The calls in `syscalls.csv` that an answer may make, or those that it may not.

    Some calls are allowed only with certain arguments, or at certain isolation levels. All other calls are refused.
    """
    with Path(__file__).with_name("syscalls.csv").open(encoding="utf-8", newline="") as table:
        rows = [row for row in csv.DictReader(table) if row["rule"] == rule]
    return {row["name"]: (_number(row["x86_64"]), _number(row["aarch64"])) for row in rows}


def _number(cell: str) -> int | None:
    return int(cell) if cell else None


@cache
def syscall_filter(options: FilterOptions) -> bytes:
    """The filter, ready to be installed."""
    return pack_filter(filter_instructions(options))


def filter_instructions(options: FilterOptions) -> list[BpfInstruction]:
    """The instructions of the filter; a call that is not allowed does not exist, so libraries use an older one."""
    allow, unknown = _returns(SECCOMP_RET_ALLOW), _returns(SECCOMP_RET_ERRNO | errno.ENOSYS)
    allowed = syscalls("allowed")
    connects = options.local_sockets or options.loopback
    blocks = {name: allow for name in allowed if connects or name not in LOCAL_SOCKET_SYSCALLS}
    blocks |= {name: _checked(rules) for name, rules in ARGUMENT_RULES.items()}
    if connects:
        families = (AF_UNIX, AF_INET, AF_INET6) if options.loopback else (AF_UNIX,)
        kinds = (SOCK_STREAM, SOCK_DGRAM) if options.loopback else (SOCK_STREAM,)
        rules = (ArgumentRule(0, one_of=families), ArgumentRule(1, one_of=kinds, mask=SOCKET_TYPE_MASK))
        blocks["socket"] = _checked(rules)
    if options.loopback:
        # an agent may leave files in folders of its user's, where others could start them
        for name, argument in MODE_ARGUMENTS.items():
            blocks[name] = _checked((ArgumentRule(argument, without_bits=OTHER_USER_BITS),))
        del blocks["openat2"]
    if not options.own_root:
        # what landlock does not guard; a copy of a file that cannot keep its times is no reason to fail
        blocks |= dict.fromkeys(OWNER_AND_TIME_SYSCALLS, _returns(SECCOMP_RET_ERRNO))
        blocks |= dict.fromkeys(ATTRIBUTE_SYSCALLS, _returns(SECCOMP_RET_ERRNO | errno.EOPNOTSUPP))
        # a file that travels between two processes is open in neither, and could not be counted
        for name in ("sendmsg", "sendmmsg"):
            del blocks[name]
    if not options.truncation_guarded:
        del blocks["openat2"], blocks["truncate"]
        for name, flags in (("open", 1), ("openat", 2)):
            blocks[name] = _checked((ArgumentRule(flags, none_of=(O_TRUNC,), mask=O_TRUNC | O_ACCMODE),))
    return [*filter_prologue(), *_search(_ranges(_by_number(blocks, allowed), unknown))]


def _returns(action: int) -> tuple[BpfInstruction, ...]:
    return ((BPF_RETURN, 0, 0, action),)


def _checked(rules: Iterable[ArgumentRule]) -> tuple[BpfInstruction, ...]:
    """Instructions that allow a call if its arguments keep the rules."""
    program: list[BpfInstruction] = []
    for rule in rules:
        refuse = (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | rule.error)
        check: list[BpfInstruction] = [(BPF_LOAD, 0, 0, SECCOMP_ARGS_OFFSET + 8 * rule.argument)]
        if rule.mask != ArgumentRule(0).mask:
            check.append((BPF_AND, 0, 0, rule.mask))
        if rule.one_of is not None:
            count = len(rule.one_of)
            check += [(BPF_JUMP_EQUAL, count - place, 0, value) for place, value in enumerate(rule.one_of)]
            check.append(refuse)
        for value in rule.none_of:
            check += [(BPF_JUMP_EQUAL, 0, 1, value), refuse]
        if rule.without_bits:
            check += [(BPF_JUMP_ANY_BIT, 0, 1, rule.without_bits), refuse]
        if rule.when is not None:
            argument, value = rule.when
            program += [
                (BPF_LOAD, 0, 0, SECCOMP_ARGS_OFFSET + 8 * argument),
                (BPF_JUMP_EQUAL, 0, len(check), value),
            ]
        program += check
    return (*program, *_returns(SECCOMP_RET_ALLOW))


def _by_number(
    blocks: Mapping[str, tuple[BpfInstruction, ...]], numbers: Mapping[str, SyscallNumbers]
) -> dict[int, tuple[BpfInstruction, ...]]:
    architecture = ("x86_64", "aarch64").index(CPU_ARCHITECTURE)
    listed = ((numbers[name][architecture], block) for name, block in blocks.items())
    return {number: block for number, block in listed if number is not None}


def _ranges(
    blocks: Mapping[int, tuple[BpfInstruction, ...]], otherwise: tuple[BpfInstruction, ...]
) -> list[tuple[int, tuple[BpfInstruction, ...]]]:
    """Where in the numbers another block begins, and which."""
    found: list[tuple[int, tuple[BpfInstruction, ...]]] = [(0, blocks.get(0, otherwise))]
    for number in range(1, max(blocks) + 2):
        block = blocks.get(number, otherwise)
        if block != found[-1][1]:
            found.append((number, block))
    return found


def _search(ranges: Sequence[tuple[int, tuple[BpfInstruction, ...]]]) -> list[BpfInstruction]:
    """Instructions that find the range of a number by halving."""
    if len(ranges) == 1:
        return list(ranges[0][1])
    middle = len(ranges) // 2
    below, rest = _search(ranges[:middle]), _search(ranges[middle:])
    first = ranges[middle][0]
    if len(below) <= MAX_BPF_JUMP:
        return [(BPF_JUMP_AT_LEAST, len(below), 0, first), *below, *rest]
    return [(BPF_JUMP_AT_LEAST, 0, 1, first), (BPF_JUMP, 0, 0, len(below)), *below, *rest]
