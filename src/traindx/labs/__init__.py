"""The labs: one folder each, found by walking them. A lab is a pure function of its knobs; the studio moves them."""
from __future__ import annotations

import importlib
from functools import cache
from pkgutil import iter_modules

from traindx.labs.lab import Choice, Knob, Lab, Level, Outcome, Slider, State, Switch, Table, Value, grid, seed

__all__ = ["Choice", "Knob", "Lab", "Level", "Outcome", "Slider", "State", "Switch", "Table", "Value", "all_labs", "grid", "seed"]


@cache
def all_labs() -> dict[str, Lab]:
    """Every lab by its name, in the order of their numbers."""
    found = [importlib.import_module(f"{__name__}.{module.name}").LAB for module in iter_modules(__path__) if module.ispkg]
    return {lab.name: lab for lab in sorted(found, key=lambda lab: lab.number)}
