"""Units of pint.  A derivative has the unit of the output divided by that of the argument.

    unit_of     the unit and the magnitude of a quantity
    quantity    a quantity of a unit
    quotient    the unit of a derivative; product: the unit of a derivative times a factor
    factor      the number by which a value in one unit is multiplied for another

A missing unit is None; a derivative of two plain arrays has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wengert.errors import StructureError, at, user_line

if TYPE_CHECKING:
    from pint import Quantity, Unit

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
