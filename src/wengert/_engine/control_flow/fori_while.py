"""Loops that repeat a step: fori_loop, over a range, and while_loop, while a condition holds.

Like scan (loops.py), they run in Python with concrete values, and are one node in a graph.

    fori_loop    a step for each integer of a range
    while_loop   steps while a condition holds
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, describe, is_traced, value_of
from wengert._engine.core.message_order import OrderWanted, advance, ordered_by
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Dim, bounds
from wengert._engine.core.tracing import size_value, stepping
from wengert._engine.core.validation import function
from wengert._engine.ops.casts import astype
from wengert._engine.ops.indexing.slice_ends import note_range
from wengert._engine.ops.messages import joined
from wengert.errors import DtypeError, GuardError, at, user_line

from .checkpoint_schedule import budget_of
from .closure_conversion import closed, together
from .eager_loops import Carry, as_number, becomes_node, numeric
from .loops import recorded, scan_node, whole
from .message_carry import token_to_carry, with_token
from .operations import while_op

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Size

_INT = np.dtype(np.int64)
_NUMBER = Spec((), _INT)  # the spec of a step's number


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    memory: int | str | None = None,
) -> Any:
    """Repeat a step for the integers from `lower` up to, not including, `upper`.

    Equivalent to the following, for arrays and nested containers of them::

        val = init_val
        for i in range(lower, upper):
            val = body_fun(i, val)
        return val

    Parameters
    ----------
    lower, upper : int or integer Tensor
        While a graph is built they may be values or symbolic sizes.
    body_fun : callable
        ``body_fun(i, val)`` takes the step number, an int64, and the current value; it
        returns the next value, with the same containers, shapes and dtypes.
    init_val : array_like, Tensor, or nested containers of them
    memory : int or str, optional
        The memory limit of the backward pass, as in `scan`.

    Returns
    -------
    val
        The value after the last step; `init_val` if `upper` is not above `lower`.

    Raises
    ------
    DtypeError
        A bound is not an integer, or the value changes its dtype.
    ShapeError, StructureError
        The value changes its shape or its containers.
    TraceError
        As for `scan`.

    Notes
    -----
    It runs like `scan`. Reverse mode stores the residuals of all steps, even if their number is
    known only at run time. Reading ``x[i]`` and writing ``x[i] = v`` take constant time, and so do
    their derivatives.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> def power(x, n):
    ...     return wg.fori_loop(0, n, lambda i, y: y * x, 1.0)
    >>> power(3.0, 4)
    np.float64(81.0)
    >>> wg.jit(wg.grad(power))(3.0, 4)
    np.float64(108.0)
    """
    what = "fori_loop"
    function(body_fun, what)
    body_fun = converted(body_fun)
    carry = Carry(init_val, what)
    budget = budget_of(memory, [*carry.specs, _NUMBER], what)
    lower, upper = _bound(lower, what, "lower"), _bound(upper, what, "upper")
    if not becomes_node([*carry.leaves, lower, upper]):
        leaves = carry.start()
        for i in stepping(what, range(lower, upper)):
            out = body_fun(np.int64(i), carry.container(leaves))
            leaves = carry.following(out, leaves)
        return carry.result(leaves, carry.plain)

    def step(i: Array, *leaves: Any) -> Any:
        note_range(i, lower, upper)
        return [i + 1, *carry.checked(body_fun(i, carry.container(leaves)))]

    length = None if is_traced(lower) or is_traced(upper) else upper - lower
    if length is not None and not isinstance(length, Dim):
        length = max(length, 0)
    try:
        closure = closed(step, [_NUMBER, *carry.specs], what, steps=length)
    except OrderWanted:
        first = token_to_carry()
        with ordered_by(None):
            val, last = fori_loop(
                lower,
                upper,
                lambda i, val: with_token(val[1], body_fun, i, val[0]),
                (init_val, first),
                memory,
            )
        advance(last)
        return val
    count = None
    if length is None or (bounds(length)[0] or 0) < 0 or bounds(length)[0] is None:
        length, count = None, lookup("maximum")(_as_value(upper) - _as_value(lower), np.int64(0))
    initial = [_as_value(lower), *carry.leaves]
    outs = scan_node(closure, initial, [], length, False, count, budget)
    return carry.container(outs[1:])


def _bound(x: Operand | Size, what: str, name: str) -> Any:
    """A bound: an int, a symbolic size, or a traced value."""
    if isinstance(x, Dim):
        return x
    spec = numeric(x)
    if spec is None or spec.shape or spec.dtype.kind not in "iu":
        raise DtypeError(
            f"{what}: {name} must be an integer, and is {spec or 'a ' + type(x).__name__}. Convert "
            f"a float by int(x), in a graph by x.astype(int){at(user_line())}."
        )
    return x if is_traced(x) else int(value_of(x))


def _as_value(bound: Operand | Size) -> Any:
    """A bound as an int64."""
    if isinstance(bound, int):
        return np.int64(bound)
    return astype(size_value(bound) if isinstance(bound, Dim) else bound, _INT)


def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Operand | tuple[Any, ...],
    max_steps: int | None = None,
    memory: int | str | None = None,
) -> Any:
    """Repeat a step while a condition holds.

    Equivalent to the following, for arrays and nested containers of them::

        val = init_val
        while cond_fun(val):
            val = body_fun(val)
        return val

    Parameters
    ----------
    cond_fun : callable
        Takes the value and returns one boolean; it must not modify its argument.
    body_fun : callable
        Takes the value and returns the next, with the same containers, shapes and dtypes.
    init_val : array_like, Tensor, or nested containers of them
    max_steps : int, optional
        The maximum number of steps; a loop that takes more raises an error.
    memory : int or str, optional
        The memory limit of the backward pass, as in `scan`. Because the number of steps is not
        known while the loop runs, states are stored at equal distances, which are doubled when the
        memory is full (online checkpointing).

    Returns
    -------
    val
        The first value for which the condition does not hold.

    Raises
    ------
    DtypeError
        The condition is not a single boolean, or the value changes its dtype.
    ShapeError, StructureError
        The value changes its shape or its containers.
    GuardError
        It takes more than `max_steps` steps.
    TraceError
        As for `scan`.

    Notes
    -----
    It runs like `scan`, and is differentiable in both modes to any order; reverse mode stores the
    residuals of all steps. The number of steps is an integer and has no derivative, so the
    derivative is that of the steps taken.

    Examples
    --------
    Newton's method for a square root, and its derivative:

    >>> import numpy as np, wengert as wg
    >>> def root(a):
    ...     far = lambda x: np.abs(x * x - a) > 1e-12
    ...     return wg.while_loop(far, lambda x: 0.5 * (x + a / x), a, max_steps=100)
    >>> float(round(root(2.0), 9)), float(round(wg.jit(wg.grad(root))(2.0), 9))
    (1.414213562, 0.353553391)
    """
    what = "while_loop"
    function(cond_fun, what)
    function(body_fun, what)
    cond_fun, body_fun = converted(cond_fun), converted(body_fun)
    carry = Carry(init_val, what)
    max_steps = whole(max_steps, what, "max_steps")
    budget = budget_of(memory, carry.specs, what)
    if not becomes_node(carry.leaves):
        return _while_now(cond_fun, body_fun, carry, max_steps)

    def step(*leaves: Any) -> Any:
        return carry.checked(body_fun(carry.container(leaves)))

    def condition(*leaves: Any) -> Any:
        return as_number(_condition(cond_fun(carry.container(leaves))))

    try:
        body = closed(step, carry.specs, what)
        condition_closure = closed(condition, carry.specs, f"{what}: the condition")
    except OrderWanted:
        first = token_to_carry()
        with ordered_by(None):
            val, last = while_loop(
                lambda val: with_token(val[1], cond_fun, val[0])[0],
                lambda val: _after_condition(*with_token(val[1], body_fun, val[0])),
                (init_val, first),
                max_steps,
                memory,
            )
        advance(last)
        return val
    both, captured = together([body, condition_closure])
    params = {
        "body": both[0],
        "condition": both[1],
        "carried": len(carry.leaves),
        "limit": max_steps,
        "length": None,
    }
    params.update(budget)
    outs = recorded(while_op, [*captured, *carry.leaves], params)
    return carry.container(outs[: len(carry.leaves)])


def _after_condition(val: Any, token: Handle) -> tuple[Any, Handle]:
    """The value and the token of a step: a new token, also if only the condition has messages."""
    return val, joined(token)


def _while_now(
    cond_fun: Callable[..., Any], body_fun: Callable[..., Any], carry: Carry, limit: int | None
) -> Any:
    leaves = carry.start()
    for count in stepping("while_loop", itertools.count()):
        if not bool(_condition(cond_fun(carry.container(leaves)))):
            break
        if limit is not None and count >= limit:
            raise GuardError(
                f"while_loop did not end within max_steps={limit} steps. Allow more steps, or "
                f"check why its condition stays true{at(user_line())}."
            )
        leaves = carry.following(body_fun(carry.container(leaves)), leaves)
    return carry.result(leaves, carry.plain)


def _condition(x: Array) -> Any:
    """The result of a condition, checked to be one boolean."""
    spec = describe(x)
    if not isinstance(spec, Spec) or spec.shape or spec.dtype.kind != "b":
        described = spec if isinstance(spec, Spec) else f"a {type(x).__name__}"
        raise DtypeError(
            f"while_loop: the condition is {described}. It must be a single boolean: compare, or "
            f"use np.any or np.all{at(user_line())}."
        )
    return x
