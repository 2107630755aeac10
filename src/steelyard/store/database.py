"""A database in memory that spills to disk, reaches no network, and reports errors in one sentence."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from steelyard.errors import StoreError

if TYPE_CHECKING:
    import duckdb

Result = TypeVar("Result")


def import_duckdb() -> Any:
    """The database's library; signals wait until it is loaded, because an interrupt in the midst of that aborts the process."""
    waiting = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    try:
        import duckdb
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, waiting)
    return duckdb


def open_database(scratch: str, memory: str, *, threads: int) -> duckdb.DuckDBPyConnection:
    """An empty database without network that uses this much memory and then spills to a folder."""
    database: duckdb.DuckDBPyConnection = import_duckdb().connect(
        config={
            "threads": threads,
            "memory_limit": memory,
            "temp_directory": scratch,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    # a progress bar would end up in the output
    database.execute("SET enable_progress_bar = false")
    return database


def call_interruptibly(database: duckdb.DuckDBPyConnection, call: Callable[[], Result]) -> Result:
    """What a call to the database returns; Ctrl-C interrupts the query."""
    from concurrent.futures import ThreadPoolExecutor, wait

    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(call)
        try:
            return coming.result()
        except BaseException:
            # the database ignores signals, and an interrupt works only once the query has begun
            while not coming.done():
                database.interrupt()
                wait([coming], timeout=0.1)
            raise


def error_line(error: Exception) -> str:
    """What the database says, on one line; it may quote what a model wrote."""
    message = str(error).partition("\n\nLINE ")[0]
    return " ".join("".join(letter if letter.isprintable() else " " for letter in message[:600]).split())


def sql_string(text: str) -> str:
    """A text within a statement."""
    return "'" + require_utf8(text).replace("'", "''") + "'"


def sql_identifier(column: str) -> str:
    """The name of a column within a statement."""
    return '"' + require_utf8(column).replace('"', '""') + '"'


def require_utf8(text: str) -> str:
    """The same text, if it is UTF-8, which is all that the database accepts."""
    try:
        text.encode()
    except UnicodeEncodeError:
        where = text.encode(errors="backslashreplace").decode()
        raise StoreError(f"{where}: a name that is not UTF-8, which the database cannot open; rename it") from None
    return text


def escape_glob(path: Path | str) -> str:
    """A path that is not taken for a pattern."""
    return re.sub(r"[\[*?]", lambda letter: f"[{letter[0]}]", require_utf8(str(path)))
