"""Runs that ask in rounds, until a gate can decide."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from steelyard import Case, Means, Settings, run
from steelyard.engine.gate.gate import gate
from steelyard.engine.gate.rounds import SequentialRunResult, continue_until_decided, run_until_decided
from steelyard.engine.gate.sides import bless
from steelyard.engine.resume import resume
from steelyard.errors import InputError
from steelyard.records import StoppingRule
from steelyard.store.journal import StoredRun
from steelyard.store.side_files import gate_looks
from support.facts import facts

CASES = [Case(id=f"case-{number:02}", prompt=f"question {number}", target="right") for number in range(40)]
MODEL = """

RATE = {rate!r}
WRONG = {wrong!r}

def ask(prompt, attempt):
    if {log!r}:
        with open({log!r}, "a") as file:
            file.write(attempt.case.id + "\\n")
    if attempt.case.id in WRONG:
        return "wrong" if attempt.number in WRONG[attempt.case.id] else "right"
    # each attempt has a chance of its own, the same whenever it is asked
    return "right" if int(attempt.key[:8], 16) / 2**32 < RATE else "wrong"
"""


KEPT: dict[object, Path] = {}
"""The folders in which baselines were made, by what they were made of."""


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def model(name: str, rate: float, wrong: Mapping[str, Container[int]] = {}) -> str:
    """A model that answers rightly so often, and some cases wrongly at these attempts."""
    Path(f"{name}.py").write_text(MODEL.format(rate=rate, wrong=wrong, log=f"{name}.log"))
    return f"python:{name}.py:ask"


NOISE = {f"case-3{digit}": range(1 + digit % 2, 31, 2) for digit in range(6)}
"""Wrong at every second attempt, so that a few more wrong ones elsewhere do not stand out in the suite as a whole."""


def baseline(rate: float, wrong: Mapping[str, Container[int]] = {}) -> None:
    """A baseline `main` of 30 attempts per case."""
    made_of = rate, str(wrong)
    if made_of in KEPT:
        shutil.copytree(KEPT[made_of], ".", dirs_exist_ok=True)
        return
    run(CASES, models=model("before", rate, wrong), samples=30, output="base", means=means())
    bless(["base"], "main")
    KEPT[made_of] = Path(tempfile.mkdtemp(dir=Path.cwd().parent))
    shutil.copytree(".", KEPT[made_of], dirs_exist_ok=True)


def means(**options: Any) -> Means:
    return Means(settings=Settings(max_retries=0, retry_delay_ms=1), environment={}, **options)


def until_decided(
    models: str,
    told: list[str] | None = None,
    *,
    most: int = 20,
    output: str = "run",
    on: Literal["passed", "score"] = "passed",
    **options: Any,
) -> SequentialRunResult:
    return run_until_decided(
        CASES,
        until=StoppingRule(baseline="main", most=most, cases="fail", on=on),
        models=[models],
        means=means(**options),
        tell=(told if told is not None else []).append,
        base_url="",
        output=output,
    )


def asked(name: str) -> int:
    return len(Path(f"{name}.log").read_text().splitlines())


def verdict(done: SequentialRunResult) -> str:
    assert done.gated is not None
    return done.gated.decision.verdict


def test_an_unchanged_model_is_cleared_after_few_attempts() -> None:
    baseline(0.97)
    told: list[str] = []
    done = until_decided(model("same", 0.97), told)
    assert verdict(done) == "not regressed"
    looks = gate_looks(done.run.folder)
    assert [look.attempts for look in looks][:3] == [1, 2, 3]
    assert done.run.info.samples is not None
    assert done.run.info.samples < 20
    assert done.asked == asked("same") == len(facts(done.run.folder).replies)
    assert done.planned == 20 * len(CASES)
    assert done.saved > 0.5
    assert told[0].startswith("1 attempt per case: cannot tell yet, a drop of up to ")
    assert sum(look.spent for look in looks) <= 0.05
    assert sum(look.cleared_spent for look in looks) <= 0.05


def test_a_model_that_got_much_worse_is_found_at_once() -> None:
    baseline(0.97)
    done = until_decided(model("worse", 0.5))
    assert verdict(done) == "regressed"
    assert done.asked <= 2 * len(CASES)
    assert done.run.complete


@pytest.mark.parametrize("on", ["passed", "score"])
def test_a_case_that_looks_worse_gets_all_attempts_before_the_suite_is_cleared(on: Literal["passed", "score"]) -> None:
    baseline(1.0, NOISE)
    told: list[str] = []
    # two wrong ones of the first five or more may be chance; twelve of twenty are not
    done = until_decided(model("broken", 1.0, {**NOISE, "case-07": [1, 5, *range(11, 21)]}), told, on=on)
    assert verdict(done) == "regressed"
    assert done.gated is not None
    (only,) = done.gated.decision.models
    assert [change.case for change in only.confirmed] == ["case-07"]
    assert "looking worse than before: 1 case; each gets 20 attempts before the suite is cleared" in told
    counts = {case.id: 0 for case in CASES}
    for reply in facts(done.run.folder).replies:
        counts[reply.case] += 1
    assert counts.pop("case-07") == 20
    assert set(counts.values()) == {done.run.info.samples}
    assert only.confirmed[0].current == pytest.approx(8 / 20)
    assert gate("main", "run", cases="fail", on=on).decision == done.gated.decision


def test_scores_by_another_rule_than_the_baselines_are_refused_before_anything_is_asked() -> None:
    baseline(1.0)
    with pytest.raises(InputError, match='main is scored by rule "code", this run by "tests"; name one with --rule'):
        run_until_decided(
            CASES,
            until=StoppingRule(baseline="main", most=3, on="score"),
            models=[model("new", 1.0)],
            means=means(),
            tell=print,
            base_url="",
            output="run",
            rule="tests",
        )
    assert not Path("new.log").exists()


def test_a_case_that_was_only_unlucky_is_cleared_by_further_attempts_which_count_in_no_mean() -> None:
    baseline(1.0, NOISE)
    done = until_decided(model("unlucky", 1.0, {**NOISE, "case-07": [1, 5]}))
    assert verdict(done) == "not regressed"
    assert list(done.run.info.more.values()) == [{"case-07": 20}]
    assert done.gated is not None
    _, new = next(pair for pair in done.gated.pairing.models[0].cases if pair[1].case == "case-07")
    assert new.attempts == done.run.info.samples
    assert new.further_attempts == 20 - new.attempts
    assert any("1 case that looked worse than before got more attempts" in each for each in done.run.summary.warnings)
    bless([str(done.run.folder)], "next")
    again = gate("next", "base")
    assert {old.attempts for old, _ in again.pairing.models[0].cases} == {new.attempts}


def test_asking_the_gate_about_such_a_run_is_the_same_look() -> None:
    baseline(0.97)
    done = until_decided(model("same", 0.97))
    looks = gate_looks(done.run.folder)
    assert gate("main", "run", cases="fail").decision == done.gated.decision if done.gated else False
    assert gate_looks(done.run.folder) == looks


def test_what_cannot_be_decided_ends_with_all_attempts_and_says_so() -> None:
    baseline(0.5)
    done = until_decided(model("unsure", 0.5), most=3)
    assert verdict(done) == "cannot tell"
    assert done.asked == done.planned == 3 * len(CASES)
    assert gate_looks(done.run.folder)[-1].final_level == pytest.approx(0.0125)


def test_rounds_that_came_to_their_end_leave_nothing_for_another_look() -> None:
    baseline(0.5)
    done = until_decided(model("unsure", 0.5), most=2)
    resume(done.run.folder, samples=4, means=means())
    with pytest.raises(
        InputError, match=r"2 looks at this run have used up its error rate of 0\.05; decide with a new run"
    ):
        gate("main", "run")


def test_looking_during_the_rounds_takes_from_what_they_may_spend() -> None:
    baseline(0.5)
    done = until_decided(model("unsure", 0.5), most=3)
    told = gate_looks(done.run.folder)
    (done.run.folder / "looks.jsonl").unlink()
    gate("main", "run")
    assert verdict(continue_until_decided(done.run, means=means(), tell=print)) == "cannot tell"
    assert sum(look.spent for look in gate_looks(done.run.folder)) < sum(look.spent for look in told)


def test_recorded_replies_are_looked_at_in_rounds_as_well() -> None:
    baseline(0.97)
    done = until_decided("replay:base/attempts.jsonl", most=50)
    assert verdict(done) == "not regressed"
    assert done.planned == 30 * len(CASES)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ("no baseline", 'no run "main"'),
        ("other cases", "has none of these cases with these tests"),
        ("no attempts", "--max-samples must be 1 or more"),
    ],
)
def test_what_can_never_be_decided_is_refused_before_anything_is_asked(problem: str, said: str) -> None:
    if problem != "no baseline":
        baseline(0.97)
    cases = (
        [Case(id=case.id, prompt=case.prompt, target="other") for case in CASES] if problem == "other cases" else CASES
    )
    with pytest.raises(InputError, match=said):
        run_until_decided(
            cases,
            until=StoppingRule(baseline="main", most=0 if problem == "no attempts" else 20),
            models=[model("new", 1.0)],
            means=means(),
            tell=print,
            base_url="",
            output="run",
        )
    assert not Path("run").exists()
    assert not Path("new.log").exists()


def test_a_run_of_another_kind_is_not_decided() -> None:
    done = run(CASES, models=model("plain", 1.0), samples=1, output="run", means=means())
    with pytest.raises(InputError, match="was not run with --until-decided"):
        continue_until_decided(done, means=means(), tell=print)


def test_a_run_that_is_killed_goes_on_where_it_stood_and_asks_nothing_twice() -> None:
    before, slow = model("before", 0.9), model("slow", 0.9)
    text = Path("slow.py").read_text().replace("    if attempt", "    __import__('time').sleep(0.01)\n    if attempt")
    Path("slow.py").write_text(text)
    lines = ["[eval_set]", 'id = "s"', 'name = "s"']
    for case in CASES:
        lines += ["[[cases]]", f'id = "{case.id}"', 'name = "c"', f'prompt = "{case.prompt}"', 'target = "right"']
    Path("evals.toml").write_text("\n".join(lines))
    # the baseline has to know these cases by the tests that the file gives them
    run("evals.toml", models=before, samples=30, output="base", means=means())
    bless(["base"], "main")
    begin = ["run", "evals.toml", "-m", slow, "--baseline", "main", "--until-decided", "--output", "run"]
    chance = random.Random(3)
    journal = Path("run/attempts.jsonl")
    for kill in range(5):
        process = subprocess.Popen(
            [sys.executable, "-m", "steelyard.cli", *(["resume", "run"] if journal.exists() else begin)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        reached = (journal.stat().st_size if journal.exists() else 0) + chance.randint(1, 40_000)
        while kill < 4 and process.poll() is None:
            if journal.exists() and journal.stat().st_size >= reached:
                process.kill()
            time.sleep(0.005)
        process.wait()
    assert process.returncode == 0
    keys = [reply.key for reply in facts(Path("run")).replies]
    assert len(keys) == len(set(keys))
    looks = gate_looks(Path("run"))
    assert looks[-1].verdict in ("not regressed", "cannot tell")
    assert len({look.data for look in looks}) == len(looks)
    assert sum(look.spent for look in looks) <= 0.05 + 1e-12
    assert sum(look.cleared_spent for look in looks) <= 0.05 + 1e-12
    assert StoredRun(Path("run")).info.until is not None


def test_a_run_that_further_attempts_would_hardly_decide_is_asked_no_further() -> None:
    halves = {case.id: range(1 + place % 2, 31, 2) for place, case in enumerate(CASES)}
    run(CASES, models=model("before", 1.0, halves), samples=1, output="base", means=means())
    bless(["base"], "main")
    told: list[str] = []
    done = until_decided(model("same", 1.0, halves), told)
    assert verdict(done) == "cannot tell"
    assert done.asked < done.planned / 2
    assert told[-1].startswith("stopped, because the attempts still allowed would decide with a chance below 5%")
