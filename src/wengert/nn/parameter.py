"""Parameter and Buffer: the tensors of a model, and how they are found in a module.

    Parameter     trained: requires a gradient by default; remains a leaf, and the same object,
                  under in-place changes within `no_grad` (an optimizer's step)
    Buffer        not trained: saved and loaded with the model, read and written by it
    write         assigns a value to a buffer; while tracing, records the assignment
    recast        converts a tensor to another precision in place
    contents      the parameters, buffers and modules among named items, also inside lists, tuples
                  and dicts, in the order in which they were set
    every_tensor  the parameters or buffers of a module and all modules in it, with dotted names
    at_path       the item with a dotted name
    joined        prefix and name, joined by a dot

Both are subclasses of Tensor, by which `Module` finds what belongs to the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, leaf, rebind, shape_of, value_of, wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.recording import no_grad
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.serialization import register_class
from wengert._engine.tensor import Tensor
from wengert.errors import ShapeError, StructureError, at, user_line

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


class Belonging:
    """Base of `Module`, for recognition by `contents` without a circular import."""

    __slots__ = ()


def contents(items: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Parameters, buffers and modules among named items, with names; no recursion limit."""
    stack = [(str(name), item) for name, item in items.items()][::-1]
    open_: list[Any] = []  # keeps visited containers alive, so that ids are not reused
    seen: set[int] = set()
    while stack:
        name, item = stack.pop()
        if isinstance(item, Parameter | Buffer | Belonging):
            yield name, item
        elif isinstance(item, list | tuple | dict) and id(item) not in seen:
            seen.add(id(item))
            open_.append(item)
            inside = item.items() if isinstance(item, dict) else enumerate(item)
            stack.extend([(f"{name}.{key}", x) for key, x in inside][::-1])


def every_tensor(module: Any, kind: type, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All names of all parameters (or buffers); shared ones occur several times."""
    for module_name, inner in module.named_modules(prefix):
        for name, item in inner.named_items():
            if isinstance(item, kind):
                yield joined(module_name, name), item


def unique(named: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Each item once, with its first name."""
    seen: set[int] = set()
    for name, item in named:
        if id(item) not in seen:
            seen.add(id(item))
            yield name, item


def at_path(module: Any, path: str, named: Iterator[tuple[str, Any]], what: str) -> Any:
    """The parameter, buffer or module with a dotted name.

    Raises
    ------
    StructureError
        The name does not exist.
    """
    items = dict(named)
    if path not in items:
        raise StructureError(
            f"{type(module).__name__} has no {what} {path!r}. It has "
            f"{[name for name in items if name] or 'none'}{at(user_line())}."
        )
    return items[path]


def joined(prefix: str, name: str) -> str:
    """``prefix.name``."""
    return f"{prefix}.{name}" if prefix else name
