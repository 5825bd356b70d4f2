"""Linear systems by iterative methods of SciPy, as operations.

    cg, minres                            Hermitian matrices
    bicg, bicgstab, cgs, gmres, lgmres, gcrotmk, tfqmr
                                          other matrices
    IterativeMethod                       the interface of a method
    iterative_method                      the operation; it has no derivative
    run_method                            the same for plain values

The derivative of the solution is that of the exact one: one more system with the same matrix, or
with its adjoint, by the same method with the same options.

In a compiled function it is a host callback, which calls SciPy with compiled products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse.linalg

from wengert._engine.core.handle import dtype_of, is_traced, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.roots import only_if
from wengert._engine.implicit.solver_calls import SolverRule, solver_call
from wengert._engine.kinds.opaque import opaque
from wengert._engine.ops import casts

from ...optimize.solver_operation import SolverOptions
from .matrix_functions import MatrixFunction, matrix_function, of_operator
from .operands import LinearOperator, right_side, uses_tensors


class IterativeMethod:
    """A method with its options; hashable, compared by content."""

    def __call__(self, matrices: Sequence[Any], starts: Sequence[Any]) -> tuple[Any, ...]:
        """The results, for SciPy's matrices and plain values."""
        raise NotImplementedError

    def specs(self, matrices: Sequence[MatrixFunction]) -> tuple[Spec, ...]:
        """The specs of the results."""
        raise NotImplementedError


def run_method(
    operands: Sequence[Any],
    matrices: Sequence[MatrixFunction],
    method: IterativeMethod,
    compiled: bool,
) -> tuple[Any, ...]:
    """The results for plain operands: captured values of each matrix, then the starts."""
    made, begin = [], 0
    for matrix in matrices:
        consts = list(operands[begin : begin + matrix.captured])
        made.append(matrix.scipy_matrix(consts, compiled))
        begin += matrix.captured
    results = method(made, [np.array(x) for x in operands[begin:]])
    specs = method.specs(matrices)
    return tuple([_fitted(x, s) for x, s in zip(results, specs, strict=True)])


def _fitted(x: Any, spec: Spec) -> Any:
    """A result with the dtype of its spec: some methods return complex numbers for real ones."""
    x = np.asarray(x)
    return (x.real if x.dtype.kind == "c" != spec.dtype.kind else x).astype(spec.dtype)


class _Example(IterativeMethod):
    """Richardson's iteration, for the example of the operation."""

    def __call__(self, matrices: Sequence[Any], starts: Sequence[Any]) -> tuple[Any, ...]:
        """Two hundred steps."""
        (b,), x = starts, np.zeros(1)
        for _ in range(200):
            x = x + 0.3 * (b - matrices[0].matvec(x))
        return x, np.int64(0)

    def specs(self, matrices: Sequence[MatrixFunction]) -> tuple[Spec, ...]:
        """A vector and a number."""
        return Spec((1,), np.dtype(float)), Spec((), np.dtype(np.int64))

    def __eq__(self, other: object) -> bool:
        return type(other) is _Example

    def __hash__(self) -> int:
        return hash(_Example)


def _oracle(c: Any, b: Any, **params: Any) -> Any:
    """The solution of the example."""
    return b / c, np.int64(0)


@opaque(name="sparse.iterative_method", trusted=True, oracle=_oracle)
def iterative_method(*operands: Any, matrices: Any, method: Any) -> Any:
    """The results of an iterative method of SciPy."""
    return run_method(operands, matrices, method, compiled=True)


iterative_method.host_callback = BY_SCIPY


@iterative_method.spec
def _(*operands: Spec, matrices: Any, method: Any) -> Any:
    return method.specs(matrices)


@iterative_method.examples
def _(rng: np.random.Generator) -> Any:
    from wengert._engine.core.handle import wrap
    from wengert._engine.core.recording import tracing_body
    from wengert._engine.core.tracing import placeholder

    with tracing_body():
        c = wrap(placeholder(Spec((1,), np.dtype(float))))
        operator = LinearOperator((1, 1), lambda x: c * x)
        matrix, _ = of_operator(operator, float, "an example")
    operands = np.array([rng.uniform(1.0, 2.0)]), np.array([rng.uniform(1.0, 9.0)])
    yield operands, {"matrices": (matrix,), "method": _Example()}


def results(
    operands: Sequence[Any], matrices: Sequence[MatrixFunction], method: IterativeMethod
) -> list[Any]:
    """The results of a method: computed, or as a node in a graph."""
    if any(map(is_traced, operands)):
        return list(iterative_method(*operands, matrices=tuple(matrices), method=method))
    return list(run_method(operands, matrices, method, compiled=False))


HERMITIAN = ("cg", "minres")


class SquareMethod(IterativeMethod):
    """A method for square systems, by its name in SciPy.

    Parameters
    ----------
    name : str
    options : SolverOptions
        Keyword arguments.
    preconditioner : object or None
        SciPy's matrix or linear operator, compared by identity.
    is_adjoint : bool
        Whether the system is the adjoint one.
    """

    def __init__(
        self,
        name: str,
        options: SolverOptions,
        preconditioner: Any = None,
        is_adjoint: bool = False,
    ) -> None:
        self.name, self.options = name, options
        self.preconditioner, self.is_adjoint = preconditioner, is_adjoint
        self._key = name, options, id(preconditioner), is_adjoint

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SquareMethod) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def adjoint(self) -> SquareMethod:
        """The method for the adjoint system."""
        if self.name in HERMITIAN:
            return self
        return SquareMethod(self.name, self.options, self.preconditioner, not self.is_adjoint)

    def specs(self, matrices: Sequence[MatrixFunction]) -> tuple[Spec, ...]:
        """Of the solution, and of SciPy's `info`."""
        a = matrices[0]
        return Spec((a.shape[1],), a.dtype), Spec((), np.dtype(np.int64))

    def __call__(self, matrices: Sequence[Any], starts: Sequence[Any]) -> tuple[Any, ...]:
        """Call SciPy."""
        a, *others = matrices
        given: dict[str, Any] = dict(self.options.value)
        inverse = others[0] if others else self._preconditioner(a)
        if inverse is not None:
            given["M"] = inverse
        if self.is_adjoint:
            given.pop("callback", None)
        b, x0 = starts
        x, info = getattr(scipy.sparse.linalg, self.name)(a, b, x0=x0, **given)
        return x, info

    def _preconditioner(self, a: Any) -> Any:
        """The preconditioner of SciPy; None for the adjoint of one without a product of it."""
        if self.preconditioner is None or not self.is_adjoint:
            return self.preconditioner
        adjoint = scipy.sparse.linalg.aslinearoperator(self.preconditioner).H
        try:
            adjoint.matvec(np.zeros(a.shape[0], a.dtype))
        except (NotImplementedError, TypeError, RecursionError):
            return None
        return adjoint


class IterativeSystem(SolverRule):
    """A linear system; operands are captured values, right-hand side and initial guess.

    Parameters
    ----------
    matrices : sequence of MatrixFunction
        The matrix, and the preconditioner if it depends on tensors.
    method : SquareMethod
    """

    def __init__(self, matrices: Sequence[MatrixFunction], method: SquareMethod) -> None:
        self.matrices, self.method, self.name = tuple(matrices), method, method.name
        self._key = self.matrices, method

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IterativeSystem) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """The solution, and whether the method has converged."""
        return results(operands, self.matrices, self.method)

    @property
    def adjoint(self) -> IterativeSystem:
        """The system with the adjoint matrix."""
        if self.name in HERMITIAN:
            return self
        return IterativeSystem([m.adjoint for m in self.matrices], self.method.adjoint)

    @property
    def captured(self) -> int:
        """The number of captured values of all matrices."""
        return sum([m.captured for m in self.matrices])

    def converged(self, outs: Sequence[Any]) -> Any:
        """The solution, for a derivative.

        Raises
        ------
        ConvergenceError
            The method did not converge. Where that cannot raise, the solution is NaN.
        """
        success = lookup("equal")(outs[1], 0)
        reason = "" if is_traced(outs[1]) else f" (info = {int(value_of(outs[1]))})"
        return only_if(success, outs[:1], self.name, reason)[0]

    def solved(self, consts: Sequence[Any], b: Any) -> Any:
        """The solution for another right-hand side, for a derivative."""
        a = self.matrices[0]
        zeros = np.zeros(a.shape[1], a.dtype)
        b = b if b.dtype == a.dtype else casts.astype(b, a.dtype)
        return self.converged(solver_call(self, [*consts, b, zeros]))

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The cotangents: one solution with the adjoint matrix."""
        a, consts = self.matrices[0], operands[: self.captured]
        multiplier = self.adjoint.solved(consts, ts[0])
        own = a.cotangents(consts[: a.captured], self.converged(outs), multiplier)
        bars = [None if c is None else -c for c in own]
        return [*bars, *[None] * (self.captured - a.captured), multiplier, None]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangents: one more solution with the same matrix."""
        a, consts = self.matrices[0], operands[: self.captured]
        change = a.tangent(consts[: a.captured], self.converged(outs), dots[: a.captured])
        right = dots[self.captured]
        if change is not None:
            right = -change if right is None else right - change
        return [None if right is None else self.solved(consts, right), None]


def solve_iteratively(
    name: str, A: Any, b: Any, x0: Any, M: Any, options: dict[str, Any]
) -> tuple[Any, Any]:
    """The solution by a method of SciPy, and `info`."""
    theirs = getattr(scipy.sparse.linalg, name)
    ours = [isinstance(x, LinearOperator) for x in (A, M)]
    if not (any(ours) or uses_tensors(*[x for x in (A, b, x0, M) if x is not None])):
        return theirs(A, b, x0=x0, M=M, **options)  # type: ignore[no-any-return]
    shape = A.shape
    right = right_side(b, shape[0], name)[0]
    right = lookup("reshape")(right, shape=(shape[0],))
    dtypes = [right.dtype, A.dtype] + ([] if x0 is None else [dtype_of(x0)])
    dtype = np.result_type(*dtypes, np.float32)
    matrix, consts = matrix_function(A, dtype, name)
    matrices = [matrix]
    preconditioner = M
    if ours[1] or (M is not None and uses_tensors(M)):
        inverse, more = matrix_function(M, dtype, name)
        matrices.append(inverse)
        consts, preconditioner = [*consts, *more], None
    guess = np.zeros(shape[1], dtype) if x0 is None else x0
    guess = lookup("reshape")(casts.astype(guess, dtype), shape=(shape[1],))
    method = SquareMethod(name, SolverOptions(options), preconditioner)
    right = right if right.dtype == dtype else casts.astype(right, dtype)
    x, info = solver_call(IterativeSystem(matrices, method), [*consts, right, guess])
    return x, info if is_traced(info) else int(value_of(info))


def _described(name: str, kind: str) -> str:
    return f"""The solution of ``A x = b`` by the method `{name}` of SciPy, for {kind}.

    Parameters
    ----------
    A : array, sparse array or LinearOperator
        Square; its elements may be tensors, and functions of operators may capture tensors.
    b : array
        A vector.
    x0 : array, optional
        The initial guess; its derivative is zero.
    M : array, sparse array or LinearOperator, optional
        An approximate inverse; its derivative is zero.
    **options
        As in SciPy: `rtol`, `atol`, `maxiter`, `callback` ...; they hold for derivatives too.

    Returns
    -------
    x : array
    info : int
        0 if it has converged.

    Raises
    ------
    ConvergenceError
        A derivative is needed, and the method did not converge.

    Notes
    -----
    A derivative costs one more solution. Its accuracy is that of the tolerance `rtol`, 1e-5 by
    default.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.sparse.linalg import {name}
    >>> def first(k):
    ...     a = k * np.array([[2.0, -1.0], [-1.0, 2.0]])
    ...     return {name}(a, np.ones(2), rtol=1e-10)[0][0]
    >>> wg.grad(first)(2.0).round(6)
    np.float64(-0.25)
    """


def _method(name: str, kind: str) -> Callable[..., tuple[Any, Any]]:
    """The function of a method."""

    def public(A: Any, b: Any, x0: Any = None, *, M: Any = None, **options: Any) -> Any:
        return solve_iteratively(name, A, b, x0, M, options)

    public.__name__ = public.__qualname__ = name
    public.__doc__ = _described(name, kind)
    public.__module__ = __name__
    return public


_KINDS = {"cg": "Hermitian positive definite matrices", "minres": "Hermitian matrices"}
_OTHER = "bicg bicgstab cgs gmres lgmres gcrotmk tfqmr".split()
_METHODS = {n: _method(n, _KINDS.get(n, "square matrices")) for n in (*_KINDS, *_OTHER)}
cg, minres = _METHODS["cg"], _METHODS["minres"]
bicg, bicgstab, cgs = _METHODS["bicg"], _METHODS["bicgstab"], _METHODS["cgs"]
gmres, lgmres = _METHODS["gmres"], _METHODS["lgmres"]
gcrotmk, tfqmr = _METHODS["gcrotmk"], _METHODS["tfqmr"]
