"""Frequency responses of analog and zero-pole-gain filters, and group delays.

    freqs          of an analog filter, by its coefficients
    freqz_zpk      of a digital one, by zeros, poles and gain
    freqz_sos      of sections: sosfreqz by another name
    group_delay    how many samples a packet of waves is late

All are differentiable in the description of the filter and in the frequencies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from wengert._engine.core.handle import shape_of
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, at, user_line

from ..dispatch import counterpart, floating
from .frequency_response import angles, sosfreqz

__all__ = ["freqs", "freqz_sos", "freqz_zpk", "group_delay"]


def _horner(c: Any, s: Any) -> Any:
    """A polynomial, the highest coefficient first."""
    total: Any = 0.0 * s
    for k in range(int(shape_of(c)[0])):
        total = total * s + c[k]
    return total


@counterpart(scipy.signal.freqs)
def freqs(b: Any, a: Any, worN: Any = 200, plot: Any = None) -> Any:
    """The response of an analog filter at angular frequencies, as ``scipy.signal.freqs``.

    Parameters
    ----------
    b, a : array or Tensor
        Coefficients, the highest first.
    worN : array or Tensor
        Which frequencies: of tensors they are given.
    plot : None
        Of plain arrays only.

    Returns
    -------
    frequencies, response

    Raises
    ------
    ArgumentError
        The frequencies are not given.

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
            "freqs of tensors takes an array of frequencies and does not plot. Pass worN as an "
            f"array{at(user_line())}."
        )
    w = floating(w)
    b, a = (np.reshape(floating(as_array(c)), (-1,)) for c in (b, a))
    return w, _horner(b, 1j * w) / _horner(a, 1j * w)


@counterpart(scipy.signal.freqz_zpk)
def freqz_zpk(
    z: Any, p: Any, k: Any, worN: Any = 512, whole: bool = False, fs: Any = 2 * np.pi
) -> Any:
    """The response of a filter by zeros, poles and gain, as ``scipy.signal.freqz_zpk``.

    Parameters
    ----------
    z, p : array or Tensor
        Zeros and poles.
    k : float or Tensor
        The gain.
    worN, whole, fs
        As of `freqz`.

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
    w = angles(worN, whole, fs, False)
    turned = np.exp(1j * w)[..., None]
    z, p = (np.reshape(floating(as_array(r)), (-1,)) for r in (z, p))
    h = k * np.prod(turned - z, axis=-1) / np.prod(turned - p, axis=-1)
    return w * (fs / (2.0 * np.pi)), h


def freqz_sos(sos: Any, worN: Any = 512, whole: bool = False, fs: Any = 2 * np.pi) -> Any:
    """The response of sections of order two, as ``scipy.signal.freqz_sos``.

    Parameters
    ----------
    sos : array or Tensor
        (n, 6).
    worN, whole, fs
        As of `freqz`.

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
    """The delay of a filter (b, a) in samples, as ``scipy.signal.group_delay``.

    Parameters
    ----------
    system : tuple
        Coefficients b and a.
    w : int, array or Tensor
    whole, fs
        As of `freqz`.

    Returns
    -------
    frequencies, delay

    Notes
    -----
    The real part of a quotient of two polynomials: J. O. Smith, Introduction to Digital Filters.
    Where the filter lets nothing through, it is what the quotient gives, inf or NaN.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import group_delay
    >>> delay = lambda b: group_delay((b, np.ones(1)), np.zeros(1))[1][0]
    >>> wg.grad(delay)(np.array([1.0, 1.0]))
    array([-0.25,  0.25])
    """
    at_angles = angles(w, whole, fs, False)
    b, a = (np.reshape(floating(as_array(c)), (-1,)) for c in system)
    c = np.convolve(b, np.conj(a)[::-1])
    powers = np.arange(float(shape_of(c)[0]))
    turned = np.exp(-1j * at_angles[..., None] * powers)
    delay = np.real((turned @ (c * powers)) / (turned @ c)) - (shape_of(a)[0] - 1)
    return at_angles * (fs / (2.0 * np.pi)), delay
