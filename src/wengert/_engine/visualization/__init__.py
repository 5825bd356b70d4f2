"""Looking at graphs and at training.

table(y)       the Wengert list as text, with values
to_dot(y)      the graph in the DOT language, for graphviz and its relatives (dot.py)
to_svg(y)      a picture of the graph; nothing has to be installed (svg.py)
explore(y)     the graph as one HTML page to walk through, offline (explorer.py)
show_graph(y)  that page in the browser or the notebook; repr_html(y) for a notebook's cell

lines.py       what all of them say about a line: title, shape, role
style.py       the colours
layout.py      where the boxes of an SVG go, and how the edges run
opened.py      loops and choices with what they do written out beside them
grouping.py    how lines fold into boxes: gradient levels, scopes, blocks (blocks.py)
pagedata.py    what the page is told; values.py statistics, sources.py the user's lines,
               history.py what a step of a rewrite has changed
page/          the page itself: HTML, CSS and scripts, in the order in explorer.py
flames.py      where the time of a run went, as a picture
training.py    pictures of a training with matplotlib (imported on its own); curves.py its curves
"""

from wengert._engine.core.late import public_dir

from .dot import to_dot
from .explorer import explore, repr_html, show_graph
from .svg import to_svg
from .table import table
from .values import statistics

__all__ = ["explore", "repr_html", "show_graph", "statistics", "table", "to_dot", "to_svg"]

__dir__ = public_dir(__name__)
