"""Filters in second-order sections, and zero-phase (forward-backward) filters.

    sosfilt, sosfilt_zi      cascades of second-order sections
    filtfilt, sosfiltfilt    zero-phase filters

All are compositions of `lfilter` (recursive_filters.py), whose rules differentiate them in O(n).
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
from .recursive_filters import cast_to_common_dtype, check_coefficients, lfilter, lfilter_zi

__all__ = ["filtfilt", "sosfilt", "sosfilt_zi", "sosfiltfilt"]


# ---- sections ----------------------------------------------------------------------------------


def _check_sos(name: str, sos: Any, *arrays: Any) -> list[Any]:
    """The sections and other operands in their common dtype; errors if `sos` is not valid."""
    sos, *rest = cast_to_common_dtype(name, sos, *arrays)
    if sos.ndim != 2 or sos.shape[1] != 6:
        raise ShapeError(
            f"{name} with sos of shape {sos.shape}: the shape must be (n, 6){at(user_line())}."
        )
    if not is_traced(sos) and np.any(value_of(sos)[:, 3] != 1):
        raise ArgumentError(
            f"{name} with sos[:, 3] of {value_of(sos)[:, 3]}: the leading denominator coefficient "
            f"of each section must be 1. Divide the sections by it{at(user_line())}."
        )
    return [sos, *rest]


@counterpart(scipy.signal.sosfilt)
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Filter a signal with cascaded second-order sections, as ``scipy.signal.sosfilt``.

    Parameters
    ----------
    sos : array_like
        Shape (n, 6): for each section three coefficients of the numerator and three of the
        denominator, the first of which must be 1.
    x : array_like
    axis : int, default -1
    zi : array_like, optional
        The initial states. Shape (n, ..., 2, ...), with 2 at the axis of `x`.

    Returns
    -------
    Tensor, or a pair (Tensor, final states) if `zi` is given

    Notes
    -----
    Differentiable with respect to `sos`, `x` and `zi`. The derivative with respect to sos[:, 3] is
    that of the filter whose sections are normalized by it.
    """
    x = as_array(x)
    if not -x.ndim <= axis < x.ndim or x.ndim == 0:
        raise np.exceptions.AxisError(axis, x.ndim)
    operands = [x] if zi is None else [x, as_array(zi)]
    sos, x, *states = _check_sos("sosfilt", sos, *operands)
    wanted = [sos.shape[0], *x.shape]
    wanted[1 + axis % x.ndim] = 2
    if states and states[0].shape != tuple(wanted):
        raise ShapeError(
            f"sosfilt with zi of shape {states[0].shape}: for {sos.shape[0]} sections and a signal "
            f"of shape {x.shape} the shape must be {tuple(wanted)}{at(user_line())}."
        )
    final_states = []
    for k in range(sos.shape[0]):
        b, a = sos[k, :3], sos[k, 3:]
        if not states:
            x = lfilter(b, a, as_tensor(x), axis)
            continue
        x, final = lfilter(b, a, as_tensor(x), axis, states[0][k])
        final_states.append(final)
    return (x, np.stack(final_states)) if states else x


@counterpart(scipy.signal.sosfilt_zi)
def sosfilt_zi(sos: Any) -> Any:
    """The steady states of the step response of sections, as ``scipy.signal.sosfilt_zi``."""
    (sos,) = _check_sos("sosfilt_zi", sos)
    gain: Any = 1.0  # at frequency 0, of the preceding sections
    states = []
    for k in range(sos.shape[0]):
        b, a = as_tensor(sos[k, :3]), sos[k, 3:]
        states.append(gain * lfilter_zi(b, a))
        gain = gain * (np.sum(b) / np.sum(a))
    return np.stack(states)


# ---- zero-phase filters ------------------------------------------------------------------------


def _extend_ends(name: str, x: Any, edge: int, padtype: Any) -> Any:
    """Extend the last axis by `edge` samples at both ends."""
    if padtype not in ("odd", "even", "constant", None):
        raise ArgumentError(
            f"{name} with padtype={padtype!r}: padtype must be 'odd', 'even', 'constant' or None"
            f"{at(user_line())}."
        )
    n = x.shape[-1]
    if not isinstance(n, Dim) and n <= edge:
        raise ShapeError(
            f"{name} of {n} samples with a padding of {edge}: the signal must be longer than its "
            f"padding. Pass a smaller padlen{at(user_line())}."
        )
    if padtype is None or edge == 0:
        return x
    first, last = x[..., :1], x[..., n - 1 :]
    if padtype == "constant":
        shape = (*x.shape[:-1], edge)
        return np.concatenate([spread(first, shape), x, spread(last, shape)], axis=-1)
    before = x[..., 1 : edge + 1][..., ::-1]
    after = x[..., n - edge - 1 : n - 1][..., ::-1]
    if padtype == "odd":
        before, after = 2.0 * first - before, 2.0 * last - after
    return np.concatenate([before, x, after], axis=-1)


def _forward_backward(run: Any, x: Any, edge: int) -> Any:
    """Filter forward and backward, and remove the extension.

    `run(x, first)` filters x with the steady state for a constant input `first` as initial state.
    """
    for _ in range(2):
        x = run(x, x[..., :1])[..., ::-1]
    return x[..., edge : x.shape[-1] - edge] if edge else x


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
    """Filter forward and backward, with zero phase, as ``scipy.signal.filtfilt``.

    Parameters
    ----------
    b, a, x, axis
        See `lfilter`.
    padtype : {"odd", "even", "constant", None}
        How the signal is extended at both ends.
    padlen : int, optional
        The number of samples by which it is extended; by default three times the number of
        coefficients.
    method : {"pad"}
        "gust" is not supported for tensors.
    irlen : int, optional
        Ignored: a parameter of "gust".
    """
    if method != "pad":
        raise ArgumentError(
            f"filtfilt of a tensor with method={method!r}: the method must be 'pad'"
            f"{at(user_line())}."
        )
    b, a = check_coefficients("filtfilt", b, a)
    b, a, x = cast_to_common_dtype("filtfilt", b, a, x)
    edge = 3 * max(b.shape[0], a.shape[0]) if padlen is None else int(padlen)
    edge = 0 if padtype is None else edge
    extended = _extend_ends("filtfilt", np.moveaxis(x, axis, -1), edge, padtype)
    state = lfilter_zi(as_tensor(b), a)

    def run(x: Any, first: Any) -> Any:
        return lfilter(as_tensor(b), a, x, zi=state * first)[0]

    return np.moveaxis(_forward_backward(run, extended, edge), -1, axis)


@counterpart(scipy.signal.sosfiltfilt)
def sosfiltfilt(
    sos: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: int | None = None
) -> Any:
    """Filter forward and backward with second-order sections, as ``scipy.signal.sosfiltfilt``.

    Parameters
    ----------
    sos, x, axis
        See `sosfilt`.
    padtype, padlen
        See `filtfilt`. The default of `padlen` depends on the number of coefficients that are not
        0, and while tracing, where their values are not known, on the number of all.
    """
    sos, x = _check_sos("sosfiltfilt", sos, x)
    taps = 2 * sos.shape[0] + 1
    if not is_traced(sos):
        is_zero = value_of(sos) == 0
        taps -= int(min(is_zero[:, 2].sum(), is_zero[:, 5].sum()))
    edge = 0 if padtype is None else 3 * taps if padlen is None else int(padlen)
    extended = _extend_ends("sosfiltfilt", np.moveaxis(x, axis, -1), edge, padtype)
    states = sosfilt_zi(as_tensor(sos))
    states = states.reshape((states.shape[0], *((1,) * (extended.ndim - 1)), 2))

    def run(x: Any, first: Any) -> Any:
        return sosfilt(as_tensor(sos), x, zi=states * first)[0]

    return np.moveaxis(_forward_backward(run, extended, edge), -1, axis)
