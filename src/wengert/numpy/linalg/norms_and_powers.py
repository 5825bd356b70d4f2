"""Norms, condition, rank, powers and products of matrices, under the names of `numpy.linalg`.

norm, vector_norm, matrix_norm, cond, matrix_rank
trace, diagonal, matrix_transpose
matrix_power, multi_dot
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import possibly, value_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.symbolic.dim import is_symbolic
from wengert._engine.kinds.reduction import Axis
from wengert._engine.ops import joining, shapes
from wengert._engine.ops.elementwise.selection import where
from wengert._engine.ops.linalg import determinants, eigen_svd, linear_solve
from wengert._engine.ops.linalg.matrix_functions import nuclear_norm
from wengert._engine.tensor.numpy_dispatch import as_array, counterpart, spread
from wengert._engine.tensor.numpy_protocols import deliver
from wengert.errors import ArgumentError, DtypeError, MatrixError, ShapeError, at, user_line

from .. import minmax_norms
from ..creation import eye

Ord = float | str | None


# ---- norms -------------------------------------------------------------------------------------


@counterpart(np.linalg.norm)
def norm(x: Any, ord: Ord = None, axis: Axis = None, keepdims: bool = False) -> Any:
    """The norm of vectors or matrices, as ``numpy.linalg.norm``.

    Parameters
    ----------
    x : array_like
    ord : {None, "fro", "nuc", inf, -inf, 0, 1, -1, 2, -2, any p}
        For matrices None and "fro" are the root of the sum of squares, 2 the largest singular
        value, "nuc" their sum.
    axis : int or tuple of two ints, optional
        One axis for vectors, two for matrices; by default all of `x`.
    keepdims : bool, default False

    Raises
    ------
    ArgumentError
        Unknown order.
    ShapeError
        The number of axes is neither one nor two.

    Notes
    -----
    The derivative at zero is zero. If several elements or singular values are the largest, they
    share the derivative.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(np.linalg.norm)(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    x = as_array(x)
    if axis is None:
        if ord is None or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1):
            return minmax_norms.vector_norm(x, 2, None, keepdims)
        axis = tuple(range(x.ndim))
    axes = axis if isinstance(axis, tuple) else (operator.index(axis),)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise _unknown(ord, "vectors")
        return minmax_norms.vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, "fro" if ord is None else ord, axes, keepdims)
    raise ShapeError(
        f"norm over {len(axes)} axes: vectors have one axis and matrices two. Select them by "
        f"axis{at(user_line())}."
    )


def _unknown(ord: Any, what: str) -> ArgumentError:
    return ArgumentError(
        f"ord={ord!r} is not a norm of {what}. Use a number, or for matrices one of 'fro', "
        f"'nuc', 1, -1, 2, -2, inf, -inf{at(user_line())}."
    )


def _matrix_norm(x: Any, ord: Any, axes: Any, keepdims: bool) -> Any:
    row, column = (i % x.ndim for i in axes)
    if row == column:
        raise ShapeError(f"norm of a matrix in axes {axes}: they are the same{at(user_line())}.")
    if ord in ("f", "fro", 1, -1, math.inf, -math.inf):
        return minmax_norms.matrix_norm(x, ord, (row, column), keepdims)
    pick: Any = {2: np.max, -2: np.min, "nuc": nuclear_norm}.get(ord)
    if pick is None:
        raise _unknown(ord, "matrices")
    rest = [i for i in range(x.ndim) if i not in (row, column)]
    last = shapes.transpose(x, axes=(*rest, row, column))
    if pick is nuclear_norm:
        out = nuclear_norm(last)
    else:
        values = np.abs(eigen_svd.svd(last)[1])  # |.| for its derivative 0 at 0
        if ord == 2 and values.shape[-1] == 0:
            pick = np.sum  # empty: the norm is 0
        out = pick(values, axis=-1)
    if keepdims:
        kept = tuple(1 if i in (row, column) else n for i, n in enumerate(x.shape))
        out = shapes.reshape(out, shape=kept)
    return out


@counterpart(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Any:
    """The norm of vectors along axes, as ``numpy.linalg.vector_norm``.

    Parameters
    ----------
    x : array_like
    axis : int, tuple of int or None
        None for all elements as one vector.
    keepdims : bool, default False
    ord : float, default 2
    """
    return minmax_norms.vector_norm(as_array(x), ord, axis, keepdims)


@counterpart(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices in the last two axes, as ``numpy.linalg.matrix_norm``.

    Parameters
    ----------
    x : array_like of shape (..., m, n)
    keepdims : bool, default False
    ord : {"fro", "nuc", inf, -inf, 1, -1, 2, -2}
    """
    return _matrix_norm(as_array(x), "fro" if ord is None else ord, (-2, -1), keepdims)


@counterpart(np.linalg.cond)
def cond(x: Any, p: Ord = None) -> Any:
    """The condition number, as ``numpy.linalg.cond``.

    Parameters
    ----------
    x : array_like of shape (..., m, n)
    p : {None, 2, -2, "fro", "nuc", inf, -inf, 1, -1}
        The norm; None is 2.

    Raises
    ------
    MatrixError
        There are no elements, or NaN or infinity where p is None, 2 or -2.

    Notes
    -----
    Infinite for a singular matrix, as in NumPy; the derivative there is NaN.
    """
    x = as_array(x)
    if 0 in x.shape[-2:]:
        raise MatrixError(
            f"cond of shape {x.shape}: matrices without elements have no condition number"
            f"{at(user_line())}."
        )
    if p is None or p in (2, -2):
        s = eigen_svd.svd(x)[1]
        with np.errstate(all="ignore"):
            found = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
        return _or_infinite(found, np.isnan(value_of(found)), x)
    singular = value_of(determinants.slogdet(x)[0]) == 0
    if possibly(singular):
        regular = where(singular[..., None, None], eye(x.shape[-1], dtype=x.dtype), x)
        found = matrix_norm(x, ord=p) * matrix_norm(linear_solve.inv(regular), ord=p)
        return _or_infinite(found, singular, x)
    return matrix_norm(x, ord=p) * matrix_norm(linear_solve.inv(x), ord=p)


def _or_infinite(found: Any, singular: Any, x: Any) -> Any:
    """Condition numbers, infinite where a matrix is singular, with NaN as the derivative there."""
    if not possibly(singular):
        return found
    with np.errstate(all="ignore"):
        infinite = 1.0 / np.abs(np.sum(0.0 * x, axis=(-2, -1)))
    return where(singular, infinite, found)


@counterpart(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The number of nonzero singular values, as ``numpy.linalg.matrix_rank``; an integer.

    Parameters
    ----------
    A : array_like of shape (..., m, n)
    tol, rtol : float, optional
        The threshold of zero, absolute or relative to the largest singular value.
    hermitian : bool, default False
    """
    return linear_solve.matrix_rank(as_array(A), tol=tol, hermitian=hermitian, rtol=rtol)


# ---- parts -------------------------------------------------------------------------------------


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sum of a diagonal of the matrices in the last two axes, as ``numpy.linalg.trace``."""
    return np.linalg.trace(joining.stacked(x), offset=offset, dtype=dtype)


@counterpart(np.linalg.diagonal)
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """A diagonal of the matrices in the last two axes, as ``numpy.linalg.diagonal``."""
    return np.diagonal(x, offset, -2, -1)


# ---- products ----------------------------------------------------------------------------------


@counterpart(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    """``a @ a @ ... @ a``, as ``numpy.linalg.matrix_power``.

    Parameters
    ----------
    a : array_like of shape (..., m, m)
    n : int
        Negative for powers of the inverse.

    Raises
    ------
    MatrixError
        The matrices are not square, or `n` is negative and one is singular.

    Notes
    -----
    Repeated squaring: about 2 log2(n) products.
    """
    a = as_array(a)
    if not isinstance(n, int | np.integer):
        raise DtypeError(
            f"matrix_power with exponent {n!r}: the exponent must be an integer{at(user_line())}."
        )
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise MatrixError(
            f"matrix_power of shape {a.shape}: the matrices must be square{at(user_line())}."
        )
    n = int(n)
    if n == 0:
        unit = eye(a.shape[-1], dtype=a.dtype)
        if is_symbolic(a.shape):
            return spread(unit, a.shape)
        return wrap(constant(np.broadcast_to(unit, a.shape).copy()))
    if n < 0:
        a, n = linear_solve.inv(a), -n
    result = None
    while True:
        if n & 1:
            result = a if result is None else result @ a
        n >>= 1
        if not n:
            return result
        a = a @ a


@counterpart(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Any:
    """The product of several matrices in the cheapest order, as ``numpy.linalg.multi_dot``.

    Parameters
    ----------
    arrays : sequence of array_like
        Two or more; the first and the last may be vectors.
    out : array, optional
    """
    factors = [as_array(x) for x in arrays]
    if len(factors) < 2:
        raise ArgumentError(
            f"multi_dot of {len(factors)} arrays: pass two or more{at(user_line())}."
        )
    inner = all(x.ndim == 2 for x in factors[1:-1])
    if not inner or any(factors[k].ndim not in (1, 2) for k in (0, -1)):
        raise MatrixError(
            f"multi_dot of shapes {[x.shape for x in factors]}: all must be matrices, except that "
            f"the first and last may be vectors{at(user_line())}."
        )
    first = factors[0].shape[0] if factors[0].ndim == 2 else 1
    last = factors[-1].shape[1] if factors[-1].ndim == 2 else 1
    lengths = (first, *[x.shape[0] for x in factors[1:]], last)
    if is_symbolic(lengths):  # the cheapest order depends on the sizes
        result = functools.reduce(operator.matmul, factors)
        return result if out is None else deliver(result, out)
    splits = _splits(lengths)

    def product(i: int, j: int) -> Any:
        if i == j:
            return factors[i]
        k = splits[i, j]
        return product(i, k) @ product(k + 1, j)

    result = product(0, len(factors) - 1)
    return result if out is None else deliver(result, out)


@functools.lru_cache(maxsize=256)
def _splits(lengths: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Where to cut each run of factors: Cormen et al., Introduction to Algorithms, 15.2."""
    n = len(lengths) - 1
    cost = {(i, i): 0 for i in range(n)}
    cut: dict[tuple[int, int], int] = {}
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            cost[i, j], cut[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + lengths[i] * lengths[k + 1] * lengths[j + 1], k)
                for k in range(i, j)
            )
    return cut
