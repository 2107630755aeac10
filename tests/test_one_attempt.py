"""One shape of an attempt: the journal is decoded in the store, joined once, and every report is made from those rows."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "steelyard"
FACTS = {"Reply", "Verdict", "Failure", "Fact", "JournalFact"}
JOINS_FACTS = {
    "analysis/attempts.py": "makes the rows",
    "analysis/attempt_texts.py": "puts texts beside the rows",
    "engine/asking/batches.py": "what a batch still owes",
    "engine/asking/conversation.py": "what came of one turn",
    "engine/preflight/reply_cache.py": "replies of earlier runs",
    "engine/preflight/witnesses.py": "verdicts that wait for their witness",
    "engine/ray/node.py": "makes facts",
    "engine/ray/pool.py": "makes facts",
    "engine/reference_time.py": "whether a reference passed",
    "engine/repairs/recorded_run.py": "verdicts of an earlier run that still hold",
    "engine/results/labels.py": "what judges said beside what people say",
    "engine/results/merge.py": "one reply in two runs",
    "engine/results/recordings.py": "our verdict and another tool's on one reply",
    "engine/session.py": "what a run still owes",
    "engine/steps.py": "makes facts",
    "engine/tiers/experiment.py": "which tiers were asked",
    "engine/tiers/judging.py": "what judges still owe",
    "engine/tiers/rubric_checks.py": "judgments and replies that the judges of rubrics share",
    "engine/verifier_processes/shared_verdicts.py": "one verdict for replies with the same text",
    "engine/verifiers.py": "makes facts",
    "engine/waiting_replies.py": "replies that wait on disk",
    "providers/replay.py": "recorded replies, asked again",
}
"""Modules that look at the kind of a fact, each with its reason: none of them adds attempts up."""
KNOWN = re.compile(rf"\b({'|'.join(sorted(FACTS))})\b|[.]journals\b|Attempt(Row|Text)[(]")
DECODES_FACTS = {
    "engine/ray/node.py": "a reply arrives at a node, not in a journal",
    "engine/ray/pool.py": "a verdict comes back from a node",
    "engine/verifier_processes/shared_verdicts.py": "a verdict that was kept for replies to come",
    "providers/replay.py": "a recording is a file of replies, and an edge does not import the store",
    "store/journal.py": "the journal itself",
    "store/reply_places.py": "single fields of replies",
    "store/run_folders.py": "the tags of a run's first case, and no fact",
}
MAKES_ROWS = {"AttemptRow": {"analysis/attempts.py"}, "AttemptText": {"analysis/attempt_texts.py"}}


@cache
def modules() -> dict[str, ast.Module]:
    """The modules that know facts, rows or journals by name."""
    texts = {str(path.relative_to(SOURCE)): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    return {name: ast.parse(text) for name, text in texts.items() if KNOWN.search(text)}


def looks_at_kind(tree: ast.AST) -> bool:
    """Whether some code asks which kind of fact it has: by isinstance, or by a pattern."""
    for node in ast.walk(tree):
        asked: ast.AST | None = node.cls if isinstance(node, ast.MatchClass) else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            asked = node.args[1]
        if asked and FACTS & {name.id for name in ast.walk(asked) if isinstance(name, ast.Name)}:
            return True
    return False


def decoded_types(tree: ast.AST) -> set[str]:
    """What a module decodes JSON as, by name."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("Decoder", "TolerantDecoder", "decode", "convert"):
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                found |= {each.id for one in given for each in ast.walk(one) if isinstance(each, ast.Name)}
    return found


def opens_journals(tree: ast.AST) -> bool:
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return "journals" in names and bool(names & {"readline", "readlines"})


def test_facts_are_joined_to_attempts_in_one_module_alone() -> None:
    assert {name for name, tree in modules().items() if looks_at_kind(tree)} == JOINS_FACTS.keys()
    rooms = {name.partition("/")[0] for name in JOINS_FACTS}
    assert not rooms & {"viewer", "reports", "comparison", "tiers", "outcomes", "cli"}


def test_no_front_or_report_decodes_lines_of_journals() -> None:
    decoding = {name for name, tree in modules().items() if decoded_types(tree) & FACTS or opens_journals(tree)}
    assert decoding == DECODES_FACTS.keys()


def test_rows_are_made_where_facts_are_joined() -> None:
    for shape, makers in MAKES_ROWS.items():
        calls = {
            name
            for name, tree in modules().items()
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == shape
        }
        assert calls == makers, shape


def test_a_second_shape_would_be_seen() -> None:
    assert looks_at_kind(ast.parse("x = [fact for fact in facts if isinstance(fact, Verdict)]"))
    assert looks_at_kind(ast.parse("match fact:\n    case Reply(key=key):\n        pass"))
    assert decoded_types(ast.parse("d = msgspec.json.Decoder(Reply | Verdict)")) & FACTS
    assert opens_journals(ast.parse("for path in run.journals():\n    path.open().readline()"))
