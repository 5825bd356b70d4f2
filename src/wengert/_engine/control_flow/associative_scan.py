"""Prefixes: cumulative sums and their like, for any associative function.

On known values pairs are combined, and pairs of pairs: a few calls on many rows at once, which is
what NumPy is fast at.  In a graph one step follows the other, which is least work and what native
code is fast at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, describe, shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.validation import function
from wengert.errors import ShapeError, StructureError, at, user_line

from .eager_loops import is_written_down, numeric, refused
from .loops import scan

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

_WHAT = "associative_scan"


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Array, reverse: bool = False, axis: int = 0
) -> Any:
    """All prefixes combined by an associative function: cumulative sums and their like.

    Parameters
    ----------
    fn : callable
        ``fn(a, b)`` combines elements: ``fn(fn(a, b), c) == fn(a, fn(b, c))``. It is given many at
        once, along `axis`, and treats each alike, as elementwise functions and ``@`` of stacks of
        matrices do; it returns the containers, shapes and dtypes that it is given.
    elems : array_like, Tensor, or nested containers of them
        All of one length along `axis`.
    reverse : bool, default False
        Whether to begin at the end: suffixes in the place of prefixes. `fn` is then given what is
        behind first, as JAX does, which matters where it does not commute.
    axis : int, default 0

    Returns
    -------
    prefixes
        Like `elems`: at each place the elements up to there combined.

    Raises
    ------
    ShapeError, DtypeError
        The elements differ in length, have no such axis, or `fn` returns others than it is given.
    StructureError
        `fn` returns other containers.

    Notes
    -----
    Sums are added in another order than ``np.cumsum`` does, and differ from it by rounding. On
    known values it takes about ``2 log2(n)`` calls of `fn` (G. E. Blelloch, *Prefix sums and their
    applications*, 1990); in a graph n - 1 steps in one loop.

    Examples
    --------
    Linear recurrences h[k] = a[k] h[k-1] + b[k], all k at once:

    >>> import numpy as np, wengert as wg
    >>> def then(first, second):
    ...     (a, b), (c, d) = first, second
    ...     return a * c, b * c + d
    >>> a, b = np.array([0.5, 0.5, 0.5]), np.array([1.0, 2.0, 3.0])
    >>> wg.associative_scan(then, (a, b))[1]
    array([1.  , 2.5 , 4.25])
    """
    function(fn, _WHAT)
    leaves, structure = pytree.flatten(elems)
    if not leaves:
        return elems
    moved = [_fronted(x, axis) for x in leaves]
    lengths = [shape_of(x)[0] for x in moved]
    if any(n != lengths[0] for n in lengths):
        raise ShapeError(
            f"{_WHAT}: the elements have the lengths {', '.join(map(str, lengths))} along axis "
            f"{axis}. Give elements of one length{at(user_line())}."
        )
    if lengths[0] == 0:
        return elems

    def combined(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        first, second = (
            pytree.unflatten(structure, [_backed(x, axis) for x in part]) for part in (a, b)
        )
        return _checked(fn(first, second), elems, [describe(x) for x in b], axis)

    if is_written_down([*moved, *lengths]):
        made = _by_steps(combined, moved, bool(reverse))
    else:
        made = _by_halves(combined, [x[::-1] for x in moved] if reverse else moved)
        made = [x[::-1] for x in made] if reverse else made
    return pytree.unflatten(structure, [_backed(x, axis) for x in made])


def _checked(out: Array, elems: Array, wanted: Sequence[Any], axis: int) -> list[Any]:
    """What `fn` returned, with the elements in front, if it is like what it was given."""
    leaves, structure = pytree.flatten(out)
    if structure != pytree.flatten(elems)[1]:
        raise StructureError(
            f"{_WHAT}: the function returned {pytree.marked(out)} for {pytree.marked(elems)}. "
            f"Return the containers that are given{at(user_line())}."
        )
    leaves = [_fronted(x, axis, "what the function returned") for x in leaves]
    for k, (x, spec) in enumerate(zip(leaves, wanted, strict=True)):
        found = numeric(x)
        if found is not None and (found.shape, found.dtype) != (spec.shape, spec.dtype):
            path = pytree.paths(elems)[k]
            place = f"{_WHAT}: the element{' at ' + path if path else ''}"
            raise refused(place, found, "as the function returns it", spec, "as it is given")
    return leaves


def _by_steps(combined: Callable[..., Any], rows: list[Any], reverse: bool) -> list[Any]:
    """One after the other."""
    first = [x[-1:] if reverse else x[:1] for x in rows]
    rest = [x[:-1] if reverse else x[1:] for x in rows]

    def step(before: list[Any], x: list[Any]) -> Any:
        rows = [v[None] for v in x]
        now = combined(before, rows)
        return now, [v[0] for v in now]

    _, ys = scan(step, first, rest, reverse=reverse)
    pairs = zip(ys, first, strict=True) if reverse else zip(first, ys, strict=True)
    return [lookup("concatenate")(a, b, axis=0) for a, b in pairs]


def _by_halves(combined: Callable[..., Any], rows: list[Any]) -> list[Any]:
    """Pairs first, then what lies between them."""
    n = shape_of(rows[0])[0]
    if n < 2:
        return rows
    pairs = combined([x[: n - 1 : 2] for x in rows], [x[1::2] for x in rows])
    odd = _by_halves(combined, pairs)
    if n == 2:
        even = [x[:1] for x in rows]
    else:
        between = combined([x[: (n - 1) // 2] for x in odd], [x[2::2] for x in rows])
        even = [lookup("concatenate")(x[:1], y, axis=0) for x, y in zip(rows, between, strict=True)]
    return [_interleaved(a, b) for a, b in zip(even, odd, strict=True)]


def _interleaved(even: Array, odd: Array) -> Any:
    """The rows of two arrays by turns; the first may have one more."""
    count, *shape = shape_of(odd)
    both = lookup("stack")(even[:count], odd, axis=1).reshape(2 * count, *shape)
    if shape_of(even)[0] == count:
        return both
    return lookup("concatenate")(both, even[count:], axis=0)


def _fronted(x: Array, axis: int, what: str = "an element") -> Any:
    """With one axis in front."""
    if numeric(x) is None:
        raise StructureError(
            f"{_WHAT}: {what} is a {type(x).__name__}. Give arrays, and containers of them"
            f"{at(user_line())}."
        )
    x = x if isinstance(x, Handle) else np.asarray(x)
    ndim = len(shape_of(x))
    if not -ndim <= axis < ndim:
        raise ShapeError(
            f"{_WHAT}: {what} is {describe(x)}, which has no axis {axis}. Give an axis that all "
            f"have{at(user_line())}."
        )
    return _moved(x, axis % ndim, 0)


def _backed(x: Array, axis: int) -> Any:
    """With the axis in front back in its place."""
    return _moved(x, 0, axis % len(shape_of(x)))


def _moved(x: Any, source: int, target: int) -> Any:
    if source == target:
        return x
    order = [k for k in range(len(shape_of(x))) if k != source]
    order.insert(target, source)
    return lookup("transpose")(x, axes=tuple(order))
