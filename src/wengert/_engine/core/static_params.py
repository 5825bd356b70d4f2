"""Static parameters of nodes, as hashable data.

Parameters (axis, shape, index, ...) are part of the identity of an operation.  They are numbers,
strings, dtypes, slices, sizes, tuples of these, small arrays, and for some operations a function.

    frozen       a hashable key that distinguishes 1 from True and 1.0: for equality and caches
    normalized   the same parameters with NumPy scalars replaced by Python numbers
    substituted  the same parameters with sizes substituted
    sizes_of     the names of symbolic sizes in them
    spelled      a parameter as text
    stated       the parameters of a node that are not None or False
    listed       the same as text: ``axis=0, keepdims=True``
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .symbolic.dim import Dim, replaced

_PLAIN = (str, type(None), np.dtype, Dim, bytes)


def frozen(x: Any) -> Any:
    """A hashable key of a parameter; equal keys are equivalent parameters."""
    kind = type(x)
    if kind in _PLAIN:
        return x
    if kind is int or kind is float or kind is bool or kind is complex:
        # repr is equal for nan and nan, and distinguishes 0.0 from -0.0
        return (kind, x) if kind is int or kind is bool else (kind, repr(x))
    if kind is tuple or kind is list:  # mostly of integers
        return (kind, *[(int, y) if type(y) is int else frozen(y) for y in x])
    if kind is dict:
        if len(x) < 2:  # the usual case, without sorting
            return (dict, *[(k, frozen(v)) for k, v in x.items()])
        return (
            dict,
            *((k, frozen(v)) for k, v in sorted(x.items(), key=lambda item: str(item[0]))),
        )
    if kind is slice:
        parts = x.start, x.stop, x.step
        return (slice, *[(int, y) if type(y) is int else frozen(y) for y in parts])
    if isinstance(x, np.ndarray | np.generic):
        if x.dtype.kind == "O":
            return IncomparableKey(x)
        return (kind, x.shape, x.dtype.str, x.tobytes())
    try:
        hash(x)
    except TypeError:
        return IncomparableKey(x)
    return (kind, x)


class IncomparableKey:
    """The key of an object that is not comparable: equal to itself only.

    It keeps the object alive, so that its id is not reused.
    """

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IncomparableKey) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


def normalized(x: Any) -> Any:
    """A parameter with NumPy integers and booleans replaced by Python ones."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind(map(normalized, x))
    if kind is dict:
        return {k: normalized(v) for k, v in x.items()}
    if kind is slice:
        return slice(*map(normalized, (x.start, x.stop, x.step)))
    return x.item() if isinstance(x, np.integer | np.bool_) else x


def substituted(x: Any, sizes: Mapping[str, Any]) -> Any:
    """A parameter with sizes substituted; the same object if there are none in it."""
    kind = type(x)
    if kind is Dim:
        return replaced(x, sizes)
    if kind is tuple or kind is list:
        return kind(substituted(part, sizes) for part in x)
    if kind is dict:
        return {k: substituted(v, sizes) for k, v in x.items()}
    if kind is slice:
        return slice(*(substituted(part, sizes) for part in (x.start, x.stop, x.step)))
    at_sizes = getattr(x, "at_sizes", None)  # a body (subgraph.py) or a rule
    return x if at_sizes is None else at_sizes(sizes)


def sizes_of(x: Any) -> frozenset[str]:
    """The names of symbolic sizes in a parameter."""
    kind = type(x)
    if kind is Dim:
        return x.names  # type: ignore[no-any-return]
    if kind is tuple or kind is list:
        return frozenset().union(*map(sizes_of, x))
    if kind is dict:
        return frozenset().union(*map(sizes_of, x.values()))
    if kind is slice:
        return sizes_of((x.start, x.stop, x.step))
    names: frozenset[str] = getattr(x, "size_names", frozenset())
    return names


def spelled(x: Any) -> str:
    """A parameter as text: ``(n, 3)``, ``1:-1``, ``float64``."""
    kind = type(x)
    if kind is tuple:
        parts = [spelled(part) for part in x]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if kind is slice:
        bounds = ["" if b is None else spelled(b) for b in (x.start, x.stop, x.step)]
        return ":".join(bounds if x.step is not None else bounds[:2])
    if kind is Dim or isinstance(x, np.dtype):
        return str(x)
    if x is Ellipsis:
        return "..."
    if isinstance(x, np.ndarray | np.generic):
        return np.array2string(np.asarray(x), separator=", ", threshold=8).replace("\n", "")
    return getattr(x, "__name__", None) or repr(x)


def stated(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that are not None or False, which are defaults."""
    return {k: v for k, v in params.items() if v is not None and v is not False}


def listed(params: Mapping[str, Any]) -> str:
    """These parameters as text: ``axis=0, keepdims=True``."""
    return ", ".join(f"{k}={spelled(v)}" for k, v in stated(params).items())
