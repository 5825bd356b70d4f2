"""Large arrays: eager operations on them that run as native code.

NumPy computes an operation of several steps in as many passes over memory, and some functions of
the math library without SIMD instructions.  For large arrays that is most of the time of an eager
derivative, so a higher layer (backends/large_array_kernels.py) compiles such operations, one
kernel for each, at their first use.

    LEAST_ELEMENTS  NumPy always computes arrays with fewer elements; the tuned thresholds are in
                    backends/llvm/tuning.py, `native_elements` and `native_rule_elements`
    KERNELS         the full name of the module that compiles, set by wengert/__init__.py
    run_of          the function that computes the values of an operation
    kernels         that module
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .op import Op

LEAST_ELEMENTS = 1 << 14
KERNELS: list[str] = []


def run_of(op: Op) -> Callable[..., Any]:
    """The function to run for an operand of at least `LEAST_ELEMENTS` elements."""
    if not op.native or not KERNELS:
        return op.run
    return functools.partial(kernels().value_of_large, op)


def kernels() -> Any:
    """The module that compiles kernels."""
    return import_module(KERNELS[0])
