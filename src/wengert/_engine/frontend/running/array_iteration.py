"""``np.ndenumerate`` and ``np.nditer`` of tensors.

    for (i, j), v in np.ndenumerate(A):    for k in range(A.size):
        ...                                    i, j, v = k // n, k % n, A[k // n, k % n]

ndenumerate   positions and elements of an array
nditer        the elements of one array; views of them if they may be assigned to
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import size_value
from wengert.errors import TraceError, at, user_place

from .iterables import CombinedIterable, Items

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


class ndenumerate(CombinedIterable):
    """``np.ndenumerate``."""

    def __new__(cls, arr: Array) -> Any:
        """NumPy's iterator for a plain array."""
        return object.__new__(cls) if isinstance(arr, Handle) else np.ndenumerate(arr)

    def __init__(self, arr: Any) -> None:
        shape = shape_of(arr)

        def item(k: Any) -> Any:
            place = _position(k, shape)
            return place, arr[place]

        def places() -> Iterator[Any]:
            return ((p, arr[p]) for p in np.ndindex(*map(int, shape)))

        super().__init__(Items(math.prod(shape), 0, 1, item), places, arr)


class nditer(CombinedIterable):
    """``np.nditer`` of one array, without flags."""

    def __new__(cls, op: Array, *args: object, **kwargs: object) -> Any:
        """NumPy's iterator for plain arrays."""
        given = op if isinstance(op, list | tuple) else (op,)
        if any(isinstance(x, Handle) for x in given):
            return object.__new__(cls)
        return np.nditer(op, *args, **kwargs)  # type: ignore[call-overload]

    def __init__(
        self,
        op: Any,
        flags: Sequence[str] = (),
        op_flags: Sequence[Any] = (),
        order: str = "K",
    ) -> None:
        shape = () if isinstance(op, list | tuple) else shape_of(op)
        is_ordered = order == "C" or sum(n != 1 for n in shape) < 2
        if isinstance(op, list | tuple) or flags or not is_ordered:
            raise TraceError(
                "np.nditer of a tensor is supported for one array, without flags, and with "
                "order='C' if it has several axes, as the order of its memory is not known. "
                f"Loop over np.ndenumerate(x) or np.ndindex(x.shape){at(user_place())}."
            )
        names = {n for f in op_flags for n in ([f] if isinstance(f, str) else f)}
        view = (Ellipsis,) if names & {"readwrite", "writeonly"} else ()

        def item(k: Any) -> Any:
            return op[(*_position(k, shape), *view)]

        def elements() -> Iterator[Any]:
            return (op[(*p, *view)] for p in np.ndindex(*map(int, shape)))

        super().__init__(Items(math.prod(shape), 0, 1, item), elements, op)

    def __enter__(self) -> nditer:
        return self

    def __exit__(self, *args: object) -> None:
        pass


def _position(k: Any, shape: Sequence[Any]) -> tuple[Any, ...]:
    """The position of element number `k`."""
    inner = list(itertools.accumulate(reversed(shape[1:]), lambda a, b: a * b, initial=1))[::-1]
    place = []
    for axis, (n, length) in enumerate(zip(inner, shape, strict=True)):
        n, length = (size_value(x) if isinstance(x, Dim) else x for x in (n, length))
        part = k if isinstance(n, int) and n == 1 else k // n
        place.append(part if axis == 0 else part % length)
    return tuple(place)
