"""Reports written to files: formats checked before any work is done for them, and the page of a run made in little memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from steelyard import reports
from steelyard.analysis.summary import RunResults, summarise, summarise_attempts
from steelyard.comparison.threshold import compare
from steelyard.engine.gate.gate import gate_sides
from steelyard.engine.gate.sides import side
from steelyard.engine.results.attempt_tables import stored_attempt_table
from steelyard.engine.results.labels import with_judged_rates
from steelyard.engine.results.query import write_query_result
from steelyard.engine.results.stored_results import StoredResults, stored_attempts, stored_results
from steelyard.engine.run import Run
from steelyard.engine.tiers import tier_runs
from steelyard.engine.tiers.reply_judgments import reply_judgments
from steelyard.errors import InputError
from steelyard.evalsets.jsonl import case_json_lines
from steelyard.records import Case, SuiteRule
from steelyard.reports.exports.streaming import merged_pieces
from steelyard.reports.html import BaselineReport, HtmlReportData, TierSections, page_pieces
from steelyard.reports.page import shown_attempts, truncated_text
from steelyard.store.files import (
    AtomicFiles,
    check_folder,
    check_writable,
    explain_write_errors,
    write_pieces,
)
from steelyard.store.journal import StoredRun


def write_cases(path: str | Path, cases: Iterable[Case]) -> None:
    """Write cases as JSONL, one object per line; an older file stays until all of them are written."""
    path = Path(path)
    with explain_write_errors(path.parent), AtomicFiles() as fresh:
        fresh.write(path, case_json_lines(cases))
        fresh.finish()


MAX_PAGE_TEXT_CHARACTERS, MIN_PAGE_TEXT_CHARACTERS, MAX_ALL_PAGE_TEXTS_CHARACTERS = 100_000, 2_000, 10_000_000
"""Characters that are kept of a text at most, at least, and of one text of every attempt together."""

MISFIT_CHARACTERS = re.compile(r"[^\w.-]+")
"""What the name of a file does not keep of a model's name."""

ShortenedValue = TypeVar("ShortenedValue")


def shortened(value: ShortenedValue, most: int) -> ShortenedValue:
    r"""A record whose texts have at most `most` characters; in longer ones a note stands for the middle.

    >>> shortened(("ab", "a" * 50 + "b" * 50), 6)
    ('ab', 'aaaa\n[94 characters left out]\nbb')
    """
    return cast("ShortenedValue", _shortened(value, most))


def _shortened(value: Any, most: int) -> Any:
    if isinstance(value, str):
        short = truncated_text(value, most)
        return f"{short.head}\n[{short.left_out:,} characters left out]\n{short.tail}" if short.left_out else value
    if isinstance(value, tuple):
        return tuple(_shortened(each, most) for each in value)
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        changed = {
            name: new for name, old in fields.items() if (new := _shortened(old, most)) is not old and new != old
        }
        return msgspec.structs.replace(value, **changed) if changed else value
    return value


def baseline_comparison(baseline: str, current: str, *, rule: str | None, root: Path) -> BaselineReport:
    """How one side compares with another, by threshold and by the gate; no look at a run is counted."""
    old, new = (side(name, rule=rule, root=root) for name in (baseline, current))
    found = gate_sides(old, new)
    return BaselineReport(compare(old, new), found.decision, found.warnings)


class ScoringOverrides(NamedTuple):
    """How a run is scored where that is not as the run itself says."""

    k: Sequence[int] | None = None
    rule: str | None = None
    suites: SuiteRule | None = None


def html_page(
    stored: StoredRun,
    *,
    k: Sequence[int] | None = None,
    rule: str | None = None,
    suites: SuiteRule | None = None,
    held: BaselineReport | None = None,
) -> str:
    """The page of a run, by its own k and rules or by others; of a large one only the texts that are shown are read."""
    return "".join(html_pieces(stored, ScoringOverrides(k, rule, suites), held))


def html_pieces(
    stored: StoredRun, scoring: ScoringOverrides = ScoringOverrides(), held: BaselineReport | None = None
) -> Iterator[str]:
    """The same in pieces."""
    k, rule, suites = scoring
    info, cases = stored.info, stored.cases
    # first, because what they are made of is as large as all else
    tiers = _tier_sections(stored)
    table = stored_attempt_table(stored, info, cases, rule=rule)
    summary = with_judged_rates(stored, summarise_attempts(info, cases, table, k=k, rule=rule, suites=suites))
    picked = shown_attempts(table.rows)
    most = max(
        MIN_PAGE_TEXT_CHARACTERS,
        min(MAX_PAGE_TEXT_CHARACTERS, MAX_ALL_PAGE_TEXTS_CHARACTERS // max(1, len(picked.rows))),
    )
    texts = stored_attempts(stored, cases, table, rows=picked.rows)
    shown = [
        tried._replace(
            reply=shortened(tried.reply, most),
            verdict=shortened(tried.verdict, most),
            failure=shortened(tried.failure, most),
        )
        for tried in texts
    ]
    judgments: dict[str, Any] = reply_judgments(stored, {tried.reply.key for tried in shown if tried.reply})
    yield from page_pieces(HtmlReportData(info, cases, summary, table, picked, shown, judgments, tiers, held))


def _tier_sections(stored: StoredRun) -> TierSections | None:
    """What a page shows of the tiers; None without tiers, or without anything to compare them with yet."""
    info = stored.info
    if info.experiment is None and info.panel is None:
        return None
    try:
        return TierSections.of(tier_runs.analysis(tier_runs.tier_experiment(stored)))
    except InputError:
        return None


def check_report_paths(paths: Iterable[str | Path]) -> None:
    """Raises an InputError if a report of a run could not be written: no such format, or no such folder."""
    for path in map(Path, paths):
        if path.suffix != reports.PARQUET_SUFFIX:
            reports.report_format_of(path)
        check_folder(path)


def formats_without_page(paths: Iterable[str | Path]) -> list[str]:
    """The formats of these files, apart from pages and tables of attempts: those are not made from results in memory."""
    texts = [path for path in paths if Path(path).suffix != reports.PARQUET_SUFFIX]
    return [name for name in map(reports.report_format_of, texts) if name != "html"]


def write_reports(
    paths: Iterable[str | Path],
    stored: StoredRun,
    scoring: ScoringOverrides = ScoringOverrides(),
    *,
    results: RunResults | None = None,
    baseline: BaselineReport | None = None,
) -> list[Path]:
    """Write reports of a run, each in the format of its suffix; returns what was written.

    A page is made from the run's folder, so that a large run need not fit into memory.
    """
    paths = tuple(paths)
    check_report_paths(paths)
    written = []
    for path in map(Path, paths):
        if path.suffix == reports.PARQUET_SUFFIX:
            _write_attempts(path, stored, scoring)
            written.append(path)
            continue
        name = reports.report_format_of(path)
        if name == "html":
            write_pieces(path, merged_pieces(html_pieces(stored, scoring, baseline)))
        else:
            results = results or stored_results(stored, **scoring._asdict())
            if name in reports.ONE_MODEL_FORMATS and len(results.summary.models) > 1:
                written += _write_by_model(path, name, results)
                continue
            write_pieces(path, reports.rendered_pieces(name, results, where=str(path)))
        written.append(path)
    return written


def _write_attempts(path: Path, stored: StoredRun, scoring: ScoringOverrides) -> None:
    """Write the table of attempts that a query would see, a row each."""
    if scoring.rule:
        raise InputError(f"{path}: a table of attempts has the scores of the run's own rule; leave --rule out")
    write_query_result("SELECT * FROM attempts", path, stored.folder)


def _write_by_model(path: Path, name: str, results: RunResults) -> list[Path]:
    """Write a file for each model, its name before the suffix: `x.eee.json` becomes `x-gpt-5.eee.json`."""
    written: list[Path] = []
    stem = path.name.partition(".")[0]
    for number, (label, of_model) in enumerate(reports.results_by_model(results).items(), 1):
        plain = MISFIT_CHARACTERS.sub("-", label).strip("-.") or str(number)
        found = path.with_name(f"{stem}-{plain}{path.name.removeprefix(stem)}")
        if found in written:
            found = path.with_name(f"{stem}-{plain}-{number}{path.name.removeprefix(stem)}")
        check_writable(found)
        write_pieces(found, reports.rendered_pieces(name, of_model, where=str(found)))
        written.append(found)
    return written


def scored_run(
    done: Run,
    stored: StoredRun | None = None,
    scoring: ScoringOverrides = ScoringOverrides(),
    *,
    with_attempts: bool = False,
) -> tuple[Run, StoredResults | None]:
    """A run with its summary by other k and rules, if there are any; with its attempts where these are wanted as well."""
    stored = stored or StoredRun(done.folder)
    if with_attempts:
        results = stored_results(stored, **scoring._asdict())
        return done._replace(summary=results.summary), results
    if any(scoring):
        done = done._replace(summary=summarise(done.info, stored.cases, stored.facts(), **scoring._asdict()))
    return done, None
