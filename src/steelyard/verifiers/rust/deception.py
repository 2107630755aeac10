"""How an answer gives what its tests do another meaning, decided by the types that the compiler sees there.

Tests compare results with values of their own. An answer that returns a type of its own, or lends methods to foreign types that
the tests `use super::*`, could decide what such a comparison says. Only what the tests call is looked at, so what an answer
implements for itself is its own affair; operators among its own types are honest, and so is what the author asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from steelyard.text import word_set
from steelyard.verifiers.rust.author import AuthorNames, StatedSignature
from steelyard.verifiers.rust.mir import (
    ANSWER_MODULE,
    TESTS_MODULE,
    MirCall,
    MirFunction,
    closing_bracket,
    path_names,
)
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
REQUIRED_METHODS = word_set(
    "next next_back fmt index index_mut deref deref_mut from into_iter from_iter from_str try_from clone default hash drop as_ref as_mut "
    "borrow borrow_mut poll read write flush source description size_hint neg not call call_mut call_once extend finish to_owned cmp partial_cmp eq"
)
"""Methods of the library's traits that an implementation has to have; the others it overrides."""
REFERENCE_METHODS = word_set("deref index as_ref borrow")
"""Methods by which a type gives what tests take for its value."""
LOOKUP_METHODS = DECIDING_METHODS | word_set("get get_mut get_key_value remove remove_entry take")
"""Methods by which tests look for something in a collection; its keys and its hasher learn what is sought."""
LENT_TO_ANYTHING_METHODS = LOOKUP_METHODS | word_set(
    "next nth last count len first position max min sum product fold collect unwrap unwrap_err unwrap_or expect ok err is_finite is_sorted_by max_by_key min_by_key"
)
"""Methods of the library that an answer could lend again to a type that cannot be written down, such as that of a closure."""
STANDARD_ROOTS = ("std::", "core::", "alloc::")
CONVERTING_FUNCTION_PATTERN = re.compile(
    r"<[^ ]+ as (?:std|core)::(?:convert::(?:Try)?(?:Into|From)|str::FromStr|iter::FromIterator|default::Default)\b"
)
"""A conversion that is handed to another function, as in `map(Into::into)`."""
OWN_PATTERN_PATTERN = re.compile(r"\{closure@|\bfn\(|\[char|\bdyn ")
"""Types that texts take for a pattern, and that may fit everything."""
OWN_PATH_PATTERN = re.compile(rf"\b{ANSWER_MODULE}::(?!{TESTS_MODULE}\b)((?:(?:\w+|{{[^}}]*}})::)*\w+)")
"""The path of a type that the answer declares."""
LOCAL_PATH_PATTERN = re.compile(
    rf"\b{ANSWER_MODULE}::{TESTS_MODULE}::(?:(?:\w+|{{[^}}]*}})::)*?(?:(\w+)::)?(\w+)\b(?!::|\[)"
)
"""The path of a type that is declared in the tests."""
EMPTY_TYPES = ("()", "std::marker::PhantomData")


class LentMethod(NamedTuple):
    """A method of the answer that the tests call on a foreign type."""

    type: str
    """With `Own` for each of the answer's own types in it."""
    method: str
    is_named: bool = False
    """Whether the prompt has a word like the method, so that it may have been asked for."""
    is_of_tests: bool = False
    """Whether it is a type that the tests define, which nobody but them can ask."""

    @property
    def deception(self) -> str:
        return f"gives {self.type} another {self.method}, which the tests call"

    @property
    def is_doubtful(self) -> bool:
        """Whether it has a name of the library's, unasked, or on a type of which nobody can ask the compiler, such as a closure's."""
        is_vague = bool(re.search(r"\{closure@|(?<![\w:'])[A-Z]\w*\b(?!::)", self.type.replace("Own", "")))
        return self.method in LENT_TO_ANYTHING_METHODS and (is_vague or not self.is_named)


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
    doubt: str = ""
    """What may deceive as well as be honest, so that a pass proves little; empty when nothing does."""


@lru_cache(maxsize=256)
def types_seen(functions: tuple[MirFunction, ...], author: AuthorNames) -> TypesSeen:
    """What the types in the tests of an answer with these functions say about it."""
    return AnswerTypes(functions, author).seen()


class AnswerTypes:
    """The types of one answer, as its functions and its tests show them."""

    def __init__(self, functions: Sequence[MirFunction], author: AuthorNames) -> None:
        self._module = ANSWER_MODULE
        self._author = author
        self._tests_path = f"{ANSWER_MODULE}::{TESTS_MODULE}::"
        self._doubts: list[str] = []
        self._own_names: dict[str, frozenset[str]] = {}
        """What was found in a text, because the same types come again and again."""
        self._tests = [function for function in functions if function.path.startswith(self._tests_path)]
        self._answer = [function for function in functions if not function.path.startswith(self._tests_path)]

    def seen(self) -> TypesSeen:
        """What stands out in the tests' calls."""
        deception = next(
            (lie for test in self._tests for call in test.calls if (lie := self._deception(test, call))), ""
        )
        deception = deception or self._made_by_tests()
        lent = dict.fromkeys(lent for test in self._tests for call in test.calls for lent in self._lent(call))
        broken = dict.fromkeys(wrong for test in self._tests for call in test.calls for wrong in self._broken(call))
        for test in self._tests:
            for call in test.calls:
                self._doubt_method(call)
                self._doubt_lookup(test, call)
                self._doubt_local_type(call)
        doubt = self._doubts[0] if self._doubts else ""
        return TypesSeen(deception, tuple(lent), tuple(broken), doubt)

    def _own(self, text: str) -> frozenset[str]:
        """The names of the answer's own types in a type; a trait object that compares hides one."""
        if (known := self._own_names.get(text)) is None:
            known = self._own_names[text] = self._own_names_in(text)
        return known

    def _own_names_in(self, text: str) -> frozenset[str]:
        # of two types with one name, the tests can only mean the one at the top
        names = {
            path if "::" in path and path.rpartition("::")[2] in self._top_names else path.rpartition("::")[2]
            for path in OWN_PATH_PATTERN.findall(text)
        }
        if re.search(r"\bdyn (?:std|core)::(?:cmp|ops)::(?!Fn)", text):
            names.add("dyn")
        return frozenset(names)

    @cached_property
    def _top_names(self) -> set[str]:
        """The answer's own types at its top level that the tests see."""
        calls = (call for test in self._tests for call in test.calls)
        texts = (f"{call.receiver} {call.operand} {call.result} {call.arguments}" for call in calls)
        return {path for text in texts for path in OWN_PATH_PATTERN.findall(text) if "::" not in path}

    def _made_by_tests(self) -> str:
        """How a type that nobody asked for is compared, of which the library makes values out of those of the tests."""
        calls = [call for test in self._tests for call in test.calls]
        compared: set[str] = set()
        for call in calls:
            is_operator = (
                call.trait.startswith(STANDARD_ROOTS) and call.trait.rpartition("::")[2] in OPERATOR_TRAIT_NAMES
            )
            if is_operator or self._is_of_tests(call):
                compared |= self._own(f"{call.receiver} {call.path}") - self._author.types
        for call in calls if compared else ():
            is_standard = (call.trait or call.path).startswith(STANDARD_ROOTS)
            arguments = CONVERTING_FUNCTION_PATTERN.sub("", call.arguments)
            is_passed_on = arguments != call.arguments
            is_given = not is_passed_on and (
                bool(self._own(arguments)) or "{closure" in arguments or "fn(" in arguments
            )
            if not is_standard or is_given or not (made := self._own(call.result) & compared):
                continue
            told = f"has a type of its own, {max(made)}, which the tests make with {call.name}"
            if call.name in CONVERSION_METHODS or is_passed_on:
                return told
            self._doubts.append(told)
        return ""

    def _doubt_local_type(self, call: MirCall) -> None:
        """Doubt a test with a type in it that the tests do not define: a macro of the answer makes it there."""
        seen = f"{call.receiver} {call.operand} {call.arguments}"
        if self._tests_path not in seen:
            return
        for owner, name in LOCAL_PATH_PATTERN.findall(seen):
            # the owner of a variant is its enum
            is_variant = owner[:1].isupper() and owner in self._author.defined_in_tests
            if name not in self._author.defined_in_tests and not is_variant:
                self._doubts.append(f"makes a type of its own, {name}, in the tests that call its macro")

    def _doubt_lookup(self, test: MirFunction, call: MirCall) -> None:
        """Doubt a test that looks for something with a part of the answer that hears what is sought, or fits everything."""
        if call.name == "default" and call.result.startswith(EMPTY_TYPES):
            self._doubts.append(f"gives {self._plain(call.result)}, of which all values are the same")
        if call.receiver or not call.path.startswith(STANDARD_ROOTS) or call.name not in LOOKUP_METHODS:
            return
        # a function of the answer that the tests hand to the library is one that they ask for
        is_collection = "::collections::" in call.path.partition("<")[0]
        if is_collection and (unasked := self._own(re.sub(r"\{[^{}]*\}", "", call.path)) - self._author.types):
            self._doubts.append(
                f"has a type of its own, {max(unasked)}, in which the tests look something up by {call.name}"
            )
        pattern = call.path.partition(f"<impl str>::{call.name}::<")[2]
        if OWN_PATTERN_PATTERN.search(pattern):
            results = [other.result for other in test.calls if other.path.startswith(f"{self._module}::")]
            if any(result and result in pattern for result in results):
                self._doubts.append(f"gives what is no text, and the tests take it for one in {call.name}")

    def _doubt_method(self, call: MirCall) -> None:
        """Doubt a test that calls a method of a type that nobody asked for, or one that does not give what the prompt says."""
        names = path_names(call.path)
        if call.receiver:
            is_own = call.trait.startswith(f"{self._module}::") and not call.trait.startswith(self._tests_path)
            overrides = (
                not is_own and call.name not in REQUIRED_METHODS and call.name in self._overridden(call.receiver)
            )
            is_iterator = call.trait.startswith(STANDARD_ROOTS) and call.trait.endswith("::Iterator")
            is_posing = (
                is_iterator and call.name not in ("next", "size_hint") and call.name in self._overridden(call.receiver)
            )
            # what it refers to may be another value each time it is looked at
            is_own_reference = call.name in REFERENCE_METHODS and call.receiver.startswith(f"{self._module}::")
            owners = self._own(call.receiver) if is_own or overrides or is_posing or is_own_reference else frozenset()
            is_posing = is_posing and call.name not in self._author.code_words
        else:
            is_method = names[0] == self._module and not self._is_of_tests(call) and len(names) > 2
            owners = self._owners(call.path) if is_method else frozenset()
            is_posing = call.name in COMPARING_METHODS and call.name not in self._author.words
            stated = self._author.methods.get(names[-1], "") if is_method else ""
            actual = OWN_PATH_PATTERN.sub(r"its_own_\1", call.result)
            if stated and self._own(call.result) and not agrees(type_tree(stated), type_tree(actual)):
                self._doubts.append(f"{names[-1]} gives {self._plain(call.result)}, and the prompt says {stated}")
        is_unasked = not owners & self._author.types and call.name not in self._author.words
        if owners and (is_unasked or is_posing):
            self._doubts.append(f"has a type of its own, {max(owners)}, whose {call.name} the tests call")

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
        return call.path.startswith(self._tests_path) or call.trait.startswith(self._tests_path)

    def _method_deception(self, call: MirCall) -> str:
        """How a method of the answer decides a test on a type that was not asked for."""
        if call.name not in DECIDING_METHODS:
            return ""
        names = path_names(call.path)
        if call.receiver:
            is_own = call.trait.startswith(f"{self._module}::") or call.name in self._overridden(call.receiver)
            owners = self._own(call.receiver) if is_own else frozenset()
        else:
            is_own = names[0] == self._module and not self._is_of_tests(call)
            owners = self._owners(call.path) if is_own else frozenset()
        if not owners or owners & self._author.types:
            return ""
        told = f"has its own type, {max(owners)}, whose {call.name} the tests take for another"
        if call.name not in self._author.words:
            return told
        self._doubts.append(told)
        return ""

    def _owners(self, path: str) -> frozenset[str]:
        """The type whose method is at a path; empty for a plain function."""
        if found := re.search(r"::<impl ([^>]*)", path):
            return self._own(found[1])
        names = [name for name in path_names(path)[1:-1] if name]
        if not names or not names[-1][:1].isupper():
            return frozenset()
        return self._own(f"{self._module}::{'::'.join(names)}")

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
            # a type that can be compared need not be comparable with numbers and texts
            if not own <= self._author.mixed_operators:
                self._doubts.append(deception)
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
        if not any((name, function) in self._author.annotated for name in own for function in self._called(test)):
            self._doubts.append(deception)
        return ""

    def _called(self, test: MirFunction) -> set[str]:
        """The names of the answer's functions that a test calls, and whose result the prompt or the test declares."""
        return {path_names(call.path)[-1] for call in test.calls if call.path.startswith(f"{self._module}::")}

    def _lent(self, call: MirCall) -> Iterator[LentMethod]:
        is_lent = call.trait.startswith(f"{self._module}::") and not call.trait.startswith(self._tests_path)
        receiver = re.sub(r"^(?:&(?:'\w+ )?(?:mut )?)*", "", call.receiver)
        is_own = receiver.startswith(f"{self._module}::") and not receiver.startswith(self._tests_path)
        is_asked = path_names(call.trait)[-1] in self._author.types and call.name in self._author.words
        if is_lent and not is_own and not is_asked:
            is_of_tests = receiver.startswith(self._tests_path)
            yield LentMethod(self._foreign(call.receiver), call.name, call.name in self._author.words, is_of_tests)

    def _foreign(self, text: str) -> str:
        """A type in which the answer's own types, and those of the tests, are called `Own`."""
        before, _, rest = text.partition(f"{self._module}::")
        if not rest:
            return text
        named = re.match(r"(?:\w+|{[^}]*}|::)*", rest)
        after = rest[named.end() :] if named else rest
        return f"{before}Own{self._foreign(after[closing_bracket(after) + 1 :] if after.startswith('<') else after)}"

    def _broken(self, call: MirCall) -> Iterator[BrokenSignature]:
        names = path_names(call.path)
        if call.receiver or len(names) != 2 or names[0] != self._module or not call.result:
            return
        stated = self._author.signatures.get(names[1])
        if stated is None:
            return
        returns = OWN_PATH_PATTERN.sub(r"its_own_\1", call.result)
        if not agrees(type_tree(stated.returns), type_tree(returns)):
            yield BrokenSignature(names[1], stated, self._plain(call.result))

    def _plain(self, text: str) -> str:
        """A type as its author would write it, as far as paths go."""
        return re.sub(r"\b(?:\w+::)+(?=\w)", "", text)
