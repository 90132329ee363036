"""Step 4: initialisation and normalisation. How far activations and gradients grow or shrink through the layers."""
from __future__ import annotations

import math
from typing import Any

from traindx.core.exams import Points, StepResult
from traindx.core.findings import Evidence
from traindx.core.text import Text, number
from traindx.core.trials import Gauge
from traindx.experiments.case import Case

STEPS = 30
LATER = 20
BAND = (0.1, 10.0)  # of the activation std: a rule of thumb
MEASURING = Text("activations and gradients layer by layer", "逐层量激活和梯度")
PASSED = Text("activation std stays between {low} and {high} at the start", "起步时各层激活标准差在 {low} 到 {high} 之间")
OUTSIDE = Text("activation std runs from {low} to {high} at the start, outside 0.1 .. 10; no rule found harm in it",
               "起步时激活标准差从 {low} 到 {high}，超出 0.1 .. 10；但没有规则查出它造成了危害")
NOT_MEASURED = Text("the layers could not be measured", "各层测不了")
FORWARD = Text("growth of activations from layer to layer, at the start", "起步时激活每过一层放大多少倍")
BACKWARD = Text("growth of gradients from layer to layer on their way back, at the start", "起步时梯度往回每过一层放大多少倍")
FACTOR_EXPECTED = Text("between 0.5 and 2 times", "0.5 到 2 倍之间")


def examine(case: Case) -> StepResult:
    gauge = Gauge("layers", {"steps": [1, LATER]})
    trace = case.bench.one(MEASURING, case.bench.plain.measuring(gauge).for_steps(STEPS))
    fact: dict[str, Any] = trace.facts.get("layers") or {}
    measured = fact.get("measured") or []
    stds = [std for std in map(_std, measured[0]["layers"]) if std] if measured else []
    if not stds:
        said = fact.get("not_measured")
        return StepResult(4, "not-checked", Text(said["en"], said["zh"]) if said else NOT_MEASURED)
    low, high = min(stds), max(stds)
    inside = BAND[0] <= low and high <= BAND[1]
    result = StepResult(4, "passed", (PASSED if inside else OUTSIDE).fill(low=number(low), high=number(high)))
    result.evidence = _factors(measured[0])
    result.curves = {f"activation std, step {one['step']}": _profile(one["layers"]) for one in measured}
    return result


def _std(row: dict[str, Any]) -> float | None:
    value = row.get("out_std")
    return value if isinstance(value, float) and math.isfinite(value) and value > 0 else None


def _factors(measured: dict[str, Any]) -> list[Evidence]:
    """Geometric means over the layers with weights."""
    pairs = ((FORWARD, measured.get("forward_factor")), (BACKWARD, measured.get("backward_factor")))
    return [Evidence(what, value, FACTOR_EXPECTED, step=measured["step"]) for what, value in pairs if isinstance(value, float)]


def _profile(rows: list[dict[str, Any]]) -> Points:
    """Layer by layer, in the order of execution."""
    return [(at, std) for at, row in enumerate(rows, 1) if (std := _std(row)) is not None]
