"""Labels, statistics of the elements with each label, and morphology.

    sum sum_labels mean variance standard_deviation center_of_mass
    maximum minimum median of selected elements
    maximum_position minimum_position extrema
    plain_function    SciPy's function of a name

Labels are plain arrays of integers; sums also take traced ones.  The derivative of an extreme or a
median is that of the selected element.

A tensor that is differentiated or traced is refused; one that depends on nothing is its value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage

from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.core.node import Node
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor
from wengert.errors import ArgumentError, TraceError, at, user_line
from wengert.numpy import take

from ..dispatch import counterpart, floating

__all__ = """
    center_of_mass extrema maximum maximum_position mean median minimum minimum_position
    standard_deviation sum sum_labels variance
""".split()


_DOC = """{what}, as ``scipy.ndimage.{name}``.

    Parameters
    ----------
    input : array or Tensor
    labels : array of int, optional
        The label of each element; by default all elements belong together.
    index : int or sequence of int, optional
        Which labels; by default all that are positive, together.

    Returns
    -------
    number or array

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import ndimage
    >>> x, labels = np.array([1.0, 5.0, 2.0, 7.0]), np.array([1, 1, 2, 2])
    >>> wg.jacobian(lambda x: ndimage.{name}(x, labels, [1, 2]))(x)
    {example}
    """


def _documented(what: str, example: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        f.__doc__ = _DOC.format(what=what, name=f.__name__, example=example)
        return f

    return decorate


def _known(x: Any, what: str) -> Any:
    """An argument as a plain array.

    Raises
    ------
    TraceError
        It is traced.
    """
    if isinstance(x, Handle) and is_traced(x):
        raise TraceError(
            f"{what} is traced, and which elements belong together depends on it. Pass a plain "
            f"array{at(user_line())}."
        )
    return np.asarray(value_of(x))


class _Groups:
    """The elements with each of some labels.

    Attributes
    ----------
    slots : array of int
        For each element the slot of its label; the last slot if it has none of the labels.
    """

    def __init__(self, labels: Any, index: Any, shape: tuple[int, ...]) -> None:
        index = _known(index, "index")
        self._shape, self._size = index.shape, index.size
        ordered = np.sort(index.ravel())
        if not (isinstance(labels, Handle) and is_traced(labels)):
            labels = _known(labels, "labels")
        labels = np.broadcast_to(labels, shape)
        if not self._size:
            self._of_index = np.zeros(0, int)
            self.slots = np.zeros(shape, int)
            return
        # Equal entries of `index` have the slot of the first.
        self._of_index = np.searchsorted(ordered, index.ravel())
        found = np.minimum(np.searchsorted(ordered, labels), self._size - 1)
        first = np.searchsorted(ordered, ordered)
        known = take(ordered, found) == labels
        self.slots = np.where(known, take(first, found), self._size)

    def sums(self, values: Any) -> Any:
        """The sums of the elements in each slot."""
        if values.dtype.kind == "c":
            return self.sums(np.real(values)) + 1j * self.sums(np.imag(values))
        sums = as_tensor(np.zeros(self._size + 1))
        np.add.at(sums, self.slots.reshape(-1), values.reshape(-1))
        return sums

    def for_index(self, sums: Any) -> Any:
        """What is in the slot of each entry of the index."""
        return take(sums, self._of_index).reshape(self._shape)


def _is_single(index: Any) -> bool:
    return index is None or np.ndim(index) == 0


def _sums(x: Any, labels: Any, index: Any, *values: Any) -> list[Any]:
    """For each array of values the sum for each label, and the numbers of elements."""
    if labels is None:
        return [*[np.sum(v) for v in values], np.float64(np.prod(x.shape))]
    labels = as_array(labels)
    shape = np.broadcast_shapes(x.shape, labels.shape)
    values = tuple([np.broadcast_to(v, shape) for v in values])
    if _is_single(index):
        mask = np.broadcast_to(labels > 0 if index is None else labels == index, shape)
        ones = np.where(mask, 1.0, 0.0)
        return [*[np.sum(np.where(mask, v, 0.0)) for v in values], np.sum(ones)]
    groups = _Groups(labels, index, shape)
    return [groups.for_index(groups.sums(v)) for v in (*values, np.ones(shape))]


@counterpart(scipy.ndimage.sum_labels)
@_documented("The sum for each label", "array([[1., 1., 0., 0.],\n           [0., 0., 1., 1.]])")
def sum_labels(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The sum for each label."""
    x = floating(input)
    return _sums(x, labels, index, x)[0]


@counterpart(scipy.ndimage.sum)
@_documented("The sum for each label", "array([[1., 1., 0., 0.],\n           [0., 0., 1., 1.]])")
def sum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The sum for each label."""
    return sum_labels(input, labels, index)


@counterpart(scipy.ndimage.mean)
@_documented(
    "The mean for each label", "array([[0.5, 0.5, 0. , 0. ],\n           [0. , 0. , 0.5, 0.5]])"
)
def mean(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The mean for each label."""
    x = floating(input)
    total, count = _sums(x, labels, index, x)
    return total / count


@counterpart(scipy.ndimage.variance)
@_documented(
    "The variance for each label",
    "array([[-2. ,  2. ,  0. ,  0. ],\n           [ 0. ,  0. , -2.5,  2.5]])",
)
def variance(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The variance for each label."""
    x = floating(input)
    if labels is None or _is_single(index):
        total, count = _sums(x, labels, index, x)
        return _sums(x, labels, index, _squares(x - total / count))[0] / count
    labels = as_array(labels)
    shape = np.broadcast_shapes(x.shape, labels.shape)
    x, groups = np.broadcast_to(x, shape), _Groups(labels, index, shape)
    count = groups.sums(np.ones(shape))
    means = groups.sums(x) / np.where(count > 0, count, 1.0)
    squares = groups.sums(_squares(x - take(means, groups.slots)))
    return groups.for_index(squares) / groups.for_index(count)


def _squares(x: Any) -> Any:
    return x * (np.conj(x) if x.dtype.kind == "c" else x)


@counterpart(scipy.ndimage.standard_deviation)
@_documented(
    "The standard deviation for each label",
    "array([[-0.5,  0.5,  0. ,  0. ],\n           [ 0. ,  0. , -0.5,  0.5]])",
)
def standard_deviation(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The standard deviation for each label."""
    return np.sqrt(variance(input, labels, index))


@counterpart(scipy.ndimage.center_of_mass)
def center_of_mass(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The center of mass for each label, as ``scipy.ndimage.center_of_mass``.

    Parameters
    ----------
    input : array or Tensor
        The masses.
    labels, index
        As for `sum_labels`.

    Returns
    -------
    tuple, or list of tuples
        The coordinates, for each label.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import center_of_mass
    >>> wg.grad(lambda x: center_of_mass(x)[0])(np.array([1.0, 0.0, 1.0]))
    array([-0.5,  0. ,  0.5])
    """
    x = floating(input)
    grids = np.ogrid[tuple([slice(0, n) for n in x.shape])]
    *moments, mass, _ = _sums(x, labels, index, *[x * g.astype(float) for g in grids], x)
    centers = [m / mass for m in moments]
    if centers[0].ndim == 0:
        return tuple(centers)
    return [tuple([c[k] for c in centers]) for k in range(centers[0].shape[0])]


def _selected(input: Any, labels: Any, index: Any, reduce: Callable[[Any], Any], what: str) -> Any:
    """A selected element for each label."""
    x = as_array(input)
    if x.dtype.kind == "c":
        raise ArgumentError(
            f"{what} of complex numbers: they have no order. Use their absolute values"
            f"{at(user_line())}."
        )
    if labels is None:
        return reduce(x.reshape(-1))
    labels = _known(labels, "labels")
    shape = np.broadcast_shapes(x.shape, labels.shape)
    flat = np.broadcast_to(x, shape).reshape(-1)
    labels = np.broadcast_to(labels, shape).ravel()
    if index is None or np.ndim(index) == 0:
        chosen = np.flatnonzero(labels > 0 if index is None else labels == index)
        return reduce(take(flat, chosen))
    index = _known(index, "index")
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    parts = []
    for k in index.ravel():
        first, last = np.searchsorted(ordered, [k, k + 1])
        part = order[first:last]
        parts.append(reduce(take(flat, part)) if part.size else np.zeros((), x.dtype))
    return np.stack(parts).reshape(index.shape) if parts else np.zeros(index.shape, x.dtype)


@counterpart(scipy.ndimage.maximum)
@_documented(
    "The maximum for each label", "array([[0., 1., 0., 0.],\n           [0., 0., 0., 1.]])"
)
def maximum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The maximum for each label."""
    return _selected(input, labels, index, np.max, "maximum")


@counterpart(scipy.ndimage.minimum)
@_documented(
    "The minimum for each label", "array([[1., 0., 0., 0.],\n           [0., 0., 1., 0.]])"
)
def minimum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The minimum for each label."""
    return _selected(input, labels, index, np.min, "minimum")


@counterpart(scipy.ndimage.median)
@_documented(
    "The median for each label",
    "array([[0.5, 0.5, 0. , 0. ],\n           [0. , 0. , 0.5, 0.5]])",
)
def median(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The median for each label."""
    return _selected(input, labels, index, np.median, "median")


def _position(name: str) -> Callable[..., Any]:
    theirs = getattr(scipy.ndimage, name)

    def position(input: Any, labels: Any = None, index: Any = None) -> Any:
        plain = [None if v is None else _known(v, name) for v in (labels, index)]
        return theirs(_known(input, name), *plain)

    position.__name__ = position.__qualname__ = name
    position.__doc__ = f"""The position of the extreme, as ``scipy.ndimage.{name}``.

    Parameters
    ----------
    input : array or Tensor
        Its values must be known.
    labels, index
        As for `sum_labels`.

    Returns
    -------
    tuple of int, or list of tuples

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.scipy import ndimage
    >>> len(ndimage.{name}(np.array([1.0, 3.0, 2.0])))
    1
    """
    return position


maximum_position = _position("maximum_position")
minimum_position = _position("minimum_position")


@counterpart(scipy.ndimage.extrema)
def extrema(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The extremes for each label and their positions, as ``scipy.ndimage.extrema``.

    Parameters
    ----------
    input : array or Tensor
        Its values must be known.
    labels, index
        As for `sum_labels`.

    Returns
    -------
    minimum, maximum : number or array
    positions of minimum, positions of maximum : tuple, or list of tuples

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import extrema
    >>> wg.grad(lambda x: extrema(x)[1])(np.array([1.0, 3.0, 2.0]))
    array([0., 1., 0.])
    """
    return (
        minimum(input, labels, index),
        maximum(input, labels, index),
        minimum_position(input, labels, index),
        maximum_position(input, labels, index),
    )


@functools.cache
def plain_function(name: str) -> Any:
    """SciPy's function of a name, for plain arrays."""
    theirs = getattr(scipy.ndimage, name)
    if not callable(theirs):
        return theirs

    def plain(x: Any) -> Any:
        if not isinstance(x, Handle):
            return x
        if is_traced(x) or type(x.node) is Node:
            raise ArgumentError(
                f"scipy.ndimage.{name} takes plain arrays only. If no derivative is needed, detach "
                f"the tensor, x.detach().numpy(){at(user_line())}."
            )
        return value_of(x)

    @functools.wraps(theirs)
    def function(*args: Any, **kwargs: Any) -> Any:
        return theirs(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})

    return function
