"""Axis names: validation, and alignment of the axes of several operands.

The axes of a result are those of the first operand in their order, then what the next ones have
beside them.  So the order follows from the program and not from chance, and two operands meet by
name wherever their axes stand.
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
    """Names given as one text, ``"batch feature"``, or as a sequence.

    Raises
    ------
    ShapeError
        One comes twice, or is no word.
    """
    if not isinstance(axes, Iterable):
        raise ShapeError(
            f"the names of axes are {axes!r}. Give one text, 'batch feature', or a sequence of "
            f"words{at(user_line())}."
        )
    names = tuple(axes.replace(",", " ").split()) if isinstance(axes, str) else tuple(axes)
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise ShapeError(f"{name!r} cannot name an axis: use a word{at(user_line())}.")
    check_distinct(names)
    return names


def check_distinct(names: Sequence[str]) -> None:
    """Refuse a name that comes twice."""
    twice = next((n for n in names if list(names).count(n) > 1), None)
    if twice is not None:
        raise ShapeError(
            f"two axes named {twice!r} in ({', '.join(names)}). Rename one of them"
            f"{at(user_line())}."
        )


def position(names: Names, name: str) -> int:
    """Where an axis stands.

    Raises
    ------
    ShapeError
        There is none of that name.
    """
    if name not in names:
        raise ShapeError(f"there is no axis {name!r} among ({', '.join(names)}){at(user_line())}.")
    return names.index(name)


def union(many: Iterable[tuple[Names, Any]]) -> dict[str, Any]:
    """All axes with their lengths, in the order in which they come first.

    Parameters
    ----------
    many : iterable of (names, values)

    Raises
    ------
    ShapeError
        One name stands for different lengths.
    """
    lengths: dict[str, Any] = {}
    for names, values in many:
        for name, n in zip(names, shape_of(values), strict=True):
            have = lengths.setdefault(name, n)
            if have != n:
                raise ShapeError(
                    f"the axis {name!r} has length {have} in one operand and {n} in another. Axes "
                    f"of one name have one length; rename one of them{at(user_line())}."
                )
    return lengths


def aligned(values: Array, names: Names, order: Sequence[str]) -> Any:
    """Values with their axes in that order, and axes of length one for those they have not."""
    present = [n for n in order if n in names]
    axes = tuple(names.index(n) for n in present)
    if axes != tuple(range(len(axes))):
        values = values.transpose(axes)
    lengths = dict(zip(present, shape_of(values), strict=True))
    wanted = tuple(lengths.get(n, 1) for n in order)
    first = next((i for i, n in enumerate(order) if n in names), len(order))
    # Axes missing in front need not be there: NumPy adds them.
    wanted = wanted[first:]
    return values if shape_of(values) == wanted else values.reshape(wanted)
