"""Linear layers, embeddings, dropout, and layers that change shapes.

    dropout      Dropout Dropout1d Dropout2d Dropout3d AlphaDropout
    linear       Linear Bilinear
    shapes       Flatten Unflatten Identity
    tables       Embedding

The functions are in functional/linear_dropout_embedding.py.  For dropout in a compiled step use a
`wengert.random.Stream`: a generator would be called only once, while tracing, and every run would
drop the same elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np

from wengert._engine.core.handle import shape_of, value_of
from wengert._engine.core.symbolic.dim import spelled
from wengert.errors import ArgumentError, ShapeError, at, user_line
from wengert.random import Stream

from .. import functional as F
from .. import init
from ..functional import linear_dropout_embedding as functions
from ..functional.linear_dropout_embedding import embedding
from ..init import check_layer_sizes
from ..module import Module
from ..parameter import Parameter

__all__ = [
    "AlphaDropout", "Bilinear", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "Embedding",
    "Flatten", "Identity", "Linear", "Unflatten",
]  # fmt: skip


class Dropout(Module):
    """`functional.dropout` in training; the identity in evaluation.

    Parameters
    ----------
    p : float, default 0.5
        Probability of dropping an element.
    rng : int, numpy.random.Generator or wengert.random.Stream, optional
        Must be a `Stream` while tracing, so that each run drops different elements.

    Notes
    -----
    The state of the random numbers is not in `state_dict`, as in PyTorch. Checkpoints of `nn.fit`
    include it; otherwise save the stream's ``state_dict()``.
    """

    function: Any = staticmethod(functions.dropout)

    def __init__(self, p: float = 0.5, rng: Any = None) -> None:
        functions.probability(p, type(self).__name__)
        self.p = p
        self.rng = rng if isinstance(rng, Stream) else np.random.default_rng(rng)

    def forward(self, x: Any) -> Any:
        """x; in training with elements dropped and the others scaled."""
        return type(self).function(x, self.p, self.training, self.rng)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"


class Dropout1d(Dropout):
    """`functional.dropout1d`: whole channels of (batch, channels, length)."""

    function = staticmethod(functions.dropout1d)


class Dropout2d(Dropout):
    """`functional.dropout2d`: whole channels of (batch, channels, height, width)."""

    function = staticmethod(functions.dropout2d)


class Dropout3d(Dropout):
    """`functional.dropout3d`: whole channels of (batch, channels, depth, height, width)."""

    function = staticmethod(functions.dropout3d)


class AlphaDropout(Dropout):
    """`functional.alpha_dropout`, to be used with `SELU`."""

    function = staticmethod(functions.alpha_dropout)


class Linear(Module):
    """``y = x @ weight.T + bias``, with PyTorch's layout and initial values.

    Parameters
    ----------
    in_features, out_features : int
        Lengths of the last axis of x and of y.
    bias : bool, default True
    rng : int or numpy.random.Generator, optional
        Source of the initial values.
    dtype : dtype, default float64

    Attributes
    ----------
    weight : Parameter, shape (out_features, in_features)
    bias : Parameter, shape (out_features,), or None

    Notes
    -----
    Weight and bias are initialized uniformly between -1/sqrt(in_features) and 1/sqrt(in_features),
    which is `init.kaiming_uniform` with a gain of 1/sqrt(3).

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.Linear(3, 2, rng=0)
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    >>> layer(np.ones((5, 3))).shape
    (5, 2)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        check_layer_sizes(self, in_features=in_features, out_features=out_features)
        rng = np.random.default_rng(rng)
        bound = 1.0 / sqrt(max(1, in_features))
        self.in_features, self.out_features = in_features, out_features
        shape = (out_features, in_features)
        self.weight = Parameter(init.kaiming_uniform(shape, rng, dtype, gain=sqrt(1.0 / 3.0)))
        self.bias = Parameter(init.uniform((out_features,), bound, rng, dtype)) if bias else None

    def forward(self, x: Any) -> Any:
        """``x @ weight.T + bias``."""
        if shape_of(x)[-1:] != (self.in_features,):
            raise ShapeError(
                f"{self!r} was given shape {spelled(shape_of(x))}: its last axis must have length "
                f"{self.in_features}. Reshape the input, or change the layer{at(user_line())}."
            )
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """``y[o] = x1 @ weight[o] @ x2 + bias[o]``.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
        Lengths of the last axes of x1, of x2 and of y.
    bias : bool, default True
    rng : int or numpy.random.Generator, optional
    dtype : dtype, default float64

    Attributes
    ----------
    weight : Parameter, shape (out_features, in1_features, in2_features)
    bias : Parameter, shape (out_features,), or None

    Notes
    -----
    Both are initialized uniformly between -1/sqrt(in1_features) and 1/sqrt(in1_features).
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        check_layer_sizes(self, in1_features=in1_features, in2_features=in2_features)
        check_layer_sizes(self, out_features=out_features)
        rng = np.random.default_rng(rng)
        bound = 1.0 / sqrt(max(1, in1_features))
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(init.uniform(shape, bound, rng, dtype))
        self.bias = Parameter(init.uniform((out_features,), bound, rng, dtype)) if bias else None

    def forward(self, x1: Any, x2: Any) -> Any:
        """``x1 @ weight[o] @ x2 + bias[o]`` for each output o."""
        one, two = shape_of(x1), shape_of(x2)
        if one[-1:] != (self.in1_features,) or two[-1:] != (self.in2_features,):
            raise ShapeError(
                f"{self!r} was given shapes {spelled(one)} and {spelled(two)}: their last axes "
                f"must have lengths {self.in1_features} and {self.in2_features}{at(user_line())}."
            )
        return F.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Identity(Module):
    """The identity, a placeholder for another layer.

    Parameters
    ----------
    *args, **kwargs
        Ignored.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        """x."""
        return x


class Flatten(Module):
    """Merge adjacent axes, by default all but the first.

    Parameters
    ----------
    start_axis, end_axis : int, default 1 and -1
        The first and the last axis to merge.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.Flatten()(np.ones((2, 3, 4))).shape, nn.Flatten(0, 1)(np.ones((2, 3, 4))).shape
    ((2, 12), (6, 4))
    """

    def __init__(self, start_axis: int = 1, end_axis: int = -1) -> None:
        self.start_axis, self.end_axis = start_axis, end_axis

    def forward(self, x: Any) -> Any:
        """x with the axes merged."""
        shape = shape_of(x)
        if len(shape) == 1 and (self.start_axis, self.end_axis) == (1, -1):
            return np.reshape(x, (shape[0], 1))
        first, last = self._axis(self.start_axis, shape), self._axis(self.end_axis, shape)
        if first > last:
            raise ShapeError(
                f"{self!r} was given shape {spelled(shape)}: axis {first} is after axis {last}"
                f"{at(user_line())}."
            )
        return np.reshape(x, (*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :]))

    def _axis(self, axis: int, shape: tuple[Any, ...]) -> int:
        if not -len(shape) <= axis < len(shape):
            raise ShapeError(
                f"{self!r} was given shape {spelled(shape)}, which has no axis {axis}"
                f"{at(user_line())}."
            )
        return axis % len(shape)

    def extra_repr(self) -> str:
        """The axes."""
        return f"start_axis={self.start_axis}, end_axis={self.end_axis}"


class Unflatten(Module):
    """Split an axis into several.

    Parameters
    ----------
    axis : int
    sizes : sequence of int
        Lengths of the new axes; one may be -1, and is inferred.
    """

    def __init__(self, axis: int, sizes: Sequence[int]) -> None:
        self.axis, self.sizes = axis, tuple(sizes)

    def forward(self, x: Any) -> Any:
        """x with the axis split."""
        shape = shape_of(x)
        axis = self.axis if self.axis >= 0 else len(shape) + self.axis
        if not 0 <= axis < len(shape):
            raise ShapeError(
                f"{self!r} was given shape {spelled(shape)}, which has no axis {self.axis}"
                f"{at(user_line())}."
            )
        product = prod(n for n in self.sizes if n != -1)
        n = shape[axis]
        if isinstance(n, int) and (n % product if -1 in self.sizes else n != product):
            raise ShapeError(
                f"{self!r} was given shape {spelled(shape)}: an axis of length {n} cannot be split "
                f"into lengths {self.sizes}{at(user_line())}."
            )
        sizes = [n // product if k == -1 else k for k in self.sizes]
        return np.reshape(x, (*shape[:axis], *sizes, *shape[axis + 1 :]))

    def extra_repr(self) -> str:
        """Axis and lengths."""
        return f"axis={self.axis}, sizes={self.sizes}"


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
