"""Reductions: NumPy's reductions in terms of sums, products and extremes.

A mean is a sum and a division, a variance two sums, log-sum-exp a maximum, a sum and a logarithm.
Each part is a separate expression, so that it can be fused with its neighbors.

Softmax and its logarithm, and their gradients.

A maximum, a sum of exponentials, and an expression of both: three passes over a row, which the plan
fuses along the rows, so that each row is read from memory once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.symbolic.constraints import repeated_axes
from wengert._engine.core.types import Scalar, ScalarLanguage
from wengert._engine.kinds.reduction import axes_of, count_along

from ..ir.index_analysis import (
    Affine,
    FlatIndex,
    Index,
    Length,
    counters,
    is_one,
    offset_of,
    strides_of,
)
from ..ir.llvm_types import BOOL, F16, F32, F64, I64, Dtype
from ..tuning import thresholds
from .elementwise import elementwise
from .leaves_and_views import reshaped
from .loop_ir import (
    CallResult,
    Expr,
    IndexValue,
    Map,
    OpaqueCall,
    Reduce,
    Stored,
    View,
    memory_strides,
    scalar_constant,
)
from .registry import Lowering, lowers

_LAST = int(np.iinfo(np.int64).max)
_MOST_STEPS = 32  # of the computation of an element


class Combined:
    """Makes the expressions of one reduction."""

    def __init__(self, node: Node, x: Expr) -> None:
        self.node, self.x = node, x
        axes = axes_of(node.params.get("axis"), len(x.shape))
        self.axes = tuple(a for a in axes if 0 <= a < len(x.shape))  # a number has none
        self.kept = tuple(1 if k in self.axes else n for k, n in enumerate(x.shape))
        self.count = count_along(x.shape, node.params.get("axis"))

    def reduce(self, monoid: str, x: Expr, dtype: Dtype | None = None) -> Expr:
        """Combine elements along the axes, which are kept with length one."""
        return Expr(Reduce(monoid, self.axes), (x,), self.kept, dtype or x.dtype, self.node)

    def map(
        self,
        name: str,
        combine: Callable[..., Any],
        *xs: Expr,
        weight: int = 1,
        dtype: Dtype | None = None,
    ) -> Expr:
        """An elementwise function of expressions."""
        shape = max((x.shape for x in xs), key=lambda s: sum(not is_one(n) for n in s))
        return Expr(Map(name, combine, weight), xs, shape, dtype or xs[0].dtype, self.node)

    def cast(self, x: Expr, dtype: Dtype) -> Expr:
        """An expression in another dtype."""
        if x.dtype == dtype:
            return x
        return self.map("cast", lambda s, v: s.cast(v, dtype), x, dtype=dtype)

    def number_of(self, n: Length, dtype: Dtype) -> Expr:
        """A length as an expression."""
        if type(n) is int:
            return scalar_constant(n, dtype)
        return Expr(IndexValue(str(n), lambda index: Affine(n, ())), (), (), dtype, self.node)

    def done(self, x: Expr) -> Expr:
        """The result, in the shape and dtype of the node."""
        x = self.cast(x, self.node.spec.dtype)
        return (
            x if x.shape == self.node.spec.shape else reshaped(x, self.node.spec.shape, self.node)
        )


def _wide(dtype: Dtype) -> Dtype:
    return F32 if dtype == F16 else dtype


def _floating(x: Expr) -> Dtype:
    return F64 if x.dtype.kind in "biu" else x.dtype


Rule = Callable[[Combined], Any]


def _reduction(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        @lowers(*names)
        def lower(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
            found = rule(Combined(node, operands[0]))
            return found

        return rule

    return register


@_reduction("sum")
def _sum(c: Combined) -> Any:
    x = c.cast(c.x, _wide(c.node.spec.dtype))
    turned = _by_rows(x, c.axes)
    if turned is None:
        return c.done(c.reduce("sum", x))
    return c.done(Expr(Reduce("sum", (1,)), (turned,), (x.shape[1], 1), x.dtype, c.node))


def _by_rows(x: Expr, axes: Sequence[int]) -> Expr | None:
    """The transpose of a matrix that is summed along its first axis, if its columns are contiguous.

    Sums along rows are computed for some rows together (schedule/slices.py).
    """
    if tuple(axes) != (0,) or len(x.shape) != 2:
        return None
    strides = _strides_of_matrices(x)
    if not strides or any(not is_one(s[0]) or is_one(s[1]) for s in strides):
        return None
    turn = View("transpose", lambda index: (index[1], index[0]))
    return Expr(turn, (x,), x.shape[::-1], x.dtype, x.node)


def _strides_of_matrices(x: Expr) -> list[tuple[Length, Length]]:
    """The strides of the matrices in memory that the elements of a matrix are computed from.

    None of them if it is computed in many steps, some of which will be stored.
    """
    start: Index = counters(x.shape)
    found, pending, seen = [], [(x, start)], {(x, start)}
    while pending:
        one, index = pending.pop()
        for operand, place, _, form in one.reads(index):
            if operand.is_root and place is not None:
                form = offset_of(place, memory_strides(operand))
            elif isinstance(place, FlatIndex) and not operand.is_flat:
                form = place.form  # it will be stored (Schedule), in C order
            if form is not None:
                strides = form.factor(0), form.factor(1)
                if not any(type(s) is int and s == 0 for s in strides):
                    found.append(strides)
            elif place is not None and (operand, place) not in seen:
                seen.add((operand, place))
                pending.append((operand, place))
        if len(seen) > _MOST_STEPS:
            return []
    return found


@lowers("sum_to")
def _sum_to(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    (x,) = operands
    axes = repeated_axes(x.shape, node.spec.shape)
    if not axes:
        return x if x.shape == node.spec.shape else reshaped(x, node.spec.shape, node)
    kept = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    c = functools.partial(Expr, node=node)
    wide = _wide(x.dtype)
    if wide != x.dtype:
        x = c(Map("cast", lambda s, v: s.cast(v, wide)), (x,), x.shape, wide)
    turned = _by_rows(x, axes)
    if turned is not None:
        x, axes, kept = turned, (1,), (x.shape[1], 1)
    out = c(Reduce("sum", axes), (x,), kept, wide)
    if wide != node.spec.dtype:
        out = c(Map("cast", lambda s, v: s.cast(v, node.spec.dtype)), (out,), kept, node.spec.dtype)
    return out if kept == node.spec.shape else reshaped(out, node.spec.shape, node)


@_reduction("prod")
def _prod(c: Combined) -> Any:
    return c.done(c.reduce("prod", c.cast(c.x, _wide(c.node.spec.dtype))))


@_reduction("max", "min")
def _extreme(c: Combined) -> Any:
    if c.x.dtype.kind == "c":
        return NotImplemented
    return c.done(c.reduce(c.node.op.name, c.x))


def _is_light(x: Expr, work: int = 0, depth: int = 0) -> bool:
    """Whether computing each element twice costs less than tracking positions."""
    if isinstance(x.rule, Stored | CallResult | Reduce | OpaqueCall):
        return True  # read, not computed
    work += x.rule.weight
    if work > thresholds.folded_reduction_work or depth > thresholds.folded_reduction_work:
        return False
    return all(_is_light(operand, work, depth + 1) for operand in x.operands)


@_reduction("argmax", "argmin")
def _arg_extreme(c: Combined) -> Any:
    """The extreme first, then its first position: so no iteration depends on a select."""
    if c.x.dtype.kind == "c" or (len(c.axes) > 1 and len(c.axes) < len(c.x.shape)):
        return NotImplemented
    if not _is_light(c.x):
        return c.done(c.reduce(c.node.op.name, c.x, I64))
    best = c.reduce("max" if c.node.op.name == "argmax" else "min", c.x)
    shape = c.x.shape

    def position(index: tuple[Affine, ...]) -> Affine:
        return index[c.axes[0]] if len(c.axes) == 1 else offset_of(index, strides_of(shape))

    def where_best(s: ScalarLanguage, x: Any, best: Scalar, place: Scalar) -> Any:
        found = s.equal(x, best)
        if x.dtype.kind == "f":
            found = s.logical_or(found, s.isnan(x))
        return s.where(found, place, _LAST)

    places = Expr(IndexValue("place", position), (), shape, I64, c.node)
    found = c.map("where best", where_best, c.x, best, places, weight=2, dtype=I64)
    return c.done(c.reduce("min", found))


@_reduction("any", "all")
def _truth(c: Combined) -> Any:
    return c.done(c.reduce("max" if c.node.op.name == "any" else "min", c.cast(c.x, BOOL)))


@_reduction("count_nonzero")
def _count(c: Combined) -> Any:
    return c.done(c.reduce("sum", c.cast(c.cast(c.x, BOOL), I64)))


def _mean_of(c: Combined, dtype: Dtype) -> Expr:
    total = c.reduce("sum", c.cast(c.x, dtype))
    n = c.number_of(c.count, F32 if dtype.itemsize == 4 or dtype.str[1:] == "c8" else F64)
    return c.map("mean", lambda s, v, k: s.binary("divide", v, k), total, n, weight=4)


@_reduction("mean")
def _mean(c: Combined) -> Any:
    return c.done(_mean_of(c, _wide(_floating(c.x))))


def _variance(c: Combined) -> Expr:
    wide = _wide(_floating(c.x))
    x = c.cast(c.x, wide)
    mean = _mean_of(c, wide)
    real = c.node.spec.dtype if c.node.spec.dtype != F16 else F32

    def square(s: Any, v: Any, m: Any) -> Any:
        d = v - m
        return d.real * d.real + d.imag * d.imag if wide.kind == "c" else d * d

    deviations = Expr(Map("deviation", square, 3), (x, mean), x.shape, real, c.node)
    total = c.reduce("sum", deviations, real)
    ddof = c.node.params.get("ddof", 0)
    if type(c.count) is int:  # with no degrees of freedom infinity or NaN, as in NumPy
        left = scalar_constant(max(c.count - ddof, 0), real)
    else:
        left = c.map(
            "freedom", lambda s, k: s.max(k - ddof, 0.0), c.number_of(c.count, F64), dtype=F64
        )
    return c.map("var", lambda s, v, k: s.cast(v / k, real), total, left, weight=4)


@_reduction("var")
def _var(c: Combined) -> Any:
    return c.done(_variance(c))


@_reduction("std")
def _std(c: Combined) -> Any:
    v = _variance(c)
    return c.done(c.map("std", lambda s, x: s.sqrt(x), v, weight=4))


@_reduction("logsumexp")
def _logsumexp(c: Combined) -> Any:
    if c.x.dtype.kind == "c" or (type(c.count) is int and c.count == 0):
        return NotImplemented
    dtype = _wide(_floating(c.x))
    x = c.cast(c.x, dtype)
    top = c.reduce("max", x)

    def exponential(s: Any, v: Any, m: Any) -> Any:
        shift = s.where(s.isfinite(m), m, 0.0)
        return s.where(s.equal(v, m), 0.0, s.exp(v - shift))

    def is_maximum(s: Any, v: Any, m: Any) -> Any:
        return s.where(s.equal(v, m), s.cast(1.0, dtype), 0.0)

    others = Expr(Map("exp", exponential, 22), (x, top), x.shape, dtype, c.node)
    hits = Expr(Map("equal", is_maximum, 2), (x, top), x.shape, dtype, c.node)
    total, count = c.reduce("sum", others), c.reduce("sum", hits)

    def finish(s: Any, m: Any, r: Any, k: Any) -> Any:
        k = s.max(k, 1.0)
        return s.log1p(r / k) + s.log(k) + m

    return c.done(c.map("logsumexp", finish, top, total, count, weight=45))


@_reduction("norm2")
def _norm2(c: Combined) -> Any:
    x = c.x if c.x.dtype.kind in "fc" else c.cast(c.x, c.x.dtype)
    if x.dtype == F16:
        return NotImplemented
    real = c.node.spec.dtype if x.dtype.kind in "fc" else x.dtype

    def square(s: Any, v: Any) -> Any:
        return v.real * v.real + v.imag * v.imag if x.dtype.kind == "c" else v * v

    squares = c.map("square", square, x, dtype=real, weight=2)
    accumulated = real if real.kind == "f" else (I64 if real.kind in "bi" else np.dtype(np.uint64))
    total = c.reduce("sum", c.cast(squares, accumulated), accumulated)
    return c.done(c.map("sqrt", lambda s, v: s.sqrt(v), total, dtype=c.node.spec.dtype, weight=4))


@_reduction("norm_p")
def _norm_p(c: Combined) -> Any:
    p, dtype = c.node.params["p"], c.node.spec.dtype
    if (
        c.x.dtype.kind not in "fc"
        or dtype == F16
        or isinstance(p, bool)
        or not isinstance(p, int | float)
    ):
        return NotImplemented
    powers = c.map("power", lambda s, v: _powered(s, s.abs(v), p), c.x, dtype=dtype, weight=22)
    total = c.reduce("sum", powers, dtype)
    return c.done(c.map("root", lambda s, v: _powered(s, v, 1 / p), total, weight=22))


def _powered(s: ScalarLanguage, x: Scalar, p: float) -> Any:
    """x**p, computed as NumPy does for special p."""
    if p == 1:
        return x
    if p in (2, 3, 4):
        return x * x if p == 2 else x * x * x if p == 3 else (x * x) * (x * x)
    if p == 0.5:
        return s.sqrt(x)
    return 1.0 / x if p == -1 else s.power(x, float(p))


class _LogSoftmax(Map):
    """The logarithm of a softmax, with the exponentials of which it was computed."""

    def __init__(self, exponentials: Expr, total: Expr) -> None:
        super().__init__("log_softmax", lambda s, v, r: v - r)
        self.exponentials, self.total = exponentials, total


@lowers("exp")
def _exp(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    rule = operands[0].rule
    if not isinstance(rule, _LogSoftmax):
        return elementwise(lowering, node, operands)
    # The exponentials are computed already; their sum is at least one, as the largest is exp(0).
    shape, dtype, total = node.spec.shape, node.spec.dtype, rule.total
    inverse = Expr(Map("inverse", lambda s, t: 1.0 / t, 8), (total,), total.shape, dtype, node)
    product = Map("softmax", lambda s, v, r: v * r)
    return Expr(product, (rule.exponentials, inverse), shape, dtype, node)


def _shifted(
    node: Node, operands: Sequence[Expr], finite: bool = False
) -> tuple[Combined, Expr] | None:
    """The row minus its maximum, in the dtype of the computation.

    With `finite`, an infinite maximum is not subtracted: finite elements keep their values.
    """
    dtype = node.spec.dtype
    if dtype.kind != "f":
        return None
    c = Combined(node, operands[0])
    x = c.cast(c.x, F32 if dtype == F16 else dtype)
    top = c.reduce("max", x)
    if finite:
        top = c.map("finite", lambda s, m: s.where(s.isfinite(m), m, 0.0), top)
    return c, c.map("shifted", lambda s, v, m: v - m, x, top)


@lowers("log_softmax")
def _log_softmax(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    found = _shifted(node, operands, finite=True)
    if found is None:
        return NotImplemented
    c, x = found
    e = c.map("exp", lambda s, v: s.exp(v), x, weight=22)
    total = c.reduce("sum", e)
    rest = c.map("log", lambda s, v: s.log(v), total, weight=22)
    return c.done(Expr(_LogSoftmax(e, total), (x, rest), x.shape, x.dtype, node))


@lowers("softmax")
def _softmax(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    found = _shifted(node, operands)
    if found is None:
        return NotImplemented
    c, x = found
    e = c.map("exp", lambda s, v: s.exp(v), x, weight=22)
    return c.done(c.map("softmax", lambda s, v, t: v / t, e, c.reduce("sum", e), weight=4))
