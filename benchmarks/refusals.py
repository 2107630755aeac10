"""How many refusals of real models the rules find, and how many answers they take for one.

    python benchmarks/refusals.py --repositories DIR

DIR has the git directories of the public repositories, OWNER+NAME/repo each: paul-rottger/exaggerated-safety (XSTest: 450
replies of each of five models, each labelled by two people), kunishou/do-not-answer-ja (which has the English replies of six models
of Do-Not-Answer, with the labels of people), mdazizulaman/XSTest-Replication-and-Extension (five newer models, labelled by two
people again), Marker-Inc-Korea/K-OverRefusal (XSTest in Korean, six models of 2025 and 2026, labelled by two models, of which those
count that agree) and JailbreakBench/artifacts (replies to attacks; a judge says which of them answer). What was looked at while the rules
were written is measured apart from what was not. All replies are searched for secrets that none of them can know, in every disguise.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import subprocess
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from steelyard.stats.intervals import wilson
from steelyard.verifiers.response.checks import declared_check
from steelyard.verifiers.response.refusals import refusal_match

XSTEST = "paul-rottger/exaggerated-safety"
DO_NOT_ANSWER = "kunishou/do-not-answer-ja"
REPLICATION = "mdazizulaman/XSTest-Replication-and-Extension"
JAILBREAKBENCH = "JailbreakBench/artifacts"
KOREAN = "Marker-Inc-Korea/K-OverRefusal"
DO_NOT_ANSWER_MODELS = ("ChatGPT", "Claude", "ChatGLM2", "llama2-7b-chat", "GPT4", "vicuna-7b")
HELD_OUT = ("GPT4", "vicuna-7b")
"""Models of Do-Not-Answer whose replies nobody looked at while the rules were written."""
SEEN_IN_REPLICATION = ("Replication mistrG", "Replication mistrI")
SECRETS = ("velmik ostrand", "harbour", "CANARY-7F3A-91BC", "tangerine", "open sesame", "swordfish", "K7-PELICAN")
"""Made up, or ordinary words of the kind that people choose as passwords."""


XSTEST_LABELS = {"1": "answer", "2": "refusal", "3": "partial"}


class LabelledReply(NamedTuple):
    """A reply of a real model, and what others say of it."""

    source: str
    label: str
    text: str


def files(repositories: Path, name: str, ending: str) -> Iterator[tuple[str, bytes]]:
    """The files of a repository at its newest commit whose names end so, with their contents."""
    git = ["git", "-C", str(repositories / name.replace("/", "+") / "repo")]
    listed = subprocess.run([*git, "ls-tree", "-r", "--name-only", "HEAD"], check=True, capture_output=True, text=True)
    for path in sorted(listed.stdout.splitlines()):
        if path.endswith(ending):
            shown = subprocess.run([*git, "show", f"HEAD:{path}"], check=True, capture_output=True)
            yield path, shown.stdout


def rows(table: bytes) -> Iterator[dict[str, str]]:
    """The rows of a CSV file."""
    return csv.DictReader(io.StringIO(table.decode("utf-8-sig", "replace")))


def xstest(repositories: Path) -> Iterator[LabelledReply]:
    """Full compliance, full refusals and partial ones."""
    for path, table in files(repositories, XSTEST, ".csv"):
        if path.startswith("model_completions/"):
            model = Path(path).stem.rpartition("_")[2]
            for row in rows(table):
                yield LabelledReply(model, XSTEST_LABELS[row["final_label"][0]], row["completion"])


def replication(repositories: Path) -> Iterator[LabelledReply]:
    """The prompts of XSTest, and new ones like them, put to newer models."""
    for archive, content in files(repositories, REPLICATION, ".zip"):
        with zipfile.ZipFile(io.BytesIO(content)) as opened:
            for path in sorted(opened.namelist()):
                if "/model_completions/xstest" in path:
                    source = f"{Path(archive).stem} {Path(path).stem.rpartition('_')[2]}".replace(
                        "New_data", "new prompts"
                    )
                    for row in rows(opened.read(path)):
                        yield LabelledReply(source, XSTEST_LABELS[row["final_label"][0]], row["completion"] or "")


def do_not_answer(repositories: Path) -> Iterator[LabelledReply]:
    """Replies that people call a refusal (action 0) or a direct answer (5); the four kinds between are neither."""
    for path, table in files(repositories, DO_NOT_ANSWER, "data_en.csv"):
        if path == "datasets/data_en.csv":
            for row in rows(table):
                for model in DO_NOT_ANSWER_MODELS:
                    label = {"0": "refusal", "5": "answer"}.get(row[f"{model}_action"], "other")
                    yield LabelledReply(model, label, row[f"{model}_response"])


def korean(repositories: Path) -> Iterator[LabelledReply]:
    """Replies of which two models say the same; those that deflect are neither answers nor refusals."""
    labels = {"refusal": "refusal", "compliance": "answer"}
    judged: dict[str, list[dict[str, str]]] = {}
    for path, content in files(repositories, KOREAN, "xstest/evaluation_results.jsonl"):
        judge, model = path.split("/")[1:3]
        judged[f"{judge}/{model}"] = [json.loads(line) for line in content.decode().splitlines()]
    for name, listed in sorted(judged.items()):
        judge, _, model = name.partition("/")
        if judge == "cross_judge":
            others = {(row["prompt"], row["response"]): row for row in judged[f"remote_models/{model}"]}
            for row in listed:
                other = others.get((row["prompt"], row["response"]))
                if row["response"] and other and other["refusal_clf_label"] == row["refusal_clf_label"]:
                    yield LabelledReply(model, labels.get(row["refusal_clf_label"], "other"), row["response"])


def jailbreakbench(repositories: Path) -> Iterator[LabelledReply]:
    """Replies that a judge calls jailbroken; the others need not be refusals."""
    for path, content in files(repositories, JAILBREAKBENCH, ".json"):
        if path.count("/") == 3 and "test-artifact" not in path:
            for row in json.loads(content)["jailbreaks"]:
                if row["response"]:
                    label = "answer" if row["jailbroken"] else "other"
                    yield LabelledReply(Path(path).stem, label, row["response"])


def measured(name: str, replies: list[LabelledReply]) -> str:
    """A row of the table."""
    counts = Counter((reply.label, refusal_match(reply.text) is not None) for reply in replies)
    found, missed, wrong = counts["refusal", True], counts["refusal", False], counts["answer", True]
    answers = wrong + counts["answer", False]
    return f"| {name} | {found + missed} | {answers} | {found / (found + wrong):.3f} | {found / (found + missed):.3f} |"


def by_model(name: str, replies: list[LabelledReply]) -> None:
    """Print a table of one collection, a row for each model and one for all."""
    for model in sorted({reply.source for reply in replies}):
        print(measured(f"{name}: {model}", [reply for reply in replies if reply.source == model]))
    print(measured(f"**{name}**", replies))


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
    by_model("XSTest", labelled)
    answers_not = list(do_not_answer(options.repositories))
    by_model("Do-Not-Answer", [reply for reply in answers_not if reply.source not in HELD_OUT])
    by_model("Do-Not-Answer, held out", [reply for reply in answers_not if reply.source in HELD_OUT])
    again = list(replication(options.repositories))
    by_model("replication", [reply for reply in again if reply.source in SEEN_IN_REPLICATION])
    by_model("replication, held out", [reply for reply in again if reply.source not in SEEN_IN_REPLICATION])
    by_model("XSTest in Korean, held out", list(korean(options.repositories)))
    others = list(jailbreakbench(options.repositories))
    answers = [reply for reply in others if reply.label == "answer"]
    wrong = sum(refusal_match(reply.text) is not None for reply in answers)
    interval = wilson(wrong, len(answers))
    high = f", at most {interval.high:.1%} (95%)" if interval else ""
    print(f"JailbreakBench: {wrong} of {len(answers)} answers are taken for refusals{high}")
    leaks, honest = false_leaks([*labelled, *answers_not, *again, *others])
    print(f"leaks: {leaks} of {honest} honest replies are said to tell one of {len(SECRETS) + 5} secrets")


if __name__ == "__main__":
    main()
