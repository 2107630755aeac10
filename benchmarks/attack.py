"""Whether any hostile answer made of random parts passes, harms the next answer, or gets no verdict.

    python benchmarks/attack.py [--minutes 30] [--level full] [--seed 1] [--styles asserts,io]

Each answer is wrong, and joins parts that patch, forge, leak, flood or exit, in random number and order, at import and in the function that the
tests call. It is judged in a random style of tests, and an honest answer in another style follows. A wrong answer that passes as
`isolated`, or in-process without passing false tests as well, an honest one that fails, or an error of ours is printed with its code, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from attacks.reader import scenes
from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Finding
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, ISOLATION_LEVELS, probe_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.python.verifier import PythonVerifier

STYLES = ("asserts", "check", "doctest", "io", "program", "unittest", "pytest")
HONEST = {
    "program": "a, b = map(int, open(0).read().split())\nprint(a + b)\n",
    "": "def add(a, b):\n    return a + b\n",
}
LANES = 2

PARTS: dict[str, tuple[str, ...]] = {
    "patch": (
        "import builtins; builtins.isinstance = lambda *_: True",
        "import builtins; builtins.AssertionError = type('Quiet', (Exception,), {})",
        "import unittest; unittest.TestCase.assertEqual = unittest.TestCase.assertTrue = lambda *_: None",
        "import unittest.case; unittest.case._Outcome.testPartExecutor = __import__('contextlib').nullcontext",
        "import json; json.dumps = lambda *_, **__: '[]'",
        "import os; os.write = lambda fd, data, write=os.write: write(fd, data.replace(b'fail', b'pass'))",
        "import os; os._exit = lambda code, leave=os._exit: leave(0)",
        "import socket; socket.socket.sendall = lambda *_: None",
        "import operator, math; operator.eq = math.isclose = lambda *_, **__: True",
        "import sys; sys.settrace(lambda *_: None); sys.setprofile(lambda *_: None)",
        "import sys; sys.modules['test_answer'] = sys.modules['unittest'] = sys.modules[__name__]",
        "import sys; sys.meta_path.insert(0, type('F', (), {'find_spec': staticmethod(lambda *_: None)}))",
        "import sys; sys.excepthook = sys.unraisablehook = lambda *_: None",
        "import _thread; _thread.start_new_thread = lambda *_: 0",
        "import builtins; builtins.next = lambda *_, real=builtins.next: (setattr(builtins, 'next', real), object)[1]",
        "import builtins; builtins.type = lambda *_, real=builtins.type: (setattr(builtins, 'type', real), int)[1]",
        "import builtins, math; builtins.abs = math.isclose = lambda *_, **__: 0",
        "import math, sys, types; sys.modules['math'] = types.ModuleType('math')",
        "import fractions, uuid; uuid.UUID.__eq__ = fractions.Fraction.__eq__ = repr",
        "import sys; sys.addaudithook(lambda *_: None)",
        "import gc; gc.set_debug(gc.DEBUG_SAVEALL)",
        "import codecs; [codecs.register_error(name, lambda error: ('', error.end)) for name in ('strict', 'replace')]",
        "import sys; sys.modules['_imp']._fix_co_filename(compile('1', 'zz', 'eval'), 'test_answer.py')",
    ),
    "forge": (
        "class Yes:\n    __eq__ = __le__ = __ge__ = __lt__ = __gt__ = __contains__ = __bool__ = lambda *_: True\n    __ne__ = lambda *_: False\n    __hash__ = lambda _: 3",
        "class Yes(int):\n    __eq__ = lambda *_: True\n    __ne__ = lambda *_: False\n    __hash__ = int.__hash__",
        "class Yes(str):\n    __eq__ = lambda *_: True\n    __ne__ = lambda *_: False\n    __hash__ = str.__hash__\n    __getattr__ = lambda *_: Yes()",
        "class Yes(type):\n    __eq__ = lambda *_: True\n    __hash__ = lambda _: 3\nYes = Yes('Yes', (), {})",
        'import os\nfor fd in range(3, 12):\n    try: os.write(fd, b\'\\x10\\0\\0\\0["ok", 3, ""]    \')\n    except OSError: pass',
        "class Meta(type):\n    __eq__ = lambda *_: True\n    __hash__ = lambda _: hash(int)\nclass Yes(metaclass=Meta):\n    __eq__ = lambda *_: True\n    __hash__ = None",
        "class Meta(type):\n    __dict__ = property(lambda _: {})\nclass Yes(metaclass=Meta):\n    __eq__ = repr\n    __hash__ = None",
        "import collections\nclass Yes(collections.UserList):\n    __eq__ = repr\nYes.__module__, Yes.__qualname__, collections.Yes = 'collections', 'Yes', Yes",
        "print('ok 1\\n1..1\\nOK\\n3\\n0')",
        "from test.support import ALWAYS_EQ\nYes = lambda: ALWAYS_EQ",
        "from unittest.mock import ANY\nYes = lambda: ANY",
        "import enum\nclass Yes(enum.Enum):\n    A = 3\n    __eq__ = lambda *_: True\nYes = lambda kind=Yes: kind.A",
        "import marshal, os\npad = 'q' * len(os.__file__)\nexec(marshal.loads(marshal.dumps(compile('class Yes:\\n    def __eq__(s, o): return True\\n    __hash__ = None\\n', pad, 'exec')).replace(pad.encode(), os.__file__.encode())))",
        "for name in ('conftest.py', 'pytest.ini', 'sitecustomize.py', 'test_answer.py', 'unittest.py'): open(name, 'w').write('def test(): pass\\n')",
        "import unittest; unittest.TestCase.run = lambda self, result=None: result.addSuccess(self)",
        "import os, json\nfor fd in range(3, 9):\n    try: os.write(fd, json.dumps(['loaded', {}, 'passed']).encode())\n    except OSError: pass",
    ),
    "leak": (
        "import gc; found = [o for o in gc.get_objects() if isinstance(o, dict) and 'expected' in o]",
        "import sys; frame = sys._getframe()\nwhile frame.f_back is not None:\n    frame = frame.f_back\n    frame.f_locals.update(passed=True, outcome='passed', failed=False)",
        "import glob; found = [open(f, errors='replace').read() for f in glob.glob('*')]",
        "import os; found = [os.path.exists(f'/proc/{pid}/mem') for pid in (1, os.getppid())]",
        "import ctypes; ctypes.CDLL(None).ptrace(16, __import__('os').getppid(), 0, 0)",
        "import inspect; found = [f.frame.f_globals for f in inspect.stack()]",
        "import os; found = [os.read(fd, 0) for fd in range(3)]",
    ),
    "flood": (
        "print('x' * 100_000)",
        "import sys; sys.stderr.write('y' * 100_000)",
        "import os\nfor _ in range(20):\n    try: os.fork() or os._exit(0)\n    except OSError: break",
        "import threading, time\nfor _ in range(20):\n    try: threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n    except RuntimeError: break",
        "held = [bytearray(1 << 20) for _ in range(64)]",
        "held = [open('f%d' % n, 'w') for n in range(60)]",
        "import os; os.makedirs('/'.join('d' * 1 for _ in range(60)), exist_ok=True); os.chmod('d', 0)",
        "import socket; held = [socket.socketpair() for _ in range(40)]",
        "import os\nif os.fork() == 0:\n    os.setsid()\n    while True: __import__('time').sleep(9)",
        "import fcntl, os\nfor fd in range(8):\n    for flag in (os.O_DIRECT, os.O_NONBLOCK, os.O_APPEND):\n        try: fcntl.fcntl(fd, 4, flag)\n        except OSError: pass",
        "import os; os.chmod('.', 0); os.umask(0o777)",
    ),
    "exit": (
        "import atexit, os; atexit.register(os._exit, 0)",
        "import signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass",
        "import os, threading; threading.Timer(0.01, os._exit, (0,)).start()",
        "import os; os.closerange(0, 3)",
        "import os; os.kill(os.getppid(), 9)",
    ),
}
ENDINGS = (
    "return 7",
    "return Yes()",
    "return [Yes()]",
    "return Yes",
    "raise SystemExit(0)",
    "raise StopIteration",
    "raise AssertionError",
    "raise __import__('unittest').SkipTest('no')",
    "__import__('os')._exit(0)",
    "yield 7",
    "return lambda *_: 7",
    "return add",
    "return __import__('unittest').skip('no')(add)()",
    "return __import__('fractions').Fraction(7)",
    "raise __import__('unittest').case._ShouldStop",
    "raise __import__('asyncio').CancelledError",
    "raise ImportError('no', name='numpy')",
    "raise NameError('no', name='add')",
    "raise MemoryError",
)


def hostile(chance: random.Random) -> str:
    """A wrong answer of random parts."""
    lines = ["Yes = object", *(_guarded(part) for part in _parts(chance, 4)), "def add(*given):"]
    lines += [_indented(_guarded(part)) for part in _parts(chance, 2)]
    lines.append(_indented(chance.choice(ENDINGS)))
    return "\n".join(lines) + "\n"


def _parts(chance: random.Random, most: int) -> list[str]:
    return [chance.choice(PARTS[kind]) for kind in chance.choices(list(PARTS), k=chance.randint(0, most))]


def _guarded(part: str) -> str:
    return "try:\n" + _indented(part) + "\nexcept Exception: pass"


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


class Lane:
    """One sandbox under attack."""

    def __init__(self, level: str, seed: int, counts: Counter[str], styles: Sequence[str]) -> None:
        self._styles = styles
        self._sandbox = ZygoteSandbox(ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index(level)])
        self._python = PythonVerifier(self._sandbox)
        self._chance = random.Random(seed)
        self._counts = counts

    async def attack(self, deadline: float) -> list[str]:
        """What went wrong, until the time is over."""
        wrong: list[str] = []
        try:
            while time.monotonic() < deadline:
                style, code = self._chance.choice(self._styles), hostile(self._chance)
                wrong += [f"{problem} ({style}):\n{code}" for problem in await self._tried(style, code)]
        finally:
            await self._python.close()
            await self._sandbox.close()
        return wrong

    async def _tried(self, style: str, code: str) -> list[str]:
        problems = []
        try:
            finding = await self._judged(style, code)
            passed = is_correct(scenes()[style], finding)
            self._counts[f"{style}: {finding.label or f'passed, {finding.trust}'}"] += 1
            if passed and (finding.trust == "isolated" or not await self._passes_false_tests(style, code)):
                problems.append(f"a wrong answer passes as {finding.trust}")
        except Exception as error:  # noqa: BLE001  what the engine would call our failure
            problems.append(f"no verdict: {type(error).__name__}: {error}")
        other = self._chance.choice(self._styles)
        try:
            honest = await self._judged(other, HONEST.get(other, HONEST[""]))
            if not is_correct(scenes()[other], honest):
                problems.append(f"the next honest answer ({other}) fails: {honest.label} {honest.reason}")
        except Exception as error:  # noqa: BLE001
            problems.append(f"the next honest answer ({other}) has no verdict: {type(error).__name__}: {error}")
        return problems

    async def _passes_false_tests(self, style: str, code: str) -> bool:
        """Whether controls find an answer out: it also passes when every expected value is false."""
        false = self._python.false_tests(scenes()[style]).all
        if false is None:
            return False
        return is_correct(false, await self._python.verify(false, Answer(text=verbatim_reply(code, "python"))))

    async def _judged(self, style: str, code: str) -> Finding:
        return await self._python.verify(scenes()[style], Answer(text=verbatim_reply(code, "python")))


async def attacked(level: str, seed: int, minutes: float, styles: Sequence[str]) -> tuple[Counter[str], list[str]]:
    counts: Counter[str] = Counter()
    deadline = time.monotonic() + 60 * minutes
    lanes = [Lane(level, seed * LANES + place, counts, styles) for place in range(LANES)]
    found = await asyncio.gather(*(lane.attack(deadline) for lane in lanes))
    return counts, [problem for problems in found for problem in problems]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--level", default=next(name for name in ISOLATION_LEVEL_NAMES if probe_isolation(name).holds))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--styles", default=",".join(STYLES), help="styles of tests, with commas between them")
    options = parser.parse_args(arguments)
    counts, wrong = asyncio.run(attacked(options.level, options.seed, options.minutes, options.styles.split(",")))
    for problem in wrong:
        print(problem)
    for name, count in sorted(counts.items()):
        print(f"{count:7}  {name}")
    print(f"{counts.total()} attacks at level {options.level}, {len(wrong)} went wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
