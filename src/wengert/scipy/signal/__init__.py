"""scipy.signal, for arrays and tensors.

convolution             convolve, correlate, fftconvolve, oaconvolve, convolve2d, correlate2d
recursive_filters       lfilter, lfilter_zi, lfiltic, deconvolve
sosfilt_filtfilt        sosfilt, sosfilt_zi, filtfilt, sosfiltfilt
iir_design              butter, cheby1, cheby2 and conversions of filters
frequency_response      freqz, sosfreqz
state_space_response    freqs, freqz_zpk, group_delay and responses of other filter forms
median_wiener           medfilt, medfilt2d, wiener
detrend_savgol_hilbert  detrend, savgol_filter, hilbert, hilbert2
resampling              resample, resample_poly, upfirdn, decimate
spectral_estimation     csd, welch, periodogram, coherence, stft, spectrogram
waveforms               chirp, sawtooth, square, gausspulse; vectorstrength
windows                 scipy.signal.windows

Filters are differentiable with respect to coefficients, signals and states, in O(n) in both modes.
"""

from wengert._engine.core.lazy_import import public_dir

from . import windows
from .convolution import convolve, convolve2d, correlate, correlate2d, fftconvolve, oaconvolve
from .detrend_savgol_hilbert import detrend, hilbert, hilbert2, savgol_filter
from .frequency_response import freqz, sosfreqz
from .iir_design import (
    bilinear_zpk,
    butter,
    cheby1,
    cheby2,
    lp2bp_zpk,
    lp2bs_zpk,
    lp2hp_zpk,
    lp2lp_zpk,
)
from .median_wiener import medfilt, medfilt2d, wiener
from .recursive_filters import deconvolve, lfilter, lfilter_zi, lfiltic
from .resampling import decimate, resample, resample_poly, upfirdn
from .sosfilt_filtfilt import filtfilt, sosfilt, sosfilt_zi, sosfiltfilt
from .spectral_estimation import coherence, csd, periodogram, spectrogram, stft, welch
from .state_space_response import freqs, freqz_sos, freqz_zpk, group_delay
from .waveforms import chirp, gausspulse, sawtooth, square, vectorstrength
from .windows import get_window

__all__ = [
    "bilinear_zpk",
    "butter",
    "cheby1",
    "cheby2",
    "chirp",
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
    "freqs",
    "freqz",
    "freqz_sos",
    "freqz_zpk",
    "gausspulse",
    "get_window",
    "group_delay",
    "hilbert",
    "hilbert2",
    "lfilter",
    "lfilter_zi",
    "lfiltic",
    "lp2bp_zpk",
    "lp2bs_zpk",
    "lp2hp_zpk",
    "lp2lp_zpk",
    "medfilt",
    "medfilt2d",
    "oaconvolve",
    "periodogram",
    "resample",
    "resample_poly",
    "savgol_filter",
    "sawtooth",
    "sosfilt",
    "sosfilt_zi",
    "sosfiltfilt",
    "sosfreqz",
    "spectrogram",
    "square",
    "stft",
    "upfirdn",
    "vectorstrength",
    "welch",
    "wiener",
    "windows",
]

__dir__ = public_dir(__name__)
