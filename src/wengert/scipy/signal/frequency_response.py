"""Frequency responses of digital filters: freqz and sosfreqz.

A frequency response is a quotient of polynomials in exp(-i w).  SciPy evaluates them by Horner's
rule or an FFT; here they are products with a matrix of powers, which are differentiable with
respect to coefficients and frequencies.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import scipy.signal

from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array, spread
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import counterpart, floating
from .recursive_filters import check_coefficients

__all__ = ["freqz", "sosfreqz"]


def angular_frequencies(worN: Any, whole: bool, fs: Any, include_nyquist: bool) -> Any:
    """Angular frequencies per sample: those given, or as many from 0 to pi or 2 pi."""
    worN = 512 if worN is None else worN
    if np.ndim(value_of(worN)) == 0 and not is_traced(worN):
        last = 2.0 * np.pi if whole else np.pi
        return np.linspace(0.0, last, operator.index(worN), endpoint=include_nyquist and not whole)
    return 2.0 * np.pi * floating(worN) / fs


def _response(b: Any, a: Any, w: Any) -> Any:
    return _polynomial(b, w) / _polynomial(a, w)


def _polynomial(c: Any, w: Any) -> Any:
    powers = np.arange(c.shape[0]).astype(w.dtype)
    return np.exp(-1j * w[..., None] * powers) @ c


def _to_precision_of(w: Any, *coefficients: Any) -> Any:
    """Cast angular frequencies to the precision of the coefficients."""
    wanted = np.finfo(np.result_type(np.float32, *[c.dtype for c in coefficients])).dtype
    return w if w.dtype == wanted else casts.astype(w, wanted)


@counterpart(scipy.signal.freqz)
def freqz(
    b: Any,
    a: Any = 1,
    worN: Any = 512,
    whole: bool = False,
    plot: Any = None,
    fs: Any = 2 * np.pi,
    include_nyquist: bool = False,
) -> Any:
    """The frequency response of a digital filter, as ``scipy.signal.freqz``.

    Parameters
    ----------
    b, a : array_like
        The coefficients of the filter, see `lfilter`.
    worN : int or array_like
        The number of frequencies, or the frequencies.
    whole : bool, default False
        Whether frequencies range up to `fs` instead of fs / 2. Has no effect if `worN` is an array.
    plot : None
        Not supported for tensors.
    fs : float or Tensor
        The sampling frequency.
    include_nyquist : bool, default False
        Whether fs / 2 is the last frequency.

    Returns
    -------
    frequencies, response

    Notes
    -----
    Differentiable with respect to `b`, `a`, the frequencies and `fs`. *Cost.* The number of
    frequencies times the number of coefficients.
    """
    if plot is not None:
        raise ArgumentError(
            f"freqz of a tensor with plot={plot!r}: it does not plot. Plot the result"
            f"{at(user_line())}."
        )
    b, a = check_coefficients("freqz", b, a)
    b, a = floating(b), as_array(a)
    a = a if a.dtype.kind in "fc" else casts.astype(a, b.dtype)
    w = _to_precision_of(angular_frequencies(worN, whole, fs, include_nyquist), b, a)
    h = _response(b, a, w)
    return w * (fs / (2.0 * np.pi)), h


@counterpart(scipy.signal.sosfreqz)
def sosfreqz(sos: Any, worN: Any = 512, whole: bool = False, fs: Any = 2 * np.pi) -> Any:
    """The frequency response of second-order sections, as ``scipy.signal.sosfreqz``.

    Parameters
    ----------
    sos : array_like
        Shape (n, 6), see `sosfilt`.
    worN, whole, fs
        See `freqz`.

    Returns
    -------
    frequencies, response
    """
    sos = floating(sos)
    if sos.ndim != 2 or sos.shape[1] != 6:
        raise ShapeError(
            f"sosfreqz with sos of shape {sos.shape}: the shape must be (n, 6){at(user_line())}."
        )
    w = angular_frequencies(worN, whole, fs, False)
    h: Any = spread(np.ones((), complex), w.shape)
    for k in range(sos.shape[0]):
        h = h * _response(sos[k, :3], sos[k, 3:], w)
    return w * (fs / (2.0 * np.pi)), h
