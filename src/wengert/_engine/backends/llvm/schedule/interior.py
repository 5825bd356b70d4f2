"""Interiors: ranges of axes in which the conditions of selections have one result.

`x[1:-1] = v` as a loop over x chooses v or x in each step.  From 1 to n - 1 it is always v.

    interiors_of    such a range for each axis that has one
    always          whether a condition holds everywhere in such ranges
    is_at_least     whether an index is never below a bound, wherever it is
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from ..ir.affine import Affine, Length, size_of
from ..lowering.loop_ir import Condition
from ..tuning import thresholds

Range = tuple[int, int]


def interiors_of(
    axes: Mapping[int, Length], conditions: Iterable[Condition], weight: int
) -> dict[int, Range]:
    """The longest range of each axis in which all conditions have one result.

    Parameters
    ----------
    axes : mapping from int to Length
        The length of each axis, by its counter.
    conditions : iterable of Condition
    weight : int
        The work of one step, and so the size of its code.

    Returns
    -------
    dict
        Of axes that are longer than this range, which is more than half of them.

    Examples
    --------
    >>> from wengert._engine.backends.llvm.ir.affine import counter
    >>> from wengert._engine.backends.llvm.lowering.loop_ir import Condition
    >>> from wengert._engine.backends.llvm.schedule.interior import interiors_of
    >>> interiors_of({0: 5000}, [Condition(counter(0).plus(-1), 0, 4998)], weight=4)
    {0: (1, 4999)}
    """
    size = size_of(tuple(axes.values()))
    if type(size) is not int or size < thresholds.interior_elements:
        return {}
    if weight > thresholds.interior_work:
        return {}
    cuts: dict[int, set[int]] = {}
    for condition in conditions:
        for counter, place in _cuts(condition):
            cuts.setdefault(counter, set()).add(place)
    found: dict[int, Range] = {}
    for counter, places in cuts.items():
        if counter not in axes:
            continue
        n = axes[counter]
        ends = sorted({0, n, *[p for p in places if 0 < p < n]})
        low, high = max(pairwise(ends), key=lambda r: r[1] - r[0])
        if high - low < n and 2 * (high - low) > n:
            found[counter] = low, high
    return found


def _cuts(condition: Condition) -> list[tuple[int, int]]:
    """The counter of a condition, and where its result changes; nothing if that is not known."""
    form, low, high = condition
    if len(form.terms) != 1:
        return []
    ((counter, factor),) = form.terms
    if any(type(n) is not int for n in (form.offset, factor, low, high)):
        return []
    if factor > 0:
        return [(counter, -((form.offset - end) // factor)) for end in (low, high)]
    return [(counter, (form.offset - end) // -factor + 1) for end in (low, high)]


def always(condition: Condition, bounds: Mapping[int, Range]) -> bool | None:
    """Whether a condition holds for all counters within bounds, or for none; None if for some.

    Examples
    --------
    >>> from wengert._engine.backends.llvm.ir.affine import counter
    >>> from wengert._engine.backends.llvm.lowering.loop_ir import Condition
    >>> from wengert._engine.backends.llvm.schedule.interior import always
    >>> condition = Condition(counter(0).plus(-1), 0, 97)
    >>> [always(condition, {0: r}) for r in [(1, 98), (98, 100), (0, 98)]]
    [True, False, None]
    """
    form, low, high = condition
    least = most = form.offset
    if any(type(n) is not int for n in (least, low, high)):
        return None
    for counter, factor in form.terms:
        if counter not in bounds or type(factor) is not int:
            return None
        first, end = bounds[counter]
        ends = factor * first, factor * (end - 1)
        least, most = least + min(ends), most + max(ends)
    if low <= least and most < high:
        return True
    return False if most < low or least >= high else None


def is_at_least(form: Affine, low: Length) -> bool:
    """Whether an affine expression is provably never below a bound, as counters are not below 0."""
    numbers = [form.offset, low, *[f for _, f in form.terms]]
    if any(type(n) is not int for n in numbers):
        return False
    return form.offset >= low and all(f >= 0 for _, f in form.terms)
