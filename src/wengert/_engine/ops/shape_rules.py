"""Shape rules that several operations share.

An operation defines its rule with `@op.spec`; without a rule it is run on examples (core/op.py; if
sizes are symbolic, core/spec.py).  Dtypes are those of NumPy.

    of_elements      the shape that the operands broadcast to
    of_matrices      shapes by a rule for the last axes
    small_run        the spec of the result for operands with one element

Shape rules of views, joins, sorting and matrices, exact for symbolic sizes.

The kinds define the rules of elementwise operations, reductions and contractions.  A condition that
cannot be decided for all sizes becomes a requirement (core/symbolic/constraints.py): the graph
raises an error for sizes that violate it.  Shapes of indexed arrays are in indexing/shapes.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.node_properties import sizes_of, substituted
from wengert._engine.core.op_facts import Effects
from wengert._engine.core.spec import Spec, example_of, spec_of
from wengert._engine.core.symbolic.constraints import broadcast, require_at_least, require_equal
from wengert._engine.core.symbolic.dim import Dim, bounds, spelled
from wengert._engine.core.thread_state import call_ignoring_errors

from . import casts, cumulative, joining, shapes, sorting
from .elementwise import comparison, number_parts
from .indexing.shapes import values_needed
from .linalg import determinants, eigen_svd, factorizations, linear_solve, matrix_functions

if TYPE_CHECKING:
    from wengert._engine.core.dispatch import Operation
    from wengert._engine.core.types import Size


def small_run(op: Operation, specs: Sequence[Spec], params: dict[str, Any]) -> Any:
    """The spec of the result for operands whose axes have length one."""
    small = [s if s.weak else Spec((1,) * len(s.shape), s.dtype) for s in specs]
    names = sizes_of(params)
    if names:
        params = substituted(params, dict.fromkeys(names, 1))
    return spec_of(call_ignoring_errors(op.run, *map(example_of, small), **params))


def of_elements(*ops: Any) -> None:
    """Define that the result has the shape that the operands broadcast to."""
    for op in ops:
        _define(op, lambda specs, params: broadcast(*[s.shape for s in specs]))


def _define(op: Any, shape_of: Callable[[Any, Any], Any]) -> None:
    def rule(*specs: Spec, **params: Any) -> Any:
        one = small_run(op, specs, params)
        shape = shape_of(specs, params)
        if isinstance(one, tuple):
            return tuple(Spec(shape, s.dtype) for s in one)
        return Spec(shape, one.dtype)

    op.spec(rule)


def of_matrices(op: Any, rule: Callable[..., Any]) -> None:
    """Define the shapes of the results: `rule(*shapes, **params)`, from those of the operands.

    It returns one shape, or a list of them for an operation with several results.
    """

    def spec(*specs: Spec, **params: Any) -> Any:
        small = small_run(op, specs, params)
        shapes = rule(*[s.shape for s in specs], **params)
        if isinstance(small, tuple):
            return tuple(
                Spec(tuple(shape), s.dtype) for shape, s in zip(shapes, small, strict=True)
            )
        return Spec(tuple(shapes), small.dtype)

    op.spec(spec)


Shape = tuple[Any, ...]

of_elements(
    casts.cast,
    casts.discretise,
    number_parts.real,
    number_parts.imag,
    cumulative.cumprod,
    cumulative.cumsum,
    cumulative.recurrence,
    cumulative.running,
    cumulative.shift,
    comparison.isclose,
    number_parts.frexp,
    number_parts.modf,
    number_parts.round,
    shapes.copy,
    shapes.flip,
    shapes.roll,
    *comparison.BITS,
)


# ---- views -------------------------------------------------------------------------------------


@shapes.reshape.spec
def _(x: Spec, *, shape: tuple[Size, ...], order: str = "C") -> Any:
    shape = tuple(shape)
    known = math.prod(n for n in shape if not _is_inferred(n))
    reason = f"reshape of {spelled(x.shape)} to {spelled(shape)}"
    if sum(map(_is_inferred, shape)) > 1:
        raise ValueError("can only specify one unknown dimension")
    if any(map(_is_inferred, shape)):
        if not isinstance(known, Dim) and known == 0:
            raise ValueError(f"cannot reshape an array of size {x.size} into shape {shape}")
        shape = tuple(x.size // known if _is_inferred(n) else n for n in shape)
    require_equal(math.prod(shape), x.size, reason)
    return Spec(shape, x.dtype)


def _is_inferred(n: Size) -> bool:
    return type(n) is int and n == -1


@shapes.transpose.spec
def _(x: Spec, *, axes: tuple[int, ...] | None = None) -> Any:
    order = range(x.ndim)[::-1] if axes is None else [_axis(a, x.ndim) for a in axes]
    if sorted(order) != list(range(x.ndim)):
        raise ValueError(f"axes must be a permutation of the {x.ndim} axes, got {axes}")
    return Spec(tuple(x.shape[a] for a in order), x.dtype)


def _axis(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


def _axes(axis: int | tuple[int, ...], ndim: int) -> list[int]:
    return [_axis(a, ndim) for a in (axis if isinstance(axis, tuple | list) else (axis,))]


@shapes.expand_dims.spec
def _(x: Spec, *, axis: int | tuple[int, ...]) -> Any:
    ndim = x.ndim + (len(axis) if isinstance(axis, tuple | list) else 1)
    new = _axes(axis, ndim)
    if len(set(new)) < len(new):
        raise ValueError("repeated axis")
    lengths = iter(x.shape)
    return Spec(tuple(1 if k in new else next(lengths) for k in range(ndim)), x.dtype)


@shapes.squeeze.spec
def _(x: Spec, *, axis: tuple[int, ...] | None = None) -> Any:
    if axis is None:
        for n in x.shape:
            if isinstance(n, Dim):
                require_at_least(n, 2, f"squeeze of {spelled(x.shape)} without an axis")
        return Spec(tuple(n for n in x.shape if n != 1), x.dtype)
    removed = _axes(axis, x.ndim)
    for k in removed:
        require_equal(x.shape[k], 1, f"squeeze of axis {k} of {spelled(x.shape)}")
    return Spec(tuple(n for k, n in enumerate(x.shape) if k not in removed), x.dtype)


@shapes.diagonal.spec
def _(x: Spec, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    one, two = _axis(axis1, x.ndim), _axis(axis2, x.ndim)
    if one == two:
        raise ValueError("axis1 and axis2 cannot be the same")
    rows, columns = x.shape[one] - max(-offset, 0), x.shape[two] - max(offset, 0)
    length = _smaller(rows, columns, f"the diagonal of {spelled(x.shape)}")
    if isinstance(length, Dim):
        require_at_least(length, 0, f"diagonal {offset} of {spelled(x.shape)}")
    else:
        length = max(length, 0)
    rest = tuple(n for k, n in enumerate(x.shape) if k not in (one, two))
    return Spec((*rest, length), x.dtype)


def _smaller(a: Size, b: Size, what: str) -> Any:
    """The smaller of two lengths; if it depends on the sizes, b, which is then required."""
    if a == b:
        return a
    low, high = bounds(a - b)
    if high is not None and high <= 0:
        return a
    if low is None or low < 0:
        require_at_least(a, b, what)
    return b


@casts.broadcast_to.spec
def _(x: Spec, *, shape: tuple[Size, ...]) -> Any:
    shape = tuple(shape)
    if len(shape) < x.ndim or broadcast(x.shape, shape) != shape:
        raise ValueError(f"{spelled(x.shape)} does not broadcast to {spelled(shape)}")
    return Spec(shape, x.dtype)


@casts.sum_to.spec
def _(x: Spec, *, shape: tuple[Size, ...]) -> Any:
    shape = tuple(shape)
    if len(shape) > x.ndim or broadcast(shape, x.shape) != x.shape:
        raise ValueError(f"{spelled(shape)} does not broadcast to {spelled(x.shape)}")
    return Spec(shape, x.dtype)


# ---- joins -------------------------------------------------------------------------------------


@joining.concatenate.spec
def _(*arrays: Any, axis: int) -> Any:
    first = arrays[0].shape
    if not first:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    k = _axis(axis, len(first))
    for other in arrays[1:]:
        _require_same_shape(first, other.shape, "concatenate", except_axis=k)
    total = sum(a.shape[k] for a in arrays)
    return Spec((*first[:k], total, *first[k + 1 :]), np.result_type(*[a.dtype for a in arrays]))


@joining.stack.spec
def _(*arrays: Any, axis: int) -> Any:
    first = arrays[0].shape
    k = _axis(axis, len(first) + 1)
    for other in arrays[1:]:
        _require_same_shape(first, other.shape, "stack")
    dtype = np.result_type(*[a.dtype for a in arrays])
    return Spec((*first[:k], len(arrays), *first[k:]), dtype)


def _require_same_shape(a: Shape, b: Shape, what: str, except_axis: int = -1) -> None:
    reason = f"{what} of {spelled(a)} and {spelled(b)}"
    if len(a) != len(b):
        raise ValueError(f"{reason}: the numbers of axes differ")
    for k, (n, m) in enumerate(zip(a, b, strict=True)):
        if k != except_axis:
            require_equal(n, m, reason)


# ---- order and positions -----------------------------------------------------------------------


@sorting.gather_along.spec
def _(x: Spec, positions: Spec, *, axis: int, unique: bool = False) -> Any:
    k = _axis(axis, x.ndim)
    if len(positions.shape) != x.ndim:
        raise ValueError("the positions must have as many axes as the array")
    one = (*x.shape[:k], 1, *x.shape[k + 1 :])
    return Spec(broadcast(one, positions.shape), x.dtype)


@sorting.scatter_along.spec
def _(t: Spec, positions: Spec, *, axis: int, length: Size, unique: bool = False) -> Any:
    k = _axis(axis, t.ndim)
    return Spec((*t.shape[:k], length, *t.shape[k + 1 :]), t.dtype)


def _positions_like(x: Spec, *_: Any, **__: Any) -> Spec:
    return Spec(x.shape, np.dtype(np.intp))


def _order_of(x: Spec, *_: Any, **__: Any) -> Spec:
    return Spec(x.shape or (1,), np.dtype(np.intp))  # NumPy treats a 0-d array as 1-d


_op: Operation
for _op in (sorting.argsort, sorting.argpartition):
    _op.spec(_order_of)
for _op in (sorting.lexsort, sorting.digitize):
    _op.spec(_positions_like)


@sorting.searchsorted.spec
def _(x: Spec, v: Spec, *sorter: Any, side: str = "left") -> Any:
    return Spec(v.shape, np.dtype(np.intp))


def _bin_count(edges: Spec) -> Any:
    if edges.ndim != 1:
        raise ValueError(f"histogram: edges of bins must be a vector, got shape {edges.shape}")
    require_at_least(edges.size, 1, "histogram")
    return edges.size - 1


@sorting.histogram_counts.spec
def _(x: Spec, edges: Spec) -> Any:
    return Spec((_bin_count(edges),), np.dtype(np.intp))


@sorting.histogram_sums.spec
def _(weights: Spec, x: Spec, edges: Spec) -> Any:
    require_equal(weights.size, x.size, "histogram: an array and its weights differ in length")
    return Spec((_bin_count(edges),), weights.dtype)


for _op in (sorting.nonzero, sorting.bincount, sorting.unique_positions):
    _op.effects = Effects(value_dependent_shape=True)
    _op.spec(values_needed(_op.name))


@sorting.slide.spec
def _(x: Spec, v: Spec) -> Any:
    require_at_least(x.size, v.size, "slide")
    return Spec((x.size - v.size + 1,), small_run(sorting.slide, (x, v), {}).dtype)


@sorting.convolve.spec
def _(x: Spec, v: Spec) -> Any:
    return Spec((x.size + v.size - 1,), small_run(sorting.convolve, (x, v), {}).dtype)


# ---- matrices ----------------------------------------------------------------------------------


def _square(a: Shape) -> Any:
    """The length of both axes of square matrices."""
    require_equal(a[-2], a[-1], f"square matrices required, got {spelled(a)}")
    return a[-1]


def _solution(a: Shape, b: Shape, **_: Any) -> Shape:
    n = _square(a)
    rows = b[-1] if len(b) == 1 else b[-2]
    require_equal(rows, n, f"right-hand side {spelled(b)} for matrices {spelled(a)}")
    if len(b) == 1:
        return (*a[:-2], n)
    return (*broadcast(a[:-2], b[:-2]), *b[-2:])


def _same_square(a: Shape, *others: Shape, **_: Any) -> Shape:
    _square(a)
    return broadcast(a, *others)


def _eigen(a: Shape, **_: Any) -> list[Shape]:
    return [(*a[:-2], _square(a)), a]


def _batch_shape(a: Shape, **_: Any) -> Shape:
    _square(a)
    return a[:-2]


def _qr(a: Shape, **_: Any) -> list[Shape]:
    k = _smaller(a[-2], a[-1], f"qr of {spelled(a)} with at least as many rows as columns")
    return [(*a[:-1], k), (*a[:-2], k, a[-1])]


def _svd(a: Shape, *, full_matrices: bool = False) -> list[Shape]:
    *batch, m, n = a
    k = _smaller(m, n, f"svd of {spelled(a)} with at least as many rows as columns")
    left, right = (m, n) if full_matrices else (k, k)
    return [(*batch, m, left), (*batch, k), (*batch, right, n)]


def _completing(a: Shape) -> Shape:
    missing = a[-2] - a[-1]
    if isinstance(missing, Dim):
        require_at_least(missing, 0, f"at least as many rows as columns required in {spelled(a)}")
    return (*a[:-1], missing if isinstance(missing, Dim) else max(missing, 0))


of_matrices(factorizations.completing_columns, _completing)
for _op in (linear_solve.solve, factorizations.solve_triangular):
    of_matrices(_op, _solution)
for _op in (
    linear_solve.inv,
    factorizations.cholesky,
    matrix_functions.expm,
    determinants.det_derivative,
):
    of_matrices(_op, _same_square)
for _op in (eigen_svd.eigh, eigen_svd.eig):
    of_matrices(_op, _eigen)


@factorizations.cholesky_cotangent.spec
def _(low: Spec, t: Spec) -> Any:  # not run, since that would load SciPy's linear algebra
    dtype = np.result_type(low.dtype, t.dtype, np.float32)
    return Spec(_same_square(low.shape, t.shape), dtype)


of_matrices(determinants.det, _batch_shape)
of_matrices(determinants.slogdet, lambda a: [_batch_shape(a)] * 2)
of_matrices(linear_solve.pinv, lambda a, **_: (*a[:-2], a[-1], a[-2]))
of_matrices(linear_solve.matrix_rank, lambda a, **_: a[:-2])
of_matrices(factorizations.qr, _qr)
of_matrices(eigen_svd.svd, _svd)
