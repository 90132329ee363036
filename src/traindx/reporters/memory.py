"""A memory account as terminal text and as JSON."""
from __future__ import annotations

import json as json_module
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from traindx import __version__, messages
from traindx.core import amounts
from traindx.core.memory import CATEGORIES, PHASES, Account, Fit, Line, Remedy, Share
from traindx.core.observed import Site
from traindx.core.text import EMPTY, Language, Text, same
from traindx.reporters.layout import cut, pad, printable, width, wrap
from traindx.reporters.style import COLUMNS, PLAIN, Style

CATEGORY = {"parameters": Text("parameters", "参数"), "gradients": Text("gradients", "梯度"),
            "optimizer": Text("optimizer state", "优化器状态"), "activations": Text("activations", "激活"),
            "temporaries": Text("temporaries", "临时张量"), "inputs": Text("inputs and data", "输入和数据")}
PHASE = {"forward": Text("forward", "前向"), "backward": Text("backward", "反向传播"), "step": Text("optimizer.step", "优化器更新")}
SOURCE = {"formula": Text("formula", "公式"), "traced": Text("traced, two steps", "追踪两步"),
          "small-runs": Text("two steps run for real", "真正运行两步")}
TITLE = Text("memory of {subject}", "{subject} 的显存账")
PEAK = Text("Peak {size} in {phase}", "峰值 {size}，出现在{phase}时")
PEAK_ALONE = Text("Peak {size}", "峰值 {size}")
STATIC = Text("Weights, gradients and optimizer {size}", "权重、梯度和优化器共 {size}")
BATCH = Text("batch {batch}", "batch {batch}")
BY_PHASE = Text("Highest in each phase: {phases}", "各阶段的最高点：{phases}")
AT_PEAK = Text("At the peak", "峰值时")
BILL = Text("The bill", "账单")
MODULES = Text("Modules that hold most then", "峰值时占得最多的模块")
PLACES = Text("Lines that made most of it", "主要由这些行产生")
FITS = Text("Fits", "装得下吗")
DOES_FIT = Text("fits: {needed} of {capacity}", "装得下：{capacity} 中用 {needed}")
DOES_NOT = Text("does not fit: {needed} needed, {capacity} usable", "装不下：要 {needed}，可用 {capacity}")
LARGEST = Text("largest batch {batch}", "最大 batch {batch}")
NONE_FITS = Text("not even one sample", "一个样本也装不下")
REMEDIES = Text("What would help, cheapest first (each alone)", "怎么省：从代价小的开始（各自单独算）")
NO_HELP = Text("no help", "没有用")
NOT_TRIED = Text("not tried ({why})", "没有试（{why}）")
MEASURED = Text("Measured peak {size}, {gap} against the estimate", "实测峰值 {size}，与估计相差 {gap}")
NOT_MODELLED = Text("Not modelled: {what}", "没有计入：{what}")
OTHER = Text("outside any module", "不在任何模块里")
MOST = 5
BAR = 20


def render(account: Account, language: Language, style: Style = PLAIN, columns: int = COLUMNS) -> str:
    return "\n".join(_Page(account, language, style, columns).lines()) + "\n"


@dataclass(frozen=True)
class _Page:
    account: Account
    language: Language
    style: Style
    columns: int

    def say(self, text: Text) -> str:
        return printable(text.say(self.language))

    def lines(self) -> Iterator[str]:
        yield from self._head()
        yield from self._section(BILL if self.account.lines else AT_PEAK, self._bill() if self.account.lines else self._categories())
        yield from self._section(MODULES, self._shares(self.account.modules))
        yield from self._section(PLACES, self._shares(self.account.places))
        yield from self._section(FITS, (line for fit in self.account.fits for line in self._fit(fit)))
        yield from self._section(REMEDIES, (line for remedy in self.account.remedies for line in self._remedy(remedy)))
        yield from self._measured()
        yield from self._last_words()

    def _section(self, title: Text, lines: Iterator[str]) -> Iterator[str]:
        shown = list(lines)
        if shown:
            yield ""
            yield self.style.strong(self.say(title))
            yield from shown

    def _head(self) -> Iterator[str]:
        account = self.account
        title = cut(f"── {messages.NAME} ── " + self.say(TITLE.fill(subject=account.subject)), self.columns - 1) + " "
        yield self.style.strong(title + "─" * (self.columns - width(title)))
        static = account.facts.get("static_bytes")
        if static is not None and account.lines:
            yield self.say(STATIC.fill(size=amounts.size(static)) + self._origin())
        peak = PEAK.fill(size=amounts.size(account.peak_bytes), phase=PHASE[account.phase]) if account.phase else \
            PEAK_ALONE.fill(size=amounts.size(account.peak_bytes))
        yield self.style.level(self.say(peak), "warning") + self.say(self._origin())
        yield from self._place(account.where, account.op)
        if account.by_phase:
            separator = messages.LIST_COMMA.say(self.language)
            sizes = {name: account.by_phase[name] for name in PHASES if name in account.by_phase}
            phases = separator.join(f"{self.say(PHASE[name])} {amounts.size(size)}" for name, size in sizes.items())
            yield from wrap(self.say(BY_PHASE.fill(phases=phases)), self.columns)

    def _origin(self) -> Text:
        inner = SOURCE[self.account.source]
        if self.account.batch:
            inner = inner + messages.LIST_COMMA + BATCH.fill(batch=self.account.batch)
        return messages.IN_BRACKETS.fill(inner=inner)

    def _place(self, site: Site | None, op: str) -> Iterator[str]:
        if site is None:
            return
        by = f"  ({printable(op)})" if op else ""
        yield f"  {self.style.paint(f'{printable(site.file)}:{site.line}', 4)}{by}"
        if site.code:
            yield self.style.paint(cut("      " + site.code, self.columns), 35)

    def _categories(self) -> Iterator[str]:
        names = [self.say(CATEGORY[category]) for category in CATEGORIES]
        room = max(map(width, names)) + 4
        for category, name in zip(CATEGORIES, names):
            size = self.account.categories.get(category, 0)
            share = size / self.account.peak_bytes if self.account.peak_bytes else 0
            bar = "█" * round(BAR * share)
            yield f"  {pad(name, room)}{amounts.size(size):>10}{share:>6.0%}  {bar}".rstrip()

    def _bill(self) -> Iterator[str]:
        for line in self.account.lines:
            yield from self._billed(line)

    def _billed(self, line: Line) -> Iterator[str]:
        origin = messages.IN_BRACKETS.fill(inner=messages.ORIGIN[line.origin])
        yield from wrap(f"{self.say(line.what)}{self.say(origin)}", self.columns, f"  {amounts.size(line.bytes):>9}  ", " " * 13)
        yield from (self.style.faint(row) for row in wrap(printable(line.formula), self.columns, " " * 13))

    def _shares(self, shares: list[Share]) -> Iterator[str]:
        for share in shares[:MOST]:
            kind = self.say(messages.IN_BRACKETS.fill(inner=CATEGORY.get(share.category, same(share.category))))
            name = self.say(OTHER) if share.name == "-" else printable(share.name)
            shown = f"{share.site.file}:{share.site.line}{kind}  {share.site.code}" if share.site else f"{name}{kind}"
            yield cut(f"  {amounts.size(share.bytes):>9}  {shown}", self.columns)

    def _fit(self, fit: Fit) -> Iterator[str]:
        verdict = (DOES_FIT if fit.fits else DOES_NOT).fill(needed=amounts.size(fit.needed), capacity=amounts.size(fit.capacity))
        if fit.largest_batch is not None:
            verdict = verdict + messages.SEMICOLON + (LARGEST.fill(batch=f"{fit.largest_batch:,}") if fit.largest_batch else NONE_FITS)
        first, *rest = wrap(self.say(verdict), self.columns, f"  {printable(fit.gpu)}  ")
        yield self.style.paint(first, 32 if fit.fits else 31)
        yield from rest

    def _remedy(self, remedy: Remedy) -> Iterator[str]:
        if remedy.peak_bytes is None:
            yield from (self.style.faint(line) for line in wrap(
                self.say(remedy.what + messages.COLON + NOT_TRIED.fill(why=remedy.why_not)), self.columns, " " * 20, " " * 22))
            return
        change = remedy.peak_bytes / self.account.peak_bytes - 1 if self.account.peak_bytes else 0
        helps = remedy.helps(self.account.peak_bytes)
        told = f"{amounts.size(remedy.peak_bytes):>9} {change:>+6.0%}  "
        words = f"{self.say(remedy.what)}{messages.COLON.say(self.language)}{self.say(remedy.cost if helps else NO_HELP)}"
        origin = self.say(messages.IN_BRACKETS.fill(inner=messages.ORIGIN["formula"])) if remedy.origin == "formula" else ""
        lines = wrap(words + origin, self.columns, "  " + told, " " * 22)
        yield from lines if helps else map(self.style.faint, lines)

    def _measured(self) -> Iterator[str]:
        measured = self.account.measured_peak_bytes
        if measured is None:
            return
        gap = amounts.percent(measured / self.account.peak_bytes - 1, 2, "+") if self.account.peak_bytes else "-"
        yield ""
        yield self.style.strong(self.say(MEASURED.fill(size=amounts.size(measured), gap=gap)))
        for line in self.account.gap:
            yield from wrap(self.say(line.what), self.columns, f"  {amounts.size(line.bytes):>9}  ", " " * 13)

    def _last_words(self) -> Iterator[str]:
        yield ""
        for remark in self.account.remarks:
            yield from wrap(self.say(remark), self.columns)
        for what in self.account.not_modelled:
            yield from (self.style.faint(line) for line in wrap(self.say(NOT_MODELLED.fill(what=what)), self.columns, "", "  "))


# -- JSON ---------------------------------------------------------------------------------------------------------------

def document(account: Account, language: Language = "en") -> dict[str, Any]:
    """The account as JSON values; sizes in bytes. Keys are never renamed under one ``schema``."""
    def say(text: Text) -> str:
        return text.say(language)
    return {
        "schema": 1, "traindx": __version__, "subject": account.subject.en, "source": account.source,
        "peak_bytes": round(account.peak_bytes), "phase": account.phase, "op": account.op, "where": _site(account.where),
        "categories": {category: round(account.categories.get(category, 0)) for category in CATEGORIES},
        "by_phase": {name: round(size) for name, size in account.by_phase.items()},
        "measured_peak_bytes": None if account.measured_peak_bytes is None else round(account.measured_peak_bytes),
        "gap": [_line(line, say) for line in account.gap], "bill": [_line(line, say) for line in account.lines],
        "fits": [{"gpu": fit.gpu, "fits": fit.fits, "largest_batch": fit.largest_batch, "needed_bytes": round(fit.needed),
                  "capacity_bytes": fit.capacity} for fit in account.fits],
        "remedies": [{"name": r.name, "peak_bytes": None if r.peak_bytes is None else round(r.peak_bytes), "cost": say(r.cost),
                      "what": say(r.what), "helps": r.helps(account.peak_bytes), "origin": r.origin,
                      "why_not": say(r.why_not) if r.why_not != EMPTY else None} for r in account.remedies],
        "modules": [{"module": share.name, "bytes": round(share.bytes), "category": share.category} for share in account.modules],
        "places": [{"where": _site(share.site), "bytes": round(share.bytes), "category": share.category} for share in account.places],
        "timeline": [{"bytes": round(live), "phase": phase} for live, phase, _ in account.timeline],
        "batch": account.batch, "facts": account.facts, "remarks": [say(remark) for remark in account.remarks],
        "not_modelled": [say(what) for what in account.not_modelled],
    }


def _line(line: Line, say: Any) -> dict[str, Any]:
    return {"category": line.category, "what": say(line.what), "bytes": round(line.bytes), "formula": line.formula, "origin": line.origin}


def _site(site: Site | None) -> dict[str, Any] | None:
    return None if site is None else {"file": site.file, "line": site.line, "function": site.function, "code": site.code}


def render_json(account: Account, language: Language, indent: int | None = 1) -> str:
    return json_module.dumps(document(account, language), ensure_ascii=False, indent=indent) + "\n"


