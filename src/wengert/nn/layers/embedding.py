"""Embedding: rows of a table that is learned, looked up by number.

    embedding   the function
    Embedding   the layer
    one_hot     numbers as rows of zeros and a one

The gradient of the table is written to the rows that were read: repeated numbers add up.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wengert._engine.core.handle import is_traced, shape_of, value_of
from wengert._engine.core.index_errors import places, say
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.ops.indexing import getitem
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

from .. import init
from ..check_sizes import counted
from ..module import Module
from ..parameter import Parameter


def _numbers(x: Any, count: Any, what: str, units: str) -> Any:
    """Integers from 0 to below `count`; in a graph others are an error when it runs."""
    numbers = value_of(x) if is_traced(x) else np.asarray(value_of(x))
    if numbers.dtype.kind not in "iu":
        if numbers.dtype.kind == "f" and shape_of(numbers) == (0,):  # an empty list
            return numbers.astype(int)
        raise DtypeError(
            f"{what} was given {numbers.dtype}, but {units} are named by integers. Give "
            f"integers, x.astype(int){at(user_line())}."
        )
    if is_traced(numbers):
        return places(numbers, count)
    if numbers.size and (numbers.min() < 0 or numbers.max() >= count):
        raise ArgumentError(
            f"{what} was asked for {units} from {numbers.min()} to {numbers.max()}, but there are "
            f"{count}, numbered from 0. Renumber them{at(user_line())}."
        )
    return numbers


def embedding(x: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """Rows of a table, looked up by number.

    Parameters
    ----------
    x : array of int, any shape
    weight : array or Tensor, shape (count, size)
    padding_idx : int, optional
        A row that gets no gradient; counted from the end if negative.

    Returns
    -------
    array or Tensor, shape (*x.shape, size)

    Raises
    ------
    DtypeError
        `x` are not integers.
    ArgumentError
        A row that does not exist.

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
            f"embedding: the table has shape {spelled(shape)}, not (count, size){at(user_line())}."
        )
    count = shape[0]
    numbers = _numbers(x, count, "embedding", "rows")
    read = getitem.read if is_traced(numbers) else operator.getitem
    rows = say(read(weight, numbers), "embedding", "rows")
    if padding_idx is None:
        return rows
    if isinstance(count, int) and not -count <= padding_idx < count:
        raise ArgumentError(
            f"embedding: padding_idx={padding_idx}, but there are {count} rows{at(user_line())}."
        )
    silent = np.expand_dims(
        numbers == (padding_idx if padding_idx >= 0 else count + padding_idx), -1
    )
    return np.where(silent, value_of(rows), rows)


def one_hot(x: Any, num_classes: int, dtype: Any = float) -> Any:
    """For each number a row of zeros with a one in its place.

    Parameters
    ----------
    x : array of int, any shape
    num_classes : int
        The length of a row.
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
        known = getitem.read(np.arange(num_classes), numbers)
        numbers = say(known, "one_hot", "classes")
    return (np.expand_dims(numbers, -1) == np.arange(num_classes)).astype(dtype)


class Embedding(Module):
    """A row of a learned table for each number: of a word, a user, a category.

    Parameters
    ----------
    num_embeddings : int
        The number of rows.
    embedding_dim : int
        Their length.
    padding_idx : int, optional
        A row of zeros that is not learned, for what fills up short sequences.
    rng : int or numpy.random.Generator, optional
    dtype : dtype, default float64

    Attributes
    ----------
    weight : Parameter, shape (num_embeddings, embedding_dim)
        Begins with standard Gaussian numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.Embedding(10, 4, rng=0)(np.array([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        counted(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ArgumentError(
                f"Embedding({num_embeddings}, {embedding_dim}, padding_idx={padding_idx}): there "
                f"is no such row{at(user_line())}."
            )
        self.padding_idx = padding_idx
        weight = init.normal((num_embeddings, embedding_dim), 1.0, rng, dtype)
        if padding_idx is not None:
            weight[padding_idx] = 0.0
        self.weight = Parameter(weight)

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None
    ) -> Embedding:
        """A layer with a given table, by default not to be trained."""
        table = np.array(value_of(embeddings))
        if table.ndim != 2:
            raise ShapeError(
                f"Embedding.from_pretrained: the table has shape {table.shape}, not (count, size)"
                f"{at(user_line())}."
            )
        count, size = table.shape
        made = cls(count, size, padding_idx, 0, table.dtype)
        made.weight = Parameter(table, requires_grad=not freeze)
        return made

    def forward(self, x: Any) -> Any:
        """The rows of these numbers."""
        return embedding(x, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """Sizes and options."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
