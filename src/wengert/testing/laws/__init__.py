"""Laws: properties that every operation must have, one function each.

batching         many rows at once are what a loop gives
common           values, specs, both modes of derivative, special values
full_range       of elementwise operations: tails, complex numbers, dtypes
memory_layout    strides, order, alignment, byte order do not matter
native_code      of native code: values, derivatives, sizes with names
singular_points  of singular points, and what was not chosen
symbolic_sizes   of graphs for sizes with names
tracing          of graphs: values, both modes of derivative, levels
"""

from . import (
    batching,
    full_range,
    memory_layout,
    native_code,
    singular_points,
    symbolic_sizes,
    tracing,
)

__all__ = [
    "batching",
    "full_range",
    "memory_layout",
    "native_code",
    "singular_points",
    "symbolic_sizes",
    "tracing",
]
