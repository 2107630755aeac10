"""The HTTP API: what it answers, in pages that hold together, and what it says where it cannot."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jsonschema
import pytest

from steelyard.records import Case
from support.command_line import installed_version
from support.viewed import Came, Viewer, cases, got, made

STRONG, WEAK = "openai/strong", "openai/weak"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("api") / "runs"
    asked = [*cases(6), Case(id="in/a/folder", prompt="?", target="yes", suite="injection")]
    for day in range(1, 6):
        attempts = [
            (case, model, number, came(place, model, number))
            for place, case in enumerate(asked, 1)
            for model in (STRONG, WEAK)
            for number in (1, 2, 3)
        ]
        made(root, f"day-{day}", asked, attempts, started_at=f"2026-03-0{day}T10:00:00.000Z")
    (root / "broken").mkdir()
    (root / "broken" / "run.json").write_text("{")
    return root


def came(place: int, model: str, number: int) -> Came:
    if (place, number) == (6, 3):
        return Came("outage")
    return Came("wrong", "no\x1b[2J\u202e", "got \x9b1m") if model == WEAK and place % 2 else Came()


@pytest.fixture(scope="module")
def viewer(runs: Path) -> Iterator[Viewer]:
    with Viewer(runs) as running:
        yield running


def gathered(viewer: Viewer, path: str, **asked: Any) -> list[Any]:
    """All entries of all pages."""
    found: list[Any] = []
    cursor: str | None = None
    while True:
        values = asked | ({} if cursor is None else {"cursor": cursor})
        page = viewer.json(f"{path}?{urlencode(values)}")
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def test_it_says_that_it_is_there(viewer: Viewer) -> None:
    assert viewer.json("/healthz") == {"status": "ok", "version": installed_version()}


def test_runs_come_newest_first_with_what_a_client_of_suites_wants(viewer: Viewer) -> None:
    items = gathered(viewer, "/api/v1/runs", limit=2)
    assert [item["run_id"] for item in items] == ["day-5", "day-4", "day-3", "day-2", "day-1", "broken"]
    newest = items[0]
    assert newest["model_id"] == f"{STRONG}, {WEAK}"
    assert newest["timestamp_utc"] == "2026-03-05T10:00:00.000Z"
    assert newest["suite_stats"][1] == {
        "suite_id": "some.toml",
        "model_id": WEAK,
        "total_cases": 21,
        "pass_count": 8,
        "fail_count": 12,
        "error_count": 1,
    }
    assert items[-1]["state"] == "broken"
    assert items[-1]["problem"]


@pytest.mark.parametrize(
    ("asked", "count"),
    [({"state": "broken"}, 1), ({"model_id": WEAK}, 5), ({"eval_set": "some.toml"}, 5), ({"model_id": "nobody"}, 0)],
)
def test_runs_can_be_narrowed(viewer: Viewer, asked: dict[str, str], count: int) -> None:
    assert len(gathered(viewer, "/api/v1/runs", limit=3, **asked)) == count


def test_a_run_tells_what_it_was_asked_to_do_and_how_its_suites_came_out(viewer: Viewer) -> None:
    run = viewer.json("/api/v1/runs/day-2")
    assert (run["run_id"], run["cases"]) == ("day-2", 7)
    assert (run["info"]["started_at"], run["info"]["samples"]) == ("2026-03-02T10:00:00.000Z", 3)
    assert [(stats["suite_id"], stats["pass_count"]) for stats in run["suite_stats"]] == [
        ("injection", 3),
        ("injection", 0),
    ]


def test_the_cases_of_a_run_are_the_lines_of_its_results_report(viewer: Viewer, runs: Path) -> None:
    items = gathered(viewer, "/api/v1/runs/day-1/cases", limit=4)
    command = [sys.executable, "-m", "steelyard.cli", "report", str(runs / "day-1"), "-o", str(runs.parent / "r.jsonl")]
    subprocess.run(command, check=True, capture_output=True)
    lines = [json.loads(line) for line in (runs.parent / "r.jsonl").read_text().splitlines()]
    assert items == lines
    assert len(items) == 40


def test_attempts_come_in_pages_that_hold_each_of_them_once(viewer: Viewer) -> None:
    for limit in (1, 7, 50):
        items = gathered(viewer, "/api/v1/runs/day-1/attempts", limit=limit)
        keys = [(item["case_id"], item["model_id"], item["attempt"]) for item in items]
        assert len(keys) == len(set(keys)) == 42
    assert len(gathered(viewer, "/api/v1/runs/day-1/attempts", outcome="missing")) == 2
    only = gathered(viewer, "/api/v1/runs/day-1/attempts", case_id="in/a/folder", model_id=WEAK)
    assert [item["attempt"] for item in only] == [1, 2, 3]


def test_pages_hold_while_a_run_grows(tmp_path: Path) -> None:
    asked = cases(5)
    first = [(case, STRONG, 1, Came()) for case in asked[::2]]
    made(tmp_path / "runs", "growing", asked, first, ended=False)
    with Viewer(tmp_path / "runs") as viewer:
        page = viewer.json("/api/v1/runs/growing/attempts?limit=2")
        more = made(tmp_path / "elsewhere", "growing", asked, [(case, STRONG, 1, Came()) for case in asked[1::2]])
        journal = tmp_path / "runs" / "growing" / "attempts.jsonl"
        with journal.open("ab") as file:
            file.write((more / "attempts.jsonl").read_bytes())
        rest = viewer.json(f"/api/v1/runs/growing/attempts?cursor={page['next_cursor']}")
    seen = [item["case_id"] for item in (*page["items"], *rest["items"])]
    assert seen == ["case-1", "case-3", "case-4", "case-5"]


def test_an_attempt_has_all_that_is_known_about_it(viewer: Viewer) -> None:
    asked = urlencode({"case_id": "case-1", "model_id": WEAK, "attempt": 2})
    attempt = viewer.json(f"/api/v1/runs/day-1/attempt?{asked}")
    assert attempt["outcome"] == "wrong"
    assert attempt["messages"] == [{"role": "user", "content": "Question 1?"}]
    assert attempt["reply"]["answer"]["text"] == "no\x1b[2J\u202e"
    assert attempt["verdict"]["found"]["tests"][0]["outcome"] == "failed"
    lost = viewer.json(f"/api/v1/runs/day-1/attempt?case_id=case-6&model_id={quote(WEAK)}&attempt=3")
    assert (lost["outcome"], lost["reply"], lost["failure"]["stage"]) == ("missing", None, "ask")


def test_no_terminal_obeys_what_the_api_prints(viewer: Viewer) -> None:
    page = viewer.get(f"/api/v1/runs/day-1/attempt?case_id=case-1&model_id={quote(WEAK)}")
    assert not any(sign in page.text for sign in "\x1b\x9b\u202e")


def test_a_case_tells_of_the_runs_that_have_it(viewer: Viewer) -> None:
    for path in ("in/a/folder", "in%2Fa%2Ffolder"):
        found = viewer.json(f"/api/v1/cases/{path}")
        assert found["case"]["suite"] == "injection"
        assert [run["run_id"] for run in found["runs"]] == ["day-5", "day-4", "day-3", "day-2", "day-1"]
        assert found["runs"][0]["models"][0] == {"model_id": STRONG, "attempts": 3, "correct": 3, "missing": 0}
    assert len(viewer.json("/api/v1/cases/case-1?run_id=day-3")["runs"]) == 1


def test_the_summary_and_the_report_are_those_of_the_command_line(viewer: Viewer, runs: Path) -> None:
    command = [sys.executable, "-m", "steelyard.cli", "report", str(runs / "day-1")]
    command += ["-o", str(runs.parent / "report.md"), "-o", str(runs.parent / "report.json")]
    subprocess.run(command, check=True, capture_output=True)
    report = viewer.get("/api/v1/runs/day-1/report.md")
    assert report.headers["content-type"].startswith("text/markdown")
    assert report.text == (runs.parent / "report.md").read_text("utf-8")
    told = json.loads((runs.parent / "report.json").read_text("utf-8"))["summary"]
    assert viewer.json("/api/v1/runs/day-1/summary")["models"] == told["models"]


def test_a_comparison_is_what_the_gate_decides(viewer: Viewer, runs: Path) -> None:
    sides = {"baseline": f"day-1@{STRONG}", "current": f"day-1@{WEAK}"}
    found = viewer.json(f"/api/v1/compare?{urlencode(sides)}")
    command = [sys.executable, "-m", "steelyard.cli", "gate", "--format", "json"]
    for side, name in sides.items():
        command += [f"--{side}", str(runs / name)]
    gate = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    assert found["decision"] == gate["decision"]
    items = gathered(viewer, "/api/v1/compare", limit=2, **sides)
    assert [item["case_id"] for item in items] == [item["case_id"] for item in found["items"]]
    assert [item["delta"] for item in items[:4]] == [-1, -1, -1, -1]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/api/v1/runs/nowhere", 404),
        ("/api/v1/runs/nowhere/cases", 404),
        ("/api/v1/runs/broken", 409),
        ("/api/v1/runs/day-1/nothing", 404),
        ("/api/v1/cases/nothing", 404),
        ("/api/v2/runs", 404),
        ("/api", 404),
        ("/api/v1/runs?limit=0", 400),
        ("/api/v1/runs?limit=201", 400),
        ("/api/v1/runs?limit=1&limit=2", 400),
        ("/api/v1/runs?lim=1", 400),
        ("/api/v1/runs?state=good", 400),
        ("/api/v1/runs/day-1/attempts?cursor=5", 400),
        ("/api/v1/runs/day-1/attempts?cursor=", 400),
        ("/api/v1/runs/day-1/attempt", 400),
        ("/api/v1/runs/day-1/attempt?case_id=case-1&model_id=nobody", 404),
        ("/api/v1/compare?baseline=day-1", 400),
        ("/api/v1/compare?baseline=day-1&current=../../etc", 404),
        ("/api/v1/compare?baseline=day-1&current=day-2&alpha=1", 400),
        ("/api/v1/compare?baseline=day-1@nobody&current=day-2", 404),
        ("/api/v1/runs?limit=%FF", 400),
    ],
)
def test_what_goes_wrong_comes_in_the_envelope(viewer: Viewer, path: str, code: int) -> None:
    page = viewer.get(path)
    assert page.status == code
    assert set(page.data) == {"error"}
    assert page.data["error"]["code"] == code
    assert page.data["error"]["message"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(viewer: Viewer, method: str) -> None:
    page = viewer.get("/api/v1/runs", method=method)
    assert page.status == 405
    assert page.headers["allow"] == "GET, HEAD"
    assert "access-control-allow-origin" not in page.headers


def test_a_head_is_a_get_without_its_body(viewer: Viewer) -> None:
    page, head = viewer.get("/api/v1/runs"), viewer.get("/api/v1/runs", method="HEAD")
    assert (head.status, head.text) == (200, "")
    assert head.headers["content-length"] == str(len(page.text.encode()))


def test_the_description_is_shipped_with_the_docs_and_describes_every_address(viewer: Viewer) -> None:
    described = viewer.json("/openapi.json")
    docs = Path(__file__).parents[2] / "docs"
    assert json.loads((docs / "openapi.json").read_text("utf-8")) == described
    page = (docs / "api.md").read_text("utf-8")
    assert [path for path in described["paths"] if f"`{path}`" not in page] == []


def test_every_answer_is_as_the_description_says(viewer: Viewer) -> None:
    described = viewer.json("/openapi.json")
    for path in (
        "/healthz",
        "/api/v1/runs",
        "/api/v1/runs/day-1",
        "/api/v1/runs/day-1/summary",
        "/api/v1/runs/day-1/cases",
        "/api/v1/runs/day-1/attempts",
        f"/api/v1/runs/day-1/attempt?case_id=case-1&model_id={quote(WEAK)}",
        "/api/v1/cases/case-1",
        "/api/v1/compare?baseline=day-1&current=day-2",
    ):
        template = path.partition("?")[0].replace("day-1", "{run_id}").replace("cases/case-1", "cases/{case_id}")
        content = described["paths"][template]["get"]["responses"]["200"]["content"]["application/json"]
        jsonschema.validate(viewer.json(path), {**content["schema"], "components": described["components"]})


def test_with_a_key_nothing_is_told_without_it(runs: Path) -> None:
    with Viewer(runs, key="open sesame") as viewer:
        assert viewer.get("/healthz").status == 200
        for headers in ({}, {"X-API-Key": "open"}, {"X-API-Key": ""}, {"X-API-Key": "open sesame "}, {"Cookie": "a=b"}):
            page = viewer.get("/api/v1/runs", headers=headers)
            assert page.status == (200 if headers.get("X-API-Key", "").strip() == "open sesame" else 401)
        assert viewer.get("/api/v1/runs?key=open").status == 401
        assert viewer.get("/api/v1/runs?limit=1&key=open+sesame").status == 200
        assert viewer.get("/api/v1/runs", headers={"Authorization": "Bearer open sesame"}).status == 200
        assert viewer.get("/api/v1/runs", headers={"Authorization": "Bearer open"}).status == 401
        assert viewer.get("/runs/day-1", headers={"Authorization": "Basic b3BlbiBzZXNhbWU="}).status == 401
        assert viewer.get("/api/v1/runs", headers={"X-API-Key": "open sesame"}).status == 200


def test_a_viewer_makes_a_key_of_its_own_for_each_start(runs: Path) -> None:
    with Viewer(runs) as viewer, Viewer(runs) as other:
        key = viewer.own["X-API-Key"]
        assert len(key) >= 32
        assert key != other.own["X-API-Key"]
        assert got(viewer.port, "/").status == 401
        assert got(viewer.port, "/api/v1/runs").status == 401
        assert got(viewer.port, "/pulse").status == 401
        assert got(viewer.port, "/healthz").status == 200
        assert got(viewer.port, f"/api/v1/runs?key={key}").status == 200
        assert got(other.port, f"/api/v1/runs?key={key}").status == 401


def test_a_browser_gives_the_key_once_and_it_does_not_stay_in_the_address(runs: Path) -> None:
    with Viewer(runs, key="open sesame") as viewer:
        locked = viewer.get("/runs/day-1?q=x")
        assert locked.status == 401
        assert "A key is needed" in locked.told
        assert "day-1" not in locked.told
        assert viewer.get("/?key=wrong").status == 401
        let_in = viewer.get("/runs/day-1?q=x&key=open+sesame")
        assert let_in.status == 303
        assert let_in.headers["location"] == "/runs/day-1?q=x"
        cookie = let_in.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "sesame" not in cookie
        assert viewer.get("/runs/day-1", headers={"Cookie": cookie.partition(";")[0]}).status == 200
        assert viewer.get("/api/v1/runs", headers={"Cookie": cookie.partition(";")[0]}).status == 200
        away = viewer.get("//elsewhere.example/?key=open+sesame")
        assert away.headers["location"].startswith("/elsewhere")
