"""Errors of lookups by integers (rows of an embedding table, classes) in graphs.

In eager mode the integers are checked, and one that is out of range raises an error that names the
function.  In a graph they are known when it runs, and NumPy reports only that an index is out of
bounds.  So the node of the lookup records its function, from which the same error is made.

    lookup_index    integers as an index; a negative one is out of range, not counted from the end
    note_lookup     record the function of a lookup at its node
    lookup_error    the error of such a node
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
_OUT_OF_BOUNDS = re.compile(r"index (-?\d+) is out of bounds for axis \d+ with size (\d+)")


def lookup_index(numbers: Array, count: Size) -> Any:
    """Integers as an index of an axis of that length; negative ones stay out of range.

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


def note_lookup(result: Array, what: str, units: str, advice: str = "Renumber them") -> Any:
    """Record the function of a lookup at the node of its result; return the result.

    Parameters
    ----------
    result : Tensor
    what : str
        The function: ``embedding``.
    units : str
        What the integers count: ``rows``.
    advice : str
        The remedy; ``{}`` in it is replaced by the integer.
    """
    if isinstance(result, Handle) and result.node.value is None:
        metadata = {**result.node.metadata, _KEY: (what, units, advice)}
        result.node.note(metadata=metadata)
    return result


def lookup_error(node: Node, error: Exception) -> ArgumentError | None:
    """The error for a node whose index is out of range; None if it is not a noted lookup."""
    lookup = node.metadata.get(_KEY)
    match = _OUT_OF_BOUNDS.search(str(error))
    if lookup is None or match is None:
        return None
    what, units, advice = lookup
    number, count = map(int, match.groups())
    number += count if number < 0 else 0
    return ArgumentError(
        f"{what}{f' in {node.scope}' if node.scope else ''} was asked for number {number} of "
        f"{count} {units}, counted from 0. {advice.format(number)}{at(node.where)}."
    )
