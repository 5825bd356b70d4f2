"""IIR filter design from an analog prototype: butter, cheby1, cheby2.

    butter cheby1 cheby2               coefficients, or zeros, poles and gain
    lp2lp_zpk lp2hp_zpk lp2bp_zpk lp2bs_zpk    a prototype brought to a frequency
    bilinear_zpk                       an analog filter made digital

The prototypes are constants: SciPy's.  What moves them to frequencies is differentiable in these:
A. V. Oppenheim, R. W. Schafer, Discrete-Time Signal Processing, chapter 7.  So a cutoff can be
fitted, through `lfilter` or `freqz`.
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


def _degree(z: Any, p: Any) -> int:
    """How many more poles than zeros there are."""
    degree = int(shape_of(p)[0]) - int(shape_of(z)[0])
    if degree < 0:
        raise ArgumentError(
            f"a filter of {shape_of(z)[0]} zeros and {shape_of(p)[0]} poles is improper: give as "
            f"many poles as zeros at least{at(user_line())}."
        )
    return degree


def _line(x: Any) -> Any:
    return np.reshape(floating(as_array(x)), (-1,))


def _lines(z: Any, p: Any) -> tuple[Any, Any]:
    """Zeros and poles of one dtype: as in SciPy, so that signs of zero order the roots."""
    z, p = _line(z), _line(p)
    dtype = np.result_type(dtype_of(z), dtype_of(p))
    return tuple(x if dtype_of(x) == dtype else x.astype(dtype) for x in (z, p))


def _gain(z: Any, p: Any) -> Any:
    return np.real(np.prod(-z) / np.prod(-p))


@counterpart(scipy.signal.lp2lp_zpk)
def lp2lp_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0) -> Any:
    """A low-pass prototype brought to another frequency, as ``scipy.signal.lp2lp_zpk``."""
    z, p = _lines(z, p)
    return wo * z, wo * p, k * wo ** _degree(z, p)


@counterpart(scipy.signal.lp2hp_zpk)
def lp2hp_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0) -> Any:
    """A low-pass prototype made a high-pass filter, as ``scipy.signal.lp2hp_zpk``."""
    z, p = _lines(z, p)
    zeros = np.concatenate([wo / z, np.zeros(_degree(z, p))])
    return zeros, wo / p, k * _gain(z, p)


def _split(x: Any, wo: Any) -> Any:
    """Each root as two, about wo and -wo."""
    x = x.astype(complex)  # its square has the sign of zero that orders the roots as in SciPy
    root = np.sqrt(x * x - wo * wo)
    return np.concatenate([x + root, x - root])


@counterpart(scipy.signal.lp2bp_zpk)
def lp2bp_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0, bw: Any = 1.0) -> Any:
    """A low-pass prototype made a band-pass filter, as ``scipy.signal.lp2bp_zpk``."""
    z, p = _lines(z, p)
    degree = _degree(z, p)
    zeros = np.concatenate([_split(z * (0.5 * bw), wo), np.zeros(degree)])
    return zeros, _split(p * (0.5 * bw), wo), k * bw**degree


@counterpart(scipy.signal.lp2bs_zpk)
def lp2bs_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0, bw: Any = 1.0) -> Any:
    """A low-pass prototype made a band-stop filter, as ``scipy.signal.lp2bs_zpk``."""
    z, p = _lines(z, p)
    ones = np.ones(_degree(z, p))
    zeros = np.concatenate([_split(0.5 * bw / z, wo), 1j * wo * ones, -1j * wo * ones])
    return zeros, _split(0.5 * bw / p, wo), k * _gain(z, p)


@counterpart(scipy.signal.bilinear_zpk)
def bilinear_zpk(z: Any, p: Any, k: Any, fs: Any) -> Any:
    """An analog filter made digital by Tustin's method, as ``scipy.signal.bilinear_zpk``."""
    z, p = _lines(z, p)
    twice = 2.0 * fs
    zeros = np.concatenate([(twice + z) / (twice - z), -np.ones(_degree(z, p))])
    gain = np.real(np.prod(twice - z) / np.prod(twice - p))
    return zeros, (twice + p) / (twice - p), k * gain


_LOW = ("low", "lowpass", "lp", "l")
_HIGH = ("high", "highpass", "hp", "h")
_BAND = ("band", "bandpass", "pass", "bp")
_STOP = ("stop", "bandstop", "bands", "bs")


def _designed(
    name: str, prototype: Any, Wn: Any, btype: str, analog: bool, output: str, fs: Any
) -> Any:
    """A prototype brought to frequencies, as coefficients or as zeros, poles and gain."""
    if output not in ("ba", "zpk"):
        raise ArgumentError(
            f"{name} of tensors with output={output!r}: it is 'ba' or 'zpk'. Sections pair poles "
            f"and zeros by their values{at(user_line())}."
        )
    kind = btype.lower()
    pair = kind in (*_BAND, *_STOP)
    Wn = floating(as_array(Wn))
    shapes = ((2,),) if pair else ((), (1,))
    if kind not in (*_LOW, *_HIGH, *_BAND, *_STOP) or shape_of(Wn) not in shapes:
        raise ArgumentError(
            f"{name} with btype={btype!r} and frequencies of shape {shape_of(Wn)}: a low-pass or "
            f"high-pass filter has one, the others have two{at(user_line())}."
        )
    if fs is not None:
        Wn = 2.0 * Wn / fs
    warped = Wn if analog else 4.0 * np.tan(0.5 * np.pi * Wn)
    z, p, k = prototype
    if pair:
        first, second = warped[0], warped[1]
        center, width = np.sqrt(first * second), second - first
        change = lp2bp_zpk if kind in _BAND else lp2bs_zpk
        z, p, k = change(z, p, k, center, width)
    else:
        edge = np.reshape(warped, ())
        z, p, k = (lp2lp_zpk if kind in _LOW else lp2hp_zpk)(z, p, k, edge)
    if not analog:
        z, p, k = bilinear_zpk(z, p, k, 2.0)
    if output == "zpk":
        return z, p, k
    return k * np.real(_expanded(z)), np.real(_expanded(p))


def _expanded(roots: Any) -> Any:
    """The coefficients of a polynomial with these roots, the highest first."""
    total: Any = np.ones(1)
    for i in range(int(shape_of(roots)[0])):
        longer = np.concatenate([total, np.zeros(1)])
        total = longer - roots[i] * np.concatenate([np.zeros(1), total])
    return total


@counterpart(scipy.signal.butter)
def butter(
    N: int, Wn: Any, btype: str = "low", analog: bool = False, output: str = "ba", fs: Any = None
) -> Any:
    """Butterworth's filter, as ``scipy.signal.butter``; differentiable in `Wn` and `fs`.

    Parameters
    ----------
    N : int
        The order.
    Wn : float or Tensor
        The cutoff, or both of a band, as shares of half the rate; with `fs` in its unit.
    btype : str
        "lowpass", "highpass", "bandpass" or "bandstop".
    analog : bool
    output : str
        "ba" or "zpk".
    fs : float or Tensor, optional

    Returns
    -------
    b, a, or zeros, poles, gain

    Raises
    ------
    ArgumentError
        The output is "sos", or there are not as many frequencies as the kind needs.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import butter
    >>> gain = lambda w: np.sum(butter(2, w)[0]) / np.sum(butter(2, w)[1])  # at frequency 0
    >>> bool(abs(wg.grad(gain)(0.3)) < 1e-10)
    True
    """
    return _designed("butter", scipy.signal.buttap(N), Wn, btype, analog, output, fs)


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
    """Chebyshev's filter of type I, as ``scipy.signal.cheby1``; differentiable in `Wn` and `fs`.

    Parameters
    ----------
    N : int
    rp : float
        The ripple in decibels, a plain number.
    Wn, btype, analog, output, fs
        As of `butter`.

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
    return _designed("cheby1", scipy.signal.cheb1ap(N, rp), Wn, btype, analog, output, fs)


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
    """Chebyshev's filter of type II, as ``scipy.signal.cheby2``; differentiable in `Wn` and `fs`.

    Parameters
    ----------
    N : int
    rs : float
        The attenuation in decibels, a plain number.
    Wn, btype, analog, output, fs
        As of `butter`.

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
    return _designed("cheby2", scipy.signal.cheb2ap(N, rs), Wn, btype, analog, output, fs)
