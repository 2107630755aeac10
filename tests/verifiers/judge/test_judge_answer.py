"""A judge's reply is read to the letter: it is a judgment, or there is a reason why it is none, and never a default."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from steelyard.tiers.rubrics import (
    CategoryScore,
    ClaimedScore,
    ItemScore,
    Rubric,
    RubricCategory,
    RubricItem,
    RubricScore,
    default_rubric,
)
from steelyard.verifiers.judge.answer import MAX_JUDGE_REPLY_CHARACTERS, UnusableJudgeReply, judgment, repair_request

RUBRIC = Rubric(
    id="r",
    categories=(
        RubricCategory(
            name="functional",
            weight=2,
            items=(
                RubricItem(id="F1", check="It runs.", points=2),
                RubricItem(id="F2", check="It prints the sum.", points=0.5, na_condition="It prints nothing."),
            ),
        ),
        RubricCategory(name="R1", weight=1, items=(RubricItem(id="R1", check="It parses.", evaluation="binary"),)),
        RubricCategory(name="clarity", weight=1, check="It reads well."),
    ),
)


def reply() -> dict[str, Any]:
    """A judgment without a fault: (2 * 2 / 2.5 + 1 + 0.8) / 4 is 0.85."""
    return {
        "criteria_scores": {
            "functional": {
                "items": {
                    "F1": {"achieved": 1.5, "max": 2, "reason": "It runs, slowly."},
                    "F2": {"achieved": 0.5, "max": 0.5, "reason": "Yes."},
                }
            },
            "R1": {"score": 1, "reason": "It does."},
            "clarity": {"score": 0.8, "reason": "Mostly."},
        },
        "reasoning": "Good.",
        "score": 0.85,
        "passed": True,
        "grade": "B",
    }


FINE = json.dumps(reply())
OTHER_SHAPE = {
    "requirements": {"R1": {"id": "R1", "score": 1.0, "confidence": 0.9, "notes": "It does."}},
    "categories": {
        "functional": {"items": {"F1": {"achieved": 1.5}, "F2": {"achieved": 0.5}}},
        "clarity": {"name": "clarity", "score": 0.8, "confidence": 0.5, "weight": 1.0, "notes": "Mostly."},
    },
    "summary": {"weighted_score": 0.85, "passed": True, "letter_grade": "B", "strengths": ["a"], "weaknesses": []},
}


def changed(*path: str, value: Any) -> str:
    """The reply with one value put in another's place."""
    table = reply()
    inner = table
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(table)


def without(*path: str) -> str:
    table = reply()
    inner = table
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return json.dumps(table)


SCORES = "criteria_scores"
F1 = (SCORES, "functional", "items", "F1")
F2 = (SCORES, "functional", "items", "F2")

USABLE = [
    ("JSON alone", FINE),
    ("JSON with blanks around it", f"\n\n  {FINE}\n"),
    ("JSON in a fence", f"```json\n{FINE}\n```"),
    ("JSON in a fence without a name", f"```\n{FINE}\n```\n"),
    ("prose before and after", f"Here is my judgment.\n\n{FINE}\n\nI hope that helps!"),
    ("prose with a fence", f"Here:\n```json\n{json.dumps(reply(), indent=2)}\n```\nDone."),
    ("prose with braces", f"The set {{a, b}} and f'{{x}}' are fine.\n{FINE}\nSee {{above}}."),
    ("prose with quotes", f'He said "it is 5" tall\n{FINE}'),
    ("braces in strings", changed(SCORES, "clarity", "reason", value='It has "}{" and \\"}}} in it: {')),
    ("a fence in a string", changed("reasoning", value="```json\n{}\n```")),
    ("JSON of another in a string", changed("reasoning", value='{"criteria_scores": {}}')),
    ("thoughts with a draft", f'<think>Perhaps {{"criteria_scores": {{}}}}?</think>\n{FINE}'),
    ("numbers in other spellings", FINE.replace("1.5", "15e-1").replace("0.5", "5.0E-1")),
    ("unknown keys beside what is asked", changed("criteria_version", value=[1, {"a": None}])),
    ("no claims", without("score")),
    ("no reasons", without(SCORES, "clarity", "reason")),
    ("no max", without(*F1, "max")),
    ("points of a category that has none", changed(SCORES, "clarity", value={"achieved": 8, "max": 10})),
    ("points and a score", changed(SCORES, "clarity", value={"achieved": 8, "max": 10, "score": 0.8})),
    ("a requirement with its item", changed(SCORES, "R1", value={"items": {"R1": {"achieved": 1, "max": 1.0}}})),
    ("the other shape", json.dumps(OTHER_SHAPE)),
    ("a sum by the category", changed(SCORES, "functional", value={
        "achieved": 2, "max": 2.5, "score": 0.8, "na_items": [],
        "items": {"F1": {"achieved": 1.5, "max": 2}, "F2": {"achieved": 0.5, "max": 0.5}}})),
]  # fmt: skip

UNUSABLE = [
    ("the form as it came", changed(*F2, value={"achieved": 0.5, "reason": "..."}), "the reason is the form's own"),
    (
        "a score with the form's reason",
        changed("criteria_scores", "clarity", value={"score": 0.9, "reason": " <why, in one sentence> "}),
        "the reason is the form's own; give one in your words",
    ),
    ("nothing", "", "the reply is empty"),
    ("blanks", " \n\t ", "the reply is empty"),
    ("a refusal", "I'm sorry, but I can't judge this.", 'no JSON object in the reply, which begins "I\'m sorry'),
    ("a score in prose", "I'd give it 8/10.", "no JSON object"),
    ("a list", f"[{FINE}]", "JSON, but no object"),
    ("a string that contains JSON", json.dumps(FINE), "JSON, but no object"),
    ("a number", "0.85", "JSON, but no object"),
    ("null", "null", "JSON, but no object"),
    ("an empty object", "{}", 'there are no scores: expected an object "criteria_scores"'),
    ("an error object", '{"error": "cannot judge"}', "there are no scores"),
    ("a score alone", '{"score": 0.9, "passed": true}', "there are no scores"),
    ("the judgment in a wrapper", json.dumps({"judgment": reply()}), "there are no scores"),
    ("two objects", f"{FINE}\n{FINE}", "holds 2 JSON objects; write exactly one"),
    ("two objects in fences", f"```json\n{FINE}\n```\nor rather\n```json\n{FINE}\n```", "holds 2 JSON objects"),
    ("an example before it", f'As in {{"a": 1}}:\n{FINE}', "holds 2 JSON objects"),
    ("a broken draft before it", f"{{criteria_scores: 1}}\n{FINE}", "the reply is not JSON: unexpected"),
    ("cut off in a string", FINE[: FINE.index("slowly")], "the reply is cut off: the brace in line 1, column 1"),
    ("cut off between values", FINE[:-1], "the reply is cut off"),
    ("cut off after a category", FINE[: FINE.index(', "clarity"')], "the reply is cut off"),
    ("cut off in a fence", f"```json\n{FINE[:100]}\n```", "the brace in line 2, column 1 is never closed"),
    ("a brace of prose never closed", f"Mind the {{.\n{FINE}", "the brace in line 1, column 10 is never closed"),
    ("single quotes", repr(reply()), "the reply is not JSON: single quotes"),
    ("single quotes in prose", f"So: {reply()!r}", "the reply is not JSON: single quotes"),
    ("a trailing comma", FINE[:-1] + ",}", "a comma with nothing after it"),
    ("a comment", FINE[:-1] + "// done\n}", "the reply is not JSON"),
    ("a key twice", FINE[:-1] + ', "score": 1}', 'the key "score" appears twice'),
    ("a category twice", FINE.replace('"clarity":', '"clarity": {"score": 1}, "clarity":'), 'key "clarity" appears twice'),
    ("NaN", FINE.replace("0.8,", "NaN,"), "NaN is not JSON"),
    ("infinity", FINE.replace("0.8,", "Infinity,"), "Infinity is not JSON"),
    ("a number too large", FINE.replace("0.8,", "1e999,"), "too long or too large"),
    ("nested deeply", FINE[:-1] + ', "x": ' + "[" * 200 + "]" * 200 + "}", "nested more than 100 levels deep"),
    ("no categories", changed(SCORES, value={}), 'category "functional" is missing; category "R1" is missing; '),
    ("categories in a list", changed(SCORES, value=[]), '"criteria_scores" is a list; expected an object'),
    ("a missing category", without(SCORES, "clarity"), 'category "clarity" is missing'),
    ("an unknown category", changed(SCORES, "beauty", value={"score": 1}), 'unknown category "beauty"'),
    ("a category in other letters", FINE.replace('"clarity"', '"Clarity"'), 'unknown category "Clarity"; category "cl'),
    ("a category that is a number", changed(SCORES, "clarity", value=0.8), '"clarity" is a number; expected an object'),
    ("a category that is null", changed(SCORES, "clarity", value=None), 'category "clarity" is null'),
    ("a category without a score", without(SCORES, "clarity", "score"), 'category "clarity" has no "score"'),
    ("11 of 10", changed(SCORES, "clarity", value={"achieved": 11, "max": 10}), "achieved is 11, more than 10"),
    ("a score of 11", changed(SCORES, "clarity", "score", value=11), "score is 11, more than 1; give a number from 0"),
    ("a score of 8 of 10", changed(SCORES, "clarity", "score", value=8), "score is 8, more than 1"),
    ("a score in percent", changed(SCORES, "clarity", "score", value=80.0), "score is 80, more than 1"),
    ("a negative score", changed(SCORES, "clarity", "score", value=-0.1), "score is -0.1; expected a number from 0 up"),
    ("a number in quotes", changed(SCORES, "clarity", "score", value="0.8"), 'is the text "0.8"; expected a number; wri'),
    ("a share as text", changed(SCORES, "clarity", "score", value="8/10"), 'the text "8/10"; expected a number'),
    ("a word", changed(SCORES, "clarity", "score", value="high"), 'the text "high"'),
    ("null for a score", changed(SCORES, "clarity", "score", value=None), "score is null; expected a number"),
    ("true for a score", changed(SCORES, "clarity", "score", value=True), "score is true; expected a number"),
    ("a list of scores", changed(SCORES, "clarity", "score", value=[0.8]), "score is a list"),
    ("N/A where it applies", changed(SCORES, "clarity", "score", value="N/A"), "by the rubric it always applies"),
    ("a max of nothing", changed(SCORES, "clarity", value={"achieved": 0, "max": 0}), "max is 0; expected a number above"),
    ("a contradiction", changed(SCORES, "clarity", value={"achieved": 3, "max": 10, "score": 0.9}), "contradict each"),
    ("half of a yes or no", changed(SCORES, "R1", "score", value=0.5), "score is 0.5; give either 0 or 1"),
    ("missing items", without(SCORES, "functional", "items"), 'category "functional" has no items'),
    ("a score for items", changed(SCORES, "functional", value={"score": 0.8}), 'category "functional" has no items'),
    ("items in a list", changed(SCORES, "functional", "items", value=[]), "items: a list, not an object"),
    ("a missing item", without(*F2), 'item "F2" is missing'),
    ("an unknown item", changed(SCORES, "functional", "items", "F3", value={"achieved": 1}), 'unknown item "F3"'),
    ("an item that is a number", changed(*F1, value=2), 'item "F1" is a number; expected an object with "achieved"'),
    ("an item without points", without(*F1, "achieved"), 'item "F1" has no "achieved"'),
    ("more than its max", changed(*F1, "achieved", value=3), "achieved is 3, more than 2"),
    ("points in quotes", changed(*F1, "achieved", value="2"), 'achieved is the text "2"; expected a number'),
    ("negative points", changed(*F1, "achieved", value=-1), "achieved is -1"),
    ("another max", changed(*F1, "max", value=10), "max is 10, but the rubric gives 2 points"),
    ("a max in quotes", changed(*F1, "max", value="2"), 'max is the text "2"'),
    ("N/A for an item that applies", changed(*F1, "achieved", value="N/A"), "by the rubric it always applies"),
    ("a max that does not apply", changed(*F2, "max", value="N/A"), 'max is the text "N/A"'),
    ("an impossible sum", changed(SCORES, "functional", "score", value=8), "score is 8, more than 1"),
    ("both shapes", json.dumps({**reply(), "categories": {}}), 'both "criteria_scores" and "categories" hold scores'),
    ("one name in both sections", json.dumps({**OTHER_SHAPE, "requirements": {"R1": {"score": 1}, "clarity": {}}}),
     'category "clarity" appears twice'),
    ("a judge that calls itself invalid", changed("is_valid", value=False), '"is_valid" is false'),
    ("too long", FINE + " " * MAX_JUDGE_REPLY_CHARACTERS, f"more than {MAX_JUDGE_REPLY_CHARACTERS} characters"),
]  # fmt: skip


def test_the_table_holds_what_is_promised() -> None:
    assert len(UNUSABLE) >= 30
    assert len({name for name, *_ in (*USABLE, *UNUSABLE)}) == len(USABLE) + len(UNUSABLE)


@pytest.mark.parametrize("text", [row[1] for row in USABLE], ids=[row[0] for row in USABLE])
def test_a_judgment_is_found_in_what_a_judge_may_write(text: str) -> None:
    found = judgment(text, RUBRIC)
    assert isinstance(found, RubricScore), found
    assert found.score == pytest.approx(0.85, rel=1e-15)
    assert (found.passed, found.grade, found.claim_off) == (True, "B", False)
    assert [marks.score for marks in found.categories.values()] == [0.8, 1.0, 0.8]


@pytest.mark.parametrize(("text", "reason"), [row[1:] for row in UNUSABLE], ids=[row[0] for row in UNUSABLE])
def test_what_is_no_judgment_is_refused_with_the_reason(text: str, reason: str) -> None:
    found = judgment(text, RUBRIC)
    assert isinstance(found, UnusableJudgeReply), found
    assert reason in found.reason
    assert found.reason.isprintable()
    assert len(found.reason) < 2000
    assert found.reason in repair_request(found.reason).text


def test_what_a_judge_says_is_kept() -> None:
    found = judgment(FINE, RUBRIC)
    assert isinstance(found, RubricScore)
    assert found.reasoning == "Good."
    assert found.claim == ClaimedScore(score=0.85, passed=True, grade="B")
    assert found.categories == {
        "functional": CategoryScore(
            score=0.8,
            items={
                "F1": ItemScore(achieved=1.5, reason="It runs, slowly."),
                "F2": ItemScore(achieved=0.5, reason="Yes."),
            },
        ),
        "R1": CategoryScore(score=1.0, items={"R1": ItemScore(achieved=1.0, reason="It does.")}),
        "clarity": CategoryScore(score=0.8, reason="Mostly."),
    }


@pytest.mark.parametrize("spelled", ["N/A", "n/a", " N/A "])
@pytest.mark.parametrize("most", ["N/A", 0.5, None])
def test_an_item_that_does_not_apply_leaves_both_sums(spelled: str, most: object) -> None:
    found = judgment(changed(*F2, value={"achieved": spelled, "max": most}), RUBRIC)
    assert isinstance(found, RubricScore)
    assert found.categories["functional"].items["F2"].achieved is None
    assert found.categories["functional"].score == 0.75
    assert found.score == pytest.approx((2 * 0.75 + 1 + 0.8) / 4)


def test_a_category_that_does_not_apply_leaves_the_score() -> None:
    names = [category.name for category in default_rubric().categories]
    scores: dict[str, dict[str, object]] = {name: {"score": 0.5} for name in names}
    scores["cleanup_script_quality"] = {"score": "N/A"}
    found = judgment(json.dumps({"criteria_scores": scores}), default_rubric())
    assert isinstance(found, RubricScore)
    assert found.score == 0.5
    assert found.categories["cleanup_script_quality"].score is None


def test_where_nothing_applies_the_judgment_has_no_score() -> None:
    nothing = Rubric(id="n", categories=(RubricCategory(name="a", na_condition="Always."),))
    found = judgment('{"criteria_scores": {"a": {"score": "N/A"}}, "score": 1, "passed": true}', nothing)
    assert isinstance(found, RubricScore)
    assert (found.score, found.passed, found.grade, found.claim_off) == (None, None, None, False)
    assert found.claim.score == 1.0


@pytest.mark.parametrize(
    ("claimed", "off"),
    [(0.85, False), (0.87, False), (0.83, False), (0.88, True), (0.82, True), (85, True), (0, True), ("0.2", False)],
)
def test_a_total_that_is_not_the_sum_of_its_parts_is_flagged_and_not_used(claimed: object, off: bool) -> None:
    found = judgment(changed("score", value=claimed), RUBRIC)
    assert isinstance(found, RubricScore)
    assert found.score == pytest.approx(0.85)
    assert found.claim_off is off
    assert found.claim.score == (None if isinstance(claimed, str) else claimed)


@pytest.mark.parametrize(
    ("sums", "off"),
    [
        ({"achieved": 2, "max": 2.5, "score": 0.8}, False),
        ({"score": 0.82}, False),
        ({"score": 0.83}, True),
        ({"achieved": 2.25, "max": 2.5}, True),
        ({"achieved": 2, "max": 2.5, "score": 0.9}, True),
        ({"score": None}, False),
    ],
)
def test_a_sum_over_items_that_is_off_is_flagged_and_not_used(sums: dict[str, object], off: bool) -> None:
    entry = {**reply()[SCORES]["functional"], **sums}
    found = judgment(changed(SCORES, "functional", value=entry), RUBRIC)
    assert isinstance(found, RubricScore)
    assert found.categories["functional"].score == 0.8
    assert found.claim_off is off


def test_a_claim_of_another_type_is_no_claim() -> None:
    odd = {**reply(), "score": "high", "passed": "yes", "grade": 3}
    found = judgment(json.dumps(odd), RUBRIC)
    assert isinstance(found, RubricScore)
    assert found.claim == ClaimedScore()


def test_the_other_shape_has_its_claims_in_a_summary() -> None:
    found = judgment(json.dumps(OTHER_SHAPE), RUBRIC)
    assert isinstance(found, RubricScore)
    assert found.claim == ClaimedScore(score=0.85, passed=True, grade="B")
    assert found.categories["R1"].items["R1"].reason == "It does."


def test_all_that_is_wrong_is_said_at_once_and_bounded() -> None:
    table = reply()
    table[SCORES]["clarity"] = {"score": 8}
    del table[SCORES]["functional"]["items"]["F2"]
    table[SCORES]["R1"] = {"score": "1"}
    found = judgment(json.dumps(table), RUBRIC)
    assert isinstance(found, UnusableJudgeReply)
    assert found.reason.count(";") >= 2
    for part in ('item "F2" is missing', 'category "R1": score is the text', 'category "clarity": score is 8'):
        assert part in found.reason
    table[SCORES] |= {f"odd\x1b{number}" * 20: {} for number in range(1000)}
    found = judgment(json.dumps(table), RUBRIC)
    assert isinstance(found, UnusableJudgeReply)
    assert "; and 993 more" in found.reason
    assert len(found.reason) < 3000


def test_a_long_or_odd_reason_is_cut_and_can_be_stored() -> None:
    found = judgment(changed(SCORES, "clarity", "reason", value="\ud800" + "x" * 10_000), RUBRIC)
    assert isinstance(found, RubricScore)
    assert len(found.categories["clarity"].reason) == 2000
    assert msgspec.json.decode(msgspec.json.encode(found), type=RubricScore) == found


def test_rounding_at_the_ends_of_a_range_is_forgiven_and_goes_no_further() -> None:
    found = judgment(changed(SCORES, "clarity", "score", value=1.0000000001), RUBRIC)
    assert isinstance(found, RubricScore)
    assert found.categories["clarity"].score == 1.0
    assert isinstance(judgment(changed(SCORES, "clarity", "score", value=1.001), RUBRIC), UnusableJudgeReply)


def test_no_prefix_of_a_judgment_is_a_judgment() -> None:
    for end in range(len(FINE)):
        for text in (FINE[:end], f"Here:\n```json\n{FINE[:end]}\n```"):
            assert isinstance(judgment(text, RUBRIC), UnusableJudgeReply), end


def test_no_spoiled_reply_brings_down_the_reader() -> None:
    chance = random.Random(8)
    pieces = [
        '"',
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\\",
        "N/A",
        "null",
        "1e9",
        "-",
        "\x00",
        "\ud800",
        "```",
        "<think>",
        "é",
    ]
    spoil: list[Callable[[str, int], str]] = [
        lambda text, at: text[:at] + text[at + 1 :],
        lambda text, at: text[:at] + chance.choice(pieces) + text[at:],
        lambda text, at: text[:at] + text[at // 2 :],
    ]
    for _ in range(3000):
        text = FINE
        for _ in range(chance.randint(1, 3)):
            text = chance.choice(spoil)(text, chance.randrange(len(text)))
        found = judgment(text, RUBRIC)
        if isinstance(found, RubricScore):
            assert found.score is not None
            assert 0 <= found.score <= 1
            msgspec.json.encode(found)
        else:
            assert found.reason


def test_a_judge_is_told_what_was_wrong_and_what_to_do() -> None:
    said = repair_request('category "clarity" is missing')
    assert said.role == "user"
    assert said.text.startswith('Your reply could not be used: category "clarity" is missing. ')
    assert "JSON object" in said.text
