"""Waveforms, and the vector strength of events.

    chirp sawtooth square gausspulse     differentiable with respect to all real parameters
    vectorstrength                       synchronization of events with a period

At a discontinuity, the derivative is that of the piece that is evaluated (docs/conventions.md,
5.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from wengert._engine.core.handle import value_of
from wengert._engine.ops.elementwise.selection import where as choose

from ...errors import ArgumentError, at, user_line
from ..dispatch import counterpart, floating
from ..special import exprel
from ..special.elementary import log1prel_of

__all__ = ["chirp", "gausspulse", "sawtooth", "square", "vectorstrength"]

_TWO_PI = 2.0 * np.pi


@counterpart(scipy.signal.chirp)
def chirp(
    t: Any,
    f0: Any,
    t1: Any,
    f1: Any,
    method: str = "linear",
    phi: Any = 0,
    vertex_zero: bool = True,
    *,
    complex: bool = False,
) -> Any:
    """Frequency-swept cosine, as ``scipy.signal.chirp``.

    Parameters
    ----------
    t : array or Tensor
        Times.
    f0, t1, f1 : float or Tensor
        The frequency at time 0, a time, and the frequency at that time.
    method : {"linear", "quadratic", "logarithmic", "hyperbolic"}
    phi : float or Tensor
        Phase offset in degrees.
    vertex_zero : bool
        For "quadratic": whether the vertex of the frequency parabola is at time 0 or at t1.
    complex : bool
        Whether to return exp(i phase) instead of its real part.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ArgumentError
        The method is unknown.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import chirp
    >>> float(wg.grad(lambda f: chirp(0.25, f, 1.0, f))(1.0).round(6))  # d/df cos(2 pi f t)
    -1.570796
    """
    t = floating(t)
    if method in ("linear", "lin", "li"):
        phase = _TWO_PI * (f0 * t + 0.5 * ((f1 - f0) / t1) * t * t)
    elif method in ("quadratic", "quad", "q"):
        rate = (f1 - f0) / t1**2
        if vertex_zero:
            phase = _TWO_PI * (f0 * t + rate * t**3 / 3.0)
        else:
            phase = _TWO_PI * (f1 * t + rate * ((t1 - t) ** 3 - t1**3) / 3.0)
    elif method in ("logarithmic", "log", "lo"):
        growth = np.log(f1 / f0) * (t / t1)
        phase = _TWO_PI * f0 * t * exprel(growth)  # no 0 / 0 where f0 == f1
    elif method in ("hyperbolic", "hyp"):
        x = (f0 - f1) / (f1 * t1) * t
        before_pole = value_of(x) > -1.0  # the frequency is infinite at x = -1
        past = choose(before_pole, 1.0, x)
        share = choose(
            before_pole,
            log1prel_of(choose(before_pole, x, 0.0), n=0),
            np.log(np.abs(1.0 + past)) / past,
        )
        phase = _TWO_PI * f0 * t * share
    else:
        raise ArgumentError(
            f"chirp with method={method!r}: the method must be 'linear', 'quadratic', "
            f"'logarithmic' or 'hyperbolic'{at(user_line())}."
        )
    phase = phase + phi * (np.pi / 180.0)
    return np.exp(1j * phase) if complex else np.cos(phase)


@counterpart(scipy.signal.sawtooth)
def sawtooth(t: Any, width: Any = 1) -> Any:
    """Sawtooth or triangle wave of period 2 pi, as ``scipy.signal.sawtooth``.

    Parameters
    ----------
    t : array or Tensor
        Times; one period is 2 pi.
    width : float or Tensor
        The fraction of the period in which the wave rises from -1 to 1; it falls in the rest.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.scipy.signal import sawtooth
    >>> float(wg.grad(sawtooth)(0.5).round(6))  # 1 / pi
    0.31831
    """
    t = floating(t)
    width = width + 0.0 * t
    phase = np.mod(t, _TWO_PI)
    rising = value_of(phase) < value_of(width) * _TWO_PI
    up = phase / (np.pi * choose(rising, width, 1.0)) - 1.0
    fall = choose(rising, 0.5, 1.0 - width)
    down = (np.pi * (choose(rising, 0.5, width) + 1.0) - phase) / (np.pi * fall)
    valid = np.logical_and(value_of(width) >= 0, value_of(width) <= 1)
    return choose(valid, choose(rising, up, down), np.nan)


@counterpart(scipy.signal.square)
def square(t: Any, duty: Any = 0.5) -> Any:
    """Square wave of period 2 pi, as ``scipy.signal.square``.

    Parameters
    ----------
    t : array or Tensor
        Times; one period is 2 pi.
    duty : float or Tensor
        The fraction of the period in which the wave is 1; it is -1 in the rest.

    Returns
    -------
    array or Tensor
        Piecewise constant: all derivatives are 0.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.scipy.signal import square
    >>> float(wg.grad(square)(0.5))
    0.0
    """
    t = floating(t)
    duty = value_of(duty) + 0.0 * value_of(t)
    high = np.mod(value_of(t), _TWO_PI) < duty * _TWO_PI
    valid = np.logical_and(duty >= 0, duty <= 1)
    return choose(valid, choose(high, 1.0, -1.0), np.nan) + 0.0 * t


@counterpart(scipy.signal.gausspulse)
def gausspulse(
    t: Any,
    fc: Any = 1000,
    bw: Any = 0.5,
    bwr: Any = -6,
    tpr: Any = -60,
    retquad: bool = False,
    retenv: bool = False,
) -> Any:
    """Gaussian modulated sinusoid, as ``scipy.signal.gausspulse``.

    Parameters
    ----------
    t : array or Tensor
        Times.
    fc, bw, bwr : float or Tensor
        The center frequency, the bandwidth as a fraction of it, and the level in decibels at which
        the bandwidth is measured.
    tpr
        Ignored: a parameter of SciPy's cutoff time, which is not supported for tensors.
    retquad, retenv : bool
        Whether to return the quadrature signal, and the envelope, too.

    Returns
    -------
    array or Tensor, or a tuple of them

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.scipy.signal import gausspulse
    >>> abs(float(wg.grad(lambda t: gausspulse(t, 1.0))(0.0)))
    0.0
    """
    t = floating(t)
    a = -((np.pi * fc * bw) ** 2) / (4.0 * np.log(10.0 ** (bwr / 20.0)))
    envelope = np.exp(-a * t * t)
    signals = [envelope * np.cos(_TWO_PI * fc * t)]
    if retquad:
        signals.append(envelope * np.sin(_TWO_PI * fc * t))
    if retenv:
        signals.append(envelope)
    return signals[0] if len(signals) == 1 else tuple(signals)


@counterpart(scipy.signal.vectorstrength)
def vectorstrength(events: Any, period: Any) -> Any:
    """Strength and phase of the synchronization of events with a period.

    As ``scipy.signal.vectorstrength``.

    Parameters
    ----------
    events : array or Tensor
        Times, of shape (n,).
    period : float, array or Tensor
        One period, or a one-dimensional array of them.

    Returns
    -------
    strength, phase : array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import vectorstrength
    >>> strength = lambda p: vectorstrength(np.array([0.0, 1.0, 2.0]), p)[0]
    >>> float(abs(wg.grad(strength)(1.0)) < 1e-12)
    1.0
    """
    events, period = floating(events), floating(period)
    angles = _TWO_PI * events / (period[..., None] if period.ndim else period)
    sin, cos = np.mean(np.sin(angles), axis=-1), np.mean(np.cos(angles), axis=-1)
    return np.hypot(sin, cos), np.arctan2(sin, cos)
