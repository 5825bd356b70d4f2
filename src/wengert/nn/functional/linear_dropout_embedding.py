"""Linear and bilinear maps, embeddings, one-hot vectors and dropout.

    embedding          rows of a table, selected by indices
    one_hot            indices as one-hot vectors
    linear             x @ weight.T + bias
    bilinear           x1 @ weight[o] @ x2 + bias[o]
    dropout            single elements
    dropout1d, 2d, 3d  whole channels
    alpha_dropout      single elements, set to the limit of selu at -inf

The gradient of the table is scattered to the rows that were read; repeated indices accumulate.

In a graph, random numbers come from a `wengert.random.Stream`, whose position the graph advances,
so that each run drops different elements.
"""

from __future__ import annotations

import operator
from math import sqrt
from typing import Any

import numpy as np

from wengert._engine.core.handle import is_traced, shape_of, value_of
from wengert._engine.core.runtime_checks import lookup_index, note_lookup
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.ops.indexing import getitem
from wengert.errors import ArgumentError, DtypeError, ShapeError, TraceError, at, user_line
from wengert.random import Stream

from ..state_dict import is_traced_call
from .activations import SELU_ALPHA, SELU_SCALE
from .conv import AXES, by_dimension

__all__ = [
    "alpha_dropout", "bilinear", "dropout", "dropout1d", "dropout2d", "dropout3d", "embedding",
    "linear", "one_hot",
]  # fmt: skip


def _numbers(x: Any, count: Any, what: str, units: str) -> Any:
    """Check integers from 0 to `count` - 1; if traced, they are checked when the graph runs."""
    numbers = value_of(x) if is_traced(x) else np.asarray(value_of(x))
    if numbers.dtype.kind not in "iu":
        if numbers.dtype.kind == "f" and shape_of(numbers) == (0,):  # an empty list
            return numbers.astype(int)
        raise DtypeError(
            f"{what}: indices of {units} must be integers, got {numbers.dtype}. Convert them, "
            f"x.astype(int){at(user_line())}."
        )
    if is_traced(numbers):
        return lookup_index(numbers, count)
    if numbers.size and (numbers.min() < 0 or numbers.max() >= count):
        raise ArgumentError(
            f"{what}: indices of {units} are from {numbers.min()} to {numbers.max()}, but there "
            f"are {count}, numbered from 0{at(user_line())}."
        )
    return numbers


def embedding(x: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """Rows of a table, selected by indices.

    Parameters
    ----------
    x : array of int, any shape
    weight : array or Tensor, shape (count, size)
    padding_idx : int, optional
        Index of a row that gets no gradient; counted from the end if negative.

    Returns
    -------
    array or Tensor, shape (*x.shape, size)

    Raises
    ------
    DtypeError
        `x` has no integer dtype.
    ArgumentError
        An index is out of range.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.nn.functional import embedding
    >>> table = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> embedding(np.array([2, 0, 2]), table)
    array([[5., 6.],
           [1., 2.],
           [5., 6.]])
    >>> wg.grad(lambda t: np.sum(embedding(np.array([2, 0, 2]), t)))(table)
    array([[1., 1.],
           [0., 0.],
           [2., 2.]])
    """
    shape = shape_of(weight)
    if len(shape) != 2:
        raise ShapeError(
            f"embedding: the table must have shape (count, size), got {spelled(shape)}"
            f"{at(user_line())}."
        )
    count = shape[0]
    numbers = _numbers(x, count, "embedding", "rows")
    read = getitem.read if is_traced(numbers) else operator.getitem
    rows = note_lookup(read(weight, numbers), "embedding", "rows")
    if padding_idx is None:
        return rows
    if isinstance(count, int) and not -count <= padding_idx < count:
        raise ArgumentError(
            f"embedding: padding_idx={padding_idx} is out of range for {count} rows"
            f"{at(user_line())}."
        )
    silent = np.expand_dims(
        numbers == (padding_idx if padding_idx >= 0 else count + padding_idx), -1
    )
    return np.where(silent, value_of(rows), rows)


def one_hot(x: Any, num_classes: int, dtype: Any = float) -> Any:
    """One-hot vectors of indices.

    Parameters
    ----------
    x : array of int, any shape
    num_classes : int
        The length of the vectors.
    dtype : dtype, default float64

    Returns
    -------
    array, shape (*x.shape, num_classes)

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import one_hot
    >>> one_hot(np.array([2, 0]), 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    numbers = _numbers(x, num_classes, "one_hot", "classes")
    if is_traced(numbers):
        looked_up = getitem.read(np.arange(num_classes), numbers)
        numbers = note_lookup(looked_up, "one_hot", "classes")
    return (np.expand_dims(numbers, -1) == np.arange(num_classes)).astype(dtype)


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """``x @ weight.T + bias``.

    Parameters
    ----------
    x : array or Tensor, shape (..., inputs)
    weight : array or Tensor, shape (outputs, inputs)
    bias : array or Tensor, shape (outputs,), optional
    """
    y = np.matmul(x, weight.T)
    return y if bias is None else y + bias


def bilinear(x1: Any, x2: Any, weight: Any, bias: Any = None) -> Any:
    """``y[o] = x1 @ weight[o] @ x2 + bias[o]``.

    Parameters
    ----------
    x1 : array or Tensor, shape (..., n)
    x2 : array or Tensor, shape (..., m)
    weight : array or Tensor, shape (outputs, n, m)
    bias : array or Tensor, shape (outputs,), optional
    """
    y = np.einsum("...i,oij,...j->...o", x1, weight, x2)
    return y if bias is None else y + bias


# ---- dropout -----------------------------------------------------------------------------------


def dropout(x: Any, p: float = 0.5, training: bool = True, rng: Any = None) -> Any:
    """Zero elements with probability p, and scale the others by 1 / (1 - p).

    The scaling ("inverted dropout") preserves the expectation; evaluation is the identity.

    Parameters
    ----------
    x : array or Tensor
    p : float, default 0.5
        From 0 to 1; 1 gives zeros.
    training : bool, default True
        False returns `x` unchanged.
    rng : int, numpy.random.Generator or wengert.random.Stream, optional
        Must be a `Stream` while tracing, so that each run drops different elements.

    Raises
    ------
    ArgumentError
        p is not a probability.
    TraceError
        Traced without a `Stream`: every run would drop the same elements.

    References
    ----------
    .. [1] N. Srivastava et al., "Dropout", J. Machine Learning Research 15, 1929-1958, 2014.
    """
    return _dropped(x, p, training, rng, shape_of(x), "dropout")


def _dropped(x: Any, p: float, training: bool, rng: Any, shape: Any, what: str) -> Any:
    probability(p, what)
    if not training or p == 0.0:
        return x
    keep = _keep_mask(x, p, rng, shape, what)
    return np.where(keep, x * (1.0 / (1.0 - p) if p < 1.0 else 0.0), 0.0)


def probability(p: float, what: str) -> None:
    """Raise an error if `p` is not a probability."""
    if not isinstance(p, int | float | np.number) or not 0.0 <= p <= 1.0:
        raise ArgumentError(
            f"{what} with p={p!r}: the probability of dropping an element must be from 0 to 1"
            f"{at(user_line())}."
        )


def _keep_mask(x: Any, p: float, rng: Any, shape: Any, what: str) -> Any:
    """A mask of the given shape, True for elements that are not dropped."""
    if isinstance(rng, Stream):
        return value_of(rng.uniform(shape)) >= p
    if is_traced_call((x,)):
        raise TraceError(
            f"{what} in training is traced without a stream of random numbers: every run would "
            "drop the same elements. Pass rng=wengert.random.Stream(seed), or switch to "
            f"evaluation, model.eval(){at(user_line())}."
        )
    return np.random.default_rng(rng).random(shape) >= p


# ---- whole channels ----------------------------------------------------------------------------


def dropout_nd(
    axes: int, op_name: str, x: Any, p: float = 0.5, training: bool = True, rng: Any = None
) -> Any:
    """`dropout` of whole channels of (batch, channels, <space>) or (channels, <space>).

    Neighboring elements are correlated, so dropping single elements would have little effect.

    References
    ----------
    .. [1] J. Tompson et al., "Efficient object localization using convolutional networks",
       CVPR 2015, arXiv:1411.4280.
    """
    shape = shape_of(x)
    if len(shape) not in (axes + 1, axes + 2):
        raise ShapeError(
            f"{op_name}: expected shape (batch, channels, {AXES[axes]}), or one sample without the "
            f"batch axis, got {spelled(shape)}{at(user_line())}."
        )
    channels = (*shape[: len(shape) - axes], *(1,) * axes)
    return _dropped(x, p, training, rng, channels, op_name)


dropout1d, dropout2d, dropout3d = by_dimension(dropout_nd)


# ---- dropout for selu --------------------------------------------------------------------------


def alpha_dropout(x: Any, p: float = 0.5, training: bool = True, rng: Any = None) -> Any:
    """Set elements to the limit of selu at -inf, and preserve mean 0 and variance 1.

    Parameters and errors are those of `dropout`.

    References
    ----------
    .. [1] G. Klambauer et al., "Self-normalizing neural networks", arXiv:1706.02515, section 2.
    """
    probability(p, "alpha_dropout")
    if not training or p == 0.0:
        return x
    if p == 1.0:
        return x * 0.0
    keep = _keep_mask(x, p, rng, shape_of(x), "alpha_dropout")
    low = -SELU_ALPHA * SELU_SCALE
    scale = 1.0 / sqrt((1.0 - p) * (1.0 + p * low * low))
    return np.where(keep, x * scale, low * scale) - p * low * scale
