"""One run out of its shards."""

from __future__ import annotations

import heapq
import math
import operator
import shlex
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard.analysis.attempt_texts import AttemptText, attempt_texts
from steelyard.engine import plan
from steelyard.engine.options import RunOptions
from steelyard.engine.results.headline_cache import summarise_and_cache
from steelyard.engine.results.import_run import write_recorded_run
from steelyard.engine.run import Run, run_id
from steelyard.errors import BoundedProblemList, InputError, Problem, SteelyardError
from steelyard.records import (
    RECORDED_KIND,
    Case,
    EvalSetFile,
    MergedRun,
    RecordedAttempt,
    Reply,
    RunInfo,
    Shard,
    Spending,
    WitnessCounts,
)
from steelyard.store.assembled_runs import append_facts, create_run_atomically
from steelyard.store.attachments import copy_kept_files
from steelyard.store.journal import JournalFact, StoredRun
from steelyard.store.locks import read_lock
from steelyard.store.responses import copy_records
from steelyard.store.run_folders import DeliveredRun, find_run, run_folder_snapshot
from steelyard.store.side_files import (
    case_limits,
    record_case_limits,
    record_witness_results,
    stored_batches,
    witness_results,
)
from steelyard.store.stored_cases import collected_cases
from steelyard.text import printable, short_quote


def merge_imported_runs(runs: Sequence[StoredRun], *, output: str | Path | None = None, root: Path) -> Run:
    """One run of the attempts of several imported runs; they stay as they are."""
    return write_recorded_run(_ImportedRuns(runs), output=output, root=root)


class _ImportedRuns:
    """The recorded attempts of imported runs."""

    def __init__(self, runs: Sequence[StoredRun]) -> None:
        self._runs = runs
        self.problems: list[Problem] = []
        wrong: list[Problem] = []
        seen: dict[tuple[str, str], Path] = {}
        for run in self._runs:
            if any(case.kind != RECORDED_KIND for case in run.cases):
                what = "was verified here as well, and such runs are not merged; import its files together instead"
                wrong.append(Problem(str(run.folder), 0, what))
            for file in run.info.recordings:
                # two folders are the same by their paths, two files by what they hold
                first = seen.setdefault((file.digest, "" if file.digest else file.path), run.folder)
                if first is not run.folder:
                    what = f"{file.path} is in {first} as well; leave one of them out"
                    wrong.append(Problem(str(run.folder), 0, what))
        if wrong:
            raise InputError(wrong)

    @property
    def files(self) -> tuple[EvalSetFile, ...]:
        return tuple(file for run in self._runs for file in run.info.recordings)

    def attempts(self) -> Iterator[RecordedAttempt]:
        for run in self._runs:
            for tried in attempt_texts(run.info, run.cases, run.facts()):
                yield _recorded(tried)
            self.problems += run.damaged


def _recorded(tried: AttemptText) -> RecordedAttempt:
    """An attempt as it was before it was imported."""
    case, settings = tried.case, tried.case.verify.settings
    # ID#2 is the name of a case that was judged by two scorers, and its group the plain one
    plain, _, place = case.id.rpartition("#")
    name = plain if place.isdecimal() and case.group == plain else case.id
    fact = tried.verdict or tried.failure or tried.reply
    found = tried.verdict.found if tried.verdict else None
    return RecordedAttempt(
        case=name,
        model=tried.model,
        judged_by=str(settings.get("judged_by", "")),
        tool=tried.verdict.verifier.partition(", ")[2] if tried.verdict else "",
        number=tried.number,
        tier=tried.tier,
        passed=found.passed if found else None,
        score=found.score if found else None,
        answer=tried.reply.answer if tried.reply else None,
        prompt=case.prompt,
        target=case.target or "",
        label=found.label if found else "",
        reason=found.reason if found else "",
        levels=found.levels if found else {},
        failure=tried.failure.message if tried.failure else "",
        tests=str(settings.get("tests", "")),
        group="" if name != case.id else case.group,
        tags=case.tags,
        at=fact.at if fact else "",
    )


MAX_MERGED_JOURNALS = 64
"""Journals of a merged run at most: some readers take longer for many small ones than for few large ones."""
MAX_PLAN_VALUE_CHARACTERS = 300
"""Characters of a value that are shown where plans differ."""
MAX_LISTED_MERGE_PROBLEMS = 5
"""Problems of one kind that are listed in full; the others are only counted."""
PLAN_FIELD_LABELS = {
    "names": "names of models",
    "k": "pass-k",
    "panel": "judges",
    "more": "attempts at some cases",
    "until": "until-decided",
}
"""The names of plan fields in messages, where they differ."""


class ShardRun(NamedTuple):
    """A run folder that holds one shard, or several that were merged before."""

    folder: Path
    """As the user named it."""
    stored: StoredRun
    info: RunInfo
    written: bytes
    """run.json as it was read."""
    shard: Shard
    cases: Sequence[Case]

    @property
    def name(self) -> str:
        """What it is, and where."""
        return f"{_shard_numbers_text(self.shard.numbers)} of {self.shard.of} ({self.folder})"


def merge(
    runs: Sequence[str | Path],
    *,
    output: str | Path | None = None,
    partial: bool = False,
    means: RunOptions = RunOptions(),
) -> Run:
    """Join the shards of one plan, or runs imported from other tools' files, to one ordinary run in a folder of its own.

    Nothing is asked and nothing verified; the shards stay as they are. With `partial`, shards may be missing; the
    result can be merged with them later.
    """
    root = Path(means.settings.output_dir)
    if imported := _imported_runs(runs, root):
        return merge_imported_runs(imported, output=output, root=root)
    parts = sorted(_shard_runs(runs, root), key=lambda part: part.shard.numbers)
    _check_same_plan(parts)
    _check_no_duplicate_shards(parts)
    _check_no_open_batches(parts)
    missing = _missing_shards(parts)
    if missing and not partial:
        raise InputError(
            f"{_shard_numbers_text(missing)} of {parts[0].shard.of} {_is_or_are(missing)} missing; run "
            f"{'it' if len(missing) == 1 else 'them'} with --shard {missing[0]}/{parts[0].shard.of}"
            f"{' and so on' if len(missing) > 1 else ''}, or merge what is there with --partial"
        )
    info, cases = _merged_info(parts, missing), _cases_in_order(parts)
    folder = Path(output) if output is not None else root / info.id
    with create_run_atomically(folder) as journal:
        notes = [*_copy_facts(parts, journal.folder), *_notes(parts, missing, folder)]
        journal.ask(cases)
        # fields of a later version stay where all shards have the same
        journal.keep("run.json", _common_fields([part.written for part in parts]))
        journal.describe(info)
        summary, unprepared = summarise_and_cache(journal, info, cases)
        notes += [note.replace(str(journal.folder), str(folder)) for note in unprepared]
    return Run(folder, info, summary, (), tuple(notes))


def _common_fields(written: Sequence[bytes]) -> bytes:
    """The fields that all these objects have with the same values."""
    first, *others = (msgspec.json.decode(each, type=dict[str, Any]) for each in written)
    return msgspec.json.encode(
        {key: value for key, value in first.items() if all(key in other and other[key] == value for other in others)}
    )


def _imported_runs(runs: Sequence[str | Path], root: Path) -> list[DeliveredRun]:
    """The runs where all of them were imported; empty if one was not, or cannot be read."""
    try:
        found = [DeliveredRun(find_run(str(run), root).resolve()) for run in runs]
        return found if all(run.info.recordings and run.info.shard is None for run in found) else []
    except SteelyardError:
        return []


def _shard_runs(runs: Iterable[str | Path], root: Path) -> list[ShardRun]:
    """What the folders hold; raises one InputError with all that is wrong with each of them."""
    found: list[ShardRun] = []
    wrong: list[Problem] = []
    for run in runs:
        try:
            found.append(_shard_run(find_run(str(run), root)))
        except InputError as error:
            wrong += error.problems
        except SteelyardError as error:
            wrong.append(Problem("", 0, str(error)))
    if wrong:
        raise InputError(wrong)
    return found


def _shard_run(folder: Path) -> ShardRun:
    # the user may name a link; what is in the folder may not be one
    stored = DeliveredRun(folder.resolve() if folder.is_symlink() else folder)
    info, written = stored.described()
    for moment in (info.started_at, info.ended_at):
        if moment is not None and not _is_timestamp(moment):
            raise InputError(f"{folder}/run.json: {short_quote(moment)} is not a timestamp; restore the file")
    shard = info.shard
    if shard is None:
        raise InputError(f"{folder}: a whole run, not a shard; shards come from: steelyard run ... --shard I/N")
    if not _is_valid_shard(shard) or not plan.is_plan_unchanged(info):
        raise InputError(
            f"{folder}/run.json: changed since it was written: its plan does not match its digest; "
            "restore the file, or run the shard again"
        )
    try:
        links = run_folder_snapshot(stored.folder).links
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror}") from None
    if links:
        raise InputError(f"{folder}/{links[0]}: a link or a special file; put the journal itself there")
    cases = stored.cases
    if not plan.are_shard_cases_unchanged(shard, cases):
        raise InputError(
            f"{folder}/cases.jsonl: not the cases of {_shard_numbers_text(shard.numbers)} of {shard.of}, or not with their "
            "original tests; restore the file, or run the shard again"
        )
    return ShardRun(folder, stored, info, written, shard, cases)


def _is_timestamp(text: str) -> bool:
    """Whether it says when, in the way that runs do."""
    try:
        return datetime.fromisoformat(text).isoformat(timespec="milliseconds").replace("+00:00", "Z") == text
    except ValueError:
        return False


def _is_valid_shard(shard: Shard) -> bool:
    """Whether numbers that anybody may have written make sense."""
    numbers = shard.numbers
    in_order = bool(numbers) and list(numbers) == sorted(set(numbers)) and 1 <= numbers[0] <= numbers[-1] <= shard.of
    return in_order and shard.of <= plan.MAX_SHARDS and len(shard.dealt) == shard.of


def _check_same_plan(parts: Sequence[ShardRun]) -> None:
    plans = Counter(part.shard.plan for part in parts)
    usual = plans.most_common(1)[0][0] if plans else ""
    reference = next((part for part in parts if part.shard.plan == usual), None)
    if reference is None:
        raise InputError("nothing to merge; name the run folders of all shards, such as: steelyard merge shards/*")
    odd = [part for part in parts if part.shard.plan != usual]
    problems = [
        Problem(
            str(part.folder), 0, f"not the same plan as {reference.folder}: {'; '.join(_differences(part, reference))}"
        )
        for part in odd[:MAX_LISTED_MERGE_PROBLEMS]
    ]
    if len(odd) > MAX_LISTED_MERGE_PROBLEMS:
        problems.append(
            Problem("", 0, f"and {len(odd) - MAX_LISTED_MERGE_PROBLEMS} more that are not of the same plan")
        )
    if problems:
        raise InputError(problems)


def _differences(part: ShardRun, reference: ShardRun) -> Iterator[str]:
    """The differences between two plans."""
    ours, theirs = plan.comparable_plan(part.info), plan.comparable_plan(reference.info)
    for name in RunInfo.__struct_fields__:
        here, there = getattr(ours, name), getattr(theirs, name)
        if here != there:
            yield f"{PLAN_FIELD_LABELS.get(name, name)} {_plan_value_text(here)} instead of {_plan_value_text(there)}"
    if part.shard.of != reference.shard.of:
        yield f"split into {part.shard.of} shards instead of {reference.shard.of}"
    if part.shard.cases != reference.shard.cases:
        yield f"{part.shard.cases:,} cases instead of {reference.shard.cases:,}"
    elif part.shard.of == reference.shard.of:
        pairs = zip(part.shard.dealt, reference.shard.dealt, strict=True)
        others = [number for number, (here, there) in enumerate(pairs, 1) if here != there]
        if others:
            yield f"other cases or tests in {_shard_numbers_text(others)}"
    files = {file.path: file.digest for file in reference.info.eval_sets}
    for file in part.info.eval_sets:
        if files.get(file.path, file.digest) != file.digest:
            yield f"{file.path} has another content"


def _plan_value_text(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return printable(text if len(text) <= MAX_PLAN_VALUE_CHARACTERS else f"{text[:MAX_PLAN_VALUE_CHARACTERS]}...")


def _check_no_duplicate_shards(parts: Sequence[ShardRun]) -> None:
    known: dict[int, ShardRun] = {}
    for part in parts:
        for number in part.shard.numbers:
            first = known.setdefault(number, part)
            if first is not part:
                raise InputError(
                    f"shard {number} of {part.shard.of} is in {first.folder} and in {part.folder}; leave one of them out"
                )


def _check_no_open_batches(parts: Sequence[ShardRun]) -> None:
    """Refuse a shard that waits for a batch: the merged run would ask for the same again."""
    waiting = [part for part in parts if any(not batch.is_settled for batch in stored_batches(part.stored))]
    if waiting:
        raise InputError(
            f"{waiting[0].name} waits for a batch; first run: steelyard resume {shlex.quote(str(waiting[0].folder))}"
        )


def _missing_shards(parts: Sequence[ShardRun]) -> list[int]:
    there = {number for part in parts for number in part.shard.numbers}
    return [number for number in range(1, parts[0].shard.of + 1) if number not in there]


def _merged_info(parts: Sequence[ShardRun], missing: Sequence[int]) -> RunInfo:
    """The description of all parts together; where they differ outside the plan, the first part's value."""
    first = parts[0]
    infos = [part.info for part in parts]
    started_at = min(info.started_at for info in infos)
    ends = [info.ended_at for info in infos if info.ended_at is not None]
    unrecorded: Counter[str] = Counter()
    cached: Counter[str] = Counter()
    for info in infos:
        unrecorded.update(info.unrecorded)
        cached.update(info.cached_replies)
    numbers = tuple(sorted(number for part in parts for number in part.shard.numbers))
    return replace(
        first.info,
        id=run_id(started_at),
        started_at=started_at,
        # the whole run has ended when all of them have
        ended_at=max(ends) if len(ends) == len(infos) else None,
        versions=_combined_versions([info.versions for info in infos]),
        prices={model: price for info in reversed(infos) for model, price in info.prices.items()},
        unrecorded=dict(unrecorded),
        witnesses=_witness_counts(infos),
        reference_trust={case: trust for info in infos for case, trust in info.reference_trust.items()},
        skipped={case: reason for info in infos for case, reason in info.skipped.items()},
        uncontained={agent: reason for info in infos for agent, reason in info.uncontained.items()},
        cached_replies=dict(cached),
        spending=_spending(infos),
        shard=replace(first.shard, numbers=numbers) if missing else None,
        merged=tuple(
            MergedRun(
                id=part.info.id,
                numbers=part.shard.numbers,
                started_at=part.info.started_at,
                ended_at=part.info.ended_at,
                versions=part.info.versions,
            )
            for part in parts
        ),
    )


def _witness_counts(infos: Sequence[RunInfo]) -> WitnessCounts | None:
    known = [info.witnesses for info in infos if info.witnesses is not None]
    if not known:
        return None
    return WitnessCounts(tried=sum(counts.tried for counts in known), passed=sum(counts.passed for counts in known))


def _spending(infos: Sequence[RunInfo]) -> Spending | None:
    known = [info.spending for info in infos if info.spending is not None]
    names = Spending.__struct_fields__
    return Spending(**{name: math.fsum(getattr(each, name) for each in known) for name in names}) if known else None


def _combined_versions(versions: Sequence[dict[str, str]]) -> dict[str, str]:
    """The versions that were in use, several of one tool side by side."""
    names = dict.fromkeys(name for each in versions for name in each)
    return {name: ", ".join(dict.fromkeys(each[name] for each in versions if name in each)) for name in names}


def _cases_in_order(parts: Sequence[ShardRun]) -> Sequence[Case]:
    """The cases of all parts in their order before they were split into shards; many or long ones stay in a file."""

    def placed(part: ShardRun) -> Iterator[tuple[int, int, Case]]:
        numbers = part.shard.numbers
        for place, case in enumerate(part.cases):
            yield place // len(numbers), numbers[place % len(numbers)], case

    in_order = heapq.merge(*map(placed, parts), key=operator.itemgetter(0, 1))
    return collected_cases(case for _, _, case in in_order)


def _copy_facts(parts: Sequence[ShardRun], folder: Path) -> list[str]:
    """Copy the facts of all parts; returns what stayed behind, as warnings."""
    notes: list[str] = []
    owners = {case.id: part for part in parts for case in part.cases}
    keys = [array("q") for _ in parts]
    for part, own in zip(parts, keys, strict=True):
        notes += _copy_part(part, folder, _fact_checker(part, owners, own))
    _check_no_duplicate_replies(parts, keys)
    return notes


def _copy_part(part: ShardRun, folder: Path, check: Callable[[JournalFact, Path, int], None]) -> list[str]:
    """Copy the facts of a part, and what lies beside them; returns warnings."""
    with read_lock(part.stored.folder):
        if part.stored.described()[1] != part.written:
            raise InputError(f"{part.folder}: changed while it was being read; merge again when nothing writes to it")
        damages = BoundedProblemList(MAX_LISTED_MERGE_PROBLEMS)
        journal = folder / _journal_name(part.shard)
        append_facts(part.stored, journal, check, damages.add)
        record_witness_results(folder, witness_results(part.stored))
        record_case_limits(folder, case_limits(part.stored))
        copy_kept_files(part.stored.folder, folder)
        for kind in ("responses", "turns"):
            target = folder / f"{kind}{journal.name.removeprefix('attempts')}"
            copy_records(part.stored.folder, target, f"{kind}*.jsonl")
    notes = [str(problem) for problem in damages.first]
    if damages.more:
        notes.append(f"{part.folder}: {damages.more:,} more lines that are not facts were left out")
    return notes


def _journal_name(shard: Shard) -> str:
    """The journal that the facts of a part go to."""
    together = -(-shard.of // MAX_MERGED_JOURNALS)
    first = (shard.numbers[0] - 1) // together * together + 1
    width = len(str(shard.of))
    return f"attempts-{first:0{width}}-of-{shard.of}.jsonl"


def _fact_checker(
    part: ShardRun, owners: dict[str, ShardRun], keys: array[int]
) -> Callable[[JournalFact, Path, int], None]:
    """Refuses facts about cases that a part does not have, and notes the hashes of the keys of its replies."""

    def check(fact: JournalFact, path: Path, line: int) -> None:
        owner = owners.get(fact.case)
        if owner is not part:
            whose = f"belongs to {owner.name}" if owner else "belongs to no shard"
            raise InputError(
                f"{path}:{line}: is about case {short_quote(fact.case)}, which {whose}; take the line out, or run {part.name} again"
            )
        if isinstance(fact, Reply):
            # Python seeds this hash at random: no text can be written to collide with another
            keys.append(hash(fact.key))

    return check


def _check_no_duplicate_replies(parts: Sequence[ShardRun], keys: Sequence[array[int]]) -> None:
    """Refuse two replies to one asking in different parts."""
    import numpy

    distinct = [numpy.unique(numpy.asarray(own, dtype=numpy.int64)) for own in keys]
    every = numpy.sort(numpy.concatenate(distinct))
    twice = every[1:][every[1:] == every[:-1]]
    if not len(twice):
        return
    first, second = [part for part, own in zip(parts, distinct, strict=True) if twice[0] in own][:2]
    fact = next(fact for fact in second.stored.facts() if isinstance(fact, Reply) and hash(fact.key) == twice[0])
    raise InputError(
        f"{first.folder} and {second.folder} contain replies with the same key, such as attempt {fact.number} at case "
        f"{short_quote(fact.case)}; run one of them again"
    )


def _notes(parts: Sequence[ShardRun], missing: Sequence[int], folder: Path) -> Iterator[str]:
    """What a reader should know about how the parts fit together."""
    if missing:
        yield f"{_shard_numbers_text(missing)} of {parts[0].shard.of} {_is_or_are(missing)} missing: these are not all of the cases"
    unfinished = [part for part in parts if part.info.ended_at is None]
    if unfinished:
        names = ", ".join(part.name for part in unfinished[:MAX_LISTED_MERGE_PROBLEMS])
        more = (
            f" and {len(unfinished) - MAX_LISTED_MERGE_PROBLEMS} more"
            if len(unfinished) > MAX_LISTED_MERGE_PROBLEMS
            else ""
        )
        yield f"{names}{more} {_is_or_are(unfinished)} unfinished; continue with: steelyard resume {shlex.quote(str(folder))}"
    for name in ("steelyard", "python"):
        versions = dict.fromkeys(part.info.versions.get(name, "unknown") for part in parts)
        if len(versions) > 1:
            yield f"the shards were run with different versions of {name}: {', '.join(versions)}"
    for part in parts:
        if (part.stored.folder / "looks.jsonl").exists():
            yield f"{part.folder}: a gate looked at this shard alone; that look is no longer counted"


def _shard_numbers_text(numbers: Sequence[int]) -> str:
    """Shards by number, neighbours together.

    >>> _shard_numbers_text([3]), _shard_numbers_text([1, 2, 3, 7, 8])
    ('shard 3', 'shards 1-3, 7, 8')
    """
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    ranges = [f"{span[0]}-{span[-1]}" if len(span) > 2 else ", ".join(map(str, span)) for span in spans]
    return f"shard{'s' if len(numbers) > 1 else ''} {', '.join(ranges)}"


def _is_or_are(numbers: Sequence[object]) -> str:
    return "is" if len(numbers) == 1 else "are"
