"""What an initial value problem is, for every library that is measured.

    Problem      y' = f(t, y, p) from time 0: equations, parameters, times and tolerances

``f(t, y, p)`` returns the components as a tuple and uses arithmetic only, so that NumPy, JAX,
numba and CasADi can all take it.  Where that would be long, there are two functions: one of arrays
(of wengert and JAX), one with loops (of numba and CasADi).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Problem:
    """y' = f(t, y, p) from time 0.

    f : components as a tuple, or None where ``of_arrays`` and ``by_loops`` are given:
        ``of_arrays(xp)(t, y, p)`` returns an array, ``by_loops(t, y, p, out)`` writes into one.
    end, times : of the value and of the sensitivities; those whose states the loss takes.
    rtol, atol : of every contestant.
    stiff, precise : which methods are chosen: implicit ones, or explicit ones of order 8, which
        small tolerances call for.
    steps : a bound on their number, which JAX wants to know.
    period, dose : the first component is raised by so much after each period.
    """

    name: str
    f: Callable[[Any, Any, Any], tuple[Any, ...]] | None
    start: Any
    parameters: Any
    end: float
    times: Any
    rtol: float = 1e-7
    atol: float = 1e-5
    stiff: bool = False
    precise: bool = False
    steps: int = 4096
    of_arrays: Callable[..., Any] | None = None
    by_loops: Callable[..., Any] | None = None
    period: float | None = None
    dose: float = 0.0

    def rhs(self, xp: Any) -> Callable[[Any, Any, Any], Any]:
        """The right-hand side as a function of arrays."""
        if self.of_arrays is not None:
            function: Callable[[Any, Any, Any], Any] = self.of_arrays(xp)
            return function
        components = self.f
        assert components is not None
        return lambda t, y, p: xp.stack(components(t, y, p))

    def loops(self, compiled: Callable[..., Any]) -> Callable[[Any, Any, Any, Any], None]:
        """The right-hand side that writes into an array; ``compiled`` is numba's njit."""
        if self.by_loops is not None:
            function: Callable[[Any, Any, Any, Any], None] = compiled(self.by_loops)
            return function
        components, n = compiled(self.f), len(self.start)

        def write(t: Any, y: Any, p: Any, out: Any) -> None:
            values = components(t, y, p)
            for i in range(n):
                out[i] = values[i]

        found: Callable[[Any, Any, Any, Any], None] = compiled(write)
        return found
