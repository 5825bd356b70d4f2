"""Functions of matrices: the exponential, the polar factor, the nuclear norm.

The exponential of a square matrix.

    expm    SciPy's; its directional derivative is a block of a larger exponential

C. Van Loan, "Computing integrals involving the matrix exponential", IEEE Transactions on Automatic
Control 23 (1978), 395-404.

The unitary polar factor of a matrix, and the nuclear norm.

    lyapunov        x with p @ x + x @ p = q, p Hermitian
    polar_factor    U @ adjoint(V) of the singular value decomposition
    nuclear_norm    the sum of the singular values

The rules divide by sums of singular values, never by differences, so they are correct to every
order where singular values are equal (N. J. Higham, Functions of Matrices, 2008, chapter 8; G. A.
Watson, "Characterization of the subdifferential of some matrix norms", Linear Algebra Appl. 170
(1992), 33-45).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.linalg import LinAlgError

from wengert._engine.core.op_facts import UNDERFLOW, facts
from wengert._engine.kinds.batching import on_last_axes
from wengert._engine.ops import cost_model
from wengert._engine.ops.creation import identity

from .condition import accepted
from .linear_solve import adjoint, finite, hermitian, matrices, real_dtype, solve

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


@facts(flops=cost_model.cubes(20.0), zero_slope=UNDERFLOW)
@matrices("Check it for NaN and infinity", oracle=lambda a: _expm_series(a))
def expm(a: Array) -> Any:
    """The exponential of a square matrix."""
    return scipy.linalg.expm(a)


def _derivative_of_expm(a: Array, direction: Array) -> Any:
    """The directional derivative, from the exponential of [[a, direction], [0, a]]."""
    n = a.shape[-1]
    unit = identity(2 * n, real_dtype(a))
    first, second = unit[:, :n], unit[:, n:]
    block = first @ a @ first.T + second @ a @ second.T + first @ direction @ second.T
    return first.T @ expm(block) @ second


@expm.define_vjp
def _expm_vjp(t: Array, out: Array, a: Array) -> Any:
    return (_derivative_of_expm(adjoint(a), t),)


@expm.define_jvp
def _expm_jvp(dots: list[Array], out: Array, a: Array) -> Any:
    return _derivative_of_expm(a, dots[0])


def _expm_series(a: Array) -> Any:
    """The exponential by scaling and squaring of the power series."""
    small = a / 1024.0
    term = total = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    for k in range(1, 12):
        term = term @ small / k
        total = total + term
    return np.linalg.matrix_power(total, 1024)


on_last_axes(expm, 2)


@expm.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 2)),), {}


RANK = "The unitary factor of a rank-deficient matrix has no derivative"


# ---- the Lyapunov equation ---------------------------------------------------------------------


def _by_kronecker(p: Any, q: Any) -> Any:
    n = p.shape[-1]
    unit = np.eye(n)
    operator = np.einsum("...ik,jl->...ijkl", p, unit) + np.einsum("ik,...lj->...ijkl", unit, p)
    right = q.reshape((*q.shape[:-2], n * n, 1))
    return np.linalg.solve(operator.reshape((*p.shape[:-2], n * n, n * n)), right).reshape(q.shape)


@matrices(
    f"The sum of two eigenvalues of p must not be zero. {RANK}",
    oracle=_by_kronecker,
    prepare=lambda p, q: (hermitian(p), q),
)
def lyapunov(p: Array, q: Array) -> Any:
    """x with p @ x + x @ p = q, for Hermitian p."""
    v, sums, fits = _sums(finite(p))
    if not np.all(fits):
        raise LinAlgError("the sum of two eigenvalues is zero, or nearly so")
    return v @ ((adjoint(v) @ q @ v) / sums) @ adjoint(v)


def _sums(p: Array) -> Any:
    """Eigenvectors, the sums of pairs of eigenvalues, and whether these are nonzero."""
    w, v = np.linalg.eigh(p)
    sums = w[..., :, None] + w[..., None, :]
    limit = np.finfo(w.dtype).eps * np.max(np.abs(w), axis=-1, initial=0.0) * w.shape[-1]
    return v, sums, np.abs(sums) > limit[..., None, None]


@lyapunov.compose
def _(p: Any, q: Any) -> Any:
    v, sums, fits = _sums(p)
    return v @ ((adjoint(v) @ q @ v) / accepted(sums, fits)) @ adjoint(v)


@lyapunov.define_vjp
def _lyapunov_vjp(t: Array, out: Array, p: Any, q: Any) -> Any:
    z = lyapunov(p, t)
    product = z @ adjoint(out)
    adjoint_product = adjoint(out) @ z
    return -hermitian(product + adjoint_product), z


@lyapunov.define_jvp
def _lyapunov_jvp(dots: Any, out: Array, p: Any, q: Any) -> Any:
    p_dot, right = dots
    if p_dot is not None:
        p_dot = hermitian(p_dot)
        product = p_dot @ out + out @ p_dot
        right = -product if right is None else right - product
    return lyapunov(p, right)


on_last_axes(lyapunov, 2)


@lyapunov.examples
def _(rng: np.random.Generator) -> Any:
    yield (hermitian(rng.normal(size=(2, 2))) + 4.0 * np.eye(2), rng.normal(size=(2, 2))), {}


# ---- the unitary factor ------------------------------------------------------------------------


def _by_newton(a: Array) -> Any:
    """The polar factor by Newton's iteration (Higham): x <- (x + adjoint(inv(x))) / 2."""
    if a.shape[-1] > a.shape[-2]:
        return adjoint(_by_newton(adjoint(a)))
    q, u = np.linalg.qr(a)
    for _ in range(60):
        u = 0.5 * (u + np.conj(np.linalg.inv(u).mT))
    return q @ u


def _by_singular_values(a: Array) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    largest = np.max(s, axis=-1, keepdims=True, initial=0.0)
    is_nonzero = s > np.finfo(s.dtype).eps * max(a.shape[-2:]) * largest
    return (u * is_nonzero[..., None, :]) @ vh


@matrices(RANK, oracle=_by_newton)
def polar_factor(a: Array) -> Any:
    """U @ adjoint(V) of the singular value decomposition.

    Singular values that are zero up to rounding count as zero, and their vectors are omitted.
    """
    return _by_singular_values(finite(a))


polar_factor.compose(_by_singular_values)


def _derivative_of_tall(x: Any, u: Any, a: Any) -> Any:
    """The derivative of the factor `u` of a tall `a` in direction `x`; it is self-adjoint."""
    p = hermitian(adjoint(u) @ a)
    projection = adjoint(u) @ x
    rotation = lyapunov(p, projection - adjoint(projection))
    return u @ rotation + adjoint(solve(p, adjoint(x - u @ projection)))


def _derivative(x: Array, u: Array, a: Array) -> Any:
    rows, columns = a.shape[-2:]
    if rows is not columns and columns > rows:
        return adjoint(_derivative_of_tall(adjoint(x), adjoint(u), adjoint(a)))
    return _derivative_of_tall(x, u, a)


@polar_factor.define_vjp
def _polar_factor_vjp(t: Array, out: Array, a: Array) -> Any:
    return (_derivative(t, out, a),)


@polar_factor.define_jvp
def _polar_factor_jvp(dots: list[Array], out: Array, a: Array) -> Any:
    return _derivative(dots[0], out, a)


on_last_axes(polar_factor, 2)


@polar_factor.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 2)),), {}
    yield (rng.normal(size=(2, 3)),), {}
    yield (rng.normal(size=(2, 2, 2)),), {}


@matrices("Check it for NaN and infinity", oracle=lambda a: np.linalg.norm(a, "nuc", axis=(-2, -1)))
def nuclear_norm(a: Array) -> Any:
    """The sum of the singular values.

    The derivative is the unitary factor; where singular values are zero, the minimum-norm
    subgradient, which omits their vectors.
    """
    return np.sum(np.linalg.svd(finite(a), compute_uv=False), axis=-1)


nuclear_norm.compose(lambda a: np.sum(np.linalg.svd(a, compute_uv=False), axis=-1))


@nuclear_norm.define_vjp
def _nuclear_norm_vjp(t: Array, out: Array, a: Array) -> Any:
    return (t[..., None, None] * polar_factor(a),)


@nuclear_norm.define_jvp
def _nuclear_norm_jvp(dots: list[Array], out: Array, a: Array) -> Any:
    u = polar_factor(a)
    if a.dtype.kind == "c":
        return np.sum((np.conjugate(u) * dots[0]).real, axis=(-2, -1))
    return np.sum(u * dots[0], axis=(-2, -1))


on_last_axes(nuclear_norm, 2)


@nuclear_norm.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 2)),), {}
    yield (rng.normal(size=(2, 2, 3)),), {}
