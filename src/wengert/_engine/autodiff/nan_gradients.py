"""Unfit: which operation gave the first NaN or infinity of a derivative.

A sweep's intermediate numbers may be infinite, and what was not chosen may be NaN, without any
harm; so a sweep is asked about its *results*.  If one is bad, it is walked once more, and the
first step that makes a bad number of good ones is told, with the user's line of its operation.

    tell_backward   of a reverse sweep
    tell_forward    of a forward sweep
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import value_of
from wengert._engine.core.node import Node
from wengert._engine.core.nonfinite_checks import Checks, short
from wengert.errors import at

from .tape import Tape
from .traced_sweep import tangents, watched

Values = Mapping[Node, Any]


def tell_backward(checks: Checks, tape: Tape, seeds: Values, results: Sequence[Any]) -> None:
    """Tell of the first operation whose cotangents are bad, if a result is."""
    if not any(checks.is_bad(value_of(r)) for r in results):
        return
    plain = {n: value_of(t) for n, t in seeds.items()}
    infinite: Node | None = None
    finite = Checks(nan=True, inf=True, raises=False)
    with np.errstate(all="ignore"):
        for step in watched(tape, plain, guarded=True):
            if checks.is_bad(step.cotangent):
                continue  # it was found before, or the sweep began with it
            for i, bar in enumerate(step.passed):
                if checks.is_bad(bar):
                    began = infinite if finite.is_bad(step.cotangent) else None
                    what = f"gradient by operand {i}"
                    _tell(checks, step.node, what, bar, step.cotangent, began)
                    return
                if infinite is None and finite.is_bad(bar):
                    infinite = step.node


def tell_forward(
    checks: Checks, tape: Tape, given: Values, outputs: Sequence[Node], results: Sequence[Any]
) -> None:
    """Tell of the first operation whose tangent is bad, if a result is."""
    if not any(checks.is_bad(value_of(r)) for r in results):
        return
    with np.errstate(all="ignore"):
        dots = tangents(tape, {n: value_of(t) for n, t in given.items()})
    live = {n for n, r in zip(outputs, results, strict=True) if checks.is_bad(value_of(r))}
    for node in reversed(tape.lines):  # those that a bad result was computed from
        if node in live:
            live.update(a for a in node.args_as_nodes() if checks.is_bad(dots.get(a)))
    for node in tape.lines:
        before = [dots[a] for a in node.args_as_nodes() if a in dots]
        if node in live and node.args and not checks.is_bad(tuple(before)):
            _tell(checks, node, "derivative", dots[node], tuple(before), None)
            return


def _tell(
    checks: Checks, node: Node, what: str, bad: Any, given: Any, infinite: Node | None
) -> None:
    element, index = checks.first(bad) or (None, ())
    place = f" at index {index}" if index else ""
    operands = "; ".join(short(a.value if isinstance(a, Node) else a) for a in node.args)
    began = ""
    if infinite is not None:
        began = f", whose infinity began in the gradient of {infinite.op.name}{at(infinite.where)}"
    checks.report(
        f"the {what} of {node.op.name} is {element}{place}; its operands are {operands}, and it "
        f"was given the derivative {short(given)}{began}. Keep the operands away from points where "
        "the slope is infinite or none (np.where around them, or clip them); wengert.why says more",
        node.where,
    )
