"""Honest answers with ordinary tests pass in a process of their own, and what could not cross is known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from steelyard.records import Case, Expectations, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.python.verifier import PythonVerifier, RefereedFinding

ROOM = ZygoteSandbox(strongest_isolation())
LOOP = asyncio.Runner()
VERIFIER = PythonVerifier(ROOM)


@pytest.fixture(scope="session", autouse=True)
def _closed() -> Iterator[None]:
    yield
    LOOP.run(VERIFIER.close())
    LOOP.run(ROOM.close())
    LOOP.close()


def refereed(code: str, tests: str, *, entry_point: str = "", timeout_secs: float = 20) -> RefereedFinding:
    case = Case(
        id="one",
        prompt="one",
        language="python",
        timeout_secs=timeout_secs,
        verify=Verify(entry_point=entry_point),
        expectations=Expectations(test_file=tests),
    )
    return LOOP.run(VERIFIER._refereed(case, VERIFIER._plan(case), code))


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
assert is_point(p) and is_point(Point(1))
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
assert divmod(v, 2) == (1, 1) and v @ w == 11
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
        "from answer import add as plus\nimport solution\nassert plus(1, 2) == 3\nassert solution.add(1, 2) == solution.LIMIT\n",
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
