"""DFT: discrete Fourier transforms along an axis.

The last axis of an operand has one element, a real number, or two: real and imaginary part.  A
one-sided transform has the first n // 2 + 1 frequencies of a real signal; its inverse is real.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .node_view import NodeView
from .registry import imports


@imports("DFT", static=(1, 2), grows=True)
def _dft(n: NodeView, x: Any, length: Any = None, axis: Any = None) -> Any:
    inverse, one_sided = bool(n.get("inverse", 0)), bool(n.get("onesided", 0))
    where = n.get("axis", 1) if n.opset < 20 else -2
    where = where if axis is None else int(n.number(axis, "axis"))
    where = where % len(x.shape)
    count = x.shape[where]
    if length is not None:
        count = int(n.number(length, "length"))
    elif inverse and one_sided:
        count = 2 * (count - 1)
    pairs = x.shape[-1] == 2
    signal = x[..., 0] + 1j * x[..., 1] if pairs else x[..., 0]
    if inverse and one_sided:
        return np.expand_dims(np.fft.irfft(signal, count, where), -1).astype(x.dtype)
    if one_sided and not pairs:
        out = np.fft.rfft(signal, count, where)
    else:
        out = (np.fft.ifft if inverse else np.fft.fft)(signal, count, where)
        if one_sided:
            index = (slice(None),) * where + (slice(0, count // 2 + 1),)
            out = out[index]
    return np.stack([np.real(out), np.imag(out)], axis=-1).astype(x.dtype)
