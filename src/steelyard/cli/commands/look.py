"""The commands that look at stored runs: list, show, report, query, view."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.cli import arguments
from steelyard.cli.console import (
    find_named_run,
    is_color_wanted,
    print_to_stderr,
    print_written,
    terminal_width,
    warn,
)
from steelyard.cli.options import (
    Command,
    add_browser_options,
    add_copies_option,
    add_format_option,
    add_report_option,
    add_run_argument,
    add_scoring_options,
    add_settings_option,
    add_suite_options,
    add_trust_option,
    positive_integer,
)
from steelyard.errors import ExitCode
from steelyard.secret_texts import Environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.engine.results.stored_results import StoredResults


def list_runs(options: argparse.Namespace) -> int:
    """List the runs, oldest first."""
    from steelyard.cli.run_list import print_runs

    settings = arguments.command_settings(options)
    print_runs(Path(settings.output_dir), width=terminal_width(), color=is_color_wanted())
    return ExitCode.OK


def _list_options(sub: argparse.ArgumentParser) -> None:
    add_settings_option(sub)


def show(options: argparse.Namespace) -> int:
    """Show a run, one of its cases, or one attempt with everything that is known about it."""
    from steelyard.engine.results.conclusion import next_commands
    from steelyard.engine.results.stored_results import (
        AttemptSelection,
        attempts_by_case,
        check_selection,
        selected_attempts,
    )
    from steelyard.engine.tiers.reply_judgments import reply_judgments
    from steelyard.reports import terminal
    from steelyard.reports.terminal_attempt import attempt_text
    from steelyard.store.journal import StoredRun

    results, folder = _results(options)
    look: dict[str, Any] = {"width": terminal_width(), "color": is_color_wanted()}
    chosen = AttemptSelection(options.case, options.number, options.model or "", only_failed=options.failed)
    if options.case is None and not options.failed:
        commands = next_commands(folder, results.info, results.summary)
        check_selection(results, folder, chosen)
        text = terminal.summary_text(results.summary, title=str(folder), next_commands=commands, details=True, **look)
        print(text, end="")
        return ExitCode.OK
    attempts = selected_attempts(results, folder, chosen)
    if options.case is None:
        separator = ""
        for group, summary in attempts_by_case(results, attempts):
            print(f"{separator}{terminal.case_text(group, summary, **look)}", end="")
            separator = "\n"
    elif options.number is None:
        print(terminal.case_text(attempts, results.summary, **look), end="")
    else:
        found = list(attempts)
        judged = reply_judgments(StoredRun(folder), {tried.reply.key for tried in found if tried.reply})
        of_reply = ((tried, judged.get(tried.reply.key, ()) if tried.reply else ()) for tried in found)
        print("\n".join(attempt_text(tried, said, **look) for tried, said in of_reply), end="")
    return ExitCode.OK


def _show_options(sub: argparse.ArgumentParser) -> None:
    add_run_argument(sub)
    sub.add_argument("case", nargs="?", help="a case's id: its attempts, one line each")
    sub.add_argument(
        "number", nargs="?", type=positive_integer, help="an attempt's number: prompt, reply, code, tests, cost"
    )
    sub.add_argument("--model", metavar="P/M", help="only attempts of this model; of one tier as 'P/M (TIER)'")
    sub.add_argument("--failed", action="store_true", help="only attempts that were not correct")
    add_trust_option(sub)
    add_scoring_options(sub)
    add_suite_options(sub)
    add_settings_option(sub)


def report(options: argparse.Namespace) -> int:
    """Write reports of a run; the file's suffix chooses the format."""
    from steelyard.engine.results.import_run import check_report_request, named_run, write_run_reports
    from steelyard.engine.results.report_files import ScoringOverrides

    settings = arguments.command_settings(options)
    root = Path(settings.output_dir)
    check_report_request(options.report or (), baseline=options.baseline)
    with named_run(options.run, root=root) as source:
        warn(source.notes)
        scoring = ScoringOverrides(
            options.pass_k, options.rule, arguments.suite_rule_of(source.folder, options, settings)
        )
        print_written(write_run_reports(source, options.report, scoring, baseline=options.baseline, root=root))
        warn(source.stored.damaged)
    return ExitCode.OK


def _report_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("run", metavar="RUN|FILE", help="a run folder, its name, latest, or a file of another tool")
    add_report_option(sub)
    sub.add_argument(
        "--baseline", metavar="A", help="for .html: compare the run with this, as steelyard gate and compare do"
    )
    add_scoring_options(sub)
    add_suite_options(sub)
    add_settings_option(sub)


REPORT_EXAMPLES = """\
examples:
  steelyard report latest -o report.html -o report.json
  steelyard report latest --baseline main -o report.html
  steelyard report logs/2026-01-05_gsm8k.eval -o report.html"""


def query(options: argparse.Namespace) -> int:
    """Query all runs in SQL."""
    root = Path(arguments.command_settings(options).output_dir)
    if not options.report and options.format == "table":
        warnings = _print_answer(options.sql, root, None if options.copies is None else Path(options.copies))
    else:
        from steelyard.engine.results.query import stream_query_result, write_query_result

        if options.report:
            warnings = write_query_result(options.sql, options.report, root, copies=options.copies)
            print_to_stderr(f"wrote {options.report}")
        else:
            sys.stdout.flush()
            stream = sys.stdout.buffer
            warnings = stream_query_result(options.sql, options.format, stream, root, copies=options.copies)
    warn(warnings)
    return ExitCode.OK


def _print_answer(sql: str, root: Path, copies: Path | None) -> Sequence[str]:
    """Print the first rows of an answer as a table; returns the warnings."""
    from steelyard.engine.results.query import run_query
    from steelyard.reports.lists import rows_text

    with run_query(sql, root, copies=copies) as answer:
        rows, is_more = answer.shown()
        print(rows_text(answer.columns, rows, color=is_color_wanted()), end="")
    if is_more:
        print_to_stderr(f"only the first {len(rows):,} rows are shown; --format csv and -o FILE give all of them")
    return answer.warnings


def _query_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("sql", metavar="SQL", help="a query over the tables runs, cases, attempts, verdicts, failures")
    add_format_option(sub, "table", "csv", "json", "parquet")
    sub.add_argument("-o", "--report", metavar="FILE", help="write the answer instead: .csv .json .parquet")
    add_copies_option(sub)
    add_settings_option(sub)


QUERY_EXAMPLES = """\
examples:
  steelyard query "SELECT model, avg(correct::int) AS pass_rate FROM attempts GROUP BY model"
  steelyard query "SELECT * FROM failures" -o failures.parquet
"""


def view(options: argparse.Namespace) -> int:
    """Show the runs of a folder as web pages, even while they grow; on this machine only, until Ctrl-C."""
    from steelyard.errors import InputError

    if options.export == "":
        raise InputError('--export "": name the new folder, such as --export pages')
    root = Path(arguments.command_settings(options).output_dir)
    if not options.path:
        return _show_pages(root, f"the runs of {root}", options)
    # what reads files of other tools takes long to load
    from steelyard.engine.results.import_run import viewed_folder

    with viewed_folder(options.path, root) as source:
        warn(source.notes)
        return _show_pages(source.folder, source.shown, options)


def _show_pages(folder: Path, shown: str, options: argparse.Namespace) -> int:
    from steelyard.viewer.app import serve

    def announce(url: str) -> None:
        print(url, flush=True)
        print_to_stderr(f"showing {shown}; Ctrl-C ends it")

    if options.export:
        return _export(folder, Path(options.export))
    key = Environment().get("STEELYARD_API_KEY", "")
    is_browser_wanted = sys.stdout.isatty() and not options.no_browser
    serve(folder, port=options.port, key=key, tell=announce, browser=is_browser_wanted)
    return ExitCode.OK


def _export(root: Path, target: Path) -> int:
    from steelyard.text import counted
    from steelyard.viewer.export import export

    written = export(root, target)
    warn([f"{problem}; its page says so" for problem in written.problems])
    print(target / "index.html")
    print_to_stderr(
        f"{counted(written.pages, 'page')}, {written.bytes / 10**6:.1f} MB; open it as a file, or serve the folder"
    )
    return ExitCode.OK


def _view_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "path",
        nargs="*",
        metavar="DIR|FILE",
        help="a folder of runs, one run, or files of other tools (default: steelyard-runs)",
    )
    add_browser_options(sub, DEFAULT_VIEWER_PORT)
    sub.add_argument(
        "--export", metavar="DIR", help="write the pages to a new folder instead, for any web server or browser"
    )
    add_settings_option(sub)


VIEW_EXAMPLES = """\
The address is printed on standard output. It holds a key, new for each start, because other users of this machine can reach
the port as well: open it as it is printed, and the browser keeps the key. With STEELYARD_API_KEY set, that is the key, and it is not printed.

examples:
  steelyard view
  steelyard view evals/steelyard-runs --port 0 --no-browser
  steelyard view logs/monday.eval logs/tuesday.eval
  steelyard view --export pages"""

DEFAULT_VIEWER_PORT = 7373


def _results(options: argparse.Namespace) -> tuple[StoredResults, Path]:
    import msgspec

    from steelyard.engine.results.stored_results import stored_results
    from steelyard.store.journal import StoredRun

    settings = arguments.command_settings(options)
    folder = find_named_run(options.run, settings)
    stored = StoredRun(folder)
    by = {"k": options.pass_k, "rule": options.rule, "suites": arguments.suite_rule_of(folder, options, settings)}
    info = stored.info
    if options.require_trust:
        info = msgspec.structs.replace(info, require_trust=options.require_trust)
    found = stored_results(stored, info=info, **by)
    warn(stored.damaged)
    return found, folder


COMMANDS = {
    "list": Command(list_runs, _list_options, ""),
    "show": Command(
        show, _show_options, "examples:\n  steelyard show latest --failed\n  steelyard show latest merge-bookings 3"
    ),
    "report": Command(report, _report_options, REPORT_EXAMPLES),
    "query": Command(query, _query_options, QUERY_EXAMPLES),
    "view": Command(view, _view_options, VIEW_EXAMPLES),
}
