"""The models that play users, each connected when it is needed first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from steelyard.engine.options import RunOptions
from steelyard.engine.pace import CircuitBreaker, ConcurrencyLimiter
from steelyard.engine.preflight.connect import connect
from steelyard.errors import InputError
from steelyard.protocols import Provider
from steelyard.records import Case


class AskedModel(NamedTuple):
    """Whom to ask, how fast, and until when."""

    # in the order in which `ask` takes them
    provider: Provider
    pace: ConcurrencyLimiter
    breaker: CircuitBreaker


class UserModels:
    """Whom to ask for the messages of simulated users."""

    def __init__(self, cases: Sequence[Case], means: RunOptions) -> None:
        self._names = {case.user.model for case in cases if case.user is not None}
        self._means = means
        self._asked: dict[str, tuple[str, AskedModel]] = {}

    @property
    def connected(self) -> list[Provider]:
        """The providers that were needed so far."""
        return [asked.provider for _, asked in self._asked.values()]

    def connect_all(self) -> dict[str, Provider]:
        """A provider for each of them by its full name; raises an InputError where one cannot be asked."""
        return dict(self._connected(name) for name in sorted(self._names))

    def asked(self, model: str) -> tuple[str, AskedModel]:
        """The full name of one of them, and whom to ask for it."""
        if model not in self._asked:
            name, provider = self._connected(model)
            at_once = min(provider.at_once, self._means.parallelism or provider.at_once)
            max_wait = self._means.settings.max_wait_secs
            pace = ConcurrencyLimiter(at_once, max_wait=max_wait)
            self._asked[model] = name, AskedModel(provider, pace, CircuitBreaker(max_wait))
        return self._asked[model]

    def _connected(self, model: str) -> tuple[str, Provider]:
        found = list(connect([model], self._means).items())
        if len(found) != 1:
            raise InputError(f'"{model}" stands for {len(found)} models; a simulated user is played by one')
        return found[0]
