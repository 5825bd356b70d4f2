"""Reductions of sparse arrays.

    Reductions   the mixin: sum, mean, max, min, count_nonzero

Elements that are not stored are zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.errors import ConversionError, at, user_line

from .arithmetic import Arithmetic
from .conversion import coordinates
from .rearrangement import as_dtype, reshaped, scattered


class Reductions(Arithmetic):
    """Mixin: reductions."""

    __slots__ = ()

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The sum of all elements, or along an axis: a dense vector (a row or column of a matrix).

        Sums are in the order of the stored elements.
        """
        if out is not None:
            raise ConversionError(
                f"A.sum(out=...) of a sparse array of tensors: use the result{at(user_line())}."
            )
        array = self.tocsr() if self.structure.is_padded else self
        data = array.data if dtype is None else as_dtype(array.data, np.dtype(dtype))
        if data.dtype.kind == "b":
            data = as_dtype(data, np.dtype(np.int_))
        axis = _axis(axis, self.ndim)
        if axis is None or self.ndim == 1:
            return lookup("sum")(data)
        if array.format == "bsr":
            array = array.tocsr()
            data = as_dtype(array.data, data.dtype)
        kept = 1 - axis
        positions = np.asarray(coordinates(array)[kept], np.intp)
        total = scattered(data, positions, self.shape[kept])
        if not self.is_matrix:
            return total
        count = self.shape[kept]
        return reshaped(total, (1, count) if axis == 0 else (count, 1))

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The mean of all elements, zeros included, or along an axis."""
        if dtype is None and self.dtype.kind in "iub":
            dtype = float
        axis = _axis(axis, self.ndim)
        count = int(np.prod(self.shape)) if axis is None else self.shape[axis]
        return lookup("divide")(self.sum(axis, dtype, out), count)

    def max(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The largest element of all, zeros included unless `explicit`; along an axis: dense."""
        return self._extreme_element("max", "maximum", axis, explicit)

    def min(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The smallest element of all, zeros included unless `explicit`; along an axis: dense."""
        return self._extreme_element("min", "minimum", axis, explicit)

    def _extreme_element(self, name: str, pair: str, axis: Any, explicit: bool) -> Any:
        if axis is not None and self.ndim > 1:
            if explicit:
                raise NotImplementedError(f"A.{name}(axis, explicit=True){at(user_line())}.")
            return lookup(name)(self.toarray(), axis=axis)
        array = (self.tocsr() if self.structure.is_padded else self).canonical()
        count = int(np.prod(self.shape))
        if count == 0 or (explicit and not array.nnz):
            raise ValueError("zero-size array to reduction operation")
        zero = np.zeros((), array.dtype)[()]
        if not array.nnz:
            return zero
        found = lookup(name)(array.data)
        return found if explicit or array.nnz == count else lookup(pair)(found, zero)

    def count_nonzero(self, axis: int | None = None) -> Any:
        """The number of elements that are not zero, of all or along an axis."""
        return self.canonical().with_data(self.canonical().data != 0).sum(axis)


def _axis(axis: Any, ndim: int) -> int | None:
    """The axis, not negative; None for all."""
    if axis is None or (isinstance(axis, tuple) and len(set(axis)) == ndim):
        return None
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} of a sparse array with {ndim} axes{at(user_line())}.")
    return int(axis % ndim)
