"""The account of a program: traced, held against cards and remedies by tracing again, and against a real run."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from traindx.core.amounts import size as size_text
from traindx.core.memory import Account, Fit, Line, Remedy, Share
from traindx.core.observed import Site
from traindx.core.text import EMPTY, Text, number, same
from traindx.core.trials import Program
from traindx.errors import UsageError
from traindx.estimate.bill import States, states_of, total
from traindx.estimate.formula import (
    CHECKPOINT,
    EIGHT_BIT,
    FREE,
    HALVE,
    LIBRARY,
    LORA,
    MORE_CARDS,
    MORE_FORWARD,
    NO_LIBRARIES,
    OTHER_TRAINING,
    SHARD,
)
from traindx.estimate.gpus import Gpu
from traindx.estimate.tracing import Tracer

Json = Any
Progress = Callable[[Text], None]
LARGEST = 1 << 24
FAR = 64  # times the batch: larger ones are not traced, for the data of a program are real

FUSED = Text("fused optimizer step", "fused 优化器")
BF16 = Text("bfloat16 autocast", "bfloat16 autocast")
NO_CHANGE = Text("none: fused=True", "没有代价，设 fused=True")
ROUNDING = Text("bf16 rounding in the forward; usually faster on a GPU", "前向有 bf16 舍入；GPU 上通常更快")
REMEDIES: tuple[tuple[str, Text, Text, dict[str, Json]], ...] = (
    ("fused", FUSED, NO_CHANGE, {"fused": {}}), ("checkpointing", CHECKPOINT, MORE_FORWARD, {"checkpointing": {}}),
    ("bf16", BF16, ROUNDING, {"bf16": {}}), ("8-bit", EIGHT_BIT, LIBRARY, {"8-bit": {}}), ("lora", LORA, OTHER_TRAINING, {"lora": {}}))

TRACING = Text("tracing {what}", "正在追踪：{what}")
THE_PROGRAM = Text("the program as it is", "原样的程序")
A_BATCH = Text("a batch of {batch}", "batch 为 {batch}")
MEASURING = Text("running two steps for real", "真正运行两步")
AS_ON_GPU = Text("Traced for a GPU: optimizers step with foreach, as CUDA's default does, where the program does not choose.",
                 "按 GPU 追踪：程序没有指定时，优化器用 foreach（CUDA 上的默认）。")
STANDS_IN = Text("The program reads values that depend on its weights ({places}); a traced run has none, and gives 1.0 or 0 for them.",
                 "程序读取了取决于权重的值（{places}）；追踪时没有真值，用 1.0 或 0 代替。")
REAL_RUN = Text("Run for real on this CPU, for it cannot be traced without data: {why}.",
                "不带数据追踪不了，所以在这台 CPU 上真正运行：{why}。")
IN_STEP = Text("Checkpointing will not help: the peak is in optimizer.step, when the activations are gone. "
               "Fused, 8-bit or sharded states do.",
               "激活重计算没有用：峰值在 optimizer.step 里，那时激活早已释放。有用的是 fused 优化器、8-bit 优化器，或者把状态分片。")
SMALL_RUNS = Text("The whole batch was too much for this machine: extrapolated in a straight line from batches of {sizes}.",
                  "整个 batch 在这台机器上跑不动：由 {sizes} 两个 batch 按直线外推。")
NOT_VARIED = Text("The batch could not be varied: {why}. So the largest batch is not told.", "改不了 batch：{why}。所以没有给出最大 batch。")
EXTRAPOLATED = Text("The largest batch is extrapolated in a straight line from batches of {small} and {large}.",
                    "最大 batch 由 {small} 和 {large} 两个 batch 按直线外推。")
COMPILED = Text("torch.compile, CUDA graphs, several processes (traced as written, eagerly, in one process)",
                "torch.compile、CUDA 图、多进程（追踪时按原样、不编译、单进程）")
CONVOLUTIONS = Text("workspaces of cuDNN", "cuDNN 的工作区")

_FAILED = Text(
    "no two training steps could be traced: {how}.{known} What can be done: traindx run {subject} tells why a program fails; "
    "traindx memory --params N gives the bill by formula.",
    "没能追踪到两个训练步：{how}。{known}可以这样做：traindx run {subject} 会说出程序为什么失败；traindx memory --params N 按公式算账。")
_RAISED = Text("the program ended by {error}{place}", "程序因 {error} 结束{place}")
_AT = Text(" at {file}:{line}", "，在 {file}:{line}")
_ENDED = Text("the program came to its end after {steps} optimizer step{steps:|s}", "程序走了 {steps} 个优化器步就结束了")
_TOO_LONG = Text("it took more than {seconds} s (--seconds N allows more)", "超过了 {seconds} 秒（--seconds N 可以放宽）")
_NO_MEMORY = Text("the run was ended for want of memory on this machine", "这台机器内存不够，运行被终止")
_KNOWN = Text(" Known so far: {count} parameter{count:|s}, {size} of weights, gradients and AdamW states (formula).",
              "目前知道：{count} 个参数，权重、梯度和 AdamW 状态共 {size}（公式）。")
_NEEDS_GPU = Text(" The program asks for a GPU.", "程序要求有 GPU。")


class Tracing:
    """One program under questions. ``gpus`` decide whether it is traced as on a GPU."""

    def __init__(self, tracer: Tracer, gpus: Sequence[Gpu], subject: str, progress: Progress) -> None:
        self.tracer, self.gpus, self.subject, self.progress = tracer, gpus, subject, progress
        self.device = "cuda" if gpus else "cpu"
        self.usual: dict[str, Json] = {"foreach": {}} if gpus else {}
        self.fake = True

    def trace(self, changes: dict[str, Json], what: Text) -> Json:
        self.progress(TRACING.fill(what=what))
        return self.tracer.trace(changes, self.fake, device=self.device)

    def base(self) -> tuple[Json, str]:
        """The program as it is, and why it had to be run for real ("" where it was traced). Raises UsageError where neither went."""
        first = self.trace(self.usual, THE_PROGRAM)
        if _trained(first):
            return first, ""
        self.fake = False
        second = self.trace(self.usual, THE_PROGRAM)
        why = first["error"] or first["ended"]
        if _trained(second):
            return second, why
        if second["ended"] in ("memory", "seconds") and (found := self._small_runs(first.get("batch") or second.get("batch"))):
            return found, why
        raise UsageError(self._failure(first, second))

    def _small_runs(self, batch: int | None) -> Json:
        """What the whole batch would take, on the line through an eighth and a quarter of it; None where they do not run."""
        sizes = sorted({max(1, (batch or 1) // 8), max(1, (batch or 1) // 4)})
        if len(sizes) < 2:
            return None
        runs = [_at(self, batch or 1, size) for size in sizes]
        if any(not _trained(run) or run.get("not_applicable") for run in runs):
            return None
        return {**extrapolated(runs[0], runs[1], batch or 1), "small_batches": sizes}

    def _failure(self, first: Json, second: Json) -> Text:
        count = max(first.get("parameter_count", 0), second.get("parameter_count", 0))
        known = _KNOWN.fill(count=f"{count:,}", size=size_text(total(states_of(States(count))))) if count else EMPTY
        asks = first.get("on_cpu_instead") or "CUDA" in second.get("error", "")
        return _FAILED.fill(how=self._how(second), known=known + (_NEEDS_GPU if asks else EMPTY), subject=self.subject)

    def _how(self, answer: Json) -> Text:
        if answer["ended"] == "seconds":
            return _TOO_LONG.fill(seconds=number(self.tracer.seconds))
        if answer["ended"] == "memory" or "MemoryError" in answer.get("error", ""):
            return _NO_MEMORY
        if not answer.get("error"):
            return _ENDED.fill(steps=answer.get("steps", 0))
        at = answer.get("raised_at")
        return _RAISED.fill(error=answer["error"], place=_AT.fill(**{k: at[k] for k in ("file", "line")}) if at else EMPTY)


def _trained(answer: Json) -> bool:
    """Whether it got so far that an account can be given: all steps, or its own end after a backward."""
    return answer["ended"] == "steps" or (answer["ended"] == "script" and answer["backwards"] > 0 and not answer["error"])


def extrapolated(small: Json, large: Json, batch: int) -> Json:
    """The larger run with its sizes carried on in a straight line to ``batch`` samples, phase by phase."""
    far = (batch - small["batch"]) / (large["batch"] - small["batch"])

    def on(low: float, high: float) -> float:
        return max(0.0, low + (high - low) * far)
    phases = small["at_phase"].keys() & large["at_phase"].keys()
    parts = {phase: {name: on(small["at_phase"][phase][name], size) for name, size in large["at_phase"][phase].items()} for phase in phases}
    sums = {phase: sum(sizes.values()) for phase, sizes in parts.items()}
    highest = max(sums, key=lambda phase: sums[phase])
    same_place = highest == large["phase"]
    return {**large, "peak_bytes": sums[highest], "phase": highest, "by_phase": sums, "at_phase": parts, "categories": parts[highest],
            "batch": batch, "op": large["op"] if same_place else "", "where": large["where"] if same_place else None,
            "modules": [], "places": [], "timeline": []}


def account_of(program: Program, subject: str, gpus: Sequence[Gpu] = (), *, remedies: bool = True, measure: bool = False,
               ranks: int = 8, seconds: float = 120.0, progress: Progress = lambda text: None) -> Account:
    """Everything that is said about a program. Raises UsageError where nothing can be."""
    with Tracer(program, seconds) as tracer:
        tracing = Tracing(tracer, gpus, subject, progress)
        base, why = tracing.base()
        account = _account(base, why, tracing)
        if gpus:
            account.fits, said = fits_of(tracing, base)
            account.remarks += said
        if remedies:
            account.remedies = remedies_of(tracing, base, ranks)
            checkpointed = next(r for r in account.remedies if r.name == "checkpointing")
            if base["phase"] == "step" and not checkpointed.helps(base["peak_bytes"]):
                account.remarks.insert(0, IN_STEP)
        if measure:
            progress(MEASURING)
            measured = tracer.measure()
            here = measured.get("device") == "cpu" and tracing.gpus
            reconcile(account, measured, tracer.trace({}, tracing.fake)["peak_bytes"] if here else None)
    return account


def _account(base: Json, why: str, tracing: Tracing) -> Account:
    account = Account("small-runs" if why else "traced", base["peak_bytes"], base["phase"], base["op"], _site(base["where"]),
                      dict(base["categories"]), by_phase=base["by_phase"], batch=base["batch"], subject=same(tracing.subject))
    account.modules = [Share(entry["name"], entry["bytes"], entry["category"]) for entry in base["modules"]]
    account.places = [Share("", entry["bytes"], entry["category"], _site(entry["name"])) for entry in base["places"] if entry["name"]]
    account.timeline = [(live, phase, by) for live, phase, by in base["timeline"]]
    account.facts = {"parameters": base["parameter_count"], "optimizers": base["optimizers"], "shapes": base["shapes"]}
    account.remarks = [*_how_run(base, why), *([AS_ON_GPU] if tracing.gpus else []), *_stand_ins(base)]
    account.not_modelled = [COMPILED, *([NO_LIBRARIES, CONVOLUTIONS] if tracing.gpus else [])]
    return account


def _how_run(base: Json, why: str) -> list[Text]:
    """What is said where the program was not traced without data."""
    sizes = ", ".join(map(str, base.get("small_batches", ())))
    return [*([REAL_RUN.fill(why=why)] if why else []), *([SMALL_RUNS.fill(sizes=sizes)] if sizes else [])]


def _stand_ins(base: Json) -> list[Text]:
    places = [place for place, _ in base["read"] if place][:4]
    return [STANDS_IN.fill(places=", ".join(places))] if places else []


def _site(value: Json) -> Site | None:
    return Site(**value) if value else None


# -- what fits ----------------------------------------------------------------------------------------------------------

def fits_of(tracing: Tracing, base: Json) -> tuple[list[Fit], list[Text]]:
    """Each card, with the largest batch: from a straight line through two batches for each phase, then traced itself."""
    batch = base["batch"]
    plain = [Fit(gpu.name, gpu.capacity, base["peak_bytes"]) for gpu in tracing.gpus]
    if not batch:
        return plain, []
    other = 2 * batch if tracing.fake else max(1, batch // 2)
    second = _at(tracing, batch, other)
    why = _why_not(second)
    if why != EMPTY or other == batch:
        return plain, [NOT_VARIED.fill(why=why if why != EMPTY else "batch 1")]
    peaks = {batch: base["by_phase"], other: second["by_phase"]}
    fits = [Fit(gpu.name, gpu.capacity, base["peak_bytes"], _largest(tracing, peaks, batch, gpu.capacity)) for gpu in tracing.gpus]
    small, large = sorted((batch, other))
    return fits, [] if tracing.fake else [EXTRAPOLATED.fill(small=small, large=large)]


def _at(tracing: Tracing, batch: int, other: int) -> Json:
    return tracing.trace({**tracing.usual, "batch": {"before": batch, "after": other}}, A_BATCH.fill(batch=other))


def _largest(tracing: Tracing, peaks: dict[int, dict[str, float]], batch: int, capacity: int) -> int:
    """The straight line's answer, traced; a neighbour where the trace says otherwise."""
    best = 0
    known = dict(peaks)
    for _ in range(3):
        guess = line_limit(known, capacity)
        if guess in known or guess in (0, LARGEST) or not tracing.fake or guess > FAR * batch:
            return guess if guess not in known or max(known[guess].values()) <= capacity else best
        answer = _at(tracing, batch, guess)
        if answer["ended"] != "steps" or answer.get("not_applicable"):
            return guess
        known = {**dict(sorted(known.items(), key=lambda item: abs(item[0] - guess))[:1]), guess: answer["by_phase"]}
        if max(answer["by_phase"].values()) <= capacity:
            best = max(best, guess)
    return best


def line_limit(peaks: dict[int, dict[str, float]], capacity: float) -> int:
    """The largest batch at which every phase stays within ``capacity``, on the line through its two points; 0 where one sample is
    too much, LARGEST where the batch hardly matters."""
    (small, low), (large, high) = sorted(peaks.items())
    limit = LARGEST
    for phase in low.keys() & high.keys():
        slope = (high[phase] - low[phase]) / (large - small)
        rest = low[phase] - slope * small
        if slope <= 0:
            limit = limit if high[phase] <= capacity else 0
        else:
            limit = min(limit, int(max(0.0, capacity - rest) // slope))
    return limit


# -- what helps ---------------------------------------------------------------------------------------------------------

def remedies_of(tracing: Tracing, base: Json, ranks: int) -> list[Remedy]:
    """Each remedy alone, traced with this model; cheapest first. Sharding is computed from the traced parts."""
    found = []
    if (batch := base["batch"]) and batch > 1:
        halved = {**tracing.usual, "batch": {"before": batch, "after": batch // 2}, "accumulate": {}}
        found.append(_remedy("halve-and-accumulate", HALVE, FREE, tracing.trace(halved, HALVE)))
    for name, what, cost, changes in REMEDIES:
        usual = {} if name == "fused" else tracing.usual
        found.append(_remedy(name, what, cost, tracing.trace({**usual, **changes}, what)))
    sharded = max(sharded_peak(parts, ranks) for parts in base["at_phase"].values())
    return [*found, Remedy("sharding", SHARD.fill(ranks=ranks), MORE_CARDS.fill(ranks=ranks), sharded, "formula")]


def _remedy(name: str, what: Text, cost: Text, answer: Json) -> Remedy:
    why = _why_not(answer)
    return Remedy(name, what, cost, None, why_not=why) if why != EMPTY else Remedy(name, what, cost, answer["peak_bytes"])


def _why_not(answer: Json) -> Text:
    """What stood against the change; empty where the program ran with it."""
    if told := answer.get("not_applicable"):
        return Text(told["en"], told["zh"])
    return EMPTY if answer["ended"] == "steps" else same(answer.get("error") or answer["ended"])


def sharded_peak(parts: dict[str, float], ranks: int) -> float:
    """Bytes on one of ``ranks`` when parameters, gradients and states are shared out; the whole of one layer is not counted."""
    shared = parts["parameters"] + parts["gradients"] + parts["optimizer"]
    return shared / ranks + parts["activations"] + parts["temporaries"] + parts["inputs"]


# -- the estimate beside the truth ---------------------------------------------------------------------------------------

INSIDE_KERNEL = Text("what {op} takes for itself while it runs", "{op} 运行时自己占用的工作区")
OTHER_GAP = Text("allocations that no operation shows (tensors made in C++, rounding)", "哪个算子也看不到的分配（C++ 里建的张量、取整）")
UNLIKE_GPU = Text("the real run was on this CPU: optimizers step tensor by tensor, kernels have other workspaces",
                  "真实运行在这台 CPU 上：优化器逐个张量更新，算子的工作区也不同")
CACHED = Text("reserved by the allocator beyond what tensors use (fragmentation)", "分配器多占的部分（碎片）")
NOT_MEASURED = Text("The real run did not reach two steps: {how}.", "真实运行没有走到两步：{how}。")


def reconcile(account: Account, measured: Json, on_cpu: float | None = None) -> None:
    """Sets the measured peak beside the estimate, and names the difference. ``on_cpu``: the estimate for a CPU, where it is not the
    account's own."""
    if measured["ended"] != "steps":
        account.remarks.append(NOT_MEASURED.fill(how=measured.get("error") or measured["ended"]))
        return
    account.measured_peak_bytes = measured["peak_bytes"]
    account.gap = gap_of(account.peak_bytes if on_cpu is None else on_cpu, measured)
    if on_cpu is not None and on_cpu != account.peak_bytes:
        account.gap.insert(0, Line("temporaries", UNLIKE_GPU, on_cpu - account.peak_bytes, "traced for CPU - traced for GPU", "measured"))


def gap_of(estimate: float, measured: Json) -> list[Line]:
    """The parts of measured - estimate. On CUDA also what the allocator holds beyond it."""
    gap = measured["peak_bytes"] - estimate
    lines = []
    inside = min(max(gap, 0), measured.get("inside", 0)) if measured.get("running") else 0
    if inside:
        lines.append(Line("temporaries", INSIDE_KERNEL.fill(op=measured["running"]), inside, "measured - traced", "measured"))
    if gap - inside:
        lines.append(Line("temporaries", OTHER_GAP, gap - inside, "measured - traced", "measured"))
    if measured.get("reserved"):
        lines.append(Line("temporaries", CACHED, measured["reserved"] - measured["peak_bytes"], "reserved - allocated", "measured"))
    return lines


