"""Our tails and quantiles beside those of scipy, and where scipy itself is less exact, beside closed forms."""

import math
from collections.abc import Callable

import pytest
from scipy import special, stats

from steelyard.stats.special import beta_quantile, normal_cdf, student_cdf, student_quantile

SIZES = (0.3, 0.5, 1.0, 1.5, 7.0, 33.3, 150.0, 1e3, 2.5e4, 1e6)
PROBABILITIES = (1e-12, 1e-4, 0.0125, 0.0375, 0.1, 0.5, 0.9, 0.975, 0.9999)
FREEDOMS = (1, 1.5, 2, 3, 4, 19, 299, 999, 10**4, 10**7)


@pytest.mark.parametrize("a", SIZES)
def test_quantiles_of_beta_are_those_of_scipy(a: float) -> None:
    for b in (size for size in SIZES if size >= 1):
        for probability in PROBABILITIES:
            # the inverse of scipy is off by up to 3e-7 here; the last bit of a float moves a narrow distribution this far
            bits = max(1e-11, 1e-15 * (a + b))
            back = float(special.betainc(a, b, beta_quantile(a, b, probability)))
            assert back == pytest.approx(probability, rel=bits), (b, probability)


@pytest.mark.parametrize("a", [1e-6, 1e-3])
def test_a_beta_with_almost_nothing_on_one_side_keeps_its_probability(a: float) -> None:
    for b in (1.0, 33.3, 2.5e4, 1e6):
        for probability in (0.0375, 0.5, 0.9):
            x = beta_quantile(a, b, probability)
            assert x == 0.0 or float(special.betainc(a, b, x)) == pytest.approx(probability, rel=1e-12)


def test_the_ends_of_a_beta_are_exact() -> None:
    assert (beta_quantile(2, 3, 0), beta_quantile(2, 3, 1)) == (0.0, 1.0)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_students_t_is_that_of_scipy(freedom: float) -> None:
    for t in (-1e3, -50.0, -5.0, -2.0, -0.1, -1e-4, 0.0, 0.5, 3.0, 50.0):
        assert student_cdf(freedom, t) == pytest.approx(float(special.stdtr(freedom, t)), rel=2e-12), t
    for probability in (1e-12, 1e-6, 1e-4, 0.005, 0.025, 0.1, 0.4, 0.5, 0.6, 0.975, 0.9995):
        quantile = student_quantile(freedom, probability)
        assert quantile == pytest.approx(stats.t.ppf(probability, freedom), rel=2e-12, abs=1e-15), probability


def test_students_t_with_one_and_two_degrees_of_freedom_has_closed_forms() -> None:
    for probability in (0.4999, 0.25, 0.025, 1e-9):
        cauchy = -1 / math.tan(math.pi * probability)
        # near the middle the closed forms themselves subtract two numbers that are almost equal
        assert student_quantile(1, probability) == pytest.approx(cauchy, rel=1e-12)
        two = -(1 - 2 * probability) / math.sqrt(2 * probability * (1 - probability))
        assert student_quantile(2, probability) == pytest.approx(two, rel=1e-11)


def test_the_normal_tail_is_that_of_scipy() -> None:
    for z in (-37.0, -10.0, -1.96, -0.1, 0.0, 1.0, 8.0):
        assert normal_cdf(z) == pytest.approx(float(special.ndtr(z)), rel=1e-13)


@pytest.mark.parametrize(
    "call",
    [
        lambda: beta_quantile(1, 0.5, 0.5),
        lambda: beta_quantile(1, 1, float("nan")),
        lambda: student_cdf(0, 1),
        lambda: student_quantile(3, 0),
        lambda: student_quantile(3, 1),
    ],
)
def test_what_has_no_distribution_is_refused(call: Callable[[], float]) -> None:
    with pytest.raises(ValueError, match="needs"):
        call()
