"""Opaque operations, with explicit rules.

The author defines run, and `vjp` or `jvp` or both, each for all operands together:

    vjp(t, out, *operands, **params) -> tuple of cotangents, one for each operand
    jvp(dots, out, *operands, **params) -> tangent; dots has None where an operand has none

A missing mode is derived by the engine: a jvp is the transpose of the vjp and vice versa
(autodiff/forward.py, autodiff/reverse.py).  Linear algebra and user-defined operations of all five
styles (wengert.extend) are of this kind; the results of user-defined rules are checked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from wengert._engine.core.dispatch import Operation
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, register
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import broadcast
from wengert.errors import ConversionError, RuleError, at

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand


class Opaque(Operation):
    """An operation with explicit rules; made by the decorator `opaque`."""

    kind = "opaque"
    notes_where = True

    def __init__(
        self,
        run: Callable[..., Any],
        *,
        name: str | None = None,
        vjp: Callable[..., Any] | None = None,
        jvp: Callable[..., Any] | None = None,
        discrete: bool = False,
        oracle: Any = None,
        trusted: bool = False,
    ) -> None:
        super().__init__(name or run.__name__, inspect.getdoc(run))
        self.run = run
        self.vjp_rule = vjp
        self.jvp_rule = jvp
        self.discrete = discrete
        self.oracle = oracle
        self.notes_where = not trusted  # for the error if a user's rule fails its checks
        self.trusted = trusted

    @property
    def differentiable(self) -> bool:  # type: ignore[override]
        """Whether at least one rule is known."""
        return self.discrete or self.vjp_rule is not None or self.jvp_rule is not None

    @property
    def has_jvp(self) -> bool:  # type: ignore[override]
        """Whether there is a JVP rule; if not, the engine derives it."""
        return self.jvp_rule is not None

    @property
    def has_vjp(self) -> bool:  # type: ignore[override]
        """Whether there is a VJP rule; if not, the engine derives it."""
        return self.vjp_rule is not None

    def define_vjp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Define the VJP rule (a decorator)."""
        self.vjp_rule = rule
        return rule

    def define_jvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Define the JVP rule (a decorator)."""
        self.jvp_rule = rule
        return rule

    def vjp(
        self,
        node: Node,
        t: Any,
        out: Array | tuple[Array, ...],
        inputs: Sequence[Any],
        ctx: RuleContext,
    ) -> Any:
        """The result of the rule, checked if it is the user's."""
        if self.vjp_rule is None:
            raise self.no_rule(node)
        bars = self.vjp_rule(t, out, *inputs, **node.params)
        return bars if self.trusted else self.checked(node, bars, ctx)

    def jvp(
        self,
        node: Node,
        dots: Sequence[Any],
        out: Array | tuple[Array, ...],
        inputs: list[Operand],
        ctx: RuleContext,
    ) -> Any:
        """The result of the rule."""
        if self.jvp_rule is None:
            raise self.no_rule(node)
        return self.jvp_rule(dots, out, *inputs, **node.params)

    def checked(self, node: Node, bars: Sequence[Any], ctx: RuleContext) -> list[Any]:
        """The user's cotangents, checked against the operands.

        Raises
        ------
        RuleError
            Their number, a shape or a dtype is wrong.
        ConversionError
            One depends on a recorded tensor that is not an operand.
        """
        if not isinstance(bars, list | tuple):
            bars = (bars,)
        where = at(node.where)
        if len(bars) != len(node.args):
            raise RuleError(
                f"The rule of {self.name} returned {len(bars)} cotangents for {len(node.args)} "
                f"operands. Return a tuple with one for each, or None for zero{where}."
            )
        fitted: list[Any] = []
        for i, (bar, a) in enumerate(zip(bars, node.args, strict=True)):
            if bar is None or type(a) is not Node:
                fitted.append(None)
                continue
            if not hasattr(bar, "dtype"):
                bar = np.asarray(bar)
            spec = a.spec
            if bar.dtype.kind not in "biufc":
                raise RuleError(
                    f"The rule of {self.name} returned dtype {bar.dtype} for operand {i}, which is "
                    f"{spec}. Return an array of numbers{where}."
                )
            if isinstance(spec, Spec) and not fits(bar.shape, spec.shape):
                raise RuleError(
                    f"The rule of {self.name} returned shape {bar.shape} for operand {i}, which "
                    f"has shape {spec.shape}. A cotangent has the shape of its operand{where}."
                )
            if not ctx.recorded and is_from_recorded(bar):
                raise ConversionError(
                    f"The rule of {self.name} computes with a recorded tensor that is not among "
                    "the operands, so the derivative with respect to it would silently be lost. "
                    f"Pass the tensor as an operand{where}."
                )
            fitted.append(bar)
        return fitted


def is_from_recorded(bar: Array) -> bool:
    """Whether a cotangent depends on recorded values, which an unrecorded pass would drop."""
    return isinstance(bar, Handle) and (type(bar.node) is Node or bar.node.is_traced)


def fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a cotangent of `shape` can be brought to `target` by undoing a broadcast."""
    if shape == target:
        return True
    try:
        return broadcast(shape, target) == shape
    except ValueError:
        return False


@overload
def opaque(run: Callable[..., Any], **options: Any) -> Opaque: ...
@overload
def opaque(**options: Any) -> Callable[[Callable[..., Any]], Opaque]: ...
def opaque(run: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Register the decorated function as an operation with explicit rules."""
    if run is None:
        return lambda f: opaque(f, **options)
    replace = options.pop("replace", False)
    return register(Opaque(run, **options), replace)
