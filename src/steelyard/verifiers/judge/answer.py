"""What a judge's reply means, about one answer or about a pair: a judgment, or why it is unusable.

A reply is read to the letter and never completed by a default: what is missing, out of range or of another type makes it
unusable, and the reason can be sent to the judge, who may try again.

Judges favour a position: Wang et al. 2024, "Large Language Models are not Fair Evaluators", ACL (arXiv 2305.17926).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from steelyard.records import Message, MessageRole, Record
from steelyard.tiers.rubrics import (
    BINARY_EVALUATION,
    SCORE_THRESHOLD_TOLERANCE,
    CategoryScore,
    ClaimedScore,
    ItemScore,
    Rubric,
    RubricCategory,
    RubricItem,
    RubricScore,
    category_score,
    is_claim_off,
    rubric_score,
)
from steelyard.verifiers.judge.prompt import (
    INJECTION_WARNING,
    JUDGE_SYSTEM_PROMPT,
    MAX_JUDGED_ANSWER_CHARACTERS,
    MAX_JUDGED_TASK_CHARACTERS,
    NOT_APPLICABLE,
    REASON_PLACEHOLDER,
    REPLY_INSTRUCTION,
    closed_object_schema,
    explanation,
    quotation,
    rubric_text,
    unused_nonce,
)
from steelyard.verifiers.response.json import JSON_STRING_OR_BRACKET, JsonParseFault, parse_json
from steelyard.verifiers.response.judged import line_and_column
from steelyard.verifiers.response.text import surrogates_replaced
from steelyard.verifiers.response.unicode import printable_excerpt

MAX_JUDGE_REPLY_CHARACTERS = 1 << 18
"""Characters of a reply that are read."""
MAX_JUDGE_REASON_CHARACTERS = 2000
"""Characters of a judge's words that are kept."""
MAX_JUDGE_REPLY_PROBLEMS = 10
"""Things wrong with a reply that are named."""
PLACEHOLDER_REASONS = ("...", "…", REASON_PLACEHOLDER, REASON_PLACEHOLDER.strip("<>"))
"""Reasons in a form that was returned unchanged."""
THINKING_TAGS = "<think>", "</think>"
"""What some models put around what they think aloud before they reply."""
SCORE_SECTIONS = ("criteria_scores", "requirements", "categories")
"""Where the two shapes of a judgment hold what is scored: the first alone, or the others, or one of them."""


class UnusableJudgeReply(Record, frozen=True, kw_only=True):
    """A reply that is not a judgment; it has no score."""

    reason: str
    """What is wrong with it, in a sentence for the judge."""


def judgment(text: str, rubric: Rubric) -> RubricScore | UnusableJudgeReply:
    """What a judge says, or why that cannot be used; the score is computed again from the categories.

    The reply is one JSON object, alone, in a fence or in prose. Numbers in quotes are refused, as everything is that
    would have to be guessed.
    """
    table = single_json_object(text, SCORE_SECTIONS)
    if isinstance(table, UnusableJudgeReply):
        return table
    reading = _JudgeReplyReader(rubric)
    marks = reading.marks(table)
    if table.get("is_valid") is False:
        reading.wrong('the reply calls itself invalid: "is_valid" is false')
    if reading.problems or marks is None:
        return UnusableJudgeReply(reason=_joined_problems(reading.problems))
    summary = table.get("summary")
    claim = _claim({**table, **(summary if isinstance(summary, dict) else {})})
    reasoning = _first_text(table, "reasoning", "qualitative_feedback")
    return rubric_score(rubric, marks, reasoning=reasoning, claim=claim, claim_off=reading.is_off)


def repair_request(reason: str) -> Message:
    """The message to a judge whose reply could not be used."""
    content = (
        f"Your reply could not be used: {reason}. Judge the same answer by the same rubric again, and reply with the "
        "complete JSON object of the form you were given, and nothing else."
    )
    return Message(role=MessageRole.USER, content=content)


def single_json_object(text: str, keys: tuple[str, ...]) -> dict[str, Any] | UnusableJudgeReply:
    """The one JSON object of a reply; what is in braces around it is ignored unless it has one of the keys."""
    if len(text) > MAX_JUDGE_REPLY_CHARACTERS:
        return UnusableJudgeReply(reason=f"the reply has more than {MAX_JUDGE_REPLY_CHARACTERS} characters")
    body = _without_thoughts(text)
    value = parse_json(body)
    if isinstance(value, dict):
        return value
    if not isinstance(value, JsonParseFault):
        return UnusableJudgeReply(reason="the reply is JSON, but no object; write one object in braces")
    if not body.strip():
        return UnusableJudgeReply(reason="the reply is empty")
    is_bare = body.lstrip()[0] == "{"
    found: list[dict[str, Any]] = []
    position = 0
    while (start := body.find("{", position)) >= 0:
        position = _closing_brace_end(body, start)
        if not position:
            line, column = line_and_column(body, start)
            return UnusableJudgeReply(
                reason=f"the reply is cut off: the brace in line {line}, column {column} is never closed"
            )
        inside = body[start:position]
        value = parse_json(inside)
        if isinstance(value, dict):
            found.append(value)
        elif isinstance(value, JsonParseFault) and (is_bare or any(key in inside for key in keys)):
            line, column = line_and_column(body, start + value.position)
            return UnusableJudgeReply(reason=f"the reply is not JSON: {value.what} (line {line}, column {column})")
    if len(found) > 1:
        return UnusableJudgeReply(reason=f"the reply holds {len(found)} JSON objects; write exactly one")
    if not found:
        return UnusableJudgeReply(
            reason=f'there is no JSON object in the reply, which begins "{printable_excerpt(body.strip(), 60)}"'
        )
    return found[0]


def _without_thoughts(text: str) -> str:
    opened, closed = THINKING_TAGS
    body = text.lstrip()
    if body.startswith(opened) and (end := body.find(closed)) >= 0:
        return body[end + len(closed) :]
    return text


def _closing_brace_end(text: str, start: int) -> int:
    """The end of what the brace at the start opens, strings in it not counted; 0 when it is never closed."""
    depth = 0
    for match in JSON_STRING_OR_BRACKET.finditer(text, start):
        depth += (match[0] == "{") - (match[0] == "}")
        if depth == 0:
            return match.end()
    return 0


@dataclass
class _JudgeReplyReader:
    """A judge's reply while it is checked against the rubric."""

    rubric: Rubric
    problems: list[str] = field(default_factory=list)
    is_off: bool = False
    """Whether a sum of the judge's own over a category is off."""

    def wrong(self, what: str) -> None:
        self.problems.append(what)

    def marks(self, table: dict[str, Any]) -> dict[str, CategoryScore] | None:
        """The marks of every category; None after noting why they are missing."""
        given = self._given(table)
        if given is None:
            return None
        known = {category.name: category for category in self.rubric.categories}
        for name in given:
            if name not in known:
                self.wrong(f'unknown category "{printable_excerpt(name)}"')
        found: dict[str, CategoryScore] = {}
        for name, category in known.items():
            if name not in given:
                self.wrong(f'category "{printable_excerpt(name)}" is missing')
            elif marks := self._category(category, given[name], f'category "{printable_excerpt(name)}"'):
                found[name] = marks
        return None if self.problems else found

    def _given(self, table: dict[str, Any]) -> dict[str, Any] | None:
        """What is scored, by name, from whichever shape the reply has."""
        present = [key for key in SCORE_SECTIONS if table.get(key) is not None]
        if not present:
            self.wrong('there are no scores: expected an object "criteria_scores" with one entry per category')
            return None
        if SCORE_SECTIONS[0] in present and len(present) > 1:
            self.wrong(f'both "{present[0]}" and "{present[1]}" hold scores; keep one of them')
            return None
        given: dict[str, Any] = {}
        for key in present:
            section = table[key]
            if not isinstance(section, dict):
                self.wrong(f'"{key}" is {_value_description(section)}; expected an object with one entry per category')
                return None
            for name in section:
                if name in given:
                    self.wrong(f'category "{printable_excerpt(name)}" appears twice')
            given |= section
        return given

    def _category(self, category: RubricCategory, entry: Any, where: str) -> CategoryScore | None:
        if not isinstance(entry, dict):
            inside = '"items"' if category.items and category.requirement is None else '"score"'
            self.wrong(f"{where} is {_value_description(entry)}; expected an object with {inside}")
            return None
        alone = category.requirement
        if category.items and (alone is None or "items" in entry):
            return self._itemised(category, entry, where)
        whole = alone or RubricItem(id=category.name, check="", na_condition=category.na_condition)
        before = len(self.problems)
        score, reason = self._whole(whole, entry, where), self._reason(entry, where)
        if len(self.problems) > before:
            return None
        items = {alone.id: ItemScore(achieved=score, reason=reason)} if alone else {}
        return CategoryScore(score=score, reason="" if alone else reason, items=items)

    def _itemised(self, category: RubricCategory, entry: dict[str, Any], where: str) -> CategoryScore | None:
        given = entry.get("items")
        if not isinstance(given, dict):
            self.wrong(
                f"{where} has no items"
                if given is None
                else f"{where}: items: {_value_description(given)}, not an object"
            )
            return None
        before = len(self.problems)
        known = {item.id for item in category.items}
        for name in given:
            if name not in known:
                self.wrong(f'{where}: unknown item "{printable_excerpt(name)}"')
        marks: dict[str, ItemScore] = {}
        for item in category.items:
            if item.id in given:
                inside = f'{where}: item "{printable_excerpt(item.id)}"'
                marks[item.id] = self._item(item, given[item.id], inside)
            else:
                self.wrong(f'{where}: item "{printable_excerpt(item.id)}" is missing')
        if len(self.problems) > before:
            return None
        score = category_score(category, {name: mark.achieved for name, mark in marks.items()})
        self._check_sum(entry, score, where)
        return CategoryScore(score=score, reason=self._reason(entry, where), items=marks)

    def _item(self, item: RubricItem, entry: Any, where: str) -> ItemScore:
        if not isinstance(entry, dict):
            self.wrong(f'{where} is {_value_description(entry)}; expected an object with "achieved"')
            return ItemScore(achieved=None)
        if "achieved" not in entry:
            self.wrong(f'{where} has no "achieved"')
            return ItemScore(achieved=None)
        achieved = self._mark(entry["achieved"], item, item.points, f"{where}: achieved")
        most = entry.get("max")
        if most is not None and not (achieved is None and _is_not_applicable(most)):
            points = self._number(most, f"{where}: max")
            if points is not None and abs(points - item.points) > SCORE_THRESHOLD_TOLERANCE:
                self.wrong(f"{where}: max is {most:.12g}, but the rubric gives {item.points:.12g} points")
        return ItemScore(achieved=achieved, reason=self._reason(entry, where))

    def _reason(self, entry: dict[str, Any], where: str) -> str:
        """The words beside a mark; a form that was sent back unchanged is not a judgment, even with numbers in it."""
        words = _first_text(entry, "reason", "notes", "reasoning")
        if words.strip() in PLACEHOLDER_REASONS:
            self.wrong(f"{where}: the reason is the form's own; give one in your words")
        return words

    def _whole(self, item: RubricItem, entry: dict[str, Any], where: str) -> float | None:
        """The score of what is scored as a whole, given as a score, as points of a maximum, or as both."""
        scores: list[float | None] = []
        if "score" in entry:
            scores.append(self._mark(entry["score"], item, 1, f"{where}: score"))
        if "achieved" in entry:
            scores.append(self._share(entry["achieved"], entry.get("max"), item, where))
        if not scores:
            self.wrong(f'{where} has no "score"')
            return None
        first, last = scores[0], scores[-1]
        if (first is None) != (last is None) or is_claim_off(first, last):
            self.wrong(f'{where}: "score" and "achieved" contradict each other')
        return first

    def _share(self, achieved: Any, most: Any, item: RubricItem, where: str) -> float | None:
        """Points as a share of the maximum that stands beside them, or of 1."""
        if _is_not_applicable(achieved) or most is None:
            return self._mark(achieved, item, 1, f"{where}: achieved")
        highest = self._number(most, f"{where}: max")
        if not highest:
            if highest == 0:
                self.wrong(f"{where}: max is 0; expected a number above 0")
            return None
        points = self._mark(achieved, item, highest, f"{where}: achieved")
        return None if points is None else points / highest

    def _mark(self, value: Any, item: RubricItem, most: float, where: str) -> float | None:
        """A number from 0 to the maximum; None if the item does not apply, or after noting what is wrong."""
        if _is_not_applicable(value):
            if not item.na_condition:
                self.wrong(f'{where} is "{NOT_APPLICABLE}", but by the rubric it always applies; give a number')
            return None
        number = self._number(value, where)
        if number is None:
            return None
        if number > most + SCORE_THRESHOLD_TOLERANCE:
            self.wrong(f"{where} is {value:.12g}, more than {most:.12g}; give a number from 0 to {most:.12g}")
            return None
        if item.evaluation == BINARY_EVALUATION and min(number, abs(number - most)) > SCORE_THRESHOLD_TOLERANCE:
            self.wrong(f"{where} is {value:.12g}; give either 0 or {most:.12g}")
            return None
        return min(number, most)

    def _number(self, value: Any, where: str) -> float | None:
        """A number from 0 up; None after noting that it is not a number."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            way_out = "; write numbers without quotes" if isinstance(value, str) else ""
            self.wrong(f"{where} is {_value_description(value)}; expected a number{way_out}")
            return None
        if value < 0:
            self.wrong(f"{where} is {value:.12g}; expected a number from 0 up")
            return None
        return float(value)

    def _check_sum(self, entry: dict[str, Any], score: float | None, where: str) -> None:
        """Look at the sum that a judge gives beside the items: it must be possible, and is only a claim."""
        if score is None:
            return
        if entry.get("score") is not None:
            claimed = self._number(entry["score"], f"{where}: score")
            if claimed is not None and claimed > 1 + SCORE_THRESHOLD_TOLERANCE:
                self.wrong(f"{where}: score is {claimed:.12g}, more than 1; give a number from 0 to 1")
            self.is_off = self.is_off or is_claim_off(claimed, score)
        if entry.get("achieved") is not None and entry.get("max") is not None:
            achieved = self._number(entry["achieved"], f"{where}: achieved")
            most = self._number(entry["max"], f"{where}: max")
            if achieved is not None and most is not None and achieved > most + SCORE_THRESHOLD_TOLERANCE:
                self.wrong(f"{where}: achieved is {achieved:.12g}, more than its max of {most:.12g}")
            elif achieved is not None and most:
                self.is_off = self.is_off or is_claim_off(achieved / most, score)


def _is_not_applicable(value: Any) -> bool:
    return isinstance(value, str) and value.strip().upper() == NOT_APPLICABLE


def _claim(table: dict[str, Any]) -> ClaimedScore:
    """What the judge says of the whole; a value of another type is ignored."""
    score = next((table[key] for key in ("weighted_score", "score") if key in table), None)
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    grade = next((table[key] for key in ("letter_grade", "grade") if isinstance(table.get(key), str)), "")
    passed = table.get("passed")
    return ClaimedScore(
        score=float(score) if score is not None and is_number else None,
        passed=passed if isinstance(passed, bool) else None,
        grade=surrogates_replaced(grade[:MAX_JUDGE_REASON_CHARACTERS]),
    )


def _first_text(table: dict[str, Any], *keys: str) -> str:
    """The first text under one of the keys, cut to a bounded length."""
    text = next((table[key] for key in keys if isinstance(table.get(key), str)), "")
    return surrogates_replaced(text[:MAX_JUDGE_REASON_CHARACTERS])


def _value_description(value: Any) -> str:
    """A description of a value."""
    if isinstance(value, str):
        return f'the text "{printable_excerpt(value, 40)}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return "a number"
    return "null" if value is None else "a list" if isinstance(value, list) else "an object"


def _joined_problems(problems: list[str]) -> str:
    more = f"; and {len(problems) - MAX_JUDGE_REPLY_PROBLEMS} more" if len(problems) > MAX_JUDGE_REPLY_PROBLEMS else ""
    return "; ".join(problems[:MAX_JUDGE_REPLY_PROBLEMS]) + more


PairPosition = Literal["first", "second", "tie"]
PAIR_POSITIONS: tuple[PairPosition, ...] = ("first", "second", "tie")


class Preference(Record, frozen=True, kw_only=True):
    """Which of two answers a judge prefers, by where they stood."""

    winner: PairPosition
    reason: str = ""


class PairwiseJudgment(Record, frozen=True, kw_only=True):
    """Which of two answers is better, by one judge asked in both orders."""

    winner: Literal["a", "b", "tie"]
    """The answer that is preferred in both orders wins; everything else is a tie."""
    swayed: bool
    """Whether the two orders came out differently: a tie that only the order of the answers made."""
    favoured: Literal["", "first", "second"] = ""
    """`first` or `second` when the same place won both times, whichever answer stood there."""


def messages(prompt: str, first: str, second: str, nonce: str, rubric: Rubric | None = None) -> tuple[Message, Message]:
    """One question to a judge about two answers in this order; ask again with the answers swapped, and a new nonce."""
    mark = unused_nonce(nonce, (prompt, first, second))
    parts = [
        "Two answers to one task follow. Say which of them is better.",
        explanation(mark),
        quotation("TASK", prompt, mark, MAX_JUDGED_TASK_CHARACTERS),
        quotation("FIRST ANSWER", first, mark, MAX_JUDGED_ANSWER_CHARACTERS),
        quotation("SECOND ANSWER", second, mark, MAX_JUDGED_ANSWER_CHARACTERS),
        INJECTION_WARNING,
        *([f"What counts:\n\n{rubric_text(rubric)}"] if rubric else []),
        "The order of the answers means nothing, and neither does their length.",
        f'{REPLY_INSTRUCTION} Give the reason before the winner:\n\n{{"reason": "{REASON_PLACEHOLDER}", "winner": {_choice()}}}',
    ]
    return Message(role=MessageRole.SYSTEM, content=JUDGE_SYSTEM_PROMPT), Message(
        role=MessageRole.USER, content="\n\n".join(parts)
    )


def schema() -> dict[str, Any]:
    """The JSON Schema of the reply."""
    return closed_object_schema(
        {"reason": {"type": "string"}, "winner": {"type": "string", "enum": list(PAIR_POSITIONS)}}
    )


def preference(text: str) -> Preference | UnusableJudgeReply:
    """What a judge says of two answers, or why that cannot be used.

    >>> preference('{"reason": "It runs.", "winner": "second"}')
    Preference(winner='second', reason='It runs.')
    """
    table = single_json_object(text, ("winner",))
    if isinstance(table, UnusableJudgeReply):
        return table
    winner, reason = table.get("winner"), table.get("reason")
    for known in PAIR_POSITIONS:
        if winner == known:
            return Preference(
                winner=known,
                reason=surrogates_replaced(reason[:MAX_JUDGE_REASON_CHARACTERS]) if isinstance(reason, str) else "",
            )
    what = "is missing" if winner is None else f"is {printable_excerpt(repr(winner), 60)}"
    return UnusableJudgeReply(reason=f'"winner" {what}; expected one of {_choice()}')


def combined_preference(a_first: Preference, b_first: Preference) -> PairwiseJudgment:
    """The result of both orders: the answer that wins in both, otherwise a tie.

    >>> combined_preference(Preference(winner="first"), Preference(winner="second")).winner
    'a'
    >>> combined_preference(Preference(winner="first"), Preference(winner="first"))
    PairwiseJudgment(winner='tie', swayed=True, favoured='first')
    """
    if a_first.winner == "first" and b_first.winner == "second":
        return PairwiseJudgment(winner="a", swayed=False)
    if a_first.winner == "second" and b_first.winner == "first":
        return PairwiseJudgment(winner="b", swayed=False)
    favoured = a_first.winner
    return PairwiseJudgment(
        winner="tie",
        swayed=favoured != "tie" or b_first.winner != "tie",
        favoured=favoured if favoured != "tie" and favoured == b_first.winner else "",
    )


def _choice() -> str:
    return " | ".join(f'"{place}"' for place in PAIR_POSITIONS)
