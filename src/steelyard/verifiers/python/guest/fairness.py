"""Comparisons in tests that run beside an answer, where the answer's own word must not decide what is right.

An object of the answer's may say that it equals another object of the answer's. It may not say that it equals plain data:
then it would be its own judge. Comparisons that it inherits from tuple, dict, str, Enum and the like are plain.
"""

from __future__ import annotations

import array
import builtins
import collections
import collections.abc
import datetime
import decimal
import enum
import fractions
import operator
import os
import pathlib
import re
import sys
import types
import uuid

from steelyard.verifiers.python.guest.test_names import take_names
from steelyard.verifiers.python.guest.test_rewriter import (
    CHAIN,
    COMPARE,
    ENFORCED_ASSERTIONS,
    ENTER,
    HOLDS,
    LEAVE,
    LOOK_UP,
    MATCH,
    METHOD,
    SAME,
    SEEK,
    STAR_IMPORT,
    TESTS_FILE,
)
from steelyard.verifiers.python.guest.wire import may_catch, short_repr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # a module has a dict there unless it is the first
"""The builtins of our functions, safe from temporary changes by an answer."""
PLAIN_SCALAR_TYPES = (bool, int, float, complex, str, bytes, type(None))
PLAIN_CONTAINER_TYPES = (list, tuple, set, frozenset, collections.deque, bytearray, range, array.array)
PLAIN_MAPPING_TYPES = (
    *(dict, collections.ChainMap, collections.Counter, collections.OrderedDict, collections.defaultdict),
    types.SimpleNamespace,
)
PLAIN_LIBRARY_TYPES = (
    *(decimal.Decimal, fractions.Fraction, uuid.UUID, enum.Enum, pathlib.PurePath),
    *(datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo),
)
MAX_PLAIN_DEPTH = 6
"""How deep we look for objects of the answer's in lists of lists."""
MAX_PLAIN_ITEMS = 1000
"""How many items of a list we look at."""
OWN_WORD_MESSAGE = "an object of the answer's own class says that it equals plain data"
COMPARISON_WORDS = {"NotEq": "not", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}
COMPARISON_WORDS |= {"Is": "the same as", "IsNot": "another than", "In": "one of", "NotIn": "none of"}
SUBSET_METHODS = {"Lt": "__lt__", "LtE": "__le__", "Gt": "__gt__", "GtE": "__ge__"}
FAILED_COMPARISON_SIGNS = {"Eq": "!=", "NotEq": "==", "In": "not found in", "NotIn": "unexpectedly found in"}
FAILED_COMPARISON_SIGNS |= {"Is": "is not", "IsNot": "is", "Lt": "not less than", "LtE": "not less than or equal to"}
FAILED_COMPARISON_SIGNS |= {"Gt": "not greater than", "GtE": "not greater than or equal to"}
COMPARISON_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda item, container: item in container,
    "NotIn": lambda item, container: item not in container,
}
_LIBRARY_PATHS = [os.path.dirname(os.__file__), *filter(os.path.isabs, sys.path)]
LIBRARY_FOLDERS = tuple({path + os.sep for known in _LIBRARY_PATHS for path in (known, os.path.realpath(known))})
"""The folders of code that no answer wrote; names are not resolved later, because an answer can make links."""
WORD_PATTERN = re.compile(r"\w+")
SKIPPING_FILES = (os.path.join("unittest", "case.py"), os.path.join("_pytest", "outcomes.py"))
"""Where the functions are by which a test skips itself."""


def all_types() -> dict[int, tuple[type, object]]:
    """The classes that exist now, by their addresses, each with its own `__eq__`, if any.

    They are kept alive, so that no class of the answer can get the address of a deleted one.
    """
    found: dict[int, type] = {id(object): object}
    waiting: list[type] = [object]
    while waiting:
        below: list[type] = type.__subclasses__(waiting.pop())
        for kind in below:
            if id(kind) not in found:
                found[id(kind)] = kind
                waiting.append(kind)
    return {number: (kind, _class_attributes(kind).get("__eq__")) for number, kind in found.items()}


def codes_of(trace: Any) -> Iterator[types.CodeType]:
    """The code that an exception came through, outermost first."""
    while trace is not None:
        yield trace.tb_frame.f_code
        trace = trace.tb_next


class ComparisonJudge:
    """Compares for the tests, and knows whether the answer's own word decided."""

    def __init__(
        self,
        tests: str,
        known_types: Mapping[int, tuple[type, object]],
        *,
        is_own_word_allowed: bool,
        may_try_again: bool = False,
    ) -> None:
        self._is_allowed = is_own_word_allowed
        self._known_types = known_types
        self._foreign = tuple(
            name
            for name, word in (("unittest.mock", "mock"), ("_pytest.python_api", "approx"), ("pytest", "approx"))
            if word not in tests
        )
        """Modules with objects that equal anything; in tests that do not use them they can only come from the answer."""
        self.own_word = False
        """Whether an object of the answer's said that it equals plain data."""
        self._test_words = frozenset(WORD_PATTERN.findall(tests))
        self._may_catch = may_catch(tests)
        self._may_try_again = may_try_again
        """Whether an assertion in a function of the tests may fail where the answer catches that, and hold when it calls again."""
        self._failure = ""
        self._failed_place: int | None = None
        self._open_tests = 0
        self.process = os.getpid()
        """The process that runs the tests; a copy of it that the answer made must not learn how they go."""
        self._getpid, self._exit = os.getpid, os._exit
        self._getprofile, self._setprofile = sys.getprofile, sys.setprofile

    def functions(self) -> dict[str, Any]:
        """Our functions by the constants that represent them."""
        return {
            CHAIN: bare(_chain, self),
            COMPARE: bare(_compare, self),
            ENTER: bare(_enter, self),
            HOLDS: bare(_holds, self),
            LEAVE: bare(_leave, self),
            LOOK_UP: bare(_look_up, self),
            MATCH: bare(_match, self),
            METHOD: bare(_method, self),
            SEEK: bare(_seek, self),
            SAME: bare(_same, self),
            STAR_IMPORT: bare(_star_import, self),
        }

    def stay(self) -> None:
        """End a copy of the process that the answer has made."""
        if self._getpid() != self.process:
            self._exit(0)

    def import_names(self, module: str, scope: dict[str, Any]) -> None:
        """Do what `from answer import *` does, except to what the tests have given a name to before."""
        answer = sys.modules[module]
        names: Any = vars(answer).get("__all__")
        if type(names) is not list and type(names) is not tuple:
            names = [name for name in list(vars(answer)) if type(name) is str and not name.startswith("_")]
        take_names(answer, names, scope)

    def enter(self) -> None:
        """Note that a test begins."""
        self._open_tests += 1

    def leave(self) -> None:
        """Note that a test came to its end."""
        self._open_tests -= 1

    def fail(self, message: str, place: int | None = None) -> None:
        """Fail an assertion, and remember that it failed, even if the exception is caught."""
        if not self._failure:
            self._failure, self._failed_place = message, place
        raise AssertionError(message)

    def hold(self, place: int) -> None:
        """Hear that an assertion holds: perhaps the one that failed before."""
        if self._may_try_again and place == self._failed_place:
            self._failure = ""

    def hidden_failure(self) -> str:
        """What failed in a test that was then called a pass, if something did; asked once after each test."""
        failure, is_open = self._failure, self._open_tests > 0
        self._failure, self._open_tests = "", 0
        if self._may_catch:
            return ""
        return f"AssertionError: {failure}" if failure else "it did not come to its end" if is_open else ""

    def compare(self, how: str, left: Any, right: Any) -> Any:
        """The result of a comparison; AssertionError where the answer's own word made it."""
        compared = COMPARISON_OPERATORS[how]
        if how in ("Eq", "NotEq"):
            left, right = self._as_data(left), self._as_data(right)
        elif how in SUBSET_METHODS and _is_among(type(left), (set, frozenset)) and has_library_order(type(right)):
            right = set(right)
        if how in ("Is", "IsNot") or (
            _is_among(type(left), PLAIN_SCALAR_TYPES) and _is_among(type(right), PLAIN_SCALAR_TYPES)
        ):
            return compared(left, right)
        if how in ("In", "NotIn") and not _has_attribute(type(right), "__contains__"):
            return self._is_item_of(right, left) == (how == "In")
        ran: list[Any] = []

        def note(frame: Any, event: str, argument: object) -> None:  # noqa: ARG001  the interpreter gives it
            if event == "call":
                ran.append(frame.f_code)

        before = self._getprofile()
        self._setprofile(note)
        try:
            result = compared(left, right)
        finally:
            self._setprofile(before)
        # a set is less than another by what equals its members
        is_subset = result is True and how in SUBSET_METHODS and isinstance(left, set | frozenset)
        if (is_subset or self._claims_equality(how, result)) and self._is_own_word(how, left, right, ran):
            self.own_word = True
            if not self._is_allowed:
                self.fail(OWN_WORD_MESSAGE)
        return result

    def _is_item_of(self, container: Any, wanted: Any) -> bool:
        """Whether something is found by going through a container, as the interpreter does where there is no other way."""
        if self._is_answers(container):
            return any(item is wanted or item == wanted for item in container)
        return any(item is wanted or bool(self.compare("Eq", item, wanted)) for item in container)

    def _as_data(self, value: Any, depth: int = 0) -> Any:
        """Mappings and sets of the answer's whose equality is the library's, and times in its time zones, as plain data.

        They are read before they are compared, so no method of the answer's sees what is expected.
        """
        kind = type(value)
        if _is_among(kind, PLAIN_SCALAR_TYPES) or depth > MAX_PLAIN_DEPTH:
            return value
        if _is_among(kind, (list, tuple)) and len(value) <= MAX_PLAIN_ITEMS:
            return kind([self._as_data(item, depth + 1) for item in value])
        if kind is dict and len(value) <= MAX_PLAIN_ITEMS:
            return {key: self._as_data(item, depth + 1) for key, item in value.items()}
        if kind is datetime.datetime and value.tzinfo is not None and not self._is_known(type(value.tzinfo)):
            return value.astimezone(datetime.UTC)
        owner = equality_owner(kind)
        if owner is collections.abc.Mapping:
            return dict(value.items())
        return set(value) if owner is collections.abc.Set else value

    @staticmethod
    def _claims_equality(how: str, result: Any) -> bool:
        return (how in ("Eq", "In") and result is not False) or (how in ("NotEq", "NotIn") and result is not True)

    def _is_own_word(self, how: str, left: Any, right: Any, ran: Iterable[Any]) -> bool:
        is_left, is_right = self._is_answers(left), self._is_answers(right)
        if how in ("In", "NotIn"):
            # what a container of the answer's holds is a fact of its own; what equals an item of the tests' is not
            if is_right and not is_left and _is_plain_container(right):
                return self._decides(right)
            if is_right or not (is_left or self.is_plain(right)):
                return False
            others = [left]
        elif is_left and is_right:
            return False
        elif self.is_plain(left) and self.is_plain(right):
            return any(self._is_answers_code(code) for code in ran)
        elif is_left or is_right:
            others = [left if is_left else right]
        elif self.is_plain(left) or self.is_plain(right):
            others = [right if self.is_plain(left) else left]
        else:  # both are the library's: one may equal anything
            return self._decides(left) or self._decides(right)
        return any(map(self._decides, others)) or any(self._is_answers_code(code) for code in ran)

    def seek(self, container: Any, item: Any) -> None:
        """Look for an object of the answer's in plain data before the tests do: there it would be compared unseen."""
        if not _is_plain_container(container):
            return
        if self._decides(item) or (not self._is_answers(item) and self._decides(container)):
            for one in _some(container):
                try:
                    self.compare("Eq", item, one)
                except Exception:
                    # where the tests really compare the two, it is raised again
                    if self.own_word and not self._is_allowed:
                        raise

    def seeking_method(self, container: Any, name: str) -> Any:
        """A method that compares its argument with what a container holds; that of a plain one looks at it first."""
        method = getattr(container, name)
        if not _is_plain_container(container):
            return method

        def seek(*arguments: Any, **named: Any) -> Any:
            self.seek(container, arguments[0])
            return method(*arguments, **named)

        return seek

    def _is_answers(self, value: Any, depth: int = 0) -> bool:
        """Whether a value is, or holds, an object of a class that is neither the interpreter's nor the library's."""
        kind = type(value)
        if _is_among(kind, PLAIN_SCALAR_TYPES) or depth > MAX_PLAIN_DEPTH:
            return False
        if _is_among(kind, PLAIN_MAPPING_TYPES):
            return any(self._is_answers(item, depth + 1) for pair in _pairs_in(value) for item in pair)
        if _is_among(kind, PLAIN_CONTAINER_TYPES):
            return any(self._is_answers(item, depth + 1) for item in _some(value))
        return id(kind) not in self._known_types and not self._is_of_library(kind)

    def _decides(self, value: Any, depth: int = 0) -> bool:
        """Whether a value is, or holds, an object whose class was written for this answer and has an `__eq__` of its own."""
        kind = type(value)
        if _is_among(kind, PLAIN_SCALAR_TYPES) or depth > MAX_PLAIN_DEPTH:
            return False
        if _is_among(kind, PLAIN_MAPPING_TYPES):
            return any(self._decides(item, depth + 1) for pair in _pairs_in(value) for item in pair)
        if _is_among(kind, PLAIN_CONTAINER_TYPES):
            return any(self._decides(item, depth + 1) for item in _some(value))
        owner = equality_owner(kind)
        return owner is not object and (not self._is_known(owner) or self._equals_anything(value, owner))

    def _equals_anything(self, value: Any, owner: type) -> bool:
        """Whether an object of the library is not an ordinary value, such as the helpers of its own tests."""
        is_python = type(_class_attributes(owner).get("__eq__")) is types.FunctionType
        if not is_python or not self._test_words.isdisjoint((_class_name(type(value)).strip("_"), "ANY")):
            return False
        try:
            return (value == object()) is True
        except Exception:
            return False

    def _is_known(self, kind: type) -> bool:
        """Whether a class is not the answer's, and has its original `__eq__`."""
        module = str(_class_module(kind))
        if module.startswith(self._foreign) and self._foreign:
            return False
        equality = _class_attributes(kind).get("__eq__")
        if id(kind) in self._known_types:
            return self._known_types[id(kind)][1] is equality
        if type(equality) is types.FunctionType:
            is_made_so = not self._is_answers_code(equality.__code__)
        else:  # any other callable can be put there, and may agree to everything
            is_made_so = type(equality) is types.WrapperDescriptorType and equality.__objclass__ is kind
        return is_made_so and self._is_of_library(kind)

    @staticmethod
    def _is_of_library(kind: type) -> bool:
        """Whether a class is really in a module of the library; one that only claims to be is not."""
        home = sys.modules.get(str(_class_module(kind)))
        file = getattr(home, "__file__", None)
        is_there = getattr(home, kind.__qualname__, None) is kind
        return is_there and file is not None and os.path.realpath(file).startswith(LIBRARY_FOLDERS)

    def has_answers_code(self, trace: Any) -> bool:
        """Whether an exception came out of the answer."""
        return any(self._is_answers_code(code) for code in codes_of(trace))

    def has_foreign_code(self, trace: Any) -> bool:
        """Whether a skip came out of the answer, or out of the library where the tests did not ask for it there."""
        is_below_tests = is_of_library = False
        for code in codes_of(trace):
            if code.co_filename == TESTS_FILE:
                is_below_tests, is_of_library = True, False
            elif not code.co_filename.endswith(SKIPPING_FILES) or code.co_name == "skip_wrapper":
                # a function of the answer's may be one that the library made, by a decorator for example
                is_of_library = is_below_tests
        return is_of_library or self.has_answers_code(trace)

    def _is_answers_code(self, code: Any) -> bool:
        file: str = code.co_filename
        if file == TESTS_FILE or file.startswith(("steelyard.", "<frozen ")):
            return False
        if file.startswith(LIBRARY_FOLDERS):
            return any(os.sep + name.replace(".", os.sep) + ".py" in file for name in self._foreign)
        return True

    def is_plain(self, value: Any, depth: int = 0) -> bool:
        """Whether a value is data through and through."""
        kind = type(value)
        if _is_among(kind, PLAIN_SCALAR_TYPES):
            return True
        if depth > MAX_PLAIN_DEPTH:
            return False
        if kind is dict:
            return all(self.is_plain(item, depth + 1) for pair in _some(value.items()) for item in pair)
        if _is_among(kind, PLAIN_CONTAINER_TYPES):
            return all(self.is_plain(item, depth + 1) for item in _some(value))
        if id(kind) not in self._known_types or not issubclass(kind, PLAIN_LIBRARY_TYPES):
            return False
        owner = equality_owner(kind)
        return owner is object or self._is_known(owner)

    def check_pair(self, name: str, left: Any, right: Any) -> tuple[Any, Any]:
        """The two arguments of an assertion of unittest, once it is known that they are what it asks for."""
        if name in ENFORCED_ASSERTIONS:
            how = ENFORCED_ASSERTIONS[name]
            result = self.compare(how, left, right)
            # what answers neither yes nor no, such as an array, is left to unittest
            if not self._may_catch and result is False:
                self.fail(f"{short_repr(left)} {FAILED_COMPARISON_SIGNS[how]} {short_repr(right)}")
            if how in ("In", "NotIn") and not _has_attribute(type(right), "__contains__"):
                # what has been gone through may be empty when unittest looks
                right = [left] if result is (how == "In") else []
        elif name == "assertCountEqual":
            left, right = list(left), list(right)
            for one, other in [(one, other) for one in _some(left) for other in _some(right)][:MAX_PLAIN_ITEMS]:
                if not (self.is_plain(one) and self.is_plain(other)):
                    self.compare("Eq", one, other)
        elif name == "assertAlmostEqual":
            left, right = _as_number(left), _as_number(right)
            if self._is_answers(left) != self._is_answers(right):
                # it is subtracted and rounded, and would say itself what comes of that
                self.own_word = True
                if not self._is_allowed:
                    self.fail(OWN_WORD_MESSAGE)
        elif not (self.is_plain(left) and self.is_plain(right)):
            self.compare("Eq", left, right)
        return left, right


def _has_attribute(kind: type, name: str) -> bool:
    return any(name in _class_attributes(each) for each in _ancestors(kind))


def _as_number(value: Any) -> Any:
    """The number that an object is, without what its class makes of it."""
    for kind, plain in NUMBER_COPIES:
        if kind in _ancestors(type(value)) and type(value) is not bool:
            return plain(value)
    return value


def _plain_fraction(value: Any) -> fractions.Fraction:
    # what was put in the place of its numbers could say what comes of a subtraction
    top, bottom = (
        _class_attributes(fractions.Fraction)[name].__get__(value) for name in ("_numerator", "_denominator")
    )
    return fractions.Fraction(operator.index(top), operator.index(bottom))


NUMBER_COPIES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    *((float, float.__pos__), (int, int.__pos__), (complex, complex.__pos__)),
    *((decimal.Decimal, decimal.Decimal), (fractions.Fraction, _plain_fraction)),
)
"""How a number is copied without the methods of its class, which may be the answer's."""


def _is_among(kind: type, kinds: tuple[type, ...]) -> bool:
    """Whether a class is one of these; its metaclass, which may say that it equals any, is not asked."""
    for one in kinds:  # noqa: SIM110  an answer may have given `any` another meaning
        if one is kind:
            return True
    return False


def _is_plain_container(value: Any) -> bool:
    return type(value) is dict or _is_among(type(value), PLAIN_CONTAINER_TYPES)


_class_attributes: Callable[[type], Any] = type.__dict__["__dict__"].__get__
"""The class's own dictionary, independent of its metaclass."""
_class_module: Callable[[type], Any] = type.__dict__["__module__"].__get__
"""The module of a class; one that is written in C may have it in its name alone."""
_class_name: Callable[[type], str] = type.__dict__["__name__"].__get__


def equality_owner(kind: type) -> type:
    """The class that a class has its `__eq__` from."""
    return next((above for above in _ancestors(kind) if "__eq__" in _class_attributes(above)), object)


def has_library_order(kind: type) -> bool:
    """Whether sets of a class are compared as the library's base class of sets does it."""
    owners = (
        next((above for above in _ancestors(kind) if name in _class_attributes(above)), object)
        for name in SUBSET_METHODS.values()
    )
    return equality_owner(kind) is collections.abc.Set and all(owner is collections.abc.Set for owner in owners)


_ancestors: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
"""The real method resolution order, independent of the metaclass."""


def _pairs_in(value: Any) -> Iterable[tuple[Any, Any]]:
    """Names or keys and what a mapping or a namespace holds for them."""
    return _some((vars(value) if type(value) is types.SimpleNamespace else value).items())


def _some(values: Iterable[Any]) -> list[Any]:
    found = []
    for value in values:
        found.append(value)
        if len(found) == MAX_PLAIN_ITEMS:
            break
    return found


def bare(function: Any, judge: ComparisonJudge) -> Any:
    """The function with what it needs as defaults: it reads no global name that an answer may change."""
    made = types.FunctionType(function.__code__, {"__builtins__": {"AssertionError": AssertionError}}, "assertion")
    made.__defaults__ = (judge, short_repr, COMPARISON_WORDS)[: len(function.__defaults__)]
    return made


def _compare(how: str, left: Any, right: Any, judge: Any = None) -> Any:
    return judge.compare(how, left, right)


def _chain(steps: tuple[tuple[str, int], ...], operands: tuple[Any, ...], judge: Any = None) -> Any:
    result = None
    for how, place in steps:
        result = judge.compare(how, operands[place], operands[place + 1])
        if not result:
            break
    return result


def _enter(judge: Any = None) -> None:
    judge.enter()


def _leave(judge: Any = None) -> None:
    judge.leave()


def _holds(how: str, left: Any, right: Any, place: int, judge: Any = None, text: Any = None, words: Any = None) -> None:
    """An assert of a comparison."""
    if not judge.compare(how, left, right):
        wanted = text(right) if how == "Eq" else f"{words[how]} {text(right)}"
        judge.fail(f"got {text(left)}, expected {wanted}", place)
    judge.hold(place)


def _same(name: str, left: Any, right: Any, judge: Any = None) -> Any:
    return judge.check_pair(name, left, right)


def _star_import(module: str, scope: Any, judge: Any = None) -> None:
    judge.import_names(module, scope)


def _look_up(container: Any, key: Any, judge: Any = None) -> Any:
    judge.seek(container, key)
    return container[key]


def _match(subject: Any, values: tuple[Any, ...], judge: Any = None) -> Any:
    judge.seek(values, subject)
    return subject


def _method(container: Any, name: str, judge: Any = None) -> Any:
    return judge.seeking_method(container, name)


def _seek(container: Any, key: Any, judge: Any = None) -> Any:
    judge.seek(container, key)
    return key
