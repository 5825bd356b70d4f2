"""GraphWriter: an ONNX graph under construction, and the infos of its inputs and outputs.

    GraphWriter    nodes and names of a graph or body
    Outside        the state of the outermost writer: constants, initializers, lengths
    value_info     the ONNX description of a value

There is one for the graph, and one for each loop body or branch in it, whose nodes can refer to
values of outer graphs by name.  Constants and lengths of axes belong to the outermost writer, so
that each is written once.

A symbolic size is written as the text of its expression, so that readers of the file see which
lengths are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import CONSTANT, LeafOp, Node
from wengert._engine.core.symbolic.dim import Dim, Quotient
from wengert._engine.core.tracing import SIZE
from wengert.errors import BackendError, at, user_line

from ..onnx_library import code_of, onnx
from .registry import unsupported, writer_of


class Outside:
    """The state of the outermost writer, which bodies share."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.names: set[str] = set()
        self.initializers: dict[str, Any] = {}  # name -> array
        self.constants: dict[Any, str] = {}
        # For a symbolic size: the input and the axis whose length is factor * size + offset.
        self.sizes: dict[str, tuple[str, int, int, int]] = {}
        self.lengths: dict[Any, str] = {}

    def fresh(self, wish: str) -> str:
        """An unused name, `wish` if possible."""
        wish = re.sub(r"[^\w.\-/]", "_", wish) or "value"
        name, k = wish, 1
        while name in self.names:
            name, k = f"{wish}_{k}", k + 1
        self.names.add(name)
        return name


class GraphWriter:
    """The nodes of a graph, or of a body.

    Parameters
    ----------
    outside : Outside
    parent : GraphWriter, optional
        The writer of the outer graph, for a body.
    """

    def __init__(self, outside: Outside, parent: GraphWriter | None = None) -> None:
        self.outside = outside
        self.parent = parent
        self.nodes: list[Any] = []
        self.names: dict[Node, Any] = {}
        self.line: Node | None = None

    @property
    def top(self) -> GraphWriter:
        """The outermost writer."""
        return self if self.parent is None else self.parent.top

    # ---- nodes ---------------------------------------------------------------------------------

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Write a node; return the name of its result, or a tuple of names.

        An input "" is omitted, as is an attribute None.
        """
        named = {k: v for k, v in attributes.items() if v is not None}
        wish = kind if self.line is None or self.line.name is None else str(self.line.name)
        results = [self.outside.fresh(wish) for _ in range(outputs)]
        made = onnx().helper.make_node(kind, list(inputs), results, **named)
        if self.line is not None and self.line.where:
            made.doc_string = self.line.where
        self.nodes.append(made)
        return results[0] if outputs == 1 else tuple(results)

    def constant(self, value: Any, dtype: Any = None) -> str:
        """The name of a constant; equal constants are written once."""
        array = np.ascontiguousarray(np.asarray(value, dtype)).reshape(np.shape(value))
        code_of(array.dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        name = self.outside.constants.get(key)
        if name is None:
            name = self.outside.constants[key] = self.outside.fresh("constant")
            self.outside.initializers[name] = array
        return name

    def ints(self, values: Iterable[Any]) -> str:
        """A list of integers as a constant."""
        return self.constant(np.array(list(values), np.int64))

    def cast(self, name: str, have: Any, want: Any) -> str:
        """Cast to another dtype, if necessary."""
        if np.dtype(have) == np.dtype(want):
            return name
        if name in self.outside.initializers and np.ndim(self.outside.initializers[name]) == 0:
            return self.constant(self.outside.initializers[name].astype(want))
        return str(self.op("Cast", name, to=code_of(want)))

    # ---- lengths -------------------------------------------------------------------------------

    def length(self, length: Any) -> str:
        """A length as an array of one number."""
        if not isinstance(length, Dim):
            return self.ints([length])
        known = self.outside.lengths
        if length not in known:
            known[length] = self.top._computed(length)
        return known[length]

    def shape(self, shape: Sequence[Any]) -> str:
        """A shape as a list of integers."""
        if not any(isinstance(n, Dim) for n in shape):
            return self.ints(shape)
        parts: list[str] = []
        run: list[int] = []
        for n in shape:
            if isinstance(n, Dim):
                parts += [self.ints(run)] * bool(run) + [self.length(n)]
                run = []
            else:
                run.append(n)
        parts += [self.ints(run)] * bool(run)
        return parts[0] if len(parts) == 1 else str(self.op("Concat", *parts, axis=0))

    def _computed(self, length: Dim) -> str:
        terms = []
        for product, factor in length.terms.items():
            term: Any = None if factor == 1 and product else self.ints([factor])
            for atom, power in product:
                one = self._quotient(atom) if isinstance(atom, Quotient) else self._size(atom)
                for _ in range(power):
                    term = one if term is None else self.op("Mul", term, one)
            terms.append(term)
        total: Any = terms[0]
        for term in terms[1:]:
            total = self.op("Add", total, term)
        return str(total)

    def _quotient(self, atom: Quotient) -> str:
        return str(self.op("Div", self.length(atom.above), self.length(atom.below)))

    def _size(self, name: str) -> str:
        if name not in self.outside.sizes:
            raise BackendError(
                f"onnx.export: the size {name} is not the length of an axis of an input, so the "
                f"file cannot compute it. Give an input an axis of length {name!r}"
                f"{at(user_line())}."
            )
        source, axis, factor, offset = self.outside.sizes[name]
        whole = self.op("Shape", source, start=axis, end=axis + 1)
        if offset:
            whole = self.op("Sub", whole, self.ints([offset]))
        if factor != 1:
            whole = self.op("Div", whole, self.ints([factor]))
        return str(whole)

    # ---- nodes of the graph --------------------------------------------------------------------

    def name_of(self, node: Node) -> Any:
        """The name of a node in this graph or an outer one."""
        if node in self.names:
            return self.names[node]
        if self.parent is not None:
            return self.parent.name_of(node)
        raise KeyError(node)

    def write(self, graph: BaseGraph) -> None:
        """Write the nodes of a graph that have no name yet."""
        before = self.line
        for node in graph.nodes:
            if node not in self.names:
                self.line = node
                self.names[node] = self._written(node)
        self.line = before

    def _written(self, node: Node) -> Any:
        if node.op is CONSTANT:
            value = np.asarray(node.value)
            if value.dtype.kind == "c":  # as pairs
                value = np.stack([value.real, value.imag], axis=-1)
            return self.constant(value)
        if node.op is SIZE:
            return self.op("Squeeze", self.length(node.params["size"]), self.ints([0]))
        if isinstance(node.op, LeafOp) and node.op is not PART:
            raise unsupported(node, "is an input of another graph")
        if node.op is PART:
            return self.name_of(node.inputs[0])[node.params["index"]]
        names = [self.name_of(a) for a in node.inputs]
        function = writer_of(node)
        if function is None:
            raise unsupported(node, "has no counterpart in ONNX")
        return function(self, node, *names)


def value_info(name: str, spec: Any, outside: Outside) -> Any:
    """The ONNX description of a value: name, dtype and shape."""
    shape = [str(n) if isinstance(n, Dim) else int(n) for n in spec.shape]
    return onnx().helper.make_tensor_value_info(name, code_of(spec.dtype), shape)
