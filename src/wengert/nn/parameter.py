"""Parameter and Buffer: the tensors of a model.

Both are subclasses of Tensor, by which `Module` finds what belongs to the model.

    Parameter   trained: requires a gradient by default; remains a leaf, and the same object, under
                in-place changes within `no_grad` (an optimizer's step)
    Buffer      not trained: saved and loaded with the model, read and written by it
    write       assigns a value to a buffer; while tracing, records the assignment
    recast      converts a tensor to another precision in place
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, leaf, rebind, shape_of, value_of, wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.recording import no_grad
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.serialization import register_class
from wengert._engine.tensor import Tensor

from ..errors import ShapeError, at, user_line

__all__ = ["Buffer", "Parameter"]


@register_class(name="Parameter")
class Parameter(Tensor):
    """A tensor of a model that is trained.

    Parameters
    ----------
    data : array_like
        The initial values, floating-point or complex; copied.
    requires_grad : bool, default True
        If False it is frozen: saved and loaded with the model, but not trained.
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
        """The variable of a frozen parameter in graphs; eagerly it is a constant."""
        cached = getattr(self, "_frozen", None)
        if cached is None or cached[0] is not self.node:
            cached = self._frozen = self.node, leaf(self.node.value, self, differentiable=False)
        return cached[1]

    def other_nodes(self) -> Sequence[Node]:
        """The variable of a frozen parameter, if it has its value."""
        cached = getattr(self, "_frozen", None)
        return () if cached is None or cached[0] is not self.node else cached[1:]

    def __copy__(self) -> Parameter:
        twin = object.__new__(type(self))
        twin.node = leaf(self.node.value, twin) if self.requires_grad else self.node
        return twin

    def __repr__(self) -> str:
        return _renamed(super().__repr__(), type(self).__name__)


@register_class(name="Buffer")
class Buffer(Tensor):
    """A tensor of a model that is not trained: a running mean, a count, a mask.

    It is saved and loaded with the model, and has no gradient. A graph reads it at each run.
    Assignments in `forward`, ``self.count += 1`` or ``self.mean[...] = new``, are also made by
    compiled functions.

    Parameters
    ----------
    data : array_like
        The initial values; copied.
    persistent : bool, default True
        Whether it is in the `state_dict`.
    dtype : dtype, optional

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import nn
    >>> class Counted(nn.Module):
    ...     def __init__(self):
    ...         self.calls = nn.Buffer(0)
    ...     def forward(self, x):
    ...         self.calls += 1
    ...         return x * self.calls
    >>> model = Counted()
    >>> f = wg.jit(model)
    >>> [float(f(10.0)) for _ in range(3)], int(model.calls)
    ([10.0, 20.0, 30.0], 3)
    """

    __slots__ = ("persistent",)

    def __init__(self, data: Any, persistent: bool = True, dtype: Any = None) -> None:
        super().__init__(data, False, dtype)
        self.node = leaf(self.node.value, self, differentiable=False)
        self.persistent = persistent

    def __copy__(self) -> Buffer:
        twin = object.__new__(type(self))
        twin.node = leaf(self.node.value, twin, differentiable=False)
        twin.persistent = getattr(self, "persistent", True)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        value = np.array(value_of(self))
        return _buffer_again, (type(self), value, getattr(self, "persistent", True))

    def __repr__(self) -> str:
        return _renamed(super().__repr__(), type(self).__name__)


def _buffer_again(cls: type, value: Any, persistent: bool) -> Any:
    made: Any = object.__new__(cls)
    made.node = leaf(value, made, differentiable=False)
    made.persistent = persistent
    return made


def _renamed(text: str, name: str) -> str:
    indent = " " * (len(name) - len("Tensor"))  # keeps rows aligned
    return (name + text.removeprefix("Tensor")).replace("\n", "\n" + indent)


def write(buffer: Any, value: Any, what: str = "a buffer") -> None:
    """Assign a value to a buffer, without derivatives; recorded while tracing.

    Raises
    ------
    ShapeError
        The shapes of value and buffer differ.
    """
    if shape_of(value) != buffer.shape:
        raise ShapeError(
            f"{what} has shape {spelled(buffer.shape)}, got a value of shape "
            f"{spelled(shape_of(value))}. Assign a value of equal shape, or replace the buffer: "
            f"nn.Buffer(value){at(user_line())}."
        )
    with no_grad():
        value = value_of(value)
        item: Any = value if isinstance(value, Handle) else wrap(constant(np.array(value)))
        item = item if item.dtype == buffer.dtype else item.astype(buffer.dtype)
        rebind(buffer, item.node)


def recast(tensor: Any, dtype: np.dtype[Any]) -> None:
    """Convert a floating-point tensor of a model, and its gradient, to another precision."""
    if tensor.dtype.kind != "f" or tensor.dtype == dtype:
        return
    value = np.asarray(value_of(tensor)).astype(dtype)
    name, trained = tensor.node.name, tensor.requires_grad
    if trained or isinstance(tensor, Buffer):
        tensor.node = leaf(value, tensor, trained)
    else:
        tensor.node = constant(value)
    if name is not None:
        tensor.node.note(name=name)
    if tensor.grad is not None:
        tensor.grad = np.asarray(value_of(tensor.grad)).astype(dtype)
