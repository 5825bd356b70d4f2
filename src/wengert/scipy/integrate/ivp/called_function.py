"""Long right-hand sides as functions that the stages of a step call.

A step evaluates the right-hand side once for each stage.  A short one becomes part of each stage:
its values stay in registers.  A long one, such as the reactions of twenty species written one by
one, is a node that calls a function (control_flow: `sized`), and so is its Jacobian: functions are
differentiated, simplified and compiled once for all stages.

    CalledFunction   a right-hand side with its Jacobian
    is_long          whether a function is long
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.autodiff.jacobians import jacfwd
from wengert._engine.control_flow.operations import call_body
from wengert._engine.core.handle import describe
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.ops import casts
from wengert._engine.rewrite import simplify

_LEAST_LONG_OPERATIONS = 64  # operations; a call costs about as much as ten of them
_MOVES = ("indexing", "view")  # kinds of operations that only move numbers


class CalledFunction:
    """A function of time and state that is called, not inlined.

    f : of time and state.
    consts : the values that it captures.
    """

    def __init__(self, f: GraphFunction, consts: Sequence[Any]) -> None:
        self._f, self._consts = f, list(consts)
        self._jacobian: GraphFunction | None = None

    def __call__(self, t: Any, y: Any) -> Any:
        """The derivative of the state."""
        return self._called(self._f, t, y)

    def jacobian(self, t: Any, y: Any) -> Any:
        """Its derivative with respect to the state, of shape (n, n)."""
        if self._jacobian is None:
            f, count = self._f, len(self._consts)
            specs = [Spec(n.spec.shape, n.spec.dtype) for n in f.body.inputs]

            def matrix(*xs: Any) -> list[Any]:
                return [jacfwd(lambda y: f(xs[:count], [xs[count], y])[0])(xs[-1])]

            found = GraphFunction.traced_alone(matrix, specs, "Jacobian")
            # Before it is differentiated: the unit vectors of the columns are gone then.
            self._jacobian = GraphFunction(simplify(found.body), found.captured)
        return self._called(self._jacobian, t, y)

    def _called(self, f: GraphFunction, t: Any, y: Any) -> Any:
        """The value; if it was traced for a state of another dtype, it is inlined."""
        t = casts.astype(t, float)
        if describe(y).dtype != f.body.inputs[-1].spec.dtype:
            return f(self._consts, [t, y])[0]
        return call_body(f.body, [*self._consts, t, y])[0]


def is_long(f: GraphFunction) -> bool:
    """Whether a function is long, for arrays of known lengths."""
    body = f.body
    if f.sends or body.size_names or body.open_names or body.local_names:
        return False
    return (
        sum([not n.is_leaf and n.op.kind not in _MOVES for n in body.nodes])
        > _LEAST_LONG_OPERATIONS
    )
