"""Products in which zero times infinity or NaN is zero, in gradients of selections.

Nearly always no factor is infinite or NaN, and the product of the library is right.  To see that,
a kernel looks for NaN in the product, and sets the status: nothing waits for it.  If it was set the
program is run again, with the product as eager execution computes it.

    is_strong    whether an operation is such a product
    product      the product of the library, and the search for NaN
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.core.node import Node
from wengert._engine.kinds.contraction_lowering import contract

from .checked_values import Sought
from .device import Device
from .finite_arrays import look
from .matrix_kernels import IN_DOUBT

_NAN = Sought(nan=True, inf=False)


def is_strong(node: Node) -> bool:
    """Whether a product has strong zeros, and may be infinite or NaN."""
    return getattr(node.op, "has_strong_zeros", False) and node.spec.dtype.kind in "fc"


def product(device: Device, operands: Sequence[Any], subscripts: Any, status: Any) -> Any:
    """The product; the status is set if an element is NaN."""
    made = contract(*operands, subscripts=subscripts)
    if not device.owns(made):
        made = device.put(made)
    made = device.contiguous(made)
    look(device, made, status, _NAN, IN_DOUBT)
    return made
