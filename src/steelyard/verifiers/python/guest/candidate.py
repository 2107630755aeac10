"""The code under test: it is loaded here, called from outside, and knows nothing of any test.

Runs in a contained child of a zygote, on the standard library alone.
"""

from __future__ import annotations

import gc
import os
import socket
import sys

from steelyard.verifiers.python.guest.candidate_peer import (
    ANSWER_MODULE_NAMES,
    CandidatePeer,
    is_compilable,
)
from steelyard.verifiers.python.guest.start_method import fork_by_default
from steelyard.verifiers.python.guest.wire import REHEARSALS, MessageSocket, PeerGone, begin_random, load_random

PRELOADED_ANSWER_MODULES = ("bisect", "copy", "functools", "heapq", "itertools", "math", "re", "string", "typing")
"""What answers usually import: loaded once, so that no fork has to."""
for _module in PRELOADED_ANSWER_MODULES:
    __import__(_module)
load_random()
fork_by_default()

_PREPARED = CandidatePeer(-1)
"""Made once: what a fork need not do costs it nothing."""


def rehearse() -> None:
    """Load and call a small answer a few times: what the interpreter learns from that, every fork knows."""
    tests, answer = (side.detach() for side in socket.socketpair())
    asking, candidate = MessageSocket(tests), CandidatePeer(answer)
    for number in range(REHEARSALS):
        asking.send(["load", "def double(items):\n    return [2 * item for item in items]\n", ["double"], False])
        candidate.load(*candidate.receive()[1:3])
        asking.send(["ask", 0, "call", [{"h": number}, [1, 2]], []])
        candidate.answer(candidate.next_message(0))
        candidate.do_calls(["double"], [[0, [[1, 2]], []]])
        asking.receive()
    for name in ANSWER_MODULE_NAMES:
        del sys.modules[name]
    os.close(tests)
    os.close(answer)


def main(fds: list[int]) -> None:
    """Load the answer that comes first, then do what is asked until no more requests come."""
    begin_random()
    gc.enable()  # an answer may make circles, as anywhere else
    candidate = _PREPARED
    candidate.begin(fds[0])
    try:
        job = candidate.receive()
        if job[0] == "compile":
            candidate.send([is_compilable(code) for code in job[1]])
            os._exit(0)
        _, code, names, threads, *calls = job
        if candidate.load(code, names) is not None:
            if calls:
                candidate.do_calls(names, calls[0])
            else:
                candidate.work(threads=threads)
    except PeerGone:
        pass
    os._exit(0)
