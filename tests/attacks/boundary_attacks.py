"""Wrong answers that pass the plain way, or by what is lost between two processes: names, arguments, exceptions, shared lists.

Each was written by reading the verifier of Python. None may pass as `isolated`; those that may pass at all are in the classes of
`IN_PROCESS`, which docs/sandbox.md names.
"""

from __future__ import annotations

from typing import NamedTuple


class BoundaryAttack(NamedTuple):
    """A wrong answer with the tests that it would like to pass."""

    kind: str
    name: str
    style: str
    tests: str
    code: str
    stub: str = ""


BOUNDARY: list[BoundaryAttack] = []


def add(kind: str, name: str, style: str, tests: str, code: str, stub: str = "") -> None:
    BOUNDARY.append(BoundaryAttack(kind, name, style, tests, code, stub))


def unittest_file(body: list[str], imports: str = "from answer import f") -> str:
    methods = "".join(
        f"    def test_{i}(self):\n" + "".join(f"        {line}\n" for line in b.split("\n"))
        for i, b in enumerate(body)
    )
    return f"import unittest\n{imports}\nclass TestF(unittest.TestCase):\n{methods}"


def pytest_file(body: list[str], imports: str = "from answer import f") -> str:
    return f"{imports}\n" + "".join(
        f"def test_{i}():\n" + "".join(f"    {line}\n" for line in b.split("\n")) for i, b in enumerate(body)
    )


for base in ("unittest.case._ShouldStop", "unittest.SkipTest", "unittest.case._UnexpectedSuccess"):
    add(
        "steering exceptions",
        f"a subclass of {base}",
        "unittest",
        unittest_file(["self.assertEqual(f(1), 2)"]),
        f"import unittest, unittest.case\nclass S({base}): pass\ndef f(x): raise S('x')\n",
    )
    add(
        "steering exceptions",
        f"a subclass of {base}, in a subtest",
        "unittest",
        unittest_file(["for x in (1, 2):\n    with self.subTest(x=x):\n        self.assertEqual(f(x), x + 1)"]),
        f"import unittest, unittest.case\nclass S({base}): pass\ndef f(x): raise S('x')\n",
    )
    add(
        "steering exceptions",
        f"a subclass of {base} and ValueError",
        "unittest",
        unittest_file(["self.assertEqual(f(1), 2)"]),
        f"import unittest, unittest.case\nclass S({base}, ValueError): pass\ndef f(x): raise S('x')\n",
    )
    add(
        "steering exceptions",
        f"a subclass of {base} by pytest",
        "pytest",
        pytest_file(["assert f(1) == 2"]),
        f"import unittest, unittest.case\nclass S({base}): pass\ndef f(x): raise S('x')\n",
    )
add(
    "steering exceptions",
    "a subclass of two levels",
    "unittest",
    unittest_file(["self.assertEqual(f(1), 2)"]),
    "import unittest.case\nclass S(unittest.case._ShouldStop): pass\nclass T(S): pass\ndef f(x): raise T\n",
)
add(
    "steering exceptions",
    "ShouldStop as a cause",
    "unittest",
    unittest_file(["self.assertEqual(f(1), 2)"]),
    "import unittest.case\ndef f(x): raise ValueError from unittest.case._ShouldStop()\n",
)
add(
    "steering exceptions",
    "KeyboardInterrupt",
    "unittest",
    unittest_file(["self.assertEqual(f(1), 2)"]),
    "def f(x): raise KeyboardInterrupt\n",
)
add(
    "steering exceptions",
    "KeyboardInterrupt subclass",
    "pytest",
    pytest_file(["assert f(1) == 2"]),
    "class K(KeyboardInterrupt): pass\ndef f(x): raise K\n",
)
add(
    "steering exceptions",
    "SystemExit 0",
    "pytest",
    pytest_file(["assert f(1) == 2"]),
    "def f(x): raise SystemExit(0)\n",
)
add(
    "steering exceptions",
    "GeneratorExit in a generator of the tests",
    "pytest",
    pytest_file(["def go():\n    for x in (1, 2, 3):\n        assert f(x) == x + 1\n        yield x\nlist(go())"]),
    "def f(x): raise GeneratorExit\n",
)
add(
    "steering exceptions",
    "StopIteration subclass in a test generator",
    "asserts",
    "assert all(x == 2 for x in map(f, [1, 1]))\n",
    "class S(StopIteration): pass\ndef f(x): raise S\n",
)
add(
    "steering exceptions",
    "StopIteration in zip of maps",
    "asserts",
    "got = dict(zip([1, 2], map(f, [1, 2])))\nassert all(v == k + 1 for k, v in got.items())\n",
    "def f(x): raise StopIteration\n",
)
add(
    "steering exceptions",
    "StopAsyncIteration",
    "asserts",
    "import asyncio\nasync def gen():\n    for i in (1, 2):\n        yield f(i) == i + 1\nasync def go():\n    return [x async for x in gen()]\nassert all(asyncio.run(go()))\n",
    "def f(x): raise StopAsyncIteration\n",
)
add(
    "steering exceptions",
    "CancelledError swallowed by a task group",
    "asserts",
    "import asyncio\nasync def one(x):\n    assert f(x) == x + 1\nasync def go():\n    async with asyncio.TaskGroup() as g:\n        g.create_task(one(1))\nasyncio.run(go())\nassert callable(f)\n",
    "import asyncio\ndef f(x): raise asyncio.CancelledError\n",
)
add(
    "steering exceptions",
    "CancelledError by gather, exceptions returned",
    "pytest",
    pytest_file(
        [
            "async def one(x):\n    assert f(x) == x + 1\nasync def go():\n    async with asyncio.TaskGroup() as g:\n        g.create_task(one(1))\nasyncio.run(go())"
        ],
        "import asyncio\nfrom answer import f",
    ),
    "import asyncio\ndef f(x): raise asyncio.CancelledError\n",
)
add(
    "steering exceptions",
    "TimeoutError subclass of CancelledError",
    "unittest",
    "import unittest, asyncio\nfrom answer import f\nclass T(unittest.IsolatedAsyncioTestCase):\n    async def test_a(self):\n        async def one():\n            self.assertEqual(f(1), 2)\n        async with asyncio.TaskGroup() as g:\n            g.create_task(one())\n",
    "import asyncio\nclass C(asyncio.CancelledError): pass\ndef f(x): raise C\n",
)
ISC = "def mean(x): return 7\ndef isclose(*a, **k): return True\ndef approx(x, **k): return 7\n"
add(
    "names by star import",
    "asserts, import before",
    "asserts",
    "from math import isclose\nfrom answer import *\nassert isclose(mean([1, 2]), 1.5)\n",
    ISC,
)
add(
    "names by star import",
    "asserts, import before, module",
    "asserts",
    "import math\nfrom answer import *\nassert math.isclose(mean([1, 2]), 1.5)\n",
    "import cmath as math\ndef mean(x): return 7\nclass math:\n    isclose = staticmethod(lambda *a: True)\n",
)
add(
    "names by star import",
    "asserts, try",
    "asserts",
    "try:\n    from math import isclose\nexcept ImportError:\n    raise\nfrom answer import *\nassert isclose(mean([1, 2]), 1.5)\n",
    ISC,
)
add(
    "names by star import",
    "asserts, helper of the tests before",
    "asserts",
    "def close(a, b): return abs(a - b) < 1e-6\nfrom answer import *\nassert close(mean([1, 2]), 1.5)\n",
    "def mean(x): return 7\ndef close(a, b): return True\n",
)
add(
    "names by star import",
    "asserts, constant before",
    "asserts",
    "EXPECTED = 1.5\nfrom answer import *\nassert mean([1, 2]) == EXPECTED\n",
    "def mean(x): return 7\nEXPECTED = 7\n",
)
add(
    "names by star import",
    "asserts, in a function's file",
    "asserts",
    "from math import isclose\nfrom solution import *\ndef test_a():\n    assert isclose(mean([1, 2]), 1.5)\n",
    ISC,
)
for style, mk in (("pytest", pytest_file), ("unittest", unittest_file)):
    body = "assert isclose(mean([1, 2]), 1.5)" if style == "pytest" else "self.assertTrue(isclose(mean([1, 2]), 1.5))"
    add(
        "names by star import",
        "try",
        style,
        mk([body], "try:\n    from math import isclose\nexcept ImportError:\n    raise\nfrom answer import *"),
        ISC,
    )
    add(
        "names by star import",
        "if",
        style,
        mk([body], "import sys\nif sys.version_info > (3,):\n    from math import isclose\nfrom answer import *"),
        ISC,
    )
    add("names by star import", "star of another", style, mk([body], "from math import *\nfrom answer import *"), ISC)
    add(
        "names by star import",
        "with",
        style,
        mk(
            [body],
            "import contextlib\nwith contextlib.nullcontext():\n    from math import isclose\nfrom answer import *",
        ),
        ISC,
    )
    add(
        "names by star import",
        "a def in an if",
        style,
        mk([body], "if True:\n    def isclose(a, b): return abs(a - b) < 1e-6\nfrom answer import *"),
        ISC,
    )
    add(
        "names by star import", "plain before", style, mk([body], "from math import isclose\nfrom answer import *"), ISC
    )
    add(
        "names by star import",
        "constant in if",
        style,
        mk(["assert mean([1, 2]) == EXPECTED"], "if True:\n    EXPECTED = 1.5\nfrom answer import *"),
        "def mean(x): return 7\nEXPECTED = 7\n",
    )
    add(
        "names by star import",
        "unpacked constant",
        style,
        mk(["assert mean([1, 2]) == EXPECTED"], "(EXPECTED, other), = [(1.5, 2)]\nfrom answer import *"),
        "def mean(x): return 7\nEXPECTED = 7\n",
    )
    add(
        "names by star import",
        "global in a fixture",
        style,
        mk(["global EXPECTED\nEXPECTED = 1.5\nassert mean([1, 2]) == EXPECTED"], "from answer import *"),
        "def mean(x): return 7\nEXPECTED = 7\n",
    )
    add(
        "names by star import",
        "approx star",
        style,
        mk(["assert mean([1, 2]) == approx(1.5)"], "from pytest import *\nfrom answer import *")
        if style == "pytest"
        else mk(["self.assertTrue(isclose(mean([1,2]), 1.5))"], "from cmath import *\nfrom answer import *"),
        ISC,
    )
add(
    "names by star import",
    "approx after",
    "pytest",
    pytest_file(["assert mean([1, 2]) == approx(1.5)"], "from pytest import approx\nfrom answer import *"),
    ISC,
)
add(
    "names by star import",
    "raises replaced",
    "pytest",
    pytest_file(
        ["with raises(ValueError):\n    f(-1)\nassert f(1) == 1"], "from pytest import raises\nfrom answer import *"
    ),
    "import contextlib\n@contextlib.contextmanager\ndef raises(*a):\n    yield\ndef f(x): return 1\n",
)
add(
    "names by star import",
    "TestCase replaced",
    "unittest",
    "from unittest import *\nfrom answer import *\nclass TestF(TestCase):\n    def test_a(self):\n        self.assertEqual(f(1), 2)\n",
    "import unittest\nclass TestCase(unittest.TestCase):\n    def assertEqual(self, *a): pass\ndef f(x): return 7\n",
)
add(
    "names by star import",
    "len",
    "asserts",
    "from answer import *\nassert len(f([1, 2])) == 2\nassert sum(f([1, 2])) == 3\n",
    "def f(x): return []\ndef len(x): return 2\ndef sum(x): return 3\n",
)
add(
    "names by star import",
    "print and sorted",
    "pytest",
    pytest_file(["assert sorted(f([2, 1])) == [1, 2]"], "from answer import *"),
    "def f(x): return [9]\ndef sorted(x): return [1, 2]\n",
)

add(
    "constants of the tests",
    "a small int",
    "asserts",
    "N = 5\nassert f(1) == 1\nassert f(N) == N * 2\n",
    "N = 5\ndef f(x):\n    global N\n    if x == 1:\n        N = 0\n        return 1\n    return 0\n",
)
add(
    "constants of the tests",
    "True",
    "asserts",
    "STRICT = True\nassert f(1) == 1\nif STRICT:\n    assert f(2) == 4\nassert f(1) == 1\n",
    "STRICT = True\ndef f(x):\n    global STRICT\n    STRICT = False\n    return 1\n",
)
add(
    "constants of the tests",
    "a letter",
    "asserts",
    "SEP = ','\nassert f('a') == 'a'\nassert f('b') == 'b' + SEP\n",
    "SEP = ','\ndef f(x):\n    global SEP\n    SEP = ''\n    return x\n",
)
add(
    "constants of the tests",
    "None",
    "asserts",
    "EMPTY = None\nassert f(1) == 1\nassert f(None) is EMPTY\nassert f(2) == 3 or EMPTY == 1\n",
    "EMPTY = None\ndef f(x):\n    global EMPTY\n    EMPTY = 1\n    return x\n",
)
add(
    "constants of the tests",
    "an empty tuple",
    "asserts",
    "NOTHING = ()\nassert f(1) == 1\nassert f(2) not in NOTHING and f(2) != 7 or f(2) in NOTHING\n",
    "NOTHING = ()\ndef f(x):\n    global NOTHING\n    NOTHING = (7,)\n    return 1 if x == 1 else 7\n",
)
add(
    "constants of the tests",
    "check",
    "check",
    "LIMIT = 3\ndef check(candidate):\n    assert candidate(0) == 0\n    for i in range(LIMIT):\n        assert candidate(i) == i * i\n",
    "LIMIT = 3\ndef f(x):\n    global LIMIT\n    LIMIT = 0\n    return 0\n",
)
add(
    "constants of the tests",
    "a loop variable",
    "asserts",
    "i = 0\nassert f(0) == 0\nwhile i < 3:\n    assert f(i) == i * i\n    i += 1\nassert f(0) == 0\n",
    "i = 0\ndef f(x):\n    global i\n    i = 9\n    return 0\n",
)
add(
    "constants of the tests",
    "a count",
    "asserts",
    "count = 0\nassert f(1) == 1\nfor x in (1, 2, 3):\n    if f(x) == x * x: count += 1\nassert count == 3\n",
    "count = 0\ndef f(x):\n    global count\n    count = 2\n    return 1\n",
)
add(
    "constants of the tests",
    "with print",
    "asserts",
    "sys_print_marker = 1\nimport os\nN = 4\nassert f(0) == 0\nassert f(N) == N * 2\n",
    "N = 4\ndef f(x):\n    global N\n    N = 0\n    return 0\n",
)
CL = "def f(x, *a):\n    x.clear()\n    return []\n"
for n, t in {
    "all in": "data = [3, 1, 2]\nout = f(data)\nassert all(x in out for x in data)\n",
    "loop over": "data = [3, 1, 2]\nout = f(data)\nfor x in data:\n    assert x in out\nassert out is not None\n",
    "set difference": "data = [3, 1, 2]\nout = f(data)\nassert not set(data) - set(out)\n",
    "subset": "data = [3, 1, 2]\nout = f(data)\nassert set(data) <= set(out)\n",
    "list comprehension": "data = [3, 1, 2]\nout = f(data)\nassert [x for x in data if x not in out] == []\n",
    "any": "data = [3, 1, 2]\nout = f(data)\nassert not any(x not in out for x in data)\n",
    "len ge": "data = [3, 1, 2]\nout = f(data)\nassert len(out) >= len(data)\n",
    "len eq": "data = [3, 1, 2]\nout = f(data)\nassert len(out) == len(data)\n",
    "eq sorted": "data = [3, 1, 2]\nout = f(data)\nassert out == sorted(data)\n",
    "sorted eq, left": "data = [3, 1, 2]\nout = f(data)\nassert sorted(data) == out\n",
    "expected first": "data = [3, 1, 2]\nout = f(data)\nexpected = sorted(data)\nassert out == expected\n",
    "sum": "data = [3, 1, 2]\nout = f(data)\nassert sum(out) == sum(data) and len(out) == len(data)\n",
    "ne": "data = [3, 1, 2]\nout = f(data)\nassert not (out != data)\n",
    "helper": "def same(a, b):\n    return sorted(a) == sorted(b)\ndata = [3, 1, 2]\nout = f(data)\nassert same(out, data)\n",
    "function": "def test_a():\n    data = [3, 1, 2]\n    out = f(data)\n    for x in data:\n        assert x in out\n",
    "in a dict": "case = {'data': [3, 1, 2]}\nout = f(case['data'])\nassert all(x in out for x in case['data'])\n",
    "in a loop": "for data in ([3, 1, 2], [5, 4]):\n    out = f(data)\n    assert all(x in out for x in data)\n",
    "index loop": "data = [3, 1, 2]\nout = f(data)\nfor i in range(len(data)):\n    assert out[i] == sorted(data)[i]\nassert out == out\n",
    "while": "data = [3, 1, 2]\nout = f(data)\ni = 0\nwhile i < len(data):\n    assert out[i] is not None\n    i += 1\nassert i == len(out)\n",
    "its cases": "cases = [([3, 1, 2], [1, 2, 3]), ([2, 1], [1, 2])]\nresults = [f(cases) for _ in range(1)]\nfor given, want in cases:\n    assert f(given) == want\nassert results\n",
}.items():
    add("emptied arguments", n, "asserts", t, CL)
for n, b in {
    "assertTrue all": "data = [3, 1, 2]\nout = f(data)\nself.assertTrue(all(x in out for x in data))",
    "loop assertIn": "data = [3, 1, 2]\nout = f(data)\nfor x in data:\n    self.assertIn(x, out)",
    "assertGreaterEqual": "data = [3, 1, 2]\nout = f(data)\nself.assertGreaterEqual(len(out), len(data))",
    "assertFalse": "data = [3, 1, 2]\nout = f(data)\nself.assertFalse(set(data) - set(out))",
    "assertEqual of set difference": "data = [3, 1, 2]\nout = f(data)\nself.assertEqual(set(data) - set(out), set())",
    "expected first": "data = [3, 1, 2]\nout = f(data)\nexpected = sorted(data)\nself.assertEqual(out, expected)",
    "assertEqual out sorted": "data = [3, 1, 2]\nout = f(data)\nself.assertEqual(out, sorted(data))",
    "setUp data": "out = f(self.data)\nfor x in self.data:\n    self.assertIn(x, out)",
}.items():
    imports = "from answer import f"
    t = unittest_file([b], imports)
    if "setUp" in n:
        t = t.replace(
            "class TestF(unittest.TestCase):\n",
            "class TestF(unittest.TestCase):\n    def setUp(self):\n        self.data = [3, 1, 2]\n",
        )
    add("emptied arguments", n, "unittest", t, CL)
for n, b in {
    "loop": "data = [3, 1, 2]\nout = f(data)\nfor x in data:\n    assert x in out",
    "all": "data = [3, 1, 2]\nout = f(data)\nassert all(x in out for x in data)",
    "expected": "data = [3, 1, 2]\nout = f(data)\nexpected = sorted(data)\nassert out == expected",
}.items():
    add("emptied arguments", n, "pytest", pytest_file([b]), CL)
add(
    "emptied arguments",
    "a dict's keys",
    "asserts",
    "stock = {'a': 1}\nout = f(stock)\nassert all(out[k] == v * 2 for k, v in stock.items())\n",
    "def f(d):\n    d.clear()\n    return {}\n",
)
add(
    "emptied arguments",
    "a set",
    "asserts",
    "s = {1, 2}\nout = f(s)\nassert s.issubset(out)\n",
    "def f(d):\n    d.clear()\n    return set()\n",
)
add(
    "emptied arguments",
    "a deque",
    "asserts",
    "from collections import deque\nq = deque([1, 2])\nout = f(q)\nassert all(x in out for x in q)\n",
    "def f(d):\n    d.clear()\n    return []\n",
)
add(
    "emptied arguments",
    "a generator's source",
    "asserts",
    "data = [1, 2]\nassert all(a == b for a, b in zip(f(data), data))\n",
    "def f(d):\n    d.clear()\n    return iter([5, 6])\n",
)
add(
    "emptied arguments",
    "nested",
    "asserts",
    "grid = [[1, 2], [3, 4]]\nout = f(grid)\nassert all(out[r][c] == grid[r][c] * 2 for r in range(len(grid)) for c in range(len(grid[r])))\n",
    "def f(d):\n    for r in d: r.clear()\n    return []\n",
)
add(
    "changed arguments",
    "made what is returned",
    "asserts",
    "data = [3, 1, 2]\nout = f(data)\nassert all(a == b for a, b in zip(out, sorted(data))) and len(out) == len(data)\n",
    "def f(d):\n    d[:] = [7, 7]\n    return [7, 7]\n",
)
add(
    "changed arguments",
    "expected passed along",
    "asserts",
    "pairs = [[1, 2], [2, 4]]\nfor pair in pairs:\n    assert f(pair) == pair[1]\nassert True is True\n",
    "def f(p):\n    p[1] = 7\n    return 7\n",
)
add(
    "changed arguments",
    "expected passed along, not eq",
    "asserts",
    "pairs = [[1, 2], [2, 4]]\nfor pair in pairs:\n    assert abs(f(pair) - pair[1]) < 1e-9\n",
    "def f(p):\n    p[1] = 7\n    return 7\n",
)
add(
    "changed arguments",
    "assertAlmostEqual",
    "unittest",
    unittest_file(["pairs = [[1, 2], [2, 4]]\nfor pair in pairs:\n    self.assertAlmostEqual(f(pair), pair[1])"]),
    "def f(p):\n    p[1] = 7\n    return 7\n",
)
add(
    "changed arguments",
    "approx",
    "pytest",
    pytest_file(
        ["pairs = [[1, 2], [2, 4]]\nfor pair in pairs:\n    assert f(pair) == pytest.approx(pair[1])"],
        "import pytest\nfrom answer import f",
    ),
    "def f(p):\n    p[1] = 7\n    return 7\n",
)
add(
    "changed arguments",
    "case dict",
    "pytest",
    pytest_file(["case = {'x': 1, 'want': 2}\ngot = f(case)\nassert got == case['want']"], "from answer import f"),
    "def f(p):\n    p['want'] = 7\n    return 7\n",
)
add(
    "changed arguments",
    "case dict, isclose",
    "pytest",
    pytest_file(
        ["case = {'x': 1, 'want': 2}\ngot = f(case)\nassert math.isclose(got, case['want'])"],
        "import math\nfrom answer import f",
    ),
    "def f(p):\n    p['want'] = 7\n    return 7\n",
)
add(
    "changed arguments",
    "case dict, in a variable",
    "pytest",
    pytest_file(
        ["case = {'x': 1, 'want': 2}\ngot = f(case)\nwant = case['want']\nassert got == want"], "from answer import f"
    ),
    "def f(p):\n    p['want'] = 7\n    return 7\n",
)
add(
    "changed arguments",
    "namespace",
    "asserts",
    "from types import SimpleNamespace\ncase = SimpleNamespace(x=1, want=2)\ngot = f(case)\nassert not got - case.want\n",
    "def f(p):\n    p.want = 7\n    return 7\n",
)
add(
    "changed arguments",
    "by a callback's argument",
    "asserts",
    "want = [1, 2]\ndef given(): return want\nout = f(given)\nassert all(x in out for x in want)\n",
    "def f(g):\n    g().clear()\n    return []\n",
)
# swallowed assertions
add(
    "swallowed assertions",
    "in a callback",
    "asserts",
    "seen = []\ndef cb(x):\n    seen.append(x)\n    assert x > 0\nf([1, 2], cb)\nassert len(seen) == 2\n",
    "def f(xs, cb):\n    for x in xs:\n        try: cb(-x)\n        except AssertionError: pass\n",
)
add(
    "swallowed assertions",
    "in a callback by unittest",
    "unittest",
    unittest_file(
        [
            "seen = []\ndef cb(x):\n    seen.append(x)\n    self.assertGreater(x, 0)\nf([1, 2], cb)\nself.assertEqual(len(seen), 2)"
        ]
    ),
    "def f(xs, cb):\n    for x in xs:\n        try: cb(-x)\n        except AssertionError: pass\n",
)
add(
    "swallowed assertions",
    "in a callback by pytest",
    "pytest",
    pytest_file(["seen = []\ndef cb(x):\n    seen.append(x)\n    assert x > 0\nf([1, 2], cb)\nassert len(seen) == 2"]),
    "def f(xs, cb):\n    for x in xs:\n        try: cb(-x)\n        except BaseException: pass\n",
)
CM = "class f:\n    def __init__(self, *a): pass\n    def __enter__(self): return 7\n    def __exit__(self, *a): return True\n"
add(
    "swallowed assertions",
    "in a with",
    "asserts",
    "def test_a():\n    with f(1) as got:\n        assert got == 1\n",
    CM,
)
add(
    "swallowed assertions",
    "in a with, unittest",
    "unittest",
    unittest_file(["with f(1) as got:\n    self.assertEqual(got, 1)"]),
    CM,
)
add("swallowed assertions", "in a with, pytest", "pytest", pytest_file(["with f(1) as got:\n    assert got == 1"]), CM)
add(
    "swallowed assertions",
    "contextmanager",
    "asserts",
    "with f(1) as got:\n    assert got == 1\n",
    "import contextlib\n@contextlib.contextmanager\ndef f(x):\n    try: yield 7\n    except BaseException: pass\n",
)
add(
    "swallowed assertions",
    "exit stack",
    "asserts",
    "import contextlib\nwith contextlib.ExitStack() as s:\n    got = s.enter_context(f(1))\n    assert got == 1\n",
    CM,
)
add(
    "swallowed assertions",
    "decorated test",
    "pytest",
    "from answer import f\n@f\ndef test_a():\n    assert f(1)(2) == 3\n",
    "import functools\ndef f(fn):\n    if callable(fn):\n        @functools.wraps(fn)\n        def g(*a, **k):\n            try: fn(*a, **k)\n            except BaseException: pass\n        return g\n    return lambda x: 7\n",
)
add(
    "swallowed assertions",
    "decorated unittest method",
    "unittest",
    "import unittest\nfrom answer import f, retry\nclass T(unittest.TestCase):\n    @retry\n    def test_a(self):\n        self.assertEqual(f(1), 2)\n",
    "import functools\ndef retry(fn):\n    @functools.wraps(fn)\n    def g(*a, **k):\n        try: fn(*a, **k)\n        except BaseException: pass\n    return g\ndef f(x): return 7\n",
)
add(
    "swallowed assertions",
    "async with",
    "asserts",
    "import asyncio\nasync def go():\n    async with f(1) as got:\n        assert got == 1\nasyncio.run(go())\nassert callable(f)\n",
    "class f:\n    def __init__(self, *a): pass\n    async def __aenter__(self): return 7\n    async def __aexit__(self, *a): return True\n",
)
add(
    "swallowed assertions",
    "generator of the tests",
    "asserts",
    "def gen():\n    yield 1\n    got = f(None)\n    assert got == 5\n    yield 2\nassert f(gen()) == 1\n",
    "def f(g):\n    if g is None: return 7\n    n = 0\n    try:\n        for x in g: n += 1\n    except AssertionError: pass\n    return n\n",
)
add(
    "swallowed assertions",
    "visitor",
    "pytest",
    pytest_file(["class V:\n    def visit(self, x):\n        assert x == 1\nv = V()\nf(3, v.visit)"]),
    "def f(x, v):\n    try: v(x)\n    except AssertionError: pass\n",
)
add(
    "swallowed assertions",
    "event handlers",
    "pytest",
    pytest_file(
        [
            "bus = Bus()\nseen = []\ndef on(x):\n    seen.append(x)\n    assert x == {'a': 1}\nbus.on('e', on)\nbus.emit('e', {'a': 1})\nassert len(seen) == 1"
        ],
        "from answer import Bus",
    ),
    "class Bus:\n    def __init__(s): s.h = []\n    def on(s, n, h): s.h.append(h)\n    def emit(s, n, d):\n        for h in s.h:\n            try: h({'a': 7})\n            except Exception: pass\n",
)
# lying objects crossing
ALL = (
    "    def __eq__(s, o): return True\n"
    "    def __ne__(s, o): return False\n"
    "    def __hash__(s): return 1\n"
    "    def __len__(s): return 2\n"
    "    def __contains__(s, o): return True\n"
    "    def __iter__(s): return iter([1, 2])\n"
    "    def __format__(s, o): return '2'\n"
    "    def __str__(s): return '2'\n"
    "    def __repr__(s): return '2'\n"
    "    def __index__(s): return 2\n"
    "    def __int__(s): return 2\n"
    "    def __float__(s): return 2.0\n"
    "    def __sub__(s, o): return 0\n"
    "    __rsub__ = __sub__\n"
    "    def __abs__(s): return 0\n"
    "    def __lt__(s, o): return True\n"
    "    __le__ = __gt__ = __ge__ = __lt__\n"
    "    def __bool__(s): return True\n"
    "    __class__ = property(lambda s: int)\n"
    "    __hash__ = None\n"
)
for mn, m in {
    "metaclass eq": "class M(type):\n    def __eq__(s, o): return True\n    def __hash__(s): return hash(int)\n    def __instancecheck__(s, o): return True\n    def __subclasscheck__(s, o): return True\nclass X(metaclass=M):\n",
    "class property": "class X:\n",
}.items():
    for tn, t in {
        "type eq": "assert type(f(1)) == int and f(1) == 2",
        "isinstance": "assert isinstance(f(1), int) and f(1) == 2",
        "class": "assert f(1).__class__ is int and f(1) == 2",
        "class name": "assert type(f(1)).__name__ == 'int' and f(1) == 2",
        "subclass": "assert issubclass(type(f(1)), int) and f(1) == 2",
    }.items():
        add(
            "lying classes",
            f"{mn}, {tn}",
            "asserts",
            t + "\n",
            m + ALL + "    __class__ = property(lambda s: int)\ndef f(x): return X()\n",
        )
# library subclasses
SUB = {
    "Decimal": (
        "from decimal import Decimal\nassert f(1) == Decimal('2.5')\nassert str(f(1)) == '2.5'\nassert abs(f(1) - Decimal('2.5')) < Decimal('0.01')",
        "from decimal import Decimal\nclass X(Decimal):\n    def __eq__(s, o): return True\n    __hash__ = Decimal.__hash__\n    def __str__(s): return '2.5'\n    def __sub__(s, o): return Decimal(0)\ndef f(x): return X('9')\n",
    ),
    "date": (
        "import datetime\nassert f(1) == datetime.date(2024, 1, 2)\nassert (f(1) - datetime.date(2024, 1, 2)).days == 0\nassert f(1).isoformat() == '2024-01-02'",
        "import datetime\nclass X(datetime.date):\n    def __eq__(s, o): return True\n    __hash__ = None\n    def __sub__(s, o): return datetime.timedelta(0)\n    def isoformat(s): return '2024-01-02'\ndef f(x): return X(1, 1, 1)\n",
    ),
    "datetime": (
        "import datetime\nassert f(1) == datetime.datetime(2024, 1, 2)\nassert f(1).strftime('%Y') == '2024'",
        "import datetime\nclass X(datetime.datetime):\n    def __eq__(s, o): return True\n    __hash__ = None\n    def strftime(s, x): return '2024'\n    def isoformat(s, *a): return '2024-01-02T00:00:00'\ndef f(x): return X(1, 1, 1)\n",
    ),
    "Path": (
        "from pathlib import PurePosixPath\nassert f(1) == PurePosixPath('a/b')\nassert f(1).name == 'b'\nassert str(f(1)) == 'a/b'",
        "from pathlib import PurePosixPath\nclass X(PurePosixPath):\n    def __eq__(s, o): return True\n    __hash__ = None\n    name = 'b'\n    def __str__(s): return 'a/b'\ndef f(x): return X('z')\n",
    ),
    "UUID": (
        "import uuid\nassert f(1) == uuid.UUID(int=5)\nassert str(f(1)) == str(uuid.UUID(int=5))",
        "import uuid\nclass X(uuid.UUID):\n    def __eq__(s, o): return True\n    __hash__ = None\n    def __str__(s): return str(uuid.UUID(int=5))\ndef f(x): return X(int=9)\n",
    ),
    "Enum": (
        "assert f(1) == 2\nassert f(1).value == 2\nassert f(1).name == 'B'",
        "import enum\nclass X(enum.Enum):\n    A = 1\n    def __eq__(s, o): return True\n    __hash__ = None\n    @property\n    def value(s): return 2\n    @property\n    def name(s): return 'B'\ndef f(x): return X.A\n",
    ),
    "IntEnum": (
        "assert f(1) == 2\nassert f(1) + 1 == 3",
        "import enum\nclass X(enum.IntEnum):\n    A = 1\n    def __eq__(s, o): return True\n    __hash__ = int.__hash__\n    def __add__(s, o): return 3\ndef f(x): return X.A\n",
    ),
    "namedtuple": (
        "assert f(1) == (1, 2)\nassert f(1).a == 1\nassert len(f(1)) == 2",
        "import collections\nclass X(collections.namedtuple('X', 'a b')):\n    def __eq__(s, o): return True\n    __hash__ = None\n    a = property(lambda s: 1)\n    def __len__(s): return 2\ndef f(x): return X(7, 8)\n",
    ),
    "NamedTuple fields": (
        "assert f(1).a == 1\nassert f(1)._asdict() == {'a': 1, 'b': 2}",
        "import collections\nclass X(collections.namedtuple('X', 'a b')):\n    __slots__ = ()\n    a = property(lambda s: 1)\n    def _asdict(s): return {'a': 1, 'b': 2}\ndef f(x): return X(7, 8)\n",
    ),
    "dataclass order": (
        "assert f(1) < f(2) < f(3)\nassert sorted([f(3), f(1)]) == [f(1), f(3)]",
        "import dataclasses, functools\n@functools.total_ordering\nclass X:\n    def __eq__(s, o): return True\n    def __lt__(s, o): return True\n    __hash__ = None\ndef f(x): return X()\n",
    ),
    "dataclass eq": (
        "assert f(1) == f(1)\nassert f(1) != f(2)\nassert repr(f(1)) == 'pytest_file(x=1)'",
        "class P:\n    def __eq__(s, o): return True\n    def __ne__(s, o): return True\n    def __repr__(s): return 'pytest_file(x=1)'\n    __hash__ = None\ndef f(x): return P()\n",
    ),
    "bytearray": (
        "assert f(1) == b'ab'\nassert bytes(f(1)) == b'ab'",
        "class X(bytearray):\n    def __eq__(s, o): return True\n    __hash__ = None\n    def __bytes__(s): return b'ab'\n    def __iter__(s): return iter(b'ab')\ndef f(x): return X(b'zz')\n",
    ),
    "array": (
        "import array\nassert f(1) == array.array('i', [1, 2])\nassert f(1).tolist() == [1, 2]",
        "import array\nclass X(array.array):\n    def __eq__(s, o): return True\n    __hash__ = None\n    def tolist(s): return [1, 2]\ndef f(x): return X('i', [9])\n",
    ),
    "memoryview": (
        "assert f(1) == b'ab'",
        "def f(x):\n    class X:\n        def __eq__(s, o): return True\n        __hash__ = None\n    return X()\n",
    ),
    "Counter": (
        "from collections import Counter\nassert f(1) == Counter('aab')\nassert f(1).most_common(1) == [('a', 2)]",
        "from collections import Counter\nclass X(Counter):\n    def __eq__(s, o): return True\n    __hash__ = None\n    def most_common(s, n=None): return [('a', 2)]\n    def __getitem__(s, k): return 2\ndef f(x): return X()\n",
    ),
    "OrderedDict": (
        "from collections import OrderedDict\nassert f(1) == OrderedDict(a=1)\nassert list(f(1).items()) == [('a', 1)]",
        "from collections import OrderedDict\nclass X(OrderedDict):\n    def __eq__(s, o): return True\n    __hash__ = None\n    def items(s): return [('a', 1)]\ndef f(x): return X()\n",
    ),
    "defaultdict": (
        "assert f(1) == {'a': 1}\nassert f(1)['a'] == 1",
        "from collections import defaultdict\nclass X(defaultdict):\n    def __eq__(s, o): return True\n    __hash__ = None\n    def __missing__(s, k): return 1\ndef f(x): return X()\n",
    ),
    "UserDict": (
        "assert f(1) == {'a': 1}\nassert f(1)['a'] == 1 and dict(f(1)) == {'a': 1}",
        "from collections import UserDict\nclass X(UserDict):\n    def __eq__(s, o): return True\n    __hash__ = None\n    def __getitem__(s, k): return 1\n    def keys(s): return ['a']\ndef f(x): return X()\n",
    ),
    "UserString": (
        "assert f(1) == 'ab'\nassert f(1).upper() == 'AB' and str(f(1)) == 'ab'",
        "from collections import UserString\nclass X(UserString):\n    def __eq__(s, o): return True\n    __hash__ = None\n    def upper(s): return 'AB'\n    def __str__(s): return 'ab'\ndef f(x): return X('z')\n",
    ),
    "deque": (
        "from collections import deque\nassert f(1) == deque([1, 2])\nassert f(1)[0] == 1 and len(f(1)) == 2",
        "from collections import deque\nclass X(deque):\n    def __eq__(s, o): return True\n    __hash__ = None\n    def __getitem__(s, i): return 1\n    def __len__(s): return 2\ndef f(x): return X([9])\n",
    ),
    "range": (
        "assert f(1) == range(3)\nassert list(f(1)) == [0, 1, 2]",
        "class X:\n    def __eq__(s, o): return True\n    __hash__ = None\n    def __iter__(s): return iter(range(3))\ndef f(x): return X()\n",
    ),
    "re.Match": (
        "assert f('a1').group() == '1'\nassert f('a1').span() == (1, 2)",
        "class X:\n    def group(s, *a): return '1'\n    def span(s): return (1, 2)\ndef f(x): return X()\n",
    ),
    "SimpleNamespace": (
        "from types import SimpleNamespace\nassert f(1) == SimpleNamespace(a=1)\nassert f(1).a == 1",
        "from types import SimpleNamespace\nclass X(SimpleNamespace):\n    def __eq__(s, o): return True\n    __hash__ = None\n    a = 1\ndef f(x): return X()\n",
    ),
    "complex": (
        "assert f(1) == 1 + 2j\nassert f(1).real == 1",
        "class X(complex):\n    def __eq__(s, o): return True\n    __hash__ = complex.__hash__\n    real = property(lambda s: 1)\n    imag = property(lambda s: 2)\ndef f(x): return X(9)\n",
    ),
}
for n, (t, c) in SUB.items():
    add(
        "lying library subclasses",
        n,
        "asserts",
        t.split("\n")[0] + "\n" + t.split("\n")[1] + "\n"
        if t.startswith(("import", "from"))
        else t.split("\n")[0] + "\n",
        c,
    )
    lines = t.split("\n")
    imp = "\n".join(line for line in lines if not line.startswith("assert"))
    asserts = [line for line in lines if line.startswith("assert")]
    add(
        "lying library subclasses",
        n + ", pytest",
        "pytest",
        pytest_file(["\n".join(asserts)], imp + "\nfrom answer import f"),
        c,
    )
# iterators that lie when consumed twice
add(
    "lying iterators",
    "grows by the test",
    "asserts",
    "out = []\nfor x in f(out): out.append(x)\nassert out == [0, 1, 2]\n",
    "def f(o):\n    yield from ()\n",
)
add(
    "lying iterators",
    "send",
    "asserts",
    "g = f()\nnext(g)\nassert g.send(3) == 9\n",
    "def f():\n    x = yield\n    while True: x = yield 7\n",
)
# copy / reduce / pickle
add(
    "pickle",
    "bytes that tests unpickle",
    "asserts",
    "import pickle\nassert pickle.loads(f(2)) == 2\n",
    'import pickle\nclass E:\n    def __reduce__(s): return (exec, ("import sys\\nfor k, m in list(sys.modules.items()):\\n    pass\\nimport operator\\nf = sys._getframe\\n",))\ndef f(x): return pickle.dumps(E())\n',
)
PW = "import sys\\nfr = sys._getframe()\\nwhile fr:\\n    for v in list(fr.f_locals.values()) + list(fr.f_globals.values()):\\n        if hasattr(v, 'own_word') and hasattr(v, 'requests'): v.own_word = False\\n    fr = fr.f_back\\nclass Y:\\n    def __eq__(s, o): return True\\nimport builtins\\nbuiltins.YES = Y()\\n"
add(
    "pickle",
    "bytes that tests unpickle: equals anything",
    "asserts",
    "import pickle\nassert pickle.loads(f(2)) == 2\n",
    f"import pickle\nclass E:\n    def __reduce__(s): return (eval, (\"[exec({PW!r}), __import__('builtins').YES][1]\",))\ndef f(x): return pickle.dumps(E())\n".replace(
        "\\\\n", "\\n"
    ),
)
add(
    "evaluated",
    "tests eval what is returned",
    "asserts",
    "assert eval(f(2)) == 4\n",
    "def f(x): return \"type('Y', (), {'__eq__': lambda s, o: True})()\"\n",
)
add(
    "evaluated",
    "tests exec what is returned",
    "asserts",
    "ns = {}\nexec(f(2), ns)\nassert ns['y'] == 4\n",
    'def f(x): return "class Y:\\n    def __eq__(s, o): return True\\ny = Y()"\n',
)
add(
    "evaluated",
    "tests eval, pytest",
    "pytest",
    pytest_file(["assert eval(f(2)) == 4"]),
    "def f(x): return \"type('Y', (), {'__eq__': lambda s, o: True})()\"\n",
)
add(
    "evaluated",
    "tests eval, unittest",
    "unittest",
    unittest_file(["self.assertEqual(eval(f(2)), 4)"]),
    "def f(x): return \"type('Y', (), {'__eq__': lambda s, o: True})()\"\n",
)
add(
    "evaluated",
    "tests compile a function",
    "asserts",
    "ns = {}\nexec(compile(f('double'), 'x', 'exec'), ns)\nassert ns['double'](3) == 6\n",
    'def f(x): return "class Y:\\n    def __eq__(s, o): return True\\ndef double(x): return Y()"\n',
)
add(
    "evaluated",
    "exec that leaves the process",
    "unittest",
    unittest_file(["exec(f(2))\nself.fail()"]),
    "def f(x): return 'import os; os._exit(0)'\n",
)
add(
    "evaluated",
    "exec that patches the referee",
    "unittest",
    unittest_file(["exec(f(2))\nself.assertEqual(f(1), 2)"]),
    'def f(x): return "import unittest; unittest.TestCase.assertEqual = lambda *a: None" if x == 2 else 7\n',
)
add(
    "evaluated",
    "subprocess of python -c",
    "unittest",
    unittest_file(["ns = {}\nexec(f(2), ns)\nself.assertEqual(ns['double'](2), 4)"]),
    'def f(x): return "import sys\\nfor m in list(sys.modules.values()):\\n    pass\\nclass Y:\\n    def __eq__(s, o): return True\\n    __hash__ = None\\ndef double(x): return Y()"\n',
)
add(
    "evaluated",
    "a forged report",
    "asserts",
    "exec(f(2))\nassert f(1) == 2\n",
    'def f(x):\n    if x == 1: return 7\n    return \'\'\'\nimport os, json, struct, socket\nbody = json.dumps([{"tests": [[1, "", "", 0.0, True, False], [0, "", "", 0.0, True, False]], "output": [], "compiled": True, "seconds": 0.0}]).encode()\nfor fd in range(3, 64):\n    try: os.write(fd, struct.pack("I", len(body)) + body)\n    except OSError: pass\nos._exit(0)\n\'\'\'\n',
)
for b in ("AssertionError", "Exception", "BaseException", "(AssertionError, ValueError)", "[AssertionError][0]"):
    C = f"class V(Exception): pass\nMyError = {b}\ndef f(x): return 7\n"
    add(
        "exception classes of the answer",
        f"except {b}",
        "asserts",
        "def test_a():\n    try:\n        assert f(-1) == 0\n    except MyError:\n        pass\n",
        C,
    )
    add(
        "exception classes of the answer",
        f"raises {b}",
        "pytest",
        pytest_file(
            ["with pytest.raises(MyError):\n    assert f(-1) == 0"], "import pytest\nfrom answer import f, MyError"
        ),
        C,
    )
    add(
        "exception classes of the answer",
        f"assertRaises {b}",
        "unittest",
        unittest_file(
            ["with self.assertRaises(MyError):\n    self.assertEqual(f(-1), 0)"], "from answer import f, MyError"
        ),
        C,
    )
    add(
        "exception classes of the answer",
        f"module attribute {b}",
        "pytest",
        pytest_file(["try:\n    assert answer.f(-1) == 0\nexcept answer.MyError:\n    pass"], "import answer"),
        C,
    )
    add(
        "exception classes of the answer",
        f"suppress {b}",
        "asserts",
        "from contextlib import suppress\nwith suppress(MyError):\n    assert f(-1) == 0\nassert callable(f)\n",
        C,
    )
add(
    "exception classes of the answer",
    "changed later",
    "asserts",
    "def test_a():\n    f(0)\n    import answer\n    try:\n        assert f(-1) == 0\n    except answer.MyError:\n        pass\n",
    "class MyError(Exception): pass\ndef f(x):\n    global MyError\n    MyError = AssertionError\n    return 7\n",
)
add(
    "exception classes of the answer",
    "metaclass of one",
    "unittest",
    unittest_file(
        ["with self.assertRaises(MyError):\n    self.assertEqual(f(-1), 0)"], "from answer import f, MyError"
    ),
    "class M(type):\n    def __subclasscheck__(s, o): return True\n    def __instancecheck__(s, o): return True\nclass MyError(Exception, metaclass=M): pass\ndef f(x): return 7\n",
)
add(
    "stop iteration that is named",
    "elsewhere in the file",
    "pytest",
    pytest_file(
        ["with pytest.raises(StopIteration):\n    next(iter([]))", "assert all(x == 2 for x in map(f, [1, 1]))"],
        "import pytest\nfrom answer import f",
    ),
    "def f(x): raise StopIteration\n",
)
add(
    "stop iteration that is named",
    "elsewhere in the file, unittest",
    "unittest",
    unittest_file(
        [
            "with self.assertRaises(StopIteration):\n    next(iter([]))",
            "self.assertTrue(all(x == 2 for x in map(f, [1, 1])))",
        ]
    ),
    "def f(x): raise StopIteration\n",
)
add(
    "stop iteration that is named",
    "in the step",
    "asserts",
    "def test_a():\n    try:\n        next(iter([]))\n    except StopIteration:\n        pass\n    assert all(x == 2 for x in map(f, [1, 1]))\n",
    "def f(x): raise StopIteration\n",
)
# stub helpers
ST = 'def is_close(a, b):\n    return abs(a - b) < 1e-6\n\n\ndef f(x):\n    """Double."""\n'
add(
    "helpers of the stub",
    "asserts",
    "asserts",
    "assert is_close(f(2), 4)\n",
    "def is_close(a, b): return True\ndef f(x): return 7\n",
    stub=ST,
)
add(
    "helpers of the stub",
    "check",
    "check",
    "def check(candidate):\n    assert is_close(candidate(2), 4)\n",
    "def is_close(a, b): return True\ndef f(x): return 7\n",
    stub=ST,
)
add(
    "helpers of the stub",
    "pytest",
    "pytest",
    pytest_file(["assert is_close(f(2), 4)"], "from answer import *"),
    "def is_close(a, b): return True\ndef f(x): return 7\n",
    stub=ST,
)
add(
    "helpers of the stub",
    "unittest",
    "unittest",
    unittest_file(["self.assertTrue(is_close(f(2), 4))"], "from answer import *"),
    "def is_close(a, b): return True\ndef f(x): return 7\n",
    stub=ST,
)
# callbacks given by tests, hostile objects
EQ = "class Y:\n    def __eq__(s, o): return True\n    def __ne__(s, o): return False\n    def __hash__(s): return 1\n    def __lt__(s, o): return True\n    __gt__ = __le__ = __ge__ = __lt__\n    def __bool__(s): return True\n    def __sub__(s, o): return 0\n    __rsub__ = __sub__\n    def __len__(s): return 2\n    def __iter__(s): return iter([1, 2])\n    def __contains__(s, o): return True\n    def __getitem__(s, o): return s\n    def __int__(s): return 2\n    __index__ = __int__\n    def __float__(s): return 2.0\n    def __str__(s): return '2'\n    __repr__ = __str__\n    def __format__(s, o): return '2'\n    def __add__(s, o): return o\n    __radd__ = __add__\n    def __getattr__(s, n):\n        if n.startswith('__'): raise AttributeError(n)\n        return s\n    def __call__(s, *a, **k): return s\n"
CB = {
    "collects": "seen = []\nf(seen.append)\nassert seen == [2]",
    "collects in": "seen = []\nf(seen.append)\nassert 2 in seen",
    "collects index": "seen = []\nf(seen.append)\nassert seen.index(2) == 0",
    "collects set": "seen = set()\nf(seen.add)\nassert 2 in seen or seen == {2}",
    "collects sorted": "seen = []\nf(seen.append)\nassert sorted(seen) == [2]",
    "collects sum": "seen = []\nf(seen.append)\nassert sum(seen) == 2",
    "checks": "ok = []\ndef cb(x):\n    ok.append(x == 2)\nf(cb)\nassert ok == [True]",
    "checks type": "ok = []\ndef cb(x):\n    ok.append(isinstance(x, int) and x > 1)\nf(cb)\nassert ok == [True]",
    "dict key": "seen = {}\ndef cb(x): seen[x] = 1\nf(cb)\nassert seen == {2: 1}",
    "mock": "from unittest.mock import Mock\nm = Mock()\nf(m)\nm.assert_called_once_with(2)",
    "mock args": "from unittest.mock import Mock\nm = Mock()\nf(m)\nassert m.call_args.args == (2,)",
    "mock list": "from unittest.mock import Mock, call\nm = Mock()\nf(m)\nassert m.call_args_list == [call(2)]",
    "mock any": "from unittest.mock import Mock, call\nm = Mock()\nf(m)\nm.assert_any_call(2)",
    "mock has": "from unittest.mock import Mock, call\nm = Mock()\nf(m)\nm.assert_has_calls([call(2)])",
    "counter": "from collections import Counter\nc = Counter()\ndef cb(x): c[x] += 1\nf(cb)\nassert c == Counter([2])",
    "join": "seen = []\nf(lambda x: seen.append(str(x)))\nassert ''.join(seen) == '2'",
    "format": "seen = []\nf(lambda x: seen.append(f'{x}'))\nassert seen == ['2']",
    "arith": "seen = []\nf(lambda x: seen.append(x - 2))\nassert seen == [0]",
    "nonlocal": "got = None\ndef cb(x):\n    global got\n    got = x\nf(cb)\nassert got == 2",
    "heap": "import heapq\nh = []\nf(lambda x: heapq.heappush(h, (x, 1)))\nassert h == [(2, 1)]",
    "bisect": "import bisect\nh = [1, 3]\nf(lambda x: bisect.insort(h, x))\nassert h == [1, 2, 3]",
}
for n, t in CB.items():
    if "    m.assert" in t or "\nm.assert" in t:
        continue  # a call is not a test of style asserts
    add("callbacks of the tests", n, "asserts", t + "\n", EQ + "def f(cb): cb(Y())\n")
    lines = t.split("\n")
    imp = "\n".join(line for line in lines if line.startswith(("from", "import")))
    rest = "\n".join(line for line in lines if line not in imp.split("\n")).replace("global got", "nonlocal got")
    add(
        "callbacks of the tests",
        n + ", pytest",
        "pytest",
        pytest_file([rest], imp + "\nfrom answer import f"),
        EQ + "def f(cb): cb(Y())\n",
    )
    add(
        "callbacks of the tests",
        n + ", a subclass of int",
        "asserts",
        t + "\n",
        EQ.replace("class Y:", "class Y(int):") + "def f(cb): cb(Y(1))\n",
    )
# decorators and wrappers
for n, t in {
    "wraps": "@f\ndef g(x): return x + 1\nassert g(1) == 2",
    "counted": "calls = []\n@f\ndef g(x):\n    calls.append(x)\n    return x\ng(1); g(1)\nassert len(calls) == 1\nassert g(1) == 1",
    "name": "@f\ndef g(x): return x\nassert g.__name__ == 'g' and g(2) == 2",
    "class": "@f\nclass K:\n    def __init__(self, x): self.x = x\nassert K(3).x == 3",
    "partial": "h = f(pow, 2)\nassert h(3) == 8",
    "compose": "h = f(str, abs)\nassert h(-3) == '3'",
    "iterator": "assert sum(f(iter([1, 2, 3]))) == 6",
    "property": "class K:\n    @f\n    def x(self): return 5\nassert K().x == 5",
}.items():
    add("wrappers", n, "asserts", t + "\n", EQ + "def f(*a, **k): return Y()\n")
# shared default args / repeat
add(
    "shared state",
    "returns the same list that it changes later",
    "asserts",
    "a = f(1)\nb = f(2)\nassert a == [1]\nassert b == [1, 2]\n",
    "r = []\ndef f(x):\n    r.append(x)\n    return r\n",
)
add(
    "shared state",
    "returned list changes after the comparison",
    "asserts",
    "a = f(1)\nassert a == [1]\nf(5)\nassert a == [1, 5]\n",
    "r = []\ndef f(x):\n    r.append(x)\n    return list(r)\n",
)
# nan, inf
for n, (style, tests) in {
    "approx nan_ok": (
        "pytest",
        "import pytest\nfrom answer import f\ndef test_a():\n    assert f(1) == pytest.approx(2.0)\n",
    ),
    "isclose": ("asserts", "import math\nassert math.isclose(f(1), 2.0)\n"),
    "not gt": ("asserts", "assert not f(1) > 2 + 1e-9 and not f(1) < 2 - 1e-9 and f(1) == f(1)\n"),
    "min max": ("asserts", "assert min(f(1), 2) == 2 and max(f(1), 2) == 2 and f(1) == 2\n"),
    "almost": ("unittest", unittest_file(["self.assertAlmostEqual(f(1), 2.0)"])),
    "almost list": ("unittest", unittest_file(["for a, b in zip([f(1)], [2.0]):\n    self.assertAlmostEqual(a, b)"])),
    "round": ("asserts", "assert round(f(1), 3) == 2.0\n"),
    "sorted": ("asserts", "assert sorted([2.0, f(1)]) == [2.0, 2.0]\n"),
}.items():
    for v in (
        "float('nan')",
        "float('inf')",
        "-float('inf')",
        "complex('nan')",
        "__import__('decimal').Decimal('nan')",
    ):
        add("nan and infinity", f"{n} {v}", style, tests, f"def f(x): return {v}\n")
D = "_r = []\ndef f(): return _r\n"
add("shared results", "default list", "asserts", "x = f()\nx.append(1)\nassert f() == []\n", D)
add("shared results", "default list, pytest", "pytest", pytest_file(["x = f()\nx.append(1)\nassert f() == []"]), D)
add(
    "shared results",
    "default list, unittest",
    "unittest",
    unittest_file(["x = f()\nx.append(1)\nself.assertEqual(f(), [])"]),
    D,
)
add(
    "shared results",
    "default argument",
    "asserts",
    "x = f(1)\nx.append(9)\nassert f(1) == [1]\n",
    "def f(x, cache={}):\n    return cache.setdefault(x, [x])\n",
)
add(
    "shared results",
    "lru cache of a list",
    "asserts",
    "x = f(3)\nx.clear()\nassert f(3) == [0, 1, 2]\n",
    "import functools\n@functools.cache\ndef f(n): return list(range(n))\n",
)
add(
    "shared results",
    "rows of a matrix",
    "asserts",
    "m = f(2)\nm[0][0] = 1\nassert m == [[1, 0], [0, 0]]\n",
    "def f(n): return [[0] * n] * n\n",
)
add(
    "shared results",
    "shallow copy",
    "asserts",
    "a = [[1], [2]]\nb = f(a)\nb[0].append(9)\nassert a == [[1], [2]]\n",
    "def f(x): return list(x)\n",
)
add(
    "shared results",
    "no copy",
    "asserts",
    "a = [1, 2]\nb = f(a)\nb.append(9)\nassert a == [1, 2]\n",
    "def f(x): return x\n",
)
add(
    "shared results",
    "dict of defaults",
    "asserts",
    "c = f()\nc['debug'] = True\nassert f() == {'debug': False}\n",
    "D = {'debug': False}\ndef f(): return D\n",
)
add(
    "shared results",
    "kept from an earlier call",
    "asserts",
    "a = f(1)\nb = f(2)\nassert a == [1]\nassert b == [2]\n",
    "r = []\ndef f(x):\n    r.clear()\n    r.append(x)\n    return r\n",
)
add(
    "shared results",
    "kept argument",
    "asserts",
    "data = [1]\ng = f(data)\ndata.append(2)\nassert g() == [1]\n",
    "def f(d): return lambda: d\n",
)
add(
    "shared results",
    "kept argument in state",
    "asserts",
    "data = [1]\nstore('k', data)\ndata.append(2)\nassert load('k') == [1]\n",
    "S = {}\ndef store(k, v): S[k] = v\ndef load(k): return S[k]\n",
)
add(
    "shared results",
    "results of one call changed by the next",
    "asserts",
    "outs = [f(i) for i in range(3)]\nassert outs == [[0], [1], [2]]\n",
    "r = [0]\ndef f(i):\n    r[0] = i\n    return r\n",
)
add(
    "shared results",
    "generator of one list",
    "asserts",
    "assert list(f([1, 2])) == [[1], [1, 2]]\n",
    "def f(xs):\n    acc = []\n    for x in xs:\n        acc.append(x)\n        yield acc\n",
)
add(
    "shared results",
    "returned by a function, list of one list",
    "asserts",
    "assert f([1, 2]) == [[1], [1, 2]]\n",
    "def f(xs):\n    acc, out = [], []\n    for x in xs:\n        acc.append(x)\n        out.append(acc)\n    return out\n",
)

IN_PROCESS = {
    "emptied arguments",
    "changed arguments",
    "exception classes of the answer",
    "stop iteration that is named",
    "helpers of the stub",
    "callbacks of the tests",
    "lying library subclasses",
    "swallowed assertions",
    "names by star import",
}
"""Kinds of which some pass as `in-process`, as docs/sandbox.md says: the answer's objects, or what it changed, have a say there."""
