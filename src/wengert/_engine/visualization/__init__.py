"""Graphs and training histories as text, pictures and pages.

table(y)       the graph as text, with values (text_table.py)
to_dot(y)      the graph in the DOT language, for graphviz (dot.py)
to_svg(y)      an SVG drawing of the graph, without further dependencies (svg.py)
explore(y)     the graph as one HTML page, offline (explorer/)
show_graph(y)  that page in the browser or the notebook; repr_html(y) for a notebook cell

node_labels.py        labels of nodes, used by all of them: title, shape, role
colors.py             the colors
layout.py             positions of boxes and edges in an SVG
expand_bodies.py      loops and branches with their bodies drawn next to them
statistics.py         statistics of values; source_text.py source text of the user's lines
training_plots.py     plots of a training with matplotlib (imported on its own)
training_curves.py    the curves in them
progress.py           a progress bar; rich_progress.py the one on a terminal, with rich
fit_plots.py           plots of fits and of the iterations of solvers, with matplotlib, too
"""

from wengert._engine.core.lazy_import import public_dir

from .dot import to_dot
from .explorer.explorer import explore, repr_html, show_graph
from .statistics import statistics
from .svg import to_svg
from .text_table import table

__all__ = ["explore", "repr_html", "show_graph", "statistics", "table", "to_dot", "to_svg"]

__dir__ = public_dir(__name__)
