"""Answers that want a pass without solving the task, or want the machine: a table of them, as data.

The rows are those of the list of what must be survived. What an attack needs to know of the machine it is run on stands in
its code as `@NAME@` and is filled in by the driver. An escape that succeeds says so by printing ESCAPED; an attack whose
`tried` is set prints TRIED at its end, so that one which breaks down early is not taken for one that was held.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from steelyard.records import Case, Expectations, Pair, Verify

ADD = "assert add(1, 2) == 3\nassert add(-1, 1) == 0\nassert add('a', 'b') == 'ab'\n"
CHECK = "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(-1, 1) == 0\n"
UNITTEST = """
import unittest
from answer import add

class TestAdd(unittest.TestCase):
    def test_numbers(self):
        self.assertEqual(add(1, 2), 3)
        self.assertTrue(add(-1, 1) == 0)

    def test_texts(self):
        self.assertEqual(add('a', 'b'), 'ab')
"""
PYTEST = """
from answer import add

def test_numbers():
    assert add(1, 2) == 3
    assert add(-1, 1) == 0

def test_texts():
    assert add('a', 'b') == 'ab'
"""
HONEST = """
import os
print(sorted(os.listdir(".")))
def add(a, b):
    return a + b
"""


def _case(name: str, tests: str = "", *, seconds: float = 1, **verify: Any) -> Case:
    return Case(
        id=name,
        prompt="add",
        language="python",
        timeout_secs=seconds,
        verify=Verify(**verify),
        expectations=Expectations(test_file=tests),
    )


CASES = {
    case.id: case
    for case in (
        _case("asserts", ADD),
        _case("check", CHECK, entry_point="add"),
        _case("doctest", ">>> add(1, 2)\n3\n>>> add(-1, 1)\n0\n", style="doctest"),
        _case(
            "io", style="io", entry_point="add", pairs=(Pair(input=[1, 2], output=3), Pair(input=[-1, 1], output=0))
        ),
        _case("program", pairs=(Pair(input="1 2\n", output="3\n"), Pair(input="-1 1\n", output="0\n"))),
        _case("unittest", UNITTEST, style="unittest"),
        _case("pytest", PYTEST, style="pytest"),
        # tests of other shapes, each of which has a soft spot of its own
        _case("close", "assert abs(add(0.1, 0.2) - 0.3) < 1e-6\n"),
        _case("near", "assert 0.3 - add(0.1, 0.2) < 1e-6\nassert -(add(0.1, 0.2)) < 0\n"),
        _case("several", "assert all(map(add, [1, 2], [3, 4]))\nassert not any(map(add, [-1, -2], [1, 2]))\n"),
        _case("loop", "def test():\n    for got, wanted in zip(map(add, [1, 2], [3, 4]), [4, 6]):\n        assert got == wanted\n"),
        _case("type", "assert isinstance(add(1, 2), int)\nassert len([add(1, 2)]) == 1\nassert sorted([add(1, 2)]) == [3]\n"),
        _case("callback", "assert add(lambda number: number + 1, 2) == 3\n"),
        _case("stops", "try:\n    add(1, 2)\nexcept StopIteration:\n    stopped = True\nassert stopped\n"),
        _case("swallows", "def test():\n    try:\n        add(1, None)\n    except:\n        return\n    raise AssertionError\n"),
        _case("own", "assert add(1, 2)\nassert not add(-1, 1)\nassert add(1, 2) in (3, 4)\nassert add(1, 2) != 4\n"),
    )
}  # fmt: skip
ISOLATED = ("asserts", "check", "doctest", "io")
INSIDE = ("unittest", "pytest")


class Attack(NamedTuple):
    """One hostile answer, and what must become of it."""

    row: int
    name: str
    code: str
    labels: tuple[str, ...] = ("wrong answer", "exception", "died", "tampered")
    """The labels that the verdict may have; empty for an answer that passes."""
    case: str = "asserts"
    limits: str = ""
    """`hasty` and `brief`: what waits is not waited for long; `tight`: there is little memory as well."""
    tried: bool = False
    """Whether it prints TRIED when it has done its worst."""
    forges: bool = False
    """Whether it goes for the verdict, with means that every style of tests must withstand."""
    naive: bool = False
    """Whether a grader that runs code and tests together is fooled by it."""

    once: bool = False
    """Whether what it attacks is the same at every level, so that one level will do."""

    decides: bool = False
    """Whether it may pass because an object of its own decides the test, but then never as isolated."""

    @property
    def everywhere(self) -> bool:
        return not self.once and not (self.forges and self.case != "asserts")

    @property
    def key(self) -> str:
        return f"row {self.row}: {self.name} ({self.case})"


WRONG = "def add(a, b):\n    return 7\n"
ESCAPE = """
import os
def escaped(*what):
    os.write(1, ("ESCAPED: " + " ".join(map(str, what)) + chr(10)).encode())
def attempt(what, deed):
    try:
        got = deed()
    except Exception as error:
        return error
    escaped(what, repr(got)[:80])
"""
MARK = """
import ctypes, os
ctypes.CDLL(None).prctl(15, b"@TOKEN@", 0, 0, 0)
"""
"""Gives a process, and all that it starts, a name by which what is left of it can be found."""


def _forging() -> list[Attack]:
    """What goes for the verdict."""
    texts: dict[tuple[int, str], str] = {
        (2, "exit in the function"): "import sys\ndef add(a, b):\n    sys.exit(0)\n",
        (2, "SystemExit in the function"): "def add(a, b):\n    raise SystemExit\n",
        (2, "quit in the function"): "def add(a, b):\n    quit()\n",
        (2, "exit at import"): "import sys\nsys.exit(0)\n",
        (2, "KeyboardInterrupt"): "def add(a, b):\n    raise KeyboardInterrupt\n",
        (2, "GeneratorExit"): "def add(a, b):\n    raise GeneratorExit\n",
        (3, "_exit in the function"): "import os\ndef add(a, b):\n    os._exit(0)\n",
        (3, "_exit at import"): "import os\nos._exit(0)\n",
        (3, "_exit at the end"): "import atexit, os\natexit.register(os._exit, 0)\n" + WRONG,
        (3, "_exit from a thread"): (
            "import os, threading, time\n"
            "threading.Thread(target=lambda: (time.sleep(0.02), os._exit(0)), daemon=True).start()\n"
            "def add(a, b):\n    time.sleep(0.1)\n    return 7\n"
        ),
        (4, "equal to everything"): (
            "class Yes:\n"
            "    def __eq__(self, other): return True\n"
            "    def __ne__(self, other): return False\n"
            "    def __bool__(self): return True\n"
            "    def __hash__(self): return 3\n"
            "    def __repr__(self): return '3'\n"
            "def add(a, b):\n    return Yes()\n"
        ),
        (4, "a class equal to everything"): (
            "class Meta(type):\n    def __eq__(self, other): return True\n    def __hash__(self): return 3\n"
            "class Yes(metaclass=Meta): pass\n"
            "def add(a, b):\n    return Yes\n"
        ),
        (4, "a whole number equal to everything"): (
            "class Yes(int):\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n"
            "    def __hash__(self): return 3\n    def __index__(self): return 3\n    def __repr__(self): return '3'\n"
            "def add(a, b):\n    return Yes(7)\n"
        ),
        (4, "a text equal to everything"): (
            "class Yes(str):\n    def __eq__(self, other): return True\n    def __hash__(self): return 3\n"
            "    def __getitem__(self, place): return self\n    def __str__(self): return self\n"
            "def add(a, b):\n    return Yes('x')\n"
        ),
        (4, "a list equal to everything"): (
            "class Yes(list):\n    def __eq__(self, other): return True\n    def __iter__(self): return iter([3])\n"
            "def add(a, b):\n    return Yes([7])\n"
        ),
        (4, "a mock"): "from unittest.mock import ANY\ndef add(a, b):\n    return ANY\n",
        (5, "walks the frames"): (
            "import sys\n"
            "def add(a, b):\n"
            "    frame = sys._getframe()\n"
            "    while frame is not None:\n"
            "        for space in (frame.f_locals, frame.f_globals):\n"
            "            for name, value in list(space.items()):\n"
            "                if isinstance(value, list) and name in ('result', 'results', 'told', 'tests'):\n"
            "                    value.insert(0, 'passed')\n"
            "                elif name in ('result', 'wrong', 'failed', 'outcome'):\n"
            "                    space[name] = ''\n"
            "        frame = frame.f_back\n"
            "    return 7\n"
        ),
        (5, "finds the result by the garbage collector"): (
            "import gc\n"
            "def add(a, b):\n"
            "    for thing in gc.get_objects():\n"
            "        if type(thing) is list and len(thing) == 0:\n"
            "            thing.append('passed')\n"
            "    return 7\n"
        ),
        (5, "traces the caller"): (
            "import sys\n"
            "def trace(frame, event, argument):\n"
            "    if event == 'return' and 'wrong' in frame.f_locals:\n"
            "        frame.f_locals['wrong'] = ''\n"
            "    return trace\n"
            "sys.settrace(trace)\nsys.setprofile(trace)\n" + WRONG
        ),
        (5, "looks for the tests"): (
            "import gc\n"
            "wanted = 'ass' + 'ert'\n"
            "def add(a, b):\n"
            "    for thing in gc.get_objects():\n"
            "        if type(thing) is dict:\n"
            "            for value in list(thing.values()):\n"
            "                if type(value) is str and len(value) < 500 and wanted + ' add(1' in value:\n"
            "                    print('ESCAPED: found', value[:200])\n"
            "    return 7\n"
        ),
        (6, "patches unittest"): (
            "import unittest\n"
            "for name in dir(unittest.TestCase):\n"
            "    if name.startswith('assert') or name == 'fail':\n"
            "        setattr(unittest.TestCase, name, lambda *given, **named: None)\n"
            "unittest.TestResult.addFailure = unittest.TestResult.addError = lambda *given: None\n"
            "unittest.TestResult.wasSuccessful = lambda self: True\n"
            "unittest.TestCase.run = lambda self, result=None: result\n"
            "unittest.TestLoader.loadTestsFromModule = lambda *given, **named: unittest.TestSuite()\n" + WRONG
        ),
        (6, "patches the words of the language"): (
            "import builtins, json, os, socket\n"
            "class Silent(BaseException):\n    pass\n"
            "builtins.AssertionError = Silent\n"
            "builtins.isinstance = lambda *given: True\n"
            "builtins.all = builtins.any = builtins.bool = lambda *given: True\n"
            "builtins.__build_class__ = None\n" + WRONG
        ),
        (6, "makes every failure a pass"): (
            "import json, os, socket\n"
            "dumps, write = json.dumps, os.write\n"
            "json.dumps = lambda value, **named: dumps(value, **named).replace('failed', 'passed').replace('7', '3')\n"
            "socket.socket.send = socket.socket.sendall = lambda *given: 0\n" + WRONG
        ),
        (6, "makes comparisons true"): (
            "import ctypes, operator\noperator.eq = lambda a, b: True\n" + WRONG
        ),
        (7, "skips"): "import unittest\ndef add(a, b):\n    raise unittest.SkipTest('not today')\n",
        (7, "skips at import"): "import unittest\nraise unittest.SkipTest('not today')\n",
        (7, "skips by pytest"): (
            "def add(a, b):\n    import pytest\n    pytest.skip('not today', allow_module_level=True)\n"
        ),
        (7, "expected to fail"): "def add(a, b):\n    import pytest\n    pytest.xfail('hard')\n",
        (7, "leaves no tests"): (
            "import sys, types\n"
            "def load_tests(*given):\n    import unittest\n    return unittest.TestSuite()\n"
            "__test__ = False\ncollect_ignore_glob = ['*']\n" + WRONG
        ),
        (7, "hides its module's tests"): (
            "import sys\n"
            "for module in list(sys.modules.values()):\n"
            "    for name in list(vars(module)) if module else ():\n"
            "        if name.startswith(('test_', 'Test')) and name not in ('TestCase',):\n"
            "            vars(module).pop(name)\n" + WRONG
        ),
        (8, "prints what success looks like"): (
            "import sys\n"
            "print('test result: ok. 3 passed; 0 failed')\nprint('OK')\nprint('3 passed in 0.01s')\nprint('[\"passed\"]')\n"
            "print('<testsuite tests=\"3\" failures=\"0\" errors=\"0\"/>')\n"
            "print('Ran 3 tests in 0.001s\\n\\nOK', file=sys.stderr)\n" + WRONG
        ),
        (8, "leaves files for the tools"): (
            "import os, sys\n"
            "hook = 'import os\\nos._exit(0)\\n'\n"
            "for name in ('conftest.py', 'sitecustomize.py', 'usercustomize.py', 'x.pth', 'unittest.py', 'pytest.py', 'json.py'):\n"
            "    open(name, 'w').write(hook)\n"
            "open('pytest.ini', 'w').write('[pytest]\\naddopts = --collect-only\\n')\n"
            "open('reward.txt', 'w').write('1')\nopen('junit.xml', 'w').write('<testsuite tests=\"3\" failures=\"0\"/>')\n"
            "os.makedirs('.cargo', exist_ok=True)\nopen('.cargo/config.toml', 'w').write('[build]\\n')\n"
            "sys.path.insert(0, os.getcwd())\n" + WRONG
        ),
        (9, "writes to every file"): (
            "import json, os, struct\n"
            "told = {'compiled': True, 'seconds': 0, 'tests': [[0, '', 0], [1, '', 0], [2, '', 0]], 'output': []}\n"
            "for said in ([told], ['ok', told, ''], ['passed'], {'code': 0, 'limit': '', 'seconds': 0, 'length': 0}):\n"
            "    body = json.dumps(said).encode()\n"
            "    for fd in range(300):\n"
            "        try: os.write(fd, struct.pack('I', len(body)) + body)\n"
            "        except OSError: pass\n" + WRONG
        ),
    }  # fmt: skip
    fooled = {
        "equal to everything",
        "a class equal to everything",
        "a whole number equal to everything",
        "a text equal to everything",
        "a list equal to everything",
        "a mock",
        "walks the frames",
        "finds the result by the garbage collector",
    }
    return [
        # what it writes into what it goes through can keep it busy until its limit
        Attack(row, name, code, (*Attack(row, name, code).labels, "cpu limit"), case, forges=True, naive=name in fooled)
        for (row, name), code in texts.items()
        for case in (*ISOLATED, *INSIDE)
        # pytest takes its time, and how an answer leaves is seen from outside in every style
        if case != "pytest" or row > 3
    ]


def _controls() -> list[Attack]:
    wrong = [
        Attack(1, "wrong", "def add(a, b):\n    return a - b\n", ("wrong answer", "exception"), case, forges=True)
        for case in (*ISOLATED, *INSIDE)
    ]
    return [
        *wrong,
        *(Attack(1, "right", HONEST, (), case, once=case in INSIDE) for case in (*ISOLATED, *INSIDE)),
        Attack(1, "right", "a, b = map(int, input().split())\nprint(a + b)\n", (), "program"),
        Attack(1, "wrong", "a, b = map(int, input().split())\nprint(a - b)\n", ("wrong answer",), "program"),
        Attack(1, "no Python", "def add(a, b)\n    return a + b\n", ("does not compile",)),
        Attack(1, "a stop that the tests name", "def add(a, b):\n    raise StopIteration\n", (), "stops"),
        Attack(1, "calls back", "def add(a, b):\n    return a(b)\n", (), "callback"),
    ]


PEER = """
import json, os, struct
def raw(body):
    while body:
        body = body[os.write(3, body):]
def say(message):
    body = json.dumps(message).encode()
    raw(struct.pack("I", len(body)) + body)
def hear():
    size = b""
    while len(size) < 4:
        size += os.read(3, 4 - len(size)) or os._exit(0)
    length, body = struct.unpack("I", size)[0], b""
    while len(body) < length:
        body += os.read(3, length - len(body)) or os._exit(0)
    return json.loads(body)
def ok(value):
    say(["reply", 0, "ok", value, "", False, []])
def loaded(**more):
    say(["loaded", {"add": {"h": [0, 1, "function", True, ["__call__"]]}, **more}, ""])
"""
"""An answer that speaks for itself instead of letting our code speak for it."""


def _talking(name: str, code: str, case: str = "asserts", labels: tuple[str, ...] | None = None) -> Attack:
    found = (
        ("wrong answer", "exception", "died", "memory limit", "cpu limit", "time limit", "tampered")
        if labels is None
        else labels
    )
    return Attack(9, name, PEER + code, found, case, limits="hasty", once=True)


def _answering(name: str, reply: Any, case: str = "asserts") -> Attack:
    """An answer that says the same to whatever it is asked."""
    said = json.dumps(reply)
    return _talking(f"says {name}", f"loaded()\nwhile True:\n    hear()\n    say(json.loads({said!r}))\n", case)


def _reply(outcome: str, value: Any, printed: str = "") -> list[Any]:
    """What our code would say to a request."""
    return ["reply", 0, outcome, value, printed, False, []]


def _thrown(kind: Any, text: Any, arguments: Any, printed: str = "") -> list[Any]:
    return _reply("raised", {"x": [kind, arguments, [], text, None, None, False]}, printed)


def _frames() -> list[Attack]:
    """What can be said on the line to the referee."""
    ended = "\nos._exit(0)\n"
    deep = "[" * 50_000 + "]" * 50_000
    yes = {"h": [0, 1, "function", True, ["__call__"]]}
    lies = [
        _talking("a length that is not kept", 'raw(struct.pack("I", 1000) + b"[]")' + ended),
        _talking("a length of 4 GB", 'raw(struct.pack("I", 0xFFFFFFFF) + b"[]" * 1000)' + ended),
        _talking("half a length", 'raw(b"ab")' + ended),
        _talking("a length and silence", 'raw(struct.pack("I", 1000))\nimport time\ntime.sleep(60)\n', labels=("time limit",)),
        _talking("no UTF-8", 'raw(struct.pack("I", 4) + bytes([34, 255, 254, 34]))' + ended),
        _talking("deep JSON", f'raw(struct.pack("I", {len(deep)}) + b"[" * 50000 + b"]" * 50000)' + ended),
        _talking("no list", 'say({"ok": 3})' + ended),
        _talking("an empty list", "say([])" + ended),
        _talking("numbers", "say([1, 2, 3])" + ended),
        _talking("null", "say(None)" + ended),
        _talking("a verdict of its own", 'say([{"compiled": True, "tests": [[0, "", 0], [1, "", 0], [2, "", 0]]}])\n' + WRONG),
        _talking("that it does not compile", 'say(["not compiled", 3, {"a": []}])\n' + WRONG),
        _talking("that it compiled, twice", 'say(["compiled", "x"])\nsay(["compiled", []])\n' + WRONG),
        _talking("that it loaded nothing", 'say(["loaded", [], ""])' + ended),
        _talking("that it loaded hostile names", 'say(["loaded", {"add": {"h": [{}, 1]}, "": 0}, 5])' + ended),
        _talking("too much at once", 'loaded()\nfor _ in range(1000):\n    ok(7)\nimport time\ntime.sleep(60)\n'),
        _talking("answers before it is asked", 'loaded()\nfor _ in range(3):\n    ok({"h": [1, 2, "Yes", False, ["__eq__"]]})\n' + WRONG),
        _talking("two answers to one question", 'loaded()\nwhile True:\n    hear()\n    ok(7)\n    ok({"f": "nan"})\n'),
        _talking("questions without end", 'loaded()\nwhile True:\n    say(["ask", 0, "call", [3], [], 0])\n'),
        _talking("questions that make no sense", 'loaded()\nfor asked in ([], ["call"], ["call", -1, 3, 4], ["call", {}, [], []], [1, 2, 3, 4]):\n    say(["ask", 0, *asked])\n' + WRONG),
        _talking("a question in a question", 'loaded()\nwhile True:\n    if hear()[0] == "ask":\n        say(["ask", 0, "call", [], [], 0])\n', "callback"),
        # names that nobody asked for: the words of the tests' own language
        _talking("what all means", f'loaded(all={yes!r}, any={yes!r}, map={yes!r})\nwhile True:\n    hear()\n    ok(True)\n', "several"),
        _talking("what isinstance means", f'loaded(isinstance={yes!r}, len={yes!r}, sorted={yes!r}, abs={yes!r})\nwhile True:\n    asked = hear()\n    ok(True)\n', "type"),
        _talking("what abs means", f'loaded(abs={yes!r})\nwhile True:\n    hear()\n    ok(-1)\n', "close"),
        _talking("which builtins there are", 'loaded(__builtins__={"d": [["abs", {"h": [1, 1, "function", True, ["__call__"]]}], ["all", {"h": [1, 1, "function", True, ["__call__"]]}]]})\nwhile True:\n    hear()\n    ok(0)\n', "close"),
    ]  # fmt: skip
    replies: dict[str, Any] = {
        "nothing": [],
        "half an answer": ["reply", 0, "ok"],
        "an answer with a number for its output": ["reply", 0, "ok", 7, 7, False, []],
        "an answer with a list for its output": ["reply", 0, "ok", 7, ["x"], [], {}],
        "an unknown word": _reply("forged", 1),
        "an empty handle": _reply("ok", {"h": []}),
        "a handle of nothing": _reply("ok", {"h": None}),
        "a negative handle": _reply("ok", {"h": [-1, "x"]}),
        "a handle of words": _reply("ok", {"h": ["x", []]}),
        "a vast handle": _reply("ok", {"h": ["9" * 4000, "x" * 100_000]}),
        "a module": _reply("ok", {"module": "os"}),
        "a module that opens a browser": _reply("ok", {"module": "antigravity"}),
        "a module by a list": _reply("ok", {"module": ["os"]}),
        "a module by a path": _reply("ok", {"module": "../os"}),
        "two marks": _reply("ok", {"t": [], "s": []}),
        "no mark": _reply("ok", {}),
        "an unknown mark": _reply("ok", {"zzz": 1}),
        "an exception that is none": _thrown({"X": "print"}, "x", [], ""),
        "an exception without a name": _thrown({"X": 7}, "x", [], ""),
        "an exception without lineage": _thrown({"X": []}, "x", [], ""),
        "an exception of no kind": _thrown(7, "x", [], ""),
        "an exception with half a name": _thrown({"kx": [1, "\x00", []]}, "x", [], ""),
        "an exception with half a character": _thrown({"kx": [1, "\ud800", []]}, "\udfff", ["\ud800"], "\ud801"),
        "an exception by a list": _thrown({"kx": [[], "x", []]}, "x", [], ""),
        "an exception with endless lineage": _thrown({"kx": [9, "x", [{"kx": [n, "x", []]} for n in range(10, 5000)]]}, "x", [], ""),
        "an exception with odd arguments": _thrown({"X": "UnicodeDecodeError"}, [1], 7, ""),
        "an exception group": _thrown({"X": "BaseExceptionGroup"}, "x", ["x", [1]], ""),
        "that the tests ended": _thrown({"X": "SystemExit"}, "", [0], ""),
        "that nothing happened": _thrown({"X": "StopIteration"}, "", [], ""),
        "a warning": _thrown({"X": "DeprecationWarning"}, "x", [], ""),
        "a whole number of no digits": _reply("ok", {"i": "x"}),
        "a whole number by a list": _reply("ok", {"i": [1]}),
        "a fraction by nothing": _reply("ok", {"F": ["1", "0"]}),
        "a fraction of one part": _reply("ok", {"F": ["1"]}),
        "a decimal out of reach": _reply("ok", {"T": ["decimal.Decimal", "1e999999999"]}),
        "a decimal that is none": _reply("ok", {"T": ["decimal.Decimal", "sNaN"]}),
        "a range without step": _reply("ok", {"r": [1, 2, 0]}),
        "a vast range": _reply("ok", {"r": [0, {"i": "0x" + "f" * 40}, 1]}),
        "a dictionary of lists": _reply("ok", {"d": [[[], 1]]}),
        "a dictionary of triples": _reply("ok", {"d": [[1, 2, 3]]}),
        "a set of lists": _reply("ok", {"s": [[1]]}),
        "a set of many": _reply("ok", {"s": list(range(20_000))}),
        "a time out of time": _reply("ok", {"datetime": ["99999-01-01", 0, None]}),
        "a duration without end": _reply("ok", {"delta": [1e308, 1e308, 1]}),
        "bytes that are none": _reply("ok", {"b": "***"}),
        "an array": _reply("ok", {"n": ["int64", [[1], [1, 2]]]}),
        "a complex number of texts": _reply("ok", {"c": ["1", "2"]}),
        "half a character": _reply("ok", "\ud800"),
        "not a number": _reply("ok", {"f": "nan"}),
        "a reference to nothing": _reply("ok", {"=": 5}),
        "a reference backwards": _reply("ok", {"=": -1}),
        "a list in itself": _reply("ok", [{"=": 0}]),
        "a list that doubles without end": _reply("ok", [[], *([{"=": n}, {"=": n}] for n in range(1, 60))]),
        "something that it was never given": _reply("ok", {"home": 7}),
        "a class that runs programs": _reply("ok", {"type": "subprocess.Popen"}),
        "a text of another class": _reply("ok", {"T": ["subprocess.Popen", "true"]}),
        "an exception that is a function": _thrown({"X": "os:system"}, "x", ["true"]),
        "an exception of a module with effects": _thrown({"X": "antigravity:x"}, "x", []),
        "a member of no enumeration": _reply("ok", {"E": [{"k": [5, "Odd", "Enum", "", [["A", 1]]]}, True, "B"]}),
        "a named tuple with odd fields": _reply("ok", {"N": [{"k": [5, "Odd", "tuple", ["class", "_x"], []]}, [1]]}),
        "a class of ours": _reply("ok", {"K": 0}),
        "a handle that can do everything": _reply("ok", {"h": [5, 6, "Odd", False, ["__eq__", "__class__", "__del__", 7]]}),
        "changes of what it was not given": ["reply", 0, "ok", 7, "", False, [[0, [1]], [9, []]]],
        "a reply for another thread": ["reply", 5, "ok", 7, "", False, []],
        "a reply for no thread": ["reply", "x", "ok", 7, "", False, []],
    }  # fmt: skip
    stop = _thrown({"X": "StopIteration"}, "", [])
    return [
        *lies,
        *(_answering(name, reply) for name, reply in replies.items()),
        _answering("that there is nothing more", stop, "several"),
        _answering("that there is nothing more", stop, "loop"),
        _answering("an exception with half a character", replies["an exception with half a character"], "check"),
        _answering("an exception with half a character", replies["an exception with half a character"], "doctest"),
        _talking("nothing where a program ends", "say([])" + ended, "program"),
        _talking("half a word where a program ends", 'say(["ran"])' + ended, "program"),
        _talking("a number where a program ends", "say([1, {}])" + ended, "program"),
        _talking("that a program ran well", 'say(["ran", ""])' + ended, "program"),
    ]


def _values() -> list[Attack]:
    """Rows 24 to 26: what a function may return or raise."""
    returned = {
        "a huge list": "[7] * (6 * 10**6)",
        "a huge text": "'x' * (3 * 10**7)",
        "a list in a list in a list": "__import__('functools').reduce(lambda inner, _: [inner], range(100000), [])",
        "not a number": "float('nan')",
        "infinity": "float('inf')",
        "a million digits": "1 << 3321928",
        "a decimal out of reach": "__import__('decimal').Decimal('1e999999999')",
        "a fraction": "__import__('fractions').Fraction(7, 10**1000)",
        "a vast range": "range(10**30)",
        "a function": "lambda: 3",
        "a generator": "(number for number in [3])",
        "an endless generator": "__import__('itertools').count()",
        "the class of the right answer": "int",
        "a module": "__import__('os')",
        "a property that raises": "type('X', (), {'__name__': property(lambda self: 1 / 0)})()",
        "an object that lies about its class": "type('X', (), {'__class__': int})()",
        "a dictionary with itself in it": "(lambda d: (d.update(d=d), d)[1])({})",
        "half a character": "'\\ud800'",
        "a frozen set of sets": "frozenset({frozenset({frozenset()})})",
    }
    found = ("wrong answer", "exception", "memory limit", "died", "cpu limit")
    raised = {
        "a huge message": "raise ValueError('x' * 10**7)",
        "half a character": "raise ValueError('\\ud800')",
        "a class with half a character": "raise type('X\\ud800', (Exception,), {})('\\udfff')",
        "no words": "raise type('X', (Exception,), {'__str__': lambda self: 1 / 0, '__repr__': lambda self: 1 / 0})",
        "words that are none": "raise type('X', (Exception,), {'__str__': lambda self: 3})",
        "itself for an argument": "e = ValueError(); e.args = (e,); raise e",
        "odd arguments": "raise ValueError(object(), [], {}, lambda: 3, 10**5000)",
        "no exception": "raise 3",
        "a base exception": "raise type('X', (BaseException,), {})",
        "a group": "raise BaseExceptionGroup('x', [KeyboardInterrupt()])",
        "endless recursion": "return add(a, b)",
        "no memory": "raise MemoryError",
        "an assertion": "raise AssertionError",
        "a stop": "raise StopIteration(3)",
    }
    return [
        *(
            Attack(24, f"returns {name}", f"def add(a, b):\n    return {value}\n", found, limits="tight", once=True)
            for name, value in returned.items()
        ),
        *(Attack(25, f"raises {name}", f"def add(a, b):\n    {code}\n", found, once=name != "no words") for name, code in raised.items()),
        Attack(25, "raises half a character at import", "raise ValueError('\\ud800')\n", ("exception",)),
        Attack(25, "raises half a character in a program", "raise ValueError('\\ud800')\n", ("exception",), "program"),
        Attack(24, "returns itself", "def add(a, b):\n    x = []\n    x.append(x)\n    return x\n", found),
        Attack(24, "is one great expression", "x = " + "(" * 5000 + ")" * 5000 + "\n", ("does not compile", "died", "memory limit")),
        Attack(24, "is one long sum", "x = " + "+".join(["1"] * 20000) + "\n" + WRONG, ("does not compile", "wrong answer", "died", "memory limit")),
        Attack(26, "changes its arguments", "def add(a, b):\n    a = b = 3\n    return a - b + 7\n", found),
        Attack(26, "an object that is reckoned with", _number("return 0"), found, "close", decides=True),
        Attack(26, "an object that is reckoned with", _number("return self"), found, "close", decides=True),
        Attack(26, "an object that is reckoned with", _number("return 0"), found, "near", decides=True),
        Attack(26, "an object that is true and false", _number("return True"), found, "own"),
        Attack(26, "stops what goes over it", "def add(a, b):\n    raise StopIteration\n", found, "several"),
        Attack(26, "stops what goes over it", "def add(a, b):\n    raise StopIteration\n", found, "loop"),
        Attack(26, "calls back without end", "def add(a, b):\n    while True:\n        a(b)\n", ("cpu limit", "time limit"), "callback", "hasty", once=True),
        Attack(26, "calls back with odd things", "def add(a, b):\n    for odd in (object(), [], None, 'x' * 10**6):\n        try: a(odd)\n        except Exception: pass\n    return 7\n", found, "callback"),
    ]  # fmt: skip


def _number(body: str) -> str:
    names = ("sub", "rsub", "add", "radd", "abs", "neg", "float", "lt", "gt", "le", "ge", "bool", "round", "eq", "ne")
    methods = "".join(f"    def __{name}__(self, *others):\n        {body}\n" for name in names)
    return f"class Number:\n{methods}    __hash__ = None\ndef add(a, b):\n    return Number()\n"


def _processes() -> list[Attack]:
    """Rows 10 to 14: what is started, and does not want to end."""
    daemon = (
        MARK
        + """
import time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        {held}
        while True:
            time.sleep(1)
    os._exit(0)
os.wait()
"""
    )
    away = "for fd in range(3): os.close(fd)"
    many = (
        MARK
        + ESCAPE
        + """
import time
made = 0
for _ in range(400):
    try:
        if os.fork() == 0:
            while True: time.sleep(1)
        made += 1
    except OSError:
        break
if made > 100: escaped(made, "processes")
os.write(1, b"TRIED")
"""
    )
    threads = (
        MARK
        + ESCAPE
        + """
import threading, time
made = 0
for _ in range(400):
    try:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        made += 1
    except RuntimeError:
        break
if made > 100: escaped(made, "threads")
os.write(1, b"TRIED")
"""
    )
    bomb = (
        MARK
        + """
while True:
    try: os.fork()
    except OSError: pass
"""
    )
    leader = (
        MARK
        + """
import threading, time
threading.Thread(target=lambda: [time.sleep(1) for _ in range(60)]).start()
ctypes.CDLL(None).syscall(@EXIT@, 0)
"""
    )
    hidden = (
        MARK
        + """
import threading, time
if os.fork() == 0:
    threading.Thread(target=lambda: [time.sleep(1) for _ in range(60)]).start()
    ctypes.CDLL(None).syscall(@EXIT@, 0)
time.sleep(0.05)
"""
    )
    answers = (
        MARK
        + PEER
        + """
loaded()
if os.fork() == 0:
    os.setsid()
    while True:
        hear()
        say(["ok", 3, ""])
os._exit(0)
"""
    )
    never = (
        MARK
        + """
import signal
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
def add(a, b):
    while True:
        try:
            while True: pass
        except BaseException: pass
"""
    )
    waits = "import time\ndef add(a, b):\n    while True:\n        try: time.sleep(60)\n        except BaseException: pass\n"
    stopped = MARK + "import signal\ndef add(a, b):\n    os.kill(os.getpid(), signal.SIGSTOP)\n"
    children = (
        MARK
        + """
import signal
for _ in range(20):
    if os.fork() == 0:
        os._exit(0)
child = os.fork()
if child == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
"""
    )
    return [
        Attack(10, "leaves someone to answer the next", answers, ("died", "wrong answer")),
        Attack(11, "many processes", many + WRONG, ("wrong answer",), tried=True, limits="hasty"),
        Attack(11, "many threads", threads + WRONG, ("wrong answer", "memory limit"), tried=True, limits="hasty"),
        Attack(11, "fork bomb", bomb, ("cpu limit", "time limit"), limits="brief"),
        Attack(11, "fork bomb in the function", MARK + "def add(a, b):\n    while True:\n        try: os.fork()\n        except OSError: pass\n", ("cpu limit", "time limit", "died", "exception", "wrong answer"), limits="hasty", once=True),
        Attack(12, "daemon that holds stdout", daemon.replace("{held}", "pass") + WRONG, ("wrong answer",)),
        Attack(12, "daemon that holds nothing", daemon.replace("{held}", away) + WRONG, ("wrong answer",)),
        Attack(12, "daemon, and right", daemon.replace("{held}", "pass") + HONEST, ()),
        Attack(12, "daemon of a process that is gone", daemon.replace("{held}", "pass") + "os._exit(0)\n", ("died",)),
        Attack(13, "stops itself", stopped, ("time limit",), limits="hasty"),
        Attack(13, "zombies, and a child that is stopped", children + WRONG, ("wrong answer", "exception", "died")),
        Attack(13, "ends its first thread only", leader, ("time limit",), limits="hasty"),
        Attack(13, "a child that ends its first thread only", hidden + WRONG, ("wrong answer",)),
        Attack(14, "ignores every signal", never, ("cpu limit",), once=True),
        Attack(14, "waits through every signal", waits, ("time limit",), limits="hasty"),
    ]  # fmt: skip


def _resources() -> list[Attack]:
    """Rows 15 to 18: time, output, memory, files."""
    sleeps = "import time\ndef add(a, b):\n    time.sleep(600)\n"
    held = ("memory limit", "died")
    several = (
        MARK
        + """
import mmap, threading, time
threading.stack_size(1 << 18)
def hold():
    if os.fork() == 0:
        {grab}
        for place in range(0, len(room), 4096):
            room[place] = 1
        while True: time.sleep(1)
for _ in range(16):
    {start}
while True: time.sleep(1)
"""
    )
    heap, shared = "room = bytearray(40 << 20)", "room = mmap.mmap(-1, 40 << 20)"
    fill = (
        ESCAPE
        + """
held = 0
try:
    for number in range(40):
        with open("f%d" % number, "wb") as file:
            for _ in range(15):
                held += file.write(bytes(1 << 20) )
except OSError as error:
    pass
import time
time.sleep(0.6)
if held > 560 << 20: escaped("wrote", held)
os.write(1, b"TRIED")
"""
    )
    tiny = (
        ESCAPE
        + """
count = 0
try:
    while count < 30000:
        os.close(os.open("t%d" % count, os.O_CREAT | os.O_WRONLY))
        count += 1
except OSError:
    pass
os.write(1, b"TRIED")
"""
    )
    large = (
        ESCAPE
        + """
def write():
    with open("large", "wb") as file:
        for _ in range(200):
            file.write(bytes(1 << 20))
def sparse():
    with open("sparse", "wb") as file:
        file.truncate(1 << 40)
attempt("a large file", write)
attempt("a sparse file", sparse)
opened = []
try:
    while len(opened) < 2000: opened.append(os.open("/dev/null", os.O_RDONLY))
except OSError: pass
if len(opened) > 1000: escaped(len(opened), "open files")
for fd in opened: os.close(fd)
os.write(1, b"TRIED")
"""
    )
    locked = """
import os
for name in ("a", "b/c/d", "e/f"):
    os.makedirs(name)
    open(name + "/file", "w").close()
    os.chmod(name, 0)
os.chmod("b", 0)
os.mkfifo("fifo")
os.symlink("/", "root")
os.symlink("loop", "loop")
open(b"\\xff\\xfe", "w").close()
os.link("fifo", "fifo2")
os.makedirs("deep")
here = os.getcwd()
os.chdir("deep")
for _ in range(300):
    os.mkdir("x" * 200)
    os.chdir("x" * 200)
os.chdir(here)
os.chmod("deep", 0)
os.chmod(".", 0)
"""
    lines = "import os, sys\ndef add(a, b):\n    while True: {out}\n"
    return [
        Attack(15, "sleeps", sleeps, ("time limit",), limits="hasty"),
        Attack(15, "busy", "def add(a, b):\n    while True: pass\n", ("cpu limit",)),
        Attack(15, "busy in C", "def add(a, b):\n    return 10 ** 10 ** 8 % 7\n", ("cpu limit", "memory limit", "died"), once=True),
        Attack(15, "busy in a regular expression", "import re\ndef add(a, b):\n    return re.match('(a+)+b', 'a' * 60)\n", ("cpu limit",), once=True),
        Attack(15, "busy while compiling", "x = " + " + ".join(["'a' * 4096"] * 3000) + "\ny = 9 ** 9 ** 9 ** 9\n" + WRONG, ("cpu limit", "memory limit", "wrong answer", "does not compile", "died"), once=True),
        Attack(16, "prints without end", lines.format(out="print('x' * 1000)"), ("cpu limit", "time limit", "exception", "memory limit"), limits="hasty", once=True),
        Attack(16, "writes without end", lines.format(out="os.write(1, b'x' * 65536)"), ("exception", "cpu limit", "died"), limits="hasty"),
        Attack(16, "errors without end", lines.format(out="sys.stderr.write('x' * 65536)"), ("exception", "cpu limit", "died"), limits="hasty", once=True),
        Attack(16, "a very long line", "print('x' * (1 << 26))\n" + HONEST, ()),
        Attack(16, "prints, then hangs", "import time\nprint('x' * 70000, flush=True)\ntime.sleep(60)\n", ("time limit",), limits="hasty"),
        Attack(16, "closes its output", "import os, sys\nsys.stdout.close()\nos.close(1)\nos.close(2)\n" + WRONG, ("wrong answer", "exception", "died")),
        Attack(16, "closes its line", "import os\nos.closerange(0, 256)\n" + WRONG, ("died",)),
        Attack(16, "prints much for each answer", "def add(a, b):\n    print('x' * 10**7)\n    return a + b\n", ()),
        Attack(17, "heap", "def add(a, b):\n    x = []\n    while True: x.append(bytearray(1 << 24))\n", ("memory limit",), limits="tight"),
        Attack(17, "mapped", "import mmap\nx = []\nwhile True:\n    x.append(mmap.mmap(-1, 1 << 26))\n", ("exception", "memory limit", "died"), limits="tight"),
        Attack(17, "stack", "import sys, threading\nsys.setrecursionlimit(10**9)\ndef deep(n): return [deep(n + 1)]\ndef add(a, b):\n    return sorted([1, 2], key=lambda n: deep(0))\n", ("died", "memory limit", "exception", "cpu limit"), limits="tight", once=True),
        Attack(17, "many processes", several.format(grab=heap, start="hold()"), held[:1], limits="tight"),
        Attack(17, "many processes of many threads", several.format(grab=heap, start="threading.Thread(target=hold).start()"), held[:1], limits="tight", once=True),
        Attack(17, "shared by many processes", several.format(grab=shared, start="hold()"), held[:1], limits="tight", once=True),
        Attack(17, "files in memory", fill + WRONG, ("wrong answer", "disk limit")),
        Attack(18, "large files and many", large + WRONG, ("wrong answer",), tried=True),
        Attack(18, "tiny files", tiny + WRONG, ("wrong answer", "cpu limit", "disk limit")),
        Attack(18, "locked and deep folders", locked + WRONG, ("wrong answer",)),
        Attack(18, "locked and deep folders, and gone", locked + "os._exit(0)\n", ("died",)),
        Attack(3, "_exit under a test that catches everything", "import os\ndef add(a, b):\n    os._exit(0)\n", ("died",), "swallows"),
        Attack(9, "nonsense under a test that catches everything", "import os\ndef add(a, b):\n    os.write(3, b'nonsense' * 9)\n", ("died",), "swallows"),
        Attack(14, "runs on under a test that catches everything", "def add(a, b):\n    while True: pass\n", ("cpu limit",), "swallows"),
        Attack(1, "right under a test that catches everything", "def add(a, b):\n    return a + b\n", (), "swallows"),
        Attack(30, "segmentation fault", "import ctypes\ndef add(a, b):\n    ctypes.string_at(0)\n", ("died",)),
        Attack(30, "kills itself", "import os\ndef add(a, b):\n    os.kill(os.getpid(), 9)\n", ("died",)),
        Attack(30, "aborts", "import os\ndef add(a, b):\n    os.abort()\n", ("died",)),
        Attack(30, "at import", "import os\nos.abort()\n", ("died",)),
    ]  # fmt: skip


def _escapes() -> list[Attack]:
    """Rows 19 to 23: what lies outside."""
    writes = (
        ESCAPE
        + """
bait = "@BAIT@"
flags = os.O_WRONLY | os.O_CREAT
outside = {
    "write": lambda: os.open(bait + "/written", flags),
    "append": lambda: os.open(bait + "/secret", os.O_WRONLY | os.O_APPEND),
    "truncate": lambda: os.truncate(bait + "/secret", 0),
    "chmod": lambda: (os.chmod(bait + "/mine", 0o777), os.stat(bait + "/mine").st_mode & 0o1 or [][0]),
    "times": lambda: (os.utime(bait + "/mine", (0, 0)), os.stat(bait + "/mine").st_mtime > 0 and [][0]),
    "attributes": lambda: (os.setxattr(bait + "/mine", "user.x", b"y"), os.getxattr(bait + "/mine", "user.x")),
    "delete": lambda: os.unlink(bait + "/secret"),
    "rename": lambda: os.rename(bait + "/secret", bait + "/other"),
    "bring in": lambda: os.rename(bait + "/secret", "secret"),
    "folder": lambda: os.mkdir(bait + "/folder"),
    "remove a folder": lambda: os.rmdir(bait + "/empty"),
    "fifo": lambda: os.mkfifo(bait + "/fifo"),
    "link": lambda: os.symlink("/", bait + "/link"),
    "hard link out": lambda: (open("x", "w").close(), os.link("x", bait + "/x")),
    "hard link in": lambda: os.link(bait + "/secret", "hard"),
    "by ..": lambda: os.open("../../.." + bait + "/written", flags),
    "by a link": lambda: (os.symlink(bait, "out"), os.open("out/written", flags)),
    "by /proc/self/root": lambda: os.open("/proc/self/root" + bait + "/written", flags),
    "by /proc/1/cwd": lambda: os.open("/proc/1/cwd/written", flags),
    "by /proc/1/root": lambda: os.open("/proc/1/root" + bait + "/written", flags),
    "beside its folder": lambda: os.open("../written", flags),
    "in /tmp": lambda: os.open("@TMP@/steelyard-attack-@TOKEN@", flags),
    "in the machine's /dev/shm": lambda: os.open("/dev/shm/steelyard-attack-@TOKEN@", os.O_WRONLY),
    "in /usr": lambda: os.open("/usr/written", flags),
    "in the interpreter": lambda: os.open(os.__file__, os.O_WRONLY),
    "a device": lambda: os.mknod("device", 0o60666, os.makedev(8, 0)),
    "a kernel switch": lambda: os.open("/proc/sys/kernel/hostname", os.O_WRONLY),
}
for name, deed in outside.items():
    attempt(name, deed)
os.write(1, b"TRIED")
"""
    )
    reads = (
        ESCAPE
        + """
import glob
paths = ["/etc/passwd", "/etc/shadow", "@HOME@/.bashrc", "@BAIT@/secret", "@BAIT@/open/secret", "@REPOSITORY@/pyproject.toml",
    "@TESTS@", "/proc/1/environ", "/proc/self/environ", "/proc/@PID@/environ", "/proc/@PID@/mem", "/proc/@PID@/maps",
    "/proc/@PPID@/environ", "/proc/kcore", "/proc/kallsyms", "/sys/kernel/notes", "/run/secrets", "/proc/1/root/etc/passwd",
    "/proc/self/root/etc/passwd", "../../../etc/passwd", "/proc/mounts", "/sys/class/net/lo/address"]
for path in paths:
    attempt("read " + path, lambda: os.read(os.open(path, os.O_RDONLY), 10))
for folder in ("/home", "@HOME@", "/etc", "/var", "@BAIT@", "@TMP@", "/proc", "/proc/@PID@/fd", "/sys", "/run"):
    # where an answer has a root of its own, it finds there the way to what it may read
    attempt("list " + folder, lambda: [name for name in os.listdir(folder) if name not in
        ("alternatives", "ld.so.cache", "ld.so.conf", *os.__file__.split("/"), *"@REPOSITORY@".split("/"))][0])
if any("SECRET" in value or "KEY" in name for name, value in os.environ.items()): escaped("environment")
for name in ("/etc/hostname", "/proc/self/status"):
    attempt("read", lambda: open(name).read(10))
for fd in range(3, 256):
    try: kind = os.fstat(fd)
    except OSError: continue
    if fd > 3: escaped("an open file", fd, kind)
os.write(1, b"TRIED")
"""
    )
    network = (
        ESCAPE
        + """
import array, socket
TARGETS = {
    "tcp": lambda: socket.create_connection(("127.0.0.1", @PORT@), 1),
    "tcp, named": lambda: socket.create_connection(("localhost", @PORT@), 1),
    "tcp 6": lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM).connect(("::1", @PORT@)),
    "listen": lambda: socket.create_server(("127.0.0.1", 0)),
    "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", @PORT@)),
    "metadata": lambda: socket.create_connection(("169.254.169.254", 80), 0.2),
    "ray": lambda: socket.create_connection(("127.0.0.1", 6379), 0.2),
    "dns": lambda: socket.getaddrinfo("example.com", 80),
    "raw": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    "packets": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0),
    "virtual machine": lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM),
    "crypto": lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET),
    "unix": lambda: socket.socket(socket.AF_UNIX).connect("@BAIT@/stream"),
    "unix, a message": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", "@BAIT@/dgram"),
    "abstract": lambda: socket.socket(socket.AF_UNIX).connect(chr(0) + "@TOKEN@"),
    "a pair, turned outwards": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", "@BAIT@/dgram"),
    "a pair, turned to nobody": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].connect(chr(0) + "@TOKEN@d"),
    "a raw pair": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)[0].sendto(b"x", "@BAIT@/dgram"),
    "a stream, turned outwards": lambda: socket.socketpair()[0].connect("@BAIT@/stream"),
    "its line, turned outwards": lambda: socket.socket(fileno=os.dup(3)).connect("@BAIT@/stream"),
}
for name, deed in TARGETS.items():
    attempt(name, deed)
a, b = socket.socketpair()
a.sendall(b"x")
if b.recv(1) != b"x": escaped("pairs are broken")
import asyncio
asyncio.run(asyncio.sleep(0))
os.write(1, b"TRIED")
"""
    )
    others = (
        ESCAPE
        + """
import ctypes, fcntl, resource, signal, struct
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    got = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if got < 0: raise OSError(ctypes.get_errno(), "no")
    return got
def own(pid):
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, pid)
    fcntl.fcntl(reading, 10, signal.SIGKILL)
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(writing, b"x")
    if fcntl.fcntl(reading, fcntl.F_GETOWN) != pid: raise OSError("not taken")
for pid in (os.getppid(), 1, @PID@, @VICTIM@):
    if pid in (0, os.getpid()): continue
    # the process above us may be asked whether it is there: what must not happen is that anything happens to it
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL) if pid != 1 or @ALONE@ == 0 else ():
        attempt("signal %d to %d" % (number, pid), lambda: os.kill(pid, number))
    attempt("limit of %d" % pid, lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)))
    attempt("nice of %d" % pid, lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
    attempt("processors of %d" % pid, lambda: os.sched_setaffinity(pid, {0}))
    attempt("schedule of %d" % pid, lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)))
    attempt("memory of %d" % pid, lambda: os.open("/proc/%d/mem" % pid, os.O_RDWR))
    attempt("trace of %d" % pid, lambda: call(@PTRACE@, 16, pid, 0, 0))
    here = ctypes.create_string_buffer(8)
    vector = struct.pack("QQ", ctypes.addressof(here), 8)
    attempt("read of %d" % pid, lambda: call(@PROCESS_VM_READV@, pid, vector, 1, vector, 1, 0))
    attempt("written to %d" % pid, lambda: call(@PROCESS_VM_WRITEV@, pid, vector, 1, vector, 1, 0))
    attempt("pidfd of %d" % pid, lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL))
    attempt("files of %d" % pid, lambda: call(@PIDFD_GETFD@, os.pidfd_open(pid), 0, 0))
    attempt("signal by a pipe to %d" % pid, lambda: own(pid))
attempt("nice of all", lambda: os.setpriority(os.PRIO_USER, 0, 19))
os.nice(0)
resource.getrlimit(resource.RLIMIT_CPU)
os.write(1, b"TRIED")
"""
    )
    everyone = (
        MARK
        + """
import signal, time
def all_of_them(number):
    try: os.kill(-1, number)
    except OSError: pass
all_of_them(signal.SIGINT)
all_of_them(signal.SIGTERM)
all_of_them(signal.SIGHUP)
try: os.kill(1, signal.SIGINT)
except OSError: pass
try: os.kill(os.getppid(), signal.SIGINT)
except OSError: pass
try: os.killpg(0, signal.SIGCONT)
except OSError: pass
time.sleep(0.05)
all_of_them(signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    calls = (
        ESCAPE
        + """
import ctypes, ctypes.util, struct, subprocess
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    got = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if got < 0: raise OSError(ctypes.get_errno(), "no")
    return got
NEW = {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x8000000, "uts": 0x4000000,
    "cgroup": 0x2000000, "time": 0x80}
def clone(flags):
    child = call(@CLONE@, flags | 17, 0, 0, 0, 0)
    if child == 0: os._exit(0)
    return os.waitpid(child, 0)
for name, flag in NEW.items():
    attempt("unshare " + name, lambda: call(@UNSHARE@, flag))
    if name != "time": attempt("clone " + name, lambda: clone(flag))
attempt("clone3", lambda: call(435, struct.pack("8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64))
attempt("setns", lambda: call(@SETNS@, 3, 0))
attempt("mount", lambda: call(@MOUNT@, b"none", b".", b"tmpfs", 0, None))
attempt("chroot", lambda: os.chroot("."))
attempt("pivot_root", lambda: call(@PIVOT_ROOT@, b".", b"."))
attempt("bpf", lambda: call(@BPF@, 0, ctypes.create_string_buffer(128), 128))
attempt("keyctl", lambda: call(@KEYCTL@, 0, -3, 1))
attempt("add_key", lambda: call(@ADD_KEY@, b"user", b"x", b"y", 1, -3))
attempt("io_uring", lambda: call(425, 8, ctypes.create_string_buffer(256)))
attempt("perf", lambda: call(@PERF_EVENT_OPEN@, ctypes.create_string_buffer(128), 0, -1, -1, 0))
attempt("userfaultfd", lambda: call(@USERFAULTFD@, 1))
attempt("memfd", lambda: os.memfd_create("x"))
attempt("shared memory", lambda: call(@SHMGET@, 0x5EE1, 4096, 0o1666))
attempt("a queue", lambda: call(@MSGGET@, 0x5EE1, 0o1666))
attempt("reboot", lambda: call(@REBOOT@, 0, 0, 0))
attempt("the clock", lambda: __import__("time").clock_settime(0, 0))
attempt("the name of the machine", lambda: __import__("socket").sethostname("x"))
attempt("fanotify", lambda: call(@FANOTIFY_INIT@, 0, 0))
attempt("a handle", lambda: call(@OPEN_BY_HANDLE_AT@, -100, ctypes.create_string_buffer(64), 0))
attempt("modules", lambda: call(@FINIT_MODULE@, 3, b"", 0))
attempt("the log of the kernel", lambda: call(@SYSLOG@, 3, ctypes.create_string_buffer(64), 64))
attempt("another user", lambda: os.setuid(0) if os.getuid() else [][0])
attempt("another group", lambda: os.setgroups([0, 1, 2]))
attempt("the same calls by other numbers", lambda: call(0x40000000 + 39))
for program in ("/usr/bin/su", "/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/usr/bin/newgrp"):
    def ask():
        # whoever runs a program that belongs to root stays who he is
        code = "import os; print(open('/proc/self/status').read())"
        got = subprocess.run([program, "--version"], capture_output=True, timeout=5).stdout
        raise OSError("ran, as nobody")
    attempt(program, ask)
attempt("privileges", lambda: [][0] if libc.prctl(39, 0, 0, 0, 0) == 1 else 1)
os.write(1, b"TRIED")
"""
    )
    return [
        Attack(19, "writes outside", writes + WRONG, ("wrong answer",), tried=True),
        Attack(20, "reads outside", reads + WRONG, ("wrong answer",), tried=True),
        Attack(21, "network", network + WRONG, ("wrong answer",), tried=True),
        Attack(22, "other processes", others + WRONG, ("wrong answer",), tried=True),
        Attack(22, "everyone", everyone, ("died",)),
        Attack(22, "everyone, from the function", "import os\ndef add(a, b):\n    try: os.kill(-1, 9)\n    except OSError: pass\n    return 7\n", ("wrong answer", "died")),
        Attack(23, "calls of the kernel", calls + WRONG, ("wrong answer",), tried=True),
    ]  # fmt: skip


def _surroundings() -> list[Attack]:
    """Row 27: what an answer sees of the world is the same every time."""
    seen = """
import locale, os, sys, time, random
print("SEEN", hash("a"), list({"a", "b", "c", "d"}), time.tzname, os.environ.get("LANG"), sys.flags.hash_randomization,
    sys.getfilesystemencoding(), random.random(), sorted(os.environ), os.getcwd().startswith("/"))
time.sleep = lambda seconds: None
time.time = time.monotonic = lambda: 0
def add(a, b):
    return a + b
"""
    return [
        Attack(27, "looks around", seen, ()),
        Attack(27, "looks around once more", seen, ()),
        Attack(27, "lives in another time", "import time\ntime.time = time.perf_counter = time.monotonic = lambda: 10**12\n" + WRONG, ("wrong answer",)),
    ]  # fmt: skip


ATTACKS = (
    *_controls(),
    *_forging(),
    *_frames(),
    *_processes(),
    *_resources(),
    *_escapes(),
    *_values(),
    *_surroundings(),
)
ROWS = sorted({attack.row for attack in ATTACKS})
