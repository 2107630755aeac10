"""The attempts that other tools recorded: found by what their files hold, named as cases, and counted."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.analysis.attempts import Column
from steelyard.analysis.counts import OutcomeTallies, Tally
from steelyard.analysis.measure import GradedCounts, deciding_measure
from steelyard.analysis.scoring import is_correct
from steelyard.comparison.sides import Side, Trials
from steelyard.errors import InputError, Problem
from steelyard.outcomes.files import UNPACKING_ERRORS, OutcomeFile, UnreadableOutcomesError, model_names
from steelyard.outcomes.readers.sources import beginning
from steelyard.outcomes.scores import PLAIN_SCORES, ScoreReading, several_scores_sentence, with_chosen_score
from steelyard.plugins import explain_plugin_errors, foreign_plugins, load_plugin, plugin_name
from steelyard.plugins.built_in import BUILT_IN_PLUGINS
from steelyard.protocols import AttemptReader, ForeignFile
from steelyard.records import (
    RECORDED_KIND,
    Attempt,
    Case,
    EvalSetFile,
    Message,
    RecordedAttempt,
    RecordedClaim,
    Verdict,
    Verify,
)
from steelyard.records.base import MAX_ATTEMPTS_PER_CASE
from steelyard.store.journal import StoredRun
from steelyard.store.stored_cases import CaseCollector
from steelyard.text import counted, printable, short_quote

RECORDED_VERSION = "recorded 1"
"""What stands where the verifier of a verdict is named."""
RESULT_FILE_ENDINGS = (
    ("_eval_results", ".eval_results", "_results", "_eval_all"),
    (".jsonl", ".json"),
    ("-sanitized",),
)
"""What the names of files of results have beside the name of the model."""
MAX_CASE_ID_CHARACTERS = 200
MAX_TRACKED_NUMBER = 10_000
"""The number of an attempt is kept up to here; higher ones are numbered again."""


def reader_names(path: Path) -> list[str]:
    """The readers of recorded attempts that recognise a file or folder; empty for anything else."""
    head = beginning(path)
    if not head and not path.is_dir():
        return []
    found = []
    for name in (*BUILT_IN_PLUGINS["outcomes"], *foreign_plugins("outcomes")):
        reader = _reader(name)
        if reader is not None:
            with explain_plugin_errors("outcomes", name, printable(str(path))):
                if reader.recognises(ForeignFile(path, head)):
                    found.append(name)
    return found


def is_recorded(name: str) -> bool:
    """Whether a name is a file or folder of another tool, rather than a run, a baseline or a report."""
    return bool(recorded_by(name))


def recorded_by(name: str) -> list[str]:
    """The readers that recognise what a name stands for; empty for a run, a baseline, a report, and a missing file."""
    try:
        path = Path(name)
        # readers that a user installed are imported to look at a file, and need not look at our own folders
        is_ours = any(path.glob("run.json")) or any(path.glob("*/run.json"))
        return reader_names(path) if path.exists() and not is_ours else []
    except (OSError, ValueError):
        return []


def _reader(name: str) -> AttemptReader | None:
    """The reader of this name, if it is one of attempts and not of counts."""
    part = load_plugin("outcomes", name)
    return part() if hasattr(part, "attempts") else None


def _read(reader: AttemptReader, path: Path, *, texts: bool) -> Iterator[RecordedAttempt | Problem]:
    """The attempts in a file; a reader need not have a quicker way to those without texts."""
    found: Iterator[RecordedAttempt | Problem]
    found = reader.attempts(path) if texts or not hasattr(reader, "outcomes") else reader.outcomes(path)
    return found


def _only_reader_name(path: Path, name: str) -> str:
    """The reader of a file: the one that the user names, or the only one that recognises it."""
    if name:
        if _reader(plugin_name("outcomes", name)) is None:
            raise InputError(f'"{name}" reads counts, not attempts; name one of: {", ".join(_all_reader_names())}')
        return name
    found = reader_names(path)
    if not found:
        known = ", ".join(_all_reader_names())
        raise InputError(f"{printable(str(path))}: no reader recognises it; name one with --from ({known})")
    if len(found) > 1:
        raise InputError(f"{printable(str(path))}: could be of {' or '.join(found)}; name one with --from")
    return found[0]


def _all_reader_names() -> list[str]:
    names = (*BUILT_IN_PLUGINS["outcomes"], *foreign_plugins("outcomes"))
    return sorted(name for name in names if _reader(name) is not None)


class RecordedFiles:
    """Files of other tools, and what was odd about them once their attempts are read."""

    def __init__(self, paths: Iterable[str | Path], *, reader: str = "", scores: ScoreReading = PLAIN_SCORES) -> None:
        self._paths = [Path(path) for path in paths]
        self._scores = scores
        self._names: list[str] = []
        self.problems: list[Problem] = []
        """What a user should know, as warnings."""
        wrong: list[Problem] = []
        seen: dict[Path, Path] = {}
        for path in self._paths:
            try:
                with explain_file_errors(path):
                    if not path.exists():
                        raise UnreadableOutcomesError("no such file or folder")
                    if path.resolve() in seen:
                        raise UnreadableOutcomesError("given twice")
                    seen[path.resolve()] = path
                self._names.append(_only_reader_name(path, reader))
            except InputError as error:
                wrong += error.problems
        if wrong:
            raise InputError(wrong)

    def attempts(self, *, texts: bool = True) -> Iterator[RecordedAttempt]:
        """Every attempt of every file, in order; raises an InputError about the first file that cannot be read.

        Without texts, prompts, replies and reasons may be left out where that is quicker.
        """
        models = model_names([OutcomeFile(0, path) for path in self._paths], *RESULT_FILE_ENDINGS)
        for path, name, model in zip(self._paths, self._names, models, strict=True):
            reader = _reader(name)
            count = 0
            several: Mapping[str, float] = {}
            with explain_plugin_errors("outcomes", name, printable(str(path))), explain_file_errors(path):
                for found in _read(reader, path, texts=texts) if reader else ():
                    if isinstance(found, Problem):
                        self.problems.append(found._replace(where=printable(found.where)))
                    else:
                        count += 1
                        several = several or found.scores
                        named = found if found.model else replace(found, model=model)
                        yield with_chosen_score(named, self._scores)
            if len(several) > 1 and self._scores.name is None:
                self.problems.append(Problem(printable(str(path)), 0, several_scores_sentence(several), fatal=False))
            if not count:
                self.problems.append(Problem(printable(str(path)), 0, "no attempts in it", fatal=False))

    def claims(self) -> Iterator[RecordedClaim]:
        """What the tools published about these attempts, where their readers know, beside what the attempts give."""
        for path, name in zip(self._paths, self._names, strict=True):
            claims = getattr(_reader(name), "claims", None)
            if claims is not None:
                with explain_plugin_errors("outcomes", name, printable(str(path))), explain_file_errors(path):
                    yield from claims(path)

    @property
    def files(self) -> tuple[EvalSetFile, ...]:
        """The files by absolute path and digest; a folder has no digest."""
        return tuple(EvalSetFile(path=str(path.absolute()), digest=_file_digest(path)) for path in self._paths)


def _file_digest(path: Path) -> str:
    if path.is_dir():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


@contextmanager
def explain_file_errors(path: Path) -> Iterator[None]:
    """Turn every read error into one sentence with the file's name."""
    where = printable(str(path))
    try:
        yield
    except UnreadableOutcomesError as error:
        raise InputError([Problem(where, error.line, printable(error.what))]) from None
    except UNPACKING_ERRORS as error:
        raise InputError(f"{where}: cannot be unpacked: {str(error)[:200]}; pack it again") from None
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror or str(error)[:200]}") from None


class CaseNames:
    """The names of the cases that recorded attempts are about; a name of several cases gets a number."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str, str, str], str] = {}
        self._variants: dict[str, int] = {}
        self._taken: set[str] = set()

    def __call__(self, attempt: RecordedAttempt) -> str:
        """The name of an attempt's case."""
        known = attempt.case, attempt.judged_by, attempt.target, attempt.tests
        name = self._names.get(known)
        if name is None:
            others = self._variants.get(attempt.case, 0)
            self._variants[attempt.case] = others + 1
            plain = _plain_name(attempt)
            name = f"{plain}#{others + 1}" if others else plain
            while name in self._taken:
                name = f"{plain}#{len(self._taken)}"
            self._taken.add(name)
            self._names[known] = name
        return name


def _plain_name(attempt: RecordedAttempt) -> str:
    return printable(attempt.case)[:MAX_CASE_ID_CHARACTERS] or "-"


def _recorded_case(name: str, attempt: RecordedAttempt, prompt: str | tuple[Message, ...] = "") -> Case:
    settings: dict[str, Any] = {"judged_by": attempt.judged_by}
    if attempt.tests:
        settings["tests"] = attempt.tests
    plain = _plain_name(attempt)
    return Case(
        id=name,
        prompt=prompt,
        target=attempt.target,
        tags=attempt.tags,
        group=attempt.group or (plain if name != plain else ""),
        verify=Verify(kind=RECORDED_KIND, settings=settings),
    )


def counted_tests_digest() -> str:
    """The tests of a case of which only counts are known: the same in every table, and in no run of ours."""
    return _recorded_case("-", RecordedAttempt(case="-", model="-", judged_by="counts")).tests_digest


class RecordedCase(NamedTuple):
    """What facts say of the case that they are about."""

    id: str
    tests: str
    """The digest of its tests."""
    asked: str
    """The digest of what was asked."""


class RecordedCases:
    """The cases that recorded attempts are about, with what was asked, and the numbers of their attempts.

    Many or long cases are in a file from the moment they are added; of each its name and its digests are held.
    """

    def __init__(self) -> None:
        self._collector = CaseCollector()
        self._name = CaseNames()
        self._digests: dict[str, bytes] = {}
        """The digests of the tests and of what was asked, by case."""
        self._used: dict[tuple[str, str], dict[str, int]] = {}
        """The numbers that are taken, as bits, by model and tier and then by case."""

    def case(self, attempt: RecordedAttempt) -> RecordedCase:
        """The case of an attempt."""
        name = self._name(attempt)
        digests = self._digests.get(name)
        if digests is None:
            case = _recorded_case(name, attempt, attempt.prompt)
            self._collector.append(case)
            digests = bytes.fromhex(case.tests_digest + Attempt(case=case, model="").asked)
            self._digests[name] = digests
        both, half = digests.hex(), len(digests)
        return RecordedCase(name, both[:half], both[half:])

    def number(self, case: str, attempt: RecordedAttempt) -> int:
        """A number that no other attempt of the model at the case has: its own where that is free."""
        of_model = self._used.setdefault((attempt.model, attempt.tier), {})
        used = of_model.get(case, 1)
        number = attempt.number
        if number is None or not 0 < number <= MAX_TRACKED_NUMBER or used >> number & 1:
            # the first number that is free: the lowest bit that is not set
            number = (~used & (used + 1)).bit_length() - 1
        if number > MAX_ATTEMPTS_PER_CASE:
            raise InputError(f"case {short_quote(case)}: more than {MAX_ATTEMPTS_PER_CASE:,} attempts")
        of_model[case] = used | 1 << number
        return number

    def cases(self) -> Sequence[Case]:
        """All of them, once no more attempts come."""
        return self._collector.cases()


class _RecordedCount:
    """The attempts of one model at one case."""

    __slots__ = ("costs", "graded", "missing", "passed", "scored", "scores", "tried")

    def __init__(self) -> None:
        self.tried = 0
        self.graded = 0
        self.scored = 0
        self.passed = 0
        self.missing = 0
        self.scores: dict[float, int] = {}
        self.costs: list[float] | None = []
        """What its attempts cost; None as soon as one price is unknown."""

    def add(self, attempt: RecordedAttempt) -> None:
        if attempt.passed is None:
            self.missing += attempt.times
            return
        score = float(attempt.passed) if attempt.score is None else attempt.score
        self.tried += attempt.times
        self.graded += attempt.times * attempt.graded
        self.scored += attempt.times * (attempt.score is not None)
        self.passed += attempt.times * attempt.passed
        self.scores[score] = self.scores.get(score, 0) + attempt.times
        if attempt.answer is None or attempt.answer.cost is None:
            self.costs = None
        elif self.costs is not None:
            self.costs.append(attempt.answer.cost.usd)

    @property
    def mean_score(self) -> float | None:
        """None without attempts."""
        return math.fsum(score * times for score, times in self.scores.items()) / self.tried if self.tried else None

    @property
    def cost(self) -> float | None:
        """What its attempts cost together; None if a price is unknown."""
        return math.fsum(self.costs) if self.costs else None


class _Counted:
    """The attempts of files, counted by what a comparison calls the model, and by case."""

    def __init__(self, recorded: RecordedFiles) -> None:
        self.models: dict[str, dict[str, _RecordedCount]] = {}
        self.tests: dict[str, str] = {}
        """The digest of each case's tests."""
        name_of = CaseNames()
        labels: dict[tuple[str, str], str] = {}
        digests: dict[tuple[str, str, str], str] = {}
        for attempt in recorded.attempts(texts=False):
            column = attempt.model, attempt.tier
            label = labels.get(column)
            if label is None:
                label = labels[column] = Column(printable(attempt.model) or "-", printable(attempt.tier)).label
            name = name_of(attempt)
            if name not in self.tests:
                judged = attempt.judged_by, attempt.target, attempt.tests
                if judged not in digests:
                    digests[judged] = _recorded_case(name, attempt).tests_digest
                self.tests[name] = digests[judged]
            of_model = self.models.setdefault(label, {})
            count = of_model.get(name)
            if count is None:
                count = of_model[name] = _RecordedCount()
            count.add(attempt)


def recorded_side(path: str, scores: ScoreReading = PLAIN_SCORES) -> Side:
    """A file of another tool as a side of a comparison; its texts are not kept."""
    recorded = RecordedFiles([path], scores=scores)
    counted_file = _Counted(recorded)
    if not counted_file.models:
        raise InputError(f"{printable(path)}: no attempts in it")
    known: dict[tuple[tuple[float, int], ...], tuple[tuple[float, int], ...]] = {}

    def score_counts(count: _RecordedCount) -> tuple[tuple[float, int], ...]:
        """Most cases of a long table have the scores of another case: one tuple stands for all of them."""
        found = tuple(sorted(count.scores.items()))
        return known.setdefault(found, found)

    return Side(
        name=path,
        rule="code",
        is_scored=any(count.scored for of_model in counted_file.models.values() for count in of_model.values()),
        warnings=tuple(map(str, recorded.problems)),
        models={
            model: tuple(
                Trials(
                    case=case,
                    tests=counted_file.tests[case],
                    judged_by=(RECORDED_VERSION,),
                    attempts=count.tried,
                    passes=count.passed,
                    missing=count.missing,
                    scores=score_counts(count),
                    graded=count.graded,
                    cost_usd=count.cost,
                )
                for case, count in sorted(of_model.items())
            )
            for model, of_model in sorted(counted_file.models.items())
        },
    )


def recorded_tallies(paths: Iterable[str], scores: ScoreReading = PLAIN_SCORES) -> OutcomeTallies:
    """The attempts in files of other tools, one tally per model, all with the same cases."""
    recorded = RecordedFiles(paths, scores=scores)
    counted_files = _Counted(recorded)
    nothing = _RecordedCount()
    tallies = []
    for model, of_model in sorted(counted_files.models.items()):
        every = [of_model.get(case, nothing) for case in counted_files.tests]
        costs = [count.cost if count.tried else 0.0 for count in every]
        tallies.append(
            Tally(
                model=model,
                cases=list(counted_files.tests),
                tried=[count.tried for count in every],
                passed=[count.passed for count in every],
                missing=sum(count.missing for count in every),
                costs=None if None in costs else [cost or 0.0 for cost in costs],
                scores=[count.mean_score for count in every] if any(count.scored for count in every) else None,
                on=deciding_measure(
                    GradedCounts(count.graded, count.passed, tuple(count.scores.items())) for count in every
                ),
            )
        )
    return OutcomeTallies(tuple(tallies), tuple(recorded.problems))


def recorded_agreement(stored: StoredRun) -> Iterator[str]:
    """What another tool says of the replies that we have verified too, beside what we say, one sentence per model."""
    cases = {case.id: case for case in stored.cases if case.has_verifier}
    theirs: dict[str, bool] = {}
    ours: dict[str, Verdict] = {}
    for fact in stored.facts():
        if isinstance(fact, Verdict) and fact.case in cases:
            if fact.found.trust == "recorded":
                theirs[fact.ask] = bool(fact.found.passed)
            elif fact.tests == cases[fact.case].tests_digest:
                ours[fact.ask] = fact
    by_model: dict[str, list[tuple[bool, bool, Verdict]]] = {}
    for ask, verdict in ours.items():
        if ask in theirs:
            outcome = theirs[ask], is_correct(cases[verdict.case], verdict.found), verdict
            by_model.setdefault(verdict.model, []).append(outcome)
    for model, outcomes in sorted(by_model.items()):
        differing = [one for one in outcomes if one[0] != one[1]]
        sentence = (
            f"{model}: of {counted(len(outcomes), 'reply', 'replies')} they say {sum(one[0] for one in outcomes)} are correct, "
            f"we say {sum(one[1] for one in outcomes)}"
        )
        if differing:
            first = differing[0][2]
            passed = sum(one[0] for one in differing)
            sentence += (
                f"; {passed} pass for them alone and {len(differing) - passed} for us alone, "
                f"the first is {first.case}, attempt {first.number}"
            )
        yield sentence
