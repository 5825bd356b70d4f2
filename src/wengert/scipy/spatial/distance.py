"""Distances between vectors: scipy.spatial.distance, for tensors.

    cdist, pdist    distances of all pairs of rows of two arrays, and of one
    squareform      a vector of distances as a symmetric matrix, and back

and the distances of two vectors: `euclidean`, `sqeuclidean`, `cityblock`, `minkowski` ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import isqrt
from typing import Any

import numpy as np
import scipy.spatial.distance as _scipy_distance

from wengert._engine.autodiff.vmap import vmap
from wengert._engine.core.lazy_import import public_dir
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import counterpart, floating, known_length
from . import metrics
from .metrics import metric_of

_VECTOR_METRICS = [name for name in metrics.METRICS if name != "jensenshannon"]

__all__ = ["cdist", "jensenshannon", "pdist", "squareform", *_VECTOR_METRICS]


@counterpart(_scipy_distance.cdist)
def cdist(
    XA: Any,
    XB: Any,
    metric: str | Callable[..., Any] = "euclidean",
    *,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Distances of all pairs of rows of two arrays, as `scipy.spatial.distance.cdist`.

    Parameters
    ----------
    XA, XB : array or Tensor, shapes (m, d) and (n, d)
    metric : str or callable
        'euclidean', 'sqeuclidean', 'cityblock', 'chebyshev', 'minkowski' (`p`), 'seuclidean'
        (`V`), 'mahalanobis' (`VI`), 'cosine', 'correlation', 'braycurtis', 'canberra',
        'jensenshannon', or a function of two vectors.
    out : None
        Not with tensors.
    **kwargs
        Options of the metric, for most metrics weights `w` of the components.

    Returns
    -------
    array or Tensor, shape (m, n)
        The derivative of a Euclidean distance is 0 for equal rows.

    Raises
    ------
    ShapeError
        The arrays are not matrices with the same number of columns.
    ArgumentError
        The metric, or one of its options, is not known.

    Notes
    -----
    Compiled, the differences of all pairs are not stored. Uncompiled they are: m n d numbers.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.spatial.distance import cdist
    >>> x = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> wg.jit(wg.grad(lambda x: np.sum(cdist(x, x))))(x)
    array([[-1.2, -1.6],
           [ 1.2,  1.6]])
    """
    _without_out(out, "cdist")
    first, second = _rows(XA, "cdist: XA"), _rows(XB, "cdist: XB")
    if first.shape[1] != second.shape[1]:
        raise ShapeError(
            f"cdist: the rows of XA have {first.shape[1]} elements, and those of XB "
            f"{second.shape[1]}{at(user_line())}."
        )
    if callable(metric):
        one = functools.partial(metric, **kwargs)
        return vmap(lambda u: vmap(lambda v: one(u, v))(second))(first)
    run = metric_of(metric, kwargs, "cdist")
    kwargs = _with_variances(run, kwargs, lambda: np.concatenate([first, second]))
    return run(first[:, None, :], second[None, :, :], **kwargs)


@counterpart(_scipy_distance.pdist)
def pdist(
    X: Any,
    metric: str | Callable[..., Any] = "euclidean",
    *,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Distances of all pairs of rows i < j, as `scipy.spatial.distance.pdist`.

    Parameters
    ----------
    X : array or Tensor, shape (m, d)
    metric, out, **kwargs
        As for `cdist`.

    Returns
    -------
    array or Tensor, shape (m (m - 1) / 2,)

    Raises
    ------
    ShapeError, ArgumentError
        As for `cdist`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.scipy.spatial.distance import pdist
    >>> pdist(np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]), "cityblock")
    array([7., 1., 6.])
    """
    _without_out(out, "pdist")
    rows = _rows(X, "pdist: X")
    count = known_length(rows.shape[0], "pdist")
    i, j = np.triu_indices(count, 1)
    first, second = rows[i], rows[j]
    if callable(metric):
        return vmap(functools.partial(metric, **kwargs))(first, second)
    run = metric_of(metric, kwargs, "pdist")
    return run(first, second, **_with_variances(run, kwargs, lambda: rows))


@counterpart(_scipy_distance.squareform)
def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """A vector of distances as a symmetric matrix, or the upper triangle of a matrix as a vector.

    Parameters
    ----------
    X : array or Tensor, shape (m (m - 1) / 2,) or (m, m)
    force : {'no', 'tovector', 'tomatrix'}
        As in SciPy.
    checks : bool
        Of no effect with tensors: only the upper triangle of a matrix is read.

    Returns
    -------
    array or Tensor, shape (m, m) or (m (m - 1) / 2,)

    Raises
    ------
    ShapeError
        The shape is neither.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.scipy.spatial.distance import squareform
    >>> squareform(np.array([1.0, 2.0, 3.0]))
    array([[0., 1., 2.],
           [1., 0., 3.],
           [2., 3., 0.]])
    """
    x = floating(X)
    if x.ndim == 1 and force != "tovector":
        size = known_length(x.shape[0], "squareform")
        count = (1 + isqrt(1 + 8 * size)) // 2
        if count * (count - 1) // 2 == size:
            i, j = np.triu_indices(count, 1)
            places = np.zeros((count, count), int)  # 0 is that of the zeros of the diagonal
            places[i, j] = places[j, i] = 1 + np.arange(size)
            return np.concatenate([np.zeros(1, x.dtype), x])[places]
    elif x.ndim == 2 and force != "tomatrix" and x.shape[0] == x.shape[1]:
        return x[np.triu_indices(known_length(x.shape[0], "squareform"), 1)]
    raise ShapeError(
        f"squareform: an array of shape {tuple(x.shape)} with force={force!r}. Give a vector of "
        f"m (m - 1) / 2 distances, or a square matrix{at(user_line())}."
    )


@counterpart(_scipy_distance.jensenshannon)
def jensenshannon(
    p: Any, q: Any, base: float | None = None, *, axis: int = 0, keepdims: bool = False
) -> Any:
    """The square root of the Jensen-Shannon divergence of probabilities along an axis.

    Parameters
    ----------
    p, q : array or Tensor
        Not negative; they are normalized.
    base : float, optional
        Of the logarithm; by default e.
    axis : int
    keepdims : bool

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.scipy.spatial.distance import jensenshannon
    >>> float(jensenshannon([1.0, 0.0], [0.0, 1.0], 2.0))
    1.0
    """
    first, second = (np.moveaxis(floating(x), axis, -1) for x in (p, q))
    found = metrics.jensenshannon(first, second, base)
    return np.expand_dims(found, axis) if keepdims else found


def _of_vectors(name: str) -> Callable[..., Any]:
    """The distance of two vectors."""
    metric = metrics.METRICS[name]

    @functools.wraps(metric)
    def distance(u: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
        u, v = floating(u), floating(v)
        if u.ndim != 1 or v.ndim != 1:
            raise ShapeError(
                f"{name}: arrays of shapes {tuple(u.shape)} and {tuple(v.shape)}, and must be "
                f"vectors. For many use cdist{at(user_line())}."
            )
        return metric(u, v, *args, **kwargs)

    distance.__module__ = __name__
    return counterpart(getattr(_scipy_distance, name))(distance)


braycurtis, canberra, chebyshev, cityblock, correlation, cosine = map(
    _of_vectors, ("braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine")
)
euclidean, mahalanobis, minkowski, seuclidean, sqeuclidean = map(
    _of_vectors, ("euclidean", "mahalanobis", "minkowski", "seuclidean", "sqeuclidean")
)


def _rows(x: Any, what: str) -> Any:
    x = floating(x)
    if x.ndim != 2:
        raise ShapeError(
            f"{what} has shape {tuple(x.shape)}, and must be a matrix whose rows are vectors"
            f"{at(user_line())}."
        )
    return x


def _without_out(out: Any, what: str) -> None:
    if out is not None:
        raise ArgumentError(f"{what}: out= is not possible with tensors{at(user_line())}.")


def _with_variances(
    metric: Callable[..., Any], options: dict[str, Any], rows: Callable[[], Any]
) -> dict[str, Any]:
    """The options, with the variances or the covariance of the rows if they are not given."""
    if metric is metrics.seuclidean and options.get("V") is None:
        return {**options, "V": np.var(rows(), axis=0, ddof=1)}
    if metric is metrics.mahalanobis and options.get("VI") is None:
        return {**options, "VI": np.linalg.inv(np.atleast_2d(np.cov(rows().T)))}
    return options


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not hasattr(_scipy_distance, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_scipy_distance, name)


__dir__ = public_dir(__name__)
