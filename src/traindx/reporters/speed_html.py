"""A speed report as one HTML page: shares as a bar, lines as flames, the batch curve, trials with their intervals; nothing fetched."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from traindx import __version__, messages
from traindx.core.amounts import duration, percent
from traindx.core.speed import KINDS, SHARES, BatchPoint, Change, Profiled, SpeedReport, Spent
from traindx.core.text import EMPTY, Language, Text
from traindx.reporters import speed
from traindx.reporters.html import PAGE, both, place

COLOURS = {"input": "#1769aa", "host": "#a15c00", "sync": "#c4241a", "transfer": "#6b4fbb", "compute": "#1a7f37", "optimizer": "#0e7490",
           "logging": "#667085"}
PHASE_COLOURS = {**COLOURS, "forward": "#1a7f37", "loss": "#1a7f37", "backward": "#14532d", "evaluation": "#999999"}
KIND_COLOURS = {"input": COLOURS["input"], "operators": COLOURS["compute"], "launch": "#8a6d1a", "optimizer": COLOURS["optimizer"],
                "copies": COLOURS["transfer"], "reads": COLOURS["sync"], "gaps": COLOURS["host"]}
GPU_COLOURS = {"computing": COLOURS["compute"], "copying": COLOURS["transfer"], "launch": "#c9a227", "sync": COLOURS["sync"],
               "input": COLOURS["input"], "transfer": "#b9a7e6"}
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 760, 240, 70, 30, 14, 20
ROW = 26
CURVE = Text("A step against the batch", "每步用时随 batch 的变化")
LINEAR = Text("in proportion to the batch", "与 batch 成正比")
TRIALS = Text("Trials", "各项尝试")
PROFILER = Text("By torch.profiler", "torch.profiler 的测量")
SHARES_TITLE = Text("Where the time of a step goes", "每步的时间花在哪里")
NOW, FASTER_IS = Text("as it is", "原样"), Text("right of the line is faster", "线的右边是更快")
DESCRIBED = Text("Speed with each change, relative to the program as it is, with 95 % intervals.",
                 "每项改动之后的速度（以原样的程序为 1），带 95 % 区间。")


def render(report: SpeedReport, language: Language) -> str:
    title = Text("traindx speed: {subject}", "traindx 速度：{subject}").fill(subject=report.subject)
    fills = {"LANGUAGE": "zh-CN" if language == "zh" else "en", "WHICH": language, "TITLE": escape(title.say(language)),
             "SWITCH": both(messages.HTML_OTHER_LANGUAGE), "BODY": "\n".join(_body(report))}
    page = PAGE.read_text(encoding="utf-8")
    for name, value in fills.items():
        page = page.replace(f"@@{name}@@", value)
    return page


def _body(report: SpeedReport) -> Iterator[str]:
    verdict = both(speed.VERDICT[report.verdict])
    yield f'<header><h1><b>traindx</b> {both(speed.TITLE.fill(subject=report.subject))}</h1><p class="ended">{verdict}</p></header>'
    if report.baseline is not None:
        yield f"<h2>{both(speed.BASELINE)}</h2><p>{both(speed.speed_text(report.baseline))}</p>"
        yield f'<p class="remark">{both(speed.setting_text(report.baseline))}</p>'
    yield f"<h2>{both(speed.BOTTLENECK.fill(verdict=speed.VERDICT[report.verdict]))}</h2><p>{both(report.why)}</p>"
    if report.shares:
        shares = {name: report.shares.get(name, 0.0) for name in SHARES}
        yield f"<h3>{both(SHARES_TITLE)}</h3><figure>{shares_bar(shares, speed.SHARE, COLOURS, SHARES_TITLE)}</figure>"
    if report.profiled is not None:
        yield from _profiled(report, report.profiled)
    if report.lines:
        yield f"<h3>{both(speed.LINES)}</h3><figure>{flames(report.lines)}</figure>"
    if report.input_lines and report.shares.get("input", 0.0) >= 0.05:
        yield f"<h3>{both(speed.INPUT_LINES)}</h3><figure>{flames(report.input_lines)}</figure>"
    if len(report.batch_curve) > 1:
        yield f"<h3>{both(CURVE)}</h3><figure>{batch_curve(report.batch_curve)}</figure>"
    yield from _findings(report)
    yield from _trials(report)
    yield from (f'<p class="remark">{both(words)}</p>' for words in report.remarks)
    yield f"<footer>traindx {__version__}</footer>"


def shares_bar(shares: dict[str, float], names: dict[str, Text], colours: dict[str, str], title: Text) -> str:
    """One bar, cut by share, with its legend."""
    at, parts = 0.0, []
    for name, share in shares.items():
        parts.append(f'<rect x="{at * WIDTH:.1f}" y="0" width="{share * WIDTH:.1f}" height="34" fill="{colours[name]}">'
                     f"<title>{escape(names[name].en)} {percent(share)}</title></rect>")
        at += share
    legend = " ".join(f'<span style="color:{colours[name]}">■</span> {both(names[name])} {percent(share)}' for name, share in shares.items())
    return f'<svg viewBox="0 0 {WIDTH} 34" role="img" aria-label="{escape(title.en)}">{"".join(parts)}</svg><p>{legend}</p>'


def _profiled(report: SpeedReport, found: Profiled) -> Iterator[str]:
    title = speed.profiled_text(found, report.baseline)
    yield f"<h3>{both(PROFILER)}</h3><p>{both(title)}</p>"
    if found.shares:
        shares = {name: found.shares[name] for name in KINDS}
        rows = "".join(f"<li>{percent(share)} {both(text)}</li>" for share, text in speed.operators_of(found, 12))
        yield f"<figure>{shares_bar(shares, speed.KIND, KIND_COLOURS, PROFILER)}</figure><p>{both(speed.OPERATORS)}</p><ul>{rows}</ul>"
    if found.device is not None:
        yield (f"<h4>{both(speed.ON_GPU)}</h4><figure>{shares_bar(speed.gpu_shares(found.device), speed.GPU, GPU_COLOURS, speed.ON_GPU)}"
               f"</figure><p>{both(speed.kernels_text(found.device))}</p>")


def flames(lines: Sequence[Spent], most: int = 12) -> str:
    """A bar for each line, its length the share of it."""
    shown = [line for line in lines if line.share >= 0.01][:most]
    top = max((line.share for line in shown), default=1.0)
    rows = []
    for number, line in enumerate(shown):
        y = number * ROW
        code = f"{line.site.file}:{line.site.line}  {line.site.code}" + (f"  [{line.calls}]" if line.calls else "")
        length, colour = (WIDTH - 48) * line.share / top, PHASE_COLOURS[line.phase]
        rows.append(f'<rect x="48" y="{y + 2}" width="{length:.1f}" height="{ROW - 6}" fill="{colour}" fill-opacity=".25"/>'
                    f'<text x="0" y="{y + 16}">{percent(line.share)}</text><text x="54" y="{y + 16}">{escape(code[:110])}</text>')
    height = max(1, len(shown)) * ROW
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(speed.LINES.en)}">{"".join(rows)}</svg>'


def batch_curve(points: Sequence[BatchPoint]) -> str:
    """Seconds of a step against the batch, with the straight line of a step that is all arithmetic."""
    most = max(point.times for point in points)
    first = points[0]
    top = max(*(point.step_seconds for point in points), first.step_seconds * most)

    def x(times: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * times / most

    def y(seconds: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * seconds / top
    line = " ".join(f"{x(point.times):.1f},{y(point.step_seconds):.1f}" for point in points)
    marks = "".join(f'<circle cx="{x(p.times):.1f}" cy="{y(p.step_seconds):.1f}" r="4" fill="{COLOURS["compute"]}"/>'
                    f'<text x="{x(p.times):.1f}" y="{HEIGHT - 8}" text-anchor="middle">x{p.times}</text>' for p in points)
    ticks = "".join(f'<text x="{LEFT - 6}" y="{y(seconds) + 4:.1f}" text-anchor="end">{duration(seconds)}</text>'
                    for seconds in (top / 2, top))
    straight = (f'<line x1="{x(first.times):.1f}" y1="{y(first.step_seconds):.1f}" x2="{x(most):.1f}" y2="{y(first.step_seconds * most):.1f}" '
                f'class="grid" stroke-dasharray="4 4"/>')
    return (f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(CURVE.en)}">{straight}{ticks}'
            f'<polyline points="{line}" fill="none" stroke="{COLOURS["compute"]}" stroke-width="2"/>{marks}</svg><p>- - {both(LINEAR)}</p>')


def _findings(report: SpeedReport) -> Iterator[str]:
    for judged in report.findings:
        finding = judged.finding
        yield f"<h3>{escape(judged.rule)}{both(messages.COLON)}{both(judged.title)}</h3>"
        if finding.where is not None:
            yield f'<p class="place">{escape(place(finding.where))}</p><pre><span>{escape(finding.where.code)}</span></pre>'
        yield f"<p>{both(finding.cause)}</p><p><b>{both(messages.FIX)}</b> {both(finding.fix)}</p>"


def _trials(report: SpeedReport) -> Iterator[str]:
    timed = [change for change in report.changes if change.interval is not None]
    if timed:
        yield f"<h2>{both(TRIALS)}</h2><figure>{intervals(timed)}</figure>"
    for title, changes, refused in ((speed.DATA, report.data, EMPTY), (speed.COMPUTE, report.compute, report.compute_refused)):
        if changes or refused != EMPTY:
            yield f"<h2>{both(title)}</h2>" + (f"<p>{both(refused)}</p>" if refused != EMPTY else "")
            yield from (_change(change) for change in changes)


def _change(change: Change) -> str:
    if change.interval is None:
        shown = f"<pre>{both(change.diff)}</pre>" if change.diff != EMPTY else ""
        return f'<p class="remark">{both(change.title + messages.COLON + change.why)}</p>{shown}'
    said = speed.OUTCOME[change.outcome] if change.outcome else speed.NO_VERDICT
    words = [both(speed.ratio_text(change.interval)), *(both(text) for text in (change.why, speed.loss_text(change), speed.load_text(change),
                                                                              change.remark) if text != EMPTY)]
    diff = f"<pre>{escape(change.diff.en)}</pre>" if change.outcome == "faster" else ""
    return f"<p><b>{both(change.title + messages.COLON + said)}</b><br>{'<br>'.join(words)}</p>{diff}"


def intervals(changes: Sequence[Change]) -> str:
    """A dot and a line for each change; the upright line is the program as it is."""
    spans = [change.interval for change in changes if change.interval is not None]
    low, high = min(0.9, *(one.low for one in spans)), max(1.1, *(one.high for one in spans))
    left, height = 240, ROW * len(changes) + 24

    def x(ratio: float) -> float:
        return left + (WIDTH - left - RIGHT) * (ratio - low) / (high - low)
    rows = [f'<line class="grid" x1="{x(1):.1f}" x2="{x(1):.1f}" y1="0" y2="{height - 18}"/>'
            f'<text x="{x(1):.1f}" y="{height - 4}" text-anchor="middle">1</text>']
    for number, (change, one) in enumerate(zip(changes, spans)):
        y = number * ROW + 14
        colour = {"faster": "#1a7f37", "slower": "#c4241a"}.get(change.outcome or "", "#667085")
        rows.append(f'<text x="0" y="{y + 4}">{escape(change.title.en[:36])}</text>'
                    f'<line x1="{x(one.low):.1f}" x2="{x(one.high):.1f}" y1="{y}" y2="{y}" '
                    f'stroke="{colour}" stroke-width="2"/><circle cx="{x(one.ratio):.1f}" cy="{y}" r="5" fill="{colour}"/>')
    return (f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(DESCRIBED.en)}">{"".join(rows)}</svg>'
            f"<p>1: {both(NOW)}; {both(FASTER_IS)}</p>")
