"""The runs of an experiment in tiers, out of a run folder: what its verdicts, its costs and its judges say of each attempt."""

from __future__ import annotations

import hashlib
import math
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steelyard.analysis.attempt_texts import AttemptText
from steelyard.analysis.attempts import Column
from steelyard.analysis.warnings import uncontained_warnings
from steelyard.engine.results.attempt_tables import stored_attempt_table
from steelyard.engine.results.conclusion import Conclusion
from steelyard.engine.results.recordings import explain_file_errors
from steelyard.engine.results.stored_results import stored_attempts
from steelyard.engine.tiers.escalation import JudgingPlan
from steelyard.errors import ExitCode, InputError, Problem
from steelyard.evalsets.experiments import is_same_model
from steelyard.outcomes.experiments import experiment
from steelyard.outcomes.readers.scylla import is_scylla, scylla_experiment
from steelyard.records import Judgment, Panel, RunInfo
from steelyard.store.journal import StoredRun
from steelyard.store.run_folders import DEFAULT_RUNS_FOLDER, find_run
from steelyard.text import line, short_quote
from steelyard.tiers.analysis import MAX_UNSCORED_TIER_CASE_SHARE, analyse_tiers
from steelyard.tiers.escalation import EscalatedAnswer, EscalatedPanel, escalated_panel
from steelyard.tiers.rating_tables import CriterionMarks, JudgmentTable
from steelyard.tiers.results import (
    ExperimentAnalysis,
    ImplRate,
    JudgeIdentity,
    PairBy,
    RunIdentity,
    RunRating,
    RunSource,
    Tasks,
    TierRun,
)
from steelyard.tiers.rubrics import CategoryScore, Rubric, RubricCategory, panel_rubric
from steelyard.tiers.run_tables import NameColumnBuilder, RunTable, tier_names
from steelyard.verifiers.judge.answer import UnusableJudgeReply, judgment

if TYPE_CHECKING:
    import numpy.typing as npt

SEVERAL_MODELS = "several models"
"""The placeholder for the model where each tier has its own: then tiers are compared together with their models."""


class TierExperiment(NamedTuple):
    """An experiment in the form that its analysis needs."""

    runs: Sequence[TierRun]
    judgments: JudgmentTable
    sources: tuple[RunSource, ...]
    order: tuple[str, ...] = ()
    """The tiers as the experiment lists them, the baseline first."""
    weights: tuple[float, float] = (0.5, 0.5)
    impl_rate: ImplRate | None = None
    """The default source of impl rates; None for the first one available."""
    judges_usd: float | None = None
    """The cost of the judges, counted separately; None if no price is known."""
    judges_unpriced: int = 0
    """Judgments of unknown cost: with them the judges cost at least `judges_usd`."""
    notes: tuple[str, ...] = ()
    """What is still owed and who judges itself, in sentences."""
    conclusive: bool = True
    """Whether nearly every case of every tier has an outcome, and nearly every judgment that was asked for is there."""
    escalated: EscalatedPanel | None = None
    """What the first judges decide alone, where not all were asked about every answer."""

    @property
    def is_comparable(self) -> bool:
        """Whether there is a run of the tier that all tiers are compared with."""
        there = tier_names(self.runs)
        return self.order[0] in there if self.order else bool(there)


def analysis(
    found: TierExperiment,
    *,
    baseline: str | None = None,
    pair_by: PairBy = "case",
    impl_rate: ImplRate | None = None,
    tasks: Tasks | None = None,
) -> ExperimentAnalysis:
    """All figures of an experiment; raises an InputError without a run of the baseline."""
    there = tier_names(found.runs)
    if baseline is None and not found.is_comparable:
        what = f"no run of tier {short_quote(found.order[0])}, the baseline" if found.order else "no run to analyse"
        raise InputError("; ".join((what, *found.notes)))
    analysis = analyse_tiers(
        found.runs,
        found.judgments,
        weights=found.weights,
        baseline=baseline,
        order=[tier for tier in found.order if tier in there] or None,
        pair_by=pair_by,
        impl_rate=impl_rate or found.impl_rate,
        tasks=tasks,
        sources=found.sources,
    )
    return msgspec.structs.replace(
        analysis,
        judges_usd=found.judges_usd,
        judges_unpriced=found.judges_unpriced,
        escalated=found.escalated,
        warnings=(*found.notes, *analysis.warnings),
        conclusive=analysis.conclusive and found.conclusive,
    )


class TierResult(NamedTuple):
    """The analysis of an experiment's runs, and the exit code of its command."""

    analysis: ExperimentAnalysis | None
    """None where runs that are still owed leave nothing to compare with."""
    stopped: tuple[str, ...] = ()
    """Why runs or judgments are still owed."""

    def conclusion(self, continue_with: str = "") -> Conclusion:
        """The exit code, and what to say beside the analysis; the command to continue with is `continue_with`, or the same one."""
        command = f": {continue_with}" if continue_with else " the same command"
        is_conclusive = self.analysis is not None and self.analysis.conclusive and not self.stopped
        messages = tuple(f"steelyard: {reason}; continue with{command}" for reason in self.stopped)
        return Conclusion(ExitCode.OK if is_conclusive else ExitCode.CANNOT_TELL, messages)


def tier_result(
    found: TierExperiment,
    *,
    stopped: tuple[str, ...] = (),
    baseline: str | None = None,
    pair_by: PairBy = "case",
    impl_rate: ImplRate | None = None,
    tasks: Tasks | None = None,
) -> TierResult:
    """The analysis of an experiment that may have been stopped before all its runs were there."""
    if stopped and not found.is_comparable:
        return TierResult(None, stopped)
    return TierResult(analysis(found, baseline=baseline, pair_by=pair_by, impl_rate=impl_rate, tasks=tasks), stopped)


def from_files(
    runs: str, judges: str | None = None, criteria: str | None = None
) -> tuple[TierExperiment, tuple[Problem, ...]]:
    """An experiment that another tool has recorded in CSV files, and what is odd about them."""
    read = experiment(runs, judges=judges, criteria=criteria)
    return TierExperiment(read.runs, JudgmentTable.of(read.ratings, read.criteria), read.sources), read.warnings


def from_scylla(path: Path) -> tuple[TierExperiment, tuple[Problem, ...]]:
    """An experiment of ProjectScylla, out of its folder of results or of its tables, and what is odd about it."""
    with explain_file_errors(path):
        read = scylla_experiment(path)
    return TierExperiment(read.runs, JudgmentTable.of(read.ratings, read.criteria), read.sources), read.warnings


def tier_experiment(stored: StoredRun) -> TierExperiment:
    """The attempts of a run by tier; where a run has no tiers, its models are taken for them."""
    info, cases = stored.info, stored.cases
    tried = _TierAttempts(info)
    # the texts of all attempts may not fit into memory
    texts = stored_attempts(stored, cases, stored_attempt_table(stored, info, cases))
    runs = RunTable.of(_tier_run(info, one) for one in texts if tried.add(one))
    said = _PanelJudgments(stored, info.panel, runs, tried)
    notes, conclusive = _missing_runs(info, len(cases), tried)
    escalated: EscalatedPanel | None = None
    if info.panel is not None:
        judged = said.counts(info.panel)
        wanted = {judge: said.wanted(judge, range(len(runs))) * info.panel.repeats for judge in info.panel.judges}
        notes = (*notes, *_missing_judgments(wanted, judged), *_self_judging_notes(info, info.panel))
        conclusive = conclusive and all(
            wanted[judge] - judged[judge] <= MAX_UNSCORED_TIER_CASE_SHARE * wanted[judge] + 1e-9 for judge in wanted
        )
        if info.panel.escalation is not None:
            escalated = said.escalated(info.panel)
    table = said.table
    return TierExperiment(
        runs=runs,
        judgments=table,
        sources=(RunSource(name=str(stored.folder), digest=_digest(runs, table.ratings(), table.criteria())),),
        order=tuple(tier for _, tier in _compared_tiers(info, tried)),
        weights=(info.experiment.pass_weight, info.experiment.impl_weight) if info.experiment else (0.5, 0.5),
        # a judge's own total is a claim
        impl_rate="points" if table.has_criteria else None,
        judges_usd=math.fsum(said.costs) if said.costs else None,
        judges_unpriced=said.unpriced,
        notes=(*notes, *_winner_notes(info), *uncontained_warnings(info)),
        conclusive=conclusive,
        escalated=escalated,
    )


class _TierAttempts:
    """The attempts of a run as columns, without their texts; those at one case come one after the other."""

    def __init__(self, info: RunInfo) -> None:
        self._info = info
        self.columns: set[tuple[str, str, str]] = set()
        """Each model and tier, with the name that it is compared by."""
        self.failures: dict[str, Counter[str]] = {}
        """By that name, why attempts have no verdict."""
        self.replies: list[str] = []
        """The keys of the replies of the runs, if it depends on the reply which judges are asked."""
        self._keeps_replies = info.panel is not None and info.panel.escalation is not None
        self._digests = bytearray()
        """Of the same keys, each 16 bytes."""
        self._names = NameColumnBuilder()
        self._is_run = bytearray()
        self._case, self._cases = "", array("i")
        """The case of the last attempt, and the number of the case of each, counted from 0."""

    def add(self, tried: AttemptText) -> bool:
        """Add an attempt; returns whether it is a run: whether it has a reply, and the verdict that its case asks for."""
        name = _tier_name(self._info, tried)
        self.columns.add((tried.model, tried.tier, name))
        self._names.append(name)
        is_same_case = bool(self._cases) and tried.case.id == self._case
        self._cases.append((self._cases[-1] if self._cases else -1) + (not is_same_case))
        self._case = tried.case.id
        if tried.failure is not None and (why := line(tried.failure.message, 200)):
            self.failures.setdefault(name, Counter())[why] += 1
        # what should have been verified and was not is missing, whatever judges say of it
        is_run = tried.reply is not None and (tried.correct is not None or tried.case.by_judges)
        self._is_run.append(is_run)
        if is_run and tried.reply is not None:
            self._digests += _key_digest(tried.reply.key)
            if self._keeps_replies:
                self.replies.append(tried.reply.key)
        return is_run

    def places(self) -> Callable[[str], int | None]:
        """What finds the place of a run by the key of its reply."""
        import numpy as np

        halves = np.frombuffer(bytes(self._digests), np.uint64).reshape(-1, 2)
        order = np.lexsort((halves[:, 1], halves[:, 0]))
        first, second = (array("Q", halves[order, half].tobytes()) for half in (0, 1))

        def place(key: str) -> int | None:
            wanted, other_half = memoryview(_key_digest(key)).cast("Q")
            found = [
                at for at in range(bisect_left(first, wanted), bisect_right(first, wanted)) if second[at] == other_half
            ]
            return int(order[found[-1]]) if found else None

        return place

    def by_case(self, name: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """How many attempts under one name, and how many runs, each case has that anything was tried at."""
        import numpy as np

        names, cases = self._names.column(), np.array(self._cases, np.int32)
        is_named = names.codes == (names.names.index(name) if name in names.names else -1)
        is_run = np.frombuffer(bytes(self._is_run), bool)
        count = int(cases[-1]) + 1 if len(cases) else 0
        begun, done = (np.bincount(cases[rows], minlength=count) for rows in (is_named, is_named & is_run))
        return begun, done


def _key_digest(key: str) -> bytes:
    # a key may be any text that is in a journal
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class _PanelJudgments:
    """The judgments of a run, read one by one; none of their texts is kept."""

    def __init__(self, stored: StoredRun, panel: Panel | None, runs: RunTable, tried: _TierAttempts) -> None:
        self.table = JudgmentTable()
        self.costs = array("d")
        """Of all judgments whose cost is known."""
        self.unpriced = 0
        self._runs, self._replies = runs, tried.replies
        self._rows: dict[JudgeIdentity, array[int]] = {}
        """For each asking of a judge the row of its rating plus 1, by the place of the run; 0 where there is none."""
        self._usable, self._prices = bytearray(), array("d")
        """By the rows; NaN where a cost is not known."""
        self._plan = JudgingPlan(panel) if panel is not None and panel.escalation is not None else None
        """Who is asked about which answers, if not everybody about all."""
        find = tried.places()
        rubric = panel_rubric(panel) if panel is not None else None
        for fact in stored.facts():
            if not isinstance(fact, Judgment):
                continue
            usd = fact.answer.cost.usd if fact.answer.cost else None
            if usd is None:
                self.unpriced += 1
            else:
                self.costs.append(usd)
            # what was judged by another rubric is not comparable
            if panel is None or rubric is None or fact.rubric != panel.digest or (place := find(fact.ask)) is None:
                continue
            self._add(fact, rubric, place)
            if self._plan is not None:
                self._plan.count(fact)

    def _add(self, fact: Judgment, rubric: Rubric, place: int) -> None:
        """Add a judgment of the run in a place; of one asking the last answer counts."""
        judge = JudgeIdentity(fact.judge, fact.repeat)
        if judge not in self._rows:
            self._rows[judge] = array("i", bytes(4 * len(self._runs)))
        rows = self._rows[judge]
        rating, marks = _rating_and_marks(fact, rubric, self._runs.identity(place), judge)
        if not rows[place]:
            rows[place] = self.table.add(rating, marks) + 1
            self._usable.append(0)
            self._prices.append(math.nan)
        else:
            self.table.replace(rows[place] - 1, rating, marks)
        self._usable[rows[place] - 1] = not fact.unusable
        self._prices[rows[place] - 1] = fact.answer.cost.usd if fact.answer.cost else math.nan

    def wanted(self, judge: str, places: Iterable[int]) -> int:
        """About how many of the runs in some places a judge is asked."""
        if (plan := self._plan) is None:
            return sum(1 for _ in places)
        return sum(plan.is_wanted(self._replies[place], judge) for place in places)

    def counts(self, panel: Panel) -> Counter[str]:
        """How many of the judgments that are wanted each judge has given."""
        found: Counter[str] = Counter()
        for judge, rows in self._rows.items():
            if judge.number <= panel.repeats:
                given = (place for place, row in enumerate(rows) if row and self._usable[row - 1])
                found[judge.model] += self.wanted(judge.model, given)
        return found

    def _known_prices(self, judge: str) -> list[float | None]:
        """What each of a judge's judgments cost; None where that is not known."""
        rows = sorted(row - 1 for each, rows in self._rows.items() if each.model == judge for row in rows if row)
        return [None if self._prices[row] != self._prices[row] else self._prices[row] for row in rows]

    def escalated(self, panel: Panel) -> EscalatedPanel:
        """What asking only some judges about most answers changes and saves."""
        plan = self._plan or JudgingPlan(panel)
        tiers, outcomes = self._runs.names["tier"].texts(), self._runs.passed.tolist()
        answers = [
            EscalatedAnswer(
                tier=tier,
                is_decided_by_judges=outcome < 0,
                first=plan.first(reply),
                whole=plan.whole(reply),
                is_checked=plan.is_checked(reply) and plan.whole(reply) is not None,
            )
            for tier, outcome, reply in zip(tiers, outcomes, self._replies, strict=True)
        ]
        return escalated_panel(panel, answers, {judge: self._known_prices(judge) for judge in panel.other_judges})


def _digest(*lists: Iterable[msgspec.Struct]) -> str:
    """The digest of lists of records, of which one record at a time is encoded."""
    found = hashlib.blake2b(b"[", digest_size=16)
    for number, records in enumerate(lists):
        found.update(b",[" if number else b"[")
        for place, each in enumerate(records):
            found.update((b"," if place else b"") + msgspec.json.encode(each, order="sorted"))
        found.update(b"]")
    found.update(b"]")
    return found.hexdigest()


def _tier_name(info: RunInfo, tried: AttemptText) -> str:
    """What an attempt is compared by: the tier if the run has tiers, the model otherwise, and both where others recorded several."""
    if info.recordings and len(info.names) > 1:
        return Column(tried.model, tried.tier).label
    return tried.tier or tried.model


def _compared_tiers(info: RunInfo, tried: _TierAttempts) -> list[tuple[str, str]]:
    """The models and names of what is compared, the baseline first."""
    if info.experiment:
        return [(tier.model, tier.name) for tier in info.experiment.tiers]
    if not info.recordings:
        return [(name, name) for name in info.names]
    names, tiers = list(info.names), list(info.tiers or ("",))
    there = sorted((names.index(model), tiers.index(tier), name) for model, tier, name in tried.columns)
    return [(names[model], name) for model, _, name in there]


def _missing_runs(info: RunInfo, cases: int, tried: _TierAttempts) -> tuple[tuple[str, ...], bool]:
    """What each tier is missing, and whether its figures are conclusive all the same."""
    import numpy as np

    missing, conclusive = [], True
    for model, tier in _compared_tiers(info, tried):
        begun, done = tried.by_case(tier)
        least = 0 if info.unrecorded.get(model) else info.samples or 0
        planned = np.maximum(begun, least)
        # nothing was tried at the others
        others = cases - len(begun)
        count = int(planned.sum()) + least * others
        owed = count - int(done.sum())
        without = int(np.count_nonzero(planned[done == 0])) + (others if least else 0)
        if not owed:
            continue
        most = tried.failures.get(tier, Counter()).most_common(1)
        why = f", most often: {most[0][0]}" if most else ""
        missing.append(f"{line(tier, 80)}: {owed:,} of {count:,} runs are missing{why}")
        conclusive = conclusive and without <= MAX_UNSCORED_TIER_CASE_SHARE * cases + 1e-9
        conclusive = conclusive and owed <= MAX_UNSCORED_TIER_CASE_SHARE * count + 1e-9
    return tuple(missing), conclusive


def _missing_judgments(wanted: Mapping[str, int], judgments: Mapping[str, int]) -> Iterator[str]:
    """Whose judgments are still owed."""
    for judge, planned in wanted.items():
        if judgments[judge] < planned:
            yield f"{line(judge, 80)}: {planned - judgments[judge]:,} of {planned:,} judgments are missing"


def _winner_notes(info: RunInfo) -> Iterator[str]:
    """Which tiers were chosen as the best of several, and which still wait for that."""
    experiment = info.experiment
    for tier, winner in (experiment.winners if experiment else {}).items():
        yield (
            f"{line(tier, 80)} extends {line(winner, 80)}, which was the best of several in these runs; the best of several looks "
            f"better than it is, so {line(tier, 80)} may add more to it than it seems"
        )
    for waiting in experiment.inheriting if experiment else ():
        names = ", ".join(line(name, 80) for name in waiting.extends)
        yield f"{line(waiting.own.name, 80)} was not run yet: it extends the best of {names}"


def _self_judging_notes(info: RunInfo, panel: Panel) -> Iterator[str]:
    """Which models judge their own runs, where the runs do not name them, or by another name."""
    for judge in panel.judges:
        if any(is_same_model(model, judge) for model in info.names) and info.names != (judge,):
            yield f"{line(judge, 80)} is a judge of its own runs"


def _tier_run(info: RunInfo, tried: AttemptText) -> TierRun:
    answer = tried.reply.answer if tried.reply else None
    assert answer is not None  # noqa: S101  only attempts with a reply are given
    return TierRun(
        experiment=info.experiment.id if info.experiment else info.id,
        model=info.names[0] if len(info.names) == 1 else SEVERAL_MODELS,
        tier=_tier_name(info, tried),
        case=tried.case.id,
        number=tried.number,
        passed=tried.correct,
        cost_usd=answer.cost.usd if answer.cost else None,
        duration_seconds=answer.latency,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cached_tokens=answer.cached_tokens,
        exit_code=answer.exit_code,
    )


def _rating_and_marks(
    fact: Judgment, rubric: Rubric, run: RunIdentity, judge: JudgeIdentity
) -> tuple[RunRating, list[CriterionMarks]]:
    """What one judge says of one run, read from its words."""
    found = judgment(fact.answer.text, rubric)
    if isinstance(found, UnusableJudgeReply):
        return RunRating(run=run, judge=judge, valid=False), []
    rating = RunRating(
        run=run,
        judge=judge,
        # the judge's claim; the score is computed from the criteria, and without applicable ones there is no claim
        score=None if found.score is None else found.claim.score,
        passed=found.passed,
        grade=found.grade or "",
    )
    given = ((category, found.categories.get(category.name)) for category in rubric.categories)
    return rating, [
        CriterionMarks(category.name, marks.score, *_points(category, marks))
        for category, marks in given
        if marks is not None
    ]


def _points(category: RubricCategory, marks: CategoryScore) -> tuple[float | None, float | None]:
    """Points given and points possible, weighted as the rubric weights the category."""
    if marks.score is None:
        return None, None
    return marks.score * category.weight, category.weight


class TierSource(NamedTuple):
    """An experiment as it was found."""

    experiment: TierExperiment
    folder: Path
    pair_by: PairBy = "case"
    """What identifies the same task in two tiers."""
    problems: tuple[Problem, ...] = ()


def stored_source(name: str, *, root: Path = DEFAULT_RUNS_FOLDER) -> TierSource:
    """The experiment in a run, named as for `show`, or in a folder that ProjectScylla wrote."""
    folder = Path(name)
    if is_scylla(folder):
        experiment, problems = from_scylla(folder)
        # there an experiment is the task, and subtests are variants of a tier
        return TierSource(experiment, folder, "experiment", tuple(problems))
    folder = find_run(name, root)
    return TierSource(tier_experiment(StoredRun(folder)), folder)


def csv_source(runs: str, judges: str | None = None, criteria: str | None = None) -> TierSource:
    """The experiment that CSV files hold: a row per run, per judge and per criterion."""
    experiment, problems = from_files(runs, judges, criteria)
    return TierSource(experiment, Path(), problems=tuple(problems))
