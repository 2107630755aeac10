"""What several kinds of tests need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fault_server import FaultServer


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running
