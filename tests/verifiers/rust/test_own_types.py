"""A comparison of values of the answer's own type proves something only if the type tells its values apart."""

from __future__ import annotations

import pytest

from attacks.rust_claims import CLAIM_SCENES
from steelyard.verifiers.rust.own_types import doubtful_claim
from steelyard.verifiers.rust.source import rust_tokens

POINT = "Write a struct `Point` with `Point::new(x, y)` that can be compared."
POINT_TESTS = "#[test] fn same() { assert_eq!(Point::new(1, 2), Point::new(1, 2)); }"


def doubt(code: str, tests: str = POINT_TESTS, prompt: str = POINT) -> str:
    return doubtful_claim(tests, prompt, code, rust_tokens(code))


@pytest.mark.parametrize("scene", CLAIM_SCENES)
def test_an_honest_type_is_not_doubted(scene: str) -> None:
    prompt, tests, honest, _ = CLAIM_SCENES[scene]
    assert doubt(honest, tests, prompt) == ""


@pytest.mark.parametrize(
    "code",
    [
        "#[derive(PartialEq)] pub struct Point { x: i32, y: i32 } impl Point { pub fn new(x: i32, y: i32) -> Self { Self { x, y } } }",
        "pub struct Point { x: i32, y: i32 } impl Point { pub fn new(x: i32, y: i32) -> Point { Point { x: x, y: y } } } impl PartialEq for Point { fn eq(&self, o: &Self) -> bool { self.x == o.x && self.y == o.y } }",
        "pub struct Point(String, String); impl Point { pub fn new(x: &str, y: &str) -> Self { Point(x.into(), y.to_string()) } } impl PartialEq for Point { fn eq(&self, other: &Point) -> bool { self.0.to_lowercase() == other.0.to_lowercase() && self.1 == other.1 } }",
        "#[derive(Ord)] pub struct Point(i32, i32); impl Point { pub fn new(x: i32, y: i32) -> Self { Point(x, y) } } impl PartialEq for Point { fn eq(&self, other: &Self) -> bool { self.cmp(other) == Ordering::Equal } }",
    ],
)
def test_a_type_that_is_equal_by_its_members_is_not_doubted(code: str) -> None:
    assert doubt(code) == ""


@pytest.mark.parametrize(
    "code",
    [
        "#[derive(PartialEq)] pub struct Point;",
        "#[derive(Debug, PartialEq)] pub struct Point {}",
        "#[derive(PartialEq)] pub enum Point { Only }",
        "pub struct Point(i32); impl PartialEq for Point { fn eq(&self, _: &Self) -> bool { true } }",
        "pub struct Point(i32); impl PartialEq<Point> for Point { fn eq(&self, o: &Point) -> bool { self.0 == self.0 } }",
        "pub struct Point(i32); impl PartialEq for Point { fn eq(&self, o: &Self) -> bool { self.0 == o.0 } fn ne(&self, o: &Self) -> bool { false } }",
        "pub type Point = u8;",
        "#[derive(PartialEq)] pub struct Point { x: i32, y: i32 } impl Point { pub fn new(_x: i32, _y: i32) -> Self { Point { x: 0, y: 0 } } }",
        "#[derive(PartialEq)] pub struct Point { x: i32, y: i32 } impl Point { pub fn new(x: i32, y: i32) -> Self { let (x, y) = (0 * x, 0 * y); Point { x, y } } }",
        "#[derive(PartialEq)] pub enum Point { Here, There } impl Point { pub fn new(x: i32, y: i32) -> Self { Point::Here } }",
        "pub struct Point { x: i32, y: i32, z: i32 } impl Point { pub fn new(x: i32, y: i32) -> Self { Point { x, y, z: 0 } } } impl PartialEq for Point { fn eq(&self, o: &Self) -> bool { self.z == o.z } }",
    ],
)
def test_a_type_whose_values_may_all_be_equal_is_doubted(code: str) -> None:
    assert doubt(code) != ""


def test_an_answer_with_fractions_is_doubted_where_its_tests_let_nan_pass() -> None:
    tests = "#[test] fn mean_of_one() { if (mean(&[5.0]) - 5.0).abs() > 1e-9 { panic!() } }"
    code = "pub fn mean(v: &[f64]) -> f64 { 0.0 / 0.0 }"
    assert "NaN" in doubt(code, tests)
    assert (
        doubt(code, tests.replace("(mean(&[5.0]) - 5.0).abs() > 1e-9", "!((mean(&[5.0]) - 5.0).abs() <= 1e-9)")) == ""
    )
