"""Products with sparse matrices on a device (ops/sparse_products.py).

The elements of a product are gathered and multiplied, and added to rows or columns in the order of
the entries by the segments of scatter_kernels.py: the same bits in each run.

    sparse_product    the result of `csr_matmul` and its relatives
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .device import Device
from .scatter_kernels import OutOfRange, added_at, numbers_of, serves


def sparse_product(
    name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]
) -> Any:
    """The result of an operation; NotImplemented for dtypes without a kernel."""
    *arrays, indices, indptr = [device.put(x) for x in operands]
    if not all(serves(x.dtype) for x in arrays):
        return NotImplemented
    own = params.get("of_op", params)
    axis = int(own.get("stacked", False))
    pattern = _DevicePattern(device, indices, indptr, axis)
    if name == "csr_cotangents":
        t, data, v = arrays
        pattern.check(v.shape[0])
        return pattern.sampled(t, v), pattern.transposed(data, t, v.shape[0])
    first, second = arrays
    pattern.check(own["columns"] if "columns" in own else second.shape[axis])
    if name == "csr_matmul":
        return pattern.product(first, second)
    if name == "csr_sampled_matmul":
        return pattern.sampled(first, second)
    return pattern.transposed(first, second, own["columns"])


class _DevicePattern:
    """The entries of a sparse matrix.

    Parameters
    ----------
    axis : int
        The axis of rows in operands, after those of a batch.
    """

    def __init__(self, device: Device, indices: Any, indptr: Any, axis: int) -> None:
        self.device, self.axis = device, axis
        self.columns, self.starts = indices, indptr
        entries = np.arange(len(indices), like=indices)
        self.rows = np.searchsorted(indptr, entries, side="right") - 1

    def check(self, count: int) -> None:
        """Raise an error if it is not that of a matrix of so many columns."""
        n, starts, columns = len(self.columns), self.starts, self.columns
        if not len(starts):
            raise OutOfRange
        bad = (starts[:1] != 0) | (starts[-1:] != n)
        bad = np.any(bad) | np.any(starts[1:] < starts[:-1])
        if bool(bad | np.any((columns < 0) | (columns >= count))):
            raise OutOfRange

    def product(self, data: Any, v: Any) -> Any:
        """A @ v."""
        return self._added(data, v, self.columns, self.rows, len(self.starts) - 1)

    def transposed(self, data: Any, u: Any, count: int) -> Any:
        """A.T @ u."""
        return self._added(data, u, self.rows, self.columns, count)

    def sampled(self, u: Any, v: Any) -> Any:
        """The elements of u @ v.T at the entries."""
        found = np.take(u, self.rows, axis=self.axis) * np.take(v, self.columns, axis=self.axis)
        return found if u.ndim == 1 + self.axis else np.sum(found, axis=-1, dtype=found.dtype)

    def _added(self, data: Any, v: Any, read: Any, written: Any, count: int) -> Any:
        factors = np.take(v, read, axis=self.axis)
        values = (data if v.ndim == 1 + self.axis else data[..., None]) * factors
        shape = (*v.shape[: self.axis], count, *v.shape[self.axis + 1 :])
        positions = np.take(numbers_of(self.device, shape), written, axis=self.axis)
        given = values.astype(v.dtype, copy=False).reshape(-1)
        return added_at(self.device, None, given, positions.reshape(-1), shape, True)
