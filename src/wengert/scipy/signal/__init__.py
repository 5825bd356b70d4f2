"""scipy.signal, for arrays and tensors alike.

convolution             convolve, correlate, fftconvolve, oaconvolve, convolve2d, correlate2d
detrend_savgol_hilbert  detrend, savgol_filter, hilbert, hilbert2
frequency_response      freqz, sosfreqz; other_responses: freqs, freqz_zpk, freqz_sos, group_delay
iir_design              butter, cheby1, cheby2 by their frequencies, and what moves prototypes
median_wiener           medfilt, medfilt2d, wiener
recursive_filters       lfilter, lfilter_zi, lfiltic, deconvolve
resampling              resample, resample_poly, upfirdn, decimate
sosfilt_filtfilt        sosfilt, sosfilt_zi, filtfilt, sosfiltfilt
spectral_estimation     csd, welch, periodogram, coherence, stft, spectrogram
state_space_response    Responses of filters given in other ways, and their delays
waveforms               chirp, sawtooth, square, gausspulse; vectorstrength
windows                 a module of its own, as in SciPy

Filters differentiate by their coefficients, signals and states, in O(n) both ways.
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
