"""A look at this machine: what is enforced, which toolchains are there, and how to get the others."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.engine.limits import LIMIT_STEPS, TIMES_REFERENCE
from steelyard.engine.options import RunOptions
from steelyard.engine.pool import run_coroutine
from steelyard.engine.preflight.witnesses import WitnessSet
from steelyard.engine.ray.cluster import address
from steelyard.engine.ray.wire import LOCAL_CLUSTER
from steelyard.engine.verifiers import VerifierSet
from steelyard.errors import InputError
from steelyard.plugins import foreign_plugins, load_plugin
from steelyard.plugins.built_in import BUILT_IN_PLUGINS
from steelyard.protocols import ResourceLimits
from steelyard.records import Case
from steelyard.reports.lists import AttemptLimit, ContainmentLevel, MachineHealth, RegisteredPlugin, ToolStatus
from steelyard.sandbox.control_group import delegated_group
from steelyard.sandbox.folders import MAX_SANDBOX_FILES, SANDBOX_TMPFS_SIZE
from steelyard.sandbox.levels import (
    ISOLATION_CLAIMS,
    ISOLATION_LEVEL_NAMES,
    IsolationProbeResult,
    probe_isolation,
    strongest_isolation,
)
from steelyard.sandbox.process_room import process_shortage
from steelyard.sandbox.worker import WATCH_SECONDS, base_interpreter, base_python_folders, sandbox_environment
from steelyard.sandbox.zygote import MAX_OPEN_FILES
from steelyard.secret_texts import Environment, HiddenFrames
from steelyard.text import printable
from steelyard.verifiers.python.plan import PYTHON_TEST_STYLES
from steelyard.verifiers.terraform.program import TERRAFORM_PROGRAM_NAMES, TERRAFORM_PROGRAM_VARIABLE
from steelyard.verifiers.witnesses import command_witness, python_witness, rust_witness, terraform_witness

VERSION_TIMEOUT_SECONDS = 20
"""Seconds in which a program must print its version."""
RUSTUP_HINT = "rustup from https://rustup.rs"


class ToolRequirement(NamedTuple):
    """A program that a verifier or a user may need, and how to install it."""

    names: tuple[str, ...]
    """What it may be called; the first that is found is taken."""
    purpose: str
    apt: str = ""
    """Debian's package."""
    brew: str = ""
    elsewhere: str = ""
    """Where to get it when neither has it."""
    anywhere: bool = False
    """Whether it works outside the folders that a sandbox shows."""
    question: str = "--version"
    variable: str = ""
    """The environment variable by which the user names another one."""
    witness: Callable[[str], Case] | None = None
    """By the name of the program, a case whose reference proves that it works in a sandbox; None if it is only looked for."""


ANY_CASE = Case(id="", prompt="")
"""What witnesses take their limits from."""


def _command_witness(tool: str) -> Case:
    return command_witness(ANY_CASE, [tool])


TOOL_REQUIREMENTS = (
    ToolRequirement(
        ("rustc",),
        "Rust answers",
        elsewhere=RUSTUP_HINT,
        anywhere=True,
        witness=lambda _: rust_witness(ANY_CASE),
    ),
    ToolRequirement(("clippy-driver",), "lint of Rust answers", elsewhere="rustup component add clippy", anywhere=True),
    ToolRequirement(("cargo",), "Rust answers with dependencies", elsewhere=RUSTUP_HINT, anywhere=True),
    ToolRequirement(("ld.mold", "ld.lld"), "faster linking of Rust answers", apt="mold", brew="lld"),
    ToolRequirement(
        ("cc", "gcc", "clang"),
        "linking Rust answers, C by commands",
        apt="gcc",
        elsewhere="xcode-select --install",
        witness=_command_witness,
    ),
    ToolRequirement(("git",), "agents in workspaces", apt="git", brew="git"),
    ToolRequirement(("node",), "JavaScript by commands", apt="nodejs", brew="node", witness=_command_witness),
    ToolRequirement(("go",), "Go by commands", apt="golang-go", brew="go", question="version"),
    ToolRequirement(
        TERRAFORM_PROGRAM_NAMES,
        "Terraform answers and repairs",
        brew="opentofu",
        elsewhere="https://opentofu.org/docs/intro/install; to check syntax only: pip install 'steelyard[hcl]'",
        anywhere=True,
        variable=TERRAFORM_PROGRAM_VARIABLE,
        witness=lambda _: terraform_witness(ANY_CASE),
    ),
)
BUBBLEWRAP_REQUIREMENT = ToolRequirement(
    ("bwrap",), "isolation where this machine forbids namespaces", apt="bubblewrap", anywhere=True
)


def examine_machine(path: str | None = None) -> MachineHealth:
    """Try every level of containment and every toolchain; programs are looked for in `path`, otherwise where the user's are."""
    levels = {name: probe_isolation(name) for name in ISOLATION_LEVEL_NAMES}
    try:
        used: str = strongest_isolation().level
    except InputError:
        used = ""
    wanted = (BUBBLEWRAP_REQUIREMENT, *TOOL_REQUIREMENTS) if sys.platform == "linux" else TOOL_REQUIREMENTS
    tools = [(None, _python()), *((one, find_tool(one, path)) for one in wanted)]
    if path is None and used:
        tools = run_coroutine(_proved(tools))
    return MachineHealth(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        root=os.geteuid() == 0,
        level=used,
        levels=tuple(_level(name, found) for name, found in levels.items()),
        limits=tuple(_limits(levels[used] if used else None)),
        tools=(*(tool for _, tool in tools), ray_tool()),
        advice=tuple(machine_advice(used)),
        plugins=tuple(registered_plugins()),
    )


def registered_plugins() -> Iterator[RegisteredPlugin]:
    """What other distributions register, and whether it can be loaded."""
    for kind in BUILT_IN_PLUGINS:
        for name, point in foreign_plugins(kind).items():
            problem = ""
            try:
                load_plugin(kind, name)
            except InputError as error:
                problem = str(error)
            source = f"{point.dist.name} {point.dist.version}" if point.dist else ""
            yield RegisteredPlugin(kind=kind, name=name, distribution=source, problem=problem)


def find_tool(wanted: ToolRequirement, path: str | None = None) -> ToolStatus:
    """A program with its version, or how to get it."""
    seen = sandbox_environment("")["PATH"] if path is None and not wanted.anywhere else path
    named = os.environ.get(wanted.variable) if path is None else None
    for name in (named,) if named else wanted.names:
        found = shutil.which(name, path=seen)
        if found:
            version, problem = _version(found, wanted.question)
            remedy = _remedy(wanted) if problem else ""
            return _tool(Path(name).name, wanted, version=version, path=found, problem=problem, remedy=remedy)
    is_hidden = path is None and not wanted.anywhere
    hidden = next(filter(None, (shutil.which(name) for name in wanted.names)), "") if is_hidden else ""
    problem = f"{hidden} is not in {seen}, where a sandbox looks" if hidden else "not found"
    if named:
        problem = f"{wanted.variable} names {named}, which is not a program"
    name = " or ".join(wanted.names)
    return _tool(name, wanted, version="", path=hidden, problem=problem, remedy=_remedy(wanted))


def _tool(name: str, wanted: ToolRequirement, *, version: str, path: str, problem: str, remedy: str) -> ToolStatus:
    return ToolStatus(name=name, purpose=wanted.purpose, version=version, path=path, problem=problem, remedy=remedy)


def _python() -> ToolStatus:
    return ToolStatus(
        name="Python",
        purpose="Python answers",
        version=platform.python_version(),
        path=base_interpreter(),
        problem="",
        remedy="",
    )


FoundTool = tuple[ToolRequirement | None, ToolStatus]
"""What is wanted, and what was found; Python is always wanted."""


async def _proved(tools: Sequence[FoundTool]) -> list[FoundTool]:
    """The tools, with a problem where an answer that is known to be right does not pass in the sandbox that runs use."""
    witnesses = [_witnesses(wanted, tool) for wanted, tool in tools]
    verifying = VerifierSet([case for cases in witnesses for case in cases], RunOptions())
    tried = WitnessSet(verifying.of, verifying.level)
    proved = []
    try:
        for (wanted, tool), cases in zip(tools, witnesses, strict=True):
            faults = [fault for case in cases if (fault := await tried.fault(case))]
            proved.append((wanted, _unusable(wanted, tool, faults[0]) if faults else tool))
    finally:
        await verifying.close()
    return proved


def _witnesses(wanted: ToolRequirement | None, tool: ToolStatus) -> list[Case]:
    """What a tool must be able to do; nothing if it was not found, or where no witness is known."""
    if wanted is None:
        styles = [style for style in PYTHON_TEST_STYLES if style != "pytest" or find_spec("pytest")]
        return [python_witness(ANY_CASE, style) for style in styles]
    return [wanted.witness(tool.name)] if wanted.witness and not tool.problem else []


def _unusable(wanted: ToolRequirement | None, tool: ToolStatus, fault: str) -> ToolStatus:
    return replace(
        tool,
        version="",
        problem=f"an answer that is known to be correct fails: {fault}",
        remedy=_remedy(wanted) if wanted else "reinstalling Python",
    )


def ray_tool(variables: Mapping[str, str] = Environment()) -> ToolStatus:
    """Ray with its version and, where one answers, the cluster that `--backend ray` would use."""
    purpose, place, problem = "verifying on many machines", "", ""
    try:
        place = address("", variables)
    except InputError as error:
        problem = str(error)
    if place not in ("", LOCAL_CLUSTER):
        purpose += f", now on the cluster at {printable(place)}"
    spec = find_spec("ray")
    if spec is None or not spec.origin:
        return ToolStatus(
            name="Ray", purpose=purpose, version="", path="", problem="not found", remedy="pip install 'steelyard[ray]'"
        )
    return ToolStatus(name="Ray", purpose=purpose, version=version("ray"), path=spec.origin, problem=problem, remedy="")


def _version(program: str, question: str) -> tuple[str, str]:
    """What a program says of itself, and what is wrong with it."""
    try:
        with HiddenFrames():
            ran = subprocess.run(
                [program, question],
                # without this Terraform looks for a newer version over the network, which takes time
                env={**Environment(), "CHECKPOINT_DISABLE": "1"},
                capture_output=True,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                timeout=VERSION_TIMEOUT_SECONDS,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"does not run: {error}"
    output = ran.stdout.strip() or ran.stderr.strip()
    if ran.returncode:
        return "", f"does not run: {output.splitlines()[0] if output else f'exit code {ran.returncode}'}"
    number = re.search(r"\d+(?:\.\d+)+[\w.-]*", output)
    return (number[0] if number else "of unknown version"), ""


def _remedy(wanted: ToolRequirement) -> str:
    if sys.platform == "darwin":
        return f"brew install {wanted.brew}" if wanted.brew else wanted.elsewhere
    if not wanted.apt:
        return wanted.elsewhere
    return f"apt install {wanted.apt}" if shutil.which("apt-get") else f"your system's package {wanted.apt}"


def _level(name: str, found: IsolationProbeResult) -> ContainmentLevel:
    held = {ISOLATION_CLAIMS[claim]: held for claim, held in found.held.items()}
    return ContainmentLevel(name=name, held=held, problem=found.problem, holds=found.holds)


def _limits(used: IsolationProbeResult | None) -> Iterator[AttemptLimit]:
    usual = ResourceLimits()
    most = f"timeout_secs of its case; without it {TIMES_REFERENCE} times its reference, at least {LIMIT_STEPS[0]} s"
    yield AttemptLimit(name="CPU time", most=most)
    yield AttemptLimit(name="time", most="twice that and 10 s, so that a busy machine fails no attempt")
    if sys.platform == "linux":
        counted = "counted in a control group" if delegated_group() else f"looked at every {WATCH_SECONDS:g} s"
        most = f"{_size(usual.memory_bytes)}, more for compilers and commands; {counted}"
        yield AttemptLimit(name="memory", most=most)
        yield AttemptLimit(name="processes", most=f"{usual.processes}, threads included")
    yield AttemptLimit(name="open files", most=str(MAX_OPEN_FILES))
    yield AttemptLimit(name="one file", most=f"{_size(usual.file_bytes)}, what it prints included")
    if used is not None and used.enclosure.own_root:
        yield AttemptLimit(
            name="its folder",
            most=f"{SANDBOX_TMPFS_SIZE[:-1]} MiB in {MAX_SANDBOX_FILES:,} files, in memory, gone afterwards",
        )


def _size(count: int) -> str:
    return f"{count >> 30} GiB" if count >= 1 << 30 else f"{count >> 20} MiB"


def machine_advice(used: str) -> Iterator[str]:
    """What is worth knowing about this machine, where answers run at this level; empty for none."""
    if shortage := process_shortage():
        # no level can be proved without processes, so nothing is known about what else is missing
        yield shortage
        return
    if not used:
        yield (
            "no isolation level here keeps generated code away from the network, files and secrets, so it is not run; "
            "--allow-weak-sandbox runs it anyway"
        )
    if sys.platform == "darwin":
        yield "on macOS memory and processes are not limited, and containment rests on sandbox-exec, which Apple calls deprecated"
        yield "for hostile code use Linux, in a virtual machine for example"
    if used == "landlock":
        yield (
            "at level landlock multiprocessing's pools, queues and shared memory do not work, Terraform's providers "
            "do not start, no agent is contained, and code can see which files exist; the level full has all of this"
        )
    if sys.platform == "linux" and used != "full":
        yield from _namespace_advice()
    outside = [folder for folder in base_python_folders() if Path(folder).is_relative_to(Path.home())]
    if outside:
        yield f"answers can read {outside[0]}, because the Python we run on is there; keep nothing else there"


def _namespace_advice() -> Iterator[str]:
    """What forbids namespaces here, and who can allow them."""
    for knob, forbidding, allowing in (
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces=10000"),
    ):
        try:
            if Path("/proc/sys", knob).read_text().strip() == forbidding:
                yield f"level full needs user namespaces, which this machine forbids; sudo sysctl {allowing} allows them"
        except OSError:
            pass  # this kernel does not have the knob
    if any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")):
        yield (
            "in a container, namespaces are usually forbidden by its own profile; "
            "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined lifts it"
        )
