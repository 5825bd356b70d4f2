"""The result of a nonlinear program.

Multipliers   of constraints and bounds
NLPProgress   what a callback gets after each iteration
NLPResult     the result
ProgramOutcome       the same as vectors, before it is put into the containers of the caller
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import optree

from wengert._engine.core import display
from wengert._engine.core.pytree import NAMESPACE


@display.shown_fields
class Multipliers(NamedTuple):
    """Lagrange multipliers: positive at upper limits, negative at lower ones, zero elsewhere.

    With them the gradient of ``f + constraints @ g + bounds @ x`` is zero.

    constraints : nested as the constraints and their results.
    bounds : nested as x.
    """

    constraints: Any
    bounds: Any


@dataclass(frozen=True)
class NLPProgress:
    """The state of a solver after an iteration.

    Attributes
    ----------
    nit : int
    fun : float
        The objective.
    violation : float
        The largest violation of a constraint.
    optimality : float
        The norm of the gradient of the Lagrange function.
    barrier : float
        The barrier parameter.
    step : float
        The length of the last step.
    """

    nit: int
    fun: float
    violation: float
    optimality: float
    barrier: float
    step: float


@dataclass(frozen=True)
class NLPResult:
    """The result of `nlp`.

    Attributes
    ----------
    x : container of arrays
        The minimum, nested as x0. It has a derivative, as have `fun` and `multipliers`.
    fun : number
        The minimal value.
    multipliers : Multipliers
        Of constraints and bounds.
    success : bool
    status : int
        The status of the method.
    message : str
        What it means.
    violation : float
        The largest violation of a limit.
    violated : str or None
        Which limit that is, if the point is not feasible.
    nit : int
        The number of iterations.
    evaluations : dict
        How often each function was called.
    seconds : dict
        The time in each function, in all of them ("functions"), in the whole solve ("solve";
        "processor" is that of the processor, which does not count waiting), and before it for
        patterns and compilation ("build").
    degenerate : tuple of str
        Limits that are active with a multiplier of zero: the derivative is one-sided.
    method : str

    Notes
    -----
    In a graph (in a compiled function) only `x`, `fun`, `multipliers`, `success`, `status` and
    `nit` are known; the others are empty. As a container it has these leaves.
    """

    x: Any
    fun: Any
    multipliers: Multipliers
    success: Any
    status: Any
    nit: Any
    method: str
    message: str = ""
    violation: float = float("nan")
    violated: str | None = None
    evaluations: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    degenerate: tuple[str, ...] = ()

    def _lines(self) -> dict[str, object]:
        return {
            "message": self.message,
            "success": self.success,
            "fun": self.fun,
            "x": self.x,
            "multipliers.constraints": self.multipliers.constraints,
            "multipliers.bounds": self.multipliers.bounds,
            "violated": self.violated or f"nothing (at most {self.violation:.1e})",
            "degenerate": ", ".join(self.degenerate),
            "nit": self.nit,
            "evaluations": ", ".join([f"{k} {v}" for k, v in self.evaluations.items()]),
            "seconds": ", ".join([f"{k} {v:.3g}" for k, v in self.seconds.items()]),
            "method": f"{self.method} (status {self.status})",
        }

    def _repr_html_(self) -> str:
        return display.table("Nonlinear program", self._lines())

    def __repr__(self) -> str:
        lines = self._lines()
        width = max(map(len, lines))
        with np.printoptions(threshold=20, edgeitems=3):
            texts = [
                f"{name:>{width}}: {str(value).replace(chr(10), chr(10) + ' ' * (width + 2))}"
                for name, value in lines.items()
                if name != "degenerate" or value
            ]
        return "\n".join(texts)


_LEAVES = ("x", "fun", "multipliers", "success", "status", "nit")

_register: Any = optree.register_pytree_node  # typed for collections only
_register(
    NLPResult,
    lambda result: ([getattr(result, name) for name in _LEAVES], result.method, _LEAVES),
    lambda method, leaves: NLPResult(**dict(zip(_LEAVES, leaves, strict=True)), method=method),
    namespace=NAMESPACE,
)


@dataclass
class ProgramOutcome:
    """The result of a solver as vectors.

    x, multipliers, bound_multipliers : arrays
    fun : float
    success, status, message, nit : as in NLPResult
    evaluations, seconds : dict
    not_finite : what was not finite in the last evaluation that failed, or "".
    """

    x: np.ndarray[Any, Any]
    multipliers: np.ndarray[Any, Any]
    bound_multipliers: np.ndarray[Any, Any]
    fun: float
    success: bool
    status: int
    message: str
    nit: int
    evaluations: dict[str, int]
    seconds: dict[str, float]
    not_finite: str = ""
    violation: float = 0.0
    violated: str | None = None
    degenerate: tuple[str, ...] = ()
