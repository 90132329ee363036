"""A learning-rate sweep read: where it diverges, how many rates cannot be run, and an interval or a refusal."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median, pstdev

from traindx.core.exams import RateRange
from traindx.core.text import Text, number

PER_DECADE = 2
LOWEST, HIGHEST = 1e-6, 1e-1
WIDEST = (1e-8, 10.0)
INFEASIBLE_LINE = 1 / 3  # a line to argue about, not a standard: a rule of thumb
GROWN = 1.5  # times the start: no learning can be meant
DISAGREE = 10.0  # times, between the rules, from which no interval is given
INTERVAL = 10.0  # best / 10 .. best: short runs favour rates that are too large for long ones
NEVER_FELL = Text("the loss never fell by more than its noise ({fall} against {noise}, in log loss)",
                  "损失下降的幅度从没超过噪声（对数损失：{fall} 对 {noise}）")
AT_EDGE = Text("the best rate is the {side} that was tried ({rate}): the grid does not hold the optimum",
               "最好的学习率是试过的里面{side}（{rate}）：网格没有罩住最优点")
LARGEST, SMALLEST = Text("largest", "最大的"), Text("smallest", "最小的")
DISAGREEING = Text("the rules disagree by more than 10 times: lowest loss at {best}, steepest fall at {steepest}",
                   "几条经验规则相差超过 10 倍：损失最低在 {best}，下降最陡在 {steepest}")
NONE_RUNS = Text("no rate could be run: every one diverges", "没有一个学习率跑得起来：全部发散")


@dataclass(frozen=True)
class RateRun:
    """One rate's runs over seeds, each a list of losses."""

    rate: float
    losses: tuple[tuple[float, ...], ...]

    @property
    def feasible(self) -> bool:
        return all(_feasible(run) for run in self.losses)

    @property
    def level(self) -> float:
        """Mean over seeds of the log loss at the end."""
        return mean(_end(run) for run in self.losses)

    @property
    def noise(self) -> float:
        """Uncertainty of ``level``, from seeds and from batch to batch."""
        ends = [_end(run) for run in self.losses]
        across = (max(ends) - min(ends)) / 2
        within = mean(_batch_noise(run) for run in self.losses)
        return max(across, within)


def grid(low: float = LOWEST, high: float = HIGHEST) -> list[float]:
    """A logarithmic grid, ends included."""
    first, last = round(math.log10(low) * PER_DECADE), round(math.log10(high) * PER_DECADE)
    return [10 ** (k / PER_DECADE) for k in range(first, last + 1)]


def _feasible(run: Sequence[float]) -> bool:
    if len(run) < 2 or not all(map(math.isfinite, run)):
        return False
    return median(run[-8:]) <= GROWN * abs(run[0]) or run[0] <= 0


def _tail(run: Sequence[float]) -> Sequence[float]:
    return run[-max(8, len(run) // 5):]


def _end(run: Sequence[float]) -> float:
    return math.log(max(mean(_tail(run)), 1e-30))


def _batch_noise(run: Sequence[float]) -> float:
    tail = _tail(run)
    return pstdev(tail) / math.sqrt(len(tail)) / max(abs(mean(tail)), 1e-30)


def wider(runs: Sequence[RateRun]) -> list[float]:
    """More rates to try where the best of these lies at an edge; none when it does not, or the widest was reached."""
    feasible = [run for run in runs if run.feasible]
    if not feasible:
        return [rate for rate in grid(WIDEST[0], HIGHEST) if rate < min(run.rate for run in runs) * 0.99]
    best = min(feasible, key=lambda run: run.level)
    rates = sorted(run.rate for run in runs)
    if best.rate == rates[-1] and rates[-1] < WIDEST[1] * 0.99:
        return [rate for rate in grid(*WIDEST) if rates[-1] * 1.01 < rate <= rates[-1] * 11]
    if best.rate == rates[0] and rates[0] > WIDEST[0] * 1.01:
        return [rate for rate in grid(*WIDEST) if rates[0] / 11 <= rate < rates[0] * 0.99]
    return []


def read(runs: Sequence[RateRun], used: float | None = None) -> RateRange:
    """The sweep's answer. Runs may come in any order."""
    runs = sorted(runs, key=lambda run: run.rate)
    feasible = [run for run in runs if run.feasible]
    infeasible = 1 - len(feasible) / len(runs)
    diverges = next((run.rate for run in runs if not run.feasible), None)
    if not feasible:
        return RateRange(None, NONE_RUNS, infeasible, diverges, used=used)
    best = min(feasible, key=lambda run: run.level)
    steepest = steepest_rate(feasible)
    refused = _refusal(runs, feasible, best, steepest)
    interval = None if refused else (best.rate / INTERVAL, best.rate)
    return RateRange(interval, refused, infeasible, diverges, best.rate, steepest, used)


def _refusal(runs: Sequence[RateRun], feasible: Sequence[RateRun], best: RateRun, steepest: float | None) -> Text | None:
    start = mean(math.log(max(run[0], 1e-30)) for run in best.losses)
    fall, noise = start - best.level, max(best.noise, median(run.noise for run in feasible))
    if fall < max(2 * noise, 0.02):
        return NEVER_FELL.fill(fall=number(fall), noise=number(noise))
    if best.rate in (runs[0].rate, runs[-1].rate):
        return AT_EDGE.fill(side=LARGEST if best.rate == runs[-1].rate else SMALLEST, rate=f"{best.rate:.2g}")
    if steepest and not 1 / DISAGREE <= best.rate / steepest <= DISAGREE ** 2:
        return DISAGREEING.fill(best=f"{best.rate:.2g}", steepest=f"{steepest:.2g}")
    return None


def steepest_rate(feasible: Sequence[RateRun]) -> float | None:
    """Where the final loss falls fastest with the logarithm of the rate (geometric middle of two grid points)."""
    pairs = list(pairwise(feasible))
    if not pairs:
        return None
    a, b = max(pairs, key=lambda pair: pair[0].level - pair[1].level)
    return math.sqrt(a.rate * b.rate)
