"""Contractions: products summed over shared axes; matmul, dot, tensordot, outer, einsum.

An operation defines its *subscripts*: one string for each operand and one for the result,
as in einsum.  All derivatives follow by permuting them: the cotangent of an operand is the
contraction of the cotangent of the result with the other operands, to the subscripts of that
operand.

    Contraction   the kind: both modes of derivative
    contract      the value of any contraction of plain arrays (kinds/contraction_lowering.py)

An axis of length one is broadcast.  No operand may repeat a subscript: numpy/matmul_einsum.py takes
diagonals and traces before it contracts.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.dispatch import Operation
from wengert._engine.core.handle import is_traced, shape_of, value_of
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, lookup, register
from wengert._engine.core.spec import Spec, example_of, spec_of
from wengert._engine.core.symbolic.dim import is_symbolic, spelled

from .batching import contracted
from .contraction_lowering import Shape, Subscripts, contract, planned

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


class Contraction(Operation):
    """A multilinear operation given by subscripts; made by the decorator `contraction`."""

    kind = "contraction"
    promotes = multilinear = True
    has_strong_zeros = False  # whether zeros of the first operand times infinity or NaN are zero

    def __init__(
        self,
        run: Callable[..., Any],
        subscripts: Callable[..., Subscripts],
        *,
        ufunc: Any = None,
        oracle: Any = None,
        strict: bool = False,
    ) -> None:
        super().__init__(run.__name__, inspect.getdoc(run))
        self.run = run if ufunc is None else ufunc
        self.ufunc = ufunc
        self.subscripts = functools.lru_cache(maxsize=1024)(subscripts)
        self.oracle = oracle
        self.strict = strict
        self._routes = functools.lru_cache(maxsize=4096)(self._find_routes)

    def _find_routes(self, shapes: tuple[Shape, ...], **params: Any) -> list[CotangentContraction]:
        subscripts = self.subscripts(*map(len, shapes), **params)
        return [route(subscripts, shapes, i) for i in range(len(shapes))]

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Spec:
        """The lengths of the subscripts, and the dtype of NumPy's result for one element."""
        *words, result = self.subscripts(*[s.ndim for s in specs], **params)
        lengths: dict[str, Any] = {}
        for word, spec in zip(words, specs, strict=True):
            for letter, n in zip(word, spec.shape, strict=True):
                known = lengths.get(letter, n)
                stretched = n == 1 or known == 1
                if known != n and not (stretched and (letter in result or not self.strict)):
                    raise ValueError(
                        f"shapes {' and '.join(spelled(s.shape) for s in specs)} do not fit: an "
                        f"axis that is summed or shared has length {known} in one and {n} in "
                        "another"
                    )
                lengths[letter] = n if known == 1 else known
        examples = [example_of(Spec((1,) * s.ndim, s.dtype, s.weak)) for s in specs]
        dtype = spec_of(self.run(*examples, **params)).dtype
        return Spec(tuple(lengths[c] for c in result), dtype)

    def batched_as_kind(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """The same contraction with one more subscript."""
        return contracted(self, args, batched, **params)

    def vjp(self, node: Node, t: Array, out: Array, inputs: Sequence[Any], ctx: RuleContext) -> Any:
        """Contract the cotangent with the other operands."""
        try:
            shapes = tuple([x.shape for x in inputs])
        except AttributeError:  # a Python number among them
            inputs = [x if hasattr(x, "shape") else np.asarray(x) for x in inputs]
            shapes = tuple([x.shape for x in inputs])
        routes = self._routes(shapes, **node.params)
        if t.dtype.kind == "c":
            inputs = [np.conjugate(x) for x in inputs]
        wanted = ctx.wanted
        bars: list[Any] = []
        for i, a in enumerate(node.args):
            subscripts, lengths, shape, run = routes[i]
            if type(a) is not Node or (wanted is not None and a not in wanted):
                bars.append(None)
                continue
            others = (*inputs[:i], *inputs[i + 1 :])
            is_masked = i > 0 and self.has_strong_zeros and not ctx.wants(node.args[0])
            if is_masked:  # what a mask, the first operand, removes has no derivative either
                bar = _masked(t, others, subscripts, ctx)
            elif ctx.recorded or run is None:
                bar = lookup("einsum")(t, *others, subscripts=subscripts)
            else:
                bar = run(t, *others)
            if ctx.guarded and not is_masked:
                bar = _with_strong_zeros(bar, t, i, node, inputs, subscripts, ctx)
            if lengths is not None:
                bar = bar.reshape(lengths)
            if shape is not None:
                bar = lookup("broadcast_to")(bar, shape=shape)
            bars.append(bar)
        return bars

    def jvp(
        self, node: Node, dots: Sequence[Any], out: Array, inputs: list[Array], ctx: RuleContext
    ) -> Any:
        """One term for each operand that has a tangent."""
        total = None
        for i, dot in enumerate(dots):
            if dot is None:
                continue
            operands = [*inputs[:i], dot, *inputs[i + 1 :]]
            subscripts = self.subscripts(*[len(shape_of(x)) for x in inputs], **node.params)
            path = (subscripts[i], *subscripts[:i], *subscripts[i + 1 :])
            if ctx.guarded and i and self.has_strong_zeros and dots[0] is None:
                term = _masked(dot, [*inputs[:i], *inputs[i + 1 :]], path, ctx)
            else:
                term = self(*operands, **node.params)
                if ctx.guarded:
                    term = _with_strong_zeros(term, dot, i, node, inputs, path, ctx)
            total = term if total is None else total + term
        return total


def _masked(t: Array, others: Sequence[Any], subscripts: Subscripts, ctx: RuleContext) -> Any:
    """The contraction of `t` and other operands, of which the first is a mask."""
    first, mask, *rest = subscripts
    name = "masked_einsum" if ctx.guarded else "strong_einsum"
    return lookup(name)(others[0], t, *others[1:], subscripts=(mask, first, *rest))


def _with_strong_zeros(
    bar: Array,
    t: Array,
    i: int,
    node: Node,
    inputs: Sequence[Any],
    subscripts: Subscripts,
    ctx: RuleContext,
) -> Any:
    """`bar`, the contraction of `t` with all operands but the i-th, with strong zeros.

    The zeros of `t` are strong, and so are those of (co)tangents of an earlier derivative.
    """
    others = [*inputs[:i], *inputs[i + 1 :]]
    also = [j - (j > i) for j in ctx.linear_operands(node) if j != i]
    if not also or not is_traced(bar):
        return strong_contract(bar, t, others, subscripts, also)
    k = also[0]
    first, *words, result = subscripts
    swapped = (words[k], first, *words[:k], *words[k + 1 :], result)
    swapped_others = [t, *others[:k], *others[k + 1 :]]
    zeros_of_other = strong_contract(bar, others[k], swapped_others, swapped)
    masked = ctx.masked or ()
    if len(others) == 1:  # infinite only where a derivative that is taken is infinite
        return zeros_of_other
    if node not in masked and node.args[i] not in masked:
        return zeros_of_other
    zeros_of_t = strong_contract(bar, t, others, subscripts)
    return lookup("where")(np.isnan(value_of(zeros_of_t)), zeros_of_other, zeros_of_t)


class CotangentContraction(NamedTuple):
    """The contraction of (t, *other operands) that gives the cotangent of an operand.

    subscripts : those along which the operand has length one and others are longer are summed,
        which is the adjoint of broadcasting.
    lengths : the shape of the result, with length one for missing subscripts; None if none is.
    shape : the shape to broadcast that to, if no other operand has some subscript; or None.
    run : the contraction of plain arrays; None if lengths are symbolic.
    """

    subscripts: Subscripts
    lengths: Shape | None
    shape: Shape | None
    run: Callable[..., Any] | None


def route(subscripts: Subscripts, shapes: tuple[Shape, ...], i: int) -> CotangentContraction:
    """The contraction that gives the cotangent of operand `i`."""
    *ins, result = subscripts
    sizes: dict[str, int] = {}  # lengths of the labels in t and the other operands
    for k, (word, axes) in enumerate(zip(ins, shapes, strict=True)):
        for c, n in zip(word, axes, strict=True):
            if (k != i or c in result) and sizes.get(c, 1) == 1:
                sizes[c] = n
    labels, shape = ins[i], shapes[i]
    target = "".join(c for c, n in zip(labels, shape, strict=True) if sizes.get(c) == n)
    lengths = tuple(n if c in target else 1 for c, n in zip(labels, shape, strict=True))
    path = (result, *[w for k, w in enumerate(ins) if k != i], target)
    t_shape = tuple(sizes[c] for c in result)
    is_unknown = any(map(is_symbolic, shapes))
    return CotangentContraction(
        path,
        None if target == labels else lengths,
        None if lengths == shape else shape,
        None if is_unknown else planned(path, (t_shape, *shapes[:i], *shapes[i + 1 :])),
    )


def strong_contract(
    bar: Array, t: Array, others: Sequence[Any], subscripts: Subscripts, also: Sequence[int] = ()
) -> Any:
    """`bar` with 0 * inf and 0 * nan replaced by 0, where the 0 is in `t`.

    If values are known, the zeros of the operands at the indices `also` are strong too.
    """
    if is_traced(bar):
        return lookup("strong_einsum")(t, *others, subscripts=subscripts)
    finite = [np.isfinite(value_of(x)) for x in (t, *others)]
    if not also:
        finite[0] = np.ones(np.shape(finite[0]), bool)  # an infinite cotangent stays
    if all(f.all() for f in finite):
        return bar
    where: Any = lookup("where")
    pairs = zip((t, *others), finite, strict=True)
    safe = [x if f.all() else where(f, x, 0.0) for x, f in pairs]
    clean = lookup("einsum")(*safe, subscripts=subscripts)
    # Count, for each element of the result, the products without a strong zero, and those of them
    # whose factors are finite: if all are, the result without infinities is right.
    nonzero = [np.ones(np.shape(f)) for f in finite]
    for k in (0, *[k + 1 for k in also]):
        nonzero[k] = np.asarray(value_of((t, *others)[k]) != 0, float)
    count = contract(*nonzero, subscripts=subscripts)
    finite_count = contract(
        *[x * f for x, f in zip(nonzero, finite, strict=True)], subscripts=subscripts
    )
    return where(count == finite_count, clean, bar)


def contraction(
    subscripts: Callable[..., Subscripts], **options: Any
) -> Callable[[Callable[..., Any]], Contraction]:
    """Register the decorated function as a contraction.

    Parameters
    ----------
    subscripts : callable
        ``subscripts(*ndims, **params)`` returns one string of subscripts for each operand and
        one for the result.
    ufunc : numpy.ufunc, optional
        The ufunc of NumPy, if there is one; it computes the value.
    strict : bool
        Whether a summed axis must have the same length in all operands: length 1 is not broadcast.
    """
    return lambda run: register(Contraction(run, subscripts, **options))
