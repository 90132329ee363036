"""The parameters are never stepped.

What it is:
Backward after backward runs, and an optimizer was built, but its ``step()`` is never called (or only named, without parentheses).
Or the other way round: the optimizer steps, and no backward ever gave it a gradient.

Why it is silent:
A backward that nobody uses is legal, and so is a step without gradients.

What you see:
A loss that only follows the noise of the batches. Validation gives the same number in every epoch.

Look-alikes:
Scripts that only look at gradients (saliency, sensitivity) build no optimizer, or go backward a few times only. Updates by hand
(``p.data -= lr * p.grad``) change values without ``step()``: a parameter that changed was stepped. A long accumulation may be
unfinished.

Fix:
Call ``optimizer.step()`` after each backward, or after each window of accumulation.

Before:
    loss.backward()
    optimizer.step
After:
    loss.backward()
    optimizer.step()

Experiment:
Step after every backward: the loss leaves its level.

Source:
Values of up to eight parameters are compared between backwards; ten backwards (five steps) without any change are asked for, a
rule of thumb that leaves short inspections alone.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.gradients import GradientUse, PassUse
from traindx.core.observed.learning import Leaf, Written
from traindx.core.text import Text, number
from traindx.signals.learning import Learners, elements, sites_of

ZH = """参数从未更新

是什么：
反向传播一次次地跑，优化器也建了，但从来没有调用 ``step()``（或只写了名字、漏了括号）。也可能反过来：优化器一直在 step，却没有任何反向传播给过它梯度。

为什么不报错：
没人用的反向传播是合法的，没有梯度的 step 也是合法的。

你会看到：
损失只随 batch 的噪声起伏，每一轮的验证结果都一样。

容易混淆的情况：
只看梯度的脚本（显著图、敏感度分析）不建优化器，或只反向传播几次。手写更新（``p.data -= lr * p.grad``）不经过 ``step()`` 也会改变数值：数值变了就算更新过。很长的梯度累积可能只是还没攒够。

怎么改：
每次反向传播之后（梯度累积时在每个窗口结束后）调用 ``optimizer.step()``。

改前：
    loss.backward()
    optimizer.step
改后：
    loss.backward()
    optimizer.step()

对照实验：
每次反向传播之后都更新一次：损失离开原来的位置。

来源：
在相邻的反向传播之间比较最多八个参数的数值；至少十次反向传播（或五次 step）毫无变化才报告，这是经验值，为的是不打扰短小的检查脚本。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*", "loss/constant", "optim/lr-too-low", "optim/lr-zero", "loss/initial-loss-off", "optim/window-lost",
            "optim/missing-zero-grad", "optim/scheduler-before-step", "loss/not-connected", "optim/params-stale",
            "optim/params-missing", "optim/frozen-by-accident", "optim/clip-after-step")
EXPERIMENT = "step-after-backward"

NO_STEP = Text(
    "{count} backward{count:|s} reached the parameters of {name}, but its step() never ran and their values never changed.",
    "{count} 次反向传播都到了 {name} 的参数，可是它的 step() 从未执行，参数的值也从未变化。")
NO_BACKWARD = Text(
    "{name} stepped {count} time{count:|s} without any gradient: no backward() ran in the whole program.",
    "{name} 更新了 {count} 次，却从来没有梯度：整个程序里没有执行过 backward()。")
CALL_STEP = Text("Call {name}.step() after the backward (with parentheses).", "在反向传播之后调用 {name}.step()（别漏括号）。")
CALL_BACKWARD = Text("Call loss.backward() before the step.", "在更新之前调用 loss.backward()。")
BACKWARDS = Text("backwards whose gradients no step used", "梯度没有用到任何更新里的反向传播次数")
EMPTY = Text("steps that found no gradient", "没有找到梯度的更新次数")
BACKWARDS_ASKED, STEPS_ASKED = 10, 5
# torch's own: these do nothing without gradients, a user's optimizer may need none
USUAL = ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD", "SparseAdam", "Adafactor")


STUCK = Text("{name}.step() ran {steps} time{steps:|s}, but {names} ({count} element{count:|s}) never changed, although they had "
             "gradients and the rate is {rate}.",
             "{name}.step() 执行了 {steps} 次，{names}（{count} 个元素）却从未变化，尽管它们有梯度，学习率也有 {rate}。")
MEND_STEP = Text("Look at what its step() leaves out: a return where a continue was meant, a loop over the wrong list.",
                 "看看它的 step() 漏掉了什么：该写 continue 却写了 return，或者遍历错了列表。")
STILL = Text("elements that had gradients and never moved", "有梯度却从未变化的元素")
MUCH = 0.2  # of what the optimizer holds


def check(uses: list[GradientUse], passes: list[PassUse] | None, learners: Learners | None,
          written: list[Written] | None) -> Iterator[Finding]:
    # a backward that a step of another optimizer used was only passed on by this one's parameters
    for use in uses:
        if use.optimizer == 0:
            continue
        unused = [each for each in passes or [] if use.optimizer in each.reached and not each.used]
        count = sum(each.count for each in unused)
        if use.steps == 0 and use.moved is False and count >= BACKWARDS_ASKED:
            yield _finding(use, NO_STEP, CALL_STEP, BACKWARDS, count, max(unused, key=lambda each: each.count).site)
        elif (use.backwards_in_program == 0 and use.steps >= STEPS_ASKED and use.empty_steps == use.steps
              and use.class_name in USUAL):
            yield _finding(use, NO_BACKWARD, CALL_BACKWARD, EMPTY, use.steps, use.step_site)
        elif learners is not None and use.steps >= STEPS_ASKED and use.class_name not in USUAL:
            yield from _stuck(use, learners, written or [])


def _stuck(use: GradientUse, learners: Learners, written: list[Written]) -> Iterator[Finding]:
    """An optimizer of the user's own that steps, but leaves some of what it holds where it was."""
    made = next((made for made in learners.stepped() if made.id == use.optimizer), None)
    if made is None or learners.rates[made.id].lowest <= 0:
        return
    held = [leaf for group in made.parameters for id in group if (leaf := learners.leaves.get(id)) is not None]
    still = [leaf for leaf in held if _never_moved(leaf) and not _is_table(leaf, learners)]
    if still and elements(still) >= MUCH * elements(held):
        rate = number(learners.rates[made.id].last)
        yield Finding(
            cause=STUCK.fill(name=use.class_name, steps=use.steps, names=learners.listed(still), count=elements(still), rate=rate),
            fix=MEND_STEP, where=use.step_site or use.made_at, also=(*(each.site for each in written[:1]), *sites_of(learners, still)[:2]),
            evidence=(Evidence(STILL, elements(still), "0"),), confidence="likely", because=Text("seen from outside its step()",
                                                                                                 "它的 step() 只是从外面看的"))


def _is_table(leaf: Leaf, learners: Learners) -> bool:
    """An embedding moves in few rows, which a sample of its values may miss."""
    known = learners.names.get(leaf.id)
    return leaf.module.startswith("Embedding") or (known is not None and known[1].module_class.startswith("Embedding"))


def _never_moved(leaf: Leaf) -> bool:
    return leaf.graded >= STEPS_ASKED and leaf.compared >= STEPS_ASKED and leaf.changed == 0 and leaf.requires_grad


def _finding(use: GradientUse, cause: Text, fix: Text, what: Text, count: int, where: Site | None) -> Finding:
    return Finding(
        cause=cause.fill(count=count, name=use.class_name),
        fix=fix.fill(name="optimizer"),
        where=where or use.made_at,
        also=(use.made_at,) if where and use.made_at else (),
        evidence=(Evidence(what, count, "0"),),
        first_step=1)
