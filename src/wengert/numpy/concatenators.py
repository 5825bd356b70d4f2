"""`r_` and `c_`: concatenation by indexing, with tensors.

    r_    along the first axis; numbers and ranges are pieces
    c_    as columns

NumPy's versions convert every piece to a plain array.  These concatenate tensors if a piece is one,
and otherwise call NumPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.ops import casts, joining, shapes
from wengert._engine.tensor.numpy_dispatch import as_tensor, dtype_of
from wengert._engine.tensor.operand_conversion import operand

from ..errors import ArgumentError, at, user_line
from .joining import concatenate

__all__ = ["c_", "r_"]


class _Concatenator:
    """The type of `r_` and `c_`; holds the defaults of NumPy's directive "axis,ndmin,trans1d"."""

    def __init__(self, theirs: Any, axis: int, ndmin: int, trans1d: int) -> None:
        self._theirs = theirs
        self._defaults = axis, ndmin, trans1d
        self.__doc__ = theirs.__doc__

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if not any(map(joining.holds_handles, items)):
            return self._theirs[key]
        axis, ndmin, trans1d = self._defaults
        if isinstance(items[0], str):
            axis, ndmin, trans1d = self._directive(items[0])
            items = items[1:]
        pieces = [self._piece(item, ndmin, trans1d) for item in items]
        numbers = (int, float, complex)
        kinds = [
            x if type(x) in numbers else dtype_of(p) for x, p in zip(items, pieces, strict=True)
        ]
        dtype = np.result_type(*kinds)
        return concatenate([casts.astype(as_tensor(p), dtype) for p in pieces], axis)

    def __len__(self) -> int:
        return 0

    def _directive(self, text: str) -> tuple[int, int, int]:
        try:
            given = [int(n) for n in text.split(",")]
            axis, ndmin, trans1d = (*given, *self._defaults[len(given) :])
        except ValueError:
            raise ArgumentError(
                f"np.r_[{text!r}, ...] with a tensor: the first entry can be 'axis', 'axis,ndmin' "
                "or 'axis,ndmin,trans1d', all integers; matrices of tensors do not exist. Use "
                f"np.concatenate{at(user_line())}."
            ) from None
        return axis, ndmin, trans1d

    def _piece(self, item: Any, ndmin: int, trans1d: int) -> Any:
        if isinstance(item, slice):
            item, ndim = np.r_[item], -1
        else:
            item = operand(item)
            ndim = len(shape_of(item))
        array = as_tensor(item)
        missing = max(ndmin - array.ndim, 0)
        array = shapes.reshape(array, shape=(1,) * missing + tuple(array.shape))
        if ndim < 0:  # a range
            return array if trans1d == -1 or ndmin < 2 else array.swapaxes(-1, trans1d)
        if trans1d == -1 or ndim >= ndmin:
            return array
        first = trans1d + missing + 1 if trans1d < 0 else trans1d
        axes = list(range(ndmin))
        order = axes[:first] + axes[missing:] + axes[first:missing]
        return shapes.transpose(array, axes=tuple(order))


r_ = _Concatenator(np.r_, 0, 1, -1)
c_ = _Concatenator(np.c_, -1, 2, 0)
