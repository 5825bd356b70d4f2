"""Products with sparse matrices in compressed row format: the pattern is an operand of integers.

The three operations are the derivatives of one form, linear in each of `data`, `u` and `v`,

    sum of data[k] * u[i, c] * v[indices[k], c]    for indptr[i] <= k < indptr[i + 1] and all c

    csr_matmul             its derivative with respect to u: A @ v
    csr_transposed_matmul  with respect to v: A.T @ u
    csr_sampled_matmul     with respect to data: elements of u @ v.T in the pattern (SDDMM)
    csr_cotangents         the last two of a vector u in one pass

so the derivatives of each, of any order, are the other two; a dense matrix never exists.  Sums are
in the order of storage, so results have the same bits in each run.  Entries of a row may repeat a
column.

With ``stacked=True``, the operands of numbers have a leading axis of the same length, and the
pattern is shared.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, lookup, register
from wengert._engine.core.op_facts import Cost, facts
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import require_equal
from wengert._engine.kinds.batching import fronted, ndim_of
from wengert._engine.kinds.opaque import Opaque, opaque
from wengert.errors import ShapeError, at, user_line

Plain = np.ndarray[Any, Any]
_INDIRECT_WORK = 20.0  # of an element that is read at an index, relative to an addition
_PATTERN = slice(2, None)  # the operands of integers


def _conjugate(x: Any) -> Any:
    return lookup("conjugate")(x) if x.dtype.kind == "c" else x


_checked: OrderedDict[tuple[int, int, int], tuple[ref[Plain], ref[Plain]]] = OrderedDict()
_MAX_CHECKED = 64


def check_pattern(indices: Plain, indptr: Plain, columns: int) -> None:
    """Check the pattern of a matrix; arrays that cannot be written to are checked once.

    Raises
    ------
    ShapeError
        `indptr` does not divide the entries into rows.
    IndexError
        A column is out of range.
    """
    key = (id(indices), id(indptr), columns)
    known = _checked.get(key)
    may_change = _may_change(indices) or _may_change(indptr)
    if known and not may_change and known[0]() is indices and known[1]() is indptr:
        return
    count = len(indices)
    if not len(indptr) or indptr[0] != 0 or indptr[-1] != count or np.any(np.diff(indptr) < 0):
        raise ShapeError(
            f"indptr of a sparse matrix with {count} entries: it must begin with 0, not decrease, "
            f"and end with the number of entries{at(user_line())}."
        )
    low, high = (indices.min(), indices.max()) if count else (0, -1)
    if low < 0 or high >= columns:
        raise IndexError(
            f"column {low if low < 0 else high} of a sparse matrix with {columns} columns: the "
            "indices of columns must not be negative, and less than their number"
            f"{at(user_line())}."
        )
    if not may_change:
        _checked[key] = (ref(indices), ref(indptr))
        while len(_checked) > _MAX_CHECKED:
            _checked.popitem(last=False)


def _may_change(x: Plain) -> bool:
    """Whether an array can be written to."""
    return x.flags.writeable or not x.flags.owndata


def _require_entries(data: Spec, indices: Spec) -> None:
    """Require as many numbers as columns."""
    n, m = data.shape[-1], indices.shape[0]
    require_equal(n, m, f"{n} numbers for {m} entries of a sparse matrix")


def _rows(indptr: Plain) -> Plain:
    """The row of each entry."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def _matrix(data: Plain, indices: Plain, indptr: Plain, columns: int) -> Any:
    """The matrix as SciPy's."""
    from scipy.sparse import csr_array

    check_pattern(indices, indptr, columns)
    return csr_array((data, indices, indptr), shape=(len(indptr) - 1, columns))


def _each(run: Callable[..., Plain], first: Plain, second: Plain, stacked: bool) -> Plain:
    """The results for one pair of operands, or for each of a batch."""
    if not stacked:
        return run(first, second)
    if not len(first):
        empty = run(np.zeros(first.shape[1:], first.dtype), np.zeros(second.shape[1:], first.dtype))
        return np.empty((0, *empty.shape), empty.dtype)
    return np.stack([run(x, y) for x, y in zip(first, second, strict=True)])


def _dense(data: Plain, indices: Plain, indptr: Plain, columns: int) -> Plain:
    """The dense matrices, for the oracles."""
    matrix = np.zeros((*data.shape[:-1], len(indptr) - 1, columns), data.dtype)
    for k, (i, j) in enumerate(zip(_rows(indptr), indices, strict=True)):
        matrix[..., i, j] += data[..., k]
    return matrix


def _times(matrix: Plain, v: Plain, stacked: bool) -> Plain:
    """The product with vectors or matrices."""
    product: Plain = (matrix @ v[..., None])[..., 0] if v.ndim == 1 + stacked else matrix @ v
    return product


def _matmul_oracle(
    data: Plain, v: Plain, indices: Plain, indptr: Plain, *, stacked: bool = False
) -> Plain:
    return _times(_dense(data, indices, indptr, v.shape[stacked]), v, stacked)


def _transposed_oracle(
    data: Plain, u: Plain, indices: Plain, indptr: Plain, *, columns: int, stacked: bool = False
) -> Plain:
    return _times(np.swapaxes(_dense(data, indices, indptr, columns), -1, -2), u, stacked)


def _sampled_oracle(
    u: Plain, v: Plain, indices: Plain, indptr: Plain, *, stacked: bool = False
) -> Plain:
    if u.ndim == 1 + stacked:
        u, v = u[..., None], v[..., None]
    elements: Plain = (u @ np.swapaxes(v, -1, -2))[..., _rows(indptr), indices]
    return elements


Rule = Callable[..., Any]  # rule(t, x, y, pattern, stacked): the cotangent of x or of y


class SparseProduct(Opaque):
    """An operation that is linear in its first two operands; the others are the pattern.

    Attributes
    ----------
    rules : tuple of Rule
        For the first and for the second operand.
    """

    rules: tuple[Rule, Rule]
    has_vjp = differentiable = True

    def vjp(self, node: Node, t: Any, out: Any, inputs: Sequence[Any], ctx: RuleContext) -> Any:
        """The cotangents of the operands that take part."""
        x, y, *pattern = inputs
        wants = [ctx.wants(a) for a in node.args[:2]]
        if all(wants) and self is csr_matmul and ndim_of(y) == 1:
            bars = csr_cotangents(t, _conjugate(x), _conjugate(y), *pattern)
            return [*bars, None, None]
        stacked = node.params.get("stacked", False)
        pairs = zip(self.rules, wants, strict=True)
        bars = [rule(t, x, y, pattern, stacked) if wanted else None for rule, wanted in pairs]
        return [*bars, None, None]


def _product(oracle: Any) -> Callable[[Callable[..., Any]], SparseProduct]:
    """Decorator: register an operation linear in its first two operands."""

    def decorate(run: Callable[..., Any]) -> SparseProduct:
        made = SparseProduct(run, trusted=True, oracle=oracle)
        return facts(cost=Cost(_INDIRECT_WORK), selectors=_PATTERN)(register(made))

    return decorate


@_product(_matmul_oracle)
def csr_matmul(
    data: Plain, v: Plain, indices: Plain, indptr: Plain, *, stacked: bool = False
) -> Plain:
    """A @ v, for a vector or a matrix v."""
    columns = v.shape[stacked]
    return _each(lambda d, x: _matrix(d, indices, indptr, columns) @ x, data, v, stacked)


@_product(_transposed_oracle)
def csr_transposed_matmul(
    data: Plain, u: Plain, indices: Plain, indptr: Plain, *, columns: int, stacked: bool = False
) -> Plain:
    """A.T @ u, for a vector or a matrix u, and a matrix A of `columns` columns."""
    return _each(lambda d, x: _matrix(d, indices, indptr, columns).T @ x, data, u, stacked)


@_product(_sampled_oracle)
def csr_sampled_matmul(
    u: Plain, v: Plain, indices: Plain, indptr: Plain, *, stacked: bool = False
) -> Plain:
    """The elements of u @ v.T (of the outer product of vectors) at the entries of the pattern."""
    check_pattern(indices, indptr, v.shape[stacked])
    counts = np.diff(indptr)

    def run(u: Plain, v: Plain) -> Plain:
        left, right = np.repeat(u, counts, axis=0), np.take(v, indices, axis=0)
        products: Plain = np.multiply(left, right, out=left)
        return products if u.ndim == 1 else products.sum(axis=1, dtype=products.dtype)

    return _each(run, u, v, stacked)


# ---- specs and derivatives -----------------------------------------------------------------------


@csr_matmul.spec
def _(data: Spec, v: Spec, indices: Spec, indptr: Spec, *, stacked: bool = False) -> Spec:
    axis = int(stacked)
    _require_entries(data, indices)
    return Spec((*v.shape[:axis], indptr.shape[0] - 1, *v.shape[axis + 1 :]), v.dtype)


@csr_transposed_matmul.spec
def _(
    data: Spec, u: Spec, indices: Spec, indptr: Spec, *, columns: int, stacked: bool = False
) -> Spec:
    axis = int(stacked)
    _require_entries(data, indices)
    require_equal(u.shape[axis], indptr.shape[0] - 1, "rows of a sparse matrix")
    return Spec((*u.shape[:axis], columns, *u.shape[axis + 1 :]), u.dtype)


@csr_sampled_matmul.spec
def _(u: Spec, v: Spec, indices: Spec, indptr: Spec, *, stacked: bool = False) -> Spec:
    require_equal(u.shape[int(stacked)], indptr.shape[0] - 1, "rows of a sparse matrix")
    return Spec((*u.shape[: int(stacked)], indices.shape[0]), u.dtype)


def _sampled(t: Any, other: Any, pattern: Sequence[Any], stacked: bool) -> Any:
    """Elements of t @ other^H."""
    return csr_sampled_matmul(t, _conjugate(other), *pattern, stacked=stacked)


def _times_transpose(data: Any, t: Any, like: Any, pattern: Sequence[Any], stacked: bool) -> Any:
    """The product of the transpose and t, a cotangent of `like`."""
    columns = shape_of(like)[stacked]
    return csr_transposed_matmul(data, t, *pattern, columns=columns, stacked=stacked)


csr_matmul.rules = (
    lambda t, data, v, pattern, stacked: _sampled(t, v, pattern, stacked),
    lambda t, data, v, pattern, stacked: _times_transpose(_conjugate(data), t, v, pattern, stacked),
)
csr_transposed_matmul.rules = (
    lambda t, data, u, pattern, stacked: csr_sampled_matmul(
        _conjugate(u), t, *pattern, stacked=stacked
    ),
    lambda t, data, u, pattern, stacked: csr_matmul(_conjugate(data), t, *pattern, stacked=stacked),
)
csr_sampled_matmul.rules = (
    lambda t, u, v, pattern, stacked: csr_matmul(t, _conjugate(v), *pattern, stacked=stacked),
    lambda t, u, v, pattern, stacked: _times_transpose(t, _conjugate(u), v, pattern, stacked),
)


@facts(cost=Cost(_INDIRECT_WORK), selectors=slice(3, None))
@opaque(
    trusted=True,
    oracle=lambda t, data, v, *pattern: (
        _sampled_oracle(t, v, *pattern),
        _transposed_oracle(data, t, *pattern, columns=len(v)),
    ),
)
def csr_cotangents(t: Plain, data: Plain, v: Plain, indices: Plain, indptr: Plain) -> Any:
    """The cotangents of `data` and `v` in A @ v from that of the vector: one pass over A."""
    columns = len(v)
    return (
        csr_sampled_matmul.run(t, v, indices, indptr),
        csr_transposed_matmul.run(data, t, indices, indptr, columns=columns),
    )


@csr_cotangents.compose
def _(t: Any, data: Any, v: Any, indices: Any, indptr: Any) -> Any:
    return (
        csr_sampled_matmul(t, v, indices, indptr),
        csr_transposed_matmul(data, t, indices, indptr, columns=shape_of(v)[0]),
    )


@csr_cotangents.spec
def _(t: Spec, data: Spec, v: Spec, indices: Spec, indptr: Spec) -> Any:
    _require_entries(data, indices)
    require_equal(t.shape[0], indptr.shape[0] - 1, "rows of a sparse matrix")
    return Spec(data.shape, data.dtype), Spec(v.shape, v.dtype)


@csr_cotangents.define_jvp
def _(dots: Sequence[Any], out: Any, t: Any, data: Any, v: Any, *pattern: Any) -> Any:
    t_dot, data_dot, v_dot = dots[:3]
    of_data, of_v = [], []
    if t_dot is not None:
        of_data.append(csr_sampled_matmul(t_dot, v, *pattern))
        of_v.append(_times_transpose(data, t_dot, v, pattern, False))
    if v_dot is not None:
        of_data.append(csr_sampled_matmul(t, v_dot, *pattern))
    if data_dot is not None:
        of_v.append(_times_transpose(data_dot, t, v, pattern, False))
    return tuple([sum(terms[1:], terms[0]) if terms else None for terms in (of_data, of_v)])


@csr_cotangents.define_vjp
def _(bars: Any, out: Any, t: Any, data: Any, v: Any, *pattern: Any) -> Any:
    of_data, of_v = bars
    t, data, v = _conjugate(t), _conjugate(data), _conjugate(v)
    return (
        csr_matmul(of_data, v, *pattern) + csr_matmul(data, of_v, *pattern),
        csr_sampled_matmul(t, of_v, *pattern),
        _times_transpose(of_data, t, v, pattern, False),
        None,
        None,
    )


@csr_cotangents.batch
def _(args: Any, batched: Any, size: Any) -> Any:
    if any(batched[3:]):
        return NotImplemented
    *_, v, indices, indptr = args
    pattern = (indices, indptr)
    columns = {"columns": shape_of(v)[int(batched[2])]}
    pairs: tuple[tuple[Any, int, int, dict[str, Any]], ...] = (
        (csr_sampled_matmul, 0, 2, {}),
        (csr_transposed_matmul, 1, 0, columns),
    )
    outs = []
    for op, i, j, params in pairs:
        if batched[i] or batched[j]:
            flags = (batched[i], batched[j], False, False)
            outs.append(op.batched((args[i], args[j], *pattern), flags, size, params))
        else:
            outs.append(fronted(op(args[i], args[j], *pattern, **params), False, size))
    return tuple(outs)


def _bilinear(op: Opaque) -> None:
    """Define the jvp and the batching rule of an operation bilinear in its first two operands."""

    @op.define_jvp
    def _(dots: Sequence[Any], out: Any, x: Any, y: Any, *pattern: Any, **params: Any) -> Any:
        terms = []
        if dots[0] is not None:
            terms.append(op(dots[0], y, *pattern, **params))
        if dots[1] is not None:
            terms.append(op(x, dots[1], *pattern, **params))
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    @op.batch
    def _(args: Any, batched: Any, size: Any, **params: Any) -> Any:
        if any(batched[2:]):
            return NotImplemented
        x, y, *pattern = args
        if params.get("stacked"):
            return _of_batches(op, args, batched, size, params)
        if op is not csr_sampled_matmul and not batched[0]:
            return _by_columns(op, x, y, pattern, params)
        x, y = fronted(x, batched[0], size), fronted(y, batched[1], size)
        return op(x, y, *pattern, **{**params, "stacked": True})


def _by_columns(op: Any, x: Any, y: Any, pattern: Sequence[Any], params: dict[str, Any]) -> Any:
    """The batch of products with one matrix: the vectors are columns."""
    reshape, transpose = lookup("reshape"), lookup("transpose")
    if ndim_of(y) == 2:
        return transpose(op(x, transpose(y, axes=(1, 0)), *pattern, **params), axes=(1, 0))
    size, n, columns = shape_of(y)
    wide = reshape(transpose(y, axes=(1, 0, 2)), shape=(n, size * columns))
    out = op(x, wide, *pattern, **params)
    return transpose(reshape(out, shape=(shape_of(out)[0], size, columns)), axes=(1, 0, 2))


def _of_batches(op: Any, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
    """A batch of operations on batches, whose axes are merged."""
    reshape = lookup("reshape")
    operands = []
    inner = None
    for x, is_batched in zip(args[:2], batched[:2], strict=True):
        wide = fronted(x, is_batched, size)
        outer, inner, *rest = shape_of(wide)
        operands.append(reshape(wide, shape=(outer * inner, *rest)))
    out = op(*operands, *args[2:], **params)
    return reshape(out, shape=(size, inner, *shape_of(out)[1:]))


for _op in (csr_matmul, csr_transposed_matmul, csr_sampled_matmul):
    _bilinear(_op)


# ---- examples ------------------------------------------------------------------------------------


def _patterns(rng: np.random.Generator) -> Any:
    """Patterns of three rows and four columns: one with an empty row and a repeated column."""
    yield np.array([3, 0, 0, 2]), np.array([0, 1, 1, 4])
    yield np.array([1, 3, 0], np.int32), np.array([0, 1, 2, 3], np.int32)


def _examples(
    op: Opaque, first: Callable[[int], tuple[int, ...]], second: int, **params: Any
) -> None:
    """Examples: the lengths of the first operand, and the length of the second."""

    @op.examples
    def _(rng: np.random.Generator) -> Any:
        for indices, indptr in _patterns(rng):
            shape = first(len(indices))
            for tail in ((), (2,)):
                x = rng.normal(size=shape if op is not csr_sampled_matmul else (*shape, *tail))
                yield (x, rng.normal(size=(second, *tail)), indices, indptr), params
            x, y = rng.normal(size=(2, *shape)), rng.normal(size=(2, second))
            yield (x, y, indices, indptr), {**params, "stacked": True}


@csr_cotangents.examples
def _(rng: np.random.Generator) -> Any:
    for indices, indptr in _patterns(rng):
        data, v = rng.normal(size=len(indices)), rng.normal(size=6)
        yield (rng.normal(size=3), data, v, indices, indptr), {}


_examples(csr_matmul, lambda count: (count,), 4)
_examples(csr_transposed_matmul, lambda count: (count,), 3, columns=4)
_examples(csr_sampled_matmul, lambda count: (3,), 4)
