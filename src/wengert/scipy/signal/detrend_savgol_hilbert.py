"""Detrending, Savitzky-Golay smoothing and the analytic signal.

Each is linear in the signal.  The factors of detrend and savgol_filter are constants, which SciPy
computes for the given lengths.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.signal

from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_tensor
from wengert.errors import ArgumentError, ShapeError, at, user_line
from wengert.numpy import fft
from wengert.numpy.padding import pad

from ..dispatch import counterpart, floating, known_length

__all__ = ["detrend", "hilbert", "hilbert2", "savgol_filter"]


@counterpart(scipy.signal.detrend)
def detrend(
    data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False
) -> Any:
    """A signal without its mean or its linear trend, as ``scipy.signal.detrend``.

    Parameters
    ----------
    data : array_like
    axis : int, default -1
    type : {"linear", "constant"}
    bp : int or sequence of int
        The positions at which new linear trends start.
    overwrite_data : bool
        Has no effect on tensors.

    Notes
    -----
    Subtracting the trend is an orthogonal projection, which is its own transpose. *Cost.* O(n).
    """
    data = floating(data)
    if type in ("constant", "c"):
        return data - np.mean(data, axis=axis, keepdims=True)
    if type not in ("linear", "l"):
        raise ArgumentError(
            f"detrend with type={type!r}: it is 'linear' or 'constant'{at(user_line())}."
        )
    lines = np.moveaxis(data, axis, -1)
    n = known_length(lines.shape[-1], "detrend")
    breaks = sorted({0, n, *np.atleast_1d(np.asarray(bp)).tolist()})
    if breaks[-1] > n or breaks[0] < 0:
        raise ArgumentError(
            f"detrend with breaks at {bp} of {n} samples: they are between the first and the last"
            f"{at(user_line())}."
        )
    parts = []
    for start, stop in pairwise(breaks):
        piece, count = lines[..., start:stop], stop - start
        ramp = np.stack([np.arange(1.0, count + 1) / count, np.ones(count)], axis=1)
        basis = np.linalg.qr(ramp)[0].astype(np.finfo(data.dtype).dtype)
        parts.append(piece - (piece @ basis) @ basis.T if count > 1 else 0.0 * piece)
    return np.moveaxis(np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0], -1, axis)


@counterpart(scipy.signal.hilbert)
def hilbert(x: Any, N: int | None = None, axis: int = -1) -> Any:
    """The analytic signal: no negative frequencies, as ``scipy.signal.hilbert``.

    Parameters
    ----------
    x : array_like
        Real.
    N : int, optional
        The length of the transforms.
    axis : int, default -1
    """
    x = _real("hilbert", x)
    n = known_length(x.shape[axis] if N is None else N, "hilbert")
    if n <= 0:
        raise ArgumentError(f"hilbert with N={n}: it is positive{at(user_line())}.")
    factors = np.zeros(n)
    factors[0] = 1.0
    factors[1 : (n + 1) // 2] = 2.0
    if n % 2 == 0:
        factors[n // 2] = 1.0
    return fft.ifft(fft.fft(x, n, axis) * _along(factors, x, axis), axis=axis)


@counterpart(scipy.signal.hilbert2)
def hilbert2(x: Any, N: Any = None, axes: Any = (-2, -1)) -> Any:
    """The analytic signal of two axes, as ``scipy.signal.hilbert2``."""
    x = _real("hilbert2", x)
    if x.ndim < 2 or len(axes) != 2 or axes[0] % x.ndim == axes[1] % x.ndim:
        raise ShapeError(
            f"hilbert2 of an array of shape {x.shape} along axes {axes}: it needs two different "
            f"ones{at(user_line())}."
        )
    lengths = [x.shape[k] for k in axes] if N is None else [N, N] if np.ndim(N) == 0 else list(N)
    lengths = [known_length(n, "hilbert2") for n in lengths]
    if len(lengths) != 2 or min(lengths) <= 0:
        raise ArgumentError(f"hilbert2 with N={N}: both are positive{at(user_line())}.")
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
            f"{name} of a complex signal: its negative frequencies are its own. Pass x.real"
            f"{at(user_line())}."
        )
    return x


def _along(factors: Any, x: Any, axis: int) -> Any:
    """Factors along an axis of x, in the precision of x."""
    shape = tuple(-1 if k == axis % x.ndim else 1 for k in range(x.ndim))
    return factors.astype(np.finfo(x.dtype).dtype).reshape(shape)


EDGES = {"mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant"}


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
    """Polynomials fitted to a moving window, as ``scipy.signal.savgol_filter``.

    Parameters
    ----------
    x : array_like
    window_length, polyorder : int
    deriv : int, default 0
        The derivative of that order of the polynomials.
    delta : float or Tensor, default 1.0
        The sample spacing; differentiable.
    axis : int, default -1
    mode : {"interp", "mirror", "nearest", "wrap", "constant"}
        How the signal is extended at its ends.
    cval : float or Tensor
        The value beyond the ends for "constant".

    Notes
    -----
    A. Savitzky and M. J. E. Golay, Analytical Chemistry 36 (1964), 1627-1639.
    """
    x = floating(x)
    x = x if x.dtype in (np.float32, np.float64) else casts.astype(x, float)
    weights = scipy.signal.savgol_coeffs(window_length, polyorder, deriv)  # checks the arguments
    if mode not in (*EDGES, "interp"):
        raise ArgumentError(
            f"savgol_filter with mode={mode!r}: it is 'interp', {', '.join(map(repr, EDGES))}"
            f"{at(user_line())}."
        )
    lines = as_tensor(np.moveaxis(x, axis, -1))
    n = known_length(lines.shape[-1], "savgol_filter")
    weights = weights.astype(x.dtype)
    if mode != "interp":
        before = (window_length - 1) // 2
        widths = [(0, 0)] * (lines.ndim - 1) + [(before, window_length - 1 - before)]
        options = {"constant_values": cval} if mode == "constant" else {}
        y = _slid(pad(lines, widths, EDGES[mode], **options), weights, n)
    else:
        if window_length > n:
            raise ShapeError(
                f"savgol_filter of {n} samples with a window of {window_length}: it has to fit in. "
                f"Choose another mode{at(user_line())}."
            )
        y = _with_fitted_ends(lines, weights, window_length, polyorder, deriv)
    y = y / delta**deriv if deriv else y
    return np.moveaxis(casts.astype(y, x.dtype) if y.dtype != x.dtype else y, -1, axis)


def _slid(wide: Any, weights: Any, n: int) -> Any:
    """The convolution with the weights, at the n positions where they fit."""
    places = np.arange(n)[:, None] + np.arange(len(weights))
    return wide[..., places] @ weights[::-1]


def _with_fitted_ends(lines: Any, weights: Any, width: int, order: int, deriv: int) -> Any:
    """The filter in the interior, and the polynomials of the first and last window at the ends."""
    n, half = lines.shape[-1], width // 2
    unit = np.eye(width)
    ends = scipy.signal.savgol_filter(unit, width, order, deriv, axis=0).astype(weights.dtype)
    left = lines[..., :width] @ ends[:half].T
    right = lines[..., n - width :] @ ends[width - half :].T
    inner = _slid(lines, weights, n - width + 1)
    first = half - (width - 1) // 2
    inner = inner[..., first : first + n - 2 * half]
    return np.concatenate([left, inner, right], axis=-1)
