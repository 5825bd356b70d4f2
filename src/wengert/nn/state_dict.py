"""State: the values of a model's parameters and buffers, as dicts by name.

    state_of          copies of them
    load              takes them over, all or none
    functional_call   a model called with other values in their place
    stateful_call     the same, and what its buffers have become

Names are those of `Module.named_parameters` and `Module.named_buffers`, PyTorch's, so that the
``state_dict`` of one fits the other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import Handle, value_of, wrap
from wengert._engine.core.node import ConstantLeaf, constant
from wengert._engine.core.recording import current_trace
from wengert._engine.core.validation import spelled
from wengert._engine.tensor import Tensor
from wengert.errors import DtypeError, ShapeError, StructureError, at, user_line

from .parameter import Buffer, Parameter
from .traversal import every_tensor

__all__ = ["functional_call", "stateful_call"]


class Loaded(NamedTuple):
    """What `load_state_dict` found not to match.

    missing_keys : names of the model that the state does not have.
    unexpected_keys : names of the state that the model does not have.
    """

    missing_keys: list[str]
    unexpected_keys: list[str]


def every_state(module: Any) -> dict[str, Any]:
    """Parameters and persistent buffers under all their names, module by module."""
    found = {}
    for name, item in every_tensor(module, Tensor):
        if isinstance(item, Parameter) or item.persistent:
            found[name] = item
    return found


def state_of(module: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Copies of the values of parameters and persistent buffers."""
    return {name: np.array(value_of(item)) for name, item in every_state(module).items()}


def load(module: Any, state: Mapping[str, Any], strict: bool) -> Loaded:
    """Take over values by name, or nothing if one does not fit."""
    what = f"load_state_dict of {type(module).__name__}"
    if not isinstance(state, Mapping):
        raise StructureError(
            f"{what} was given {spelled(state)}. A state has values by name, as state_dict() "
            f"returns it{at(user_line())}."
        )
    mine = every_state(module)
    missing = [n for n in mine if n not in state]
    unknown = [n for n in state if n not in mine]
    if strict and (missing or unknown):
        raise StructureError(
            f"{what}: missing {missing or 'nothing'}, unknown {unknown or 'nothing'}. Load the "
            f"state of a model of the same structure, or pass strict=False{at(user_line())}."
        )
    values = {n: _array(state[n], n, what) for n in mine if n in state}
    for name, value in values.items():
        have = mine[name]
        if value.shape != have.shape:
            raise ShapeError(
                f"{what}: {name} has shape {value.shape} in the state and {have.shape} in the "
                f"model. Load the state of a model of the same sizes{at(user_line())}."
            )
        if not np.can_cast(value.dtype, have.dtype, "same_kind"):
            raise DtypeError(
                f"{what}: {name} is of {value.dtype} in the state and of {have.dtype} in the "
                f"model, which cannot hold it. Convert it first{at(user_line())}."
            )
    for name, value in values.items():
        mine[name].data = value
    return Loaded(missing, unknown)


def _array(value: Any, name: str, what: str) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(value_of(value))
    except ValueError as error:
        raise ShapeError(f"{what}: {name} is not an array: {error}{at(user_line())}.") from error


# ---- a model as a function of its state ----------------------------------------------------------


def functional_call(module: Any, parameters: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Call a module with other values in the place of its parameters and buffers.

    With it a model is a function of its parameters, for `grad`, `hessian`, `jvp` and the rest.

    Parameters
    ----------
    module : Module
    parameters : mapping from name to array or Tensor
        Names as in `named_parameters` and `named_buffers`; those left out keep the module's own
        values. What the module writes to a buffer given here is forgotten after the call
        (`stateful_call` returns it); to one that is not, it is written.
    *args, **kwargs
        What the module is called with.

    Raises
    ------
    StructureError
        A name that the module does not have.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import nn
    >>> model = nn.Linear(2, 1, rng=0)
    >>> x = np.array([[1.0, 10.0]])
    >>> f = lambda p: np.sum(nn.functional_call(model, p, x))
    >>> wg.grad(f)(model.state_dict())["weight"]
    array([[ 1., 10.]])
    """
    with _in_place_of(module, parameters, "functional_call"):
        return module(*args, **kwargs)


def stateful_call(module: Any, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Call a module with other values in the place of its state; return what becomes of them.

    Nothing of the module is changed, so it can be called for many states at once (`vmap`), and
    inside loops.

    Parameters
    ----------
    module : Module
    state : mapping from name to array or Tensor
        Parameters and buffers by name, as in `state_dict`.
    *args, **kwargs
        What the module is called with.

    Returns
    -------
    result : object
        What the module returns.
    buffers : dict from name to array or Tensor
        The buffers of `state` after the call.

    Raises
    ------
    StructureError
        A name that the module does not have.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> norm = nn.BatchNorm1d(1, momentum=0.5)
    >>> y, after = nn.stateful_call(norm, norm.state_dict(), np.array([[0.0], [2.0]]))
    >>> after["running_mean"], norm.running_mean
    (array([0.5]), Buffer([0.], dtype=float64))
    """
    with _in_place_of(module, state, "stateful_call") as mine:
        result = module(*args, **kwargs)
        after = {name: _now(mine[name]) for name in state if isinstance(mine[name], Buffer)}
    return result, after


def _now(buffer: Any) -> Any:
    node = buffer.node
    return wrap(node) if node.value is None else np.array(node.value)


@contextlib.contextmanager
def _in_place_of(module: Any, state: Mapping[str, Any], what: str) -> Iterator[dict[str, Any]]:
    mine = dict(every_tensor(module, Tensor))
    unknown = [n for n in state if n not in mine]
    if unknown:
        raise StructureError(
            f"{what} of {type(module).__name__}: it has no parameters {unknown}. Its "
            f"parameters are {list(mine)}{at(user_line())}."
        )
    before = {name: mine[name].node for name in state}
    opened = current_trace()
    buffers = {mine[name] for name in state if isinstance(mine[name], Buffer)}
    noted = {b: opened.written[b] for b in buffers if b in opened.written} if opened else {}
    try:
        for name, value in state.items():
            mine[name].node = _node_of(value)
        yield mine
    finally:
        for name, node in before.items():
            mine[name].node = node
        if opened is not None:  # what was written to a value given is nothing that happened
            for buffer in buffers:
                opened.written.pop(buffer, None)
            opened.written.update(noted)


def _node_of(value: Any) -> Any:
    node = value.node if isinstance(value, Handle) else Tensor(value).node
    # A new constant belongs to the current trace, and may be written to in it.
    return constant(node.value) if type(node) is ConstantLeaf and node.value is not None else node
