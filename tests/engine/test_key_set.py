"""Many keys in little memory."""

from __future__ import annotations

import tracemalloc

from steelyard.engine.plan import MAX_UNPACKED_KEYS, CompactKeySet
from steelyard.records import digest


def test_what_was_added_is_there_and_nothing_else_however_many_there_are() -> None:
    keys = CompactKeySet()
    assert not keys
    for count in (1, 100, MAX_UNPACKED_KEYS - 1, MAX_UNPACKED_KEYS, 3 * MAX_UNPACKED_KEYS + 5):
        keys = CompactKeySet()
        for number in range(count):
            keys.add(f"key {number}")
        assert keys
        probes = range(0, count, max(1, count // 1000))
        assert all(f"key {number}" in keys for number in probes)
        assert not any(f"key {count + number}" in keys for number in range(1000))
        assert f"key {count - 1}" in keys
        assert 7 not in keys


def test_a_key_may_be_any_text() -> None:
    keys = CompactKeySet()
    odd = ["", "\0", "ä", "\ud800", "x" * 10_000]
    for key in odd:
        keys.add(key)
    for number in range(MAX_UNPACKED_KEYS):
        keys.add(str(number))
    assert all(key in keys for key in odd)
    assert "X" not in keys


def test_many_keys_take_less_than_sixty_bytes_each() -> None:
    tracemalloc.start()
    try:
        keys = CompactKeySet()
        before = tracemalloc.get_traced_memory()[0]
        # three times what is kept unpacked: watching each allocation is slow
        for number in range(3 * MAX_UNPACKED_KEYS):
            keys.add(digest(number))
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert used / (3 * MAX_UNPACKED_KEYS) < 60
