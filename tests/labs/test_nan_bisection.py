"""Bisection takes log2 of the layers, from the end takes as many as lie behind; both find the layer by real forwards."""
import math

import pytest

from traindx.labs.nan_bisection import LAYERS, compute, lengths, output_of, search


@pytest.mark.parametrize("broken", range(1, LAYERS + 1))
@pytest.mark.parametrize("strategy", ["bisect", "end"])
def test_the_layer_is_found(broken, strategy):
    tests = search(broken, strategy)
    assert tests[-1].low == tests[-1].high == broken
    for test in tests:  # what was said of each output, asked again
        assert bool(output_of(broken, test.layer).isfinite().all()) == test.finite == (test.layer < broken)


def test_the_number_of_tests():
    assert lengths("bisect") == (int(math.log2(LAYERS)),) * LAYERS
    assert lengths("end") == (7, 7, 6, 5, 4, 3, 2, 1)


def test_the_verdict_follows_the_tests_made():
    state = {"broken": 6.0, "strategy": "bisect"}
    assert "8 layers are left" in compute({**state, "made": 0.0}).verdict.en and compute({**state, "made": 2.0}).level == "warning"
    assert "Layer 6" in compute({**state, "made": 3.0}).verdict.en and compute({**state, "made": 7.0}) == compute({**state, "made": 3.0})
