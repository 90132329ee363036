"""How far seeds alone move the result: what a gain must exceed."""
from __future__ import annotations

import math
from statistics import mean, stdev

from traindx.core.exams import Points, SeedSpread
from traindx.core.text import Text
from traindx.core.trials import Trace
from traindx.experiments.bench import Bench
from traindx.experiments.proofs import curve

STEPS = 1000
LAST = 20
# Student's t, two-sided 95 %, by degrees of freedom: few seeds know their own spread badly
STUDENT = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
NORMAL = 1.96
TITLE = Text("{count} seed{count:|s}", "{count} 个种子")


def spread(bench: Bench, count: int, steps: int = STEPS) -> tuple[SeedSpread | None, dict[str, Points]]:
    """The program at ``count`` seeds: final loss of each (validation where there is one, else mean of the last steps).

    ``noise`` is what the difference of two single runs stays under in 95 of 100 cases: t * sqrt(2) * standard deviation.
    """
    traces = bench.run(TITLE.fill(count=count), [bench.plain.for_steps(steps).seeded(seed) for seed in range(count)])
    final = [value for trace in traces if (value := final_loss(trace)) is not None]
    curves = {f"seed {seed}": curve(trace) for seed, trace in enumerate(traces)}
    if len(final) < 2:
        return None, curves
    deviation = stdev(final)
    return SeedSpread(final, deviation, STUDENT.get(len(final) - 1, NORMAL) * math.sqrt(2) * deviation), curves


def final_loss(trace: Trace) -> float | None:
    if trace.validation:
        return trace.validation[-1][1]
    return mean(trace.losses[-LAST:]) if trace.losses else None
