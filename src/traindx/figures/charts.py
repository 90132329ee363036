"""What a figure says, without how it is drawn. Numbers may be NaN or infinite: that is shown, not hidden."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from traindx.core.text import EMPTY, Text

# the page gives each a colour that both themes can bear; third and fourth: of several alike, after main and other
Role = Literal["main", "other", "good", "bad", "muted", "third", "fourth"]
ROLES: tuple[Role, ...] = ("main", "other", "good", "bad", "muted", "third", "fourth")


@dataclass(frozen=True)
class Axis:
    """``range`` is in the axis' own units (not in decades), also where it is logarithmic. ``names`` stand at 1, 2, 3 ..."""

    label: Text
    log: bool = False
    range: tuple[float, float] | None = None
    names: tuple[Text, ...] = ()


@dataclass(frozen=True)
class Series:
    """One curve. ``x`` and ``y`` are equally long; the first value that is not finite is marked "diverged at x"."""

    name: Text
    x: Sequence[float]
    y: Sequence[float]
    role: Role = "main"
    kind: Literal["line", "points", "line+points", "bars"] = "line"
    dashed: bool = False

    def diverged_at(self) -> float | None:
        """The x of the first NaN or infinite value, None where there is none."""
        return next((x for x, y in zip(self.x, self.y) if y != y or abs(y) == float("inf")), None)


@dataclass(frozen=True)
class Mark:
    """A line across the chart at one value of an axis, with its name. ``knob``: dragging it sets that knob (x axis only). ``hint``: what
    is said when the pointer rests on the name."""

    axis: Literal["x", "y"]
    at: float
    label: Text
    role: Role = "muted"
    knob: str | None = None
    hint: str = ""


@dataclass(frozen=True)
class Band:
    """A range of the y axis that is usual, with the origin of that claim in its label."""

    low: float
    high: float
    label: Text


@dataclass(frozen=True)
class Chart:
    """Curves over two axes."""

    title: Text
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    band: Band | None = None


Shade = Literal["plain", "main", "other", "good", "bad", "muted"]


@dataclass(frozen=True)
class Grid:
    """Cells in rows: a small matrix, the bits of a number, layers of a network. ``shades`` is like ``cells``, or empty."""

    title: Text
    cells: tuple[tuple[str, ...], ...]
    rows: tuple[Text, ...] = ()
    columns: tuple[Text, ...] = ()
    shades: tuple[tuple[Shade, ...], ...] = ()
    caption: Text = EMPTY


Figure = Chart | Grid
