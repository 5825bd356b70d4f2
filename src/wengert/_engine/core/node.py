"""Node: one operation applied to operands, `out = op(*args, **params)`.

Its value may be known (eager: a tape entry) or not yet (traced: a symbolic entry, with a spec and
the value None).  Nothing else differs.  There are three kinds of node:

    Node          depends on an input, and differentiably so (INPUT, INPUT_DERIVED)
    ConstantLeaf  a value without history                     (CONSTANT, CONSTANT_DERIVED)
    DiscreteLeaf  depends on an input, but its derivative is known to be zero: a comparison, an
                  argmax, a floor                             (INPUT_DERIVED_NON_DIFF)

They are distinguished by their exact type because every pass tests, for every argument, whether it
is a node and differentiable: `type(a) is Node` tests both.  An argument that was a plain number or
array is stored in `args` unchanged; in `inputs` it is a ConstantLeaf.

The `serial` number is the order of creation, which is a topological order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.errors import MutatedError, at, user_line

from .node_properties import NodeInfo
from .op_facts import NO_OPERANDS, NOTHING_KNOWN, Aliasing, Differentiation, Effects, Remedy
from .spec import spec_of

if TYPE_CHECKING:
    from wengert._engine.core.spec import Spec

next_serial = itertools.count(1).__next__
NO_PARAMS: dict[str, Any] = {}


class LeafOp:
    """Null object for nodes without an operation (inputs, constants), with the defaults of `Op`."""

    __slots__ = ("name",)
    kind = ""
    pulls = None
    discrete = False
    effects, aliasing, differentiation = Effects(), Aliasing(), Differentiation()
    cost = onnx = None
    remedy, zero_slope, range = Remedy(), "", NOTHING_KNOWN
    control_flow, selectors, commutative = "", NO_OPERANDS, False

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<leaf {self.name}>"


INPUT = LeafOp("input")
CONSTANT = LeafOp("constant")
RELEASED = LeafOp("released")  # after backward(retain_graph=False)


class Node:
    """One differentiable node of a Wengert list; immutable once made.

    Attributes
    ----------
    op : Op or LeafOp
        The operation.
    args : tuple
        The operands in order: nodes, or plain values that have no history.
    params : dict
        Static parameters (axis, shape, ...), part of the operation's identity.
    value : array, number, tuple of these, or None
        None while only the spec is known.
    serial : int
        Order of creation; larger than the serial of every argument.
    info : NodeInfo or None
        Optional properties: spec, name, source line, hooks ... (core/node_properties.py).
    version : ArrayState, DeviceValue, DeviceValues or None
        For a large array that was written to in place (array_states.py), and for values in the
        memory of a device (device_arrays.py).
    """

    __slots__ = ("__weakref__", "args", "info", "op", "params", "serial", "value", "version")

    op: Any  # an Op, or a LeafOp
    args: tuple[Any, ...]
    params: dict[str, Any]
    value: Any
    serial: int
    info: NodeInfo | None
    version: Any

    def __init__(
        self,
        op: Any,
        args: tuple[Any, ...] = (),
        params: dict[str, Any] = NO_PARAMS,
        value: Any = None,
        info: NodeInfo | None = None,
    ) -> None:
        self.op = op
        self.args = args
        self.params = params
        self.value = value
        self.info = info
        self.version = None
        self.serial = next_serial()

    @property
    def is_outdated(self) -> bool:
        """Whether a later node has taken over its array."""
        return self.version is not None and self.version.newer is not None

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The operands in order, each as a node."""
        for a in self.args:
            if not isinstance(a, Node):
                break
        else:
            return self.args
        # Stored, so that a constant is the same node at each access.
        self.args = tuple(a if isinstance(a, Node) else constant(a) for a in self.args)
        return self.args

    def args_as_nodes(self) -> list[Node]:
        """The operands that have a history."""
        return [a for a in self.args if type(a) is Node]

    @property
    def spec(self) -> Any:
        """Shape and dtype (a tuple of specs for an operation with several outputs)."""
        if self.version is not None:
            return self.version.spec
        if self.value is None and self.info is not None:
            return self.info.spec
        return spec_of(self.value)

    @property
    def is_traced(self) -> bool:
        """Whether it has a spec but no value."""
        return self.version is None and self.value is None

    @property
    def level(self) -> int:
        """0 in the function itself, k in its k-th derivative; recorded while tracing."""
        return 0 if self.info is None else self.info.level

    @property
    def scope(self) -> str:
        """The path of the scopes it was traced in, "encoder/layer1"; empty outside of scopes."""
        return "" if self.info is None else self.info.scope

    @property
    def name(self) -> str | None:
        """A name given by the user, if any."""
        return None if self.info is None else self.info.name

    @property
    def where(self) -> str | None:
        """The user's file and line, if recorded (tracing, debugging, user operations)."""
        return None if self.info is None else self.info.where

    @property
    def is_leaf(self) -> bool:
        """Whether it has no operation: an input, a variable or a constant."""
        return isinstance(self.op, LeafOp)

    @property
    def kind(self) -> str:
        """INPUT, INPUT_DERIVED, INPUT_DERIVED_NON_DIFF, CONSTANT or CONSTANT_DERIVED."""
        return "INPUT_DERIVED" if self.args else "INPUT"

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the scopes it was traced in (`wengert.scope`)."""
        return {} if self.info is None else dict(self.info.metadata or NO_PARAMS)

    def note(self, **facts: Any) -> None:
        """Set optional properties, fields of `NodeInfo`."""
        if self.info is None:
            self.info = NodeInfo()
        for key, item in facts.items():
            setattr(self.info, key, item)

    def info_with(self, **facts: Any) -> NodeInfo:
        """A copy of its `info` with other values for some fields."""
        info = NodeInfo() if self.info is None else self.info.copy()
        for key, item in facts.items():
            setattr(info, key, item)
        return info

    def provenance(self, spec: Spec) -> NodeInfo:
        """The `info` of a traced node of that spec that replaces this one.

        It has the same source line, scope, metadata and level.
        """
        old = self.info
        if old is None:
            return NodeInfo(spec)
        return NodeInfo(spec, None, old.where, old.scope, old.metadata, old.level)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.serial}: {self.op.name} {self.spec}>"


def _outdated_value(node: Node, name: str) -> Any:
    """`Node.__getattr__`, called for an empty slot: the value of an outdated node.

    It is reconstructed by its version.
    """
    if name == "value" and node.version is not None:
        return node.version.read()
    raise AttributeError(f"{type(node).__name__} has no {name}")


def reconstruct_values() -> None:
    """Let nodes without value read it from their version (`_outdated_value`).

    Done when the first array is taken over: Python 3.11 reads the attributes of a class with
    `__getattr__` by a slower instruction, which makes eager operations 8 % slower; later versions
    read slots at the same speed.
    """
    if "__getattr__" not in vars(Node):
        Node.__getattr__ = _outdated_value  # type: ignore[attr-defined]


class ConstantLeaf(Node):
    """A value without history."""

    __slots__ = ()

    @property
    def kind(self) -> str:
        """CONSTANT, or CONSTANT_DERIVED for the result of an operation on constants."""
        return "CONSTANT" if self.op is CONSTANT else "CONSTANT_DERIVED"


class DiscreteLeaf(Node):
    """A leaf that depends on an input with a derivative known to be zero."""

    __slots__ = ()

    @property
    def kind(self) -> str:
        """INPUT_DERIVED_NON_DIFF; INPUT for an input that is not a floating-point number."""
        return "INPUT_DERIVED_NON_DIFF" if self.args or self.op is not INPUT else "INPUT"


class Watched(ConstantLeaf):
    """A large plain array that a recorded operation used, which is not copied.

    Reading it for a derivative first compares its fingerprint with the one taken when it was
    recorded, so that an array overwritten in the meantime is an error and never a wrong gradient.
    """

    __slots__ = ("_fingerprint", "_take_fingerprint", "_used_at", "array")

    def __init__(self, array: np.ndarray[Any, Any], taken: Hashable | None = None) -> None:
        """`taken` is the fingerprint of `Fingerprints.native`, if an operation has taken it."""
        self.array = array
        self._used_at = user_line() if array.nbytes >= _LOCATED_BYTES else ""
        self._take_fingerprint = Fingerprints.native or fingerprint
        self._fingerprint = self._take_fingerprint(array) if taken is None else taken
        self.op, self.args, self.params, self.info = CONSTANT, (), NO_PARAMS, None
        self.version = None
        self.serial = next_serial()

    @property
    def value(self) -> Any:
        """The array, checked to be unchanged."""
        self.check(self.present_fingerprint())
        return self.array

    def present_fingerprint(self) -> Hashable:
        """The fingerprint of the array as it is now."""
        return self._take_fingerprint(self.array)

    @property
    def is_native(self) -> bool:
        """Whether its fingerprint is one of `Fingerprints.native`."""
        return self._take_fingerprint is Fingerprints.native

    def check(self, taken: Hashable) -> None:
        """Raise if the present fingerprint is not that of the recorded operation."""
        if taken != self._fingerprint:
            raise MutatedError(
                f"An array {spec_of(self.array)} was overwritten after a recorded operation used "
                f"it{at(self._used_at)}, so the derivative at the recorded point can no longer be "
                "computed. Copy it before you change it, or make it a tensor (wengert.tensor "
                f"copies), or take the derivative first{at(user_line())}."
            )


class Fingerprints:
    """How fingerprints of arrays are taken.

    Attributes
    ----------
    native : callable or None
        Native code, when it has been loaded.
    load : callable or None
        Loads it (device_arrays.py).
    count : int
        The bytes of arrays whose fingerprints NumPy has taken.
    """

    native: Callable[[np.ndarray[Any, Any]], Hashable] | None = None
    load: Callable[[], None] | None = None
    count = 0


COPY_LIMIT = 1 << 15  # bytes; below it a copy costs less than a tenth of two fingerprints
_LOCATED_BYTES = 1 << 19  # from here on finding the user's line is a twentieth of an operation
_LOAD_BYTES = 1 << 28  # fingerprints of so many take NumPy 10 ms
_GRID = 1024  # 8-byte words in a row; both sums then run at the speed of memory


def fingerprint(array: np.ndarray[Any, Any]) -> tuple[int, int, bytes]:
    """Wrapping sums of the array's words along both axes of a grid, and the remaining bytes.

    One sum detects a changed element; both together also detect elements that were exchanged.
    """
    Fingerprints.count += array.nbytes
    if Fingerprints.count > _LOAD_BYTES and Fingerprints.load is not None:
        load, Fingerprints.load = Fingerprints.load, None
        load()
    flat = array.reshape(-1) if array.flags.c_contiguous else array.ravel(order="K")
    data = flat.view(np.uint8)
    end = data.size - data.size % (8 * _GRID)
    grid = data[:end].view(np.uint64).reshape(-1, _GRID)
    rows, columns = np.add.reduce(grid, axis=1), np.add.reduce(grid, axis=0)
    return hash(rows.tobytes()), hash(columns.tobytes()), data[end:].tobytes()


def keep(array: np.ndarray[Any, Any]) -> Any:
    """An argument for a plain array whose later changes are harmless or detected.

    Small arrays are copied, large ones become `Watched`; read-only arrays need neither.
    """
    if array.nbytes <= COPY_LIMIT:
        return array.copy()
    return Watched(array) if is_changeable(array) else array


def is_changeable(array: np.ndarray[Any, Any]) -> bool:
    """Whether something may write to the memory of an array."""
    base: Any = array
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        base = base.base
    return base is not None and not isinstance(base, bytes)


def is_variable(node: Node) -> bool:
    """Whether it is a leaf whose value belongs to a tensor: a parameter, a variable."""
    return not node.args and node.info is not None and node.info.owner is not None


def owner_of(node: Node) -> Any:
    """The tensor that a value belongs to, which gets its gradient; None if there is none."""
    owner = None if node.info is None else node.info.owner
    return None if owner is None else owner()


def constant(value: Any, name: str | None = None) -> ConstantLeaf:
    """A node for a constant value."""
    return ConstantLeaf(CONSTANT, (), NO_PARAMS, value, NodeInfo(name=name) if name else None)
