"""What holds a training up, from what was measured: pure arithmetic."""
from __future__ import annotations

import math
from dataclasses import dataclass, field

from traindx.core.amounts import duration, percent
from traindx.core.speed import SHARES, Bottleneck, DeviceTime, Interval
from traindx.core.text import EMPTY, Text, number

GAIN = 1.15  # what taking the input, logging or reads away must gain, to be what holds the step up
SHARE = 0.30  # of the step, where it could not be taken away
MOST = 0.5  # of the step on the host, between operations
FLAT = 0.4  # elasticity below which a larger batch is nearly free
IDLE = 0.3  # of a step in which a GPU does not compute, from which what it waits for holds the step up (rule of thumb)
SMALL = {"cpu": 16_384, "cuda": 262_144}  # elements, below which an operation costs its call more than its arithmetic (rule of thumb)

INPUT = Text("Steps are {ratio} times as fast when batches that were fetched before are given again (measured, {low} to {high}).",
             "把取过的 batch 重复使用，每步快到 {ratio} 倍（实测，{low} 到 {high}）。")
INPUT_SHARE = Text("{share} of a step passes in fetching its batch (measured); it could not be held to see what is gained.",
                   "每步有 {share} 的时间在取 batch（实测）；没法固定 batch 来看能快多少。")
READS = Text("{share} of a step goes into reading values out of tensors (measured){gain}.",
             "每步有 {share} 的时间在从张量里读数值（实测）{gain}。")
LOGGING = Text("{share} of a step goes into logging (measured){gain}.", "每步有 {share} 的时间在写日志（实测）{gain}。")
GAINS = Text("; without it steps are {ratio} times as fast", "；去掉之后每步快到 {ratio} 倍")
HOST = Text("{share} of a step is Python between the operations (measured).", "每步有 {share} 的时间是算子之间的 Python（实测）。")
SMALL_OPS = Text("{ops} operations a step take {each} each (measured), on {elements} element{elements:|s} on average, and the same step with a "
                 "batch twice as large takes {ratio} times as long: the calls cost more than the arithmetic.",
                 "每步 {ops} 个算子，平均每个 {each}（实测），平均只处理 {elements} 个元素；"
                 "batch 加倍，同一步用时只变成 {ratio} 倍：调用的开销比计算还大。")
SMALL_ONLY = Text("{ops} operations a step take {each} each (measured), on {elements} element{elements:|s} on average, and an operation on "
                  "a single number takes {call} here (measured): the calls cost much of it.",
                  "每步 {ops} 个算子，平均每个 {each}（实测），平均处理 {elements} 个元素；在这台机器上，"
                  "只算一个数的算子也要 {call}（实测）：很大一部分是调用的开销。")
GROWN = Text("The backward went through {first} node{first:|s} of the graph at first and through {last} later (measured): steps get longer "
             "by work that the training does not need.",
             "反向传播起初经过 {first} 个节点，后来是 {last} 个（实测）：步子变慢，多出来的计算训练并不需要。")
DEVICE_WAITS = {
    "input": Text("The GPU computes in {computing} of a step and waits for batches to be fetched in {share} of it (torch.profiler).",
                  "GPU 只有 {computing} 的时间在计算，{share} 的时间在等取 batch（torch.profiler）。"),
    "transfer": Text("The GPU computes in {computing} of a step; {share} of it goes into copies to the GPU that nothing hides (torch.profiler). "
                     "pin_memory=True in the DataLoader and .to(device, non_blocking=True) let copies run beside the computing.",
                     "GPU 只有 {computing} 的时间在计算；{share} 的时间花在往 GPU 的拷贝上，没有计算来掩盖（torch.profiler）。"
                     "DataLoader 用 pin_memory=True，拷贝用 .to(device, non_blocking=True)，拷贝就能和计算同时进行。"),
    "sync": Text("The GPU computes in {computing} of a step; in {share} of it it has run dry, because the program waited for its results "
                 "before queueing more (torch.profiler).",
                 "GPU 只有 {computing} 的时间在计算；{share} 的时间没活可干，因为程序先等它的结果，才去排后面的计算（torch.profiler）。"),
    "launch": Text("The GPU computes in {computing} of a step and waits for its next operation in {share} of it: {kernels} operations a step "
                   "take it {each} each, and the program does not queue them fast enough (torch.profiler).",
                   "GPU 只有 {computing} 的时间在计算，{share} 的时间在等下一个算子：每步 {kernels} 个算子，GPU 平均只算 {each}，"
                   "程序排得不够快（torch.profiler）。")}
BUSY = Text("; the GPU computes in {computing} of a step (torch.profiler)", "；GPU 有 {computing} 的时间在计算（torch.profiler）")
WAITS: dict[str, Bottleneck] = {"input": "input-bound", "transfer": "input-bound", "sync": "sync-bound", "launch": "overhead-bound"}
COMPUTE = Text("{share} of a step is arithmetic (measured){elastic}.", "每步有 {share} 的时间在计算（实测）{elastic}。")
ELASTIC = Text("; with a batch twice as large the same step takes {ratio} times as long", "；batch 加倍，同一步用时变成 {ratio} 倍")
WEIGHTS = Text("; with a batch twice as large it takes only {ratio} times as long: the weights cost it, not the samples, and a larger batch is "
               "nearly free", "；batch 加倍，用时只变成 {ratio} 倍：开销在权重而不在样本，加大 batch 几乎不花时间")
TOO_FEW = Text("The program ended too early to tell where a step's time goes: {steps} step{steps:|s} could be looked at closely, and {needed} "
               "are needed. Let it train for longer: more epochs, or more data.",
               "程序结束得太早，看不出每步的时间花在哪里：只细看了 {steps} 步，至少要 {needed} 步。请让它多训练几轮，或者多给些数据。")
TOO_EARLY = Text("The program ended too early to tell where a step's time goes: no step could be looked at closely. Let it train for longer: "
                 "more epochs, or more data.",
                 "程序结束得太早，看不出每步的时间花在哪里：一步也没来得及细看。请让它多训练几轮，或者多给些数据。")
FEWEST = 8
CALLS = 5  # times the call of an operation on one number, up to which an operation is little more than its call (rule of thumb)


@dataclass(frozen=True)
class Measured:
    """``seconds`` of a step by share; gains are intervals of paired ratios, None where not measured. ``elasticity``: of the step's time in
    the batch, log(t2/t1)/log(2)."""

    steps: int
    seconds: dict[str, float] = field(default_factory=dict)
    held: Interval | None = None
    unread: Interval | None = None
    unlogged: Interval | None = None
    elasticity: float | None = None
    ops: float | None = None
    elements: int | None = None  # that an operation works on, on average
    device: str = "cpu"
    call: float | None = None  # seconds of an operation on one number, with its backward
    unheld: float = 0.0  # seconds of the input that were not taken away when batches were held
    grown: tuple[int, int] | None = None  # nodes behind the loss, first and last, where they grow from step to step
    gpu: DeviceTime | None = None  # by torch.profiler

    @property
    def step(self) -> float:
        return sum(self.seconds.values())

    def share(self, name: str) -> float:
        return self.seconds.get(name, 0.0) / self.step if self.step else 0.0

    @property
    def shares(self) -> dict[str, float]:
        return {name: self.share(name) for name in SHARES}

    @property
    def seconds_an_op(self) -> float | None:
        working = sum(self.seconds.get(name, 0.0) for name in ("compute", "optimizer"))
        return working / self.ops if self.ops else None

    @property
    def small(self) -> bool:
        """Whether operations are so small that their calls cost more."""
        return self.elements is not None and self.elements <= SMALL.get(self.device, SMALL["cuda"])


def elasticity_of(once: float, twice: float) -> float:
    """0: the step takes as long with twice the batch; 1: twice as long."""
    return math.log(twice / once) / math.log(2)


def judge(seen: Measured) -> tuple[Bottleneck, Text]:
    """The verdict and why, cause before symptom: what can be taken away comes first."""
    if seen.steps < FEWEST or not seen.step:
        return "not-measured", TOO_FEW.fill(steps=seen.steps, needed=FEWEST) if seen.step else TOO_EARLY
    candidates = [(seen.share("input"), _input(seen)), (seen.share("sync"), _reads(seen)), (seen.share("logging"), _logging(seen)),
                  (seen.share("host"), _host(seen))]
    found = [(share, verdict) for share, verdict in candidates if verdict is not None]
    if found:
        return max(found, key=lambda one: one[0])[1]
    return _grown(seen) or (_small(seen) if seen.gpu is None else _waiting(seen, seen.gpu)) or _compute(seen)


Judged = tuple[Bottleneck, Text]


def waits(seen: Measured) -> bool:
    """Whether fetching holds the step up, among other things or alone."""
    return _input(seen) is not None


def _input(seen: Measured) -> Judged | None:
    share = seen.share("input")
    if seen.held is not None:
        if seen.held.low > GAIN and share > 1 - 1 / GAIN:
            return "input-bound", INPUT.fill(ratio=number(seen.held.ratio), low=number(seen.held.low), high=number(seen.held.high))
        share = seen.unheld / seen.step
    return ("input-bound", INPUT_SHARE.fill(share=percent(share))) if share > SHARE and seen.gpu is None else None


def _reads(seen: Measured) -> Judged | None:
    """A read on a GPU waits for what computes anyway: where it could not be left out, what the GPU waits for tells more."""
    if (seen.unread is None and seen.gpu is not None) or not _takes(seen.unread, seen.share("sync")):
        return None
    return "sync-bound", READS.fill(share=percent(seen.share("sync")), gain=_gain(seen.unread))


def _logging(seen: Measured) -> Judged | None:
    if not _takes(seen.unlogged, seen.share("logging")):
        return None
    return "overhead-bound", LOGGING.fill(share=percent(seen.share("logging")), gain=_gain(seen.unlogged))


def _takes(gain: Interval | None, share: float) -> bool:
    """Whether it holds the step up: by what is gained without it, else by its share."""
    return share > SHARE if gain is None else gain.low > GAIN and share > 1 - 1 / GAIN


def _gain(gain: Interval | None) -> Text:
    return GAINS.fill(ratio=number(gain.ratio)) if gain is not None else EMPTY


def _host(seen: Measured) -> Judged | None:
    share = seen.share("host")
    if seen.gpu is not None and seen.gpu.shares["computing"] > 1 - IDLE:
        return None
    return ("overhead-bound", HOST.fill(share=percent(share))) if share > MOST else None


def _grown(seen: Measured) -> Judged | None:
    if seen.grown is None:
        return None
    return "overhead-bound", GROWN.fill(first=seen.grown[0], last=seen.grown[1])


def _waiting(seen: Measured, gpu: DeviceTime) -> Judged | None:
    """What a GPU waits for most, where it does so for long. What gained nothing when it was taken away is not it."""
    computing = gpu.shares["computing"]
    causes = {"input": gpu.idle["input"], "transfer": gpu.idle["transfer"] + gpu.copies["HtoD"],
              "sync": gpu.idle["sync"] + gpu.copies["DtoH"], "launch": gpu.idle["launch"]}
    tested = {"input": seen.held, "sync": seen.unread}
    left = {cause: share for cause, share in causes.items() if tested.get(cause) is None}
    cause = max(left, key=lambda name: left[name])
    if 1 - computing < IDLE or left[cause] < IDLE / 2:
        return None
    said = {"computing": percent(computing), "share": percent(left[cause]), "kernels": round(gpu.kernels), "each": duration(gpu.kernel_seconds)}
    return WAITS[cause], DEVICE_WAITS[cause].fill(**said)


def _small(seen: Measured) -> Judged | None:
    """By a larger batch; where there is none, by what an operation takes that has nothing to compute."""
    each = seen.seconds_an_op
    if each is None or not seen.small:
        return None
    said = {"ops": round(seen.ops or 0), "each": duration(each), "elements": seen.elements}
    if seen.elasticity is not None:
        return ("overhead-bound", SMALL_OPS.fill(ratio=number(2 ** seen.elasticity), **said)) if seen.elasticity <= FLAT else None
    if seen.call is None or each > CALLS * seen.call:
        return None
    return "overhead-bound", SMALL_ONLY.fill(call=duration(seen.call), **said)


def _compute(seen: Measured) -> Judged:
    elastic = EMPTY
    if seen.elasticity is not None:
        elastic = (ELASTIC if seen.elasticity > FLAT else WEIGHTS).fill(ratio=number(2 ** seen.elasticity))
    if seen.gpu is not None:
        elastic = BUSY.fill(computing=percent(seen.gpu.shares["computing"])) + elastic
    return "compute-bound", COMPUTE.fill(share=percent(seen.share("compute") + seen.share("optimizer")), elastic=elastic)
