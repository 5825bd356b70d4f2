"""Isotonic regression: the nearest monotone vector.

isotonic_regression   as SciPy's
isotonic_blocks       the operation: the block of each element

The solution is constant in blocks, and the weighted mean there; the blocks do not change for small
changes of the data, unless two of them have equal means.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.core import display
from wengert._engine.core.handle import is_traced, shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.opaque import opaque
from wengert._engine.ops import casts
from wengert._engine.ops.indexing.getitem import IndexSlot
from wengert.errors import ShapeError, at, user_line

from ..dispatch import floating, holds_tensors

__all__ = ["isotonic_regression"]


def _pooled(y: Any, weights: Any, *, increasing: bool = True) -> Any:
    """The blocks by pooling neighbors until means are monotone (the oracle of the operation)."""
    blocks = [[k] for k in range(len(y))]

    def mean(block: list[int]) -> Any:
        return np.sum(weights[block] * y[block]) / np.sum(weights[block])

    k = 0
    while k + 1 < len(blocks):
        first, second = mean(blocks[k]), mean(blocks[k + 1])
        if (first >= second) if increasing else (first <= second):
            blocks[k : k + 2] = [blocks[k] + blocks[k + 1]]
            k = max(k - 1, 0)
        else:
            k += 1
    return np.repeat(np.arange(len(blocks)), [len(b) for b in blocks])


@opaque(name="isotonic_blocks", discrete=True, trusted=True, oracle=_pooled)
def isotonic_blocks(y: Any, weights: Any, *, increasing: bool = True) -> Any:
    """The number of the block of each element."""
    found = scipy.optimize.isotonic_regression(y, weights=weights, increasing=increasing)
    counts = np.diff(found.blocks)
    return np.repeat(np.arange(len(counts), dtype=np.int64), counts)


isotonic_blocks.host_callback = BY_SCIPY


@isotonic_blocks.spec
def _(y: Spec, weights: Spec, *, increasing: bool = True) -> Any:
    return Spec(y.shape, np.dtype(np.int64))


@isotonic_blocks.examples
def _(rng: np.random.Generator) -> Any:
    y, weights = rng.normal(size=7), rng.uniform(0.5, 2.0, 7)
    yield (y, weights), {}
    yield (y, weights), {"increasing": False}


def isotonic_regression(y: Any, *, weights: Any = None, increasing: bool = True) -> Any:
    """The nearest monotone vector, as ``scipy.optimize.isotonic_regression``.

    Parameters
    ----------
    y : array of shape (n,)
    weights : array of shape (n,), optional
        Positive; differentiated, as `y` is.
    increasing : bool, default True

    Returns
    -------
    OptimizeResult
        `x` is a tensor. In a graph, where the number of blocks is not known, it has nothing else.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> f = lambda y: optimize.isotonic_regression(y).x
    >>> f(np.array([1.0, 3.0, 2.0]))
    array([1. , 2.5, 2.5])
    >>> wg.jacobian(f)(np.array([1.0, 3.0, 2.0]))
    array([[1. , 0. , 0. ],
           [0. , 0.5, 0.5],
           [0. , 0.5, 0.5]])
    """
    if not holds_tensors([y, weights]):
        return scipy.optimize.isotonic_regression(y, weights=weights, increasing=increasing)
    y = casts.astype(floating(y), float)
    if len(shape_of(y)) != 1:
        raise ShapeError(
            f"isotonic_regression: y has shape {shape_of(y)}, and must be a vector"
            f"{at(user_line())}."
        )
    weights = np.ones_like(y) if weights is None else casts.astype(floating(weights), float)
    if shape_of(weights) != shape_of(y):
        raise ShapeError(
            f"isotonic_regression: weights have shape {shape_of(weights)}, and y has shape "
            f"{shape_of(y)}. They must be equal{at(user_line())}."
        )
    stopped = [lookup("stop_gradient")(v) for v in (y, weights)]
    numbers = isotonic_blocks(*stopped, increasing=bool(increasing))
    add, read = lookup("scatter"), lookup("getitem")
    index, shape = (IndexSlot(0),), shape_of(y)
    sums = [add(v, numbers, index=index, shape=shape) for v in (weights * y, weights)]
    x = read(sums[0], numbers, index=index) / read(sums[1], numbers, index=index)
    result = scipy.optimize.OptimizeResult(x=x)
    if not is_traced(numbers):
        first = np.flatnonzero(np.diff(np.asarray(numbers), prepend=-1))
        result.blocks = np.append(first, len(np.asarray(numbers)))
        result.weights = sums[1][: len(first)]
    return display.shown_result(result)
