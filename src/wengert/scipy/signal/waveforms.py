"""Waveforms, differentiable in time, frequencies and other parameters; vector strength.

    chirp sawtooth square gausspulse     as in SciPy, differentiable in all that is real
    vectorstrength                       how well events keep to a period

At a jump the derivative is that of the piece that is evaluated (docs/conventions.md, 5.2).
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
from ..special.relative_quotients import log1prel_of

__all__ = ["chirp", "gausspulse", "sawtooth", "square", "vectorstrength"]

_TURN = 2.0 * np.pi


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
    """A cosine of rising frequency, as ``scipy.signal.chirp``.

    Parameters
    ----------
    t : array or Tensor
        Times.
    f0, t1, f1 : float or Tensor
        The frequency at time 0, another time, and the frequency there.
    method : str
        "linear", "quadratic", "logarithmic" or "hyperbolic".
    phi : float or Tensor
        A phase in degrees.
    vertex_zero : bool
        Of "quadratic": whether the frequency is flat at time 0 or at t1.
    complex : bool
        Whether exp(i phase) is meant.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ArgumentError
        The method is none of these.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import chirp
    >>> float(wg.grad(lambda f: chirp(0.25, f, 1.0, f))(1.0).round(6))  # d/df cos(2 pi f t)
    -1.570796
    """
    t = floating(t)
    if method in ("linear", "lin", "li"):
        phase = _TURN * (f0 * t + 0.5 * ((f1 - f0) / t1) * t * t)
    elif method in ("quadratic", "quad", "q"):
        rate = (f1 - f0) / t1**2
        if vertex_zero:
            phase = _TURN * (f0 * t + rate * t**3 / 3.0)
        else:
            phase = _TURN * (f1 * t + rate * ((t1 - t) ** 3 - t1**3) / 3.0)
    elif method in ("logarithmic", "log", "lo"):
        growth = np.log(f1 / f0) * (t / t1)
        phase = _TURN * f0 * t * exprel(growth)  # smooth where both frequencies are equal
    elif method in ("hyperbolic", "hyp"):
        fall = (f0 - f1) / (f1 * t1) * t
        before = value_of(fall) > -1.0  # of the time at which the frequency is infinite
        rest = choose(before, 1.0, fall)
        past = np.log(np.abs(1.0 + rest)) / rest
        share = choose(before, log1prel_of(choose(before, fall, 0.0), n=0), past)
        phase = _TURN * f0 * t * share
    else:
        raise ArgumentError(
            f"chirp with method={method!r}: it is 'linear', 'quadratic', 'logarithmic' or "
            f"'hyperbolic'{at(user_line())}."
        )
    phase = phase + phi * (np.pi / 180.0)
    return np.exp(1j * phase) if complex else np.cos(phase)


@counterpart(scipy.signal.sawtooth)
def sawtooth(t: Any, width: Any = 1) -> Any:
    """A wave that rises for the share `width` of its period and falls for the rest, from -1 to 1.

    Parameters
    ----------
    t : array or Tensor
        Phases in radians.
    width : float or Tensor
        0 to 1.

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
    phase = np.mod(t, _TURN)
    rising = value_of(phase) < value_of(width) * _TURN
    up = phase / (np.pi * choose(rising, width, 1.0)) - 1.0
    rest = choose(rising, 0.5, 1.0 - width)
    down = (np.pi * (choose(rising, 0.5, width) + 1.0) - phase) / (np.pi * rest)
    valid = np.logical_and(value_of(width) >= 0, value_of(width) <= 1)
    return choose(valid, choose(rising, up, down), np.nan)


@counterpart(scipy.signal.square)
def square(t: Any, duty: Any = 0.5) -> Any:
    """A wave of 1 for the share `duty` of its period, and -1 for the rest: a step of both.

    Parameters
    ----------
    t : array or Tensor
        Phases in radians.
    duty : float or Tensor
        0 to 1.

    Returns
    -------
    array or Tensor
        Its derivative is 0.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.scipy.signal import square
    >>> float(wg.grad(square)(0.5))
    0.0
    """
    t = floating(t)
    share = value_of(duty) + 0.0 * value_of(t)
    high = np.mod(value_of(t), _TURN) < share * _TURN
    valid = np.logical_and(share >= 0, share <= 1)
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
    """A cosine in a Gaussian envelope, as ``scipy.signal.gausspulse``.

    Parameters
    ----------
    t : array or Tensor
        Times.
    fc, bw, bwr : float or Tensor
        The frequency, the width as a share of it, and at how many decibels that is measured.
    tpr
        Of SciPy's, for the cut-off time, which is not for tensors.
    retquad, retenv : bool
        Whether the sine, and the envelope, are returned too.

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
    found = [envelope * np.cos(_TURN * fc * t)]
    if retquad:
        found.append(envelope * np.sin(_TURN * fc * t))
    if retenv:
        found.append(envelope)
    return found[0] if len(found) == 1 else tuple(found)


@counterpart(scipy.signal.vectorstrength)
def vectorstrength(events: Any, period: Any) -> Any:
    """How well events keep to a period, and the phase they have in it, as SciPy's.

    Parameters
    ----------
    events : array or Tensor
        (n,), times.
    period : float, array or Tensor
        One, or several along a line.

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
    angles = _TURN * events / (period[..., None] if period.ndim else period)
    sin, cos = np.mean(np.sin(angles), axis=-1), np.mean(np.cos(angles), axis=-1)
    return np.hypot(sin, cos), np.arctan2(sin, cos)
