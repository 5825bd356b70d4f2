"""Toeplitz, circulant, companion and other structured matrices, and linear systems with them.

    toeplitz_solve                                  operation (Levinson recursion)
    solve_toeplitz, matmul_toeplitz, solve_circulant
    toeplitz, hankel, circulant, companion          built by indexing; their gradients are sums
    fiedler, fiedler_companion, leslie              built by scattering elements
    block_diag, khatri_rao, convolution_matrix

Functions without differentiable arguments (hadamard, hilbert, dft ...) are those of SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.core.handle import Handle, value_of
from wengert._engine.tensor.numpy_dispatch import as_array, spread
from wengert.errors import ArgumentError, MatrixError, ShapeError, at, user_line

from ..dispatch import counterpart, floating, known_length
from .register import entry

__all__ = """
    toeplitz hankel circulant companion block_diag khatri_rao convolution_matrix solve_toeplitz
    matmul_toeplitz solve_circulant hadamard hilbert invhilbert pascal invpascal dft helmert
    fiedler fiedler_companion leslie
""".split()


hadamard = scipy.linalg.hadamard
hilbert = scipy.linalg.hilbert
invhilbert = scipy.linalg.invhilbert
pascal = scipy.linalg.pascal
invpascal = scipy.linalg.invpascal
dft = scipy.linalg.dft
helmert = scipy.linalg.helmert


def _conj(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


def _vector(x: Any, name: str) -> Any:
    x = floating(x)
    if x.ndim != 1:
        raise ShapeError(
            f"{name} of shape {x.shape}: the argument must be one-dimensional. Use vmap for batches"
            f"{at(user_line())}."
        )
    return x


# ---- matrices ----------------------------------------------------------------------------------


@counterpart(scipy.linalg.toeplitz)
def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with constant diagonals, as ``scipy.linalg.toeplitz``.

    Parameters
    ----------
    c : array_like of shape (m,)
        Its first column.
    r : array_like of shape (n,), optional
        Its first row, whose first element is ignored; by default the conjugate of `c`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda c: wg.scipy.linalg.toeplitz(c).sum())(np.array([1.0, 2.0, 3.0]))
    array([3., 4., 2.])
    """
    c = _vector(c, "toeplitz")
    r = _conj(c) if r is None else _vector(r, "toeplitz")
    m, n = c.shape[0], r.shape[0]
    elements = np.concatenate([c[::-1], r[1:]])
    return elements[(m - 1) - np.arange(m)[:, None] + np.arange(n)]


@counterpart(scipy.linalg.hankel)
def hankel(c: Any, r: Any = None) -> Any:
    """The matrix with constant antidiagonals, as ``scipy.linalg.hankel``.

    Parameters
    ----------
    c : array_like of shape (m,)
        Its first column.
    r : array_like of shape (n,), optional
        Its last row, whose first element is ignored; by default zeros.
    """
    c = _vector(c, "hankel")
    r = np.zeros(c.shape, c.dtype) if r is None else _vector(r, "hankel")
    elements = np.concatenate([c, r[1:]])
    return elements[np.arange(c.shape[0])[:, None] + np.arange(r.shape[0])]


@counterpart(scipy.linalg.circulant)
def circulant(c: Any) -> Any:
    """The circulant matrix with first column `c`, as ``scipy.linalg.circulant``."""
    c = floating(c)
    n = c.shape[-1]
    return c[..., (np.arange(n)[:, None] - np.arange(n)) % n]


@counterpart(scipy.linalg.companion)
def companion(a: Any) -> Any:
    """The companion matrix of a polynomial, highest power first, as ``scipy.linalg.companion``."""
    a = _vector(a, "companion")
    n = a.shape[0] - 1
    if n < 1:
        raise ShapeError(f"companion of {n + 1} coefficients: give at least two{at(user_line())}.")
    below = np.eye(n - 1, n, dtype=a.dtype)
    return np.concatenate([(-a[1:] / a[0])[None, :], below], axis=0)


@counterpart(scipy.linalg.convolution_matrix)
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """The matrix that convolves n numbers with `a`, as ``scipy.linalg.convolution_matrix``."""
    a = _vector(a, "convolution_matrix")
    m = a.shape[0]
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(
            f"convolution_matrix with mode={mode!r}: the mode must be 'full', 'same' or 'valid'"
            f"{at(user_line())}."
        )
    zeros = np.zeros(n - 1, a.dtype)
    elements = np.concatenate([zeros, a, zeros])
    full = elements[np.arange(n + m - 1)[:, None] - np.arange(n) + n - 1]
    if mode == "full":
        return full
    length = max(m, n) if mode == "same" else max(m, n) - min(m, n) + 1
    first = (n + m - 1 - length) // 2 if mode == "same" else min(m, n) - 1
    return full[first : first + length]


@counterpart(scipy.linalg.block_diag)
def block_diag(*arrs: Any) -> Any:
    """A block diagonal matrix, as ``scipy.linalg.block_diag``.

    Parameters
    ----------
    *arrs : array_like
        Matrices; a vector is a row. Earlier axes broadcast.
    """
    arrays: list[Any] = [as_array(x) for x in arrs]
    blocks = [np.atleast_2d(x) for x in arrays]
    if not blocks:
        return np.zeros((1, 0))
    batch = np.broadcast_shapes(*[b.shape[:-2] for b in blocks])
    columns = sum(b.shape[-1] for b in blocks)
    dtype = np.result_type(*[b.dtype for b in blocks])
    rows, before = [], 0
    for b in blocks:
        height, width = b.shape[-2:]
        b = np.broadcast_to(b, (*batch, height, width))
        left = np.zeros((*batch, height, before), dtype)
        right = np.zeros((*batch, height, columns - before - width), dtype)
        rows.append(np.concatenate([left, b, right], axis=-1))
        before += width
    return np.concatenate(rows, axis=-2)


@counterpart(scipy.linalg.khatri_rao)
def khatri_rao(a: Any, b: Any) -> Any:
    """The Kronecker products of the columns of two matrices, as ``scipy.linalg.khatri_rao``.

    Parameters
    ----------
    a : array_like of shape (n, k)
    b : array_like of shape (m, k)

    Returns
    -------
    Tensor of shape (n * m, k)
    """
    a, b = floating(a), floating(b)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ShapeError(
            f"khatri_rao of shapes {a.shape} and {b.shape}: both must be matrices with the same "
            f"number of columns{at(user_line())}."
        )
    return (a[:, None, :] * b[None, :, :]).reshape((-1, b.shape[1]))


# ---- linear systems ----------------------------------------------------------------------------


def _toeplitz_oracle(c: Any, r: Any, b: Any) -> Any:
    return np.linalg.solve(scipy.linalg.toeplitz(c, r), b)


@entry(
    "Use solve, which pivots, if a leading principal submatrix is singular",
    "112",
    like=2,
    oracle=_toeplitz_oracle,
)
def toeplitz_solve(c, r, b):
    """x with toeplitz(c, r) @ x = b; the first element of r is ignored."""
    found = scipy.linalg.solve_toeplitz((c, r), b)
    return found.astype(np.result_type(c, r, b, np.float32), copy=False)


def _diagonal_sums(x: Any, y: Any, n: Any) -> tuple[Any, Any]:
    """The diagonal sums of ``x @ adjoint(y)``: gradients of the first column and the first row."""
    zero = spread(np.zeros((), x.dtype), (1, *x.shape[1:]))
    padded = np.concatenate([x, zero], axis=0)
    of_c = np.einsum("kjc,jc->k", padded[_shifted_indices(n, 1)], _conj(y))
    of_r = np.einsum("kjc,jc->k", padded[_shifted_indices(n, -1)], _conj(y))
    return of_c, of_r


def _shifted_indices(n: int, sign: int) -> Any:
    """The indices j + sign k for each shift k and index j, and n where they are out of range."""
    indices = np.arange(n) + sign * np.arange(n)[:, None]
    return np.where((indices >= 0) & (indices < n), indices, n)


@toeplitz_solve.define_vjp
def _toeplitz_solve_vjp(t, out, c, r, b):
    first = np.concatenate([c[:1], r[1:]])
    z = toeplitz_solve(_conj(first), _conj(c), t)
    of_c, of_r = _diagonal_sums(z, out, c.shape[0])
    return -of_c, -np.concatenate([np.zeros_like(of_r[:1]), of_r[1:]]), z


@toeplitz_solve.define_jvp
def _toeplitz_solve_jvp(dots, out, c, r, b):
    c_dot, r_dot, right = dots
    if c_dot is not None or r_dot is not None:
        c_dot = np.zeros_like(c) if c_dot is None else c_dot
        r_dot = np.zeros_like(r) if r_dot is None else r_dot
        change = toeplitz(c_dot, r_dot) @ out
        right = -change if right is None else right - change
    return toeplitz_solve(c, r, right)


@toeplitz_solve.examples
def _(rng):
    c, r = rng.normal(size=3), rng.normal(size=3)
    c[0] += 5.0
    yield (c, r, rng.normal(size=(3, 2))), {}


def _column_and_row(c_or_cr: Any, name: str) -> tuple[Any, Any]:
    if isinstance(c_or_cr, tuple):
        c, r = c_or_cr
        return _vector(c, name), _vector(r, name)
    c = _vector(c_or_cr, name)
    return c, _conj(c)


@counterpart(scipy.linalg.solve_toeplitz)
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """The solution of a Toeplitz system, as ``scipy.linalg.solve_toeplitz``.

    Parameters
    ----------
    c_or_cr : array_like of shape (n,) or tuple of two
        First column and first row, as for `toeplitz`.
    b : array_like of shape (n,) or (n, ...)

    Raises
    ------
    MatrixError
        A leading principal submatrix is singular.

    Notes
    -----
    Value and gradient cost n**2 for each vector.
    """
    c, r = _column_and_row(c_or_cr, "solve_toeplitz")
    b = floating(b)
    x = toeplitz_solve(c, r, b.reshape((b.shape[0], -1)))
    return x.reshape(b.shape)


@counterpart(scipy.linalg.matmul_toeplitz)
def matmul_toeplitz(c_or_cr: Any, x: Any, check_finite: bool = False, workers: Any = None) -> Any:
    """A Toeplitz matrix times `x`, as ``scipy.linalg.matmul_toeplitz``.

    Parameters
    ----------
    c_or_cr : array_like of shape (m,) or tuple of two
        First column and first row, as for `toeplitz`.
    x : array_like of shape (n,) or (n, k)
    check_finite, workers
        Ignored; for compatibility with SciPy.

    Notes
    -----
    Computed by Fourier transforms, as in SciPy: n log(n) for each vector.
    """
    c, r = _column_and_row(c_or_cr, "matmul_toeplitz")
    x = floating(x)
    columns = x[:, None] if x.ndim == 1 else x
    m, n = c.shape[0], r.shape[0]
    circulant_column = np.concatenate([c, r[:0:-1]])
    is_complex = "c" in (circulant_column.dtype.kind, x.dtype.kind)
    forward, inverse = (np.fft.fft, np.fft.ifft) if is_complex else (np.fft.rfft, np.fft.irfft)
    length = m + n - 1
    product = forward(circulant_column, length)[:, None] * forward(columns, length, axis=0)
    out = inverse(product, length, axis=0)[:m]
    return out[:, 0] if x.ndim == 1 else out


@counterpart(scipy.linalg.solve_circulant)
def solve_circulant(
    c: Any,
    b: Any,
    singular: str = "raise",
    tol: Any = None,
    caxis: int = -1,
    baxis: int = 0,
    outaxis: int = 0,
) -> Any:
    """The solution of ``circulant(c) @ x = b``, as ``scipy.linalg.solve_circulant``.

    Parameters
    ----------
    c : array_like
        First columns, along `caxis`.
    b : array_like
        Right-hand sides, along `baxis`.
    singular : {"raise"}
        "lstsq" is supported for plain arrays only.
    caxis, baxis, outaxis : int
        The axes of the vectors; the others broadcast.

    Raises
    ------
    MatrixError
        A matrix is singular.

    Notes
    -----
    Computed by Fourier transforms: n log(n).
    """
    if singular != "raise":
        raise ArgumentError(
            f"solve_circulant of a tensor with singular={singular!r}: only 'raise' is supported, "
            f"as least-squares solutions are discontinuous. Use lstsq{at(user_line())}."
        )
    c, b = np.moveaxis(floating(c), caxis, -1), np.moveaxis(floating(b), baxis, -1)
    spectrum = np.fft.fft(c)
    size = np.abs(value_of(spectrum))
    if not isinstance(size, Handle):
        limit = tol if tol is not None else size.max() * size.shape[-1] * np.finfo(size.dtype).eps
        if np.any(size <= limit):
            raise MatrixError(
                f"solve_circulant of shape {c.shape}: a matrix is singular, up to rounding. Use "
                f"lstsq with circulant(c){at(user_line())}."
            )
    x = np.fft.ifft(np.fft.fft(b) / spectrum)
    if c.dtype.kind != "c" and b.dtype.kind != "c":
        x = np.real(x)
    return np.moveaxis(x, -1, outaxis)


@counterpart(scipy.linalg.fiedler)
def fiedler(a: Any) -> Any:
    """The matrix of absolute differences, as ``scipy.linalg.fiedler``.

    Parameters
    ----------
    a : array_like of shape (..., n)

    Returns
    -------
    Tensor of shape (..., n, n)
        The derivative of an absolute difference is 0 where it is 0.
    """
    a = np.atleast_1d(floating(a))
    return np.abs(a[..., :, None] - a[..., None, :])


def _scatter(rows: Any, columns: Any, values: Any, n: int) -> Any:
    """A matrix with elements at given positions."""
    selectors = np.zeros((len(rows), n, n))
    selectors[np.arange(len(rows)), rows, columns] = 1.0
    return np.einsum("...k,kij->...ij", values, selectors.astype(values.dtype))


@counterpart(scipy.linalg.fiedler_companion)
def fiedler_companion(a: Any) -> Any:
    """A pentadiagonal companion matrix, as ``scipy.linalg.fiedler_companion``.

    Parameters
    ----------
    a : array_like of shape (..., n)
        The coefficients of a polynomial, highest power first; the first is nonzero.

    Returns
    -------
    Tensor of shape (..., n - 1, n - 1)
    """
    a = np.atleast_1d(floating(a))
    count = known_length(a.shape[-1], "fiedler_companion")
    if count < 2:
        return a[..., 1:]
    n = count - 1
    a = a / a[..., :1]
    if n == 1:
        return -a[..., 1:, None]
    ones = np.zeros((n, n))
    ones[range(3, n, 2), range(1, n - 2, 2)] = 1.0
    ones[range(0, n - 2, 2), range(2, n, 2)] = 1.0
    ones[1, 0] = 1.0
    rows = [*range(2, n, 2), *range(0, n - 1, 2), 0]
    columns = [*range(1, n - 1, 2), *range(1, n, 2), 0]
    indices = [*range(3, count, 2), *range(2, count, 2), 1]
    return _scatter(rows, columns, -a[..., indices], n) + ones.astype(a.dtype)


@counterpart(scipy.linalg.leslie)
def leslie(f: Any, s: Any) -> Any:
    """The Leslie matrix of an age-structured population, as ``scipy.linalg.leslie``.

    Parameters
    ----------
    f : array_like of shape (..., n)
        The fecundity of each age class.
    s : array_like of shape (..., n - 1)
        The survival rate of each age class.

    Returns
    -------
    Tensor of shape (..., n, n)
    """
    f, s = np.atleast_1d(floating(f)), np.atleast_1d(floating(s))
    n = known_length(f.shape[-1], "leslie")
    if s.shape[-1] != n - 1 or n < 2:
        raise ShapeError(
            f"leslie with f of length {n} and s of length {s.shape[-1]}: s must have one element "
            f"less than f, and at least one{at(user_line())}."
        )
    below = s[..., :, None] * np.eye(n - 1, n, dtype=s.dtype)
    batch = np.broadcast_shapes(f.shape[:-1], s.shape[:-1])
    top = np.broadcast_to(f[..., None, :], (*batch, 1, n))
    return np.concatenate([top, np.broadcast_to(below, (*batch, n - 1, n))], axis=-2)
