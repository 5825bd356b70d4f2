"""Graphs and training histories as text, pictures and pages.

table(y)       the graph as text, with values (node_labels.py)
to_dot(y)      the graph in the DOT language, for graphviz (drawings.py)
to_svg(y)      an SVG drawing of the graph, without further dependencies (drawings.py)
explore(y)     the graph as one HTML page, offline (explorer/)
show_graph(y)  that page in the browser or the notebook; repr_html(y) for a notebook cell

node_labels.py        labels of nodes, used by all of them: title, shape, role; the colors; a table
                      of nodes with their values; statistics of values
layout.py             positions of boxes and edges in an SVG
node_groups.py        loops and branches with their bodies drawn next to them; nodes grouped into
                      boxes, and long sequences split
training_plots.py     plots of a training with matplotlib (imported on its own)
fit_plots.py          plots of fits and of the iterations of solvers, with matplotlib, too
progress.py           a progress bar: with rich on a terminal, as lines, or of tqdm
"""

from wengert._engine.core.lazy_import import public_dir

from .drawings import to_dot, to_svg
from .explorer.explorer import explore, repr_html, show_graph
from .node_labels import statistics, table

__all__ = ["explore", "repr_html", "show_graph", "statistics", "table", "to_dot", "to_svg"]

__dir__ = public_dir(__name__)
