"""Laws: properties that every operation must have, one function each.

common           values, specs, both modes of derivative, special values
full_range       elementwise operations over their full range: tails, complex numbers, dtypes;
                 singular points, and branches that are not taken
batching_series_layout  vmap agrees with a loop; results do not depend on strides, order, alignment
                        and byte order; Taylor series agree with nested forward mode
tracing          graphs with symbolic sizes; graphs: values, derivatives in both modes
control_flow_examples   nodes of loops, branches and calls, with oracles in Python
native_code      native code: values, derivatives, symbolic sizes; kernels of an emulated device
"""

from . import (
    batching_series_layout,
    control_flow_examples,
    full_range,
    native_code,
    tracing,
)

__all__ = [
    "batching_series_layout",
    "control_flow_examples",
    "full_range",
    "native_code",
    "tracing",
]
