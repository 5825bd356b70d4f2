"""A linear solve as two operations: factorization, and solving with packed factors.

  lu_packed          LAPACK's LU factors of square matrices, and the pivots
  solve_packed       x with op(a) @ x = b, from these factors
  order_of_pivots    the order of rows after the exchanges
  routine            a routine of LAPACK

`solve` does both.  A rewrite, the only user of these operations, splits it if the matrix is
loop-invariant, so that the loop repeats only the second (rewrite/loops/hoist_factorizations.py).
getrf returns L below its unit diagonal, and U; the result is the transpose, which is their order in
memory, to avoid a copy.  Singular matrices have factors too; the solve raises the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.linalg import LinAlgError

from wengert._engine.core.op_facts import Effects
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.batching import on_last_axes

from ..shapes import reshape, transpose
from .factorizations import TRANS, solve_triangular, triangle
from .linear_solve import adjoint, matrices

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size

_HINT = "Use lstsq, or add a multiple of the identity, if it may be singular"
_FLOATS = "fdFD"


def routine(name: str, *arrays: Any) -> Any:
    """A routine of LAPACK for the dtype of some arrays."""
    from scipy.linalg.lapack import get_lapack_funcs  # rarely needed, and slow to import

    (found,) = get_lapack_funcs((name,), arrays)
    return found


@matrices(_HINT, oracle=lambda a: _packed_oracle(a))
def lu_packed(a: Array) -> Any:
    """The LU factors of square matrices, transposed, and LAPACK's pivots, counted from 1."""
    a = np.asarray(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or a.dtype.char not in _FLOATS:
        raise LinAlgError(f"lu: expected square floating-point matrices, got {a.shape} {a.dtype}")
    packed, pivots = np.empty(a.shape, a.dtype), np.empty(a.shape[:-1], np.int32)
    for i in np.ndindex(*a.shape[:-2]):
        if a.size:
            factors, indices, _ = routine("getrf", a[i])(a[i])
            packed[i], pivots[i] = factors.T, indices + 1
    return packed, pivots


lu_packed.effects = Effects(total=True)


@lu_packed.spec
def _(a: Spec) -> Any:
    return Spec(a.shape, a.dtype), Spec(a.shape[:-1], np.dtype(np.int32))


def _packed_oracle(a: Array) -> Any:
    import scipy.linalg

    factorizations = [scipy.linalg.lu_factor(x) for x in a.reshape(-1, *a.shape[-2:])]
    packed = np.stack([lu.T for lu, _ in factorizations]).reshape(a.shape)
    return packed, np.stack([p + 1 for _, p in factorizations]).reshape(a.shape[:-1]).astype(
        np.int32
    )


def _triangles(packed: Any) -> tuple[Any, Any]:
    """L without its unit diagonal, and U."""
    factors = packed.mT
    return triangle(factors, True, strict=True), triangle(factors, False)


def _with_unit_diagonal(low: Array) -> Any:
    return low + np.eye(low.shape[-1], dtype=low.dtype)


def _order_oracle(pivots: Any) -> Any:
    order = np.empty(pivots.shape, np.int64)
    for i in np.ndindex(*pivots.shape[:-1]):
        m = np.eye(pivots.shape[-1])
        for k, other in enumerate(pivots[i] - 1):
            swap = np.eye(len(m))
            swap[[k, other]] = swap[[other, k]]
            m = swap @ m
        order[i] = np.argmax(m, axis=1)
    return order


@matrices(
    "The operand must be pivots",
    name="rows_exchanged",
    discrete=True,
    oracle=lambda pivots: _order_oracle(pivots),
)
def order_of_pivots(pivots: Array) -> Any:
    """The permutation of rows given by LAPACK's pivots."""
    pivots = np.asarray(pivots)
    order = np.empty(pivots.shape, np.int64)
    for i in np.ndindex(*pivots.shape[:-1]):
        rows = np.arange(pivots.shape[-1])
        for k, other in enumerate(pivots[i] - 1):
            rows[[k, other]] = rows[[other, k]]
        order[i] = rows
    return order


@order_of_pivots.spec
def _(pivots: Spec) -> Any:
    return Spec(pivots.shape, np.dtype(np.int64))


@order_of_pivots.examples
def _(rng: np.random.Generator) -> Any:
    yield (np.array([2, 3, 3], np.int32),), {}


on_last_axes(order_of_pivots, 1)


def _permuted_rows(x: Array, order: Array) -> Any:
    return np.take_along_axis(x, order[..., None], axis=-2)


def _inverse_permutation(order: Array) -> Any:
    return np.argsort(order, axis=-1)


@lu_packed.define_vjp
def _lu_packed_vjp(t: tuple[Array | None, ...], out: tuple[Array, ...], a: Array) -> Any:
    (low, up), order = _triangles(out[0]), order_of_pivots(out[1])
    t_low, t_up = _triangles(t[0])
    low = _with_unit_diagonal(low)
    inner = triangle(adjoint(low) @ t_low, True, strict=True) + triangle(t_up @ adjoint(up), False)
    bar = solve_triangular(low, inner, lower=True, trans=2)
    bar = adjoint(solve_triangular(up, adjoint(bar)))
    return (_permuted_rows(bar, _inverse_permutation(order)),)


@lu_packed.define_jvp
def _lu_packed_jvp(dots: list[Array], out: tuple[Array, ...], a: Array) -> Any:
    (low, up), order = _triangles(out[0]), order_of_pivots(out[1])
    low = _with_unit_diagonal(low)
    f = solve_triangular(low, _permuted_rows(dots[0], order), lower=True)
    f = adjoint(solve_triangular(up, adjoint(f), trans=2))
    packed_dot = low @ triangle(f, True, strict=True) + triangle(f, False) @ up
    return packed_dot.mT, None


on_last_axes(lu_packed, 2)


@lu_packed.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 3)) + np.diag([3.0, 0.0, 3.0]),), {}
    yield (rng.normal(size=(2, 3, 3)),), {}
    yield (rng.normal(size=(2, 2)) + 1j * rng.normal(size=(2, 2)),), {}


# ---- substitution ------------------------------------------------------------------------------


@matrices(_HINT, oracle=lambda *args, **how: _solve_oracle(*args, **how))
def solve_packed(packed: Array, pivots: Array, b: Array, *, trans: int = 0) -> Any:
    """x with op(a) @ x = b for matrices b; op: identity, transpose, adjoint (0, 1, 2)."""
    packed, pivots, b = np.asarray(packed), np.asarray(pivots), np.asarray(b)
    if np.any(np.diagonal(packed, axis1=-2, axis2=-1) == 0):
        raise LinAlgError("Singular matrix")
    batch = np.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    x = np.empty((*batch, *b.shape[-2:]), np.result_type(packed, b))
    packed = np.broadcast_to(packed, (*batch, *packed.shape[-2:]))
    pivots = np.broadcast_to(pivots, (*batch, pivots.shape[-1]))
    b = np.broadcast_to(b, x.shape)
    for i in np.ndindex(*batch):
        if x.size:
            run = routine("getrs", packed[i], b[i])
            x[i], _ = run(packed[i].T, pivots[i] - 1, b[i], trans=TRANS[trans])
    return x


@solve_packed.spec
def _(packed: Spec, pivots: Spec, b: Spec, trans: int = 0) -> Any:
    from wengert._engine.core.symbolic import constraints

    batch = constraints.broadcast(packed.shape[:-2], b.shape[:-2])
    return Spec((*batch, *b.shape[-2:]), np.result_type(packed.dtype, b.dtype))


def _solve_oracle(packed: Any, pivots: Any, b: Array, trans: Any = 0) -> Any:
    low, up = np.tril(packed.mT, -1) + np.eye(packed.shape[-1]), np.triu(packed.mT)
    order = np.argsort(order_of_pivots.run(pivots), axis=-1)
    a = np.take_along_axis(low @ up, order[..., None], axis=-2)
    return np.linalg.solve([a, a.mT, np.conj(a.mT)][TRANS[trans]], b)


def _solve_adjoint(packed: Array, pivots: Array, t: Array, trans: int) -> Any:
    """The solution with the adjoint of op(a)."""
    if trans == 1 and packed.dtype.kind == "c":
        return np.conjugate(solve_packed(packed, pivots, np.conjugate(t)))
    return solve_packed(packed, pivots, t, trans=(2, 0, 0)[trans])


@solve_packed.define_vjp
def _solve_packed_vjp(
    t: Array, out: Array, packed: Array, pivots: Array, b: Array, *, trans: int = 0
) -> Any:
    trans = TRANS[trans]
    b_bar = _solve_adjoint(packed, pivots, t, trans)
    a_bar = -(b_bar @ adjoint(out))
    a_bar = (a_bar, a_bar.mT, adjoint(a_bar))[trans]
    (low, up), permuted = _triangles(packed), _permuted_rows(a_bar, order_of_pivots(pivots))
    low_bar = triangle(permuted @ adjoint(up), True, strict=True)
    up_bar = triangle(adjoint(_with_unit_diagonal(low)) @ permuted, False)
    return (low_bar + up_bar).mT, None, b_bar


@solve_packed.define_jvp
def _solve_packed_jvp(
    dots: Any, out: Array, packed: Any, pivots: Any, b: Array, *, trans: Any = 0
) -> Any:
    packed_dot, _, right = dots
    if packed_dot is not None:
        (low, up), (low_dot, up_dot) = _triangles(packed), _triangles(packed_dot)
        a_dot = _permuted_rows(
            low_dot @ up + _with_unit_diagonal(low) @ up_dot,
            _inverse_permutation(order_of_pivots(pivots)),
        )
        product = (a_dot, a_dot.mT, adjoint(a_dot))[TRANS[trans]] @ out
        right = -product if right is None else right - product
    return solve_packed(packed, pivots, right, trans=trans)


@solve_packed.batch
def _solve_packed_batch(args: Any, batched: Any, size: Size, *, trans: Any = 0) -> Any:
    packed, pivots, b = args
    if batched[0] or batched[1] or packed.ndim > 2 or b.ndim != 3:
        return NotImplemented
    _, n, columns = b.shape  # the matrix is not batched: batch elements become columns of b
    wide = reshape(transpose(b, axes=(1, 0, 2)), shape=(n, size * columns))
    result = reshape(solve_packed(packed, pivots, wide, trans=trans), shape=(n, size, columns))
    return transpose(result, axes=(1, 0, 2))


@solve_packed.examples
def _(rng: np.random.Generator) -> Any:
    a, b = rng.normal(size=(3, 3)) + np.diag([3.0, 0.0, 3.0]), rng.normal(size=(3, 2))
    complex_a = a + 1j * rng.normal(size=(3, 3))
    for trans in (0, 1, 2):
        yield (*lu_packed.run(a), b), {"trans": trans}
    for trans in (1, 2):
        yield (*lu_packed.run(complex_a), b + 1j * b[::-1]), {"trans": trans}
