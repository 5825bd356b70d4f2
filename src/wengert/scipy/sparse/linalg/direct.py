"""Linear systems by factorization.

    spsolve             the solution of one system
    splu, factorized    the factors, for several right-hand sides
    spsolve_triangular  triangular matrices
    inv                 refused: the inverse of a sparse matrix is dense

The factors that SuperLU computes for the value are used by derivatives too (factors.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.linalg import LinAlgError

from wengert._engine.core.handle import value_of
from wengert._engine.core.op import lookup
from wengert.errors import ArgumentError, at, user_line

from .factors import factor_of
from .operands import CompressedRows, choice, right_side, square, uses_tensors
from .solve_operation import row_numbers, sparse_solve

ASSUMED = ("gen", "pos")
_TRANS = {"N": 0, "T": 1, "H": 2}


def spsolve(
    A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True, *, assume_a: str = "gen"
) -> Any:
    """The solution of ``A x = b`` with a sparse matrix.

    Parameters
    ----------
    A : sparse array
        Square, of any format; its elements may be a tensor.
    b : array
        A vector, or a matrix whose columns are right-hand sides.
    permc_spec, use_umfpack
        As in SciPy, for arguments that are not tensors; otherwise SuperLU is used, and the order
        chosen by the matrix.
    assume_a : {'gen', 'pos'}
        'pos': the matrix is Hermitian and positive definite.

    Returns
    -------
    x : array
        Of the shape of `b`; a vector if `b` has one column, as in SciPy.

    Raises
    ------
    MatrixError
        `A` is not square or singular, or so nearly singular that a derivative would have no correct
        digits.
    ShapeError, ArgumentError
        `b` does not fit, or is sparse.

    Notes
    -----
    The factors of the matrix are used by derivatives, so that value and gradient cost one
    factorization. The derivative with respect to the elements of `A` has the pattern of `A`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from scipy.sparse import diags_array
    >>> from wengert.scipy.sparse.linalg import spsolve
    >>> a = diags_array([[-1.0, -1.0], [2.0, 2.0, 2.0], [-1.0, -1.0]], offsets=[-1, 0, 1])
    >>> wg.grad(lambda b: np.sum(spsolve(a, b)))(np.ones(3)).round(9)
    array([1.5, 2. , 1.5])
    """
    choice(assume_a, ASSUMED, "assume_a", "spsolve")
    if not uses_tensors(A, b):
        return scipy.sparse.linalg.spsolve(A, b, permc_spec, use_umfpack)
    matrix = square(A, "spsolve")
    right, shape = right_side(b, matrix.shape[0], "spsolve")
    x = sparse_solve(*matrix.arrays, right, assume=assume_a)
    is_vector = len(shape) == 1 or shape[1] == 1
    return lookup("reshape")(x, shape=(-1,)) if is_vector else x


class SparseLU:
    """The factors of a sparse matrix; created by `splu`.

    Attributes
    ----------
    shape : tuple of int
        Of the matrix.
    L, U, perm_r, perm_c
        As in SciPy, for a matrix of plain elements.
    """

    __module__ = "wengert.scipy.sparse.linalg"

    def __init__(
        self, matrix: CompressedRows, assume: str = "gen", theirs: Callable[[], Any] | None = None
    ) -> None:
        self.shape = matrix.shape
        self._matrix, self._assume, self._theirs = matrix, assume, theirs
        if theirs is not None:
            try:
                self._factor()
            except LinAlgError:
                theirs()  # raises SciPy's error
                raise

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """The solution for a vector or matrix, of its shape.

        Parameters
        ----------
        rhs : array
        trans : {'N', 'T', 'H'}
            Whether the system is ``A x = rhs``, or has the transpose or adjoint of `A`.
        """
        choice(trans, tuple(_TRANS), "trans", "solve")
        right, shape = right_side(rhs, self.shape[0], "solve")
        x = sparse_solve(*self._matrix.arrays, right, trans=_TRANS[trans], assume=self._assume)
        return lookup("reshape")(x, shape=shape)

    def _factor(self) -> Any:
        data, indices, indptr = self._matrix.arrays
        return factor_of(np.asarray(value_of(data)), indices, indptr, self._assume)

    @property
    def nnz(self) -> int:
        """The number of elements of the factors."""
        return int(self._factor().nnz)

    def __getattr__(self, name: str) -> Any:
        if name in ("L", "U", "perm_r", "perm_c") and self._theirs is not None:
            return getattr(self._theirs(), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def splu(
    A: Any,
    permc_spec: Any = None,
    diag_pivot_thresh: Any = None,
    relax: Any = None,
    panel_size: Any = None,
    options: dict[str, Any] | None = None,
    *,
    assume_a: str = "gen",
) -> Any:
    """The LU factors of a sparse matrix.

    Parameters
    ----------
    A : sparse array
        Square; its elements may be a tensor.
    permc_spec, diag_pivot_thresh, relax, panel_size, options
        As in SciPy; only the attributes `L`, `U`, `perm_r` and `perm_c`, for plain elements,
        depend on them. The option ``Fact='SamePattern'`` is refused: SciPy ends
        the process with a segmentation fault.
    assume_a : {'gen', 'pos'}
        'pos': the matrix is Hermitian and positive definite.

    Returns
    -------
    SparseLU
        With a method `solve`, whose results are differentiable with respect to the matrix too.

    Raises
    ------
    MatrixError
        `A` is not square.
    ArgumentError
        An option is refused.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from scipy.sparse import csc_array
    >>> from wengert.scipy.sparse.linalg import splu
    >>> lu = splu(csc_array([[2.0, 0.0], [1.0, 4.0]]))
    >>> lu.solve(np.array([2.0, 9.0]))
    array([1., 2.])
    """
    choice(assume_a, ASSUMED, "assume_a", "splu")
    if options and str(options.get("Fact", "DOFACT")).startswith("SamePattern"):
        raise ArgumentError(
            f"splu: options={{'Fact': {options['Fact']!r}}} ends the process with a segmentation "
            f"fault in SciPy. Factorize each matrix anew{at(user_line())}."
        )
    if uses_tensors(A):
        return SparseLU(square(A, "splu"), assume_a)
    given = permc_spec, diag_pivot_thresh, relax, panel_size
    theirs = functools.cache(
        lambda: scipy.sparse.linalg.splu(scipy.sparse.csc_array(A), *given, options or {})
    )
    return SparseLU(square(A, "splu"), assume_a, theirs)


def factorized(A: Any) -> Callable[[Any], Any]:
    """A function that solves ``A x = b`` for each `b`.

    Parameters
    ----------
    A : sparse array
        Square; its elements may be a tensor.

    Returns
    -------
    callable
        Takes a vector or a matrix of right-hand sides.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from scipy.sparse import csc_array
    >>> from wengert.scipy.sparse.linalg import factorized
    >>> solve = factorized(csc_array([[2.0, 0.0], [1.0, 4.0]]))
    >>> wg.jacobian(solve)(np.array([2.0, 9.0]))
    array([[ 0.5  ,  0.   ],
           [-0.125,  0.25 ]])
    """
    return splu(A).solve  # type: ignore[no-any-return]


def spsolve_triangular(
    A: Any,
    b: Any,
    lower: bool = True,
    overwrite_A: bool = False,
    overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """The solution of ``A x = b`` with a triangular matrix.

    Parameters
    ----------
    A : sparse array
        Its elements may be a tensor; those in the other triangle must not exist.
    b : array
        A vector or a matrix.
    lower : bool, default True
        Which triangle.
    overwrite_A, overwrite_b : bool
        Only permissions; tensors are not overwritten.
    unit_diagonal : bool, default False
        Whether ones are used in place of the diagonal of `A`.

    Returns
    -------
    x : array
        Of the shape of `b`.

    Raises
    ------
    MatrixError
        An element of the diagonal is zero.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from scipy.sparse import csr_array
    >>> from wengert.scipy.sparse.linalg import spsolve_triangular
    >>> a = csr_array([[2.0, 0.0], [1.0, 4.0]])
    >>> wg.grad(lambda b: spsolve_triangular(a, b)[1])(np.array([2.0, 9.0]))
    array([-0.125,  0.25 ])
    """
    if not uses_tensors(A, b):
        return scipy.sparse.linalg.spsolve_triangular(
            A, b, lower, overwrite_A, overwrite_b, unit_diagonal
        )
    matrix = square(A, "spsolve_triangular")
    rows = row_numbers.run(matrix.indices, matrix.indptr)
    columns = np.asarray(matrix.indices)
    if np.any(columns > rows if lower else columns < rows):
        which = "lower" if lower else "upper"
        raise ArgumentError(
            f"spsolve_triangular: A has entries outside of its {which} triangle. Use "
            f"scipy.sparse.{'tril' if lower else 'triu'}(A){at(user_line())}."
        )
    right, shape = right_side(b, matrix.shape[0], "spsolve_triangular")
    data, indices, indptr = matrix.arrays
    if unit_diagonal:
        data, indices, indptr = _with_ones(data, rows, columns, matrix.shape[0])
    x = sparse_solve(data, indices, indptr, right, assume="triangular")
    return lookup("reshape")(x, shape=shape)


def _with_ones(data: Any, rows: Any, columns: Any, n: int) -> tuple[Any, Any, Any]:
    """A matrix with ones in place of its diagonal."""
    off = np.flatnonzero(rows != columns)
    data = lookup("concatenate")(data[off], np.ones(n, data.dtype), axis=0)
    new_rows = np.concatenate([rows[off], np.arange(n)])
    new_columns = np.concatenate([columns[off], np.arange(n)])
    order = np.argsort(new_rows, kind="stable")
    starts = np.searchsorted(new_rows[order], np.arange(n + 1))
    return data[order], new_columns[order], starts


def inv(A: Any) -> Any:
    """The inverse of a sparse matrix, for plain elements; refused for tensors.

    Parameters
    ----------
    A : sparse array

    Raises
    ------
    ArgumentError
        The elements of `A` are a tensor: the pattern of the inverse depends on them, and it is
        dense in general.

    Examples
    --------
    >>> from scipy.sparse import csc_array
    >>> from wengert.scipy.sparse.linalg import inv
    >>> inv(csc_array([[2.0, 0.0], [0.0, 4.0]])).toarray()
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    if not uses_tensors(A):
        return scipy.sparse.linalg.inv(A)
    raise ArgumentError(
        "inv of a sparse array of tensors: the inverse of a sparse matrix is dense. Use "
        f"spsolve(A, b) or splu(A).solve(b) for the products that you need{at(user_line())}."
    )
