"""Spectral estimation: periodogram, welch, csd, coherence, spectrogram, stft.

A signal is divided into overlapping segments, each of which is detrended, multiplied by a window
and Fourier transform.  All are compositions of differentiable operations, with respect to the
signal and to the window, which may be a tensor or have tensors as parameters (windows.py).
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
from .detrend_smooth_hilbert import detrend as subtract_trend
from .windows import get_window

__all__ = [
    "coherence",
    "csd",
    "periodogram",
    "spectrogram",
    "stft",
    "welch",
]


class _SegmentPlan:
    """The segments of signals of length n, their window and their Fourier transforms."""

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
                    f"a window of length {self.length} with nperseg={nperseg} and {n} samples: the "
                    f"length of the window must be nperseg, and at most that of the signal"
                    f"{at(user_line())}."
                )
        self.overlap = self.length // 2 if noverlap is None else operator.index(noverlap)
        self.points = self.length if nfft is None else operator.index(nfft)
        if not 0 <= self.overlap < self.length <= self.points:
            raise ArgumentError(
                f"segments with nperseg={self.length}, noverlap={self.overlap} and "
                f"nfft={self.points}: 0 <= noverlap < nperseg <= nfft must hold{at(user_line())}."
            )
        self.step = self.length - self.overlap

    def scale(self, fs: Any, scaling: str) -> Any:
        """The factor by which squared magnitudes are multiplied."""
        if scaling == "density":
            return 1.0 / (fs * np.sum(self.window * self.window))
        if scaling == "spectrum":
            return 1.0 / np.sum(self.window) ** 2
        raise ArgumentError(
            f"a spectrum with scaling={scaling!r}: it must be 'density' or 'spectrum'"
            f"{at(user_line())}."
        )

    def transform(self, signals: Any, detrend: Any, onesided: bool) -> Any:
        """The Fourier transforms of all segments of the last axis; shape (..., segments, bins)."""
        n = signals.shape[-1]
        starts = np.arange(0, n - self.length + 1, self.step)
        segments = as_tensor(signals)[..., starts[:, None] + np.arange(self.length)]
        if callable(detrend):
            segments = detrend(segments)
        elif detrend:
            segments = subtract_trend(segments, type=detrend)
        dft = fft.rfft if onesided else fft.fft
        window = self.window
        single = signals.dtype in (np.float32, np.complex64)
        if single and window.dtype == np.float64:
            window = casts.astype(window, np.float32)
        return dft(segments * window, self.points)

    def double_one_sided(self, powers: Any) -> Any:
        """Add the powers at negative frequencies to those of a one-sided spectrum."""
        factors = np.full(self.points // 2 + 1, 2.0, np.finfo(powers.dtype).dtype)
        factors[0] = 1.0
        if self.points % 2 == 0:
            factors[-1] = 1.0
        return powers * factors

    def frequencies(self, fs: Any, onesided: bool) -> Any:
        """The frequencies of the bins."""
        return (fft.rfftfreq if onesided else fft.fftfreq)(self.points, 1.0 / fs)


def _move_time_last(x: Any, axis: int) -> Any:
    """The signals, with the axis of time last; errors if there are no samples."""
    x = floating(x)
    if not -x.ndim <= axis < x.ndim:
        raise np.exceptions.AxisError(axis, x.ndim)
    known_length(x.shape[axis], "a spectrum")
    if x.shape[axis] == 0:
        raise ShapeError(
            f"a spectrum of an array of shape {x.shape} along axis {axis}: it has no samples"
            f"{at(user_line())}."
        )
    return np.moveaxis(x, axis, -1)


def _to_precision_of(signals: Any, powers: Any) -> Any:
    """Cast powers, or transforms, to the precision of the signals."""
    real = np.finfo(np.result_type(signals.dtype, np.complex64)).dtype
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
    """Estimate the cross power spectral density by Welch's method, as ``scipy.signal.csd``.

    Parameters
    ----------
    x, y : array_like
        Signals; the shorter one is padded with zeros.
    fs : float or Tensor, default 1.0
        The sampling frequency.
    window : str, tuple or array_like
        The name of a window, a name with parameters (see `get_window`), or its values.
    nperseg, noverlap, nfft : int, optional
        The lengths of a segment, of the overlap of two segments, and of the Fourier transform.
    detrend : str, callable or False
        The type passed to `detrend`, a function of the segments, or no detrending.
    return_onesided : bool, default True
        Whether to return the nonnegative frequencies only, of real signals.
    scaling : {"density", "spectrum"}
        Power per frequency, or power.
    axis : int, default -1
    average : {"mean", "median"}
        How the segments are averaged.

    Returns
    -------
    frequencies, powers

    Notes
    -----
    P. D. Welch, IEEE Trans. Audio Electroacoust. 15 (1967), 70-73.
    """
    same = x is y
    x = _move_time_last(x, axis)
    y = x if same else _move_time_last(y, axis)
    n = max(x.shape[-1], y.shape[-1])
    x, y = (_pad_to(v, n) for v in (x, y))
    plan = _SegmentPlan(n, window, nperseg, noverlap, nfft)
    onesided = return_onesided and x.dtype.kind != "c" and y.dtype.kind != "c"
    first = plan.transform(x, detrend, onesided)
    second = first if same else plan.transform(y, detrend, onesided)
    powers = np.conjugate(first) * second
    powers = (powers.real if same else powers) * plan.scale(fs, scaling)
    if onesided:
        powers = plan.double_one_sided(powers)
    found = np.moveaxis(_to_precision_of(x, _average_segments(powers, average)), -1, axis)
    return plan.frequencies(fs, onesided), found


def _pad_to(signals: Any, n: int) -> Any:
    """Pad the last axis with zeros to length n."""
    missing = n - signals.shape[-1]
    if missing == 0:
        return signals
    return np.pad(as_tensor(signals), [(0, 0)] * (signals.ndim - 1) + [(0, missing)])


def _average_segments(powers: Any, average: str) -> Any:
    """The mean, or the median corrected for its bias, of all segments (the last axis but one)."""
    if average == "mean":
        return np.mean(powers, axis=-2)
    if average != "median":
        raise ArgumentError(
            f"a spectrum with average={average!r}: it must be 'mean' or 'median'{at(user_line())}."
        )
    even = 2.0 * np.arange(1.0, (powers.shape[-2] - 1) // 2 + 1)
    bias = 1.0 + np.sum(1.0 / (even + 1.0) - 1.0 / even)
    if powers.dtype.kind != "c":
        return np.median(powers, axis=-2) / bias
    real, imag = np.median(powers.real, axis=-2), np.median(powers.imag, axis=-2)
    return (real + 1j * imag) / bias


@counterpart(scipy.signal.welch)
def welch(x: Any, fs: Any = 1.0, window: Any = "hann_periodic", *args: Any, **named: Any) -> Any:
    """Estimate the power spectral density by Welch's method, as ``scipy.signal.welch``.

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
    """Estimate the power spectral density, as ``scipy.signal.periodogram``; see `csd`."""
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
    """Estimate the magnitude squared coherence, as ``scipy.signal.coherence``; see `csd`."""
    options = (fs, window, nperseg, noverlap, nfft, detrend)
    x, y = as_tensor(x), as_tensor(y)
    frequencies, p_xx = csd(x, x, *options, axis=axis)
    p_yy = csd(y, y, *options, axis=axis)[1]
    p_xy = csd(x, y, *options, axis=axis)[1]
    return frequencies, (p_xy.real**2 + p_xy.imag**2) / p_xx / p_yy


# ---- time-frequency ----------------------------------------------------------------------------


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
    """The short-time Fourier transform, as ``scipy.signal.stft``.

    Parameters
    ----------
    x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, axis
        See `csd`.
    boundary : {"zeros", "even", "odd", "constant", None}
        How the signal is extended at both ends by half a segment.
    padded : bool, default True
        Whether to pad the signal with zeros to an integer number of segments.
    scaling : {"spectrum", "psd"}

    Returns
    -------
    frequencies, times, transforms
        The last axis of the transforms is that of the times.
    """
    density = {"spectrum": "spectrum", "psd": "density"}.get(scaling)
    if density is None:
        raise ArgumentError(
            f"stft with scaling={scaling!r}: it must be 'spectrum' or 'psd'{at(user_line())}."
        )
    signals = _move_time_last(x, axis)
    plan = _SegmentPlan(signals.shape[-1], window, nperseg, noverlap, nfft)
    half = plan.length // 2 if boundary is not None else 0
    signals = _extend_ends(signals, half, boundary)
    if padded:
        missing = (-(signals.shape[-1] - plan.length) % plan.step) % plan.length
        signals = _pad_to(signals, signals.shape[-1] + missing)
    onesided = return_onesided and signals.dtype.kind != "c"
    found = plan.transform(signals, detrend, onesided) * np.sqrt(plan.scale(fs, density))
    times = np.arange(found.shape[-2]) * plan.step + plan.length / 2 - half
    found = _move_times_last(_to_precision_of(signals, found), axis)
    return plan.frequencies(fs, onesided), times / fs, found


def _move_times_last(transforms: Any, axis: int) -> Any:
    """From (..., times, frequencies): frequencies to the axis of the samples, times to the last."""
    transforms = np.swapaxes(transforms, -1, -2)
    return np.moveaxis(transforms, -2, axis - 1 if axis < 0 else axis)


def _extend_ends(signals: Any, edge: int, boundary: Any) -> Any:
    modes = {"zeros": "constant", "constant": "edge", "even": "reflect", "odd": "reflect"}
    if boundary is None or edge == 0:
        return signals
    if boundary not in modes:
        raise ArgumentError(
            f"stft with boundary={boundary!r}: it must be {', '.join(map(repr, modes))} or None"
            f"{at(user_line())}."
        )
    options: dict[str, Any] = {"reflect_type": "odd"} if boundary == "odd" else {}
    widths = [(0, 0)] * (signals.ndim - 1) + [(edge, edge)]
    pad: Callable[..., Any] = np.pad
    return pad(as_tensor(signals), widths, modes[boundary], **options)


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
    """Power spectra, or transforms, of all segments, as ``scipy.signal.spectrogram``.

    Parameters
    ----------
    x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis
        See `csd`. By default segments overlap by an eighth of their length.
    mode : {"psd", "complex", "magnitude", "angle", "phase"}
    """
    signals = _move_time_last(x, axis)
    plan = _SegmentPlan(signals.shape[-1], window, nperseg, 0, nfft)
    noverlap = plan.length // 8 if noverlap is None else noverlap
    plan = _SegmentPlan(signals.shape[-1], plan.window, plan.length, noverlap, nfft)
    onesided = return_onesided and signals.dtype.kind != "c"
    found = plan.transform(signals, detrend, onesided)
    scale = plan.scale(fs, scaling)
    if mode == "psd":
        found = (found.real**2 + found.imag**2) * scale
        found = plan.double_one_sided(found) if onesided else found
    else:
        parts: dict[str, Any] = {
            "complex": lambda z: z,
            "magnitude": np.abs,
            "angle": np.angle,
            "phase": _phase,
        }
        if mode not in parts:
            raise ArgumentError(
                f"spectrogram with mode={mode!r}: the mode must be one of 'psd', "
                f"{', '.join(map(repr, parts))}{at(user_line())}."
            )
        found = parts[mode](found * np.sqrt(scale))
    times = (np.arange(found.shape[-2]) * plan.step + plan.length / 2) / fs
    found = _move_times_last(_to_precision_of(signals, found), axis)
    return plan.frequencies(fs, onesided), times, found


def _phase(z: Any) -> Any:
    return np.unwrap(np.angle(z), axis=-1)
