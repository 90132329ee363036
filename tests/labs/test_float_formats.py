"""Formats against what torch knows of them, and against arithmetic."""
import math
import struct

import pytest
import torch

from traindx.labs.float_formats import FORMATS, MAGNITUDES, bits_of, compute, errors, rounded


def cast(value, name):
    return rounded(torch.tensor([value], dtype=torch.float64), FORMATS[name]).item()


@pytest.mark.parametrize("name", FORMATS)
def test_the_limits_are_those_of_torch(name):
    kind = FORMATS[name]
    if name != "tf32":
        info = torch.finfo(kind.dtype)
        assert (kind.largest, kind.smallest_normal, 2.0**-kind.mantissa) == (info.max, info.tiny, info.eps)
    assert cast(kind.largest, name) == kind.largest and not math.isfinite(cast(kind.largest * 1.13, name))
    assert kind.smallest < 1e-40 or (cast(kind.smallest, name) == kind.smallest and cast(kind.smallest * 0.49, name) == 0)


def test_the_widths():
    assert [(kind.exponent, kind.mantissa) for kind in FORMATS.values()] == [(8, 23), (8, 10), (5, 10), (8, 7), (4, 3), (5, 2)]
    assert FORMATS["fp16"].smallest == pytest.approx(5.96e-8, rel=1e-3) and cast(2.9e-8, "fp16") == 0 and cast(5.96e-8, "fp16") > 0


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("value", [0.1, 1.0, 3.14159, 1e-5, 100.0])
def test_the_bits_say_the_number(name, value):
    """(-1)^s 2^(e - bias) (1 + m / 2^width), or subnormal."""
    kind, bits = FORMATS[name], bits_of(value, FORMATS[name])
    assert len(bits) == kind.width
    exponent, mantissa = int(bits[1:1 + kind.exponent], 2), int(bits[1 + kind.exponent:], 2) / 2**kind.mantissa
    said = 2.0**(1 - kind.bias) * mantissa if exponent == 0 else 2.0**(exponent - kind.bias) * (1 + mantissa)
    assert bits[0] == "0" and said == cast(value, name)
    if name == "fp16":
        assert bits == f"{struct.unpack('>H', struct.pack('>e', value))[0]:016b}"


@pytest.mark.parametrize("name", FORMATS)
def test_the_error_is_half_a_unit_in_the_last_place_where_numbers_are_normal(name):
    kind, bound = FORMATS[name], 2.0 ** -(FORMATS[name].mantissa + 1)
    inside = [error for x, error in zip(MAGNITUDES, errors(name)) if x >= kind.smallest_normal and 2 * x < kind.largest]
    assert inside and all(bound / 3 < error <= bound * 1.001 for error in inside if error > 1e-8) and max(inside) > 0.6 * bound


def test_fp16_has_a_cliff_and_bf16_has_none():
    fp16, bf16 = errors("fp16"), errors("bf16")
    assert fp16[0] == 1.0 and max(bf16) < 0.0040 and math.isinf(fp16[-1])


def test_tf32_rounds_to_the_nearest_and_ties_to_even():
    step = 2.0**-10
    assert [cast(1 + part * step, "tf32") for part in (0.49, 0.5, 0.51, 1.5)] == [1, 1, 1 + step, 1 + 2 * step]


@pytest.mark.parametrize("value, name, level", [(0.1, "fp16", "fine"), (1e-5, "fp16", "warning"), (2.9e-8, "fp16", "error"),
                                                (70000.0, "fp16", "error"), (70000.0, "bf16", "fine"), (65504.0, "e4m3", "error")])
def test_the_verdict(value, name, level):
    assert compute({"number": value, "format": name}).level == level
