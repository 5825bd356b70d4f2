"""Traits of operations, grouped: effects, aliasing, differentiation.

Every operation has one record of each (`Op.effects`, `Op.aliasing`, `Op.differentiation`); the
defaults are those of a pure function whose result is a new array.  Traits read for each recorded
operation (`discrete`, `notes_where`, `pulls`) are attributes of the operation (core/op.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Effects:
    """The side effects of an operation, and where it may run.

    Attributes
    ----------
    side_effect : bool
        It runs in the order of the program even if nothing uses its value, and is never merged
        with another or dropped.
    serializable : bool
        Whether a graph in a file may contain it.  False for operations with effects outside the
        process (write files, open connections), which an untrusted graph must not have.
    total : bool
        It accepts all operands of its spec, so it may run before a loop that has no steps.
    value_dependent_shape : bool
        The shape of the result may depend on values (nonzero, x[mask]).
    only_if_true : bool
        The side effect occurs only if an element of the operand is nonzero.
    """

    side_effect: bool = False
    serializable: bool = True
    total: bool = False
    value_dependent_shape: bool = False
    only_if_true: bool = False


@dataclass(frozen=True, slots=True)
class Aliasing:
    """Whether the value may share memory with the first operand.

    Attributes
    ----------
    view : bool
        It may, as in NumPy.
    may_copy : bool
        It is a copy if the memory of the operand is not contiguous.
    transparent : bool
        An alias of its operand during a transformation; not in finished graphs.
    uniform : bool
        All elements are equal, so that native code reads one number and stores no array.
    """

    view: bool = False
    may_copy: bool = False
    transparent: bool = False
    uniform: bool = False


@dataclass(frozen=True, slots=True)
class Differentiation:
    """Properties of the derivative besides its rules.

    Attributes
    ----------
    masks : bool
        The derivative is exactly zero with respect to values that were not selected (a branch, an
        element).
    singular : bool or callable
        The derivative is infinite or NaN at some finite operands; a callable decides for a node.
    limits : bool
        The rules are NaN where values are equal (eigenvalues), though a limit may exist; they
        compute it when the derivative is recorded.
    takes_parts : bool
        It has several outputs, and its vjp takes a dict of the nonzero cotangents.
    """

    masks: bool = False
    singular: bool | Callable[[Any], bool] = False
    limits: bool = False
    takes_parts: bool = False

    def is_singular(self, node: Any) -> bool:
        """Whether the derivative may be infinite or NaN at finite operands of this node."""
        return self.singular if isinstance(self.singular, bool) else self.singular(node)
