"""Running the checks of the other files for one y and some x, in order.

First whether y depends on x, then whether the gradient is zero, NaN, infinite, very large or very
small; finally slow parts.
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

from .backward_trace import Backward, magnitude, swept
from .dependency_trace import ancestors
from .disconnected import Reads, disconnected
from .findings import Finding, unique
from .gradient_scale import out_of_scale
from .nonfinite_gradients import culprits
from .nonfinite_values import bad_index, first_nonfinite, origin
from .slow_gradients import slow, timed
from .zero_elements import unused_elements
from .zero_gradients import vanished_cotangents

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

_AT = re.compile(r"^(?P<message>.*?)(?: \(at (?P<where>[^()]*)\))?\.?$", re.DOTALL)
NO_LINES = (
    "The source lines are not known: compute y in a block `with wengert.note_lines():`, or ask "
    "wengert.why(function, *arguments)."
)


class DifferentiatedInput(NamedTuple):
    """One input that the derivative is taken with respect to."""

    name: str
    node: Node


class How(NamedTuple):
    """Options of the checks.

    time : whether to measure.
    index : of one element of the gradient, or None for all of it.
    """

    time: bool = False
    index: Any = None


class Examined(NamedTuple):
    """The results of the checks.

    summary : one sentence.
    findings : the causes.
    gradients : for each target an array, or None.
    notes : further remarks.
    """

    summary: str
    findings: list[Finding]
    gradients: list[Any]
    notes: list[str]


def examine(
    outputs: Sequence[Node], targets: Sequence[DifferentiatedInput], reads: Reads | None, how: How
) -> Examined:
    """Check the gradient of some outputs with respect to some targets.

    Parameters
    ----------
    outputs, targets
        The nodes of y, and of the inputs to differentiate with respect to.
    reads : list or None
        Values that were converted to plain numbers (`core.recording.Session`); None if not noted.
    how : How
    """
    live = [n for n in outputs if type(n) is Node]
    nodes = [t.node for t in targets]
    found: list[Finding] = []
    back: Backward | None = None
    released = any(n.op is RELEASED for n in ancestors(live))
    if live and not released and not any(n.is_traced for n in live):
        try:
            back = swept(live, nodes)
        except DerivativeError as error:
            found.append(_failed(error))
    gradients = [None if back is None else back.cotangents.get(n) for n in nodes]
    bad = [] if back is None else _values(live)  # later checks are meaningless then
    found += bad
    words = []
    causes: list[tuple[DifferentiatedInput, Finding]] = []
    for target, gradient in zip(targets, gradients, strict=True):
        if back is None and found:
            words.append("cannot be taken")
            continue
        of_this, word = _of_target(outputs, target, gradient, back, reads, how.index)
        if gradient is None or not bad:
            causes += [(target, f) for f in of_this]
        words.append(word)
    found += _addressed(causes, len(targets))
    found += slow(outputs)
    if how.time:
        found += timed(outputs, {} if back is None else back.cotangents)
    findings = unique(found)
    unknown = reads is None and any(f.where is None for f in findings)
    notes = [NO_LINES] if unknown else []
    return Examined(_summary(outputs, targets, words), findings, gradients, notes)


def _of_target(
    outputs: Sequence[Node],
    target: DifferentiatedInput,
    gradient: Array | None,
    back: Backward | None,
    reads: Reads | None,
    index: int | slice | tuple[int, ...] | None,
) -> tuple[list[Finding], str]:
    """The causes, and one word for the gradient."""
    node = target.node
    if gradient is None:
        if (
            back is None
            and any(n.is_traced for n in outputs)
            and node in ancestors(outputs, smooth=True)
        ):
            return [], "connected (its values are not known: pass some)"
        visited = {} if back is None else back.cotangents
        return disconnected(outputs, node, reads or (), visited), "None: y is not connected to it"
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
        causes = culprits(back, node, symptom)
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


def _values(outputs: Sequence[Node]) -> list[Finding]:
    """The origins of non-finite values of y."""
    found = []
    for node in outputs:
        index = bad_index(node.value)
        if index is not None:
            symptom = "nan" if np.isnan(np.asarray(node.value)[index]) else "infinite"
            found.append(first_nonfinite(*origin(node, index), symptom))
    return found


def _addressed(causes: Sequence[tuple[DifferentiatedInput, Finding]], count: int) -> list[Finding]:
    """Each cause once, with the names of its targets unless it applies to all."""
    merged: dict[Any, tuple[Finding, list[str]]] = {}
    for target, f in causes:
        key = (f.symptom, f.kind, f.where, f.node, f.node or f.message)
        merged.setdefault(key, (f, []))[1].append(target.name)
    found = []
    for f, names in merged.values():
        if len(names) < count:
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            f = replace(f, message=f"[by {', '.join(names[:4])}{more}] {f.message}")
        found.append(f)
    return found


def _failed(error: DerivativeError) -> Finding:
    found = _AT.match(str(error))
    message = str(error) if found is None else found["message"]
    where = None if found is None else found["where"]
    kind = "mutated" if isinstance(error, MutatedError) else "rule"
    return Finding(kind, f"{type(error).__name__}: {message}", None, where, "error")


def _summary(
    outputs: Sequence[Node], targets: Sequence[DifferentiatedInput], words: Sequence[str]
) -> str:
    y = ", ".join(shown(n.spec) for n in outputs[:3]) + (", ..." if len(outputs) > 3 else "")
    nodes = [
        f"by {t.name or 'x'} ({shown(t.node.spec)}): {word}."
        for t, word in zip(targets, words, strict=True)
    ]
    if len(nodes) == 1:
        return f"The gradient of y ({y}) {nodes[0]}"
    if len(nodes) > 12:
        nodes = [*nodes[:12], f"... and {len(nodes) - 12} more."]
    return "\n  ".join([f"The gradient of y ({y})", *nodes])
