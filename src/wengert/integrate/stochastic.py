"""Stochastic differential equations by fixed steps, with pathwise derivatives.

    solve_sde      dy = f(t, y) dt + g(t, y) dW
    SdeSolution    times and states
    SdeProblem     drift and diffusion of vectors
    SdeMethod      a step, and what noise it needs
    METHODS        the methods by name

The increments of the Brownian motion are functions of a key and of the number of the step, so that
they are the same in each evaluation, derivatives included, and need no memory.

Increments are ``dW = sqrt(h) z`` for standard normal z; 'srk' takes a second one for the integral
of the Brownian motion over the step.  In backward time, h < 0, they have the size sqrt(-h).

References
----------
.. [1] P. E. Kloeden, E. Platen, Numerical Solution of Stochastic Differential Equations (1992).
.. [2] A. Roessler, "Runge-Kutta methods for the strong approximation of solutions of stochastic
   differential equations", SIAM Journal on Numerical Analysis 48, 922-952 (2010).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.control_flow import fori_loop, scan
from wengert._engine.core import display
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.validation import function
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert._engine.visualization.progress import TqdmBar
from wengert.errors import ArgumentError, ShapeError, at, user_line
from wengert.random.inverse_transform import normal
from wengert.random.keys import fold_in
from wengert.scipy.integrate.ivp.observers import bar_of_loop, loop_progress
from wengert.sparse import sparsity

from .solution import StateLeaves, as_state

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


_WHAT = "solve_sde"
_NOISES = ("diagonal", "scalar", "general")


@display.shown_fields
class SdeSolution(NamedTuple):
    """The solution of a stochastic differential equation.

    t : the times of `y`: a number, or a vector.
    y : the states: like `y0`, with the times as the first axis if `t` is a vector.
    """

    t: Any
    y: Any


def solve_sde(
    drift: Callable[..., Any],
    diffusion: Callable[..., Any],
    t: Sequence[Any] | Any,
    y0: Any,
    args: tuple[Any, ...] = (),
    *,
    key: Any,
    steps: int,
    method: str = "euler_maruyama",
    noise: str = "diagonal",
    memory: int | str | None = None,
    progress: bool | Callable[..., TqdmBar] = False,
) -> SdeSolution:
    """Solve dy = drift(t, y, *args) dt + diffusion(t, y, *args) dW by steps of equal size.

    Parameters
    ----------
    drift, diffusion : callable
        Functions of time, state and `args`. `drift` returns the derivative, like `y`. So does
        `diffusion` for 'diagonal' and 'scalar' noise; for 'general' noise it returns an array of
        shape (n, m) for a state of n numbers and m Brownian motions.
    t : sequence of float or Tensor
        The initial time, and the times of the result.
    y0 : array or container of arrays
        The initial state.
    args : tuple
        Further arguments of both functions, which are differentiated.
    key : uint64[2]
        The key of the Brownian motion, `wengert.random.key`: paths of equal keys are equal.
    steps : int
        The number of steps between two times of `t`.
    method : str
        'euler_maruyama', of strong order 1/2 for all noise; 'milstein', of order 1, and 'srk', of
        order 3/2, for diagonal and scalar noise; 'heun' for equations of Stratonovich, all noise.
        The others are for equations of Ito.
    noise : str
        'diagonal': a Brownian motion for each component; 'scalar': one for all; 'general'.
    memory : int or str, optional
        The memory limit of the backward pass, as in `wengert.fori_loop`.
    progress : bool or callable
        Whether to show a progress bar, as in `solve`.

    Returns
    -------
    SdeSolution
        The state at the last time if `t` has two elements, and at all of them otherwise.

    Raises
    ------
    ArgumentError
        There is no such method, or it does not allow this noise. With diagonal noise 'milstein' and
        'srk' need a diffusion whose components depend on the same component of the state only.
    ShapeError, StructureError
        A function returns something that is not like the state.

    Notes
    -----
    Derivatives are those of the path: of the numbers that are computed, at fixed increments. Cost:
    a gradient about three solutions; `memory` bounds the stored states. For many paths use
    ``wengert.vmap`` over keys, `wengert.random.split`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.integrate import solve_sde
    >>> def price(volatility, key):
    ...     return solve_sde(lambda t, y: 0.05 * y, lambda t, y: volatility * y, (0.0, 1.0),
    ...                      np.array([100.0]), key=key, steps=50, method="milstein").y[0]
    >>> keys = wg.random.split(wg.random.key(0), 2000)
    >>> mean = lambda v: wg.vmap(lambda k: np.maximum(price(v, k) - 100.0, 0.0))(keys).mean()
    >>> [round(float(x)) for x in wg.value_and_grad(mean)(0.2)]
    [11, 39]
    """
    function(drift, _WHAT)
    function(diffusion, _WHAT)
    _check(method, noise, steps)
    times = as_array(t) if not isinstance(t, list | tuple) else np.stack([as_array(x) for x in t])
    if len(times.shape) != 1 or times.shape[0] < 2:
        raise ArgumentError(f"{_WHAT}: t must be two times, or more{at(user_line())}.")
    times = times * 1.0
    y0 = as_state(y0)
    leaves = StateLeaves(y0, f"{_WHAT}: the state")
    start = leaves.vector(leaves.leaves.values)
    problem = _problem(drift, diffusion, leaves, args, noise)
    channels = _channels(problem, times[0], start, noise)
    step = METHODS[method].step
    if METHODS[method].needs_diagonal and noise == "diagonal":
        problem.check_diagonal(times[0], start, f"{_WHAT}: method={method!r}")

    count = int(times.shape[0]) - 1
    bar = loop_progress(progress, _WHAT)

    def interval(y: Any, ends: Any) -> tuple[Any, Any]:
        first, last, number = ends
        h = (last - first) / steps

        def one(i: Any, y: Any) -> Any:
            done = number * steps + i
            draw = normal(fold_in(key, done), (2, *channels))
            y = step(problem, first + i * h, h, y, draw)
            if bar is not None:
                bar.advance_step(done, count * steps, first + (i + 1) * h)
            return y

        y = fori_loop(0, steps, one, y, memory)
        return y, y

    numbers = np.arange(count, dtype=np.int64)
    with bar_of_loop(bar, (start, times, key)):
        _, ys = scan(interval, start, (times[:-1], times[1:], numbers), memory=memory)
    if count == 1:
        return SdeSolution(times[1], leaves.container(ys[0]))
    ys = np.concatenate([start[None], ys])
    return SdeSolution(times, leaves.container(ys, (count + 1,)))


def _check(method: str, noise: str, steps: object) -> None:
    if method not in METHODS:
        raise ArgumentError(
            f"{_WHAT}: there is no method {method!r}. Choose one of {', '.join(METHODS)}"
            f"{at(user_line())}."
        )
    if noise not in _NOISES:
        raise ArgumentError(
            f"{_WHAT}: there is no noise={noise!r}. Choose one of {', '.join(_NOISES)}"
            f"{at(user_line())}."
        )
    if METHODS[method].needs_diagonal and noise == "general":
        allowed = [name for name, m in METHODS.items() if not m.needs_diagonal]
        raise ArgumentError(
            f"{_WHAT}: method={method!r} does not allow general noise, which needs integrals of "
            f"products of Brownian motions. Use {' or '.join(allowed)}{at(user_line())}."
        )
    if is_traced(steps) or int(value_of(steps)) != value_of(steps) or int(value_of(steps)) < 1:
        raise ArgumentError(
            f"{_WHAT}: steps must be a positive integer, and is {steps!r}{at(user_line())}."
        )


def _problem(
    drift: Any, diffusion: Any, leaves: StateLeaves, args: tuple[Any, ...], noise: str
) -> SdeProblem:
    """The functions of vectors."""
    state = leaves.leaves.container(leaves.leaves.values)
    of_drift = StateLeaves(state, f"{_WHAT}: the result of drift")
    of_diffusion = StateLeaves(state, f"{_WHAT}: the result of diffusion")

    def f(t: Any, y: Any) -> Any:
        return of_drift.vector_like(converted(drift)(t, leaves.container(y), *args))

    def g(t: Any, y: Any) -> Any:
        out = converted(diffusion)(t, leaves.container(y), *args)
        return as_array(out) if noise == "general" else of_diffusion.vector_like(out)

    return SdeProblem(f, g, noise)


def _channels(problem: SdeProblem, t: Any, y: Any, noise: str) -> tuple[int, ...]:
    """The shape of the increments of a step."""
    if noise == "scalar":
        return (1,)
    if noise == "diagonal":
        return (int(y.shape[0]),)
    shape = tuple(problem.g(t, y).shape)
    if len(shape) != 2 or shape[0] != y.shape[0]:
        raise ShapeError(
            f"{_WHAT}: diffusion returns shape {shape}, and with general noise must return "
            f"({y.shape[0]}, m) for m Brownian motions{at(user_line())}."
        )
    return (int(shape[1]),)
