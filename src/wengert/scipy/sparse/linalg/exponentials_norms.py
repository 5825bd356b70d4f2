"""Exponentials and norms of sparse matrices.

    expm_multiply  the product of the exponential and a vector or matrix
    expm           the exponential of a small matrix
    norm           of matrices, of rows or columns
    onenormest     an estimate of the 1-norm, for plain elements

The product is a polynomial in the matrix (A. H. Al-Mohy and N. J. Higham, "Computing the action of
the matrix exponential", 2011), whose steps are differentiated; their number is a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse.linalg

from wengert._engine.control_flow.fori_while import fori_loop
from wengert._engine.control_flow.loops import scan
from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, MatrixError, ShapeError, at, user_line

from ...dispatch import floating
from ..arrays import as_sparse, csc_array
from .eigenvalues import svds
from .iterative_systems import IterativeMethod, results
from .matrix_functions import MatrixFunction, matrix_function
from .operands import LinearOperator, is_sparse, uses_tensors

_DEGREE = 40  # of the Taylor polynomial of one step
_LARGEST_NORM = 6.0  # of the matrix of one step, for errors below the spacing of float64
_MAX_DENSE = 2048  # rows of matrices whose exponential is computed


class _NormAndMean(IterativeMethod):
    """The 1-norm of a matrix less the mean of its diagonal, and this mean (0 for operators)."""

    def specs(self, matrices: Sequence[MatrixFunction]) -> tuple[Spec, ...]:
        """Two numbers."""
        dtype = matrices[0].dtype
        return Spec((), dtype.type(0).real.dtype), Spec((), dtype)

    def __call__(self, matrices: Sequence[Any], starts: Sequence[Any]) -> tuple[Any, ...]:
        """Exactly for arrays, by an estimate for operators."""
        (a,), n = matrices, matrices[0].shape[0]
        if n == 0:
            return 0.0, 0.0
        if not scipy.sparse.issparse(a):
            exact = n <= 4  # too small for the estimate
            return (np.abs(a @ np.eye(n)).sum(0).max() if exact else _estimate(a)), 0.0
        mean = a.diagonal().mean()
        shifted = a - mean * scipy.sparse.eye_array(n, format="csr")
        return abs(shifted).sum(axis=0).max(), mean

    def __eq__(self, other: object) -> bool:
        return type(other) is _NormAndMean

    def __hash__(self) -> int:
        return hash(_NormAndMean)


def _estimate(a: Any) -> Any:
    """A bound of the 1-norm of most operators: twice the estimate."""
    return 2.0 * scipy.sparse.linalg.onenormest(a)


def _norm_and_mean(A: Any, dtype: Any) -> tuple[Any, Any]:
    matrix, consts = matrix_function(A, dtype, "expm_multiply")
    constants = [lookup("stop_gradient")(x) if isinstance(x, Handle) else x for x in consts]
    norm, mean = results(constants, [matrix], _NormAndMean())
    return norm, mean


def _advanced(A: Any, B: Any, time: Any, norm: Any, mean: Any) -> Any:
    """exp(time A) B."""
    size = np.ceil(norm * np.abs(time) / _LARGEST_NORM)
    steps = casts.astype(np.maximum(size, 1.0), np.int64)
    factor = time / steps
    growth = np.exp(factor * mean)

    def term(j: Any, state: Any) -> Any:
        total, b = state
        b = (A @ b - mean * b) * (factor / j)
        return total + b, b

    def step(_: Any, b: Any) -> Any:
        total, _ = fori_loop(1, _DEGREE + 1, term, (b, b))
        return casts.astype(total * growth, b.dtype)

    return fori_loop(0, steps, step, B)


def expm_multiply(
    A: Any,
    B: Any,
    start: Any = None,
    stop: Any = None,
    num: int | None = None,
    endpoint: bool | None = None,
    traceA: Any = None,
) -> Any:
    """The product of the exponential of a matrix and a vector or matrix.

    Parameters
    ----------
    A : array, sparse array or LinearOperator
        Square; its elements may be tensors.
    B : array
        A vector or a matrix.
    start, stop : number, optional
        The first and the last of the times t for which ``exp(t A) B`` is computed; differentiated.
    num : int, default 50
        The number of times.
    endpoint : bool, default True
        Whether `stop` is one of them.
    traceA : number, optional
        As in SciPy; not needed.

    Returns
    -------
    array
        ``exp(A) B``; with times, one for each along the first axis.

    Raises
    ------
    MatrixError, ShapeError
        `A` is not square, or `B` does not fit.

    Notes
    -----
    The number of products is about 7 times the 1-norm of the matrix, at least 40; reverse mode
    stores as many vectors.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from scipy.sparse import diags_array
    >>> from wengert.scipy.sparse.linalg import expm_multiply
    >>> def decayed(rate):
    ...     return expm_multiply(-rate * np.eye(2), np.array([1.0, 2.0]))
    >>> wg.jacobian(decayed)(1.0).round(6)
    array([-0.367879, -0.735759])
    """
    times = [t for t in (start, stop) if t is not None]
    if not (isinstance(A, LinearOperator) or uses_tensors(A, B, *times)):
        return scipy.sparse.linalg.expm_multiply(A, B, start, stop, num, endpoint, traceA)
    if A.shape[0] != A.shape[1]:
        raise MatrixError(
            f"expm_multiply: A has shape {A.shape}, and must be square{at(user_line())}."
        )
    B = floating(as_array(B))
    if len(shape_of(B)) not in (1, 2) or shape_of(B)[0] != A.shape[0]:
        raise ShapeError(
            f"expm_multiply: B has shape {shape_of(B)}, and must have {A.shape[0]} rows"
            f"{at(user_line())}."
        )
    dtype = np.result_type(A.dtype, B.dtype, np.float32)
    B = B if B.dtype == dtype else casts.astype(B, dtype)
    norm, mean = _norm_and_mean(A, np.result_type(A.dtype, np.float32))
    if start is None and stop is None and num is None and endpoint is None:
        return _advanced(A, B, 1.0, norm, mean)
    if start is None or stop is None:
        raise ArgumentError(
            f"expm_multiply: start={start!r} and stop={stop!r} must be given together"
            f"{at(user_line())}."
        )
    count = 50 if num is None else num
    last = endpoint is None or endpoint
    if count < 2:
        raise ArgumentError(f"expm_multiply: num={num} must be at least 2{at(user_line())}.")
    interval = (stop - start) / (count - 1 if last else count)
    first = _advanced(A, B, start, norm, mean)

    def following(y: Any, _: Any) -> Any:
        y = _advanced(A, y, interval, norm, mean)
        return y, y

    _, others = scan(following, first, length=count - 1)
    return lookup("concatenate")(lookup("expand_dims")(first, axis=0), others, axis=0)


def expm(A: Any) -> Any:
    """The exponential of a sparse matrix.

    Parameters
    ----------
    A : sparse array
        Its elements may be tensors; then it has at most 2048 rows, as its exponential is dense.

    Returns
    -------
    sparse array
        With all elements stored, for tensors.

    Raises
    ------
    ArgumentError
        The matrix is too large: use `expm_multiply`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csc_array
    >>> from wengert.scipy.sparse.linalg import expm
    >>> expm(csc_array([[0.0, 1.0], [0.0, 0.0]])).toarray()
    array([[1., 1.],
           [0., 1.]])
    """
    if not uses_tensors(A):
        return scipy.sparse.linalg.expm(A)
    if A.shape[0] > _MAX_DENSE:
        raise ArgumentError(
            f"expm of a sparse matrix of tensors with {A.shape[0]} rows: its exponential is dense, "
            f"and is computed up to {_MAX_DENSE} rows. Use expm_multiply{at(user_line())}."
        )
    from ...linalg import expm as dense_expm

    if not is_sparse(A):
        return dense_expm(A)
    made: Any = csc_array
    return made(dense_expm(A.toarray()))


def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    """The norm of a sparse matrix, or of its rows or columns, as ``scipy.sparse.linalg.norm``.

    Parameters
    ----------
    x : sparse array
        Its elements may be tensors.
    ord : {None, 'fro', 1, -1, 2, inf, -inf}
        The kind of norm; 0 only for plain elements.
    axis : int or None
        Norms of columns (0) or rows (1); of the matrix by default.

    Returns
    -------
    number or array

    Raises
    ------
    ArgumentError
        There is no such norm.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.sparse import csr_array
    >>> from wengert.scipy.sparse.linalg import norm
    >>> wg.grad(lambda d: norm(csr_array((d, ([0, 1], [1, 0])))))(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    if not uses_tensors(x):
        return scipy.sparse.linalg.norm(x, ord, axis)
    a = as_sparse(x).tocsr().canonical()
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if axis is None or axis in ((0, 1), (-2, -1)):
        if ord in (None, "fro", "f"):
            return np.linalg.norm(a.data)
        if ord == 2:
            return svds(a, 1, return_singular_vectors=False)[0]
        if ord in (1, -1, np.inf, -np.inf):
            sums = abs(a).sum(axis=0 if abs(ord) == 1 else 1)
            return np.max(sums) if ord > 0 else np.min(sums)
    elif axis in (0, 1, -1, -2):
        if ord in (None, 2):
            sums = a.with_data(np.abs(a.data) ** 2).sum(axis=axis)
            # The derivative is zero where all elements of a row are.
            return np.where(sums > 0, np.sqrt(np.where(sums > 0, sums, 1.0)), 0.0)
        if ord == 1:
            return abs(a).sum(axis=axis)
        if ord == np.inf:
            return abs(a).max(axis=axis)
    raise ArgumentError(
        f"norm of a sparse array of tensors with ord={ord!r} and axis={axis!r}: use None, 'fro', "
        f"1, -1, 2, inf or -inf for matrices, and None, 1, 2 or inf for rows{at(user_line())}."
    )


def onenormest(
    A: Any, t: int = 2, itmax: int = 5, compute_v: bool = False, compute_w: bool = False
) -> Any:
    """An estimate of the 1-norm, for plain elements.

    Parameters
    ----------
    A : array, sparse array or SciPy's LinearOperator
    t, itmax, compute_v, compute_w
        As in SciPy.

    Raises
    ------
    ArgumentError
        The elements of `A` are a tensor: the estimate has no derivative.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from wengert.scipy.sparse.linalg import onenormest
    >>> float(onenormest(csr_array([[1.0, 2.0], [0.0, 3.0]])))
    5.0
    """
    if uses_tensors(A):
        raise ArgumentError(
            "onenormest of tensors: the estimate has no derivative. Use norm(A, 1)"
            f"{at(user_line())}."
        )
    return scipy.sparse.linalg.onenormest(A, t, itmax, compute_v, compute_w)
