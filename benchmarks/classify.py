"""How many responses per second one core classifies.

    python benchmarks/classify.py [--responses 100000] [--kilobytes 2] [--check NAME]

Five thousand different responses of about the same length, of the kind that the check asks for, are classified over and
over; every second one is spoiled: fenced among prose, cut off, with other quotation marks, with a leaked canary, or a
refusal. Time is CPU time of this process, which has one thread; the bar is for each check alone. The floor is splitting the
same responses into words.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from steelyard.records import Answer
from steelyard.verifiers.response.checks import declared_check
from steelyard.verifiers.response.verifier import classify_answer

BAR = 5000
SENTENCE = "the answer to your question is in this file and it was written by someone who knows about numbers"
WORDS = SENTENCE.split()
SCHEMA = {
    "type": "object",
    "properties": {
        "status": {"enum": ["ok", "error"]},
        "items": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
    },
    "required": ["status", "items"],
    "additionalProperties": False,
}  # fmt: skip
CANARY = "CANARY-7F3A-91BC"


def prose(chance: random.Random, length: int) -> str:
    return " ".join(chance.choices(WORDS, k=length // 5))[:length]


def data(chance: random.Random, length: int) -> str:
    items = [{"name": prose(chance, 60), "count": chance.randrange(100)} for _ in range(length // 90)]
    return json.dumps({"status": "ok", "items": items})


def table(chance: random.Random, length: int) -> str:
    return "name,age\n" + "".join(f"{prose(chance, 20)},{chance.randrange(99)}\n" for _ in range(length // 24))


def page(chance: random.Random, length: int) -> str:
    rows = "".join(f"<tr><td>{prose(chance, 20)}</td></tr>" for _ in range(length // 40))
    return f"<div><p>x</p><table>{rows}</table></div>"


Maker = Callable[[random.Random, int], str]
CHECKS: dict[str, tuple[Maker, dict[str, Any]]] = {
    "exact": (prose, {"type": "exact", "value": "ok", "strip": True, "casefold": True}),
    "contains": (prose, {"type": "contains", "value": ["numbers", "someone"]}),
    "regex": (prose, {"type": "regex", "pattern": r"(?i)\bby\s+(\w+)"}),
    "json": (data, {"type": "json", "fenced": True}),
    "json with schema": (data, {"type": "json", "fenced": True, "schema": SCHEMA}),
    "csv": (table, {"type": "csv", "columns": ["name", "age"]}),
    "html": (page, {"type": "html", "required_tags": ["p", "table"]}),
    "xml": (page, {"type": "xml", "required_tags": ["p"]}),
    "number": (table, {"type": "number", "value": 42, "which": "last"}),
    "none of": (prose, {"type": "none_of", "values": [CANARY, "PWNED", "another secret"]}),
    "language": (prose, {"type": "language", "value": "en"}),
    "max length": (prose, {"type": "max_length", "words": 2000, "lines": 1}),
    "normalised": (prose, {"type": "normalised", "form": "NFC", "no_bidi": True}),
    "an injection case": (
        prose,
        {
            "type": "all",
            "checks": [
                {"type": "none_of", "values": [CANARY]},
                {"type": "max_length", "words": 2000},
                {"type": "contains", "value": "numbers"},
            ],
        },
    ),
}
SPOILED: list[Callable[[str], str]] = [
    str,
    lambda text: f"Sure:\n```\n{text}\n```\nAnything else?",
    str,
    lambda text: text[: len(text) // 2],
    str,
    lambda text: text.replace('"', "'"),
    str,
    lambda text: f"{text} {CANARY}",
    str,
    lambda text: f"I'm sorry, but I can't help with that. {text}",
]


def responses(maker: Maker, number: int, length: int) -> list[str]:
    """Every second one as the maker makes it, the others spoiled in turn."""
    chance = random.Random(1)
    return [SPOILED[place % len(SPOILED)](maker(chance, length)) for place in range(number)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--responses", type=int, default=100_000)
    parser.add_argument("--kilobytes", type=int, default=2)
    parser.add_argument("--check", choices=CHECKS, help="only this one (default: each of them)")
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}; bar {BAR} responses per second and core")
    for name in [options.check] if options.check else CHECKS:
        maker, declared = CHECKS[name]
        texts = responses(maker, min(options.responses, 5000), options.kilobytes * 1024)
        answers = [Answer(text=text) for text in texts]
        check = declared_check(declared)
        found: Counter[str] = Counter()
        began = time.process_time()
        for number in range(options.responses):
            found[classify_answer(answers[number % len(answers)], check).primary] += 1
        ended = time.process_time()
        for number in range(options.responses):
            texts[number % len(texts)].split()
        floor = time.process_time() - ended
        rate = options.responses / (ended - began)
        verdict = "holds" if rate >= BAR else "MISSED"
        ratio = f"{(ended - began) / floor:.1f} x the floor"
        print(f"  {name:<20}{rate:>8.0f} per second  {verdict}  {ratio:<18}{dict(sorted(found.items()))}", flush=True)


if __name__ == "__main__":
    main()
