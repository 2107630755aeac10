"""Three short hot paths, carried out under callgrind, which writes down how many instructions each takes.

    valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file=FILE python counted_paths.py

FILE.1, FILE.2 and so on hold the counts, each with the name of its path. Everything before the first path runs uncounted.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
from collections.abc import Callable

from steelyard.analysis.attempts import AttemptTableBuilder
from steelyard.records import Answer, Attempt, Case, Expectations, Finding, Reply, RunInfo, Verdict, Verify
from steelyard.verifiers.code.join_stub import code_from_reply

STUB = 'from typing import List\n\n\ndef total(numbers: List[int]) -> int:\n    """The sum of the even ones."""\n'
REPLY = f"The sum skips odd numbers:\n\n```python\n{STUB}    return sum(n for n in numbers if n % 2 == 0)\n```\nThat is all.\n"
CASE = Case(
    id="total",
    prompt="Complete the function.",
    language="python",
    expectations=Expectations(test_file="assert total([1, 2]) == 2"),
    verify=Verify(stub=STUB, entry_point="total"),
)
FACTS = [
    fact
    for number in range(1, 21)
    for fact in (
        Reply(
            key=f"k{number}",
            at="2026-01-01T00:00:00",
            case="total",
            model="m",
            number=number,
            asked="q",
            answer=Answer(text=REPLY, input_tokens=100, output_tokens=50, latency=0.5),
        ),
        Verdict(
            key=f"v{number}",
            at="2026-01-01T00:00:01",
            case="total",
            model="m",
            number=number,
            ask=f"k{number}",
            tests=CASE.tests_digest,
            verifier="python 1, CPython",
            found=Finding(code="x", compiled=True, passed=number % 2 == 0, isolation="full", trust="isolated"),
        ),
    )
]
INFO = RunInfo(id="counted", started_at="", models=("m",), names=("m",), k=(1,))


def extracted_code() -> None:
    """The code of a reply, joined to its stub."""
    assert code_from_reply(CASE, REPLY).code


def attempt_keys() -> None:
    """The ask keys of ten attempts, as every plan and every resumed run computes them."""
    assert len({Attempt(case=CASE, model="m", number=number).key for number in range(10)}) == 10


def attempt_rows() -> None:
    """The rows of a run of twenty attempts from its facts."""
    builder = AttemptTableBuilder(INFO, [CASE])
    for place, fact in enumerate(FACTS):
        builder.add(place, fact)
    assert len(builder.table().rows) == 20


PATHS: tuple[Callable[[], None], ...] = (extracted_code, attempt_keys, attempt_rows)

CLIENT_REQUESTS = {
    "x86_64": bytes.fromhex("4889f831d248c1c70348c1c70d48c1c73d48c1c7334887db4889d0c3"),
    "aarch64": struct.pack(
        "<9I",
        *(0xAA1F03E3, 0xAA0003E4, 0x93CC0D8C, 0x93CC358C, 0x93CCCD8C, 0x93CCF58C, 0xAA0A014A, 0xAA0303E0, 0xD65F03C0),
    ),
}
"""The instructions by which a program asks valgrind for something, as valgrind.h has them; anywhere else they do nothing."""
ZERO, DUMP, START, STOP = (0x43540000 + number for number in (1, 3, 4, 5))


class Callgrind:
    """Sends requests to callgrind; without valgrind nothing comes of them."""

    def __init__(self) -> None:
        self._place = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._place.write(CLIENT_REQUESTS[platform.machine()])
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._place))
        self._function = ctypes.CFUNCTYPE(ctypes.c_ulong, ctypes.c_void_p)(address)

    def send(self, request: int, text: bytes = b"") -> None:
        words = (ctypes.c_ulong * 6)(request, ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value or 0)
        self._function(ctypes.addressof(words))


def main() -> None:
    callgrind = Callgrind()
    for path in PATHS:
        path()  # the first time fills caches
    callgrind.send(START)
    for path in PATHS:
        callgrind.send(ZERO)
        path()
        callgrind.send(DUMP, path.__name__.encode())
    callgrind.send(STOP)


if __name__ == "__main__":
    main()
