"""Functions of the user's own, found by their paths."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import inspect
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from steelyard.errors import InputError


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
    """Reads a file as it is now: what Python keeps compiled is taken for it if it was as long within the same second."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _from_path(name: str) -> Any:
    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` does: the user's own module is in the current folder
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
