"""Dispatch: `apply`, through which every operation on handles runs.

Recording, checking and counting are implemented here only.  An operation runs on the plain values
of its operands; if one of them is recorded, the result is a handle on a new node, and the nodes
reachable from it are the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.errors import (
    DtypeError,
    OperandError,
    ShapeError,
    TracedBranchError,
    WengertError,
    at,
    user_line,
)

from .device_arrays import (
    LEAST_ELEMENTS,
    DeviceValues,
    is_large,
    kept_with_value,
    run_of,
    with_value,
)
from .handle import Handle, _Class, is_general, wrap
from .node import CONSTANT, NO_PARAMS, ConstantLeaf, DiscreteLeaf, Node, constant, keep, next_serial
from .node_properties import NodeInfo, sizes_of
from .op import Op
from .op_facts import SELECTS, Aliasing
from .other_libraries import is_refused
from .recording import _enabled, _session, recording_session, switches
from .replaced_errors import as_users, is_users, raise_for
from .spec import spec_of, unweakened, weakened
from .tracing import _Part, eager_info, record

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

_new = object.__new__
_Array = np.ndarray
_PLAIN = frozenset((int, float, complex, bool))
_KNOWN = frozenset((*_PLAIN, np.ndarray, Node, ConstantLeaf, DiscreteLeaf, np.float64))
Run = Callable[..., Any]
Example = tuple[tuple[Any, ...], dict[str, Any]]  # operands and parameters


def apply(
    op: Op, args: Sequence[Any], params: dict[str, Any] = NO_PARAMS, run: Run | None = None
) -> Any:
    """Run an operation on operands at least one of which is a handle; returns a handle, or several.

    `run` computes the value instead of ``op.run``: the Python operator, which is faster on numbers.
    """
    if len(args) == 2:  # unrolled, as below: a loop would take a quarter of the time of the call
        a, b = args
        arrays = False  # whether an operand is a plain array
        if isinstance(a, Handle):
            a = a.node
            x = a.value
            if type(x) is not _Array:
                x = unweakened(x)
        else:
            x, arrays = a, type(a) is _Array or (type(a) not in _PLAIN and is_refused(a))
        if isinstance(b, Handle):
            b = b.node
            y = b.value
            if type(y) is not _Array:
                y = unweakened(y)
        else:
            y, arrays = b, type(b) is _Array or (type(b) not in _PLAIN and is_refused(b)) or arrays
        traced = x is None or y is None
        inputs: Any = (a, b)
        values: Any = (x, y)
        recorded = type(a) is Node or type(b) is Node
        derived = recorded or type(a) is DiscreteLeaf or type(b) is DiscreteLeaf
    elif len(args) == 1:
        a = args[0].node  # the only operand is a handle
        x = a.value
        inputs, values, traced = (a,), (x if type(x) is _Array else unweakened(x),), x is None
        recorded, derived, arrays = type(a) is Node, not isinstance(a, ConstantLeaf), False
    else:
        inputs, values, traced, recorded, derived, arrays, x = _gather(args)
    if traced or (switches.count and derived and _are_general(inputs)):
        return record(op, args, params, run is not None)
    if run is None:
        large = x.size >= LEAST_ELEMENTS if type(x) is _Array else is_large(values[-1])
        run = run_of(op) if large else op.run
    try:
        if arrays and is_large(x) and (kept := kept_with_value(op, inputs, values)):
            value, inputs = kept
        else:
            value = run(*values, **params) if params else run(*values)
    except (TypeError, ValueError, IndexError) as error:
        return _refused(op, args, params, values, error)
    if derived and (switches.count == 0 or _enabled.get()):
        if arrays:
            inputs = tuple([keep(a) if type(a) is _Array else a for a in inputs])
        node = _new(Node if recorded and not op.discrete else DiscreteLeaf)
        node.op, node.args = op, inputs
    else:
        node = _unrecorded(op, inputs, derived)
    node.params, node.value, node.version, node.serial = params, value, None, next_serial()
    node.info = _notes(op, node, inputs, values) if switches.count or op.notes_where else None
    if type(value) is not _Array:
        if type(value) is tuple:
            return tuple([wrap(part(node, i)) for i in range(len(value))])
        node.value = weakened(value)
    handle = _new(_Class.handle)
    handle.node = node
    return handle


def quick_unary(op: Op, run: Run | None = None) -> Callable[[Any], Any]:
    """`apply` for one operand, a handle; recorded small arrays take half as long.

    It has the steps of `apply` that the common case needs, for an operation without parameters.
    """

    def otherwise(operand: Any) -> Any:
        return apply(op, (operand,), NO_PARAMS, run)

    def call(operand: Any) -> Any:
        a = operand.node
        x = a.value
        if type(a) is not Node or type(x) is not _Array or switches.count:
            return otherwise(operand)
        if run is None and x.size >= LEAST_ELEMENTS:
            return otherwise(operand)
        try:
            value = op.run(x) if run is None else run(x)
        except (TypeError, ValueError, IndexError) as error:
            return _refused(op, (operand,), NO_PARAMS, (x,), error)
        node: Any = _new(Node)
        node.op, node.args, node.params, node.info = op, (a,), NO_PARAMS, None
        node.value = value if type(value) is _Array else weakened(value)
        node.version, node.serial = None, next_serial()
        handle = _new(_Class.handle)
        handle.node = node
        return handle

    return otherwise if op.discrete or op.notes_where else call


def quick_binary(
    op: Op, run: Run, otherwise: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    """The same for a Python operator: a handle, and a handle or a Python number.

    Other operands are left to `otherwise`, which converts them.
    """

    def call(first: Any, second: Any) -> Any:
        a = first.node
        x = a.value
        if type(a) is not Node or type(x) is not _Array or switches.count:
            return otherwise(first, second)
        kind = type(second)
        if kind is _Class.handle:
            b = second.node
            y = b.value
            if type(y) is not _Array:
                return otherwise(first, second)
        elif kind is float or kind is int:
            b = y = second
        else:
            return otherwise(first, second)
        try:
            value = run(x, y)
        except (TypeError, ValueError, IndexError) as error:
            return _refused(op, (first, second), NO_PARAMS, (x, y), error)
        node: Any = _new(Node)
        node.op, node.args, node.params, node.info = op, (a, b), NO_PARAMS, None
        node.value = value if type(value) is _Array else weakened(value)
        node.version, node.serial = None, next_serial()
        handle = _new(_Class.handle)
        handle.node = node
        return handle

    return otherwise if op.discrete or op.notes_where else call


def quick_reflected(
    op: Op, run: Run, otherwise: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    """The same for the reflected form of an operator: a Python number before a handle."""

    def call(second: Any, first: Any) -> Any:
        b = second.node
        y = b.value
        kind = type(first)
        if (
            (kind is not float and kind is not int)
            or type(b) is not Node
            or type(y) is not _Array
            or switches.count
        ):
            return otherwise(second, first)
        try:
            value = run(first, y)
        except (TypeError, ValueError, IndexError) as error:
            return _refused(op, (first, second), NO_PARAMS, (first, y), error)
        node: Any = _new(Node)
        node.op, node.args, node.params, node.info = op, (first, b), NO_PARAMS, None
        node.value = value if type(value) is _Array else weakened(value)
        node.version, node.serial = None, next_serial()
        handle = _new(_Class.handle)
        handle.node = node
        return handle

    return otherwise if op.discrete or op.notes_where else call


def _are_general(inputs: Sequence[Any]) -> bool:
    """Whether an operand is a variable of the graph that is being built."""
    return any([isinstance(a, Node) and is_general(a) for a in inputs])


def _unrecorded(op: Op, inputs: tuple[Any, ...], derived: bool) -> Node:
    """A node without history; if it depends on a variable, it is not a constant of a graph."""
    if derived and recording_session() is not None:
        node: Node = _new(DiscreteLeaf)
        node.op, node.args = op, inputs
    else:
        node = _new(ConstantLeaf)
        node.op, node.args = CONSTANT, ()
    return node


def _gather(args: Sequence[Any]) -> tuple[Any, list[Any], bool, bool, bool, bool, Any]:
    inputs = tuple([a.node if isinstance(a, Handle) else a for a in args])
    values = [unweakened(a.value) if isinstance(a, Node) else a for a in inputs]
    types = [type(a) for a in inputs]
    if not _KNOWN.issuperset(types):
        for a in inputs:
            if not isinstance(a, Node):
                is_refused(a)
    recorded = Node in types
    traced = any([v is None for v in values])
    derived, arrays = recorded or DiscreteLeaf in types, _Array in types
    return inputs, values, traced, recorded, derived, arrays, values[0]


def _notes(
    op: Op, node: Node, inputs: tuple[Operand | Node, ...], values: Sequence[Operand]
) -> NodeInfo | None:
    """The `info` of a node: the source line, if the operation or an open session records it."""
    session = _session.get()
    if session is not None and session.checks is not None:
        session.checks.check(op, node.params, values, node.value)
    return eager_info(inputs) if op.notes_where or session is not None else None


def _refused(
    op: Op,
    args: Sequence[Operand],
    params: dict[str, Any],
    values: Sequence[Operand],
    error: Exception,
) -> Any:
    """Handle an operation that failed: record a node if a size is symbolic, else raise."""
    if isinstance(error, TracedBranchError) and sizes_of(params):
        return record(op, args, params)
    raise_for(error, refusal(op, values, error))


def refusal(op: Op, values: Sequence[Any], error: Exception) -> Exception:
    """NumPy's error as an error of wengert that names the operation and the operands."""
    if isinstance(error, WengertError | IndexError):
        return error
    where = user_line()
    operands = ", ".join(str(spec_of(v) or type(v).__name__) for v in values)
    if is_users(error):
        return as_users(error, f"in {op.name} of {operands}{at(where)}")
    cls = ShapeError if isinstance(error, ValueError) else DtypeError
    if any(isinstance(v, np.ndarray) and v.dtype.kind in "OSUV" for v in values):
        cls = DtypeError
    elif not isinstance(error, ValueError | TypeError):
        cls = OperandError  # type: ignore[assignment]
    said = str(error).rstrip(" .")
    return cls(f"{op.name} of {operands}: {said}." + (f" (at {where})" if where else ""))


class OutputOperation(Op):
    """One of the outputs of an operation with several outputs."""

    kind = "view"
    aliasing = Aliasing(view=True)
    zero_slope = SELECTS
    finds_operands = True

    def __init__(self) -> None:
        super().__init__("part", "One of the outputs of an operation with several outputs.")

    def __reduce__(self) -> Any:
        return "PART"

    def run(self, value: Any, *, index: int) -> Any:
        """The output of that index."""
        return value[index]

    def __call__(self, value: tuple[Array, ...], *, index: int) -> Any:
        """The output of that index, from a tuple of values or of handles."""
        return value[index]

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Any:
        """The spec of that output."""
        return specs[0][params["index"]]

    def operands_of(self, node: Node) -> list[Any]:
        """Nothing: the rule reads no values."""
        return []

    def vjp(self, node: Node, t: Any, out: Any, inputs: Any, ctx: Any) -> Any:
        """The cotangent of the tuple: zero except for this output."""
        return [TupleCotangent({node.params["index"]: t})]

    def jvp(self, node: Node, dots: Any, out: Any, inputs: Any, ctx: Any) -> Any:
        """The tangent of this output."""
        return dots[0][node.params["index"]]


class TupleCotangent(dict[int, Any]):
    """The cotangent of a tuple: the sum of contributions so far for each output."""

    def __add__(self, other: TupleCotangent) -> TupleCotangent:
        total = TupleCotangent(self)
        for i, t in other.items():
            total[i] = total[i] + t if i in total else t
        return total


PART = OutputOperation()


def part(node: Node, index: int) -> Node:
    """The node of one output of `node`."""
    if node.is_traced:
        spec = node.spec[index]
        cls = type(node) if spec.dtype.kind in "fc" else DiscreteLeaf
        unknown = node.info_with(spec=spec, requires=None, name=None, linear=())
        return cls(PART, (node,), {"index": index}, None, unknown)
    values = node.version.values if type(node.version) is DeviceValues else node.value
    value = values[index]
    if type(node) is ConstantLeaf:
        return with_value(constant(None), value)
    inexact = getattr(value, "dtype", np.dtype(float)).kind in "fc"
    cls = type(node) if inexact else DiscreteLeaf
    info = None if node.where is None else eager_info((node,), node.where)
    return with_value(cls(PART, (node,), {"index": index}, None, info), value)


_Part.make = staticmethod(part)


class Operation(Op):
    """An operation that users call: with plain values it returns one, with handles a handle."""

    make_examples: Callable[[np.random.Generator], Iterator[Example]] | None = None

    def examples(self, make: Callable[..., Iterator[Example]]) -> Callable[..., Iterator[Example]]:
        """Define arguments to check the operation with (a decorator).

        The decorated generator function takes a random number generator and yields pairs
        `(args, params)`. Elementwise operations need none: examples are drawn from their domain.
        """
        self.make_examples = make
        return make

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Run on plain values, or through `apply` if one of them is a handle."""
        for a in args:
            if isinstance(a, Handle):
                return apply(self, args, params)
        return self.run(*args, **params)
