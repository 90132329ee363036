"""The words of a controlled re-run: a :class:`Trial` is asked for, a :class:`Trace` comes back.

A trial is the user's program with some conditions and a budget. It runs in a child process, which sends one JSON
message per line while it goes; ``Trace.take`` collects them, so that a child that is killed leaves what it had sent.
"""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from traindx.core.codec import decode, encode
from traindx.core.text import EMPTY, Text, same

Json = Any
Applied = Literal["applied", "not-applicable", "unverified"]
# steps: as many as asked; script: the program came to its own end; raised: with an exception; seconds, memory: over the
# budget; killed: by a signal that was not ours; lost: the worker is gone; refused: the child could not be made
Ended = Literal["steps", "script", "raised", "seconds", "memory", "killed", "lost", "refused"]
ENDED: dict[Ended, Text] = {
    "steps": Text("as many steps as asked", "跑完了要求的步数"), "script": Text("its own end", "程序自己结束"),
    "raised": Text("an exception", "抛出异常"), "seconds": Text("out of time", "超过时限"),
    "memory": Text("out of its memory budget", "超出内存限额"), "killed": Text("killed", "被强行终止"),
    "lost": Text("lost", "失去联系"), "refused": Text("not started", "没能启动")}


@dataclass(frozen=True)
class Program:
    """What the user would type after ``python``. ``cwd`` and a relative ``script`` are as the user has them."""

    script: str | None
    module: str | None = None
    args: tuple[str, ...] = ()
    cwd: str = "."


@dataclass(frozen=True)
class Condition:
    """One thing that is changed: ``name`` is a file of ``traindx/interventions``, ``settings`` its arguments."""

    name: str
    settings: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Gauge:
    """One thing that is measured besides the curves: ``name`` is a file of ``traindx/gauges``."""

    name: str
    settings: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Budget:
    """Where a trial is stopped. ``steps`` are optimizer steps (or, without an optimizer, backward passes)."""

    steps: int = 50
    seconds: float = 60.0
    memory: int | None = None  # bytes resident


@dataclass(frozen=True)
class Interruption:
    """A run that comes before another one in the same folders, and is killed when ``steps`` are done and the next would begin.
    What it wrote, the other finds. ``{checkpoint}`` among the arguments of that one stands for the checkpoint written last."""

    program: Program
    steps: int


@dataclass(frozen=True)
class Trial:
    """One run. ``reseed`` is added to every seed that the program sets; 0 leaves it as written. ``without``: files that are
    removed (in the sandbox) before it begins."""

    program: Program
    conditions: tuple[Condition, ...] = ()
    gauges: tuple[Gauge, ...] = ()
    budget: Budget = Budget()
    reseed: int = 0
    observe: bool = False  # also record what `traindx run` records, to be judged by the rules
    network: bool = False
    after: Interruption | None = None
    without: tuple[str, ...] = ()

    def under(self, *conditions: Condition, **changes: Any) -> Trial:
        """The same trial with more conditions, and other fields changed."""
        return replace(self, conditions=(*self.conditions, *conditions), **changes)

    def for_steps(self, steps: int) -> Trial:
        return replace(self, budget=replace(self.budget, steps=steps))

    def seeded(self, reseed: int) -> Trial:
        return replace(self, reseed=reseed)

    def measuring(self, *gauges: Gauge) -> Trial:
        return replace(self, gauges=(*self.gauges, *gauges))


@dataclass
class Step:
    """One optimizer step. ``loss`` is what the loss call returned (mean over micro-batches and calls, unscaled);
    ``root`` what went into backward (divided, scaled). Hashes are of all inputs and targets that the step saw."""

    step: int
    loss: float | None = None
    root: float | None = None
    lr: float | None = None
    grad_norm: float | None = None
    moved: float | None = None  # norm of the change of the parameters
    inputs: str | None = None
    target: str | None = None
    samples: int | None = None
    scale: float | None = None  # of a GradScaler
    seconds: float | None = None


@dataclass
class ConditionState:
    """What became of a condition in the child."""

    name: str
    state: Applied
    why: Text = EMPTY
    how: str = ""  # e.g. pin_batch: loader, generators, inputs


@dataclass
class Trace:
    """What a trial left. ``facts`` are the gauges' results by name, and of the base tracer: ``program`` (modules,
    optimizers, loss functions seen ...). ``validation`` are (step, mean loss) of passes without gradients."""

    steps: list[Step] = field(default_factory=list)
    validation: list[tuple[int, float]] = field(default_factory=list)
    conditions: dict[str, ConditionState] = field(default_factory=dict)
    facts: dict[str, Json] = field(default_factory=dict)
    ended: Ended = "lost"
    error: str = ""  # the exception, with the user's line
    said: Text = EMPTY  # the same, where the words are ours
    seconds: float = 0.0  # wall clock in the child
    cpu_seconds: float = 0.0
    memory: int = 0  # bytes resident at the peak
    sandbox: str = ""  # overlay, copy, guard, none
    would_write: tuple[str, ...] = ()  # files that the program would have written
    recording: str | None = None  # folder of the recording, where the trial was to observe
    output: str = ""  # the end of what it printed

    def take(self, message: dict[str, Json]) -> None:
        """Adds one message of the child: ``{"step": ...}``, ``{"validation": [step, loss]}``, ``{"condition": ...}``,
        ``{"fact": [name, value]}`` or ``{"end": {field: value, ...}}``. Unknown ones are passed over."""
        if "step" in message:
            self.steps.append(decode(Step, message["step"]))
        elif "validation" in message:
            step, loss = message["validation"]
            self.validation.append((step, decode(float, loss)))
        elif "condition" in message:
            state = decode(ConditionState, message["condition"])
            self.conditions[state.name] = state
        elif "fact" in message:
            name, value = message["fact"]
            self.facts[name] = value
        elif "end" in message:
            for name, value in message["end"].items():
                if name in ("ended", "error", "seconds", "cpu_seconds", "memory", "sandbox", "recording", "output"):
                    setattr(self, name, value)
                elif name == "said":
                    self.said = decode(Text, value) or EMPTY
                elif name == "would_write":
                    self.would_write = tuple(value)

    @property
    def how(self) -> Text:
        """How it ended, in words."""
        return ENDED[self.ended]

    @property
    def why(self) -> Text:
        """Why it ended early: the exception as it was raised, or our own words; empty where there was no fault."""
        return self.said if self.said != EMPTY else same(self.error)

    @property
    def losses(self) -> list[float]:
        """One value per step that had one."""
        return [step.loss for step in self.steps if step.loss is not None]

    def failed_conditions(self) -> list[ConditionState]:
        return [state for state in self.conditions.values() if state.state != "applied"]


def ending(ended: Ended, why: Text) -> Json:
    """How a trial ended, in our own words: fields of an ``end`` message."""
    return {"ended": ended, "error": why.en, "said": encode(why)}


def to_json(value: Any) -> Json:
    """A trial, trace, step or state as JSON values."""
    return encode(value)


def trial_from(value: Json) -> Trial:
    found: Trial = decode(Trial, value)
    return found
