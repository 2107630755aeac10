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

SEARCH = """
def search(thing, depth=5):
    if isinstance(thing, int) and not isinstance(thing, bool) and thing > 10000: yield thing
    elif isinstance(thing, str): yield from (int(n) for n in re.findall(r'(?<![\\w.])\\d{5}(?![\\w.])', thing))
    elif depth:
        inner = []
        if isinstance(thing, dict): inner = list(thing.values())
        elif isinstance(thing, (list, tuple, set, frozenset)): inner = list(thing)
        for name in ('f_back', 'f_code', 'f_locals', 'co_consts', 'frame', 'raw', 'argval', 'object', '__dict__', 'args'):
            try: inner.append(getattr(thing, name))
            except Exception: pass
        for one in inner: yield from search(one, depth - 1)
"""
LAZY = """
import {modules}operator, re
sink = []
try: 1 / 0
except ZeroDivisionError as error: trace = error.__traceback__
def generator(): yield 1
async def coroutine(): pass
alive = generator()
{before}
def numbers():
    return map(operator.itemgetter(1), zip(map(sink.append, map({look})), [1]))
def leaked():
    return next((n for thing in sink for n in search(thing)), 7)
"""
LAZY_TESTS = "assert list(numbers()) == [1]\nassert leaked() == 12321\n"
LAZY_FILE = """
import unittest
from answer import numbers, leaked
class TestLeak(unittest.TestCase):
    def test_leak(self):
        self.assertEqual(list(numbers()), [1])
        self.assertEqual(leaked(), 12321)
"""
OWN_TEST = "import unittest\ndef test():\n    return next((c.test_leak for c in unittest.TestCase.__subclasses__() if hasattr(c, 'test_leak')), leaked)"
TRACER = (
    "class Tracer({base}):\n    def {method}(self, *given):\n        sink.extend(given)\n        return self.{method}\n"
)
LOOKS: dict[str, tuple[str, str, str]] = {
    "inspect.stack": ("inspect", "", "inspect.stack, [5]"),
    "inspect.trace": ("inspect", "", "inspect.trace, [5]"),
    "inspect.getinnerframes": ("inspect", "", "inspect.getinnerframes, [trace]"),
    "inspect.getouterframes": ("inspect, sys", "", "inspect.getouterframes, map(sys._getframe, [0])"),
    "inspect.getframeinfo": ("inspect", "", "inspect.getframeinfo, [trace]"),
    "inspect.getgeneratorlocals": ("inspect", "", "inspect.getgeneratorlocals, [alive]"),
    "inspect.getcoroutinelocals": ("inspect", "", "inspect.getcoroutinelocals, [coroutine()]"),
    "inspect.getclosurevars": ("inspect", OWN_TEST, "inspect.getclosurevars, [test()]"),
    "inspect.getsource": ("inspect", OWN_TEST, "inspect.getsource, [test()]"),
    "traceback.walk_stack": ("traceback", "", "list, [traceback.walk_stack(None)]"),
    "traceback.extract_stack": ("traceback, functools", "", "functools.partial(traceback.extract_stack, None), [9]"),
    "traceback.TracebackException": ("traceback", "", "lambda e: list(map(vars, traceback.TracebackException.from_exception(e, capture_locals=True).stack)), [ZeroDivisionError().with_traceback(trace)]"),
    "traceback.print_stack": ("io, traceback", "class File(io.StringIO):\n    def write(self, text): sink.append(text)\n", "traceback.print_stack, [None], [9], [File()]"),
    "the caller of a log": ("logging", "", "logging.Logger('x').findCaller, [True]"),
    "the place of a warning": ("warnings", "warnings.showwarning = lambda *given: sink.extend(given)\n", "warnings.warn, ['x'], [Warning], [2]"),
    "bdb": ("bdb", TRACER.format(base="bdb.Bdb", method="trace_dispatch"), "Tracer().set_trace, [None]"),
    "pdb": ("pdb", "import io\n", "pdb.Pdb(stdin=io.StringIO('p sink.append(__frame)\\nc\\n'), stdout=io.StringIO()).set_trace, [None]"),
    "trace": ("trace", TRACER.format(base="trace.Trace", method="globaltrace_lt") + "tracer = Tracer(count=0)\ntracer.globaltrace = tracer.globaltrace_lt\ntracer.donothing = False\n", "tracer.runfunc, [int]"),
    "profile": ("profile", TRACER.format(base="profile.Profile", method="trace_dispatch_call"), "Tracer().runcall, [int]"),
    "cProfile": ("cProfile", "", "cProfile.Profile().runcall, [int]"),
    "sys.settrace": ("sys", "", "sys.settrace, [lambda *given: sink.extend(given)]"),
    "sys.setprofile": ("sys", "", "sys.setprofile, [lambda *given: sink.extend(given)]"),
    "threads that are traced": ("threading", "threading.settrace(lambda *given: sink.extend(given))\n", "lambda target: threading.Thread(target=target).start(), [print]"),
    "an audit hook": ("sys", "", "sys.addaudithook, [lambda event, given: sink.append(given)]"),
    "an audit hook at import": ("sys", "sys.addaudithook(lambda event, given: sink.append(given))\n", "int, [1]"),
    "frames of all threads": ("sys", "", "lambda _: sys._current_frames(), [1]"),
    "exceptions of all threads": ("sys", "", "lambda _: sys._current_exceptions(), [1]"),
    "a frame": ("sys", "", "sys._getframe, [0]"),
    "the frame of a traceback": ("", "", "operator.attrgetter('tb_frame'), [trace]"),
    "the frame of a generator": ("", "", "operator.attrgetter('gi_frame'), [alive]"),
    "the frame of a coroutine": ("", "", "operator.attrgetter('cr_frame'), [coroutine()]"),
    "the code of a test": ("", OWN_TEST, "operator.attrgetter('__code__'), [test()]"),
    "the defaults of a test": ("", OWN_TEST, "operator.attrgetter('__defaults__'), [test()]"),
    "its instructions": ("dis", OWN_TEST, "list, map(dis.get_instructions, [test()])"),
    "its code in words": ("dis", OWN_TEST, "dis.code_info, [test()]"),
    "its disassembly": ("contextlib, dis, io", OWN_TEST + "\nclass File(io.StringIO):\n    def write(self, text): sink.append(text)\n", "lambda test: dis.dis(test, file=File()), [test()]"),
    "all objects": ("gc", "", "lambda _: gc.get_objects(), [1]"),
    "what refers to an object": ("gc", "", "gc.get_referrers, [sink]"),
    "what an object refers to": ("gc", OWN_TEST, "gc.get_referents, [test()]"),
    "garbage": ("gc", "gc.set_debug(gc.DEBUG_SAVEALL)\nclass Ring(Exception): pass\ndef ring():\n    error = Ring()\n    error.me = error\n    raise error\n", "lambda _: gc.collect() and list(gc.garbage), [1]"),
    "what a collection tells": ("gc", "gc.callbacks.append(lambda *given: sink.extend(given))\n", "lambda _: gc.collect(), [1]"),
    "faulthandler": ("faulthandler", "log = open('log', 'w+')\n", "lambda _: (faulthandler.dump_traceback(log), log.seek(0), log.read())[2], [1]"),
    "a signal": ("signal", "signal.signal(signal.SIGUSR1, lambda *given: sink.extend(given))\n", "signal.raise_signal, [signal.SIGUSR1]"),
    "a handler of encodings": ("codecs", "def handle(error):\n    sink.append(error.object)\n    return '?', error.end\nfor name in ('strict', 'replace', 'ignore', 'backslashreplace'): codecs.register_error(name, handle)\n", "str.encode, ['\\ud800'], ['ascii'], ['replace']"),
    "an encoding": ("codecs", "codecs.register(lambda name: sink.append(name))\n", "codecs.lookup, ['utf_8_sig']"),
    "a finder of modules": ("sys", "class Finder:\n    @staticmethod\n    def find_spec(*given): sink.extend(given)\nsys.meta_path.insert(0, Finder)\n", "__import__, ['this_is_no_module_of_ours' and 'colorsys']"),
    "what becomes of an exception": ("sys", "sys.unraisablehook = sys.excepthook = lambda *given: sink.extend(given)\nclass Last:\n    def __del__(self): raise ValueError\n", "lambda _: Last() and None, [1]"),
    "what is left at the end": ("atexit, weakref", "class Kept: pass\nkept = Kept()\nweakref.finalize(kept, sink.append, 1)\n", "atexit.register, [print]"),
    "how objects are reduced": ("copy, copyreg", "copyreg.pickle(type(leaked) if 'leaked' in globals() else type(generator), lambda f: (sink.append, (f,)))\n", "copy.copy, [generator]"),
    "a context": ("contextvars", "", "lambda _: list(contextvars.copy_context().items()), [1]"),
    "a task": ("asyncio", "", "lambda _: asyncio.all_tasks if False else [], [1]"),
    "lines of files": ("linecache", "", "linecache.getlines, ['test_answer.py']"),
    "classes of this process": ("", "", "type.__subclasses__, [type]"),
    "compiling as the tests": ("", "", "compile, ['import gc\\nsink += gc.get_objects()'], ['test_answer.py'], ['exec']"),
    "unmarshalling as the tests": ("marshal", "data = marshal.dumps(compile('1', 'q' * 14, 'eval')).replace(b'q' * 14, b'test_answer.py')\n", "marshal.loads, [data]"),
    "another code": ("", "", "operator.methodcaller('replace', co_name='x'), [generator.__code__]"),
    "a generic of the library": ("functools", "@functools.singledispatch\ndef shown(thing): sink.append(thing)\nshown.register(int, lambda n: sink.append(n))\n", "shown, [1]"),
}  # fmt: skip
"""What looks into the interpreter, called by what an answer returns while the tests read it, so that no line of the answer asks."""


def lazy_answer(look: str) -> str:
    """An answer that knows what is expected if a look shows it."""
    modules, before, called = LOOKS[look]
    return SEARCH + LAZY.format(modules=f"{modules}, " if modules else "", before=before, look=called)


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
