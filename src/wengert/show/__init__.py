"""Looking at graphs and at training.

table(y)      the Wengert list as text, with values
to_dot(y)     the graph in the DOT language, for graphviz and its relatives
to_svg(y)     a picture of the graph; nothing has to be installed

lines.py      what the three say about a line: title, shape, role
layout.py     where the boxes of a picture go, and how the edges run
training.py   pictures of a training with matplotlib (imported on its own)
"""

from .dot import to_dot
from .svg import to_svg
from .table import table

__all__ = ["table", "to_dot", "to_svg"]
