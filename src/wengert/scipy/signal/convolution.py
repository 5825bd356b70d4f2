"""Convolution and correlation in any number of axes, directly or by Fourier transforms.

    convolve, correlate        the whole arrays, direct or by transforms, whichever is faster
    fftconvolve, oaconvolve    by transforms, along chosen axes
    convolve2d, correlate2d    of two axes, directly, with what lies beyond the edges

Directly it is one bilinear operation with two forms, which are each other's derivatives:

    signal.convolve   all places where the two meet: y_i = sum_k x_{i-k} v_k
    signal.slide      the places where v fits into x: y_i = sum_k x_{i+k} v_k

Along one axis these are the operations of _engine/ops/sorting.py, which native code has kernels
for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft
import scipy.signal

from wengert._engine.core.handle import shape_of
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import require_at_least
from wengert._engine.core.symbolic.dim import is_symbolic
from wengert._engine.kinds.opaque import opaque
from wengert._engine.ops import casts, sorting
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor, plain

from ...errors import ArgumentError, ShapeError, at, user_line
from ...numpy import fft
from ...numpy.padding import pad
from ..dispatch import counterpart

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve", "oaconvolve"]


# ---- the two operations ------------------------------------------------------------------------


def _convolve_by_hand(x, v):
    out = np.zeros([n + m - 1 for n, m in zip(x.shape, v.shape, strict=True)], np.result_type(x, v))
    for k in np.ndindex(*v.shape):
        out[tuple(slice(i, i + n) for i, n in zip(k, x.shape, strict=True))] += v[k] * x
    return out


def _slide_by_hand(x, v):
    windows = np.lib.stride_tricks.sliding_window_view(x, v.shape)
    axes = tuple(range(x.ndim))
    return np.tensordot(windows, v, (tuple(a + x.ndim for a in axes), axes))


@opaque(name="signal.convolve", trusted=True, oracle=_convolve_by_hand)
def full(x, v):
    """c_i = sum_k x_{i-k} v_k, for all i where they meet, in any number of axes."""
    return scipy.signal.convolve(x, v, "full", "direct")


@opaque(name="signal.slide", trusted=True, oracle=_slide_by_hand)
def slide(x, v):
    """s_i = sum_k x_{i+k} v_k, for all i where v fits; nothing is conjugated."""
    return scipy.signal.correlate(x, np.conj(v), "valid", "direct")


def _conj(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


@full.define_vjp
def _full_vjp(t, out, x, v):
    return slide(t, _conj(v)), slide(t, _conj(x))


@slide.define_vjp
def _slide_vjp(t, out, x, v):
    return full(t, _conj(v)), slide(_conj(x), t)


def _bilinear(op: Any) -> None:
    @op.define_jvp
    def jvp(dots, out, x, v):
        parts = [op(dots[0], v)] if dots[0] is not None else []
        parts += [op(x, dots[1])] if dots[1] is not None else []
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    @op.batch
    def rows(args, batched, size):
        x, v = args
        if all(batched) or size == 0:
            return NotImplemented
        if batched[0]:
            return op(x, v[None])
        return op(x[None], v) if op is full else NotImplemented

    @op.examples
    def examples(rng):
        yield (rng.normal(size=(3, 2)), rng.normal(size=(2, 1))), {}
        x, v = rng.normal(size=(2, 2, 2)) + 1j * rng.normal(size=(2, 2, 2))
        yield (x, v[:1]), {}


@full.spec
def _(x: Spec, v: Spec) -> Spec:
    shape = tuple(n + m - 1 for n, m in zip(x.shape, v.shape, strict=True))
    return Spec(shape, np.result_type(x.dtype, v.dtype))


@slide.spec
def _(x: Spec, v: Spec) -> Spec:
    shape = []
    for n, m in zip(x.shape, v.shape, strict=True):
        require_at_least(n, m, f"a correlation of {x.shape} and {v.shape}")
        shape.append(n - m + 1)
    return Spec(tuple(shape), np.result_type(x.dtype, v.dtype))


for _op in (full, slide):
    _bilinear(_op)


# ---- as users call it --------------------------------------------------------------------------


def _pair(in1: Any, in2: Any, name: str, ndim: int | None = None) -> tuple[Any, Any]:
    """Both as arrays or tensors of one dtype with as many axes."""
    x, v = as_array(in1), as_array(in2)
    if x.ndim != v.ndim or (ndim is not None and x.ndim != ndim):
        raise ShapeError(
            f"{name} of arrays of shape {x.shape} and {v.shape}: both need "
            f"{'the same number of' if ndim is None else ndim} axes{at(user_line())}."
        )
    for n in (*x.shape, *v.shape):
        if type(n) is int and n == 0:
            raise ShapeError(
                f"{name} of arrays of shape {x.shape} and {v.shape}: one has no "
                f"elements{at(user_line())}."
            )
    wanted = np.result_type(x.dtype, v.dtype)
    pair = [a if a.dtype == wanted else casts.astype(a, wanted) for a in (x, v)]
    return pair[0], pair[1]


def _checked(mode: Any, name: str) -> None:
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(
            f"{name} with mode={mode!r}: it is 'full', 'same' or 'valid'{at(user_line())}."
        )


def _larger_first(x: Any, v: Any, name: str, axes: Any) -> bool:
    """Whether the second array is the one that the first fits into.

    Raises
    ------
    ShapeError
        Neither fits into the other.
    """
    n, m = [x.shape[k] for k in axes], [v.shape[k] for k in axes]
    if all(a >= b for a, b in zip(n, m, strict=True)):
        return False
    if all(b >= a for a, b in zip(n, m, strict=True)):
        return True
    raise ShapeError(
        f"{name} of arrays of shape {x.shape} and {v.shape} with mode='valid': one has to fit into "
        f"the other along every axis{at(user_line())}."
    )


def _center(y: Any, shape: Any) -> Any:
    """The part of that shape in the middle."""
    if y.shape == tuple(shape):
        return y
    starts = [(have - want) // 2 for have, want in zip(y.shape, shape, strict=True)]
    return y[tuple(slice(s, s + n) for s, n in zip(starts, shape, strict=True))]


def _direct(x: Any, v: Any, mode: str, name: str) -> Any:
    one = x.ndim == 1
    if mode == "valid":
        if _larger_first(x, v, name, range(x.ndim)):
            x, v = v, x
        return sorting.slide(x, v[::-1]) if one else slide(x, np.flip(v))
    y = sorting.convolve(x, v) if one else full(x, v)
    return y if mode == "full" else _center(y, x.shape)


@counterpart(scipy.signal.convolve)
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The convolution of two arrays, as ``scipy.signal.convolve``; linear in each.

    Parameters
    ----------
    in1, in2 : array_like
        The same number of axes.
    mode : {"full", "same", "valid"}
        All places where they meet, those in the middle, as many as `in1` has, or those where one
        fits into the other.
    method : {"auto", "direct", "fft"}
        "auto" is what SciPy finds faster for these shapes.

    Raises
    ------
    ShapeError, ArgumentError
        The shapes do not fit; no such mode or method.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import convolve
    >>> wg.grad(lambda v: np.sum(convolve(np.array([1.0, 2.0, 3.0]), v, "valid")))(np.ones(2))
    array([5., 3.])
    """
    x, v = _pair(in1, in2, "convolve")
    _checked(mode, "convolve")
    if x.ndim == 0:
        return x * v
    if x.dtype.kind not in "fc":
        return as_tensor(scipy.signal.convolve(plain(x), plain(v), mode, method))
    if method == "auto":
        known = not is_symbolic((*x.shape, *v.shape))
        method = _faster(x, v, mode) if known else "direct"
    if method == "fft":
        return fftconvolve(x, v, mode)
    if method != "direct":
        raise ArgumentError(
            f"convolve with method={method!r}: it is 'auto', 'direct' or 'fft'{at(user_line())}."
        )
    return _direct(x, v, mode, "convolve")


def _faster(x: Any, v: Any, mode: str) -> str:
    """SciPy's choice, which depends on shapes alone."""
    if mode == "valid" and _larger_first(x, v, "convolve", range(x.ndim)):
        x, v = v, x
    stand_ins = [np.broadcast_to(a.dtype.type(0), a.shape) for a in (x, v)]
    return scipy.signal.choose_conv_method(*stand_ins, mode=mode)  # type: ignore[no-any-return]


@counterpart(scipy.signal.correlate)
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The cross-correlation, as ``scipy.signal.correlate``: `in2` is conjugated.

    Parameters
    ----------
    in1, in2, mode, method
        See `convolve`.
    """
    x, v = _pair(in1, in2, "correlate")
    v = _conj(v)
    return convolve(as_tensor(x), np.flip(v) if v.ndim else v, mode, method)


# ---- by transforms -----------------------------------------------------------------------------


@counterpart(scipy.signal.fftconvolve)
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The convolution by Fourier transforms, as ``scipy.signal.fftconvolve``.

    Parameters
    ----------
    in1, in2 : array_like
        The same number of axes; those along which they are not convolved broadcast.
    mode : {"full", "same", "valid"}
        See `convolve`.
    axes : int or sequence of int, optional
        By default all.

    Notes
    -----
    *Cost.* O(n log n) of the size of the full result, and so are derivatives, which transform
    again. NaN or infinity anywhere in the operands spreads over the whole result.
    """
    x, v = _pair(in1, in2, "fftconvolve")
    _checked(mode, "fftconvolve")
    if x.ndim == 0:
        return x * v
    chosen = range(x.ndim) if axes is None else axes if isinstance(axes, list | tuple) else [axes]
    along = sorted({int(k) % x.ndim for k in chosen if -x.ndim <= k < x.ndim})
    if len(along) != len(list(chosen)) or not along:
        raise ArgumentError(
            f"fftconvolve of {x.ndim} axes along axes={axes}: name some of them, each once"
            f"{at(user_line())}."
        )
    # Along axes of length one it is a product, which broadcasts.
    along = [k for k in along if x.shape[k] != 1 and v.shape[k] != 1]
    if mode == "valid" and _larger_first(x, v, "fftconvolve", along):
        x, v = v, x
    y = _by_transforms(x, v, along)
    if mode == "full":
        return y
    short = mode == "valid"
    shape = [
        y.shape[k] if short and k not in along else x.shape[k] - (v.shape[k] - 1 if short else 0)
        for k in range(x.ndim)
    ]
    return _center(y, shape)


def _by_transforms(x: Any, v: Any, along: list[int]) -> Any:
    if not along:
        return x * v
    lengths = [x.shape[k] + v.shape[k] - 1 for k in along]
    real = x.dtype.kind != "c"
    sizes = [n if is_symbolic((n,)) else scipy.fft.next_fast_len(n, real) for n in lengths]
    forth, back = (fft.rfftn, fft.irfftn) if real else (fft.fftn, fft.ifftn)
    x, v = as_tensor(x), as_tensor(v)  # the sizes may have names
    y = back(forth(x, sizes, along) * forth(v, sizes, along), sizes, along)
    part = [slice(None)] * x.ndim
    for k, n in zip(along, lengths, strict=True):
        part[k] = slice(0, n)
    return y[tuple(part)]


@counterpart(scipy.signal.oaconvolve)
def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The convolution of a long with a short array, as ``scipy.signal.oaconvolve``.

    Of tensors it is `fftconvolve`: the same values, in one piece.
    """
    return fftconvolve(as_tensor(in1), in2, mode, axes)


# ---- two axes, with edges ----------------------------------------------------------------------

BEYOND = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


@counterpart(scipy.signal.convolve2d)
def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    """The convolution of two images, as ``scipy.signal.convolve2d``.

    Parameters
    ----------
    in1, in2 : array_like of two axes
    mode : {"full", "same", "valid"}
        See `convolve`.
    boundary : {"fill", "wrap", "symm"}
        What lies beyond the edges of `in1`: `fillvalue`, the image again, or its mirror image.
    fillvalue : float or Tensor, default 0

    Notes
    -----
    *Cost.* The product of the sizes, as SciPy's; differentiable in both and in `fillvalue`.
    """
    x, v = _pair(in1, in2, "convolve2d", 2)
    _checked(mode, "convolve2d")
    if boundary not in BEYOND:
        raise ArgumentError(
            f"convolve2d with boundary={boundary!r}: it is 'fill', 'wrap' or 'symm'"
            f"{at(user_line())}."
        )
    if x.dtype.kind not in "fc":
        x, v = casts.astype(x, float), casts.astype(v, float)
    plainly = boundary == "fill" and not shape_of(fillvalue) and _is_zero(fillvalue)
    if plainly or mode == "valid":
        return _direct(x, v, mode, "convolve2d")
    edges = [(n - 1, n - 1) for n in v.shape]
    options = {"constant_values": fillvalue} if boundary == "fill" else {}
    wide = pad(as_tensor(x), edges, BEYOND[boundary], **options)
    y = slide(wide, np.flip(v))
    return y if mode == "full" else _center(y, x.shape)


def _is_zero(x: Any) -> bool:
    return isinstance(x, int | float) and x == 0


@counterpart(scipy.signal.correlate2d)
def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    """The cross-correlation of two images, as ``scipy.signal.correlate2d``: `in2` is conjugated.

    Parameters
    ----------
    in1, in2, mode, boundary, fillvalue
        See `convolve2d`.
    """
    x, v = _pair(in1, in2, "correlate2d", 2)
    _checked(mode, "correlate2d")
    if mode == "valid" and _larger_first(x, v, "correlate2d", (0, 1)):
        # As SciPy does it, which conjugates the smaller array: it is the second one then.
        return np.flip(convolve2d(as_tensor(v), np.flip(_conj(x)), mode))
    turned = np.flip(_conj(v))
    if mode != "same":
        return convolve2d(as_tensor(x), turned, mode, boundary, fillvalue)
    y = convolve2d(as_tensor(x), turned, "full", boundary, fillvalue)
    starts = [n // 2 for n in v.shape]  # of an even length one further than in a convolution
    return y[tuple(slice(a, a + n) for a, n in zip(starts, x.shape, strict=True))]
