"""The tests' end of the connection, and what tests have in their hands for objects of the answer's."""

from __future__ import annotations

import contextlib
import io
import sys
import types
import weakref

from steelyard.verifiers.python.guest.identity import IdentityWatch
from steelyard.verifiers.python.guest.objects import FUNCTION_KINDS, ObjectPeer, is_twin
from steelyard.verifiers.python.guest.sharing import IS_CHANGED, IS_KEPT, KeptContainers, TrafficWatch
from steelyard.verifiers.python.guest.values import NARROWED_TYPES, ValueEncoder, snapshot, standard_module
from steelyard.verifiers.python.guest.wire import (
    OversizedValueError,
    PeerGone,
    UnsendableValueError,
    exception_text,
    is_failed_assertion,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from steelyard.verifiers.python.guest.values import ValueDecoder

MAX_REFEREE_OUTPUT_CHARS = 64 << 10
MAX_STEP_PRINT_CHARS = 16 << 20
"""Characters of what is printed during one step that tests can look at."""
MAX_REFEREED_REQUESTS = 20_000
"""Requests after which tests run beside the answer: they take about a second of its time."""
CONVERSIONS = frozenset({"bytes", "ceil", "complex", "float", "floor", "index", "int", "round", "trunc"})
"""What makes plain data of an object: an ordinary result, as long as no plain data went into that object."""
ARITHMETIC = frozenset(
    {
        *("abs", "add", "and_", "divmod", "floordiv", "invert", "lshift", "matmul", "mod", "mul", "neg", "or_", "pos"),
        *("pow", "rshift", "sub", "truediv", "xor", "lt", "le", "gt", "ge"),
    }
)
"""Operations whose plain results are refused where plain data went in: beside the answer they are judged again."""
ITERATION = frozenset({"anext", "aiter", "await", "iter", "next"})
WORDS_OF_ENDING = {
    "StopIteration": frozenset({"StopIteration", "Exception", "BaseException"}),
    "StopAsyncIteration": frozenset({"StopAsyncIteration", "Exception", "BaseException"}),
    "CancelledError": frozenset({"CancelledError", "BaseException", "cancel", "return_exceptions"}),
}
"""Exceptions that end a loop or a task without failing it, and the words of tests that expect one."""
PLAIN_TYPES = (bool, bytes, complex, float, int, str, type(None))


class RefereePeer(ObjectPeer):
    """The tests' end of the connection."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self.traffic: TrafficWatch = TrafficWatch()
        self._handles: weakref.WeakValueDictionary[int, RemoteObject] = weakref.WeakValueDictionary()
        self._released: set[int] = set()
        self._callable: set[int] = set()
        self._iterators: set[int] = set()
        self.output: list[str] = []
        self.stdout = sys.stdout = io.StringIO()
        self._room = MAX_REFEREE_OUTPUT_CHARS
        self.own_word = False
        """Whether an object of the answer's had a say."""
        self.crossed = True
        """Whether every value so far crossed as plain data, and no other object was asked for anything."""
        self.stopped = ""
        """An exception of the answer's that looks as if there were no more to test, if one was raised."""
        self.keeps_arguments = False
        """Whether the answer may still change data from an earlier call, such as a list of the tests."""
        self._may_keep = False
        """Whether a call neither changed nor returned anything: what it was given may be kept for a later one."""
        self.requests = 0
        self.too_large: set[str] = set()
        """Names of the answer's constants that do not fit into a message."""
        self.changed: dict[int, tuple[Any, Any]] = {}
        """What the answer changed in place, by address, with what it held before."""
        self._shared = KeptContainers()
        self.is_diverged = False
        """Whether a list or the like that both sides hold is not the same on both any more."""
        self.catches_assertions = False
        """Whether the answer gave the tests a class of exceptions that their own failed assertions belong to."""
        self.caught: dict[int, str] = {}
        """Assertions of the tests that failed where the answer could catch that, by the number of what it had called."""
        self.asserting: frozenset[str] = frozenset()
        """Names of functions of the tests that assert something."""
        self._changes = 0
        self.give_up: Callable[[], None] = lambda: None
        """Ends the judging where only tests beside the answer can decide."""
        self.identities: IdentityWatch | None = None
        """Knows which object is which, where tests ask that."""
        self.altered = False
        self.drained = False
        """Whether a function that returned a value, or raised, changed what it was given."""

    def new_thread(self, number: int) -> int:
        return number

    def takes(self, thread: int) -> bool:
        return thread < 0

    def note(self, printed: str, narrowed: bool, changed: list[tuple[Any, Any]]) -> None:
        self.show(printed)
        if narrowed:
            self.crossed = False
        for container, content in changed:
            before = snapshot(container)
            if not is_same_content(before, content):
                self._changes += 1
                self.changed.setdefault(id(container), (container, before))

    def show(self, text: str) -> None:
        """Print what the answer printed, where the tests can see it."""
        if text:
            if sys.stdout is not self.stdout or self.stdout.tell() < MAX_STEP_PRINT_CHARS:
                sys.stdout.write(text)
            if self._room > 0:
                self.output.append(text[: self._room])
                self._room -= len(text)

    def sent(self, encoder: ValueEncoder) -> None:
        if encoder.narrowed:
            self.crossed = False

    def note_sharing(self, sharing: list[Any], containers: list[Any]) -> None:
        said = sharing[0] if sharing and type(sharing[0]) is int else 0
        if said & IS_CHANGED:
            self.is_diverged |= self._shared.is_any_held()
        if said & IS_KEPT:
            self._shared.add(containers)

    def watch_identity(self) -> IdentityWatch:
        """Note from now on what crosses, for tests that ask which object is which."""
        self.identities = IdentityWatch(is_own_object, self.note_refusal)
        return self.identities

    def note_exchange(self, sent: list[Any], received: list[Any]) -> None:
        if self.identities is not None:
            self.identities.note_exchange(sent, received)

    def settle(self) -> None:
        """Hear at the end whether the answer has changed something that the tests hold, too."""
        if self._shared and not self.lost:
            with contextlib.suppress(PeerGone, Exception):
                _, _, _, _, _, *sharing = self.ask("globals", [], [])
                self.is_diverged |= sharing[0] & IS_CHANGED != 0

    def summary(self) -> dict[str, bool]:
        """What is to be known about all that crossed, for the report."""
        crossed = {"data_only": self.traffic.is_data_only, "gave_containers": self.traffic.has_given_containers}
        return {"altered": self.altered, "drained": self.drained, "diverged": self.is_diverged, **crossed}

    def lend(self, thing: Any, encoder: ValueEncoder, depth: int) -> Any:
        if isinstance(thing, RemoteObject):
            return {"h": about(thing, "_number")}
        if isinstance(thing, BaseException):
            return {"hx": [self.number(thing), self.lent_exception(thing, encoder, depth)["x"]]}
        if isinstance(thing, type):
            if issubclass(thing, BaseException) or is_twin(thing):
                return self.lent_exception_class(thing, encoder)
            self.crossed = False
            raise UnsendableValueError(
                f"{thing.__name__} is a class of the tests, which cannot be handed to the answer"
            )
        record = self.lent_record(thing, encoder, depth)
        if record is not None or isinstance(thing, NARROWED_TYPES):
            return record
        self.crossed = False
        if hasattr(thing, "__next__"):
            self._iterators.add(self.number(thing))
            return {"iterator": self.number(thing)}
        if callable(thing):
            self._callable.add(self.number(thing))
            return {"callback": self._described_function(thing, encoder)}
        raise UnsendableValueError(f"{type(thing).__name__} is not plain data, and cannot be handed to the answer")

    def _described_function(self, function: Any, encoder: ValueEncoder) -> list[Any]:
        """A function of the tests, with what an answer can see of it."""
        words = [(name, getattr(function, name, None)) for name in ("__name__", "__qualname__", "__doc__")]
        said = [[name, value] for name, value in words if isinstance(value, str)]
        number = self.number(function)
        if type(function) is not types.FunctionType:
            return [number, said, None, None]
        try:
            positional = encoder.whole(list(function.__defaults__ or ()))
            named = encoder.whole(dict(function.__kwdefaults__ or {}))
        except (OversizedValueError, TypeError):
            return [number, said, None, None]
        return [number, said, signature_text(function), [positional, named]]

    def borrow(self, mark: str, held: Any, decoder: ValueDecoder) -> Any:
        if mark == "h":
            return self.handle(held)
        if mark == "x":
            return self.borrowed_exception(held, decoder)
        if mark in ("K", "X", "kx"):
            kind = self.borrowed_exception_class(mark, held)
            self.catches_assertions |= issubclass(AssertionError, kind)
            return kind
        if mark in ("N", "E"):
            return self.borrowed_record(mark, held, decoder)
        if mark == "kr":
            return self.borrowed_record_class(held, decoder)
        if mark == "home":
            return self._kept[held]
        if mark == "module":
            return standard_module(str(held))
        raise ValueError("an unknown mark")

    def handle(self, held: list[Any]) -> RemoteObject:
        """The handle of an object of the answer: always the same for the same object."""
        number, *kind = held
        self.crossed = False
        known = self._handles.get(number)
        if known is None:
            known = self.twin(kind, remote_class, (RemoteObject,))(self, int(number))
            self._handles[number] = known
            self._released.discard(number)
        return known

    def forget(self, number: int) -> None:
        """Note that the tests have nothing left for an object of the answer's."""
        self._released.add(number)

    def perform(self, request: list[Any]) -> list[Any]:
        """Do what an answer asks with something that a test handed over."""
        deed, given, by_name, number = request
        self.count_request()
        if deed == "next" and number in self._iterators:
            self.drained = True
            return self.serve(self._watched(number, lambda: next(self._kept[number])), [], [])
        if deed == "call" and number in self._callable:
            return self.serve(self._watched(number, self._kept[number]), given, by_name)
        raise self.gone("asked for something that it was not given")

    def _watched(self, number: int, function: Any) -> Any:
        """A function of the tests; we remember an assertion that fails in it until it is called again without that."""

        def call(*positional: Any, **named: Any) -> Any:
            try:
                value = function(*positional, **named)
            except BaseException as error:
                if is_failed_assertion(error):
                    self.caught[number] = exception_text(error)
                # what the answer handed over may have ended it before it came to its assertion
                self.own_word |= getattr(function, "__name__", "") in self.asserting
                raise
            self.own_word |= self.caught.pop(number, None) is not None
            return value

        return call

    def count_request(self) -> None:
        """Note that one side asks the other; beside the answer that takes a hundredth of the time."""
        self.requests += 1
        if self.requests > MAX_REFEREED_REQUESTS:
            self.note_refusal()

    def refused(self, why: str) -> list[Any]:
        self.note_refusal()
        return super().refused(why)

    def note_refusal(self) -> None:
        self.crossed = False
        # a test may have expected an error, or wait for what the answer was to do
        self.give_up()

    def do(self, deed: str, /, *operands: Any, **named: Any) -> Any:
        """Have the answer's side do something, and return the result."""
        self.count_request()
        self.keeps_arguments |= self._may_keep
        if deed != "call":
            self.crossed = False
        released = []
        if self._released and not self.always_describes:
            released, self._released = [list(self._released)], set()
        if self._shared and self._shared.take_changes():
            self.is_diverged = True
        before = self._changes
        if deed in ("exit", "aexit") and is_failed_assertion(operands[1]):
            self.caught[-1] = exception_text(operands[1])
        try:
            value = self.request(deed, operands, named, *released)
        except (OversizedValueError, UnsendableValueError):
            raise
        except BaseException as error:
            self.altered |= self._changes != before
            ending = next((above.__name__ for above in type(error).__mro__ if above.__name__ in WORDS_OF_ENDING), "")
            if ending == "CancelledError" or (deed not in ITERATION and not about(operands[0], "_helps")):
                self.stopped = self.stopped or ending
            raise
        self.altered |= self._changes != before and value is not None
        if deed == "call":
            self._weigh_call(operands, named, value)
        else:
            self._weigh(deed, operands, value)
        return value

    def _weigh_call(self, operands: tuple[Any, ...], named: dict[str, Any], value: Any) -> None:
        """Note whether what a call returned is the word of an object, rather than the result of a function."""
        function, *given = operands
        given += named.values()
        objects = [one for one in given if isinstance(one, RemoteObject) and not about(one, "_is_function")]
        is_object = not about(function, "_is_function") and not about(function, "_is_standard")
        has_word = about(function, "_helps") or is_object or bool(objects)
        containers = [one for one in given if not isinstance(one, (RemoteObject, tuple, *PLAIN_TYPES))]
        self.keeps_arguments |= isinstance(value, RemoteObject) and bool(containers)
        self._may_keep |= value is None and any(id(one) not in self.changed for one in containers)
        if isinstance(value, RemoteObject):
            mixes = about(function, "_kind") == "type" and bool(given)
            put(value, "_mixed", has_word or mixes or about(function, "_mixed"))
        elif value is not None and (has_word or about(function, "_mixed")):
            self.own_word = True

    def _weigh(self, deed: str, operands: tuple[Any, ...], value: Any) -> None:
        """Note whether an object of the answer's had a say."""
        remote = [one for one in operands if isinstance(one, RemoteObject)]
        is_plain = (
            deed in CONVERSIONS or (deed in ITERATION and all(about(one, "_is_standard") for one in remote))
        ) and not any(about(one, "_mixed") for one in remote)
        # unittest wants to know what a function is called before it calls it
        is_plain |= deed == "getattr" and operands[1] == "__name__" and about(operands[0], "_is_function")
        reckoned = deed in ARITHMETIC and is_mixed(operands)
        if reckoned and not isinstance(value, RemoteObject):
            # `abs(answer - 3) < 0.1` must not let the answer say what its distance from 3 is
            self.note_refusal()
            raise TypeError(
                f"{about(remote[0], '_kind')} is a class of the answer's own: what it makes of plain data is its own word"
            )
        if not is_plain:
            self.own_word = True
            for one in remote:
                put(one, "_mixed", not about(one, "_is_function"))
        if isinstance(value, RemoteObject):
            put(value, "_mixed", not is_plain)
            put(value, "_helps", True)
            put(value, "_reckoned", about(value, "_reckoned") or reckoned)

    def own(self, deed: str, *operands: Any) -> bool:
        """The answer's own yes or no about one of its objects."""
        claim: bool = self.do(deed, *operands) is True
        return claim


def is_mixed(operands: tuple[Any, ...]) -> bool:
    """Whether plain data, such as what a test expects, has a part in an operation on an object of the answer's."""
    return any(not isinstance(one, RemoteObject) or about(one, "_reckoned") for one in operands)


def is_own_object(thing: Any) -> bool:
    """Whether this is an object of the answer's, other than a function or a class."""
    return isinstance(thing, RemoteObject) and not about(thing, "_is_function")


about = object.__getattribute__
"""How to inspect a handle itself: any other way asks the object that it represents."""
put = object.__setattr__


class RemoteObject:
    """Something of the answer's that is not plain data; it stays there, and is asked."""

    __slots__ = ("__weakref__", "_helps", "_mixed", "_number", "_peer", "_reckoned")
    _kind = "object"
    _is_standard = False
    _is_function = False
    _has_own_equality = False

    def __init__(self, peer: RefereePeer, number: int) -> None:
        put(self, "_peer", peer)
        put(self, "_number", number)
        # whether plain data, such as what a test expects, went into it
        put(self, "_mixed", False)
        # whether it is the result of an operation with plain data
        put(self, "_reckoned", False)
        # whether it is not what is tested, but what a test asks about that: a method, another function of the answer's
        put(self, "_helps", False)

    def __del__(self) -> None:
        about(self, "_peer").forget(about(self, "_number"))

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return type(self)
        if name in ("__copy__", "__deepcopy__", "__mro_entries__"):
            return about(self, name)
        if name in ("__reduce_ex__", "__reduce__", "__getstate__"):
            about(self, "_peer").note_refusal()
            raise AttributeError(name)
        return about(self, "_peer").do("getattr", self, name)

    def __copy__(self) -> Any:
        return about(self, "_peer").do("copy", self)

    def __deepcopy__(self, memo: Any) -> Any:
        return about(self, "_peer").do("deepcopy", self)

    def __setattr__(self, name: str, value: Any) -> None:
        about(self, "_peer").do("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        about(self, "_peer").do("delattr", self, name)

    def __dir__(self) -> Any:
        return about(self, "_peer").do("dir", self)

    def __instancecheck__(self, instance: Any) -> bool:
        peer: RefereePeer = about(self, "_peer")
        if isinstance(instance, RemoteObject):
            return peer.own("isinstance", instance, self)
        kind = peer._twins.get(about(self, "_number"))
        return kind is not None and isinstance(instance, kind)

    def __subclasscheck__(self, kind: Any) -> bool:
        peer: RefereePeer = about(self, "_peer")
        return peer.own("issubclass", kind, self)

    def __mro_entries__(self, bases: Any) -> Any:
        about(self, "_peer").note_refusal()
        raise TypeError("a class of the answer's cannot be a base class of the tests'")

    def __eq__(self, other: object) -> Any:
        peer: RefereePeer = about(self, "_peer")
        if self is other:
            return True
        if isinstance(other, RemoteObject):
            if not about(self, "_has_own_equality") and not about(other, "_has_own_equality"):
                return False
            return peer.own("eq", self, other)
        # an object that claims to equal plain data would be its own judge; a test may also expect that it does not, or an error
        peer.crossed = False
        if about(self, "_has_own_equality") and not about(self, "_is_standard"):
            peer.note_refusal()
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(about(self, "_number"))

    def __bool__(self) -> bool:
        # no more than the answer could have said with a plain yes or no, but its own word all the same
        claim: bool = about(self, "_peer").own("truth", self)
        return claim

    def __repr__(self) -> str:
        claim = about(self, "_peer").do("repr", self)
        if not isinstance(claim, str):
            raise TypeError(f"{type(self).__name__} has no words for itself")
        return claim


class RemoteCoroutine(RemoteObject):
    """A coroutine of the answer's: it runs to its end when it is first awaited."""

    __slots__ = ()

    def send(self, _: Any) -> Any:
        raise StopIteration(about(self, "_peer").do("await", self))

    def throw(self, *error: Any) -> Any:
        raise error[0]

    def close(self) -> None:
        """There is nothing to clean up here."""

    def __await__(self) -> Any:
        return _awaited(self)

    def __getattribute__(self, name: str) -> Any:
        if name in ("send", "throw", "close"):
            return about(self, name)
        return RemoteObject.__getattribute__(self, name)


def _awaited(thing: RemoteObject) -> Any:
    """The coroutine that `await` runs: it ends without waiting here."""
    yield from ()
    return about(thing, "_peer").do("await", thing)


def _remote_method(deed: str) -> Any:
    def method(self: RemoteObject, /, *others: Any, **named: Any) -> Any:
        return about(self, "_peer").do(deed, self, *others, **named)

    return method


def _swapped_method(deed: str) -> Any:
    def method(self: RemoteObject, other: Any) -> Any:
        return about(self, "_peer").do(deed, other, self)

    return method


def _call(self: RemoteObject, *positional: Any, **named: Any) -> Any:
    return about(self, "_peer").do("call", self, *positional, **named)


def _unequal(self: RemoteObject, other: object) -> Any:
    if not isinstance(other, RemoteObject):
        return not RemoteObject.__eq__(self, other)
    return about(self, "_peer").own("ne", self, other)


def _exit(self: RemoteObject, kind: Any, error: Any, trace: Any) -> Any:  # noqa: ARG001  the shape of __exit__
    return about(self, "_peer").do("exit", self, error)


def _leave_later(self: RemoteObject, kind: Any, error: Any, trace: Any) -> Any:  # noqa: ARG001  the shape of __aexit__
    return about(self, "_peer").do("aexit", self, error)


SPECIAL_METHODS: dict[str, Any] = {
    f"__{name}__": _remote_method(name)
    for name in (
        *("iter", "next", "reversed", "len", "length_hint", "str", "format", "hash", "contains"),
        *("int", "float", "complex", "index", "bytes", "fspath", "round", "trunc", "floor", "ceil"),
        *("getitem", "setitem", "delitem", "neg", "pos", "abs", "invert", "enter", "aiter", "anext", "aenter"),
        *("lt", "le", "gt", "ge"),
    )
}
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "matmul", "lshift", "rshift", "pow", "divmod"):
    SPECIAL_METHODS[f"__{_name}__"] = _remote_method(_name)
    SPECIAL_METHODS[f"__r{_name}__"] = _swapped_method(_name)
    SPECIAL_METHODS[f"__i{_name}__"] = _remote_method(f"i{_name}")
for _name in ("and", "or", "xor"):
    _deed = _name if _name == "xor" else f"{_name}_"
    SPECIAL_METHODS[f"__{_name}__"] = _remote_method(_deed)
    SPECIAL_METHODS[f"__r{_name}__"] = _swapped_method(_deed)
    SPECIAL_METHODS[f"__i{_name}__"] = _remote_method(f"i{_name}")
SPECIAL_METHODS |= {
    "__call__": _call,
    "__ne__": _unequal,
    "__exit__": _exit,
    "__aexit__": _leave_later,
    "__await__": _awaited,
}


def remote_class(name: str, is_standard: Any, special: list[str]) -> type[RemoteObject]:
    """A class for handles of one class of the answer's: it can do what that can, by asking."""
    title = str(name)[:100]
    methods: dict[str, Any] = {each: SPECIAL_METHODS[each] for each in special if each in SPECIAL_METHODS}
    if "__hash__" not in special or "__eq__" not in special:
        methods.pop("__hash__", None)
    if "unhashable" in special:
        methods["__hash__"] = None
    elif "__hash__" not in methods:
        methods["__hash__"] = RemoteObject.__hash__
    methods |= {
        "__slots__": (),
        "__module__": "answer",
        "_kind": title,
        "_is_standard": bool(is_standard),
        "_is_function": title in FUNCTION_KINDS,
        "_has_own_equality": "__eq__" in special,
    }
    return type(title, (RemoteCoroutine if title == "coroutine" else RemoteObject,), methods)


def is_same_content(before: Any, now: Any) -> bool:
    """Whether a container holds what it held; what is not plain must be the same object."""
    return len(before) == len(now) and all(map(_is_same_item, before, now))


def _is_same_item(before: Any, now: Any) -> bool:
    if type(before) is tuple and type(now) is tuple:
        return is_same_content(before, now)
    return before is now or (type(before) is type(now) and type(now) in PLAIN_TYPES and bool(before == now))


def signature_text(function: types.FunctionType) -> list[str]:
    """The parameters of a function as they are written, and how it calls another one with them."""
    code = function.__code__
    names = list(code.co_varnames)
    positional, only = names[: code.co_argcount], names[code.co_argcount :][: code.co_kwonlyargcount]
    rest = names[code.co_argcount + code.co_kwonlyargcount :]
    first_default = len(positional) - len(function.__defaults__ or ())
    parameters = [name + ("=None" if place >= first_default else "") for place, name in enumerate(positional)]
    if code.co_posonlyargcount:
        parameters.insert(code.co_posonlyargcount, "/")
    arguments = list(positional)
    takes_all = bool(code.co_flags & 0x04)
    if takes_all:
        arguments.append("*" + rest.pop(0))
        parameters.append(arguments[-1])
    elif only:
        parameters.append("*")
    parameters += [name + ("=None" if name in (function.__kwdefaults__ or {}) else "") for name in only]
    arguments += [f"{name}={name}" for name in only]
    if code.co_flags & 0x08:
        arguments.append("**" + rest.pop(0))
        parameters.append(arguments[-1])
    return [", ".join(parameters), ", ".join(arguments)]
