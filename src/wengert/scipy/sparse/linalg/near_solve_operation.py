"""Sparse systems whose matrix is near one that is factorized already.

    near_solve       x with op(a) @ x = b, by the factors of another matrix with the same pattern

The stages of implicit Runge-Kutta methods have such systems: their Jacobians are at different
points of one step.  The solution has the accuracy of a factorization, which takes over if the
iteration (preconditioned_gmres.py) has not converged after a few products, or if the matrix may be
nearly singular: its factors decide that.  It does not depend on the other matrix, whose cotangent
is zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.spec import Spec
from wengert._engine.ops.linalg.linear_solve import matrices

from .factors import factor_of
from .matrix_factors import MatrixFactors
from .preconditioned_gmres import SparseProducts, gmres, may_be_singular
from .solve_operation import dense, entry_products, example_matrix, pattern_product, sparse_solve
from .structure import Plain, check_lengths

_ADJOINT = (2, 2, 0)


def _oracle(data: Any, near: Any, indices: Any, indptr: Any, b: Any, *, trans: int = 0) -> Any:
    a = dense(data, indices, indptr)
    return np.linalg.solve([a, a.mT, np.conj(a.mT)][trans], b)


@matrices(
    "A derivative of this step does not exist; that of smaller steps may",
    name="sparse.near_solve",
    oracle=_oracle,
)
def near_solve(
    data: Plain, near: Plain, indices: Plain, indptr: Plain, b: Plain, *, trans: int = 0
) -> Any:
    """x with op(a) @ x = b for a matrix b; op: identity, transpose, adjoint (0, 1, 2).

    near : the entries of the matrix that is factorized.

    A nearly singular matrix is an error, since the solution is a derivative; of one that is
    exactly singular or not finite, which only rejected steps have, it is NaN.
    """
    check_lengths(data, indices, indptr, b)
    if not np.any(b):
        return np.zeros(b.shape, np.result_type(data, b))
    found = _by_iteration(data, near, indices, indptr, b, trans)
    if found is None:
        try:
            factor = factor_of(data, indices, indptr)
        except LinAlgError:
            return np.full(b.shape, np.nan, np.result_type(data, b))
        factor.check_condition()
        found = factor.solve(b, trans)
    return np.ascontiguousarray(found)


def _by_iteration(
    data: Plain, near: Plain, indices: Plain, indptr: Plain, b: Plain, trans: int
) -> Plain | None:
    """The solution by the factors of the matrix near, or None."""
    try:
        factor: MatrixFactors = factor_of(near, indices, indptr)
    except LinAlgError:  # it is singular, which says nothing about the other one
        return None
    if may_be_singular(SparseProducts(data, indices, indptr, 0), factor):
        return None
    products = SparseProducts(data, indices, indptr, trans)
    x = np.zeros(b.shape, np.result_type(data, b))
    for k in range(b.shape[1]):
        found = gmres(products, factor, np.ascontiguousarray(b[:, k]))
        if found is None:
            return None
        x[:, k] = found
    return x


near_solve.host_callback = BY_SCIPY


@near_solve.spec
def _(data: Spec, near: Spec, indices: Spec, indptr: Spec, b: Spec, **options: Any) -> Any:
    return sparse_solve.infer([data, indices, indptr, b], {})


@near_solve.define_vjp
def _near_vjp(
    t: Plain,
    out: Plain,
    data: Plain,
    near: Plain,
    indices: Plain,
    indptr: Plain,
    b: Plain,
    *,
    trans: int = 0,
) -> Any:
    if trans == 1:
        b_bar = np.conjugate(near_solve(data, near, indices, indptr, np.conjugate(t), trans=0))
    else:
        b_bar = near_solve(data, near, indices, indptr, t, trans=_ADJOINT[trans])
    left, right = ((b_bar, out), (np.conjugate(out), np.conjugate(b_bar)), (out, b_bar))[trans]
    bar = entry_products(left, np.conjugate(right), indices, indptr)
    return -bar, None, None, None, b_bar


@near_solve.define_jvp
def _near_jvp(
    dots: Any,
    out: Plain,
    data: Any,
    near: Any,
    indices: Any,
    indptr: Any,
    b: Plain,
    *,
    trans: int = 0,
) -> Any:
    data_dot, right = dots[0], dots[4]
    if data_dot is not None:
        if trans == 2:
            data_dot = np.conjugate(data_dot)
        product = pattern_product(data_dot, indices, indptr, out, trans != 0)
        right = -product if right is None else right - product
    if right is None:  # the solution does not depend on the matrix near
        return np.zeros_like(out)
    return near_solve(data, near, indices, indptr, right, trans=trans)


@near_solve.examples
def _(rng: np.random.Generator) -> Any:
    data, indices, indptr = example_matrix(rng)
    b, near = rng.normal(size=(4, 2)), data + 0.01 * rng.normal(size=9)
    for trans in (0, 1):
        yield (data, near, indices, indptr, b), {"trans": trans}
    complex_data = data + 1j * rng.normal(size=9)
    for trans in (0, 1, 2):
        yield (complex_data, near + 0j, indices, indptr, b + 1j * b[::-1]), {"trans": trans}
    yield (data, rng.normal(size=9), indices, indptr, b), {}
