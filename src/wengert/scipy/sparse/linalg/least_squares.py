"""Least-squares problems with sparse matrices by iterative methods.

    lsqr, lsmr   the solution of least length of all that minimize ``norm(A x - b)``

The derivative of the solution ``x = P b``, where P is the pseudoinverse and r = b - A x, is

    P (bdot - Adot x)  +  P P^H Adot^H r  +  (I - P A) Adot^H P^H x

(G. H. Golub and V. Pereyra, 1973), if the rank does not change: for a matrix of full rank.  The
second term is zero if there are as many rows as columns or fewer, the third if there are as many
columns as rows or fewer.  Each product with P or its adjoint is one more solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse.linalg

from wengert._engine.core.handle import dtype_of, is_traced, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.roots import only_if
from wengert._engine.implicit.solver_calls import SolverRule, solver_call
from wengert._engine.ops import casts
from wengert.errors import ArgumentError, at, user_line

from ...optimize.solver_operation import SolverOptions
from .iterative_systems import IterativeMethod, results
from .matrix_functions import MatrixFunction, matrix_function
from .operands import LinearOperator, aslinearoperator, right_side, uses_tensors

_CONVERGED = (0, 1, 2, 4, 5)  # SciPy's istop: others are an ill-conditioned matrix, or the limit


class LeastSquaresMethod(IterativeMethod):
    """lsqr or lsmr, with its options."""

    def __init__(self, name: str, options: SolverOptions) -> None:
        self.name, self.options = name, options
        self._key = name, options

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LeastSquaresMethod) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def specs(self, matrices: Sequence[MatrixFunction]) -> tuple[Spec, ...]:
        """Of the solution, SciPy's `istop`, and the number of steps."""
        count = Spec((), np.dtype(np.int64))
        return Spec((matrices[0].shape[1],), matrices[0].dtype), count, count

    def __call__(self, matrices: Sequence[Any], starts: Sequence[Any]) -> tuple[Any, ...]:
        """Call SciPy."""
        (b,) = starts
        if not np.any(b):  # lsqr divides by the norm of b
            return np.zeros(matrices[0].shape[1], b.dtype), 0, 0
        found = getattr(scipy.sparse.linalg, self.name)(matrices[0], b, **self.options.value)
        return tuple(found[:3])


class PseudoinverseProduct(SolverRule):
    """The product of the pseudoinverse of a matrix and a vector."""

    def __init__(self, matrix: MatrixFunction, method: LeastSquaresMethod) -> None:
        self.matrix, self.method, self.name = matrix, method, method.name
        self._key = matrix, method

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PseudoinverseProduct) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """The product, `istop`, and the number of steps."""
        return results(operands, [self.matrix], self.method)

    def _converged(self, outs: Sequence[Any]) -> Any:
        """The product, for a derivative.

        Raises
        ------
        ConvergenceError
            The method did not converge, or found the matrix to be ill-conditioned.
        """
        stop = outs[1]
        success: Any = lookup("equal")(stop, _CONVERGED[0])
        for number in _CONVERGED[1:]:
            success = lookup("logical_or")(success, lookup("equal")(stop, number))
        reason = "" if is_traced(stop) else f" (istop = {int(value_of(stop))})"
        return only_if(success, outs[:1], self.name, reason)[0]

    def times(self, consts: Sequence[Any], b: Any, adjoint: bool = False) -> Any:
        """The product with another vector, or of the adjoint, for a derivative."""
        rule = PseudoinverseProduct(self.matrix.adjoint, self.method) if adjoint else self
        b = b if b.dtype == self.matrix.dtype else casts.astype(b, self.matrix.dtype)
        return rule._converged(solver_call(rule, [*consts, b]))

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The cotangents: the transposes of the three terms."""
        a, (*consts, b), t = self.matrix, operands, ts[0]
        x, (rows, columns) = self._converged(outs), a.shape
        b_bar = self.times(consts, t, adjoint=True)
        terms = [[None if c is None else -c for c in a.cotangents(consts, x, b_bar)]]
        if rows > columns:
            terms.append(a.cotangents(consts, self.times(consts, b_bar), b - a(consts, x)))
        if columns > rows:
            along = t - self.times(consts, a(consts, t))
            terms.append(a.cotangents(consts, along, self.times(consts, x, adjoint=True)))
        bars = terms[0]
        for term in terms[1:]:
            bars = [None if y is None else y + z for y, z in zip(bars, term, strict=True)]
        return [*bars, b_bar]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangents: the three terms."""
        a, (*consts, b) = self.matrix, operands
        *const_dots, right = dots
        x, (rows, columns) = self._converged(outs), a.shape
        change = a.tangent(consts, x, const_dots)
        if change is None:
            return [None if right is None else self.times(consts, right), None, None]
        right = -change if right is None else right - change
        total = self.times(consts, right)
        adjoint = a.adjoint
        if rows > columns:
            pulled = adjoint.tangent(consts, b - a(consts, x), const_dots)
            total = total + self.times(consts, self.times(consts, pulled, adjoint=True))
        if columns > rows:
            y = self.times(consts, x, adjoint=True)
            pulled = adjoint.tangent(consts, y, const_dots)
            total = total + pulled - self.times(consts, a(consts, pulled))
        return [total, None, None]


def _damped(A: Any, damp: Any, dtype: Any) -> LinearOperator:
    """The matrix above a multiple of the identity."""
    a = aslinearoperator(A)
    (rows, columns), concatenate = a.shape, lookup("concatenate")
    return LinearOperator(
        (rows + columns, columns),
        lambda x: concatenate(a.matvec(x), damp * x, axis=0),
        lambda y: a.rmatvec(y[:rows]) + damp * y[rows:],
        dtype=dtype,
    )


def _least_squares(name: str, A: Any, b: Any, damp: Any, x0: Any, options: Any) -> list[Any]:
    """The solution, `istop`, the number of steps, and norms of residual, gradient and solution."""
    if x0 is not None:
        raise ArgumentError(
            f"{name} of tensors with x0: the result may depend on it. Solve for the difference, "
            f"{name}(A, b - A @ x0){at(user_line())}."
        )
    right, _ = right_side(b, A.shape[0], name)
    right = lookup("reshape")(right, shape=(A.shape[0],))
    dtype = np.result_type(right.dtype, A.dtype, dtype_of(damp), np.float32)
    right = right if right.dtype == dtype else casts.astype(right, dtype)
    is_damped = is_traced(damp) or bool(np.any(value_of(damp)))
    system, full = A, right
    if is_damped:
        system = _damped(A, damp, dtype)
        full = lookup("concatenate")(right, np.zeros(A.shape[1], dtype), axis=0)
    matrix, consts = matrix_function(system, dtype, name)
    method = LeastSquaresMethod(name, SolverOptions(options))
    x, stop, steps = solver_call(PseudoinverseProduct(matrix, method), [*consts, full])
    operator = aslinearoperator(A)
    residual = right - operator.matvec(x)
    gradient = operator.rmatvec(residual) - damp**2 * x
    lengths = residual, full - matrix(consts, x), gradient, x
    return [x, stop, steps, *map(np.linalg.norm, lengths)]


def lsqr(
    A: Any,
    b: Any,
    damp: Any = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    iter_lim: int | None = None,
    show: bool = False,
    calc_var: bool = False,
    x0: Any = None,
) -> tuple[Any, ...]:
    """The least-squares solution of ``A x = b`` by SciPy's `lsqr`.

    Parameters
    ----------
    A : array, sparse array or LinearOperator
        Of any shape and of full rank; its elements may be tensors.
    b : array
        A vector.
    damp : number
        Minimizes ``norm(A x - b)**2 + damp**2 * norm(x)**2``; differentiated.
    atol, btol, conlim, iter_lim, show
        As in SciPy; they hold for derivatives too.
    calc_var, x0
        Only without tensors.

    Returns
    -------
    x, istop, itn, r1norm, r2norm, anorm, acond, arnorm, xnorm, var
        As in SciPy; `anorm` and `acond` are NaN and `var` is zero for tensors.

    Raises
    ------
    ConvergenceError
        A derivative is needed, and the method did not converge, or found the matrix to be
        ill-conditioned: its rank may not be full.

    Notes
    -----
    The derivative is that of the pseudoinverse of a matrix of full rank, by one to three more
    solutions. Its accuracy is that of `atol` and `btol`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.sparse.linalg import lsqr
    >>> a = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> fit = lambda b: lsqr(a, b, atol=1e-12, btol=1e-12)[0]
    >>> wg.jacobian(fit)(np.array([1.0, 2.0, 4.0])).round(6)
    array([[ 0.833333,  0.333333, -0.166667],
           [-0.5     ,  0.      ,  0.5     ]])
    """
    if not (isinstance(A, LinearOperator) or uses_tensors(A, b, damp)):
        return scipy.sparse.linalg.lsqr(  # type: ignore[no-any-return]
            A, b, damp, atol, btol, conlim, iter_lim, show, calc_var, x0
        )
    if calc_var:
        raise ArgumentError(
            f"lsqr of tensors with calc_var=True: variances have no derivative{at(user_line())}."
        )
    options = {
        "atol": atol, "btol": btol, "conlim": conlim, "iter_lim": iter_lim, "show": show,
    }  # fmt: skip
    x, stop, steps, r1norm, r2norm, arnorm, xnorm = _least_squares("lsqr", A, b, damp, x0, options)
    return x, stop, steps, r1norm, r2norm, np.nan, np.nan, arnorm, xnorm, np.zeros(A.shape[1])


def lsmr(
    A: Any,
    b: Any,
    damp: Any = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    maxiter: int | None = None,
    show: bool = False,
    x0: Any = None,
) -> tuple[Any, ...]:
    """The least-squares solution of ``A x = b`` by SciPy's `lsmr`.

    Parameters
    ----------
    A, b, damp, atol, btol, conlim, show, x0
        As in `lsqr`.
    maxiter : int, optional
        The largest number of steps.

    Returns
    -------
    x, istop, itn, normr, normar, norma, conda, normx
        As in SciPy; `norma` and `conda` are NaN for tensors.

    Raises
    ------
    ConvergenceError
        As `lsqr`.

    See Also
    --------
    lsqr : its notes say how derivatives are computed.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.sparse.linalg import lsmr
    >>> wg.grad(lambda k: lsmr(k * np.ones((3, 1)), np.array([1.0, 2.0, 6.0]))[0][0])(2.0).round(6)
    np.float64(-0.75)
    """
    if not (isinstance(A, LinearOperator) or uses_tensors(A, b, damp)):
        return scipy.sparse.linalg.lsmr(  # type: ignore[no-any-return]
            A, b, damp, atol, btol, conlim, maxiter, show, x0
        )
    options = {"atol": atol, "btol": btol, "conlim": conlim, "maxiter": maxiter, "show": show}
    x, stop, steps, r1norm, _, arnorm, xnorm = _least_squares("lsmr", A, b, damp, x0, options)
    return x, stop, steps, r1norm, arnorm, np.nan, np.nan, xnorm
