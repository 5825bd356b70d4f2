"""Discrete Fourier transforms along one axis, the building blocks of numpy.fft.

    fft     y_k = s sum_j x_j exp(-+2 pi i j k / n)      complex to complex; plus if `inverse`
    rfft    the first n//2 + 1 frequencies of real x     real to complex
    irfft   real x from its first n//2 + 1 frequencies   complex to real

The operand is cropped or zero-padded to length n, as in NumPy, and the result to length `keep`.
The transpose of each is then another of them with the same `n` and with `keep` the operand's
length, so derivatives of any order cost transforms of the same length.

The scale s is NumPy's `norm`: 1, 1/sqrt(n) or 1/n.  Transposition exchanges the first and the last.

Each frequency of a real signal except the first (and the middle one, if n is even) stands for a
conjugate pair, so it counts twice in the transpose of irfft and half in that of rfft: `interior`,
a power of two, is the factor of these frequencies.  irfft ignores the imaginary parts of the first
and the middle frequency; their gradient is exactly zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.op_facts import facts
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import require_at_least
from wengert._engine.kinds.batching import along
from wengert._engine.kinds.linear_map import linear
from wengert._engine.ops import cost_model

if TYPE_CHECKING:
    from wengert._engine.core.dispatch import Operation
    from wengert._engine.core.types import Array, Axes, Size

# The `norm` of the transpose of a transform.
SWAPPED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _fft_oracle(
    x: Array,
    *,
    n: Any,
    axis: Axes,
    norm: Any,
    keep: Any,
    inverse: Any = False,
) -> Any:
    return _by_matrix(
        x, _fourier_matrix(n, n, 1 if inverse else -1), axis, _scale(n, norm, inverse), keep
    )


@facts(flops=cost_model.transform(5.0))
@linear(oracle=_fft_oracle)
def fft(x: Any, *, n: Any, axis: Any, norm: Any, keep: Any, inverse: bool = False) -> Any:
    """The Fourier transform along an axis, or its inverse."""
    run = np.fft.ifft if inverse else np.fft.fft
    return resized(run(x, n, axis, norm), keep, axis)


@fft.transpose
def _fft_back(
    t: Array, x: Array, *, n: Size, axis: int, norm: str, keep: Size, inverse: bool = False
) -> Any:
    return fft(t, n=n, axis=axis, norm=SWAPPED[norm], keep=x.shape[axis], inverse=not inverse)


def _rfft_oracle(
    x: Array,
    *,
    n: Any,
    axis: Axes,
    norm: Any,
    keep: Any,
    interior: Any = 1.0,
) -> Any:
    matrix = _fourier_matrix(n, n, -1)[: n // 2 + 1] * _weights(n, interior)[:, None]
    return _by_matrix(x, matrix, axis, _scale(n, norm, False), keep)


@facts(flops=cost_model.transform(2.5))
@linear(oracle=_rfft_oracle)
def rfft(x: Any, *, n: Any, axis: Any, norm: Any, keep: Any, interior: Any = 1.0) -> Any:
    """Frequencies 0 to n//2 of the transform of a real signal, interior ones times `interior`."""
    return resized(_weighted(np.fft.rfft(x, n, axis, norm), n, axis, interior), keep, axis)


@rfft.transpose
def _rfft_back(
    t: Array, x: Array, *, n: Size, axis: int, norm: str, keep: Size, interior: float = 1.0
) -> Any:
    keep = x.shape[axis]
    return irfft(t, n=n, axis=axis, norm=SWAPPED[norm], keep=keep, interior=interior / 2)


def _irfft_oracle(
    x: Array,
    *,
    n: Any,
    axis: Axes,
    norm: Any,
    keep: Any,
    interior: Any = 1.0,
) -> Any:
    matrix = _fourier_matrix(n, n, 1)[:, : n // 2 + 1] * _weights(n, 2 * interior)
    return _by_matrix(x, matrix, axis, _scale(n, norm, True), keep).real


@facts(flops=cost_model.transform(2.5))
@linear(oracle=_irfft_oracle)
def irfft(x: Any, *, n: Any, axis: Any, norm: Any, keep: Any, interior: Any = 1.0) -> Any:
    """The real signal with frequencies x, interior ones times `interior`."""
    frequencies = n // 2 + 1
    if interior != 1.0 or not x.shape[axis]:  # NumPy needs at least one frequency
        x = _weighted(np.array(resized(x, frequencies, axis)), n, axis, interior)
    return resized(np.fft.irfft(x, n, axis, norm), keep, axis)


@irfft.transpose
def _irfft_back(
    t: Array, x: Array, *, n: Size, axis: int, norm: str, keep: Size, interior: float = 1.0
) -> Any:
    keep = x.shape[axis]
    return rfft(t, n=n, axis=axis, norm=SWAPPED[norm], keep=keep, interior=2 * interior)


# ---- on plain arrays ---------------------------------------------------------------------------


def resized(x: Array, length: int, axis: int) -> Any:
    """`x` cropped or zero-padded at the end of an axis."""
    n = x.shape[axis]
    if n == length:
        return x
    leading = (slice(None),) * (axis % x.ndim)
    if n > length:
        return x[(*leading, slice(length))].copy()
    shape = (*x.shape[: axis % x.ndim], length, *x.shape[axis % x.ndim + 1 :])
    out = np.zeros_like(x, shape=shape)
    out[(*leading, slice(n))] = x
    return out


def _weighted(x: Any, n: int, axis: int, interior: float) -> Any:
    """Frequencies of a real signal of length n, interior ones times `interior`; overwrites `x`."""
    if interior != 1.0:
        x[(*(slice(None),) * (axis % x.ndim), slice(1, (n + 1) // 2))] *= interior
    return x


# ---- reference by matrices, for the tests ------------------------------------------------------


def _fourier_matrix(rows: Any, columns: Any, sign: Any) -> Any:
    exponents = np.outer(np.arange(rows), np.arange(columns)) % columns
    return np.exp(sign * 2j * np.pi * exponents / columns)


def _weights(n: Any, interior: Any) -> Any:
    frequencies = np.arange(n // 2 + 1)
    return np.where((frequencies == 0) | (2 * frequencies == n), 1.0, interior)


def _scale(n: Any, norm: Any, inverse: Any) -> Any:
    divided_norm = "forward" if not inverse else "backward"
    return n**-0.5 if norm == "ortho" else 1 / n if norm == divided_norm else 1.0


def _by_matrix(x: Any, matrix: Any, axis: Any, scale: Any, keep: Any) -> Any:
    """The matrix times x along the axis, with operand and result cropped or zero-padded."""
    columns, rows = min(x.shape[axis], matrix.shape[1]), min(keep, len(matrix))
    x = np.moveaxis(x, axis, 0)[:columns]
    out = np.zeros((keep, *x.shape[1:]), complex)
    out[:rows] = np.tensordot(scale * matrix[:rows, :columns], x, 1)
    return np.moveaxis(out, 0, axis)


# ---- shape rules, batching, examples -----------------------------------------------------------


def _spec(op: Operation, transform: Any) -> None:
    """Define the shape rule of a transform; its dtype is that of NumPy's `transform`."""

    @op.spec
    def rule(x: Spec, *, n: Size, axis: int, keep: Size, **_: Any) -> Spec:
        if not -x.ndim <= axis < x.ndim:
            raise np.exceptions.AxisError(axis, x.ndim)
        require_at_least(n, 1, f"Fourier transform of length {n}")
        k = axis % x.ndim
        result = transform(np.ones(1, x.dtype))
        return Spec((*x.shape[:k], keep, *x.shape[k + 1 :]), result.dtype)


_spec(fft, np.fft.fft)
_spec(rfft, np.fft.rfft)
_spec(irfft, lambda one: np.fft.irfft(one, 1))

for _op in (fft, rfft, irfft):
    along(_op)


@fft.examples
def _(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    yield (x,), {"n": 3, "axis": 1, "norm": "backward", "keep": 3}
    yield (x,), {"n": 4, "axis": 0, "norm": "ortho", "keep": 1, "inverse": True}
    yield (x.real,), {"n": 2, "axis": -1, "norm": "forward", "keep": 2}


@rfft.examples
def _(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(2, 4))
    yield (x,), {"n": 4, "axis": 1, "norm": "backward", "keep": 3}
    yield (x,), {"n": 3, "axis": -1, "norm": "ortho", "keep": 2, "interior": 0.5}
    yield (x[0],), {"n": 5, "axis": 0, "norm": "forward", "keep": 4, "interior": 2.0}


@irfft.examples
def _(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(3, 2)) + 1j * rng.normal(size=(3, 2))
    yield (x,), {"n": 4, "axis": 0, "norm": "backward", "keep": 4}
    yield (x,), {"n": 5, "axis": 0, "norm": "ortho", "keep": 3, "interior": 0.5}
    yield (x.real,), {"n": 1, "axis": 1, "norm": "forward", "keep": 2}
