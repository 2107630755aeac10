"""A case names the files that an agent works on, and knows when they changed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from steelyard import evalsets
from steelyard.errors import InputError
from steelyard.records import Answer, Attempt, Case, Verify
from support.toolchains import needs

SET = """[eval_set]
id = "s"
name = "S"
[[cases]]
id = "a"
name = "A"
prompt = "p"
workspace = "WHERE"
reference = "file://fix.patch"
[cases.verify]
test = "true"
fixes = ["one", "two"]
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("a\n")
    (tmp_path / "fix.patch").write_text("diff --git a/a.txt b/a.txt\n")
    return tmp_path


def loaded(place: Path, where: str = "project") -> Case:
    (place / "set.toml").write_text(SET.replace("WHERE", where))
    (case,) = evalsets.load([place / "set.toml"]).cases
    return case


def test_a_workspace_is_found_beside_the_file_and_its_answers_are_patches(place: Path) -> None:
    case = loaded(place)
    assert case.workspace == str(place / "project")
    assert case.reference == "diff --git a/a.txt b/a.txt\n"
    assert (case.kind, case.language, case.verify.fixes) == ("command", "", ("one", "two"))


def test_a_changed_workspace_is_a_changed_test_and_a_changed_question_wherever_it_lies(place: Path) -> None:
    first = loaded(place)
    (place / "project").rename(place / "moved")
    moved = loaded(place, "moved")
    (place / "moved" / "a.txt").write_text("b\n")
    changed = loaded(place, "moved")
    assert first.workspace != moved.workspace
    assert first.tests_digest == moved.tests_digest != changed.tests_digest
    attempts = [Attempt(case=case, model="m") for case in (first, moved, changed)]
    assert attempts[0].key == attempts[1].key != attempts[2].key
    assert attempts[0].asked == attempts[1].asked != attempts[2].asked


@needs("git")
def test_a_commit_is_known_by_its_full_name_and_stays_what_it_was(place: Path) -> None:
    project = place / "project"
    for arguments in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=a", "-c", "user.email=a", "commit", "-q", "-m", "x"],
    ):
        subprocess.run(["git", *arguments], cwd=project, check=True)
    as_folder = loaded(place)
    first = loaded(place, "project@HEAD")
    (project / "a.txt").write_text("b\n")
    assert first == loaded(place, "project@HEAD")
    assert len(first.workspace.rpartition("@")[2]) == 40
    assert first.tests_digest == as_folder.tests_digest


@pytest.mark.parametrize("where", ["gone", "set.toml", "project@none", "gone@main"])
def test_a_workspace_that_is_not_there_is_an_error_with_its_line(where: str, place: Path) -> None:
    with pytest.raises(InputError, match=r'set\.toml:8: case "a": workspace: '):
        loaded(place, where)


def test_a_patch_that_is_not_there_is_an_error_with_its_line(place: Path) -> None:
    (place / "fix.patch").unlink()
    with pytest.raises(InputError, match=r'set\.toml:9: case "a": reference: .*No such file'):
        loaded(place)


def test_without_a_workspace_a_reference_is_only_text(place: Path) -> None:
    text = SET.replace('workspace = "WHERE"\n', "").replace(
        "[cases.verify]", '[cases.verify]\nkind = "command"\nanswer = "x"'
    )
    (place / "set.toml").write_text(text)
    assert evalsets.load([place / "set.toml"]).cases[0].reference == "file://fix.patch"


def test_a_case_in_a_line_may_have_a_workspace_too(place: Path) -> None:
    (place / "set.jsonl").write_text('{"id": "a", "prompt": "p", "workspace": "project", "verify": {"test": "true"}}\n')
    (case,) = evalsets.load([place / "set.jsonl"]).cases
    assert (case.workspace, case.kind) == (str(place / "project"), "command")
    assert case.verify.workspace_digest == loaded(place).verify.workspace_digest


def test_what_no_agent_did_is_not_written_and_old_cases_keep_their_digests() -> None:
    assert msgspec.json.encode(Answer(text="x")) == b'{"text":"x"}'
    assert msgspec.json.encode(Case(id="a", prompt="p")) == b'{"id":"a","prompt":"p"}'
    case = Case(id="a", prompt="p", language="python", verify=Verify(tests="assert True"))
    assert case.tests_digest == "93b0c32c82f1c563f6b404f8dea51af2"
    assert Attempt(case=case, model="m").key == "75b7243a0421a27279159fe2a3cf619f"
