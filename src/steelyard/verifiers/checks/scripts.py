"""Checks of a list that are code of the eval set's author: Python or JavaScript, run in the sandbox with the answer as data."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from steelyard.errors import MissingToolError, VerifierError
from steelyard.protocols import ResourceLimits, Sandbox
from steelyard.records import Answer, Case
from steelyard.text import short_quote
from steelyard.verifiers.checks.outcome import CheckOutcome
from steelyard.verifiers.response.judged import CheckTable

ScriptLanguage = Literal["python", "javascript"]
RESULT_FILE = "result.json"
MAX_RESULT_BYTES = 1 << 20
PYTHON_DRIVER = """
import asyncio, inspect, json
job = json.load(open("job.json", encoding="utf-8"))
said = {}
try:
    names = {"__name__": "check"}
    exec(compile(job["code"], "check.py", "exec"), names)
    check = names[job["function"]]
    count = len(inspect.signature(check).parameters)
    returned = check(*[job["output"], job["context"]][: max(1, count)])
    if inspect.iscoroutine(returned):
        returned = asyncio.run(returned)
    said = {"returned": json.loads(json.dumps(returned))}
except BaseException as error:
    said = {"error": f"{type(error).__name__}: {error}"[:1000]}
with open("result.json", "w", encoding="utf-8") as file:
    json.dump(said, file)
"""
JAVASCRIPT_DRIVER = """
const fs = require("fs");
const job = JSON.parse(fs.readFileSync("job.json", "utf8"));
const say = (said) => fs.writeFileSync("result.json", JSON.stringify(said));
const load = () => {
  if (!job.function) return new Function("output", "context", job.code);
  const module = { exports: {} };
  new Function("module", "exports", "require", job.code)(module, module.exports, require);
  const found = module.exports[job.function] || module.exports.default || module.exports;
  if (typeof found !== "function") throw new Error("exports no function");
  return found;
};
(async () => say({ returned: await load()(job.output, job.context) }))()
  .catch((error) => say({ error: `${error.name}: ${error.message}`.slice(0, 1000) }));
"""


@dataclass(frozen=True)
class ScriptCheck:
    """A function of the author's, which gets the reply and its context and returns a bool, a number or {pass, score, reason}."""

    name: str
    language: ScriptLanguage
    code: str
    function: str
    at_least: float
    """The score from which on it holds, where it returns a number."""
    fails_on_error: bool
    """Whether an exception means that the check does not hold; otherwise it is a failure of ours."""
    variables: dict[str, Any]
    sandbox: Sandbox

    def require_program(self) -> None:
        """Raise MissingToolError where the language cannot run here."""
        if self.language == "javascript" and shutil.which("node") is None:
            raise MissingToolError(
                f"{self.name}: this machine has no node; install Node.js to run checks in JavaScript"
            )

    async def outcome(self, case: Case, answer: Answer, text: str) -> CheckOutcome:  # noqa: ARG002  the code gets the text
        context = {"vars": self.variables, "prompt": "\n".join(one.text for one in case.messages), "case": case.id}
        job = {"code": self.code, "function": self.function, "output": text, "context": context}
        files = {"job.json": json.dumps(job), "driver": self._driver}
        limits = ResourceLimits(cpu_seconds=case.timeout_secs, wall_seconds=6 * case.timeout_secs, memory_bytes=4 << 30)
        async with self.sandbox.workspace(files, readable=_readable_folders(self._program)) as workspace:
            ended = await workspace.run([*self._program, "driver"], limits=limits)
            written = await workspace.read(RESULT_FILE, MAX_RESULT_BYTES)
        return self._read(written, ended.limit or f"exit code {ended.exit_code}")

    @property
    def _driver(self) -> str:
        return PYTHON_DRIVER if self.language == "python" else JAVASCRIPT_DRIVER

    @property
    def _program(self) -> tuple[str, ...]:
        if self.language == "python":
            return (os.path.realpath(sys.executable), "-I", "-S")
        self.require_program()
        return (os.path.realpath(str(shutil.which("node"))),)

    def _read(self, written: bytes | None, end: str) -> CheckOutcome:
        try:
            said = msgspec.json.decode(written or b"", type=dict[str, Any])
        except msgspec.DecodeError:
            said = {"error": f"came to no result ({end})"}
        if "error" in said:
            message = short_quote(str(said["error"]))
            if not self.fails_on_error:
                raise VerifierError(f"{self.name}: {message}")
            return CheckOutcome(False, 0.0, message, is_error=True)
        return self._graded(said.get("returned"))

    def _graded(self, returned: Any) -> CheckOutcome:
        """What the function returned, as an outcome."""
        if isinstance(returned, str):
            # what tools of other languages print
            returned = {"true": True, "false": False}.get(returned.lower(), returned)
        table = returned if isinstance(returned, dict) else {}
        passed, reason = table.get("pass", table.get("pass_")), str(table.get("reason") or "")
        score = table.get("score") if isinstance(returned, dict) else returned
        if isinstance(score, bool):
            passed, score = (score if passed is None else passed), float(score)
        is_number = isinstance(score, int | float) and math.isfinite(score)
        if not (isinstance(passed, bool) or is_number):
            raise VerifierError(
                f"{self.name}: returned {short_quote(json.dumps(returned))}; expected a bool, a number or {{pass, score, reason}}"
            )
        share = min(1.0, max(0.0, float(score))) if is_number and score is not None else float(bool(passed))
        is_met = (
            passed if isinstance(passed, bool) else bool(is_number and score is not None and score >= self.at_least)
        )
        return CheckOutcome(is_met, share, reason or f"returned {short_quote(json.dumps(returned))}")


def _readable_folders(program: tuple[str, ...]) -> tuple[str, ...]:
    folder = Path(program[0]).parent.parent
    return () if folder == Path("/usr") else (str(folder),)


def script_check(key: str, table: CheckTable, variables: dict[str, Any], sandbox: Sandbox) -> ScriptCheck:
    """Code in a file, `python = "f.py:g"`, which the loader has read, or in the table itself, `python_code = "..."`."""
    language: ScriptLanguage = "python" if key.startswith("python") else "javascript"
    given = table.text(key)
    if key.endswith("_code"):
        code, function, name = given, "", f"{language} {short_quote(given.strip().splitlines()[0])[:60]}"
    else:
        code, function, name = table.text("code"), given.rpartition(":")[2], f"{language} {given.rpartition('/')[2]}"
    if language == "python" and not function:
        code, function = _python_function(code), "main"
    at_least = float(table.number("at_least", 1 - 1e-9))
    return ScriptCheck(name, language, code, function, at_least, table.flag("fails_on_error"), variables, sandbox)


def _python_function(body: str) -> str:
    r"""An expression, or lines with a `return`, as a function.

    >>> print(_python_function("len(output) > 3"))
    import json
    def main(output, context):
        return len(output) > 3
    """
    lines = body.strip("\n").splitlines()
    if len(lines) == 1:
        lines = [f"return {lines[0].strip()}"]
    return "\n".join(["import json", "def main(output, context):", *(f"    {line}" for line in lines)])
