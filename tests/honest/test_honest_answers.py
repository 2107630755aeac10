"""An honest answer is never failed: each case here is right the plain way (a slow test holds that), and so it must be by our verifiers.

To add a case, write it into one of the eval sets beside this file, with the right answer as its `reference`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from benchmarks.agreement import plain
from benchmarks.agreement.samples import plain_order

from attacks.scenes import needs_level, python_of, scenes, told_once
from honest import at_level
from honest.at_level import FILES, PACKAGES_FILES, REVIEWED_FILES, judged, kind
from honest.known_failures import KNOWN_FAILURES, NEED_DESCRIPTOR_PATHS, NEED_OWN_ROOT
from steelyard import evalsets
from steelyard.records import Case
from steelyard.sandbox.levels import strongest_isolation

RIGHT_ONLY_WITH_FORKS = {"multiprocessing-pool", "process-pool-executor"}
"""Functions whose processes hang by any way of running them from Python 3.14 on: they are no forks, and the module is in no file."""
LEVEL = strongest_isolation()


def in_environment(cases: Sequence[Case], folder: Path) -> Sequence[Case]:
    """The cases with the packages of a virtual environment."""
    return tuple(
        msgspec.structs.replace(case, verify=msgspec.structs.replace(case.verify, python_env=str(folder)))
        for case in cases
    )


def other_pythons() -> list[Path]:
    """Interpreters of other versions from 3.11 on that are installed here."""
    versions = [f"3.{minor}" for minor in range(11, 20) if minor != sys.version_info.minor]
    installed = [shutil.which(f"python{version}") for version in versions]
    # what pyenv puts on the path stands for a version that may not be switched on
    kept = [sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python3")) for version in versions]
    return [
        paths[-1] if paths else Path(found or "")
        for found, paths in zip(installed, kept, strict=True)
        if found or paths
    ]


def not_right(cases: Sequence[Case], python: Path) -> dict[str, str]:
    """The Python cases that fail the plain way, with the reason."""
    judged_here = [case for case in cases if kind(case) == "python"]
    orders = "".join(f"{json.dumps(plain_order(case, case.reference))}\n" for case in judged_here)
    # as bare as in the sandbox: a program may ask for the width of its terminal, which our tests set
    bare = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    ran = subprocess.run(
        [python, plain.__file__], input=orders, stdout=subprocess.PIPE, text=True, check=True, env=bare
    )
    reasons = map(json.loads, ran.stdout.splitlines())
    return {case.id: reason for case, reason in zip(judged_here, reasons, strict=True) if reason}


def cases_of(file: Path) -> Sequence[Case]:
    """The cases of an eval set, in an environment with the packages that they need."""
    cases = evalsets.load([file]).cases
    if file not in PACKAGES_FILES:
        return cases
    return in_environment(cases, Path(sys.prefix))


@pytest.mark.slow
@pytest.mark.parametrize("file", [*FILES, *REVIEWED_FILES], ids=lambda file: file.stem)
def test_honest_answers_are_right_the_plain_way(file: Path) -> None:
    assert not not_right(cases_of(file), Path(sys.executable))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_honest_answers_of_every_kind_pass(file: Path) -> None:
    """Every third of them, in every run of the tests, and all that import packages or look like a benchmark's."""
    none_failed(cases_of(file)[:: 1 if file in PACKAGES_FILES or file.stem == "benchmarks" else 3])


@pytest.mark.slow
@pytest.mark.parametrize("file", [*FILES, *REVIEWED_FILES], ids=lambda file: file.stem)
def test_no_honest_answer_is_failed(file: Path) -> None:
    none_failed(cases_of(file))


@pytest.mark.slow
def test_no_wrong_twin_of_an_honest_answer_passes() -> None:
    cases = [case for case in evalsets.load(REVIEWED_FILES).cases if case.counterexample]
    twins = [msgspec.structs.replace(case, reference=case.counterexample) for case in cases]
    assert len(not_right(twins, Path(sys.executable))) == len(twins) > 60
    failed = asyncio.run(judged(twins, LEVEL))
    assert not {twin.id for twin in twins} - failed.keys()
    assert not [reason for reason in failed.values() if reason.startswith("failure of ours")]


def none_failed(cases: Sequence[Case]) -> None:
    failed = asyncio.run(judged(cases, LEVEL))
    unknown = {case: reason for case, reason in failed.items() if case not in KNOWN_FAILURES}
    assert not unknown, "\n".join(f"{case}: {reason}" for case, reason in unknown.items())
    mended = [case.id for case in cases if case.id in KNOWN_FAILURES and case.id not in failed]
    assert not mended, "these pass now; take them out of KNOWN_FAILURES"


@pytest.mark.slow
@pytest.mark.parametrize("python", other_pythons(), ids=str)
def test_no_honest_answer_is_failed_on_another_python(python: Path, tmp_path: Path) -> None:
    subprocess.run([python, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    found = evalsets.load([file for file in FILES if file not in PACKAGES_FILES]).cases
    # pytest would have to be installed for each of them
    plain = tuple(case for case in found if kind(case) == "python" and case.verify.style != "pytest")
    asked = "import sys; print(sys.version_info >= (3, 14))"
    if subprocess.run([python, "-c", asked], stdout=subprocess.PIPE, text=True, check=True).stdout.strip() == "True":
        plain = tuple(case for case in plain if case.id not in RIGHT_ONLY_WITH_FORKS)
    cases = in_environment(plain, tmp_path / "env")
    wrong = not_right(cases, tmp_path / "env" / "bin" / "python")
    assert not wrong, "not right the plain way"
    failed = {case: reason for case, reason in asyncio.run(judged(cases, LEVEL)).items() if case not in KNOWN_FAILURES}
    assert not failed, "\n".join(f"{case}: {reason}" for case, reason in failed.items())


@pytest.mark.slow
@pytest.mark.parametrize("scene", scenes(()))
def test_no_honest_answer_is_failed_at_any_level_as_any_user(
    scene: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    level, user = scene
    needs_level(level)
    command = [python_of(user), at_level.__file__, level]
    told = told_once(tmp_path_factory, f"honest-{level}-{user}", user, command)
    assert told["judged"] > 300
    known = {*KNOWN_FAILURES, *(() if level in ("full", "bubblewrap") else NEED_OWN_ROOT)}
    known |= set() if level == "full" else NEED_DESCRIPTOR_PATHS
    failed = {case: reason for case, reason in told["failed"].items() if case not in known}
    assert not failed, "\n".join(f"{case}: {reason}" for case, reason in failed.items())
