"""Step 6: capacity, only now. Advice from the two curves; nothing is changed."""
from __future__ import annotations

from traindx.core.exams import Points, StepResult
from traindx.core.text import Text, number
from traindx.core.trials import Trace
from traindx.experiments.case import Case
from traindx.experiments.proofs import curve
from traindx.experiments.seeds import final_loss

STEPS = 1000
GAP = 1.5  # validation against training loss from which the data are learnt by heart (rule of thumb)
LEARNT = 0.3  # share of the start that is left, above which there is room for more capacity (rule of thumb)
TITLE = Text("a longer run", "跑长一点")
NO_LOSS = Text("no losses were seen", "没有看到损失")
NOT_SUPERVISED = Text("the loss is not one of torch's against a fixed target: how far it should fall is not known",
                      "损失不是 torch 对固定目标的损失，不知道它该降到多低")
OVERFITS = Text("validation loss {valid} against training loss {train}: regularise, or get more data, before the model grows",
                "验证损失 {valid}，训练损失 {train}：先加正则或增加数据，再谈加大模型")
UNDERFITS = Text("training loss still at {share} % of its start after {steps} steps: a wider model or a longer run may help",
                 "{steps} 步后训练损失还有起点的 {share}%：加宽模型或者训练更久可能有用")
FINE = Text("training loss {train}, validation loss {valid}: no sign that capacity is what is missing",
            "训练损失 {train}，验证损失 {valid}：看不出缺的是容量")
NOT_WIDENED = Text("The model was not widened: traindx does not rebuild a model inside an unmodified program. "
                   "Double the width yourself, at the same seeds, and compare with `traindx exam --step seeds`.",
                   "没有替你加宽模型：traindx 不会在未改动的程序里重建模型。请自己把宽度加倍、种子不变，再用 `traindx exam --step seeds` 比较。")


def examine(case: Case) -> StepResult:
    trace = case.bench.one(TITLE, case.bench.plain.for_steps(STEPS))
    if len(trace.losses) < 2 or not case.supervised:
        return StepResult(6, "not-checked", NO_LOSS if len(trace.losses) < 2 else NOT_SUPERVISED)
    curves: dict[str, Points] = {"training": curve(trace), "validation": [(step, loss) for step, loss in trace.validation]}
    return StepResult(6, "passed", _advice(trace), next=NOT_WIDENED, curves={name: c for name, c in curves.items() if c})


def _advice(trace: Trace) -> Text:
    train = sum(trace.losses[-20:]) / len(trace.losses[-20:])
    valid = final_loss(trace) if trace.validation else None
    share = train / trace.losses[0] if trace.losses[0] > 0 else 0.0
    if valid is not None and train > 0 and valid > GAP * train:
        return OVERFITS.fill(valid=number(valid), train=number(train))
    if share > LEARNT:
        return UNDERFITS.fill(share=round(100 * share), steps=len(trace.losses))
    return FINE.fill(train=number(train), valid="-" if valid is None else number(valid))
