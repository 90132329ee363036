"""Student's t: whether the means of two small groups of numbers differ by more than their spread."""
from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, variance


def welch(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """Interval of mean(a) - mean(b) by Welch's method; where one group has one number only, as if its spread were that of the other
    (a prediction interval). None where both have one.
    """
    known = [group for group in (a, b) if len(group) > 1]
    if not known:
        return None
    gap = mean(a) - mean(b)
    parts = [variance(group if len(group) > 1 else known[0]) / len(group) for group in (a, b)]
    if sum(parts) == 0:
        return gap, gap
    freedom = float(len(known[0]) - 1)
    if len(known) == 2:
        freedom = sum(parts) ** 2 / sum(part ** 2 / (len(group) - 1) for part, group in zip(parts, (a, b)))
    half = t_quantile((1 + level) / 2, freedom) * math.sqrt(sum(parts))
    return gap - half, gap + half


def t_quantile(p: float, freedom: float) -> float:
    """Quantile of Student's t for p > 1/2, by bisection on its distribution function."""
    low, high = 0.0, 1.0
    while t_cdf(high, freedom) < p:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if t_cdf(middle, freedom) < p else (low, middle)
    return (low + high) / 2


def t_cdf(t: float, freedom: float) -> float:
    """P(T <= t) for t >= 0, by the regularised incomplete beta function."""
    return 1 - 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b) by its continued fraction (Lentz); Abramowitz and Stegun 26.5.8."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny, c = 1e-300, 1.0
    d = 1 / max(1 - (a + b) * x / (a + 1), tiny)
    result = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / ((1 + term * d) or tiny)
            c = (1 + term / c) or tiny
            result *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * result
