"""Products in which zero times infinity or NaN is zero, in gradients of selections.

Nearly always no factor is infinite or NaN, and the product of the library is right.  To see that,
a kernel looks for NaN in the product, and sets the status: nothing waits for it.  If it was set the
program is run again, with the product as eager execution computes it.

    is_strong    whether an operation is such a product
    product      the product of the library, and the search for NaN
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.kinds.contraction_lowering import contract

from ..llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..llvm.ir.llvm_types import in_memory, part_of
from .device import Device
from .kernel_codegen import DeviceKernel
from .loaded_kernels import element_kernel, launch_of
from .matrix_kernels import IN_DOUBT


def is_strong(node: Node) -> bool:
    """Whether a product has strong zeros, and may be infinite or NaN."""
    return getattr(node.op, "has_strong_zeros", False) and node.spec.dtype.kind in "fc"


def product(device: Device, operands: Sequence[Any], subscripts: Any, status: Any) -> Any:
    """The product; the status is set if an element is NaN."""
    made = contract(*operands, subscripts=subscripts)
    if not device.owns(made):
        made = device.put(made)
    made = device.contiguous(made)
    parts = made.size * (2 if made.dtype.kind == "c" else 1)
    if parts:
        kind = in_memory(part_of(made.dtype))
        name = f"nan_{kind}"
        launch = launch_of(device, name, partial(_kernel, name, kind))
        launch([made, status, np.int64(parts)], parts)
    return made


def _kernel(name: str, kind: str) -> DeviceKernel:
    return element_kernel(name, [("ptr", "x"), ("ptr", "status")], partial(_look, kind))


def _look(kind: str, module: ModuleBuilder, function: Function, s: Section, element: Name) -> None:
    """Look at one number."""
    address = s.value(f"getelementptr {kind}, ptr %x, i64 {element}")
    x = s.value(f"load {kind}, ptr {address}")
    with s.when(s.value(f"fcmp uno {kind} {x}, {x}")) as found:
        found.write(f"store i64 {IN_DOUBT}, ptr %status")
