"""Linear systems and inverses, for general matrices and matrices of known structure.

    structured_solve     operation: LAPACK solvers for symmetric, definite, tridiagonal matrices ...
    solve, solve_triangular, inv, det, lstsq, pinv, pinvh

The gradient with respect to the matrix has the same structure: it is symmetric for a symmetric
matrix, and zero outside of the band or triangle that is read (docs/conventions.md, 9).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.op_facts import BY_SCIPY, facts
from wengert._engine.ops.creation import triangle_mask
from wengert._engine.ops.elementwise.selection import where
from wengert._engine.ops.linalg import factorizations, linear_solve
from wengert._engine.ops.linalg.linear_solve import adjoint
from wengert._engine.ops.linalg.linear_solve import hermitian as hermitian_part
from wengert.errors import ArgumentError, TraceError, at, user_line
from wengert.numpy import linalg as names

from ..dispatch import counterpart, floating
from .register import entry, square

__all__ = ["solve", "solve_triangular", "inv", "det", "lstsq", "pinv", "pinvh"]

STRUCTURES = {
    **dict.fromkeys(("gen", "general", "banded"), "general"),
    **dict.fromkeys(("sym", "symmetric"), "symmetric"),
    **dict.fromkeys(("her", "hermitian"), "hermitian"),
    **dict.fromkeys(("pos", "positive definite"), "positive definite"),
    **{name: name for name in ("diagonal", "tridiagonal", "upper triangular", "lower triangular")},
}


def _project_to_structure(a: Any, structure: str) -> Any:
    """Project a tangent or cotangent of a matrix onto its structure."""
    if structure == "symmetric":
        return 0.5 * (a + a.mT)
    if structure in ("hermitian", "positive definite"):
        return hermitian_part(a)
    n = a.shape[-1]
    low, below = triangle_mask(n, n, 0), triangle_mask(n, n, -1)
    if structure == "lower triangular":
        return where(low, a, 0.0)
    if structure == "upper triangular":
        return where(below, 0.0, a)
    if structure == "diagonal":
        return where(low & ~below, a, 0.0)
    return where(triangle_mask(n, n, 1) & ~triangle_mask(n, n, -2), a, 0.0)


def _as_read(a: Any, structure: str, lower: bool) -> Any:
    """The full matrix from the part that is read; for test oracles."""
    if structure in ("symmetric", "hermitian", "positive definite"):
        half = np.tril(a) if lower else np.triu(a)
        other = half.mT if structure == "symmetric" else np.conj(half.mT)
        return half + other - half * np.eye(a.shape[-1])
    if structure == "tridiagonal":
        return np.triu(np.tril(a, 1), -1)
    if structure == "diagonal":
        return a * np.eye(a.shape[-1])
    return np.tril(a) if structure == "lower triangular" else np.triu(a)


@facts(host_callback=BY_SCIPY)
@entry(
    "Use lstsq if it may be singular, and omit assume_a if it does not have that structure",
    "22",
    like=1,
    prepare=lambda a, b: (hermitian_part(a), b),
    oracle=lambda a, b, structure, lower: np.linalg.solve(_as_read(a, structure, lower), b),
)
def structured_solve(a, b, *, structure, lower):
    """x with a @ x = b, for a matrix of a given structure."""
    return scipy.linalg.solve(a, b, assume_a=structure, lower=lower)


_ADJOINT = {
    "upper triangular": "lower triangular",
    "lower triangular": "upper triangular",
}


@structured_solve.define_vjp
def _structured_solve_vjp(t, out, a, b, *, structure, lower):
    a_adjoint: Any = a
    if structure == "symmetric":
        a_adjoint = np.conjugate(a) if a.dtype.kind == "c" else a
    elif structure not in ("hermitian", "positive definite"):
        a_adjoint = adjoint(a)
    z = structured_solve(a_adjoint, t, structure=_ADJOINT.get(structure, structure), lower=lower)
    return _project_to_structure(-(z @ adjoint(out)), structure), z


@structured_solve.define_jvp
def _structured_solve_jvp(dots, out, a, b, *, structure, lower):
    a_dot, right = dots
    if a_dot is not None:
        product = _project_to_structure(a_dot, structure) @ out
        right = -product if right is None else right - product
    return structured_solve(a, right, structure=structure, lower=lower)


@structured_solve.examples
def _(rng):
    a = 0.3 * hermitian_part(rng.normal(size=(3, 3))) + np.diag([2.0, 3.0, 4.0])
    yield (a, rng.normal(size=(3, 2))), {"structure": "positive definite", "lower": True}
    yield (a, rng.normal(size=(3, 1))), {"structure": "symmetric", "lower": False}
    yield (a, rng.normal(size=(3, 1))), {"structure": "tridiagonal", "lower": False}


# ---- SciPy's names -----------------------------------------------------------------------------


@counterpart(scipy.linalg.solve)
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Any:
    """The solution x of ``a @ x = b``, as ``scipy.linalg.solve``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)
    b : array_like of shape (n,) or (..., n, k)
    lower : bool, default False
        Whether the lower triangle of a symmetric matrix is read.
    overwrite_a, overwrite_b, check_finite : bool
        Ignored; for compatibility with SciPy.
    assume_a : str, optional
        "general", "symmetric", "hermitian", "positive definite", "diagonal", "tridiagonal",
        "banded", "upper triangular", "lower triangular" or SciPy's short forms. By default it is
        general: the structure is not detected.
    transposed : bool, default False
        Solve ``a.T @ x = b``.

    Raises
    ------
    MatrixError
        A matrix is singular, not square, or not positive definite with `assume_a` "pos".
    ArgumentError
        Unknown structure.

    Notes
    -----
    The gradient with respect to `a` has its structure: it is symmetric for a symmetric matrix.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> a, b = np.array([[4.0, 2.0], [2.0, 3.0]]), np.array([1.0, 0.0])
    >>> wg.grad(lambda a: wg.scipy.linalg.solve(a, b, assume_a="pos")[1])(a)
    array([[ 0.09375, -0.125  ],
           [-0.125  ,  0.125  ]])
    """
    a, b = square(a, "solve"), floating(b)
    structure = STRUCTURES.get("general" if assume_a is None else assume_a)
    if structure is None:
        raise ArgumentError(
            f"solve with assume_a={assume_a!r}: it must be one of {sorted(STRUCTURES)}"
            f"{at(user_line())}."
        )
    if transposed:
        a = a.mT
        structure = _ADJOINT.get(structure, structure)
        lower = not lower
    if structure == "general":
        return linear_solve.solve(a, b)
    x = b[..., None] if b.ndim == 1 else b
    x = structured_solve(a, x, structure=structure, lower=bool(lower))
    return x[..., 0] if b.ndim == 1 else x


@counterpart(scipy.linalg.solve_triangular)
def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """The solution x of ``op(a) @ x = b``, a triangular, as ``scipy.linalg.solve_triangular``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)
        One triangle is read; the gradient is zero in the other.
    b : array_like of shape (n,) or (..., n, k)
    trans : {0, 1, 2, "N", "T", "C"}
        Whether op is the identity, the transpose or the adjoint.
    lower, unit_diagonal : bool, default False

    Raises
    ------
    MatrixError
        An element of the diagonal is zero.
    """
    return factorizations.solve_triangular(
        square(a, "solve_triangular"),
        floating(b),
        lower=bool(lower),
        trans=factorizations.TRANS[trans],
        unit_diagonal=bool(unit_diagonal),
    )


@counterpart(scipy.linalg.inv)
def inv(a: Any, *args: Any, assume_a: Any = None, lower: bool = False, **kwargs: Any) -> Any:
    """The inverse, as ``scipy.linalg.inv``; with `assume_a` as for `solve`."""
    a = square(a, "inv")
    if assume_a is None:
        return linear_solve.inv(a)
    return solve(a, np.eye(a.shape[-1], dtype=a.dtype), assume_a=assume_a, lower=lower)


@counterpart(scipy.linalg.det)
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinant, as ``scipy.linalg.det``; the gradient also holds for singular matrices."""
    return names.det(square(a, "det"))


@counterpart(scipy.linalg.lstsq)
def lstsq(a: Any, b: Any, cond: Any = None, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """The least-squares solution of ``a @ x = b``, as ``scipy.linalg.lstsq``.

    Parameters
    ----------
    a : array_like of shape (m, n)
    b : array_like of shape (m,) or (m, k)
    cond : float, optional
        Singular values below this fraction of the largest are treated as zero.

    Returns
    -------
    x, residues, rank, s
        As for `wengert.numpy.linalg.lstsq`; the residue of one vector is a scalar.
    """
    a, b = floating(a), floating(b)
    cutoff = float(np.finfo(np.result_type(a.dtype, b.dtype)).eps) if cond is None else cond
    x, residues, rank, s = names.lstsq(a, b, rcond=cutoff)
    if b.ndim == 1 and residues.ndim == 1 and residues.shape[0]:
        residues = residues[0]
    return x, residues, rank, s


def _cutoff(a: Any, atol: Any, rtol: Any) -> Any:
    """One relative tolerance from SciPy's `atol` and `rtol`."""
    if rtol is None:
        eps = float(np.finfo(a.dtype).eps) * max(a.shape[-2:])
        rtol = eps if atol is None else 0.0
    if not atol:
        return rtol
    if is_traced(a):
        raise TraceError(
            f"pinv with atol={atol!r} while tracing: the singular values are not known. Pass rtol "
            f"instead{at(user_line())}."
        )
    return rtol + atol / np.linalg.svd(value_of(a), compute_uv=False).max(-1, initial=0.0)


@counterpart(scipy.linalg.pinv)
def pinv(
    a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False, **kwargs: Any
) -> Any:
    """The pseudoinverse, as ``scipy.linalg.pinv``.

    Parameters
    ----------
    a : array_like of shape (..., m, n)
    atol, rtol : float, optional
        Singular values up to ``atol + rtol * largest`` are treated as zero.
    return_rank : bool, default False

    Notes
    -----
    The derivative is the one on the manifold of matrices of the same rank.
    """
    a = floating(a)
    rtol = _cutoff(a, atol, rtol)
    out = linear_solve.pinv(a, rtol=rtol)
    return (out, linear_solve.matrix_rank(a, rtol=rtol)) if return_rank else out


@counterpart(scipy.linalg.pinvh)
def pinvh(
    a: Any,
    atol: Any = None,
    rtol: Any = None,
    lower: bool = True,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """The pseudoinverse of a Hermitian matrix, as ``scipy.linalg.pinvh``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)
        Hermitian; for tensors the Hermitian part is used, and the gradient is Hermitian.
    atol, rtol : float, optional
        Eigenvalues of absolute value up to ``atol + rtol * largest`` are treated as zero.
    """
    a = hermitian_part(square(a, "pinvh"))
    rtol = _cutoff(a, atol, rtol)
    out = linear_solve.pinv(a, rtol=rtol, hermitian=True)
    return (out, linear_solve.matrix_rank(a, rtol=rtol, hermitian=True)) if return_rank else out
