"""Tracing: `record`, to which `apply` dispatches if an operand has a spec and no value.

`record` infers the spec of the result, checks it against the policy, and makes a node with the
source line, the scope and the level of derivative.

    placeholder   an input node
    size_value    a symbolic size, as a value
    record        one operation on operands of which at least one is traced
    Derivation    the level, source line and scope of nodes that a pass records
    level_above   the order of the derivative that a pass records
    scope         a block whose nodes have a common name and metadata
    stepping      the step numbers of an eager loop, stored with the nodes that it records
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.errors import (
    ArgumentError,
    DtypeError,
    OperandError,
    ShapeError,
    WengertError,
    at,
    user_line,
)

from . import traced_inputs
from .handle import AMBIGUOUS, Handle, refuse_ambiguous, wrap
from .implicit_conversions import check_cast, chosen
from .node import INPUT, NO_PARAMS, ConstantLeaf, DiscreteLeaf, LeafOp, Node, keep
from .node_properties import NodeInfo, frozen, normalized, sizes_of
from .op import Op, lookup
from .recording import innermost_session, is_recording
from .replaced_errors import as_users, is_users, raise_for
from .spec import Spec, is_inexact, spec_of
from .symbolic.constraints import Demands, demands
from .symbolic.dim import Dim, bounds, register_value
from .thread_state import Blocks, ScopedValue
from .validation import fitted

if TYPE_CHECKING:
    from wengert._engine.core.types import Size

SIZE = LeafOp("size")

# ---- nodes without operands --------------------------------------------------------------------


def placeholder(spec: Spec, name: str | None = None, differentiable: bool | None = None) -> Node:
    """An input node; by default integers and booleans are not differentiable."""
    if differentiable is None:
        differentiable = is_inexact(spec.dtype)
    cls = Node if differentiable else DiscreteLeaf
    return cls(INPUT, (), NO_PARAMS, None, NodeInfo(spec, name))


_INTEGER = Spec((), np.dtype(np.int64), weak=True)


def size_node(size: Dim) -> Node:
    """A symbolic size as a node of the graph."""
    return DiscreteLeaf(SIZE, (), {"size": size}, None, NodeInfo(_INTEGER))


@register_value
def size_value(size: Dim) -> Any:
    """A symbolic size as a value, to compute with tensors."""
    return wrap(size_node(size))


# ---- scopes and levels -------------------------------------------------------------------------


class Derivation:
    """Properties of the nodes that a pass records.

    Attributes
    ----------
    level : int
        The order of the derivative.
    where : str or None
        The source line that is being differentiated.
    scope : str
    metadata : dict or None
    linear : set of Node
        The (co)tangents passed to the rule that may be zero because a branch was not taken, and
        the nodes computed from them; these store the operands in which they are linear.
    """

    __slots__ = ("level", "linear", "metadata", "scope", "where")

    def __init__(self, level: int) -> None:
        self.level = level
        self.where: str | None = None
        self.scope = ""
        self.metadata: dict[str, Any] | None = None
        self.linear: set[Node] = set()

    def enter(self, node: Node) -> None:
        """Start recording derivatives of this node."""
        info = node.info
        if self.linear:
            self.linear = set()
        self.where, self.scope, self.metadata = None, "", None
        if info is not None:
            self.where, self.scope, self.metadata = info.where, info.scope, info.metadata

    def stays_linear(self, node: Node, args: Sequence[Any]) -> None:
        """Start recording this node on other operands; the new node is linear in the same ones."""
        if node.info is not None and node.info.linear:
            operands = [args[k] for k in node.info.linear]
            self.linear.update([x.node for x in operands if isinstance(x, Handle)])

    def enter_scope(self, path: str, metadata: dict[str, Any]) -> None:
        """Put the nodes recorded next in a scope with this metadata."""
        if path:
            self.scope = f"{path}/{self.scope}" if self.scope else path
        if metadata:
            self.metadata = {**metadata, **(self.metadata or {})}


_derivation: Blocks[Derivation | None] = Blocks("wengert_derivation", None)
_scope: Blocks[str] = Blocks("wengert_scope", "")
_metadata: Blocks[dict[str, Any]] = Blocks("wengert_metadata", NO_PARAMS)


def scope_here() -> tuple[str, dict[str, Any]]:
    """The path of the open scopes, and their metadata."""
    return _scope.get(), _metadata.get()


def is_deriving() -> bool:
    """Whether a derivative is being recorded in a graph."""
    return _derivation.get() is not None


def deriving_level() -> int | None:
    """The level of the derivative that is being recorded in a graph."""
    derivation = _derivation.get()
    return None if derivation is None else derivation.level


def level_above(nodes: Iterable[Node]) -> int:
    """The level of a pass that starts from nodes: one above theirs.

    A pass that a rule starts while a derivative is being recorded has the level of the derivative.
    """
    level = deriving_level()
    return 1 + max((n.level for n in nodes), default=0) if level is None else level


@contextmanager
def derivation(level: int) -> Iterator[Derivation]:
    """A block that records nodes of a derivative of that order."""
    properties = Derivation(level)
    block: ScopedValue[Derivation | None] = ScopedValue(properties)
    try:
        _derivation.open(block)
        yield properties
    finally:
        block.end(True)
        _derivation.forget()


@contextmanager
def scope(name: str | None = None, /, **metadata: Any) -> Iterator[str]:
    """A block whose nodes have a common name and metadata.

    Parameters
    ----------
    name : str, optional
        A non-empty string; nested scopes give paths such as ``"encoder/layer1"``. Without a name,
        the nodes have only the metadata.
    **metadata
        Stored at the nodes, ``node.metadata``. `device`, the rank of a process, is where
        `wengert.distributed.placed` computes them.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> def f(x):
    ...     with wg.scope("model"):
    ...         return np.sum(np.sin(x))
    >>> wg.trace(f)(np.ones(3)).select(scope="model")[0].op.name
    'sin'
    """
    if (name is None and not metadata) or (name is not None and not (name and type(name) is str)):
        raise ArgumentError(
            f"scope({name!r}): the name of a scope must be a non-empty string{at(user_line())}."
        )
    traced_inputs.refuse_metadata(metadata)
    outer = _scope.get()
    path = ScopedValue(outer if name is None else f"{outer}/{name}" if outer else name)
    noted = ScopedValue({**_metadata.get(), **metadata}) if metadata else None
    if noted is not None:
        noted.end_together_with(path)
    try:
        _scope.open(path)
        if noted is not None:
            _metadata.open(noted)
        yield path.value
    finally:
        path.end(True)
        if noted is not None:
            _metadata.forget()
        _scope.forget()


def eager_info(inputs: Sequence[Any], where: str | None = None) -> NodeInfo:
    """The `info` of a node with a value: source line, scope and level of a derivative."""
    origin = _derivation.get() or innermost_session()
    level = 0 if origin is None else origin.level
    for a in inputs:
        if isinstance(a, Node) and a.info is not None and a.info.level > level:
            level = a.info.level
    where = where or (None if origin is None else origin.where) or user_line()
    return NodeInfo(where=where, level=level, step=_step.get())


_step: Blocks[str] = Blocks("wengert_step", "")


def stepping(what: str, numbers: Iterable[int]) -> Iterator[int]:
    """The step numbers of a loop; nodes that store their source line also store their step."""
    if innermost_session() is None:
        yield from numbers
        return
    outer = _step.get()
    for k in numbers:
        block = ScopedValue(f"step {k} of {what}" + (f", in {outer}" if outer else ""))
        try:
            _step.open(block)
            yield k
        finally:
            block.end(True)
            _step.forget()


def _traced_info(spec: Spec, inputs: Sequence[Any]) -> NodeInfo:
    """The `info` of a traced node: its spec, source line, scope and level."""
    derivation = _derivation.get()
    if derivation is not None:
        level = derivation.level
        where, path, metadata = (
            derivation.where or user_line(),
            derivation.scope,
            derivation.metadata,
        )
    else:
        level = 0
        where, path, metadata = user_line(), _scope.get(), _metadata.get()
    for a in inputs:
        if isinstance(a, Node) and a.info is not None and a.info.level > level:
            level = a.info.level
    info = NodeInfo(spec, None, where, path, metadata or None, level)
    if derivation is not None and derivation.linear:
        linear = derivation.linear
        info.linear = tuple(
            [k for k, a in enumerate(inputs) if isinstance(a, Node) and a in linear]
        )
    return info


def _mark_linear(node: Node) -> None:
    derivation = _derivation.get()
    if derivation is not None:
        derivation.linear.add(node)


# ---- specs -------------------------------------------------------------------------------------

_inferred: dict[Any, tuple[Any, Demands]] = {}
_LIMIT = 1 << 16
_NUMBERS = {t: spec_of(t(1)) for t in (bool, int, float, complex)}


def infer(op: Op, specs: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, Demands]:
    """The spec of a result and the requirements on sizes; cached.

    Raises
    ------
    ShapeError, DtypeError
        The operands do not fit together; the message names both.
    """
    key = (op, specs, frozen(params) if params else None)
    result = _inferred.get(key)
    if result is None:
        try:
            with demands() as needs:
                result = op.infer(specs, params), needs
        except WengertError:
            raise
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            raise_for(error, refused(op, specs, error))
        if len(_inferred) > _LIMIT:
            _inferred.clear()
        _inferred[key] = result
    return result


def refused(op: Op, specs: Sequence[Any], error: Exception) -> Exception:
    """An error of wengert that names the operation and the operands."""
    if isinstance(error, IndexError):
        return error
    where = user_line()
    operands = " and ".join(str(s) for s in specs)
    if is_users(error):
        return as_users(error, f"in {op.name} of {operands}{at(where)}")
    classes: dict[type[Exception], type[Exception]] = {
        TypeError: DtypeError,
        ValueError: ShapeError,
    }
    cls: type[Exception] = OperandError
    for expected, ours in classes.items():
        if isinstance(error, expected):
            cls = ours
    return cls(f"{op.name} of {operands}: {error}." + (f" (at {where})" if where else ""))


def _spec(a: float | Node) -> Any:
    if isinstance(a, Node):
        info = a.info
        return info.spec if a.value is None and info is not None else a.spec
    spec = _NUMBERS.get(type(a))
    return spec_of(a) if spec is None else spec


# ---- recording ---------------------------------------------------------------------------------


def record(
    op: Op, args: Sequence[Any], params: dict[str, Any] = NO_PARAMS, weak: bool = False
) -> Any:
    """Record an operation; return a handle on its node, or a tuple of them.

    Parameters
    ----------
    op : Op
    args : sequence
        Handles, sizes, arrays, numbers.
    params : dict
    weak : bool
        Whether a Python operator was used, which returns a Python number for Python numbers. A
        weak cast gives a Python number.

    Raises
    ------
    ShapeError, DtypeError
        The operands do not fit together.
    PolicyError
        An implicit conversion that the policy forbids.
    """
    inputs = tuple([_argument(a, op) for a in args])
    specs = tuple([_spec(a) for a in inputs])
    if weak and op.name in _INTEGER_ARITHMETIC and all([s == _PYTHON_BOOL for s in specs]):
        return record(op, [_as_integer(a) for a in inputs], params, weak)
    if None in specs:
        invalid = next(type(a).__name__ for a, s in zip(inputs, specs, strict=True) if s is None)
        raise DtypeError(f"{op.name} of a {invalid}, which is not a number{at(user_line())}.")
    if weak and op.name == "power" and specs[0].dtype.kind == "b" and _is_two(inputs[1]):
        return record(lookup("square"), inputs[:1], params, weak)
    if int in map(type, inputs) and not all([type(a) is not int or 0 <= a < 128 for a in inputs]):
        inputs = fitted(op, inputs, specs)
        specs = tuple([_spec(a) for a in inputs])
    if params:
        params = normalized(params)
    spec, needs = infer(op, specs, params)
    if weak and type(spec) is Spec and (op.casts or all(s.weak for s in specs)):
        spec = Spec(spec.shape, spec.dtype, weak=True)
    types = [type(a) for a in inputs]
    cls: type[Node]
    if Node in types:
        cls = DiscreteLeaf if op.discrete or not is_recording() else Node
    elif DiscreteLeaf in types or sizes_of(params):
        cls = DiscreteLeaf
    else:
        cls = ConstantLeaf
    policy = chosen()
    if policy is not None:
        check_cast(policy, op, specs, spec)
    node = cls(op, inputs, params, None, _traced_info(spec, inputs))
    if not op.discrete and node.info is not None and node.info.linear:
        _mark_linear(node)
    if needs.needs:
        node.note(requires=needs.needs)
    if needs.probed:
        node.note(probed=True)
    if type(spec) is tuple:
        return tuple([wrap(part_of(node, i)) for i in range(len(spec))])
    handle = wrap(node)
    return handle if policy is None else policy.capped(handle)


# Python operators treat Python booleans as the integers 0 and 1, NumPy functions do not.
_INTEGER_ARITHMETIC = frozenset(
    "add subtract multiply power floor_divide remainder left_shift right_shift negative positive "
    "absolute".split()
)
_PYTHON_BOOL = Spec((), np.dtype(np.bool_), weak=True)


def _is_two(a: float) -> bool:
    """Whether it is the Python number 2: NumPy then squares, and a power of booleans is int8."""
    return type(a) is int and a == 2


def _as_integer(a: Any) -> Any:
    if not isinstance(a, Node):
        return int(a)
    return record(lookup("cast"), [a], {"dtype": _INTEGER.dtype}, weak=True)


def _argument(a: Any, op: Op) -> Any:
    if isinstance(a, Handle):
        a = a.node
    if isinstance(a, Node):
        if a.op is AMBIGUOUS:
            refuse_ambiguous(a)
        # For a discrete operation, stopping the gradient of an operand makes no difference.
        return a.args[0] if op.discrete and a.info is not None and a.info.held else a
    if type(a) is Dim:
        return size_node(a)
    return keep(a) if type(a) is np.ndarray else a


class _Part:
    """The function that makes the node of one output; set once by dispatch.py."""

    make: Callable[[Node, int], Node]


def part_of(node: Node, index: int) -> Node:
    """The node of one output of a node with several outputs."""
    return _Part.make(node, index)


def is_decided_positive(length: Size) -> bool:
    """Whether a length is at least one for all sizes."""
    low, _ = bounds(length)
    return low is not None and low >= 1
