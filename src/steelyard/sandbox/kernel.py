"""What the Linux kernel offers to contain a process, by its system calls.

Only the standard library is used: this module is also loaded by interpreters that know nothing of steelyard.
"""

from __future__ import annotations

import ctypes
import errno
import os
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
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4
AT_FDCWD, AT_RECURSIVE, MNT_DETACH = -100, 0x8000, 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 4, 8, 38, 36
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH = 47, 2, 2

SYSCALL_NUMBERS = {
    # name: (x86_64, aarch64); what has been added since 2019 has one number everywhere
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "capset": (126, 91),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchownat": (260, 54),
    "fcntl": (72, 25),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "seccomp": (317, 277),
    "semget": (64, 190),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "settimeofday": (164, 170),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "tgkill": (234, 131),
    "tkill": (200, 130),
    "truncate": (76, 45),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "utimensat": (280, 88),
}
X86_64_ONLY_SYSCALLS = {"chmod": 90, "chown": 92, "lchown": 94, "utime": 132, "utimes": 235, "futimesat": 261}
"""System calls that only x86_64 has."""
SIGNAL_SYSCALLS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
SELF_RESTRICTION_SYSCALLS = (
    "capset",
    "landlock_add_rule",
    "landlock_create_ruleset",
    "landlock_restrict_self",
    "seccomp",
)
"""Calls that only bind the caller: they stay allowed."""
SELF_ONLY_SYSCALLS = {
    "prlimit64": (0,),
    "sched_setaffinity": (0,),
    "sched_setattr": (0,),
    "sched_setparam": (0,),
    "sched_setscheduler": (0,),
    "setpriority": (0, 1),
}
"""Calls about a process, whose arguments at these places must be 0, which is the caller itself."""
F_SETFL, F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY = 4, 8, 10, 15, 1024, 1026
REFUSED_SYSCALL_COMMANDS = {
    "fcntl": (F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY),
    "ioctl": (0x8901, 0x8902, 0x5412),
}
"""Calls with a command that is refused: who gets the signals of a file, which would be a way to send them, leases, and
what a terminal reads."""
O_ASYNC, O_DIRECT, O_NOATIME = 0x2000, {"x86_64": 0x4000, "aarch64": 0x10000}.get(CPU_ARCHITECTURE, 0), 0x40000
REFUSED_FILE_FLAGS = O_ASYNC | O_DIRECT | O_NOATIME
"""Flags that an open file cannot be given: no answer needs them, and a stream with them would not work as before."""
FILE_METADATA_SYSCALLS = (
    *("fchmodat", "fchmodat2", "fchownat", "lremovexattr", "lsetxattr", "removexattr", "removexattrat"),
    *("setxattr", "setxattrat", "utimensat"),
)
"""Calls that change what is known about a file, of which landlock knows nothing."""
SPECIALLY_FILTERED_SYSCALLS = (
    "clone",
    "clone3",
    "socketpair",
    "truncate",
    *SELF_ONLY_SYSCALLS,
    *REFUSED_SYSCALL_COMMANDS,
    *FILE_METADATA_SYSCALLS,
)
REFUSED_SYSCALLS = tuple(
    name
    for name in SYSCALL_NUMBERS
    if name not in (*SIGNAL_SYSCALLS, *SELF_RESTRICTION_SYSCALLS, *SPECIALLY_FILTERED_SYSCALLS)
)
"""Calls that no answer needs: other processes, namespaces, mounts, keys, clocks, sockets, memory outside the limits."""

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


def change_root(new: str) -> None:
    """Make a folder the root; what was there before is out of reach for good."""
    os.chdir(new)
    syscall("pivot_root", b".", b".")
    _checked(_libc.umount2(b".", MNT_DETACH), "umount")
    os.chdir("/")


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


def landlock(readable: Iterable[str], writable: Iterable[str]) -> None:
    """From now on only these folders can be read or written, and no port, no foreign process can be reached."""
    version = landlock_version()
    every = (1 << LANDLOCK_FS_ACCESS_BITS.get(version, 16)) - 1
    sizes = {1: 8, 2: 8, 3: 8, 4: 16, 5: 16}
    # network: bind and connect by TCP; scope: abstract sockets and signals to processes outside
    rules = struct.pack("QQQ", every, 3 if version >= 4 else 0, 3 if version >= 6 else 0)[: sizes.get(version, 24)]
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


BPF_LOAD, BPF_JUMP_EQUAL, BPF_JUMP_AT_LEAST, BPF_JUMP_ANY_BIT, BPF_AND, BPF_RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
SECCOMP_NR_OFFSET, SECCOMP_ARCH_OFFSET, SECCOMP_ARGS_OFFSET = 0, 4, 16
SOCK_STREAM, SOCK_SEQPACKET = 1, 5
AF_UNIX = 1


def filter_syscalls(*, local_sockets: bool = False) -> None:
    """From now on the system calls that no answer needs are refused; sockets within the file system are on request."""
    new = EVERY_NAMESPACE | CLONE_NEWTIME
    denied = [syscall_number(name) for name in REFUSED_SYSCALLS]
    program = [
        *_filter_prologue(),
        # libraries fall back to the old call, whose flags can be seen
        (BPF_JUMP_EQUAL, 0, 1, syscall_number("clone3")),
        (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.ENOSYS),
        (BPF_JUMP_EQUAL, 0, 4, syscall_number("clone")),
        (BPF_LOAD, 0, 0, SECCOMP_ARGS_OFFSET),
        (BPF_JUMP_ANY_BIT, 0, 1, new & 0xFFFFFFFF & ~CLONE_NEWTIME),
        (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EPERM),
        (BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW),
        # a pair of datagram sockets could be turned to others; a stream cannot
        (BPF_JUMP_EQUAL, 0, 6, syscall_number("socketpair")),
        (BPF_LOAD, 0, 0, SECCOMP_ARGS_OFFSET + 8),
        (BPF_AND, 0, 0, 0xF),
        (BPF_JUMP_EQUAL, 2, 0, SOCK_STREAM),
        (BPF_JUMP_EQUAL, 1, 0, SOCK_SEQPACKET),
        (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EPERM),
        (BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW),
    ]
    if local_sockets:
        program += [
            (BPF_JUMP_EQUAL, 0, 7, syscall_number("socket")),
            (BPF_LOAD, 0, 0, SECCOMP_ARGS_OFFSET),
            (BPF_JUMP_EQUAL, 0, 4, AF_UNIX),
            (BPF_LOAD, 0, 0, SECCOMP_ARGS_OFFSET + 8),
            (BPF_AND, 0, 0, 0xF),
            (BPF_JUMP_EQUAL, 0, 1, SOCK_STREAM),
            (BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW),
            (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EPERM),
        ]
    for name, places in SELF_ONLY_SYSCALLS.items():
        program.append((BPF_JUMP_EQUAL, 0, 3 * len(places) + 1, syscall_number(name)))
        for place in places:
            program += [
                (BPF_LOAD, 0, 0, SECCOMP_ARGS_OFFSET + 8 * place),
                (BPF_JUMP_EQUAL, 1, 0, 0),
                (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EPERM),
            ]
        program.append((BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW))
    for name, commands in REFUSED_SYSCALL_COMMANDS.items():
        program += [
            (BPF_JUMP_EQUAL, 0, 2 * len(commands) + (6 if name == "fcntl" else 2), syscall_number(name)),
            (BPF_LOAD, 0, 0, SECCOMP_ARGS_OFFSET + 8),
        ]
        for command in commands:
            program += [(BPF_JUMP_EQUAL, 0, 1, command), (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EPERM)]
        if name == "fcntl":
            program += [
                (BPF_JUMP_EQUAL, 0, 3, F_SETFL),
                (BPF_LOAD, 0, 0, SECCOMP_ARGS_OFFSET + 16),
                (BPF_JUMP_ANY_BIT, 0, 1, REFUSED_FILE_FLAGS),
                (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EPERM),
            ]
        program.append((BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW))
    for place, refused in enumerate(denied):
        program.append((BPF_JUMP_EQUAL, len(denied) - place, 0, refused))
    program += [(BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW), (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EPERM)]
    _install_filter(program)


def filter_signals() -> None:
    """From now on this process can send signals to itself only: where processes are not hidden, they are spared."""
    program = _filter_prologue()
    for place, name in enumerate(SIGNAL_SYSCALLS):
        program.append((BPF_JUMP_EQUAL, len(SIGNAL_SYSCALLS) - place, 0, syscall_number(name)))
    program += [
        (BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW),
        (BPF_LOAD, 0, 0, SECCOMP_ARGS_OFFSET),
        (BPF_JUMP_EQUAL, 0, 1, os.getpid()),
        (BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW),
        (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EPERM),
    ]
    _install_filter(program)


def filter_metadata_changes() -> None:
    """From now on modes, owners and times of files stay as they are, in every folder.

    Landlock does not guard these. A call that changes them reports success: a copy of a file that keeps its own
    mode is no reason to fail. Cutting a file short is guarded by landlock only since its third version.
    """
    silent = [syscall_number(name) for name in FILE_METADATA_SYSCALLS]
    if CPU_ARCHITECTURE == "x86_64":
        silent += X86_64_ONLY_SYSCALLS.values()
    program = [
        *_filter_prologue(),
        (BPF_JUMP_EQUAL, 0, 1, syscall_number("truncate")),
        (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EPERM),
    ]
    for place, call in enumerate(silent):
        program.append((BPF_JUMP_EQUAL, len(silent) - place, 0, call))
    program += [(BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW), (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO)]
    _install_filter(program)


def _filter_prologue() -> list[tuple[int, int, int, int]]:
    architecture = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[CPU_ARCHITECTURE]
    return [
        (BPF_LOAD, 0, 0, SECCOMP_ARCH_OFFSET),
        (BPF_JUMP_EQUAL, 1, 0, architecture),
        (BPF_RETURN, 0, 0, SECCOMP_RET_KILL_PROCESS),
        (BPF_LOAD, 0, 0, SECCOMP_NR_OFFSET),
        (BPF_JUMP_AT_LEAST, 0, 1, 0x40000000),  # the same calls once more under other numbers
        (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.ENOSYS),
    ]


def _install_filter(program: list[tuple[int, int, int, int]]) -> None:
    packed = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    body = ctypes.create_string_buffer(packed, len(packed))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    syscall("seccomp", 1, 0, struct.pack("HxxxxxxP", len(program), ctypes.addressof(body)))
