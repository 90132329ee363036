"""A chart as the JSON that Plotly draws: ``{"data": [...], "layout": {...}}``. Colours are names of roles, which the page sets."""
from __future__ import annotations

import math
from html import escape
from typing import Any

from traindx.core.text import Language, Text, number
from traindx.figures.charts import Axis, Band, Chart, Mark, Role, Series

# readable on white and on near-black (contrast >= 3 to both), told apart by people who do not see red and green
COLOURS: dict[Role, str] = {"main": "#2f7ed8", "other": "#a86400", "good": "#00855f", "bad": "#d5452f", "muted": "#7d8590", "third": "#8a63d2",
                           "fourth": "#0b8793"}
MODES = {"line": "lines", "points": "markers", "line+points": "lines+markers"}
DIVERGED = Text("{name}: diverged at {x}", "{name}：在 {x} 处发散")


def plotly(chart: Chart, language: Language) -> dict[str, Any]:
    """The chart in one language; NaN and Inf become gaps with a cross where the curve is last seen."""
    data = [_trace(series, language) for series in chart.series]
    data += [_cross(series, chart, language) for series in chart.series if series.diverged_at() is not None]
    return {"data": data, "layout": _layout(chart, language)}


def _trace(series: Series, language: Language) -> dict[str, Any]:
    colour = COLOURS[series.role]
    trace: dict[str, Any] = {"name": series.name.say(language), "x": list(map(_finite, series.x)),
                             "y": list(map(_finite, series.y))}
    if series.kind == "bars":
        return {**trace, "type": "bar", "marker": {"color": colour}}
    return {**trace, "type": "scatter", "mode": MODES[series.kind], "marker": {"color": colour, "size": 7},
            "line": {"color": colour, "width": 2, "dash": "dash" if series.dashed else "solid"}}


def _cross(series: Series, chart: Chart, language: Language) -> dict[str, Any]:
    """Where a curve ends because it is no number any more: a cross at the largest finite value that was drawn."""
    at = series.diverged_at()
    seen = [y for y in series.y if math.isfinite(y)]
    top = max(seen, default=1.0) if not chart.y.range else chart.y.range[1]
    name = DIVERGED.fill(name=series.name, x=number(at or 0.0)).say(language)
    return {"name": name, "type": "scatter", "mode": "markers", "x": [at], "y": [top], "cliponaxis": False,
            "marker": {"color": COLOURS["bad"], "symbol": "x", "size": 11}}


def _layout(chart: Chart, language: Language) -> dict[str, Any]:
    lines = [_line(mark) for mark in chart.marks]
    notes = [_note(mark, language, chart.x) for mark in chart.marks if mark.label.en]
    if chart.band:
        lines.append(_band(chart.band))
        notes.append(_band_note(chart.band, language))
    return {"barmode": "overlay", "title": {"text": chart.title.say(language)},
            "xaxis": _axis(chart.x, language), "yaxis": _axis(chart.y, language),
            "shapes": lines, "annotations": [_logged(note, chart) for note in notes], "showlegend": len(chart.series) > 1}


def _axis(axis: Axis, language: Language) -> dict[str, Any]:
    found: dict[str, Any] = {"title": {"text": axis.label.say(language)}, "type": "log" if axis.log else "linear"}
    if axis.log:
        found["exponentformat"] = "power"
    if axis.range:
        found["range"] = [math.log10(end) for end in axis.range] if axis.log else list(axis.range)
    if axis.names:
        found |= {"tickvals": list(range(1, len(axis.names) + 1)), "ticktext": [name.say(language) for name in axis.names]}
    return found


def _line(mark: Mark) -> dict[str, Any]:
    ends = {"x0": mark.at, "x1": mark.at, "y0": 0, "y1": 1, "yref": "paper"} if mark.axis == "x" else \
        {"y0": mark.at, "y1": mark.at, "x0": 0, "x1": 1, "xref": "paper"}
    shape = {"type": "line", "line": {"color": COLOURS[mark.role], "width": 2, "dash": "dot"}, **ends}
    return {**shape, "name": f"knob:{mark.knob}", "editable": True} if mark.knob else shape


def _note(mark: Mark, language: Language, x: Axis) -> dict[str, Any]:
    note: dict[str, Any] = {"text": mark.label.say(language), "showarrow": False, "font": {"color": COLOURS[mark.role], "size": 12}}
    if mark.hint:
        note["hovertext"] = escape(mark.hint)
    if mark.axis == "x":
        return {**note, "x": mark.at, "y": 1, "yref": "paper", "yanchor": "bottom", "xanchor": _side(mark.at, x)}
    return {**note, "y": mark.at, "x": 1, "xref": "paper", "xanchor": "right", "yanchor": "bottom"}


def _side(at: float, axis: Axis) -> str:
    """Names near an end of the picture stay inside of it."""
    if axis.range is None or axis.log:
        return "center"
    share = (at - axis.range[0]) / (axis.range[1] - axis.range[0])
    return "left" if share < 0.15 else "right" if share > 0.85 else "center"


def _band(band: Band) -> dict[str, Any]:
    return {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": band.low, "y1": band.high, "layer": "below",
            "line": {"width": 0}, "fillcolor": COLOURS["good"], "opacity": 0.12}


def _band_note(band: Band, language: Language) -> dict[str, Any]:
    return {"text": band.label.say(language), "showarrow": False, "x": 0, "xref": "paper", "xanchor": "left", "y": band.high,
            "yanchor": "top", "font": {"color": COLOURS["good"], "size": 12}}


def _logged(note: dict[str, Any], chart: Chart) -> dict[str, Any]:
    """Plotly wants annotations on a logarithmic axis in decades, unlike shapes."""
    for letter, axis in (("x", chart.x), ("y", chart.y)):
        if axis.log and f"{letter}ref" not in note:
            note = {**note, letter: math.log10(note[letter])}
    return note


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
