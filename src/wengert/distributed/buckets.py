"""Arrays in few messages: those of a dtype are joined to vectors of limited size.

A message costs its latency and the time of its data, so many small arrays are sent as one vector.
Vectors of limited size need little memory beside the arrays.

    BUCKET_BYTES     the default size
    bucket_bytes_of  an argument, checked
    buckets_of       which arrays are joined
    joined           arrays as one vector; parted: the arrays of a vector
    sums             the sums of arrays over all processes
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert import numpy as wnp
from wengert._engine.core.handle import describe, shape_of
from wengert._engine.core.spec import Spec
from wengert.errors import ArgumentError, at, user_line

from . import operations
from .communicators import Communicator

BUCKET_BYTES = 25 << 20


def bucket_bytes_of(given: Any, what: str) -> int:
    """The size of a message in bytes.

    Raises
    ------
    ArgumentError
        It is not a positive integer.
    """
    try:
        number = operator.index(given)
    except TypeError:
        number = 0
    if number < 1:
        raise ArgumentError(
            f"{what}: bucket_bytes must be a positive number of bytes, got {given!r}"
            f"{at(user_line())}."
        )
    return number


def buckets_of(leaves: Sequence[Any], limit: int = BUCKET_BYTES) -> list[list[int]]:
    """The positions of floating-point arrays by dtype, in groups of at most `limit` bytes.

    The last arrays are in the first groups, because gradients of the last parameters are known
    first. A larger array is in a group of its own.
    """
    groups: dict[Any, list[list[int]]] = {}
    sizes: dict[Any, int] = {}
    for k in reversed(range(len(leaves))):
        spec = describe(leaves[k])
        if not isinstance(spec, Spec) or spec.dtype.kind not in "fc":
            continue
        size = int(np.prod(spec.shape, dtype=np.int64)) * spec.dtype.itemsize
        if spec.dtype not in groups or sizes[spec.dtype] + size > limit:
            groups.setdefault(spec.dtype, []).append([])
            sizes[spec.dtype] = 0
        groups[spec.dtype][-1].append(k)
        sizes[spec.dtype] += size
    return [bucket for of_dtype in groups.values() for bucket in of_dtype]


def joined(arrays: Sequence[Any]) -> Any:
    """Arrays as one vector; a single array as it is."""
    if len(arrays) == 1:
        return arrays[0]
    return wnp.concatenate([wnp.reshape(x, (-1,)) for x in arrays])


def parted(vector: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """The arrays of a vector that `joined` made."""
    if len(shapes) == 1:
        return [vector]
    ends = np.cumsum([int(np.prod(s, dtype=np.int64)) for s in shapes])
    starts = [0, *ends[:-1]]
    return [
        wnp.reshape(vector[int(a) : int(b)], s)
        for a, b, s in zip(starts, ends, shapes, strict=True)
    ]


def in_buckets(leaves: Sequence[Any], send: Callable[[Any], Any], limit: int) -> list[Any]:
    """`send`, a function of each element, of the floating-point leaves; others as they are."""
    results = list(leaves)
    for bucket in buckets_of(leaves, limit):
        arrays = [leaves[k] for k in bucket]
        received = parted(send(joined(arrays)), [shape_of(x) for x in arrays])
        for k, x in zip(bucket, received, strict=True):
            results[k] = x
    return results


def sums(arrays: Sequence[Any], comm: Communicator, limit: int = BUCKET_BYTES) -> list[Any]:
    """The sums of floating-point arrays over all processes, which get the same bits."""
    return in_buckets(arrays, lambda x: operations.allreduce.ordered(x, comm=comm), limit)
