"""Cosine and sine transforms as Fourier transforms of a permuted or extended input.

    composition    the transform, for backends that have Fourier transforms

Types 2 and 3 need a transform of the same length, of the elements with even indices followed by
those with odd indices reversed (J. Makhoul, "A fast cosine transform in one and two dimensions",
IEEE Trans. ASSP 28 (1980), 27-34).  Type 1 transforms the even or odd extension, type 4 a sequence
of twice the length.  A sine transform is a cosine transform with alternating signs and reversed
order.  Real and imaginary parts are transformed separately.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft

from wengert._engine.core.symbolic.dim import is_symbolic
from wengert._engine.ops import casts


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
