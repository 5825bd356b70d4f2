"""Loops with independent steps, as operations on whole arrays.

    for j in range(m):                             B[i, :] += A[k:, i] @ B[k:, :]     # k > i
        B[i, j] += A[k:, i] @ B[k:, j]

    for k in range(m):                             C[i, :] += A[i, :] @ B
        C[i, :] += A[i, k] * B[k]

No step may read what another step writes (loop_accesses.py), except that steps may add to a number
or to the same elements of an array (loop_plan.py).  The body, which was traced for one step, is
evaluated for all of them by the batching rules of its operations; elements at the loop counter are
slices (all_steps.py).  This is done where a loop is made, innermost loops first, so that the
derivatives are operations on whole arrays as well.

    vectorized    the results of a loop, or None if it remains a loop
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wengert._engine.core.node import Node
from wengert.errors import WengertError

from .all_steps import AllSteps
from .loop_accesses import Counter
from .loop_plan import Dependent, LoopPlan


def vectorized(
    outputs: Sequence[Node],
    inputs: Sequence[Node],
    start: Sequence[Any],
    counter: Counter,
    length: Any,
    order: Sequence[Node],
    since: int,
    lengths: Mapping[str, Node],
) -> list[Any] | None:
    """The results of a loop as operations on whole arrays.

    Parameters
    ----------
    outputs : sequence of Node
        The carry after a step, and the rows to be stacked; the first is the counter.
    inputs : sequence of Node
        The placeholders for the carry.
    start : sequence
        The carry before the first step.
    counter : Counter
    length : int, Dim or Tensor
        The number of steps; a loop whose number is negative has none.
    order : sequence of Node
        The nodes of a step, in evaluation order.
    since : int
        The serial number of the first node of the body; older nodes are captured.
    lengths : mapping from str to Node
        The lengths of slices that are known only in a step, by name.

    Returns
    -------
    list or None
        As those of the loop, except the counter, which is None.
    """
    try:
        plan = LoopPlan(outputs, inputs, start, counter, order, lengths)
        return AllSteps(plan, length, since).results()
    except (Dependent, WengertError):
        return None
