"""What a run folder holds, counted without the help of the summary."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from steelyard.records import Failure, Reply, Verdict
from steelyard.store.journal import StoredRun


class Facts(NamedTuple):
    replies: list[Reply]
    verdicts: list[Verdict]
    failures: list[Failure]

    @property
    def texts(self) -> list[str]:
        return sorted(reply.answer.text for reply in self.replies)

    @property
    def spent(self) -> float:
        return sum(reply.answer.cost.usd for reply in self.replies if reply.answer.cost is not None)

    def replied(self) -> Counter[tuple[str, str]]:
        """How many replies each model gave to each case; two never answer the same asking."""
        assert len({reply.key for reply in self.replies}) == len(self.replies)
        return Counter((reply.model, reply.case) for reply in self.replies)

    def judged(self) -> Counter[tuple[str, str]]:
        """How many verdicts there are on each model's replies to each case."""
        assert {verdict.ask for verdict in self.verdicts} <= {reply.key for reply in self.replies}
        return Counter((verdict.model, verdict.case) for verdict in self.verdicts)

    def failed(self) -> Counter[tuple[str, str]]:
        """The failures that were not made good."""
        made_good = {reply.key for reply in self.replies}
        return Counter((failure.model, failure.case) for failure in self.failures if failure.key not in made_good)


def facts(folder: Path) -> Facts:
    stored = StoredRun(folder)
    found = list(stored.facts())
    assert not stored.damaged
    return Facts(
        [fact for fact in found if isinstance(fact, Reply)],
        [fact for fact in found if isinstance(fact, Verdict)],
        [fact for fact in found if isinstance(fact, Failure)],
    )


def response_bodies(folder: Path) -> list[tuple[str, str, bytes]]:
    """The model, the case and the body of every response that a run folder holds."""
    lines = map(json.loads, (folder / "responses.jsonl").read_text("utf-8").splitlines())
    return [
        (line["model"], line["case"], line.get("body", "").encode() or base64.b64decode(line.get("base64", "")))
        for line in lines
    ]
