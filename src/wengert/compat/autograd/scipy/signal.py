"""The functions of `wengert.scipy.signal`, with autograd's `convolve`.

    convolve    convolution along some axes, with sums over others

autograd's signature differs from SciPy's: `axes` and `dot_axes` come before `mode`.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import shape_of

from ....errors import ArgumentError, ShapeError, at, user_line

__all__ = ["convolve"]
_MODES = ("full", "same", "valid")
Axes = Sequence[Sequence[int]]


def convolve(
    A: Any, B: Any, axes: Axes | None = None, dot_axes: Axes = ((), ()), mode: str = "full"
) -> Any:
    """Convolve two arrays along some axes and sum over others.

    Parameters
    ----------
    A, B : array or Tensor
    axes : pair of sequences of int, optional
        The axes of A and of B to convolve along, in pairs; by default all.
    dot_axes : pair of sequences of int
        The axes of A and of B to multiply and sum over, in pairs, as `np.tensordot` does.
    mode : {"full", "same", "valid"}
        As in SciPy; "same" has the size of A.

    Returns
    -------
    array or Tensor
        Its axes are the other axes of A, the other axes of B, and the convolved axes.

    Raises
    ------
    ArgumentError
        Another mode, or an axis that does not exist or is repeated.
    ShapeError
        Axes that are summed over differ in length; with "valid" neither array is larger along all
        axes.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.autograd.scipy.signal import convolve
    >>> convolve(np.ones((2, 3)), np.ones((2, 2)), axes=([1], [1]), dot_axes=([0], [0]))
    array([2., 4., 4., 2.])
    """
    if mode not in _MODES:
        raise ArgumentError(f"convolve: mode={mode!r} is not one of {_MODES}{at(user_line())}.")
    if axes is None and not any(map(len, dot_axes)):
        every: Any = importlib.import_module("wengert.scipy.signal").convolve
        return every(A, B, mode=mode)
    ndims = len(shape_of(A)), len(shape_of(B))
    axes = (range(ndims[0]), range(ndims[1])) if axes is None else axes
    along, over, rest = _partition_axes(ndims, axes, dot_axes)
    # both with the axes (others, summed, convolved)
    x, v = (np.transpose(array, (*rest[k], *over[k], *along[k])) for k, array in enumerate((A, B)))
    n, m = len(along[0]), len(over[0])
    _check_sums(shape_of(x), shape_of(v), n, m)
    long, short = shape_of(x)[len(rest[0]) + m :], shape_of(v)[len(rest[1]) + m :]
    swapped = mode == "valid" and any(a < b for a, b in zip(long, short, strict=True))
    if swapped:
        if any(a > b for a, b in zip(long, short, strict=True)):
            raise ShapeError(
                f'convolve with mode="valid": arrays of lengths {long} and {short} along the axes; '
                f"one of them must be larger along all axes{at(user_line())}."
            )
        x, v, short = v, x, long
    x = np.pad(x, [(0, 0)] * (x.ndim - n) + [_padding(k, mode) for k in short])
    positions = tuple(range(-n, 0))
    if n:
        x = np.lib.stride_tricks.sliding_window_view(x, short, axis=positions)
    return _product(x, np.flip(v, positions) if n else v, n, m, swapped)


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("wengert.scipy.signal"), name)


def __dir__() -> list[str]:
    return dir(importlib.import_module("wengert.scipy.signal"))


# ---- axes ----------------------------------------------------------------------------------------


def _partition_axes(ndims: Sequence[int], axes: Axes, dot_axes: Axes) -> tuple[Any, Any, Any]:
    """For both arrays: axes to convolve along, axes to sum over, other axes."""
    found: tuple[Any, Any, Any] = ([], [], [])
    for name, one, two in (("axes", *axes), ("dot_axes", *dot_axes)):
        if len(one) != len(two):
            raise ArgumentError(
                f"convolve: {name} has {len(one)} axes of A and {len(two)} of B. Pass equally many"
                f"{at(user_line())}."
            )
    for k, ndim in enumerate(ndims):
        chosen = [*axes[k], *dot_axes[k]]
        if not all(-ndim <= a < ndim for a in chosen):
            raise ArgumentError(
                f"convolve: axes {chosen} are out of range for an array with {ndim} axes"
                f"{at(user_line())}."
            )
        chosen = [a % ndim for a in chosen]
        if len(set(chosen)) < len(chosen):
            raise ArgumentError(f"convolve: axes {chosen} are repeated{at(user_line())}.")
        n = len(axes[k])
        found[0].append(chosen[:n])
        found[1].append(chosen[n:])
        found[2].append([a for a in range(ndim) if a not in chosen])
    return found


def _check_sums(x: Any, v: Any, n: int, m: int) -> None:
    one, two = (tuple(s[len(s) - n - m : len(s) - n]) for s in (x, v))
    if one != two:
        raise ShapeError(
            f"convolve: the axes to sum over have the lengths {one} and {two}{at(user_line())}."
        )


def _padding(length: Any, mode: str) -> tuple[Any, Any]:
    """The number of zeros before and after, for a kernel of this length."""
    if mode == "valid":
        return 0, 0
    after = length - 1 if mode == "full" else (length - 1) // 2
    return (length - 1 if mode == "full" else length - 1 - after), after


def _product(x: Any, v: Any, n: int, m: int, swapped: bool) -> Any:
    """Contract windows (..., summed, positions, window) with kernels (..., summed, window)."""
    subscripts = iter(range(x.ndim + v.ndim))
    window, summed, positions = ([next(subscripts) for _ in range(k)] for k in (n, m, n))
    of_x = [next(subscripts) for _ in range(x.ndim - 2 * n - m)]
    of_v = [next(subscripts) for _ in range(v.ndim - n - m)]
    stays = [*of_v, *of_x] if swapped else [*of_x, *of_v]
    first, second = [*of_x, *summed, *positions, *window], [*of_v, *summed, *window]
    return np.einsum(x, first, v, second, [*stays, *positions])
