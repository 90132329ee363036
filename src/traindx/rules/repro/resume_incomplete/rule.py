"""The run was resumed without its optimizer's state.

What it is:
A checkpoint is loaded to go on with a training: the weights and the epoch come back, but the optimizer's moments (or the
scheduler's place, or the loss scale) start from nothing.

Why it is silent:
A new optimizer is as valid as an old one. Only its averages are empty: Adam's first steps are then as large as the learning
rate allows, whatever the gradient, and a scheduler begins its warm-up again.

What you see:
A bump in the loss after every resume, and a run that ends elsewhere than an uninterrupted one.

Look-alikes:
Fine-tuning from somebody's weights starts a new optimizer on purpose, and does not take over the epoch. Restoring the best
weights and then only evaluating needs no optimizer. Plain SGD has no state to lose.

Fix:
Save and load every part that has a state.

Before:
    model.load_state_dict(checkpoint["model"])
After:
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])

Experiment:
Run without the interruption from the same seed and compare the losses after the resume.

Source:
PyTorch tutorial "Saving and Loading a General Checkpoint in PyTorch".
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.checkpoints import FileRead, FileSaved, StateLoaded, WeightsLoaded
from traindx.core.observed.program import OptimizerMade, SchedulerMade, Window
from traindx.core.text import Text

ZH = """断点续训时没有恢复优化器状态

是什么：
加载检查点是为了接着训练：权重和轮数都回来了，但优化器的动量（或者学习率调度的进度、损失缩放的系数）却从零开始。

为什么不报错：
新建的优化器和旧的一样合法，只是平均值是空的：Adam 的头几步不管梯度多大，都会迈到学习率允许的最大步长；学习率调度又从预热开始。

你会看到：
每次续训后损失都会跳一下，最终结果和不中断的训练不一样。

容易混淆的情况：
拿别人的权重做微调，本来就要新建优化器，也不会接着用原来的轮数。只恢复最佳权重做评测，不需要优化器。普通 SGD 没有状态可丢。

怎么改：
凡是有状态的部分，都要存、都要加载。

改前：
    model.load_state_dict(checkpoint["model"])
改后：
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])

对照实验：
用同一个随机种子不中断地跑一遍，比较续训之后的损失。

来源：
PyTorch 教程 Saving and Loading a General Checkpoint in PyTorch。
"""
LEVEL = "warning"
STEP = 0
EXPLAINS = ("optim/momentum-buffer-lost", "optim/scheduler-before-step", "curve/spike")

STATELESS = ("SGD",)

CAUSE = Text("The program resumes from {path} (it takes the weights and {counts} from it), but {parts} {held}: "
             "the training goes on with {parts} from nothing.",
             "程序从 {path} 断点续训（取回了权重和 {counts}），可是{held}：训练接着跑，{parts}却从零开始。")
UNUSED = Text("is in the file and is not loaded", "文件里存了{parts}，却没有加载")
ABSENT = Text("was never saved", "文件里根本没存{parts}")
OPTIMIZER = Text("the optimizer's state", "优化器状态")
SCHEDULER = Text("the scheduler's state", "学习率调度器状态")
FIX_UNUSED = Text("Call {what}.load_state_dict(...) with it before training goes on.", "继续训练前，用它调用 {what}.load_state_dict(...)。")
FIX_ABSENT = Text("Save {what}.state_dict() beside the weights, and load it on resume.",
                  "保存权重时把 {what}.state_dict() 一起存下，续训时再加载。")
AFTER = Text("optimizer steps after the load", "加载之后的优化器步数")
IN_FILE = Text("parts in the file", "文件里的内容")
WANTED = Text("weights, optimizer, scheduler and counter", "权重、优化器、调度器和计数")
INFERRED = Text("from the source: the program reads {counts} from the file, which only a resumed run needs",
                "源码：程序读取了文件里的 {counts}，只有续训才需要它")


def check(files: list[FileRead], loads: list[WeightsLoaded], windows: list[Window], optimizers: list[OptimizerMade],
          states: list[StateLoaded] | None, schedulers: list[SchedulerMade] | None, saves: list[FileSaved] | None) -> Iterator[Finding]:
    for file in files:
        counts = [key for key, what in file.holds.items() if what == "count" and key in file.reads]
        load = next((w for w in loads if w.step == file.step and w.from_file and w.matched == w.own), None)
        if load is None or not counts:
            continue
        restored = {(state.what, state.id) for state in states or []}
        fresh = [o for o in optimizers if _goes_on(o.id, load, windows) and ("optimizer", o.id) not in restored]
        lost = next((o for o in fresh if _has_state(o)), None)
        if lost is not None and _was_stateful(file):
            yield _finding(file, load, counts, "optimizer", lost.site, windows, saves or [])
        elif "scheduler" in file.holds.values() and (late := _scheduler(schedulers or [], load, restored)):
            yield _finding(file, load, counts, "scheduler", late.site, windows, saves or [])


def _goes_on(optimizer: int, load: WeightsLoaded, windows: list[Window]) -> bool:
    """It steps after the load and had not stepped before: another optimizer than the one that was interrupted."""
    stepped = [w for w in windows if any(e.what == "step" and e.who == optimizer for e in w.events)]
    return any(w.last_step >= load.step for w in stepped) and not any(w.step < load.step for w in stepped)


def _has_state(optimizer: OptimizerMade) -> bool:
    momentum = any(float(group.get("momentum", "0") or 0) for group in optimizer.settings if _is_number(group.get("momentum", "0")))
    return optimizer.class_name not in STATELESS or momentum


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _was_stateful(file: FileRead) -> bool:
    return file.stateful or "optimizer" not in file.holds.values()


def _scheduler(schedulers: list[SchedulerMade], load: WeightsLoaded, restored: set[tuple[str, int]]) -> SchedulerMade | None:
    """A scheduler made anew for the resumed run, at its beginning."""
    return next((s for s in schedulers if ("scheduler", s.id) not in restored and s.step >= load.step and s.calls
                 and (s.settings or {}).get("last_epoch", "0") in ("0", "-1")), None)


def _finding(file: FileRead, load: WeightsLoaded, counts: list[str], what: str, made_at: Site | None, windows: list[Window],
             saves: list[FileSaved]) -> Finding:
    parts = OPTIMIZER if what == "optimizer" else SCHEDULER
    held = what in file.holds.values()
    saved = next((s.site for s in saves if s.path == file.path), None)
    where = load.site if held else saved or load.site
    said = ", ".join(f'"{key}"' for key in counts)
    last = max(w.last_step for w in windows)
    return Finding(
        cause=CAUSE.fill(path=file.path.rsplit("/", 1)[-1], counts=said, parts=parts, held=(UNUSED if held else ABSENT).fill(parts=parts)),
        fix=(FIX_UNUSED if held else FIX_ABSENT).fill(what=what), where=where,
        also=tuple(s for s in dict.fromkeys((load.site, file.site, made_at)) if s is not None and s != where),
        evidence=(Evidence(AFTER, last - load.step + 1, step=load.step), Evidence(IN_FILE, ", ".join(file.holds.values()), WANTED)),
        first_step=load.step, confidence="likely", because=INFERRED.fill(counts=said))
