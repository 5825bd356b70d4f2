"""N-dimensional convolution and correlation, computed directly or with FFTs.

    convolve, correlate        along all axes; the faster of the two methods
    fftconvolve, oaconvolve    with FFTs, along chosen axes
    convolve2d, correlate2d    two axes, computed directly, with a choice of boundary condition

The direct method uses two bilinear operations.  The vjp rule of each is the other:

    signal.convolve   full convolution, y_i = sum_k x_{i-k} v_k
    signal.slide      valid correlation, y_i = sum_k x_{i+k} v_k

For one axis, the operations of _engine/ops/sorting.py are used instead; native code has kernels for
them.
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


def _convolve_reference(x, v):
    out = np.zeros([n + m - 1 for n, m in zip(x.shape, v.shape, strict=True)], np.result_type(x, v))
    for k in np.ndindex(*v.shape):
        out[tuple(slice(i, i + n) for i, n in zip(k, x.shape, strict=True))] += v[k] * x
    return out


def _slide_reference(x, v):
    windows = np.lib.stride_tricks.sliding_window_view(x, v.shape)
    axes = tuple(range(x.ndim))
    return np.tensordot(windows, v, (tuple(a + x.ndim for a in axes), axes))


@opaque(name="signal.convolve", trusted=True, oracle=_convolve_reference)
def full(x, v):
    """Full N-dimensional convolution: y_i = sum_k x_{i-k} v_k."""
    return scipy.signal.convolve(x, v, "full", "direct")


@opaque(name="signal.slide", trusted=True, oracle=_slide_reference)
def slide(x, v):
    """Valid N-dimensional correlation, without conjugation: y_i = sum_k x_{i+k} v_k."""
    return scipy.signal.correlate(x, np.conj(v), "valid", "direct")


def _conj(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


@full.define_vjp
def _full_vjp(t, out, x, v):
    return slide(t, _conj(v)), slide(t, _conj(x))


@slide.define_vjp
def _slide_vjp(t, out, x, v):
    return full(t, _conj(v)), slide(_conj(x), t)


def _define_bilinear_rules(op: Any) -> None:
    @op.define_jvp
    def jvp(dots, out, x, v):
        parts = [op(dots[0], v)] if dots[0] is not None else []
        parts += [op(x, dots[1])] if dots[1] is not None else []
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    @op.batch
    def batch(args, batched, size):
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
    _define_bilinear_rules(_op)


# ---- public functions --------------------------------------------------------------------------


def _same_dtype_and_ndim(in1: Any, in2: Any, name: str, ndim: int | None = None) -> tuple[Any, Any]:
    """Both operands as arrays or tensors of their common dtype; their ndim must be equal."""
    x, v = as_array(in1), as_array(in2)
    if x.ndim != v.ndim or (ndim is not None and x.ndim != ndim):
        raise ShapeError(
            f"{name} of arrays of shape {x.shape} and {v.shape}: both must have "
            f"{'the same number of' if ndim is None else ndim} axes{at(user_line())}."
        )
    for n in (*x.shape, *v.shape):
        if type(n) is int and n == 0:
            raise ShapeError(
                f"{name} of arrays of shape {x.shape} and {v.shape}: both must have at "
                f"least one element{at(user_line())}."
            )
    wanted = np.result_type(x.dtype, v.dtype)
    pair = [a if a.dtype == wanted else casts.astype(a, wanted) for a in (x, v)]
    return pair[0], pair[1]


def _check_mode(mode: Any, name: str) -> None:
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(
            f"{name} with mode={mode!r}: the mode must be 'full', 'same' or 'valid'"
            f"{at(user_line())}."
        )


def _must_swap(x: Any, v: Any, name: str, axes: Any) -> bool:
    """Whether x is the smaller array, so that mode "valid" has to exchange the operands.

    Raises
    ------
    ShapeError
        Neither array is at least as long as the other along all `axes`.
    """
    n, m = [x.shape[k] for k in axes], [v.shape[k] for k in axes]
    if all(a >= b for a, b in zip(n, m, strict=True)):
        return False
    if all(b >= a for a, b in zip(n, m, strict=True)):
        return True
    raise ShapeError(
        f"{name} of arrays of shape {x.shape} and {v.shape} with mode='valid': one of them must be "
        f"at least as long as the other along every axis{at(user_line())}."
    )


def _center(y: Any, shape: Any) -> Any:
    """The central part of `y`, of the given shape."""
    if y.shape == tuple(shape):
        return y
    starts = [(have - want) // 2 for have, want in zip(y.shape, shape, strict=True)]
    return y[tuple(slice(s, s + n) for s, n in zip(starts, shape, strict=True))]


def _direct(x: Any, v: Any, mode: str, name: str) -> Any:
    one_axis = x.ndim == 1
    if mode == "valid":
        if _must_swap(x, v, name, range(x.ndim)):
            x, v = v, x
        return sorting.slide(x, v[::-1]) if one_axis else slide(x, np.flip(v))
    y = sorting.convolve(x, v) if one_axis else full(x, v)
    return y if mode == "full" else _center(y, x.shape)


@counterpart(scipy.signal.convolve)
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """Convolve two N-dimensional arrays, as ``scipy.signal.convolve``.

    Parameters
    ----------
    in1, in2 : array_like
        Arrays with the same number of axes.
    mode : {"full", "same", "valid"}
        Which part of the result is returned: all of it, the central part of the shape of `in1`, or
        the elements that do not depend on zero padding.
    method : {"auto", "direct", "fft"}
        "auto" selects the method that SciPy estimates to be faster for these shapes.

    Raises
    ------
    ShapeError
        The shapes are not compatible.
    ArgumentError
        The mode or method is unknown.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import convolve
    >>> wg.grad(lambda v: np.sum(convolve(np.array([1.0, 2.0, 3.0]), v, "valid")))(np.ones(2))
    array([5., 3.])
    """
    x, v = _same_dtype_and_ndim(in1, in2, "convolve")
    _check_mode(mode, "convolve")
    if x.ndim == 0:
        return x * v
    if x.dtype.kind not in "fc":
        return as_tensor(scipy.signal.convolve(plain(x), plain(v), mode, method))
    if method == "auto":
        known = not is_symbolic((*x.shape, *v.shape))
        method = _faster_method(x, v, mode) if known else "direct"
    if method == "fft":
        return fftconvolve(x, v, mode)
    if method != "direct":
        raise ArgumentError(
            f"convolve with method={method!r}: the method must be 'auto', 'direct' or 'fft'"
            f"{at(user_line())}."
        )
    return _direct(x, v, mode, "convolve")


def _faster_method(x: Any, v: Any, mode: str) -> str:
    """SciPy's choice of the method, which depends on shapes and dtypes only."""
    if mode == "valid" and _must_swap(x, v, "convolve", range(x.ndim)):
        x, v = v, x
    stand_ins = [np.broadcast_to(a.dtype.type(0), a.shape) for a in (x, v)]
    return scipy.signal.choose_conv_method(*stand_ins, mode=mode)  # type: ignore[no-any-return]


@counterpart(scipy.signal.correlate)
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """Cross-correlate two N-dimensional arrays, as ``scipy.signal.correlate``.

    Parameters
    ----------
    in1, in2, mode, method
        See `convolve`. `in2` is conjugated.
    """
    x, v = _same_dtype_and_ndim(in1, in2, "correlate")
    v = _conj(v)
    return convolve(as_tensor(x), np.flip(v) if v.ndim else v, mode, method)


# ---- with FFTs ---------------------------------------------------------------------------------


@counterpart(scipy.signal.fftconvolve)
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """Convolve two N-dimensional arrays with FFTs, as ``scipy.signal.fftconvolve``.

    Parameters
    ----------
    in1, in2 : array_like
        Arrays with the same number of axes. Axes along which they are not convolved are broadcast.
    mode : {"full", "same", "valid"}
        See `convolve`.
    axes : int or sequence of int, optional
        The axes along which to convolve; by default all.

    Notes
    -----
    *Cost.* O(n log n), where n is the size of the full result; derivatives are computed with FFTs
    too. NaN or infinity in an operand spreads to the whole result.
    """
    x, v = _same_dtype_and_ndim(in1, in2, "fftconvolve")
    _check_mode(mode, "fftconvolve")
    if x.ndim == 0:
        return x * v
    if axes is None:
        axes = range(x.ndim)
    elif not isinstance(axes, list | tuple):
        axes = [axes]
    along = sorted({int(k) % x.ndim for k in axes if -x.ndim <= k < x.ndim})
    if len(along) != len(axes) or not along:
        raise ArgumentError(
            f"fftconvolve of arrays of {x.ndim} axes with axes={axes}: give some of them, each once"
            f"{at(user_line())}."
        )
    # Along an axis of length one, convolution is a product with broadcasting.
    along = [k for k in along if x.shape[k] != 1 and v.shape[k] != 1]
    if mode == "valid" and _must_swap(x, v, "fftconvolve", along):
        x, v = v, x
    y = _convolve_with_fft(x, v, along)
    if mode == "full":
        return y
    valid = mode == "valid"
    shape = [
        y.shape[k] if valid and k not in along else x.shape[k] - (v.shape[k] - 1 if valid else 0)
        for k in range(x.ndim)
    ]
    return _center(y, shape)


def _convolve_with_fft(x: Any, v: Any, along: list[int]) -> Any:
    if not along:
        return x * v
    lengths = [x.shape[k] + v.shape[k] - 1 for k in along]
    real = x.dtype.kind != "c"
    sizes = [n if is_symbolic((n,)) else scipy.fft.next_fast_len(n, real) for n in lengths]
    forward, inverse = (fft.rfftn, fft.irfftn) if real else (fft.fftn, fft.ifftn)
    x, v = as_tensor(x), as_tensor(v)  # arrays do not support symbolic sizes
    y = inverse(forward(x, sizes, along) * forward(v, sizes, along), sizes, along)
    part = [slice(None)] * x.ndim
    for k, n in zip(along, lengths, strict=True):
        part[k] = slice(0, n)
    return y[tuple(part)]


@counterpart(scipy.signal.oaconvolve)
def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """Convolve two arrays of different length, as ``scipy.signal.oaconvolve``.

    For tensors this is `fftconvolve`: the same values, without the overlap-add method.
    """
    return fftconvolve(as_tensor(in1), in2, mode, axes)


# ---- two axes, with boundary conditions --------------------------------------------------------

_PAD_MODES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


@counterpart(scipy.signal.convolve2d)
def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    """Convolve two 2-dimensional arrays, as ``scipy.signal.convolve2d``.

    Parameters
    ----------
    in1, in2 : array_like
        2-dimensional arrays.
    mode : {"full", "same", "valid"}
        See `convolve`.
    boundary : {"fill", "wrap", "symm"}
        How `in1` is extended: with `fillvalue`, periodically, or by reflection at its edges.
    fillvalue : float or Tensor, default 0
        The value beyond the edges for `boundary` "fill".

    Notes
    -----
    Differentiable with respect to `in1`, `in2` and `fillvalue`. *Cost.* Proportional to the product
    of the sizes, as in SciPy.
    """
    x, v = _same_dtype_and_ndim(in1, in2, "convolve2d", 2)
    _check_mode(mode, "convolve2d")
    if boundary not in _PAD_MODES:
        raise ArgumentError(
            f"convolve2d with boundary={boundary!r}: the boundary must be 'fill', 'wrap' or 'symm'"
            f"{at(user_line())}."
        )
    if x.dtype.kind not in "fc":
        x, v = casts.astype(x, float), casts.astype(v, float)
    zero_padded = boundary == "fill" and not shape_of(fillvalue) and _is_zero(fillvalue)
    if zero_padded or mode == "valid":
        return _direct(x, v, mode, "convolve2d")
    widths = [(n - 1, n - 1) for n in v.shape]
    options = {"constant_values": fillvalue} if boundary == "fill" else {}
    padded = pad(as_tensor(x), widths, _PAD_MODES[boundary], **options)
    y = slide(padded, np.flip(v))
    return y if mode == "full" else _center(y, x.shape)


def _is_zero(x: Any) -> bool:
    return isinstance(x, int | float) and x == 0


@counterpart(scipy.signal.correlate2d)
def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    """Cross-correlate two 2-dimensional arrays, as ``scipy.signal.correlate2d``.

    Parameters
    ----------
    in1, in2, mode, boundary, fillvalue
        See `convolve2d`. `in2` is conjugated.
    """
    x, v = _same_dtype_and_ndim(in1, in2, "correlate2d", 2)
    _check_mode(mode, "correlate2d")
    if mode == "valid" and _must_swap(x, v, "correlate2d", (0, 1)):
        # SciPy exchanges the operands here and conjugates the smaller one, `in1`.
        return np.flip(convolve2d(as_tensor(v), np.flip(_conj(x)), mode))
    flipped = np.flip(_conj(v))
    if mode != "same":
        return convolve2d(as_tensor(x), flipped, mode, boundary, fillvalue)
    y = convolve2d(as_tensor(x), flipped, "full", boundary, fillvalue)
    starts = [n // 2 for n in v.shape]  # for even lengths, one more than in convolve2d
    return y[tuple(slice(a, a + n) for a, n in zip(starts, x.shape, strict=True))]
