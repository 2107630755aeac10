"""A program that works in a folder: the task on its standard input, its answer what it changed there.

An agent that declares what it needs is contained where that is possible; any other runs with the rights of our user.
Only what it leaves in its copy of the workspace is kept, as a patch, and that is judged in the sandbox.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import math
import os
import re
import secrets
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import steelyard
from steelyard.errors import InputError, ProviderError, Rejected, VerifierError
from steelyard.protocols import Delivery, OfferedModel, Provider, ProviderSettings
from steelyard.providers.agent import workspaces
from steelyard.providers.agent.contained import run_contained
from steelyard.providers.agent.containment import AgentContainment
from steelyard.providers.agent.keeper import remove_folder
from steelyard.providers.agent.trace import agent_turns
from steelyard.providers.agent.usage import told_usage
from steelyard.records import AgentSettings, Answer, Attempt, Cost, Finish, is_secret
from steelyard.sandbox.processors import processor_count
from steelyard.secret_texts import Environment, HiddenFrames

NOT_FOUND_EXIT_CODES = (126, 127)
"""How shells and loaders end where a program cannot be started or found."""
KEEPER_SCRIPT = "import sys; sys.path.append(sys.argv[1]); from steelyard.providers.agent.keeper import main; main()"
KEEPER_CLEANUP_TIMEOUT_SECONDS = 60
"""Seconds in which a keeper must have cleaned up after an agent whose answer is no longer wanted."""
INTERPRETER_NAME = re.compile(r"(?:python|node|deno|bun|ruby|perl|bash|dash|zsh|sh)[\d.]*")
GIT_REPOSITORY_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
)
"""Names in our environment that would lead an agent's git to a repository of the user's."""


class AgentProvider:
    """One program, started once per attempt in a fresh copy of the case's workspace."""

    at_once = max(2, processor_count())
    endpoint = "agents on this machine"
    """All of them share it, so all of them share one pace."""

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        environment: Mapping[str, str] = {},
        files: Mapping[str, str | bytes] = {},
        time_limit: float = ProviderSettings(type="agent").time_limit_secs,
        beside: Path | None = None,
        name: str = "",
        containment: AgentContainment | None = None,
        limits: Mapping[str, Any] = {},
    ) -> None:
        """A command line or its words, what to add to our environment and to the workspace, and seconds for one attempt.

        `limits` are those of a `UsageMeter`: an agent that reports more than a limit is ended.

        A program or script with a relative path is looked for in the folder `beside`, otherwise in the current one. An agent
        that is contained gets nothing of our environment but its keys.
        """
        line = command if isinstance(command, str) else shlex.join(command)
        self._name = f"agent:{name or line}"
        self._containment = containment
        try:
            words = shlex.split(command) if isinstance(command, str) else list(command)
        except ValueError as error:
            raise InputError(f"{self._name}: {error}") from None
        self._argv = self._found(words, beside or Path.cwd())
        if not 0 < time_limit < math.inf:
            raise InputError(f"{self._name}: a time limit is a number of seconds above 0")
        for path in files:
            workspaces.check_path(path)
        if shutil.which("git") is None:
            raise InputError(f"{self._name}: {workspaces.GIT_MISSING_MESSAGE}")
        self._environment = Environment(environment)
        self._files = {
            path: base64.b64encode(content.encode() if isinstance(content, str) else content).decode()
            for path, content in files.items()
        }
        self._time_limit = time_limit
        self._limits = dict(limits)

    def _found(self, words: Sequence[str], folder: Path) -> list[str]:
        """The words with the paths of the program and of its script made absolute: they are outside the workspace."""
        name = words[0] if words else ""
        program = str(folder / name) if "/" in name else shutil.which(name)
        if not name or program is None or shutil.which(program) is None:
            raise InputError(
                f"{self._name}: no such program; give a name on PATH, a path such as agent:./agent.sh, "
                "or a name that is declared as [agents.NAME] in steelyard.toml"
            )
        found = [os.path.abspath(program), *words[1:]]  # noqa: PTH100  a link may be known by its own name alone
        self._programs = found[:1]
        place = next((number for number, word in enumerate(found) if number and not word.startswith("-")), 0)
        is_script = INTERPRETER_NAME.fullmatch(Path(name).name) and place and found[place - 1] not in ("-c", "-e", "-m")
        if is_script and os.path.isfile(folder / found[place]):  # noqa: PTH113  Path's own raises for a name that is too long
            found[place] = os.path.abspath(folder / found[place])  # noqa: PTH100
            self._programs.append(found[place])
        return found

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:  # noqa: ARG002  an agent has its own time limit
        case = attempt.case
        home = Path(tempfile.gettempdir(), f"steelyard-agent-{secrets.token_hex(8)}")
        contained = self._containment
        inherited = {name: value for name, value in Environment().items() if name not in GIT_REPOSITORY_VARIABLES}
        environment = {
            **(inherited if contained is None else contained.keys),
            "STEELYARD_CASE": case.id,
            "STEELYARD_NUMBER": str(attempt.number),
            "STEELYARD_TIER": attempt.tier,
            **self._environment,
        }
        order = {
            "home": str(home),
            "workspace": case.workspace,
            "digest": case.verify.workspace_digest,
            "files": self._files,
            "argv": self._argv,
            "programs": self._programs,
            "environment": environment,
            "secrets": _secrets(environment, () if contained is None else contained.keys),
            "prompt": "\n\n".join(message.text for message in attempt.messages),
            "time_limit": self._time_limit,
            "limits": self._limits,
        }
        if contained is not None:
            try:
                with HiddenFrames():
                    result = await run_contained(order, contained)
                return self._answer(result)
            except VerifierError as error:
                raise ProviderError(f"{self._name}: {error}") from None
        # files instead of pipes: nothing to drain while we wait for the keeper's end
        with tempfile.TemporaryFile() as keeper_output, tempfile.TemporaryFile() as complaints:
            with HiddenFrames():
                await _run_keeper(json.dumps(order).encode(), home, keeper_output, complaints)
            return self._answer(self._keeper_result(_content(keeper_output), _content(complaints)))

    def _start_failure(self, result: dict[str, Any]) -> str:
        """Why an agent could not begin, as the shell or the loader said it: no answer of any model's."""
        said = result["transcript"].strip().rpartition("\n")[2][:300]
        contained = self._containment is not None
        way_out = "; name the folders of what it needs as folders in its [agents.NAME]" if contained else ""
        return f"ended with exit code {result['exit_code']} and changed nothing: {said or 'a program was not found'}{way_out}"

    def _keeper_result(self, keeper_output: bytes, complaints: bytes) -> dict[str, Any]:
        keeper_output = keeper_output[keeper_output.find(b"{") :] if b"{" in keeper_output else b""
        if not keeper_output:
            last = complaints.decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
            raise ProviderError(f"{self._name}: the process that supervised the agent was killed {last}".rstrip())
        result: dict[str, Any] = json.loads(keeper_output)
        return result

    def _answer(self, result: dict[str, Any]) -> Answer:
        if "error" in result:
            raise Rejected(f"{self._name}: {result['error']}")
        if "broken" in result:
            raise ProviderError(f"{self._name}: {result['broken']}")
        if result["exit_code"] in NOT_FOUND_EXIT_CODES and not result["patch"]:
            raise ProviderError(f"{self._name}: {self._start_failure(result)}")
        left_out = result["left_out"]
        more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
        return Answer(
            text=result["patch"],
            finish=result["exceeded"] or ("stop" if result["in_time"] else Finish.TIMEOUT),
            error=f"left out of the patch: {', '.join(left_out[:3])}{more}" if left_out else "",
            transcript=result["transcript"],
            turns=agent_turns(result["transcript"]),
            exit_code=result["exit_code"],
            latency=result["seconds"],
            **usage(result["usage"] or told_usage(result["output"])),
        )

    def headroom(self) -> None:
        return None

    def available(self, case: str) -> None:  # noqa: ARG002  an agent works on anything
        return None

    async def offers(self) -> list[OfferedModel]:
        return [OfferedModel(self._name)]

    async def close(self) -> None:
        pass


def _secrets(environment: Mapping[str, str], keys: Container[str]) -> list[str]:
    """The keys that an agent finds in its environment, the longest first: one may be a part of another."""
    found = {value for name, value in environment.items() if is_secret("KEY" if name in keys else name, value)}
    return sorted(found, key=lambda secret: (-len(secret), secret))


async def _run_keeper(order: bytes, home: Path, keeper_output: IO[bytes], complaints: IO[bytes]) -> None:
    """Let a keeper carry out an order; when this ends, however it ends, nothing of the agent is left."""
    root = str(Path(steelyard.__file__).parent.parent)
    keeper = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", KEEPER_SCRIPT, root),
        stdin=asyncio.subprocess.PIPE,
        stdout=keeper_output,
        stderr=complaints,
        start_new_session=True,
    )
    stdin = keeper.stdin
    if stdin is None:
        raise ProviderError("the process that supervises the agent cannot be given its task")
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # how it ended is reported below
            stdin.write(len(order).to_bytes(8, "big") + order)
            await stdin.drain()
        await keeper.wait()
    finally:
        # closing it signals the keeper that the answer is no longer wanted
        stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(keeper.wait(), KEEPER_CLEANUP_TIMEOUT_SECONDS)
        if keeper.returncode != 0:
            await _clean_up_after_keeper(keeper, home, keeper_output)


async def _clean_up_after_keeper(keeper: asyncio.subprocess.Process, home: Path, keeper_output: IO[bytes]) -> None:
    """Clean up after an agent whose keeper was killed or hangs; processes that had left the agent's group keep running."""
    with contextlib.suppress(ProcessLookupError):
        keeper.kill()
    await keeper.wait()
    agent = _content(keeper_output).partition(b"\n")[0]
    if agent.isdigit():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(int(agent), signal.SIGKILL)
    remove_folder(home)


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def usage(told: Mapping[str, float]) -> dict[str, Any]:
    """The tokens and the cost that an agent reports, as fields of an answer; unknown ones are left out.

    >>> usage({"input_tokens": 12, "output_tokens": 3})
    {'input_tokens': 12, 'output_tokens': 3}
    """
    found: dict[str, Any] = {name: int(value) for name, value in told.items() if name != "cost_usd"}
    if "cost_usd" in told:
        found["cost"] = Cost(usd=told["cost_usd"], source="the agent")
    return found


def connect(
    model: str,
    settings: ProviderSettings,
    declared: AgentSettings | None = None,
    containment: AgentContainment | None = None,
) -> dict[str, Provider]:
    """A program that works in a copy of each case's workspace, by its command line or by the name under which it is declared."""
    if declared is None:
        return {model: AgentProvider(model, environment=settings.environment, time_limit=settings.time_limit_secs)}
    agent = AgentProvider(
        declared.command,
        environment={**settings.environment, **declared.environment},
        time_limit=declared.time_limit_secs,
        name=model,
        containment=containment,
    )
    return {model: agent}
