"""Values of nodes in the memory of a device, which are copied to the host when they are read.

The results of a function compiled for a device are tensors without a copy on the host, and so are
the variables that it has updated. `Node.value` is the empty slot of `node.py`, which reads the
state of the node: here a `DeviceValue`.

DeviceValue      the state of such a node
DeviceValues     that of a node with several values
device_value     that of a node, or None
node_on_device   a node like another one, with a value on a device
with_value       a node with a value that may be on a device
values_together  the value of a node with several results
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from .node import NO_PARAMS, Node, reconstruct_values
from .node_info import NodeInfo
from .spec import Spec, spec_of

AnyNode = TypeVar("AnyNode", bound=Node)


class DeviceValue:
    """The value of a node, in the memory of a device.

    Attributes
    ----------
    array : array
        On the device; nothing writes to it.
    device : object
        Its device.
    is_number : bool
        Whether a value without axes is a scalar of NumPy, and not an array.
    spec : Spec
    newer : None
        It is never overwritten; compare `array_states.ArrayState`.
    """

    __slots__ = ("_get", "_host", "array", "device", "is_number", "spec")

    newer = None

    def __init__(
        self,
        array: Any,
        device: Any,
        get: Callable[[Any], np.ndarray[Any, Any]],
        is_number: bool = True,
    ) -> None:
        """`get` copies an array to the host."""
        self.array, self.device, self._get, self.is_number = array, device, get, is_number
        self.spec = Spec(tuple(array.shape), array.dtype)
        self._host: Any = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the array."""
        return self.spec.dtype

    def read(self) -> Any:
        """A copy on the host, made at the first call; it is read-only."""
        if self._host is None:
            host = self._get(self.array)
            host.flags.writeable = False
            self._host = host[()] if self.is_number else host
        return self._host


class DeviceValues:
    """The values of a node with several results, some of them in the memory of a device.

    Attributes
    ----------
    values : tuple
        Of `DeviceValue`, and of values of the host.
    spec : tuple of Spec
    newer : None
    """

    __slots__ = ("spec", "values")

    newer = None

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)
        self.spec = tuple([x.spec if type(x) is DeviceValue else spec_of(x) for x in values])

    def read(self) -> tuple[Any, ...]:
        """Copies on the host."""
        return tuple([x.read() if type(x) is DeviceValue else x for x in self.values])


def device_value(node: Node) -> DeviceValue | None:
    """The state of a node whose value is on a device; None for other nodes."""
    state: Any = node.version
    return state if type(state) is DeviceValue else None


def node_on_device(like: Node, value: DeviceValue, info: NodeInfo | None) -> Node:
    """A leaf of the class and operation of another one, with a value on a device."""
    return with_value(type(like)(like.op, (), NO_PARAMS, None, info), value)


def with_value(node: AnyNode, value: Any) -> AnyNode:
    """A node made without a value, with one of the host or of a device."""
    if type(value) not in (DeviceValue, DeviceValues):
        node.value = value
        return node
    reconstruct_values()
    del node.value
    node.version = value
    return node


def values_together(values: Sequence[Any]) -> Any:
    """The value of a node with several results: `DeviceValues`, or a tuple if all are plain."""
    return DeviceValues(values) if DeviceValue in map(type, values) else tuple(values)
