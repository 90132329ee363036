"""Curves of several runs over each other, as one HTML page without script or network."""
from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from traindx.core.text import Language, number
from traindx.reporters.curves import BUCKETS, HEIGHT, LEFT, WIDTH, axes_for, thinned
from traindx.reporters.layout import printable
from traindx.runs import words
from traindx.runs.reading import Run

COLOURS = ("#3b6fd4", "#d1495b", "#2e9e6b", "#c98b1b", "#8a5cd6", "#1f9fb3", "#b3568f", "#6b7280")
STYLE = """:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}body{max-width:70rem;margin:2rem auto;padding:0 1rem}
figure{display:inline-block;margin:.5rem;width:30rem;max-width:100%}svg{width:100%}polyline{fill:none;stroke-width:1.5}
text{font-size:9px;fill:currentColor}.key i{display:inline-block;width:1rem;height:.3rem;margin-right:.4rem;vertical-align:middle}
li{margin:.2rem 0}"""


def render(runs: Sequence[Run], said: Sequence[str], language: Language) -> str:
    """``said`` are the sentences of the comparison."""
    names = [name for name in dict.fromkeys(name for run in runs for name in run.recording.series)
             if sum(name in run.recording.series for run in runs) > 1]
    key = "".join(f'<li class="key"><i style="background:{_colour(at)}"></i>{escape(printable(run.name))}</li>' for at, run in enumerate(runs))
    sentences = "".join(f"<p>{escape(line)}</p>" for line in said)
    figures = "".join(f"<figure><figcaption>{escape(printable(name))}</figcaption>{_figure(runs, name)}</figure>" for name in names)
    title = escape(words.PAGE_TITLE.say(language))
    return (f'<!doctype html><html lang="{"zh-CN" if language == "zh" else "en"}"><meta charset="utf-8"><title>{title}</title>'
            f"<style>{STYLE}</style><h1>{title}</h1><ul>{key}</ul>{sentences}{figures}</html>\n")


def _colour(at: int) -> str:
    return COLOURS[at % len(COLOURS)]


def _figure(runs: Sequence[Run], name: str) -> str:
    curves = [(at, [point for point in run.recording.series.get(name, ()) if math.isfinite(point[1])]) for at, run in enumerate(runs)]
    every = sorted(point for _, points in curves for point in points)
    if not every:
        return ""
    axes = axes_for(every, every, None)
    lines = "".join(
        f'<polyline stroke="{_colour(at)}" points="{" ".join(f"{axes.x(s):.1f},{axes.y(v):.1f}" for s, v in thinned(points, BUCKETS))}"/>'
        for at, points in curves)
    low, high = axes.values
    labels = "".join(f'<text x="{LEFT - 6}" y="{axes.y(v) + 3:.1f}" text-anchor="end">{escape(number(v))}</text>' for v in (low, high))
    first, last = axes.steps
    steps = (f'<text x="{axes.x(first):.1f}" y="{HEIGHT - 6}">{first}</text>'
             f'<text x="{axes.x(last):.1f}" y="{HEIGHT - 6}" text-anchor="end">{last}</text>')
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{lines}{labels}{steps}</svg>'
