"""The functions that a solver calls: objective, constraints, and sparse derivatives, compiled.

They are kept for programs with equal graphs, so that solving a program again, with other values of
the arguments, compiles nothing.

    ProgramFunctions    the graphs of objective and constraints
    CompiledFunctions   patterns, compiled functions and C functions
    compiled_functions  those of some graphs; the last ones are kept
"""

from __future__ import annotations

import functools
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.grad import grad
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import inline_graph
from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.spec import Spec
from wengert._engine.core.thread_state import lock
from wengert._engine.jit import jit
from wengert.sparse import Plan, sparse_hessian, sparse_jacobian

_KEPT_PROGRAMS = 32
_NUMBER = Spec((), np.dtype(float))


class ProgramFunctions(NamedTuple):
    """Objective and constraints as graphs of the same inputs: captured values, then x.

    captured : the number of captured values.
    """

    objective: Body
    constraints: Body
    captured: int

    @property
    def size(self) -> int:
        """The number of unknowns."""
        return int(self.objective.inputs[self.captured].spec.shape[0])

    @property
    def constraint_count(self) -> int:
        """The number of constraints."""
        return int(self.constraints.outputs[0].spec.shape[0])

    def value(self, x: Any, *consts: Any) -> Any:
        """The objective."""
        return as_handle(inline_graph(self.objective, [*consts, x])[0])

    def constrained(self, x: Any, *consts: Any) -> Any:
        """The values of the constraints."""
        return as_handle(inline_graph(self.constraints, [*consts, x])[0])

    def lagrangian(self, x: Any, factor: Any, multipliers: Any, *consts: Any) -> Any:
        """The Lagrange function, with a factor of the objective."""
        value = factor * self.value(x, *consts)
        return (
            value + multipliers @ self.constrained(x, *consts) if self.constraint_count else value
        )


class CompiledFunctions:
    """The compiled functions of a program; each is made when it is needed first.

    Attributes
    ----------
    functions : ProgramFunctions
    build_seconds : float
        The time spent in making them.
    """

    def __init__(self, functions: ProgramFunctions) -> None:
        self.functions = functions
        inputs = functions.objective.inputs[: functions.captured]
        self.captured_specs = [Spec(n.spec.shape, n.spec.dtype) for n in inputs]
        self._x = Spec((functions.size,), np.dtype(float))
        self._multipliers = Spec((functions.constraint_count,), np.dtype(float))
        self._pointers: dict[str, Any] = {}
        self.build_seconds = 0.0

    @functools.cached_property
    def jacobian(self) -> Plan:
        """The plan of the Jacobian of the constraints."""
        return sparse_jacobian(self.functions.constrained).plan(self._x, *self.captured_specs)

    @functools.cached_property
    def hessian(self) -> Plan:
        """The plan of the Hessian of the Lagrange function: entries on and below the diagonal."""
        given = [self._x, _NUMBER, self._multipliers, *self.captured_specs]
        return sparse_hessian(self.functions.lagrangian, triangle="lower").plan(*given)

    @functools.cached_property
    def by_name(self) -> dict[str, Callable[..., Any]]:
        """The functions, compiled at their first calls."""
        own = self.functions

        functions = {
            "f": own.value,
            "grad_f": grad(own.value),
            "g": own.constrained,
            "jac_g": lambda *given: self.jacobian.values(*given),
            "h": lambda *given: self.hessian.values(*given),
        }
        return {name: jit(f, source=False) for name, f in functions.items()}

    def specs(self, name: str) -> list[Spec]:
        """The specs of the arguments of a function."""
        more = [_NUMBER, self._multipliers] if name == "h" else []
        return [self._x, *more, *self.captured_specs]

    def pointer(self, name: str) -> Any:
        """A function as a C function that Ipopt calls."""
        found = self._pointers.get(name)
        if found is None:
            begin = time.perf_counter()
            form = "f" if name == "grad_f" else name
            made: Any = self.by_name[name]
            found = made.address(*self.specs(name), signature=f"ipopt {form}")
            self._pointers[name] = found
            self.build_seconds += time.perf_counter() - begin
        return found


def entries_of(plan: Plan) -> tuple[Any, Any]:
    """Rows and columns of the entries of a plan."""
    return np.asarray(plan.rows, int), np.asarray(plan.cols, int)


def as_handle(x: Any) -> Any:
    """A result of a graph as a tensor."""
    return x if isinstance(x, Handle) else wrap(constant(np.asarray(x)))


_lock = lock()
_programs: OrderedDict[ProgramFunctions, CompiledFunctions] = OrderedDict()


def compiled_functions(functions: ProgramFunctions) -> CompiledFunctions:
    """The compiled functions of some graphs; the last ones are kept."""
    with _lock:
        found = _programs.get(functions)
        if found is None:
            found = _programs[functions] = CompiledFunctions(functions)
        _programs.move_to_end(functions)
        while len(_programs) > _KEPT_PROGRAMS:
            _programs.popitem(last=False)
    return found


def plain_operands(specs: Sequence[Spec], consts: Sequence[Any]) -> list[Any]:
    """Captured values as contiguous arrays of these dtypes."""
    return [
        np.require(np.asarray(value, spec.dtype), spec.dtype, ["C", "A"])
        for value, spec in zip(consts, specs, strict=True)
    ]
