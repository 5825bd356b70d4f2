"""The exponential of a square matrix.

    expm    SciPy's; its directional derivative is a block of a larger exponential

C. Van Loan, "Computing integrals involving the matrix exponential", IEEE Transactions on Automatic
Control 23 (1978), 395-404.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # scipy.linalg is loaded at first use

from wengert._engine.core.op_facts import UNDERFLOW, facts
from wengert._engine.kinds.batching import on_last_axes
from wengert._engine.ops import cost_model

from ..creation import identity
from .linear_solve import adjoint, matrices, real_dtype

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


@facts(flops=cost_model.cubes(20.0), zero_slope=UNDERFLOW)
@matrices("Check it for NaN and infinity", oracle=lambda a: _expm_series(a))
def expm(a: Array) -> Any:
    """The exponential of a square matrix."""
    return scipy.linalg.expm(a)


def _derivative_of_expm(a: Array, direction: Array) -> Any:
    """The directional derivative, from the exponential of [[a, direction], [0, a]]."""
    n = a.shape[-1]
    unit = identity(2 * n, real_dtype(a))
    first, second = unit[:, :n], unit[:, n:]
    block = first @ a @ first.T + second @ a @ second.T + first @ direction @ second.T
    return first.T @ expm(block) @ second


@expm.define_vjp
def _expm_vjp(t: Array, out: Array, a: Array) -> Any:
    return (_derivative_of_expm(adjoint(a), t),)


@expm.define_jvp
def _expm_jvp(dots: list[Array], out: Array, a: Array) -> Any:
    return _derivative_of_expm(a, dots[0])


def _expm_series(a: Array) -> Any:
    """The exponential by scaling and squaring of the power series."""
    small = a / 1024.0
    term = total = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    for k in range(1, 12):
        term = term @ small / k
        total = total + term
    return np.linalg.matrix_power(total, 1024)


on_last_axes(expm, 2)


@expm.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 2)),), {}
