"""The pages, asked for as a browser without script would: complete, linked with each other, and true."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from steelyard.records import Case
from support.studies import with_slow
from support.viewed import Came, Page, Viewer, cases, crawled, made, read

ROOT = Path(__file__).parents[2]
STRONG, WEAK = "openai/strong", "openai/weak"
COUNT = 60


def outcome(place: int, model: str, number: int) -> Came:
    """The strong model fails at every tenth case, the weak one at every other; attempt 3 of case-7 got no answer."""
    if (place, model, number) == (7, STRONG, 3):
        return Came("outage", reason="the line was cut")
    fails = place % 10 == 0 if model == STRONG else place % 2 == 0 or number == 2
    if fails:
        text = f"attempt {number} of {model}: a needle in haystack {place}"
        return Came("wrong", text, "got 41, expected 42", "wrong answer", cost=0.002 * place, code="x = 41\ny = 1")
    return Came("correct", f"attempt {number}: yes", cost=0.002 * place, latency=float(place), code="x = 42\ny = 1")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pages") / "runs"
    asked = cases(COUNT)
    for name, day, only in (("monday", 2, 40), ("tuesday", 3, COUNT)):
        attempts = [
            (case, model, number, outcome(place if place <= only else 10, model, number))
            for place, case in enumerate(asked, 1)
            for model in (STRONG, WEAK)
            for number in (1, 2, 3)
        ]
        made(root, name, asked, attempts, started_at=f"2026-02-0{day}T10:00:00.000Z")
    of_suites = [
        Case(id=f"{suite}/{number}", prompt="?", target="yes", suite=suite)
        for suite in ("injection", "json_api")
        for number in (1, 2, 3)
    ]
    answers = [Came(), Came("wrong", label="refusal"), Came("wrong", label="wrong_format")]
    attempts = [(case, STRONG, 1, answers[place % 3]) for place, case in enumerate(of_suites)]
    made(root, "suites", of_suites, attempts, started_at="2026-02-01T10:00:00.000Z", eval_set="suite:all")
    made(
        root,
        "killed",
        asked[:4],
        [(asked[0], STRONG, 1, Came()), (asked[1], STRONG, 1, Came("missing"))],
        started_at="2026-01-31T10:00:00.000Z",
        ended=False,
    )
    with (root / "killed" / "attempts.jsonl").open("ab") as journal:
        journal.write(b'{"kind": "reply", "broken": \n{"kind": "verdict", "cut o')
    (root / "broken").mkdir()
    (root / "broken" / "run.json").write_text('{"id": 7}')
    (root / "notes").mkdir()
    (root / "notes" / "read.me").touch()
    return root


@pytest.fixture(scope="module")
def viewer(runs: Path) -> Iterator[Viewer]:
    with Viewer(runs) as running:
        yield running


def run(viewer: Viewer, asked: str = "", name: str = "tuesday") -> Page:
    page = viewer.get(f"/runs/{name}{'?' if asked else ''}{asked}")
    assert page.status == 200, page.told
    return page


def shown(page: Page) -> list[str]:
    """The cases in the matrix, from top to bottom."""
    return re.findall(r'<span class="case-id">(.*?)</span>', page.text)


def cells(page: Page) -> list[str]:
    return re.findall(r'<span class="count">(.*?)</span>', page.text)


def test_the_list_has_every_run_the_newest_first_with_its_state_and_its_figures(viewer: Viewer) -> None:
    page = viewer.get("/")
    assert re.findall(r'<th scope="rowgroup".*?<a href="/runs/(\w+)"', page.text) == [
        "tuesday",
        "monday",
        "suites",
        "killed",
        "broken",
    ]
    assert page.told.count("stopped") >= 1
    assert "not the description of a run" in page.told
    assert "90.0%" in page.told
    assert "notes" not in page.told


def test_the_list_tells_how_the_same_eval_set_went_over_time(viewer: Viewer) -> None:
    page = viewer.get("/")
    labels = [each["aria-label"] for each in page.tagged("svg", role="img")]
    assert labels == ["pass@1 over 2 runs: 60.0%, 90.0%", "pass@1 over 2 runs: 22.2%, 33.3%"]
    assert "+30.0 points since monday , 2 runs" in page.told
    assert "compare?baseline=monday%40openai%2Fstrong&amp;current=tuesday%40openai%2Fstrong" in page.text


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("q=MON", ["monday"]),
        ("model=openai%2Fweak", ["tuesday", "monday"]),
        ("eval_set=suite%3Aall", ["suites"]),
        ("state=broken", ["broken"]),
        ("q=nothing+like+it", []),
    ],
)
def test_the_list_can_be_narrowed(viewer: Viewer, asked: str, names: list[str]) -> None:
    page = viewer.get(f"/?{asked}")
    assert re.findall(r'<th scope="rowgroup".*?<a href="/runs/(\w+)"', page.text) == names
    assert names or "No run matches" in page.told


def test_an_empty_folder_says_how_to_start(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with Viewer(tmp_path / "runs") as viewer:
        page = viewer.get("/")
    assert "No runs here yet" in page.told
    assert "steelyard run" in page.told


def test_one_run_can_be_viewed_without_the_others(runs: Path) -> None:
    with Viewer(runs / "monday") as viewer:
        assert "1 run" in viewer.get("/").told
        assert viewer.get("/runs/monday").status == 200
        assert viewer.get("/runs/tuesday").status == 404


def test_a_run_shows_its_models_with_intervals_and_its_cells_with_counts(viewer: Viewer) -> None:
    page = run(viewer, "size=100")
    assert len(shown(page)) == COUNT
    assert cells(page)[:4] == ["3/3", "2/3", "3/3", "0/3"]
    assert cells(page)[12] == "2/2"
    assert "1 missing" in page.told
    assert "90.0% [" in page.told
    assert "54/60" in page.told


def test_the_pages_of_the_matrix_hold_every_case_once(viewer: Viewer) -> None:
    for sort in ("", "hardest", "different", "cost", "latency", "name"):
        found = [case for number in (1, 2, 3) for case in shown(run(viewer, f"size=25&page={number}&sort={sort}"))]
        assert len(found) == COUNT
        assert set(found) == {f"case-{number}" for number in range(1, COUNT + 1)}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("q=case-12", ["case-12"]),
        ("q=QUESTION+12%3F", ["case-12"]),
        ("q=number+59", ["case-59"]),
        ("outcome=missing", ["case-7"]),
        ("tag=even&outcome=correct&only=openai%2Fweak", []),
        ("label=wrong+answer&only=openai%2Fstrong", [f"case-{number}" for number in range(10, 61, 10)]),
        ("q=needle", []),
        ("q=needle+in+haystack+20&replies=1", ["case-20"]),
        ("sort=cost&size=25", [f"case-{number}" for number in range(60, 35, -1)]),
        ("sort=name&q=case-1&size=25", ["case-1", *(f"case-{number}" for number in range(10, 20))]),
    ],
)
def test_the_matrix_shows_what_is_asked_for(viewer: Viewer, asked: str, expected: list[str]) -> None:
    assert shown(run(viewer, asked)) == expected


def test_cases_at_which_models_differ_are_found(viewer: Viewer) -> None:
    # at every tenth case both fail always
    assert shown(run(viewer, "different=1&size=100")) == [
        f"case-{number}" for number in range(1, 61) if number % 10 != 0
    ]


def test_the_state_of_a_page_is_in_its_address_and_its_links_keep_it(viewer: Viewer) -> None:
    page = run(viewer, "q=case&tag=even&sort=hardest&size=25&page=2")
    assert 'value="case"' in page.text
    assert '<option value="hardest" selected>' in page.text
    cell = page.tagged("a", **{"class": "cell part"}) + page.tagged("a", **{"class": "cell none"})
    assert all(
        all(kept in link["href"] for kept in ("q=case", "tag=even", "sort=hardest", "size=25", "page=2"))
        for link in cell
    )


def test_a_cell_opens_its_attempts_beside_the_matrix_without_script(viewer: Viewer) -> None:
    matrix = run(viewer, "size=100")
    (link,) = (
        each["href"] for each in matrix.tagged("a") if "case=case-20&model=openai%2Fstrong" in each.get("href", "")
    )
    page = viewer.get(link.partition("#")[0])
    assert shown(page) == shown(matrix)
    assert page.tagged("section", id="pane")
    assert "got 41, expected 42" in page.told
    assert "a needle in haystack 20" in page.told
    assert "Question 20?" in page.told
    assert page.tagged("a", id="next")[0]["href"].endswith("number=2#pane")
    last = run(viewer, "case=case-20&model=openai%2Fstrong&number=3")
    assert not last.tagged("a", id="next")
    assert "number=2" in last.tagged("a", id="previous")[0]["href"]


def test_what_failed_is_read_first(viewer: Viewer) -> None:
    page = run(viewer, "case=case-1&model=openai%2Fweak")
    assert "attempt 2: wrong" in page.tagged("section", id="pane")[0]["data-announcement"]
    page = run(viewer, "case=case-1&model=openai%2Fweak&outcome=correct")
    assert "attempt 1: correct" in page.tagged("section", id="pane")[0]["data-announcement"]


def test_an_attempt_without_an_answer_says_what_stood_in_the_way(viewer: Viewer) -> None:
    page = viewer.get("/runs/tuesday/attempt?case=case-7&model=openai%2Fstrong&number=3")
    assert page.status == 200
    assert "missing" in page.told
    assert "the line was cut" in page.told


def test_from_an_attempt_one_gets_to_its_neighbours_and_to_the_other_models(viewer: Viewer) -> None:
    page = viewer.get("/runs/tuesday/attempt?case=case-1&model=openai%2Fstrong&number=1")
    assert not page.tagged("a", id="previous")
    seen = [page]
    while following := seen[-1].tagged("a", id="next"):
        seen.append(viewer.get(following[0]["href"]))
        if len(seen) == 8:
            break
    assert [re.findall(r"<title>(.*?) ·", each.text)[0] for each in seen[:7]] == [
        "case-1 #1",
        "case-1 #2",
        "case-1 #3",
        "case-1 #1",
        "case-1 #2",
        "case-1 #3",
        "case-2 #1",
    ]
    assert 'href="/runs/tuesday/attempt?case=case-1&amp;model=openai%2Fweak&amp;number=1"' in page.text


@pytest.mark.parametrize("asked", ["run=tuesday&run=monday", "baseline=monday&current=tuesday"])
def test_two_runs_are_compared_with_the_older_as_the_baseline(viewer: Viewer, asked: str) -> None:
    page = viewer.get(f"/compare?{asked}&state=all")
    assert page.status == 200
    assert page.tagged("option", value="monday", selected="")
    assert page.told.count("CANNOT TELL") + page.told.count("NOT REGRESSED") >= 2
    assert "over 60 cases" in page.told


def test_a_comparison_names_the_culprits_first_and_shows_their_replies_side_by_side(viewer: Viewer) -> None:
    sides = f"baseline={quote('tuesday@openai/strong')}&current={quote('tuesday@openai/weak')}"
    page = viewer.get(f"/compare?{sides}")
    assert "REGRESSED" in page.told
    states = re.findall(r'<span class="mark \w+">([\w ]+)</span></td></tr>', page.text)
    order = ["got worse", "suspect", "lower", "higher", "same"]
    assert states == sorted(states, key=order.index)
    beside = viewer.get(f"/compare?{sides}&case=case-2")
    left, right = re.findall(r'<td class="(?:old|new)">(.*?)</td>', re.sub("</?mark>", "", beside.text))
    assert left == "attempt 1: yes"
    assert right == "attempt 1 of openai/weak: a needle in haystack 2"
    code = viewer.get(f"/compare?{sides}&case=case-2&what=code")
    assert re.search(r"x = 4<mark>2</mark>", code.text)
    assert re.search(r"x = 4<mark>1</mark>", code.text)
    assert re.search(r'<tr class="same">.*?y = 1.*?y = 1', code.text)


def test_looking_at_a_comparison_is_no_look_of_a_gate(viewer: Viewer, runs: Path) -> None:
    viewer.get("/compare?baseline=monday&current=tuesday")
    assert not (runs / "tuesday" / "looks.jsonl").exists()


def test_what_cannot_be_compared_is_said_in_a_sentence(viewer: Viewer) -> None:
    page = viewer.get("/compare?baseline=suites&current=tuesday")
    assert page.status == 409
    assert "no judged case in common" in page.told
    assert "choose the other one" in viewer.get("/compare?run=tuesday").told


def test_suites_are_shown_with_their_classes_and_lead_to_their_cases(viewer: Viewer) -> None:
    page = viewer.get("/runs/suites/suites")
    assert "33.3% [" in page.told
    assert "refusal 1" in page.told
    (link,) = (each["href"] for each in page.tagged("a") if each["href"].endswith("?suite=injection&label=refusal"))
    assert shown(viewer.get(link)) == ["injection/2"]
    assert "No case of this run belongs to a suite" in viewer.get("/runs/tuesday/suites").told


def test_tiers_are_shown_as_tables_and_charts(viewer: Viewer) -> None:
    page = viewer.get("/runs/tuesday/tiers")
    assert page.status == 200
    assert "median composite" in page.told
    assert "Against openai/strong, case by case" in page.told
    assert len(page.tagged("svg", role="img")) >= 2


def test_a_run_that_was_killed_says_so_and_what_of_it_cannot_be_read(viewer: Viewer) -> None:
    page = run(viewer, name="killed")
    assert "Stopped before its end" in page.told
    assert "steelyard resume" in page.told
    assert "1 thing in this run could not be read" in page.told
    assert cells(page) == ["1/1", "-", "-", "-"]


def test_a_broken_run_and_an_unknown_one_are_pages_with_a_way_back(viewer: Viewer) -> None:
    broken, unknown = viewer.get("/runs/broken"), viewer.get("/runs/nowhere")
    assert (broken.status, unknown.status) == (409, 404)
    assert "not the description of a run" in broken.told
    assert 'no run "nowhere" here' in unknown.told
    assert all(page.tagged("a", href="/") for page in (broken, unknown))


@pytest.mark.parametrize(
    "asked",
    ["sort=best", "outcome=good", "page=0", "page=-1", "size=100000", "size=x", "different=yes", "page=" + "9" * 30],
)
def test_an_address_that_cannot_be_meant_is_refused_with_the_way_out(viewer: Viewer, asked: str) -> None:
    page = viewer.get(f"/runs/tuesday?{asked}")
    assert page.status == 400
    assert asked.partition("=")[0] in page.told


@pytest.mark.parametrize("most", with_slow([120], [300]))
def test_every_link_leads_somewhere_and_every_page_is_whole(viewer: Viewer, most: int) -> None:
    pages = crawled(viewer, most=most)
    assert len(pages) > 100
    for path, page in pages.items():
        assert page.status == (409 if path == "/runs/broken" else 200), path
        if page.headers["content-type"].startswith("text/html"):
            found = read(page.text).elements
            ids = [element["id"] for _, element in found if "id" in element]
            assert len(ids) == len(set(ids)), path
            assert [tag for tag, _ in found].count("h1") == 1, path
            labelled = {element["for"] for tag, element in found if tag == "label" and "for" in element}
            assert labelled <= set(ids), path


def test_a_real_run_can_be_read_to_the_last_test(tmp_path: Path) -> None:
    recording = ROOT / "examples" / "recordings" / "python-basics.jsonl.gz"
    command = [sys.executable, "-m", "steelyard.cli", "run", str(ROOT / "examples" / "python-basics.toml")]
    command += [
        "-m",
        f"replay:{recording}",
        "--case",
        "clamp-*",
        "-n",
        "2",
        "--output",
        str(tmp_path / "runs" / "demo"),
    ]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    with Viewer(tmp_path / "runs") as viewer:
        page = viewer.get("/runs/demo")
        assert cells(page) == ["0/2", "2/2"]
        attempt = viewer.get("/runs/demo/attempt?case=clamp-all&model=qwen%2Fqwen2.5-coder-1.5b&number=1")
        assert "Clamp every number into a range" in attempt.told
        assert "def clamp_all" in attempt.told
        assert "full" in attempt.text


SLOW = """
import os, time
def ask(prompt):
    while not os.path.exists({gate!r}) and "9" in prompt:
        time.sleep(0.05)
    return "yes"
"""


def test_a_growing_run_shows_itself_growing_and_then_done(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    (tmp_path / "model.py").write_text(SLOW.format(gate=str(gate)))
    lines = [f'[[cases]]\nid = "c{n}"\nname = "c"\nprompt = "Say yes, {n}."\ntarget = "yes"' for n in range(10)]
    (tmp_path / "evals.toml").write_text("\n".join(['[eval_set]\nid = "slow"\nname = "Slow"', *lines]))
    (tmp_path / "runs").mkdir()
    command = [sys.executable, "-m", "steelyard.cli", "run", "evals.toml", "-m", "python:model.py:ask"]
    with Viewer(tmp_path / "runs") as viewer:
        running = subprocess.Popen([*command, "--output", "runs/slow"], cwd=tmp_path, stdout=-3, stderr=-3)
        try:
            pulses: list[dict[str, Any]] = []
            while len(pulses) < 600:
                page = viewer.get("/runs/slow/pulse")
                pulses.append(page.data if page.status == 200 else {})
                if "9 attempts" in pulses[-1].get("headline", ""):
                    break
                time.sleep(0.05)
            assert pulses[-1]["growing"]
            page = viewer.get("/runs/slow")
            assert "This run is growing" in page.told
            assert "9 of 10 attempts judged" in page.told
            # a pulse may know of a line that was written after it looked how long the journal is
            assert page.tagged("body", **{"data-version": viewer.get("/runs/slow/pulse").data["version"]})
            assert "growing" in viewer.get("/").told
            gate.touch()
            assert running.wait(60) == 0
        finally:
            running.kill()
            running.wait()
        done = viewer.get("/runs/slow/pulse").data
        assert done["version"] != pulses[-1]["version"]
        assert not done["growing"]
        assert "10/10" in viewer.get("/").told
        assert "This run is growing" not in viewer.get("/runs/slow").told


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_stopping_it_is_no_failure(runs: Path, by: int) -> None:
    viewer = Viewer(runs)
    assert viewer.get("/").status == 200
    code, complaints = viewer.stop(by)
    assert code == 0
    assert "Traceback" not in complaints


def test_a_port_that_is_taken_is_one_sentence_with_a_way_out(runs: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "steelyard.cli", "view", str(runs), "--no-browser", "--port", str(port)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith(f"steelyard: port {port} is taken")
    assert "--port 0" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["nowhere"], ["--port", "70000"], ["--port", "x"], ["--host", "0.0.0.0"]])
def test_what_cannot_be_shown_is_refused_before_anything_listens(tmp_path: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "steelyard.cli", "view", "--no-browser", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr


def test_the_little_json_for_growing_pages_is_little(viewer: Viewer) -> None:
    for path in ("/pulse", "/runs/tuesday/pulse"):
        page = viewer.get(path)
        assert set(json.loads(page.text)) == {"version", "growing", "headline"}
        assert len(page.text) < 300
