"""Requests for changes of modes, as hostile code makes them at the level landlock: refused, and nothing of ours is lost by them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from attacks.scenes import NOBODY, interpreter, run_as
from steelyard.sandbox.kernel import AT_FDCWD, syscall_number
from steelyard.sandbox.mode_requests import ModeRequests
from support.toolchains import isolation_level, unavailable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has landlock")

HOSTILE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
number = 268 if os.uname().machine == "x86_64" else 53
addresses = (-1, -4096, 1 << 63, (1 << 63) - 1, 1, 0)
for address in addresses:
    assert libc.syscall(ctypes.c_long(number), -100, ctypes.c_ulong(address & 0xffffffffffffffff), 0) == -1
for _ in range(300):
    try: os.chmod("/usr", 0o777)
    except OSError: pass
open("own", "w").close()
os.chmod("own", 0o711)
print(oct(os.stat("own").st_mode & 0o777))
"""
SCRIPT = f"""
import asyncio
from steelyard.sandbox.sandbox import ZygoteSandbox
from support.toolchains import isolation_level
async def main():
    sandbox = ZygoteSandbox(isolation_level("landlock"))
    for _ in range(2):
        async with sandbox.workspace({{}}) as place:
            done = await place.run(["/usr/bin/python3", "-c", {HOSTILE!r}])
            print(done.exit_code, done.stdout, done.stderr[-300:])
    await sandbox.close()
asyncio.run(main())
"""


def test_requests_that_make_no_sense_end_neither_the_sandbox_nor_the_next_attempt() -> None:
    isolation_level("landlock")
    user = "nobody" if os.geteuid() == 0 else "ourselves"
    python = interpreter(user)
    if not python:
        unavailable("no Python of this version with our packages that nobody can read")
    done = run_as(user, [python, "-c", SCRIPT], uid=NOBODY - 1003)
    assert done.stdout.splitlines() == ["0 b'0o711\\n' b''"] * 2, done.stdout + done.stderr


def test_a_request_that_is_refused_leaves_no_file_open(tmp_path: Path) -> None:
    requests = ModeRequests(-1, str(tmp_path))
    before = len(list(Path("/proc/self/fd").iterdir()))
    with Path(__file__).open() as outside:
        for _ in range(5):
            with pytest.raises(OSError, match="not a path below"):
                requests._change(os.getpid(), syscall_number("fchmod"), [outside.fileno(), 0, 0, 0, 0, 0])
            with pytest.raises(OSError, match="not an address"):
                requests._change(
                    os.getpid(), syscall_number("fchmodat"), [AT_FDCWD & 0xFFFF_FFFF, (1 << 64) - 1, 0, 0, 0, 0]
                )
    assert len(list(Path("/proc/self/fd").iterdir())) == before
