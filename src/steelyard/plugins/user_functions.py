"""Functions of the user's own, found by their paths."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from steelyard.errors import InputError

examined_sources: dict[str, str] = {}
"""The SHA-256 digests of source files as they were when the user was asked about them, by their resolved paths."""


class UserFunction(NamedTuple):
    """A user's function, and the arguments that it takes."""

    body: Callable[..., Any]
    takes_both: bool
    is_async: bool

    async def call(self, text: str, context: Any) -> Any:
        """What it says of a text; the context is handed over if it asks for a second argument."""
        arguments = (text, context) if self.takes_both else (text,)
        return await (in_loop(self.body(*arguments)) if self.is_async else in_thread(self.body, *arguments))

    async def call_with(self, arguments: Mapping[str, Any]) -> Any:
        """What it returns for arguments by their names."""
        if self.is_async:
            return await in_loop(self.body(**arguments))
        return await in_thread(partial(self.body, **arguments))


def load_function(path: str) -> UserFunction:
    """The function at `file.py:name` or `package.module:name`, imported afresh."""
    module_name, _, name = path.rpartition(":")
    if not module_name or not name:
        raise InputError(f'{path}: not "file.py:function" or "module:function"')
    try:
        module = _from_file(module_name) if module_name.endswith(".py") else _from_path(module_name)
    except Exception as error:
        raise InputError(f"{path}: {type(error).__name__}: {error}") from error
    body = getattr(module, name, None)
    if not callable(body):
        raise InputError(f'{path}: {module_name} has no function "{name}"')
    taken = [
        parameter
        for parameter in inspect.signature(body).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    takes_both = len(taken) > 1 and (taken[1].default is taken[1].empty or taken[1].name in ("attempt", "case"))
    return UserFunction(body, takes_both, inspect.iscoroutinefunction(body))


def _from_file(file: str) -> Any:
    # the path as its name: no other module has that, and a dataclass looks itself up under it
    name = str(Path(file).resolve())
    spec = importlib.util.spec_from_file_location(name, file, loader=_UncachedSourceLoader(name, file))
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot read {file}")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _UncachedSourceLoader(SourceFileLoader):
    """Reads a file as it is now: a compiled one beside it may hold other code, or that of another second.

    A file that changed since the user was asked about it is not run.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        source = self.get_data(path)
        examined = examined_sources.get(str(Path(path).resolve()))
        if examined and examined != hashlib.sha256(source).hexdigest():
            raise ImportError(f"{path} changed after the question whether it may run; start the command again")
        return self.source_to_code(source, path)


class _UncachedModuleFinder(MetaPathFinder):
    """Finds the modules of one package by their sources; those of this Python's own folders are left to others."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != self.package:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or spec.origin is None:
            return None
        if any(Path(spec.origin).is_relative_to(folder) for folder in {sys.prefix, sys.base_prefix}):
            return None
        return importlib.util.spec_from_file_location(
            fullname,
            spec.origin,
            loader=_UncachedSourceLoader(fullname, spec.origin),
            submodule_search_locations=spec.submodule_search_locations,
        )


def _from_path(name: str) -> Any:
    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` does: the user's own module is in the current folder
    package = name.partition(".")[0]
    if not any(isinstance(finder, _UncachedModuleFinder) and finder.package == package for finder in sys.meta_path):
        sys.meta_path.insert(0, _UncachedModuleFinder(package))
    return importlib.import_module(name)


async def in_loop(called: Awaitable[Any]) -> Any:
    """Await an async function; its SystemExit, or a cancellation that we did not request, must not end our program."""
    try:
        return await called
    except SystemExit as error:
        raise RuntimeError(f"SystemExit: {error}") from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("CancelledError: the function was cancelled by its own code") from None


async def in_thread(body: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a thread of its own: one that hangs must not hold up the end of a run, as a pool's would."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def end(returned: Any, error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result((returned, error))

    def work() -> None:
        returned: Any = None
        error: BaseException | None = None
        try:
            returned = body(*arguments)
        except BaseException as raised:  # noqa: BLE001  it is raised again where someone waits for it
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed, so there is no waiter
            loop.call_soon_threadsafe(end, returned, error)

    threading.Thread(target=work, daemon=True).start()
    returned, error = await ended
    if error is not None:
        # what would end a program must not end ours
        raise error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
    return returned
