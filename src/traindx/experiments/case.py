"""What is known of a program before the steps of the tree begin: does it repeat itself, can its batch be held?"""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from traindx.core.findings import Judged
from traindx.core.pins import VERIFICATION, VERIFICATION_STEPS, pin_holds, pins
from traindx.core.text import EMPTY, Text
from traindx.core.trials import Condition, Trace, Trial
from traindx.experiments.bench import Bench

FIRST_STEPS = 100  # of the first run, which is also judged by the rules
FEW = 8  # samples of the small pin
CALM = (Condition("no_dropout"), Condition("no_weight_decay"))
FIRST = Text("the program as written, twice with the same seeds", "原样运行两次，种子相同")
HOLDING = Text("can the batch be held?", "能不能固定住一个 batch？")
NO_STEPS = Text("no training step was seen", "没有看到任何训练步")
ENDED_EARLY = Text("the program ended with an exception after {steps} step{steps:|s}: {error}", "程序跑了 {steps} 步后抛出异常：{error}")
NO_BUDGET = Text("the first step was not done within {seconds} s; make a smaller version first (fewer rows, a smaller model), "
                 "or give more time with --seconds",
                 "{seconds} 秒内连第一步都没跑完；先做一个小版本（少取几行数据、换个小模型），或者用 --seconds 放宽时间")
SUPERVISED = frozenset(("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss",
                        "l1_loss", "smooth_l1_loss", "huber_loss", "multi_margin_loss"))


@dataclass
class Case:
    """``pin`` holds a batch of few samples, ``pin_all`` the whole first batch; None where no batch can be held
    (``pin_why`` says why). ``findings`` are what the rules say of the first run, cause first."""

    bench: Bench
    plain: Trace
    repeatable: bool | None = None
    pinned_by: str | None = None
    pin_why: Text = EMPTY
    pin: tuple[Condition, ...] = ()  # holds a few samples, with all that it needs
    findings: list[Judged] = field(default_factory=list)
    remarks: list[Text] = field(default_factory=list)

    @property
    def program(self) -> dict[str, Any]:
        """The base tracer's fact about the program; empty where it sent none."""
        found: dict[str, Any] = self.plain.facts.get("program") or {}
        return found

    @property
    def supervised(self) -> bool:
        """Whether every loss seen is a torch loss against a target: such a loss must come down to its floor."""
        program = self.program
        functions = {loss["function"] for loss in program.get("losses", [])}
        noisy = program.get("noise") and not program.get("dropout")  # a VAE, diffusion: their floor is not 0
        return bool(functions) and functions <= SUPERVISED and not noisy and len(program.get("optimizers", [])) <= 1

    @property
    def rate(self) -> float | None:
        """The learning rate as written: the largest that a step was made with."""
        rates = [step.lr for step in self.plain.steps if step.lr is not None]
        return max(rates) if rates else None

    def pinned(self, samples: int | None = FEW) -> Trial:
        """The program on one batch, without what would keep it from fitting."""
        held = (Condition(c.name, {**c.settings, "samples": samples}) if c.name == "pin_batch" else c for c in self.pin)
        return self.bench.plain.under(*held, *CALM)


def plain_runs(bench: Bench) -> list[Trace]:
    """Two runs as written with the same seeds; the first is also recorded for the rules."""
    base = bench.plain.for_steps(FIRST_STEPS)
    return bench.run(FIRST, [base.under(observe=True), base])


def same(first: Trace, second: Trace) -> bool | None:
    """Whether two runs made the same losses, bit for bit, as far as both went. None without losses."""
    pairs = list(zip(first.losses, second.losses))
    if not pairs:
        return None
    return all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in pairs)


def cannot_be_examined(plain: Trace, seconds: float) -> Text | None:
    """Why nothing can be learnt of the program, None where something can."""
    if plain.steps:
        return None
    if plain.ended == "seconds":
        return NO_BUDGET.fill(seconds=seconds)
    if plain.error:
        return ENDED_EARLY.fill(steps=0, error=plain.why)
    return NO_STEPS


def hold_batch(case: Case) -> None:
    """Tries to hold a batch, one way after the other; believed only when the loss stands still while the weights do."""
    for case.pin in pins(FEW):
        still = case.pinned().under(*(condition for condition in VERIFICATION if condition not in CALM))
        trace = case.bench.one(HOLDING, still.for_steps(VERIFICATION_STEPS))
        holds, why = pin_holds(trace)
        if case.pin_why == EMPTY or holds:
            case.pin_why = why  # of the first way: the others are last resorts
        if holds:
            case.pinned_by = trace.conditions["pin_batch"].how
            return
