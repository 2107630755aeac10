"""The isolation levels: which of them hold on this machine, and the strongest of these."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import secrets
import select
import shutil
import socket
import struct
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.errors import InputError, VerifierError, did_you_mean
from steelyard.protocols import GuestModules, ResourceLimits
from steelyard.sandbox.folders import SANDBOX_TMPFS_SIZE
from steelyard.sandbox.private_root import (
    AGENT_ETC_FOLDER,
    AGENT_ETC_NAMES,
    DEVICE_PATHS,
    SHARED_MEMORY_FOLDER,
    SHARED_MEMORY_SIZE,
    SYSTEM_PATHS,
    paths_to_bind,
)
from steelyard.sandbox.process_room import SMALL_OPEN_FILES_LIMIT, process_shortage
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.sandbox.streams import STREAM_NAMES
from steelyard.sandbox.worker import (
    SANDBOX_HOME,
    SANDBOX_STREAMS,
    IsolationLevel,
    reachable_folder,
    sandbox_environment,
)

ISOLATION_CLAIMS = {
    "files": "files outside its folder cannot be read",
    "writing": "files outside its folder cannot be written",
    "network": "no network, not even this machine's own ports",
    "secrets": "our environment, where keys are, cannot be read",
    "processes": "other processes cannot be reached",
    "names": "which files exist elsewhere cannot be seen",
    "limits": "memory, size of a file and number of processes are limited",
}
"""What a probe tries to break, and what is true when it cannot."""
SHELL_VARIABLES = frozenset({"LC_CTYPE", "PWD", "OLDPWD", "SHLVL", "_"})
"""Variables that programs set for themselves."""
MAX_PROBED_VARIABLES = 100
REQUIRED_ISOLATION_CLAIMS = ("files", "writing", "network", "secrets")
"""What must hold before replies are run without the user's consent."""


def _bubblewrap(readable: Sequence[str], guest: GuestModules) -> list[str]:
    """The command that encloses a program by bubblewrap."""
    command = ["bwrap", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL"]
    command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    if os.geteuid() == 0:
        # an answer runs as a user of its own, because the number of root's processes cannot be limited
        for capability in ("SETUID", "SETGID", "CHOWN", "FOWNER", "KILL", "DAC_OVERRIDE"):
            command += ["--cap-add", f"CAP_{capability}"]
    else:
        command += ["--unshare-user", "--uid", "1", "--gid", "1"]
    bound = paths_to_bind(readable)
    for above in sorted(
        {
            str(above)
            for path in (*SYSTEM_PATHS, *bound, *guest.writable, *DEVICE_PATHS)
            for above in Path(path).parents[:-1]
        }
    ):
        command += ["--perms", "0755", "--dir", above]  # it would be as closed as the real one
    for path in SYSTEM_PATHS:
        if os.path.islink(path):  # noqa: PTH114  the words of the zygote, which does the same
            command += ["--symlink", os.readlink(path), path]  # noqa: PTH115
        elif Path(path).exists():
            command += ["--ro-bind", path, path]
    for path in bound:
        command += ["--ro-bind", path, path]
    for path in sorted(guest.writable):
        command += ["--bind", path, path]
    for device in DEVICE_PATHS:
        command += ["--dev-bind", device, device]
    sizes = {
        SANDBOX_HOME: SANDBOX_TMPFS_SIZE,
        SHARED_MEMORY_FOLDER: SHARED_MEMORY_SIZE,
        SANDBOX_STREAMS: SANDBOX_TMPFS_SIZE,
    }
    for folder, size in sizes.items():
        command += ["--size", str(int(size[:-1]) << 20), "--tmpfs", folder]
    for name in STREAM_NAMES:
        command += ["--symlink", f"{SANDBOX_STREAMS}/{name}", f"/dev/{name}"]
    if not any(Path(path).is_relative_to("/tmp") for path in (*readable, *guest.writable)):  # noqa: S108  the answer's own
        command += ["--symlink", SANDBOX_HOME, "/tmp"]  # noqa: S108
    for name in AGENT_ETC_NAMES if guest.agent else ():
        if {"/etc", f"/etc/{name}"}.isdisjoint((*bound, *guest.writable)):
            command += ["--symlink", f"{SANDBOX_HOME}/{AGENT_ETC_FOLDER}/{name}", f"/etc/{name}"]
    return [*command, "--chdir", SANDBOX_HOME, "--"]


def _seatbelt(readable: Sequence[str], guest: GuestModules) -> list[str]:  # noqa: ARG001  it contains no agents
    """The command that encloses a program by the sandbox of macOS; its rules name what may be touched."""
    folders = ("/usr", "/bin", "/System", "/Library", "/private/var/db/dyld", "/dev", *readable)
    listed = " ".join(f'(subpath "{folder}")' for folder in folders)
    temporary = os.path.realpath(tempfile.gettempdir())
    rules = (
        "(version 1)(deny default)(allow process-fork)(allow process-exec)(allow sysctl-read)(allow mach-lookup)"
        f'(allow signal (target self))(allow file-read* {listed} (literal "/"))'
        f'(allow file-read* file-write* (regex #"^{temporary}/steelyard-") (literal "/dev/null"))'
        "(allow file-read-metadata)"
    )
    return ["/usr/bin/sandbox-exec", "-p", rules]


ISOLATION_LEVELS = (
    IsolationLevel("full", namespaces=True, landlock=True, filter=True, own_root=True),
    IsolationLevel("bubblewrap", landlock=True, filter=True, own_root=True, wrapper=_bubblewrap),
    IsolationLevel("landlock", landlock=True, filter=True),
    IsolationLevel("seatbelt", wrapper=_seatbelt),
    IsolationLevel("process", filter=sys.platform == "linux"),
)
"""From the strongest to the weakest."""
ISOLATION_LEVEL_NAMES: tuple[str, ...] = tuple(enclosure.level for enclosure in ISOLATION_LEVELS)


class IsolationProbeResult(NamedTuple):
    """What was found when a level was tried."""

    enclosure: IsolationLevel
    held: dict[str, bool]
    """For each claim whether it held; empty when this machine does not support the level."""
    problem: str = ""
    """Why this machine does not support the level."""
    lacks_program: bool = False
    """Whether it needs a program that is not installed."""
    reached: Mapping[str, Sequence[str]] = {}
    """For each claim the attempts that broke it."""

    @property
    def holds(self) -> bool:
        """Whether replies may run here without the user's consent."""
        return bool(self.held) and all(self.held[claim] for claim in REQUIRED_ISOLATION_CLAIMS)


@cache
def probe_isolation(level: str) -> IsolationProbeResult:
    """Try a level out: start it, and let a probe attempt a few escapes."""
    enclosure = ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index(level)]
    if level == "bubblewrap" and shutil.which("bwrap") is None:
        return IsolationProbeResult(enclosure, {}, "bwrap is not installed", lacks_program=True)
    if level == "seatbelt" and sys.platform != "darwin":
        return IsolationProbeResult(enclosure, {}, "only on macOS")
    if (enclosure.namespaces or enclosure.landlock) and sys.platform != "linux":
        return IsolationProbeResult(enclosure, {}, "only on Linux")
    # a loop of its own, so that a caller's own loop does not matter
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(_probe_in_sandbox(enclosure))).result()


def strongest_isolation(required: str = "", *, allow_weak: bool = False) -> IsolationLevel:
    """The strongest level that holds here; raises InputError when that is weaker than what is asked for."""
    if required and required not in ISOLATION_LEVEL_NAMES:
        raise InputError(
            f'--require-isolation: unknown level "{required}" ({did_you_mean(required, ISOLATION_LEVEL_NAMES)})'
        )
    if shortage := process_shortage():
        raise InputError(shortage)
    tried = []
    for level in (
        ISOLATION_LEVEL_NAMES[: ISOLATION_LEVEL_NAMES.index(required) + 1] if required else ISOLATION_LEVEL_NAMES
    ):
        found = probe_isolation(level)
        if found.holds or (found.held and (allow_weak or required == level)):
            return found.enclosure
        tried.append(f"{level}: {found.problem or 'does not hold'}")
    if required:
        raise InputError(
            f"this machine does not support isolation level {required} ({'; '.join(tried)}); `steelyard doctor` shows why"
        )
    if 0 <= (files := resource.getrlimit(resource.RLIMIT_NOFILE)[0]) < SMALL_OPEN_FILES_LIMIT:
        # each level needs some for its pipes; the same machine supports it where there are more
        raise OSError(errno.EMFILE, f"{files} open files are too few")
    raise InputError(
        "no sandbox on this machine keeps generated code away from network, secrets and files; see steelyard doctor for "
        "what is missing, or run code that you trust with --allow-weak-sandbox"
    )


async def _probe_in_sandbox(
    enclosure: IsolationLevel, limits: ResourceLimits = ResourceLimits()
) -> IsolationProbeResult:
    """Let a probe try a level; it compares what it gets with the default limits, whatever `limits` are."""
    probe = Path(__file__).with_name("probe.py").read_text("utf-8")
    sandbox = ZygoteSandbox(enclosure)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=reachable_folder())))
        datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("127.0.0.1", 0))
        targets = _probe_targets(folder, stack) | {"datagrams": datagrams.getsockname()[1]}
        before = _metadata(folder)
        ours, theirs = socket.socketpair()
        ours.sendall(msgspec.json.encode(targets))
        try:
            async with sandbox.host(GuestModules(modules=(("probe", probe),))) as host:
                outcome = await host.call([theirs], limits)
            after, has_come = _metadata(folder), bool(select.select([datagrams], [], [], 0)[0])
            ours.setblocking(False)
            reply = ours.recv(65536)
        except BlockingIOError:
            reply = b""
        except VerifierError as error:
            return IsolationProbeResult(enclosure, {}, " ".join(str(error).split()))
        finally:
            ours.close()
            await sandbox.close()
    if len(reply) < 4 or len(reply) != 4 + struct.unpack("I", reply[:4])[0]:
        printed = outcome.stdout.decode("utf-8", "replace").strip().splitlines()
        return IsolationProbeResult(
            enclosure, {}, f"nothing works in it: {printed[-1] if printed else f'exit code {outcome.exit_code}'}"
        )
    reached = msgspec.json.decode(reply[4:], type=dict[str, list[str]])
    reached["writing"] += [f"change {what}" for what in before if before[what] != after[what]]
    reached["network"] += ["send a datagram"] * has_come
    return IsolationProbeResult(enclosure, {claim: not reached[claim] for claim in ISOLATION_CLAIMS}, reached=reached)


def _probe_targets(folder: Path, stack: ExitStack) -> dict[str, Any]:
    """What a probe tries to reach, open to every user."""
    folder.chmod(0o777)
    for name in ("secret", "writable", "movable", "removable"):
        (folder / name).write_text("x")
        (folder / name).chmod(0o666)
    for path in (folder, folder / "writable"):
        with suppress(OSError, AttributeError):  # not on every file system
            os.setxattr(path, "user.kept", b"-")
    listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    port6 = 0
    with suppress(OSError):  # a machine may lack it
        port6 = stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6)).getsockname()[1]
    local = stack.enter_context(socket.socket(socket.AF_UNIX))
    local.bind(str(folder / "line"))
    (folder / "line").chmod(0o666)
    local.listen()
    abstract = f"steelyard-probe-{secrets.token_hex(8)}" if sys.platform == "linux" else ""
    if abstract:
        unnamed = stack.enter_context(socket.socket(socket.AF_UNIX))
        unnamed.bind(f"\0{abstract}")
        unnamed.listen()
    promised = ResourceLimits()
    return {
        "secrets": [str(folder / "secret"), "/etc/passwd"],
        "folder": str(folder),
        **{name: str(folder / name) for name in ("writable", "movable", "removable")},
        "port": listening.getsockname()[1],
        "port6": port6,
        "socket": str(folder / "line"),
        "abstract": abstract,
        "pid": os.getpid(),
        # their names alone: the probe looks for them in its own environment
        "variables": sorted(set(os.environ) - set(sandbox_environment("")) - SHELL_VARIABLES)[:MAX_PROBED_VARIABLES],
        "memory_bytes": promised.memory_bytes,
        "file_bytes": promised.file_bytes,
        "processes": promised.processes,
    }


def _metadata(folder: Path) -> dict[str, list[object]]:
    """What is known about a folder and a file in it, and would differ after any change."""
    paths = (folder, folder / "writable")
    about = [path.stat() for path in paths]
    return {
        "a mode": [each.st_mode for each in about],
        "an owner": [(each.st_uid, each.st_gid) for each in about],
        "times": [each.st_mtime_ns for each in about],
        "attributes": [os.listxattr(path) if hasattr(os, "listxattr") else [] for path in paths],
        "anything else about a file": [each.st_ctime_ns for each in about],
        "content": [each.st_size for each in about[1:]],
    }
