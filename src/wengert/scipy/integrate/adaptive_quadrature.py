"""Adaptive quadrature of functions: quad, dblquad, tplquad and quad_vec.

    quad quad_vec         scalar- and array-valued functions of one variable
    dblquad tplquad       functions of two and three variables

Without tensors they are SciPy's own functions.  Otherwise the intervals are found with plain values
by the 15-point Gauss-Kronrod rule (A. Kronrod, 1965; C. Piessens et al., QUADPACK, 1983), and the
integral is the weighted sum of the function's values at their points.  This sum can be
differentiated with respect to everything the function depends on, to any order.  The derivative
with respect to a limit is the integrand there by the Leibniz rule (NIST DLMF 1.5.22), with its
higher derivatives: a Gauss sum over the empty interval at the limit is added, so the integrand may
have jumps.

The intervals depend on values, so these integrals cannot be traced.
"""

from __future__ import annotations

import heapq
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate
import scipy.special

from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert.errors import ArgumentError, OperandError, TraceError, at, user_line

from ..dispatch import holds_tensors

__all__ = ["dblquad", "quad", "quad_vec", "tplquad"]

# Points of Kronrod on 0 to 1, their weights, and those of Gauss for every other point.
_HALF = (
    0.991455371120812639206854697526329,
    0.949107912342758524526189684047851,
    0.864864423359769072789712788640926,
    0.741531185599394439863864773280788,
    0.586087235467691130294144691691137,
    0.405845151377397166906606412076961,
    0.207784955007898467600689403773245,
)
_KRONROD = (
    0.022935322010529224963732008058970,
    0.063092092629978553290700663189204,
    0.104790010322250183839876322541518,
    0.140653259715525918745189590510238,
    0.169004726639267902826583426598550,
    0.190350578064785409913256402421014,
    0.204432940075298892414161999234649,
)
_GAUSS = (
    0.129484966168869693270611432679082,
    0.279705391489276667901467771423780,
    0.381830050505118944950369775488975,
)
POINTS = 0.5 + 0.5 * np.array([-p for p in _HALF] + [0.0] + list(_HALF[::-1]))
WEIGHTS = 0.5 * np.array([*_KRONROD, 0.209482141084727828012999174891714, *_KRONROD[::-1]])
INNER = np.zeros(15)
INNER[1::2] = 0.5 * np.array([*_GAUSS, 0.417959183673469387755102040816327, *_GAUSS[::-1]])
_SHARPER = 1e-3  # factor of the requested tolerance: a derivative is less accurate than the value
_AT_AN_END = 5
_LIMIT = 120


class Integrand:
    """A function on [a, b] as a function of u on [0, 1], and whether it uses tensors."""

    def __init__(self, func: Callable[..., Any], a: float, b: float, args: Any, what: str) -> None:
        self.func, self.args, self.what = func, args, what
        self.a, self.b = a, b
        self.turned = a > b
        self.found = False

    def place(self, u: float) -> tuple[list[float], float]:
        """The points x(u) and the weights dx/du."""
        low, high = (self.b, self.a) if self.turned else (self.a, self.b)
        sign = -1.0 if self.turned else 1.0
        if np.isfinite(low) and np.isfinite(high):
            return [low + (high - low) * u], sign * (high - low)
        away, scale = (1.0 - u) / u, sign / (u * u)
        if np.isfinite(low):
            return [low + away], scale
        return ([high - away], scale) if np.isfinite(high) else ([away, -away], scale)

    def exact(self, u: float) -> Any:
        """The value at u; a tensor if the function uses tensors."""
        points, scale = self.place(u)
        total = self.func(points[0], *self.args)
        for x in points[1:]:
            total = total + self.func(x, *self.args)
        return scale * total

    def plain(self, u: float) -> Any:
        """The value at u as plain numbers.

        Raises
        ------
        TraceError
            The value is traced.
        """
        made = self.exact(u)
        if isinstance(made, Handle):
            self.found = True
            if is_traced(made):
                raise TraceError(
                    f"{self.what} chooses its intervals by the values of the function, which are "
                    "not known while a graph is built. Use fixed_quad in graphs, or keep the "
                    f"integral outside of jit and vmap{at(user_line())}."
                )
            made = value_of(made)
        return np.asarray(made)


def _sums(f: Callable[[float], Any], low: float, high: float) -> tuple[Any, float]:
    """The Kronrod sum over an interval, and the error estimate from the Gauss sum."""
    values = np.stack([f(low + (high - low) * p) for p in POINTS])
    weights = (high - low) * WEIGHTS.reshape(-1, *[1] * (values.ndim - 1))
    inner = (high - low) * INNER.reshape(-1, *[1] * (values.ndim - 1))
    whole = np.sum(weights * values, axis=0)
    error = float(np.max(np.abs(whole - np.sum(inner * values, axis=0)), initial=0.0))
    spread = float(np.max(np.sum(weights * np.abs(values - whole / (high - low)), axis=0)))
    if spread > 0.0 and error > 0.0:  # QUADPACK's estimate
        error = spread * min(1.0, (200.0 * error / spread) ** 1.5)
    return whole, error


def _intervals(
    f: Callable[[float], Any], cuts: list[float], epsabs: float, epsrel: float, limit: int
) -> tuple[list[tuple[float, float]], float, bool]:
    """The intervals of [0, 1], the remaining error, and whether it exceeds the tolerance."""
    heap: list[tuple[float, float, float]] = []
    total: Any = 0.0
    sums: dict[float, Any] = {}

    def enter(low: float, high: float) -> None:
        nonlocal total
        found, error = _sums(f, low, high)
        sums[low] = found
        total = total + found
        heapq.heappush(heap, (-error, low, high))

    for low, high in itertools.pairwise(cuts):
        enter(low, high)
    needed = 0.0
    while len(heap) < max(limit, _LIMIT):
        left = -sum(item[0] for item in heap)
        needed = max(epsabs, epsrel * float(np.max(np.abs(total), initial=0.0)))
        _, low, high = heap[0]
        middle = 0.5 * (low + high)
        if left <= _SHARPER * needed or not low < middle < high or high - low < 1e-15:
            break
        heapq.heappop(heap)
        total = total - sums.pop(low)
        enter(low, middle)
        enter(middle, high)
    left = -sum(item[0] for item in heap)
    return sorted((low, high) for _, low, high in heap), left, left > needed


def _moved(func: Callable[..., Any], end: Any, args: Any, what: str) -> Any:
    """The integral from the value of a limit to the limit: 0, with its derivatives."""
    here = float(value_of(end))
    if not np.isfinite(here):
        return 0.0
    points, weights = np.polynomial.legendre.leggauss(_AT_AN_END)
    step = end - here
    total: Any = 0.0
    for p, w in zip(points, weights, strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            value = func(here + step * (0.5 + 0.5 * p), *args)
        if not np.all(np.isfinite(value_of(value))):
            raise OperandError(
                f"{what} has an end at {here}, by which it is to be differentiated, and the "
                f"function is not finite there, so neither is the derivative{at(user_line())}."
            )
        total = total + 0.5 * w * value
    return step * total


def _known(x: Any, what: str) -> float:
    """The value of a limit."""
    if is_traced(x):
        raise TraceError(
            f"{what} chooses its intervals by the values of its ends, which are not known while a "
            f"graph is built. Use fixed_quad in graphs{at(user_line())}."
        )
    return float(value_of(x))


def _integrated(
    func: Callable[..., Any], a: Any, b: Any, args: Any, what: str, given: dict[str, Any]
) -> tuple[Any, float] | None:
    """The integral and the error with tensors; None if no tensor is used."""
    low, high = _known(a, what), _known(b, what)
    integrand = Integrand(func, low, high, args, what)
    if low == high:
        cuts: list[float] = []
    else:
        inner = [(float(p) - low) / (high - low) for p in given["points"] or ()]
        inner = [1.0 - u for u in inner] if integrand.turned else inner
        cuts = [0.0, *sorted(u for u in inner if 0.0 < u < 1.0), 1.0]
    tensors = holds_tensors((a, b)) or holds_tensors(list(args))
    if cuts:
        integrand.plain(0.5)
    if not (tensors or integrand.found):
        return None
    if len(cuts) > 2 and not np.isfinite(low + high):
        raise ArgumentError(f"{what} with points and an infinite end{at(user_line())}.")
    spans: list[tuple[float, float]] = []
    error, poor = 0.0, False
    if cuts:
        spans, error, poor = _intervals(
            integrand.plain, cuts, given["epsabs"], given["epsrel"], given["limit"]
        )
    if poor:
        warnings.warn(
            f"{what}: {len(spans)} intervals are not enough, an error of {error:.1e} is left",
            scipy.integrate.IntegrationWarning,
            stacklevel=3,
        )
    total: Any = 0.0
    for first, last in spans:
        for p, w in zip(POINTS, WEIGHTS, strict=True):
            total = total + (last - first) * w * integrand.exact(first + (last - first) * p)
    if isinstance(b, Handle):
        total = total + _moved(func, b, args, what)
    if isinstance(a, Handle):
        total = total - _moved(func, a, args, what)
    return total, error


def quad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    full_output: Any = 0,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
    points: Any = None,
    **others: Any,
) -> Any:
    """The integral of a function from a to b, as ``scipy.integrate.quad``.

    Parameters
    ----------
    func : callable
        Takes a number (and `args`), and returns a number or a tensor of shape ().
    a, b : float or Tensor
        The limits, which may be infinite.
    args : tuple
        Numbers or tensors; `func` may use others too.
    epsabs, epsrel : float
        The absolute and relative error tolerance.
    limit : int
        The maximum number of intervals.
    points : sequence of float, optional
        Positions of kinks or jumps of the function.
    full_output, **others
        SciPy's arguments; not supported with tensors.

    Returns
    -------
    float or Tensor, float
        The integral, and an estimate of its error.

    Raises
    ------
    TraceError
        The integral is traced.
    ArgumentError
        A weight or full output with tensors.
    OperandError
        It is differentiated with respect to a limit where the integrand is not finite.

    Notes
    -----
    The derivative is the sum of derivatives over the intervals chosen for the function itself, with
    about the same accuracy. Cost: 15 calls of `func` for each interval, twice.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.integrate import quad
    >>> moment = lambda s: quad(lambda x: x * np.exp(-s * x), 0, np.inf)[0]
    >>> [round(float(g), 10) for g in (moment(2.0), wg.grad(moment)(2.0))]
    [0.25, -0.25]
    """
    args = args if isinstance(args, tuple) else (args,)
    given = {"epsabs": epsabs, "epsrel": epsrel, "limit": limit, "points": points}
    found = _integrated(func, a, b, args, "quad", given)
    if found is None:
        return scipy.integrate.quad(
            func, a, b, args, full_output, epsabs, epsrel, limit, points, **others
        )
    if full_output or any(x is not None and x is not False for x in others.values()):
        named = sorted(others) or ["full_output"]
        raise ArgumentError(
            f"quad with tensors takes no {', '.join(named)}. Write a weight into the function"
            f"{at(user_line())}."
        )
    return found


def quad_vec(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    epsabs: float = 1e-200,
    epsrel: float = 1e-8,
    *,
    limit: int = 10000,
    points: Any = None,
    args: tuple[Any, ...] = (),
    **others: Any,
) -> Any:
    """The integral of an array-valued function, as ``scipy.integrate.quad_vec``.

    Parameters
    ----------
    f : callable
        Takes a number (and `args`), and returns an array or a tensor.
    a, b, epsabs, epsrel, limit, points, args
        As for `quad`.
    **others
        SciPy's arguments; ignored with tensors.

    Returns
    -------
    array or Tensor, float
        The integral, and an estimate of its error.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.integrate import quad_vec
    >>> powers = lambda s: quad_vec(lambda x: x ** np.arange(3.0) * s, 0.0, 1.0)[0]
    >>> wg.jacobian(powers)(2.0).round(6)
    array([1.      , 0.5     , 0.333333])
    """
    given = {"epsabs": epsabs, "epsrel": epsrel, "limit": limit, "points": points}
    found = _integrated(f, a, b, args, "quad_vec", given)
    if found is None:
        return scipy.integrate.quad_vec(
            f, a, b, epsabs, epsrel, limit=limit, points=points, args=args, **others
        )
    return found


def _at(bound: Any, *places: Any) -> Any:
    return bound(*places) if callable(bound) else bound


def dblquad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    args: tuple[Any, ...] = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> Any:
    """The integral of func(y, x) for x from a to b and y from gfun(x) to hfun(x), as SciPy's.

    Parameters
    ----------
    func : callable
        Takes y and x (and `args`).
    a, b : float or Tensor
    gfun, hfun : callable, float or Tensor
    args : tuple
    epsabs, epsrel : float

    Returns
    -------
    float or Tensor, float

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.integrate import dblquad
    >>> area = lambda r: dblquad(lambda y, x: x * y, 0.0, r, 0.0, lambda x: x)[0]
    >>> float(wg.grad(area)(2.0).round(8))  # r^4 / 8
    4.0
    """

    def inner(x: Any) -> Any:
        low, high = _at(gfun, x), _at(hfun, x)
        return quad(lambda y: func(y, x, *args), low, high, (), 0, epsabs, epsrel)[0]

    return quad(inner, a, b, epsabs=epsabs, epsrel=epsrel)


def tplquad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    qfun: Any,
    rfun: Any,
    args: tuple[Any, ...] = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> Any:
    """The integral of func(z, y, x), z from qfun(x, y) to rfun(x, y), the rest as for `dblquad`.

    Parameters
    ----------
    func : callable
        Takes z, y and x (and `args`).
    a, b : float or Tensor
    gfun, hfun : callable, float or Tensor
        Of x.
    qfun, rfun : callable, float or Tensor
        Of x and y.
    args : tuple
    epsabs, epsrel : float

    Returns
    -------
    float or Tensor, float

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.scipy.integrate import tplquad
    >>> mass = lambda s: tplquad(lambda z, y, x: s * x * z, 0, 1, 0, 1, 0, 1)[0]
    >>> float(wg.grad(mass)(3.0).round(8))
    0.25
    """

    def plane(y: Any, x: Any) -> Any:
        low, high = _at(qfun, x, y), _at(rfun, x, y)
        return quad(lambda z: func(z, y, x, *args), low, high, (), 0, epsabs, epsrel)[0]

    return dblquad(plane, a, b, gfun, hfun, (), epsabs, epsrel)
