"""Loops and branches: If, Loop and Scan become `cond`, `while_loop` and `scan`.

Their bodies are graphs that can refer to outer values by name.  A Loop with a known number of steps
becomes a `scan`.  One that ends by a condition becomes a `while_loop`, which cannot stack results
of every step, because their number is unknown.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.control_flow import cond, scan, while_loop
from wengert._engine.core.handle import Handle

from .registry import NodeView, imports


@imports("If")
def _if(n: NodeView, condition: Any) -> Any:
    first, second = n.get("then_branch"), n.get("else_branch")
    if not isinstance(condition, Handle):
        return tuple(n.run_body(first if bool(np.all(condition)) else second, []))
    which: Any = np.reshape(condition, ())  # type: ignore[call-overload]
    out = cond(which, lambda: tuple(n.run_body(first, [])), lambda: tuple(n.run_body(second, [])))
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
        found = n.run_body(body, [*carry, *parts])
        return tuple(found[:carried]), tuple(found[carried:])

    carry, ys = scan(step, tuple(given[:carried]), tuple(xs))
    final = []
    for y, axis, reverse in zip(ys, outs, ends, strict=True):
        y = np.flip(y, 0) if reverse else y
        final.append(np.moveaxis(y, 0, axis) if axis else y)
    return (*carry, *final)


class _ConditionalLoop(Exception):
    """The loop ends by a condition that its body computes."""


@imports("Loop", static=(0, 1), grows=True)
def _loop(n: NodeView, steps: Any, going: Any, *given: Any) -> Any:
    body = n.get("body")
    carried = len(given)
    always = going is None or (not isinstance(going, Handle) and bool(np.all(going)))
    if steps is not None and always:
        try:
            return _fixed_loop(n, body, int(n.number(steps, "number of steps")), given)
        except _ConditionalLoop:
            pass
    if len(body.output) - 1 > carried:
        raise n.unsupported(
            "that ends by a condition and stacks results of every step is not supported: their "
            "number is unknown"
        )
    limit = None if steps is None else int(n.number(steps, "number of steps"))
    start = np.asarray(True) if going is None else going

    def holds(state: Any) -> Any:
        number, on, _ = state
        return on if limit is None else np.logical_and(on, number < limit)

    def step(state: Any) -> Any:
        number, on, carry = state
        again, *rest = n.run_body(body, [number, on, *carry])
        return number + 1, np.reshape(again, ()), tuple(rest)

    begin = (np.asarray(0, np.int64), np.reshape(start, ()), tuple(given))
    return tuple(while_loop(holds, step, begin)[2])


def _fixed_loop(n: NodeView, body: Any, steps: int, given: Any) -> Any:
    """A loop with a known number of steps."""
    carried = len(given)

    def step(carry: Any, number: Any) -> Any:
        again, *rest = n.run_body(body, [number, np.asarray(True), *carry])
        if isinstance(again, Handle) or not bool(np.all(again)):
            raise _ConditionalLoop
        return tuple(rest[:carried]), tuple(rest[carried:])

    n.need((max(steps, 0),), np.int64)
    carry, ys = scan(step, tuple(given), np.arange(steps))
    return (*carry, *ys)
