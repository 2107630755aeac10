"""Runs one answer against its tests, inside the sandbox.

A script of its own: it is started without steelyard or any other package in reach. The job comes on standard input,
one line of JSON per result goes to the original standard output, and what the answer prints goes elsewhere.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would cost every attempt two milliseconds
    from typing import Any


def main() -> None:
    """Do the job on standard input."""
    job = json.load(sys.stdin)
    results = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    os.dup2(2, 1)

    def tell(**fact: object) -> None:
        results.write(job["nonce"] + json.dumps(fact, ensure_ascii=False) + "\n")
        results.flush()

    tell(started=True)
    names: dict[str, Any] = {"__name__": "answer"}
    started = time.perf_counter()
    try:
        code = compile(job["code"], "answer.py", "exec")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        tell(compiled=False, error=said(error), line=getattr(error, "lineno", None))
        return
    tell(compiled=True, seconds=time.perf_counter() - started)
    try:
        exec(code, names)
    except BaseException as error:
        tell(raised=said(error), trace=traceback.format_exc()[-2000:])
        return
    for number, step in enumerate(job["steps"]):
        started = time.perf_counter()
        try:
            wrong = run(step, names)
        except BaseException as error:
            wrong = said(error)
        if step["test"]:
            tell(test=number, wrong=wrong, seconds=time.perf_counter() - started)
        elif wrong:
            tell(setup=wrong)
            return
    tell(finished=True)


def run(step: dict[str, Any], names: dict[str, Any]) -> str:
    """What is wrong, or nothing."""
    if "left" in step:
        left = eval(step["left"], names)
        right = eval(step["right"], names)
        if left == right:
            return ""
        return f"got {short(left)}, expected {short(right)}"
    exec(step["source"], names)
    return ""


def said(error: BaseException) -> str:
    """The exception in words, whatever it does to avoid that."""
    try:
        text = str(error)
    except BaseException:
        text = "(an exception that cannot be printed)"
    return f"{type(error).__name__}: {text[:500]}" if text else type(error).__name__


def short(value: object) -> str:
    """A value as a reader wants to see it."""
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "..."


if __name__ == "__main__":
    sys.setrecursionlimit(1000)
    main()
