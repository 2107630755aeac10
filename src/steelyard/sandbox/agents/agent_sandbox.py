"""The sandbox of agents that declare what they need: what answers get, and a proxy as the way out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from steelyard.protocols import ENDLESS_SECONDS, GuestModules, ResourceLimits
from steelyard.providers.agent.containment import AgentAccess, AgentEnd
from steelyard.sandbox.agents.allowed_hosts import AllowedHosts
from steelyard.sandbox.agents.proxy import AgentProxy
from steelyard.sandbox.private_root import AGENT_ETC_FOLDER, AGENT_ETC_NAMES
from steelyard.sandbox.worker import SANDBOX_HOME, AgentDescriptors, IsolationLevel, SandboxWorker, sandbox_environment

AGENT_WORKSPACE = f"{SANDBOX_HOME}/workspace"
AGENT_LIMITS = ResourceLimits(
    # the caller ends it at its time limit, and a process cannot use more than that on each processor
    cpu_seconds=1e6,
    wall_seconds=ENDLESS_SECONDS / 2,
    memory_bytes=4 << 30,
    file_bytes=512 << 20,
    processes=256,
)
AGENT_PIPE_READ_BYTES = 1 << 20
CERTIFICATE_PATHS = ("/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted", "/etc/ca-certificates")
"""The certificates that the system trusts; none of them is secret."""
LOOPBACK_NAMES = "localhost,127.0.0.1,::1"


class ZygoteAgentSandbox:
    """A new worker for every agent, ended with it."""

    def __init__(self, enclosure: IsolationLevel) -> None:
        self.level: str = enclosure.level
        self._enclosure = enclosure

    @asynccontextmanager
    async def box(self, access: AgentAccess) -> AsyncIterator[ContainedAgent]:
        readable = (*access.readable, *filter(os.path.exists, CERTIFICATE_PATHS))
        hosts = AllowedHosts(access.hosts)
        proxy = AgentProxy(hosts)
        worker = SandboxWorker(self._enclosure, GuestModules(readable=readable, writable=access.writable, agent=True))
        await worker.start()
        try:
            reached = await worker.open_for_agent()
            try:
                environment = _environment(f"http://127.0.0.1:{reached.listening.getsockname()[1]}", hosts)
                async with proxy.serving(reached.listening):
                    yield ContainedAgent(worker, reached, proxy, environment)
            finally:
                for fd in reached[1:]:
                    os.close(fd)
        finally:
            worker.kill()
            for path in access.writable if worker.uid is not None else ():
                about = os.stat(path)  # noqa: PTH116  one call for both numbers
                _hand_over(path, None, worker.uid, (about.st_uid, about.st_gid))


class ContainedAgent:
    """The sandbox of one agent."""

    def __init__(
        self, worker: SandboxWorker, reached: AgentDescriptors, proxy: AgentProxy, environment: Mapping[str, str]
    ) -> None:
        self.folder = Path(f"/proc/self/fd/{reached.home}")
        self._reached = reached
        self._worker = worker
        self._proxy = proxy
        self._environment = environment

    @property
    def refusals(self) -> Sequence[str]:
        return self._proxy.refusals

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes,
        environment: Mapping[str, str],
        time_limit: float,
        hear: Callable[[bytes, bool], bool | None],
    ) -> AgentEnd:
        uid = self._worker.uid
        _write_etc(self.folder / AGENT_ETC_FOLDER, 1 if uid is None or self._worker.has_own_users else uid)
        if uid is not None:
            _hand_over(".", self._reached.home, os.geteuid(), (uid, uid))
        # the programs that a script calls through `env` are usually beside it
        path = f"{Path(argv[0]).parent}:{self._environment['PATH']}"
        given = {**self._environment, "PATH": path, **environment}
        began, out_of_time = time.monotonic(), False

        def stop() -> None:
            nonlocal out_of_time
            out_of_time = True
            self._worker.stop()

        def listen(piece: bytes, is_stdout: bool) -> None:
            if hear(piece, is_stdout):
                self._worker.stop()

        outputs = [_HeardPipe(self._reached.stdout, listen, True), _HeardPipe(self._reached.stderr, listen, False)]
        timer = asyncio.get_running_loop().call_later(time_limit, stop)
        try:
            code, limit = await self._worker.run_agent(argv, stdin, AGENT_LIMITS, given, AGENT_WORKSPACE)
            seconds = time.monotonic() - began
            # nothing of the agent is left, so the other ends are closed
            await asyncio.gather(*(output.end for output in outputs))
        finally:
            timer.cancel()
            for output in outputs:
                output.ignore()
        self.folder.chmod(stat.S_IRWXU)  # it may have locked its home
        return AgentEnd(code, "time limit" if out_of_time else limit, seconds)


class _HeardPipe:
    """A pipe that we listen to until it ends."""

    def __init__(self, reader: int, hear: Callable[[bytes, bool], None], is_stdout: bool) -> None:
        self._reader = reader
        self._hear = hear
        self._is_stdout = is_stdout
        self.end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(reader, self._read)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            if piece := os.read(self._reader, AGENT_PIPE_READ_BYTES):
                self._hear(piece, self._is_stdout)
            else:
                self.ignore()
                self.end.set_result(None)

    def ignore(self) -> None:
        asyncio.get_running_loop().remove_reader(self._reader)


def _environment(proxy: str, hosts: AllowedHosts) -> dict[str, str]:
    """What every agent finds in its environment."""
    own = sandbox_environment(SANDBOX_HOME)
    del own["PYTHONHASHSEED"]
    own |= {"PWD": AGENT_WORKSPACE, "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/sh"}
    # some programs know them in capitals, others only in small letters
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        own |= {name: proxy, name.lower(): proxy}
    own["NODE_USE_ENV_PROXY"] = "1"
    if not hosts.declares_loopback:
        # then 127.0.0.1 is the agent's own, for servers that it starts itself
        own |= dict.fromkeys(("NO_PROXY", "no_proxy"), LOOPBACK_NAMES)
    return own


def _write_etc(folder: Path, uid: int) -> None:
    """What programs look for in /etc: the agent's own name, and that of its loopback."""
    folder.mkdir()
    texts = {
        "group": f"agent:x:{uid}:\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
        "passwd": f"agent:x:{uid}:{uid}:agent:{SANDBOX_HOME}:/bin/sh\n",
    }
    for name in AGENT_ETC_NAMES:
        (folder / name).write_text(texts[name])


def _hand_over(top: str, beside: int | None, owner: int | None, to: tuple[int, int]) -> None:
    """Give what belongs to one user in a folder to another one; links are not followed."""
    with contextlib.suppress(OSError, RecursionError):  # too deep for any program of the user's as well
        for _, folders, files, here in os.fwalk(top, dir_fd=beside):
            for name in (*folders, *files):
                if os.stat(name, dir_fd=here, follow_symlinks=False).st_uid == owner:
                    os.chown(name, *to, dir_fd=here, follow_symlinks=False)
