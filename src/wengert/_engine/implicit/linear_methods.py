"""Methods for linear systems: by the structure of the matrix, or by name.

The structure of the matrix of a linear function, and the solution of systems by structure.

The pattern of the matrix is found from the graph of the function (`wengert.sparse`, a higher layer,
imported at first use), once for each graph.  It decides how a system is solved:

    diagonal   each equation has one unknown: divisions
    banded     LAPACK's gtsv or gbsv; one product for each diagonal
    sparse     SuperLU; one product for each color of columns
    dense      LAPACK's getrf; a product for each unknown

    MatrixStructure      what is known of a matrix
    structure_of         that of the matrix of a linear function
    entries_of           the entries of a sparse matrix, by its products
    solve_structured     the solution of a system that is diagonal, banded or sparse
    probe_vector         a vector whose solution has the size of the inverse

Methods for linear systems that are chosen by name.

METHODS            their names
checked_method     a method that a user gave, checked
KrylovSolver       SciPy's cg, gmres and bicgstab, which need products only
solve_definite     the solution by a Cholesky factorization
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.loop_variants import PATTERNS, patterns
from wengert._engine.core.op import lookup
from wengert._engine.core.validation import function
from wengert._engine.ops.linalg.condition import refuse_singular
from wengert.errors import ArgumentError, ConvergenceError, at, user_line

from .kept_graphs import KeptGraphs

Array = np.ndarray[Any, Any]
Products = Callable[[Array], Any]  # rows of vectors to rows of their products

MATRIX = "the matrix of a linear system"
_NARROW_BAND = 16  # diagonals up to which a band is solved as such whatever its pattern
_LEAST_SPARSE = 256  # unknowns of systems that SuperLU solves
_LEAST_PER_ENTRY = 20  # elements of the matrix for each entry of a sparse one
_LEAST_PER_DIAGONAL = 4  # unknowns for each diagonal of a band


class MatrixStructure(NamedTuple):
    """What is known of a square matrix.

    kind : "dense", "diagonal", "banded" or "sparse".
    size : the number of rows.
    below, above : the numbers of diagonals.
    indices, indptr : the pattern in CSR format, of a sparse matrix.
    colors : of the columns of a sparse matrix.
    """

    kind: str
    size: int
    below: int = 0
    above: int = 0
    indices: Array | None = None
    indptr: Array | None = None
    colors: Array | None = None

    def __str__(self) -> str:
        if self.kind == "banded":
            return f"banded, {self.below} diagonals below and {self.above} above the main one"
        if self.kind == "sparse":
            assert self.indices is not None
            return f"sparse, {len(self.indices)} entries"
        return self.kind

    @property
    def products(self) -> int:
        """How many products with the matrix give its entries."""
        if self.kind == "sparse":
            assert self.colors is not None
            return int(self.colors.max(initial=-1)) + 1
        return self.size if self.kind == "dense" else self.below + self.above + 1


_structures: KeptGraphs[MatrixStructure] = KeptGraphs()


def structure_of(body: Body, captured: int, size: int) -> MatrixStructure:
    """The structure of the matrix of a linear function.

    Parameters
    ----------
    body : Body
        Its inputs after the first `captured` are the vector.
    captured : int
    size : int
        The number of unknowns.
    """
    if not PATTERNS or body.size_names:
        return MatrixStructure("dense", size)
    return _structures.get(
        (body, captured), lambda: _structure(patterns().pattern_of(body, captured), size)
    )


def _structure(pattern: Any, size: int) -> MatrixStructure:
    """The cheapest way to solve a system with this pattern (None: everything)."""
    if pattern is None or pattern.shape != (size, size):
        return MatrixStructure("dense", size)
    entries = pattern.tocoo()
    offsets = entries.row.astype(np.int64) - entries.col
    below, above = int(offsets.max(initial=0)), int(-offsets.min(initial=0))
    width = below + above + 1
    if width == 1:
        return MatrixStructure("diagonal", size)
    narrow = width * _LEAST_PER_DIAGONAL <= size
    if narrow and width <= _NARROW_BAND:
        return MatrixStructure("banded", size, below, above)
    if size >= _LEAST_SPARSE and pattern.nnz * _LEAST_PER_ENTRY <= size * size:
        colors = patterns().color_columns(pattern).colors
        pattern.sort_indices()
        indices, indptr = (x.astype(np.int64) for x in (pattern.indices, pattern.indptr))
        return MatrixStructure("sparse", size, below, above, indices, indptr, colors)
    return MatrixStructure("banded" if narrow else "dense", size, below, above)


# ---- solutions ---------------------------------------------------------------------------------


class Singular(NamedTuple):
    """What the solution is if the matrix is singular: by default an error.

    checked : nearly singular matrices are an error, too.
    or_nan : NaN instead of an error.
    """

    checked: bool = False
    or_nan: bool = False


def solve_structured(
    structure: MatrixStructure,
    products: Products,
    b: Any,
    adjoint: bool,
    dtype: Any,
    singular: Singular,
) -> Any:
    """The solution of a system that is not dense, or of the adjoint one.

    dtype : of the matrix.
    """
    if structure.kind == "diagonal":
        return _solve_diagonal(products, b, adjoint, dtype, singular)
    solve = _solve_banded if structure.kind == "banded" else _solve_sparse
    return solve(structure, products, b, adjoint, dtype, singular)


def _solve_diagonal(
    products: Products, b: Any, adjoint: bool, dtype: Any, singular: Singular
) -> Any:
    """The solution of equations of one unknown each."""
    size = b.shape[0]
    diagonal = products(np.ones((1, size), dtype))[0]
    is_zero = lookup("stop_gradient")(diagonal) == 0.0
    if singular.or_nan:
        diagonal = np.where(is_zero, np.nan, diagonal)
    else:
        b = refuse_singular(b, np.where(is_zero, 0.0, 1.0), what=MATRIX)
    return b / (np.conjugate(diagonal) if adjoint and np.dtype(dtype).kind == "c" else diagonal)


def _solve_banded(
    structure: MatrixStructure,
    products: Products,
    b: Any,
    adjoint: bool,
    dtype: Any,
    singular: Singular,
) -> Any:
    """The solution of a banded system."""
    size, below, above = structure.size, structure.below, structure.above
    width = below + above + 1
    columns = np.arange(size)
    rows = products((columns % width == np.arange(width)[:, None]).astype(dtype))
    # Row i of the products has one element of each column that is in the band.
    diagonals = np.arange(width)[:, None]
    if adjoint:
        other = columns + diagonals - below
        positions, below, above = (other % width) * size + columns, above, below
    else:
        other = columns + diagonals - above
        positions = (columns % width) * size + other
    inside = (other >= 0) & (other < size)
    band = np.where(inside, rows.reshape(-1)[np.where(inside, positions, 0)], 0.0)
    band = np.conjugate(band) if adjoint and band.dtype.kind == "c" else band
    # LAPACK must not get NaN, which marks solutions that were not found.
    finite = np.all(np.isfinite(band)) & np.all(np.isfinite(b))
    unit = (diagonals == above).astype(dtype) * np.ones(size, dtype)
    band = np.where(finite, band, unit)
    b = np.where(finite, b, 0.0)
    solve = patterns().operation("linalg.banded_solve")
    if not singular.checked:
        options = {"or_nan": True} if singular.or_nan else {}
        x = solve(band, b[:, None], below=below, above=above, **options)[:, 0]
        return np.where(finite, x, np.nan)
    # Pivoting and condition number depend on units, so rows and columns are scaled.
    rows, columns, band = _equilibrated(band, below, above, adjoint)
    sides = np.stack([b / rows, probe_vector(size).astype(dtype)], axis=1)
    solved = solve(band, sides, below=below, above=above)
    x = refuse_singular(solved[:, 0], 1.0 / np.max(np.abs(solved[:, 1])), what=MATRIX)
    return np.where(finite, x / columns, np.nan)


def _equilibrated(band: Any, below: int, above: int, adjoint: bool) -> tuple[Any, Any, Any]:
    """Scales of rows and columns, and the band divided by both; those of equations come first."""
    width, size = band.shape
    diagonals, places = np.arange(width)[:, None], np.arange(size)
    other = places - diagonals + above  # the column of each element of a row
    inside = (other >= 0) & (other < size)
    positions = np.where(inside, diagonals * size + other, 0)
    numbers = np.clip(places + diagonals - above, 0, size - 1)  # the row of each element

    def scale_of_rows(absolute: Any) -> Any:
        largest = np.max(np.where(inside, absolute.reshape(-1)[positions], 0.0), axis=0)
        return np.where(largest > 0.0, largest, 1.0)

    def scale_of_columns(absolute: Any) -> Any:
        largest = np.max(absolute, axis=0)
        return np.where(largest > 0.0, largest, 1.0)

    if adjoint:
        columns = scale_of_columns(np.abs(band))
        band = band / columns
        rows = scale_of_rows(np.abs(band))
        return rows, columns, band / rows[numbers]
    rows = scale_of_rows(np.abs(band))
    band = band / rows[numbers]
    columns = scale_of_columns(np.abs(band))
    return rows, columns, band / columns


@functools.lru_cache(maxsize=64)
def probe_vector(size: int) -> Array:
    """A random vector: its solution has the size of the inverse, almost surely.

    (J. D. Dixon, "Estimating extremal eigenvalues and condition numbers of matrices", 1983.)
    """
    # Constants are common null vectors, so the mean is not zero.
    vector = np.random.default_rng(size).uniform(-0.5, 1.5, size)
    vector.setflags(write=False)
    return vector


def entries_of(structure: MatrixStructure, products: Products, dtype: Any) -> Any:
    """The entries of a sparse matrix in the order of its pattern."""
    indices, indptr, colors = structure.indices, structure.indptr, structure.colors
    assert indices is not None and indptr is not None and colors is not None
    numbers = np.arange(structure.products)
    rows = products((colors == numbers[:, None]).astype(dtype))
    positions = colors[indices] * structure.size + np.repeat(
        np.arange(structure.size), np.diff(indptr)
    )
    return rows.reshape(-1)[positions]


def _solve_sparse(
    structure: MatrixStructure,
    products: Products,
    b: Any,
    adjoint: bool,
    dtype: Any,
    singular: Singular,
) -> Any:
    """The solution of a sparse system."""
    size, indices, indptr = structure.size, structure.indices, structure.indptr
    assert indices is not None and indptr is not None
    data = entries_of(structure, products, dtype)
    finite = np.all(np.isfinite(data)) & np.all(np.isfinite(b))
    on_diagonal = (np.repeat(np.arange(size), np.diff(indptr)) == indices).astype(dtype)
    data = np.where(finite, data, on_diagonal)
    column = np.where(finite, b, 0.0)[:, None]
    options: dict[str, Any] = {"trans": 2 if adjoint else 0, "checked": singular.checked}
    if singular.or_nan:
        options["or_nan"] = True
    x = patterns().operation("sparse.solve")(data, indices, indptr, column, **options)
    return np.where(finite, x[:, 0], np.nan)


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
