"""The memory calculator is the formula of ``traindx memory``: 16 bytes a parameter."""
import pytest

from traindx.estimate.formula import account_of
from traindx.estimate.shapes import parameters_of
from traindx.labs.memory import LAB, SHAPES, compute, parts_of, request_of

STATE = LAB.defaults()


@pytest.mark.parametrize("precision", ["half", "fp32"])
@pytest.mark.parametrize("parameters, gigabytes", [(7.0, 112), (1.5, 24), (70.0, 1120), (0.124, 1.984)])
def test_sixteen_bytes_a_parameter_with_adam_in_either_precision(precision, parameters, gigabytes):
    parts = parts_of(request_of({**STATE, "parameters": parameters, "precision": precision}))
    assert sum(size for name, size in parts.items() if name != "activations") == pytest.approx(gigabytes * 1e9)
    assert (parts["master"] > 0) == (precision == "half")


def test_every_state_is_the_accounts_peak():
    for state in LAB.states():
        request = request_of(state)
        assert sum(parts_of(request).values()) == pytest.approx(account_of(request).peak_bytes, rel=1e-9)


def test_the_shapes_have_about_as_many_parameters_as_they_stand_for():
    for count, shape in SHAPES.items():
        assert parameters_of(shape) == pytest.approx(count * 1e9, rel=0.1)


def test_what_helps():
    def peak(**changes):
        return account_of(request_of({**STATE, "parameters": 1.5, "batch": 32.0, **changes})).peak_bytes
    assert peak() > 80e9 > peak(checkpointing=True) and peak(optimizer="sgd") == pytest.approx(peak() - 8 * 1.5e9)
    assert compute({**STATE, "parameters": 1.5}).level == "fine" and compute(STATE).level == "warning"
