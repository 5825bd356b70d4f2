r"""Stochastic differential equations by fixed steps, with pathwise derivatives.

    solve_sde      dy = f(t, y) dt + g(t, y) dW
    SdeSolution    times and states

The increments of the Brownian motion are functions of a key and of the number of the step, so that
they are the same in each evaluation, derivatives included, and need no memory.

References
----------
.. [1] P. E. Kloeden, E. Platen, Numerical Solution of Stochastic Differential Equations (1992).
.. [2] A. Roessler, "Runge-Kutta methods for the strong approximation of solutions of stochastic
   differential equations", SIAM Journal on Numerical Analysis 48, 922-952 (2010).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

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
from wengert.scipy.integrate.ivp.progress import bar_of_loop, loop_progress

from .state_leaves import StateLeaves, as_state
from .stochastic_steps import METHODS, SdeProblem

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
