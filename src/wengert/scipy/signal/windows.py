"""scipy.signal.windows, differentiable with respect to shape parameters.

    kaiser, gaussian, general_gaussian, general_cosine, general_hamming, exponential, tukey
    get_window    by name, or by name and parameters, which may be tensors

All other names are SciPy's functions, which return constant arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal.windows
from scipy.signal import windows as scipy_windows

from wengert._engine.core.handle import value_of
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.tensor.numpy_dispatch import as_tensor

from ...errors import ArgumentError, at, user_line
from ...numpy.ranges_and_windows import i0
from ..dispatch import counterpart, floating, holds_tensors

__all__ = [*scipy_windows.__all__]


def __getattr__(name: str) -> Any:
    if name in scipy_windows.__all__:
        return getattr(scipy_windows, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _window(formula: Callable[..., Any]) -> Callable[..., Any]:
    """The window function `(M, *parameters, sym=True)` of a formula (a decorator).

    `formula(n, length, *parameters)` is its value at the indices n if the window is symmetric with
    `length` samples.  A periodic window of M samples is a symmetric one of M + 1 without the last.
    """

    def window(M: Any, *parameters: Any, sym: bool = True, **named: Any) -> Any:
        count = operator.index(M)
        if count < 0:
            raise ArgumentError(
                f"a window with M={count}: the number of samples must not be negative"
                f"{at(user_line())}."
            )
        if count <= 1:
            return as_tensor(np.ones(count))
        length = count if sym else count + 1
        return formula(np.arange(count) + 0.0, length, *parameters, **named)

    window.__name__ = formula.__name__
    window.__doc__ = formula.__doc__
    return counterpart(getattr(scipy_windows, formula.__name__))(window)


@_window
def kaiser(n: Any, length: int, beta: Any) -> Any:
    """Kaiser window, as ``scipy.signal.windows.kaiser``; differentiable w.r.t. `beta`."""
    half = (length - 1) / 2.0
    return i0(beta * np.sqrt(1.0 - ((n - half) / half) ** 2)) / i0(beta)


@_window
def gaussian(n: Any, length: int, std: Any) -> Any:
    """Gaussian window, as ``scipy.signal.windows.gaussian``; differentiable w.r.t. `std`."""
    return np.exp(-((n - (length - 1.0) / 2.0) ** 2) / (2.0 * std * std))


@_window
def general_gaussian(n: Any, length: int, p: Any, sig: Any) -> Any:
    """Generalized Gaussian window, as ``scipy.signal.windows.general_gaussian``.

    exp(-|n / sig|^(2 p) / 2); differentiable w.r.t. `p` and `sig`.
    """
    distance = np.abs(n - (length - 1.0) / 2.0) / as_tensor(floating(sig))
    center = value_of(distance) == 0
    return np.exp(-0.5 * choose(center, 0.0, choose(center, 1.0, distance) ** (2.0 * p)))


@_window
def general_cosine(n: Any, length: int, a: Any) -> Any:
    """Weighted sum of cosines, as ``scipy.signal.windows.general_cosine``."""
    angle = 2.0 * np.pi * n / (length - 1) - np.pi
    total: Any = 0.0
    weights = floating(a) if not isinstance(a, list | tuple) else list(a)
    for k in range(len(weights)):
        total = total + weights[k] * np.cos(k * angle)
    return total


@_window
def general_hamming(n: Any, length: int, alpha: Any) -> Any:
    """Generalized Hamming window, as ``scipy.signal.windows.general_hamming``."""
    return alpha + (1.0 - alpha) * np.cos(2.0 * np.pi * n / (length - 1) - np.pi)


@_window
def exponential(n: Any, length: int, center: Any = None, tau: Any = 1.0) -> Any:
    """Exponential window exp(-|n - center| / tau), as ``scipy.signal.windows.exponential``."""
    center = (length - 1) / 2 if center is None else center
    return np.exp(-np.abs(n - center) / tau)


@_window
def tukey(n: Any, length: int, alpha: Any = 0.5) -> Any:
    """Tukey (tapered cosine) window, as ``scipy.signal.windows.tukey``.

    Differentiable with respect to `alpha`. The number of samples in the tapers, which jumps with
    `alpha`, is held fixed.
    """
    last = length - 1.0
    fraction = choose(value_of(alpha) <= 0, 1.0, choose(value_of(alpha) >= 1.0, 1.0, alpha))
    width = np.floor(value_of(fraction) * last / 2.0)
    left = 0.5 * (1.0 + np.cos(np.pi * (-1.0 + 2.0 * n / (fraction * last))))
    right = 0.5 * (1.0 + np.cos(np.pi * (-2.0 / fraction + 1.0 + 2.0 * n / (fraction * last))))
    tapered = choose(n <= width, left, choose(n >= last - width, right, 1.0))
    return choose(value_of(alpha) <= 0, 1.0, tapered)


_DIFFERENTIABLE = {
    f.__name__: f
    for f in (
        kaiser,
        gaussian,
        general_gaussian,
        general_cosine,
        general_hamming,
        exponential,
        tukey,
    )
}


def get_window(window: Any, Nx: int, fftbins: bool = True) -> Any:
    """A window by name, as ``scipy.signal.get_window``; its parameters may be tensors.

    Parameters
    ----------
    window : str, float or tuple
        A name, a tuple of a name and parameters, or beta of a Kaiser window.
    Nx : int
        The number of samples.
    fftbins : bool, default True
        Whether the window is periodic, for use with FFTs, instead of symmetric.
    """
    if not holds_tensors(window):
        return scipy.signal.get_window(window, Nx, fftbins)
    name, *parameters = window if isinstance(window, tuple) else ("kaiser", window)
    sym = not fftbins
    for suffix, symmetric in (("_symmetric", True), ("_periodic", False)):
        if name.endswith(suffix):
            name, sym = name[: -len(suffix)], symmetric
    if name not in _DIFFERENTIABLE:
        raise ArgumentError(
            f"get_window of {name!r} with a tensor: windows whose parameters may be tensors are "
            f"{', '.join(_DIFFERENTIABLE)}{at(user_line())}."
        )
    return _DIFFERENTIABLE[name](Nx, *parameters, sym=sym)
