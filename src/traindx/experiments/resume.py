"""Can the training be resumed? It is broken off after a checkpoint, resumed as it offers itself, and compared with the unbroken run."""
from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from traindx.core.exams import StepResult
from traindx.core.findings import Evidence
from traindx.core.text import Text, joined, number, same
from traindx.core.trials import Gauge, Interruption, Step, Trace, Trial
from traindx.experiments.bench import Bench
from traindx.experiments.proofs import curve

STEP = 7
NAME = "resume"
STEPS = (300, 3000)  # of the unbroken run: more where it has not saved by then
CHECKPOINT = "{checkpoint}"
ROUNDING = 1e-5  # relative; with everything restored, what remains is the order of additions
FIELDS = ("inputs", "target", "loss", "lr", "scale", "grad_norm", "moved")  # of a step, in the order in which one follows from another
HOW = r"(_(path|file|ckpt|checkpoint|training|train|dir|run))?"
OPTIONS = (rf"(auto_)?resume(_from)?{HOW}", rf"continue(_from)?{HOW}", rf"restart(_from)?{HOW}", rf"restore(_from)?{HOW}",
           r"load_(checkpoint|ckpt|from)", r"ckpt_path", r"from_(checkpoint|ckpt)")

UNBROKEN = Text("the program as written, unbroken", "原样运行，不中断")
RESUMING = Text("broken off after step {step}, then resumed", "第 {step} 步之后中断，再续训")
NOT_SAVED = Text("no checkpoint was written with torch.save or safetensors in the {steps} step{steps:|s} that ran, so there is nothing to "
                 "resume from",
                 "运行的 {steps} 步里没有用 torch.save 或 safetensors 写过检查点，没有东西可以续训")
SAVED_LATE = Text("checkpoints are written only at the end of the run, after which no step follows to compare with",
                  "只在训练结束时写检查点，后面没有训练步可以比较")
SAVE_OFTEN = Text("Save a checkpoint every epoch, or give the runs more time with --seconds.",
                  "每轮存一次检查点，或者用 --seconds 多给些时间。")
NOT_REPEATABLE = Text("two unbroken runs with the same seeds differ already, so a difference after the resume would say nothing",
                      "种子相同、都不中断的两次运行，就已经不同；续训之后的差别说明不了什么")
NO_WAY = Text("no way to resume was found: the program has no option such as --resume (looked for in argparse), and run again it does not "
              "read the checkpoint that it left",
              "没有找到续训的办法：程序没有 --resume 之类的选项（在 argparse 里找过），再运行一次也不会自己读取留下的检查点")
SAY_HOW = Text("Say how, for example: --resume-args '--resume {{checkpoint}}' ({{checkpoint}} stands for the file written last).",
               "请说明怎样续训，例如：--resume-args '--resume {{checkpoint}}'（{{checkpoint}} 代表最后写下的那个文件）。")
GUESSED_WRONG = Text("resumed with {how}, which was guessed from its options, the program came to no step: {error}",
                     "按猜到的选项 {how} 续训，程序一步也没有跑：{error}")
CRASHED = Text("resumed with {how}, the program came to no step: {error}", "按 {how} 续训，程序一步也没有跑：{error}")
THE_SAME_COMMAND = Text("the same command", "同样的命令")
NOT_BROKEN = Text("the run could not be broken off after step {step}: {error}", "没能在第 {step} 步之后中断：{error}")
ENDED = Text("it ended ({ended})", "程序结束了（{ended}）")
PASSED = Text("broken off after step {step} and resumed with {how}: the next {count} step{count:|s} are those of the unbroken run, to the "
              "last bit",
              "第 {step} 步之后中断，按 {how} 续训：接下来的 {count} 步与不中断的运行逐位相同")
PASSED_NEARLY = Text("broken off after step {step} and resumed with {how}: everything is restored, and the next {count} step{count:|s} are "
                     "those of the unbroken run up to rounding",
                     "第 {step} 步之后中断，按 {how} 续训：状态全部恢复，接下来的 {count} 步与不中断的运行只差舍入误差")
FAILED = Text("broken off after step {step} and resumed with {how}, it is another training: {first}. Not restored: {parts}.",
              "第 {step} 步之后中断，按 {how} 续训，已经不是同一次训练：{first}。没有恢复的有：{parts}。")
FAILED_UNKNOWN = Text("broken off after step {step} and resumed with {how}, it is another training: {first}. Weights, optimizer, scheduler, "
                      "scaler and random generators are as they were; something else that the program keeps is not",
                      "第 {step} 步之后中断，按 {how} 续训，已经不是同一次训练：{first}。权重、优化器、调度器、"
                      "GradScaler 和随机数生成器都和原来一样；没有恢复的，是程序自己另外记着的东西")
DIFFERS = Text("at step {step} {what} is {value} instead of {expected}", "第 {step} 步的{what}是 {value}，应为 {expected}")
SAME_SO_FAR = Text("the {count} step{count:|s} compared are the same, but what comes later will not be",
                   "比较过的 {count} 步相同，但以后不会相同")
QUANTITIES = {"inputs": Text("the batch", " batch "), "target": Text("the target", "目标"), "loss": Text("the loss", "损失"),
              "lr": Text("the learning rate", "学习率"), "scale": Text("the loss scale", "损失缩放系数"),
              "grad_norm": Text("the gradient norm", "梯度范数"), "moved": Text("the size of the update", "更新的大小")}
ANOTHER, THE_SAME = Text("another one", "另一个"), Text("that of the unbroken run", "不中断时的那个")

PARTS = {"model": Text("the weights", "权重"), "optimizer": Text("the optimizer", "优化器"), "scheduler": Text("the scheduler", "学习率调度器"),
         "scaler": Text("the GradScaler", "GradScaler"), "rng": Text("the random number generators", "随机数生成器状态"),
         "sampler": Text("the place in the data (sampler, epoch)", "数据读到了哪里（采样器、轮次）"),
         "counter": Text("the count of epochs or steps", "轮数或步数")}
FIXES = {"model": Text("model.load_state_dict(...) from the checkpoint", "用检查点调用 model.load_state_dict(...)"),
         "optimizer": Text("save optimizer.state_dict() and load it", "保存 optimizer.state_dict() 并加载"),
         "scheduler": Text("save scheduler.state_dict() and load it, after the optimizer's", "保存 scheduler.state_dict() 并在优化器之后加载"),
         "scaler": Text("save scaler.state_dict() and load it", "保存 scaler.state_dict() 并加载"),
         "rng": Text("save torch.get_rng_state() (and numpy's, Python's, the loader's generator) and set them again, or seed every epoch "
                     "by its number",
                     "保存 torch.get_rng_state()（以及 numpy、Python、DataLoader 生成器的状态）并恢复；或者每一轮按轮次编号重设种子"),
         "sampler": Text("save at the end of an epoch, or skip the batches that were done; call set_epoch(epoch)",
                         "在一轮结束时保存，或者跳过已经用过的 batch；记得调用 set_epoch(epoch)"),
         "counter": Text("save the epoch and begin the loop after it", "保存轮数，循环从下一轮开始")}
MEND = Text("Restore: {fixes}.", "要恢复的：{fixes}。")
NEVER_SAVED = Text("never saved", "从没保存过")
NOT_LOADED = Text("saved, and not loaded", "存了，但没有加载")
FROM_NOTHING = Text("its moments start from nothing ({why})", "动量从零开始（{why}）")
OF_ANOTHER = Text("its moments are those of another step", "动量是另一步的")
STARTS_AT = Text("{name} is {value} ({why})", "{name} 是 {value}（{why}）")
BEGINS_ANEW = Text("as at the very beginning", "和最开始时一样")
OTHER_WEIGHTS = Text("others than at the checkpoint", "和存检查点时不同")
GENERATORS = Text("{names}: another state ({why})", "{names}：状态不同（{why}）")
OWN_GENERATOR = Text("a generator of its own", "程序自己的生成器")
BATCH = Text("batch {value} of its epoch", "这一轮的第 {value} 个 batch")
FIRST_AGAIN = Text("the batch of step {step}", "第 {step} 步的那个 batch")
GOES_ON = Text("it trains {value} step{value:|s} more", "又训练了 {value} 步")
GOES_ON_EXPECTED = Text("{value}, up to the end of the unbroken run", "{value} 步，到不中断的运行结束为止")


@dataclass(frozen=True)
class Way:
    """How a program is resumed. ``guessed``: from its options, not told by the user."""

    args: tuple[str, ...]
    guessed: bool = True

    def shown(self, checkpoint: str | None) -> Text:
        words = " ".join(self.args).replace(CHECKPOINT, (checkpoint or CHECKPOINT).rpartition("/")[2])
        return same(words) if words else THE_SAME_COMMAND


def examine(bench: Bench, repeatable: bool | None, words: str | None = None) -> StepResult:
    """``words``: what the user says to append when resuming."""
    whole, point, without = _unbroken(bench)
    if point is None:
        late = any(save["step"] for save in _saves(whole))
        why = SAVED_LATE if late else NOT_SAVED.fill(steps=len(whole.steps))
        return StepResult(STEP, "not-checked", why, next=SAVE_OFTEN)
    if repeatable is False:
        return StepResult(STEP, "not-checked", NOT_REPEATABLE)
    way = way_of(_options(whole), words)
    again = bench.one(RESUMING.fill(step=point["step"]), replace(_resumed(bench, whole, way, point["step"]), without=without))
    return judge(whole, again, point["step"], way)


def _unbroken(bench: Bench) -> tuple[Trace, dict[str, Any] | None, tuple[str, ...]]:
    """The run to compare with, and the checkpoint in it after which another one is broken off. A checkpoint that lay there
    already, and from which the program went on by itself, is put aside."""
    without: tuple[str, ...] = ()
    for steps in STEPS:
        trial = bench.plain.measuring(Gauge("resume_point"), Gauge("resume_state")).for_steps(steps)
        whole = bench.one(UNBROKEN, replace(trial, without=without))
        if not without and (lying := _went_on_from(whole)):
            without = lying
            whole = bench.one(UNBROKEN, replace(trial, without=without))
        point = chosen(whole)
        if point is not None or whole.ended != "steps":
            break
    return whole, point, without


def _went_on_from(whole: Trace) -> tuple[str, ...]:
    """Files that it read before its first step and would have written."""
    written = {path.rpartition("/")[2] for path in whole.would_write}
    return tuple(path for path in dict.fromkeys(_reads(whole)) if path.rpartition("/")[2] in written)


def _resumed(bench: Bench, whole: Trace, way: Way, steps: int) -> Trial:
    """As many steps as the unbroken run had left; one more where that had come to its end."""
    plain = bench.plain
    program = replace(plain.program, args=(*plain.program.args, *way.args))
    left = len(whole.steps) - steps + (whole.ended == "script")
    return replace(plain.measuring(Gauge("resume_point")), program=program, after=Interruption(plain.program, steps),
                   budget=replace(plain.budget, steps=left, seconds=2 * plain.budget.seconds))


# -- where to break off, and how to go on ----------------------------------------------------------------------------------

def _saves(whole: Trace) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (whole.facts.get("resume_state") or {}).get("saves") or []
    return found


def _points(trace: Trace) -> dict[int, dict[str, Any]]:
    return {point["step"]: point for point in (trace.facts.get("resume_point") or {}).get("points") or []}


def chosen(whole: Trace) -> dict[str, Any] | None:
    """Of the checkpoints that hold most, the one nearest to the middle of the run; None where no step follows any."""
    points, held = _points(whole), dict[int, set[str]]()
    for save in _saves(whole):
        held.setdefault(save["step"], set()).update(part["what"] for part in save["holds"])
    fitting = [step for step in points if 0 < step < len(whole.steps)]
    most = max((len(held.get(step, ())) for step in fitting), default=0)
    best = [step for step in fitting if len(held.get(step, ())) == most]
    return points[min(best, key=lambda step: (abs(step - len(whole.steps) / 2), step))] if best else None


def _reads(trace: Trace) -> list[str]:
    found: list[str] = (trace.facts.get("resume_point") or {}).get("reads") or []
    return found


def _options(whole: Trace) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (whole.facts.get("resume_point") or {}).get("options") or []
    return found


def way_of(options: Sequence[dict[str, Any]], words: str | None = None) -> Way:
    """What the user says; else the option whose name says it most plainly; else nothing: the program may look by itself."""
    if words is not None:
        return Way(tuple(shlex.split(words)), guessed=False)
    for pattern in OPTIONS:
        for option in options:
            name = option["dest"].lower().replace("-", "_")
            if re.fullmatch(pattern, name) and option["takes"] != "number":
                longest = max(option["names"], key=len)
                if option["takes"] == "flag":
                    plain = [word for word in option["names"] if not word.startswith("--no")]
                    return Way((max(plain, key=len, default=longest),))
                return Way((longest, "true" if option["takes"] == "truth" else CHECKPOINT))
    return Way(())


# -- the verdict -----------------------------------------------------------------------------------------------------------

def judge(whole: Trace, again: Trace, step: int, way: Way) -> StepResult:
    interrupted = again.facts.get("interrupted") or {}
    if interrupted.get("ended") != "steps":
        error = interrupted.get("error") or (again.why if again.error else again.how)
        return StepResult(STEP, "not-checked", NOT_BROKEN.fill(step=step, error=error))
    how = way.shown(interrupted.get("checkpoint"))
    if not again.steps:
        return _no_step(again, way, how)
    comparison = Comparison(whole, again, step, _points(whole)[step], _points(again).get(0) or {})
    if not way.args and not comparison.read_something():
        return StepResult(STEP, "not-checked", NO_WAY, next=SAY_HOW.fill())
    return _verdict(comparison, how)


def _no_step(again: Trace, way: Way, how: Text) -> StepResult:
    error = again.why if again.error else ENDED.fill(ended=again.how)
    if way.guessed and way.args:
        return StepResult(STEP, "not-checked", GUESSED_WRONG.fill(how=how, error=error), next=SAY_HOW.fill())
    return StepResult(STEP, "failed" if again.error else "not-checked", CRASHED.fill(how=how, error=error))


@dataclass(frozen=True)
class Comparison:
    """An unbroken and a resumed run. ``then`` and ``now``: where both stand when the resumed one begins."""

    whole: Trace
    again: Trace
    step: int
    then: dict[str, Any]
    now: dict[str, Any]

    @property
    def pairs(self) -> list[tuple[Step, Step]]:
        return list(zip(self.whole.steps[self.step:], self.again.steps))

    @property
    def beginning(self) -> dict[str, Any]:
        return _points(self.whole).get(0) or {}

    def first_difference(self) -> tuple[int, str] | None:
        """Step (of the unbroken run) and field."""
        for one, other in self.pairs:
            for name in FIELDS:
                if not _alike(getattr(one, name), getattr(other, name)):
                    return one.step, name
        return None

    def only_rounding(self) -> bool:
        return all(_near(getattr(one, name), getattr(other, name)) for one, other in self.pairs for name in FIELDS)

    def goes_past(self) -> bool:
        """Whether the unbroken run had come to its end where the resumed one goes on, or the other way round."""
        ended = self.whole.ended == "script" and self.again.ended in ("script", "steps")
        return ended and len(self.again.steps) != len(self.whole.steps) - self.step

    def read_something(self) -> bool:
        """Whether the second run took anything over from the first: it read another file, or has other weights than at the start."""
        anew = (self.now.get("models") or {}) == (self.beginning.get("models") or {})
        return bool(set(_reads(self.again)) - set(_reads(self.whole))) or not anew


def _alike(a: Any, b: Any) -> bool:
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


def _near(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float) and math.isfinite(a) and math.isfinite(b):
        return math.isclose(a, b, rel_tol=ROUNDING)
    return _alike(a, b)


def _verdict(seen: Comparison, how: Text) -> StepResult:
    first, parts = seen.first_difference(), dict(not_restored(seen))
    lasting = {name for name in parts if name in ("model", "optimizer", "scheduler", "scaler", "counter")}
    told = {"step": seen.step, "how": how, "count": len(seen.pairs)}
    result = StepResult(STEP, "passed", PASSED.fill(**told), curves=_curves(seen))
    if first is None and not lasting:
        return result
    if first is not None and not parts and seen.only_rounding():
        result.why = PASSED_NEARLY.fill(**told)
        return result
    result.verdict, result.not_restored = "failed", tuple(parts)
    said = _said(seen, first)
    named = joined(PARTS[name] for name in parts)
    result.why = (FAILED if parts else FAILED_UNKNOWN).fill(**told, first=said, parts=named)
    result.evidence = [evidence for evidence in parts.values() if evidence is not None]
    if parts:
        fixes = joined((FIXES[name] for name in parts), Text("; ", "；"))
        result.next = MEND.fill(fixes=fixes)
    return result


def _curves(seen: Comparison) -> dict[str, list[tuple[float, float]]]:
    return {"unbroken": curve(seen.whole), "resumed": [(x + seen.step, y) for x, y in curve(seen.again)]}


def _said(seen: Comparison, first: tuple[int, str] | None) -> Text:
    if first is None:
        return SAME_SO_FAR.fill(count=len(seen.pairs))
    step, name = first
    one, other = next(pair for pair in seen.pairs if pair[0].step == step)
    value, expected = getattr(other, name), getattr(one, name)
    if name in ("inputs", "target"):
        return DIFFERS.fill(step=step, what=QUANTITIES[name], value=ANOTHER, expected=THE_SAME)
    return DIFFERS.fill(step=step, what=QUANTITIES[name], value=_number(value), expected=_number(expected))


def _number(value: Any) -> str:
    return number(value, 7) if isinstance(value, (int, float)) else str(value)


# -- what was not restored ---------------------------------------------------------------------------------------------------

def not_restored(seen: Comparison) -> Iterator[tuple[str, Evidence | None]]:
    """The parts that are not as they were, in the order in which one is the reason of another."""
    yield from _model(seen)
    yield from _optimizers(seen)
    yield from _schedulers(seen)
    yield from _scaler(seen)
    another_batch = any(one.inputs != other.inputs or one.target != other.target for one, other in seen.pairs)
    counter, place = seen.goes_past(), _place(seen) if another_batch else None
    if place is not None:
        yield "sampler", place
    if _random_counts(seen, another_batch, counter or place is not None) and (names := _generators(seen, place is None)):
        yield "rng", Evidence(PARTS["rng"], GENERATORS.fill(names=names, why=_why(seen, "rng")), THE_SAME)
    elif another_batch and place is None and not counter:
        yield "sampler", _batch_of(seen)
    if counter and place is None:
        more = len(seen.again.steps)
        left = len(seen.whole.steps) - seen.step
        yield "counter", Evidence(PARTS["counter"], GOES_ON.fill(value=f"> {left}" if more > left else more), GOES_ON_EXPECTED.fill(value=left))


def _why(seen: Comparison, what: str) -> Text:
    """Whether a part was saved at all, as far as the files could be read."""
    held = {part["what"] for save in _saves(seen.whole) if save["step"] == seen.step for part in save["holds"]}
    return NOT_LOADED if what in held else NEVER_SAVED


def _model(seen: Comparison) -> Iterator[tuple[str, Evidence]]:
    then, now = seen.then.get("models") or {}, seen.now.get("models") or {}
    wrong = [name for name in then if name in now and now[name] != then[name]]
    if wrong:
        anew = all((seen.beginning.get("models") or {}).get(name) == now[name] for name in wrong)
        yield "model", Evidence(same(", ".join(wrong)), BEGINS_ANEW if anew else OTHER_WEIGHTS, THE_SAME, step=seen.step + 1)


def _optimizers(seen: Comparison) -> Iterator[tuple[str, Evidence]]:
    for then, now in zip(seen.then.get("optimizers") or [], seen.now.get("optimizers") or []):
        if then["moments"] is not None and then["moments"] != now["moments"]:
            value = FROM_NOTHING.fill(why=_why(seen, "optimizer")) if now["moments"] is None else OF_ANOTHER
            yield "optimizer", Evidence(same(now["class"]), value, THE_SAME, step=seen.step + 1)
            return


def _schedulers(seen: Comparison) -> Iterator[tuple[str, Evidence]]:
    for then, now in zip(seen.then.get("schedulers") or [], seen.now.get("schedulers") or []):
        # the rate follows from the optimizer's where that was not restored: its own place is what a scheduler knows
        names = [name for name in then if name in now and name not in ("class", "_last_lr")] or ["_last_lr"]
        wrong = [name for name in names if not _alike(then.get(name), now.get(name))]
        if wrong:
            value = STARTS_AT.fill(name=wrong[0], value=now[wrong[0]], why=_why(seen, "scheduler"))
            yield "scheduler", Evidence(same(now["class"]), value, same(f"{wrong[0]} = {then[wrong[0]]}"), step=seen.step + 1)
            return


def _scaler(seen: Comparison) -> Iterator[tuple[str, Evidence]]:
    then, now = seen.then.get("scaler"), seen.now.get("scaler")
    if then and now and then != now:
        name = next(name for name in then if then[name] != now[name])
        value = STARTS_AT.fill(name=name, value=number(now[name]), why=_why(seen, "scaler"))
        yield "scaler", Evidence(same("GradScaler"), value, same(f"{name} = {number(then[name])}"), step=seen.step + 1)


def _place(seen: Comparison) -> Evidence | None:
    """The checkpoint was made in the middle of an epoch, and the resumed run begins elsewhere in one."""
    then, now = seen.then.get("batch"), seen.now.get("batch")
    if not then or not now or then == now:
        return None
    return Evidence(PARTS["sampler"], BATCH.fill(value=now), BATCH.fill(value=then), step=seen.step + 1)


def _batch_of(seen: Comparison) -> Evidence | None:
    first = next((other for one, other in seen.pairs if one.inputs != other.inputs), None)
    known = next((step.step for step in seen.whole.steps if first is not None and step.inputs == first.inputs), None)
    if first is None or known is None:
        return Evidence(PARTS["sampler"], ANOTHER, THE_SAME)
    return Evidence(PARTS["sampler"], FIRST_AGAIN.fill(step=known), FIRST_AGAIN.fill(step=first.step + seen.step), step=first.step + seen.step)


def _random_counts(seen: Comparison, another_batch: bool, misplaced: bool) -> bool:
    """Whether the generators matter: they decide the batches, or are drawn from within a step. Where the program seeds them
    by its count of epochs, it is the count or the place that was lost."""
    if misplaced and (seen.whole.facts.get("resume_point") or {}).get("reseeds"):
        return False
    program = seen.whole.facts.get("program") or {}
    return another_batch or (bool(program.get("noise")) and seen.first_difference() is not None)


def _generators(seen: Comparison, in_place: bool) -> Text | None:
    """Those whose state is another; the program's own only where the shared ones, from which they may be seeded, are right. An
    epoch that is begun anew draws once more: then only those count that were not set again at all."""
    then, now = seen.then.get("rng") or {}, seen.now.get("rng") or {}
    put_back = [] if in_place else (seen.again.facts.get("resume_point") or {}).get("put_back") or []
    wrong = [same(name) for name in then if name in now and then[name] != now[name] and name not in put_back]
    if in_place and not wrong and (seen.then.get("generators") or []) != (seen.now.get("generators") or []):
        wrong = [OWN_GENERATOR]
    if not wrong:
        return None
    return joined(wrong)
