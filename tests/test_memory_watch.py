"""Storages counted in this process: without data as with, by owner, phase, module and line; values that are not there."""
from __future__ import annotations

import copy
from contextlib import ExitStack

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from traindx.estimate.traced.changes import Accumulate, Batch, Bf16, Changes, Checkpointing, EightBit, Lora, NotApplicable, Stepping
from traindx.estimate.traced.elsewhere import install as on_this_cpu
from traindx.estimate.traced.faking import Faker
from traindx.estimate.traced.ledger import account
from traindx.estimate.traced.watch import Watch
from traindx.estimate.traced.workspaces import CannotFake


def watched(program, fake=True, changes=(), steps=2):
    """The account of ``program`` (a function), and what watched it."""
    class Done(Exception):
        pass

    def done():
        watch.counted = watch.parameter_count()
        raise Done
    faker = Faker() if fake else None
    watch, changing = Watch(faker, done, steps), Changes(list(changes))
    with ExitStack() as stack:
        on_this_cpu(stack)
        if faker:
            faker.install(stack)
        watch.install(stack)
        changing.install(stack)
        try:
            program()
        except Done:
            pass
    changing.verify(watch.batch)
    return account(watch.ledger), watch


class Net(nn.Module):
    def __init__(self, width=64, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(depth))
        self.head = nn.Linear(width, 10)
        self.checkpointed = False

    def forward(self, x):
        for block in self.blocks:
            x = x + (checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x))
        return self.head(x)


def training(optimizer=torch.optim.AdamW, model=Net, rows=32, after=None, **settings):
    def program():
        net = model()
        chosen = optimizer(net.parameters(), 0.01, **settings)
        for _ in range(5):
            chosen.zero_grad()
            x, y = torch.randn(rows, 64), torch.randint(0, 10, (rows,))
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            if after:
                after(net, loss)
            chosen.step()
    return program


COUNT = sum(p.numel() for p in Net().parameters())


@pytest.mark.parametrize("settings", [{}, {"foreach": True}, {"fused": True}, {"optimizer": torch.optim.SGD, "momentum": 0.9}])
def test_without_data_it_is_byte_for_byte_what_it_is_with(settings):
    faked, _ = watched(training(**settings))
    real, _ = watched(training(**settings), fake=False)
    for key in ("peak_bytes", "by_phase", "categories", "phase", "op"):
        assert faked[key] == real[key]


def test_who_owns_what():
    found, watch = watched(training())
    assert watch.batch == 32 and watch.counted == COUNT
    backward = found["at_phase"]["backward"]
    assert backward["parameters"] == 4 * COUNT
    assert 2 * 4 * COUNT <= backward["optimizer"] <= 2 * 4 * COUNT + 4 * 64
    step = found["at_phase"]["step"]
    assert step["gradients"] == 4 * COUNT and step["inputs"] >= 32 * 64 * 4
    assert {"blocks.0.0", "blocks.2.2"} <= {entry["name"] for entry in found["modules"]}
    assert all(entry["name"]["file"].endswith("test_memory_watch.py") for entry in found["places"] if entry["name"])


def test_foreach_takes_four_bytes_a_parameter_more_in_step():
    foreach, _ = watched(training(foreach=True))
    fused, _ = watched(training(fused=True))
    assert foreach["at_phase"]["step"]["temporaries"] == 4 * COUNT
    assert fused["at_phase"]["step"]["temporaries"] < 1000


def test_a_backward_belongs_to_the_line_of_its_forward():
    def program():
        net = Net()
        sgd = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(3):
            out = net(torch.randn(32, 64))
            big = (out.repeat(1, 400) ** 2).sum()  # this line
            big.backward()
            sgd.step()
    found, _ = watched(program)
    assert found["phase"] == "backward" and "this line" in found["where"]["code"]


# -- values that are not there ------------------------------------------------------------------------------------------

def test_a_loss_that_is_read_stands_for_one_and_is_finite():
    seen = []

    def after(net, loss):
        if not torch.isfinite(loss) or torch.isnan(loss).any() or loss.isinf():
            raise AssertionError("must not be taken")
        seen.append((loss.item(), loss.detach().numpy().shape, int(net.head.weight.argmax()), f"{loss:.2f}"))
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    _, watch = watched(training(after=after))
    assert seen[0] == (1.0, (), 0, "1.00") and watch.faker.reads


def test_decisions_on_data_are_real():
    def program():
        x = torch.arange(64.0).repeat(32, 1)
        rows = x[x[:, 0] == 0]
        assert rows.shape == (32, 64) and x.max().item() == 63 and len(x[:, 0].nonzero()) == 0
        training()()
    watched(program)


def test_shapes_that_depend_on_weights_cannot_be_told():
    from torch._subclasses.fake_tensor import DynamicOutputShapeException
    with pytest.raises(DynamicOutputShapeException):
        watched(training(after=lambda net, loss: net.head.weight.unique()))


def test_an_lstm_says_why_it_cannot_be_faked():
    with pytest.raises(CannotFake, match="workspace"):
        watched(lambda: nn.LSTM(4, 4)(torch.zeros(2, 2, 4)))


def test_models_are_moved_copied_cast_and_loaded():
    def program():
        net = Net().to("cpu").double().float()
        assert next(net.parameters()) is next(iter(net.parameters())) and net.head.weight.dtype is torch.float32
        other = copy.deepcopy(net)
        other.load_state_dict(net.state_dict())
        other.load_state_dict({name: torch.zeros(p.shape) for name, p in net.state_dict().items()})
        half = Net().bfloat16()
        assert half.head.weight.element_size() == 2
        training()()
    watched(program)


def test_a_program_for_a_gpu_is_counted_here():
    if torch.cuda.is_available():
        pytest.skip("there is one")

    def program():
        net = Net().cuda().to("cuda:0")
        adam = torch.optim.Adam(net.parameters())
        scaler = torch.amp.GradScaler("cuda")
        for _ in range(3):
            x = torch.randn(8, 64, device="cuda").cuda(non_blocking=True)
            with torch.autocast("cuda"):
                loss = net(x.to("cuda")).square().mean()
            scaler.scale(loss).backward()
            scaler.step(adam)
            scaler.update()
            torch.cuda.synchronize()
    found, watch = watched(program)
    assert watch.steps == 2 and found["categories"]["parameters"] == 4 * COUNT


# -- one thing changed --------------------------------------------------------------------------------------------------

def test_the_batch_is_varied_without_a_loader():
    found, watch = watched(training(), changes=[Batch(32, 96)])
    asked, _ = watched(training(rows=96))
    assert watch.batch == 96 and found["by_phase"]["backward"] == pytest.approx(asked["by_phase"]["backward"], rel=0.03)


def test_the_batch_is_varied_in_the_loader():
    def program(rows=32):
        data = torch.utils.data.TensorDataset(torch.randn(64, 64), torch.randint(0, 10, (64,)))
        loader = torch.utils.data.DataLoader(data, batch_size=rows, num_workers=2, persistent_workers=True)
        net = Net()
        sgd = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(3):
            for x, y in loader:
                nn.functional.cross_entropy(net(x), y).backward()
                sgd.step()
    found, watch = watched(program, changes=[Batch(32, 128)])
    assert watch.batch == 128
    small, _ = watched(program)
    assert found["at_phase"]["forward"]["activations"] == pytest.approx(4 * small["at_phase"]["forward"]["activations"], rel=0.02)


def test_a_batch_that_cannot_be_varied_is_said():
    with pytest.raises(NotApplicable, match="stayed 32"):
        watched(training(), changes=[Batch(31, 62)])


def test_half_the_batch_twice_keeps_the_gradients_through_the_second_half():
    found, watch = watched(training(), changes=[Batch(32, 16), Accumulate()])
    whole, _ = watched(training())
    assert watch.backwards == 4 and watch.steps == 2
    assert found["at_phase"]["forward"]["gradients"] == 4 * COUNT
    assert whole["at_phase"]["forward"]["gradients"] == 0


def test_checkpointing_by_us_is_checkpointing_by_hand():
    def by_hand():
        net = Net()
        net.checkpointed = True
        return net
    ours, _ = watched(training(rows=512), changes=[Checkpointing()])
    theirs, _ = watched(training(rows=512, model=by_hand))
    plain, _ = watched(training(rows=512))
    assert ours["by_phase"]["backward"] == pytest.approx(theirs["by_phase"]["backward"], rel=0.01)
    assert ours["peak_bytes"] < 0.8 * plain["peak_bytes"]


def test_eight_bits_are_two_bytes_a_parameter_and_scales():
    found, _ = watched(training(), changes=[EightBit()])
    large = sum(p.numel() for p in Net().parameters() if p.numel() >= EightBit.SMALL)
    small = COUNT - large
    assert found["at_phase"]["step"]["optimizer"] == pytest.approx(large * (2 + 8 / 256) + 8 * small, rel=0.01)


def test_adapters_train_and_the_base_does_not():
    found, _ = watched(training(), changes=[Lora()])
    adapters = sum(8 * (layer.in_features + layer.out_features) for layer in Net().modules() if isinstance(layer, nn.Linear))
    assert found["at_phase"]["step"]["gradients"] == 4 * adapters
    assert found["at_phase"]["step"]["parameters"] == 4 * (COUNT + adapters)


def test_fused_and_bf16_act():
    fused, _ = watched(training(), changes=[Stepping("fused")])
    assert fused == {**watched(training(fused=True))[0], "where": fused["where"], "places": fused["places"], "timeline": fused["timeline"]}
    plain, _ = watched(training(rows=2048))
    half, _ = watched(training(rows=2048), changes=[Bf16()])
    assert half["peak_bytes"] < 0.8 * plain["peak_bytes"]


@pytest.mark.parametrize(("change", "missing"), [(Checkpointing(), "no blocks"), (Lora(), "fewer than two"), (EightBit(), "moments")])
def test_what_finds_nothing_to_act_on_says_so(change, missing):
    with pytest.raises(NotApplicable, match=missing):
        watched(training(torch.optim.SGD, model=lambda: nn.Linear(64, 10)), changes=[change])


def test_everything_is_put_back():
    before = (nn.Parameter.__new__, nn.Module.__call__, nn.Module.register_buffer, torch.save, torch.compile, torch.optim.Optimizer.__init__)
    watched(training())
    after = (nn.Parameter.__new__, nn.Module.__call__, nn.Module.register_buffer, torch.save, torch.compile, torch.optim.Optimizer.__init__)
    assert before == after and type(nn.Linear(2, 2).weight.data) is torch.Tensor


@pytest.mark.parametrize(("channels", "width", "dtype"), [(3, 16, torch.float32), (32, 16, torch.float32), (16, 32, torch.float32), (32, 64, torch.bfloat16)])
def test_what_a_convolution_takes_for_itself_is_what_the_allocator_records(channels, width, dtype):
    from traindx.estimate.traced.measured import on_cpu
    from traindx.estimate.traced.workspaces import workspace_of
    image, weight = torch.randn(8, channels, 32, 32, dtype=dtype), torch.randn(width, channels, 3, 3, dtype=dtype)
    gradient = torch.randn(8, width, 32, 32, dtype=dtype)
    args = (gradient, image, weight, [width], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])
    torch.ops.aten.convolution_backward(*args)  # the first call makes more
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        made = torch.ops.aten.convolution_backward(*args)
    events = profile.profiler.kineto_results.events()
    peak = on_cpu([(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"], [])["peak_bytes"]
    assert sum(t.nbytes for t in made) + workspace_of("convolution_backward", args) == pytest.approx(peak, rel=0.06)
