"""x log y, entropies, divergences and Huber losses; logsumexp and softmax.

    xlogy, xlog1py          x log(y), x log(1 + y), and 0 for x = 0
    entr, rel_entr, kl_div  -x log(x), x log(x / y), x log(x / y) - x + y
    huber, pseudo_huber     r^2 / 2 near 0, linear in |r| far from it
    logsumexp               log of a weighted sum of exponentials; its derivative is the softmax
    softmax                 exponentials divided by their sum
    log_softmax             their logarithms

At x = 0 the value of x log(y) is 0 for all y, so that the derivative with respect to y is 0 there;
the derivative with respect to x is the logarithm, -inf at y = 0 (docs/conventions.md, 3.4).

For tensors the last three are wengert's functions (numpy/minmax_norms.py), which neither overflow
nor divide 0 by 0: if all elements are -inf, where the sum is 0, derivatives are 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from wengert._engine.core.handle import value_of
from wengert._engine.core.op import lookup
from wengert._engine.kinds.elementwise import POSITIVE, REAL, elementwise
from wengert._engine.tensor.numpy_dispatch import counterpart
from wengert.numpy import minmax_norms

from .register import PREFIX, function

__all__ = [
    "entr", "huber", "kl_div", "log_softmax", "logsumexp", "pseudo_huber", "rel_entr", "softmax",
    "xlog1py", "xlogy",
]  # fmt: skip


def _ratio(x: Any, y: Any, t: Any) -> Any:
    """t x / y, and 0 where both x and y are 0."""
    zero = np.logical_and(value_of(x) == 0, value_of(y) == 0)
    where = lookup("where")
    return where(zero, 0.0, t * x / where(zero, 1.0, y))


xlogy = function(
    "xlogy",
    "x y",
    domain=[REAL, POSITIVE],
    oracle="x * log(y)",
    complex_ok=True,
    singular=True,
    doc="x log(y), and 0 where x = 0; d/dx = log(y), d/dy = x / y.",
)
xlogy.partials(lambda t, out, x, y: t * np.log(y), lambda t, out, x, y: _ratio(x, y, t))

xlog1py = function(
    "xlog1py",
    "x y",
    domain=[REAL, (-1.0, np.inf)],
    oracle="x * log1p(y)",
    complex_ok=True,
    singular=True,
    doc="x log(1 + y), and 0 where x = 0; d/dx = log1p(y), d/dy = x / (1 + y).",
)
xlog1py.partials(lambda t, out, x, y: t * np.log1p(y), lambda t, out, x, y: _ratio(x, 1.0 + y, t))

entr = function(
    "entr",
    "x",
    domain=[POSITIVE],
    oracle="-x * log(x)",
    singular=True,
    doc="-x log(x), 0 at 0, -inf for x < 0; its derivative is -log(x) - 1, inf at 0.",
)
entr.partials(lambda t, out, x: -t * (np.log(x) + 1.0))


@elementwise(
    name=f"{PREFIX}log_ratio", domain=[POSITIVE, POSITIVE], oracle="log(x / y)", singular=True
)
def log_ratio(s: Any, x: Any, y: Any) -> Any:
    """log(x / y), also where x / y overflows; near 1 from x - y, which is exact there."""
    q = x / y
    near = s.logical_and(s.less(0.5, q), s.less(q, 2.0))
    within = s.logical_and(s.less(1e-4, q), s.less(q, 1e4))
    close = s.log1p(s.where(near, x - y, 0.0) / s.where(near, y, 1.0))
    far = s.where(within, s.log(s.where(within, q, 1.0)), s.log(x) - s.log(y))
    return s.where(near, close, far)


log_ratio.partials(lambda t, out, x, y: t / x, lambda t, out, x, y: -t / y)

rel_entr = function(
    "rel_entr",
    "x y",
    domain=[POSITIVE, POSITIVE],
    oracle="x * log(x / y)",
    singular=True,
    doc="x log(x / y), and 0 at x = 0, y >= 0; d/dx = log(x / y) + 1, d/dy = -x / y.",
)
rel_entr.partials(
    lambda t, out, x, y: t * (log_ratio(x, y) + 1.0), lambda t, out, x, y: -_ratio(x, y, t)
)

kl_div = function(
    "kl_div",
    "x y",
    domain=[POSITIVE, POSITIVE],
    oracle="x * log(x / y) - x + y",
    singular=True,
    doc="x log(x / y) - x + y, and y at x = 0; d/dx = log(x / y), d/dy = 1 - x / y.",
)
kl_div.partials(
    lambda t, out, x, y: t * log_ratio(x, y), lambda t, out, x, y: _kl_div_by_y(x, y, t)
)


def _kl_div_by_y(x: Any, y: Any, t: Any) -> Any:
    """t (1 - x / y), as t (y - x) / y if x and y are close; t where both are 0."""
    a, b = value_of(x), value_of(y)
    zero = np.logical_and(a == 0, b == 0)
    close = np.logical_and(0.5 * b < a, a < 2.0 * b)
    where = lookup("where")
    divisor = where(zero, 1.0, y)
    return t * where(close, (y - x) / divisor, 1.0 - where(close, 0.0, x) / divisor)


huber = function(
    "huber",
    "delta r",
    domain=[POSITIVE, REAL],
    oracle="r**2 / 2 if abs(r) <= delta else delta * (abs(r) - delta / 2)",
    doc="Huber loss: r^2 / 2 where |r| <= delta, else delta (|r| - delta / 2).",
)


def _huber_by_r(t: Any, out: Any, delta: Any, r: Any) -> Any:
    where = lookup("where")
    inside = np.abs(value_of(r)) <= value_of(delta)
    return where(inside, t * r, where(value_of(r) < 0, -delta, delta) * t)


def _huber_by_delta(t: Any, out: Any, delta: Any, r: Any) -> Any:
    inside = np.abs(value_of(r)) <= value_of(delta)
    return lookup("where")(inside, 0.0, t * (np.abs(r) - delta))


huber.partials(_huber_by_delta, _huber_by_r)

pseudo_huber = function(
    "pseudo_huber",
    "delta r",
    domain=[POSITIVE, REAL],
    oracle="delta**2 * (sqrt(1 + (r / delta)**2) - 1)",
    singular=True,
    doc="Pseudo-Huber loss: delta^2 (sqrt(1 + (r / delta)^2) - 1).",
)


def _safe_hypot(delta: Any, r: Any) -> tuple[Any, Any, Any]:
    """delta, r and hypot(delta, r); 1, 0 and 1 where both are 0."""
    zero = np.logical_and(value_of(delta) == 0, value_of(r) == 0)
    where = lookup("where")
    size = where(zero, 1.0, delta)
    return size, r, np.hypot(size, r)


def _pseudo_by_delta(t: Any, out: Any, delta: Any, r: Any) -> Any:
    size, r, length = _safe_hypot(delta, r)
    q = r / (size + length)
    return t * (q * q * r * (r / length))


def _cube_of_ratio(t: Any, x: Any, delta: Any, r: Any) -> Any:
    """t (x / hypot(delta, r))^3."""
    q = x / np.hypot(delta, r)
    return t * (q * q * q)


@elementwise(
    name=f"{PREFIX}pseudo_huber_slope",
    domain=[POSITIVE, REAL],
    oracle="r * delta / sqrt(r**2 + delta**2)",
    singular=True,
)
def pseudo_huber_slope(s: Any, delta: Any, r: Any) -> Any:
    """r delta / hypot(delta, r): the derivative of pseudo_huber w.r.t. r; 0 where both are 0."""
    a, b = s.abs(delta), s.abs(r)
    large, small = s.max(a, b), s.min(a, b)
    zero = s.equal(large, 0.0)
    q = small / s.where(zero, 1.0, large)
    return r * (delta / s.where(zero, 1.0, large * s.sqrt(1.0 + q * q)))


pseudo_huber_slope.partials(
    lambda t, out, delta, r: _cube_of_ratio(t, r, delta, r),
    lambda t, out, delta, r: _cube_of_ratio(t, delta, delta, r),
)


def _pseudo_by_r(t: Any, out: Any, delta: Any, r: Any) -> Any:
    return t * pseudo_huber_slope(delta, r)


pseudo_huber.partials(_pseudo_by_delta, _pseudo_by_r)


@counterpart(scipy.special.logsumexp)
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """log(sum(b exp(a))) along axes, without overflow.

    Parameters
    ----------
    a : array or Tensor
    axis : int, tuple of int or None
    b : array or Tensor, optional
        Weights of any sign.
    keepdims : bool
    return_sign : bool
        Whether to return the logarithm of the absolute value of the sum, and its sign.

    Examples
    --------
    >>> wg.grad(wg.scipy.special.logsumexp)(np.array([1e4, 1e4, -np.inf]))
    array([0.5, 0.5, 0. ])
    """
    return minmax_norms.logsumexp(a, axis=axis, b=b, keepdims=keepdims, return_sign=return_sign)


@counterpart(scipy.special.softmax)
def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along axes."""
    return minmax_norms.softmax(x, axis=axis)


@counterpart(scipy.special.log_softmax)
def log_softmax(x: Any, axis: Any = None) -> Any:
    """The logarithm of the softmax along axes."""
    return minmax_norms.log_softmax(x, axis=axis)
