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
import torch._dynamo  # else every child imports it at its first optimizer

from traindx.core.pins import VERIFICATION, VERIFICATION_STEPS, pin_holds, pins
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
    assert trace.output.strip() == f"__main__ {tmp_path / 'train.py'} ['train.py', '--epochs', '2'] True 7"
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


def test_fix_lr_can_rise_step_by_step(act):
    rates = [step.lr for step in act(LOADER, ("fix_lr", {"lr": 1e-4, "factor": 2.0})).steps]
    assert rates[:5] == pytest.approx([1e-4, 2e-4, 4e-4, 8e-4, 16e-4])


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


def test_what_acts_inside_compiled_code_is_not_said_to_be_seen(act):
    source = edited(LOADER, ("opt =", "model = torch.compile(model, backend='eager')\nopt ="), ("model[0]", "model._orig_mod[0]"), ("model[3]", "model._orig_mod[3]"))
    trace, plain = act(source, "no_dropout"), act(edited(LOADER, ("nn.Dropout(0.3)", "nn.Dropout(0.0)")))
    assert trace.losses == pytest.approx(plain.losses, rel=1e-5) and trace.conditions["no_dropout"].state == "unverified", trace.output


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


def test_few_samples_of_a_batch_that_was_taken_once(act):
    trace = pinned(act, HEAD + "first = next(iter(DataLoader(TensorDataset(x, y), batch_size=16)))\nfor s in range(99): train(*first)\n", samples=1)
    assert pin_holds(trace)[0] and trace.conditions["pin_batch"].how == "inputs" and trace.steps[-1].inputs != trace.steps[0].inputs


def test_noise_in_the_loop_is_frozen(act):
    source = HEAD + "for e in range(9):\n    for a, b in DataLoader(TensorDataset(x, y), 16, shuffle=True): train(a + torch.randn(a.shape), b)\n"
    assert not pin_holds(pinned(act, source))[0]
    held = [conditions for conditions in pins() if pin_holds(act(source, *conditions, *VERIFICATION, steps=VERIFICATION_STEPS))[0]]
    assert [c.name for c in held[0]] == ["pin_batch", "freeze_noise"]


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
    assert trace.facts["program"]["noise"]  # hashes alone decide: what the model draws for itself is its own affair
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


SETTINGS = {"scale_lr": {"k": 0.5}, "fix_lr": {"lr": 0.01}, "clip": {"norm": 1.0}, "precision": {"to": "fp32"}, "force_mode": {"to": "eval"},
            "scale_inputs": {"k": 2}, "ignore_index": {"index": 1}, "class_weights": {"to": "none"},
            "scale_weights": {"k": 2}}


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




# -- gradients and steps --------------------------------------------------------------------------------------------

PLAIN = HEAD + """
for s in range(99):
    i = torch.randint(0, 200, (16,))
    loss = F.cross_entropy(model(x[i]), y[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def assert_same_as(act, source: str, name: str, by_hand: str, settings: dict | None = None, **options) -> Trace:
    """The condition acts as the twin does, and the plain program differs from both."""
    trace, twin, plain = act(source, (name, settings or {}), **options), act(by_hand, **options), act(source, **options)
    assert trace.losses == twin.losses, (trace.losses, twin.losses, trace.output)
    assert trace.losses != plain.losses and applied(trace, name), trace.conditions
    return trace


def not_applicable(act, source: str, name: str, settings: dict | None = None) -> bool:
    trace, plain = act(source, (name, settings or {})), act(source)
    return trace.conditions[name].state == "not-applicable" and bool(trace.conditions[name].why.en) and trace.losses == plain.losses


def test_force_zero_grad(act):
    assert_same_as(act, edited(PLAIN, ("    opt.zero_grad()\n", "")), "force_zero_grad", PLAIN)
    assert not_applicable(act, PLAIN, "force_zero_grad")


def test_ignore_zero_grad_before_step(act):
    source = edited(PLAIN, ("    opt.zero_grad()\n", ""), ("    loss.backward()\n", "    loss.backward()\n    opt.zero_grad()\n"))
    assert_same_as(act, source, "ignore_zero_grad_before_step", edited(source, ("    opt.zero_grad()\n", "")))
    assert not_applicable(act, PLAIN, "ignore_zero_grad_before_step")


def test_step_after_backward(act):
    source = edited(PLAIN, ("    opt.step()\n", ""), ("    opt.zero_grad()\n", ""))
    trace, plain = act(source, "step_after_backward"), act(source, steps=12)
    assert applied(trace, "step_after_backward") and all(step.moved > 0 for step in trace.steps)
    assert plain.losses and not any(step.moved for step in plain.steps)  # backwards became the clock
    assert not_applicable(act, PLAIN, "step_after_backward")


def test_what_changes_gradients_waits_for_a_closure(act):
    """As in Lightning, where the backward lies inside the step."""
    source = edited(PLAIN, ("    loss =", "    def closure():\n      loss ="), ("    opt.zero_grad()\n    loss.backward()\n    opt.step()\n",
                    "      opt.zero_grad()\n      loss.backward()\n      return loss\n    opt.step(closure)\n"))
    trace = act(source, ("clip", {"norm": 0.05}))
    assert trace.losses == act(PLAIN, ("clip", {"norm": 0.05})).losses and trace.steps[0].grad_norm == pytest.approx(0.05, rel=1e-3)
    assert act(source).losses == act(PLAIN).losses and act(source).steps[0].grad_norm == act(PLAIN).steps[0].grad_norm


def test_average_accumulation(act):
    source = edited(PLAIN, ("    opt.zero_grad()\n", ""), ("    opt.step()\n", "    if s % 4 == 3: opt.step(); opt.zero_grad()\n"))
    trace, twin = act(source, "average_accumulation"), act(edited(source, ("loss.backward()", "(loss / 4).backward()")))
    assert trace.losses == pytest.approx(twin.losses, rel=1e-5) and applied(trace, "average_accumulation")
    assert not_applicable(act, PLAIN, "average_accumulation")


def test_include_missing_parameters(act):
    source = edited(PLAIN, ("model.parameters()", "model[2].parameters()"))
    trace = act(source, "include_missing_parameters")
    assert trace.losses == act(edited(source, ("model[2].parameters()", "[*model[2].parameters(), *model[0].parameters()]"))).losses
    assert applied(trace, "include_missing_parameters") and not_applicable(act, PLAIN, "include_missing_parameters")
    head = edited(PLAIN, ("    loss =", "    if s == 3: model[2] = nn.Linear(16, 3)\n    loss ="))
    by_hand = edited(head, ("model[2] = nn.Linear(16, 3)", "model[2] = nn.Linear(16, 3); opt.param_groups[0]['params'].extend(model[2].parameters())"))
    assert_same_as(act, head, "include_missing_parameters", by_hand)


def test_flip_loss_sign(act):
    assert_same_as(act, PLAIN, "flip_loss_sign", edited(PLAIN, ("loss.backward()", "(-loss).backward()")))


def test_clip_on_and_off(act):
    clipped = edited(PLAIN, ("    opt.step()\n", "    nn.utils.clip_grad_norm_(model.parameters(), 0.05)\n    opt.step()\n"))
    assert_same_as(act, PLAIN, "clip", clipped, {"norm": 0.05})
    assert_same_as(act, clipped, "clip", PLAIN, {"norm": None})
    assert not_applicable(act, PLAIN, "clip", {"norm": None}) and not_applicable(act, PLAIN, "clip", {"norm": 1e6})


def test_clip_before_step(act):
    late = edited(PLAIN, ("    opt.step()\n", "    opt.step()\n    nn.utils.clip_grad_norm_(model.parameters(), 0.05)\n"))
    right = edited(PLAIN, ("    opt.step()\n", "    if s: nn.utils.clip_grad_norm_(model.parameters(), 0.05)\n    opt.step()\n"))
    assert_same_as(act, late, "clip_before_step", right)  # the limit is known from the first call on, which comes after the first step
    assert not_applicable(act, PLAIN, "clip_before_step")


SCALED = edited(PLAIN, ("for s in", "scaler = torch.amp.GradScaler('cpu', init_scale=1024.0)\nfor s in"),
                ("loss.backward()", "scaler.scale(loss).backward()"), ("    opt.step()\n", """
    nn.utils.clip_grad_norm_(model.parameters(), 0.05)
    scaler.step(opt)
    scaler.update()
"""))


def test_unscale_before_clip_and_the_scale_in_the_trace(act):
    by_hand = edited(SCALED, ("    nn.utils", "    scaler.unscale_(opt)\n    nn.utils"))
    trace, twin = act(SCALED, "unscale_before_clip"), act(by_hand)
    assert trace.losses == pytest.approx(twin.losses, rel=1e-5) and trace.losses != pytest.approx(act(SCALED).losses, rel=1e-3)
    assert applied(trace, "unscale_before_clip") and not_applicable(act, by_hand, "unscale_before_clip")
    assert trace.steps[0].scale == 1024.0 and trace.steps[0].root == 1024 * trace.steps[0].loss
    assert trace.facts["program"]["scaler"] and trace.facts["program"]["clipping"]["limit"] == 0.05


# -- losses and inputs ----------------------------------------------------------------------------------------------

def test_logits_instead_of_probabilities(act):
    source = edited(PLAIN, ("model(x[i])", "model(x[i]).softmax(1)"))
    trace = act(source, "logits_instead_of_probabilities")
    assert trace.losses == pytest.approx(act(PLAIN).losses, rel=1e-5) and applied(trace, "logits_instead_of_probabilities")
    twice = edited(PLAIN, ("F.cross_entropy(model(x[i]), y[i])",
                           "F.binary_cross_entropy_with_logits(model(x[i])[:, 0].sigmoid(), (y[i] > 0).float())"))
    trace = act(twice, "logits_instead_of_probabilities")
    assert trace.losses == pytest.approx(act(edited(twice, (".sigmoid()", ""))).losses, rel=1e-5)
    by_hand = edited(PLAIN, ("F.cross_entropy(model(x[i]), y[i])", "-F.log_softmax(model(x[i]).softmax(1), 1)[range(16), y[i]].mean()"))
    trace = act(by_hand, "logits_instead_of_probabilities")
    assert trace.losses == pytest.approx(act(PLAIN).losses, rel=1e-5) and applied(trace, "logits_instead_of_probabilities")
    twice = edited(PLAIN, ("F.cross_entropy(model(x[i]), y[i])", "(model(x[i])[:, 0].sigmoid().sigmoid() - (y[i] > 0).float()).square().mean()"))
    trace = act(twice, "logits_instead_of_probabilities")
    assert trace.losses == pytest.approx(act(edited(twice, (".sigmoid().sigmoid()", ".sigmoid()"))).losses, rel=1e-4)
    assert not_applicable(act, PLAIN, "logits_instead_of_probabilities")


def test_log_softmax_first(act):
    source = edited(PLAIN, ("F.cross_entropy", "F.nll_loss"))
    assert_same_as(act, source, "log_softmax_first", edited(PLAIN, ("F.cross_entropy(model(x[i])", "F.nll_loss(model(x[i]).log_softmax(1)")))
    assert not_applicable(act, PLAIN, "log_softmax_first")


def test_mean_reduction(act):
    source = edited(PLAIN, ("y[i])\n", "y[i], reduction='sum')\n"))
    assert_same_as(act, source, "mean_reduction", PLAIN)


def test_class_weights_and_ignore_index(act):
    weighted = edited(PLAIN, ("y[i])\n", "y[i], weight=torch.tensor([2., 0.5, 0.5]))\n"))
    assert_same_as(act, weighted, "class_weights", PLAIN, {"to": "none"})
    assert_same_as(act, weighted, "class_weights", edited(weighted, ("[2., 0.5, 0.5]", "[1/3, 4/3, 4/3]")), {"to": "inverted"})
    assert_same_as(act, PLAIN, "ignore_index", edited(PLAIN, ("y[i])\n", "y[i], ignore_index=1)\n")), {"index": 1})


REGRESSION = edited(PLAIN, ("F.cross_entropy(model(x[i]), y[i])", "F.mse_loss(model(x[i])[:, 0], t[i])"),
                    ("for s in", "t = x @ torch.arange(5.) * 300 + 5000\nopt = torch.optim.SGD(model.parameters(), lr=1e-4)\nfor s in"))


def test_standardise_target(act):
    by_hand = edited(REGRESSION, ("    loss =", "    if s == 0: m, d = t[i].mean(0), t[i].std(0)\n    loss ="), ("t[i])\n", "(t[i] - m) / d)\n"))
    trace = assert_same_as(act, REGRESSION, "standardise_target", by_hand)
    assert trace.facts["standardise_target"]["mean"] > 1000 and not_applicable(act, PLAIN, "standardise_target")


def test_squeeze_operand(act):
    source = edited(REGRESSION, ("model(x[i])[:, 0]", "model(x[i])[:, :1]"), ("t[i])", "(t[i] - 5000) / 300)"))
    right = edited(source, ("model(x[i])[:, :1]", "model(x[i])[:, 0]"))
    assert act(source, "squeeze_operand").losses == pytest.approx(act(right).losses, rel=1e-5)
    by_hand = edited(source, ("F.mse_loss(", "((lambda a, b: ((a - b) ** 2).mean())("), ("/ 300)\n", "/ 300))\n"))
    line = next(n for n, text in enumerate(by_hand.splitlines(), 1) if "lambda" in text)
    trace = act(by_hand, ("squeeze_operand", {"lines": [["train.py", line]]}))
    assert trace.losses == pytest.approx(act(right).losses, rel=1e-5) and applied(trace, "squeeze_operand")
    assert act(by_hand, ("squeeze_operand", {"lines": [["train.py", 1]]})).conditions["squeeze_operand"].state == "not-applicable"
    assert not_applicable(act, PLAIN, "squeeze_operand")


def test_inputs_zeroed_scaled_and_random(act):
    assert_same_as(act, PLAIN, "zero_inputs", edited(PLAIN, ("model(x[i])", "model(0 * x[i])")))
    assert_same_as(act, PLAIN, "scale_inputs", edited(PLAIN, ("model(x[i])", "model(3 * x[i])")), {"k": 3})
    trace = act(PLAIN, "random_inputs")
    assert applied(trace, "random_inputs") and trace.losses != act(PLAIN).losses
    tokens = edited(PLAIN, ("model(x[i])", "model(y[i])"), ("for s in", "model = nn.Embedding(3, 3)\nfor s in"))
    assert len({step.inputs for step in act(tokens, "zero_inputs").steps}) == 1


def test_normalise_inputs(act):
    source = edited(PLAIN, ("model(x[i])", "model(100 * x[i] + 70)"))
    by_hand = edited(source, ("    loss =", "    v = 100 * x[i] + 70\n    if s == 0: m, d = v.mean(0, keepdim=True), v.std(0, keepdim=True)\n    loss ="),
                     ("model(100 * x[i] + 70)", "model((v - m) / d)"))
    assert_same_as(act, source, "normalise_inputs", by_hand)


def test_permute_labels(act):
    by_hand = edited(PLAIN, ("    loss =", "    p = torch.randperm(16, generator=torch.Generator().manual_seed(0))\n    loss ="), ("y[i])\n", "y[i][p])\n"))
    assert_same_as(act, PLAIN, "permute_labels", by_hand)
    trace = act(HEAD + STYLES["torch_draws"][1], "pin_batch", ("permute_labels", {"way": "random"}))
    assert len({step.target for step in trace.steps}) > 1 and len({step.inputs for step in trace.steps}) == 1


def test_force_mode(act):
    forgot = edited(LOADER, ("    model.eval()\n", ""))
    trace, twin = act(forgot, ("force_mode", {"to": "eval"})), act(LOADER)
    assert trace.validation == twin.validation and trace.losses == twin.losses and applied(trace, "force_mode")
    assert act(forgot, ("force_mode", {"to": "train"})).conditions["force_mode"].state == "not-applicable"
    late = edited(LOADER, ("    model.train()\n", "    if epoch == 0: model.train()\n"))
    trace = act(late, ("force_mode", {"to": "train"}))
    assert trace.losses == act(LOADER).losses != act(late).losses and applied(trace, "force_mode")


# -- schedules, precision, data -------------------------------------------------------------------------------------

def test_schedulers(act):
    no_scheduler = act(LOADER, "scheduler_off")
    assert {round(step.lr, 9) for step in no_scheduler.steps} == {0.008} and applied(no_scheduler, "scheduler_off")  # max_lr / 25
    assert {step.lr for step in act(LOADER, ("scheduler_off", {"at": "peak"})).steps} == {0.2}
    assert_same_as(act, LOADER, "scheduler_every", edited(LOADER, ("        sched.step()", "    sched.step()")))
    early = edited(PLAIN, ("for s in", "sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)\nfor s in"), ("    opt.zero_grad()\n", "    opt.zero_grad(); sched.step()\n"))
    assert act(early, "scheduler_after_step").steps[0].lr == 0.1 and act(early).steps[0].lr == 0.05
    assert not_applicable(act, PLAIN, "scheduler_off")


def test_precision(act):
    source = edited(PLAIN, ("    loss = F.cross_entropy(model(x[i]), y[i])", "    with torch.autocast('cpu', torch.float16):\n        loss = F.cross_entropy(model(x[i]), y[i])"))
    assert_same_as(act, source, "precision", PLAIN, {"to": "fp32"})
    assert_same_as(act, source, "precision", PLAIN, {"to": "no_autocast"})
    assert_same_as(act, source, "precision", edited(source, ("float16", "bfloat16")), {"to": "bf16"})
    half = edited(PLAIN, ("for s in", "model.bfloat16(); x = x.to(torch.bfloat16)\nfor s in"))
    assert_same_as(act, half, "precision", PLAIN, {"to": "fp32"})
    assert act(source).facts["program"]["autocast"] == "float16"
    assert not_applicable(act, PLAIN, "precision", {"to": "fp32"})


def test_shuffle_in_training_only(act):
    source = edited(LOADER, ("shuffle=True", "shuffle=False"))
    by_hand = edited(LOADER, ("shuffle=True", "sampler=torch.utils.data.RandomSampler(x, generator=torch.Generator().manual_seed(0))"))
    trace, plain = act(source, "shuffle"), act(source)
    assert applied(trace, "shuffle") and trace.steps[0].inputs != plain.steps[0].inputs and trace.validation
    assert trace.steps[0].samples == 16 and act(by_hand).ended == "steps"
    assert not_applicable(act, LOADER, "shuffle")


def test_freeze_augmentation(act):
    source = HEAD + """
class Noisy(torch.utils.data.Dataset):
    def __len__(self): return 200
    def __getitem__(self, i): return x[i] + torch.randn(5) + random.random() + np.random.rand(), y[i]
for e in range(9):
    for a, b in DataLoader(Noisy(), batch_size=100): train(a, b)
"""
    trace, plain = act(source, "freeze_augmentation"), act(source)
    assert len({step.inputs for step in trace.steps}) == 2 < len({step.inputs for step in plain.steps})
    assert applied(trace, "freeze_augmentation") and not_applicable(act, HEAD + STYLES["loader"][1], "freeze_augmentation")


def test_leaky_relu_reinit_and_optimizer_state(act):
    assert_same_as(act, PLAIN, "leaky_relu", edited(PLAIN, ("nn.ReLU()", "nn.LeakyReLU()")))
    zero = edited(PLAIN, ("for s in", "nn.init.zeros_(model[0].weight)\nfor s in"))
    trace = act(zero, ("reinit", {"scheme": "he"}))
    assert applied(trace, "reinit") and trace.losses != act(zero).losses and trace.steps[3].inputs == act(zero).steps[3].inputs
    anew = edited(PLAIN, ("    opt.zero_grad()\n", "    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)\n    opt.zero_grad()\n"))
    assert_same_as(act, anew, "keep_optimizer_state", edited(PLAIN, ("lr=0.1", "lr=0.1, momentum=0.9")))


def test_frozen_in_eval(act):
    source = edited(PLAIN, ("for s in", "front = nn.Sequential(nn.Linear(5, 5), nn.BatchNorm1d(5), nn.Dropout(0.5)).requires_grad_(False)\n"
                                        "model = nn.Sequential(front, *model)\nfor s in"))
    assert_same_as(act, source, "frozen_in_eval", edited(source, ("    loss =", "    front.eval()\n    loss =")))
    assert not_applicable(act, PLAIN, "frozen_in_eval")


def test_group_norm(act):
    source = edited(PLAIN, ("nn.ReLU()", "nn.BatchNorm1d(16), nn.ReLU()"))
    assert_same_as(act, source, "group_norm", edited(source, ("nn.BatchNorm1d(16)", "nn.GroupNorm(8, 16)")))


def test_scale_weights_and_finite_inputs(act):
    by_hand = edited(PLAIN, ("for s in", "with torch.no_grad(): model[2].weight.mul_(0.1); model[2].bias.mul_(0.1)\nfor s in"))
    assert_same_as(act, PLAIN, "scale_weights", by_hand, {"k": 0.1})
    assert not_applicable(act, PLAIN, "scale_weights", {"k": 0.1, "layer": "head"})
    broken = edited(PLAIN, ("for s in", "x[::7, 2] = float('nan')\nfor s in"))
    trace = act(broken, "finite_inputs")
    assert trace.losses == act(edited(broken, ("float('nan')", "0"))).losses and applied(trace, "finite_inputs")
    assert not_applicable(act, PLAIN, "finite_inputs")


# -- frameworks -----------------------------------------------------------------------------------------------------

LIGHTNING = """
import torch, torch.nn as nn, torch.nn.functional as F, logging, warnings
warnings.filterwarnings("ignore"); logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning as L
from torch.utils.data import DataLoader, TensorDataset
L.seed_everything(0, verbose=False)
class Net(L.LightningModule):
    def __init__(self):
        super().__init__(); self.net = nn.Sequential(nn.Linear(5, 16), nn.Dropout(0.2), nn.ReLU(), nn.Linear(16, 3))
    def training_step(self, batch, i): return F.cross_entropy(self.net(batch[0]), batch[1])
    def validation_step(self, batch, i): self.log("v", F.cross_entropy(self.net(batch[0]), batch[1]))
    def configure_optimizers(self): return torch.optim.Adam(self.parameters(), lr=0.02)
x, y = torch.randn(96, 5), torch.randint(0, 3, (96,))
L.Trainer(max_epochs=9, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
          accelerator="cpu").fit(Net(), DataLoader(TensorDataset(x, y), 16, shuffle=True), DataLoader(TensorDataset(x[:32], y[:32]), 16))
"""
TRAINER = """
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed
set_seed(0)
model = BertForSequenceClassification(BertConfig(vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16))
data = [{"input_ids": torch.randint(0, 30, (6,)), "labels": i % 2} for i in range(64)]
args = TrainingArguments("out", per_device_train_batch_size=8, gradient_accumulation_steps=ACC, max_steps=60, report_to="none", save_strategy="no",
                         disable_tqdm=True, use_cpu=True, learning_rate=1e-3)
Trainer(model, args, train_dataset=data).train()
"""


def test_lightning(act):
    trace = pinned(act, LIGHTNING)
    assert pin_holds(trace)[0], (pin_holds(trace), trace.output)
    program = trace.facts["program"]
    assert program["root"] == "Sequential" and "lightning" in program["frameworks"]
    tenth, plain = act(LIGHTNING, ("scale_lr", {"k": 0.1})), act(LIGHTNING)
    assert tenth.steps[2].moved == pytest.approx(plain.steps[2].moved / 10, rel=0.3) and plain.validation


@pytest.mark.parametrize("accumulation", [1, 2])
def test_transformers(act, accumulation):
    source = edited(TRAINER, ("ACC", str(accumulation)))
    trace = pinned(act, source)
    assert pin_holds(trace)[0], (pin_holds(trace), trace.output)
    assert 0.5 < trace.losses[0] < 1.2 and "transformers" in trace.facts["program"]["frameworks"]
    assert trace.steps[0].samples == 8 * accumulation


COPIED = """
import copy
order, other = torch.Generator().manual_seed(torch.initial_seed() % 2**32 + 55_555), copy.deepcopy(model)
with torch.no_grad():
    for p in other.parameters(): p.copy_(p.reshape(-1)[torch.randperm(p.numel(), generator=order)].view_as(p))
opt.param_groups[0]["params"].extend(other.parameters())
"""


def test_twice_the_width(act):
    wider = ("model(x[i])", "model(x[i]) + other(x[i])")
    assert_same_as(act, PLAIN, "widen", edited(PLAIN, ("\nfor s in", COPIED + "for s in"), wider))
    cleared = edited(PLAIN, ("opt.zero_grad()", "model.zero_grad()"),
                     ("    opt.step()", "    nn.utils.clip_grad_norm_(model.parameters(), 0.05)\n    opt.step()"))
    by_hand = edited(cleared, ("\nfor s in", COPIED + "for s in"), wider, ("model.zero_grad()", "opt.zero_grad()"),
                     ("model.parameters(), 0.05", "[*model.parameters(), *other.parameters()], 0.05"))
    assert_same_as(act, cleared, "widen", by_hand)


def test_a_wider_model_leaves_the_program_its_random_numbers(act):
    """Batches are drawn between dropouts: with a rate of 0 nothing but the outputs tells the two apart."""
    source = edited(PLAIN, ("nn.ReLU()", "nn.ReLU(), nn.Dropout(0.5)"), ("    opt.step()", "    opt.step()\n    print(i[:4].tolist())"))
    wider, plain = act(source, "widen"), act(source)
    assert applied(wider, "widen") and wider.losses != plain.losses and wider.output == plain.output


def test_what_cannot_be_made_wider(act):
    pair = edited(PLAIN, ("model(x[i])", "model(x[i])[0]"), ("for s in", "model = type('Two', (nn.Module,), {'__init__': lambda m, n: (nn.Module.__init__(m), "
                  "setattr(m, 'n', n))[0], 'forward': lambda m, x: (m.n(x), x)})(model)\nfor s in"))
    trace = act(pair, "widen")
    assert "outputs cannot be added" in trace.conditions["widen"].why.en and trace.losses == act(pair).losses
    by_hand = edited(PLAIN, ("opt = torch.optim.SGD(model.parameters(), lr=0.1)\n", ""), ("opt.zero_grad()", "model.zero_grad()"),
                     ("opt.step()", "[p.data.sub_(0.1 * p.grad) for p in model.parameters()]"))
    assert not_applicable(act, by_hand, "widen")
