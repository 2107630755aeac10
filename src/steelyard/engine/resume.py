"""A stored run carried on, verified again, or judged."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from steelyard import evalsets
from steelyard.engine import plan
from steelyard.engine.options import RunOptions
from steelyard.engine.preflight.connect import (
    check_case_settings,
    check_parameters,
    check_prices,
    check_verifiers,
    connect,
    uncontained_agents,
)
from steelyard.engine.preflight.conversations import check_conversations
from steelyard.engine.preflight.named_code import (
    case_code,
    model_code,
    own_code,
    require_allowed_code,
    run_code,
    settings_code,
    stored_tiers,
)
from steelyard.engine.preflight.rubric_judges import with_earlier_judges
from steelyard.engine.results.recordings import recorded_agreement
from steelyard.engine.run import Run, carry_out
from steelyard.engine.tiers.experiment import (
    panel_with_model_names,
    priced_providers,
    providers_and_judges,
    with_experiment_budget,
)
from steelyard.errors import InputError
from steelyard.evalsets.experiments import is_same_model
from steelyard.records import RECORDED_KIND, Case, EvalSetFile, Message, Panel, RunInfo
from steelyard.settings import DEFAULT_SETTINGS_PATH
from steelyard.store.journal import Journal, StoredRun
from steelyard.store.stored_cases import cases_by_id, collected_cases


def resume(
    folder: str | Path,
    *,
    samples: int | None = None,
    more: Mapping[str, Mapping[str, int]] | None = None,
    stopped: Mapping[str, int] | None = None,
    base_url: str = "",
    means: RunOptions = RunOptions(),
) -> Run:
    """Carry on with what a run still owes, failures included; more samples than before extend it.

    `more` plans more attempts at some cases alone, by model and case; `stopped` says which models are asked no
    further. A base URL takes the place of the run's own.
    """
    journal = reopened_journal(folder)
    try:
        info = journal.info
        require_allowed_code(run_code(info, journal.cases, means), means, folder)
        _unchanged_cases(journal.cases, _case_files(info))
        if samples is not None and samples < (info.samples or 0):
            raise InputError(f"{folder}: has {info.samples} attempts per case; --samples can only add more")
        means = with_experiment_budget(info, means)
        info = msgspec.structs.replace(info, base_url=base_url or info.base_url)
        planned_info = msgspec.structs.replace(info, samples=info.samples if samples is None else samples)
        providers, judges = providers_and_judges(planned_info, means, journal)
        check_prices(priced_providers(info, providers, judges), means)
        check_verifiers(journal.cases, means)
        check_conversations(journal.cases, providers, means)
        if base_url:
            journal.describe(info)
        info = _with_uncontained_agents(journal, means)
        if samples is not None or more is not None:
            planned = {model: dict(cases) for model, cases in (info.more if more is None else more).items()}
            more_info = msgspec.structs.replace(
                info,
                samples=planned_info.samples,
                more=planned,
                stopped=dict(stopped or {}),
                allocated={},
            )
            journal.describe(plan.with_current_plan(more_info))
    except BaseException:
        journal.close()
        raise
    return carry_out(journal, journal.cases, providers, means, judges)


def _with_uncontained_agents(journal: Journal, means: RunOptions) -> RunInfo:
    """The description of a run with the agents that are not contained from now on, added to those that never were."""
    info = journal.info
    judges = info.panel.judges if info.panel else ()
    found = (
        uncontained_agents((*info.models, *judges), means)
        if info.experiment is None
        else uncontained_agents(judges, means, stored_tiers(info))
    )
    if found.items() <= info.uncontained.items():
        return info
    info = msgspec.structs.replace(info, uncontained={**info.uncontained, **found})
    journal.describe(info)
    return info


def verify_again(folder: str | Path, *, eval_sets: Sequence[str | Path] = (), means: RunOptions = RunOptions()) -> Run:
    """Verify every stored reply again, with the tests as the eval set has them now; no model is asked."""
    journal = reopened_journal(folder)
    try:
        files = _case_files(journal.info)
        paths = eval_sets or [file.path for file in files if evalsets.is_eval_set_available(file.path)]
        if eval_sets or len(paths) == len(files) > 0:
            shard = journal.info.shard
            current = with_earlier_judges(_unchanged_cases(journal.cases, (), paths), journal.cases)
            if shard is not None and not plan.are_shard_cases_unchanged(shard, current):
                raise InputError(
                    f"{folder}: a shard, and its cases or their tests have changed; merge the shards first, so that all "
                    "get the same tests, then verify the merged run"
                )
            code = case_code(current, means) + settings_code(means.settings)
            require_allowed_code(code, means, *(eval_sets or [folder]))
            check_case_settings(current)
            journal.ask(current)
        elif not any(case.has_verifier for case in journal.cases) and journal.info.recordings:
            raise InputError(
                f"{folder}: imported, and its tests are not known here; name an eval set that has them: "
                f"steelyard verify {shlex.quote(str(folder))} --eval-set FILE"
            )
        else:
            require_allowed_code(case_code(journal.cases, means) + settings_code(means.settings), means, folder)
    except BaseException:
        journal.close()
        raise
    done = carry_out(journal, journal.cases, {}, means)
    notes = recorded_agreement(StoredRun(done.folder)) if done.info.recordings else ()
    return done._replace(notes=(*done.notes, *notes))


def judge(folder: str | Path, panel: Panel, *, means: RunOptions = RunOptions()) -> Run:
    """Have the stored replies of a run judged; no model but the judges is asked."""
    check_parameters(panel.parameters)
    journal = reopened_journal(folder)
    try:
        judge_code = model_code(panel.judges, means) + settings_code(means.settings)
        is_of_settings = "judges" in means.settings.options or bool(settings_code(means.settings))
        if is_of_settings:
            require_allowed_code(judge_code, means, DEFAULT_SETTINGS_PATH)
        with own_code(() if is_of_settings else judge_code, means):
            judges = connect(panel.judges, means)
            info = journal.info
            for name in judges if not panel.allow_self else ():
                own = [model for model in info.names if is_same_model(model, name)]
                if own:
                    raise InputError(f"{name} would judge its own answers; name another judge, or say --allow-self")
            check_prices(judges, means)
        journal.describe(
            plan.with_current_plan(msgspec.structs.replace(info, panel=panel_with_model_names(panel, judges)))
        )
    except BaseException:
        journal.close()
        raise
    return carry_out(journal, journal.cases, None, means, judges)


def reopened_journal(folder: str | Path) -> Journal:
    """The journal of a run that is there; a folder that holds none stays as it is."""
    StoredRun(Path(folder)).info  # noqa: B018  it raises where there is no run
    return Journal(Path(folder))


def _case_files(info: RunInfo) -> tuple[EvalSetFile, ...]:
    """The files that the cases came from; an experiment's own comes before them."""
    return info.eval_sets[1:] if info.experiment else info.eval_sets


def _unchanged_cases(
    asked: Sequence[Case], files: Sequence[EvalSetFile], paths: Sequence[str | Path] | None = None
) -> Sequence[Case]:
    """The cases that were asked with the tests they have now; refuses if the eval set now asks something else."""
    if paths is None:
        paths = [file.path for file in files if evalsets.is_eval_set_available(file.path)]
        if not paths:
            return asked
    current = cases_by_id(evalsets.load(paths).cases)
    if current.keys().isdisjoint(case.id for case in asked):
        raise InputError(f"{', '.join(map(str, paths))}: contains none of the cases of this run")
    changed = [
        case.id
        for case in asked
        # how another tool puts a question may not be how the eval set does
        if case.id in current and _has_changed(case, current[case.id]) and case.kind != RECORDED_KIND
    ]
    if changed:
        listed = ", ".join(changed[:5]) + (", ..." if len(changed) > 5 else "")
        has_tools = any(case.is_conversation for case in (*asked, *current.values()) if case.id in changed)
        raise InputError(
            f"the prompt{' or the tools' if has_tools else ''} changed since this run asked: {listed}; a changed prompt is a "
            "new question: start a new run, or put the old prompt back"
        )
    return collected_cases(_as_asked(current.get(case.id, case), case) for case in asked)


def _has_changed(asked: Case, current: Case) -> bool:
    """Whether the question of a case changed; tools given for the whole run are in no file."""
    tools = {tool.name: tool.by_content for tool in asked.tools}
    is_same = all(tools.get(tool.name) == tool.by_content for tool in current.tools)
    return _said(asked) != _said(current) or asked.user != current.user or not is_same


def _as_asked(current: Case, asked: Case) -> Case:
    """A case with its current tests and its original question."""
    return msgspec.structs.replace(
        current, max_tokens=asked.max_tokens, tools=asked.tools, max_turns=asked.max_turns, user=asked.user
    )


def _said(case: Case) -> list[Message]:
    """The question, independent of where its files are."""
    return [message.without_paths for message in case.messages]
