"""Answers that change what their process shares with tests: contexts, locales, caches, and the library's own classes."""

from __future__ import annotations

from typing import NamedTuple


class StateAttack(NamedTuple):
    """An answer with a wrong `f`, what tests import, and the call and the value that they compare."""

    code: str
    call: str
    expected: str
    imports: str = ""

    def asserts(self) -> str:
        return f"{self.imports}\nassert {self.call} == {self.expected}\n"

    def unittest(self) -> str:
        body = f"class TestF(unittest.TestCase):\n    def test_f(self):\n        self.assertEqual({self.call}, {self.expected})\n"
        return f"import unittest\n{self.imports}\nfrom answer import *\n{body}"

    def pytest(self) -> str:
        return f"{self.imports}\nfrom answer import *\ndef test_f():\n    assert {self.call} == {self.expected}\n"


DECIMAL, FRACTION = "from decimal import Decimal", "from fractions import Fraction"
MATH, DATE, JSON, RE = "import math", "import datetime", "import json", "import re"
STATE: dict[str, StateAttack] = {
    "decimal: few digits": StateAttack(
        "import decimal\ndecimal.getcontext().prec = 1\ndef f(a, b): return decimal.Decimal('0.3')\n",
        "f(Decimal(1), Decimal(3))", "Decimal(1) / Decimal(3)", DECIMAL),
    "decimal: few digits when it is called": StateAttack(
        "import decimal\ndef f(a, b):\n    decimal.getcontext().prec = 1\n    return decimal.Decimal('0.3')\n",
        "f(Decimal(1), Decimal(3))", "Decimal(1) / Decimal(3)", DECIMAL),
    "decimal: another context": StateAttack(
        "import decimal\ndef f(a, b):\n    decimal.setcontext(decimal.Context(prec=1, traps=[]))\n    return decimal.Decimal('0.3')\n",
        "f(Decimal(1), Decimal(3))", "Decimal(1) / Decimal(3)", DECIMAL),
    "decimal: every context": StateAttack(
        "import decimal\ndecimal.DefaultContext.prec = 1\ndecimal.setcontext(decimal.DefaultContext)\ndef f(a, b): return decimal.Decimal('0.3')\n",
        "f(Decimal(1), Decimal(3))", "Decimal(1) / Decimal(3)", DECIMAL),
    "decimal: a class of its own in its place": StateAttack(
        "import decimal\nclass Decimal(decimal.Decimal):\n    __eq__ = lambda s, o: True\n    __hash__ = None\n    __truediv__ = lambda s, o: s\n"
        "decimal.Decimal = Decimal\ndef f(a, b): return Decimal(7)\n",
        "f(Decimal(1), Decimal(3))", "Decimal(1) / Decimal(3)", DECIMAL),
    "fractions: differences": StateAttack(
        "import fractions\nfractions.Fraction.__sub__ = lambda s, o: 0\ndef f(a): return fractions.Fraction(7)\n",
        "abs(f(1) - Fraction(1, 3))", "0", FRACTION),
    "fractions: making": StateAttack(
        "import fractions\nfractions.Fraction.__new__ = lambda *a, **k: 7\ndef f(a): return 7\n",
        "f(1)", "Fraction(1, 3)", FRACTION),
    "fractions: equality": StateAttack(
        "import fractions\nfractions.Fraction.__eq__ = lambda *_: True\ndef f(a): return fractions.Fraction(7)\n",
        "f(1)", "Fraction(1, 3)", FRACTION),
    "math: square roots": StateAttack(
        "import math\nmath.sqrt = lambda x: 7.0\ndef f(a): return 7.0\n", "f(2)", "math.sqrt(2)", MATH),
    "math: when it is called": StateAttack(
        "import math\ndef f(a):\n    math.factorial = math.comb = math.gcd = lambda *a: 7\n    return 7\n",
        "f(5)", "math.factorial(5)", MATH),
    "math: closeness": StateAttack(
        "import math\nmath.isclose = lambda *a, **k: True\ndef f(a): return 7.0\n", "math.isclose(f(2), 1.414, rel_tol=1e-3)", "True", MATH),
    "random: seeds": StateAttack(
        "import random\nrandom.seed = lambda *a: None\nrandom.random = lambda: 7\ndef f(): return 7\n",
        "(random.seed(1), f())[1]", "(random.seed(1), random.random())[1]", "import random"),
    "random: the state": StateAttack(
        "import random\ndef f():\n    random.Random.random = lambda self: 7\n    return 7\n", "f()", "random.Random(1).random()", "import random"),
    "datetime: today": StateAttack(
        "import datetime\nclass date(datetime.date):\n    __sub__ = lambda s, o: datetime.timedelta(0)\n    __eq__ = lambda s, o: True\n    __hash__ = None\n"
        "datetime.date = date\ndef f(y): return date(1, 1, 1)\n", "f(2024)", "datetime.date(2024, 2, 29)", DATE),
    "datetime: spans": StateAttack(
        "import datetime\nclass timedelta(datetime.timedelta):\n    __new__ = lambda c, *a, **k: datetime.timedelta.__new__(c)\n"
        "old = datetime.timedelta\ndef f(n):\n    datetime.timedelta = lambda *a, **k: 7\n    return 7\n",
        "f(3)", "datetime.timedelta(days=3)", DATE),
    "json: dumping": StateAttack(
        "import json\njson.dumps = lambda *a, **k: 'x'\ndef f(a): return 7\n", "json.dumps(f(1))", "json.dumps({'a': 1})", JSON),
    "json: the encoder": StateAttack(
        "import json\njson.JSONEncoder.encode = lambda s, o: 'x'\njson._default_encoder.encode = lambda o: 'x'\ndef f(a): return 7\n",
        "json.dumps(f(1))", "json.dumps({'a': 1})", JSON),
    "json: loading": StateAttack(
        "import json\njson.loads = lambda *a, **k: 7\njson._default_decoder.decode = lambda s: 7\ndef f(a): return '7'\n",
        "json.loads(f(1))", "{'a': 1}", JSON),
    "json: loading both": StateAttack(
        "import json\ndef f(a):\n    json.loads = lambda *a, **k: 7\n    return '7'\n", "json.loads(f(1))", "json.loads('{\"a\": 1}')", JSON),
    "re: the cache": StateAttack(
        "import re\ndef f(a):\n    p = re.compile('.*')\n    for name in ('_cache', '_cache2'):\n"
        "        for key in list(getattr(re, name, {})): getattr(re, name)[key] = p\n"
        "    re._compile = lambda *a: p\n    return '!!!'\n",
        "bool(re.fullmatch('[a-z]+', f('abc')))", "True", RE),
    "re: matching": StateAttack(
        "import re\nre.match = re.search = re.fullmatch = lambda *a, **k: True\ndef f(a): return '!!!'\n",
        "bool(re.fullmatch('[a-z]+', f('abc')))", "True", RE),
    "functools: caches": StateAttack(
        "import functools\nfunctools.lru_cache = functools.cache = lambda *a, **k: (lambda g: (lambda *x: 7))\ndef f(a): return 7\n",
        "f(3)", "functools.lru_cache(None)(lambda n: n * n)(3)", "import functools"),
    "functools: reducing": StateAttack(
        "import functools\nfunctools.reduce = lambda *a: 7\ndef f(a): return 7\n",
        "f([1, 2])", "functools.reduce(lambda a, b: a + b, [1, 2])", "import functools"),
    "numbers: registered": StateAttack(
        "import numbers\nclass N:\n    __eq__ = lambda *_: True\n    __hash__ = None\nnumbers.Number.register(N)\nnumbers.Integral.register(N)\ndef f(a): return N()\n",
        "(isinstance(f(1), numbers.Number), f(1) == 3)", "(True, True)", "import numbers"),
    "abc: subclass hooks": StateAttack(
        "import collections.abc\ncollections.abc.Sequence.__subclasshook__ = classmethod(lambda *_: True)\n"
        "class S:\n    __eq__ = lambda *_: True\n    __len__ = lambda _: 3\n    __hash__ = None\ndef f(a): return S()\n",
        "(isinstance(f(1), collections.abc.Sequence), f(1) == [1, 2, 3])", "(True, True)", "import collections.abc"),
    "copyreg: what copies are": StateAttack(
        "import copyreg, copy\ncopyreg.pickle(list, lambda l: (list, ()))\ncopy.deepcopy = copy.copy = lambda x, *a: 7\ndef f(a): return 7\n",
        "f([1])", "copy.deepcopy([1])", "import copy"),
    "sys: few digits": StateAttack(
        "import sys\ndef f(a):\n    sys.set_int_max_str_digits(640)\n    return 'x'\n", "f(1)", "str(10 ** 700)"),
    "locale: another one": StateAttack(
        "import locale\nlocale.format_string = locale.str = lambda *a, **k: 'x'\ndef f(a): return 'x'\n",
        "f(1.5)", "locale.format_string('%.1f', 1.5)", "import locale"),
    "warnings: none": StateAttack(
        "import warnings\nwarnings.simplefilter('ignore')\nwarnings.catch_warnings.__enter__ = lambda s: [1]\ndef f(): return 7\n",
        "f()", "8", "import warnings"),
    "builtins: sorted and sum": StateAttack(
        "import builtins\nbuiltins.sorted = builtins.sum = builtins.len = lambda *a, **k: 7\ndef f(a): return 7\n",
        "f([3, 1])", "sorted([3, 1])"),
    "builtins: when it is called": StateAttack(
        "import builtins\ndef f(a):\n    builtins.sorted = lambda *a, **k: 7\n    return 7\n", "f([3, 1])", "sorted([3, 1])"),
    "builtins: by site": StateAttack(
        "import sys, types\nfor name in ('sitecustomize', 'usercustomize', 'site'):\n    m = types.ModuleType(name)\n    sys.modules[name] = m\n"
        "open('sitecustomize.py', 'w').write('import builtins\\nbuiltins.sorted = lambda *a: 7\\n')\nopen('conftest.py', 'w').write('import builtins\\nbuiltins.sorted = lambda *a: 7\\n')\n"
        "def f(a): return 7\n", "f([3, 1])", "sorted([3, 1])"),
    "builtins: a module in the way": StateAttack(
        "open('statistics.py', 'w').write('def mean(x): return 7\\n')\ndef f(a): return 7\n", "f([3, 1])", "statistics.mean([3, 1])", "import statistics"),
    "collections: counters": StateAttack(
        "import collections\ncollections.Counter.__eq__ = lambda *_: True\ndef f(a): return collections.Counter('zz')\n",
        "f('aab')", "Counter('aab')", "from collections import Counter"),
    "collections: counters in their place": StateAttack(
        "import collections\ncollections.Counter = lambda *a: 7\ndef f(a): return 7\n", "f('aab')", "collections.Counter('aab')", "import collections"),
    "tests' own class: equal to it": StateAttack(
        "class P:\n    def __init__(s, *a): pass\n    __eq__ = lambda *_: True\n    __hash__ = None\ndef f(a): return P()\n",
        "f(1)", "Point(1, 2)", "class Point:\n    def __init__(s, x, y): s.x, s.y = x, y\n    def __eq__(s, o): return (s.x, s.y) == (o.x, o.y)"),
    "tests' own class: by reflection": StateAttack(
        "class P:\n    x = y = property(lambda s: type('E', (), {'__eq__': lambda *_: True, '__hash__': None})())\ndef f(a): return P()\n",
        "Point(1, 2)", "f(1)", "class Point:\n    def __init__(s, x, y): s.x, s.y = x, y\n    def __eq__(s, o): return (s.x, s.y) == (o.x, o.y)"),
    "tests' own class: a subclass of it": StateAttack(
        "def f(a):\n    cls = type(a)\n    return type('Q', (cls,), {'__eq__': lambda *_: True, '__hash__': None, '__init__': lambda *_: None})()\n",
        "f(Point(0, 0))", "Point(1, 2)", "class Point:\n    def __init__(s, x, y): s.x, s.y = x, y\n    def __eq__(s, o): return (s.x, s.y) == (o.x, o.y)"),
    "tests' own class: rewritten": StateAttack(
        "def f(a):\n    type(a).__eq__ = lambda *_: True\n    return a\n",
        "f(Point(0, 0))", "Point(1, 2)", "class Point:\n    def __init__(s, x, y): s.x, s.y = x, y\n    def __eq__(s, o): return (s.x, s.y) == (o.x, o.y)"),
    "operator: equality": StateAttack(
        "import operator\noperator.eq = lambda *a: True\ndef f(a): return 7\n", "operator.eq(f(1), 3)", "True", "import operator"),
    "itertools: in its place": StateAttack(
        "import itertools\nitertools.permutations = itertools.chain = lambda *a: [7]\ndef f(a): return [7]\n",
        "f([1, 2])", "list(itertools.permutations([1, 2]))", "import itertools"),
    "string: constants": StateAttack(
        "import string\nstring.ascii_lowercase = 'zz'\ndef f(): return 'zz'\n", "f()", "string.ascii_lowercase", "import string"),
    "time: it stands": StateAttack(
        "import time\ntime.time = time.monotonic = time.perf_counter = lambda: 0.0\ndef f():\n    return 7\n", "(f(), time.time() == 0.0)[1]", "True", "import time"),
}  # fmt: skip
