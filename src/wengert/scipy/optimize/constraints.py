"""Constraints of minimization problems, in all of SciPy's forms.

Constraints       as two functions: equalities and inequalities
known_values      the sides of a constraint, as far as they are known
plain_start       an initial guess as a plain vector
bounds_of         bounds as two vectors
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.ops import casts
from wengert._engine.ops.joining import stacked
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import converted_when_called, floating, holds_tensors
from .solver_operation import Function


class Constraints:
    """Constraints as two functions: equalities that are zero, inequalities that are not negative.

    Parameters
    ----------
    given : dict, LinearConstraint, NonlinearConstraint, or sequence of them
    x0 : array
        Where the functions are called once, for their shapes.
    """

    def __init__(self, given: Any, x0: Any) -> None:
        self.equalities: list[Function] = []
        self.inequalities: list[Function] = []
        items = [given] if isinstance(given, dict) or hasattr(given, "lb") else list(given or ())
        for c in items:
            if isinstance(c, dict):
                self._add_dict(c)
            elif isinstance(c, scipy.optimize.LinearConstraint):
                a = c.A.toarray() if hasattr(c.A, "toarray") else as_array(c.A)
                self._add_interval(functools.partial(np.matmul, a), c.lb, c.ub, x0)
            elif isinstance(c, scipy.optimize.NonlinearConstraint):
                self._add_interval(converted_when_called(c.fun), c.lb, c.ub, x0)
            else:
                raise ArgumentError(
                    f"minimize: a constraint is a {type(c).__name__}. Give a dict, a "
                    f"LinearConstraint or a NonlinearConstraint{at(user_line())}."
                )

    def _add_dict(self, c: dict[str, Any]) -> None:
        kind, args = str(c.get("type", "")).lower(), tuple(c.get("args", ()))
        if kind not in ("eq", "ineq"):
            raise ArgumentError(
                f"minimize: a constraint has the type {c.get('type')!r}. It is 'eq' for an "
                f"equality or 'ineq' for an inequality{at(user_line())}."
            )
        fun = converted_when_called(c["fun"])
        target = self.equalities if kind == "eq" else self.inequalities
        target.append(lambda x: fun(x, *args))

    def _add_interval(self, fun: Function, lower: Any, upper: Any, x0: Any) -> None:
        size = int(np.size(value_of(floating(fun(np.asarray(value_of(x0)))))))
        low, high = (
            np.broadcast_to(casts.astype(floating(_joined(end)), float).reshape(-1), (size,))
            for end in (lower, upper)
        )
        plain_low, plain_high = known_values(low), known_values(high)
        same = plain_low == plain_high
        equal = np.flatnonzero(same)
        below = np.flatnonzero(~same & ~np.isinf(plain_low))
        above = np.flatnonzero(~same & ~np.isinf(plain_high))

        def values(x: Any) -> Any:
            return np.reshape(floating(fun(x)), (-1,))

        if equal.size:
            self.equalities.append(lambda x: values(x)[equal] - low[equal])
        if below.size:
            self.inequalities.append(lambda x: values(x)[below] - low[below])
        if above.size:
            self.inequalities.append(lambda x: high[above] - values(x)[above])

    def values(self, x: Any) -> list[Any]:
        """The results of all functions."""
        return [f(x) for f in (*self.equalities, *self.inequalities)]

    @staticmethod
    def joined(functions: Sequence[Function]) -> Function:
        """The functions as one, of vectors."""
        return lambda x: np.concatenate([np.reshape(floating(f(x)), (-1,)) for f in functions])


def plain_start(x0: Any) -> np.ndarray[Any, Any]:
    """An initial guess as a plain vector, for shapes; in a graph, where it is not known, 0.5."""
    value = value_of(_joined(x0))
    if is_traced(value):
        return np.full(int(np.size(floating(value))), 0.5)
    return np.atleast_1d(np.asarray(value, float)).reshape(-1)


class Ends:
    """Lower and upper bounds, which may be tensors."""

    def __init__(self, ends: Sequence[Any]) -> None:
        self.lb, self.ub = ends


def known_values(side: Any) -> Any:
    """The values of a vector; NaN, which equals nothing, in a graph.

    So in a graph equal sides of a constraint are two inequalities. Only one of them has a
    multiplier that is not zero, so the derivative is the same.
    """
    value = value_of(side)
    return np.full(value.shape, np.nan) if is_traced(value) else np.asarray(value)


def _joined(end: Any) -> Any:
    """A list that contains tensors as one tensor."""
    return stacked(list(end)) if isinstance(end, list | tuple) and holds_tensors(end) else end


def _end(given: Any, otherwise: float) -> Any:
    end = as_array(otherwise if given is None else given)
    return end.reshape(()) if end.size == 1 else end


def bounds_of(bounds: Any, size: int) -> tuple[Any, Any]:
    """Lower and upper bounds as vectors.

    Raises
    ------
    ShapeError
        Their number is not that of the unknowns, nor one.
    """
    if hasattr(bounds, "lb"):
        low, high = bounds.lb, bounds.ub
    else:
        pairs = list(bounds)
        low = np.stack([_end(a, -np.inf) for a, _ in pairs])
        high = np.stack([_end(b, np.inf) for _, b in pairs])
    ends = [casts.astype(floating(_joined(end)), float).reshape(-1) for end in (low, high)]
    for end in ends:
        if int(end.size) not in (1, size):
            raise ShapeError(
                f"{int(end.size)} bounds for {size} unknowns: the number of bounds is not "
                f"compatible with the length of `x0`{at(user_line())}."
            )
    return np.broadcast_to(ends[0], (size,)), np.broadcast_to(ends[1], (size,))
