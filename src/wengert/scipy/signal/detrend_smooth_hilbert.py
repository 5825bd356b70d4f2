"""Detrending, the analytic signal; Savitzky-Golay, median and Wiener filters.

    detrend savgol_filter hilbert hilbert2
    medfilt medfilt2d  the median of the window around each element
    wiener             local mean plus the deviation from it, scaled by the estimated signal power

The first four are linear in the signal; the coefficients of savgol_filter are constants of SciPy.
Inputs of the others are padded with zeros, as in SciPy.  The derivative of a median is that of the
selected element (docs/conventions.md, 2.4).
"""

from __future__ import annotations

from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np
import scipy.signal

from wengert._engine.core.handle import shape_of, value_of
from wengert._engine.ops import casts
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.tensor.numpy_dispatch import as_tensor
from wengert.errors import ArgumentError, ShapeError, at, user_line
from wengert.numpy import fft
from wengert.numpy.padding import pad

from ..dispatch import counterpart, floating, known_length

__all__ = ["detrend", "hilbert", "hilbert2", "medfilt", "medfilt2d", "savgol_filter", "wiener"]


@counterpart(scipy.signal.detrend)
def detrend(
    data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False
) -> Any:
    """Subtract the mean or a linear trend along an axis, as ``scipy.signal.detrend``.

    Parameters
    ----------
    data : array_like
    axis : int, default -1
    type : {"linear", "constant"}
    bp : int or sequence of int
        Break points: a separate linear trend is fitted to each section between them.
    overwrite_data : bool
        Ignored for tensors.

    Notes
    -----
    Detrending is an orthogonal projection, hence its own transpose. *Cost.* O(n).
    """
    data = floating(data)
    if type in ("constant", "c"):
        return data - np.mean(data, axis=axis, keepdims=True)
    if type not in ("linear", "l"):
        raise ArgumentError(
            f"detrend with type={type!r}: the type must be 'linear' or 'constant'{at(user_line())}."
        )
    signals = np.moveaxis(data, axis, -1)
    n = known_length(signals.shape[-1], "detrend")
    breaks = sorted({0, n, *np.atleast_1d(np.asarray(bp)).tolist()})
    if breaks[-1] > n or breaks[0] < 0:
        raise ArgumentError(
            f"detrend of {n} samples with bp={bp}: break points must be between 0 and {n}"
            f"{at(user_line())}."
        )
    parts = []
    for start, stop in pairwise(breaks):
        section, count = signals[..., start:stop], stop - start
        ramp = np.stack([np.arange(1.0, count + 1) / count, np.ones(count)], axis=1)
        basis = np.linalg.qr(ramp)[0].astype(np.finfo(data.dtype).dtype)
        parts.append(section - (section @ basis) @ basis.T if count > 1 else 0.0 * section)
    return np.moveaxis(np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0], -1, axis)


@counterpart(scipy.signal.hilbert)
def hilbert(x: Any, N: int | None = None, axis: int = -1) -> Any:
    """The analytic signal, from a Hilbert transform, as ``scipy.signal.hilbert``.

    Parameters
    ----------
    x : array_like
        Real signals.
    N : int, optional
        The length of the Fourier transform; by default that of `x` along the axis.
    axis : int, default -1
    """
    x = _real("hilbert", x)
    n = known_length(x.shape[axis] if N is None else N, "hilbert")
    if n <= 0:
        raise ArgumentError(f"hilbert with N={n}: N must be positive{at(user_line())}.")
    factors = np.zeros(n)
    factors[0] = 1.0
    factors[1 : (n + 1) // 2] = 2.0
    if n % 2 == 0:
        factors[n // 2] = 1.0
    return fft.ifft(fft.fft(x, n, axis) * _along(factors, x, axis), axis=axis)


@counterpart(scipy.signal.hilbert2)
def hilbert2(x: Any, N: Any = None, axes: Any = (-2, -1)) -> Any:
    """The 2-dimensional analytic signal, as ``scipy.signal.hilbert2``."""
    x = _real("hilbert2", x)
    if x.ndim < 2 or len(axes) != 2 or axes[0] % x.ndim == axes[1] % x.ndim:
        raise ShapeError(
            f"hilbert2 of an array of shape {x.shape} with axes={axes}: give two different axes"
            f"{at(user_line())}."
        )
    lengths = [x.shape[k] for k in axes] if N is None else [N, N] if np.ndim(N) == 0 else list(N)
    lengths = [known_length(n, "hilbert2") for n in lengths]
    if len(lengths) != 2 or min(lengths) <= 0:
        raise ArgumentError(
            f"hilbert2 with N={N}: give one or two positive lengths{at(user_line())}."
        )
    y = fft.fft2(x, lengths, axes)
    for n, axis in zip(lengths, axes, strict=True):
        factors = np.zeros(n)
        factors[: (n + 1) // 2] = 2.0
        factors[0] = 1.0
        y = y * _along(factors, x, axis)
    return fft.ifft2(y, axes=axes)


def _real(name: str, x: Any) -> Any:
    x = floating(x)
    if x.dtype.kind == "c":
        raise ArgumentError(
            f"{name} of a complex signal: the signal must be real. Pass x.real{at(user_line())}."
        )
    return x


def _along(factors: Any, x: Any, axis: int) -> Any:
    """Factors of the precision of x, shaped to broadcast along an axis of x."""
    shape = tuple(-1 if k == axis % x.ndim else 1 for k in range(x.ndim))
    return factors.astype(np.finfo(x.dtype).dtype).reshape(shape)


_PAD_MODES = {"mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant"}


@counterpart(scipy.signal.savgol_filter)
def savgol_filter(
    x: Any,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: Any = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: Any = 0.0,
) -> Any:
    """Apply a Savitzky-Golay filter along an axis, as ``scipy.signal.savgol_filter``.

    Parameters
    ----------
    x : array_like
    window_length, polyorder : int
        The number of samples in a window, and the degree of the polynomial fitted to them.
    deriv : int, default 0
        The order of the derivative to compute; 0 smooths.
    delta : float or Tensor, default 1.0
        The sample spacing; differentiable.
    axis : int, default -1
    mode : {"interp", "mirror", "nearest", "wrap", "constant"}
        How the signal is extended. "interp" does not extend it, but evaluates the polynomials
        fitted to the first and last window.
    cval : float or Tensor
        The value beyond the ends for "constant".

    Notes
    -----
    A. Savitzky and M. J. E. Golay, Analytical Chemistry 36 (1964), 1627-1639.
    """
    x = floating(x)
    x = x if x.dtype in (np.float32, np.float64) else casts.astype(x, float)
    weights = scipy.signal.savgol_coeffs(window_length, polyorder, deriv)  # checks the arguments
    if mode not in (*_PAD_MODES, "interp"):
        raise ArgumentError(
            f"savgol_filter with mode={mode!r}: the mode must be one of 'interp', "
            f"{', '.join(map(repr, _PAD_MODES))}{at(user_line())}."
        )
    signals = as_tensor(np.moveaxis(x, axis, -1))
    n = known_length(signals.shape[-1], "savgol_filter")
    weights = weights.astype(x.dtype)
    if mode != "interp":
        before = (window_length - 1) // 2
        widths = [(0, 0)] * (signals.ndim - 1) + [(before, window_length - 1 - before)]
        options = {"constant_values": cval} if mode == "constant" else {}
        y = _convolve_valid(pad(signals, widths, _PAD_MODES[mode], **options), weights, n)
    else:
        if window_length > n:
            raise ShapeError(
                f"savgol_filter of {n} samples with window_length={window_length} and "
                f"mode='interp': the window is longer than the signal. Use another mode or a "
                f"shorter window{at(user_line())}."
            )
        y = _filter_with_fitted_ends(signals, weights, window_length, polyorder, deriv)
    y = y / delta**deriv if deriv else y
    return np.moveaxis(casts.astype(y, x.dtype) if y.dtype != x.dtype else y, -1, axis)


def _convolve_valid(x: Any, weights: Any, n: int) -> Any:
    """The first n elements of the valid convolution of x with the weights."""
    indices = np.arange(n)[:, None] + np.arange(len(weights))
    return x[..., indices] @ weights[::-1]


def _filter_with_fitted_ends(signals: Any, weights: Any, width: int, order: int, deriv: int) -> Any:
    """Filter the interior; at the ends, evaluate the polynomials of the first and last window."""
    n, half = signals.shape[-1], width // 2
    identity = np.eye(width)
    ends = scipy.signal.savgol_filter(identity, width, order, deriv, axis=0).astype(weights.dtype)
    left = signals[..., :width] @ ends[:half].T
    right = signals[..., n - width :] @ ends[width - half :].T
    inner = _convolve_valid(signals, weights, n - width + 1)
    first = half - (width - 1) // 2
    inner = inner[..., first : first + n - 2 * half]
    return np.concatenate([left, inner, right], axis=-1)


def _windows(x: Any, size: Any, name: str) -> tuple[Any, tuple[int, ...]]:
    """The elements of each window along a new first axis, and the lengths of a window."""
    ndim = len(shape_of(x))
    size = 3 if size is None else size
    lengths = (int(size),) * ndim if np.ndim(size) == 0 else tuple(int(n) for n in size)
    if len(lengths) != ndim or any(n < 1 or n % 2 == 0 for n in lengths):
        raise ArgumentError(
            f"{name} with a window of size {size}: give an odd length for each of {ndim} axes, or "
            f"one for all{at(user_line())}."
        )
    padded = pad(x, [(n // 2, n // 2) for n in lengths])
    shifted = [
        padded[tuple(slice(i, i + m) for i, m in zip(start, shape_of(x), strict=True))]
        for start in product(*map(range, lengths))
    ]
    return np.stack(shifted), lengths


@counterpart(scipy.signal.medfilt)
def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    """Apply a median filter, as ``scipy.signal.medfilt``.

    Parameters
    ----------
    volume : array or Tensor
    kernel_size : int or sequence of int, optional
        The lengths of the window, which must be odd; 3 by default.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ArgumentError
        A length is even, or the number of lengths is not that of the axes.

    Notes
    -----
    *Cost.* Time and memory are proportional to the size of `volume` times that of the window.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import medfilt
    >>> wg.grad(lambda x: medfilt(x)[1])(np.array([3.0, 1.0, 2.0]))
    array([0., 0., 1.])
    """
    windows, _ = _windows(floating(volume), kernel_size, "medfilt")
    return np.median(windows, axis=0)


@counterpart(scipy.signal.medfilt2d)
def medfilt2d(input: Any, kernel_size: Any = 3) -> Any:
    """Apply a median filter to a matrix, as ``scipy.signal.medfilt2d``.

    Parameters
    ----------
    input : array or Tensor
        Shape (m, n).
    kernel_size : int or sequence of int
        The lengths of the window, which must be odd.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import medfilt2d
    >>> wg.grad(lambda x: medfilt2d(x)[1, 1])(np.arange(9.0).reshape(3, 3))[1]
    array([0., 1., 0.])
    """
    return medfilt(input, kernel_size)


@counterpart(scipy.signal.wiener)
def wiener(im: Any, mysize: Any = None, noise: Any = None) -> Any:
    """Apply a Wiener filter, as ``scipy.signal.wiener``.

    Parameters
    ----------
    im : array or Tensor
    mysize : int or sequence of int, optional
        The lengths of the window, which must be odd; 3 by default.
    noise : float or Tensor, optional
        The variance of the noise; by default the mean of the local variances.

    Returns
    -------
    array or Tensor

    Notes
    -----
    J. S. Lim, Two-Dimensional Signal and Image Processing (1990), 548. Where the local variance is
    less than `noise`, the result is the local mean; the derivative is that of the selected branch.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import wiener
    >>> x = np.array([1.0, 2.0, 4.0, 1.0])
    >>> wg.grad(lambda x: np.sum(wiener(x, 3, 0.0)))(x)
    array([1., 1., 1., 1.])
    """
    im = floating(im)
    windows, lengths = _windows(im, mysize, "wiener")
    count = prod(lengths)
    mean = np.sum(windows, axis=0) / count
    variance = np.sum(windows * windows, axis=0) / count - mean * mean
    noise = np.mean(variance) if noise is None else noise
    only_noise = value_of(variance) < value_of(noise)
    divisor = choose(only_noise, 1.0, choose(value_of(variance) == 0, 1.0, variance))
    return choose(only_noise, mean, mean + (im - mean) * (1.0 - noise / divisor))
