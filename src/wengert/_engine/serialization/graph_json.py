"""Graphs as JSON, node by node.

    {"name": ..,
     "ops":    [[name, kind, module], ..]        the operations of the nodes
     "specs":  [[dtype, lengths], ..]            or {"parts": [..]} of several outputs
     "texts":  [..]                              source locations
     "lines":  [[what, type, operands, spec, notes], ..]
     "inputs": [..], "outputs": [..], "updates": [[variable, node], ..], "effects": [..],
     "structure": [of the arguments, of the results]}

A body of a loop or branch has "body": true, no structure, and precedes the graph with the node that
uses it.  Lengths that are known after a loop are "steps.f0", "steps.f1".  `what` is the index of an
operation, or for a leaf one of "input", "size", "constant", "variable", "value".  `type` is N, D or
C (Node, DiscreteLeaf, ConstantLeaf: core/node.py).  Operands are indices of earlier nodes.
Operations are stored by name and looked up in the registry of the running program; `module` is
shown in the error message if one is not registered, and is never imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wengert._engine.control_flow.call_rule import CustomRule
from wengert._engine.control_flow.custom_rules import Stated
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.node import (
    CONSTANT,
    INPUT,
    ConstantLeaf,
    DiscreteLeaf,
    LeafOp,
    Node,
    is_variable,
    owner_of,
)
from wengert._engine.core.node_properties import place_of
from wengert._engine.core.op import REGISTRY, Op
from wengert._engine.core.spec import bare, shown
from wengert._engine.core.tracing import SIZE
from wengert.errors import GraphError, RegistryError, StructureError, at, user_line

from .encode import FileEncoder, Path, spec_json
from .specs_json import Budget, fits, spelled

if TYPE_CHECKING:
    from wengert._engine.core.spec import Spec

TYPE_CODES: dict[type[Node], str] = {Node: "N", DiscreteLeaf: "D", ConstantLeaf: "C"}
# The fields of `NodeInfo` stored under "more", and their types; other fields are not stored.
INFO_FIELDS = {
    "metadata": dict,
    "linear": tuple,
    "step": str,
    "held": bool,
    "symbolic": bool,
    "by_hand": bool,
    "trace": tuple,
}


def graph_json(writer: FileEncoder, graph: BaseGraph, path: Path) -> Any:
    """The JSON of a graph; its arrays are added to the writer."""
    return _GraphTables(writer, graph, path).build()


class _GraphTables:
    """The tables of one graph, filled while its nodes are encoded."""

    def __init__(self, writer: FileEncoder, graph: BaseGraph, path: Path) -> None:
        self.writer, self.graph, self.path = writer, graph, path
        self.ops: dict[Op, int] = {}
        self.specs: dict[Any, int] = {}
        self.texts: dict[str, int] = {}
        self.budget = Budget()

    def build(self) -> Any:
        graph, number = self.graph, self.graph.index
        nodes = [self._node(i, node) for i, node in enumerate(graph.nodes)]
        tables = {
            "name": str(graph.name),
            "ops": [[op.name, op.kind, _module(op)] for op in self.ops],
            "specs": [_spec_json(s) for s in self.specs],
            "texts": list(self.texts),
            "lines": nodes,
            "inputs": [number(n) for n in graph.inputs],
            "outputs": [number(n) for n in graph.outputs],
            "updates": [[number(v), number(n)] for v, n in graph.updates.items()],
            "effects": [number(n) for n in graph.effects],
        }
        if isinstance(graph, Body):
            return {**tables, "body": True}
        structure_path = (*self.path, "structure")
        return {**tables, "structure": self.writer.value(tuple(graph.structure), structure_path)}

    def _node(self, i: int, node: Node) -> list[Any]:
        path = (*self.path, f"node %{i} ({node.op.name})")
        notes = self._notes(node, path)
        what: Any
        if isinstance(node.op, LeafOp):
            what = self._leaf(node, notes, path)
        else:
            self._check(i, node)
            what = self._op(node)
        if node.params and what not in ("constant", "value"):  # theirs only note the origin
            notes["params"] = self.writer.value(self.writer.names.params(_params(node, path)), path)
        code = TYPE_CODES.get(type(node), "C")
        is_derived = what not in ("constant", "value")
        named_spec = self.writer.names.spec(node.spec) if is_derived else None
        spec = self.specs.setdefault(named_spec, len(self.specs)) if is_derived else None
        row = [what, code, list(self.graph.operands(i)), spec]
        return [*row, notes] if notes else row

    def _leaf(self, node: Node, notes: dict[str, Any], path: Path) -> str:
        if node.op is INPUT and is_variable(node):
            name = node.name or ".".join((*self.path, f"variable.{len(self.writer.tensors)}"))
            notes["tensor"] = self.writer.variable(node, name)
            owner = owner_of(node)
            if owner is not None and bare(owner.node.spec) != bare(node.spec):
                raise GraphError(
                    f"{path[-1]} is a variable of {node.spec}, which is now {owner.node.spec}. "
                    f"Trace again{at(user_line())}."
                )
            return "variable"
        if node.op is INPUT and node.is_traced:
            return "input"
        if node.op is SIZE:
            return "size"
        if node.op is INPUT or node.op is CONSTANT:
            constant_path = (*self.path, f"constant.{len(self.writer.arrays)}")
            notes["value"] = self.writer.value(node.value, constant_path)
            return "constant" if node.op is CONSTANT else "value"
        raise GraphError(
            f"{path[-1]} has a history outside of the graph {self.graph.name}, which cannot be "
            "saved. Pass the tensor as an argument, make it a variable (wengert.variable), or use "
            f"its values (x.numpy()) if it is a constant{at(user_line())}."
        )

    def _op(self, node: Node) -> int:
        op: Any = node.op
        if op is not PART and (op.name, op) not in REGISTRY.items():
            name_is_taken = op.name in REGISTRY
            raise RegistryError(
                f"the operation {op.name} is saved by its name, but "
                + (
                    "another operation is registered under it"
                    if name_is_taken
                    else "it is not registered"
                )
                + ". Register it under a unique name, wengert.extend.as_operation(..., "
                f"name=...){at(node.where)}."
            )
        if not op.effects.serializable:
            raise StructureError(
                f"the operation {op.name} has external effects (such as writing files), so it "
                f"cannot be saved. Save the graph without it{at(node.where)}."
            )
        return self.ops.setdefault(op, len(self.ops))

    def _check(self, i: int, node: Node) -> None:
        """Check that the spec of a node is the one that `load` will infer."""
        op: Any = node.op
        for spec in node.spec if isinstance(node.spec, tuple) else (node.spec,):
            if spec is None or not fits(spec.shape):
                raise GraphError(
                    f"node %{i} ({op.name}) has the spec {spec}, which cannot be "
                    f"saved{at(node.where)}."
                )
        try:
            inferred = self.budget.spec_of_node(op, [a.spec for a in node.inputs], node.params)
        except ValueError as error:
            raise GraphError(f"node %{i} ({op.name}): {error}{at(node.where)}.") from error
        if inferred is not None and bare(inferred[0]) != bare(node.spec):
            raise GraphError(
                f"node %{i} ({op.name}) has the spec {shown(node.spec)}, but the spec inferred in "
                f"a graph is {shown(inferred[0])}: its shape or dtype depends on the values of its "
                f"operands. Trace the function instead, wengert.trace(f)(...){at(node.where)}."
            )

    def _notes(self, node: Node, path: Path) -> dict[str, Any]:
        notes: dict[str, Any] = {}
        info = node.info
        if info is None:
            return notes
        if info.name is not None:
            notes["name"] = str(info.name)
        where = shortened(info.where, self.writer.where)
        if where is not None:
            notes["where"] = self.texts.setdefault(where, len(self.texts))
        if info.scope:
            notes["scope"] = str(info.scope)
        if info.level:
            notes["level"] = int(info.level)
        if info.requires:
            notes["requires"] = [[spelled(r.length), r.equal, r.reason] for r in info.requires]
        if info.probed and not info.unchecked:
            notes["probed"] = True
        fields = {k: v for k in INFO_FIELDS if (v := getattr(info, k))}
        if fields:
            notes["more"] = self.writer.value(fields, path)
        return notes


def shortened(where: str | None, mode: str | None) -> str | None:
    """The part of a source location that is stored."""
    if where is None or mode == "full":
        return where
    location = place_of(where)
    if mode is None or location is None:
        return None
    return f"{location.short}, in {location.function}" if location.function else location.short


def _spec_json(spec: tuple[Spec, ...] | Spec) -> Any:
    if isinstance(spec, tuple):
        return {"parts": [spec_json(s) for s in spec]}
    return None if spec is None else spec_json(spec)


def _module(op: Op) -> str:
    function = getattr(op, "function", None) or op.run
    return getattr(function, "__module__", None) or type(op).__module__


def _params(node: Node, path: Path) -> dict[str, Any]:
    """The parameters of a node, with a custom rule as `Stated`, which can be encoded."""
    rule, body = node.params.get("rule"), node.params.get("body")
    if not isinstance(rule, CustomRule):
        return node.params
    if body is None:
        raise GraphError(
            f"{path[-1]}: {rule.name} was recorded eagerly, so its graph is not known. Trace the "
            f"function that calls it (wengert.trace), and save that{at(node.where)}."
        )
    return {**node.params, "rule": Stated(rule, body, node.params["captured"])}
