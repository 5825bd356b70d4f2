"""General matrix functions, conditions, balancing, angles, norms; conversions of Schur forms.

    funm             by Parlett's recurrence in the complex Schur form
    expm_cond        the condition number of expm
    matrix_balance   scaling of rows and columns to equal norms by powers of two
    subspace_angles  the principal angles between the ranges of two matrices
    norm, diagsvd, tril, triu
    issymmetric, ishermitian, bandwidth  computed from values; not differentiable
    block_signs      operation: the blocks of a real Schur form and the order of their eigenvalues
    rsf2csf          from a real to a complex Schur form, by one rotation for each block
    cdf2rdf          from complex eigenvalues and eigenvectors to real blocks and vectors

(G. H. Golub and C. F. Van Loan, Matrix Computations, 1996, algorithm 11.1.1; A. V. Knyazev and
M. E. Argentati, "Principal angles between subspaces in an A-based scalar product", SIAM J. Sci.
Comput. 23 (2002), 2009-2041.)

The positions of blocks and pairs are locally constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.core.op_facts import BY_SCIPY, facts
from wengert._engine.ops import casts
from wengert._engine.ops.elementwise.selection import where
from wengert._engine.ops.linalg.condition import accepted
from wengert._engine.ops.linalg.linear_solve import adjoint
from wengert._engine.ops.linalg.matrix_functions import expm as exponential
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import counterpart, floating, known_length
from .decompositions import orth
from .matrix_functions import derivative
from .register import entry, square
from .schur import schur

__all__ = [
    "LinAlgError", "LinAlgWarning", "bandwidth", "cdf2rdf", "diagsvd", "expm_cond", "funm",
    "ishermitian", "issymmetric", "matrix_balance", "norm", "rsf2csf", "subspace_angles", "tril",
    "triu",
]  # fmt: skip

# ---- functions ---------------------------------------------------------------------------------


@counterpart(scipy.linalg.funm)
def funm(A: Any, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """A function of a square matrix, as ``scipy.linalg.funm``.

    Parameters
    ----------
    A : array_like of shape (..., n, n)
    func : callable
        Maps an array of complex eigenvalues elementwise.  It may be composed of any differentiable
        NumPy functions, and may depend on other tensors.
    disp : bool
        Must be True: only the result is returned.

    Returns
    -------
    Tensor of shape (..., n, n)
        Real if A is real and the imaginary parts vanish up to rounding, as in SciPy. In a graph the
        result of a real matrix is real, and an error is raised at run time if it is complex.

    Raises
    ------
    MatrixError
        A derivative is needed and two eigenvalues are equal.
    ArgumentError
        disp is False.

    Notes
    -----
    Accuracy is lost for close eigenvalues, as in SciPy, but not by expm, logm, sqrtm and
    `fractional_matrix_power`. *Cost.* n**3, and a number of graph nodes proportional to n.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> f = lambda a: wg.scipy.linalg.funm(a, lambda w: w * w)[0, 1]
    >>> wg.grad(f)(np.array([[1.0, 2.0], [0.5, 3.0]])).round(6)
    array([[2., 4.],
           [0., 2.]])
    """
    if not disp:
        raise ArgumentError(
            f"funm of a tensor with disp=False: error estimates are not supported{at(user_line())}."
        )
    a = square(A, "funm")
    n = known_length(a.shape[-1], "funm")
    t, z = schur(a, "complex")
    i = np.arange(n)
    w = t[..., i, i]
    values = casts.astype(floating(func(w)), w.dtype)
    f = values[..., None] * np.eye(n)
    for p in range(1, n):
        rows, columns = i[:-p], i[p:]
        gap = w[..., columns] - w[..., rows]
        total = t[..., rows, columns] * (values[..., columns] - values[..., rows])
        if p > 1:
            inner = rows[:, None] + np.arange(1, p)
            r, c = rows[:, None], columns[:, None]
            total = total + np.sum(
                t[..., r, inner] * f[..., inner, c] - f[..., r, inner] * t[..., inner, c], axis=-1
            )
        equal = value_of(gap) == 0
        superdiagonal = where(equal, total, total / where(equal, 1.0, gap))
        f = _with_superdiagonal(f, superdiagonal, p)
    out = z @ f @ adjoint(z)
    return _real_if_close(out, a)


def _with_superdiagonal(f: Any, values: Any, p: int) -> Any:
    """`f` with its p-th superdiagonal, which is zero, replaced by `values`."""
    n = f.shape[-1]
    zeros = np.zeros((*values.shape[:-1], p), values.dtype)
    padded = np.concatenate([values, zeros], axis=-1)
    return f + padded[..., None] * np.eye(n, k=p)


def _real_if_close(x: Any, a: Any) -> Any:
    if a.dtype.kind == "c":
        return x
    size = 1e6 if x.dtype == np.complex128 else 1e3
    near = np.abs(np.imag(value_of(x))) <= size * np.finfo(x.dtype).eps
    if is_traced(x):
        why = "the function of a real matrix is complex; convert the matrix to a complex dtype"
        return accepted(np.real(x), near, why=why)
    while isinstance(near, Handle):
        near = value_of(near)
    return np.real(x) if np.all(near) else x


@counterpart(scipy.linalg.expm_cond)
def expm_cond(A: Any, check_finite: bool = True) -> Any:
    """The relative condition number of the exponential, as ``scipy.linalg.expm_cond``.

    Parameters
    ----------
    A : array_like of shape (..., n, n)

    Notes
    -----
    The largest singular value of the derivative, a matrix of n**2 rows, times a ratio of norms.
    *Cost.* n**5 for its entries, n**6 for the value.
    """
    a = square(A, "expm_cond")
    n = known_length(a.shape[-1], "expm_cond")
    basis = np.eye(n * n, dtype=a.dtype).reshape((n * n, n, n))
    repeated = np.broadcast_to(a[..., None, :, :], (*a.shape[:-2], n * n, n, n))
    directions = np.broadcast_to(basis, repeated.shape)
    k = derivative(exponential, repeated, directions).reshape((*a.shape[:-2], n * n, n * n))
    norms = [np.linalg.norm(x, axis=(-2, -1)) for x in (a, exponential(a))]
    return np.linalg.norm(k, 2, axis=(-2, -1)) * norms[0] / norms[1]


# ---- balance -----------------------------------------------------------------------------------


def _balance_oracle(a: Any, *, permute: bool, scale: bool) -> Any:
    """From the transformation as one matrix."""
    t = scipy.linalg.matrix_balance(a, permute, scale)[1]
    return t.sum(axis=0), np.argmax(t != 0, axis=0)


@facts(host_callback=BY_SCIPY)
@entry("Check it for NaN and infinity", "2", discrete=True, oracle=_balance_oracle)
def balancing(a, *, permute, scale):
    """The powers of two and the permutation that balance a matrix."""
    _, (factors, order) = scipy.linalg.matrix_balance(a, permute, scale, separate=True)
    return factors, order


@balancing.examples
def _(rng):
    a = np.array([[1.0, 100.0, 0.0], [0.01, 2.0, 0.0], [3.0, 4.0, 5.0]])
    yield (a,), {"permute": True, "scale": True}


@counterpart(scipy.linalg.matrix_balance)
def matrix_balance(
    A: Any,
    permute: bool = True,
    scale: bool = True,
    separate: bool = False,
    overwrite_a: bool = False,
) -> Any:
    """A similar matrix with rows and columns of equal norm, as ``scipy.linalg.matrix_balance``.

    Parameters
    ----------
    A : array_like of shape (..., n, n)
    permute, scale : bool, default True
        Whether to permute and to scale.
    separate : bool, default False
        Return the scale and the permutation instead of the transformation.
    overwrite_a
        Ignored; for compatibility with SciPy.

    Returns
    -------
    B : Tensor of shape (..., n, n)
    T : array of shape (..., n, n), or (scale, order)
        Piecewise constant powers of two, without derivative.
    """
    a = square(A, "matrix_balance")
    factors, order = balancing(value_of(a), permute=bool(permute), scale=bool(scale))
    factors = casts.astype(factors, np.finfo(a.dtype).dtype)
    permuted = np.take_along_axis(a, order[..., :, None], axis=-2)
    permuted = np.take_along_axis(permuted, order[..., None, :], axis=-1)
    b = permuted * factors[..., None, :] / factors[..., :, None]
    if separate:
        return b, (factors, order)
    n = a.shape[-1]
    scaling = np.eye(n, dtype=np.finfo(a.dtype).dtype) * factors[..., None, :]
    return b, np.take_along_axis(scaling, np.argsort(order, axis=-1)[..., :, None], axis=-2)


# ---- angles ------------------------------------------------------------------------------------


@counterpart(scipy.linalg.subspace_angles)
def subspace_angles(A: Any, B: Any) -> Any:
    """The principal angles between ranges, decreasing, as ``scipy.linalg.subspace_angles``.

    Parameters
    ----------
    A : array_like of shape (..., m, n)
    B : array_like of shape (..., m, k)

    Returns
    -------
    Tensor of shape (..., min(rank of A, rank of B))

    Raises
    ------
    MatrixError
        A derivative that does not exist is needed: of an angle that is zero, right, or equal to
        another one.

    Notes
    -----
    Angles below 45 degrees are computed from their sines, others from their cosines.
    """
    a, b = floating(A), floating(B)
    if a.shape[-2] != b.shape[-2]:
        raise ShapeError(
            f"subspace_angles of shapes {a.shape} and {b.shape}: both must have the same number of "
            f"rows{at(user_line())}."
        )
    first, second = orth(a), orth(b)
    if first.shape[-1] < second.shape[-1]:
        first, second = second, first
    product = adjoint(first) @ second
    cosines = np.linalg.svd(product, compute_uv=False)
    sines = np.linalg.svd(second - first @ product, compute_uv=False)[..., : second.shape[-1]]
    cosines = cosines[..., ::-1]
    small = value_of(cosines) ** 2 >= 0.5
    # unused elements are replaced by values where arcsin and arccos are differentiable
    by_sine = np.arcsin(np.clip(where(small, sines, 0.0), -1.0, 1.0))
    by_cosine = np.arccos(np.clip(where(small, 0.0, cosines), -1.0, 1.0))
    return where(small, by_sine, by_cosine)


LinAlgError = scipy.linalg.LinAlgError
LinAlgWarning = scipy.linalg.LinAlgWarning
tril, triu = np.tril, np.triu


@counterpart(scipy.linalg.norm)
def norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True
) -> Any:
    """The norm of a vector or matrix, as ``scipy.linalg.norm``; see `wengert.numpy.linalg.norm`."""
    return np.linalg.norm(floating(a), ord, axis, keepdims)


@counterpart(scipy.linalg.diagsvd)
def diagsvd(s: Any, M: int, N: int) -> Any:
    """The M by N matrix with singular values on its diagonal, as ``scipy.linalg.diagsvd``."""
    s = floating(s)
    k = s.shape[-1]
    wide = s[..., None] * np.eye(k, N, dtype=s.dtype)
    return wide if k == M else np.eye(M, k, dtype=s.dtype) @ wide


@counterpart(scipy.linalg.issymmetric)
def issymmetric(a: Any, atol: Any = None, rtol: Any = None) -> Any:
    """Whether a matrix is symmetric, as ``scipy.linalg.issymmetric``; not traceable."""
    return scipy.linalg.issymmetric(np.asarray(value_of(a)), atol, rtol)


@counterpart(scipy.linalg.ishermitian)
def ishermitian(a: Any, atol: Any = None, rtol: Any = None) -> Any:
    """Whether a matrix is Hermitian, as ``scipy.linalg.ishermitian``; not traceable."""
    return scipy.linalg.ishermitian(np.asarray(value_of(a)), atol, rtol)


@counterpart(scipy.linalg.bandwidth)
def bandwidth(a: Any) -> Any:
    """The lower and upper bandwidth, as ``scipy.linalg.bandwidth``."""
    return scipy.linalg.bandwidth(np.asarray(value_of(a)))


# ---- real and complex forms of eigenvalues -----------------------------------------------------


def _signs_oracle(t: Any) -> Any:
    """Test oracle: from SciPy's triangular form of the blocks."""
    out = np.zeros(t.shape[-1])
    for m in np.flatnonzero(np.diagonal(t, -1)) + 1:
        block = t[m - 1 : m + 1, m - 1 : m + 1]
        out[m] = np.sign(scipy.linalg.rsf2csf(block, np.eye(2))[0][0, 0].imag)
    return out


@facts(host_callback=BY_SCIPY)
@entry("Check it for NaN and infinity", "2", discrete=True, oracle=_signs_oracle)
def block_signs(t):
    """For each row 0, or, if it is the second of a block, the sign of the first imaginary part."""
    out = np.zeros(t.shape[-1])
    eps = np.finfo(t.dtype if t.dtype.kind in "fc" else float).eps
    for m in range(1, t.shape[-1]):
        if abs(t[m, m - 1]) > eps * (abs(t[m - 1, m - 1]) + abs(t[m, m])):
            block = t[m - 1 : m + 1, m - 1 : m + 1].astype(complex)
            out[m] = 1.0 if np.linalg.eigvals(block)[0].imag >= 0 else -1.0
    return out


@block_signs.examples
def _(rng):
    yield (np.array([[1.0, 2.0, 0.5], [-0.3, 1.0, 0.7], [0.0, 0.0, 3.0]]),), {}


@counterpart(scipy.linalg.rsf2csf)
def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """Convert a real Schur form to a complex one, as ``scipy.linalg.rsf2csf``.

    Parameters
    ----------
    T, Z : array_like of shape (..., n, n)
        The result of `schur`.

    Returns
    -------
    T, Z : Tensor of shape (..., n, n)
        Complex; T is upper triangular.

    Notes
    -----
    Differentiable with respect to both. The number of graph nodes is proportional to n.
    """
    t, z = square(T, "rsf2csf"), square(Z, "rsf2csf")
    signs = block_signs(value_of(t))
    dtype = np.result_type(t.dtype, z.dtype, np.complex64)
    t, z = casts.astype(t, dtype), casts.astype(z, dtype)
    n = known_length(t.shape[-1], "rsf2csf")
    for m in range(n - 1, 0, -1):
        sign = signs[..., m]
        used = sign != 0
        g = _rotation(t[..., m - 1 : m + 1, m - 1 : m + 1], sign, used)
        inside = np.eye(n, dtype=dtype)[:, m - 1 : m + 1]
        rotation = np.eye(n, dtype=dtype) + inside @ (g - np.eye(2)) @ inside.T
        t = rotation @ t @ adjoint(rotation)
        z = z @ adjoint(rotation)
    return where(np.tri(n, k=-1, dtype=bool), 0.0, t), z


def _rotation(block: Any, sign: Any, used: Any) -> Any:
    """The unitary matrix that makes a block upper triangular; the identity if not `used`."""
    p, q, r, s = (block[..., i, j] for i in (0, 1) for j in (0, 1))
    r, q = where(used, r, 1.0), where(used, q, -1.0)
    half = (p - s) * 0.5
    root = np.sqrt(casts.astype(-(half * half + q * r), block.dtype))
    mu = half + 1j * sign * root  # the first eigenvalue minus the last element
    size = np.sqrt(np.abs(mu) ** 2 + np.abs(r) ** 2)
    c, d = mu / size, r / size
    rows = np.stack([np.conjugate(c), d, -d, c], axis=-1).reshape((*c.shape, 2, 2))
    return where(used[..., None, None], rows, np.eye(2))


@counterpart(scipy.linalg.cdf2rdf)
def cdf2rdf(w: Any, v: Any) -> tuple[Any, Any]:
    """Convert complex eigenvalues and eigenvectors to real form, as ``scipy.linalg.cdf2rdf``.

    Parameters
    ----------
    w : array_like of shape (..., n)
        Eigenvalues; those that are not real must be in conjugate pairs.
    v : array_like of shape (..., n, n)

    Returns
    -------
    wr : Tensor of shape (..., n, n)
        Block diagonal, with 1x1 and 2x2 blocks.
    vr : Tensor of shape (..., n, n)

    Raises
    ------
    ArgumentError
        The number of eigenvalues that are not real is odd.
    """
    w, v = floating(w), square(v, "cdf2rdf")
    n = w.shape[-1]
    pairs = np.imag(value_of(w)) != 0
    count = np.cumsum(pairs, axis=-1)
    if not isinstance(count, Handle) and n and np.any(count[..., -1] % 2):
        raise ArgumentError(
            "cdf2rdf with an odd number of eigenvalues that are not real: they must be in "
            f"conjugate pairs{at(user_line())}."
        )
    pair_index = (count + 1) // 2
    first = pairs & (count % 2 == 1)
    diagonal = np.eye(n, dtype=bool)
    linked = (pair_index[..., :, None] == pair_index[..., None, :]) & pairs[..., :, None]
    linked = linked & pairs[..., None, :]
    off_diagonal = linked & ~diagonal
    wr = where(diagonal, np.real(w)[..., None], where(off_diagonal, np.imag(w)[..., None], 0.0))
    sign = where(first, 0.5j, -0.5j)[..., None]
    u = where(linked, where(first[..., None, :], sign, 0.5), where(diagonal, 1.0 + 0j, 0.0))
    return wr, np.real(v @ u)
