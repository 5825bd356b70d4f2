"""Determinants of sparse matrices, and their gradient: elements of the inverse.

    transposed_inverse       the elements of the transposed inverse on the pattern of the matrix
    slogdet                  sign and logarithm of the absolute value
    logdet                   the logarithm of a positive determinant
    sparse_slogdet           sign and logarithm of the determinant
    sparse_selected_inverse  the transposed inverse at the entries of the matrix: its gradient

The elements of the inverse are computed from the factors by the recurrence of Takahashi, at about
the cost of the factorization: in a band or on any pattern (takahashi_recurrence.py).

The second derivative of the logarithm needs all elements of the inverse: a solution for each
column, for matrices of at most `_MAX_COLUMNS` rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.linalg import LinAlgError
from scipy.sparse import coo_array

from wengert._engine.autodiff.jvp_vjp import jvp, vjp
from wengert._engine.core.handle import shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.batching import row_ranks
from wengert._engine.ops.elementwise.selection import where
from wengert._engine.ops.indexing.getitem import IndexSlot, getitem
from wengert._engine.ops.linalg.linear_solve import matrices
from wengert._engine.ops.linalg.results import SlogdetResult
from wengert.errors import ArgumentError, at, user_line

from .direct import ASSUMED
from .factors import factor_of
from .operands import Plain, check_lengths, choice, square
from .solve_operation import HINT, dense, example_matrix, row_numbers, sparse_solve

if TYPE_CHECKING:
    from wengert._engine.core.types import Size


def transposed_inverse(data: Plain, indices: Plain, indptr: Plain, assume: str) -> Plain:
    """The elements of the transposed inverse at the entries of a matrix in CSR format.

    Raises
    ------
    LinAlgError
        The matrix is singular, nearly singular, or not positive definite as it was said to be.
    """
    if data.dtype.kind == "c":
        return _of_complex(data, indices, indptr)
    factor = factor_of(data, indices, indptr, assume)
    factor.check_condition()
    found = factor.transposed_inverse()
    return found.astype(data.dtype if data.dtype.kind == "f" else float, copy=False)


def _of_complex(data: Plain, indices: Plain, indptr: Plain) -> Plain:
    """The same for a complex matrix, by the real matrix [[re, -im], [im, re]] of its elements."""
    n = len(indptr) - 1
    i, j = np.repeat(np.arange(n), np.diff(indptr)), np.asarray(indices, np.int64)
    wide = data.astype(complex)
    values = np.concatenate([wide.real, -wide.imag, wide.imag, wide.real])
    rows = np.concatenate([2 * i, 2 * i, 2 * i + 1, 2 * i + 1])
    columns = np.concatenate([2 * j, 2 * j + 1, 2 * j, 2 * j + 1])
    a = coo_array((values, (rows, columns)), shape=(2 * n, 2 * n)).tocsr()
    factor = factor_of(a.data, a.indices, a.indptr, "gen")
    factor.check_condition()
    entries = np.concatenate([2 * i, 2 * i]), np.concatenate([2 * j, 2 * j + 1])
    found = factor.transposed_inverse(*entries)
    return (found[: len(i)] + 1j * found[len(i) :]).astype(data.dtype)


_MAX_COLUMNS = 4096


def _slogdet_oracle(data: Any, indices: Any, indptr: Any, **options: Any) -> Any:
    return tuple(np.linalg.slogdet(dense(data, indices, indptr)))


@matrices(HINT, name="sparse.slogdet", oracle=_slogdet_oracle)
def sparse_slogdet(data: Plain, indices: Plain, indptr: Plain, *, assume: str = "gen") -> Any:
    """The sign of the determinant, and the logarithm of its absolute value."""
    check_lengths(data, indices, indptr)
    exact = np.result_type(data.dtype, np.float32)
    sign = np.empty(data.shape[:-1], exact)
    logarithm = np.empty(sign.shape, exact.type(0).real.dtype)
    for i in np.ndindex(*sign.shape):
        try:
            found = factor_of(data[i], indices, indptr, assume).log_determinant()
        except LinAlgError as error:
            if "exactly singular" not in str(error):
                raise
            found = 0.0, -np.inf
        sign[i], logarithm[i] = found
    return sign[()], logarithm[()]


sparse_slogdet.host_callback = BY_SCIPY


@sparse_slogdet.spec
def _(data: Spec, indices: Spec, indptr: Spec, *, assume: str = "gen") -> Any:
    check_lengths(data, indices, indptr)
    exact = np.result_type(data.dtype, np.float32)
    batch = data.shape[:-1]
    return Spec(batch, exact), Spec(batch, exact.type(0).real.dtype)


@sparse_slogdet.define_vjp
def _slogdet_vjp(
    t: tuple[Plain, ...],
    out: tuple[Plain, ...],
    data: Plain,
    indices: Plain,
    indptr: Plain,
    *,
    assume: str = "gen",
) -> Any:
    t_sign, weight = t
    inverse = sparse_selected_inverse(data, indices, indptr, assume=assume)
    if data.dtype.kind == "c":
        weight = weight - 1j * (np.conjugate(t_sign) * out[0]).imag
        inverse = np.conjugate(inverse)
    return lookup("expand_dims")(weight, axis=-1) * inverse, None, None


@sparse_slogdet.define_jvp
def _slogdet_jvp(
    dots: Any,
    out: tuple[Plain, ...],
    data: Plain,
    indices: Plain,
    indptr: Plain,
    *,
    assume: str = "gen",
) -> Any:
    inverse = sparse_selected_inverse(data, indices, indptr, assume=assume)
    change = np.sum(inverse * dots[0], axis=-1)
    if data.dtype.kind != "c":
        return None, change
    return 1j * (change.imag * out[0]), change.real


def _batched(op: Any) -> None:
    """The batching rule of operations on the values of a matrix."""

    @op.batch
    def rule(args: Any, batched: Any, size: Size, **options: Any) -> Any:
        if batched[1] or batched[2] or row_ranks(args, batched)[0] < 1:
            return NotImplemented
        return op(*args, **options)


_batched(sparse_slogdet)


@sparse_slogdet.examples
def _(rng: np.random.Generator) -> Any:
    data, indices, indptr = example_matrix(rng)
    yield (data, indices, indptr), {}
    yield (data + 1j * rng.normal(size=9), indices, indptr), {}
    yield example_matrix(rng, 2), {}
    yield _definite(rng), {"assume": "pos"}


def _definite(rng: np.random.Generator) -> tuple[Plain, Plain, Plain]:
    """The arrays of a positive definite matrix, each entry stored."""
    data = np.array([4.0, 1.0, 0.0, 1.0, 5.0, -1.0, 0.0, -1.0, 3.0])
    return data * rng.uniform(1.0, 2.0), np.tile(np.arange(3), 3), np.array([0, 3, 6, 9])


def _inverse_oracle(data: Any, indices: Any, indptr: Any, **options: Any) -> Any:
    inverse = np.linalg.inv(dense(data, indices, indptr))
    rows = row_numbers.oracle(indices, indptr)
    return inverse[..., indices, rows]


@matrices(HINT, name="sparse.selected_inverse", oracle=_inverse_oracle)
def sparse_selected_inverse(
    data: Plain, indices: Plain, indptr: Plain, *, assume: str = "gen"
) -> Any:
    """The elements of the transposed inverse at the entries of the matrix."""
    check_lengths(data, indices, indptr)
    out = np.empty(data.shape, np.result_type(data.dtype, np.float32))
    for i in np.ndindex(*data.shape[:-1]):
        out[i] = transposed_inverse(data[i], indices, indptr, assume)
    return out


sparse_selected_inverse.host_callback = BY_SCIPY


@sparse_selected_inverse.spec
def _(data: Spec, indices: Spec, indptr: Spec, *, assume: str = "gen") -> Any:
    check_lengths(data, indices, indptr)
    return Spec(data.shape, np.result_type(data.dtype, np.float32))


def _by_solutions(data: Any, indices: Any, indptr: Any, assume: str) -> Any:
    """The same by solutions for all columns, which is differentiated."""
    n = shape_of(indptr)[0] - 1
    if n > _MAX_COLUMNS:
        raise ArgumentError(
            f"the second derivative of the log-determinant of a sparse matrix with {n} rows needs "
            f"its whole inverse, and is computed up to {_MAX_COLUMNS} rows. Use products with "
            f"random vectors and solve, or a smaller matrix{at(user_line())}."
        )
    units = np.eye(n, dtype=data.dtype)
    inverse = sparse_solve(data, indices, indptr, units, assume=assume, checked=True)
    rows = row_numbers(indices, indptr)
    return getitem(inverse, indices, rows, index=(Ellipsis, IndexSlot(0), IndexSlot(1)))


@sparse_selected_inverse.define_vjp
def _inverse_vjp(
    t: Plain, out: Plain, data: Plain, indices: Plain, indptr: Plain, *, assume: str = "gen"
) -> Any:
    _, pullback = vjp(lambda x: _by_solutions(x, indices, indptr, assume), data)
    return pullback(t)[0], None, None


@sparse_selected_inverse.define_jvp
def _inverse_jvp(
    dots: Any, out: Plain, data: Plain, indices: Plain, indptr: Plain, *, assume: str = "gen"
) -> Any:
    return jvp(lambda x: _by_solutions(x, indices, indptr, assume), (data,), (dots[0],))[1]


_batched(sparse_selected_inverse)


@sparse_selected_inverse.examples
def _(rng: np.random.Generator) -> Any:
    data, indices, indptr = example_matrix(rng)
    yield (data, indices, indptr), {}
    yield (data + 1j * rng.normal(size=9), indices, indptr), {}
    yield example_matrix(rng, 2), {}
    yield _definite(rng), {"assume": "pos"}


def slogdet(A: Any, *, assume_a: str = "gen") -> SlogdetResult:
    """Sign and logarithm of the absolute value of the determinant of a sparse matrix.

    Parameters
    ----------
    A : sparse array
        Square; its elements may be a tensor.
    assume_a : {'gen', 'pos'}
        'pos': the matrix is Hermitian and positive definite; an error if it is not.

    Returns
    -------
    sign, logabsdet
        As ``numpy.linalg.slogdet``; 0 and -inf for a singular matrix.

    Raises
    ------
    MatrixError
        `A` is not square, or not positive definite as it was said to be; or a derivative is taken,
        and it is singular or nearly so.

    Notes
    -----
    By the LU factors. The gradient is the transposed inverse on the pattern of `A`, by the
    recurrence of Takahashi, Fagan and Chen (1973), at about the cost of the factorization. Second
    derivatives need the whole inverse, and are computed up to 4096 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from wengert.scipy.sparse.linalg import slogdet
    >>> sign, logarithm = slogdet(csr_array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sign, np.exp(logarithm).round(9)
    (np.float64(-1.0), np.float64(6.0))
    """
    choice(assume_a, ASSUMED, "assume_a", "slogdet")
    matrix = square(A, "slogdet")
    return SlogdetResult(*sparse_slogdet(*matrix.arrays, assume=assume_a))


def logdet(A: Any, *, assume_a: str = "gen") -> Any:
    """The logarithm of the determinant of a sparse matrix.

    Parameters
    ----------
    A : sparse array
        Square; its elements may be a tensor.
    assume_a : {'gen', 'pos'}
        'pos': the matrix is Hermitian and positive definite; an error if it is not.

    Returns
    -------
    number
        NaN if the determinant is negative, -inf if it is zero.

    Raises
    ------
    MatrixError
        As `slogdet`.
    ArgumentError
        The matrix is complex, and not said to be positive definite: use `slogdet`.

    See Also
    --------
    slogdet : for any sign; its notes say how derivatives are computed.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from scipy.sparse import csr_array
    >>> from wengert.scipy.sparse.linalg import logdet
    >>> a = csr_array([[2.0, 1.0], [1.0, 3.0]])
    >>> np.exp(logdet(a, assume_a="pos")).round(9)
    np.float64(5.0)
    """
    sign, logarithm = slogdet(A, assume_a=assume_a)
    if assume_a == "pos":
        return logarithm
    if sign.dtype.kind == "c":
        raise ArgumentError(
            "logdet of a complex matrix: the determinant has a phase. Use slogdet, or "
            f"assume_a='pos'{at(user_line())}."
        )
    return where(np.less(sign, 0), np.nan, logarithm)
