"""The derivatives of a node with respect to the inputs, as arrays with positions known beforehand.

Diagonal     one derivative for each element of the node (diagonal_entries.py)
Scattered    any number for each element, one by one (scattered_entries.py)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .dependency_sets import Numbers


class Diagonal(NamedTuple):
    """For each element of a node one derivative, and its input element; -1 for none.

    clean : whether the derivative is exactly zero where there is none, so that it may be added to
        others; a zero that has been multiplied may be 0 * inf.
    """

    by: Numbers
    dot: Any
    clean: bool = True


class Scattered(NamedTuple):
    """Derivatives of elements of a node.

    at : the element of the node, in C order; -1 for none.
    by : the input element that it is taken with respect to; -1 for none.
    dot : the derivatives, a vector.
    """

    at: Numbers
    by: Numbers
    dot: Any
