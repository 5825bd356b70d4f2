"""NumPy's sums, products and moments: sum, prod, mean, var, std.

The signatures are NumPy's: axis (int, tuple, None, negative), dtype, out, keepdims, initial and
where. Elements masked out by `where=` are replaced by the identity element, never multiplied by
zero, so a masked NaN or infinity has no effect.

Extremes and booleans are in minmax.py, norms and log-sum-exp in norms.py, reductions ignoring NaNs
in nanfunctions.py, cumulative sums in cumulative.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, possibly, value_of
from wengert._engine.kinds.reduction import Axis
from wengert._engine.ops import casts, reductions
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.tensor.numpy_dispatch import counterpart

from .norms import matrix_norm, vector_norm
from .reduction_arguments import NOTHING, count, given, kept, masked, started, typed, unkept, whole

__all__ = ["sum", "prod", "mean", "var", "std", "vector_norm", "matrix_norm"]


@counterpart(np.sum)
def sum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOTHING,
    where: Any = True,
) -> Any:
    """The sum over axes, as ``numpy.sum``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda x: np.sum(x * x, where=x > 1.0))(np.array([1.0, 2.0]))
    array([0., 4.])
    """
    a = masked(a, where, 0)
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        s = whole(reductions.sum, a, dtype, axis=axis, keepdims=kept(keepdims))
    else:
        s = reductions.sum(a, axis=axis, dtype=dtype, keepdims=kept(keepdims))
    return given(started(s, initial, np.add), out)


@counterpart(np.prod)
def prod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOTHING,
    where: Any = True,
) -> Any:
    """The product over axes, as ``numpy.prod``.

    Notes
    -----
    The derivative does not divide by elements: it is correct with any number of zeros, to any
    order, and costs a few times the product.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(np.prod)(np.array([0.0, 2.0, 3.0]))
    array([6., 0., 0.])
    """
    a = masked(a, where, 1)
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        p = whole(reductions.prod, a, dtype, axis=axis, keepdims=kept(keepdims))
    else:
        p = reductions.prod(a, axis=axis, dtype=dtype, keepdims=kept(keepdims))
    return given(started(p, initial, np.multiply), out)


# ---- moments -----------------------------------------------------------------------------------


def _mean_where(a: Any, axis: Axis, where: Any) -> Any:
    if dtype_of(a).kind in "biu":  # NumPy sums them in float64 here
        a = casts.astype(a, float)
    total = reductions.sum(masked(a, where, 0), axis=axis, keepdims=True)
    return total / count(a, axis, where)


@counterpart(np.mean)
def mean(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    """The arithmetic mean over axes, as ``numpy.mean``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(np.mean)(np.array([1.0, 5.0]))
    array([0.5, 0.5])
    """
    a = typed(a, dtype)
    if where is True or where is NOTHING:
        m = reductions.mean(a, axis=axis, keepdims=kept(keepdims))
    else:
        m = unkept(_mean_where(a, axis, where), axis, keepdims)
    return given(typed(m, dtype), out)


def abs2(x: Any) -> Any:
    """The square of the absolute value."""
    return x * x if x.dtype.kind != "c" else (x * x.conj()).real


def freedom(ddof: Any, correction: Any) -> Any:
    """The number subtracted from n: `ddof`, or `correction`, its other name in NumPy 2."""
    if correction is NOTHING or correction is None:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def _spread(a: Any, axis: Axis, ddof: Any, where: Any, mean: Any) -> Any:
    """The variance by its definition, with the reduced axes kept: for a mask or a given mean."""
    if mean is NOTHING or mean is None:
        mean = _mean_where(a, axis, where)
    apart = masked(abs2(a - mean), where, 0)
    n = np.maximum(count(a, axis, where) - ddof, 0)
    return reductions.sum(apart, axis=axis, keepdims=True) / n


@counterpart(np.var)
def var(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = NOTHING,
    correction: Any = NOTHING,
) -> Any:
    """The variance over axes, as ``numpy.var``: over n - ddof, of absolute values if complex.

    Notes
    -----
    A tensor given as `mean` is an operand, and is differentiated too.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda x: np.var(x, ddof=1))(np.array([1.0, 3.0]))
    array([-2.,  2.])
    """
    a, ddof = typed(a, dtype), freedom(ddof, correction)
    if (where is True or where is NOTHING) and (mean is NOTHING or mean is None):
        v = reductions.var(a, axis=axis, ddof=ddof, keepdims=kept(keepdims))
    else:
        v = unkept(_spread(a, axis, ddof, where, mean), axis, keepdims)
    return given(v, out)


@counterpart(np.std)
def std(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = NOTHING,
    correction: Any = NOTHING,
) -> Any:
    """The standard deviation over axes, as ``numpy.std``.

    Notes
    -----
    Where all elements are equal the value is 0 and has a kink like |x|; its derivative there is 0
    (docs/conventions.md).

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(np.std)(np.array([1.0, 3.0])), wg.grad(np.std)(np.array([2.0, 2.0]))
    (array([-0.5,  0.5]), array([0., 0.]))
    """
    a, ddof = typed(a, dtype), freedom(ddof, correction)
    if (where is True or where is NOTHING) and (mean is NOTHING or mean is None):
        return given(reductions.std(a, axis=axis, ddof=ddof, keepdims=kept(keepdims)), out)
    v = unkept(_spread(a, axis, ddof, where, mean), axis, keepdims)
    return given(root(v), out)


def root(v: Any) -> Any:
    """The square root of a variance, with derivative 0 at 0."""
    flat = value_of(v) == 0
    return choose(flat, 0.0, np.sqrt(choose(flat, 1.0, v))) if possibly(flat) else np.sqrt(v)
