"""The matrix: whatever is asked of it, every case that is meant comes exactly once, in an order that holds."""

from __future__ import annotations

import random

import pytest

from steelyard.records import Case
from steelyard.viewer.matrix import (
    MATRIX_SORTS,
    OUTCOME_FILTERS,
    CaseMatrix,
    MatrixCell,
    MatrixQuery,
    natural_order_key,
    page_slice,
    share_gap,
)
from steelyard.viewer.run_view import AttemptRow

LABELS = ("wrong answer", "exception", "time limit")


def row(case: int, column: int, number: int, outcome: str = "correct", **fields: object) -> AttemptRow:
    known = {
        "score": None,
        "label": "",
        "reason": "",
        "finish": "stop",
        "latency": 1.0,
        "cost_usd": None,
        "input_tokens": None,
        "output_tokens": None,
        "at": "",
    }
    return AttemptRow(case=case, column=column, number=number, outcome=outcome, **(known | fields))  # type: ignore[arg-type]


def drawn(seed: int) -> CaseMatrix:
    """A matrix of some size, drawn at random: with gaps, unknown prices and every outcome."""
    dice = random.Random(seed)
    cases = [
        Case(
            id=f"case-{number}",
            prompt=dice.choice(("Add.", "Sort.", "Straße")),
            tags=tuple(dice.sample(("easy", "hard", "io"), dice.randrange(3))),
            suite=dice.choice(("", "a", "b")),
        )
        for number in dice.sample(range(1000), dice.randrange(0, 40))
    ]
    columns = dice.randrange(1, 4)
    rows = []
    for case in range(len(cases)):
        for column in range(columns):
            for number in range(1, dice.randrange(0, 6)):
                outcome = dice.choice(("correct", "wrong", "wrong", "missing"))
                label = dice.choice(LABELS) if outcome == "wrong" else ""
                cost = dice.choice((None, dice.random()))
                reason = f"{label}: Expected {dice.randrange(3)}"
                one = row(
                    case, column, number, outcome, label=label, reason=reason, cost_usd=cost, latency=dice.random()
                )
                rows.append(one)
    return CaseMatrix(cases, columns, rows)


def asked(dice: random.Random, table: CaseMatrix) -> MatrixQuery:
    return MatrixQuery(
        text=dice.choice(("", "", "strasse", "EXPECTED 1", "case-1", "nowhere")),
        outcome=dice.choice(("", *OUTCOME_FILTERS)),
        label=dice.choice(("", *LABELS)),
        tag=dice.choice(("", "easy", "io")),
        suite=dice.choice(("", "", "a")),
        columns=tuple(dice.sample(range(table.column_count), dice.randrange(table.column_count + 1))),
        different=dice.random() < 0.3,
        sort=dice.choice(list(MATRIX_SORTS)),
    )


def is_meant(table: CaseMatrix, place: int, query: MatrixQuery) -> bool:
    """The same question, answered plainly and without regard to speed."""
    case = table.cases[place]
    columns = query.columns or range(table.column_count)
    rows = [one for one in table.rows if one.case == place and one.column in columns]
    shares = []
    for column in columns:
        judged = [one.outcome == "correct" for one in rows if one.column == column and one.outcome != "missing"]
        if judged:
            shares.append(sum(judged) / len(judged))
    if (query.tag and query.tag not in case.tags) or (query.suite and query.suite != case.suite):
        return False
    if query.different and len(set(shares)) < 2:
        return False
    if query.outcome == "mixed" and not any(0 < share < 1 for share in shares):
        return False
    outcomes = [query.outcome] if query.outcome not in ("", "mixed") else ["correct", "wrong", "missing"]
    fitting = [one for one in rows if one.outcome in outcomes and (not query.label or one.label == query.label)]
    if (query.outcome or query.label) and not fitting:
        return False
    words = [case.id, case.name, str(case.prompt), *(one.reason for one in fitting)]
    return any(query.text.casefold() in word.casefold() for word in words)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_found_is_what_is_meant_and_every_case_comes_once(seed: int) -> None:
    table, dice = drawn(seed), random.Random(seed)
    for _ in range(20):
        query = asked(dice, table)
        found = table.found(query)
        assert sorted(found) == [place for place in range(len(table.cases)) if is_meant(table, place, query)]


@pytest.mark.parametrize("seed", range(20))
def test_the_pages_together_are_what_was_found_in_its_order(seed: int) -> None:
    table, dice = drawn(seed), random.Random(seed)
    found = table.found(MatrixQuery(sort=dice.choice(list(MATRIX_SORTS))))
    for size in (1, 3, 7, 100):
        pages = [page_slice(found, number, size) for number in range(1, page_slice(found, 1, size).pages + 1)]
        assert [place for each in pages for place in each.cases] == found
        assert {each.total for each in pages} == {len(found)}
        assert all(len(each.cases) <= size for each in pages)


def test_an_order_holds_however_often_it_is_asked_for_and_equals_stay_as_the_eval_set_has_them() -> None:
    cases = [Case(id=name, prompt="?") for name in "dbca"]
    table = CaseMatrix(cases, 1, [row(place, 0, 1, latency=2.0, cost_usd=1.0) for place in range(4)])
    for sort in set(MATRIX_SORTS) - {"name"}:
        assert table.found(MatrixQuery(sort=sort)) == [0, 1, 2, 3]
    assert table.found(MatrixQuery(sort="name")) == [3, 1, 2, 0]


def test_a_page_beyond_the_last_is_the_last() -> None:
    assert page_slice(range(5), 99, 2) == page_slice(range(5), 3, 2)
    assert page_slice([], 7, 2).cases == ()
    assert page_slice([], 7, 2).first == 0


def test_the_hardest_case_is_the_one_that_the_best_model_cannot_do() -> None:
    cases = [Case(id=name, prompt="?") for name in ("easy", "weak-fails", "nobody", "unjudged")]
    rows = [
        *(row(0, column, 1) for column in (0, 1)),
        row(1, 0, 1),
        row(1, 1, 1, "wrong"),
        *(row(2, column, 1, "wrong") for column in (0, 1)),
        row(3, 0, 1, "missing"),
    ]
    table = CaseMatrix(cases, 2, rows)
    assert [cases[place].id for place in table.found(MatrixQuery(sort="hardest"))] == [
        "nobody",
        "weak-fails",
        "easy",
        "unjudged",
    ]
    assert cases[table.found(MatrixQuery(sort="different"))[0]].id == "weak-fails"
    assert [cases[place].id for place in table.found(MatrixQuery(different=True))] == ["weak-fails"]


def test_an_unknown_price_is_not_the_lowest_one_but_comes_last() -> None:
    cases = [Case(id=name, prompt="?") for name in ("unknown", "cheap", "dear")]
    rows = [row(0, 0, 1), row(1, 0, 1, cost_usd=0.0), row(2, 0, 1, cost_usd=0.5)]
    table = CaseMatrix(cases, 1, rows)
    assert [cases[place].id for place in table.found(MatrixQuery(sort="cost"))] == ["dear", "cheap", "unknown"]
    assert table.cells[0][0].cost_usd is None


def test_missing_attempts_are_in_no_share() -> None:
    table = CaseMatrix([Case(id="a", prompt="?")], 1, [row(0, 0, 1), row(0, 0, 2, "missing"), row(0, 0, 3, "wrong")])
    (cell,) = table.cells[0]
    assert (cell.correct, cell.attempts, cell.missing, cell.share, cell.state) == (1, 2, 1, 0.5, "part")
    assert MatrixCell(0, 0, 2, None, None, 0).state == "gap"
    assert share_gap([cell]) == 0


def test_replies_that_hold_the_text_count_only_where_their_attempt_is_asked_for() -> None:
    table = CaseMatrix([Case(id="a", prompt="?")], 1, [row(0, 0, 1), row(0, 0, 2, "wrong", label="x")])
    assert table.found(MatrixQuery(text="needle"), reply_matches={1}) == [0]
    assert table.found(MatrixQuery(text="needle", outcome="correct"), reply_matches={1}) == []


def test_numbers_in_names_are_sorted_as_numbers() -> None:
    assert sorted(["case-10", "case-9", "Case-1", "case", "9", "10a"], key=natural_order_key) == [
        "9",
        "10a",
        "case",
        "Case-1",
        "case-9",
        "case-10",
    ]
