"""Step 6: capacity, only now. Advice from the two curves, and from a run at twice the width."""
from __future__ import annotations

from dataclasses import replace
from statistics import mean

from traindx.core.exams import Points, StepResult
from traindx.core.text import Text, number
from traindx.core.trials import Condition, Trace
from traindx.experiments.case import Case
from traindx.experiments.proofs import curve
from traindx.experiments.seeds import LAST, final_loss

STEPS = 1000
GAP = 1.5  # validation against training loss from which the data are learnt by heart (rule of thumb)
LEARNT = 0.3  # share of the start that is left, above which there is room for more capacity (rule of thumb)
TITLE = Text("a longer run", "跑长一点")
NO_LOSS = Text("no losses were seen", "没有看到损失")
NOT_SUPERVISED = Text("the loss is not one of torch's against a fixed target: how far it should fall is not known",
                      "损失不是 torch 的损失函数对固定目标算的，不知道它该降到多低")
OVERFITS = Text("validation loss {valid} against training loss {train}: regularise, or get more data, before the model grows",
                "验证损失 {valid}，训练损失 {train}：先加正则或增加数据，再谈加大模型")
UNDERFITS = Text("training loss still at {share} % of its start after {steps} step{steps:|s}: a wider model or a longer run may help",
                 "{steps} 步后，训练损失还有起点的 {share} %：加宽模型或者训练得更久，可能有用")
FINE = Text("training loss {train}, validation loss {valid}: no sign that capacity is what is missing",
            "训练损失 {train}，验证损失 {valid}：看不出缺的是容量")
LEARNS = Text("training loss {train}, {share} % of its start: no sign that capacity is what is missing",
              "训练损失 {train}，是起点的 {share} %：看不出缺的是容量")
WIDER = Text("twice as wide", "宽度加倍")
WIDENED = Text("Twice as wide (a second copy of the model beside it, outputs added; the same batches, one run each): "
               "after {steps} step{steps:|s} {loss} {before} -> {after}.",
               "宽度加倍（旁边放一份模型副本，输出相加；batch 相同，各跑一次）：{steps} 步后{loss} {before} -> {after}。")
HELPS = Text(" Try a wider model, and compare several seeds with `traindx exam --step seeds`.",
             "可以试试更宽的模型，并用 `traindx exam --step seeds` 比较几个种子。")
NO_HELP = Text(" More width is not what is missing.", "缺的不是宽度。")
NOT_WIDENED = Text("It could not be made wider here: {why}", "这里没法替你加宽：{why}")
ENDED = Text("that run ended by {error}", "那次运行因 {error} 结束")
TRAINING_LOSS = Text("training loss", "训练损失")
VALIDATION_LOSS = Text("validation loss", "验证损失")
GAIN = 0.1  # of the loss, below which one run says nothing (rule of thumb)


def examine(case: Case) -> StepResult:
    plain = case.bench.plain.for_steps(STEPS)
    if not case.supervised:
        return StepResult(6, "not-checked", NOT_SUPERVISED)
    trace, wider = case.bench.run(TITLE, [plain, plain.under(Condition("widen"))])
    if len(trace.losses) < 2:
        return StepResult(6, "not-checked", NO_LOSS)
    curves: dict[str, Points] = {"training": curve(trace), "validation": list(trace.validation)}
    if _is_wider(wider):
        curves["training, twice as wide"] = curve(wider)
    return StepResult(6, "passed", _advice(trace), next=_width(trace, wider), curves={name: c for name, c in curves.items() if c})


def _is_wider(trace: Trace) -> bool:
    state = trace.conditions.get("widen")
    return state is not None and state.state == "applied" and len(trace.losses) > 1


def _width(plain: Trace, wider: Trace) -> Text:
    """What twice the width does to the loss that counts: validation where there is one. A wider model learns its training data faster
    in any case, which helps only one that does not learn them.
    """
    steps = min(len(plain.losses), len(wider.losses))  # a busy machine may have cut one short
    before, after = final_loss(_until(plain, steps)), final_loss(_until(wider, steps))
    if not _is_wider(wider) or before is None or after is None:
        state = wider.conditions.get("widen")
        return NOT_WIDENED.fill(why=ENDED.fill(error=wider.error) if wider.error or state is None else state.why)
    said = WIDENED.fill(steps=steps, loss=VALIDATION_LOSS if plain.validation else TRAINING_LOSS, before=number(before), after=number(after))
    if not plain.validation and _left(plain) <= LEARNT:
        return said
    return said + (HELPS if before - after > GAIN * abs(before) else NO_HELP)


def _until(trace: Trace, step: int) -> Trace:
    return replace(trace, steps=trace.steps[:step], validation=[seen for seen in trace.validation if seen[0] <= step])


def _train(trace: Trace) -> float:
    return mean(trace.losses[-LAST:])


def _left(trace: Trace) -> float:
    """Share of the first loss that is left at the end."""
    return _train(trace) / trace.losses[0] if trace.losses[0] > 0 else 0.0


def _advice(trace: Trace) -> Text:
    train, share = _train(trace), _left(trace)
    valid = final_loss(trace) if trace.validation else None
    if valid is not None and train > 0 and valid > GAP * train:
        return OVERFITS.fill(valid=number(valid), train=number(train))
    if share > LEARNT:
        return UNDERFITS.fill(share=round(100 * share), steps=len(trace.losses))
    return LEARNS.fill(train=number(train), share=f"{100 * share:.2g}") if valid is None else FINE.fill(train=number(train), valid=number(valid))
