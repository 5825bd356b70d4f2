"""The fast Hankel transform of logarithmically spaced samples.

    fht, ifht     the transform and its inverse
    fhtoffset     an offset that avoids ringing

A multiplication in Fourier space (A. J. S. Hamilton, "Uncorrelated modes of the non-linear power
spectrum", MNRAS 312 (2000), 257-284, appendix B).  It is linear in the samples, and differentiable
with respect to step, order, offset and bias by derivatives of the gamma function.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.fft
import scipy.special

from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.ops.elementwise.selection import where
from wengert.errors import ArgumentError, at, user_line

from ..dispatch import counterpart, floating, holds_tensors, known_length

__all__ = ["fht", "fhtoffset", "ifht"]

_LOG_2 = float(np.log(2.0))


def _coefficients(n: int, dln: Any, mu: Any, offset: Any, bias: Any, inverse: bool) -> Any:
    """The coefficients that multiply the Fourier transform."""
    parameters = [dln, mu, offset, bias]
    y = np.linspace(0.0, np.pi * (n // 2) / n, n // 2 + 1) / dln
    above, below = (mu + 1.0 + bias) / 2.0, (mu + 1.0 - bias) / 2.0
    high = scipy.special.loggamma(above + 1j * y)
    low = scipy.special.loggamma(below + 1j * y)
    size = np.real(high) - np.real(low) + _LOG_2 * bias
    angle = np.imag(high) + np.imag(low) + 2.0 * (_LOG_2 - offset) * y
    if n % 2 == 0:
        real = np.arange(n // 2 + 1) == n // 2
        u = np.exp(size) * (np.cos(angle) + 1j * where(real, 0.0, np.sin(angle)))
    else:
        u = np.exp(size) * (np.cos(angle) + 1j * np.sin(angle))
    first = value_of(u)
    if is_traced(u) or np.isfinite(first[0]):
        return u
    return _coefficients_at_pole(u, above, below, bias, inverse, holds_tensors(parameters))


def _coefficients_at_pole(
    u: Any, above: Any, below: Any, bias: Any, inverse: bool, has_tensors: bool
) -> Any:
    """The coefficients where the gamma function has a pole, with SciPy's convention."""
    if has_tensors:
        raise ArgumentError(
            "fht with an order and a bias at a pole of the gamma function: it is not "
            "differentiable with respect to them. Change the bias, or pass plain numbers"
            f"{at(user_line())}."
        )
    first = 2.0**bias * scipy.special.poch(below, above - below)
    if (np.isinf(first) and not inverse) or (first == 0 and inverse):
        message = "singular inverse transform" if inverse else "singular transform"
        warnings.warn(f"{message}; consider changing the bias", stacklevel=5)
        first = np.inf if inverse else 0.0
    return np.concatenate([[first], u[1:]])


def _transform(a: Any, dln: Any, mu: Any, offset: Any, bias: Any, inverse: bool) -> Any:
    a = floating(a)
    n = known_length(a.shape[-1], "fht")
    sign = 1.0 if inverse else -1.0
    indices = np.arange(n) - (n - 1) / 2
    biased = isinstance(bias, Handle) or bias != 0
    if biased:
        shift = offset if inverse else 0.0
        a = a * np.exp(sign * bias * (indices * dln + shift))
    u = _coefficients(n, dln, mu, offset, bias, inverse)
    spectrum = np.fft.rfft(a)
    spectrum = spectrum / np.conjugate(u) if inverse else spectrum * u
    out = np.fft.irfft(spectrum, n)[..., ::-1]
    if biased:
        shift = 0.0 if inverse else offset
        out = out * np.exp(sign * bias * (indices * dln + shift))
    return out


@counterpart(scipy.fft.fht)
def fht(a: Any, dln: Any, mu: Any, offset: Any = 0.0, bias: Any = 0.0) -> Any:
    """The fast Hankel transform, as ``scipy.fft.fht``.

    Parameters
    ----------
    a : array_like of shape (..., n)
        Real, logarithmically spaced samples; the length must be static.
    dln : float
        The step of the logarithm.
    mu : float
        The order of the Bessel function.
    offset, bias : float, optional
        The offset of the output samples, and the exponent of the power-law bias.

    Returns
    -------
    Tensor of shape (..., n)

    Raises
    ------
    ArgumentError
        A parameter is a tensor, at a pole of the gamma function.

    Notes
    -----
    Differentiable with respect to all arguments. *Cost.* O(n log n). *Source.* A. J. S. Hamilton,
    MNRAS 312 (2000), 257-284.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> a = np.exp(-np.linspace(-2.0, 2.0, 8) ** 2)
    >>> slope = wg.grad(lambda a: wg.scipy.fft.fht(a, 0.5, 0.0)[3])(a)
    >>> unit = np.eye(8)[2]
    >>> bool(np.isclose(slope[2], wg.scipy.fft.fht(unit, 0.5, 0.0)[3]))
    True
    """
    return _transform(a, dln, mu, offset, bias, False)


@counterpart(scipy.fft.ifht)
def ifht(A: Any, dln: Any, mu: Any, offset: Any = 0.0, bias: Any = 0.0) -> Any:
    """The inverse of `fht`, as ``scipy.fft.ifht``; parameters and errors are those of `fht`."""
    return _transform(A, dln, mu, offset, bias, True)


@counterpart(scipy.fft.fhtoffset)
def fhtoffset(dln: Any, mu: Any, initial: Any = 0.0, bias: Any = 0.0) -> Any:
    """The offset nearest to `initial` without ringing, as ``scipy.fft.fhtoffset``.

    Parameters
    ----------
    dln, mu, initial, bias : float
        As for `fht`. The integer in the formula, which depends on them, has derivative 0.
    """
    y = np.pi / (2.0 * dln)
    above, below = (mu + 1.0 + bias) / 2.0, (mu + 1.0 - bias) / 2.0
    phases = [np.imag(scipy.special.loggamma(x + 1j * y)) for x in (above, below)]
    arg = (_LOG_2 - initial) / dln + (phases[0] + phases[1]) / np.pi
    return initial + (arg - np.round(arg)) * dln
