"""Differentiable conversion between nested containers of arrays and vectors.

flatten       a container as a vector, and the inverse function
flatten_func  a function of containers as a function of vectors
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.handle import dtype_of, shape_of

__all__ = ["flatten", "flatten_func"]


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """A container of numbers and arrays as a vector, and a function from vectors to containers.

    Elements of dicts are in the order of sorted keys.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.autograd.misc import flatten
    >>> vector, unflatten = flatten({"b": np.ones(2), "a": 3.0})
    >>> vector
    array([3., 1., 1.])
    >>> unflatten(2.0 * vector)["b"]
    array([2., 2.])
    """
    leaves, structure = pytree.flatten(value)
    shapes, dtypes = [shape_of(x) for x in leaves], [dtype_of(x) for x in leaves]
    ends = np.cumsum([0, *[int(np.prod(s)) for s in shapes]]).tolist()
    vector = np.concatenate([np.reshape(x, -1) for x in leaves]) if leaves else np.zeros(0)

    def unflatten(v: Any) -> Any:
        parts = [v[a:b].reshape(s) for a, b, s in zip(ends, ends[1:], shapes, strict=False)]
        fitted = [p if p.dtype == d else _cast(p, d) for p, d in zip(parts, dtypes, strict=True)]
        return pytree.unflatten(structure, fitted)

    return vector, unflatten


def _cast(part: Any, dtype: Any) -> Any:
    """Cast to the original dtype if it is of the same kind."""
    return part.astype(dtype) if part.dtype.kind == dtype.kind else part


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Callable[..., Any], Any, Any]:
    """A function whose first argument and result are containers, as a function of vectors.

    Returns
    -------
    callable
        Function of a vector and the other arguments of `func`.
    callable
        From vectors to containers like `example`.
    array
        `example` as a vector.
    """
    flat_example, unflatten = flatten(example)

    def flat_func(flat_param: Any, *args: Any) -> Any:
        return flatten(func(unflatten(flat_param), *args))[0]

    return flat_func, unflatten, flat_example
