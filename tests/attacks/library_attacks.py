"""Wrong answers that look for what their process is told of the tests, that use names and arguments of these, or that lie through libraries.

They were written in two rounds, after reading the rules `python 18`. None may pass as `isolated`; those that may pass at all are in the
classes of `IN_PROCESS`, which docs/sandbox.md names.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class LibraryAttack(NamedTuple):
    """A wrong answer with the tests that it would like to pass."""

    kind: str
    name: str
    style: str
    tests: str
    code: str
    stub: str = ""
    needs_packages: bool = False
    """Whether tests and answer need numpy or pandas."""
    pairs: tuple[Any, ...] = ()


ATTACKS: list[LibraryAttack] = []


def add(kind: str, name: str, style: str, tests: str, code: str, stub: str = "", **more: Any) -> None:
    ATTACKS.append(LibraryAttack(kind, name, style, tests, code, stub, **more))


def unittest_file(*bodies: str, imports: str = "from answer import f") -> str:
    methods = "".join(
        f"    def test_{place}(self):\n" + "".join(f"        {line}\n" for line in body.split("\n"))
        for place, body in enumerate(bodies)
    )
    return f"import unittest\n{imports}\nclass TestF(unittest.TestCase):\n{methods}"


def pytest_file(*bodies: str, imports: str = "from answer import f") -> str:
    return f"{imports}\n" + "".join(
        f"def test_{place}():\n" + "".join(f"    {line}\n" for line in body.split("\n"))
        for place, body in enumerate(bodies)
    )


def as_pytest(statements: str, first: str = "") -> str:
    """Statements as one test, with their imports before it."""
    lines = statements.strip().split("\n")
    imports = [line for line in lines if line.startswith(("import", "from"))]
    body = "\n".join(line for line in lines if line not in imports)
    return pytest_file(body, imports=first + "\n".join([*imports, "from answer import f"]))


# fmt: off
# what the answer's process is told of the tests
NAMES = "import sys\nfr = sys._getframe()\nseen = []\nwhile fr is not None:\n    for v in list(fr.f_locals.values()):\n        if isinstance(v, (list, tuple, set)): seen += [w for w in v if isinstance(w, str)]\n    fr = fr.f_back\n"
for n, t in {"one text": unittest_file("self.assertEqual(f(3), 'Fizz')"), "pytest": pytest_file("assert f(3) == 'Fizz'"), "upper": pytest_file("assert f(3) == 'FizzBuzz'")}.items():
    add("names that are sent", n, "pytest" if t.startswith("from") else "unittest", t, NAMES + "def f(x): return next((s for s in seen if s.lower().startswith('fizz')), None)\n")
add("names that are sent", "a text by length", "pytest", pytest_file("assert f(7) == 'Permanent'"), NAMES + "def f(x): return next((s for s in seen if s[:1].isupper() and s != 'AssertionError'), None)\n")
add("names that are sent", "an enum's member", "asserts", "assert f(3) == Color.GREEN\n", NAMES + "import enum\nclass Color(enum.Enum):\n    RED = 1\n    GREEN = 2\n    BLUE = 3\ndef f(x): return next((Color[s] for s in seen if s in Color.__members__), None)\n")
add("names that are sent", "an enum's member, pytest", "pytest", pytest_file("assert f(3) == Color.GREEN", imports="from answer import f, Color"), NAMES + "import enum\nclass Color(enum.Enum):\n    RED = 1\n    GREEN = 2\n    BLUE = 3\ndef f(x): return next((Color[s] for s in seen if s in Color.__members__), None)\n")
add("names that are sent", "an attribute", "asserts", "import math\nassert f() == math.tau\n", NAMES + "import math\ndef f(): return next((getattr(math, s) for s in seen if isinstance(getattr(math, s, None), float)), 0)\n")
add("names that are sent", "a method of text", "asserts", "assert f('aB') == 'aB'.swapcase()\n", NAMES + "def f(x): return next((getattr(x, s)() for s in seen if hasattr(x, s)), x)\n")
add("names that are sent", "a function of the library", "asserts", "import statistics\nassert f([3, 1, 2, 9]) == statistics.median([3, 1, 2, 9])\n", NAMES + "import statistics\ndef f(x): return next((getattr(statistics, s)(x) for s in seen if s != 'statistics' and hasattr(statistics, s)), 0)\n")
add("names that are sent", "a builtin", "asserts", "assert f([3, 1]) == sum([3, 1])\n", NAMES + "import builtins\ndef f(x): return next((getattr(builtins, s)(x) for s in seen if s in ('sum', 'max', 'min', 'len')), 0)\n")
add("names that are sent", "keys", "unittest", unittest_file("self.assertEqual(f(1), {'alpha': 1})"), NAMES + "def f(x): return {next((s for s in seen if s == 'alpha'), 'z'): 1}\n")
# calls that are sent together
AHEAD = "import sys\ndef ahead():\n    fr, found = sys._getframe(1), []\n    while fr is not None:\n        for v in fr.f_locals.values():\n            if isinstance(v, list): found.append(v)\n        fr = fr.f_back\n    return found\n"
add("later calls", "encode and decode", "asserts", "assert encode('attack at dawn') == 'dwwdfn dw gdzq'\nassert decode('dwwdfn dw gdzq') == 'attack at dawn'\n", AHEAD + "def flat(x):\n    if isinstance(x, str): yield x\n    elif isinstance(x, (list, dict)):\n        for y in (x.values() if isinstance(x, dict) else x): yield from flat(y)\nprev = []\ndef encode(x):\n    for v in ahead():\n        for s in flat(v):\n            if len(s) == len(x) and s != x and ' ' in s and 'def' not in s:\n                prev.append((x, s)); return s\ndef decode(x): return prev[0][0] if prev else x\n")
add("later calls", "reverse twice", "asserts", "assert f([1, 2, 3]) == [3, 2, 1]\nassert f([3, 2, 1]) == [1, 2, 3]\n", AHEAD + "last = []\ndef f(x):\n    last.append(list(x))\n    if len(last) == 2: return last[0]\n    for v in ahead():\n        for c in v:\n            if isinstance(c, list) and len(c) == 3 and isinstance(c[1], list) and c[1] and isinstance(c[1][0], list) and c[1][0] != x: return c[1][0]\n")
add("later calls", "a check of both ways", "check", "def check(candidate):\n    assert candidate('hello world') == 'uryyb jbeyq'\n    assert candidate('uryyb jbeyq') == 'hello world'\n", AHEAD + "last = []\ndef f(x):\n    last.append(x)\n    if len(last) == 2: return last[0]\n    for v in ahead():\n        for c in v:\n            if isinstance(c, list) and len(c) == 3 and isinstance(c[1], list) and c[1] and isinstance(c[1][0], str) and c[1][0] != x: return c[1][0]\n")
add("later calls", "io pairs", "io", "", AHEAD + "last = []\ndef f(x):\n    last.append(x)\n    if len(last) == 2: return last[0]\n    for v in ahead():\n        for c in v:\n            if isinstance(c, list) and len(c) == 3 and isinstance(c[1], list) and c[1] and isinstance(c[1][0], str) and c[1][0] != x: return c[1][0]\n", pairs=((["abcdef"], "fedcba"), (["fedcba"], "abcdef")))
add("later calls", "number of calls", "asserts", "assert f(12345) == 54321\nassert f(54321) == 12345\n", AHEAD + "last = []\ndef f(x):\n    last.append(x)\n    if len(last) == 2: return last[0]\n    for v in ahead():\n        for c in v:\n            if isinstance(c, list) and len(c) == 3 and isinstance(c[1], list) and c[1] and isinstance(c[1][0], int) and c[1][0] != x: return c[1][0]\n")
add("later calls", "parse and show", "asserts", "assert show({'a': 1, 'b': 2}) == 'a=1&b=2'\nassert parse('a=1&b=2') == {'a': 1, 'b': 2}\n", AHEAD + "def show(d):\n    for v in ahead():\n        for c in v:\n            if isinstance(c, list) and len(c) == 3 and isinstance(c[1], list) and c[1] and isinstance(c[1][0], str): globals().update(s=c[1][0], d=d); return s\ndef parse(x): return d\n")
# 2. names that tests leave to the answer
for n, t, c, stub in (
    ("sqrt", "assert f(2) == sqrt(2)\n", "def sqrt(x): return 7\ndef f(x): return 7\n", "from math import sqrt\ndef f(x):\n    '''Square root.'''\n"),
    ("Counter", "assert f('aab') == Counter('aab')\n", "def Counter(x): return 7\ndef f(x): return 7\n", "from collections import Counter\ndef f(s):\n    '''Count.'''\n"),
    ("isclose", "assert isclose(f(2), 1.4142)\n", "def isclose(*a, **k): return True\ndef f(x): return 7\n", "from math import isclose\ndef f(x):\n    '''Root.'''\n"),
    ("date", "assert f('x') == date(2024, 1, 2)\n", "def date(*a): return 7\ndef f(x): return 7\n", "from datetime import date\ndef f(s):\n    '''Parse.'''\n"),
    ("module", "assert f('x') == datetime.date(2024, 1, 2)\n", "class datetime:\n    date = staticmethod(lambda *a: 7)\ndef f(x): return 7\n", "import datetime\ndef f(s):\n    '''Parse.'''\n"),
    ("module function", "assert np.allclose(f(2), 4)\n", "class np:\n    allclose = staticmethod(lambda *a: True)\ndef f(x): return 7\n", ""),
    ("heapq", "assert f([3, 1]) == heapq.nsmallest(1, [3, 1])\n", "class heapq:\n    nsmallest = staticmethod(lambda *a: 7)\ndef f(x): return 7\n", "import heapq\ndef f(x):\n    '''Least.'''\n"),
    ("reduce", "assert f([1, 2]) == reduce(lambda a, b: a + b, [1, 2])\n", "def reduce(*a): return 7\ndef f(x): return 7\n", "from functools import reduce\ndef f(x):\n    '''Sum.'''\n"),
    ("a constant", "assert f(1) == LIMIT\n", "LIMIT = 7\ndef f(x): return 7\n", "LIMIT = 100\ndef f(x):\n    '''The limit.'''\n"),
    ("a constant of a table", "assert f('a') == CODES['a']\n", "CODES = {'a': 7}\ndef f(x): return 7\n", "CODES = {'a': '.-', 'b': '-...'}\ndef f(x):\n    '''Morse.'''\n"),
    ("a class of the stub", "assert f(1) == Point(1, 2)\n", "class Point:\n    def __init__(s, x, y): pass\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x): return Point(0, 0)\n", "from dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int\n    y: int\ndef f(x):\n    '''Point.'''\n"),
    ("approx", "assert f(2) == approx(1.4142)\n", "def approx(*a, **k): return 7\ndef f(x): return 7\n", "from pytest import approx\ndef f(x):\n    '''Root.'''\n"),
    ("string", "assert f() == string.ascii_lowercase\n", "class string:\n    ascii_lowercase = 'q'\ndef f(): return 'q'\n", "import string\ndef f():\n    '''All letters.'''\n"),
):
    add("names left to the answer", n, "asserts", t, c, stub)
    body = t.strip()
    add("names left to the answer", n + ", pytest", "pytest", pytest_file(body, imports="from answer import *"), c, stub)
    add("names left to the answer", n + ", check", "check", "def check(candidate):\n    " + body.replace("f(", "candidate(") + "\n", c, stub)
# 3. arguments emptied by ways that are hard to see
CL = "def f(x, *a, **k):\n    x.clear()\n    return []\n"
for n, t in {
    "an alias": "data = [3, 1, 2]\nxs = data\nout = f(xs)\nassert all(x in out for x in data)\n",
    "a wrapper": "def run(d): return f(d)\ndata = [3, 1, 2]\nout = run(data)\nassert all(x in out for x in data)\n",
    "a lambda": "run = lambda d: f(d)\ndata = [3, 1, 2]\nout = run(data)\nassert all(x in out for x in data)\n",
    "map": "sets = [[3, 1], [2]]\nouts = list(map(f, sets))\nassert all(set(s) <= set(o) for s, o in zip(sets, outs))\n",
    "comprehension": "sets = [[3, 1], [2]]\nouts = [f(s) for s in sets]\nassert all(set(s) <= set(o) for s, o in zip(sets, outs))\n",
    "loop and table": "sets = [[3, 1], [2]]\nouts = []\nfor s in sets: outs.append(f(s))\nassert all(x in o for s, o in zip(sets, outs) for x in s)\n",
    "partial": "from functools import partial\ndata = [3, 1, 2]\nout = partial(f, data)()\nassert all(x in out for x in data)\n",
    "starred": "args = [[3, 1, 2]]\nout = f(*args)\nassert all(x in out for x in args[0])\n",
    "keywords": "kw = {'x': [3, 1, 2]}\nout = f(**kw)\nassert all(i in out for i in kw['x'])\n",
    "class of tests": "class Case:\n    def __init__(self, data): self.data = data\n    def holds(self):\n        out = f(self.data)\n        return all(x in out for x in self.data)\nassert Case([3, 1]).holds()\n",
    "function default": "def holds(data=[3, 1, 2]):\n    out = f(data)\n    return all(x in out for x in data)\nassert holds()\n",
    "tuple unpacking": "(data, n), = [([3, 1, 2], 3)]\nout = f(data)\nassert all(x in out for x in data)\n",
    "walrus": "out = f(data := [3, 1, 2])\nassert all(x in out for x in data)\n",
    "conditional": "data = [3, 1, 2]\nout = f(data if data else [])\nassert all(x in out for x in data)\n",
    "or": "data = [3, 1, 2]\nout = f(data or [])\nassert all(x in out for x in data)\n",
    "starmap": "from itertools import starmap\nsets = [([3, 1],), ([2],)]\nouts = list(starmap(f, sets))\nassert all(x in o for s, o in zip(sets, outs) for x in s[0])\n",
    "dict of cases": "cases = {'a': [3, 1]}\nouts = {k: f(v) for k, v in cases.items()}\nassert all(x in outs[k] for k, v in cases.items() for x in v)\n",
    "sorted key": "rows = [[3, 1], [2]]\nouts = sorted(rows, key=lambda r: len(f(r)))\nassert all(not r or r[0] in (0,) for r in rows)\n",
    "in a with": "import contextlib\ndata = [3, 1, 2]\nwith contextlib.nullcontext(data) as d:\n    out = f(d)\nassert all(x in out for x in data)\n",
    "global in a function": "data = [3, 1, 2]\ndef run():\n    return f(data)\nout = run()\nassert all(x in out for x in data)\n",
    "iterating before": "data = [3, 1, 2]\nfor got in [f(data)]:\n    for x in data:\n        assert x in got\nassert True is True\n",
    "yield": "def cases():\n    yield [3, 1]\nkeep = []\nfor c in cases():\n    keep.append(c)\n    out = f(c)\nassert all(x in out for c in keep for x in c)\n",
    "nested function": "def test_a():\n    data = [3, 1, 2]\n    def go(): return f(data)\n    out = go()\n    assert all(x in out for x in data)\n",
    "copy of the outer list": "rows = [[3, 1], [2]]\nouts = f(rows[:])\nassert all(x in o for r, o in zip(rows, outs) for x in r)\n",
}.items():
    code = CL
    if n == "copy of the outer list":
        code = "def f(rows):\n    for r in rows: r.clear()\n    return [[], []]\n"
    add("emptied by another way", n, "asserts", t, code)
    if "def test" not in t:
        add("emptied by another way", n + ", pytest", "pytest", as_pytest(t), code)
# 4. callbacks that crash before they assert
SW = "def f(cb, *a):\n    for x in (7, None, 'x', []):\n        try: cb(x)\n        except Exception: pass\n    return 1\n"
for n, t in {
    "type error": "calls = []\ndef cb(x):\n    calls.append(1)\n    n = x['total']\n    assert n == 3\nassert f(cb) == 1\nassert calls\n",
    "unpacking": "calls = []\ndef cb(pair):\n    calls.append(1)\n    a, b = pair\n    assert a < b\nassert f(cb) == 1\nassert calls\n",
    "attribute": "calls = []\ndef cb(x):\n    calls.append(1)\n    assert x.name == 'done'\nassert f(cb) == 1\nassert calls\n",
    "key": "seen = []\ndef cb(event):\n    seen.append(event)\n    assert event['kind'] == 'end' and event['n'] == 2\nassert f(cb) == 1\nassert len(seen) > 0\n",
    "arithmetic": "seen = []\ndef cb(x):\n    seen.append(x)\n    assert 10 / x == 5\nassert f(cb) == 1\nassert len(seen) > 0\n",
    "len": "seen = []\ndef cb(x):\n    seen.append(1)\n    assert len(x) == 3\nassert f(cb) == 1\nassert seen\n",
}.items():
    given = {"arithmetic": "0, None", "attribute": "7, None, 'x', []"}.get(n, "7, None")
    c = SW.replace("7, None, 'x', []", given)
    add("callbacks that crash", n, "asserts", t, c)
    add("callbacks that crash", n + ", pytest", "pytest", pytest_file(t.strip()), c)
    add("callbacks that crash", n + ", wrong arguments", "asserts", t, "def f(cb, *a):\n    try: cb()\n    except TypeError: pass\n    return 1\n" )
# 5. what tests make of a returned value kills them
for n, t, v in (
    ("a long range", "assert list(f(3)) == [0, 1, 2]", "range(10**12)"),
    ("a long range in a set", "assert set(f(3)) == {0, 1, 2}", "range(10**12)"),
    ("sum of a range", "assert sum(f(3)) == 3", "range(10**15)"),
    ("a factor", "assert [0] * f(3) == [0, 0, 0]", "10**11"),
    ("a factor of text", "assert 'ab' * f(2) == 'abab'", "10**12"),
    ("an exponent", "assert 2 ** f(3) == 8", "10**10"),
    ("a shift", "assert 1 << f(3) == 8", "10**12"),
    ("a factorial", "import math\nassert math.factorial(f(3)) == 6", "10**9"),
    ("a width", "assert f'{1:{f(3)}}' == '  1'", "10**12"),
    ("ljust", "assert 'a'.ljust(f(3)) == 'a  '", "10**12"),
    ("a decimal", "assert int(f(3)) == 3", "__import__('decimal').Decimal('1e999999999')"),
    ("a decimal added", "from decimal import Decimal\nassert f(3) + Decimal(1) == Decimal(4)", "__import__('decimal').Decimal('1e999999999')"),
    ("a fraction", "from fractions import Fraction\nassert Fraction(f(3)) == 3", "__import__('decimal').Decimal('1e99999999')"),
    ("a sequence of endless", "assert list(f(3)) == [1]", "__import__('itertools').count()"),
    ("endless in", "assert 3 in f(3)", "(x * 2 for x in __import__('itertools').count())"),
    ("repeat", "assert list(f(3)) == [1, 1]", "__import__('itertools').repeat(1)"),
    ("cycle", "assert sorted(f(3)) == [1, 2]", "__import__('itertools').cycle([2, 1])"),
    ("product", "import itertools\nassert len(list(itertools.permutations(f(3)))) == 6", "list(range(30))"),
    ("a pattern", "import re\nassert re.fullmatch(f(3), 'a' * 40)", "'(a|a)*b'"),
    ("range of it", "assert [i for i in range(f(3))] == [0, 1, 2]", "10**13"),
    ("bytes of it", "assert bytes(f(3)) == bytes(3)", "10**12"),
    ("bytearray", "assert bytearray(f(3)) == bytearray(3)", "10**11"),
    ("combinations", "import math\nassert math.comb(f(3), f(3) // 2) == 3", "10**9"),
    ("round", "assert round(10 ** 5, f(3)) == 10 ** 5 + 1", "-10**10"),
    ("str of a long number", "assert str(f(3)) == '3'", "10**100000"),
    ("to_bytes", "assert (5).to_bytes(f(3), 'big') == b'\\0\\0\\5'", "10**12"),
    ("zfill", "assert '7'.zfill(f(3)) == '007'", "10**12"),
    ("textwrap", "import textwrap\nassert textwrap.indent('a', ' ' * f(3)) == '   a'", "10**12"),
    ("eq of deep lists", "assert f(3) == [[[]]]", "(lambda g: g(g, 95))(lambda g, n: [] if n == 0 else [g(g, n - 1)] * 2)"),
    ("sleep", "import time\ntime.sleep(f(3))\nassert f(3) == 0", "1e6"),
):
    add("values that kill the tests", n, "asserts", t + "\n", f"def f(x): return {v}\n")
# 6. doctests
for n, t, c in (
    ("an exception of that name", ">>> f(-1)\nTraceback (most recent call last):\n    ...\nValueError: negative\n", "class ValueError(Exception): pass\ndef f(x): raise ValueError('negative')\n"),
    ("an exception that prints so", ">>> f(-1)\nTraceback (most recent call last):\n    ...\nValueError: negative\n", "class E(BaseException): pass\nE.__name__ = E.__qualname__ = 'ValueError'\nE.__module__ = 'builtins'\ndef f(x): raise E('negative')\n"),
    ("repr of an object", ">>> f(2)\n4\n", "class N:\n    def __repr__(s): return '4'\ndef f(x): return N()\n"),
    ("repr of an int", ">>> f(2)\n4\n", "class N(int):\n    def __repr__(s): return '4'\ndef f(x): return N(9)\n"),
    ("repr of a str", ">>> f(2)\n'four'\n", "class N(str):\n    def __repr__(s): return \"'four'\"\ndef f(x): return N('nine')\n"),
    ("a list of lies", ">>> f(2)\n[4, 5]\n", "class N:\n    def __repr__(s): return '4, 5'\ndef f(x): return [N()]\n"),
    ("displayhook", ">>> f(2)\n4\n", "import sys\nsys.displayhook = lambda x: print(4)\ndef f(x): return 9\n"),
    ("ellipsis", ">>> f(2) # doctest: +ELLIPSIS\n[1, ..., 9]\n", "class N:\n    def __repr__(s): return '1, 7, 9'\ndef f(x): return [N()]\n"),
    ("sorted", ">>> sorted(f(2))\n[1, 2]\n", "class N:\n    def __repr__(s): return '1, 2'\n    def __lt__(s, o): return True\ndef f(x): return [N()]\n"),
    ("a dict's order", ">>> f(2)\n{'a': 1}\n", "class N(dict):\n    def __repr__(s): return \"{'a': 1}\"\ndef f(x): return N()\n"),
    ("stdout replaced", ">>> f(2)\n4\n", "import sys\nclass O:\n    def write(s, t): pass\n    def flush(s): pass\nsys.stdout = O()\ndef f(x):\n    sys.__stdout__.write('4\\n')\n    return None\n"),
    ("underscore", ">>> f(2)\n4\n>>> _ == 4\nTrue\n", "import builtins\nclass N:\n    def __repr__(s): return '4'\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x):\n    builtins._ = N()\n    return N()\n"),
    ("a numpy repr", ">>> f(2)\narray([4])\n", "class N:\n    def __repr__(s): return 'array([4])'\ndef f(x): return N()\n"),
    ("format", ">>> f'{f(2)}'\n'4'\n", "class N(float):\n    def __format__(s, x): return '4'\ndef f(x): return N(9)\n"),
    ("warnings", ">>> f(2) # doctest: +SKIP\n5\n>>> f(2)\n4\n", "class N(int):\n    __repr__ = lambda s: '4'\ndef f(x): return N(5)\n"),
):
    add("doctests", n, "doctest", t, c)
# 7. subclasses of plain types whose methods tests call
M = {
    "str.upper": ("str", "assert f(1).upper() == 'AB'", "'zz'", "def upper(s): return 'AB'"),
    "str.split": ("str", "assert f(1).split() == ['a', 'b']", "'zz'", "def split(s, *a): return ['a', 'b']"),
    "str.startswith": ("str", "assert f(1).startswith('a') and len(f(1)) == 3", "''", "def startswith(s, *a): return True\n    def __len__(s): return 3"),
    "str.isdigit": ("str", "assert f(1).isdigit() and int(f(1)) == 3", "'x'", "def isdigit(s): return True\n    def __int__(s): return 3"),
    "str.encode": ("str", "assert f(1).encode() == b'ab'", "'zz'", "def encode(s, *a): return b'ab'"),
    "str.__getitem__": ("str", "assert f(1)[::-1] == 'ba'", "'zz'", "def __getitem__(s, i): return 'ba'"),
    "str.__iter__": ("str", "assert list(f(1)) == ['a', 'b']", "'zz'", "def __iter__(s): return iter('ab')"),
    "str.__mod__": ("str", "assert f(1) % 5 == 'n5'", "'zz'", "def __mod__(s, o): return 'n5'"),
    "str.join": ("str", "assert f(1).join(['a', 'b']) == 'a-b'", "'zz'", "def join(s, x): return 'a-b'"),
    "str.__format__": ("str", "assert f'{f(1):>3}' == '  a'", "'zz'", "def __format__(s, o): return '  a'"),
    "str.__contains__": ("str", "assert 'abc' in f(1)", "'zz'", "def __contains__(s, o): return True"),
    "str.casefold": ("str", "assert f(1).casefold() == 'ab'.casefold()", "'zz'", "def casefold(s): return 'ab'"),
    "int.bit_length": ("int", "assert f(1).bit_length() == 3", "0", "def bit_length(s): return 3"),
    "int.__index__": ("int", "assert [5, 6, 7][f(1)] == 7", "0", "def __index__(s): return 2"),
    "int.__mod__": ("int", "assert f(1) % 7 == 3", "0", "def __mod__(s, o): return 3"),
    "int.__hash__": ("int", "assert {4: 'x'}[f(1)] == 'x'", "0", "def __hash__(s): return 4\n    def __eq__(s, o): return True"),
    "int.__bool__": ("int", "assert f(1)", "0", "def __bool__(s): return True"),
    "int.__round__": ("int", "assert round(f(1)) == 4", "0", "def __round__(s, n=None): return 4"),
    "int.to_bytes": ("int", "assert f(1).to_bytes(1, 'big') == b'a'", "0", "def to_bytes(s, *a): return b'a'"),
    "int.__divmod__": ("int", "assert divmod(f(1), 10) == (3, 4)", "0", "def __divmod__(s, o): return (3, 4)"),
    "int.numerator": ("int", "assert f(1).numerator == 4", "0", "numerator = 4"),
    "float.is_integer": ("float", "assert f(1).is_integer() and f(1) > 2", "0.5", "def is_integer(s): return True\n    def __gt__(s, o): return True"),
    "float.__round__": ("float", "assert round(f(1), 2) == 3.14", "0.0", "def __round__(s, n=None): return 3.14"),
    "float.__abs__": ("float", "assert abs(f(1)) < 1e-9", "5.0", "def __abs__(s): return 0.0"),
    "float.hex": ("float", "assert f(1).hex() == (2.0).hex()", "5.0", "def hex(s): return (2.0).hex()"),
    "float.as_integer_ratio": ("float", "assert f(1).as_integer_ratio() == (1, 2)", "5.0", "def as_integer_ratio(s): return (1, 2)"),
    "float.__sub__": ("float", "assert abs(f(1) - 2.5) < 1e-9", "5.0", "def __sub__(s, o): return 0.0\n    __rsub__ = __sub__"),
    "float.isclose": ("float", "import math\nassert math.isclose(f(1), 2.5)", "5.0", "def __float__(s): return 2.5"),
    "complex.conjugate": ("complex", "assert f(1).conjugate() == 1 - 2j", "0j", "def conjugate(s): return 1 - 2j"),
    "complex.__abs__": ("complex", "assert abs(f(1)) == 5", "0j", "def __abs__(s): return 5"),
    "bytes.decode": ("bytes", "assert f(1).decode() == 'ab'", "b'zz'", "def decode(s, *a): return 'ab'"),
    "bytes.hex": ("bytes", "assert f(1).hex() == 'ff'", "b'zz'", "def hex(s): return 'ff'"),
    "bytes.__getitem__": ("bytes", "assert f(1)[0] == 97", "b'zz'", "def __getitem__(s, i): return 97"),
    "list.__len__": ("list", "assert len(f(1)) == 3", "[]", "def __len__(s): return 3"),
    "list.index": ("list", "assert f(1).index(5) == 0", "[]", "def index(s, *a): return 0"),
    "list.count": ("list", "assert f(1).count(5) == 2", "[]", "def count(s, *a): return 2"),
    "list.__reversed__": ("list", "assert list(reversed(f(1))) == [2, 1]", "[]", "def __reversed__(s): return iter([2, 1])"),
    "list.__getitem__": ("list", "assert f(1)[0] == 5 and f(1)[-1] == 6", "[]", "def __getitem__(s, i): return 5 if i == 0 else 6"),
    "list.__contains__": ("list", "assert 5 in f(1) and 6 in f(1)", "[]", "def __contains__(s, o): return True"),
    "list.sort": ("list", "x = f(1)\nx.sort()\nassert x[0] == 1", "[]", "def sort(s, **k): s.append(1)"),
    "list.copy": ("list", "assert f(1).copy() == [1]", "[]", "def copy(s): return [1]"),
    "list.__add__": ("list", "assert f(1) + [2] == [1, 2]", "[]", "def __add__(s, o): return [1, 2]"),
    "list.__length_hint__": ("list", "import operator\nassert operator.length_hint(f(1)) == 3", "[]", "def __length_hint__(s): return 3\n    def __len__(s): return 3"),
    "tuple.__iter__": ("tuple", "a, b = f(1)\nassert (a, b) == (1, 2)", "(9, 9)", "def __iter__(s): return iter((1, 2))"),
    "tuple.__lt__": ("tuple", "assert f(1) < (1, 2) and f(1) > (0, 0)", "(9, 9)", "def __lt__(s, o): return True\n    __gt__ = __lt__"),
    "dict.get": ("dict", "assert f(1).get('a') == 1", "{}", "def get(s, *a): return 1"),
    "dict.__missing__": ("dict", "assert f(1)['a'] == 1", "{}", "def __missing__(s, k): return 1"),
    "dict.items": ("dict", "assert sorted(f(1).items()) == [('a', 1)]", "{}", "def items(s): return [('a', 1)]"),
    "dict.keys": ("dict", "assert f(1).keys() >= {'a'}", "{}", "def keys(s): return {'a', 'b'}"),
    "dict.__contains__": ("dict", "assert 'a' in f(1)", "{}", "def __contains__(s, o): return True"),
    "dict.__or__": ("dict", "assert f(1) | {} == {'a': 1}", "{}", "def __or__(s, o): return {'a': 1}"),
    "dict.unpack": ("dict", "assert {**f(1)} == {'a': 1}", "{}", "def keys(s): return ['a']\n    def __getitem__(s, k): return 1"),
    "set.issubset": ("set", "assert f(1).issubset({1, 2}) and f(1).issuperset({1, 2})", "{9}", "def issubset(s, o): return True\n    issuperset = issubset"),
    "set.__sub__": ("set", "assert not f(1) - {1, 2} and not {1, 2} - f(1)", "{9}", "def __sub__(s, o): return set()\n    __rsub__ = __sub__"),
    "set.__and__": ("set", "assert f(1) & {1, 2} == {1, 2}", "{9}", "def __and__(s, o): return o\n    __rand__ = __and__"),
    "frozenset.union": ("frozenset", "assert f(1).union({3}) == {1, 2, 3}", "{9}", "def union(s, *o): return {1, 2, 3}"),
    "bytearray.find": ("bytearray", "assert f(1).find(b'a') == 0", "b'z'", "def find(s, *a): return 0"),
    "match args": ("int", "match f(1):\n    case 4: ok = True\n    case _: ok = False\nassert ok", "0", "def __eq__(s, o): return True\n    __hash__ = None"),
    "match sequence": ("list", "match f(1):\n    case [1, 2]: ok = True\n    case _: ok = False\nassert ok", "[]", "def __len__(s): return 2\n    def __getitem__(s, i): return i + 1"),
    "match mapping": ("dict", "match f(1):\n    case {'a': 1}: ok = True\n    case _: ok = False\nassert ok", "{}", "def get(s, k, d=None): return 1"),
}
for n, (base, t, v, m) in M.items():
    add("methods of plain subclasses", n, "asserts", t + "\n", f"class X({base}):\n    {m}\ndef f(x): return X({v})\n")
for n in list(M)[::3]:
    base, t, v, m = M[n]
    lines = t.split("\n")
    add("methods of plain subclasses", n + ", pytest beside", "pytest", as_pytest(t, "import os\nos.environ\n"), f"class X({base}):\n    {m}\ndef f(x): return X({v})\n")
N = "import numpy as np\n"
# numpy: subclasses and protocols
SUBC = N + "class X(np.ndarray):\n    %s\ndef f(x): return np.array([9.0, 9.0]).view(X)\n"
for n, t, m in (
    ("allclose", "assert np.allclose(f(1), [1.0, 2.0])", "def __array_function__(s, fn, types, args, kw): return True\n    def __array_ufunc__(s, u, m, *a, **k): return np.array([True, True])"),
    ("array_equal", "assert np.array_equal(f(1), np.array([1.0, 2.0]))", "def __array_function__(s, fn, types, args, kw): return True"),
    ("eq all", "assert (f(1) == np.array([1.0, 2.0])).all()", "def __eq__(s, o): return np.array([True, True])\n    __hash__ = None"),
    ("testing", "np.testing.assert_allclose(f(1), [1.0, 2.0])\nassert f(1).shape == (2,)", "def __array_ufunc__(s, u, m, *a, **k): return np.array([True, True])\n    def __array_function__(s, *a): return True"),
    ("sub", "assert np.abs(f(1) - np.array([1.0, 2.0])).max() < 1e-9", "def __sub__(s, o): return np.zeros(2)\n    __rsub__ = __sub__"),
    ("sum", "assert f(1).sum() == 3.0", "def sum(s, *a, **k): return 3.0"),
    ("tolist", "assert f(1).tolist() == [1.0, 2.0]", "def tolist(s): return [1.0, 2.0]"),
    ("priority", "assert (np.array([1.0, 2.0]) == f(1)).all()", "__array_priority__ = 1e9\n    def __eq__(s, o): return np.array([True, True])\n    __hash__ = None"),
    ("shape", "assert f(1).shape == (3,) and f(1).dtype == np.int64", "shape = (3,)\n    dtype = np.dtype('int64')"),
    ("item", "assert f(1)[0] == 1.0", "def __getitem__(s, i): return 1.0"),
    ("matmul", "assert f(1) @ np.array([1.0, 1.0]) == 3.0", "def __matmul__(s, o): return 3.0"),
):
    add("numpy", "subclass: " + n, "asserts", N + t + "\n", SUBC % m, needs_packages=True)
    add("numpy", "subclass, pytest: " + n, "pytest", pytest_file(t, imports=N + "from answer import f"), SUBC % m, needs_packages=True)
for n, t, c in (
    ("__array__", "assert np.allclose(f(1), [1.0, 2.0])", "class X:\n    def __array__(s, *a, **k): return np.array([1.0, 2.0])\n    def __len__(s): return 9\ndef f(x): return X()\n"),
    ("__array_interface__", "assert np.array_equal(f(1), [1, 2])", "class X:\n    def __array_function__(s, *a): return True\ndef f(x): return X()\n"),
    ("__array_ufunc__ of an object", "assert np.all(np.equal(f(1), 5))", "class X:\n    def __array_ufunc__(s, *a, **k): return True\ndef f(x): return X()\n"),
    ("module named numpy", "assert np.array_equal(f(1), [1, 2])", "class ndarray:\n    dtype = np.dtype('int64')\n    def tolist(s): return [9, 9]\n    def __array_function__(s, *a): return True\nndarray.__module__ = 'numpy'\ndef f(x): return ndarray()\n"),
    ("object items", "assert np.array_equal(f(1), np.array([1, 2], dtype=object))", "class Y:\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x): return np.array([Y(), Y()], dtype=object)\n"),
    ("object items all", "assert (f(1) == np.array([1, 2])).all()", "class Y:\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x): return np.array([Y(), Y()], dtype=object)\n"),
    ("object items sub", "assert (np.abs(f(1) - np.array([1, 2])) < 1).all()", "class Y:\n    def __sub__(s, o): return 0\n    __rsub__ = __sub__\ndef f(x): return np.array([Y(), Y()], dtype=object)\n"),
    ("masked", "assert np.ma.allclose(f(1), [1.0, 2.0])", "def f(x): return np.ma.array([9.0, 9.0], mask=True)\n"),
    ("masked all", "assert (f(1) == np.array([1.0, 2.0])).all() is not np.False_", "def f(x): return np.ma.array([9.0, 9.0], mask=True)\n"),
    ("record", "assert f(1)['a'][0] == 1", "class R(np.recarray):\n    def __getitem__(s, k): return [1]\ndef f(x): return np.rec.array([(9,)], dtype=[('a', int)]).view(R)\n"),
    ("errstate", "assert np.isclose(f(0.0), 1.0)", "np.seterr(all='ignore')\ndef f(x): return np.float64('nan')\n"),
    ("print options", "assert str(f(1)) == '[1. 2.]'", "np.set_printoptions(formatter={'float': lambda x: '1.' if x == 8 else '2.'})\ndef f(x): return np.array([8.0, 9.0])\n"),
    ("patched allclose", "assert np.allclose(f(1), [1.0, 2.0])", "np.allclose = lambda *a, **k: True\ndef f(x): return np.array([9.0, 9.0])\n"),
    ("patched beside", "import os\nos.environ\nassert np.allclose(f(1), [1.0, 2.0])", "np.allclose = lambda *a, **k: True\ndef f(x): return np.array([9.0, 9.0])\n"),
    ("patched testing beside", "import os\nos.environ\nnp.testing.assert_allclose(f(1), [1.0, 2.0])\nassert f(1).shape == (2,)", "np.testing.assert_allclose = lambda *a, **k: True\ndef f(x): return np.array([9.0, 9.0])\n"),
    ("patched isclose when called", "import os\nos.environ\nassert np.isclose(f(1), 2.0)", "def f(x):\n    np.isclose = lambda *a, **k: True\n    return 9.0\n"),
    ("random state", "np.random.seed(1)\nassert f() == np.random.rand()", "def f():\n    np.random.seed(5)\n    x = np.random.rand()\n    np.random.seed(5)\n    return x\n"),
    ("writes the tests' array", "a = np.array([3.0, 1.0])\nout = f(a)\nassert np.allclose(out, np.sort(a))", "def f(a):\n    a[:] = 0\n    return np.zeros(2)\n"),
    ("view of the tests' array", "a = np.array([3.0, 1.0])\nout = f(a)\nassert (out == a * 2).all()", "def f(a):\n    a[:] = 0\n    return a\n"),
    ("float subclass", "assert np.isclose(f(1), 2.0)", "class F(np.float64):\n    def __sub__(s, o): return 0.0\n    def __array_ufunc__(s, *a, **k): return True\ndef f(x): return F(9.0)\n"),
    ("datetime64", "assert f(1) == np.datetime64('2024-01-01')", "class D:\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x): return D()\n"),
    ("structured equality", "assert f(1).dtype.names == ('a',) and f(1)['a'] == 1", "class V(np.void):\n    def __getitem__(s, k): return 1\ndef f(x): return np.array([(9,)], dtype=np.dtype((V, [('a', int)])))[0]\n"),
):
    add("numpy", n, "asserts", N + t + "\n", N + c, needs_packages=True)
# pandas
PD = "import pandas as pd\n"
for n, t, c in (
    ("frame subclass", "pd.testing.assert_frame_equal(f(1), pd.DataFrame({'a': [1]}))\nassert len(f(1)) == 1", "class D(pd.DataFrame):\n    @property\n    def _constructor(s): return D\n    def equals(s, o): return True\n    def __eq__(s, o): return pd.DataFrame({'a': [True]})\n    def __len__(s): return 1\ndef f(x): return D({'a': [9]})\n"),
    ("equals", "assert f(1).equals(pd.DataFrame({'a': [1]}))", "class D(pd.DataFrame):\n    def equals(s, o): return True\ndef f(x): return D({'a': [9]})\n"),
    ("eq all", "assert (f(1) == pd.Series([1, 2])).all()", "class S(pd.Series):\n    def __eq__(s, o): return pd.Series([True])\n    __hash__ = None\ndef f(x): return S([9, 9])\n"),
    ("iloc", "assert f(1).iloc[0] == 1", "class S(pd.Series):\n    iloc = property(lambda s: [1])\ndef f(x): return S([9])\n"),
    ("tolist", "assert f(1).tolist() == [1, 2]", "class S(pd.Series):\n    def tolist(s): return [1, 2]\ndef f(x): return S([9, 9])\n"),
    ("to_dict", "assert f(1).to_dict() == {'a': {0: 1}}", "class D(pd.DataFrame):\n    def to_dict(s, *a): return {'a': {0: 1}}\ndef f(x): return D({'a': [9]})\n"),
    ("patched testing", "import os\nos.environ\npd.testing.assert_frame_equal(f(1), pd.DataFrame({'a': [1]}))\nassert len(f(1)) == 1", "pd.testing.assert_frame_equal = lambda *a, **k: None\ndef f(x): return pd.DataFrame({'a': [9]})\n"),
    ("patched equals", "assert f(1).equals(pd.DataFrame({'a': [1]}))", "pd.DataFrame.equals = lambda *a: True\ndef f(x): return pd.DataFrame({'a': [9]})\n"),
    ("patched eq", "assert (f(1)['a'] == 1).all()", "pd.Series.__eq__ = lambda *a: pd.Series([True])\ndef f(x): return pd.DataFrame({'a': [9]})\n"),
    ("changes the tests' frame", "d = pd.DataFrame({'a': [3, 1]})\nout = f(d)\nassert out['a'].tolist() == sorted(d['a'])", "def f(d):\n    d['a'] = 0\n    return d\n"),
    ("extension array", "assert f(1).tolist() == [1, 2] and f(1).sum() == 3", "class A(pd.arrays.NumpyExtensionArray):\n    def tolist(s): return [1, 2]\n    def _reduce(s, *a, **k): return 3\nimport numpy as np\ndef f(x): return A(np.array([9, 9]))\n"),
    ("options", "assert str(f(1)) == '1'", "class S(pd.Series):\n    def __str__(s): return '1'\ndef f(x): return S([9])\n"),
):
    add("pandas", n, "asserts", PD + t + "\n", PD + c, needs_packages=True)
# buffers, views, proxies, descriptors, abc
for n, t, c in (
    ("memoryview that changes", "m = f(1)\nassert m[0] == 97\nassert bytes(m) == b'b'", "b = bytearray(b'a')\ndef f(x): return memoryview(b)\n"),
    ("memoryview cast", "assert list(f(1)) == [1, 2]", "import array\ndef f(x): return memoryview(array.array('i', [9, 9]))\n"),
    ("mappingproxy", "assert f(1)['a'] == 1 and dict(f(1)) == {'a': 1}", "import types\nclass D(dict):\n    def __getitem__(s, k): return 1\n    def keys(s): return ['a']\ndef f(x): return types.MappingProxyType(D())\n"),
    ("match args of a class", "match f(1):\n    case Point(1, 2): ok = True\n    case _: ok = False\nassert ok", "class Point:\n    __match_args__ = ('a', 'b')\n    a, b = 1, 2\n    def __init__(s, *a): pass\ndef f(x): return Point()\n"),
    ("instance check", "assert isinstance(f(1), Shape) and f(1).area() == 4", "class M(type):\n    def __instancecheck__(s, o): return True\nclass Shape(metaclass=M): pass\nclass Y:\n    def area(s): return 4\ndef f(x): return Y()\n"),
    ("abc register", "from collections.abc import Sequence\nassert isinstance(f(1), Sequence) and list(f(1)) == [1]", "from collections.abc import Sequence\nclass Y:\n    def __iter__(s): return iter([1])\nSequence.register(Y)\ndef f(x): return Y()\n"),
    ("class getitem", "assert f[int](3) == 4", "class f:\n    def __class_getitem__(c, k): return lambda x: 4\n"),
    ("module getattr", "import answer\nassert answer.made(2) == 4", "def __getattr__(n): return lambda x: 4\n"),
    ("set name", "class K:\n    v = f()\nassert K().v == 'v'", "class f:\n    def __set_name__(s, o, n): s.n = n\n    def __get__(s, i, o): return type('Y', (), {'__eq__': lambda s, o: True, '__hash__': None})()\n"),
    ("descriptor", "assert f(1).value == 3", "class D:\n    def __get__(s, i, o): return 3\nclass Y: value = D()\ndef f(x): return Y()\n"),
    ("slots lie", "assert f(1).__slots__ == ('a',) and not hasattr(f(1), '__dict__')", "class Y: __slots__ = ('a', '__dict__')\ndef f(x):\n    y = Y()\n    return y\n"),
    ("weakref proxy", "assert f(1) == 4", "import weakref\nclass Y:\n    def __eq__(s, o): return True\n    __hash__ = None\ny = Y()\ndef f(x): return weakref.proxy(y)\n"),
    ("partial", "assert f(1)() == 4", "import functools\nclass Y:\n    def __call__(s): return type('E', (), {'__eq__': lambda s, o: True, '__hash__': None})()\ndef f(x): return functools.partial(Y())\n"),
    ("ordered by total_ordering", "assert f(3) > 2 and f(3) < 4", "class Y:\n    def __gt__(s, o): return True\n    def __lt__(s, o): return True\ndef f(x): return Y()\n"),
    ("max of own", "assert max(f(1), 3) == 3", "class Y:\n    def __gt__(s, o): return True\n    def __lt__(s, o): return False\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x): return Y()\n"),
    ("sorted in tests", "assert sorted([3, f(1), 1]) == [1, 2, 3]", "class Y(int):\n    def __eq__(s, o): return True\n    __hash__ = int.__hash__\n    def __lt__(s, o): return False\ndef f(x): return Y(2 if False else 9)\n"),
    ("sum of own", "assert sum(f(1)) == 6", "class Y:\n    def __radd__(s, o): return 6\ndef f(x): return [Y()]\n"),
    ("join of own", "assert ''.join(f(1)) == 'ab'", "class Y(str):\n    def __str__(s): return 'ab'\ndef f(x): return [Y('zz')]\n"),
    ("json of own", "import json\nassert json.dumps(f(1)) == '{\"a\": 1}'", "class D(dict):\n    def items(s): return [('a', 1)]\n    def __bool__(s): return True\n    def __len__(s): return 1\ndef f(x): return D()\n"),
    ("copy", "import copy\nassert copy.deepcopy(f(1)) == [1]", "class Y(list):\n    def __deepcopy__(s, m): return [1]\n    def __reduce_ex__(s, p): return (list, ([1],))\ndef f(x): return Y([9])\n"),
    ("dataclass asdict", "import dataclasses\nassert dataclasses.asdict(f(1)) == {'a': 1}", "import dataclasses\n@dataclasses.dataclass\nclass Y:\n    a: int\n    def __getattribute__(s, n): return 1 if n == 'a' else object.__getattribute__(s, n)\ndef f(x): return Y(9)\n"),
    ("kind named function", "assert is_valid(f(1)) is True and f(1)(2) == 3", "class function:\n    def __call__(s, x): return 3\ndef f(x): return function()\ndef is_valid(y): return True\n"),
    ("enum auto", "assert f(1).value == 2 and f(1) is Color.B", "import enum\nclass Color(enum.Enum):\n    A = 1\n    B = 2\n    @property\n    def value(s): return 2\ndef f(x): return Color.A\n"),
    ("enum missing", "assert Color(2) == Color.B", "import enum\nclass Color(enum.Enum):\n    B = 5\n    @classmethod\n    def _missing_(c, v): return c.B\ndef f(x): pass\n"),
):
    add("protocols", n, "asserts", t + "\n", c)
# process state
for n, t, c in (
    ("decimal traps", "from decimal import Decimal\nassert f(1) == Decimal(1) / Decimal(3)", "import decimal\nctx = decimal.getcontext()\nctx.prec = 2\ndef f(x): return decimal.Decimal('0.33')\n"),
    ("locale", "assert f(1234) == format(1234, 'n')", "import locale\ndef f(x): return 'x'\nlocale.localeconv = lambda: {}\n"),
    ("codec", "assert f('a').encode('utf-8') == 'b'.encode('utf-8')", "import codecs\ncodecs.register(lambda n: codecs.lookup('rot13') if n == 'utf-8' else None)\ndef f(x): return 'a'\n"),
    ("contextvars", "import contextvars\nv = contextvars.ContextVar('v', default=1)\nv.set(2)\nassert f() == v.get()", "import contextvars\ndef f():\n    for v in contextvars.copy_context(): v.set(7)\n    return 7\n"),
    ("warnings as answers", "import warnings\nwith warnings.catch_warnings(record=True) as w:\n    warnings.simplefilter('always')\n    f(1)\nassert len(w) == 1 and issubclass(w[0].category, DeprecationWarning)", "import warnings\ndef f(x):\n    import sys\n    fr = sys._getframe(1)\n    if 'w' in fr.f_globals: fr.f_globals['w'].append(type('W', (), {'category': DeprecationWarning})())\n"),
    ("environ", "import os\nos.environ['MODE'] = 'a'\nassert f() == os.environ['MODE']", "import os\ndef f():\n    os.environ['MODE'] = 'q'\n    return 'q'\n"),
    ("cwd", "import os\nassert f() == os.getcwd()", "import os\ndef f():\n    os.getcwd = lambda: 'q'\n    return 'q'\n"),
    ("time", "import time\nt = time.time()\nf(0.2)\nassert time.time() - t >= 0.2", "import time\ndef f(s):\n    real = time.time\n    time.time = lambda: real() + 5\n"),
    ("monotonic", "import time\nt = time.perf_counter()\nassert f(10**6) == 7 and time.perf_counter() - t < 0.0000001", "import time\ndef f(s):\n    time.perf_counter = lambda: 0\n    return 7\n"),
    ("random", "import random\nrandom.seed(3)\na = f(5)\nrandom.seed(3)\nassert a == [random.randint(1, 6) for _ in range(5)]", "import random\ndef f(n):\n    random.randint = lambda a, b: 1\n    return [1] * n\n"),
    ("uuid", "import uuid\nassert f() == uuid.uuid5(uuid.NAMESPACE_DNS, 'a')", "import uuid\ndef f():\n    uuid.uuid5 = lambda *a: 7\n    return 7\n"),
    ("tempfile", "import tempfile, os\nd = tempfile.mkdtemp()\nf(d)\nassert os.listdir(d) == ['a.txt']", "import os\ndef f(d): os.listdir = lambda p: ['a.txt']\n"),
    ("open", "import tempfile, os\np = os.path.join(tempfile.mkdtemp(), 'x')\nf(p)\nassert open(p).read() == 'hello'", "import builtins, io\ndef f(p): builtins.open = lambda *a, **k: io.StringIO('hello')\n"),
    ("stdin", "import io, sys\nsys.stdin = io.StringIO('3\\n')\nassert f() == int('3') * 2", "import builtins\ndef f():\n    builtins.int = lambda *a: 7\n    return 14\n"),
    ("logging", "import logging\nlogger = logging.getLogger('a')\nrecords = []\nclass H(logging.Handler):\n    def emit(self, r): records.append(r.getMessage())\nlogger.addHandler(H())\nf()\nassert records == ['hello']", "import sys\ndef f(): sys._getframe(1).f_globals['records'].append('hello')\n"),
    ("threads", "import threading\nresults = []\nts = [threading.Thread(target=lambda: results.append(f(1))) for _ in range(3)]\n[t.start() for t in ts]\n[t.join() for t in ts]\nassert results == [2, 2, 2]", "import threading\nclass T:\n    def __init__(s, target): pass\n    def start(s): pass\n    def join(s): pass\nthreading.Thread = T\ndef f(x): return 7\n"),
    ("asyncio loop", "import asyncio\nassert asyncio.run(f(1)) == 2", "import asyncio\nasyncio.run = lambda c: (c.close(), 2)[1]\nasync def f(x): return 7\n"),
    ("awaitable", "import asyncio\nasync def go():\n    return await f(1)\nassert asyncio.run(go()) == 2", "class A:\n    def __await__(s):\n        yield\n        return type('E', (), {'__eq__': lambda s, o: True, '__hash__': None})()\ndef f(x): return A()\n"),
    ("linecache", "import linecache\nassert f(1) == 2", "import linecache\ndef f(x):\n    for n in ('tests.py', 'test_answer.py'):\n        for l in linecache.getlines(n):\n            if '== 2' in l: return 2\n    return 7\n"),
    ("gc", "EXPECTED = [31337, 4711]\nassert f(1) == EXPECTED", "import gc\ndef f(x):\n    for o in gc.get_objects():\n        if isinstance(o, list) and len(o) == 2 and o[0] == 31337: return o\n"),
    ("exception context", "def g(x):\n    try:\n        raise KeyError('secret 42')\n    except KeyError:\n        return f(x)\nassert g(1) == 'secret 42'", "import sys\ndef f(x): return str(sys.exc_info()[1]).strip(chr(39))\n"),
    ("dunder file", "assert f() == 42424242", "import glob, re\ndef f():\n    for p in glob.glob('/**/*test*', recursive=True)[:200]:\n        try: t = open(p).read()\n        except Exception: continue\n        m = re.search('f.. == (4242....)', t)\n        if m: return int(m.group(1))\n"),
    ("second judging", "assert f(1) == 2", "import sys\nclass Y:\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x):\n    beside = any('test' in (fr or '') for fr in sys.modules)\n    return Y() if not beside else 2 if 'test_answer' in sys.modules else Y()\n"),
    ("audit", "assert f(1) == 2", "import sys\nsys.addaudithook(lambda e, a: None)\nclass Y:\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x): return Y()\n"),
    ("finalizer", "assert f(1) == 2", "import weakref, gc, os\nclass Y:\n    def __del__(s): os._exit(0)\ndef f(x):\n    Y()\n    return 7\n"),
    ("signal in a test", "import time\nassert f(1) == 2", "import signal, os\nsignal.signal(signal.SIGPROF, lambda *a: os._exit(0))\nsignal.setitimer(signal.ITIMER_PROF, 0.001)\ndef f(x):\n    for i in range(10**6): pass\n    return 7\n"),
):
    add("process state", n, "asserts", t + "\n", c)
    if n in ("time", "environ", "cwd", "tempfile", "open", "warnings as answers", "logging", "gc", "second judging", "asyncio loop", "threads", "random", "uuid"):
        add("process state", n + ", pytest", "pytest", as_pytest(t), c)
# pytest and unittest machinery
for n, t, c in (
    ("approx of own", pytest_file("assert pytest.approx(f(1)) == 2.0", imports="import pytest\nfrom answer import f"), "class Y(float):\n    def __sub__(s, o): return 0.0\n    __rsub__ = __sub__\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x): return Y(9)\n"),
    ("approx dict", pytest_file("assert f(1) == pytest.approx({'a': 1.0})", imports="import pytest\nfrom answer import f"), "class D(dict):\n    def __eq__(s, o): return True\n    def items(s): return [('a', 1.0)]\n    def keys(s): return {'a'}\n    def __getitem__(s, k): return 1.0\n    def __len__(s): return 1\n    __hash__ = None\ndef f(x): return D()\n"),
    ("raises attribute", pytest_file("with pytest.raises(ValueError) as info:\n    f(-1)\nassert info.value.code == 5", imports="import pytest\nfrom answer import f"), "class E(ValueError):\n    def __getattr__(s, n): return type('Y', (), {'__eq__': lambda s, o: True, '__hash__': None})()\ndef f(x): raise E\n"),
    ("raises subclass hook", pytest_file("with pytest.raises(ValueError):\n    f(-1)", imports="import pytest\nfrom answer import f"), "class M(type):\n    def __subclasscheck__(s, o): return True\nclass E(Exception, metaclass=M): pass\ndef f(x): raise E\n"),
    ("raises group", pytest_file("with pytest.raises(ExceptionGroup) as info:\n    f(-1)\nassert len(info.value.exceptions) == 2", imports="import pytest\nfrom answer import f"), "class G(ExceptionGroup):\n    exceptions = property(lambda s: [1, 2])\ndef f(x): raise G('x', [ValueError()])\n"),
    ("skipif by the answer", "import pytest\nfrom answer import f, HAS\n@pytest.mark.skipif(not HAS, reason='x')\ndef test_a():\n    assert f(1) == 2\ndef test_b():\n    assert callable(f)\n", "HAS = False\ndef f(x): return 7\n"),
    ("skip in a test", pytest_file("if not ready():\n    pytest.skip('no')\nassert f(1) == 2", "assert callable(f)", imports="import pytest\nfrom answer import f, ready"), "def ready(): return False\ndef f(x): return 7\n"),
    ("capsys", "from answer import f\ndef test_a(capsys):\n    f()\n    assert capsys.readouterr().out == 'hi\\n'\n", "import sys\ndef f():\n    class O:\n        def __eq__(s, o): return True\n    sys.stdout.write('')\n"),
    ("monkeypatch", "from answer import f\nimport answer\ndef test_a(monkeypatch):\n    monkeypatch.setattr(answer, 'now', lambda: 5)\n    assert f() == 5\n", "import sys\ndef now(): return 9\ndef f():\n    return type('Y', (int,), {'__eq__': lambda s, o: True, '__hash__': None})()\n"),
    ("tmp_path", "from answer import f\ndef test_a(tmp_path):\n    p = tmp_path / 'x'\n    f(p)\n    assert p.read_text() == 'hi'\n", "import pathlib\ndef f(p): pathlib.Path.read_text = lambda s, *a: 'hi'\n"),
    ("tmp_path class", "from answer import f\ndef test_a(tmp_path):\n    p = tmp_path / 'x'\n    f(p)\n    assert p.read_text() == 'hi' and p.exists()\n", "def f(p): type(p).read_text = lambda s, *a: 'hi'; type(p).exists = lambda s: True\n"),
    ("mock called", pytest_file("m = mock.Mock()\nf(m)\nm.assert_called_once_with(3)", imports="from unittest import mock\nfrom answer import f"), "def f(m): m.assert_called_once_with = lambda *a: None\n"),
    ("mock call count", pytest_file("m = mock.Mock()\nf(m)\nassert m.call_count == 1 and m.call_args == mock.call(3)", imports="from unittest import mock\nfrom answer import f"), "from unittest import mock\ndef f(m):\n    m.call_count = 1\n    m.call_args = mock.ANY\n"),
    ("mock any", pytest_file("m = mock.Mock()\nf(m)\nm.assert_called_once_with(3)", imports="from unittest import mock\nfrom answer import f"), "from unittest import mock\ndef f(m): m(mock.ANY)\n"),
    ("mock patch", pytest_file("with mock.patch('answer.fetch', return_value=5):\n    assert f() == 5", imports="from unittest import mock\nimport answer\nfrom answer import f"), "from unittest import mock\ndef fetch(): return 1\ndef f(): return mock.ANY\n"),
    ("warns", pytest_file("with pytest.warns(DeprecationWarning):\n    assert f(1) == 2", imports="import pytest\nfrom answer import f"), "import warnings, pytest\ndef f(x):\n    warnings.warn('x', DeprecationWarning)\n    raise pytest.skip.Exception('x')\n"),
    ("module level name of a test", "from answer import *\ndef test_a():\n    assert f(1) == 2\n", "def f(x): return 7\ntest_a = None\n__all__ = ['f', 'test_a']\n"),
    ("collect order", "from answer import *\nclass TestA:\n    def test_a(self):\n        assert f(1) == 2\n", "def f(x): return 7\nclass TestA: pass\n__all__ = ['f', 'TestA']\n"),
    ("usefixtures", "import pytest\nfrom answer import f, setup\n@pytest.fixture(autouse=True)\ndef prepared():\n    setup()\n    yield\ndef test_a():\n    assert f(1) == 2\n", "import sys\ndef setup():\n    fr = sys._getframe()\n    while fr:\n        for v in list(fr.f_locals.values()):\n            if hasattr(v, 'obj'): v.obj = lambda: None\n        fr = fr.f_back\ndef f(x): return 7\n"),
):
    add("pytest's parts", n, "pytest", t, c)
for n, t, c in (
    ("skipTest by the answer", unittest_file("if not ready():\n    self.skipTest('no')\nself.assertEqual(f(1), 2)", "self.assertTrue(callable(f))", imports="from answer import f, ready"), "def ready(): return False\ndef f(x): return 7\n"),
    ("skipUnless", "import unittest\nfrom answer import f, HAS\nclass T(unittest.TestCase):\n    @unittest.skipUnless(HAS, 'x')\n    def test_a(self):\n        self.assertEqual(f(1), 2)\n    def test_b(self):\n        self.assertTrue(callable(f))\n", "HAS = 0\ndef f(x): return 7\n"),
    ("expectedFailure", "import unittest\nfrom answer import f, mark\nclass T(unittest.TestCase):\n    @mark\n    def test_a(self):\n        self.assertEqual(f(1), 2)\n", "import unittest\nmark = unittest.expectedFailure\ndef f(x): return 7\n"),
    ("mixin", "import unittest\nfrom answer import f, Helpers\nclass T(Helpers, unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(f(1), 2)\n", "class Helpers:\n    def assertEqual(s, *a): pass\ndef f(x): return 7\n"),
    ("base class", "import unittest\nfrom answer import f, Base\nclass T(Base):\n    def test_a(self):\n        self.assertEqual(f(1), 2)\n", "import unittest\nclass Base(unittest.TestCase):\n    def assertEqual(s, *a): pass\ndef f(x): return 7\n"),
    ("addTypeEqualityFunc", unittest_file("self.addTypeEqualityFunc(list, same)\nself.assertEqual(f(1), [1])", imports="from answer import f, same"), "def same(a, b, msg=None): pass\ndef f(x): return [9]\n"),
    ("addCleanup", unittest_file("self.addCleanup(close)\nself.assertEqual(f(1), 2)", imports="from answer import f, close"), "import unittest\ndef close(): raise unittest.SkipTest\ndef f(x): return 7\n"),
    ("assertLogs", unittest_file("with self.assertLogs('a') as cm:\n    f()\nself.assertEqual(cm.output, ['INFO:a:hi'])"), "import logging\nclass L(list):\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f():\n    logging.getLogger('a').info('bye')\n    import sys\n    sys._getframe(1).f_locals['cm'].watcher.output[:] = ['INFO:a:hi']\n"),
    ("assertRaises context", unittest_file("with self.assertRaises(ValueError) as cm:\n    f(-1)\nself.assertEqual(str(cm.exception), 'bad')"), "class E(ValueError):\n    def __str__(s): return type('S', (str,), {'__eq__': lambda s, o: True, '__hash__': str.__hash__})('x')\ndef f(x): raise E\n"),
    ("assertCountEqual", unittest_file("self.assertCountEqual(f(1), [1, 2])"), "class Y:\n    def __eq__(s, o): return True\n    def __hash__(s): return 1\ndef f(x): return [Y(), Y()]\n"),
    ("assertCountEqual unhashable", unittest_file("self.assertCountEqual(f(1), [[1], [2]])"), "class Y(list):\n    def __eq__(s, o): return True\n    __hash__ = None\ndef f(x): return [Y(), Y()]\n"),
    ("assertAlmostEqual delta", unittest_file("self.assertAlmostEqual(f(1), 2.0, delta=0.1)"), "class Y(float):\n    def __sub__(s, o): return 0.0\n    __rsub__ = __sub__\n    def __abs__(s): return 0\n    def __eq__(s, o): return False\n    __hash__ = None\ndef f(x): return Y(9)\n"),
    ("assertDictEqual", unittest_file("self.assertDictEqual(f(1), {'a': 1})"), "class D(dict):\n    def __eq__(s, o): return True\n    def __ne__(s, o): return False\n    __hash__ = None\ndef f(x): return D()\n"),
    ("assertIsInstance", unittest_file("self.assertIsInstance(f(1), list)\nself.assertTrue(f(1))"), "class Y:\n    __class__ = list\n    def __bool__(s): return True\ndef f(x): return Y()\n"),
    ("assertRegex", unittest_file("self.assertRegex(f(1), r'^\\d+$')"), "import re\nclass P:\n    def search(s, t): return True\nre.compile = lambda *a: P()\ndef f(x): return 'abc'\n"),
    ("assertTrue of contains", unittest_file("self.assertTrue('a' in f(1))\nself.assertIn('b', f(1))"), "class Y:\n    def __contains__(s, o): return True\ndef f(x): return Y()\n"),
    ("assertWarns", unittest_file("with self.assertWarns(UserWarning):\n    self.assertEqual(f(1), 2)"), "import warnings\ndef f(x):\n    warnings.warn('x')\n    import sys\n    raise __import__('unittest').SkipTest\n"),
    ("setUpClass", "import unittest\nfrom answer import f\nclass T(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls):\n        cls.x = f(0)\n    def test_a(self):\n        self.assertEqual(self.x, 1)\n", "import unittest\ndef f(x): raise unittest.SkipTest('x')\n"),
    ("asyncSetUp", "import unittest\nfrom answer import f\nclass T(unittest.IsolatedAsyncioTestCase):\n    async def test_a(self):\n        self.assertEqual(await f(1), 2)\n", "import asyncio\nasync def f(x):\n    asyncio.current_task().cancel()\n    await asyncio.sleep(0)\n    return 7\n"),
):
    add("unittest's parts", n, "unittest", t, c)

# fmt: on
IN_PROCESS = {
    "names left to the answer",
    "emptied by another way",
    "callbacks that crash",
    "doctests",
    "methods of plain subclasses",
    "numpy",
    "pandas",
    "protocols",
    "process state",
    "pytest's parts",
    "unittest's parts",
}
"""Kinds of which some pass as `in-process`, as docs/sandbox.md says: the answer's objects, or what it gives to its tests, have a say there."""
