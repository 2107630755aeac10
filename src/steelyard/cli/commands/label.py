"""The command about people's labels: label."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.console import find_named_run, print_to_stderr, settings_and_run_options, terminal_width, warn
from steelyard.cli.options import Command, add_browser_options, add_run_argument, add_settings_option, fraction
from steelyard.errors import ExitCode
from steelyard.secret_texts import Environment

if TYPE_CHECKING:
    from steelyard.engine.results.labels import LabelledRun
    from steelyard.errors import Problem


def label(options: argparse.Namespace) -> int:
    """Mark answers of a run right or wrong in the browser, import or export labels as CSV, or show the corrected rates."""
    from steelyard.engine.results.labels import LabelledRun, default_labeller, export_labels, import_labels
    from steelyard.store.files import write_file
    from steelyard.store.journal import StoredRun
    from steelyard.text import counted

    settings, _ = settings_and_run_options(options)
    folder = find_named_run(options.run, settings)
    stored = StoredRun(folder)
    person = default_labeller(options.by, Environment())
    problems: list[Problem] = []
    if options.import_file:
        count = import_labels(stored, Path(options.import_file), person)
        print_to_stderr(f"{counted(count, 'label')} added to {folder}")
    if options.export_file:
        write_file(Path(options.export_file), export_labels(stored, problems.append))
        print_to_stderr(options.export_file)
    if options.rates or options.width:
        labelled = LabelledRun(stored)
        labelled.check_criterion(options.criterion)
        _print_rates(labelled, options, problems)
    warn(problems)
    if not (options.import_file or options.export_file or options.rates or options.width):
        from steelyard.viewer.app import serve
        from steelyard.viewer.labelling import LabelSession

        session = LabelSession(folder, person)

        def tell(url: str) -> None:
            print(url, flush=True)
            print_to_stderr(f"labelling {folder} as {person}; Ctrl-C ends it")

        key = Environment().get("STEELYARD_API_KEY", "")
        serve(folder, port=options.port, key=key, tell=tell, browser=not options.no_browser, session=session)
    return ExitCode.OK


def _print_rates(labelled: LabelledRun, options: argparse.Namespace, problems: list[Problem]) -> None:
    """Print what judges and people say together, and how many labels a width takes."""
    from steelyard.analysis.judged_rates import labels_for_width
    from steelyard.reports.labels import label_count_sentences
    from steelyard.reports.lists import judged_text

    print(judged_text(labelled.rates(options.criterion, problems.append), width=terminal_width()), end="")
    if options.width:
        needed = labels_for_width(labelled.answers(options.criterion), options.width)
        for sentence in label_count_sentences(needed, options.width):
            print(sentence)


def _label_options(sub: argparse.ArgumentParser) -> None:
    add_run_argument(sub)
    sub.add_argument("--by", default="", metavar="NAME", help="who labels (default: your user name)")
    sub.add_argument("--import", dest="import_file", metavar="FILE", help="add the labels of a CSV file")
    sub.add_argument("--export", dest="export_file", metavar="FILE", help="write all labels as CSV")
    sub.add_argument("--rates", action="store_true", help="print what judges say, corrected by the labels")
    sub.add_argument(
        "--width",
        type=fraction,
        metavar="X",
        help="print how many more labels give a corrected rate with an interval of this width, such as 0.1",
    )
    sub.add_argument(
        "--criterion", default="", metavar="NAME", help="a category of the rubric (default: the whole answer)"
    )
    add_browser_options(sub, 0)
    add_settings_option(sub)


LABEL_EXAMPLES = """\
Each person's labels are in labels-NAME.jsonl of the run folder, which only grows: the run may still be growing, and several
people may label it. CSV files have the columns case, passed, and where they are needed model, tier, number, criterion, by, at.

examples:
  steelyard label latest
  steelyard label latest --import labels.csv --by ada
  steelyard label latest --rates --width 0.1"""

COMMANDS = {"label": Command(label, _label_options, LABEL_EXAMPLES)}
