"""Embedding: rows of a learned table, selected by indices.

The function is in functional/linear_and_embedding.py.  The gradient of the table is scattered to
the rows that were read; repeated indices accumulate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import value_of
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .. import init
from ..functional.linear_and_embedding import embedding
from ..init import check_layer_sizes
from ..module import Module
from ..parameter import Parameter

__all__ = ["Embedding"]


class Embedding(Module):
    """A row of a learned table for each index: of a word, a user, a category.

    Parameters
    ----------
    num_embeddings : int
        The number of rows.
    embedding_dim : int
        The length of the rows.
    padding_idx : int, optional
        Index of a row of zeros that is not trained, for padding of sequences.
    rng : int or numpy.random.Generator, optional
    dtype : dtype, default float64

    Attributes
    ----------
    weight : Parameter, shape (num_embeddings, embedding_dim)
        Initialized with standard Gaussian numbers.

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
        check_layer_sizes(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ArgumentError(
                f"Embedding({num_embeddings}, {embedding_dim}): padding_idx={padding_idx} is out "
                f"of range{at(user_line())}."
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
        """A layer with a given table, which is not trained by default."""
        table = np.array(value_of(embeddings))
        if table.ndim != 2:
            raise ShapeError(
                f"Embedding.from_pretrained: the table must have shape (count, size), got "
                f"{table.shape}{at(user_line())}."
            )
        count, size = table.shape
        made = cls(count, size, padding_idx, 0, table.dtype)
        made.weight = Parameter(table, requires_grad=not freeze)
        return made

    def forward(self, x: Any) -> Any:
        """The rows of the indices x."""
        return embedding(x, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """Sizes and options."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
