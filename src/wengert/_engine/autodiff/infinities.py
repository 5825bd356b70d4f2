"""Cotangents: their space, and strong zeros, where they are guarded against 0 * inf.

    TracedGuards      which rules of a traced pass are guarded, and which of its nodes may be zero
    RecordedGuards    the nodes and (co)tangents of a pass that was recorded with values
    linear_nodes      which operands of its nodes are (co)tangents

A branch that was not taken has the cotangent zero, and its product with any factor must be zero
(docs/conventions.md, 4), also when the product is differentiated.  If values are known, a pass
whose result contains NaN is repeated with all zeros strong.  In a graph the values are not known,
so the nodes decide which zeros are strong.

Broadcasting and type promotion are undone here for all operations: sum over broadcast axes, take
the real part if the primal is real, cast to its dtype.  A float32 argument gets a float32 gradient.

Overflows: derivatives of functions whose intermediate values overflow.

The derivative of log(1 + exp(x)) at 800 is 1, but the chain rule gives inf / (1 + inf).  If values
are known, a pass after an overflow (the result is NaN or an output is infinite, and a node is
infinite or zero for finite operands) is repeated on a graph in which such compositions are replaced
by stable functions (rewrite/rules/stabilize.py).  If there is no rewrite rule, a slope of 0 that is
1 / inf becomes NaN, because the correct slope is not known.

    is_infinite     whether an output contains an infinity
    has_overflowed  whether a node overflowed
    stabilised      the outputs of a tape, computed without the overflow
    unknown_slopes  contributions to overflowed operands, with NaN for the zeros that are 1 / inf
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.dispatch import TupleCotangent
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_copies import inline_graph, rebuilt
from wengert._engine.core.handle import Handle, value_of, wrap
from wengert._engine.core.node import ConstantLeaf, Node, next_serial
from wengert._engine.core.op import RuleContext, linear_in, lookup
from wengert._engine.core.recording import enable_grad
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import repeated_axes
from wengert._engine.core.tracing import placeholder
from wengert.errors import RuleError, at

from .tape import Tape

if TYPE_CHECKING:
    from wengert._engine.core.tracing import Derivation
    from wengert._engine.core.types import Array, Operand

_PRODUCTS = ("elementwise", "contraction")


class TracedGuards:
    """The guards of a traced pass against 0 * inf.

    Strong zeros cost time, so they are used only if a partial derivative can be singular, or if the
    (co)tangent can be exactly zero because something was not selected, by an operation of the tape
    or by a seed with known zeros (a row of a Jacobian).

    Nodes computed from a (co)tangent that can be zero in this way are marked
    (`Derivation.linear`).  The next derivative is then zero there too: t * p contributes s * t to
    the cotangent of p, which is zero if t is zero, even if s is infinite.
    """

    __slots__ = ("guarded", "masked", "open")

    def __init__(self, tape: Tape, ctx: RuleContext, seeds: Mapping[Node, Any]) -> None:
        self.masked: set[Node] = {n for n, t in seeds.items() if _has_zeros(t)}
        self.open = replace(ctx, masked=self.masked)
        self.guarded = replace(self.open, guarded=True)

    def backwards(self, node: Node, t: Any, recorder: Any) -> RuleContext:
        """The context for the VJP of a node whose cotangent is `t`."""
        op: Any = node.op
        is_masked, strong = node in self.masked, linear_in(node)
        if is_masked or op.differentiation.masks or (strong and op.name == "strong_zero"):
            self.masked.update(node.args_as_nodes())
        elif strong and op.kind in _PRODUCTS and not getattr(op, "bounded", False):
            others = [a for k, a in enumerate(node.args) if any(j != k for j in strong)]
            self.masked.update(a for a in others if isinstance(a, Node))
        return self._context_at(node, nodes_of(t) if is_masked else (), strong, recorder)

    def forwards(self, node: Node, dots: Sequence[Any], recorder: Any) -> RuleContext:
        """The context for the JVP of a node whose operands have the tangents `dots`."""
        op: Any = node.op
        strong = linear_in(node)
        pairs = zip(node.args, dots, strict=True)
        masked = [d for a, d in pairs if d is not None and a in self.masked]
        # Parts of the result that come from a constant have the tangent zero.
        joined = op.kind == "indexing" and any(d is None for d in dots)
        if masked or strong or op.differentiation.masks or joined:
            self.masked.add(node)
        return self._context_at(node, [n for d in masked for n in nodes_of(d)], strong, recorder)

    def _context_at(
        self, node: Node, masked: Sequence[Node], strong: Sequence[int], recorder: Derivation
    ) -> RuleContext:
        op: Any = node.op
        recorder.linear.update(masked)
        if strong:
            recorder.linear.add(node)
            recorder.linear.update([node.args[j] for j in strong])
        singular = op.differentiation.is_singular(node)
        return self.guarded if masked or strong or singular else self.open


class RecordedGuards(NamedTuple):
    """A pass that was recorded with values; stored with its results.

    start, stop : the range of serial numbers of its nodes.
    ts : the (co)tangents that its rules took.
    nodes : the nodes of the tape that it differentiated.
    """

    start: int
    stop: int
    ts: Iterable[Any]
    nodes: Sequence[Node]


def note_written(tape: Tape, results: Iterable[Any], start: int, ts: Iterable[Any]) -> None:
    """Store with the results of a recorded pass which nodes belong to it."""
    written = None
    for x in results:
        if isinstance(x, Handle) and type(x.node) is Node and x.node.serial > start:
            written = written or RecordedGuards(start, next_serial(), ts, tape.nodes)
            x.node.note(written=written)


def linear_nodes(tape: Tape) -> dict[Node, tuple[int, ...]]:
    """The operands that are (co)tangents, for nodes of recorded passes.

    Empty if an operation has limits (ops/linalg/degenerate_eigenvalues.py), where 0 * inf has
    another meaning.
    """
    notes = [
        n.info.written for n in tape.nodes if n.info is not None and n.info.written is not None
    ]
    passes = list({w.start: w for w in notes}.values())
    if any(
        n.op.differentiation.limits
        for nodes in (tape.nodes, *[w.nodes for w in passes])
        for n in nodes
    ):
        return {}
    linear = {n for w in passes for t in w.ts for n in nodes_of(t)}
    linear_operands: dict[Node, tuple[int, ...]] = {}
    for node in tape.nodes:
        inside = [w for w in passes if w.start < node.serial < w.stop]
        if not inside or node.op.discrete:
            continue
        # A constant that a rule made was computed from a constant (co)tangent.
        start = min(w.start for w in inside)
        operands = [
            k
            for k, a in enumerate(node.args)
            if isinstance(a, Node)
            and (a in linear or (type(a) is ConstantLeaf and a.serial > start))
        ]
        if operands:
            linear.add(node)
            linear_operands[node] = tuple(operands)
    return linear_operands


def nodes_of(t: Any) -> list[Node]:
    """The nodes of a (co)tangent, which may be a tuple for several results."""
    items = t.values() if type(t) is TupleCotangent else t if type(t) is tuple else (t,)
    return [x.node for x in items if isinstance(x, Handle)]


def _has_zeros(t: Array) -> bool:
    t = value_of(t)
    return isinstance(t, np.ndarray | np.generic) and bool(np.any(t == 0))


def project(bar: Any, node: Node) -> Any:
    """The cotangent `bar`, handle or plain, with the shape and dtype of the value of `node`."""
    if type(bar) is TupleCotangent:
        return bar
    spec = node.spec
    if not hasattr(bar, "dtype"):
        bar = np.asarray(bar, dtype=spec.dtype)
    if isinstance(spec, tuple):
        raise RuleError(
            f"the cotangent of {node!r} must have one entry for each output{at(node.where)}"
        )
    if bar.shape != spec.shape:
        bar = _unbroadcast(bar, spec)
    return cast(bar, spec.dtype)


def _unbroadcast(bar: Any, spec: Spec) -> Any:
    if isinstance(bar, Handle):
        if len(bar.shape) < len(spec.shape):  # type: ignore[attr-defined]
            return lookup("broadcast_to")(bar, shape=spec.shape)
        return lookup("sum_to")(bar, shape=spec.shape)
    return expand(bar, spec.shape) if bar.ndim < spec.ndim else sum_to(bar, spec.shape)


def expand(x: Any, shape: tuple[int, ...]) -> Any:
    """A plain value broadcast to `shape`, as a new array."""
    return np.broadcast_to(x, shape).copy()


def sum_to(x: Array, shape: tuple[int, ...]) -> Any:
    """The transpose of broadcasting from `shape`, for plain values."""
    axes = repeated_axes(x.shape, shape)
    if axes:
        x = np.add.reduce(x, axis=axes, keepdims=True)
        x = x.reshape(x.shape[x.ndim - len(shape) :])
    return x if x.shape == shape else expand(x, shape)


def cast(bar: Any, dtype: Any) -> Any:
    """A cotangent in another dtype; its real part if that dtype is real."""
    if bar.dtype == dtype:
        return bar
    if bar.dtype.kind == "c" and dtype.kind != "c":
        bar = bar.real
    return bar if bar.dtype == dtype else bar.astype(dtype)


REWRITING: list[str] = []  # the module that rewrites, registered by wengert/__init__.py


def is_infinite(nodes: Iterable[Any]) -> bool:
    """Whether a value contains an infinity; the cost is one sum each if none does."""
    for node in nodes:
        value = None if node.version is not None else node.value
        if type(value) is np.ndarray and value.dtype.kind in "fc":
            with np.errstate(all="ignore"):
                total = np.add.reduce(value, axis=None)
                if total - total == 0:
                    continue
            if np.isinf(value).any():
                return True
        elif isinstance(value, np.inexact) and np.isinf(value):
            return True
    return False


def has_overflowed(tape: Tape) -> bool:
    """Whether a node without poles overflowed to infinity, or underflowed to 0."""
    return any(_overflows(node) for node in tape.nodes if node.args and node.version is None)


def _overflows(node: Node) -> bool:
    op: Any = node.op
    value = node.value
    if op.differentiation.singular is True or not isinstance(value, np.ndarray | np.inexact):
        return False
    if value.dtype.kind not in "fc":
        return False
    mask = np.isinf(value)
    if len(node.args) == 1 and op.kind == "elementwise" and not (op.kinks or op.discrete):
        mask = mask | np.equal(value, 0) & np.not_equal(_plain(node.args[0]), 0)
    if not mask.any():
        return False
    for x in map(_plain, node.args):
        if isinstance(x, np.ndarray | np.inexact) and x.dtype.kind in "fc":
            finite = np.isfinite(x)
            mask = mask & (finite if finite.shape in ((), mask.shape) else finite.all())
    return bool(mask.any())


def _plain(a: Operand | Node) -> Any:
    return a.value if isinstance(a, Node) else a


def stabilised(
    tape: Tape, outputs: Sequence[Any], targets: Sequence[Node]
) -> dict[Node, Node] | None:
    """New outputs, equal functions of the same nodes without overflow; None if no rule applies.

    The targets and the other nodes that the tape starts from become the inputs of a graph, which is
    rewritten and evaluated at the same nodes.
    """
    if not REWRITING or any(map(_has_effects, tape.nodes)):
        return None
    inputs = dict.fromkeys(targets)
    inputs.update(dict.fromkeys(n for n in tape.nodes if not n.args))
    interior = {n for n in tape.nodes if n not in inputs}
    inputs.update(
        dict.fromkeys(a for n in interior for a in n.args_as_nodes() if a not in interior)
    )
    if not all(type(n.spec) is Spec for n in inputs):
        return None
    placeholders = {n: placeholder(n.spec) for n in inputs}
    nodes = rebuilt([n for n in tape.nodes if n in interior], placeholders)
    graph = BaseGraph(*[wrap(nodes[n]) for n in outputs], inputs=list(placeholders.values()))
    stable = import_module(REWRITING[0]).stabilised(graph)
    if stable is graph:
        return None
    with enable_grad(), np.errstate(all="ignore"):
        results = inline_graph(stable, [wrap(n) for n in inputs])
    if not all(isinstance(x, Handle) and type(x.node) is Node for x in results):
        return None
    return {n: x.node for n, x in zip(outputs, results, strict=True)}


def _has_effects(node: Node) -> bool:
    """Whether a node has side effects or is written in place."""
    hooked = node.info is not None and node.info.hooks is not None
    return bool(hooked or node.op.effects.side_effect or node.version is not None)


def unknown_slopes(node: Node, incoming: Sequence[Any], outgoing: Sequence[Any]) -> list[Any]:
    """The result of a rule, with NaN for zeros that are 1 / inf because the operand is infinite.

    Parameters
    ----------
    node : Node
        The node: a function of one operand, or one with poles.
    incoming, outgoing : sequence
        The (co)tangents that the rule took and returned, one per operand, or None.
    """
    op: Any = node.op
    single = op.differentiation.singular or len(node.args) == 1
    value = None if node.version is not None else node.value
    if not (single and isinstance(value, np.ndarray | np.inexact) and np.isinf(value).any()):
        return list(outgoing)
    results = []
    for a, t, bar in zip(node.args, incoming, outgoing, strict=True):
        x, seed, result = (value_of(y) for y in (_plain(a), t, bar))
        unknown: Any = False
        if seed is None or result is None:
            pass
        elif op.kind == "reduction":  # it overflowed itself: a norm of large numbers
            if np.isfinite(x).all() and np.any(seed):
                unknown = np.not_equal(x if np.shape(result) == np.shape(x) else 1, 0)
        elif np.shape(x) == np.shape(value):
            unknown = np.isinf(value) & np.isinf(x) & np.not_equal(seed, 0)
        unknown = unknown & np.equal(result, 0) if unknown is not False else unknown
        results.append(lookup("where")(unknown, np.nan, bar) if np.any(unknown) else bar)
    return results
