"""Derivatives of high order along a curve: jet.

The coefficients of an argument are those of a curve x(t) through its primal, and the result has
those of f(x(t)).  They are propagated as truncated Taylor series (series.py), so the cost grows
with the square of the order; nested forward mode would cost 2^K.

    jet    the value and the derivatives up to order K along a curve
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import factorial
from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, describe, is_traced, wrap
from wengert._engine.core.node import Node, constant, next_serial
from wengert._engine.core.recording import innermost_session
from wengert._engine.core.thread_state import errors_ignored
from wengert._engine.core.tracing import derivation, level_above
from wengert._engine.core.uniform_arrays import zeros
from wengert._engine.core.validation import function
from wengert.errors import NotDifferentiableError, StructureError, at, user_line

from . import infinities
from .arguments import Variables, name_of, recorded
from .infinities import linear_nodes, note_written
from .messages import Messages
from .pullback import Result, match
from .reverse import as_handle, has_nan
from .series import propagate
from .series_terms import Coefficients
from .tape import Tape, passes_over, tape_between


def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    factorial_scaled: bool = True,
) -> tuple[Any, Any]:
    r"""Value and derivatives of high order of a function along a curve.

    Parameters
    ----------
    fun : callable
        Takes and returns arrays or nested containers of them.
    primals : sequence
        The arguments of `fun`: the point x(0) of the curve.
    series : sequence of sequences
        For each primal the derivatives x'(0), x''(0), ... of the curve, each with the structure and
        shapes of the primal. All have the same number K of terms, the order. For derivatives of
        order K in the direction v, give ``[v, 0, 0, ...]``, with zeros like v.
    factorial_scaled : bool, default True
        If False, terms are Taylor coefficients, the derivatives divided by the factorial of their
        order, in `series` and in the result.

    Returns
    -------
    primals_out
        The value ``fun(*primals)``.
    series_out
        The structure of `primals_out`, with a list of K arrays for each leaf: the derivatives of
        ``fun(x(t))`` of order 1 to K at t = 0.

    Raises
    ------
    StructureError
        `series` does not have one entry for each primal, or entries have different lengths.
    ShapeError
        A term does not have the shape of its primal.
    NotDifferentiableError
        `fun` uses an operation without a derivative, or exchanges messages with other processes.

    See Also
    --------
    jvp : order one.

    Notes
    -----
    Truncated Taylor series are propagated through the operations, so the time grows with the square
    of the order. Every differentiable operation, loop and branch is supported, by its derivative
    rule. The result can be differentiated, batched and compiled. Interface and conventions are
    those of ``jax.experimental.jet``.

    Examples
    --------
    The derivatives of sin(t) at 0:

    >>> import numpy as np, wengert as wg
    >>> value, terms = wg.jet(np.sin, (0.0,), ([1.0, 0.0, 0.0, 0.0],))
    >>> [float(x) for x in (value, *terms)]
    [0.0, 1.0, -0.0, -1.0, 0.0]

    The third derivative of a function of several variables in a direction:

    >>> x, v = np.array([1.0, 2.0]), np.array([1.0, -1.0])
    >>> _, terms = wg.jet(lambda x: np.prod(x) ** 2, (x,), ([v, 0 * v, 0 * v],))
    >>> terms[2].round(6)
    np.float64(-12.0)
    """
    function(fun, "jet")
    what = f"jet of {name_of(fun)}"
    order = _checked_order(primals, series, what)
    variables = Variables(tuple(primals), what)
    given = _coefficients(variables, series, order, factorial_scaled, what)
    messages = Messages.of_call()
    outs, structure = pytree.flatten(
        recorded(variables.nodes, lambda: converted(fun)(*variables.handles()), messages)
    )
    result = Result(outs, variables.nodes, variables, messages)
    if result.messages is not None:
        raise NotDifferentiableError(
            f"{what}: the function exchanges messages with other processes, which jet does not "
            f"support. Nest wengert.jvp instead{at(user_line())}."
        )
    found = _series_of(result, dict(zip(variables.nodes, given, strict=True)), order)
    scales = [factorial(k + 1) if factorial_scaled else 1 for k in range(order)]
    terms = [_terms(x, o, scales, result) for x, o in zip(found, outs, strict=True)]
    values = [result.copied(o) for o in outs]
    return pytree.unflatten(structure, values), pytree.unflatten(structure, terms)


def _checked_order(primals: Any, series: Any, what: str) -> int:
    if not isinstance(primals, tuple | list) or not isinstance(series, tuple | list):
        raise StructureError(
            f"{what}: primals and series must be tuples, one entry for each argument. For one "
            f"argument write (x,), ([x1, x2, ...],){at(user_line())}."
        )
    if len(primals) != len(series):
        raise StructureError(
            f"{what}: {len(primals)} primals and {len(series)} series were given. Give the terms "
            f"of each primal, in the same order{at(user_line())}."
        )
    for k, terms in enumerate(series):
        if not isinstance(terms, tuple | list):
            raise StructureError(
                f"{what}: the series of primal {k} is a {type(terms).__name__}. Give a list of its "
                f"terms, [x1, x2, ...]{at(user_line())}."
            )
    lengths = [len(terms) for terms in series]
    if len(set(lengths)) > 1:
        raise StructureError(
            f"{what}: the series have {' and '.join(map(str, lengths))} terms. Give the same "
            f"number for all primals; terms that are not known to differ from zero are "
            f"zeros{at(user_line())}."
        )
    return lengths[0] if lengths else 0


def _coefficients(
    variables: Variables, series: Sequence[Sequence[Any]], order: int, scaled: bool, what: str
) -> list[Coefficients]:
    """The Taylor coefficients of each variable; None for zeros."""
    by_order = [
        match(
            tuple([terms[k] for terms in series]),
            variables.leaves,
            variables.structure,
            what,
            "terms",
        )
        for k in range(order)
    ]
    return [
        [_divided(row[slot], factorial(k + 1) if scaled else 1) for k, row in enumerate(by_order)]
        for slot in variables.slots
    ]


def _divided(x: Any, count: int) -> Any:
    if not isinstance(x, Handle) and not np.any(x):
        return None
    return x if count == 1 else x * (1.0 / count)


def _terms(
    found: Coefficients | None, out: Any, scales: Sequence[int], result: Result
) -> list[Any]:
    """The terms of one output, as they are returned to the caller."""
    spec = describe(out)
    terms = []
    for k, scale in enumerate(scales):
        x = None if found is None else found[k]
        if x is None:
            x = None if spec is None else zeros(spec)
        elif scale != 1:
            x = x * scale
        elif type(x) is np.ndarray:
            x = x.copy()  # it may be an argument, or a view of one
        plain = not isinstance(x, Handle)
        terms.append(wrap(constant(x)) if result.tensors and plain and x is not None else x)
    return terms


def _series_of(
    result: Result, series: Mapping[Node, Coefficients], order: int
) -> list[Coefficients | None]:
    """The coefficients of the outputs; None for an output that depends on no variable."""
    live = [n for n in result.out_nodes if type(n) is Node]
    given = [x for terms in series.values() for x in terms]
    kept = any(isinstance(x, Handle) and (type(x.node) is Node or x.node.is_traced) for x in given)
    is_recorded = result.recorded or kept
    if not live or not order:
        return [None] * len(result.out_nodes)
    if result.tape.traced or any(map(is_traced, given)):
        found = traced_series(live, series, order, result.tape)[0]
    else:
        found = _eager_series(live, series, order, result.tape, is_recorded)
    remaining = iter(found)
    return [next(remaining) if type(n) is Node else None for n in result.out_nodes]


@errors_ignored
def traced_series(
    outputs: Sequence[Node],
    series: Mapping[Node, Coefficients],
    order: int,
    tape: Tape | None = None,
    masked: bool = False,
) -> tuple[list[Coefficients | None], list[bool]]:
    """The series of outputs as nodes of a graph, and whether zeros in them may be masked."""
    tape = tape_between(outputs, set(series)) if tape is None else tape
    with derivation(level_above(outputs)) as recorder:
        # In the graph of the series such compositions are not recognized any more.
        new = infinities.stabilised(tape, outputs, list(series))
        if new is not None:
            outputs = [new[n] for n in outputs]
            tape = tape_between(outputs, set(series))
        return propagate(outputs, series, order, tape, True, masked, recorder=recorder)


@errors_ignored
def _eager_series(
    outputs: Sequence[Node],
    series: Mapping[Node, Coefficients],
    order: int,
    tape: Tape,
    is_recorded: bool,
) -> list[Coefficients | None]:
    """The series of values, repeated as in `forward.pushforward` if there are NaN."""
    start = next_serial()
    recorder = innermost_session() if is_recorded else None
    found: list[Coefficients | None] = []
    for guarded in passes_over(tape):
        linear = linear_nodes(tape) if guarded else None
        args = (outputs, series, order, tape, is_recorded, guarded, linear)
        if recorder is None:
            found, _ = propagate(*args)
        else:
            with recorder.deriving(1 + max((n.level for n in outputs), default=0)):
                found, _ = propagate(*args, recorder)
        results = [x for terms in found for x in terms or () if x is not None]
        is_nan = any(map(has_nan, results))
        if not is_nan and (guarded or not infinities.is_infinite(outputs)):
            break
        if not guarded:
            overflowed = infinities.has_overflowed(tape)
            new = infinities.stabilised(tape, outputs, list(series)) if overflowed else None
            if new is not None:
                outputs = [new[n] for n in outputs]
                tape = tape_between(outputs, set(series))
            elif not is_nan:
                break
    if is_recorded:
        found = [
            None if terms is None else [None if x is None else as_handle(x) for x in terms]
            for terms in found
        ]
        results = [x for terms in found for x in terms or () if x is not None]
        note_written(tape, results, start, results)
    return found
