"""Whether a pinned batch really was the same one in every step: judged from a trace, before anything is concluded from the pin."""
from __future__ import annotations

import math
from collections.abc import Sequence

from traindx.core.text import EMPTY, Text, same
from traindx.core.trials import Condition, ConditionState, Step, Trace

WAYS = ("auto", "rows", "generators")  # to be tried one after the other, until one holds
STILL = (Condition("freeze_noise"),)
# put on with the pin for a few steps: weights that stand still and no masks leave nothing but the batch to change the loss
VERIFICATION = (Condition("scale_lr", {"k": 0.0}), Condition("no_dropout"))
VERIFICATION_STEPS = 7
HELD_FROM = 2  # steps before every kind of pin holds
ENOUGH = 3  # steps that must agree

NOT_PINNED = Text("The batch could not be held: {why}", "batch 没能固定：{why}")
TOO_FEW = Text("only {count} step{count:|s} to compare", "只有 {count} 步可以比较")
NOT_FINITE = Text("the loss is not finite", "损失不是有限数")
HALF = Text("the targets stayed the same but the inputs changed: half a pin", "目标没变，输入却变了：只固定了一半")
OTHER_HALF = Text("the inputs stayed the same but the targets changed: half a pin", "输入没变，目标却变了：只固定了一半")
CHANGED = Text("the loss changed from step to step ({losses}) although the weights stood still",
               "权重没有动，损失却一步一个样（{losses}）")
INPUTS_CHANGED = Text("inputs and targets changed from step to step", "输入和目标每一步都在变")
UNKNOWN = Text("the weights could not be held still, and the inputs are not known", "权重没法固定，输入是什么也不知道")
NOISY = Text("random numbers are drawn within each step, and the inputs and targets are not all known",
             "每一步里都在抽随机数，又不知道全部的输入和目标")
BIT_EQUAL = Text("{count} step{count:|s} with the weights held still: losses equal to the last bit ({loss})",
                 "固定权重走了 {count} 步：损失逐位相同（{loss}）")
HASHES_EQUAL = Text("{count} step{count:|s}: inputs and targets equal to the last bit", "走了 {count} 步：输入和目标逐位相同")


def pins(samples: int | None = None) -> tuple[tuple[Condition, ...], ...]:
    """:data:`WAYS`, without and with the noise of the program's own loop frozen; what holds is used with all its conditions."""
    ways = [(Condition("pin_batch", {"samples": samples, "way": way}),) for way in WAYS]
    return (*ways[:2], *((*way, *STILL) for way in ways[:2]), ways[2])


def pin_holds(trace: Trace) -> tuple[bool, Text]:
    """Judges a trace of ``pin_batch`` under :data:`VERIFICATION`; the reason is for the reader.

    Steps of one size are compared with each other: a last, smaller batch is a batch of its own. The first steps
    are left out: the batch is held from the second on, at the latest from the third.
    """
    state = trace.conditions.get("pin_batch")
    if state is None or state.state == "not-applicable":
        return False, NOT_PINNED.fill(why=state.why if state is not None else EMPTY)
    steps = _alike(trace.steps[HELD_FROM:])
    if len(steps) < ENOUGH:
        return False, TOO_FEW.fill(count=len(steps))
    if not _stood_still(steps, trace.conditions.get("scale_lr")):
        return _by_hashes(steps, UNKNOWN)
    noisy = bool((trace.facts.get("program") or {}).get("noise"))  # numbers are drawn within a step, as in a VAE
    return _by_loss(steps, noisy)


def _alike(steps: Sequence[Step]) -> list[Step]:
    """Those of the commonest size."""
    sizes = [step.samples for step in steps]
    commonest = max(sizes, key=sizes.count, default=None)
    return [step for step in steps if step.samples == commonest]


def _stood_still(steps: Sequence[Step], scaled: ConditionState | None) -> bool:
    return scaled is not None and scaled.state == "applied" and all(step.moved == 0 for step in steps)


def _by_loss(steps: Sequence[Step], noisy: bool) -> tuple[bool, Text]:
    losses = [step.loss for step in steps]
    if any(loss is None or not math.isfinite(loss) for loss in losses):
        return _by_hashes(steps, UNKNOWN) if None in losses else (False, NOT_FINITE)
    if (half := _half(steps)) is not None:  # a model whose output is constant has the same loss for any batch
        return False, half
    if len(set(losses)) > 1 and noisy:
        return _by_hashes(steps, NOISY)
    if len(set(losses)) > 1:
        shown = ", ".join(f"{loss:.6g}" for loss in losses[:4])
        return False, CHANGED.fill(losses=same(shown))
    return True, BIT_EQUAL.fill(count=len(steps), loss=f"{losses[0]:.6g}")


def _half(steps: Sequence[Step]) -> Text | None:
    inputs, targets = ({getattr(step, name) for step in steps} for name in ("inputs", "target"))
    if len(inputs) > 1 and len(targets) > 1:
        return INPUTS_CHANGED
    if len(inputs) > 1:
        return HALF
    return OTHER_HALF if len(targets) > 1 else None


def _by_hashes(steps: Sequence[Step], unknown: Text) -> tuple[bool, Text]:
    if (half := _half(steps)) is not None:
        return False, half
    if any(step.inputs is None or step.target is None for step in steps):
        return False, unknown
    return True, HASHES_EQUAL.fill(count=len(steps))
