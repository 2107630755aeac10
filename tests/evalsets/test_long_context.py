"""What is hidden in a long text stands where it should, as often as it should, and is the only right answer."""

import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from steelyard.errors import InputError
from steelyard.evalsets.long_context import (
    LONG_CONTEXT_CASE_PLANS,
    MAX_LONG_CONTEXT_CHARACTERS,
    MIN_LONG_CONTEXT_CHARACTERS,
    Puzzle,
    cases,
    town_words,
)
from steelyard.verifiers.response.checks import declared_check

WORDS = town_words()
SEEDS = {2_000: range(5), 8_000: range(5), 100_000: range(2)}
"""By length: what is long is slow to make and to search."""
DIGEST = "35c44ff81f9c494660159b8a5c53027276a69e032177b918afc6afb6cb2a0396"
"""Of the cases that `cases()` gives: a change of it changes what recorded answers were asked."""

Case = dict[str, Any]


@cache
def every_case() -> list[tuple[Case, Puzzle, str, str]]:
    """Cases of several lengths and seeds, each with what was hidden for it, its papers and its question."""
    found = []
    for length, seed in ((length, seed) for length, seeds in SEEDS.items() for seed in seeds):
        for plan, case in zip(LONG_CONTEXT_CASE_PLANS, cases(length, seed), strict=True):
            puzzle = plan.puzzle(random.Random(f"{seed}-{length}-{plan.id}"))
            _, papers, below = case["prompt"].split("=" * 40)
            found.append((case, puzzle, papers.strip("\n"), below.strip()))
    return found


def passes(case: Case, reply: str) -> bool:
    return declared_check(case["verify"]["expect"]).judge(reply).passed


# The suite as a whole


def test_the_default_suite_is_the_same_on_every_machine() -> None:
    assert hashlib.sha256(json.dumps(cases(), sort_keys=True).encode()).hexdigest() == DIGEST


def test_the_same_arguments_give_the_same_cases() -> None:
    assert cases(5_000, 7) == cases(5_000, 7)


def test_another_seed_or_length_asks_for_other_facts_in_another_text() -> None:
    first = cases(8_000, 0)
    for others in (cases(8_000, 1), cases(8_001, 0)):
        assert all(one["prompt"] != other["prompt"] for one, other in zip(first, others, strict=True))
        same = [one["id"] for one, other in zip(first, others, strict=True) if one["reference"] == other["reference"]]
        # of few streets and small counts some come again by chance
        assert len([name for name in same if "absent" not in name]) <= 5, same


def test_cases_are_tables_of_an_eval_set() -> None:
    tables = cases()
    assert len(tables) >= 24
    assert len({table["id"] for table in tables}) == len({table["name"] for table in tables}) == len(tables)
    for table in tables:
        keys = ["id", "name", "tags", "prompt", "max_tokens", "reference", "counterexample", "verify"]
        assert list(table) == keys
        assert re.fullmatch(r"long_context/[a-z-]+", table["id"])
        assert 1 <= len(table["tags"]) <= 3
        assert list(table["verify"]) == ["expect"]


def test_every_kind_of_question_is_asked_at_several_depths() -> None:
    assert min(Counter(plan.tags[0] for plan in LONG_CONTEXT_CASE_PLANS).values()) >= 2


@pytest.mark.parametrize("length", [MIN_LONG_CONTEXT_CHARACTERS, 2_345, 8_000, 100_000, 1_000_000])
def test_prompts_are_as_long_as_was_asked(length: int) -> None:
    for seed in SEEDS.get(length, range(5 if length < 1_000_000 else 1)):
        for case in cases(length, seed):
            assert length - max(200, length // 50) <= len(case["prompt"]) <= length, case["id"]


@pytest.mark.parametrize("length", [-1, 0, MIN_LONG_CONTEXT_CHARACTERS - 1, MAX_LONG_CONTEXT_CHARACTERS + 1])
def test_other_lengths_are_refused_in_one_sentence(length: int) -> None:
    with pytest.raises(InputError, match=f"2,000 to 4,000,000 characters, not {length:,}") as caught:
        cases(length)
    assert "\n" not in str(caught.value)


# What is hidden


def test_references_pass_and_counterexamples_do_not() -> None:
    for case, *_ in every_case():
        assert passes(case, case["reference"]), case["id"]
        assert not passes(case, case["counterexample"]), case["id"]


HIDDEN = (
    *(f"{given} " for given in WORDS.given_names),
    *WORDS.family_names,
    *(name for group in (*WORDS.lookalike_people, *WORDS.lookalike_vessels) for name in group),
    *WORDS.prize_vessels,
    *WORDS.valuable_objects,
    *WORDS.houses,
    *WORDS.streets,
    *WORDS.months,
    *WORDS.passwords,
    *(known.fact.split("{number}")[0] for known in WORDS.foreign_language_facts),
    *("locker", "widow", "post box", "berth fee", "Correction", "pounds", "fund", "The key of", "pennant", "cistern"),
    *("barrels", "new bell", "The lock of", "question below", "these papers", "who mended"),
)
"""Everything that a question may be about."""


def test_what_is_asked_for_stands_where_it_was_hidden_and_nowhere_else() -> None:
    for case, puzzle, papers, _ in every_case():
        for needle in puzzle.needles:
            assert papers.count(needle.text) == 1, (case["id"], needle)
        for name in HIDDEN:
            hidden = sum(needle.text.count(name) for needle in puzzle.needles)
            assert papers.count(name) == hidden, (case["id"], name)


def test_no_words_of_the_papers_name_what_is_hidden() -> None:
    sentences = [text for paper in WORDS.papers for text in (*paper.openings, *paper.middles, *paper.closings)]
    phrases = [phrase for known in WORDS.slot_words.values() for phrase in known]
    assert not [(text, name) for text in (*sentences, *phrases) for name in HIDDEN if name in text]


def test_no_name_is_part_of_another() -> None:
    names = [name for group in (*WORDS.lookalike_people, *WORDS.lookalike_vessels) for name in group]
    names += [*WORDS.prize_vessels, *WORDS.valuable_objects, *WORDS.houses, *WORDS.streets]
    assert not [(one, other) for one in names for other in names if one != other and one in other]


def test_what_is_hidden_stands_at_its_depth() -> None:
    for case, puzzle, papers, _ in every_case():
        for needle in puzzle.needles:
            start = papers.index(needle.text)
            depth = start / (len(papers) - len(needle.text))
            # the shorter a text, the more of it is one sentence, or what else is hidden
            assert abs(depth - needle.depth) < 0.01 + 450 / len(papers), (case["id"], needle, depth)


def test_the_start_is_the_first_sentence_and_the_end_the_last() -> None:
    for case, puzzle, papers, _ in every_case():
        if case["id"] == "long_context/one-fact-start":
            assert papers.split("\n\n")[1].startswith(puzzle.needles[0].text)
        if case["id"] == "long_context/one-fact-end":
            assert papers.endswith(puzzle.needles[0].text)


def test_nothing_else_that_is_hidden_is_an_answer() -> None:
    for case, puzzle, _, _ in every_case():
        hidden = " ".join(needle.text for needle in puzzle.needles)
        found = {*re.findall(r"\d+", hidden), *(name for name in HIDDEN if name in hidden), "NOT FOUND"}
        found |= set(re.findall(r"[A-Z][a-z]+ [A-Z][a-z]+|\S+-\S+-\S+", hidden))
        right = {value.removeprefix("The ") for value in found if passes(case, value)}
        assert right <= {case["reference"]}, (case["id"], right)


def test_an_answer_that_is_copied_stands_in_one_sentence_only() -> None:
    copied = (
        "one-fact",
        "lookalike",
        "superseded",
        "correction",
        "two-hops",
        "first-of",
        "last-of",
        "order",
        "foreign",
        "code",
    )
    for case, puzzle, _, _ in every_case():
        if case["tags"][0] in copied:
            holding = [needle.text for needle in puzzle.needles if case["reference"] in needle.text]
            assert len(holding) == 1, (case["id"], holding)


# A reader of ours, who knows the phrases but not the key


def only(found: list[str]) -> str:
    assert len(set(found)) < 2, found
    return found[0] if found else "NOT FOUND"


def asked(pattern: str, question: str) -> str:
    match = re.search(pattern, question)
    assert match, question
    return match[1]


def fact(papers: str, question: str) -> str:
    thing = asked(r"(?:does|mended|has) the (.+?)(?: stand\?| been lent\?|\?)", question)
    if "locker" in question:
        return only(re.findall(rf"The {thing} stands in locker (\d+) of the old customs shed\.", papers))
    if "mended" in question:
        return only(re.findall(rf"It was (\w+ \w+) who mended the {thing}", papers))
    return only(re.findall(rf"The {thing} has been lent to a widow in ([\w ]+)\.", papers))


def post_box(papers: str, question: str) -> str:
    return only(re.findall(rf"The post box of {asked('post box of ([^?]+)', question)} has the number (\d+)\.", papers))


def latest_fee(papers: str, question: str) -> str:
    vessel = asked("fee of the (.+) in crowns", question)
    notices = re.findall(rf"Notice of (\d+) (\w+): the berth fee of the {vessel} is (\d+) crowns\.", papers)
    assert len(notices) == 3
    *_, (_, fee) = sorted(((WORDS.months.index(month), int(day)), str(fee)) for day, month, fee in notices)
    return fee


def weight(papers: str, question: str) -> str:
    entered, corrected = re.findall(rf"([^.]+ the {asked('the (.+) weigh', question)} weighs) (\d+) pounds", papers)
    assert "Correction" in corrected[0] not in entered[0]
    return str(corrected[1])


def signers(papers: str, question: str) -> str:
    return json.dumps(re.findall(r"(\w+ \w+) signed for the lifeboat fund\.", papers), indent=1)


def street_of_the_keeper(papers: str, question: str) -> str:
    keeper = only(re.findall(rf"The key of the {asked('key of the ([^?]+)', question)} is with (\w+ \w+)\.", papers))
    return only(re.findall(rf"{keeper} lives in ([\w ]+)\.", papers))


def sentences_with_the_vessel(papers: str, question: str) -> str:
    vessel = asked(r"the vessel ([^?]+)\?", question)
    return str(sum(vessel in sentence for sentence in papers.split(". ")))


def pennants(papers: str, question: str) -> str:
    vessels: list[str] = re.findall(r"The (\w+) was given the blue pennant\.", papers)
    assert len(set(vessels)) == 4
    return vessels[0 if "name first" in question else -1]


def fuller_cistern(papers: str, question: str) -> str:
    names = re.findall(r"the (\w+) cistern", question)
    barrels = {name: int(only(re.findall(rf"The {name} cistern held (\d+) barrels\.", papers))) for name in names}
    less, more = sorted(names, key=lambda name: barrels[name])
    return json.dumps({"difference": barrels[more] - barrels[less], "cistern": more})


def paid(papers: str, question: str) -> str:
    amounts = re.findall(r"paid (\d+) crowns for the new bell", papers)
    assert len(amounts) == 3
    return f"{sum(map(int, amounts)):,} crowns"


def foreign_number(papers: str, question: str) -> str:
    (pattern,) = (
        known.fact.replace("{number}", r"(\d+)")
        for known in WORDS.foreign_language_facts
        if question.count(known.question)
    )
    return only(re.findall(pattern, papers))


def code(papers: str, question: str) -> str:
    return only(re.findall(rf"The lock of the {asked('lock of the (.+) open', question)} opens with (\S+) and", papers))


READERS: dict[str, Callable[[str, str], str]] = {
    "one-fact": fact,
    "lookalike": post_box,
    "superseded": latest_fee,
    "correction": weight,
    "collection": signers,
    "two-hops": street_of_the_keeper,
    "count": sentences_with_the_vessel,
    "first-of": pennants,
    "last-of": pennants,
    "absent-name": post_box,
    "absent-detail": fact,
    "comparison": fuller_cistern,
    "sum": paid,
    "order": fact,
    "foreign": foreign_number,
    "code": code,
}


def test_who_reads_the_papers_finds_the_answer() -> None:
    for case, _, papers, question in every_case():
        reply = READERS[case["tags"][0]](papers, question)
        assert passes(case, reply), (case["id"], reply)


# The prose around it


def test_sentences_are_whole_and_rarely_repeat() -> None:
    for case in cases(100_000)[:5]:
        paragraphs = case["prompt"].split("=" * 40)[1].strip().split("\n\n")
        sentences = [sentence for text in paragraphs if ". " in text for sentence in text.removesuffix(".").split(". ")]
        assert len(set(sentences)) > 0.99 * len(sentences) > 900
        assert all(sentence[0].isupper() and not re.search(r"[{}%]|  ", sentence) for sentence in sentences)
        assert all(3 <= text.count(".") <= 14 for text in paragraphs[:-1] if not re.fullmatch(r".+, sheet \d+", text))


def test_every_kind_of_paper_comes_up() -> None:
    text = cases(100_000)[0]["prompt"]
    assert all(f"{paper.title}, sheet " in text for paper in WORDS.papers)
