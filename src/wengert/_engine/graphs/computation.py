"""Computation: outputs and inputs of a graph as a callable, run by a backend.

    computation    makes one from tensors built by hand, or from a graph
    Computation    called by position, by name, or with a dictionary from inputs to values

Argument checks, sizes and updates are in backends/executable.py.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.backends import Executable
from wengert._engine.backends.registry import Backend
from wengert._engine.backends.registry import backend as backend_of
from wengert._engine.core import graph as lists
from wengert._engine.core import pytree
from wengert._engine.core.graph_copies import inline_graph, rebuilt, settled, with_placeholders
from wengert._engine.core.handle import Handle, describe, leaf
from wengert._engine.core.node import INPUT, Node, constant, is_variable
from wengert._engine.core.spec import Spec
from wengert._engine.core.validation import spelled, word
from wengert.errors import (
    ArgumentError,
    DtypeError,
    GraphError,
    ShapeError,
    StructureError,
    at,
    user_line,
)

from .graph import Graph
from .pytree_signature import ResultStructure, restored

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand


class Computation:
    """The callable that `computation` returns.

    Attributes
    ----------
    graph : Graph
    backend : Backend
    inputs : tuple of str
        The names of the inputs, in order.
    """

    __module__ = "wengert.graphs"

    def __init__(self, graph: Graph, backend: Backend, handles: Sequence[Any] = ()) -> None:
        self.graph, self.backend, self.name = graph, backend, graph.name
        self.inputs = tuple([n.name or f"input {i}" for i, n in enumerate(graph.inputs)])
        self._run = Executable(graph, backend)
        self._structure = graph.structure[1]
        self._is_flat = graph.structure[0] is None
        self._words = f"the computation {graph.name}".removesuffix(" computation")
        shape = self._structure
        self._is_single = (
            isinstance(shape, ResultStructure) and shape.structure.is_leaf() and shape.live[0]
        )
        # A dictionary of values may have the given tensors or their nodes as keys.
        self._places: dict[Any, int] = {id(n): i for i, n in enumerate(graph.inputs)}
        self._handles = tuple(handles)
        for i, x in enumerate(self._handles):
            self._places[id(x)] = i
            if isinstance(x, Handle):
                self._places[id(x.node)] = i
                self._handles += (x.node,)  # kept alive, so that its id is not reused

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The values of the outputs, in their structure.

        Raises
        ------
        StructureError
            An input is missing, unknown or given twice; the message lists the inputs.
        ShapeError, DtypeError
            A value does not have the shape or dtype of its input, which the message names.
        """
        values = self._fed(args, kwargs)
        if self.graph.is_open or any([isinstance(v, Handle) for v in values]):
            values = [_plain(v) for v in values]
            if self.graph.is_open or any([isinstance(v, Handle) for v in values]):
                return restored(self._structure, inline_graph(self.graph, values))
        outputs = self._run(values)
        return outputs[0] if self._is_single else restored(self._structure, outputs)

    def _fed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[Any]:
        """The values in the order of the inputs."""
        if not self._is_flat:
            return self.graph.signature.leaves(args, kwargs, self._words)
        if len(args) == 1 and isinstance(args[0], Mapping):
            return self._named((), [*args[0].items(), *kwargs.items()])
        if not kwargs and len(args) == len(self.inputs):
            return args
        return self._named(args, kwargs.items())

    def _named(self, args: Sequence[Any], pairs: Iterable[tuple[Any, Any]]) -> Sequence[Any]:
        if len(args) > len(self.inputs):
            raise self._refusal(f"{len(args)} values were given by position")
        values = dict(enumerate(args))
        for key, value in pairs:
            i = self._place(key)
            if i in values:
                raise self._refusal(f"{self.inputs[i]} is given twice")
            values[i] = value
        missing = [n for i, n in enumerate(self.inputs) if i not in values]
        if missing:
            raise self._refusal(
                f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
            )
        return [values[i] for i in range(len(self.inputs))]

    def _place(self, key: Any) -> int:
        """The index of the input with a name or tensor."""
        if isinstance(key, str):
            count = self.inputs.count(key)
            if count > 1:
                raise self._refusal(f"{count} inputs have the name {key!r}: pass them by position")
            if count == 1:
                return self.inputs.index(key)
        elif id(key) in self._places:
            return self._places[id(key)]
        elif isinstance(key, Handle) and id(key.node) in self._places:
            return self._places[id(key.node)]
        what = repr(key) if isinstance(key, str) else f"a {type(key).__name__}"
        raise self._refusal(f"{what} is not one of them")

    def _refusal(self, reason: str) -> StructureError:
        names = ", ".join(self.inputs) or "no inputs"
        return StructureError(f"{self._words} takes ({names}), but {reason}{at(user_line())}.")

    def __copy__(self) -> Computation:
        return Computation(self.graph, self.backend, self._handles)

    def __deepcopy__(self, memo: dict[int, Any]) -> Computation:
        """The same computation with copies of its variables, which may already be in `memo`."""
        duplicates = [_duplicate_variable(owner, memo) for owner in self._run.owners]
        replacements = {v: t.node for v, t in zip(self.graph.variables, duplicates, strict=True)}
        graph = (
            self.graph.with_nodes(rebuilt(self.graph.nodes, replacements))
            if replacements
            else self.graph
        )
        return Computation(graph, self.backend, self._handles)

    def __reduce__(self) -> Any:
        return type(self), (self.graph, self.backend)

    def __repr__(self) -> str:
        outputs = len(self.graph.outputs)
        return (
            f"<computation {self.name}({', '.join(self.inputs)}) -> {outputs} "
            f"output{'' if outputs == 1 else 's'}, {len(self.graph)} nodes, {self.backend.name}>"
        )


def _duplicate_variable(owner: Any, memo: dict[int, Any]) -> Any:
    """A new variable with the same value."""
    duplicate = copy.deepcopy(owner, memo)
    original = owner.node
    if duplicate.node is original:  # not a leaf that requires a gradient
        duplicate.node = leaf(np.array(original.value), duplicate, type(original) is Node)
    if original.name is not None:
        duplicate.node.note(name=original.name)
    return duplicate


def _plain(value: Operand) -> Any:
    """The value of a constant tensor; a recorded tensor unchanged."""
    if isinstance(value, Handle) and not value.node.is_traced and type(value.node) is not Node:
        return value.node.value
    return value


# ---- construction ------------------------------------------------------------------------------


def computation(
    outputs: Any,
    *inputs: Any,
    backend: str | Backend = "interpret",
    updates: Mapping[Any, Any] | None = None,
    effects: Sequence[Any] = (),
    name: str | None = None,
) -> Computation:
    """Make a callable from inputs and outputs of a graph.

    Parameters
    ----------
    outputs : Tensor, nested containers of them, None, or Graph
        The results, in this structure. A graph from `wengert.trace` is called like its function.
    *inputs : Tensor
        The arguments, in this order; by default the inputs (`wengert.input`) of the graph, in order
        of creation. Any other tensor of the graph can be an input, whose value is then passed
        instead of computed.
    backend : str or Backend
        The backend; ``wengert.backends.backends()`` lists the names.
    updates : mapping from Tensor to Tensor, optional
        The next values of variables (`wengert.variable`, parameters). Outputs are computed from the
        old values; then all variables are updated together, or none if an error or Ctrl-C occurs.
    effects : sequence of Tensor, optional
        Nodes to run although no output needs them (`wengert.debug`, in graphs built by hand).
    name : str, optional
        For messages.

    Returns
    -------
    Computation
        Called with values by position, by name, or with a dictionary whose keys are names or the
        tensors themselves. Its results share no memory with anything else. It may be called by
        several threads at the same time.

    Raises
    ------
    GraphError
        An input is needed but not listed, is listed twice, or is not a tensor of a graph.
    ArgumentError
        A key of `updates` is not a variable.
    ShapeError, DtypeError
        The next value of a variable has another shape, or a dtype that cannot be cast to its own.
    BackendError
        The backend lacks an operation; the message names both.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x, y = wg.input("x"), wg.input("y", shape=("n",))
    >>> f = wg.computation({"sum": np.sum(x * y), "twice": 2.0 * y}, x, y)
    >>> f(3.0, [1.0, 2.0])
    {'sum': np.float64(9.0), 'twice': array([2., 4.])}
    >>> f(y=np.ones(3), x=1.0)["sum"], f({x: 1.0, "y": [5.0]})["sum"]
    (np.float64(3.0), np.float64(5.0))

    One step of descent, as an update:

    >>> w = wg.variable([1.0, -2.0], "w")
    >>> step = wg.computation(np.sum(w**2), updates={w: w - 0.1 * (2.0 * w)})
    >>> float(step()), w
    (5.0, Tensor([ 0.8, -1.6], dtype=float64, requires_grad=True))
    """
    runner = backend_of(backend)
    if name is not None:
        word(name, "the name of a computation")
    if isinstance(outputs, lists.BaseGraph):
        if inputs or updates or effects:
            raise ArgumentError(
                f"the graph {outputs.name} has its own inputs, updates and effects. Give the graph "
                f"alone, or its outputs as tensors{at(user_line())}."
            )
        return Computation(_as_graph(outputs, name), runner)
    input_nodes = _inputs_of(inputs)
    update_nodes = _updates_of({} if updates is None else updates, input_nodes)
    if isinstance(effects, Handle | Node | str) or not isinstance(effects, Iterable):
        raise ArgumentError(
            f"effects are {spelled(effects)}. Give a list of tensors{at(user_line())}."
        )
    leaves, structure = pytree.flatten(outputs)
    is_output = tuple(_is_output(x) for x in leaves)
    graph = Graph(
        *[x for x, is_live in zip(leaves, is_output, strict=True) if is_live],
        inputs=input_nodes or None,
        updates=update_nodes,
        effects=[_node(x, "effect") for x in effects],
        structure=(None, ResultStructure(structure, is_output)),
        name=name or "computation",
    )
    graph = _with_effects(settled(with_placeholders(graph)))
    if input_nodes:
        _check_listed(graph)
    return Computation(graph, runner, inputs)


def _as_graph(graph: Any, name: str | None) -> Graph:
    if isinstance(graph, Graph) and name is None:
        return graph
    return Graph(
        *graph.outputs,
        inputs=graph.inputs,
        updates=graph.updates,
        effects=graph.effects,
        structure=graph.structure,
        name=name or graph.name,
    )


def _node(x: Array, what: str) -> Node:
    """The node of a tensor."""
    node = x.node if isinstance(x, Handle) else x
    if not isinstance(node, Node):
        raise GraphError(
            f"{what} is a {type(x).__name__}, which is not a tensor of a graph. Make one with "
            f"wengert.input or wengert.variable{at(user_line())}."
        )
    return node


def _inputs_of(inputs: Sequence[Any]) -> list[Node]:
    nodes: list[Node] = []
    for i, x in enumerate(inputs):
        node = _node(x, f"input {i}")
        if node in nodes:
            raise GraphError(
                f"input {i}, {node.name or node.op.name}, is listed twice: it is also input "
                f"{nodes.index(node)}{at(user_line())}."
            )
        if not isinstance(node.spec, Spec):
            raise GraphError(f"input {i} has several values. List one{at(user_line())}.")
        nodes.append(node)
    return nodes


def _is_output(x: Array | Callable[..., Any] | None) -> bool:
    if x is None:
        return False
    if not isinstance(describe(x), Spec):
        raise StructureError(
            f"an output is a {type(x).__name__}, which a graph cannot compute. Give tensors and "
            f"containers of them; trace a function first, wengert.trace(f)(...){at(user_line())}."
        )
    return True


def _updates_of(updates: Any, inputs: Sequence[Node]) -> dict[Node, Node]:
    if not isinstance(updates, Mapping):
        hint = "Call it" if callable(updates) else "Give {variable: its next value}"
        raise ArgumentError(
            f"updates is a {type(updates).__name__}, not a dict of variables. {hint}"
            f"{at(user_line())}."
        )
    nodes: dict[Node, Node] = {}
    for variable, value in updates.items():
        node = _node(variable, "the key of an update")
        name = node.name or "a tensor"
        if not is_variable(node):
            remedy = "Make it one, wengert.variable(value, name)"
            if node.args and not node.is_traced:
                remedy += "; to write to a tensor yourself, use `with wengert.no_grad():`"
            raise ArgumentError(
                f"{name}, {node.spec}, is a key of updates, but is not a variable. {remedy}"
                f"{at(user_line())}."
            )
        if node in inputs:
            raise ArgumentError(
                f"the variable {name} is an input, so it cannot be updated. Remove it from the "
                f"inputs or from the updates{at(user_line())}."
            )
        next_value = value.node if isinstance(value, Handle) else value
        next_value = (
            next_value if isinstance(next_value, Node) else constant(_array(next_value, name))
        )
        if next_value.spec.shape != node.spec.shape:
            raise ShapeError(
                f"the update of {name}, {node.spec}, is {next_value.spec}. A variable keeps its "
                f"shape{at(user_line())}."
            )
        if not np.can_cast(next_value.spec.dtype, node.spec.dtype, "same_kind"):
            raise DtypeError(
                f"the update of {name}, {node.spec}, is {next_value.spec}. A variable keeps its "
                f"dtype: cast the update{at(user_line())}."
            )
        nodes[node] = next_value
    return nodes


def _array(value: Array, name: str) -> Any:
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ShapeError(
            f"the update of {name}: {str(error).rstrip('.')}. Give numbers in rows of equal "
            f"length{at(user_line())}."
        ) from error


def _with_effects(graph: Graph) -> Graph:
    """The graph with all its effects, in order."""
    effects = {n: None for n in graph.nodes if n.op.effects.side_effect or n in graph.effects}
    if len(effects) == len(graph.effects):
        return graph
    return Graph(
        *graph.outputs,
        inputs=graph.inputs,
        updates=graph.updates,
        effects=tuple(effects),
        structure=graph.structure,
        name=graph.name,
    )


def _check_listed(graph: Graph) -> None:
    inputs = set(graph.inputs)
    for node in graph.nodes:
        if node.op is INPUT and node.is_traced and node not in inputs:
            names = ", ".join(n.name or "an input" for n in graph.inputs)
            raise GraphError(
                f"the input {node.name or '(without name)'}, {node.spec}, is needed, but only "
                f"({names}) are listed. List it too, or list no inputs, to use all that the "
                f"outputs need{at(user_line())}."
            )
