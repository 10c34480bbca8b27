"""The HTML report: `render` makes the page, `figures` its charts as plain plotly JSON."""

from api.report.figures import Figure, figures
from api.report.page import render

__all__ = ["Figure", "figures", "render"]
