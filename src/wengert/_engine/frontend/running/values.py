"""Values of variables, as operands and results of the nodes of loops and branches.

PartitionedValue    a value split into its numeric leaves and the rest
spec_of             the spec of an array or number
joined_spec         the spec that holds both of two values
cast                convert a value to a spec
weakly_typed        a number that promotes as a Python number does
like_spec           a result of a node, weakly typed if its spec is
as_bool             the truth of a traced value
number_of           the number that a tensor is equal to
placeholder_value   a value for an unbound variable
MaybeUnbound        the value of a variable that may be unbound
maybe_unbound       a value, or UNBOUND, as MaybeUnbound
bound               the value of such a variable, where it is read
Identities          a set of objects that compares by identity
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import is_immutable, same_value
from wengert._engine.core.handle import Handle, describe, is_traced, value_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.op import lookup
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import record
from wengert._engine.ops.casts import astype
from wengert.errors import at, user_place

from ..assignment_targets import containers
from ..state import UNBOUND, NotTraceable, Speculation, subject

_PYTHON_ZERO = {"b": False, "i": 0, "u": 0, "f": 0.0, "c": 0j}


class PartitionedValue(NamedTuple):
    """A value split into its numeric leaves and the rest.

    Attributes
    ----------
    leaves : list
        The leaves of the value as a pytree.
    structure : PyTreeSpec or None
        The structure of the containers; None if the value is a leaf.
    numeric : tuple of bool
        Which leaves are arrays or numbers.
    """

    leaves: list[Any]
    structure: Any
    numeric: tuple[bool, ...]

    @classmethod
    def of(cls, value: Any) -> PartitionedValue:
        """Split a value."""
        if isinstance(value, Handle) or value is UNBOUND:
            return cls([value], None, (value is not UNBOUND,))
        leaves, structure = pytree.flatten(value)
        if len(leaves) == 1 and leaves[0] is value:
            structure = None
        return cls(leaves, structure, tuple([spec_of(x) is not None for x in leaves]))

    @classmethod
    def opaque(cls, value: Any) -> PartitionedValue:
        """An object that is referred to, and not rebuilt: one leaf that is not numeric."""
        return cls([value], None, (False,))

    @property
    def is_unbound(self) -> bool:
        """Whether the variable has no value."""
        return len(self.leaves) == 1 and self.leaves[0] is UNBOUND

    @property
    def numeric_leaves(self) -> list[Any]:
        """The leaves that are arrays or numbers."""
        return [x for x, is_number in zip(self.leaves, self.numeric, strict=True) if is_number]

    @property
    def specs(self) -> list[Spec]:
        """The specs of the numeric leaves."""
        return [spec for x in self.numeric_leaves if (spec := spec_of(x)) is not None]

    def rebuild(
        self, numeric_leaves: list[Any], note: Callable[[Any], None] = Speculation.note_new
    ) -> Any:
        """The value with other numeric leaves; `note` is called with each new container."""
        remaining = iter(numeric_leaves)
        leaves = [
            next(remaining) if is_number else x
            for x, is_number in zip(self.leaves, self.numeric, strict=True)
        ]
        if self.structure is None:
            return leaves[0]
        value = pytree.unflatten(self.structure, leaves)
        if Speculation.notes():
            for container in containers(value):
                note(container)
        return value

    def check_like(self, other: PartitionedValue, name: str) -> None:
        """Check that another value has the same structure, and equal leaves that are not numeric.

        Raises
        ------
        NotTraceable
        """
        matches = self.structure == other.structure and self.numeric == other.numeric
        if matches:
            pairs = zip(self.leaves, other.leaves, self.numeric, strict=True)
            matches = all(number or _same_leaf(a, b) for a, b, number in pairs)
        if not matches:
            raise NotTraceable(_difference(name, self, other), True)


def _difference(name: str, one: PartitionedValue, other: PartitionedValue) -> str:
    """How the values of a variable in two branches, or before and after an iteration, differ."""
    before, after = _describe(one), _describe(other)
    if "None" in (before, after):
        number = before if after == "None" else after
        return (
            f"{subject(name)} is None or {number}, depending on data. Give it a number in both "
            "cases, such as np.nan, and whether it exists in another variable or result"
        )
    if before == after:
        after = "another one"
    return f"{subject(name)} becomes {after} where it was {before}"


def _same_leaf(a: object, b: Any) -> bool:
    return a is b or (is_immutable(a) and is_immutable(b) and same_value(a, b))


def _describe(x: PartitionedValue) -> str:
    if x.is_unbound:
        return "undefined"
    if x.structure is None and x.numeric == (True,):
        return str(spec_of(x.leaves[0]))
    value = x.rebuild(x.numeric_leaves)
    if value is None or type(value) in (str, bytes):
        return repr(value)
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    if isinstance(value, dict):
        return f"a dict with the keys {', '.join(map(repr, value))}"
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def spec_of(x: object) -> Spec | None:
    """The shape and dtype of an array or number; None for anything else."""
    if not isinstance(x, Handle | np.ndarray | np.generic | bool | int | float | complex):
        return None
    spec = describe(x)
    if not isinstance(spec, Spec) or spec.dtype.kind not in "biufc":
        return None
    return spec


def joined_spec(a: Spec, b: Spec, name: str) -> Spec:
    """The spec that holds the values of both specs, for the variable `name`.

    Raises
    ------
    NotTraceable
        Their shapes differ.
    """
    if a.shape != b.shape:
        raise NotTraceable(
            f"{subject(name)} has shape {a.shape}, and {b.shape} in another iteration or branch",
            True,
        )
    if a.dtype == b.dtype:
        return a if a.weak == b.weak else Spec(a.shape, a.dtype)
    if a.weak == b.weak:
        dtype = np.result_type(a.dtype, b.dtype)
        return Spec(a.shape, dtype, weak=a.weak)
    weak, strong = (a, b) if a.weak else (b, a)
    return Spec(a.shape, np.result_type(strong.dtype, _PYTHON_ZERO[weak.dtype.kind]))


def cast(x: object, spec: Spec) -> Any:
    """Convert a value to the dtype, and weak type, of a spec."""
    current = spec_of(x)
    if current is not None and current.dtype == spec.dtype:
        return weakly_typed(x) if spec.weak and not current.weak else x
    if not isinstance(x, Handle):
        return np.asarray(x).astype(spec.dtype)[()]
    converted = astype(x, spec.dtype)
    return weakly_typed(converted) if spec.weak else converted


def weakly_typed(x: object) -> Any:
    """A number that promotes as a Python number does."""
    if not isinstance(x, Handle):
        return np.asarray(x).item()
    return record(lookup("cast"), [x.node], {"dtype": x.node.spec.dtype}, weak=True)


def like_spec(x: object, spec: Spec) -> Any:
    """A result of a node, weakly typed if the spec is."""
    return weakly_typed(x) if spec.weak else x


def as_bool(x: Any) -> Any:
    """The truth of a traced value, as a boolean tensor.

    Raises
    ------
    ValueError
        It is an array with more than one element.
    """
    spec = x.node.spec
    if spec.shape:
        sizes = [n for n in spec.shape if n != 1]
        if sizes:
            raise ValueError(
                "The truth of an array with more than one element is ambiguous. Use a.any() or "
                f"a.all(){at(user_place())}."
            )
        x = x.reshape(())
    return x if spec.dtype.kind == "b" else x != 0


def number_of(x: object) -> Any:
    """The number of Python that a tensor of a known number is equal to; others as they are."""
    if not isinstance(x, Handle) or is_traced(x) or x.node.spec.shape:
        return x
    return value_of(x).item()


def placeholder_value(spec: Spec) -> Any:
    """Zeros with a spec, for an unbound variable."""
    zero = np.zeros((), spec.dtype)[()]
    if not spec.shape:
        return zero.item() if spec.weak else zero
    if all(type(n) is int for n in spec.shape):
        return np.zeros(spec.shape, spec.dtype)
    return lookup("broadcast_to")(wrap(constant(zero)), shape=spec.shape)


class MaybeUnbound(NamedTuple):
    """The value of a variable that is bound only if `defined`, which may be traced."""

    value: Any
    defined: Any


def maybe_unbound(x: object, like: Any) -> MaybeUnbound:
    """A value, or UNBOUND, as MaybeUnbound; an unbound one has zeros `like` another value."""
    if type(x) is MaybeUnbound:
        return x
    if x is not UNBOUND:
        return MaybeUnbound(x, True)
    example = like.value if type(like) is MaybeUnbound else like
    parts = PartitionedValue.of(example)
    return MaybeUnbound(parts.rebuild([placeholder_value(s) for s in parts.specs]), False)


def bound(x: object, name: str) -> Any:
    """The value of a variable that may be unbound.

    Raises
    ------
    UnboundLocalError
        It is unbound; if that depends on traced values, the error is raised when the graph runs.
    """
    if type(x) is not MaybeUnbound:
        return x
    if x.defined is not True:
        error = UnboundLocalError(
            f"cannot access local variable '{name}' where it is not associated with a value"
            f"{at(user_place())}"
        )
        if not isinstance(x.defined, Handle):
            raise error
        RuntimeChecks.add(lookup("logical_not")(x.defined), error)
    return x.value


class Identities:
    """A set of objects that compares by identity."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._known = {id(v) for v in values}

    def __contains__(self, x: Any) -> bool:
        return id(x) in self._known
