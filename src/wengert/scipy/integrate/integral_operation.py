"""An integral by a routine of SciPy as one operation, whose parameter is the integrand.

In a compiled function `quad` without a weight is native code (native_integral.py).  Others are host
callbacks, which call SciPy with machine code where SciPy takes it, and with a compiled function
elsewhere.

    Integrated      what a routine returns
    Routine         the interface of a routine with its options
    derivative_of   the name of a derivative in warnings
    QuadRoutine     scipy.integrate.quad
    VectorRoutine   scipy.integrate.quad_vec
    integrate       the integral for plain operands
    scipy_integral  the operation; it has no derivative (integral_rule.py)
    reported_integral  the results of native code that did not reach the tolerance
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.handle import wrap
from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import placeholder
from wengert._engine.kinds.opaque import opaque
from wengert._engine.serialization.class_registry import register_class
from wengert.errors import NotDifferentiableError, at, user_line

from .integrands import Integrand, InterpretedIntegrand, compiled, with_sizes
from .native_integral import native_integral

_NUMBER = Spec((), np.dtype(float))
_MAX_SEPARATE = 16  # elements of a vector that are integrated one after another
_LIMIT_OF_VECTORS = 10000
_INTERVALS_OF_SCALE = 20  # for the integral of the absolute value
# SciPy's warnings by QUADPACK's status and the largest number of subintervals, once they are known.
_MESSAGES: dict[tuple[int, int], str] = {}
_STATUSES = range(1, 6)

# The derivative of a weight with respect to its parameter k: a weight, and the factor of x.
_WEIGHT_DERIVATIVES = {
    ("cos", 0): ("sin", -1.0),
    ("sin", 0): ("cos", 1.0),
    ("alg", 0): ("alg-loga", 0.0),
    ("alg", 1): ("alg-logb", 0.0),
    ("alg-loga", 1): ("alg-log", 0.0),
    ("alg-logb", 0): ("alg-log", 0.0),
}


class Integrated(NamedTuple):
    """The result of a routine.

    value : the integral.
    error : the estimate of its error, a number or an array.
    status : SciPy's status; 0 if the tolerance is reached.
    neval : the number of evaluations.
    more : what SciPy returns after value and error with `full_output`.
    messages : its warning for each element of the result, or None.
    """

    value: Any
    error: Any
    status: int
    neval: int
    more: tuple[Any, ...] = ()
    messages: tuple[str | None, ...] = ()


class Routine:
    """A routine of SciPy with its options; hashable.

    has_errors : whether the error is estimated for each element of the result.
    """

    has_errors = False

    def __call__(
        self, integrand: Integrand, consts: Sequence[Any], ends: Sequence[Any], shape: Any
    ) -> Integrated:
        """Integrate; `ends` are the limits, and parameters of the weight; `shape` of the result."""
        raise NotImplementedError

    def for_derivative(self, count: Any) -> Routine:
        """The routine for a derivative with `count` elements; None for one number."""
        raise NotImplementedError

    def weighted(self, x: Any, y: Any, ends: Sequence[Any]) -> Any:
        """The value `y` of the function at `x`, multiplied with the weight."""
        return y


def derivative_of(what: str) -> str:
    """The name of a derivative in warnings."""
    return what if what.startswith("the derivative") else f"the derivative of {what}"


@register_class
@dataclass(frozen=True)
class QuadRoutine(Routine):
    """`scipy.integrate.quad` with its options.

    what : the name in warnings.
    is_infinite : whether a limit is known to be infinite, so that another rule is used.
    """

    what: str
    epsabs: float
    epsrel: float
    limit: int
    points: tuple[float, ...] | None = None
    weight: str | None = None
    maxp1: int = 50
    limlst: int = 50
    is_infinite: bool = False

    def __call__(
        self, integrand: Integrand, consts: Sequence[Any], ends: Sequence[Any], shape: Any
    ) -> Integrated:
        """Call SciPy, once for each element, or for many elements as an integral of a vector."""
        if not shape:
            return self._number(integrand, consts, ends, None)
        if shape[0] > _MAX_SEPARATE and self.weight is None:
            return self.of_vectors()(integrand, consts, ends, shape)
        parts = [self._number(integrand, consts, ends, k) for k in range(shape[0])]
        return Integrated(
            np.array([p.value for p in parts]),
            max([p.error for p in parts], default=0.0),
            max([p.status for p in parts], default=0),
            sum([p.neval for p in parts]),
            messages=tuple([p.messages[0] for p in parts]),
        )

    def warn(self, message: str) -> None:
        """Show a warning of SciPy."""
        text = f"{self.what}: {message}"
        warnings.warn(text, scipy.integrate.IntegrationWarning, stacklevel=3)

    def _number(
        self, integrand: Integrand, consts: Sequence[Any], ends: Sequence[Any], element: int | None
    ) -> Integrated:
        # SciPy wraps the function of a weighted integral from -inf in one of Python.
        is_wrapped = self.weight is not None and -np.inf in (float(ends[0]), float(ends[1]))
        f = integrand.number(consts, element, python=is_wrapped)
        try:
            found = self._by_scipy(f, ends)
        finally:
            integrand.release(f)
        if not callable(f) and np.isnan(found[0]):
            # Machine code cannot raise: if the function does, it does so now.
            found = self._by_scipy(integrand.number(consts, element, python=True), ends)
        value, error, info, *messages = found
        message = messages[0] if messages else None
        if message is not None:
            self.warn(message)
        status, more = int(message is not None), (info, *messages)
        return Integrated(value, error, status, info["neval"], more, (message,))

    def _by_scipy(self, f: Any, ends: Sequence[Any]) -> Any:
        numbers = [float(x) for x in ends[2:]]
        return scipy.integrate.quad(
            f,
            float(ends[0]),
            float(ends[1]),
            (),
            1,
            self.epsabs,
            self.epsrel,
            self.limit,
            self.points,
            self.weight,
            None if not numbers else tuple(numbers) if len(numbers) > 1 else numbers[0],
            None,
            self.maxp1,
            self.limlst,
        )

    def for_derivative(self, count: Any) -> Routine:
        """The same; for many elements one integral of a vector, if there is no weight.

        A number of elements that is not known yet is compared when the integral is computed.
        """
        derivative = replace(self, what=derivative_of(self.what))
        is_long = type(count) is int and count > _MAX_SEPARATE
        return derivative.of_vectors() if is_long and self.weight is None else derivative

    def of_vectors(self) -> VectorRoutine:
        """`quad_vec` with the same tolerances."""
        options = (("limit", max(self.limit, _LIMIT_OF_VECTORS)), ("points", self.points))
        return VectorRoutine(self.what, self.epsabs, self.epsrel, (*options, ("norm", "max")))

    def for_parameter(self, k: int) -> tuple[QuadRoutine, float]:
        """The derivative with respect to a parameter of the weight: another weight, and the factor.

        The factor is that of ``x * f(x)``; 0 if the function is not multiplied with `x`.

        Raises
        ------
        NotDifferentiableError
            The derivative has a weight that SciPy does not have.
        """
        weight, factor = _WEIGHT_DERIVATIVES.get((str(self.weight), k), ("", 0.0))
        if not weight:
            raise NotDifferentiableError(
                f"quad with weight={self.weight!r}: the derivative with respect to wvar has a "
                "weight that SciPy does not have. Include the weight in the function"
                f"{at(user_line())}."
            )
        what = f"the derivative of {self.what} with respect to wvar"
        return replace(self, what=what, weight=weight), factor

    def weighted(self, x: Any, y: Any, ends: Sequence[Any]) -> Any:
        """The product with the weight."""
        if self.weight is None:
            return y
        if self.weight == "cos":
            return y * np.cos(ends[2] * x)
        if self.weight == "sin":
            return y * np.sin(ends[2] * x)
        return y / (x - ends[2])


@register_class
@dataclass(frozen=True)
class VectorRoutine(Routine):
    """`scipy.integrate.quad_vec` with its options."""

    what: str
    epsabs: float
    epsrel: float
    options: tuple[tuple[str, Any], ...]

    def __call__(
        self, integrand: Integrand, consts: Sequence[Any], ends: Sequence[Any], shape: Any
    ) -> Integrated:
        """Call SciPy."""
        f = integrand.array(consts)
        low, high, options = float(ends[0]), float(ends[1]), dict(self.options)
        is_derivative, epsabs = self.what.startswith("the derivative"), self.epsabs
        if is_derivative:  # a derivative may be zero, and is then not accurate to a relative error
            more = options | {"limit": _INTERVALS_OF_SCALE}
            size = scipy.integrate.quad_vec(
                lambda x: np.abs(f(np.float64(x))), low, high, epsrel=0.1, **more
            )[0]
            norm = np.max if options["norm"] == "max" else np.linalg.norm
            epsabs = max(epsabs, self.epsrel * float(norm(np.atleast_1d(size))))
        value, error, info = scipy.integrate.quad_vec(
            lambda x: np.asarray(f(np.float64(x))),
            low,
            high,
            epsabs,
            self.epsrel,
            full_output=True,
            **options,
        )
        if not info.success and is_derivative:
            warnings.warn(
                f"{self.what}: {info.message}", scipy.integrate.IntegrationWarning, stacklevel=2
            )
        return Integrated(value, error, info.status, info.neval, (info,))

    def for_derivative(self, count: Any) -> Routine:
        """The same routine."""
        return replace(self, what=derivative_of(self.what))


def integrate(
    body: Body, captured: int, routine: Routine, operands: Sequence[Any], compile: bool
) -> Integrated:
    """The integral for plain operands: captured values, then the limits."""
    consts, ends = list(operands[:captured]), list(operands[captured:])
    integrand: Integrand = compiled(body, consts) if compile else InterpretedIntegrand(body)
    spec = body.outputs[0].spec
    shape = tuple(map(int, spec.shape)) if not body.size_names else _shape(body, consts)
    found = routine(integrand, consts, ends, shape)
    value, error = np.asarray(found.value, spec.dtype)[()], np.asarray(found.error, float)[()]
    return found._replace(value=value, error=error)


def _shape(body: Body, consts: Sequence[Any]) -> tuple[int, ...]:
    return tuple(with_sizes(body, consts).outputs[0].spec.shape)


def _of_line(c: Any, a: Any, b: Any, *wvar: Any, routine: QuadRoutine, **params: Any) -> Any:
    """The integral of ``c * x``, by SciPy (the oracle of the operation)."""
    weight = {"weight": routine.weight, "wvar": wvar} if wvar else {}
    found = scipy.integrate.quad(lambda x: c * x, a, b, full_output=1, **weight)
    return found[0], found[1], np.int64(0), np.int64(found[2]["neval"])


@opaque(name="scipy_integral", trusted=True, oracle=_of_line)
def scipy_integral(*operands: Any, integrand: Body, captured: int, routine: Routine) -> Any:
    """The integral of a function, the estimate of its error, a status, and a count."""
    found = integrate(integrand, captured, routine, operands, compile=True)
    return found.value, found.error, np.int64(found.status), np.int64(found.neval)


@opaque(
    name="scipy_integral.reported",
    trusted=True,
    oracle=lambda *operands, **params: _of_line(*operands[4:], **params),
)
def reported_integral(*operands: Any, integrand: Body, captured: int, routine: QuadRoutine) -> Any:
    """The results of native code (value, error, statuses, evaluations), with a warning of SciPy.

    SciPy repeats the integral if it has not given its message for this status before, if it has to
    treat the limits, and if the integral is not finite, for which the integrand may raise.
    """
    (value, error, statuses, count), rest = operands[:4], operands[4:]
    keys = [(int(s), routine.limit) for s in np.ravel(statuses)]
    if np.all(np.isfinite(value + error)) and all(k in _MESSAGES or k[0] == 0 for k in keys):
        for key in keys:
            if key[0] != 0:
                routine.warn(_MESSAGES[key])
        return value, error, np.int64(1), count
    found = integrate(integrand, captured, routine, rest, compile=True)
    for key, message in zip(keys, found.messages, strict=True):
        if key[0] in _STATUSES and message is not None:
            _MESSAGES[key] = message
    return found.value, found.error, np.int64(found.status), np.int64(found.neval)


scipy_integral.host_callback = reported_integral.host_callback = BY_SCIPY


@scipy_integral.compose
def _(*operands: Any, integrand: Body, captured: int, routine: Routine) -> Any:
    if not isinstance(routine, QuadRoutine):
        return NotImplemented
    params = {"integrand": integrand, "captured": captured, "routine": routine}
    return native_integral(
        integrand, captured, routine, operands, lambda *xs: tuple(reported_integral(*xs, **params))
    )


@reported_integral.spec
@scipy_integral.spec
def _(*operands: Spec, integrand: Body, captured: int, routine: Routine) -> Any:
    result = integrand.outputs[0].spec
    count = Spec((), np.dtype(np.int64))
    error = Spec(result.shape, _NUMBER.dtype) if routine.has_errors else _NUMBER
    return Spec(result.shape, result.dtype), error, count, count


def _example() -> dict[str, Any]:
    with tracing_body():
        c, x = placeholder(_NUMBER), placeholder(_NUMBER)
        value = wrap(c) * wrap(x)
    return {
        "integrand": Body(value.node, inputs=[c, x], name="c * x"),
        "captured": 1,
        "routine": QuadRoutine("quad", 1.49e-8, 1.49e-8, 50),
    }


@scipy_integral.examples
def _(rng: np.random.Generator) -> Any:
    params = _example()
    for weight, wvar in ((None, ()), ("alg", (np.float64(0.0), np.float64(0.5)))):
        operands = np.float64(rng.uniform(1.0, 9.0)), np.float64(0.0), np.float64(3.0), *wvar
        yield operands, {**params, "routine": replace(params["routine"], weight=weight)}


@reported_integral.examples
def _(rng: np.random.Generator) -> Any:
    native = np.float64(0.0), np.float64(0.0), np.int64(99), np.int64(0)
    yield (*native, np.float64(rng.uniform(1.0, 9.0)), np.float64(0.0), np.float64(3.0)), _example()
