"""Commands in an interpreter that watches itself: what they start, run, unpickle or connect to is printed as JSON.

python -m support.audited '[["list"], ["show", "run"]]'
"""

from __future__ import annotations

import json
import sys
import sysconfig
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

STARTS = (
    *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"),
    *("pty.spawn", "socket.connect", "pickle.find_class"),
)
MARK = "run_by_a_stranger"


def main() -> None:
    import steelyard

    own = [str(Path(steelyard.__file__).parent), sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()]
    seen: list[str] = []

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        # what a run knows of its machine: Python itself asks for it so
        if event in STARTS and arguments[:2] != ("uname", ["uname", "-p"]):
            seen.append(f"{event} {arguments!r:.200}")
        elif event == "exec":
            file = getattr(arguments[0], "co_filename", "")
            if not file.startswith("<") and not any(file.startswith(place) for place in own):
                seen.append(f"exec {file}")
        elif event == "compile" and MARK in str(arguments[0]):
            seen.append(f"compile {arguments!r:.200}")

    from steelyard.cli.main import main as command

    told = []
    sys.addaudithook(watch)
    for words in json.loads(sys.argv[1]):
        said = StringIO()
        with redirect_stdout(said), redirect_stderr(said):
            code = int(command(words))
        told.append((code, said.getvalue()[-500:], seen[:]))
        seen.clear()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
