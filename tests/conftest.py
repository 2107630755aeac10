"""What several kinds of tests need."""

from __future__ import annotations

import atexit
import fcntl
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.compiled import compile_all
from support.fault_server import FaultServer
from support.forked import forked

collect_ignore = ["data"]
"""Files that runs were made from; two of them may have one name."""
# what tests agree to is forgotten with them
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="steelyard-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

EXAMPLES = Path(__file__).parent.parent / "examples"
RECORDINGS = Path(__file__).parent / "data" / "recordings"
"""Replies of two models that fail in many ways, some so badly that nothing compiles."""
RECORDED = "replay:recordings/python-basics.jsonl.gz"
SUITES = (
    "suite:contradictions",
    "suite:injection",
    "suite:json_api",
    "suite:long_context@2000",
    "suite:unicode_locale",
)
COMMANDS = {
    "monday": ("run", "examples/python-basics.toml", "--models", RECORDED, "--limit", "8", "--samples", "2"),
    "tuesday": (*("run", "examples/python-basics.toml", "--models", RECORDED), "--limit", "8", "--samples", "4"),
    "suites": ("run", *SUITES, "--models", "replay:examples/recordings/suites.jsonl.gz"),
    "tiers": ("tiers", "examples/tiers/experiment.toml"),
}
"""Runs by name, in the order in which they are made."""


def pytest_configure(config: pytest.Config) -> None:
    """Let pytest rewrite the asserts of tests only: as steelyard has a plug-in, each test process would rewrite all of its modules, too."""
    hook = getattr(config.pluginmanager, "rewrite_hook", None)
    getattr(hook, "_must_rewrite", set()).discard("steelyard")
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        compile_all(config)
    else:
        gc.disable()
        _hear_ignored_signals()


def _hear_ignored_signals() -> None:
    """Handle what nohup, or a script that starts us in the background, has us ignore: what tests start would ignore it, too."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        # a closed terminal still does not end the tests
        signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with tests that share what their module makes: an idle process takes others' last tests, and would make it again."""
    items.sort(key=lambda item: not _shares_with_its_module(item))


def _shares_with_its_module(item: pytest.Item) -> bool:
    found = getattr(item, "_fixtureinfo", None)
    defined = found.name2fixturedefs.values() if found is not None else ()
    return any(fixtures[-1].scope == "module" for fixtures in defined if fixtures)


def pytest_collection_finish() -> None:
    """What was collected lives until the end: the garbage collector need not walk it again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """At the end it is garbage like everything else."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with real runs, and with one that is broken; made once, whoever tests beside us."""
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "demo"
    place.mkdir(exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "made").exists():
            _make(place)
            (place / "made").touch()
    return place / "runs"


def _make(place: Path) -> None:
    shutil.copytree(EXAMPLES, place / "examples")
    shutil.copytree(RECORDINGS, place / "recordings")
    experiment = place / "examples" / "tiers" / "experiment.toml"
    experiment.write_text(experiment.read_text("utf-8").replace("runs = 4", "runs = 1"), "utf-8")
    for name, command in COMMANDS.items():
        ran = forked("steelyard", [*command, "--output", f"runs/{name}"], place, {**os.environ})
        assert ran.returncode == 0, ran.stderr
    (place / "runs" / "broken").mkdir()
    (place / "runs" / "broken" / "run.json").write_text('{"id": 7}')


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running
