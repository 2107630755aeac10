"""Types are read from what the compiler prints, whatever an answer writes into it."""

from __future__ import annotations

import pytest

from steelyard.verifiers.rust.mir import ANSWER_MODULE, closing_bracket, mir_functions, path_names

PROBE = """fn types_probe::test() -> bool {
    let mut _0: bool;
    let _1: impl std::cmp::PartialEq<i64>;
    bb0: {
        _0 = <types_probe::Own as std::cmp::PartialEq<i64>>::eq(copy _1, const 3_i64) -> [return: bb1, unwind continue];
    }
}
"""
ANSWER = """fn m_1::quoted() -> &str {
    bb0: {
        _0 = const "'\\\\";
    }
}

"""
TESTS = """fn m_2::t_2::checks() -> () {
    let mut _1: char;
    bb0: {
        _1 = m_2::letter() -> [return: bb1, unwind continue];
        _2 = <m_2::Kind<'('> as std::cmp::PartialEq>::eq(copy _1, const 'b') -> [return: bb2, unwind continue];
    }
}

"""


def test_a_string_of_one_answer_hides_nothing_of_another_ones_tests() -> None:
    found = mir_functions(ANSWER + TESTS + PROBE, {"m_1": "t_1", "m_2": "t_2"})
    (checks,) = found["m_2"]
    assert [call.name for call in checks.calls] == ["letter", "eq"]
    assert checks.calls[1].receiver == f"{ANSWER_MODULE}::Kind<'_'>"


def test_tests_that_see_the_same_types_are_read_once() -> None:
    other = TESTS.replace("m_2", "m_1").replace("t_2", "t_1")
    stranger = other.replace("m_1", "m_3").replace("t_1", "t_3").replace("let mut _1: char", "let mut _1: m_3::Letter")
    found = mir_functions(other + TESTS + stranger + PROBE, {"m_1": "t_1", "m_2": "t_2", "m_3": "t_3"})
    (checks,), (same,), (different,) = found["m_1"], found["m_2"], found["m_3"]
    assert checks is same
    assert [checks.calls[0].result, different.calls[0].result] == ["char", f"{ANSWER_MODULE}::Letter"]


def test_only_a_line_break_ends_a_line() -> None:
    odd = TESTS.replace("const 'b'", 'const "\x0b} \u2028fn m_1::t_1::forged() -> () {\x0c"')
    found = mir_functions(odd + PROBE, {"m_1": "t_1", "m_2": "t_2"})
    assert [len(found["m_1"]), [call.name for call in found["m_2"][0].calls]] == [0, ["letter", "eq"]]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("m::Stack::<i32>::push", ("m", "Stack", "push")),
        ("m::each::<fn(i32) -> Vec<i32>>::call", ("m", "each", "call")),
        ("<m::Own as Eq>::eq", ("eq",)),
        ("", ("",)),
    ],
)
def test_the_names_of_a_path_are_those_outside_of_brackets(path: str, names: tuple[str, ...]) -> None:
    assert path_names(path) == names


def test_an_arrow_closes_no_bracket() -> None:
    assert closing_bracket("<fn() -> i32> as T") == len("<fn() -> i32")
