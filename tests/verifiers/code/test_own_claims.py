"""A pass is not proved where tests compare what an answer makes only with what it makes, and that may all be the same."""

from __future__ import annotations

import pytest

from attacks.command_claims import CLAIM_SCENES
from attacks.command_values import HEAP_ATTACKS, HONEST_HEAPS, HONEST_VALUES, VALUE_SCENES
from steelyard import records
from steelyard.verifiers.code.nan_tests import accepts_nan
from steelyard.verifiers.code.own_claims import own_claims, too_far_only, vacuous_claim
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
        "assert(Money(1).plus(Money(2)).compareTo(Money(3)) == 0);",
        "Money s = of(1), w = of(2);\nassert(memcmp(&s, &w, sizeof s) == 0);",
        "std::vector<Money> v{Money(1)};\nassert(v == std::vector<Money>{of(1)});",
        "assert(std::find(v.begin(), v.end(), Money(1)) != v.end());",
        "std::vector<Money> v{Money(1)};\nassert(std::find(v.begin(), v.end(), Money(1)) != v.end());",
        "assert {Money(1), Money(2)} == {Money(1)}",
        "assert Money(1) in [Money(2)]",
        "let a: Money = 1.into();\nlet b: Money = 2.into();\nassert_eq!(a, b);",
        'assert_eq!("1".parse::<Money>(), "2".parse::<Money>());',
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
        "if (new Money(1).compareTo(new Money(2)) >= 0) throw x;",
        "Money a(1);\nassert(a.hashCode() == Money(1).hashCode());",
        "let a: Money = 1.into();\nassert_eq!(a.clone(), a);",
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
        "if (fabs(half(3) - 1.5) > 1e-9) return 1;",
        "assert(!(half(3) > 2));",
        "assert not half(3) > 2",
        "bad += half(3) > 2;",
        "assert.equal(half(3) > 2, false);",
        "if half(3) > 2 { panic!() }",
        "if half(3) < 1 || half(3) > 2 {\n\tt.Fatal()\n}",
        "fails = half(3) > 2 ? 1 : 0;",
        "return half(3) > 2;",
        "assert(!v.some((x) => half(x) > x));",
        "if (half(3) > best) best = half(3);",
        "worst = max(worst, half(3));",
        "die if half(3) > 2;",
        "const wrong = half(3) > 2;\nassert(!wrong);",
        "expectFalse(half(3) > 2);",
        "assertFalse(half(3) > 2);",
        "assert (half(3) > 2) == False",
        "assert sum(half(x) > 3 for x in v) == 0",
        "if (half(3) > 2) failures++;",
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
        "assert(fabs(half(3) - 1.5) < 1e-9);",
        'check(fabs(half(3) - 1.5) < 1e-9, "half");',
        'expectTrue("half", Math.abs(half(3) - 1.5) < 1e-9);',
        "ok abs(half(3) - 1.5) < 1e-9, 'half';",
        "ok(abs(half(3) - 1.5) < 1e-9, 'half');",
        "const close = Math.abs(half(3) - 1.5) < 1e-9;\nassert(close);",
        "pass = pass && Math.abs(half(3) - 1.5) < 1e-9;",
        "test('x', () => Math.abs(half(2) - 1) < 1e-9);",
        "return Math.abs(half(2) - 1) < 1e-9;",
        "assert all(abs(half(x) - x / 2) < 1e-9 for x in v)",
        "assert.ok([1, 2].every((x) => Math.abs(half(x) - x / 2) < 1e-9));",
        "const r = half(2);\nassert(r >= 1 && r <= 6);",
        "assert 1 <= half(2) <= 6",
        "if (!(Math.abs(half(2) - 1) <= 1e-9)) throw new Error();",
        "if (!(half(2) > 0 && half(2) < 2)) { throw 1; }",
        "die unless abs(half(2) - 1) < 1e-9;",
        "abs(half(2) - 1) < 1e-9 or die;",
        "assert!((half(2.0) - 1.0).abs() < 1e-9);",
        'let got = half(2.0); assert!(got > 0.5 && got < 1.5, "{got}");',
        'assert Math.abs(half(2) - 1) < 1e-9 : "half";',
        "if (fabs(half(2) - 1) < 1e-9) passed++; else failed++;",
        "self.assertTrue(half(3) > 1)",
        "OK(fabs(half(3) - 1.5) < 1e-9);",
        "int n = half(4);\nif (n > 2) return 1;",
        "EXPECT_TRUE(half(3) < 2);",
        "for (int i = 0; i < half(10); i++) count++;",
        "while (half(x) > 1) { x--; }",
        "assert(count(half(3)).length > 2);",
    ],
)
def test_an_order_that_is_claimed_fails_nan(tests: str) -> None:
    assert not accepts_nan(tests)
    assert not too_far_only(tests, HALF)


def test_a_shell_that_is_compared_only_with_itself_is_not_proved() -> None:
    code = "make() { echo x; }\nplus() { echo x; }\n"
    tests = '[ "$(plus "$(make 1)" "$(make 2)")" = "$(make 3)" ]\n'
    assert vacuous_claim(tests, code, "shell")
    assert not vacuous_claim(tests + '[ "$(make 1)" = "<1>" ]\n', code, "shell")
    assert not vacuous_claim(tests + '[ "$(make 1)" != "$(make 2)" ]\n', code, "shell")


def test_a_claim_against_a_kept_value_vouches_for_what_stands_in_it() -> None:
    code = (
        "#[derive(PartialEq)] pub struct Meters(f64); impl Add for Meters { fn add(self, o: Self) -> Self { Meters(0.0) } }\n"
        "impl FromStr for Meters { fn from_str(s: &str) -> Result<Self, String> { s.parse().map(Meters) } }\n"
    )
    alone = 'let m: Meters = "2".parse().unwrap(); let n: Meters = "3".parse().unwrap(); assert_eq!(m, n);'
    assert vacuous_claim(alone, code, "rust")
    assert not vacuous_claim(f"{alone} assert_eq!(m, Meters(2.0));", code, "rust")


def test_an_answer_too_long_to_read_is_not_proved() -> None:
    assert vacuous_claim("assert(f(1) == 2);", "int x;\n" * 6000, "cpp")
