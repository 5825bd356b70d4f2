"""The result of `wengert.integrate.solve`.

Solution           times, states, events and counts
raise_if_failed    an error for a solution that did not reach the end
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core import display
from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert.errors import ConvergenceError, at, user_line
from wengert.scipy.integrate.ivp.initial_value import MESSAGES
from wengert.scipy.integrate.ivp.loop import Status


class Solution(NamedTuple):
    """The solution of an initial value problem.

    Attributes
    ----------
    t : array or number
        The times of `y`.
    y : container of arrays
        The states: like `y0`, with the times as the first axis unless `t` is a number. In a
        compiled function, states at times that were not reached are NaN.
    status : int
        0: the end is reached; 1: an event ended the integration; -1: a smaller step than the
        spacing of numbers is needed; -2: `max_steps` were taken; -3: the function is not finite;
        -4: no initial values that satisfy the algebraic equations were found (by SUNDIALS' IDA).
    n_steps, n_rejected : int
        Steps, and attempts that were repeated with a smaller step.
    nfev, njev, nlu : int
        Evaluations of the function and of its Jacobian, and LU factorizations.
    t_events, y_events : tuple of arrays
        For each event the times at which it occurred, and the states there. In a compiled function
        they have a fixed length, filled with NaN.
    n_events : tuple of int
        How often each event occurred.
    sol : callable or None
        The solution as a function of time, with ``dense=True``.
    """

    t: Any
    y: Any
    status: Any
    n_steps: Any
    n_rejected: Any
    nfev: Any
    njev: Any
    nlu: Any
    t_events: tuple[Any, ...] = ()
    y_events: tuple[Any, ...] = ()
    n_events: tuple[Any, ...] = ()
    sol: Any = None

    @property
    def success(self) -> Any:
        """Whether the end or a terminal event is reached."""
        return self.status >= 0

    @property
    def message(self) -> str:
        """The status in words."""
        return MESSAGES[int(value_of(self.status))]

    def __repr__(self) -> str:
        if is_traced(self.status):
            return "<Solution in a graph>"
        return (
            f"<Solution: {self.message} {int(value_of(self.n_steps))} steps, "
            f"{int(value_of(self.n_rejected))} rejected, {int(value_of(self.nfev))} evaluations>"
        )

    def _repr_html_(self) -> str:
        if is_traced(self.status):
            return display.table("Solution in a graph", {"t": self.t, "y": self.y})
        counts = ("n_steps", "n_rejected", "nfev", "njev", "nlu")
        rows: dict[str, object] = {name: int(value_of(getattr(self, name))) for name in counts}
        events = {"events": ", ".join(map(str, self.n_events))} if self.n_events else {}
        return display.table(
            "Solution", {"message": self.message, "t": self.t, "y": self.y, **rows, **events}
        )


_ADVICE = {
    Status.TOO_SMALL: (
        "the solution may become infinite there, or the function is discontinuous; for a stiff "
        "problem choose an implicit method"
    ),
    Status.TOO_MANY: (
        "allow more by max_steps, or choose larger tolerances; a stiff problem needs an implicit "
        "method"
    ),
    Status.NOT_FINITE: "the function, or the solution, is not finite there",
    Status.INCONSISTENT: (
        "give better first guesses of the algebraic components of the initial state; or the "
        "equations do not determine them, and have an index above 1"
    ),
}


def checked(status: Any, t: Any, y: Any, what: str) -> Any:
    """The state at the end; an error if it is not reached.

    Within a graph the error is raised when it runs; within a loop or branch of a graph, which
    cannot raise, the state and its derivatives are NaN instead.

    Raises
    ------
    ConvergenceError
        The end is not reached.
    """
    if is_traced(status) and not RuntimeChecks.may_raise():
        return y * np.where(status < 0, np.nan, 1.0)  # a constant would have the derivative zero
    _raise_if_failed(status, t, y, what)
    return y


def _raise_if_failed(status: Any, t: Any, y: Any, what: str) -> None:
    if is_traced(status):
        for code, advice in _ADVICE.items():
            message = f"{what} failed: {MESSAGES[code]} {advice.capitalize()}{at(user_line())}."
            RuntimeChecks.add(status == code, ConvergenceError(message))
        return
    code = int(value_of(status))
    if code < 0:
        state = np.array2string(np.asarray(value_of(y)), threshold=6, edgeitems=2)
        raise ConvergenceError(
            f"{what} failed at t = {float(value_of(t))}, y = {state}: {MESSAGES[code]} "
            f"{_ADVICE[code].capitalize()}{at(user_line())}."
        )
