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

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.device_arrays import DeviceValue, device_value, node_on_device
from wengert._engine.core.handle import leaf, leaf_like
from wengert._engine.core.node import ConstantLeaf, DiscreteLeaf, Node, is_variable
from wengert.errors import ShapeError, at, user_line

from ..variable_updates import exchanged, held_by, is_unreferenced, replaced, values_of
from .device import Device

_LEAVES = (Node, ConstantLeaf, DiscreteLeaf)


def values_on_device(device: Device, owners: Sequence[Any], written: Collection[Any]) -> list[Any]:
    """The values of variables as arrays of a device; `written` are those that the run updates."""
    found = values_of(owners, held_by)
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
        if id(owner) not in updated and (not is_array or is_unreferenced(found, k, owner)):
            _move(owner, found[k][0], DeviceValue(array, device, device.get, not is_array))
    return arrays


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
