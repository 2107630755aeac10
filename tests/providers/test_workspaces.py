"""A workspace is what git would keep of it, bounded, and never touched; a patch is all of a change."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from steelyard.errors import InputError
from steelyard.providers.agent import workspaces
from steelyard.providers.agent.keeper import workspace_result
from steelyard.providers.agent.workspaces import GIT_MODE_EXECUTABLE, GIT_MODE_FILE, GIT_MODE_SYMLINK, GitFile
from support.toolchains import needs

pytestmark = needs("git")


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a", "-c", "init.defaultBranch=main")
    ran = subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, check=True)
    return ran.stdout.decode().strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "workspace"
    (place / "sub").mkdir(parents=True)
    (place / "a.txt").write_text("one\ntwo\n")
    (place / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (place / "sub" / "run.sh").chmod(0o755)
    (place / "link").symlink_to("/etc")
    return place


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


# ---- reading


def test_a_folder_is_read_with_its_links_as_links_and_without_what_is_no_file(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(folder)  # the path of a socket must be short
        listening.bind("socket")
        os.chdir(here)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("")
    (folder / "sub" / "__pycache__").mkdir()
    (folder / "sub" / "__pycache__" / "x.pyc").write_text("")
    (folder / "empty").mkdir()
    assert workspaces.workspace_files(str(folder)) == {
        "a.txt": GitFile(b"one\ntwo\n", GIT_MODE_FILE),
        "link": GitFile(b"/etc", GIT_MODE_SYMLINK),
        "sub/run.sh": GitFile(b"#!/bin/sh\n", GIT_MODE_EXECUTABLE),
    }


def test_a_commit_is_read_byte_by_byte_and_leaves_the_repository_as_it_was(folder: Path) -> None:
    git(folder, "init", "-q")
    # neither what is exported nor how lines end is the repository's to say
    (folder / ".gitattributes").write_text("a.txt export-ignore text eol=crlf\nsub/* export-subst\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    first = workspaces.workspace_digest(workspaces.workspace_files(str(folder)))
    located = workspaces.resolve_workspace("workspace@HEAD", folder.parent)
    (folder / "a.txt").write_text("changed\n")
    (folder / "new.txt").write_text("")
    status = git(folder, "status", "--porcelain")
    assert located == f"{folder}@{git(folder, 'rev-parse', 'HEAD')}"
    assert workspaces.workspace_digest(workspaces.workspace_files(located)) == first
    assert list(workspaces.workspace_files(workspaces.resolve_workspace("workspace/sub@main", folder.parent))) == [
        "run.sh"
    ]
    assert git(folder, "status", "--porcelain") == status


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere", "nowhere is not a folder"),
        ("workspace/a.txt", "a.txt is not a folder"),
        ("workspace@", "workspace@ is not a folder"),
        ("nowhere@main", "nowhere is not a folder"),
        ("workspace@main", "is in no git repository, so it has no commit main"),
        ("repository@none", "no commit none in "),
        ("repository@--help", "--help is not the name of a commit"),
    ],
)
def test_a_workspace_that_is_not_there_is_told_in_one_sentence(name: str, reason: str, folder: Path) -> None:
    (folder.parent / "repository").mkdir()
    git(folder.parent / "repository", "init", "-q")
    with pytest.raises(InputError, match=reason):
        workspaces.resolve_workspace(name, folder.parent)


def test_a_folder_with_an_at_in_its_name_is_a_folder(folder: Path) -> None:
    folder.rename(folder.parent / "at@home")
    assert workspaces.resolve_workspace("at@home", folder.parent) == str(folder.parent / "at@home")


def test_a_workspace_has_bounds(folder: Path) -> None:
    with (folder / "huge").open("wb") as file:
        file.truncate(workspaces.MAX_WORKSPACE_BYTES)
    with pytest.raises(InputError, match=r"more than 64 MB; .* name a smaller one"):
        workspaces.workspace_files(str(folder))
    (folder / "huge").unlink()
    for number in range(workspaces.MAX_WORKSPACE_FILES):
        (folder / "sub" / str(number)).hardlink_to(folder / "a.txt")
    with pytest.raises(InputError, match=r"more than 10,000 files; .* FOLDER@COMMIT"):
        workspaces.workspace_files(str(folder))


def test_the_digest_is_of_the_content_and_not_of_the_place(folder: Path, tmp_path: Path) -> None:
    files = workspaces.workspace_files(str(folder))
    workspaces.write_files(files, tmp_path / "copy")
    assert workspaces.workspace_digest(
        workspaces.workspace_files(str(tmp_path / "copy"))
    ) == workspaces.workspace_digest(files)
    (folder / "a.txt").chmod(0o755)
    as_program = workspaces.workspace_digest(workspaces.workspace_files(str(folder)))
    (folder / "a.txt").rename(folder / "b.txt")
    assert (
        len(
            {
                workspaces.workspace_digest(files),
                as_program,
                workspaces.workspace_digest(workspaces.workspace_files(str(folder))),
            }
        )
        == 3
    )


def test_an_archive_holds_the_same_files(folder: Path) -> None:
    files = workspaces.workspace_files(str(folder))
    with tarfile.open(fileobj=BytesIO(workspaces.tar_archive(files))) as tar:
        assert [(entry.name, entry.mode & 0o111 != 0, entry.linkname) for entry in tar if not entry.issym()] == [
            ("a.txt", False, ""),
            ("sub/run.sh", True, ""),
        ]
    assert workspaces.tar_archive(files) == workspaces.tar_archive(files)


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a//b", ".", "", ".git/hooks/x", "a\nb"])
def test_only_plain_paths_can_be_added(path: str) -> None:
    with pytest.raises(InputError):
        workspaces.check_path(path)


@pytest.mark.parametrize("path", ["a.txt/x", "sub"])
def test_what_is_added_must_have_room(path: str, folder: Path) -> None:
    with pytest.raises(InputError, match="is in its way"):
        workspaces.with_added_files(workspaces.workspace_files(str(folder)), {path: ""})


# ---- changes


def applied(before: workspaces.WorkspaceFiles, patch: str, place: Path) -> dict[str, GitFile]:
    """What git makes of the files with a patch."""
    place.mkdir()
    workspaces.write_files(before, place)
    if patch:
        environment = {**os.environ, "GIT_DIR": "/nonexistent"}
        subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"], input=patch.encode(), cwd=place, env=environment, check=True
        )
    return workspaces.workspace_files(str(place))


def test_no_change_is_an_empty_patch(folder: Path, scratch: Path) -> None:
    assert workspaces.workspace_change(workspaces.workspace_files(str(folder)), folder, scratch) == ("", ())


def test_a_patch_is_what_git_would_say(folder: Path, scratch: Path) -> None:
    before = workspaces.workspace_files(str(folder))
    (folder / "a.txt").write_text("one\nthree\n")
    assert workspaces.workspace_change(before, folder, scratch).patch == (
        "diff --git a/a.txt b/a.txt\n"
        "index 814f4a422927b82f5f8a43f8fab6d3839e3983f2..4c7442bcf5acd0f1e2a95fe4f12b12c6b779b585 100644\n"
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
    )


def test_any_change_is_in_the_patch(tmp_path: Path) -> None:
    """Random trees, random changes: text, bytes, links, programs, folders that become files, names that need quoting."""
    chance = random.Random(20261115)
    names = ["a", "b c", "zwölf", 'q"uote', "back\\slash", "new\nline", "d", "d/e", "d/f/g", os.fsdecode(b"\xff")]
    contents = [
        b"",
        b"x\n",
        b"no end",
        b"a\r\nb\r\n",
        b"\xe9t\xe9\n",
        bytes(range(256)),
        "ä\u2028\n".encode(),
        b"```\n",
    ]

    def tree() -> dict[str, GitFile]:
        chosen: dict[str, GitFile] = {}
        for name in chance.sample(names, chance.randint(0, len(names))):
            if not any(f"{other}/".startswith(f"{name}/") or f"{name}/".startswith(f"{other}/") for other in chosen):
                link = chance.random() < 0.2
                mode = GIT_MODE_SYMLINK if link else chance.choice([GIT_MODE_FILE, GIT_MODE_EXECUTABLE])
                chosen[name] = GitFile(b"/etc/passwd" if link else chance.choice(contents), mode)
        return dict(sorted(chosen.items()))

    for number in range(15):
        before, after = tree(), tree()
        for name in ("after", "scratch"):
            (tmp_path / f"{name}{number}").mkdir()
        workspaces.write_files(after, tmp_path / f"after{number}")
        change = workspaces.workspace_change(before, tmp_path / f"after{number}", tmp_path / f"scratch{number}")
        assert change.left_out == ()
        assert applied(before, change.patch, tmp_path / f"applied{number}") == after, change.patch


def test_what_gitignore_names_is_no_change_unless_it_was_there_before(folder: Path, scratch: Path) -> None:
    (folder / ".gitignore").write_text("*.log\nbuild/\n")
    (folder / "kept.log").write_text("1\n")
    before = workspaces.workspace_files(str(folder))
    (folder / "kept.log").write_text("2\n")
    (folder / "new.log").write_text("")
    (folder / "build").mkdir()
    (folder / "build" / "product").write_text("")
    (folder / "sub" / "__pycache__").mkdir()
    (folder / "sub" / "__pycache__" / "x.pyc").write_text("")
    patch = workspaces.workspace_change(before, folder, scratch).patch
    assert [line for line in patch.splitlines() if line.startswith("diff")] == ["diff --git a/kept.log b/kept.log"]


def test_a_repository_that_was_made_on_the_way_is_seen_through(folder: Path, scratch: Path) -> None:
    before = workspaces.workspace_files(str(folder))
    (folder / "inner").mkdir()
    (folder / "inner" / "x").write_text("x\n")
    for place in (folder, folder / "inner"):
        git(place, "init", "-q")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-q", "-m", "x")
    patch = workspaces.workspace_change(before, folder, scratch).patch
    assert [line for line in patch.splitlines() if line.startswith("diff")] == ["diff --git a/inner/x b/inner/x"]


def test_what_is_behind_a_link_is_not_read(folder: Path, scratch: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "run.sh").write_text("secret\n")
    before = workspaces.workspace_files(str(folder))
    (folder / "sub" / "run.sh").unlink()
    (folder / "sub").rmdir()
    (folder / "sub").symlink_to(tmp_path / "secret")
    patch = workspaces.workspace_change(before, folder, scratch).patch
    assert "new file mode 120000" in patch
    assert "deleted file mode 100755" in patch
    assert "+secret\n" not in patch


def test_what_is_too_large_for_a_patch_is_named_and_left_out(folder: Path, scratch: Path) -> None:
    before = workspaces.workspace_files(str(folder))
    with (folder / "core").open("wb") as file:
        file.truncate(3_000_000_000)
    (folder / "a.txt").write_text("new\n")
    change = workspaces.workspace_change(before, folder, scratch)
    assert change.left_out == ("core (3.0 GB)",)
    assert change.patch.count("diff --git") == 1


def test_so_many_new_files_that_no_patch_could_hold_them_are_left_out(folder: Path, scratch: Path) -> None:
    before = workspaces.workspace_files(str(folder))
    (folder / "a.txt").write_text("new\n")
    (folder / "node_modules").mkdir()
    for number in range(workspaces.MAX_WORKSPACE_FILES + 1):
        (folder / "node_modules" / str(number)).hardlink_to(folder / "a.txt")
    change = workspaces.workspace_change(before, folder, scratch)
    assert change.left_out == ("new files (more than 10,000)",)
    assert change.patch.count("diff --git") == 1


def test_a_commit_whose_files_are_gone_is_told_in_one_sentence(folder: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "all")
    name = git(folder, "rev-parse", "HEAD:a.txt")
    (folder / ".git" / "objects" / name[:2] / name[2:]).unlink()
    located = workspaces.resolve_workspace(f"{folder}@HEAD", folder.parent)
    with pytest.raises(InputError, match=r"a\.txt is not in the repository"):
        workspaces.workspace_files(located)


def test_a_small_repository_that_lists_more_than_fits_into_memory_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspaces, "MAX_GIT_OUTPUT_BYTES", 100)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "all")
    with pytest.raises(InputError, match="git ls-tree printed more than"):
        workspaces.workspace_files(workspaces.resolve_workspace(f"{folder}@HEAD", folder.parent))


def test_a_folder_that_became_a_link_after_it_was_listed_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "run.sh").write_text("secret")
    assert workspaces.read_file(folder, "sub/run.sh", 100) is not None
    (folder / "sub").rename(folder / "old")
    (folder / "sub").symlink_to(tmp_path / "mine")
    assert workspaces.read_file(folder, "sub/run.sh", 100) is None


def test_a_key_as_the_name_of_a_file_does_not_reach_the_answer(tmp_path: Path, scratch: Path) -> None:
    key, copy = "sk-verysecret-1234", tmp_path / "copy"
    copy.mkdir()
    (copy / key).write_text(key)
    with (copy / f"large-{key}").open("wb") as file:
        file.truncate(workspaces.MAX_CHANGED_BYTES + 1)
    result = workspace_result({"files": {}, "secrets": [key]}, {}, copy, scratch)
    assert "+***" in result["patch"]
    assert key not in repr(result)
