"""Interventions on unmodified programs: each against a twin of the program that was edited by hand to the same effect."""
from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import traceback
from pathlib import Path

import pytest
import torch

from traindx.core.pins import VERIFICATION, VERIFICATION_STEPS, pin_holds
from traindx.core.trials import Budget, Condition, Program, Trace, Trial
from traindx.interventions import kind_of, names
from traindx.perform import perform

os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)


def run_trial(trial: Trial, folder: Path, seconds: float = 60) -> Trace:
    """In a fork of this process, its messages over a pipe."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            tempfile.tempdir = None
            perform(trial, lambda message: os.write(writing, (json.dumps(message) + "\n").encode()), folder)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    guard = threading.Timer(seconds, os.kill, (child, signal.SIGKILL))
    guard.start()
    trace = Trace()
    with os.fdopen(reading) as lines:
        for line in lines:
            trace.take(json.loads(line))
    os.waitpid(child, 0)
    guard.cancel()
    trace.output = (folder / "output.txt").read_text()
    return trace


@pytest.fixture
def act(tmp_path):
    """act(source, *conditions, steps=8, ...) -> Trace; a condition is a name or (name, settings)."""
    def run(source: str, *conditions, steps: int = 8, args: tuple[str, ...] = (), **fields) -> Trace:
        script = tmp_path / "train.py"
        script.write_text(source)
        asked = tuple(Condition(c) if isinstance(c, str) else c if isinstance(c, Condition) else Condition(*c) for c in conditions)
        return run_trial(Trial(Program("train.py", args=args, cwd=str(tmp_path)), asked, budget=Budget(steps=steps), **fields), tmp_path)
    return run


def edited(source: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    return source


def applied(trace: Trace, name: str) -> bool:
    return trace.conditions[name].state == "applied"


LOADER = """
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x, y = torch.randn(64, 5), torch.randint(0, 3, (64,))
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
valid = DataLoader(TensorDataset(x[:8], y[:8]), batch_size=8)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
opt = torch.optim.AdamW([{"params": model[0].parameters()}, {"params": model[3].parameters(), "lr": 0.02}], lr=0.01, weight_decay=0.1)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=[0.1, 0.2], total_steps=40)
for epoch in range(10):
    model.eval()
    with torch.no_grad():
        for a, b in valid:
            F.cross_entropy(model(a), b)
    model.train()
    for a, b in loader:
        loss = F.cross_entropy(model(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
"""


# -- the trial itself -----------------------------------------------------------------------------------------------

def test_the_tracer_tells_steps_validation_and_program(act):
    trace = act(LOADER, steps=6)
    assert [step.step for step in trace.steps] == [1, 2, 3, 4, 5, 6] and trace.ended == "steps"
    assert all(step.loss == step.root and step.samples == 16 and step.grad_norm > 0 and step.moved > 0 for step in trace.steps)
    assert len({step.inputs for step in trace.steps}) == 6
    assert [step for step, _ in trace.validation] == [4]  # the one before the first step belongs to no step
    program = trace.facts["program"]
    assert program["root"] == "Sequential" and program["parameters"] == 5 * 16 + 16 + 16 * 3 + 3
    assert program["batch"] == "loader" and program["dropout"] and program["optimizers"][0]["class"] == "AdamW"
    assert program["losses"] == [{"function": "cross_entropy", "where": "train.py:18", "calls": 6}]


def test_two_trials_are_equal_to_the_last_bit_and_a_reseed_is_another(act):
    first, second, other = act(LOADER), act(LOADER), act(LOADER, reseed=1)
    assert first.losses == second.losses and first.losses != other.losses


def test_an_unseeded_program_repeats_itself_too(act):
    source = edited(LOADER, ("torch.manual_seed(0)", "import numpy as np; rng = np.random.default_rng(); s = float(rng.random())"),
                    ("torch.randn(64, 5)", "s * torch.randn(64, 5)"))
    assert act(source).losses == act(source).losses != act(source, reseed=3).losses


def test_it_runs_as_python_would(act, tmp_path):
    source = """
import os, sys, helper, pickle
class Kept: pass
print(__name__, __file__, sys.argv, sys.path[0] == os.path.realpath(os.getcwd()), helper.VALUE)
pickle.loads(pickle.dumps(Kept()))
sys.exit(3)
"""
    (tmp_path / "helper.py").write_text("VALUE = 7")
    trace = act(source, args=("--epochs", "2"))
    assert trace.output.strip() == "__main__ train.py ['train.py', '--epochs', '2'] True 7"
    assert trace.ended == "script" and trace.error == "SystemExit: 3"


def test_a_module_is_run_with_m(tmp_path):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "go.py").write_text("import sys; print(__name__, sys.argv[1:])")
    trace = run_trial(Trial(Program(None, "pack.go", ("a",), str(tmp_path))), tmp_path)
    assert trace.output.strip() == "__main__ ['a']" and trace.ended == "script"


def test_the_programs_exception_is_told_with_its_line(act):
    trace = act("import torch\n\ndef f():\n    raise ValueError('no data')\nf()\n")
    assert trace.ended == "raised" and trace.error == "ValueError: no data (train.py:4)" and "Traceback" in trace.output


def test_a_stop_runs_nothing_more_of_the_program(act, tmp_path):
    source = LOADER.replace("\nfor epoch", "\nimport atexit\natexit.register(lambda: open('atexit', 'w'))\ntry:\n  for epoch").replace(
        "\n    ", "\n      ") + "finally:\n  open('finally', 'w')\n"
    trace = act(source, steps=3)
    assert trace.ended == "steps" and len(trace.steps) == 3
    assert not (tmp_path / "finally").exists() and not (tmp_path / "atexit").exists()


def test_an_unknown_condition_is_refused_by_name(act):
    trace = act(LOADER, "pin_butch")
    assert trace.ended == "refused" and "pin_butch" in trace.error and "pin_batch" in trace.error
    trace = act(LOADER, ("scale_lr", {"factor": 2}))
    assert trace.ended == "refused" and "factor" in trace.error


def test_every_intervention_is_found_by_its_name():
    for name in names():
        assert kind_of(name).__module__.endswith(name) and kind_of(name).__doc__


# -- rates, decay, dropout ------------------------------------------------------------------------------------------

STEP = "        opt.step()\n"


def test_scale_lr_survives_schedulers_and_groups(act):
    by_hand = edited(LOADER, (STEP, "        for g in opt.param_groups: g['kept'] = g['lr']; g['lr'] = g['lr'] * 0.1\n" + STEP +
                                    "        for g in opt.param_groups: g['lr'] = g['kept']\n"))
    trace = act(LOADER, ("scale_lr", {"k": 0.1}))
    assert trace.losses == act(by_hand).losses != act(LOADER).losses and applied(trace, "scale_lr")
    plain = act(LOADER)
    assert [round(a.lr / b.lr, 6) for a, b in zip(trace.steps, plain.steps)] == [0.1] * 8  # what the step was made with


def test_fix_lr(act):
    by_hand = edited(LOADER, (STEP, "        for g in opt.param_groups: g['lr'] = 0.003\n" + STEP))
    assert act(LOADER, ("fix_lr", {"lr": 0.003})).losses == act(by_hand).losses


def test_no_weight_decay(act):
    trace = act(LOADER, "no_weight_decay")
    assert trace.losses == act(edited(LOADER, ("weight_decay=0.1", "weight_decay=0.0"))).losses
    without = act(edited(LOADER, ("weight_decay=0.1", "weight_decay=0.0")), "no_weight_decay")
    assert without.conditions["no_weight_decay"].state == "not-applicable"


DROPOUTS = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
P = 0.4
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(6, 8, num_layers=2, dropout=P, batch_first=True)
        self.att = nn.MultiheadAttention(8, 2, dropout=P, batch_first=True)
        self.drop = nn.Dropout(P)
        self.out = nn.Linear(8, 3)
    def forward(self, x):
        h, _ = self.rnn(x)
        h = self.att(h, h, h, need_weights=False)[0]
        h = F.scaled_dot_product_attention(h, h, h, dropout_p=P if self.training else 0.0)
        h = torch.dropout(F.dropout(self.drop(h), P, self.training), P, self.training)
        return self.out(h.mean(1))
model = Net()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(10, 5, 6), torch.randint(0, 3, (10,))
for step in range(10):
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
"""


def test_no_dropout_everywhere(act):
    trace = act(DROPOUTS, "no_dropout")
    assert trace.losses == act(edited(DROPOUTS, ("P = 0.4", "P = 0.0"))).losses and applied(trace, "no_dropout")
    assert act(edited(DROPOUTS, ("P = 0.4", "P = 0.0")), "no_dropout").conditions["no_dropout"].state == "not-applicable"


# -- pins -----------------------------------------------------------------------------------------------------------

def pinned(act, source: str, steps: int = VERIFICATION_STEPS, **settings) -> Trace:
    return act(source, ("pin_batch", settings), *VERIFICATION, steps=steps)


HEAD = """
import torch, torch.nn as nn, torch.nn.functional as F, numpy as np, random
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0); np.random.seed(0); random.seed(0)
x, y = torch.randn(200, 5), torch.randint(0, 3, (200,))
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
def train(a, b):
    loss = F.cross_entropy(model(a), b)
    opt.zero_grad(); loss.backward(); opt.step()
"""
STYLES = {
    "loader": ("loader", "for e in range(9):\n    for a, b in DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True): train(a, b)\n"),
    "next_iter": ("loader", "for s in range(99):\n    train(*next(iter(DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True))))\n"),
    "workers": ("loader", "for e in range(9):\n    for a, b in DataLoader(TensorDataset(x, y), 16, shuffle=True, num_workers=1): train(a, b)\n"),
    "torch_draws": ("inputs", "for s in range(99):\n    i = torch.randint(0, 200, (16,))\n    train(x[i], y[i])\n"),
    "generator": ("inputs", "g = torch.Generator().manual_seed(1)\nfor s in range(99):\n"
                            "    i = torch.randint(0, 200, (16,), generator=g)\n    train(x[i], y[i])\n"),
    "numpy_draws": ("inputs", "rng = np.random.default_rng(1)\nfor s in range(99):\n    i = rng.integers(0, 200, 16)\n    train(x[i], y[i])\n"),
    "python_draws": ("inputs", "for s in range(99):\n    i = [random.randrange(200) for _ in range(16)]\n    train(x[i], y[i])\n"),
    "slices": ("inputs", "for s in range(0, 190, 16):\n    train(x[s:s + 16], y[s:s + 16])\n"),
    "hand_made_loss": ("rows", "for rows in torch.randperm(200).split(16):\n    q = F.log_softmax(model(x[rows]), 1)\n"
                               "    loss = -q[torch.arange(len(rows)), y[rows]].mean()\n    opt.zero_grad(); loss.backward(); opt.step()\n"),
    "hand_made_numpy": ("generators", "X, Y = x.numpy(), y.numpy()\nfor s in range(99):\n    rows = np.random.randint(0, 200, 16)\n"
                                      "    q = F.log_softmax(model(torch.from_numpy(X[rows])), 1)\n"
                                      "    loss = -q[range(16), torch.from_numpy(Y[rows])].mean()\n"
                                      "    opt.zero_grad(); loss.backward(); opt.step()\n"),
    "constant": ("constant", "for s in range(99): train(x, y)\n"),
}


@pytest.mark.parametrize("style", STYLES)
def test_the_batch_is_held(act, style):
    how, loop = STYLES[style]
    trace = pinned(act, HEAD + loop)
    assert pin_holds(trace)[0], pin_holds(trace)
    assert trace.conditions["pin_batch"].how == how


@pytest.mark.parametrize("style", ["loader", "torch_draws", "slices", "hand_made_loss"])
def test_a_few_samples_fill_the_batch(act, style):
    trace = pinned(act, HEAD + STYLES[style][1], samples=2)
    assert pin_holds(trace)[0], pin_holds(trace)
    assert trace.steps[-1].samples == 16
    learns = act(HEAD + STYLES[style][1], ("pin_batch", {"samples": 2}), ("fix_lr", {"lr": 1.0}), steps=12)
    assert learns.losses[-1] < 0.1 < act(HEAD + STYLES[style][1], ("fix_lr", {"lr": 1.0}), steps=12).losses[-1]


def test_the_pinned_run_is_the_run_on_the_first_batch(act):
    by_hand = HEAD + "first = next(iter(DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)))\nfor s in range(99): train(*first)\n"
    assert act(HEAD + STYLES["loader"][1], "pin_batch").losses == act(by_hand).losses


def test_validation_is_left_alone(act):
    source = edited(LOADER, ("model.eval()\n", "model.eval()\n    print(epoch)\n"))
    trace, plain = act(source, ("pin_batch", {}), *VERIFICATION, steps=9), act(source, *VERIFICATION, steps=9)
    assert pin_holds(trace)[0] and trace.validation == plain.validation and len(trace.validation) == 2


def test_a_half_pin_is_refused(act):
    """The model draws its input itself: the target can be held, the input cannot."""
    source = HEAD + """
class Draws(nn.Module):
    def __init__(self):
        super().__init__(); self.inner = nn.Linear(5, 3)
    def forward(self, rows): return self.inner(self.table[torch.randint(0, 200, (16,))])
model = Draws(); model.table = x
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for s in range(99):
    i = torch.randint(0, 200, (16,))
    train(i, y[i])
"""
    trace = pinned(act, source, way="inputs")
    assert trace.facts["program"]["noise"]
    by_hand = HEAD + "for s in range(99):\n    W = model[0].weight; i = torch.randint(0, 200, (16,))\n" \
                     "    loss = F.cross_entropy(F.linear(x[i], W)[:, :3], y[i])\n    opt.zero_grad(); loss.backward(); opt.step()\n"
    held, why = pin_holds(pinned(act, by_hand, way="inputs"))
    assert not held, why


def test_accumulation_holds_every_micro_batch(act):
    loop = """
for s, i in enumerate(torch.randint(0, 200, (99, 8))):
    (F.cross_entropy(model(x[i]), y[i]) / 3).backward()
    if s % 3 == 2: opt.step(); opt.zero_grad()
"""
    trace = pinned(act, HEAD + loop)
    assert pin_holds(trace)[0] and trace.steps[-1].samples == 24 and trace.facts["program"]["backwards_per_step"] == 3
    assert abs(trace.steps[0].root * 3 - trace.steps[0].loss) < 1e-6


def test_a_gan_is_refused(act):
    source = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
G, D = nn.Linear(2, 2), nn.Linear(2, 1)
g, d = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (G, D))
for step in range(20):
    real, fake = torch.randn(8, 2), G(torch.randn(8, 2))
    loss = F.binary_cross_entropy_with_logits(D(torch.cat([real, fake.detach()])), torch.cat([torch.ones(8, 1), torch.zeros(8, 1)]))
    d.zero_grad(); loss.backward(); d.step()
    loss = F.binary_cross_entropy_with_logits(D(fake), torch.ones(8, 1))
    g.zero_grad(); loss.backward(); g.step()
"""
    trace = pinned(act, source)
    held, why = pin_holds(trace)
    assert not held and "take turns" in why.en and trace.conditions["pin_batch"].state == "not-applicable"


def test_nothing_is_left_on_torch_or_python(tmp_path):
    """Everything that can be patched is the same object before and after; in a child, for a trial may change its process."""
    import random

    import numpy as np
    script = tmp_path / "train.py"
    script.write_text(LOADER.replace("range(10)", "range(1)"))

    def seen() -> list:
        owners = (torch, torch.Tensor, torch.nn.functional, torch.nn.Module, torch.optim.Optimizer, torch.autograd, torch.nn.utils,
                  torch.utils.data.DataLoader, torch.autocast, torch.amp.GradScaler, torch.nn.LSTM, random, np.random)
        return [(owner, name, id(value)) for owner in owners for name, value in vars(owner).items() if callable(value)]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            before = seen()
            conditions = tuple(Condition(name, SETTINGS.get(name, {})) for name in names())
            perform(Trial(Program(str(script), cwd=str(tmp_path)), conditions, budget=Budget(steps=100)), lambda message: None, tmp_path)
            status = 0 if seen() == before else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


SETTINGS = {"scale_lr": {"k": 0.5}, "fix_lr": {"lr": 0.01}}
