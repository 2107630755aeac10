"""Lets `steelyard run` start a hostile agent for each attack, and prints what the agent reached, as JSON.

    python agents_driver.py LEVEL FOLDER [ATTACK...]

It runs as whoever starts it, in an empty folder that is given, with only this level to contain agents.
"""

import ast
import contextlib
import json
import os
import resource
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from steelyard.records import Failure, Reply
from steelyard.store.journal import StoredRun

SCRIPT = Path(__file__).parents[1] / "data" / "agents" / "hostile_agent.py"
ATTACKS = [
    part.name
    for part in ast.parse(SCRIPT.read_text("utf-8")).body
    if isinstance(part, ast.FunctionDef) and not part.args.args and part.name != "main"
]
"""The functions of the agent that take nothing are its attacks."""
HIDDEN = {"full": "", "bubblewrap": "full", "landlock": "full,bubblewrap", "process": "full,bubblewrap,landlock"}
UNDECLARED_VALUE, DECLARED_VALUE, SECRET = "undeclared-key-81264", "declared-key-55120", "the secret of this user"
PYTHON = os.path.realpath(sys.executable)


def main() -> None:
    level, folder, *chosen = sys.argv[1:]
    print(json.dumps(tried(level, Path(folder), chosen or ATTACKS)))


def tried(level: str, folder: Path, attacks: list[str]) -> dict[str, object]:
    """What became of each attack, and of what they aimed at."""
    scene = Scene(folder)
    with contextlib.ExitStack() as stack:
        scene.open(stack)
        scene.write(attacks)
        before = scene.seen()
        command = [
            sys.executable,
            "-m",
            "steelyard.cli",
            "run",
            "evals.toml",
            "-m",
            "agent:hostile",
            "--agent-sandbox",
            "on",
            "--output",
            "run",
        ]
        if HIDDEN[level]:
            command = [sys.executable, "-m", "support.hidden_levels", HIDDEN[level], *command]
        environment = {
            **os.environ,
            "HOME": str(scene.home),
            "TMPDIR": str(scene.temporary),
            "UNDECLARED_KEY": UNDECLARED_VALUE,
        }
        environment |= {
            "DECLARED_KEY": DECLARED_VALUE,
            "XDG_STATE_HOME": str(scene.home / "state"),
            "XDG_CACHE_HOME": str(scene.home / "cache"),
        }
        with watched_size(scene.temporary) as largest:
            done = subprocess.run(
                command, cwd=scene.start, env=environment, capture_output=True, text=True, check=False, timeout=2400
            )
        after = scene.seen()
        return {
            "exit_code": done.returncode,
            "stdout": done.stdout[-3000:],
            "stderr": done.stderr[-3000:],
            "level": level,
            "asked": scene.asked,
            "changed": [
                f"{name}: {before.get(name)} became {after.get(name)}"
                for name in {*before, *after}
                if before.get(name) != after.get(name)
            ],
            "left_running": running(scene.sleep),
            "left_in_temporary": sorted(path.name for path in scene.temporary.iterdir()),
            "largest_temporary_bytes": max(largest, default=0),
            "largest_process_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10,
            "writable": scene.left_in_writable(),
            "canary": scene.canary.poll() is None and _state(scene.canary.pid) != "T",
            "attacks": scene.attacks(attacks),
            "revealed": scene.revealed(),
        }


class Scene:
    """What a hostile agent aims at."""

    def __init__(self, folder: Path) -> None:
        self.home, self.start, self.folder = folder / "home", folder / "start", folder / "declared"
        self.writable, self.temporary, self.own = folder / "writable", folder / "tmp", folder / "own"
        for made in (
            self.home,
            self.start,
            self.folder,
            self.writable,
            self.temporary,
            self.own,
            self.home / ".ssh",
            self.folder / "below",
        ):
            made.mkdir(mode=0o755)
        (self.start / "workspace").mkdir()
        (self.start / "workspace" / "notes.md").write_text("# Notes\n")
        self.secret = self.own / "secret"
        for place in (self.secret, self.home / ".ssh" / "id_ed25519", self.home / ".bashrc", self.home / ".netrc"):
            place.write_text(f"{SECRET}\n")
            place.chmod(0o666)
        (self.folder / "file").write_text("declared\n")
        (self.folder / "link").symlink_to(self.own)
        (self.folder / "up").symlink_to("..")
        (self.folder / "linked-file").symlink_to(self.secret)
        self.sleep = str(200_000_000 + os.getpid())
        self.asked: list[str] = []

    def open(self, stack: contextlib.ExitStack) -> None:
        """Servers that are declared and others that are not, sockets, and a process to signal to."""
        self.undeclared = _serve(stack, socket.AF_INET, "0.0.0.0", self.asked)
        self.undeclared6 = _serve(stack, socket.AF_INET6, "::1", self.asked)
        redirect = f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{self.undeclared}/\r\nContent-Length: 0\r\n\r\n"
        self.declared = _serve(stack, socket.AF_INET, "127.0.0.1", [], redirect)
        self.socket = self.own / "line"
        local, abstract = (
            stack.enter_context(socket.socket(socket.AF_UNIX)),
            stack.enter_context(socket.socket(socket.AF_UNIX)),
        )
        local.bind(str(self.socket))
        self.socket.chmod(0o666)
        self.abstract = f"steelyard-agents-{os.getpid()}"
        abstract.bind(f"\0{self.abstract}")
        for each in (local, abstract):
            each.listen()
        self.canary = subprocess.Popen(["sleep", "5000"])
        stack.callback(self.canary.wait)
        stack.callback(self.canary.kill)

    def write(self, attacks: list[str]) -> None:
        """The settings and the eval set."""
        facts = {
            "secrets": [str(self.secret), str(self.home / ".ssh" / "id_ed25519")],
            "home": str(self.home),
            "folder": str(self.folder),
            "writable": str(self.writable),
            "temporary": str(self.temporary),
            "start": str(self.start),
            "run": str(self.start / "run"),
            "script": str(SCRIPT),
            "pid": os.getpid(),
            "canary": self.canary.pid,
            "declared": self.declared,
            "undeclared": self.undeclared,
            "undeclared6": self.undeclared6,
            "undeclared_value": UNDECLARED_VALUE,
            "addresses": _own_addresses(),
            "resolvers": _resolvers(),
            "hostname": socket.gethostname(),
            "private_name": socket.gethostname(),
            "socket": str(self.socket),
            "abstract": self.abstract,
            "sleep": self.sleep,
        }
        settings = {
            "command": f"{PYTHON} {SCRIPT}",
            "hosts": [f"127.0.0.1:{self.declared}", f"{socket.gethostname().lower()}:{self.undeclared}"],
            "keys": ["DECLARED_KEY"],
            "folders": [str(self.folder)],
            "writable_folders": [str(self.writable)],
            "time_limit_secs": 20,
        }
        lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
        (self.start / "steelyard.toml").write_text(
            "\n".join(["[agents.hostile]", *lines, f"environment = {{ FACTS = {json.dumps(json.dumps(facts))} }}", ""])
        )
        cases = "".join(
            f'[[cases]]\nid = "{name}"\nname = "{name}"\nprompt = "{name}"\nworkspace = "workspace"\n'
            'verify = { kind = "command", test = "grep -q done answer.txt && test ! -e forged" }\n'
            for name in attacks
        )
        (self.start / "evals.toml").write_text(f'[eval_set]\nid = "agents"\nname = "agents"\n{cases}')

    def seen(self) -> dict[str, str]:
        """Everything that can be known about files that no agent may change."""
        found = {}
        for top in (self.home, self.folder, self.own, self.start / "workspace"):
            for path in (top, *sorted(top.rglob("*"))):
                if {"state", "cache"} & set(path.relative_to(top).parts):
                    continue  # steelyard's own
                about = path.lstat()
                content = path.read_text() if path.is_file() and not path.is_symlink() else ""
                times = about.st_mtime_ns if path != self.home else 0
                found[str(path)] = (
                    f"{about.st_mode:o} {about.st_uid} {times} {about.st_size if path != self.home else 0} {content!r}"
                )
        return found

    def left_in_writable(self) -> dict[str, str]:
        """The kinds of what agents left in the folder that they may write to."""
        return {
            str(
                path.relative_to(self.writable)
            ): f"{stat.filemode(path.lstat().st_mode)} {path.lstat().st_uid == os.geteuid()}"
            for path in sorted(self.writable.rglob("*"))
        }

    def attacks(self, attacks: list[str]) -> dict[str, object]:
        """What each attack printed of its success, how it ended and what it was judged."""
        found: dict[str, object] = dict.fromkeys(attacks)
        for fact in StoredRun(self.start / "run").facts() if (self.start / "run").is_dir() else ():
            if isinstance(fact, Reply):
                answer = fact.answer
                won = [line for line in (answer.transcript or "").splitlines() if line.startswith("WON")]
                odd = [line for line in (answer.transcript or "").splitlines() if line.startswith("ended by")]
                found[fact.case] = {
                    "won": won,
                    "odd": odd,
                    "exit_code": answer.exit_code,
                    "finish": str(answer.finish),
                    "error": answer.error,
                    "seconds": answer.latency,
                    "patched": len(answer.text),
                    "notes": [
                        line for line in (answer.transcript or "").splitlines() if line.startswith("[steelyard: ")
                    ][:4],
                    "tokens": [answer.input_tokens, answer.output_tokens, str(answer.cost)],
                }
            elif isinstance(fact, Failure):
                found[fact.case] = {"won": [], "failure": fact.message}
        return found

    def revealed(self) -> list[str]:
        """Files of the run in which something stands that must not."""
        found = []
        for path in (self.start / "run").rglob("*") if (self.start / "run").is_dir() else ():
            content = path.read_bytes() if path.is_file() else b""
            found += [
                f"{path.name}: {text}"
                for text in (UNDECLARED_VALUE, DECLARED_VALUE, SECRET)
                if text.encode() in content and path.name.startswith("journal")
            ]
        return found


def _serve(stack: contextlib.ExitStack, family: int, host: str, asked: list[str], answer: str = "") -> int:
    """A server that notes who asks."""
    listening = stack.enter_context(socket.socket(family))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((host, 0))
    listening.listen(50)
    page = answer or "HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\nthe undeclared page"

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(5)
                    asked.append(connection.recv(4096).decode("utf-8", "replace")[:200])
                    connection.sendall(page.encode())

    threading.Thread(target=serve, daemon=True).start()
    return int(listening.getsockname()[1])


def _own_addresses() -> list[str]:
    """The addresses of this machine but its loopback's."""
    shown = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
    return [address for address in shown if ":" not in address][:3]


def _resolvers() -> list[str]:
    with contextlib.suppress(OSError):
        lines = Path("/etc/resolv.conf").read_text().splitlines()
        return [line.split()[1] for line in lines if line.startswith("nameserver") and "." in line][:2]
    return []


@contextlib.contextmanager
def watched_size(folder: Path) -> Iterator[list[int]]:
    """The sizes of a folder, from time to time."""
    sizes: list[int] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.2):
            found = {}
            for top, _, names in os.walk(folder):
                for name in names:
                    with contextlib.suppress(OSError):
                        about = Path(top, name).lstat()
                        found[about.st_ino] = about.st_blocks * 512
            sizes.append(sum(found.values()))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield sizes
    finally:
        ended.set()
        thread.join()


def running(seconds: str) -> int:
    """How many `sleep`s of so many seconds run anywhere on this machine."""
    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found += (process / "cmdline").read_bytes().split(b"\0")[:2] == [b"sleep", seconds.encode()]
    return found


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


if __name__ == "__main__":
    main()
