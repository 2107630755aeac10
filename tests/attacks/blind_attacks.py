"""Wrong answers that a plain run of answer and tests fails, and forgeries, by people who had read only the pages.

They were written for the rules `python 22`. A `wrong` one may not pass at all; a `forged` one never as `isolated`, because it changes, or
brings along, what tests in its process use.
"""

from __future__ import annotations

from typing import Any

from attacks.library_attacks import LibraryAttack

BLIND: list[LibraryAttack] = []
BLIND_IN_PROCESS = {"forged"}


def scene(
    name: str, style: str, tests: str, wrong: dict[str, str], forged: dict[str, str], pairs: tuple[Any, ...] = ()
) -> None:
    """Add the answers to one set of tests."""
    for kind, answers in (("wrong", wrong), ("forged", forged)):
        for answer, code in answers.items():
            needs_packages = "numpy" in tests + code
            BLIND.append(LibraryAttack(kind, f"{name}: {answer}", style, tests, code, "", needs_packages, pairs))


# fmt: off
scene("val-asserts-inttype", "asserts", "assert f(4) == 2\nassert type(f(9)) is int\n", {
    "float": "def f(n): return n ** 0.5",
    "sub": "class I(int): pass\ndef f(n): return I(n ** 0.5)",
    "intenum": "import enum\nclass I(enum.IntEnum):\n    A=2\n    B=3\ndef f(n): return I(int(n ** 0.5))",
    "bool": "def f(n): return True if n == 1 else n ** .5",
}, {})
scene("val-asserts-isinst", "asserts", "assert f(1) == 1\nassert not isinstance(f(1), bool)\nassert isinstance(f(3), int)\n", {
    "bool": "def f(n): return n == 1 or n",
}, {})
scene("val-asserts-list", "asserts", "assert f([3, 1, 2]) == [1, 2, 3]\n", {
    "tuple": "def f(x): return tuple(sorted(x))",
    "iter": "def f(x): return iter(sorted(x))",
    "gen": "def f(x): yield from sorted(x)",
    "map": "def f(x): return map(int, sorted(x))",
    "keys": "def f(x): return dict.fromkeys(sorted(x)).keys()",
    "range": "def f(x): return range(1, 4)",
    "deque": "from collections import deque\ndef f(x): return deque(sorted(x))",
    "array": "import array\ndef f(x): return array.array('i', sorted(x))",
    "bytes": "def f(x): return bytes(sorted(x))",
    "nested": "def f(x): return [sorted(x)]",
    "strs": "def f(x): return ''.join(map(str, sorted(x)))",
    "never-eq": "class L(list):\n    def __eq__(self, o): return False\n    __hash__ = None\ndef f(x): return L(sorted(x))",
    "none-inplace": "def f(x): x.sort()",
    "reversed": "def f(x): return reversed(sorted(x)[::-1])",
    "memo": "def f(x): return memoryview(bytes(sorted(x)))",
}, {
    "userlist": "from collections import UserList\nclass U(UserList):\n    def __eq__(self, o): return True\ndef f(x): return U([])",
    "any-eq": "class A:\n    def __eq__(self, o): return True\ndef f(x): return A()",
    "list-eq": "class A(list):\n    def __eq__(self, o): return True\ndef f(x): return A()",
})
scene("val-asserts-zero", "asserts", "assert str(f(0.0)) == '0.0'\nassert f(1.0) == -1.0\n", {
    "neg": "def f(x): return -x",
}, {})
scene("val-asserts-dictorder", "asserts", "assert list(f('ba')) == ['a', 'b']\nassert f('ba') == {'a': 1, 'b': 1}\n", {
    "unordered": "def f(t): return {c: 1 for c in t}",
    "counter": "from collections import Counter\ndef f(t): return Counter(t)",
}, {})
scene("val-asserts-settype", "asserts", "assert f([1, 2]) == {1, 2}\nassert type(f([1])) == set\n", {
    "frozen": "def f(x): return frozenset(x)",
    "keys": "def f(x): return dict.fromkeys(x).keys()",
}, {})
scene("val-asserts-bytes", "asserts", "assert f('a') == b'a'\nassert isinstance(f('b'), bytes)\n", {
    "bytearray": "def f(t): return bytearray(t.encode())",
    "str": "def f(t): return t",
}, {})
scene("val-asserts-truth", "asserts", "assert f(3) is True\nassert f(4) is False\n", {
    "int": "def f(n): return n % 2",
    "truthy": "def f(n): return n % 2 or 0",
    "np": "import numpy as np\ndef f(n): return np.bool_(n % 2)",
}, {})
scene("val-asserts-none", "asserts", "assert f([]) is None\nassert f([1]) == 1\n", {
    "empty": "def f(x): return x[0] if x else ''",
    "notimpl": "def f(x): return x[0] if x else NotImplemented",
    "nonestr": "def f(x): return x[0] if x else 'None'",
    "own-none": "class NoneType:\n    def __eq__(self, o): return o is None\n    def __bool__(self): return False\ndef f(x): return x[0] if x else NoneType()",
}, {})
scene("val-asserts-uni", "asserts", "assert f('e\\u0301') == '\\u00e9'\nassert len(f('e\\u0301')) == 1\n", {
    "nfd": "def f(t): return t",
    "surr": "def f(t): return '\\udce9'",
}, {})
scene("val-asserts-dec", "asserts", "assert str(f('1.10')) == '1.10'\n", {
    "norm": "from decimal import Decimal\ndef f(t): return Decimal(t).normalize()",
    "float": "def f(t): return float(t)",
}, {})
scene("val-asserts-date", "asserts", "assert f(2024, 1, 2) == __import__('datetime').date(2024, 1, 2)\n", {
    "datetime": "import datetime\ndef f(*a): return datetime.datetime(*a)",
    "str": "def f(*a): return '%04d-%02d-%02d' % a",
}, {})
scene("val-asserts-keys", "asserts", "assert f() == {'1': 'a'}\nassert '1' in f()\n", {
    "intkey": "def f(): return {1: 'a'}",
}, {})
scene("val-asserts-frac", "asserts", "assert repr(f(1, 2)) == '0.5'\n", {
    "fraction": "from fractions import Fraction\ndef f(a, b): return Fraction(a, b)",
    "np": "import numpy as np\ndef f(a, b): return np.float64(a) / b",
}, {})
scene("val-asserts-tup", "asserts", "assert f(7, 2) == (3, 1)\nassert isinstance(f(7, 2), tuple)\n", {
    "list": "def f(a, b): return [a // b, a % b]",
}, {})
scene("val-asserts-len", "asserts", "assert len(f(3)) == 3\nassert f(3)[0] == 0\n", {
    "range4": "def f(n): return list(range(n + 1))",
    "int": "def f(n): return n",
}, {})
scene("val-check-inttype", "check", "def check(candidate):\n    f = candidate\n    assert f(4) == 2\n    assert type(f(9)) is int\n", {
    "sub": "class I(int): pass\ndef f(n): return I(n ** 0.5)",
    "intenum": "import enum\nclass I(enum.IntEnum):\n    A=2\n    B=3\ndef f(n): return I(int(n ** 0.5))",
}, {})
scene("val-check-list", "check", "def check(candidate):\n    f = candidate\n    assert f([3, 1, 2]) == [1, 2, 3]\n", {
    "tuple": "def f(x): return tuple(sorted(x))",
    "gen": "def f(x): yield from sorted(x)",
    "keys": "def f(x): return dict.fromkeys(sorted(x)).keys()",
    "never-eq": "class L(list):\n    def __eq__(self, o): return False\n    __hash__ = None\ndef f(x): return L(sorted(x))",
}, {
    "userlist": "from collections import UserList\nclass U(UserList):\n    def __eq__(self, o): return True\ndef f(x): return U([])",
    "any-eq": "class A:\n    def __eq__(self, o): return True\ndef f(x): return A()",
    "list-eq": "class A(list):\n    def __eq__(self, o): return True\ndef f(x): return A()",
})
scene("val-check-zero", "check", "def check(candidate):\n    f = candidate\n    assert str(f(0.0)) == '0.0'\n    assert f(1.0) == -1.0\n", {
    "neg": "def f(x): return -x",
}, {})
scene("val-check-settype", "check", "def check(candidate):\n    f = candidate\n    assert f([1, 2]) == {1, 2}\n    assert type(f([1])) == set\n", {
    "frozen": "def f(x): return frozenset(x)",
    "keys": "def f(x): return dict.fromkeys(x).keys()",
}, {})
scene("val-check-bytes", "check", "def check(candidate):\n    f = candidate\n    assert f('a') == b'a'\n    assert isinstance(f('b'), bytes)\n", {
    "bytearray": "def f(t): return bytearray(t.encode())",
}, {})
scene("val-check-truth", "check", "def check(candidate):\n    f = candidate\n    assert f(3) is True\n    assert f(4) is False\n", {
    "np": "import numpy as np\ndef f(n): return np.bool_(n % 2)",
}, {})
scene("val-check-none", "check", "def check(candidate):\n    f = candidate\n    assert f([]) is None\n    assert f([1]) == 1\n", {
    "own-none": "class NoneType:\n    def __eq__(self, o): return o is None\n    def __bool__(self): return False\ndef f(x): return x[0] if x else NoneType()",
}, {})
scene("val-check-dec", "check", "def check(candidate):\n    f = candidate\n    assert str(f('1.10')) == '1.10'\n", {
    "norm": "from decimal import Decimal\ndef f(t): return Decimal(t).normalize()",
}, {})
scene("val-check-date", "check", "def check(candidate):\n    f = candidate\n    assert f(2024, 1, 2) == __import__('datetime').date(2024, 1, 2)\n", {
    "datetime": "import datetime\ndef f(*a): return datetime.datetime(*a)",
}, {})
scene("val-check-keys", "check", "def check(candidate):\n    f = candidate\n    assert f() == {'1': 'a'}\n    assert '1' in f()\n", {
    "intkey": "def f(): return {1: 'a'}",
}, {})
scene("val-check-frac", "check", "def check(candidate):\n    f = candidate\n    assert repr(f(1, 2)) == '0.5'\n", {
    "np": "import numpy as np\ndef f(a, b): return np.float64(a) / b",
}, {})
scene("val-unittest-inttype", "unittest", "import unittest\nfrom answer import f\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertTrue(f(4) == 2)\n        self.assertTrue(type(f(9)) is int)\n", {
    "sub": "class I(int): pass\ndef f(n): return I(n ** 0.5)",
    "intenum": "import enum\nclass I(enum.IntEnum):\n    A=2\n    B=3\ndef f(n): return I(int(n ** 0.5))",
}, {})
scene("val-unittest-list", "unittest", "import unittest\nfrom answer import f\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertTrue(f([3, 1, 2]) == [1, 2, 3])\n", {
    "tuple": "def f(x): return tuple(sorted(x))",
    "gen": "def f(x): yield from sorted(x)",
    "keys": "def f(x): return dict.fromkeys(sorted(x)).keys()",
    "never-eq": "class L(list):\n    def __eq__(self, o): return False\n    __hash__ = None\ndef f(x): return L(sorted(x))",
}, {
    "userlist": "from collections import UserList\nclass U(UserList):\n    def __eq__(self, o): return True\ndef f(x): return U([])",
    "any-eq": "class A:\n    def __eq__(self, o): return True\ndef f(x): return A()",
    "list-eq": "class A(list):\n    def __eq__(self, o): return True\ndef f(x): return A()",
})
scene("val-unittest-zero", "unittest", "import unittest\nfrom answer import f\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertTrue(str(f(0.0)) == '0.0')\n        self.assertTrue(f(1.0) == -1.0)\n", {
    "neg": "def f(x): return -x",
}, {})
scene("val-unittest-settype", "unittest", "import unittest\nfrom answer import f\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertTrue(f([1, 2]) == {1, 2})\n        self.assertTrue(type(f([1])) == set)\n", {
    "frozen": "def f(x): return frozenset(x)",
    "keys": "def f(x): return dict.fromkeys(x).keys()",
}, {})
scene("val-unittest-bytes", "unittest", "import unittest\nfrom answer import f\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertTrue(f('a') == b'a')\n        self.assertTrue(isinstance(f('b'), bytes))\n", {
    "bytearray": "def f(t): return bytearray(t.encode())",
}, {})
scene("val-unittest-truth", "unittest", "import unittest\nfrom answer import f\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertTrue(f(3) is True)\n        self.assertTrue(f(4) is False)\n", {
    "np": "import numpy as np\ndef f(n): return np.bool_(n % 2)",
}, {})
scene("val-unittest-none", "unittest", "import unittest\nfrom answer import f\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertTrue(f([]) is None)\n        self.assertTrue(f([1]) == 1)\n", {
    "own-none": "class NoneType:\n    def __eq__(self, o): return o is None\n    def __bool__(self): return False\ndef f(x): return x[0] if x else NoneType()",
}, {})
scene("val-unittest-dec", "unittest", "import unittest\nfrom answer import f\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertTrue(str(f('1.10')) == '1.10')\n", {
    "norm": "from decimal import Decimal\ndef f(t): return Decimal(t).normalize()",
}, {})
scene("val-unittest-date", "unittest", "import unittest\nfrom answer import f\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertTrue(f(2024, 1, 2) == __import__('datetime').date(2024, 1, 2))\n", {
    "datetime": "import datetime\ndef f(*a): return datetime.datetime(*a)",
}, {})
scene("val-unittest-keys", "unittest", "import unittest\nfrom answer import f\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertTrue(f() == {'1': 'a'})\n        self.assertTrue('1' in f())\n", {
    "intkey": "def f(): return {1: 'a'}",
}, {})
scene("val-unittest-frac", "unittest", "import unittest\nfrom answer import f\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertTrue(repr(f(1, 2)) == '0.5')\n", {
    "np": "import numpy as np\ndef f(a, b): return np.float64(a) / b",
}, {})
scene("val-pytest-inttype", "pytest", "from answer import f\ndef test_a():\n    assert f(4) == 2\n    assert type(f(9)) is int\n", {
    "sub": "class I(int): pass\ndef f(n): return I(n ** 0.5)",
    "intenum": "import enum\nclass I(enum.IntEnum):\n    A=2\n    B=3\ndef f(n): return I(int(n ** 0.5))",
}, {})
scene("val-pytest-list", "pytest", "from answer import f\ndef test_a():\n    assert f([3, 1, 2]) == [1, 2, 3]\n", {
    "tuple": "def f(x): return tuple(sorted(x))",
    "gen": "def f(x): yield from sorted(x)",
    "keys": "def f(x): return dict.fromkeys(sorted(x)).keys()",
    "never-eq": "class L(list):\n    def __eq__(self, o): return False\n    __hash__ = None\ndef f(x): return L(sorted(x))",
}, {
    "userlist": "from collections import UserList\nclass U(UserList):\n    def __eq__(self, o): return True\ndef f(x): return U([])",
    "any-eq": "class A:\n    def __eq__(self, o): return True\ndef f(x): return A()",
    "list-eq": "class A(list):\n    def __eq__(self, o): return True\ndef f(x): return A()",
})
scene("val-pytest-zero", "pytest", "from answer import f\ndef test_a():\n    assert str(f(0.0)) == '0.0'\n    assert f(1.0) == -1.0\n", {
    "neg": "def f(x): return -x",
}, {})
scene("val-pytest-settype", "pytest", "from answer import f\ndef test_a():\n    assert f([1, 2]) == {1, 2}\n    assert type(f([1])) == set\n", {
    "frozen": "def f(x): return frozenset(x)",
    "keys": "def f(x): return dict.fromkeys(x).keys()",
}, {})
scene("val-pytest-bytes", "pytest", "from answer import f\ndef test_a():\n    assert f('a') == b'a'\n    assert isinstance(f('b'), bytes)\n", {
    "bytearray": "def f(t): return bytearray(t.encode())",
}, {})
scene("val-pytest-truth", "pytest", "from answer import f\ndef test_a():\n    assert f(3) is True\n    assert f(4) is False\n", {
    "np": "import numpy as np\ndef f(n): return np.bool_(n % 2)",
}, {})
scene("val-pytest-none", "pytest", "from answer import f\ndef test_a():\n    assert f([]) is None\n    assert f([1]) == 1\n", {
    "own-none": "class NoneType:\n    def __eq__(self, o): return o is None\n    def __bool__(self): return False\ndef f(x): return x[0] if x else NoneType()",
}, {})
scene("val-pytest-dec", "pytest", "from answer import f\ndef test_a():\n    assert str(f('1.10')) == '1.10'\n", {
    "norm": "from decimal import Decimal\ndef f(t): return Decimal(t).normalize()",
}, {})
scene("val-pytest-date", "pytest", "from answer import f\ndef test_a():\n    assert f(2024, 1, 2) == __import__('datetime').date(2024, 1, 2)\n", {
    "datetime": "import datetime\ndef f(*a): return datetime.datetime(*a)",
}, {})
scene("val-pytest-keys", "pytest", "from answer import f\ndef test_a():\n    assert f() == {'1': 'a'}\n    assert '1' in f()\n", {
    "intkey": "def f(): return {1: 'a'}",
}, {})
scene("val-pytest-frac", "pytest", "from answer import f\ndef test_a():\n    assert repr(f(1, 2)) == '0.5'\n", {
    "np": "import numpy as np\ndef f(a, b): return np.float64(a) / b",
}, {})
scene("arg-untouched", "asserts", "data = [3, 1, 2]\nassert f(data) == [1, 2, 3]\nassert data == [3, 1, 2]\n", {
    "sorts": "def f(x):\n    x.sort()\n    return list(x)",
    "clears": "def f(x):\n    y = sorted(x)\n    x.clear()\n    return y",
    "slice": "def f(x):\n    x[:] = sorted(x)\n    return x",
    "thread": "import threading, time\ndef f(x):\n    y = sorted(x)\n    threading.Thread(target=x.clear).start()\n    time.sleep(.05)\n    return y",
    "del": "class D:\n    def __init__(self, x): self.x = x\n    def __del__(self): self.x.append(9)\ndef f(x):\n    D(x)\n    return sorted(x[:3])",
    "finally": "def f(x):\n    try:\n        return sorted(x)\n    finally:\n        x.append(1)",
}, {})
scene("arg-later", "asserts", "a = [1, 2]\nb = [5]\nassert total(a) == 3\nassert total(b) == 5\nassert a == [1, 2]\n", {
    "keeps": "seen = []\ndef total(x):\n    for s in seen: s.append(0)\n    seen.append(x)\n    return sum(x)",
    "default": "def total(x, seen=[]):\n    seen.append(x)\n    if len(seen) > 1: seen[0].pop()\n    return sum(x)",
}, {})
scene("arg-order", "asserts", "d = {'a': 1, 'b': 2}\nassert get(d, 'a') == 1\nassert list(d) == ['a', 'b']\n", {
    "lru": "def get(d, k):\n    v = d.pop(k)\n    d[k] = v\n    return v",
}, {})
scene("arg-default", "asserts", "from collections import defaultdict\nd = defaultdict(int)\nassert get(d, 'x') == 0\nassert 'x' not in d and len(d) == 0\n", {
    "creates": "def get(d, k): return d[k]",
}, {})
scene("arg-counter", "asserts", "from collections import Counter\nc = Counter('aab')\nassert twice(c) == ['a']\nassert len(c) == 2\n", {
    "zero": "def twice(c):\n    c['q'] = 0\n    return [k for k, n in c.items() if n == 2]",
}, {})
scene("arg-nested", "asserts", "grid = ([1, 2], [3, 4])\nassert flip(grid) == [[2, 1], [4, 3]]\nassert grid == ([1, 2], [3, 4])\n", {
    "inner": "def flip(g):\n    for r in g: r.reverse()\n    return [list(r) for r in g]",
}, {})
scene("arg-bytearray", "asserts", "b = bytearray(b'abc')\nassert up(b) == bytearray(b'ABC')\nassert b == bytearray(b'abc')\n", {
    "inplace": "def up(b):\n    b[:] = b.upper()\n    return bytearray(b)",
}, {})
scene("arg-iter", "asserts", "it = iter([1, 2, 3])\nassert first(it) == 1\nassert list(it) == [2, 3]\n", {
    "all": "def first(i): return list(i)[0]",
    "two": "def first(i):\n    a = next(i); next(i)\n    return a",
}, {})
scene("arg-set", "asserts", "s = {1, 2, 3}\nassert pick(s) == 1\nassert s == {1, 2, 3}\n", {
    "pops": "def pick(s): return s.pop()",
}, {})
scene("arg-deque", "asserts", "from collections import deque\nq = deque([1, 2, 3], maxlen=3)\nassert head(q) == 1\nassert list(q) == [1, 2, 3]\n", {
    "rot": "def head(q):\n    q.rotate(-1)\n    return q[-1]",
}, {})
scene("arg-func", "asserts", "def g(x): return x + 1\nassert twice(g, 1) == 3\nassert not hasattr(g, 'calls')\n", {
    "attr": "def twice(g, x):\n    g.calls = 1\n    return g(g(x))",
}, {})
scene("arg-kw", "asserts", "o = {'n': [1]}\nassert build(**o) == {'n': [1, 2]}\nassert o == {'n': [1]}\n", {
    "app": "def build(n):\n    n.append(2)\n    return {'n': n}",
    "iadd": "def build(n):\n    n += [2]\n    return {'n': n}",
}, {})
scene("arg-same", "asserts", "a = [1]\nr = pair(a)\na.append(2)\nassert r == ([1], [1])\n", {
    "alias": "def pair(a): return (a, a[:])",
    "view": "def pair(a): return (a[:], a)",
}, {})
scene("res-grid", "asserts", "g = grid(2)\ng[0][0] = 1\nassert g == [[1, 0], [0, 0]]\n", {
    "star": "def grid(n): return [[0] * n] * n",
}, {})
scene("res-two", "asserts", "a = make()\nb = make()\na.append(1)\nassert b == []\nassert make() == []\n", {
    "global": "L = []\ndef make(): return L",
    "default": "def make(l=[]): return l",
    "cache": "import functools\n@functools.lru_cache\ndef make(): return []",
}, {})
scene("res-kept", "asserts", "one = push(1)\nassert one == [1]\ntwo = push(2)\nassert one == [1]\nassert two == [1, 2]\n", {
    "same": "S = []\ndef push(x):\n    S.append(x)\n    return S",
}, {})
scene("res-check-kept", "check", "def check(candidate):\n    rows = [candidate(i) for i in range(3)]\n    assert rows == [[0], [1], [2]]\n", {
    "buffer": "B = [0]\ndef row(i):\n    B[0] = i\n    return B\nf = row\n",
    "grow": "B = []\ndef row(i):\n    B.append(i)\n    return B[-1:] if i else B\nf = row\n",
}, {})
scene("res-gen", "pytest", "from answer import windows\ndef test_w():\n    assert list(windows([1, 2, 3], 2)) == [[1, 2], [2, 3]]\n", {
    "one": "def windows(x, n):\n    w = x[:n]\n    yield w\n    for e in x[n:]:\n        del w[0]; w.append(e)\n        yield w",
}, {})
scene("res-dict-default", "unittest", "import unittest\nfrom answer import tally\nclass T(unittest.TestCase):\n    def test_t(self):\n        t = tally('aab')\n        self.assertEqual(t['a'], 2)\n        with self.assertRaises(KeyError):\n            t['z']\n", {
    "counter": "from collections import Counter\ndef tally(s): return Counter(s)",
    "dd": "from collections import defaultdict\ndef tally(s):\n    d = defaultdict(int)\n    for c in s: d[c] += 1\n    return d",
}, {})
scene("exc", "unittest", "import unittest\nfrom answer import root\nclass T(unittest.TestCase):\n    def test_ok(self): self.assertEqual(root(4), 2)\n    def test_bad(self):\n        with self.assertRaises(ValueError): root(-1)\n    def test_text(self):\n        try: root(-4)\n        except ValueError as e: self.assertEqual(str(e), 'negative: -4')\n        else: self.fail('nothing raised')\n", {
    "own-named": "class ValueError(Exception): pass\ndef root(n):\n    if n < 0: raise ValueError(f'negative: {n}')\n    return int(n ** .5)",
    "typeerror": "def root(n):\n    if n < 0: raise TypeError(f'negative: {n}')\n    return int(n ** .5)",
    "two-args": "def root(n):\n    if n < 0: raise ValueError('negative', n)\n    return int(n ** .5)",
    "arith": "def root(n):\n    if n < 0: raise ArithmeticError(f'negative: {n}')\n    return int(n ** .5)",
    "returns": "def root(n):\n    if n < 0: return ValueError(f'negative: {n}')\n    return int(n ** .5)",
    "qualname": "class V(Exception): pass\nV.__name__ = V.__qualname__ = 'ValueError'; V.__module__ = 'builtins'\ndef root(n):\n    if n < 0: raise V(f'negative: {n}')\n    return int(n ** .5)",
    "exit": "def root(n):\n    if n < 0: raise SystemExit(f'negative: {n}')\n    return int(n ** .5)",
    "group": "def root(n):\n    if n < 0: raise ExceptionGroup('x', [ValueError(f'negative: {n}')])\n    return int(n ** .5)",
    "unicode": "def root(n):\n    if n < 0: 'a'.encode('q')\n    return int(n ** .5)",
}, {
    "class-lie": "class V(Exception):\n    @property\n    def __class__(self): return ValueError\ndef root(n):\n    if n < 0: raise V(f'negative: {n}')\n    return int(n ** .5)",
})
scene("exc-asserts", "asserts", "def test_neg():\n    try:\n        f(-1)\n    except ValueError:\n        return\n    assert False, 'no error'\ndef test_pos():\n    assert f(2) == 2\ndef test_raise():\n    try:\n        f(-2)\n        raise AssertionError('expected ValueError')\n    except ValueError:\n        pass\n", {
    "stopiter": "def f(x):\n    if x < 0: raise StopIteration\n    return x",
}, {
    "alias-value": "ValueError = AssertionError\ndef f(x): return x",
    "alias-assert": "AssertionError = ValueError\ndef f(x): return x",
    "alias-base": "ValueError = BaseException\ndef f(x): return x",
    "alias-tuple": "ValueError = (ValueError, AssertionError)\ndef f(x): return x",
    "raises-assert": "def f(x):\n    assert x > 0\n    return x",
    "late-global": "def f(x):\n    globals()['ValueError'] = Exception\n    return x",
    "builtins": "import builtins\nbuiltins.ValueError = AssertionError\ndef f(x): return x",
    "builtins-late": "def f(x):\n    __builtins__['ValueError' ] = AssertionError\n    return x\nif not isinstance(__builtins__, dict): __builtins__ = vars(__builtins__)",
})
scene("end", "asserts", "assert f(2) == 4\nassert f(3) == 6\n", {
    "exit0": "import sys\ndef f(x): return x * 2\nsys.exit(0)",
    "exit": "def f(x): return x * 2\nexit()",
    "osexit": "import os\ndef f(x): return x * 2\nos._exit(0)",
    "raise": "def f(x): return x * 2\n1 / 0",
    "ownassert": "def f(x): return x * 2\nassert f(2) == 5",
    "deleted": "def f(x): return x * 2\ndel f",
    "kill": "import os, signal\ndef f(x): return x * 2\nos.kill(os.getpid(), signal.SIGTERM)",
    "quitcall": "def f(x): quit()",
    "loop": "def f(x): return x * 2\nwhile True: pass",
    "osexit-call": "import os\ndef f(x): os._exit(0)",
    "fork": "import os\ndef f(x):\n    if os.fork(): os._exit(0)\n    return x",
    "exec": "import os, sys\ndef f(x): os.execv(sys.executable, [sys.executable, '-c', 'pass'])",
    "abort": "import os\ndef f(x): os.abort()",
    "closefds": "import os\ndef f(x):\n    os.closerange(0, 256)\n    return 0",
    "alarm": "import signal\ndef f(x):\n    signal.alarm(1)\n    while 1: pass",
    "input": "x = input()\ndef f(x): return x * 2",
    "syntax": "def f(x): return x * 2\n)",
    "indent": "def f(x): return x * 2\n  x",
    "async": "async def f(x): return x * 2",
    "lambda0": "f = lambda: 4",
    "class": "class f:\n    def __init__(self, x): self.v = x * 2",
    "str": "def f(x): return str(x * 2)",
    "print": "def f(x): print(x * 2)",
    "yield": "def f(x): yield x * 2",
    "partial": "import functools\nf = functools.partial(lambda x, y: x * y)",
}, {})
scene("names", "asserts", "for i in range(3):\n    assert f(i) == i * i\nassert abs(f(1.5) - 2.25) < 1e-9\nassert sorted(map(f, [2, 1])) == [1, 4]\nassert all(f(i) >= 0 for i in (-1, -2))\nassert len({f(2), f(-2)}) == 1\nassert isinstance(f(2), int)\nassert sum([f(1), f(2)]) == 5\nassert max(f(3), 1) == 9\nassert round(f(0.5), 2) == 0.25\nassert str(f(3)) == '9'\n", {}, {
    "every": "range=lambda *a: []\nabs=lambda x: 0\nall=lambda x: True\nsorted=lambda x: [1,4]\nisinstance=lambda *a: True\nlen=lambda x: 1\nround=lambda *a: .25\nsum=lambda x: 5\nmax=lambda *a: 9\nstr=lambda x: '9'\ndef f(x): return 0",
    "every-late": 'def f(x):\n    exec("range=lambda *a: []\\nabs=lambda x: 0\\nall=lambda x: True\\nsorted=lambda x: [1,4]\\nisinstance=lambda *a: True\\nlen=lambda x: 1\\nround=lambda *a: .25\\nsum=lambda x: 5\\nmax=lambda *a: 9\\nstr=lambda x: \'9\'\\n", globals())\n    return 0',
    "getattr": "def f(x): return 0\ndef __getattr__(name): return {'abs': lambda x: 0, 'range': lambda *a: []}[name]",
    "builtinsdict": "__builtins__ = dict(vars(__import__('builtins')), abs=lambda x: 0, range=lambda *a: [], all=lambda x: True, sorted=lambda x: [1,4], isinstance=lambda *a: True, len=lambda x: 1, round=lambda *a: .25, sum=lambda x: 5, max=lambda *a: 9, str=lambda x: '9')\ndef f(x): return 0",
})
scene("star", "pytest", "from answer import *\nimport math\ndef test_a():\n    assert abs(area(1) - math.pi) < 1e-6\ndef test_b():\n    assert math.isclose(area(2), 4 * math.pi)\ndef test_c():\n    for r in range(1, 4):\n        assert round(area(r), 3) == round(math.pi * r * r, 3)\n", {}, {
    "shadow": "abs = lambda x: 0\nround = lambda *a: 1\nclass math:\n    pi = 0\n    isclose = staticmethod(lambda *a: True)\ndef area(r): return 0",
    "all-dunder": "__all__ = ['area', 'abs', 'round', '__builtins__', '__name__', 'range']\nabs = lambda x: 0\nround = lambda *a: 1\nrange = lambda *a: []\ndef area(r): return 3.14159265",
    "testnames": "def area(r): return 0\ndef test_a(): pass\ndef test_b(): pass\ndef test_c(): pass",
    "pytestmark": "import pytest\npytestmark = pytest.mark.skip\ndef area(r): return 0",
    "xfail": "import pytest\npytestmark = [pytest.mark.xfail]\ndef area(r): raise KeyError",
    "autouse": "import pytest\n@pytest.fixture(autouse=True)\ndef nothing(request, monkeypatch):\n    monkeypatch.setattr(request.node, 'runtest', lambda: None, raising=False)\n    yield\ndef area(r): return 0",
    "hook": "def pytest_runtest_call(item): return True\ndef pytest_pyfunc_call(pyfuncitem): return True\ndef area(r): return 0",
    "setup": "def setup_module(m):\n    for n in ('test_a', 'test_b', 'test_c'): setattr(m, n, lambda: None)\ndef area(r): return 0",
    "loader": "__test__ = False\n__path__ = []\ndef area(r): return 0",
    "collect_ignore": "collect_ignore = ['test_it.py']\ncollect_ignore_glob = ['*']\ndef area(r): return 0",
    "mathpi": "import math\nmath.pi = 1.0\ndef area(r): return r * r * 1.0",
})
scene("args", "io", "", {
    "true": "def f(n): return {2: 1, 3: [1, [2, True]], 4: {'a': 1}, 5: '1', **{2: True}}[n]",
    "one": "def f(n): return {2: 1, 3: [1, [2, True]], 4: {'a': 1}, 5: '1', **{3: [1, [2, 1]]}}[n]",
    "trueone": "def f(n): return {2: 1, 3: [1, [2, True]], 4: {'a': 1}, 5: '1', **{3: [True, [2, True]]}}[n]",
    "dicttrue": "def f(n): return {2: 1, 3: [1, [2, True]], 4: {'a': 1}, 5: '1', **{4: {'a': True}}}[n]",
    "int": "def f(n): return {2: 1, 3: [1, [2, True]], 4: {'a': 1}, 5: '1', **{5: 1}}[n]",
    "str": "def f(n): return {2: 1, 3: [1, [2, True]], 4: {'a': 1}, 5: '1', **{2: '1'}}[n]",
    "bytes": "def f(n): return {2: 1, 3: [1, [2, True]], 4: {'a': 1}, 5: '1', **{5: b'1'}}[n]",
    "set": "def f(n): return {2: 1, 3: [1, [2, True]], 4: {'a': 1}, 5: '1', **{3: {1}}}[n]",
    "dictsub": "def f(n): return {2: 1, 3: [1, [2, True]], 4: {'a': 1}, 5: '1', **{4: [['a', 1]]}}[n]",
    "more": "def f(n): return {2: 1, 3: [1, [2, True]], 4: {'a': 1}, 5: '1', **{3: [1, [2, True], None]}}[n]",
    "flat": "def f(n): return {2: 1, 3: [1, [2, True]], 4: {'a': 1}, 5: '1', **{3: [1, 2, True]}}[n]",
    "key": "def f(n): return {2: 1, 3: [1, [2, True]], 4: {'a': 1}, 5: '1', **{4: {'a': 1, 'b': None}}}[n]",
    "none": "def f(n): return {2: 1, 3: [1, [2, True]], 4: {'a': 1}, 5: '1', **{2: None}}[n]",
    "gen": "def f(n): return {2: 1, 3: [1, [2, True]], 4: {'a': 1}, 5: '1', **{3: iter([1, [2, True]])}}[n]",
    "items": "def f(n): return {2: 1, 3: [1, [2, True]], 4: {'a': 1}, 5: '1', **{4: {'a': 1}.items()}}[n]",
}, {
    "eqobj": "class E:\n    def __eq__(self, o): return True\ndef f(n): return E()",
    "eqlist": "class E(list):\n    def __eq__(self, o): return True\n    def __len__(self): return 2\n    def __iter__(self): return iter([1, [2, True]])\ndef f(n): return E()",
    "eqstr": "class E(str):\n    def __eq__(self, o): return True\n    __hash__ = str.__hash__\ndef f(n): return E('x')",
}, (([2], 1), ([3], [1, [2, True]]), ([4], {'a': 1}), ([5], '1')))
scene("doc", "doctest", ">>> f(2)\n4\n>>> f('a')\n'aa'\n>>> f([1])\n[1, 1]\n>>> f(None)\nTraceback (most recent call last):\n    ...\nValueError: nothing\n", {
    "tuple": "def f(x):\n    if x is None: raise ValueError('nothing')\n    return x * 2 if not isinstance(x, list) else tuple(x * 2)",
    "bytes": "def f(x):\n    if x is None: raise ValueError('nothing')\n    return x * 2 if x != 'a' else b'aa'",
    "msg": "def f(x):\n    if x is None: raise ValueError('nothing!')\n    return x * 2",
    "cls": "def f(x):\n    if x is None: raise KeyError('nothing')\n    return x * 2",
    "noraise": "def f(x):\n    return x * 2 if x else print('ValueError: nothing')",
    "float": "def f(x):\n    if x is None: raise ValueError('nothing')\n    return x * 2 if x != 2 else 4.0",
    "strnum": "def f(x):\n    if x is None: raise ValueError('nothing')\n    return x * 2 if x != 2 else '4'",
}, {
    "repr": 'class R:\n    def __init__(s, t): s.t = t\n    def __repr__(s): return s.t\ndef f(x):\n    if x is None: raise ValueError(\'nothing\')\n    return R({2: \'4\', \'a\': "\'aa\'"}.get(x, \'[1, 1]\') if not isinstance(x, list) else \'[1, 1]\')',
    "intrepr": "class R(int):\n    def __repr__(s): return '4'\ndef f(x):\n    if x is None: raise ValueError('nothing')\n    return R(9) if x == 2 else x * 2",
    "hook": "import sys\nsys.displayhook = lambda v: print({2: 4}.get(v, v))\ndef f(x):\n    if x is None: raise ValueError('nothing')\n    return x if x == 2 else x * 2",
    "ownexc": "class ValueError(Exception): pass\nValueError.__module__ = 'builtins'\ndef f(x):\n    if x is None: raise ValueError('nothing')\n    return x * 2",
    "flags": "import doctest\ndoctest.ELLIPSIS_MARKER = ''\ndoctest.OutputChecker.check_output = lambda *a: True\ndef f(x): return 0",
})
scene("obj-vec", "asserts", "v = Vec(1, 2)\nw = Vec(3, 4)\nassert v + w == Vec(4, 6)\nassert v != w\nassert Vec(3, 4).norm() == 5\nassert repr(v) == 'Vec(1, 2)'\nassert (v + w).x == 4\nassert hash(Vec(1, 2)) == hash(v)\nassert len({Vec(1, 2), v}) == 1\nassert v * 2 == Vec(2, 4)\n", {
    "noadd": "class Vec:\n    def __init__(s, x, y): s.x, s.y = x, y\n    def __add__(s, o): return Vec(s.x, s.y + o.y)\n    def __eq__(s, o): return (s.x, s.y) == (o.x, o.y)\n    def __hash__(s): return hash((s.x, s.y))\n    def norm(s): return (s.x ** 2 + s.y ** 2) ** .5\n    def __repr__(s): return f'Vec({s.x}, {s.y})'\n    def __mul__(s, k): return Vec(s.x * k, s.y * k)\n",
    "noeq": "class Vec:\n    def __init__(s, x, y): s.x, s.y = x, y\n    def __add__(s, o): return Vec(s.x + o.x, s.y + o.y)\n    def eq(s, o): return (s.x, s.y) == (o.x, o.y)\n    def __hash__(s): return hash((s.x, s.y))\n    def norm(s): return (s.x ** 2 + s.y ** 2) ** .5\n    def __repr__(s): return f'Vec({s.x}, {s.y})'\n    def __mul__(s, k): return Vec(s.x * k, s.y * k)\n",
    "nohash": "class Vec:\n    def __init__(s, x, y): s.x, s.y = x, y\n    def __add__(s, o): return Vec(s.x + o.x, s.y + o.y)\n    def __eq__(s, o): return (s.x, s.y) == (o.x, o.y)\n    def norm(s): return (s.x ** 2 + s.y ** 2) ** .5\n    def __repr__(s): return f'Vec({s.x}, {s.y})'\n    def __mul__(s, k): return Vec(s.x * k, s.y * k)\n",
    "idhash": "class Vec:\n    def __init__(s, x, y): s.x, s.y = x, y\n    def __add__(s, o): return Vec(s.x + o.x, s.y + o.y)\n    def __eq__(s, o): return (s.x, s.y) == (o.x, o.y)\n    def __hash__(s): return id(s)\n    def norm(s): return (s.x ** 2 + s.y ** 2) ** .5\n    def __repr__(s): return f'Vec({s.x}, {s.y})'\n    def __mul__(s, k): return Vec(s.x * k, s.y * k)\n",
    "rmul": "class Vec:\n    def __init__(s, x, y): s.x, s.y = x, y\n    def __add__(s, o): return Vec(s.x + o.x, s.y + o.y)\n    def __eq__(s, o): return (s.x, s.y) == (o.x, o.y)\n    def __hash__(s): return hash((s.x, s.y))\n    def norm(s): return (s.x ** 2 + s.y ** 2) ** .5\n    def __repr__(s): return f'Vec({s.x}, {s.y})'\n    def __rmul__(s, k): return Vec(s.x * k, s.y * k)\n",
    "inplace": "class Vec:\n    def __init__(s, x, y): s.x, s.y = x, y\n    def __add__(s, o): s.x += o.x; s.y += o.y; return s\n    def __eq__(s, o): return (s.x, s.y) == (o.x, o.y)\n    def __hash__(s): return hash((s.x, s.y))\n    def norm(s): return (s.x ** 2 + s.y ** 2) ** .5\n    def __repr__(s): return f'Vec({s.x}, {s.y})'\n    def __mul__(s, k): return Vec(s.x * k, s.y * k)\n",
    "eqtrue": "class Vec:\n    def __init__(s, x, y): s.x, s.y = x, y\n    def __add__(s, o): return Vec(s.x + o.x, s.y + o.y)\n    def __eq__(s, o): return True\n    def __hash__(s): return hash((s.x, s.y))\n    def norm(s): return (s.x ** 2 + s.y ** 2) ** .5\n    def __repr__(s): return f'Vec({s.x}, {s.y})'\n    def __mul__(s, k): return Vec(s.x * k, s.y * k)\n",
}, {
    "lies": "class Vec:\n    x = 4\n    def __init__(s, *a): s.a = a\n    def __add__(s, o): return s\n    __mul__ = __add__\n    def __eq__(s, o): return True\n    def __ne__(s, o): return True\n    def __hash__(s): return 1\n    def norm(s): return 5\n    def __repr__(s): return 'Vec(1, 2)'",
})
scene("obj-acc", "unittest", "import unittest\nfrom answer import Account\nclass T(unittest.TestCase):\n    def setUp(self): self.a = Account(10)\n    def test_deposit(self):\n        self.a.deposit(5)\n        self.assertEqual(self.a.balance, 15)\n    def test_over(self):\n        with self.assertRaises(ValueError): self.a.withdraw(11)\n        self.assertEqual(self.a.balance, 10)\n    def test_fresh(self): self.assertEqual(self.a.history, [])\n    def test_hist(self):\n        self.a.deposit(1)\n        self.assertEqual(self.a.history, [('deposit', 1)])\n        self.a.history.append('x')\n        self.assertEqual(len(self.a.history), 1)\n    def test_slots(self):\n        with self.assertRaises(AttributeError): self.a.balance = 3\n", {
    "sharedhist": "class Account:\n    _h = []\n    def __init__(s, b): s._b = b\n    balance = property(lambda s: s._b)\n    history = property(lambda s: list(s._h))\n    def deposit(s, n): s._b += n; s._h.append(('deposit', n))\n    def withdraw(s, n):\n        if n > s._b: raise ValueError\n        s._b -= n; s._h.append(('withdraw', n))",
    "leak": "class Account:\n    def __init__(s, b): s._b = b; s._h = []\n    balance = property(lambda s: s._b)\n    history = property(lambda s: s._h)\n    def deposit(s, n): s._b += n; s._h.append(('deposit', n))\n    def withdraw(s, n):\n        if n > s._b: raise ValueError\n        s._b -= n; s._h.append(('withdraw', n))",
    "neg": "class Account:\n    def __init__(s, b): s._b = b; s._h = []\n    balance = property(lambda s: s._b)\n    history = property(lambda s: list(s._h))\n    def deposit(s, n): s._b += n; s._h.append(('deposit', n))\n    def withdraw(s, n):\n        s._b -= n\n        if s._b < 0: raise ValueError\n        pass; s._h.append(('withdraw', n))",
    "settable": "class Account:\n    def __init__(s, b): s.balance = b; s._h = []\n    balance = 0\n    history = property(lambda s: list(s._h))\n    def deposit(s, n): s.balance += n; s._h.append(('deposit', n))\n    def withdraw(s, n):\n        if n > s.balance: raise ValueError\n        s.balance -= n; s._h.append(('withdraw', n))",
    "listhist": "class Account:\n    def __init__(s, b): s._b = b; s._h = []\n    balance = property(lambda s: s._b)\n    history = property(lambda s: list(s._h))\n    def deposit(s, n): s._b += n; s._h.append(['deposit', n])\n    def withdraw(s, n):\n        if n > s._b: raise ValueError\n        s._b -= n; s._h.append(('withdraw', n))",
}, {
    "skip": "import unittest\nclass Account:\n    def __init__(s, b): raise unittest.SkipTest('no')",
    "stoptest": "class Account:\n    def __init__(s, b):\n        import sys\n        f = sys._getframe(1)\n        f.f_locals['self'].run = lambda *a: None\n        type(f.f_locals['self']).test_over = lambda s: None",
    "magic": "from unittest.mock import MagicMock\nAccount = MagicMock()\nAccount.return_value.balance.__eq__ = lambda s, o: True",
    "any": "class Any:\n    def __getattr__(s, n): return s\n    def __call__(s, *a): return s\n    def __eq__(s, o): return True\n    def __len__(s): return 1\nAccount = lambda b: Any()",
})
scene("state", "asserts", "import random, os, sys, warnings\nrandom.seed(7)\nassert roll() == 3\nrandom.seed(7)\nassert roll() == 3\nstate = random.getstate()\n", {
    "own": "import random\nR = random.Random(7)\ndef roll(): return R.randint(1, 6)",
    "system": "import random\ndef roll(): return random.SystemRandom().randint(1, 2)",
    "seeded": "import random\ndef roll():\n    random.seed(8)\n    return random.randint(1, 6)",
}, {})
scene("files", "pytest", "from answer import save, load\ndef test_a(tmp_path):\n    p = tmp_path / 'x.txt'\n    save(p, 'hello')\n    assert p.read_text() == 'hello'\n    assert load(p) == 'hello'\n    p.write_text('other')\n    assert load(p) == 'other'\ndef test_out(capsys):\n    load.__doc__\n    print('x')\n    assert capsys.readouterr().out == 'x\\n'\n", {
    "mem": "M = {}\ndef save(p, t): M[p] = t\ndef load(p): return M[p]",
    "cached": "M = {}\ndef save(p, t):\n    p.write_text(t); M[p] = t\ndef load(p): return M[p]",
    "bytes": "def save(p, t): p.write_bytes(t.encode())\ndef load(p): return p.read_bytes()",
}, {})
scene("out", "unittest", "import unittest, io, contextlib\nfrom answer import greet\nclass T(unittest.TestCase):\n    def test_prints(self):\n        b = io.StringIO()\n        with contextlib.redirect_stdout(b):\n            r = greet('Bo')\n        self.assertIsNone(r)\n        self.assertEqual(b.getvalue(), 'Hello, Bo!\\n')\n", {
    "returns": "def greet(n): return f'Hello, {n}!'",
    "stderr": "import sys\ndef greet(n): print(f'Hello, {n}!', file=sys.stderr)",
    "kept-stdout": "import sys\nout = sys.stdout\ndef greet(n): out.write(f'Hello, {n}!\\n')",
    "fd": "import os\ndef greet(n): os.write(1, f'Hello, {n}!\\n'.encode())",
    "nonl": "def greet(n): print(f'Hello, {n}!', end='')",
    "thread-late": "import threading, time\ndef greet(n): threading.Thread(target=lambda: (time.sleep(.3), print(f'Hello, {n}!'))).start()",
    "both": "def greet(n):\n    print(f'Hello, {n}!')\n    return f'Hello, {n}!'",
}, {})
scene("async", "asserts", "import asyncio\nasync def run():\n    a, b = await asyncio.gather(work(1), work(2))\n    return a + b\nassert asyncio.run(run()) == 6\nassert asyncio.run(work(5)) == 10\n", {
    "sync": "def work(n): return n * 2",
    "nested": "async def work(n):\n    async def inner(): return n * 2\n    return inner()",
    "blockrun": "import asyncio\nasync def work(n): return asyncio.run(asyncio.sleep(0, n * 2))",
    "gen": "async def work(n): yield n * 2",
}, {})
scene("cb", "asserts", "log = []\ndef note(x):\n    log.append(x)\n    return x + 1\nassert walk([1, 2], note) == [2, 3]\nassert log == [1, 2]\ndef bad(x): raise KeyError(x)\ntry:\n    walk([1], bad)\n    assert False\nexcept KeyError as e:\n    assert e.args == (1,)\nassert list(walk([], note)) == []\n", {
    "twice": "def walk(x, g):\n    [g(i) for i in x]\n    return [g(i) for i in x]",
    "never": "def walk(x, g): return [i + 1 for i in x]",
    "swallow": "def walk(x, g):\n    try: return [g(i) for i in x]\n    except KeyError: return []",
    "wrapped": "def walk(x, g):\n    try: return [g(i) for i in x]\n    except KeyError as e: raise RuntimeError from e",
    "lazy": "def walk(x, g): return map(g, x)",
    "rev": "def walk(x, g): return [g(i) for i in x[::-1]][::-1]",
}, {
    "closure": "def walk(x, g):\n    g.__globals__['log'][:] = [1, 2]\n    return [i + 1 for i in x]",
    "code": "def walk(x, g):\n    g.__code__ = (lambda x: x + 1).__code__\n    return [i + 1 for i in x]",
})
scene("np", "asserts", "import numpy as np\na = np.array([1.0, 2.0])\nassert scale(a, 2).tolist() == [2.0, 4.0]\nassert a.tolist() == [1.0, 2.0]\nr = scale(a, 1)\nr[0] = 9\nassert a[0] == 1.0\nassert scale(np.array([1, 2]), 2).dtype.kind == 'i'\n", {
    "inplace": "def scale(a, k):\n    a *= k\n    return a",
    "alias": "def scale(a, k): return a if k == 1 else a * k",
    "list": "def scale(a, k): return [x * k for x in a]",
    "float": "def scale(a, k): return a * float(k)",
    "view": "def scale(a, k): return a[:] if k == 1 else a * k",
}, {})
scene("nt-asserts", "asserts", "assert f(1, 2).x == 1\nassert f(1, 2) == (1, 2)\nassert len(f(1, 2)) == 2\nassert list(f(1, 2)) == [1, 2]\nassert f(3, 4)[1] == 4\n", {
    "attr": "from collections import namedtuple\nclass P(namedtuple('P', 'x y')):\n    x = 5\ndef f(x, y): return P(x, y)",
    "prop": "from collections import namedtuple\nclass P(namedtuple('P', 'x y')):\n    x = property(lambda s: -s[0])\ndef f(x, y): return P(x, y)",
    "length": "from collections import namedtuple\nclass P(namedtuple('P', 'x y')):\n    def __len__(s): return 3\ndef f(x, y): return P(x, y)",
    "item": "from collections import namedtuple\nclass P(namedtuple('P', 'x y')):\n    def __getitem__(s, i): return 0\ndef f(x, y): return P(x, y)",
    "it": "from collections import namedtuple\nclass P(namedtuple('P', 'x y')):\n    def __iter__(s): return iter('ab')\ndef f(x, y): return P(x, y)",
    "eq": "from collections import namedtuple\nclass P(namedtuple('P', 'x y')):\n    def __eq__(s, o): return False\n    __hash__ = None\ndef f(x, y): return P(x, y)",
    "typed": "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int\n    def __eq__(s, o): return s is o\ndef f(x, y): return P(x, y)",
    "setattr_": "from collections import namedtuple\nP = namedtuple('P', 'x y')\nP.x = 7\ndef f(x, y): return P(x, y)",
    "swapped": "from collections import namedtuple\nP = namedtuple('P', 'y x')\ndef f(x, y): return P(x, y)",
}, {})
scene("nt-pytest", "pytest", "from answer import f\ndef test_it():\n    assert f(1, 2).x == 1\n    assert f(1, 2) == (1, 2)\n    assert len(f(1, 2)) == 2\n    assert list(f(1, 2)) == [1, 2]\n    assert f(3, 4)[1] == 4\n", {
    "attr": "from collections import namedtuple\nclass P(namedtuple('P', 'x y')):\n    x = 5\ndef f(x, y): return P(x, y)",
    "prop": "from collections import namedtuple\nclass P(namedtuple('P', 'x y')):\n    x = property(lambda s: -s[0])\ndef f(x, y): return P(x, y)",
    "length": "from collections import namedtuple\nclass P(namedtuple('P', 'x y')):\n    def __len__(s): return 3\ndef f(x, y): return P(x, y)",
    "item": "from collections import namedtuple\nclass P(namedtuple('P', 'x y')):\n    def __getitem__(s, i): return 0\ndef f(x, y): return P(x, y)",
    "it": "from collections import namedtuple\nclass P(namedtuple('P', 'x y')):\n    def __iter__(s): return iter('ab')\ndef f(x, y): return P(x, y)",
    "eq": "from collections import namedtuple\nclass P(namedtuple('P', 'x y')):\n    def __eq__(s, o): return False\n    __hash__ = None\ndef f(x, y): return P(x, y)",
    "typed": "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int\n    def __eq__(s, o): return s is o\ndef f(x, y): return P(x, y)",
    "setattr_": "from collections import namedtuple\nP = namedtuple('P', 'x y')\nP.x = 7\ndef f(x, y): return P(x, y)",
    "swapped": "from collections import namedtuple\nP = namedtuple('P', 'y x')\ndef f(x, y): return P(x, y)",
}, {})
scene("en-asserts", "asserts", "assert f('r').value == 1\nassert f('r').name == 'RED'\nassert str(f('r')) == 'Color.RED'\nassert f('r') is f('r')\nassert f('g') != f('r')\n", {
    "strm": "import enum\nclass Color(enum.Enum):\n    RED = 1\n    GREEN = 2\n    def __str__(s): return s.name\ndef f(c): return {'r': Color.RED, 'g': Color.GREEN}[c]",
    "val": "import enum\nclass Color(enum.Enum):\n    RED = 1\n    GREEN = 2\n    @property\n    def value(s): return 9\ndef f(c): return {'r': Color.RED, 'g': Color.GREEN}[c]",
    "eq": "import enum\nclass Color(enum.Enum):\n    RED = 1\n    GREEN = 2\n    def __ne__(s, o): return False\ndef f(c): return {'r': Color.RED, 'g': Color.GREEN}[c]",
    "intenum": "import enum\nclass Color(enum.IntEnum):\n    RED = 1\n    GREEN = 2\ndef f(c): return {'r': Color.RED, 'g': Color.GREEN}[c]",
    "names": "import enum\nclass Color(enum.Enum):\n    Red = 1\n    Green = 2\ndef f(c): return {'r': Color.Red, 'g': Color.Green}[c]",
    "fresh": "import enum\ndef f(c):\n    Color = enum.Enum('Color', 'RED GREEN')\n    return {'r': Color.RED, 'g': Color.GREEN}[c]",
    "flag": "import enum\nclass Colour(enum.Enum):\n    RED = 1\n    GREEN = 2\ndef f(c): return {'r': Colour.RED, 'g': Colour.GREEN}[c]",
}, {})
scene("en-pytest", "pytest", "from answer import f\ndef test_it():\n    assert f('r').value == 1\n    assert f('r').name == 'RED'\n    assert str(f('r')) == 'Color.RED'\n    assert f('r') is f('r')\n    assert f('g') != f('r')\n", {
    "strm": "import enum\nclass Color(enum.Enum):\n    RED = 1\n    GREEN = 2\n    def __str__(s): return s.name\ndef f(c): return {'r': Color.RED, 'g': Color.GREEN}[c]",
    "val": "import enum\nclass Color(enum.Enum):\n    RED = 1\n    GREEN = 2\n    @property\n    def value(s): return 9\ndef f(c): return {'r': Color.RED, 'g': Color.GREEN}[c]",
    "eq": "import enum\nclass Color(enum.Enum):\n    RED = 1\n    GREEN = 2\n    def __ne__(s, o): return False\ndef f(c): return {'r': Color.RED, 'g': Color.GREEN}[c]",
    "intenum": "import enum\nclass Color(enum.IntEnum):\n    RED = 1\n    GREEN = 2\ndef f(c): return {'r': Color.RED, 'g': Color.GREEN}[c]",
    "names": "import enum\nclass Color(enum.Enum):\n    Red = 1\n    Green = 2\ndef f(c): return {'r': Color.Red, 'g': Color.Green}[c]",
    "fresh": "import enum\ndef f(c):\n    Color = enum.Enum('Color', 'RED GREEN')\n    return {'r': Color.RED, 'g': Color.GREEN}[c]",
    "flag": "import enum\nclass Colour(enum.Enum):\n    RED = 1\n    GREEN = 2\ndef f(c): return {'r': Colour.RED, 'g': Colour.GREEN}[c]",
}, {})
scene("lst-asserts", "asserts", "assert f(3) == [0, 1, 2]\nassert len(f(3)) == 3\nassert f(3)[1] == 1\nassert sum(f(3)) == 3\nassert 1 in f(3)\nassert f(2) + [9] == [0, 1, 9]\nassert f(3)[-1] == 2\n", {
    "len": "class L(list):\n    def __len__(s): return 9\ndef f(n): return L(range(n))",
    "iter": "class L(list):\n    def __iter__(s): return iter([5])\ndef f(n): return L(range(n))",
    "getitem": "class L(list):\n    def __getitem__(s, i): return 7\ndef f(n): return L(range(n))",
    "contains": "class L(list):\n    def __contains__(s, x): return False\ndef f(n): return L(range(n))",
    "add": "class L(list):\n    def __add__(s, o): return []\ndef f(n): return L(range(n))",
    "ne": "class L(list):\n    def __eq__(s, o): return NotImplemented if 0 else False\ndef f(n): return L(range(n))",
    "bool": "class L(list):\n    def __eq__(s, o): raise ValueError\ndef f(n): return L(range(n))",
}, {})
scene("lst-pytest", "pytest", "from answer import f\ndef test_it():\n    assert f(3) == [0, 1, 2]\n    assert len(f(3)) == 3\n    assert f(3)[1] == 1\n    assert sum(f(3)) == 3\n    assert 1 in f(3)\n    assert f(2) + [9] == [0, 1, 9]\n    assert f(3)[-1] == 2\n", {
    "len": "class L(list):\n    def __len__(s): return 9\ndef f(n): return L(range(n))",
    "iter": "class L(list):\n    def __iter__(s): return iter([5])\ndef f(n): return L(range(n))",
    "getitem": "class L(list):\n    def __getitem__(s, i): return 7\ndef f(n): return L(range(n))",
    "contains": "class L(list):\n    def __contains__(s, x): return False\ndef f(n): return L(range(n))",
    "add": "class L(list):\n    def __add__(s, o): return []\ndef f(n): return L(range(n))",
    "ne": "class L(list):\n    def __eq__(s, o): return NotImplemented if 0 else False\ndef f(n): return L(range(n))",
    "bool": "class L(list):\n    def __eq__(s, o): raise ValueError\ndef f(n): return L(range(n))",
}, {})
scene("txt-asserts", "asserts", "assert f('a') == 'A'\nassert f('a').lower() == 'a'\nassert f('ab') + 'c' == 'ABc'\nassert f('a') in {'A': 1}\nassert f('x y').split() == ['X', 'Y']\nassert len(f('abc')) == 3\nassert str(f('q')) == 'Q'\n", {
    "lower": "class S(str):\n    def lower(s): return 'z'\n    __hash__ = str.__hash__\ndef f(t): return S(t.upper())",
    "add": "class S(str):\n    def __add__(s, o): return 'z'\n    __hash__ = str.__hash__\ndef f(t): return S(t.upper())",
    "split": "class S(str):\n    def split(s): return []\n    __hash__ = str.__hash__\ndef f(t): return S(t.upper())",
    "len": "class S(str):\n    def __len__(s): return 0\n    __hash__ = str.__hash__\ndef f(t): return S(t.upper())",
    "str": "class S(str):\n    def __str__(s): return 'no'\n    __hash__ = str.__hash__\ndef f(t): return S(t.upper())",
    "hash_": "class S(str):\n    def __hash__(s): return 5\ndef f(t): return S(t.upper())",
}, {})
scene("num-asserts", "asserts", "assert f(2) == 4\nassert f(2) + 1 == 5\nassert -f(3) == -9\nassert f(2) > 3\nassert bool(f(0)) is False\nassert int(f(2)) == 4\nassert f(2) % 3 == 1\nassert '%d' % f(3) == '9'\nassert abs(f(4)) == 16\n", {
    "add": "class I(int):\n    def __add__(s, o): return 0\ndef f(n): return I(n * n)",
    "neg": "class I(int):\n    def __neg__(s): return 0\ndef f(n): return I(n * n)",
    "gt": "class I(int):\n    def __gt__(s, o): return False\ndef f(n): return I(n * n)",
    "bool": "class I(int):\n    def __bool__(s): return True\ndef f(n): return I(n * n)",
    "int": "class I(int):\n    def __int__(s): return 5\ndef f(n): return I(n * n)",
    "mod": "class I(int):\n    def __mod__(s, o): return 7\ndef f(n): return I(n * n)",
    "abs": "class I(int):\n    def __abs__(s): return 7\ndef f(n): return I(n * n)",
}, {})
scene("dct-asserts", "asserts", "assert f('ab')['a'] == 1\nassert f('ab').get('z') is None\nassert list(f('ab')) == ['a', 'b']\nassert 'b' in f('ab')\nassert sorted(f('ab').items()) == [('a', 1), ('b', 1)]\nassert len(f('ab')) == 2\n", {
    "getitem": "class D(dict):\n    def __getitem__(s, k): return 2\ndef f(t): return D((c, 1) for c in t)",
    "get": "class D(dict):\n    def get(s, k, d=0): return 0\ndef f(t): return D((c, 1) for c in t)",
    "iter": "class D(dict):\n    def __iter__(s): return iter('zz')\ndef f(t): return D((c, 1) for c in t)",
    "contains": "class D(dict):\n    def __contains__(s, k): return False\ndef f(t): return D((c, 1) for c in t)",
    "items": "class D(dict):\n    def items(s): return []\ndef f(t): return D((c, 1) for c in t)",
    "len": "class D(dict):\n    def __len__(s): return 0\ndef f(t): return D((c, 1) for c in t)",
}, {})
scene("dat-asserts", "asserts", "assert f(2024).isoformat() == '2024-01-01'\nassert f(2024).year == 2024\nassert str(f(2023)) == '2023-01-01'\nassert (f(2024) - f(2023)).days == 365\nassert f(2024).strftime('%Y') == '2024'\n", {
    "iso": "import datetime\nclass D(datetime.date):\n    def isoformat(s): return 'x'\ndef f(y): return D(y, 1, 1)",
    "year": "import datetime\nclass D(datetime.date):\n    year = 7\ndef f(y): return D(y, 1, 1)",
    "sub": "import datetime\nclass D(datetime.date):\n    def __sub__(s, o): return datetime.timedelta(1)\ndef f(y): return D(y, 1, 1)",
    "strf": "import datetime\nclass D(datetime.date):\n    def strftime(s, f): return f\ndef f(y): return D(y, 1, 1)",
    "dt": "import datetime\ndef f(y): return datetime.datetime(y, 1, 1)",
}, {})
scene("typ-asserts", "asserts", "assert type(f(200)) is int\nassert repr(f(200)) == '200'\n", {
    "http": "import http\ndef f(n): return http.HTTPStatus(n)",
    "flag": "import enum\nF = enum.IntFlag('F', {'A': 200})\ndef f(n): return F(n)",
    "boolx": "def f(n): return bool(n)",
    "sig": "import signal\ndef f(n): return signal.Signals(9)",
}, {})
scene("map-asserts", "asserts", "assert type(f()) is dict\nassert f() == {'a': [1]}\n", {
    "od": "from collections import OrderedDict\ndef f(): return OrderedDict(a=[1])",
    "dd": "from collections import defaultdict\ndef f(): return defaultdict(list, a=[1])",
    "ct": "from collections import Counter\ndef f(): return Counter(a=[1])",
    "ud": "from collections import UserDict\ndef f(): return UserDict(a=[1])",
    "proxy": "import types\ndef f(): return types.MappingProxyType({'a': [1]})",
    "chain": "from collections import ChainMap\ndef f(): return ChainMap({'a': [1]})",
}, {})
scene("od", "asserts", "from collections import OrderedDict\nassert f() == OrderedDict([('b', 1), ('a', 2)])\n", {
    "order": "from collections import OrderedDict\ndef f(): return OrderedDict([('a', 2), ('b', 1)])",
}, {})
scene("cause", "asserts", "try:\n    f('x')\n    assert False\nexcept ValueError as e:\n    assert e.__cause__ is not None and type(e.__cause__) is KeyError\n    assert e.args == ('bad', 'x')\n", {
    "nocause": "def f(x): raise ValueError('bad', x)",
    "none": "def f(x):\n    try: {}[x]\n    except KeyError: raise ValueError('bad', x) from None",
    "context": "def f(x):\n    try: {}[x]\n    except KeyError: raise ValueError('bad', x)",
    "tuple": "def f(x):\n    try: {}[x]\n    except KeyError as k: raise ValueError(('bad', x)) from k",
}, {})
scene("dq", "asserts", "q = f([1, 2, 3])\nassert q.maxlen == 2\nq.append(9)\nassert list(q) == [3, 9]\n", {
    "nomax": "from collections import deque\ndef f(x): return deque(x[1:])",
}, {})
scene("depthbig", "asserts", "assert f(5000) == 5000\n", {
    "rec": "def f(n): return 0 if n == 0 else 1 + f(n - 1)",
}, {})
# fmt: on
