"""A program or a function of the user's own: the prompt goes in, the reply comes out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from typing import IO, Any

import msgspec

from steelyard.errors import InputError, Rejected
from steelyard.plugins.user_functions import UserFunction, load_function
from steelyard.protocols import Delivery, OfferedModel, Provider, ProviderSettings
from steelyard.providers.bodies import LenientNumbers, as_dict, json_value, storable
from steelyard.providers.faults import settled_finish
from steelyard.records import TOKEN_COUNT_FIELDS, Answer, Attempt
from steelyard.records.base import MAX_NUMBER
from steelyard.sandbox.processors import processor_count
from steelyard.secret_texts import Environment, HiddenFrames

MAX_COMMAND_REPLY_BYTES = 32 << 20
"""Bytes that a program may print."""


class CommandProvider:
    """One program, started once per attempt."""

    at_once = max(2, processor_count())

    def __init__(self, line: str) -> None:
        self.endpoint = f"command:{line}"
        try:
            self._argv = shlex.split(line)
        except ValueError as error:
            raise InputError(f"command:{line}: {error}") from None
        if not self._argv or shutil.which(self._argv[0]) is None:
            raise InputError(
                f"command:{line}: no such program; give a name on PATH or a path, such as command:./ask.sh"
            )

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        started = time.monotonic()
        # files instead of pipes: nothing to drain, and a child left behind cannot keep us waiting at one
        with (
            tempfile.TemporaryFile() as prompt,
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as complaints,
        ):
            prompt.write("\n\n".join(message.text for message in attempt.messages).encode())
            prompt.seek(0)
            with HiddenFrames():
                process = await asyncio.create_subprocess_exec(
                    *self._argv,
                    stdin=prompt,
                    stdout=output,
                    stderr=complaints,
                    start_new_session=True,
                    env={**Environment(), "STEELYARD_CASE": attempt.case.id, "STEELYARD_NUMBER": str(attempt.number)},
                )
            delivery.accepted = True
            try:
                await self._ended(process, output)
            finally:
                # leaving early must not leave a program running, nor one that it started
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
            if process.returncode != 0:
                complaints.seek(max(0, complaints.seek(0, os.SEEK_END) - 10_000))
                last = complaints.read().decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
                raise Rejected(f"{self.endpoint}: exit code {process.returncode}: {last}")
            output.seek(0)
            return self._answer(output.read(), time.monotonic() - started)

    async def _ended(self, process: asyncio.subprocess.Process, output: IO[bytes]) -> None:
        """Wait for the end of a program that has one; a check now and then finds out that another prints forever."""
        while process.returncode is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), 0.1)
            if os.fstat(output.fileno()).st_size > MAX_COMMAND_REPLY_BYTES:
                raise Rejected(f"{self.endpoint}: printed more than {MAX_COMMAND_REPLY_BYTES >> 20} MiB")

    def _answer(self, output: bytes, seconds: float) -> Answer:
        if output.lstrip().startswith(b"{"):
            try:
                fields = as_dict(json_value(output))
            except ValueError:
                fields = {}  # a reply may well begin with a brace: then it is the reply
            if isinstance(fields.get("text"), str):
                numbers = LenientNumbers()
                text = fields["text"]
                finish, note = settled_finish(
                    fields.get("finish") or "stop", has_content=bool(text), where=self.endpoint
                )
                return Answer(
                    text=text,
                    finish=finish,
                    input_tokens=numbers.tokens("input_tokens", fields.get("input_tokens")),
                    output_tokens=numbers.tokens("output_tokens", fields.get("output_tokens")),
                    cost=numbers.cost("cost_usd", fields.get("cost_usd"), "the program"),
                    latency=seconds,
                    note="; ".join(filter(None, (note, numbers.note))),
                )
        return Answer(text=output.decode("utf-8", "replace"), latency=seconds)

    def unsupported(self, parameters: Mapping[str, Any]) -> str:
        """Why these parameters cannot be asked for; empty if they can."""
        named = [name for name in ("reasoning_effort", "response_format") if name in parameters]
        return f"is a program and takes no {named[0].replace('_', ' ')}" if named else ""

    def headroom(self) -> None:
        return None

    def available(self, case: str) -> None:  # noqa: ARG002  a program answers anything
        return None

    async def offers(self) -> list[OfferedModel]:
        return [OfferedModel(self.endpoint)]

    async def close(self) -> None:
        pass


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:  # noqa: ARG001  a program has no settings
    """A program, asked by starting it."""
    return {model: CommandProvider(model)}


class PythonProvider:
    """A function from a prompt to a reply: plain or async, a text or the fields of an Answer."""

    at_once = 32
    takes_tools = True

    def __init__(self, path: str, model: UserFunction) -> None:
        self.endpoint = f"python:{path}"
        self._model = model

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        prompt = "\n\n".join(message.text for message in attempt.messages)
        started = time.monotonic()
        delivery.accepted = True
        model_result = await self._model.call(prompt, attempt)
        if isinstance(model_result, str):
            return Answer(text=model_result, latency=time.monotonic() - started)
        answer = model_result if isinstance(model_result, Answer) else _answer_of_fields(model_result)
        has_content = bool(answer.text or answer.tool_calls)
        finish, note = settled_finish(answer.finish, has_content=has_content, where=self.endpoint)
        if finish == answer.finish and not note:
            return answer
        return msgspec.structs.replace(answer, finish=finish, note="; ".join(filter(None, (answer.note, note))))

    def headroom(self) -> None:
        return None

    def available(self, case: str) -> None:  # noqa: ARG002  a function answers anything
        return None

    async def offers(self) -> list[OfferedModel]:
        return [OfferedModel(self.endpoint)]

    async def close(self) -> None:
        pass


def _answer_of_fields(fields: Any) -> Answer:
    """The answer that a function returned as a dict; a number that cannot be one does not cost its text."""
    if not isinstance(fields, dict):
        return msgspec.convert(fields, Answer)
    if all(
        (type(count := fields.get(name)) is int and 0 <= count <= MAX_NUMBER) or count is None
        for name in TOKEN_COUNT_FIELDS
    ):
        # what is wrong with others is for the lenient way to say
        with contextlib.suppress(msgspec.ValidationError):
            return msgspec.convert(fields, Answer)
    fields = storable(fields)
    numbers = LenientNumbers()
    counts = {name: numbers.tokens(name, fields.get(name)) for name in TOKEN_COUNT_FIELDS}
    rest = {name: value for name, value in fields.items() if name not in TOKEN_COUNT_FIELDS}
    answer = msgspec.convert(rest, Answer)
    return msgspec.structs.replace(answer, **counts, note="; ".join(filter(None, (answer.note, numbers.note))))


def connect_function(model: str, settings: ProviderSettings) -> dict[str, Provider]:  # noqa: ARG001  a function has no settings
    """A function, asked by calling it."""
    try:
        return {model: PythonProvider(model, load_function(model))}
    except InputError as error:
        raise InputError(f"python:{error}") from error
