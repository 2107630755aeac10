"""Runs attacks as the answers of a run are judged, and finds those that get more than they may.

Run as a program of its own, so that another user can run it:  python loop.py LEVEL [SET...]
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

import msgspec

from attacks.reader import SET_FILES, Entry, entries
from attacks.surroundings import Surroundings
from steelyard.analysis.scoring import is_correct
from steelyard.engine.options import RunOptions
from steelyard.engine.steps import is_verified_again_alone
from steelyard.engine.verifiers import VerifierSet
from steelyard.protocols import LIMIT_LABELS, Delivery
from steelyard.providers.agent.provider import AgentProvider
from steelyard.records import Answer, Attempt, Case, Failure, Finding, Reply, Verdict
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, ISOLATION_LEVELS, strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply

HONEST_EVERY = 5
ONLY_ALONE = "it only counts from a machine that does nothing else"
TOOLS = {
    "c": "gcc",
    "cpp": "c++",
    "js": "node",
    "javascript": "node",
    "pl": "perl",
    "rb": "ruby",
    "rs": "rustc",
    "r": "Rscript",
    "java": "javac",
    "rust": "cargo",
    "sh": "bash",
    "python": "",
    "terraform": "",
}
"""The program that a language needs, where it is not called like it."""


class Outcome(msgspec.Struct, frozen=True):
    """What became of one attack."""

    name: str
    kind: str
    what: str
    """What happened to it, in the words of `may`; empty where no word allows it."""
    caught_by: str = ""
    """What kept it from passing; empty if it passed."""
    problem: str = ""
    """Why it is not survived, whatever it may."""


def is_runnable(case: Case) -> bool:
    """Whether what the case's language needs is installed here."""
    if case.language == "terraform":
        return Path(os.environ.get("STEELYARD_TERRAFORM", "")).is_file()
    tool = TOOLS.get(case.language, case.language)
    # a Python of the system's, which an ordinary user runs, may lack packages
    packages = ("pytest",) if case.verify.style == "pytest" else ("numpy", "pandas") if "packages" in case.tags else ()
    return (not tool or shutil.which(tool) is not None) and all(map(find_spec, packages))


def caught_by(case: Case, found: Finding) -> str:
    """The part of ours that kept an answer from passing, as the page names it."""
    if found.tampered:
        return "control" if "tests that are false" in found.tampered else "rule"
    if found.label in LIMIT_LABELS:
        return "sandbox"
    if getattr(found, "flag", ""):
        return "apart"
    if found.trust == "isolated":
        return "calls" if case.kind == "python" and not is_program(case) else "program"
    return "plain run"


def is_program(case: Case) -> bool:
    """Whether an answer to a case is a program that is given its input."""
    return bool(case.verify.pairs) and not case.verify.entry_point


def outcome(entry: Entry, found: Finding, answer: str) -> Outcome:
    """What one finding says of an attack."""
    name = str(entry)
    # a repair may be plausible, and correct by that, without mending anything
    passed = found.levels.get("fixed", is_correct(entry.case, found))
    what = "in-process" if passed else "tampered" if found.tampered else "fails"
    problem = ""
    if passed and found.trust == "isolated":
        what, problem = "", "passes as isolated"
    elif "ESCAPED" in found.output:
        problem = f"ESCAPED: {found.output[:300]}"
    elif "TRIED" in answer and "TRIED" not in found.output and found.label not in LIMIT_LABELS:
        problem = f"did not come to its end: {found.reason} {found.output[-300:]}"
    return Outcome(name, entry.kind, what, "" if passed else caught_by(entry.case, found), problem)


class Loop:
    """One set of verifiers, under one attack after the other with honest answers among them."""

    def __init__(self, level: str, cases: Sequence[Case], surroundings: Surroundings) -> None:
        enclosure = ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index(level)] if level else strongest_isolation()
        surroundings.words["ALONE"] = int(enclosure.own_root)
        self.verifiers = VerifierSet(cases, RunOptions(sandbox=ZygoteSandbox(enclosure)))
        self.verifiers.check(cases)
        self.surroundings = surroundings
        self.harmed: list[str] = []

    async def attacked(self, attacks: Sequence[Entry]) -> list[Outcome]:
        """What became of the attacks, many at the same time; those that only count alone are tried again so."""
        seen: dict[str, int] = {}
        honest = []
        for entry in attacks:
            number = seen[entry.case.id] = seen.get(entry.case.id, -1) + 1
            honest.append(bool(entry.case.reference) and number % HONEST_EVERY == 0)
        found = await asyncio.gather(*map(self._attacked, attacks, honest))
        for place, entry in enumerate(attacks):
            if found[place].problem == ONLY_ALONE:
                found[place] = await self._attacked(entry, alone=True)
        return found

    async def _attacked(self, entry: Entry, honest: bool = False, *, alone: bool = False) -> Outcome:
        text = self.surroundings.filled_in(entry.attack.answer)
        if entry.case.workspace:
            agent = AgentProvider(["sh", "-c", text], time_limit=20)
            given = await agent.ask(Attempt(case=entry.case, model="attacker"), Delivery())
        else:
            given = written(entry.case, text)
        fact = await self._judged(entry.case, given, alone=alone)
        if honest:
            await self._is_unharmed(entry)
        if isinstance(fact, Failure):
            return Outcome(str(entry), entry.kind, "", problem=f"no verdict, which is a way out: {fact.message}")
        if is_verified_again_alone(fact.found) and not alone:
            return Outcome(str(entry), entry.kind, "", problem=ONLY_ALONE)
        return outcome(entry, fact.found, text)

    async def _is_unharmed(self, entry: Entry) -> None:
        """See whether the honest answer after an attack passes."""
        case = entry.case
        right = Answer(text=case.reference) if case.workspace else written(case, case.reference)
        for alone in (False, True):
            fact = await self._judged(case, right, alone=alone)
            if isinstance(fact, Verdict) and is_correct(case, fact.found):
                return
        why = fact.found.reason if isinstance(fact, Verdict) else fact.message
        self.harmed.append(f"the honest answer after {entry}: {why}")

    async def _judged(self, case: Case, given: Answer, *, alone: bool = False) -> Verdict | Failure:
        attempt = Attempt(case=case, model="attacker")
        reply = Reply(
            key=attempt.key, at="", case=case.id, model="attacker", number=1, answer=given, asked=attempt.asked
        )
        return await self.verifiers.verdict(reply, case, alone=alone)


def written(case: Case, code: str) -> Answer:
    """Code as a model writes it."""
    return Answer(text=verbatim_reply(code, "hcl" if case.language == "terraform" else case.language))


async def run(attacks: Sequence[Entry], level: str = "") -> tuple[list[Outcome], list[str]]:
    """What became of the attacks, and what went wrong beside them."""
    with tempfile.TemporaryDirectory(prefix="attacked-") as folder, Surroundings(Path(folder)) as surroundings:
        before = surroundings.state()
        cases = {entry.case.id: entry.case for entry in attacks}
        loop = Loop(level, list(cases.values()), surroundings)
        try:
            found = await loop.attacked(attacks)
        finally:
            await loop.verifiers.close()
        return found, [*loop.harmed, *surroundings.changes(before)]


def wrong(attacks: Iterable[Entry], found: Iterable[Outcome]) -> list[str]:
    """The attacks that got more than they may."""
    allowed = {
        "in-process": ("in-process", "fails", "tampered"),
        "fails": ("fails", "tampered"),
        "tampered": ("tampered",),
    }
    return [
        f"{each.name}: {each.problem or f'{each.what} instead of {entry.may}'}"
        for entry, each in zip(attacks, found, strict=True)
        if each.problem or each.what not in allowed[entry.may]
    ]


def main() -> None:
    level, *names = sys.argv[1:]
    attacks = [
        entry
        for file in SET_FILES
        if not names or file.stem in names
        for entry in entries(file)
        if is_runnable(entry.case)
    ]
    found, harmed = asyncio.run(run(attacks, level))
    escaped = sum("ESCAPED" in each.problem for each in found)
    told = {"tried": len(attacks), "escaped": escaped, "wrong": [*wrong(attacks, found), *harmed]}
    print(msgspec.json.encode(told).decode())


if __name__ == "__main__":
    main()
