r"""Steps of methods for stochastic differential equations.

    SdeProblem    drift and diffusion of vectors
    SdeMethod     a step, and what noise it needs
    METHODS       the methods by name

Increments are ``dW = sqrt(h) z`` for standard normal z; 'srk' takes a second one for the integral
of the Brownian motion over the step.  In backward time, h < 0, they have the size sqrt(-h).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert._engine.autodiff.jvp_vjp import jvp
from wengert.errors import ArgumentError, at, user_line
from wengert.sparse import sparsity

# The coefficients of SRI1W1 [2, table 6.2]: of the stages of the drift (0) and of the diffusion (1)
# in weights of the drift (A) and the diffusion (B), and of the new state.
_C0, _C1 = (0.0, 0.75), (0.0, 0.25, 1.0, 0.25)
_A0, _B0 = ((), (0.75,)), ((), (1.5,))
_A1 = ((), (0.25,), (1.0,), (0.25,))
_B1 = ((), (0.5,), (-1.0, 0.0), (-5.0, 3.0, 0.5))
_ALPHA = (1 / 3, 2 / 3)
_BETA1, _BETA2 = (-1.0, 4 / 3, 2 / 3, 0.0), (-1.0, 4 / 3, -1 / 3, 0.0)
_BETA3, _BETA4 = (2.0, -4 / 3, -2 / 3, 0.0), (-2.0, 5 / 3, -2 / 3, 1.0)


@dataclass(frozen=True)
class SdeProblem:
    """dy = f(t, y) dt + g(t, y) dW for vectors.

    noise : 'diagonal', 'scalar' or 'general'.
    """

    f: Callable[[Any, Any], Any]
    g: Callable[[Any, Any], Any]
    noise: str

    def product(self, t: Any, y: Any, increments: Any) -> Any:
        """The diffusion times increments of the Brownian motions."""
        g = self.g(t, y)
        return g @ increments if self.noise == "general" else g * increments

    def check_diagonal(self, t: Any, y: Any, what: str) -> None:
        """An error if a component of the diffusion depends on other components.

        Raises
        ------
        ArgumentError
            It does; the method would be of a lower order.
        """
        pattern = sparsity(lambda x: self.g(t, x))(y)
        rows, columns = np.nonzero(_dense(pattern))
        if np.any(rows != columns):
            row, column = next((r, c) for r, c in zip(rows, columns, strict=True) if r != c)
            raise ArgumentError(
                f"{what} with diagonal noise needs a diffusion whose component k depends on "
                f"component k of the state only; component {row} depends on component {column}. "
                f"Use method='euler_maruyama'{at(user_line())}."
            )


def _dense(pattern: Any) -> Any:
    return pattern.toarray() if hasattr(pattern, "toarray") else np.asarray(pattern)


@dataclass(frozen=True)
class SdeMethod:
    """A step ``step(problem, t, h, y, z)`` for standard normal numbers z of two rows."""

    step: Callable[[SdeProblem, Any, Any, Any, Any], Any]
    needs_diagonal: bool


def _euler_maruyama(problem: SdeProblem, t: Any, h: Any, y: Any, z: Any) -> Any:
    return y + h * problem.f(t, y) + problem.product(t, y, np.sqrt(np.abs(h)) * z[0])


def _milstein(problem: SdeProblem, t: Any, h: Any, y: Any, z: Any) -> Any:
    size = np.abs(h)
    dw = np.sqrt(size) * z[0]
    g = problem.g(t, y)
    _, along = jvp(lambda x: problem.g(t, x), (y,), (g,))
    return y + h * problem.f(t, y) + g * dw + 0.5 * along * (dw * dw - size)


def _heun(problem: SdeProblem, t: Any, h: Any, y: Any, z: Any) -> Any:
    dw = np.sqrt(np.abs(h)) * z[0]
    f, noise = problem.f(t, y), problem.product(t, y, dw)
    end = y + h * f + noise
    return y + 0.5 * (h * (f + problem.f(t + h, end)) + noise + problem.product(t + h, end, dw))


def _srk(problem: SdeProblem, t: Any, h: Any, y: Any, z: Any) -> Any:
    size = np.abs(h)
    root = np.sqrt(size)
    dw = root * z[0]
    i10 = 0.5 * size * (dw + root * z[1] / np.sqrt(3.0))
    i11, i111 = 0.5 * (dw * dw - size), (dw**3 - 3.0 * size * dw) / 6.0
    fs, gs = [problem.f(t, y)], [problem.g(t, y)]
    fs.append(problem.f(t + _C0[1] * h, y + _A0[1][0] * h * fs[0] + _B0[1][0] * gs[0] * i10 / size))
    for c, a, row in zip(_C1[1:], _A1[1:], _B1[1:], strict=True):
        noise = sum([b * g for b, g in zip(row, gs, strict=True) if b])
        gs.append(problem.g(t + c * h, y + a[0] * h * fs[0] + root * noise))
    new = y + h * (_ALPHA[0] * fs[0] + _ALPHA[1] * fs[1])
    for k, g in enumerate(gs):
        weight = _BETA1[k] * dw + _BETA2[k] * i11 / root + _BETA3[k] * i10 / size
        new = new + (weight + _BETA4[k] * i111 / size) * g
    return new


METHODS = {
    "euler_maruyama": SdeMethod(_euler_maruyama, False),
    "heun": SdeMethod(_heun, False),
    "milstein": SdeMethod(_milstein, True),
    "srk": SdeMethod(_srk, True),
}
