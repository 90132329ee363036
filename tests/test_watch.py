"""``traindx.watch()``: the same report around any loop, and nothing left behind."""
from __future__ import annotations

import gc
import json
import weakref

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import traindx
from traindx.core.observed.fed import Fed
from traindx.core.observed.program import OptimizerMade, SchedulerMade
from traindx.probes.session import Session
from traindx.watching import _recording_of


@pytest.fixture(autouse=True)
def nothing_is_left_on_torch():
    seams = [(nn.Module, "__call__"), (nn.Module, "__init__"), (nn.functional, "cross_entropy"), (torch, "softmax"),
             (torch.autograd, "_engine_run_backward"), (torch.optim.Optimizer, "zero_grad"), (nn.utils, "clip_grad_norm_")]
    before = [getattr(owner, name) for owner, name in seams]
    yield
    assert [getattr(owner, name) for owner, name in seams] == before and Session.current is None
    assert cross_entropy is nn.functional.cross_entropy


class Job:
    """A loop whose objects exist before it is watched. Its fault: softmax twice."""

    def __init__(self, last=None):
        torch.manual_seed(0)
        self.x = torch.randn(128, 6)
        self.y = (self.x[:, 0] > 0).long()
        self.model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2), last or nn.Softmax(1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 5)

    def step(self):
        self.optimizer.zero_grad()
        value = cross_entropy(self.model(self.x), self.y)
        value.backward()
        self.optimizer.step()
        self.schedule.step()

    def run(self, steps=6):
        for _ in range(steps):
            self.step()


def loud(shown):
    return [judged.rule for judged in shown.findings if judged.level == "error"]


@pytest.mark.parametrize("given", [False, True])
def test_objects_made_before_the_block_are_seen(given):
    job = Job()
    with traindx.watch(*((job.model, job.optimizer) if given else ()), lang="en") as dx:
        job.run()
    shown = dx.report()
    assert loud(shown) == ["loss/double-softmax"] and shown.report.steps == 6
    assert shown.findings[0].finding.where.file.endswith("test_watch.py")
    recording = dx._session.recorder.memory
    assert [made.class_name for made in recording.of(OptimizerMade)] == ["Adam"]
    assert recording.last(SchedulerMade).calls == 6
    assert set(recording.series) >= {"loss", "lr", "grad_norm", "update_ratio", "weight_norm", "activation_std"}


def test_objects_made_inside_are_seen():
    with traindx.watch() as dx:
        Job().run()
    assert loud(dx.report()) == ["loss/double-softmax"]


def test_a_report_can_be_asked_for_inside_and_shows_itself():
    job = Job()
    with traindx.watch(job.model, lang="zh") as dx:
        job.run(3)
        assert loud(dx.report()) == ["loss/double-softmax"]
        job.run(2)
    shown = dx.report()
    assert "softmax 做了两次" in str(shown) and repr(shown) == str(shown) and "Sequential，5 步" in str(shown)
    assert shown._repr_html_().startswith("<iframe srcdoc=") and "<script" not in shown._repr_html_()
    document = json.loads(shown.to_json())
    assert document["findings"][0]["rule"] == "loss/double-softmax" and document["exit"]["steps"] == 5
    assert document["exit"]["status"] is None


def test_an_exception_passes_through_and_the_report_is_there():
    job = Job()
    with pytest.raises(KeyError, match="mine"), traindx.watch() as dx:
        job.run(2)
        raise KeyError("mine")
    assert loud(dx.report()) == ["loss/double-softmax"]


def test_an_inner_block_joins_the_outer_one():
    job = Job()
    with traindx.watch() as outer:
        job.run(2)
        with traindx.watch() as inner:
            job.run(2)
        assert Session.current is not None and inner.report().report.steps == 4
        job.run(2)
    assert outer.report().report.steps == 6


def test_blocks_one_after_the_other_are_apart():
    job = Job()
    with traindx.watch() as first:
        job.run(3)
    job.run(10)
    healthy = Job(last=nn.Identity())
    with traindx.watch() as second:
        healthy.run(4)
    assert loud(first.report()) == ["loss/double-softmax"] and first.report().report.steps == 3
    assert loud(second.report()) == [] and second.report().report.steps == 4


def test_watching_changes_no_number():
    plain, seen = Job(), Job()
    state = torch.random.get_rng_state()
    plain.run(20)
    with traindx.watch():
        seen.run(20)
    assert torch.equal(torch.random.get_rng_state(), state)
    for one, other in zip(plain.model.parameters(), seen.model.parameters()):
        assert torch.equal(one, other)


def test_a_block_without_training_reports_nothing():
    with traindx.watch(lang="en") as dx:
        torch.ones(3).sum()
    assert dx.report().findings == [] and "No training was seen: nothing here called backward" in str(dx.report())


def test_before_the_block_there_is_nothing_to_say():
    assert traindx.watch().report().findings == []


def test_a_step_that_raised_does_not_hide_those_after_it():
    job = Job()

    def closure():
        raise RuntimeError("in the closure")
    with traindx.watch() as dx:
        job.run(2)
        for _ in range(3):
            with pytest.raises(RuntimeError):
                job.optimizer.step(closure)
        job.run(4)
    assert dx.report().report.steps == 6


def test_a_step_within_a_step_is_one():
    class Twice(torch.optim.SGD):
        def step(self, closure=None):
            super().step()
            return super().step()
    job = Job()
    job.optimizer = Twice(job.model.parameters(), lr=0.1)
    job.schedule = torch.optim.lr_scheduler.StepLR(job.optimizer, 5)
    with traindx.watch() as dx:
        job.run(3)
    assert dx.report().report.steps == 3


def test_an_optimizer_that_cannot_be_known_is_left_alone():
    class Odd(torch.optim.SGD):
        __hash__ = None
    job = Job()
    with traindx.watch() as dx:
        job.optimizer = Odd(job.model.parameters(), lr=0.1)
        for _ in range(3):
            cross_entropy(job.model(job.x), job.y).backward()
            job.optimizer.step()
            job.optimizer.zero_grad()
    assert loud(dx.report())[:1] == ["loss/double-softmax"]


@pytest.mark.parametrize("keeps", [False, True])
def test_a_loader_written_into_the_loop_is_known_and_let_go(keeps):
    """``for batch in DataLoader(...)``: nothing but the iterator is left of it. A loader that keeps its iterator must not be held by us."""
    loaders = weakref.WeakSet()

    class Loader(torch.utils.data.DataLoader):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            loaders.add(self)
    samples = [(torch.full((3,), float(i)), torch.tensor([float(i)])) for i in range(8)]
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    with traindx.watch() as dx:
        for _ in range(3):
            for x, y in Loader(samples, 4, num_workers=int(keeps), persistent_workers=keeps):
                optimizer.zero_grad()
                nn.functional.mse_loss(net(x), y).backward()
                optimizer.step()
        gc.collect()
        assert not loaders
    fed = _recording_of(dx._session).last(Fed)
    assert keeps or (fed.loader and fed.dataset_size == 8 and fed.sampler == "SequentialSampler")
