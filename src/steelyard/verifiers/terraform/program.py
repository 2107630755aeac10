"""The Terraform of this machine, run in a sandbox: offline, and with no setting of its user's.

What is no clear answer is a VerifierError, never a yes or a no: a program that is not there, a limit, a crash, other words
than `validate -json` has, an exit code that says otherwise. That holds for time limits too: an answer can be slow to
evaluate on purpose, but so can a machine, and nobody has then said anything about the answer.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from steelyard.errors import VerifierError, printable
from steelyard.protocols import Limits
from steelyard.verifiers.terraform.diagnostics import Said, Unreadable, said

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.protocols import Outcome, Workspace

NAMES = ("terraform", "tofu")
VARIABLE = "STEELYARD_TERRAFORM"
"""The environment variable that names the program, where it is not on PATH or another one is meant."""
PLUGINS = ("STEELYARD_TERRAFORM_PLUGINS", "TF_PLUGIN_CACHE_DIR")
"""The environment variables that name a folder of provider plugins; the first that is set counts."""
OLDEST = (0, 13)
INSTALL = (
    "install OpenTofu (https://opentofu.org/docs/intro/install) or Terraform "
    f"(https://developer.hashicorp.com/terraform/install), or name the program in {VARIABLE}"
)
PATIENCE = 60
"""Seconds in which the program must tell its version."""
MEMORY, MEMORY_WITH_PLUGINS = 2 << 30, 8 << 30
"""Bytes of addresses: Go reserves more than it uses, and the plugins of the large clouds use gigabytes."""
PROCESSES = 512
"""Go starts a thread for every core and for every call that blocks."""

ENVIRONMENT = {
    "CHECKPOINT_DISABLE": "1",
    "TF_IN_AUTOMATION": "1",
    "TF_INPUT": "0",
    # the parent process that older versions run themselves under looks for itself in /proc, which a sandbox has not
    "TF_FORK": "0",
    # collecting garbage at every second breath costs a short run a fifth of its time
    "GOGC": "400",
}
START = """
mkdir -p home && export HOME="$PWD/home" TMPDIR="$PWD/home" TF_CLI_CONFIG_FILE="$PWD/home/settings" || exit 126
cd -- "$1" && shift && exec "$@"
"""
"""Runs a program in a folder, with a home elsewhere: no file of a module is then a setting of the program's."""


class Program(NamedTuple):
    """A program that validates Terraform."""

    path: str
    version: str
    """Its name and version, such as `terraform 1.0.3` or `tofu 1.8.2`."""
    plugins: str = ""
    """The folder that provider plugins are installed from; empty when there is none."""

    @property
    def readable(self) -> tuple[str, ...]:
        """What a sandbox must show for the program to work."""
        program = Path(self.path)
        # a script starts something that lies beside it
        shown = str(program.parent) if _is_script(program) else self.path
        return (shown, self.plugins) if self.plugins else (shown,)

    @property
    def mirrored(self) -> tuple[str, ...]:
        """The files in the folder of plugins, by their names in it, which hold versions."""
        folder = Path(self.plugins)
        return tuple(sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))) if self.plugins else ()

    @property
    def settings(self) -> str:
        """Its settings file: nothing is installed but from the folder of plugins, and nobody is called up."""
        mirror = self.plugins or "/nonexistent"
        return (
            "disable_checkpoint = true\n"
            f'provider_installation {{\n  filesystem_mirror {{\n    path = "{mirror}"\n  }}\n}}\n'
        )

    async def init(self, place: Workspace, folder: str, seconds: float) -> str:
        """Install the providers of the module in a folder; says why that failed, nothing when it did not.

        Modules are not installed: their sources are what a model wrote, and fetching them means running git on it.
        """
        argv = [self.path, "init", "-backend=false", "-get=false", "-input=false", "-no-color"]
        outcome = await self._run(place, folder, argv, self._limits(seconds, with_plugins=True))
        if outcome.limit:
            raise VerifierError(f"{self._name} init was stopped at the {outcome.limit} after {outcome.seconds:.1f} s")
        if not outcome.exit_code:
            return ""
        return _errors(outcome) or f"{self._name} init ended with exit code {outcome.exit_code}"

    async def validate(self, place: Workspace, folder: str, seconds: float, *, with_plugins: bool) -> Answered:
        """What `validate` says of the module in a folder; a VerifierError when it says nothing clear."""
        argv = [self.path, "validate", "-json", "-no-color"]
        outcome = await self._run(place, folder, argv, self._limits(seconds, with_plugins=with_plugins))
        name = f"{self._name} validate"
        if outcome.limit:
            raise VerifierError(f"{name} was stopped at the {outcome.limit} after {outcome.seconds:.1f} s")
        try:
            found = said(outcome.stdout)
        except Unreadable as error:
            reason = _errors(outcome)[:300] or str(error)
            raise VerifierError(f"{name} gave no answer (exit code {outcome.exit_code}): {reason}") from None
        if outcome.exit_code != (0 if found.valid else 1):
            word = "valid" if found.valid else "invalid"
            raise VerifierError(f"{name} called the module {word}, but ended with exit code {outcome.exit_code}")
        return Answered(found, outcome.seconds)

    @property
    def _name(self) -> str:
        return self.version.partition(" ")[0]

    def _limits(self, seconds: float, *, with_plugins: bool) -> Limits:
        return Limits(
            cpu_seconds=seconds,
            # a busy machine must not turn right into timed out: CPU time decides, wall time is a backstop
            wall_seconds=2 * seconds + 10,
            memory_bytes=MEMORY_WITH_PLUGINS if with_plugins else MEMORY,
            processes=PROCESSES,
        )

    async def _run(self, place: Workspace, folder: str, argv: list[str], limits: Limits) -> Outcome:
        return await place.run(["/bin/sh", "-c", START, "sh", folder, *argv], limits=limits, environment=ENVIRONMENT)


class Answered(NamedTuple):
    """What `validate` said, and how long that took."""

    said: Said
    seconds: float


def program(environment: Mapping[str, str] = os.environ) -> Program:
    """The program of this machine; a VerifierError says how to get one when there is none."""
    plugins = next((environment[name] for name in PLUGINS if environment.get(name)), "")
    if plugins and not Path(plugins).is_dir():
        raise VerifierError(
            f"{plugins}: no such folder of provider plugins; make it, or correct {' or '.join(PLUGINS)}"
        )
    found = _program(environment.get(VARIABLE, ""), environment.get("PATH", os.defpath))
    return found._replace(plugins=os.path.realpath(plugins) if plugins else "")


@cache
def _program(named: str, path: str) -> Program:
    found = next(filter(None, (shutil.which(name, path=path) for name in ((named,) if named else NAMES))), None)
    if found is None:
        what = f'{VARIABLE} names "{printable(named)}", which is no program' if named else "no Terraform here"
        raise VerifierError(f"{what}; {INSTALL}")
    place = os.path.realpath(found)
    try:
        ran = subprocess.run(
            [place, "version"],
            cwd="/",
            env={"PATH": path, "HOME": "/", "TF_CLI_CONFIG_FILE": os.devnull, **ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VerifierError(f"{found} does not run: {error}; {INSTALL}") from None
    told = re.search(r"\b(Terraform|OpenTofu) v((\d+)\.(\d+)\S*)", ran.stdout)
    if told is None:
        raise VerifierError(
            f"{found} does not tell its version; if it only chooses among several, name one of those in {VARIABLE}"
        )
    name = "tofu" if told[1] == "OpenTofu" else "terraform"
    if name == "terraform" and (int(told[3]), int(told[4])) < OLDEST:
        raise VerifierError(f"{found} is Terraform {told[2]}, and 0.13 is the oldest that can be asked; {INSTALL}")
    return Program(place, f"{name} {told[2]}")


def _is_script(program: Path) -> bool:
    with program.open("rb") as file:
        return file.read(2) == b"#!"


def _errors(outcome: Outcome) -> str:
    """What went wrong, in the words of the program: from its first error on, or its last line."""
    text = outcome.stderr.decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if line.strip() and not LOG.match(line)]
    first = next((number for number, line in enumerate(lines) if ERROR.match(line)), len(lines) - 1)
    return printable(" ".join(" ".join(lines[max(0, first) :]).split())[:4000])


LOG = re.compile(r"\d{4}/\d\d/\d\d |\d{4}-\d\d-\d\dT")
ERROR = re.compile(r"(?:e:)?(?:Error: |panic: |fatal error: |runtime: )")
