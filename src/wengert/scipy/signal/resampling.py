"""Resampling of signals.

    resample                  by Fourier transforms
    upfirdn, resample_poly    by a filter between
    decimate                  every q-th sample of a filtered signal

All are linear in the signal, and in the filter or window where that is given as a tensor.
"""

from __future__ import annotations

import operator
from math import gcd
from typing import Any

import numpy as np
import scipy.signal

from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_tensor

from ...errors import ArgumentError, ShapeError, at, user_line
from ...numpy import fft
from ..dispatch import counterpart, floating, holds_tensors, known_length
from .recursive_filters import filtered
from .sosfilt_filtfilt import sosfilt, sosfiltfilt
from .windows import get_window

__all__ = ["decimate", "resample", "resample_poly", "upfirdn"]


@counterpart(scipy.signal.upfirdn)
def upfirdn(
    h: Any,
    x: Any,
    up: int = 1,
    down: int = 1,
    axis: int = -1,
    mode: str = "constant",
    cval: Any = 0,
) -> Any:
    """Zeros put in, filtered, and samples left out, as ``scipy.signal.upfirdn``.

    Parameters
    ----------
    h : array_like
        The filter, a line.
    x : array_like
    up, down : int, default 1
    axis : int, default -1
    mode : {"constant"}
        Of tensors there are zeros beyond the ends.
    cval : {0}

    Notes
    -----
    Differentiable in `h` and `x`. *Cost.* As if nothing was left out: `down` times SciPy's.
    """
    h, x = floating(h), floating(x)
    if mode != "constant" or holds_tensors(cval) or cval != 0:
        raise ArgumentError(
            f"upfirdn of a tensor with mode={mode!r} and cval={cval}: beyond the ends are zeros. "
            f"Pad the signal before{at(user_line())}."
        )
    up, down = operator.index(up), operator.index(down)
    if h.ndim != 1 or h.shape[0] == 0 or up < 1 or down < 1:
        raise ShapeError(
            f"upfirdn with a filter of shape {h.shape}, up={up}, down={down}: the filter is a "
            f"line, the rates 1 at least{at(user_line())}."
        )
    wanted = np.result_type(h.dtype, x.dtype, np.float32)
    h, x = (a if a.dtype == wanted else casts.astype(a, wanted) for a in (h, x))
    lines = np.moveaxis(x, axis, -1)
    n = known_length(lines.shape[-1], "upfirdn")
    if up > 1:
        spread_out = np.pad(lines[..., None], [(0, 0)] * lines.ndim + [(0, up - 1)])
        lines = spread_out.reshape((*lines.shape[:-1], n * up))[..., : (n - 1) * up + 1]
    tail = known_length(h.shape[0], "upfirdn") - 1
    wide = np.pad(as_tensor(lines), [(0, 0)] * (lines.ndim - 1) + [(0, tail)])
    y = filtered(as_tensor(h), np.ones(1, wanted), wide)[..., ::down]
    return np.moveaxis(y, -1, axis)


@counterpart(scipy.signal.resample_poly)
def resample_poly(
    x: Any,
    up: int,
    down: int,
    axis: int = 0,
    window: Any = ("kaiser", 5.0),
    padtype: str = "constant",
    cval: Any = None,
) -> Any:
    """A signal at up / down times its rate, by a filter, as ``scipy.signal.resample_poly``.

    Parameters
    ----------
    x : array_like
    up, down : int
    axis : int, default 0
    window : str, tuple or array_like
        The window of the filter, or the filter itself.
    padtype : {"constant", "mean", "median", "minimum", "maximum"}
        What is taken away before, and added again.
    cval : None
        Of plain arrays only.
    """
    x = floating(x)
    up, down = int(up), int(down)
    levels: dict[str, Any] = {
        "mean": np.mean,
        "median": np.median,
        "minimum": np.min,
        "maximum": np.max,
    }
    if padtype not in ("constant", *levels) or cval not in (None, 0) or min(up, down) < 1:
        raise ArgumentError(
            f"resample_poly of a tensor with up={up}, down={down}, padtype={padtype!r} and "
            f"cval={cval}: rates are 1 at least, padtype is 'constant', "
            f"{', '.join(map(repr, levels))}, cval None{at(user_line())}."
        )
    up, down = up // gcd(up, down), down // gcd(up, down)
    if up == down == 1:
        return x + 0.0
    n = known_length(x.shape[axis], "resample_poly")
    wanted = -(-n * up // down)
    if isinstance(window, str | tuple):
        half = 10 * max(up, down)
        h = scipy.signal.firwin(2 * half + 1, 1.0 / max(up, down), window=window).astype(x.dtype)
    else:
        h = floating(window)
        half = (h.shape[0] - 1) // 2
    before = down - half % down
    skipped = (half + before) // down
    behind = 0
    while -(-((n - 1) * up + h.shape[0] + before + behind) // down) < wanted + skipped:
        behind += 1
    level = levels[padtype](x, axis=axis, keepdims=True) if padtype in levels else None
    signal = x if level is None else x - level
    wide = np.pad(as_tensor(h * up), (before, behind))
    y = upfirdn(wide, signal, up, down, axis)
    part = [slice(None)] * x.ndim
    part[axis] = slice(skipped, skipped + wanted)
    y = y[tuple(part)]
    return y if level is None else y + level


@counterpart(scipy.signal.resample)
def resample(
    x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time"
) -> Any:
    """A periodic signal with `num` samples, by Fourier transforms, as ``scipy.signal.resample``.

    Parameters
    ----------
    x : array_like
        The signal, or its transform, as `domain` says.
    num : int
    t : array_like, optional
        Times of the samples; the new ones are then returned too.
    axis : int, default 0
    window : array_like, callable, str or tuple, optional
        Multiplied with the spectrum.
    domain : {"time", "freq"}
    """
    if domain not in ("time", "freq"):
        raise ArgumentError(
            f"resample with domain={domain!r}: it is 'time' or 'freq'{at(user_line())}."
        )
    x, num = floating(x), operator.index(num)
    if num < 1:
        raise ArgumentError(f"resample to {num} samples: at least one{at(user_line())}.")
    lines = np.moveaxis(x, axis, -1)
    n = known_length(lines.shape[-1], "resample")
    spectrum = fft.fft(lines) if domain == "time" else lines
    if window is not None:
        factors = floating(_spectral_window(window, n))
        single = domain == "time" and x.dtype == np.float32
        spectrum = spectrum * (casts.astype(factors, np.float32) if single else factors)
    m = min(num, n)
    half = m // 2 + 1
    positive, negative = spectrum[..., :half], spectrum[..., n - (m - half) :]
    if m % 2 == 0 and num != n:
        nyquist = positive[..., m // 2 :]
        if num < n:  # two lines become one
            nyquist = nyquist + spectrum[..., n - m // 2 : n - m // 2 + 1]
        else:  # one becomes two
            nyquist = nyquist / 2.0
            negative = np.concatenate([nyquist, negative], axis=-1)
        positive = np.concatenate([positive[..., : m // 2], nyquist], axis=-1)
    filled = num - positive.shape[-1] - negative.shape[-1]
    gap = np.zeros((*lines.shape[:-1], max(filled, 0)), spectrum.dtype)
    y = fft.ifft(np.concatenate([positive, gap, negative], axis=-1) * (num / n))
    y = y.real if domain == "time" and x.dtype.kind != "c" else y
    y = np.moveaxis(y, -1, axis)
    return y if t is None else (y, t[0] + (t[1] - t[0]) * (n / num) * np.arange(num))


def _spectral_window(window: Any, n: int) -> Any:
    if callable(window):
        return window(np.fft.fftfreq(n))
    if not isinstance(window, str | tuple) and len(np.shape(window)) == 1:
        if window.shape != (n,):
            raise ShapeError(
                f"resample with a window of shape {window.shape} for {n} samples: give one number "
                f"for each{at(user_line())}."
            )
        return window
    return fft.fftshift(get_window(window, n))


@counterpart(scipy.signal.decimate)
def decimate(
    x: Any,
    q: int,
    n: int | None = None,
    ftype: Any = "iir",
    axis: int = -1,
    zero_phase: bool = True,
) -> Any:
    """Every q-th sample, after a low-pass filter, as ``scipy.signal.decimate``.

    Parameters
    ----------
    x : array_like
    q : int
    n : int, optional
        The order of the filter.
    ftype : {"iir", "fir"}
    axis : int, default -1
    zero_phase : bool, default True
    """
    x, q = floating(x), operator.index(q)
    x = casts.astype(x, float) if x.dtype == np.float16 else x
    if ftype == "fir":
        taps = scipy.signal.firwin((20 * q if n is None else n) + 1, 1.0 / q, window="hamming")
        taps = taps.astype(np.finfo(x.dtype).dtype)
        if zero_phase:
            return resample_poly(as_tensor(x), 1, q, axis=axis, window=taps)
        y = upfirdn(taps, as_tensor(x), 1, q, axis)
        part = [slice(None)] * x.ndim
        part[axis] = slice(0, -(-known_length(x.shape[axis], "decimate") // q))
        return y[tuple(part)]
    if ftype != "iir":
        raise ArgumentError(
            f"decimate of a tensor with ftype={ftype!r}: it is 'iir' or 'fir'{at(user_line())}."
        )
    sos = scipy.signal.cheby1(8 if n is None else n, 0.05, 0.8 / q, output="sos")
    sos = sos.astype(np.finfo(x.dtype).dtype)
    y = (sosfiltfilt if zero_phase else sosfilt)(sos, as_tensor(x), axis=axis)
    part = [slice(None)] * x.ndim
    part[axis] = slice(None, None, q)
    return y[tuple(part)]
