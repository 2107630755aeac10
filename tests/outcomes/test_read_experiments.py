"""Experiments in tiers are read as their tools wrote them, and nothing wrong in them goes unsaid."""

from __future__ import annotations

import gzip
import hashlib
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.errors import InputError
from steelyard.outcomes import experiments
from steelyard.outcomes.experiments import experiment
from steelyard.outcomes.files import OutcomeFile, OutcomeProblemCollector, UnreadableOutcomesError
from steelyard.tiers.results import CriterionRating, JudgeIdentity, RunIdentity, RunRating, TierRun

RUNS = (
    "experiment,agent_model,tier,subtest,run_number,score,impl_rate,passed,grade,cost_usd,duration_seconds,"
    "agent_duration_seconds,judge_duration_seconds,input_tokens,output_tokens,cache_creation_tokens,cache_read_tokens,"
    "total_tokens,exit_code\n"
    "test-001,haiku,T0,00,1,0.97,0.99,True,A,0.1351,203.1,35.3,167.8,29,656,23106,112686,136477,0\n"
    "test-001,haiku,T1,00,1,0.1,,False,F,0.02,11,1,10,5,7,,,12,-9\n"
)
JUDGES = (
    "experiment,agent_model,tier,subtest,run_number,judge_model,judge_number,judge_score,judge_impl_rate,judge_passed,"
    "judge_grade,judge_is_valid,judge_reasoning\n"
    'test-001,haiku,T0,00,1,opus,1,0.96,0.9923,True,A,True,"He said ""fine"",\nand left."\n'
    "test-001,haiku,T0,00,1,sonnet,2,,,,,False,\n"
)
CRITERIA = (
    "experiment,agent_model,tier,subtest,run_number,judge_model,judge_number,criterion,criterion_score,"
    "criterion_achieved,criterion_max\n"
    "test-001,haiku,T0,00,1,opus,1,functional,1.0,3.5,3.5\n"
    "test-001,haiku,T0,00,1,opus,1,docs,N/A,N/A,N/A\n"
)
FIRST = RunIdentity("test-001", "haiku", "T0", "00", 1)
HEAD = "experiment,agent_model,tier,subtest,run_number"


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def said(folder: Path, runs: str | bytes, judges: str | None = None, criteria: str | None = None) -> list[str]:
    """What is wrong with these files, without the folder."""
    with pytest.raises(InputError) as caught:
        experiment(
            written(folder, "runs.csv", runs),
            judges=None if judges is None else written(folder, "judges.csv", judges),
            criteria=None if criteria is None else written(folder, "criteria.csv", criteria),
        )
    return [str(problem).removeprefix(f"{folder}/") for problem in caught.value.problems]


def noted(folder: Path, runs: str) -> list[str]:
    found = experiment(written(folder, "runs.csv", runs))
    return [str(warning).removeprefix(f"{folder}/") for warning in found.warnings]


def test_all_three_files_are_read_to_the_last_field(tmp_path: Path) -> None:
    found = experiment(
        written(tmp_path, "runs.csv", RUNS),
        judges=written(tmp_path, "judges.csv", JUDGES),
        criteria=written(tmp_path, "criteria.csv", CRITERIA),
    )
    assert found.runs == (
        TierRun(
            experiment="test-001",
            model="haiku",
            tier="T0",
            case="00",
            number=1,
            passed=True,
            score=0.97,
            impl_rate=0.99,
            cost_usd=0.1351,
            duration_seconds=203.1,
            input_tokens=29 + 23106 + 112686,
            output_tokens=656,
            cached_tokens=112686,
            exit_code=0,
        ),
        TierRun(
            experiment="test-001",
            model="haiku",
            tier="T1",
            case="00",
            number=1,
            passed=False,
            score=0.1,
            cost_usd=0.02,
            duration_seconds=11.0,
            input_tokens=5,
            output_tokens=7,
            exit_code=-9,
        ),
    )
    opus, sonnet = JudgeIdentity("opus", 1), JudgeIdentity("sonnet", 2)
    assert found.ratings == (
        RunRating(run=FIRST, judge=opus, score=0.96, impl_rate=0.9923, passed=True, grade="A"),
        RunRating(run=FIRST, judge=sonnet, valid=False),
    )
    assert found.criteria == (
        CriterionRating(run=FIRST, judge=opus, criterion="functional", score=1.0, achieved=3.5, max=3.5),
        CriterionRating(run=FIRST, judge=opus, criterion="docs"),
    )
    assert found.warnings == ()


def test_every_file_is_named_with_the_digest_of_its_bytes(tmp_path: Path) -> None:
    found = experiment(written(tmp_path, "a.csv", RUNS), judges=written(tmp_path, "b.csv", JUDGES))
    digests = [hashlib.blake2b(text.encode(), digest_size=16).hexdigest() for text in (RUNS, JUDGES)]
    assert [(source.name, source.digest) for source in found.sources] == [("a.csv", digests[0]), ("b.csv", digests[1])]


def test_a_spreadsheets_way_to_write_it_changes_nothing(tmp_path: Path) -> None:
    text = (
        "passed, tier ,unknown,run_number,subtest,agent_model,experiment,cost_usd\r\n"
        '"true",T0,x,"1.0"," 00 ",haiku,test-001,1e-3\r\n\r\n'
        "1,T0,,2,00,haiku,test-001,.5\r\n"
        "no,T0,,3,00,haiku,test-001,\r\n"
        ",T0,,4,00,haiku,test-001,0"
    )
    plain = written(tmp_path, "runs.csv", b"\xef\xbb\xbf" + text.encode())
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    runs = experiment(plain).runs
    assert [(run.number, run.passed, run.cost_usd) for run in runs] == [
        (1, True, 0.001),
        (2, True, 0.5),
        (3, False, None),
        (4, None, 0.0),
    ]
    assert {(run.experiment, run.model, run.tier, run.case) for run in runs} == {("test-001", "haiku", "T0", "00")}
    assert experiment(packed).runs == runs


def test_columns_without_a_use_are_named_with_what_they_may_be_meant_to_be(tmp_path: Path) -> None:
    text = f"{HEAD},cost_us,api_calls,grade\ne,m,T0,a,1,1,2,A\n"
    assert noted(tmp_path, text) == [
        'runs.csv: unused columns: cost_us (did you mean "cost_usd"?), api_calls',
    ]


def test_an_input_that_counts_the_cache_already_is_not_counted_twice(tmp_path: Path) -> None:
    head = f"{HEAD},input_tokens,output_tokens,cache_read_tokens,total_tokens"
    inside, outside, untold = (f"e,m,T0,a,{n},100,10,60,{total}" for n, total in ((1, 110), (2, 170), (3, "")))
    runs = experiment(written(tmp_path, "runs.csv", "\n".join([head, inside, outside, untold]))).runs
    assert [run.input_tokens for run in runs] == [100, 160, 160]
    assert {run.cached_tokens for run in runs} == {60}


def test_a_score_and_an_impl_rate_are_two_things(tmp_path: Path) -> None:
    found = experiment(written(tmp_path, "runs.csv", f"{HEAD},score\ne,m,T0,a,1,0.7\n"))
    assert (found.runs[0].score, found.runs[0].impl_rate) == (0.7, None)
    assert found.warnings == ()


def test_what_programs_write_for_nothing_is_nothing_and_is_said(tmp_path: Path) -> None:
    text = f"{HEAD},passed,impl_rate,cost_usd,exit_code\ne,m,T0,a,1,nan,NaN,N/A,None\ne,m,T0,a,2,,,,\n"
    found = experiment(written(tmp_path, "runs.csv", text))
    assert {(run.passed, run.impl_rate, run.cost_usd, run.exit_code) for run in found.runs} == {(None,) * 4}
    assert [warning.what for warning in found.warnings] == [
        'passed is "nan": treated as an empty cell',
        'impl_rate is "NaN": treated as an empty cell',
        'exit_code is "None": treated as an empty cell',
    ]


def test_an_impl_rate_above_one_is_kept_and_said(tmp_path: Path) -> None:
    found = experiment(written(tmp_path, "runs.csv", f"{HEAD},impl_rate\ne,m,T0,a,1,1.028\ne,m,T0,a,2,1\n"))
    assert found.runs[0].impl_rate == 1.028
    (warning,) = found.warnings
    assert (warning.line, warning.fatal) == (2, False)
    assert warning.what.startswith('impl_rate is "1.028", above 1')


@pytest.mark.parametrize(
    ("column", "cell", "sentence"),
    [
        ("passed", "maybe", 'passed is "maybe"; expected true or false, 1 or 0, yes or no'),
        ("impl_rate", "-0.1", 'impl_rate is "-0.1"; expected a number, 0 or more'),
        ("impl_rate", "inf", 'impl_rate is "inf"; expected a number, 0 or more'),
        ("cost_usd", "-inf", 'cost_usd is "-inf"; expected a number, 0 or more'),
        ("cost_usd", "$0.50", 'cost_usd is "$0.50"; expected a number, 0 or more'),
        ("cost_usd", "1_000", 'cost_usd is "1_000"; expected a number, 0 or more'),
        ("cost_usd", "1e999", 'cost_usd is "1e999"; expected a number, 0 or more'),
        ("duration_seconds", "3 s", 'duration_seconds is "3 s"; expected a number, 0 or more'),
        ("input_tokens", "1.5", 'input_tokens is "1.5"; expected a whole number, 0 or more'),
        ("output_tokens", "-3", 'output_tokens is "-3"; expected a whole number, 0 or more'),
        ("exit_code", "--1", 'exit_code is "--1"; expected a whole number'),
        ("exit_code", "0.5", 'exit_code is "0.5"; expected a whole number'),
        ("passed", "\x1b[2J", r'passed is "\u001b[2J"; expected true or false, 1 or 0, yes or no'),
    ],
)
def test_a_cell_that_cannot_be_read_is_named_with_its_line_and_column(
    tmp_path: Path, column: str, cell: str, sentence: str
) -> None:
    good = "e,m,T0,a,1,"
    assert said(tmp_path, f"{HEAD},{column}\n{good}\ne,m,T0,a,2,{cell}\n") == [f"runs.csv:3: {sentence}"]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (",m,T0,a,1", "experiment is empty; expected a name"),
        ("e,m,  ,a,1", "tier is empty; expected a name"),
        ("e,m,T0,a,", "run_number is empty; expected a whole number, 0 or more"),
        ("e,m,T0,a,one", 'run_number is "one"; expected a whole number, 0 or more'),
        ("e,m,T0,a,-1", 'run_number is "-1"; expected a whole number, 0 or more'),
        ("e,m,T0,a,9007199254740993", 'run_number is "9007199254740993"; expected a whole number, 0 or more'),
        ("e,m,T0,a", "too few fields: 4, where the header has 5"),
        ("e,m,T0,a,1,2", "too many fields: 6, where the header has 5"),
    ],
)
def test_a_row_without_its_identity_is_an_error(tmp_path: Path, row: str, sentence: str) -> None:
    assert said(tmp_path, f"{HEAD}\n{row}\n") == [f"runs.csv:2: {sentence}"]


def test_a_row_that_cannot_be_used_is_complained_about_once(tmp_path: Path) -> None:
    assert said(tmp_path, f"{HEAD}\n" + 2 * "e,m,T0,a,one\n") == [
        'runs.csv:2: run_number is "one"; expected a whole number, 0 or more; 2 such rows, on lines 2 and 3'
    ]


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    runs = f"{HEAD},passed,cost_usd\ne,m,T0,a,1,perhaps,1\ne,m,T0,b,1,yes,cheap\n"
    found = said(tmp_path, runs, f"{HEAD},judge_model\n")
    assert [line.partition(" is ")[0].partition(" (")[0] for line in found] == [
        "runs.csv:2: passed",
        "runs.csv:3: cost_usd",
        'judges.csv:1: no column "judge_number"',
    ]


def test_a_run_that_stands_there_twice_is_an_error_with_both_lines(tmp_path: Path) -> None:
    runs = f"{HEAD},passed\ne,m,T0,a,1,1\ne,m,T0,b,1,1\ne,m,T0,a, 1 ,1\n"
    assert said(tmp_path, runs) == [
        'runs.csv:4: "e, m, T0, a, run 1" is already on line 2; keep one of the two',
    ]


@pytest.mark.parametrize("part", range(5))
def test_no_part_of_the_identity_may_be_dropped(tmp_path: Path, part: int) -> None:
    one, other = ["e", "m", "T0", "a", "1"], ["e", "m", "T0", "a", "1"]
    other[part] = "2"
    assert len(experiment(written(tmp_path, "r.csv", f"{HEAD}\n{','.join(one)}\n{','.join(other)}\n")).runs) == 2
    judges = f"{HEAD},judge_model,judge_number\n{','.join(other)},j,1\n"
    (problem,) = said(tmp_path, f"{HEAD}\n{','.join(one)}\n", judges)
    assert problem.startswith('judges.csv:2: no run "')


def test_a_rating_and_a_criterion_stand_there_once(tmp_path: Path) -> None:
    runs = f"{HEAD}\ne,m,T0,a,1\n"
    judges = f"{HEAD},judge_model,judge_number\ne,m,T0,a,1,j,1\ne,m,T0,a,1,j,2\ne,m,T0,a,1,j,1\n"
    criteria = f"{HEAD},judge_model,judge_number,criterion\n" + 2 * "e,m,T0,a,1,j,1,docs\n"
    assert said(tmp_path, runs, judges) == [
        'judges.csv:4: "e, m, T0, a, run 1, judge j #1" is already on line 2; keep one of the two'
    ]
    assert said(tmp_path, runs, None, criteria) == [
        'criteria.csv:3: "e, m, T0, a, run 1, judge j #1, docs" is already on line 2; keep one of the two'
    ]


def test_a_criterion_needs_its_judges_row_where_there_are_judges(tmp_path: Path) -> None:
    runs = f"{HEAD}\ne,m,T0,a,1\n"
    judges = f"{HEAD},judge_model,judge_number\ne,m,T0,a,1,j,1\n"
    criteria = f"{HEAD},judge_model,judge_number,criterion\ne,m,T0,a,1,j,2,docs\n"
    assert said(tmp_path, runs, judges, criteria) == [
        'criteria.csv:2: no judge\'s row for "e, m, T0, a, run 1, judge j #2"'
    ]
    alone = experiment(written(tmp_path, "r.csv", runs), criteria=written(tmp_path, "c.csv", criteria))
    assert len(alone.criteria) == 1


def test_rows_about_runs_that_could_not_be_read_are_not_blamed(tmp_path: Path) -> None:
    runs = f"{HEAD},passed\ne,m,T0,a,1,perhaps\n"
    judges = f"{HEAD},judge_model,judge_number\ne,m,T0,a,1,j,1\n"
    assert said(tmp_path, runs, judges) == [
        'runs.csv:2: passed is "perhaps"; expected true or false, 1 or 0, yes or no'
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", f"runs.csv: empty; expected a header line with {HEAD.replace(',', ', ')}"),
        (b"experiment,agent_model\n", 'runs.csv:1: no column "tier" (known: agent_model, experiment)'),
        (f"{HEAD},tier\n".encode(), 'runs.csv:1: column "tier" occurs 2 times in the header'),
        (f"{HEAD}\ne,m,T0,a\xff,1\n".encode("latin-1"), "runs.csv:2: not UTF-8 text; save the file as UTF-8"),
        (f'{HEAD}\ne,m,T0,"a,1\n'.encode(), "runs.csv:2: a quote is opened on this line and never closed"),
        (f"{HEAD}\ne,m,T0,a\0,1\n".encode(), "runs.csv:2: a NUL byte; save the file as UTF-8 text"),
        (gzip.compress(HEAD.encode(), mtime=0)[:-6], "runs.csv: cannot be unpacked"),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    found = said(tmp_path, content)
    assert found[0].startswith(sentence)


def test_a_file_that_is_not_there_or_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        experiment(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="a folder; name the files in it"):
        experiment(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="not a plain file"):
        experiment(pipe)
    runs = written(tmp_path, "runs.csv", RUNS)
    with pytest.raises(InputError, match="given twice"):
        experiment(runs, judges=runs)


def test_a_file_without_rows_says_so(tmp_path: Path) -> None:
    assert noted(tmp_path, HEAD + "\n") == ["runs.csv: no rows"]


def told(path: Path, room: int) -> str:
    """What reading says in a process that has little memory."""
    program = (
        "import sys\n"
        "from steelyard.errors import InputError\n"
        "from steelyard.outcomes import experiments\n"
        "experiments.MAX_EXPERIMENT_ROWS = 50_000\n"
        "try:\n"
        "    print(len(experiments.experiment(sys.argv[1]).runs))\n"
        "except InputError as error:\n"
        "    print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        # a thread of numpy for each of many processors would take address space of its own
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room)),
    )
    assert ran.returncode == 0, ran.stderr[-1000:]
    return ran.stdout.removeprefix(str(path)).strip()


def test_a_file_of_too_many_rows_is_given_up_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(f"{HEAD},note\n".encode())
        for start in range(0, 400_000, 10_000):
            file.write(b"".join(b"e,m,T0,a,%d,%b\n" % (number, b"x" * 500) for number in range(start, start + 10_000)))
    assert "more than 50,000 rows; leave some out" in told(path, 1_500 << 20)


def test_a_field_that_does_not_end_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(f'{HEAD}\ne,m,T0,"'.encode())
        for _ in range(80):
            file.write(b"xxx\n" * (1 << 18))
    assert " of more than " in told(path, 2_000 << 20)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "runs.csv", RUNS)
    reading = experiments._ExperimentCsvReader()
    with pytest.raises(UnreadableOutcomesError, match="changed while it was being read"):
        reading.read(
            OutcomeFile(0, path), OutcomeProblemCollector(), lambda _: written(tmp_path, "runs.csv", RUNS + "more")
        )
    assert reading.sources == []
