"""Graphs from the JSON of graph_json.py.

Every node is checked before it is created: its operation must be registered, with the same kind;
its operands must come before it; its spec must be the one that the operation infers.  Nothing in
the file is executed.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import optree

from wengert._engine.core import pytree
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.node import CONSTANT, INPUT, NO_PARAMS, LeafOp, Node, is_variable
from wengert._engine.core.node_properties import NodeInfo
from wengert._engine.core.spec import Spec, bare, is_inexact, shown, spec_of
from wengert._engine.core.symbolic.constraints import Requirement
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import SIZE
from wengert.errors import TraceError

from . import specs_json
from .class_registry import graph_class
from .decode import FileDecoder, read_spec, registered
from .errors import Damage, brief, index, need
from .graph_json import INFO_FIELDS, TYPE_CODES
from .specs_json import Budget

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

_KEYS = {
    "name", "ops", "specs", "texts", "lines", "inputs", "outputs", "updates", "effects", "structure"
}  # fmt: skip
_CLASS_OF: dict[str, type[Node]] = {code: cls for cls, code in TYPE_CODES.items()}
_NOTES = {
    "name": str, "where": int, "scope": str, "level": int, "requires": list, "probed": bool,
    "params": object, "value": object, "tensor": int, "more": object,
}  # fmt: skip
# Parameters that have another name in files of earlier versions, by operation.
_RENAMED_PARAMS = {
    "einsum": {"letters": "subscripts"},
    "strong_einsum": {"letters": "subscripts"},
}


def graph_of(reader: FileDecoder, x: dict[Any, Any]) -> BaseGraph:
    """The graph of a JSON object, with arrays and tensors of the reader."""
    is_body = type(x) is dict and "body" in x
    keys = _KEYS ^ {"body", "structure"} if is_body else _KEYS
    need(type(x) is dict and x.keys() == keys, "a graph has missing or unknown keys")
    need(not is_body or x["body"] is True, "expected a loop body")
    need(type(x["name"]) is str, "the name of a graph must be a string")
    for key in _KEYS - {"name", "structure"}:
        need(type(x[key]) is list, f"the {key} of a graph must be a list")
    need(all(type(t) is str for t in x["texts"]), "the texts of a graph must be strings")
    graph_reader = _GraphReader(reader, x)
    nodes = graph_reader.build()

    def nodes_of(key: str) -> list[Node]:
        return [nodes[index(i, len(nodes), f"one of its {key}")] for i in x[key]]

    updates: dict[Node, Node] = {}
    for pair in x["updates"]:
        need(type(pair) is list and len(pair) == 2, f"{brief(pair)} is not an update")
        variable, value = (nodes[index(i, len(nodes), "the node of an update")] for i in pair)
        need(
            is_variable(variable) and variable not in updates,
            "an update of no variable, or repeated",
        )
        need(
            bare(variable.spec) == bare(value.spec),
            "an update differs from its variable in shape or dtype",
        )
        updates[variable] = value
    inputs, outputs = nodes_of("inputs"), nodes_of("outputs")
    need(len(set(inputs)) == len(inputs), "an input is repeated")
    effects = nodes_of("effects")
    graph: BaseGraph
    if is_body:
        try:
            graph = Body(*outputs, inputs=inputs, name=x["name"])
        except TraceError as error:
            raise Damage("a body is not closed") from error
        _check_closed(graph, updates, effects)
    else:
        structure = reader.value(x["structure"])
        _check_structure(structure, len(inputs), len(outputs))
        graph = graph_class()(
            *outputs,
            inputs=inputs,
            updates=updates,
            effects=effects,
            structure=structure,
            name=x["name"],
        )
    need(len(graph) == len(set(nodes)), "a graph has nodes that are not used")
    return graph


def _check_closed(body: BaseGraph, updates: dict[Any, Any], effects: list[Any]) -> None:
    """Raise unless a body depends on its inputs and constants only, and has no side effects."""
    need(not updates and not effects, "a body has updates or side effects")
    inputs = set(body.inputs)
    for node in body.nodes:
        if isinstance(node.op, LeafOp):
            is_allowed = node in inputs or node.op is CONSTANT or node.op is SIZE
            need(
                is_allowed and not is_variable(node),
                "a body has a leaf other than inputs and constants",
            )
        else:
            need(node not in inputs and not node.op.effects.side_effect, "a body is not closed")
    for node in (*body.inputs, *body.outputs):
        need(type(node.spec) is Spec, "a body takes or returns a tuple as one value")
    need(all(n.op is INPUT for n in body.inputs), "expected an input of a loop body")


class _GraphReader:
    """The nodes of one graph."""

    def __init__(self, reader: FileDecoder, x: dict[Any, Any]) -> None:
        self.reader, self.x = reader, x
        self.specs = [_spec_of(s) for s in x["specs"]]
        self.ops = [_op_of(entry) for entry in x["ops"]]
        self.nodes: list[Node] = []
        self.budget = Budget()

    def build(self) -> list[Node]:
        """All nodes, in order."""
        for i, node in enumerate(self.x["lines"]):
            try:
                self.nodes.append(self._node(node))
            except Damage as damage:
                raise Damage(f"node %{i}: {damage}") from damage
        return self.nodes

    def _node(self, node: list[Any]) -> Node:
        # Messages are formatted only on failure: a graph may have a hundred thousand nodes.
        if type(node) is not list or len(node) not in (4, 5):
            raise Damage(f"{brief(node)} is not a node")
        operation, code, operands, spec, notes = node if len(node) == 5 else (*node, {})
        if type(code) is not str or code not in _CLASS_OF:
            raise Damage(f"{brief(code)} is not a type of node")
        if type(operands) is not list or type(notes) is not dict:
            raise Damage(f"{brief(node)} is not a node")
        for key, item in notes.items():
            expected_type = _NOTES.get(key)
            if expected_type is None or (
                expected_type is not object and type(item) is not expected_type
            ):
                raise Damage(f"{brief(key)}: {brief(item)} is not a note")
        args = tuple([self.nodes[index(k, len(self.nodes), "an operand")] for k in operands])
        params = self.reader.value(notes["params"]) if "params" in notes else NO_PARAMS
        if type(params) is not dict or not all(type(k) is str for k in params):
            raise Damage("parameter names must be strings")
        info = self._info(notes, len(args))
        if spec is not None:
            info.spec = self.specs[index(spec, len(self.specs), "the spec")]
        if type(operation) is str:
            need(not args, "a node without an operation has operands")
            return self._leaf(operation, code, params, notes, info)
        misplaced = "value" in notes or "tensor" in notes or spec is None
        need(not misplaced, "a misplaced note")
        op = self.ops[index(operation, len(self.ops), "the operation")]
        renamed = _RENAMED_PARAMS.get(op.name)
        if renamed:
            params = {renamed.get(k, k): v for k, v in params.items()}
        self._check(op, args, params, info)
        return _CLASS_OF[code](op, args, params, None, info)

    def _info(self, notes: dict[str, Any], operands: int) -> NodeInfo:
        info = NodeInfo(None, **{k: notes[k] for k in ("name", "scope", "level") if k in notes})
        need(0 <= info.level < 2**31, "the level of a derivative is out of range")
        if "where" in notes:
            info.where = self.x["texts"][index(notes["where"], len(self.x["texts"]), "a text")]
        if "requires" in notes:
            info.requires = [_requirement(r) for r in notes["requires"]]
        info.probed = bool(notes.get("probed"))
        if "more" in notes:
            fields = self.reader.value(notes["more"])
            need(type(fields) is dict, f"{brief(fields)} is not a dict of further notes")
            for key, item in fields.items():
                if type(item) is not INFO_FIELDS.get(key):
                    raise Damage(f"{brief(key)}: {brief(item)} is not a note")
                setattr(info, key, item)
            need(all(type(k) is int and 0 <= k < operands for k in info.linear), "no such operand")
            trace = info.trace
            need(trace is None or list(map(type, trace)) == [str, int], "a trace without a name")
        return info

    def _leaf(
        self, what: str, code: str, params: dict[Any, Any], notes: dict[Any, Any], info: NodeInfo
    ) -> Node:
        cls = _CLASS_OF[code]
        need(("tensor" in notes) == (what == "variable"), "a misplaced tensor")
        need(("value" in notes) == (what in ("constant", "value")), "a misplaced value")
        need(bool(params) == (what == "size"), "misplaced parameters")
        need((info.spec is not None) == (what not in ("constant", "value")), "a misplaced spec")
        if what == "variable":
            return self._variable(code, notes["tensor"], info)
        if what in ("constant", "value"):
            value = _owned(self.reader.value(notes["value"]))
            need((what == "constant") == (code == "C"), "a constant of another type")
            if code == "N":
                value_spec = spec_of(value)
                need(
                    hasattr(value_spec, "dtype") and is_inexact(value_spec.dtype),
                    "a value that cannot be differentiated",
                )
            op = CONSTANT if what == "constant" else INPUT
            return cls(op, (), NO_PARAMS, value, info if info.facts() else None)
        need(what in ("input", "size"), f"{brief(what)} is not a known kind of node")
        need(hasattr(info.spec, "dtype"), f"the spec of an {what} must have one shape and dtype")
        if what == "size":
            need(params.keys() == {"size"} and code == "D", f"{brief(params)} is not a size")
            is_integer = bare(info.spec) == ((), spec_of(1).dtype)
            need(is_integer, "the spec of a size must be that of an integer")
            need(isinstance(params["size"], Dim), "a size without a name")
            return cls(SIZE, (), params, None, info)
        is_inexact_spec = is_inexact(info.spec.dtype)
        need(code == "D" or (code == "N" and is_inexact_spec), "an input of another type")
        return cls(INPUT, (), NO_PARAMS, None, info)

    def _variable(self, code: str, number: int, info: NodeInfo) -> Node:
        handle = self.reader.tensor(number)
        node = handle.node
        need(bare(info.spec) == bare(node.spec), "the value of a variable does not match its spec")
        cls = _CLASS_OF[code]
        if type(node) is not cls or not is_variable(node):
            need(code != "C" and is_inexact(node.spec.dtype), "a variable of another type")
            info.owner = weakref.ref(handle)
            node = cls(INPUT, (), NO_PARAMS, node.value, info)
        if id(handle) not in self.reader.given:  # tensors of the program are not changed
            own_facts = {} if node.info is None else node.info.facts()
            node.note(
                **{k: v for k, v in info.facts().items() if k != "spec" and k not in own_facts}
            )
        # Graphs have weak references to tensors, so this one must be kept alive.
        node.note(holder=handle)
        return node

    def _check(self, op: Any, args: tuple[Node, ...], params: Any, info: NodeInfo) -> None:
        try:
            inferred = self.budget.spec_of_node(op, [a.spec for a in args], params)
        except ValueError as error:
            raise Damage(f"{op.name} has invalid operands or parameters: {error}") from error
        if inferred is None:
            if not info.probed:  # `unchecked` is neither read from files nor saved
                info.probed = info.unchecked = True
            return
        spec, needs = inferred
        if bare(spec) != bare(info.spec):
            raise Damage(
                f"{op.name} of its operands has the spec {shown(spec)}, but the file has "
                f"{shown(info.spec)}"
            )
        if not needs.needs and not needs.probed:
            return
        missing = [r for r in needs.needs if r not in (info.requires or ())]
        if missing:
            info.requires = [*(info.requires or ()), *missing]
        info.probed = info.probed or needs.probed


def _owned(value: Operand) -> Any:
    return value.copy() if hasattr(value, "copy") and hasattr(value, "dtype") else value


def _spec_of(x: dict[Any, Any] | list[Any]) -> Any:
    if type(x) is dict:
        need(x.keys() == {"parts"} and type(x["parts"]) is list, f"{brief(x)} is not a spec")
        return tuple(read_spec(s) for s in x["parts"])
    return read_spec(x)


def _requirement(x: Any) -> Requirement:
    need(
        type(x) is list and len(x) == 3 and type(x[1]) is bool and type(x[2]) is str,
        f"{brief(x)} is not a requirement",
    )
    length = specs_json.read(x[0], signed=True)
    need(type(length) is not int, f"{brief(x)} is not a requirement")
    return Requirement(length, x[1], x[2])


def _op_of(entry: list[str]) -> Any:
    need(
        type(entry) is list and len(entry) == 3 and all(type(t) is str for t in entry),
        f"{brief(entry)} is not an operation",
    )
    name, kind, module = entry
    if name == PART.name:
        return PART
    op = registered(name, module)
    need(
        op.effects.serializable,
        f"the operation {brief(name)} has external effects, which are not allowed in a file",
    )
    need(
        op.kind == kind,
        f"the operation {brief(name)} was of the kind {brief(kind)}, but the operation registered "
        f"under that name is of the kind {op.kind}",
    )
    return op


def _check_structure(x: tuple[Any, ...], inputs: int, outputs: int) -> None:
    """Check that the structure of arguments and results matches the inputs and outputs."""
    need(type(x) is tuple and len(x) == 2, "a graph's structure is not a pair")
    arguments, results = x
    if arguments is not None:
        names = getattr(arguments, "names", None)
        valid = type(names) is tuple and all(type(n) is str for n in names)
        need(valid and _count(arguments, "fed") == inputs, "its arguments do not match its inputs")
        example = pytree.unflatten(arguments.structure, [0] * arguments.structure.num_leaves)
        valid = type(example) is tuple and [type(part) for part in example] == [tuple, dict]
        need(
            valid and all(type(k) is str for k in example[1]),
            "its arguments must be a tuple and a dict",
        )
    if isinstance(results, optree.PyTreeSpec):
        need(results.num_leaves == outputs, "its results do not match its outputs")
        example = pytree.unflatten(results, [0] * outputs)
        need(isinstance(example, tuple), "its results must be a tuple")
    else:
        need(_count(results, "live") == outputs, "its results do not match its outputs")


def _count(x: Any, key: str) -> int | None:
    """The number of leaves of a structure that are inputs or outputs."""
    flags, structure = getattr(x, key, None), getattr(x, "structure", None)
    if type(flags) is not tuple or not isinstance(structure, optree.PyTreeSpec):
        return None
    if structure.num_leaves != len(flags) or any(type(f) is not bool for f in flags):
        return None
    return sum(flags)
