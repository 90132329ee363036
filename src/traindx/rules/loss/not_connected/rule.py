"""The graph is cut: trainable parameters get no gradient.

What it is:
Between some layers and the loss there is a step that autograd cannot go through: ``detach``, ``.data``, ``.item()``, a detour through
NumPy, ``argmax``, rounding, ``torch.tensor(x)``, or a ``no_grad`` that was left on. Weights that adapt on detached copies
(meta-learning), and re-entrant checkpointing of a part none of whose inputs requires a gradient, cut it, too.

Why it is silent:
The layers behind the cut still learn, and layers without a gradient are passed over by the optimizer. Where everything is cut off,
``requires_grad=True`` on the loss silences the error that torch would have raised.

What you see:
A loss that falls a little and stops; early layers are bit-equal before and after training.

Look-alikes:
Stop-gradients beside a live path (straight-through, BYOL, truncated backpropagation through time), frozen backbones, target networks
and heads that are not used in the loss.

Fix:
Stay in torch between the parameters and the loss, with operations that have a gradient.

Before:
    middle = torch.from_numpy(np.median(maps.detach().numpy(), -1))
After:
    middle = maps.median(-1).values

Experiment:
Remove the cut: the layers in front of it receive gradients, and the loss falls further.

Source:
PyTorch documentation, Autograd mechanics; the walk from the loss to its leaves.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.gradients import GradientUse
from traindx.core.observed.learning import CheckpointCut, Leaf
from traindx.core.observed.ops import Op
from traindx.core.observed.program import BackwardCall, ForwardSeen
from traindx.core.text import Text
from traindx.signals.learning import ENOUGH, Learners, elements, sites_of
from traindx.signals.traces import READS, Trace, TrainingTraces

ZH = """计算图断了：可训练参数没有梯度

是什么：
某些层与损失之间，有一步是自动求导走不过去的：``detach``、``.data``、``.item()``、绕道 NumPy、``argmax``、取整、``torch.tensor(x)``，或者忘了退出的 ``no_grad``。
元学习里在断开的副本上适应权重，或者可重入的 checkpoint 没有一个输入需要梯度，也会切断计算图。

为什么不报错：
断点之后的层还在学，没有梯度的层优化器直接跳过。如果全都断开，给损失设 ``requires_grad=True`` 又恰好压住了 torch 本该报的错。

你会看到：
损失降一点就停；前面的层训练前后逐位相同。

容易混淆的情况：
旁边另有通路的停梯度（直通估计、BYOL、截断的时间反向传播）、冻结的骨干、目标网络、损失没有用到的输出头。

怎么改：
参数到损失之间都留在 torch 里，只用有梯度的运算。

改前：
    middle = torch.from_numpy(np.median(maps.detach().numpy(), -1))
改后：
    middle = maps.median(-1).values

对照实验：
去掉断点：前面的层有了梯度，损失降得更低。

来源：
PyTorch 文档 Autograd mechanics；从损失走到叶子的遍历。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*", "optim/lr-too-low", "loss/constant", "init/gradient-vanishing", "init/symmetric", "optim/no-step", "init/dead-units",
            "loss/term-without-gradient", "optim/params-missing", "optim/missing-zero-grad", "init/activation-collapse", "init/saturated")

FLAT = frozenset(("round", "floor", "ceil", "trunc", "sign", "sgn", "heaviside", "round_", "floor_", "sign_", "ceil_"))
ALL = Text("Backward starts from a tensor that no parameter led to: nothing gets a gradient ({op} cuts the graph).",
           "反向传播的起点和任何参数都不相连：没有一个参数能得到梯度（{op} 切断了计算图）。")
SOME = Text("{op} cuts the graph: {names} ({count} trainable element{count:|s}) run in the forward but never get a gradient.",
            "{op} 切断了计算图：{names}（{count} 个可训练元素）参与了前向，却从来没有梯度。")
IN_VAIN = Text("{op} cuts the graph: {name}.step() ran {steps} time{steps:|s}, but no gradient has ever come to its parameters.",
               "{op} 切断了计算图：{name}.step() 执行了 {steps} 次，它的参数却从来没有得到过梯度。")
CHECKPOINT = Text(
    "No input of this checkpointed part requires a gradient, so it is never recomputed: {names} ({count} trainable element{count:|s}) get "
    "no gradient.",
    "做激活重计算（checkpoint）的这一段，输入都不需要梯度，反向传播时就不会重算它：{names}（{count} 个可训练元素）得不到梯度。")
FIX_CHECKPOINT = Text("Pass use_reentrant=False (or give it an input that requires a gradient).",
                      "传入 use_reentrant=False（或者让它的某个输入需要梯度）。")
EMPTY = Text("steps that found no gradient", "没有找到梯度的更新次数")
STEPS_ASKED = 10
FIX = Text("Keep the values in torch up to the loss, without {op} in between.", "一直到损失为止，数值都留在 torch 里，中间不要用 {op}。")
GRADED = Text("backwards after which these parameters had a gradient", "反向传播之后这些参数有梯度的次数")
ROOT = Text("graph behind the tensor that backward starts from", "反向传播起点背后的计算图")
SOMETHING = Text("an operation", "某个运算")


def check(learners: Learners, traces: TrainingTraces | None, backwards: list[BackwardCall] | None,
          forwards: list[ForwardSeen] | None, uses: list[GradientUse] | None,
          checkpoints: list[CheckpointCut] | None) -> Iterator[Finding]:
    calls = [call for call in backwards or [] if call.accumulate]
    if len(calls) >= ENOUGH and all(not call.root_op for call in calls):
        yield _all_cut(calls[0], traces, forwards or [], learners)
        return
    lost = [leaf for leaf in learners.leaves.values() if _is_lost(leaf, learners)]
    inside = [leaf for leaf in lost if leaf.ran == 0]
    if checkpoints and inside:
        yield _not_recomputed(checkpoints[0], inside, learners)
        return
    for trace in traces.traces if traces and lost else []:
        if (cut := find_cut(trace, {leaf.id for leaf in lost})) is not None:
            op, ids = cut
            yield _some_cut(op, [leaf for leaf in lost if leaf.id in ids], learners, calls, forwards or [])
            return
    if traces and inside and (forward := _fed_from(traces, {leaf.id for leaf in inside})) is not None:
        yield _some_cut(forward, inside, learners, calls, forwards or [])
    elif traces and not lost:
        yield from _starved(uses or [], learners, traces)


def _starved(uses: list[GradientUse], learners: Learners, traces: TrainingTraces) -> Iterator[Finding]:
    """Optimizers that step in vain, for a gradient goes to copies of their parameters (weights that adapt, in meta-learning)."""
    held = {made.id: {id for group in made.parameters for id in group} for made in learners.optimizers}
    for use in uses:
        if use.optimizer and use.steps >= STEPS_ASKED and use.empty_steps == use.steps and use.backwards_in_program:
            cuts = (found for trace in traces.traces if (found := find_cut(trace, held.get(use.optimizer, set()))) is not None)
            if (cut := next(cuts, None)) is not None:
                yield _in_vain(use, cut[0])


def _in_vain(use: GradientUse, op: Op) -> Finding:
    return Finding(
        cause=IN_VAIN.fill(op=_say(op), name=use.class_name, steps=use.steps), fix=FIX.fill(op=_say(op)), where=op.site,
        also=tuple(site for site in (use.step_site, use.made_at) if site is not None),
        evidence=(Evidence(EMPTY, f"{use.empty_steps} / {use.steps}", "0"),), first_step=use.first_step)


def _not_recomputed(checkpoint: CheckpointCut, lost: list[Leaf], learners: Learners) -> Finding:
    return Finding(
        cause=CHECKPOINT.fill(names=learners.listed(lost), count=elements(lost)), fix=FIX_CHECKPOINT, where=checkpoint.site,
        also=sites_of(learners, lost)[:2],
        evidence=(Evidence(GRADED, f"0 / {min(leaf.walks for leaf in lost)}", Text("every one", "每一次")),), first_step=1)


def _is_lost(leaf: Leaf, learners: Learners) -> bool:
    """Meant to learn (an optimizer that steps holds it), used in forwards, never given a gradient, never moved by hand."""
    held = any(leaf.id in group for made in learners.stepped() for group in made.parameters)
    return (held and leaf.requires_grad and leaf.ran + leaf.ran_without_grad >= ENOUGH and leaf.ran_in_train > 0
            and leaf.graded == 0 and leaf.walks >= ENOUGH and (leaf.changed == 0 or _reached(leaf)) and not leaf.pretrained)


def _reached(leaf: Leaf) -> bool:
    """The graph leads to it, yet its gradient is exactly 0 each time: a step then writes the same values, or only decays them."""
    return leaf.took_part >= ENOUGH


def find_cut(trace: Trace, lost: set[int]) -> tuple[Op, set[int]] | None:
    """The first op on the way from lost parameters to the root that has no gradient, and which of them are behind it."""
    wanted = trace.above(trace.root)
    candidates = [*trace.cuts(), *(op for op in trace.ops if op.name in FLAT and op.requires_grad)]
    best: tuple[Op, set[int]] | None = None
    for op in sorted(candidates, key=lambda each: each.index):
        behind = trace.parameters(trace.above(op.index)) & lost
        if behind and (best is None or len(behind) > len(best[1])) and _leads_on(trace, op, wanted):
            best = op, behind
    return best


def _leads_on(trace: Trace, op: Op, wanted: set[int]) -> bool:
    """The op's values go into the root: as a tensor, or read out and brought back by an op that nothing in the trace explains."""
    if op.index in wanted:
        return True
    below, stack = {op.index}, [op.index]
    while stack:
        for index in trace.below.get(stack.pop(), []):
            if index not in below:
                below.add(index)
                stack.append(index)
    reads = [index for index in below if trace.ops[index].name in READS and trace.ops[index].module is not None]
    return bool(reads) and any(index > min(reads) and _comes_from_nowhere(trace.ops[index]) for index in wanted)


def _fed_from(traces: TrainingTraces, lost: set[int]) -> Op | None:
    """A forward under no_grad whose output another model that learns is called with: the last op of the lost parameters."""
    for evaluation in traces.evaluations:
        made = [op for op in evaluation.ops if evaluation.parameters(evaluation.above(op.index)) & lost]
        shapes = {op.shape for op in made}
        for trace in traces.traces:
            inputs = [operand for index in trace.above(trace.root) for operand in trace.ops[index].inputs if operand.origin == "input"]
            if made and any(operand.shape in shapes and operand.dtype == made[-1].dtype for operand in inputs if operand.op < 0):
                return made[0]
    return None


def _comes_from_nowhere(op: Op) -> bool:
    new = any(operand.op < 0 and not operand.parameter and not operand.origin and not operand.requires_grad for operand in op.inputs)
    return op.module is not None and (new or (not op.inputs and op.name in ("tensor", "as_tensor", "from_numpy", "stack")))


def _all_cut(call: BackwardCall, traces: TrainingTraces | None, forwards: list[ForwardSeen], learners: Learners) -> Finding:
    trace = traces.traces[0] if traces else None
    root = trace.ops[trace.root] if trace and trace.root >= 0 else None
    cut = find_cut(trace, set(learners.leaves)) if trace else None
    op = root if root is not None and not root.inputs else cut[0] if cut else root
    quiet = _without_grad(forwards, None) if op is None or op is not root else None
    where = quiet or (op.site if op else None) or call.site
    return Finding(
        cause=ALL.fill(op=_say(op)), fix=FIX.fill(op=_say(op)), where=where,
        also=tuple(dict.fromkeys(site for site in (op.site if op else None, root.site if root else None, call.site) if site and site != where)),
        evidence=(Evidence(ROOT, Text("none", "没有"), Text("leads to the parameters", "通向各个参数"), step=call.step),), first_step=call.step)


def _some_cut(op: Op, lost: list[Leaf], learners: Learners, calls: list[BackwardCall], forwards: list[ForwardSeen]) -> Finding:
    quiet = _without_grad(forwards, learners.model(lost[0])) if all(leaf.ran == 0 for leaf in lost) else None
    where = quiet or op.site
    others = (op.site, *(call.site for call in calls[:1]), *sites_of(learners, lost))
    return Finding(
        cause=SOME.fill(op=_say(op), names=learners.listed(lost), count=elements(lost)), fix=FIX.fill(op=_say(op)), where=where,
        also=tuple(dict.fromkeys(site for site in others if site is not None and site != where)),
        evidence=(Evidence(GRADED, f"0 / {min(leaf.walks for leaf in lost)}", Text("every one", "每一次")),), first_step=1)


def _without_grad(forwards: list[ForwardSeen], model: int | None) -> Site | None:
    """The call under no_grad, where the whole model is only ever called so in training."""
    mine = [each for each in forwards if model in (None, each.model)]
    return mine[0].site if mine and not any(each.grad for each in mine) else None


def _say(op: Op | None) -> Text:
    if op is None:
        return SOMETHING
    plain = op.name in READS | FLAT or op.name in ("detach", "data", "argmax", "tensor", "as_tensor", "detach_", "max", "topk")
    return Text(op.name, op.name) if plain else Text(f"no_grad around {op.name}", f"包住 {op.name} 的 no_grad") if op.dtype.startswith(
        ("float", "bfloat")) else Text(op.name, op.name)
