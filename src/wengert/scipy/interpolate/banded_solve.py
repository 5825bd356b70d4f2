"""Banded linear systems of interpolating splines.

    banded    x with A x = b, A in banded form: ab[upper + i - j, j] = A[i, j]

The solution takes O(n (lower + upper)^2) time, by LAPACK, and the memory of the diagonals.  Its
derivative is a system with the conjugate transpose in the same form (`transposed`), and products of
diagonals.  The gradient is zero in the corners of `ab` that are outside of the matrix.
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


@matrices("Remove coinciding data points", name="interpolate.banded", oracle=_dense)
def banded(ab, b, *, lower, upper, transposed=False):
    """The columns x with A x = b, or with the conjugate transpose of A; `b` has two axes."""
    if transposed:
        adjoint = np.zeros_like(ab)
        n = ab.shape[1]
        for r, diagonal in enumerate(ab):  # `shift` below the main diagonal
            shift = r - upper
            source, target = slice(max(0, -shift), n - max(0, shift)), slice(max(0, shift), None)
            adjoint[lower - shift, target][: max(0, n - abs(shift))] = diagonal[source].conj()
        ab, lower, upper = adjoint, upper, lower
    if not b.size:
        return np.zeros(b.shape, np.result_type(ab, b))
    return scipy.linalg.solve_banded((lower, upper), ab, b, check_finite=False)


@banded.spec
def _(ab: Spec, b: Spec, **_: Any) -> Spec:
    return Spec(b.shape, np.result_type(ab.dtype, b.dtype, np.float32))


def _pad_rows(x: Any, before: int, after: int) -> Any:
    return np.pad(x, ((before, after), (0, 0)))


def _diagonals_of_product(left: Any, right: Any, lower: int, upper: int) -> Any:
    """The diagonals of left @ adjoint(right)."""
    n = right.shape[0]
    padded = _pad_rows(left, upper, lower)
    conjugate = np.conjugate(right)
    rows = [np.sum(padded[r : r + n] * conjugate, axis=1) for r in range(lower + upper + 1)]
    return np.stack(rows)


def _product(ab: Any, x: Any, lower: int, upper: int, transposed: bool) -> Any:
    """A @ x, or adjoint(A) @ x if `transposed`."""
    n, width = x.shape[0], lower + upper
    total: Any = 0.0
    if transposed:
        padded, ab = _pad_rows(x, upper, lower), np.conjugate(ab)
        for r in range(width + 1):
            total = total + ab[r][:, None] * padded[r : r + n]
        return total
    for r in range(width + 1):
        total = total + _pad_rows(ab[r][:, None] * x, r, width - r)
    return total[upper : upper + n]


@banded.define_vjp
def _banded_vjp(t, out, ab, b, *, lower, upper, transposed=False):
    b_bar = banded(ab, t, lower=lower, upper=upper, transposed=not transposed)
    left, right = (out, b_bar) if transposed else (b_bar, out)
    return -_diagonals_of_product(left, right, lower, upper), b_bar


@banded.define_jvp
def _banded_jvp(dots, out, ab, b, *, lower, upper, transposed=False):
    ab_dot, b_dot = dots
    if ab_dot is not None:
        product = _product(ab_dot, out, lower, upper, transposed)
        b_dot = -product if b_dot is None else b_dot - product
    return banded(ab, b_dot, lower=lower, upper=upper, transposed=transposed)


@banded.batch
def _banded_batch(args, batched, size, **params):
    ab, b = args
    if batched[0] or ndim_of(b) != 3:
        return NotImplemented
    _, n, columns = fronted(b, batched[1], size).shape
    padded = reshape(transpose(b, axes=(1, 0, 2)), shape=(n, size * columns))
    out = reshape(banded(ab, padded, **params), shape=(n, size, columns))
    return transpose(out, axes=(1, 0, 2))


@banded.examples
def _(rng):
    ab = rng.normal(size=(3, 4))
    ab[1] += 4.0
    yield (ab, rng.normal(size=(4, 1))), {"lower": 1, "upper": 1}
    ab = rng.normal(size=(2, 2)) + 1j * rng.normal(size=(2, 2))
    ab[0] += 5.0
    yield (ab, rng.normal(size=(2, 1))), {"lower": 1, "upper": 0, "transposed": True}
