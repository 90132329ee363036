"""What the leaves of the diagnosis tree draw: the faulty and the sound program of a rule, trained on the spot."""
from traindx.toys.drawing import Drawing, draw, series_of
from traindx.toys.exporting import compact, compact_all
from traindx.toys.training import Cancelled, Found, Toy, Toys, Trained, Which, leaf_curve

__all__ = ["Cancelled", "Drawing", "Found", "Toy", "Toys", "Trained", "Which", "compact", "compact_all", "draw", "leaf_curve", "series_of"]
