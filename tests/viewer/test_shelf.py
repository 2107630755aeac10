"""What requests share: runs that are being read, and figures of runs that grow."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from steelyard.analysis.estimates import Estimate, difference
from steelyard.store.journal import Journal, StoredRun
from steelyard.viewer.app import application
from steelyard.viewer.pages.rendering import change_direction
from steelyard.viewer.run_cache import SUMMARY_PAUSE_FACTOR, RunCache
from steelyard.viewer.run_list import RunCatalog
from steelyard.viewer.run_view import RunView
from support.viewed import Came, cases, got, made

MODEL = "openai/some"


def growing(root: Path) -> Journal:
    """A run with one attempt, which somebody goes on writing."""
    asked = cases(3)
    return Journal(made(root, "growing", asked, [(asked[0], MODEL, 1, Came())], ended=False))


class Slow(RunCatalog):
    """A library in which reading takes as long as we like."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.may_read = threading.Event()

    def open(self, run_id: str) -> RunView:
        self.may_read.wait()
        return super().open(run_id)


KEY = {"X-API-Key": "k"}


@contextmanager
def served(library: RunCatalog) -> Iterator[int]:
    """The port of a viewer that has no patience at all."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        app = application(lambda: library, port=port, key="k", patience=0)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        beside = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        beside.start()
        try:
            yield port
        finally:
            server.should_exit = True
            beside.join()


def test_a_run_that_takes_long_to_read_says_so_and_comes_by_itself(tmp_path: Path) -> None:
    growing(tmp_path).close()
    library = Slow(tmp_path)
    with served(library) as port:
        first = got(port, "/runs/growing", headers=KEY)
        assert (first.status, first.headers["refresh"]) == (202, "1")
        assert "Reading growing" in first.told
        library.may_read.set()
        while (page := got(port, "/runs/growing", headers=KEY)).status == 202:
            time.sleep(0.05)
        assert page.status == 200
        assert "Question 1?" in got(port, f"/runs/growing/attempt?case=case-1&model={MODEL}&number=1", headers=KEY).told
        while (page := got(port, "/runs/nowhere", headers=KEY)).status == 202:
            time.sleep(0.05)
        assert page.status == 404


def test_a_run_is_read_once_however_many_wait_for_it(tmp_path: Path) -> None:
    growing(tmp_path).close()
    run_cache = RunCache(RunCatalog(tmp_path))
    answers: list[bool] = []
    waiting = [threading.Thread(target=lambda: answers.append(run_cache.is_read("growing", 60))) for _ in range(8)]
    for one in waiting:
        one.start()
    for one in waiting:
        one.join()
    assert answers == [True] * 8
    assert run_cache.is_read("growing", 0)


def test_a_growing_run_is_added_up_now_and_then(tmp_path: Path) -> None:
    moments = iter([0.0, 2.0, 2.0 + 2.0 * SUMMARY_PAUSE_FACTOR - 0.1, 2.0 + 2.0 * SUMMARY_PAUSE_FACTOR, 100.0, 101.0])
    run_cache = RunCache(RunCatalog(tmp_path), clock=lambda: next(moments))
    with growing(tmp_path) as journal:
        assert run_cache.summary(run_cache.run("growing")).models[0].attempts == 1
        asked = journal.cases
        grown = StoredRun(made(tmp_path.parent / "more", "more", asked, [(asked[1], MODEL, 1, Came())]))
        for fact in grown.facts():
            journal.append(fact)
        opened = run_cache.run("growing")
        assert len([row for row in opened.rows if row.outcome == "correct"]) == 2
        assert run_cache.summary(opened).models[0].attempts == 1
        assert run_cache.summary(opened).models[0].attempts == 2


def test_a_change_is_one_only_where_chance_does_not_explain_it() -> None:
    def moved(before: tuple[float, float, float], after: tuple[float, float, float]) -> str:
        sides = [Estimate(value=value, low=low, high=high) for value, low, high in (before, after)]
        change = difference(*sides)
        assert change is not None
        return change_direction(change)

    assert moved((0.375, 0.123, 0.719), (0.562, 0.321, 0.777)) == "even"
    assert moved((0.2, 0.15, 0.25), (0.3, 0.25, 0.35)) == "up"
    assert moved((0.3, 0.25, 0.35), (0.2, 0.15, 0.25)) == "down"
    assert moved((0.0, 0.0, 0.4), (0.0, 0.0, 0.4)) == "even"
    assert moved((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)) == "up"
    lone = difference(Estimate(value=0.0), Estimate(value=1.0))
    assert lone is not None
    assert change_direction(lone) == "even"
    assert difference(Estimate(value=None), Estimate(value=1.0, low=0.5, high=1.0)) is None
