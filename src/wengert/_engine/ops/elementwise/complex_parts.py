"""Real part, imaginary part, conjugate; complex numbers from two parts.

They are not holomorphic but linear over the real numbers.  Real and imaginary part are views, as in
NumPy: writing to `z.imag` writes to z.  Their cotangents are defined in docs/conventions.md,
"complex numbers".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.op_facts import ARITHMETIC, facts
from wengert._engine.kinds.batching import elementwise_batching
from wengert._engine.kinds.elementwise import elementwise
from wengert._engine.kinds.linear_map import linear

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Scalar, ScalarLanguage


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.conjugate, oracle="conj(x)", complex_ok=True, bounded=True)
def conjugate(s: ScalarLanguage, x: Scalar) -> Any:
    """The complex conjugate; x itself if it is real."""
    return s.conj(x)


# The kind conjugates t before and after, so this rule is correct in both modes.
conjugate.partials(lambda t, out, x: t.conj())


@elementwise(oracle="mpc(x, y)", half=False)
def rectangular(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """The complex number x + 1j * y; an infinite part does not change the other one."""
    return s.rectangular(x, y)


rectangular.partials(lambda t, out, x, y: t, lambda t, out, x, y: t * 1j)


def _complex(x: Array) -> np.dtype[Any]:
    """The complex dtype of a cotangent of `x`."""
    return np.result_type(x.dtype, np.complex64)


@linear(view=True, oracle=lambda z: (z + np.conj(z)).real / 2)
def real(z: Operand) -> Any:
    """The real part of complex z."""
    return np.real(z)


@real.transpose
def _real_back(t: Array, z: Array) -> Any:
    return t.astype(_complex(z))


@real.put
def _real_put(base: Array, view: Array) -> Any:
    return rectangular(view, imag(base))


@linear(view=True, oracle=lambda z: (z - np.conj(z)).imag / 2)
def imag(z: Operand) -> Any:
    """The imaginary part of complex z."""
    return np.imag(z)


@imag.transpose
def _imag_back(t: Array, z: Array) -> Any:
    return t.astype(_complex(z)) * np.array(1j, _complex(z))[()]


@imag.put
def _imag_put(base: Array, view: Array) -> Any:
    return rectangular(real(base), view)


for _op in (real, imag):
    elementwise_batching(_op)

    @_op.examples
    def _(rng: np.random.Generator) -> Any:
        for shape in [(5,), (2, 3), ()]:
            yield (rng.normal(size=shape) + 1j * rng.normal(size=shape),), {}
