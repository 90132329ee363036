"""What ``traindx speed`` switches on and off, each against a twin of the program that was edited by hand to the same effect."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from speed_driver import forked
from test_interventions import act, applied, edited  # noqa: F401
from traindx.core.trials import Budget, Condition, Gauge, Program, Trial

LOADER = """
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
data = TensorDataset(torch.randn(96, 3, 4, 4), torch.arange(96) % 3)
loader = DataLoader(data, batch_size=4)
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))
opt = torch.optim.AdamW(net.parameters(), lr=0.01)
for epoch in range(1):
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("loss", loss.item())
"""
LISTED = ("    for x, y in loader:", "    batches = list(loader)\n    for x, y in ORDER:")


def close(one, other, tolerance=1e-6):
    assert len(one.losses) == len(other.losses) and one.losses
    assert one.losses == pytest.approx(other.losses, rel=tolerance)


def test_fused_and_foreach_steps(act):  # noqa: F811
    for kernel in ("fused", "foreach"):
        changed = act(LOADER, ("optimizer_kernel", {"to": kernel}), steps=8)
        assert applied(changed, "optimizer_kernel")
        close(changed, act(edited(LOADER, ("lr=0.01", f"lr=0.01, {kernel}=True")), steps=8), 0)
    same = act(edited(LOADER, ("lr=0.01", "lr=0.01, fused=True")), ("optimizer_kernel", {"to": "fused"}), steps=3)
    assert same.conditions["optimizer_kernel"].state == "not-applicable"


def test_channels_last(act):  # noqa: F811
    twin = edited(LOADER, ("opt = ", "net = net.to(memory_format=torch.channels_last)\nopt = "),
                  ("net(x)", "net(x.to(memory_format=torch.channels_last))"))
    changed = act(LOADER, "channels_last", steps=6)
    assert applied(changed, "channels_last")
    close(changed, act(twin, steps=6))
    flat = edited(LOADER, ("nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3)", "nn.Flatten(), nn.Linear(48, 3)"))
    assert act(flat, "channels_last", steps=2).conditions["channels_last"].state == "not-applicable"


def test_bfloat16_autocast(act):  # noqa: F811
    twin = edited(LOADER, ("        loss = F.", "        with torch.autocast('cpu', torch.bfloat16):\n            loss = F."))
    changed = act(LOADER, "autocast_bf16", steps=6)
    assert applied(changed, "autocast_bf16")
    close(changed, act(twin, steps=6), 0)
    assert act(twin, "autocast_bf16", steps=2).conditions["autocast_bf16"].state == "not-applicable"


def test_a_larger_batch(act):  # noqa: F811
    order = "[batches[0], *[tuple(map(torch.cat, zip(batches[i], batches[i + 1]))) for i in range(1, 21, 2)]]"
    changed = act(LOADER, ("larger_batch", {"times": 2}), steps=6)  # from the second step on: the first shows what is trained on
    assert applied(changed, "larger_batch") and [step.samples for step in changed.steps] == [4, 8, 8, 8, 8, 8]
    close(changed, act(edited(LOADER, (LISTED[0], LISTED[1].replace("ORDER", order))), steps=6))


def test_batches_are_held_and_given_again(act):  # noqa: F811
    order = "[batches[i] for i in [*range(9), 1, 2, 3, 4, 5, 6, 7, 8, 1]]"
    changed = act(LOADER, "hold_batch", steps=18)
    assert applied(changed, "hold_batch")
    close(changed, act(edited(LOADER, (LISTED[0], LISTED[1].replace("ORDER", order))), steps=18), 0)


def test_held_batches_can_be_larger_and_survive_a_program_that_writes_into_them(act):  # noqa: F811
    larger = act(LOADER, ("hold_batch", {"times": 3}), steps=12)
    assert [step.samples for step in larger.steps][-3:] == [12, 12, 12]
    writing = edited(LOADER, ("        loss = F.", "        x.mul_(2)\n        loss = F."))
    order = "[[t.clone() for t in batches[i]] for i in [*range(9), 1, 2, 3, 4, 5, 6, 7, 8, 1]]"
    close(act(writing, "hold_batch", steps=18), act(edited(writing, (LISTED[0], LISTED[1].replace("ORDER", order))), steps=18), 0)


def test_a_loader_with_other_settings(act):  # noqa: F811
    order = "[batches[i] for i in [0, *range(7)]]"
    twin = act(edited(LOADER, (LISTED[0], LISTED[1].replace("ORDER", order))), steps=8)
    for settings in ({"workers": 0}, {"workers": 1, "prefetch": 4}):
        changed = act(LOADER, ("loader_settings", settings), steps=8)
        assert applied(changed, "loader_settings")
        close(changed, twin, 0)


def test_a_loader_that_only_its_iterator_keeps_alive(act):  # noqa: F811
    order = "[batches[i] for i in [0, *range(7)]]"
    twin = act(edited(LOADER, (LISTED[0], LISTED[1].replace("ORDER", order))), steps=8)
    source = edited(LOADER, ("loader = DataLoader(data, batch_size=4)\n", ""), ("in loader:", "in DataLoader(data, batch_size=4):"))
    changed = act(source, ("loader_settings", {"workers": 1}), steps=8)
    assert applied(changed, "loader_settings")
    close(changed, twin, 0)


def test_an_epoch_that_does_not_end(act):  # noqa: F811
    changed = act(LOADER, "extend_epochs", steps=30)
    order = "[*batches, *batches]"
    assert len(changed.steps) == 30 and len(act(LOADER, steps=30).steps) == 24
    close(changed, act(edited(LOADER, (LISTED[0], LISTED[1].replace("ORDER", order))), steps=30), 0)


def test_an_epoch_of_persistent_workers_does_not_end_either(act):  # noqa: F811
    kept = edited(LOADER, ("batch_size=4", "batch_size=4, num_workers=1, persistent_workers=True"))
    changed = act(kept, "extend_epochs", steps=30)
    order = "[*batches, *batches]"
    assert len(changed.steps) == 30
    close(changed, act(edited(LOADER, (LISTED[0], LISTED[1].replace("ORDER", order))), steps=30), 0)


def test_logging_and_reads_left_out(act):  # noqa: F811
    quiet = act(LOADER, "skip_logging", steps=5)
    assert applied(quiet, "skip_logging") and "loss" not in quiet.output
    old = act(LOADER, "skip_reads", steps=5)
    assert applied(old, "skip_reads") and len(set(old.output.splitlines())) == 1 and len(old.output.splitlines()) == 4
    close(quiet, old, 0)


def test_a_compiled_model(act):  # noqa: F811
    changed = act(LOADER, ("compile_model", {"backend": "eager"}), steps=4)
    assert applied(changed, "compile_model")
    close(changed, act(LOADER, steps=4))


# -- the conductor, on a real program -------------------------------------------------------------------------------------

def timed(tmp_path: Path, source: str, job: dict, **variants: Condition):
    (tmp_path / "train.py").write_text(source)
    settings = {"seconds": 60, "first": 2, "rounds": 2, "block_seconds": 0.0, "look_seconds": 0.0, **job, "variants": list(variants)}
    trial = Trial(Program("train.py", cwd=str(tmp_path)), tuple(variants.values()), (Gauge("timing", settings),), Budget(10**9, 100))
    return forked(trial, tmp_path, 200)


def test_variants_are_timed_side_by_side_and_a_short_program_goes_on(tmp_path):
    trace = timed(tmp_path, LOADER, {"kind": "pairs", "groups": [["", "fused"], ["", "twice"]], "first_variant": "fused"},
                  fused=Condition("optimizer_kernel", {"to": "fused"}), twice=Condition("larger_batch", {"times": 2}))
    assert trace.ended == "steps" and [list(block) for block in trace.facts["blocks"]] == [["", "fused"], ["", "twice"], ["fused", ""], ["twice", ""]]
    assert all(seconds > 0 for block in trace.facts["blocks"] for seconds in block.values())
    assert {state["state"] for state in trace.facts["states"].values()} == {"applied"}
    assert len(trace.facts["first"]["losses"]) == 2 and trace.facts["program"]["optimizer"] == "AdamW"


def test_a_profile_knows_the_program(tmp_path):
    trace = timed(tmp_path, LOADER, {"kind": "profile", "worth": 0.0}, held=Condition("hold_batch"), unlogged=Condition("skip_logging"))
    profile, program = trace.facts["profile"], trace.facts["program"]
    assert program["batch"] == 4 and program["model"] == "Sequential" and program["convolutions"] and program["by_optimizer"]
    assert profile["loader"]["num_workers"] == 0 and profile["loader"]["batches"] >= 12 and profile["steps"] >= 12
    [read] = profile["calls"]["sync"]
    assert read["site"]["line"] == 15 and read["calls"] == profile["steps"]
    assert profile["calls"]["logging"][0]["site"]["line"] == 15
    assert profile["operations"]["by_phase"]["forward"] > 3 and profile["operations"]["elements"] > 0
    assert set(profile["backward"]["nodes"]) == set(profile["first_nodes"]) and json.dumps(profile)
    assert {name for block in trace.facts["blocks"] for name in block} == {"", "held", "unlogged"}


def test_a_program_that_ends_leaves_what_was_timed(tmp_path):
    short = "import torch\nw = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(w.parameters(), lr=0.1)\n" \
            "for _ in range(5):\n    w(torch.ones(3, 2)).mean().backward()\n    opt.step()\n"
    trace = timed(tmp_path, short, {"kind": "profile"}, held=Condition("hold_batch"))
    assert trace.ended == "script" and trace.facts["program"]["batch"] == 3 and "profile" not in trace.facts
    assert trace.facts["seen"]["steps"] == 5
    broken = timed(tmp_path, short.replace("opt.step()", "1 / 0"), {"kind": "profile"}, held=Condition("hold_batch"))
    assert broken.ended == "raised" and "ZeroDivisionError" in broken.error
