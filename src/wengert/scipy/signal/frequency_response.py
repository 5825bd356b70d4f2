"""Frequency responses of filters: freqz and sosfreqz.

A response is a quotient of polynomials of exp(-i w), by Horner's rule in SciPy and by one product
with a matrix here, so that it differentiates in the coefficients and the frequencies.
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
from .recursive_filters import coefficients_of

__all__ = ["freqz", "sosfreqz"]


def angles(worN: Any, whole: bool, fs: Any, include_nyquist: bool) -> Any:
    """Frequencies as angles from 0 to pi, or all around."""
    worN = 512 if worN is None else worN
    if np.ndim(value_of(worN)) == 0 and not is_traced(worN):
        last = 2.0 * np.pi if whole else np.pi
        return np.linspace(0.0, last, operator.index(worN), endpoint=include_nyquist and not whole)
    return 2.0 * np.pi * floating(worN) / fs


def _response(b: Any, a: Any, w: Any) -> Any:
    above, below = (_polynomial(c, w) for c in (b, a))
    return above / below


def _polynomial(c: Any, w: Any) -> Any:
    powers = np.arange(c.shape[0]).astype(w.dtype)
    return np.exp(-1j * w[..., None] * powers) @ c


def _in_precision_of(w: Any, *coefficients: Any) -> Any:
    """Angles in the precision of the coefficients."""
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
    """The response of a filter at frequencies, as ``scipy.signal.freqz``.

    Parameters
    ----------
    b, a : array_like
        Its coefficients, see `lfilter`.
    worN : int or array_like
        How many frequencies, or which.
    whole : bool, default False
        Whether up to the rate of samples, or to half of it.
    plot : None
        Of plain arrays only.
    fs : float or Tensor
        The rate of samples.
    include_nyquist : bool, default False

    Returns
    -------
    frequencies, response

    Notes
    -----
    Differentiable in `b`, `a`, the frequencies and `fs`. *Cost.* Their number times that of the
    coefficients.
    """
    if plot is not None:
        raise ArgumentError(
            f"freqz of a tensor does not plot. Plot what it returns{at(user_line())}."
        )
    b, a = coefficients_of("freqz", b, a)
    b, a = floating(b), as_array(a)
    a = a if a.dtype.kind in "fc" else casts.astype(a, b.dtype)
    w = _in_precision_of(angles(worN, whole, fs, include_nyquist), b, a)
    h = _response(b, a, w)
    return w * (fs / (2.0 * np.pi)), h


@counterpart(scipy.signal.sosfreqz)
def sosfreqz(sos: Any, worN: Any = 512, whole: bool = False, fs: Any = 2 * np.pi) -> Any:
    """The response of sections of order two, as ``scipy.signal.sosfreqz``; see `freqz`."""
    sos = floating(sos)
    if sos.ndim != 2 or sos.shape[1] != 6:
        raise ShapeError(
            f"sosfreqz with sections of shape {sos.shape}: give an array (n, 6){at(user_line())}."
        )
    w = angles(worN, whole, fs, False)
    h: Any = spread(np.ones((), complex), w.shape)
    for k in range(sos.shape[0]):
        h = h * _response(sos[k, :3], sos[k, 3:], w)
    return w * (fs / (2.0 * np.pi)), h
