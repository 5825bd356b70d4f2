"""Eigenvalues and singular values.

    eigh   of Hermitian matrices        eig   of any square matrix        svd   of any matrix

Eigenvectors are determined up to a factor, so only functions that do not depend on that factor
have a derivative.  For complex eigh and svd the rules fix the factor by
diag(adjoint(v) @ v_dot) = 0; eig uses LAPACK's normalization (largest component real).

Where two eigenvalues are equal, eigenvectors have no derivative, but functions that do not depend
on the basis of the eigenspace do; it is computed as a limit
(ops/linalg/degenerate_eigenvalues.py).  The same holds for singular values, including zeros.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.core.node import Node
from wengert._engine.core.op_facts import GUARD, Differentiation, Remedy, facts
from wengert._engine.kinds.batching import on_last_axes
from wengert._engine.kinds.elementwise import POSITIVE, REAL, elementwise
from wengert._engine.ops import cost_model
from wengert.errors import MatrixError, at, user_line

from ..creation import full, identity, positions
from ..elementwise.selection import where
from ..reductions import argmax
from .degenerate_eigenvalues import quotients
from .linear_solve import (
    adjoint,
    are_finite,
    finite,
    hermitian,
    inv,
    matrices,
    real_dtype,
    solve,
    spread,
)

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Outputs, Scalar, ScalarLanguage

CONVERGE = "Check it for NaN and infinity"


def quotient(x: Array, d: Array) -> Any:
    """x / d; where d is 0, 0 if x is a constant zero and NaN otherwise."""
    if is_traced(x) or is_traced(d):
        return spared_quotient(x, d)
    divisor = value_of(d)
    is_zero = divisor == 0
    if not is_zero.any():
        return x / d
    if not (isinstance(x, Handle) and type(x.node) is Node):
        both_zero = is_zero & (value_of(x) == 0)
        substitute = np.where(both_zero, 1.0, np.nan).astype(divisor.dtype)
        return x / where(is_zero, substitute, d)
    return x / where(is_zero, np.array(np.nan, divisor.dtype), d)


@facts(remedy=Remedy(singular=GUARD))
@elementwise(oracle="x / d", domain=[REAL, POSITIVE], complex_ok=True, singular=True)
def spared_quotient(s: ScalarLanguage, x: Scalar, d: Scalar) -> Any:
    """x / d; where d is 0, 0 if x is 0 and NaN otherwise, with derivative NaN.

    The form of `quotient` in graphs, where values are unknown.
    """
    is_zero = s.equal(d, 0)
    both_zero = s.logical_and(is_zero, s.equal(x, 0))
    return s.where(both_zero, 0 * x, x / s.where(is_zero, nan, d))


def _or_nan(d: Array) -> Any:
    return where(value_of(d) == 0, nan, d)


spared_quotient.partials(
    lambda t, out, x, d: t / _or_nan(d), lambda t, out, x, d: -t * (out / _or_nan(d))
)


def is_known_zero(t: Array) -> bool:
    """Whether a cotangent is known to be zero for all operands."""
    if not isinstance(t, Handle) or type(t.node) is Node:
        return False
    if is_traced(t):
        return t.node.op is full and t.node.params["value"] == 0
    return not np.any(value_of(t))


def diagonal_of(x: Array) -> Any:
    """The diagonals of the matrices in the last two axes."""
    return np.diagonal(x, axis1=-2, axis2=-1)


def _off_diagonal(x: Any) -> Any:
    return where(identity(x.shape[-1], bool), 0.0, x)


def _diagonal_matrix(d: Array) -> Any:
    return d[..., None, :] * identity(d.shape[-1], real_dtype(d))


def _differences(w: Array) -> Any:
    """w_j - w_i, and 1 on the diagonal."""
    return where(identity(w.shape[-1], bool), 1.0, w[..., None, :] - w[..., :, None])


# ---- eigenvalues -------------------------------------------------------------------------------


@facts(
    flops=cost_model.cubes(9.0),
    remedy=Remedy(
        singular="Equal eigenvalues: the eigenvectors are not unique. Use functions of the matrix "
        "that do not depend on their basis, or perturb the matrix"
    ),
)
@matrices(CONVERGE, oracle="numpy", prepare=lambda a: (hermitian(a),))
def eigh(a: Array, *, lower: bool = True) -> Any:
    """Eigenvalues in ascending order and orthonormal eigenvectors of Hermitian matrices.

    One triangle of `a` is read; the derivative is that of a function of (a + adjoint(a)) / 2.
    """
    if not are_finite(a):  # the other triangle may be nonfinite
        finite(np.tril(a) if lower else np.triu(a))
    return tuple(np.linalg.eigh(a, "L" if lower else "U"))


eigh.differentiation = Differentiation(takes_parts=True, limits=True)


@eigh.define_vjp
def _eigh_vjp(t: Any, out: Outputs, a: Array, *, lower: bool = True) -> Any:
    w, v = out
    t = t if isinstance(t, dict) else dict(enumerate(t))
    if 1 not in t or is_known_zero(t[1]):
        return (hermitian((v * t[0][..., None, :]) @ adjoint(v)),)
    projected = adjoint(v) @ t[1]
    antisymmetric = _off_diagonal(0.5 * (projected - adjoint(projected)))
    speeds = _speeds(w)
    triple = antisymmetric, _differences(w), _differences(speeds)
    (core,) = quotients([triple], out, 0, speeds, _largest_of(w), _largest_in(projected))
    if 0 in t:
        core = core + _diagonal_matrix(t[0])
    return (hermitian(v @ core @ adjoint(v)),)


def _largest_of(values: Array) -> Any:
    return np.max(np.abs(value_of(values)), axis=-1, initial=0.0)


def _largest_in(x: Array) -> Any:
    return np.max(np.abs(value_of(x)), axis=(-2, -1), initial=0.0)


def _speeds(values: Array) -> Any:
    """Rates at which the values separate: 1, 2, ... for each matrix."""
    n = values.shape[-1]
    ranks = positions(n) + 1.0
    return np.broadcast_to(ranks.astype(values.dtype), values.shape)


@eigh.define_jvp
def _eigh_jvp(dots: list[Array], out: Outputs, a: Array, *, lower: bool = True) -> Any:
    w, v = out
    x = adjoint(v) @ hermitian(dots[0]) @ v
    rotation = _forward_quotient(_off_diagonal(x), _differences(w), _largest_of(w))
    return diagonal_of(x).real, v @ rotation


on_last_axes(eigh, 2)


@eigh.examples
def _(rng: np.random.Generator) -> Any:
    a = rng.normal(size=(3, 3)) + np.diag([0.0, 3.0, 6.0])
    a[0, 0] = 0.0  # as booleans it has three different eigenvalues; a matrix of ones has two
    yield (hermitian(a),), {}
    a = rng.normal(size=(2, 2, 2)) + np.diag([0.0, 3.0])
    yield (hermitian(a),), {"lower": False}


@facts(
    flops=cost_model.cubes(25.0),
    remedy=Remedy(
        singular="Equal eigenvalues: the eigenvectors are not unique. Perturb the matrix, or use "
        "eigh"
    ),
)
@matrices(CONVERGE, oracle="numpy")
def eig(a: Array) -> Any:
    """Eigenvalues and normalized eigenvectors, always complex."""
    w, v = np.linalg.eig(a)
    dtype = np.result_type(w.dtype, np.complex64)
    return w.astype(dtype), v.astype(dtype)


def _largest(v: Array) -> Any:
    """The position of the largest component of each column, which LAPACK makes real."""
    size = np.abs(value_of(v))
    if size.shape[-1] == 0:
        return size > 0
    return argmax(size, axis=-2, keepdims=True) == positions(size.shape[-2])[:, None]


def _column_sums(x: Array) -> Any:
    return np.sum(x, axis=-2, keepdims=True)


eig.differentiation = Differentiation(takes_parts=True, limits=True)


def _independent(v: Array) -> Any:
    """Eigenvectors to divide by: an error if they are dependent, or NaN in a graph.

    A defective matrix has too few eigenvectors, and its eigenvalues have infinite derivatives.
    """
    vectors = value_of(v)
    with np.errstate(all="ignore"):
        try:
            condition = _one_norm(vectors) * _one_norm(inv(vectors))
        except MatrixError:
            condition = np.array(np.inf)
    is_dependent = (
        condition * float(np.finfo(v.dtype).eps) > DEFECT * float(np.finfo(v.dtype).eps) ** 0.5
    )
    if isinstance(is_dependent, Handle):
        return where(spread(is_dependent), nan, v)
    if np.any(is_dependent):
        raise MatrixError(
            "The derivative of eig does not exist for a matrix that is defective, or nearly so: it "
            "has too few independent eigenvectors. Use functions of the matrix (logm, sqrtm, "
            f"matrix_power, det, trace), which are differentiable there{at(user_line())}."
        )
    return v


DEFECT = 4.0  # times the square root of the unit roundoff: half of the digits are lost


def _one_norm(x: Array) -> Any:
    return np.max(np.sum(np.abs(x), axis=-2), axis=-1) if x.shape[-1] != 0 else np.array(0.0)


@eig.define_jvp
def _eig_jvp(dots: list[Array], out: Outputs, a: Array) -> Any:
    w, v = out
    basis = _independent(v)
    x = solve(basis, dots[0] @ v)
    v_dot = v @ _forward_quotient(_off_diagonal(x), _differences(w), _largest_of(w))
    v_dot = v_dot - v * _column_sums(np.conjugate(v) * v_dot).real  # the norm stays one
    is_largest = _largest(v)
    phase_change = (
        _column_sums(where(is_largest, v_dot, 0.0)).imag
        / _column_sums(where(is_largest, v, 0.0)).real
    )
    return diagonal_of(x), v_dot - v * (1j * phase_change)


@eig.define_vjp
def _eig_vjp(t: Any, out: Outputs, a: Array) -> Any:
    w, v = out
    cotangents = t if isinstance(t, dict) else dict(enumerate(t))
    core: Any = 0.0
    if 1 in cotangents and not is_known_zero(cotangents[1]):
        t_v = cotangents[1]
        is_largest = _largest(v)
        phase_change = (
            _column_sums(np.conjugate(t_v) * v).imag / _column_sums(where(is_largest, v, 0.0)).real
        )
        t_v = t_v + where(is_largest, 1j * phase_change, 0.0)
        t_v = t_v - v * _column_sums(np.conjugate(t_v) * v).real
        projected, speeds = adjoint(v) @ t_v, _speeds(w)
        differences = np.conjugate(_differences(w))
        triple = _off_diagonal(projected), differences, _differences(speeds)
        (core,) = quotients([triple], out, 0, speeds, _largest_of(w), _largest_in(projected))
    if 0 in cotangents:
        core = core + _diagonal_matrix(cotangents[0])
    return (solve(adjoint(_independent(v)), core @ adjoint(v)),)


on_last_axes(eig, 2)


@eig.examples
def _(rng: np.random.Generator) -> Any:
    # Fixed: LAPACK may change a sign between two points of a finite difference.
    yield (np.array([[1.0, 0.3, -0.2], [0.1, 2.0, 0.4], [0.2, -0.3, 4.0]]),), {}
    yield (np.array([[1.0, 2.0], [-3.0, 0.5]]),), {}


# ---- singular values ---------------------------------------------------------------------------


@facts(
    flops=cost_model.cubes(21.0),
    remedy=Remedy(
        singular="Equal or zero singular values: the singular vectors are not unique. Perturb the "
        "matrix, or use functions of the singular values"
    ),
)
@matrices(CONVERGE, oracle="numpy")
def svd(a: Array, *, full_matrices: bool = False) -> Any:
    """U, s and adjoint(V) with a = U @ diag(s) @ adjoint(V), s in descending order.

    With `full_matrices` the bases are completed; the derivative of the completing columns has no
    component within their own space.
    """
    return tuple(np.linalg.svd(finite(a), full_matrices=full_matrices))


svd.differentiation = Differentiation(takes_parts=True, limits=True)


@svd.define_vjp
def _svd_vjp(t: Any, out: Outputs, a: Array, *, full_matrices: bool = False) -> Any:
    u, s, vh = out
    k = s.shape[-1]
    u1, v = u[..., :k], adjoint(vh)
    v1 = v[..., :k]
    cotangents = t if isinstance(t, dict) else dict(enumerate(t))
    t_u, t_vh = (
        None if i not in cotangents or is_known_zero(cotangents[i]) else cotangents[i]
        for i in (0, 2)
    )
    if t_u is None and t_vh is None:
        return ((u1 * cotangents[1][..., None, :]) @ adjoint(v1),)
    sides = [
        (u, u1, t_u, a.shape[-2]),
        (v, v1, None if t_vh is None else adjoint(t_vh), a.shape[-1]),
    ]
    projections = [None if t_x is None else adjoint(x1) @ t_x[..., :k] for _, x1, t_x, _ in sides]
    in_u, in_v = (0.0 if x is None else 0.5 * (x - adjoint(x)) for x in projections)
    speeds = _speeds(s)
    is_real = a.dtype.kind != "c"  # for complex matrices the diagonal is a phase, divided by 2 s
    triples = [
        (_off_diagonal(in_u + in_v), _differences(s), _differences(speeds)),
        (_off_diagonal(in_u - in_v) if is_real else in_u - in_v, *_sums(is_real, s, speeds)),
    ]
    for (x, x1, t_x, n), projection in zip(sides, projections, strict=True):
        if t_x is not None and n is not k:
            outside = _outside(x, x1, t_x, t_x[..., :k], projection)
            triples.append((outside, s[..., None, :], speeds[..., None, :]))
    largest = [
        np.max(np.abs(value_of(x)), axis=(-2, -1), initial=0.0)
        for x in projections
        if x is not None
    ]
    results = quotients(triples, out, 1, speeds, _largest_of(s), sum(largest))
    core, rests = results[0] + results[1], iter(results[2:])
    if 1 in cotangents:
        core = core + _diagonal_matrix(cotangents[1])
    bar = u1 @ core @ adjoint(v1)
    if t_u is not None and a.shape[-2] is not k:
        bar = bar + next(rests) @ adjoint(v1)
    if t_vh is not None and a.shape[-1] is not k:
        bar = bar + u1 @ adjoint(next(rests))
    return (bar,)


def _sums(with_ones: bool, *arrays: Any) -> list[Any]:
    """x_j + x_i; 1 on the diagonal if `with_ones`."""
    sums = [x[..., None, :] + x[..., :, None] for x in arrays]
    return [where(identity(x.shape[-1], bool), 1.0, x) for x in sums] if with_ones else sums


@svd.define_jvp
def _svd_jvp(dots: list[Array], out: Outputs, a: Array, *, full_matrices: bool = False) -> Any:
    u, s, vh = out
    k, v = s.shape[-1], adjoint(vh)
    u1, v1 = u[..., :k], v[..., :k]
    right = dots[0] @ v1
    x = adjoint(u1) @ right
    is_real, scale = a.dtype.kind != "c", _largest_of(s)
    symmetric = _forward_quotient(_off_diagonal(x + adjoint(x)), _differences(s), scale)
    (sums,) = _sums(is_real, s)
    antisymmetric = _forward_quotient(x - adjoint(x), sums, scale)
    u_dot, v_dot = (
        u1 @ (0.5 * (symmetric + antisymmetric)),
        v1 @ (0.5 * (symmetric - antisymmetric)),
    )
    if a.shape[-2] is not k:
        outside = right - u1 @ x
        u_dot = u_dot + _forward_quotient(outside, s[..., None, :], scale)
    if a.shape[-1] is not k:
        left = adjoint(dots[0]) @ u1
        v_dot = v_dot + _forward_quotient(left - v1 @ adjoint(x), s[..., None, :], scale)
    u_dot, v_dot = _completed_dot(u, u1, u_dot), _completed_dot(v, v1, v_dot)
    return u_dot, diagonal_of(x).real, adjoint(v_dot)


def _completed_dot(x: Array, x1: Array, dot: Array) -> Any:
    """Append the tangents of the columns that complete a basis."""
    k = x1.shape[-1]
    if x.shape[-1] is k or x.shape[-1] == k:
        return dot
    return np.concatenate([dot, -(x1 @ (adjoint(dot) @ x[..., k:]))], axis=-1)


def _forward_quotient(x: Array, d: Array, scale: Array) -> Any:
    """x / d; where d is nearly 0, 0 if x is a constant zero and NaN otherwise."""
    relative_threshold = 16.0 * float(np.finfo(scale.dtype).eps)
    if not is_traced(d):
        relative_threshold = relative_threshold**0.5  # NaN makes the pass be repeated with limits
    near = np.abs(value_of(d)) <= relative_threshold * spread(scale)
    return quotient(x, where(near, np.array(0.0, d.dtype), d))


def _outside(u: Any, u1: Any, t_u: Any, t_u1: Any, projection: Any) -> Any:
    """The part of the cotangent outside the range, including that of the completing columns."""
    outside = t_u1 - u1 @ projection
    k = u1.shape[-1]
    if u.shape[-1] != k:
        outside = outside - u[..., k:] @ (adjoint(t_u[..., k:]) @ u1)
    return outside


on_last_axes(svd, 2)


@svd.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 3)),), {}
    yield (rng.normal(size=(2, 2, 4)),), {}
    yield (rng.normal(size=(4, 2)),), {}
