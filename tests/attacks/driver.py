"""Verifies one attack after the other at one level, each followed by an honest answer, and tells what became of them.

Run as a program of its own, so that it can be run as another user:  python driver.py LEVEL all|everywhere|once|some [NAME...]
"""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import steelyard
from attacks.hostile import CASES, HONEST, Attack
from attacks.level_attacks import EVERY_ATTACK
from steelyard.analysis.scoring import is_correct
from steelyard.protocols import GuestHost, GuestModules, ProcessResult, ResourceLimits, Workspace
from steelyard.records import Answer, Finding
from steelyard.sandbox import kernel
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, ISOLATION_LEVELS, probe_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.sandbox.syscall_filter import syscalls
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.verifier import PythonVerifier

ARCHITECTURE = ("x86_64", "aarch64").index(kernel.CPU_ARCHITECTURE)
LANES = 5
"""How many sandboxes are attacked at the same time: most attacks wait."""
HASTY: dict[str, dict[str, Any]] = {
    "": {},
    "brief": {"wall_seconds": 0.6},
    "hasty": {"wall_seconds": 1.2},
    "tight": {"wall_seconds": 6, "memory_bytes": 256 << 20},
}


class Hasty:
    """The same sandbox with less patience, or less room."""

    def __init__(self, sandbox: ZygoteSandbox, limits: Mapping[str, Any]) -> None:
        self.level = sandbox.level
        self._sandbox = sandbox
        self._limits = limits

    @asynccontextmanager
    async def workspace(
        self,
        files: Mapping[str, str | bytes],
        *,
        readable: Sequence[str] = (),
        local_sockets: bool = False,
        descriptor_paths: bool = False,
    ) -> AsyncIterator[Workspace]:
        async with self._sandbox.workspace(
            files, readable=readable, local_sockets=local_sockets, descriptor_paths=descriptor_paths
        ) as place:
            yield place

    @asynccontextmanager
    async def host(self, guest: GuestModules) -> AsyncIterator[GuestHost]:
        async with self._sandbox.host(guest) as host:
            yield Impatient(host, self._limits)


class Impatient:
    """A guest with less patience, or less room; one that serves many answers is left alone."""

    def __init__(self, host: GuestHost, limits: Mapping[str, Any]) -> None:
        self._host = host
        self._limits = limits

    async def call(
        self,
        sockets: Sequence[socket.socket],
        limits: ResourceLimits,
        *,
        stdin: bytes | None = None,
        beside: GuestHost | None = None,
    ) -> ProcessResult:
        lasting = limits.wall_seconds > 1e6
        limits = limits if lasting else limits._replace(**self._limits)
        return await self._host.call(sockets, limits, stdin=stdin, beside=beside)

    @property
    def pids(self) -> Sequence[int]:
        return self._host.pids

    def stop(self) -> None:
        self._host.stop()


class Scene:
    """What lies around a sandbox, for attacks to reach for, and what they leave."""

    def __init__(self, folder: Path) -> None:
        self.token = f"sy{os.getpid():x}"
        self.folder = folder
        self.bait = folder / "bait"
        self.temporary = folder / "tmp"
        for made in (self.bait, self.bait / "open", self.bait / "empty", self.bait / "marks", self.temporary):
            made.mkdir()
            made.chmod(0o777)
        for secret in (self.bait / "secret", self.bait / "open" / "secret", self.bait / "mine", self.bait / "marked"):
            secret.write_text("SECRET")
            secret.chmod(0o666)
        tempfile.tempdir = str(self.temporary)
        os.environ["A_KEY"] = "SECRET"

    @contextmanager
    def set_up(self) -> Iterator[None]:
        """With someone listening on every kind of line, and a process that would like to live."""
        stream = socket.socket(socket.AF_UNIX)
        stream.bind(str(self.bait / "stream"))
        dgram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        dgram.bind(str(self.bait / "dgram"))
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind("\0" + self.token)
        datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        datagrams.bind("\0" + self.token + "d")
        tcp = socket.create_server(("127.0.0.1", 0))
        # a sandbox has a folder of this name that is its own; a file of the machine's is not in it
        shared = Path(f"/dev/shm/steelyard-attack-{self.token}")
        shared.touch()
        shared.chmod(0o666)
        victim = subprocess.Popen(["sleep", "600"])
        for path in ("stream", "dgram"):
            (self.bait / path).chmod(0o777)
        stream.listen()
        abstract.listen()
        self.port = tcp.getsockname()[1]
        self.victim = victim.pid
        self.victims = victim
        try:
            yield
        finally:
            victim.kill()
            victim.wait()
            shared.unlink()
            for listening in (stream, dgram, abstract, datagrams, tcp):
                listening.close()

    def filled_in(self, code: str, alone: bool) -> str:
        words = {
            "TOKEN": self.token,
            "BAIT": self.bait,
            "TMP": self.temporary,
            "PID": os.getpid(),
            "PPID": os.getppid(),
            "VICTIM": self.victim,
            "PORT": self.port,
            "ALONE": int(alone),
            "ALLOWED": [
                numbers[ARCHITECTURE] for numbers in syscalls("allowed").values() if numbers[ARCHITECTURE] is not None
            ],
            "REPOSITORY": Path(steelyard.__file__).parents[2],
            "HOME": pwd.getpwuid(0).pw_dir,
            "TESTS": Path(__file__).with_name("hostile.py"),
            "EXIT": {"x86_64": 60, "aarch64": 93}[kernel.CPU_ARCHITECTURE],
            **{
                name.upper(): numbers[ARCHITECTURE]
                for name, numbers in (syscalls("allowed") | syscalls("refused")).items()
            },
        }
        for name, value in words.items():
            code = code.replace(f"@{name}@", str(value))
        return code

    def state(self) -> dict[str, Any]:
        """What an attack must leave as it was."""
        found = {}
        for path in sorted(self.bait.rglob("*")):
            about = path.lstat()
            text = path.read_text() if path.is_file() else ""
            attributes = [] if path.is_symlink() else os.listxattr(path)
            found[str(path)] = (text, about.st_mode, about.st_mtime, about.st_nlink, attributes)
        # other tests mount below folders of theirs
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        mounts = sum("/pytest-of-" not in line for line in lines)
        return {
            "files": found,
            "mounts": mounts,
            "victim": self.victims.poll(),
            "nice": os.getpriority(os.PRIO_PROCESS, self.victim),
            "cgroup": Path("/proc/self/cgroup").read_text(),
        }

    def left(self) -> list[str]:
        """The processes of attacks that still live; those of a neighbour lane count for nobody."""
        found = []
        for task in Path("/proc").glob("[0-9]*"):
            try:
                names = {(thread / "comm").read_text().strip() for thread in (task / "task").iterdir()}
                if self.token in names:
                    found.append(f"{task.name}: {(task / 'stat').read_text().split()[2]}")
            except OSError:
                continue
        return found


class Lane:
    """One sandbox, with its verifiers, under one attack after the other."""

    def __init__(self, level: str, scene: Scene) -> None:
        enclosure = ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index(level)]
        self.alone = enclosure.own_root
        self.sandbox = ZygoteSandbox(enclosure)
        self.verifiers = {name: PythonVerifier(Hasty(self.sandbox, limits)) for name, limits in HASTY.items()}
        self.scene = scene

    async def attacked(self, attack: Attack) -> dict[str, Any]:
        code = self.scene.filled_in(attack.code, self.alone)
        case = CASES[attack.case]
        told = await self._told(self.verifiers[attack.limits], attack, code)
        honest = await self._told(self.verifiers[""], attack._replace(case="asserts"), HONEST)
        if not honest.get("passed"):
            honest["again"] = await self._told(self.verifiers[""], attack._replace(case="asserts"), HONEST)
        return {
            "key": attack.key,
            "row": attack.row,
            **told,
            "honest": honest,
            "style": case.verify.style,
        }

    async def _told(self, verifier: PythonVerifier, attack: Attack, code: str) -> dict[str, Any]:
        case = CASES[attack.case]
        try:
            finding: Finding = await verifier.verify(case, Answer(text=verbatim_reply(code, "python")))
        except Exception as error:  # what the engine would call our failure
            return {"failure": f"{type(error).__name__}: {error}"}
        return {
            "passed": is_correct(case, finding),
            "label": finding.label,
            "reason": finding.reason[:300],
            "output": finding.output,
            "trust": finding.trust,
            "tampered": finding.tampered,
            "tests": [test.outcome for test in finding.tests],
        }


def chosen(much: str, level: str) -> list[Attack]:
    """All attacks, those that concern every level, each one in one style of tests, or a third of those that concern every level."""
    groups: dict[Any, list[Attack]] = {}
    if much == "once":
        for attack in EVERY_ATTACK:
            groups.setdefault((attack.row, attack.name), []).append(attack)
        # styles take turns
        turns = {group[turn % len(group)].key for turn, group in enumerate(groups.values())}
        return [attack for attack in EVERY_ATTACK if attack.everywhere or attack.key in turns]
    attacks = [attack for attack in EVERY_ATTACK if much == "all" or attack.everywhere]
    if much != "some":
        return attacks
    for attack in attacks:
        groups.setdefault(attack.row, []).append(attack)
    # another third at each level, and one of each row at least
    first = ISOLATION_LEVEL_NAMES.index(level)
    return [attack for group in groups.values() for attack in group[first % min(3, len(group)) :: 3]]


def was_busy(told: Mapping[str, Any]) -> bool:
    """Whether the machine gave an answer too little time for a verdict: a failure of ours, which says nothing about the attack."""
    return "this machine was too busy" in told.get("failure", "")


async def attacked(level: str, attacks: Sequence[Attack], scene: Scene) -> dict[str, Any]:
    """What became of the attacks, in several lanes; those for which the machine was too busy are tried once more, alone."""
    waiting = list(attacks)
    findings: list[dict[str, Any]] = []
    before = scene.state()
    lanes = [Lane(level, scene) for _ in range(LANES)]
    # what the number of processes is counted by is shared there: a neighbour's bomb would be everyone's
    shared = not lanes[0].alone and os.geteuid() != 0
    apart = [attack for attack in waiting if shared and attack.row in (11, 17)]
    rest = [attack for attack in waiting if attack not in apart]

    async def work(lane: Lane) -> None:
        last = ("", "")
        while waiting:
            # a lane whose referee knows the tests needs no new one
            same = (one for one, attack in enumerate(waiting) if (attack.case, attack.limits) == last)
            attack = waiting.pop(next(same, 0))
            last = (attack.case, attack.limits)
            findings.append(await lane.attacked(attack))

    try:
        waiting = apart
        await work(lanes[0])
        waiting = rest
        await asyncio.gather(*map(work, lanes))
        for place, found in enumerate(findings):
            if was_busy(found) or was_busy(found["honest"]):
                (again,) = (attack for attack in attacks if attack.key == found["key"])
                findings[place] = await lanes[0].attacked(again)
        folders = {str(path): sorted(map(str, path.iterdir())) for path in scene.temporary.iterdir() if path.is_dir()}
        processes = scene.left()
    finally:
        for lane in lanes:
            for verifier in lane.verifiers.values():
                await verifier.close()
            await lane.sandbox.close()
    return {
        "level": level,
        "findings": findings,
        "changed": {what: (was, now) for what, now in scene.state().items() if (was := before[what]) != now},
        "processes": processes,
        "folders": {folder: held for folder, held in folders.items() if held},
        "after": [*scene.left(), *map(str, scene.temporary.iterdir())],
        "children": _children(),
        "files": len(list(Path("/proc/self/fd").iterdir())),
    }


def _children() -> list[str]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [Path("/proc", pid, "cmdline").read_text()[:60] for pid in listed]


def main() -> None:
    level, much, *names = sys.argv[1:]
    found = probe_isolation(level)
    if not found.held:
        print(json.dumps({"level": level, "missing": found.problem, "lacks_program": found.lacks_program}))
        return
    has_pytest = Path(sysconfig.get_paths()["purelib"], "pytest").is_dir()
    attacks = [
        attack
        for attack in chosen(much, level)
        if (not names or any(name in attack.key for name in names))
        # a Python of the system's, which an ordinary user runs, may lack it
        and (has_pytest or CASES[attack.case].verify.style != "pytest")
    ]
    with tempfile.TemporaryDirectory(prefix="attacked-") as folder:
        Path(folder).chmod(0o777)
        scene = Scene(Path(folder))
        with scene.set_up():
            told = asyncio.run(attacked(level, attacks, scene))
        told["held"] = found.held
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
