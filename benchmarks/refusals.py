"""How many refusals of real models the rules find, and how many answers they take for one.

    python benchmarks/refusals.py --repositories DIR

DIR has the git directories of the public repositories, OWNER+NAME/repo each: paul-rottger/exaggerated-safety (XSTest: 450
replies of each of five models, each labelled by two people) and JailbreakBench/artifacts (replies to attacks; a judge says
which of them answer). The same answers are searched for secrets that none of them can know, in every disguise.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from steelyard.stats.intervals import wilson
from steelyard.verifiers.response.checks import declared_check
from steelyard.verifiers.response.refusals import refusal_match

XSTEST = "paul-rottger/exaggerated-safety"
JAILBREAKBENCH = "JailbreakBench/artifacts"
SECRETS = ("velmik ostrand", "harbour", "CANARY-7F3A-91BC", "tangerine", "open sesame", "swordfish", "K7-PELICAN")
"""Made up, or ordinary words of the kind that people choose as passwords."""


class LabelledReply(NamedTuple):
    """A reply of a real model, and what others say of it."""

    source: str
    label: str
    text: str


def files(repositories: Path, name: str, ending: str) -> Iterator[tuple[str, str]]:
    """The files of a repository at its newest commit whose names end so, with their texts."""
    git = ["git", "-C", str(repositories / name.replace("/", "+") / "repo")]
    listed = subprocess.run([*git, "ls-tree", "-r", "--name-only", "HEAD"], check=True, capture_output=True, text=True)
    for path in sorted(listed.stdout.splitlines()):
        if path.endswith(ending):
            shown = subprocess.run([*git, "show", f"HEAD:{path}"], check=True, capture_output=True)
            yield path, shown.stdout.decode("utf-8", "replace")


def xstest(repositories: Path) -> Iterator[LabelledReply]:
    """Full compliance, full refusals and partial ones."""
    for path, text in files(repositories, XSTEST, ".csv"):
        if path.startswith("model_completions/"):
            model = Path(path).stem.rpartition("_")[2]
            for row in csv.DictReader(io.StringIO(text)):
                label = {"1": "answer", "2": "refusal", "3": "partial"}[row["final_label"][0]]
                yield LabelledReply(model, label, row["completion"])


def jailbreakbench(repositories: Path) -> Iterator[LabelledReply]:
    """Replies that a judge calls jailbroken; the others need not be refusals."""
    for path, text in files(repositories, JAILBREAKBENCH, ".json"):
        if path.count("/") == 3 and "test-artifact" not in path:
            for row in json.loads(text)["jailbreaks"]:
                if row["response"]:
                    label = "answer" if row["jailbroken"] else "other"
                    yield LabelledReply(Path(path).stem, label, row["response"])


def measured(name: str, replies: list[LabelledReply]) -> str:
    """A row of the table."""
    counts = Counter((reply.label, refusal_match(reply.text) is not None) for reply in replies)
    found, missed, wrong = counts["refusal", True], counts["refusal", False], counts["answer", True]
    answers = wrong + counts["answer", False]
    return f"| {name} | {found + missed} | {answers} | {found / (found + wrong):.3f} | {found / (found + missed):.3f} |"


def false_leaks(replies: list[LabelledReply]) -> tuple[int, int]:
    """How many honest replies are called a leak of a secret that is not in them, and how many pairs were tried."""
    chance = random.Random(1)
    codes = ["".join(chance.choices("ABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=8)) for _ in range(5)]
    secrets = [*SECRETS, *codes]
    check = declared_check({"type": "none_of", "values": secrets})
    honest = [reply.text for reply in replies if not any(one.lower() in reply.text.lower() for one in secrets)]
    return sum(check.judge(text).primary == "policy_violation" for text in honest), len(honest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repositories", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    labelled = list(xstest(options.repositories))
    for model in sorted({reply.source for reply in labelled}):
        print(measured(model, [reply for reply in labelled if reply.source == model]))
    print(measured("all five", labelled))
    others = list(jailbreakbench(options.repositories))
    answers = [reply for reply in others if reply.label == "answer"]
    wrong = sum(refusal_match(reply.text) is not None for reply in answers)
    interval = wilson(wrong, len(answers))
    high = f", at most {interval.high:.1%} (95%)" if interval else ""
    print(f"JailbreakBench: {wrong} of {len(answers)} answers are taken for refusals{high}")
    leaks, honest = false_leaks([*labelled, *others])
    print(f"leaks: {leaks} of {honest} honest replies are said to tell one of {len(SECRETS) + 5} secrets")


if __name__ == "__main__":
    main()
