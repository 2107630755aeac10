"""The isolation levels: which of them hold on this machine, and the strongest of these."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import shutil
import socket
import struct
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
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
from steelyard.sandbox.worker import SANDBOX_HOME, SANDBOX_STREAMS, IsolationLevel, reachable_folder

ISOLATION_CLAIMS = {
    "files": "files outside its folder cannot be read",
    "writing": "files outside its folder cannot be written",
    "network": "no network, not even this machine's own ports",
    "secrets": "our environment, where keys are, cannot be read",
    "processes": "other processes cannot be reached",
}
"""What a probe tries to break, and what is true when it cannot."""
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


async def _probe_in_sandbox(enclosure: IsolationLevel) -> IsolationProbeResult:
    probe = Path(__file__).with_name("probe.py").read_text("utf-8")
    sandbox = ZygoteSandbox(enclosure)
    with (
        tempfile.TemporaryDirectory(dir=reachable_folder()) as folder,
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.socket(socket.AF_UNIX) as local,
    ):
        targets = _probe_targets(Path(folder), listening, local)
        before = _metadata(Path(folder))
        ours, theirs = socket.socketpair()
        ours.sendall(msgspec.json.encode(targets))
        try:
            async with sandbox.host(GuestModules(modules=(("probe", probe),))) as host:
                outcome = await host.call([theirs], ResourceLimits())
            changed = _metadata(Path(folder)) != before
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
    reached = msgspec.json.decode(reply[4:], type=dict[str, bool])
    reached["writing"] = reached["writing"] or changed
    return IsolationProbeResult(enclosure, {claim: not reached[claim] for claim in ISOLATION_CLAIMS})


def _probe_targets(folder: Path, listening: socket.socket, local: socket.socket) -> dict[str, Any]:
    """What a probe tries to reach, open to every user."""
    folder.chmod(0o777)
    secret, writable = folder / "secret", folder / "writable"
    for file in (secret, writable):
        file.write_text("x")
        file.chmod(0o666)
    local.bind(str(folder / "line"))
    (folder / "line").chmod(0o666)
    local.listen()
    return {
        "secrets": [str(secret), "/etc/passwd"],
        "writable": str(writable),
        "outside": str(folder / "written"),
        "port": listening.getsockname()[1],
        "socket": str(folder / "line"),
        "pid": os.getpid(),
    }


def _metadata(folder: Path) -> list[object]:
    """What is known about a folder and the files in it, and would differ after any change."""
    found: list[object] = []
    for path in (folder, *sorted(folder.iterdir())):
        about = path.stat()
        attributes = os.listxattr(path) if hasattr(os, "listxattr") else []
        found.append((path.name, about.st_mode, about.st_uid, about.st_mtime_ns, about.st_size, attributes))
    return found
