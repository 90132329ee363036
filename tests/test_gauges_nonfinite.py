"""The first NaN is put in on purpose, in the forward, the backward, the step, the data; the gauge must name its line."""
from __future__ import annotations

import inspect
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from traindx.core.trials import Gauge
from traindx.gauges import nonfinite
from trial_driver import trial

X, Y = torch.randn(8, 4, generator=torch.Generator().manual_seed(1)), torch.arange(8) % 3


def line_of(thing, words):
    lines, start = inspect.getsourcelines(thing)
    return start + next(i for i, line in enumerate(lines) if words in line)


def run(make, loss=lambda out, y: F.cross_entropy(out, y), x=X, y=Y, steps=3, optimizer=None, **settings):
    torch.manual_seed(0)
    with trial(Gauge("nonfinite", settings)) as facts:
        model = make()
        optimizer = (optimizer or (lambda p: torch.optim.SGD(p, 0.1)))(model.parameters())
        for _ in range(steps):
            optimizer.zero_grad()
            value = loss(model(x), y)
            value.backward()
            optimizer.step()
    return facts["nonfinite"]


class Logs(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(4, 6), nn.ReLU()), nn.Linear(6, 3)

    def forward(self, x):
        hidden = self.body(x)
        logged = hidden.log()
        return self.head(logged)


class Masks(nn.Module):
    """An attention mask: -inf on purpose; the last row is masked entirely where ``empty``."""

    def __init__(self, empty):
        super().__init__()
        self.q, self.empty = nn.Linear(4, 4), empty

    def forward(self, x):
        mask = torch.ones(8, 8).triu(1).bool()
        if self.empty:
            mask[0] = True
        scores = (self.q(x) @ x.T).masked_fill(mask, -math.inf)
        weights = scores.softmax(-1)
        return (weights @ x)[:, :3]


def test_a_sound_training_has_none_even_with_masks():
    assert run(lambda: Masks(False)) == {"found": False, "steps": 3}


def test_the_operation_and_line_that_make_the_first_infinity():
    found = run(Logs)
    assert (found["phase"], found["op"], found["step"], found["kind"]) == ("forward", "log", 1, "inf")
    assert found["site"]["line"] == line_of(Logs, "hidden.log()") and found["module"] == "" and found["type"] == "Logs"
    assert found["given"][0]["low"] == 0.0 and found["forward_at"]["line"] == line_of(Logs, "def forward")


def test_the_softmax_of_an_empty_row_is_blamed_and_not_the_mask():
    found = run(lambda: Masks(True))
    assert (found["op"], found["kind"], found["phase"]) == ("softmax", "nan", "forward")
    assert found["site"]["line"] == line_of(Masks, "scores.softmax") and found["via"]["op"] == "masked_fill"


def test_a_loss_by_hand_outside_of_any_module():
    def loss(out, y):
        p = F.one_hot(y, 3) + 0 * out
        return -(F.one_hot(y, 3) * p.log()).sum(1).mean()
    found = run(lambda: nn.Linear(4, 3), loss)
    assert (found["op"], found["phase"]) == ("log", "forward") and found["site"]["line"] == line_of(test_a_loss_by_hand_outside_of_any_module, "p.log()")
    assert found["module"] is None


def test_a_gradient_that_a_where_hides_in_the_forward():
    class Rooted(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 3)

        def forward(self, x):
            hidden = self.a(x).relu()
            rooted = hidden.sqrt()
            return self.b(torch.where(hidden > 0, rooted, torch.zeros_like(hidden)))
    found = run(Rooted)
    assert (found["phase"], found["op"], found["node"], found["kind"]) == ("backward", "sqrt", "SqrtBackward0", "nan")
    assert found["site"]["line"] == line_of(test_a_gradient_that_a_where_hides_in_the_forward, "hidden.sqrt()") and found["type"] == "Rooted"


def test_bad_data_bad_weights_and_a_bad_step_are_told_apart():
    x = X.clone()
    x[3, 1] = math.nan
    assert run(lambda: nn.Linear(4, 3), x=x)["phase"] == "input"

    def broken():
        model = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 3))
        model[1].weight.data[0, 0] = math.nan
        return model
    weights = run(broken)
    assert (weights["phase"], weights["module"], weights["op"]) == ("parameters", "1", "linear")
    step = run(lambda: nn.Linear(4, 3), x=1e3 * X, optimizer=lambda p: torch.optim.SGD(p, 3e38))
    assert (step["phase"], step["op"]) == ("step", "SGD") and step["site"]["line"] == line_of(run, "optimizer.step()")


def test_eight_layers_take_three_questions():
    def make():
        model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(8)))
        model[4].weight.data[0] = 1e38
        model[4].bias.data[0] = 3e38
        return model
    found = run(make, x=X.abs() * 100)
    assert (found["modules"], found["halvings"], found["bisection"], found["module"]) == (8, 3, "4", "4")
    for size in (1, 5, 8, 100):
        for first in range(size):
            at, asked = nonfinite.bisection([i >= first for i in range(size)])
            assert at == first and asked <= math.ceil(math.log2(size))


def test_what_happens_late_is_found_when_looked_for_late():
    def loss(out, y):
        return F.cross_entropy(out, y) / (0.0 if run.step >= 3 else 1.0)

    class Counting(nn.Linear):
        def forward(self, x):
            run.step += 1
            return super().forward(x)
    run.step = 0
    assert run(lambda: Counting(4, 3), loss, steps=4)["step"] == 3
    run.step = 0
    found = run(lambda: Counting(4, 3), loss, steps=4, **{"from": 3})
    assert (found["step"], found["op"]) == (3, "div")


def test_a_program_that_stops_at_a_bad_loss_is_told_at_its_end():
    with trial(Gauge("nonfinite")) as facts:
        model = Logs()
        F.cross_entropy(model(X), Y)  # and no backward
    assert facts["nonfinite"]["op"] == "log"


@pytest.mark.parametrize("size, phase", [(1.0, "forward"), (0.0, "backward")])
def test_overflow_under_a_scaler_is_said_with_its_scale(size, phase):
    torch.manual_seed(0)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 127)
    with trial(Gauge("nonfinite")) as facts:
        model = nn.Linear(4, 3)
        model.weight.data.mul_(size)  # logits near 0: the loss is ln 3, and only the gradients overflow
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(2):
            optimizer.zero_grad()
            scaler.scale(F.cross_entropy(model(X * 100), Y)).backward()
            scaler.step(optimizer)
            scaler.update()
    found = facts["nonfinite"]
    assert (found["phase"], found["scale"], found["scaled"], found["overflows"]) == (phase, 2.0 ** 127, True, 2)


@pytest.mark.parametrize("gauges", [(), (Gauge("nonfinite"), Gauge("eval_twice"), Gauge("layers", {"steps": [1, 2]}))])
def test_looking_changes_nothing(gauges):
    torch.manual_seed(0)
    losses = []
    with trial(*gauges) as facts:
        model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 3))
        optimizer = torch.optim.Adam(model.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(X), Y)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
    test_looking_changes_nothing.seen = getattr(test_looking_changes_nothing, "seen", losses)
    assert losses == test_looking_changes_nothing.seen and not any("not_measured" in fact for fact in facts.values())


def test_a_program_that_torch_lets_run_is_not_stopped_by_looking():
    with trial(Gauge("nonfinite")) as facts:
        model, table = nn.Linear(4, 3), torch.zeros(8, 4)
        with torch.no_grad():
            view = table[:4]
        table += model.weight.sum() * 0
        view.shape, view.data.sum()  # its grad_fn may not be asked for
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        F.cross_entropy(model(X), Y).backward()
        optimizer.step()
    assert facts["nonfinite"] == {"found": False, "steps": 1}


def test_larger_backwards_of_other_gauges_are_not_the_programs():
    torch.manual_seed(0)
    with trial(Gauge("nonfinite"), Gauge("precision_scale", {"steps": [1]})) as facts:
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        (F.cross_entropy((model(X).half() * 1.0).float(), Y) * 20_000).backward()
        optimizer.step()
    assert facts["precision_scale"]["flush"][0]["factor"] < 16384 and facts["nonfinite"] == {"found": False, "steps": 1}


def test_modules_whose_hash_is_not_ready_can_be_made():
    class Late(nn.Module):
        def __init__(self):
            super().__init__()
            self.ready = True

        def __hash__(self):
            return hash((self.ready, id(self)))
    with trial(Gauge("nonfinite"), Gauge("layers")):
        assert Late().ready
