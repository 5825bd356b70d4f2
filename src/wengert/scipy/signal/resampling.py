"""Resampling of signals.

    resample                  with Fourier transforms
    upfirdn, resample_poly    polyphase filtering: upsample, filter, downsample
    decimate                  low-pass filter, and downsample

All are linear in the signal, and in the filter or window if it is given.
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
from .recursive_filters import lfilter_zero_state
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
    """Upsample, apply an FIR filter and downsample, as ``scipy.signal.upfirdn``.

    Parameters
    ----------
    h : array_like
        The coefficients of the filter, one-dimensional.
    x : array_like
    up, down : int, default 1
        The factors of upsampling and downsampling.
    axis : int, default -1
    mode : {"constant"}
        Tensors are padded with zeros.
    cval : {0}

    Notes
    -----
    Differentiable with respect to `h` and `x`. *Cost.* `down` times that of SciPy, as the samples
    that are dropped are computed too.
    """
    h, x = floating(h), floating(x)
    if mode != "constant" or holds_tensors(cval) or cval != 0:
        raise ArgumentError(
            f"upfirdn of a tensor with mode={mode!r} and cval={cval}: tensors are padded with "
            f"zeros. Pad the signal before the call{at(user_line())}."
        )
    up, down = operator.index(up), operator.index(down)
    if h.ndim != 1 or h.shape[0] == 0 or up < 1 or down < 1:
        raise ShapeError(
            f"upfirdn with h of shape {h.shape}, up={up}, down={down}: h must be one-dimensional "
            f"and not empty, up and down at least 1{at(user_line())}."
        )
    wanted = np.result_type(h.dtype, x.dtype, np.float32)
    h, x = (a if a.dtype == wanted else casts.astype(a, wanted) for a in (h, x))
    signals = np.moveaxis(x, axis, -1)
    n = known_length(signals.shape[-1], "upfirdn")
    if up > 1:
        upsampled = np.pad(signals[..., None], [(0, 0)] * signals.ndim + [(0, up - 1)])
        signals = upsampled.reshape((*signals.shape[:-1], n * up))[..., : (n - 1) * up + 1]
    tail = known_length(h.shape[0], "upfirdn") - 1
    padded = np.pad(as_tensor(signals), [(0, 0)] * (signals.ndim - 1) + [(0, tail)])
    y = lfilter_zero_state(as_tensor(h), np.ones(1, wanted), padded)[..., ::down]
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
    """Resample by the factor up / down with a polyphase filter, as ``scipy.signal.resample_poly``.

    Parameters
    ----------
    x : array_like
    up, down : int
    axis : int, default 0
    window : str, tuple or array_like
        The window from which the filter is designed, or the coefficients of the filter.
    padtype : {"constant", "mean", "median", "minimum", "maximum"}
        The statistic that is subtracted before filtering and added afterwards; none for "constant".
    cval : None
        Not supported for tensors.
    """
    x = floating(x)
    up, down = int(up), int(down)
    statistics: dict[str, Any] = {
        "mean": np.mean,
        "median": np.median,
        "minimum": np.min,
        "maximum": np.max,
    }
    if padtype not in ("constant", *statistics) or cval not in (None, 0) or min(up, down) < 1:
        raise ArgumentError(
            f"resample_poly of a tensor with up={up}, down={down}, padtype={padtype!r} and "
            f"cval={cval}: up and down must be at least 1, padtype one of 'constant', "
            f"{', '.join(map(repr, statistics))}, and cval None{at(user_line())}."
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
    after = 0
    while -(-((n - 1) * up + h.shape[0] + before + after) // down) < wanted + skipped:
        after += 1
    level = statistics[padtype](x, axis=axis, keepdims=True) if padtype in statistics else None
    signal = x if level is None else x - level
    padded = np.pad(as_tensor(h * up), (before, after))
    y = upfirdn(padded, signal, up, down, axis)
    part = [slice(None)] * x.ndim
    part[axis] = slice(skipped, skipped + wanted)
    y = y[tuple(part)]
    return y if level is None else y + level


@counterpart(scipy.signal.resample)
def resample(
    x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time"
) -> Any:
    """Resample a periodic signal to `num` samples with FFTs, as ``scipy.signal.resample``.

    Parameters
    ----------
    x : array_like
        The signal, or its Fourier transform if `domain` is "freq".
    num : int
        The number of samples of the result.
    t : array_like, optional
        The times of the samples. If given, those of the result are returned too.
    axis : int, default 0
    window : array_like, callable, str or tuple, optional
        By which the spectrum is multiplied.
    domain : {"time", "freq"}
    """
    if domain not in ("time", "freq"):
        raise ArgumentError(
            f"resample with domain={domain!r}: the domain must be 'time' or 'freq'"
            f"{at(user_line())}."
        )
    x, num = floating(x), operator.index(num)
    if num < 1:
        raise ArgumentError(f"resample to {num} samples: num must be positive{at(user_line())}.")
    signals = np.moveaxis(x, axis, -1)
    n = known_length(signals.shape[-1], "resample")
    spectrum = fft.fft(signals) if domain == "time" else signals
    if window is not None:
        factors = floating(_spectral_window(window, n))
        single = domain == "time" and x.dtype == np.float32
        spectrum = spectrum * (casts.astype(factors, np.float32) if single else factors)
    m = min(num, n)
    half = m // 2 + 1
    positive, negative = spectrum[..., :half], spectrum[..., n - (m - half) :]
    if m % 2 == 0 and num != n:
        nyquist = positive[..., m // 2 :]
        if num < n:  # the bins at +m/2 and -m/2 are added
            nyquist = nyquist + spectrum[..., n - m // 2 : n - m // 2 + 1]
        else:  # the bin at m/2 is divided between +m/2 and -m/2
            nyquist = nyquist / 2.0
            negative = np.concatenate([nyquist, negative], axis=-1)
        positive = np.concatenate([positive[..., : m // 2], nyquist], axis=-1)
    missing = num - positive.shape[-1] - negative.shape[-1]
    zeros = np.zeros((*signals.shape[:-1], max(missing, 0)), spectrum.dtype)
    y = fft.ifft(np.concatenate([positive, zeros, negative], axis=-1) * (num / n))
    y = y.real if domain == "time" and x.dtype.kind != "c" else y
    y = np.moveaxis(y, -1, axis)
    return y if t is None else (y, t[0] + (t[1] - t[0]) * (n / num) * np.arange(num))


def _spectral_window(window: Any, n: int) -> Any:
    if callable(window):
        return window(np.fft.fftfreq(n))
    if not isinstance(window, str | tuple) and len(np.shape(window)) == 1:
        if window.shape != (n,):
            raise ShapeError(
                f"resample of {n} samples with a window of shape {window.shape}: the shape must be "
                f"({n},){at(user_line())}."
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
    """Downsample by the factor q after a low-pass filter, as ``scipy.signal.decimate``.

    Parameters
    ----------
    x : array_like
    q : int
        The factor of downsampling.
    n : int, optional
        The order of the filter; by default 8 for "iir" and 20 q for "fir".
    ftype : {"iir", "fir"}
    axis : int, default -1
    zero_phase : bool, default True
        Whether to compensate the phase shift of the filter.
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
            f"decimate of a tensor with ftype={ftype!r}: ftype must be 'iir' or 'fir'"
            f"{at(user_line())}."
        )
    sos = scipy.signal.cheby1(8 if n is None else n, 0.05, 0.8 / q, output="sos")
    sos = sos.astype(np.finfo(x.dtype).dtype)
    y = (sosfiltfilt if zero_phase else sosfilt)(sos, as_tensor(x), axis=axis)
    part = [slice(None)] * x.ndim
    part[axis] = slice(None, None, q)
    return y[tuple(part)]
