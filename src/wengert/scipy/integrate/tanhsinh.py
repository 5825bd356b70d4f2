"""Integrals by double exponential quadrature: scipy.integrate.tanhsinh.

An integral with tensors is one of `integral_rule`; arrays of limits and arguments are a batch.

    tanhsinh         the integral
    TanhSinhRoutine  SciPy's function with its options
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
from wengert._engine.core import display
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, describe
from wengert._engine.ops import casts
from wengert._engine.serialization.class_registry import register_class
from wengert.errors import ArgumentError, at, user_line

from ..dispatch import floating
from .compiled_integrand import Integrand
from .integral_operation import Integrated, Routine, derivative_of
from .integral_rule import Found, integral_of
from .quad import NUMBER, limit_of, number, uses_tensors

__all__ = ["tanhsinh"]

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
