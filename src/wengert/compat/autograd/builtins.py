"""Python's builtins under the names that programs for autograd import.

isinstance, type    for a tensor, those of its value
dict, list, tuple   Python's own: containers of tensors need no special class
DictBox, ListBox, TupleBox, SequenceBox
                    for isinstance: a container of that kind that has a tensor in it
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, is_traced

dict = builtins.dict
list = builtins.list
tuple = builtins.tuple

__all__ = [
    "DictBox",
    "ListBox",
    "SequenceBox",
    "TupleBox",
    "dict",
    "isinstance",
    "list",
    "tuple",
    "type",
]


def isinstance(x: Any, kinds: Any) -> bool:
    """Python's isinstance, for the value of a tensor."""
    return builtins.isinstance(x, kinds) or issubclass(type(x), kinds)


def type(x: Any) -> Any:
    """Python's type, for the value of a tensor; single numbers are NumPy scalars."""
    if not builtins.isinstance(x, Handle):
        return builtins.type(x)
    if is_traced(x):
        spec = x.node.spec
        return np.ndarray if spec.shape else spec.dtype.type
    return builtins.type(x.node.value)


class _ContainerBox(builtins.type):
    """The class of the classes below: instances are containers with a tensor in them."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return builtins.isinstance(instance, cls.kinds) and any(  # type: ignore[attr-defined]
            builtins.isinstance(leaf, Handle) for leaf in pytree.flatten(instance)[0]
        )


class DictBox(metaclass=_ContainerBox):
    """A dict with tensors: what a dict is in a function differentiated with respect to it.

    Examples
    --------
    >>> from wengert.compat.autograd import grad
    >>> from wengert.compat.autograd.builtins import DictBox
    >>> grad(lambda p: p["a"] if isinstance(p, DictBox) else 0.0)({"a": 1.0})
    {'a': np.float64(1.0)}
    """

    kinds = (builtins.dict,)


class SequenceBox(metaclass=_ContainerBox):
    """A list or tuple with tensors."""

    kinds: builtins.tuple[Any, ...] = (builtins.list, builtins.tuple)


class ListBox(SequenceBox):
    """A list with tensors."""

    kinds = (builtins.list,)


class TupleBox(SequenceBox):
    """A tuple with tensors."""

    kinds = (builtins.tuple,)
