"""Units of pint.  A derivative has the unit of the output divided by that of the argument.

    unit_of     the unit and the magnitude of a quantity
    quantity    a quantity of a unit
    quotient    the unit of a derivative; product: the unit of a derivative times a factor
    factor      the number by which a value in one unit is multiplied for another

A missing unit is None; a derivative of two plain arrays has none.

Labels: what an array has beside its values, and what a derivative has.

Labels        axes (labels of pandas or xarray) and a unit of pint; each may be missing
Axes          the interface of the labels of axes
labels_of     the labels and the values of an object
Refused       an object whose meaning is not clear, with what to do
derivative    a derivative with the labels and units of output and argument
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from wengert._engine.core.handle import shape_of
from wengert.errors import StructureError, at, user_line

if TYPE_CHECKING:
    from pint import Quantity, Unit

    from wengert._engine.core.types import Array

OFFSET = (
    "Its zero is not that of the dimension, so a derivative has another unit. Convert it to one "
    "with that zero, x.to_base_units()"
)


def unit_of(x: Quantity[Any]) -> tuple[Any, Any]:
    """The unit of a quantity, None if its scale has an offset, and its magnitude."""
    is_linear = getattr(x, "_is_multiplicative", True)
    return (x.units if is_linear else None), x.magnitude


def quantity(values: object, unit: Unit) -> Any:
    """A quantity of the registry of the unit."""
    return unit._REGISTRY.Quantity(values, unit)


def quotient(out: Unit | None, argument: Unit | None) -> Any:
    """The unit of a derivative; None if neither has one."""
    if argument is None:
        return out
    return (argument._REGISTRY.dimensionless if out is None else out) / argument


def product(a: Unit | None, b: Unit | None) -> Any:
    """The unit of a product; None if neither factor has one."""
    if a is None or b is None:
        return b if a is None else a
    return a * b


def factor(unit: Unit | None, target: Unit | None, what: str) -> float:
    """How many of `target` are one `unit`; None stands for no unit.

    Raises
    ------
    StructureError
        They are of different dimensions.
    """
    if unit is None and target is None:
        return 1.0
    known = target if unit is None else unit
    assert known is not None
    registry = known._REGISTRY
    unit = registry.dimensionless if unit is None else unit
    target = registry.dimensionless if target is None else target
    if not unit.is_compatible_with(target):
        raise StructureError(
            f"{what}: the units {unit} and {target} of terms of one sum have different "
            f"dimensions. Give each tangent the unit of its argument{at(user_line())}."
        )
    return float(registry.Quantity(1.0, unit).to(target).magnitude)


class Refused(Exception):
    """An object that cannot be an argument.

    Parameters
    ----------
    kind : str
        What it is: "a Series of object".
    remedy : str
        What to do, as a sentence without its period.
    """

    def __init__(self, kind: str, remedy: str) -> None:
        super().__init__(kind, remedy)
        self.kind, self.remedy = kind, remedy


class Axes(Protocol):
    """The labels of the axes of an array; equal and hashable by their contents."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""

    def wrap(self, values: Any) -> Any:
        """An object with these labels and values."""

    def of_derivative(self) -> Axes:
        """The labels of a gradient."""

    def agrees(self, other: Axes) -> bool:
        """Whether an array with the other labels can be a tangent or cotangent."""

    def jacobian(self, argument: Axes | None, values: Any, what: str) -> Any:
        """A Jacobian of an output with these labels."""

    def jacobian_of_array(self, values: Any, what: str) -> Any:
        """A Jacobian of an output without labels, for an argument with these labels."""


@dataclass(frozen=True)
class Labels:
    """The labels and the unit of an array.

    Attributes
    ----------
    axes : Axes or None
    unit : pint.Unit or None
    """

    axes: Axes | None = None
    unit: Unit | None = None

    def wrap(self, values: Any) -> Any:
        """An object with these labels and values."""
        if self.unit is not None:
            values = quantity(values, self.unit)
        return values if self.axes is None else self.axes.wrap(values)


NONE = Labels()


def derivative(values: Any, out: Labels, argument: Labels, what: str) -> Any:
    """The derivative of an output with respect to an argument, with labels and unit.

    Parameters
    ----------
    values : array or Tensor
        Of the shape of the output followed by that of the argument.
    out, argument : Labels
    what : str
        The transformation, for messages.
    """
    unit = quotient(out.unit, argument.unit)
    of_out = None if out.axes is None or not out.axes.shape else out.axes
    of_argument = None if argument.axes is None or not argument.axes.shape else argument.axes
    if of_out is None and of_argument is None:
        return Labels(None, unit).wrap(values)
    if unit is not None:
        first = of_out or of_argument
        if first is not None and not getattr(first, "holds_units", False):
            raise StructureError(
                f"{what}: the derivative would have labels of pandas and the unit {unit}, and "
                "pandas stores no units. Return a number of chosen units, y.to(unit).magnitude"
                f"{at(user_line())}."
            )
        values = quantity(values, unit)
    if of_out is not None:
        if of_argument is None and shape_of(_bare(values)) == of_out.shape:
            return of_out.of_derivative().wrap(values)
        return of_out.jacobian(of_argument, values, what)
    assert of_argument is not None
    if shape_of(_bare(values)) == of_argument.shape:
        return of_argument.of_derivative().wrap(values)
    return of_argument.jacobian_of_array(values, what)


def _bare(values: Array | Any) -> Any:
    return values.magnitude if hasattr(values, "magnitude") else values


def refuse_jacobian(what: str, why: str) -> NoReturn:
    """Raise for a Jacobian whose labels are not clear."""
    raise StructureError(
        f"{what}: {why}. Pass the values, x.to_numpy(), and return values, for a plain "
        f"array{at(user_line())}."
    )
