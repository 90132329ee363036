"""Labels do not belong to their inputs.

What it is:
Inputs and labels were put into different orders: shuffled by two separate draws, sorted on one side only, paired from two listings,
or mixed up again in each batch. Or an image is flipped as augmentation, and its mask is not, or by another draw.

Why it is silent:
Both arrays have the right length and type. A net that is large enough learns the wrong pairs by heart, so the training loss may fall.

What you see:
Held-out loss at or above that of guessing, on data that others learn with ease.

Look-alikes:
A task that is truly that hard, and labels drawn at random on purpose, look the same from outside: hence "suspected" where the
order is fixed. Self-supervised targets are not judged.

Fix:
Shuffle both with one index array, and keep input and label in one record from the file to the loss.

Before:
    x, y = rng.permutation(x), rng.permutation(y)
After:
    order = rng.permutation(len(x)); x, y = x[order], y[order]

Experiment:
Look at some pairs, then ask a nearest-neighbour classifier: aligned labels agree between neighbours, misaligned ones do not.

Source:
Cover and Hart, Nearest neighbor pattern classification (1967); the agreement is compared with its own under shuffled labels: measured.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.fed import Labels, MapsFed
from traindx.core.recording import Recording
from traindx.core.text import Text, number
from traindx.signals.feeding import RICH, Feed, Feeding, Progress, entropy, sites

ZH = """标签和输入对不上号

是什么：
输入和标签的次序不一致：各自打乱了一次、只给一边排了序、来自两份次序不同的清单，或者每个 batch 里又打乱一次。还有一种：图像做了翻转增强，掩码没有跟着翻转，或者两边各抽了一次随机数。

为什么不报错：
两个数组的长度和类型都对。网络够大时会把错误的配对背下来，训练损失照样下降。

你会看到：
别人轻松学会的数据，留出集上的损失却不低于瞎猜。

容易混淆的情况：
真的很难的任务、故意用随机标签的程序，从外面看一模一样，所以次序固定时只说「怀疑」。自监督目标不判断。

怎么改：
用同一个下标数组打乱两边；从文件到损失，始终把输入和标签放在同一条记录里。

改前：
    x, y = rng.permutation(x), rng.permutation(y)
改后：
    order = rng.permutation(len(x)); x, y = x[order], y[order]

对照实验：
先看几对样本，再用最近邻分类试一下：对得上号的标签，邻居之间一致；对不上的就和瞎猜一样。

来源：
Cover 和 Hart，Nearest neighbor pattern classification（1967）。一致率与打乱标签后的一致率比较，属实测。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("data/conflicting-labels", "curve/*", "optim/lr-too-low", "init/gradient-vanishing", "data/class-imbalance")
LONG = 250  # steps after which a loss near chance is no longer the beginning

CAUSE = Text("The inputs say nothing about their labels: neighbouring rows agree in {agreement}, shuffled labels would in {expected}, "
             "and the loss ({held_out}) is no better than guessing ({chance}).",
             "输入和标签没有关系：相近样本的标签，一致程度是 {agreement}，把标签打乱也有 {expected}；损失是 {held_out}，"
             "不比瞎猜（{chance}）好。")
REDRAWN = Text("The same inputs come with other labels each time: of {again} repeated row{again:|s} {same} had the same label, chance "
               "gives {expected}.",
               "同一个输入每次配的标签都不一样：{again} 次重复中有 {same} 次标签相同，碰巧也有 {expected} 次。")
TURNED = Text("Of {told} maps that tell, {turned} fit their image only when turned over (most often {way}): the image was flipped or rotated, its map "
              "was not, or by another draw.",
              "{told} 张看得出方向的标注图里，有 {turned} 张要翻转之后才和图像对得上（多半是{way}）：图像翻转了，标注图没有跟着翻转，或者两边各抽了一次随机数。")
FIX_TURNED = Text("Draw once for each sample and apply the same flip or rotation to the image and to its map.",
                  "每个样本只抽一次随机数，对图像和标注图做同样的翻转或旋转。")
EXPLAINS_SHARE = Text("share of the image's variance that the map explains: as it lies, turned", "标注图能解释的图像方差：原样、翻转之后")
NEVER_TURNED = Text("no map fits only when turned", "没有哪张要翻转之后才对得上")
LYING = Text("maps that fit as they lie, and only when turned", "原样就对得上的、翻转之后才对得上的标注图")
WAYS = {"left-right": Text("left-right", "左右翻转"), "up-down": Text("up-down", "上下翻转"), "half turn": Text("half a turn", "转 180 度"),
        "transposed": Text("transposed", "转置"), "quarter turn": Text("a quarter turn", "转 90 度"),
        "three quarters": Text("three quarters of a turn", "转 270 度")}
FEWEST, TURNED_SHARE = 20, 0.15  # maps that tell, and the share that is no exception
FIX = Text("Shuffle inputs and labels with one and the same index array.", "用同一个下标数组打乱输入和标签。")
AGREE = Text("agreement with the 5 nearest rows", "与最近 5 个样本的一致程度")
COLUMN = Text("strongest single column, in standard errors", "相关性最强的一列（以标准误计）")
RELATED = Text("clearly above shuffled labels ({expected})", "明显高于打乱标签时的 {expected}")
ABOVE = Text("above 5 where labels depend on a column", "标签与某一列有关时大于 5")
HARD = Text("a task that is truly this hard looks the same", "任务本身要是真有这么难，看起来也一样")


def check(feeding: Feeding, progress: Progress, recording: Recording, maps: list[MapsFed] | None) -> Iterator[Finding]:
    yield from (_turned_finding(each) for each in maps or [] if _turned(each))
    for feed in feeding:
        labels = feed.labels
        if labels is None:
            continue
        if _redrawn(labels, progress):
            yield _redrawn_finding(feed, labels)
        elif _unrelated(labels) and (chance := _chance(labels)) and (best := _no_better(recording, labels, progress, chance)):
            yield _finding(feed, labels, best, chance)


def _turned(maps: MapsFed) -> bool:
    """Some maps fit their image only when turned, and then as well as others do as they lie."""
    turned = sum(maps.turned.values())
    alike = maps.lying < FEWEST or maps.share_turned > 0.6 * maps.share_lying
    return turned >= FEWEST and turned >= TURNED_SHARE * (turned + maps.lying) and alike


def _redrawn(labels: Labels, progress: Progress) -> bool:
    """Rows met again carry labels as if drawn anew, and nothing is learned."""
    if not labels.classes or labels.again < 100 or labels.bits < RICH:
        return False
    chance = labels.pure_expected
    return labels.again_same / labels.again < chance + 0.15 * (1 - chance) and progress.last > 0.85 * entropy(labels.counts)


def _unrelated(labels: Labels) -> bool:
    near = labels.neighbours
    if near is None or near.rows < 80 or labels.function not in ("cross_entropy", "nll_loss", "mse_loss") or labels.value_columns > 1:
        return False
    return near.agreement < near.expected + 2 * near.spread and near.column_z < 4.5


def _chance(labels: Labels) -> float:
    if labels.classes:
        return entropy(labels.counts) if len(labels.counts) > 1 else 0.0
    return labels.value_std[0] ** 2 if labels.value_std and labels.value_distinct > 10 else 0.0


def _no_better(recording: Recording, labels: Labels, progress: Progress, chance: float) -> float | None:
    """The best held-out loss (without the first, before training) where it is at chance: the variance of a small part is known less
    well than its mix of classes. Where none was computed, the training loss at the end, which memorising lowers a little."""
    values = [value for _, value in recording.series.get("val_loss", [])]
    if not values:
        return progress.last if progress.stuck and progress.steps >= LONG else None
    best = min(values[1:] or values)
    return best if best >= (0.95 if labels.classes else 0.85) * chance else None


def _finding(feed: Feed, labels: Labels, best: float, chance: float) -> Finding:
    near = labels.neighbours
    assert near is not None
    places = sites(labels.loader_site, *labels.written[-1:], labels.site, labels.first_forward)
    return Finding(
        cause=CAUSE.fill(agreement=number(near.agreement), expected=number(near.expected), held_out=number(best), chance=number(chance)),
        fix=FIX, where=places[0] if places else None, also=places[1:], confidence="suspected", because=HARD,
        evidence=(Evidence(AGREE, round(near.agreement, 3), RELATED.fill(expected=number(near.expected))),
                  Evidence(COLUMN, round(near.column_z, 1), ABOVE)))


def _redrawn_finding(feed: Feed, labels: Labels) -> Finding:
    places = sites(labels.loader_site, *labels.written[-1:], labels.site, labels.first_forward)
    return Finding(
        cause=REDRAWN.fill(again=labels.again, same=labels.again_same, expected=round(labels.again * labels.pure_expected)), fix=FIX,
        where=places[0] if places else None, also=places[1:])


def _turned_finding(maps: MapsFed) -> Finding:
    places = sites(maps.written[-1] if maps.written else None, maps.loader_site, maps.site, maps.first_forward)
    turned = sum(maps.turned.values())
    way = WAYS[max(maps.turned, key=lambda way: maps.turned[way])]
    seen = f"{number(maps.share_lying)}, {number(maps.share_turned)}"
    return Finding(
        cause=TURNED.fill(told=turned + maps.lying, turned=turned, way=way), fix=FIX_TURNED,
        where=places[0] if places else None, also=places[1:],
        evidence=(Evidence(LYING, f"{maps.lying}, {turned}", NEVER_TURNED), Evidence(EXPLAINS_SHARE, seen)))
