"""The structure of the matrix of a linear function, and the solution of systems by structure.

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
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.loop_variants import PATTERNS, patterns
from wengert._engine.core.op import lookup
from wengert._engine.core.subgraph import Body
from wengert._engine.ops.linalg.condition import refuse_singular

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
