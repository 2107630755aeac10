"""The page of a run out of its folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from steelyard.cli import main as cli
from steelyard.engine.results.report_files import baseline_comparison, html_page, shortened
from steelyard.records import Answer, Case, Finding, Reply, RunInfo, Verdict
from steelyard.records import Test as OneTest
from steelyard.reports import render
from steelyard.store.journal import StoredRun
from support.hostile_texts import BROKEN, TEXTS, write_hostile_run
from support.whole_results import run_results

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "lab/model"


def write_run(folder: Path, passes: dict[str, int], *, samples: int = 10, text: str = "a reply") -> Path:
    """A run in which the first attempts at each case pass."""
    folder.mkdir(parents=True)
    cases = [Case(id=name, prompt="p", language="python") for name in passes]
    about = RunInfo(id=folder.name, started_at="2026-01-01T00:00:00Z", names=(MODEL,), models=(MODEL,), samples=samples)
    (folder / "run.json").write_bytes(msgspec.json.encode(about))
    (folder / "cases.jsonl").write_bytes(b"".join(msgspec.json.encode(case) + b"\n" for case in cases))
    with (folder / "attempts.jsonl").open("wb") as journal:
        for case in cases:
            for number in range(1, samples + 1):
                key = f"{case.id}/{number}"
                about_it: dict[str, Any] = {"at": about.started_at, "case": case.id, "model": MODEL, "number": number}
                is_right = number <= passes[case.id]
                test = OneTest(name="t", outcome="passed" if is_right else "failed")
                found = Finding(code="x", compiled=True, tests=(test,), label="" if is_right else "wrong answer")
                said = Reply(key=key, asked="", answer=Answer(text=f"{text} {case.id} {number}."), **about_it)
                told = Verdict(key=f"v{key}", ask=key, tests=case.tests_digest, verifier="v", found=found, **about_it)
                journal.write(msgspec.json.encode(said) + b"\n" + msgspec.json.encode(told) + b"\n")
    return folder


def test_a_page_out_of_a_folder_is_the_page_of_its_results(tmp_path: Path) -> None:
    stored = StoredRun(write_run(tmp_path / "run", {"a": 3, "b": 10}))
    whole = run_results(stored.info, stored.cases, stored.facts())
    assert html_page(stored) == render("html", whole)


def test_a_page_can_be_of_another_k_and_rule(tmp_path: Path) -> None:
    stored = StoredRun(write_run(tmp_path / "run", {"a": 3, "b": 10}))
    page = html_page(stored, k=[1, 7], rule="code-structured")
    assert "pass@7" in page
    assert "rule <code>code-structured</code>" in page


def test_a_case_that_got_worse_is_named_first(tmp_path: Path) -> None:
    before = write_run(tmp_path / "before", {"steady": 10, "broken": 10, "mended": 0, "third": 10})
    after = write_run(tmp_path / "after", {"steady": 10, "broken": 0, "mended": 9, "third": 10})
    held = baseline_comparison(str(before), str(after), rule=None, root=tmp_path)
    page = html_page(StoredRun(after), held=held)
    assert page.index("Regressed</p>") < page.index("worse: broken.") < page.index("<table")
    section = page.partition('id="compared"')[2].partition("</section>")[0]
    culprits = section.partition("Cases that got worse")[2].partition("</table>")[0]
    assert re.findall(r'href="#case-\d+">(\w+)</a>', culprits) == ["broken"]
    assert "1 regression, 1 improvement, 2 unchanged of 4 cases" in section
    assert re.search(r'class="mark full">\+0\.\d+', section)
    # a report is no look at a run: nothing is written down
    assert sorted(path.name for path in after.iterdir()) == ["attempts.jsonl", "cases.jsonl", "run.json"]


def test_the_matrix_shows_what_moved(tmp_path: Path) -> None:
    before = write_run(tmp_path / "before", {"steady": 10, "broken": 10})
    after = write_run(tmp_path / "after", {"steady": 10, "broken": 0})
    page = html_page(StoredRun(after), held=baseline_comparison(str(before), str(after), rule=None, root=tmp_path))
    assert "0/10<small>-" in page
    assert "10/10<small>" not in page


def test_the_command_writes_a_page_with_a_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = write_run(tmp_path / "before", {"a": 9, "b": 10})
    after = write_run(tmp_path / "after", {"a": 10, "b": 9})
    page = tmp_path / "page.html"
    assert cli.main(["report", str(after), "--baseline", str(before), "-o", str(page)]) == 0
    assert "Against" in page.read_text("utf-8")
    assert cli.main(["report", str(after), "--baseline", str(before), "-o", str(tmp_path / "x.json")]) == 2
    assert "--baseline is for a page, -o FILE.html" in capsys.readouterr().err
    assert cli.main(["report", str(after), "--baseline", "nobody", "-o", str(page)]) == 2
    assert "nobody" in capsys.readouterr().err


def test_only_the_texts_that_are_shown_are_read(tmp_path: Path) -> None:
    passes = {f"case-{number:03}": 29 for number in range(60)}
    stored = StoredRun(write_run(tmp_path / "run", passes, samples=30))
    page = html_page(stored)
    assert "This run has 1,800 attempts." in page
    shown = set(re.findall(r"a reply (case-\d+ \d+)\.", page))
    failed = {f"{case} 30" for case in passes}
    assert failed <= shown
    assert len(shown) == 1_000


def test_a_text_that_is_too_long_is_cut_when_it_is_read() -> None:
    answer = Answer(text="begin" + "x" * 1_000 + "end", transcript="short")
    reply = Reply(key="k", at="", case="c", model="m", number=1, answer=answer, asked="")
    cut = shortened(reply, 90)
    assert len(cut.answer.text) < 140
    assert cut.answer.text.startswith("beginxx")
    assert cut.answer.text.endswith("xxend")
    assert "[918 characters left out]" in cut.answer.text
    assert cut.answer.transcript == "short"
    assert shortened(reply, 5_000) is reply


def test_damaged_lines_are_left_out_of_a_hostile_run_and_the_rest_is_a_page(tmp_path: Path) -> None:
    write_hostile_run(tmp_path / "run", endless=False)
    stored = StoredRun(tmp_path / "run")
    page = html_page(stored)
    assert len(stored.damaged) == len(BROKEN)
    assert page.count('<article class="case"') > len(TEXTS)
    assert "<script" not in page
    page.encode()
