"""A pass is not proved where tests compare what an answer makes only with what it makes, and that may all be the same."""

from __future__ import annotations

import pytest

from attacks.command_claims import CLAIM_SCENES
from attacks.command_values import HEAP_ATTACKS, HONEST_HEAPS, HONEST_VALUES, VALUE_SCENES
from steelyard import records
from steelyard.verifiers.code.nan_tests import accepts_nan
from steelyard.verifiers.code.own_claims import own_claims, too_far_only
from steelyard.verifiers.command.doubts import text_doubts


def doubt(case: records.Case, code: str) -> str:
    passed = records.Finding(tests=(records.Test(name="all", outcome="passed"),))
    found = text_doubts(passed, case, code, needs_paths=False)
    return found.note if found.trust == "unproved" else ""


@pytest.mark.parametrize("scene", VALUE_SCENES)
def test_values_that_keep_what_they_are_made_of_are_proved_and_others_are_not(scene: str) -> None:
    case, honest, attacks = VALUE_SCENES[scene]
    assert [doubt(case, code) for code in (honest, *HONEST_VALUES[scene])] == [""] * (1 + len(HONEST_VALUES[scene]))
    assert [name for name, code in attacks.items() if not doubt(case, code)] == []


def test_a_heap_that_lies_is_not_proved_and_ordinary_heaps_are() -> None:
    case = CLAIM_SCENES["Go, a heap"].case
    assert [doubt(case, code) for code in HONEST_HEAPS] == [""] * len(HONEST_HEAPS)
    assert [name for name, code in HEAP_ATTACKS.items() if not doubt(case, code)] == []


MONEY = "class Money { int a; public: Money(int) : a(0) {} int amount() { return 0; } };\nMoney of(int n) { return Money(n); }\n"


@pytest.mark.parametrize(
    "tests",
    [
        "assert(Money(1) + Money(2) == Money(3));",
        "if (Money(1) + Money(2) != Money(3)) return 1;",
        "Money a(1), b{2};\nauto sum = a + b;\nassert(sum == Money(3));",
        "EXPECT_EQ(Money(1) + Money(2), Money(3));",
        "assert((Money(1) + Money(2)).equals(Money(3)));",
        "if (!Money(3).equals(of(3))) { throw 1; }",
        "bad += Money(1) + Money(2) != Money(3);",
        "assert(Money(3).amount() == of(3).amount());",
        "if (Money(1) == Money(1)) passed++;",
    ],
)
def test_a_claim_with_the_answer_on_both_sides_is_known(tests: str) -> None:
    assert own_claims(tests, MONEY) != []


@pytest.mark.parametrize(
    "tests",
    [
        "assert(Money(1).amount() == 1);",
        "int want = 3;\nassert((Money(1) + Money(2)).amount() == want);",
        "assert(Money(1) == Money(1)); assert(Money(1) != Money(2));",
        "assert(Money(1) == Money(1)); assert(!(Money(1) == Money(2)));",
        "assert(Money(1) == Money(1)); if (Money(1) == Money(2)) { fail(); }",
        "assert(Money(1).equals(Money(1))); assert(!Money(1).equals(Money(2)));",
        "EXPECT_EQ(Money(1), Money(1)); EXPECT_NE(Money(1), Money(2));",
        "assert(Money(3).amount() == of(3).amount()); assert(Money(4).amount() == 4);",
    ],
)
def test_tests_that_tell_values_apart_or_read_them_are_left_alone(tests: str) -> None:
    assert own_claims(tests, MONEY) == []


HALF = "double half(double n) { return n / 2; }\n"


@pytest.mark.parametrize(
    "tests",
    [
        "double d = half(3) - 1.5;\nbad += d*d > 0.0001;",
        "double d = half(3) - 1.5;\nbad |= 0.001 < d;",
        "failed = failed || half(3) - 1.5 > .01;",
        "return half(3) > 1.6 ? 1 : 0;",
        "assert(!errors.some((d) => d > 0.01));",
        "assert((int)((half(3) - 1.5) * 1000) == 0);",
        "assertEquals(0, Math.round((half(3) - 1.5) * 1000));",
        "if (half(4) < 2 || half(4) > 2) fail();",
        "double got = half(4);\nif (got > 2) { throw 1; }\nif (got < 2) { throw 1; }",
        "bad += half(4) > 2 || half(4) < 2;",
    ],
)
def test_an_order_that_fails_a_number_lets_nan_pass(tests: str) -> None:
    assert accepts_nan(tests) or too_far_only(tests, HALF)


@pytest.mark.parametrize(
    "tests",
    [
        "double d = half(3) - 1.5;\nbad += !(d*d <= 0.0001);",
        "assert(half(3) > 1.4 && half(3) < 1.6);",
        "assert half(3) > 1.4",
        "if (half(3) == 1.5) passed++;\nif (failures > 0) return 1;",
        "for (double x = 4.0; x > 0.5; x -= 0.5) assert(half(x) == x / 2);",
        "if (list(half(3)).length > 3) fail();",
        "assert((int)half(3) == 1);",
    ],
)
def test_an_order_that_is_claimed_fails_nan(tests: str) -> None:
    assert not accepts_nan(tests)
    assert not too_far_only(tests, HALF)
