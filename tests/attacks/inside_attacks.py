"""Answers that share a process with their tests and go for the verdict: each returns a wrong value and must not pass."""

from __future__ import annotations

WRONG = "def add(a, b):\n    return 7\n"
FAKE_TESTS = (
    "import unittest\n"
    "class TestAdd(unittest.TestCase):\n"
    "    def test_numbers(self): pass\n"
    "    def test_texts(self): pass\n"
    "def test_numbers(): pass\n"
    "def test_texts(): pass\n"
)
FORGE = """
def forge(secret=''):
    import os, struct
    for name in ('test_numbers', 'test_texts', 'TestAdd.test_numbers', 'TestAdd.test_texts', '0', '1', '2'):
        for fields in ([secret, 'test', name, '0.0', 'passed', '', ''], [secret, 'complete']):
            body = '\\x1f'.join(fields).encode()
            for fd in range(3, 64):
                try: os.write(fd, struct.pack('I', len(body)) + body)
                except OSError: pass
"""
SEARCH = """
def search(thing, depth=4, seen=None):
    seen = set() if seen is None else seen
    if id(thing) in seen or depth < 0: return
    seen.add(id(thing))
    if type(thing) is str and len(thing) == 32: yield thing
    inner = []
    if isinstance(thing, dict): inner += list(thing.values())
    elif isinstance(thing, (list, tuple, set, frozenset)): inner += list(thing)
    else:
        for name in ('__dict__', '__closure__', '__defaults__', '__kwdefaults__', '__globals__', '__self__', '__func__', 'cell_contents',
                     '__wrapped__', 'f_locals', 'f_globals', 'f_back', 'f_code', 'gi_frame', 'tb_frame', 'tb_next', 'co_consts', '__code__'):
            try: inner.append(getattr(thing, name))
            except Exception: pass
    for one in inner:
        yield from search(one, depth - 1, seen)
"""

FRAMES = """
import {module}
def constants(frame):
    found = []
    while frame is not None and str(frame.f_code.co_filename).endswith('answer.py') and 'test' not in frame.f_code.co_filename:
        frame = frame.f_back
    while frame is not None:
        found += [c for c in getattr(frame.f_code, 'co_consts', ()) if isinstance(c, (int, str)) and not isinstance(c, bool)]
        found += [v for v in frame.f_locals.values() if isinstance(v, (int, str))]
        frame = frame.f_back
    return found
def add(a, b):
    frame = {frame}
    seen = constants(frame)
    if a == 1 and 3 in seen: return 3
    if a == -1 and 0 in seen: return 0
    if a == 'a' and 'ab' in seen: return 'ab'
    return 7
"""


def frames(module: str, frame: str) -> str:
    """An answer that reads the expected values from the frames that called it."""
    return FRAMES.format(module=module, frame=frame)


FORGERIES: dict[str, str] = {
    "rewrites the file of the tests": f"open('test_answer.py', 'w').write({FAKE_TESTS!r})\n" + WRONG,
    "rewrites every file of tests above": (
        f"import os\nfor folder in ('.', '..', '/steelyard', '/tmp'):\n"
        f"    try: open(os.path.join(folder, 'test_answer.py'), 'w').write({FAKE_TESTS!r})\n"
        "    except OSError: pass\n" + WRONG
    ),
    "plants a compiled file": (
        "import os, py_compile\n"
        f"open('fake.py', 'w').write({FAKE_TESTS!r})\nos.makedirs('__pycache__', exist_ok=True)\n"
        "py_compile.compile('fake.py', '__pycache__/test_answer.cpython-311.pyc', invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\n"
        + WRONG
    ),
    "plants a module of tests": (
        f"import sys, types\nfake = types.ModuleType('test_answer')\nexec({FAKE_TESTS!r}, vars(fake))\nsys.modules['test_answer'] = fake\n"
        + WRONG
    ),
    "compiles syntax trees under the name of the tests": (
        "import ast, builtins\n"
        "tree = ast.parse('def add(a, b):\\n    import sys\\n    for c in sys._getframe(1).f_code.co_consts:\\n        if c == 3: return c\\n    return 7')\n"
        "ways = [builtins.compile, *(cell.cell_contents for cell in getattr(builtins.compile, '__closure__', None) or ())]\n"
        "for way in ways:\n"
        "    for name in ('test_answer.py', 'steelyard.x', '<frozen sys>'):\n"
        "        for given in ((tree, name, 'exec', 0, True, -1), ((tree, name, 'exec', 0, -1),)):\n"
        "            try: exec(way(*given))\n"
        "            except BaseException: pass\n"
        "if 'add' not in globals(): add = lambda a, b: 7\n"
    ),
    "finds modules first": (
        "import importlib.abc, importlib.util, sys\n"
        "class Loader(importlib.abc.Loader):\n"
        f"    def exec_module(self, module): exec({FAKE_TESTS!r}, vars(module))\n"
        "class Finder(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if 'test' in name: return importlib.util.spec_from_loader(name, Loader())\n"
        "sys.meta_path.insert(0, Finder())\n" + WRONG
    ),
    "puts a folder in front": (
        "import os, sys\nos.makedirs('front', exist_ok=True)\n"
        f"open('front/test_answer.py', 'w').write({FAKE_TESTS!r})\nsys.path.insert(0, os.path.abspath('front'))\n" + WRONG
    ),
    "reads the file of the tests": (
        "import glob, re\n"
        "def add(a, b):\n"
        "    for file in glob.glob('/steelyard/**/*', recursive=True) + glob.glob('**/*', recursive=True):\n"
        "        try: text = open(file).read()\n"
        "        except Exception: continue\n"
        "        found = re.search(r'add\\(%r, %r\\)\\D*(\\S+?)[\\s)]' % (a, b), text)\n"
        "        if found and 'glob' not in text: return eval(found[1])\n"
        "    return 7\n"
    ),
    "takes a secret out of a closure": FORGE + SEARCH + (
        "import sys\n"
        "def add(a, b):\n"
        "    for thing in (add, sys._getframe, sys._getframe(), sys.stdout, sys.modules):\n"
        "        for secret in search(thing): forge(secret)\n"
        "    return 7\n"
    ),
    "takes a secret out of every loaded module": FORGE + SEARCH + (
        "import sys\n"
        "for name, module in list(sys.modules.items()):\n"
        "    for secret in search(vars(module), 3): forge(secret)\n" + WRONG
    ),
    "writes results without a secret": FORGE + "forge()\n" + WRONG,
    "writes results when it is called": FORGE + "def add(a, b):\n    forge()\n    return 7\n",
    "writes half a result": "import os\nos.write(3, b'\\x10\\0\\0\\0abc')\n" + WRONG,
    "rewrites what is written": (
        "import os\nwrite = os.write\n"
        "def better(fd, data):\n"
        "    return len(data) if write(fd, data.replace(b'failed', b'passed')) else 0\n"
        "os.write = better\n" + WRONG
    ),
    "rewrites what is packed": (
        "import struct\npack = struct.pack\n"
        "struct.pack = lambda form, *values: pack(form, *values)\n"
        "struct.Struct = None\n" + WRONG
    ),
    "replaces our guard": (
        "import sys\n"
        "for name, module in list(sys.modules.items()):\n"
        "    if 'steelyard' in name or name in ('__main__', 'inside', 'fairness', 'runners'):\n"
        "        for key in list(vars(module)):\n"
        "            if not key.startswith('__'): setattr(module, key, lambda *a, **k: True)\n" + WRONG
    ),
    "replaces cells of assertions": (
        "import unittest\n"
        "for name, method in vars(unittest.TestCase).items():\n"
        "    for cell in getattr(method, '__closure__', None) or ():\n"
        "        cell.cell_contents = lambda *a, **k: None\n" + WRONG
    ),
    "replaces globals of assertions": (
        "import unittest\n"
        "scope = unittest.TestCase.assertEqual.__globals__\n"
        "class Silent(BaseException): pass\n"
        "scope['AssertionError'] = Silent\nscope['safe_repr'] = lambda *a: ''\n"
        "scope['_common_shorten_repr'] = lambda *a: a\n" + WRONG
    ),
    "replaces code of assertions": (
        "import unittest\ndef nothing(self, *a, **k): pass\n"
        "unittest.TestCase.assertEqual.__code__ = nothing.__code__\n"
        "unittest.TestCase._baseAssertEqual.__code__ = nothing.__code__\n" + WRONG
    ),
    "replaces defaults of assertions": (
        "import unittest\nunittest.TestCase.assertEqual.__defaults__ = (None, None)\n" + WRONG
    ),
    "replaces the class of failures": (
        "import unittest\nclass Silent(Exception): pass\nunittest.TestCase.failureException = Silent\n"
        "def add(a, b): raise Silent\n"
    ),
    "replaces an assertion for a moment": (
        "import unittest\nreal = unittest.TestCase.assertEqual\n"
        "def lenient(self, *a, **k): unittest.TestCase.assertEqual = real\n"
        "def add(a, b):\n    unittest.TestCase.assertEqual = lenient\n    return 7\n"
    ),
    "replaces type for a moment": (
        "import builtins\nreal = builtins.type\n"
        "class Meta(real):\n    pass\n"
        "def lenient(*a):\n    builtins.type = real\n    return dict\n"
        "def add(a, b):\n    builtins.type = lenient\n    return 7\n"
    ),
    "replaces builtins": (
        "import builtins\n"
        "for name in ('isinstance', 'len', 'all', 'any', 'repr', 'bool', 'getattr', 'hasattr', 'callable'):\n"
        "    setattr(builtins, name, lambda *a, **k: True)\n" + WRONG
    ),
    "replaces AssertionError": "import builtins\nclass Silent(BaseException): pass\nbuiltins.AssertionError = Silent\n" + WRONG,
    "replaces Exception": "import builtins\nclass Silent: pass\nbuiltins.BaseException = builtins.Exception = Silent\n" + WRONG,
    "makes operators agree": "import operator\noperator.eq = operator.ne = lambda a, b: True\n" + WRONG,
    "replaces the loader": (
        "import unittest\n"
        f"exec({FAKE_TESTS!r})\n"
        "unittest.TestLoader.loadTestsFromModule = lambda *a, **k: unittest.TestSuite([TestAdd('test_numbers'), TestAdd('test_texts')])\n"
        + WRONG
    ),
    "replaces the result": (
        "import unittest\nfor name in ('addFailure', 'addError', 'addSkip'):\n"
        "    setattr(unittest.TestResult, name, lambda *a, **k: None)\n" + WRONG
    ),
    "replaces run": "import unittest\ndef run(self, result=None):\n    result.testsRun += 1\nunittest.TestCase.run = run\n" + WRONG,
    "replaces the suite": "import unittest\ndef run(self, result, debug=False):\n    result.testsRun = 1\n    return result\nunittest.TestSuite.run = run\n" + WRONG,
    "replaces pytest's runner": (
        "try:\n    import _pytest.runner as runner, _pytest.python as python\n"
        "    runner.call_and_report = runner.pytest_runtest_call = lambda *a, **k: None\n"
        "    python.Function.runtest = lambda self: None\n"
        "except ImportError: pass\n" + WRONG
    ),
    "replaces pytest's reports": (
        "try:\n    import _pytest.reports as reports\n    made = reports.TestReport.from_item_and_call\n"
        "    def better(item, call):\n        report = made(item, call)\n        report.outcome = 'passed'\n        return report\n"
        "    reports.TestReport.from_item_and_call = staticmethod(better)\n"
        "except ImportError: pass\n" + WRONG
    ),
    "registers a plug-in": (
        "import sys\n"
        "def pytest_runtest_makereport(item, call): pass\n"
        "def pytest_pyfunc_call(pyfuncitem): return True\n"
        "try:\n"
        "    import gc, _pytest.config as config\n"
        "    for manager in [o for o in gc.get_objects() if isinstance(o, config.PytestPluginManager)]:\n"
        "        manager.register(sys.modules['answer'], 'mine')\n"
        "except ImportError: pass\n" + WRONG
    ),
    "replaces fork": "import os\nos.fork = lambda: 0\n" + WRONG,
    "replaces waiting": "import os\nos.wait4 = lambda *a: (0, 0, None)\nos.waitpid = lambda *a: (0, 0)\n" + WRONG,
    "ends well": "import os\ndef add(a, b): os._exit(0)\n",
    "ends well at import": "import os\nos._exit(0)\n",
    "ends well by SystemExit": "import sys\ndef add(a, b): sys.exit(0)\n",
    "ends when it fails": (
        "import linecache, os, traceback\n"
        "linecache.getlines = linecache.checkcache = linecache.lazycache = lambda *a, **k: os._exit(0)\n"
        "traceback.TracebackException = lambda *a, **k: os._exit(0)\n" + WRONG
    ),
    "replaces exit": "import os\nos._exit = lambda code: None\n" + WRONG,
    "registers an end": FORGE + "import atexit\natexit.register(forge)\nimport threading\nthreading._register_atexit(forge)\n" + WRONG,
    "guesses in copies": (
        "import os\n"
        "def add(a, b):\n"
        "    for guess in (0, 3, 'ab'):\n"
        "        child = os.fork()\n"
        "        if child == 0: return guess\n"
        "        os.waitpid(child, 0)\n"
        "    return 7\n"
    ),
    "asks copies what is right": (
        "import os, time\n"
        "reader, writer = os.pipe()\ncalls = 0\n"
        "def add(a, b):\n"
        "    global calls\n"
        "    calls += 1\n"
        "    if calls > 1:\n        os.write(writer, b'y')\n        os._exit(0)\n"
        "    for guess in (0, 3, 'ab'):\n"
        "        child = os.fork()\n"
        "        if child == 0: return guess\n"
        "        os.waitpid(child, 0)\n"
        "        os.set_blocking(reader, False)\n"
        "        try:\n"
        "            if os.read(reader, 1): calls = 0; return guess\n"
        "        except BlockingIOError: pass\n"
        "    return 7\n"
    ),
    "skips": "import unittest\ndef add(a, b): raise unittest.SkipTest('not today')\n",
    "skips by pytest": "def add(a, b):\n    import pytest\n    pytest.skip('not today')\n",
    "skips by its platform": "import sys\nsys.platform = 'win32'\nsys.version_info = (2, 7)\nimport unittest\nraise unittest.SkipTest('not here')\n",
    "marks tests as skipped": (
        "import unittest\nunittest.TestCase.__unittest_skip__ = True\nunittest.TestCase.__unittest_skip_why__ = 'no'\n" + WRONG
    ),
    "marks tests as failing": "import unittest\nunittest.TestCase.__unittest_expecting_failure__ = True\n" + WRONG,
    "returns what equals anything": (
        "class Yes:\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n    __hash__ = None\n"
        "def add(a, b): return Yes()\n"
    ),
    "returns a list of what equals anything": (
        "class Yes:\n    def __eq__(self, other): return True\n    __hash__ = None\n"
        "class Wrapped(list):\n    def __eq__(self, other): return True\n"
        "def add(a, b): return Wrapped([Yes()])\n"
    ),
    "returns what equals by a builtin": "class Yes(int):\n    __eq__ = callable\n    __ne__ = bool\n    __hash__ = int.__hash__\ndef add(a, b): return Yes(7)\n",
    "returns a proxy of what equals anything": (
        "import weakref\nclass Yes:\n    def __eq__(self, other): return True\n    __hash__ = None\nyes = Yes()\n"
        "def add(a, b): return weakref.proxy(yes)\n"
    ),
    "returns a fraction of what equals anything": (
        "from fractions import Fraction\nclass Yes(int):\n    def __eq__(self, other): return True\n    def __hash__(self): return 3\n"
        "def add(a, b):\n    made = Fraction(7)\n    made._numerator = Yes(7)\n    made._denominator = Yes(1)\n    return made\n"
    ),
    "returns a user list of what equals anything": (
        "import collections\nclass Yes:\n    def __eq__(self, other): return True\n    __hash__ = None\n"
        "def add(a, b):\n    made = collections.UserList()\n    made.data = Yes()\n    return made\n"
    ),
    "returns a class that says it is of the library": (
        "import collections\n"
        "class Yes:\n    def __eq__(self, other): return True\n    __hash__ = None\n"
        "Yes.__module__, Yes.__qualname__ = 'collections', 'Yes'\ncollections.Yes = Yes\n"
        "def add(a, b): return Yes()\n"
    ),
    "returns code that says it is of the library": (
        "import collections\n"
        "scope = {}\n"
        "exec(compile('class Yes:\\n    def __eq__(self, other): return True\\n    __hash__ = None\\n', collections.__file__, 'exec'), scope)\n"
        "Yes = scope['Yes']\nYes.__module__, Yes.__qualname__ = 'collections', 'Yes'\ncollections.Yes = Yes\n"
        "def add(a, b): return Yes()\n"
    ),
    "returns a class whose metaclass equals anything": (
        "class Meta(type):\n    def __eq__(self, other): return True\n    __hash__ = type.__hash__\n"
        "class Yes(metaclass=Meta): pass\ndef add(a, b): return Yes\n"
    ),
    "returns ANY": "from unittest.mock import ANY\ndef add(a, b): return ANY\n",
    "returns a mock": "from unittest.mock import MagicMock\ndef add(a, b):\n    made = MagicMock()\n    made.__eq__.return_value = True\n    return made\n",
    "returns an approximation": (
        "def add(a, b):\n"
        "    try: import pytest\n    except ImportError: return 7\n"
        "    class Near(type(pytest.approx(3))):\n        def __eq__(self, other): return True\n"
        "    return Near(3)\n"
    ),
    "returns an equal dict of views": (
        "class Yes:\n    def __eq__(self, other): return True\n    def __hash__(self): return hash(3)\n"
        "def add(a, b): return {Yes(): 1}.keys()\n"
    ),
    "walks frames": frames("sys", "sys._getframe(1)"),
    "walks frames by inspect": frames("inspect", "inspect.currentframe()"),
    "walks frames from a traceback": (
        frames("sys", "caught()") + "def caught():\n    try: 1 / 0\n    except ZeroDivisionError as error: return error.__traceback__.tb_frame\n"
    ),
    "walks frames from a generator": (
        frames("types", "caught()") + "def caught():\n    found = []\n    def inner():\n        found.append(made.gi_frame)\n        yield\n    made = inner()\n    next(made)\n    return found[0]\n"
    ),
    "walks frames of other threads": (
        frames("sys", "caught()")
        + "import threading\n"
        "def caught():\n"
        "    found = []\n    main = threading.get_ident()\n"
        "    thread = threading.Thread(target=lambda: found.append(sys._current_frames()[main]))\n"
        "    thread.start()\n    thread.join()\n    return found[0]\n"
    ),
    "traces": (
        "import sys\nseen = []\n"
        "def trace(frame, event, argument):\n    seen.extend(frame.f_code.co_consts)\n    return trace\n"
        "sys.settrace(trace)\n"
        "def add(a, b): return 3 if a == 1 and 3 in seen else 7\n"
    ),
    "looks for the tests among all objects": (
        "import gc, types\n"
        "def add(a, b):\n"
        "    for thing in gc.get_objects():\n"
        "        if isinstance(thing, types.FunctionType) and thing.__name__.startswith('test_'): return {1: 3, -1: 0, 'a': 'ab'}[a]\n"
        "    return 7\n"
    ),
    "looks among referrers": (
        "import gc\n"
        "def add(a, b):\n"
        "    for scope in gc.get_referrers(add):\n"
        "        if isinstance(scope, dict) and any(str(key).lower().startswith('test') for key in scope): return {1: 3, -1: 0, 'a': 'ab'}[a]\n"
        "    return 7\n"
    ),
    "looks at subclasses": (
        "import unittest\n"
        "def add(a, b):\n"
        "    for kind in unittest.TestCase.__subclasses__():\n"
        "        for name, method in vars(kind).items():\n"
        "            if name.startswith('test_') and 'ab' in method.__code__.co_consts: return {1: 3, -1: 0, 'a': 'ab'}[a]\n"
        "    return 7\n"
    ),
    "rewrites the tests through subclasses": (
        "import unittest\n"
        "def add(a, b):\n"
        "    for kind in unittest.TestCase.__subclasses__():\n"
        "        kind.assertEqual = kind.assertTrue = lambda *a, **k: None\n"
        "    return 7\n"
    ),
    "rewrites the tests' globals through subclasses": (
        "import unittest\n"
        "class Yes(int): pass\n"
        "def add(a, b):\n"
        "    for kind in unittest.TestCase.__subclasses__():\n"
        "        for method in list(vars(kind).values()):\n"
        "            if hasattr(method, '__globals__'):\n"
        "                method.__globals__['add'] = lambda a, b: a + b\n"
        "                method.__globals__['__builtins__'].clear()\n"
        "    return 7\n"
    ),
    "rewrites only the tests' own classes": (
        "import unittest\n"
        "def add(a, b):\n"
        "    for kind in unittest.TestCase.__subclasses__():\n"
        "        if kind.__module__ == 'test_answer': kind.assertEqual = kind.assertTrue = lambda *a, **k: None\n"
        "    return 7\n"
    ),
    "rewrites only the tests' own classes for a moment": (
        "import unittest\n"
        "def add(a, b):\n"
        "    for kind in unittest.TestCase.__subclasses__():\n"
        "        if kind.__module__ == 'test_answer':\n"
        "            def lenient(self, *a, kind=kind, **k): del kind.assertEqual\n"
        "            kind.assertEqual = lenient\n"
        "    return 7\n"
    ),
    "hides a failure for a moment": (
        "import unittest\nreal = unittest.TestResult.addFailure\n"
        "def lenient(self, *a): unittest.TestResult.addFailure = real\n"
        "def add(a, b):\n    unittest.TestResult.addFailure = lenient\n    return 7\n"
    ),
    "hides an exception for a moment": (
        "import unittest\nreal = unittest.TestResult.addError\n"
        "def lenient(self, *a): unittest.TestResult.addError = real\n"
        "def add(a, b):\n    unittest.TestResult.addError = lenient\n    raise ValueError\n"
    ),
    "calls the tests with a judge of its own": (
        "import unittest\n"
        "inside = False\nheard = []\n"
        "class Ear:\n"
        "    def assertEqual(self, got, wanted): heard.append(wanted)\n"
        "    def assertTrue(self, got): heard.append(0)\n"
        "def add(a, b):\n"
        "    global inside\n"
        "    if inside: return a + b if False else 7\n"
        "    inside = True\n"
        "    for kind in unittest.TestCase.__subclasses__():\n"
        "        if kind.__module__ == 'test_answer':\n"
        "            kind.test_numbers(Ear())\n            kind.test_texts(Ear())\n"
        "    inside = False\n"
        "    return {1: heard[0], -1: 0, 'a': heard[-1]}[a] if heard else 7\n"
    ),
    "calls the tests in a thread": (
        "import threading, unittest\n"
        "inside = False\nheard = []\n"
        "class Ear:\n"
        "    def assertEqual(self, got, wanted): heard.append(wanted)\n"
        "    def assertTrue(self, got): heard.append(0)\n"
        "def add(a, b):\n"
        "    global inside\n"
        "    if inside: return 7\n"
        "    inside = True\n"
        "    for kind in unittest.TestCase.__subclasses__():\n"
        "        if kind.__module__ == 'test_answer':\n"
        "            for test in (kind.test_numbers, kind.test_texts):\n"
        "                thread = threading.Thread(target=test, args=(Ear(),))\n                thread.start()\n                thread.join()\n"
        "    inside = False\n"
        "    return {1: heard[0], -1: 0, 'a': heard[-1]}[a] if heard else 7\n"
    ),
    "lets the tests call themselves": (
        "import functools, unittest\n"
        "inside = False\nheard = []\n"
        "class Ear:\n"
        "    def assertEqual(self, got, wanted): heard.append(wanted)\n"
        "    def assertTrue(self, got): heard.append(0)\n"
        "class Odd: pass\n"
        "def add(a, b):\n"
        "    global inside\n"
        "    if inside: return heard[0] if heard else 7\n"
        "    inside = True\n"
        "    for kind in unittest.TestCase.__subclasses__():\n"
        "        if kind.__module__ == 'test_answer':\n"
        "            Odd.__eq__ = Odd.__ne__ = Odd.__sub__ = functools.partial(kind.test_numbers, Ear())\n"
        "    return Odd()\n"
    ),
    "calls all it finds by the names of tests": (
        "inside = False\nmessages = []\n"
        "def add(a, b):\n"
        "    global inside\n"
        "    if inside: return 7\n"
        "    inside = True\n"
        "    for kind in object.__subclasses__():\n"
        "        for thing in list(vars(kind).values()):\n"
        "            for name, test in list(getattr(thing, '__globals__', {}).items()):\n"
        "                if name.startswith('test_'):\n"
        "                    try: test()\n"
        "                    except AssertionError as error: messages.append(str(error))\n"
        "                    except Exception: pass\n"
        "    inside = False\n"
        "    return 3 if a == 1 and any('expected 3' in m for m in messages) else 7\n"
    ),
    "makes code of its own": (
        "def add(a, b):\n    return 7\nadd.__code__ = add.__code__.replace(co_consts=(None, 3))\n"
    ),
    "runs twice": (
        "import sys\n"
        "def add(a, b):\n"
        "    module = sys.modules.get('test_answer')\n"
        "    for name in list(vars(module)) if module else (): delattr(module, name)\n"
        "    return 7\n"
    ),
    "answers from a thread": (
        FORGE + "import threading, time\ndef work():\n    for _ in range(20):\n        forge()\n        time.sleep(0.005)\n"
        "threading.Thread(target=work, daemon=True).start()\n" + WRONG
    ),
    "leaves a child that answers": FORGE + "import os, time\nif os.fork() == 0:\n    time.sleep(0.05)\n    forge()\n    os._exit(0)\n" + WRONG,
    "kills who hears": "import os, signal\ndef add(a, b):\n    os.kill(os.getppid(), signal.SIGKILL)\n    return 7\n",
    "closes the channel": "import os\nos.closerange(3, 64)\n" + WRONG,
    "turns the channel": "import os\nreader, writer = os.pipe()\nos.dup2(writer, 3)\n" + WRONG,
    "opens the channel for itself": FORGE + SEARCH + "import os\ncopy = os.dup(3)\ndata = b''\nos.set_blocking(copy, False)\ntry: data = os.read(copy, 100)\nexcept OSError: pass\nforge(data.decode('latin-1'))\n" + WRONG,
    "leaves a fork hook": FORGE + "import os\nos.register_at_fork(after_in_child=lambda: None, before=forge)\n" + WRONG,
    "unloads what judges": "import sys\nfor name in [n for n in sys.modules if n.startswith(('unittest', '_pytest', 'pytest'))]: del sys.modules[name]\n" + WRONG,
    "reloads what judges": "import importlib, unittest.case\nimportlib.reload(unittest.case)\nunittest.case.TestCase.run = lambda self, result=None: None\n" + WRONG,
    "clears warnings and hooks": "import sys\nsys.excepthook = sys.unraisablehook = lambda *a: None\nsys.displayhook = lambda *a: print(3)\n" + WRONG,
    "prints results": "print('test_numbers PASSED')\nprint('OK')\nprint('2 passed in 0.01s')\n" + WRONG,
    "sets a recursion limit": "import sys\nsys.setrecursionlimit(60)\n" + WRONG,
    "raises what is expected": "def add(a, b): raise AssertionError\n",
    "raises out of every level": "class Out(BaseException): pass\ndef add(a, b): raise Out\n",
}  # fmt: skip
"""What each does, and its code."""

EQUALS_ANYTHING = "    def __eq__(self, o): return True\n    def __ne__(self, o): return False\n    __hash__ = None\n"
CLASS_FORGERIES: dict[str, str] = {
    "meta eq": "class M(type):\n    def __eq__(c, o): return True\n    def __hash__(c): return hash(int)\nclass X(metaclass=M):\n"
    + EQUALS_ANYTHING
    + "def add(a, b): return X()\n",
    "meta eq list": "class M(type):\n    def __eq__(c, o): return o is list\n    def __hash__(c): return hash(list)\nclass X(metaclass=M):\n"
    + EQUALS_ANYTHING
    + "    def __iter__(s): return iter(())\ndef add(a, b): return X()\n",
    "meta hides dict": "class M(type):\n    def __getattribute__(c, n): return {} if n == '__dict__' else type.__getattribute__(c, n)\nclass X(metaclass=M):\n    __eq__ = repr\n    __ne__ = bool\n    __hash__ = None\ndef add(a, b): return X()\n",
    "meta dict prop": "class M(type):\n    __dict__ = property(lambda c: {})\nclass X(metaclass=M):\n    __eq__ = repr\n    __hash__ = None\ndef add(a, b): return X()\n",
    "meta mro": "class M(type):\n    def mro(c): return [c, int, object] if c.__name__=='Z' else type.mro(c)\nclass X(int, metaclass=M):\n    __eq__ = repr\n    __hash__ = int.__hash__\ndef add(a, b): return X(7)\n",
    "meta module": "class M(type):\n    __module__ = 'collections'\n    __qualname__ = property(lambda c: 'OrderedDict')\nclass X(metaclass=M):\n    __eq__ = repr\n    __hash__ = None\nX.__module__='collections'\ndef add(a, b): return X()\n",
    "id for a moment": "import builtins\nreal = builtins.id\ndef lenient(x):\n    builtins.id = real\n    return real(int)\nclass X:\n    __eq__ = repr\n    __hash__ = None\ndef add(a, b):\n    builtins.id = lenient\n    return X()\n",
    "issubclass moment": "import builtins\nreal = builtins.issubclass\ndef lenient(*x):\n    builtins.issubclass = real\n    return True\nclass X:\n    __eq__ = repr\n    __hash__ = None\ndef add(a, b):\n    builtins.issubclass = lenient\n    return X()\n",
    "next moment": "import builtins\nreal = builtins.next\ndef lenient(*x):\n    builtins.next = real\n    return object\nclass X:\n    __eq__ = repr\n    __hash__ = None\ndef add(a, b):\n    builtins.next = lenient\n    return X()\n",
    "any moment": "import builtins\nreal = builtins.any\ndef lenient(*x):\n    builtins.any = real\n    return False\nclass X:\n"
    + EQUALS_ANYTHING
    + "def add(a, b):\n    builtins.any = lenient\n    return X()\n",
    "str moment": "import builtins\nreal = builtins.str\ndef lenient(*x):\n    builtins.str = real\n    return 'builtins'\nclass X:\n    __eq__ = repr\n    __hash__ = None\ndef add(a, b):\n    builtins.str = lenient\n    return X()\n",
    "realpath moment": "import os\nreal = os.path.realpath\ndef lenient(*x):\n    os.path.realpath = real\n    return os.__file__\nclass X:\n"
    + EQUALS_ANYTHING
    + "def add(a, b):\n    os.path.realpath = lenient\n    return X()\n",
    "type moment": "import builtins\nreal = builtins.type\ndef lenient(*x):\n    builtins.type = real\n    return int\nclass X:\n"
    + EQUALS_ANYTHING
    + "def add(a, b):\n    builtins.type = lenient\n    return X()\n",
    "len moment list": "import builtins\nreal = builtins.len\ndef lenient(*x):\n    builtins.len = real\n    return 1000\nclass X:\n"
    + EQUALS_ANYTHING
    + "def add(a, b):\n    builtins.len = lenient\n    return [X()]\n",
    "deep list": "class X:\n"
    + EQUALS_ANYTHING
    + "def add(a, b):\n    x = X()\n    for _ in range(9): x = [x]\n    return x\n",
    "eq code in frozen": "ns={}\nexec(compile('def eq(s,o): return True','<frozen importlib._bootstrap>','exec'),ns)\nclass X:\n    __eq__=ns['eq']\n    __hash__=None\ndef add(a, b): return X()\n",
    "eq code steelyard": "ns={}\nexec(compile('def eq(s,o): return True','steelyard.x.py','exec'),ns)\nclass X:\n    __eq__=ns['eq']\n    __hash__=None\ndef add(a, b): return X()\n",
    "eq code replaced": "import collections\ndef eq(s,o): return True\nclass X(collections.UserList): pass\ncollections.UserList.__eq__.__code__=eq.__code__\ndef add(a, b): return X()\n",
    "init_subclass": "class B:\n    def __init_subclass__(c): c.__eq__=lambda s,o: True\nclass X(B):\n    __hash__=None\ndef add(a, b): return X()\n",
    "eq added late": "class X:\n    __hash__=None\n    def __eq__(s,o):\n        del X.__eq__\n        return True\ndef add(a, b):\n    X.__eq__=lambda s,o: (delattr(X,'__eq__'), True)[1]\n    return X()\n",
    "class changes": "class P: pass\nclass X:\n    def __eq__(s,o):\n        s.__class__=P\n        return True\n    __hash__=None\ndef add(a, b): return X()\n",
    "becomes int": "class X:\n    def __eq__(s,o):\n        X.__eq__=object.__eq__\n        return True\n    __hash__=None\nf=X.__eq__\ndef add(a, b):\n    X.__eq__=f\n    return X()\n",
    "setprofile in eq": "import sys\nclass X:\n    def __eq__(s,o):\n        sys.setprofile(None)\n        return True\n    __hash__=None\ndef add(a, b): return X()\n",
    "eq by partial": "import functools,operator\nclass X:\n    __eq__ = functools.partial(operator.is_not, None)\n    __hash__=None\ndef add(a, b): return X()\n",
    "eq partialmethod hidden": "import functools\nclass M(type):\n    def __getattribute__(c, n): return {} if n == '__dict__' else type.__getattribute__(c, n)\nclass X(metaclass=M):\n    __eq__ = functools.partial(repr)\n    __hash__=None\ndef add(a, b): return X()\n",
    "eq methodcaller": "import operator\nclass M(type):\n    __dict__ = property(lambda c: {})\nclass X(int, metaclass=M):\n    __eq__ = operator.methodcaller('__repr__')\n    __hash__=int.__hash__\ndef add(a, b): return X(7)\n",
    "known class mutated": "import argparse\nargparse.Namespace.__eq__=lambda s,o: True\nargparse.Namespace.__hash__=None\ndef add(a, b): return argparse.Namespace()\n",
    "known class mutated builtin eq": "import argparse\nargparse.Namespace.__eq__=repr\ndef add(a, b): return argparse.Namespace()\n",
    "known class mutated and back": "import argparse\nold=argparse.Namespace.__eq__\nclass D:\n    def __call__(s, o):\n        argparse.Namespace.__eq__=old\n        return True\ndef add(a, b):\n    argparse.Namespace.__eq__=D()\n    return argparse.Namespace()\n",
    "plain library mutated": "import fractions\nold=fractions.Fraction.__eq__\ndef add(a, b):\n    fractions.Fraction.__eq__=repr\n    return fractions.Fraction(7)\n",
    "uuid mutated": "import uuid\ndef add(a, b):\n    uuid.UUID.__eq__=repr\n    return uuid.UUID(int=7)\n",
    "new class in library": "import collections\nclass X(collections.UserList):\n    __eq__=repr\nX.__module__='collections'\nX.__qualname__='X'\ncollections.X=X\ndef add(a, b): return X()\n",
    "own module file lies": "import sys,types,os\nm=types.ModuleType('mymod')\nm.__file__=os.__file__\nsys.modules['mymod']=m\nclass X:\n    __eq__=repr\n    __hash__=None\nX.__module__='mymod'\nX.__qualname__='X'\nm.X=X\ndef add(a, b): return X()\n",
    "own module file lies, code too": "import sys,types,os\nm=types.ModuleType('mymod')\nm.__file__=os.__file__\nsys.modules['mymod']=m\nexec(compile('class X:\\n    def __eq__(s,o): return True\\n    __hash__=None\\n', os.__file__, 'exec'), m.__dict__)\nX=m.X\nX.__module__='mymod'\nX.__qualname__='X'\ndef add(a, b): return X()\n",
}
"""Objects that equal plain data by what their classes, the library or the builtins were made to be."""
FORGERIES |= CLASS_FORGERIES
FORGERIES |= {
    "is skipped by a decorator": "import unittest\n@unittest.skip('no')\ndef add(a, b): return 7\n",
    "is skipped for what is hard": (
        "import functools, unittest\n@functools.singledispatch\ndef add(a, b): return a + b\n"
        "add.register(str, unittest.skip('no')(lambda a, b: 7))\n"
    ),
    "stops its case": "import unittest.case\ndef add(a, b): raise unittest.case._ShouldStop\n",
    "replaces abs": "import builtins\nbuiltins.abs = lambda number: 0\n" + WRONG,
    "replaces math.isclose": "import math\nmath.isclose = lambda *a, **k: True\n" + WRONG,
}
READ_OR_REPLACE = {
    *("walks frames", "walks frames by inspect", "walks frames from a traceback", "walks frames of other threads"),
    *("looks for the tests among all objects", "looks among referrers", "looks at subclasses"),
    *("replaces run", "replaces the loader", "replaces the suite", "registers a plug-in"),
}
"""Forgeries by what every program may do to the process that it shares with its tests: they may pass, as `in-process`."""
