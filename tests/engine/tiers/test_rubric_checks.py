"""Checks that are rubrics: judges are paid once, stored first, and their outage is not the model's fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import steelyard
from steelyard import Means, Settings
from steelyard.engine.preflight.forecast import forecast
from steelyard.engine.preflight.references import check_references
from steelyard.engine.resume import verify_again
from steelyard.errors import InputError
from steelyard.evalsets import load
from steelyard.records import Case, Failure, Judgment, Price, Reply, Verdict, Verify
from steelyard.store.journal import StoredRun
from support.fault_server import Behaviour, FaultServer, Request, refuses, says

PRICES = {
    name: Price(input=100, output=100) for name in ("openai/judge", "openai/other", "openai/third", "openai/model")
}
REQUEST_USD = (10 + 5) * 100 / 1e6


def mark(score: float, reason: str = "It greets.") -> str:
    return json.dumps({"criteria_scores": {"rubric": {"reason": reason, "score": score}}, "score": score})


def case(*checks: dict[str, Any], name: str = "a") -> Case:
    return Case(id=name, prompt="Greet me.", verify=Verify(kind="checks", settings={"checks": list(checks)}))


GREETING = case({"contains": "Hello"}, {"rubric": "It is a friendly greeting."})


def means(server: FaultServer, **options: Any) -> Means:
    settings = Settings(max_retries=0, retry_delay_ms=1, prices=PRICES)
    environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-none"}
    given = {"judges": ("openai/judge",), "parallelism": 1, **options}
    return Means(settings=settings, environment=environment, **given)


def judging(server: FaultServer, judge: Any) -> None:
    """The model greets; what the judge says is up to the test."""

    def script(request: Request) -> Behaviour:
        if request.body["model"] == "model":
            return says("Hello there")
        said = judge(request) if callable(judge) else judge
        return says(said) if isinstance(said, str) else said

    server.script = script


def asked(server: FaultServer, model: str) -> int:
    return sum(request.body["model"] == model for request in server.requests)


def kept(folder: Path, kind: type[Any]) -> list[Any]:
    return [fact for fact in StoredRun(folder).facts() if isinstance(fact, kind)]


def greeted(server: FaultServer, folder: Path, given: Case = GREETING, **options: Any) -> steelyard.Run:
    return steelyard.run([given], models="openai/model", samples=1, output=folder, means=means(server, **options))


def test_a_rubric_is_a_test_with_the_judges_reason_and_its_judgment_is_stored_and_paid_for_once(
    server: FaultServer, tmp_path: Path
) -> None:
    judging(server, mark(0, "It is cold."))
    done = greeted(server, tmp_path / "run")
    (verdict,) = kept(done.folder, Verdict)
    assert [(test.name, test.outcome, test.message) for test in verdict.found.tests] == [
        ('contains "Hello"', "passed", ""),
        ('rubric "It is a friendly greeting."', "failed", "It is cold."),
    ]
    assert verdict.found.score == pytest.approx(0.5)
    (judgment,) = kept(done.folder, Judgment)
    assert (judgment.judge, judgment.ask, judgment.unusable) == ("openai/judge", kept(done.folder, Reply)[0].key, "")
    facts = [type(fact) for fact in StoredRun(done.folder).facts()]
    assert facts == [Reply, Judgment, Verdict]
    request = next(request for request in server.requests if request.body["model"] == "judge")
    assert "It is a friendly greeting." in request.prompt
    assert "| Hello there" in request.prompt
    # killed between judgment and verdict, the run goes on without asking anybody again; and so does verifying again
    journal = done.folder / "attempts.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:2]))
    assert steelyard.resume(done.folder, means=means(server)).summary.models[0].missing == 0
    assert verify_again(done.folder, means=means(server)).summary.models[0].correct == 0
    assert asked(server, "judge") == 1


def test_another_limit_needs_no_new_judgment_and_another_sentence_does(server: FaultServer, tmp_path: Path) -> None:
    judging(server, mark(0.6))
    path = tmp_path / "set.jsonl"

    def written(**check: Any) -> Path:
        path.write_text(json.dumps({"id": "a", "prompt": "Greet me.", "checks": [check]}) + "\n")
        return path

    written(rubric="It greets.", at_least=0.7)
    done = steelyard.run(path, models="openai/model", samples=1, output=tmp_path / "run", means=means(server))
    assert kept(done.folder, Verdict)[-1].found.passed is False
    written(rubric="It greets.", at_least=0.5)
    verify_again(done.folder, means=means(server))
    assert kept(done.folder, Verdict)[-1].found.passed is True
    assert asked(server, "judge") == 1
    written(rubric="It greets warmly.", at_least=0.5)
    again = verify_again(done.folder, means=means(server))
    assert again.summary.models[0].missing == 1
    assert "was never asked about this reply by this rubric" in kept(done.folder, Failure)[-1].message
    steelyard.resume(done.folder, means=means(server))
    assert (asked(server, "judge"), asked(server, "model")) == (2, 1)
    assert kept(done.folder, Verdict)[-1].found.passed is True


def test_an_outage_of_the_judge_is_missing_data_and_resuming_asks_the_judge_alone(
    server: FaultServer, tmp_path: Path
) -> None:
    judging(server, lambda request: refuses(503, "overloaded"))
    done = greeted(server, tmp_path / "run")
    assert kept(done.folder, Verdict) == []
    assert "judge openai/judge could not be asked" in kept(done.folder, Failure)[-1].message
    assert (done.exit_code, done.summary.models[0].missing) == (3, 1)
    assert asked(server, "judge") == 1  # a judgment that was tried for is not tried for again
    judging(server, mark(1))
    again = steelyard.resume(done.folder, means=means(server))
    assert (again.exit_code, again.summary.models[0].correct) == (0, 1)
    assert asked(server, "model") == 1


def test_a_judge_that_says_nothing_of_use_is_paid_and_stored_but_decides_nothing(
    server: FaultServer, tmp_path: Path
) -> None:
    judging(server, "hm")
    done = greeted(server, tmp_path / "run")
    unusable = kept(done.folder, Judgment)
    assert [bool(fact.unusable) for fact in unusable] == [True] * 3
    assert kept(done.folder, Verdict) == []
    assert "gave no usable judgment" in kept(done.folder, Failure)[-1].message


def test_what_judges_cost_is_under_the_budget_and_in_the_forecast(server: FaultServer, tmp_path: Path) -> None:
    judging(server, mark(1))
    limited = Case(**{field: getattr(GREETING, field) for field in ("id", "prompt", "verify")}, max_tokens=100)
    foreseen = forecast(
        [limited],
        models=["openai/model"],
        samples=3,
        k=(1,),
        parameters={},
        system="",
        base_url="",
        means=means(server),
    )
    assert [(each.model, each.attempts) for each in foreseen] == [("openai/model", 3), ("judge openai/judge", 3)]
    assert foreseen[1].most_usd is not None
    assert foreseen[1].most_usd > 3 * REQUEST_USD
    assert server.requests == []
    most_of_model = (foreseen[0].most_usd or 0) / 3
    done = greeted(server, tmp_path / "run", limited, max_cost=most_of_model + REQUEST_USD)
    assert asked(server, "judge") == 0
    assert done.out_of_budget
    assert "the budget does not cover it" in kept(done.folder, Failure)[-1].message
    assert steelyard.resume(done.folder, means=means(server, max_cost=1000)).summary.models[0].correct == 1
    assert asked(server, "model") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"judges": ()}, 'case, such as "a", has a check that is a rubric, and no judge is named.*--judges'),
        ({"judges": ("openai/model",)}, "would judge its own answers"),
        ({"judges": ("openai/unpriced",), "max_cost": 1}, "the price of openai/unpriced is unknown"),
        ({"backend": "ray"}, "on the machine that asks"),
    ],
)
def test_without_a_judge_that_can_be_asked_nothing_is_paid_for(
    server: FaultServer, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        greeted(server, tmp_path / "run", **options)
    assert server.requests == []
    assert not (tmp_path / "run" / "run.json").exists()


def test_most_judges_decide_and_other_judges_are_other_tests(server: FaultServer, tmp_path: Path) -> None:
    judging(server, lambda request: mark(float(request.body["model"] == "judge"), request.body["model"]))
    two = greeted(server, tmp_path / "two", judges=("openai/judge", "openai/other"))
    (verdict,) = kept(two.folder, Verdict)
    assert (verdict.found.passed, verdict.found.score, verdict.found.tests[1].message) == (False, 0.75, "other")
    named = case({"rubric": "It is a friendly greeting.", "judges": ["openai/judge"], "not": True})
    one = greeted(server, tmp_path / "one", named, judges=())
    (judged,) = kept(one.folder, Verdict)
    assert judged.found.passed is False
    assert StoredRun(two.folder).cases[0].tests_digest != StoredRun(one.folder).cases[0].tests_digest


def test_an_eval_set_with_rubrics_is_valid_and_its_references_are_left_to_judges() -> None:
    given = Case(id="a", prompt="?", reference="Hello", verify=GREETING.verify)
    (problem,) = check_references([given]).problems
    assert not problem.fatal
    assert "only judges can tell" in str(problem)


def test_promptfoos_graded_assertions_are_rubrics(tmp_path: Path) -> None:
    config = tmp_path / "promptfooconfig.yaml"
    config.write_text(
        """
prompts: ["Greet {{name}}."]
providers: [echo]
tests:
  - vars: {name: Ann}
    assert:
      - {type: llm-rubric, value: "Greets {{name}}", threshold: 0.8, provider: "openai:gpt-4o"}
      - {type: not-model-graded-closedqa, value: is rude}
      - {type: factuality, value: Her name is Ann}
      - {type: g-eval, value: polite}
"""
    )
    loaded = load([config])
    checks = loaded.cases[0].verify.settings["checks"]
    assert checks[0] == {"rubric": "Greets Ann", "at_least": 0.8}
    assert checks[1] == {"rubric": "is rude", "not": True}
    assert checks[2]["rubric"].endswith("reference answer: Her name is Ann")
    assert checks[3] == {"at_least": 0.7, "rubric": "polite"}
    assert any("name judges with --judges" in str(problem) for problem in loaded.problems)


def test_others_judge_a_rubric_where_the_first_is_not_sure_and_where_chance_has_it(
    server: FaultServer, tmp_path: Path
) -> None:
    # the first judge is near the limit about every fourth case; the others find all of them worse
    def judge(request: Request) -> str:
        number = int(request.prompt.split("Greet guest ")[1].split(".")[0])
        return mark(0.72 if number % 4 == 0 else 0.95) if request.body["model"] == "judge" else mark(0.2)

    judging(server, judge)
    check = {"rubric": "It greets.", "at_least": 0.7, "ask_first": 1, "check_share": 0.25}
    cases = [
        Case(
            id=f"c{number:02}",
            prompt=f"Greet guest {number}.",
            verify=Verify(kind="checks", settings={"checks": [check]}),
        )
        for number in range(24)
    ]
    said: list[str] = []
    judges = ("openai/judge", "openai/other", "openai/third")
    given = means(server, judges=judges, say=said.append)
    done = steelyard.run(cases, models="openai/model", samples=1, output=tmp_path / "run", means=given)
    verdicts = {verdict.case: verdict.found for verdict in kept(done.folder, Verdict)}
    unsure = {f"c{number:02}" for number in range(0, 24, 4)}
    failed = {case for case, found in verdicts.items() if not found.passed}
    checked = len(failed - unsure)
    assert failed >= unsure
    assert 1 <= checked <= 9
    assert (asked(server, "judge"), asked(server, "other"), asked(server, "third")) == (24, len(failed), len(failed))
    (sentence,) = [each for each in said if "the first judges alone decided" in each]
    assert f"about {18 - checked} of 24 judged replies; of {checked} checked by chance" in sentence
    assert f"decide {checked} differently" in sentence
    # the same is decided again from what is stored, and nobody is asked
    again = verify_again(done.folder, means=given)
    assert again.summary.models[0].correct == 24 - len(failed)
    assert asked(server, "other") == len(failed)


def test_a_rubric_that_leaves_nobody_for_later_is_refused_before_anything_is_paid_for(
    server: FaultServer, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="ask_first is 1, and there is 1 judge"):
        greeted(server, tmp_path / "run", case({"rubric": "It greets.", "ask_first": 1}))
    with pytest.raises(InputError, match="check_share has no effect without ask_first"):
        greeted(server, tmp_path / "run", case({"rubric": "It greets.", "check_share": 0.5}), judges=("openai/judge",))
    assert not server.requests
