"""The backward pass: from cotangents of outputs to cotangents of inputs.

Nodes are visited in the reverse order of their creation.  All consumers of a node have contributed
to its cotangent before its rule is called, once.  Rules only return contributions; accumulation is
done here.

If no outer derivative is recorded, the rules run on plain arrays and the pass is not recorded;
otherwise they run on handles, and the pass itself is recorded on the tape.

If the result contains NaN, the pass is repeated *guarded*: a cotangent that is exactly zero is then
zero times any factor, so that a branch that was not taken does not make the derivative NaN.  If an
operation declares that its rule has limits, a third pass is recorded
(ops/linalg/degenerate_eigenvalues.py).  If a value overflowed, the graph is rewritten into a stable
form first (infinities.py).  In the common case the cost is one check of the result and the outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import runtime_checks
from wengert._engine.core.device_arrays import (
    KERNELS,
    LEAST_ELEMENTS,
    is_large,
    kernels,
    recycling,
)
from wengert._engine.core.dispatch import TupleCotangent, part
from wengert._engine.core.handle import Handle, is_traced, value_of, wrap
from wengert._engine.core.node import Node, Watched, constant, next_serial
from wengert._engine.core.op import RuleContext
from wengert._engine.core.recording import Session, enable_grad, innermost_session, switches
from wengert._engine.core.spec import Spec
from wengert._engine.core.thread_state import errors_ignored
from wengert._engine.core.tracing import Derivation, derivation, level_above
from wengert._engine.core.uniform_arrays import uniform, zeros
from wengert._engine.kinds.linear_map import check_linear
from wengert.errors import NotDifferentiableError, at

from . import eager_passes, infinities
from .eager_passes import Buffers, UnchangedArrays, owned, plus, visit_nodes
from .infinities import TracedGuards, linear_nodes, note_written, project
from .tape import VARIABLE, Tape, cycle, fresh, passes_over, tape_between

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

Seeds = Mapping[Node, Any]
Bars = dict[Node, Any]
PROBE = RuleContext(recorded=True)  # a rule run on handles, to determine its linear map


def pullback(
    seeds: Seeds,
    targets: Sequence[Node],
    record: bool | None = None,
    tape: Tape | None = None,
    masked: bool = False,
    closed: bool = False,
    masked_targets: set[Node] | None = None,
    stable: bool = False,
) -> list[Any]:
    """Cotangents of the targets, given cotangents of some outputs.

    Parameters
    ----------
    seeds : mapping from Node
        The cotangent of each output, with its shape and dtype.
    targets : sequence of Node
        The nodes to differentiate with respect to.
    record : bool, optional
        Whether the derivative is to be differentiable itself; by default exactly when something
        recorded that is not a target takes part.
    tape : Tape, optional
        The result of `tape_between` for these nodes, if it has been computed already.
    masked : bool
        Whether the seeds may contain zeros for branches that were not taken.
    closed : bool
        Whether the inputs of the tape are constants, so that only the seeds are differentiated.
    masked_targets : set of Node, optional
        The targets whose cotangents may be zero because of a branch that was not taken are added
        to it, as far as they can be found in a graph.
    stable : bool
        Whether the graph has been rewritten into a stable form already.

    Returns
    -------
    list
        For each target an array, or a handle if recorded; None where no output depends on it.
    """
    if tape is None:
        tape = tape_between(seeds, set(targets))
    if tape.traced or any(map(is_traced, seeds.values())):
        return _traced_pass(tape, seeds, targets, masked, closed, masked_targets)
    recorded = tape.foreign if record is None else record
    checks = runtime_checks.current_checks() if switches.count else None
    if checks is not None:
        with runtime_checks.unchecked():
            bars = pullback(seeds, targets, recorded, tape, closed=closed)
        checks.locator.report_backward(checks, tape, seeds, bars)
        return bars
    return recycling(targets, _eager_pullback, seeds, targets, tape, recorded, closed, stable)


@errors_ignored
def _eager_pullback(
    seeds: Seeds, targets: Sequence[Node], tape: Tape, recorded: bool, closed: bool, stable: bool
) -> list[Any]:
    """The backward pass on values, repeated as the module describes if the result has NaN."""
    target_set = set(targets)
    start = next_serial() if recorded else 0
    cotangents: list[Any] = []
    overflowed = False
    for guarded in (passes := passes_over(tape)):
        linear = linear_nodes(tape) if guarded else None
        ctx = RuleContext(tape.wanted, recorded, guarded, linear, overflowed=overflowed)
        done = _run_pass(tape, seeds, target_set, ctx, closed, cotangents)
        bars = [done.get(n) for n in targets]
        if not recorded:  # a user's rule may return handles
            bars = [b.node.value if isinstance(b, Handle) else b for b in bars]
        done.clear()
        is_nan = any(has_nan(b) for b in bars)
        if not is_nan and (guarded or not infinities.is_infinite(seeds)):
            break
        if not guarded:
            overflowed = infinities.has_overflowed(tape)
            rewrites = overflowed and not stable
            new = infinities.stabilised(tape, list(seeds), targets) if rewrites else None
            if new is not None:
                seeds = gathered((new[n], t) for n, t in seeds.items())
                return pullback(seeds, targets, recorded, closed=closed, stable=True)
            if not is_nan and not overflowed:
                break
    else:
        may_be_limit = any(n.op.differentiation.limits for n in tape.nodes)
        if may_be_limit and len(passes) > 1 and (closed or not recorded):
            done = _with_limits(tape, seeds, target_set)
            bars = [done.get(n) if recorded else value_of(done.get(n)) for n in targets]
    if recorded:
        note_written(tape, bars, start, cotangents)
        return bars
    return owned(bars)


def _with_limits(tape: Tape, seeds: Seeds, targets: set[Node]) -> Bars:
    """A recorded pass, in which operations compute limits (degenerate_eigenvalues.py)."""
    with enable_grad():
        return _run_pass(tape, seeds, targets, RuleContext(tape.wanted, True, True))


@errors_ignored
def _traced_pass(
    tape: Tape,
    seeds: Seeds,
    targets: Sequence[Node],
    masked: bool,
    closed: bool,
    masked_targets: set[Node] | None,
) -> list[Any]:
    """The backward pass as nodes of a graph."""
    with derivation(level_above(seeds)) as recorder:
        seeds = {n: _seed_node(t, n) for n, t in seeds.items()}
        state = _PassState(tape, seeds, set(targets), RuleContext(tape.wanted, True))
        state.guards, state.recorder = TracedGuards(tape, state.ctx, seeds), recorder
        state.closed = closed
        if masked:
            state.guards.masked.update(seeds)
        done = _visit_all(tape, state)
    if masked_targets is not None:
        masked_targets.update(state.guards.masked.intersection(targets))
    return [done.get(n) for n in targets]


def _seed_node(t: Array, node: Node) -> Any:
    """A scalar cotangent as a node, so that broadcasts of it remain one number."""
    if isinstance(t, np.generic) and type(node.spec) is Spec:
        return uniform(Spec((), t.dtype), t.item())
    return t


class _PassState:
    """The state of one backward pass."""

    __slots__ = (
        *("bars", "buffers", "closed", "cotangents", "ctx", "done", "ends", "guards", "nodes"),
        *("owned", "recorder", "targets", "unchanged"),
    )
    guards: TracedGuards | None
    unchanged: UnchangedArrays | None
    recorder: Derivation | Session | None  # stores the user's line of the current node

    def __init__(self, tape: Tape, seeds: Seeds, targets: set[Node], ctx: RuleContext):
        self.bars: Bars = dict(seeds)
        if tape.wanted is not None:  # an output may not depend on a target
            self.bars = {n: t for n, t in seeds.items() if n in tape.wanted}
        if ctx.recorded:
            self.bars = {n: as_handle(t) for n, t in self.bars.items()}
        self.done: Bars = {}  # the cotangents of targets
        self.owned: set[Node] = set()  # nodes whose cotangent is an array that this pass made
        self.buffers = Buffers(self.bars, self.owned, ctx.wanted, targets)
        self.targets, self.ctx, self.ends = targets, ctx, tape.ends
        self.nodes, self.unchanged = tape.nodes, None
        self.guards = None
        self.recorder = None
        self.closed = False
        self.cotangents: list[Any] | None = None  # those passed to rules, if recorded


def _run_pass(
    tape: Tape,
    seeds: Seeds,
    targets: set[Node],
    ctx: RuleContext,
    closed: bool = False,
    cotangents: list[Any] | None = None,
) -> Bars:
    state = _PassState(tape, seeds, targets, ctx)
    state.closed, state.cotangents = closed, cotangents if ctx.recorded else None
    recorder = innermost_session() if ctx.recorded else None
    if recorder is None:
        return _visit_all(tape, state)
    state.recorder = recorder
    with recorder.deriving(1 + max((n.level for n in seeds), default=0)):
        return _visit_all(tape, state)


def _visit_all(tape: Tape, state: _PassState) -> Bars:
    ctx, bars = state.ctx, state.bars
    if ctx.recorded or ctx.guarded or ctx.wanted is not None:
        for node in reversed(tape.nodes):
            t = bars.pop(node, None)
            if t is not None:
                _visit(node, t, state)
    else:
        visit_nodes(tape.nodes, state, _visit)
    for node in bars:  # a contribution arrived after the node was visited
        raise cycle(node)
    return state.done


def _visit(node: Node, t: Any, state: _PassState) -> None:
    """Call the rule of a node with its complete cotangent, and accumulate the contributions."""
    ctx, bars = state.ctx, state.bars
    recorded = ctx.recorded
    if state.recorder is not None:
        state.recorder.enter(node)
    if state.guards is not None and node.args:
        ctx = state.guards.backwards(node, t, state.recorder)
    elif state.cotangents is not None:
        state.cotangents.append(t)
    if type(t) is TupleCotangent and not node.op.differentiation.takes_parts:
        t = complete(t, node, recorded)
    if node.info is not None and node.info.hooks is not None:
        t = through_hooks(node, t)
    if node in state.targets:
        state.done[node] = t
        if state.ends or (node.op is VARIABLE and type(node.args[0]) is not Node):
            return
    args = node.args
    if not args:
        return
    op: Any = node.op
    if recorded:
        out, inputs = handles_of(node, state.closed)
    elif op.vjp_into is not None:
        op.vjp_into(node, t, state.buffers)
        return
    elif op.finds_operands:
        _add_contributions(node, t, state)
        return
    else:
        out, inputs = node.value, _values(args, state)
    contributions = None
    first = inputs[0]
    if type(first) is np.ndarray and first.size >= LEAST_ELEMENTS and _is_plain(ctx):
        contributions = eager_passes.contributions(node, t, out, inputs, ctx)
    if contributions is None:
        rule = op.vjp if op.has_vjp else vjp_from_jvp
        contributions = rule(node, t, out, inputs, ctx)
    if ctx.overflowed:
        contributions = infinities.unknown_slopes(node, [t] * len(args), contributions)
    for a, bar in zip(args, contributions, strict=True):
        if bar is None or not ctx.wants(a):
            continue
        spec = getattr(a.value, "dtype", None), getattr(a.value, "shape", None)
        if spec != (getattr(bar, "dtype", None), getattr(bar, "shape", None)):
            bar = project(bar, a)
        current = bars.get(a)
        bars[a] = bar if current is None else plus(current, bar, a, state)


def _add_contributions(node: Node, t: Any, state: _PassState) -> None:
    """The rule of a node whose operands and value may be on a device, where they stay."""
    op: Any = node.op
    contributions = op.vjp(node, t, None, op.operands_of(node), state.ctx)
    if state.ctx.overflowed:
        contributions = infinities.unknown_slopes(node, [t] * len(node.args), contributions)
    for a, bar in zip(node.args, contributions, strict=True):
        if bar is not None and state.ctx.wants(a):
            state.buffers.add(a, bar)


def _values(args: Sequence[Any], state: _PassState) -> list[Any]:
    """The values of operands; plain arrays are checked to be unchanged."""
    if Watched not in map(type, args):
        return [a.value if isinstance(a, Node) else a for a in args]
    if state.unchanged is None:
        state.unchanged = UnchangedArrays(state.nodes)
    return state.unchanged.values(args)


def _is_plain(ctx: RuleContext) -> bool:
    return not (ctx.recorded or ctx.guarded or ctx.overflowed)


def gathered(pairs: Iterable[tuple[Any, Any]]) -> Bars:
    """Seeds by node: summed if several outputs are one node, and without those of constants."""
    seeds: Bars = {}
    for node, t in pairs:
        if type(node) is Node and t is not None:
            seeds[node] = seeds[node] + t if node in seeds else t
    return seeds


def handles_of(node: Node, closed: bool = False) -> tuple[Any, list[Any]]:
    """The value and the operands of a node as handles, constant ones if `closed`."""
    if closed and not node.is_traced and node.op.vjp_into is None:
        inputs = [as_handle(a.value) if isinstance(a, Node) else a for a in node.args]
        out = node.value
        return tuple(map(as_handle, out)) if type(out) is tuple else as_handle(out), inputs
    inputs = [wrap(a) if isinstance(a, Node) else a for a in node.args]
    # Reading the value of an array that was written to later would reconstruct it.
    if node.op.vjp_into is None:
        several = node.spec if node.is_traced else node.value
        if type(several) is tuple:
            return tuple(wrap(part(node, i)) for i in range(len(several))), inputs
    return wrap(node), inputs


def as_handle(x: Array | tuple[Operand, ...]) -> Any:
    """`x` as a handle; a plain value becomes a constant."""
    return x if isinstance(x, Handle | TupleCotangent | tuple) else wrap(constant(x))


def complete(parts: TupleCotangent, node: Node, recorded: bool) -> tuple[Any, ...]:
    """One cotangent for each output: zeros without contributions, None for an integer output."""
    cotangents: list[Any] = []
    for i, spec in enumerate(node.spec):
        if i in parts:
            cotangents.append(parts[i])
        elif spec.dtype.kind in "fc":
            zero = zeros(spec)
            cotangents.append(as_handle(zero) if recorded else zero)
        else:
            cotangents.append(None)
    return tuple(cotangents)


def through_hooks(node: Node, t: Array) -> Any:
    """The cotangent of a node after its hooks have been called."""
    assert node.info is not None and node.info.hooks is not None
    for hook in list(node.info.hooks.values()):
        handle = as_handle(t)
        changed = hook(handle)
        if changed is not None:
            t = changed if isinstance(t, Handle) else value_of(changed)
            t = project(t, node)
    return t


def has_nan(bar: Any) -> bool:
    """Whether a result contains NaN; the cost is one sum if it does not."""
    value = value_of(bar)
    if value is None or isinstance(value, Handle):
        return False
    if is_large(value) and KERNELS:
        found = kernels().has_nan(value)
        if found is not None:
            return bool(found)
    total = np.add.reduce(value, axis=None) if type(value) is np.ndarray else value
    return bool(total != total) and bool(np.isnan(value).any())


def probe(spec: Spec) -> Node:
    """A variable at zero, to determine the linear map of a rule."""
    zero = zeros(spec)
    return fresh(zero.node if isinstance(zero, Handle) else zero)


def vjp_from_jvp(
    node: Node, t: Any, out: Any, inputs: Sequence[Any], ctx: RuleContext
) -> list[Any]:
    """The VJP of an operation that has only a JVP rule: its transpose."""
    probes = [probe(a.spec) if ctx.wants(a) else None for a in node.args]
    dots = [None if p is None else wrap(p) for p in probes]
    op: Any = node.op
    y_dot = op.jvp(node, dots, out, inputs, PROBE)
    several = type(node.spec) is tuple
    return transpose(node, y_dot if several else [y_dot], t if several else [t], probes, ctx)


def transpose(
    node: Node, outs: Sequence[Any], seeds: Sequence[Any], probes: Sequence[Node | None], ctx: Any
) -> list[Any]:
    """The transpose, applied to `seeds`, of a linear rule that was recorded on `probes`."""
    pairs: list[tuple[Node, Any]] = []
    for out, seed in zip(outs, seeds, strict=True):
        if out is None or seed is None:
            continue
        if not isinstance(out, Handle) or type(out.node) is not Node:
            raise NotDifferentiableError(
                f"{node.op.name} has a rule for one mode only, and that rule computes with plain "
                "numbers, so the rule for the other mode cannot be derived from it. Write the rule "
                f"in wengert operations, or define both{at(node.where)}."
            )
        pairs.append((out.node, project(seed, out.node)))
    live = [p for p in probes if p is not None]
    # If a user's rule is not linear, its derivative at zero is not its transpose.
    unsure = getattr(node.op, "may_be_nonlinear", False)
    recorded = unsure or ctx.recorded or None
    cotangents = pullback(gathered(pairs), live, record=recorded, masked=ctx.guarded)
    if unsure:
        check_linear(node, cotangents, live)
    if unsure and not ctx.recorded:
        cotangents = [
            value_of(x) if type(getattr(x, "node", None)) is not Node else x for x in cotangents
        ]
    bars = iter(cotangents)
    return [None if p is None else next(bars) for p in probes]
