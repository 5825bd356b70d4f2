"""Integrals by `quad` as native code, where their integrand is.

The integrand becomes a function of all points of a rule, which QUADPACK's routine calls
(control_flow/quadrature.py).  Python is called only if that reports a status, to warn or to raise.

    native_integral   integral, estimate, status and number of evaluations
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.autodiff.vmap import vmap
from wengert._engine.control_flow import cond, map
from wengert._engine.control_flow.quadrature import quadrature
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import inline_graph
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import LeafOp
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import placeholder
from wengert._engine.ops.casts import astype

_DOUBLE = np.dtype(float)
_MAX_NODES = 300  # of the graph of an integrand that is computed for all points together
_MAX_ELEMENTS = 256  # of a node of that graph, at each point
_KINDS = frozenset({"elementwise", "view", "indexing", "reduction", "contraction", "creation"})
# Points of a call: those of the rule, in whole vectors if they are computed together.
_POINTS = {(False, False): 21, (False, True): 24, (True, False): 15, (True, True): 16}
_LEAST_TOLERANCE = 50.0 * float(np.finfo(float).eps)  # of QUADPACK, without an absolute one


def native_integral(
    body: Body, captured: int, routine: Any, operands: Sequence[Any], reported: Callable[..., Any]
) -> Any:
    """Integral, estimate, status, and number of evaluations; NotImplemented if SciPy has to do it.

    Parameters
    ----------
    body : Body
        The integrand: captured values, and the variable.
    captured : int
    routine : QuadRoutine
    operands : sequence
        The captured values, and the two limits.
    reported : callable
        The results after a warning, from these results and the operands; also called if the
        integral is not finite.
    """
    result = body.outputs[0].spec
    is_plain = routine.weight is None and result.dtype == np.float64 and len(result.shape) < 2
    is_valid = routine.epsabs > 0.0 or routine.epsrel >= _LEAST_TOLERANCE
    is_valid = is_valid and isinstance(routine.limit, int) and routine.limit >= 1
    points = routine.points or ()
    if not (is_plain and is_valid and np.all(np.isfinite(points))):
        return NotImplemented
    if any([not isinstance(n, int) for n in result.shape]):  # a length that is not known
        return NotImplemented
    wanted = [*(n.spec.dtype for n in body.inputs[:captured]), _DOUBLE, _DOUBLE]
    value, error, status, count = quadrature(
        *[x if x.dtype == d else astype(x, d) for x, d in zip(operands, wanted, strict=True)],
        body=_at_points(body, routine.is_infinite),
        epsabs=routine.epsabs,
        epsrel=routine.epsrel,
        limit=routine.limit,
        points=tuple(np.unique(points).tolist()),
    )
    all_of, both = lookup("all"), lookup("logical_and")
    ends = all_of(both(status == 0, np.isfinite(value + error)), axis=None)

    def finished(value: Any, error: Any, status: Any, count: Any, *_: Any) -> Any:
        return value, error, np.int64(0), count

    return cond(ends, finished, reported, value, error, status, count, *operands)


def _at_points(body: Body, is_infinite: bool) -> Body:
    """The integrand for all points of a rule."""
    together = _is_vectorized(body)
    count = _POINTS[is_infinite, together]
    with tracing_body():
        consts = [placeholder(n.spec) for n in body.inputs[:-1]]
        points = placeholder(Spec((count,), _DOUBLE))
        given = [wrap(x) for x in consts]

        def function(x: Any) -> Any:
            return inline_graph(body, [*given, x])[0]

        values = (vmap(function) if together else lambda xs: map(function, xs))(wrap(points))
    return Body(values.node, inputs=[*consts, points], name=body.name)


def _is_vectorized(body: Body) -> bool:
    """Whether the integrand is computed for all points together, and not in turn."""
    if len(body.nodes) > _MAX_NODES or body.size_names:
        return False
    if max(n.spec.size for n in body.nodes if isinstance(n.spec, Spec)) > _MAX_ELEMENTS:
        return False
    operations: list[Any] = [n.op for n in body.nodes if not isinstance(n.op, LeafOp)]
    return all(op.kind in _KINDS and not op.host_callback for op in operations)
