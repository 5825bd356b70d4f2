"""Decoding: values from JSON and named arrays, with protection against hostile files.

Only instances of the types with a known tag are created, and nothing in a file is executed: there
is no import, no call of `__init__` or of an operation.  Invalid input raises `Damage`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from wengert._engine.control_flow.call_rule import CustomRule
from wengert._engine.control_flow.custom_rules import BodyRule, PrimitiveCall, is_primitive
from wengert._engine.core import pytree
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.handle import Handle, leaf
from wengert._engine.core.node import constant, is_variable
from wengert._engine.core.op import REGISTRY, lookup
from wengert._engine.core.spec import WEAK, Spec
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.ops.indexing.getitem import IndexSlot
from wengert.errors import ArgumentError, DtypeError, RegistryError, ShapeError, at, user_line

from . import class_registry, specs_json
from .encode import KINDS, MAX_DEPTH, TYPES, LeafMark
from .errors import Damage, brief, index, need
from .safetensors_file import DTYPES

_AXES = 64
_WEAK = {python: ours for ours, python in WEAK.items()}
_KEYS = (str, float, bool, type(None))


class FileDecoder:
    """Decodes the content of one file.

    Parameters
    ----------
    arrays : mapping
        The stored arrays by name.
    bound : mapping
        Tensors that replace variables of the file, by name.

    Attributes
    ----------
    tensors, graphs : list
        The tensors and graphs decoded so far.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray[Any, Any]], bound: Mapping[str, Any]):
        self.arrays = arrays
        self.tensors: list[Handle] = []
        self.graphs: list[Any] = []
        self.rules: dict[int, BodyRule] = {}
        self.given: set[int] = set()  # ids of the tensors that were taken from `bound`
        self._bound = dict(bound)
        self._names: list[str] = []
        self.is_structure = False  # whether a structure is being decoded, where leaves are valid

    def value(self, x: Any, depth: int = 0) -> Any:
        """The value of a JSON object."""
        cls = type(x)
        if x is None or cls is bool or cls is int or cls is str:
            return x
        need(depth <= 2 * MAX_DEPTH, "containers are nested too deeply")
        if cls is list:
            return [self.value(v, depth + 1) for v in x]
        if cls is not dict or len(x) != 1:
            raise Damage(f"{brief(x)} is not a value")
        ((tag, body),) = x.items()
        decode = _DECODERS.get(tag)
        if decode is None:
            raise Damage(f"{brief(tag)} is not a known tag of values")
        return decode(self, body, depth + 1)

    def array(self, name: Any) -> np.ndarray[Any, Any]:
        """The array stored under a name."""
        need(type(name) is str and name in self.arrays, f"it contains no array {brief(name)}")
        return self.arrays[name]

    # ---- tensors -------------------------------------------------------------------------------

    def add_tensor(self, x: Any) -> None:
        """Create the next tensor, or use the one that replaces it (`bound`)."""
        need(
            type(x) is dict
            and {"class", "kind", "value"} <= x.keys()
            and x.keys() <= {"class", "kind", "value", "name"}
            and x["kind"] in KINDS.values()
            and type(x.get("name", "")) is str,
            f"{brief(x)} is not a tensor",
        )
        value = self.value(x["value"])
        need(
            isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufc",
            f"{brief(x['value'])} is not a valid value of a tensor",
        )
        need(
            value.dtype.kind in "fc" or x["kind"] != "differentiable",
            f"a tensor of {value.dtype} cannot be differentiable",
        )
        name = name_in_file(x)
        if x["kind"] != "constant":
            self._names.append(name)
        if x["kind"] != "constant" and name in self._bound:
            tensor = self._bound.pop(name)
            _check_bound(name, tensor, value, x["kind"])
            self.given.add(id(tensor))
        else:
            tensor = _new_tensor(x["class"])
            value = value.copy() if isinstance(value, np.ndarray) else value
            if x["kind"] == "constant":
                tensor.node = constant(value, x.get("name"))
            else:
                tensor.node = leaf(value, tensor, x["kind"] == "differentiable")
                if "name" in x:
                    tensor.node.note(name=x["name"])
        self.tensors.append(tensor)

    def tensor(self, x: Any, depth: int = 0) -> Handle:
        """The tensor with an index."""
        return self.tensors[index(x, len(self.tensors), "the number of a tensor")]

    def check_bound(self) -> None:
        """Raise ArgumentError if a tensor in `bound` matches no variable of the file."""
        if self._bound:
            raise ArgumentError(
                f"load: variables={{{', '.join(map(repr, self._bound))}: ...}}, but the file has "
                f"the variables {', '.join(map(repr, self._names)) or 'none'}{at(user_line())}."
            )

    # ---- the kinds of values -------------------------------------------------------------------

    def _graph(self, x: Any, depth: int) -> Any:
        return self.graphs[index(x, len(self.graphs), "the number of a graph")]

    def _whole_graph(self, x: Any, depth: int) -> Any:
        graph = self._graph(x, depth)
        need(not isinstance(graph, Body), f"the graph {brief(x)} is a body")
        return graph

    def _body(self, x: Any, depth: int) -> Any:
        body = self._graph(x, depth)
        need(isinstance(body, Body), f"the graph {brief(x)} is not a body")
        return body

    def _rule(self, x: Any, depth: int) -> CustomRule:
        """A custom rule; graphs that were decoded before it may already refer to it."""
        if type(x) is list and len(x) == 3:
            return self._primitive(x, depth)
        need(type(x) is list and len(x) in (1, 5), f"{brief(x)} is not a rule")
        k = _integer(x[0])
        rule = self.rules.setdefault(k, BodyRule(f"rule {k}"))
        if len(x) == 1:
            return rule
        name, flags = x[1], x[4]
        need(type(name) is str and type(flags) is list, f"{brief(x)} is not a rule")
        need(all(type(g) is bool for g in flags), f"{brief(flags)} are not flags")
        need(not rule.has_vjp and not rule.has_jvp, f"the rule {k} is defined twice")
        bodies = [None if b is None else self._body(b, depth) for b in x[2:4]]
        rule.name = name
        rule.fill(bodies[0], bodies[1], tuple(flags))
        return rule

    def _primitive(self, x: list[Any], depth: int) -> CustomRule:
        """The rule of a primitive that the running program has registered."""
        name, module, fields = x
        need(type(name) is str and type(module) is str, f"{brief(x)} is not a rule")
        op = registered(name, module)
        need(is_primitive(op), f"the operation {brief(name)} is not a primitive")
        fields = self.value(fields, depth)
        need(type(fields) is list and len(fields) == 4, f"{brief(x)} is not a rule")
        slots, static, params, count = fields
        need(type(slots) is list and type(static) is list, f"{brief(x)} is not a rule")
        valid = sorted(set(slots)) == slots and all(
            type(k) is int and 0 <= k < len(static) and static[k] is None for k in slots
        )
        need(valid and type(params) is dict, f"{brief(x)} is not a rule")
        need(all(type(k) is str for k in params), f"{brief(x)} is not a rule")
        need(
            count is None or (type(count) is int and 0 < count < 1 << 20),
            f"{brief(x)} is not a rule",
        )
        return PrimitiveCall.of(op, params, slots, static, count)

    def _leaf(self, x: Any, depth: int) -> LeafMark:
        need(self.is_structure, "a leaf outside of a structure")
        return LeafMark(_integer(x))

    def _structure(self, x: Any, depth: int) -> Any:
        need(not self.is_structure, "a structure inside a structure")
        self.is_structure = True
        try:
            leaves, structure = pytree.flatten(self.value(x, depth))
        finally:
            self.is_structure = False
        valid = all(type(m) is LeafMark and m.k == k for k, m in enumerate(leaves))
        need(valid, f"{brief(x)} is not a structure of containers")
        return structure

    def _list(self, x: Any, depth: int) -> list[Any]:
        need(type(x) is list, f"{brief(x)} is not a list")
        return [self.value(v, depth) for v in x]

    def _dict(self, x: Any, depth: int) -> dict[Any, Any]:
        need(type(x) is list, f"{brief(x)} is not a dict")
        result: dict[Any, Any] = {}
        for item in x:
            need(type(item) is list and len(item) == 2, f"{brief(item)} is not an item of a dict")
            key = self.value(item[0], depth)
            parts = key if type(key) is tuple else (key,)
            # Larger integers could be chosen so that their hashes collide (quadratic time).
            valid = all(abs(p) < 2**64 if type(p) is int else isinstance(p, _KEYS) for p in parts)
            need(valid, f"{brief(key)} is not a valid key of a dict")
            result[key] = self.value(item[1], depth)
        need(len(result) == len(x), "a key of a dict is repeated")
        return result

    def _slice(self, x: Any, depth: int) -> slice:
        parts = self._list(x, depth)
        need(
            len(parts) == 3 and all(p is None or type(p) in (int, Dim) for p in parts),
            f"{brief(x)} is not a slice",
        )
        return slice(*parts)

    def _scalar(self, x: Any, depth: int) -> Any:
        need(
            type(x) is list
            and len(x) == 2
            and type(x[0]) is str
            and x[0] in DTYPES
            and type(x[1]) is str
            and len(x[1]) == 2 * DTYPES[x[0]].itemsize,
            f"{brief(x)} is not a number",
        )
        dtype = DTYPES[x[0]]
        raw = _hex(x[1])
        need(dtype.kind != "b" or raw in (b"\0", b"\1"), f"{brief(x)} is not a boolean")
        return np.frombuffer(raw, dtype.newbyteorder("<"))[0].astype(dtype)[()]

    def _named(self, x: Any, depth: int) -> Any:
        need(
            type(x) is list
            and len(x) == 3
            and type(x[1]) is list
            and type(x[2]) is list
            and len(x[1]) == len(x[2])
            and all(type(f) is str for f in x[1]),
            f"{brief(x)} is not a container",
        )
        return class_registry.container(x[0], x[1], [self.value(v, depth) for v in x[2]])


def _new_tensor(name: Any) -> Any:
    cls = class_registry.class_named(name)
    need(issubclass(cls, Handle), f"{brief(name)} is not a tensor class")
    return object.__new__(cls)


def name_in_file(x: Any) -> str:
    """The name of a tensor in `load(variables=...)`: the name of its array if it has one."""
    stored = x["value"].get("array") if type(x["value"]) is dict else None
    return str(stored or x.get("name") or "tensor")


def _check_bound(name: str, tensor: Any, value: Any, kind: str) -> None:
    if not isinstance(tensor, Handle) or not is_variable(tensor.node):
        raise ArgumentError(
            f"load: variables[{name!r}] is a {type(tensor).__name__}, not a variable. Pass a "
            f"wengert.variable, or a tensor with requires_grad=True{at(user_line())}."
        )
    spec = tensor.node.spec
    if tuple(spec.shape) != value.shape:
        raise ShapeError(
            f"load: variables[{name!r}] has shape {tuple(spec.shape)}, but the variable in the "
            f"file has {value.shape}. Pass one of the same shape{at(user_line())}."
        )
    own_kind = KINDS[type(tensor.node)]
    if spec.dtype != value.dtype or own_kind != kind:
        raise DtypeError(
            f"load: variables[{name!r}] is {spec.dtype}, {own_kind}, but the variable in the file "
            f"is {value.dtype}, {kind}. Pass one of the same dtype and requires_grad"
            f"{at(user_line())}."
        )


def read_spec(x: Any) -> Spec:
    """Shape and dtype of a value."""
    need(
        type(x) is list
        and (len(x) == 2 or (len(x) == 3 and x[2] is True))
        and type(x[0]) is str
        and x[0] in DTYPES
        and type(x[1]) is list
        and len(x[1]) <= _AXES,
        f"{brief(x)} is not a shape and dtype",
    )
    shape = tuple([specs_json.read(n) for n in x[1]])
    need(specs_json.fits(shape), f"the shape {brief(x[1])} has too many terms")
    return Spec(shape, DTYPES[x[0]], len(x) == 3)


def _hex(x: Any) -> bytes:
    try:
        return bytes.fromhex(x)
    except (TypeError, ValueError) as error:
        raise Damage(f"{brief(x)} is not a string of bytes") from error


def _float(x: Any) -> float:
    try:
        value = float.fromhex(x)
    except (TypeError, ValueError, OverflowError) as error:
        raise Damage(f"{brief(x)} is not a number") from error
    if value.hex() != x:  # accept only the form that `save` writes
        raise Damage(f"{brief(x)} is not a number")
    return value


def _complex(x: Any) -> complex:
    need(type(x) is list and len(x) == 2, f"{brief(x)} is not a complex number")
    return complex(_float(x[0]), _float(x[1]))


def _weak(x: Any) -> Any:
    return _WEAK[complex](_complex(x)) if type(x) is list else _WEAK[float](_float(x))


def _integer(x: Any) -> int:
    return index(x, 1 << 31, "a number")


def _member_of(table: Mapping[str, Any], what: str) -> Callable[[Any], Any]:
    def look_up(x: Any) -> Any:
        need(type(x) is str and x in table, f"{brief(x)} is not a {what}")
        return table[x]

    return look_up


def _ellipsis(x: Any) -> Any:
    need(x == [], f"{brief(x)} is not an ellipsis")
    return ...


def _of_json(get: Callable[[Any], Any]) -> Callable[[FileDecoder, Any, int], Any]:
    return lambda reader, body, depth: get(body)


_DECODERS: dict[str, Callable[[FileDecoder, Any, int], Any]] = {
    "float": _of_json(_float),
    "complex": _of_json(_complex),
    "bytes": _of_json(_hex),
    "dtype": _of_json(_member_of(DTYPES, "dtype")),
    "type": _of_json(_member_of(TYPES, "type of numbers")),
    "ellipsis": _of_json(_ellipsis),
    "size": _of_json(lambda x: specs_json.read(x, signed=True)),
    "spec": _of_json(read_spec),
    "hole": _of_json(lambda x: IndexSlot(_integer(x))),
    "leaf": FileDecoder._leaf,
    "weak": _of_json(_weak),
    "tuple": lambda r, x, d: tuple(r._list(x, d)),
    "dict": FileDecoder._dict,
    "slice": FileDecoder._slice,
    "named": FileDecoder._named,
    "scalar": FileDecoder._scalar,
    "array": lambda r, x, d: r.array(x),
    "tensor": FileDecoder.tensor,
    "graph": FileDecoder._whole_graph,
    "body": FileDecoder._body,
    "rule": FileDecoder._rule,
    "structure": FileDecoder._structure,
}


def registered(name: str, module: str) -> Any:
    """The operation registered under a name in the running program.

    Raises
    ------
    RegistryError
        No such operation is registered; the message names the module to import.
    """
    if name not in REGISTRY:
        hint = f"It was defined in {brief(module)}: import it (if you trust it), and load again"
        try:
            lookup(name)
        except RegistryError as error:
            raise RegistryError(f"{error} {hint}{at(user_line())}.") from None
    return REGISTRY[name]
