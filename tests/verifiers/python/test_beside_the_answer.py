"""Tests beside an answer read it as plain Python would, and the answer finds nothing of ours there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from steelyard.analysis.scoring import is_correct
from steelyard.records import Case, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.python.in_process import InProcessJudge
from steelyard.verifiers.python.plan import python_test_plan

LOOP = asyncio.new_event_loop()
SANDBOX = ZygoteSandbox(strongest_isolation())
JUDGE = InProcessJudge(SANDBOX)
FILES = {
    "unittest": "import unittest\nfrom answer import f\n\nclass T(unittest.TestCase):\n    def test(self):\n        {}\n",
    "pytest": "from unittest import TestCase\nfrom answer import f\n\ndef test():\n    self = TestCase()\n    {}\n",
    "asserts": "import unittest\nself = unittest.TestCase()\n\ndef test():\n    {}\n",
}
ITERATORS = {
    "a generator": "def f(items):\n    yield from items\n",
    "map": "def f(items): return map(int, items)\n",
    "an iterator of its own": "class f:\n    def __init__(self, items): self.rest = list(items)\n    def __iter__(self): return self\n"
    "    def __next__(self):\n        if not self.rest: raise StopIteration\n        return self.rest.pop(0)\n",
    "a class that can be gone through once": "class f:\n    def __init__(self, items): self.once = iter(items)\n    def __iter__(self): return self.once\n",
}
RIGHT_CLAIMS = (
    "self.assertCountEqual(f([3, 1, 2]), [1, 2, 3])",
    "self.assertIn(2, f([1, 2, 3]))",
    "self.assertNotIn(4, f([1, 2, 3]))",
)
WRONG_CLAIMS = (
    "self.assertCountEqual(f([1, 3]), [])",
    "self.assertIn(4, f([1, 2, 3]))",
    "self.assertNotIn(2, f([1, 2, 3]))",
)
CRAWLER = r"""
import _abc, abc, sys, types, weakref

_abc_type = abc.ABCMeta
OWN = ("__dict__", "__class__", "__closure__", "__globals__", "__self__", "__func__", "__wrapped__", "cell_contents",
       "__bases__", "__builtins__", "func", "args", "keywords", "fget", "__objclass__")

def below(thing):
    kind = type(thing)
    if isinstance(thing, dict):
        yield from list(dict.keys(thing))[:3000]
        yield from list(dict.values(thing))[:3000]
    elif kind in (list, tuple, set, frozenset):
        yield from list(thing)[:3000]
    elif kind is weakref.ReferenceType:
        yield thing()
    get = type.__getattribute__ if isinstance(thing, type) else object.__getattribute__
    for name in OWN:
        try:
            yield get(thing, name)
        except BaseException:
            pass
    if isinstance(thing, _abc_type):
        for part in _abc._get_dump(thing)[:3]:
            yield from [held() for held in part]
    if isinstance(thing, type):
        yield from list(type.__dict__["__dict__"].__get__(thing).values())
        if thing is not type:
            yield from type.__subclasses__(thing)
    elif kind is not types.FunctionType:
        for base in kind.__mro__:
            for slot in list(vars(base).values()):
                if isinstance(slot, types.MemberDescriptorType):
                    try:
                        yield slot.__get__(thing)
                    except BaseException:
                        pass

def owner(thing):
    made_by = thing if isinstance(thing, type) else type(thing)
    names = [str(type.__dict__["__module__"].__get__(made_by))]
    if type(thing) is types.FunctionType:
        names.append(str(thing.__globals__.get("__name__")))
    return [name for name in names if name.partition(".")[0] in ("steelyard", "_ctypes")]

def found():
    seen, kept, waiting = set(), [], [sys, globals(), *sys.modules.values(), *type.__subclasses__(type)]
    for thing in waiting:
        if id(thing) in seen or type(thing) in (str, int, float, bytes, bool, types.CodeType):
            continue
        seen.add(id(thing))
        kept.append(thing)
        if name := owner(thing):
            return f"{name} {thing!r}"
        waiting.extend(below(thing))
    return f"nothing of {len(seen) > 5000}"
"""


@pytest.fixture(scope="module", autouse=True)
def _closing() -> Iterator[None]:
    yield
    LOOP.run_until_complete(SANDBOX.close())
    LOOP.close()


def case_of(style: str, tests: str, seconds: float = 10) -> Case:
    verify = Verify(tests=tests, style=style)
    return Case(id="c", prompt="Write f.", language="python", timeout_secs=seconds, verify=verify)


def beside(case: Case, code: str) -> Finding:
    return LOOP.run_until_complete(JUDGE.judge(case, python_test_plan(case), code))


@pytest.mark.parametrize("style", FILES)
@pytest.mark.parametrize("name", ITERATORS)
def test_what_can_be_gone_through_once_is_gone_through_once(name: str, style: str) -> None:
    for claims, expected in ((RIGHT_CLAIMS, True), (WRONG_CLAIMS, False)):
        for claim in claims:
            case = case_of(style, FILES[style].format(claim))
            finding = beside(case, ITERATORS[name])
            assert is_correct(case, finding) is expected, f"{claim}: {finding.label} {finding.reason}"


@pytest.mark.parametrize("claim", ["self.assertIn(10, f())", "assert 10 in f()"])
def test_an_item_is_found_in_an_endless_generator(claim: str) -> None:
    case = case_of("unittest", FILES["unittest"].format(claim))
    found = beside(case, "import itertools\ndef f(): return itertools.count()\n")
    assert is_correct(case, found), found.reason


@pytest.mark.parametrize("claim", ["self.assertIn(10, f())", "assert 10 in f()", "self.assertCountEqual(f(), [10])"])
def test_an_item_that_equals_everything_is_not_found_in_a_generator(claim: str) -> None:
    case = case_of("unittest", FILES["unittest"].format(claim))
    always = "class Yes:\n    def __eq__(self, other): return True\n    __hash__ = None\n"
    for returned in ("(Yes() for _ in range(1))", "iter([Yes()])", "map(lambda _: Yes(), [1])"):
        found = beside(case, f"{always}def f(): return {returned}\n")
        assert not is_correct(case, found), returned


@pytest.mark.parametrize("style", FILES)
def test_an_exception_of_the_answer_is_named(style: str) -> None:
    found = beside(case_of(style, FILES[style].format("assert f() == 3")), "def f(): raise KeyError('lost')\n")
    assert found.label == "exception"
    assert "KeyError: 'lost'" in (found.reason or "")


@pytest.mark.parametrize("style", FILES)
@pytest.mark.parametrize("place", ["while it is loaded", "in a test"])
def test_no_answer_finds_anything_of_ours_beside_its_tests(place: str, style: str) -> None:
    code = CRAWLER + (
        "raise RuntimeError(found())\n" if place != "in a test" else "def f(): raise RuntimeError(found())\n"
    )
    tests = "assert f()" if style == "asserts" else FILES[style].format("assert f()")
    told = beside(case_of(style, tests, 60), code)
    assert "nothing of True" in (told.reason or ""), told.reason


@pytest.mark.parametrize("style", FILES)
def test_an_answer_that_gives_a_module_of_the_library_another_class_is_found(style: str) -> None:
    code = (
        "import math\nclass Always(type(math)):\n    isclose = property(lambda _: lambda *_, **__: True)\n"
        "math.__class__ = Always\ndef f(): return 7\n"
    )
    claim = "import math; assert math.isclose(f(), 3)"
    found = beside(case_of(style, FILES[style].format(claim)), code)
    assert "changed the class of the module math" in found.tampered


REPLACED = {
    "a function of a module that is loaded late": (
        "statistics",
        "statistics.mean([f(), 3]) == 3",
        "statistics.mean = lambda _: 3",
    ),
    "a builtin name in a module": ("statistics", "statistics.median([f()]) == 3", "statistics.sorted = lambda _: [3]"),
    "a method behind a function": ("json", "json.loads(f()) == 3", "json.decoder.JSONDecoder.decode = lambda *_: 3"),
    "a function of os.path": ("os.path", "os.path.exists(f())", "os.path.exists = lambda _: True"),
}
HONEST_CHANGES = {
    "a level of logging": ("logging", "logging.TRACE = 5\nlogging.Logger.trace = lambda self, *_: None"),
    "a hook for threads": ("threading", "threading.excepthook = print"),
    "an old name": ("collections", "import collections.abc\ncollections.Callable = collections.abc.Callable"),
    "what JSON is made of objects": ("json", "json.JSONEncoder.default = lambda self, held: vars(held)"),
}


@pytest.mark.parametrize("style", FILES)
@pytest.mark.parametrize("name", REPLACED)
def test_an_answer_that_replaces_what_its_tests_import_is_found(name: str, style: str) -> None:
    module, claim, change = REPLACED[name]
    code = f"import {module}\n{change}\ndef f(): return 7\n"
    found = beside(case_of(style, f"import {module}\n" + FILES[style].format(f"assert {claim}")), code)
    assert found.tampered.startswith(("changed ", "added ")), found.reason


@pytest.mark.parametrize("name", HONEST_CHANGES)
def test_what_answers_may_set_in_the_library_fails_none(name: str) -> None:
    module, change = HONEST_CHANGES[name]
    case = case_of("unittest", f"import {module}\n" + FILES["unittest"].format("assert f() == 7"))
    found = beside(case, f"import {module}\n{change}\ndef f(): return 7\n")
    assert is_correct(case, found), found.reason


def test_tests_may_replace_what_they_import() -> None:
    case = case_of("unittest", "import shutil\n" + FILES["unittest"].format("shutil.which = id; assert f() == 7"))
    assert is_correct(case, beside(case, "import shutil\ndef f(): return 7\n"))


VIEWED = {
    "compared": ("__eq__(self, held)", "str.__dict__ == Taker()"),
    "joined": ("__ror__(self, held)", "str.__dict__ | Taker()"),
}


@pytest.mark.parametrize("style", FILES)
@pytest.mark.parametrize("name", VIEWED)
def test_an_answer_that_changes_a_class_of_the_interpreter_by_a_view_of_it_is_found(name: str, style: str) -> None:
    method, taking = VIEWED[name]
    code = f"""
class Taker:
    __hash__ = None
    def {method}:
        real = held["isidentifier"]
        held["isidentifier"] = lambda text: text == "1" or real(text)
        return held
{taking}
def f(): return "1"
"""
    found = beside(case_of(style, FILES[style].format("assert f().isidentifier()")), code)
    assert "changed str.isidentifier" in found.tampered, found.reason


def test_the_crawler_finds_what_there_is_to_find() -> None:
    scope: dict[str, object] = {"__name__": "answer"}
    exec(CRAWLER, scope)
    assert "nothing of" not in eval("found()", scope)
