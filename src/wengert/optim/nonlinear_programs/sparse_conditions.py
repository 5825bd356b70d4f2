"""The linear system of a derivative, for large programs: sparse, from the compiled derivatives.

The Jacobian of the conditions (program.py) with respect to x, y and nu is

    H          J'        I
    a J        1 - a     0         a: 1 for active constraints, b: for active bounds
    b          0         1 - b

with the Hessian H of the Lagrange function and the Jacobian J of the constraints, whose patterns
and programs the solver has already.  Its entries are differentiated, so that derivatives of higher
order exist.

    SparseConditions   the system
    is_active          which limits are active
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import coo_array

from wengert.scipy.sparse.linalg.solve_operation import sparse_solve

from .compiled_functions import CompiledFunctions, ProgramFunctions, compiled_functions, entries_of


def is_active(multipliers: Any, lower: Any, upper: Any) -> tuple[Any, Any]:
    """Whether lower limits are active, and whether upper ones are."""
    return (multipliers < 0.0) | (lower == upper), (multipliers > 0.0) & (lower != upper)


class SparseConditions:
    """The Jacobian of the conditions of a program as a linear system.

    Parameters
    ----------
    functions : ProgramFunctions
    skipped : int
        The number of captured values that the functions do not have, which come first.
    trans : {0, 2}
        2 for the adjoint system.
    """

    def __init__(self, functions: ProgramFunctions, skipped: int, trans: int = 0) -> None:
        self.functions, self.skipped, self.trans = functions, skipped, trans

    @property
    def adjoint(self) -> SparseConditions:
        """The system with the adjoint matrix."""
        return SparseConditions(self.functions, self.skipped, 2 - self.trans)

    @functools.cached_property
    def compiled(self) -> CompiledFunctions:
        """The compiled functions, with the patterns."""
        return compiled_functions(self.functions)

    def __call__(self, values: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        """The solution, for captured values, limits and the solution of the program."""
        order, indices, indptr = self._pattern
        data = self._entries(values[self.skipped :])[order]
        column = right[0].reshape((-1, 1))
        found = sparse_solve(data, indices, indptr, column, trans=self.trans, checked=True)
        return [found.reshape((-1,))]

    def adjoint_solution(self, values: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        """The solution of the system with the adjoint matrix."""
        return self.adjoint(values, right)

    def _entries(self, values: Sequence[Any]) -> Any:
        own, compiled = self.functions, self.compiled
        n, m = own.size, own.constraint_count
        consts, (lower_x, upper_x, lower_g, upper_g, z) = values[:-5], values[-5:]
        x, y, nu = z[:n], z[n : n + m], z[n + m :]
        half = compiled.hessian.values(x, np.float64(1.0), y, *consts)
        rows, columns = entries_of(compiled.hessian)
        below = np.flatnonzero(rows != columns)
        of_bounds = _as_number(is_active(nu, lower_x, upper_x))
        parts = [half, half[below], np.ones(n), of_bounds, 1.0 - of_bounds]
        if m:
            jacobian = compiled.jacobian.values(x, *consts)
            of_limits = _as_number(is_active(y, lower_g, upper_g))
            rows, _ = entries_of(compiled.jacobian)
            parts += [jacobian, jacobian * of_limits[rows], 1.0 - of_limits]
        return np.concatenate(parts)

    @functools.cached_property
    def _pattern(self) -> tuple[Any, Any, Any]:
        """The order of the entries in the CSR format, and its arrays."""
        own, compiled = self.functions, self.compiled
        n, m = own.size, own.constraint_count
        rows, columns = entries_of(compiled.hessian)
        below = np.flatnonzero(rows != columns)
        unknowns, bounds, limits = np.arange(n), n + m + np.arange(n), n + np.arange(m)
        places = [
            (rows, columns),
            (columns[below], rows[below]),
            (unknowns, bounds),
            (bounds, unknowns),
            (bounds, bounds),
        ]
        if m:
            rows, columns = entries_of(compiled.jacobian)
            places += [(columns, n + rows), (n + rows, columns), (limits, limits)]
        i, j = [np.concatenate(parts) for parts in zip(*places, strict=True)]
        size = 2 * n + m
        matrix = coo_array((np.arange(len(i)), (i, j)), (size, size)).tocsr()
        assert matrix.nnz == len(i)  # no entry stands twice
        matrix.sort_indices()
        return matrix.data, matrix.indices, matrix.indptr


def _as_number(active: tuple[Any, Any]) -> Any:
    return np.where(active[0] | active[1], 1.0, 0.0)
