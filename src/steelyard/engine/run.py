"""A run from its first question to its summary."""

from __future__ import annotations

import platform
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steelyard import evalsets, store
from steelyard import settings as settings_module
from steelyard.engine.budget import most_tokens
from steelyard.engine.plan import plan
from steelyard.engine.pool import complete
from steelyard.engine.query import opinions
from steelyard.engine.sitting import Means, Sitting
from steelyard.engine.steps import now
from steelyard.engine.verifying import Verifying, in_environment
from steelyard.errors import InputError, SteelyardError, StoreError
from steelyard.plugins import part
from steelyard.prices import Prices
from steelyard.records import Case, EvalSetFile, Rule, RunInfo, SuiteRule, Until
from steelyard.scoring import rule as known_rule
from steelyard.summary import Summary, summarise

if TYPE_CHECKING:
    from steelyard.protocols import Provider


class Run(NamedTuple):
    """A run that has come to its end for now."""

    folder: Path
    info: RunInfo
    summary: Summary
    stopped: tuple[str, ...]
    """Why attempts are still owed, where that was not their own failure."""
    notes: tuple[str, ...] = ()
    """What else went wrong, without harm to the results."""
    out_of_budget: bool = False
    """Whether attempts are owed for want of money."""

    @property
    def complete(self) -> bool:
        return not self.stopped


class Forecast(NamedTuple):
    """What one model would be asked."""

    model: str
    cases: int
    attempts: int
    most_usd: float | None
    """The most it can cost; None when the price is not known."""


class Interrupted(KeyboardInterrupt):
    """The user stopped a run; what had arrived is stored."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.folder = folder


def run(
    cases: Sequence[Case] | Sequence[str | Path] | str | Path,
    *,
    models: Sequence[str] | str,
    samples: int | None = None,
    k: Sequence[int] = (1,),
    parameters: Mapping[str, Any] | None = None,
    system: str = "",
    seed: int | None = None,
    rule: str = "",
    rules: Sequence[Rule] = (),
    suites: SuiteRule | None = None,
    base_url: str = "",
    eval_sets: Sequence[EvalSetFile] = (),
    output: str | Path | None = None,
    until: Until | None = None,
    means: Means = Means(),
) -> Run:
    """Ask models for attempts at each case, verify every one, and say what came of it.

    `cases` are cases, or paths of eval sets; `eval_sets` are the files that cases were loaded from, if any, and `rules`
    their own rules. `samples` is the number of attempts per case and model: by default the largest k, and of recorded
    replies all of them. `rule` is by default the one that the eval sets want, else `code`.
    """
    sets = _cases(cases)
    loaded, own = sets.cases, (*rules, *sets.rules)
    rule = rule or sets.rule or "code"
    given = [models] if isinstance(models, str) else list(models)
    known_rule(rule, own)
    _check(loaded, k, samples, means)
    providers = connect(given, means, base_url)
    recorded = any(provider.available(loaded[0].id) is not None for provider in providers.values())
    started_at = now()
    run_id = f"{started_at[:19].replace('-', '').replace(':', '').replace('T', '-')}-{secrets.token_hex(2)}"
    prices = Prices(means.settings.prices)
    info = RunInfo(
        id=run_id,
        started_at=started_at,
        eval_sets=tuple(eval_sets) or sets.files,
        models=tuple(given),
        names=tuple(providers),
        base_url=base_url,
        parameters=dict(parameters or {}),
        system=system,
        samples=samples if samples is not None or recorded else max(k),
        until=until,
        k=tuple(sorted(set(k))),
        seed=seed,
        rule=rule,
        rules=own,
        suites=suites or SuiteRule(),
        versions={
            "steelyard": version("steelyard"),
            "python": platform.python_version(),
            "system": platform.platform(),
        },
        prices={model: price for model in providers if (price := prices.price(model)) is not None},
        unrecorded=_unrecorded(loaded, providers),
    )
    _check_prices(providers, means)
    folder = Path(output) if output is not None else Path(means.settings.output_dir) / run_id
    journal = store.create(folder, info, loaded)
    return _finish(journal, providers, means)


def forecast(
    cases: Sequence[Case],
    *,
    models: Sequence[str],
    samples: int | None,
    k: Sequence[int],
    parameters: Mapping[str, Any],
    system: str,
    base_url: str,
    means: Means = Means(),
) -> list[Forecast]:
    """What a run would ask, and the most it can cost; nobody is asked."""
    _check(cases, k, samples, means)
    providers = connect(models, means, base_url)
    prices = Prices(means.settings.prices)
    info = RunInfo(id="", started_at="", samples=samples, k=tuple(k), parameters=dict(parameters), system=system)
    forecasts = []
    for model, provider in providers.items():
        attempts = list(plan(info, cases, {model: provider}))
        bounds = [prices.bound(model, *most_tokens(attempt)) for attempt in attempts]
        known = [bound for bound in bounds if bound is not None]
        forecasts.append(Forecast(model, len(cases), len(attempts), sum(known) if len(known) == len(bounds) else None))
    return forecasts


def resume(
    folder: str | Path,
    *,
    samples: int | None = None,
    more: Mapping[str, Mapping[str, int]] | None = None,
    means: Means = Means(),
) -> Run:
    """Carry on with what a run still owes, failures included; more samples than before extend it.

    `more` plans more attempts at some cases alone, by model and case.
    """
    journal = _reopened(folder)
    try:
        info = journal.info
        _same_asks(journal.cases, info.eval_sets)
        if samples is not None and samples < (info.samples or 0):
            raise InputError(f"{folder}: has {info.samples} attempts per case already; --samples can only add to them")
        providers = connect(info.models, means, info.base_url)
        _check_prices(providers, means)
        _check_verifiers(journal.cases, means)
        if samples is not None or more is not None:
            planned = {model: dict(cases) for model, cases in (info.more if more is None else more).items()}
            journal.describe(
                msgspec.structs.replace(info, samples=info.samples if samples is None else samples, more=planned)
            )
    except BaseException:
        journal.close()
        raise
    return _finish(journal, providers, means)


def verify_again(folder: str | Path, *, eval_sets: Sequence[str | Path] = (), means: Means = Means()) -> Run:
    """Verify every stored reply again, with the tests as the eval set has them now; no model is asked."""
    journal = _reopened(folder)
    try:
        paths = eval_sets or [file.path for file in journal.info.eval_sets if evalsets.is_there(file.path)]
        if eval_sets or len(paths) == len(journal.info.eval_sets) > 0:
            journal.ask(_same_asks(journal.cases, (), paths))
    except BaseException:
        journal.close()
        raise
    return _finish(journal, {}, means)


def _reopened(folder: str | Path) -> store.Journal:
    """The journal of a run that is there; a folder that holds none stays as it is."""
    store.Stored(Path(folder)).info  # noqa: B018  it raises where there is no run
    return store.Journal(Path(folder))


def connect(models: Sequence[str], means: Means, base_url: str = "") -> dict[str, Provider]:
    """Whom to ask for each model: one name may stand for several, where replies were recorded."""
    providers: dict[str, Provider] = {}
    for model in models:
        name, rest, reached = settings_module.provider(model, means.settings, means.environment, base_url)
        for known, provider in part("providers", reached.type)(rest, reached).items():
            full = known if reached.type == "replay" else f"{name}/{known}"
            if full in providers:
                raise InputError(
                    f'model "{full}" was named twice; more attempts of one model are asked for with --samples'
                )
            providers[full] = provider
    if not providers:
        raise InputError("no model to ask; name one with --models, such as --models openai/gpt-5-mini")
    return providers


def _cases(given: Sequence[Case] | Sequence[str | Path] | str | Path) -> evalsets.EvalSets:
    if isinstance(given, str | Path):
        given = [given]
    cases = tuple(case for case in given if isinstance(case, Case))
    if len(cases) == len(given) and cases:
        return evalsets.EvalSets(cases, (), ())
    loaded = evalsets.load([path for path in given if not isinstance(path, Case)])
    return loaded._replace(cases=(*cases, *loaded.cases))


def _check(cases: Sequence[Case], k: Sequence[int], samples: int | None, means: Means) -> None:
    if not k or min(k) < 1:
        raise InputError(f"k must be 1 or more, not {min(k, default='nothing')}")
    if samples is not None and samples < 1:
        raise InputError(f"samples must be 1 or more, not {samples}")
    if not cases:
        raise InputError("no cases to ask")
    twice = [case for case, count in Counter(case.id for case in cases).items() if count > 1]
    if twice:
        raise InputError(f'case "{twice[0]}" was given twice; more attempts at one case are asked for with --samples')
    _check_verifiers(cases, means)


def _check_verifiers(cases: Sequence[Case], means: Means) -> None:
    there = in_environment(cases, means.python_env)
    Verifying(there, means).check(there)


def _check_prices(providers: Mapping[str, Provider], means: Means) -> None:
    if means.max_cost is None:
        return
    prices = Prices(means.settings.prices)
    unknown = [model for model in providers if prices.price(model) is None]
    if unknown:
        raise InputError(
            f"--max-cost cannot be kept: the price of {', '.join(unknown)} is not known; "
            f'give it in the settings file under [prices."{unknown[0]}"]'
        )


def _unrecorded(cases: Sequence[Case], providers: Mapping[str, Provider]) -> dict[str, int]:
    counts = {model: sum(provider.available(case.id) == 0 for case in cases) for model, provider in providers.items()}
    return {model: count for model, count in counts.items() if count}


def _same_asks(
    asked: Sequence[Case], files: Sequence[EvalSetFile], paths: Sequence[str | Path] | None = None
) -> list[Case]:
    """The cases that were asked with the tests they have now; refuses when what was asked is no longer what stands there."""
    if paths is None:
        paths = [file.path for file in files if evalsets.is_there(file.path)]
        if not paths:
            return list(asked)
    current = {case.id: case for case in evalsets.load(paths).cases}
    if current.keys().isdisjoint(case.id for case in asked):
        raise InputError(f"{', '.join(map(str, paths))}: holds none of the cases that this run asked")
    changed = [case.id for case in asked if case.id in current and case.messages != current[case.id].messages]
    if changed:
        listed = ", ".join(changed[:5]) + (", ..." if len(changed) > 5 else "")
        raise InputError(
            f"the prompt changed since this run asked: {listed}; a changed prompt is a new question: "
            "start a new run, or put the old prompt back"
        )
    return [msgspec.structs.replace(current.get(case.id, case), max_tokens=case.max_tokens) for case in asked]


def _finish(journal: store.Journal, providers: dict[str, Provider], means: Means) -> Run:
    try:
        with journal:
            sitting = Sitting(journal, providers, means)
            stopped = complete(sitting.carry_out())
            info = msgspec.structs.replace(journal.info, ended_at=now())
            journal.describe(info)
            summary = summarise(info, sitting.cases, journal.facts())
            notes = _copied(journal.folder)
            return Run(journal.folder, info, summary, stopped, notes, sitting.out_of_budget)
    except KeyboardInterrupt:
        raise Interrupted(journal.folder) from None
    except BaseExceptionGroup as group:
        # whatever else was cut short by it, the first of our own sentences says what happened
        ours, _ = group.split(SteelyardError)
        while isinstance(ours, BaseExceptionGroup):
            ours = ours.exceptions[0]  # type: ignore[assignment]
        raise (ours or group) from None


def _copied(folder: Path) -> tuple[str, ...]:
    """Write the Parquet copy; a run without it is whole all the same."""
    try:
        store.copy_to_parquet(folder, opinions)
    except StoreError as error:
        return (str(error),)
    return ()
