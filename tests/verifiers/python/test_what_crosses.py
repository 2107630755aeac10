"""Honest answers with ordinary tests pass in a process of their own, and what could not cross is known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from steelyard.errors import VerifierError
from steelyard.records import Case, Expectations, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.python.verifier import PythonVerifier

ROOM = ZygoteSandbox(strongest_isolation())
LOOP = asyncio.Runner()
VERIFIER = PythonVerifier(ROOM)


@pytest.fixture(scope="session", autouse=True)
def _closed() -> Iterator[None]:
    yield
    LOOP.run(VERIFIER.close())
    LOOP.run(ROOM.close())
    LOOP.close()


def refereed(
    code: str, tests: str, *, entry_point: str = "", timeout_secs: float = 20
) -> tuple[Finding, tuple[str, ...]]:
    case = Case(
        id="one",
        prompt="one",
        language="python",
        timeout_secs=timeout_secs,
        verify=Verify(entry_point=entry_point),
        expectations=Expectations(test_file=tests),
    )
    found = LOOP.run(VERIFIER._refereed(case, VERIFIER._plan(case), code))
    return found.finding, found.uncrossed


class Honest(NamedTuple):
    """A right answer with tests that it passes in any one process."""

    name: str
    code: str
    tests: str
    trust: str = ""
    """`in-process` where an object of the answer's has a say."""


HONEST = [
    Honest(
        "named tuples",
        """
from typing import NamedTuple
from collections import namedtuple
class Point(NamedTuple):
    x: int
    y: int = 0
Pair = namedtuple("Pair", "left right")
def point(a, b): return Point(a, b)
def pair(a, b): return Pair(a, b)
def swap(p): return Point(p.y, p.x)
def is_point(p): return type(p) is Point
""",
        """
p = point(1, 2)
assert p.x == 1 and p.y == 2 and p == (1, 2)
assert p._replace(x=5) == (5, 2)
assert p._asdict() == {"x": 1, "y": 2}
assert repr(p) == "Point(x=1, y=2)"
assert isinstance(p, Point) and isinstance(p, tuple)
assert swap(p) == Point(2, 1)
assert Point(7) == (7, 0)
assert [is_point(p), is_point(Point(1))] == [True, True]
assert pair(1, [2]).right == [2]
x, y = p
assert (x, y) == (1, 2)
""",
    ),
    Honest(
        "values of the standard library",
        """
import array, collections, datetime, decimal, fractions, ipaddress, pathlib, types, uuid, zoneinfo
def same(value): return value
def values():
    return [pathlib.Path("a/b"), pathlib.PurePosixPath("c"), uuid.UUID(int=5), decimal.Decimal("1.50"), fractions.Fraction(1, 3),
            datetime.date(2024, 2, 29), datetime.time(1, 2, 3), datetime.timedelta(days=1, seconds=2),
            datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc), datetime.timezone(datetime.timedelta(hours=2)),
            collections.Counter("abca"), collections.OrderedDict(b=1, a=2), collections.deque([1, 2], maxlen=3),
            collections.ChainMap({"a": 1}, {"b": 2}), range(3), slice(1, None, 2), 2 + 3j, b"x", bytearray(b"y"), Ellipsis,
            array.array("i", [1, 2]), ipaddress.ip_address("127.0.0.1"), types.SimpleNamespace(a=1), frozenset({1}), int, collections.Counter]
def default():
    found = collections.defaultdict(list)
    found["a"].append(1)
    return found
""",
        """
import array, collections, datetime, decimal, fractions, ipaddress, pathlib, types, uuid
want = [pathlib.Path("a/b"), pathlib.PurePosixPath("c"), uuid.UUID(int=5), decimal.Decimal("1.50"), fractions.Fraction(1, 3),
        datetime.date(2024, 2, 29), datetime.time(1, 2, 3), datetime.timedelta(days=1, seconds=2),
        datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc), datetime.timezone(datetime.timedelta(hours=2)),
        collections.Counter("abca"), collections.OrderedDict(b=1, a=2), collections.deque([1, 2], maxlen=3),
        collections.ChainMap({"a": 1}, {"b": 2}), range(3), slice(1, None, 2), 2 + 3j, b"x", bytearray(b"y"), Ellipsis,
        array.array("i", [1, 2]), ipaddress.ip_address("127.0.0.1"), types.SimpleNamespace(a=1), frozenset({1}), int, collections.Counter]
def test_values():
    got = values()
    assert got == want
    assert [type(one) for one in got] == [type(one) for one in want]
    assert [type(same(one)) for one in want] == [type(one) for one in want]
    assert [same(one) for one in want] == want
assert values()[10].most_common(1) == [("a", 2)]
assert values()[10]["missing"] == 0
assert values()[0].suffix == "" and values()[0] / "c" == pathlib.Path("a/b/c")
assert values()[12].maxlen == 3
def test_default():
    found = default()
    assert found == {"a": [1]}
    assert found["new"] == []
""",
    ),
    Honest(
        "enumerations",
        """
import enum
class Color(enum.Enum):
    RED = 1
    GREEN = "g"
class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2
class Mode(str, enum.Enum):
    ON = "on"
class Flag(enum.Flag):
    A = 1
    B = 2
class Rich(enum.Enum):
    A = 1
    def double(self): return self.value * 2
def pick(n): return Color(n)
def name(color): return color.name
def level(n): return Level(n)
def rich(): return Rich.A
def is_red(color): return color is Color.RED
""",
        """
assert pick(1) is Color.RED and pick("g") == Color.GREEN
assert Color.RED.value == 1 and Color["RED"] is Color.RED
assert [c.name for c in Color] == ["RED", "GREEN"]
assert name(Color.GREEN) == "GREEN" and is_red(Color.RED) and not is_red(Color.GREEN)
assert level(2) == 2 and level(2) is Level.HIGH and level(1) < Level.HIGH
assert Mode.ON == "on"
assert Flag.A | Flag.B == Flag(3)
assert len(Color) == 2
""",
    ),
    Honest(
        "an enumeration with methods keeps the identity of its members",
        """
import enum
class Rich(enum.Enum):
    A = 1
    B = 2
    def other(self): return Rich.B if self is Rich.A else Rich.A
def first(): return Rich.A
""",
        """
assert first() is Rich.A
assert first().other() is Rich.B
assert first() is not Rich.B
assert first() == Rich.A and first() != Rich.B
assert Rich.A.value == 1
""",
        "in-process",
    ),
    Honest(
        "exceptions with attributes, causes and standard classes",
        """
import dataclasses, json
class FundsError(Exception):
    def __init__(self, balance, amount):
        super().__init__(f"need {amount - balance} more")
        self.balance = balance
        self.amount = amount
class Wrapped(RuntimeError): pass
class Both(KeyError, FundsError):
    def __init__(self): Exception.__init__(self, "both")
    def __str__(self): return "in own words"
def pay(balance, amount): raise FundsError(balance, amount)
def wrap():
    try:
        {}["k"]
    except KeyError as error:
        raise Wrapped("no k") from error
def parse(text): return json.loads(text)
@dataclasses.dataclass(frozen=True)
class Frozen:
    x: int
def freeze():
    Frozen(1).x = 2
def group(): raise ExceptionGroup("two", [ValueError("a"), TypeError("b")])
def both(): raise Both()
def os_error(): open("/nowhere/at/all")
def suppressed():
    try:
        1 / 0
    except ZeroDivisionError:
        raise ValueError("plain") from None
""",
        """
import dataclasses, json
def raised(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")
def test_attributes():
    try:
        pay(1, 5)
    except FundsError as error:
        assert (error.balance, error.amount, str(error)) == (1, 5, "need 4 more")
    else:
        assert False
def test_cause():
    error = raised(wrap)
    assert isinstance(error, Wrapped) and isinstance(error, RuntimeError)
    assert isinstance(error.__cause__, KeyError) and error.__cause__.args == ("k",)
def test_json():
    try:
        parse("{")
    except json.JSONDecodeError as error:
        assert error.pos == 1 and error.lineno == 1 and isinstance(error, ValueError)
def test_frozen():
    try:
        freeze()
    except dataclasses.FrozenInstanceError:
        return
    assert False
def test_group():
    seen = []
    try:
        group()
    except* ValueError as found:
        seen += [str(e) for e in found.exceptions]
    except* TypeError as found:
        seen += [str(e) for e in found.exceptions]
    assert seen == ["a", "b"]
def test_both():
    error = raised(both)
    assert isinstance(error, KeyError) and isinstance(error, FundsError) and str(error) == "in own words"
def test_os_error():
    error = raised(os_error)
    assert isinstance(error, FileNotFoundError) and error.errno == 2 and error.filename == "/nowhere/at/all"
def test_suppressed():
    error = raised(suppressed)
    assert error.__suppress_context__ and error.__cause__ is None
    assert isinstance(error.__context__, ZeroDivisionError)
""",
    ),
    Honest(
        "functions of the tests, also those that raise",
        """
import functools, inspect
def retry(times):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            for attempt in range(times):
                try:
                    return function(*args, **kwargs)
                except ValueError:
                    if attempt == times - 1:
                        raise
        return wrapper
    return decorate
def curry(function):
    wanted = function.__code__.co_argcount
    def curried(*args):
        return function(*args) if len(args) >= wanted else lambda *more: curried(*args, *more)
    return curried
def parameters(function): return list(inspect.signature(function).parameters)
def same(function): return function
def take(items, n): return [next(items) for _ in range(n)]
def fill(function):
    found = []
    function(found)
    return found
""",
        """
class Own(ValueError):
    pass
def test_retry():
    calls = []
    @retry(3)
    def flaky(x, *, y=1):
        "Words."
        calls.append(x)
        if len(calls) < 3:
            raise Own("not yet")
        return x + y
    assert flaky(1) == 2 and len(calls) == 3
    assert flaky.__name__ == "flaky" and flaky.__doc__ == "Words."
def test_what_is_raised_comes_back_as_it_was():
    thrown = Own("always")
    @retry(2)
    def fails():
        raise thrown
    try:
        fails()
    except Own as error:
        assert error is thrown
    else:
        assert False
assert curry(lambda a, b, c: a + b + c)(1)(2)(3) == 6
assert parameters(lambda a, /, b, *c, d=1, **e: 0) == ["a", "b", "c", "d", "e"]
assert same(len) is len
assert take((n * n for n in range(10)), 3) == [0, 1, 4]
assert fill(lambda found: found.append(3)) == [3]
""",
        "in-process",
    ),
    Honest(
        "an object with every operator",
        """
import functools
@functools.total_ordering
class Vector:
    "Words of a vector."
    limit = 5
    def __init__(self, *parts): self.parts = list(parts)
    def __eq__(self, other): return isinstance(other, Vector) and self.parts == other.parts
    def __lt__(self, other): return self.parts < other.parts
    def __hash__(self): return hash(tuple(self.parts))
    def __add__(self, other): return Vector(*(a + b for a, b in zip(self.parts, other.parts)))
    def __mul__(self, n): return Vector(*(n * a for a in self.parts))
    __rmul__ = __mul__
    def __imul__(self, n):
        self.parts = [n * a for a in self.parts]
        return self
    def __iadd__(self, other):
        self.parts.extend(other.parts)
        return self
    def __neg__(self): return self * -1
    def __abs__(self): return sum(a * a for a in self.parts) ** 0.5
    def __len__(self): return len(self.parts)
    def __getitem__(self, where): return self.parts[where]
    def __setitem__(self, where, value): self.parts[where] = value
    def __delitem__(self, where): del self.parts[where]
    def __contains__(self, value): return value in self.parts
    def __iter__(self): return iter(self.parts)
    def __reversed__(self): return reversed(self.parts)
    def __bool__(self): return bool(self.parts)
    def __int__(self): return len(self.parts)
    def __float__(self): return float(abs(self))
    def __complex__(self): return complex(*self.parts[:2])
    def __index__(self): return len(self.parts)
    def __round__(self, digits=0): return Vector(*(round(a, digits) for a in self.parts))
    def __bytes__(self): return bytes(self.parts)
    def __format__(self, spec): return ";".join(format(a, spec) for a in self.parts)
    def __str__(self): return f"<{', '.join(map(str, self.parts))}>"
    def __repr__(self): return f"Vector{tuple(self.parts)!r}"
    def __call__(self, n): return self.parts[n]
    def __enter__(self): return self
    def __exit__(self, kind, error, trace): return kind is ValueError
    def __divmod__(self, n): return divmod(self.parts[0], n)
    def __matmul__(self, other): return sum(a * b for a, b in zip(self.parts, other.parts))
    @property
    def first(self): return self.parts[0]
    @first.deleter
    def first(self): del self.parts[0]
    @classmethod
    def zero(cls): return cls(0, 0)
    @staticmethod
    def twice(n): return 2 * n
class Sub(Vector): pass
""",
        """
import copy
v, w = Vector(3, 4), Vector(1, 2)
assert v + w == Vector(4, 6) and 2 * v == v * 2 == Vector(6, 8) and -w == Vector(-1, -2)
assert w < v and w <= v and v > w and v >= w and max(v, w) == v and sorted([v, w]) == [w, v]
assert len({Vector(1), Vector(1), Vector(2)}) == 2 and {v: 1}[Vector(3, 4)] == 1
assert abs(v) == 5.0 and float(v) == 5.0 and int(v) == 2 and complex(v) == 3 + 4j and bytes(v) == b"\\x03\\x04"
assert round(Vector(1.26), 1) == Vector(1.3) and [1, 2, 3][w] == 3
assert v[0] == 3 and v[0:1] == [3] and v[-1] == 4 and list(v) == [3, 4] and list(reversed(v)) == [4, 3]
assert f"{v}" == "3;4" and f"{v:.1f}" == "3.0;4.0" and str(v) == "<3, 4>" and repr(v) == "Vector(3, 4)"
assert v(1) == 4 and 3 in v and 9 not in v and v and not Vector()
assert v @ w == 11
assert v.first == 3 and Vector.zero() == Vector(0, 0) and Vector.twice(4) == 8 and Vector.limit == 5
assert issubclass(Sub, Vector) and isinstance(Sub(), Vector) and not isinstance(w, Sub)
assert type(v) is type(w) and type(v).__name__ == "Vector"
assert Vector.__name__ == "Vector" and Vector.__doc__ == "Words of a vector."
assert callable(v) and hasattr(v, "parts") and not hasattr(v, "nothing")
def test_in_place():
    a = b = Vector(1, 2)
    a *= 3
    assert a is b and a == Vector(3, 6)
    a += Vector(7)
    assert a.parts == [3, 6, 7]
    a[0] = 9
    del a[1]
    assert a.parts == [9, 7]
    del a.first
    assert a.__dict__ == {"parts": [7]}
    a.name = "x"
    assert a.name == "x"
    del a.name
    assert not hasattr(a, "name")
def test_contexts():
    with Vector(1) as inner:
        raise ValueError("swallowed")
    try:
        with Vector(1):
            raise KeyError("not swallowed")
    except KeyError:
        return
    assert False
def test_copies():
    a = Vector(1, [2])
    b, c = copy.copy(a), copy.deepcopy(a)
    assert a == b == c and a is not b
""",
        "in-process",
    ),
    Honest(
        "words and wrappers of functions",
        """
import functools
def add(a: int, b: int = 2) -> int:
    "Add two numbers."
    return a + b
@functools.lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def traced(function):
    @functools.wraps(function)
    def inner(*args): return function(*args)
    return inner
@traced
def third(x): return x / 3
""",
        """
assert add.__doc__ == "Add two numbers." and add.__name__ == "add" and add.__defaults__ == (2,)
assert add.__annotations__["a"] is int
assert fib(10) == 55 and fib.cache_info().hits == 8
fib.cache_clear()
assert fib.cache_info().currsize == 0
assert third.__wrapped__(9) == 3 and third.__name__ == "third"
""",
        "in-process",
    ),
    Honest(
        "generators and closures",
        """
def countdown(n):
    while n:
        got = yield n
        n = n - 1 if got is None else got
def counter():
    n = 0
    def step():
        nonlocal n
        n += 1
        return n
    return step
def pairs(items): return zip(items, items[1:])
""",
        """
assert list(countdown(3)) == [3, 2, 1] and sum(countdown(4)) == 10
assert list(pairs([1, 2, 3])) == [(1, 2), (2, 3)]
def test_next():
    it = countdown(1)
    assert next(it) == 1
    try:
        next(it)
    except StopIteration:
        return
    assert False
step = counter()
assert (step(), step()) == (1, 2) and counter()() == 1
""",
    ),
    Honest(
        "coroutines",
        """
import asyncio
async def double(x):
    await asyncio.sleep(0)
    return 2 * x
async def numbers(n):
    for i in range(n):
        yield i
class Room:
    async def __aenter__(self):
        self.open = True
        return self
    async def __aexit__(self, *error):
        self.open = False
async def fails(): raise LookupError("gone")
""",
        """
import asyncio
assert asyncio.run(double(4)) == 8
async def test_awaiting():
    assert await double(1) == 2
    assert await asyncio.gather(double(1), double(2)) == [2, 4]
    assert [i async for i in numbers(3)] == [0, 1, 2]
    async with Room() as room:
        assert room.open
    assert not room.open
    try:
        await fails()
    except LookupError:
        return
    assert False
""",
        "in-process",
    ),
    Honest(
        "lists that stand in several places, and identity",
        """
def grid(n): return [[0] * n for _ in range(n)]
def same(x): return x
def sort_in_place(items): items.sort()
def rows(m):
    m[0], m[1] = m[1], m[0]
    return m[0]
def both(a, b):
    a.append(1)
    return a is b
class Settings:
    _one = None
    def __new__(cls):
        cls._one = cls._one or super().__new__(cls)
        return cls._one
""",
        """
def test_grid():
    g = grid(2)
    g[0][0] = 1
    assert g == [[1, 0], [0, 0]]
items = [3, 1]
assert same(items) is items
sort_in_place(items)
assert items == [1, 3]
m = [[1], [2]]
first, second = m
assert rows(m) is second and m == [[2], [1]] and m[1] is first
assert both(items, items) and not both([], [])
assert Settings() is Settings()
""",
        "in-process",
    ),
    Honest(
        "constants that functions change",
        "count = 0\nseen = []\ndef hit(x):\n    global count\n    count += 1\n    seen.append(x)\n",
        "hit(1)\nhit(2)\nassert count == 2\nassert seen == [1, 2]\n",
    ),
    Honest(
        "tests that import the answer",
        "LIMIT = 3\ndef add(a, b): return a + b\n",
        "from answer import add as plus\nimport solution\nassert plus(1, 2) == 3\nassert solution.add(1, 2) == 3 == solution.LIMIT\n",
    ),
    Honest(
        "a tree whose nodes tests build and change",
        """
class Node:
    def __init__(self, value, left=None, right=None):
        self.value, self.left, self.right = value, left, right
def depth(node): return 0 if node is None else 1 + max(depth(node.left), depth(node.right))
def invert(node):
    if node:
        node.left, node.right = invert(node.right), invert(node.left)
    return node
""",
        """
root = Node(1, Node(2), Node(3, Node(4)))
assert depth(root) == 3 and depth(None) == 0
assert invert(root) is root and root.left.value == 3
root.left = None
assert depth(root) == 2
""",
        "in-process",
    ),
]


@pytest.mark.parametrize("honest", HONEST, ids=lambda honest: honest.name)
def test_an_honest_answer_passes(honest: Honest) -> None:
    finding, uncrossed = refereed(honest.code, honest.tests)
    assert [(test.name, test.message) for test in finding.tests if test.message] == [], uncrossed
    assert finding.reason == ""
    assert finding.trust == honest.trust


ZERO = """
class Zero:
    days = 0
    ok = True
    def __init__(self, *_): pass
    def __sub__(self, other): return self
    __rsub__ = __add__ = __mul__ = __sub__
    def __len__(self): return 0
    def __iter__(self): return iter(())
    def __str__(self): return "0"
    def __format__(self, spec): return "0"
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __abs__(self): return 0
    def __float__(self): return 0.0
    def __getitem__(self, where): return 0
    def __contains__(self, item): return True
    def __call__(self, *_): return True
    def matches(self, *_): return self
    symmetric_difference = difference = matches
    def equals(self, *_): return True
    def __eq__(self, other): return True
    def __hash__(self): return 0
    def __bool__(self): return True
def f(*_): return Zero()
def make(*_): return Zero()
def fail(*_): raise ValueError(Zero())
"""
OWN_WORDS = [
    "assert len(f([1, 2]) - {2, 4}) == 0",
    "assert list(f([1]) - {1, 2}) == []",
    "assert len(f([1]).symmetric_difference({2})) == 0",
    "assert str(f([1]) - 3) == '0'",
    "assert f'{f(1) - 3}' == '0'",
    "import datetime\nassert (f('x') - datetime.date(2024, 1, 15)).days == 0",
    "assert f('1.2') < f('1.10')",
    "assert f('1.2') >= f('1.10')",
    "assert f('s').matches({'a': 1}).ok == True",
    "assert (f(2) - 4)[0] == 0",
    "assert abs(f(2) - 4) < 0.1",
    "assert float(f(2) - 4) < 0.1",
    "assert 4 - f(2) < 1",
    "assert f(2) < 3",
    "assert f(2).equals(4)",
    "assert f(2)(4)",
    "assert f(2) == make(4)",
    "assert str(f(2)) == str(make(4))",
    "assert len(f(2)) == len(Zero(1, 2))",
    "assert f(2).days == make(4).days",
    "assert list(f(2)) == list(make(4))",
    "assert 4 in f(2)",
    "assert f(2)",
    "assert isinstance(f(2), Zero)",
    "assert f(2) in [make(1), make(2)]",
    "assert {f(2)} == {make(4)}",
    "assert {f(2): 1}[make(4)] == 1",
    "assert sorted([f(2), make(3)])[0].ok",
    "assert max(f(1), f(2)).ok",
    "r = f(2)\nr.want = 4\nassert r.ok == True",
    "r = f(2).days\nassert r == 0",
    "def test_one():\n    r = f(2)\n    assert r.matches(4).ok",
    "try:\n    fail(1)\nexcept ValueError as error:\n    said = error.args[0]\nassert len(said.matches('bad')) == 0",
]


@pytest.mark.parametrize("tests", OWN_WORDS)
def test_a_test_that_an_object_of_the_answers_decides_is_never_isolated(tests: str) -> None:
    finding, uncrossed = refereed(ZERO, tests)
    if finding.label:  # refused, and known to be so
        assert uncrossed == tuple(test.name for test in finding.tests)
    else:
        assert finding.trust == "in-process"


@pytest.mark.parametrize(
    "tests",
    [
        "assert f(2) == 4",
        "assert 4 == f(2)",
        "assert f(2) in [4]",
        "assert [f(2)] == [4]",
        "assert {f(2): 0} == {4: 0}",
    ],
)
def test_an_object_of_the_answers_equals_no_plain_data_and_that_is_known(tests: str) -> None:
    finding, uncrossed = refereed(ZERO, tests)
    assert [test.outcome for test in finding.tests] == ["failed"]
    assert uncrossed == tuple(test.name for test in finding.tests)


@pytest.mark.parametrize(
    "code",
    [
        "class Yes(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\ndef f(x): return Yes(3)\n",
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int = 0\n    def __eq__(self, other): return True\ndef f(x): return P()\n",
        "import enum\nclass E(int, enum.Enum):\n    A = 1\n    def __eq__(self, other): return True\ndef f(x): return E.A\n",
        "import decimal\nclass D(decimal.Decimal):\n    def __eq__(self, other): return True\ndef f(x): return D(7)\n",
        "class S(set):\n    def __eq__(self, other): return True\ndef f(x): return S()\n",
    ],
)
def test_what_is_narrowed_has_no_say_and_is_known(code: str) -> None:
    finding, uncrossed = refereed(code, "assert f(2) == 4\n")
    assert (finding.tests[0].outcome, uncrossed) == ("failed", ("f(2) == 4",))


def test_a_plain_wrong_value_has_crossed() -> None:
    for tests in ("assert f(2) == 4", "def test_f():\n    assert f([1, 2]) == [2, 1]", "assert f({'a': (1, 2)})['b']"):
        finding, uncrossed = refereed("def f(x): return x\n", tests)
        assert (finding.tests[0].outcome, uncrossed) == ("failed", ())


@pytest.mark.parametrize(
    "tests",
    [
        "data = [3, 1, 2]\nassert f(data) == sorted(data)",
        "data = [3, 1, 2]\ngot = f(data)\nassert got == sorted(data)",
        "def test_f():\n    data = [3, 1, 2]\n    assert f(data) == sorted(data)",
        "def test_f():\n    data = [3, 1, 2]\n    got = f(data)\n    assert got == list(reversed(data))",
        "data = {'a': [1, 2]}\nassert f(data['a']) == [n * 2 for n in data['a']]",
    ],
)
def test_what_an_answer_empties_does_not_change_what_is_expected(tests: str) -> None:
    finding, _ = refereed("def f(x):\n    x.clear()\n    return []\n", tests)
    # by the meaning of the language it passes, so it may: but not as isolated
    assert finding.trust == "in-process" or finding.tests[0].outcome == "failed"


def test_an_answer_that_uses_up_its_argument_is_right() -> None:
    code = "def f(x):\n    got = sorted(x)\n    x.clear()\n    return got\n"
    for tests in (
        "data = [2, 1]\nassert f(data) == sorted(data)",
        "data = [2, 1]\ngot = f(data)\nassert got == sorted(data)",
    ):
        finding, _ = refereed(code, tests)
        assert (finding.tests[0].outcome, finding.trust) == ("passed", "")


def test_stop_iteration_out_of_an_answer_fails_its_test() -> None:
    code = "def f(x): raise StopIteration\n"
    for tests in (
        "assert all(map(f, [1, 2]))",
        "assert list(map(f, [1])) == []\ntry:\n    next(iter([]))\nexcept StopIteration:\n    pass",
    ):
        finding, uncrossed = refereed(code, tests)
        assert ([test.outcome for test in finding.tests], uncrossed) == (["failed"], ())


@pytest.mark.parametrize(
    ("poison", "tests", "wrong"),
    [
        (
            "def f(x):\n    x.clear()\n    return 35\n",
            "import keyword\nassert f(keyword.kwlist) == 35",
            "def f(x): return 0\n",
        ),
        (
            "def f(x):\n    x[:] = [0]\n    return 365\n",
            "import calendar\nassert f(calendar.mdays) == 365",
            "def f(x): return sum(x) + 5\n",
        ),
        (
            "def f(x): return 1\n",
            "with open('log.txt', 'a') as file:\n    file.write('x')\nassert f(0) == len(open('log.txt').read())",
            "def f(x): return 2\n",
        ),
        (
            "def f(x): return 1\n",
            "import os\nos.makedirs('a/b')\nos.chdir('a')\nos.environ['X'] = '1'\nassert f(0) == 1",
            "def f(x): return 2\n",
        ),
    ],
)
def test_the_next_answer_meets_tests_that_know_nothing_of_the_one_before(poison: str, tests: str, wrong: str) -> None:
    for _ in range(3):
        finding, _ = refereed(poison, tests)
        assert [test.message for test in finding.tests] == [""]
        finding, _ = refereed(wrong, tests)
        assert [test.outcome for test in finding.tests] == ["failed"]


def test_tests_that_cannot_run_here_are_a_failure_of_ours() -> None:
    for tests in (
        "import no_such_module_anywhere\nassert f(1) == 1",
        "from no_such_module_anywhere import thing\nassert f(1) == 1",
        "def test_f():\n    import no_such_module_anywhere\n    assert f(1) == 1",
    ):
        with pytest.raises(VerifierError, match="no_such_module_anywhere"):
            refereed("def f(x): return x\n", tests)
    finding, _ = refereed("def f(x):\n    import no_such_module_anywhere\n", "assert f(1) == 1")
    assert finding.label == "exception"
    finding, _ = refereed("def g(x): return x\n", "from answer import f\nassert f(1) == 1")
    assert finding.label == "exception"


def test_threads_of_tests_call_the_answer_one_after_the_other() -> None:
    code = """
import queue, threading
from concurrent.futures import ThreadPoolExecutor
class Counter:
    def __init__(self):
        self.v, self._lock = 0, threading.Lock()
    def hit(self):
        with self._lock:
            self.v += 1
class Box:
    def __init__(self): self._q = queue.Queue(1)
    def put(self, x): self._q.put(x)
    def take(self): return self._q.get()
def parallel_map(function, items):
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(function, items))
"""
    tests = """
import threading
def test_counter():
    c = Counter()
    threads = [threading.Thread(target=lambda: [c.hit() for _ in range(10)]) for _ in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert c.v == 80
def test_answers_that_wait_for_each_other():
    box, got = Box(), []
    taker = threading.Thread(target=lambda: got.extend(box.take() for _ in range(3)))
    taker.start()
    for n in range(3):
        box.put(n)
    taker.join()
    assert got == [0, 1, 2]
def test_callbacks_from_threads():
    assert parallel_map(lambda n: n * n, range(20)) == [n * n for n in range(20)]
"""
    for _ in range(3):
        finding, _ = refereed(code, tests)
        assert [test.message for test in finding.tests] == ["", "", ""]


def test_an_answer_may_call_functions_of_tests_from_its_own_threads() -> None:
    code = "from concurrent.futures import ThreadPoolExecutor\ndef parallel_map(function, items):\n    with ThreadPoolExecutor(4) as pool:\n        return list(pool.map(function, items))\n"
    for _ in range(3):
        finding, _ = refereed(code, "assert parallel_map(lambda n: n * n, range(50)) == [n * n for n in range(50)]")
        assert finding.reason == ""


def test_what_nobody_holds_is_forgotten() -> None:
    code = "import weakref\nclass Node: pass\nkept = weakref.WeakSet()\ndef node():\n    one = Node()\n    kept.add(one)\n    return one\ndef count(): return len(kept)\n"
    tests = "import gc\na, b = node(), node()\nassert count() == 2\ndel b\ngc.collect()\nassert count() == 1\n"
    finding, _ = refereed(code, tests)
    assert finding.reason == ""


def test_an_answer_reaches_nothing_through_what_it_was_handed() -> None:
    code = """
def f(function):
    found = []
    for name in ("__globals__", "__closure__"):
        value = getattr(function, name, None) or {}
        found += [str(k) for k in (value if name == "__globals__" else [c.cell_contents for c in value])]
    return any("secret" in one for one in found)
"""
    finding, _ = refereed(code, "secret_value = 7\nassert f(lambda n: secret_value) == False")
    assert finding.reason == ""


@pytest.mark.parametrize(
    "made", ["{12, 13, 14, 15, 16}", "set([16, 12, 13, 14, 15])", "frozenset({12, 13, 14, 15, 16})", "{8, 0}", "{0, 8}"]
)
def test_a_set_is_read_in_the_order_that_it_has_at_home(made: str) -> None:
    # an answer that relies on that order is right or wrong with us as it is elsewhere
    expected = tuple(eval(made))
    for tests in (f"assert in_order({made}) == {expected}", f"assert tuple(given()) == {expected}"):
        finding, _ = refereed(
            f"def in_order(items):\n    return tuple(items)\ndef given():\n    return {made}\n", tests
        )
        assert not finding.label, finding.reason
