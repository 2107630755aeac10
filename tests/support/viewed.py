"""Run folders made up for the viewer, and the viewer as a process of its own."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from steelyard.records import Answer, Attempt, Case, Cost, EvalSetFile, Failure, Finding, Reply, RunInfo, Test, Verdict
from steelyard.store.journal import StoredRun, create_run

NONE: Mapping[str, str] = {}


class Page(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    """By name, in small letters."""
    text: str

    @property
    def data(self) -> Any:
        return json.loads(self.text)

    @property
    def told(self) -> str:
        """What a reader sees of it, on one line."""
        return read(self.text).text

    def tagged(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        """The elements of a kind with these attributes."""
        found = [element for name, element in read(self.text).elements if name == tag]
        return [each for each in found if attributes.items() <= each.items()]


def got(port: int, path: str, *, method: str = "GET", host: str = "", headers: Mapping[str, str] = NONE) -> Page:
    """What a server of this machine answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {"Host": host or f"127.0.0.1:{port}", **headers}.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        told = {name.lower(): value for name, value in answer.getheaders()}
        return Page(answer.status, told, answer.read().decode())
    finally:
        connection.close()


OPENED: dict[int, str] = {}
"""The keys that viewers made, by their ports, for browsers."""


class Viewer:
    """`steelyard view` or `label` in a process of its own."""

    def __init__(self, folder: Path, *options: str, key: str = "", command: str = "view", **environment: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("STEELYARD_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "steelyard.cli", command, str(folder), "--port", "0", "--no-browser", *options],
            env={**clean, **({"STEELYARD_API_KEY": key} if key else {}), **environment},
            cwd=folder.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        told = self.process.stdout.readline().strip()
        assert told, self.process.communicate()[1]
        self.url, _, made = told.partition("?key=")
        self.port = urlsplit(self.url).port or 0
        assert bool(made) != bool(key)
        self.own = {"X-API-Key": made} if made else {}
        """What opens the viewer, where it made its key itself."""
        if made:
            OPENED[self.port] = made

    def get(self, path: str, *, method: str = "GET", host: str = "", headers: Mapping[str, str] = NONE) -> Page:
        """Ask for one address, exactly as it is written."""
        return got(self.port, path, method=method, host=host, headers={**self.own, **headers})

    def json(self, path: str, **asked: Any) -> Any:
        """The answer of the API, which must be one."""
        page = self.get(path, **asked)
        assert page.status == 200, page.text
        return page.data

    def stop(self, by: int = signal.SIGINT) -> tuple[int, str]:
        """End it, and say how it ended and what it had to complain about."""
        if self.process.poll() is None:
            self.process.send_signal(by)
        _, complaints = self.process.communicate(timeout=60)
        return self.process.returncode, complaints

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Read(HTMLParser):
    """A page taken apart."""

    VOID = frozenset(("br", "col", "hr", "img", "input", "link", "meta", "wbr"))

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self._texts: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1] == tag, f"</{tag}> closes {self._open[-1]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self._open):
            self._texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._texts).split())


def read(page: str) -> Read:
    """The elements and the text of a page whose elements are all closed, in order."""
    reader = Read()
    reader.feed(page)
    reader.close()
    assert not reader._open, reader._open
    return reader


def links(page: str, at: str) -> list[str]:
    """Where the links of a page lead on this server, without what stands after #."""
    found = [attributes["href"] for tag, attributes in read(page).elements if tag == "a" and "href" in attributes]
    return list(dict.fromkeys(re.sub("#.*", "", urljoin(at, href)) for href in found))


class Came(NamedTuple):
    """How one attempt came out."""

    outcome: str = "correct"
    text: str = "an answer"
    reason: str = ""
    label: str = ""
    cost: float | None = 0.001
    latency: float = 1.5
    code: str | None = None


def cases(count: int, **fields: Any) -> list[Case]:
    """Questions that differ by number."""
    return [
        Case(
            **{
                "id": f"case-{number}",
                "name": f"The case number {number}",
                "prompt": f"Question {number}?",
                "target": "yes",
                "tags": ("even" if number % 2 == 0 else "odd",),
                **fields,
            }
        )
        for number in range(1, count + 1)
    ]


def made(
    root: Path,
    name: str,
    asked: Sequence[Case],
    attempts: Iterable[tuple[Case, str, int, Came]],
    *,
    started_at: str = "2026-01-02T03:04:05.000Z",
    ended: bool = True,
    eval_set: str = "evals/some.toml",
    **fields: Any,
) -> Path:
    """A run folder as a run would have written it."""
    attempts = list(attempts)
    models = tuple(dict.fromkeys(model for _, model, _, _ in attempts))
    info = RunInfo(
        **{
            "id": name,
            "started_at": started_at,
            "ended_at": started_at if ended else None,
            "eval_sets": (EvalSetFile(path=eval_set, digest="0" * 8),),
            "models": models,
            "names": models,
            "samples": max((number for _, _, number, _ in attempts), default=1),
            **fields,
        }
    )
    with create_run(root / name, info, asked) as journal:
        for case, model, number, came in attempts:
            for fact in _facts(case, model, number, came, started_at):
                journal.append(fact)
    return root / name


def _facts(case: Case, model: str, number: int, came: Came, at: str) -> Iterable[Reply | Verdict | Failure]:
    attempt = Attempt(case=case, model=model, number=number)
    about: dict[str, Any] = {"at": at, "case": case.id, "model": model, "number": number}
    if came.outcome == "outage":
        yield Failure(key=attempt.key, stage="ask", message=came.reason or "nobody answered", **about)
        return
    cost = None if came.cost is None else Cost(usd=came.cost, source="made up")
    answer = Answer(text=came.text, cost=cost, latency=came.latency, input_tokens=10, output_tokens=20)
    yield Reply(key=attempt.key, asked=attempt.asked, answer=answer, **about)
    if came.outcome == "missing":
        return
    is_right = came.outcome == "correct"
    found = Finding(
        passed=is_right,
        code=came.code,
        tests=(Test(name="it works", outcome="passed" if is_right else "failed", message=came.reason),),
        label="" if is_right else came.label or "wrong answer",
        reason="" if is_right else came.reason or "the reply does not hold the target",
    )
    key = f"{attempt.key}-verdict"
    yield Verdict(key=key, ask=attempt.key, tests=case.tests_digest, verifier="made up", found=found, **about)


def crawled(viewer: Viewer, start: str = "/", most: int = 300) -> dict[str, Page]:
    """Every page that can be reached by links, from a first one on."""
    found: dict[str, Page] = {}
    waiting = [start]
    while waiting and len(found) < most:
        path = waiting.pop(0)
        if path in found:
            continue
        found[path] = viewer.get(path)
        if found[path].headers["content-type"].startswith("text/html"):
            waiting += [link for link in links(found[path].text, path) if link.startswith("/") and link not in found]
    return found


def described(folder: Path) -> RunInfo:
    """What run.json of a run says."""
    return StoredRun(folder).info
