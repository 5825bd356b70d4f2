"""CVODE and IDA of SUNDIALS, through scikit-sundae; the only module that imports it.

A. C. Hindmarsh et al., "SUNDIALS: Suite of nonlinear and differential/algebraic equation solvers",
ACM Trans. Math. Softw. 31 (2005).

    is_installed  whether scikit-sundae can be imported
    Functions     what the solvers call
    StepLimits    tolerances and limits
    SolverSteps   states at times, or after each step
    integrate     one integration, in either direction
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wengert.errors import BackendError, at, user_line
from wengert.scipy.integrate.ivp.loop import Status

Array = np.ndarray[Any, Any]
_MOST_STEPS = -1  # SUNDIALS' code
_MOST_CALLS = 40  # at one time; attempts of a step need about ten
_MESSAGE = re.compile(r"\n?\[\w+, Error: -?\d+\]")


def is_installed() -> bool:
    """Whether scikit-sundae can be imported."""
    return importlib.util.find_spec("sksundae") is not None


def require(what: str) -> None:
    """Raise if scikit-sundae cannot be imported."""
    if not is_installed():
        raise BackendError(
            f"{what}: SUNDIALS is not installed. Install it by `pip install 'wengert[sundials]'` "
            "(the package scikit-sundae, which contains it), or choose one of wengert's own "
            f"methods: 'rodas5p', 'Radau', 'BDF'{at(user_line())}."
        )


@dataclass(frozen=True)
class Functions:
    """What the solvers call.

    value : ``value(t, y)``, the right-hand side; of IDA ``value(t, y, ydot)``, the residual.
    jacobian : its derivatives with respect to y, and to ydot beside them.
    """

    value: Callable[..., Array]
    jacobian: Callable[..., Array]


@dataclass(frozen=True)
class StepLimits:
    """Tolerances and limits.

    atol : a vector.
    max_step, first_step : absolute sizes; 0: no limit, and chosen by the solver.
    max_steps : the largest number of attempted steps.
    """

    rtol: float
    atol: Array
    max_step: float = 0.0
    first_step: float = 0.0
    max_steps: int = 100_000


class SolverSteps(NamedTuple):
    """States at times that were reached.

    ts, ys, slopes : the times, the first of which is the start; states, and their derivatives.
    status : as `Status`.
    counts : evaluations of the function, and of its Jacobian.
    """

    ts: Array
    ys: Array
    slopes: Array
    status: int
    counts: tuple[int, int]


def integrate(
    solver: str, functions: Functions, ts: Array, y: Array, slope: Array, control: StepLimits
) -> SolverSteps:
    """The states at times from `y` at the first of them; with two times, after each step.

    Parameters
    ----------
    solver : str
        "CVODE_BDF", "CVODE_Adams" or "IDA".
    functions : Functions
    ts : vector
        Strictly increasing or decreasing.
    y, slope : vector
        The initial state, and for IDA its derivative, which are consistent.
    control : StepLimits
    """
    # The solvers take no first step in backward time, so time is reversed.
    sign = 1.0 if ts[-1] > ts[0] else -1.0
    watched = _Watched(functions.value, control.max_steps)
    made = _ida if solver == "IDA" else _cvode
    run = made(solver, watched, functions.jacobian, sign, control)
    with _without_messages():
        found = run.solve(sign * ts, y, *([sign * slope] if solver == "IDA" else []))
    slopes = sign * found.yp if solver == "IDA" else np.zeros_like(found.y)
    count = len(found.t) - (found.status < 0)  # the last one is where it failed
    reached_ts, reached = sign * found.t[:count], found.y[:count]
    status = Status.FINISHED
    if found.status < 0:
        status = Status.TOO_MANY if found.status == _MOST_STEPS else watched.status
    elif not np.isfinite(reached[-1]).all():
        status = Status.NOT_FINITE
    return SolverSteps(reached_ts, reached, slopes[:count], status, (found.nfev, found.njev))


class _Watched:
    """A function whose values are NaN after too many steps, which ends the integration.

    SUNDIALS warns of steps that are smaller than the spacing of numbers, and goes on with them; and
    its limit of steps is for those between two times of the result.
    """

    def __init__(self, value: Callable[..., Array], max_steps: int) -> None:
        self._value, self._time, self._calls = value, np.nan, 0
        self._attempts, self._max_steps, self._failure = 0, max_steps, Status.RUNNING
        self._last: Array = np.zeros(0)

    def __call__(self, t: float, *vectors: Array) -> Array:
        """The value at a time."""
        if t == self._time:
            self._calls += 1
        else:
            self._time, self._calls, self._attempts = t, 0, self._attempts + 1
        if self._failure == Status.RUNNING and self._attempts > self._max_steps + 1:
            self._failure = Status.TOO_MANY
        if self._failure == Status.RUNNING and self._calls >= _MOST_CALLS:
            self._failure = Status.TOO_SMALL
        if self._failure != Status.RUNNING:
            return np.full(len(self._last), np.nan)
        self._last = self._value(t, *vectors)
        return self._last

    @property
    def status(self) -> int:
        """Why the integration has failed."""
        if self._failure != Status.RUNNING:
            return self._failure
        return Status.TOO_SMALL if np.isfinite(self._last).all() else Status.NOT_FINITE


def _cvode(
    name: str, value: Callable[..., Array], jacobian: Any, sign: float, control: StepLimits
) -> Any:
    from sksundae.cvode import CVODE

    def rhs(t: float, y: Array, out: Array) -> None:
        np.multiply(value(sign * t, y), sign, out=out)

    def jac(t: float, y: Array, _: Array, out: Array) -> None:
        np.multiply(jacobian(sign * t, y), sign, out=out)

    return CVODE(rhs, jacfn=jac, method=name.removeprefix("CVODE_"), **_options(control))


def _ida(
    name: str, value: Callable[..., Array], jacobian: Any, sign: float, control: StepLimits
) -> Any:
    from sksundae.ida import IDA

    def residual(t: float, y: Array, slope: Array, out: Array) -> None:
        out[:] = value(sign * t, y, sign * slope)

    def jac(t: float, y: Array, slope: Array, _: Array, cj: float, out: Array) -> None:
        both = jacobian(sign * t, y, sign * slope)
        n = len(y)
        np.multiply(both[:, n:], sign * cj, out=out)
        out += both[:, :n]

    return IDA(residual, jacfn=jac, **_options(control))


def _options(control: StepLimits) -> dict[str, Any]:
    return {
        "rtol": float(control.rtol),
        "atol": control.atol,
        "max_step": control.max_step,
        "first_step": control.first_step,
        "max_num_steps": control.max_steps,
    }


class _Messages(io.TextIOBase):
    """Standard output without SUNDIALS' messages, whose content is in the status."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._is_message = stream, False

    def write(self, text: str) -> int:
        """Write what is not a message, nor the end of its line."""
        is_end = self._is_message and text == "\n"
        self._is_message = _MESSAGE.match(text) is not None
        if not self._is_message and not is_end:
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()


@contextlib.contextmanager
def _without_messages() -> Iterator[None]:
    """Standard output without the messages that scikit-sundae prints."""
    with contextlib.redirect_stdout(_Messages(sys.stdout)):  # type: ignore[type-var]
        yield
