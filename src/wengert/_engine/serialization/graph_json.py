"""Graphs as JSON, node by node.

    {"name": ..,
     "ops":    [[name, kind, module], ..]        what the nodes are made by
     "specs":  [[dtype, lengths], ..]            or {"parts": [..]} of several outputs
     "texts":  [..]                              the user's files and lines
     "lines":  [[what, type, operands, spec, notes], ..]
     "inputs": [..], "outputs": [..], "updates": [[variable, node], ..], "effects": [..],
     "structure": [of the arguments, of the results]}

A body of a loop or branch has "body": true beside these, no structure, and stands before the list
that has a node with it.  Lengths that are known when a loop has ended are "steps.f0", "steps.f1".
`what` is the number of an operation, or a word for a node without one: "input", "size", "constant",
"variable", "value".  `type` is N, D or C (Node, Discrete, Constant: core/node.py).  Operands are
numbers of earlier nodes.  Operations are named, and found in the registry of the running program;
`module` says what to import when one is not there, and is never imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wengert._engine.control_flow.call_rule import CustomRule
from wengert._engine.control_flow.custom_rules import Stated
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import BaseGraph
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
from wengert._engine.core.op import REGISTRY, Op
from wengert._engine.core.source_location import place_of
from wengert._engine.core.spec import bare, shown
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import SIZE
from wengert.errors import GraphError, RegistryError, StructureError, at, user_line

from .dim_json import fits, spelled
from .encode import FileEncoder, Path, spec_json
from .verify_specs import Budget

if TYPE_CHECKING:
    from wengert._engine.core.spec import Spec

LETTERS: dict[type[Node], str] = {Node: "N", DiscreteLeaf: "D", ConstantLeaf: "C"}
# The further fields of `NodeInfo` that a file may hold, and their types; the others belong to the
# program that runs.
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
    """The JSON of a graph; its arrays go to the writer."""
    return _GraphTables(writer, graph, path).made()


class _GraphTables:
    """The tables of one graph, filled while its nodes are written."""

    def __init__(self, writer: FileEncoder, graph: BaseGraph, path: Path) -> None:
        self.writer, self.graph, self.path = writer, graph, path
        self.ops: dict[Op, int] = {}
        self.specs: dict[Any, int] = {}
        self.texts: dict[str, int] = {}
        self.budget = Budget()

    def made(self) -> Any:
        graph, number = self.graph, self.graph.index
        nodes = [self._line(i, node) for i, node in enumerate(graph.nodes)]
        made = {
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
            return {**made, "body": True}
        place = (*self.path, "structure")
        return {**made, "structure": self.writer.value(tuple(graph.structure), place)}

    def _line(self, i: int, node: Node) -> list[Any]:
        path = (*self.path, f"node %{i} ({node.op.name})")
        notes = self._notes(node, path)
        what: Any
        if isinstance(node.op, LeafOp):
            what = self._leaf(node, notes, path)
        else:
            self._check(i, node)
            what = self._op(node)
        if node.params and what not in ("constant", "value"):  # which may tell how it was made
            notes["params"] = self.writer.value(self.writer.names.params(_params(node, path)), path)
        letter = LETTERS.get(type(node), "C")
        is_derived = what not in ("constant", "value")
        known = self.writer.names.spec(node.spec) if is_derived else None
        spec = self.specs.setdefault(known, len(self.specs)) if is_derived else None
        made = [what, letter, list(self.graph.operands(i)), spec]
        return [*made, notes] if notes else made

    def _leaf(self, node: Node, notes: dict[str, Any], path: Path) -> str:
        if node.op is INPUT and is_variable(node):
            name = node.name or ".".join((*self.path, f"variable.{len(self.writer.tensors)}"))
            notes["tensor"] = self.writer.variable(node, name)
            owner = owner_of(node)
            if owner is not None and bare(owner.node.spec) != bare(node.spec):
                raise GraphError(
                    f"{path[-1]} is a variable of {node.spec}, which has become "
                    f"{owner.node.spec}. Trace again{at(user_line())}."
                )
            return "variable"
        if node.op is INPUT and node.is_traced:
            return "input"
        if node.op is SIZE:
            return "size"
        if node.op is INPUT or node.op is CONSTANT:
            place = (*self.path, f"constant.{len(self.writer.arrays)}")
            notes["value"] = self.writer.value(node.value, place)
            return "constant" if node.op is CONSTANT else "value"
        raise GraphError(
            f"{path[-1]} has a history outside of the graph {self.graph.name}, which would be lost "
            "silently. Pass the tensor as an argument, make it a variable (wengert.variable), or "
            f"use its values (x.numpy()) if it is meant to be constant{at(user_line())}."
        )

    def _op(self, node: Node) -> int:
        op: Any = node.op
        if op is not PART and (op.name, op) not in REGISTRY.items():
            other = op.name in REGISTRY
            raise RegistryError(
                f"the operation {op.name} is kept by its name, but "
                + ("another operation is registered under it" if other else "it has none")
                + ". Register it under a name of its own, wengert.extend.as_operation(..., "
                f"name=...){at(node.where)}."
            )
        if not op.effects.serializable:
            raise StructureError(
                f"the operation {op.name} reaches outside of the graph (it writes files or the "
                "like), so no file may hold it. Save the graph without it"
                f"{at(node.where)}."
            )
        return self.ops.setdefault(op, len(self.ops))

    def _check(self, i: int, node: Node) -> None:
        """A list whose nodes are not what their operations give could not be loaded again."""
        op: Any = node.op
        for spec in node.spec if isinstance(node.spec, tuple) else (node.spec,):
            if spec is None or not fits(spec.shape):
                raise GraphError(
                    f"node %{i} ({op.name}) holds {spec}, which cannot be kept{at(node.where)}."
                )
        try:
            found = self.budget.spec_of_node(op, [a.spec for a in node.inputs], node.params)
        except ValueError as error:
            raise GraphError(f"node %{i} ({op.name}): {error}{at(node.where)}.") from error
        if found is not None and bare(found[0]) != bare(node.spec):
            raise GraphError(
                f"node %{i} ({op.name}) holds {shown(node.spec)}, but whatever its operands are "
                f"it is {shown(found[0])} in a graph: its shape or dtype depends on their "
                f"values. Trace the function instead, wengert.trace(f)(...){at(node.where)}."
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
        more = {k: v for k in INFO_FIELDS if (v := getattr(info, k))}
        if more:
            notes["more"] = self.writer.value(more, path)
        return notes


def shortened(where: str | None, mode: str | None) -> str | None:
    """What is kept of the user's file and line."""
    if where is None or mode == "full":
        return where
    place = place_of(where)
    if mode is None or place is None:
        return None
    return f"{place.short}, in {place.function}" if place.function else place.short


def _spec_json(spec: tuple[Spec, ...] | Spec) -> Any:
    if isinstance(spec, tuple):
        return {"parts": [spec_json(s) for s in spec]}
    return None if spec is None else spec_json(spec)


def _module(op: Op) -> str:
    thing = getattr(op, "function", None) or op.run
    return getattr(thing, "__module__", None) or type(op).__module__


def _params(node: Node, path: Path) -> dict[str, Any]:
    """The parameters of a node, those of a function with a rule so that the rule can be kept."""
    rule, body = node.params.get("rule"), node.params.get("body")
    if not isinstance(rule, CustomRule):
        return node.params
    if body is None:
        raise GraphError(
            f"{path[-1]}: {rule.name} was recorded with values, so what it does is not known. "
            f"Trace the function that calls it (wengert.trace), and save that{at(node.where)}."
        )
    return {**node.params, "rule": Stated(rule, body, node.params["captured"])}
