"""Peak, categories and timeline from births and deaths; the straight line to the largest batch; the gap to a measured peak."""
from __future__ import annotations

import pytest

from traindx.core.memory import CATEGORIES, Remedy
from traindx.core.text import same
from traindx.estimate.answering import LARGEST, extrapolated, gap_of, line_limit, sharded_peak
from traindx.estimate.formula import largest
from traindx.estimate.traced.ledger import AFTER, DATA, Ledger, account
from traindx.estimate.traced.measured import on_cpu, on_cuda


def one_step():
    """A weight and data, an activation that lives into backward, a temporary, a gradient, a moment."""
    ledger = Ledger()
    weight = ledger.birth(100, DATA, "empty", None, "fc")
    ledger.records[weight].category = "parameters"
    ledger.birth(7, DATA, "randn", None, "")
    ledger.death(ledger.birth(3, DATA, "arange", None, ""))
    ledger.enter("forward")
    kept = ledger.birth(50, "forward", "addmm", None, "fc")
    ledger.death(ledger.birth(20, "forward", "mul", None, "fc"))
    ledger.enter("backward")
    gradient = ledger.birth(100, "backward", "mm", None, "fc")
    ledger.records[gradient].category = "gradients"
    ledger.death(kept)
    ledger.enter(AFTER)
    ledger.enter("step")
    moment = ledger.birth(200, "step", "zeros_like", None, "fc")
    ledger.records[moment].category = "optimizer"
    ledger.death(ledger.birth(100, "step", "sqrt", None, ""))
    return ledger


def test_the_peak_is_the_highest_sum_and_its_parts_add_up():
    found = account(one_step())
    assert found["peak_bytes"] == 100 + 7 + 100 + 200 + 100 and found["phase"] == "step" and found["op"] == "sqrt"
    assert found["categories"] == {"parameters": 100, "gradients": 100, "optimizer": 200, "activations": 0, "temporaries": 100, "inputs": 7}
    assert found["by_phase"] == {"forward": 177, "backward": 257, "step": 507}
    assert found["at_phase"]["backward"]["activations"] == 50 and found["at_phase"]["forward"]["temporaries"] == 20
    for phase, peak in found["by_phase"].items():
        assert sum(found["at_phase"][phase].values()) == peak


def test_every_point_of_the_timeline_is_the_sum_of_its_categories():
    found = account(one_step())
    assert max(live for live, _, _ in found["timeline"]) == found["peak_bytes"]
    assert all(live == sum(by[name] for name in CATEGORIES) for live, _, by in found["timeline"])


def test_against_a_naive_sweep():
    import random
    draw = random.Random(0)
    ledger, alive, live, peak = Ledger(), [], 0, 0
    for _ in range(2000):
        if alive and draw.random() < 0.5:
            index = alive.pop(draw.randrange(len(alive)))
            live -= ledger.records[index].size
            ledger.death(index)
        else:
            ledger.enter(draw.choice(["forward", "backward", "step"]))
            alive.append(ledger.birth(draw.randrange(1000), ledger.windows[-1][1], "op", None, ""))
            live += ledger.records[alive[-1]].size
        peak = max(peak, live)
    found = account(ledger)
    assert found["peak_bytes"] == peak and len(found["timeline"]) <= 400


def test_a_storage_that_grows():
    ledger = Ledger()
    index = ledger.birth(10, DATA, "empty", None, "")
    ledger.resize(index, 30)
    ledger.death(index)
    assert account(ledger)["peak_bytes"] == 30


def test_nothing_was_made():
    assert account(Ledger())["peak_bytes"] == 0


def test_the_line_through_two_batches():
    peaks = {8: {"forward": 180.0, "step": 500.0}, 16: {"forward": 260.0, "step": 500.0}}
    assert line_limit(peaks, 1000) == 90  # 100 + 10 a sample
    assert line_limit(peaks, 499) == 0
    flat = {8: {"step": 5.0}, 16: {"step": 5.0}}
    assert line_limit(flat, 10) == LARGEST


@pytest.mark.parametrize("capacity", [0, 1, 9, 10, 11, 999, 12345])
def test_largest_against_counting_up(capacity):
    size = lambda n: 7 * n + 3  # noqa: E731
    naive = max((n for n in range(3000) if n == 0 or size(n) <= capacity), default=0)
    assert largest(size, capacity) == naive


def test_sharding_divides_states_only():
    parts = {"parameters": 8, "gradients": 8, "optimizer": 16, "activations": 5, "temporaries": 3, "inputs": 1}
    assert sharded_peak(parts, 8) == 4 + 9 and sharded_peak(parts, 1) == 41


def test_a_remedy_that_saves_little_does_not_help():
    assert not Remedy("x", same(""), same(""), 99).helps(100) and Remedy("x", same(""), same(""), 90).helps(100)
    assert not Remedy("x", same(""), same(""), None).helps(100)


def test_what_a_kernel_took_for_itself():
    changes = [(1, 100), (11, 40), (12, 60), (13, -60), (20, -40)]
    found = on_cpu(changes, [(10, 15, "aten::convolution"), (0, 30, "autograd::engine"), (12, 13, "aten::empty")])
    assert found["peak_bytes"] == 200 and found["running"] == "convolution" and found["inside"] == 100
    [line] = gap_of(150, found)
    assert line.bytes == 50 and "convolution" in line.what.en and "convolution" in line.what.zh


def test_the_gap_of_a_gpu_names_fragmentation():
    """A recorded ``torch.cuda.memory_stats()``, cut to the keys read."""
    stats = {"allocated_bytes.all.peak": 1000, "reserved_bytes.all.peak": 1400, "num_alloc_retries": 1, "inactive_split_bytes.all.peak": 300}
    found = on_cuda(stats, 10_000)
    lines = gap_of(950, found)
    assert [line.bytes for line in lines] == [50, 400] and "fragmentation" in lines[1].what.en
    assert sum(line.bytes for line in lines) + 950 == found["reserved"]


def test_small_runs_are_carried_on_in_a_straight_line():
    def run(batch):
        parts = {"forward": {"parameters": 100, "activations": 10 * batch}, "step": {"parameters": 500, "activations": 0}}
        phase = max(parts, key=lambda name: sum(parts[name].values()))
        return {"batch": batch, "at_phase": parts, "phase": phase, "op": "mm", "where": {"line": 3}, "modules": [1], "places": [1], "timeline": [1]}
    found = extrapolated(run(8), run(16), 64)
    assert found["peak_bytes"] == 740 and found["phase"] == "forward" and found["where"] is None  # the small ones peak in step
    assert found["categories"] == {"parameters": 100, "activations": 640} and found["timeline"] == []
    assert extrapolated(run(50), run(60), 64)["where"] == {"line": 3}
