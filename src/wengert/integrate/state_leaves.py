"""Containers of arrays as the vector that methods take, and back.

StateLeaves    the conversion for one structure: dtypes, sizes and shapes are those of the
               initial state
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.op import lookup
from wengert._engine.implicit.functions import Leaves
from wengert._engine.ops.casts import astype
from wengert._engine.tensor.numpy_dispatch import as_array

_ONE = pytree.flatten(0.0)[1]


def _is_list(x: Any) -> bool:
    return isinstance(x, list | tuple) and len(x) > 0


def as_state(y0: Any) -> Any:
    """The initial state; a list of numbers is a vector."""
    is_flat = _is_list(y0) and isinstance(y0, list)
    if is_flat and not any([isinstance(x, list | tuple | dict) for x in y0]):
        return np.stack([as_array(x) for x in y0])
    return y0


class StateLeaves:
    """Conversion between containers like `y0` and vectors.

    Parameters
    ----------
    y0 : container of arrays
        Integers become float64; if one leaf is complex, the vector is.
    what : str
        Its name in messages.

    Raises
    ------
    StructureError
        It contains nothing, or something that is not an array of numbers.
    """

    def __init__(self, y0: Any, what: str) -> None:
        self.leaves = Leaves.of(y0, what)
        self.what = what
        self.dtype = np.result_type(*[s.dtype for s in self.leaves.specs], np.float64)
        self.sizes = [math.prod(s.shape) for s in self.leaves.specs]

    def vector(self, values: list[Any]) -> Any:
        """Leaves as one vector."""
        flat = [
            lookup("reshape")(astype(x, self.dtype), shape=(size,))
            for x, size in zip(values, self.sizes, strict=True)
        ]
        return flat[0] if len(flat) == 1 else lookup("concatenate")(*flat, axis=0)

    def vector_like(self, container: Any) -> Any:
        """Another container of the same structure as one vector; a list of numbers is a vector."""
        specs = self.leaves.specs
        if self.leaves.structure == _ONE and len(specs[0].shape) == 1 and _is_list(container):
            container = np.stack([as_array(x) for x in container])
        return self.vector(self.leaves.like(container, self.what))

    def container(self, vector: Any, lead: tuple[int, ...] = ()) -> Any:
        """A vector, or vectors along the leading axes, in containers."""
        found, start = [], 0
        for spec, size in zip(self.leaves.specs, self.sizes, strict=True):
            part = vector[..., start : start + size] if len(self.sizes) > 1 else vector
            if spec.dtype.kind != "c" and self.dtype.kind == "c":
                part = part.real
            shape = (*lead, *spec.shape)
            part = part.reshape(shape) if tuple(part.shape) != shape else part
            found.append(part if part.dtype == spec.dtype else astype(part, spec.dtype))
            start += size
        return self.leaves.container(found)
