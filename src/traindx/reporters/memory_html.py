"""A memory account as one HTML page: categories as bars, the two steps as a picture, both languages, nothing fetched."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from traindx import __version__, messages
from traindx.core import amounts
from traindx.core.memory import CATEGORIES, Account, Fit, Remedy
from traindx.core.text import Language, Text, same
from traindx.reporters import memory
from traindx.reporters.html import PAGE, both, place

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 760, 260, 70, 26, 12
COLOURS = {"parameters": "#1769aa", "gradients": "#a15c00", "optimizer": "#6b4fbb", "activations": "#1a7f37", "temporaries": "#c4241a",
           "inputs": "#667085"}
TIMELINE = Text("Memory over the steps traced", "追踪各步的显存变化")
WHAT, BYTES, FORMULA, COST, CHANGE = (Text("what", "项目"), Text("size", "大小"), Text("formula", "公式"), Text("cost", "代价"),
                                      Text("against now", "与现在相比"))
DESCRIPTION = Text("Live bytes by category, event by event; the highest is {size}.", "各类别的占用，逐个事件画出；最高 {size}。")


def render(account: Account, language: Language) -> str:
    title = Text("traindx memory: {subject}", "traindx 显存：{subject}").fill(subject=account.subject)
    fills = {"LANGUAGE": "zh-CN" if language == "zh" else "en", "WHICH": language, "TITLE": escape(title.say(language)),
             "SWITCH": both(messages.HTML_OTHER_LANGUAGE), "BODY": "\n".join(_body(account))}
    page = PAGE.read_text(encoding="utf-8")
    for name, value in fills.items():
        page = page.replace(f"@@{name}@@", value)
    return page


def _body(account: Account) -> Iterator[str]:
    yield f'<header><h1><b>traindx</b> {both(memory.TITLE.fill(subject=account.subject))}</h1><p class="ended">{_peak(account)}</p></header>'
    if account.where is not None:
        yield f'<p class="place">{escape(place(account.where))} {escape(account.op)}</p><pre><span>{escape(account.where.code)}</span></pre>'
    if account.lines:
        yield _section(memory.BILL, (WHAT, BYTES, FORMULA), (
            (both(line.what), amounts.size(line.bytes), f"<code>{escape(line.formula)}</code> {both(messages.ORIGIN[line.origin])}")
            for line in account.lines))
    else:
        yield f"<h2>{both(memory.AT_PEAK)}</h2>{_bars(account)}"
    if account.timeline:
        yield f"<h2>{both(TIMELINE)}</h2><figure>{timeline(account)}</figure>"
    yield _section(memory.MODULES, (WHAT, BYTES), (
        (escape(share.name), amounts.size(share.bytes)) for share in account.modules))
    yield _section(memory.FITS, (Text("GPU", "显卡"), WHAT), ((escape(fit.gpu), _fit(fit)) for fit in account.fits))
    yield _section(memory.REMEDIES, (WHAT, BYTES, CHANGE, COST), (_remedy(remedy, account.peak_bytes) for remedy in account.remedies))
    yield from _measured(account)
    for words in (*account.remarks, *(memory.NOT_MODELLED.fill(what=what) for what in account.not_modelled)):
        yield f'<p class="remark">{both(words)}</p>'
    yield f"<footer>traindx {__version__}</footer>"


def _peak(account: Account) -> str:
    size = amounts.size(account.peak_bytes)
    words = memory.PEAK.fill(size=size, phase=memory.PHASE[account.phase]) if account.phase else memory.PEAK_ALONE.fill(size=size)
    batch = f" · {both(memory.BATCH.fill(batch=account.batch))}" if account.batch else ""
    return f"{both(words)} · {both(memory.SOURCE[account.source])}{batch}"


def _section(title: Text, heads: Iterable[Text], rows: Iterable[tuple[str, ...]]) -> str:
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    if not body:
        return ""
    head = "".join(f"<th>{both(text)}</th>" for text in heads)
    return f'<h2>{both(title)}</h2><div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _fit(fit: Fit) -> str:
    words = (memory.DOES_FIT if fit.fits else memory.DOES_NOT).fill(needed=amounts.size(fit.needed), capacity=amounts.size(fit.capacity))
    if fit.largest_batch is not None:
        words = words + messages.SEMICOLON + memory.LARGEST.fill(batch=fit.largest_batch)
    return both(words)


def _remedy(remedy: Remedy, peak: float) -> tuple[str, ...]:
    if remedy.peak_bytes is None:
        return both(remedy.what), "-", "-", both(memory.NOT_TRIED.fill(why=remedy.why_not))
    cost = remedy.cost if remedy.helps(peak) else memory.NO_HELP
    change = f"{remedy.peak_bytes / peak - 1:+.0%}" if peak else "-"
    return both(remedy.what), amounts.size(remedy.peak_bytes), change, f"{both(cost)} <small>{both(messages.ORIGIN[remedy.origin])}</small>"


def _measured(account: Account) -> Iterator[str]:
    if account.measured_peak_bytes is None:
        return
    gap = amounts.percent(account.measured_peak_bytes / account.peak_bytes - 1, 2, "+") if account.peak_bytes else "-"
    title = memory.MEASURED.fill(size=amounts.size(account.measured_peak_bytes), gap=gap)
    yield f"<p><b>{both(title)}</b></p>"
    yield _section(same(""), (WHAT, BYTES), ((both(line.what), amounts.size(line.bytes)) for line in account.gap))


def _bars(account: Account) -> str:
    rows = "".join(
        f'<tr><td>{both(memory.CATEGORY[name])}</td><td>{amounts.size(account.categories.get(name, 0))}</td><td style="width:50%">'
        f'<div style="height:.9em;width:{100 * account.categories.get(name, 0) / max(account.peak_bytes, 1):.1f}%;background:{COLOURS[name]}">'
        "</div></td></tr>" for name in CATEGORIES)
    return f"<table><tbody>{rows}</tbody></table>"


def timeline(account: Account) -> str:
    """Categories stacked over the events of the steps, phases marked below, as ``<svg>``."""
    points = account.timeline
    top = max(live for live, _, _ in points) or 1
    described = DESCRIPTION.fill(size=amounts.size(top))

    def x(at: float) -> float:
        return LEFT + (WIDTH - LEFT) * at / max(len(points) - 1, 1)

    def y(size: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * size / top
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(described.en)}">']
    floor = [0.0] * len(points)
    for name in CATEGORIES:
        roof = [low + by.get(name, 0) for low, (_, _, by) in zip(floor, points)]
        outline = [*enumerate(roof), *reversed(list(enumerate(floor)))]
        edge = " ".join(f"{x(at):.1f},{y(size):.1f}" for at, size in outline)
        named = f"<title>{escape(memory.CATEGORY[name].en)}</title>"
        parts.append(f'<polygon points="{edge}" fill="{COLOURS[name]}" fill-opacity=".75">{named}</polygon>')
        floor = roof
    for size in (0, top / 2, top):
        parts.append(f'<text x="{LEFT - 6}" y="{y(size) + 4:.1f}" text-anchor="end">{amounts.size(size)}</text>')
    return "".join([*parts, *_phases(account, x), "</svg>"]) + _legend()


def _phases(account: Account, x: object) -> Iterator[str]:
    """Where a phase begins, named where there is room."""
    assert callable(x)
    phases = [phase for _, phase, _ in account.timeline]
    starts = [at for at, phase in enumerate(phases) if at == 0 or phases[at - 1] != phase]
    for at, after in zip(starts, [*starts[1:], len(phases)]):
        yield f'<line class="grid" x1="{x(at):.1f}" x2="{x(at):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        if x(after) - x(at) > 50:
            yield f'<text x="{x(at) + 3:.1f}" y="{HEIGHT - 8}">{phases[at]}</text>'


def _legend() -> str:
    return "<p>" + " ".join(f'<span style="color:{COLOURS[name]}">■</span> {both(memory.CATEGORY[name])}' for name in CATEGORIES) + "</p>"
