"""scipy.signal, for arrays and tensors alike.

    convolution    convolve, correlate, fftconvolve, oaconvolve, convolve2d, correlate2d
    recursive      lfilter, lfilter_zi, lfiltic, deconvolve
    sections       sosfilt, sosfilt_zi, filtfilt, sosfiltfilt
    smoothing      detrend, savgol_filter, hilbert, hilbert2
    resampling     resample, resample_poly, upfirdn, decimate
    spectra        csd, welch, periodogram, coherence, stft, spectrogram
    responses      freqz, sosfreqz
    windows        a module of its own, as in SciPy

Filters differentiate by their coefficients, signals and states, in O(n) both ways.
"""

from . import windows
from .convolution import convolve, convolve2d, correlate, correlate2d, fftconvolve, oaconvolve
from .recursive import deconvolve, lfilter, lfilter_zi, lfiltic
from .resampling import decimate, resample, resample_poly, upfirdn
from .responses import freqz, sosfreqz
from .sections import filtfilt, sosfilt, sosfilt_zi, sosfiltfilt
from .smoothing import detrend, hilbert, hilbert2, savgol_filter
from .spectra import coherence, csd, periodogram, spectrogram, stft, welch
from .windows import get_window

__all__ = [
    "coherence",
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "decimate",
    "deconvolve",
    "detrend",
    "fftconvolve",
    "filtfilt",
    "freqz",
    "get_window",
    "hilbert",
    "hilbert2",
    "lfilter",
    "lfilter_zi",
    "lfiltic",
    "oaconvolve",
    "periodogram",
    "resample",
    "resample_poly",
    "savgol_filter",
    "sosfilt",
    "sosfilt_zi",
    "sosfiltfilt",
    "sosfreqz",
    "spectrogram",
    "stft",
    "upfirdn",
    "welch",
    "windows",
]
