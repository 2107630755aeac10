"""Made-up outcomes: their truth is known, their bytes are always the same, and nobody's files are lost to them."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steelyard import outcomes
from steelyard.analysis.counts import standing
from steelyard.engine.results.synthetic import DEFAULT_SYNTHETIC_RATES, synthesize, unchanged_files
from steelyard.errors import InputError
from steelyard.store.files import AtomicFiles

SMALL = {"strong": 0.8, "weak": 0.3}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_estimates_recover_the_known_rates(tmp_path: Path, seed: int) -> None:
    made = synthesize(tmp_path, problems=2000, samples=20, models=SMALL, seed=seed)
    read = outcomes.fixes([tmp_path / f"{model}_synthetic_fixes.csv" for model in SMALL], tmp_path / "problems.csv")
    assert read.problems == ()
    for tally in read.tallies:
        found = standing(tally, (1, 5, 10))
        assert (found.cases, found.attempts, found.unscored) == (2000, 40_000, ())
        for k, estimate in found.pass_at.items():
            assert estimate.value is not None
            assert estimate.low is not None
            assert estimate.high is not None
            standard_error = (estimate.high - estimate.low) / 3.92
            assert abs(estimate.value - made.pass_at(tally.model, k)) < 4 * standard_error
        rates = made.rates[tally.model]
        chance = math.sqrt(sum(rate * (1 - rate) for rate in rates) / 20) / len(rates)
        assert abs(found.correct / found.attempts - made.pass_at(tally.model, 1)) < 4 * chance


@pytest.mark.parametrize(("problems", "rate"), [(1, 0.25), (10, 0.333), (100, 0.5), (250, 0.8), (250, 0.017)])
def test_the_rates_average_what_was_asked_for(tmp_path: Path, problems: int, rate: float) -> None:
    made = synthesize(tmp_path, problems=problems, samples=1, models={"m": rate})
    assert made.pass_at("m", 1) == pytest.approx(rate, abs=1e-12 if rate != 0.333 else 0.0005)


def test_rates_are_spread_and_a_hard_problem_is_hard_for_all(tmp_path: Path) -> None:
    made = synthesize(tmp_path, problems=500, samples=1, models={"a": 0.8, "b": 0.5, "c": 0.2})
    a, b, c = (made.rates[model] for model in "abc")
    for rates, mean in ((a, 0.8), (b, 0.5), (c, 0.2)):
        spread = math.sqrt(sum((rate - mean) ** 2 for rate in rates) / 500)
        # a Beta with the parameters 4m and 4(1 - m)
        assert spread == pytest.approx(math.sqrt(mean * (1 - mean) / 5), rel=0.15)
    assert all(x >= y - 0.1 >= z - 0.2 for x, y, z in zip(a, b, c, strict=True))


def test_the_rates_0_and_1_have_no_exception(tmp_path: Path) -> None:
    made = synthesize(tmp_path, problems=50, samples=4, models={"never": 0, "always": 1})
    assert {row["plausible_fix"] for row in rows(tmp_path / "never_synthetic_fixes.csv")} == {"False"}
    assert {row["plausible_fix"] for row in rows(tmp_path / "always_synthetic_fixes.csv")} == {"True"}
    assert (made.pass_at("never", 10), made.pass_at("always", 1)) == (0, 1)


def test_the_files_have_the_columns_of_the_format(tmp_path: Path) -> None:
    made = synthesize(tmp_path, problems=3, samples=2, models={"m": 0.5})
    problems = rows(tmp_path / "problems.csv")
    assert [list(row) for row in problems] == [["oid", "filename"]] * 3
    identity = b"module-1/main.tf|2|3"
    assert problems[0]["oid"] == hashlib.sha1(identity).hexdigest()[:12]
    fixes = rows(tmp_path / "m_synthetic_fixes.csv")
    assert [(row["oid"], row["iteration_id"]) for row in fixes] == [
        (problem["oid"], number) for problem in problems for number in "12"
    ]
    assert [row["LLM"] for row in rows(tmp_path / "synthetic_truth.csv")] == ["m"] * 3
    assert tuple(float(row["rate"]) for row in rows(tmp_path / "synthetic_truth.csv")) == made.rates["m"]
    assert sorted(made.written) == sorted(tmp_path.iterdir())


def test_a_seed_gives_the_same_bytes_on_every_machine(tmp_path: Path) -> None:
    synthesize(tmp_path, problems=40, samples=5, models={"strong": 0.8, "weak": 1 / 3}, seed=7)
    every = b"".join(content for _, content in sorted(contents(tmp_path).items()))
    assert hashlib.sha256(every).hexdigest() == "d8210883b640c2004708682fa61df9dedd5472386a50f61ab446069a74778c3d"


def test_making_it_twice_changes_nothing(tmp_path: Path) -> None:
    synthesize(tmp_path, seed=3)
    before = contents(tmp_path)
    synthesize(tmp_path, seed=3)
    assert contents(tmp_path) == before
    assert {f"{model}_synthetic_fixes.csv" for model in DEFAULT_SYNTHETIC_RATES} < set(before)


def test_another_seed_replaces_what_the_first_made(tmp_path: Path) -> None:
    synthesize(tmp_path, models=SMALL, seed=1)
    before = contents(tmp_path)
    synthesize(tmp_path, models=SMALL, seed=2)
    after = contents(tmp_path)
    assert before.keys() == after.keys()
    assert before["problems.csv"] == after["problems.csv"]
    assert before["weak_synthetic_fixes.csv"] != after["weak_synthetic_fixes.csv"]


def test_another_model_leaves_everybody_elses_outcomes_alone(tmp_path: Path) -> None:
    synthesize(tmp_path / "two", models=SMALL)
    synthesize(tmp_path / "three", models={"new": 0.9, **SMALL})
    two, three = contents(tmp_path / "two"), contents(tmp_path / "three")
    assert two["weak_synthetic_fixes.csv"] == three["weak_synthetic_fixes.csv"]
    synthesize(tmp_path / "two", models={"new": 0.9})
    assert contents(tmp_path / "two")["weak_synthetic_fixes.csv"] == two["weak_synthetic_fixes.csv"]
    synthesize(tmp_path / "two", models=SMALL, seed=9)


def test_outcomes_can_be_those_of_problems_that_are_there_already(tmp_path: Path) -> None:
    (tmp_path / "problems.csv").write_text("oid\nmine\n")
    made = synthesize(tmp_path, samples=2, models={"m": 1}, oids=["mine", 'a, "b"', "mine"])
    assert [row["oid"] for row in rows(tmp_path / "m_synthetic_fixes.csv")] == ["mine", "mine", 'a, "b"', 'a, "b"']
    assert (tmp_path / "problems.csv").read_text() == "oid\nmine\n"
    assert tmp_path / "problems.csv" not in made.written


@pytest.mark.parametrize("name", ["problems.csv", "weak_synthetic_fixes.csv", "synthetic_truth.csv", "synthetic.json"])
def test_a_file_that_is_not_ours_stops_everything_before_the_first_write(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("precious\n")
    with pytest.raises(InputError) as caught:
        synthesize(tmp_path, models=SMALL)
    assert str(caught.value) == (
        f"{tmp_path / name}: not as `steelyard synth` wrote it, so it stays; move it away or choose another folder"
    )
    assert contents(tmp_path) == {name: b"precious\n"}


def test_a_file_that_was_changed_since_is_not_ours_any_more(tmp_path: Path) -> None:
    synthesize(tmp_path, models=SMALL)
    with (tmp_path / "weak_synthetic_fixes.csv").open("a") as file:
        file.write("corrected,1,True\n")
    before = contents(tmp_path)
    with pytest.raises(InputError, match=r"weak_synthetic_fixes\.csv: not as `steelyard synth` wrote it"):
        synthesize(tmp_path, models=SMALL, seed=1)
    assert contents(tmp_path) == before


def test_every_file_in_the_way_is_named(tmp_path: Path) -> None:
    for name in ("problems.csv", "strong_synthetic_fixes.csv"):
        (tmp_path / name).mkdir()
    with pytest.raises(InputError) as caught:
        synthesize(tmp_path, models=SMALL)
    assert [Path(problem.where).name for problem in caught.value.problems] == [
        "problems.csv",
        "strong_synthetic_fixes.csv",
    ]


@pytest.mark.parametrize("target", ["elsewhere.csv", "nowhere.csv"])
def test_a_link_is_never_written_through(tmp_path: Path, target: str) -> None:
    (tmp_path / "elsewhere.csv").write_text("precious\n")
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "problems.csv").symlink_to(tmp_path / target)
    with pytest.raises(InputError, match=r"problems\.csv: not as"):
        synthesize(folder)
    assert (tmp_path / "elsewhere.csv").read_text() == "precious\n"
    assert not (tmp_path / "nowhere.csv").exists()


def test_a_link_to_what_we_wrote_is_not_what_we_wrote(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    synthesize(folder)
    (folder / "problems.csv").rename(tmp_path / "kept.csv")
    (folder / "problems.csv").symlink_to(tmp_path / "kept.csv")
    with pytest.raises(InputError, match=r"problems\.csv: not as"):
        synthesize(folder, problems=5)


@pytest.mark.parametrize("model", ["", "a/b", "..", ".hidden", "a\nb", "a\x1b[31m", " a", "\udcff"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, model: str) -> None:
    with pytest.raises(InputError, match="names a file, so it cannot be empty, hidden, or contain slashes") as caught:
        synthesize(tmp_path, models={model: 0.5})
    assert str(caught.value).isprintable()
    assert list(tmp_path.iterdir()) == []


def test_all_that_is_wrong_with_the_arguments_is_said_at_once(tmp_path: Path) -> None:
    models = {"a": 1.5, "b": float("nan"), "c": -0.1, "m" * 201: 1, "x": 1, "X": 1}
    with pytest.raises(InputError) as caught:
        synthesize(tmp_path, problems=0, samples=0, models=models)
    assert [str(problem).replace("m" * 80, "m") for problem in caught.value.problems] == [
        "problems: there must be at least one",
        "samples: expected at least 1, got 0",
        'model "a": its rate must be between 0 and 1, got 1.5',
        'model "b": its rate must be between 0 and 1, got nan',
        'model "c": its rate must be between 0 and 1, got -0.1',
        'model "m...": names a file, so it cannot be longer than 200 bytes',
        'model "X": names the same file as "x"',
    ]
    with pytest.raises(InputError, match="models: there must be at least one"):
        synthesize(tmp_path, models={})


def test_a_folder_that_cannot_be_one_is_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file/data: cannot be written: Not a directory"):
        synthesize(tmp_path / "file" / "data")
    with pytest.raises(InputError, match="file: not a folder; choose another place"):
        synthesize(tmp_path / "file")


FOREVER = """
import sys
from pathlib import Path
from steelyard.engine.results.synthetic import synthesize
for seed in range(10**9):
    synthesize(Path(sys.argv[1]), problems=60, samples=5, models={"strong": 0.8, "weak": 0.3}, seed=seed)
"""


def test_a_kill_at_any_time_leaves_whole_files_that_are_still_ours(tmp_path: Path) -> None:
    chance = random.Random(5)
    for _ in range(12):
        process = subprocess.Popen([sys.executable, "-c", FOREVER, str(tmp_path)])
        while process.poll() is None and not (tmp_path / "synthetic.json").exists():
            time.sleep(0.01)
        time.sleep(0.2 + chance.random() / 4)
        process.kill()
        process.wait()
        visible = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
        assert visible == set(unchanged_files(tmp_path))
    synthesize(tmp_path, problems=60, samples=5, models=SMALL)
    assert "writing" not in json.loads((tmp_path / "synthetic.json").read_bytes())


def test_ctrl_c_leaves_nothing_behind_but_whole_files(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", FOREVER, str(tmp_path)], stderr=subprocess.DEVNULL)
    while process.poll() is None and not (tmp_path / "synthetic.json").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.wait()
    assert {path.name for path in tmp_path.iterdir()} == set(unchanged_files(tmp_path))


def test_a_full_disk_leaves_everything_as_it_was(tmp_path: Path) -> None:
    synthesize(tmp_path, problems=10, models=SMALL)
    before = contents(tmp_path)
    script = FOREVER.replace("problems=60", "problems=6000")
    limit = 50_000

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    ran = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], preexec_fn=limited, capture_output=True, text=True
    )
    assert ran.stderr.splitlines()[-1].endswith("no space left (File too large); free some space and try again")
    assert contents(tmp_path) == before


def test_nothing_takes_its_place_before_all_is_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with AtomicFiles() as fresh:
        fresh.write(tmp_path / "a", ["new"])
        assert (tmp_path / "a").read_text() == "old"
    assert contents(tmp_path) == {"a": b"old"}


def test_more_than_memory_holds_is_refused_before_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        synthesize(tmp_path, problems=10**12, samples=10**12)
    assert [str(problem) for problem in caught.value.problems] == [
        "problems: expected at most 10,000,000, got 1,000,000,000,000",
        "samples: expected at most 1,000,000, got 1,000,000,000,000",
    ]
