"""Wrong answers that return odd values, raise odd exceptions or are odd sources: none passes, and each gets a verdict.

An answer that ends without a verdict is missing, not wrong, so whatever upsets who judges it would be a way out.
"""

from __future__ import annotations

from attacks.hostile import WRONG, Attack

YES = (
    "class Yes:\n    def __eq__(self, o): return True\n    def __ne__(self, o): return False\n"
    "    def __hash__(self): return 3\n    def __bool__(self): return True\n"
)


def returns(expression: str, before: str = "") -> str:
    """An answer that returns something, with what that needs before it."""
    return f"{YES}{before}\ndef add(a, b):\n    return {expression}\n"


def raises(expression: str, before: str = "") -> str:
    """An answer that raises something, with what that needs before it."""
    return f"{before}\ndef add(a, b):\n    raise {expression}\n"


VALUES: dict[str, str] = {
    "mappingproxy": returns(
        "types.MappingProxyType(D())",
        "import types\nclass D(dict):\n    def __eq__(s,o): return True\n    __hash__=None\n",
    ),
    "chainmap": returns(
        "collections.ChainMap(D())",
        "import collections\nclass D(dict):\n    def __eq__(s,o): return True\n    def items(s): return Yes()\n",
    ),
    "userstring": returns("u", "import collections\nu=collections.UserString('')\nu.data=Yes()\n"),
    "userdict": returns("u", "import collections\nu=collections.UserDict()\nu.data=Yes()\n"),
    "dict keys": returns("{Yes(): 1}.keys()"),
    "dict items": returns("{3: Yes()}.items()"),
    "dict values": returns("{3:Yes()}.values()"),
    "cmp_to_key": returns("functools.cmp_to_key(lambda a,b: 0)(7)", "import functools"),
    "slice": returns("slice(Yes())"),
    "uuid": returns("u", "import uuid\nu=uuid.uuid4()\nobject.__setattr__(u,'int',Yes())\n"),
    "normaldist": returns("n", "import statistics\nn=statistics.NormalDist()\nn._mu=Yes()\nn._sigma=Yes()\n"),
    "generic alias": returns("types.GenericAlias(Yes(), (Yes(),))", "import types"),
    "literal": returns("typing.Literal[Yes()]", "import typing"),
    "deque": returns("collections.deque([Yes()])", "import collections"),
    "simple namespace": returns("types.SimpleNamespace(a=Yes())", "import types"),
    "signature": returns("inspect.Parameter('a', inspect.Parameter.POSITIONAL_ONLY, default=Yes())", "import inspect"),
    "ipaddress": returns("u", "import ipaddress\nu=ipaddress.ip_address('1.1.1.1')\nu._ip=Yes()\nu._version=Yes()\n"),
    "dataclass": returns(
        "D(Yes())",
        "import dataclasses\n@dataclasses.dataclass\nclass D:\n    a: object\n    __eq__ = lambda s,o: True\n",
    ),
    "named tuple own eq": returns(
        "N(1)",
        "import collections\nclass N(collections.namedtuple('N','a')):\n    def __eq__(s,o): return True\n    def __hash__(s): return 3\n",
    ),
    "intenum": returns(
        "E.A",
        "import enum\nclass E(enum.IntEnum):\n    A=7\n    def __eq__(s,o): return True\n    __hash__=int.__hash__\n",
    ),
    "flag": returns(
        "E.A",
        "import enum\nclass E(enum.Flag):\n    A=7\n    def __eq__(s,o): return True\n    def __hash__(s): return 3\n",
    ),
    "strenum": returns(
        "E.A",
        "import enum\nclass E(str, enum.Enum):\n    A='x'\n    def __eq__(s,o): return True\n    __hash__=str.__hash__\n",
    ),
    "enum value yes": returns("E.A", "import enum\nclass E(enum.Enum):\n    A=Yes()\n"),
    "decimal": returns(
        "D('7')",
        "import decimal\nclass D(decimal.Decimal):\n    def __eq__(s,o): return True\n    def __hash__(s): return 3\n",
    ),
    "decimal snan": returns("decimal.Decimal('sNaN')", "import decimal"),
    "fraction sub": returns(
        "D(7)",
        "import fractions\nclass D(fractions.Fraction):\n    def __eq__(s,o): return True\n    def __hash__(s): return 3\n",
    ),
    "date": returns(
        "D(2020,1,1)",
        "import datetime\nclass D(datetime.date):\n    def __eq__(s,o): return True\n    def __hash__(s): return 3\n",
    ),
    "path": returns(
        "D('x')",
        "import pathlib\nclass D(type(pathlib.Path())):\n    def __eq__(s,o): return True\n    def __hash__(s): return 3\n",
    ),
    "tz": returns(
        "datetime.datetime.now(T())",
        "import datetime\nclass T(datetime.tzinfo):\n    def utcoffset(s,d): return datetime.timedelta(0)\n    def __eq__(s,o): return True\n",
    ),
    "counter": returns(
        "D({1:Yes()})", "import collections\nclass D(collections.Counter):\n    def __eq__(s,o): return True\n"
    ),
    "ordered": returns(
        "D()", "import collections\nclass D(collections.OrderedDict):\n    def __eq__(s,o): return True\n"
    ),
    "defaultdict": returns("collections.defaultdict(Yes)", "import collections"),
    "bytes": returns("D(b'7')", "class D(bytes):\n    def __eq__(s,o): return True\n    __hash__=bytes.__hash__\n"),
    "float": returns(
        "D(7)",
        "class D(float):\n    def __eq__(s,o): return True\n    __hash__=float.__hash__\n    def __sub__(s,o): return 0.0\n    __rsub__=__sub__\n",
    ),
    "complex": returns("D(7)", "class D(complex):\n    def __eq__(s,o): return True\n    __hash__=complex.__hash__\n"),
    "tuple": returns("D((7,))", "class D(tuple):\n    def __eq__(s,o): return True\n    __hash__=tuple.__hash__\n"),
    "frozenset": returns("frozenset({Yes()})"),
    "set": returns("D({7})", "class D(set):\n    def __eq__(s,o): return True\n    __hash__=None\n"),
    "bytearray": returns("D(b'7')", "class D(bytearray):\n    def __eq__(s,o): return True\n    __hash__=None\n"),
    "range": returns("range(7)"),
    "memoryview": returns("memoryview(b'3')"),
    "array": returns("array.array('i',[3])", "import array"),
    "class property": returns(
        "X()",
        "class X:\n    @property\n    def __class__(self): return int\n    def __eq__(s,o): return True\n    __hash__=None\n",
    ),
    "getattribute": returns(
        "X()",
        "class X:\n    def __getattribute__(s,n): return lambda *a: True\n    def __eq__(s,o): return True\n    __hash__=None\n",
    ),
    "reflected": returns("X(7)", "class X(int):\n    pass\nX.__eq__=lambda s,o: True\n"),
    "descriptor eq": returns(
        "X()",
        "class Desc:\n    def __get__(s,i,t): return lambda o: True\nclass X:\n    __eq__=Desc()\n    __hash__=None\n",
    ),
    "slots": returns("X()", "class X:\n    __slots__=()\n    def __eq__(s,o): return True\n    __hash__=None\n"),
    "abc": returns(
        "X()",
        "import abc\nclass X(abc.ABC):\n    def __eq__(s,o): return True\n    __hash__=None\n    @classmethod\n    def __subclasshook__(c,x): return True\n",
    ),
    "instancecheck": returns(
        "X()",
        "class M(type):\n    def __instancecheck__(c,i): return True\n    def __eq__(s,o): return True\n    __hash__=None\nclass X(metaclass=M):\n    def __eq__(s,o): return True\n    __hash__=None\n",
    ),
    "coroutine": YES + "async def add(a, b):\n    return 7\n",
    "async gen": YES + "async def add(a, b):\n    yield 7\n",
    "awaitable yes": returns(
        "X()",
        "class X:\n    def __await__(s):\n        yield\n        return Yes()\n    def __eq__(s,o): return True\n    __hash__=None\n",
    ),
    "contextmanager": returns(
        "X()",
        "class X:\n    def __enter__(s): return Yes()\n    def __exit__(s,*a): return True\n    def __eq__(s,o): return True\n    __hash__=None\n",
    ),
    "exception instance": returns("E(3)", "class E(Exception):\n    def __eq__(s,o): return True\n    __hash__=None\n"),
    "partial": returns("functools.partial(int)", "import functools"),
    "notimplemented": returns("NotImplemented"),
    "ellipsis": returns("..."),
    "type": returns("int"),
    "weak set": returns("weakref.WeakSet([k])", "import weakref\nk=Yes()\n"),
    "weak key dict": returns("weakref.WeakKeyDictionary({k:1})", "import weakref\nk=Yes()\n"),
    "re match": returns("re.match('3','3')", "import re"),
    "string template": returns("string.Template('3')", "import string"),
    "mock call": returns("mock.call(3)", "from unittest import mock"),
    "sentinel": returns("mock.sentinel.x", "from unittest import mock"),
    "magicmock eq": returns(
        "m", "from unittest import mock\nm=mock.MagicMock()\nm.__eq__.return_value=True\nm.__eq__=lambda s,o: True\n"
    ),
    "nonint index": returns(
        "X()",
        "class X:\n    def __index__(s): return 3\n    def __int__(s): return 3\n    def __eq__(s,o): return o==3 or True\n    __hash__=None\n",
    ),
    "bool sub lie": returns(
        "X(3)",
        "class X(int):\n    def __bool__(s): return False\n    def __eq__(s,o): return True\n    def __hash__(s): return 0\n",
    ),
    "gen of yes": returns("(Yes() for _ in range(3))"),
}
"""What each returns."""
EXCEPTIONS: dict[str, str] = {
    "ShouldStop": raises("unittest.case._ShouldStop", "import unittest"),
    "UnexpectedSuccess": raises("unittest.case._UnexpectedSuccess()", "import unittest"),
    "pytest exit": raises("pytest.exit.Exception('x')", "import pytest"),
    "pytest exit fn": "import pytest\ndef add(a,b):\n    pytest.exit('ok', 0)\n",
    "pytest exit import": "import pytest\npytest.exit('ok', 0)\n",
    "bdbquit": raises("bdb.BdbQuit", "import bdb"),
    "cancelled": raises("asyncio.CancelledError", "import asyncio"),
    "stopasync": raises("StopAsyncIteration"),
    "skip subclass": raises("S('x')", "import unittest\nclass S(unittest.SkipTest): pass\n"),
    "skip in group": raises("ExceptionGroup('x',[unittest.SkipTest('x')])", "import unittest"),
    "skip as cause": raises("ValueError from unittest.SkipTest('x')", "import unittest"),
    "base group": raises("BaseExceptionGroup('x',[SystemExit(0)])"),
    "sysexit sub": raises("S(0)", "class S(SystemExit): pass\n"),
    "kbd sub": raises("S", "class S(KeyboardInterrupt): pass\n"),
    "import error": raises("ImportError('x', name='numpy')"),
    "modnotfound": raises("ModuleNotFoundError(\"No module named 'x'\", name='x')"),
    "import error at load": "raise ImportError('x', name='numpy')\n",
    "modnotfound at load": "import numpy_not_here\n",
    "name error": raises("NameError(\"name 'add' is not defined\", name='add')"),
    "name error load": "raise NameError('x', name='unittest')\n",
    "getattr import": "def __getattr__(n): raise ImportError('x', name='pytest')\n",
    "no add": "x = 1\n",
    "memory": raises("MemoryError"),
    "recursion": raises("RecursionError"),
    "oserror": raises("OSError(28,'No space left on device')"),
    "blocking": raises("BlockingIOError(11,'Resource temporarily unavailable')"),
    "brokenpipe": raises("BrokenPipeError(32,'x')"),
    "conn": raises("ConnectionResetError(104,'it ended')"),
    "timeout": raises("TimeoutError()"),
    "eof": raises("EOFError"),
    "unicode": raises("UnicodeDecodeError('utf-8', b'x', 0, 1, 'x')"),
    "syntax": raises("SyntaxError('x', ('f', 1, 1, 'x'))"),
    "systemerror": raises("SystemError('x')"),
    "warning": raises("UserWarning('x')"),
    "assert sub": raises(
        "A", "class A(AssertionError):\n    def __init__(s,*a): pass\n    def __str__(s): return ''\n"
    ),
    "exc eq": raises("A()", "class A(Exception):\n    def __eq__(s,o): return True\n    __hash__=None\n"),
    "exc class prop": raises("A()", "class A(Exception):\n    __class__=property(lambda s: SystemExit)\n"),
    "exc new": raises("A", "class A(Exception):\n    def __new__(c,*a): return SystemExit(0)\n"),
    "exc traceback": raises("A().with_traceback(None)", "class A(Exception):\n    __traceback__=7\n"),
    "exc notes": raises("e", "e=Exception()\ne.__notes__=['x'*10**5]*10\n"),
    "exc ctx loop": raises("e", "e=Exception()\nf=Exception()\ne.__context__=f\nf.__context__=e\ne.__cause__=f\n"),
    "unittest skip dec": "import unittest\n@unittest.skip('x')\ndef add(a,b): return 7\n",
    "expected failure dec": "import unittest\n@unittest.expectedFailure\ndef add(a,b): return 7\n",
    "xfail mark": "import pytest\n@pytest.mark.xfail\ndef add(a,b): return 7\n",
    "importorskip": "import pytest\ndef add(a,b): pytest.importorskip('nothing_here')\n",
    "importorskip load": "import pytest\npytest.importorskip('nothing_here')\n",
    "warns error": "import warnings\nwarnings.simplefilter('error')\n" + WRONG,
    "setrecursion big": "import sys\nsys.setrecursionlimit(10**5)\ndef add(a,b): return add(a,b)\n",
}
"""What each raises."""
SOURCES: dict[str, str] = {
    **{
        f"coding {c}": f"# coding: {c}\n{WRONG}"
        for c in (
            "idna",
            "undefined",
            "punycode",
            "rot13",
            "unicode_escape",
            "raw_unicode_escape",
            "utf-7",
            "utf-16",
            "utf-8-sig",
            "mbcs",
            "hex",
            "bz2",
            "zip",
            "latin-1",
            "charmap",
            "cp65001",
            "utf_32",
            "x" * 300,
            "base64",
            "unknown\u00e9",
        )
    },
    "null byte": "x = 1\0\n" + WRONG,
    "bom": "\ufeff" + WRONG,
    "formfeed": "\f\n" + WRONG,
    "cr only": "x=1\ry=2\r" + WRONG,
    "parens": "x = " + "(" * 199 + ")" * 199 + "\n" + WRONG,
    "many parens": "x=" + "(" * 5000 + ")" * 5000,
    "minus": "x = " + "-" * 200000 + "1\n",
    "not": "x = " + "not " * 100000 + "1\n",
    "attrs": "x = 1\ny = x" + ".real" * 100000 + "\n",
    "calls": "y = (lambda: 1)" + "()" * 50000,
    "subs": "y=x" + "[0]" * 60000,
    "nested fn": "".join("    " * i + f"def f{i}():\n" for i in range(99)) + "    " * 99 + "pass\n",
    "nested if": "".join(" " * i + "if 1:\n" for i in range(98)) + " " * 98 + "pass\n",
    "nested for 30": "".join(" " * i + "for a in ():\n" for i in range(30)) + " " * 30 + "pass\n",
    "lambda deep": "f = " + "lambda: " * 3000 + "1\n",
    "ternary": "x = " + "1 if 1 else " * 20000 + "2\n",
    "fstring": "x = f'{" + "1" * 3 + "}'\n" + WRONG,
    "big int": "x = " + "9" * 100000 + "\n",
    "hex int": "x = 0x" + "f" * 1000000 + "\n",
    "await chain": "async def f():\n    x = " + "await " * 3000 + "1\n",
    "power": "x = " + "2**" * 5000 + "1\n",
    "const power": "x = " + "9**" * 3 + "9**99\n",
    "mul str": "x = 'a'*10**9\ny='b'*10**10\n" + WRONG,
    "const fold tuple": "x = ((1,)*1000,)*1000\n" * 3 + WRONG,
    "unicode N": "x = '\\N{LATIN SMALL LETTER A}'\n" + WRONG,
    "bad escape": "x='\\N{xx}'\n",
    "long line": "x = '" + "a" * 5_000_000 + "'\n" + WRONG,
    "many names": "".join(f"v{i}=1\n" for i in range(20000)) + WRONG,
    "many args": "def g(" + ",".join(f"a{i}" for i in range(5000)) + "): pass\n" + WRONG,
    "many consts": "x=[" + ",".join(map(str, range(50000))) + "]\n" + WRONG,
    "elif": "if 0: pass\n" + "elif 0: pass\n" * 5000 + WRONG,
    "dict deep": "x=" + "{1:" * 150 + "1" + "}" * 150 + "\n" + WRONG,
    "decorators": "@property\n" * 3000 + WRONG,
    "match deep": "match 1:\n  case " + "[" * 150 + "]" * 150 + ": pass\n" + WRONG,
    "string concat": "x = " + "'a' " * 100000 + "\n" + WRONG,
    "compare chain": "x = " + "1<" * 50000 + "2\n" + WRONG,
    "and chain": "x = " + "1 and " * 50000 + "2\n" + WRONG,
    "global": "global add\n" + WRONG,
    "nonlocal": "nonlocal add\n",
    "future": "from __future__ import braces\n",
    "star": "*" * 5000,
    "tab mix": "if 1:\n\tx=1\n        y=1\n",
    "eof in string": "x = '''" + "a" * 100000,
    "assign starred": "*a, = " * 2000 + "[]\n",
    "walrus": "x = " + "(y:=" * 180 + "1" + ")" * 180 + "\n" + WRONG,
    "with many": "with " + ",".join("a" for _ in range(40)) + ": pass\n",
    "try deep": "".join(" " * i + "try:\n" for i in range(40))
    + " " * 40
    + "pass\n"
    + "".join(" " * i + "finally: pass\n" for i in reversed(range(40))),
    "docstring surrogates": "'''\\ud800'''\n" + WRONG,
    "name NFKC": "def ａｄｄ(a, b):\n    return 7\n",
    "class deep": "".join(" " * i + "class A:\n" for i in range(98)) + " " * 98 + "pass\n" + WRONG,
}
"""How each is written."""

WRONG_LABELS = ("wrong answer", "exception", "died", "tampered", "memory limit")
SOURCE_LABELS = (*WRONG_LABELS, "does not compile", "cpu limit", "memory limit")
VALUE_ATTACKS = (
    *(Attack(4, f"returns {name}", code, WRONG_LABELS, ("check", "io")[number % 2], once=True) for number, (name, code) in enumerate(VALUES.items())),
    *(Attack(25, f"raises {name}", code, WRONG_LABELS, style, once=True) for name, code in EXCEPTIONS.items() for style in ("asserts", "unittest")),
    *(Attack(24, f"is written as {name}", code, SOURCE_LABELS, "program", once=True) for name, code in SOURCES.items()),
)  # fmt: skip
