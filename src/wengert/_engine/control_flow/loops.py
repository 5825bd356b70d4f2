"""Loops along arrays: scan, map.

With concrete values a loop runs step by step in Python, and every step is recorded if a derivative
is taken.  While a graph is built it becomes one node (operations.py), whose body is traced once,
for any number of steps.

    scan         carry a value along an array, and stack the results of the steps
    map          apply a function to each row
    scan_node    the node that these and fori_loop (fori_while.py) become
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.vmap import vmap
from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, describe, is_traced, shape_of, wrap
from wengert._engine.core.message_order import OrderWanted, advance, ordered_by
from wengert._engine.core.node import constant
from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import stepping
from wengert._engine.core.validation import function
from wengert.errors import (
    ArgumentError,
    DtypeError,
    StructureError,
    TraceError,
    WengertError,
    at,
    user_line,
)

from .checkpoint_schedule import budget_of
from .closure_conversion import Closed, closed
from .eager_loops import Carry, Columns, ScannedInputs, becomes_node, is_plain, strong
from .message_carry import token_to_carry, with_token
from .operations import scan_op

if TYPE_CHECKING:
    from wengert._engine.control_flow.operations import Control
    from wengert._engine.core.spec import Spec
    from wengert._engine.core.types import Array, Operand, Size


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Array | Sequence[Array | None] | None = None,
    length: Operand | Size | None = None,
    reverse: bool = False,
    unroll: int = 1,
    memory: int | str | None = None,
) -> tuple[Any, Any]:
    """Carry a value along an array, and stack the results of the steps.

    Equivalent to the following, for arrays and nested containers of them::

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, np.stack(ys)

    Parameters
    ----------
    f : callable
        ``f(carry, x)`` takes the carry and one row of `xs`, and returns the next carry and the
        output of the step (or None). The returned carry has the containers, shapes and dtypes of
        the given one. `f` may modify its arguments; captured arrays are differentiated too.
    init : array_like, Tensor, or nested containers of them
        The first carry. The Python number 0 is an integer, 0.0 a float64.
    xs : array_like, Tensor, or nested containers of them, optional
        The arrays to loop over, of equal length in axis 0. Without them `f` is passed None.
    length : int, optional
        The number of steps, if there is no `xs`. While a graph is built it may be a symbolic size
        (``x.shape[0]``), but not a value: use `fori_loop` for that.
    reverse : bool, default False
        Whether to start at the last row; outputs keep the position of their row.
    unroll : int, default 1
        Accepted for compatibility with other libraries; it changes no result. The compiler decides
        whether to unroll.
    memory : int or str, optional
        The number of states that the backward pass may keep, besides residuals of as many steps, or
        bytes for both (``"64 MiB"``). By default all residuals are stored. With n states, up to n²
        steps are recomputed once each; longer loops use binomial checkpointing. It applies to
        graphs, for first derivatives in reverse mode.

    Returns
    -------
    carry
        The carry after the last step; `init` if there are no steps.
    ys
        The outputs of the steps, stacked along a new axis 0, which is empty if there are no steps.

    Raises
    ------
    StructureError
        A step did not return a pair, returned different containers or something that is not a
        number; or the number of steps is not given.
    ShapeError, DtypeError
        The carry or the output changes between steps; the lengths of `xs` differ.
    ArgumentError
        A negative length, an `unroll` below 1, `memory` too small for one state.
    TraceError
        While a graph is built, `f` writes to captured values, prints, draws random numbers or calls
        ``backward()``.

    Notes
    -----
    With concrete values `f` is called for each step, at the speed of Python and NumPy; if there are
    no steps, it is called once to determine the shapes of its outputs. In a graph it is traced once
    for any length, and the loop is one node. The derivatives are loops too: forward mode adds
    tangents to the carry; reverse mode loops backward over residuals stored by the forward loop.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> def grow(total, x):
    ...     total = 0.5 * total + x
    ...     return total, total
    >>> wg.scan(grow, 0.0, np.array([1.0, 2.0, 3.0]))
    (np.float64(4.25), array([1.  , 2.5 , 4.25]))
    >>> wg.grad(lambda xs: wg.scan(grow, 0.0, xs)[0])(np.ones(3))
    array([0.25, 0.5 , 1.  ])
    """
    what = "scan"
    function(f, what)
    f = converted(f)
    _check_unroll(unroll)
    carry = Carry(init, what)
    rows = ScannedInputs(xs, whole(length, what), what)
    reverse, budget = bool(reverse), budget_of(memory, carry.specs, what)
    if not becomes_node([*carry.leaves, *rows.leaves, rows.length]):
        return _scan_now(f, carry, rows, reverse)
    try:
        closure = _step_of(f, carry, rows)
    except OrderWanted:
        return _scan_with_token(f, init, xs, length, reverse, memory)
    outs = scan_node(closure, carry.leaves, rows.leaves, rows.length, reverse, budget=budget)
    leaves, ys = closure.container(outs)
    return carry.container(leaves), ys


def _scan_with_token(
    f: Callable[..., Any],
    init: Any,
    xs: Any,
    length: Any,
    reverse: bool,
    memory: Any,
) -> tuple[Any, Any]:
    """`scan` of a step that may exchange messages: the token that orders them is carried too."""

    def step(carry: tuple[Any, Any], x: Any) -> Any:
        out, token = with_token(carry[1], f, carry[0], x)
        value, y = pair(out)
        return (value, token), y

    first = token_to_carry()
    with ordered_by(None):
        (carry, last), ys = scan(step, (init, first), xs, length, reverse, memory=memory)
    advance(last)
    return carry, ys


def _step_of(f: Callable[..., Any], carry: Carry, rows: ScannedInputs) -> Closed:
    """A step as a body: from the leaves of the carry and the row to those of the carry and of y."""

    def step(*leaves: Any) -> Any:
        count = len(carry.leaves)
        out = pair(f(carry.container(leaves[:count]), rows.container(leaves[count:])))
        return carry.checked(out[0]), mapped(strong, out[1])

    return closed(step, [*carry.specs, *rows.specs], "scan", steps=rows.length)


def scan_node(
    closure: Closed,
    carry: Any,
    rows: Any,
    length: Any,
    reverse: bool,
    count: Any = None,
    budget: Mapping[str, Any] | None = None,
) -> list[Any]:
    """The results of a loop that becomes a node.

    Parameters
    ----------
    closure : Closed
        The step.
    carry, rows : list
        Operands: the first carry, and the arrays that are looped over.
    length : int or Dim or None
    reverse : bool
    count : Tensor, optional
        The number of steps, if it is computed in the graph.
    budget : mapping, optional
        How many states the backward pass may store (checkpoint_schedule.py).
    """
    params = {
        "body": closure.body,
        "carried": len(carry),
        "stacked": len(rows),
        "length": length,
        "reverse": reverse,
        "counted": count is not None,
    }
    params.update(budget or {})
    count_operand = [] if count is None else [count]
    return list(recorded(scan_op, [*count_operand, *closure.captured, *carry, *rows], params))


def recorded(op: Control, args: list[Any], params: dict[str, Any]) -> Any:
    """A node of the graph that is being built, even if all operands have values."""
    if not any(isinstance(a, Handle) for a in args) and args:
        args[0] = wrap(constant(args[0]))
    return op(*args, **params) if args else op.run(**params)


def _scan_now(
    f: Callable[..., Any], carry: Carry, rows: ScannedInputs, reverse: bool
) -> tuple[Any, Any]:
    plain = is_plain([*carry.leaves, *rows.leaves])
    leaves, columns = carry.start(), Columns("scan")
    if rows.length == 0:
        return carry.result(leaves, plain), _empty_outputs(f, carry, rows)
    numbers = range(rows.length)
    for k in stepping("scan", reversed(numbers) if reverse else numbers):
        out = pair(f(carry.container(leaves), rows.at(k)))
        columns.add(out[1])
        leaves = carry.following(out[0], leaves)
    return carry.result(leaves, plain), columns.stacked(reverse, plain)


def _empty_outputs(f: Callable[..., Any], carry: Carry, rows: ScannedInputs) -> Any:
    """The outputs of a loop without steps: empty arrays with the shapes and dtypes of outputs."""
    try:
        closure = _step_of(f, carry, rows)
        carry_leaves = [None] * len(carry.leaves)
        ys = [n.spec for n in closure.body.outputs[len(carry_leaves) :]]
        ys = closure.container([*carry_leaves, *ys])[1]
    except (TraceError, ValueError, TypeError) as error:
        if not _may_need_values(error):
            raise
        # The step cannot be traced, because it needs values; run it on zeros instead.
        row = rows.container([np.zeros(s.shape, s.dtype)[()] for s in rows.specs])
        with np.errstate(all="ignore"):
            out = pair(f(carry.container(carry.start()), row))
        carry.checked(out[0])
        ys = mapped(lambda y: describe(strong(y)), out[1])
    return mapped(lambda s: np.empty((0, *s.shape), s.dtype), ys)


def _may_need_values(error: Exception) -> bool:
    """Whether tracing may have failed because a step needs values or writes to a plain array."""
    return isinstance(error, TraceError) or not isinstance(error, WengertError)


def pair(out: tuple[Any, ...]) -> tuple[Any, Any]:
    """The carry and the output that a step returned."""
    if not isinstance(out, tuple | list) or len(out) != 2:
        returned = (
            f"{len(out)} values" if isinstance(out, tuple | list) else f"a {type(out).__name__}"
        )
        raise StructureError(
            f"scan: a step returned {returned} instead of a pair (carry, y). Return (carry, None) "
            f"if there is no output{at(user_line())}."
        )
    return out[0], out[1]


def mapped(f: Callable[[Any], Any], x: Operand | tuple[Operand | Spec, ...] | Spec | None) -> Any:
    """Apply a function to each leaf that is not None."""
    leaves, structure = pytree.flatten(x)
    return pytree.unflatten(structure, [v if v is None else f(v) for v in leaves])


def whole(length: Any, what: str, name: str = "length") -> Any:
    """A number of steps: an int or a symbolic size; None is passed through.

    Raises
    ------
    DtypeError
        It is a value that is not known while a graph is built.
    ArgumentError
        It is not an integer, or negative.
    """
    if length is None or isinstance(length, Dim):
        return length
    if is_traced(length):
        raise DtypeError(
            f"{what}: {name} is a traced value, which is not known while the graph is built. Use "
            f"fori_loop or while_loop, whose number of steps may depend on values{at(user_line())}."
        )
    try:
        number = None if isinstance(length, bool) else operator.index(length)
    except TypeError:
        number = None
    if number is None or number < 0:
        problem = "negative" if number is not None else "not an integer"
        raise ArgumentError(
            f"{what}: {name}={length!r} is {problem}. Give a number of steps, 0 or more"
            f"{at(user_line())}."
        )
    return number


def _check_unroll(unroll: int) -> None:
    if (
        not isinstance(unroll, int | np.integer)
        or unroll < 0
        or (unroll == 0 and unroll is not False)
    ):
        raise ArgumentError(
            f"scan: unroll={unroll!r}. Give a number of steps, 1 or more{at(user_line())}."
        )


def map(f: Callable[[Any], Any], xs: Any, batch_size: int | None = None) -> Any:
    """Apply a function to each row of `xs`, and stack the results.

    Parameters
    ----------
    f : callable
        Takes one row, and returns arrays or nested containers of them.
    xs : array_like, Tensor, or nested containers of them
        All of equal length in axis 0.
    batch_size : int, optional
        The number of rows to compute together by `vmap`: faster than one at a time, but takes the
        memory of all of them, and `f` must not branch on values.

    Returns
    -------
    ys
        The results, stacked along a new axis 0.

    Raises
    ------
    ArgumentError
        `batch_size` is below 1, or is given although the length is symbolic.
    StructureError, ShapeError, DtypeError, TraceError
        As `scan`.

    Notes
    -----
    This is a `scan` without a carry: one row after the other. `vmap` computes all rows together.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.control.map(lambda x: x @ x, np.arange(6.0).reshape(3, 2))
    array([ 1., 13., 41.])
    """
    what = "map"
    function(f, what)
    rows = ScannedInputs(xs, None, what)
    if batch_size is None:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ArgumentError(
            f"{what}: batch_size={batch_size!r}. Give an integer of at least 1{at(user_line())}."
        )
    if isinstance(rows.length, Dim):
        raise ArgumentError(
            f"{what}: batch_size={batch_size} for {rows.length} elements, a symbolic size that is "
            "not known while the graph is built. Give the input a fixed size, or omit batch_size"
            f"{at(user_line())}."
        )
    return _in_batches(f, rows, batch_size)


def _in_batches(f: Callable[..., Any], rows: ScannedInputs, size: int) -> Any:
    batched = vmap(f)
    if rows.length <= size:
        return batched(rows.container(rows.leaves))
    covered = rows.length // size * size
    parts = [x[:covered].reshape(-1, size, *shape_of(x)[1:]) for x in rows.leaves]
    results = map(batched, rows.container(parts))
    results = mapped(lambda y: y.reshape(covered, *shape_of(y)[2:]), results)
    if covered == rows.length:
        return results
    last = batched(rows.container([x[covered:] for x in rows.leaves]))
    join = lookup("concatenate")
    return pytree.tree_map(lambda a, b: a if a is None else join(a, b, axis=0), results, last)
