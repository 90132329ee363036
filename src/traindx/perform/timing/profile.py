"""What the clock, the samples and the taps saw, as JSON values."""
from __future__ import annotations

from collections import Counter
from typing import Any

from traindx.core.codec import encode
from traindx.core.observed import Site
from traindx.perform.timing.clock import HOST, Clock
from traindx.perform.timing.operations import Operations
from traindx.perform.timing.sampler import FILLING
from traindx.perform.timing.taps import Loaders

LINES = 40


def profile_of(clock: Clock, loaders: Loaders, samples: Counter[tuple[str, Site | None, str]], steps: list[float],
               operations: Operations | None, counted: int) -> dict[str, Any]:
    """``seconds`` by phase over ``steps`` steps; ``lines``: samples by phase and line. Lines that fill a batch in place are ``input`` by their
    samples; ``filling``: how many of its seconds are known so."""
    seconds, filling = _with_filling(clock.seconds, samples)
    samples = Counter({("input" if phase == FILLING else phase, site, calls): count for (phase, site, calls), count in samples.items()})
    return {
        "steps": max(clock.steps, 1), "seconds": seconds, "step_seconds": steps, "filling": filling,
        "calls": {phase: [{"site": encode(site), "calls": calls, "seconds": seconds} for site, (calls, seconds) in rows.items()]
                  for phase, rows in clock.calls.items()},
        "samples": sum(samples.values()),
        "lines": [{"phase": phase, "site": encode(site), "calls": calls, "count": count}
                  for (phase, site, calls), count in samples.most_common(LINES)],
        "loader": {**{name: value for name, value in loaders.settings.items() if name != "id"}, "batches": loaders.batches,
                   "by_hand": loaders.by_hand,
                   "made": _rows(loaders.made), "begun": [{"site": encode(site), "starts": row[0], "seconds": row[1]} for site, row in
                                                          loaders.begun.items()],
                   "fetch_site": encode(loaders.fetch_site), "made_site": encode(loaders.made_site)},
        "backward": {"site": encode(clock.backward_site), "seconds": clock.backward_seconds, "nodes": clock.graph_nodes},
        "operations": _operations(operations, counted)}


def _with_filling(seconds: dict[str, float], samples: Counter[tuple[str, Site | None, str]]) -> tuple[dict[str, float], float]:
    host = sum(count for (phase, *_), count in samples.items() if phase in (HOST, FILLING))
    filling = sum(count for (phase, *_), count in samples.items() if phase == FILLING)
    moved = seconds[HOST] * filling / host if host else 0.0
    return {**seconds, HOST: seconds[HOST] - moved, "input": seconds["input"] + moved}, moved


def _rows(counts: dict[Site, int]) -> list[dict[str, Any]]:
    return [{"site": encode(site), "count": count} for site, count in counts.items()]


def _operations(found: Operations | None, steps: int) -> dict[str, Any] | None:
    """A step's mean."""
    if found is None or not steps:
        return None
    return {"by_phase": {phase: count / steps for phase, count in found.counts.items()}, "outside_seconds": found.outside / steps,
            "call_seconds": found.call_seconds,
            "elements": round(found.elements / max(sum(found.counts.values()), 1)),
            "lines": [{"site": encode(site), "count": count / steps} for site, count in found.lines.most_common(LINES)]}
