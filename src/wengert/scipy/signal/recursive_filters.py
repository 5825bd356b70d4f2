"""Recursive (IIR) filters: lfilter, lfilter_zi, lfiltic, deconvolve.

    signal.lfilter   the operation: a_0 y_n = sum_k b_k x_{n-k} - sum_{k>0} a_k y_{n-k}

Tangents and cotangents pass through filters with the same denominator, cotangents in reversed time.
Derivatives with respect to coefficients are correlations of such a filtered signal with the input
or output.  So each derivative takes O(n) operations, as the filter does.

Cascades of filters, and forward-backward filters, are in sosfilt_filtfilt.py.
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


def _lfilter_reference(b, a, x):
    y = np.zeros(x.shape, np.result_type(b, a, x))
    for n in range(x.shape[-1]):
        for k in range(min(n + 1, len(b))):
            y[..., n] += b[k] * x[..., n - k]
        for k in range(1, min(n + 1, len(a))):
            y[..., n] -= a[k] * y[..., n - k]
        y[..., n] /= a[0]
    return y


@opaque(name="signal.lfilter", trusted=True, oracle=_lfilter_reference)
def lfilter_zero_state(b, a, x):
    """Filter along the last axis with zero initial state."""
    return scipy.signal.lfilter(b, a, x)


def _conj(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


def _one(a: Any) -> Any:
    """The numerator or denominator 1, of the dtype of a."""
    return np.ones(1, a.dtype)


def _filter_reversed(b: Any, a: Any, t: Any) -> Any:
    """Filter in reversed time with conjugated coefficients: the adjoint of the filter."""
    return lfilter_zero_state(_conj(b), _conj(a), t[..., ::-1])[..., ::-1]


def _correlate_at_lags(w: Any, x: Any, count: int) -> Any:
    """sum_n w_n conj(x_{n-k}) for the lags k = 0 ... count - 1."""
    x, n = _conj(x), x.shape[-1]
    padded = np.pad(w, [(0, 0)] * (w.ndim - 1) + [(0, count - 1)])
    sums = [np.sum(padded[..., k : k + n] * x) for k in range(count)]
    return np.stack(sums)


@lfilter_zero_state.define_vjp
def _lfilter_vjp(t, out, b, a, x):
    w = _filter_reversed(_one(a), a, t)
    return (
        _correlate_at_lags(w, x, b.shape[0]),
        -_correlate_at_lags(w, out, a.shape[0]),
        _filter_reversed(b, a, t),
    )


@lfilter_zero_state.define_jvp
def _lfilter_jvp(dots, out, b, a, x):
    b_dot, a_dot, x_dot = dots
    source = None
    if b_dot is not None:
        source = lfilter_zero_state(b_dot, _one(a), x)
    if a_dot is not None:
        of_a = lfilter_zero_state(a_dot, _one(a), out)
        source = -of_a if source is None else source - of_a
    total = None if source is None else lfilter_zero_state(_one(a), a, source)
    if x_dot is None:
        return total
    of_x = lfilter_zero_state(b, a, x_dot)
    return of_x if total is None else total + of_x


@lfilter_zero_state.spec
def _(b: Spec, a: Spec, x: Spec) -> Spec:
    return Spec(x.shape, np.result_type(b.dtype, a.dtype, x.dtype))


@lfilter_zero_state.batch
def _lfilter_batch(args, batched, size):
    b, a, x = args
    if batched[0] or batched[1]:
        return NotImplemented
    return lfilter_zero_state(b, a, fronted(x, batched[2], size))


@lfilter_zero_state.examples
def _(rng):
    yield (rng.normal(size=2), np.array([1.5, -0.6, 0.2]), rng.normal(size=(2, 4))), {}
    z = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    yield (z[0], np.array([1.0 + 0j, 0.5]), z[1]), {}


# ---- public functions --------------------------------------------------------------------------


def cast_to_common_dtype(name: str, *arrays: Any) -> list[Any]:
    """All as arrays or tensors of their common floating or complex dtype."""
    operands = [as_array(x) for x in arrays]
    wanted = np.result_type(*[x.dtype for x in operands])
    wanted = wanted if wanted.kind in "fc" else np.dtype(float)
    if wanted == np.float16:
        raise DtypeError(
            f"{name} of float16: SciPy does not support it. Cast to float32{at(user_line())}."
        )
    return [x if x.dtype == wanted else casts.astype(x, wanted) for x in operands]


def check_coefficients(name: str, b: Any, a: Any) -> tuple[Any, Any]:
    """Numerator and denominator as 1-dimensional arrays; errors if they are not valid."""
    b, a = (x.reshape((-1,)) if x.ndim == 0 else x for x in map(as_array, (b, a)))
    for x in (b, a):
        if x.ndim != 1 or x.shape[0] == 0:
            raise ShapeError(
                f"{name} with coefficients of shape {b.shape} and {a.shape}: both must be "
                f"one-dimensional and not empty{at(user_line())}."
            )
    if not is_traced(a) and value_of(a)[0] == 0:
        raise ArgumentError(
            f"{name}: the first coefficient of the denominator is 0. Remove it{at(user_line())}."
        )
    return b, a


@counterpart(scipy.signal.lfilter)
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Filter a signal with an IIR or FIR filter, as ``scipy.signal.lfilter``.

    Parameters
    ----------
    b, a : array_like
        Coefficients of numerator and denominator, lowest delay first.
    x : array_like
    axis : int, default -1
        The axis of time.
    zi : array_like, optional
        The initial state. Its shape is that of `x`, with max(len(a), len(b)) - 1 along the axis;
        the other axes are broadcast.

    Returns
    -------
    Tensor, or a pair (Tensor, final state) if `zi` is given

    Raises
    ------
    ShapeError
        The coefficients are not one-dimensional, or the state has a wrong shape.
    ArgumentError
        The first coefficient of the denominator is 0.

    Notes
    -----
    Differentiable with respect to `b`, `a`, `x` and `zi`. *Cost.* O(n) for the filter and for each
    derivative.

    A. V. Oppenheim and R. W. Schafer, "Discrete-Time Signal Processing", section 6.3.

    Examples
    --------
    The gradient of the last value of an exponential moving average:

    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import lfilter
    >>> wg.grad(lambda x: lfilter([0.5], [1.0, -0.5], x)[-1])(np.ones(4))
    array([0.0625, 0.125 , 0.25  , 0.5   ])
    """
    b, a = check_coefficients("lfilter", b, a)
    operands = [b, a, as_array(x)] + ([] if zi is None else [as_array(zi)])
    b, a, x, *state = cast_to_common_dtype("lfilter", *operands)
    if not -x.ndim <= axis < x.ndim:
        raise np.exceptions.AxisError(axis, x.ndim)
    x_last = np.moveaxis(x, axis, -1)
    y = lfilter_zero_state(b, a, x_last)
    if zi is None:
        return np.moveaxis(y, -1, axis)
    order = max(b.shape[0], a.shape[0]) - 1
    initial = _initial_state(state[0], x, axis, order)
    n = x_last.shape[-1]
    y = y + lfilter_zero_state(a[:1], a, _pad_last(initial, 0, n)[..., :n])
    final = _final_state(b, a, x_last, y, initial)
    return np.moveaxis(y, -1, axis), as_tensor(np.moveaxis(final, -1, axis))


def _initial_state(zi: Any, x: Any, axis: int, order: int) -> Any:
    """The initial state, broadcast to the other axes of x, with its own axis last."""
    wanted = [*x.shape]
    wanted[axis] = order
    fits = zi.ndim == x.ndim and all(n in (1, m) for n, m in zip(zi.shape, wanted, strict=True))
    if not fits or (zi.shape[axis] != order):
        raise ShapeError(
            f"lfilter with zi of shape {zi.shape}: for a signal of shape {x.shape} it must have "
            f"the shape {tuple(wanted)}{at(user_line())}."
        )
    return np.moveaxis(spread(zi, tuple(wanted)), axis, -1)


def _pad_last(x: Any, before: Any, after: Any) -> Any:
    """Pad the last axis with zeros."""
    return np.pad(as_tensor(x), [(0, 0)] * (x.ndim - 1) + [(before, after)])


def _final_state(b: Any, a: Any, x: Any, y: Any, initial: Any) -> Any:
    """The state after the last sample: what x, y and the initial state add to later outputs."""
    n, order = x.shape[-1], initial.shape[-1]
    remaining = _pad_last(initial, 0, n)[..., n:]
    state = [remaining[..., m] for m in range(order)]
    for c, samples, sign in ((b, x, 1.0), (a, y, -1.0)):
        padded = _pad_last(samples, order, 0)
        for m in range(order):
            for k in range(m + 1, c.shape[0]):
                delayed = padded[..., n + order - (k - m)]
                state[m] = state[m] + sign * (c[k] / a[0]) * delayed
    return np.stack(state, axis=-1) if state else initial


@counterpart(scipy.signal.lfilter_zi)
def lfilter_zi(b: Any, a: Any) -> Any:
    """The steady state of the step response of a filter, as ``scipy.signal.lfilter_zi``."""
    b, a = check_coefficients("lfilter_zi", b, a)
    b, a = cast_to_common_dtype("lfilter_zi", b, a)
    b, a = b / a[0], a / a[0]
    count = max(b.shape[0], a.shape[0])
    b, a = (np.pad(as_tensor(c), (0, count - c.shape[0])) for c in (b, a))
    source = b[1:] - a[1:] * b[0]
    if count == 1:
        return source
    first = np.sum(source) / np.sum(a)
    sums = np.concatenate([np.zeros(1, a.dtype), np.cumsum(source)[:-1]])
    return np.cumsum(a)[:-1] * first - sums


@counterpart(scipy.signal.lfiltic)
def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Any:
    """The state of a filter from past outputs and inputs, as ``scipy.signal.lfiltic``.

    Parameters
    ----------
    b, a : array_like
        See `lfilter`.
    y, x : array_like
        Past outputs and inputs, most recent first; `x` is 0 by default.
    """
    b, a = check_coefficients("lfiltic", b, a)
    operands = [b, a, as_array(y)] + ([] if x is None else [as_array(x)])
    b, a, y, *past_x = cast_to_common_dtype("lfiltic", *operands)
    state: list[Any] = [0.0 * y[..., :1].sum()] * (max(b.shape[0], a.shape[0]) - 1)
    for c, past, sign in ((b, past_x[0] if past_x else None, 1.0), (a, y, -1.0)):
        if past is None:
            continue
        for m in range(c.shape[0] - 1):
            count = min(c.shape[0] - 1 - m, past.shape[0])
            state[m] = state[m] + sign * np.sum(c[m + 1 : m + 1 + count] * past[:count])
    return np.stack(state) / a[0] if state else y[:0]


@counterpart(scipy.signal.deconvolve)
def deconvolve(signal: Any, divisor: Any) -> tuple[Any, Any]:
    """Quotient and remainder of polynomial division, as ``scipy.signal.deconvolve``."""
    signal, divisor = check_coefficients("deconvolve", floating(signal), floating(divisor))
    n, m = signal.shape[0], divisor.shape[0]
    if m > n:
        return as_tensor(np.zeros(0)), as_tensor(signal)
    impulse = np.zeros(n - m + 1)
    impulse[0] = 1.0
    quotient = lfilter(as_tensor(signal), divisor, impulse)
    return quotient, signal - convolve(as_tensor(divisor), quotient)
