"""Conditionals: cond and switch.

If the condition has a value, one branch is called, as by Python's ``if``.  While a graph is built,
all branches are traced, and one of them runs when the graph does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import describe, is_traced
from wengert._engine.core.message_order import OrderWanted, advance, ordered_by
from wengert._engine.core.spec import Spec
from wengert._engine.core.validation import function
from wengert.errors import ArgumentError, DtypeError, ShapeError, StructureError, at, user_line

from .closure_conversion import Closed, closed, together
from .eager_loops import apart, is_plain, numeric, plain_result, strong
from .loops import mapped
from .message_carry import token_to_carry, with_token
from .operations import cond_op, switch_op

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand
    from wengert._engine.kinds.opaque import Opaque


def cond(
    pred: Operand, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """Apply one of two functions, selected by a boolean.

    Parameters
    ----------
    pred : bool, number or Tensor without axes
        A number is true if it is not 0, as in Python.
    true_fun, false_fun : callable
        Take `operands`; captured tensors are differentiated too.
    *operands
        Arrays, numbers, nested containers of them; anything else is passed through.

    Returns
    -------
    result
        The result of the selected function.

    Raises
    ------
    DtypeError
        `pred` is an array, or not a number. While a graph is built: the dtypes of results differ.
    ShapeError, StructureError
        While a graph is built: the shapes or containers of results differ.
    TraceError
        While a graph is built, a branch writes to captured values, prints, draws random numbers or
        calls ``backward()``.

    Notes
    -----
    If `pred` has a value, this is Python's ``if``: one function is called. In a graph both are
    traced once, and their results must have the same containers, shapes and dtypes; one of them
    runs, and only it contributes to the derivative. Under `vmap` with a batched `pred` both run,
    and each batch element selects a result.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> @wg.jit
    ... def root_or_zero(x):
    ...     return wg.cond(x > 0.0, np.sqrt, lambda x: 0.0 * x, x)
    >>> wg.grad(root_or_zero)(4.0), wg.grad(root_or_zero)(-1.0)
    (np.float64(0.25), np.float64(0.0))
    """
    what = "cond"
    function(true_fun, what)
    function(false_fun, what)
    true_fun, false_fun = converted(true_fun), converted(false_fun)
    _check_which(pred, "biuf", what, "a boolean")
    if not is_traced(pred):
        return _call_branch(true_fun if bool(pred) else false_fun, operands)
    which = pred if describe(pred).dtype.kind == "b" else pred != 0
    return _record_conditional(cond_op, which, [false_fun, true_fun], operands, what)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Apply one of several functions, selected by its index.

    Parameters
    ----------
    index : int or integer Tensor without axes
        A negative index selects the first function, an index that is too large the last.
    branches : sequence of callable
        Take `operands`; captured tensors are differentiated too.
    *operands
        Arrays, numbers, nested containers of them; anything else is passed through.

    Returns
    -------
    result
        The result of the selected function.

    Raises
    ------
    ArgumentError
        There are no branches.
    DtypeError
        `index` is not an integer. While a graph is built: the dtypes of results differ.
    ShapeError, StructureError, TraceError
        As for `cond`.

    Notes
    -----
    In a graph all branches are traced, and one runs; see `cond`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> @wg.jit
    ... def activation(k, x):
    ...     return wg.switch(k, [np.tanh, np.sin, lambda x: x * x], x)
    >>> activation(2, 3.0), activation(99, 3.0)
    (np.float64(9.0), np.float64(9.0))
    """
    what = "switch"
    branches = [converted(f) for f in _checked_branches(branches)]
    _check_which(index, "iu", what, "an integer")
    if not is_traced(index):
        return _call_branch(branches[min(max(int(index), 0), len(branches) - 1)], operands)
    if len(branches) == 1:
        return _call_branch(branches[0], operands)
    return _record_conditional(switch_op, index, branches, operands, what)


def _checked_branches(branches: Any) -> list[Callable[..., Any]]:
    functions = list(branches) if isinstance(branches, Iterable) else None
    if not functions:
        described = (
            "no branches" if functions == [] else f"branches of type {type(branches).__name__}"
        )
        raise ArgumentError(
            f"switch was given {described}. Give a list of at least one function{at(user_line())}."
        )
    for branch in functions:
        function(branch, "switch")
    return functions


def _check_which(x: Operand, kinds: str, what: str, expected: str) -> None:
    spec = numeric(x)
    if spec is None or spec.shape or spec.dtype.kind not in kinds:
        raise DtypeError(
            f"{what}: the selector is {spec or 'a ' + type(x).__name__}. It must be {expected}"
            f"{at(user_line())}."
        )


def _call_branch(f: Callable[..., Any], operands: tuple[Operand, ...]) -> Any:
    """The result of one branch, which gets copies of the operands, as it does when it is traced."""
    plain = is_plain(pytree.flatten(operands)[0])
    out = f(*mapped(apart, operands))
    return mapped(lambda x: plain_result(_own(strong(x)), plain), out)


def _own(x: Array) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else apart(x)


def _record_conditional(
    op: Any, which: Any, functions: Sequence[Any], operands: Any, what: str
) -> Any:
    leaves, structure = pytree.flatten(operands)
    # Python numbers are passed on: they keep their weak dtype.
    slots = [k for k, x in enumerate(leaves) if not _is_python(x) and numeric(x) is not None]
    values = [strong(leaves[k]) for k in slots]
    specs = [Spec(describe(x).shape, describe(x).dtype) for x in values]
    branch_names = [f"branch {k}" for k in range(len(functions))]
    names = ["false_fun", "true_fun"] if op is cond_op else branch_names

    def of_leaves(f: Callable[..., Any] | np.ufunc | Opaque) -> Any:
        def run(*handles: Any) -> Any:
            full = list(leaves)
            for k, h in zip(slots, handles, strict=True):
                full[k] = h
            return mapped(strong, f(*pytree.unflatten(structure, full)))

        return run

    pairs = zip(functions, names, strict=True)
    try:
        closures = [
            closed(of_leaves(f), specs, f"{what}: {name}", hoist=False) for f, name in pairs
        ]
    except OrderWanted:
        first, branches = token_to_carry(), [_with_token(f) for f in functions]
        with ordered_by(None):
            out, last = _record_conditional(op, which, branches, (first, *operands), what)
        advance(last)
        return out
    _check_same_specs(closures, names, what)
    bodies, captured = together(closures)
    outs = op(which, *captured, *values, branches=tuple(bodies))
    return closures[0].container(outs)


def _with_token(f: Callable[..., Any]) -> Callable[..., Any]:
    """A branch that takes the token that orders messages first, and returns it last."""
    return lambda token, *operands: with_token(token, f, *operands)


def _is_python(x: Operand) -> bool:
    return type(x) in (bool, int, float, complex)


def _check_same_specs(closures: Sequence[Closed], names: Sequence[str], what: str) -> None:
    """Refuse branches whose results differ in containers, shapes or dtypes."""
    first = closures[0]
    for closure, name in zip(closures[1:], names[1:], strict=True):
        if (closure.structure, closure.live) != (first.structure, first.live):
            raise StructureError(
                f"{what}: {names[0]} returns {_marked_containers(first)}, and {name} "
                f"{_marked_containers(closure)}. Return the same containers from all "
                f"branches{at(user_line())}."
            )
        paths = pytree.paths(first.container(first.body.outputs))
        live = [p for p, is_live in zip(paths, first.live, strict=True) if is_live]
        for p, a, b in zip(live, first.body.outputs, closure.body.outputs, strict=True):
            a, b = a.spec, b.spec
            if (a.shape, a.dtype) != (b.shape, b.dtype):
                cls = DtypeError if a.shape == b.shape else ShapeError
                raise cls(
                    f"{what}: {names[0]} returns {a} and {name} {b}{' at ' + p if p else ''}. "
                    f"{'Cast' if cls is DtypeError else 'Reshape'} one of them{at(user_line())}."
                )


def _marked_containers(closure: Closed) -> Any:
    return pytree.marked(closure.container([0] * sum(closure.live)))
