"""An answer in another process, as tests see it: functions that forward plain data by value, and nothing else.

What cannot be forwarded so ends the run as not applicable: it says nothing about the answer.
"""

from __future__ import annotations

import builtins
import sys
import types

from steelyard.verifiers.python.guest.values import NotPlainError, decoded, encoded
from steelyard.verifiers.python.guest.wire import MessageSocket, PeerGone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

UNFORWARDED_EXCEPTIONS = (
    *(AssertionError, StopIteration, StopAsyncIteration, GeneratorExit, SystemExit, KeyboardInterrupt, MemoryError),
    # in one process it may have a name that its tests bind
    NameError,
)
"""Exceptions that mean something else to what calls the tests than to the tests."""


class RemoteAnswer:
    """The tests' end of the connection to an answer."""

    def __init__(self, fd: int, give_up: Callable[[str], NoReturn]) -> None:
        self._peer = MessageSocket(fd)
        self._give_up = give_up
        self._functions: dict[str, RemoteFunction] = {}
        self._absent: set[str] = set()

    def load(self, code: str) -> None:
        """Let the answer be loaded there."""
        self._ask("load", code, [])
        if self._heard()[0] != "loaded":
            self._give_up("it cannot be loaded in a process of its own")

    def value(self, name: str) -> Any:
        """What a name of the answer stands for; raises KeyError if it has none."""
        if name in self._functions:
            return self._functions[name]
        if name in self._absent:
            raise KeyError(name)
        said, *held = self._ask("get", name)
        if said == "missing":
            self._absent.add(name)
            raise KeyError(name)
        if said == "function":
            self._functions[name] = RemoteFunction(self, name, str(held[0]))
            return self._functions[name]
        if said != "value":
            self._give_up(str(held[0]))
        return decoded(held[0])

    def call(self, name: str, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """What a function of the answer returns; raises what it raises."""
        try:
            given = [encoded(value) for value in positional], [[key, encoded(value)] for key, value in named.items()]
        except NotPlainError as error:
            self._give_up(f"{name} is given {error}")
        said, *held = self._ask("call", name, *given, True)
        if said == "odd":
            self._give_up(f"{name}: {held[0]}")
        *_, changes, printed, _ = held
        sys.stdout.write(printed)
        if changes:
            self._give_up(f"{name} changes what it is given")
        if said == "ok":
            return decoded(held[0])
        raise self._exception(name, held[1], held[2])

    def _exception(self, name: str, kind: str, arguments: Any) -> BaseException:
        made = getattr(builtins, str(kind), None)
        is_kind = isinstance(made, type) and issubclass(made, BaseException)
        if arguments is None or not is_kind or issubclass(made, UNFORWARDED_EXCEPTIONS):  # type: ignore[arg-type]
            self._give_up(f"{name} raises {kind}, which is more than plain data")
        raised: BaseException = made(*map(decoded, arguments))  # type: ignore[misc]
        return raised

    def _ask(self, *request: Any) -> list[Any]:
        try:
            self._peer.send(list(request))
        except (PeerGone, ValueError):
            self._give_up("its process has ended")
        return self._heard()

    def _heard(self) -> list[Any]:
        try:
            return self._peer.receive()
        except PeerGone:
            self._give_up("its process has ended")

    def unknown(self, what: str) -> NoReturn:
        """End because tests look at more than what a function returns."""
        self._give_up(what)


class RemoteFunction:
    """A function of the answer; that it can be called is all that is known of it, and what it is called."""

    def __init__(self, answer: RemoteAnswer, name: str, own_name: str) -> None:
        self._answer = answer
        self._name = name
        if own_name:
            self.__name__ = own_name  # unittest asks what it calls

    def __call__(self, *positional: Any, **named: Any) -> Any:
        return self._answer.call(self._name, positional, named)

    def __getattr__(self, name: str) -> Any:
        self._answer.unknown(f"the tests look at {self._name}.{name}")

    __doc__ = property(lambda self: self.__getattr__("__doc__"))


class RemoteModule(types.ModuleType):
    """The module of the answer."""

    def __init__(self, answer: RemoteAnswer, names: Iterable[str]) -> None:
        super().__init__("answer")
        # the names that tests use: those of the answer among them are what it exports
        vars(self).update(_remote=answer, _wanted=sorted(names))

    def __setattr__(self, name: str, value: Any) -> None:
        self._remote.unknown(f"the tests set {name} of the answer")

    def __dir__(self) -> Any:
        return self._remote.unknown("the tests ask for the names of the answer")

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [each for each in self._wanted if not each.startswith("_") and self._has(each)]
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._remote.value(name)
        except KeyError:
            raise AttributeError(f"module 'answer' has no attribute '{name}'") from None

    def _has(self, name: str) -> bool:
        try:
            self._remote.value(name)
        except KeyError:
            return False
        return True


class JoinedNames(dict[str, "Any"]):
    """The names of tests that stand in one file with the answer: what they do not bind themselves is the answer's."""

    def __init__(self, answer: RemoteAnswer) -> None:
        super().__init__(__name__="answer", __builtins__=builtins)
        self._answer = answer

    def __missing__(self, name: str) -> Any:
        if name.startswith("__"):
            raise KeyError(name)
        return self._answer.value(name)
