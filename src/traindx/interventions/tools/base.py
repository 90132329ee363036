"""What every intervention is: a part of the stage that knows whether it has changed anything."""
from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import ClassVar, TypeVar

from traindx.core.text import EMPTY, Text
from traindx.core.trials import Applied, ConditionState
from traindx.interventions.tools.stage import Part, Stage

Kind = TypeVar("Kind", bound="Intervention")
NEVER = Text("Nothing in the program was changed by it: what it changes did not come up.", "它什么也没改动：程序里没有出现它要改的东西。")
BROKE = Text("It could not be kept up: {error}", "中途没法继续改动：{error}")
COMPILED = Text("Parts of the program are compiled: whether anything was changed inside them is not seen.",
                "程序有一部分经过编译：看不到里面有没有改动。")


class Intervention(Part):
    """Base class. Subclasses override hooks, or :meth:`install` patches of their own, and call :meth:`touch` at each change."""

    IN_COMPILED: ClassVar[bool] = False  # acts inside compiled code too, where it cannot count
    NOTHING: ClassVar[Text] = NEVER  # why it is not applicable, where it never touched anything

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.stack = ExitStack()
        self.touched = 0
        self.how = ""
        self.problem = EMPTY  # set: the condition does not hold, whatever was changed
        self.doubt = EMPTY  # set: it may not hold

    @property
    def name(self) -> str:
        return type(self).__module__.rsplit(".", 1)[-1]

    def __enter__(self: Kind) -> Kind:
        self.stage.add(self)
        self.install()
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.stage.remove(self)
        self.stack.close()

    def install(self) -> None:
        """Puts on patches of its own, if any, by ``self.stack``."""

    def touch(self) -> None:
        """Something has just been changed."""
        self.touched += 1

    def failed(self, problem: Exception) -> None:
        self.problem = BROKE.fill(error=f"{type(problem).__name__}: {problem}"[:200])

    def state(self) -> ConditionState:
        """What became of it so far."""
        return ConditionState(self.name, self._applied(), self._why(), self.how)

    def _applied(self) -> Applied:
        if self.problem == EMPTY and not self.touched and self._unseen():
            return "unverified"
        if self.problem != EMPTY or not self.touched:
            return "not-applicable"
        return "unverified" if self.doubt != EMPTY else "applied"

    def _unseen(self) -> bool:
        return self.IN_COMPILED and self.stage.compiled

    def _why(self) -> Text:
        if self.problem != EMPTY:
            return self.problem
        if not self.touched and self._unseen():
            return COMPILED
        return self.doubt if self.touched else self.NOTHING
