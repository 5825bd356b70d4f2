"""The functions of scipy.signal, for arrays and tensors.

convolution             convolve, correlate, fftconvolve, oaconvolve, convolve2d, correlate2d
recursive_filters       lfilter, lfilter_zi, lfiltic, deconvolve
sosfilt_filtfilt        sosfilt, sosfilt_zi, filtfilt, sosfiltfilt
iir_design              butter, cheby1, cheby2 and frequency transformations of filters
frequency_response      freqz, sosfreqz; freqs, freqz_zpk, freqz_sos, group_delay
detrend_smooth_hilbert  detrend, savgol_filter, hilbert, hilbert2; medfilt, medfilt2d, wiener
resampling              resample, resample_poly, upfirdn, decimate
spectral_estimation     csd, welch, periodogram, coherence, stft, spectrogram
waveforms               chirp, sawtooth, square, gausspulse; vectorstrength
windows                 scipy.signal.windows

Filters are differentiable with respect to coefficients, signals and states.  In forward and
reverse mode this takes O(n) operations for a signal of n samples.
"""

# ruff: noqa: F403  (the `__all__` of each module says what is exported)

from wengert._engine.core.lazy_import import exported, public_dir

from . import windows as windows
from .convolution import *
from .detrend_smooth_hilbert import *
from .frequency_response import *
from .iir_design import *
from .recursive_filters import *
from .resampling import *
from .sosfilt_filtfilt import *
from .spectral_estimation import *
from .waveforms import *
from .windows import get_window as get_window

_MODULES = """
    convolution detrend_smooth_hilbert frequency_response iir_design recursive_filters
    resampling sosfilt_filtfilt spectral_estimation waveforms
"""
globals()["__all__"] = sorted([*exported(__name__, _MODULES), *["get_window", "windows"]])

__dir__ = public_dir(__name__)
