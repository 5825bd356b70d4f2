"""Sliding windows of convolutions and poolings: their geometry, and access to their elements.

Along an axis of n elements, padded by `low` elements before and `high` after them, a window of k
elements with dilation d and stride s has

    count = (n + low + high - d (k - 1) - 1) // s + 1

positions, and its tap j at position i is element  i s + j d - low.  Shared by convolutions
(ops/neural/convolution.py) and poolings (ops/neural/pooling.py).

    WindowGeometry  size, stride, padding and dilation of windows along all axes
    counts_of       the number of positions
    windows_of      the elements of all windows, without a copy
    padded, cut     add and remove padding
    added_windows   the transpose of `windows_of`
    merged, split   merge the batch axis into another axis, and back
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.constraints import require_at_least
from wengert._engine.core.symbolic.dim import Dim, spelled

Array = np.ndarray[Any, Any]
Pairs = tuple[tuple[int, int], ...]


class WindowGeometry(NamedTuple):
    """Size, stride, padding and dilation of windows; one entry for each spatial axis.

    window : the lengths of the windows.
    stride : the distance between adjacent windows.
    padding : the number of elements added before and after.
    dilation : the distance between neighboring elements of a window.
    """

    window: tuple[Any, ...]
    stride: tuple[int, ...]
    padding: Pairs
    dilation: tuple[int, ...]

    @property
    def spans(self) -> tuple[Any, ...]:
        """The extent of a window, from its first to its last element, including dilation."""
        return tuple([d * (k - 1) + 1 for k, d in zip(self.window, self.dilation, strict=True)])

    def taps(self) -> list[tuple[int, ...]]:
        """The indices within a window."""
        return list(product(*map(range, self.window)))

    def part(self, tap: Sequence[int], counts: Sequence[int]) -> Any:
        """The slices of a padded array that select one tap of all windows."""
        return (
            ...,
            *[
                slice(j * d, j * d + (n - 1) * s + 1 if n else j * d, s)
                for j, n, s, d in zip(tap, counts, self.stride, self.dilation, strict=True)
            ],
        )


def counts_of(lengths: Sequence[Any], geometry: WindowGeometry, what: str) -> tuple[Any, ...]:
    """The number of windows along each axis.

    Raises
    ------
    ValueError
        A padded axis is shorter than a window.
    """
    counts = []
    for n, span, s, (low, high) in zip(
        lengths, geometry.spans, geometry.stride, geometry.padding, strict=True
    ):
        padded_length = n + (low + high)
        require_at_least(
            padded_length,
            span,
            f"{what} of axes {spelled(tuple(lengths))} with padding {geometry.padding} is shorter "
            f"than its window, which spans {spelled(geometry.spans)}",
        )
        counts.append((padded_length - span) // s + 1)
    return tuple(counts)


def padded(x: Array, padding: Pairs, value: float = 0) -> Array:
    """`x` with padding around its last axes; negative padding removes elements."""
    if not any(map(any, padding)):
        return x
    k = len(padding)
    lengths = [n + low + high for n, (low, high) in zip(x.shape[-k:], padding, strict=True)]
    out = np.full((*x.shape[:-k], *lengths), value, x.dtype)
    inside: Any = [
        slice(max(low, 0), n - max(high, 0))
        for n, (low, high) in zip(lengths, padding, strict=True)
    ]
    remaining: Any = _remaining(x.shape[-k:], padding)
    out[(..., *inside)] = x[(..., *remaining)]
    return out


def _remaining(lengths: Sequence[int], padding: Pairs) -> list[slice]:
    """The slices of an array that remain for negative padding."""
    return [
        slice(max(-low, 0), n - max(-high, 0))
        for n, (low, high) in zip(lengths, padding, strict=True)
    ]


def cut(x: Array, padding: Pairs) -> Array:
    """`x` without the padding: the transpose of `padded`."""
    return padded(x, tuple([(-low, -high) for low, high in padding]))


def windows_of(x: Array, geometry: WindowGeometry) -> Array:
    """A view of all windows of a padded array: position axes, then tap axes, replace the last."""
    k = len(geometry.window)
    counts = counts_of(x.shape[-k:], geometry._replace(padding=((0, 0),) * k), "windows")
    steps = x.strides[-k:]
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:-k], *counts, *geometry.window),
        (
            *x.strides[:-k],
            *[a * s for a, s in zip(steps, geometry.stride, strict=True)],
            *[a * d for a, d in zip(steps, geometry.dilation, strict=True)],
        ),
        writeable=False,
    )


def added_windows(
    parts: Callable[..., Any],
    lengths: Sequence[int],
    geometry: WindowGeometry,
    lead: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Array:
    """The transpose of `windows_of` without padding: `parts[tap]` is added at that tap."""
    padded_lengths = [
        n + low + high for n, (low, high) in zip(lengths, geometry.padding, strict=True)
    ]
    out = np.zeros((*lead, *padded_lengths), dtype)
    for tap in geometry.taps():
        part = parts(tap)
        out[geometry.part(tap, part.shape[len(lead) :])] += part
    return cut(out, geometry.padding)


# ---- batch axes --------------------------------------------------------------------------------


def merged(x: Array, axis: int, inner: int = 1) -> Any:
    """Merge the batch axis, the first, into axis `axis` of the others, inside of `inner` groups."""
    size, *lengths = shape_of(x)
    n = lengths[axis]
    x = lookup("reshape")(x, shape=(size, *lengths[:axis], inner, n // inner, *lengths[axis + 1 :]))
    count = len(lengths) + 2
    order = [*range(1, axis + 2), 0, *range(axis + 2, count)]
    x = lookup("transpose")(x, axes=tuple(order))
    return lookup("reshape")(x, shape=(*lengths[:axis], size * n, *lengths[axis + 1 :]))


def split(x: Array, size: int, axis: int, inner: int = 1) -> Any:
    """The inverse of `merged`."""
    lengths = list(shape_of(x))
    n = _quotient(lengths[axis], size)
    split_shape = (*lengths[:axis], inner, size, n // inner, *lengths[axis + 1 :])
    x = lookup("reshape")(x, shape=split_shape)
    order = [axis + 1, *range(axis + 1), *range(axis + 2, len(split_shape))]
    x = lookup("transpose")(x, axes=tuple(order))
    return lookup("reshape")(x, shape=(size, *lengths[:axis], n, *lengths[axis + 1 :]))


def _quotient(n: Any, divisor: Any) -> Any:
    """The exact quotient n / divisor; 0 if `divisor` is 0."""
    if isinstance(divisor, Dim) or isinstance(n, Dim):
        return n // divisor
    return n // divisor if divisor else 0
