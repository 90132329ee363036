"""What torch.profiler recorded, taken apart: against a twin that looks at every microsecond, and on a real recording of this machine's CPU."""
from __future__ import annotations

import json
import random
from collections import Counter
from contextlib import ExitStack

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import cuda_traces
from cuda_traces import BACKWARD, HOST, MAIN, compute_bound, copy_bound, input_bound, launch_bound, recorded, sync_bound
from traindx.core.speed import IDLE, KINDS, SHARES
from traindx.perform.timing.plans import even, steps_to_trace
from traindx.perform.timing.tracing import Tracing
from traindx.speed.asking import Answer
from traindx.speed.events import ANNOTATION, CALLS, length, read, summary, union, within, without
from traindx.speed.reading import device_of, profiled_of
from traindx.speed.verdict import Measured, judge

STEPS = 4
PROGRAMS = {"launch_bound": launch_bound, "sync_bound": sync_bound, "copy_bound": copy_bound, "input_bound": input_bound,
            "compute_bound": compute_bound}


# -- spans --------------------------------------------------------------------------------------------------------------

def test_spans_are_those_of_sets_of_whole_numbers():
    draw = random.Random(3)

    def some():
        return [(begin, begin + draw.randint(0, 9)) for begin in (draw.randint(0, 60) for _ in range(draw.randint(0, 9)))]

    def points(spans):
        return {at for begin, end in spans for at in range(begin, end)}
    for _ in range(300):
        first, second = some(), some()
        for spans, expected in ((union(first), points(first)), (without(first, second), points(first) - points(second)),
                                (union(within(first, (10, 30))), points(first) & set(range(10, 30)))):
            assert points(spans) == expected and length(spans) == len(expected)
            assert spans == sorted(spans) and all(begin < end for begin, end in spans)


# -- a GPU --------------------------------------------------------------------------------------------------------------

def painted(events, begin, end):
    """Of every microsecond the events that are going on, the outermost first."""
    found = [[] for _ in range(begin, end)]
    for one in sorted(events, key=lambda one: (one["ts"], -one["dur"])):
        for now in range(max(one["ts"], begin), min(one["ts"] + one["dur"], end)):
            found[now - begin].append(one)
    return found


def naive(trace):
    """Every microsecond of the last mark: what the GPU does, else what it waits for."""
    events = [one for one in trace["traceEvents"] if one["ph"] == "X"]
    mark = max((one for one in events if one["name"].startswith("ProfilerStep#") and one["cat"] == ANNOTATION), key=lambda one: one["ts"])
    begin, end = mark["ts"], mark["ts"] + mark["dur"]
    syncs = [one for one in events if one["name"].endswith("Synchronize")]
    to_device = {one["args"]["correlation"] for one in events if "HtoD" in one["name"]}
    found = {"computing": 0, "copying": 0, **dict.fromkeys(IDLE, 0)}
    cause = "sync" if any(one["ts"] <= begin <= one["ts"] + one["dur"] for one in syncs) else "launch"
    for now, going_on in enumerate(painted(events, begin, end), begin):
        running = [one for one in going_on if one["cat"] in ("kernel", "gpu_memcpy")]
        if running:
            found["computing" if any(one["cat"] == "kernel" for one in running) else "copying"] += 1
            cause = "launch"
            if any(one["ts"] <= now + 1 <= one["ts"] + one["dur"] for one in syncs):
                cause = "transfer" if any("HtoD" in one["name"] for one in running) else "sync"
        elif any(one["name"].startswith("enumerate(DataLoader)") and one["cat"] == ANNOTATION for one in going_on):
            found["input"] += 1
        elif any(one["cat"] in CALLS and one["args"]["correlation"] in to_device for one in going_on):
            found["transfer"] += 1
        else:
            found[cause] += 1
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_times_of_the_gpu_are_those_of_the_twin(name):
    trace = recorded(PROGRAMS[name], STEPS)
    expected, found = naive(trace), summary(trace, 1, STEPS)["device"]
    told = {"computing": found["computing"], "copying": found["copying"], **found["idle"]}
    assert {key: told[key] * STEPS * 1e6 for key in told} == pytest.approx(expected, abs=1e-6)


def naive_kind(stack):
    names = [one["name"] for one in stack]
    if not stack:
        return ""
    if any(name.startswith("enumerate(DataLoader)") for name in names):
        return "input"
    if any(name.startswith("Optimizer.") for name in names):
        return "optimizer"
    if "aten::item" in names or names[-1].endswith("Synchronize"):
        return "reads"
    if stack[-1]["cat"] == "cuda_runtime":
        return "copies" if "Memcpy" in names[-1] else "launch"
    return "" if stack[-1]["cat"] == ANNOTATION else "copies" if "aten::to" in names else "operators"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_kinds_of_the_hosts_time_are_those_of_the_twin(name):
    """Every microsecond up to the wait that closes the mark: the thread that trains, else the backward's."""
    trace = recorded(PROGRAMS[name], STEPS)
    events = [one for one in trace["traceEvents"] if one["ph"] == "X" and one["pid"] == HOST]
    begin = max(one["ts"] for one in events if one["name"].startswith("ProfilerStep#"))
    end = max(one["ts"] for one in events if one["name"] == "cudaDeviceSynchronize")
    expected = Counter()
    for running in painted(events, begin, end):
        kinds = [naive_kind([one for one in running if one["tid"] == tid]) for tid in (MAIN, BACKWARD)]
        expected[kinds[0] or kinds[1] or "gaps"] += 1
    found = summary(trace, 1, STEPS)["kinds"]
    assert {kind: took * STEPS * 1e6 for kind, took in found.items()} == pytest.approx({kind: expected[kind] for kind in KINDS}, abs=1e-6)


def test_all_that_is_told_of_a_step():
    """By hand, from the model: 300 kernels of 2 us and one of 5, 301 launches of 4 us."""
    found = summary(recorded(launch_bound, STEPS), 1, STEPS)["device"]
    assert found["computing"] == pytest.approx(605e-6) and (found["kernels"], found["launches"]) == (301, 301)
    assert found["launch_seconds"] == pytest.approx(301 * cuda_traces.LAUNCH * 1e-6) and found["kernel_seconds"] == pytest.approx(605e-6 / 301)
    copied = summary(recorded(copy_bound, STEPS), 1, STEPS)["device"]
    assert copied["copies"] == pytest.approx({"HtoD": 4e-3, "DtoH": 0, "DtoD": 0})


@pytest.mark.parametrize("name", PROGRAMS)
def test_kinds_of_the_hosts_time_add_up(name):
    """To the steps, without the wait at the end that is ours."""
    trace = recorded(PROGRAMS[name], STEPS)
    found, last = summary(trace, 1, STEPS), max((one for one in trace["traceEvents"] if one["name"] == "cudaDeviceSynchronize"), key=lambda one: one["ts"])
    assert list(found["kinds"]) == list(KINDS) and found["steps"] == STEPS
    assert sum(found["kinds"].values()) == pytest.approx(found["seconds"] - last["dur"] * 1e-6 / STEPS)


def test_the_hosts_time_by_hand():
    kinds = summary(recorded(launch_bound, STEPS), 1, STEPS)["kinds"]
    assert kinds["gaps"] == pytest.approx(200 * 9e-6, rel=0.01)  # and what is between marks
    assert kinds["launch"] == pytest.approx(300 * cuda_traces.LAUNCH * 1e-6)
    assert kinds["operators"] == pytest.approx(200 * 7e-6 + 100 * 7e-6)  # the backward's on a thread of its own
    assert kinds["optimizer"] == pytest.approx((10 + 8 + cuda_traces.LAUNCH + 1) * 1e-6)
    assert summary(recorded(input_bound, STEPS), 1, STEPS)["kinds"]["input"] == pytest.approx(5e-3)
    names = [one["name"] for one in summary(recorded(launch_bound, STEPS), 1, STEPS)["operators"]]
    assert names[:2] == ["aten::mul", "MmBackward0"] and "aten::stack" not in names


def test_what_an_optimizers_closure_does_is_training():
    """Forward and backward within the optimizer's step: only what follows them is the update."""
    def step(one):
        def work():
            one.op("aten::mm", 6, 50)
            one.backward(3, 50)
            one.python(10)
            one.op("aten::add_", 8, 5)
        one.annotated("Optimizer.step#LBFGS.step", work)
    kinds = summary(recorded(step, STEPS), 1, STEPS)["kinds"]
    assert kinds["operators"] == pytest.approx((7 + 3 * 7) * 1e-6)
    assert kinds["optimizer"] == pytest.approx((10 + 8 + cuda_traces.LAUNCH + 1) * 1e-6)


def test_a_block_with_something_else_in_it_is_made_again():
    assert even([]) and even([0.1, 0.12, 0.5]) and not even([0.1, 0.1, 0.1, 1.1])


def test_the_wait_that_closes_a_mark_is_ours():
    """The host is far ahead of kernels that nothing reads: what it waits in the end is no read of the program's."""
    found = summary(recorded(lambda one: one.op("aten::mm", 6, 1000), STEPS), 1, STEPS)
    assert found["kinds"]["reads"] < 1e-5 and found["device"]["computing"] == pytest.approx(1e-3)


def test_a_kernel_beside_a_copy_hides_it_and_of_two_gpus_the_busier_is_told():
    def event(kind, name, pid, tid, begin, end):
        return {"ph": "X", "cat": kind, "name": name, "pid": pid, "tid": tid, "ts": begin, "dur": end - begin, "args": {}}
    trace = {"traceEvents": [
        event("user_annotation", "ProfilerStep#3", 9, 9, 0, 100), event("user_annotation", "ProfilerStep#4", 9, 9, 100, 200),
        event("kernel", "k", 0, 7, 110, 150), event("kernel", "k", 0, 20, 140, 160), event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0, 21, 145, 170),
        event("kernel", "k", 1, 7, 100, 105)]}
    found = summary(trace)  # of torch.profiler's own steps the first is for warming up
    assert found["steps"] == 1 and found["device"]["computing"] == pytest.approx(50e-6) and found["device"]["copying"] == pytest.approx(10e-6)
    assert found["device"]["copies"]["HtoD"] == pytest.approx(10e-6) and found["device"]["idle"]["launch"] == pytest.approx(40e-6)
    assert summary({"traceEvents": trace["traceEvents"][2:]}) is None


@pytest.mark.parametrize(("name", "verdict"), [
    ("launch_bound", "overhead-bound"), ("sync_bound", "sync-bound"), ("copy_bound", "input-bound"), ("input_bound", "input-bound"),
    ("compute_bound", "compute-bound")])
def test_the_verdict_of_a_program_on_a_gpu(name, verdict):
    """Where nothing could be taken away to see what is gained: the device's own times tell."""
    answer = Answer({"torch": summary(recorded(PROGRAMS[name], STEPS), 1, STEPS)})
    gpu = profiled_of(answer).device
    assert sum(gpu.shares.values()) == pytest.approx(1.0) and sum(gpu.idle.values()) == pytest.approx(gpu.shares["idle"])
    seconds = dict.fromkeys(SHARES, 0.0) | {"sync": 0.06, "compute": 0.04}  # the clock sees a wait for arithmetic as a wait
    found, why = judge(Measured(20, seconds, device="cuda", elements=100, ops=300, elasticity=0.0, gpu=gpu))
    assert found == verdict and "torch.profiler" in why.en and "{" not in why.en + why.zh


def test_what_gained_nothing_is_not_what_the_gpu_waits_for():
    from traindx.core.speed import Interval
    gpu = profiled_of(Answer({"torch": summary(recorded(sync_bound, STEPS), 1, STEPS)})).device
    nothing = Interval(1.0, 0.98, 1.02, 9, 4)
    assert judge(Measured(20, {"compute": 0.1}, device="cuda", unread=nothing, gpu=gpu))[0] != "sync-bound"


def test_what_the_profiler_adds_is_taken_from_the_idle_time():
    """A step of 100 of which 40 are arithmetic; under the profiler 160: the 60 more are of launching."""
    found = {"computing": 40.0, "copying": 0.0, "copies": {}, "kernels": 1, "kernel_seconds": 1.0, "launches": 1, "launch_seconds": 1.0,
             "idle": {"launch": 80.0, "sync": 30.0, "input": 10.0, "transfer": 0.0}}
    gpu = device_of(found, 160.0, 100.0)
    assert gpu.shares == pytest.approx({"computing": 0.4, "copying": 0.0, "idle": 0.6})
    assert gpu.idle == pytest.approx({"launch": 0.2, "sync": 0.3, "input": 0.1, "transfer": 0.0})
    busy = device_of({**found, "idle": dict.fromkeys(IDLE, 0.0)}, 40.0, 30.0)
    assert busy.shares["computing"] == 1.0 and busy.shares["idle"] == 0.0
    asleep = device_of({**found, "idle": {"launch": 20.0, "sync": 60.0, "input": 40.0, "transfer": 0.0}}, 160.0, 100.0)
    assert asleep.idle == pytest.approx({"launch": 0.0, "sync": 0.36, "input": 0.24, "transfer": 0.0})


# -- this machine -------------------------------------------------------------------------------------------------------

class Training:
    """A few steps with Adam on made data."""

    def __init__(self):
        torch.manual_seed(0)
        data = TensorDataset(torch.randn(4096, 32), torch.randint(0, 2, (4096,)))
        self.model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 2))
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.batches = iter(DataLoader(data, batch_size=64, shuffle=True))

    def step(self):
        x, y = next(self.batches)
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x.to(torch.float64).to(torch.float32)), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def weights(self):
        return torch.cat([p.detach().flatten() for p in self.model.parameters()])


def traced(training, folder, steps=5, before=lambda: None, during=lambda: None):
    with ExitStack() as stack:
        tracing = Tracing(stack, folder)
        before()
        for count in (1, steps):
            tracing.mark()
            for _ in range(count):
                training.step()
            during()
            tracing.unmark()
            tracing.timed([0.1 / count] * count)  # as if the warm-up were slower
        return tracing.result()


def test_a_real_recording_adds_up_and_changes_nothing(tmp_path):
    plain = Training()
    for _ in range(6):
        plain.step()
    watched = Training()
    found = traced(watched, tmp_path)
    assert torch.equal(plain.weights(), watched.weights()) and list(tmp_path.iterdir()) == []
    assert found["steps"] == 5 and found["device"] is None and sum(found["kinds"].values()) == pytest.approx(found["seconds"])
    assert all(found["kinds"][kind] > 0 for kind in ("input", "operators", "optimizer", "copies", "reads", "gaps")) and found["kinds"]["launch"] == 0
    calls = {one["name"]: one["calls"] for one in found["operators"]}
    assert calls["aten::addmm"] == 2 and sum(one["seconds"] for one in found["operators"]) <= found["seconds"]
    assert not torch.autograd._profiler_enabled()


def test_times_of_operators_are_torchs_own(tmp_path):
    """Beside ``key_averages`` of the same recording, over the whole of it."""
    training = Training()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile, torch.profiler.record_function("ProfilerStep#0"):
        for _ in range(3):
            training.step()
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    theirs = {one.key: one.self_cpu_time_total * 1e-6 for one in profile.key_averages()}
    found = summary(trace, 0, 1)["operators"]
    kept = [one for one in found if one["name"] not in ("aten::stack", "aten::select", "aten::as_strided")]  # the loader's are not ours
    assert len(kept) > 5 and all(one["seconds"] <= theirs[one["name"]] * 1.001 + 1e-6 for one in kept)
    addmm = next(one for one in found if one["name"] == "aten::addmm")
    assert addmm["seconds"] == pytest.approx(theirs["aten::addmm"], rel=0.01, abs=2e-6) and len(read(trace)) > 300


def test_a_profiler_of_the_programs_own_goes_first(tmp_path):
    """Running before, prepared before, or begun while ours records: it keeps its recording, and ours says that it was not measured."""
    kind, cpu = torch.profiler.profile, [torch.profiler.ProfilerActivity.CPU]
    theirs = kind(activities=cpu)
    found = traced(Training(), tmp_path, before=theirs.start)
    theirs.stop()
    assert "one at a time" in found["why"]["en"] and any(one.key == "aten::addmm" for one in theirs.key_averages())
    later = kind(activities=cpu)
    begin = iter([later.start, lambda: None])
    found = traced(Training(), tmp_path, during=lambda: next(begin)())
    later.stop()
    assert "one at a time" in found["why"]["en"] and any(one.key == "aten::addmm" for one in later.key_averages())
    assert not torch.autograd._profiler_enabled()


def test_a_profiler_that_cannot_start_is_told(tmp_path, monkeypatch):
    def refused(*args, **kwargs):
        raise RuntimeError("no such activity")
    monkeypatch.setattr("traindx.perform.timing.tracing.profile", refused)
    found = traced(Training(), tmp_path)
    assert "no such activity" in found["why"]["en"] and "用不了" in found["why"]["zh"]


@pytest.mark.parametrize(("seconds", "operations", "steps"), [
    (0.001, 50, 40), (0.02, 50, 15), (0.1, 50, 3), (30.0, 50, 2), (0.001, 4000, 3), (0.01, 12_000, 1), (0.1, 100_000, 0), (0.0, 0.0, 8)])
def test_few_steps_are_recorded_where_each_is_long(seconds, operations, steps):
    assert steps_to_trace(seconds, operations) == steps
