"""The ledger's words: observations made of what was counted."""
from __future__ import annotations

import math
from collections import Counter

import numpy as np

from traindx.core.observed import Site
from traindx.core.observed.fed import Fed, FirstWeights, Giveaway, Labels, Neighbours
from traindx.probes import rows as row
from traindx.probes import source
from traindx.probes.fed_arrivals import Delivered
from traindx.probes.fed_counts import Group, Model, numbers
from traindx.probes.fed_first import First
from traindx.probes.rows import Array


def fed_of(model: Model, group: Group, step: int) -> Fed:
    """Rows of one model in training, or at one place of evaluation."""
    first, delivered = group.first, group.first.delivered
    table = group.table()
    training = group.name == "train"
    rows, distinct, repeated = model.epochs[0] if training and model.epochs else (0, 0, {})
    return Fed(
        step=step,
        key=f"fed-{model.number}-{group.name}",
        model=model.number,
        group=group.name,
        site=first.site,
        loader=delivered.loader if delivered else 0,
        dataset=delivered.dataset if delivered else 0,
        loader_site=delivered.site if delivered else None,
        iter_site=delivered.iter_site if delivered else None,
        sampler=delivered.sampler if delivered else "",
        dataset_size=delivered.size if delivered else None,
        workers=delivered.workers if delivered else 0,
        row_shape=first.shape,
        dtype=first.dtype,
        batch_size=group.width,
        batches=group.batches,
        rows=group.seen,
        distinct=len(group.met),
        skipped=group.skipped,
        passes=group.passes,
        inputs=first.inputs,
        bits=row.bits_of(table, math.prod(first.shape)) if table.size else 0.0,
        whole=bool((table == np.floor(table)).all()) if table.size else False,
        columns=group.columns(),
        target_lows=ends(group.targets[0]) if group.targets else (),
        target_highs=ends(group.targets[1]) if group.targets else (),
        known=float(np.mean(model.known)) if training and model.known else 0.0,
        trained=0 if training else sum(map(bool, group.met.values())),
        earlier=0 if training else sum(value == 2 for value in group.met.values()),
        known_at_first=group.known_at_first,
        rounds=group.rounds,
        full=group.full,
        clean=group.clean,
        middle=group.middle,
        compared=group.compared,
        changed=group.changed,
        epoch_rows=rows,
        epoch_distinct=distinct,
        repeated_labels=repeated or None,
        run=model.longest[0] if training else 0,
        run_held=model.longest[1] if training else 0,
        run_last=model.longest[2] if training else 0,
        iterations=model.iterations if training else 0,
        storage_rows=model.storage_rows if training else 0,
    )


def ends(values: Array) -> tuple[float, ...]:
    """Not rounded: whether a range ends at exactly 1 is asked."""
    return tuple(map(float, values))


def labels_of(model: Model, step: int, everything: bool) -> Labels:
    """Targets in training; ``everything``: with what takes longer to find out."""
    group, order = model.train, model.order
    assert group is not None
    total = sum(group.labels.values())
    chance = sum(n * (n - 1) for n in group.labels.values()) / max(total * (total - 1), 1)
    held_out: Counter[int] = Counter()
    for other in model.evaluations.values():
        held_out.update(other.labels)
    delivered = group.first.delivered
    count = max(model.value_count, 1)
    mean = model.value_sum / count if model.value_sum is not None else np.zeros(0)
    std = (
        np.sqrt(np.maximum(model.value_squares / count - mean**2, 0))
        if model.value_squares is not None
        else np.zeros(0)
    )
    table = group.table()
    return Labels(
        step=step,
        key=f"labels-{model.number}",
        model=model.number,
        site=model.loss_site,
        function=model.function,
        classes=model.classes,
        counts=dict(group.labels),
        distinct=dict(Counter(group.met.values())) if group.labels else {},
        steps=order.steps,
        first_forward=group.first.site,
        loader=delivered.loader if delivered else 0,
        loader_site=delivered.site if delivered else None,
        written=written_in(delivered),
        sampler=delivered.sampler if delivered else "",
        pure=order.same / max(order.pairs, 1),
        pure_expected=chance,
        run=order.length / (order.changes + 1),
        again=model.again,
        again_same=model.again_same,
        conflicting=len(model.conflicting),
        bits=row.bits_of(table, math.prod(group.first.shape)) if table.size else 0.0,
        weighted=model.weighted,
        recall={label: right / max(all_, 1e-9) for label, (right, all_) in model.recall.items()} or None,
        held_out=dict(held_out) or None,
        rising=max(order.rises, order.falls) / max(order.rises + order.falls, 1),
        value_distinct=len(model.value_set),
        value_columns=len(mean),
        value_mean=numbers(mean),
        value_std=numbers(std),
        neighbours=neighbours_of(model) if everything else None,
        giveaway=giveaway_of(model) if everything else None,
    )


def written_in(delivered: Delivered | None) -> tuple[Site, ...]:
    """The user's lines that gave the rows back."""
    return tuple(place for code in delivered.codes if (place := source.line_with(code, "return"))) if delivered else ()


def _reserved(model: Model) -> tuple[Array, Array]:
    width = Counter(len(columns) for columns, _ in model.reservoir).most_common(1)
    kept = [entry for entry in model.reservoir if width and len(entry[0]) == width[0][0]]
    if not kept:
        return np.zeros((0, 0)), np.zeros(0)
    return np.stack([columns for columns, _ in kept]), np.array([target for _, target in kept])


def neighbours_of(model: Model) -> Neighbours | None:
    rows, target = _reserved(model)
    if len(rows) < 60 or not np.isfinite(target).all():
        return None
    said = row.foretold(rows, target, bool(model.train and model.train.labels))
    return Neighbours(len(rows), *said) if said else None


def giveaway_of(model: Model) -> Giveaway | None:
    rows, target = _reserved(model)
    if len(rows) < 40 or rows.shape[1] < 2 or not np.isfinite(target).all() or not np.isfinite(rows).all():
        return None
    column, error, exact = row.straight_lines(rows, target)
    labels = bool(model.train and model.train.labels)
    values = len(np.unique(rows[:, column])) if column >= 0 else 0
    total = math.prod(model.train.first.shape) if model.train else 0
    places = row.positions(total, row.KEPT)
    place = int(places[column]) if column >= 0 else -1
    same = labels and column >= 0 and row.one_to_one(rows[:, column], target)
    in_order = () if labels or exact else tuple(int(places[c]) for c in row.same_order(rows, target)[:4])
    return Giveaway(place, len(rows), error, exact, same, values, in_order)


def first_of(key: int, first: First, step: int) -> FirstWeights | None:
    """What enters the first layer with weights; None where nothing has yet."""
    if first.sum is None or first.squares is None:
        return None
    return FirstWeights(
        step=step,
        key=f"first-{key}",
        model=key,
        module_class=first.module_class,
        site=first.site,
        forward_site=first.forward_site,
        loader_site=first.loader_site,
        rms=numbers(np.sqrt(first.squares / first.count)),
        centre=numbers(first.sum / first.count),
        low=first.low,
        high=first.high,
        binary=first.binary,
        whole=first.whole,
        samples=first.count,
    )
