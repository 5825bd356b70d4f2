"""The Fourier transforms of scipy.fft, and the fast Hankel transform.

    fft ifft rfft irfft hfft ihfft ...    those of `wengert.numpy.fft`, with SciPy's arguments
    fht, ifht     the transform of logarithmically spaced samples and its inverse
    fhtoffset     an offset that avoids ringing

Plain arrays are passed to SciPy; tensors use the same operations as NumPy's transforms.
`overwrite_x`, `workers` and `plan` are ignored for tensors.

The Hankel transform is a multiplication in Fourier space (A. J. S. Hamilton, "Uncorrelated modes of
the non-linear power spectrum", MNRAS 312 (2000), 257-284, appendix B).  It is linear in the
samples, and differentiable with respect to step, order, offset and bias by derivatives of the gamma
function.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.fft
import scipy.special

from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.ops import casts
from wengert._engine.ops.elementwise.selection import where
from wengert._engine.ops.fft import SWAPPED
from wengert._engine.tensor.numpy_dispatch import as_tensor
from wengert.errors import ArgumentError, at, user_line
from wengert.numpy import fft as numpy_fft

from ..dispatch import counterpart, floating, holds_tensors, known_length

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "fht", "fhtoffset", "hfft", "hfft2", "hfftn",
    "ifft", "ifft2", "ifftn", "ifftshift", "ifht", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2",
    "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

fftshift, ifftshift = numpy_fft.fftshift, numpy_fft.ifftshift
fftfreq, rfftfreq = numpy_fft.fftfreq, numpy_fft.rfftfreq


def _inverse_norm(norm: Any) -> str:
    known = "backward" if norm is None else norm
    if known not in SWAPPED:
        raise ArgumentError(
            f"a Fourier transform with norm={norm!r}: the norm must be 'backward', 'ortho' or "
            f"'forward'{at(user_line())}."
        )
    return SWAPPED[known]


def _half_to_single(x: Any) -> Any:
    """Convert half to single precision, as SciPy does."""
    return casts.astype(x, np.float32) if x.dtype == np.float16 else x


def _hfftn(x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    return numpy_fft.irfftn(np.conjugate(as_tensor(x)), s, axes, _inverse_norm(norm))


def _ihfftn(x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    return np.conjugate(numpy_fft.rfftn(as_tensor(x), s, axes, _inverse_norm(norm)))


def _along_one_axis(name: str) -> Any:
    """A transform along one axis."""
    run = getattr(numpy_fft, name)

    def transform(
        x: Any,
        n: Any = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Any:
        return run(_half_to_single(as_tensor(x)), n, axis, norm)

    return _as_scipy_function(
        transform, name, "one axis", "n : int, optional", "axis : int, default -1"
    )


def _along_axes(name: str, run: Any, default: Any) -> Any:
    """A transform along several axes."""

    def transform(
        x: Any,
        s: Any = None,
        axes: Any = default,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Any:
        lengths = [s] if s is not None and np.ndim(s) == 0 else s
        requested = [axes] if axes is not None and np.ndim(axes) == 0 else axes
        return run(_half_to_single(as_tensor(x)), lengths, requested, norm)

    where = "s : sequence of int, optional", "axes : sequence of int, optional"
    return _as_scipy_function(transform, name, "several axes", *where)


def _as_scipy_function(transform: Any, name: str, where: str, sizes: str, axes: str) -> Any:
    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"""Fourier transform along {where}, as ``scipy.fft.{name}``.

    Parameters
    ----------
    x : array_like
    {sizes}
        Lengths to which `x` is cropped or zero-padded.
    {axes}
    norm : {{"backward", "ortho", "forward"}}, optional
    overwrite_x, workers, plan
        Ignored for tensors.
    """
    return counterpart(getattr(scipy.fft, name))(transform)


fft, ifft, rfft, irfft, hfft, ihfft = map(_along_one_axis, "fft ifft rfft irfft hfft ihfft".split())
fftn, ifftn = (_along_axes(name, getattr(numpy_fft, name), None) for name in ("fftn", "ifftn"))
rfftn, irfftn = (_along_axes(name, getattr(numpy_fft, name), None) for name in ("rfftn", "irfftn"))
fft2, ifft2 = (_along_axes(name, getattr(numpy_fft, name), (-2, -1)) for name in ("fft2", "ifft2"))
rfft2, irfft2 = (
    _along_axes(name, getattr(numpy_fft, name), (-2, -1)) for name in ("rfft2", "irfft2")
)
hfftn, ihfftn = _along_axes("hfftn", _hfftn, None), _along_axes("ihfftn", _ihfftn, None)
hfft2, ihfft2 = _along_axes("hfft2", _hfftn, (-2, -1)), _along_axes("ihfft2", _ihfftn, (-2, -1))


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
