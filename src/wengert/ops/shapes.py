"""Shapes: reshape, transpose, axes of length one, reversal, rotation, diagonals, copies.

All are linear and move elements without computing; where NumPy returns a view, so do these, and a
handle on the result stays linked with its base (core/handle.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kinds.linear import linear
from .indexing import Hole, scatter


@linear(view=True, oracle="numpy")
def reshape(x, *, shape, order="C"):
    """The same elements in another shape; one length may be -1."""
    return np.reshape(x, shape, order=order)


@reshape.transpose
def _reshape_back(t, x, *, shape, order="C"):
    return reshape(t, shape=tuple(x.shape), order=order)


@reshape.examples
def _(rng):
    yield (rng.normal(size=(2, 6)),), {"shape": (3, 4)}
    yield (rng.normal(size=(2, 0)),), {"shape": (0,)}


@reshape.put
def _reshape_put(base, view, *, shape, order="C"):
    return reshape(view, shape=tuple(base.shape), order=order)


@linear(view=True, oracle="numpy")
def transpose(x, *, axes=None):
    """Axes in another order; reversed if None."""
    return np.transpose(x, axes)


def _inverse(axes: Any) -> Any:
    if axes is None:
        return None
    n = len(axes)
    return tuple(int(i) for i in np.argsort([a % n for a in axes]))


@transpose.transpose
def _transpose_back(t, x, *, axes=None):
    return transpose(t, axes=_inverse(axes))


@transpose.put
def _transpose_put(base, view, *, axes=None):
    return transpose(view, axes=_inverse(axes))


@transpose.examples
def _(rng):
    yield (rng.normal(size=(2, 3, 4)),), {}
    yield (rng.normal(size=(2, 3, 4)),), {"axes": (1, -1, 0)}
    yield (rng.normal(size=()),), {}


@linear(view=True, oracle="numpy")
def expand_dims(x, *, axis):
    """New axes of length one."""
    return np.expand_dims(x, axis)


@expand_dims.examples
def _(rng):
    yield (rng.normal(size=(2, 3)),), {"axis": 1}
    yield (rng.normal(size=(2,)),), {"axis": (0, -1)}


@linear(view=True, oracle="numpy")
def squeeze(x, *, axis=None):
    """Without the axes of length one, or without the given ones."""
    return np.squeeze(x, axis)


@squeeze.examples
def _(rng):
    yield (rng.normal(size=(1, 3, 1)),), {}
    yield (rng.normal(size=(1, 3, 1)),), {"axis": 2}
    yield (rng.normal(size=(1, 1)),), {}


def _same_elements(t, x, **_):
    return reshape(t, shape=tuple(x.shape))


def _same_elements_put(base, view, **_):
    return reshape(view, shape=tuple(base.shape))


for _op in (expand_dims, squeeze):
    _op.transpose(_same_elements)
    _op.put(_same_elements_put)


@linear(view=True, oracle="numpy")
def flip(x, *, axis=None):
    """Elements in reverse order along some axes, or all."""
    return np.flip(x, axis)


@flip.transpose
def _flip_back(t, x, *, axis=None):
    return flip(t, axis=axis)


@flip.put
def _flip_put(base, view, *, axis=None):
    return flip(view, axis=axis)


@flip.examples
def _(rng):
    yield (rng.normal(size=(2, 3)),), {}
    yield (rng.normal(size=(2, 3)),), {"axis": (0,)}
    yield (rng.normal(size=(0, 3)),), {"axis": 1}


@linear(oracle="numpy")
def roll(x, *, shift, axis=None):
    """Elements moved along axes, those pushed out at the end coming in at the front."""
    return np.roll(x, shift, axis)


@roll.transpose
def _roll_back(t, x, *, shift, axis=None):
    back = tuple(-n for n in shift) if isinstance(shift, tuple) else -shift
    return roll(t, shift=back, axis=axis)


@roll.examples
def _(rng):
    yield (rng.normal(size=(2, 3)),), {"shift": 2}
    yield (rng.normal(size=(2, 3)),), {"shift": (1, -2), "axis": (0, 1)}
    yield (rng.normal(size=(0,)),), {"shift": 1}


@linear(oracle="numpy")
def copy(x, *, order="K"):
    """The same elements, in memory of their own as far as writing is concerned."""
    # Values never change, so memory is shared where the layout is that of NumPy's copy.
    return x if type(x) is not np.ndarray or is_compact(x, order) else x.copy(order)


@copy.transpose
def _copy_back(t, x, *, order="K"):
    return t


@copy.examples
def _(rng):
    yield (rng.normal(size=(2, 3)),), {}
    yield (rng.normal(size=(2, 3)).T,), {"order": "C"}
    yield (rng.normal(size=(2, 3)),), {"order": "F"}


def is_compact(x: np.ndarray[Any, Any], order: str = "K") -> bool:
    """Whether a copy of the array in that order would be laid out as the array is."""
    if order == "C" or (order == "A" and not x.flags.f_contiguous):
        return x.flags.c_contiguous
    if order in ("F", "A"):
        return x.flags.f_contiguous
    return x.flags.c_contiguous or x.strides == np.empty_like(x).strides


@linear(view=True, oracle="numpy")
def diagonal(x, *, offset=0, axis1=0, axis2=1):
    """The diagonal of the matrices in two axes, as a new last axis; read-only, as in NumPy."""
    return np.diagonal(x, offset, axis1, axis2)


@diagonal.transpose
def _diagonal_back(t, x, *, offset=0, axis1=0, axis2=1):
    rows, columns = x.shape[axis1], x.shape[axis2]
    n = t.shape[-1]
    i = np.arange(n) + max(-offset, 0)
    j = np.arange(n) + max(offset, 0)
    z = scatter(t, i, j, index=(Ellipsis, Hole(0), Hole(1)), shape=(*t.shape[:-1], rows, columns))
    order = [k for k in range(x.ndim) if k not in (axis1 % x.ndim, axis2 % x.ndim)]
    order += [axis1 % x.ndim, axis2 % x.ndim]
    return transpose(z, axes=_inverse(order))


@diagonal.examples
def _(rng):
    yield (rng.normal(size=(3, 4)),), {"offset": 1}
    yield (rng.normal(size=(3, 4)),), {"offset": -2}
    yield (rng.normal(size=(3, 2, 3)),), {"axis1": 2, "axis2": 0}
    yield (rng.normal(size=(2, 2)),), {"offset": 5}
