"""scipy.signal.windows: differentiable in the shape parameters of the windows that have them.

    kaiser, gaussian, general_gaussian, general_cosine, general_hamming, exponential, tukey
    get_window    by name, or by name and parameters, which may be tensors

Every other name is SciPy's own function: its window is a constant.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal.windows
from scipy.signal import windows as scipys

from wengert._engine.core.handle import value_of
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.tensor.numpy_dispatch import as_tensor

from ...errors import ArgumentError, at, user_line
from ...numpy.windows import i0
from ..dispatch import counterpart, floating, holds_tensors

__all__ = [*scipys.__all__]


def __getattr__(name: str) -> Any:
    if name in scipys.__all__:
        return getattr(scipys, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _places(count: Any, sym: bool) -> tuple[Any, int, int]:
    """The numbers 0, 1 ... of a window, how many it is symmetric over, how many are wanted."""
    wanted = operator.index(count)
    if wanted < 0:
        raise ArgumentError(
            f"a window of {wanted} numbers: their number is 0 at least{at(user_line())}."
        )
    whole = wanted if sym else wanted + 1
    return np.arange(whole)[:wanted] + 0.0, whole, wanted


def _window(shape: Callable[..., Any]) -> Callable[..., Any]:
    """A window by its formula: `shape(places, whole, *parameters)`; enters SciPy's of that name."""

    def ours(M: Any, *parameters: Any, sym: bool = True, **named: Any) -> Any:
        places, whole, wanted = _places(M, sym)
        if wanted <= 1:
            return as_tensor(np.ones(wanted))
        return shape(places, whole, *parameters, **named)

    ours.__name__ = shape.__name__
    ours.__doc__ = shape.__doc__
    return counterpart(getattr(scipys, shape.__name__))(ours)


@_window
def kaiser(n: Any, whole: int, beta: Any) -> Any:
    """Kaiser's window, as ``scipy.signal.windows.kaiser``; differentiable in `beta`."""
    half = (whole - 1) / 2.0
    return i0(beta * np.sqrt(1.0 - ((n - half) / half) ** 2)) / i0(beta)


@_window
def gaussian(n: Any, whole: int, std: Any) -> Any:
    """Gauss's window, as ``scipy.signal.windows.gaussian``; differentiable in `std`."""
    return np.exp(-((n - (whole - 1.0) / 2.0) ** 2) / (2.0 * std * std))


@_window
def general_gaussian(n: Any, whole: int, p: Any, sig: Any) -> Any:
    """A window exp(-|n / sig|^2p / 2), as ``scipy.signal.windows.general_gaussian``."""
    away = np.abs(n - (whole - 1.0) / 2.0) / as_tensor(floating(sig))
    middle = value_of(away) == 0
    return np.exp(-0.5 * choose(middle, 0.0, choose(middle, 1.0, away) ** (2.0 * p)))


@_window
def general_cosine(n: Any, whole: int, a: Any) -> Any:
    """A sum of cosines with weights `a`, as ``scipy.signal.windows.general_cosine``."""
    angle = 2.0 * np.pi * n / (whole - 1) - np.pi
    total: Any = 0.0
    weights = floating(a) if not isinstance(a, list | tuple) else list(a)
    for k in range(len(weights)):
        total = total + weights[k] * np.cos(k * angle)
    return total


@_window
def general_hamming(n: Any, whole: int, alpha: Any) -> Any:
    """A raised cosine, as ``scipy.signal.windows.general_hamming``; differentiable in `alpha`."""
    return alpha + (1.0 - alpha) * np.cos(2.0 * np.pi * n / (whole - 1) - np.pi)


@_window
def exponential(n: Any, whole: int, center: Any = None, tau: Any = 1.0) -> Any:
    """A window exp(-|n - center| / tau), as ``scipy.signal.windows.exponential``."""
    center = (whole - 1) / 2 if center is None else center
    return np.exp(-np.abs(n - center) / tau)


@_window
def tukey(n: Any, whole: int, alpha: Any = 0.5) -> Any:
    """A cosine at both ends and ones between them, as ``scipy.signal.windows.tukey``.

    Differentiable with respect to `alpha`, of which the length of the ends is a step.
    """
    last = whole - 1.0
    part = choose(value_of(alpha) <= 0, 1.0, choose(value_of(alpha) >= 1.0, 1.0, alpha))
    width = np.floor(value_of(part) * last / 2.0)
    low = 0.5 * (1.0 + np.cos(np.pi * (-1.0 + 2.0 * n / (part * last))))
    high = 0.5 * (1.0 + np.cos(np.pi * (-2.0 / part + 1.0 + 2.0 * n / (part * last))))
    tapered = choose(n <= width, low, choose(n >= last - width, high, 1.0))
    return choose(value_of(alpha) <= 0, 1.0, tapered)


OURS = {
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
    """A window by name, as ``scipy.signal.get_window``; parameters may be tensors.

    Parameters
    ----------
    window : str, float or tuple
        A name, a name and parameters, or beta of Kaiser's window.
    Nx : int
    fftbins : bool, default True
        Whether it is one period of a periodic window, and not symmetric.
    """
    if not holds_tensors(window):
        return scipy.signal.get_window(window, Nx, fftbins)
    name, *parameters = window if isinstance(window, tuple) else ("kaiser", window)
    sym = not fftbins
    for ending, meant in (("_symmetric", True), ("_periodic", False)):
        if name.endswith(ending):
            name, sym = name[: -len(ending)], meant
    if name not in OURS:
        raise ArgumentError(
            f"get_window with the name {name!r} and a tensor: those with a parameter to "
            f"differentiate by are {', '.join(OURS)}{at(user_line())}."
        )
    return OURS[name](Nx, *parameters, sym=sym)
