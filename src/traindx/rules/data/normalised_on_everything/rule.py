"""The normalisation was computed on training and validation data together.

What it is:
Mean and standard deviation (or minimum and maximum) come from all rows, before or without regard to the split. What is only in the
validation part has shaped the inputs of the training.

Why it is silent:
Every array is finite and well scaled; scaled with all rows it even looks better centred.

What you see:
A validation error that is lower than what new data will show, above all where the two parts differ: a series that drifts, another
site, rare extremes.

Look-alikes:
A fixed scale (divide by 255) knows nothing of the data. Where both parts are alike, the statistics agree and nothing changes: a note.

Fix:
Fit on the training rows, then transform both parts with that.

Before:
    scaler = StandardScaler().fit(table)
After:
    scaler = StandardScaler().fit(table[:cut])

Experiment:
Refit the scaler on the training rows: the validation error becomes honest, usually larger.

Source:
Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, 7.10.2 (the wrong way to do cross-validation). Limits: rule of thumb.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.core.findings import Evidence, Finding, Level
from traindx.core.observed import Site
from traindx.core.observed.fed import Columns, Fed, Part, ScalerFitted, ScalingLines
from traindx.core.text import Text, number, same
from traindx.signals.feeding import Feed, Feeding, sites

ZH = """归一化统计量是在训练集和验证集上一起算的

是什么：
均值和标准差（或最小值、最大值）取自全部样本，没有先划分。只属于验证集的信息由此影响了训练的输入。

为什么不报错：
每个数组都有限，尺度也正常；用全部样本缩放之后，看上去反而更居中。

你会看到：
验证误差比将来新数据上的误差更小。两部分差别越大越明显：会漂移的序列、另一个采集点、少见的极值。

容易混淆的情况：
固定的尺度（除以 255）不包含数据的信息。两部分很像时，统计量一致，改了也没有变化：只给提示。

怎么改：
只在训练样本上拟合，再用它变换两部分。

改前：
    scaler = StandardScaler().fit(table)
改后：
    scaler = StandardScaler().fit(table[:cut])

对照实验：
改为在训练样本上拟合 scaler：验证误差会变得诚实，通常更大。

来源：
Hastie、Tibshirani、Friedman，The Elements of Statistical Learning，7.10.2。阈值为经验值。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("data/normalised-differently", "curve/*")

DRAWN = 0.3  # standard errors: numbers that were drawn, not standardised, are rarely as near to mean 0 in every column
EXACT = 1e-6  # of the range: the ends of a series that was scaled by its own minimum and maximum
LEVELS = 300  # different values: not the grey levels of images, not ratings
MANY = 200  # different target values, at least: no classes, no ratings
SHIFT = 0.2  # of a standard deviation: below, the two ways of scaling hardly differ

CAUSE = Text("{what} was computed on {rows} row{rows:|s}, training and validation together; seen from it, the training part has mean {mean} "
             "and standard deviation {std} in its most shifted column.",
             "{what} 是在 {rows} 个样本上算的，训练集和验证集都在里面；用它来量，训练部分偏得最多的一列，均值是 {mean}，标准差是 {std}。")
BY_HAND = Text("The normalisation", "归一化统计量")
CAUSE_TARGETS = Text("The targets were scaled by the minimum and maximum of {rows} row{rows:|s}, training and validation together: both run from "
                     "{both}, the training part only {part}.",
                     "目标是按 {rows} 个样本的最小值和最大值缩放的，训练集和验证集都在里面：合在一起是 {both}，训练部分只有 {part}。")
TARGETS = Text("range of the training targets", "训练目标的范围")
FIX = Text("Compute the statistics on the training rows only, then apply them to both parts.",
           "只在训练样本上计算统计量，再用到两个部分上。")
ROWS = Text("rows that the statistics were computed on", "计算统计量所用的样本数")
TRAIN_ROWS = Text("{rows} training row{rows:|s}", "训练部分的 {rows} 个")
TRAIN = Text("training part, most shifted column (mean, standard deviation)", "训练部分偏得最多的一列（均值、标准差）")
STANDARD = Text("0 and 1 on the training part", "训练部分是 0 和 1")
UNSEEN = Text("the statistics of both parts together are 0 and 1, those of the training part are not; the line that computed them is a "
              "guess from the source",
              "两部分合在一起是 0 和 1，训练部分却不是；具体是哪一行算的，是从源码推测的")
UNSEEN_RANGE = Text("both parts together run exactly from end to end of the range, the training part does not reach so far; the line is a "
                    "guess from the source",
                    "两部分合在一起正好占满整个区间，训练部分到不了那么远；具体是哪一行算的，是从源码推测的")
ALIKE = Text("near 0 and 1 where both parts are alike", "两部分相像时接近 0 和 1")


@dataclass(frozen=True)
class _Shift:
    """How the training part looks in units of the whole."""

    mean: float
    std: float
    rows: int

    @property
    def matters(self) -> bool:
        return abs(self.mean) > max(SHIFT, 5 / math.sqrt(self.rows)) or not 0.8 < self.std < 1.25


def check(feeding: Feeding, scalers: list[ScalerFitted] | None, lines: ScalingLines | None) -> Iterator[Finding]:
    for feed in feeding:
        held_out = [group for group in feed.evaluations if group.trained < 0.5 * group.distinct and group.distinct >= 10]
        found = (_by_scaler(feed, held_out, scalers or []) or _by_statistics(feed, held_out, scalers or [], lines.sites if lines else ())
                 or _by_range(feed, held_out, scalers or [], lines.ranges if lines else ())
                 or _by_targets(feed, held_out, scalers or [], lines.ranges if lines else ()))
        if found is not None:
            yield found
            return


def _by_scaler(feed: Feed, held_out: list[Fed], scalers: list[ScalerFitted]) -> Finding | None:
    """A scaler fitted on as many rows as the tables hold together that it transforms afterwards, one of them the training part."""
    for fit in scalers:
        parts = [part for part in fit.parts if part.rows < fit.rows]
        train = next((part for part in parts if _is_part(feed.train, part.rows)), None)
        if train is None or len(parts) < 2 or sum(part.rows for part in parts) != fit.rows:
            continue
        shift = _shift(train, parts)
        others = sites(*(part.site for part in parts), *(group.site for group in held_out), feed.train.site)
        return _finding(_named(fit), fit.rows, train.rows, shift, fit.site, others, Text("", ""))
    return None


def _is_part(train: Fed, rows: int) -> bool:
    """Windows over a table are somewhat fewer than its rows."""
    return 0.8 * rows <= train.distinct <= 1.02 * rows or train.dataset_size == rows


def _shift(train: Part, parts: list[Part]) -> _Shift:
    total = sum(part.rows for part in parts)
    worst = _Shift(0.0, 1.0, total)
    for column in range(len(train.mean)):
        mean = sum(part.rows * part.mean[column] for part in parts) / total
        square = sum(part.rows * (part.std[column] ** 2 + part.mean[column] ** 2) for part in parts) / total
        spread = math.sqrt(max(square - mean ** 2, 0.0))
        if spread > 1e-9:
            worst = _worse(worst, _Shift((train.mean[column] - mean) / spread, train.std[column] / spread, total))
    return worst


def _worse(a: _Shift, b: _Shift) -> _Shift:
    return max(a, b, key=lambda shift: abs(shift.mean) + abs(math.log(max(shift.std, 1e-3))))


def _by_statistics(feed: Feed, held_out: list[Fed], scalers: list[ScalerFitted], lines: tuple[Site, ...]) -> Finding | None:
    """Both parts together have mean 0 and standard deviation 1 in every column, the training part has not."""
    for groups in [[group] for group in held_out] + ([held_out] if len(held_out) > 1 else []):
        shift, off = _union(feed, groups)
        if shift is not None and shift.matters:
            fit = next((fit for fit in scalers if fit.rows >= 0.98 * shift.rows), None)
            if off > DRAWN / math.sqrt(shift.rows) and fit is None and not lines:
                continue  # numbers drawn from a normal distribution come as near as that
            others = sites(*lines[:2], feed.train.loader_site, feed.train.site, *(group.site for group in groups))
            because = UNSEEN if fit is None else Text("", "")
            where = fit.site if fit else others[0] if others else None
            return _finding(_named(fit), shift.rows, feed.train.distinct, shift, where, others, because)
    return None


def _by_range(feed: Feed, held_out: list[Fed], scalers: list[ScalerFitted], lines: tuple[Site, ...]) -> Finding | None:
    """Both parts together run exactly from 0 (or -1) to 1, the training part does not and lies elsewhere."""
    for groups in [[group] for group in held_out] + ([held_out] if len(held_out) > 1 else []):
        tables = _tables(feed, groups)
        rows = sum(table.rows for table in tables)
        fit = next((fit for fit in scalers if fit.rows >= 0.98 * rows), None)
        if tables and (fit or lines) and (_each_spans(tables) or _all_span(tables)):
            shift = _shift(_part(tables[0]), list(map(_part, tables)))
            if shift.matters:
                others = sites(*lines[:3], feed.train.loader_site, feed.train.site, *(group.site for group in groups))
                return _finding(_named(fit), rows, feed.train.distinct, shift, fit.site if fit else others[0], others,
                                UNSEEN_RANGE if fit is None else Text("", ""), ALIKE)
    return None


def _named(fit: ScalerFitted | None) -> Text:
    return same(fit.class_name) if fit else BY_HAND


def _each_spans(tables: list[Columns]) -> bool:
    """Every column that varies, over both parts; in the training part some column's range is clearly smaller."""
    columns = zip(zip(*(table.lows for table in tables)), zip(*(table.highs for table in tables)))
    ranges = [(min(lows), max(highs), lows[0], highs[0]) for lows, highs in columns if max(highs) > min(lows)]
    return bool(ranges) and all(_unit(low, high) for low, high, *_ in ranges) and any(_inside(*each) for each in ranges)


def _all_span(tables: list[Columns]) -> bool:
    """Windows over one series: any of their places may hold its lowest and highest value."""
    low, high = min(table.low for table in tables), max(table.high for table in tables)
    return tables[0].levels > LEVELS and _unit(low, high) and _inside(low, high, tables[0].low, tables[0].high)


def _by_targets(feed: Feed, held_out: list[Fed], scalers: list[ScalerFitted], lines: tuple[Site, ...]) -> Finding | None:
    """The targets of both parts together reach exactly an end of 0 (or -1) .. 1, those of the training part do not."""
    if feed.labels is None or feed.labels.value_distinct < MANY:
        return None
    for group in held_out:
        rows = feed.train.distinct + group.distinct
        fits = [fit for fit in scalers if fit.class_name == "MinMaxScaler" and 0.98 * rows <= fit.rows <= 1.1 * rows]
        for train_low, train_high, low, high in zip(feed.train.target_lows, feed.train.target_highs, group.target_lows, group.target_highs):
            whole = min(train_low, low), max(train_high, high)
            if (fits or lines) and _reaches(*whole) and _inside(*whole, train_low, train_high):
                others = sites(*(fit.site for fit in fits[:1]), *lines[:3], feed.train.loader_site, feed.train.site, group.site)
                return _of_targets(rows, (train_low, train_high), whole, others, guess=not fits)
    return None


def _of_targets(rows: int, train: tuple[float, float], whole: tuple[float, float], places: tuple[Site, ...], *, guess: bool) -> Finding:
    both, part = (f"{number(low)} .. {number(high)}" for low, high in (whole, train))
    return Finding(
        cause=CAUSE_TARGETS.fill(rows=rows, both=both, part=part), fix=FIX, where=places[0], also=places[1:], level="warning", confidence="likely",
        because=UNSEEN_RANGE if guess else Text("", ""), evidence=(Evidence(TARGETS, part, "0 .. 1"),))


def _reaches(low: float, high: float) -> bool:
    """One end is exactly that of the range; the other may belong to rows that are only inputs (the first of a series)."""
    return ((abs(high - 1) < EXACT and min(abs(low), abs(low + 1)) < 0.15)
            or (min(abs(low), abs(low + 1)) < EXACT and 0.85 < high < 1 + EXACT))


def _unit(low: float, high: float) -> bool:
    return abs(high - 1) < EXACT and min(abs(low), abs(low + 1)) < EXACT


def _inside(low: float, high: float, train_low: float, train_high: float) -> bool:
    return 0.1 * (high - low) < train_high - train_low < 0.85 * (high - low)


def _part(table: Columns) -> Part:
    return Part(table.rows, table.mean, table.std, None)


def _tables(feed: Feed, groups: list[Fed]) -> list[Columns]:
    """The columns of both parts, training first; empty where they are not known well enough."""
    known = [table for table in (feed.train.columns, *(group.columns for group in groups)) if table is not None and table.rows >= 20]
    alike = len(known) == 1 + len(groups) and len({len(table.mean) for table in known}) == 1
    return known if alike and feed.coverage >= 0.98 else []


def _union(feed: Feed, groups: list[Fed]) -> tuple[_Shift | None, float]:
    """How the training part looks in units of both together, where these are standardised; and how far they are from that."""
    tables = _tables(feed, groups)
    if not tables:
        return None, math.inf
    parts = list(map(_part, tables))
    total = sum(part.rows for part in parts)
    usable = [j for j in range(len(parts[0].mean)) if max(part.std[j] for part in parts) > 1e-6]
    if total - parts[0].rows < 0.05 * total or not usable:
        return None, math.inf
    off = worst = 0.0
    for column in usable:
        mean = sum(part.rows * part.mean[column] for part in parts) / total
        spread = math.sqrt(max(sum(part.rows * (part.std[column] ** 2 + part.mean[column] ** 2) for part in parts) / total - mean ** 2, 0))
        off = max(off, abs(mean), abs(spread - 1))
        worst = max(worst, abs(parts[0].mean[column]), abs(parts[0].std[column] - 1))
    return (_shift(parts[0], parts) if off < 0.04 and worst > 5 * off else None), off


def _finding(what: Text, rows: int, train_rows: int, shift: _Shift, where: Site | None, others: tuple[Site, ...], because: Text,
             expected: Text = STANDARD) -> Finding:
    level: Level = "error" if shift.matters else "note"
    seen = f"{number(shift.mean)}, {number(shift.std)}"
    return Finding(
        cause=CAUSE.fill(what=what, rows=rows, mean=number(shift.mean), std=number(shift.std)), fix=FIX, where=where,
        also=tuple(site for site in others if site != where), level=level, confidence="likely" if because.en else "certain", because=because,
        evidence=(Evidence(ROWS, rows, TRAIN_ROWS.fill(rows=train_rows)), Evidence(TRAIN, seen, expected)))
