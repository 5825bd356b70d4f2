"""Linear systems, inverse, pseudoinverse; forward mode for rules of linear algebra.

Forward mode for the rules of linear algebra.

The rules of determinants and of equal eigenvalues differentiate functions, with functions that
autodiff, a higher layer, registers here.

Linear algebra: linear systems, inverse, pseudoinverse.

    matrices    the decorator that registers a matrix operation, and converts errors of LAPACK
    adjoint     conjugate transpose
    solve, inv, pinv, matrix_rank

Determinants are in ops/linalg/determinants.py, factorizations in ops/linalg/factorizations.py,
eigenvalues and singular values in ops/linalg/eigen_svd.py.  Matrices are in the last two axes.
Rules are composed of these operations, so derivatives of every order exist; for complex matrices
the gradient is the direction of steepest ascent.  Most rules are from M. B. Giles, "Collected
matrix derivative results for forward and reverse mode algorithmic differentiation", 2008.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.linalg import LinAlgError

from wengert._engine.core.device_arrays import host_values
from wengert._engine.core.handle import shape_of
from wengert._engine.core.op import register
from wengert._engine.core.op_facts import InverseProduct, Remedy, facts
from wengert._engine.core.spec import example_of, spec_of
from wengert._engine.kinds.batching import deepened, ndim_of, on_last_axes, row_ranks
from wengert._engine.kinds.opaque import Opaque
from wengert._engine.ops import cost_model
from wengert._engine.ops.shapes import reshape, transpose
from wengert.errors import MatrixError, SingularError, at, user_line

if TYPE_CHECKING:
    from wengert._engine.core.spec import Spec
    from wengert._engine.core.types import Array, Size


class ForwardMode:
    """The functions registered by `autodiff`.

    Attributes
    ----------
    jvp : callable
        `autodiff.jvp_vjp.jvp`: value and tangent of a function.
    pushforward : callable
        Tangents of nodes from those of other nodes (`autodiff/forward.py`).
    """

    jvp: Callable[..., Any]
    pushforward: Callable[..., Any]


_UNROLLED_ROWS = 4  # of matrices whose elements native code has in registers


class MatrixOperation(Opaque):
    """An operation of LAPACK; created by the decorator `matrices`.

    Attributes
    ----------
    prepare : callable or None
        Converts arbitrary operands to valid ones, for example Hermitian ones for an operation that
        reads one triangle.  The tests differentiate the composition.
    """

    prepare: Callable[..., Any] | None = None

    def example(self, spec: Spec) -> Any:
        """An identity matrix, which is a valid operand of all these operations."""
        x = example_of(spec)
        return x * np.eye(*x.shape[-2:], dtype=x.dtype) if np.ndim(x) > 1 else x


def matrices(
    hint: str, *, prepare: Callable[..., Any] | None = None, **options: Any
) -> Callable[[Callable[..., Any]], MatrixOperation]:
    """Register a function as an operation on matrices (a decorator).

    Parameters
    ----------
    hint : str
        The advice in the error message when LAPACK fails.
    prepare : callable, optional
        See `MatrixOperation`.
    """

    def register_operation(run: Callable[..., Any]) -> MatrixOperation:
        @functools.wraps(run)
        def checked(*args: Any, **params: Any) -> Any:
            try:
                return run(*args, **params)
            except MatrixError:
                raise
            except ValueError as error:  # LinAlgError, or SciPy's error for nonfinite input
                if not (isinstance(error, LinAlgError) or _are_not_finite(args)):
                    raise
                specs = ", ".join(str(spec_of(np.asarray(host_values(x)))) for x in args)
                kind = SingularError if "ingular" in str(error) else MatrixError
                raise kind(
                    f"{run.__name__} of {specs}: {str(error).rstrip('.')}. {hint}{at(user_line())}."
                ) from error

        op = MatrixOperation(checked, trusted=True, **options)
        op.prepare = prepare
        return register(op)

    return register_operation


def _are_not_finite(args: Any) -> bool:
    """Whether an operand has NaN or infinity."""
    return not all(np.isfinite(x).all() for x in args)


def are_finite(a: Array) -> Any:
    """Whether no element is NaN or infinite; of arrays of NumPy and of devices."""
    flags = np.isfinite(a)
    return np.logical_and.reduce(flags, None) if type(flags) is np.ndarray else flags.all()


def finite(a: Array) -> Any:
    """The matrices, checked to be finite: otherwise LAPACK's iterations may not terminate.

    Raises
    ------
    LinAlgError
        A matrix has NaN or infinity; the same error as in NumPy's `eig`.
    """
    if not are_finite(a):
        raise LinAlgError("Array must not contain infs or NaNs")
    return a


def adjoint(x: Any) -> Any:
    """The conjugate transpose of the matrices in the last two axes."""
    return np.conjugate(x.mT) if x.dtype.kind == "c" else x.mT


def real_dtype(x: Array) -> Any:
    """The dtype of the real part."""
    return np.finfo(x.dtype).dtype


def hermitian(x: Array) -> Any:
    """The Hermitian part."""
    return (x + adjoint(x)) * 0.5


def trace_of(x: Any, y: Any) -> Any:
    """The trace of x @ y."""
    return np.sum(x * y.mT, axis=(-2, -1))


def spread(x: Any) -> Any:
    """x, one number for each matrix, with two trailing axes of length one."""
    return x[..., None, None]


def solving(op: Any) -> Any:
    """The batching rule of an operation `op(a, b)` that solves for vectors or matrices b."""

    def rule(args: list[Array], batched: list[bool], size: int, **params: Any) -> Any:
        a, b = args
        rank_of_a, rank_of_b = row_ranks(args, batched)
        vector = rank_of_b == 1
        if not batched[0] and rank_of_a == 2 and rank_of_b <= 2:
            return _with_one_matrix(op, a, b, vector, size, **params)
        b = b[..., None] if vector else b
        ndim = max(rank_of_a, rank_of_b + vector)
        a, b = (
            deepened(x, ndim) if is_batched else x
            for x, is_batched in zip((a, b), batched, strict=True)
        )
        out = op(a, b, **params)
        return out[..., 0] if vector else out

    return op.batch(rule)


def _with_one_matrix(op: Any, a: Any, b: Any, vector: bool, size: int, **params: Any) -> Any:
    """Solve with one matrix that is not batched: batch elements become columns of b."""
    if vector:
        return op(a, b.mT, **params).mT
    _, n, columns = b.shape
    wide = reshape(transpose(b, axes=(1, 0, 2)), shape=(n, size * columns))
    out = reshape(op(a, wide, **params), shape=(n, size, columns))
    return transpose(out, axes=(1, 0, 2))


# ---- linear systems ----------------------------------------------------------------------------


def _product(a: Any, x: Any) -> Any:
    """The right-hand side of a system with solution x."""
    return (a @ x[..., None])[..., 0] if x.ndim == a.ndim - 1 else a @ x


def _solution(a: Any, b: Any) -> Any:
    """The solution for a right-hand side with the shape of the solution."""
    return solve(a, b[..., None])[..., 0] if b.ndim == a.ndim - 1 else solve(a, b)


@facts(
    flops=cost_model.cubes(2 / 3),
    quotient=InverseProduct(1, _product, _solution),
    remedy=Remedy(outside="The matrix is singular, or nearly so: add a multiple of the identity"),
)
@matrices("Use lstsq, or add a multiple of the identity, if it may be singular", oracle="numpy")
def solve(a: Array, b: Array) -> Any:
    """x with a @ x = b; b is a vector if it has one axis, else matrices."""
    return np.linalg.solve(a, b)


@solve.define_vjp
def _solve_vjp(t: Array, out: Array, a: Array, b: Array) -> Any:
    if b.ndim == 1:
        b_bar = solve(adjoint(a), t[..., None])
        x = out[..., None]
        n = shape_of(x)[0]
        if isinstance(n, int) and n <= _UNROLLED_ROWS:  # no loop of a product
            return -(b_bar * adjoint(x)), b_bar[..., 0]
        return -(b_bar @ adjoint(x)), b_bar[..., 0]
    b_bar = solve(adjoint(a), t)
    return -(b_bar @ adjoint(out)), b_bar


def solution_tangent(
    solve: Callable[[Any, Any], Any], dots: Sequence[Array | None], out: Array, a: Array, b: Array
) -> Any:
    """The tangent of solve(a, b), by the same solver: that of b, less that of a times it."""
    a_dot, b_dot = dots
    vector = b.ndim == 1
    right = None if b_dot is None else b_dot[:, None] if vector else b_dot
    if a_dot is not None:
        product = a_dot @ (out[..., None] if vector else out)
        right = -product if right is None else right - product
    x_dot = solve(a, right)
    return x_dot[..., 0] if vector else x_dot


@solve.define_jvp
def _solve_jvp(dots: list[Array | None], out: Array, a: Array, b: Array) -> Any:
    return solution_tangent(solve, dots, out, a, b)


solving(solve)


@solve.examples
def _(rng: np.random.Generator) -> Any:
    yield (regular(rng, 3), rng.normal(size=3)), {}
    yield (regular(rng, 3), rng.normal(size=(3, 2))), {}
    yield (regular(rng, 2, 1, 3), rng.normal(size=(4, 3, 2))), {}
    yield (regular(rng, 2, 3), rng.normal(size=3)), {}


def regular(rng: np.random.Generator, *shape: Any) -> Any:
    """Well-conditioned square matrices; the last length is that of both axes."""
    n = shape[-1]
    return rng.normal(size=(*shape, n)) + 3.0 * np.eye(n)


@facts(
    flops=cost_model.cubes(2.0),
    remedy=Remedy(outside="The matrix is singular, or nearly so: add a multiple of the identity"),
)
@matrices("Use pinv, or solve or lstsq for a right-hand side", oracle="numpy")
def inv(a: Array) -> Any:
    """The inverse."""
    return np.linalg.inv(a)


@inv.define_vjp
def _inv_vjp(t: Array, out: Array, a: Array) -> Any:
    h = adjoint(out)
    return (-(h @ t @ h),)


@inv.define_jvp
def _inv_jvp(dots: list[Array], out: Array, a: Array) -> Any:
    return -(out @ dots[0] @ out)


on_last_axes(inv, 2)


@inv.examples
def _(rng: np.random.Generator) -> Any:
    yield (regular(rng, 3),), {}
    yield (regular(rng, 2, 2),), {}


# ---- matrices of any rank ----------------------------------------------------------------------


@facts(flops=cost_model.cubes(21.0))
@matrices("Check it for NaN and infinity", oracle="numpy")
def pinv(a: Any, *, rtol: Any = None, hermitian: Any = False) -> Any:
    """The pseudoinverse; differentiable among matrices of the same rank.

    Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems
    whose variables separate", SIAM J. Numer. Anal. 10 (1973), 413-432.
    """
    cutoff: dict[str, Any] = {} if rtol is None else {"rcond": np.asarray(rtol)}
    return np.linalg.pinv(finite(a), hermitian=hermitian, **cutoff)


@pinv.compose
def _(a: Array, *, rtol: float | None = None, hermitian: bool = False) -> Any:
    if not hermitian or np.ndim(rtol or 0.0):
        return NotImplemented
    w, v = np.linalg.eigh(a)
    size = np.abs(w)
    is_large = size > np.max(size, axis=-1, keepdims=True, initial=0.0) * (
        1e-15 if rtol is None else rtol
    )
    inverted = np.where(is_large, 1.0 / np.where(is_large, w, 1.0), 0.0)
    return (v * inverted[..., None, :]) @ adjoint(v)


@pinv.define_vjp
def _pinv_vjp(t: Array, out: Array, a: Array, *, rtol: Any = None, hermitian: bool = False) -> Any:
    h, th = adjoint(out), adjoint(t)
    outside = th - a @ (out @ th)  # t^H outside the range of a
    remainder = th - (th @ out) @ a
    return (-(h @ t @ h) + outside @ (out @ h) + (h @ out) @ remainder,)


@pinv.define_jvp
def _pinv_jvp(
    dots: list[Array], out: Array, a: Array, *, rtol: float | None = None, hermitian: bool = False
) -> Any:
    h, dh = adjoint(out), adjoint(dots[0])
    outside = dh - (dh @ a) @ out
    remainder = dh - out @ (a @ dh)
    return -(out @ dots[0] @ out) + (out @ h) @ outside + remainder @ (h @ out)


on_last_axes(pinv, 2)


@pinv.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(4, 2)),), {}
    yield (rng.normal(size=(2, 2, 3)),), {}


@facts(flops=cost_model.cubes(4 / 3))
@matrices("Check it for NaN and infinity", oracle="numpy", discrete=True)
def matrix_rank(a: Any, *, tol: Any = None, hermitian: Any = False, rtol: Any = None) -> Any:
    """The number of singular values larger than the tolerance."""
    return np.linalg.matrix_rank(finite(a), tol, hermitian, rtol=rtol)


@matrix_rank.batch
def _matrix_rank_batch(args: Any, batched: Any, size: Size, **params: Any) -> Any:
    # A vector also has a rank, and a batch of vectors would be mistaken for a matrix.
    return matrix_rank(args[0], **params) if ndim_of(args[0]) > 2 else NotImplemented


@matrix_rank.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 2)) @ rng.normal(size=(2, 4)),), {}
    yield (rng.normal(size=(2, 2, 2)),), {}
