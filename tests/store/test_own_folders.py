"""A folder of a known name that another user made first is not used."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from steelyard.engine.ray.node import FOLDER_PREFIX, NodeFiles
from steelyard.errors import InputError, VerifierError
from steelyard.store.files import open_to_append
from steelyard.store.journal import Journal
from steelyard.store.own_folders import RUN_FILES, is_open_to_others
from steelyard.verifiers.rust import toolchain


def planted(folder: Path, kind: str) -> None:
    """A folder as another user may leave it."""
    if kind == "a link":
        (folder.parent / "elsewhere").mkdir()
        folder.symlink_to(folder.parent / "elsewhere")
        return
    folder.mkdir(parents=True)
    if kind == "of another user":
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        os.chown(folder, 65534, 65534)
    else:
        folder.chmod(0o777)


@pytest.mark.parametrize("kind", ["a link", "of another user", "open to all"])
def test_a_folder_of_somebody_else_is_noticed(kind: str, tmp_path: Path) -> None:
    planted(tmp_path / "folder", kind)
    assert is_open_to_others(tmp_path / "folder")
    (tmp_path / "own").mkdir(0o755)
    assert not is_open_to_others(tmp_path / "own")


@pytest.mark.parametrize("kind", ["a link", "of another user", "open to all"])
def test_libraries_for_rust_are_not_taken_from_a_folder_of_somebody_else(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = toolchain.cache_folder("x").parent
    assert own.parent == tmp_path
    own.rmdir()
    planted(own, kind)
    toolchain._folder_of_this_process.cache_clear()
    try:
        other = toolchain.cache_folder("x").parent
        assert other != own
        assert (other.stat().st_mode & 0o777, other.stat().st_uid) == (0o700, os.geteuid())
        assert toolchain.cache_folder("y").parent == other
    finally:
        toolchain._folder_of_this_process.cache_clear()


def test_a_cache_that_everybody_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = os.umask(0)
    try:
        made = toolchain.cache_folder("x").parent
    finally:
        os.umask(before)
    assert made == (tmp_path / "cache" / "steelyard" / "rust").resolve()
    assert not is_open_to_others(made)
    made.chmod(0o777)
    toolchain._folder_of_this_process.cache_clear()
    try:
        assert toolchain.cache_folder("x").parent != made
    finally:
        toolchain._folder_of_this_process.cache_clear()


@pytest.mark.parametrize("kind", ["a link", "of another user", "open to all"])
def test_a_node_of_a_cluster_takes_no_code_from_a_folder_of_somebody_else(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    planted(tmp_path / f"{FOLDER_PREFIX}run", kind)
    with pytest.raises(VerifierError, match="is not ours alone"):
        NodeFiles("run")._locked()


@pytest.mark.parametrize("name", RUN_FILES)
@pytest.mark.parametrize("kind", ["a link", "a dangling link", "a pipe", "a folder"])
def test_a_run_writes_to_nothing_that_somebody_put_into_its_folder(name: str, kind: str, tmp_path: Path) -> None:
    own, folder = tmp_path / "own", tmp_path / "run"
    folder.mkdir()
    if kind == "a link":
        own.write_text("mine")
    if kind in ("a link", "a dangling link"):
        (folder / name).symlink_to(own)
    else:
        os.mkfifo(folder / name) if kind == "a pipe" else (folder / name).mkdir()
    with pytest.raises(InputError, match=f"{name}: not a plain file"):
        Journal(folder)
    assert not own.exists() or own.read_text() == "mine"


def test_a_link_that_is_laid_meanwhile_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "own")
    with pytest.raises(OSError, match="is a link"):
        open_to_append(tmp_path / "link")
    assert not (tmp_path / "own").exists()
