"""The sandbox of all tests of Python answers ends with them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import python_answers


# once: a worker that steals tests comes back to a module that it had left
@pytest.fixture(scope="session", autouse=True)
def _closed() -> Iterator[None]:
    yield
    python_answers.close()
