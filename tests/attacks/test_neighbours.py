"""What one answer does to its tests is not felt by the next one, and an honest answer is not taken for a hostile one."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.records import Answer, Case, Expectations, Finding, Pair, Verify
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.command.verifier import CommandVerifier
from steelyard.verifiers.python.verifier import PythonVerifier
from support.toolchains import isolation_level


def judged(case: Case, *answers: str) -> list[Finding]:
    """The findings of answers that meet the same referee one after the other."""

    async def work() -> list[Finding]:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        python = PythonVerifier(sandbox)
        try:
            return [await python.verify(case, Answer(text=verbatim_reply(answer, "python"))) for answer in answers]
        finally:
            await python.close()
            await sandbox.close()

    return asyncio.run(work())


def case(tests: str = "", **verify: object) -> Case:
    return Case(
        id="case",
        prompt="x",
        language="python",
        timeout_secs=5,
        verify=Verify(**verify),  # type: ignore[arg-type]
        expectations=Expectations(test_file=tests),
    )


def test_an_answer_that_changes_its_arguments_does_not_change_those_of_the_next() -> None:
    pairs = (Pair(input=[[3, 1, 2]], output=[1, 2, 3]), Pair(input=[[[2], [1]]], output=[[1], [2]]))
    spoils = "def f(x):\n    x.clear()\n    return []\n"
    honest = "def f(x):\n    return sorted(x)\n"
    found = judged(case(style="io", entry_point="f", pairs=pairs), honest, spoils, honest)
    assert [finding.label for finding in found] == ["", "wrong answer", ""]


def test_what_tests_keep_in_modules_of_theirs_is_beyond_an_answer() -> None:
    tests = "import math\nassert f(2) == math.sqrt(4)\nassert isinstance(f(2), float)\n"
    spoils = "import math, builtins\nmath.sqrt = lambda x: 7\nbuiltins.isinstance = None\ndef f(x):\n    return 7\n"
    found = judged(case(tests), spoils, "def f(x):\n    return float(x)\n")
    assert [bool(finding.label) for finding in found] == [True, False]


def test_an_answer_may_make_circles() -> None:
    circles = (
        "def f(x):\n    for _ in range(200_000):\n        ring = [bytearray(20_000)]\n        ring.append(ring)\n"
        "    return x\n"
    )
    (found,) = judged(case("assert f(2) == 2\n"), circles)
    assert found.label == ""


@pytest.mark.parametrize(
    ("tests", "answer"),
    [
        (
            (
                "v = V(3, 4)\nassert abs(v) == 5\nassert (v + v).x == 6\nassert (v * 2).y == 8\nassert v == V(3, 4)\n"
                "assert 3 in v\nassert len(v) == 2\nassert list(v) == [3, 4]\nassert v.dot(v) == 25\n"
            ),
            (
                "class V:\n    def __init__(self, x, y): self.x, self.y = x, y\n"
                "    def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5\n"
                "    def __add__(self, o): return V(self.x + o.x, self.y + o.y)\n"
                "    def __mul__(self, n): return V(self.x * n, self.y * n)\n"
                "    def __eq__(self, o): return (self.x, self.y) == (o.x, o.y)\n"
                "    def __iter__(self): return iter((self.x, self.y))\n"
                "    def __len__(self): return 2\n    def dot(self, o): return self.x * o.x + self.y * o.y\n"
            ),
        ),
        ("g = f(3)\nassert next(g) == 0\nassert list(g) == [1, 2]\n", "def f(n):\n    yield from range(n)\n"),
        (
            "try:\n    f()\n    failed = True\nexcept StopIteration:\n    failed = False\nassert not failed\n",
            "def f():\n    raise StopIteration\n",
        ),
        ("assert all(map(f, [2, 4]))\nassert not any(map(f, [1, 3]))\n", "def f(n):\n    return n % 2 == 0\n"),
        ("assert abs(f(0.1) - 0.2) < 1e-9\n", "def f(x):\n    return 2 * x\n"),
        (
            "assert f([1, 2, 3]) == 6\n",
            (
                "from multiprocessing import Pool\ndef g(x): return x\n"
                "def f(x):\n    import threading\n    out = []\n    t = threading.Thread(target=lambda: out.append(sum(x)))\n"
                "    t.start()\n    t.join()\n    return out[0]\n"
            ),
        ),
        (
            "assert f('a', 'b') == 'x'\n",
            (
                "import os, shutil, tempfile\ndef f(a, b):\n    open(a, 'w').write('x')\n    os.chmod(a, 0o600)\n"
                "    shutil.copy2(a, b)\n    with tempfile.TemporaryDirectory() as d:\n        os.mkdir('e')\n        shutil.copytree('e', d + '/c')\n"
                "    return open(b).read()\n"
            ),
        ),
    ],
    ids=["class", "generator", "stop", "map", "close", "threads", "files"],
)
def test_honest_answers_of_every_kind_pass(tests: str, answer: str) -> None:
    (found,) = judged(case(tests), answer)
    assert (found.label, found.reason) == ("", "")


SABOTAGE = """
import contextlib, ctypes, errno, fcntl, os, signal, sys
def attempt(do, *given):
    with contextlib.suppress(Exception):
        do(*given)
folder = os.open(".", os.O_RDONLY)
attempt(fcntl.flock, folder, fcntl.LOCK_EX)
attempt(os.fchmod, folder, 0)
nobody_may = b"\\2\\0\\0\\0" + b"".join(
    tag.to_bytes(2, "little") + b"\\0\\0\\xff\\xff\\xff\\xff" for tag in (1, 4, 32)
)
for name, value in {"user.left": b"here", "system.posix_acl_default": nobody_may}.items():
    attempt(os.setxattr, folder, name, value)
attempt(os.chmod, "/dev/shm", 0)
attempt(lambda: open("/dev/shm/left", "w").close())
attempt(lambda: open("left", "w").close())
for fd in range(3):
    for flags in (os.O_DIRECT, os.O_APPEND, os.O_NONBLOCK, os.O_ASYNC, os.O_NOATIME):
        attempt(fcntl.fcntl, fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | flags)
    attempt(fcntl.flock, fd, fcntl.LOCK_EX)
    attempt(fcntl.lockf, fd, fcntl.LOCK_EX)
    for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
        attempt(fcntl.fcntl, fd, fcntl.F_SETLEASE, kind)
    attempt(fcntl.fcntl, fd, fcntl.F_ADD_SEALS, 15)
    attempt(os.fchmod, fd, 0)
    attempt(os.ftruncate, fd, 0)
    attempt(os.lseek, fd, 1 << 40, 0)
for name in ("stdin", "stdout", "stderr"):
    attempt(os.unlink, "/dev/" + name)
    attempt(os.rename, "/dev/streams/" + name, "/dev/streams/gone")
    attempt(os.mkdir, "/dev/streams/" + name)
for number in range(1, 32):
    attempt(signal.signal, number, signal.SIG_IGN)
attempt(os.umask, 0o777)
attempt(os.nice, 19)
"""
"""Everything that might outlast an attempt in what it was given: flags, locks, leases, modes, attributes, files, signals."""
LISTING = """
import os
try:
    left = os.listdir("/dev/shm")
except OSError:
    left = []  # not ours at this level
left += [*os.listdir("."), *os.listxattr(".")]
"""


@pytest.fixture(params=[level for level in ISOLATION_LEVEL_NAMES if level not in ("seatbelt", "process")])
def sandbox(request: pytest.FixtureRequest) -> ZygoteSandbox:
    return ZygoteSandbox(isolation_level(request.param))


def test_nothing_that_an_attempt_does_to_its_files_is_felt_by_the_next(sandbox: ZygoteSandbox) -> None:
    program = case(pairs=(Pair(input="2", output="4 []"),))
    function = case("assert f(2) == (4, [])\n")
    script = Case(
        id="command",
        prompt="x",
        language="c",
        verify=Verify(
            kind="command", answer="answer.py", test="/usr/bin/python3 -c 'import answer; print(answer.f(2))'"
        ),
    )
    honest = {
        "program": (program, LISTING + "left = sorted({*left} - {'answer.py'})\nprint(int(input()) * 2, left)\n"),
        "function": (function, LISTING + "def f(x):\n    return x * 2, left\n"),
        "command": (script, "def f(x):\n    return x * 2\n"),
    }
    hostile = {
        "program": (program, SABOTAGE),
        "function": (function, SABOTAGE + "def f(x):\n    return 5\n"),
        "command": (script, SABOTAGE + "sys.exit(3)\n"),
    }

    async def work() -> list[tuple[str, str]]:
        python, command = PythonVerifier(sandbox), CommandVerifier(sandbox)

        async def reason(judged_case: Case, code: str) -> str:
            verifier = command if judged_case is script else python
            return (await verifier.verify(judged_case, Answer(text=verbatim_reply(code, judged_case.language)))).reason

        try:
            found = [(what, await reason(*honest[what])) for what in honest]
            for spoils, attempt in hostile.items():
                assert await reason(*attempt), spoils
                found += [(f"{what} after a hostile {spoils}", await reason(*honest[what])) for what in honest]
            return found
        finally:
            await python.close()
            await sandbox.close()

    found = asyncio.run(work())
    assert len(found) == 12
    assert [one for one in found if one[1]] == []


RANDOM_CALLS = """
import ctypes, os, random, time
chance = random.Random(@SEED@)
libc = ctypes.CDLL(None)
texts = [ctypes.create_string_buffer(text, 4096) for text in (b".", b"..", b"/dev/stdout", b"/dev/stdin", b"/dev/shm/x", b"x", b"/dev/null", b"")]
words = [0, 1, 2, 3, 4, 5, 8, 15, 64, 1024, 0o777, 0x4000, 0x10000, 0x2000, 1 << 30, 1 << 40, -1, -100, os.getpid(), os.getppid()]
endings = {93, 94} if os.uname().machine == "aarch64" else {60, 231}
for _ in range(8):
    child = os.fork()
    if child == 0:
        for _ in range(300):
            number = chance.choice([n for n in range(500) if n not in endings])
            given = [chance.choice([ctypes.c_long(chance.choice(words)), chance.choice(texts)]) for _ in range(6)]
            libc.syscall(ctypes.c_long(number), *given)
        os._exit(0)
    deadline = time.monotonic() + 0.05
    while time.monotonic() < deadline and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.005)
    chance.random()
    try:
        os.kill(child, 9)
    except OSError:
        pass
os._exit(3)
"""


def test_random_system_calls_of_one_attempt_are_not_felt_by_the_next(sandbox: ZygoteSandbox) -> None:
    program = case(pairs=(Pair(input="2", output="4 []"),))
    function = case("assert f(2) == (4, [])\n")
    honest = (
        (program, LISTING + "left = sorted({*left} - {'answer.py'})\nprint(int(open(0).read()) * 2, left)\n"),
        (function, LISTING + "def f(x):\n    return x * 2, left\n"),
    )

    async def work() -> list[tuple[int, str]]:
        python = PythonVerifier(sandbox)
        found = []
        try:
            for seed in range(12):
                hostile = RANDOM_CALLS.replace("@SEED@", str(seed))
                for judged_case, code in ((honest[seed % 2][0], hostile), *honest):
                    finding = await python.verify(judged_case, Answer(text=verbatim_reply(code, "python")))
                    assert (code is not hostile) or finding.label, f"seed {seed} passes"
                    found += [(seed, finding.reason)] if code is not hostile else []
        finally:
            await python.close()
            await sandbox.close()
        return found

    assert [one for one in asyncio.run(work()) if one[1]] == []
