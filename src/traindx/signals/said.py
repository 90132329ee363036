"""Which way of summing up a pass's batches gives the numbers that the program then said.

Every way is tried on every quantity; a number counts as explained only if it agrees to its last printed digit in every
evaluation where it was said.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from traindx.core.observed.readings import Evaluation, Pass, Quantity, Said

FEWEST = 2  # evaluations in which the right and the wrong way differ

Way = Callable[[Quantity, Pass], list[float]]


@dataclass(frozen=True)
class Match:
    """A number that was summed up the wrong way, in ``times`` evaluations; ``right`` is what it should have been."""

    quantity: Quantity
    evaluated: Pass
    said: Said
    right: float
    times: int
    step: int


def _right(quantity: Quantity, one: Pass) -> list[float]:
    """Sums, means over batches, means over samples: of all of them."""
    q = quantity
    return [q.weighted, q.mean, q.total, q.total / max(one.samples, 1)]


def _last(quantity: Quantity, one: Pass) -> list[float]:
    return [quantity.last, quantity.last / max(one.last_batch, 1)] if quantity.counting else [quantity.last]


def _over_batches(quantity: Quantity, one: Pass) -> list[float]:
    """The mean of the batches' shares, or a count over as many samples as full batches would have."""
    if not quantity.counting:
        return []
    return [quantity.total / max(one.batches * one.batch, 1)] if _counts(quantity) else [quantity.mean]


def _over_samples(quantity: Quantity, one: Pass) -> list[float]:
    if not quantity.counting:
        return []
    return [quantity.total / max(one.samples, 1)] if _counts(quantity) else [quantity.weighted]


def _counts(quantity: Quantity) -> bool:
    return max(abs(quantity.first), abs(quantity.last), abs(quantity.mean)) > 1


WRONG: dict[str, tuple[Way, Way]] = {"last": (_last, _right), "over batches": (_over_batches, _over_samples)}


def agrees(said: Said, value: float) -> bool:
    """To the last printed digit, as it is or in per cent."""
    half = 0.5 * 10.0 ** -said.decimals * 1.001 + 1e-6 * abs(said.value)
    return abs(said.value - value) <= half or abs(said.value - 100 * value) <= half


def matches(evaluations: list[Evaluation], wrong: str) -> Iterator[Match]:
    """Numbers that only the wrong way explains, one a place."""
    way, right = WRONG[wrong]
    for place in _places(evaluations):
        told = [(e, said) for e in evaluations for said in e.said if _place(said) == place]
        for key in _keys(evaluations):
            if (found := _explained(told, key, way, right)) and not _explained_rightly(told, evaluations, right):
                yield found
                break


def _place(said: Said) -> tuple[str, int, int]:
    return (said.site.file, said.site.line, said.slot) if said.site else ("", 0, said.slot)


def _places(evaluations: list[Evaluation]) -> list[tuple[str, int, int]]:
    return list(dict.fromkeys(_place(said) for e in evaluations for said in e.said))


def _key(quantity: Quantity) -> tuple[str, int, str]:
    return (quantity.site.file if quantity.site else "", quantity.site.line if quantity.site else 0, quantity.what)


def _keys(evaluations: list[Evaluation]) -> list[tuple[str, int, str]]:
    return list(dict.fromkeys(_key(q) for e in evaluations for one in e.passes for q in one.quantities))


def _of_key(evaluation: Evaluation, key: tuple[str, int, str]) -> list[tuple[Quantity, Pass]]:
    return [(q, one) for one in evaluation.passes for q in one.quantities if _key(q) == key and one.batches > 1 and one.loop]


def _explained(told: list[tuple[Evaluation, Said]], key: tuple[str, int, str], way: Way, right: Way) -> Match | None:
    """The wrong way agrees every time, and often enough the right way does not."""
    told_apart: list[Match] = []
    for evaluation, said in told:
        fitting = [(q, one) for q, one in _of_key(evaluation, key) if any(agrees(said, v) for v in way(q, one))]
        if not fitting:
            return None
        quantity, one = fitting[0]
        rights = right(quantity, one)
        if rights and not any(agrees(said, v) for v in rights):
            told_apart.append(Match(quantity, one, said, rights[0], 0, evaluation.step))
    if len(told_apart) < FEWEST:
        return None
    first = told_apart[0]
    return Match(first.quantity, first.evaluated, first.said, first.right, len(told), first.step)


def _explained_rightly(told: list[tuple[Evaluation, Said]], evaluations: list[Evaluation], right: Way) -> bool:
    """Some quantity summed up the right way agrees every time: then nothing is proved."""
    return any(all(any(agrees(said, v) for q, one in _of_key(e, key) for v in right(q, one)) for e, said in told)
               for key in _keys(evaluations))
