"""CHOLMOD, through cvxopt, an optional package; the only module that imports it.

Y. Chen, T. A. Davis, W. W. Hager, S. Rajamanickam, "Algorithm 887: CHOLMOD, supernodal sparse
Cholesky factorization and update/downdate", ACM Trans. Math. Softw. 35 (2008).

    is_installed      whether cvxopt can be imported
    CholmodAnalysis   of a pattern: the order of rows, found once
    CholmodFactor     the factor of one matrix
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np

from wengert._engine.core.thread_state import lock

from .operands import Plain

_SUPERNODAL = 2  # L L^T in any case
_PERMUTED = 7  # the system whose solution is the right-hand side in the order of the factor
_lock = lock()


@functools.cache
def is_installed() -> bool:
    """Whether cvxopt can be imported."""
    return importlib.util.find_spec("cvxopt") is not None


@contextlib.contextmanager
def _library() -> Iterator[Any]:
    """CHOLMOD with its default options, whatever the user has set; one thread at a time."""
    from cvxopt import cholmod

    with _lock:
        given = dict(cholmod.options)
        cholmod.options.clear()
        cholmod.options["supernodal"] = _SUPERNODAL
        try:
            yield cholmod
        finally:
            cholmod.options.clear()
            cholmod.options.update(given)


class CholmodAnalysis:
    """The analysis of a symmetric pattern.

    Parameters
    ----------
    rows, columns : ndarray
        The entries in the lower triangle, sorted by columns and then by rows.
    size : int
    """

    def __init__(self, rows: Plain, columns: Plain, size: int) -> None:
        from cvxopt import matrix, spmatrix

        self.size = size
        parts = [matrix(np.ascontiguousarray(x, np.int64)) for x in (rows, columns)]
        self._matrix = spmatrix(1.0, *parts, (size, size))
        self._order: Any = None
        self._unused: list[Any] = []  # a factor of this pattern that is not needed any more

    def factor(self, values: Plain) -> CholmodFactor | None:
        """The factor of the matrix with these entries; None if it is not positive definite."""
        from cvxopt import matrix

        with _library() as library:
            a = self._matrix
            a.V = matrix(np.ascontiguousarray(values, float))
            given = () if self._order is None else (self._order,)
            try:
                factor = self._unused.pop()
            except IndexError:
                factor = library.symbolic(a, *given)
            try:
                library.numeric(a, factor)
            except ArithmeticError:
                return None
            if self._order is None:
                self._order = matrix(_order(library, factor, self.size))
            return CholmodFactor(self, factor)

    def reuse(self, factor: Any) -> None:
        """Take the memory of a factor, and the analysis in it, for the next one."""
        self._unused[:] = [factor]


def _order(library: Any, factor: Any, size: int) -> Plain:
    """The row at each position of a factor."""
    return _solution(library, factor, np.arange(size, dtype=float), _PERMUTED).astype(np.int64)


def _solution(library: Any, factor: Any, right: Plain, system: int = 0) -> Plain:
    from cvxopt import matrix

    n = right.shape[0]
    x = matrix(np.ascontiguousarray(right.T).reshape(-1), (n, right.size // max(n, 1)))
    library.solve(factor, x, sys=system)
    return np.array(x).reshape(right.shape)


class CholmodFactor:
    """A factor L, with L L^T equal to the matrix in another order of its rows."""

    def __init__(self, analysis: CholmodAnalysis, factor: Any) -> None:
        self._analysis, self._factor = analysis, factor

    def __del__(self) -> None:
        if self._factor is not None:
            self._analysis.reuse(self._factor)

    def solve(self, right: Plain) -> Plain:
        """The solution for a matrix of right-hand sides."""
        with _library() as library:
            return _solution(library, self._factor, right)

    def diagonal(self) -> Plain:
        """The diagonal of L, in the order of the factor."""
        with _library() as library:
            return np.array(library.diag(self._factor)).ravel()

    def taken(self) -> tuple[Any, Plain]:
        """L in CSC format, and the row at each position; the factor cannot be used afterwards."""
        from scipy.sparse import csc_array

        factor, self._factor, n = self._factor, None, self._analysis.size
        with _library() as library:
            order = _order(library, factor, n)
            columns = library.getfactor(factor).CCS
        starts, rows, values = [np.array(x).ravel() for x in columns]
        return csc_array((values, rows, starts), shape=(n, n)), order
