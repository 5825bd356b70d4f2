"""Dropping: elements set to zero at random, in training.

In a graph random numbers come from a `wengert.random.Stream`, whose position the graph itself moves
along, so that each run drops others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.handle import shape_of, value_of
from ..errors import ArgumentError, TraceError, at, user_line
from ..random import Stream
from .tracing import is_traced_call


def dropout(x: Any, p: float = 0.5, training: bool = True, rng: Any = None) -> Any:
    """Zero elements with probability p, and scale the others by 1 / (1 - p).

    The scaling ("inverted dropout") keeps the expectation, so that nothing is left to do in
    evaluation.

    Parameters
    ----------
    x : array or Tensor
    p : float, default 0.5
        From 0 to 1; 1 gives zeros.
    training : bool, default True
        False returns `x` as it is.
    rng : int, numpy.random.Generator or wengert.random.Stream, optional
        In a graph a `Stream`, so that each run drops others.

    Raises
    ------
    ArgumentError
        p is not a probability.
    TraceError
        A graph is being built, of which every run would drop the same elements.

    References
    ----------
    .. [1] N. Srivastava et al., "Dropout", J. Machine Learning Research 15, 1929-1958, 2014.
    """
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(
            f"dropout with p={p}: it is the probability of dropping an element. Choose it from 0 "
            f"to 1{at(user_line())}."
        )
    if not training or p == 0.0:
        return x
    if isinstance(rng, Stream):
        kept = value_of(rng.uniform(shape_of(x))) >= p
    elif is_traced_call((x,)):
        raise TraceError(
            "dropout in training while a graph is built: every run would drop the same elements. "
            "Give it a stream of random numbers, rng=wengert.random.Stream(seed), or evaluate, "
            f"model.eval(){at(user_line())}."
        )
    else:
        kept = np.random.default_rng(rng).random(shape_of(x)) >= p
    return np.where(kept, x * (1.0 / (1.0 - p) if p < 1.0 else 0.0), 0.0)
