"""What is as the interpreter and the library made it: code by the file that it claims to be in, dicts by their memory.

The code that an exception or a comparison came through is known by the names of files, so an answer must not be able
to make code with such a name: compiled, unmarshalled, renamed, or loaded from a file that it wrote.
"""

from __future__ import annotations
import __future__

import ast
import ctypes
import functools
import gc
import io
import marshal
import operator
import os
import types

from steelyard.verifiers.python.guest.fairness import LIBRARY_FOLDERS
from steelyard.verifiers.python.guest.test_rewriter import TESTS_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from typing import Any

PYC_HEADER_BYTES = 16
IMPORT_SYSTEM = "<frozen importlib"
FUTURE_FLAGS = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
"""What a text that is compiled inherits from the code that compiles it."""
_open, _loads, _realpath = io.FileIO, marshal.loads, os.path.realpath


def is_trusted_name(file: object) -> bool:
    """Whether code with this file name counts as the library's, the tests' or ours; a subclass of str could claim that later."""
    if type(file) is not str:
        return True
    return file == TESTS_FILE or file.startswith(("steelyard.", "<frozen ", *LIBRARY_FOLDERS))


def is_library_file(path: object) -> bool:
    """Whether a file is really in the library, whatever its name says."""
    return type(path) is str and _realpath(path).startswith(LIBRARY_FOLDERS)


def is_forged_source(source: object, file: object, caller: Any) -> bool:
    """Whether a text that is compiled is given a name that it has no right to."""
    if caller.f_code is compiled_trees.__code__ or not is_trusted_name(file):
        return False
    is_import = caller.f_code.co_filename.startswith(IMPORT_SYSTEM)
    return not (is_import and is_library_file(file) and _content(file) == source)


def compiled_trees(compile_source: Callable[..., Any]) -> Generator[Any, Any, None]:
    """Compiles syntax trees under reserved names: audit hooks do not get the file name of a tree."""
    given = yield
    while True:
        source, file, mode, *numbers = given
        try:
            # what is not plain could run code of the answer's while this frame is the one that asks
            if [type(file), type(mode), *map(type, numbers)] != [str, str, int, int] or is_trusted_name(file):
                result: Any = RuntimeError("a syntax tree cannot be compiled under this name here")
            else:
                result = compile_source(source, file, mode, numbers[0], True, numbers[1])
        except BaseException as error:
            result = error.with_traceback(None)
        given = source = None
        given = yield result


def checking_compile(compile_source: Any, compile_tree: Any, see: Any, decoded: Any) -> Any:
    """The `compile` of answers and tests: it passes trees to our checked compiler, and texts to the original."""
    tree_kind, future_flags = ast.AST, FUTURE_FLAGS

    def compile(  # noqa: A001  answers know it by this name
        source: Any,
        filename: Any,
        mode: Any,
        flags: int = 0,
        dont_inherit: bool = False,
        optimize: int = -1,
        *,
        _feature_version: int = -1,
    ) -> Any:
        if not dont_inherit:
            flags |= see(0).f_code.co_flags & future_flags
        if not isinstance(source, tree_kind):
            return compile_source(source, filename, mode, flags, True, optimize, _feature_version=_feature_version)
        result = compile_tree((source, decoded(filename), mode, flags, optimize))
        if isinstance(result, BaseException):
            raise result
        return result

    return compile


def is_forged_bytecode(data: bytes, caller: Any) -> bool:
    """The same for code that was compiled elsewhere."""
    named = None
    if caller.f_code.co_filename.startswith(IMPORT_SYSTEM):
        path, named = caller.f_locals.get("bytecode_path"), caller.f_locals.get("source_path")
        if is_library_file(path) and _content(path)[PYC_HEADER_BYTES:] == data:
            return False
    try:
        made = _loads(data)
    except Exception:
        return False  # what cannot be read makes no code
    codes = list(_codes(made))
    return any(is_trusted_name(code.co_filename) for code in codes) or (
        bool(codes) and named is not None and is_trusted_name(named)
    )


def is_forged_name(code: Any, file: object, caller: Any) -> bool:
    """The same for code that is given another name, as the import system does with what was compiled in another folder."""
    if not is_trusted_name(file):
        return False
    data, path = caller.f_locals.get("data"), caller.f_locals.get("bytecode_path")
    if not is_library_file(path) or not isinstance(data, bytes | bytearray | memoryview):
        return True
    held = bytes(data)
    return _content(path)[PYC_HEADER_BYTES:] != held or _loads(held) != code


def _content(path: Any) -> bytes:
    try:
        with _open(path) as file:
            return file.readall()
    except OSError:
        return b""


def _codes(made: Any) -> Iterator[types.CodeType]:
    if isinstance(made, types.CodeType):
        yield made
        made = made.co_consts
    if isinstance(made, dict):
        made = [*made, *made.values()]
    if isinstance(made, tuple | list | set | frozenset):
        for one in made:
            yield from _codes(one)


STORES_TO_SEE = 50
"""How often something is stored until the interpreter runs that in its fastest form."""
COUNTER_BYTES = dict.__basicsize__ - object.__basicsize__
POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)
_joined = b"".join
"""Bound before an answer may change what `join` is."""


def _numbers_changes() -> bool:
    """Whether this interpreter does so, in code that it has made faster, too."""
    things: tuple[Any, ...] = (types.ModuleType("module"), type("kind", (), {"value": None}))
    seen = set()
    for thing in things:
        counter = MemoryWatch([id(own_dict(thing)) + object.__basicsize__], COUNTER_BYTES)
        for number in range(STORES_TO_SEE):
            thing.value = str(number)
            seen.add(counter.look())
    return len(seen) == 2 * STORES_TO_SEE


def own_dict(thing: Any) -> dict[str, Any]:
    """The dict of a module or a class itself, not a view of it."""
    names: Any = vars(thing)
    held: dict[str, Any] = gc.get_referents(names)[0] if isinstance(thing, type) else names
    return held


class MemoryWatch:
    """Parts of the memory of objects, and whether they were changed since they were looked at.

    Whoever reads an object counts references, which copies its page in a forked process; this touches nothing.
    """

    def __init__(self, addresses: Iterable[int], size: int) -> None:
        self._size = size
        self._parts = tuple(map((ctypes.c_char * size).from_address, addresses))
        self.look()

    def look(self) -> bytes:
        """What is there; watch for changes from now on."""
        self._before = _joined(self._parts)
        return self._before

    def changed(self, first: int = 0) -> Iterable[int]:
        """The places of those behind the first ones that were changed."""
        size, now = self._size, _joined(self._parts[first:])
        before = self._before[first * size :]
        bounds = [] if now == before else [slice(begin, begin + size) for begin in range(0, len(now), size)]
        return [first + place for place, part in enumerate(bounds) if now[part] != before[part]]


class DictWatch(MemoryWatch):
    """Dicts that may have been changed, by the number that the interpreter gives to each change (PEP 509); without one, all."""

    def __init__(self, dicts: Iterable[dict[str, Any]]) -> None:
        self._dicts = tuple(dicts)  # what is watched must live on
        super().__init__((id(watched) + object.__basicsize__ for watched in self._dicts), COUNTER_BYTES)

    def changed(self, first: int = 0) -> Iterable[int]:
        """The places of those behind the first ones that may have been changed."""
        return super().changed(first) if NUMBERS_CHANGES else range(first, len(self._dicts))


NUMBERS_CHANGES = _numbers_changes()
