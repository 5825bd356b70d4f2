"""Arrays filled with one number, for rules: NumPy arrays, or nodes while a graph is built.

zeros      zeros of a spec
uniform    one number, as a node of a graph, which is not stored as a constant
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .op import lookup
from .spec import Spec
from .symbolic.dim import is_symbolic
from .tracing import is_deriving


def zeros(spec: Spec) -> Any:
    """Zeros of a spec; a node if a graph is being built."""
    if is_symbolic(spec.shape) or is_deriving():
        return uniform(spec, 0)
    return np.zeros(spec.shape, spec.dtype)[()]


def uniform(spec: Spec, value: float) -> Any:
    """An array filled with one number, as a node of a graph."""
    return lookup("full").record(shape=spec.shape, value=value, dtype=spec.dtype)
