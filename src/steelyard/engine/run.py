"""A run from its first question to its summary."""

from __future__ import annotations

import inspect
import platform
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import msgspec

from steelyard import evalsets
from steelyard.analysis.scoring import find_rule
from steelyard.analysis.summary import Summary
from steelyard.comparison.gate import CANNOT_TELL, Decision
from steelyard.engine.asking.batches import NOTHING_HELD, run_batches
from steelyard.engine.options import RunOptions
from steelyard.engine.plan import plan_notes, shard_cases, shard_record, with_current_plan
from steelyard.engine.plugin_guard import guarded_plugin
from steelyard.engine.pool import run_coroutine
from steelyard.engine.preflight.connect import (
    check_named_options,
    check_parameters,
    check_plan,
    check_prices,
    check_verifiers,
    connect,
    started_in,
    unavailable_cases,
    uncontained_agents,
    unmatched_reply_notes,
)
from steelyard.engine.preflight.conversations import check_conversations
from steelyard.engine.preflight.named_code import case_code, model_code, own_code, settings_code
from steelyard.engine.preflight.reply_cache import use_reply_cache
from steelyard.engine.preflight.rubric_judges import connect_judges, with_judges
from steelyard.engine.results.conclusion import (
    Conclusion,
    OnInconclusive,
    gate_conclusion,
    next_commands,
    run_conclusion,
)
from steelyard.engine.results.frames import attempt_frame
from steelyard.engine.results.headline_cache import summarise_and_cache
from steelyard.engine.session import Session
from steelyard.engine.verifier_processes.shared_verdicts import SharedVerdicts
from steelyard.engine.verifiers import VerifierSet, with_python_env
from steelyard.errors import ExitCode, InputError, SteelyardError
from steelyard.plugins import explain_plugin_errors, load_plugin
from steelyard.protocols import Pool, PoolFactory, Provider
from steelyard.providers.prices import Prices
from steelyard.records import Case, EvalSetFile, Rule, RunInfo, StoppingRule, SuiteRule, Trust
from steelyard.reports.figures import metric_rows, model_label
from steelyard.reports.tables import html_table, html_text
from steelyard.reports.terminal import summary_text
from steelyard.store.files import now
from steelyard.store.journal import Journal, create_run, make_run_folder
from steelyard.store.side_files import reference_trust, witness_counts, witness_results
from steelyard.store.stored_cases import StoredCases, chosen_cases
from steelyard.text import counted


class Run(NamedTuple):
    """A run that has ended for now."""

    folder: Path
    info: RunInfo
    summary: Summary
    stopped: tuple[str, ...]
    """Why attempts are still owed, where that was not their own failure."""
    notes: tuple[str, ...] = ()
    """Other problems, which do not affect the results."""
    out_of_budget: bool = False
    """Whether attempts are owed because the budget is spent."""
    plan_notes: tuple[str, ...] = ()
    """Notes about the plan from before the first request."""
    decision: Decision | None = None
    """What the gate decided that ended it; None where none was asked."""
    decision_text: str = ""
    """The same in words, with what that saved."""

    @property
    def complete(self) -> bool:
        return not self.stopped

    @property
    def exit_code(self) -> ExitCode:
        """How a command ends that made this run."""
        return self.conclusion().exit_code

    @property
    def next_commands(self) -> list[str]:
        """What a reader most likely wants to type next."""
        return next_commands(self.folder, self.info, self.summary)

    def frame(self, library: str = "pandas") -> Any:
        """One row per attempt: a frame of `pandas` or `polars`, or a table of `arrow`."""
        return attempt_frame(self.folder, library)

    def _repr_html_(self) -> str:
        """The models side by side, as a notebook shows them."""
        models = self.summary.models
        rows = ((row.name, *row.cells) for row in metric_rows(models))
        table = html_table([self.folder.name, *(model_label(model.model, model.tier) for model in models)], rows)
        return table + (html_text(self.decision_text) if self.decision_text else "")

    def __str__(self) -> str:
        """What the command prints."""
        shown = summary_text(
            self.summary,
            title=str(self.folder),
            next_commands=self.next_commands,
            width=shutil.get_terminal_size((100, 40)).columns,
            color=False,
        )
        return f"{shown}\n{self.decision_text}".rstrip()

    def conclusion(self, *, fail_under: float | None = None, on_inconclusive: OnInconclusive = "pass") -> Conclusion:
        """The exit code, and what to say beside the summary; `fail_under` is the least pass@k, at the smallest k.

        The decision of a gate stands even if some attempts could no longer be asked for.
        """
        ended = run_conclusion(self.folder, self.summary, self.stopped, self.notes, fail_under=fail_under)
        if self.decision is None:
            return ended
        decided = gate_conclusion(self.decision, on_inconclusive)
        code = decided.exit_code
        if self.decision.verdict == CANNOT_TELL:
            code = code or ended.exit_code
        return Conclusion(code, (*ended.messages, *decided.messages))


class RunInterrupted(KeyboardInterrupt):
    """The user stopped a run; what had arrived is stored."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.folder = folder


class RunPlan(NamedTuple):
    """What a run asks, apart from its cases and models."""

    samples: int | None = None
    """Attempts per case and model: by default the largest k, and of recorded replies all of them."""
    k: Sequence[int] = (1,)
    parameters: Mapping[str, Any] | None = None
    system: str = ""
    seed: int | None = None
    rule: str = ""
    """By default the one that the eval sets name, otherwise `code`."""
    rules: Sequence[Rule] = ()
    """The eval sets' own rules."""
    suites: SuiteRule | None = None
    base_url: str = ""
    eval_sets: Sequence[EvalSetFile] = ()
    """The files that cases were loaded from, if any."""
    output: str | Path | None = None
    until: StoppingRule | None = None
    shard: tuple[int, int] | None = None
    """Such as (3, 8): all but every eighth case, from the third on, is left to other machines; `merge` joins their results."""
    require_trust: Trust = ""
    """The trust that a verdict needs for a pass to count, such as `isolated`."""
    skip_unavailable: bool = False
    """Whether cases are left out whose toolchain, package or crate this machine lacks; otherwise they stop the run."""


class RunKeywords(TypedDict, total=False):
    """The same as keywords."""

    samples: int | None
    k: Sequence[int]
    parameters: Mapping[str, Any] | None
    system: str
    seed: int | None
    rule: str
    rules: Sequence[Rule]
    suites: SuiteRule | None
    base_url: str
    eval_sets: Sequence[EvalSetFile]
    output: str | Path | None
    until: StoppingRule | None
    shard: tuple[int, int] | None
    require_trust: Trust
    skip_unavailable: bool


def run(
    cases: Sequence[Case] | Sequence[str | Path] | str | Path,
    *,
    models: Sequence[str] | str,
    means: RunOptions = RunOptions(),
    **keywords: Unpack[RunKeywords],
) -> Run:
    """Ask models for attempts at each case, verify every one, and return the results.

    `cases` are cases, or paths of eval sets; the keywords are the fields of `RunPlan`.
    """
    plan = RunPlan(**keywords)
    sets = eval_sets_of(cases)
    own = (*plan.rules, *sets.rules)
    rule = plan.rule or sets.rule or "code"
    given = [models] if isinstance(models, str) else list(models)
    find_rule(rule, own)
    means = with_control_key(means)
    check_plan(sets.cases, plan.k, plan.samples)
    check_parameters(plan.parameters or {})
    if plan.shard is not None and plan.until is not None:
        raise InputError(
            "a shard has only some of the cases, and a gate decides by all of them: merge first, then gate"
        )
    sets = sets._replace(cases=with_judges(sets.cases, means))
    code = case_code(sets.cases, means) + model_code(given, means) + settings_code(means.settings)
    with own_code(code, means, *(file.path for file in plan.eval_sets or sets.files)):
        skipped = unavailable_cases(sets.cases, means) if plan.skip_unavailable else {}
        if skipped:
            sets = sets._replace(cases=chosen_cases(sets.cases, lambda case: case.id not in skipped))
            if not sets.cases:
                why = next(iter(skipped.values()))
                raise InputError(f"none of {counted(len(skipped), 'case')} can be verified here: {why}")
        dealt = shard_cases_of(sets.cases, plan.shard)
        check_verifiers(dealt, means)
        providers = connect(given, means, plan.base_url)
        check_named_options(providers, plan.parameters or {})
        check_conversations(dealt, providers, means)
        unmatched_notes = unmatched_reply_notes(sets.cases, providers)
        judges = connect_judges(dealt, tuple(providers), means)
        check_prices({**providers, **judges}, means)
        if plan.output is not None:
            make_run_folder(Path(plan.output))
    recorded = any(provider.available(sets.cases[0].id) is not None for provider in providers.values())
    started_at = now()
    prices = Prices(means.settings.prices)
    info = RunInfo(
        id=run_id(started_at),
        started_at=started_at,
        eval_sets=tuple(plan.eval_sets) or sets.files,
        models=tuple(given),
        names=tuple(providers),
        folder=started_in(given),
        base_url=plan.base_url,
        parameters=dict(plan.parameters or {}),
        system=plan.system,
        samples=plan.samples if plan.samples is not None or recorded else max(plan.k),
        until=plan.until,
        k=tuple(sorted(set(plan.k))),
        seed=plan.seed,
        rule=rule,
        rules=own,
        suites=plan.suites or SuiteRule(),
        versions=tool_versions(),
        prices={model: price for model in (*providers, *judges) if (price := prices.price(model)) is not None},
        unrecorded=_unrecorded(dealt, providers),
        require_trust=plan.require_trust,
        controls=means.controls,
        control_key=means.control_key,
        skipped=skipped,
        uncontained=uncontained_agents(given, means),
    )
    folder = Path(plan.output) if plan.output is not None else Path(means.settings.output_dir) / info.id
    sharded = with_shard(info, sets.cases, plan.shard)
    done = carry_out(lambda: create_run(folder, sharded, dealt), dealt, providers, means, judges)
    said = plan_notes(sets.cases, info.parameters, plan.samples, plan.k, plan.shard, means.max_cost)
    return done._replace(notes=(*unmatched_notes, *done.notes), plan_notes=said)


def shard_cases_of(cases: Sequence[Case], shard: tuple[int, int] | None) -> Sequence[Case]:
    """The cases that are for this machine."""
    return cases if shard is None else shard_cases(cases, *shard)


def with_shard(info: RunInfo, cases: Sequence[Case], shard: tuple[int, int] | None) -> RunInfo:
    """The description of a run that has only a shard of these cases, if it does."""
    return info if shard is None else msgspec.structs.replace(info, shard=shard_record(info, cases, *shard))


def run_id(started_at: str) -> str:
    """A name for a run that began then, which no other has."""
    timestamp = started_at[:19].replace("-", "").replace(":", "").replace("T", "-")
    return f"{timestamp}-{secrets.token_hex(2)}"


def tool_versions() -> dict[str, str]:
    """What a run was made with."""
    return {
        "steelyard": version("steelyard"),
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def eval_sets_of(given: Sequence[Case] | Sequence[str | Path] | str | Path) -> evalsets.EvalSets:
    """Cases as they are given: themselves, or by the paths of their files."""
    if isinstance(given, str | Path):
        given = [given]
    if isinstance(given, StoredCases):
        return evalsets.EvalSets(given, (), ())
    cases = tuple(case for case in given if isinstance(case, Case))
    if len(cases) == len(given) and cases:
        return evalsets.EvalSets(cases, (), ())
    loaded = evalsets.load([path for path in given if not isinstance(path, Case)])
    return loaded._replace(cases=(*cases, *loaded.cases)) if cases else loaded


def with_control_key(means: RunOptions) -> RunOptions:
    """How a new run is carried out: nobody knows before which false tests an answer will get."""
    return means._replace(control_key=secrets.token_hex(16))


def _with_controls_of(journal: Journal, means: RunOptions) -> RunOptions:
    """How a stored run is carried on: with its own controls, so that verifying again gives the same; one without gets a key."""
    info = journal.info
    number = info.controls if means.controls is None else means.controls
    key = info.control_key or with_control_key(means).control_key
    if (number, key) != (info.controls, info.control_key):
        changed = msgspec.structs.replace(info, controls=number, control_key=key)
        journal.describe(changed if number == info.controls else with_current_plan(changed))
    return means._replace(controls=number, control_key=key)


def _unrecorded(cases: Sequence[Case], providers: Mapping[str, Provider]) -> dict[str, int]:
    counts = {model: sum(provider.available(case.id) == 0 for case in cases) for model, provider in providers.items()}
    return {model: count for model, count in counts.items() if count}


def carry_out(
    journal: Journal | Callable[[], Journal],
    asked: Sequence[Case],
    providers: dict[str, Provider] | None,
    means: RunOptions,
    judges: Mapping[str, Provider] = {},
) -> Run:
    """Do what a run owes; with empty providers every stored reply is verified again, with None nothing is.

    The journal of a new run is created only when a verifier for everything in `asked` is ready.
    """
    journals = [] if callable(journal) else [journal]
    try:
        # of many cases a session and its verifiers hold as much as the summary takes, so they are gone before it
        ended = run_coroutine(_ended_session(journal, journals, asked, providers, means, judges))
        written = journals[0]
        results = witness_results(written)
        tried = {"witnesses": witness_counts(results), "reference_trust": reference_trust(results)}
        info = msgspec.structs.replace(written.info, ended_at=now(), **tried)
        written.describe(info)
        summary, odd = summarise_and_cache(written, info, ended.cases)
        return Run(written.folder, info, summary, ended.stopped, (*ended.notes, *odd), ended.out_of_budget)
    except KeyboardInterrupt:
        if not journals:
            raise
        raise RunInterrupted(journals[0].folder) from None
    except BaseExceptionGroup as group:
        # of several errors, our own first one says what happened
        ours, _ = group.split(SteelyardError)
        while isinstance(ours, BaseExceptionGroup):
            ours = ours.exceptions[0]  # type: ignore[assignment]
        raise (ours or group) from None
    finally:
        for written in journals:
            written.close()


class _EndedSession(NamedTuple):
    cases: Sequence[Case]
    stopped: tuple[str, ...]
    notes: tuple[str, ...]
    out_of_budget: bool


async def _ended_session(
    journal: Journal | Callable[[], Journal],
    journals: list[Journal],
    asked: Sequence[Case],
    providers: dict[str, Provider] | None,
    means: RunOptions,
    judges: Mapping[str, Provider],
) -> _EndedSession:
    """What is left of a session that did what a run owes; a journal that is created is added to `journals`."""
    if not callable(journal) and providers is not None:
        means = _with_controls_of(journal, means)
    planned = as_stored(with_python_env(asked, means.python_env)) if providers is not None else ()
    verifying = VerifierSet(planned, means)
    verifying.check(planned)
    async with _pool(planned, verifying, means) as pool:
        if callable(journal):
            journals.append(journal())
        if providers:
            use_reply_cache(journals[0], providers, means, is_new=callable(journal))
        held = await run_batches(journals[0], providers, means) if providers else NOTHING_HELD
        session = Session(journals[0], providers, means, verifying, pool, judges, held)
        stopped = await session.carry_out()
        return _EndedSession(session.cases, stopped, pool.notes, session.out_of_budget)


def as_stored(cases: Sequence[Case]) -> Sequence[Case]:
    """Cases as a journal gives them back, so that another machine verifies with the same tests: 20 seconds are 20.0 there."""
    if isinstance(cases, StoredCases):
        return cases
    return tuple(msgspec.json.decode(msgspec.json.encode(case), type=Case) for case in cases)


@asynccontextmanager
async def _pool(cases: Sequence[Case], verifying: VerifierSet, means: RunOptions) -> AsyncIterator[Pool]:
    """Who verifies the replies to these cases."""
    # without anything to verify, no cluster is needed
    backend = "local" if not any(case.has_verifier for case in cases) else means.backend
    make_pool: PoolFactory = load_plugin("pools", backend)
    with explain_plugin_errors("pools", backend):
        made = make_pool(cases, verifying, means)
        made = await made if inspect.isawaitable(made) else made
    pool: Pool = guarded_plugin("pools", backend, made, Pool)
    try:
        yield SharedVerdicts(pool, verifying, means)
    finally:
        await pool.close()
