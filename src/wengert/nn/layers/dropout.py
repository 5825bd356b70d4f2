"""Dropout layers: random in training, the identity in evaluation.

The functions are in functional/dropouts.py.  In a compiled step use a `wengert.random.Stream`: a
generator would be called only once, while tracing, and every run would drop the same elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random import Stream

from ..functional import dropouts
from ..module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d"]


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

    function: Any = staticmethod(dropouts.dropout)

    def __init__(self, p: float = 0.5, rng: Any = None) -> None:
        dropouts.probability(p, type(self).__name__)
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

    function = staticmethod(dropouts.dropout1d)


class Dropout2d(Dropout):
    """`functional.dropout2d`: whole channels of (batch, channels, height, width)."""

    function = staticmethod(dropouts.dropout2d)


class Dropout3d(Dropout):
    """`functional.dropout3d`: whole channels of (batch, channels, depth, height, width)."""

    function = staticmethod(dropouts.dropout3d)


class AlphaDropout(Dropout):
    """`functional.alpha_dropout`, to be used with `SELU`."""

    function = staticmethod(dropouts.alpha_dropout)
