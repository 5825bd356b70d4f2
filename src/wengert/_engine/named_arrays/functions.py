"""Functions of several named arrays: dot, concatenate, stack, where.

dot            sums of products over common axes; other common axes are batch axes
concatenate    joins along one axis
stack, where   joins along a new axis; elementwise selection
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import ascii_letters
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.errors import ShapeError, at, user_line

from .named_array import Named, check_distinct, names_of, position, together, union


def dot(x: Named, y: Named, over: str | Iterable[str] | None = None) -> Any:
    """The sum of products over common axes.

    Parameters
    ----------
    x, y : Named
    over : str or sequence of str, optional
        The axes to sum over; by default all common axes. Other common axes are batch axes of the
        result.

    Returns
    -------
    Named, or a plain number if no axis remains

    Raises
    ------
    ShapeError
        There is no common axis, or an axis in `over` is not one.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.axes import dot
    >>> x = wg.named(np.ones((2, 3)), "batch feature")
    >>> w = wg.named(np.ones((4, 3)), "hidden feature")
    >>> dot(x, w).sizes
    {'batch': 2, 'hidden': 4}
    """
    lengths = union([(x.axes, x.values), (y.axes, y.values)])
    summed = names_of(over) if over is not None else tuple(n for n in x.axes if n in y.axes)
    if not summed:
        raise ShapeError(
            f"dot of ({', '.join(x.axes)}) and ({', '.join(y.axes)}): there is no common axis to "
            f"sum over. For the outer product, write x * y{at(user_line())}."
        )
    for name in summed:
        position(x.axes, name)
        position(y.axes, name)
    remaining = tuple(n for n in lengths if n not in summed)
    labels = dict(zip(lengths, ascii_letters, strict=False))
    subscripts = tuple("".join(labels[n] for n in names) for names in (x.axes, y.axes, remaining))
    values: Any = lookup("einsum")(x.values, y.values, subscripts=subscripts)
    return Named(values, remaining) if remaining else values


def concatenate(pieces: Sequence[Named], axis: str) -> Named:
    """Join arrays along a common axis; other axes are matched by name."""
    first = pieces[0]
    k = position(first.axes, axis)
    values = [piece.array(first.axes) for piece in pieces]
    for piece in pieces:
        for name, n in piece.sizes.items():
            if name != axis and n != first.sizes[name]:
                raise ShapeError(
                    f"concatenate along {axis!r}: the axis {name!r} has length {first.sizes[name]} "
                    f"in one array and {n} in another{at(user_line())}."
                )
    return Named(np.concatenate(values, axis=k), first.axes)


def stack(pieces: Sequence[Named], axis: str) -> Named:
    """Join arrays with the same axes along a new first axis."""
    first = pieces[0]
    names = (axis, *first.axes)
    check_distinct(names)
    union([(p.axes, p.values) for p in pieces])
    return Named(np.stack([p.array(first.axes) for p in pieces]), names)


def where(condition: Any, x: Any, y: float) -> Named:
    """``numpy.where``, with axes matched by name."""
    return together(np.where, condition, x, y)
