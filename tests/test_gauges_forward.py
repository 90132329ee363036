"""Gauges that ask a module aside: which samples reach which output, and whether it answers the same twice."""
from __future__ import annotations

import inspect

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from traindx.core.trials import Gauge
from traindx.gauges import batch_dependence
from traindx.gauges.tools.batches import Samples
from trial_driver import trial


class Wrong(nn.Module):
    """Turned by view instead of transpose: half of each output row comes from another sample."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x):
        hidden = self.first(x)
        mixed = hidden.view(hidden.shape[1], hidden.shape[0]).t()
        return self.second(mixed)


class OverBatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(x).softmax(0)


class Tokens(nn.Module):
    def __init__(self, batch_first):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(20, 8), nn.GRU(8, 8, batch_first=batch_first), nn.Linear(8, 3)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0][:, -1])


def measure(model, x, y, *gauges, steps=1):
    with trial(*gauges) as facts:
        model = model()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    return facts


def line_of(cls, words):
    lines, start = inspect.getsourcelines(cls)
    return start + next(i for i, line in enumerate(lines) if words in line)


X, Y = torch.randn(8, 4, generator=torch.Generator().manual_seed(1)), torch.arange(8) % 3


def test_a_sound_network_keeps_its_samples_apart_even_with_batch_norm():
    found = measure(lambda: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3)), X, Y, Gauge("batch_dependence"))
    value = found["batch_dependence"]
    assert (value["mixes"], value["by_gradient"], value["by_exchange"], value["leaks"], value["others"]) == (False, False, False, [], 0)
    assert value["samples"] == {"size": 8, "dim": 0, "evidence": "labels"}


@pytest.mark.parametrize("model, op", [(Wrong, "view"), (OverBatch, "softmax")])
def test_samples_that_meet_are_counted_and_the_operation_is_named(model, op):
    value = measure(model, X, Y, Gauge("batch_dependence"))["batch_dependence"]
    assert value["mixes"] and value["by_gradient"] and value["by_exchange"]
    assert value["culprit"]["op"] == op and value["culprit"]["site"]["line"] == line_of(model, f".{op}(")


def test_the_gradient_matrix_is_that_of_one_output_at_a_time():
    torch.manual_seed(0)
    model = Wrong()
    matrix = batch_dependence.gradient_matrix(model, (X,), {}, Samples(8, 0, "labels"))
    naive = torch.zeros(8, 8, dtype=torch.bool)
    for i in range(8):
        x = X.clone().requires_grad_()
        (model(x)[i] * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
        naive[i] = x.grad.norm(dim=1) > 0
    strength = matrix / matrix.max()
    assert torch.equal(strength > 1e-6, naive)
    assert {(i, j) for i, j, _ in batch_dependence.leaks(matrix)} == {(i, j) for i, j in naive.nonzero().tolist() if i != j}


def test_tokens_are_asked_by_exchange():
    ids = torch.randint(20, (8, 5), generator=torch.Generator().manual_seed(2))
    sound = measure(lambda: Tokens(True), ids, Y, Gauge("batch_dependence"))["batch_dependence"]
    assert (sound["mixes"], sound["by_gradient"], sound["by_exchange"]) == (False, None, False)
    wrong = measure(lambda: Tokens(False), ids, Y, Gauge("batch_dependence"))["batch_dependence"]
    assert wrong["mixes"] and wrong["culprit"]["module"] == "GRU" and wrong["culprit"]["made_at"]["line"] == line_of(Tokens, "nn.GRU")


def test_a_sequence_first_network_is_not_taken_for_a_mixing_one():
    ids = torch.randint(20, (5, 8), generator=torch.Generator().manual_seed(2))

    class Sequence(Tokens):
        def forward(self, ids):
            return self.head(self.rnn(self.embed(ids))[0])

    def along(batch_first):
        with trial(Gauge("batch_dependence")) as facts:
            F.cross_entropy(Sequence(batch_first)(ids).flatten(0, 1), torch.zeros(40, dtype=torch.long)).backward()
        return facts["batch_dependence"]
    assert (along(False)["mixes"], along(False)["samples"]) == (False, {"size": 8, "dim": 1, "evidence": "independent"})
    assert (along(True)["mixes"], along(True)["samples"]) == (False, {"size": 5, "dim": 0, "evidence": "assumed"})


def test_where_samples_cannot_be_told_it_says_so():
    value = measure(lambda: nn.Linear(4, 3), X[:1], Y[:1], Gauge("batch_dependence"))["batch_dependence"]
    assert "one sample" in value["not_measured"]["en"]
    flat = measure(lambda: nn.Sequential(nn.Linear(4, 3), nn.Flatten(0), nn.Unflatten(0, (3, 8)), nn.Flatten(0, 1), nn.Unflatten(0, (24, 1))),
                   X, torch.zeros(24, dtype=torch.long), Gauge("batch_dependence"))["batch_dependence"]
    assert "8 samples" in flat["not_measured"]["en"]


class AlwaysDrops(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x):
        hidden = self.body(x)
        hidden = F.dropout(hidden, 0.5)
        return self.head(hidden)


class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        return self.head(x - self.mean)


def test_a_network_in_eval_mode_answers_the_same_twice():
    value = measure(lambda: nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.BatchNorm1d(6), nn.Linear(6, 3)), X, Y, Gauge("eval_twice"))["eval_twice"]
    assert (value["equal"], value["largest_difference"], value["draws"], value["culprit"]) == (True, 0.0, False, None)


def test_dropout_that_never_goes_off_is_named_with_its_line():
    value = measure(AlwaysDrops, X, Y, Gauge("eval_twice"))["eval_twice"]
    assert not value["equal"] and value["draws"] and value["largest_difference"] > 0
    assert value["culprit"]["op"] == "dropout" and value["culprit"]["site"]["line"] == line_of(AlwaysDrops, "F.dropout(hidden")
    assert value["culprit"]["forward_at"]["line"] == line_of(AlwaysDrops, "def forward")


def test_a_memory_is_told_from_randomness():
    value = measure(Remembers, X, Y, Gauge("eval_twice"))["eval_twice"]
    assert not value["equal"] and not value["draws"] and value["culprit"]["site"]["line"] == line_of(Remembers, "0.9 * self.mean")


def test_a_dropout_module_forced_into_train_mode_is_named_with_its_path():
    class Stuck(nn.Dropout):
        def train(self, mode=True):
            return super().train(True)

    def model():
        return nn.Sequential(nn.Linear(4, 6), nn.Sequential(nn.ReLU(), Stuck(0.5)), nn.Linear(6, 3))
    culprit = measure(model, X, Y, Gauge("eval_twice"))["eval_twice"]["culprit"]
    assert (culprit["module"], culprit["type"]) == ("1.1", "Stuck") and culprit["made_at"]["line"] == line_of(
        test_a_dropout_module_forced_into_train_mode_is_named_with_its_path, "nn.ReLU(), Stuck")


@pytest.mark.parametrize("model", [Wrong, AlwaysDrops, lambda: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 3))])
def test_asking_leaves_the_training_as_it_was(model):
    def losses(*gauges):
        torch.manual_seed(3)
        with trial(*gauges):
            made = model()
            optimizer = torch.optim.SGD(made.parameters(), 0.1)
            values = []
            for _ in range(4):
                loss = F.cross_entropy(made(X), Y)
                values.append(float(loss))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return values, {k: v.clone() for k, v in made.state_dict().items()}, [m.training for m in made.modules()]
    plain, asked = losses(), losses(Gauge("batch_dependence"), Gauge("eval_twice"), Gauge("initial_loss"))
    assert plain[0] == asked[0] and plain[2] == asked[2]
    assert all(torch.equal(value, asked[1][name]) for name, value in plain[1].items())
