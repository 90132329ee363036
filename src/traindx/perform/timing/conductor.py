"""Leads a program through blocks of steps: as it is, with one change, with the clock running; a plan asks for them one after the other."""
from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from traindx.interventions.tools.stage import Part, Stage
from traindx.interventions.tools.switched import Switched

AS_WRITTEN = ""
Mode = Literal["plain", "bare", "look", "count", "trace"]
BARE: tuple[Mode, ...] = ("bare", "trace")  # without our seams, where an optimizer tells the end of a step


@dataclass(frozen=True)
class Block:
    """``steps`` steps that count, after ``skip`` that do not, and more while they have taken less than ``seconds``, up to ``most``.

    ``bare``: without any of our seams but the end of the step. ``look``: with the clock. ``count``: with operations counted. ``trace``: bare,
    under torch.profiler.
    """

    variant: str = AS_WRITTEN
    steps: int = 5
    skip: int = 1
    mode: Mode = "plain"
    seconds: float = 0.0
    most: int = 10_000


@dataclass(frozen=True)
class Timed:
    """The seconds of each step of a block that counted; steps in which the model was also evaluated do not count."""

    seconds: list[float]

    @property
    def mean(self) -> float:
        return sum(self.seconds) / max(len(self.seconds), 1)


Plan = Generator[Block, Timed, None]
LONGEST = 5  # times the steps asked for, of a block whose steps are all spoilt by evaluations


class Conductor(Part):
    """``variants``: the switched interventions by name. ``on_mode`` hears when a mode begins (True) and ends."""

    def __init__(self, stage: Stage, variants: dict[str, Switched], evaluated: Callable[[], bool], on_mode: Callable[[Mode, bool], None],
                 finish: Callable[[], None], seconds: float, now: Callable[[], float] = time.perf_counter) -> None:
        self.stage, self.variants, self.evaluated, self.on_mode, self.finish, self.now = stage, variants, evaluated, on_mode, finish, now
        self.seconds = seconds
        self.until = float("inf")  # until the first step is over
        self.plan: Plan | None = None
        self.block = Block()
        self._optimizer_steps = 0
        self._taken: list[float] = []
        self._seen = 0
        self._last = 0.0
        self._done = False

    def begin(self, plan: Plan) -> None:
        """Before the program's first step."""
        self.plan = plan
        register_optimizer_step_post_hook(self._bare_tick)
        self._start(next(plan))

    @property
    def late(self) -> bool:
        return self.now() > self.until

    def on_tick(self, step: int) -> None:
        self._tick()

    @property
    def steps(self) -> int:
        """Of the whole run; the stage does not see those of bare blocks."""
        return max(self.stage.steps, self._optimizer_steps)

    def _bare_tick(self, *_: Any) -> None:
        self._optimizer_steps += 1
        if self.block.mode in BARE and not self._done and not self.stage.active:
            self._tick()

    def _tick(self) -> None:
        if self._done or self.plan is None:
            return
        last_one = self._seen + 1 >= self.block.skip + self.block.steps
        if self._seen == self.block.skip - 1 or last_one:
            _wait_for_device()
        now = self.now()
        if self.until == float("inf"):
            self.until = now + self.seconds
        self._seen += 1
        if self._seen > self.block.skip and not self.evaluated():
            self._taken.append(now - self._last)
        self._last = now
        if self._over():
            self._next()

    def _over(self) -> bool:
        enough = len(self._taken) >= self.block.steps and (sum(self._taken) >= self.block.seconds or len(self._taken) >= self.block.most)
        return enough or (self._seen > LONGEST * (self.block.skip + self.block.steps) and not self._taken) or self.late

    def _next(self) -> None:
        """Outside of the timed steps: what this costs belongs to none of them."""
        self._leave()
        assert self.plan is not None
        try:
            block = self.plan.send(Timed(self._taken))
        except StopIteration:
            self._done = True
            self.finish()
            return
        self._start(block)

    def _leave(self) -> None:
        self.on_mode(self.block.mode, False)

    def _start(self, block: Block) -> None:
        if block.variant != self.block.variant or self._seen == 0:
            for name, variant in self.variants.items():
                if variant.on != (name == block.variant):
                    variant.switch(name == block.variant)
        self.block, self._taken, self._seen = block, [], 0
        self.on_mode(block.mode, True)
        self.evaluated()
        _wait_for_device()
        self._last = self.now()


def _wait_for_device() -> None:
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def warm_up_of(variant: Switched | None) -> int:
    return variant.warm_up if variant is not None else 1
