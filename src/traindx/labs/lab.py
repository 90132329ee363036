"""What a lab is: knobs with a finite number of positions each, and one pure function of them."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from traindx.core.text import EMPTY, Text, number, same
from traindx.figures import Figure

Level = Literal["fine", "warning", "error"]
Value = float | int | str | bool
State = Mapping[str, Value]


@dataclass(frozen=True)
class Slider:
    """A number with the positions ``values``, in rising order. ``unit`` is shown after the number."""

    name: str
    label: Text
    values: tuple[float, ...]
    default: float
    unit: Text = EMPTY

    def __post_init__(self) -> None:
        if self.default not in self.values:
            raise ValueError(f"{self.name}: the default {self.default} is not one of {self.values}")

    def say(self, value: Value) -> Text:
        return same(number(float(value))) + (same(" ") + self.unit if self.unit.en else EMPTY)


@dataclass(frozen=True)
class Choice:
    """One of a few named positions."""

    name: str
    label: Text
    options: tuple[tuple[str, Text], ...]
    default: str

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.options)

    def say(self, value: Value) -> Text:
        return dict(self.options)[str(value)]


@dataclass(frozen=True)
class Switch:
    """On or off."""

    name: str
    label: Text
    default: bool = False
    values: tuple[bool, ...] = (False, True)

    def say(self, value: Value) -> Text:
        return Text("on", "开") if value else Text("off", "关")


Knob = Slider | Choice | Switch


def grid(low: float, high: float, count: int, *, log: bool = False) -> tuple[float, ...]:
    """``count`` numbers from ``low`` to ``high``, evenly spaced (in the logarithm), rounded to 6 significant digits."""
    ends = (math.log(low), math.log(high)) if log else (low, high)
    steps = [ends[0] + (ends[1] - ends[0]) * i / (count - 1) for i in range(count)]
    return tuple(float(f"{math.exp(step) if log else step:.6g}") for step in steps)


def seed(count: int = 5) -> Slider:
    """The knob that every lab with chance in it has; the page adds a button "another seed"."""
    return Slider("seed", Text("Seed", "随机种子"), tuple(range(count)), 0)


@dataclass(frozen=True)
class Table:
    """A small table; cells are texts or numbers as they shall be read."""

    columns: tuple[Text, ...]
    rows: tuple[tuple[Text | str, ...], ...]
    caption: Text = EMPTY


@dataclass(frozen=True)
class Outcome:
    """What one position of the knobs gives. ``verdict`` is one or two sentences with the numbers that matter."""

    verdict: Text
    level: Level
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Lab:
    """``compute`` is pure: the same state gives the same outcome, to the last bit. ``light``: under about 100 ms."""

    number: int
    name: str
    title: Text
    about: Text  # what is shown, in two to five sentences
    see: Text  # what you see before anything is moved
    break_it: Text  # break it like this
    then: Text  # what you should now see
    rules: tuple[str, ...]  # the rules that it illustrates, family/slug
    knobs: tuple[Knob, ...]
    compute: Callable[[State], Outcome]
    light: bool = True
    sources: tuple[str, ...] = field(default=())

    def defaults(self) -> dict[str, Value]:
        return {knob.name: knob.default for knob in self.knobs}

    def states(self) -> Iterator[dict[str, Value]]:
        """Every position of all knobs: what an exported page holds."""
        positions: list[tuple[Value, ...]] = [knob.values for knob in self.knobs]
        for values in itertools.product(*positions):
            yield dict(zip((knob.name for knob in self.knobs), values))

    def state_of(self, wanted: Mapping[str, object]) -> dict[str, Value]:
        """A state from outside (a URL, a message): unknown names are dropped, other values become the nearest position."""
        return {knob.name: _nearest(knob, wanted.get(knob.name, knob.default)) for knob in self.knobs}


def _nearest(knob: Knob, wanted: object) -> Value:
    if isinstance(knob, Slider):
        try:
            aim = float(wanted)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return knob.default
        return min(knob.values, key=lambda value: abs(value - aim)) if math.isfinite(aim) else knob.default
    if isinstance(knob, Switch):
        return wanted in (True, "true", "1", 1)
    return str(wanted) if str(wanted) in knob.values else knob.default
