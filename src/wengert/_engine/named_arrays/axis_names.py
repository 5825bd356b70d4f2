"""Axis names: validation, and alignment of the axes of several operands.

The axes of a result are those of the first operand in their order, then further axes of the other
operands.  So the order is deterministic, and axes match by name, whatever their positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from wengert._engine.core.handle import shape_of
from wengert.errors import ShapeError, at, user_line

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

Names = tuple[str, ...]


def names_of(axes: str | Iterable[str]) -> Names:
    """Names from one string, ``"batch feature"``, or from a sequence.

    Raises
    ------
    ShapeError
        A name is repeated, or is not an identifier.
    """
    if not isinstance(axes, Iterable):
        raise ShapeError(
            f"axis names {axes!r} must be a string, 'batch feature', or a sequence of names"
            f"{at(user_line())}."
        )
    names = tuple(axes.replace(",", " ").split()) if isinstance(axes, str) else tuple(axes)
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise ShapeError(f"the axis name {name!r} must be an identifier{at(user_line())}.")
    check_distinct(names)
    return names


def check_distinct(names: Sequence[str]) -> None:
    """Raise ShapeError for repeated names."""
    repeated = next((n for n in names if list(names).count(n) > 1), None)
    if repeated is not None:
        raise ShapeError(
            f"two axes named {repeated!r} in ({', '.join(names)}). Rename one of them"
            f"{at(user_line())}."
        )


def position(names: Names, name: str) -> int:
    """The position of an axis.

    Raises
    ------
    ShapeError
        There is no axis of that name.
    """
    if name not in names:
        raise ShapeError(f"there is no axis {name!r} among ({', '.join(names)}){at(user_line())}.")
    return names.index(name)


def union(operands: Iterable[tuple[Names, Any]]) -> dict[str, Any]:
    """The lengths of all axes by name, in the order of first occurrence.

    Parameters
    ----------
    operands : iterable of (names, values)

    Raises
    ------
    ShapeError
        Axes of one name have different lengths.
    """
    lengths: dict[str, Any] = {}
    for names, values in operands:
        for name, n in zip(names, shape_of(values), strict=True):
            known = lengths.setdefault(name, n)
            if known != n:
                raise ShapeError(
                    f"the axis {name!r} has length {known} in one operand and {n} in another. Axes "
                    f"of the same name must have equal lengths; rename one of them"
                    f"{at(user_line())}."
                )
    return lengths


def aligned(values: Array, names: Names, order: Sequence[str]) -> Any:
    """Values with their axes in a given order, and axes of length one for missing names."""
    present = [n for n in order if n in names]
    axes = tuple(names.index(n) for n in present)
    if axes != tuple(range(len(axes))):
        values = values.transpose(axes)
    lengths = dict(zip(present, shape_of(values), strict=True))
    shape = tuple(lengths.get(n, 1) for n in order)
    leading = next((i for i, n in enumerate(order) if n in names), len(order))
    # Missing leading axes are not needed, because NumPy broadcasts.
    shape = shape[leading:]
    return values if shape_of(values) == shape else values.reshape(shape)
