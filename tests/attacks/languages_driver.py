"""Verifies the sets of wrong answers in Rust, to test commands and in Terraform at one level, with honest answers among them.

Run as a program of its own, so that it can be run as another user:  python languages_driver.py LEVEL SET...
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

from attacks import terraform_repairs
from attacks.command_attacks import SCENES as COMMAND_SCENES
from attacks.command_attacks import command_case
from attacks.command_claims import CLAIM_SCENES
from attacks.command_fresh import FRESH_SCENES
from attacks.command_later import LATER_SCENES
from attacks.command_listed import GO_SCENES, LISTED_SCENES
from attacks.command_shared import SHARED_SCENES
from attacks.command_tricks import C_TRICKS, CPP_TRICKS, NODE_TRICKS, SH_TRICKS
from attacks.command_values import SELF_COMPARING_SCENES as SELF_COMPARING_COMMANDS
from attacks.command_values import VALUE_SCENES
from attacks.rust_types import SCENES as RUST_SCENES
from attacks.rust_types import SELF_COMPARING_SCENES, scene_case
from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Case, Finding
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, ISOLATION_LEVELS, probe_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.command.verifier import CommandVerifier
from steelyard.verifiers.rust.verifier import RustVerifier
from steelyard.verifiers.terraform.program import TERRAFORM_PROGRAM_VARIABLE
from steelyard.verifiers.terraform.verifier import TerraformVerifier

BASH_TEST = '. ./answer.sh\n[[ "$(add 1 2)" == 3 ]] || false\n'
METHODS_TEST = (
    'import assert from "node:assert";\nimport { add } from "./answer.mjs";\nconst l = add(1, 2);\n'
    "assert.ok(l.includes(1));\nassert.ok(l.every((n) => n > 0));\nassert.strictEqual(l.length, 2);\n"
)
BASH_CASE = command_case("bash", "answer.sh", "bash test.sh", {"test.sh": BASH_TEST})
METHODS_CASE = command_case("javascript", "answer.mjs", "node test.mjs", {"test.mjs": METHODS_TEST})
LATEST_SCENES = LISTED_SCENES | GO_SCENES | CLAIM_SCENES | VALUE_SCENES
EVERY_SCENE = (*FRESH_SCENES.items(), *LATER_SCENES.items(), *LATEST_SCENES.items())
AT_ONCE = 8
HONEST_EVERY = 8


class LanguageAttack(NamedTuple):
    """An answer to a case; an honest one must pass, the others must not pass as proved."""

    name: str
    case: Case
    code: str
    is_honest: bool = False
    is_proved: bool = True
    """Whether a pass of an honest answer is proved, because its tests do not compare it only with itself."""


def _rust() -> Iterator[LanguageAttack]:
    for name, scene in RUST_SCENES.items():
        case = scene_case(name)
        is_proved = name not in SELF_COMPARING_SCENES
        yield LanguageAttack(f"{name}: honest", case, scene.honest, is_honest=True, is_proved=is_proved)
        for attack, code in scene.attacks.items():
            yield LanguageAttack(f"{name}: {attack}", case, code)


def _command() -> Iterator[LanguageAttack]:
    for name in ("C with a secret", "C with TAP"):
        yield from _tricks(COMMAND_SCENES[name].case, C_TRICKS, COMMAND_SCENES[name].honest)
    yield from _tricks(COMMAND_SCENES["C++"].case, CPP_TRICKS, COMMAND_SCENES["C++"].honest)
    for name in ("node", "node with printed TAP"):
        yield from _tricks(COMMAND_SCENES[name].case, NODE_TRICKS, COMMAND_SCENES[name].honest)
    for case in (COMMAND_SCENES["sh"].case, BASH_CASE):
        yield from _tricks(case, SH_TRICKS, COMMAND_SCENES["sh"].honest)
    for name, scene in EVERY_SCENE:
        if scene.case.language != "go" or shutil.which("go"):
            is_proved = name not in SELF_COMPARING_COMMANDS
            yield from _tricks(scene.case, scene.attacks, scene.honest, is_proved=is_proved)
    for name, shared in SHARED_SCENES.items():
        for kind, code in shared.honest.items():
            yield LanguageAttack(f"{name}: honest, {kind}", shared.case, code, is_honest=True)
        for kind, code in shared.attacks.items():
            yield LanguageAttack(f"{name}: {kind}", shared.case, code)
    methods = {name: code for name, code in NODE_TRICKS.items() if "methods" in name}
    yield from _tricks(METHODS_CASE, methods, "export const add = (a, b) => [a, b];\n")


def _tricks(case: Case, tricks: dict[str, str], honest: str, *, is_proved: bool = True) -> Iterator[LanguageAttack]:
    for number, (name, code) in enumerate(tricks.items()):
        if number % HONEST_EVERY == 0:
            yield LanguageAttack(f"{case.id}: honest before {name}", case, honest, is_honest=True, is_proved=is_proved)
        yield LanguageAttack(f"{case.id}: {name}", case, code)


def _terraform() -> Iterator[LanguageAttack]:
    for name, code in terraform_repairs.HONEST.items():
        yield LanguageAttack(name, terraform_repairs.CASE, code, is_honest=True)
    wrong = {**terraform_repairs.FIXED_BY_DEFINITION, **terraform_repairs.FIXED_BUT_NOT_STRICTLY}
    for name, code in {**wrong, **terraform_repairs.REPAIRS}.items():
        yield LanguageAttack(name, terraform_repairs.CASE, code)


class LanguageSet(NamedTuple):
    """The answers of a set, and who judges them."""

    attacks: Callable[[], Iterator[LanguageAttack]]
    verifier: Callable[[ZygoteSandbox], Any]


SETS: dict[str, LanguageSet] = {
    "rust": LanguageSet(_rust, RustVerifier),
    "command": LanguageSet(_command, CommandVerifier),
    "terraform": LanguageSet(_terraform, TerraformVerifier),
}


def passed_as(case: Case, finding: Finding) -> str:
    """As what an answer passes, empty if it does not: its trust, for a repair the levels that it reaches."""
    if case.language == "terraform":
        return ", ".join(
            level for level, is_reached in (finding.levels or {}).items() if "fixed" in level and is_reached
        )
    return str(finding.trust) if is_correct(case, finding) else ""


async def told(level: str, names: list[str]) -> dict[str, Any]:
    """What became of the answers of some sets."""
    sandbox = ZygoteSandbox(ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index(level)])
    tried: dict[str, int] = {}
    found: dict[str, Any] = {"tried": tried, "passed": {}, "failures": [], "harmed": []}
    free = asyncio.Semaphore(AT_ONCE)

    async def one(name: str, attack: LanguageAttack, verify: Callable[[Case, Answer], Awaitable[Finding]]) -> None:
        async with free:
            language = "hcl" if attack.case.language == "terraform" else attack.case.language
            try:
                finding = await verify(attack.case, Answer(text=verbatim_reply(attack.code, language)))
                if attack.is_honest and finding.trouble:
                    # as a run does: eight Java machines at once may get no thread
                    finding = await verify(attack.case, Answer(text=verbatim_reply(attack.code, language)))
            except Exception as error:
                found["failures"].append(f"{name}: {attack.name}: {error}")
                return
        passed = passed_as(attack.case, finding)
        if attack.is_honest:
            if not passed or (passed == "unproved" and attack.is_proved):
                found["harmed"].append(f"{name}: {attack.name}: {passed} {finding.label} {finding.reason}")
            return
        tried[name] = tried.get(name, 0) + 1
        if passed:
            found["passed"][f"{name}: {attack.name}"] = passed

    for name in names:
        verifier = SETS[name].verifier(sandbox)
        await asyncio.gather(*(one(name, attack, verifier.verify) for attack in SETS[name].attacks()))
        await verifier.close()
    await sandbox.close()
    return found


def main() -> None:
    level, program, *names = sys.argv[1:]
    os.environ[TERRAFORM_PROGRAM_VARIABLE] = program
    found = probe_isolation(level)
    if not found.held:
        print(json.dumps({"level": level, "missing": found.problem, "lacks_program": found.lacks_program}))
        return
    json.dump(asyncio.run(told(level, names)), sys.stdout)


if __name__ == "__main__":
    main()
