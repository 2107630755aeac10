"""The options that several commands take."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from steelyard.plugins.built_in import PluginKind

CommandFunction = Callable[[argparse.Namespace], int]


class Command(NamedTuple):
    """A command: what it does, its own options, and what `--help` says below them."""

    function: CommandFunction
    """Its docstring is the command's description."""
    add_options: Callable[[argparse.ArgumentParser], None]
    epilog: str = ""
    common: str = ""
    """The options that `--help` shows, where there are too many; `--help-all` shows all."""


def add_help_options(sub: argparse.ArgumentParser, common: str = "") -> None:
    """--help and --help-all."""
    both: dict[str, Any] = {"action": _HelpAction, "dest": "help", "nargs": 0, "default": argparse.SUPPRESS}
    sub.add_argument("-h", "--help", const=common.split(), help="show this help message and exit", **both)
    sub.add_argument("--help-all", const=[], help=argparse.SUPPRESS, **both)


class _HelpAction(argparse.Action):
    """Prints the help with the options that it names, or with all if it names none, and ends."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        options = [one for one in parser._actions if one.option_strings and one.help != argparse.SUPPRESS]
        hidden = [
            one for one in options if self.const and one is not self and not {*one.option_strings} & {*self.const}
        ]
        for option in hidden:
            option.help = argparse.SUPPRESS
        if hidden:
            parser.epilog = f"{parser.prog} --help-all shows all {len(options)} options.\n\n{parser.epilog}"
        parser.print_help()
        parser.exit()


def add_run_folder_options(sub: Any) -> None:
    """--output, --shard and --dry-run: what becomes of a plan."""
    add_output_option(sub, "the run folder")
    sub.add_argument(
        "--shard",
        type=shard_of,
        metavar="I/N",
        help="only every Nth of these cases, starting with the Ith, such as 3/8; steelyard merge joins the results of N machines",
    )
    sub.add_argument("--dry-run", action="store_true", help="print what would be asked and the maximum cost, and stop")


def add_output_option(sub: Any, what: str) -> None:
    """--output."""
    sub.add_argument("--output", metavar="DIR", help=f"{what} (default: a new one under steelyard-runs/)")


def add_format_option(sub: Any, *formats: str) -> None:
    """--format, by default the first."""
    sub.add_argument("--format", default=formats[0], choices=formats, help=f"what to print (default: {formats[0]})")


def add_request_options(sub: Any) -> None:
    """What is sent with every request."""
    sub.add_argument(
        "--temperature", type=finite_number, metavar="T", help="sent only when given, like every parameter"
    )
    sub.add_argument("--max-tokens", type=positive_integer, metavar="N", help="the maximum length of a reply")
    sub.add_argument(
        "--param", action="append", default=[], metavar="K=V", help="any other parameter; V is JSON or text"
    )


def add_base_url_option(sub: Any) -> None:
    """--base-url."""
    sub.add_argument("--base-url", metavar="URL", help="ask the models at this address")


def add_judges_option(sub: Any, what: str = "the judges") -> None:
    """--judges."""
    sub.add_argument("--judges", action="append", metavar="MODEL,...", help=f"{what}: provider/model, one or several")


def add_allow_self_option(sub: Any) -> None:
    """--allow-self."""
    sub.add_argument("--allow-self", action="store_true", help="let a model judge its own answers")


def add_browser_options(sub: Any, port: int) -> None:
    """Where pages are served."""
    sub.add_argument(
        "--port",
        type=port_number,
        default=port,
        metavar="N",
        help="the port to listen on; 0 takes any free one (default: %(default)s)",
    )
    sub.add_argument("--no-browser", action="store_true", help="only print the address")


def add_decision_options(sub: Any) -> None:
    """What a gate decides by."""
    sub.add_argument(
        "--margin",
        type=margin,
        default=Percentage(0.05),
        metavar="X",
        help="a mean drop smaller than this passes (default: 5%%)",
    )
    sub.add_argument(
        "--alpha",
        type=fraction,
        default=0.05,
        metavar="X",
        help="the highest acceptable rate of false alarms (default: 0.05)",
    )
    add_cases_option(sub)
    sub.add_argument(
        "--min-effect",
        type=fraction,
        default=0.0,
        metavar="X",
        help="a smaller mean drop is not a regression, however certain it is (default: 0)",
    )
    sub.add_argument(
        "--on",
        choices=["passed", "score"],
        help="compare what passed, or mean scores (default: passed, and scores where outcomes are graded)",
    )
    add_strict_option(sub)


def add_cases_option(sub: Any) -> None:
    """--cases."""
    sub.add_argument(
        "--cases",
        choices=["fail", "warn", "off"],
        help="how to treat single cases that got worse (default: as blessed, otherwise fail if the model is the same, warn if it differs)",
    )


def add_strict_option(sub: Any) -> None:
    """--strict, and its name of before."""
    sub.add_argument(
        "--strict",
        action="store_true",
        help="exit with 3 when the gate cannot tell because there is too little evidence (default: 0, with a warning)",
    )
    sub.add_argument("--on-inconclusive", default="pass", choices=["pass", "fail"], help=argparse.SUPPRESS)


def add_attempt_column_options(table: Any) -> None:
    """The columns of a table of attempts."""
    table.add_argument("--case", metavar="COLUMN", help="the case (default: case)")
    table.add_argument(
        "--model", metavar="COLUMN", help="the model (default: model, otherwise the file name is the model)"
    )
    table.add_argument(
        "--passed",
        metavar="COLUMN",
        help="whether it passed: true/false, 1/0, yes/no (default: passed; in Parquet attempts correct, otherwise passed)",
    )
    table.add_argument("--sample", metavar="COLUMN", help="the attempt's number; with it, repeated rows count once")


def add_score_options(sub: Any) -> None:
    """How the scores of other tools are meant."""
    scores = sub.add_argument_group("scores of other tools")
    scores.add_argument(
        "--score", metavar="NAME", help="the score that counts, where there are several; in a table, its column"
    )
    scores.add_argument(
        "--score-range",
        metavar="LO:HI",
        help="the worst and the best score, such as 1:5, or --score-range=-1:1; a margin is then in the same units (default: 0:1)",
    )
    scores.add_argument("--lower-is-better", action="store_true", help="the lower a score, the better")


def add_counting_options(sub: argparse.ArgumentParser) -> None:
    """How attempts in Parquet are counted."""
    counting = sub.add_argument_group("counting attempts in Parquet")
    add_backend_options(counting, "count")
    add_copies_option(counting)


def add_backend_options(group: Any, what: str) -> None:
    """Where the work is done."""
    here: dict[str, Any] = (
        {"choices": ["local", "ray"]} if what == "count" else {"type": pool_name, "metavar": "{local,ray,...}"}
    )
    group.add_argument(
        "--backend",
        default="local",
        **here,
        help=f"{what} on this machine, or on the nodes of a Ray cluster (default: local)",
    )
    group.add_argument(
        "--ray-address",
        default="",
        metavar="HOST:PORT",
        help="the Ray cluster; local starts one for this command (default: RAY_ADDRESS, otherwise the cluster on this machine, otherwise local)",
    )


def add_copies_option(sub: Any) -> None:
    """--copies."""
    sub.add_argument(
        "--copies",
        metavar="DIR",
        help="where to keep the Parquet copies of runs whose folders cannot be written (default: temporary copies for this command)",
    )


def add_execution_options(sub: argparse.ArgumentParser, *, backend: bool = False, asks: bool = True) -> None:
    """How attempts are asked and verified."""
    how = sub.add_argument_group("how to run")
    how.add_argument(
        "-j",
        "--parallelism",
        type=positive_integer,
        metavar="N",
        help="the maximum number of requests at once; the actual number adapts to the endpoint",
    )
    how.add_argument("--max-cost", type=amount, metavar="USD", help="stop before more than this is spent")
    how.add_argument(
        "--recheck",
        type=attempt_count,
        metavar="N",
        help="verify attempts that passed or timed out N more times, and list different outcomes",
    )
    how.add_argument(
        "--controls",
        type=int,
        choices=(0, 1, 2),
        help="false tests that a pass is tried with where its tests ran in its own process (default: as in the run; 2, and 1 for "
        "compiled languages and agents)",
    )
    how.add_argument("--env-file", metavar="FILE", help="read API keys from a file of NAME=value lines")
    add_sandbox_options(how)
    if asks:
        how.add_argument(
            "--stream",
            choices=("auto", "on", "off"),
            help="whether answers are streamed; replies are the same either way (default: auto, only where long answers "
            "could run into a timeout)",
        )
        how.add_argument(
            "--agent-sandbox",
            choices=("auto", "on", "off"),
            default="auto",
            help="which agents are contained: auto, those that declare what they need, if this machine can; on, the same, and "
            "refuse all others; off, none (default: auto)",
        )
        how.add_argument(
            "--batch",
            action="store_true",
            help="ask in batches, which take up to a day and cost less: OpenAI, Azure, Anthropic, Gemini, Mistral",
        )
        how.add_argument(
            "--cache",
            action="store_true",
            help="reuse replies to the same requests from earlier runs in the same folder",
        )
        how.add_argument(
            "--cache-for", type=amount, metavar="DAYS", help="the same, from the last DAYS days only, such as 7 or 0.5"
        )
    if backend:
        add_backend_options(how, "verify")
    add_allow_code_option(how)
    add_settings_option(how)


def add_sandbox_options(sub: Any) -> None:
    """Where code runs, and with which packages."""
    add_isolation_options(sub)
    sub.add_argument(
        "--python-env", metavar="DIR", help="a virtual environment with packages for Python answers and tests"
    )


def add_allow_code_option(sub: Any) -> None:
    """--allow-code."""
    sub.add_argument(
        "--allow-code",
        action="store_true",
        help="run the code that the files name without asking, this time only; see steelyard allow",
    )


def add_isolation_options(sub: Any) -> None:
    """How generated code is contained."""
    sub.add_argument(
        "--require-isolation",
        metavar="LEVEL",
        help="run code only at this isolation level or a stronger one: full, bubblewrap, landlock, seatbelt, process",
    )
    sub.add_argument(
        "--allow-weak-sandbox",
        action="store_true",
        help="run code even where it can reach network, files and secrets; see steelyard doctor",
    )


def add_settings_option(sub: Any) -> None:
    """--config."""
    sub.add_argument("--config", metavar="FILE", help="the settings file (default: steelyard.toml if it exists)")


def add_run_argument(sub: argparse.ArgumentParser) -> None:
    """The run that a command is about."""
    sub.add_argument("run", metavar="RUN", help="a run folder, its name, or latest")


def add_scoring_options(sub: Any) -> None:
    """How a run is scored when it is shown."""
    sub.add_argument("--rule", help="score by this rule: code, code-structured (default: the run's own, or code)")
    sub.add_argument(
        "--pass-k", type=positive_integers, metavar="K,...", help="which pass@k to show (default: the run's own, or 1)"
    )


def add_trust_option(sub: Any) -> None:
    """Which passes count."""
    sub.add_argument(
        "--require-trust",
        choices=("isolated", "in-process"),
        default="",
        help="count only verdicts with at least this trust: values compared out of the answer's reach, or in its process; a case "
        "that cannot be judged so is left out, right answers and wrong ones (default: all verdicts)",
    )


def add_default_check_option(sub: Any) -> None:
    """--default-check and --map: what the files themselves do not say."""
    sub.add_argument(
        "--map",
        default="",
        metavar="OURS=COLUMN,...",
        help="column names in files of rows, such as prompt=question,target=answer; a dot reaches into a nested table",
    )
    sub.add_argument(
        "--default-check",
        action="append",
        metavar="[SUITE=]CHECK",
        help="a check for cases that declare none, in one suite or in all: its type, such as json, or its table as JSON; "
        "without one only judges decide; may be repeated",
    )
    sub.add_argument(
        "--tools",
        metavar="FILE",
        help="a TOML file with [[tools]] that models may call in every case; a tool that a case has under the same name stays its own",
    )


def add_result_options(sub: argparse.ArgumentParser) -> None:
    """What is shown of a run and written about it."""
    result = sub.add_argument_group("what to show")
    result.add_argument(
        "--fail-under",
        type=fraction,
        metavar="X",
        help="exit with 1 when a model's pass@k, at the smallest k, is below X",
    )
    result.add_argument(
        "--format",
        default="text",
        type=report_format,
        metavar="{text,json,markdown,csv,...}",
        help="what to print: text, or any report format, including those of plug-ins (default: text)",
    )
    add_scoring_options(result)
    add_report_option(result)
    add_suite_options(sub)


def add_verbosity_options(sub: Any) -> None:
    """--quiet and --verbose."""
    how_much = sub.add_mutually_exclusive_group()
    how_much.add_argument("-q", "--quiet", action="store_true", help="print one line, and no progress")
    how_much.add_argument("-v", "--verbose", action="store_true", help="print every attempt of every case as well")


def add_suite_options(sub: argparse.ArgumentParser) -> None:
    """How suites are scored."""
    suites = sub.add_argument_group("how to score suites, in addition to the rule")
    suites.add_argument(
        "--penalty",
        action="append",
        metavar="CLASS=COST",
        help="what a failure of this class costs, from 0 to 1; others cost 1; may be repeated",
    )
    suites.add_argument(
        "--suite-weight",
        action="append",
        metavar="SUITE=WEIGHT",
        help="how much this suite counts; others count 1; may be repeated",
    )
    suites.add_argument(
        "--latency-target",
        type=amount,
        metavar="SECONDS",
        help="replies with at most this latency get the full score (default: the run's own, or 2)",
    )
    suites.add_argument(
        "--latency-limit",
        type=amount,
        metavar="SECONDS",
        help="replies with at least this latency score 0 (default: the run's own, or 30)",
    )


RUN_REPORT_SUFFIXES = (
    ".json .md .csv .html .xml .sarif .jsonl .parquet .eee.json .inspect.json .promptfoo.json .forgetest.json .otlp.json "
    ".evalplus.jsonl .human-eval.jsonl"
)


def add_report_option(sub: Any, suffixes: str = RUN_REPORT_SUFFIXES) -> None:
    """-o FILE."""
    sub.add_argument("-o", "--report", action="append", metavar="FILE", help=f"write a report, by suffix: {suffixes}")


MAX_INTEGER = 10**9
"""More than anybody can mean."""


def positive_integer(text: str) -> int:
    """A whole number from 1 on."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number') from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {text}")
    if number > MAX_INTEGER:
        raise argparse.ArgumentTypeError(f"must be at most {MAX_INTEGER:,}, not {text}")
    return number


def attempt_count(text: str) -> int:
    """How many attempts, or how often something is done with one."""
    from steelyard.records.base import MAX_ATTEMPTS_PER_CASE

    number = positive_integer(text)
    if number > MAX_ATTEMPTS_PER_CASE:
        raise argparse.ArgumentTypeError(f"must be at most {MAX_ATTEMPTS_PER_CASE:,}, not {text}")
    return number


def amount(text: str) -> float:
    """A number from 0 on."""
    return _number(text, 0)


def finite_number(text: str) -> float:
    """A number that is neither infinite nor absurd."""
    from steelyard.records.base import MAX_NUMBER

    return _number(text, -MAX_NUMBER)


def _number(text: str, least: float) -> float:
    from steelyard.records.base import MAX_NUMBER, is_bounded

    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number') from None
    if not is_bounded(number, least=least):
        raise argparse.ArgumentTypeError(f"must be between {least:g} and {MAX_NUMBER:g}, not {text}")
    return number


def shard_of(text: str) -> tuple[int, int]:
    """The I and N of I/N."""
    number, slash, of = text.partition("/")
    if not (slash and all(part.isascii() and part.isdigit() and len(part) <= 6 for part in (number, of))):
        raise argparse.ArgumentTypeError(f'"{text}" is not I/N, such as 3/8 for the third of eight shards')
    if not 1 <= int(number) <= int(of):
        raise argparse.ArgumentTypeError(f'"{text}" is not a shard: I/N is the Ith of N, and I goes from 1 to N')
    return int(number), int(of)


def port_number(text: str) -> int:
    """A port."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f'"{text}" is not a port, a whole number from 0 to 65535')
    return int(text)


def positive_integers(text: str) -> tuple[int, ...]:
    """Numbers separated by commas, in ascending order and each once."""
    return tuple(sorted({attempt_count(piece) for piece in text.replace(" ", ",").split(",") if piece}))


def named_rates(text: str) -> dict[str, float]:
    """The rates of NAME=RATE,..."""
    rates = {}
    for piece in text.split(","):
        name, equals, rate = piece.partition("=")
        if not equals or not name.strip():
            raise argparse.ArgumentTypeError(f'"{piece}" is not NAME=RATE, such as strong=0.8')
        if name.strip() in rates:
            raise argparse.ArgumentTypeError(f'"{name.strip()}" is named twice')
        rates[name.strip()] = fraction(rate)
    return rates


def fraction(text: str) -> float:
    """A number from 0 to 1, or a percentage."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number') from None
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, or a percentage, not {text}")
    return share


class Percentage(float):
    """A share that was given as such: it is the same share of any range."""


def margin(text: str) -> float:
    """A drop in the units of what is compared, or a percentage of its range."""
    return Percentage(fraction(text)) if text.endswith("%") else amount(text)


def report_format(name: str) -> str:
    """The name of a report, or `text`."""
    return _plugin_name("reports", name, "text")


def pool_name(name: str) -> str:
    """The name of a pool."""
    return _plugin_name("pools", name)


def _plugin_name(kind: PluginKind, name: str, *further: str) -> str:
    from steelyard.errors import InputError
    from steelyard.plugins import plugin_name

    try:
        return plugin_name(kind, name, *further)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
