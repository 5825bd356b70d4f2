"""Encoding: values as JSON beside named arrays.

Numbers, strings, None, lists and dicts that JSON has are themselves; everything else is an object
with one key, which says what it is:

    {"float": "0x1.8p+1"}    exactly, nan and -0.0 included     {"complex": [.., ..]}
    {"tuple": [..]}  {"dict": [[key, value], ..]}  {"named": [class, [fields], [values]]}
    {"slice": [..]}  {"ellipsis": []}  {"bytes": hex}  {"dtype": ..}  {"type": ..}
    {"size": "2*n + 1"}  {"spec": [..]}  {"hole": k}   in parameters of lines
    {"scalar": [dtype, hex]}  {"weak": ..}             NumPy's numbers, Python's on the tape
    {"array": name}                                    stored under that name
    {"tensor": k}  {"graph": k}  {"body": k}           from tables, since they may be shared
    {"rule": [k, name, body, body, [..]]}, {"rule": [k]}  of a function's derivative
    {"rule": [name, module, [..]]}                     of a primitive's, registered by name
    {"structure": ..}                                  containers, with {"leaf": k} inside

What is none of these is refused, and the message says where it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from optree import PyTreeSpec

from wengert._engine.control_flow.custom_rules import Stated, as_bodies
from wengert._engine.control_flow.primitive_calls import PrimitiveCall
from wengert._engine.core import pytree
from wengert._engine.core.alpha_equivalence import OpenNames
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import ConstantLeaf, DiscreteLeaf, Node, is_variable, owner_of
from wengert._engine.core.op import REGISTRY
from wengert._engine.core.spec import WEAK, Spec
from wengert._engine.core.subgraph import Body
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.ops.indexing.getitem import IndexSlot
from wengert._engine.tensor import Tensor
from wengert.errors import ConversionError, RegistryError, StructureError, TraceError, at, user_line

from . import class_registry
from .dim_json import spelled
from .safetensors_file import dtype_name

Path = tuple[str, ...]
Label = TypeVar("Label", str, int)  # arrays are stored by name, tensors by number
DEPTH = 100  # containers inside containers
# What a tensor is by its leaf: with requires_grad, a variable without derivative, plain.
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


class Mark:
    """Stands for a leaf in the structure of arguments or results."""

    __slots__ = ("k",)

    def __init__(self, k: int) -> None:
        self.k = k


class FileEncoder:
    """Collects what one file is to hold.

    Parameters
    ----------
    put_graph : callable
        ``put_graph(writer, graph, path)`` gives the JSON of a graph (graph_json.py).
    where : {"name", "full", None}
        What is kept of the user's files and lines.

    Attributes
    ----------
    arrays : dict
        By the name under which they are stored.
    tensors, graphs : list
        JSON of each; bodies of loops and branches stand among the graphs.
    names : OpenNames
        Of the lengths that are known when a loop has ended.
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
        self._alive: list[Any] = []  # so that ids stay theirs
        self._places: dict[int, str] = {}
        self._bodies: dict[Body, int] = {}
        self._rules: dict[Stated, int] = {}
        self.names = OpenNames()

    def value(self, x: Any, path: Path, depth: int = 0) -> Any:
        """The JSON of a value that stands at a path."""
        kind = type(x)
        if x is None or kind is bool or kind is int or kind is str:
            return x
        if kind is float:
            return {"float": x.hex()}
        put = _PUTS.get(kind)
        if put is not None:
            return put(x)
        if depth > DEPTH:
            raise StructureError(
                f"{_spot(path[:4])}... has more than {DEPTH} containers inside each other, or "
                f"contains itself, and cannot be kept{at(user_line())}."
            )
        if kind is list or kind is tuple:
            made = [self.value(v, (*path, str(i)), depth + 1) for i, v in enumerate(x)]
            return made if kind is list else {"tuple": made}
        if kind is dict:
            return {"dict": [self._item(k, v, path, depth) for k, v in x.items()]}
        if kind is slice:
            return {"slice": [self.value(v, path, depth + 1) for v in (x.start, x.stop, x.step)]}
        if kind is np.ndarray or kind is np.memmap:
            return {"array": self._array(x, path)}
        if isinstance(x, np.generic):
            return _scalar(x)
        if isinstance(x, np.dtype):
            return {"dtype": dtype_name(x)}
        if isinstance(x, Handle):
            return {"tensor": self._tensor(x, path)}
        if isinstance(x, PyTreeSpec):
            marks = [Mark(k) for k in range(x.num_leaves)]
            return {"structure": self.value(pytree.unflatten(x, marks), path, depth + 1)}
        if kind is Stated:
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
                f"{_spot(path)}has the key {key!r}. Keys that can be kept are strings, numbers and "
                f"tuples of them{at(user_line())}."
            )
        return [self.value(key, path, depth + 1), self.value(value, (*path, str(key)), depth + 1)]

    def _other(self, x: Any, path: Path, depth: int) -> Any:
        cls = type(x)
        names = class_registry.fields_of(cls)
        if names is None:
            raise refused(x, path)
        if not class_registry.is_registered(cls):
            raise StructureError(
                f"{_spot(path)}is a {class_registry.name_of(cls)}. Such a class can be kept by "
                "name once it is registered, here and where the file is read: put "
                f"@wengert.keep.register_class above it{at(user_line())}."
            )
        values = [self.value(getattr(x, n), (*path, n), depth + 1) for n in names]
        return {"named": [class_registry.name_of(cls), list(names), values]}

    # ---- what is stored once -------------------------------------------------------------------

    def _once(self, kind: str, x: Any, make: Callable[[], Label]) -> Label:
        key = (kind, id(x))
        if key not in self._seen:
            self._seen[key] = make()
            self._alive.append(x)
        stored: Label = self._seen[key]
        return stored

    def _array(self, x: np.ndarray[Any, Any], path: Path) -> str:
        # A graph's own arrays are not shared with what the user holds.
        kind = "constant" if self.is_in_graph else "array"
        return self._once(kind, x, lambda: self.stored(np.asarray(x), ".".join(path)))

    def stored(self, array: np.ndarray[Any, Any], name: str) -> str:
        """Store an array; return the name under which, which is `name` if that is free."""
        dtype_name(array.dtype, f"the array {name!r}" if name else "the array")
        base = name if name and name != "__metadata__" else "array"
        name, k = base, 1
        while name in self.arrays:
            k += 1
            name = f"{base}~{k}"
        self.arrays[name] = array
        return name

    def _graph(self, graph: BaseGraph, path: Path) -> int:
        outside, self.is_in_graph = self.is_in_graph, True
        try:
            made = self._put_graph(self, graph, path)
        finally:
            self.is_in_graph = outside
        self.graphs.append(made)
        return len(self.graphs) - 1

    def _body(self, body: Body, path: Path) -> int:
        """The number of a body; equal ones are one."""
        if body not in self._bodies:
            self._bodies[body] = self._graph(body, (*path, body.name))
        return self._bodies[body]

    def _rule(self, x: Stated, path: Path) -> list[Any]:
        """A rule: its number, and where it is met first its lists, which may have it inside."""
        if isinstance(x.rule, PrimitiveCall):
            return self._primitive(x.rule, path)
        if x in self._rules:
            return [self._rules[x]]
        k = self._rules[x] = len(self._rules)
        made = as_bodies(x.rule, x.body, x.captured)
        place = (*path, f"the rule of {made.name}")
        bodies = [made.reverse, made.forward]
        numbers = [None if b is None else self._body(b, place) for b in bodies]
        return [k, made.name, *numbers, list(made.given)]

    def _primitive(self, x: PrimitiveCall, path: Path) -> list[Any]:
        """A primitive's rules are kept by its name, as operations are."""
        op: Any = x.made.op
        if (op.name, op) not in REGISTRY.items():
            raise RegistryError(
                f"{_spot(path)}the operation {op.name} is kept by its name, but another operation "
                "is registered under it. Register it under a name of its own, "
                f"wengert.extend.primitive(..., name=...){at(user_line())}."
            )
        given = [list(x.slots), list(x.static), x.made.params, x.count]
        return [op.name, op.__module__, self.value(given, path)]

    def _tensor(self, x: Handle, path: Path) -> int:
        node = x.node
        if node.is_traced:
            raise TraceError(
                f"{_spot(path)}is a tensor of a graph, without a value. Save the graph, "
                f"wengert.Graph(y){at(user_line())}."
            )
        if type(node) is Node and not is_variable(node):
            raise ConversionError(
                f"{_spot(path)}is a recorded tensor, whose history would be lost silently. Save "
                "x.numpy(), or a graph that computes it, or the variables that it was computed "
                f"from{at(user_line())}."
            )
        if is_variable(node):
            return self.variable(node, ".".join(path))
        return self._once("tensor", x, lambda: self._new(x, node, ".".join(path)))

    def variable(self, node: Node, name: str) -> int:
        """The number of the tensor that a leaf belongs to."""
        owner = owner_of(node)
        if owner is None:  # nobody holds it any more, but the list knows its value
            return self._once("tensor", node, lambda: self._new(None, node, name))
        return self._once("tensor", owner, lambda: self._new(owner, owner.node, name))

    def name_tensors(self, x: Any) -> None:
        """Name tensors by where they stand in containers, also those that graphs meet first."""
        seen: set[int] = set()
        stack: list[tuple[Any, Path]] = [(x, ())]
        while stack:
            item, path = stack.pop()
            if isinstance(item, Handle) and is_variable(item.node):
                self._places.setdefault(id(owner_of(item.node)), ".".join(path))
            elif type(item) in (list, tuple, dict) and id(item) not in seen:
                seen.add(id(item))
                inside = item.items() if type(item) is dict else enumerate(item)
                stack += [(part, (*path, str(k))) for k, part in reversed(list(inside))]

    def _new(self, owner: Handle | None, node: Node, name: str) -> int:
        given = node.name
        place = self._places.get(id(owner), name)
        # Its own name, unless another tensor has that too.
        name = given if given and not (place and given in self.arrays) else place
        made = {
            "class": _class_of(owner, (name,)),
            "kind": KINDS.get(type(node), "constant") if is_variable(node) else "constant",
            "value": self.value(node.value, (name or "tensor",)),
        }
        if given is not None:
            made["name"] = str(given)
        self.tensors.append(made)
        return len(self.tensors) - 1


def _class_of(x: Handle | None, path: Path) -> str:
    if x is None:
        return class_registry.name_of(Tensor)
    if not class_registry.is_registered(type(x)):
        raise StructureError(
            f"{_spot(path)}is a {class_registry.name_of(type(x))}, a class of tensors that is not "
            "registered: put @wengert.keep.register_class above it, or save its values, "
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
    """Shape and dtype of a value; the last is whether it is a Python number's."""
    made = [dtype_name(spec.dtype, "a value"), [spelled(n) for n in spec.shape]]
    return [*made, True] if spec.weak else made


def _type_json(x: type) -> Any:
    name = _NAME_OF_TYPE.get(x)
    if name is None:
        raise refused(x, ())
    return {"type": name}


_PUTS: dict[type, Callable[[Any], Any]] = {
    complex: lambda x: {"complex": [p.hex() for p in _parts(x)]},
    bytes: lambda x: {"bytes": x.hex()},
    type(...): lambda x: {"ellipsis": []},
    type: _type_json,
    Dim: lambda x: {"size": str(x)},
    Spec: lambda x: {"spec": spec_json(x)},
    IndexSlot: lambda x: {"hole": x.k},
    Mark: lambda x: {"leaf": x.k},
}


def refused(x: Any, path: Path) -> StructureError:
    """The error for something that no file can hold."""
    remedy = "Keep arrays, numbers, strings, tensors, graphs and containers of them"
    if hasattr(x, "state_dict"):
        remedy = "Save its state, x.state_dict(), and load that into a new one"
    elif isinstance(getattr(x, "graph", None), BaseGraph):
        remedy = "Save its graph, x.graph, and make it again from that"
    elif callable(x):
        remedy = (
            "A file holds no code. Register it as an operation, which is kept by name "
            "(wengert.extend), or leave it out"
        )
    return StructureError(
        f"{_spot(path)}is {_kind(x)}, which cannot be kept. {remedy}{at(user_line())}."
    )


def _kind(x: Any) -> str:
    if isinstance(x, type):
        return f"the class {class_registry.name_of(x)}"
    if callable(x) and hasattr(x, "__qualname__"):
        return f"the function {x.__qualname__}"
    return f"a {class_registry.name_of(type(x))}"


def _spot(path: Path) -> str:
    return f"What stands at {'.'.join(path)} " if path and any(path) else "What was given "
