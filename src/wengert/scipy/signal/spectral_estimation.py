"""Spectral estimation: periodogram, welch, csd, coherence, spectrogram, stft.

A signal is cut into segments that may overlap, each is detrended, multiplied with a window and
transformed, and the powers are averaged.  So all are compositions, of order two in the signal;
the window may be a tensor, or made from one (windows.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal

from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_tensor
from wengert.errors import ArgumentError, ShapeError, at, user_line
from wengert.numpy import fft

from ..dispatch import counterpart, floating, known_length
from .detrend_savgol_hilbert import detrend as without_trend
from .windows import get_window

__all__ = [
    "coherence",
    "csd",
    "periodogram",
    "spectrogram",
    "stft",
    "welch",
]


class _Segmentation:
    """How signals of one length are cut into segments and transformed."""

    def __init__(self, n: int, window: Any, nperseg: Any, noverlap: Any, nfft: Any) -> None:
        if isinstance(window, str | tuple):
            wanted = 256 if nperseg is None else operator.index(nperseg)
            self.length = min(wanted, n)
            self.window = get_window(window, max(self.length, 1))
        else:
            self.window = floating(window)
            self.length = known_length(self.window.shape[0], "a window")
            if nperseg not in (None, self.length) or self.length > n:
                raise ShapeError(
                    f"a window of {self.length} numbers for segments of {nperseg} of a signal of "
                    f"{n}: give one number for each, at most as many as samples{at(user_line())}."
                )
        self.overlap = self.length // 2 if noverlap is None else operator.index(noverlap)
        self.points = self.length if nfft is None else operator.index(nfft)
        if not 0 <= self.overlap < self.length <= self.points:
            raise ArgumentError(
                f"segments of {self.length} that overlap by {self.overlap}, transformed at "
                f"{self.points} points: 0 <= noverlap < nperseg <= nfft{at(user_line())}."
            )
        self.step = self.length - self.overlap

    def scale(self, fs: Any, scaling: str) -> Any:
        """The factor of powers."""
        if scaling == "density":
            return 1.0 / (fs * np.sum(self.window * self.window))
        if scaling == "spectrum":
            return 1.0 / np.sum(self.window) ** 2
        raise ArgumentError(
            f"a spectrum with scaling={scaling!r}: it is 'density' or 'spectrum'{at(user_line())}."
        )

    def transformed(self, lines: Any, detrend: Any, onesided: bool) -> Any:
        """Of lines of a signal the transforms of all segments, in the last two axes."""
        n = lines.shape[-1]
        starts = np.arange(0, n - self.length + 1, self.step)
        segments = as_tensor(lines)[..., starts[:, None] + np.arange(self.length)]
        if callable(detrend):
            segments = detrend(segments)
        elif detrend:
            segments = without_trend(segments, type=detrend)
        run = fft.rfft if onesided else fft.fft
        window = self.window
        single = lines.dtype in (np.float32, np.complex64)
        if single and window.dtype == np.float64:
            window = casts.astype(window, np.float32)
        return run(segments * window, self.points)

    def doubled(self, powers: Any) -> Any:
        """Powers of a half spectrum with those of the other half added."""
        factors = np.full(self.points // 2 + 1, 2.0, np.finfo(powers.dtype).dtype)
        factors[0] = 1.0
        if self.points % 2 == 0:
            factors[-1] = 1.0
        return powers * factors

    def frequencies(self, fs: Any, onesided: bool) -> Any:
        """Of each line."""
        return (fft.rfftfreq if onesided else fft.fftfreq)(self.points, 1.0 / fs)


def _line(x: Any, axis: int) -> Any:
    x = floating(x)
    if not -x.ndim <= axis < x.ndim:
        raise np.exceptions.AxisError(axis, x.ndim)
    known_length(x.shape[axis], "a spectrum")
    if x.shape[axis] == 0:
        raise ShapeError(
            f"a spectrum of an array of shape {x.shape}: it has no samples{at(user_line())}."
        )
    return np.moveaxis(x, axis, -1)


def _like(powers: Any, lines: Any) -> Any:
    """Powers in the precision of the signal."""
    real = np.finfo(np.result_type(lines.dtype, np.complex64)).dtype
    wanted = np.result_type(real, np.complex64) if powers.dtype.kind == "c" else real
    return powers if powers.dtype == wanted else casts.astype(powers, wanted)


@counterpart(scipy.signal.csd)
def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann_periodic",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> Any:
    """The cross spectral density of two signals by Welch's method, as ``scipy.signal.csd``.

    Parameters
    ----------
    x, y : array_like
        Signals; the shorter one is filled up with zeros.
    fs : float or Tensor, default 1.0
        The rate of samples.
    window : str, tuple or array_like
    nperseg, noverlap, nfft : int, optional
        Lengths of a segment, of its overlap with the next, and of the transform.
    detrend : str, callable or False
    return_onesided : bool, default True
    scaling : {"density", "spectrum"}
    axis : int, default -1
    average : {"mean", "median"}

    Returns
    -------
    frequencies, powers

    Notes
    -----
    P. D. Welch, IEEE Trans. Audio Electroacoust. 15 (1967), 70-73.
    """
    same = x is y
    x = _line(x, axis)
    y = x if same else _line(y, axis)
    n = max(x.shape[-1], y.shape[-1])
    x, y = (_filled(v, n) for v in (x, y))
    plan = _Segmentation(n, window, nperseg, noverlap, nfft)
    onesided = return_onesided and x.dtype.kind != "c" and y.dtype.kind != "c"
    first = plan.transformed(x, detrend, onesided)
    second = first if same else plan.transformed(y, detrend, onesided)
    powers = np.conjugate(first) * second
    powers = (powers.real if same else powers) * plan.scale(fs, scaling)
    if onesided:
        powers = plan.doubled(powers)
    found = np.moveaxis(_like(_averaged(powers, average), x), -1, axis)
    return plan.frequencies(fs, onesided), found


def _filled(lines: Any, n: int) -> Any:
    missing = n - lines.shape[-1]
    if missing == 0:
        return lines
    return np.pad(as_tensor(lines), [(0, 0)] * (lines.ndim - 1) + [(0, missing)])


def _averaged(powers: Any, average: str) -> Any:
    if average == "mean":
        return np.mean(powers, axis=-2)
    if average != "median":
        raise ArgumentError(
            f"a spectrum with average={average!r}: it is 'mean' or 'median'{at(user_line())}."
        )
    even = 2.0 * np.arange(1.0, (powers.shape[-2] - 1) // 2 + 1)
    bias = 1.0 + np.sum(1.0 / (even + 1.0) - 1.0 / even)
    if powers.dtype.kind != "c":
        return np.median(powers, axis=-2) / bias
    real, imag = np.median(powers.real, axis=-2), np.median(powers.imag, axis=-2)
    return (real + 1j * imag) / bias


@counterpart(scipy.signal.welch)
def welch(x: Any, fs: Any = 1.0, window: Any = "hann_periodic", *args: Any, **named: Any) -> Any:
    """The power spectral density by Welch's method, as ``scipy.signal.welch``.

    Parameters
    ----------
    x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average
        See `csd`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import welch
    >>> power = lambda x: np.sum(welch(x, nperseg=4)[1])
    >>> wg.grad(power)(np.array([1.0, -1.0, 1.0, -1.0])).shape
    (4,)
    """
    x = as_tensor(x)
    return csd(x, x, fs, window, *args, **named)


@counterpart(scipy.signal.periodogram)
def periodogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = "boxcar",
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
) -> Any:
    """The power spectral density of a whole signal, as ``scipy.signal.periodogram``; see `csd`."""
    x = as_tensor(x)
    n = known_length(x.shape[axis], "periodogram")
    if nfft is not None and nfft < n:
        x = as_tensor(np.moveaxis(np.moveaxis(x, axis, -1)[..., :nfft], -1, axis))
        n, nfft = nfft, None
    window = "boxcar" if window is None else window
    return csd(x, x, fs, window, n, 0, nfft, detrend, return_onesided, scaling, axis)


@counterpart(scipy.signal.coherence)
def coherence(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann_periodic",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    axis: int = -1,
) -> Any:
    """How much of one signal the other explains, as ``scipy.signal.coherence``; see `csd`."""
    options = (fs, window, nperseg, noverlap, nfft, detrend)
    x, y = as_tensor(x), as_tensor(y)
    frequencies, of_x = csd(x, x, *options, axis=axis)
    of_y = csd(y, y, *options, axis=axis)[1]
    across = csd(x, y, *options, axis=axis)[1]
    return frequencies, (across.real**2 + across.imag**2) / of_x / of_y


# ---- over time ---------------------------------------------------------------------------------


@counterpart(scipy.signal.stft)
def stft(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann_periodic",
    nperseg: int | None = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: Any = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> Any:
    """The transforms of all segments, as ``scipy.signal.stft``.

    Parameters
    ----------
    x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, axis
        See `csd`.
    boundary : {"zeros", "even", "odd", "constant", None}
        What is beyond the ends.
    padded : bool, default True
        Whether zeros fill the last segment.
    scaling : {"spectrum", "psd"}

    Returns
    -------
    frequencies, times, transforms
        The times along the last axis.
    """
    density = {"spectrum": "spectrum", "psd": "density"}.get(scaling)
    if density is None:
        raise ArgumentError(
            f"stft with scaling={scaling!r}: it is 'spectrum' or 'psd'{at(user_line())}."
        )
    lines = _line(x, axis)
    plan = _Segmentation(lines.shape[-1], window, nperseg, noverlap, nfft)
    half = plan.length // 2 if boundary is not None else 0
    lines = _beyond(lines, half, boundary)
    if padded:
        missing = (-(lines.shape[-1] - plan.length) % plan.step) % plan.length
        lines = _filled(lines, lines.shape[-1] + missing)
    onesided = return_onesided and lines.dtype.kind != "c"
    found = plan.transformed(lines, detrend, onesided) * np.sqrt(plan.scale(fs, density))
    times = np.arange(found.shape[-2]) * plan.step + plan.length / 2 - half
    return plan.frequencies(fs, onesided), times / fs, _over_time(_like(found, lines), axis)


def _over_time(found: Any, axis: int) -> Any:
    """Frequencies where the samples were, times in the last axis."""
    found = np.swapaxes(found, -1, -2)
    return np.moveaxis(found, -2, axis - 1 if axis < 0 else axis)


def _beyond(lines: Any, edge: int, boundary: Any) -> Any:
    modes = {"zeros": "constant", "constant": "edge", "even": "reflect", "odd": "reflect"}
    if boundary is None or edge == 0:
        return lines
    if boundary not in modes:
        raise ArgumentError(
            f"stft with boundary={boundary!r}: it is {', '.join(map(repr, modes))} or None"
            f"{at(user_line())}."
        )
    options: dict[str, Any] = {"reflect_type": "odd"} if boundary == "odd" else {}
    widths = [(0, 0)] * (lines.ndim - 1) + [(edge, edge)]
    pad: Callable[..., Any] = np.pad
    return pad(as_tensor(lines), widths, modes[boundary], **options)


@counterpart(scipy.signal.spectrogram)
def spectrogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = ("tukey_periodic", 0.25),
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    mode: str = "psd",
) -> Any:
    """Powers, or transforms, of all segments, as ``scipy.signal.spectrogram``.

    Parameters
    ----------
    x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis
        See `csd`; segments overlap by an eighth.
    mode : {"psd", "complex", "magnitude", "angle", "phase"}
    """
    lines = _line(x, axis)
    plan = _Segmentation(lines.shape[-1], window, nperseg, 0, nfft)
    noverlap = plan.length // 8 if noverlap is None else noverlap
    plan = _Segmentation(lines.shape[-1], plan.window, plan.length, noverlap, nfft)
    onesided = return_onesided and lines.dtype.kind != "c"
    found = plan.transformed(lines, detrend, onesided)
    scale = plan.scale(fs, scaling)
    if mode == "psd":
        found = (found.real**2 + found.imag**2) * scale
        found = plan.doubled(found) if onesided else found
    else:
        parts: dict[str, Any] = {
            "complex": lambda z: z,
            "magnitude": np.abs,
            "angle": np.angle,
            "phase": _phase,
        }
        if mode not in parts:
            raise ArgumentError(
                f"spectrogram with mode={mode!r}: it is 'psd', {', '.join(map(repr, parts))}"
                f"{at(user_line())}."
            )
        found = parts[mode](found * np.sqrt(scale))
    times = (np.arange(found.shape[-2]) * plan.step + plan.length / 2) / fs
    return plan.frequencies(fs, onesided), times, _over_time(_like(found, lines), axis)


def _phase(z: Any) -> Any:
    return np.unwrap(np.angle(z), axis=-1)
