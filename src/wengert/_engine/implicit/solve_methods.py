"""Methods for linear systems that are chosen by name.

METHODS            their names
checked_method     a method that a user gave, checked
KrylovSolver       SciPy's cg, gmres and bicgstab, which need products only
solve_definite     the solution by a Cholesky factorization
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.op import lookup
from wengert._engine.core.validation import function
from wengert._engine.ops.linalg.condition import refuse_singular
from wengert.errors import ArgumentError, ConvergenceError, at, user_line

from .matrix_structure import MATRIX, probe_vector

KRYLOV = ("bicgstab", "cg", "gmres")
METHODS = (*KRYLOV, "cholesky", "lu")
_TOLERANCE = 1e-11  # of the residual, relative to the right-hand side
_TOLERANCE_SINGLE = 1e-5  # in single precision
_RESTART = 50  # steps after which GMRES restarts
_STEPS_PER_UNKNOWN = 10  # a limit


def checked_method(given: Any, what: str, none: bool = True) -> Any:
    """The name of a method, or a function.

    Raises
    ------
    ArgumentError
        It is neither.
    """
    if given is None and none:
        return None
    if isinstance(given, str):
        if given not in METHODS:
            raise ArgumentError(
                f"{what}: {given!r} is not the name of a method. Use one of {', '.join(METHODS)}, "
                f"or a function{at(user_line())}."
            )
        return None if given == "lu" else given
    function(given, what)
    return given


class KrylovOutcome(NamedTuple):
    """The result of a Krylov method, with the fields of an outcome of `scipy_solver`."""

    solution: Any
    success: bool
    status: int
    nfev: int
    nit: int


@dataclass(frozen=True)
class KrylovSolver:
    """`scipy.sparse.linalg.cg`, `gmres` or `bicgstab`, for functions that are products."""

    method: str

    def __call__(self, functions: Sequence[Callable[[Any], Any]], starts: Sequence[Any]) -> Any:
        """Call SciPy.

        Raises
        ------
        ConvergenceError
            It has not converged.
        """
        import scipy.sparse.linalg as theirs

        (product,), (b,) = functions, starts
        b = np.asarray(b)
        single = b.dtype.char in "fF"
        tolerance = _TOLERANCE_SINGLE if single else _TOLERANCE
        count = 0

        def counted(x: Any) -> Any:
            nonlocal count
            count += 1
            return np.array(product(x.reshape(b.shape)))

        more: dict[str, Any] = {"maxiter": _STEPS_PER_UNKNOWN * b.size}
        if self.method == "gmres":
            more = {"restart": min(b.size, _RESTART), "maxiter": _STEPS_PER_UNKNOWN * b.size}
        matrix = theirs.LinearOperator((b.size, b.size), matvec=counted, dtype=b.dtype)
        x, status = getattr(theirs, self.method)(matrix, b, rtol=tolerance, atol=0.0, **more)
        size = np.linalg.norm(b)
        residual = np.linalg.norm(product(x) - b)
        is_finite = np.isfinite(size) and np.all(np.isfinite(product(b)))
        # If the operands have NaN, it is passed on in the solution.
        if is_finite and not residual <= 100.0 * tolerance * size:
            raise ConvergenceError(
                f"the linear system: {self.method} has not converged in {count} products; the "
                f"residual is {residual:.3g} for a right-hand side of size {size:.3g}. The matrix "
                "may be singular, or not as the method requires (cg: positive definite). Use "
                f"another method, or a function with a preconditioner{at(user_line())}."
            )
        return KrylovOutcome(x, True, status, count, -1)


def solve_definite(a: Any, b: Any, checked: bool) -> Any:
    """The solution of a system with a positive definite matrix, whose factor is shared."""
    factor = lookup("cholesky")(a)
    sides = [b]
    if checked:  # scaled by the diagonal
        scale = np.sqrt(np.abs(np.diagonal(a)))
        sides.append((scale * probe_vector(b.shape[0])).astype(b.dtype))
    triangular = lookup("solve_triangular")
    y = triangular(factor, np.stack(sides, axis=1), lower=True)
    x = triangular(factor, y, lower=True, trans=2)
    if not checked:
        return x[:, 0]
    return refuse_singular(x[:, 0], 1.0 / np.max(scale * np.abs(x[:, 1])), what=MATRIX)
