"""Eager loops: checked arguments, and steps that run in Python.

A loop in Python and the node of a graph must give the same results.  So each step gets its own
copies of values: writing to them changes neither the caller's arrays nor earlier results.

    becomes_node       whether a loop becomes a node, rather than being run
    Carry              the carry: its containers, and the specs that every step must keep
    ScannedInputs      the containers of arrays that a loop runs over
    Columns            the outputs of the steps, to be stacked
    numeric            the spec of an array or number
    as_number, strong  values with strong dtypes
    apart              the same value in newly allocated memory
    refused            the error for shapes or dtypes that differ between steps
    plain_result       plain arrays as results for plain arrays
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, describe, is_traced, value_of, wrap
from wengert._engine.core.node import ConstantLeaf, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import size_value
from wengert._engine.ops.casts import astype
from wengert.errors import DtypeError, ShapeError, StructureError, WengertError, at, user_line

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Size


def becomes_node(leaves: Sequence[Any]) -> bool:
    """Whether a loop becomes a node of a graph instead of being run."""
    return current_trace() is not None or any([is_traced(x) or isinstance(x, Dim) for x in leaves])


def as_number(x: Operand | None) -> Any:
    """A Python number as a NumPy scalar with a dtype; anything else unchanged."""
    return np.asarray(x)[()] if isinstance(x, bool | int | float | complex) else x


def strong(x: Any) -> Any:
    """The same value with a strong dtype; changes Python numbers and tensors with weak dtypes."""
    if isinstance(x, Dim):
        return astype(size_value(x), np.dtype(np.int64))
    if isinstance(x, Handle):
        spec = x.node.spec
        return astype(x, spec.dtype) if spec.weak else x
    return as_number(x)


def numeric(x: Operand) -> Spec | None:
    """The shape and dtype of an array or number; None for anything else."""
    spec = describe(x)
    if not isinstance(spec, Spec) or spec.dtype.kind not in "biufc":
        return None
    return Spec(spec.shape, spec.dtype)


def refused(
    what: str, spec: Spec, when: str, first: Spec, then: str, dtype: str = ""
) -> WengertError:
    """The error for a value whose shape or dtype differs between steps.

    Parameters
    ----------
    what : str
        The value.
    spec, when
        What it is, and at which point.
    first, then
        What it was, and at which earlier point.
    dtype : str
        What to do if the dtypes differ.
    """
    text = f"{what} is {first} {then} and {spec} {when}. "
    if spec.shape != first.shape:
        return ShapeError(f"{text}Return the same shape every time{at(user_line())}.")
    remedy = dtype or "Return the same dtype every time, x.astype(dtype)"
    return DtypeError(f"{text}{remedy}{at(user_line())}.")


def apart(x: Any) -> Any:
    """The same value in newly allocated memory.

    An array becomes a tensor, as in a graph, so that values computed from tensors can be assigned
    to its elements.
    """
    if isinstance(x, Handle):
        opened = current_trace()
        if opened is not None and opened.isolated and x.node.serial < opened.since:
            return lookup("copy")(x)  # a captured value: writing must not change the original
        return wrap(x.node)
    if not isinstance(x, np.ndarray):
        return x
    return wrap(constant(x.copy())) if x.ndim else x.copy()


def is_plain(leaves: Sequence[Any]) -> bool:
    """Whether there are arrays and no tensors."""
    arrays = any([isinstance(x, np.ndarray) for x in leaves])
    return arrays and not any([isinstance(x, Handle) for x in leaves])


def plain_result(x: Any, plain: bool) -> Any:
    """A result as a plain array if plain arrays were given, unless it is recorded."""
    if plain and isinstance(x, Handle) and type(x.node) is ConstantLeaf:
        return value_of(x)
    return x


def _position(container: Any, k: int) -> str:
    """The position of a leaf in its containers, for a message."""
    path = pytree.paths(container)[k]
    return f" at {path}" if path else ""


class Carry:
    """The carry of a loop.

    Attributes
    ----------
    leaves : list
        The leaves of the first carry other than None, with Python numbers as NumPy scalars.
    structure
        Of the containers.
    specs : list of Spec
    plain : bool
        Whether it has arrays and no tensors.
    """

    def __init__(self, init: Any, what: str) -> None:
        self.what, self.init = what, init
        full, self.structure = pytree.flatten(init)
        self._slots = [k for k, x in enumerate(full) if x is not None]
        self._count = len(full)
        self.plain = is_plain(full)
        self.leaves: list[Any] = []
        self.specs: list[Spec] = []
        for k in self._slots:
            x = strong(full[k])
            spec = numeric(x)
            if spec is None:
                raise StructureError(
                    f"{what}: the carry{_position(init, k)} is a {type(full[k]).__name__}. A carry "
                    f"is made of arrays and numbers; capture what does not change"
                    f"{at(user_line())}."
                )
            self.leaves.append(x)
            self.specs.append(spec)

    def start(self) -> list[Any]:
        """Copies of the initial leaves to which the first step may write."""
        return [apart(x) for x in self.leaves]

    def result(self, leaves: Sequence[Any], plain: bool) -> Any:
        """The final carry in the user's containers."""
        return self.container([plain_result(x, plain) for x in leaves])

    def container(self, leaves: Sequence[Any]) -> Any:
        """Leaves in the user's containers."""
        full = [None] * self._count
        for k, x in zip(self._slots, leaves, strict=True):
            full[k] = x
        return pytree.unflatten(self.structure, full)

    def checked(self, out: Array | tuple[Array, ...]) -> list[Any]:
        """The leaves of the next carry, checked to have the specs of the first.

        Raises
        ------
        StructureError, ShapeError, DtypeError
            They differ; the message has the position.
        """
        full, structure = pytree.flatten(out)
        slots = [k for k, x in enumerate(full) if x is not None]
        if structure != self.structure or slots != self._slots:
            raise StructureError(
                f"{self.what}: the carry is {pytree.marked(self.init)} at the start and "
                f"{pytree.marked(out)} after a step. Return the carry in the same "
                f"containers{at(user_line())}."
            )
        leaves = [strong(full[k]) for k in slots]
        for k, x, expected in zip(slots, leaves, self.specs, strict=True):
            spec = numeric(x)
            if spec is None:
                raise StructureError(
                    f"{self.what}: the carry{_position(self.init, k)} is a {type(x).__name__} "
                    f"after a step, and {expected} at the start. Return an array or a number"
                    f"{at(user_line())}."
                )
            if spec != expected:
                what = f"{self.what}: the carry{_position(self.init, k)}"
                remedy = (
                    f"Start with {spec.dtype} (the Python number 0 is an integer, 0.0 is not), "
                    "or cast the result of the step"
                )
                raise refused(what, spec, "after a step", expected, "at the start", remedy)
        return leaves

    def following(self, out: Array | tuple[Array, ...], before: Sequence[Any]) -> list[Any]:
        """The leaves of the next carry, which share no memory with other values."""
        leaves = self.checked(out)
        passed = {id(x) for x in before}
        for k, x in enumerate(leaves):
            if id(x) in passed:
                passed.remove(id(x))
            else:
                leaves[k] = apart(x)
        return leaves


class ScannedInputs:
    """The arrays that a loop runs over.

    Attributes
    ----------
    leaves : list
        Arrays and tensors, with the steps in front.
    specs : list of Spec
        Of one row of each.
    length : int or Dim
        The number of steps.

    Raises
    ------
    ShapeError
        Their lengths differ, or one has no axes.
    StructureError
        The number of steps is not given, or a leaf is not an array.
    """

    def __init__(
        self, xs: Array | Sequence[Array | None] | None, length: Size | None, what: str
    ) -> None:
        full, self._structure = pytree.flatten(xs)
        self._slots = [k for k, x in enumerate(full) if x is not None]
        self._count = len(full)
        self.leaves = [_stack(full[k], what, _position(xs, k)) for k in self._slots]
        specs = [describe(x) for x in self.leaves]
        self.specs = [Spec(s.shape[1:], s.dtype) for s in specs]
        for k, spec in zip(self._slots, specs, strict=True):
            count = spec.shape[0]
            length = count if length is None else length
            if count != length:
                raise ShapeError(
                    f"{what}: xs{_position(xs, k)} has length {count}, but there are {length} "
                    f"steps. All of xs, and length, must agree{at(user_line())}."
                )
        if length is None:
            raise StructureError(
                f"{what}: the number of steps is not given. Give xs, or length{at(user_line())}."
            )
        self.length = length

    def container(self, leaves: Sequence[Any]) -> Any:
        """One row of each, in the user's containers."""
        full = [None] * self._count
        for k, x in zip(self._slots, leaves, strict=True):
            full[k] = x
        return pytree.unflatten(self._structure, full)

    def at(self, k: int) -> Any:
        """Copies of the rows of one step, to which it may write."""
        return self.container([apart(x[k]) for x in self.leaves])


def _stack(x: Array, what: str, position: str) -> Any:
    spec = numeric(x)
    if spec is None:
        raise StructureError(
            f"{what}: xs{position} is a {type(x).__name__}, which has no first axis to loop over. "
            f"Give arrays{at(user_line())}."
        )
    if not spec.shape:
        raise ShapeError(
            f"{what}: xs{position} is a single number, and has no first axis to loop over. A list "
            f"is a container; make it an array, np.array(xs){at(user_line())}."
        )
    return x if isinstance(x, Handle) else np.asarray(x)


class Columns:
    """The outputs of the steps, to be stacked."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._first: Any = None
        self._structure: Any = None
        self._specs: list[Any] = []
        self._columns: list[list[Any]] = []

    def add(self, y: Any) -> None:
        """Append the output of a step.

        Raises
        ------
        StructureError, ShapeError, DtypeError
            It differs from that of the first step.
        """
        leaves, structure = pytree.flatten(y)
        leaves = [apart(strong(x)) for x in leaves]
        specs = [None if x is None else self._spec(y, k, x) for k, x in enumerate(leaves)]
        if self._structure is None:
            self._first, self._structure, self._specs = pytree.marked(y), structure, specs
            self._columns = [[] for _ in leaves]
        elif specs != self._specs or structure != self._structure:
            self._refuse(y, structure, specs)
        for column, x in zip(self._columns, leaves, strict=True):
            column.append(x)

    def _spec(self, y: Any, k: int, x: Array) -> Spec:
        spec = numeric(x)
        if spec is None:
            raise StructureError(
                f"{self._what} returned a {type(x).__name__}{_position(y, k)}. Return arrays, "
                f"numbers and containers of them{at(user_line())}."
            )
        return spec

    def _refuse(
        self, y: Array | dict[Any, Any] | list[Operand], structure: Any, specs: list[Any]
    ) -> None:
        same_leaves = [x is None for x in specs] == [x is None for x in self._specs]
        if structure != self._structure or not same_leaves:
            raise StructureError(
                f"{self._what}: the output is {self._first} in the first step and "
                f"{pytree.marked(y)} in another. Return the same containers in every step"
                f"{at(user_line())}."
            )
        k = next(k for k, s in enumerate(specs) if s != self._specs[k])
        what = f"{self._what}: the output{_position(y, k)}"
        raise refused(what, specs[k], "in another", self._specs[k], "in the first step")

    def stacked(self, reverse: bool, plain: bool) -> Any:
        """The outputs as arrays, the last step first if `reverse`."""
        stacked: list[Any] = []
        for column in self._columns:
            rows = [plain_result(x, plain) for x in column]
            stacked.append(None if rows[0] is None else _stacked(rows[::-1] if reverse else rows))
        return pytree.unflatten(self._structure, stacked)


def _stacked(column: Sequence[Any]) -> Any:
    """One output of all steps as an array."""
    if any(isinstance(x, Handle) for x in column):
        return lookup("stack")(*column, axis=0)
    return np.stack([np.asarray(x) for x in column])
