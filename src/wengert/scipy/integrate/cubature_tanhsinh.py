"""Integrals over boxes, and by double exponential quadrature: cubature, tanhsinh.

    cubature         the integral of an array-valued function
    CubatureRoutine  SciPy's function with its options
    tanhsinh         the integral
    TanhSinhRoutine  SciPy's function with its options

With tensors as limits the box is mapped to the unit box, so that the integrand depends on them.

An integral with tensors is one of `integral_rule`; arrays of limits and arguments are a batch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.integrate
from scipy.optimize import OptimizeResult

from wengert._engine.autodiff.vmap import vmap
from wengert._engine.control_flow.eager_loops import becomes_node
from wengert._engine.core import display, pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, describe, is_traced, value_of
from wengert._engine.core.recording import no_grad
from wengert._engine.core.spec import Spec
from wengert._engine.ops import casts
from wengert._engine.serialization.class_registry import register_class
from wengert.errors import ArgumentError, at, user_line

from ..dispatch import floating
from .integral_operation import Integrated, Routine, derivative_of
from .integral_rule import Found, integral_of
from .integrands import Integrand
from .quad import NUMBER, inner_point, is_constant, limit_of, number, uses_tensors

__all__ = ["cubature", "tanhsinh"]


@register_class
@dataclass(frozen=True)
class CubatureRoutine(Routine):
    """`scipy.integrate.cubature` with its options.

    low, high : the limits, which are numbers.
    """

    what: str
    low: tuple[float, ...]
    high: tuple[float, ...]
    rule: str
    rtol: float
    atol: float
    max_subdivisions: int | None
    points: tuple[tuple[float, ...], ...]

    has_errors = True

    def __call__(
        self, integrand: Integrand, consts: Sequence[Any], ends: Sequence[Any], shape: Any
    ) -> Integrated:
        """Call SciPy."""
        f = integrand.batch(consts)
        low, high = np.array(self.low), np.array(self.high)
        options = {"rule": self.rule, "points": [np.array(p) for p in self.points]}
        is_derivative = self.what.startswith("the derivative")
        atol: Any = self.atol
        if is_derivative:  # a derivative may be zero, and is then not accurate to a relative error
            scale = scipy.integrate.cubature(
                lambda x: np.abs(f(x)), low, high, max_subdivisions=1, **options
            ).estimate
            atol = np.maximum(atol, self.rtol * scale)
        found = scipy.integrate.cubature(
            lambda x: np.asarray(f(x)),
            low,
            high,
            rtol=self.rtol,
            atol=atol,
            max_subdivisions=self.max_subdivisions,
            **options,
        )
        converged = found.status == "converged"
        if not converged and is_derivative:
            warnings.warn(
                f"{self.what}: the tolerance is not reached with {found.subdivisions} subdivisions"
                f"; the estimated error is {np.max(found.error):.1e}",
                scipy.integrate.IntegrationWarning,
                stacklevel=2,
            )
        status = 0 if converged else 1
        return Integrated(found.estimate, found.error, status, found.subdivisions, (found,))

    def for_derivative(self, count: Any) -> Routine:
        """The same routine."""
        return replace(self, what=derivative_of(self.what))


def cubature(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    *,
    rule: str = "gk21",
    rtol: float = 1e-8,
    atol: float = 0,
    max_subdivisions: int | None = 10000,
    args: tuple[Any, ...] = (),
    workers: Any = 1,
    points: Any = None,
) -> Any:
    """The integral of an array-valued function over a box, as ``scipy.integrate.cubature``.

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` takes an array of points (a row for each), and returns a value for each;
        captured tensors are differentiated. With tensors it is traced for one point.
    a, b : array or Tensor
        The limits, which may be infinite if they are not tensors.
    args : tuple
        Further arguments, which are differentiated.
    rule, rtol, atol, max_subdivisions, points
        As in SciPy.
    workers : int or callable
        As in SciPy; 1 with tensors.

    Returns
    -------
    CubatureResult
        `estimate` is a tensor. In a graph it has `estimate`, `error`, `success` and `subdivisions`
        only.

    Raises
    ------
    ArgumentError
        An option is given that is not supported with tensors, or a tensor as a limit is infinite.

    Warns
    -----
    IntegrationWarning
        The tolerance is not reached for the derivative.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.integrate import cubature
    >>> def wave(k):
    ...     return cubature(lambda x: np.cos(x @ k), [0.0, 0.0], [1.0, 1.0]).estimate
    >>> wg.jit(wg.grad(wave))(np.array([1.0, 2.0])).round(8)
    array([-0.40724947, -0.4126257 ])
    """
    called = converted(f)
    if not _uses_tensors_in_box(called, a, b, args):
        return scipy.integrate.cubature(
            f,
            a,
            b,
            rule=rule,
            rtol=rtol,
            atol=atol,
            max_subdivisions=max_subdivisions,
            args=args,
            workers=workers,
            points=points,
        )
    a, b = [value_of(x) if isinstance(x, Handle) and is_constant(x) else x for x in (a, b)]
    moving = isinstance(a, Handle) or isinstance(b, Handle)
    _refuse("workers", workers != 1)
    _refuse("points and tensors as limits", moving and points is not None)
    low, high = _vector(a), _vector(b)
    shape = np.broadcast_shapes(describe(low).shape, describe(high).shape)
    inside = _mapped(f, low, high, args) if moving else (lambda x: converted(f)(x[None], *args)[0])
    known = [np.zeros(shape), np.ones(shape)] if moving else [low, high]
    fixed = [tuple(map(float, np.broadcast_to(x, shape))) for x in known]
    routine = CubatureRoutine(
        "cubature",
        fixed[0],
        fixed[1],
        rule,
        rtol,
        atol,
        max_subdivisions,
        tuple([tuple(map(float, np.broadcast_to(p, shape))) for p in points or ()]),
    )
    spec = Spec(shape, np.dtype(float))
    found = integral_of("cubature", lambda x: floating(inside(x)), spec, [], routine)
    if becomes_node([a, b, *args]) or not found.more:
        return display.shown_result(
            OptimizeResult(
                estimate=found.value,
                error=found.error,
                success=found.status == 0,
                subdivisions=found.neval,
            )
        )
    return replace(found.more[0], estimate=found.value)


def _refuse(name: str, given: bool) -> None:
    if given:
        raise ArgumentError(
            f"cubature with {name}: not supported with tensors. Leave it out{at(user_line())}."
        )


def _vector(x: Any) -> Any:
    return casts.astype(floating(x), float)


def _mapped(
    f: Callable[..., Any], low: Any, high: Any, args: tuple[Any, ...]
) -> Callable[[Any], Any]:
    """The integrand on the unit box.

    Raises
    ------
    ArgumentError
        A limit is infinite.
    """
    for x in (low, high):
        if not is_traced(x) and not np.all(np.isfinite(value_of(x))):
            raise ArgumentError(
                "cubature with tensors as limits: they must be finite. Detach them, or substitute "
                f"a variable with a finite range{at(user_line())}."
            )
    lengths = high - low
    size = np.prod(lengths)
    return lambda u: size * converted(f)((low + lengths * u)[None], *args)[0]


def _uses_tensors_in_box(f: Any, a: Any, b: Any, args: tuple[Any, ...]) -> bool:
    """Whether an integral depends on tensors."""
    if any([isinstance(x, Handle) for x in pytree.flatten((a, b, args))[0]]):
        return True
    low, high = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float))
    point = np.array([inner_point(x, y) for x, y in zip(low.ravel(), high.ravel(), strict=True)])
    with no_grad():
        result = f(point[None], *args)
    return any([isinstance(x, Handle) for x in pytree.flatten(result)[0]])


_LEVELS_OF_SCALE = 4


@register_class
@dataclass(frozen=True)
class TanhSinhRoutine(Routine):
    """`scipy.integrate.tanhsinh` with its options."""

    what: str
    maxlevel: int | None
    minlevel: int | None
    atol: float | None
    rtol: float | None

    has_errors = True

    def __call__(
        self, integrand: Integrand, consts: Sequence[Any], ends: Sequence[Any], shape: Any
    ) -> Integrated:
        """Call SciPy; the elements of an array are integrals of their own."""
        f, size = integrand.batch(consts), int(np.prod(shape))

        def values(x: Any, k: Any = None) -> Any:
            found = np.asarray(f(np.ravel(x)))
            if k is not None:
                element = np.broadcast_to(k, np.shape(x)).ravel().astype(int)
                found = found.reshape(len(found), -1)[np.arange(len(found)), element]
            return found.reshape(np.shape(x))

        low, high = float(ends[0]), float(ends[1])
        args = (np.arange(float(size)),) if shape else ()
        options = {"minlevel": self.minlevel, "atol": self.atol, "rtol": self.rtol}
        integrate = scipy.integrate.tanhsinh
        result = integrate(values, low, high, args=args, maxlevel=self.maxlevel, **options)
        if not np.all(result.success) and self.what.startswith("the derivative"):
            scale = integrate(
                lambda *xs: np.abs(values(*xs)), low, high, args=args, maxlevel=_LEVELS_OF_SCALE
            ).integral
            rtol = np.sqrt(np.finfo(float).eps)
            if not np.all(result.error <= np.maximum(rtol * np.abs(scale), self.atol or 0.0)):
                warnings.warn(
                    f"{self.what}: the tolerance is not reached; the estimated error is "
                    f"{np.max(result.error):.1e}",
                    scipy.integrate.IntegrationWarning,
                    stacklevel=2,
                )
        reshape = lambda x: np.reshape(x, shape)  # noqa: E731
        status = int(np.min(result.status))
        count = int(np.sum(result.nfev))
        return Integrated(reshape(result.integral), reshape(result.error), status, count)

    def for_derivative(self, count: Any) -> Routine:
        """The same routine."""
        return replace(self, what=derivative_of(self.what))


def tanhsinh(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    *,
    args: Any = (),
    log: bool = False,
    maxlevel: int | None = None,
    minlevel: int | None = 2,
    atol: float | None = None,
    rtol: float | None = None,
    preserve_shape: bool = False,
    callback: Any = None,
) -> Any:
    """The integral of a function by tanh-sinh quadrature, as ``scipy.integrate.tanhsinh``.

    Parameters
    ----------
    f : callable
        ``f(x, *args)``, computed element by element; captured tensors are differentiated.
    a, b : float, array or Tensor
        The limits, which may be infinite.
    args : tuple
        Further arguments, which are differentiated; broadcast with the limits.
    maxlevel, minlevel, atol, rtol
        As in SciPy.
    log, preserve_shape, callback
        Not supported with tensors.

    Returns
    -------
    OptimizeResult
        `integral` and `error` are tensors; in a graph `success`, `status` and `nfev`, too.

    Raises
    ------
    ArgumentError
        An option is given that is not supported with tensors.

    Warns
    -----
    IntegrationWarning
        The tolerance is not reached for the derivative.

    Notes
    -----
    With tensors, arrays of limits and arguments are integrated one after another.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.integrate import tanhsinh
    >>> beta = lambda p: tanhsinh(lambda x: x ** (p - 1) / np.sqrt(1 - x), 0.0, 1.0).integral
    >>> round(float(wg.grad(beta)(1.5)), 7)  # B(p, 1/2) (digamma(p) - digamma(p + 1/2))
    -0.6067898
    """
    args = args if isinstance(args, tuple) else (args,)
    called = converted(f)
    if not _uses_tensors(called, a, b, args):
        return scipy.integrate.tanhsinh(
            f,
            a,
            b,
            args=args,
            log=log,
            maxlevel=maxlevel,
            minlevel=minlevel,
            atol=atol,
            rtol=rtol,
            preserve_shape=preserve_shape,
            callback=callback,
        )
    for name, unsupported in (
        ("log=True", log),
        ("preserve_shape=True", preserve_shape),
        ("callback", callback is not None),
    ):
        if unsupported:
            raise ArgumentError(
                f"tanhsinh with {name} and tensors: not supported. Leave it out, or use quad_vec "
                f"for functions with arrays as results{at(user_line())}."
            )
    routine = TanhSinhRoutine("tanhsinh", maxlevel, minlevel, atol, rtol)

    def one(low: Any, high: Any, *more: Any) -> Found:
        def function(x: Any) -> Any:
            return number(converted(f)(x, *more), "tanhsinh")

        return integral_of("tanhsinh", function, NUMBER, [limit_of(low), limit_of(high)], routine)

    given = (a, b, *args)
    shape = np.broadcast_shapes(*[describe(x).shape for x in given])
    if not shape:
        found = one(a, b, *args)
        integral, error, status, count = found[:4]
    else:
        rows = [_elements(x, shape) for x in given]
        each = vmap(lambda *xs: tuple(one(*xs)[:4]), (0,) * len(rows))
        integral, error, status, count = [x.reshape(shape) for x in each(*rows)]
    more = {"status": status, "success": status == 0, "nfev": count}
    return display.shown_result(OptimizeResult(integral=integral, error=error, **more))


def _elements(x: Any, shape: tuple[int, ...]) -> Any:
    """The elements of an argument, broadcast to a shape, as a vector."""
    x = casts.astype(floating(x), float)
    return np.reshape(np.broadcast_to(x, shape), (-1,))


def _uses_tensors(f: Any, a: Any, b: Any, args: tuple[Any, ...]) -> bool:
    """Whether an integral depends on tensors."""
    if any([isinstance(x, Handle) for x in (a, b, *args)]):
        return True
    low, high = [float(np.ravel(x)[0]) if np.size(x) else 0.0 for x in (a, b)]
    return uses_tensors(lambda x: f(np.float64(x), *args), low, high, (), ())
