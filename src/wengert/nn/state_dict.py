"""The state of a model: values of its parameters and buffers by name, and variables of graphs.

    state_of         copies of the values
    load             sets the values, all or none
    functional_call  calls a model with other values
    stateful_call    the same, and returns the new values of buffers
    is_traced_call   whether a call of a module is traced
    traced_call      calls `forward` while tracing

Names are those of `Module.named_parameters` and `Module.named_buffers`, and equal PyTorch's, so
that state_dicts can be exchanged.

Nodes are recorded in a scope named after the module (``Sequential/0``).  Parameters and buffers,
also frozen ones, become variables of the graph with their dotted names, so that the graph reads
their current values whenever it runs.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, value_of, wrap
from wengert._engine.core.node import ConstantLeaf, constant, is_variable
from wengert._engine.core.recording import current_trace
from wengert._engine.core.thread_state import Blocks, ScopedValue
from wengert._engine.core.tracing import scope
from wengert._engine.core.validation import spelled
from wengert._engine.tensor import Tensor
from wengert.errors import DtypeError, ShapeError, StructureError, at, user_line

from .parameter import Buffer, Parameter, every_tensor

__all__ = ["functional_call", "stateful_call"]


class Loaded(NamedTuple):
    """The names that do not match, returned by `load_state_dict`.

    missing_keys : names of the model that are not in the state.
    unexpected_keys : names of the state that are not in the model.
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
    """Set values by name; if one does not match, none is set."""
    what = f"load_state_dict of {type(module).__name__}"
    if not isinstance(state, Mapping):
        raise StructureError(
            f"{what}: expected a mapping from names to values, as returned by state_dict(), got "
            f"{spelled(state)}{at(user_line())}."
        )
    own = every_state(module)
    missing = [n for n in own if n not in state]
    unknown = [n for n in state if n not in own]
    if strict and (missing or unknown):
        raise StructureError(
            f"{what}: missing {missing or 'nothing'}, unknown {unknown or 'nothing'}. Load the "
            f"state of a model of the same structure, or pass strict=False{at(user_line())}."
        )
    values = {n: _array(state[n], n, what) for n in own if n in state}
    for name, value in values.items():
        have = own[name]
        if value.shape != have.shape:
            raise ShapeError(
                f"{what}: {name} has shape {value.shape} in the state and {have.shape} in the "
                f"model. Load the state of a model of the same sizes{at(user_line())}."
            )
        if not np.can_cast(value.dtype, have.dtype, "same_kind"):
            raise DtypeError(
                f"{what}: {name} has dtype {value.dtype} in the state, which cannot be cast to "
                f"{have.dtype} of the model. Convert it first{at(user_line())}."
            )
    for name, value in values.items():
        own[name].data = value
    return Loaded(missing, unknown)


def _array(value: Any, name: str, what: str) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(value_of(value))
    except ValueError as error:
        raise ShapeError(f"{what}: {name} is not an array: {error}{at(user_line())}.") from error


# ---- a model as a function of its state ----------------------------------------------------------


def functional_call(module: Any, parameters: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Call a module with other values of its parameters and buffers.

    This makes a model a function of its parameters, for `grad`, `hessian`, `jvp` etc.

    Parameters
    ----------
    module : Module
    parameters : mapping from name to array or Tensor
        Names as in `named_parameters` and `named_buffers`; others keep the module's own values.
        Assignments to buffers given here are discarded after the call (`stateful_call` returns
        them); other buffers are updated.
    *args, **kwargs
        Arguments of the module.

    Raises
    ------
    StructureError
        The module does not have one of the names.

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
    with _replaced_values(module, parameters, "functional_call"):
        return module(*args, **kwargs)


def stateful_call(module: Any, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Call a module with other values of its state; return the result and the new buffers.

    The module is not changed, so it can be called for a batch of states (`vmap`), and inside loops.

    Parameters
    ----------
    module : Module
    state : mapping from name to array or Tensor
        Parameters and buffers by name, as in `state_dict`.
    *args, **kwargs
        Arguments of the module.

    Returns
    -------
    result : object
        The result of the module.
    buffers : dict from name to array or Tensor
        The buffers of `state` after the call.

    Raises
    ------
    StructureError
        The module does not have one of the names.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> norm = nn.BatchNorm1d(1, momentum=0.5)
    >>> y, after = nn.stateful_call(norm, norm.state_dict(), np.array([[0.0], [2.0]]))
    >>> after["running_mean"], norm.running_mean
    (array([0.5]), Buffer([0.], dtype=float64))
    """
    with _replaced_values(module, state, "stateful_call") as own:
        result = module(*args, **kwargs)
        after = {name: _current_value(own[name]) for name in state if isinstance(own[name], Buffer)}
    return result, after


def _current_value(buffer: Any) -> Any:
    node = buffer.node
    return wrap(node) if node.value is None else np.array(node.value)


@contextlib.contextmanager
def _replaced_values(module: Any, state: Mapping[str, Any], what: str) -> Iterator[dict[str, Any]]:
    own = dict(every_tensor(module, Tensor))
    unknown = [n for n in state if n not in own]
    if unknown:
        raise StructureError(
            f"{what} of {type(module).__name__}: there are no parameters {unknown}. The "
            f"parameters are {list(own)}{at(user_line())}."
        )
    before = {name: own[name].node for name in state}
    opened = current_trace()
    buffers = {own[name] for name in state if isinstance(own[name], Buffer)}
    recorded = {b: opened.written[b] for b in buffers if b in opened.written} if opened else {}
    try:
        for name, value in state.items():
            own[name].node = _node_of(value)
        yield own
    finally:
        for name, node in before.items():
            own[name].node = node
        if opened is not None:  # discard recorded assignments to the given buffers
            for buffer in buffers:
                opened.written.pop(buffer, None)
            opened.written.update(recorded)


def _node_of(value: Any) -> Any:
    node = value.node if isinstance(value, Handle) else Tensor(value).node
    # A new constant belongs to the current trace, which may record assignments to it.
    return constant(node.value) if type(node) is ConstantLeaf and node.value is not None else node


# ---- tracing -----------------------------------------------------------------------------------


class ModuleTrace(NamedTuple):
    """The model that is being called: paths of its modules by id, and the current path."""

    paths: dict[int, str]
    path: str


_frame: Blocks[ModuleTrace | None] = Blocks("wengert_module", None)


def is_traced_call(args: tuple[Any, ...]) -> bool:
    """Whether a module called with these arguments is traced."""
    if current_trace() is not None:
        return True
    return bool(args) and isinstance(args[0], Handle) and args[0].node.value is None


def traced_call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``module.forward(*args, **kwargs)`` in the scope of the module."""
    frame = _frame.get()
    path = None if frame is None else frame.paths.get(id(module))
    if frame is None or path is None:
        _guard(module)
        paths = {id(m): name for name, m in module.named_modules()}
        with _entered(ModuleTrace(paths, ""), type(module).__name__), _as_variables(module):
            return converted(module.forward)(*args, **kwargs)
    name = path.removeprefix(f"{frame.path}.") if frame.path else path
    if path == frame.path:
        name = type(module).__name__
    with _entered(ModuleTrace(frame.paths, path), name):
        return converted(module.forward)(*args, **kwargs)


def _guard(module: Any) -> None:
    """Add a guard to the graph: the modes and tensors of the module have not changed."""
    opened = current_trace()
    if opened is not None:
        check = functools.partial(_modes, module)
        opened.guards.append((check, check()))


class _Same:
    """Compares by identity."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.item is self.item

    __hash__ = None  # type: ignore[assignment]


def _modes(module: Any) -> Any:
    """The modules with their modes and hooks, and the tensors with dtype and requires_grad."""
    tensors = (*module.parameters(), *module.buffers())
    trained = [(_Same(x), x.dtype, x.requires_grad) for x in tensors]
    modes = [
        (_Same(m), m.training, m.forward_hooks and m.forward_hooks.key()) for m in module.modules()
    ]
    return modes, trained


@contextlib.contextmanager
def _entered(frame: ModuleTrace, name: str) -> Iterator[None]:
    block: ScopedValue[ModuleTrace | None] = ScopedValue(frame)
    try:
        _frame.open(block)
        with scope(name):
            yield
    finally:
        block.end(True)
        _frame.forget()


@contextlib.contextmanager
def _as_variables(module: Any) -> Iterator[None]:
    """Make parameters and buffers named variables; frozen ones, else constants, temporarily."""
    frozen = []
    for name, p in (*module.named_parameters(), *module.named_buffers()):
        node = p.node
        if type(node) is ConstantLeaf and not node.args:
            p.node = p.frozen_leaf()
            frozen.append((p, node, p.node))
        if is_variable(p.node) and p.node.name is None:
            p.node.note(name=name)
    try:
        yield
    finally:
        for p, node, variable in frozen:
            if p.node is variable:
                p.node = node
