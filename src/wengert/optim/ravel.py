"""Functions of containers of arrays as functions of one vector, and back.

SciPy's methods work on vectors.  A function that unpacks a vector itself compiles to one program
whose gradient is a vector and whose Hessian is a matrix.

    Raveled     conversion between containers of one structure and vectors; functions, bounds
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, value_of
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

Vector = np.ndarray[Any, Any]


class Raveled:
    """Conversion between containers of one structure and vectors; dicts in insertion order.

    Parameters
    ----------
    x : container of arrays
        Real numbers, arbitrarily nested; integers become float64.
    what : str
        Name of the caller, for error messages.

    Raises
    ------
    DtypeError
        An array of complex numbers, strings or objects.
    ArgumentError
        No numbers at all.

    Examples
    --------
    >>> import numpy as np
    >>> shape = Raveled({"a": np.zeros((2, 2)), "b": 1.0}, "f")
    >>> shape.vector({"a": np.eye(2), "b": 5.0})
    array([1., 0., 0., 1., 5.])
    >>> shape.container(np.arange(5.0))["a"]
    array([[0., 1.],
           [2., 3.]])
    """

    def __init__(self, x: Any, what: str) -> None:
        leaves, self.structure = pytree.flatten(x)
        self._order = pytree.insertion_order(x)
        leaves = [leaves[k] for k in self._order]
        arrays = [np.asarray(value_of(leaf)) for leaf in leaves]
        for array in arrays:
            if array.dtype.kind not in "fiub":
                raise DtypeError(
                    f"{what}: x0 contains {array.dtype}, which is not real. Pass real arrays; "
                    f"split complex ones into real and imaginary parts{at(user_line())}."
                )
        self.shapes = [array.shape for array in arrays]
        self.dtypes = [a.dtype if a.dtype.kind == "f" else np.dtype(float) for a in arrays]
        self.sizes = [array.size for array in arrays]
        if not any(self.sizes):
            raise ArgumentError(
                f"{what}: x0 contains no numbers. Pass an initial guess of the variables"
                f"{at(user_line())}."
            )

    def _key(self) -> Any:
        return self.structure, tuple(self._order), tuple(self.shapes), tuple(self.dtypes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Raveled) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def vector(self, x: Any) -> Vector:
        """A container of this structure as a float64 vector."""
        leaves = pytree.flatten(x)[0]
        return np.concatenate([np.ravel(value_of(leaves[k])).astype(float) for k in self._order])

    def container(self, v: Any) -> Any:
        """A vector, which may be recorded or traced, as a container."""
        leaves: list[Any] = [None] * len(self._order)
        begin = 0
        for k, shape, dtype, size in zip(
            self._order, self.shapes, self.dtypes, self.sizes, strict=True
        ):
            leaf = np.reshape(v[begin : begin + size], shape) if shape else v[begin]
            leaves[k] = leaf if leaf.dtype == dtype else leaf.astype(dtype)
            begin += size
        return pytree.unflatten(self.structure, leaves)

    def with_vectors(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """A function of containers as a function of vectors."""

        def flat(v: Any, *args: Any) -> Any:
            return fun(self.container(v), *args)

        flat.__name__ = getattr(fun, "__name__", "fun")
        return flat

    def bounds(self, given: Any, what: str) -> tuple[Vector, Vector]:
        """Lower and upper bounds as vectors, from two containers or numbers, or tensors."""
        if not (isinstance(given, tuple | list) and len(given) == 2):
            raise ArgumentError(
                f"{what}: bounds was given a {type(given).__name__}. Pass a pair (lower, upper), "
                f"each a number or a container with the structure of x0{at(user_line())}."
            )
        low, high = (self._bound(b, side, what) for b, side in zip(given, (-1, 1), strict=True))
        is_known = not isinstance(low, Handle) and not isinstance(high, Handle)
        if is_known and np.any(low > high):
            raise ArgumentError(
                f"{what}: {np.sum(low > high)} lower bounds are above the upper bounds. Swap them"
                f"{at(user_line())}."
            )
        return low, high

    def _bound(self, bound: Any, side: int, what: str) -> Vector:
        if bound is None:
            bound = side * math.inf
        leaves, structure = pytree.flatten(bound)
        if len(leaves) == 1 and leaves[0] is bound and np.ndim(bound) == 0:
            leaves = leaves * len(self.shapes)
        elif structure == self.structure:
            leaves = [leaves[k] for k in self._order]
        else:
            raise ArgumentError(
                f"{what}: bounds have the structure {structure}, x0 has {self.structure}. Pass a "
                f"number or a container with the structure of x0{at(user_line())}."
            )
        try:
            wide = [
                np.broadcast_to(side * math.inf if leaf is None else _real(leaf), shape)
                for leaf, shape in zip(leaves, self.shapes, strict=True)
            ]
        except ValueError as error:
            raise ShapeError(
                f"{what}: a bound does not broadcast to x0: {error}{at(user_line())}."
            ) from None
        return np.concatenate([np.ravel(b) for b in wide])


def _real(x: Any) -> Any:
    return x if isinstance(x, Handle) else np.asarray(x, float)
