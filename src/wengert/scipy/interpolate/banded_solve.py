"""Banded linear systems of interpolating splines.

    banded    x with A x = b, the diagonals of A in rows: ab[upper + i - j, j] = A[i, j]

LAPACK takes O(n (lower + upper)^2) time and only the memory of the diagonals.  The derivative is a
system with the conjugate transpose in the same storage (`transposed`), and products of diagonals.
The gradient is zero in the corners of `ab` that are outside of the matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.core.spec import Spec
from wengert._engine.kinds.batching import fronted, ndim_of
from wengert._engine.ops.linalg.linear_solve import matrices
from wengert._engine.ops.shapes import reshape, transpose


def _dense(ab, b, *, lower, upper, transposed=False):
    n = ab.shape[1]
    a = np.zeros((n, n), ab.dtype)
    for i in range(n):
        for j in range(max(0, i - lower), min(n, i + upper + 1)):
            a[i, j] = ab[upper + i - j, j]
    return np.linalg.solve(a.conj().T if transposed else a, b)


@matrices("Look for places that coincide", name="interpolate.banded", oracle=_dense)
def banded(ab, b, *, lower, upper, transposed=False):
    """The columns x with A x = b, or with the conjugate transpose of A; `b` has two axes."""
    if transposed:
        lines = np.zeros_like(ab)
        n = ab.shape[1]
        for r, line in enumerate(ab):  # the one that is `shift` below the diagonal
            shift = r - upper
            here, there = slice(max(0, -shift), n - max(0, shift)), slice(max(0, shift), None)
            lines[lower - shift, there][: max(0, n - abs(shift))] = line[here].conj()
        ab, lower, upper = lines, upper, lower
    if not b.size:
        return np.zeros(b.shape, np.result_type(ab, b))
    return scipy.linalg.solve_banded((lower, upper), ab, b, check_finite=False)


@banded.spec
def _(ab: Spec, b: Spec, **_: Any) -> Spec:
    return Spec(b.shape, np.result_type(ab.dtype, b.dtype, np.float32))


def _padded(x: Any, before: int, after: int) -> Any:
    return np.pad(x, ((before, after), (0, 0)))


def _outer(left: Any, right: Any, lower: int, upper: int) -> Any:
    """The diagonals of left @ adjoint(right)."""
    n = right.shape[0]
    wide = _padded(left, upper, lower)
    conjugate = np.conjugate(right)
    rows = [np.sum(wide[r : r + n] * conjugate, axis=1) for r in range(lower + upper + 1)]
    return np.stack(rows)


def _product(ab: Any, x: Any, lower: int, upper: int, transposed: bool) -> Any:
    """A @ x, or that of the conjugate transpose."""
    n, width = x.shape[0], lower + upper
    total: Any = 0.0
    if transposed:
        wide, ab = _padded(x, upper, lower), np.conjugate(ab)
        for r in range(width + 1):
            total = total + ab[r][:, None] * wide[r : r + n]
        return total
    for r in range(width + 1):
        total = total + _padded(ab[r][:, None] * x, r, width - r)
    return total[upper : upper + n]


@banded.define_vjp
def _banded_vjp(t, out, ab, b, *, lower, upper, transposed=False):
    b_bar = banded(ab, t, lower=lower, upper=upper, transposed=not transposed)
    left, right = (out, b_bar) if transposed else (b_bar, out)
    return -_outer(left, right, lower, upper), b_bar


@banded.define_jvp
def _banded_jvp(dots, out, ab, b, *, lower, upper, transposed=False):
    ab_dot, b_dot = dots
    if ab_dot is not None:
        moved = _product(ab_dot, out, lower, upper, transposed)
        b_dot = -moved if b_dot is None else b_dot - moved
    return banded(ab, b_dot, lower=lower, upper=upper, transposed=transposed)


@banded.batch
def _banded_rows(args, batched, size, **params):
    ab, b = args
    if batched[0] or ndim_of(b) != 3:
        return NotImplemented
    _, n, columns = fronted(b, batched[1], size).shape
    wide = reshape(transpose(b, axes=(1, 0, 2)), shape=(n, size * columns))
    out = reshape(banded(ab, wide, **params), shape=(n, size, columns))
    return transpose(out, axes=(1, 0, 2))


@banded.examples
def _(rng):
    ab = rng.normal(size=(3, 4))
    ab[1] += 4.0
    yield (ab, rng.normal(size=(4, 1))), {"lower": 1, "upper": 1}
    ab = rng.normal(size=(2, 2)) + 1j * rng.normal(size=(2, 2))
    ab[0] += 5.0
    yield (ab, rng.normal(size=(2, 1))), {"lower": 1, "upper": 0, "transposed": True}
