"""What the Linux kernel offers to contain a process, by its system calls.

Only the standard library is used: this module is also loaded by interpreters that know nothing of steelyard.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

RUNS_ON_LINUX = sys.platform == "linux"
CPU_ARCHITECTURE = {"arm64": "aarch64", "amd64": "x86_64"}.get(os.uname().machine.lower(), os.uname().machine)

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWTIME = 0x10000000, 0x20000000, 0x40000000, 0x80
EVERY_NAMESPACE = (
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP
)

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
MS_NOEXEC = 8
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4
AT_FDCWD, AT_RECURSIVE, MNT_DETACH = -100, 0x8000, 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 4, 8, 38, 36
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 47, 2, 1, 2
SIOCSIFFLAGS, IFF_UP = 0x8914, 1

SYSCALL_NUMBERS = {
    # name: (x86_64, aarch64); what has been added since 2019 has one number everywhere
    "capset": (126, 91),
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "kill": (62, 129),
    "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "mount_setattr": (442, 442),
    "pivot_root": (155, 41),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "seccomp": (317, 277),
    "tgkill": (234, 131),
    "tkill": (200, 130),
}
"""The system calls that we make or look for ourselves."""
SIGNAL_SYSCALLS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")

_libc = ctypes.CDLL(None, use_errno=True)


def syscall(name: str, *arguments: int | bytes | None) -> int:
    """Make a system call; raises OSError when the kernel refuses it."""
    if not RUNS_ON_LINUX or CPU_ARCHITECTURE not in ("x86_64", "aarch64"):
        raise OSError(errno.ENOSYS, f"{name} is not known on {sys.platform} {CPU_ARCHITECTURE}")
    plain = [ctypes.c_long(given) if isinstance(given, int) else given for given in arguments]
    return _checked(_libc.syscall(ctypes.c_long(syscall_number(name)), *plain), name)


def syscall_number(name: str) -> int:
    """The number of a system call on this machine."""
    return SYSCALL_NUMBERS[name][CPU_ARCHITECTURE == "aarch64"]


def _checked(returned: int, name: str) -> int:
    if returned < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return returned


def prctl(option: int, *arguments: int) -> None:
    """Set something about this process."""
    padded = [ctypes.c_ulong(given) for given in (*arguments, 0, 0, 0, 0)[:4]]
    _checked(_libc.prctl(option, *padded), "prctl")


def unshare(namespaces: int) -> None:
    """Leave the namespaces that are shared with everyone else."""
    _checked(_libc.unshare(namespaces), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount a file system, or a part of one a second time."""
    text = [None if given is None else given.encode() for given in (source, target, kind)]
    options = None if data is None else data.encode()
    _checked(_libc.mount(*text, ctypes.c_ulong(flags), options), f"mount {target}")


def make_read_only(path: str) -> None:
    """Nothing below this mount can be written, no program in it gains rights, no device in it works."""
    attributes = struct.pack("QQQQ", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, 0, 0)
    syscall("mount_setattr", AT_FDCWD, path.encode(), AT_RECURSIVE, attributes, len(attributes))


def make_harmless(path: str) -> None:
    """No program below this mount gains rights, and no device in it works."""
    attributes = struct.pack("QQQQ", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, 0, 0)
    syscall("mount_setattr", AT_FDCWD, path.encode(), AT_RECURSIVE, attributes, len(attributes))


def start_loopback() -> None:
    """Let the processes of a new network namespace reach each other by 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        fcntl.ioctl(asking, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))


def change_root(new: str) -> None:
    """Make a folder the root; the old root is permanently out of reach."""
    os.chdir(new)
    syscall("pivot_root", b".", b".")
    _checked(_libc.umount2(b".", MNT_DETACH), "umount")
    os.chdir("/")


def has_capability(capability: int) -> bool:
    """Whether we have a right of an administrator."""
    with open("/proc/self/status", "rb") as status:
        effective = next(line for line in status if line.startswith(b"CapEff:"))
    return bool(int(effective.split()[1], 16) >> capability & 1)


def keep_capabilities(*kept: int) -> None:
    """Give up every right of an administrator, but for these."""
    mask = sum(1 << capability for capability in kept)
    header, data = struct.pack("II", 0x20080522, 0), struct.pack("IIIIII", mask, mask, mask, 0, 0, 0)
    syscall("capset", header, data)
    for capability in kept:
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability)


LANDLOCK_READ_ACCESS = 1 << 0 | 1 << 2 | 1 << 3  # execute, read file, read folder
LANDLOCK_FS_ACCESS_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many kinds of access to files each version of landlock knows."""


def landlock_version() -> int:
    """The version of landlock here; 0 when there is none."""
    try:
        return syscall("landlock_create_ruleset", None, 0, 1)
    except OSError:
        return 0


def landlock(readable: Iterable[str], writable: Iterable[str], *, ports: bool = False) -> None:
    """From now on only these folders can be read or written, and no port (unless `ports`), no foreign process be reached."""
    version = landlock_version()
    every = (1 << LANDLOCK_FS_ACCESS_BITS.get(version, 16)) - 1
    sizes = {1: 8, 2: 8, 3: 8, 4: 16, 5: 16}
    # network: bind and connect by TCP; scope: abstract sockets and signals to processes outside
    network = 3 if version >= 4 and not ports else 0
    rules = struct.pack("QQQ", every, network, 3 if version >= 6 else 0)[: sizes.get(version, 24)]
    ruleset = syscall("landlock_create_ruleset", rules, len(rules), 0)
    for paths, wanted in ((readable, LANDLOCK_READ_ACCESS), (writable, every)):
        for path in paths:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            # what only makes sense for folders is refused for files: execute, write, read, truncate, ioctl remain
            allowed = wanted if os.path.isdir(path) else wanted & (1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15) & every
            syscall("landlock_add_rule", ruleset, 1, struct.pack("=Qi", allowed, opened), 0)
            os.close(opened)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    syscall("landlock_restrict_self", ruleset, 0)
    os.close(ruleset)


BpfInstruction = tuple[int, int, int, int]
"""What to do, how far to jump if so and if not, and a number."""
BPF_LOAD, BPF_JUMP, BPF_JUMP_EQUAL, BPF_JUMP_AT_LEAST, BPF_JUMP_ANY_BIT = 0x20, 0x05, 0x15, 0x35, 0x45
BPF_AND, BPF_RETURN = 0x54, 0x06
SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
SECCOMP_RET_USER_NOTIF = 0x7FC00000
SECCOMP_NR_OFFSET, SECCOMP_ARCH_OFFSET, SECCOMP_ARGS_OFFSET = 0, 4, 16
SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER = 1, 1 << 3


def filter_signals() -> None:
    """From now on this process can send signals to itself only: where processes are not hidden, they are spared."""
    program = filter_prologue()
    for place, name in enumerate(SIGNAL_SYSCALLS):
        program.append((BPF_JUMP_EQUAL, len(SIGNAL_SYSCALLS) - place, 0, syscall_number(name)))
    program += [
        (BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW),
        (BPF_LOAD, 0, 0, SECCOMP_ARGS_OFFSET),
        (BPF_JUMP_EQUAL, 0, 1, os.getpid()),
        (BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW),
        (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EPERM),
    ]
    install_filter(pack_filter(program))


def filter_prologue() -> list[BpfInstruction]:
    """Instructions that end a process which calls in the manner of another architecture, and load the call's number."""
    architecture = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[CPU_ARCHITECTURE]
    return [
        (BPF_LOAD, 0, 0, SECCOMP_ARCH_OFFSET),
        (BPF_JUMP_EQUAL, 1, 0, architecture),
        (BPF_RETURN, 0, 0, SECCOMP_RET_KILL_PROCESS),
        (BPF_LOAD, 0, 0, SECCOMP_NR_OFFSET),
    ]


def pack_filter(program: Iterable[BpfInstruction]) -> bytes:
    """A filter as the kernel reads it."""
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)


def install_filter(packed: bytes, *, listener: bool = False) -> int:
    """Install a filter for our system calls; returns the descriptor for its requests, if it has one."""
    body = ctypes.create_string_buffer(packed, len(packed))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    flags = SECCOMP_FILTER_FLAG_NEW_LISTENER if listener else 0
    program = struct.pack("HxxxxxxP", len(packed) // struct.calcsize("HBBI"), ctypes.addressof(body))
    return syscall("seccomp", SECCOMP_SET_MODE_FILTER, flags, program)
