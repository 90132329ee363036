"""The words of a speed report: where the time of a step goes, what holds it up, and what changes it."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from traindx.core.findings import Judged
from traindx.core.observed import Site
from traindx.core.text import EMPTY, Text

Bottleneck = Literal["input-bound", "overhead-bound", "sync-bound", "compute-bound", "not-measured"]
Outcome = Literal["faster", "slower", "no-clear-difference"]
SHARES = ("input", "host", "sync", "transfer", "compute", "optimizer", "logging")
COMPUTE = ("forward", "loss", "backward")  # the phases that make up "compute"
KINDS = ("input", "operators", "launch", "optimizer", "copies", "reads", "gaps")  # of the host's time, by torch.profiler
DEVICE = ("computing", "copying", "idle")
IDLE = ("launch", "sync", "input", "transfer")  # what a device that has nothing to do waits for
Span = tuple[int, int, int, int]  # of an expression: first and last line, first and last column, as ``co_positions`` has them


@dataclass(frozen=True)
class Making:
    """An expression of a program without a DataLoader that makes (part of) a batch. ``each``: it is the iterable of a ``for``. ``holds`` is
    false where it is only the loop that trains. ``turns``: this loop holds the whole step, so that it may begin anew."""

    file: str
    span: Span
    each: bool = False
    holds: bool = True
    turns: bool = False


@dataclass(frozen=True)
class Interval:
    """The median of paired ratios with a 95 % bootstrap interval; ``won``: pairs above 1."""

    ratio: float
    low: float
    high: float
    pairs: int
    won: int


@dataclass(frozen=True)
class Baseline:
    """The program as it is. ``spread``: 10th and 90th percentile of the step's seconds; ``threads`` are those of torch."""

    step_seconds: float
    spread: tuple[float, float]
    steps: int
    batch: int | None = None
    tokens: int | None = None
    precision: str = ""
    hardware: str = ""
    threads: int = 1
    model: str = ""
    parameters: int | None = None
    accumulated: int = 1  # batches of a step
    optimizers: int = 1  # a step is that of one of them

    @property
    def samples_per_second(self) -> float | None:
        return self.accumulated * self.batch / self.step_seconds if self.batch else None

    @property
    def tokens_per_second(self) -> float | None:
        return self.accumulated * self.tokens / self.step_seconds if self.tokens else None


@dataclass(frozen=True)
class Spent:
    """A line of the user's with its share of the step, by samples of the stack; ``calls``: what it was calling most."""

    phase: str
    site: Site
    share: float
    calls: str = ""


@dataclass(frozen=True)
class Load:
    """The machine around a measurement: the load average before it, and the cores that others kept busy meanwhile (None where the
    system does not tell)."""

    cores: int
    average: float | None = None
    others: float | None = None

    @property
    def too_much(self) -> bool:
        """The load was above the number of cores before we began, or others kept more than a quarter of the cores busy."""
        return (self.average or 0.0) > self.cores or (self.others or 0.0) > 0.25 * self.cores


@dataclass(frozen=True)
class Change:
    """One change, tried in pairs against the program as it is. ``ratio`` above 1 is faster, in samples a second.

    ``loss_same`` is None where losses cannot be compared. ``outcome`` is None where there is no verdict, ``why`` says why; where the
    change was not tried, ``interval`` is None too. ``diff`` is what to write in the program.
    """

    name: str
    title: Text
    interval: Interval | None = None
    outcome: Outcome | None = None
    why: Text = EMPTY
    loss_same: bool | None = None
    loss_difference: float | None = None
    load: Load | None = None
    diff: Text = EMPTY
    remark: Text = EMPTY
    seconds: tuple[float, float] | None = None  # of a step, as written and changed
    start_seconds: float | None = None  # paid once, such as compiling


@dataclass(frozen=True)
class BatchPoint:
    """One point of the batch curve: a step on the same batch, repeated ``times`` times."""

    times: int
    step_seconds: float


@dataclass(frozen=True)
class Operator:
    """An operator with the share of a step that is its own, without the operators it calls; ``calls`` a step."""

    name: str
    share: float
    calls: float


@dataclass(frozen=True)
class DeviceTime:
    """Of a GPU, in shares of a step without the profiler: ``shares`` by DEVICE, ``idle`` by its causes (together the idle share),
    ``copies`` by direction, behind which nothing computes. Seconds: of one kernel on average, and of a step's launches."""

    shares: dict[str, float]
    idle: dict[str, float]
    copies: dict[str, float]
    kernels: float = 0.0
    kernel_seconds: float = 0.0
    launches: float = 0.0
    launch_seconds: float = 0.0


@dataclass(frozen=True)
class Profiled:
    """What torch.profiler says of some steps; a step took ``step_seconds`` under it. Where it said nothing, ``why``."""

    steps: int = 0
    step_seconds: float = 0.0
    shares: dict[str, float] = field(default_factory=dict)  # of the host's time, by KINDS
    operators: tuple[Operator, ...] = ()
    device: DeviceTime | None = None
    why: Text = EMPTY


@dataclass
class SpeedReport:
    """What ``traindx speed`` says, in the order in which it was asked: baseline, bottleneck, data, compute."""

    subject: str = ""
    baseline: Baseline | None = None
    shares: dict[str, float] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)  # seconds of a step
    lines: list[Spent] = field(default_factory=list)
    input_lines: list[Spent] = field(default_factory=list)  # inside the dataset and collate function; shares of the fetching
    verdict: Bottleneck = "not-measured"
    why: Text = EMPTY
    held: Interval | None = None  # the same batch given again, against fetching
    elasticity: float | None = None  # of the step's time in the batch
    batch_curve: list[BatchPoint] = field(default_factory=list)
    ops: int | None = None  # operations a step
    profiled: Profiled | None = None
    findings: list[Judged] = field(default_factory=list)
    data: list[Change] = field(default_factory=list)
    compute: list[Change] = field(default_factory=list)
    compute_refused: Text = EMPTY
    load: Load | None = None
    remarks: list[Text] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False  # by Ctrl-C, before every change was tried

    @property
    def changes(self) -> list[Change]:
        return [*self.data, *self.compute]
