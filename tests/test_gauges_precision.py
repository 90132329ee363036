"""Scale, flush and clip against arithmetic written out: fp16 on the CPU."""
from __future__ import annotations

import statistics

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from traindx.core.trials import Gauge
from trial_driver import trial

X, Y = torch.randn(16, 4, generator=torch.Generator().manual_seed(1)), torch.arange(16) % 3


class Tiny(nn.Module):
    """fp16 inside, and a gradient of 2^-30 to 2^-20 through it."""

    def __init__(self, size):
        super().__init__()
        self.w, self.size = nn.Parameter(torch.randn(64, generator=torch.Generator().manual_seed(0)), requires_grad=True), size

    def forward(self, x):
        return (self.w.half() * x.half()).float() * self.size


def flush(scale, size=2.0 ** -26):
    x = torch.linspace(0.5, 8, 64)
    with trial(Gauge("precision_scale", {"steps": [1]})) as facts:
        model = Tiny(size)
        optimizer = torch.optim.SGD([model.w], 0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=scale, enabled=scale != 1)
        scaler.scale(model(x).sum()).backward()
        seen = model.w.grad.clone()
        scaler.step(optimizer)
    return facts["precision_scale"]["flush"][0], seen, x


def test_gradients_that_fp16_rounds_to_zero_are_counted_and_a_scale_saves_them():
    told, seen, x = flush(1.0)
    # backward: fp16(size), a subnormal or 0, times fp16(x)
    true = x.double() * 2.0 ** -26
    assert told["flushed"] == pytest.approx(float((seen == 0).double().mean())) and told["flushed"] > 0.9
    assert told["would_flush"] == pytest.approx(float((true <= 2.0 ** -25).double().mean()), abs=0.02)
    saved, seen, _ = flush(65536.0)
    assert saved["flushed"] == 0 and bool((seen != 0).all()) and saved["would_flush"] == pytest.approx(told["would_flush"], abs=0.02)


def test_fp32_flushes_nothing_and_says_what_fp16_would():
    torch.manual_seed(0)
    with trial(Gauge("precision_scale", {"steps": [1]})) as facts:
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        (F.cross_entropy(model(X), Y) * 1e-6).backward()
        optimizer.step()
    told = facts["precision_scale"]["flush"][0]
    gradient = torch.cat([p.grad.flatten() for p in model.parameters()]).abs()
    assert told["flushed"] == 0 and not told["half"] and told["elements"] == int((gradient != 0).sum())
    assert told["would_flush"] == pytest.approx(float((gradient <= 2.0 ** -25).float().mean())) and told["would_flush"] > 0


def scaled(order, steps=6):
    """``order``: what is done between backward and step."""
    torch.manual_seed(0)
    norms = []
    with trial(Gauge("precision_scale")) as facts:
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 124, growth_interval=2)
        for _ in range(steps):
            optimizer.zero_grad()
            scaler.scale(F.cross_entropy(model(X * 1e3), Y)).backward()
            for what in order:
                if what == "unscale":
                    scaler.unscale_(optimizer)
                else:
                    norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)))
            scaler.step(optimizer)
            scaler.update()
    return facts["precision_scale"], norms, scaler.get_scale()


def test_the_scale_is_followed_and_skipped_steps_counted():
    told, _, last = scaled(())
    scaler = told["scaler"]
    assert (scaler["first"], scaler["last"], scaler["steps"]) == (2.0 ** 124, last, 6)
    halvings = [after for (_, after), before in zip(scaler["changes"], [scaler["first"], *[c[1] for c in scaler["changes"]]]) if after < before]
    assert scaler["overflows"] == len(halvings) >= 1 and scaler["lowest"] <= 2.0 ** 123


def test_a_clip_of_scaled_gradients_is_told_from_a_right_one():
    wrong, norms, _ = scaled(("clip",))
    right, _, _ = scaled(("unscale", "clip"))
    assert (wrong["clip"][0]["scaled"], right["clip"][0]["scaled"]) == (6, 0)
    assert wrong["clip"][0]["calls"] == 6 and wrong["clip"][0]["acted"] == sum(not n <= 1.0 for n in norms)


@pytest.mark.parametrize("limit", [1e-3, 1e3])
def test_clips_are_told_by_line_with_the_norm_before(limit):
    torch.manual_seed(0)
    norms = []
    with trial(Gauge("precision_scale")) as facts:
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(5):
            optimizer.zero_grad()
            F.cross_entropy(model(X), Y).backward()
            norms.append(float(torch.cat([p.grad.flatten() for p in model.parameters()]).norm()))
            nn.utils.clip_grad_norm_(model.parameters(), limit)
            nn.utils.clip_grad_value_(model.parameters(), 1e-9)
            optimizer.step()
    by_norm, by_value = facts["precision_scale"]["clip"]
    assert (by_norm["function"], by_norm["asked"], by_norm["calls"]) == ("clip_grad_norm_", limit, 5)
    assert by_norm["acted"] == (5 if limit < 1 else 0) and by_norm["seen"] == pytest.approx(statistics.median(norms), rel=1e-5)
    assert by_value["acted"] == 5 and by_value["site"]["line"] == by_norm["site"]["line"] + 1
    assert facts["precision_scale"]["scaler"] is None
