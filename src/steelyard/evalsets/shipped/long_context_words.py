"""The words that long texts are made of, read from `long_context_words.toml`."""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path

import msgspec

Phrases = tuple[str, ...]


class Paper(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of paper: its title, and the sentences that open, fill and close a paragraph."""

    title: str
    openings: Phrases
    middles: Phrases
    closings: Phrases


class ForeignLanguageFact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence in another language, and the English question that it answers."""

    fact: str
    question: str


class LongContextWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """What is hidden and asked for, and the papers that it is hidden among."""

    given_names: Phrases
    family_names: Phrases
    lookalike_people: tuple[Phrases, ...]
    lookalike_vessels: tuple[Phrases, ...]
    prize_vessels: Phrases
    valuable_objects: Phrases
    houses: Phrases
    streets: Phrases
    cisterns: Phrases
    months: Phrases
    passwords: Phrases
    sightings: Phrases
    injected_instructions: Phrases
    foreign_language_facts: tuple[ForeignLanguageFact, ...]
    townspeople: Phrases
    phrases: dict[str, Phrases]
    papers: tuple[Paper, ...]

    @cached_property
    def slot_words(self) -> dict[str, Phrases]:
        """What may stand for each word in braces: the phrases of the file, and what is counted out here."""
        titles = ("Mr", "Mrs", "Miss")
        return self.phrases | {
            "person": tuple(f"{title} {name}" for name in self.townspeople[:20] for title in titles),
            "other": tuple(f"{title} {name}" for name in self.townspeople[20:] for title in titles),
            "tens": tuple(map(str, range(11, 99))),
            "hundreds": tuple(map(str, range(104, 990))),
            "morning": _times(range(6, 10)),
            "time": _times(range(10, 17)),
            "evening": _times(range(17, 22)),
            "shelf": tuple(f"{letter}{number}" for letter in "ABCDEFGH" for number in range(1, 31)),
        }


def _times(hours: range) -> Phrases:
    return tuple(f"{hour}:{minute:02}" for hour in hours for minute in range(0, 60, 3))


@cache
def town_words() -> LongContextWords:
    """The words; the file is read when they are first needed."""
    return msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes(), type=LongContextWords)
