"""Loss scaling against the format itself: NumPy's float16 as the peer, 2^-24 and 65504 as the theory."""
import math

import numpy as np
import pytest
import torch

from traindx.labs.loss_scaling import COUNT, LAB, LARGEST, SCALES, SMALLEST, gradients, shares, smallest_of, through_half


def test_the_smallest_positive_half_is_2_to_the_minus_24_and_half_of_it_is_flushed():
    assert smallest_of(torch.float16) == 2.0**-24 == float(np.finfo(np.float16).smallest_subnormal)
    assert f"{smallest_of(torch.float16):.2e}" == "5.96e-08" and smallest_of(torch.bfloat16) == 2.0**-133
    around = torch.tensor([2.0**-25, math.nextafter(2.0**-25, 0), 2.0**-25 * 1.001], dtype=torch.float32)
    assert through_half(around, 1.0).tolist() == [0.0, 0.0, 2.0**-24]


@pytest.mark.parametrize("scale", SCALES[::4])
@pytest.mark.parametrize("largest", LARGEST)
def test_the_casts_are_those_of_numpy(scale, largest):
    values = gradients(largest, COUNT)
    with np.errstate(over="ignore"):
        peer = (values.numpy() * np.float32(scale)).astype(np.float16).astype(np.float64) / scale
    assert np.array_equal(through_half(values, scale).numpy(), peer)


@pytest.mark.parametrize("state", LAB.states(), ids=str)
def test_the_shares_are_the_widths_of_the_lost_ends(state):
    """Evenly many gradients per decade: the share of a range is its length in decades, to one gradient's width."""
    scale, largest = state["scale"], state["largest"]
    whole = math.log10(largest / SMALLEST)
    low = math.log10(2.0**-25 / scale / SMALLEST) / whole
    high = math.log10(largest * scale / 65520) / whole  # 65520 is where rounding goes to inf instead of 65504
    zero, infinite = shares(largest, scale)
    assert zero == pytest.approx(min(max(low, 0), 1), abs=2 / COUNT)
    assert infinite == pytest.approx(min(max(high, 0), 1), abs=2 / COUNT)
    assert (LAB.compute(state).level == "error") == (infinite > 0 or zero > 0.1)


def test_what_the_texts_say_is_so():
    assert shares(1e-4, 1.0)[0] == pytest.approx(0.41, abs=0.01)
    assert shares(1e-4, 1024.0) == (0, 0)
    assert shares(1.0, 32768.0)[1] == 0 and shares(1.0, 65536.0)[1] > 0
