"""SciPy's names of Fourier transforms: those of `wengert.numpy.fft`, with SciPy's arguments.

Plain arrays are passed to SciPy; tensors use the same operations as NumPy's transforms.  hfft and
ihfft also have n-dimensional versions.  `overwrite_x`, `workers` and `plan` have no effect on
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
from wengert.numpy import fft as numpys

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

fftshift, ifftshift = numpys.fftshift, numpys.ifftshift
fftfreq, rfftfreq = numpys.fftfreq, numpys.rfftfreq


def _swapped(norm: Any) -> str:
    known = "backward" if norm is None else norm
    if known not in SWAPPED:
        raise ArgumentError(
            f"a Fourier transform with norm={norm!r}: it is 'backward', 'ortho' or 'forward'"
            f"{at(user_line())}."
        )
    return SWAPPED[known]


def _single(x: Any) -> Any:
    """Convert half to single precision, as SciPy does."""
    return casts.astype(x, np.float32) if x.dtype == np.float16 else x


def _hfftn(x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    return numpys.irfftn(np.conjugate(as_tensor(x)), s, axes, _swapped(norm))


def _ihfftn(x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    return np.conjugate(numpys.rfftn(as_tensor(x), s, axes, _swapped(norm)))


def _one(name: str) -> Any:
    """A transform along one axis."""
    run = getattr(numpys, name)

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
        return run(_single(as_tensor(x)), n, axis, norm)

    return _named(transform, name, "one axis", "n : int, optional", "axis : int, default -1")


def _many(name: str, run: Any, default: Any) -> Any:
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
        chosen = [axes] if axes is not None and np.ndim(axes) == 0 else axes
        return run(_single(as_tensor(x)), lengths, chosen, norm)

    where = "s : sequence of int, optional", "axes : sequence of int, optional"
    return _named(transform, name, "several axes", *where)


def _named(transform: Any, name: str, where: str, sizes: str, axes: str) -> Any:
    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"""The transform along {where} that ``scipy.fft.{name}`` is.

    Parameters
    ----------
    x : array_like
    {sizes}
        To crop or to fill up with zeros to.
    {axes}
    norm : {{"backward", "ortho", "forward"}}, optional
    overwrite_x, workers, plan
        Of no effect on tensors.
    """
    return counterpart(getattr(scipy.fft, name))(transform)


fft, ifft, rfft, irfft, hfft, ihfft = map(_one, "fft ifft rfft irfft hfft ihfft".split())
fftn, ifftn = (_many(name, getattr(numpys, name), None) for name in ("fftn", "ifftn"))
rfftn, irfftn = (_many(name, getattr(numpys, name), None) for name in ("rfftn", "irfftn"))
fft2, ifft2 = (_many(name, getattr(numpys, name), (-2, -1)) for name in ("fft2", "ifft2"))
rfft2, irfft2 = (_many(name, getattr(numpys, name), (-2, -1)) for name in ("rfft2", "irfft2"))
hfftn, ihfftn = _many("hfftn", _hfftn, None), _many("ihfftn", _ihfftn, None)
hfft2, ihfft2 = _many("hfft2", _hfftn, (-2, -1)), _many("ihfft2", _ihfftn, (-2, -1))
