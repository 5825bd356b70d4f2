"""Frequency responses of digital and analog filters; group delay.

    freqs          frequency response of an analog filter, from its coefficients
    freqz_zpk      frequency response of a digital filter, from zeros, poles and gain
    freqz_sos      another name of sosfreqz
    group_delay    group delay of a digital filter, in samples

A frequency response is a quotient of polynomials in exp(-i w).  SciPy evaluates them by Horner's
rule or an FFT; here they are products with a matrix of powers, which are differentiable with
respect to coefficients and frequencies.

All are differentiable with respect to the coefficients, zeros, poles and gain of the filter and the
frequencies.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import scipy.signal

from wengert._engine.core.handle import is_traced, shape_of, value_of
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array, spread
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import counterpart, floating
from .recursive_filters import check_coefficients

__all__ = ["freqz", "sosfreqz", "freqs", "freqz_sos", "freqz_zpk", "group_delay"]


def angular_frequencies(worN: Any, whole: bool, fs: Any, include_nyquist: bool) -> Any:
    """Angular frequencies per sample: those given, or as many from 0 to pi or 2 pi."""
    worN = 512 if worN is None else worN
    if np.ndim(value_of(worN)) == 0 and not is_traced(worN):
        last = 2.0 * np.pi if whole else np.pi
        return np.linspace(0.0, last, operator.index(worN), endpoint=include_nyquist and not whole)
    return 2.0 * np.pi * floating(worN) / fs


def _response(b: Any, a: Any, w: Any) -> Any:
    return _polynomial(b, w) / _polynomial(a, w)


def _polynomial(c: Any, w: Any) -> Any:
    powers = np.arange(c.shape[0]).astype(w.dtype)
    return np.exp(-1j * w[..., None] * powers) @ c


def _to_precision_of(w: Any, *coefficients: Any) -> Any:
    """Cast angular frequencies to the precision of the coefficients."""
    wanted = np.finfo(np.result_type(np.float32, *[c.dtype for c in coefficients])).dtype
    return w if w.dtype == wanted else casts.astype(w, wanted)


@counterpart(scipy.signal.freqz)
def freqz(
    b: Any,
    a: Any = 1,
    worN: Any = 512,
    whole: bool = False,
    plot: Any = None,
    fs: Any = 2 * np.pi,
    include_nyquist: bool = False,
) -> Any:
    """The frequency response of a digital filter, as ``scipy.signal.freqz``.

    Parameters
    ----------
    b, a : array_like
        The coefficients of the filter, see `lfilter`.
    worN : int or array_like
        The number of frequencies, or the frequencies.
    whole : bool, default False
        Whether frequencies range up to `fs` instead of fs / 2. Has no effect if `worN` is an array.
    plot : None
        Not supported for tensors.
    fs : float or Tensor
        The sampling frequency.
    include_nyquist : bool, default False
        Whether fs / 2 is the last frequency.

    Returns
    -------
    frequencies, response

    Notes
    -----
    Differentiable with respect to `b`, `a`, the frequencies and `fs`. *Cost.* The number of
    frequencies times the number of coefficients.
    """
    if plot is not None:
        raise ArgumentError(
            f"freqz of a tensor with plot={plot!r}: it does not plot. Plot the result"
            f"{at(user_line())}."
        )
    b, a = check_coefficients("freqz", b, a)
    b, a = floating(b), as_array(a)
    a = a if a.dtype.kind in "fc" else casts.astype(a, b.dtype)
    w = _to_precision_of(angular_frequencies(worN, whole, fs, include_nyquist), b, a)
    h = _response(b, a, w)
    return w * (fs / (2.0 * np.pi)), h


@counterpart(scipy.signal.sosfreqz)
def sosfreqz(sos: Any, worN: Any = 512, whole: bool = False, fs: Any = 2 * np.pi) -> Any:
    """The frequency response of second-order sections, as ``scipy.signal.sosfreqz``.

    Parameters
    ----------
    sos : array_like
        Shape (n, 6), see `sosfilt`.
    worN, whole, fs
        See `freqz`.

    Returns
    -------
    frequencies, response
    """
    sos = floating(sos)
    if sos.ndim != 2 or sos.shape[1] != 6:
        raise ShapeError(
            f"sosfreqz with sos of shape {sos.shape}: the shape must be (n, 6){at(user_line())}."
        )
    w = angular_frequencies(worN, whole, fs, False)
    h: Any = spread(np.ones((), complex), w.shape)
    for k in range(sos.shape[0]):
        h = h * _response(sos[k, :3], sos[k, 3:], w)
    return w * (fs / (2.0 * np.pi)), h


def _horner(c: Any, s: Any) -> Any:
    """Evaluate a polynomial at s; the highest coefficient comes first."""
    total: Any = 0.0 * s
    for k in range(int(shape_of(c)[0])):
        total = total * s + c[k]
    return total


@counterpart(scipy.signal.freqs)
def freqs(b: Any, a: Any, worN: Any = 200, plot: Any = None) -> Any:
    """The frequency response of an analog filter, as ``scipy.signal.freqs``.

    Parameters
    ----------
    b, a : array or Tensor
        Coefficients of numerator and denominator, highest first.
    worN : array or Tensor
        Angular frequencies. For tensors, they must be given.
    plot : None
        Not supported for tensors.

    Returns
    -------
    frequencies, response

    Raises
    ------
    ArgumentError
        `worN` is not an array, or `plot` is given.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import freqs
    >>> size = lambda r: abs(freqs(np.ones(1), np.stack([r, r * 0 + 1.0]), np.ones(1))[1][0])
    >>> float(wg.grad(size)(1.0).round(6))  # of 1 / sqrt(1 + r^2)
    -0.353553
    """
    w = as_array(worN)
    if len(shape_of(w)) == 0 or plot is not None:
        raise ArgumentError(
            "freqs of tensors needs an array of frequencies and does not plot. Pass worN as an "
            f"array, and no plot{at(user_line())}."
        )
    w = floating(w)
    b, a = (np.reshape(floating(as_array(c)), (-1,)) for c in (b, a))
    return w, _horner(b, 1j * w) / _horner(a, 1j * w)


@counterpart(scipy.signal.freqz_zpk)
def freqz_zpk(
    z: Any, p: Any, k: Any, worN: Any = 512, whole: bool = False, fs: Any = 2 * np.pi
) -> Any:
    """The frequency response of a filter in zero-pole-gain form, as ``scipy.signal.freqz_zpk``.

    Parameters
    ----------
    z, p : array or Tensor
        Zeros and poles.
    k : float or Tensor
        The gain.
    worN, whole, fs
        See `freqz`.

    Returns
    -------
    frequencies, response

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import freqz_zpk
    >>> gain = lambda p: freqz_zpk(np.zeros(0), np.stack([p]), 1.0, np.zeros(1))[1][0].real
    >>> float(wg.grad(gain)(0.5).round(6))  # of 1 / (1 - p)
    4.0
    """
    w = angular_frequencies(worN, whole, fs, False)
    exp_iw = np.exp(1j * w)[..., None]
    z, p = (np.reshape(floating(as_array(r)), (-1,)) for r in (z, p))
    h = k * np.prod(exp_iw - z, axis=-1) / np.prod(exp_iw - p, axis=-1)
    return w * (fs / (2.0 * np.pi)), h


def freqz_sos(sos: Any, worN: Any = 512, whole: bool = False, fs: Any = 2 * np.pi) -> Any:
    """The frequency response of second-order sections, as ``scipy.signal.freqz_sos``.

    Parameters
    ----------
    sos : array or Tensor
        Shape (n, 6), see `sosfilt`.
    worN, whole, fs
        See `freqz`.

    Returns
    -------
    frequencies, response

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.scipy.signal import freqz_sos
    >>> w, h = freqz_sos(np.array([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]]), np.zeros(1))
    >>> float(h[0].real)
    2.0
    """
    return sosfreqz(sos, worN, whole, fs)


@counterpart(scipy.signal.group_delay)
def group_delay(system: Any, w: Any = 512, whole: bool = False, fs: Any = 2 * np.pi) -> Any:
    """The group delay of a digital filter in samples, as ``scipy.signal.group_delay``.

    Parameters
    ----------
    system : tuple
        The coefficients (b, a).
    w : int, array or Tensor
        The number of frequencies, or the frequencies.
    whole, fs
        See `freqz`.

    Returns
    -------
    frequencies, delay

    Notes
    -----
    Computed as the real part of a quotient of two polynomials: J. O. Smith, Introduction to Digital
    Filters. Where the frequency response is 0, the result is inf or NaN.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import group_delay
    >>> delay = lambda b: group_delay((b, np.ones(1)), np.zeros(1))[1][0]
    >>> wg.grad(delay)(np.array([1.0, 1.0]))
    array([-0.25,  0.25])
    """
    omega = angular_frequencies(w, whole, fs, False)
    b, a = (np.reshape(floating(as_array(c)), (-1,)) for c in system)
    c = np.convolve(b, np.conj(a)[::-1])
    powers = np.arange(float(shape_of(c)[0]))
    exp_minus_iw = np.exp(-1j * omega[..., None] * powers)
    delay = np.real((exp_minus_iw @ (c * powers)) / (exp_minus_iw @ c)) - (shape_of(a)[0] - 1)
    return omega * (fs / (2.0 * np.pi)), delay
