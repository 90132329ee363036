"""Programs without a DataLoader: which of their lines make the batches, and what becomes of these when they are timed and held."""
from __future__ import annotations

import builtins
from contextlib import ExitStack

import pytest

from speed_driver import speeding
from traindx.core.codec import decode
from traindx.core.speed import Interval, Making, SpeedReport
from traindx.core.text import EMPTY
from traindx.interventions.hold_batch import HoldBatch
from traindx.interventions.tools.handmade import HandMade
from traindx.interventions.tools.stage import Stage
from traindx.perform.timing.finder import Finder
from traindx.probes import sites
from traindx.speed import by_hand
from traindx.speed.answering import Speeding
from traindx.speed.route import Route

# a training without torch: what would be seen of it is told to the finder
PLAY = """
def model(*args): finder._note("forward"); return 0.0
def loss_of(*args): finder._note("loss"); return 0.0
def backward(*args): finder._note("backward")
def step(): finder._note("step"); tick()
def tick(): finder.on_tick(finder._step + 1)
"""


def routed(tmp_path, source: str) -> tuple[Route, list[str]]:
    """The route, and the text of what it says makes batches."""
    file = tmp_path / "train.py"
    file.write_text(source)
    finder = Finder(Stage())
    play = {"finder": finder}
    exec(compile(PLAY, "<play>", "exec"), play)
    sites.is_user(str(file))
    exec(compile(source, str(file), "exec"), play)
    route = finder.route()
    return route, [text_of(source, making) for making in route.makings if making.holds]


def text_of(source: str, making: Making) -> str:
    first, last, begin, end = making.span
    lines = source.splitlines()[first - 1:last]
    return lines[0][begin:end] if first == last else "\n".join([lines[0][begin:], *lines[1:-1], lines[-1][:end]])


FUNCTION = """
def get_batch(split): return [1], [2]
for at in range(4):
    x, y = get_batch("train")
    loss = loss_of(model(x), y)
    backward(loss)
    step()
"""
AHEAD = FUNCTION.replace('    x, y = get_batch("train")\n', "").replace("    backward", '    x, y = get_batch("train")\n    backward').replace(
    "for at", 'x, y = get_batch("train")\nfor at')
GENERATOR = """
def batches():
    for _ in range(4): yield [1], [2]
def epoch():
    for at, (x, y) in enumerate(batches()):
        backward(loss_of(model(x), y))
        step()
epoch()
"""
INLINE = """
data, labels = list(range(40)), list(range(40))
for epoch in range(2):
    order = sorted(range(40))
    for begin in range(0, 40, 20):
        rows = order[begin:begin + 20]
        backward(loss_of(model(data[rows[0]]), labels[rows[0]]))
        step()
"""
CLASS = """
class Trainer:
    def __init__(self): self.source = iter([[1], [2], [3], [4]])
    def one(self, batch):
        x = batch[0]
        self.loss = loss_of(model(x))
        backward(self.loss)
        step()
    def fit(self):
        while True:
            batch = next(self.source, None)
            if batch is None: break
            self.one(batch)
Trainer().fit()
"""
PASSED = """
def train(x, y):
    backward(loss_of(model(x), y))
    step()
def get(n): return [n], [n]
for at in range(4):
    train(*get(at))
"""
FILLED = """
for at in range(4):
    x = list(range(3))
    for row in range(3):
        x[row] = row * at
    backward(loss_of(model(x)))
    step()
"""
DEPENDENT = """
def act(action): return [action]
state = [0]
for at in range(4):
    action = model(state)
    state = act(action)
    backward(action)
    step()
"""
RECURRENT = """
def get(): return [1]
hidden = [0]
for at in range(4):
    x = get()
    hidden = list(map(abs, hidden))
    hidden = [model(x, hidden)]
    backward(loss_of(hidden))
    step()
"""
CONSTANT = """
x, y = [1], [2]
for at in range(4):
    backward(loss_of(model(x), y))
    step()
"""
MOVED = FUNCTION.replace("    loss =", "    x, y = x.copy(), y[:1]\n    loss =")


CLOSURE = """
def get(): return [1], [2]
for at in range(4):
    x, y = get()
    def closure():
        loss = loss_of(model(x), y)
        backward(loss)
        return loss
    closure()
    step()
"""
GLOBALS = """
def get(): return [1], [2]
def train():
    scale = 2
    backward(loss_of(model(x), y))
    step()
for at in range(4):
    x, y = get()
    scale = abs(at)
    train()
"""


@pytest.mark.parametrize(("source", "made"), [
    (CLOSURE, ["get()"]), (GLOBALS, ["get()"]),
    (FUNCTION, ['get_batch("train")']), (AHEAD, ['get_batch("train")']), (GENERATOR, ["batches()"]),
    (INLINE, ["order[begin:begin + 20]", "sorted(range(40))", "data[rows[0]]", "labels[rows[0]]"]),
    (CLASS, ["next(self.source, None)"]), (PASSED, ["get(at)"]), (DEPENDENT, []), (RECURRENT, ["get()"]), (CONSTANT, []),
    (MOVED, ['get_batch("train")'])],
    ids=["closure", "globals", "function", "ahead of its step", "generator", "inline", "class", "passed on", "depends on the model", "recurrent", "constant", "moved"])
def test_the_lines_that_make_batches(source, made, tmp_path):
    assert sorted(routed(tmp_path, source)[1]) == sorted(made)


@pytest.mark.parametrize(("source", "made"), [
    (FUNCTION, ['get_batch("train")']), (GENERATOR, ["batches()"]), (INLINE, ["order[begin:begin + 20]", "sorted(range(40))"]), (PASSED, [])],
    ids=["function", "generator", "inline", "passed on"])
def test_where_python_does_not_tell_the_expression_that_runs_its_line_does(source, made, tmp_path, monkeypatch):
    """Before 3.11: what is made inside the call itself cannot be told from it then, and nothing is said to be constant for that."""
    monkeypatch.setattr("traindx.perform.timing.finder._span", lambda frame, at: None)
    route, found = routed(tmp_path, source)
    assert sorted(found) == sorted(made) and not route.constant


def test_what_is_not_made_or_not_known_is_told_apart(tmp_path):
    constant, dependent, recurrent = (routed(tmp_path, source)[0] for source in (CONSTANT, DEPENDENT, RECURRENT))
    assert constant.constant and not constant.found and not constant.unclear
    assert dependent.unclear and not dependent.constant and not dependent.found
    assert recurrent.unclear and recurrent.found


def test_lines_that_fill_a_batch_can_be_timed_only(tmp_path):
    route, made = routed(tmp_path, FILLED)
    assert made == ["list(range(3))"] and [line[1:] for line in route.lines] == [(5, 5)]


def test_only_the_loop_around_forward_and_step_begins_anew(tmp_path):
    accumulates = FUNCTION.replace("    x, y", "    for part in [1, 2]:\n        x, y").replace("    loss =", "        loss =").replace(
        "    backward", "        backward")
    without_optimizer = GENERATOR.replace("step()", "tick()")
    for source, head in ((GENERATOR, "batches()"), (without_optimizer, "batches()"), (INLINE, "range(0, 40, 20)"), (accumulates, "range(4)")):
        route, _ = routed(tmp_path, source)
        assert [text_of(source, making) for making in route.makings if making.turns] == [head]


HIDDEN = """
import torch
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(3, 2)
def turn():
    global x
    x = torch.randn(3, 2)
for at in range(60):
    turn()
    net(x).mean().backward()
    opt.step()
"""


def test_a_batch_that_changes_out_of_sight_is_not_said_to_be_constant(tmp_path):
    assert diagnosed(tmp_path, HIDDEN).report.remarks[0] == by_hand.NOT_FOLLOWED
    steady = HIDDEN.replace("    turn()\n", "")
    speed = diagnosed(tmp_path, steady)
    assert speed.report.remarks[0] == by_hand.NOTHING_MADE and speed.route.constant


MODULE = """
import random
import torch
def rows(): return torch.tensor([[random.random(), random.random()] for _ in range(4)])
def train(net, opt):
    for at in range(40):
        x = rows()
        loss = torch.nn.functional.mse_loss(torch.nn.functional.dropout(net(x)), x.sum(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item())
"""
STARTER = """
import torch
from parts import engine
torch.manual_seed(1)
net = torch.nn.Linear(2, 1)
engine.train(net, torch.optim.SGD(net.parameters(), lr=0.1))
"""


def test_a_loop_in_a_module_is_found_and_trains_as_before(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "engine.py").write_text(MODULE)
    (tmp_path / "train.py").write_text(STARTER)
    speed = speeding(tmp_path / "train.py", tmp_path)
    job = {"kind": "pairs", "groups": [], "rounds": 0}
    found = speed.ask(EMPTY, {**job, "find": True}, {})
    route = found.facts["route"]
    assert by_hand.lines_of(decode(Route, route)) == "engine.py:7" and not (tmp_path / "parts" / "__pycache__").exists()
    plain, routed = (speed.ask(EMPTY, {**job, **more}, {}).facts["first"]["losses"] for more in ({}, {"route": route}))
    assert len(plain) == 5 and plain == routed


# -- compiled so --------------------------------------------------------------------------------------------------------

def played(source: str, route: Route, endless: bool = False, most: int = 100) -> list:
    """What the program noted, as it is compiled with its makings passing through."""
    seen: list = []
    with ExitStack() as stack:
        hand = HandMade(route.makings)
        hand.endless = endless
        hand.install(stack)

        def note(value):
            seen.append(value)
            if len(seen) == most:
                raise SystemExit
        try:
            exec(hand.compiled(source.encode(), route.makings[0].file), {"note": note})
        except SystemExit:
            pass
    assert not [name for name in vars(builtins) if "traindx" in name]
    return seen


NOTED = """
from __future__ import annotations
import random
random.seed(3)
class Source:
    def __init__(self): self.__at = 0
    def batch(self): self.__at += 1; return [self.__at, random.random()]
def train(source, n):
    for at in range(n):
        x, y = source.batch()
        note((at, x, y))
train(Source(), 5)
"""


def test_a_program_compiled_so_does_the_same(tmp_path):
    call, loop = (10, 10, 15, 29), (9, 9, 14, 22)
    file = str(tmp_path / "train.py")
    route = Route([Making(file, call), Making(file, loop, True, False, True)])
    plain: list = []
    exec(compile(NOTED, file, "exec"), {"note": plain.append})
    assert played(NOTED, route) == plain and len(plain) == 5
    longer = played(NOTED, route, endless=True, most=12)
    assert longer[:5] == plain and [at for at, *_ in longer] == [*range(5), *range(5), 0, 1] and [x for _, x, _ in longer] == [*range(1, 13)]


def test_a_generator_is_begun_anew_but_one_that_is_used_up_is_not(tmp_path):
    source = "def gen():\n    yield 1\n    yield 2\nfor x in gen():\n    note(x)\nused = gen()\nfor x in used:\n    note(-x)\n"
    file = str(tmp_path / "train.py")
    turning = Route([Making(file, (7, 7, 9, 13), True, True, True)])
    assert played(source, turning, endless=True) == [1, 2, -1, -2]
    assert played(source, Route([Making(file, (4, 4, 9, 14), True, True, True)]), endless=True, most=5) == [1, 2, 1, 2, 1]


# -- held ---------------------------------------------------------------------------------------------------------------

TRAINED = """
import torch
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.0)
def rows_of(at): return torch.full((3,), at)
def batch_of(rows): return torch.stack([rows, rows], 1).float(), rows[:, None].float()
for at in range(30):
    rows = rows_of(at)
    x, y = batch_of(rows)
    note(at, x, y)
    torch.nn.functional.mse_loss(net(x), y).backward()
    opt.step()
"""
SPANS = ((8, 8, 11, 22), (9, 9, 11, 25))


def held(tmp_path, source=TRAINED, spans=SPANS, **settings):
    """(step, first value of x, shape of x, of y) of each step; batches are held from the 20th on."""
    seen = []
    file = str(tmp_path / "train.py")
    with ExitStack() as stack:
        hold = HoldBatch(stage := stack.enter_context(Stage()), **settings)
        hold.on = False
        stack.enter_context(hold)
        hand = HandMade([Making(file, span) for span in spans])
        hand.install(stack)

        def note(at, x, y):
            seen.append((at, float(x[0, 0]), tuple(x.shape), tuple(y.shape)))
            hold.on = at >= 18
        exec(hand.compiled(source.encode(), file), {"note": note})
        state = hold.state()
        assert stage.steps == 30
    return seen, state


def test_held_batches_are_those_of_eight_whole_steps_in_turn(tmp_path):
    seen, state = held(tmp_path)
    assert [at for at, *_ in seen] == list(range(30)), "what does not make a batch runs on"
    first = seen[19][1]
    assert [value for _, value, *_ in seen] == [*range(19), *(first + n % 8 for n in range(11))] and first <= 2
    assert state.state == "applied"


def test_a_held_batch_is_several_times_over_with_all_that_belongs_to_it(tmp_path):
    seen, state = held(tmp_path, times=2)
    assert state.state == "applied"
    assert {one[2:] for one in seen[:19]} == {((3, 2), (3, 1))}
    assert {one[2:] for one in seen[19:]} == {((6, 2), (6, 1))}


def test_a_batch_of_uneven_tensors_is_not_made_larger(tmp_path):
    uneven = TRAINED.replace("return torch.stack([rows, rows], 1).float(), rows[:, None].float()",
                             "return torch.stack([rows, rows], 1).float(), rows[:1, None].float().expand(1, 1)").replace(
                                 "mse_loss(net(x), y)", "mse_loss(net(x), y.expand(len(x), 1))")
    _, state = held(tmp_path, uneven, times=2)
    assert state.state == "not-applicable" and "larger" in state.why.en


def test_what_the_program_writes_into_is_given_as_it_was_made(tmp_path):
    writing = TRAINED.replace("    note(", "    x.add_(1000)\n    note(")
    values = [value for _, value, *_ in held(tmp_path, writing)[0]]
    assert all(1000 <= value < 2000 for value in values)


def test_a_batch_that_is_always_the_same_is_made_larger_where_it_goes_in(tmp_path):
    constant = TRAINED.replace("for at", "rows = torch.arange(3)\nx, y = batch_of(rows)\nfor at").replace(
        "    rows = rows_of(at)\n    x, y = batch_of(rows)\n", "").replace("net(x)", "look(net(x))").replace(
            "def rows_of", "sizes = []\ndef look(t):\n    sizes.append(len(t))\n    return t\ndef rows_of")
    _, state = held(tmp_path, constant + "assert sizes == [3] * 18 + [9] * 12, sizes\n", (), times=3, inputs=True)
    assert state.state == "applied"


# -- what is said ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("fetch", "rest", "most", "workers", "ratio"), [
    (0.02, 0.01, 8, 2, 3.0), (0.09, 0.01, 4, 4, 0.1 / 0.0225), (0.001, 0.1, 4, 1, 1.01), (0.05, 0.0, 2, 2, 2.0)])
def test_the_fewest_workers_that_keep_up_and_what_they_gain_at_most(fetch, rest, most, workers, ratio):
    found = by_hand.bound(fetch, rest, most)
    assert found[0] == workers and found[1] == pytest.approx(ratio)


def test_a_loader_is_proposed_with_its_upper_bound_or_not_at_all():
    route = Route([Making("/a/train.py", (12, 12, 1, 9))], [("/a/train.py", 14, 14)])
    report = SpeedReport(phases={"input": 0.03, "forward": 0.01}, held=Interval(3.5, 3.2, 3.8, 9, 9))
    change = by_hand.ahead(report, Route(route.makings), 8)
    assert change.interval is None and "x3.5" in change.why.en and "3 workers" in change.why.en and "upper bound (formula" in change.why.en
    assert "上限（公式" in change.why.zh and "num_workers=3" in change.diff.zh
    assert "x4" in by_hand.ahead(report, route, 8).why.en, "what could not be held is no bound"
    little = by_hand.ahead(SpeedReport(phases={"input": 0.0002, "forward": 0.01}), route, 8)
    assert "nothing to gain" in little.why.en and not little.diff.en
    assert by_hand.lines_of(route) == "train.py:12, 14"


def test_how_batches_come_is_said():
    said = [by_hand.remark(route) for route in (Route(constant=True), Route(), Route(lines=[("a.py", 3, 3)], unclear=True))]
    assert "nothing is fetched" in said[0].en and "not measured" in said[1].en and "没有测出" in said[1].zh
    assert "a.py:3" in said[2].en and "not held" in said[2].en


# -- whole programs -------------------------------------------------------------------------------------------------------

SLEEPY = """
import time, torch
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def get_batch():
    time.sleep(0.02)
    x = torch.randn(4, 2)
    return x, x.sum(1, keepdim=True)
for at in range(60):
    x, y = get_batch()
    opt.zero_grad()
    torch.nn.functional.mse_loss(net(x), y).backward()
    opt.step()
"""


def diagnosed(tmp_path, source) -> Speeding:
    (tmp_path / "train.py").write_text(source)
    speed = speeding(tmp_path / "train.py", tmp_path)
    speed.answer = speed.diagnose()
    return speed


def test_a_slow_function_is_input_bound_with_its_line_and_its_remedy(tmp_path):
    speed = diagnosed(tmp_path, SLEEPY)
    report = speed.report
    assert report.verdict == "input-bound" and report.held.low > 2
    assert ("speed/input-bound", 6) in [(judged.rule, judged.finding.where.line) for judged in report.findings]
    speed.search(speed.answer.facts["profile"], False)
    assert "train.py:10" in report.data[0].why.en and "upper bound" in report.data[0].why.en
    assert report.profiled.shares["input"] > 0, "torch.profiler sees it as fetching too"
    assert any("makes them itself (train.py:10)" in remark.en for remark in report.remarks)


def test_a_program_that_does_not_bear_it_is_timed_as_it_is(tmp_path):
    proud = SLEEPY.replace("    time.sleep(0.02)\n", "    assert sys._getframe(1).f_code.co_name == '<module>'\n    time.sleep(0.02)\n").replace(
        "import time", "import sys, time").replace("0.02", "0.001").replace("range(60)", "range(3000)")
    report = diagnosed(tmp_path, proud).report
    assert report.baseline.step_seconds > 0.001 and report.remarks[-1] == by_hand.NOT_FOLLOWED


def test_a_teacher_in_every_step_is_part_of_the_step(tmp_path):
    speed = diagnosed(tmp_path, SLEEPY.replace("torch.nn.functional.mse_loss(net(x), y)", "loss").replace(
        "    opt.zero_grad()", "    with torch.no_grad():\n        aim = teacher(x)\n    opt.zero_grad()\n    "
        "loss = torch.nn.functional.mse_loss(net(x), aim)").replace("def get", "teacher = torch.nn.Linear(2, 1)\ndef get"))
    assert speed.report.verdict == "input-bound" and speed.answer.facts["profile"]["evaluates"]
