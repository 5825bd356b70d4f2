"""Cosine and sine transforms of the types 1 to 4, along one axis or several.

    composition    the transform, for backends that have Fourier transforms

    fft.dct, fft.dst    the operations; `transposed` for the transpose of the matrix
    dct idct dst idst dctn idctn dstn idstn

The inverse of a transform is, up to scale, the transform of the partner type: 2 and 3 are partners,
1 and 4 are their own.  It is also the transpose, except for factors at the ends.  With
`orthogonalize` the matrix of the partner is exactly the transpose; without it, both ends of type 1
and one end of types 2 and 3 (the first for cosines, the last for sines) have half the weight.

G. Strang, "The discrete cosine transform", SIAM Review 41 (1999), 135-147.

Types 2 and 3 need a transform of the same length, of the elements with even indices followed by
those with odd indices reversed (J. Makhoul, "A fast cosine transform in one and two dimensions",
IEEE Trans. ASSP 28 (1980), 27-34).  Type 1 transforms the even or odd extension, type 4 a sequence
of twice the length.  A sine transform is a cosine transform with alternating signs and reversed
order.  Real and imaginary parts are transformed separately.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft

from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import require_at_least
from wengert._engine.core.symbolic.dim import is_symbolic
from wengert._engine.kinds.batching import along
from wengert._engine.kinds.linear_map import linear
from wengert._engine.ops import casts
from wengert._engine.ops.fft import SWAPPED, resized
from wengert._engine.tensor.operand_conversion import length
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import counterpart, floating

__all__ = ["dct", "dctn", "dst", "dstn", "idct", "idctn", "idst", "idstn"]


def composition(kind: str) -> Callable[..., Any]:
    """The transform "dct" or "dst" of all types, and its transpose."""

    def transform(
        x: Any,
        *,
        type: int,
        n: Any,
        axis: int,
        norm: str,
        orthogonalize: bool,
        keep: Any,
        transposed: bool = False,
    ) -> Any:
        if not isinstance(n, int) or not isinstance(keep, int) or is_symbolic(x.shape):
            return NotImplemented
        x = casts.astype(x, scipy.fft.dct(np.ones(2, x.dtype)).dtype)
        x = _crop_or_pad(np.moveaxis(x, axis, -1), n)
        parts = [x.real, x.imag] if x.dtype.kind == "c" else [x]
        rows, columns, type = _weights(kind, type, n, norm, orthogonalize, transposed)
        dtype = parts[0].dtype
        rows, columns = rows.astype(dtype), columns.astype(dtype)
        results = [_UNSCALED[kind, type](p * columns) * rows for p in parts]
        y = results[0]
        if len(results) == 2:
            y = casts.astype(y, x.dtype) + 1j * results[1]
        return np.moveaxis(_crop_or_pad(y, keep), -1, axis)

    return transform


def _crop_or_pad(x: Any, length: int) -> Any:
    """Crop or zero-pad the last axis to a length."""
    n = x.shape[-1]
    if length <= n:
        return x[..., :length]
    zeros = np.zeros((*x.shape[:-1], length - n), x.dtype)
    return np.concatenate([x, zeros], axis=-1)


def _weights(
    kind: str, type: int, n: int, norm: str, orthogonalize: bool, transposed: bool
) -> tuple[Any, Any, int]:
    """Factors of the elements after and before a transform, and its type."""
    rows, columns = np.ones(n), np.ones(n)
    one = 0 if kind == "dct" else -1
    ends: Any = [0, -1] if type == 1 and kind == "dct" else one
    if orthogonalize and (type, kind) != (1, "dst"):
        if type in (1, 3):
            columns[ends] *= np.sqrt(2.0)
        if type in (1, 2):
            rows[ends] /= np.sqrt(2.0)
    size = {("dct", 1): n - 1, ("dst", 1): n + 1}.get((kind, type), n)
    scale = {"backward": 1.0, "ortho": (2 * size) ** -0.5, "forward": 0.5 / size}[norm]
    if transposed:
        rows, columns = columns, rows
        if type == 2 or (type, kind) == (1, "dct"):
            columns[ends] *= 2.0
        if type == 3 or (type, kind) == (1, "dct"):
            rows[ends] *= 0.5
        type = {2: 3, 3: 2}.get(type, type)
    return rows * scale, columns, type


def _dct_1(x: Any) -> Any:
    return np.fft.rfft(np.concatenate([x, x[..., -2:0:-1]], axis=-1)).real


def _dst_1(x: Any) -> Any:
    zero = np.zeros((*x.shape[:-1], 1), x.dtype)
    extended = np.concatenate([zero, x, zero, -x[..., ::-1]], axis=-1)
    return -np.fft.rfft(extended).imag[..., 1 : x.shape[-1] + 1]


def _twiddles(count: int, n: int, dtype: Any) -> Any:
    """Twiddle factors exp(-i pi k / 2n) for k < count."""
    return np.exp(-0.5j * np.pi * np.arange(count) / n).astype(np.result_type(dtype, np.complex64))


def _dct_2(x: Any) -> Any:
    n = x.shape[-1]
    packed = np.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], axis=-1)
    half = n // 2 + 1
    rotated = np.fft.rfft(packed) * (2.0 * _twiddles(half, n, x.dtype))
    return np.concatenate([rotated.real, -rotated.imag[..., 1 : n - half + 1][..., ::-1]], axis=-1)


def _dct_3(x: Any) -> Any:
    n = x.shape[-1]
    half = n // 2 + 1
    zero = np.zeros((*x.shape[:-1], 1), x.dtype)
    reversed_part = np.concatenate([zero, x[..., :0:-1]], axis=-1)[..., :half]
    first_part = casts.astype(x[..., :half], np.result_type(x.dtype, np.complex64))
    packed = np.fft.irfft(
        (first_part - 1j * reversed_part) * np.conj(_twiddles(half, n, x.dtype)), n, norm="forward"
    )
    order = np.empty(n, int)
    order[::2], order[1::2] = np.arange((n + 1) // 2), np.arange(n - 1, (n + 1) // 2 - 1, -1)
    return packed[..., order]


def _dct_4(x: Any) -> Any:
    n = x.shape[-1]
    rotated = np.fft.fft(x * _twiddles(n, n, x.dtype), 2 * n)[..., :n]
    last = np.exp(-0.25j * np.pi / n).astype(rotated.dtype)
    return (rotated * (2.0 * last * _twiddles(n, n, x.dtype))).real


def _alternating_signs(x: Any) -> Any:
    signs = np.ones(x.shape[-1], x.dtype)
    signs[1::2] = -1.0
    return signs


_UNSCALED: dict[tuple[str, int], Callable[[Any], Any]] = {
    ("dct", 1): _dct_1,
    ("dct", 2): _dct_2,
    ("dct", 3): _dct_3,
    ("dct", 4): _dct_4,
    ("dst", 1): _dst_1,
    ("dst", 2): lambda x: _dct_2(x * _alternating_signs(x))[..., ::-1],
    ("dst", 3): lambda x: _dct_3(x[..., ::-1]) * _alternating_signs(x),
    ("dst", 4): lambda x: _dct_4(x[..., ::-1]) * _alternating_signs(x),
}


PARTNERS = {1: 1, 2: 3, 3: 2, 4: 4}


# ---- the operations ----------------------------------------------------------------------------


def _matrix(kind, type, n, norm, orthogonalize):
    """The matrix of a transform, by its definition."""
    k, j = np.arange(n)[:, None] + 0.0, np.arange(n)[None, :] + 0.0
    ends = np.ones(n)
    if kind == "dct":
        size = n - 1 if type == 1 else n
        if type == 1:
            ends[[0, -1]] = 0.5
        ends[0] = 0.5 if type == 3 else ends[0]
        angle = {1: k * j, 2: k * (j + 0.5), 3: (k + 0.5) * j, 4: (k + 0.5) * (j + 0.5)}[type]
        matrix = 2 * np.cos(np.pi * angle / size) * ends
    else:
        size = n + 1 if type == 1 else n
        ends[-1] = 0.5 if type == 3 else 1.0
        angle = {
            1: (k + 1) * (j + 1),
            2: (k + 1) * (j + 0.5),
            3: (k + 0.5) * (j + 1),
            4: (k + 0.5) * (j + 0.5),
        }[type]
        matrix = 2 * np.sin(np.pi * angle / size) * ends
    if orthogonalize:
        end = 0 if kind == "dct" else -1
        if type == 1 and kind == "dct":
            matrix[:, [0, -1]] *= np.sqrt(2)
            matrix[[0, -1]] /= np.sqrt(2)
        if type == 2:
            matrix[end] /= np.sqrt(2)
        if type == 3:
            matrix[:, end] *= np.sqrt(2)
    return matrix * {"backward": 1.0, "ortho": (2 * size) ** -0.5, "forward": 0.5 / size}[norm]


def _matrix_oracle(kind):
    def by_matrix(x, *, type, n, axis, norm, orthogonalize, keep, transposed=False):
        matrix = _matrix(kind, type, n, norm, orthogonalize)
        resized_x = resized(np.asarray(x), n, axis)
        y = np.tensordot(matrix.T if transposed else matrix, resized_x, (1, axis))
        return resized(np.moveaxis(y, 0, axis), keep, axis)

    return by_matrix


def _run(kind, x, type, n, axis, norm, orthogonalize, keep, transposed):
    if np.iscomplexobj(x):  # SciPy ignores orthogonalize for complex x
        parts = (np.ascontiguousarray(x.real), np.ascontiguousarray(x.imag))
        real, imag = (
            _run(kind, p, type, n, axis, norm, orthogonalize, keep, transposed) for p in parts
        )
        return real + 1j * imag
    theirs = getattr(scipy.fft, kind)
    if not transposed:
        return resized(theirs(x, type, n, axis, norm, orthogonalize=orthogonalize), keep, axis)
    partner = PARTNERS[type]
    x = resized(x, n, axis)
    if orthogonalize or type == 4 or (kind, type) == ("dst", 1):
        return resized(theirs(x, partner, n, axis, norm, orthogonalize=orthogonalize), keep, axis)
    shape = tuple(n if k == axis % x.ndim else 1 for k in range(x.ndim))
    ends = np.ones(n, np.finfo(x.dtype).dtype if x.dtype.kind in "fc" else float)
    ends[0 if kind == "dct" else -1] = 0.5
    if type == 1:
        ends[-1] = 0.5
    ends = ends.reshape(shape)
    y = theirs(x if type == 3 else x / ends, partner, n, axis, norm, orthogonalize=False)
    return resized(y if type == 2 else y * ends, keep, axis)


@linear(name="fft.dct", oracle=_matrix_oracle("dct"))
def cosines(x, *, type, n, axis, norm, orthogonalize, keep, transposed=False):
    """The cosine transform of a type along an axis, or the transpose of that map."""
    return _run("dct", x, type, n, axis, norm, orthogonalize, keep, transposed)


@linear(name="fft.dst", oracle=_matrix_oracle("dst"))
def sines(x, *, type, n, axis, norm, orthogonalize, keep, transposed=False):
    """The sine transform of a type along an axis, or the transpose of that map."""
    return _run("dst", x, type, n, axis, norm, orthogonalize, keep, transposed)


def _define_rules(op: Any) -> None:
    @op.transpose
    def transpose(t, x, *, type, n, axis, norm, orthogonalize, keep, transposed=False):
        options = {"type": type, "n": n, "norm": norm, "orthogonalize": orthogonalize}
        return op(t, axis=axis, keep=x.shape[axis], transposed=not transposed, **options)

    @op.spec
    def spec(x: Spec, *, type: int, n: Any, axis: int, keep: Any, **_: Any) -> Spec:
        if not -x.ndim <= axis < x.ndim:
            raise np.exceptions.AxisError(axis, x.ndim)
        minimum = 2 if type == 1 and op is cosines else 1
        require_at_least(n, minimum, f"a transform of length {n}")
        k = axis % x.ndim
        dtype = scipy.fft.dct(np.ones(2, x.dtype)).dtype
        return Spec((*x.shape[:k], keep, *x.shape[k + 1 :]), dtype)

    along(op)

    @op.examples
    def examples(rng):
        for type in PARTNERS:
            n, common = 3 + type % 2, {"type": type, "axis": -1}
            yield (
                (rng.normal(size=3),),
                {**common, "n": n, "keep": n, "norm": "forward", "orthogonalize": False},
            )
        x = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
        for type in (1, 3):
            options = {"type": type, "n": 2, "axis": 0, "norm": "ortho", "keep": 2}
            yield (x,), {**options, "orthogonalize": True, "transposed": type == 3}


for _op in (cosines, sines):
    _define_rules(_op)
cosines.compose(composition("dct"))
sines.compose(composition("dst"))


# ---- public functions --------------------------------------------------------------------------


def _transform(
    op: Any, x: Any, type: int, n: Any, axis: int, norm: Any, orthogonalize: Any, inverse: bool
) -> Any:
    x = floating(x)
    norm = "backward" if norm is None else norm
    if type not in PARTNERS or norm not in SWAPPED:
        raise ArgumentError(
            f"a transform of type {type!r} with norm={norm!r}: the type must be 1, 2, 3 or 4, the "
            f"norm 'backward', 'ortho' or 'forward'{at(user_line())}."
        )
    axis = operator.index(axis)
    if not -x.ndim <= axis < x.ndim:
        raise np.exceptions.AxisError(axis, x.ndim)
    n = x.shape[axis] if n is None else length(n)
    minimum = 2 if type == 1 and op is cosines else 1
    if is_static(n) and n < minimum:
        raise ShapeError(
            f"a transform of type {type} of length {n}: the length must be at least {minimum}. "
            f"Pass n= to pad with zeros{at(user_line())}."
        )
    if inverse:
        type, norm = PARTNERS[type], SWAPPED[norm]
    ends = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    if x.dtype.kind == "c":
        ends = norm == "ortho"  # SciPy ignores orthogonalize for complex x
    return op(x, type=type, n=n, axis=axis, norm=norm, orthogonalize=ends, keep=n)


def is_static(n: Any) -> bool:
    """Whether a length is an integer, not a symbolic size."""
    return isinstance(n, int)


def _along_one_axis(name: str, op: Any, inverse: bool, summary: str) -> Any:
    """SciPy's function of that name, along one axis."""

    def transform(
        x: Any,
        type: int = 2,
        n: Any = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        orthogonalize: Any = None,
    ) -> Any:
        return _transform(op, x, type, n, axis, norm, orthogonalize, inverse)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"""{summary} along one axis, as ``scipy.fft.{name}``.

    Parameters
    ----------
    x : array_like
    type : {{1, 2, 3, 4}}, default 2
    n : int, optional
        The length to which `x` is cropped or zero-padded.
    axis : int, default -1
    norm : {{"backward", "ortho", "forward"}}, optional
    overwrite_x, workers
        Ignored for tensors.
    orthogonalize : bool, optional
        Whether the matrix is orthogonal up to a factor; by default if `norm` is "ortho". Ignored
        for complex `x`, as in SciPy.

    Notes
    -----
    Linear in `x`; gradients are transforms of the partner type. *Cost.* O(n log n).
    """
    return counterpart(getattr(scipy.fft, name))(transform)


def _along_axes(name: str, op: Any, inverse: bool, summary: str) -> Any:
    """SciPy's function of that name, along several axes."""

    def transform(
        x: Any,
        type: int = 2,
        s: Any = None,
        axes: Any = None,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        orthogonalize: Any = None,
    ) -> Any:
        x = floating(x)
        lengths = [s] if s is not None and np.ndim(s) == 0 else s
        if axes is None:
            axes = range(-(x.ndim if lengths is None else len(lengths)), 0)
        requested = [axes] if np.ndim(axes) == 0 else list(axes)
        lengths = [-1] * len(requested) if lengths is None else list(lengths)
        if len(lengths) != len(requested):
            raise ShapeError(
                f"{name} with {len(lengths)} lengths and {len(requested)} axes: give one length "
                f"for each axis{at(user_line())}."
            )
        for n, axis in zip(lengths, requested, strict=True):
            n = None if n == -1 else n
            x = _transform(op, x, type, n, axis, norm, orthogonalize, inverse)
        return x

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"""{summary} along several axes, or all, as ``scipy.fft.{name}``.

    Parameters
    ----------
    x, type, norm, orthogonalize
        See the function for one axis.
    s : sequence of int, optional
        Lengths along the axes.
    axes : sequence of int, optional
    overwrite_x, workers
        Ignored for tensors.
    """
    return counterpart(getattr(scipy.fft, name))(transform)


dct = _along_one_axis("dct", cosines, False, "The cosine transform")
idct = _along_one_axis("idct", cosines, True, "The inverse cosine transform")
dst = _along_one_axis("dst", sines, False, "The sine transform")
idst = _along_one_axis("idst", sines, True, "The inverse sine transform")
dctn = _along_axes("dctn", cosines, False, "The cosine transform")
idctn = _along_axes("idctn", cosines, True, "The inverse cosine transform")
dstn = _along_axes("dstn", sines, False, "The sine transform")
idstn = _along_axes("idstn", sines, True, "The inverse sine transform")
