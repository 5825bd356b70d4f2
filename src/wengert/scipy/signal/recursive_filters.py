"""Recursive filters: lfilter, in sections, forwards and backwards.

    signal.lfilter   the operation: a_0 y_n = sum_k b_k x_{n-k} - sum_{k>0} a_k y_{n-k}

Its derivatives are filters with the same denominator, run once more forwards for a tangent and
backwards in time for a cotangent; those of the coefficients are sums of products with what the
filter has seen.  So a derivative is O(n), as the filter is, and nothing is solved.

    lfilter, lfilter_zi, lfiltic    with a state to begin with, and the state at the end
    deconvolve                      the filter that undoes a convolution

Cascades of filters, and filters that run both ways, are in sosfilt_filtfilt.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.batching import fronted
from wengert._engine.kinds.opaque import opaque
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor, spread
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

from ..dispatch import counterpart, floating
from .convolution import convolve

__all__ = ["deconvolve", "lfilter", "lfilter_zi", "lfiltic"]


def _by_hand(b, a, x):
    y = np.zeros(x.shape, np.result_type(b, a, x))
    for n in range(x.shape[-1]):
        for k in range(min(n + 1, len(b))):
            y[..., n] += b[k] * x[..., n - k]
        for k in range(1, min(n + 1, len(a))):
            y[..., n] -= a[k] * y[..., n - k]
        y[..., n] /= a[0]
    return y


@opaque(name="signal.lfilter", trusted=True, oracle=_by_hand)
def filtered(b, a, x):
    """Lines of x, along the last axis, through the filter b / a, which begins at rest."""
    return scipy.signal.lfilter(b, a, x)


def _conj(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


def _unit(a: Any) -> Any:
    return np.ones(1, a.dtype)


def _backwards(b: Any, a: Any, t: Any) -> Any:
    return filtered(_conj(b), _conj(a), t[..., ::-1])[..., ::-1]


def _lagged(w: Any, x: Any, count: int) -> Any:
    """For each lag k the sum of w_n conj(x_{n-k})."""
    x, n = _conj(x), x.shape[-1]
    wide = np.pad(w, [(0, 0)] * (w.ndim - 1) + [(0, count - 1)])
    sums = [np.sum(wide[..., k : k + n] * x) for k in range(count)]
    return np.stack(sums)


@filtered.define_vjp
def _filtered_vjp(t, out, b, a, x):
    w = _backwards(_unit(a), a, t)
    return (
        _lagged(w, x, b.shape[0]),
        -_lagged(w, out, a.shape[0]),
        _backwards(b, a, t),
    )


@filtered.define_jvp
def _filtered_jvp(dots, out, b, a, x):
    b_dot, a_dot, x_dot = dots
    source = None
    if b_dot is not None:
        source = filtered(b_dot, _unit(a), x)
    if a_dot is not None:
        moved = filtered(a_dot, _unit(a), out)
        source = -moved if source is None else source - moved
    total = None if source is None else filtered(_unit(a), a, source)
    if x_dot is None:
        return total
    through = filtered(b, a, x_dot)
    return through if total is None else total + through


@filtered.spec
def _(b: Spec, a: Spec, x: Spec) -> Spec:
    return Spec(x.shape, np.result_type(b.dtype, a.dtype, x.dtype))


@filtered.batch
def _filtered_rows(args, batched, size):
    b, a, x = args
    if batched[0] or batched[1]:
        return NotImplemented
    return filtered(b, a, fronted(x, batched[2], size))


@filtered.examples
def _(rng):
    yield (rng.normal(size=2), np.array([1.5, -0.6, 0.2]), rng.normal(size=(2, 4))), {}
    z = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    yield (z[0], np.array([1.0 + 0j, 0.5]), z[1]), {}


# ---- as users call it --------------------------------------------------------------------------


def operands_of(name: str, *arrays: Any) -> list[Any]:
    """All in the dtype of their sum."""
    found = [as_array(x) for x in arrays]
    wanted = np.result_type(*[x.dtype for x in found])
    wanted = wanted if wanted.kind in "fc" else np.dtype(float)
    if wanted == np.float16:
        raise DtypeError(
            f"{name} of float16: SciPy has no filter for it. Cast to float32{at(user_line())}."
        )
    return [x if x.dtype == wanted else casts.astype(x, wanted) for x in found]


def coefficients_of(name: str, b: Any, a: Any) -> tuple[Any, Any]:
    b, a = (x.reshape((-1,)) if x.ndim == 0 else x for x in map(as_array, (b, a)))
    for x in (b, a):
        if x.ndim != 1 or x.shape[0] == 0:
            raise ShapeError(
                f"{name} with coefficients of shape {b.shape} and {a.shape}: both are lines of one "
                f"number at least{at(user_line())}."
            )
    if not is_traced(a) and value_of(a)[0] == 0:
        raise ArgumentError(
            f"{name}: the first coefficient of the denominator is 0. Leave it out{at(user_line())}."
        )
    return b, a


@counterpart(scipy.signal.lfilter)
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """A signal through a recursive filter, as ``scipy.signal.lfilter``.

    Parameters
    ----------
    b, a : array_like
        Coefficients of numerator and denominator, lowest delay first.
    x : array_like
    axis : int, default -1
        That of time.
    zi : array_like, optional
        The state to begin with: shaped like `x` with max(len(a), len(b)) - 1 numbers along the
        axis, other axes broadcast.

    Returns
    -------
    Tensor; with `zi` a pair, of which the second is the state at the end

    Raises
    ------
    ShapeError, ArgumentError
        Coefficients are not one-dimensional, or begin with 0; the state has another shape.

    Notes
    -----
    Differentiable in `b`, `a`, `x` and `zi`. *Cost.* O(n) for the filter and each derivative.

    A. V. Oppenheim and R. W. Schafer, "Discrete-Time Signal Processing", section 6.3.

    Examples
    --------
    An exponential average: how its last value depends on each sample.

    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import lfilter
    >>> wg.grad(lambda x: lfilter([0.5], [1.0, -0.5], x)[-1])(np.ones(4))
    array([0.0625, 0.125 , 0.25  , 0.5   ])
    """
    b, a = coefficients_of("lfilter", b, a)
    given = [b, a, as_array(x)] + ([] if zi is None else [as_array(zi)])
    b, a, x, *state = operands_of("lfilter", *given)
    if not -x.ndim <= axis < x.ndim:
        raise np.exceptions.AxisError(axis, x.ndim)
    lines = np.moveaxis(x, axis, -1)
    y = filtered(b, a, lines)
    if zi is None:
        return np.moveaxis(y, -1, axis)
    count = max(b.shape[0], a.shape[0]) - 1
    start = _state(state[0], x, axis, count)
    n = lines.shape[-1]
    y = y + filtered(a[:1], a, _zeros(start, 0, n)[..., :n])
    end = _end(b, a, lines, y, start)
    return np.moveaxis(y, -1, axis), as_tensor(np.moveaxis(end, -1, axis))


def _state(zi: Any, x: Any, axis: int, count: int) -> Any:
    """The state to begin with, its axis behind the others."""
    wanted = [*x.shape]
    wanted[axis] = count
    fits = zi.ndim == x.ndim and all(n in (1, m) for n, m in zip(zi.shape, wanted, strict=True))
    if not fits or (zi.shape[axis] != count):
        raise ShapeError(
            f"lfilter with zi of shape {zi.shape}: for a signal of shape {x.shape} the state has "
            f"shape {tuple(wanted)}{at(user_line())}."
        )
    return np.moveaxis(spread(zi, tuple(wanted)), axis, -1)


def _zeros(x: Any, before: Any, behind: Any) -> Any:
    """Lines with zeros around them."""
    return np.pad(as_tensor(x), [(0, 0)] * (x.ndim - 1) + [(before, behind)])


def _end(b: Any, a: Any, x: Any, y: Any, start: Any) -> Any:
    """The state at the end: what earlier samples, and the first state, will still add."""
    n, count = x.shape[-1], start.shape[-1]
    later = _zeros(start, 0, n)[..., n:]
    sums = [later[..., m] for m in range(count)]
    for c, line, sign in ((b, _zeros(x, count, 0), 1.0), (a, _zeros(y, count, 0), -1.0)):
        for m in range(count):
            for k in range(m + 1, c.shape[0]):
                seen = line[..., n + count - (k - m)]
                sums[m] = sums[m] + sign * (c[k] / a[0]) * seen
    return np.stack(sums, axis=-1) if sums else start


@counterpart(scipy.signal.lfilter_zi)
def lfilter_zi(b: Any, a: Any) -> Any:
    """The state of a filter that has long been fed with ones, as ``scipy.signal.lfilter_zi``."""
    b, a = coefficients_of("lfilter_zi", b, a)
    b, a = operands_of("lfilter_zi", b, a)
    b, a = b / a[0], a / a[0]
    count = max(b.shape[0], a.shape[0])
    b, a = (np.pad(as_tensor(c), (0, count - c.shape[0])) for c in (b, a))
    step = b[1:] - a[1:] * b[0]
    if count == 1:
        return step
    first = np.sum(step) / np.sum(a)
    sums = np.concatenate([np.zeros(1, a.dtype), np.cumsum(step)[:-1]])
    return np.cumsum(a)[:-1] * first - sums


@counterpart(scipy.signal.lfiltic)
def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Any:
    """The state of a filter after given values, newest first, as ``scipy.signal.lfiltic``."""
    b, a = coefficients_of("lfiltic", b, a)
    given = [b, a, as_array(y)] + ([] if x is None else [as_array(x)])
    b, a, y, *past = operands_of("lfiltic", *given)
    states: list[Any] = [0.0 * y[..., :1].sum()] * (max(b.shape[0], a.shape[0]) - 1)
    for c, line, sign in ((b, past[0] if past else None, 1.0), (a, y, -1.0)):
        if line is None:
            continue
        for m in range(c.shape[0] - 1):
            seen = min(c.shape[0] - 1 - m, line.shape[0])
            states[m] = states[m] + sign * np.sum(c[m + 1 : m + 1 + seen] * line[:seen])
    return np.stack(states) / a[0] if states else y[:0]


# ---- the filter that undoes a convolution ------------------------------------------------------


@counterpart(scipy.signal.deconvolve)
def deconvolve(signal: Any, divisor: Any) -> tuple[Any, Any]:
    """Quotient and remainder of sequences as polynomials, as ``scipy.signal.deconvolve``."""
    signal, divisor = coefficients_of("deconvolve", floating(signal), floating(divisor))
    n, m = signal.shape[0], divisor.shape[0]
    if m > n:
        return as_tensor(np.zeros(0)), as_tensor(signal)
    impulse = np.zeros(n - m + 1)
    impulse[0] = 1.0
    quotient = lfilter(as_tensor(signal), divisor, impulse)
    return quotient, signal - convolve(as_tensor(divisor), quotient)
