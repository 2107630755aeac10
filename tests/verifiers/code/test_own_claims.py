"""A pass is not proved where the answer may have decided it: by its own equality or order, or compared only with itself."""

from __future__ import annotations

import pytest

from attacks.command_claims import CLAIM_SCENES
from attacks.command_orders import ORDER_ATTACKS, PLAIN_CLAIMS
from attacks.command_values import HEAP_ATTACKS, SELF_COMPARING_SCENES, VALUE_SCENES
from attacks.languages_driver import EVERY_SCENE
from steelyard import records
from steelyard.verifiers.code.nan_orders import too_far_only
from steelyard.verifiers.code.nan_tests import accepts_nan
from steelyard.verifiers.code.own_claims import own_decision
from steelyard.verifiers.command.doubts import text_doubts


def doubt(case: records.Case, code: str) -> str:
    passed = records.Finding(tests=(records.Test(name="all", outcome="passed"),))
    found = text_doubts(passed, case, code, needs_paths=False)
    return found.note if found.trust == "unproved" else ""


def test_only_tests_that_compare_an_answer_with_itself_leave_an_honest_one_unproved() -> None:
    assert {name for name, scene in EVERY_SCENE if doubt(scene.case, scene.honest)} == SELF_COMPARING_SCENES


@pytest.mark.parametrize("scene", VALUE_SCENES)
def test_values_that_are_compared_only_with_each_other_are_not_proved(scene: str) -> None:
    case, honest, attacks = VALUE_SCENES[scene]
    assert [name for name, code in {**attacks, "honest": honest}.items() if not doubt(case, code)] == []


def test_a_heap_whose_order_is_its_own_is_not_proved() -> None:
    case, honest, attacks = CLAIM_SCENES["Go, a heap"]
    assert [name for name, code in {**attacks, **HEAP_ATTACKS, "honest": honest}.items() if not doubt(case, code)] == []


def test_no_order_equality_or_value_of_the_answer_proves_a_pass() -> None:
    undoubted = [
        name for name, (language, tests, code) in ORDER_ATTACKS.items() if not own_decision(tests, code, language)
    ]
    assert undoubted == []


def test_functions_and_classes_that_are_compared_with_plain_data_are_left_alone() -> None:
    assert [
        decision for language, tests, code in PLAIN_CLAIMS if (decision := own_decision(tests, code, language))
    ] == []


MONEY = "class Money { int a; public: Money(int n) : a(n) {} int amount() { return a; } };\nMoney of(int n) { return Money(n); }\n"


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
        "assert(Money(1) == Money(1)); assert(Money(1) != Money(2));",
        "assert(Money(1) < Money(2));",
        "assert(Money(1).plus(Money(2)).compareTo(Money(3)) == 0);",
        "Money s = of(1), w = of(2);\nassert(memcmp(&s, &w, sizeof s) == 0);",
        "std::vector<Money> v{Money(1)};\nassert(v == std::vector<Money>{of(1)});",
        "assert(std::find(v.begin(), v.end(), Money(1)) != v.end());",
        "assert {Money(1), Money(2)} == {Money(1)}",
        "assert Money(1) in [Money(2)]",
        "void same(Money a, Money b) { if (a.amount() - b.amount()) throw 1; }\nint main() { same(of(1), Money(1)); }",
        "Money m(int n) { return Money(n); }\nint main() { assert(m(1) + m(2) == m(3)); }",
        "auto m = [](int n) { return Money(n); };\nassert(m(1) + m(2) == m(3));",
        "std::transform(v.begin(), v.end(), w.begin(), of);",
    ],
)
def test_a_claim_with_the_answer_on_both_sides_is_known(tests: str) -> None:
    assert own_decision(tests, MONEY, "cpp")


def test_rust_values_that_are_converted_are_the_answers() -> None:
    code = (
        "#[derive(PartialEq)] pub struct Money(i32); impl From<i32> for Money { fn from(n: i32) -> Self { Money(n) } }"
    )
    assert own_decision("let a: Money = 1.into();\nlet b: Money = 2.into();\nassert_eq!(a, b);", code, "rust")
    assert own_decision('assert_eq!("1".parse::<Money>(), "2".parse::<Money>());', code, "rust")
    assert own_decision("assert_eq!(Money::from(1), Money::from(2));", code, "rust")
    assert not own_decision("let a: Money = 1.into();\nassert_eq!(a, Money(1));", code, "rust")


@pytest.mark.parametrize(
    "tests",
    [
        "assert(Money(1).amount() == 1);",
        "int want = 3;\nassert((Money(1) + Money(2)).amount() == want);",
        "Money m(3);\nint got = m.amount();\nif (got != 3) return 1;",
        "for (int i = 0; i < 3; i++) assert(of(i).amount() == i);",
        "static void same(int got, int want) { if (got != want) throw 1; }\nint main() { same(of(1).amount(), 1); }",
    ],
)
def test_values_that_are_compared_with_plain_data_are_left_alone(tests: str) -> None:
    assert not own_decision(tests, MONEY, "cpp")


DECIDING = {
    "cpp": (
        (
            "struct Person { int age; };\nstruct ByAge { bool operator()(const Person& a, const Person& b) const { return false; } };\n"
            "inline bool by_age(const Person& a, const Person& b) { return a.age < b.age; }\nPerson make(int age) { return {age}; }\n"
        ),
        [
            "std::sort(v.begin(), v.end(), by_age);\nassert(std::is_sorted(v.begin(), v.end(), by_age));",
            "std::sort(v.begin(), v.end(), ByAge());\nassert(v[0].age == 1);",
            "std::set<Person, ByAge> s;\nassert(s.size() == 1);",
        ],
        "assert(make(3).age == 3);",
    ),
    "java": (
        (
            "public class Card implements Comparable<Card> { final int n; Card(int n) { this.n = n; }\n public int compareTo(Card o) { return 0; }\n"
            " static int value(int n) { return n; }\n static final Comparator<Card> BY_VALUE = (a, b) -> 0; }\n"
        ),
        [
            "Collections.sort(cards);\nif (new Card(1).compareTo(new Card(2)) >= 0) throw new Error();",
            "cards.sort(Card.BY_VALUE);",
        ],
        "",
    ),
    "javascript": (
        "export const byAge = (a, b) => a.age - b.age;\nexport function by(key) { return (a, b) => a[key] - b[key]; }\nexport const age = (p) => p.age;\n",
        [
            "import { byAge } from './answer.mjs';\npeople.sort(byAge);\nassert.ok(people[0].age < 9);",
            "import { by } from './answer.mjs';\npeople.sort(by('age'));",
        ],
        "import { age } from './answer.mjs';\nassert.equal(age({ age: 3 }), 3);\nassert.deepEqual(people.map(age), [1, 2]);",
    ),
    "rust": (
        (
            "#[derive(Debug, PartialEq, Eq)] pub struct Version(u32); impl Ord for Version { fn cmp(&self, o: &Self) -> Ordering { Ordering::Equal } }\n"
            "impl PartialOrd for Version { fn partial_cmp(&self, o: &Self) -> Option<Ordering> { Some(self.cmp(o)) } }\n pub fn major(t: &str) -> u32 { 1 }\n"
        ),
        ["let mut v = vec![Version(2), Version(1)]; v.sort(); assert!(v.windows(2).all(|w| w[0] <= w[1]));"],
        'assert_eq!(major("1.2"), 1);',
    ),
    "go": (
        (
            "package answer\n\ntype ByAge []int\n\nfunc (b ByAge) Len() int { return len(b) }\nfunc (b ByAge) Less(i, j int) bool { return false }\n"
            "func (b ByAge) Swap(i, j int) {}\nfunc Oldest(v []int) int { return 1 }\n"
        ),
        ["sort.Sort(ByAge(v))\nif !sort.IsSorted(ByAge(v)) {\n\tt.Fatal()\n}"],
        "sort.Ints(v)\nif Oldest(v) != 1 {\n\tt.Fatal()\n}",
    ),
    "perl": (
        "sub by_age { $a->{age} <=> $b->{age} }\nsub age { return $_[0]{age} }\n",
        ["my @sorted = sort_by(\\&by_age, @people);"],
        "is(age({ age => 3 }), 3);",
    ),
}
"""By language: an answer, tests that it may decide itself, and tests that it may not."""


@pytest.mark.parametrize("language", DECIDING)
def test_an_order_or_a_function_of_the_answer_that_tests_use_to_judge_it_is_known(language: str) -> None:
    code, decided, plain = DECIDING[language]
    assert [tests for tests in decided if not own_decision(tests, code, language)] == []
    assert own_decision(plain, code, language) == ""


def test_an_order_in_rust_is_seen_between_other_signs_of_comparison() -> None:
    code = (
        "pub fn less(a: u32, b: u32) -> bool { a < b }\n#[derive(PartialEq, Eq, PartialOrd)] pub struct Version(pub u32);\n"
        "impl Ord for Version { fn cmp(&self, o: &Self) -> Ordering { Ordering::Equal } }\n"
    )
    assert own_decision(DECIDING["rust"][1][0], code, "rust")


def test_a_function_that_is_compared_with_plain_data_may_also_be_compared_with_itself() -> None:
    code = "int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }\n"
    assert own_decision("assert(gcd(4, 6) == gcd(6, 4));", code, "c")
    assert not own_decision("assert(gcd(4, 6) == gcd(6, 4)); assert(gcd(4, 6) == 2);", code, "c")


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
    assert accepts_nan(tests) or too_far_only(tests, HALF, "cpp")


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
    assert not too_far_only(tests, HALF, "cpp")


def test_a_shell_that_is_compared_only_with_itself_is_not_proved() -> None:
    code = "make() { echo x; }\nplus() { echo x; }\n"
    tests = '[ "$(plus "$(make 1)" "$(make 2)")" = "$(make 3)" ]\n'
    assert own_decision(tests, code, "shell")
    assert not own_decision(tests + '[ "$(make 1)" = "<1>" ]\n', code, "shell")


def test_an_answer_too_long_to_read_is_not_proved() -> None:
    assert own_decision("assert(f(1) == 2);", "int x;\n" * 6000, "cpp")


def test_tests_are_read_again_for_an_answer_that_declares_other_names_or_gives_another_type() -> None:
    tests = "assert(of(1) == of(2)); if (ratio(1) > 2.0) fail();"
    ratio = "double ratio(int n) { return n; }\n"
    assert [bool(own_decision(tests, code, "cpp")) for code in ("", MONEY, "")] == [False, True, False]
    assert [too_far_only(tests, code, "cpp") for code in (MONEY, ratio, MONEY)] == [False, True, False]
    # only what stands beside the name of a function differs
    tests = "let a = make(1); assert_eq!(a, make(1)); assert_eq!(make(2), 2); let b: Money = make(3);"
    plain, own = (f"struct Money;\nfn make(n: i32) -> {given} {{ todo!() }}" for given in ("i32", "Money"))
    assert [bool(own_decision(tests, code, "rust")) for code in (plain, own, plain)] == [False, True, False]
