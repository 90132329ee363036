"""Whether NaN and infinity did harm: what a GradScaler or the program itself left out did none."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.judge import Absent
from traindx.core.observed.finite import FiniteSummary, Nonfinite
from traindx.core.recording import Recording
from traindx.core.text import Text, same

_UNSEEN = Text("no loss or gradient on the CPU was seen", "没有看到 CPU 上的损失或梯度")
_WORDS = {"division": Text("division", "除法"), "product": Text("product", "乘法"), "linear layer": Text("linear layer", "线性层"),
          "convolution": Text("convolution", "卷积")}  # the others are called by their function


def operation(name: str) -> Text:
    """An operation of a fault, in words."""
    return _WORDS.get(name) or same(name)


@dataclass(frozen=True)
class FiniteChecks:
    """Faults in the order met, and the count of steps that showed them."""

    faults: list[Nonfinite]
    summary: FiniteSummary

    @classmethod
    def of(cls, recording: Recording) -> FiniteChecks | Absent:
        summary = recording.last(FiniteSummary)
        return cls(recording.of(Nonfinite), summary) if summary is not None else Absent(_UNSEEN)

    @property
    def bad_steps(self) -> int:
        return self.summary.bad_roots + self.summary.bad_gradients

    @property
    def harmful(self) -> bool:
        """It reached the weights, or the run never got over it."""
        if not self.faults:
            return False
        first, summary = self.faults[0], self.summary
        if summary.taken or summary.weights_bad or first.phase == "step":
            return True
        ended_in_it = summary.last_bad >= summary.steps - 1
        return ended_in_it and (not first.scaled or self.bad_steps > 0.5 * summary.steps)

    @property
    def fault(self) -> Nonfinite:
        """The first; under a GradScaler, whose search for its scale comes first, the first whose operation is known."""
        faults = self.faults
        return next((fault for fault in faults if fault.op), faults[0]) if faults[0].scaled else faults[0]
