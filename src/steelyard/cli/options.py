"""The options of the command line, and where else they can be set."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from steelyard.plugins import PluginKind

CommandFunction = Callable[[argparse.Namespace], int]


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help with an option's value written once, behind its last name, whatever the version of Python."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


class _OneLineErrorParser(argparse.ArgumentParser):
    """Says what is wrong in one sentence; whoever wants the whole usage asks for it."""

    def error(self, message: str) -> NoReturn:
        from steelyard.errors import InputError

        raise InputError(f"{message}; see {self.prog} --help")


class _VersionAction(argparse.Action):
    """Tells the version; what knows it is loaded only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"steelyard {version('steelyard')}")
        parser.exit()


def parser(commands: Mapping[str, CommandFunction]) -> argparse.ArgumentParser:
    """The parser of all commands; each is explained by its docstring."""
    parser = _OneLineErrorParser(
        prog="steelyard",
        description="Find out how good the things are that language models write, and whether a difference is real.",
        epilog="Every option can also be set in the environment (--pass-k as STEELYARD_PASS_K) and in steelyard.toml "
        "(pass_k). Exit codes: 0 fine, 1 a gate failed, 2 wrong usage or unreadable input, 3 cannot tell because data "
        "are missing, 130 interrupted and resumable.",
    )
    parser.set_defaults(command=None)
    parser.add_argument("--version", action=_VersionAction, nargs=0, help="show the version and exit")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")

    def command(name: str, epilog: str) -> argparse.ArgumentParser:
        about = commands[name].__doc__ or ""
        sub = subparsers.add_parser(
            name,
            help=about,
            description=about,
            epilog=epilog,
            formatter_class=_HelpFormatter,
        )
        sub.set_defaults(command=commands[name])
        return sub

    _run_options(command("run", RUN_EXAMPLES))
    sub = command("resume", "example:\n  steelyard resume latest --samples 20")
    _run_argument(sub)
    sub.add_argument("-n", "--samples", type=_count, help="attempts per case and model from now on")
    _inconclusive_option(sub)
    _execution_options(sub, backend=True)
    _result_options(sub)
    sub = command("verify", "example:\n  steelyard verify latest --eval-set evals/fixed.toml")
    _run_argument(sub)
    sub.add_argument("--eval-set", action="append", metavar="PATH", help="take the tests from here")
    _execution_options(sub, backend=True)
    _result_options(sub)
    sub = command("merge", MERGE_EXAMPLES)
    sub.add_argument("run", nargs="+", metavar="RUN", help="the run folders of all shards, in any order")
    sub.add_argument(
        "--output", metavar="DIR", help="the folder of the whole run (default: a new one under steelyard-runs/)"
    )
    sub.add_argument("--partial", action="store_true", help="merge what is there although shards are missing")
    _result_options(sub)
    _settings_option(sub)
    sub = command("list", "")
    _settings_option(sub)
    sub = command("show", "examples:\n  steelyard show latest --failed\n  steelyard show latest merge-bookings 3")
    _run_argument(sub)
    sub.add_argument("case", nargs="?", help="a case's id: its attempts, one line each")
    sub.add_argument("number", nargs="?", type=_count, help="an attempt's number: prompt, reply, code, tests, cost")
    sub.add_argument("--failed", action="store_true", help="only attempts that were not correct")
    _view_options(sub)
    _suite_options(sub)
    _settings_option(sub)
    sub = command("report", REPORT_EXAMPLES)
    _run_argument(sub)
    _report_option(sub)
    sub.add_argument(
        "--baseline", metavar="A", help="for .html: hold the run against this, as steelyard gate and compare do"
    )
    _view_options(sub)
    _suite_options(sub)
    _settings_option(sub)
    _compare_options(command("compare", COMPARE_EXAMPLES))
    _gate_options(command("gate", GATE_EXAMPLES))
    _plan_options(command("plan", PLAN_EXAMPLES))
    sub = command("bless", "example:\n  steelyard bless latest --as main")
    sub.add_argument("run", nargs="+", metavar="RUN", help="run folders, their names, latest, or reports")
    sub.add_argument("--as", dest="name", required=True, metavar="NAME", help="what --baseline calls it")
    sub.add_argument("--rule", help="score by this rule (default: the runs' own)")
    _settings_option(sub)
    _passk_options(command("passk", PASSK_EXAMPLES))
    sub = command("repairs", REPAIRS_EXAMPLE)
    sub.add_argument(
        "--config",
        dest="evaluation",
        default="evaluation_config.json",
        metavar="FILE",
        help="what to do (default: evaluation_config.json)",
    )
    sub.add_argument(
        "-j",
        "--parallelism",
        type=_count,
        metavar="N",
        help="validations at the same time (default: one per processor)",
    )
    _isolation_options(sub)
    _synth_options(command("synth", SYNTH_EXAMPLE))
    sub = command("query", QUERY_EXAMPLES)
    sub.add_argument("sql", metavar="SQL", help="a question to the tables runs, cases, attempts, verdicts, failures")
    sub.add_argument(
        "--format",
        default="table",
        choices=["table", "csv", "json", "parquet"],
        help="what is printed (default: table)",
    )
    sub.add_argument("-o", "--report", metavar="FILE", help="write the answer instead: .csv .json .parquet")
    _copies_option(sub)
    _settings_option(sub)
    sub = command("validate", "example:\n  steelyard validate evals/")
    sub.add_argument("evalset", nargs="+", metavar="EVALSET", help="a .toml or .jsonl file, or a folder of them")
    _sandbox_options(sub)
    _settings_option(sub)
    sub = command("suites", SUITES_EXAMPLES)
    sub.add_argument(
        "evalset", nargs="*", metavar="EVALSET", help="suite:NAME, or any eval set (default: a list of suites)"
    )
    sub.add_argument("-o", "--report", metavar="FILE", help="write the cases instead, one JSON object per line")
    sub = command("tiers", TIERS_EXAMPLES)
    sub.add_argument(
        "experiment", nargs="?", metavar="EXPERIMENT", help="an experiment (.toml), a run folder, its name, or latest"
    )
    files = sub.add_argument_group("experiments of other tools")
    files.add_argument("--runs-csv", metavar="FILE", help="one row per run: tier, case, passed, cost and so on")
    files.add_argument("--judges-csv", metavar="FILE", help="one row per run and judge")
    files.add_argument("--criteria-csv", metavar="FILE", help="one row per run, judge and criterion")
    sub.add_argument("--baseline", metavar="TIER", help="hold the others against this tier (default: the first)")
    files.add_argument(
        "--pair-by",
        default="case",
        choices=["case", "experiment"],
        help="what tells that runs of two tiers are of one task; experiment where subtests are variants of a tier (default: case)",
    )
    sub.add_argument("--output", metavar="DIR", help="the run folder (default: a new one under steelyard-runs/)")
    _shard_option(sub)
    sub.add_argument("--dry-run", action="store_true", help="only say what would be asked, and the most it can cost")
    _tier_report_options(sub)
    _execution_options(sub)
    sub = command(
        "judge",
        "example:\n  steelyard judge latest --rubric rubric.yaml --judges openai/gpt-5,anthropic/claude-sonnet-4-5",
    )
    _run_argument(sub)
    sub.add_argument(
        "--judges", action="append", metavar="MODEL,...", help="who judges: provider/model, one or several"
    )
    sub.add_argument("--rubric", metavar="FILE", help="what they look for: .yaml .toml .json (default: ten categories)")
    sub.add_argument("--repeats", type=_count, default=1, metavar="N", help="ask each judge this often (default: 1)")
    sub.add_argument("--allow-self", action="store_true", help="let a model judge its own answers")
    sub.add_argument("--temperature", type=float, metavar="T", help="sent to the judges; left out unless given")
    sub.add_argument("--max-tokens", type=_count, metavar="N", help="the longest reply of a judge, in tokens")
    sub.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="another parameter to send")
    _tier_report_options(sub)
    _execution_options(sub)
    sub = command("view", VIEW_EXAMPLES)
    sub.add_argument("folder", nargs="?", metavar="DIR", help="a folder of runs, or one run (default: steelyard-runs)")
    sub.add_argument(
        "--port",
        type=_port,
        default=DEFAULT_VIEWER_PORT,
        metavar="N",
        help=f"0 takes any (default: {DEFAULT_VIEWER_PORT})",
    )
    sub.add_argument("--no-browser", action="store_true", help="only print the address")
    _settings_option(sub)
    sub = command("models", "example:\n  OPENAI_API_KEY=... steelyard models")
    _settings_option(sub)
    sub.add_argument("--base-url", metavar="URL", help="ask this OpenAI-compatible server")
    sub = command("init", "example:\n  steelyard init my-evals")
    sub.add_argument("folder", nargs="?", default=".", help="where to write (default: here)")
    sub = command("doctor", DOCTOR_EXAMPLE)
    sub.add_argument("--format", default="text", choices=["text", "json"], help="what is printed (default: text)")
    return parser


DEFAULT_VIEWER_PORT = 7373
VIEW_EXAMPLES = """\
The address is printed on standard output. With STEELYARD_API_KEY set, pages and API ask for that key.

examples:
  steelyard view
  steelyard view evals/steelyard-runs --port 0 --no-browser"""
TIERS_EXAMPLES = """\
examples:
  steelyard tiers experiment.toml --dry-run
  steelyard tiers experiment.toml -o tiers.md --charts charts
  steelyard tiers experiment.toml --shard 3/8 --output shards/3
  steelyard tiers --runs-csv runs.csv --judges-csv judges.csv --criteria-csv criteria.csv"""
SUITES_EXAMPLES = """\
examples:
  steelyard suites suite:injection
  steelyard suites suite:long_context@32000,7 -o long.jsonl

suite:long_context is generated: to about 8,000 characters per prompt and from seed 0, unless @LENGTH or @LENGTH,SEED says
otherwise."""
RUN_EXAMPLES = """\
examples:
  steelyard run examples/python-basics.toml --models replay:examples/recordings/python-basics.jsonl.gz --pass-k 1,5,10
  steelyard run evals/ --models openai/gpt-5-mini,anthropic/claude-sonnet-4-5 --samples 10 --temperature 0.8
  steelyard run evals/ --models openai/qwen --base-url http://127.0.0.1:8080/v1 --filter easy --fail-under 0.8
  steelyard run evals/ --models openai/gpt-5-mini --baseline main --until-decided --max-cost 2
  steelyard run evals/ --models openai/gpt-5-mini --samples 10 --shard 3/8 --output shards/3

With --shard, --max-cost holds for each shard alone.
"""
MERGE_EXAMPLES = """\
Every machine runs the same command with a --shard of its own: 1/3 on one, 2/3 on another, 3/3 on the third. Each gets every
third case. Their run folders, brought together in any way, are merged to one run, as if one machine had done all of it: resume,
show, report, gate and view take it like any other. Nobody is asked and nothing is verified; the shards stay as they are. What
an interrupted shard still owes is owed by the merged run.

Shards of different plans (other cases, tests, models, parameters, samples...) are refused with what differs, and so is a shard
that comes twice. When shards are missing, they are named and nothing is written, unless --partial says to go on without them;
that run can be merged with them later.

Exit codes: 0 fine, 1 under --fail-under, 2 shards that cannot be merged, 3 cannot tell because attempts are missing, or the disk
is full.

examples:
  steelyard merge shards/* --output runs/change
  steelyard merge shards/* --output runs/change -o report.html --fail-under 0.8"""
REPORT_EXAMPLES = """\
examples:
  steelyard report latest -o report.html -o report.json
  steelyard report latest --baseline main -o report.html"""
COMPARE_EXAMPLES = """\
A side is a run folder, its name, latest, the name of a baseline, a report in JSON, or RUN@MODEL for one model of it; with one model on each side they
are compared whatever their names. Exit codes: 0 fine, 1 a regression with --fail-on-regression, 2 unreadable input.

examples:
  steelyard compare --baseline main-report.json --current latest
  steelyard compare --baseline latest@openai/gpt-5-mini --current latest@openai/gpt-5 --format markdown
"""
GATE_EXAMPLES = """\
The verdict is REGRESSED (exit code 1), NOT REGRESSED (0) or CANNOT TELL: 3 where data are missing, and where the evidence is thin
0 with a warning, or 3 with --on-inconclusive fail. Sides are named as for compare, or are attempts in Parquet: a file, a folder, a
pattern, or a folder of runs.

examples:
  steelyard gate --baseline main --current latest
  steelyard gate --baseline main --current latest --margin 0.03 --on-inconclusive fail -o gate.md
  steelyard gate --baseline last-year/ --current 'new/*.parquet' --case task --passed ok
"""
PLAN_EXAMPLES = """\
Nobody is asked. Cases pair with the baseline as in gate, by id and tests; a baseline is named as for gate. Costs are what attempts of
the baseline cost on average, else at most what the price list says.

examples:
  steelyard plan evals/ --baseline main
  steelyard plan evals/ --baseline main --detect 0.03 --power 0.9
"""
PASSK_EXAMPLES = """\
Outcomes are files of fixes (--fixes-csv), results of HumanEval or EvalPlus, tables in CSV, JSONL or Parquet whose columns you
name, and runs of ours. --attempts counts Parquet files of any size in little memory: a row per attempt with case, model and
correct, or the copies of runs. Exit codes: 0 fine, 2 unreadable input, 3 when more than 5% of the cases have no outcome.

examples:
  steelyard passk --problems-csv problems.csv --fixes-csv gemini_fixes.csv gpt_fixes.csv --k-values 1 5 10
  steelyard passk samples.jsonl_results.jsonl --k-values 1 10 100
  steelyard passk outcomes.parquet --case task --model llm --passed ok --cost usd
  steelyard passk latest --format markdown
  steelyard passk --attempts steelyard-runs/ --k-values 1 10 100
"""
REPAIRS_EXAMPLE = """\
Fixes that hold repairs and no outcome are judged by terraform or tofu, which is on PATH or named by STEELYARD_TERRAFORM.
Exit codes: 0 fine, 2 unreadable input or no Terraform, 3 when more than 5% of a model's problems or attempts have no outcome.

example:
  steelyard repairs --config evaluation_config.json
"""
SYNTH_EXAMPLE = (
    "example:\n  steelyard synth --out data --problems 200 --samples 20 --models strong=0.8,weak=0.3 --seed 7"
)
QUERY_EXAMPLES = """\
examples:
  steelyard query "SELECT model, avg(correct::int) AS pass_rate FROM attempts GROUP BY model"
  steelyard query "SELECT * FROM failures" -o failures.parquet
"""
DOCTOR_EXAMPLE = """\
Every level of containment is started, and a probe inside it tries to get out. Exit codes: 0 when a level holds, 3 when
none does; then code is run only with --allow-weak-sandbox.

example:
  steelyard doctor --format json
"""


def _run_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("evalset", nargs="*", metavar="EVALSET", help="a .toml or .jsonl file, or a folder of them")
    sub.add_argument("--eval-set", action="append", metavar="PATH", help="the same, as an option")
    ask = sub.add_argument_group("what is asked")
    ask.add_argument(
        "-m",
        "--models",
        action="append",
        metavar="P/M,...",
        help="provider/model, replay:FILE, command:PROGRAM, python:FILE:FUNCTION",
    )
    ask.add_argument(
        "-n",
        "--samples",
        "--epochs",
        "--repeat",
        type=_count,
        metavar="N",
        help="attempts per case and model (default: the largest k; of recorded replies all)",
    )
    ask.add_argument("--temperature", type=float, metavar="T", help="sent only when given, like every parameter")
    ask.add_argument("--max-tokens", type=_count, metavar="N", help="the longest reply")
    ask.add_argument("--system", metavar="FILE|TEXT", help="a system prompt")
    ask.add_argument(
        "--param", action="append", default=[], metavar="K=V", help="any other parameter; V is JSON or text"
    )
    ask.add_argument(
        "--seed", type=int, metavar="N", help="sent with the requests: N for first attempts, N+1 for second ones..."
    )
    ask.add_argument("--base-url", metavar="URL", help="ask the models at this address")
    which = sub.add_argument_group("which cases")
    which.add_argument("--filter", metavar="TAGS", help="only cases with one of these tags, such as easy,strings")
    which.add_argument("--case", metavar="GLOB", help="only cases whose id matches, such as 'merge-*'")
    which.add_argument("--failed-in", metavar="RUN", help="only cases that were not always correct in that run")
    which.add_argument("--limit", type=_count, metavar="N", help="only the first N cases")
    _shard_option(which)
    decide = sub.add_argument_group("asking only until a gate can decide")
    decide.add_argument("--baseline", metavar="A", help="what the run is held against, as for steelyard gate")
    decide.add_argument(
        "--until-decided", action="store_true", help="ask in rounds, and stop as soon as the gate can decide"
    )
    decide.add_argument("--max-samples", type=_count, metavar="N", help="attempts per case at the most (default: 20)")
    _decision_options(decide)
    _execution_options(sub, backend=True)
    sub.add_argument("--dry-run", action="store_true", help="say what would be asked and what it may cost, and stop")
    sub.add_argument("--output", metavar="DIR", help="the run folder (default: a new one under steelyard-runs/)")
    _result_options(sub)


def _shard_option(sub: Any) -> None:
    sub.add_argument(
        "--shard",
        type=_shard,
        metavar="I/N",
        help="of these only every Nth, from the Ith on, such as 3/8; steelyard merge joins what N machines bring",
    )


def _compare_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--baseline", required=True, metavar="A", help="what it was")
    sub.add_argument("--current", required=True, metavar="B", help="what it is now")
    sub.add_argument(
        "--threshold", type=_fraction, default=0.05, metavar="X", help="how far a mean score may move (default: 0.05)"
    )
    sub.add_argument("--fail-on-regression", action="store_true", help="exit with 1 when a score dropped by more")
    sub.add_argument("--rule", help="score both sides by this rule (default: their own)")
    sub.add_argument(
        "--format", default="text", choices=["text", "json", "markdown"], help="what is printed (default: text)"
    )
    _settings_option(sub)


def _gate_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--baseline", required=True, metavar="A", help="what it was; best a baseline of several runs")
    sub.add_argument("--current", required=True, metavar="B", help="what it is now")
    _decision_options(sub)
    sub.add_argument(
        "--on", default="passed", choices=["passed", "score"], help="compare outcomes or mean scores (default: passed)"
    )
    sub.add_argument("--rule", help="score both sides by this rule (default: their own)")
    sub.add_argument(
        "--format", default="text", choices=["text", "json", "markdown"], help="what is printed (default: text)"
    )
    sub.add_argument("-o", "--report", action="append", metavar="FILE", help="write it as well: .json .md .txt")
    _attempts_columns(sub.add_argument_group("columns of attempts in Parquet"))
    _counting_options(sub)
    _settings_option(sub)


def _decision_options(sub: Any) -> None:
    sub.add_argument(
        "--margin", type=_fraction, default=0.05, metavar="X", help="a mean drop below this may pass (default: 0.05)"
    )
    sub.add_argument(
        "--alpha",
        type=_fraction,
        default=0.05,
        metavar="X",
        help="how often nothing may raise an alarm (default: 0.05)",
    )
    _inconclusive_option(sub)


def _inconclusive_option(sub: Any) -> None:
    sub.add_argument(
        "--on-inconclusive",
        default="pass",
        choices=["pass", "fail"],
        help="what thin evidence means (default: pass, with a warning)",
    )


def _plan_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("evalset", nargs="+", metavar="EVALSET", help="a .toml or .jsonl file, or a folder of them")
    sub.add_argument("--baseline", required=True, metavar="A", help="what a run is to be held against, as for gate")
    sub.add_argument(
        "-m", "--models", action="append", metavar="P/M,...", help="only these models of the baseline (default: all)"
    )
    sub.add_argument(
        "--detect", type=_fraction, default=0.05, metavar="X", help="the mean drop that is to be seen (default: 0.05)"
    )
    sub.add_argument("--power", type=_fraction, default=0.8, metavar="X", help="how likely it is to be (default: 0.8)")
    sub.add_argument("--alpha", type=_fraction, default=0.05, metavar="X", help="as for gate (default: 0.05)")
    sub.add_argument(
        "--format", default="text", choices=["text", "json", "markdown"], help="what is printed (default: text)"
    )
    _settings_option(sub)


def _passk_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("outcomes", nargs="*", metavar="FILE|RUN", help="files of outcomes, run folders, or latest")
    sub.add_argument(
        "--attempts",
        nargs="+",
        default=[],
        metavar="PATH",
        help="attempts in Parquet, however many: files, folders, patterns, runs, folders of runs",
    )
    sub.add_argument("--problems-csv", metavar="FILE", help="the problems: column oid")
    sub.add_argument(
        "--fixes-csv",
        nargs="+",
        default=[],
        metavar="FILE",
        help="one file per model: columns oid, iteration_id, plausible_fix",
    )
    sub.add_argument(
        "--k-values",
        "--pass-k",
        nargs="+",
        type=_counts,
        default="1,5,10",
        metavar="K",
        help="which pass@k (default: 1 5 10)",
    )
    sub.add_argument(
        "--missing",
        default="skip",
        choices=["skip", "zero", "error"],
        help="problems without an outcome: leave out, count as failed, or refuse (default: skip)",
    )
    sub.add_argument(
        "--format",
        default="table",
        choices=["table", "json", "csv", "markdown"],
        help="what is printed (default: table)",
    )
    table = sub.add_argument_group("columns of a table of outcomes")
    _attempts_columns(table)
    table.add_argument("--cost", metavar="COLUMN", help="what the attempt cost in US dollars, for the cost of a pass")
    table.add_argument("--score", metavar="COLUMN", help="a score in [0, 1], for its mean")
    _counting_options(sub)
    _settings_option(sub)


def _attempts_columns(table: Any) -> None:
    table.add_argument("--case", metavar="COLUMN", help="which case was tried (default: case)")
    table.add_argument(
        "--model", metavar="COLUMN", help="who tried (default: model, else one model named after the file)"
    )
    table.add_argument(
        "--passed",
        metavar="COLUMN",
        help="whether it passed: true/false, 1/0, yes/no (default: passed; in Parquet attempts correct, else passed)",
    )
    table.add_argument("--sample", metavar="COLUMN", help="the attempt's number; with it, repeated rows count once")


def _counting_options(sub: argparse.ArgumentParser) -> None:
    counting = sub.add_argument_group("counting attempts in Parquet")
    _backend_options(counting, "count")
    _copies_option(counting)


def _backend_options(group: Any, what: str) -> None:
    here: dict[str, Any] = (
        {"choices": ["local", "ray"]} if what == "count" else {"type": _pool_name, "metavar": "{local,ray,...}"}
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
        help="the Ray cluster; local starts one for this command (default: RAY_ADDRESS, the one that runs here, else local)",
    )


def _copies_option(sub: Any) -> None:
    sub.add_argument(
        "--copies",
        metavar="DIR",
        help="keep the Parquet copies here of runs whose folders cannot be written to (default: for this once)",
    )


def _synth_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--out", required=True, metavar="DIR", help="where to write problems.csv and the files of fixes")
    sub.add_argument("--problems", type=_count, default=100, metavar="N", help="how many problems (default: 100)")
    sub.add_argument("--samples", type=_count, default=10, metavar="N", help="attempts per problem (default: 10)")
    sub.add_argument(
        "--models",
        type=_rates,
        default="strong=0.8,weak=0.3",
        metavar="NAME=RATE,...",
        help="models with their true rates",
    )
    sub.add_argument("--seed", type=int, default=0, metavar="N", help="another seed makes other outcomes (default: 0)")


def _execution_options(sub: argparse.ArgumentParser, *, backend: bool = False) -> None:
    how = sub.add_argument_group("how it is done")
    how.add_argument(
        "-j", "--parallelism", type=_count, metavar="N", help="never more at once than this; below it the pace adapts"
    )
    how.add_argument("--max-cost", type=float, metavar="USD", help="stop before more than this is spent")
    how.add_argument(
        "--recheck",
        type=_count,
        metavar="N",
        help="verify what passed or ran out of time N times more, and tell of doubts",
    )
    how.add_argument("--env-file", metavar="FILE", help="read keys from a file of NAME=value lines")
    _sandbox_options(how)
    if backend:
        _backend_options(how, "verify")
    _settings_option(how)


def _sandbox_options(sub: Any) -> None:
    _isolation_options(sub)
    sub.add_argument(
        "--python-env", metavar="DIR", help="a virtual environment with packages for Python answers and tests"
    )


def _isolation_options(sub: Any) -> None:
    sub.add_argument(
        "--require-isolation",
        metavar="LEVEL",
        help="run code at this level or a stronger one only: full, bubblewrap, landlock, seatbelt, process",
    )
    sub.add_argument(
        "--allow-weak-sandbox",
        action="store_true",
        help="run code even where it can reach network, files and secrets; see steelyard doctor",
    )


def _settings_option(sub: Any) -> None:
    sub.add_argument("--config", metavar="FILE", help="the settings file (default: steelyard.toml where it exists)")


def _run_argument(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("run", metavar="RUN", help="a run folder, its name, or latest")


def _view_options(sub: Any) -> None:
    sub.add_argument("--rule", help="score by this rule: code, code-structured (default: the run's own, or code)")
    sub.add_argument(
        "--pass-k", type=_counts, metavar="K,...", help="which pass@k to show (default: the run's own, or 1)"
    )


def _report_format(name: str) -> str:
    return name if name == "text" else _plugin_name("reports", name)


def _pool_name(name: str) -> str:
    return _plugin_name("pools", name)


def _plugin_name(kind: PluginKind, name: str) -> str:
    from steelyard.errors import InputError
    from steelyard.plugins import plugin_name

    try:
        return plugin_name(kind, name)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _result_options(sub: argparse.ArgumentParser) -> None:
    result = sub.add_argument_group("what is shown")
    result.add_argument(
        "--fail-under",
        type=_fraction,
        metavar="X",
        help="exit with 1 when a model's pass@k, at the smallest k, is below X",
    )
    result.add_argument(
        "--format",
        default="text",
        type=_report_format,
        metavar="{text,json,markdown,csv,...}",
        help="what is printed: text, or any report format, a plug-in's included (default: text)",
    )
    _view_options(result)
    _report_option(result)
    _suite_options(sub)


def _tier_report_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--format", default="text", choices=["text", "json", "markdown", "csv"], help="what is printed (default: text)"
    )
    sub.add_argument("-o", "--report", action="append", metavar="FILE", help="write it as well: .json .md .csv")
    sub.add_argument("--charts", metavar="DIR", help="draw charts into this folder: SVG and Vega-Lite")


def _suite_options(sub: argparse.ArgumentParser) -> None:
    suites = sub.add_argument_group("how suites are scored, beside the plain rule")
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
        type=float,
        metavar="SECONDS",
        help="a reply loses nothing up to here (default: the run's own, or 2)",
    )
    suites.add_argument(
        "--latency-limit",
        type=float,
        metavar="SECONDS",
        help="a reply is worth nothing from here on (default: the run's own, or 30)",
    )


def _report_option(sub: Any) -> None:
    sub.add_argument(
        "-o",
        "--report",
        action="append",
        metavar="FILE",
        help="write a report, by suffix: .json .md .csv .html .xml .sarif .jsonl",
    )


def parse_options(parser: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    """The options as given; a mistyped one is told together with the one that was meant."""
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        from difflib import get_close_matches

        from steelyard.errors import InputError

        names = [name for sub in _subparsers(parser) for action in sub._actions for name in action.option_strings]
        close = get_close_matches(unknown[0].partition("=")[0], names, n=1)
        way_out = f'did you mean "{close[0]}"?' if close else f"see steelyard {arguments[0]} --help"
        raise InputError(f'unknown argument "{unknown[0]}"; {way_out}')
    return options


def apply_configured_defaults(parser: argparse.ArgumentParser, arguments: list[str]) -> None:
    """Let the environment, then the settings file, say what the command line does not."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config")
    given = early.parse_known_args(arguments)[0].config if _takes_settings(parser, arguments) else None
    config = given or os.environ.get("STEELYARD_CONFIG")
    in_file: dict[str, Any] = {}
    if config or Path("steelyard.toml").is_file():
        from steelyard import settings

        in_file = settings.load(Path(config) if config else None, os.environ)[0].options
    known = {action.dest for sub in _subparsers(parser) for action in sub._actions}
    for name in sorted(set(in_file) - known):
        from steelyard.errors import did_you_mean

        print(
            f'warning: {config or "steelyard.toml"}: unknown setting "{name}" ({did_you_mean(name, known)})',
            file=sys.stderr,
        )
    for sub in _subparsers(parser):
        for action in sub._actions:  # argparse has no public way to its own options
            if not action.option_strings or action.dest == "help":
                continue
            given = os.environ.get(f"STEELYARD_{action.dest.upper()}", in_file.get(action.dest))
            if given is not None:
                action.default = _as_default(action, given)


def _takes_settings(parser: argparse.ArgumentParser, arguments: list[str]) -> bool:
    """Whether --config of this command is the settings file."""
    chosen = [sub for sub in _subparsers(parser) if arguments and sub.prog.split()[-1] == arguments[0]]
    return all(any(action.dest == "config" for action in sub._actions) for sub in chosen)


def _as_default(action: argparse.Action, given: Any) -> Any:
    if isinstance(action, argparse._StoreTrueAction):
        return str(given).lower() in ("1", "true", "yes", "on")
    if isinstance(action, argparse._AppendAction):
        return _ReplaceableDefault([str(item) for item in given] if isinstance(given, list) else [str(given)])
    # argparse converts a default that is text as it converts an argument
    return ",".join(map(str, given)) if isinstance(given, list) else str(given)


class _ReplaceableDefault(list[str]):
    """What an option that may be repeated is when it is not given: argparse adds to a copy of the default, and that is empty."""

    def __copy__(self) -> list[str]:
        return []


def _subparsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    return [
        sub
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for sub in action.choices.values()
    ]


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number') from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {text}")
    return number


def _shard(text: str) -> tuple[int, int]:
    number, slash, of = text.partition("/")
    if not (slash and all(part.isascii() and part.isdigit() and len(part) <= 6 for part in (number, of))):
        raise argparse.ArgumentTypeError(f'"{text}" is not I/N, such as 3/8 for the third of eight shards')
    if not 1 <= int(number) <= int(of):
        raise argparse.ArgumentTypeError(f'"{text}" is no shard: I/N is the Ith of N, and I goes from 1 to N')
    return int(number), int(of)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f'"{text}" is not a port, a whole number from 0 to 65535')
    return int(text)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(sorted({_count(piece) for piece in text.replace(" ", ",").split(",") if piece}))


def _rates(text: str) -> dict[str, float]:
    rates = {}
    for piece in text.split(","):
        name, equals, rate = piece.partition("=")
        if not equals or not name.strip():
            raise argparse.ArgumentTypeError(f'"{piece}" is not NAME=RATE, such as strong=0.8')
        if name.strip() in rates:
            raise argparse.ArgumentTypeError(f'"{name.strip()}" is named twice')
        rates[name.strip()] = _fraction(rate)
    return rates


def _fraction(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number') from None
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, or a percentage, not {text}")
    return share
