"""Loops as users write them: scan, fori_loop, while_loop, map, associative_scan.

Where values are known, a loop runs step by step, as Python does, and every step is recorded where
derivatives are asked for.  While a graph is built, it becomes one line (operations.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import tree
from ..core.dims import Dim
from ..core.given import function
from ..core.handle import Handle, describe, is_traced, shape_of, wrap
from ..core.node import constant
from ..core.op import lookup
from ..core.spec import Spec
from ..errors import (
    ArgumentError,
    DtypeError,
    GuardError,
    ShapeError,
    StructureError,
    at,
    user_line,
)
from .closing import Closed, closed, together
from .operations import scan_op, while_op
from .stepping import Carry, as_number, is_written_down, stacked, stacks_of, strong


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: Any = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    """Carry a value along an array, and collect what each step gives."""
    what = "scan"
    function(f, what)
    carry = Carry(init, what)
    rows, structure, length = stacks_of(xs, _whole(length, what), what)
    if not is_written_down([*carry.leaves, *rows]):
        return _scan_now(f, carry, rows, structure, length, reverse)

    def step(*leaves: Any) -> Any:
        count = len(carry.leaves)
        x = tree.unflatten(structure, leaves[count:]) if xs is not None else None
        out = _pair(f(carry.container(leaves[:count]), x), what)
        return [strong(v) for v in carry.checked(out[0])], _mapped(strong, out[1])

    specs = [describe(x) for x in rows]
    inner = [*carry.specs, *[Spec(s.shape[1:], s.dtype) for s in specs]]
    made = closed(step, inner, what)
    outs = _line_of_scan(made, carry.leaves, rows, length, reverse)
    found = made.container(outs)
    return carry.container(found[0]), found[1]


def _line_of_scan(
    made: Closed, carry: Any, rows: Any, length: Any, reverse: bool, count: Any = None
) -> list[Any]:
    """The line of a loop; results as handles."""
    params = {
        "body": made.body,
        "carried": len(carry),
        "stacked": len(rows),
        "length": length,
        "reverse": bool(reverse),
        "counted": count is not None,
    }
    first = [] if count is None else [count]
    return list(_recorded(scan_op, [*first, *made.captured, *carry, *rows], params))


def _recorded(op: Any, args: list[Any], params: dict[str, Any]) -> Any:
    """A line of the graph that is being built, also if all operands are known."""
    if not any(isinstance(a, Handle) for a in args) and args:
        args[0] = wrap(constant(args[0]))
    return op(*args, **params) if args else op.run(**params)


def _scan_now(
    f: Any, carry: Carry, rows: list[Any], structure: Any, length: int, reverse: bool
) -> tuple[Any, Any]:
    leaves = carry.leaves
    columns: list[list[Any]] = []
    shape: Any = None
    for k in reversed(range(length)) if reverse else range(length):
        x = tree.unflatten(structure, [r[k] for r in rows]) if rows else None
        out = _pair(f(carry.container(leaves), x), "scan")
        leaves = carry.checked(out[0])
        ys, found = tree.flatten(out[1])
        if shape is None:
            shape, columns = found, [[] for _ in ys]
        if found != shape:
            raise StructureError(
                f"scan: a step returned {found}, the first {shape}. Return the same containers in "
                f"every step{at(user_line())}."
            )
        for column, y in zip(columns, ys, strict=True):
            column.append(y)
    if shape is None:
        return carry.container(leaves), _empty(f, carry, rows, structure)
    if reverse:
        columns = [c[::-1] for c in columns]
    ys = [None if c[0] is None else stacked(c) for c in columns]
    return carry.container(leaves), tree.unflatten(shape, ys)


def _empty(f: Any, carry: Carry, rows: list[Any], structure: Any) -> Any:
    """What no steps give: arrays without rows."""

    def step(*leaves: Any) -> Any:
        count = len(carry.leaves)
        x = tree.unflatten(structure, leaves[count:]) if rows else None
        return _mapped(strong, f(carry.container(leaves[:count]), x)[1])

    specs = [describe(r) for r in rows]
    inner = [*carry.specs, *[Spec(s.shape[1:], s.dtype) for s in specs]]
    made = closed(step, inner, "scan")
    return made.container([np.empty((0, *n.spec.shape), n.spec.dtype) for n in made.body.outputs])


def _pair(out: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise StructureError(
            f"{what}: a step returned {_named(out)}, and not a pair (carry, y). Return "
            f"(carry, None) if there is nothing to collect{at(user_line())}."
        )
    return out[0], out[1]


def _named(x: Any) -> str:
    if isinstance(x, tuple | list):
        return f"{len(x)} values"
    return f"a {type(x).__name__}"


def _mapped(f: Callable[[Any], Any], x: Any) -> Any:
    leaves, structure = tree.flatten(x)
    return tree.unflatten(structure, [v if v is None else f(v) for v in leaves])


def _whole(length: Any, what: str) -> Any:
    if length is None or isinstance(length, Dim):
        return length
    if is_traced(length):
        raise DtypeError(
            f"{what}: length is a value of the graph, and not known while it is built. Use "
            f"fori_loop or while_loop, whose number of steps may depend on values{at(user_line())}."
        )
    try:
        number = operator.index(length)
    except TypeError as error:
        raise ArgumentError(
            f"{what}: length={length!r} is no whole number{at(user_line())}."
        ) from error
    if number < 0:
        raise ArgumentError(f"{what}: length={number} is negative{at(user_line())}.")
    return number


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """Carry a value through steps numbered from `lower` up to, without, `upper`."""
    what = "fori_loop"
    function(body_fun, what)
    carry = Carry(init_val, what)
    lower, upper = _bound(lower, what), _bound(upper, what)
    if not is_written_down([*carry.leaves, lower, upper]):
        leaves = carry.leaves
        for i in range(int(lower), int(upper)):
            leaves = carry.checked(body_fun(i, carry.container(leaves)))
        return carry.container(leaves)
    known = not is_traced(lower) and not is_traced(upper)
    count = _count(lower, upper) if known else None

    def step(i: Any, *leaves: Any) -> Any:
        out = carry.checked(body_fun(i, carry.container(leaves)))
        return [i + 1, *[strong(v) for v in out]]

    made = closed(step, [Spec((), np.dtype(np.int64)), *carry.specs], what)
    first = [np.int64(int(lower)) if known and not isinstance(lower, Dim) else lower * np.int64(1)]
    if known:
        outs = _line_of_scan(made, [*first, *carry.leaves], [], count, False)
    else:
        steps = np.maximum(upper - lower, 0)
        outs = _line_of_scan(made, [*first, *carry.leaves], [], None, False, steps)
    return carry.container(outs[1:])


def _bound(x: Any, what: str) -> Any:
    """A bound: a whole number, perhaps one that is not known yet."""
    if isinstance(x, Dim):
        return x
    spec = describe(x)
    if not isinstance(spec, Spec) or spec.shape or spec.dtype.kind not in "iu":
        raise DtypeError(
            f"{what}: a bound is {'a ' + type(x).__name__ if spec is None else spec}, and not a "
            f"whole number{at(user_line())}."
        )
    if isinstance(x, Handle):
        return x if is_traced(x) else int(x.node.value)
    return int(x)


def _count(lower: Any, upper: Any) -> Any:
    if isinstance(lower, Dim) or isinstance(upper, Dim):
        return upper - lower
    return max(upper - lower, 0)


def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    max_steps: int | None = None,
) -> Any:
    """Carry a value along for as long as a condition holds."""
    what = "while_loop"
    function(cond_fun, what)
    function(body_fun, what)
    carry = Carry(init_val, what)
    if max_steps is not None:
        max_steps = _whole(max_steps, "while_loop: max_steps")
    if not is_written_down(carry.leaves):
        return _while_now(cond_fun, body_fun, carry, max_steps)

    def step(*leaves: Any) -> Any:
        return [strong(v) for v in carry.checked(body_fun(carry.container(leaves)))]

    def goes_on(*leaves: Any) -> Any:
        return _truth(cond_fun(carry.container(leaves)), what)

    body, condition = closed(step, carry.specs, what), closed(goes_on, carry.specs, what)
    both, captured = together([body, condition])
    params = {
        "body": both[0],
        "condition": both[1],
        "carried": len(carry.leaves),
        "limit": max_steps,
        "length": None,
    }
    outs = _recorded(while_op, [*captured, *carry.leaves], params)
    return carry.container(outs[: len(carry.leaves)])


def _while_now(cond_fun: Any, body_fun: Any, carry: Carry, limit: int | None) -> Any:
    leaves, count = carry.leaves, 0
    while _holds(cond_fun(carry.container(leaves))):
        if limit is not None and count >= limit:
            raise GuardError(
                f"while_loop did not end within max_steps={limit} steps. Let it take more, or see "
                f"why its condition holds for so long{at(user_line())}."
            )
        leaves = carry.checked(body_fun(carry.container(leaves)))
        count += 1
    return carry.container(leaves)


def _holds(x: Any) -> bool:
    """A condition as a truth value."""
    spec = describe(x)
    if not isinstance(spec, Spec) or spec.shape or spec.dtype.kind != "b":
        raise _no_condition(spec, x)
    return bool(x)


def _truth(x: Any, what: str) -> Any:
    """A condition that is not known yet."""
    spec = describe(x)
    if not isinstance(spec, Spec) or spec.shape or spec.dtype.kind != "b":
        raise _no_condition(spec, x)
    return as_number(x)


def _no_condition(spec: Any, x: Any) -> Exception:
    given = f"a {type(x).__name__}" if spec is None else str(spec)
    return DtypeError(
        f"while_loop: the condition is {given}, and not one truth value. Compare, or use np.any, "
        f"np.all{at(user_line())}."
    )


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Apply a function to each row of `xs`, and stack what it gives."""
    function(f, "map")
    return scan(lambda _, x: ((), f(x)), (), xs)[1]


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """All prefixes combined by an associative function: cumulative sums and their like."""
    what = "associative_scan"
    function(fn, what)
    leaves, structure = tree.flatten(elems)
    if not leaves:
        return elems
    moved = [_fronted(x, axis, what) for x in leaves]
    lengths = {shape_of(x)[0] for x in moved}
    if len(lengths) > 1:
        raise ShapeError(
            f"{what}: the elements have different lengths along axis {axis}: "
            f"{sorted(map(str, lengths))}{at(user_line())}."
        )
    if lengths == {0}:
        return elems

    def combined(a: list[Any], b: list[Any]) -> list[Any]:
        a, b = [[_fronted(x, 0, what, axis) for x in part] for part in (a, b)]
        left, right = tree.unflatten(structure, a), tree.unflatten(structure, b)
        out, found = tree.flatten(fn(right, left) if reverse else fn(left, right))
        if found != structure:
            raise StructureError(
                f"{what}: the function returned {found} for {structure}. Return the containers "
                f"that are given{at(user_line())}."
            )
        return [_fronted(x, axis, what) for x in out]

    if is_written_down(moved):
        made = _prefixes_by_steps(combined, moved, reverse)
    else:
        made = [x[::-1] for x in moved] if reverse else moved
        made = _prefixes_by_halves(combined, made)
        made = [x[::-1] for x in made] if reverse else made
    return tree.unflatten(structure, [_fronted(x, 0, what, axis) for x in made])


def _prefixes_by_steps(combined: Any, rows: list[Any], reverse: bool) -> list[Any]:
    """One after the other: least work, and no more than one step in memory."""
    first = [x[-1:] if reverse else x[:1] for x in rows]
    rest = [x[:-1] if reverse else x[1:] for x in rows]

    def step(before: list[Any], x: list[Any]) -> Any:
        now = combined(before, [v[None] for v in x])
        return now, [v[0] for v in now]

    _, ys = scan(step, first, rest, reverse=reverse)
    order = (lambda a, b: [b, a]) if reverse else (lambda a, b: [a, b])
    return [lookup("concatenate")(*order(a, b), axis=0) for a, b in zip(first, ys, strict=True)]


def _prefixes_by_halves(combined: Any, rows: list[Any]) -> list[Any]:
    """Blelloch, *Prefix sums and their applications* (1990): a few calls on many rows at once."""
    n = shape_of(rows[0])[0]
    if n < 2:
        return rows
    pairs = combined([x[: n - 1 : 2] for x in rows], [x[1::2] for x in rows])
    odd = _prefixes_by_halves(combined, pairs)
    if n > 2:
        inner = odd if n % 2 else [x[:-1] for x in odd]
        even = combined(inner, [x[2::2] for x in rows])
    made = []
    for k, x in enumerate(rows):
        out: list[Any] = [None] * n
        out[1::2] = list(odd[k])
        out[0] = x[0]
        out[2::2] = list(even[k]) if n > 2 else []
        made.append(stacked(out))
    return made


def _fronted(x: Any, source: int, what: str, target: int = 0) -> Any:
    """With one axis in another place."""
    x = x if isinstance(x, Handle) else np.asarray(x)
    ndim = len(shape_of(x))
    place = target if source == 0 else source
    if not -ndim <= place < ndim:
        raise ShapeError(
            f"{what}: an element has {ndim} axes, and no axis {place}{at(user_line())}."
        )
    source, target = source % ndim, target % ndim
    if source == target:
        return x
    order = [k for k in range(ndim) if k != source]
    order.insert(target, source)
    return lookup("transpose")(x, axes=tuple(order))
