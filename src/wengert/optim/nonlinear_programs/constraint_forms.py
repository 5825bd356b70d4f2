"""The forms in which constraints are given, and the names and limits of their elements.

Constraint       a function with lower and upper limits
ConstraintList   all constraints of a program, as one function of vectors
element_names    the names of the elements of a container
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import describe, shape_of, value_of
from wengert._engine.core.spec import Spec
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, ShapeError, StructureError, at, user_line
from wengert.scipy.dispatch import floating


@dataclass
class Constraint:
    """A function with limits of its results.

    name : for messages.
    fun : of the unknowns, in the containers of the caller, and of the arguments.
    lower, upper : numbers or containers like the result; None if there is no limit.
    """

    name: str
    fun: Callable[..., Any]
    lower: Any
    upper: Any


class ConstraintList:
    """The constraints of a program, in the order in which they are given.

    Parameters
    ----------
    given : callable, dict, LinearConstraint, NonlinearConstraint, or list or dict of them
    lower, upper : numbers or containers
        Limits of constraints that are functions.
    """

    def __init__(self, given: Any, lower: Any, upper: Any) -> None:
        items, self._restore = _listed(given)
        self.constraints = [
            _constraint(item, name, lower, upper) for name, item in items if item is not None
        ]
        self._structures: list[Any] = []
        self._shapes: list[list[tuple[int, ...]]] = []
        if (lower is not None or upper is not None) and not any(
            [callable(item) for _, item in items]
        ):
            raise ArgumentError(
                "nlp: lower and upper are limits of a constraint that is a function, and there is "
                f"none{at(user_line())}."
            )

    def __bool__(self) -> bool:
        return bool(self.constraints)

    def vector(self, x: Any, args: Sequence[Any]) -> Any:
        """All results as one vector; notes their structures and shapes."""
        self._structures, self._shapes, parts = [], [], []
        for c in self.constraints:
            leaves, structure = pytree.flatten(c.fun(x, *args))
            leaves = [_real(leaf, c.name) for leaf in leaves]
            self._structures.append(structure)
            self._shapes.append([tuple(shape_of(leaf)) for leaf in leaves])
            parts += [casts.astype(leaf, float).reshape(-1) for leaf in leaves]
        return np.concatenate(parts) if parts else np.zeros(0)

    def limits(self) -> tuple[Any, Any]:
        """Lower and upper limits as vectors; after `vector` has been called."""
        lower: list[Any] = []
        upper: list[Any] = []
        for c, structure, shapes in zip(
            self.constraints, self._structures, self._shapes, strict=True
        ):
            lower += _limit(c, c.lower, -np.inf, structure, shapes)
            upper += _limit(c, c.upper, np.inf, structure, shapes)
        none = np.zeros(0)
        return (np.concatenate(lower), np.concatenate(upper)) if lower else (none, none)

    def names(self) -> list[str]:
        """The name of each element."""
        names: list[str] = []
        for c, structure, shapes in zip(
            self.constraints, self._structures, self._shapes, strict=True
        ):
            empty = pytree.unflatten(structure, [np.empty(s) for s in shapes])
            names += [f"{c.name}{rest}" for rest in element_names(empty)]
        return names

    def container(self, vector: Any) -> Any:
        """A vector with a number for each element, nested as the constraints and their results."""
        made, begin = [], 0
        for structure, shapes in zip(self._structures, self._shapes, strict=True):
            leaves = []
            for shape in shapes:
                size = int(np.prod(shape, dtype=int))
                leaves.append(np.reshape(vector[begin : begin + size], shape))
                begin += size
            made.append(pytree.unflatten(structure, leaves))
        return self._restore(made)


def element_names(container: Any) -> list[str]:
    """The name of each number in a container, as Python would index it: "['flow'][3]"."""
    names: list[str] = []
    leaves, _ = pytree.flatten(container)
    for path, leaf in zip(pytree.paths(container), leaves, strict=True):
        shape = np.shape(leaf)
        names += [
            f"{path}[{', '.join(map(str, index))}]" if shape else path
            for index in np.ndindex(shape)
        ]
    return names


def _listed(given: Any) -> tuple[list[tuple[str, Any]], Callable[[list[Any]], Any]]:
    """Constraints with names, and how results for each are nested."""
    if given is None:
        return [], lambda made: None
    if isinstance(given, dict) and "fun" not in given:
        names = list(given)
        return list(given.items()), lambda made: dict(zip(names, made, strict=True))
    if isinstance(given, list | tuple):
        items = [(_name_of(c) or f"constraints[{k}]", c) for k, c in enumerate(given)]
        return items, lambda made: made
    return [(_name_of(given) or "g", given)], lambda made: made[0]


def _name_of(given: Any) -> str:
    fun = given.get("fun") if isinstance(given, dict) else getattr(given, "fun", given)
    name = str(getattr(fun, "__name__", ""))
    return "" if name == "<lambda>" else name


def _constraint(given: Any, name: str, lower: Any, upper: Any) -> Constraint:
    if isinstance(given, scipy.optimize.LinearConstraint):
        return Constraint(name, _linear(given.A), given.lb, given.ub)
    if isinstance(given, scipy.optimize.NonlinearConstraint):
        fun = given.fun
        return Constraint(name, lambda x, *args: converted(fun)(x), given.lb, given.ub)
    if isinstance(given, dict):
        kind = str(given.get("type", "")).lower()
        if kind not in ("eq", "ineq"):
            raise ArgumentError(
                f"nlp: the constraint {name} has the type {given.get('type')!r}. It is 'eq' for an "
                f"equality or 'ineq' for an inequality{at(user_line())}."
            )
        own, fun, upper = tuple(given.get("args", ())), given["fun"], 0.0 if kind == "eq" else None
        return Constraint(name, lambda x, *args: converted(fun)(x, *own), 0.0, upper)
    if not callable(given):
        raise ArgumentError(
            f"nlp: the constraint {name} is a {type(given).__name__}. Give a function, a dict, a "
            f"LinearConstraint or a NonlinearConstraint{at(user_line())}."
        )
    if lower is None and upper is None:
        raise ArgumentError(
            f"nlp: the constraint {name} has no limits. Give lower= or upper=, or both: equal ones "
            f"for an equality{at(user_line())}."
        )
    return Constraint(name, lambda x, *args: converted(given)(x, *args), lower, upper)


def _linear(matrix: Any) -> Callable[..., Any]:
    """The product of a matrix and x."""
    if not hasattr(matrix, "tocoo"):
        return lambda x, *args: np.matmul(as_array(matrix), _one_vector(x))
    entries = matrix.tocoo()
    rows, columns, data = entries.row, entries.col, np.asarray(entries.data, float)

    def product(x: Any, *args: Any) -> Any:
        terms = data * _one_vector(x)[columns]
        return np.bincount(rows, weights=terms, minlength=matrix.shape[0])

    return product


def _one_vector(x: Any) -> Any:
    if not isinstance(describe(x), Spec):
        raise StructureError(
            "nlp: a LinearConstraint is for x0 that is one array. Give a function of the "
            f"containers{at(user_line())}."
        )
    return x.reshape(-1)


def _real(leaf: Any, name: str) -> Any:
    spec = describe(leaf)
    if not isinstance(spec, Spec) or spec.dtype.kind not in "biuf":
        what = spec.dtype if isinstance(spec, Spec) else type(leaf).__name__
        raise StructureError(
            f"nlp: the constraint {name} returned {what}. Return real numbers{at(user_line())}."
        )
    return floating(leaf)


def _limit(
    c: Constraint, given: Any, otherwise: float, structure: Any, shapes: list[tuple[int, ...]]
) -> list[Any]:
    """The limits of one constraint, as a vector for each leaf of its result."""
    if given is None:
        return [np.full(int(np.prod(s, dtype=int)), otherwise) for s in shapes]
    leaves, own = pytree.flatten(given)
    if own != structure and len(leaves) == 1 and leaves[0] is given:
        leaves, own = leaves * len(shapes), structure
    if own != structure:
        if len(shapes) == 1 and isinstance(given, list | tuple):  # a limit as a list of numbers
            leaves = [np.stack([as_array(x) for x in given])]
        else:
            raise StructureError(
                f"nlp: limits of the constraint {c.name} are nested as {own}, and its result as "
                f"{structure}{at(user_line())}."
            )
    made = []
    for leaf, shape in zip(leaves, shapes, strict=True):
        value = casts.astype(floating(otherwise if leaf is None else leaf), float)
        try:
            made.append(np.broadcast_to(value, shape).reshape(-1))
        except ValueError:
            raise ShapeError(
                f"nlp: a limit of the constraint {c.name} has shape {np.shape(value_of(leaf))}, "
                f"and its result has shape {shape}{at(user_line())}."
            ) from None
    return made
