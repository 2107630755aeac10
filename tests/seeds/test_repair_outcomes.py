"""Pass@k of recorded repairs, as the document of the Terraform repair evaluator has it, by its own files and flags.

Beside these: `outcomes/test_read_fixes.py` (every form of the CSV files), `engine/repairs/test_repairs.py` (every key of the
configuration), `engine/repairs/test_repair_judging.py` (repairs applied and validated, with the real Terraform too),
`engine/results/test_synthetic.py` (synthetic outcomes), `cli/test_cli.py` (`synth` then `repairs`).
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from support.command_line import steelyard

SAMPLES = 20
DOCUMENT_COUNTS = (13, 13, 14, 15, 15, 16, 16, 17, 17, 18)
"""How often each of ten problems was repaired in twenty attempts: counts that give the figures the document prints."""
COMMAND = ("passk", "--problems-csv", "evaluation/data/problems.csv", "--k-values", "1", "5", "10", "--fixes-csv")


def mean_pass_at_k(counts: Sequence[int], k: int, n: int = SAMPLES) -> float:
    """The mean of 1 - C(n-c, k) / C(n, k) over problems."""
    return float(sum(1 - Fraction(math.comb(n - c, k), math.comb(n, k)) for c in counts) / len(counts))


def write_fixes(file: Path, counts: Sequence[int], n: int = SAMPLES, passed: str = "plausible_fix") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = "".join(
        f"problem-{number:02},{attempt},{attempt <= count}\n"
        for number, count in enumerate(counts)
        for attempt in range(1, n + 1)
    )
    file.write_text(f"oid,iteration_id,{passed}\n{rows}", "utf-8")


def write_problems(file: Path, problems: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"problem-{number:02},modules/{number}/main.tf\n" for number in range(problems))
    file.write_text(f"oid,filename\n{rows}", "utf-8")


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The root of a repository laid out as theirs."""
    data = tmp_path / "evaluation" / "data"
    write_problems(data / "problems.csv", len(DOCUMENT_COUNTS))
    write_fixes(data / "gemini_synthetic_fixes.csv", DOCUMENT_COUNTS)
    return tmp_path


def test_the_example_output_of_the_document_is_printed_for_such_data(place: Path) -> None:
    ran = steelyard(place, *COMMAND, "evaluation/data/gemini_synthetic_fixes.csv", "--format", "csv")
    assert ran.returncode == 0, ran.stderr
    (row,) = csv.DictReader(ran.stdout.splitlines())
    found = {k: float(row[f"pass@{k}"]) for k in (1, 5, 10)}
    assert row["LLM"] == "gemini"
    assert [f"{found[k]:.6f}" for k in (5, 10)] == ["0.999678", "1.000000"]
    assert found == {k: pytest.approx(mean_pass_at_k(DOCUMENT_COUNTS, k), abs=1e-15) for k in (1, 5, 10)}
    assert found[1] == pytest.approx(0.77, abs=1e-15)
    table = steelyard(place, *COMMAND, "evaluation/data/gemini_synthetic_fixes.csv").stdout
    assert re.search(r"^gemini +0\.770 ", table, re.MULTILINE), table


def test_pass_at_k_of_several_models_is_exact_to_the_last_digits(place: Path) -> None:
    counts = {
        "gpt": (0, 0, 1, 2, 3, 5, 8, 13, 20, 20),
        "llama": (0,) * 9 + (1,),
        "sonnet": (20,) * 10,
    }
    files = []
    for model, passes in counts.items():
        files.append(f"evaluation/data/{model}_fixes.csv")
        write_fixes(place / files[-1], passes)
    ran = steelyard(place, *COMMAND, *files, "--format", "json")
    assert ran.returncode == 0, ran.stderr
    found = {model["model"]: model for model in json.loads(ran.stdout)["models"]}
    for model, passes in counts.items():
        assert (found[model]["cases"], found[model]["attempts"], found[model]["correct"]) == (10, 200, sum(passes))
        for k in (1, 5, 10):
            expected = mean_pass_at_k(passes, k)
            assert found[model]["pass_at"][str(k)]["value"] == pytest.approx(expected, abs=1e-15)


def test_k_above_the_attempts_of_every_problem_has_no_figure(place: Path) -> None:
    write_fixes(place / "few_fixes.csv", (0, 1, 2, 3, 4, 4, 4, 4, 4, 4), n=4)
    ran = steelyard(place, *COMMAND, "few_fixes.csv", "--format", "json")
    (model,) = json.loads(ran.stdout)["models"]
    assert model["pass_at"]["1"]["value"] == pytest.approx(30 / 40)
    assert [model["pass_at"][k]["value"] for k in ("5", "10")] == [None, None]


def test_outcomes_of_another_level_are_taken_by_their_column(place: Path) -> None:
    passes = (20, 0, 7, 20, 3, 0, 0, 11, 20, 1)
    write_fixes(place / "gemini_fixes.csv", passes, passed="is_fixed")
    ran = steelyard(place, *COMMAND, "gemini_fixes.csv", "--passed", "is_fixed", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    (model,) = json.loads(ran.stdout)["models"]
    assert model["pass_at"]["5"]["value"] == pytest.approx(mean_pass_at_k(passes, 5), abs=1e-15)


# ---- the configuration

DOCUMENT_CONFIG = """{
    "fixes_dir": "llms_fixes_results",
    "output_dir": "evaluation/data",
    "clones_dir": "../TFReproducer/clones",
    "k_values": [1, 5, 10],
    "models": ["gemini", "chatgpt4.1"],
    "generate_synthetic_data": false,
    "data_type": "all"
}
"""
RECORDED = {
    "gemini_fixes.csv": (0, 1, 2, 3, 4, 5, 6, 7, 8, 20),
    "gemini_synthetic_fixes.csv": (20, 19, 18, 17, 16, 15, 14, 13, 12, 11),
    "chatgpt4.1_fixes.csv": (10,) * 10,
    "codellama_fixes.csv": (1,) * 10,
}


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    """Outcomes of four files, and the configuration of the document, word for word."""
    write_problems(tmp_path / "evaluation" / "data" / "problems.csv", 10)
    for name, counts in RECORDED.items():
        write_fixes(tmp_path / "llms_fixes_results" / name, counts)
    (tmp_path / "evaluation_config.json").write_text(DOCUMENT_CONFIG, "utf-8")
    return tmp_path


def evaluated(place: Path, **changes: Any) -> list[dict[str, str]]:
    """The summary that the configuration makes, with some keys changed."""
    config = json.loads(DOCUMENT_CONFIG) | changes
    (place / "evaluation_config.json").write_text(json.dumps(config), "utf-8")
    ran = steelyard(place, "repairs", "--config", "evaluation_config.json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return rows_of(place / "evaluation" / "data" / "summary_pass_at_k.csv")


def expected_rows(files: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows of a summary: models with the file that each comes from, in the order of names."""
    return [
        {"LLM": model} | {f"pass@{k}": pytest.approx(mean_pass_at_k(RECORDED[file], k), abs=1e-15) for k in (1, 5, 10)}
        for model, file in sorted(files.items())
    ]


def numbers(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    return [{name: value if name == "LLM" else float(value) for name, value in row.items()} for row in rows]


def test_the_configuration_of_the_document_is_evaluated_as_it_stands(configured: Path) -> None:
    ran = steelyard(configured, "repairs")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    out = configured / "evaluation" / "data"
    summary = numbers(rows_of(out / "summary_pass_at_k.csv"))
    by_model = {row["LLM"]: row for row in summary}
    # models are parts of names: codellama is left out, and both files of gemini count
    assert len(summary) == 3
    assert not any("codellama" in model for model in by_model)
    expected = {
        k: sorted(mean_pass_at_k(counts, k) for name, counts in RECORDED.items() if "codellama" not in name)
        for k in (1, 5, 10)
    }
    for k, values in expected.items():
        assert sorted(row[f"pass@{k}"] for row in summary) == pytest.approx(values, abs=1e-15)
    for model, row in by_model.items():
        (own,) = rows_of(out / f"{model}_pass_at_k.csv")
        assert {name: value if name == "LLM" else float(value) for name, value in own.items() if name in row} == row


@pytest.mark.parametrize(
    ("data_type", "files"),
    [
        ("synthetic", {"gemini": "gemini_synthetic_fixes.csv"}),
        ("real", {"gemini": "gemini_fixes.csv", "chatgpt4.1": "chatgpt4.1_fixes.csv"}),
    ],
)
def test_data_type_takes_the_synthetic_files_or_the_others(
    configured: Path, data_type: str, files: Mapping[str, str]
) -> None:
    assert numbers(evaluated(configured, data_type=data_type)) == expected_rows(files)


def test_no_models_means_all_of_them(configured: Path) -> None:
    found = evaluated(configured, models=[], data_type="real")
    names = {name.removesuffix("_fixes.csv"): name for name in RECORDED if "synthetic" not in name}
    assert numbers(found) == expected_rows(names)


def test_synthetic_data_is_generated_before_the_evaluation_where_that_is_asked_for(configured: Path) -> None:
    for file in (configured / "llms_fixes_results").iterdir():
        file.unlink()
    found = evaluated(configured, generate_synthetic_data=True, data_type="synthetic")
    assert {row["LLM"] for row in found} == {"gemini", "chatgpt4.1"}
    for row in found:
        (file,) = (configured / "llms_fixes_results").glob(f"{row['LLM']}*_fixes.csv")
        outcomes = [each["plausible_fix"] == "True" for each in rows_of(file)]
        # every problem has as many attempts, so pass@1 is the plain share
        assert float(row["pass@1"]) == pytest.approx(sum(outcomes) / len(outcomes), abs=1e-12)


def test_synthetic_outcomes_have_the_columns_of_the_document(tmp_path: Path) -> None:
    made = steelyard(tmp_path, "synth", "--out", "evaluation/data", "--models", "gemini=0.77", "--problems", "30")
    assert made.returncode == 0, made.stderr
    data = tmp_path / "evaluation" / "data"
    fixes, problems = rows_of(data / "gemini_synthetic_fixes.csv"), rows_of(data / "problems.csv")
    assert {"oid", "filename"} <= problems[0].keys()
    assert {"oid", "iteration_id", "plausible_fix"} <= fixes[0].keys()
    assert {row["oid"] for row in fixes} == {row["oid"] for row in problems}
    ran = steelyard(tmp_path, *COMMAND, "evaluation/data/gemini_synthetic_fixes.csv", "--format", "json")
    (model,) = json.loads(ran.stdout)["models"]
    share = sum(row["plausible_fix"] == "True" for row in fixes) / len(fixes)
    assert model["pass_at"]["1"]["value"] == pytest.approx(share, abs=1e-12)
