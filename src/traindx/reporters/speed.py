"""A speed report as terminal text and as JSON."""
from __future__ import annotations

import dataclasses
import json as json_module
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from traindx import __version__, messages
from traindx.core.amounts import duration, rate
from traindx.core.findings import Judged, Report
from traindx.core.speed import IDLE, KINDS, SHARES, Baseline, Change, DeviceTime, Interval, Profiled, SpeedReport, Spent
from traindx.core.text import EMPTY, Language, Text, number
from traindx.reporters.json import finding_as_json
from traindx.reporters.layout import cut, pad, printable, width, wrap, wrap_code
from traindx.reporters.style import COLUMNS, PLAIN, Style
from traindx.reporters.terminal import Page as Findings

SHARE = {"input": Text("input (fetching batches)", "取数据"), "host": Text("host (Python between operations)", "主机端（算子之间的 Python）"),
         "sync": Text("sync (reading values)", "同步（读数值）"), "transfer": Text("transfer (to the device)", "传输（到设备）"),
         "compute": Text("compute (forward, loss, backward)", "计算（前向、损失、反向）"), "optimizer": Text("optimizer", "优化器"),
         "logging": Text("logging", "写日志")}
PHASE = {"input": SHARE["input"], "forward": Text("forward", "前向"), "loss": Text("loss", "损失"), "backward": Text("backward", "反向"),
         "optimizer": SHARE["optimizer"], "sync": Text("sync", "同步"), "transfer": Text("transfer", "传输"), "logging": SHARE["logging"],
         "evaluation": Text("evaluation", "评估"), "host": Text("host", "主机端")}
VERDICT = {"input-bound": Text("input-bound",
                               "卡在数据（input-bound）"), "overhead-bound": Text("overhead-bound", "卡在开销（overhead-bound）"),
           "sync-bound": Text("sync-bound", "卡在同步（sync-bound）"), "compute-bound": Text("compute-bound", "卡在计算（compute-bound）"),
           "not-measured": Text("not measured", "没有测到")}
OUTCOME = {"faster": Text("faster",
                          "更快"), "slower": Text("slower", "更慢"), "no-clear-difference": Text("no clear difference", "没有明显差别")}
TITLE = Text("speed of {subject}", "{subject} 的速度")
BASELINE = Text("1 Baseline", "1 基线")
BOTTLENECK = Text("2 Bottleneck: {verdict}", "2 瓶颈：{verdict}")
DATA = Text("3 Data pipeline", "3 数据管线")
COMPUTE = Text("4 Compute", "4 计算")
SPEED = Text("{samples} samples/s{tokens}, {step} a step (10 to 90 %: {low} to {high}; measured over {steps} step{steps:|s})",
             "每秒 {samples} 个样本{tokens}，每步 {step}（10 % 到 90 % 分位：{low} 到 {high}；实测 {steps} 步）")
STEP_ONLY = Text("{step} a step (10 to 90 %: {low} to {high}; measured over {steps} step{steps:|s})",
                 "每步 {step}（10 % 到 90 % 分位：{low} 到 {high}；实测 {steps} 步）")
TOKENS = Text(", {tokens} tokens/s", "、{tokens} 个词元")
HARDWARE = Text("{hardware}, {threads} thread{threads:|s}, {precision}", "{hardware}，{threads} 个线程，{precision}")
BATCH = Text(", batch {batch}", "，batch {batch}")
ACCUMULATED = Text(" x {count} accumulated", "，累积 {count} 次")
OPTIMIZERS = Text(". {count} optimizers: a step is that of one of them", "。共 {count} 个优化器：这里的一步是其中一个的一步")
MODEL = Text(", {model} with {parameters} parameter{parameters:|s}", "，{model}，{parameters} 个参数")
PROFILED = Text("By torch.profiler: {steps} step{steps:|s} of {profiled} under it, {bare} without (measured)",
                "torch.profiler：{steps} 步，开着它每步 {profiled}，不开 {bare}（实测）")
NOT_PROFILED = Text("By torch.profiler: not measured, for {why}.", "torch.profiler：没有测到，{why}。")
KIND = {"input": SHARE["input"], "operators": Text("operators", "算子"), "launch": Text("CUDA calls (launches)", "CUDA 调用（启动 kernel）"),
        "optimizer": SHARE["optimizer"], "copies": Text("copies", "拷贝"), "reads": Text("reading values, waiting", "读数值、等待"),
        "gaps": Text("between operators (Python)", "算子之间（Python）")}
OPERATORS = Text("Operators with the most time of their own", "自身用时最多的算子")
CALLS = Text("{name}, {calls} a step", "{name}，每步 {calls} 次")
ON_GPU = Text("On the GPU, of a step without torch.profiler", "GPU 上，占不开 torch.profiler 时每步的比例")
GPU = {"computing": Text("computing", "计算"), "copying": Text("copying, nothing computes", "只在拷贝"),
       "launch": Text("idle: no operation is queued yet", "空闲：下一个算子还没排上"),
       "sync": Text("idle: after the program waited for it", "空闲：程序刚等过它的结果"),
       "input": Text("idle: a batch is being fetched", "空闲：在取 batch"),
       "transfer": Text("idle: waiting for a copy to it", "空闲：在等往 GPU 的拷贝")}
KERNELS = Text("{kernels} kernels a step, {each} each on average; launching them takes the program {launching} a step.",
               "每步 {kernels} 个 kernel，平均每个 {each}；程序启动它们每步花 {launching}。")
LINES = Text("Lines that take most of a step (sampled)", "最花时间的行（采样）")
INPUT_LINES = Text("Inside the fetching (sampled; shares of it)", "取数据内部（采样，占取数据的比例）")
IN = Text(" in {name}", "，在 {name} 里")
RATIO = Text("x{ratio} [{low}, {high}]  {won} of {pairs} pair{pairs:|s}", "x{ratio} [{low}, {high}]  {pairs} 对里 {won} 对更快")
LOSS_SAME = Text("first losses the same (differ by {difference})", "前几步损失相同（相差 {difference}）")
LOSS_DIFFERS = Text("first losses DIFFER by {difference}: look before you take it", "前几步损失不同，相差 {difference}：采用之前先看清楚")
LOAD = Text("machine: {average} of load before, others kept {others} of {cores} core{cores:|s} busy",
            "机器：开始前负载 {average}；{cores} 个核里别的程序占着 {others} 个")
LOAD_UNKNOWN = Text("machine: load not known", "机器：负载未知")
NO_VERDICT = Text("no verdict", "不下结论")
WRITE = Text("write:", "这样改：")
COLOUR = {"faster": 32, "slower": 31}
DIFF_COLOUR = {"+": 32, "-": 31}
TOOK = Text("{seconds} s in all. Every re-run was of your script as it is; nothing was changed in it.",
            "共用 {seconds} 秒。每次重跑的都是你的脚本，脚本没有改动。")
CURVE = Text("The same batch, {points} time{points:|s} over: {times}", "同一个 batch 重复 {points} 遍，每步：{times}")
MOST = 5
BAR = 24


def render(report: SpeedReport, language: Language, style: Style = PLAIN, columns: int = COLUMNS) -> str:
    return "\n".join(_Page(report, language, style, columns).lines()) + "\n"


def speed_text(baseline: Baseline) -> Text:
    said = {"step": duration(baseline.step_seconds), "low": duration(baseline.spread[0]), "high": duration(baseline.spread[1]),
            "steps": baseline.steps}
    if baseline.samples_per_second is None:
        return STEP_ONLY.fill(**said)
    tokens = TOKENS.fill(tokens=rate(baseline.tokens_per_second)) if baseline.tokens_per_second else EMPTY
    return SPEED.fill(samples=rate(baseline.samples_per_second), tokens=tokens, **said)


def setting_text(baseline: Baseline) -> Text:
    found = HARDWARE.fill(hardware=baseline.hardware, threads=baseline.threads, precision=baseline.precision)
    if baseline.batch:
        found = found + BATCH.fill(batch=baseline.batch)
        found = found + ACCUMULATED.fill(count=baseline.accumulated) if baseline.accumulated > 1 else found
    if baseline.parameters:
        found = found + MODEL.fill(model=baseline.model, parameters=f"{baseline.parameters:,}")
    return found + OPTIMIZERS.fill(count=baseline.optimizers) if baseline.optimizers > 1 else found


def ratio_text(interval: Interval) -> Text:
    shown = {"ratio": f"{interval.ratio:.2f}", "low": f"{interval.low:.2f}", "high": f"{interval.high:.2f}"}
    return RATIO.fill(**shown, won=interval.won, pairs=interval.pairs)


def profiled_text(profiled: Profiled, baseline: Baseline | None) -> Text:
    if profiled.why != EMPTY:
        return NOT_PROFILED.fill(why=profiled.why)
    bare = duration(baseline.step_seconds) if baseline is not None else "?"
    return PROFILED.fill(steps=profiled.steps, profiled=duration(profiled.step_seconds), bare=bare)


def operators_of(profiled: Profiled, most: int = 4) -> list[tuple[float, Text]]:
    """Those of 1 % of a step or more."""
    return [(one.share, CALLS.fill(name=one.name, calls=number(one.calls))) for one in profiled.operators[:most] if one.share >= 0.01]


def gpu_shares(gpu: DeviceTime) -> dict[str, float]:
    """Computing, copying, and the causes of being idle: together a step."""
    return {"computing": gpu.shares["computing"], "copying": gpu.shares["copying"], **{cause: gpu.idle[cause] for cause in IDLE}}


def kernels_text(gpu: DeviceTime) -> Text:
    return KERNELS.fill(kernels=f"{gpu.kernels:,.0f}", each=duration(gpu.kernel_seconds), launching=duration(gpu.launch_seconds))


def load_text(change: Change) -> Text:
    load = change.load
    if load is None or load.average is None:
        return LOAD_UNKNOWN
    return LOAD.fill(average=number(load.average, 2), others="?" if load.others is None else number(load.others, 2), cores=load.cores)


def loss_text(change: Change) -> Text:
    if change.loss_same is None or change.loss_difference is None:
        return EMPTY
    return (LOSS_SAME if change.loss_same else LOSS_DIFFERS).fill(difference=f"{change.loss_difference:.2g}")


@dataclass(frozen=True)
class _Page:
    report: SpeedReport
    language: Language
    style: Style
    columns: int

    def say(self, text: Text) -> str:
        return printable(text.say(self.language))

    def wrapped(self, text: Text, first: str = "  ", rest: str | None = None) -> list[str]:
        return wrap(self.say(text), self.columns, first, rest)

    def lines(self) -> Iterator[str]:
        report = self.report
        title = cut(f"── {messages.NAME} ── " + self.say(TITLE.fill(subject=report.subject)), self.columns - 1) + " "
        yield self.style.strong(title + "─" * (self.columns - width(title)))
        yield self.style.strong(self.say(BASELINE))
        if report.baseline is not None:
            yield from self.wrapped(speed_text(report.baseline))
            yield from self.wrapped(setting_text(report.baseline))
        yield from self._bottleneck()
        yield from self._step(DATA, report.data, EMPTY)
        yield from self._step(COMPUTE, report.compute, report.compute_refused)
        yield ""
        for remark in report.remarks:
            yield from self.wrapped(remark, "")
        yield from (self.style.faint(line) for line in self.wrapped(TOOK.fill(seconds=number(report.seconds)), ""))

    def _bottleneck(self) -> Iterator[str]:
        report = self.report
        yield ""
        head = self.say(BOTTLENECK.fill(verdict=VERDICT[report.verdict]))
        yield self.style.level(head, "note" if report.verdict in ("compute-bound", "not-measured") else "warning")
        yield from self.wrapped(report.why)
        yield from self._shares()
        if report.batch_curve:
            comma = messages.LIST_COMMA.say(self.language)
            times = comma.join(duration(point.step_seconds) for point in report.batch_curve)
            points = comma.join(str(point.times) for point in report.batch_curve)
            yield from self.wrapped(CURVE.fill(points=points, times=times))
        yield from self._spent(LINES, [line for line in report.lines if line.share >= 0.03][:MOST], named=True)
        if report.shares.get("input", 0.0) >= 0.05:
            yield from self._spent(INPUT_LINES, [line for line in report.input_lines if line.share >= 0.03][:MOST], named=False)
        yield from self._profiled()
        findings = Findings(Report(), self.language, self.style, self.columns)
        for count, judged in enumerate(report.findings, 1):
            yield ""
            yield from findings.cause(judged, count)

    def _shares(self) -> Iterator[str]:
        shares = self.report.shares
        step = self.report.baseline.step_seconds if self.report.baseline else 0.0
        yield from self._bars({name: shares[name] for name in SHARES} if shares else {}, SHARE, step)

    def _bars(self, shares: dict[str, float], names: dict[str, Text], step: float) -> Iterator[str]:
        room = max((width(self.say(text)) for text in (*SHARE.values(), *names.values())), default=0) + 4
        for name, share in shares.items():
            bar = "█" * round(BAR * share)
            yield f"  {pad(self.say(names[name]), room)}{share:>5.0%} {duration(share * step):>9}  {bar}".rstrip()

    def _profiled(self) -> Iterator[str]:
        """What is less than half a percent is left out."""
        found = self.report.profiled
        if found is None:
            return
        yield ""
        yield from self.wrapped(profiled_text(found, self.report.baseline))
        yield from self._bars({name: found.shares[name] for name in KINDS if found.shares.get(name, 0.0) >= 0.005}, KIND, found.step_seconds)
        if found.device is not None and self.report.baseline is not None:
            yield from self.wrapped(ON_GPU)
            yield from self._bars(gpu_shares(found.device), GPU, self.report.baseline.step_seconds)
            yield from self.wrapped(kernels_text(found.device))
        if shown := operators_of(found):
            yield "  " + self.style.strong(self.say(OPERATORS))
            yield from (cut(f"  {share:>4.0%}  {self.say(text)}", self.columns) for share, text in shown)

    def _spent(self, title: Text, lines: list[Spent], named: bool) -> Iterator[str]:
        if not lines:
            return
        yield ""
        yield "  " + self.style.strong(self.say(title))
        for line in lines:
            where = f"{printable(line.site.file)}:{line.site.line}"
            kind = self.say(messages.IN_BRACKETS.fill(inner=PHASE[line.phase])) if named else ""
            inside = self.say(IN.fill(name=line.calls)) if line.calls else ""
            yield cut(f"  {line.share:>4.0%}  {where}{kind}{inside}", self.columns)
            if line.site.code:
                yield self.style.paint(cut("          " + line.site.code, self.columns), 35)

    def _step(self, title: Text, changes: list[Change], refused: Text) -> Iterator[str]:
        if not changes and refused == EMPTY:
            return
        yield ""
        yield self.style.strong(self.say(title))
        if refused != EMPTY:
            yield from self.wrapped(refused)
        for change in changes:
            yield from self._change(change)

    def _change(self, change: Change) -> Iterator[str]:
        if change.interval is None:
            yield from (self.style.faint(line) for line in self.wrapped(change.title + messages.COLON + change.why, rest="      "))
            yield from self._diff(change)
            return
        said = OUTCOME[change.outcome] if change.outcome else NO_VERDICT
        first, *rest = self.wrapped(change.title + messages.COLON + said, rest="      ")
        yield self.style.paint(first, COLOUR[change.outcome]) if change.outcome in COLOUR else first
        yield from rest
        yield from self.wrapped(ratio_text(change.interval), "      ")
        for text in (change.why, loss_text(change), load_text(change), change.remark):
            if text != EMPTY:
                yield from (self.style.faint(line) for line in self.wrapped(text, "      "))
        if change.outcome == "faster":
            yield from self._diff(change)

    def _diff(self, change: Change) -> Iterator[str]:
        if change.diff == EMPTY:
            return
        yield "      " + self.say(WRITE)
        for line in change.diff.say(self.language).splitlines():
            colour = DIFF_COLOUR.get(line[:1], 0)
            yield from (self.style.paint(f"        {line[:2]}{part}", colour) for part in wrap_code(printable(line[2:]), self.columns - 10))


# -- JSON ---------------------------------------------------------------------------------------------------------------

def document(report: SpeedReport, language: Language = "en") -> dict[str, Any]:
    """The report as JSON values; seconds, samples a second. Keys are never renamed under one ``schema``."""
    def say(text: Text) -> str:
        return text.say(language)
    return {
        "schema": 1, "traindx": __version__, "script": report.subject, "language": language, "baseline": _baseline(report.baseline),
        "shares": {name: report.shares.get(name) for name in SHARES}, "phases": report.phases, "verdict": report.verdict, "why": say(report.why),
        "held": _interval(report.held), "elasticity": report.elasticity, "operations": report.ops,
        "torch_profiler": _profiled(report.profiled, say),
        "batch_curve": [dataclasses.asdict(point) for point in report.batch_curve],
        "lines": [_spent(line) for line in report.lines], "input_lines": [_spent(line) for line in report.input_lines],
        "findings": [_finding(judged, language) for judged in report.findings],
        "trials": [_change(change, say, step) for step, changes in (("data", report.data), ("compute", report.compute)) for change in changes],
        "compute_refused": say(report.compute_refused) or None, "load": dataclasses.asdict(report.load) if report.load else None,
        "remarks": [say(remark) for remark in report.remarks], "interrupted": report.interrupted, "seconds": round(report.seconds, 1),
    }


def _baseline(baseline: Baseline | None) -> dict[str, Any] | None:
    if baseline is None:
        return None
    return {"samples_per_second": baseline.samples_per_second, "tokens_per_second": baseline.tokens_per_second, **dataclasses.asdict(baseline)}


def _profiled(found: Profiled | None, say: Any) -> dict[str, Any] | None:
    """Shares of the host's time under it, of operators their own; ``device``: of a step without it."""
    if found is None:
        return None
    if found.why != EMPTY:
        return {"measured": False, "why": say(found.why)}
    device = dataclasses.asdict(found.device) if found.device else None
    return {"measured": True, "steps": found.steps, "step_seconds": found.step_seconds, "shares": found.shares,
            "operators": [dataclasses.asdict(one) for one in found.operators], "device": device}


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    return None if interval is None else {"ratio": interval.ratio, "interval": [interval.low, interval.high], "pairs": interval.pairs,
                                          "won": interval.won}


def _spent(line: Spent) -> dict[str, Any]:
    return {"phase": line.phase, "where": dataclasses.asdict(line.site), "share": line.share, "calls": line.calls}


def _finding(judged: Judged, language: Language) -> dict[str, Any]:
    return finding_as_json(judged, language)


def _change(change: Change, say: Any, step: str) -> dict[str, Any]:
    interval = change.interval
    return {
        "change": change.name, "title": say(change.title), "step": step, "ratio": interval.ratio if interval else None,
        "interval": [interval.low, interval.high] if interval else None, "pairs": interval.pairs if interval else 0,
        "won": interval.won if interval else 0, "loss_same": change.loss_same, "loss_difference": _finite(change.loss_difference),
        "verdict": change.outcome, "why": say(change.why) or None, "step_seconds": list(change.seconds) if change.seconds else None,
        "start_seconds": change.start_seconds, "diff": say(change.diff) or None, "remark": say(change.remark) or None,
        "load": dataclasses.asdict(change.load) if change.load else None}


def _finite(value: float | None) -> float | None:
    return value if value is not None and abs(value) < float("inf") else None


def render_json(report: SpeedReport, language: Language, indent: int | None = 1) -> str:
    return json_module.dumps(document(report, language), ensure_ascii=False, indent=indent, allow_nan=False) + "\n"
