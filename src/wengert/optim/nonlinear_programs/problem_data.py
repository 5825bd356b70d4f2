"""The data of one solve: compiled functions, values, settings of the solver, result.

    ProgramFunctions    the graphs of objective and constraints
    CompiledFunctions   patterns, compiled functions and C functions
    compiled_functions  those of some graphs; the last ones are kept
    Multipliers         of constraints and bounds
    NLPProgress         what a callback gets after each iteration
    NLPResult           the result
    ProgramOutcome      the same as vectors, before it is put into the containers of the caller
    ProblemData         limits, initial guess, captured values, names
    SolverSettings      method and options, compared by content
    Stopwatch           the time of a solve
    as_progress         the state after an iteration

Compiled functions are kept for programs with equal graphs, so that solving a program again, with
other values of the arguments, compiles nothing.
"""

from __future__ import annotations

import functools
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import optree

from wengert._engine.autodiff.grad import grad
from wengert._engine.core import display
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import inline_graph
from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.pytree import NAMESPACE
from wengert._engine.core.spec import Spec
from wengert._engine.core.thread_state import lock
from wengert._engine.jit import jit
from wengert.scipy.optimize.solver_operation import SolverOptions
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


Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SolverSettings:
    """How a program is solved.

    method : "ipopt" or "trust-constr".
    tol, callback, options : as in `nlp`.
    scaling : "gradient", None, or a dict of numbers and tuples.
    warm : whether multipliers of a solution are given.
    x_names, g_names : of the elements of the unknowns and constraints.
    """

    method: str
    tol: float | None
    options: SolverOptions
    scaling_options: SolverOptions
    callback: Any
    warm: bool
    x_names: tuple[str, ...]
    g_names: tuple[str, ...]

    @property
    def scaling(self) -> Any:
        """The scaling that was given."""
        return self.scaling_options.value


@dataclass
class ProblemData:
    """The values of one solve.

    consts : captured values.
    lower_x, upper_x, lower_g, upper_g : limits.
    x0, multipliers0, bounds0 : where the solver begins.
    """

    compiled: CompiledFunctions
    settings: SolverSettings
    consts: list[Any]
    lower_x: Array
    upper_x: Array
    lower_g: Array
    upper_g: Array
    x0: Array
    multipliers0: Array
    bounds0: Array

    @property
    def x_scaling(self) -> Array | None:
        """Factors of the unknowns."""
        return self._scaling("x", len(self.x0))

    @property
    def g_scaling(self) -> Array | None:
        """Factors of the constraints."""
        return self._scaling("constraints", len(self.lower_g))

    def _scaling(self, name: str, size: int) -> Array | None:
        given = self.settings.scaling
        if not isinstance(given, dict) or name not in given:
            return None
        return np.array(np.broadcast_to(np.asarray(given[name], float), (size,)))

    def named_failure(self, function: str, element: int) -> str:
        """What is not finite, from a function and the index of the element of its result."""
        x_names, g_names = self.settings.x_names, self.settings.g_names
        if element < 0:
            return f"the evaluation of {function} failed"
        if function == "f":
            return "the objective"
        if function == "grad_f":
            return f"the derivative of the objective with respect to {x_names[element]}"
        if function == "g":
            return f"the constraint {g_names[element]}"
        if function == "jac_g":
            rows, columns = entries_of(self.compiled.jacobian)
            of, by = g_names[rows[element]], x_names[columns[element]]
            return f"the derivative of the constraint {of} with respect to {by}"
        rows, columns = entries_of(self.compiled.hessian)
        pair = f"{x_names[rows[element]]} and {x_names[columns[element]]}"
        return f"the second derivative of the Lagrange function with respect to {pair}"


class Stopwatch:
    """The time since it was made."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def seconds(self) -> dict[str, float]:
        """The time of a solve, and that of the processor."""
        wall, processor = time.perf_counter(), time.process_time()
        return {"solve": wall - self._wall, "processor": processor - self._processor}


def as_progress(
    nit: int, fun: float, violation: float, optimality: float, barrier: float, step: float
) -> NLPProgress:
    """The state after an iteration."""
    return NLPProgress(
        int(nit), float(fun), float(violation), float(optimality), float(barrier), float(step)
    )
