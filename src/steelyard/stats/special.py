"""Tails and quantiles of the beta, Student and normal distributions, without a large library.

The tests hold each to scipy over a grid. The density in front of the continued fraction is the saddle-point form of Loader
2000, "Fast and accurate computation of binomial probabilities", which stays exact where logarithms of large gamma functions
cancel.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

# the series below are exact to a float's last bits beyond these
STIRLING_MIN = 16.0
DEVIANCE_SERIES_MAX = 0.1
MAX_FRACTION_STEPS = 100_000
MAX_SOLVING_STEPS = 100
MAX_GUESS_EXPONENT = 300.0
# a step from so close leaves an error of the order of its cube
LAST_STEP_DISTANCE = 1e-5
CONVERGENCE_TOLERANCE = 1e-15
# what the logarithms of gamma functions may lose when they cancel
CANCELLATION = 1e-6
SMALLEST_POSITIVE = 1e-300


def beta_quantile(a: float, b: float, probability: float) -> float:
    """The value that a beta variable stays at or below with this probability; `b` is at least 1.

    The logarithm of the probability is a concave function of that of the value, so no step towards it can run away.

    >>> f"{beta_quantile(2, 3, 0.6875):.12f} {beta_quantile(1, 1, 0.025):.12f}"
    '0.500000000000 0.025000000000'
    """
    if not (a > 0 and b >= 1 and 0 <= probability <= 1):
        raise ValueError(
            f"beta_quantile needs a above 0, b of at least 1 and a probability, got {a}, {b}, {probability}"
        )
    if probability in (0, 1):
        return float(probability)
    # with b of at least 1 the density is at most its factor in x, which bounds the value from below
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    least = (math.log(probability) + math.log(a) + log_beta - CANCELLATION) / a
    if least < math.log(SMALLEST_POSITIVE):
        return 0.0

    def curve(log_x: float) -> tuple[float, float, float]:
        x = math.exp(log_x)
        q = max(-math.expm1(log_x), SMALLEST_POSITIVE)
        log_factor = _log_density_factor(a, b, x, q)
        log_cdf = _log_beta_cdf(a, b, x, q, log_factor)
        return log_cdf, math.exp(log_factor - math.log(q) - log_cdf), a - (b - 1) * x / q

    start = _beta_guess(a, b, probability)
    log_x = _solve(
        curve, math.log(probability), max(least, math.log(start)) if start > 0 else least, least, -CONVERGENCE_TOLERANCE
    )
    return math.exp(log_x)


def student_cdf(freedom: float, t: float) -> float:
    """How likely Student's t is at most `t`.

    >>> f"{student_cdf(4, -2.7764451051977987):.12f}"
    '0.025000000000'
    """
    if not freedom > 0:
        raise ValueError(f"student_cdf needs degrees of freedom above 0, got {freedom}")
    tail = math.exp(_log_student_tail(freedom, abs(t)))
    return tail if t <= 0 else 1 - tail


@lru_cache(maxsize=512)
def student_quantile(freedom: float, probability: float) -> float:
    """The value that Student's t stays at or below with this probability.

    >>> f"{student_quantile(4, 0.975):.10f} {student_quantile(999, 0.025):.10f}"
    '2.7764451052 -1.9623414611'
    """
    if not (freedom > 0 and 0 < probability < 1):
        raise ValueError(
            f"student_quantile needs degrees of freedom above 0 and a probability, got {freedom}, {probability}"
        )
    if probability == 0.5:
        return 0.0
    tail = min(probability, 1 - probability)

    def curve(log_t: float) -> tuple[float, float, float]:
        square = math.exp(2 * log_t)
        x, q = freedom / (freedom + square), square / (freedom + square)
        # the density times t is the factor in front of the fraction of the beta form
        log_factor = _log_density_factor(freedom / 2, 0.5, x, q)
        log_tail = _log_beta_cdf(freedom / 2, 0.5, x, q, log_factor) - math.log(2)
        return log_tail, -math.exp(log_factor - log_tail), 1 - (freedom + 1) * q

    log_t = _solve(curve, math.log(tail), math.log(-NormalDist().inv_cdf(tail)), -math.inf, math.inf)
    return math.copysign(math.exp(log_t), probability - 0.5)


def normal_cdf(z: float) -> float:
    """How likely a standard normal variable is at most `z`, exact far out in the lower tail.

    >>> f"{normal_cdf(-10):.6e}"
    '7.619853e-24'
    """
    return math.erfc(-z / math.sqrt(2)) / 2


def _solve(
    curve: Callable[[float], tuple[float, float, float]], target: float, start: float, least: float, most: float
) -> float:
    """Where a concave curve meets the target, by Halley's steps and by Newton's where these would go astray.

    The curve is the logarithm of a tail over the logarithm of its place. It comes with its slope and with the slope of the
    logarithm of that slope times the tail.
    """
    place = start
    for _ in range(MAX_SOLVING_STEPS):
        value, slope, growth = curve(place)
        if not slope:
            return place
        bent = slope + (target - value) * (growth - slope) / 2
        step = (target - value) / (bent if 0.5 < bent / slope < 2 else slope)
        new = min(max(place + step, least), most)
        if abs(target - value) <= LAST_STEP_DISTANCE * min(1.0, -target) or abs(
            new - place
        ) <= CONVERGENCE_TOLERANCE * max(1.0, abs(place)):
            return new
        place = new
    return place


def _beta_guess(a: float, b: float, probability: float) -> float:
    """A value near the quantile (Abramowitz and Stegun 1964, 26.5.22); 0 if it says nothing."""
    if a <= 1 or b <= 1:
        return 0.0
    y = -NormalDist().inv_cdf(probability)
    over_a, over_b = 1 / (2 * a - 1), 1 / (2 * b - 1)
    h, bend = 2 / (over_a + over_b), (y * y - 3) / 6
    if h + bend <= 0:
        return 0.0
    w = y * math.sqrt(h + bend) / h - (over_b - over_a) * (bend + 5 / 6 - 2 / (3 * h))
    return a / (a + b * math.exp(2 * w)) if abs(w) < MAX_GUESS_EXPONENT else 0.0


def _log_beta_cdf(a: float, b: float, x: float, q: float, log_factor: float) -> float:
    """The logarithm of the distribution at `x`, also where it is too small for a float.

    `q` is `1 - x`, given apart because it may be the exact one of the two.
    """
    if x * (a + b + 2) < a + 1:
        return log_factor - math.log(_fraction(a, b, x, q))
    return math.log1p(-math.exp(log_factor) / _fraction(b, a, q, x))


def _log_student_tail(freedom: float, t: float) -> float:
    """The logarithm of the chance that Student's t is above `t`, which is not negative."""
    square = t * t
    x, q = freedom / (freedom + square), square / (freedom + square)
    if not (x > 0 and q > 0):
        return -math.inf if q else math.log(0.5)
    log_factor = _log_density_factor(freedom / 2, 0.5, x, q)
    return _log_beta_cdf(freedom / 2, 0.5, x, q, log_factor) - math.log(2)


def _log_density_factor(a: float, b: float, x: float, q: float) -> float:
    """The logarithm of `x**a * q**b / B(a, b)`."""
    total = a + b
    return (
        (math.log(a) + math.log(b) - math.log(total) - math.log(2 * math.pi)) / 2
        + _stirling_error(total)
        - _stirling_error(a)
        - _stirling_error(b)
        - _deviance(a, total * x)
        - _deviance(b, total * q)
    )


def _stirling_error(n: float) -> float:
    """The logarithm of gamma at `n + 1`, less Stirling's formula."""
    if n < STIRLING_MIN:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - math.log(2 * math.pi) / 2
    square = n * n
    inner = 1 / 1260 - (1 / 1680 - (1 / 1188 - 691 / 360360 / square) / square) / square
    return (1 / 12 - (1 / 360 - inner / square) / square) / n


def _deviance(x: float, mean: float) -> float:
    """`x * log(x / mean) + mean - x`, by a series where the two are close."""
    if mean <= 0:
        return math.inf
    if abs(x - mean) >= DEVIANCE_SERIES_MAX * (x + mean):
        return x * math.log(x / mean) + mean - x
    ratio = (x - mean) / (x + mean)
    total, term, power = (x - mean) * ratio, 2 * x * ratio, 1
    while True:
        term *= ratio * ratio
        power += 2
        new = total + term / power
        if new == total:
            return new
        total = new


def _fraction(a: float, b: float, x: float, q: float) -> float:
    """The density factor over the distribution: a continued fraction, by the modified method of Lentz.

    It is the even part of DLMF 8.17.22, as in DiDonato and Morris 1992, "Significant digit computation of the incomplete
    beta function ratios": it does not cancel where `x` is close to the mean.
    """
    distance = a * q - b * x + 1
    value = c = a * distance / (a + 1)
    d = 0.0
    before = a + 1
    for step in range(1, MAX_FRACTION_STEPS):
        share = step * (b - step) * x / before
        numerator = (a + step - 1) * (a + b + step - 1) * share * x / before
        before += 2
        denominator = step + share + (a + step) * (distance + step * (1 + q)) / before
        d = denominator + numerator * d
        # comparing costs a third of asking for the absolute value
        d = 1 / (SMALLEST_POSITIVE if -SMALLEST_POSITIVE < d < SMALLEST_POSITIVE else d)
        c = denominator + numerator / (SMALLEST_POSITIVE if -SMALLEST_POSITIVE < c < SMALLEST_POSITIVE else c)
        factor = c * d
        value *= factor
        if -CONVERGENCE_TOLERANCE <= factor - 1 <= CONVERGENCE_TOLERANCE:
            break
    return value
