"""The code under test: it is loaded here, called from outside, and knows nothing of any test.

Runs in a contained child of a zygote, on the standard library alone.
"""

from __future__ import annotations

import gc
import io
import os
import random
import sys
import types

from steelyard.verifiers.python.candidate_peer import CandidatePeer
from steelyard.verifiers.python.wire import PeerGone, exception_text

PRELOADED_ANSWER_MODULES = ("bisect", "copy", "functools", "heapq", "itertools", "math", "re", "string", "typing")
"""What answers usually import: loaded once, so that no fork has to."""
for _module in PRELOADED_ANSWER_MODULES:
    __import__(_module)


def main(fds: list[int]) -> None:
    """Load the answer that comes first, then do what is asked until no more requests come."""
    random.seed(0)
    gc.enable()  # an answer may make circles, as anywhere else
    candidate = CandidatePeer(fds[0])
    try:
        job = candidate.receive()
        if job[0] == "program":
            run_program(candidate, job[1], job[2])
        elif candidate.load(job[1], job[2]) is not None:
            candidate.work(threads=job[3])
    except PeerGone:
        pass
    os._exit(0)


def run_program(candidate: CandidatePeer, code: str, stdin: str) -> None:
    """Run the answer as a program of its own, with this on its standard input."""
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", "replace", line_buffering=False)
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogateescape")), "utf-8")
    try:
        compiled = compile(code, "answer.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        candidate.send(["not compiled", exception_text(error), getattr(error, "lineno", None)])
        return
    candidate.send(["compiled", 0])
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    wrong = ""
    try:
        exec(compiled, module.__dict__)
    except SystemExit as error:
        wrong = f"exit code {error.code}" if error.code else ""
    except BaseException as error:
        wrong = exception_text(error)
    try:
        sys.stdout.flush()
    except BaseException as error:
        wrong = wrong or exception_text(error)
    candidate.send(["ran", wrong])
