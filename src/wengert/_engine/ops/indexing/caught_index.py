"""Indices that may be out of bounds inside of a ``try`` statement that expects this.

    try: v = x[k]            # in a compiled program the index is checked when it runs
    except IndexError: v = 0.0

refuse_caught    refuse computed indices that are not known to be in range
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.core.handle import is_traced, shape_of
from wengert._engine.core.runtime_checks import may_be_caught
from wengert.errors import TraceError, at, user_line

from .slice_ends import linear


def refuse_caught(x: Any, operands: Sequence[Any]) -> None:
    """Refuse computed indices whose IndexError a try statement of the user's would catch.

    Raises
    ------
    TraceError
    """
    if not operands or not any(map(is_traced, operands)):
        return
    if not may_be_caught(IndexError, by_name=True):
        return
    shape = shape_of(x)
    if len(operands) == 1 and not shape_of(operands[0]) and shape:
        form = linear(operands[0])
        if form.is_at_least_zero() and linear(shape[0] - 1).plus(form, -1).is_at_least_zero():
            return
    raise TraceError(
        "a try statement catches IndexError, and whether an index is out of bounds depends on "
        "values that are not known while a graph is built. Compare it with the length, "
        f"if 0 <= i < len(x): ... else: ...{at(user_line())}."
    )
