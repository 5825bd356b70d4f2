"""Choices as users write them: cond and switch.

Where it is known which way to go, that way is taken, as by Python's own ``if``.  While a graph is
built, all branches are written down, and one runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import tree
from ..core.given import function
from ..core.handle import describe, is_traced
from ..core.spec import Spec, bare
from ..errors import ArgumentError, DtypeError, ShapeError, StructureError, at, user_line
from .closing import Closed, closed, together
from .operations import cond_op, switch_op
from .stepping import as_number, strong


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """Apply one of two functions, whichever a truth value says."""
    what = "cond"
    function(true_fun, what)
    function(false_fun, what)
    _check_which(pred, "biuf", what, "a truth value")
    if not is_traced(pred):
        return (true_fun if bool(pred) else false_fun)(*operands)
    which = pred if describe(pred).dtype.kind == "b" else pred != 0
    return _chosen(cond_op, which, [false_fun, true_fun], operands, what)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Apply one of several functions, by number."""
    what = "switch"
    branches = list(branches)
    for branch in branches:
        function(branch, what)
    if not branches:
        raise ArgumentError(f"switch: there are no branches to choose from{at(user_line())}.")
    _check_which(index, "iu", what, "a whole number")
    if not is_traced(index):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    if len(branches) == 1:
        return branches[0](*operands)
    return _chosen(switch_op, index, branches, operands, what)


def _check_which(x: Any, kinds: str, what: str, wanted: str) -> None:
    spec = describe(x)
    if not isinstance(spec, Spec) or spec.shape or spec.dtype.kind not in kinds:
        given = f"a {type(x).__name__}" if spec is None else str(spec)
        raise DtypeError(
            f"{what}: what it chooses by is {given}, and not {wanted}{at(user_line())}."
        )


def _chosen(op: Any, which: Any, functions: Sequence[Any], operands: Any, what: str) -> Any:
    leaves, structure = tree.flatten(operands)
    slots = [k for k, x in enumerate(leaves) if isinstance(describe(x), Spec)]
    given = [as_number(leaves[k]) for k in slots]
    specs = [Spec(describe(x).shape, describe(x).dtype) for x in given]
    numbers = [f"branch {k}" for k in range(len(functions))]
    names = ["false_fun", "true_fun"] if op is cond_op else numbers

    def of_leaves(f: Any) -> Any:
        def run(*handles: Any) -> Any:
            full = list(leaves)
            for k, h in zip(slots, handles, strict=True):
                full[k] = h
            out, shape = tree.flatten(f(*tree.unflatten(structure, full)))
            return tree.unflatten(shape, [x if x is None else strong(x) for x in out])

        return run

    pairs = zip(functions, names, strict=True)
    made = [closed(of_leaves(f), specs, f"{what}: {name}") for f, name in pairs]
    _check_alike(made, names, what)
    bodies, captured = together(made)
    outs = op(which, *captured, *given, branches=tuple(bodies))
    return made[0].container(outs)


def _check_alike(made: Sequence[Closed], names: Sequence[str], what: str) -> None:
    """Refuse branches that give different things."""
    first = made[0]
    for one, name in zip(made[1:], names[1:], strict=True):
        if (one.structure, one.live) != (first.structure, first.live):
            raise StructureError(
                f"{what}: {names[0]} returns {_shape(first)}, and {name} {_shape(one)}. Return the "
                f"same containers from all{at(user_line())}."
            )
        for k, (a, b) in enumerate(zip(first.body.outputs, one.body.outputs, strict=True)):
            if bare(a.spec) != bare(b.spec):
                place = f" (result {k})" if len(one.body.outputs) > 1 else ""
                raise ShapeError(
                    f"{what}: {names[0]} returns {a.spec} and {name} {b.spec}{place}. Cast or "
                    f"reshape one of them{at(user_line())}."
                )


def _shape(one: Closed) -> Any:
    marks = ["*" if x else None for x in one.live]
    return tree.unflatten(one.structure, marks)
