"""Encoding: values as JSON, and named arrays.

Integers, booleans, strings, None and lists are plain JSON; every other value is an object with one
key, its tag:

    {"float": "0x1.8p+1"}    exact, also nan and -0.0           {"complex": [.., ..]}
    {"tuple": [..]}  {"dict": [[key, value], ..]}  {"named": [class, [fields], [values]]}
    {"slice": [..]}  {"ellipsis": []}  {"bytes": hex}  {"dtype": ..}  {"type": ..}
    {"size": "2*n + 1"}  {"spec": [..]}  {"hole": k}   in parameters of nodes
    {"scalar": [dtype, hex]}  {"weak": ..}             NumPy scalars, Python numbers in graphs
    {"array": name}                                    an array of the file
    {"tensor": k}  {"graph": k}  {"body": k}           indices in tables, because of sharing
    {"rule": [k, name, body, body, [..]]}, {"rule": [k]}  a custom derivative rule
    {"rule": [name, module, [..]]}                     the rule of a primitive, by its name
    {"structure": ..}                                  containers, with {"leaf": k} as leaves

Other values raise StructureError, with their path in the message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from optree import PyTreeSpec

from wengert._engine.control_flow.custom_rules import PrimitiveCall, Stated, as_bodies
from wengert._engine.core import pytree
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_fingerprint import OpenNames
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import ConstantLeaf, DiscreteLeaf, Node, is_variable, owner_of
from wengert._engine.core.op import REGISTRY
from wengert._engine.core.spec import WEAK, Spec
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.ops.indexing.getitem import IndexSlot
from wengert._engine.tensor import Tensor
from wengert.errors import ConversionError, RegistryError, StructureError, TraceError, at, user_line

from . import class_registry
from .safetensors_file import dtype_name
from .specs_json import spelled

Path = tuple[str, ...]
Label = TypeVar("Label", str, int)  # arrays are stored by name, tensors by number
MAX_DEPTH = 100  # limit of nested containers
# The kind of a tensor by the class of its leaf: with requires_grad, integer variable, constant.
KINDS: dict[type, str] = {
    Node: "differentiable",
    DiscreteLeaf: "discrete",
    ConstantLeaf: "constant",
}
TYPES: dict[str, type] = {
    **{t.__name__: t for t in (bool, int, float, complex)},
    **{f"numpy.{t.__name__}": t for t in {np.dtype(c).type for c in "?bhilqBHILQefdFD"}},
}
_NAME_OF_TYPE = {t: name for name, t in TYPES.items()}


class LeafMark:
    """Stands for a leaf in the structure of arguments or results."""

    __slots__ = ("k",)

    def __init__(self, k: int) -> None:
        self.k = k


class FileEncoder:
    """Encodes values as the content of one file.

    Parameters
    ----------
    put_graph : callable
        ``put_graph(writer, graph, path)`` returns the JSON of a graph (graph_json.py).
    where : {"name", "full", None}
        How source locations are stored: with file names, with full paths, or not.

    Attributes
    ----------
    arrays : dict
        The arrays by name.
    tensors, graphs : list
        Their JSON; graphs include the bodies of loops and branches.
    names : OpenNames
        The names of lengths that are known after a loop.
    """

    def __init__(
        self, put_graph: Callable[[FileEncoder, BaseGraph, Path], Any], where: str | None = "name"
    ) -> None:
        self.where = where
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.tensors: list[Any] = []
        self.graphs: list[Any] = []
        self.is_in_graph = False
        self._put_graph = put_graph
        self._seen: dict[tuple[str, int], Any] = {}
        self._references: list[Any] = []  # keeps objects alive, so that ids are not reused
        self._paths: dict[int, str] = {}
        self._bodies: dict[Body, int] = {}
        self._rules: dict[Stated, int] = {}
        self.names = OpenNames()

    def value(self, x: Any, path: Path, depth: int = 0) -> Any:
        """The JSON of the value at a path."""
        cls = type(x)
        if x is None or cls is bool or cls is int or cls is str:
            return x
        if cls is float:
            return {"float": x.hex()}
        encode = _ENCODERS.get(cls)
        if encode is not None:
            return encode(x)
        if depth > MAX_DEPTH:
            raise StructureError(
                f"{_where(path[:4])}... has more than {MAX_DEPTH} nested containers, or contains "
                f"itself, and cannot be saved{at(user_line())}."
            )
        if cls is list or cls is tuple:
            items = [self.value(v, (*path, str(i)), depth + 1) for i, v in enumerate(x)]
            return items if cls is list else {"tuple": items}
        if cls is dict:
            return {"dict": [self._item(k, v, path, depth) for k, v in x.items()]}
        if cls is slice:
            return {"slice": [self.value(v, path, depth + 1) for v in (x.start, x.stop, x.step)]}
        if cls is np.ndarray or cls is np.memmap:
            return {"array": self._array(x, path)}
        if isinstance(x, np.generic):
            return _scalar(x)
        if isinstance(x, np.dtype):
            return {"dtype": dtype_name(x)}
        if isinstance(x, Handle):
            return {"tensor": self._tensor(x, path)}
        if isinstance(x, PyTreeSpec):
            marks = [LeafMark(k) for k in range(x.num_leaves)]
            return {"structure": self.value(pytree.unflatten(x, marks), path, depth + 1)}
        if cls is Stated:
            return {"rule": self._rule(x, path)}
        if isinstance(x, Body):
            return {"body": self._body(x, path)}
        if isinstance(x, BaseGraph):
            return {"graph": self._once("graph", x, lambda: self._graph(x, path))}
        return self._other(x, path, depth)

    def _item(self, key: Any, value: Any, path: Path, depth: int) -> list[Any]:
        parts = key if type(key) is tuple else (key,)
        if not all(p is None or type(p) in (str, int, float, bool) for p in parts):
            raise StructureError(
                f"{_where(path)}has the key {key!r}, which cannot be saved. Use strings, numbers "
                f"or tuples of them as keys{at(user_line())}."
            )
        return [self.value(key, path, depth + 1), self.value(value, (*path, str(key)), depth + 1)]

    def _other(self, x: Any, path: Path, depth: int) -> Any:
        cls = type(x)
        names = class_registry.fields_of(cls)
        if names is None:
            raise refused(x, path)
        if not class_registry.is_registered(cls):
            raise StructureError(
                f"{_where(path)}is a {class_registry.name_of(cls)}, a class that is not "
                "registered. Decorate it with @wengert.keep.register_class, here and in the "
                f"program that loads the file{at(user_line())}."
            )
        values = [self.value(getattr(x, n), (*path, n), depth + 1) for n in names]
        return {"named": [class_registry.name_of(cls), list(names), values]}

    # ---- objects that are stored once ----------------------------------------------------------

    def _once(self, kind: str, x: Any, make: Callable[[], Label]) -> Label:
        key = (kind, id(x))
        if key not in self._seen:
            self._seen[key] = make()
            self._references.append(x)
        stored: Label = self._seen[key]
        return stored

    def _array(self, x: np.ndarray[Any, Any], path: Path) -> str:
        # Constants of a graph are stored separately from the user's arrays.
        kind = "constant" if self.is_in_graph else "array"
        return self._once(kind, x, lambda: self.stored(np.asarray(x), ".".join(path)))

    def stored(self, array: np.ndarray[Any, Any], name: str) -> str:
        """Store an array; returns its name, which is `name` unless that is already used."""
        dtype_name(array.dtype, f"the array {name!r}" if name else "the array")
        base = name if name and name != "__metadata__" else "array"
        name, k = base, 1
        while name in self.arrays:
            k += 1
            name = f"{base}~{k}"
        self.arrays[name] = array
        return name

    def _graph(self, graph: BaseGraph, path: Path) -> int:
        was_in_graph, self.is_in_graph = self.is_in_graph, True
        try:
            encoded = self._put_graph(self, graph, path)
        finally:
            self.is_in_graph = was_in_graph
        self.graphs.append(encoded)
        return len(self.graphs) - 1

    def _body(self, body: Body, path: Path) -> int:
        """The index of a body; equal bodies are stored once."""
        if body not in self._bodies:
            self._bodies[body] = self._graph(body, (*path, body.name))
        return self._bodies[body]

    def _rule(self, x: Stated, path: Path) -> list[Any]:
        """The index of a rule; at its first use with its bodies, which may refer to the index."""
        if isinstance(x.rule, PrimitiveCall):
            return self._primitive(x.rule, path)
        if x in self._rules:
            return [self._rules[x]]
        k = self._rules[x] = len(self._rules)
        rule = as_bodies(x.rule, x.body, x.captured)
        rule_path = (*path, f"the rule of {rule.name}")
        bodies = [rule.reverse, rule.forward]
        numbers = [None if b is None else self._body(b, rule_path) for b in bodies]
        return [k, rule.name, *numbers, list(rule.given)]

    def _primitive(self, x: PrimitiveCall, path: Path) -> list[Any]:
        """The rule of a primitive, stored by name like an operation."""
        op: Any = x.function.op
        if (op.name, op) not in REGISTRY.items():
            raise RegistryError(
                f"{_where(path)}uses the operation {op.name}, which is saved by name, but another "
                "operation is registered under that name. Register it under a unique name, "
                f"wengert.extend.primitive(..., name=...){at(user_line())}."
            )
        fields = [list(x.slots), list(x.static), x.function.params, x.count]
        return [op.name, op.__module__, self.value(fields, path)]

    def _tensor(self, x: Handle, path: Path) -> int:
        node = x.node
        if node.is_traced:
            raise TraceError(
                f"{_where(path)}is a tensor of a graph, without a value. Save the graph, "
                f"wengert.Graph(y){at(user_line())}."
            )
        if type(node) is Node and not is_variable(node):
            raise ConversionError(
                f"{_where(path)}is a recorded tensor, whose history cannot be saved. Save "
                "x.numpy(), or a graph that computes it, or the variables that it was computed "
                f"from{at(user_line())}."
            )
        if is_variable(node):
            return self.variable(node, ".".join(path))
        return self._once("tensor", x, lambda: self._new(x, node, ".".join(path)))

    def variable(self, node: Node, name: str) -> int:
        """The index of the tensor that owns a leaf."""
        owner = owner_of(node)
        if owner is None:  # the tensor was freed, but the graph has its value
            return self._once("tensor", node, lambda: self._new(None, node, name))
        return self._once("tensor", owner, lambda: self._new(owner, owner.node, name))

    def name_tensors(self, x: Any) -> None:
        """Name tensors by their paths in containers; called before graphs are encoded."""
        seen: set[int] = set()
        stack: list[tuple[Any, Path]] = [(x, ())]
        while stack:
            item, path = stack.pop()
            if isinstance(item, Handle) and is_variable(item.node):
                self._paths.setdefault(id(owner_of(item.node)), ".".join(path))
            elif type(item) in (list, tuple, dict) and id(item) not in seen:
                seen.add(id(item))
                items = item.items() if type(item) is dict else enumerate(item)
                stack += [(child, (*path, str(k))) for k, child in reversed(list(items))]

    def _new(self, owner: Handle | None, node: Node, name: str) -> int:
        own_name = node.name
        path = self._paths.get(id(owner), name)
        # The tensor's own name, unless that is used and its path gives it another.
        name = own_name if own_name and not (path and own_name in self.arrays) else path
        encoded = {
            "class": _class_of(owner, (name,)),
            "kind": KINDS.get(type(node), "constant") if is_variable(node) else "constant",
            "value": self.value(node.value, (name or "tensor",)),
        }
        if own_name is not None:
            encoded["name"] = str(own_name)
        self.tensors.append(encoded)
        return len(self.tensors) - 1


def _class_of(x: Handle | None, path: Path) -> str:
    if x is None:
        return class_registry.name_of(Tensor)
    if not class_registry.is_registered(type(x)):
        raise StructureError(
            f"{_where(path)}is a {class_registry.name_of(type(x))}, a tensor class that is not "
            "registered. Decorate it with @wengert.keep.register_class, or save its values, "
            f"x.numpy(){at(user_line())}."
        )
    return class_registry.name_of(type(x))


def _scalar(x: np.generic) -> Any:
    weak = WEAK.get(type(x))
    if weak is not None:
        return {"weak": [p.hex() for p in _parts(x.item())] if weak is complex else x.item().hex()}
    name = dtype_name(x.dtype, "a number")
    return {"scalar": [name, np.asarray(x, x.dtype.newbyteorder("<")).tobytes().hex()]}


def _parts(x: complex) -> tuple[float, float]:
    return x.real, x.imag


def spec_json(spec: Spec) -> Any:
    """The JSON of a spec: dtype, shape, and True for the weak dtype of a Python number."""
    encoded = [dtype_name(spec.dtype, "a value"), [spelled(n) for n in spec.shape]]
    return [*encoded, True] if spec.weak else encoded


def _type_json(x: type) -> Any:
    name = _NAME_OF_TYPE.get(x)
    if name is None:
        raise refused(x, ())
    return {"type": name}


_ENCODERS: dict[type, Callable[[Any], Any]] = {
    complex: lambda x: {"complex": [p.hex() for p in _parts(x)]},
    bytes: lambda x: {"bytes": x.hex()},
    type(...): lambda x: {"ellipsis": []},
    type: _type_json,
    Dim: lambda x: {"size": str(x)},
    Spec: lambda x: {"spec": spec_json(x)},
    IndexSlot: lambda x: {"hole": x.k},
    LeafMark: lambda x: {"leaf": x.k},
}


def refused(x: Any, path: Path) -> StructureError:
    """The error for a value that cannot be saved."""
    remedy = "Save arrays, numbers, strings, tensors, graphs and containers of them"
    if hasattr(x, "state_dict"):
        remedy = "Save its state, x.state_dict(), and load that into a new object"
    elif isinstance(getattr(x, "graph", None), BaseGraph):
        remedy = "Save its graph, x.graph, and create it again from that"
    elif callable(x):
        remedy = (
            "A file contains no code. Register it as an operation, which is saved by name "
            "(wengert.extend), or leave it out"
        )
    return StructureError(
        f"{_where(path)}is {_kind(x)}, which cannot be saved. {remedy}{at(user_line())}."
    )


def _kind(x: Any) -> str:
    if isinstance(x, type):
        return f"the class {class_registry.name_of(x)}"
    if callable(x) and hasattr(x, "__qualname__"):
        return f"the function {x.__qualname__}"
    return f"a {class_registry.name_of(type(x))}"


def _where(path: Path) -> str:
    return f"The value at {'.'.join(path)} " if path and any(path) else "The argument "
