"""The page of ``traindx data``: samples to look at and mark with the keyboard, and what was counted. One file, nothing fetched."""
from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

import numpy as np

from traindx import __version__, messages
from traindx.core.observed.samples import Shown
from traindx.core.text import EMPTY, Language, Text, number
from traindx.reporters.html import both, page_of, place
from traindx.samples import told, words
from traindx.samples.labels import counts_of, tail_of
from traindx.samples.load import Array, Split, name_of
from traindx.samples.pictures import image, wave
from traindx.samples.report import DataReport

MOST_IDS = 512
MOST_VALUES = 40

STYLE = """<style>
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: .8rem; }
.card { border: 1px solid var(--line); border-radius: 6px; padding: .6rem .7rem; overflow: hidden; overflow-wrap: anywhere; }
.card:focus { outline: 3px solid var(--note); } .card p { margin: .2rem 0; } .card .mark { color: var(--faint); }
.card[data-mark="1"] { border-color: var(--fine); } .card[data-mark="2"], .card[data-mark="3"] { border-color: var(--error); }
.card[data-mark="4"] { border-color: var(--warning); } .card table { font-size: .8em; } .card svg { margin: .2rem 0; }
.bar { display: inline-block; height: .7em; background: var(--curve); vertical-align: baseline; min-width: 1px; }
tr.tail .bar { background: var(--warning); }
.small { font-size: .85em; color: var(--faint); } button.save { font: inherit; color: inherit; background: var(--box);
  border: 1px solid var(--line); border-radius: 6px; padding: .2rem .8rem; cursor: pointer; }
</style>"""

SCRIPT = """<script>
(() => {
  const cards = [...document.querySelectorAll(".card[data-sample]")], key = "traindx-data:" + location.pathname;
  const names = @@MARKS@@;
  let marks = {};
  try { marks = JSON.parse(localStorage.getItem(key) || "{}"); } catch (e) { marks = {}; }
  let at = 0;
  const show = card => {
    const mark = marks[card.dataset.sample] || 0;
    card.dataset.mark = mark;
    card.querySelector(".mark").textContent = names[document.documentElement.dataset.language][mark];
  };
  const go = step => { at = Math.min(cards.length - 1, Math.max(0, at + step)); cards[at].focus(); };
  const mark = value => {
    const card = cards[at];
    if (value) marks[card.dataset.sample] = value; else delete marks[card.dataset.sample];
    try { localStorage.setItem(key, JSON.stringify(marks)); } catch (e) { /* a page from disk may have no storage */ }
    show(card);
    if (value) go(1);
    if (window.traindxSave) save();
  };
  const text = () => JSON.stringify({ schema: 1, script: document.body.dataset.script || "", marks: Object.fromEntries(
    Object.entries(marks).map(([sample, value]) => [sample, names.plain[value]])) }, null, 1) + "\\n";
  const save = () => {
    if (window.traindxSave) { fetch(window.traindxSave, { method: "POST", body: text() }); return; }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text()], { type: "application/json" }));
    link.download = "marks.json";
    link.click();
  };
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !cards.length) return;
    const does = { ArrowRight: () => go(1), j: () => go(1), ArrowLeft: () => go(-1), k: () => go(-1), s: save };
    const act = does[event.key] || (/^[0-4]$/.test(event.key) ? () => mark(Number(event.key)) : null);
    if (act) { event.preventDefault(); act(); }
  });
  cards.forEach((card, place) => { card.addEventListener("focus", () => { at = place; }); show(card); });
  document.getElementById("switch").addEventListener("click", () => cards.forEach(show));
  document.getElementById("save").addEventListener("click", save);
  if (cards.length) cards[0].focus({ preventScroll: true });
})();
</script>"""


def render(report: DataReport, language: Language) -> str:
    parts = [STYLE, f'<header><h1><b>traindx data</b> {escape(report.script)}</h1></header>', _splits(report), _review(report)]
    for title, lines in told.sections(report):
        parts.append(f"<h2>{both(title)}</h2>" + "".join(f"<p>{both(line)}</p>" for line in lines))
    parts.insert(4, _classes(report))
    parts += [_rules(report), f"<footer>traindx {__version__}</footer>", _script()]
    return page_of(words.TITLE.fill(script=report.script), "\n".join(parts), language)


def _script() -> str:
    names = {"en": [mark.en for mark in words.MARKS], "zh": [mark.zh for mark in words.MARKS], "plain": [mark.en for mark in words.MARKS]}
    return SCRIPT.replace("@@MARKS@@", json.dumps(names, ensure_ascii=False))


def _table(heads: Iterable[Text], rows: Iterable[str]) -> str:
    head = "".join(f"<th>{both(text)}</th>" for text in heads)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _splits(report: DataReport) -> str:
    heads = (words.SPLIT, words.SAMPLES, words.BATCHES, words.SHAPE, words.KIND, words.LABELS, words.FROM)
    return f"<h2>{both(words.SPLITS)}</h2>" + _table(heads, (_split(split) for split in report.splits))


def _split(split: Split) -> str:
    seen = split.seen
    cut = "" if seen.whole_pass else f'<br><span class="small">{both(words.PASS_CUT)}</span>'
    notes = "".join(f'<br><span class="small">{both(words.note(note))}</span>' for note in seen.notes)
    where = ", ".join(escape(place(site)) for site in (seen.loader_site, seen.site) if site)
    return (f"<tr><td>{both(words.split_name(split.name))}{cut}{notes}</td><td>{seen.samples}</td><td>{seen.batches}</td>"
            f"<td><code>{list(seen.row_shape)} {escape(seen.dtype)}</code></td><td>{both(words.KINDS[seen.feature])}</td>"
            f"<td>{both(words.LABEL_KINDS[seen.label_kind])}</td><td><code>{escape(seen.dataset)} {where}</code></td></tr>")


# -- samples --


def _review(report: DataReport) -> str:
    cards = "".join(_card(split, shown) for split in report.splits for shown in split.seen.shown)
    return (f'<h2>{both(words.REVIEW)}</h2><p class="small">{both(words.KEYS)} '
            f'<button class="save" id="save" type="button">{both(words.SAVE)}</button></p><div class="cards">{cards}</div>')


def _card(split: Split, shown: Shown) -> str:
    name = split.row(shown.index) if shown.index < len(split.arrays["indices"]) else f"{split.name}#{shown.index}"
    parts = "".join(_part(split, split.arrays[part], shown) for part in shown.parts if part in split.arrays)
    hidden = f'<p class="small">{both(words.TOO_LARGE.fill(shape=shown.hidden))}</p>' if shown.hidden else ""
    target = image(_flat(split.arrays[shown.target])) if shown.target and shown.target in split.arrays else ""
    return (f'<div class="card" tabindex="0" data-sample="{escape(name, quote=True)}">{parts}{hidden}'
            f"<p><b>{both(words.LABEL)}:</b> {escape(_label(split, shown.label))}</p>{target}"
            f'<p class="small"><code>{escape(name)}</code> <span class="mark"></span></p></div>')


def _label(split: Split, label: Any) -> str:
    if label is None:
        return "–"
    if isinstance(label, (int, float)) and split.seen.label_kind == "classes":
        return name_of(split.seen.names, label)
    if isinstance(label, list):
        return "[" + ", ".join(number(value, 3) for value in label) + "]"
    return number(label, 4) if isinstance(label, (int, float)) else str(label)


def _part(split: Split, sample: Array, shown: Shown) -> str:
    if sample.size == 0:
        return f"<p><code>{list(sample.shape)}</code></p>"
    caption = _range(sample)
    if sample.ndim == 1 and sample.dtype.kind in "iu" and sample.size > 1:
        return _text(sample, shown)
    if split.seen.feature == "wave":
        return wave(sample if sample.ndim < 3 else sample.reshape(-1)) + caption
    if _is_picture(sample):
        return image(sample) + caption
    if sample.ndim == 1 and (side := _square(sample)):
        return image(sample.reshape(side, side)) + caption
    return _values(sample) + (caption if sample.size > MOST_VALUES else "")


def _is_picture(sample: Array) -> bool:
    planes = sample.ndim == 3 and not {1, 3, 4}.isdisjoint((sample.shape[0], sample.shape[-1]))
    return (sample.ndim == 2 or planes) and min(sample.shape[-2:]) > 1


def _square(sample: Array) -> int:
    """The side of a picture that was made flat: its rows are like their neighbours. 0 where it is none."""
    side = round(len(sample) ** 0.5)
    if side < 8 or side * side != len(sample):
        return 0
    a, b = sample[:-side].astype(float), sample[side:].astype(float)
    return side if a.std() > 0 and b.std() > 0 and np.corrcoef(a, b)[0, 1] > 0.4 else 0


def _flat(target: Array) -> Array:
    """A mask as a picture; of several planes the first."""
    while target.ndim > 2 and target.shape[0] not in (1, 3):
        target = target[0]
    return target


def _range(sample: Array) -> str:
    finite = sample[np.isfinite(sample)] if sample.dtype.kind == "f" else sample
    if not finite.size:
        return ""
    said = words.RANGE.fill(low=number(float(finite.min()), 3), high=number(float(finite.max()), 3))
    return f'<p class="small">{both(said)} <code>{list(sample.shape)} {sample.dtype}</code></p>'


def _text(ids: Array, shown: Shown) -> str:
    listed = " ".join(map(str, ids[:MOST_IDS].tolist())) + (" …" if len(ids) > MOST_IDS else "")
    if shown.text is None:
        return f'<p class="small">{both(words.NOT_DECODED)}</p><p><code>{listed}</code></p>'
    return f'<p>{escape(shown.text)}</p><details><summary class="small">ids</summary><code>{listed}</code></details>'


def _values(sample: Array) -> str:
    values = sample.reshape(-1)
    cells = "".join(f"<tr><td>{place}</td><td>{escape(number(float(value), 4))}</td></tr>" for place, value in enumerate(values[:MOST_VALUES]))
    return f"<table>{cells}</table>"


# -- counts --


def _classes(report: DataReport) -> str:
    parts = [f"<h2>{both(words.CLASSES)}</h2>"]
    for split in report.splits:
        counts = counts_of(split)
        if not counts:
            parts.append(f"<p>{both(words.split_name(split.name))}: {both(told.values_of(split))}</p>")
            continue
        tail, most = set(tail_of(counts)), max(counts.values())
        rows = (f'<tr class="{"tail" if label in tail else ""}"><td>{escape(split.class_name(label))}</td><td>{count}</td>'
                f'<td style="width:60%"><span class="bar" style="width:{100 * count / most:.1f}%"></span></td></tr>'
                for label, count in counts.items())
        note = f'<p class="small">{both(words.TAIL)}</p>' if tail else ""
        parts.append(f"<h3>{both(words.split_name(split.name))}</h3>" + _table((words.LABEL, words.SAMPLES, EMPTY), rows) + note)
    return "".join(parts)


def _rules(report: DataReport) -> str:
    return f"<h2>{both(words.FINDINGS)}</h2>" + ("".join(_finding(report)) or f'<p class="fine">{both(words.NO_FINDING)}</p>')


def _finding(report: DataReport) -> Iterator[str]:
    for judged in report.rules.findings:
        where = escape(place(judged.finding.where)) if judged.finding.where else both(messages.NO_PLACE)
        yield (f'<article class="{judged.level}"><h3><span class="level">{both(messages.LEVEL[judged.level])}</span> '
               f"<code>{escape(judged.rule)}</code> {both(judged.title)}</h3><p class=\"place\">{where}</p>"
               f"<dl><dt>{both(messages.CAUSE)}</dt><dd>{both(judged.finding.cause)}</dd>"
               f"<dt>{both(messages.FIX)}</dt><dd>{both(judged.finding.fix)}</dd></dl></article>")
