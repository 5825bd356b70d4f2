"""Errors of lookups by number (rows of an embedding table, classes) in graphs.

In eager mode the numbers are checked, and one that is out of range raises with the name of the
function.  In a graph they are known when it runs, and NumPy reports only that an index is out of
bounds.  So the node of the lookup records its function, and its error is the eager one.

    places       numbers as an index; a negative number is out of range, not counted from the end
    say          record the function of a node
    complaint    the error of such a node
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.errors import ArgumentError, at

from .handle import Handle
from .node import Node

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size

_KEY = "numbered"
_NUMPYS = re.compile(r"index (-?\d+) is out of bounds for axis \d+ with size (\d+)")


def places(numbers: Array, count: Size) -> Any:
    """Numbers as an index of an axis of that length; negative ones stay out of range.

    Parameters
    ----------
    numbers : Tensor
        Integers that a graph computes.
    count : Length
    """
    if numbers.dtype.kind == "u":
        return numbers
    if numbers.dtype.itemsize < np.dtype(np.int64).itemsize:
        numbers = numbers.astype(np.int64)
    return np.where(numbers < 0, numbers - count, numbers)


def say(found: Array, what: str, units: str, advice: str = "Renumber them") -> Any:
    """Record the kind of lookup at the node of a tensor; return the tensor.

    Parameters
    ----------
    found : Tensor
    what : str
        The function: ``embedding``.
    units : str
        The numbered things: ``rows``.
    advice : str
        The remedy; ``{}`` in it is replaced by the number.
    """
    if isinstance(found, Handle) and found.node.value is None:
        said = {**found.node.metadata, _KEY: (what, units, advice)}
        found.node.note(metadata=said)
    return found


def complaint(node: Node, error: Exception) -> ArgumentError | None:
    """The error for a node whose index is out of range; None if nothing is recorded."""
    said = node.metadata.get(_KEY)
    known = _NUMPYS.search(str(error))
    if said is None or known is None:
        return None
    what, units, advice = said
    number, count = map(int, known.groups())
    number += count if number < 0 else 0
    return ArgumentError(
        f"{what}{f' in {node.scope}' if node.scope else ''} was asked for number {number} of "
        f"{count} {units}, counted from 0. {advice.format(number)}{at(node.where)}."
    )
