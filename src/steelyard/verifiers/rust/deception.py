"""How an answer gives what its tests do another meaning, decided by the types that the compiler sees there.

Tests compare results with values of their own. An answer that returns a type of its own, or lends methods to foreign types that
the tests `use super::*`, could decide what such a comparison says. Only what the tests call is looked at, so what an answer
implements for itself is its own affair; operators among its own types are honest, and so is what the author asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from steelyard.text import word_set
from steelyard.verifiers.rust.author import AuthorNames, StatedSignature
from steelyard.verifiers.rust.mir import MirCall, MirFunction, path_names
from steelyard.verifiers.rust.type_names import agrees, type_tree

OPERATOR_TRAIT_NAMES = word_set(
    "PartialEq PartialOrd Add Sub Mul Div Rem BitAnd BitOr BitXor Shl Shr AddAssign SubAssign MulAssign DivAssign "
    "RemAssign BitAndAssign BitOrAssign BitXorAssign"
)
"""Traits of operators that see both sides."""
OPERATOR_METHODS = word_set("eq ne lt le gt ge partial_cmp cmp add sub mul div rem bitand bitor bitxor")
COMPARING_METHODS = word_set(
    "eq ne lt le gt ge cmp partial_cmp total_cmp eq_by contains starts_with ends_with is_sorted all any abs_diff"
)
"""Methods by which the standard library asks the values that it holds or is given."""
DECIDING_METHODS = COMPARING_METHODS | word_set(
    "is_ok is_err is_some is_none is_ok_and is_err_and is_some_and is_none_or eq_ignore_ascii_case is_empty "
    "contains_key is_nan is_positive is_negative is_subset is_superset is_disjoint find rfind binary_search"
)
"""Methods of standard types that say whether a test passes; a type that was not asked for does not need them."""
CONVERSION_METHODS = word_set("collect into try_into parse sum product from_iter")
"""Methods by which tests make a value of whatever type a result has."""
STANDARD_ROOTS = ("std::", "core::", "alloc::")


class LentMethod(NamedTuple):
    """A method of the answer that the tests call on a foreign type."""

    type: str
    method: str

    @property
    def deception(self) -> str:
        return f"gives {self.type} another {self.method}, which the tests call"


class BrokenSignature(NamedTuple):
    """A function that does not give the tests what the prompt says."""

    name: str
    stated: StatedSignature
    returns: str


class TypesSeen(NamedTuple):
    """What the types in an answer's tests say about it."""

    deception: str
    """What can only deceive; empty when nothing does."""
    lent: tuple[LentMethod, ...]
    """Methods that deceive if the type has one of that name already."""
    broken: tuple[BrokenSignature, ...]
    """Functions that deceive the prompt's readers, if the tests fit what the prompt states."""


class AnswerTypes:
    """The types of one answer, as its functions and its tests show them."""

    def __init__(self, module: str, tests_module: str, functions: Sequence[MirFunction], author: AuthorNames) -> None:
        self._module = module
        self._author = author
        self._own_path = re.compile(rf"\b{module}::(?!{tests_module}\b)((?:(?:\w+|{{[^}}]*}})::)*\w+)")
        self._tests_path = f"{module}::{tests_module}::"
        self._tests = [function for function in functions if function.path.startswith(self._tests_path)]
        self._answer = [function for function in functions if not function.path.startswith(self._tests_path)]

    def seen(self) -> TypesSeen:
        """What stands out in the tests' calls."""
        deception = next(
            (lie for test in self._tests for call in test.calls if (lie := self._deception(test, call))), ""
        )
        lent = dict.fromkeys(lent for test in self._tests for call in test.calls for lent in self._lent(call))
        broken = dict.fromkeys(wrong for test in self._tests for call in test.calls for wrong in self._broken(call))
        return TypesSeen(deception, tuple(lent), tuple(broken))

    def _own(self, text: str) -> frozenset[str]:
        """The names of the answer's own types in a type; a trait object that compares hides one."""
        names = {path.rpartition("::")[2] for path in self._own_path.findall(text)}
        if re.search(r"\bdyn (?:std|core)::(?:cmp|ops)::(?!Fn)", text):
            names.add("dyn")
        return frozenset(names)

    def _deception(self, test: MirFunction, call: MirCall) -> str:
        trait = call.trait.rpartition("::")[2]
        is_standard = call.trait.startswith(STANDARD_ROOTS)
        left = self._own(call.receiver)
        if posing := self._own(f"{call.receiver} {call.operand} {call.path} {call.result}") & self._author.imported:
            return f"defines its own {max(posing)}, which the tests take for the standard library's"
        if is_standard and trait in OPERATOR_TRAIT_NAMES:
            right = self._own(call.operand) if call.operand else left
            if bool(left) == bool(right):
                return self._conversion_deception(test, left | right)
            what = f"{self._plain(call.receiver)} with {self._plain(call.operand)}"
            return self._unasked(test, left | right, f"compares {what} as it likes")
        if is_standard and trait == "Not":
            if not left or self._own(call.result):
                return ""
            return self._unasked(test, left, f"decides what ! makes of {self._plain(call.receiver)}")
        if is_standard or self._is_of_tests(call) or not call.path.startswith(f"{self._module}::"):
            mixed = self._own(f"{call.receiver} {call.path}") & self._mixed
            if mixed and (call.name in COMPARING_METHODS or self._is_of_tests(call)):
                return self._unasked(test, mixed, f"compares {', '.join(sorted(mixed))} as it likes")
        return self._method_deception(call)

    def _conversion_deception(self, test: MirFunction, own: frozenset[str]) -> str:
        """How a type that nobody asked for takes the place of one that the tests convert their values to."""
        unasked = own - self._author.types
        for call in test.calls if unasked else ():
            is_standard = (call.trait or call.path).startswith(STANDARD_ROOTS)
            if (
                is_standard
                and call.name in CONVERSION_METHODS
                and (converted := self._own(f"{call.path} {call.result}") & unasked)
            ):
                return f"has a type of its own, {max(converted)}, which the tests convert their values to"
        return ""

    def _is_of_tests(self, call: MirCall) -> bool:
        return call.path.startswith(self._tests_path)

    def _method_deception(self, call: MirCall) -> str:
        """How a method of the answer decides a test on a type that was not asked for."""
        if call.name not in DECIDING_METHODS or call.name in self._author.words:
            return ""
        names = path_names(call.path)
        if call.receiver:
            is_own = call.trait.startswith(f"{self._module}::") or call.name in self._overridden(call.receiver)
            owners = self._own(call.receiver) if is_own else frozenset()
        else:
            is_own = names[0] == self._module and not self._is_of_tests(call)
            owners = frozenset(names[1:-1]) if is_own else frozenset()
        if owners and not owners & self._author.types:
            return f"has its own type, {max(owners)}, whose {call.name} the tests take for another"
        return ""

    def _overridden(self, receiver: str) -> set[str]:
        """The methods that the answer writes for this type."""
        own = self._own(receiver)
        return {
            path_names(function.path)[-1]
            for function in self._answer
            if function.parameters and self._own(function.parameters[0]) & own
        }

    @cached_property
    def _mixed(self) -> set[str]:
        """The answer's own types for which it writes an operator with another type."""
        mixed: set[str] = set()
        for function in self._answer:
            if path_names(function.path)[-1] in OPERATOR_METHODS and len(function.parameters) == 2:
                left, right = map(self._own, function.parameters)
                mixed |= left | right if bool(left) != bool(right) else set()
        return mixed

    def _unasked(self, test: MirFunction, own: frozenset[str] | set[str], deception: str) -> str:
        """The deception, unless the author asks for these types and for what is done with them."""
        if not own <= self._author.types:
            return deception
        if own <= self._author.operators:
            return ""
        for call in test.calls:
            names = path_names(call.path)
            stated = self._author.signatures.get(names[-1])
            is_function = not call.receiver and len(names) == 2 and names[0] == self._module
            if any((name, names[-1]) in self._author.annotated for name in own):
                continue
            if (
                is_function
                and self._own(call.result) & own
                and not (stated and own & set(re.findall(r"\w+", stated.returns)))
            ):
                return f"{names[-1]} returns {self._plain(call.result)}, and it {deception}"
        return ""

    def _lent(self, call: MirCall) -> Iterator[LentMethod]:
        is_lent = call.trait.startswith(f"{self._module}::") and not call.trait.startswith(self._tests_path)
        is_foreign = not self._own(call.receiver) and self._tests_path not in call.receiver
        if is_lent and is_foreign and call.name not in self._author.words:
            yield LentMethod(call.receiver, call.name)

    def _broken(self, call: MirCall) -> Iterator[BrokenSignature]:
        names = path_names(call.path)
        if call.receiver or len(names) != 2 or names[0] != self._module or not call.result:
            return
        stated = self._author.signatures.get(names[1])
        if stated is None:
            return
        returns = self._own_path.sub(r"its_own_\1", call.result)
        if not agrees(type_tree(stated.returns), type_tree(returns)):
            yield BrokenSignature(names[1], stated, self._plain(call.result))

    def _plain(self, text: str) -> str:
        """A type as its author would write it, as far as paths go."""
        return re.sub(r"\b(?:\w+::)+(?=\w)", "", text)
