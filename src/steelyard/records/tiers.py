"""An experiment: the same cases under several tiers."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from steelyard.records.base import Amount, AttemptNumber, Record


class Tier(Record, frozen=True, kw_only=True):
    """One set-up that is compared with others: how a case is put, and to whom."""

    name: str
    """What tables call it, such as `T0`."""
    title: str = ""
    """A short description."""
    model: str = ""
    """Provider and model; for an agent the name of the model that it uses, where reports should show one."""
    system: str = ""
    prompt: str = ""
    """A template around the case's own prompt, `{{prompt}}`; the prompt alone when left out."""
    parameters: dict[str, Any] = {}
    """Sent with each request, after those of the whole experiment."""
    files: dict[str, str] = {}
    """Put into an agent's workspace beside the case's own: skills, notes, tools."""
    agent: str = ""
    """The command line of a program that works in a copy of the case's workspace; a model is asked when left out."""
    environment: dict[str, str] = {}
    """For an agent: variables that are added to our environment."""
    timeout_secs: Amount = 600
    """For an agent: how long one attempt may take."""
    attempt_budget_usd: Amount | None = None
    """For an agent: an attempt that reports a higher cost is ended there."""
    max_turns: AttemptNumber | None = None
    """For an agent: an attempt that reports more turns is ended there."""
    case_budget_usd: Amount | None = None
    """No attempt at a case is begun that could make all attempts at it cost more."""
    budget_usd: Amount | None = None
    """The same for all attempts under this tier."""


class InheritingTier(Record, frozen=True, kw_only=True):
    """A tier that extends the best of others, which is known only when they were run."""

    own: Tier
    """What it says itself."""
    given: tuple[str, ...]
    """The fields that it says itself."""
    extends: tuple[str, ...]
    """The tiers whose best it extends."""

    def on(self, base: Tier) -> Tier:
        """The tier with what it takes over from this one."""
        return extended_tier(base, self.own, self.given)


class Experiment(Record, frozen=True, kw_only=True):
    """The same cases under several tiers."""

    id: str
    name: str = ""
    tiers: tuple[Tier, ...]
    """The others are compared with the first."""
    inheriting: tuple[InheritingTier, ...] = ()
    """Tiers that are added once the tiers are decided that they extend."""
    winners: dict[str, str] = {}
    """The tier that was the best of those that a tier could extend, by the name of the tier that extends it."""
    pass_weight: float = 0.5
    impl_weight: float = 0.5
    """The weights of passing and of the judges' score in the composite."""
    budget_usd: float | None = None
    """The most that may be spent on it, judges included, unless somebody says otherwise when it is carried on."""


def extended_tier(base: Tier, own: Tier, given: Container[str]) -> Tier:
    """A tier with what it leaves out taken from another; parameters, files and environment are merged.

    >>> tier = extended_tier(Tier(name="T0", model="a/b", system="x"), Tier(name="T1", system="y"), {"name", "system"})
    >>> tier.name, tier.model, tier.system
    ('T1', 'a/b', 'y')
    """
    values = {name: getattr(base, name) for name in Tier.__struct_fields__ if name not in ("name", "title")}
    for name in Tier.__struct_fields__:
        if name in given:
            said = getattr(own, name)
            values[name] = {**values.get(name, {}), **said} if isinstance(said, dict) else said
    if own.agent and "model" not in given:
        values["model"] = ""  # the model of the base tier is not the one that the agent asks
    return Tier(**values)
