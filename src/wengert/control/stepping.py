"""Stepping: loops as Python runs them, where values are known; and what loops are given, checked.

Carry        the containers that go from step to step, and what they have to stay
rows_of      the elements of stacked containers, step by step
stacked      what steps gave, as stacked containers
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import tree
from ..core.handle import Handle, describe, is_traced
from ..core.op import lookup
from ..core.recording import session
from ..core.spec import Spec, bare, shown
from ..errors import ShapeError, StructureError, at, user_line
from ..ops.casts import astype


def is_written_down(leaves: Sequence[Any]) -> bool:
    """Whether a loop becomes a line of a graph, and is not run now."""
    return session() is not None or any(map(is_traced, leaves))


def as_number(x: Any) -> Any:
    """A Python number as NumPy's, so that it has a dtype to stay; anything else as it is."""
    return np.asarray(x)[()] if isinstance(x, bool | int | float | complex) else x


class Carry:
    """What goes from step to step.

    Attributes
    ----------
    leaves : list
        Of the first carry, Python's numbers as NumPy's.
    structure
        Of the containers.
    specs : list of Spec
    """

    def __init__(self, init: Any, what: str) -> None:
        self.what, self.init = what, init
        leaves, self.structure = tree.flatten(init)
        self.leaves = [as_number(x) for x in leaves]
        self.specs: list[Spec] = []
        for k, x in enumerate(self.leaves):
            spec = describe(x)
            if not isinstance(spec, Spec):
                raise StructureError(
                    f"{what}: the carry{self._place(k)} is a {type(x).__name__}. A carry is made of "
                    f"arrays and numbers; take what stays the same from outside{at(user_line())}."
                )
            self.specs.append(Spec(spec.shape, spec.dtype))

    def _place(self, k: int) -> str:
        path = tree.paths(self.init)[k]
        return f" at {path}" if path else ""

    def container(self, leaves: Sequence[Any]) -> Any:
        """Leaves as the user's containers."""
        return tree.unflatten(self.structure, list(leaves))

    def checked(self, out: Any) -> list[Any]:
        """The leaves of the next carry, if it is like the first.

        Raises
        ------
        StructureError, ShapeError
            It is not; the message says where.
        """
        leaves, structure = tree.flatten(out)
        if structure != self.structure:
            raise StructureError(
                f"{self.what}: the carry is {self.structure} at the start and {structure} after a "
                f"step. Return the carry in the containers that it came in{at(user_line())}."
            )
        leaves = [as_number(x) for x in leaves]
        for k, (x, wanted) in enumerate(zip(leaves, self.specs, strict=True)):
            spec = describe(x)
            if not isinstance(spec, Spec):
                raise StructureError(
                    f"{self.what}: the carry{self._place(k)} is a {type(x).__name__} after a step, "
                    f"and {wanted} at the start{at(user_line())}."
                )
            if bare(spec) != bare(wanted):
                remedy = "Let every step return the shape that it was given"
                if spec.shape == wanted.shape:
                    remedy = f"Start with that dtype ({spec.dtype}), or cast what a step returns"
                raise ShapeError(
                    f"{self.what}: the carry{self._place(k)} is {wanted} at the start and "
                    f"{shown(Spec(spec.shape, spec.dtype))} after a step. {remedy}{at(user_line())}."
                )
        return leaves


def stacks_of(xs: Any, length: Any, what: str) -> tuple[list[Any], Any, Any]:
    """The leaves of what is walked along, their structure, and how many steps there are.

    Raises
    ------
    ShapeError
        They differ in length, or one has no axes.
    StructureError
        Nothing says how many steps there are.
    """
    leaves, structure = tree.flatten(xs)
    if xs is None:
        leaves, structure = tree.flatten(())
    made: list[Any] = []
    for k, x in enumerate(leaves):
        if not isinstance(x, Handle):
            if describe(x) is None and not isinstance(x, list):
                raise StructureError(
                    f"{what}: xs{_path(xs, k)} is a {type(x).__name__}, which has no first axis to "
                    f"walk along. Give arrays{at(user_line())}."
                )
            x = np.asarray(x)
        shape = describe(x).shape
        if not shape:
            raise ShapeError(
                f"{what}: xs{_path(xs, k)} is a single number, and has no first axis to walk along"
                f"{at(user_line())}."
            )
        if length is None:
            length = shape[0]
        if shape[0] != length:
            raise ShapeError(
                f"{what}: xs{_path(xs, k)} has {shape[0]} rows, but there are {length} steps. All "
                f"of xs, and length, must agree{at(user_line())}."
            )
        made.append(x)
    if length is None:
        raise StructureError(f"{what}: how many steps? Give xs, or length{at(user_line())}.")
    return made, structure, length


def _path(xs: Any, k: int) -> str:
    path = tree.paths(xs)[k]
    return f" at {path}" if path else ""


def stacked(column: Sequence[Any]) -> Any:
    """What steps gave for one result, as one array."""
    if any(isinstance(x, Handle) for x in column):
        return lookup("stack")(*column, axis=0)
    return np.stack([np.asarray(x) for x in column])


def strong(x: Any) -> Any:
    """A result of a body, as an array or a number with a dtype."""
    if isinstance(x, Handle):
        spec = x.node.spec
        return astype(x, spec.dtype) if spec.weak else x
    return as_number(x)
