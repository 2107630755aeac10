"""What lies around a sandbox for attacks to reach for, and what they leave there."""

from __future__ import annotations

import os
import pwd
import re
import socket
import subprocess
import threading
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import steelyard
from steelyard.sandbox import kernel
from steelyard.sandbox.syscall_filter import syscalls

ESCAPE = """
import os
def escaped(*what):
    os.write(2, ("ESCAPED: " + " ".join(map(str, what)) + chr(10)).encode())
def attempt(what, deed):
    try:
        got = deed()
    except Exception as error:
        return error
    escaped(what, repr(got)[:80])
"""
"""Tells an escape that has succeeded."""
MARK = "import ctypes, os\nctypes.CDLL(None).prctl(15, b'%s', 0, 0, 0)\n"
"""Gives a process, and all that it starts, a name by which what is left of it can be found."""
NUMBERS = count()
ARCHITECTURE = ("x86_64", "aarch64").index(kernel.CPU_ARCHITECTURE)
MODULE = 'output "secret" {\n  value = "SECRET"\n}\n'


class Surroundings:
    """Files, servers, a key and a process; answers name them as `@NAME@`."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o777)
        self.token = f"sy{os.getpid():x}-{next(NUMBERS)}"
        self.calls: list[str] = []
        self._bait = folder / "bait"
        for made in (self._bait, self._bait / "open", self._bait / "empty", self._bait / "marks"):
            made.mkdir()
            made.chmod(0o777)
        for name, text in {
            "secret": "SECRET",
            "open/secret": "SECRET",
            "mine": "SECRET",
            "marked": "SECRET",
            "main.tf": MODULE,
            "code.rs": "pub const SECRET: i64 = 1;\n",
        }.items():
            (self._bait / name).write_text(text)
            (self._bait / name).chmod(0o666)
        self._stack = ExitStack()
        self.words: dict[str, Any] = {}
        """What else answers can name."""

    def __enter__(self) -> Self:
        """Listen on every kind of line, and start a process that would like to live."""
        os.environ["A_KEY"] = "SECRET"
        self._stack.callback(os.environ.pop, "A_KEY", None)
        for kind, address in {
            socket.SOCK_STREAM: (str(self._bait / "stream"), "\0" + self.token),
            socket.SOCK_DGRAM: (str(self._bait / "dgram"), f"\0{self.token}d"),
        }.items():
            for one in address:
                listening = self._stack.enter_context(socket.socket(socket.AF_UNIX, kind))
                listening.bind(one)
                if kind == socket.SOCK_STREAM:
                    listening.listen()
        for path in ("stream", "dgram"):
            (self._bait / path).chmod(0o777)
        server = self._stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self._port = server.getsockname()[1]
        threading.Thread(target=self._count_calls, args=(server,), daemon=True).start()
        # a sandbox has a folder of this name that is its own; a file of the machine's is not in it
        shared = Path(f"/dev/shm/steelyard-attack-{self.token}")
        shared.touch()
        shared.chmod(0o666)
        self._stack.callback(shared.unlink)
        self._victim = subprocess.Popen(["sleep", "600"])
        self._stack.callback(self._victim.wait)
        self._stack.callback(self._victim.kill)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _count_calls(self, server: socket.socket) -> None:
        while True:
            try:
                caller, address = server.accept()
            except OSError:
                return
            self.calls.append(str(address))
            caller.close()

    def filled_in(self, text: str) -> str:
        """An answer with what it needs to know of this machine."""
        known = syscalls("allowed") | syscalls("refused")
        words = {
            **self.words,
            "TOKEN": self.token,
            "ESCAPE": ESCAPE,
            "MARK": MARK % self.token,
            "BAIT": self._bait,
            "PID": os.getpid(),
            "PPID": os.getppid(),
            "VICTIM": self._victim.pid,
            "PORT": self._port,
            "HOST": f"127.0.0.1:{self._port}",
            "ALLOWED": [each[ARCHITECTURE] for each in syscalls("allowed").values() if each[ARCHITECTURE] is not None],
            "REPOSITORY": Path(steelyard.__file__).parents[2],
            "HOME": pwd.getpwuid(0).pw_dir,
            "EXIT": {"x86_64": 60, "aarch64": 93}[kernel.CPU_ARCHITECTURE],
            **{name.upper(): numbers[ARCHITECTURE] for name, numbers in known.items()},
        }
        return re.sub(r"@([A-Z_0-9]+)@", lambda found: str(words.get(found[1], found[0])), text)

    def state(self) -> dict[str, Any]:
        """What an attack must leave as it was."""
        found = {}
        for path in sorted(self._bait.rglob("*")):
            about = path.lstat()
            text = path.read_text() if path.is_file() else ""
            attributes = [] if path.is_symlink() else os.listxattr(path)
            found[str(path)] = (text, about.st_mode, about.st_mtime, about.st_nlink, attributes)
        # other tests mount below folders of theirs
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        return {
            "files": found,
            "mounts": sum("/pytest-of-" not in line for line in lines),
            "victim": self._victim.poll(),
            "nice": os.getpriority(os.PRIO_PROCESS, self._victim.pid),
            "processes": self._left(),
            "calls": list(self.calls),
        }

    def changes(self, before: dict[str, Any]) -> list[str]:
        """What is not as it was."""
        return [f"{what}: {before[what]} became {now}" for what, now in self.state().items() if before[what] != now]

    def _left(self) -> list[str]:
        """The processes of attacks that still live."""
        found = []
        for task in Path("/proc").glob("[0-9]*"):
            try:
                names = {(thread / "comm").read_text().strip() for thread in (task / "task").iterdir()}
            except OSError:
                continue
            if self.token in names:
                found.append(task.name)
        return found
