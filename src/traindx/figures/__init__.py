"""Figures as data: said once in Python, drawn by Plotly in the studio, in an exported page and in notebooks."""
from traindx.figures.charts import Axis, Band, Chart, Figure, Grid, Mark, Role, Series, Shade
from traindx.figures.drawing import plotly

__all__ = ["Axis", "Band", "Chart", "Figure", "Grid", "Mark", "Role", "Series", "Shade", "plotly"]
