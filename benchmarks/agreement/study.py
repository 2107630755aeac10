"""Whether our verdicts are those of a plain run, on references of public benchmarks and recorded answers of real models.

    python -m benchmarks.agreement.study DATA [--only SOURCE]... [--limit 50] [--shard 1/4] [--jobs 16] [--out VERDICTS.jsonl]
    python -m benchmarks.agreement.study --table VERDICTS.jsonl...

DATA is the folder that `tools/agreement/fetch` fills. Each answer is judged by our verifiers at the strongest level of the
machine, with witnesses and controls as in a run, and by `plain.py`, which runs answer and tests as the benchmarks' own
evaluators do; in bubblewrap, or in namespaces of util-linux, because it runs code of strangers. Both sides have the packages of
this interpreter's environment, the same limits and the same hash order. Where they disagree, both are asked once more with
four times the time. What still differs must stand in explained.toml with its reason, or the exit code is 1. With `--out` the
verdicts are kept, and the same command goes on after an interruption; `--table` prints the table of docs/design/agreement.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import tomllib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import msgspec
from benchmarks.agreement.samples import SOURCES, Data, Sample, distinct, plain_order
from msgspec.structs import replace

from steelyard.analysis.scoring import is_correct
from steelyard.engine.options import RunOptions
from steelyard.engine.pool import run_concurrently
from steelyard.engine.steps import is_verified_again_alone
from steelyard.engine.verifiers import VerifierSet
from steelyard.records import Answer, Case, Failure, Reply
from steelyard.text import verbatim_reply

HERE = Path(__file__).parent
EXPLAINED = HERE / "explained.toml"
RETRY_LIMIT_FACTOR = 4
"""How much more time both sides get when they disagreed."""
RUST_BATCH_ANSWERS = 50
"""Answers in Rust that wait for each other, because our way compiles them together."""
MAX_LINE_BYTES = 1 << 26
BUBBLEWRAP = (
    *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--unshare-all"),
    *("--die-with-parent", "--cap-drop", "ALL", "--chdir", "/tmp"),  # root could read what a test has closed
)
READ_ONLY = """
mount --make-rprivate /
for place in $(cut -d ' ' -f 2 /proc/mounts); do mount -o remount,bind,ro "$place" 2> /dev/null; done
mount -t tmpfs tmpfs /dev/shm; mount -t tmpfs tmpfs /tmp && cd /tmp && exec setpriv --bounding-set=-all --inh-caps=-all "$@"
"""
NAMESPACES = (
    *("unshare", "--map-root-user", "--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"),
    *("sh", "-c", READ_ONLY, "sh"),
)
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/tmp",  # a file system of its own there
    "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup")),
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # as in our sandbox
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}

PlainRun = Callable[[Sample, float], Awaitable[str]]


class Found(NamedTuple):
    """What our side found."""

    reason: str
    """Why the answer failed or is missing; empty where it passed."""
    outcome: Literal["passed", "failed", "tampered", "missing"]
    trust: str = ""
    flag: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What both sides found about one answer."""

    source: str
    id: str
    key: str
    is_recorded: bool
    plain: str
    """Why the plain run failed it; empty where it passed."""
    ours: Found
    retried: bool
    """Whether they disagreed at first, and this is what they found with more time."""

    @property
    def agrees(self) -> bool:
        """Whether both say the same: an answer that fails plainly may be missing, where its own reference fails, too."""
        return (self.ours.outcome == "passed") is (not self.plain)

    @property
    def is_unjudged(self) -> bool:
        """Whether we say that this answer, which passes plainly, cannot be judged here; that is no verdict."""
        return self.ours.outcome == "missing" and not self.plain


@asynccontextmanager
async def plain_runs(jobs: int) -> AsyncIterator[PlainRun]:
    """Plain runs, so many of them at once, each process of them in a box."""
    box = BUBBLEWRAP if shutil.which("bwrap") else NAMESPACES
    command = [*box, sys.executable, str(HERE / "plain.py")]
    pipe = asyncio.subprocess.PIPE
    free: asyncio.Queue[asyncio.subprocess.Process] = asyncio.Queue()
    processes = [
        await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env=ENVIRONMENT, limit=MAX_LINE_BYTES)
        for _ in range(jobs)
    ]
    for process in processes:
        free.put_nowait(process)

    async def run(sample: Sample, factor: float) -> str:
        order = sample.order or plain_order(sample.case, sample.code)
        seconds = int(sample.case.timeout_secs * factor)
        order = {**order, "cpu_seconds": seconds, "wall_seconds": 60 + 4 * seconds}
        process = await free.get()
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(order).encode() + b"\n")
        line = await process.stdout.readline()
        free.put_nowait(process)
        return str(json.loads(line))

    yield run
    for process in processes:
        process.kill()
        await process.wait()


async def our_finding(sample: Sample, factor: float, verifying: VerifierSet, *, alone: bool = False) -> Found | None:
    """What our verifiers find; None where that counts only on a machine that does nothing else."""
    case = timed(sample.case, factor)
    answer = Answer(text=verbatim_reply(sample.code, case.language))
    reply = Reply(key=sample.key, at="", case=case.id, model="recorded/any", number=1, answer=answer, asked="")
    fact = await verifying.verdict(reply, case, alone=alone)
    if isinstance(fact, Failure):
        return Found(fact.message, "missing")
    found = fact.found
    if is_verified_again_alone(found) and not alone:
        return None
    reason = f"{found.label}: {found.reason}"
    flag = getattr(found, "flag", "")
    if is_correct(case, found):
        return Found("", "passed", found.trust, flag)
    return Found(found.tampered or reason, "tampered" if found.tampered else "failed", found.trust, flag)


def timed(case: Case, factor: float) -> Case:
    """The case with more time, the same as the plain way gets, and with the packages that it has."""
    given = replace(case, timeout_secs=case.timeout_secs * factor, follows_reference=False)
    return given if case.language == "rust" else replace(given, verify=replace(case.verify, python_env=sys.prefix))


async def judged(samples: Sequence[Sample], jobs: int, keep: Callable[[Row], None]) -> None:
    """Judge each sample by both sides, and hand over what they found."""
    at_once = RUST_BATCH_ANSWERS if samples[0].case.language == "rust" else jobs
    options = RunOptions(parallelism=at_once)
    verifying = VerifierSet([timed(sample.case, 1) for sample in samples], options)
    for_alone: list[tuple[Sample, float]] = []

    async with plain_runs(jobs) as plain:

        async def judge(sample: Sample, factor: float = 1, *, alone: bool = False) -> None:
            said = await plain(sample, factor)
            found = await our_finding(sample, factor, verifying, alone=alone)
            if found is None:
                for_alone.append((sample, factor))
                return
            row = Row(
                source=sample.source,
                id=sample.case.id,
                key=sample.key,
                is_recorded=sample.is_recorded,
                plain=said,
                ours=found,
                retried=factor > 1,
            )
            if row.agrees or row.retried:
                keep(row)
            else:
                await judge(sample, RETRY_LIMIT_FACTOR, alone=alone)

        await run_concurrently(iter(samples), judge, at_once)
        for sample, factor in for_alone:
            await judge(sample, factor, alone=True)
    await verifying.close()


# What was found


def explained() -> dict[tuple[str, str], str]:
    """Why the sides differ on an answer, by the id of its case and its key."""
    table = tomllib.loads(EXPLAINED.read_text("utf-8"))
    return {
        (one["id"], one["key"]): one["why"] for kind in ("disagreements", "unjudged") for one in table.get(kind, ())
    }


def disagreements(rows: Iterable[Row]) -> list[Row]:
    """The answers on which the verdicts differ."""
    return [row for row in rows if not (row.agrees or row.is_unjudged)]


def unexplained(rows: Iterable[Row]) -> list[str]:
    """A line for each difference that explained.toml does not have, answers that we cannot judge among them."""
    known = explained()
    return [described(row) for row in rows if not row.agrees and (row.id, row.key) not in known]


def described(row: Row) -> str:
    said = " ".join((row.plain or "passed").split())[-300:]
    return f"{row.source}: {row.id} {row.key}: plain: {said} | ours: {row.ours.outcome} {row.ours.reason[:300]}"


def read_rows(files: Iterable[Path]) -> dict[str, Row]:
    """The kept rows, by the keys of the answers."""
    lines = chain.from_iterable(file.read_bytes().splitlines() for file in files)
    rows = (msgspec.json.decode(line, type=Row) for line in lines)
    return {f"{row.source} {row.key}": row for row in rows}


def table(rows: Sequence[Row]) -> str:
    """The published table."""
    counted: dict[str, Counter[str]] = {}
    for row in rows:
        counts = counted.setdefault(row.source, Counter())
        counts["answers"] += 1
        counts["recorded"] += row.is_recorded
        counts["plain"] += not row.plain
        counts[row.ours.outcome] += 1
        counts[row.ours.trust if row.ours.outcome == "passed" else ""] += 1
        counts[row.ours.flag and "flagged"] += 1
        counts["unjudged"] += row.is_unjudged
        counts["differ"] += not (row.agrees or row.is_unjudged)
    for name, is_recorded in (("recorded", True), ("references and mutations", False)):
        chosen = [counts for counts in counted.values() if bool(counts["recorded"]) == is_recorded]
        counted[f"all {name}"] = sum(chosen, Counter())
    lines = [f"| {' | '.join(('source', *COLUMNS.values()))} |", f"|---|{'---|' * len(COLUMNS)}"]
    for source, counts in counted.items():
        lines.append(f"| {source} | {' | '.join(f'{counts[name]:,}' for name in COLUMNS)} |")
    return "\n".join(lines)


COLUMNS = {
    "answers": "answers",
    "plain": "pass plainly",
    "passed": "pass by us",
    "isolated": "isolated",
    "in-process": "in-process",
    "missing": "missing",
    "unjudged": "missing, and pass plainly",
    "tampered": "tampered",
    "flagged": "flagged",
    "differ": "disagree",
}
"""What is counted, and what the table calls it."""


def spread(samples: list[Sample], limit: int | None, shard: str) -> list[Sample]:
    """One of so many shares of the samples, at most so many of them, evenly spread."""
    number, _, of = shard.partition("/")
    share = samples[int(number) - 1 :: int(of)]
    if limit is None or len(share) <= limit:
        return share
    return [share[number * len(share) // limit] for number in range(limit)]


def study(
    data: Path,
    names: Iterable[str],
    *,
    limit: int | None = None,
    shard: str = "1/1",
    jobs: int = 2,
    out: Path | None = None,
) -> list[Row]:
    """Judge the answers of sources; those that a file has already are taken from there."""
    rows: list[Row] = []
    known = read_rows([out] if out and out.exists() else [])
    for name in names:
        found = distinct(SOURCES[name](Data(data)))
        samples = spread(found, limit, shard)
        owed = [sample for sample in samples if f"{sample.source} {sample.key}" not in known]
        rows += [known[key] for sample in samples if (key := f"{sample.source} {sample.key}") in known]
        print(f"{name}: {len(found):,} distinct answers; {len(owed):,} to judge", flush=True)
        if owed and owed[0].case.language == "rust" and shutil.which("rustc") is None:
            print("    left out: there is no rustc here")
        elif owed:
            with (out or Path(os.devnull)).open("ab") as file:
                asyncio.run(judged(owed, jobs, partial(keep, rows=rows, file=file)))
    return rows


def keep(row: Row, rows: list[Row], file: BinaryIO) -> None:
    rows.append(row)
    file.write(msgspec.json.encode(row) + b"\n")
    file.flush()
    if not row.agrees:
        print(f"    {described(row)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", help="the folder that tools/agreement/fetch fills")
    parser.add_argument("--only", action="append", choices=SOURCES, help="only this source; can be repeated")
    parser.add_argument("--limit", type=int, help="answers of each source at most, evenly spread (default: all)")
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="one of N shares of each source (default: 1/1)")
    parser.add_argument("--jobs", type=int, default=2, help="answers that are judged at once (default: 2)")
    parser.add_argument("--out", type=Path, help="a file that keeps the verdicts, one JSON object per answer")
    parser.add_argument("--table", type=Path, nargs="+", metavar="FILE", help="only print the table of kept verdicts")
    options = parser.parse_args()
    if options.table:
        rows = list(read_rows(options.table).values())
    elif options.data:
        names = options.only or list(SOURCES)
        rows = study(options.data, names, limit=options.limit, shard=options.shard, jobs=options.jobs, out=options.out)
    else:
        parser.error("name the folder with the data, or --table with files")
    print(f"\n{table(rows)}\n")
    left = unexplained(rows)
    print(f"{len(disagreements(rows))} verdicts differ; {len(left)} differences are not explained")
    print("\n".join(left))
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main())
