"""An integral by QUADPACK as one node, whose parameter is the integrand.

    quadrature   args: captured values, two limits -> integral, estimate, status, evaluations

The body takes the captured values and an array of points, and returns the values there, one number
or one vector for each.  Native code calls it by address (backends/llvm/kernels/quadpack); elsewhere
SciPy computes the integral.  The node exists in compiled programs only: derivatives are those of
the integral that it is made of (scipy/integrate/integral_rule.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.integrate

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.handle import wrap
from wengert._engine.core.op import register
from wengert._engine.core.op_facts import INTEGRAND
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import placeholder
from wengert.errors import OperandError, at, user_line

from .operations import Compile, Control

_NUMBER, _COUNT = Spec((), np.dtype(float)), Spec((), np.dtype(np.int64))
_NAMES = {"body", "epsabs", "epsrel", "limit", "points"}


class Quadrature(Control):
    """An integral.

    The parameters are the body, the tolerances, the largest number of subintervals, and points
    where the integrand is not smooth, in increasing order.  The status of an element is 0 if the
    tolerance is reached, and positive otherwise: as in QUADPACK, or if SciPy has to treat the
    limits; then the value is undefined.
    """

    differentiable = False
    control_flow = INTEGRAND

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> tuple[Spec, ...]:
        """The specs of integral, estimate, status and number of evaluations."""
        body = params.get("body")
        valid = params.keys() == _NAMES and isinstance(body, Body) and len(body.outputs) == 1
        valid = valid and len(specs) == len(body.inputs) + 1  # type: ignore[union-attr]
        if not valid:
            raise OperandError(
                "quadrature: the operands or parameters do not fit its body. Call "
                f"scipy.integrate.quad instead of building such nodes by hand{at(user_line())}."
            )
        assert isinstance(body, Body)
        points = body.inputs[-1].spec
        self.check(body, [*specs[:-2], points], "its body")
        shape = body.outputs[0].spec.shape[1:]
        return Spec(shape, _NUMBER.dtype), _NUMBER, Spec(shape, _COUNT.dtype), _COUNT

    def run_by(self, compile: Compile, *values: Any, **params: Any) -> tuple[Any, ...]:
        """The results by SciPy."""
        run, (*consts, low, high) = compile(params["body"]), values
        shape = params["body"].outputs[0].spec.shape[1:]
        count = params["body"].inputs[-1].spec.shape[0]

        def integral(k: int) -> Any:
            def value(x: float) -> float:
                return float(np.ravel(run([*consts, np.full(count, x)])[0][0])[k])

            limits = float(low), float(high)
            options = params["epsabs"], params["epsrel"], params["limit"], params["points"] or None
            return scipy.integrate.quad(value, *limits, (), 1, *options)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [integral(k) for k in range(int(np.prod(shape, dtype=int)))]
        return (
            np.array([x[0] for x in found]).reshape(shape)[()],
            np.float64(max(x[1] for x in found)),
            np.array([len(x) > 3 for x in found], np.int64).reshape(shape)[()],
            np.int64(sum(x[2]["neval"] for x in found)),
        )


quadrature = register(Quadrature("quadrature", "An integral by QUADPACK."))


def _line(c: Any, a: Any, b: Any, **params: Any) -> Any:
    """The integral of ``c * x``, with QUADPACK's estimate (the oracle)."""
    value = c * (b * b - a * a) / 2
    return value, 50 * np.finfo(float).eps * np.abs(value), np.int64(0), np.int64(21)


@quadrature.examples
def _(rng: np.random.Generator) -> Iterator[Any]:
    with tracing_body():
        c, x = placeholder(_NUMBER), placeholder(Spec((24,), _NUMBER.dtype))
        value = wrap(c) * wrap(x)
    body = Body(value.node, inputs=[c, x], name="c * x")
    params = {"body": body, "epsabs": 1e-8, "epsrel": 1e-8, "limit": 50, "points": ()}
    yield (np.float64(rng.uniform(1.0, 9.0)), np.float64(0.0), np.float64(3.0)), params


quadrature.oracle = _line
