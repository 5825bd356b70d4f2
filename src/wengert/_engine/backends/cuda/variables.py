"""Variables on a device: parameters, the state of optimizers, captured tensors.

The value of a variable that a program updates stays on the device, as a `DeviceValue`; the next run
finds it there, and the host copies it when it is read. The value of one that programs only read is
uploaded once, if nothing else refers to its array, which could then be written to unnoticed;
otherwise by each run.

    values_on_device     the values of variables as arrays of a device
    write_on_device      new values of variables
    argument             the value of a tensor, for a program
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.device_values import DeviceValue, device_value, node_on_device
from wengert._engine.core.handle import leaf, leaf_like
from wengert._engine.core.node import (
    CONSTANT,
    NO_PARAMS,
    ConstantLeaf,
    DiscreteLeaf,
    Node,
    is_variable,
)
from wengert.errors import ShapeError, at, user_line

from ..variable_updates import exchanged, replaced, values_of
from .device import Device

_LEAVES = (Node, ConstantLeaf, DiscreteLeaf)


def values_on_device(device: Device, owners: Sequence[Any], written: Collection[Any]) -> list[Any]:
    """The values of variables as arrays of a device; `written` are those that the run updates."""
    found = values_of(owners, _held)
    updated = {id(owner) for owner in written}
    arrays = []
    for k, owner in enumerate(owners):
        state = found[k][1]
        if type(state) is DeviceValue and state.device is device:
            arrays.append(state.array)
            continue
        host = state.read() if type(state) is DeviceValue else state
        is_array = isinstance(host, np.ndarray)
        array = device.put(host)
        arrays.append(array)
        del host, state
        if id(owner) not in updated and (not is_array or _is_alone(found, k, owner)):
            _move(owner, found[k][0], DeviceValue(array, device, device.get, not is_array))
    return arrays


def _held(owner: Any) -> tuple[Node, Any]:
    """The node of a variable with its value, or with its state if this is on a device."""
    node = owner.node
    state = device_value(node)
    return node, node.value if state is None else state


def _is_alone(found: Sequence[tuple[Node, Any]], k: int, owner: Any) -> bool:
    """Whether nothing but nodes of the variable refers to an array."""
    array = found[k][1]
    if type(array) is DeviceValue:
        return True
    nodes = sum(device_value(n) is None and n.value is array for n in owner.other_nodes)
    return array.base is None and sys.getrefcount(array) <= _ALONE + nodes


class _Example:
    other_nodes = ()
    node: Node


def _alone() -> int:
    """The reference count in this case, as seen inside `_is_alone`."""
    owner = _Example()
    owner.node = Node(CONSTANT, (), NO_PARAMS, np.empty(1))
    found = [_held(owner)]
    for n in range(1, 20):
        globals()["_ALONE"] = n
        if _is_alone(found, 0, owner):
            return n
    raise AssertionError("unknown behavior of reference counts in this Python interpreter")


_ALONE = 0
_ALONE = _alone()


def _move(owner: Any, node: Node, value: DeviceValue) -> None:
    """Give a variable a node whose value is on the device."""
    if type(node) in _LEAVES:
        replaced(owner, node, node_on_device(node, value, node.info and node.info.copy()))


def write_on_device(device: Device, owners: Sequence[Any], values: Sequence[Any]) -> None:
    """Give variables new values, which stay on the device: all of them or none.

    Raises
    ------
    ShapeError
        A value has another shape than its variable.
    """
    old = [owner.node for owner in owners]
    new = [_new_leaf(device, o, n, v) for o, n, v in zip(owners, old, values, strict=True)]
    exchanged(owners, old, new)


def _new_leaf(device: Device, owner: Any, old: Node, value: Any) -> Node:
    spec = old.spec
    array = device.put(value)
    if tuple(array.shape) != spec.shape:
        raise ShapeError(
            f"an update gives the variable {old.name or ''} of shape {spec.shape} a value of shape "
            f"{tuple(array.shape)}. A variable keeps its shape{at(user_line())}."
        )
    if array.dtype != spec.dtype:
        array = array.astype(spec.dtype)
    state = device_value(old)
    is_number = state.is_number if state is not None else not isinstance(old.value, np.ndarray)
    kept = leaf_like(old, None, owner) if is_variable(old) else leaf(None, owner, type(old) is Node)
    return node_on_device(kept, DeviceValue(array, device, device.get, is_number), kept.info)


def argument(device: Device, node: Node) -> Any:
    """The value of a tensor: the array on the device if it is there."""
    state = device_value(node)
    return node.value if state is None or state.device is not device else state.array
