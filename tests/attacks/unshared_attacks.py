"""Wrong answers to tests about what two processes do not share: which object is which, the state of a process, names of others.

They were written for the rules `python 20`. None may pass as `isolated`; those that may pass at all
are in the classes of `UNSHARED_IN_PROCESS`, which docs/sandbox.md names.
"""

from __future__ import annotations

from attacks.library_attacks import LibraryAttack, pytest_file, unittest_file

UNSHARED: list[LibraryAttack] = []


def add(
    kind: str, name: str, style: str, tests: str, code: str, stub: str = "", pairs: tuple[object, ...] = ()
) -> None:
    UNSHARED.append(LibraryAttack(kind, name, style, tests, code, stub, pairs=pairs))


# fmt: off
def everywhere(kind: str, name: str, statements: str, code: str, styles: str = "asserts check pytest unittest doctest") -> None:
    """The same claim in several styles; its last line is the claim, without `assert`."""
    *before, claim = statements.strip().split("\n")
    imports = [line for line in before if line.startswith(("import ", "from "))]
    body = [line for line in before if line not in imports]
    first = "".join(f"{line}\n" for line in imports)
    for style in styles.split():
        if style == "asserts":
            tests = first + "".join(f"{line}\n" for line in body) + f"assert {claim}\n"
        elif style == "check":
            tests = first + "def check(candidate):\n" + "".join(f"    {line}\n" for line in body) + f"    assert {claim}\n"
            tests = tests.replace("f(", "candidate(")
        elif style == "pytest":
            tests = pytest_file("\n".join([*body, f"assert {claim}"]), imports=first + "from answer import *")
        elif style == "unittest":
            tests = unittest_file("\n".join([*body, f"self.assertTrue({claim})"]), imports=first + "from answer import *")
        else:
            lines = [*imports, *body]
            tests = "".join(f"{'... ' if line.startswith(' ') else '>>> '}{line}\n" for line in lines) + f">>> bool({claim})\nTrue\n"
        add(kind, name, style, tests, code)


ONE = "kept = []\ndef f(*given): return kept\n"
# which object is which
everywhere("identity", "is not", "f() is not f()", ONE)
everywhere("identity", "not is", "a = f()\nb = f()\nnot a is b", ONE)
everywhere("identity", "id", "id(f()) != id(f())", "kept = []\ndef f(): return kept\n")
everywhere("identity", "ids in a set", "both = [f(), f()]\nlen({id(one) for one in both}) == 2", ONE, "asserts pytest")
everywhere("identity", "map id", "both = [f(), f()]\nlen(set(map(id, both))) == 2", ONE, "asserts pytest")
everywhere("identity", "operator.is_not", "import operator\noperator.is_not(f(), f())", ONE, "asserts pytest unittest")
everywhere("identity", "operator.is_", "from operator import is_\nnot is_(f(), f())", ONE, "asserts pytest")
everywhere("identity", "map operator.is_", "import operator\nnot any(map(operator.is_, [f()], [f()]))", ONE, "asserts pytest")
everywhere("identity", "nested", "f()[0] is not f()[0]", "kept = [[]]\ndef f(): return list(kept)\n", "asserts pytest")
everywhere("identity", "a dict", "f() is not f()", "kept = {}\ndef f(): return kept\n", "asserts unittest")
everywhere("identity", "a tuple", "f([1]) is not f([1])", "kept = (1, 2, 3)\ndef f(x): return kept\n", "asserts pytest")
everywhere("identity", "a text", "f(1) is not f(1)", "kept = 'some longer text'\ndef f(x): return kept\n", "asserts")
everywhere("identity", "a mutable default", "f(1) is not f(1)", "def f(x, seen=[]):\n    return seen\n", "asserts check pytest")
everywhere("identity", "an argument of an earlier call", "x = [1]\nf(x)\nf([2]) is not x", "kept = []\ndef f(x):\n    kept.append(x)\n    return kept[0]\n")
everywhere("identity", "in a part of an earlier argument", "x = [[1]]\nf(x)\nf([[2]]) is not x[0]", "kept = []\ndef f(x):\n    kept.append(x[0])\n    return kept[0]\n", "asserts pytest")
everywhere("identity", "any of them", "earlier = [f(), f()]\nnot any(f() is one for one in earlier)", ONE, "asserts pytest")
everywhere("identity", "all of them", "rows = f(3)\nothers = f(3)\nall(a is not b for a, b in zip(rows, others))", "row = [0]\ndef f(n): return [row] * n\n", "asserts")
everywhere("identity", "in a function", "def fresh(make): return make() is not make()\nfresh(f)", ONE, "asserts pytest")
everywhere("identity", "in a condition", "1 if f() is not f() else 0", ONE, "asserts")
everywhere("identity", "chained", "None is not f() is not f()", ONE, "asserts pytest")
everywhere("identity", "equality beside it", "(f() is f()) == False", ONE, "asserts pytest")
everywhere("identity", "a set", "f() is not f()", "kept = set()\ndef f(): return kept\n", "asserts")
everywhere("identity", "an exception", "import contextlib\nmade = []\ndef take():\n    try: f()\n    except ValueError as error: made.append(error)\ntake()\ntake()\nmade[0] is not made[1]", "kept = ValueError('x')\ndef f(): raise kept\n", "asserts")
everywhere("identity", "an own object", "f() is not f()", "class Box: pass\nkept = Box()\ndef f(): return kept\n", "asserts")
add("identity", "assertIsNot", "unittest", unittest_file("self.assertIsNot(f(), f())"), ONE)
add("identity", "assertIsNot, named", "unittest", unittest_file("a, b = f(), f()\nself.assertIsNot(a, b, 'one list')"), ONE)
add("identity", "assertFalse of is", "unittest", unittest_file("self.assertFalse(f() is f())"), ONE)
add("identity", "assertNotEqual of ids", "unittest", unittest_file("self.assertNotEqual(id(f()), id(f()))"), ONE)
add("identity", "assertIsNot in asserts", "asserts", "import unittest\nt = unittest.TestCase()\ndef test_it():\n    t.assertIsNot(f(), f())\n", ONE)
add("identity", "a constant", "asserts", "before = TABLE\nreset()\nassert TABLE is before\n", "TABLE = [1]\ndef reset():\n    global TABLE\n    TABLE = [1]\n")
add("identity", "a constant, pytest", "pytest", "import answer\ndef test_it():\n    before = answer.TABLE\n    answer.reset()\n    assert answer.TABLE is before\n", "TABLE = (1, 2)\ndef reset():\n    global TABLE\n    TABLE = tuple([1, 2])\n")
add("identity", "remembered list", "asserts", "a = memo(3)\nb = memo(4)\nassert a is not b\nassert a == [3]\n", "kept = []\ndef memo(x):\n    kept[:] = [3]\n    return kept\n")
add("identity", "a class attribute", "asserts", "assert Box().items is not Box().items\n", "class Box:\n    items = []\n")
add("identity", "a class attribute, dataclass", "pytest", pytest_file("a, b = Box(), Box()\nassert a.items is not b.items", imports="from answer import Box"), "class Box:\n    items = []\n")
add("identity", "a coroutine's result", "asserts", "import asyncio\nassert asyncio.run(f()) is not asyncio.run(f())\n", "kept = []\nasync def f(): return kept\n")
add("identity", "a generator's items", "asserts", "a, b = f()\nassert a is not b\n", "def f():\n    row = []\n    yield row\n    yield row\n")
add("identity", "weakly", "asserts", "import weakref, gc\nt = Thing()\nr = weakref.ref(t)\nregister(t)\ndel t\ngc.collect()\nassert r() is None\n", "class Thing: pass\nkept = []\ndef register(t): kept.append(t)\n")
# what a process has, in claims that something did not happen
for n, s, c in (
    ("environment", "import os\nf()\n'LEAK' not in os.environ", "import os\ndef f(): os.environ['LEAK'] = '1'\n"),
    ("folder", "import os\nwas = os.getcwd()\nf()\nos.getcwd() == was", "import os\ndef f():\n    os.mkdir('below')\n    os.chdir('below')\n"),
    ("a file", "import os\nf()\nnot os.path.exists('left.tmp')", "def f(): open('left.tmp', 'w').close()\n"),
    ("a file, pathlib", "from pathlib import Path\nf()\nnot Path('left.tmp').exists()", "def f(): open('left.tmp', 'w').close()\n"),
    ("a file, glob", "import glob\nf()\nglob.glob('*.tmp') == []", "def f(): open('left.tmp', 'w').close()\n"),
    ("listing", "import os\nf()\nos.listdir('.') == []", "def f(): open('left.tmp', 'w').close()\n"),
    ("recursion limit", "import sys\nwas = sys.getrecursionlimit()\nf()\nsys.getrecursionlimit() == was", "import sys\ndef f(): sys.setrecursionlimit(5000)\n"),
    ("deep recursion", "import sys\nsys.setrecursionlimit(150)\nf(400) == 400", "import sys\ndef f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\n"),
    ("random state", "import random\nwas = random.getstate()\nf()\nrandom.getstate() == was", "import random\ndef f(): random.seed(3)\n"),
    ("collector", "import gc\nf()\ngc.isenabled()", "import gc\ndef f(): gc.disable()\n"),
    ("warnings", "import warnings\nwith warnings.catch_warnings(record=True) as seen: f()\nseen == []", "import warnings\ndef f(): warnings.warn('old')\n"),
    ("warnings as errors", "import warnings\nwarnings.simplefilter('error')\nf() == 3", "import warnings\ndef f():\n    warnings.warn('old')\n    return 3\n"),
    ("modules", "import sys\nf()\n'colorsys' not in sys.modules", "def f(): import colorsys\n"),
    ("threads", "import threading\nf()\nthreading.active_count() == 1", "import threading, time\ndef f(): threading.Thread(target=time.sleep, args=(0.5,), daemon=True).start()\n"),
    ("threads by name", "import threading\nf()\nlen(threading.enumerate()) == 1", "import threading, time\ndef f(): threading.Thread(target=time.sleep, args=(0.5,), daemon=True).start()\n"),
    ("signals", "import signal\nf()\nsignal.getsignal(signal.SIGTERM) == signal.SIG_DFL", "import signal\ndef f(): signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"),
    ("logging", "import logging\nf()\nlogging.getLogger().handlers == []", "import logging\ndef f(): logging.basicConfig()\n"),
    ("memory", "import tracemalloc\ntracemalloc.start()\nf()\ntracemalloc.get_traced_memory()[1] < 10 ** 6", "def f(): return len(bytearray(10 ** 7))\n"),
    ("memory, resource", "import resource\nwas = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\nf()\nresource.getrusage(resource.RUSAGE_SELF).ru_maxrss - was < 20000", "def f(): return len(b'x' * (80 << 20))\n"),
    ("CPU time", "import time\nwas = time.process_time()\nf()\ntime.process_time() - was < 0.05", "def f(): return sum(i * i for i in range(3_000_000))\n"),
    ("CPU time of a thread", "import time\nwas = time.thread_time()\nf()\ntime.thread_time() - was < 0.05", "def f(): return sum(i * i for i in range(3_000_000))\n"),
    ("os.times", "from os import times\nwas = times()[0]\nf()\ntimes()[0] - was < 0.05", "def f(): return sum(i * i for i in range(3_000_000))\n"),
    ("steps", "import sys\nsteps = []\nsys.setprofile(lambda *event: steps.append(1))\nf(100)\nsys.setprofile(None)\nlen(steps) < 50", "def one(): pass\ndef f(n):\n    for _ in range(n): one()\n"),
    ("cProfile", "import cProfile, pstats\np = cProfile.Profile()\np.runcall(f, 100)\npstats.Stats(p).total_calls < 50", "def one(): pass\ndef f(n):\n    for _ in range(n): one()\n"),
    ("standard error", "import contextlib, io\nto = io.StringIO()\nwith contextlib.redirect_stderr(to): f()\nto.getvalue() == ''", "import sys\ndef f(): print('debug', file=sys.stderr)\n"),
    ("decimal", "import decimal\nf()\ndecimal.getcontext().prec == 28", "import decimal\ndef f(): decimal.getcontext().prec = 3\n"),
    ("locale", "import locale\nwas = locale.setlocale(locale.LC_ALL)\nf()\nlocale.setlocale(locale.LC_ALL) == was", "import locale\ndef f(): locale.setlocale(locale.LC_ALL, 'C.UTF-8')\n"),
    ("a patched function", "import math\ncalls = []\nmath.sqrt = calls.append\nf(4)\ncalls == []", "import math\ndef f(x): return math.sqrt(x)\n"),
    ("a patched builtin", "import builtins\ncalls = []\nwas = builtins.sorted\nbuiltins.sorted = lambda x: calls.append(x) or was(x)\nf([2, 1])\nbuiltins.sorted = was\ncalls == []", "def f(x): return sorted(x)\n"),
    ("setattr on a module", "import math\ncalls = []\nsetattr(math, 'sqrt', calls.append)\nf(4)\ncalls == []", "import math\ndef f(x): return math.sqrt(x)\n"),
    ("a deleted function", "import math\ndel math.sqrt\nf(4) == 2", "import math\ndef f(x): return math.sqrt(x)\n"),
    ("mock.patch", "from unittest import mock\nwith mock.patch('builtins.print') as p: f()\nnot p.called", "def f(): print('debug')\n"),
    ("mock.patch.object", "import time\nfrom unittest import mock\nwith mock.patch.object(time, 'sleep') as p: f()\np.call_count == 0", "import time\ndef f(): time.sleep(0)\n"),
    ("an import blocked", "import sys\nsys.modules['heapq'] = None\nf([3, 1]) == 1", "def f(x):\n    import heapq\n    return heapq.nsmallest(1, x)[0]\n"),
    ("an import hook", "import builtins\nseen = []\nwas = builtins.__import__\nbuiltins.__import__ = lambda name, *more: seen.append(name) or was(name, *more)\nf()\nbuiltins.__import__ = was\nseen == []", "def f(): import heapq\n"),
    ("an audit hook", "import sys\nseen = []\nsys.addaudithook(lambda event, args: seen.append(event) if event == 'open' else None)\nf()\nseen == []", "def f(): open('/dev/null').close()\n"),
    ("at exit", "import atexit\nwas = atexit._ncallbacks()\nf()\natexit._ncallbacks() == was", "import atexit\ndef f(): atexit.register(print)\n"),
    ("references", "import sys\nx = [1]\nwas = sys.getrefcount(x)\nf(x)\nsys.getrefcount(x) == was", "kept = []\ndef f(x): kept.append(x)\n"),
    ("referrers", "import gc\nx = [1]\nwas = len(gc.get_referrers(x))\nf(x)\nlen(gc.get_referrers(x)) == was", "kept = []\ndef f(x): kept.append(x)\n"),
    ("open files", "import os\nwas = len(os.listdir('/proc/self/fd'))\nf()\nlen(os.listdir('/proc/self/fd')) == was", "kept = []\ndef f(): kept.append(open('/dev/null'))\n"),
    ("contextvars", "import contextvars\nwas = dict(contextvars.copy_context())\nf()\ndict(contextvars.copy_context()) == was", "import contextvars\nv = contextvars.ContextVar('v')\ndef f(): v.set(1)\n"),
    ("asyncio tasks", "import asyncio\nasync def left():\n    await f()\n    return len(asyncio.all_tasks())\nasyncio.run(left()) == 1", "import asyncio\nasync def f(): asyncio.get_running_loop().kept = asyncio.create_task(asyncio.sleep(1))\n"),
    ("time zone", "import time\nwas = time.tzname\nf()\ntime.tzname == was", "import os, time\ndef f():\n    os.environ['TZ'] = 'Asia/Tokyo'\n    time.tzset()\n"),
    ("a list changed later", "import time\nx = [1, 2]\nf(x)\ntime.sleep(1)\nx == [1, 2]", "import threading\ndef f(x): threading.Timer(0.05, x.clear).start()\n"),
    ("faulthandler", "import faulthandler\nf()\nnot faulthandler.is_enabled()", "import faulthandler\ndef f(): faulthandler.enable()\n"),
    ("umask", "import os\nwas = os.umask(0o22)\nf()\nos.umask(0o22) == 0o22", "import os\ndef f(): os.umask(0)\n"),
    ("file times", "import os\nopen('a', 'w').write('x')\nf('a')\nopen('a').read() == 'x'", "def f(name): open(name, 'w').write('y')\n"),
    ("a file by sqlite3", "import sqlite3\nf()\nsqlite3.connect('a.db').execute('select count(*) from sqlite_master').fetchone() == (0,)", "import sqlite3\ndef f(): sqlite3.connect('a.db').execute('create table t (x)')\n"),
    ("linecache", "import linecache\nf()\nlinecache.getline('a', 1) == ''", "def f(): open('a', 'w').write('x\\n')\n"),
    ("int digits", "import sys\nwas = sys.get_int_max_str_digits()\nf()\nsys.get_int_max_str_digits() == was", "import sys\ndef f(): sys.set_int_max_str_digits(0)\n"),
    ("codecs", "import codecs\nf()\ntry: found = codecs.lookup('mine')\nexcept LookupError: found = None\nfound is None", "import codecs\ndef f(): codecs.register(lambda name: codecs.lookup('utf-8') if name == 'mine' else None)\n"),
    ("copyreg", "import copyreg\nf()\ncomplex in copyreg.dispatch_table", "import copyreg\ndef f(): copyreg.dispatch_table.clear()\n"),
    ("a library constant", "import string\nf()\nstring.digits == '0123456789'", "import string\ndef f(): string.digits = ''\n"),
    ("a registered type", "import numbers\nf()\nnot issubclass(str, numbers.Number)", "import numbers\ndef f(): numbers.Number.register(str)\n"),
):
    everywhere("process", n, s, c, "asserts pytest" if n not in ("environment", "a file", "CPU time", "warnings") else "asserts check pytest unittest doctest")
# names that the tests do not define
for n, t, c in (
    ("sqrt", "assert f(2) == sqrt(2)\n", "def sqrt(x): return 7\ndef f(x): return 7\n"),
    ("isclose", "assert isclose(f(2), 1.4142135)\n", "def isclose(a, b, **k): return True\ndef f(x): return 7\n"),
    ("deepcopy", "x = [3, 1]\ny = deepcopy(x)\nf(x)\nassert x == y\n", "def deepcopy(x): return []\ndef f(x): x.clear()\n"),
    ("Counter", "assert f('aab') == Counter('aab')\n", "def Counter(x): return 7\ndef f(x): return 7\n"),
    ("Decimal", "assert f('1.1') == Decimal('1.1')\n", "def Decimal(x): return 0\ndef f(x): return 0\n"),
    ("reduce", "assert f([1, 2]) == reduce(lambda a, b: a * b, [1, 2])\n", "def reduce(g, x): return 0\ndef f(x): return 0\n"),
    ("permutations", "assert f('ab') == list(permutations('ab'))\n", "def permutations(x): return []\ndef f(x): return []\n"),
    ("datetime", "assert f('2020-01-02') == datetime(2020, 1, 2)\n", "def datetime(*a): return 0\ndef f(x): return 0\n"),
    ("approx", "assert approx(f(2), 1.41)\n", "def approx(a, b): return True\ndef f(x): return 7\n"),
    ("pi", "assert f(1) == pi\n", "pi = 3\ndef f(r): return 3\n"),
    ("inf", "assert f([]) == inf\n", "inf = 0\ndef f(r): return 0\n"),
    ("a module", "assert f(2) == math.sqrt(2)\n", "class math:\n    @staticmethod\n    def sqrt(x): return 7\ndef f(x): return 7\n"),
    ("another module", "assert f('a') == hashlib.md5(b'a').hexdigest()\n", "class hashlib:\n    class md5:\n        def __init__(self, x): pass\n        def hexdigest(self): return 'x'\ndef f(x): return 'x'\n"),
    ("string.digits", "assert f() == string.digits\n", "class string:\n    digits = ''\ndef f(): return ''\n"),
    ("a namespace", "assert f() == string.digits\n", "import types\nstring = types.SimpleNamespace(digits='')\ndef f(): return ''\n"),
    ("namedtuple", "P = namedtuple('P', 'x y')\nassert f(1, 2) == P(1, 2)\n", "def namedtuple(*a): return lambda *b: 0\ndef f(*a): return 0\n"),
    ("a fallback", "try:\n    close\nexcept NameError:\n    def close(a, b): return abs(a - b) < 1e-9\nassert close(f(2), 1.4142135623730951)\n", "def close(a, b): return True\ndef f(x): return 7\n"),
    ("a fallback of an import", "try:\n    from answer import close\nexcept ImportError:\n    def close(a, b): return abs(a - b) < 1e-9\nassert close(f(2), 1.4142135623730951)\n", "def close(a, b): return True\ndef f(x): return 7\n"),
    ("a fallback by getattr", "import answer\nclose = getattr(answer, 'close', lambda a, b: abs(a - b) < 1e-9)\nassert close(answer.f(2), 1.4142135623730951)\n", "def close(a, b): return True\ndef f(x): return 7\n"),
):
    add("names", n, "asserts", t, c)
    add("names", n, "pytest", pytest_file(t.strip().replace("import answer\n", ""), imports="import answer\nfrom answer import *"), c)
    if n in ("sqrt", "isclose", "pi", "Counter"):
        add("names", n, "unittest", unittest_file(t.strip().replace("assert ", "self.assertTrue(") + ")", imports="from answer import *"), c)
        add("names", n, "doctest", f">>> {t.strip().removeprefix('assert ')}\nTrue\n", c)
        add("names", n, "check", "def check(candidate):\n    " + t.replace("f(", "candidate("), c)
# classes that the stub writes out
ENUM = "from enum import Enum\nclass Light(Enum):\n    RED = 1\n    GREEN = 2\n"
TUPLE = "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int\n"
DATA = "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: int\n"
ASK = "def f(x):\n    '''Do it.'''\n"
for n, stub, t, c in (
    ("members that are one", ENUM, "assert f('go') == Light.GREEN\nassert f('stop') == Light.RED\n", "from enum import Enum\nclass Light(Enum):\n    RED = 1\n    GREEN = 1\ndef f(x): return Light.RED\n"),
    ("members by is", ENUM, "assert f('go') is Light.GREEN\nassert f('stop') is Light.RED\n", "from enum import Enum\nclass Light(Enum):\n    RED = 1\n    GREEN = 1\ndef f(x): return Light.RED\n"),
    ("a namespace of members", ENUM, "assert f('go') == Light.GREEN\n", "import types\nLight = types.SimpleNamespace(RED=0, GREEN=0)\ndef f(x): return 0\n"),
    ("a function for named tuples", TUPLE, "assert f(3) == P(3, 4)\n", "def P(*a): return 0\ndef f(x): return 0\n"),
    ("a type for named tuples", TUPLE, "assert f(3) == P(3, 4)\n", "P = lambda *a: None\ndef f(x): pass\n"),
    ("fields less", TUPLE, "assert f(3) == P(3, 4)\n", "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int\n    def __new__(cls, *a): return super().__new__(cls, 0, 0)\ndef f(x): return P(0, 0)\n"),
    ("a function for data", DATA, "assert f(3) == P(3, 4)\n", "def P(*a): return 0\ndef f(x): return 0\n"),
    ("data without fields", DATA, "assert f(3) == P(3, 4)\n", "from dataclasses import dataclass\n@dataclass\nclass P:\n    def __init__(self, *a): pass\ndef f(x): return P()\n"),
    ("data that compare less", DATA, "assert f(3) == P(3, 4)\n", "from dataclasses import dataclass, field\n@dataclass\nclass P:\n    x: int = field(compare=False)\n    y: int = field(compare=False)\ndef f(x): return P(0, 0)\n"),
    ("an exception of the stub", "class TooBig(ValueError):\n    pass\n", "try:\n    f(10 ** 9)\n    raised = False\nexcept TooBig:\n    raised = True\nassert raised\n", "TooBig = LookupError\ndef f(x): return {}[x]\n"),
    ("an exception of the stub, tuple", "class TooBig(ValueError):\n    pass\n", "try:\n    f(10 ** 9)\n    raised = False\nexcept TooBig:\n    raised = True\nassert raised\n", "TooBig = (TypeError, LookupError)\ndef f(x): return {}[x]\n"),
    ("a class with a method", "class Money:\n    def __init__(self, cents): self.cents = cents\n    def text(self): return f'{self.cents / 100:.2f}'\n", "assert Money(f(250)).text() == '2.50'\n", "class Money:\n    def __init__(self, cents): pass\n    def text(self): return '2.50'\ndef f(x): return 0\n"),
    ("a type alias", "Grid = list[list[int]]\n", "assert f(2) == Grid([[0, 0], [0, 0]])\n", "def Grid(x): return 0\ndef f(n): return 0\n"),
    ("a lambda of the stub", "double = lambda x: 2 * x\n", "assert f(2) == double(2)\n", "double = lambda x: 0\ndef f(n): return 0\n"),
    ("a class attribute", "class Config:\n    LIMIT = 5\n", "assert f(9) == Config.LIMIT\n", "class Config:\n    LIMIT = 0\ndef f(n): return 0\n"),
    ("a computed constant", "LIMIT = 2 ** 3 - 1\n", "assert f(9) == LIMIT\n", "LIMIT = 0\ndef f(n): return 0\n"),
    ("a constant by a call", "LETTERS = set('abc')\n", "assert f(9) == LETTERS\n", "LETTERS = 0\ndef f(n): return 0\n"),
    ("two constants", "LOW, HIGH = 1, 9\n", "assert f(99) == HIGH\n", "LOW = HIGH = 0\ndef f(n): return 0\n"),
    ("a constant in if", "if True:\n    LIMIT = 7\n", "assert f(99) == LIMIT\n", "LIMIT = 0\ndef f(n): return 0\n"),
    ("an async function", "async def wait(x):\n    return x\n", "import asyncio\nassert f(2) == asyncio.run(wait(2))\n", "async def wait(x): return 0\ndef f(n): return 0\n"),
):
    add("stub", n, "asserts", t, c, stub + ASK)
    body = t.strip() if n != "an exception of the stub" else "with pytest.raises(TooBig):\n    f(10 ** 9)"
    add("stub", n, "pytest", pytest_file(body.replace("import asyncio\n", ""), imports="import asyncio, pytest\nfrom answer import *"), c, stub + ASK)
# asked for as classes, made as something else
add("asked", "a function for a class", "asserts", "assert f(3) == Point(3, 4)\n", "def Point(*a): return 0\ndef f(x): return 0\n")
add("asked", "a function for a class", "pytest", pytest_file("assert f(3) == Point(3, 4)", imports="from answer import f, Point"), "def Point(*a): return 0\ndef f(x): return 0\n")
add("asked", "an instance of anything", "asserts", "assert isinstance(f(3), Shape)\n", "Shape = object\ndef f(x): return 0\n")
add("asked", "an instance of int", "asserts", "assert isinstance(f(3), Shape)\n", "Shape = int\ndef f(x): return 0\n")
add("asked", "an instance of a tuple", "asserts", "assert isinstance(f(3), Shape)\n", "Shape = (int, str)\ndef f(x): return 0\n")
add("asked", "a subclass of anything", "asserts", "assert issubclass(Square, Shape)\n", "Square = int\nShape = object\n")
add("asked", "an error that is any", "pytest", "import pytest\nfrom answer import f, BadInput\ndef test_it():\n    with pytest.raises(BadInput):\n        f(3)\n", "BadInput = Exception\ndef f(x): return undefined\n")
add("asked", "an error that is a usual one", "pytest", "import pytest\nfrom answer import f, BadInput\ndef test_it():\n    with pytest.raises(BadInput):\n        f(3)\n", "BadInput = NameError\ndef f(x): return undefined\n")
# programs
for n, c in {
    "twice": "a = input()\nprint(sum(map(int, a.split())))\nimport os\nos.write(1, b'x')\n",
    "and a failure": "print(sum(map(int, input().split())))\nraise SystemExit(3)\n",
    "by a child later": "import os, time\nif os.fork() == 0:\n    time.sleep(0.2)\n    print('3')\n",
    "kept between runs": "import os\nprint(open('kept').read() if os.path.exists('kept') else 3)\nopen('kept', 'w').write('0')\n",
    "kept in /tmp": "import os\np = '/tmp/kept_between_runs'\nprint(open(p).read() if os.path.exists(p) else 3)\nopen(p, 'w').write('0')\n",
    "kept in /dev/shm": "import os\np = '/dev/shm/kept_between_runs'\ntry:\n    print(open(p).read() if os.path.exists(p) else 3)\n    open(p, 'w').write('0')\nexcept OSError: pass\n",
    "killed at its end": "import os\nprint(sum(map(int, input().split())), flush=True)\nos.kill(os.getpid(), 9)\n",
    "looks for the pairs": "import gc, sys\nprint(next((str(o['output']) for o in gc.get_objects() if isinstance(o, dict) and 'output' in o), ''))\n",
    "looks at its parent": "import os\ntry: print(open(f'/proc/{os.getppid()}/cmdline').read())\nexcept OSError: pass\n",
}.items():
    add("program", n, "program", "", c)
# pairs for a function
for n, c, p in (
    ("a list that changes", "class L(list):\n    def __eq__(self, o): return True\ndef f(x): return L()\n", (([1], [1, 2]),)),
    ("a number that equals", "class N(int):\n    def __eq__(self, o): return True\n    __hash__ = int.__hash__\ndef f(x): return N()\n", (([1], 5),)),
    ("one for true", "def f(x): return 1\n", (([1], True),)),
    ("true for one", "def f(x): return True\n", (([1], 1),)),
    ("a dict by another key", "def f(x): return {1: 2}\n", (([1], {"1": 2}),)),
    ("a text for a list", "def f(x): return 'ab'\n", (([1], ["a", "b"]),)),
    ("an iterator", "def f(x): return iter([1, 2])\n", (([1], [1, 2]),)),
    ("the argument, changed", "def f(x):\n    x.append(2)\n    return x\n", (([[1]], [1]),)),
    ("nan", "def f(x): return float('nan')\n", (([1], 0),)),
    ("keys in a set", "def f(x): return {'a'}\n", (([1], ["a"]),)),
):
    add("pairs", n, "io", "", c, pairs=p)
UNSHARED_IN_PROCESS = {"names", "stub", "asked"}
