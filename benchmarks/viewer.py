"""What looking at runs costs, and how that grows with their size.

    python benchmarks/viewer.py [--attempts 1000 10000 100000] [--runs 1000] [--repeat 3] [--inspect PYTHON]

Three things are measured. What knowing about runs costs: in a process of its own, in which nothing was opened before.
What pages cost the server: over HTTP, each asked for once. And what a reader waits for: CPU time of server and browser
together, from the address to the first rows that can be seen, beside Inspect's viewer where `--inspect` names a Python
that has it. Pages need Linux, readers Chromium and playwright.

Of several rounds the cheapest counts, because a busy machine can only add to it. Figures of the first two kinds stand
beside a floor, measured in the same process: the least that any program would have to do for the same answer, and for
pages an answer that says nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import random
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from steelyard.analysis.estimates import mean
from steelyard.engine.results.headline_cache import summarise_and_cache
from steelyard.records import (
    Answer,
    Case,
    Cost,
    EvalSetFile,
    Expectations,
    Finding,
    Reply,
    RunInfo,
    Test,
    Verdict,
    digest,
)
from steelyard.store.journal import Journal, create_run
from steelyard.store.run_folders import ATTEMPT_INDEX_FILE, HEADLINE_FILE
from steelyard.viewer.run_list import RunCatalog

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AIM_MILLISECONDS = 300
AIM_MEGABYTES = 300
MODELS = tuple(f"openai/model-{number}" for number in range(4))
SAMPLES = 25
TEXT = "def first_repeated(numbers):\n    return next(n for n in numbers if numbers.count(n) > 1)\n" * 6


class Figure(NamedTuple):
    """What one thing took."""

    what: str
    milliseconds: float
    """Of CPU time."""
    floor: float
    """The same for the least that has to be done."""
    kilobytes: float | None = None
    """Of the response, where something was asked for."""


class Round(NamedTuple):
    """What came of one process."""

    figures: list[Figure]
    megabytes: float
    """Memory at its peak."""


# The runs that are looked at.


def case_count(attempts: int) -> int:
    """How many cases a run with this number of attempts has."""
    return max(5, attempts // (len(MODELS) * SAMPLES))


def stored_run(folder: Path, attempts: int, *, seed: int = 0) -> Path:
    """A run that has come to its end, of this many attempts or a few more."""
    chance = random.Random(seed)
    count = case_count(attempts)
    cases = [
        Case(id=f"case-{number}", prompt="Find it.", language="python", expectations=Expectations(test_file="t"))
        for number in range(count)
    ]
    day = f"{seed % 28 + 1:02}"
    info = RunInfo(
        id=folder.name,
        started_at=f"2026-01-{day}T00:00:00Z",
        ended_at="2026-02-01T00:00:00Z",
        eval_sets=(EvalSetFile(path="evals/numbers.toml", digest="d"),),
        names=MODELS,
        samples=SAMPLES,
    )
    with create_run(folder, info, cases) as journal:
        for number in range(1, min(SAMPLES, -(-attempts // (count * len(MODELS)))) + 1):
            for case in cases:
                for model in MODELS:
                    for fact in attempt(chance, case, model, number):
                        journal.append(fact)
        summarise_and_cache(journal, info, cases)
    return folder


def attempt(chance: random.Random, case: Case, model: str, number: int) -> tuple[Reply, Verdict]:
    """A reply with its verdict; no two failures give the same reason."""
    key = digest(case.id, model, number)
    fact: dict[str, Any] = {
        "at": f"2026-01-01T{chance.randrange(24):02}:{chance.randrange(60):02}:00.000Z",
        "case": case.id,
        "model": model,
        "number": number,
    }
    passes = chance.random() < 0.7
    tests = tuple(Test(name=f"test_{one}", outcome="passed" if passes or one else "failed") for one in range(4))
    answer = Answer(
        text=TEXT,
        latency=chance.random() * 9,
        input_tokens=chance.randrange(999),
        output_tokens=chance.randrange(999),
        cost=Cost(usd=chance.random() / 100, source="list"),
    )
    found = Finding(
        code=TEXT,
        compiled=True,
        tests=tests,
        label="" if passes else "wrong answer",
        reason="" if passes else f"expected {chance.random()}",
        trust="isolated",
        isolation="full",
    )
    verdict = Verdict(key=f"v{key}", ask=key, tests=case.tests_digest, verifier="v", found=found, **fact)
    return Reply(key=key, answer=answer, asked="a", **fact), verdict


# What knowing about runs costs; each in a process of its own, with a folder of runs.


def taken(do: Callable[[], Any]) -> float:
    """Milliseconds of CPU time."""
    begin = time.process_time()
    do()
    return 1000 * (time.process_time() - begin)


def opening(root: Path) -> list[Figure]:
    """Two finished runs of the same size, opened for the first time; floor: their rows as plain values."""
    one, two = sorted(path.name for path in root.iterdir())
    floor = taken(lambda: msgspec.msgpack.decode((root / one / ATTEMPT_INDEX_FILE).read_bytes()))
    library = RunCatalog(root)
    figures = [Figure("open a finished run", taken(lambda: library.open(one)), floor)]
    opened = library.open(one)
    figures.append(Figure("its summary", taken(opened.summary), floor))
    case, column = opened.cases[-1], opened.columns[-1]
    figures.append(Figure("one attempt with texts", taken(lambda: opened.attempt(case.id, *column, 1)), floor))
    figures.append(Figure("open it again", taken(lambda: library.open(one)), floor))
    figures.append(Figure("open another as large", taken(lambda: library.open(two)), floor))
    return figures


def growing(root: Path) -> list[Figure]:
    """A run that is being written; floor: its lines as plain facts."""
    folder = min(root.iterdir())
    for name in (HEADLINE_FILE, ATTEMPT_INDEX_FILE):
        (folder / name).unlink(missing_ok=True)
    with Journal(folder) as journal:
        floor = taken(lambda: sum(1 for _ in journal.facts()))
        library = RunCatalog(root)
        figures = [Figure("open a growing run", taken(lambda: library.open(folder.name)), floor)]
        case = journal.cases[0]
        for fact in attempt(random.Random(1), case, MODELS[0], SAMPLES + 1):
            journal.append(fact)
        figures.append(Figure("one attempt later", taken(lambda: library.open(folder.name)), floor))
        figures.append(Figure("its headline figures", taken(lambda: library.open(folder.name).headlines), floor))
        figures.append(Figure("its summary then", taken(library.open(folder.name).summary), floor))
    return figures


def listing(root: Path) -> list[Figure]:
    """Many runs; floor: what is written down of each, as plain values."""

    def plain() -> None:
        for folder in root.iterdir():
            json.loads((folder / "run.json").read_bytes())
            json.loads((folder / HEADLINE_FILE).read_bytes())

    floor = taken(plain)
    library = RunCatalog(root)
    return [
        Figure("list the runs", taken(library.listed), floor),
        Figure("list them again", taken(library.listed), floor),
    ]


MEASURES: dict[str, Callable[[Path], list[Figure]]] = {"opening": opening, "growing": growing, "listing": listing}


def measured(name: str, root: Path) -> Round:
    """Take the figures of one kind in a new process."""
    done = subprocess.run(
        [sys.executable, __file__, "--only", name, "--folder", str(root)], check=True, capture_output=True
    )
    return msgspec.json.decode(done.stdout, type=Round)


# What processes have used so far.


def peak(pid: int | str = "self") -> float:
    """The most memory that a process had, in MB."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        # getrusage starts with the memory of the process that started us
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def used(pid: int) -> float:
    """CPU seconds of a process, with those of its children that have ended; 0 where it has ended itself."""
    try:
        # the clock of another process, as clock_getcpuclockid gives it: /proc counts in ticks, and a page takes less
        own = time.clock_gettime(~pid << 3 | 2)
        children = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[13:15]
    except OSError:
        return 0.0
    return own + sum(map(int, children)) / os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """A process and all that it started, and so on."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    found = [pid]
    # it grows while we go along it
    for one in found:
        found += children.get(one, [])
    return found


def browsing() -> list[int]:
    """The processes of the browser that we started."""
    return [pid for pid in family(os.getpid()) if _name(pid).startswith("chrom")]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


# What pages cost the server.


class Server(NamedTuple):
    """A viewer that answers."""

    url: str
    pid: int
    key: str


class Viewer(NamedTuple):
    """A viewer that can be started, and where it shows a run."""

    name: str
    command: Sequence[str]
    """Prints the address."""
    address: str
    rows: str
    """What can be seen as soon as the run can, for a browser to look out for."""


def own(root: Path) -> Viewer:
    """Ours, over a folder of runs."""
    command = (sys.executable, "-m", "steelyard.cli", "view", str(root), "--port", "0", "--no-browser")
    return Viewer("steelyard", command, "runs/one", "#cells tbody tr")


@contextmanager
def serving(viewer: Viewer, scratch: Path) -> Iterator[Server]:
    """The viewer, as its users start it; it writes nowhere but to `scratch`."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {
        # an installed package is compiled once; here the first round does that
        "PYTHONPYCACHEPREFIX": str(scratch / "compiled"),
        "PYTHONUNBUFFERED": "1",
        "XDG_DATA_HOME": str(scratch / "data"),
    }
    with subprocess.Popen(
        viewer.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=scratch
    ) as process:
        try:
            assert process.stdout is not None
            said = []
            for line in process.stdout:
                said.append(line)
                if found := re.search(r"(http://127\.0\.0\.1:[0-9]+)(?:/\?key=(\S+))?", line):
                    url, key = f"{found[1]}/", found[2] or ""
                    NO_PROXY.addheaders = [("X-API-Key", key)] if key else []
                    break
            else:
                raise SystemExit(f"{viewer.name} did not start: {''.join(said)}")
            while not answers(url):
                time.sleep(0.1)
            yield Server(url, process.pid, key)
        finally:
            process.terminate()


NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def answers(url: str) -> bool:
    """Whether somebody is there."""
    try:
        NO_PROXY.open(f"{url}healthz").close()
    except urllib.error.HTTPError:
        return True
    except urllib.error.URLError:
        return False
    return True


def fetched(url: str) -> int:
    """Ask for a page until it is there; the bytes of all answers."""
    size = 0
    while True:
        with NO_PROXY.open(url) as answer:
            size += len(answer.read())
            if answer.status == 200:
                return size
        time.sleep(0.2)


def pages_about_runs(attempts: int) -> list[tuple[str, str]]:
    """What is asked for of two runs, in this order."""
    cell = urlencode({"case": f"case-{case_count(attempts) - 1}", "model": MODELS[-1]})
    compare = "compare?" + urlencode({"baseline": "one", "current": "two"})
    return [
        *PAGES_ABOUT_A_FOLDER,
        ("run page", "runs/one"),
        ("run page again", "runs/one"),
        ("filtered and sorted", "runs/one?outcome=wrong&sort=hardest"),
        ("text search", "runs/one?q=expected+0.123"),
        ("text search in replies", "runs/one?q=count&replies=1"),
        ("a cell opened", f"runs/one?{cell}"),
        ("attempt page", f"runs/one/attempt?{cell}&number=1"),
        ("page of another run", "runs/two"),
        ("compare page", compare),
        ("compare page again", compare),
        ("API: 50 cases", "api/v1/runs/one/cases?limit=50"),
    ]


PAGES_ABOUT_A_FOLDER = [("list page", ""), ("list page again", "")]
AIMED = ("list page", "list page again", "run page", "run page again", "page of another run")
"""The pages that the aim speaks of."""


def asked(root: Path, pages: Sequence[tuple[str, str]], scratch: Path) -> Round:
    """Ask a new viewer for pages; floor: an answer that says nothing."""

    def page(what: str, address: str, floor: float) -> Figure:
        before = used(server.pid)
        size = fetched(server.url + address)
        return Figure(what, 1000 * (used(server.pid) - before), floor, size / 1000)

    with serving(own(root), scratch) as server:
        floor = min(page("", "healthz", 0).milliseconds for _ in range(5))
        figures = [page(what, address, floor) for what, address in pages]
        return Round(figures, peak(server.pid))


# What a reader waits for.


class Sight(NamedTuple):
    """What it took until a run could be seen, or a viewer answered; None where it came to nothing."""

    what: str
    server: float | None
    """CPU seconds."""
    browser: float | None
    megabytes: float | None
    """Over the network."""
    memory: float | None
    """Of the server at its peak, in MB."""

    @property
    def seconds(self) -> float | None:
        return None if self.server is None or self.browser is None else self.server + self.browser


@contextmanager
def launched() -> Iterator[Browser]:
    """Chromium without a window, with nothing in its profile."""
    from playwright.sync_api import sync_playwright

    quiet = ("gpu", "quic", "background-networking", "component-update", "sync")
    options = ["--no-first-run", "--no-proxy-server", *(f"--disable-{what}" for what in quiet)]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), headless=True, chromium_sandbox=False, args=options
        )
        with closing(browser):
            yield browser


def seen(viewer: Viewer, scratch: Path, patience: float) -> list[Sight]:
    """Open a run twice in a new browser, with a new viewer; `patience` is in seconds."""
    from playwright.sync_api import Error

    with serving(viewer, scratch) as server, launched() as browser:
        sights = [Sight("start", sum(map(used, family(server.pid))), 0.0, 0.0, peak(server.pid))]
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_extra_http_headers({"X-API-Key": server.key} if server.key else {})
        page = context.new_page()
        sizes: list[float] = []
        network = context.new_cdp_session(page)
        network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
        network.send("Network.enable")

        def look(what: str, go: Callable[[], object]) -> Sight:
            settle(page)
            sizes.clear()
            before = [sum(map(used, pids)) for pids in (family(server.pid), browsing())]
            try:
                go()
                page.locator(viewer.rows).first.wait_for(timeout=1000 * patience)
            except Error:
                return Sight(what, None, None, None, None)
            after = [sum(map(used, pids)) for pids in (family(server.pid), browsing())]
            # what was sent until now is told a little later
            page.wait_for_timeout(100)
            memory = sum(map(peak, family(server.pid)))
            return Sight(what, after[0] - before[0], after[1] - before[1], sum(sizes) / 1e6, memory)

        address = server.url + viewer.address
        sights.append(look("first time", lambda: page.goto(address, wait_until="commit")))
        sights.append(look("again", lambda: page.reload(wait_until="commit")))
        return sights


def settle(page: Page) -> None:
    """Wait until the browser has nothing to do, for half a minute at most."""
    for _ in range(30):
        before = sum(map(used, browsing()))
        page.wait_for_timeout(1000)
        if sum(map(used, browsing())) - before < 0.03:
            return


INSPECT_LOG = """
import asyncio, json, os, random, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log._recorders import create_recorder_for_location
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import generate

folder, scratch, cases, epochs, text = json.load(sys.stdin)

@scorer(metrics=[accuracy()])
def lucky():
    async def score(state, target):
        return Score(value="C", answer=state.output.completion)
    return score

def replies():
    while True:
        reply = ModelOutput.from_content("mockllm/model", text)
        reply.usage = ModelUsage(input_tokens=400, output_tokens=500, total_tokens=900)
        yield reply

task = Task(dataset=[Sample(id="case-0", input="Find it.", target="t")], solver=generate(), scorer=lucky())
model = get_model("mockllm/model", custom_outputs=replies())
log = eval(task, model=model, epochs=epochs, log_dir=scratch, display="none")[0]
assert log.status == "success", log.error
log.eval.dataset.samples = cases
log.eval.dataset.sample_ids = [f"case-{number}" for number in range(cases)]
log.results.total_samples = log.results.completed_samples = cases * epochs

def like(sample, number):
    passes = random.random() < 0.7
    score = sample.scores["lucky"].model_copy(
        update={"value": "C" if passes else "I", "explanation": "" if passes else f"expected {random.random()}"}
    )
    changed = {"id": f"case-{number}", "uuid": f"{number}-{sample.epoch}", "scores": {"lucky": score}}
    return sample.model_copy(update=changed | {"events": [], "attachments": {}})

async def write():
    place = os.path.join(folder, os.path.basename(log.location))
    recorder = create_recorder_for_location(place, folder)
    await recorder.log_init(log.eval, location=place, clean=True)
    await recorder.log_start(log.eval, log.plan)
    for number in range(cases):
        for sample in log.samples:
            await recorder.log_sample(log.eval, like(sample, number))
        if number % 40 == 39:
            await recorder.flush(log.eval)
    await recorder.log_finish(log.eval, log.status, log.stats, log.results, None)

asyncio.run(write())
"""
"""Writes a log of Inspect: one case is evaluated for real, and the others are like it.

Events are left out, as ours has none. Its samples go to what Inspect's own converter hands them to: `write_eval_log`
holds each against all before it, which takes 96 CPU seconds for 10,000 and a hundred times as long for ten times as many.
"""


def inspect(python: str, folder: Path, attempts: int, scratch: Path) -> Viewer:
    """Inspect's viewer over a folder with one log of as many samples."""
    wanted = [str(folder), str(scratch / "one-case"), attempts // SAMPLES, SAMPLES, TEXT]
    environment = os.environ | {"XDG_DATA_HOME": str(scratch / "data")}
    subprocess.run(
        [python, "-c", INSPECT_LOG], input=json.dumps(wanted), text=True, check=True, cwd=scratch, env=environment
    )
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = str(free.getsockname()[1])
    command = (python, "-m", "inspect_ai", "view", "start", "--log-dir", str(folder), "--port", port)
    return Viewer("Inspect", command, "", "a[role=row]")


def inspect_version(python: str) -> str:
    """Which Inspect a Python has; empty where it has none."""
    asking = "import importlib.metadata as known; print(known.version('inspect_ai'))"
    try:
        done = subprocess.run([python, "-c", asking], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


# What is printed.


def cheapest(rounds: list[Round]) -> Round:
    """The best of each figure."""
    figures = [
        same[0]._replace(milliseconds=min(one.milliseconds for one in same), floor=min(one.floor for one in same))
        for same in zip(*(one.figures for one in rounds), strict=True)
    ]
    return Round(figures, min(one.megabytes for one in rounds))


def clearest(rounds: list[list[Sight]]) -> list[Sight]:
    """The same of what was seen."""

    def least(values: Sequence[float | None]) -> float | None:
        return min((value for value in values if value is not None), default=None)

    return [
        # server and browser belong together
        min(same, key=lambda one: (one.seconds is None, one.seconds or 0.0))._replace(
            memory=least([one.memory for one in same])
        )
        for same in zip(*rounds, strict=True)
    ]


def lines(size: str, found: Round) -> list[str]:
    """A line per figure."""
    return [
        f"{size:>16}  {figure.what:24}{figure.milliseconds:>10.1f}{figure.floor:>10.1f}"
        f"{figure.milliseconds / figure.floor if figure.floor else 0:>9.2f}"
        f"{'' if figure.kilobytes is None else format(figure.kilobytes, '.0f'):>8}{found.megabytes:>8.0f}"
        for figure in found.figures
    ]


def growth(pages: dict[int, Round]) -> list[str]:
    """How many times as much pages cost, from each size to the next."""
    sizes = sorted(pages)
    found = [f"\n{'times as much CPU as':26}" + "".join(f"{f'{size:,} attempts':>18}" for size in sizes[:-1])]
    for same in zip(*(pages[size].figures for size in sizes), strict=True):
        costs = [figure.milliseconds for figure in same]
        times = [after / before if before else 0 for before, after in pairwise(costs)]
        found.append(f"{same[0].what:26}" + "".join(f"{time:>18.1f}" for time in times))
    return found if len(sizes) > 1 else []


def shown(value: float | None, places: int) -> str:
    """A number, or a dash without one."""
    return "-" if value is None else f"{value:.{places}f}"


def sight_lines(size: str, viewer: str, sights: list[Sight]) -> list[str]:
    """A line per opening."""
    return [
        f"{size:>16}  {viewer:12}{sight.what:12}{shown(sight.server, 2):>10}{shown(sight.browser, 2):>10}"
        f"{shown(sight.seconds, 2):>10}{shown(sight.megabytes, 2):>10}{shown(sight.memory, 0):>10}"
        for sight in sights
    ]


def ratio_lines(size: str, ours: list[Sight], theirs: list[Sight]) -> list[str]:
    """How many times as much the other viewer takes."""

    def times(mine: float | None, other: float | None) -> str:
        return f"{other / mine:.1f}x" if mine and other is not None else "-"

    return [
        f"{size:>16}  {'ratio':12}{mine.what:12}{'':20}{times(mine.seconds, other.seconds):>10}"
        f"{times(mine.megabytes, other.megabytes):>10}{times(mine.memory, other.memory):>10}"
        for mine, other in zip(ours, theirs, strict=True)
    ]


def readers(size: int, root: Path, scratch: Path, given: argparse.Namespace) -> list[str]:
    """What was seen of runs of one size, as a table."""

    def rounds(viewer: Viewer) -> list[Sight]:
        return clearest([seen(viewer, scratch, given.patience) for _ in range(given.repeat)])

    named = f"{size:,} attempts"
    ours = rounds(own(root))
    found = sight_lines(named, "steelyard", ours)
    if given.inspect:
        folder = scratch / f"inspect-{size}"
        folder.mkdir()
        theirs = rounds(inspect(given.inspect, folder, size, scratch))
        found += sight_lines(named, "Inspect", theirs)
        if any(sight.seconds is None for sight in theirs):
            found.append(f"{'':18}Inspect showed nothing within {given.patience:.0f} seconds")
        found += ratio_lines(named, ours, theirs)
    return found


HAS_CLOCKS = sys.platform == "linux"
HAS_BROWSER = HAS_CLOCKS and shutil.which("chromium") is not None and importlib.util.find_spec("playwright") is not None


def left_out(given: argparse.Namespace) -> str:
    """What is not measured, and why; empty where all is."""
    if not HAS_CLOCKS:
        return "pages and readers are left out: only Linux tells the CPU time of other processes"
    if not HAS_BROWSER:
        return "readers are left out: that needs chromium on the path, and playwright"
    return "" if given.inspect else "Inspect is left out: name a Python that has it with --inspect"


def options() -> argparse.Namespace:
    """What the user wants to know."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=3, help="rounds; the cheapest counts")
    parser.add_argument("--inspect", metavar="PYTHON", help="a Python that has inspect_ai, to look at the same there")
    parser.add_argument("--patience", type=float, default=300, help="seconds until a reader gives up")
    parser.add_argument("--only", choices=MEASURES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inspect and not inspect_version(given.inspect):
        parser.error(f"--inspect {given.inspect}: this Python has no inspect_ai; install it there with pip")
    return given


def main() -> None:
    """Make the runs, look at them, and print what that costs."""
    given = options()
    if given.only:
        # the first interval that a process works out loads libraries, which is not what is asked here
        mean([0.0, 0.5, 1.0], 3)
        figures = MEASURES[given.only](given.folder)
        sys.stdout.buffer.write(msgspec.json.encode(Round(figures, peak())))
        return
    with tempfile.TemporaryDirectory(prefix="steelyard-benchmark-") as folder:
        report(given, Path(folder))


def report(given: argparse.Namespace, scratch: Path) -> None:
    """Print all tables."""
    other = f", Inspect {inspect_version(given.inspect)}" if given.inspect else ""
    cpus = f"{platform.machine()}, {os.cpu_count()} CPUs"
    print(f"best of {given.repeat}; Python {platform.python_version()}, {cpus}{other}\n")
    print(f"{'':18}{'':24}{'CPU ms':>10}{'floor':>10}{'/floor':>9}{'KB':>8}{'MB':>8}")
    judged: list[Round] = []
    pages: dict[int, Round] = {}
    sights: list[str] = []

    def best(size: str, measure: Callable[..., Round], *how: object) -> Round:
        found = cheapest([measure(*how) for _ in range(given.repeat)])
        print("\n".join(lines(size, found)), flush=True)
        return found

    for size in given.attempts:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            root, named = Path(folder), f"{size:,} attempts"
            for seed, name in enumerate(("one", "two")):
                stored_run(root / name, size, seed=seed)
            judged.append(best(named, measured, "opening", root))
            if HAS_CLOCKS:
                pages[size] = best(named, asked, root, pages_about_runs(size), scratch)
            if HAS_BROWSER:
                sights += readers(size, root, scratch, given)
            # the last, because it writes
            best(named, measured, "growing", root)
    root, named = scratch / "many", f"{given.runs:,} runs"
    for number in range(given.runs):
        stored_run(root / f"run-{number}", 20, seed=number)
    judged.append(best(named, measured, "listing", root))
    if HAS_CLOCKS:
        judged.append(best(named, asked, root, PAGES_ABOUT_A_FOLDER, scratch))
    print("\n".join(growth(pages)))
    if sights:
        print(f"\n{'CPU seconds':42}{'server':>10}{'browser':>10}{'both':>10}{'MB sent':>10}{'server MB':>10}")
        print("\n".join(sights))
    if missing := left_out(given):
        print(f"\n{missing}")
    judged += [Round([page for page in one.figures if page.what in AIMED], one.megabytes) for one in pages.values()]
    worst = max(figure.milliseconds for one in judged for figure in one.figures)
    most = max(one.megabytes for one in judged)
    met = worst <= AIM_MILLISECONDS and most <= AIM_MEGABYTES
    print(
        f"\naim: lists and finished runs within {AIM_MILLISECONDS} CPU ms and {AIM_MEGABYTES} MB, as pages too: "
        f"{'met' if met else 'missed'} ({worst:.0f} ms, {most:.0f} MB)"
    )


if __name__ == "__main__":
    main()
