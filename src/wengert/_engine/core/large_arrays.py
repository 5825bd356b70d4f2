"""Large arrays: eager operations on them that run as native code.

NumPy computes an operation of several steps in as many passes over memory, and some functions of
the math library without SIMD instructions.  For large arrays that is most of the time of an eager
derivative, so a higher layer (backends/large_array_kernels.py) compiles such operations, one
kernel for each, at their first use.

NumPy's results are large, too: pages that the system has to map and clear cost several times the
operation that fills them, and the C library returns freed memory to the system when some such
arrays are freed together, as at the end of a derivative.  So they are in recycled memory.

    LEAST_ELEMENTS  NumPy always computes arrays with fewer elements; the tuned thresholds are in
                    backends/llvm/tuning.py, `native_elements` and `native_rule_elements`
    KERNELS         the full name of the module that compiles, set by wengert/__init__.py
    is_large        whether a value is such an array
    run_of          the function that computes the values of an operation
    kept_with_value  its value with the fingerprints of plain arrays, in one pass
    recycling       calls a function whose new arrays are in recycled memory
    load_fingerprints  makes native code take the fingerprints of plain arrays
    kernels         that module
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from .node import Fingerprints

if TYPE_CHECKING:
    from .node import Node
    from .op import Op

P = ParamSpec("P")
T = TypeVar("T")

LEAST_ELEMENTS = 1 << 14
KERNELS: list[str] = []


def run_of(op: Op) -> Callable[..., Any]:
    """The function to run for an operand of at least `LEAST_ELEMENTS` elements."""
    if not op.native or not KERNELS:
        return op.run
    return functools.partial(kernels().value_of_large, op)


def kept_with_value(op: Op, inputs: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
    """The value of an operation of two large arrays, and its operands as they are kept; or None."""
    if len(values) != 2 or Fingerprints.native is None:
        return None
    return kernels().kept_with_value(op, inputs, values)


def is_large(x: object) -> bool:
    """Whether a value is an array of at least `LEAST_ELEMENTS` elements."""
    return type(x) is np.ndarray and x.size >= LEAST_ELEMENTS


def recycling(
    nodes: Iterable[Node], function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function; if a node has a large array, its new arrays are in recycled memory."""
    for node in nodes:
        x = node.value
        if type(x) is np.ndarray and x.size >= LEAST_ELEMENTS and KERNELS:
            called: Callable[..., T] = kernels().in_recycled_memory
            return called(function, *args, **kwargs)
    return function(*args, **kwargs)


def load_fingerprints() -> None:
    """Take fingerprints of plain arrays by native code (`node.Fingerprints`)."""
    if KERNELS:
        kernels().load_fingerprints()


@functools.cache
def kernels() -> Any:
    """The module that compiles kernels."""
    return import_module(KERNELS[0])


Fingerprints.load = load_fingerprints
