"""Answers that go for what a level promises: files outside, quotas, descriptors that outlive an attempt, calls by number."""

from __future__ import annotations

from attacks.hostile import ATTACKS, INSIDE, WRONG, Attack
from attacks.hostile import ESCAPE as ESCAPE_TO_STDOUT
from attacks.value_attacks import VALUE_ATTACKS

# what a program prints is its answer; its other stream is kept as well
ESCAPE = ESCAPE_TO_STDOUT.replace("os.write(1,", "os.write(2,")

CHANGES = (
    ESCAPE
    + """
import contextlib, ctypes, fcntl, time
libc = ctypes.CDLL(None, use_errno=True)
def known(path):
    about = os.lstat(path)
    with contextlib.suppress(OSError):
        return about.st_mode, about.st_uid, about.st_mtime_ns, about.st_nlink, about.st_size, os.listxattr(path)
    return about.st_mode, about.st_uid, about.st_mtime_ns, about.st_nlink, about.st_size
def call(number, *given):
    libc.syscall(ctypes.c_long(number), *[ctypes.c_long(one) if isinstance(one, int) else one for one in given])
def by_descriptor(path, change, flags=os.O_RDONLY):
    fd = os.open(path, flags)
    try: change(fd)
    finally: os.close(fd)
def swapped(path):
    name = "swap%d" % time.monotonic_ns()
    open(name, "w").close()
    child = os.fork()
    if child == 0:
        for _ in range(200):
            os.unlink(name)
            os.symlink(path, name)
            os.unlink(name)
            open(name, "w").close()
        os._exit(0)
    for _ in range(200):
        with contextlib.suppress(OSError): os.chmod(name, 0o711)
    os.waitpid(child, 0)
def linked(path):
    name = "link%d" % time.monotonic_ns()
    os.symlink(os.path.dirname(path), name)
    os.chmod(name + "/" + os.path.basename(path), 0o711)
def from_there(path):
    folder = os.open(os.path.dirname(path), os.O_PATH)
    os.chmod(os.path.basename(path), 0o711, dir_fd=folder)
times, text = (ctypes.c_long * 4)(1, 0, 1, 0), ctypes.create_string_buffer(b"x", 64)
ways = {
    "chmod": lambda path: os.chmod(path, 0o711),
    "chmod from far away": lambda path: os.chmod("../" * 20 + path.lstrip("/"), 0o711),
    "chmod from there": from_there,
    "chmod through a link": linked,
    "chmod while it is swapped": swapped,
    "fchmod": lambda path: by_descriptor(path, lambda fd: os.fchmod(fd, 0o711)),
    "fchmod without rights": lambda path: by_descriptor(path, lambda fd: os.fchmod(fd, 0o711), os.O_PATH),
    "fchmodat2": lambda path: call(@FCHMODAT2@, -100, os.fsencode(path), 0o711, 0),
    "chown": lambda path: os.chown(path, 12345, -1),
    "utime": lambda path: os.utime(path, (1, 1)),
    "utimensat": lambda path: call(@UTIMENSAT@, -100, os.fsencode(path), times, 0),
    "futimens": lambda path: by_descriptor(path, lambda fd: os.utime(fd, (1, 1))),
    "setxattr": lambda path: os.setxattr(path, "user.left", b"here"),
    "fsetxattr": lambda path: by_descriptor(path, lambda fd: os.setxattr(fd, "user.left", b"here")),
    "setxattrat": lambda path: call(@SETXATTRAT@, -100, os.fsencode(path), 0, b"user.left", text, 16),
    "file_setattr": lambda path: call(@FILE_SETATTR@, -100, os.fsencode(path), text, 24, 0),
    "chattr": lambda path: by_descriptor(path, lambda fd: fcntl.ioctl(fd, 0x40086602, b"\\x40\\0\\0\\0\\0\\0\\0\\0")),
    "fssetxattr": lambda path: by_descriptor(path, lambda fd: fcntl.ioctl(fd, 0x401C5820, b"\\x80" + bytes(27))),
    "open and truncate": lambda path: by_descriptor(path, lambda fd: None, os.O_RDONLY | os.O_TRUNC),
}
for path in ("@BAIT@/marked", "@BAIT@/marks"):
    for what, way in ways.items():
        try: before = known(path)
        except OSError: continue
        with contextlib.suppress(Exception): way(path)
        if known(path) != before: escaped(what, path)
watching = libc.inotify_init1(os.O_NONBLOCK) if hasattr(libc, "inotify_init1") else -1
if watching >= 0 and libc.inotify_add_watch(watching, b"@BAIT@", 0xFFF) >= 0: escaped("watches", "@BAIT@")
if libc.fanotify_init(0, 0) >= 0: escaped("watches everything")
os.write(2, b"TRIED")
"""
)
"""Every way to change what is known about a file outside, or to learn what happens there."""

HIDDEN_FILES = """
import mmap, os, time
os.mkdir("locked", 0o300)
held = []
room = b"x" * (1 << 20)
def written(name):
    file = open(name, "w+b", buffering=0)
    for _ in range(30): file.write(room)
    return file
try:
    for number in range(9):
        held.append(written("open%d" % number))
        os.unlink("open%d" % number)
        with written("mapped%d" % number) as file:
            held.append(mmap.mmap(file.fileno(), 4096))
        os.unlink("mapped%d" % number)
        written("locked/%d" % number).close()
    time.sleep(1)
    os.write(2, b"ESCAPED: 810 MiB are on a disk of 512")
except OSError:
    pass
"""
SOCKET_BUFFERS = """
import os, socket, time
held = []
for _ in range(16):
    if os.fork() == 0:
        for _ in range(110):
            pair = socket.socketpair()
            held.append(pair)
            for end in pair:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
                end.setblocking(False)
                try:
                    while True: end.send(bytes(1 << 16))
                except OSError: pass
        while True: time.sleep(1)
while True: time.sleep(1)
"""
PINNED_PAGES = (
    ESCAPE
    + """
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *given):
    return libc.syscall(ctypes.c_long(number), *[ctypes.c_long(one) if isinstance(one, int) else one for one in given])
# a page that a pipe refers to is in no process any more, and a pipe can refer to large ones
pages = mmap.mmap(-1, 4 << 20)
if hasattr(mmap, "MADV_HUGEPAGE"): pages.madvise(mmap.MADV_HUGEPAGE)
pages.write(bytes(4 << 20))
(reader, writer), other = os.pipe(), os.pipe()
vector = (ctypes.c_void_p * 2)(ctypes.addressof(ctypes.c_char.from_buffer(pages)), 1)
open("page", "wb").write(bytes(1 << 16))
page = os.open("page", os.O_RDONLY)
ways = {
    "vmsplice": lambda: call(@VMSPLICE@, writer, ctypes.byref(vector), 1, 0),
    "splice": lambda: call(@SPLICE@, page, None, writer, None, 1, 0),
    "tee": lambda: os.write(writer, b"x") and call(@TEE@, reader, other[1], 1, 0),
    # memory that belongs to no process, or outlives it
    "memfd_create": lambda: call(@MEMFD_CREATE@, b"x", 0),
    "memfd_secret": lambda: call(@MEMFD_SECRET@, 0),
    "shmget": lambda: call(@SHMGET@, 0, 1 << 20, 0o1700),
    "msgget": lambda: call(@MSGGET@, 0, 0o1700),
    "semget": lambda: call(@SEMGET@, 0, 1, 0o1700),
    "mq_open": lambda: call(@MQ_OPEN@, b"x", os.O_CREAT | os.O_RDWR, 0o700, None),
    "io_uring_setup": lambda: call(@IO_URING_SETUP@, 8, ctypes.create_string_buffer(120)),
}
for name, way in ways.items():
    if way() >= 0: escaped(name)
os.write(2, b"TRIED")
"""
)
WAITING_CONNECTIONS = """
import socket, time
for number in range(100):
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(str(number))
    except OSError:
        break
    listening.listen(4096)
    globals()[f"listening{number}"] = listening
    for _ in range(100):
        with socket.socket(socket.AF_UNIX) as client:
            client.setblocking(False)
            client.connect(str(number))
            try:
                while True:
                    client.send(bytes(65536))
            except BlockingIOError:
                pass
time.sleep(60)
"""
DESCRIPTORS = """
import contextlib, fcntl, os, signal, struct
def attempt(do, *given):
    with contextlib.suppress(Exception):
        do(*given)
for fd in (*range(8), os.open(".", os.O_RDONLY)):
    for flags in (os.O_DIRECT, os.O_NONBLOCK, os.O_ASYNC, os.O_NOATIME, os.O_APPEND):
        attempt(fcntl.fcntl, fd, fcntl.F_SETFL, flags)
    for command in (fcntl.F_SETLEASE, fcntl.F_NOTIFY, fcntl.F_SETOWN, fcntl.F_SETSIG, 1033, 1036, 1031):
        for value in (0, 1, 2, 15, os.getppid(), 1 << 20):
            attempt(fcntl.fcntl, fd, command, value)
    for command in (0x5421, 0x5452, 0x8901, 0x8902, 0x40086602, 0x5412):
        attempt(fcntl.ioctl, fd, command, struct.pack("q", 1))
    attempt(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    attempt(fcntl.lockf, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    attempt(os.fchmod, fd, 0)
    attempt(os.ftruncate, fd, 0)
for number in range(1, 65):
    attempt(signal.signal, number, signal.SIG_IGN)
attempt(signal.pthread_sigmask, signal.SIG_BLOCK, signal.valid_signals())
attempt(os.umask, 0o777)
attempt(os.chroot, ".")
attempt(os.setpgid, 0, 0)
attempt(os.sched_setaffinity, 0, [0])
os.write(2, b"TRIED")
"""
BY_NUMBER = (
    ESCAPE
    + """
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
# uretprobe and uprobe never come to a filter: the kernel ends whoever calls them
allowed = {*@ALLOWED@, *((335, 336) if os.uname().machine == "x86_64" else ())}
for number in [*range(600), *range(0x40000000, 0x40000000 + 600), (1 << 32) + 41, -1]:
    if number not in allowed and number & 0xFFFFFFFF not in allowed:
        for given in (-1, 0):
            returned = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(given)] * 6)
            if returned != -1 or ctypes.get_errno() != errno.ENOSYS: escaped("call", number, ctypes.get_errno())
for family in [*range(2, 50), 1 << 16]:
    for kind in (1, 2, 3, 5, 1 | 0o4000):
        pair = (ctypes.c_int * 2)()
        if libc.socketpair(family, kind, 0, pair) == 0 or ctypes.get_errno() != errno.EPERM: escaped("socketpair", family, kind)
os.write(2, b"TRIED")
"""
)

LEVEL_ATTACKS = (
    *(
        Attack(row, name, code + WRONG, case=case, tried=case not in INSIDE, once=case in INSIDE)
        for case in ("asserts", "program", *INSIDE)
        for row, name, code in (
            (36, "flags, locks and signals", DESCRIPTORS),
            (41, "files outside are changed", CHANGES),
            (46, "calls by number", BY_NUMBER),
        )
    ),
    Attack(42, "files without a name and folders without rights", HIDDEN_FILES + WRONG, ("disk limit", "wrong answer", "cpu limit")),
    # where only the verdict is protected, an ordinary user's processes do not show their sockets
    Attack(42, "buffers of sockets", SOCKET_BUFFERS, ("memory limit", "time limit"), limits="tight"),
    Attack(42, "connections that nobody accepts", WAITING_CONNECTIONS, ("memory limit", "time limit", "exception"), limits="tight"),
    Attack(42, "pages in no process", PINNED_PAGES + WRONG, tried=True),
)  # fmt: skip
EVERY_ATTACK = (*ATTACKS, *LEVEL_ATTACKS, *VALUE_ATTACKS)
