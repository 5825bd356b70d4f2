"""Linear least squares with bounds, and isotonic regression.

    nnls                 solutions that are not negative
    lsq_linear           solutions between bounds
    LinearSolver         SciPy's functions as solvers
    isotonic_regression  as SciPy's
    isotonic_blocks      the operation: the block of each element

An isotonic solution is constant in blocks, and the weighted mean there; the blocks do not change
for small changes of the data, unless two of them have equal means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.core import display
from wengert._engine.core.handle import describe, is_traced, shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.opaque import opaque
from wengert._engine.ops import casts
from wengert._engine.ops.indexing.getitem import IndexSlot
from wengert.errors import ShapeError, at, user_line

from ..dispatch import floating, holds_tensors
from .equations import Equation, Solved, TracedFunctions, raise_unconverged, solve_equation
from .minimize_solver import Ends, bounds_of
from .optimality import projected
from .roots import result_of
from .solver_operation import Function, Outcome, SolverOptions

__all__ = ["isotonic_regression", "lsq_linear", "nnls"]


@dataclass(frozen=True)
class LinearSolver:
    """`scipy.optimize.nnls` or `lsq_linear`; the starts are matrix, right-hand side and bounds."""

    options: SolverOptions

    def __call__(self, functions: Sequence[Function], starts: Sequence[Any]) -> Outcome:
        """Call SciPy; elements at active bounds are set to these."""
        a, b, *ends = [np.asarray(x, float) for x in starts]
        if not ends:
            try:
                x, _ = scipy.optimize.nnls(a, b, **self.options.value)
            except RuntimeError:  # too many iterations
                return Outcome(np.full(a.shape[1], np.nan), False)
            return Outcome(x, True, 0)
        found = scipy.optimize.lsq_linear(a, b, tuple(ends), **self.options.value)
        x = np.where(found.active_mask < 0, ends[0], found.x)
        x = np.where(found.active_mask > 0, ends[1], x)
        return Outcome(x, bool(found.success), found.status, -1, found.nit, found)


def _operands(a: Any, b: Any, what: str) -> tuple[Any, Any, Spec]:
    a, b = casts.astype(floating(a), float), casts.astype(floating(b), float)
    if a.ndim != 2 or b.shape != (a.shape[0],):
        raise ShapeError(
            f"{what}: A has shape {a.shape} and b {b.shape}. A must be a matrix, and b a vector "
            f"with an element for each row{at(user_line())}."
        )
    return a, b, Spec((describe(a).shape[1],), np.dtype(float))


def nnls(A: Any, b: Any, *, maxiter: int | None = None) -> Any:
    """Least squares with solutions that are not negative, as ``scipy.optimize.nnls``.

    Parameters
    ----------
    A, b : array
        A matrix and a vector; differentiated.
    maxiter : int, optional
        As in SciPy.

    Returns
    -------
    x : array
    rnorm : float
        The norm of ``A @ x - b``.

    Raises
    ------
    RuntimeError
        Too many iterations. In a graph it is not known: derivatives raise ConvergenceError.
    MatrixError
        The derivative is needed, and the solution is not unique.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> a = np.array([[2.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> wg.jacobian(lambda b: optimize.nnls(a, b)[0])(np.array([2.0, -3.0, 1.0])).round(3)
    array([[0.4, 0. , 0.2],
           [0. , 0. , 0. ]])
    """
    if not holds_tensors([A, b]):
        return scipy.optimize.nnls(A, b, maxiter=maxiter)
    a, right, spec = _operands(A, b, "nnls")
    solver = LinearSolver(SolverOptions({"maxiter": maxiter}))

    found = _solved("nnls", spec, solver, [a, right])
    raise_unconverged(found, "nnls", maxiter or 3 * int(a.shape[1]))
    return found.solution, np.linalg.norm(a @ found.solution - right)


def lsq_linear(
    A: Any,
    b: Any,
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    tol: float = 1e-10,
    lsq_solver: str | None = None,
    lsmr_tol: Any = None,
    max_iter: int | None = None,
    verbose: int = 0,
    *,
    lsmr_maxiter: int | None = None,
) -> Any:
    """Least squares with solutions between bounds, as ``scipy.optimize.lsq_linear``.

    Parameters
    ----------
    A, b : array
        A dense matrix and a vector; differentiated.
    bounds : pair or Bounds
        The ends may be tensors, which are differentiated.
    method, tol, lsq_solver, lsmr_tol, max_iter, verbose, lsmr_maxiter
        As in SciPy.

    Returns
    -------
    OptimizeResult
        `x`, `fun` and `cost` are tensors.

    Raises
    ------
    MatrixError
        The derivative is needed, and the solution is not unique.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> a = np.array([[2.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> b = np.array([2.0, 3.0, 1.0])
    >>> wg.jacobian(lambda u: optimize.lsq_linear(a, b, (0.0, u)).x)(1.5).round(3)
    array([-0.4,  1. ])
    """
    ends = [bounds.lb, bounds.ub] if hasattr(bounds, "lb") else list(bounds)
    if not holds_tensors([A, b, *ends]):
        return scipy.optimize.lsq_linear(
            A, b, bounds, method, tol, lsq_solver, lsmr_tol, max_iter, verbose,
            lsmr_maxiter=lsmr_maxiter,
        )  # fmt: skip
    a, right, spec = _operands(A, b, "lsq_linear")
    options = {
        "method": method, "tol": tol, "lsq_solver": lsq_solver, "lsmr_tol": lsmr_tol,
        "max_iter": max_iter, "verbose": verbose, "lsmr_maxiter": lsmr_maxiter,
    }  # fmt: skip
    low_high = bounds_of(Ends(ends), int(spec.shape[0]))
    found = _solved("lsq_linear", spec, LinearSolver(SolverOptions(options)), [a, right, *low_high])
    residual = a @ found.solution - right
    return result_of(found, residual, cost=0.5 * residual @ residual)


def _solved(name: str, spec: Spec, solver: LinearSolver, values: Sequence[Any]) -> Solved:
    """The solution for a matrix, a right-hand side, and bounds if they are not zero below."""
    traced = TracedFunctions([], list(values), len(values), name)
    rule = Equation(
        name, [traced.made((name, "conditions"), _conditions, spec)], 0, spec, solver, 1
    )
    return solve_equation(rule, traced.consts, values)


def _conditions(_: Sequence[Function], values: Sequence[Any]) -> Function:
    a, right, *ends = values
    return lambda x: projected(x, a.T @ (a @ x - right), *(ends or [0.0]))


# ---- isotonic regression -----------------------------------------------------------------------


def _pooled(y: Any, weights: Any, *, increasing: bool = True) -> Any:
    """The blocks by pooling neighbors until means are monotone (the oracle of the operation)."""
    blocks = [[k] for k in range(len(y))]

    def mean(block: list[int]) -> Any:
        return np.sum(weights[block] * y[block]) / np.sum(weights[block])

    k = 0
    while k + 1 < len(blocks):
        first, second = mean(blocks[k]), mean(blocks[k + 1])
        if (first >= second) if increasing else (first <= second):
            blocks[k : k + 2] = [blocks[k] + blocks[k + 1]]
            k = max(k - 1, 0)
        else:
            k += 1
    return np.repeat(np.arange(len(blocks)), [len(b) for b in blocks])


@opaque(name="isotonic_blocks", discrete=True, trusted=True, oracle=_pooled)
def isotonic_blocks(y: Any, weights: Any, *, increasing: bool = True) -> Any:
    """The number of the block of each element."""
    found = scipy.optimize.isotonic_regression(y, weights=weights, increasing=increasing)
    counts = np.diff(found.blocks)
    return np.repeat(np.arange(len(counts), dtype=np.int64), counts)


isotonic_blocks.host_callback = BY_SCIPY


@isotonic_blocks.spec
def _(y: Spec, weights: Spec, *, increasing: bool = True) -> Any:
    return Spec(y.shape, np.dtype(np.int64))


@isotonic_blocks.examples
def _(rng: np.random.Generator) -> Any:
    y, weights = rng.normal(size=7), rng.uniform(0.5, 2.0, 7)
    yield (y, weights), {}
    yield (y, weights), {"increasing": False}


def isotonic_regression(y: Any, *, weights: Any = None, increasing: bool = True) -> Any:
    """The nearest monotone vector, as ``scipy.optimize.isotonic_regression``.

    Parameters
    ----------
    y : array of shape (n,)
    weights : array of shape (n,), optional
        Positive; differentiated, as `y` is.
    increasing : bool, default True

    Returns
    -------
    OptimizeResult
        `x` is a tensor. In a graph, where the number of blocks is not known, it has nothing else.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> f = lambda y: optimize.isotonic_regression(y).x
    >>> f(np.array([1.0, 3.0, 2.0]))
    array([1. , 2.5, 2.5])
    >>> wg.jacobian(f)(np.array([1.0, 3.0, 2.0]))
    array([[1. , 0. , 0. ],
           [0. , 0.5, 0.5],
           [0. , 0.5, 0.5]])
    """
    if not holds_tensors([y, weights]):
        return scipy.optimize.isotonic_regression(y, weights=weights, increasing=increasing)
    y = casts.astype(floating(y), float)
    if len(shape_of(y)) != 1:
        raise ShapeError(
            f"isotonic_regression: y has shape {shape_of(y)}, and must be a vector"
            f"{at(user_line())}."
        )
    weights = np.ones_like(y) if weights is None else casts.astype(floating(weights), float)
    if shape_of(weights) != shape_of(y):
        raise ShapeError(
            f"isotonic_regression: weights have shape {shape_of(weights)}, and y has shape "
            f"{shape_of(y)}. They must be equal{at(user_line())}."
        )
    stopped = [lookup("stop_gradient")(v) for v in (y, weights)]
    numbers = isotonic_blocks(*stopped, increasing=bool(increasing))
    add, read = lookup("scatter"), lookup("getitem")
    index, shape = (IndexSlot(0),), shape_of(y)
    sums = [add(v, numbers, index=index, shape=shape) for v in (weights * y, weights)]
    x = read(sums[0], numbers, index=index) / read(sums[1], numbers, index=index)
    result = scipy.optimize.OptimizeResult(x=x)
    if not is_traced(numbers):
        first = np.flatnonzero(np.diff(np.asarray(numbers), prepend=-1))
        result.blocks = np.append(first, len(np.asarray(numbers)))
        result.weights = sums[1][: len(first)]
    return display.shown_result(result)
