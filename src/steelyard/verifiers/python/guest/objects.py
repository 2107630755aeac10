"""What the two sides have in common: objects that are not plain stay at home and are spoken of by a number.

Exceptions, named tuples and plain enumerations arrive as objects of a twin class: one with the same name, the same
fields and no code.
"""

from __future__ import annotations

import collections
import copy
import enum
import operator
import types
from abc import abstractmethod

from steelyard.verifiers.python.guest.values import (
    ValueDecoder,
    ValueEncoder,
    contents,
    default_factory,
    is_unchanged,
    refill,
    standard_exception,
    standard_exception_name,
)
from steelyard.verifiers.python.guest.wire import (
    MAX_EXCEPTION_CHARS,
    OversizedValueError,
    PeerGone,
    RpcPeer,
    UnsendableValueError,
    exception_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from steelyard.verifiers.python.guest.sharing import TrafficWatch

MAX_TWIN_BASES = 20
MAX_EXCEPTION_CHAIN = 8
"""How many causes of causes cross with an exception."""
MAX_TWIN_NAME_CHARS = 100
PLAIN_ENUM_VALUES = (int, str, float, bool, bytes, type(None))
GENERATED_CLASS_NAMES = frozenset(
    {
        *("__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__", "__dict__", "__doc__"),
        *("__firstlineno__", "__getnewargs__", "__getnewargs_ex__", "__match_args__", "__module__", "__new__"),
        *("__orig_bases__", "__qualname__", "__replace__", "__repr__", "__slots__", "__static_attributes__"),
        *("__weakref__", "_asdict", "_field_defaults", "_fields", "_make", "_replace", "__classcell__"),
    }
)
"""The attributes of every class of named tuples."""
FURTHER_STATE: tuple[tuple[type[BaseException], tuple[str, ...]], ...] = (
    (OSError, ("filename", "filename2")),
    (ImportError, ("name", "path")),
    (NameError, ("name",)),
    (AttributeError, ("name",)),
)
"""The attributes of built-in exceptions in addition to their arguments."""
FUNCTION_KINDS = frozenset({"builtin_function_or_method", "function", "type"})
"""Types of what is called, rather than looked at."""
ENUM_KINDS: tuple[type[enum.Enum], ...] = (enum.IntFlag, enum.Flag, enum.StrEnum, enum.IntEnum, enum.Enum)


class ObjectPeer(RpcPeer):
    """A side that keeps objects for the other one."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._kept: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._next_number = 0
        self._described: set[int] = set()
        """Classes of ours that the other side knows."""
        self._fresh: list[int] = []
        self._twins: dict[int, Any] = {}
        self.traffic: TrafficWatch | None = None
        self.always_describes = False
        """Whether messages of several threads may overtake each other."""
        self.withholds = False
        """Whether what the other side changes in its arguments stays there, unless it returns nothing else."""

    @abstractmethod
    def lend(self, thing: Any, encoder: ValueEncoder, depth: int) -> Any:
        """What the other side gets for something that is not plain; None where it gets the plain data in it."""

    @abstractmethod
    def borrow(self, mark: str, held: Any, decoder: ValueDecoder) -> Any:
        """What we get for something of the other side's."""

    @abstractmethod
    def note(self, printed: str, narrowed: bool, changed: list[tuple[Any, Any]]) -> None:
        """Take what came with a reply: what was printed, and the containers that are going to change."""

    def printed(self) -> str:
        """The output since the last report."""
        return ""

    def number(self, thing: Any) -> int:
        """The number of something of ours; it is kept from now on."""
        number = self._numbers.get(id(thing))
        if number is None:
            number = self._next_number
            self._next_number += 1
            self._numbers[id(thing)] = number
            self._kept[number] = thing
        return number

    def release(self, numbers: Iterable[int]) -> None:
        """Forget what the other side no longer speaks of."""
        for number in numbers:
            if number not in self._described:
                self._numbers.pop(id(self._kept.pop(number, None)), None)

    def request(self, deed: str, positional: Iterable[Any], named: dict[str, Any], *more: Any) -> Any:
        """Have the other side do something; returns its value, or raises its exception."""
        encoder = ValueEncoder(self.lend)
        try:
            given = [encoder.encode(value) for value in positional]
            by_name = [[name, encoder.encode(value)] for name, value in named.items()]
            self.sent(encoder)
            if self.traffic is not None:
                self.traffic.note_request(deed, given, by_name, encoder.containers)
            reply = self.ask(deed, given, by_name, *more)
        except (OversizedValueError, UnsendableValueError):
            self.note_refusal()
            raise
        if reply[:1] == ["refused"]:
            self.note_refusal()
        try:
            outcome, held, printed, narrowed, changes, *sharing = reply
            known = encoder.containers
            if changes and self.withholds and (outcome != "ok" or held is not None):
                # what is returned may be what was given, as it is now
                known = [copy.copy(container) for container in known]
            decoder = ValueDecoder(self.borrow, known)
            changed = [(decoder.containers[place], now) for place, now in changes]
            new_contents = [(container, decoder.content(container, now)) for container, now in changed]
            value = decoder.decode(held)
            if self.traffic is not None:
                self.traffic.note_reply(outcome, held, changes or narrowed, decoder.containers, len(known))
            self.note(str(printed), bool(narrowed), new_contents)
            for container, content in new_contents:
                refill(container, content)
            self.note_sharing(sharing, decoder.containers)
            self.note_exchange(encoder.containers, decoder.containers)
        except PeerGone:
            raise
        except Exception as error:
            raise self.gone(f"returned something that is not a value: {type(error).__name__}") from None
        if outcome == "ok":
            return value
        raise value if isinstance(value, BaseException) else RuntimeError("raised something that is not an exception")

    def sent(self, encoder: ValueEncoder) -> None:
        """Note what is sent."""

    def note_refusal(self) -> None:
        """Note that an error of ours takes the place of something that cannot cross."""

    def note_sharing(self, sharing: list[Any], containers: list[Any]) -> None:
        """Take what the other side says of the containers that have crossed."""

    def note_exchange(self, sent: list[Any], received: list[Any]) -> None:
        """Note the containers of one message and its reply."""

    def sharing(self, values: list[Any], ours: list[Any]) -> int:  # noqa: ARG002  for those who overwrite it
        """What this side has to say of the containers in what it was given and returns."""
        return 0

    def serve(self, operation: Callable[..., Any], given: list[Any], by_name: list[Any]) -> list[Any]:
        """Do something with what the other side gave; the reply."""
        decoder = ValueDecoder(self.borrow)
        positional = [decoder.decode(value) for value in given]
        named = {name: decoder.decode(value) for name, value in by_name}
        given_containers = list(decoder.containers)
        before = [contents(container) for container in given_containers]
        factories = list(map(default_factory, given_containers))
        del self._fresh[:]
        self.note_exchange([], given_containers)
        try:
            outcome, value = "ok", operation(*positional, **named)
        except PeerGone:
            raise
        except OversizedValueError as error:
            return self.refused(str(error))
        except BaseException as error:  # every exception is the result
            outcome, value = "raised", error
        ours = [positional, named, decoder.containers, given_containers, before, *before]
        sharing = self.sharing([value, *given_containers], ours)
        encoder = ValueEncoder(self.lend, decoder.containers)
        # the content of a dict goes back, and what makes its missing items does not
        encoder.narrowed = not all(map(operator.is_, map(default_factory, given_containers), factories))
        try:
            changes = []
            if not all(map(is_unchanged, given_containers, before)):
                changes = [[place, encoder.content(container)] for place, container in enumerate(given_containers)]
            try:
                held = encoder.whole(value)
            except PeerGone:
                raise
            except Exception as error:
                if isinstance(error, OversizedValueError):
                    raise
                if isinstance(error, UnsendableValueError):
                    self.note_refusal()
                outcome, held = "raised", encoder.encode(error)
        except OversizedValueError as error:
            return self.refused(str(error))
        self.note_exchange(encoder.containers, [])
        return [outcome, held, self.printed(), encoder.narrowed, changes, sharing]

    def refused(self, why: str) -> list[Any]:
        self._described.difference_update(self._fresh)
        held = {"x": [{"X": "ValueError"}, [str(why)], [], f"ValueError: {why}", None, None, False]}
        # in one process it would have arrived
        return ["refused", held, self.printed(), True, []]

    def described(self, kind: type, describe: Callable[[], list[Any]]) -> dict[str, Any]:
        """A class of ours, with what the other side must know of it the first time."""
        number = self.number(kind)
        if number in self._described and not self.always_describes:
            return {"k": [number]}
        description = describe()
        self._described.add(number)
        self._fresh.append(number)
        return {"k": [number, *description]}

    def twin(self, held: list[Any], make: Callable[..., Any], kinds: tuple[type, ...]) -> Any:
        """Our class for one of the other side's; the number of another kind of class is not a value."""
        number, *description = held
        if number not in self._twins:
            self._twins[number] = made = make(*description)
            _TWIN_NUMBERS[id(made)] = number
        return class_of_kind(self._twins[number], kinds)

    def lent_exception(self, error: BaseException, encoder: ValueEncoder, depth: int) -> dict[str, Any]:
        """An exception: its class, its arguments and attributes, its words and its causes."""
        kind = self.lent_exception_class(type(error), encoder)
        try:
            arguments = encoder.whole(list(error.args), depth + 1)
        except (OversizedValueError, TypeError, ValueError):
            arguments, encoder.narrowed = encoder.whole([]), True
        state = []
        more = {
            name: getattr(error, name, None)
            for kind, names in FURTHER_STATE
            if isinstance(error, kind)
            for name in names
        }
        known = {name: value for name, value in more.items() if value is not None}
        for name, value in {**known, **getattr(error, "__dict__", {})}.items():
            if isinstance(name, str) and name != "said":
                try:
                    state.append([name, encoder.whole(value, depth + 1)])
                except (OversizedValueError, TypeError, ValueError):
                    encoder.narrowed = True
        causes = [
            self.lent_exception(cause, encoder, depth + 1)
            if cause is not None and depth < MAX_EXCEPTION_CHAIN
            else None
            for cause in (error.__cause__, error.__context__)
        ]
        return {"x": [kind, arguments, state, exception_text(error), *causes, bool(error.__suppress_context__)]}

    def lent_exception_class(self, kind: type, encoder: ValueEncoder) -> dict[str, Any]:
        """A class of exceptions: those that everyone knows by name, ours by number with what they are made from."""
        if id(kind) in _TWIN_NUMBERS:
            return {"K": _TWIN_NUMBERS[id(kind)]}
        name = standard_exception_name(kind)
        if name:
            return {"X": name}
        encoder.narrowed = True

        def describe() -> list[Any]:
            bases = [base for base in kind.__bases__ if issubclass(base, BaseException)]
            return [kind.__name__, [self.lent_exception_class(base, encoder) for base in bases]]

        return {"kx": self.described(kind, describe)["k"]}

    def borrowed_exception_class(self, mark: str, held: Any) -> type[BaseException]:
        """Our class for an exception of the other side's."""
        if mark == "X":
            return standard_exception(str(held))
        if mark == "K":
            kind: type[BaseException] = class_of_kind(self._kept[held], (BaseException,))
            return kind

        def make(name: str, bases: list[Any]) -> type[BaseException]:
            if len(bases) > MAX_TWIN_BASES:
                raise ValueError("too many base classes")
            above = tuple(self.borrowed_exception_class(*item) for base in bases for item in base.items())
            return type(
                str(name)[:MAX_TWIN_NAME_CHARS], above or (Exception,), {"__str__": said_by, "__module__": "answer"}
            )

        made: type[BaseException] = self.twin(held, make, (BaseException,))
        return made

    def borrowed_exception(self, held: list[Any], decoder: ValueDecoder) -> BaseException:
        """An exception that says what the other side's says."""
        kind, arguments, state, text, cause, context, suppressed = held
        ((mark, name),) = kind.items()
        error = made_exception(self.borrowed_exception_class(mark, name), decoder.decode(arguments))
        for attribute, value in state:
            if not attribute.startswith("__") or attribute == "__notes__":
                setattr(error, attribute, decoder.decode(value))
        # never empty: nothing to say must not look like nothing wrong
        error.__dict__["said"] = str(text)[:MAX_EXCEPTION_CHARS] or "an exception without words"
        error.__cause__ = None if cause is None else self.borrowed_exception(cause["x"], decoder)
        error.__context__ = None if context is None else self.borrowed_exception(context["x"], decoder)
        error.__suppress_context__ = bool(suppressed)
        return error

    def lent_record(self, value: Any, encoder: ValueEncoder, depth: int) -> Any:
        """A named tuple or a member of an enumeration, with its class; None for anything else."""
        kind = type(value)
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            encoder.narrowed |= not is_plain_named_tuple(kind)
            # the class first: what is in a message is numbered in the order in which it is read
            named = self.lent_record_class(kind, encoder)
            return {"N": [named, [encoder.encode(item, depth) for item in tuple.__iter__(value)]]}
        if (
            isinstance(value, enum.Enum)
            and (is_plain_enum(kind) or id(kind) in _TWIN_NUMBERS)
            and type(value._value_) in PLAIN_ENUM_VALUES
        ):
            by_name = value._name_ in kind.__members__
            named = self.lent_record_class(kind, encoder)
            return {"E": [named, by_name, value._name_ if by_name else encoder.encode(value._value_)]}
        return None

    def lent_record_class(self, kind: Any, encoder: ValueEncoder) -> dict[str, Any]:
        """A class of named tuples or a plain enumeration."""
        if id(kind) in _TWIN_NUMBERS:
            return {"K": _TWIN_NUMBERS[id(kind)]}

        def describe() -> list[Any]:
            if issubclass(kind, tuple):
                defaults = [[name, encoder.encode(value)] for name, value in kind._field_defaults.items()]
                return [kind.__name__, "tuple", list(kind._fields), defaults]
            base = next(one for one in ENUM_KINDS if issubclass(kind, one)).__name__
            mixed = kind._member_type_.__name__ if base == "Enum" and kind._member_type_ is not object else ""
            members = [[name, encoder.encode(member.value)] for name, member in kind.__members__.items()]
            return [kind.__name__, base, mixed, members]

        return self.described(kind, describe)

    def borrowed_record_class(self, reference: dict[str, Any], decoder: ValueDecoder) -> Any:
        """Our class of named tuples, or our enumeration, for one of the other side's."""
        ((mark, held),) = reference.items()
        if mark == "K":
            return class_of_kind(self._kept[held], (tuple, enum.Enum))

        def make(name: str, base: str, more: Any, items: list[Any]) -> Any:
            pairs = [(str(key), decoder.decode(value)) for key, value in items]
            title = str(name)[:MAX_TWIN_NAME_CHARS]
            if base == "tuple":
                defaults = [dict(pairs)[field] for field in more if field in dict(pairs)]
                return collections.namedtuple(title, more, defaults=defaults, module="answer")
            # a name between underscores would give its class a method; one of nothing else is a member's
            if any(
                (key.strip("_") and key[:1] == key[-1:] == "_") or type(value) not in PLAIN_ENUM_VALUES
                for key, value in pairs
            ):
                raise ValueError("an enumeration with more than members")
            kind: Any = next(one for one in ENUM_KINDS if one.__name__ == base)
            mixed = {"": None, "str": str, "int": int, "float": float}[more]
            return kind(title, pairs, module="answer", **({"type": mixed} if mixed else {}))

        return self.twin(held, make, (tuple, enum.Enum))

    def borrowed_record(self, mark: str, held: list[Any], decoder: ValueDecoder) -> Any:
        """A named tuple or a member of an enumeration."""
        kind = self.borrowed_record_class(held[0], decoder)
        if mark == "E":
            return kind[held[2]] if held[1] else kind(decoder.decode(held[2]))
        return tuple.__new__(kind, [decoder.decode(item) for item in held[1]])


_TWIN_NUMBERS: dict[int, int] = {}
"""The classes of the other side that classes here represent, by the addresses of the latter, which are never collected."""


def class_of_kind(found: Any, kinds: tuple[type, ...]) -> Any:
    """A class that the other side named by its number, if it is of one of these kinds."""
    if not (isinstance(found, type) and issubclass(found, kinds)):
        raise ValueError("a number of something else")
    return found


def is_twin(kind: type) -> bool:
    """Whether a class represents one of the other side."""
    return id(kind) in _TWIN_NUMBERS


def said_by(error: BaseException) -> str:
    """The words of an exception whose class is another process's."""
    said = str(error.__dict__.get("said", ""))
    return said.removeprefix(type(error).__name__).removeprefix(": ")


def made_exception(kind: type[BaseException], arguments: list[Any]) -> BaseException:
    """An exception with these arguments, even if its class wants others."""
    try:
        return kind(*arguments)
    except Exception:
        made: BaseException = kind.__new__(kind, *arguments)
        made.args = tuple(arguments)
        return made


def is_plain_named_tuple(kind: Any) -> bool:
    """Whether a class of named tuples has only its fields."""
    own = {name for above in kind.__mro__ if above not in (tuple, object) for name in above.__dict__}
    return own <= {*GENERATED_CLASS_NAMES, *kind._fields}


def is_plain_enum(kind: type[enum.Enum]) -> bool:
    """Whether an enumeration has only members with plain values."""
    above = [one for one in kind.__mro__ if one not in (object, int, str, float, enum.ReprEnum, *ENUM_KINDS)]
    if above != [kind] or not kind.__members__:
        return False
    for value in vars(kind).values():
        function = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
        if isinstance(function, types.FunctionType) and function.__module__ == kind.__module__:
            return False
    return all(type(member._value_) in PLAIN_ENUM_VALUES for member in kind.__members__.values())
