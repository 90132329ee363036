"""All leaves in few bytes: what an exported page holds of the diagnosis tree."""
from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from traindx.core.text import Text
from traindx.figures import Series
from traindx.toys.drawing import Drawing, draw
from traindx.toys.training import Toys


def compact_all(toys: Toys, rules: Iterable[str], seed: int = 0) -> dict[str, dict[str, Any]]:
    """``{rule: compact(drawing)}``; what is not on disk is trained (about a second each)."""
    return {toy.rule: compact(draw(toy)) for toy in toys.all(rules, seed)}


def compact(drawing: Drawing) -> dict[str, Any]:
    """JSON values; texts are pairs ``[en, zh]``, NaN and infinities in curves are null."""
    chart, rows = drawing.chart, drawing.evidence.rows if drawing.evidence else ()
    return {"seed": drawing.seed, "said": _pair(drawing.said), "cause": _pair(drawing.cause), "place": _pair(drawing.place),
            "evidence": [[_pair(cell) for cell in row] for row in rows], "log": bool(chart and chart.y.log),
            "curves": [_curve(series) for series in chart.series] if chart else []}


def _curve(series: Series) -> dict[str, Any]:
    return {"name": _pair(series.name), "role": series.role, "dashed": series.dashed, "x": [_short(x) for x in series.x],
            "y": [_short(y) for y in series.y]}


def _short(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() else value


def _pair(text: Text | str) -> list[str]:
    return [text.en, text.zh] if isinstance(text, Text) else [text, text]
