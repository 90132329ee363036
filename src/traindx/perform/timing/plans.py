"""What the timed child does, in which order."""
from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Any

from traindx.interventions.loader_settings import LoaderSettings
from traindx.interventions.tools.switched import Switched
from traindx.perform.timing.conductor import AS_WRITTEN, Block, Conductor, Plan, Timed, warm_up_of
from traindx.speed.search import Setting, search

FEWEST, MOST = 3, 400  # steps of a block that count
Send = Callable[[str, Any], None]


def first_losses(steps: int, variant: str) -> Generator[Block, Timed, list[float]]:
    """The program's first steps, under the change from the very first; the seconds of each."""
    if not steps:
        return []
    return (yield Block(variant, steps, 0, most=steps)).seconds


def baseline(seconds: float, fewest: int, bare: bool) -> Generator[Block, Timed, Timed]:
    return (yield Block(AS_WRITTEN, fewest, 3, "bare" if bare else "plain", seconds, 500))


def look(variant: str, seconds: float, fewest: int) -> Generator[Block, Timed, Timed]:
    return (yield Block(variant, fewest, 1, "look", seconds, 500))


TRACED, TRACED_SECONDS = 40, 0.3  # steps under torch.profiler at most, and seconds that are enough
UNKNOWN = 8  # steps, where neither is known
TRACED_OPERATIONS, MOST_OPERATIONS = 10_000, 60_000  # that are enough, and of a step that are too many: each becomes some records


def steps_to_trace(step_seconds: float, operations: float) -> int:
    """Few where a step is long or has many operations, but two where that can be; 0 where one has too many."""
    if operations > MOST_OPERATIONS:
        return 0
    enough = min(TRACED_SECONDS / step_seconds if step_seconds else UNKNOWN, TRACED_OPERATIONS / operations if operations else UNKNOWN)
    return max(2 if operations < TRACED_OPERATIONS else 1, min(TRACED, math.ceil(enough)))


TRACES, FAR = 3, 10.0  # blocks at most; times the median, from which a step had something else in it


def even(seconds: Sequence[float]) -> bool:
    return not seconds or max(seconds) <= FAR * _median(seconds)


def groups(leader: Conductor, asked: Sequence[Sequence[str]], rounds: int, seconds: float, send: Send, name: str = "blocks") -> Plan:
    """Blocks of the variants of each group next to each other, ``rounds`` times, in turned order each other time."""
    lengths = yield from _lengths(leader, asked, seconds)
    found: list[dict[str, float]] = []
    for number in range(rounds):
        for group in asked:
            means = {}
            for variant in group if number % 2 == 0 else reversed(group):
                timed = yield Block(variant, lengths[variant], warm_up_of(leader.variants.get(variant)))
                means[variant] = timed.mean / _times(leader.variants.get(variant)) if timed.seconds else 0.0
                if leader.late:
                    return
            if all(means.values()):
                found.append(means)
                send(name, found)


def _times(variant: Switched | None) -> int:
    return variant.times if variant is not None else 1


def _lengths(leader: Conductor, asked: Sequence[Sequence[str]], seconds: float) -> Generator[Block, Timed, dict[str, int]]:
    """Steps that make a block long enough, of each variant, by a first try of it."""
    lengths = {}
    for variant in dict.fromkeys(variant for group in asked for variant in group):
        first = yield Block(variant, FEWEST, 2 + warm_up_of(leader.variants.get(variant)))
        lengths[variant] = min(MOST, max(FEWEST, math.ceil(seconds / max(first.mean, 1e-6))))
    return lengths


SEARCH = "search"  # the variant of the settings that are tried


def search_plan(leader: Conductor, loader: LoaderSettings, job: dict[str, Any], send: Send) -> Plan:
    """Settings that the search asks for, a few pairs each; then the best in as many as a verdict needs."""
    asking = search(Setting(job["workers"]), job["most"], job["cuda"])
    tried: list[dict[str, Any]] = []
    answer: float | None = None
    while True:
        try:
            setting = asking.send(answer)  # type: ignore[arg-type]
        except StopIteration as end:
            best = end.value
            break
        loader.change(setting.workers, setting.prefetch, setting.pin)
        ratios = yield from _ratios(leader, job["few"], job["block_seconds"])
        answer = _median(ratios) if ratios else 0.0
        tried.append({"setting": setting.name, "ratio": answer, "pairs": len(ratios), "problem": loader.problem.en})
        send("tried", tried)
        if leader.late:
            return
    if best is None:
        return
    loader.change(best.workers, best.prefetch, best.pin)
    send("best", {"workers": best.workers, "prefetch": best.prefetch, "pin": best.pin, "name": best.name})
    yield from groups(leader, [[AS_WRITTEN, SEARCH]], job["pairs"], job["block_seconds"], send)


def _ratios(leader: Conductor, pairs: int, seconds: float) -> Generator[Block, Timed, list[float]]:
    found: list[dict[str, float]] = []

    def keep(name: str, value: list[dict[str, float]]) -> None:
        found[:] = value
    yield from groups(leader, [[AS_WRITTEN, SEARCH]], pairs, seconds, keep)
    return [pair[AS_WRITTEN] / pair[SEARCH] for pair in found]


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
