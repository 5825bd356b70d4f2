"""Checkpointing: discard the intermediate values of a function and recompute them when needed.

The call is one node of the tape.  Its operands are the arguments and the recorded values that the
function captures; they are determined by recording one run, whose tape is then dropped.  Its VJP
runs the function again, records it, and differentiates it.

In a graph the call is one node too, with the function as its body; its VJP repeats the body in the
backward pass (control_flow/custom.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

import numpy as np

from wengert._engine.core import pytree, recording
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.dispatch import part
from wengert._engine.core.handle import Handle, is_traced, value_of, wrap
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.message_order import is_used
from wengert._engine.core.node import Node, constant, next_serial
from wengert._engine.core.op import Op, RuleContext
from wengert._engine.core.tracing import eager_info
from wengert._engine.ops.messages import after_tokens, recomputed
from wengert.errors import MutatedError, at, user_line

from .arguments import derived
from .forward import pushforward
from .reverse import gathered, pullback
from .series import propagate
from .series_terms import SeriesCall
from .tape import fresh, older_than, tape_between

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

P = ParamSpec("P")
R = TypeVar("R")

_graphs = LazyModule("wengert._engine.control_flow.custom")


class Rerun(Op):
    """The operation of one checkpointed call."""

    kind = "control"

    def __init__(
        self, fun: Callable[..., Any], structure: Any, leaves: Sequence[Any], slots: Sequence[int]
    ) -> None:
        super().__init__(f"checkpoint_{getattr(fun, '__name__', 'function')}")
        self.fun, self.structure, self.slots = fun, structure, tuple(slots)
        self.leaves = [None if i in slots else x for i, x in enumerate(leaves)]

    def record(self, nodes: Sequence[Node]) -> tuple[list[Any], Any]:
        """Run the function on these nodes; return the leaves of its result."""
        leaves: list[Any] = list(self.leaves)
        for i, node in zip(self.slots, nodes, strict=True):
            leaves[i] = wrap(node)
        args, kwargs = pytree.unflatten(self.structure, leaves)
        with recording.enable_grad():
            result = pytree.flatten(converted(self.fun)(*args, **kwargs))
        if any(leaves[i].node is not n for i, n in zip(self.slots, nodes, strict=True)):
            raise MutatedError(
                f"{self.name}: the function wrote to one of its arguments, but the derivative runs "
                "it again and needs the original value. Copy the argument first (x.copy())"
                f"{at(user_line())}."
            )
        return result

    def run(self, *values: Any) -> Any:
        """The values of the function."""
        with recording.no_grad():
            outs, _ = self.record([constant(v) for v in values[: len(self.slots)]])
        return tuple(value_of(o) for o in outs)

    def vjp(
        self,
        node: Node,
        t: tuple[Array, ...],
        out: tuple[Array, ...],
        inputs: Sequence[Any],
        ctx: RuleContext,
    ) -> Any:
        """Record another run, and pull the cotangent back through it."""
        variables, captured = self._variables(node, inputs)
        outs = self._rerun(node, variables)
        if ctx.recorded and is_used():
            t = tuple([after_tokens(x, [o]) for x, o in zip(t, outs, strict=True)])
        seeds = gathered(zip([getattr(o, "node", None) for o in outs], t, strict=True))
        targets = [*variables, *captured]
        tape = tape_between(seeds, set(targets), ends=True)
        return pullback(seeds, targets, ctx.recorded, tape)

    def jvp(
        self,
        node: Node,
        dots: Sequence[Any],
        out: tuple[Array, ...],
        inputs: list[Array],
        ctx: RuleContext,
    ) -> Any:
        """Record another run, and push the tangents forward through it."""
        variables, captured = self._variables(node, inputs)
        outs = self._rerun(node, variables)
        known = {n: d for n, d in zip([*variables, *captured], dots, strict=True) if d is not None}
        if ctx.recorded and is_used():
            known = {n: after_tokens(d, outs) for n, d in known.items()}
        nodes = [o.node if isinstance(o, Handle) else constant(o) for o in outs]
        live = [n for n in nodes if type(n) is Node]
        tape = tape_between(live, set(known), ends=True)
        tangents = iter(pushforward(live, known, ctx.recorded, tape))
        return tuple(
            _zero_if_none(next(tangents) if type(n) is Node else None, n.value) for n in nodes
        )

    def series(self, call: SeriesCall) -> tuple[list[list[Any] | None], bool]:
        """Record another run, and propagate Taylor coefficients through it."""
        variables, captured = self._variables(call.node, call.operands)
        outs = self._rerun(call.node, variables)
        pairs = zip([*variables, *captured], call.coefficients, strict=True)
        given = {n: of for n, of in pairs if of is not None}
        nodes = [getattr(o, "node", None) for o in outs]
        live = [n for n in nodes if type(n) is Node]
        tape = tape_between(live, set(given), ends=True)
        found, masked = propagate(live, given, call.order, tape, call.recorded, call.masked)
        remaining = iter(found)
        return [next(remaining) if type(n) is Node else None for n in nodes], any(masked)

    def _rerun(self, node: Node, variables: Sequence[Node]) -> list[Any]:
        """The outputs of another recorded run, checked to agree with the first.

        Raises
        ------
        MutatedError
            The function captured other tensors than in the first run, or returned another result.
        """
        start = next_serial()
        outs, _ = self.record(variables)
        live = [o.node for o in outs if isinstance(o, Handle) and type(o.node) is Node]
        known = {*variables, *node.args}
        same = len(outs) == len(node.value) and known.issuperset(older_than(start, live))
        if not same or not all(map(_agree, map(value_of, outs), node.value)):
            raise MutatedError(
                f"{self.name}: when it was run again for the derivative, the function used other "
                "tensors or returned another result. Something that it reads has changed since, or "
                "it is random or keeps state. Pass what changes (a mask, random numbers) as "
                f"arguments, or take the derivative first{at(user_line())}."
            )
        return outs

    def _variables(self, node: Node, inputs: Sequence[Any]) -> tuple[list[Node], list[Node]]:
        """New nodes for the arguments, and the captured nodes unchanged."""
        n = len(self.slots)
        variables = [fresh(x.node if isinstance(x, Handle) else x) for x in inputs[:n]]
        return variables, list(node.args[n:])


def _agree(new: Array, old: Array) -> bool:
    """Whether two runs gave the same result up to rounding."""
    if not isinstance(old, np.ndarray | np.generic) or old.dtype.kind not in "fc":
        return True
    if np.shape(new) != old.shape:
        return False
    with np.errstate(all="ignore"):
        scale = np.max(np.abs(old), initial=0.0, where=np.isfinite(old))
        return np.allclose(new, old, rtol=0.01, atol=0.01 * float(scale), equal_nan=True)


def _zero_if_none(dot: Any, value: Any) -> Any:
    return np.zeros_like(value) if dot is None else dot


@overload
def checkpoint(fun: np.ufunc) -> Callable[..., Any]: ...


@overload
def checkpoint(fun: Callable[P, R]) -> Callable[P, R]: ...


def checkpoint(fun: Callable[P, R]) -> Callable[P, R]:
    """Return a function that recomputes its intermediate values in the backward pass.

    Parameters
    ----------
    fun : callable
        Takes and returns arrays or nested containers of them. It is run again when a derivative
        is taken, so it should have no side effects and give the same result each time.

    Returns
    -------
    callable
        Its derivative costs one more evaluation of `fun`, and keeps only arguments and results in
        memory; in a graph the nodes of `fun` are repeated in the backward pass. In a graph, a
        function that prints, draws random numbers or writes to captured variables is an error.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> f = wg.checkpoint(lambda x: np.sin(np.sin(x)))
    >>> float(wg.grad(f)(0.0))
    1.0
    """
    return derived(fun, _checkpoint, fun)


def _checkpoint(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    if is_used():
        return recomputed(_call, fun, *args, **kwargs)
    return _call(fun, *args, **kwargs)


def _call(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    leaves, structure = pytree.flatten((args, kwargs))
    if any(map(is_traced, leaves)):
        return _graphs.written(fun, leaves, structure)
    slots = [i for i, x in enumerate(leaves) if isinstance(x, Handle)]
    nodes = [leaves[i].node for i in slots]
    op = Rerun(fun, structure, leaves, slots)
    variables = [fresh(n) if type(n) is Node else n for n in nodes]
    start = next_serial()
    outs, out_structure = op.record(variables)
    live = [o.node for o in outs if isinstance(o, Handle) and type(o.node) is Node]
    if any(map(is_traced, outs)):  # the function captured a traced value
        return _graphs.written(fun, leaves, structure)
    if not live or not recording.is_recording():
        return pytree.unflatten(
            out_structure, [_detached(o) if isinstance(o, Handle) else o for o in outs]
        )
    captured = [n for n in older_than(start, live) if n not in set(variables)]
    values = tuple(value_of(o) for o in outs)
    node = Node(op, (*nodes, *captured), value=values)
    if recording.recording_session() is not None:
        node.info = eager_info(node.args)
    results = [
        wrap(part(node, i)) if isinstance(o, Handle) and type(o.node) is Node else o
        for i, o in enumerate(outs)
    ]
    return pytree.unflatten(out_structure, results)


def _detached(x: Handle) -> Any:
    return wrap(constant(x.node.value))
