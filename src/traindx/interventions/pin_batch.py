"""The same batch in every step: by the loader, else by the inputs of the model and the target of the loss,
else by the rows that the program cuts out by hand, else by rewinding the generators.

``samples``: 1 to 8, which fill the batch in turn (its size stays, so that nothing else has to fit anew), or None for the
whole first batch. ``way``: ``auto``, ``loader``, ``inputs``, ``rows`` or ``generators``. The first step is as written;
what it saw is held from the second step on, from the third at the latest. A pin that was put on is not yet one that
holds: :func:`traindx.core.pins.pin_holds` judges a trace.
"""
from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Literal

from torch import Tensor
from torch.optim import Optimizer

from traindx.core.text import EMPTY, Text
from traindx.core.trials import Applied, ConditionState
from traindx.interventions.tools import generators, rows
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.pins import InputsPin, LoaderPin, RowsPin
from traindx.interventions.tools.stage import Backward, LossCall, RootCall, Stage
from traindx.probes.tensors import tensors_in

Way = Literal["auto", "loader", "inputs", "rows", "generators"]
WAYS: tuple[Way, ...] = ("auto", "loader", "inputs", "rows", "generators")
MOST_SAMPLES = 8

TURNS = Text("Several optimizers take turns (as in a GAN): one batch held for all of them has no meaning.",
             "几个优化器轮流更新（比如 GAN）：把同一个 batch 固定给它们没有意义。")
NO_LOADER = Text("No DataLoader delivered the batch of the first backward.", "第一次反向传播用的 batch 不是 DataLoader 给的。")
NO_INPUTS = Text("No module with a leaf input was called, or no torch loss with a plain target.",
                 "没有调用过以普通张量为输入的模块，或者没有用 torch 的损失函数处理普通的目标。")
NOTHING_DRAWN = Text("Nothing was drawn between the steps: the batch is always the same, or it is cut from the data in order.",
                     "两步之间没有抽随机数：要么 batch 一直不变，要么是按顺序从数据里切出来的。")
NO_STEP = Text("There was no training step.", "没有发生过训练步。")
WHOLE = Text("The rows could not be told to be samples: the whole batch is held.", "分不清哪一维是样本：固定的是整个 batch。")

NO_ROWS = Text("No line of the program cuts rows out of a tensor.", "程序里没有哪一行是从张量里切出若干行的。")
NOT_BY: dict[str, Text] = {"loader": NO_LOADER, "inputs": NO_INPUTS, "rows": NO_ROWS}


class PinBatch(Intervention):
    """Which way it goes is decided at the first backward, by what that one came from."""

    NOTHING = NO_STEP

    def __init__(self, stage: Stage, samples: int | None = None, way: Way = "auto") -> None:
        super().__init__(stage)
        if samples is not None and not 1 <= samples <= MOST_SAMPLES:
            raise ValueError(f"samples: 1 to {MOST_SAMPLES} or null")
        if way not in WAYS:
            raise ValueError(f"way: one of {', '.join(WAYS)}")
        self.samples, self.way = samples, way
        self.decided = False
        self.different = False  # whether a batch was ever exchanged for another one
        self.loader = LoaderPin(samples)
        self.inputs = InputsPin(samples, stage)
        self.rows = RowsPin(samples, stage)
        self.rows.exchanged = self._exchanged
        self._cutting = ExitStack()
        self._rewind = generators.Rewind()
        self._turns: list[weakref.ref[Optimizer]] = []
        self._together = False

    def install(self) -> None:
        if self.way in ("auto", "rows"):
            self.rows.install(self._cutting)
            self.stack.enter_context(self._cutting)

    # -- what came in -----------------------------------------------------------------------------------------------

    def on_batch(self, loader: Any, iterator: Any, batch: Any) -> Any:
        if self.problem != EMPTY or self.way not in ("auto", "loader"):
            return batch
        if not self.decided:
            self.loader.saw(iterator, batch)
            return batch
        if self.how != "loader" or not self.stage.steps or not self.loader.pins(iterator):
            return batch
        pinned = self.loader.batch_for(batch)
        self._exchanged(batch, pinned)
        return pinned

    def on_root_call(self, call: RootCall) -> None:
        if self._by_inputs():
            self._exchange_all(self.inputs.call(call))

    def on_loss_call(self, call: LossCall) -> None:
        if self._by_inputs():
            self._exchange_all(self.inputs.loss(call))

    def _by_inputs(self) -> bool:
        return self.problem == EMPTY and (self.how == "inputs" if self.decided else self.way in ("auto", "inputs"))

    # -- the decision -----------------------------------------------------------------------------------------------

    def before_backward(self, run: Backward) -> None:
        if self.decided or not run.trains:
            return
        self.decided = True
        if self.way in ("auto", "loader") and self.loader.decide():
            self.how = "loader"
        elif self.way in ("auto", "inputs") and self.inputs.decide():
            self.how = "inputs"
        elif self.way in ("auto", "rows") and self.rows.any_cut:
            self.how = "rows"
        elif self.way in ("auto", "generators"):
            self.how = "generators"
        else:
            self.problem = self.inputs.problem or NOT_BY[self.way]
        if self.how != "rows":
            self._cutting.close()

    def before_update(self, optimizer: Optimizer) -> None:
        """A game: A, B, A, each after a backward of its own. Phases are none, nor are several that share one backward."""
        last = self._turns[-1]() if self._turns else optimizer
        if last is optimizer and self._turns:
            return
        self._together |= bool(self._turns) and self.stage.backwards == 0
        if not self._together and any(ref() is optimizer for ref in self._turns):
            self.problem = TURNS
        self._turns.append(weakref.ref(optimizer))

    def on_tick(self, step: int) -> None:
        self.inputs.new_step()
        self.rows.new_step()
        if step == 2:
            self._reconsider()
        if self.how == "generators":
            self.touched += self._rewind()

    def _reconsider(self) -> None:
        """What was there before the loop only (a batch taken once, data cut in two) is no way to hold anything in it."""
        if self.how == "rows" and not self.rows.held:
            self.how = "generators" if self.way == "auto" else ""
            self.problem = self.problem if self.how else NO_ROWS
        elif self.how == "loader" and not self.touched:
            self.how = "inputs" if self.way == "auto" and self.inputs.decide() else self.how

    # -- what became of it ------------------------------------------------------------------------------------------

    def _exchange_all(self, pairs: Iterator[tuple[Tensor, Tensor]]) -> None:
        for before, after in pairs:
            self._exchanged(before, after)

    def _exchanged(self, before: Any, after: Any) -> None:
        self.touched += 1
        if not self.different:
            pairs = zip(tensors_in(before), tensors_in(after))
            self.different = any(a.shape != b.shape or rows.digest(a) != rows.digest(b) for a, b in pairs)

    def state(self) -> ConditionState:
        same = self.how in ("loader", "inputs") and self.stage.steps > 1 and self.touched and not self.different
        return ConditionState(self.name, self._applied(), self._why(), "constant" if same else self.how)

    def _applied(self) -> Applied:
        if self.inputs.problem is not None and self.how == "inputs":
            return "not-applicable"
        if self.how == "generators" and self.problem == EMPTY and self.stage.steps > 1 and not self.touched:
            return "unverified"
        return super()._applied()

    def _why(self) -> Text:
        if self.problem != EMPTY:
            return self.problem
        if self.how == "inputs" and self.inputs.problem is not None:
            return self.inputs.problem
        if self.how == "generators" and not self.touched:
            return NOTHING_DRAWN if self.stage.steps > 1 else NO_STEP
        if self.samples is not None and self._whole():
            return WHOLE
        return super()._why()

    def _whole(self) -> bool:
        return self.how == "generators" or (self.how == "loader" and self.loader.whole) or (self.how == "inputs" and self.inputs.whole)
