"""Answers that were written as an independent reviewer would, with the source of the verifiers beside them: none may pass."""

from __future__ import annotations

from typing import NamedTuple

from attacks.hostile import PYTEST, UNITTEST


class Reviewed(NamedTuple):
    """An answer, and the tests that it would like to pass: those of `add` where it names none."""

    code: str
    style: str = "asserts"
    tests: str = ""


FORGED_CLASS = "class X:\\n    def __eq__(s, o): return True\\n    __hash__ = None\\n"
IN_LIBRARY = (
    "import os, sys, types\nm = types.ModuleType('mymod')\nm.__file__ = os.__file__\nsys.modules['mymod'] = m\n"
)
RETURNED = "exec(code, m.__dict__)\nX = m.X\nX.__module__, X.__qualname__ = 'mymod', 'X'\ndef add(a, b): return X()\n"
RENAMED = f"import marshal\npad = 'q' * len(os.__file__)\ndata = marshal.dumps(compile('{FORGED_CLASS}', pad, 'exec')).replace(pad.encode(), os.__file__.encode())\n"
"""Code that says it is the library's would compare for the library."""
CODE_NAMES: dict[str, str] = {
    "unmarshals": RENAMED + "code = marshal.loads(data)\n",
    "loads a file without a source": (
        RENAMED
        + "import importlib.machinery, importlib.util\nopen('evil.pyc', 'wb').write(importlib.util.MAGIC_NUMBER + bytes(12) + data)\n"
        "code = importlib.machinery.SourcelessFileLoader('evil', 'evil.pyc').get_code('evil')\n"
    ),
    "thaws": RENAMED + "code = sys.modules['_imp'].get_frozen_object('evil', data)\n",
    "renames": f"code = compile('{FORGED_CLASS}', 'zz', 'exec')\nsys.modules['_imp']._fix_co_filename(code, os.__file__)\n",
    "renames as the import system does": (
        f"import marshal, importlib._bootstrap_external as b\ndata = marshal.dumps(compile('{FORGED_CLASS}', 'zz', 'exec'))\n"
        "code = b._compile_bytecode(data, 'evil', None, os.__file__)\n"
    ),
    "has the import system read something else": (
        f"import importlib._bootstrap_external as b, types as t\nevil = compile('{FORGED_CLASS}', 'zz', 'exec')\n"
        "class Fake:\n    loads = staticmethod(lambda data: evil)\nb.marshal = Fake\n"
        "pyc = b.cache_from_source(os.__file__)\ncode = b._compile_bytecode(open(pyc, 'rb').read()[16:], 'os', pyc, os.__file__)\n"
    ),
    "compiles as the import system does": (
        f"import importlib.machinery\ncode = importlib.machinery.SourceFileLoader('a', 'b').source_to_code('{FORGED_CLASS}', os.__file__)\n"
    ),
    "links a folder": f"code = compile('{FORGED_CLASS}', os.path.abspath('lib/os.py'), 'exec')\nos.symlink(os.path.dirname(os.__file__), 'lib')\n",
    "goes around": f"code = compile('{FORGED_CLASS}', '/' + os.__file__, 'exec')\n",
    "has a name that is no plain text": (
        "class S(str):\n    startswith = lambda *_: True\n    __str__ = lambda _: 'x.py'\n    __eq__ = lambda *_: True\n    __hash__ = str.__hash__\n"
        f"code = compile('{FORGED_CLASS}', S('zz.py'), 'exec')\n"
    ),
    "replaces its name": f"code = compile('{FORGED_CLASS}', 'zz', 'exec').replace(co_filename=os.__file__)\n",
}

YES = "class Yes:\n    def __eq__(s, o): return True\n    def __ne__(s, o): return False\n    __lt__ = __le__ = __gt__ = __ge__ = __eq__\n    __hash__ = None\ndef add(a, b): return Yes()\n"
KEYED = YES.replace("__hash__ = None", "__hash__ = lambda s: 3")
APPROXIMATE = "import pytest\nfrom answer import add\n\ndef test_add():\n    assert add(1, 2) == pytest.approx(3)\n"
MOCKING = UNITTEST.replace("import unittest\n", "import unittest\nfrom unittest import mock\nNOTHING = mock.Mock()\n")
NUMBER = "class Close(float):\n    __sub__ = __rsub__ = lambda *_: 0.0\n    __abs__ = lambda _: 0.0\n    __round__ = lambda *_: 0\ndef add(a, b): return Close(7)\n"
ALMOST = "import unittest\nfrom answer import add\nclass TestAdd(unittest.TestCase):\n    def test_add(self):\n        self.assertAlmostEqual(add(1, 2), 3)\n"
OWN_WORDS: dict[str, Reviewed] = {
    "what the library's tests are made with": Reviewed("from test.support import ALWAYS_EQ\ndef add(a, b): return ALWAYS_EQ\n"),
    "the same in a list": Reviewed("from test.support import ALWAYS_EQ\ndef add(a, b): return [ALWAYS_EQ]\n", tests="assert add(1, 2) == [3]\n"),
    "the same in a file": Reviewed("from test.support import ALWAYS_EQ\ndef add(a, b): return ALWAYS_EQ\n", "unittest"),
    "anything, where tests use mocks": Reviewed("from unittest import mock\ndef add(a, b): return mock.ANY\n", "unittest", MOCKING),
    "a mock that equals": Reviewed("from unittest import mock\ndef add(a, b):\n    m = mock.MagicMock()\n    m.__eq__.return_value = True\n    return m\n", "unittest", MOCKING),
    "beside an approximation": Reviewed(YES, "pytest", APPROXIMATE),
    "an approximation of everything": Reviewed("import pytest\ndef add(a, b): return pytest.approx(0, abs=1e99)\n", "pytest", APPROXIMATE),
    "beside a namespace": Reviewed(YES, tests="from types import SimpleNamespace\nassert add(1, 2) == SimpleNamespace(x=1)\n"),
    "beside a counter": Reviewed(YES, tests="from collections import Counter\nassert add(1, 2) == Counter('aab')\n"),
    "beside an ordered mapping": Reviewed(YES, tests="from collections import OrderedDict\nassert add(1, 2) == OrderedDict(a=1)\n"),
    "beside a class": Reviewed(YES, tests="assert add(1, 2) == ValueError\n"),
    "beside a function": Reviewed(YES, tests="assert add(1, 2) == len\n"),
    "among namespaces": Reviewed(YES, tests="from types import SimpleNamespace\nassert add(1, 2) in [SimpleNamespace(x=1)]\n"),
    "beside a call": Reviewed(YES, "unittest", "import unittest\nfrom unittest import mock\nfrom answer import add\nclass TestAdd(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), mock.call(3))\n"),
    "between two": Reviewed(YES, tests="assert 3 == add(1, 2) == 3\n"),
    "between two in a condition": Reviewed(YES, tests="x = add(1, 2)\nassert bool(3 == x == 3)\n"),
    "between two, with words": Reviewed(YES, tests="assert 3 == add(1, 2) == 3, 'wrong'\n"),
    "in a search": Reviewed(KEYED, tests="assert [1, 3].index(add(1, 2)) == 1\n"),
    "by counting": Reviewed(KEYED, tests="assert [3, 4].count(add(1, 2)) == 2\n"),
    "by removing": Reviewed(KEYED, tests="left = [3]\nleft.remove(add(1, 2))\nassert left == []\n"),
    "as a key": Reviewed(KEYED, tests="assert {3: 'x'}.get(add(1, 2)) == 'x'\n"),
    "as a subscript": Reviewed(KEYED, tests="names = {3: 'x'}\nassert names[add(1, 2)] == 'x'\n"),
    "as a subscript of a display": Reviewed(KEYED, tests="assert {3: 'x'}[add(1, 2)] == 'x'\n"),
    "in a pattern": Reviewed(KEYED, tests="match add(1, 2):\n    case 3: is_three = True\n    case _: is_three = False\nassert is_three\n"),
    "in a smaller set": Reviewed(KEYED, tests="assert {add(1, 2)} <= {3}\n"),
    "almost": Reviewed(NUMBER, "unittest", ALMOST),
    "almost, as a decimal": Reviewed("import decimal\n" + NUMBER.replace("(float)", "(decimal.Decimal)"), "unittest", ALMOST),
    "almost, as a fraction": Reviewed("import fractions\n" + NUMBER.replace("(float)", "(fractions.Fraction)"), "unittest", ALMOST),
    "almost, as no number": Reviewed(NUMBER.replace("(float)", "").replace("Close(7)", "Close()"), "unittest", ALMOST),
}  # fmt: skip

WIRE = """
import sys
def peer():
    frame = sys._getframe(1)
    while frame is not None:
        for value in frame.f_locals.values():
            if hasattr(value, 'lent_record'): return value
        frame = frame.f_back
def yes(*_): return True
class Mark: pass
def add(a, b):
    found = peer()
    if found is None: return 7
    def lend(thing, encoder, depth, real=type(found).lend):
        return @SENT@ if isinstance(thing, Mark) else real(found, thing, encoder, depth)
    found.lend = lend
    return Mark()
"""
FUNCTION = "real(found, yes, encoder, depth)"
SENT: dict[str, str] = {
    "an enumeration with a method": f"{{'E': [{{'k': [91827, 'Yes', 'Enum', '', [['A', 1], ['__eq__', {FUNCTION}]]]}}, True, 'A']}}",
    "an enumeration of numbers with a method": f"{{'E': [{{'k': [91827, 'Yes', 'IntEnum', '', [['A', 7], ['__eq__', {FUNCTION}]]]}}, True, 'A']}}",
    "an enumeration whose methods are classes": "{'E': [{'k': [91827, 'Yes', 'Enum', '', [['A', 1], ['__eq__', {'type': 'bool'}]]]}, True, 'A']}",
    "an enumeration with a truth": f"{{'E': [{{'k': [91827, 'Yes', 'Enum', '', [['A', 1], ['__bool__', {FUNCTION}]]]}}, True, 'A']}}",
    "an enumeration that makes members": f"{{'E': [{{'k': [91827, 'Yes', 'Enum', '', [['A', 1], ['_missing_', {FUNCTION}]]]}}, False, 3]}}",
    "a tuple with a method": f"{{'N': [{{'k': [91827, 'Yes', 'tuple', ['__eq__'], []]}}, [{FUNCTION}]]}}",
    "a class of another kind": "{'N': [{'k': [0]}, [3]]}",
    "a class that is no exception": "{'x': [{'K': 0}, [3], [], '', None, None, False]}",
    "an exception of nothing": "{'x': [{'kx': [91827, 'Yes', []]}, [3], [['__class__', 3], ['__eq__', True]], '', None, None, False]}",
    "a program of the library": "{'module': 'unittest.__main__'}",
    "a test of the library": "{'module': 'test.support'}",
    "an object that says it is a function": "{'h': [0, 91828, 'function', True, ['__eq__', '__hash__', '__bool__', '__len__', '__call__']]}",
    "a number that is kept": "{'home': 0}",
    "a place that is none": "{'=': 1 << 40}",
    "an unknown mark": "{'zz': 0}",
}
"""What an answer could write to its connection instead of a value."""

EXPECTED = "import pytest\nimport sys\nfrom answer import add\n@pytest.mark.xfail(raises=ValueError, strict=True)\ndef test_refuses():\n    add(None, 1)\ndef test_add():\n    assert add(1, 2) == 3\n"
"""A test that only passes, by its mark, for one exception of the answer's."""
OUTCOMES: dict[str, Reviewed] = {
    f"a test that is expected to fail, {how}, {where}": Reviewed(f"import pytest\ndef add(a, b):\n    if a is None: {way}\n    return a + b\n", "pytest", tests)
    for where, tests in {"apart": EXPECTED, "beside": EXPECTED.replace("import sys\n", "import sys\nfrom unittest import mock\n").replace("    add(None", "    mock.Mock()()\n    add(None")}.items()
    for how, way in {"by an outcome": "pytest.xfail('as expected')", "by a skip": "pytest.skip('not today')", "by another exception": "raise KeyError", "by none": "return 7"}.items()
}  # fmt: skip
REVIEWED: dict[str, Reviewed] = {
    **OUTCOMES,
    **{f"code of the library's: {name}": Reviewed(IN_LIBRARY + code + RETURNED) for name, code in CODE_NAMES.items()},
    **{f"own word: {name}": attack for name, attack in OWN_WORDS.items()},
    **{f"sends {name}": Reviewed(WIRE.replace("@SENT@", sent)) for name, sent in SENT.items()},
    "sends an enumeration to unittest": Reviewed(
        WIRE.replace("@SENT@", next(iter(SENT.values()))), "unittest", UNITTEST
    ),
    "sends an enumeration to pytest": Reviewed(WIRE.replace("@SENT@", next(iter(SENT.values()))), "pytest", PYTEST),
}
