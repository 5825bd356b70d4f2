"""Filters in second-order sections, and zero-phase (forward-backward) filters.

    sosfilt, sosfilt_zi      sections of order two, one after the other
    filtfilt, sosfiltfilt    forwards and backwards in time, without delay

All are compositions of `lfilter` (recursive_filters.py), and differentiate as such, in O(n).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor, spread
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import counterpart
from .recursive_filters import coefficients_of, lfilter, lfilter_zi, operands_of

__all__ = ["filtfilt", "sosfilt", "sosfilt_zi", "sosfiltfilt"]


# ---- sections ----------------------------------------------------------------------------------


def _sections(name: str, sos: Any, *arrays: Any) -> list[Any]:
    sos, *rest = operands_of(name, sos, *arrays)
    if sos.ndim != 2 or sos.shape[1] != 6:
        raise ShapeError(
            f"{name} with sections of shape {sos.shape}: give an array (n, 6){at(user_line())}."
        )
    if not is_traced(sos) and np.any(value_of(sos)[:, 3] != 1):
        raise ArgumentError(
            f"{name}: in each section the coefficient sos[:, 3] is 1. Divide the section by it"
            f"{at(user_line())}."
        )
    return [sos, *rest]


@counterpart(scipy.signal.sosfilt)
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """A signal through sections of order two, one after the other, as ``scipy.signal.sosfilt``.

    Parameters
    ----------
    sos : array_like of shape (n, 6)
        Of each section three coefficients b and three of a, the first of which is 1.
    x : array_like
    axis : int, default -1
    zi : array_like, optional
        The states: shape (n, ..., 2, ...), with 2 along the axis of `x`.

    Notes
    -----
    Differentiable in `sos`, `x` and `zi`; by sos[:, 3] as if it could be something else than 1.
    """
    x = as_array(x)
    if not -x.ndim <= axis < x.ndim or x.ndim == 0:
        raise np.exceptions.AxisError(axis, x.ndim)
    given = [x] if zi is None else [x, as_array(zi)]
    sos, x, *states = _sections("sosfilt", sos, *given)
    wanted = [sos.shape[0], *x.shape]
    wanted[1 + axis % x.ndim] = 2
    if states and states[0].shape != tuple(wanted):
        raise ShapeError(
            f"sosfilt with zi of shape {states[0].shape}: for {sos.shape[0]} sections and a signal "
            f"of shape {x.shape} it has shape {tuple(wanted)}{at(user_line())}."
        )
    ends = []
    for k in range(sos.shape[0]):
        b, a = sos[k, :3], sos[k, 3:]
        if not states:
            x = lfilter(b, a, as_tensor(x), axis)
            continue
        x, end = lfilter(b, a, as_tensor(x), axis, states[0][k])
        ends.append(end)
    return (x, np.stack(ends)) if states else x


@counterpart(scipy.signal.sosfilt_zi)
def sosfilt_zi(sos: Any) -> Any:
    """The states of sections that have long been fed with ones, as ``scipy.signal.sosfilt_zi``."""
    (sos,) = _sections("sosfilt_zi", sos)
    scale: Any = 1.0
    states = []
    for k in range(sos.shape[0]):
        b, a = as_tensor(sos[k, :3]), sos[k, 3:]
        states.append(scale * lfilter_zi(b, a))
        scale = scale * (np.sum(b) / np.sum(a))
    return np.stack(states)


# ---- forwards and backwards --------------------------------------------------------------------


def _extended(name: str, x: Any, edge: int, padtype: Any) -> Any:
    """Lines continued beyond both ends."""
    if padtype not in ("odd", "even", "constant", None):
        raise ArgumentError(
            f"{name} with padtype={padtype!r}: it is 'odd', 'even', 'constant' or None"
            f"{at(user_line())}."
        )
    n = x.shape[-1]
    if not isinstance(n, Dim) and n <= edge:
        raise ShapeError(
            f"{name} of {n} samples, continued by {edge} at each end: it needs more. Pass a "
            f"smaller padlen={at(user_line())}."
        )
    if padtype is None or edge == 0:
        return x
    first, last = x[..., :1], x[..., n - 1 :]
    if padtype == "constant":
        shape = (*x.shape[:-1], edge)
        return np.concatenate([spread(first, shape), x, spread(last, shape)], axis=-1)
    before = x[..., 1 : edge + 1][..., ::-1]
    behind = x[..., n - edge - 1 : n - 1][..., ::-1]
    if padtype == "odd":
        before, behind = 2.0 * first - before, 2.0 * last - behind
    return np.concatenate([before, x, behind], axis=-1)


def _both_ways(run: Any, wide: Any, edge: int) -> Any:
    """Forwards and backwards, each time from the state that its first sample would have made."""
    for _ in range(2):
        wide = run(wide, wide[..., :1])[..., ::-1]
    return wide[..., edge : wide.shape[-1] - edge] if edge else wide


@counterpart(scipy.signal.filtfilt)
def filtfilt(
    b: Any,
    a: Any,
    x: Any,
    axis: int = -1,
    padtype: Any = "odd",
    padlen: int | None = None,
    method: str = "pad",
    irlen: int | None = None,
) -> Any:
    """A filter forwards and backwards in time, without delay, as ``scipy.signal.filtfilt``.

    Parameters
    ----------
    b, a, x, axis
        See `lfilter`.
    padtype : {"odd", "even", "constant", None}
        How the signal goes on beyond its ends.
    padlen : int, optional
        By how much: by default three times the number of coefficients.
    method : {"pad"}
        "gust" is for plain arrays only.
    irlen : int, optional
        Of "gust".
    """
    if method != "pad":
        raise ArgumentError(
            f"filtfilt of a tensor with method={method!r}: it is 'pad'{at(user_line())}."
        )
    b, a = coefficients_of("filtfilt", b, a)
    b, a, x = operands_of("filtfilt", b, a, x)
    edge = 3 * max(b.shape[0], a.shape[0]) if padlen is None else int(padlen)
    edge = 0 if padtype is None else edge
    wide = _extended("filtfilt", np.moveaxis(x, axis, -1), edge, padtype)
    state = lfilter_zi(as_tensor(b), a)

    def run(lines: Any, first: Any) -> Any:
        return lfilter(as_tensor(b), a, lines, zi=state * first)[0]

    return np.moveaxis(_both_ways(run, wide, edge), -1, axis)


@counterpart(scipy.signal.sosfiltfilt)
def sosfiltfilt(
    sos: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: int | None = None
) -> Any:
    """Sections forwards and backwards in time, as ``scipy.signal.sosfiltfilt``.

    Parameters
    ----------
    sos, x, axis
        See `sosfilt`.
    padtype, padlen
        See `filtfilt`. By default the length depends on which coefficients are 0; in a graph, that
        does not know them, on their number.
    """
    sos, x = _sections("sosfiltfilt", sos, x)
    taps = 2 * sos.shape[0] + 1
    if not is_traced(sos):
        zero = value_of(sos) == 0
        taps -= int(min(zero[:, 2].sum(), zero[:, 5].sum()))
    edge = 0 if padtype is None else 3 * taps if padlen is None else int(padlen)
    wide = _extended("sosfiltfilt", np.moveaxis(x, axis, -1), edge, padtype)
    states = sosfilt_zi(as_tensor(sos))
    states = states.reshape((states.shape[0], *((1,) * (wide.ndim - 1)), 2))

    def run(lines: Any, first: Any) -> Any:
        return sosfilt(as_tensor(sos), lines, zi=states * first)[0]

    return np.moveaxis(_both_ways(run, wide, edge), -1, axis)
