"""Linear and bilinear maps, embeddings and one-hot vectors.

    embedding    rows of a table, selected by indices
    one_hot      indices as one-hot vectors
    linear       x @ weight.T + bias
    bilinear     x1 @ weight[o] @ x2 + bias[o]

The gradient of the table is scattered to the rows that were read; repeated indices accumulate.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wengert._engine.core.handle import is_traced, shape_of, value_of
from wengert._engine.core.runtime_checks import lookup_index, note_lookup
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.ops.indexing import getitem
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

__all__ = ["embedding", "one_hot", "bilinear", "linear"]


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
