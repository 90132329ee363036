"""Several ranks: the essences of TrainCheck's multi-process faults, dead ranks, ranks that the script starts, and one report for all."""
from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import dump, loud, watch_ranks
from traindx import ranks
from traindx.cli import main, run
from traindx.core.findings import Finding, Judged, RankEnd, Report
from traindx.core.observed import Ended, Site
from traindx.core.observed.program import Event, Window
from traindx.core.observed.ranks import Collective, RankBatch, RankLoss, RankSeen, ReplicaSeen, ReplicaWeights, SampleDraws
from traindx.core.ranks import judge_ranks
from traindx.core.recording import Recording, to_line
from traindx.core.rules import all_rules
from traindx.core.text import Text, same
from traindx.launch import Outcome
from traindx.reporters import json as json_report
from traindx.reporters import sarif, terminal
from traindx.signals.ranks import distance_of

HEAD = """# run: torchrun --nproc-per-node 2 script.py
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
torch.manual_seed(0)
x = torch.randn(256, 10)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
body, head = nn.Sequential(nn.Linear(10, 32), nn.ReLU()), nn.Linear(32, 2)
net = nn.Sequential(body, head)
"""
LOOP = """
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
torch.manual_seed(rank)
for step in range(8):
    rows = torch.randint(0, 256, (32,))
    loss = nn.functional.cross_entropy(CALL(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    CLIP
    optimizer.step()
torch.distributed.destroy_process_group()
"""
WRAPPED = "model = DistributedDataParallel(net)\n"
CLIPPED = "nn.utils.clip_grad_norm_(net.parameters(), 0.05)"


def program(start, call="model", clip="pass"):
    return HEAD + start + LOOP.replace("CALL", call).replace("CLIP", clip)


ESSENCES = {
    "clip-on-one-rank": ("rank/clip-on-one-rank", program(WRAPPED, clip=f"if rank == 1: {CLIPPED}"), program(WRAPPED, clip=CLIPPED)),
    "forward-around-the-wrapper": ("rank/forward-around-wrapper", program(WRAPPED, "net"), program(WRAPPED)),
    "converted-after-wrapping": (
        "rank/changed-after-wrapping", program(WRAPPED + "model.double()\nx = x.double()\n"), program("net.double()\nx = x.double()\n" + WRAPPED)),
    "thawed-after-wrapping": (
        "rank/changed-after-wrapping", program("body.requires_grad_(False)\n" + WRAPPED + "body.requires_grad_(True)\n"),
        program("body.requires_grad_(False)\nbody.requires_grad_(True)\n" + WRAPPED)),
}


@pytest.mark.parametrize("name", ESSENCES)
def test_the_fault_is_found_and_explains_why_the_ranks_part(name, diagnose):
    rule, faulty, _ = ESSENCES[name]
    report = diagnose(faulty)
    first = report.findings[0]
    assert first.rule == rule and first.level == "error", dump(report) + report.metadata["output"]
    [parted] = [judged for judged in report.findings if judged.rule == "rank/params-diverged"]
    assert parted.explained_by == rule and parted.finding.first_step == 1  # within one step of the trigger
    assert first.ranks == ((1,) if name == "clip-on-one-rank" else (0, 1))


@pytest.mark.parametrize("name", ESSENCES)
def test_its_mended_twin_is_quiet(name, diagnose):
    report = diagnose(ESSENCES[name][2])
    assert loud(report) == [], dump(report) + report.metadata["output"]
    assert "rank/params-diverged" in [v.rule for v in report.verdicts if v.verdict == "clear"]


def test_watching_changes_no_weights(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(program(WRAPPED).replace("torch.distributed.destroy", "torch.save(net.state_dict(), f'{rank}.pt')\ntorch.distributed.destroy"))
    watched = watch_ranks(script, _folder(tmp_path, "watched"), 2)
    assert [each.steps for each in watched.ranks.values()] == [8, 8]
    weights = [(tmp_path / f"{rank}.pt").read_bytes() for rank in (0, 1)]
    watch_ranks(script, _folder(tmp_path, "plain"), 2, watched=False)
    assert [(tmp_path / f"{rank}.pt").read_bytes() for rank in (0, 1)] == weights


def _folder(parent, name):
    folder = parent / name
    folder.mkdir()
    return folder


# -- judged from recordings made by hand ---------------------------------------------------------------------------------

SHAPES = ((4, 2), (4,))


def recorded(rank, *observations, held="ddp", weights=(), group=(0, 1), **facts):
    seen = ReplicaSeen(step=1, key="replica-0", number=0, held=held, ranks=group, names=("w", "b"), shapes=SHAPES, **{"steps": 8, **facts})
    rows = [ReplicaWeights(step=step, key=f"replica-0-{step}", number=0, bits=bits, buffers=(), values=values) for step, bits, values in weights]
    return Recording([RankSeen(key="rank", rank=rank, world=2), seen, *rows, *observations])


def judged(*each):
    each[0].ranks = dict(enumerate(each))
    return judge_ranks(each[0], [rule for name, rule in all_rules().items() if name.startswith("rank/")])


def names(report):
    return [judged.rule for judged in report.findings]


ALIKE = [(step, ("1", "2"), (0.5, -0.5)) for step in (1, 2, 4)]
PARTED = [ALIKE[0], (2, ("1", "3"), (0.5, -0.4)), (4, ("7", "3"), (0.6, -0.4))]


def test_replicas_are_compared_parameter_by_parameter():
    report = judged(recorded(0, weights=ALIKE), recorded(1, weights=PARTED))
    [found] = report.findings
    assert found.rule == "rank/params-diverged" and "Before step 2" in found.finding.cause.en and "(b)" in found.finding.cause.en
    assert found.finding.first_step == 1 and found.ranks == (0, 1)


def test_a_difference_in_the_last_bits_is_none():
    near = [(step, ("1", "9"), (0.5, -0.5 - 1e-9)) for step in (1, 2, 4)]
    assert names(judged(recorded(0, weights=ALIKE), recorded(1, weights=near))) == []


def test_the_rank_that_differs_from_most_is_named():
    group = {"group": (0, 1, 2)}
    report = judged(recorded(0, weights=ALIKE, **group), recorded(1, weights=PARTED, **group), recorded(2, weights=ALIKE, **group))
    assert report.findings[0].ranks == (1,)


@pytest.mark.parametrize("facts", [{"held": "bare"}, {"held": "bare", "averaged": 3}, {"held": "sharded"}, {"held": "local"},
                                   {"group": (0,)}], ids=["a model each", "local SGD by hand", "sharded", "local SGD", "model parallel"])
def test_weights_that_may_differ_are_let_alone(facts):
    assert names(judged(recorded(0, weights=ALIKE, **facts), recorded(1, weights=PARTED, **facts))) == []


@pytest.mark.parametrize("facts", [{"averaged": 8}, {"sampler": True}], ids=["averaged by hand", "never averaged"])
def test_weights_without_a_wrapper_are_judged_by_what_is_done_to_them(facts):
    report = judged(recorded(0, weights=ALIKE, held="bare", **facts), recorded(1, weights=PARTED, held="bare", **facts))
    assert names(report) == ["rank/params-diverged"]
    assert report.findings[0].finding.confidence == ("certain" if "averaged" in facts else "likely")


def test_a_rank_of_other_shapes_is_no_replica():
    other = Recording([RankSeen(key="rank", rank=1, world=2), ReplicaSeen(number=0, held="bare", ranks=(0, 1), names=("w",), shapes=((9, 9),))])
    report = judged(recorded(0, weights=ALIKE, held="bare", sampler=True), other)
    assert report.findings == []
    assert next(v for v in report.verdicts if v.rule == "rank/params-diverged").verdict == "not-checked"


def test_a_clip_by_one_rank_needs_an_effect():
    step, clip = Event("step", Site("a.py", 9)), Event("clip", Site("a.py", 8), detail="clip_grad_norm_")
    bare, clipped = Window(key="w", events=(step,), count=8, last_step=8), Window(key="w", events=(clip, step), count=8, last_step=8)
    report = judged(recorded(0, bare, weights=ALIKE), recorded(1, clipped, weights=PARTED))
    assert names(report) == ["rank/clip-on-one-rank", "rank/params-diverged"] and report.findings[0].ranks == (1,)
    assert names(judged(recorded(0, bare, weights=ALIKE), recorded(1, clipped, weights=ALIKE))) == []


def batches(rows):
    return [RankBatch(step=step, key=f"batch-{step}", rows=tuple(f"{rows}{step}{i}" for i in range(4)), size=4) for step in (1, 2, 3, 4)]


def test_batches_are_compared_step_by_step():
    assert names(judged(recorded(0, *batches("a")), recorded(1, *batches("a")))) == ["rank/same-data"]
    assert names(judged(recorded(0, *batches("a")), recorded(1, *batches("b")))) == []
    assert names(judged(recorded(0, *batches("a"), held="bare"), recorded(1, *batches("a"), held="bare"))) == []  # a model each


def losses(items, scale=1.0):
    return [RankLoss(step=step, key=f"loss-{step}", function="cross_entropy", items=items, scale=scale) for step in (1, 2, 3, 4)]


def test_counts_matter_where_they_are_not_weighed():
    assert names(judged(recorded(0, *losses(30)), recorded(1, *losses(10)))) == ["rank/loss-averaged-wrongly"]
    assert names(judged(recorded(0, *losses(30, 1.5)), recorded(1, *losses(10, 0.5)))) == []
    assert names(judged(recorded(0, *losses(30)), recorded(1, *losses(24)))) == []


def draws(state):
    return [SampleDraws(step=step, key=f"draws-{step}", generators=("torch",), before=(f"{state}{step}",), after=(f"{state}{step + 1}",))
            for step in (1, 2, 3, 4)]


def test_draws_are_compared_by_their_states():
    assert names(judged(recorded(0, *draws("a")), recorded(1, *draws("a")))) == ["rank/seed-equal"]
    assert names(judged(recorded(0, *draws("a")), recorded(1, *draws("b")))) == []


def ended(steps, how="finished", error=None):
    return Ended(step=steps, how=how, steps=steps, seconds=1.0, error=error)


PEER = "RuntimeError: Connection closed by peer [127.0.0.1]:1234"


@pytest.mark.parametrize(("one", "other", "found"), [
    ((9, ended(9)), (12, ended(12)), True), ((9, ended(9)), (9, ended(9, "raised", PEER)), True), ((9, ended(9)), (9, ended(9)), False),
    ((9, ended(9, "raised", "ValueError: no")), (12, ended(12, "raised", PEER)), False), ((9, ended(9, "max-steps")), (9, ended(9)), False)],
    ids=["both end", "one is cut off", "equal", "an error of its own", "stopped by us"])
def test_step_counts_are_compared_where_a_rank_came_to_its_own_end(one, other, found):
    report = judged(recorded(0, one[1], steps=one[0]), recorded(1, other[1], steps=other[0]))
    assert names(report) == (["rank/uneven-steps"] if found else [])


def test_calls_are_paired_by_number():
    def call(number, numel):
        return Collective(key=f"c{number}", number=number, name="all_reduce", numel=numel, dtype="float32", reduction="SUM", site=Site("a.py", number))
    report = judged(recorded(0, call(1, 4), call(2, 4)), recorded(1, call(1, 4), call(2, 5)))
    assert names(report) == ["rank/collectives-differ"] and report.findings[0].finding.where == Site("a.py", 2)
    assert names(judged(recorded(0, call(1, 4)), recorded(1, call(1, 4), call(2, 4)))) == []


def test_a_rank_without_a_recording_is_said_and_the_others_are_judged():
    found = ranks.Gathered({0: recorded(0, weights=ALIKE)}, [RankEnd(0, 0, 8), RankEnd(1, 0, 0, seen=False)], {0: 1.0, 1: 1.0})
    assert next(remark.en for remark in ranks.remarks(found)) == "Rank 1 left no recording: what is said here does not speak of it."


def test_distances_are_relative_and_know_nan():
    assert distance_of((1.0, -1.0), (1.0, -1.0)) == 0
    assert distance_of((1.0, -1.0), (1.5, -1.0)) == pytest.approx(0.5 / ((1 + 1 + 2.25 + 1) / 4) ** 0.5)
    assert distance_of((1.0, float("nan")), (1.0, 1.0)) == float("inf")


# -- one report ----------------------------------------------------------------------------------------------------------

@pytest.fixture
def report():
    finding = Finding(same("a cause"), same("a fix"), Site("a.py", 3, "f", "x"))
    return Report([Judged("rank/clip-on-one-rank", "error", same("a title"), finding, ranks=(1,))],
                  ranks=(RankEnd(0, 0, 8, 1.0), RankEnd(1, 137, 3, 1.0, "SIGKILL", Site("a.py", 3))), script="train.py", steps=8)


def test_every_form_names_the_rank(report):
    pytest.importorskip("jsonschema").validate(told := json_report.document(report, "en"), json.loads(
        Path(json_report.__file__).with_name("run.schema.json").read_text()))
    assert told["findings"][0]["ranks"] == [1] and [rank["stopped"] for rank in told["ranks"]] == [None, "SIGKILL"]
    assert "1 (of 2)" in terminal.render(report, "en") and "1（共 2 个）" in terminal.render(report, "zh")
    assert sarif.document(report, "en")["runs"][0]["results"][0]["properties"]["ranks"] == [1]


def test_a_report_on_one_process_speaks_of_no_ranks():
    assert "ranks" not in json_report.document(Report(), "en")


def test_who_ended_first_is_said_first():
    found = ranks.Gathered({0: Recording(), 1: Recording()}, [
        RankEnd(0, 1, 5, 1.0, PEER), RankEnd(1, 1, 5, 1.0, "ValueError: boom", Site("train.py", 12))], {0: 10.0, 1: 10.5})
    first, second = (remark.en for remark in ranks.remarks(found))
    assert first == "Rank 1 ended first: ValueError: boom at train.py:12, after 5 steps."
    assert second.startswith("Rank 0 then: RuntimeError: Connection closed by peer")


def test_a_rank_that_leaves_with_a_status_has_not_come_to_its_end(tmp_path, monkeypatch):
    """``sys.exit(3)`` raises nothing that is recorded: only the status tells it from a rank with fewer batches."""
    monkeypatch.setattr(ranks, "await_others", lambda *given, **named: None)
    place = ranks.place_from({**TOLD, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"})
    home = tmp_path / "ranks" / "1"
    home.mkdir(parents=True)
    (home / "events.jsonl").write_text(to_line(ended(9)))
    (home / "ended.json").write_text(json.dumps({"status": 3, "signal": None, "seconds": 1.0, "at": 10.0}))
    found = ranks.gather(place, tmp_path, Outcome(1, 1.0, Recording([ended(9, "raised", PEER)])), 11.0)
    assert found.recordings[1].last(Ended).how == "exit" and found.recordings[0].last(Ended).how == "raised"
    assert ranks.remarks(found)[0] == Text("Rank 1 ended first: exit status 3, after 9 steps.", "进程 1 最先结束：退出状态 3，走了 9 步。")
    report = judged(recorded(0, ended(9, "raised", PEER), steps=9), recorded(1, ended(9, "exit"), steps=9))
    assert names(report) == []


# -- where ranks meet ----------------------------------------------------------------------------------------------------

TOLD = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "a", "MASTER_PORT": "1"}


def test_the_launcher_tells_the_place():
    place = ranks.place_from(TOLD)
    assert (place.rank, place.leader, place.leads, place.neighbours) == (5, 4, False, (4, 5, 6, 7))
    assert ranks.place_from({**TOLD, "LOCAL_RANK": "0", "RANK": "4"}).leads
    assert ranks.place_from({**TOLD, "MASTER_PORT": "2"}).token != place.token


@pytest.mark.parametrize("changed", [{"RANK": "x"}, {"WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "RANK": "0", "LOCAL_RANK": "0"},
                                     {"LOCAL_RANK": "9"}, {"LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0"}])
def test_one_process_has_no_place(changed):
    assert ranks.place_from({**TOLD, **changed}) is None and ranks.place_from({}) is None


@pytest.mark.parametrize("command", ["exam", "shapes", "data", "memory", "speed"])
def test_commands_for_one_process_say_so(command, monkeypatch, capsys):
    for name, value in TOLD.items():
        monkeypatch.setenv(name, value)
    assert main([command, "--lang", "en", "train.py"]) == 2
    assert "one of 8 ranks" in capsys.readouterr().err


def test_a_file_that_a_former_run_left_tells_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(ranks.tempfile, "gettempdir", lambda: str(tmp_path))
    place = ranks.place_from({**TOLD, "MASTER_PORT": str(tmp_path)})
    ranks.write(ranks.meeting_file(place), {"folder": str(tmp_path), "pid": os.getpid(), "born": "long ago"})
    assert ranks.met(place, seconds=0.1) is None
    with ranks.meeting(place, tmp_path):
        home = ranks.met(place, seconds=5)
    assert home == tmp_path.resolve() / "ranks" / "5" and ranks.met(place, seconds=0.1) is None


def test_a_stack_left_at_the_end_gives_the_users_line(tmp_path):
    (tmp_path / ranks.STACK).write_text(
        f'Current thread 0x1 (most recent call first):\n  File "{os.__file__}", line 3 in wait\n'
        f'  File "{__file__}", line 1 in train\n  File "<frozen runpy>", line 9 in _run\n')
    assert ranks.stack_in(tmp_path).line == 1 and ranks.stack_in(tmp_path).function == "train"


def test_the_file_of_the_stack_is_no_resource_that_the_script_forgot_to_close(tmp_path):
    code = f"import warnings; from traindx.boot import _leave_a_stack; _leave_a_stack({str(tmp_path)!r}); " \
           "warnings.simplefilter('always', ResourceWarning)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "" and (tmp_path / "stack.txt").read_bytes() == b""


def test_waiting_ends_when_the_others_have_ended_or_this_rank_has_failed(tmp_path, monkeypatch):
    place = ranks.Place(0, 2, 0, 2, "t")
    home = tmp_path / ranks.FOLDER / "1"
    home.mkdir(parents=True)
    ranks.say_end(home, Outcome(3, 1.0, Recording()))
    ranks.await_others(place, tmp_path, failed=False)
    found = ranks.gather(place, tmp_path, Outcome(0, 1.0, Recording()), time.time())
    assert [(end.rank, end.status, end.seen) for end in found.ends] == [(0, 0, False), (1, 3, False)]
    (home / ranks.ENDED).unlink()
    ranks.write(home / ranks.BEGUN, {"pid": os.getpid(), "born": ranks.born(os.getpid())})
    monkeypatch.setattr(ranks, "FAILED_SECONDS", 0.2)
    ranks.await_others(place, tmp_path, failed=True)
    assert ranks.gather(place, tmp_path, Outcome(1, 1.0, Recording()), time.time()).alive == {1}


# -- for real ------------------------------------------------------------------------------------------------------------

TRAIN = HEAD + """
import os, signal, time
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
model = DistributedDataParallel(net)
torch.manual_seed(rank)
for step in range(6):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    if step == 3 and rank == 1:
        WHAT
    optimizer.step()
print("rank", rank, "done", flush=True)
torch.distributed.destroy_process_group()
"""


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def started(folder, rank, port, *words):
    told = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    return subprocess.Popen([sys.executable, "-m", "traindx", "run", "--lang", "en", "--json", "report.json", *words, "train.py"], cwd=folder,
                            env={**os.environ, **told}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def two_ranks(folder, what):
    """Both ranks as a launcher starts them: ``[(status, stdout, stderr), ...]`` and the report."""
    (folder / "train.py").write_text(TRAIN.replace("WHAT", what))
    port = free_port()
    children = [started(folder, rank, port) for rank in (0, 1)]
    ends = []
    for child in children:
        out, err = child.communicate(timeout=900)
        ends.append((child.returncode, out, err))
    return ends, json.loads((folder / "report.json").read_text())


def test_both_ranks_may_look_whether_the_report_can_be_written(tmp_path, monkeypatch):
    def and_the_other_clears_up(name, mode):
        handle = open(name, mode)  # noqa: SIM115
        os.unlink(name)
        return handle
    monkeypatch.setattr(run, "open", and_the_other_clears_up, raising=False)
    run.check_report_file("--json", str(tmp_path / "report.json"))
    assert not list(tmp_path.iterdir())


def test_two_ranks_make_one_report_and_one_folder(tmp_path):
    ends, report = two_ranks(tmp_path, "nn.utils.clip_grad_norm_(net.parameters(), 1e-3)")
    assert [status for status, _, _ in ends] == [0, 0], ends
    assert "── traindx ──" in ends[0][2] and "traindx" not in ends[1][2]
    assert (ends[0][1], ends[1][1]) == ("rank 0 done\n", "rank 1 done\n")
    assert [rank["steps"] for rank in report["ranks"]] == [6, 6] and all(rank["status"] == 0 for rank in report["ranks"])
    same_data = next(finding for finding in report["findings"] if finding["rule"] == "rank/same-data")
    assert same_data["ranks"] == [0, 1]
    assert "rank/params-diverged" in [finding["rule"] for finding in report["findings"]]
    [folder] = (tmp_path / "runs").iterdir()
    assert (folder / "events.jsonl").exists() and (folder / "ranks" / "1" / "events.jsonl").exists()


@pytest.mark.parametrize(("what", "status", "stopped"), [
    ("raise ValueError('boom')", 1, "ValueError: boom"), ("os.kill(os.getpid(), signal.SIGKILL)", 137, "SIGKILL")], ids=["raises", "killed"])
def test_a_dead_rank_is_named(tmp_path, what, status, stopped):
    ends, report = two_ranks(tmp_path, what)
    assert ends[1][0] == status and ends[0][0] == 1  # rank 0 loses its peer
    assert [rank["stopped"] for rank in report["ranks"]][1] == stopped
    assert report["remarks"][0].startswith(f"Rank 1 ended first: {'killed by ' if status == 137 else ''}{stopped}")
    assert "Rank 1 ended first" in ends[0][2]
    assert "rank/uneven-steps" not in [finding["rule"] for finding in report["findings"]]


SPAWNS = """
import os
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

def work(rank, folder):
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(rank)
    x = torch.randn(64, 8)
    y = (x[:, 0] > 0).long()
    model = DistributedDataParallel(nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        loss = nn.functional.cross_entropy(model.module(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.distributed.destroy_process_group()
    assert not [name for name in os.environ if name.startswith("TRAINDX")]

if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (os.getcwd(),), nprocs=2)
"""


def test_ranks_that_the_script_spawns_are_seen(tmp_path):
    (tmp_path / "train.py").write_text(SPAWNS)
    done = subprocess.run([sys.executable, "-m", "traindx", "run", "--lang", "en", "--json", "report.json", "train.py"], cwd=tmp_path,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=900, check=False)
    report = json.loads((tmp_path / "report.json").read_text())
    assert done.returncode == 0, done.stderr
    assert [rank["steps"] for rank in report["ranks"]] == [4, 4]
    assert report["exit"]["steps"] == 4 and report["remarks"] == []
    first = report["findings"][0]
    assert (first["rule"], first["ranks"], first["where"]["line"]) == ("rank/forward-around-wrapper", [0, 1], 15)
    [folder] = (tmp_path / "runs").iterdir()
    assert Recording.read(folder).steps == 4


def test_a_rank_that_hangs_and_is_ended_leaves_its_line(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN.replace("WHAT", "print('stuck', flush=True); time.sleep(3600)"))
    port = free_port()
    children = [started(tmp_path, rank, port) for rank in (0, 1)]
    assert children[1].stdout.readline() == "stuck\n"
    for child in reversed(children):  # as the launcher's agent does when it gives up
        child.send_signal(signal.SIGTERM)
    ends = [child.communicate(timeout=900) for child in children]
    report = json.loads((tmp_path / "report.json").read_text())
    assert [child.returncode for child in children] == [143, 143]
    assert report["ranks"][1]["where"]["line"] == TRAIN.replace("WHAT", "X").splitlines().index("        X") + 1
    assert "killed by SIGTERM at train.py:" in ends[0][1]
