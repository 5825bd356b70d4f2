"""Reductions: some axes are combined into one number each.

An operation defines run (NumPy's signature: axis, keepdims) and its *partial*, a linear map
`(t, out, x, axis) -> partial * t`.  In `out` the reduced axes have length one; `t` is a cotangent
of the same shape, or a tangent with the shape of the operand.  Both modes follow: the cotangent of
the operand is the map of the cotangent, broadcast along the reduced axes; the tangent of the result
is the sum of the map of the tangent over these axes.

For complex operands a partial is the complex derivative, as for elementwise operations, and the
cotangent is conj(partial) t.  Where the value is real but the operand complex (a variance, a norm)
the partial is the direction of steepest ascent: the cotangent is partial * t, the tangent the real
part of conj(partial) * dot.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from wengert._engine.core.dispatch import Operation
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, lookup, register
from wengert._engine.core.spec import Spec, example_of, spec_of
from wengert._engine.core.thread_state import call_ignoring_errors

from .batching import reduced
from .elementwise import strong_zero

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

Axis = int | tuple[int, ...] | None
# Elements up to which a copy takes less time than NumPy's broadcast_to: 0.9 and 4 us.
_COPIED = 4096


def axes_of(axis: Axis, ndim: int) -> tuple[int, ...]:
    """The reduced axes, non-negative and in order."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted(a % ndim if ndim else a for a in axes))


def kept_shape(shape: tuple[int, ...], axis: Axis) -> tuple[int, ...]:
    """The shape after a reduction with `keepdims`."""
    axes = axes_of(axis, len(shape))
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def count_along(shape: tuple[Any, ...], axis: Axis) -> Any:
    """The number of elements that are combined into one."""
    n: Any = 1
    for a in axes_of(axis, len(shape)):
        n *= shape[a] if shape else 1
    return n


class Reduction(Operation):
    """A reduction; made by the decorator `reduction`."""

    kind = "reduction"

    def __init__(
        self, run: Callable[..., Any], *, oracle: Any = None, discrete: bool = False
    ) -> None:
        super().__init__(run.__name__, inspect.getdoc(run))
        self.run = run
        self.oracle = oracle
        self.discrete = discrete
        self.differentiable = discrete
        self._partial: Callable[..., Any] | None = None

    def partial(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Define the partial: `rule(t, out, x, axis, **params) -> partial * t` (a decorator)."""
        self._partial = rule
        self.differentiable = True
        return rule

    @property
    def partial_module(self) -> str:
        """The name of the module that defines the partial derivative."""
        return str(getattr(self._partial, "__module__", ""))

    def _options(self, node: Node) -> tuple[Axis, dict[str, Any]]:
        options = {k: v for k, v in node.params.items() if k not in ("axis", "keepdims", "dtype")}
        return node.params.get("axis"), options

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Spec:
        """The shape without the reduced axes, and the dtype of NumPy's result for one element."""
        (spec,) = specs
        shape = spec.shape
        small_shape = tuple(n if type(n) is int and n == 0 else 1 for n in shape)
        # With ddof=1 NumPy warns about the standard deviation of one element.
        options = {k: v for k, v in params.items() if k != "ddof"}
        small = example_of(Spec(small_shape, spec.dtype, spec.weak))
        example = spec_of(call_ignoring_errors(self.run, small, **options))
        axes = axes_of(params.get("axis"), len(shape))
        if params.get("keepdims"):
            return Spec(kept_shape(shape, params.get("axis")), example.dtype)
        return Spec(tuple(n for i, n in enumerate(shape) if i not in axes), example.dtype)

    def batched_as_kind(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """The reduction of each example along the same axes."""
        return reduced(self, args[0], size, **params)

    def vjp(self, node: Node, t: Array, out: Array, inputs: Sequence[Any], ctx: RuleContext) -> Any:
        """The partial derivative times the cotangent, broadcast along the reduced axes."""
        if self._partial is None:
            raise self.no_rule(node)
        x = inputs[0]
        axis, options = self._options(node)
        shape = getattr(x, "shape", ())
        kept = kept_shape(shape, axis)
        if t.shape != kept:
            t, out = t.reshape(kept), out.reshape(kept)
        holomorphic = t.dtype.kind == "c"
        bar = self._partial(t.conj() if holomorphic else t, out, x, axis, **options)
        if ctx.guarded:
            bar = strong_zero(t, bar)
        if holomorphic:
            bar = bar.conj()
        if bar.shape == shape:
            return [bar]
        if type(x) is np.ndarray and x.size <= _COPIED and not isinstance(bar, Handle):
            whole = np.empty(shape, bar.dtype)
            whole[...] = bar
            return [whole]
        return [lookup("broadcast_to")(bar, shape=shape)]

    def jvp(
        self, node: Node, dots: Sequence[Any], out: Array, inputs: list[Array], ctx: RuleContext
    ) -> Any:
        """The sum over the axes of the partial derivative times the tangent."""
        if self._partial is None:
            raise self.no_rule(node)
        x, dot = inputs[0], dots[0]
        axis, options = self._options(node)
        kept = kept_shape(dot.shape, axis)
        to_real = dot.dtype.kind == "c" and out.dtype.kind == "f"
        wide = out.reshape(kept) if out.shape != kept else out
        term = self._partial(dot.conj() if to_real else dot, wide, x, axis, **options)
        if ctx.guarded:
            term = strong_zero(dot, term)
        if to_real:
            term = term.real
        total: Any = lookup("sum")(term, axis=axis, keepdims=True)
        return total.reshape(out.shape) if total.shape != out.shape else total


@overload
def reduction(run: Callable[..., Any], **options: Any) -> Reduction: ...
@overload
def reduction(**options: Any) -> Callable[[Callable[..., Any]], Reduction]: ...
def reduction(run: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Register the decorated function as a reduction.

    Parameters
    ----------
    run : callable
        ``run(x, *, axis=None, keepdims=False, ...)`` on plain values.
    oracle : callable, optional
        An independent implementation, for the tests.
    discrete : bool
        The derivative is zero wherever it exists (argmax, any).
    """
    if run is None:
        return lambda f: reduction(f, **options)
    return register(Reduction(run, **options))
