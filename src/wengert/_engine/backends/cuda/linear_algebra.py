"""Linear algebra of larger matrices by the library of a device, with NumPy's rules.

CuPy does not broadcast the operands of `solve`, and takes a stack of right-hand sides for vectors
where NumPy takes it for a matrix; so operands get equal leading axes.  One matrix is factorized
once for all right-hand sides.

    solved               systems
    solved_triangular    triangular systems: one call of trsm for all matrices of a batch
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from wengert._engine.ops.linalg.factorizations import TRANS
from wengert._engine.ops.linalg.linear_solve import solve

from .device import Device


def solved(name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """x with a @ x = b."""
    a, b = map(device.put, operands)
    columns = b[:, None] if b.ndim == 1 else b
    batch, is_one = _batch(a, columns)
    n, k = columns.shape[-2:]
    with device.calling():
        if is_one:
            whole = np.moveaxis(columns, -2, 0).reshape(n, -1)
            x = solve.run(a, whole) if whole.size else whole
            x = np.moveaxis(x.reshape(n, *batch, k), 0, -2)
        else:
            x = solve.run(_spread(a, batch), _spread(columns, batch))
    return x[..., 0] if b.ndim == 1 else x


def solved_triangular(
    name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]
) -> Any:
    """x with op(a) @ x = b, a triangular."""
    a, b = map(device.put, operands)
    columns = b[:, None] if b.ndim == 1 else b
    dtype = np.result_type(a.dtype, b.dtype, np.float32)
    if dtype.char not in "fdFD":
        return NotImplemented
    batch, is_one = _batch(a, columns)
    a, columns = a.astype(dtype, copy=False), columns.astype(dtype, copy=False)
    n, k = columns.shape[-2:]
    lower, unit = bool(params.get("lower", False)), bool(params.get("unit_diagonal", False))
    if not unit and bool(np.any(np.diagonal(a, axis1=-2, axis2=-1) == 0)):
        return NotImplemented  # the host raises the error
    flags = (lower, TRANS[params.get("trans", 0)], unit)
    x = device.empty((*batch, n, k), dtype)
    if is_one and x.size:
        whole = np.moveaxis(columns, -2, 0).reshape(n, -1)
        found = device.triangular_solution(a, whole, *flags)
        x[...] = np.moveaxis(found.reshape(n, *batch, k), 0, -2)
    elif x.size:
        left, right = [device.contiguous(_spread(y, batch)) for y in (a, columns)]
        x[...] = device.triangular_solution(left, right, *flags)
    return x[..., 0] if b.ndim == 1 else x


def _batch(a: Any, columns: Any) -> tuple[tuple[int, ...], bool]:
    """The leading axes of a solution, and whether there is one matrix."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or a.shape[-1] != columns.shape[-2]:
        raise LinAlgError("the sizes of the matrix and of the right-hand side differ")
    return np.broadcast_shapes(a.shape[:-2], columns.shape[:-2]), a.ndim == 2


def _spread(x: Any, batch: tuple[int, ...]) -> Any:
    return np.broadcast_to(x, (*batch, *x.shape[-2:]))
