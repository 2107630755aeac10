"""What tests need of the system is installed where we may, and asked for elsewhere."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "system-packages"
PROGRAMS = {
    "bwrap": "bubblewrap",
    "mold": "mold",
    "chromium": "chromium",
    "qemu-x86_64-static": "qemu-user-static",
    "jq": "jq",
    "zsh": "zsh",
    "fish": "fish",
    "c++": "g++",
    "node": "nodejs",
    "javac": "default-jdk-headless",
    "php": "php-cli",
    "Rscript": "r-base-core",
    "perl": "libtest-deep-perl",
    "lua": "lua5.4 lua-unit",
    "ruby": "ruby ruby-test-unit",
    "go": "golang-go golang-github-stretchr-testify-dev",
}
"""Programs, and the packages that bring them and what they load."""
NEEDED = [*" ".join(PROGRAMS.values()).split(), "librust-itoa-dev"]
WISHED = "chromium-headless-shell"
INSTALLING = """
for last; do :; done
case "$*" in
    *update*) ;;
    *) echo "$last" >>installed ;;
esac
"""


class Machine:
    """A folder of made-up programs, which is all that the script finds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has(self, name: str, script: str = "") -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", SCRIPT, self.folder / "registry", self.folder],
            cwd=self.folder,
            env={"PATH": str(self.folder), **environment},
            capture_output=True,
            text=True,
        )

    @property
    def installed(self) -> list[str]:
        list_ = self.folder / "installed"
        return list_.read_text().split() if list_.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.has("id", "echo 0")
    return made


def test_where_everything_is_there_nothing_is_done(machine: Machine) -> None:
    for name in (*PROGRAMS, WISHED):
        machine.has(name)
    (machine.folder / "registry" / "itoa-1.0.1").mkdir(parents=True)
    machine.has("apt-get", INSTALLING)
    ran = machine.run(CI="1")
    assert (ran.returncode, ran.stdout, ran.stderr, machine.installed) == (0, "", "", [])


def test_root_on_debian_gets_what_is_missing_and_only_that(machine: Machine) -> None:
    machine.has("mold")
    machine.has("apt-get", INSTALLING)
    assert machine.run().returncode == 0
    assert machine.installed == [*(package for package in NEEDED if package != "mold"), WISHED]


def test_a_library_is_missing_although_its_language_is_there(machine: Machine) -> None:
    machine.has("lua", "exit 1")
    machine.has("apt-get", INSTALLING)
    assert machine.run().returncode == 0
    assert "lua-unit" in machine.installed
    assert "lua5.4" not in machine.installed


def test_a_registry_out_of_reach_fails_nobody_but_ci(machine: Machine) -> None:
    machine.has("apt-get", "exit 100")
    at_home, in_ci = machine.run(), machine.run(CI="1")
    assert (at_home.returncode, in_ci.returncode) == (0, 1)
    assert at_home.stderr == f"some tests need packages that are not installed; install: {' '.join(NEEDED)}\n"


def test_what_is_only_wished_for_is_missed_by_nobody(machine: Machine) -> None:
    for name in PROGRAMS:
        machine.has(name)
    (machine.folder / "registry" / "itoa-1.0.1").mkdir(parents=True)
    machine.has("apt-get", f'echo "$@" >>tried\ncase "$*" in *{WISHED}*) exit 100 ;; esac')
    ran = machine.run(CI="1")
    assert (ran.returncode, ran.stderr) == (0, "")
    tried = (machine.folder / "tried").read_text()
    assert (tried.count(WISHED), tried.count("update")) == (2, 1)


def test_an_ordinary_user_is_told_and_nothing_is_installed(machine: Machine) -> None:
    machine.has("id", "echo 1000")
    machine.has("apt-get", INSTALLING)
    machine.has("sudo", 'shift; exec "$@"')
    ran = machine.run()
    assert (ran.returncode, machine.installed) == (0, [])
    assert " ".join(NEEDED) in ran.stderr
    assert machine.run(CI="1").returncode == 0
    assert machine.installed == [*NEEDED, WISHED]


def test_a_machine_without_debian_is_told_what_to_install(machine: Machine) -> None:
    assert machine.run().stderr.count("\n") == 1
