"""Several ranks beside each other: each rank wrote down what it saw, here the same steps of all of them meet. Pure.

A signal with ``compares_ranks`` is asked once, with the recordings of all ranks.
"""
from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from traindx.core.judge import Absent, not_checked
from traindx.core.observed import Ended, Observation
from traindx.core.observed.ranks import Collective, RankBatch, RankLoss, ReplicaSeen, ReplicaWeights, SampleDraws
from traindx.core.recording import Recording
from traindx.core.text import Text

ONE_PROCESS = Text("one process trains, or only one was seen", "只有一个进程在训练，或者只看到一个")
NO_REPLICAS = Text("no parameters were seen that several ranks hold as copies", "没有看到多个进程各存一份的参数")
SHARDED = Text("the parameters are sharded: no rank has them whole", "参数是分片的：没有哪个进程存着整份")
NO_CALLS = Text("the program itself called no collective on several ranks", "程序自己没有在多个进程上调用集合通信")
NO_STEPS = Text("too few common steps of the ranks were seen", "各进程共同的步数看到得太少")
ROUNDING = 1e-5  # of the weights' size: replicas that are closer than that differ by the order of their sums, if at all

O = TypeVar("O", bound=Observation)
F = TypeVar("F")


def rows_of(recording: Recording, kind: type[O]) -> dict[int, dict[int, O]]:
    """``{rank: {step: observation}}``."""
    return {rank: {seen.step: seen for seen in each.of(kind)} for rank, each in sorted(recording.ranks.items())}


def common(rows: dict[int, dict[int, O]]) -> list[int]:
    """The steps that every rank has."""
    steps = [set(each) for each in rows.values()]
    return sorted(set.intersection(*steps)) if steps else []


def only(rows: dict[int, dict[int, O]], ranks: tuple[int, ...]) -> dict[int, dict[int, O]]:
    return {rank: rows[rank] for rank in ranks if rows.get(rank)}


# -- weights --------------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Replica:
    """One set of parameters on the ranks that have it in the same shapes.

    ``kind`` is ``ddp``, ``local`` (wrapped, averaged now and then), ``averaged`` (by the program, before each step), ``sometimes`` (by the
    program, now and then), ``alone`` (never) or ``sharded``. ``apart`` is the first step before which they differ, ``names`` what differs
    there, ``distance`` how far at the last common step (greatest difference over the root mean square of the weights), ``odd`` the ranks
    that differ from most.
    """

    seen: ReplicaSeen
    kind: str
    ranks: tuple[int, ...]
    steps: tuple[int, ...]
    apart: int | None = None
    names: tuple[str, ...] = ()
    distance: float = 0.0
    odd: tuple[int, ...] = ()
    counts: tuple[tuple[int, int], ...] = ()  # (rank, optimizer steps)

    @property
    def shares_gradients(self) -> bool:
        """Whether each step of one is to be that of all."""
        return self.kind in ("ddp", "averaged", "sharded")


@dataclass(frozen=True)
class Replicas:
    """Every set of parameters that several ranks train."""

    each: tuple[Replica, ...]
    compares_ranks = True

    def __iter__(self) -> Iterator[Replica]:
        return iter(self.each)

    @classmethod
    def of(cls, recording: Recording) -> Replicas | Absent:
        if len(recording.ranks) < 2:
            return not_checked(ONE_PROCESS)
        found = tuple(_replicas(recording))
        return cls(found) if found else not_checked(NO_REPLICAS)

    @property
    def sharing(self) -> list[Replica]:
        return [replica for replica in self.each if replica.shares_gradients and len(replica.ranks) > 1]


@dataclass(frozen=True)
class Copies(Replicas):
    """Those that every rank has whole."""

    @classmethod
    def of(cls, recording: Recording) -> Copies | Absent:
        replicas = Replicas.of(recording)
        if isinstance(replicas, Absent):
            return replicas
        found = tuple(replica for replica in replicas if replica.kind != "sharded")
        return cls(found) if found else not_checked(SHARDED)


def _replicas(recording: Recording) -> Iterator[Replica]:
    done: set[tuple[int, int]] = set()
    for rank, each in sorted(recording.ranks.items()):
        for seen in each.of(ReplicaSeen):
            alike = {other: twin for other in (seen.ranks or ()) if (twin := _twin(recording, other, seen)) is not None}
            if (rank, seen.number) in done or len(alike) < 2:
                continue
            done |= {(other, seen.number) for other in alike}
            yield _compared(recording, seen, alike)


def _twin(recording: Recording, rank: int, seen: ReplicaSeen) -> ReplicaSeen | None:
    """The same set on another rank: the same names, shapes and group."""
    other = recording.ranks.get(rank)
    return next((twin for twin in (other.of(ReplicaSeen) if other else ()) if twin.number == seen.number and twin.names == seen.names
                 and twin.shapes == seen.shapes and twin.held == seen.held), None)


def _compared(recording: Recording, seen: ReplicaSeen, alike: dict[int, ReplicaSeen]) -> Replica:
    weights = {rank: {w.step: w for w in recording.ranks[rank].of(ReplicaWeights) if w.number == seen.number} for rank in alike}
    steps = common(weights)
    facts = {"seen": seen, "kind": _kind(list(alike.values())), "ranks": tuple(alike), "steps": tuple(steps),
             "counts": tuple((rank, twin.steps) for rank, twin in alike.items())}
    apart = next((step for step in steps if len({weights[rank][step].bits for rank in alike}) > 1), None)
    if apart is None:
        return Replica(**facts)  # type: ignore[arg-type]
    bits = {rank: weights[rank][apart].bits for rank in alike}
    names = tuple(name for at, name in enumerate(seen.names) if len({row[at] for row in bits.values() if at < len(row)}) > 1)
    last = [weights[rank][steps[-1]].values for rank in alike]
    usual = statistics.mode(bits.values())
    odd = tuple(rank for rank, row in bits.items() if row != usual)
    distance = max(distance_of(last[0], other) for other in last[1:])
    if distance <= ROUNDING:
        return Replica(**facts)  # type: ignore[arg-type]
    return Replica(**facts, apart=apart, names=names, distance=distance, odd=odd if len(alike) > 2 else ())  # type: ignore[arg-type]


def _kind(twins: list[ReplicaSeen]) -> str:
    if twins[0].held != "bare":
        return twins[0].held
    share = min((twin.averaged / twin.steps if twin.steps else 0.0) for twin in twins)
    most = max(twin.averaged for twin in twins)
    # once, before the first step: the weights were handed out
    return "averaged" if share > 0.9 else "alone" if most <= 1 else "sometimes"


def distance_of(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Greatest difference over the root mean square; infinite where one is not finite and the other is."""
    if len(one) != len(other) or not one:
        return math.inf
    size = math.sqrt(sum(a * a + b * b for a, b in zip(one, other)) / (2 * len(one)))
    gap = max((abs(a - b) for a, b in zip(one, other) if a != b and not (math.isnan(a) and math.isnan(b))), default=0.0)
    return math.inf if math.isnan(gap) or math.isnan(size) else gap / size if size else 0.0


# -- batches, losses, draws, calls ------------------------------------------------------------------------------------------

def _of_sharing(recording: Recording, kind: type[O], judged: Callable[[dict[int, dict[int, O]]], F | None]) -> tuple[F, ...] | Absent:
    """What is judged of the common steps of each set of ranks that share their gradients."""
    replicas = Replicas.of(recording)
    if isinstance(replicas, Absent):
        return replicas
    rows = rows_of(recording, kind)
    found = tuple(one for replica in replicas.sharing if (one := judged(only(rows, replica.ranks))) is not None)
    return found or not_checked(NO_STEPS)


@dataclass(frozen=True)
class RankBatches:
    """The first batches of common steps, rank by rank, of ranks that share their gradients. ``same`` of the ``steps`` are equal on
    ``ranks``; ``distinct`` counts different rows among them.
    """

    groups: tuple[SameBatches, ...]
    compares_ranks = True

    @classmethod
    def of(cls, recording: Recording) -> RankBatches | Absent:
        groups = _of_sharing(recording, RankBatch, _same_batches)
        return groups if isinstance(groups, Absent) else cls(groups)


@dataclass(frozen=True)
class SameBatches:
    ranks: tuple[int, ...]
    steps: int
    same: int
    distinct: int
    batch: RankBatch


def _same_batches(rows: dict[int, dict[int, RankBatch]]) -> SameBatches | None:
    steps = common(rows)
    if len(rows) < 2 or len(steps) < 3:
        return None
    first = rows[min(rows)]
    # a rank of the first one's kind: the same rows, whatever their order
    like = tuple(rank for rank in rows if all(sorted(rows[rank][step].rows) == sorted(first[step].rows) for step in steps))
    distinct = {row for step in steps for row in first[step].rows}
    return SameBatches(like, len(steps), len(steps) if len(like) > 1 else 0, len(distinct), first[steps[0]])


@dataclass(frozen=True)
class RankLosses:
    """Mean losses of common steps: over how many items, rank by rank."""

    groups: tuple[UnequalCounts, ...]
    compares_ranks = True

    @classmethod
    def of(cls, recording: Recording) -> RankLosses | Absent:
        groups = _of_sharing(recording, RankLoss, _counts)
        return groups if isinstance(groups, Absent) else cls(groups)


@dataclass(frozen=True)
class UnequalCounts:
    """``spread`` is the middle, over steps, of standard deviation over mean of the counts; ``balanced``: the program weighs its losses by
    them. ``items`` are those of the step whose spread that is."""

    spread: float
    items: tuple[tuple[int, int], ...]
    step: int
    steps: int
    balanced: bool
    known: bool
    loss: RankLoss


def _counts(rows: dict[int, dict[int, RankLoss]]) -> UnequalCounts | None:
    steps = common(rows)
    if len(rows) < 2 or len(steps) < 4:
        return None
    spreads = sorted((_spread([rows[rank][step].items for rank in rows]), step) for step in steps)
    spread, step = spreads[(len(spreads) - 1) // 2]
    scales = {rank: rows[rank][step].scale for rank in rows}
    return UnequalCounts(spread, tuple((rank, rows[rank][step].items) for rank in rows), step, len(steps),
                         _balanced([(rows[rank][step].items, scales[rank]) for rank in rows]),
                         all(scale is not None for scale in scales.values()), rows[min(rows)][step])


def _spread(items: list[int]) -> float:
    mean = statistics.fmean(items)
    return statistics.pstdev(items) / mean if mean else 0.0


def _balanced(pairs: list[tuple[int, float | None]]) -> bool:
    """The factor between loss and backward root goes with the count."""
    shares = [scale / items for items, scale in pairs if scale is not None and items]
    return len(shares) == len(pairs) and max(shares) - min(shares) <= 0.05 * max(map(abs, shares))


@dataclass(frozen=True)
class RankDraws:
    """Random numbers drawn while batches were made, on common steps of ranks that share their gradients."""

    groups: tuple[EqualDraws, ...]
    compares_ranks = True

    @classmethod
    def of(cls, recording: Recording) -> RankDraws | Absent:
        groups = _of_sharing(recording, SampleDraws, _draws)
        return groups if isinstance(groups, Absent) else cls(groups)


@dataclass(frozen=True)
class EqualDraws:
    """``generators`` that were used on every step, from states that are equal on ``ranks``."""

    ranks: tuple[int, ...]
    generators: tuple[str, ...]
    steps: int
    draws: SampleDraws


def _draws(rows: dict[int, dict[int, SampleDraws]]) -> EqualDraws | None:
    steps = common(rows)
    if len(rows) < 2 or len(steps) < 3:
        return None
    first = rows[min(rows)]
    moved = [name for name in first[steps[0]].generators if all(name in rows[rank][step].generators for rank in rows for step in steps)]
    alike = tuple(name for name in moved if all(len({_state(rows[rank][step], name) for rank in rows}) == 1 for step in steps))
    return EqualDraws(tuple(rows), alike, len(steps), first[steps[0]])


def _state(draws: SampleDraws, name: str) -> tuple[str, str]:
    at = draws.generators.index(name)
    return draws.before[at], draws.after[at]


@dataclass(frozen=True)
class RankCalls:
    """The collectives that the program called itself, number by number."""

    each: dict[int, dict[int, Collective]]
    compares_ranks = True

    @classmethod
    def of(cls, recording: Recording) -> RankCalls | Absent:
        if len(recording.ranks) < 2:
            return not_checked(ONE_PROCESS)
        rows = {rank: {call.number: call for call in each.of(Collective)} for rank, each in sorted(recording.ranks.items())}
        return cls(rows) if sum(bool(each) for each in rows.values()) > 1 else not_checked(NO_CALLS)


def is_cut_off(end: Ended | None) -> bool:
    """Ended because another rank had left, as far as the message tells."""
    words = (end.error or "").lower() if end is not None else ""
    return any(sign in words for sign in ("closed by peer", "reset by peer", "timed out", "timeout"))
