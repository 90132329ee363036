"""Logits that know nothing but spread: what a standard deviation costs, and which one a cost means.

For C independent logits z ~ N(0, s²) that do not depend on the label, the expected cross-entropy is E[ln sum exp z].
With ln S = integral of (exp(-t) - exp(-tS)) / t over t > 0, this is, for any C,

    E[ln S] = integral of exp(-e^u) - phi(e^u)^C over u,   phi(t) = E[exp(-t e^(s Z))],  Z ~ N(0, 1),

two integrals of smooth functions, done by the trapezoidal rule. For small s it is ln C + (1 - 1/C) s²/2.
"""
from __future__ import annotations

import functools
import math

import numpy as np

NODES = 241
POINTS = 481
WIDTH = 8.5  # standard deviations: what lies outside is below 1e-16
LARGEST = 100.0


@functools.lru_cache(maxsize=256)
def expected_excess(std: float, classes: int) -> float:
    """E[cross-entropy] - ln C for Gaussian logits of this standard deviation, in nats."""
    if std == 0.0:
        return 0.0
    z, weight = _nodes()
    u = np.linspace(-WIDTH * std - math.log(classes) - 37.0, WIDTH * std + 4.0, POINTS + int(40 * std))
    phi = np.exp(-np.exp(np.minimum(u[:, None] + std * z[None, :], 700.0))) @ weight
    integrand = np.exp(-np.exp(np.minimum(u, 700.0))) - phi ** classes
    return float(integrand.sum() * (u[1] - u[0])) - math.log(classes)


def expected_binary_excess(std: float) -> float:
    """E[binary cross-entropy] - ln 2 for one logit of this standard deviation, in nats."""
    z, weight = _nodes()
    return float(np.logaddexp(0.0, std * z) @ weight) - math.log(2)


def implied_std(excess: float, classes: int) -> float | None:
    """The standard deviation of logits that costs this much; ``classes`` 1 is one logit against ln 2.

    None for an excess that no spread explains: negative, or above what a standard deviation of 100 costs.
    """
    def cost(std: float) -> float:
        return expected_binary_excess(std) if classes == 1 else expected_excess(std, classes)
    if not 0.0 <= excess < cost(LARGEST):
        return None
    low, high = 0.0, 0.125
    while cost(high) < excess:
        low, high = high, 2 * high
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) < excess else (low, middle)
    return (low + high) / 2


@functools.cache
def _nodes() -> tuple[np.ndarray, np.ndarray]:
    z = np.linspace(-WIDTH, WIDTH, NODES)
    weight = np.exp(-z * z / 2)
    return z, weight / weight.sum()
