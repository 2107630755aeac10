"""The version comes from tags, the links from one setting, and a release from the script that builds it."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
RELEASE = ROOT / ".github" / "workflows" / "release.yml"


def module(name: str, path: Path) -> ModuleType:
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    loaded = importlib.util.module_from_spec(spec)
    loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def build() -> Iterator[ModuleType]:
    # importing setuptools puts its own distutils into the interpreter, and other tests must not see that
    known = set(sys.modules)
    yield module("steelyard_setup", ROOT / "setup.py")
    for name in set(sys.modules) - known:
        if name.partition(".")[0] in ("setuptools", "distutils", "_distutils_hack", "pkg_resources"):
            del sys.modules[name]


@pytest.fixture(scope="module")
def release() -> ModuleType:
    return module("steelyard_release", ROOT / "tools" / "release")


Git = Callable[..., None]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[tool.steelyard]\nnext-version = "0.3.0"\n')
    return tmp_path


def git(tree: Path, *arguments: str) -> None:
    who = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "tag.gpgsign=false",
    )
    subprocess.run(["git", "-C", tree, *who, *arguments], check=True, capture_output=True)


def test_the_version_is_the_tag_and_between_tags_the_next_release_with_its_commits(
    tree: Path, build: ModuleType
) -> None:
    git(tree, "init", "--quiet")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "-m", "one")
    assert re.fullmatch(r"0\.3\.0\.dev1\+g[0-9a-f]{7}", build.version(tree))
    git(tree, "tag", "v0.2.0")
    git(tree, "tag", "vacation")
    assert build.version(tree) == "0.2.0"
    git(tree, "commit", "--quiet", "--allow-empty", "-m", "two")
    assert re.fullmatch(r"0\.3\.0\.dev1\+g[0-9a-f]{7}", build.version(tree))


def test_a_tree_without_history_still_has_a_version(tree: Path, build: ModuleType) -> None:
    assert build.version(tree) == "0.3.0.dev0"
    (tree / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: steelyard\nVersion: 0.2.1\n\nVersion: 9\n")
    assert build.version(tree) == "0.2.1"
    inner = tree / "vendored"
    inner.mkdir()
    git(tree, "init", "--quiet")
    (inner / "pyproject.toml").write_text('[tool.steelyard]\nnext-version = "0.4.0"\n')
    assert build.version(inner) == "0.4.0.dev0", "the history of a folder around it is not its own"


def test_links_and_the_address_of_the_schema_come_from_one_setting_or_there_are_none(
    tree: Path, build: ModuleType
) -> None:
    assert build.project_urls(tree, "") == {}
    urls = build.project_urls(tree, "https://example.org/owner/name/")
    assert urls["Homepage"] == "https://example.org/owner/name"
    assert all(url.startswith(urls["Homepage"]) for url in urls.values())
    shipped = (ROOT / "docs" / "eval-set.schema.json").read_text("utf-8")
    assert "$id" not in json.loads(shipped)
    named = json.loads(build.with_id(shipped, urls["Homepage"], "0.2.0"))
    assert named.pop("$id") == "https://example.org/owner/name/raw/v0.2.0/docs/eval-set.schema.json"
    assert named == json.loads(shipped)
    (tree / "PKG-INFO").write_text("Name: steelyard\nProject-URL: Homepage, https://example.org/a\n\n")
    assert build.project_urls(tree, "") == {"Homepage": "https://example.org/a"}
    with pytest.raises(SystemExit, match="is an address such as"):
        build.project_urls(tree, "javascript:alert(1)")


def test_release_notes_are_the_section_of_the_version(release: ModuleType) -> None:
    changes = "# Changes\n\n## Unreleased\n\n- soon\n\n## 0.2.0 (2026-12-01)\n\n- new\n\n## 0.1.0\n\n- first\n"
    assert release.notes(changes, "0.2.0") == "# steelyard 0.2.0\n\n- new\n"
    assert release.notes(changes, "0.3.0.dev1+gabc") == "# steelyard 0.3.0.dev1+gabc\n\n- soon\n"
    with pytest.raises(SystemExit, match=r'nothing under "0\.2\.1"'):
        release.notes(changes, "0.2.1")
    assert release.notes((ROOT / "CHANGELOG.md").read_text("utf-8"), "1.0.dev1").count("\n") > 3


def test_the_readme_has_commands_that_a_release_tries(release: ModuleType) -> None:
    assert all(command.startswith("steelyard ") for command in release.readme_commands())
    assert release.readme_commands()
    script = release.trial("python3", "x.whl", "--no-index")
    assert subprocess.run(["sh", "-n"], input=script, text=True).returncode == 0


def test_the_release_workflow_publishes_by_trust_and_stores_no_secret() -> None:
    text = RELEASE.read_text("utf-8")
    jobs = YAML(typ="safe").load(text)["jobs"]
    assert jobs["publish"]["permissions"]["id-token"] == "write"
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == ["publish"]
    assert "secrets." not in text
    scripts = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert "make release" in scripts
    assert "${{" not in "".join(scripts)
