"""Reverse: from cotangents of outputs to cotangents of inputs, in one walk back.

Lines are visited in the reverse order of their creation, so the cotangent of each is complete, all
its consumers having contributed, before its operation is asked once to pass it on.  Accumulation
is the engine's alone; every style of rule only states contributions.

If nothing outside is recording, the rules run on plain arrays and the sweep leaves no trace;
otherwise they run on handles and the sweep is itself a piece of tape.

A NaN in the result starts the sweep once more, *guarded*: a cotangent that is exactly zero then
gives zero whatever it meets (a branch not taken must not poison the one that was).  The common
case pays one check of the result for this.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.apply import Parts, part
from ..core.handle import Handle, value_of, wrap
from ..core.node import Node, constant
from ..core.op import Sweep
from ..errors import NotDifferentiableError, at
from .buffers import Buffers
from .project import project
from .tape import Tape, fresh, tape_between

Bars = dict[Node, Any]
PROBING = Sweep(recorded=True)  # a rule run on handles, to see what linear map it is


def pullback(
    seeds: Mapping[Node, Any],
    targets: Sequence[Node],
    record: bool | None = None,
    tape: Tape | None = None,
) -> list[Any]:
    """Cotangents of the targets, given cotangents of some outputs.

    Parameters
    ----------
    seeds : mapping from Node
        The cotangent of each output, of its shape and dtype.
    targets : sequence of Node
        The nodes that the derivative is taken by.
    record : bool, optional
        Whether the derivative is to be differentiable itself; by default exactly when something
        recorded that is not a target takes part.

    tape : Tape, optional
        What `tape_between` says of these nodes, if it is known already.

    Returns
    -------
    list
        For each target an array, or a handle if recorded; None where no output depends on it.
    """
    chosen = set(targets)
    if tape is None:
        tape = tape_between(seeds, chosen)
    recorded = tape.foreign if record is None else record
    for guarded in (False, True):
        sweep = Sweep(tape.wanted, recorded, guarded)
        with np.errstate(all="ignore"):
            done = _sweep(tape, seeds, chosen, sweep)
        bars = [done.get(n) for n in targets]
        if not recorded:  # a user's rule may return handles
            bars = [b.node.value if isinstance(b, Handle) else b for b in bars]
        done.clear()
        if not any(has_nan(b) for b in bars):
            break
    return bars if recorded else owned(bars)


def _sweep(tape: Tape, seeds: Mapping[Node, Any], chosen: set[Node], sweep: Sweep) -> Bars:
    recorded, wanted = sweep.recorded, sweep.wanted
    bars: Bars = {n: as_handle(t) for n, t in seeds.items()} if recorded else dict(seeds)
    done: Bars = {}
    buffers: set[Node] = set()  # nodes whose cotangent is a large array of our own
    own = Buffers(bars, buffers, wanted, chosen)
    pop, get = bars.pop, bars.get
    for node in reversed(tape.lines):
        t = pop(node, None)
        if t is None:
            continue
        if type(t) is Parts:
            t = _complete(t, node, recorded)
        if node.extra is not None and "hooks" in node.extra:
            t = _through_hooks(node, t)
        if node in chosen:
            done[node] = t
            if tape.ends:
                continue
        args = node.args
        if not args:
            continue
        op: Any = node.op
        if recorded:
            out, inputs = handles_of(node)
        elif op.vjp_into is not None:
            op.vjp_into(node, t, own)
            continue
        else:
            out, inputs = node.value, values_of(args)
        if op.has_vjp:
            contributions = op.vjp(node, t, out, inputs, sweep)
        else:
            contributions = vjp_from_jvp(node, t, out, inputs, sweep)
        for a, bar in zip(args, contributions):  # noqa: B905 - strict costs time here
            if bar is None or type(a) is not Node or (wanted is not None and a not in wanted):
                continue
            try:
                value = a.value
                if bar.shape != value.shape or bar.dtype is not value.dtype:
                    bar = project(bar, a)
            except AttributeError:
                bar = project(bar, a)
            have = get(a)
            if have is None:
                bars[a] = bar
            elif a in buffers:
                have += bar
            else:
                bars[a] = total = have + bar
                # Below this size a new array costs less than writing into an old one.
                if not recorded and type(total) is np.ndarray and total.size > 4096:
                    buffers.add(a)
    return done


def values_of(args: tuple[Any, ...]) -> Any:
    """The plain values of operands."""
    if len(args) == 2:
        a, b = args
        return (
            a.value if isinstance(a, Node) else a,
            b.value if isinstance(b, Node) else b,
        )
    return [a.value if isinstance(a, Node) else a for a in args]


def handles_of(node: Node) -> tuple[Any, list[Any]]:
    inputs = [wrap(a) if isinstance(a, Node) else a for a in node.args]
    if type(node.value) is tuple:
        return tuple(wrap(part(node, i)) for i in range(len(node.value))), inputs
    return wrap(node), inputs


def as_handle(x: Any) -> Any:
    """A handle on `x`, a constant one if it is a plain value."""
    return x if isinstance(x, Handle | Parts) else wrap(constant(x))


def _complete(parts: Parts, node: Node, recorded: bool) -> tuple[Any, ...]:
    """One cotangent for each output; zeros where none arrived, None where there can be none."""
    full: list[Any] = []
    for i, v in enumerate(node.value):
        if i in parts:
            full.append(parts[i])
        elif np.asarray(v).dtype.kind in "fc":
            zero = np.zeros_like(v)
            full.append(as_handle(zero) if recorded else zero)
        else:
            full.append(None)
    return tuple(full)


def _through_hooks(node: Node, t: Any) -> Any:
    assert node.extra is not None
    for hook in list(node.extra["hooks"].values()):
        handle = as_handle(t)
        changed = hook(handle)
        if changed is not None:
            t = changed if isinstance(t, Handle) else value_of(changed)
            t = project(t, node)
    return t


def has_nan(bar: Any) -> bool:
    value = value_of(bar)
    if value is None:
        return False
    total = np.add.reduce(value, axis=None) if type(value) is np.ndarray else value
    return bool(total != total) and bool(np.isnan(value).any())


def owned(results: list[Any]) -> list[Any]:
    """Plain results that share memory with nothing else and can be written to."""
    for i in range(len(results)):
        if not _is_alone(results, i):
            results[i] = results[i].copy()
    return results


def _is_alone(results: list[Any], i: int) -> bool:
    bar = results[i]
    if type(bar) is not np.ndarray:
        return True
    fresh_memory = bar.base is None and bar.flags.writeable
    return fresh_memory and sys.getrefcount(bar) <= _ALONE


def _references_when_alone() -> int:
    """How many references the only array of a list has, seen from inside `_is_alone`.

    Found by asking, as the number is the interpreter's affair.
    """
    global _ALONE
    for _ALONE in range(1, 20):
        if _is_alone([np.empty(1)], 0):
            break
    return _ALONE


_ALONE = sys.maxsize
_ALONE = _references_when_alone()


def vjp_from_jvp(node: Node, t: Any, out: Any, inputs: Sequence[Any], sweep: Sweep) -> list[Any]:
    """The reverse rule of an operation that states only the forward one: its transpose."""
    probes = [fresh(np.zeros_like(a.value)) if sweep.wants(a) else None for a in node.args]
    dots = [None if p is None else wrap(p) for p in probes]
    op: Any = node.op
    y_dot = op.jvp(node, dots, out, inputs, PROBING)
    return transpose(node, [y_dot], [t], probes, sweep)


def transpose(
    node: Node, outs: Sequence[Any], seeds: Sequence[Any], probes: Sequence[Node | None], sweep: Any
) -> list[Any]:
    """Pull `seeds` back through a linear rule that was recorded on `probes`."""
    pairs: Bars = {}
    for out, seed in zip(outs, seeds, strict=True):
        if out is None or seed is None:
            continue
        if not isinstance(out, Handle) or type(out.node) is not Node:
            raise NotDifferentiableError(
                f"{node.op.name} states a rule for one mode only, and that rule computes with "
                "plain numbers, so the other mode cannot be derived from it. Write the rule in "
                f"wengert operations, or state both modes{at(node.where)}."
            )
        pairs[out.node] = project(seed, out.node)
    live = [p for p in probes if p is not None]
    bars = iter(pullback(pairs, live, record=sweep.recorded or None))
    return [None if p is None else next(bars) for p in probes]
