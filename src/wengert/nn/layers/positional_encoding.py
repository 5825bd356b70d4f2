"""Positional encodings.

sinusoidal_positions    sines and cosines of geometric frequencies, as a table
PositionalEncoding      adds that table to a sequence
LearnedPositions        adds a learned table
rotary_embedding        rotates queries and keys by their positions
RotaryEmbedding         the same as a module
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.core.symbolic.dim import is_symbolic, spelled
from wengert.errors import ArgumentError, ShapeError, at, user_line
from wengert.numpy import arange

from .. import init
from ..module import Module
from ..parameter import Parameter
from .linear_dropout_embedding import Dropout

__all__ = [
    "LearnedPositions",
    "PositionalEncoding",
    "RotaryEmbedding",
    "rotary_embedding",
    "sinusoidal_positions",
]


def sinusoidal_positions(length: int, width: int, base: float = 1e4, dtype: Any = float) -> Any:
    """Sines and cosines of the position, at frequencies from 1 down to 1/base.

    Parameters
    ----------
    length, width : int
        The numbers of positions and of columns; even columns are sines, odd ones cosines.
    base : float, default 10000
    dtype : dtype, default float64

    Returns
    -------
    array, shape (length, width)

    References
    ----------
    .. [1] A. Vaswani et al., "Attention is all you need", NeurIPS 2017, section 3.5.

    Examples
    --------
    >>> from wengert.nn.layers.positional_encoding import sinusoidal_positions
    >>> sinusoidal_positions(2, 4).round(3)
    array([[0.   , 1.   , 0.   , 1.   ],
           [0.841, 0.54 , 0.01 , 1.   ]])
    """
    columns = np.arange(width)
    angles = np.arange(length)[:, None] / base ** (2 * (columns // 2) / max(width, 1))
    return np.where(columns % 2 == 0, np.sin(angles), np.cos(angles)).astype(dtype)


class _PositionTable(Module):
    """Base of modules that add a table of positions to sequences."""

    batch_first = False

    def _rows(self, x: Any, table: Any) -> Any:
        """The rows of the table for a sequence, shaped to be added to it."""
        shape, (max_len, width) = shape_of(x), shape_of(table)
        if len(shape) not in (2, 3) or shape[-1] != width:
            raise ShapeError(
                f"{self!r} was given shape {spelled(shape)}: expected sequences (steps, batch, "
                f"{width}), (batch, steps, {width}) if batch_first, or (steps, {width})"
                f"{at(user_line())}."
            )
        steps = shape[1] if self.batch_first and len(shape) == 3 else shape[0]
        if not is_symbolic((steps,)) and steps > max_len:
            raise ShapeError(
                f"{self!r} was given a sequence of {steps} steps, more than max_len={max_len}. Use "
                f"a larger max_len, or shorten the sequence{at(user_line())}."
            )
        rows = table[:steps]
        return rows if len(shape) == 2 or self.batch_first else np.expand_dims(rows, 1)


class PositionalEncoding(_PositionTable):
    """Adds sines and cosines of the position (`sinusoidal_positions`), then applies dropout.

    Parameters
    ----------
    d_model : int
        Length of the last axis.
    dropout : float, default 0
    max_len : int, default 5000
        The maximum number of steps.
    batch_first : bool, default False
        Whether sequences are (batch, steps, ...) instead of (steps, batch, ...).
    rng : int, numpy.random.Generator or wengert.random.Stream, optional
        For dropout; must be a `Stream` while tracing.
    dtype : dtype, default float64

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.PositionalEncoding(4)(np.zeros((2, 1, 4)))[1].round(3)
    array([[0.841, 0.54 , 0.01 , 1.   ]])
    """

    def __init__(
        self,
        d_model: int,
        dropout: float = 0.0,
        max_len: int = 5000,
        batch_first: bool = False,
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        self.batch_first = batch_first
        self._table = sinusoidal_positions(max_len, d_model, dtype=dtype)
        self.dropout = Dropout(dropout, rng)

    def forward(self, x: Any) -> Any:
        """x plus the encoding of the positions."""
        return self.dropout(x + self._rows(x, self._table))

    def extra_repr(self) -> str:
        """Sizes."""
        return f"{self._table.shape[1]}, max_len={self._table.shape[0]}"


class LearnedPositions(_PositionTable):
    """Adds a learned vector for each position, as in GPT-2.

    Parameters
    ----------
    max_len : int
        The maximum number of steps.
    d_model : int
        Length of the last axis.
    batch_first : bool, default False
        Whether sequences are (batch, steps, ...) instead of (steps, batch, ...).
    rng : int or numpy.random.Generator, optional
        Source of the initial values, Gaussian with standard deviation 0.02.
    dtype : dtype, default float64

    Attributes
    ----------
    weight : Parameter, shape (max_len, d_model)

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.LearnedPositions(10, 4, batch_first=True, rng=0)(np.zeros((3, 7, 4))).shape
    (3, 7, 4)
    """

    def __init__(
        self,
        max_len: int,
        d_model: int,
        batch_first: bool = False,
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        self.batch_first = batch_first
        self.weight = Parameter(init.normal((max_len, d_model), 0.02, rng, dtype))

    def forward(self, x: Any) -> Any:
        """x plus the learned vectors."""
        return x + self._rows(x, self.weight)

    def extra_repr(self) -> str:
        """Sizes."""
        max_len, width = shape_of(self.weight)
        return f"{max_len}, {width}"


def rotary_embedding(
    x: Any, positions: Any = None, base: float = 1e4, interleaved: bool = False
) -> Any:
    """Rotate pairs of elements of queries or keys by angles proportional to the position.

    Products of rotated queries and keys depend on the difference of their positions only.

    Parameters
    ----------
    x : array or Tensor, shape (..., steps, width)
        The width must be even.
    positions : array of int or float, shape (steps,), optional
        Default 0, 1, ...; give them for later parts of a sequence.
    base : float, default 10000
        The angle per step of pair i is base**(-2 i / width), from 1 down to about 1 / base.
    interleaved : bool, default False
        Whether pairs are elements 2 i and 2 i + 1 (RoFormer, GPT-J), instead of i and
        i + width / 2 (GPT-NeoX, Llama).

    Raises
    ------
    ShapeError
        The width is odd.

    References
    ----------
    .. [1] J. Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021,
       arXiv:2104.09864.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.layers.positional_encoding import rotary_embedding
    >>> q, k = rotary_embedding(np.ones((8, 4))), rotary_embedding(np.ones((8, 4)))
    >>> bool(np.isclose(q[5] @ k[3], q[7] @ k[5]))
    True
    """
    shape = shape_of(x)
    width = shape[-1] if shape else 1
    if len(shape) < 2 or not isinstance(width, int) or width % 2:
        raise ShapeError(
            f"rotary_embedding: expected shape (..., steps, width) with an even width, got "
            f"{spelled(shape)}{at(user_line())}."
        )
    steps = arange(shape[-2]) if positions is None else np.asarray(positions)
    angles = np.expand_dims(steps, -1) * base ** (-2.0 * np.arange(width // 2) / width)
    cosine, sine = (f(angles).astype(dtype_of(x)) for f in (np.cos, np.sin))
    if interleaved:
        even, odd = x[..., ::2], x[..., 1::2]
        rotated = np.stack([even * cosine - odd * sine, even * sine + odd * cosine], axis=-1)
        return np.reshape(rotated, shape)
    first, second = x[..., : width // 2], x[..., width // 2 :]
    return np.concatenate([first * cosine - second * sine, first * sine + second * cosine], axis=-1)


class RotaryEmbedding(Module):
    """`rotary_embedding` as a module.

    Parameters
    ----------
    dim : int
        Width of a head; must be even.
    base : float, default 10000
    interleaved : bool, default False
    """

    def __init__(self, dim: int, base: float = 1e4, interleaved: bool = False) -> None:
        if dim % 2:
            raise ArgumentError(
                f"RotaryEmbedding({dim}): dim must be even, for rotation of pairs{at(user_line())}."
            )
        self.dim, self.base, self.interleaved = dim, base, interleaved

    def forward(self, x: Any, positions: Any = None) -> Any:
        """x of shape (..., steps, dim), rotated by its positions."""
        return rotary_embedding(x, positions, self.base, self.interleaved)

    def extra_repr(self) -> str:
        """The width and the base."""
        return f"{self.dim}, base={self.base:g}"
