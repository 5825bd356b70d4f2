"""Statistics of the values of a graph: range, mean, standard deviation, counts of nonfinite values.

    statistics   the statistics of one value
    values_of    the known values of the nodes of a graph

Numbers are returned as text with six digits, for display, and because JSON has no infinity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import Node
from wengert._engine.core.spec import spec_of
from wengert.errors import ArgumentError, WengertError, at, user_line

from .node_labels import brief

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

BINS = 24
Statistics = dict[str, Any]


def statistics(value: Any) -> Statistics:
    """The statistics of a value.

    Parameters
    ----------
    value : array_like

    Returns
    -------
    dict
        ``value`` (itself if small, else its range), ``size``; for arrays with elements ``min``,
        ``max``, ``mean``, ``std`` of the finite elements, counts ``nan``, ``inf``, ``zero``, and
        ``histogram``, counts in equal bins from min to max. For complex numbers, these are the
        statistics of their moduli.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert._engine.visualization.statistics import statistics
    >>> stats = statistics(np.array([0.0, 1.0, 5.0, np.inf, np.nan]))
    >>> stats["min"], stats["max"], stats["mean"], stats["nan"], stats["inf"]
    ('0', '5', '2', 1, 1)
    """
    if isinstance(value, Handle):
        value = value.node.value
    if isinstance(value, tuple) or spec_of(value) is None:
        return {"value": brief(value)}
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        return {"value": brief(value)}
    numbers = np.abs(array) if array.dtype.kind == "c" else array
    numbers = numbers.astype(np.float64).ravel()
    finite = numbers[np.isfinite(numbers)]
    result: Statistics = {
        "value": brief(value),
        "size": int(array.size),
        "nan": int(np.isnan(numbers).sum()),
        "inf": int(np.isinf(numbers).sum()),
        "zero": int((numbers == 0).sum()),
    }
    if array.dtype.kind == "c":
        result["of"] = "moduli"
    if finite.size:
        result.update(_moments(finite))
    return result


def _moments(finite: np.ndarray[Any, Any]) -> Statistics:
    low, high = float(finite.min()), float(finite.max())
    # Scaled, so that the squares do not overflow.
    scale = max(abs(low), abs(high)) or 1.0
    scaled = finite / scale
    result: Statistics = {
        "min": f"{low:.6g}",
        "max": f"{high:.6g}",
        "mean": f"{float(scaled.mean()) * scale:.6g}",
        "std": f"{float(scaled.std()) * scale:.6g}",
    }
    if finite.size > 1 and high > low:
        bins = min(BINS, max(4, int(np.sqrt(finite.size)) * 2))
        bin_index = np.floor((scaled - low / scale) / (high / scale - low / scale) * bins)
        bin_index = np.clip(np.nan_to_num(bin_index), 0, bins - 1).astype(int)
        result["histogram"] = np.bincount(bin_index, minlength=bins).tolist()
    return result


def values_of(
    graph: BaseGraph, values: int | dict[Any, Any] | list[Operand | None] | None = None
) -> dict[Node, Any]:
    """The known values of the nodes of a graph.

    Parameters
    ----------
    graph : Graph
    values : mapping from Node or Tensor to array, or sequence, optional
        A sequence is aligned with ``graph.nodes``, with None for unknown values. Nodes of an eager
        graph have values of their own.

    Raises
    ------
    ArgumentError
        A sequence of another length, or a key that is not a node.
    """
    known: dict[Node, Any] = {}
    for node in graph.nodes:
        try:
            value = node.value
        except WengertError:  # its array was overwritten
            continue
        if value is not None:
            known[node] = value
    if values is None:
        return known
    if isinstance(values, Mapping):
        known.update({_key(k): v for k, v in values.items()})
    elif isinstance(values, Sequence) and len(values) == len(graph):
        pairs = zip(graph.nodes, values, strict=True)
        known.update({n: v for n, v in pairs if v is not None})
    else:
        text = f"{len(values)} values" if isinstance(values, Sequence) else repr(values)[:60]
        raise ArgumentError(
            f"values= is {text} for a graph of {len(graph)} nodes. Pass a dict from nodes to "
            f"arrays, or a list with an entry for each of graph.nodes{at(user_line())}."
        )
    return known


def _key(key: Any) -> Node:
    if isinstance(key, Handle):
        return key.node
    if isinstance(key, Node):
        return key
    raise ArgumentError(
        f"a key of values= is {key!r:.60}. Use nodes of the graph, or tensors{at(user_line())}."
    )
