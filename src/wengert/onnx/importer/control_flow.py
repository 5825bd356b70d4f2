"""Loops and branches: If, Loop and Scan become `cond`, `while_loop` and `scan`.

Their bodies are graphs inside the file, which see what stands outside by its name.  A Loop that
ends after a known number of steps is a `scan`; one that says itself when it ends is a `while_loop`,
and then cannot collect results of every step, as their number would not be known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.control_flow import cond, scan, while_loop
from wengert._engine.core.handle import Handle

from .node_view import NodeView
from .registry import imports


@imports("If")
def _if(n: NodeView, condition: Any) -> Any:
    first, second = n.get("then_branch"), n.get("else_branch")
    if not isinstance(condition, Handle):
        return tuple(n.inside(first if bool(np.all(condition)) else second, []))
    which: Any = np.reshape(condition, ())  # type: ignore[call-overload]
    out = cond(which, lambda: tuple(n.inside(first, [])), lambda: tuple(n.inside(second, [])))
    return tuple(out)


@imports("Scan", grows=True)
def _scan(n: NodeView, *given: Any) -> Any:
    body, count = n.get("body"), n.get("num_scan_inputs")
    carried = len(given) - count
    results = len(body.output) - carried
    axes = list(n.get("scan_input_axes") or [0] * count)
    outs = list(n.get("scan_output_axes") or [0] * results)
    back = list(n.get("scan_input_directions") or [0] * count)
    ends = list(n.get("scan_output_directions") or [0] * results)
    xs = []
    for x, axis, reverse in zip(given[carried:], axes, back, strict=True):
        x = np.moveaxis(x, axis, 0) if axis else x
        xs.append(np.flip(x, 0) if reverse else x)

    def step(carry: Any, parts: Any) -> Any:
        found = n.inside(body, [*carry, *parts])
        return tuple(found[:carried]), tuple(found[carried:])

    carry, ys = scan(step, tuple(given[:carried]), tuple(xs))
    final = []
    for y, axis, reverse in zip(ys, outs, ends, strict=True):
        y = np.flip(y, 0) if reverse else y
        final.append(np.moveaxis(y, 0, axis) if axis else y)
    return (*carry, *final)


class _Ends(Exception):
    """The body itself says when the loop ends."""


@imports("Loop", static=(0, 1), grows=True)
def _loop(n: NodeView, steps: Any, going: Any, *given: Any) -> Any:
    body = n.get("body")
    carried = len(given)
    always = going is None or (not isinstance(going, Handle) and bool(np.all(going)))
    if steps is not None and always:
        try:
            return _counted(n, body, int(n.number(steps, "number of steps")), given)
        except _Ends:
            pass
    if len(body.output) - 1 > carried:
        raise n.refused(
            "that ends by a condition and collects results of every step is not supported: their "
            "number would not be known"
        )
    limit = None if steps is None else int(n.number(steps, "number of steps"))
    start = np.asarray(True) if going is None else going

    def holds(state: Any) -> Any:
        number, on, _ = state
        return on if limit is None else np.logical_and(on, number < limit)

    def step(state: Any) -> Any:
        number, on, carry = state
        again, *rest = n.inside(body, [number, on, *carry])
        return number + 1, np.reshape(again, ()), tuple(rest)

    begin = (np.asarray(0, np.int64), np.reshape(start, ()), tuple(given))
    return tuple(while_loop(holds, step, begin)[2])


def _counted(n: NodeView, body: Any, steps: int, given: Any) -> Any:
    """A loop of a known number of steps."""
    carried = len(given)

    def step(carry: Any, number: Any) -> Any:
        again, *rest = n.inside(body, [number, np.asarray(True), *carry])
        if isinstance(again, Handle) or not bool(np.all(again)):
            raise _Ends
        return tuple(rest[:carried]), tuple(rest[carried:])

    n.need((max(steps, 0),), np.int64)
    carry, ys = scan(step, tuple(given), np.arange(steps))
    return (*carry, *ys)
