"""The code under test: it is loaded here, called from outside, and knows nothing of any test.

Runs in a contained child of a zygote, on the standard library alone.
"""

from __future__ import annotations

import gc
import os
import random

from steelyard.verifiers.python.candidate_peer import CandidatePeer
from steelyard.verifiers.python.wire import PeerGone

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
        if candidate.load(job[1], job[2]) is not None:
            candidate.work(threads=job[3])
    except PeerGone:
        pass
    os._exit(0)
