"""Other people's published tables, computed again from their own data: writes docs/audits.md.

    python -m benchmarks.audits --repositories DIR [--check]

DIR has the git directories of the public repositories, OWNER+NAME/repo each. Every number of ours comes from a command of
steelyard; a table that cannot be reproduced has its error named. With --check nothing is written, and the exit code says
whether the page is up to date.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import correlation, fmean
from typing import Any, NamedTuple

from benchmarks import scylla_tables

from steelyard.providers.prices import Prices
from steelyard.records import Answer

PAGE = Path(__file__).parents[1] / "docs" / "audits.md"
EMPTY_FILE_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
HEAD = """# Published tables, checked

Tables that other people published, computed again from their own data. `python -m benchmarks.audits --repositories DIR` writes this
page from copies of the public repositories; every number of ours comes from the command that is named. A table that cannot be
reproduced has its error named.
"""


class Checkout(NamedTuple):
    """The files of one repository."""

    name: str
    commit: str
    folder: Path


def checkout(repositories: Path, name: str, into: Path, *paths: str) -> Checkout:
    """Some folders of a repository at its newest commit."""
    git = ["git", "-C", str(repositories / name.replace("/", "+") / "repo")]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    folder = into / name.replace("/", "+")
    folder.mkdir()
    archive = subprocess.run([*git, "archive", "HEAD", *paths], check=True, capture_output=True).stdout
    subprocess.run(["tar", "x", "-C", str(folder)], check=True, input=archive)
    return Checkout(name, commit, folder)


def steelyard(*arguments: str | Path, folder: Path) -> str:
    """What a command prints."""
    command = [sys.executable, "-m", "steelyard.cli", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines) + "\n"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def failproof_runs(source: Checkout) -> str:
    """The runs of SreeSharvesh/failproof-llm: their summaries, from their own lines and by our checks."""
    data = source.folder / "data"
    suites = data / "suites"
    cases = {"baseline-002": data / "baseline-002_csv.jsonl", "HARDER-001": suites / "harder-001.jsonl"}
    rows, notes, empty = [], [], []
    for summary in sorted(data.glob("runs/*/summary.json")):
        run = summary.parent.name
        if not summary.stat().st_size:
            empty.append(f"`{run}`")
            continue
        published = json.loads(summary.read_bytes())
        results = summary.with_name("results.jsonl")
        judged = cases.get(run, suites / "full_suite.jsonl")
        arguments = ("suites", "--results", results, "--cases", judged, "--format", "json")
        (found,) = json.loads(steelyard(*arguments, folder=source.folder))["runs"]
        theirs, ours = (
            {suite["suite"]: suite["score"]["value"] for suite in found[who]["suites"]} for who in ("they", "we")
        )
        for family, row in published["by_family"].items():
            said = "judges only" if ours[family] is None else percent(ours[family])
            rows.append((run, family, percent(row["pass_rate"]), percent(theirs[family]), said))
        middle, own = published["latency"]["p50"], found["latency_p50"] * 1000
        rows.append((run, "latency p50", f"{middle:g} ms", f"{own:g} ms", ""))
        high, own = published["latency"]["p95"], found["latency_p95"] * 1000
        rows.append((run, "latency p95", f"{high:g} ms", f"{own:g} ms", ""))
        notes += [
            f"- {run}, `{one['case']}`: they say {one['they']}, we say {one['we']}: {one['why']}."
            for one in found.get("disagreements", ())
        ]
    off = [f"{run}, {name}" for run, name, said, again, _ in rows if said != again and name != "latency p95"]
    found_notes = "\n".join(notes) or "- none"
    return f"""
## SreeSharvesh/failproof-llm

Commit {source.commit[:12]}. `steelyard suites --results data/runs/RUN/results.jsonl --cases data/suites/full_suite.jsonl` (baseline-002:
`data/baseline-002_csv.jsonl`). "Published" is `summary.json`, "their lines" the recorded status of each response scored again, "we say" the
responses judged again.

{table(("run", "suite", "published", "their lines", "we say"), rows)}
Published rates and medians that the lines do not give: {", ".join(off) or "none"}. Their p95 is the value at place 0.95 n, rounded down, of n sorted
latencies, which is too low for few values: of 4 it is the third. Where we judge otherwise:

{found_notes}

A row of empty fields was added by their repair step to reach the number of rows, and then counted as a row. HARDER-001 counts responses
to cases without a check as passed: the `expect` of its cases is empty. The files of {", ".join(empty)} are empty. The other runs have no published summary.
"""


def failproof_report(source: Checkout) -> str:
    """The sample report of basedlsg/failproof-llm, which its own table contradicts."""
    text = (source.folder / "reports/samples/summary_2025-08-10.md").read_text()
    cells = [[cell.strip(" *`") for cell in line.strip("| \n").split("|")] for line in text.splitlines() if "|" in line]
    suites = [(row[0], int(row[1]), int(row[2]), row[4]) for row in cells if len(row) == 5 and row[1].isdigit()]
    claims = {row[0]: row[1] for row in cells if len(row) == 3 and "%" in row[1]}
    rows = [(name, f"{passed}/{run}", said, percent(passed / run)) for name, run, passed, said in suites]
    overall = percent(fmean(passed / run for _, run, passed, _ in suites))
    rate = percent(sum(passed for _, _, passed, _ in suites) / sum(run for _, run, _, _ in suites))
    rows += [("overall score", "", claims["Overall Score"], overall), ("pass rate", "", claims["Pass Rate"], rate)]
    folder = source.folder / "suites"
    cases = steelyard("suites", folder, folder=source.folder).splitlines()[1:]
    checked = steelyard("validate", folder, "--allow-weak-sandbox", folder=source.folder).splitlines()[-1]
    sums = (source.folder / "checksums.txt").read_text().split()[::2]
    empty = sum(one == EMPTY_FILE_SHA256 for one in sums)
    return f"""
## basedlsg/failproof-llm

Commit {source.commit[:12]}. `reports/samples/summary_2025-08-10.md` prints these figures; the last column is what its own counts give.

{table(("suite", "passed", "published", "from its counts"), rows)}
The overall score is the mean of the suite scores by `docs/scoring_criteria.md`, section 4, and cannot be {claims["Overall Score"]} where no suite is
below 90%; the pass rate does not follow from the counts either. `json_api` is cut, not rounded.

`steelyard suites suites/` lists {len(cases)} cases and `steelyard validate suites/` ends with "{checked}": all of them load as they are. One has an
`expected_response`; the others are left to judges, or to a check that `--default-check` names. The repository has no results that could be scored.

`checksums.txt` gives {len(sums)} digests; {empty} of them are the SHA-256 of an empty file, so they prove nothing about the files that they name.
"""


def scylla(source: Checkout) -> str:
    """The two published experiments of HomericIntelligence/ProjectScylla, table by table."""
    rows, wrong, sections = [], [], []
    for name in ("haiku", "dryrun"):
        folder = source.folder / "docs" / "arxiv" / name
        analysis = json.loads(steelyard("tiers", folder / "data", "--format", "json", folder=source.folder))
        found = scylla_tables.experiment(folder / "data", analysis)
        for table_name, every in scylla_tables.figures(folder / "tables", found).items():
            bad = [figure for figure in every if not figure.is_reproduced]
            rows.append((name, f"`{table_name}`", f"{len(every):,}", f"{len(every) - len(bad):,}"))
            wrong += [
                f"- {name}, `{table_name}`, {each.name}: published {each.published}, is "
                + ("unknown" if each.ours is None else f"{each.ours:.4g}")
                for each in bad
            ]
        sections.append(_scylla_claims(folder / "raw" if name == "dryrun" else folder / "data"))
        if name == "haiku":
            haiku = found
    by_run = scylla_tables.judged_runs(haiku, ("experiment", "tier", "subtest", "run_number"))
    alpha = scylla_tables.krippendorff([list(run.values()) for run in by_run.values()])
    both = [(run["1"], run["2"]) for run in by_run.values() if {"1", "2"} <= run.keys()]
    spearman = correlation(*(scylla_tables.ranks(side) for side in zip(*both, strict=True)))
    names = {row["criterion"] for row in haiku.criteria}
    judges = sorted({row["judge_model"] for row in haiku.judges})
    last = haiku.tiers["T6"]["pass_rate"]
    return f"""
## HomericIntelligence/ProjectScylla

Commit {source.commit[:12]}, `docs/arxiv`. Every figure of every table in Markdown, from the runs that `steelyard tiers DATA --format json` reads (tokens, judges' scores
and criteria from the same files); a figure is reproduced where ours, rounded to the printed digits, is the printed one.
Intervals, powers, p of single pairs and letters of grades are not counted here: intervals are redrawn without a seed that is known.

{table(("experiment", "table", "figures", "reproduced"), rows)}
Not reproduced:

{chr(10).join(wrong) or "- none"}

In the dry run each tier has one run; H has a value there, though it tells nothing. What is printed and reproduced, and wrong all the same:

- haiku, `tab03_judge_agreement`: its key of a run has no experiment, so that the scores of three different tasks are averaged before judges are compared. By run, Spearman's
  rank correlation of judges 1 and 2 is {spearman:.3f} instead of 0.177, and Krippendorff's alpha {alpha:.3f} instead of 0.034.
- `impl_rate` of a run is the median of its judges, while `score` is their mean, so that the two columns of one run differ by more than what judges say
  (the mean impl rate over all runs is {percent(_scylla_mean(haiku, "recorded"))} by medians, {percent(_scylla_mean(haiku, "points"))} by means of points).
- `tab01_tier_summary`: the interval of T6 in haiku, (1.000, 1.000), has no width, because 9 runs that all passed are redrawn: {percent(last["low"])} to 100% is what 9 runs tell.
  In the dry run every tier has such an interval of a single run.
- `tab01_tier_summary`: intervals redraw single runs, although the three runs of a subtest have one set-up; ours redraw subtests.
- `tab02_tier_comparison`: a power of 1.000 of the omnibus test beside p = 0.20: a test that finds the effect it saw nearly always would hardly have such a p.
- `tab04_criteria_performance` has {len(scylla_tables.CRITERIA)} of the {len(names)} names of criteria in the file.
- `tab06_model_comparison` is an error message: "Need at least 2 models".
- `tab07_subtest_detail` does not say of which experiment a row is: each name stands there three times.
- `tab09_experiment_config` says that judges are "N/A"; `judges.csv` has {", ".join(judges)}.
- `tab10_normality_tests`: shares from 0 to 1 with many ties are not normal whatever the test says; nothing follows from the one that passes with 9 values.

What `steelyard import PATH --from scylla` prints of haiku (`data`) and of the dry run (`raw`), where they and we differ:

{chr(10).join(line for section in sections for line in section)}

Judges do not add up: they claim a total that is not what the points beside it come to. Prices: of {len(haiku.rows):,} recorded costs of haiku {_scylla_prices(haiku)}
are our price of their tokens to the cent.
"""


def _scylla_claims(path: Path) -> list[str]:
    """The figures of an import in which they and we differ, as a list."""
    with tempfile.TemporaryDirectory() as place:
        printed = steelyard("import", path, "--from", "scylla", "-o", Path(place) / "run", folder=path)
    _, _, claims = printed.partition("they say")
    every = [re.split(r"\s{2,}", line.strip()) for line in claims.splitlines()[1:] if line.strip()]
    found = [
        f"- {path.parent.name}: {about}: they say {they}, we say {we}, {n} differ."
        for about, they, we, n in every
        if n != "same"
    ]
    return [*found, f"- {path.parent.name}: the other {len(every) - len(found)} figures are the same."]


def _scylla_mean(found: scylla_tables.Experiment, kind: str) -> float:
    return fmean(scylla_tables.scores(found.runs, kind))


def _scylla_prices(found: scylla_tables.Experiment) -> str:
    """How many recorded costs our price list gives."""
    prices, same = Prices({}), 0
    for row in found.rows:
        plain, written, read = (
            int(row[name]) for name in ("input_tokens", "cache_creation_tokens", "cache_read_tokens")
        )
        answer = Answer(
            text="",
            input_tokens=plain + written + read,
            output_tokens=int(row["output_tokens"]),
            cached_tokens=read,
            cache_write_tokens=written,
        )
        cost = prices.cost(f"anthropic/{row['agent_model']}", answer)
        same += cost is not None and abs(cost.usd - float(row["cost_usd"])) < 0.005
    return percent(same / len(found.rows))


AUDITS: list[tuple[str, tuple[str, ...], Callable[[Checkout], str]]] = [
    ("SreeSharvesh/failproof-llm", ("data",), failproof_runs),
    ("basedlsg/failproof-llm", ("suites", "reports", "checksums.txt"), failproof_report),
    ("HomericIntelligence/ProjectScylla", ("docs/arxiv",), scylla),
]
"""The repositories, what of them is read, and what is said about it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repositories", type=Path, required=True, metavar="DIR")
    parser.add_argument("--check", action="store_true", help="only say whether docs/audits.md is up to date")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        parts: list[Any] = [HEAD]
        for name, paths, audit in AUDITS:
            parts.append(audit(checkout(options.repositories, name, Path(place), *paths)))
    page = "".join(parts)
    if options.check:
        return int(PAGE.read_text("utf-8") != page)
    PAGE.write_text(page, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
