"""Running the checks of the other files for one y and some x, in order.

First whether y depends on x, then whether the gradient is zero, NaN, infinite, very large or very
small, and finally which parts are slow.

    examine    run the checks
    Options    their options; Examined: their results
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.node import RELEASED, Node
from wengert._engine.core.spec import shown
from wengert.errors import ArgumentError, DerivativeError, MutatedError, at, user_line

from .disconnected import Reads, disconnected
from .extreme_values import first_nonfinite, nonfinite_edges, nonfinite_index, origin, out_of_scale
from .findings import Finding, unique
from .recorded_pass import Backward, ancestors, magnitude, run_backward
from .slow_gradients import slow, timed
from .zero_gradients import unused_elements, vanished_cotangents

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

_AT = re.compile(r"^(?P<message>.*?)(?: \(at (?P<where>[^()]*)\))?\.?$", re.DOTALL)
NO_LINES = (
    "The source lines are not known: compute y in a block `with wengert.note_lines():`, or call "
    "wengert.why(function, *arguments)."
)


class DifferentiatedInput(NamedTuple):
    """One input that the derivative is taken with respect to."""

    name: str
    node: Node


class Options(NamedTuple):
    """The options of the checks.

    time : whether to measure the time of each operation.
    index : the index of an element of the gradient to examine, or None for the whole gradient.
    """

    time: bool = False
    index: Any = None


class Examined(NamedTuple):
    """The results of the checks.

    summary : one sentence.
    findings : the causes.
    gradients : an array, or None, for each target.
    notes : further remarks.
    """

    summary: str
    findings: list[Finding]
    gradients: list[Any]
    notes: list[str]


def examine(
    outputs: Sequence[Node],
    targets: Sequence[DifferentiatedInput],
    reads: Reads | None,
    options: Options,
) -> Examined:
    """Check the gradient of some outputs with respect to some targets.

    Parameters
    ----------
    outputs, targets
        The nodes of y, and of the inputs to differentiate with respect to.
    reads : list or None
        Values that were converted to plain numbers (`core.recording.Session`); None if these were
        not recorded.
    options : Options
    """
    live = [n for n in outputs if type(n) is Node]
    nodes = [t.node for t in targets]
    all_findings: list[Finding] = []
    back: Backward | None = None
    released = any(n.op is RELEASED for n in ancestors(live))
    if live and not released and not any(n.is_traced for n in live):
        try:
            back = run_backward(live, nodes)
        except DerivativeError as error:
            all_findings.append(_failed(error))
    gradients = [None if back is None else back.cotangents.get(n) for n in nodes]
    # If y itself is not finite, checks of its gradient are meaningless.
    nonfinite = [] if back is None else _nonfinite_outputs(live)
    all_findings += nonfinite
    verdicts = []
    causes: list[tuple[DifferentiatedInput, Finding]] = []
    for target, gradient in zip(targets, gradients, strict=True):
        if back is None and all_findings:
            verdicts.append("cannot be computed")
            continue
        target_causes, verdict = _check_target(
            outputs, target, gradient, back, reads, options.index
        )
        if gradient is None or not nonfinite:
            causes += [(target, f) for f in target_causes]
        verdicts.append(verdict)
    all_findings += _with_targets(causes, len(targets))
    all_findings += slow(outputs)
    if options.time:
        all_findings += timed(outputs, {} if back is None else back.cotangents)
    findings = unique(all_findings)
    lines_unknown = reads is None and any(f.where is None for f in findings)
    notes = [NO_LINES] if lines_unknown else []
    return Examined(_summary(outputs, targets, verdicts), findings, gradients, notes)


def _check_target(
    outputs: Sequence[Node],
    target: DifferentiatedInput,
    gradient: Array | None,
    back: Backward | None,
    reads: Reads | None,
    index: int | slice | tuple[int, ...] | None,
) -> tuple[list[Finding], str]:
    """The causes, and a short description of the gradient."""
    node = target.node
    if gradient is None:
        if (
            back is None
            and any(n.is_traced for n in outputs)
            and node in ancestors(outputs, smooth=True)
        ):
            return [], "connected (values are not known: pass arguments)"
        visited = {} if back is None else back.cotangents
        return disconnected(outputs, node, reads or (), visited), "None: y does not depend on it"
    assert back is not None
    if index is not None:
        element = _element(gradient, index)
        if element == 0:
            return unused_elements(outputs, node, index), f"zero at {index}"
        if np.isfinite(element):
            return [], f"{element:.4g} at {index}"
    size = magnitude(gradient)
    if not np.isfinite(size):
        symptom = "nan" if np.isnan(size) else "infinite"
        causes = nonfinite_edges(back, node, symptom)
        return causes, "not a number" if symptom == "nan" else "infinite"
    if size == 0 and np.size(gradient):
        return vanished_cotangents(back, node), "zero"
    return out_of_scale(back, node), f"finite, of magnitude up to {size:.4g}"


def _element(gradient: Array, index: int | slice | tuple[int, ...]) -> Any:
    array = np.asarray(gradient)
    try:
        element = array[index]
    except (IndexError, TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(
            f"why(..., index={index!r}): {error}. The gradient has shape {array.shape}"
            f"{at(user_line())}."
        ) from error
    if np.shape(element) != ():
        raise ArgumentError(
            f"why(..., index={index!r}) of a gradient of shape {array.shape} is not one element. "
            f"Give a number for each axis{at(user_line())}."
        )
    return element


def _nonfinite_outputs(outputs: Sequence[Node]) -> list[Finding]:
    """The origins of nonfinite values of y."""
    findings = []
    for node in outputs:
        index = nonfinite_index(node.value)
        if index is not None:
            symptom = "nan" if np.isnan(np.asarray(node.value)[index]) else "infinite"
            findings.append(first_nonfinite(*origin(node, index), symptom))
    return findings


def _with_targets(
    causes: Sequence[tuple[DifferentiatedInput, Finding]], count: int
) -> list[Finding]:
    """Each cause once, with the names of its targets unless it applies to all."""
    merged: dict[Any, tuple[Finding, list[str]]] = {}
    for target, f in causes:
        key = (f.symptom, f.kind, f.where, f.node, f.node or f.message)
        merged.setdefault(key, (f, []))[1].append(target.name)
    findings = []
    for f, names in merged.values():
        if len(names) < count:
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            f = replace(f, message=f"[{', '.join(names[:4])}{more}] {f.message}")
        findings.append(f)
    return findings


def _failed(error: DerivativeError) -> Finding:
    match = _AT.match(str(error))
    message = str(error) if match is None else match["message"]
    where = None if match is None else match["where"]
    kind = "mutated" if isinstance(error, MutatedError) else "rule"
    return Finding(kind, f"{type(error).__name__}: {message}", None, where, "error")


def _summary(
    outputs: Sequence[Node], targets: Sequence[DifferentiatedInput], verdicts: Sequence[str]
) -> str:
    y = ", ".join(shown(n.spec) for n in outputs[:3]) + (", ..." if len(outputs) > 3 else "")
    lines = [
        f"with respect to {t.name or 'x'} ({shown(t.node.spec)}): {verdict}."
        for t, verdict in zip(targets, verdicts, strict=True)
    ]
    if len(lines) == 1:
        return f"The gradient of y ({y}) {lines[0]}"
    if len(lines) > 12:
        lines = [*lines[:12], f"... and {len(lines) - 12} more."]
    return "\n  ".join([f"The gradient of y ({y})", *lines])
