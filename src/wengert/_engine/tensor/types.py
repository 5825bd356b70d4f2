"""Types of tensors and operands, for type checkers and editors.

Array      a NumPy array of any shape and dtype
Operand    operands of the operators of Tensor: tensors, arrays, numbers, nested sequences of them
Axes       the `axis` argument of reductions
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

if TYPE_CHECKING:
    from .tensor import Tensor

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Operand: TypeAlias = Union["Tensor", ArrayLike]
Axes: TypeAlias = int | tuple[int, ...] | None
DType: TypeAlias = DTypeLike | None
