"""What can be changed in a trial of an unmodified program: one file an intervention, each with one class.

An intervention is a context manager: entering it puts its patches on, leaving takes them off. It knows whether it has
really changed something, and says so in its state: *applied*, *not-applicable* with the reason, or *unverified*.
"""
from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, Any

from traindx.core.text import Text
from traindx.core.trials import Condition
from traindx.errors import UsageError

if TYPE_CHECKING:
    from traindx.interventions.tools.base import Intervention
    from traindx.interventions.tools.stage import Stage

UNKNOWN = Text("There is no intervention “{name}”. Known: {known}.", "没有叫 {name} 的干预。可用的有：{known}。")
SETTINGS = Text("The intervention “{name}” does not take {given}: {problem}. It takes {known}.",
                "干预 {name} 不接受 {given}：{problem}。它接受 {known}。")


def names() -> list[str]:
    """All interventions, without importing torch."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg)


def build(condition: Condition, stage: Stage) -> Intervention:
    """The intervention of that name, not yet entered. Raises UsageError for an unknown name or setting."""
    if condition.name not in names():
        raise UsageError(UNKNOWN.fill(name=condition.name, known=", ".join(names())))
    kind = kind_of(condition.name)
    try:
        return kind(stage, **condition.settings)
    except (TypeError, ValueError) as problem:
        known = ", ".join(list(inspect.signature(kind).parameters)[1:]) or "-"
        raise UsageError(SETTINGS.fill(name=condition.name, given=condition.settings, problem=problem, known=known)) from None


def kind_of(name: str) -> type[Intervention]:
    """The class in that file."""
    module = importlib.import_module(f"{__name__}.{name}")
    kind: type[Intervention]
    kind, *_ = [value for value in vars(module).values() if _is_intervention(value, module.__name__)]
    return kind


def _is_intervention(value: Any, module: str) -> bool:
    return inspect.isclass(value) and value.__module__ == module and hasattr(value, "state")
