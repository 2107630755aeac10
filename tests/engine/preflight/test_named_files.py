"""Code that was agreed to is the code that runs: no file beside it, behind a link or compiled takes its place."""

from __future__ import annotations

import importlib._bootstrap_external as bootstrap
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from steelyard.engine.options import RunOptions
from steelyard.engine.preflight.named_code import model_code, require_allowed_code
from steelyard.engine.preflight.named_files import MAX_HASHED_BYTES, file_content
from steelyard.errors import InputError
from steelyard.plugins.user_functions import load_function
from steelyard.store.allowed_code import allow_code, allowed_code, allowed_code_file

FUNCTION = "def ask(prompt):\n    return 'honest'\n"
EVIL = FUNCTION.replace("honest", "evil")


def digest(model: str) -> str:
    (code,) = model_code([model], RunOptions())
    return code.digest


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("sh ask.sh", "ask.sh"),
        ("python3 folder", "folder/__main__.py"),
        ("perl --script=ask.pl", "ask.pl"),
    ],
)
def test_a_file_that_stands_in_a_command_line_counts_with_its_content(
    line: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = digest(f"command:{line}")
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text("first")
    agreed = digest(f"command:{line}")
    Path(file).write_text("second")
    assert len({before, agreed, digest(f"command:{line}")}) == 3


@pytest.mark.parametrize("file", ["__init__.py", "part.py", "part.pyc", "part.abi3.so", "linked/part.py"])
@pytest.mark.parametrize("is_package", [True, False])
def test_whatever_python_could_import_from_a_package_counts(
    file: str, is_package: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    package, other = Path("package_of_named_files"), tmp_path / "other"
    package.mkdir()
    other.mkdir()
    (package / "linked").symlink_to(other)
    (other / "loop").symlink_to(package.resolve())
    if is_package:
        (package / "__init__.py").write_text("")
    before = digest(f"python:{package}.part:ask")
    (package / file).write_text(FUNCTION)
    assert digest(f"python:{package}.part:ask") != before


def test_compiled_files_beside_a_module_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # CPython takes such a file for its source without looking at that
    make_compiled: Any = bootstrap._code_to_hash_pyc  # type: ignore[attr-defined]
    compiled = bytes(make_compiled(compile(EVIL, "m.py", "exec"), bytes(8), False))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("module_of_named_files", "other_of_named_files"):
        (tmp_path / f"{name}.py").write_text(FUNCTION)
        (tmp_path / "__pycache__").mkdir(exist_ok=True)
        (tmp_path / "__pycache__" / f"{name}.{sys.implementation.cache_tag}.pyc").write_bytes(compiled)
    assert load_function("module_of_named_files:ask").body("") == "honest"
    assert load_function(f"{tmp_path}/module_of_named_files.py:ask").body("") == "honest"
    # else this would prove nothing
    assert __import__("other_of_named_files").ask("") == "evil"


def test_code_that_changed_while_its_user_was_asked_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "checks.py"
    file.write_text(FUNCTION)

    def answer(_: str) -> bool:
        file.write_text(EVIL)
        return True

    model = f"python:{file}:ask"
    require_allowed_code(model_code([model], RunOptions()), RunOptions(ask_user=answer), "theirs.toml")
    with pytest.raises(InputError, match="changed after the question"):
        load_function(f"{file}:ask")
    # what is asked about now is what runs
    assert digest(model) not in allowed_code()
    assert load_function(f"{file}:ask").body("") == "evil"


def test_a_file_of_agreements_that_others_can_write_allows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("steelyard.store.allowed_code._allowed_here", set())
    assert allow_code([("a" * 64, "code")]) == ""
    path = allowed_code_file()
    assert path is not None
    for place in (path, path.parent, path.parent.parent):
        mode = place.stat().st_mode
        place.chmod(mode | 0o002)
        assert allowed_code() == set(), place
        assert "type: chmod go-w" in allow_code([("b" * 64, "other")])
        place.chmod(mode)
        monkeypatch.setattr("steelyard.store.allowed_code._allowed_here", set())
        assert {"a" * 64} <= allowed_code()
    path.parent.parent.chmod(0o1777)
    assert {"a" * 64} <= allowed_code()
    if os.geteuid() == 0:
        os.chown(path.parent, 65534, 65534)
        assert allowed_code() == set()


def test_a_huge_file_is_known_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    with path.open("wb") as file:
        file.truncate(100 * MAX_HASHED_BYTES)
    before = file_content(path)
    os.utime(path, (1, 1))
    assert before
    assert file_content(path) != before
