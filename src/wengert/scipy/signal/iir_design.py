"""IIR filter design from analog prototypes: butter, cheby1, cheby2.

    butter cheby1 cheby2                       coefficients, or zeros, poles and gain
    lp2lp_zpk lp2hp_zpk lp2bp_zpk lp2bs_zpk    frequency transformations of a prototype
    bilinear_zpk                               bilinear transform, from analog to digital

The prototypes are constants, computed by SciPy.  The transformations are differentiable with
respect to the frequencies, so that a cutoff can be optimized through `lfilter` or `freqz`:
A. V. Oppenheim, R. W. Schafer, Discrete-Time Signal Processing, chapter 7.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, at, user_line

from ..dispatch import counterpart, floating

__all__ = [
    "bilinear_zpk",
    "butter",
    "cheby1",
    "cheby2",
    "lp2bp_zpk",
    "lp2bs_zpk",
    "lp2hp_zpk",
    "lp2lp_zpk",
]


def _relative_degree(z: Any, p: Any) -> int:
    """The number of poles minus the number of zeros."""
    degree = int(shape_of(p)[0]) - int(shape_of(z)[0])
    if degree < 0:
        raise ArgumentError(
            f"a filter with {shape_of(z)[0]} zeros and {shape_of(p)[0]} poles: it is improper. "
            f"Give at least as many poles as zeros{at(user_line())}."
        )
    return degree


def _roots(x: Any) -> Any:
    return np.reshape(floating(as_array(x)), (-1,))


def _zeros_and_poles(z: Any, p: Any) -> tuple[Any, Any]:
    """Zeros and poles as 1-dimensional arrays of their common dtype.

    SciPy casts them too; of complex square roots, the sign of an imaginary part 0 selects the
    branch, and so the order of the transformed roots.
    """
    z, p = _roots(z), _roots(p)
    dtype = np.result_type(dtype_of(z), dtype_of(p))
    return tuple(x if dtype_of(x) == dtype else x.astype(dtype) for x in (z, p))


def _gain_ratio(z: Any, p: Any) -> Any:
    """The factor of the gain in transformations that replace s by 1 / s."""
    return np.real(np.prod(-z) / np.prod(-p))


@counterpart(scipy.signal.lp2lp_zpk)
def lp2lp_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0) -> Any:
    """Change the cutoff of an analog low-pass filter, as ``scipy.signal.lp2lp_zpk``."""
    z, p = _zeros_and_poles(z, p)
    return wo * z, wo * p, k * wo ** _relative_degree(z, p)


@counterpart(scipy.signal.lp2hp_zpk)
def lp2hp_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0) -> Any:
    """Transform an analog low-pass filter to a high-pass one, as ``scipy.signal.lp2hp_zpk``."""
    z, p = _zeros_and_poles(z, p)
    zeros = np.concatenate([wo / z, np.zeros(_relative_degree(z, p))])
    return zeros, wo / p, k * _gain_ratio(z, p)


def _split_to_band(x: Any, wo: Any) -> Any:
    """Replace each root x by the two roots s of s**2 - 2 x s + wo**2."""
    x = x.astype(complex)  # before squaring, as in SciPy: signs of zero select the branch of sqrt
    root = np.sqrt(x * x - wo * wo)
    return np.concatenate([x + root, x - root])


@counterpart(scipy.signal.lp2bp_zpk)
def lp2bp_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0, bw: Any = 1.0) -> Any:
    """Transform an analog low-pass filter to a band-pass one, as ``scipy.signal.lp2bp_zpk``."""
    z, p = _zeros_and_poles(z, p)
    degree = _relative_degree(z, p)
    zeros = np.concatenate([_split_to_band(z * (0.5 * bw), wo), np.zeros(degree)])
    return zeros, _split_to_band(p * (0.5 * bw), wo), k * bw**degree


@counterpart(scipy.signal.lp2bs_zpk)
def lp2bs_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0, bw: Any = 1.0) -> Any:
    """Transform an analog low-pass filter to a band-stop one, as ``scipy.signal.lp2bs_zpk``."""
    z, p = _zeros_and_poles(z, p)
    ones = np.ones(_relative_degree(z, p))
    zeros = np.concatenate([_split_to_band(0.5 * bw / z, wo), 1j * wo * ones, -1j * wo * ones])
    return zeros, _split_to_band(0.5 * bw / p, wo), k * _gain_ratio(z, p)


@counterpart(scipy.signal.bilinear_zpk)
def bilinear_zpk(z: Any, p: Any, k: Any, fs: Any) -> Any:
    """Transform an analog filter to a digital one, as ``scipy.signal.bilinear_zpk``."""
    z, p = _zeros_and_poles(z, p)
    fs2 = 2.0 * fs
    zeros = np.concatenate([(fs2 + z) / (fs2 - z), -np.ones(_relative_degree(z, p))])
    gain = np.real(np.prod(fs2 - z) / np.prod(fs2 - p))
    return zeros, (fs2 + p) / (fs2 - p), k * gain


_LOW = ("low", "lowpass", "lp", "l")
_HIGH = ("high", "highpass", "hp", "h")
_BAND = ("band", "bandpass", "pass", "bp")
_STOP = ("stop", "bandstop", "bands", "bs")


def _design(
    name: str, prototype: Any, Wn: Any, btype: str, analog: bool, output: str, fs: Any
) -> Any:
    """Transform a low-pass prototype to the frequencies Wn, and return it in the output form."""
    if output not in ("ba", "zpk"):
        raise ArgumentError(
            f"{name} of tensors with output={output!r}: the output must be 'ba' or 'zpk'. 'sos' is "
            f"not supported, as pairing poles and zeros depends on their values{at(user_line())}."
        )
    kind = btype.lower()
    is_band = kind in (*_BAND, *_STOP)
    Wn = floating(as_array(Wn))
    shapes = ((2,),) if is_band else ((), (1,))
    if kind not in (*_LOW, *_HIGH, *_BAND, *_STOP) or shape_of(Wn) not in shapes:
        raise ArgumentError(
            f"{name} with btype={btype!r} and Wn of shape {shape_of(Wn)}: 'lowpass' and 'highpass' "
            f"need one frequency, 'bandpass' and 'bandstop' need two{at(user_line())}."
        )
    if fs is not None:
        Wn = 2.0 * Wn / fs
    warped = Wn if analog else 4.0 * np.tan(0.5 * np.pi * Wn)
    z, p, k = prototype
    if is_band:
        low, high = warped[0], warped[1]
        transform = lp2bp_zpk if kind in _BAND else lp2bs_zpk
        z, p, k = transform(z, p, k, np.sqrt(low * high), high - low)
    else:
        cutoff = np.reshape(warped, ())
        z, p, k = (lp2lp_zpk if kind in _LOW else lp2hp_zpk)(z, p, k, cutoff)
    if not analog:
        z, p, k = bilinear_zpk(z, p, k, 2.0)
    if output == "zpk":
        return z, p, k
    return k * np.real(_poly(z)), np.real(_poly(p))


def _poly(roots: Any) -> Any:
    """The coefficients of the monic polynomial with these roots, highest first."""
    c: Any = np.ones(1)
    for i in range(int(shape_of(roots)[0])):
        c = np.concatenate([c, np.zeros(1)]) - roots[i] * np.concatenate([np.zeros(1), c])
    return c


@counterpart(scipy.signal.butter)
def butter(
    N: int, Wn: Any, btype: str = "low", analog: bool = False, output: str = "ba", fs: Any = None
) -> Any:
    """Design a Butterworth filter, as ``scipy.signal.butter``.

    Parameters
    ----------
    N : int
        The order.
    Wn : float or Tensor
        The cutoff frequency, or the two of a band, as fractions of the Nyquist frequency; with
        `fs`, in the same unit as `fs`. Angular frequencies for an analog filter.
    btype : {"lowpass", "highpass", "bandpass", "bandstop"}
        SciPy's abbreviations are accepted too.
    analog : bool, default False
        Whether to return an analog filter.
    output : {"ba", "zpk"}
        Coefficients, or zeros, poles and gain.
    fs : float or Tensor, optional
        The sampling frequency.

    Returns
    -------
    b, a, or zeros, poles, gain

    Raises
    ------
    ArgumentError
        `output` is not supported, or `Wn` has the wrong number of frequencies for `btype`.

    Notes
    -----
    Differentiable with respect to `Wn` and `fs`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import butter
    >>> gain = lambda w: np.sum(butter(2, w)[0]) / np.sum(butter(2, w)[1])  # at frequency 0
    >>> bool(abs(wg.grad(gain)(0.3)) < 1e-10)
    True
    """
    return _design("butter", scipy.signal.buttap(N), Wn, btype, analog, output, fs)


@counterpart(scipy.signal.cheby1)
def cheby1(
    N: int,
    rp: float,
    Wn: Any,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    fs: Any = None,
) -> Any:
    """Design a Chebyshev type I filter, as ``scipy.signal.cheby1``.

    Parameters
    ----------
    N : int
        The order.
    rp : float
        The passband ripple in decibels; not differentiable.
    Wn, btype, analog, output, fs
        See `butter`.

    Returns
    -------
    b, a, or zeros, poles, gain

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import cheby1
    >>> wg.jacobian(lambda w: cheby1(2, 0.5, w)[0])(0.3).shape
    (3,)
    """
    return _design("cheby1", scipy.signal.cheb1ap(N, rp), Wn, btype, analog, output, fs)


@counterpart(scipy.signal.cheby2)
def cheby2(
    N: int,
    rs: float,
    Wn: Any,
    btype: str = "low",
    analog: bool = False,
    output: str = "ba",
    fs: Any = None,
) -> Any:
    """Design a Chebyshev type II filter, as ``scipy.signal.cheby2``.

    Parameters
    ----------
    N : int
        The order.
    rs : float
        The stopband attenuation in decibels; not differentiable.
    Wn, btype, analog, output, fs
        See `butter`.

    Returns
    -------
    b, a, or zeros, poles, gain

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import cheby2
    >>> wg.jacobian(lambda w: cheby2(2, 20.0, w)[1])(0.3).shape
    (3,)
    """
    return _design("cheby2", scipy.signal.cheb2ap(N, rs), Wn, btype, analog, output, fs)
