"""Padding with PyTorch's order of widths and names of modes.

    pad    constant, reflected, replicated or periodic elements at the ends of the last axes

Widths are in pairs (before, after), those of the last axis first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.core.symbolic.dim import spelled
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .window_options import array_of

__all__ = ["pad"]

MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(x: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    """Add elements at the ends of the last axes; negative widths remove elements.

    Parameters
    ----------
    x : array or Tensor
    pad : sequence of int
        Pairs of widths (before, after), of the last axis, the one before it, and so on.
    mode : {"constant", "reflect", "replicate", "circular"}
        What is added: `value`; the elements reflected at the first and last one; the first and last
        one; or those of the other end. All but "constant" are for the spatial axes of (batch,
        channels, ...) or (channels, ...).
    value : float, optional
        For "constant"; default 0.

    Raises
    ------
    ArgumentError
        The widths are not pairs of integers, the mode is unknown or does not have a value.
    ShapeError
        There are more pairs than axes, or an axis is too short.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn import functional as F
    >>> F.pad(np.array([[1.0, 2.0, 3.0]]), (1, 2))
    array([[0., 1., 2., 3., 0., 0.]])
    >>> F.pad(np.array([[1.0, 2.0, 3.0]]), (2, 1), "reflect")
    array([[3., 2., 1., 2., 3., 2.]])
    """
    x = array_of(x)
    shape = shape_of(x)
    pairs = _pairs(pad, shape)
    if mode not in MODES:
        raise ArgumentError(
            f"pad: mode must be one of {', '.join(MODES)}, got {mode!r}{at(user_line())}."
        )
    if mode != "constant":
        if value not in (None, 0, 0.0):
            raise ArgumentError(
                f"pad: value={value!r} is an option of the mode constant; leave it out for "
                f"mode={mode!r}{at(user_line())}."
            )
        _check_lengths(pairs, shape, mode)
    crop = tuple([slice(max(-low, 0), None if high >= 0 else high) for low, high in pairs])
    x = x[crop] if any(c != slice(0, None) for c in crop) else x
    widths = [(max(low, 0), max(high, 0)) for low, high in pairs]
    if not any(map(any, widths)):
        return x
    if mode != "constant":
        return np.pad(x, widths, mode=MODES[mode])  # type: ignore[call-overload]
    fill = np.asarray(0 if value is None else value, dtype_of(x))
    return np.pad(x, widths, constant_values=fill)


def _pairs(given: Any, shape: Any) -> list[tuple[int, int]]:
    """Widths (before, after) of all axes, in order."""
    numbers: list[Any] = list(given) if isinstance(given, list | tuple) else [None]
    whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in numbers)
    if not whole or len(numbers) % 2:
        raise ArgumentError(
            f"pad: widths must be pairs of integers (before, after), the last axis first, got "
            f"{given!r}{at(user_line())}."
        )
    if len(numbers) > 2 * len(shape):
        raise ShapeError(
            f"pad: {len(numbers) // 2} pairs of widths for the {len(shape)} axes of shape "
            f"{spelled(shape)}{at(user_line())}."
        )
    last = [(int(numbers[k]), int(numbers[k + 1])) for k in range(0, len(numbers), 2)]
    return [(0, 0)] * (len(shape) - len(last)) + last[::-1]


def _check_lengths(pairs: Any, shape: Any, mode: str) -> None:
    """Check that reflected and periodic elements exist."""
    for n, (low, high) in zip(shape, pairs, strict=True):
        most = n - 1 if mode == "reflect" else n
        if isinstance(n, int) and max(low, high) > (
            most if mode != "replicate" else max(low, high)
        ):
            raise ShapeError(
                f"pad: widths {(low, high)} in mode {mode!r} must be at most {most} for an axis of "
                f"length {n}, of shape {spelled(shape)}{at(user_line())}."
            )
