"""The program that brings other people's files says where each is from, and takes none but the one that was meant."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "agreement" / "fetch"
SAMPLES = Path(__file__).parents[2] / "benchmarks" / "agreement" / "samples.py"


@pytest.fixture(scope="module")
def fetch() -> ModuleType:
    module = ModuleType("agreement_fetch")
    sys.modules[module.__name__] = module
    exec(compile(TOOL.read_text("utf-8"), TOOL, "exec"), module.__dict__)
    return module


def test_each_repository_that_is_read_has_a_commit_and_a_digest(fetch: ModuleType) -> None:
    listed = subprocess.run([TOOL], stdout=subprocess.PIPE, text=True, check=True).stdout
    read = SAMPLES.read_text("utf-8")
    for source in fetch.SOURCES:
        assert f"{source.repository} at {source.commit[:12]}" in listed
        assert source.repository in read
        assert len(source.commit) == 40
        assert len(source.digest) == 16


def test_files_are_taken_at_a_commit_from_a_clone_that_stays_as_it_is(fetch: ModuleType, tmp_path: Path) -> None:
    clone = tmp_path / "clones" / "name"
    clone.mkdir(parents=True)
    (clone / "data").mkdir()
    for name in ("kept.jsonl", "other.jsonl"):
        (clone / "data" / name).write_text("{}\n", "utf-8")

    def git(*command: str) -> str:
        identity = ("-c", "user.name=n", "-c", "user.email=e@localhost")
        return subprocess.run(
            ["git", "-C", clone, *identity, *command], stdout=subprocess.PIPE, text=True, check=True
        ).stdout.strip()

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "one")
    commit = git("rev-parse", "HEAD")
    (clone / "data" / "kept.jsonl").write_text("changed\n", "utf-8")
    source = fetch.Source("owner/name", commit, ("data/*.jsonl", "!data/other.jsonl"), "", "")
    place = tmp_path / "folder" / "owner" / "name"
    fetch.bring(source, tmp_path / "clones", place)
    assert [path.relative_to(place).as_posix() for path in place.rglob("*.*")] == ["data/kept.jsonl"]
    assert (place / "data" / "kept.jsonl").read_text("utf-8") == "{}\n"
    assert git("status", "--porcelain") == "M data/kept.jsonl"
    digest = fetch.digest(place)
    (place / "data" / "kept.jsonl").write_text("changed\n", "utf-8")
    assert fetch.digest(place) != digest
