"""Values as JSON carries them between the tests and the answer: plain data by value, everything else by a number.

A value arrives as what it says it is or not at all: there is no code in it. Lists and the like that are in several
places are sent once, so that what was one object is one object on the other side.
"""

from __future__ import annotations

import array
import base64
import builtins
import collections
import datetime
import math
import operator
import re
import sys
import types
from decimal import Decimal
from fractions import Fraction
from operator import is_  # its own: tests may be given another one in the module

from steelyard.verifiers.python.guest.wire import MAX_WIRE_MESSAGE_BYTES, OversizedValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

MAX_VALUE_DEPTH = 100
"""The maximum nesting of lists."""
MAX_VALUE_NODES = 8 << 20
"""The maximum number of values in one, counting repeated ones each time."""
MAX_SENT_CONTAINERS = 200_000
"""Tuples, and other containers, in one message: to write and read more takes seconds of the answer's time."""
MAX_PLAIN_KEYS = 500
"""Keys of dictionaries and items of sets, with what is in them, in a value that is compared outside of a sandbox: more of them could be chosen so that this takes for ever."""
MAX_PLAIN_DEPTH = 50
MAX_FLAT_CONTAINERS = 5000
HEX_INTEGER = re.compile("-?0x[0-9a-f]+")
FIRST_HEX_INTEGER = 1 << 63
"""Whole numbers from here on are written in hexadecimal: no limit on digits, and no quadratic conversion."""
TEXT_TYPES: dict[str, tuple[str, ...]] = {
    "decimal": ("Decimal",),
    "ipaddress": ("IPv4Address", "IPv4Interface", "IPv4Network", "IPv6Address", "IPv6Interface", "IPv6Network"),
    "pathlib": ("PosixPath", "PurePosixPath", "PureWindowsPath", "Path", "PurePath"),
    "uuid": ("UUID",),
    "zoneinfo": ("ZoneInfo",),
}
"""Standard classes whose objects are made again from their text."""
DATA_TYPES: dict[str, tuple[str, ...]] = {
    **TEXT_TYPES,
    "array": ("array",),
    "collections": ("ChainMap", "Counter", "OrderedDict", "UserDict", "UserList", "UserString", "defaultdict", "deque"),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone", "tzinfo"),
    "enum": ("Enum", "Flag", "IntEnum", "IntFlag", "StrEnum"),
    "fractions": ("Fraction",),
    "numbers": ("Complex", "Integral", "Number", "Rational", "Real"),
    "types": ("FunctionType", "GeneratorType", "MethodType", "NoneType", "SimpleNamespace"),
}
"""Standard classes that are the same on both sides."""
JSON_SCALARS = frozenset({str, int, float, bool, type(None)})
SINGLETONS = {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}
MODULES_WITH_EFFECTS = frozenset({"antigravity", "idlelib", "test", "this", "turtle", "turtledemo"})
"""Modules of the standard library that do something when they are imported."""


class ValueEncoder:
    """Writes one message; `lend` says what becomes of what is not plain, or None where that should be narrowed."""

    def __init__(self, lend: Callable[[Any, ValueEncoder, int], Any], known: Iterable[Any] = ()) -> None:
        self._lend = lend
        self.containers = list(known)
        """What both sides know by its place in this list; it must not be collected while its address is a key."""
        self._places = {id(container): place for place, container in enumerate(self.containers)}
        self._tuples = 0
        self._bytes = 0
        self.narrowed = False
        """Whether something arrives as the plain data it holds, without its own class."""

    def counted(self, value: Any, least: int) -> Any:
        """A value that needs at least these bytes; refused before it is written, which might take all of an answer's time."""
        if self._bytes + least > MAX_WIRE_MESSAGE_BYTES:
            raise OversizedValueError(f"more than {MAX_WIRE_MESSAGE_BYTES >> 20} MB")
        self._bytes += least
        return value

    def encode(self, value: Any, depth: int = 0) -> Any:
        """A value as JSON can carry it."""
        kind = type(value)
        if kind is str:
            return self.counted(value, len(value))
        if kind is bool or value is None:
            return value
        if kind is int:
            is_small = -FIRST_HEX_INTEGER < value < FIRST_HEX_INTEGER
            return value if is_small else {"i": hex(self.counted(value, value.bit_length() // 4))}
        if kind is float:
            if math.isfinite(value):
                return value
            # a list with a NaN equals another one only if both hold the same object
            self.narrowed |= math.isnan(value)
            return {"f": repr(value)}
        if depth > MAX_VALUE_DEPTH:
            raise OversizedValueError(f"nested deeper than {MAX_VALUE_DEPTH}")
        if kind is tuple:
            self._tuples += 1
            if self._tuples > MAX_SENT_CONTAINERS:
                raise OversizedValueError(f"more than {MAX_SENT_CONTAINERS} tuples")
            return {"t": [self.encode(item, depth + 1) for item in self.counted(value, 2 * len(value))]}
        if kind in CONTAINER_TAGS:
            return self._container(value, CONTAINER_TAGS[kind], depth + 1)
        writer = _WRITERS.get(kind)
        if writer is not None:
            return writer(self, value, depth + 1)
        return self._rarer(value, depth + 1)

    def whole(self, value: Any, depth: int = 0) -> Any:
        """A value as JSON can carry it; where that fails, nothing of it counts as sent."""
        known = len(self.containers)
        try:
            return self.encode(value, depth)
        except BaseException:
            for container in self.containers[known:]:
                del self._places[id(container)]
            del self.containers[known:]
            raise

    def _container(self, value: Any, tag: str, depth: int) -> Any:
        place = self._places.get(id(value))
        if place is not None:
            return {"=": place}
        if len(self.containers) > MAX_SENT_CONTAINERS:
            raise OversizedValueError(f"more than {MAX_SENT_CONTAINERS} containers")
        self._places[id(value)] = len(self.containers)
        self.containers.append(value)
        content = self.content(value, depth)
        if tag == "l":
            return content
        if tag in MADE_WITH:
            return {tag: [self.encode(getattr(value, MADE_WITH[tag]), depth), content]}
        return {tag: content}

    def content(self, value: Any, depth: int = 1) -> Any:
        """The current content of a container."""
        value = vars(value) if isinstance(value, types.SimpleNamespace) else value
        if isinstance(value, bytearray):
            return base64.b64encode(self.counted(value, len(value))).decode()
        # with the comma after each
        if isinstance(self.counted(value, 2 * len(value)), dict):
            return [[self.encode(key, depth), self.encode(item, depth)] for key, item in pairs_of(value)]
        if type(value) is list and self._is_plain_json(value):
            return value
        items = [*type(value).__iter__(value)]
        if isinstance(value, set):
            # one that was larger once may be read in an order that no copy has
            self.narrowed |= not fill_in_order(set(), items)
        return [self.encode(item, depth) for item in items]

    def _is_plain_json(self, items: list[Any]) -> bool:
        """Whether JSON carries each of these as it is; a quick look that may say no where a closer one would say yes."""
        kinds = set(map(type, items))
        if kinds <= {int, bool}:
            return not items or (min(items) > -FIRST_HEX_INTEGER and max(items) < FIRST_HEX_INTEGER)
        if kinds <= {str, bool, type(None)}:
            return bool(self.counted(items, sum([len(item) for item in items if type(item) is str])))
        return kinds == {float} and all(map(math.isfinite, items))

    def _rarer(self, value: Any, depth: int) -> Any:
        if isinstance(value, type):
            name = data_type_name(value)
            return {"type": name} if name else self._lend(value, self, depth)
        known = data_type_name(type(value))
        if known.partition(".")[0] in TEXT_TYPES:
            return _written_text(self, value, depth)
        if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
            is_plain_array = type(value).__name__ == "ndarray" and value.dtype.kind in "biufc"
            # flags such as `writeable` do not cross
            self.narrowed |= not is_plain_array or not (value.flags.carray and value.flags.owndata)
            items = self.encode(self.counted(value, 2 * value.size).tolist(), depth)
            return {"n": [str(value.dtype), items]} if isinstance(items, list) else items
        lent = self._lend(value, self, depth)
        if lent is not None:
            return lent
        self.narrowed = True
        for kind, narrow in _NARROWINGS:
            if isinstance(value, kind):
                return self.encode(narrow(value), depth)
        raise TypeError(f"{type(value).__name__} is not plain data")


class FlatEncoder(ValueEncoder):
    """Writes a container in full wherever it stands, for a reader that changes none."""

    def _container(self, value: Any, tag: str, depth: int) -> Any:
        if len(self.containers) > MAX_FLAT_CONTAINERS:
            raise OversizedValueError(f"more than {MAX_FLAT_CONTAINERS} containers")
        self._places.clear()
        return super()._container(value, tag, depth)


class ValueDecoder:
    """Reads one message; `borrow` resolves a reference of the other side."""

    def __init__(self, borrow: Callable[[str, Any, ValueDecoder], Any], known: Iterable[Any] = ()) -> None:
        self._borrow = borrow
        self.containers: list[Any] = list(known)
        self._sizes = [1] * len(self.containers)
        self._nodes = 0

    def decode(self, value: Any) -> Any:
        """The value that was encoded; raises ValueError, TypeError or LookupError for anything else."""
        self._nodes += 1
        if isinstance(value, list):
            return self.container([], value)
        if not isinstance(value, dict):
            return value
        ((tag, held),) = value.items()
        if tag == "t":
            return tuple([self.decode(item) for item in held])
        if tag == "d":
            return self.container({}, held)
        if tag == "=":
            return self._known(held)
        if tag in _READERS:
            return _READERS[tag](self, held)
        return self.borrow(tag, held)

    def borrow(self, tag: str, held: Any) -> Any:
        """What a reference of the other side stands for."""
        return self._borrow(tag, held, self)

    def container(self, made: Any, held: Any) -> Any:
        """A new container, filled."""
        # it is numbered before its items, which may refer to it
        place = len(self.containers)
        self.containers.append(made)
        self._sizes.append(1)
        before = self._nodes
        refill(made, self.content(made, held))
        self._sizes[place] = self._nodes - before + 1
        return made

    def content(self, container: Any, held: Any) -> Any:
        """What goes into a container: items, pairs of keys and items, or bytes."""
        if isinstance(container, (dict, types.SimpleNamespace)):
            return [(self.decode(key), self.decode(item)) for key, item in held]
        if isinstance(container, bytearray):
            return base64.b64decode(held)
        if JSON_SCALARS.issuperset(map(type, held)):
            self._nodes += len(held)
            return held
        return [self.decode(item) for item in held]

    def _known(self, place: int) -> Any:
        if not 0 <= place < len(self.containers):
            raise ValueError("a reference to nothing")
        self._nodes += self._sizes[place]
        if self._nodes > MAX_VALUE_NODES:
            raise OversizedValueError(f"more than {MAX_VALUE_NODES} values in one")
        return self.containers[place]


def is_plain(held: Any) -> bool:
    """Whether an encoded value is plain data through and through, and none that takes long to compare."""
    try:
        return _plain_key_count(held) <= MAX_PLAIN_KEYS
    except (ValueError, TypeError):
        return False


def _plain_key_count(held: Any, depth: int = 0, *, is_key: bool = False) -> int:
    """The number of values in keys and set items of an encoded value; raises ValueError for one that is more than plain data."""
    if type(held) in JSON_SCALARS:
        return is_key
    ((tag, inner),) = held.items() if type(held) is dict else (("t", held),)
    is_integer = tag == "i" and type(inner) is str and HEX_INTEGER.fullmatch(inner)
    if is_integer or (tag == "f" and inner in ("nan", "inf", "-inf")) or (tag == "b" and type(inner) is str):
        return is_key * (1 + len(inner) // 16)
    if tag not in ("t", "d", "s", "z") or type(inner) is not list or depth > MAX_PLAIN_DEPTH:
        raise ValueError("more than plain data")
    if tag == "t" and not is_key and JSON_SCALARS.issuperset(map(type, inner)):
        return 0
    keys, others = ([key for key, _ in inner], [item for _, item in inner]) if tag == "d" else (inner, [])
    parts = [*((one, is_key or tag != "t") for one in keys), *((one, is_key) for one in others)]
    return is_key + sum(_plain_key_count(one, depth + 1, is_key=is_part) for one, is_part in parts)


def refill(container: Any, content: Sequence[Any]) -> None:
    """Give a container another content; it stays the same object."""
    if isinstance(container, (list, bytearray)):
        container[:] = content
    elif isinstance(container, array.array):
        container[:] = array.array(container.typecode, content)
    elif isinstance(container, types.SimpleNamespace):
        container.__dict__.clear()
        container.__dict__.update(content)
    else:
        container.clear()
        if isinstance(container, dict):
            for key, item in content:
                container[key] = item
        elif isinstance(container, set):
            fill_in_order(container, content)
        else:
            container.extend(content)


def fill_in_order(container: set[Any], items: Sequence[Any]) -> bool:
    """Fill a set so that it is read in the order of the items, and say if that cannot be: the order shows how a set was made."""
    for source in _ways_to_fill(items):
        container.clear()
        container.update(source)
        if all(map(is_, container, items)):
            return True
    return False


def frozen_in_order(items: Sequence[Any]) -> frozenset[Any]:
    """A frozen set that is read in the order of the items where that can be."""
    made: frozenset[Any] = frozenset()
    for source in _ways_to_fill(items):
        made = frozenset(source)
        if all(map(is_, made, items)):
            break
    return made


def _written_frozen(encoder: ValueEncoder, value: Any, depth: int) -> Any:
    items = [*frozenset.__iter__(value)]
    encoder.narrowed |= not all(map(is_, frozen_in_order(items), items))
    return {"z": [encoder.encode(item, depth) for item in items]}


def _ways_to_fill(items: Sequence[Any]) -> Iterator[Iterable[Any]]:
    """The items in shapes from which sets of several layouts come, the likeliest first."""
    yield items
    yield frozenset(items)
    yield items[::-1]
    yield frozenset(items[::-1])
    yield dict.fromkeys(items)


def pairs_of(mapping: dict[Any, Any]) -> Iterable[tuple[Any, Any]]:
    """Keys and items in their order, by methods that no class of an answer's can replace."""
    ordered = collections.OrderedDict if isinstance(mapping, collections.OrderedDict) else dict
    return ordered.items(mapping)


def snapshot(container: Any) -> Any:
    """The content of a container, as `refill` takes it."""
    if isinstance(container, dict):
        return list(pairs_of(container))
    if isinstance(container, types.SimpleNamespace):
        return list(vars(container).items())
    return bytes(container) if isinstance(container, bytearray) else list(container)


def contents(container: Any) -> Any:
    """The objects in a container themselves, so that a change can be seen."""
    if isinstance(container, dict):
        ordered = collections.OrderedDict if isinstance(container, collections.OrderedDict) else dict
        return [*ordered.keys(container), *ordered.values(container), default_factory(container)]
    if isinstance(container, types.SimpleNamespace):
        return [*vars(container), *vars(container).values()]
    return bytes(container) if isinstance(container, (bytearray, array.array)) else list(container)


def default_factory(container: Any) -> Any:
    """What makes the missing items of a dict; None if nothing does, or this is none."""
    return container.default_factory if type(container) is collections.defaultdict else None


def is_unchanged(container: Any, before: Any) -> bool:
    """Whether a container still holds the very objects that it held."""
    now = contents(container)
    if type(now) is bytes:
        return bool(now == before)
    return len(now) == len(before) and all(map(operator.is_, now, before))


def data_type_name(kind: type) -> str:
    """The name of a class that is the same on both sides; empty for others."""
    known = _TYPE_NAMES.get(id(kind))
    if known is None:
        known = _TYPE_NAMES[id(kind)] = (kind, _found_type_name(kind))
    return known[1]


_TYPE_NAMES: dict[int, tuple[type, str]] = {}
"""By the address of a class, which is held so that no other can have it: its metaclass may be the answer's."""


def _found_type_name(kind: type) -> str:
    name: str = kind.__name__
    if getattr(builtins, name, None) is kind:
        return name
    for module, names in DATA_TYPES.items():
        if name in names and getattr(sys.modules.get(module), name, None) is kind:
            return f"{module}.{name}"
    return ""


def data_type(name: str) -> type:
    """The class of a name that `data_type_name` gave."""
    module, _, plain = name.rpartition(".")
    if module and plain not in DATA_TYPES.get(module, ()):
        raise ValueError(f"{name} is not a class of plain data")
    found = getattr(__import__(module) if module else builtins, plain)
    if not isinstance(found, type):
        raise TypeError(f"{name} is no type")
    return found


def standard_exception_name(kind: type) -> str:
    """Module and name of an exception that the language or its library defines; empty for others."""
    if getattr(builtins, kind.__name__, None) is kind:
        return str(kind.__name__)
    module = kind.__module__
    if module.partition(".")[0] in sys.stdlib_module_names and module in sys.modules:
        found: Any = sys.modules[module]
        for part in kind.__qualname__.split("."):
            found = getattr(found, part, None)
        if found is kind:
            return f"{module}:{kind.__qualname__}"
    return ""


def standard_exception(name: str) -> type[BaseException]:
    """The class of a name that `standard_exception_name` gave."""
    module, _, path = name.rpartition(":")
    found: Any = standard_module(module) if module else builtins
    for part in path.split("."):
        found = getattr(found, part)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        raise TypeError(f"{name} is not an exception")
    return found


def is_standard_module(module: types.ModuleType) -> bool:
    """Whether a module is one of the standard library, and so the same on both sides."""
    name = module.__dict__.get("__name__")
    return type(name) is str and sys.modules.get(name) is module and _names_standard_module(name)


def _names_standard_module(name: str) -> bool:
    first = name.partition(".")[0]
    is_program = name.rpartition(".")[2] == "__main__"
    return first in sys.stdlib_module_names and first not in MODULES_WITH_EFFECTS and not is_program


def standard_module(name: str) -> Any:
    """A module of the standard library."""
    if not _names_standard_module(name):
        raise ValueError(f"{name} is not a module of the standard library")
    __import__(name)
    return sys.modules[name]


def _written_view(encoder: ValueEncoder, value: memoryview, _: int) -> Any:
    # what is seen through it may change on one side only, and may be more than bytes
    encoder.narrowed |= not value.readonly or value.format != "B" or value.ndim != 1
    return {"mv": base64.b64encode(encoder.counted(value, value.nbytes).tobytes()).decode()}


def _moment(encoder: ValueEncoder, value: Any, depth: int) -> Any:
    """A date with a time, or a time, with its zone."""
    zone = value.tzinfo
    if zone is not None and type(zone) is not datetime.timezone and not data_type_name(type(zone)):
        encoder.narrowed = True
        offset = zone.utcoffset(value)
        zone = None if offset is None else datetime.timezone(offset)
    plain = value.replace(tzinfo=None, fold=0).isoformat()
    return {type(value).__name__: [plain, value.fold, encoder.encode(zone, depth)]}


def _read_moment(kind: Any) -> Any:
    def read(decoder: ValueDecoder, held: Any) -> Any:
        return kind.fromisoformat(held[0]).replace(fold=held[1], tzinfo=decoder.decode(held[2]))

    return read


def _written_text(encoder: ValueEncoder, value: Any, depth: int) -> Any:  # noqa: ARG001  every writer has the same shape
    return {"T": [data_type_name(type(value)), str(value)]}


def _read_text(decoder: ValueDecoder, held: Any) -> Any:  # noqa: ARG001  every reader has the same shape
    module, _, name = held[0].rpartition(".")
    if name not in TEXT_TYPES.get(module, ()):
        raise ValueError(f"{held[0]} is not made from text")
    return data_type(held[0])(held[1])


def _written_zone(encoder: ValueEncoder, value: datetime.timezone, depth: int) -> Any:
    return {"tz": [encoder.encode(part, depth) for part in value.__getinitargs__()]}  # type: ignore[attr-defined]


def _numpy_array(decoder: ValueDecoder, held: Any) -> Any:
    items = decoder.decode(held[1])
    try:
        import numpy
    except ImportError:
        return items
    kind = held[0] if all(character.isalnum() or character in "<>|=" for character in held[0]) else "object"
    return numpy.array(items, dtype=kind)


def _read_type(decoder: ValueDecoder, held: Any) -> Any:
    kind = data_type(held)
    # which exceptions the other side names may matter to whoever reads this
    return decoder.borrow("X", held) if issubclass(kind, BaseException) else kind


CONTAINER_TAGS: dict[type, str] = {
    list: "l",
    dict: "d",
    set: "s",
    collections.deque: "Q",
    bytearray: "B",
    collections.Counter: "C",
    collections.OrderedDict: "O",
    collections.defaultdict: "dd",
    types.SimpleNamespace: "ns",
    array.array: "ar",
}
"""Containers that can be changed: each is one object on both sides."""
MADE_WITH = {"Q": "maxlen", "dd": "default_factory", "ar": "typecode"}
"""The attribute that a container is made with."""
_WRITERS: dict[type, Callable[[ValueEncoder, Any, int], Any]] = {
    frozenset: _written_frozen,
    bytes: lambda encoder, value, _: {"b": base64.b64encode(encoder.counted(value, len(value))).decode()},
    complex: lambda encoder, value, _: {"c": [encoder.encode(value.real), encoder.encode(value.imag)]},
    range: lambda encoder, value, _: {"r": [encoder.encode(part) for part in (value.start, value.stop, value.step)]},
    slice: lambda encoder, value, depth: {
        "sl": [encoder.encode(part, depth) for part in (value.start, value.stop, value.step)]
    },
    memoryview: _written_view,
    type(Ellipsis): lambda _, __, ___: {"1": "Ellipsis"},
    type(NotImplemented): lambda _, __, ___: {"1": "NotImplemented"},
    collections.ChainMap: lambda encoder, value, depth: {"cm": [encoder.encode(one, depth) for one in value.maps]},
    Fraction: lambda _, value, __: {"F": [hex(value.numerator), hex(value.denominator)]},
    datetime.date: lambda _, value, __: {"date": value.isoformat()},
    datetime.datetime: _moment,
    datetime.time: _moment,
    datetime.timedelta: lambda _, value, __: {"delta": [value.days, value.seconds, value.microseconds]},
    datetime.timezone: _written_zone,
    Decimal: _written_text,
}
_NARROWINGS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (set, lambda value: set(set.__iter__(value))),
    (frozenset, lambda value: frozenset(frozenset.__iter__(value))),
    (collections.deque, lambda value: collections.deque(collections.deque.__iter__(value), value.maxlen)),
    (tuple, lambda value: tuple(tuple.__iter__(value))),
    (list, lambda value: list(list.__iter__(value))),
    (dict, lambda value: dict(pairs_of(value))),
    (str, lambda value: str.__getitem__(value, slice(None))[:]),
    (int, int.__index__),
    (float, float.__float__),
    (bytearray, lambda value: bytearray(bytearray.__iter__(value))),
    (bytes, lambda value: bytes(bytes.__iter__(value))),
    (complex, lambda value: complex(complex.real.__get__(value), complex.imag.__get__(value))),
    (Decimal, lambda value: Decimal(Decimal.__str__(value))),
    (Fraction, lambda value: Fraction(value.numerator, value.denominator)),
    (datetime.datetime, lambda value: datetime.datetime.fromisoformat(datetime.datetime.isoformat(value))),
    (datetime.date, lambda value: datetime.date.fromisoformat(datetime.date.isoformat(value))),
    (datetime.time, lambda value: datetime.time.fromisoformat(datetime.time.isoformat(value))),
    (datetime.timedelta, lambda value: datetime.timedelta(value.days, value.seconds, value.microseconds)),
)
"""The plain type that an object of a custom class is narrowed to, by methods that its class cannot replace."""
NARROWED_TYPES = tuple(kind for kind, _ in _NARROWINGS)
_READERS: dict[str, Callable[[ValueDecoder, Any], Any]] = {
    "i": lambda _, held: int(held, 16),
    "f": lambda _, held: float(held),
    "s": lambda decoder, held: decoder.container(set(), held),
    "Q": lambda decoder, held: decoder.container(collections.deque(maxlen=decoder.decode(held[0])), held[1]),
    "B": lambda decoder, held: decoder.container(bytearray(), held),
    "C": lambda decoder, held: decoder.container(collections.Counter(), held),
    "O": lambda decoder, held: decoder.container(collections.OrderedDict(), held),
    "dd": lambda decoder, held: decoder.container(collections.defaultdict(decoder.decode(held[0])), held[1]),
    "ns": lambda decoder, held: decoder.container(types.SimpleNamespace(), held),
    "z": lambda decoder, held: frozen_in_order([decoder.decode(item) for item in held]),
    "b": lambda _, held: base64.b64decode(held),
    "mv": lambda _, held: memoryview(base64.b64decode(held)),
    "c": lambda decoder, held: complex(*map(decoder.decode, held)),
    "r": lambda decoder, held: range(*map(decoder.decode, held)),
    "sl": lambda decoder, held: slice(*map(decoder.decode, held)),
    "1": lambda _, held: SINGLETONS[held],
    "ar": lambda decoder, held: decoder.container(array.array(held[0]), held[1]),
    "cm": lambda decoder, held: collections.ChainMap(*map(decoder.decode, held)),
    "F": lambda _, held: Fraction(int(held[0], 16), int(held[1], 16)),
    "date": lambda _, held: datetime.date.fromisoformat(held),
    "datetime": _read_moment(datetime.datetime),
    "time": _read_moment(datetime.time),
    "delta": lambda _, held: datetime.timedelta(*held),
    "tz": lambda decoder, held: datetime.timezone(*map(decoder.decode, held)),
    "T": _read_text,
    "n": _numpy_array,
    "type": _read_type,
}
