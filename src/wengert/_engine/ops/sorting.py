"""Sorting and counting: gathers along an axis, sort orders, bins; convolution of sequences.

Sorting is a gather at integer positions, which have no derivative.  Differentiating sort,
partition, median and quantile therefore needs only `gather_along` and its transpose
`scatter_along`; `IntegerResult` operations compute the positions.

    gather_along    x at an array of positions along one axis
    scatter_along   zeros, with t added at such positions
    histogram_sums  zeros, with t added at the bins of the elements of another array
    IntegerResult   an operation whose results are integers or booleans
    slide           s_i = sum_k x_{i+k} v_k; and its transpose, `convolve`
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.dispatch import Operation
from wengert._engine.core.handle import shape_of
from wengert._engine.core.op import lookup, register
from wengert._engine.core.op_facts import BY_NUMPY, SELECTS, Differentiation, facts
from wengert._engine.core.symbolic.dim import is_symbolic
from wengert._engine.kinds.batching import along, ndim_of
from wengert._engine.kinds.linear_map import linear
from wengert._engine.kinds.opaque import opaque
from wengert._engine.ops import cost_model

from .indexing.getitem import IndexSlot

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size


@linear(oracle="numpy")
def gather_along(x: Any, positions: Any, *, axis: Any, unique: bool = False) -> Any:
    """numpy.take_along_axis; `unique` promises that no position occurs twice."""
    return np.take_along_axis(x, positions, axis)


@gather_along.transpose
def _gather_back(t: Array, x: Array, positions: Array, *, axis: int, unique: bool = False) -> Any:
    return scatter_along(t, positions, axis=axis, length=x.shape[axis], unique=unique)


def _scatter_oracle(t: Array, positions: Any, *, axis: int, length: int, unique: bool) -> Any:
    one_hot = np.moveaxis(np.eye(length)[positions], -1, 0)  # the one-hot axis first
    return np.stack([np.sum(row * t, axis) for row in one_hot], axis)


@linear(oracle=_scatter_oracle)
def scatter_along(t: Any, positions: Any, *, axis: Any, length: int, unique: bool = False) -> Any:
    """Zeros of length `length` along an axis, with t added at the positions."""
    t = np.asarray(t)
    axis = axis % t.ndim
    z = np.zeros([length if k == axis else n for k, n in enumerate(t.shape)], t.dtype)
    if unique:
        np.put_along_axis(z, positions, t, axis)
        return z
    grid = np.ogrid[tuple(slice(n) for n in positions.shape)]
    np.add.at(z, tuple(positions if k == axis else g for k, g in enumerate(grid)), t)
    return z


@scatter_along.transpose
def _scatter_back(
    t: Array, x: Array, positions: Array, *, axis: int, length: int, unique: bool = False
) -> Any:
    return gather_along(t, positions, axis=axis, unique=unique)


def _histogram_oracle(weights: Array, x: Array, edges: Array) -> Any:
    return np.histogram(x, edges, weights=weights)[0]


@linear(oracle=_histogram_oracle)
def histogram_sums(weights: Any, x: Any, edges: Any) -> Any:
    """The sum of the weights of the elements of x in each bin; the last one has both its edges."""
    if np.any(edges[:-1] > edges[1:]):
        raise ValueError("`bins` must increase monotonically, when an array")
    total = np.zeros(len(edges) - 1, np.asarray(weights).dtype)
    if total.size:
        inside, which = _bins_of(x, edges)
        np.add.at(total, which[inside], weights[inside])
    return total


@histogram_sums.transpose
def _histogram_back(t: Array, weights: Array, x: Array, edges: Array) -> Any:
    if t.shape == (0,):
        return np.zeros(x.shape, t.dtype)
    inside, which = _bins_of(x, edges)
    return np.where(inside, t[which], np.zeros((), t.dtype))


def _bins_of(x: Any, edges: Any) -> tuple[Any, Any]:
    """Whether elements are between the edges, and the bins of those that are."""
    which = np.searchsorted(edges, x, side="right") - 1
    return (x >= edges[0]) & (x <= edges[-1]), np.clip(which, 0, edges.shape[0] - 2)


for _op in (gather_along, scatter_along):
    along(_op)


for _op in (gather_along, scatter_along, histogram_sums):
    _op.differentiation = Differentiation(masks=True)


@gather_along.examples
def _(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(2, 4))
    yield (x, np.argsort(x, 1)), {"axis": 1, "unique": True}
    yield (x[:, :3], np.array([[0, 1, 1], [1, 0, 0]])), {"axis": 0}


@scatter_along.examples
def _(rng: np.random.Generator) -> Any:
    t = rng.normal(size=(2, 3))
    yield (t, np.array([[0, 1, 3], [2, 0, 1]])), {"axis": 1, "length": 4, "unique": True}
    yield (t, np.array([[0, 1, 1], [1, 0, 0]])), {"axis": 0, "length": 2, "unique": False}


@histogram_sums.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=9), rng.normal(size=9), np.linspace(-1, 1, 4)), {}
    yield (rng.normal(size=5), rng.normal(size=5), np.array([-1.0, 0.0, 0.25])), {}


# ---- integers -----------------------------------------------------------------------------


class IntegerResult(Operation):
    """An operation whose results are integers or booleans: its derivative is zero."""

    kind = "indexing"
    discrete = True
    oracle = "numpy"

    def __init__(self, run: Callable[..., Any]) -> None:
        super().__init__(run.__name__, inspect.getdoc(run))
        self.run = run


def integer_result(run: Callable[..., Any]) -> IntegerResult:
    """Register a function as an operation with integer or boolean results (a decorator)."""
    return register(IntegerResult(run))


@integer_result
def argsort(x: Array, *, axis: int = -1, kind: Any = None) -> Any:
    """The positions that sort x."""
    return np.argsort(x, axis=axis, kind=kind)


@facts(host_callback=BY_NUMPY)
@integer_result
def argpartition(x: Array, *, kth: int, axis: int = -1) -> Any:
    """The positions that partition x around its kth smallest element."""
    return np.argpartition(x, kth, axis=axis)


@integer_result
def lexsort(*keys: Any, axis: int = -1) -> Any:
    """The positions that sort by the last key, then by the second to last, ..."""
    return np.lexsort(keys, axis=axis)


@integer_result
def nonzero(x: Array) -> Any:
    """The positions of nonzero elements, one array for each axis."""
    return np.nonzero(x)


@integer_result
def searchsorted(x: Any, v: Any, sorter: Any = None, *, side: Any = "left") -> Any:
    """The positions in the sorted x where elements of v would be inserted to keep it sorted."""
    return np.searchsorted(x, v, side, sorter)


@integer_result
def digitize(x: Array, bins: Array, *, right: bool = False) -> Any:
    """The index of the bin of each element."""
    return np.digitize(x, bins, right)


@integer_result
def bincount(x: Array, *, minlength: int = 0) -> Any:
    """The number of occurrences of each integer."""
    return np.bincount(x, minlength=minlength)


@integer_result
def histogram_counts(x: Array, edges: Array) -> Any:
    """The number of elements in each bin."""
    return np.histogram(x, edges)[0]


@integer_result
def unique_positions(x: Array, *, axis: int | None = None, equal_nan: bool = True) -> Any:
    """The first position, the inverse and the counts of the distinct elements."""
    return np.unique(x, True, True, True, axis, equal_nan=equal_nan)[1:]


for _sort in (argsort, argpartition, lexsort):
    along(_sort)


@searchsorted.batch
def _searchsorted_batch(
    args: list[Array], batched: list[bool], size: int, *, side: str = "left"
) -> Any:
    x, v, *sorter = args
    if batched[0] or any(batched[2:]):
        return NotImplemented  # a different sequence for each batch element: one by one
    return searchsorted(x, v, *sorter, side=side)


@digitize.batch
def _digitize_batch(args: Any, batched: Any, size: Size, *, right: Any = False) -> Any:
    return NotImplemented if batched[1] else digitize(*args, right=right)


@argsort.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 4)),), {"axis": 0}


@argpartition.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 4)),), {"kth": 1}


@lexsort.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=4), rng.normal(size=4)), {}


@nonzero.examples
def _(rng: np.random.Generator) -> Any:
    yield (np.ones((2, 2)),), {}


@searchsorted.examples
def _(rng: np.random.Generator) -> Any:
    yield (np.sort(rng.normal(size=4)), rng.normal(size=3)), {"side": "right"}


@digitize.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=4), np.sort(rng.normal(size=3))), {}


@bincount.examples
def _(rng: np.random.Generator) -> Any:
    yield (np.array([0, 1, 1]),), {"minlength": 4}


@histogram_counts.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=9), np.linspace(-1, 1, 4)), {}


@unique_positions.examples
def _(rng: np.random.Generator) -> Any:
    yield (np.array([1.0]),), {}


# ---- products of sequences ---------------------------------------------------------------------


@facts(flops=cost_model.nothing, zero_slope=SELECTS)
@opaque(trusted=True, oracle=lambda x, v: np.lib.stride_tricks.sliding_window_view(x, len(v)) @ v)
def slide(x: Array, v: Array) -> Any:
    """s_i = sum_k x_{i+k} v_k for all i where v fits, without conjugation; v not longer than x."""
    return np.correlate(x, _conj(v), "valid")  # NumPy conjugates v


def _convolve_oracle(x: Any, v: Any) -> Any:
    out = np.zeros(len(x) + len(v) - 1, np.result_type(x, v))
    for k, factor in enumerate(v):
        out[k : k + len(x)] += factor * x
    return out


@facts(flops=cost_model.full_convolution)
@opaque(trusted=True, oracle=_convolve_oracle)
def convolve(x: Array, v: Array) -> Any:
    """c_i = sum_k x_{i-k} v_k for all i where x and v overlap."""
    return np.convolve(x, v)


def _conj(x: Array) -> Any:
    return x.conj() if x.dtype.kind == "c" else x  # conj would convert booleans to integers


def _bilinear_jvp(op: Any) -> Any:
    def jvp(dots: list[Array | None], out: Array, x: Array, v: Array) -> Any:
        x_dot, v_dot = dots
        from_x = None if x_dot is None else op(x_dot, v)
        from_v = None if v_dot is None else op(x, v_dot)
        return from_v if from_x is None else from_x if from_v is None else from_x + from_v

    return jvp


@slide.define_vjp
def _slide_vjp(t: Array, out: Array, x: Array, v: Array) -> Any:
    return convolve(t, _conj(v)), slide(_conj(x), t)


@convolve.define_vjp
def _convolve_vjp(t: Array, out: Array, x: Array, v: Array) -> Any:
    return slide(t, _conj(v)), slide(t, _conj(x))


slide.define_jvp(_bilinear_jvp(slide))
convolve.define_jvp(_bilinear_jvp(convolve))


WINDOWS = 1 << 16  # elements of all windows of one sequence; above, one sequence at a time


@slide.batch
def _slide_batch(args: Sequence[Array], batched: list[bool], size: Size) -> Any:
    x, v = args
    n, k = shape_of(x)[-1], shape_of(v)[-1]
    if is_symbolic((n, k)) or n * k > WINDOWS:
        return NotImplemented
    indices = np.arange(n - k + 1)[:, None] + np.arange(k)
    windows = lookup("getitem")(x, indices, index=(Ellipsis, IndexSlot(0)))
    operand_subscripts = [("a" if b else "") + w for b, w in zip(batched, ("sk", "k"), strict=True)]
    return lookup("einsum")(windows, v, subscripts=(*operand_subscripts, "as"))


@convolve.batch
def _convolve_batch(args: list[Array], batched: list[bool], size: Size) -> Any:
    x, v = args
    if is_symbolic((shape_of(x)[-1], shape_of(v)[-1])):
        return NotImplemented
    if shape_of(x)[-1] < shape_of(v)[-1]:
        x, v, batched = v, x, batched[::-1]
    *lead, n = shape_of(x)
    k = shape_of(v)[-1]
    interior = (Ellipsis, slice(k - 1, k - 1 + n))
    padded = lookup("scatter")(x, index=interior, shape=(*lead, n + 2 * k - 2))
    flipped = lookup("flip")(v, axis=ndim_of(v) - 1)
    return _slide_batch([padded, flipped], batched, size)


@slide.examples
@convolve.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=5), rng.normal(size=2)), {}
    yield (rng.normal(size=3), rng.normal(size=3)), {}
    x, v = rng.normal(size=(2, 4)) + 1j * rng.normal(size=(2, 4))
    yield (x, v[:2]), {}
