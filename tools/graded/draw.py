"""The questions and the scripted answers that every tool is given: how many of twenty words an answer gets right."""

import random

WORDS = ["ash", "bay", "cod", "dew", "elm", "fig", "gum", "hay", "ivy", "jay"]
WORDS += ["kit", "log", "mud", "nut", "oak", "pea", "rye", "sap", "tin", "yew"]
CASES = 40
FALLS = {"base": 0, "equal": 0, "fall10": 2, "fall30": 6, "fall60": 12}
"""How many words fewer than in `base` each side gets right, of twenty."""


def right_words(side: str, attempts: int) -> list[list[int]]:
    """For each question, how many words each of its answers gets right: 14 to 20, fewer by what the side falls."""
    ease = random.Random("ease")
    easiness = [ease.uniform(16, 18.4) for _ in range(CASES)]
    noise = random.Random(side)
    return [
        [min(20, max(14, round(noise.gauss(mean, 1.2)))) - FALLS[side] for _ in range(attempts)] for mean in easiness
    ]


def question(number: int) -> str:
    return f"List {number + 1:02}"


def target(number: int) -> str:
    """The twenty words, beginning elsewhere for each question."""
    start = number % len(WORDS)
    return " ".join(WORDS[start:] + WORDS[:start])


def answer(number: int, right: int) -> str:
    """The first words of the target, and as many wrong ones as make them twenty."""
    return " ".join(target(number).split()[:right] + ["-"] * (20 - right))


def share(target: str, answer: str) -> float:
    """The share of the target's words that an answer has: its F1, too, as each answer is as long as its target."""
    wanted = target.split()
    return sum(word in answer.split() for word in wanted) / len(wanted)
