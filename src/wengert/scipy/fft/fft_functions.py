"""The Fourier transforms of scipy.fft: those of `wengert.numpy.fft`, with SciPy's arguments.

Plain arrays are passed to SciPy; tensors use the same operations as NumPy's transforms.  hfft and
ihfft also have n-dimensional versions.  `overwrite_x`, `workers` and `plan` are ignored for
tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft

from wengert._engine.ops import casts
from wengert._engine.ops.fft import SWAPPED
from wengert._engine.tensor.numpy_dispatch import as_tensor
from wengert.errors import ArgumentError, at, user_line
from wengert.numpy import fft as numpy_fft

from ..dispatch import counterpart

__all__ = [
    "fft",
    "ifft",
    "rfft",
    "irfft",
    "hfft",
    "ihfft",
    "fft2",
    "ifft2",
    "rfft2",
    "irfft2",
    "hfft2",
    "ihfft2",
    "fftn",
    "ifftn",
    "rfftn",
    "irfftn",
    "hfftn",
    "ihfftn",
    "fftshift",
    "ifftshift",
    "fftfreq",
    "rfftfreq",
]

fftshift, ifftshift = numpy_fft.fftshift, numpy_fft.ifftshift
fftfreq, rfftfreq = numpy_fft.fftfreq, numpy_fft.rfftfreq


def _inverse_norm(norm: Any) -> str:
    known = "backward" if norm is None else norm
    if known not in SWAPPED:
        raise ArgumentError(
            f"a Fourier transform with norm={norm!r}: the norm must be 'backward', 'ortho' or "
            f"'forward'{at(user_line())}."
        )
    return SWAPPED[known]


def _half_to_single(x: Any) -> Any:
    """Convert half to single precision, as SciPy does."""
    return casts.astype(x, np.float32) if x.dtype == np.float16 else x


def _hfftn(x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    return numpy_fft.irfftn(np.conjugate(as_tensor(x)), s, axes, _inverse_norm(norm))


def _ihfftn(x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    return np.conjugate(numpy_fft.rfftn(as_tensor(x), s, axes, _inverse_norm(norm)))


def _along_one_axis(name: str) -> Any:
    """A transform along one axis."""
    run = getattr(numpy_fft, name)

    def transform(
        x: Any,
        n: Any = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Any:
        return run(_half_to_single(as_tensor(x)), n, axis, norm)

    return _as_scipy_function(
        transform, name, "one axis", "n : int, optional", "axis : int, default -1"
    )


def _along_axes(name: str, run: Any, default: Any) -> Any:
    """A transform along several axes."""

    def transform(
        x: Any,
        s: Any = None,
        axes: Any = default,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Any:
        lengths = [s] if s is not None and np.ndim(s) == 0 else s
        requested = [axes] if axes is not None and np.ndim(axes) == 0 else axes
        return run(_half_to_single(as_tensor(x)), lengths, requested, norm)

    where = "s : sequence of int, optional", "axes : sequence of int, optional"
    return _as_scipy_function(transform, name, "several axes", *where)


def _as_scipy_function(transform: Any, name: str, where: str, sizes: str, axes: str) -> Any:
    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"""Fourier transform along {where}, as ``scipy.fft.{name}``.

    Parameters
    ----------
    x : array_like
    {sizes}
        Lengths to which `x` is cropped or zero-padded.
    {axes}
    norm : {{"backward", "ortho", "forward"}}, optional
    overwrite_x, workers, plan
        Ignored for tensors.
    """
    return counterpart(getattr(scipy.fft, name))(transform)


fft, ifft, rfft, irfft, hfft, ihfft = map(_along_one_axis, "fft ifft rfft irfft hfft ihfft".split())
fftn, ifftn = (_along_axes(name, getattr(numpy_fft, name), None) for name in ("fftn", "ifftn"))
rfftn, irfftn = (_along_axes(name, getattr(numpy_fft, name), None) for name in ("rfftn", "irfftn"))
fft2, ifft2 = (_along_axes(name, getattr(numpy_fft, name), (-2, -1)) for name in ("fft2", "ifft2"))
rfft2, irfft2 = (
    _along_axes(name, getattr(numpy_fft, name), (-2, -1)) for name in ("rfft2", "irfft2")
)
hfftn, ihfftn = _along_axes("hfftn", _hfftn, None), _along_axes("ihfftn", _ihfftn, None)
hfft2, ihfft2 = _along_axes("hfft2", _hfftn, (-2, -1)), _along_axes("ihfft2", _ihfftn, (-2, -1))
