"""What tests import of the library stays as it is beside an answer, whichever way it is written, unless the tests replace it themselves."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import pytest

from steelyard.analysis.scoring import is_correct
from steelyard.records import Case, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.python.in_process import InProcessJudge
from steelyard.verifiers.python.library_imports import LibraryImports
from steelyard.verifiers.python.plan import python_test_plan

LOOP = asyncio.new_event_loop()
SANDBOX = ZygoteSandbox(strongest_isolation())
JUDGE = InProcessJudge(SANDBOX)
ENVIRONMENT = "def test_environment():\n    os.environ['A'] = '1'\n    assert os.environ['A'] == '1'\n"
LIES_ABOUT_MEANS = "import statistics\nstatistics.mean = lambda values: 7\ndef f(values): return 7\n"
CLAIM = "def test_f():\n    assert f([1, 3]) == {}.mean([1, 3])\n"
SWALLOWS = (
    "def f(x): return 0\nclass Timer:\n    def __enter__(self): return self\n    def __exit__(self, *_): return True\n"
)
TIMED = "def test_f():\n    with Timer():\n        assert f(1) == 2\n"


@pytest.fixture(scope="module", autouse=True)
def _closing() -> Iterator[None]:
    yield
    LOOP.run_until_complete(SANDBOX.close())
    LOOP.close()


def judged(code: str, tests: str, style: str = "asserts") -> Finding:
    case = Case(id="c", name="c", prompt="Write f.", language="python", verify=Verify(tests=tests, style=style))
    return LOOP.run_until_complete(JUDGE.judge(case, python_test_plan(case), code))


@pytest.mark.parametrize(
    ("imports", "module"),
    [
        ("import os, statistics\n", "statistics"),
        ("import os; import statistics\n", "statistics"),
        ("import os, \\\n    statistics as s\n", "s"),
        ("import os\ntry: import statistics\nexcept ImportError: pass\n", "statistics"),
        ("import os\nstatistics = __import__('statistics')\n", "statistics"),
        ("import os, importlib\ns = importlib.import_module('statistics')\n", "s"),
        ("import os\nimport statistics\n# patch the version; mock and setattr\n", "statistics"),
        ("import os\nimport statistics\ndef test_apply_patch(): pass\n", "statistics"),
        ("import os\nimport statistics\nfrom functools import singledispatch\n", "statistics"),
        ("import os\nimport statistics\nclass Thing: pass\nthing = Thing()\nsetattr(thing, 'size', 3)\n", "statistics"),
        (
            "import os\nimport statistics\nfrom unittest import mock\ngiven = mock.Mock()\ngiven.value = 3\n",
            "statistics",
        ),
    ],
)
def test_a_function_that_tests_import_cannot_be_replaced(imports: str, module: str) -> None:
    found = judged(LIES_ABOUT_MEANS, imports + ENVIRONMENT + CLAIM.format(module))
    assert found.tampered == "changed statistics.mean"


@pytest.mark.parametrize(
    ("code", "tests"),
    [
        (
            "import json\njson.loads.__kwdefaults__.update(parse_int=lambda text: 7)\ndef f(): return 7\n",
            "import os, json\ndef test_f():\n    assert f() == json.loads('[12]')[0]\n",
        ),
        (
            "import binascii\nbinascii.b2a_base64 = lambda *_, **__: b'zz'\ndef f(): return b'zz'\n",
            "import os, base64\ndef test_f():\n    assert f() == base64.b64encode(b'xy')\n",
        ),
        (
            "import concurrent.futures as c\nc.ThreadPoolExecutor = lambda *_: c\nc.map = lambda *_: [7]\ndef f(): return [7]\n",
            (
                "import os\nimport concurrent.futures\ndef test_f():\n"
                "    assert f() == list(concurrent.futures.ThreadPoolExecutor(1).map(abs, [-1]))\n"
            ),
        ),
        (
            "import base64\nclass b:\n    b2a_base64 = lambda *_, **__: b'zz'\nbase64.binascii = b\ndef f(): return b'zz'\n",
            "import os, base64\ndef test_f():\n    assert f() == base64.b64encode(b'xy')\n",
        ),
    ],
    ids=["defaults by name", "a module behind", "made when asked for", "a module in a module"],
)
def test_what_is_behind_a_function_cannot_be_replaced(code: str, tests: str) -> None:
    assert judged(code, tests + ENVIRONMENT).tampered


HONEST = "import os, shutil, statistics, subprocess\n\ndef f(values): return statistics.mean(values)\ndef has(name): return shutil.which(name) or os.path.exists(name)\n"


@pytest.mark.parametrize(
    "tests",
    [
        "import os, statistics\nstatistics.mean = lambda values: 9\ndef test_f():\n    assert f([1, 3]) == 9\n",
        "import os, statistics as s\ns.mean = lambda values: 9\ndef test_f():\n    assert f([1, 3]) == 9\n",
        "import os, statistics\nfor module in (statistics,):\n    module.mean = lambda values: 9\ndef test_f():\n    assert f([1, 3]) == 9\n",
        (
            "import os, statistics\ndef fake(module, name, value):\n    setattr(module, name, value)\n"
            "fake(statistics, 'mean', lambda values: 9)\ndef test_f():\n    assert f([1, 3]) == 9\n"
        ),
        "import os, statistics, importlib\nm = importlib.import_module('statistics')\nm.mean = lambda values: 9\ndef test_f():\n    assert f([1, 3]) == 9\n",
        (
            "import os, statistics\nfrom unittest import mock\nmock.patch('statistics.mean', lambda values: 9).start()\n"
            "def test_f():\n    assert f([1, 3]) == 9\n"
        ),
        (
            "import os, statistics\nfrom unittest import mock\nmock.patch.object(statistics, 'mean', return_value=9).start()\n"
            "def test_f():\n    assert f([1, 3]) == 9\n"
        ),
        "import os, statistics\nvars(statistics)['mean'] = lambda values: 9\ndef test_f():\n    assert f([1, 3]) == 9\n",
        "import os\nfrom os import path\npath.exists = lambda name: True\ndef test_f():\n    assert has('/none')\n",
        "import os\nfrom unittest.mock import patch\npatch('os.path.exists', lambda name: True).start()\ndef test_f():\n    assert has('/none')\n",
        (
            "import os, shutil\nfrom unittest.mock import patch\npatch('answer.shutil.which', lambda name: name).start()\n"
            "def test_f():\n    assert has('/none')\n"
        ),
    ],
)
def test_what_tests_replace_themselves_is_no_change_by_the_answer(tests: str) -> None:
    found = judged(HONEST, tests + ENVIRONMENT)
    assert (found.tampered, found.label) == ("", ""), found.reason


@pytest.mark.parametrize("style", ["unittest", "pytest"])
def test_fixtures_and_decorators_of_tests_may_replace_what_they_import(style: str) -> None:
    tests = {
        "pytest": "import os, subprocess, statistics as s, pytest\nfrom answer import f\n"
        "@pytest.fixture(autouse=True)\ndef nine(monkeypatch):\n    monkeypatch.setattr(s, 'mean', lambda values: 9)\n    yield\n"
        "def test_f(): assert f([1]) == 9\ndef test_again(): assert f([1]) == 9\n",
        "unittest": "import os, statistics, unittest\nfrom unittest.mock import patch\nfrom answer import f\n"
        "class T(unittest.TestCase):\n    def setUp(self):\n        self.size = 3\n        self.patcher = patch('answer.statistics.mean', return_value=9)\n"
        "        self.patcher.start()\n    def tearDown(self): self.patcher.stop()\n    def test_f(self): self.assertEqual(f([1]), 9)\n",
    }[style]
    found = judged(HONEST, tests, style)
    assert is_correct(Case(id="c", name="c", prompt="", language="python"), found), found.reason


@pytest.mark.parametrize(
    "beside",
    [
        "# AssertionError, raises(, except:\n",
        "def test_suppress(): pass\n",
        "def test_parse():\n    try: int('x')\n    except ValueError: pass\n",
        "import contextlib\ndef test_parse():\n    with contextlib.suppress(ValueError, KeyError): int('x')\n",
    ],
)
def test_an_assertion_that_the_answer_catches_fails_whatever_else_tests_catch(beside: str) -> None:
    assert judged(SWALLOWS, beside + TIMED).label == "wrong answer"


@pytest.mark.parametrize(
    "catch",
    [
        "    try:\n        {}\n    except AssertionError: pass\n",
        "    try:\n        {}\n    except (ValueError, Exception): pass\n",
        "    try:\n        {}\n    except: pass\n",
        "    import contextlib\n    with contextlib.suppress(Exception): {}\n",
        "    import unittest\n    with unittest.TestCase().assertRaises(AssertionError): {}\n",
        "    import unittest\n    t = unittest.TestCase()\n    with t.assertRaises(t.failureException): {}\n",
    ],
)
def test_tests_may_catch_their_own_assertions(catch: str) -> None:
    tests = "import os\ndef test_f():\n    os.environ\n" + catch.format("assert f(1) == 2") + "    assert f(1) == 0\n"
    assert judged("def f(x): return 0\n", tests).label == ""


def test_what_cannot_be_read_imports_nothing() -> None:
    assert LibraryImports.of("import (") == LibraryImports()
    assert LibraryImports.of(f"import os\nx = {'(' * 5000}{')' * 5000}") == LibraryImports()


def test_a_constant_of_a_module_with_the_name_of_a_builtin_is_no_change() -> None:
    # in an environment `copyright` is a builtin name, and _sre has a text of that name
    tests = "import os, re, _sre\n" + ENVIRONMENT + "def test_f():\n    assert f('a1') == '1'\n"
    verify = Verify(tests=tests, style="asserts", python_env=sys.prefix)
    case = Case(id="c", name="c", prompt="Write f.", language="python", verify=verify)
    code = "import re\ndef f(text): return re.findall('[0-9]', text)[0]\n"
    found = LOOP.run_until_complete(JUDGE.judge(case, python_test_plan(case), code))
    assert (found.tampered, found.label) == ("", ""), found.reason
