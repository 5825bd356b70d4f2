"""Functions of a square matrix.

    logarithm, square_root, matrix_sign, fractional_matrix_power     operations
    expm            (_engine/ops/linalg/matrix_functions.py), expm_frechet
    cosm, sinm, tanm, coshm, sinhm, tanhm           compositions of expm

The derivative of such a function in the direction e is the upper right block of its value at
[[a, e], [0, a]] (R. Mathias, "A chain rule for matrix functions and applications", SIAM J. Matrix
Anal. Appl. 17 (1996), 610-620), again a function of a matrix.  So derivatives of every order exist,
also for equal eigenvalues and defective matrices.  Roots and signs solve a Sylvester equation
instead, which is cheaper (N. J. Higham, Functions of Matrices, 2008, chapters 5 and 6).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.core.handle import value_of
from wengert._engine.ops import casts
from wengert._engine.ops.linalg.linear_solve import adjoint, finite, matrices, real_dtype, solve
from wengert._engine.ops.linalg.matrix_functions import expm as exponential
from wengert.errors import ArgumentError, at, user_line

from ..dispatch import counterpart, floating
from .matrix_equations import sylvester
from .register import (
    PREFIX,
    entry,
    map_over_batch,
    of_its_dtype,
    power_into_range,
    real_or_complex,
    square,
)

__all__ = [
    "coshm", "cosm", "expm", "expm_frechet", "fractional_matrix_power", "logm", "signm", "sinhm",
    "sinm", "sqrtm", "tanhm", "tanm",
]  # fmt: skip

_NONSINGULAR = "It must be nonsingular; convert a real one with negative eigenvalues to complex"


def derivative(f: Any, a: Any, e: Any) -> Any:
    """The derivative of a function of a matrix at `a` in the direction `e`."""
    n = a.shape[-1]
    zero = np.zeros_like(a)
    upper = np.concatenate([a, e], axis=-1)
    lower = np.concatenate([zero, a], axis=-1)
    return f(np.concatenate([upper, lower], axis=-2))[..., :n, n:]


# ---- logarithm ---------------------------------------------------------------------------------


def _by_eigenvalues(f: Any) -> Any:
    """Test oracle: a function of a diagonalizable matrix by its eigenvectors."""

    def value(a: Any, *params: Any) -> Any:
        w, v = np.linalg.eig(a)
        result = (v * f(w.astype(complex), *params)[..., None, :]) @ np.linalg.inv(v)
        return result if a.dtype.kind == "c" else result.real

    return value


@entry(_NONSINGULAR, "2", like=0, oracle=_by_eigenvalues(np.log))
def logarithm(a):
    """The principal logarithm."""
    return of_its_dtype(scipy.linalg.logm(_double(a)), a) if a.size else a


def _double(a: Any) -> Any:
    """Convert to double precision, as SciPy's logarithm and powers lose half of the digits.

    The result is real if all imaginary parts are 0, so that all negative eigenvalues are on the
    same side of the branch cut.
    """
    a = a.astype(np.result_type(a, np.float64), copy=False)
    return a if a.dtype.kind != "c" or np.any(a.imag) else a.real


def _rotation_off_cut(w: Any) -> Any:
    """A phase factor after which no eigenvalue w is on the negative real axis."""
    angles = np.angle(w).astype(float)
    on_cut = np.abs(angles) > np.pi - _cut_tolerance(w.dtype)
    if not on_cut.any():
        return np.ones((), complex)
    lowest = np.min(np.where(on_cut, np.pi, angles))
    return np.exp(-0.5j * min(lowest + np.pi, np.pi))


def _cut_tolerance(dtype: Any) -> float:
    """The angle from the negative real axis within which an eigenvalue counts as on it."""
    return 1e-8 if np.finfo(dtype).dtype == np.float64 else 1e-4


@entry(_NONSINGULAR, "2", discrete=True, oracle=lambda a: _rotation_off_cut(np.roots(np.poly(a))))
def branch(a):
    """A phase factor with which a matrix has no eigenvalue on the negative real axis.

    Logarithm and powers are discontinuous there, except among real matrices; the derivatives are
    computed at the rotated matrix.
    """
    return _rotation_off_cut(np.linalg.eigvals(a)) if a.size else np.ones((), complex)


@branch.compose
def _(a):
    if 0 in a.shape or a.dtype.kind not in "fc":
        return NotImplemented
    angles = casts.astype(np.angle(np.linalg.eigvals(a)), float)
    on_cut = np.abs(angles) > np.pi - _cut_tolerance(a.dtype)
    lowest = np.min(np.where(on_cut, np.pi, angles), axis=-1)
    rotation = np.exp(-0.5j * np.minimum(lowest + np.pi, np.pi))
    return np.where(np.any(on_cut, axis=-1), rotation, 1.0 + 0.0j)


@branch.examples
def _(rng):
    yield (np.array([[1.0, 2.0], [3.0, 1.0]]),), {}
    yield (np.array([[1.0, 2.0], [0.0, 4.0]]),), {}


def _factor(a: Any) -> Any:
    """`branch` in the dtype of a complex matrix; 1 for a real one, whose function is real."""
    if a.dtype.kind != "c":
        return np.ones((1, 1), a.dtype)
    return casts.astype(branch(value_of(a)), a.dtype)[..., None, None]


@logarithm.define_vjp
def _logm_vjp(t, out, a):
    f = _factor(a)
    return (np.conjugate(f) * derivative(logarithm, adjoint(f * a), t),)


@logarithm.define_jvp
def _logm_jvp(dots, out, a):
    f = _factor(a)
    return derivative(logarithm, f * a, f * dots[0])


def _with_positive_spectrum(rng: Any, n: int) -> Any:
    return 0.3 * rng.normal(size=(n, n)) + 2.0 * np.eye(n)


@logarithm.examples
def _(rng):
    yield (_with_positive_spectrum(rng, 2),), {}


# ---- roots and signs ---------------------------------------------------------------------------


@entry(_NONSINGULAR, "2", like=0, oracle=_by_eigenvalues(np.sqrt))
def square_root(a):
    """The principal square root."""
    return of_its_dtype(np.asarray(scipy.linalg.sqrtm(finite(a))), a) if a.size else a


@square_root.define_vjp
def _sqrtm_vjp(t, out, a):
    h = adjoint(out)
    return (sylvester(h, h, t),)


@square_root.define_jvp
def _sqrtm_jvp(dots, out, a):
    return sylvester(out, out, dots[0])


@square_root.examples
def _(rng):
    yield (_with_positive_spectrum(rng, 3),), {}
    yield (_with_positive_spectrum(rng, 2) + 1j * rng.normal(size=(2, 2)),), {}


@entry(
    "No eigenvalue may be imaginary", "2", like=0, oracle=_by_eigenvalues(lambda w: np.sign(w.real))
)
def matrix_sign(a):
    """The matrix sign: 1 for eigenvalues in the right half plane, -1 in the left one."""
    # scaling does not change the sign, but SciPy's tolerances are absolute
    return of_its_dtype(np.asarray(scipy.linalg.signm(a * power_into_range(a))), a) if a.size else a


@matrix_sign.define_vjp
def _signm_vjp(t, out, a):
    size, s = adjoint(out @ a), adjoint(out)
    z = sylvester(size, size, t)
    return (z - s @ z @ s,)


@matrix_sign.define_jvp
def _signm_jvp(dots, out, a):
    size = out @ a
    return sylvester(size, size, dots[0] - out @ dots[0] @ out)


@matrix_sign.examples
def _(rng):
    yield (0.4 * rng.normal(size=(3, 3)) + np.diag([3.0, -3.0, 3.0]),), {}


def _power(a: Any, p: Any) -> Any:
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"a matrix of shape {a.shape}")
    if not a.size:
        return a
    result = np.asarray(scipy.linalg.fractional_matrix_power(_double(a), p.item()))
    return of_its_dtype(result, a)


def _powers(a, p):
    """The principal real power of a square matrix."""
    return map_over_batch(_power, [2, 0])(a, p)


fractional_power = matrices(
    _NONSINGULAR,
    name=PREFIX + "fractional_matrix_power",
    oracle=_by_eigenvalues(lambda w, p: w ** np.asarray(p)[..., None]),
)(_powers)


@fractional_power.compose
def _(a, p):
    if a.dtype.char not in "fdFD" or p.dtype != real_dtype(a):
        return NotImplemented
    return exponential(p[..., None, None] * logarithm(a))


def _of_power(a: Any, p: Any, e: Any) -> Any:
    return derivative(lambda x: fractional_power(x, p), a, e)


def _inverse_power(f: Any, p: Any) -> Any:
    """The inverse of the power of the phase factor."""
    return f**-p if f.dtype.kind == "c" else f


@fractional_power.define_vjp
def _fractional_power_vjp(t, out, a, p):
    p_bar = np.conjugate(logarithm(a) @ out) * t
    f = _factor(a)
    bar = _of_power(adjoint(f * a), p, np.conjugate(_inverse_power(f, p)) * t)
    return np.conjugate(f) * bar, np.sum(p_bar.real, axis=(-2, -1))


@fractional_power.define_jvp
def _fractional_power_jvp(dots, out, a, p):
    a_dot, p_dot = dots
    f = _factor(a)
    total = None if a_dot is None else _inverse_power(f, p) * _of_power(f * a, p, f * a_dot)
    if p_dot is None:
        return total
    of_p = p_dot[..., None, None] * (logarithm(a) @ out)
    return of_p if total is None else total + of_p


@fractional_power.examples
def _(rng):
    yield (_with_positive_spectrum(rng, 2), np.array(0.3)), {}


# ---- SciPy's names -----------------------------------------------------------------------------


@counterpart(scipy.linalg.expm)
def expm(A: Any) -> Any:
    """The exponential of a square matrix, as ``scipy.linalg.expm``.

    Parameters
    ----------
    A : array_like of shape (..., n, n)

    Notes
    -----
    The derivative is the exponential of a matrix of twice the size.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda a: wg.scipy.linalg.expm(a)[0, 1])(np.zeros((2, 2)))
    array([[0., 1.],
           [0., 0.]])
    """
    return exponential(square(A, "expm"))


@counterpart(scipy.linalg.expm_frechet)
def expm_frechet(
    A: Any, E: Any, method: Any = None, compute_expm: bool = True, check_finite: bool = True
) -> Any:
    """The exponential of A and its derivative in the direction E, as ``scipy.linalg.expm_frechet``.

    Parameters
    ----------
    A, E : array_like of shape (..., n, n)
    method : {"SPS", "blockEnlarge"}, optional
        Ignored; "blockEnlarge" is always used.
    compute_expm : bool, default True
        Whether to return the exponential, too.
    check_finite : bool
        Ignored; for compatibility with SciPy.
    """
    a, e = square(A, "expm_frechet"), square(E, "expm_frechet")
    frechet = derivative(exponential, a, e)
    return (exponential(a), frechet) if compute_expm else frechet


@counterpart(scipy.linalg.logm)
def logm(A: Any, *args: Any, **kwargs: Any) -> Any:
    """The principal logarithm of a square matrix, as ``scipy.linalg.logm``.

    Parameters
    ----------
    A : array_like of shape (..., n, n)
        Nonsingular. The logarithm of a real matrix with a negative eigenvalue is complex; in a
        graph, convert the matrix to a complex dtype first.

    Raises
    ------
    MatrixError
        The matrix is singular.

    Notes
    -----
    The logarithm has a branch cut on the negative real axis; the derivative there is that of the
    returned branch.
    """
    return real_or_complex(logarithm, square(A, "logm"))


@counterpart(scipy.linalg.sqrtm)
def sqrtm(A: Any, *args: Any, **kwargs: Any) -> Any:
    """The principal square root of a square matrix, as ``scipy.linalg.sqrtm``.

    Parameters
    ----------
    A : array_like of shape (..., n, n)
        The root of a real matrix with a negative eigenvalue is complex; in a graph, convert the
        matrix to a complex dtype first.

    Raises
    ------
    MatrixError
        There is no root; or a derivative is needed and two eigenvalues of the root sum to zero, for
        example if the matrix is singular.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda a: np.trace(wg.scipy.linalg.sqrtm(a)))(np.diag([4.0, 1.0]))
    array([[0.25, 0.  ],
           [0.  , 0.5 ]])
    """
    return real_or_complex(square_root, square(A, "sqrtm"))


@counterpart(scipy.linalg.signm)
def signm(A: Any, *args: Any, **kwargs: Any) -> Any:
    """The matrix sign function, as ``scipy.linalg.signm``.

    Parameters
    ----------
    A : array_like of shape (..., n, n)
        Without eigenvalues on the imaginary axis.
    """
    return real_or_complex(matrix_sign, square(A, "signm"))


@counterpart(scipy.linalg.fractional_matrix_power)
def fractional_matrix_power(A: Any, t: Any) -> Any:
    """A real power of a square matrix, as ``scipy.linalg.fractional_matrix_power``.

    Parameters
    ----------
    A : array_like of shape (..., n, n)
        Nonsingular. A power of a real matrix with a negative eigenvalue is complex; in a graph,
        convert the matrix to a complex dtype first.
    t : float
        Also differentiable: the derivative is ``logm(A) @ A**t``.

    Notes
    -----
    The result of a real matrix is real if all imaginary parts are zero, unlike SciPy's.
    """
    a, p = square(A, "fractional_matrix_power"), floating(t)
    if p.dtype.kind == "c":
        raise ArgumentError(
            f"fractional_matrix_power with t={t!r}: the power must be real{at(user_line())}."
        )
    return real_or_complex(fractional_power, a, p)


def _exp_i(a: Any) -> Any:
    """The exponential of i a."""
    dtype = np.result_type(a.dtype, np.complex64)
    return exponential(1j * casts.astype(a, dtype))


@counterpart(scipy.linalg.cosm)
def cosm(A: Any) -> Any:
    """The cosine of a square matrix, as ``scipy.linalg.cosm``."""
    a = square(A, "cosm")
    if a.dtype.kind != "c":
        return np.real(_exp_i(a))
    return 0.5 * (_exp_i(a) + _exp_i(-a))


@counterpart(scipy.linalg.sinm)
def sinm(A: Any) -> Any:
    """The sine of a square matrix, as ``scipy.linalg.sinm``."""
    a = square(A, "sinm")
    if a.dtype.kind != "c":
        return np.imag(_exp_i(a))
    return -0.5j * (_exp_i(a) - _exp_i(-a))


@counterpart(scipy.linalg.tanm)
def tanm(A: Any) -> Any:
    """The tangent of a square matrix, as ``scipy.linalg.tanm``."""
    a = square(A, "tanm")
    return solve(cosm(a), sinm(a))


@counterpart(scipy.linalg.coshm)
def coshm(A: Any) -> Any:
    """The hyperbolic cosine of a square matrix, as ``scipy.linalg.coshm``."""
    a = square(A, "coshm")
    return 0.5 * (exponential(a) + exponential(-a))


@counterpart(scipy.linalg.sinhm)
def sinhm(A: Any) -> Any:
    """The hyperbolic sine of a square matrix, as ``scipy.linalg.sinhm``."""
    a = square(A, "sinhm")
    return 0.5 * (exponential(a) - exponential(-a))


@counterpart(scipy.linalg.tanhm)
def tanhm(A: Any) -> Any:
    """The hyperbolic tangent of a square matrix, as ``scipy.linalg.tanhm``."""
    a = square(A, "tanhm")
    return solve(coshm(a), sinhm(a))
