"""The graphs of past steps are kept alive.

What it is:
A tensor that still hangs on its autograd graph is stored: a loss that is appended or summed without ``.item()``, validation
losses computed with gradients on, a hidden state carried on without ``detach()``. With it everything its graph needs stays alive.

Why it is silent:
Nothing is wrong with the numbers. Memory grows a little with every step until the machine swaps or the GPU is full.

What you see:
Out of memory after hours, or steps that grow slower and slower.

Look-alikes:
Truncated backpropagation keeps a few steps on purpose, a policy gradient a whole episode, a meta-learner its inner loop: all
let go again. Stored numbers (``.item()``, ``.detach()``) hold no graph.

Fix:
Store numbers, not tensors with a history.

Before:
    losses.append(loss)
After:
    losses.append(loss.item())

Experiment:
Watch the memory over the steps with and without the line: it stays flat without.

Source:
PyTorch FAQ, "My model reports cuda runtime error(2): out of memory" (don't accumulate history across your training loop).
"""
from __future__ import annotations

from collections.abc import Callable, Iterator

from traindx.core.findings import Evidence, Finding, Level
from traindx.core.observed.memory import Census, GraphReach, ResultsAlive
from traindx.core.text import Text, number
from traindx.signals.where import pointing

ZH = """过去各步的计算图一直没有释放

是什么：
存下来的张量还连着计算图：损失没有 ``.item()`` 就 append 或累加，验证损失是开着梯度算的，隐藏状态没有 ``detach()`` 就传给下一步。
只要它还在，计算图需要的一切就都占着内存。

为什么不报错：
数值上没有任何错误，只是内存每一步涨一点，直到机器开始换页，或者显存用完。

你会看到：
跑了几小时后内存不足，或者每一步越来越慢。

容易混淆的情况：
截断反向传播会有意保留几步，策略梯度保留一整局，元学习保留内层循环：它们用完都会放手。存数值（``.item()``、``.detach()``）不会留住计算图。

怎么改：
存数值，不要存带着历史的张量。

改前：
    losses.append(loss)
改后：
    losses.append(loss.item())

对照实验：
保留和去掉这一行，各看一遍内存随步数的变化：去掉之后就不再上涨。

来源：
PyTorch FAQ 中关于显存不足的条目（不要在训练循环里累积历史）。
"""
LEVEL = "error"
STEP = 0
EXPLAINS = ("memory/growth", "mode/graph-in-validation")

FEWEST = 4  # graphs of past steps, each of another step
LONG = 200  # results whose spent graphs are held: by then some 10 kB each make megabytes (rule of thumb)
REACH = 3  # steps back, seen at least three times

CAUSE = Text("{count} result{count:|s} of earlier steps ({what}) are still alive with their whole graph: {kept} "
             "Every one holds all activations of its forward.",
             "前面各步的 {count} 个结果（{what}）连同整张计算图都还活着：{kept}每一个都占着那次前向的全部激活。")
CAUSE_SPENT = Text("About {count} result{count:|s} of earlier steps ({what}) are still tied to their graphs: {kept} "
                   "Their activations are freed, but the chain of nodes grows with every step.",
                   "前面各步约 {count} 个结果（{what}）还连着计算图：{kept}激活虽然释放了，节点连成的链却一步比一步长。")
KEPT_AT = Text("this line keeps them.", "就是这一行留住了它们。")
KEPT = Text("something keeps them.", "有什么地方留住了它们。")
CAUSE_REACH = Text("The backward at step {step} goes through {back} earlier step{back:|s}: a tensor is carried on from step to step with its "
                   "graph, and retain_graph=True keeps all of it.",
                   "第 {step} 步的反向传播，穿过了前面的 {back} 步：有张量带着计算图，从一步传到下一步，"
                   "retain_graph=True 又把计算图全留住了。")
FIX = Text("Keep a number instead (loss.item()) or cut it off (.detach()); run validation under torch.no_grad().",
           "改成只存数值（loss.item()），或者用 .detach() 断开；验证放到 torch.no_grad() 里做。")
FIX_REACH = Text("Detach what is carried over (h = h.detach()) and drop retain_graph=True.",
                 "把要传下去的张量断开（h = h.detach()），并去掉 retain_graph=True。")
WHAT = {"loss": Text("the loss", "损失"), "output": Text("the model's output", "模型输出"), "root": Text("the loss", "损失")}
ALIVE = Text("results of earlier steps whose graph is alive", "前面各步的结果中，计算图仍在的")
FEW = Text("a few, and no more as time goes on", "只有几个，而且不随时间增加")
RESIDENT = Text("memory in use, from the first count to the last", "内存占用，从第一次清点到最后一次")
NODES = Text("nodes in the graph of the backward", "反向传播的计算图节点数")
STEADY = Text("the same at every step", "每一步都一样")


def check(results: list[ResultsAlive] | None, reaches: list[GraphReach] | None) -> Iterator[Finding]:
    order = ("loss", "root", "output")
    lines = sorted(results or [], key=lambda line: (order.index(line.what), line.step))
    whole = next((line for line in lines if _grows(line, lambda c: c.whole, FEWEST)), None)
    if whole is not None:
        yield _finding(whole, lambda c: c.whole, CAUSE)
    elif (far := _reaching(reaches or [])) is not None:
        yield far
    elif (spent := next((line for line in lines if _grows(line, lambda c: c.graphs, 2 * FEWEST)), None)) is not None:
        yield _finding(spent, lambda c: c.graphs, CAUSE_SPENT)


def _grows(line: ResultsAlive, count: Callable[[Census], int], fewest: int) -> bool:
    """More and more alive, none let go, and not yet at a standstill halfway through the run."""
    final = _final(line, count)
    counts = [count(c) for c in line.censuses if c.step <= final.step]
    if count(final) < fewest or final.steps < fewest or counts != sorted(counts):
        return False
    ended = line.censuses[-1].step
    half = [count(c) for c in line.censuses if c.step <= ended / 2]
    return final.step > 0.8 * ended and (not half or half[-1] <= 0.75 * count(final))


def _final(line: ResultsAlive, count: Callable[[Census], int]) -> Census:
    """The last count; or the one before it, where the end of a function let go of everything."""
    return max(line.censuses[-2:], key=count)


def _finding(line: ResultsAlive, count: Callable[[Census], int], cause: Text) -> Finding:
    final = _final(line, count)
    alive = count(final)
    where, also = pointing(line.kept_at, line.site)
    level: Level | None = None if cause is CAUSE else "warning" if alive >= LONG else "note"
    return Finding(
        cause=cause.fill(count=alive, what=WHAT[line.what], kept=KEPT_AT if line.kept_at else KEPT), fix=FIX, where=where,
        also=also,
        evidence=(Evidence(ALIVE, f"{alive} / {final.made}", FEW, step=final.step),
                  Evidence(RESIDENT, f"{_megabytes(line.censuses[0])} -> {_megabytes(final)}", unit="MB")),
        first_step=line.step, level=level)


def _megabytes(census: Census) -> str:
    return number(census.resident / 1e6, 4)


def _reaching(reaches: list[GraphReach]) -> Finding | None:
    far = [r for r in reaches if r.back >= REACH]
    if len(far) < 3 or far[-1].nodes < 2 * far[0].nodes or far[-1].back <= far[0].back:
        return None
    last = far[-1]
    where, also = pointing(last.carried_at, last.site)
    return Finding(
        cause=CAUSE_REACH.fill(step=last.step, back=last.back), fix=FIX_REACH, where=where,
        also=also,
        evidence=(Evidence(NODES, f"{far[0].nodes} -> {last.nodes}", STEADY, step=last.step),), first_step=far[0].step)
