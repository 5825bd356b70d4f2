"""NumPy's `fft`, for arrays and tensors.

    fft ifft rfft irfft hfft ihfft          along one axis
    fft2 ifft2 rfft2 irfft2                 along two
    fftn ifftn rfftn irfftn                 along any
    fftshift ifftshift fftfreq rfftfreq     frequencies and their order

For plain arrays the results are exactly NumPy's; with a tensor among the arguments the result is a
tensor.  All are composed of the three linear operations of _engine/ops/fft.py, axis by axis in the
order of NumPy.  A transform is linear, so its derivatives in both modes are transforms again.

The gradient with respect to complex operands is the direction of steepest ascent
(docs/conventions.md, 7): that of ``sum(abs(fft(x))**2)`` is ``2 * n * x``.  Components that irfft
ignores, the imaginary parts at frequency 0 and, for an even length, at the Nyquist frequency, have
gradient 0.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.lazy_import import public_dir
from wengert._engine.core.symbolic.dim import Dim, is_symbolic
from wengert._engine.ops import fft as fourier
from wengert._engine.tensor.numpy_dispatch import as_array, counterpart, numbers
from wengert._engine.tensor.operand_conversion import length

from ..errors import ArgumentError, ShapeError, at, user_line
from .minmax_norms import given
from .shape_manipulation import roll

__all__ = [
    *"fft ifft rfft irfft hfft ihfft rfftn irfftn rfft2 irfft2 fft2 ifft2 fftn ifftn".split(),
    *"fftshift ifftshift fftfreq rfftfreq".split(),
]

NORMS = {None: "backward", "backward": "backward", "ortho": "ortho", "forward": "forward"}


def _norm(norm: Any) -> str:
    if norm not in NORMS:
        raise ArgumentError(
            f"a Fourier transform with norm={norm!r}: expected 'backward', 'ortho' or 'forward'"
            f"{at(user_line())}."
        )
    return NORMS[norm]


def _axis(a: Any, axis: Any) -> int:
    axis = operator.index(axis)
    if not -a.ndim <= axis < a.ndim:
        raise np.exceptions.AxisError(axis, a.ndim)
    return axis


def _points(n: Any) -> Any:
    """The length of a transform, at least 1."""
    n = length(n)
    if not isinstance(n, Dim) and n < 1:
        raise ShapeError(
            f"a Fourier transform of {n} numbers: at least one is required. Pass n, the length to "
            f"zero-pad to{at(user_line())}."
        )
    return n


def _complex(a: Any, n: Any, axis: Any, norm: Any, inverse: bool) -> Any:
    a, axis = as_array(a), _axis(a, axis)
    n = _points(a.shape[axis] if n is None else n)
    return fourier.fft(a, n=n, axis=axis, norm=_norm(norm), keep=n, inverse=inverse)


# ---- along one axis ----------------------------------------------------------------------------


@counterpart(np.fft.fft)
def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The discrete Fourier transform, as ``numpy.fft.fft``.

    Parameters
    ----------
    a : array_like
        Real or complex; single precision stays single.
    n : int, optional
        The length to crop or zero-pad to; by default the length of the axis. It may be a symbolic
        size in a traced function.
    axis : int, default -1
    norm : {"backward", "ortho", "forward"}, optional
        Whether to divide by n in the inverse, by sqrt(n) in both directions, or by n here.
    out : Tensor or ndarray, optional

    Raises
    ------
    ShapeError
        The length is below one.
    ArgumentError
        Unknown norm.

    Notes
    -----
    *Cost.* O(n log n) per transform, and the same for a derivative.

    Examples
    --------
    By Parseval's theorem this is a multiple of ``sum(x**2)``, and so is its gradient:

    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda x: np.sum(np.abs(np.fft.fft(x, norm="ortho")) ** 2))(np.array([1.0, 2, 4]))
    array([2., 4., 8.])
    """
    return given(_complex(a, n, axis, norm, False), out)


@counterpart(np.fft.ifft)
def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `fft`, as ``numpy.fft.ifft``."""
    return given(_complex(a, n, axis, norm, True), out)


@counterpart(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The first n//2 + 1 frequencies of the transform of real input, as ``numpy.fft.rfft``.

    Raises
    ------
    DtypeError
        The operand is complex.
    """
    a, axis = as_array(a), _axis(a, axis)
    n = _points(a.shape[axis] if n is None else n)
    return given(fourier.rfft(a, n=n, axis=axis, norm=_norm(norm), keep=n // 2 + 1), out)


@counterpart(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `rfft`, as ``numpy.fft.irfft``; by default n = 2 (m - 1) for m frequencies.

    Examples
    --------
    The imaginary part at frequency 0 has no effect:

    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda y: np.fft.irfft(y)[0])(np.array([1 + 1j, 2j, 3j]))
    array([0.25+0.j, 0.5 +0.j, 0.25+0.j])
    """
    a, axis = as_array(a), _axis(a, axis)
    n = _points(2 * (a.shape[axis] - 1) if n is None else n)
    return given(fourier.irfft(a, n=n, axis=axis, norm=_norm(norm), keep=n), out)


@counterpart(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The real spectrum of a signal with Hermitian symmetry, as ``numpy.fft.hfft``."""
    return irfft(np.conjugate(as_array(a)), n, axis, fourier.SWAPPED[_norm(norm)], out)


@counterpart(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `hfft`, as ``numpy.fft.ihfft``."""
    return given(np.conjugate(rfft(a, n, axis, fourier.SWAPPED[_norm(norm)])), out)


# ---- along several axes ------------------------------------------------------------------------


def _lengths(a: Any, s: Any, axes: Any, halved: bool = False) -> tuple[list[Any], list[int]]:
    """Lengths and axes of the transform; `halved` if the last axis has n // 2 + 1 elements."""
    if axes is None:
        axes = range(-(a.ndim if s is None else len(s)), 0)
    axes = [_axis(a, k) for k in axes]
    if s is None:
        lengths = [a.shape[k] for k in axes]
        if halved and axes:
            lengths[-1] = 2 * (lengths[-1] - 1)
        return lengths, axes
    if len(s) != len(axes):
        raise ShapeError(
            f"a Fourier transform with {len(s)} lengths s={tuple(s)} along {len(axes)} axes: pass "
            f"a length for each axis{at(user_line())}."
        )
    own = (None, -1)
    return [a.shape[k] if n in own else length(n) for n, k in zip(s, axes, strict=True)], axes


def _require_axes(axes: Sequence[int], name: str) -> None:
    if not axes:
        raise ShapeError(
            f"{name} along no axis: it needs a last axis, which is halved. Pass at least one"
            f"{at(user_line())}."
        )


def _complex_along(a: Any, s: Any, axes: Any, norm: Any, inverse: bool) -> Any:
    a = as_array(a)
    for n, axis in reversed(list(zip(*_lengths(a, s, axes), strict=True))):
        a = _complex(a, n, axis, norm, inverse)
    return a


@counterpart(np.fft.fftn)
def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The transform along several axes, or all, as ``numpy.fft.fftn``.

    Parameters
    ----------
    a : array_like
    s : sequence of int, optional
        For each axis the length to crop or zero-pad to; -1 keeps the length.
    axes : sequence of int, optional
        By default all, or the last ``len(s)``.
    norm : {"backward", "ortho", "forward"}, optional
    out : Tensor or ndarray, optional
    """
    return given(_complex_along(a, s, axes, norm, False), out)


@counterpart(np.fft.ifftn)
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `fftn`, as ``numpy.fft.ifftn``."""
    return given(_complex_along(a, s, axes, norm, True), out)


@counterpart(np.fft.rfftn)
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """`rfft` along the last of the axes, `fft` along the others, as ``numpy.fft.rfftn``."""
    a = as_array(a)
    s, axes = _lengths(a, s, axes)
    _require_axes(axes, "rfftn")
    a = rfft(a, s[-1], axes[-1], norm)
    return given(_complex_along(a, s[:-1], axes[:-1], norm, False), out)


@counterpart(np.fft.irfftn)
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `rfftn`, as ``numpy.fft.irfftn``."""
    a = as_array(a)
    s, axes = _lengths(a, s, axes, halved=True)
    _require_axes(axes, "irfftn")
    for n, axis in zip(s[:-1], axes[:-1], strict=True):
        a = _complex(a, n, axis, norm, True)
    return irfft(a, s[-1], axes[-1], norm, out)


@counterpart(np.fft.fft2)
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """`fftn` along two axes, as ``numpy.fft.fft2``."""
    return given(_complex_along(a, s, axes, norm, False), out)


@counterpart(np.fft.ifft2)
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """The inverse of `fft2`, as ``numpy.fft.ifft2``."""
    return given(_complex_along(a, s, axes, norm, True), out)


@counterpart(np.fft.rfft2)
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """`rfftn` along two axes, as ``numpy.fft.rfft2``."""
    return rfftn(a, s, axes, norm, out)


@counterpart(np.fft.irfft2)
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """The inverse of `rfft2`, as ``numpy.fft.irfft2``."""
    return irfftn(a, s, axes, norm, out)


# ---- frequencies -------------------------------------------------------------------------------


def _roll_by(x: Any, axes: Any, by: Any) -> Any:
    x = as_array(x)
    if axes is None:
        axes = range(x.ndim)
    axes = tuple(axes) if isinstance(axes, Sequence) else (operator.index(axes),)
    return roll(x, tuple(by(x.shape[_axis(x, k)]) for k in axes), axes)


@counterpart(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    """Shift frequency zero to the center, as ``numpy.fft.fftshift``."""
    return _roll_by(x, axes, lambda n: n // 2)


@counterpart(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    """The inverse of `fftshift`, as ``numpy.fft.ifftshift``."""
    return _roll_by(x, axes, lambda n: -(n // 2))


def fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """The sample frequencies of `fft`, as ``numpy.fft.fftfreq``; `d` is differentiable.

    Parameters
    ----------
    n : int
        The length; it may be a symbolic size in a traced function.
    d : float or Tensor, default 1.0
        The sample spacing.
    """
    if not is_symbolic((n,)):
        return np.fft.fftfreq(n, d, device)
    k = numbers(n)
    return (k - n * (2 * k >= n)) / (n * d)


def rfftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """The sample frequencies of `rfft`, as ``numpy.fft.rfftfreq``; `d` is differentiable."""
    if not is_symbolic((n,)):
        return np.fft.rfftfreq(n, d, device)
    return numbers(n // 2 + 1) / (n * d)


__dir__ = public_dir(__name__)
