"""Labels of people survive what happens to a computer, travel as CSV, and correct what judges say."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from steelyard.analysis.judged_rates import (
    AnswerIdentity,
    LabelledAnswer,
    current_labels,
    judged_rates,
    label_order,
    labels_for_width,
)
from steelyard.cli.main import main
from steelyard.engine.results.labels import LabelledRun, export_labels, import_labels
from steelyard.engine.tiers.reply_judgments import reply_judgments
from steelyard.errors import DiskFullError, InputError, Problem
from steelyard.records import Answer, Judgment, Label
from steelyard.store.journal import Journal, StoredRun
from steelyard.store.labels import MAX_LABEL_LINE_BYTES, append_labels, read_labels
from support.disks import full_disk
from support.labelled import AT, JUDGES, MODELS, judged_run


def label(
    number: int, passed: bool | None = True, by: str = "ada", model: str = MODELS[0], criterion: str = ""
) -> Label:
    return Label(by=by, at=AT, case=f"case-{number:02}", model=model, criterion=criterion, passed=passed)


def read(folder: Path) -> tuple[list[Label], list[Problem]]:
    problems: list[Problem] = []
    return read_labels(folder, problems.append), problems


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return judged_run(tmp_path / "run")


def test_a_label_is_on_disk_when_it_was_taken_although_the_process_is_killed(folder: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from steelyard.store.labels import append_labels\n"
        "from steelyard.records import Label\n"
        "for number in range(1000):\n"
        f"    append_labels(Path(sys.argv[1]), [Label(by='ada', at='{AT}', case=f'case-{{number:02}}', model='m', passed=True)])\n"
        "    print(number, flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    taken = [process.stdout.readline() for _ in range(5)]
    process.send_signal(signal.SIGKILL)
    told = [*taken, *process.communicate()[0].splitlines()]
    labels, problems = read(folder)
    assert len(labels) >= len(told) >= 5
    assert [each.case for each in labels[: len(told)]] == [f"case-{int(number):02}" for number in told]
    assert problems == []


def test_half_a_line_is_left_out_and_does_not_spoil_the_next(folder: Path) -> None:
    append_labels(folder, [label(1)])
    with (folder / "labels-ada.jsonl").open("ab") as file:
        file.write(b'{"by":"ada","at":')
    assert [each.case for each in read(folder)[0]] == ["case-01"]
    append_labels(folder, [label(2)])
    labels, problems = read(folder)
    assert [each.case for each in labels] == ["case-01", "case-02"]
    assert [problem.line for problem in problems] == [2]


def test_two_people_at_once_lose_nothing(folder: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from steelyard.store.labels import append_labels\n"
        "from steelyard.records import Label\n"
        "for number in range(100):\n"
        f"    append_labels(Path(sys.argv[1]), [Label(by=sys.argv[2], at='{AT}', case=f'case-{{number:02}}', model='m', passed=True)])\n"
    )
    # the third has two windows open
    people = ("ada", "grace", "grace")
    processes = [subprocess.Popen([sys.executable, "-c", program, str(folder), person]) for person in people]
    assert [process.wait() for process in processes] == [0, 0, 0]
    # one window may end a line that the other is writing, and then there is an empty one
    with (folder / "labels-ada.jsonl").open("ab") as file:
        file.write(b"\n")
    labels, problems = read(folder)
    assert problems == []
    assert [sum(each.by == person for each in labels) for person in ("ada", "grace")] == [100, 200]


def test_what_a_stranger_put_there_is_bounded(folder: Path, tmp_path: Path) -> None:
    (folder / "labels-eve.jsonl").write_bytes(b'"' + b"x" * MAX_LABEL_LINE_BYTES + b'"\n[]\n')
    labels, problems = read(folder)
    assert labels == []
    assert [problem.line for problem in problems] == [1, 2]
    (folder / "labels-eve.jsonl").unlink()
    (tmp_path / "elsewhere").write_text("")
    (folder / "labels-eve.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="a link, which is not followed"):
        read(folder)
    with pytest.raises(InputError, match="cannot be written"):
        append_labels(folder, [label(1, by="eve")])
    assert (tmp_path / "elsewhere").read_text() == ""


def test_labels_that_find_no_room_are_no_mistake_of_the_user(folder: Path) -> None:
    append_labels(folder, [label(1, by="ada")])
    with full_disk(folder / "labels-ada.jsonl"), pytest.raises(DiskFullError, match="no space left"):
        append_labels(folder, [label(2, by="ada")])
    assert len(read(folder)[0]) == 1


def test_the_last_mark_counts_and_one_that_was_taken_back_does_not() -> None:
    marks = [label(1), label(1, passed=False), label(2), label(2, passed=None), label(1, by="grace")]
    found = current_labels([*marks, label(3, criterion="kind")])
    assert found == {AnswerIdentity("case-01", MODELS[0], "", 1): {"ada": False, "grace": True}}


def test_labels_travel_as_csv_and_bad_rows_are_all_named(folder: Path, tmp_path: Path) -> None:
    stored = StoredRun(folder)
    append_labels(folder, [label(1), label(2, passed=False, criterion="kind"), label(3), label(3, passed=None)])
    written = export_labels(stored, lambda _: None)
    rows = list(csv.DictReader(written.splitlines()))
    assert [(row["case"], row["criterion"], row["passed"]) for row in rows] == [
        ("case-01", "", "true"),
        ("case-02", "kind", "false"),
    ]
    other = judged_run(tmp_path / "other")
    # a table of all answers, most of which nobody has labelled yet
    (tmp_path / "labels.csv").write_text(written + f"ada,,case-09,{MODELS[0]},,1,,\n")
    assert import_labels(StoredRun(other), tmp_path / "labels.csv", "grace") == 2
    assert export_labels(StoredRun(other), lambda _: None) == written

    (tmp_path / "long.csv").write_text(f'case,passed\n"{"x" * 200_000}",true\n')
    with pytest.raises(InputError, match=r"long\.csv: not CSV"):
        import_labels(StoredRun(other), tmp_path / "long.csv", "grace")

    bad = "case,model,passed,criterion,number\n"
    bad += f"case-1,{MODELS[0]},true,,1\ncase-01,{MODELS[0]},maybe,,1\ncase-01,{MODELS[0]},true,kidn,1\ncase-01,{MODELS[0]},true,,7\n"
    (tmp_path / "bad.csv").write_text(bad)
    with pytest.raises(InputError) as refused:
        import_labels(StoredRun(other), tmp_path / "bad.csv", "grace")
    said = str(refused.value)
    for number, what in enumerate(("no case", "true or false", 'did you mean "kind"', "no answer 7"), 2):
        assert f"bad.csv:{number}" in said
        assert what in said
    assert len(read(other)[0]) == 2


def test_judges_who_differ_or_are_near_the_threshold_are_not_sure(folder: Path) -> None:
    answers = {answer.identity: answer for answer in LabelledRun(StoredRun(folder)).answers()}
    sure = answers[AnswerIdentity("case-00", MODELS[0], "", 1)]
    split = answers[AnswerIdentity("case-04", MODELS[0], "", 1)]
    assert (sure.passed, sure.is_sure) == (True, True)
    # one of two is no majority
    assert (split.passed, split.is_sure) == (False, False)


def test_of_one_asking_the_last_judgment_counts_and_its_text_stays_on_disk(folder: Path) -> None:
    """A judge of a hundred thousand answers writes more than should be held in memory."""
    stored = StoredRun(folder)
    first = [fact for fact in stored.facts() if isinstance(fact, Judgment) and fact.judge == JUDGES[0]]
    reason = "why " * 25_000
    said = {"right": {"reason": reason, "score": 0.1}, "kind": {"reason": reason, "score": 0.8}}
    again = Answer(text=json.dumps({"criteria_scores": said, "score": 0.45, "passed": False}))
    with Journal(folder) as journal:
        for fact in first:
            journal.append(msgspec.structs.replace(fact, answer=again))
    tracemalloc.start()
    try:
        labelled = LabelledRun(stored)
        answers = labelled.answers()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < len(first) * len(again.text) / 4
    assert {answer.passed for answer in answers} == {False}
    # by this criterion only the other judge fails answers
    kind = {answer.identity.case: answer.passed for answer in labelled.answers("kind")}
    assert (kind["case-00"], kind["case-02"]) == (True, False)
    known = reply_judgments(stored, {fact.ask for fact in first})
    shown = [labelled.judgments(answer.identity) for answer in answers]
    assert sorted(shown, key=repr) == sorted(known.values(), key=repr)
    assert [result.judge for result in shown[0]] == list(JUDGES)


def test_corrected_rates_are_in_every_report(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    append_labels(folder, [label(number, number % 3 != 2, model=model) for number in range(20) for model in MODELS])
    paths = [tmp_path / f"report{suffix}" for suffix in (".json", ".md", ".html")]
    assert main(["report", str(folder), *(part for path in paths for part in ("-o", str(path)))]) == 0
    judged = json.loads(paths[0].read_text())["summary"]["judged"]
    assert [model["method"] for model in judged["models"]] == ["own labels"] * 2
    first = judged["models"][0]
    assert first["raw"]["value"] == pytest.approx(16 / 30)
    assert first["raw"]["value"] < first["corrected"]["value"] < 0.75
    capsys.readouterr()
    assert main(["show", str(folder)]) == 0
    shown = capsys.readouterr().out
    for text in (shown, paths[1].read_text(), paths[2].read_text()):
        assert "Judged, with labels of people" in text
        assert f"{first['corrected']['value']:.1%}" in text
        assert "+0.0 points" in text
    assert main(["label", str(folder), "--width", "0.2"]) == 0
    assert "no number of labels gives a width of 20%" in capsys.readouterr().out


def test_a_model_without_labels_borrows_and_says_so(folder: Path) -> None:
    append_labels(folder, [label(number, number % 3 != 2 or number % 7 == 0) for number in range(30)])
    first, second = judged_rates(LabelledRun(StoredRun(folder)).answers()).models
    assert (first.method, second.method) == ("own labels", "labels of other models")
    assert "only if the judges err as often" in second.reason
    assert second.labels_only.value is None


def test_the_next_answer_is_where_judges_are_unsure_and_chance_picks_it() -> None:
    answers = [
        LabelledAnswer(AnswerIdentity(f"{number}", "m", "", 1), passed=True, is_sure=number % 2 == 0)
        for number in range(200)
    ]
    orders = {person: list(label_order(answers, person)) for person in ("ada", "grace")}
    for order in orders.values():
        assert sorted(order) == sorted(answer.identity for answer in answers)
        unsure = sum(int(identity.case) % 2 for identity in order[:40])
        assert 22 <= unsure <= 32
    assert orders["ada"][:10] != orders["grace"][:10]
    assert list(label_order(answers, "ada")) == orders["ada"]


def test_the_number_of_labels_for_a_width_is_about_what_it_takes() -> None:
    answers = [
        LabelledAnswer(AnswerIdentity(f"{number}", "m", "", 1), passed=number % 10 > 2, is_sure=True)
        for number in range(1000)
    ]
    (needed,) = labels_for_width(answers, 0.12).values()
    assert needed is not None
    by_identity = {answer.identity: answer for answer in answers}
    for place, identity in zip(range(needed), label_order(answers, "ada"), strict=False):
        truth = by_identity[identity].passed if place % 10 else not by_identity[identity].passed
        by_identity[identity] = by_identity[identity]._replace(labels={"ada": bool(truth)})
    corrected = judged_rates(list(by_identity.values())).models[0].corrected
    assert corrected.low is not None
    assert corrected.high is not None
    assert corrected.high - corrected.low == pytest.approx(0.12, abs=0.04)
    assert list(labels_for_width(answers, 0.001).values()) == [None]


def test_a_name_that_no_file_can_have_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["label", str(folder), "--rates", "--by", "../eve"]) == 2
    assert "such as --by ada" in capsys.readouterr().err
    assert [each.name for each in folder.parent.iterdir()] == ["run"]


def test_people_who_differ_are_counted(folder: Path) -> None:
    append_labels(folder, [label(number) for number in range(10)])
    append_labels(folder, [label(number, number > 1, by="grace") for number in range(10)])
    rates = judged_rates(LabelledRun(StoredRun(folder)).answers())
    assert rates.labellers == ("ada", "grace")
    assert rates.agreement == pytest.approx(0.8)
    assert JUDGES[0] not in rates.labellers
