"""Linear systems with sparse matrices as operations on the arrays of the CSR format.

    sparse_solve     x with op(a) @ x = b
    row_numbers      the row of each entry
    entry_products   elements of a product of two matrices on the pattern
    pattern_product  a @ x, and its transpose

The pattern is that of the matrix, so the cotangent of `data` has an element for each entry, and is
never dense.  SuperLU's factors are shared by value and derivatives (factors.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.linalg import LinAlgError

from wengert._engine.core.handle import shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import BY_NUMPY, BY_SCIPY
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic import constraints
from wengert._engine.kinds.batching import deepened, row_ranks
from wengert._engine.ops.indexing.getitem import IndexSlot, getitem, scatter
from wengert._engine.ops.linalg.linear_solve import matrices
from wengert._engine.ops.shapes import reshape, transpose
from wengert._engine.ops.sparse_products import (
    csr_matmul,
    csr_sampled_matmul,
    csr_transposed_matmul,
)

from .factors import factor_of
from .operands import Plain, check_lengths, check_structure

if TYPE_CHECKING:
    from wengert._engine.core.types import Size

HINT = "Use lsqr, or add a multiple of the identity, if it may be singular"


def dense(data: Plain, indices: Plain, indptr: Plain, columns: int | None = None) -> Plain:
    """The matrix of CSR arrays with all of its elements; batches of `data` in front."""
    n = len(indptr) - 1
    a = np.zeros((*data.shape[:-1], n, n if columns is None else columns), data.dtype)
    rows = np.repeat(np.arange(n), np.diff(indptr))
    for k, (i, j) in enumerate(zip(rows, indices, strict=True)):
        a[..., i, j] += data[..., k]
    return a


def _rows(indices: Plain, indptr: Plain) -> Plain:
    return np.array([np.searchsorted(indptr, k, side="right") - 1 for k in range(len(indices))])


@matrices(
    "indptr must have ascending positions in indices",
    name="sparse.row_numbers",
    discrete=True,
    oracle=_rows,
)
def row_numbers(indices: Plain, indptr: Plain) -> Any:
    """The row of each entry of a matrix in CSR format."""
    check_structure(indices, indptr, 1 + int(indices.max(initial=0)))
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


row_numbers.host_callback = BY_NUMPY


@row_numbers.spec
def _(indices: Spec, indptr: Spec) -> Any:
    return Spec(indices.shape, np.dtype(np.int64))


@row_numbers.examples
def _(rng: np.random.Generator) -> Any:
    yield (np.array([0, 2, 1, 2, 0]), np.array([0, 2, 2, 5])), {}


_ROWS = (Ellipsis, IndexSlot(0), slice(None))


def entry_products(u: Any, v: Any, indices: Any, indptr: Any) -> Any:
    """The elements of u @ v.T at the entries of the pattern, for batches of matrices."""
    if u.ndim == v.ndim == 2:
        return csr_sampled_matmul(u, v, indices, indptr)
    rows = row_numbers(indices, indptr)
    return np.sum(getitem(u, rows, index=_ROWS) * getitem(v, indices, index=_ROWS), axis=-1)


def pattern_product(data: Any, indices: Any, indptr: Any, x: Any, transposed: bool) -> Any:
    """A @ x or A.T @ x for a square matrix A, for batches of matrices."""
    shape = shape_of(x)
    if data.ndim == 1 and x.ndim == 2:
        if transposed:
            return csr_transposed_matmul(data, x, indices, indptr, columns=shape[0])
        return csr_matmul(data, x, indices, indptr)
    rows = row_numbers(indices, indptr)
    source, target = (rows, indices) if transposed else (indices, rows)
    terms = lookup("expand_dims")(data, axis=-1) * getitem(x, source, index=_ROWS)
    shape = shape_of(terms)
    return scatter(terms, target, index=_ROWS, shape=(*shape[:-2], shape_of(x)[-2], shape[-1]))


def _conjugate(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


def _oracle(data: Any, indices: Any, indptr: Any, b: Any, *, trans: int = 0, **options: Any) -> Any:
    a = dense(data, indices, indptr)
    return np.linalg.solve([a, a.mT, np.conj(a.mT)][trans], b)


@matrices(HINT, name="sparse.solve", oracle=_oracle)
def sparse_solve(
    data: Plain,
    indices: Plain,
    indptr: Plain,
    b: Plain,
    *,
    trans: int = 0,
    assume: str = "gen",
    checked: bool = False,
    or_nan: bool = False,
) -> Any:
    """x with op(a) @ x = b for a matrix b; op: identity, transpose, adjoint (0, 1, 2).

    With `checked`, a nearly singular matrix is an error; `or_nan`: NaN for a singular matrix.
    """
    check_lengths(data, indices, indptr, b)

    def solution(data: Plain, b: Plain) -> Plain:
        try:
            factor = factor_of(data, indices, indptr, assume)
        except LinAlgError:
            if not or_nan:
                raise
            return np.full(b.shape, np.nan, np.result_type(data, b))
        if checked:
            factor.check_condition()
        return factor.solve(b, trans)

    if data.ndim == 1 and b.ndim == 2 and b.size:
        return np.ascontiguousarray(solution(data, b))
    batch = np.broadcast_shapes(data.shape[:-1], b.shape[:-2])
    x = np.empty((*batch, *b.shape[-2:]), np.result_type(data, b))
    if not x.size:
        return x
    data = np.broadcast_to(data, (*batch, data.shape[-1]))
    b = np.broadcast_to(b, x.shape)
    for i in np.ndindex(*batch):
        x[i] = solution(data[i], b[i])
    return x


sparse_solve.host_callback = BY_SCIPY


@sparse_solve.spec
def _(data: Spec, indices: Spec, indptr: Spec, b: Spec, **options: Any) -> Any:
    check_lengths(data, indices, indptr, b)
    batch = constraints.broadcast(data.shape[:-1], b.shape[:-2])
    return Spec((*batch, *b.shape[-2:]), np.result_type(data.dtype, b.dtype))


_ADJOINT = (2, 2, 0)


@sparse_solve.define_vjp
def _solve_vjp(
    t: Plain,
    out: Plain,
    data: Plain,
    indices: Plain,
    indptr: Plain,
    b: Plain,
    *,
    trans: int = 0,
    assume: str = "gen",
    checked: bool = False,
    or_nan: bool = False,
) -> Any:
    given = data, indices, indptr
    how: Any = {"assume": assume, "checked": not or_nan, "or_nan": or_nan}
    if trans == 1:
        b_bar = _conjugate(sparse_solve(*given, _conjugate(t), trans=0, **how))
    else:
        b_bar = sparse_solve(*given, t, trans=_ADJOINT[trans], **how)
    left, right = ((b_bar, out), (_conjugate(out), _conjugate(b_bar)), (out, b_bar))[trans]
    bar = entry_products(left, _conjugate(right), indices, indptr)
    return -bar, None, None, b_bar


@sparse_solve.define_jvp
def _solve_jvp(
    dots: Any,
    out: Plain,
    data: Any,
    indices: Any,
    indptr: Any,
    b: Plain,
    *,
    trans: int = 0,
    assume: str = "gen",
    checked: bool = False,
    or_nan: bool = False,
) -> Any:
    data_dot, right = dots[0], dots[3]
    if data_dot is not None:
        if trans == 2:
            data_dot = _conjugate(data_dot)
        product = pattern_product(data_dot, indices, indptr, out, trans != 0)
        right = -product if right is None else right - product
    how: Any = {"assume": assume, "checked": not or_nan, "or_nan": or_nan}
    return sparse_solve(data, indices, indptr, right, trans=trans, **how)


@sparse_solve.batch
def _solve_batch(args: Any, batched: Any, size: Size, **options: Any) -> Any:
    data, indices, indptr, b = args
    if batched[1] or batched[2]:
        return NotImplemented
    ranks = row_ranks(args, batched)
    if not batched[0] and ranks[0] == 1 and ranks[3] == 2:
        _, n, columns = shape_of(b)  # one matrix: batch elements become columns of b
        wide = reshape(transpose(b, axes=(1, 0, 2)), shape=(n, size * columns))
        result = sparse_solve(data, indices, indptr, wide, **options)
        return transpose(reshape(result, shape=(n, size, columns)), axes=(1, 0, 2))
    depth = max(ranks[0] - 1, ranks[3] - 2)
    data = deepened(data, depth + 1) if batched[0] else data
    b = deepened(b, depth + 2) if batched[3] else b
    return sparse_solve(data, indices, indptr, b, **options)


def example_matrix(rng: np.random.Generator, *batch: int) -> tuple[Plain, Plain, Plain]:
    """The arrays of a regular matrix with four rows, whose entries are not sorted."""
    data = rng.normal(size=(*batch, 9)) + np.array([4.0, 0, 0, 4, 0, 0, 4, 0, 4])
    return data, np.array([0, 2, 3, 1, 0, 3, 2, 0, 3]), np.array([0, 2, 5, 7, 9])


@sparse_solve.examples
def _(rng: np.random.Generator) -> Any:
    data, indices, indptr = example_matrix(rng)
    b = rng.normal(size=(4, 2))
    for trans in (0, 1):
        yield (data, indices, indptr, b), {"trans": trans}
    for trans in (0, 1, 2):
        complex_data = data + 1j * rng.normal(size=9)
        yield (complex_data, indices, indptr, b + 1j * b[::-1]), {"trans": trans}
    yield (*example_matrix(rng, 2), rng.normal(size=(4, 1))), {"or_nan": True}
    yield (*example_matrix(rng, 2, 1), rng.normal(size=(3, 4, 1))), {"checked": True}
