"""Results as text: one pure function per format, found by name or by a file's suffix.

Input: what analysis, comparison and tiers computed. Output: text; others print and write it.
Nothing here reads a file, a clock or the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath

from msgspec.structs import replace

from steelyard import plugins
from steelyard.analysis.attempt_texts import attempts_of_model
from steelyard.analysis.summary import RunResults
from steelyard.errors import InputError, did_you_mean
from steelyard.plugins.built_in import BUILT_IN_SUFFIXES
from steelyard.protocols import Report
from steelyard.reports.exports.streaming import StreamedReport
from steelyard.reports.figures import model_label

REPORT_FORMAT_BY_SUFFIX: Mapping[str, str] = BUILT_IN_SUFFIXES["reports"]
"""Our own formats by the suffix that asks for them; `report_format_of` knows those of plug-ins, too."""
PARQUET_SUFFIX = ".parquet"
"""Asks for the table of attempts, which is no text and has no report of its own."""


def report_format_of(path: str | PurePath) -> str:
    """The format that a file's suffix asks for; raises InputError when no report has that suffix."""
    suffix = PurePath(path).suffix
    # x.eee.json is a record of Every Eval Ever, x.v1.json our own JSON
    for ending in dict.fromkeys(("".join(PurePath(path).suffixes[-2:]), suffix)):
        if name := plugins.plugin_for_suffix("reports", ending):
            return name
    known = [*plugins.known_suffixes("reports"), PARQUET_SUFFIX]
    raise InputError(f'{path}: no report format for "{suffix}" ({did_you_mean(suffix, known)})')


ONE_MODEL_FORMATS = frozenset({"evalplus", "every-eval-ever", "inspect"})
"""The formats of other tools whose files are about one model."""


def results_by_model(results: RunResults) -> dict[str, RunResults]:
    """The results of each model under each tier alone, by the name of its column."""
    models = {model_label(model.model, model.tier): model for model in results.summary.models}
    return {
        label: results._replace(
            attempts=attempts_of_model(results.attempts, model.model, model.tier),
            summary=replace(
                results.summary,
                models=(model,),
                cases=tuple(one for one in results.summary.cases if (one.model, one.tier) == (model.model, model.tier)),
            ),
        )
        for label, model in models.items()
    }


def needs_texts(name: str) -> bool:
    """Whether a report shows what models wrote; one that does not is given results without attempts."""
    return bool(getattr(plugins.load_plugin("reports", name), "needs_texts", True))


def render(name: str, results: RunResults, *, where: str = "") -> str:
    """The report registered under a name; if it fails, the message names `where`, the file to be written."""
    return "".join(rendered_pieces(name, results, where=where))


def rendered_pieces(name: str, results: RunResults, *, where: str = "") -> Iterator[str]:
    """The same in pieces, each made when it is asked for, where the report can be made that way."""
    if name in ONE_MODEL_FORMATS and len(results.summary.models) > 1:
        models = ", ".join(model_label(model.model, model.tier) for model in results.summary.models)
        raise InputError(f"{name} files are about one model, and the run has {models}; -o FILE writes a file for each")
    report: Report = plugins.load_plugin("reports", name)
    with plugins.explain_plugin_errors("reports", name, where):
        shown = results if needs_texts(name) else results._replace(attempts=())
        if isinstance(report, StreamedReport):
            yield from report.pieces(shown)
            return
        text = report(shown)
        if not isinstance(text, str):
            raise TypeError(f"it returned {type(text).__name__}, not str")
    yield text
