"""Repairs are judged in copies of their modules: what counts, what does not, and what survives a kill."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli import main as cli
from steelyard.engine.options import RunOptions
from steelyard.engine.repairs.evaluate import RepairEvaluation, evaluate
from steelyard.engine.repairs.reader import OUTCOME_COLUMNS
from steelyard.engine.results.headline_cache import summarise_and_cache
from steelyard.engine.results.query import run_query
from steelyard.errors import ExitCode, InputError
from steelyard.protocols import ProcessResult
from steelyard.records import Reply, Verdict
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import SandboxWorkspace, ZygoteSandbox
from steelyard.store.journal import Journal, StoredRun
from steelyard.verifiers.terraform.program import TERRAFORM_PROGRAM_VARIABLE
from steelyard.viewer.run_view import RunView, rows_with_text
from support.ray_nodes import needs_ray
from support.studies import with_slow
from support.toolchains import needs_terraform, terraform

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "terraform-repairs"
MAIN = 'output "a" {\n  value = var.wrong\n}\n\noutput "b" {\n  value = 1\n}\n'
"""A module with an error in its second line."""
RIGHT = MAIN.replace("var.wrong", '"right"')
BLOCK = 'output "a" {\n  value = "right"\n}\n'
SUMMARY = "Reference to undeclared input variable"
TARGET = {"line_start": "2", "line_end": "2", "summary": SUMMARY, "severity": "error"}
ANSWERS = rf"""
summary="{SUMMARY}"
[ "$1" = version ] && echo 'Terraform v1.9.8' && exit
grep -q CRASH main.tf && kill -9 $$
grep -q HANG main.tf && while :; do :; done
grep -q NONSENSE main.tf && echo 'all is well' && exit
list= count=0
for line in $(grep -n wrong main.tf | cut -d: -f1); do
  place="\"start\": {{\"line\": $line, \"column\": 1}}, \"end\": {{\"line\": $line, \"column\": 2}}"
  list="$list${{list:+, }}{{\"severity\": \"error\", \"summary\": \"$summary\", \"range\": {{\"filename\": \"main.tf\", $place}}}}"
  count=$((count + 1))
done
[ $count = 0 ] && valid=true || valid=false
echo "{{\"valid\": $valid, \"error_count\": $count, \"warning_count\": 0, \"diagnostics\": [$list]}}"
[ $valid = true ]
"""
"""A quick stand-in for Terraform, to which every line with the word in it is an error."""


class Counting(ZygoteSandbox):
    """A sandbox that counts validations, and copies at the same time."""

    def __init__(self) -> None:
        super().__init__(strongest_isolation(allow_weak=True))
        self.validations = self.copies = self.most_copies = 0

    @asynccontextmanager
    async def workspace(self, files: Mapping[str, str | bytes], **more: Any) -> AsyncIterator[Counted]:
        async with super().workspace(files, **more) as place:
            self.copies += 1
            self.most_copies = max(self.copies, self.most_copies)
            yield Counted(place, self)
        self.copies -= 1


class Counted(SandboxWorkspace):
    def __init__(self, place: SandboxWorkspace, sandbox: Counting) -> None:
        super().__init__(place._worker)
        self._sandbox = sandbox

    async def run(self, argv: Sequence[str], **more: Any) -> ProcessResult:
        self._sandbox.validations += "validate" in argv
        return await super().run(argv, **more)


class Scene:
    """A folder with a config, a clone, and fixes of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "evaluation_config.json"
        self.fixes, self.out, self.clones = folder / "fixes", folder / "out", folder / "clones"
        self.fixes.mkdir()
        self.ask()
        self.clone("p", {"main.tf": MAIN})
        self.sandbox = Counting()

    def ask(self, **changes: Any) -> None:
        self.config.write_text(json.dumps({"fixes_dir": "fixes", "output_dir": "out", "k_values": [1], **changes}))

    def clone(self, project: str, files: Mapping[str, str]) -> None:
        for name, content in files.items():
            path = self.clones / project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def propose(self, *repairs: str | Mapping[str, str], model: str = "m", **common: str) -> None:
        """Fixes: repairs of the whole file, or of whatever their cells say."""
        usual = {"oid": "o", "project_name": "p", "filename": "main.tf", **TARGET, **common}
        rows = [
            {**usual, "iteration_id": str(number), **({"fixed_file": repair} if isinstance(repair, str) else repair)}
            for number, repair in enumerate(repairs, 1)
        ]
        write_table(self.fixes / f"{model}_fixes.csv", rows)

    def judge(self, *, seconds: float = 60, **options: Any) -> RepairEvaluation:
        self.sandbox = Counting()
        return evaluate(self.config, RunOptions(sandbox=self.sandbox, **options), seconds=seconds)

    def refused(self) -> list[str]:
        with pytest.raises(InputError) as caught:
            self.judge()
        return [str(problem) for problem in caught.value.problems]

    def outcomes(self, model: str = "m") -> list[dict[str, str]]:
        return read_table(self.out / f"{model}_outcomes.csv")


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv(TERRAFORM_PROGRAM_VARIABLE, str(stand_in(tmp_path / "bin")))
    return Scene(tmp_path)


def stand_in(folder: Path, answers: str = ANSWERS) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "terraform"
    path.write_text(f"#!/bin/sh\n{answers}")
    path.chmod(0o755)
    return path


def write_table(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    rows = list(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)), restval="")
        writer.writeheader()
        writer.writerows(rows)


def read_table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(rows: Iterable[Mapping[str, str]], name: str) -> list[str]:
    return [row[name] for row in rows]


def checksums(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path.relative_to(folder)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tables(folder: Path) -> dict[str, bytes]:
    """All that is written beside the run, which has its moments and its name."""
    return {name: content for name, content in contents(folder).items() if not name.startswith("run/")}


def verdicts(scene: Scene) -> int:
    """How many verdicts are in the journal of the run."""
    journal = scene.out / "run" / "attempts.jsonl"
    return journal.read_bytes().count(b'{"kind":"verdict"') if journal.exists() else 0


# ---- the whole road, with the real Terraform


@needs_terraform()
def test_the_example_is_judged_as_its_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(TERRAFORM_PROGRAM_VARIABLE, str(terraform()))
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "terraform-repairs")
    monkeypatch.chdir(tmp_path)
    clones = Path("examples/terraform-repairs/clones")
    before = checksums(clones)
    code = cli.main(["repairs", "--config", "examples/terraform-repairs/evaluation_config.json"])
    told = capsys.readouterr()
    assert code == 0
    page = (ROOT / "docs" / "outcomes.md").read_text("utf-8")
    (shown,) = re.findall(
        r"^```text\n\$ steelyard repairs --config examples/terraform.*\n((?:.*\n)*?)```$", page, re.MULTILINE
    )
    wrote = "".join(line for line in told.err.splitlines(keepends=True) if line.startswith("wrote "))
    assert told.out + wrote == shown
    assert checksums(clones) == before
    judged = {
        model: [
            (row["plausible_fix"], row["is_fixed"], row["strictly_fixed_in_block"], row["strictly_fixed_in_module"])
            for row in read_table(Path(f"examples/terraform-repairs/results/{model}_outcomes.csv"))
        ]
        for model in ("careful", "hasty")
    }
    signs = {model: ["".join("-+"[cell == "True"] for cell in row) for row in rows] for model, rows in judged.items()}
    assert signs["careful"] == ["++++", "++++", "+---", "++++", "++++", "----", "-+++", "++++", "++++"]
    assert signs["hasty"] == ["----", "----", "++++", "+---", "----", "++++", "-+++", "-+--", "-++-"]


# ---- levels, and what a repair is


def test_every_level_is_stored_and_has_its_own_numbers(scene: Scene) -> None:
    broken_elsewhere = RIGHT.replace("value = 1", "value = var.wrong")
    gone = 'output "b" {\n  value = 1\n}\n'
    scene.propose(RIGHT, broken_elsewhere, gone, MAIN.replace("wrong", "wrongly"))
    found = scene.judge()
    rows = scene.outcomes()
    assert list(rows[0]) == list(OUTCOME_COLUMNS)
    assert column(rows, "plausible_fix") == ["True", "False", "True", "False"]
    assert column(rows, "is_fixed") == ["True", "True", "False", "False"]
    assert column(rows, "strictly_fixed_in_block") == ["True", "True", "False", "False"]
    assert column(rows, "strictly_fixed_in_module") == ["True", "False", "False", "False"]
    assert column(rows, "reason") == ["", f"main.tf:6: {SUMMARY}", "output.a is gone", "the target is still there"]
    assert column(rows, "introduced_errors") == ["", f"same file: {SUMMARY}", "", ""]
    assert column(rows, "module_total_errors") == ["0", "1", "0", "1"]
    assert set(column(rows, "judged_by")) == {"terraform 1.9.8"}
    assert found.standings.models[0].pass_at[1].value == 0.5
    assert {level: one.models[0].pass_at[1].value for level, one in found.levels.items()} == {
        "fixed": 0.5,
        "strictly fixed in block": 0.5,
        "strictly fixed in module": 0.25,
    }
    by_level = read_table(scene.out / "levels_pass_at_k.csv")
    assert [(row["level"], row["LLM"], row["pass@1"]) for row in by_level][2] == (
        *("strictly fixed in module", "m"),
        "0.25",
    )
    assert (scene.out / "summary_pass_at_k.csv").read_text() == "LLM,pass@1\nm,0.5\n"
    assert (scene.out / "m_fixes_outcomes.csv").read_text() == (
        "oid,iteration_id,plausible_fix\no,1,True\no,2,False\no,3,True\no,4,False\n"
    )


def test_without_targets_only_the_plausible_level_is_told(scene: Scene) -> None:
    scene.propose(RIGHT, MAIN + "# wrong\n", summary="")
    found = scene.judge()
    assert found.levels == {}
    assert column(scene.outcomes(), "is_fixed") == ["", ""]
    assert column(scene.outcomes(), "plausible_fix") == ["True", "False"]
    assert not (scene.out / "levels_pass_at_k.csv").exists()


def test_a_target_that_the_original_does_not_show_is_unknown_and_not_failed(scene: Scene) -> None:
    scene.propose({"fixed_file": RIGHT, "summary": "Another"}, {"fixed_file": "", "summary": "Another"}, RIGHT)
    found = scene.judge()
    assert column(scene.outcomes(), "is_fixed") == ["", "", "True"]
    assert scene.outcomes()[0]["reason"] == "the original does not show the target"
    fixed = found.levels["fixed"].models[0]
    assert (fixed.attempts, fixed.missing) == (1, 2)
    assert found.standings.models[0].attempts == 3
    assert found.conclusive


def test_fences_tags_and_cdata_are_no_part_of_a_repair(scene: Scene) -> None:
    scene.propose(
        f"Sure!\n```hcl\n{RIGHT}```\nThat is all.",
        f"<fixed_file><![CDATA[\n{RIGHT}]]></fixed_file>",
        {"fixed_block_content": f"```\n{BLOCK}```", "line_start": "1.0", "line_end": "3.0"},
        {"fixed_code": '  value = "right"', "line_start": "2", "line_end": "2"},
    )
    scene.judge()
    assert column(scene.outcomes(), "plausible_fix") == ["True"] * 4
    assert scene.sandbox.validations == 2


def test_an_empty_or_unchanged_repair_failed_without_being_validated(scene: Scene) -> None:
    scene.propose("", "```hcl\n```", MAIN, MAIN.replace("\n", "  \r\n"), {"fixed_code": "", "fixed_file": " "})
    scene.judge()
    assert column(scene.outcomes(), "reason") == [
        *("empty repair", "empty repair", "unchanged", "unchanged"),
        "empty repair",
    ]
    assert set(column(scene.outcomes(), "plausible_fix") + column(scene.outcomes(), "is_fixed")) == {"False"}
    assert scene.sandbox.validations == 1


def test_an_unchanged_repair_failed_even_where_the_module_validates(scene: Scene) -> None:
    scene.clone("p", {"main.tf": RIGHT})
    scene.propose(RIGHT, summary="")
    scene.judge()
    assert column(scene.outcomes(), "plausible_fix") == ["False"]


def test_the_block_of_a_problem_is_replaced_and_its_lines_are_the_target(scene: Scene) -> None:
    write_table(
        scene.fixes / "problems.csv",
        [
            {
                "oid": "o",
                "project_name": "p",
                "working_directory": "clones/p",
                "filename": "clones/p/main.tf",
                **TARGET,
                "impacted_block_start_line": "1",
                "impacted_block_end_line": "3",
            }
        ],
    )
    write_table(
        scene.fixes / "m_fixes.csv",
        [{"oid": "o", "iteration_id": "1", "fixed_block_content": BLOCK, "llm_name": "M"}],
    )
    scene.judge()
    (row,) = scene.outcomes()
    assert (row["is_fixed"], row["plausible_fix"], row["llm_name"], row["filename"]) == ("True", "True", "M", "main.tf")


@pytest.mark.parametrize(
    ("folder", "filename"),
    [
        ("live", "main.tf"),
        ("live", "live/main.tf"),
        ("./live/", "clones/q/live/main.tf"),
        ("clones/q/live", "main.tf"),
        ("", "live/main.tf"),
        ("live", "../live/main.tf"),
        ("clones\\q\\live", "live\\main.tf"),
        ("../elsewhere/clones/q/live", "/home/somebody/clones/q/live/main.tf"),
    ],
)
def test_a_file_is_named_as_seen_from_the_module_or_from_the_clone(scene: Scene, folder: str, filename: str) -> None:
    # the file above has the same name and is right already
    scene.clone("q", {"main.tf": RIGHT, "live/main.tf": MAIN})
    scene.propose(RIGHT, project_name="q", working_directory=folder, filename=filename)
    scene.judge()
    assert column(scene.outcomes(), "is_fixed") == ["True"]


# ---- paths of anybody's choosing


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"project_name": "../p"}, 'project_name is "../p"; expected the name of a folder in clones_dir'),
        ({"project_name": "/etc"}, 'project_name is "/etc"; expected'),
        ({"project_name": "p/../p"}, 'project_name is "p/../p"; expected'),
        ({"project_name": "."}, 'project_name is "."; expected'),
        ({"project_name": ""}, "project_name is not given, neither here nor in the list of problems"),
        ({"project_name": "out"}, 'project_name is "out", which a link leads out of '),
        ({"working_directory": ".."}, 'working_directory is ".."; expected a folder of the clone'),
        ({"working_directory": "/p"}, 'working_directory is "/p"; expected'),
        ({"working_directory": "out"}, 'working_directory is "out", which a link leads out of '),
        ({"filename": "../p/main.tf"}, 'filename is "../p/main.tf"; expected a file of the clone'),
        ({"filename": "/p/main.tf"}, 'filename is "/p/main.tf"; expected'),
        ({"filename": "link.tf"}, 'filename is "link.tf", which a link leads out of '),
        ({"filename": "loop.tf"}, 'filename is "loop.tf", which '),
        ({"filename": ""}, "filename is not given"),
        ({"line_start": "0", "fixed_code": "x"}, 'line_start is "0"; expected the number of a line, from 1'),
        ({"line_end": "", "fixed_code": "x"}, "line_end is empty; expected"),
        ({"line_end": "1", "fixed_code": "x"}, "line_end is 1, before line_start, which is 2"),
        ({"line_start": "", "line_end": "", "fixed_code": "x"}, "line_start and line_end are empty; they say which"),
        ({"severity": "fatal"}, 'severity is "fatal"; expected error or warning'),
        ({"iteration_id": ""}, "iteration_id is empty"),
    ],
)
def test_what_cannot_be_meant_is_an_error_with_its_line_and_nothing_is_written(
    scene: Scene, cells: dict[str, str], said: str
) -> None:
    outside = scene.folder / "outside"
    outside.mkdir()
    (outside / "main.tf").write_text(MAIN)
    (scene.clones / "out").symlink_to(outside)
    (scene.clones / "p" / "out").symlink_to(outside)
    (scene.clones / "p" / "link.tf").symlink_to(outside / "main.tf")
    (scene.clones / "p" / "loop.tf").symlink_to("loop.tf")
    repair = {} if "fixed_code" in cells else {"fixed_file": "one line"}
    scene.propose("one line", {**repair, **cells})
    before = contents(scene.folder)
    problems = scene.refused()
    assert [problem for problem in problems if problem.startswith(f"{scene.fixes}/m_fixes.csv:3: {said}")], problems
    assert contents(scene.folder) == before
    assert not scene.out.exists()


def test_two_repairs_for_one_attempt_are_an_error_and_the_same_twice_counts_once(scene: Scene) -> None:
    scene.propose(RIGHT, {"fixed_file": RIGHT, "iteration_id": "1"})
    found = scene.judge()
    assert [problem.what for problem in found.problems] == ['"o", iteration "1": is already on line 2; counted once']
    assert len(scene.outcomes()) == 1
    scene.propose(RIGHT, {"fixed_file": MAIN, "iteration_id": "1"})
    assert "is already on line 2, with other values; keep one of them" in scene.refused()[0]


def test_repairs_of_unknown_problems_are_not_judged_and_told_of(scene: Scene) -> None:
    write_table(scene.fixes / "problems.csv", [{"oid": "o"}, {"oid": "never tried"}])
    scene.propose(RIGHT, {"fixed_file": MAIN + "\n# x", "oid": "stray"})
    found = scene.judge()
    assert 'oid "stray" is not in' in found.problems[0].what
    assert column(scene.outcomes(), "oid") == ["o"]
    assert found.standings.models[0].unscored == ("never tried",)


def test_an_oid_that_stands_for_several_problems_needs_the_specific_one(scene: Scene) -> None:
    problems = [{"oid": "o", "specific_oid": "o1", **TARGET}, {"oid": "o", "specific_oid": "o2", "summary": "Another"}]
    write_table(scene.fixes / "problems.csv", problems)
    scene.propose(RIGHT, summary="A third")
    assert scene.refused()[0].endswith('oid "o" means several problems, and no specific_oid says which')
    scene.propose({"fixed_file": RIGHT, "specific_oid": "o1"}, {"fixed_file": RIGHT, "specific_oid": "o2"})
    scene.judge()
    assert column(scene.outcomes(), "is_fixed") == ["True", ""]
    assert scene.sandbox.validations == 2
    assert (scene.out / "m_fixes_outcomes.csv").read_text() == (
        "oid,iteration_id,plausible_fix,specific_oid\no,1,True,o1\no,2,True,o2\n"
    )


# ---- what is shared


def test_the_same_repair_is_validated_once_whoever_proposes_it(scene: Scene) -> None:
    scene.propose(*[RIGHT] * 5, f"```\n{RIGHT}```", model="a")
    scene.propose(RIGHT, RIGHT + "# more\n", model="b")
    scene.judge(parallelism=3)
    assert scene.sandbox.validations == 3
    assert column(scene.outcomes("a") + scene.outcomes("b"), "plausible_fix") == ["True"] * 8


def test_the_copies_of_a_module_are_gone_before_the_next_is_begun(scene: Scene) -> None:
    many(scene, modules=5, attempts=20, versions=2)
    scene.judge(parallelism=1)
    assert (scene.sandbox.most_copies, scene.sandbox.copies) == (1, 0)


def test_nothing_is_validated_again_unless_something_changed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.propose(RIGHT, RIGHT + "# 2\n")
    scene.judge()
    assert scene.sandbox.validations == 3
    first = contents(scene.out)
    scene.judge()
    assert scene.sandbox.validations == 0
    assert contents(scene.out) == first
    assert set(tables(scene.out)) == {
        *("m_outcomes.csv", "m_fixes_outcomes.csv", "m_pass_at_k.csv", "summary_pass_at_k.csv"),
        "levels_pass_at_k.csv",
    }
    scene.propose(RIGHT, RIGHT + "# wrong\n")
    scene.judge()
    assert scene.sandbox.validations == 2
    assert column(scene.outcomes(), "plausible_fix") == ["True", "False"]
    scene.clone("p", {"other.tf": "# the module is another one now\n"})
    scene.judge()
    assert scene.sandbox.validations == 3
    newer = stand_in(scene.folder / "newer", ANSWERS.replace("v1.9.8", "v1.9.9"))
    monkeypatch.setenv(TERRAFORM_PROGRAM_VARIABLE, str(newer))
    scene.judge()
    assert scene.sandbox.validations == 3
    assert set(column(scene.outcomes(), "judged_by")) == {"terraform 1.9.9"}


def test_what_was_judged_can_be_looked_at_without_terraform_or_clones(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.propose(RIGHT, MAIN + "# wrong\n")
    scene.judge()
    before = contents(scene.out)
    shutil.rmtree(scene.clones)
    scene.judge()
    assert contents(scene.out) == before
    monkeypatch.setenv(TERRAFORM_PROGRAM_VARIABLE, "nowhere")
    scene.judge()
    assert contents(scene.out) == before
    scene.propose(RIGHT, MAIN + "# still wrong\n")
    assert any("no such folder, but repairs of the clones in it must be judged" in line for line in scene.refused())
    assert contents(scene.out) == before


def test_outcomes_of_others_are_completed_and_not_judged_again(scene: Scene) -> None:
    scene.propose(RIGHT, MAIN + "# wrong\n", RIGHT)
    scene.out.mkdir()
    recorded = [{"oid": "o", "iteration_id": "2", "plausible_fix": "yes", "who": "somebody"}]
    write_table(scene.out / "m_outcomes.csv", recorded)
    scene.judge()
    rows = scene.outcomes()
    assert column(rows, "plausible_fix") == ["True", "yes", "True"]
    assert column(rows, "who") == ["", "somebody", ""]
    assert column(rows, "judged_by") == ["terraform 1.9.8", "", "terraform 1.9.8"]
    assert scene.sandbox.validations == 2
    scene.judge()
    assert scene.outcomes() == rows
    assert scene.sandbox.validations == 0


def test_complete_outcomes_of_others_are_taken_as_they_are(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TERRAFORM_PROGRAM_VARIABLE, "nowhere")
    scene.propose(RIGHT, MAIN + "# wrong\n")
    scene.out.mkdir()
    write_table(
        scene.out / "m_outcomes.csv",
        [{"oid": "o", "iteration_id": number, "plausible_fix": "no"} for number in ("1", "2", "3")],
    )
    before = (scene.out / "m_outcomes.csv").read_bytes()
    assert scene.judge().standings.models[0].correct == 0
    assert (scene.out / "m_outcomes.csv").read_bytes() == before
    assert not (scene.out / "m_fixes_outcomes.csv").exists()


def test_incomplete_outcomes_of_fixes_without_repairs_are_missing_data(scene: Scene) -> None:
    write_table(scene.fixes / "m_fixes.csv", [{"oid": "o", "iteration_id": number} for number in ("1", "2")])
    scene.out.mkdir()
    write_table(scene.out / "m_outcomes.csv", [{"oid": "o", "iteration_id": "1", "plausible_fix": "yes"}])
    found = scene.judge()
    assert (found.standings.models[0].attempts, found.standings.models[0].missing) == (1, 1)
    assert not found.conclusive


def test_what_is_written_is_never_read_as_fixes(scene: Scene) -> None:
    scene.ask(output_dir="fixes")
    scene.propose(RIGHT, "")
    first = scene.judge()
    before = contents(scene.fixes)
    assert scene.judge() == first
    assert contents(scene.fixes) == before
    assert [model.model for model in first.standings.models] == ["m"]


def test_judged_and_counted_fixes_stand_in_one_table(scene: Scene) -> None:
    scene.propose(RIGHT, MAIN + "# wrong\n")
    write_table(scene.fixes / "known_fixes.csv", [{"oid": "o", "iteration_id": "1", "plausible_fix": "True"}])
    found = scene.judge()
    assert [(model.model, model.attempts, model.correct) for model in found.standings.models] == [
        ("known", 1, 1),
        ("m", 2, 1),
    ]
    assert [model.model for model in found.levels["fixed"].models] == ["m"]
    (scene.fixes / "broken_fixes.csv").write_text("oid,iteration_id,plausible_fix\no,1,perhaps\n")
    scene.propose(RIGHT, MAIN + "# wrong again\n")
    assert "broken_fixes.csv:2: plausible_fix is" in scene.refused()[0]
    assert scene.sandbox.validations == 0


# ---- what says nothing


@pytest.mark.parametrize(
    ("repair", "said"),
    [
        ("NONSENSE", r"terraform validate gave no answer \(exit code 0\)"),
        ("CRASH", r"terraform validate gave no answer \(exit code -?\d+\)"),
        ("HANG", "terraform validate was stopped at the cpu limit after "),
    ],
)
def test_a_validator_that_gives_no_answer_is_missing_data_and_is_asked_again(
    scene: Scene, repair: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.propose("locals {}", f"# {repair}\n{RIGHT}")
    found = scene.judge(seconds=1)
    (unjudged,) = found.unjudged
    assert re.match(said, unjudged.reason), unjudged.reason
    assert column(scene.outcomes(), "iteration_id") == ["1"]
    assert column(read_table(scene.out / "m_fixes_outcomes.csv"), "plausible_fix") == ["True"]
    assert (found.standings.models[0].attempts, found.standings.models[0].missing) == (1, 1)
    assert not found.conclusive
    (excuse,) = found.excuses()
    assert excuse.startswith("1 attempt (m_fixes.csv:3) not judged: terraform validate")
    scene.judge(seconds=1)
    # the original again, and twice what was not judged, as every failure of ours is tried twice
    assert scene.sandbox.validations == 3
    if repair == "NONSENSE":
        assert cli.main(["repairs", "--config", str(scene.config)]) == ExitCode.CANNOT_TELL
        assert excuse in capsys.readouterr().err


def test_an_original_that_cannot_be_validated_makes_every_attempt_missing(scene: Scene) -> None:
    scene.clone("p", {"main.tf": MAIN + "# NONSENSE\n"})
    scene.clone("q", {"main.tf": MAIN})
    scene.propose("", RIGHT, {"fixed_file": RIGHT, "project_name": "q", "oid": "q"})
    found = scene.judge()
    assert [one.row.iteration for one in found.unjudged] == ["1", "2"]
    assert all(one.reason.startswith("the original cannot be validated: terraform") for one in found.unjudged)
    (model,) = found.standings.models
    assert (model.cases, model.unscored, model.attempts, model.missing) == (2, ("o",), 1, 2)


def test_a_missing_clone_file_or_line_is_missing_data(scene: Scene) -> None:
    scene.clone("none", {"README.md": "no Terraform here"})
    scene.propose(
        {"fixed_file": RIGHT, "project_name": "nobody"},
        {"fixed_file": RIGHT, "project_name": "none"},
        {"fixed_file": RIGHT, "working_directory": "nowhere"},
        {"fixed_file": RIGHT, "filename": "other.tf"},
        {"fixed_code": "x = 1", "line_start": "3", "line_end": "90"},
        {"fixed_file": RIGHT, "project_name": "x" * 300},
        {"fixed_file": RIGHT, "filename": "x" * 300 + ".tf"},
    )
    found = scene.judge()
    assert len(found.unjudged) == 7
    reasons = [one.reason for one in found.unjudged]
    assert reasons[0] == f'no clone "nobody" in {scene.clones}'
    assert reasons[1].endswith("no Terraform files")
    assert "no folder of a module in" in reasons[2]
    assert reasons[3].startswith("other.tf: no such file in the module")
    assert reasons[4] == "main.tf: lines 3 to 90 cannot be replaced in a file of 7 lines"
    assert scene.outcomes() == []
    assert found.standings.models[0].unscored == ("o",)
    assert not found.standings.conclusive


def test_what_several_modules_lack_is_said_once(scene: Scene) -> None:
    lacks = """grep -q aws_instance main.tf && echo '{"valid": false, "error_count": 1, "warning_count": 0, "diagnostics": [{"severity": "error",
      "summary": "Missing required provider", "detail": "It requires provider registry.terraform.io/hashicorp/aws, but that provider is not there. By running:"}]}' && exit 1
"""
    stand_in(scene.folder / "bin", lacks + ANSWERS)
    needs = 'resource "aws_instance" "a" {}\n'
    for project in ("one", "two"):
        scene.clone(project, {"net/main.tf" if project == "two" else "main.tf": needs + MAIN})
    scene.propose(
        {"fixed_file": needs + RIGHT, "project_name": "one", "oid": "1"},
        {"fixed_file": needs + RIGHT, "project_name": "two", "oid": "2", "working_directory": "net"},
        {"fixed_file": RIGHT},
    )
    (excuse,) = scene.judge().excuses()
    assert excuse.startswith(
        "2 attempts in 2 modules (m_fixes.csv:2, m_fixes.csv:11) not judged: the original cannot be validated: the module needs "
        "providers that are not here: registry.terraform.io/hashicorp/aws; "
    )


def test_repair_config_is_read_as_it_is_published(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """The columns and keys of the repository that publishes such repairs."""
    place = {"project_name": "p", "filename": "clones/p/main.tf", "working_directory": "clones/p"}
    problem = {
        "oid": "o",
        "specific_oid": "s",
        "is_cross_module": "False",
        "metrics_nloc": "3",
        "provider_name": "",
        **place,
        **TARGET,
    }
    (scene.folder / "problems").mkdir()
    write_table(
        scene.folder / "problems" / "benchmark.csv",
        [
            {**problem, "impacted_block_start_line": "1", "impacted_block_end_line": "3"},
            {**problem, "oid": "never asked", "specific_oid": "t"},
        ],
    )
    attempt = {
        "oid": "o",
        "specific_oid": "s",
        "llm_name": "M",
        "prompt_content": "Repair it.",
        "explanation": "",
        **place,
        **TARGET,
    }
    write_table(
        scene.fixes / "gemma_xml.csv",
        [
            {
                **attempt,
                "iteration_id": "1",
                "fixed_block_content": f"<fixed_block_content>\n{BLOCK}</fixed_block_content>",
            },
            {**attempt, "iteration_id": "2", "fixed_block_content": BLOCK, "fixed_file": MAIN},
        ],
    )
    write_table(scene.fixes / "other_xml.csv", [{**attempt, "iteration_id": "1"}])
    published = {
        "problems_dataset": "problems/benchmark.csv",
        "responses": {"input_dir": "fixes", "models": ["gemma_xml.csv"]},
        "output_dir": "out",
        "repair_mode": "block",
        "use_parallel": True,
        "parallel_workers": 64,
        "slurm": {"mem": "64G"},
    }
    scene.config.write_text(json.dumps(published))
    found = scene.judge()
    assert found.problems == ()
    (model,) = found.standings.models
    assert (model.model, model.cases, model.attempts, model.correct) == ("gemma_xml", 2, 2, 2)
    assert column(scene.outcomes("gemma_xml"), "is_fixed") == ["True", "True"]

    scene.config.write_text(json.dumps({**published, "repair_mode": "file"}))
    shutil.rmtree(scene.out)
    scene.judge()
    assert column(scene.outcomes("gemma_xml"), "reason") == ["empty repair", "unchanged"]
    scene.config.write_text(json.dumps({**published, "problems_dataset": "nowhere.csv"}))
    assert cli.main(["repairs", "--config", str(scene.config)]) == ExitCode.BAD_INPUT
    assert '"problems_dataset": no file' in capsys.readouterr().err


def test_problems_with_one_oid_are_told_apart_by_the_diagnostics_that_fixes_name(scene: Scene) -> None:
    place = {"oid": "o", "project_name": "p", "filename": "main.tf", **TARGET}
    write_table(
        scene.fixes / "problems.csv",
        [{**place, "specific_oid": "s", "detail": "One."}, {**place, "specific_oid": "t", "detail": "Another  one."}],
    )
    scene.propose(
        {"fixed_file": RIGHT, "detail": "One."},
        {"fixed_file": MAIN + "# wrong", "detail": "another one.", "iteration_id": "1"},
    )
    found = scene.judge()
    assert found.unjudged == ()
    (model,) = found.standings.models
    assert (model.cases, model.unscored, model.attempts, model.correct) == (2, (), 2, 1)
    assert column(scene.outcomes(), "specific_oid") == ["s", "t"]


def test_clones_that_are_not_there_are_named_together(scene: Scene) -> None:
    scene.propose(
        *({"fixed_file": RIGHT, "project_name": name, "oid": name} for name in ("one", "two")), {"fixed_file": RIGHT}
    )
    (excuse,) = scene.judge().excuses()
    assert (
        excuse
        == f"2 attempts in 2 modules (m_fixes.csv:2, m_fixes.csv:10) not judged: no clone in {scene.clones} of one, two"
    )


def test_without_terraform_it_is_said_how_to_get_it_and_nothing_is_written(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(TERRAFORM_PROGRAM_VARIABLE)
    monkeypatch.setenv("PATH", str(scene.folder))
    scene.propose(RIGHT)
    for generate in (False, True):
        scene.ask(generate_synthetic_data=generate)
        before = contents(scene.folder)
        assert cli.main(["repairs", "--config", str(scene.config)]) == ExitCode.BAD_INPUT
        told = capsys.readouterr().err
        assert told.startswith("steelyard: repairs must be judged, but no Terraform here; install OpenTofu (https://")
        assert contents(scene.folder) == before
        assert not scene.out.exists()


def test_a_level_of_isolation_that_nobody_knows_is_refused(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.propose(RIGHT)
    assert cli.main(["repairs", "--config", str(scene.config), "--require-isolation", "glass"]) == ExitCode.BAD_INPUT
    assert '--require-isolation: unknown level "glass"' in capsys.readouterr().err
    assert contents(scene.out) == {}


def test_passk_reads_every_level_of_the_outcomes(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.propose(RIGHT, 'output "b" {\n  value = 1\n}\n', {"fixed_file": RIGHT, "summary": "Another"})
    scene.judge()
    outcomes = str(scene.out / "m_outcomes.csv")
    for arguments, rate in (
        ([], 1.0),
        (["--passed", "is_fixed"], 0.5),
        (["--passed", "strictly_fixed_in_module"], 0.5),
    ):
        assert cli.main(["passk", "--fixes-csv", outcomes, "--k-values", "1", "--format", "csv", *arguments]) == 0
        assert capsys.readouterr().out.splitlines()[1].split(",")[:2] == ["m", str(rate)]
    brief = str(scene.out / "m_fixes_outcomes.csv")
    assert cli.main(["passk", brief, "--k-values", "1", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("m,1.0,")


# ---- kills


def many(scene: Scene, modules: int, attempts: int, versions: int) -> None:
    """Attempts at several modules, of which some are alike."""
    for module in range(modules):
        scene.clone(f"p{module}", {"main.tf": MAIN})
    for model, share in (("a", 0), ("b", 1)):
        rows = [
            {
                "oid": f"o{number % modules}",
                "project_name": f"p{number % modules}",
                "iteration_id": str(number),
                "fixed_file": f"{MAIN if number % 3 else RIGHT}# version {number // modules % versions}\n",
            }
            for number in range(attempts)
            if number % 2 == share
        ]
        scene.propose(*rows, model=model)


def killed_in_the_middle(scene: Scene, script: Sequence[str], lines: int, patience: float) -> int:
    """Start judging, and kill it as soon as this many verdicts are in its journal; gives how many were."""
    running = subprocess.Popen(script, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + patience
    count = 0
    while count < lines and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
        count = verdicts(scene)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    return count


def check_kill(scene: Scene, modules: int, attempts: int, versions: int, patience: float) -> None:
    many(scene, modules, attempts, versions)
    before = checksums(scene.clones)
    command = [sys.executable, "-m", "steelyard.cli", "repairs", "--config", str(scene.config)]
    lasting = killed_in_the_middle(scene, command, attempts // 3, patience)
    assert attempts // 3 <= lasting < attempts
    assert not list(scene.out.glob("*.csv"))
    with (scene.out / "run" / "attempts.jsonl").open("ab") as file:
        file.write(b'{"kind":"half a li')
    scene.judge(parallelism=2)
    resumed = scene.sandbox.validations
    interrupted = tables(scene.out)
    shutil.rmtree(scene.out)
    scene.judge(parallelism=1)
    assert tables(scene.out) == interrupted
    assert len(scene.outcomes("a")) + len(scene.outcomes("b")) == attempts
    assert resumed < scene.sandbox.validations
    assert checksums(scene.clones) == before


@pytest.mark.parametrize("attempts", with_slow([100], [200]))
def test_a_run_that_was_killed_goes_on_and_ends_in_the_same_bytes(scene: Scene, attempts: int) -> None:
    check_kill(scene, modules=4, attempts=attempts, versions=attempts // 4, patience=60)


@pytest.mark.slow
@needs_terraform()
def test_the_same_with_the_real_terraform(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TERRAFORM_PROGRAM_VARIABLE, str(terraform()))
    check_kill(scene, modules=4, attempts=200, versions=6, patience=600)


def test_an_interrupted_run_keeps_what_was_judged_and_says_how_to_go_on(scene: Scene) -> None:
    many(scene, modules=2, attempts=100, versions=50)
    command = [sys.executable, "-m", "steelyard.cli", "repairs", "--config", str(scene.config)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not verdicts(scene) and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=60)
    assert running.returncode == ExitCode.INTERRUPTED
    assert told.endswith("interrupted; what was judged is kept, and the same command continues\n")
    assert "Traceback" not in told
    assert 0 < verdicts(scene) < 100


def test_two_processes_do_not_judge_the_same(scene: Scene) -> None:
    scene.propose(RIGHT)
    (scene.out / "run").mkdir(parents=True)
    with Journal(scene.out / "run"):
        assert "another process is writing this run; wait for it, or stop it first" in scene.refused()[0]
    scene.judge()


@pytest.mark.parametrize("name", ["run", "run/attempts.jsonl"])
def test_a_run_or_journal_that_is_a_link_is_not_followed(scene: Scene, name: str) -> None:
    scene.propose(RIGHT)
    scene.out.mkdir()
    precious = scene.folder / "precious"
    if name == "run":
        precious.mkdir()
    else:
        (scene.out / "run").mkdir()
        precious.write_text("precious")
    (scene.out / name).symlink_to(precious)
    assert "a link, so the run cannot be written there" in scene.refused()[0]
    assert list(precious.iterdir()) == [] if name == "run" else precious.read_text() == "precious"


# ---- the run


def test_repairs_are_judged_in_an_ordinary_run_that_every_command_takes(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    block = {"impacted_block_start_line": "1", "impacted_block_end_line": "3"}
    scene.propose(RIGHT, MAIN + "# wrong\n", {"fixed_code": BLOCK, **block}, "")
    scene.propose(RIGHT, model="n")
    scene.judge()
    run = scene.out / "run"
    with Journal(run) as journal:
        summary, _ = summarise_and_cache(journal, journal.info, journal.cases)
    assert [(model.model, model.cases, model.attempts, model.correct) for model in summary.models] == [
        *(("m", 1, 4, 2), ("n", 1, 1, 1)),
    ]
    for arguments in (
        ["show", str(run)],
        ["show", str(run), "o", "2"],
        ["report", str(run), "-o", str(run / "x.html")],
    ):
        assert cli.main(arguments) == 0
    assert "the target is still there" in capsys.readouterr().out
    before = (run / "attempts.jsonl").read_bytes()
    assert cli.main(["resume", str(run)]) == 0
    assert (run / "attempts.jsonl").read_bytes() == before
    capsys.readouterr()
    sql = "SELECT model, count(*), count(*) FILTER (correct) FROM attempts GROUP BY ALL ORDER BY ALL"
    with run_query(sql, scene.out) as found:
        assert list(found.rows) == [("m", 4, 2), ("n", 1, 1)]
    assert cli.main(["gate", f"{run}@m", f"{run}@n"]) == 0
    assert "cannot tell by pass rate, +50.0 points over 1 case" in capsys.readouterr().out
    opened = RunView(run)
    assert [(opened.columns[row.column].model, row.outcome) for row in opened.rows] == [
        *(("m", "correct"), ("m", "wrong"), ("m", "correct"), ("m", "wrong")),
        ("n", "correct"),
    ]
    assert rows_with_text(opened, "# WRONG") == {1}


@pytest.mark.slow
@needs_ray()
def test_the_nodes_of_a_cluster_judge_repairs_as_this_machine_does(scene: Scene) -> None:
    scene.propose(RIGHT, MAIN + "# wrong\n", "")
    scene.judge()
    here = tables(scene.out)
    shutil.rmtree(scene.out)
    command = [sys.executable, "-m", "steelyard.cli", "repairs", "--config", str(scene.config), "--allow-weak-sandbox"]
    ended = subprocess.run(
        [*command, "--backend", "ray", "--ray-address", "local"], cwd=scene.folder, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert tables(scene.out) == here
    nodes = {fact.node for fact in StoredRun(scene.out / "run").facts() if isinstance(fact, Verdict)}
    assert nodes
    assert "" not in nodes


def test_a_run_of_repairs_goes_on_from_any_folder(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.propose(RIGHT, MAIN + "# wrong\n")
    monkeypatch.chdir(scene.folder)
    evaluate(Path("evaluation_config.json"), RunOptions(sandbox=Counting()))
    journal = scene.out / "run" / "attempts.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(line for line in lines if b'"kind":"verdict"' not in line))
    (scene.folder / "elsewhere").mkdir()
    monkeypatch.chdir(scene.folder / "elsewhere")
    assert cli.main(["resume", "../out/run"]) == 0
    assert verdicts(scene) == 2


def test_a_run_that_is_extended_keeps_its_verdicts_and_drops_what_is_no_longer_proposed(scene: Scene) -> None:
    scene.propose(RIGHT, MAIN + "# wrong\n")
    scene.judge()
    scene.propose(MAIN + "# wrong\n", MAIN + "# also wrong\n")
    scene.judge()
    assert scene.sandbox.validations == 2
    replies = [fact for fact in StoredRun(scene.out / "run").facts() if isinstance(fact, Reply)]
    assert [reply.number for reply in replies] == [1, 2]
    assert verdicts(scene) == 2
    assert column(scene.outcomes(), "plausible_fix") == ["False", "False"]
