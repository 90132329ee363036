"""Steps 3 and 4: what is tried, with the words for it and the lines to write."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from traindx.core.speed import Change, Load
from traindx.core.text import EMPTY, Text, number, same
from traindx.core.trials import Condition
from traindx.speed.asking import Answer
from traindx.speed.statistics import PAIRS, interval_of, largest_difference, median, outcome_of, ratios_of

ALIKE = 1e-3  # relative difference of two losses that is rounding
ALIKE_BF16 = 3e-2
NOT_TRIED = Text("not tried: {why}", "没有试：{why}")
TOO_LOADED = Text("no verdict: the machine was too busy (load {average} on {cores} core{cores:|s} before we began, others kept {others} "
                  "core{others:|s} busy)",
                  "不下结论：机器太忙（开始前负载 {average}，{cores} 个核；别的程序占着 {others} 个核）")
FEW_PAIRS = Text("no verdict: only {pairs} pair{pairs:|s} could be timed, {needed} are needed",
                 "不下结论：只计时了 {pairs} 对，需要 {needed} 对")
TIME_UP = Text("time was up before a pair was timed (--seconds N allows more)", "一对也没有计完，时间就到了（--seconds N 可以放宽）")
ENDED = Text("the run with it ended by {error}", "改了之后运行因 {error} 结束")
NO_BF16 = Text("this processor has no bfloat16 arithmetic (avx512_bf16, amx_bf16): it would be slower",
               "这个处理器没有 bfloat16 运算（avx512_bf16、amx_bf16），只会更慢")
HAS_AUTOCAST = Text("the program autocasts already", "程序已经在用 autocast")
IS_FUSED = Text("the optimizer is fused already", "优化器已经是 fused")
IS_COMPILED = Text("the program compiles already", "程序已经用了 torch.compile")
NO_CONVOLUTIONS = Text("the model has no two-dimensional convolutions", "模型里没有二维卷积")
LESS_OFTEN = Text("Losses with a larger batch are those of another training: not compared.", "batch 变大后是另一种训练，损失不作比较。")
LR_LINEAR = Text("Multiply lr by {times} as well, with a warm-up (linear rule for SGD: rule of thumb), and check with traindx exam --step lr.",
                 "学习率也要乘以 {times}，并加预热（SGD 的线性规则，经验值），再用 traindx exam --step lr 检查。")
LR_ROOT = Text("Multiply lr by {root} as well (square-root rule for Adam: rule of thumb), and check with traindx exam --step lr.",
               "学习率也要乘以 {root}（Adam 的平方根规则，经验值），再用 traindx exam --step lr 检查。")
MEMORY = Text("A larger batch takes more memory: traindx memory --gpu ... tells how much.",
              "batch 变大更占内存：用 traindx memory --gpu ... 看要多少。")
COMPILING = Text("Compiling took {seconds} s; it pays after {steps} step{steps:|s}.", "编译用了 {seconds} 秒；{steps} 步之后回本。")
COMPILING_NEVER = Text("Compiling took {seconds} s, and does not pay.", "编译用了 {seconds} 秒，不划算。")


@dataclass(frozen=True)
class Candidate:
    """``unfit``: why it is not tried with this program; EMPTY where it is."""

    name: str
    title: Text
    condition: Condition
    diff: Text
    unfit: Text = EMPTY
    alike: float | None = ALIKE
    remark: Text = EMPTY
    first: bool = True  # under the change from the first step, whose losses are compared


def candidates(program: dict[str, Any]) -> list[Candidate]:
    """Of step 4, the cheapest first."""
    optimizer = program.get("optimizer") or "Optimizer"
    device = program.get("device") or "cpu"
    adaptive = "sgd" not in optimizer.lower()
    lr = LR_ROOT.fill(root=number(math.sqrt(2))) if adaptive else LR_LINEAR.fill(times=2)
    autocast = HAS_AUTOCAST if program.get("autocast") else EMPTY if program.get("bf16") else NO_BF16
    return [
        Candidate("fused", Text("fused optimizer", "fused 优化器"), Condition("optimizer_kernel", {"to": "fused"}),
                  same(f"- {optimizer}(...)\n+ {optimizer}(..., fused=True)"), IS_FUSED if program.get("fused") else EMPTY),
        Candidate("foreach", Text("foreach optimizer", "foreach 优化器"), Condition("optimizer_kernel", {"to": "foreach"}),
                  same(f"- {optimizer}(...)\n+ {optimizer}(..., foreach=True)"), IS_FUSED if program.get("fused") else EMPTY),
        Candidate("channels_last", Text("channels-last images", "channels-last 图像布局"), Condition("channels_last"),
                  same("+ model = model.to(memory_format=torch.channels_last)\n+ x = x.to(memory_format=torch.channels_last)"),
                  EMPTY if program.get("convolutions") else NO_CONVOLUTIONS),
        Candidate("bf16", Text("bfloat16 autocast", "bfloat16 autocast"), Condition("autocast_bf16"),
                  same(f'+ with torch.autocast("{device}", torch.bfloat16):\n      output = model(x); loss = ...'), autocast, ALIKE_BF16),
        Candidate("larger-batch", Text("batch twice as large", "batch 加倍"), Condition("larger_batch", {"times": 2}),
                  same(f"- batch_size={program.get('batch') or 'n'}\n+ batch_size={2 * program['batch'] if program.get('batch') else '2 * n'}"),
                  alike=None, remark=LESS_OFTEN + same(" ") + lr + same(" ") + MEMORY, first=False),
        Candidate("compile", Text("torch.compile", "torch.compile"), Condition("compile_model"), same("+ model = torch.compile(model)"),
                  IS_COMPILED if program.get("compiled") else EMPTY)]


def result_of(candidate: Candidate, answer: Answer, plain: Sequence[Sequence[float]], any_load: bool) -> Change:
    """What the timed run says. ``plain``: the first losses of runs as written, two of them where that is known."""
    state = answer.state(candidate.name)
    blocks = answer.blocks
    if state.get("state") == "not-applicable" or not blocks:
        return Change(candidate.name, candidate.title, why=NOT_TRIED.fill(why=_why_not(state, answer)), load=answer.load)
    interval = interval_of(ratios_of(blocks, "", candidate.name))
    outcome = outcome_of(interval, answer.load, any_load)
    seconds = (median([block[""] for block in blocks]), median([block[candidate.name] for block in blocks]))
    difference, same_loss = _losses(candidate, answer, plain)
    started = _start_seconds(candidate, answer, seconds)
    why = EMPTY if outcome else no_verdict(interval, answer.load)
    return Change(candidate.name, candidate.title, interval, outcome, why, same_loss, difference, answer.load, candidate.diff,
                  _remark(candidate, started, seconds), seconds, started)


def _why_not(state: dict[str, Any], answer: Answer) -> Text:
    why = state.get("why") or {}
    if why.get("en"):
        return Text(why["en"].rstrip("."), why["zh"].rstrip("。"))
    return ENDED.fill(error=answer.error) if answer.error else TIME_UP


def no_verdict(interval: Any, load: Load | None) -> Text:
    if interval is None or interval.pairs < PAIRS:
        return FEW_PAIRS.fill(pairs=interval.pairs if interval else 0, needed=PAIRS)
    shown = {"average": _shown(load.average), "others": _shown(load.others), "cores": load.cores} if load else {}
    return TOO_LOADED.fill(**shown)


def _shown(value: float | None) -> str:
    return "?" if value is None else number(value, 2)


def _losses(candidate: Candidate, answer: Answer, plain: Sequence[Sequence[float]]) -> tuple[float | None, bool | None]:
    """The largest relative difference of the first losses, and whether it is no more than rounding or two plain runs make."""
    mine = (answer.facts.get("first") or {}).get("losses") or []
    if candidate.alike is None or not plain or not mine:
        return None, None
    difference = largest_difference(mine, plain[0])
    if difference is None:
        return None, None
    noise = max((largest_difference(other, plain[0]) or 0.0 for other in plain[1:]), default=0.0)
    return difference, difference <= max(candidate.alike, 2 * noise)


def _start_seconds(candidate: Candidate, answer: Answer, seconds: tuple[float, float]) -> float | None:
    if candidate.name != "compile":
        return None
    first = (answer.facts.get("first") or {}).get("seconds") or []
    return max(0.0, sum(first) - len(first) * seconds[1])


def _remark(candidate: Candidate, started: float | None, seconds: tuple[float, float]) -> Text:
    if started is None:
        return candidate.remark
    gain = seconds[0] - seconds[1]
    if gain <= 0:
        return COMPILING_NEVER.fill(seconds=number(started))
    return COMPILING.fill(seconds=number(started), steps=f"{math.ceil(started / gain):,}")
