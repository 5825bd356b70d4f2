"""Determinants, and their derivatives of every order.

    det, slogdet      as in NumPy
    cofactors         the derivative of det, correct for singular matrices too
    det_derivative    `cofactors` in graphs, and its derivatives

The derivative of det(a) is det(a) inv(a).T where `a` is regular; for singular or nearly singular
matrices the formula is selected by the singular values.  In a graph an operation selects it at run
time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.linalg import LinAlgError

from wengert._engine.core.handle import Handle, is_traced, possibly, value_of
from wengert._engine.core.op_facts import BY_NUMPY, facts
from wengert._engine.core.spec import spec_of
from wengert._engine.kinds.batching import on_last_axes
from wengert._engine.ops import cost_model
from wengert.errors import MatrixError, at, user_line

from ..creation import identity
from ..elementwise.selection import where
from ..joining import stack
from ..shapes import reshape
from .linear_solve import ForwardMode, adjoint, inv, matrices, regular, spread, trace_of

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand


@facts(flops=cost_model.cubes(2 / 3))
@matrices("Determinants require square matrices", oracle="numpy")
def det(a: Array) -> Any:
    """The determinant; derivatives of every order are correct for singular matrices too."""
    return np.linalg.det(a)


@det.define_vjp
def _det_vjp(t: Array, out: Array, a: Array) -> Any:
    c = det_derivative(a) if is_traced(a) else cofactors(a, out)
    return (spread(t) * (np.conjugate(c) if c.dtype.kind == "c" else c),)


@det.define_jvp
def _det_jvp(dots: list[Array], out: Array, a: Array) -> Any:
    c = det_derivative(a) if is_traced(a) else cofactors(a, out)
    return np.sum(c * dots[0], axis=(-2, -1))


on_last_axes(det, 2)


@det.examples
def _(rng: np.random.Generator) -> Any:
    yield (regular(rng, 3),), {}
    yield (regular(rng, 2, 2),), {}
    yield (np.outer([1.0, 2.0, -1.0], [0.5, 1.0, 3.0]),), {}
    yield (np.diag([2.0, 0.0, 1.0]),), {}


def cofactors(a: Array, d: Array) -> Any:
    """The cofactor matrices, the derivatives of the determinants `d`.

    det(a) inv(a).T where that is accurate, else computed from the singular value decomposition.
    While the derivative is recorded, and may be differentiated again, a smooth form (`_smooth`) is
    used for singular or nearly singular matrices.
    """
    x = value_of(a)
    recorded = isinstance(a, Handle)
    rounding = float(np.finfo(x.dtype).eps) * max(x.shape[-1], 1)
    inverse = _accurate_inverse(x, 1.0 / STEP if recorded else 0.01 / rounding)
    if inverse is not None:
        return spread(d) * (inv(a) if recorded else inverse).mT
    if not np.all(np.isfinite(x)):
        return spread(d) * (x * np.nan)
    if not recorded:
        return _cofactors_by_svd(x)
    matrices = []
    for index in np.ndindex(*x.shape[:-2]):
        zero_threshold = 10.0 * rounding * np.linalg.norm(x[index], 2)
        matrices.append(_smooth(a[index], zero_threshold)[0].mT)
    return reshape(stack(*matrices, axis=0), shape=x.shape)


def _accurate_inverse(x: Array, limit: float) -> Any:
    """The inverses, or None if one does not exist or has a condition number above the limit."""
    try:
        inverse = np.linalg.inv(x)
    except LinAlgError:
        return None
    return inverse if np.all(_one_norm(x) * _one_norm(inverse) < limit) else None


def _one_norm(x: Array) -> Any:
    return np.abs(x).sum(-2).max(-1, initial=0.0)


def _cofactors_by_svd(x: Array) -> Any:
    u, s, vh = np.linalg.svd(x)
    n = s.shape[-1]
    others = np.ones_like(s)  # the product of the other singular values
    for i in range(n):
        others[..., i] = np.prod(np.delete(s, i, -1), -1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return spread(sign) * np.conjugate((u * others[..., None, :]) @ vh)


STEP = 1e-4  # singular values below this fraction of the largest are treated separately


def _smooth(a: Array, zero_threshold: float) -> tuple[Any, Any]:
    """Adjugate and determinant of one matrix, of any rank, as smooth functions of it.

    In the bases of its singular vectors, which are constants here, the matrix is [[p, q], [r, w]]
    with p well conditioned and w small.  Its determinant is det(p) det(z), z = w - r inv(p) q, and
    its adjugate needs inv(p) and the adjugate of z; z is split recursively until it is zero up to
    rounding, or small enough to compute its adjugate as a polynomial.
    """
    u, s, vh = np.linalg.svd(value_of(a))
    n = s.size
    rank = int(np.sum(s > STEP * s[0]))
    if s[0] <= zero_threshold or (rank == n and n <= 3):
        return _adjugate(a)
    v, uh = np.conjugate(vh.mT), np.conjugate(u.mT)
    b = uh @ a @ v
    v1, v2, u1, u2 = v[:, :rank], v[:, rank:], uh[:rank], uh[rank:]
    p = b[:rank, :rank]
    inverse, scale = inv(p), det(p) * (np.linalg.det(u) * np.linalg.det(vh))
    if rank == n:
        return (v @ inverse @ uh) * scale, scale
    q, r = b[:rank, rank:], b[rank:, :rank]
    left, right = v2 - v1 @ (inverse @ q), u2 - (r @ inverse) @ u1
    core, last = _smooth(b[rank:, rank:] - r @ inverse @ q, zero_threshold)
    return (last * (v1 @ inverse @ u1) + left @ core @ right) * scale, last * scale


def _adjugate(z: Array) -> tuple[Any, Any]:
    """Adjugate and determinant by the Faddeev-LeVerrier algorithm: a polynomial, exact at zero."""
    n = z.shape[-1]
    eye = np.eye(n, dtype=z.dtype)
    m: Any = eye
    for k in range(1, n):
        product = z @ m
        m = product - eye * (np.sum(product * eye) / k)
    sign = -1.0 if n % 2 == 0 else 1.0
    return m * sign, np.sum((z @ m) * eye) * (sign / n)


@facts(host_callback=BY_NUMPY)  # in second and higher derivatives
@matrices("Determinants require square matrices")
def det_derivative(a: Any, *directions: Any) -> Any:
    """The gradient with respect to `a` of the derivative of det(a) along all of the directions.

    Without directions, the cofactor matrices. Used in graphs, where the matrix is unknown: the
    form for singular matrices is selected at run time. It is linear in each direction and symmetric
    in them, so its derivatives are calls of the same operation.
    """
    if directions:
        shape = np.broadcast_shapes(np.shape(a), *map(np.shape, directions))
        a, *others = (np.broadcast_to(x, shape) for x in (a, *directions))
        return _gradient_of_derivative(a, others)
    return _gradient_of_derivative(a, directions)


def _gradient_of_derivative(a: Array, directions: Sequence[Any]) -> Any:
    """The cofactors of a, differentiated along all directions."""
    if not directions:
        return cofactors(a, det(a))
    *others, last = directions
    return ForwardMode.jvp(lambda x: _gradient_of_derivative(x, others), (a,), (last,))[1]


@det_derivative.define_vjp
def _det_derivative_vjp(t: Array, out: Array, a: Array, *directions: Any) -> Any:
    h = np.conjugate(t) if t.dtype.kind == "c" else t
    bars = [det_derivative(a, *directions, h)]
    for i in range(len(directions)):
        bars.append(det_derivative(a, *directions[:i], *directions[i + 1 :], h))
    return tuple(np.conjugate(b) if b.dtype.kind == "c" else b for b in bars)


@det_derivative.define_jvp
def _det_derivative_jvp(dots: list[Array], out: Array, a: Array, *directions: Any) -> Any:
    a_dot, *rest = dots
    total = None if a_dot is None else det_derivative(a, *directions, a_dot)
    for i, dot in enumerate(rest):
        if dot is not None:
            term = det_derivative(a, *directions[:i], dot, *directions[i + 1 :])
            total = term if total is None else total + term
    return total


def _by_columns(a: Array, *directions: Any) -> Any:
    """`det_derivative` from the linearity of the determinant in each column."""
    n = a.shape[-1]
    out = np.zeros(a.shape, a.dtype)
    for i, j in np.ndindex(n, n):
        unit = np.zeros((n, n))
        unit[i, j] = 1.0
        for columns in itertools.permutations(range(n), len(directions) + 1):
            m = np.array(a)
            for k, v in zip(columns, (*directions, unit), strict=True):
                m[..., :, k] = v[..., :, k]
            out[..., i, j] += np.linalg.det(m)
    return out


det_derivative.oracle = _by_columns


on_last_axes(det_derivative, 2)


@det_derivative.examples
def _(rng: np.random.Generator) -> Any:
    yield (regular(rng, 3),), {}
    yield (np.diag([2.0, 0.0, 1.0]),), {}
    yield (regular(rng, 3), rng.normal(size=(3, 3))), {}
    yield (regular(rng, 2, 2), rng.normal(size=(2, 2, 2))), {}


@facts(flops=cost_model.cubes(2 / 3))
@matrices("Determinants require square matrices", oracle="numpy")
def slogdet(a: Array) -> Any:
    """The sign of the determinant (a phase if complex), and the logarithm of its modulus."""
    return tuple(np.linalg.slogdet(a))


def _inverse(a: Array, logarithm: Array, unused: Operand = False) -> Any:
    """The inverse, which is the derivative; an error where the logarithm is -inf."""
    value = value_of(logarithm)
    if not isinstance(value, Handle) and np.any((value == -np.inf) & ~np.asarray(unused)):
        raise MatrixError(
            f"The derivative of slogdet of {spec_of(value_of(a))} is infinite, because a matrix is "
            "singular and the logarithm is -inf. Use det, whose derivative exists, or add a "
            f"multiple of the identity{at(user_line())}."
        )
    return inv(a)


@slogdet.define_vjp
def _slogdet_vjp(t: tuple[Array, ...], out: tuple[Array, ...], a: Array) -> Any:
    t_sign, t_log = t
    weight = t_log
    if a.dtype.kind == "c":
        weight = t_log - 1j * (np.conjugate(t_sign) * out[0]).imag
    unused = np.equal(value_of(out[1]), -np.inf) & np.equal(value_of(weight), 0)
    if possibly(unused):  # singular, but the logarithm is not used
        a = where(spread(unused), identity(a.shape[-1], a.dtype), a)
    return (spread(weight) * adjoint(_inverse(a, out[1], unused)),)


@slogdet.define_jvp
def _slogdet_jvp(dots: list[Array], out: tuple[Array, ...], a: Array) -> Any:
    relative_change = trace_of(_inverse(a, out[1]), dots[0])
    if a.dtype.kind != "c":
        return None, relative_change
    return 1j * (relative_change.imag * out[0]), relative_change.real


on_last_axes(slogdet, 2)


@slogdet.examples
def _(rng: np.random.Generator) -> Any:
    yield (regular(rng, 3),), {}
    yield (regular(rng, 2, 2),), {}
