"""Solutions, and states that are containers of arrays.

StateLeaves      the conversion for one structure: dtypes, sizes and shapes are those of the
                 initial state
Solution         times, states, events and counts
raise_if_failed  an error for a solution that did not reach the end
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core import display, pytree
from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.implicit.functions import Leaves
from wengert._engine.ops.casts import astype
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ConvergenceError, at, user_line
from wengert.scipy.integrate.ivp.initial_value import MESSAGES
from wengert.scipy.integrate.ivp.loop import Status

_ONE = pytree.flatten(0.0)[1]


def _is_list(x: Any) -> bool:
    return isinstance(x, list | tuple) and len(x) > 0


def as_state(y0: Any) -> Any:
    """The initial state; a list of numbers is a vector."""
    is_flat = _is_list(y0) and isinstance(y0, list)
    if is_flat and not any([isinstance(x, list | tuple | dict) for x in y0]):
        return np.stack([as_array(x) for x in y0])
    return y0


class StateLeaves:
    """Conversion between containers like `y0` and vectors.

    Parameters
    ----------
    y0 : container of arrays
        Integers become float64; if one leaf is complex, the vector is.
    what : str
        Its name in messages.

    Raises
    ------
    StructureError
        It contains nothing, or something that is not an array of numbers.
    """

    def __init__(self, y0: Any, what: str) -> None:
        self.leaves = Leaves.of(y0, what)
        self.what = what
        self.dtype = np.result_type(*[s.dtype for s in self.leaves.specs], np.float64)
        self.sizes = [math.prod(s.shape) for s in self.leaves.specs]

    def vector(self, values: list[Any]) -> Any:
        """Leaves as one vector."""
        flat = [
            lookup("reshape")(astype(x, self.dtype), shape=(size,))
            for x, size in zip(values, self.sizes, strict=True)
        ]
        return flat[0] if len(flat) == 1 else lookup("concatenate")(*flat, axis=0)

    def vector_like(self, container: Any) -> Any:
        """Another container of the same structure as one vector; a list of numbers is a vector."""
        specs = self.leaves.specs
        if self.leaves.structure == _ONE and len(specs[0].shape) == 1 and _is_list(container):
            container = np.stack([as_array(x) for x in container])
        return self.vector(self.leaves.like(container, self.what))

    def container(self, vector: Any, lead: tuple[int, ...] = ()) -> Any:
        """A vector, or vectors along the leading axes, in containers."""
        found, start = [], 0
        for spec, size in zip(self.leaves.specs, self.sizes, strict=True):
            part = vector[..., start : start + size] if len(self.sizes) > 1 else vector
            if spec.dtype.kind != "c" and self.dtype.kind == "c":
                part = part.real
            shape = (*lead, *spec.shape)
            part = part.reshape(shape) if tuple(part.shape) != shape else part
            found.append(part if part.dtype == spec.dtype else astype(part, spec.dtype))
            start += size
        return self.leaves.container(found)


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
