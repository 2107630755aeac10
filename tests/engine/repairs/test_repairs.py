"""Recorded repairs: what is read, what is left alone, and what is written."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steelyard.engine.repairs.config import EXPECTED_VALUES, EvaluationConfig
from steelyard.engine.repairs.evaluate import evaluate
from steelyard.engine.results.synthetic import synthesize
from steelyard.errors import DiskFullError, InputError
from steelyard.stats.passk import pass_at_k

ROOT = Path(__file__).parents[3]
HEADER = "oid,iteration_id,plausible_fix\n"
UNJUDGED = "oid,iteration_id,fixed_code\np,1,x\n"


class Place:
    """A folder with a config, fixes beside it, and nothing written yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fixes, self.out = folder / "fixes", folder / "out"
        self.config = folder / "evaluation_config.json"
        self.fixes.mkdir()
        self.ask()

    def ask(self, **changes: Any) -> None:
        self.config.write_text(json.dumps({"fixes_dir": "fixes", "output_dir": "out", **changes}))

    def record(self, name: str, **passed: str) -> Path:
        """A file of fixes: for each problem one letter per attempt, `+` for a plausible one."""
        path = self.fixes / name
        lines = [f"{oid},{i},{sign == '+'}\n" for oid, signs in passed.items() for i, sign in enumerate(signs, 1)]
        path.write_text(HEADER + "".join(lines))
        return path

    def summary(self) -> list[list[str]]:
        return table(self.out / "summary_pass_at_k.csv")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def table(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(config: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        evaluate(config)
    return [str(problem) for problem in caught.value.problems]


def test_every_model_gets_its_row_in_the_summary_by_name(place: Place) -> None:
    place.record("zeta_fixes.csv", p="+-", q="++")
    place.record("alpha_fixes.csv", p="--", q="+-")
    place.ask(k_values=[1, 2, 5])
    found = evaluate(place.config)
    assert place.summary() == [
        ["LLM", "pass@1", "pass@2", "pass@5"],
        ["alpha", "0.25", "0.5", ""],
        ["zeta", "0.75", "1.0", ""],
    ]
    assert [model.model for model in found.standings.models] == ["alpha", "zeta"]
    assert [path.name for path in found.written] == [
        "alpha_pass_at_k.csv",
        "zeta_pass_at_k.csv",
        "summary_pass_at_k.csv",
    ]


def test_a_models_own_file_says_how_sure_the_numbers_are_and_what_they_rest_on(place: Place) -> None:
    (place.fixes / "problems.csv").write_text("oid,filename\np,a.tf\nq,b.tf\nr,c.tf\n")
    place.record("m_fixes.csv", p="+-+", q="---")
    place.ask(k_values=[1, 5])
    found = evaluate(place.config)
    header, row = table(place.out / "m_pass_at_k.csv")
    assert header == [
        *("LLM", "pass@1", "pass@5", "pass@1 low", "pass@1 high", "pass@5 low", "pass@5 high"),
        *("problems", "attempts", "correct", "unscored"),
    ]
    estimate = found.standings.models[0].pass_at[1]
    assert row[:3] == ["m", repr(estimate.value), ""]
    assert row[3:5] == ["" if end is None else repr(end) for end in (estimate.low, estimate.high)]
    assert row[5:] == ["", "", "3", "6", "2", "1"]


def test_numbers_are_written_to_the_last_digit(place: Place) -> None:
    place.record("m_fixes.csv", p="+--+---", q="+------", r="-------")
    place.ask(k_values=[3])
    evaluate(place.config)
    expected = sum(pass_at_k(7, c, 3) or 0 for c in (2, 1, 0)) / 3
    assert float(place.summary()[1][1]) == pytest.approx(expected, abs=1e-15)


def test_evaluating_twice_gives_the_same_bytes_and_reads_none_of_its_own(place: Place) -> None:
    place.record("a_fixes.csv", p="+-", q="++")
    place.record("b_fixes.csv", p="--", q="+-")
    place.ask(output_dir="fixes")
    first = evaluate(place.config)
    before = contents(place.folder)
    second = evaluate(place.config)
    assert contents(place.folder) == before
    assert first == second


def test_files_of_an_earlier_evaluation_stay(place: Place) -> None:
    place.record("a_fixes.csv", p="+-")
    place.record("b_fixes.csv", p="--")
    evaluate(place.config)
    place.ask(models=["a"])
    evaluate(place.config)
    assert [row[0] for row in place.summary()] == ["LLM", "a"]
    assert (place.out / "b_pass_at_k.csv").exists()


@pytest.mark.parametrize(
    ("models", "data_type", "left"),
    [
        ([], "all", {"gemini", "gemini_synthetic", "gpt"}),
        (["gem"], "all", {"gemini", "gemini_synthetic"}),
        (["gem"], "real", {"gemini"}),
        ([], "synthetic", {"gemini"}),
        (["gpt", "gemini"], "real", {"gemini", "gpt"}),
    ],
)
def test_models_and_data_type_choose_files_by_name(
    place: Place, models: list[str], data_type: str, left: set[str]
) -> None:
    for name in ("gemini_fixes.csv", "gemini_synthetic_fixes.csv", "gpt_fixes.csv"):
        place.record(name, p="+")
    place.ask(models=models, data_type=data_type)
    assert {model.model for model in evaluate(place.config).standings.models} == left


def test_a_name_that_no_file_has_is_warned_of(place: Place) -> None:
    place.record("gemini_fixes.csv", p="+")
    place.ask(models=["gemini", "Gemini"])
    problems = evaluate(place.config).problems
    assert [problem.what for problem in problems] == ['"models": no file has "Gemini" in its name']
    assert not any(problem.fatal for problem in problems)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"models": ["claude"]}, 'of a_fixes.csv, b_fixes.csv, "models" ["claude"] leaves nothing'),
        ({"data_type": "synthetic"}, 'of a_fixes.csv, b_fixes.csv, "data_type" "synthetic" leaves nothing'),
        (
            {"models": ["b"], "data_type": "synthetic"},
            'of a_fixes.csv, b_fixes.csv, "models" ["b"] leaves b_fixes.csv, of which "data_type" "synthetic" leaves nothing',
        ),
    ],
)
def test_when_nothing_is_left_it_says_what_was_there_and_who_removed_it(
    place: Place, changes: dict[str, Any], said: str
) -> None:
    place.record("a_fixes.csv", p="+")
    place.record("b_fixes.csv", p="+")
    place.ask(**changes)
    assert refused(place.config) == [f"{place.fixes}: no fixes left to evaluate: {said}"]
    assert not place.out.exists()


def test_problems_truth_outcomes_and_results_are_never_fixes(place: Place) -> None:
    for name in ("problems.csv", "synthetic_truth.csv", "m_outcomes.csv", "m_pass_at_k.csv", "summary_pass_at_k.csv"):
        place.record(name, p="+")
    place.record(".hidden_fixes.csv", p="+")
    (place.fixes / "folder_fixes.csv").mkdir()
    (place.fixes / "notes.txt").write_text("nothing")
    (said,) = refused(place.config)
    assert said.startswith(f"{place.fixes}: no CSV of fixes here; expected files such as gemini_fixes.csv")


def test_problems_are_those_of_the_output_folder_then_those_of_the_fixes_then_the_fixes_own(place: Place) -> None:
    place.record("m_fixes.csv", p="+", q="-")
    assert evaluate(place.config).standings.models[0].cases == 2
    (place.fixes / "problems.csv").write_text("oid\np\nq\nr\n")
    assert evaluate(place.config).standings.models[0].unscored == ("r",)
    (place.out / "problems.csv").write_text("oid\np\n")
    found = evaluate(place.config)
    assert (found.standings.models[0].cases, found.standings.models[0].correct) == (1, 1)
    assert len(found.problems) == 1


@pytest.mark.parametrize("results_dir", [None, "judged"])
def test_fixes_without_an_outcome_take_the_recorded_one(place: Place, results_dir: str | None) -> None:
    (place.fixes / "m_fixes.csv").write_text(UNJUDGED)
    judged = place.folder / (results_dir or "out")
    judged.mkdir()
    (judged / "m_outcomes.csv").write_text(HEADER + "p,1,yes\n")
    place.ask(results_dir=results_dir)
    (model,) = evaluate(place.config).standings.models
    assert (model.model, model.attempts, model.correct) == ("m", 1, 1)


def test_an_outcome_in_the_fixes_comes_before_a_recorded_one(place: Place) -> None:
    place.record("m_fixes.csv", p="-")
    place.out.mkdir()
    (place.out / "m_outcomes.csv").write_text(HEADER + "p,1,yes\n")
    assert evaluate(place.config).standings.models[0].correct == 0


def test_every_file_that_is_not_judged_and_holds_no_repairs_is_named_and_nothing_is_written(place: Place) -> None:
    place.record("good_fixes.csv", p="+")
    (place.fixes / "a_fixes.csv").write_text("oid,iteration_id,comment\np,1,x\n")
    (place.fixes / "b_fixes.csv").write_text("oid,iteration_id,plausible_fixes\np,1,True\n")
    place.out.mkdir()
    (place.out / "b_outcomes.csv").write_text("oid,iteration_id,is_fixed\np,1,True\n")
    (place.fixes / "c_fixes.csv").write_text(HEADER + "p,1,perhaps\n")
    before = contents(place.folder)
    for generate in (False, True):
        place.ask(generate_synthetic_data=generate)
        before["evaluation_config.json"] = place.config.read_bytes()
        first, second, *rest = refused(place.config)
        assert first == (
            f'{place.fixes}/a_fixes.csv: not judged: it has no column "plausible_fix" (known: comment, iteration_id, '
            f"oid), there is no {place.out}/a_outcomes.csv that has one, and it has no repairs that could be judged; "
            "add the column or that file, or a column fixed_file, fixed_block_content or fixed_code"
        )
        assert 'did you mean "plausible_fixes"?' in second
        assert [line for line in rest if "c_fixes.csv:2" in line]
        assert contents(place.folder) == before


def test_an_unreadable_outcome_writes_nothing(place: Place) -> None:
    place.record("a_fixes.csv", p="+")
    (place.fixes / "b_fixes.csv").write_text(HEADER + "p,1,perhaps\n")
    assert len(refused(place.config)) == 1
    assert not place.out.exists()


def test_packed_fixes_are_read(place: Place) -> None:
    with gzip.open(place.fixes / "m_fixes.csv.gz", "wt") as file:
        file.write(HEADER + "p,1,True\n")
    (model,) = evaluate(place.config).standings.models
    assert (model.model, model.correct) == ("m", 1)


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b\x08\x00garbage", b"\xff\xfe\x00", b"a" * 3_000_000])
def test_a_damaged_file_is_an_error_that_names_it(place: Place, content: bytes) -> None:
    (place.fixes / "m_fixes.csv").write_bytes(content)
    (place.fixes / "n_fixes.csv.gz").write_bytes(content)
    places = {line.partition(":")[0] for line in refused(place.config)}
    assert places == {str(place.fixes / name) for name in ("m_fixes.csv", "n_fixes.csv.gz")}


def test_links_among_the_fixes_are_read_and_never_written_through(place: Place) -> None:
    elsewhere = place.folder / "elsewhere"
    elsewhere.mkdir()
    place.record("m_fixes.csv", p="+").rename(elsewhere / "m.csv")
    (place.fixes / "m_fixes.csv").symlink_to(elsewhere / "m.csv")
    (elsewhere / "precious.csv").write_text("precious\n")
    for name in ("m_pass_at_k.csv", "summary_pass_at_k.csv", "gemini_synthetic_fixes.csv"):
        (place.fixes / name).symlink_to(elsewhere / "precious.csv")
    before = contents(elsewhere)
    place.ask(output_dir="fixes", generate_synthetic_data=True)
    assert "gemini_synthetic_fixes.csv: not as `steelyard synth` wrote it" in refused(place.config)[0]
    (place.fixes / "gemini_synthetic_fixes.csv").unlink()
    evaluate(place.config)
    assert contents(elsewhere) == before
    assert table(place.fixes / "m_pass_at_k.csv")[1][0] == "m"


def test_a_link_that_leads_nowhere_is_named(place: Place) -> None:
    (place.fixes / "m_fixes.csv").symlink_to("nowhere.csv")
    (said,) = refused(place.config)
    assert "m_fixes.csv" in said


def test_outcomes_are_made_up_when_asked_for_and_the_same_every_time(place: Place) -> None:
    place.fixes.rmdir()
    place.ask(fixes_dir=str(place.fixes), output_dir=str(place.out), generate_synthetic_data=True)
    found = evaluate(place.config)
    assert {model.model for model in found.standings.models} == {"gemini", "chatgpt4.1", "baseline"}
    assert found.problems == ()
    before = contents(place.folder)
    assert evaluate(place.config) == found
    assert contents(place.folder) == before


def test_made_up_outcomes_are_of_the_models_that_the_config_names(place: Place) -> None:
    place.ask(generate_synthetic_data=True, models=["one", "two"], data_type="synthetic", k_values=[1, 20])
    found = evaluate(place.config)
    assert [(model.model, model.attempts) for model in found.standings.models] == [("one", 2000), ("two", 2000)]
    place.ask(generate_synthetic_data=True, models=["meta/llama"])
    assert "names a file" in refused(place.config)[0]


def test_made_up_outcomes_are_of_the_problems_that_are_there(place: Place) -> None:
    (place.fixes / "problems.csv").write_text("oid,filename\np,a.tf\nq,b.tf\n")
    place.ask(generate_synthetic_data=True, models=["m"])
    (model,) = evaluate(place.config).standings.models
    assert (model.cases, model.attempts) == (2, 20)
    assert (place.fixes / "problems.csv").read_text() == "oid,filename\np,a.tf\nq,b.tf\n"


def test_made_up_problems_do_not_push_real_ones_out(place: Place) -> None:
    synthesize(place.fixes, problems=5, models={"m": 0.5})
    place.record("real_fixes.csv", p="+", q="-")
    place.ask(generate_synthetic_data=True, models=["m", "real"])
    found = {model.model: model for model in evaluate(place.config).standings.models}
    assert {name: model.cases for name, model in found.items()} == {"m": 2, "real_synthetic": 2, "real": 2}


@pytest.mark.parametrize("name", ["problems.csv", "real_fixes.csv"])
def test_no_outcome_is_made_up_for_an_oid_that_stands_for_several_problems(place: Place, name: str) -> None:
    lines = ["p,1,True,p-one", "p,1,False,p-two", "q,1,True,q-one"]
    (place.fixes / name).write_text("\n".join([HEADER.strip() + ",specific_oid", *lines]) + "\n")
    place.ask(generate_synthetic_data=True, models=["m"])
    (model,) = evaluate(place.config).standings.models
    assert (model.attempts, model.unscored) == (10, ("p-one", "p-two") if name == "problems.csv" else ())


def test_paths_are_those_of_the_working_directory_first(place: Place) -> None:
    here = place.folder / "here"
    (here / "fixes").mkdir(parents=True)
    place.record("beside_fixes.csv", p="+")
    shutil.copy(place.fixes / "beside_fixes.csv", here / "fixes" / "nearer_fixes.csv")
    with contextlib.chdir(here):
        assert str(evaluate(place.config).written[0]) == "out/nearer_pass_at_k.csv"
    assert not place.out.exists()
    shutil.rmtree(here / "fixes")
    with contextlib.chdir(here):
        assert evaluate(place.config).written[0] == place.out / "beside_pass_at_k.csv"


def test_a_folder_that_is_nowhere_is_said_with_the_places_looked_at(place: Place) -> None:
    place.ask(fixes_dir="missing")
    assert refused(place.config) == [
        f'{place.config}: "fixes_dir": no folder "missing" in the working directory, nor beside this file'
    ]


def test_all_that_is_wrong_with_a_config_is_said_at_once(place: Place) -> None:
    wrong = {
        "fixes_dir": 5,
        "clones_dir": "a\0b",
        "results_dir": "",
        "k_values": [1, 0],
        "models": "gemini",
        "generate_synthetic_data": "no",
        "data_type": "fake",
    }
    place.config.write_text(json.dumps(wrong))
    assert refused(place.config) == [
        f'{place.config}: "fixes_dir": expected the path of a folder, such as "llms_fixes_results", got 5',
        f'{place.config}: no "output_dir"; expected the path of a folder, such as "evaluation/data"',
        f'{place.config}: "clones_dir": expected the path of a folder, such as "clones", got "a\\u0000b"',
        f'{place.config}: "results_dir": expected the path of a folder, or null, got ""',
        f'{place.config}: "k_values": expected whole numbers from 1 to 1000000000, such as [1, 5, 10], got [1, 0]',
        f'{place.config}: "models": expected parts of file names, such as ["gemini"], or [] for all, got "gemini"',
        f'{place.config}: "generate_synthetic_data": expected true or false, got "no"',
        f'{place.config}: "data_type": expected "all", "synthetic" or "real", got "fake"',
    ]


@pytest.mark.parametrize("k_values", [[], [True], [1.5], ["1"], 5, None, [10**10], [-1]])
def test_k_is_a_whole_number_from_1(place: Place, k_values: Any) -> None:
    place.ask(k_values=k_values)
    assert '"k_values": expected whole numbers from 1' in refused(place.config)[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{\n  "fixes_dir": "x",\n  nothing}', ":3: not JSON: "),
        (b"", ":1: not JSON: Expecting value in column 1"),
        (b"[]", ': expected an object with "fixes_dir" and "output_dir"'),
        (b'{"fixes_dir": "\xff"}', ": not UTF-8: invalid start byte at byte 16"),
        (b"[" * 100_000, ": not a config: nested too deeply"),
        (b'{"fixes_dir": "x", "output_dir": "\\ud800"}', ': "output_dir": expected the path of a folder'),
        (b'{"k_values": [' + b"9" * 5000 + b"]}", ": not a config: nested too deeply, or a number too long"),
    ],
)
def test_a_config_that_is_none_is_refused_in_one_sentence(place: Place, content: bytes, said: str) -> None:
    place.config.write_bytes(content)
    (message,) = refused(place.config)
    assert message.startswith(f"{place.config}{said}")


def test_a_missing_config_is_named(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.json") == [
        f"{tmp_path}/none.json: No such file or directory; name the configuration file with --config"
    ]


def test_an_unknown_key_is_warned_of_with_the_nearest_known_one(place: Place) -> None:
    place.record("m_fixes.csv", p="+")
    place.ask(k_value=[1], **{"\x1b[31m": 1})
    first, second = evaluate(place.config).problems
    assert first.what.startswith('unknown key "k_value" (known: clones_dir, ')
    assert first.what.endswith('did you mean "k_values"?)')
    assert second.what.isprintable()


def test_a_byte_order_mark_is_no_mistake(place: Place) -> None:
    place.record("m_fixes.csv", p="+")
    place.config.write_bytes(b"\xef\xbb\xbf" + place.config.read_bytes())
    assert evaluate(place.config).problems == ()


def test_an_output_folder_that_cannot_be_written_is_one_sentence(place: Place) -> None:
    place.record("m_fixes.csv", p="+")
    (place.folder / "file").write_text("")
    place.ask(output_dir="file/out")
    assert refused(place.config) == [f"{place.folder}/file/out: cannot be written: Not a directory"]


def test_a_model_whose_results_would_be_the_summary_is_refused(place: Place) -> None:
    place.record("summary_fixes.csv", p="+")
    assert refused(place.config) == [
        'summary_pass_at_k.csv would be written twice; rename the fixes of "summary"',
    ]
    assert not place.out.exists()


def test_a_name_in_another_encoding_is_written_as_text(place: Place) -> None:
    place.record(os.fsdecode(b"m\xff\x1b_fixes.csv"), p="+")
    evaluate(place.config)
    assert place.summary()[1][0] == "m⟨U+DCFF⟩⟨U+001B⟩"
    assert (place.out / "m\\udcff\\u001b_pass_at_k.csv").exists()


def test_a_full_disk_leaves_the_old_results(place: Place) -> None:
    place.record("m_fixes.csv", p="+")
    evaluate(place.config)
    before = contents(place.out)
    place.record("n_fixes.csv", p="-")
    script = f"from pathlib import Path; from steelyard.engine.repairs.evaluate import evaluate; evaluate(Path({str(place.config)!r}))"

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

    ran = subprocess.run([sys.executable, "-B", "-c", script], preexec_fn=limited, capture_output=True, text=True)
    last = ran.stderr.splitlines()[-1]
    assert last.startswith(f"steelyard.errors.{DiskFullError.__name__}: {place.out}: no space left")
    assert contents(place.out) == before


def test_the_example_is_evaluated_as_it_is(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "repairs", tmp_path / "repairs")
    found = evaluate(tmp_path / "repairs" / "evaluation_config.json")
    assert found.problems == ()
    assert [model.model for model in found.standings.models] == ["large", "medium", "small"]


def test_every_key_of_the_config_is_explained() -> None:
    assert set(EXPECTED_VALUES) == set(EvaluationConfig.__struct_fields__)
    page = (ROOT / "docs" / "outcomes.md").read_text("utf-8")
    assert [name for name in EXPECTED_VALUES if f"`{name}`" not in page] == []


@pytest.mark.parametrize("key", ["fixes_dir", "output_dir", "results_dir"])
def test_a_place_where_one_cannot_even_look_is_one_sentence(place: Place, key: str) -> None:
    (place.fixes / "m_fixes.csv").write_text(UNJUDGED)
    place.ask(**{key: "x" * 300})
    (said,) = refused(place.config)
    assert "xxx" in said
    assert said.endswith(": cannot be read: File name too long")
