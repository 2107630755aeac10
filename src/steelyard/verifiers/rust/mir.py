"""What the compiler says about the types that tests see, read from the MIR that it prints.

In MIR every alias, macro and projection is resolved, hidden return types are shown, and each operator on something that
is not a primitive is the call of a trait's method that names both types. The format is not promised to stay as it is, so
every crate holds a module of ours whose calls must be found again (`PROBE_MODULE`). The modules of all answers get the same
names here: tests that see the same types in two answers have the same text then, and are read once.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from steelyard.errors import VerifierError

ITEM_PATTERN = re.compile(r"^(?:fn|const|static) (?:mut )?(?P<module>\w+)::.*", re.MULTILINE)
FUNCTION_PATTERN = re.compile(r"^fn (?P<path>.+?)\((?P<parameters>_1: .*)?\) -> (?P<returns>.*) \{$")
LOCAL_PATTERN = re.compile(r"^ +let (?:mut )?(?P<name>_\d+): (?P<type>.+);$")
CALL_PATTERN = re.compile(r"^ +(?P<result>\S.*?) = (?P<call>\S.*\)) -> (?:\[|bb|unwind)")
VARIABLE_PATTERN = re.compile(r"\b_\d+\b")
PARAMETER_PATTERN = re.compile(r"(?:^|, )(_\d+): ")
CHARACTER_PATTERN = re.compile(r"'(?:\\(?:u\{[0-9a-f]+\}|.)|[^'\\\n])'")
"""A character, such as the parameter of a type; a bracket would be taken for one of the type's. None goes on behind its line."""
BRACKET_DEPTHS = {"<": 1, "[": 1, "{": 1, "(": 1, ">": -1, "]": -1, "}": -1, ")": -1}
BRACKETS = r"[-=]>|[][<>{}()]"
"""A bracket, or an arrow, which is none."""
BRACKET_PATTERN = re.compile(BRACKETS)
NAME_PATTERN = re.compile(rf"{BRACKETS}|(?P<name>[\w#]+)")
MARK_PATTERNS = {mark: re.compile(rf"{BRACKETS}|{re.escape(mark)}") for mark in ("(", "<", " as ", ", ")}
ANSWER_MODULE, TESTS_MODULE = (f"{kind}_{secrets.token_hex(8)}" for kind in "mt")
"""What the modules of an answer and of its tests are called in what is read of them, which no answer can guess."""
PROBE_MODULE = "types_probe"
PROBE_SOURCE = (
    f"mod {PROBE_MODULE} {{ pub struct Own; type Other = i64; "
    "impl ::core::cmp::PartialEq<Other> for Own { fn eq(&self, _: &Other) -> bool { true } } "
    "fn hidden() -> impl ::core::cmp::PartialEq<i64> { Own } "
    "pub fn test() -> bool { hidden() == 3 } }\n"
)
"""A function that compares what only the compiler can know, to prove that its words are understood."""


class MirCall(NamedTuple):
    """A function that another one calls."""

    receiver: str
    """The type whose method it is, where the method is a trait's; otherwise empty."""
    trait: str
    """The path of that trait, without its parameters."""
    operand: str
    """The first parameter of that trait, such as the type on the right of an operator; otherwise empty."""
    path: str
    """The path of the function, or the name of the trait's method; with its parameters."""
    result: str
    """The type of what it gives."""
    arguments: str = ""
    """What it is given: the types of variables, and constants as they are printed."""

    @property
    def name(self) -> str:
        """The last name in its path."""
        return path_names(self.path)[-1]


class MirFunction(NamedTuple):
    """A function, closure or constant of the crate."""

    path: str
    parameters: tuple[str, ...]
    """Their types."""
    calls: tuple[MirCall, ...]


def mir_functions(text: str, tests_modules: Mapping[str, str]) -> dict[str, tuple[MirFunction, ...]]:
    """By module, each given with that of its tests: its functions; calls are read of those in tests alone.

    In all of them the modules are called ANSWER_MODULE and TESTS_MODULE.
    """
    found: dict[str, list[MirFunction]] = {module: [] for module in (*tests_modules, PROBE_MODULE)}
    for item in ITEM_PATTERN.finditer(text):
        module = item["module"]
        if module not in found:
            continue
        tests_module = tests_modules.get(module, "")
        is_read = text.startswith(f"::{tests_module}::" if tests_module else "::", item.end("module"))
        end = text.find("\n}", item.end()) if is_read and item[0].endswith("{") else item.end()
        piece = text[item.start() : end if end >= 0 else len(text)]
        if tests_module:
            piece = piece.replace(module, ANSWER_MODULE).replace(tests_module, TESTS_MODULE)
        found[module].append(_function(piece))
    probe = [call for function in found.pop(PROBE_MODULE) for call in function.calls]
    if not any(call.receiver.endswith("::Own") and (call.operand, call.name) == ("i64", "eq") for call in probe):
        raise VerifierError("this compiler prints types in a way that steelyard cannot read; use another version of it")
    return {module: tuple(functions) for module, functions in found.items()}


@lru_cache(maxsize=4096)
def _function(text: str) -> MirFunction:
    """A function by its head, with the calls in its body if that is there, too."""
    head, *body = CHARACTER_PATTERN.sub("'_'", text).split("\n")
    header = FUNCTION_PATTERN.match(head)
    path = header["path"] if header else head.partition(" ")[2]
    parameters = _parameters(header["parameters"] or "") if header else {}
    return MirFunction(path, tuple(parameters.values()), tuple(_calls(body, parameters)))


def _parameters(text: str) -> dict[str, str]:
    _, *pieces = PARAMETER_PATTERN.split(text)
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def _calls(body: Sequence[str], parameters: dict[str, str]) -> Iterator[MirCall]:
    """The calls in the lines of the body of a function."""
    types = dict(parameters)
    for line in body:
        if "let " in line and (local := LOCAL_PATTERN.match(line)):
            types[local["name"]] = local["type"]
        elif ") -> " in line and (found := CALL_PATTERN.match(line)):
            call = found["call"]
            callee = call[: _top_level(call, "(")]
            given = VARIABLE_PATTERN.sub(lambda name: types.get(name[0], ""), call[len(callee) :])
            yield MirCall(*_callee(callee), types.get(found["result"], ""), given)


@lru_cache(maxsize=4096)
def _callee(callee: str) -> tuple[str, str, str, str]:
    """Of the text of a function that is called: receiver, trait, operand and path, as in `MirCall`."""
    if not callee.startswith("<"):
        return "", "", "", callee
    inner = callee[1 : closing_bracket(callee)]
    receiver_end = _top_level(inner, " as ")
    receiver, trait = inner[:receiver_end], inner[receiver_end + 4 :]
    trait_end = _top_level(trait, "<")
    operand = trait[trait_end + 1 : -1]
    operand = operand[: _top_level(operand, ", ")]
    method = callee[len(inner) + 2 :].removeprefix("::")
    return receiver, trait[:trait_end], operand, method


def _top_level(text: str, mark: str) -> int:
    """Where a mark stands outside of all brackets; the end of the text when it does not."""
    depth = 0
    for found in MARK_PATTERNS[mark].finditer(text):
        if not depth and found[0] == mark:
            return found.start()
        depth += BRACKET_DEPTHS.get(found[0], 0)
    return len(text)


def closing_bracket(text: str) -> int:
    """Where the bracket that begins a text is closed."""
    depth = 0
    for found in BRACKET_PATTERN.finditer(text):
        depth += BRACKET_DEPTHS.get(found[0], 0)
        if not depth:
            return found.start()
    return len(text)


@lru_cache(maxsize=4096)
def path_names(path: str) -> tuple[str, ...]:
    """The names of a path, without their parameters: `m`, `Stack`, `push` for `m::Stack::<i32>::push`."""
    names: list[str] = []
    depth = 0
    for found in NAME_PATTERN.finditer(path):
        if found.lastgroup:
            names += () if depth else (found[0],)
        else:
            depth += BRACKET_DEPTHS.get(found[0], 0)
    return tuple(names) or ("",)
