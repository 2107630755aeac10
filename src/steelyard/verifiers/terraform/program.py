"""The Terraform of this machine, run in a sandbox: offline, and with no setting of its user's.

An unclear answer is a VerifierError, never a yes or a no: a missing program, a limit, a crash, other words
than `validate -json` has, an exit code that says otherwise. A limit and a crash have an error of their own: what is evaluated
without end, or crashes its reader, is wrong where the file is a model's alone, and unknown where it is a whole module of others'.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from steelyard.errors import MissingToolError, VerifierError
from steelyard.protocols import FailureLabel, ResourceLimits
from steelyard.secret_texts import Environment
from steelyard.text import printable
from steelyard.verifiers.terraform.diagnostics import UnreadableValidateOutput, ValidateOutput, parse_validate_output
from steelyard.verifiers.trouble import trouble_sign

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.protocols import ProcessResult, Workspace

TERRAFORM_PROGRAM_NAMES = ("terraform", "tofu")
TERRAFORM_PROGRAM_VARIABLE = "STEELYARD_TERRAFORM"
"""The environment variable that names the program, where it is not on PATH or another one is meant."""
PLUGIN_FOLDER_VARIABLES = ("STEELYARD_TERRAFORM_PLUGINS", "TF_PLUGIN_CACHE_DIR")
"""The environment variables that name a folder of provider plugins; the first that is set counts."""
MIN_TERRAFORM_VERSION = (0, 13)
TERRAFORM_INSTALL_HINT = (
    "install OpenTofu (https://opentofu.org/docs/intro/install) or Terraform "
    f"(https://developer.hashicorp.com/terraform/install), or name the program in {TERRAFORM_PROGRAM_VARIABLE}"
)
TERRAFORM_VERSION_TIMEOUT_SECONDS = 60
"""Seconds in which the program must print its version."""
TERRAFORM_MEMORY_BYTES, TERRAFORM_PLUGINS_MEMORY_BYTES = 2 << 30, 8 << 30
"""Bytes of addresses: Go reserves more than it uses, and the plugins of the large clouds use gigabytes."""
MAX_TERRAFORM_PROCESSES = 512
"""Go starts a thread for every core and for every call that blocks."""

TERRAFORM_ENVIRONMENT = {
    "CHECKPOINT_DISABLE": "1",
    "TF_IN_AUTOMATION": "1",
    "TF_INPUT": "0",
    # older versions run under a parent process that needs /proc, which a sandbox lacks
    "TF_FORK": "0",
    # frequent garbage collection costs a short run a fifth of its time
    "GOGC": "400",
}
TERRAFORM_START_SCRIPT = """
mkdir -p home && export HOME="$PWD/home" TMPDIR="$PWD/home" TF_CLI_CONFIG_FILE="$PWD/home/settings" || exit 126
cd -- "$1" && shift && exec "$@"
"""
"""Runs a program in a folder, with a home elsewhere: no file of a module is then a setting of the program's."""


GO_CRASH_PATTERN = re.compile(rb"^(?:fatal error: |panic: |runtime: goroutine stack exceeds)", re.MULTILINE)


class ValidateStoppedError(VerifierError):
    """Validating a module came to no end: it was stopped at a limit, or crashed."""

    def __init__(self, message: str, label: str, trouble: str = "") -> None:
        super().__init__(message)
        self.label = label
        """The label if the answer is to blame."""
        self.trouble = trouble
        """A sign that the machine is to blame; empty for none."""


class TerraformProgram(NamedTuple):
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
        """Its settings file: nothing is installed except from the folder of plugins, and no server is contacted."""
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

    async def validate(
        self, place: Workspace, folder: str, seconds: float, *, with_plugins: bool
    ) -> TimedValidateOutput:
        """What `validate` says of the module in a folder; a VerifierError when it says nothing clear."""
        argv = [self.path, "validate", "-json", "-no-color"]
        outcome = await self._run(place, folder, argv, self._limits(seconds, with_plugins=with_plugins))
        name = f"{self._name} validate"
        if outcome.limit:
            stopped = f"{name} was stopped at the {outcome.limit} after {outcome.seconds:.1f} s"
            raise ValidateStoppedError(stopped, outcome.limit)
        try:
            found = parse_validate_output(outcome.stdout)
        except UnreadableValidateOutput as error:
            reason = _errors(outcome)[:300] or str(error)
            unread = f"{name} gave no answer (exit code {outcome.exit_code}): {reason}"
            if GO_CRASH_PATTERN.search(outcome.stderr):
                raise ValidateStoppedError(unread, FailureLabel.DIED, trouble_sign(outcome)) from None
            raise VerifierError(unread) from None
        if outcome.exit_code != (0 if found.valid else 1):
            word = "valid" if found.valid else "invalid"
            raise VerifierError(f"{name} called the module {word}, but ended with exit code {outcome.exit_code}")
        return TimedValidateOutput(found, outcome.seconds)

    @property
    def _name(self) -> str:
        return self.version.partition(" ")[0]

    def _limits(self, seconds: float, *, with_plugins: bool) -> ResourceLimits:
        return ResourceLimits(
            cpu_seconds=seconds,
            # a busy machine must not turn right into timed out: CPU time decides, wall time is a backstop
            wall_seconds=2 * seconds + 10,
            memory_bytes=TERRAFORM_PLUGINS_MEMORY_BYTES if with_plugins else TERRAFORM_MEMORY_BYTES,
            processes=MAX_TERRAFORM_PROCESSES,
        )

    async def _run(self, place: Workspace, folder: str, argv: list[str], limits: ResourceLimits) -> ProcessResult:
        return await place.run(
            ["/bin/sh", "-c", TERRAFORM_START_SCRIPT, "sh", folder, *argv],
            limits=limits,
            environment=TERRAFORM_ENVIRONMENT,
        )


class TimedValidateOutput(NamedTuple):
    """The output of `validate`, and how long it took."""

    output: ValidateOutput
    seconds: float


def find_terraform(environment: Mapping[str, str] = Environment()) -> TerraformProgram:
    """The program of this machine; a VerifierError says how to get one when there is none."""
    plugins = next((environment[name] for name in PLUGIN_FOLDER_VARIABLES if environment.get(name)), "")
    if plugins and not Path(plugins).is_dir():
        raise MissingToolError(
            f"{plugins}: no such folder of provider plugins; make it, or correct {' or '.join(PLUGIN_FOLDER_VARIABLES)}"
        )
    found = _find_program(environment.get(TERRAFORM_PROGRAM_VARIABLE, ""), environment.get("PATH", os.defpath))
    return found._replace(plugins=os.path.realpath(plugins) if plugins else "")


@cache
def _find_program(named: str, path: str) -> TerraformProgram:
    found = next(
        filter(None, (shutil.which(name, path=path) for name in ((named,) if named else TERRAFORM_PROGRAM_NAMES))), None
    )
    if found is None:
        what = (
            f'{TERRAFORM_PROGRAM_VARIABLE} names "{printable(named)}", which is not a program'
            if named
            else "no Terraform here"
        )
        raise MissingToolError(f"{what}; {TERRAFORM_INSTALL_HINT}")
    place = os.path.realpath(found)
    try:
        ran = subprocess.run(
            [place, "version"],
            cwd="/",
            env={"PATH": path, "HOME": "/", "TF_CLI_CONFIG_FILE": os.devnull, **TERRAFORM_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TERRAFORM_VERSION_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingToolError(f"{found} does not run: {error}; {TERRAFORM_INSTALL_HINT}") from None
    version = re.search(r"\b(Terraform|OpenTofu) v((\d+)\.(\d+)\S*)", ran.stdout)
    if version is None:
        raise MissingToolError(
            f"{found} does not print its version; if it only chooses among several, name one of those in {TERRAFORM_PROGRAM_VARIABLE}"
        )
    name = "tofu" if version[1] == "OpenTofu" else "terraform"
    if name == "terraform" and (int(version[3]), int(version[4])) < MIN_TERRAFORM_VERSION:
        raise MissingToolError(
            f"{found} is Terraform {version[2]}, and 0.13 is the oldest that is supported; {TERRAFORM_INSTALL_HINT}"
        )
    return TerraformProgram(place, f"{name} {version[2]}")


def _is_script(program: Path) -> bool:
    with program.open("rb") as file:
        return file.read(2) == b"#!"


def _errors(outcome: ProcessResult) -> str:
    """What went wrong, in the words of the program: from its first error on, or its last line."""
    text = outcome.stderr.decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if line.strip() and not TERRAFORM_LOG_LINE.match(line)]
    first = next((number for number, line in enumerate(lines) if TERRAFORM_ERROR_LINE.match(line)), len(lines) - 1)
    return printable(" ".join(" ".join(lines[max(0, first) :]).split())[:4000])


TERRAFORM_LOG_LINE = re.compile(r"\d{4}/\d\d/\d\d |\d{4}-\d\d-\d\dT")
TERRAFORM_ERROR_LINE = re.compile(r"(?:e:)?(?:Error: |panic: |fatal error: |runtime: )")
