"""Frequency responses of analog, zero-pole-gain and second-order-section filters; group delay.

    freqs          frequency response of an analog filter, from its coefficients
    freqz_zpk      frequency response of a digital filter, from zeros, poles and gain
    freqz_sos      another name of sosfreqz
    group_delay    group delay of a digital filter, in samples

All are differentiable with respect to the coefficients, zeros, poles and gain of the filter and the
frequencies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from wengert._engine.core.handle import shape_of
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, at, user_line

from ..dispatch import counterpart, floating
from .frequency_response import angular_frequencies, sosfreqz

__all__ = ["freqs", "freqz_sos", "freqz_zpk", "group_delay"]


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
