"""The forward pass: from tangents of inputs to tangents of outputs.

The counterpart of reverse.py, on the same tape; the derivative is recorded, and the pass is
repeated, under the same conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import runtime_checks
from wengert._engine.core.handle import Handle, is_traced, wrap
from wengert._engine.core.node import Node, next_serial
from wengert._engine.core.op import RuleContext, lookup
from wengert._engine.core.recording import Session, enable_grad, innermost_session, switches
from wengert._engine.core.thread_state import errors_ignored
from wengert._engine.core.tracing import Derivation, derivation, level_above
from wengert._engine.ops.linalg.linear_solve import ForwardMode

from . import infinities
from .eager_passes import Tangents, owned
from .infinities import TracedGuards, cast, expand, linear_nodes, note_written, project
from .reverse import PROBE, as_handle, gathered, handles_of, has_nan, probe, pullback, transpose
from .tape import Tape, cycle, fresh, passes_over, tape_between

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


def pushforward(
    outputs: Sequence[Node],
    tangents: Mapping[Node, Any],
    record: bool | None = None,
    tape: Tape | None = None,
    closed: bool = False,
    masked: bool = False,
    masked_outputs: set[Node] | None = None,
    stable: bool = False,
) -> list[Any]:
    """Tangents of the outputs, given tangents of some inputs.

    Parameters
    ----------
    outputs : sequence of Node
        The nodes whose tangents are computed.
    tangents : mapping from Node
        The tangent of each input, with its shape and dtype.
    record : bool, optional
        Whether the derivative is to be differentiable itself; by default exactly when something
        recorded that is not an input takes part.
    tape : Tape, optional
        The result of `tape_between` for these nodes, if it has been computed already.
    closed : bool
        As in `reverse.pullback`.
    masked : bool
        Whether the tangents of the inputs may contain zeros for branches that were not taken.
    masked_outputs : set of Node, optional
        The outputs whose tangents may contain such zeros are added to it, as far as they can be
        found in a graph.
    stable : bool
        As in `reverse.pullback`.

    Returns
    -------
    list
        For each output an array, or a handle if recorded; None where it depends on no input.
    """
    if tape is None:
        tape = tape_between(outputs, set(tangents))
    recorded = tape.foreign if record is None else record
    recorded = recorded or any(isinstance(t, Handle) for t in tangents.values())
    if tape.traced or any(map(is_traced, tangents.values())):
        return _traced_pass(tape, tangents, outputs, closed, masked, masked_outputs)
    checks = runtime_checks.current_checks() if switches.count else None
    if checks is not None:
        with runtime_checks.unchecked():
            result = pushforward(outputs, tangents, recorded, tape, closed)
        checks.locator.report_forward(checks, tape, tangents, outputs, result)
        return result
    return _eager_pushforward(outputs, tangents, tape, recorded, closed, stable)


@errors_ignored
def _eager_pushforward(
    outputs: Sequence[Node],
    tangents: Mapping[Node, Any],
    tape: Tape,
    recorded: bool,
    closed: bool,
    stable: bool,
) -> list[Any]:
    """The forward pass on values, repeated as for `reverse.pullback` if the result has NaN."""
    start = next_serial() if recorded else 0
    overflowed = False
    passes = passes_over(tape)
    for guarded in passes:
        linear = linear_nodes(tape) if guarded else None
        ctx = RuleContext(tape.wanted, recorded, guarded, linear, overflowed=overflowed)
        dots = _eager_pass(tape, tangents, ctx, outputs, closed)
        result = [dots.get(n) for n in outputs]
        is_nan = any(has_nan(d) for d in result)
        if not is_nan and (guarded or not infinities.is_infinite(outputs)):
            break
        if not guarded:
            overflowed = infinities.has_overflowed(tape)
            rewrites = overflowed and not stable
            new = infinities.stabilised(tape, outputs, list(tangents)) if rewrites else None
            if new is not None:
                outputs = [new[n] for n in outputs]
                return pushforward(outputs, tangents, recorded, closed=closed, stable=True)
            if not is_nan and not overflowed:
                break
    else:
        if len(passes) > 1 and any(n.op.differentiation.limits for n in tape.nodes):
            result = _by_reverse(outputs, tangents, recorded)
    if recorded:
        note_written(tape, result, start, dots.values())
        return result
    dots.clear()
    return owned(result)


def _by_reverse(outputs: Sequence[Node], tangents: Mapping[Node, Any], recorded: bool) -> list[Any]:
    """The tangents as the transpose of the backward pass, whose rules can compute limits.

    The pass is linear in the seeds, which may be any numbers. They are different and nonzero, so
    that a rule notices a cotangent that has to be zero for the limit to exist.
    """
    with enable_grad():
        seeds = {n: fresh(_nonzero_like(n.value)) for n in dict.fromkeys(outputs)}
        bars = pullback({n: wrap(s) for n, s in seeds.items()}, list(tangents), record=True)
        pairs = [(b.node, t) for b, t in zip(bars, tangents.values(), strict=True) if b is not None]
        dots = pullback(gathered(pairs), list(seeds.values()), record=recorded)
    by_node = dict(zip(seeds, dots, strict=True))
    return [by_node[n] for n in outputs]


def _nonzero_like(value: Array) -> Any:
    value = np.asarray(value)
    return np.cos(1.0 + np.arange(value.size)).reshape(value.shape).astype(value.dtype)


@errors_ignored
def _traced_pass(
    tape: Tape,
    tangents: Mapping[Node, Any],
    outputs: Sequence[Node],
    closed: bool,
    masked: bool,
    masked_outputs: set[Node] | None,
) -> list[Any]:
    """The forward pass as nodes of a graph."""
    guards = TracedGuards(tape, RuleContext(tape.wanted, True), tangents)
    if masked:
        guards.masked.update(tangents)
    with derivation(level_above(outputs)) as recorder:
        dots = _run_pass(tape, tangents, guards.open, outputs, guards, recorder, closed)
    if masked_outputs is not None:
        masked_outputs.update(guards.masked.intersection(outputs))
    return [dots.get(n) for n in outputs]


def _eager_pass(
    tape: Tape,
    tangents: Mapping[Node, Any],
    ctx: RuleContext,
    outputs: Sequence[Node],
    closed: bool,
) -> dict[Node, Any]:
    """The forward pass on values; nodes get the user's lines while a session records them."""
    recorder = innermost_session() if ctx.recorded else None
    if recorder is None:
        return _run_pass(tape, tangents, ctx, outputs, closed=closed)
    with recorder.deriving(1 + max((n.level for n in outputs), default=0)):
        return _run_pass(tape, tangents, ctx, outputs, recorder=recorder, closed=closed)


def _run_pass(
    tape: Tape,
    tangents: Mapping[Node, Any],
    ctx: RuleContext,
    outputs: Sequence[Node],
    guards: TracedGuards | None = None,
    recorder: Derivation | Session | None = None,
    closed: bool = False,
) -> dict[Node, Any]:
    """The tangents of all nodes; `recorder` stores the user's line of the current node."""
    recorded = ctx.recorded
    known = {n: as_handle(t) if recorded else t for n, t in tangents.items()}
    buffers = Tangents(known, tape.nodes, outputs)
    for node in tape.nodes:
        args = node.args
        if node in known or not args:
            continue
        dots: list[Any] = []
        depends = is_cyclic = False
        for a in args:
            dot = None
            if type(a) is Node:
                dot = known.get(a)
                depends = depends or dot is not None
                is_cyclic = is_cyclic or a.serial >= node.serial
            dots.append(dot)
        if not depends:
            continue
        if is_cyclic:
            raise cycle(node)
        op: Any = node.op
        if recorder is not None:
            recorder.enter(node)
        if guards is not None:
            ctx = guards.forwards(node, dots, recorder)
        if recorded:
            out, inputs = handles_of(node, closed)
        elif op.jvp_into is not None:
            known[node] = op.jvp_into(node, dots, buffers)
            continue
        else:
            out, inputs = node.value, [a.value if isinstance(a, Node) else a for a in args]
        if op.has_jvp:
            dot = op.jvp(node, dots, out, inputs, ctx)
        else:
            dot = jvp_from_vjp(node, dots, out, inputs, ctx)
        if ctx.overflowed and len(args) == 1:
            (dot,) = infinities.unknown_slopes(node, dots, [dot])
        if dot is None:
            continue
        is_settled = not recorded and type(dot) is np.ndarray and type(out) is np.ndarray
        if is_settled and dot.shape == out.shape and dot.dtype is out.dtype:
            known[node] = dot
        else:
            known[node] = settle(dot, node, recorded)
    return known


def settle(dot: Any, node: Node, recorded: bool) -> Any:
    """A tangent with the shape and dtype of the value of `node`."""
    if node.op.vjp_into is not None or node.is_traced:
        value = node.spec  # reading an outdated value would reconstruct it
    else:
        value = node.value
    if type(value) is tuple:
        return tuple(dot)
    if not recorded and isinstance(dot, Handle):
        dot = dot.node.value
    if not hasattr(dot, "dtype"):
        dot = np.asarray(dot, dtype=value.dtype)
    if dot.shape != value.shape:
        if isinstance(dot, Handle):
            dot = lookup("broadcast_to")(dot, shape=value.shape)
        else:
            dot = expand(dot, value.shape)
    return cast(dot, value.dtype)


def jvp_from_vjp(node: Node, dots: Sequence[Any], out: Any, inputs: Any, ctx: RuleContext) -> Any:
    """The JVP of an operation that has only a VJP rule: its transpose."""
    value = node.spec
    values = value if type(value) is tuple else (value,)
    probes = [probe(s) if s.dtype.kind in "fc" else None for s in values]
    ts = [None if p is None else wrap(p) for p in probes]
    op: Any = node.op
    bars = op.vjp(node, tuple(ts) if type(value) is tuple else ts[0], out, inputs, PROBE)
    outs, seeds = [], []
    for bar, a, dot in zip(bars, node.args, dots, strict=True):
        if bar is not None and dot is not None:
            outs.append(project(bar, a))
            seeds.append(dot)
    result = transpose(node, outs, seeds, probes, ctx)
    return tuple(result) if type(value) is tuple else result[0]


@errors_ignored
def _along_values(outputs: Sequence[Node], tangents: Mapping[Node, Any]) -> list[Any]:
    """Recorded tangents for a limit, computed without further limits."""
    tape = tape_between(outputs, set(tangents))
    dots = _eager_pass(tape, tangents, RuleContext(tape.wanted, True, True), outputs, False)
    return [dots.get(n) for n in outputs]


ForwardMode.pushforward = staticmethod(_along_values)
