"""Parameter: a tensor that a model learns.

It is a Tensor in every respect; being a Parameter is how `Module` recognises what belongs to the
model.  It requires a gradient from the start, and in-place changes within `no_grad` (an optimiser's
step) leave it the leaf and the object it was.
"""

from __future__ import annotations

from typing import Any

from ..core.handle import leaf
from ..keep import register_class
from ..tensor import Tensor


@register_class(name="Parameter")
class Parameter(Tensor):
    """A tensor that a model learns.

    Parameters
    ----------
    data : array_like
        The values to start from; copied. Floating or complex.
    requires_grad : bool, default True
        False freezes it: it is saved and loaded with the model, but not trained.
    dtype : dtype, optional

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.nn import Parameter
    >>> w = Parameter([1.0, 2.0])
    >>> np.sum(w * w).backward()
    >>> with wg.no_grad():
    ...     w -= 0.1 * w.grad
    >>> w
    Parameter([0.8, 1.6], dtype=float64, requires_grad=True)
    """

    __slots__ = ("_frozen",)

    def __init__(self, data: Any, requires_grad: bool = True, dtype: Any = None) -> None:
        super().__init__(data, requires_grad, dtype)

    def frozen_leaf(self) -> Any:
        """Itself as a variable of a graph, where it requires no gradient and so is a constant."""
        known = getattr(self, "_frozen", None)
        if known is None or known[0] is not self.node:
            known = self._frozen = self.node, leaf(self.node.value, self, differentiable=False)
        return known[1]

    def __copy__(self) -> Parameter:
        twin = object.__new__(type(self))
        twin.node = leaf(self.node.value, twin) if self.requires_grad else self.node
        return twin

    def __repr__(self) -> str:
        text = super().__repr__()
        name = type(self).__name__
        indent = " " * (len(name) - len("Tensor"))  # rows stay under one another
        return (name + text.removeprefix("Tensor")).replace("\n", "\n" + indent)
