"""The leak: accuracies against the normal distribution's, statistics against NumPy, and what the texts claim."""
import math

import numpy as np
import pytest

from traindx.labs.nets import dice
from traindx.labs.normalisation_leak import CENTRES, HELD, LAB, ONLINE, SCALES, SHIFTS, TRAIN, draw, results


@pytest.mark.parametrize("way", ["train", "together", "own"])
@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_the_statistics_are_those_of_the_sets_they_name(way, shift):
    chance = dice(1)
    train, held = draw(chance, TRAIN)[0].numpy(), draw(chance, HELD)[0].numpy() + shift * np.array(SCALES)
    rows = {"train": train, "together": np.concatenate([train, held]), "own": held}[way]
    found = results(1)[shift, way]
    assert found.mean == pytest.approx(rows.mean(0)) and found.deviation == pytest.approx(rows.std(0))


def phi(x):
    return (1 + math.erf(x / math.sqrt(2))) / 2


@pytest.mark.parametrize("shift", SHIFTS)
def test_the_accuracy_online_is_that_of_two_gaussians_cut_by_the_line(shift):
    """Exact for a line w x + b: mean over both classes of Phi(± (w m + b) / |w|), in normalised units of the data."""
    found = results(0)[shift, "train"]
    w1, w2, b = found.line
    weights = (w1 * SCALES[0] / found.deviation[0], w2 * SCALES[1] / found.deviation[1])  # per width of a feature
    offset = b - w1 * found.mean[0] / found.deviation[0] - w2 * found.mean[1] / found.deviation[1]
    length = math.hypot(*weights)
    heights = [offset + sum(w * (sign * c + shift) for w, c in zip(weights, CENTRES)) for sign in (1, -1)]
    exact = 50 * (phi(heights[0] / length) + phi(-heights[1] / length))
    assert found.online == pytest.approx(exact, abs=4 * 100 * math.sqrt(0.25 / ONLINE))


@pytest.mark.parametrize("seed", range(2))
def test_own_statistics_hide_the_drift_and_shared_ones_do_not(seed):
    found = results(seed)
    assert found[2.0, "own"].validation == pytest.approx(found[0.0, "own"].validation)  # the shift is subtracted
    assert found[2.0, "own"].validation - found[2.0, "own"].online > 20
    for shift in SHIFTS:
        for way in ("train", "together"):
            assert abs(found[shift, way].validation - found[shift, way].online) < 7  # 600 samples: three standard errors
    assert LAB.compute({"shift": 2.0, "way": "own", "seed": seed}).level == "error"
    assert LAB.compute({"shift": 2.0, "way": "train", "seed": seed}).level == "fine"
