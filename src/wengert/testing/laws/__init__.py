"""Laws: properties that every operation must have, one function each.

common           values, specs, both modes of derivative, special values
full_range       elementwise operations over their full range: tails, complex numbers, dtypes
batching         vmap agrees with a loop
memory_layout    results do not depend on strides, order, alignment and byte order
singular_points  singular points, and branches that are not taken
series           Taylor series agree with nested forward mode
symbolic_sizes   graphs with symbolic sizes
tracing          graphs: values, derivatives in both modes
native_code      native code: values, derivatives, symbolic sizes; kernels of an emulated device
"""

from . import (
    batching,
    full_range,
    memory_layout,
    native_code,
    series,
    singular_points,
    symbolic_sizes,
    tracing,
)

__all__ = [
    "batching",
    "full_range",
    "memory_layout",
    "native_code",
    "series",
    "singular_points",
    "symbolic_sizes",
    "tracing",
]
