"""Prefix sums for any associative function: associative_scan.

On concrete values, pairs are combined, then pairs of pairs: a few calls on large arrays, which is
fast in NumPy.  In a graph it is a sequential loop, which needs the fewest operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, describe, shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.validation import function
from wengert.errors import ShapeError, StructureError, at, user_line

from .eager_loops import becomes_node, numeric, refused
from .loops import scan

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

_WHAT = "associative_scan"


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Array, reverse: bool = False, axis: int = 0
) -> Any:
    """Combine all prefixes of an array with an associative function, like a cumulative sum.

    Parameters
    ----------
    fn : callable
        ``fn(a, b)`` combines elements: ``fn(fn(a, b), c) == fn(a, fn(b, c))``. Its arguments are
        batches of elements along `axis`, which it must combine independently of each other, as
        elementwise functions and ``@`` do; its result has the containers, shapes and dtypes of its
        arguments.
    elems : array_like, Tensor, or nested containers of them
        Of equal length along `axis`.
    reverse : bool, default False
        Whether to combine suffixes instead of prefixes. The later element is then the first
        argument of `fn`, as in JAX, which matters if `fn` is not commutative.
    axis : int, default 0

    Returns
    -------
    prefixes
        Like `elems`; at each position, the combination of all elements up to and including it.

    Raises
    ------
    ShapeError, DtypeError
        The lengths of `elems` differ, an axis does not exist, or `fn` returns other shapes or
        dtypes.
    StructureError
        `fn` changes the containers.

    Notes
    -----
    Elements are not combined in the order of ``np.cumsum``, so results differ by rounding. On
    concrete values it takes about ``2 log2(n)`` calls of `fn` (G. E. Blelloch, *Prefix sums and
    their applications*, 1990); in a graph, n - 1 steps of one loop.

    Examples
    --------
    The linear recurrence h[k] = a[k] h[k-1] + b[k]:

    >>> import numpy as np, wengert as wg
    >>> def then(first, second):
    ...     (a, b), (c, d) = first, second
    ...     return a * c, b * c + d
    >>> a, b = np.array([0.5, 0.5, 0.5]), np.array([1.0, 2.0, 3.0])
    >>> wg.associative_scan(then, (a, b))[1]
    array([1.  , 2.5 , 4.25])
    """
    function(fn, _WHAT)
    fn = converted(fn)
    leaves, structure = pytree.flatten(elems)
    if not leaves:
        return elems
    moved = [_axis_to_front(x, axis) for x in leaves]
    lengths = [shape_of(x)[0] for x in moved]
    if any(n != lengths[0] for n in lengths):
        raise ShapeError(
            f"{_WHAT}: the elements have the lengths {', '.join(map(str, lengths))} along axis "
            f"{axis}. Give elements of equal length{at(user_line())}."
        )
    if lengths[0] == 0:
        return elems

    def combined(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        first, second = (
            pytree.unflatten(structure, [_axis_from_front(x, axis) for x in part])
            for part in (a, b)
        )
        return _checked(fn(first, second), elems, [describe(x) for x in b], axis)

    if becomes_node([*moved, *lengths]):
        prefixes = _sequential(combined, moved, bool(reverse))
    else:
        prefixes = _pairwise(combined, [x[::-1] for x in moved] if reverse else moved)
        prefixes = [x[::-1] for x in prefixes] if reverse else prefixes
    return pytree.unflatten(structure, [_axis_from_front(x, axis) for x in prefixes])


def _checked(out: Array, elems: Array, specs: Sequence[Any], axis: int) -> list[Any]:
    """The leaves of the result of `fn`, axis first; refused unless they match the arguments."""
    leaves, structure = pytree.flatten(out)
    if structure != pytree.flatten(elems)[1]:
        raise StructureError(
            f"{_WHAT}: the function returned {pytree.marked(out)} for {pytree.marked(elems)}. "
            f"Return the same containers{at(user_line())}."
        )
    leaves = [_axis_to_front(x, axis, "the result of the function") for x in leaves]
    for k, (x, spec) in enumerate(zip(leaves, specs, strict=True)):
        result = numeric(x)
        if result is not None and (result.shape, result.dtype) != (spec.shape, spec.dtype):
            path = pytree.paths(elems)[k]
            what = f"{_WHAT}: the element{' at ' + path if path else ''}"
            raise refused(what, result, "as the function returns it", spec, "as it is given")
    return leaves


def _sequential(combined: Callable[..., Any], rows: list[Any], reverse: bool) -> list[Any]:
    """The prefixes by a loop over the elements."""
    first = [x[-1:] if reverse else x[:1] for x in rows]
    remaining = [x[:-1] if reverse else x[1:] for x in rows]

    def step(prefix: list[Any], x: list[Any]) -> Any:
        rows = [v[None] for v in x]
        combination = combined(prefix, rows)
        return combination, [v[0] for v in combination]

    _, ys = scan(step, first, remaining, reverse=reverse)
    pairs = zip(ys, first, strict=True) if reverse else zip(first, ys, strict=True)
    return [lookup("concatenate")(a, b, axis=0) for a, b in pairs]


def _pairwise(combined: Callable[..., Any], rows: list[Any]) -> list[Any]:
    """The prefixes by recursion: those of pairs, and from them the prefixes of odd length."""
    n = shape_of(rows[0])[0]
    if n < 2:
        return rows
    pairs = combined([x[: n - 1 : 2] for x in rows], [x[1::2] for x in rows])
    odd = _pairwise(combined, pairs)
    if n == 2:
        even = [x[:1] for x in rows]
    else:
        between = combined([x[: (n - 1) // 2] for x in odd], [x[2::2] for x in rows])
        even = [lookup("concatenate")(x[:1], y, axis=0) for x, y in zip(rows, between, strict=True)]
    return [_interleaved(a, b) for a, b in zip(even, odd, strict=True)]


def _interleaved(even: Array, odd: Array) -> Any:
    """Interleave the rows of two arrays; the first may have one more."""
    count, *shape = shape_of(odd)
    both = lookup("stack")(even[:count], odd, axis=1).reshape(2 * count, *shape)
    if shape_of(even)[0] == count:
        return both
    return lookup("concatenate")(both, even[count:], axis=0)


def _axis_to_front(x: Array, axis: int, what: str = "an element") -> Any:
    """Move the axis to the front."""
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
            f"arrays have{at(user_line())}."
        )
    return _move_axis(x, axis % ndim, 0)


def _axis_from_front(x: Array, axis: int) -> Any:
    """Move the first axis back."""
    return _move_axis(x, 0, axis % len(shape_of(x)))


def _move_axis(x: Any, source: int, target: int) -> Any:
    if source == target:
        return x
    order = [k for k in range(len(shape_of(x))) if k != source]
    order.insert(target, source)
    return lookup("transpose")(x, axes=tuple(order))
