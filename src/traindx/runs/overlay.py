"""Curves of several runs over each other, as one HTML page without script or network."""
from __future__ import annotations

from collections.abc import Sequence
from html import escape

from traindx.core.text import Language
from traindx.figures.drawing import COLOURS
from traindx.figures.run import RUN_ROLES, compared
from traindx.figures.svg import svg
from traindx.reporters.layout import printable
from traindx.runs import words
from traindx.runs.reading import Run

STYLE = """:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}body{max-width:70rem;margin:2rem auto;padding:0 1rem}
figure{display:inline-block;margin:.5rem;width:30rem;max-width:100%}svg{width:100%}text{font-size:9px;fill:currentColor}
.grid{stroke:currentColor;stroke-opacity:.15}.key i{display:inline-block;width:1rem;height:.3rem;margin-right:.4rem;vertical-align:middle}
li{margin:.2rem 0}:lang(en) .zh,:lang(zh) .en{display:none}"""


def render(runs: Sequence[Run], said: Sequence[str], language: Language) -> str:
    """``said`` are the sentences of the comparison."""
    charts = compared({printable(run.name): run.measured.series for run in runs})
    key = "".join(f'<li class="key"><i style="background:{COLOURS[RUN_ROLES[at % len(RUN_ROLES)]]}"></i>{escape(printable(run.name))}</li>'
                  for at, run in enumerate(runs))
    sentences = "".join(f"<p>{escape(line)}</p>" for line in said)
    figures = "".join(f"<figure><figcaption>{escape(printable(chart.title.say(language)))}</figcaption>{svg(chart)}</figure>"
                      for chart in charts)
    title = escape(words.PAGE_TITLE.say(language))
    return (f'<!doctype html><html lang="{"zh-CN" if language == "zh" else "en"}"><meta charset="utf-8"><title>{title}</title>'
            f"<style>{STYLE}</style><h1>{title}</h1><ul>{key}</ul>{sentences}{figures}</html>\n")
