"""Common parts of the five styles of writing operations, and operands that are not arrays.

    UserOperation    an opaque operation around user code: results are checked, exceptions
                     explained, interrupts propagated
    accumulate       the engine's backward pass (_engine/autodiff/reverse.py) over any list of
                     steps, whose values may be of any type that has `+`: numbers, arrays, nodes
    fitted           a contribution converted to the shape and dtype of its value
    pull             contributions of any differentiable function, for rules that call one
    separated        numeric operands; parameters that include the other operands
    joined           all operands, and the parameters of the user's function
    of_numbers       the cotangents of numeric operands, from those of all operands

A style states contributions and never accumulates them.  `accumulate` makes one node for each
step and calls `pullback`, which visits each step once, with its complete cotangent.

Eager nodes accept any operand.  In a graph an operand has a shape and a dtype, so others are stored
as parameters of the node, and restored when the function or its rule is called.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

from wengert._engine.autodiff.infinities import project
from wengert._engine.autodiff.jvp_vjp import vjp as vjp_of
from wengert._engine.autodiff.reverse import pullback
from wengert._engine.core.dispatch import apply
from wengert._engine.core.handle import Handle, describe, is_traced, shape_of, value_of, wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import Op, RuleContext, lookup
from wengert._engine.core.replaced_errors import mark
from wengert._engine.core.spec import is_inexact, spec_of
from wengert._engine.kinds.opaque import Opaque, fits
from wengert.errors import (
    ConversionError,
    DtypeError,
    NotDifferentiableError,
    NotScalarError,
    RuleError,
    WengertError,
    at,
    rule_failed,
    user_line,
)

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()


def is_written_out(cls: type, values: Sequence[Any]) -> bool:
    """Whether an operator of the library is traced as NumPy functions.

    This is the case if its class is marked as ``elementary``: its value is a NumPy function of its
    operands. Then the graph can be saved, simplified and batched. Subclasses have their own rules,
    and do not inherit the mark.
    """
    return "elementary" in cls.__dict__ and any(map(is_traced, values))


class UserOperation(Opaque):
    """An opaque operation whose value and rules are user code.

    Parameters
    ----------
    function : callable
        Computes the value from plain values. Called directly when no operand is a tensor.
    name : str
        The name in messages and the registry.
    backward_name : str, optional
        The value of `grad_fn_name`; by default ``NameBackward``.
    vjp, jvp, discrete, oracle
        As for `wengert.extend.opaque`.
    """

    def __init__(
        self, function: Callable[..., Any], name: str, backward_name: str = "", **options: Any
    ) -> None:
        super().__init__(function, name=name, **options)
        self.function = function
        self.run = self._run
        self.backward_name = backward_name or backward_name_of(name)

    def __call__(self, *args: Any, **params: Any) -> Any:
        """The function itself on plain values; dispatched if an operand is a tensor."""
        for a in args:
            if isinstance(a, Handle):
                return apply(self, args, params)
        return self.function(*args, **params)

    def _run(self, *values: Any, **params: Any) -> Any:
        """The value as stored in a node: an array, a NumPy number, or a tuple of these."""
        try:
            value = self.function(*values, **params)
        except WengertError:
            raise
        except Exception as error:
            mark(error)
            raise
        if type(value) is tuple:
            return tuple(self._plain(v) for v in value)
        return self._plain(value)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Handle):
            if type(value.node) is Node:
                raise ConversionError(
                    f"{self.name} computes with a recorded tensor that is not among its operands, "
                    "so its derivative with respect to it would be lost silently. Pass the tensor "
                    f"as an operand{at(user_line())}."
                )
            value = value.node.value
        if isinstance(value, bool | int | float | complex):
            value = np.asarray(value)[()]
        if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "biufc":
            kind = getattr(value, "dtype", None) or type(value).__name__
            raise DtypeError(
                f"{self.name} returned a value of {kind}, which no tensor can hold. Return an "
                f"array or a number, or a tuple of these{at(user_line())}."
            )
        return value

    def vjp(self, node: Node, t: Any, out: Any, inputs: Sequence[Any], ctx: RuleContext) -> Any:
        """What the author's rule returns, checked."""
        self._refuse_integers(node)
        bars = self._explained("reverse", super().vjp, node, t, out, inputs, ctx)
        for i, bar in enumerate(bars):
            if bar is None or not ctx.guarded:
                continue
            if is_traced(bar):
                bars[i] = bar if type(t) is tuple else _spared(t, bar)
            elif not np.any(value_of(t)) and np.isnan(value_of(bar)).any():
                bars[i] = np.zeros_like(value_of(bar))  # 0 * inf, see Elementwise
        return bars

    def jvp(self, node: Node, dots: Sequence[Any], out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """What the author's rule returns, checked."""
        self._refuse_integers(node)
        dot = self._explained("forward", super().jvp, node, dots, out, inputs, ctx)
        spec = node.spec
        if type(spec) is tuple or dot is None:
            return dot
        shape, given = spec.shape, shape_of(dot)
        if given != shape and not fits(shape, given):
            raise RuleError(
                f"The forward rule of {self.name} returned shape {given} for a value of shape "
                f"{shape}. A tangent has the shape of the value{at(node.where)}."
            )
        return dot

    def checked(self, node: Node, bars: Any, ctx: RuleContext) -> list[Any]:
        """As for all opaque operations; in addition no operand may be missing."""
        if isinstance(bars, list | tuple) and len(bars) == len(node.args):
            for i, (bar, a) in enumerate(zip(bars, node.args, strict=True)):
                if bar is MISSING and type(a) is Node:
                    raise forgotten(self.name, i, node.where)
            bars = [None if bar is MISSING else bar for bar in bars]
        return super().checked(node, bars, ctx)

    def _refuse_integers(self, node: Node) -> None:
        spec = node.spec
        if type(spec) is not tuple and spec.dtype.kind not in "fc":
            raise NotDifferentiableError(
                f"{self.name} returned {spec}, and integers have no derivative. "
                "Compute in floating point, or register it with discrete=True if its derivative "
                f"is known to be zero{at(node.where)}."
            )

    def _explained(self, mode: str, rule: Callable[..., Any], node: Node, *args: Any) -> Any:
        try:
            return rule(node, *args)
        except WengertError:
            raise
        except Exception as error:
            raise rule_failed(f"The {mode} rule of {self.name}", error, node.where) from error


def _spared(t: Any, bar: Any) -> Any:
    """In a graph: `bar` with NaN replaced by 0 if all of `t` is zero; see Elementwise."""
    nothing = lookup("logical_not")(lookup("any")(lookup("not_equal")(t, 0)))
    return lookup("where")(lookup("logical_and")(nothing, lookup("isnan")(bar)), 0.0, bar)


def backward_name_of(name: str) -> str:
    """``PowBackward`` for an operation named ``module.pow``."""
    words = name.rpartition(".")[2].split("_")
    return "".join(w[:1].upper() + w[1:] for w in words) + "Backward"


def name_in_module(thing: Any) -> str:
    """``module.qualified.name`` of a function or class, which is stable across sessions."""
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", type(thing).__name__)
    module = getattr(thing, "__module__", None) or type(thing).__module__
    return f"{module}.{name}".replace("<locals>.", "")


def forgotten(name: str, operand: int, where: str | None) -> RuleError:
    """The error for a rule without an entry for an operand."""
    return RuleError(
        f"The rule of {name} wrote nothing for operand {operand}, which takes part in the "
        "derivative. Write its contribution, or None if there is none: an omission would be a "
        f"silent zero{at(where)}."
    )


# ---- values of any type, and the engine's pass over them ----------------------------------------


class OpaqueValue:
    """A value of any type in the engine: opaque except for `+`."""

    __slots__ = ("value",)
    shape = ()
    dtype = None

    def __init__(self, value: Any) -> None:
        self.value = value

    def __add__(self, other: OpaqueValue) -> OpaqueValue:
        try:
            return OpaqueValue(self.value + other.value)
        except WengertError:
            raise
        except Exception as error:
            a, b = type(self.value).__name__, type(other.value).__name__
            raise RuleError(
                f"Two contributions to one gradient cannot be added: {a} + {b} raised "
                f"{type(error).__name__}: {error}. Contributions to a value must be of one type "
                "that has `+`."
            ) from error


Contribution = tuple[Hashable, Any]  # key of an operand, contribution to its gradient
_SPACE = OpaqueValue(None)


class _Step(Op):
    """The operation of the nodes that `accumulate` creates."""

    def __init__(self, contributions: Callable[..., Iterable[Contribution]]) -> None:
        super().__init__("step")
        self.contributions = contributions

    def vjp(self, node: Node, t: Any, out: Any, inputs: Sequence[Any], ctx: RuleContext) -> Any:
        """Contributions of the step, one sum for each operand."""
        keys = [a.params["key"] for a in node.args]
        wanted = [k for k, a in zip(keys, node.args, strict=True) if ctx.wants(a)]
        given: dict[Any, Any] = {}
        for key, contribution in self.contributions(node.params["key"], t.value, wanted):
            carried = OpaqueValue(contribution)
            given[key] = given[key] + carried if key in given else carried
        return [given.get(k) for k in keys]


def accumulate(
    steps: Iterable[tuple[Hashable, Sequence[Hashable]]],
    output: Hashable,
    seed: Any,
    targets: Sequence[Hashable],
    contributions: Callable[[Any, Any, list[Any]], Iterable[Contribution]],
) -> dict[Any, Any]:
    """The gradient of one step with respect to others, accumulated by the engine.

    Parameters
    ----------
    steps : iterable of (key, operand keys)
        The steps in topological order. Operands that are not steps (constants) are not
        differentiated.
    output : key
        The step to differentiate.
    seed : any
        The initial gradient of the output, of any type.
    targets : sequence of keys
        The steps with respect to which it is differentiated.
    contributions : callable
        ``contributions(key, t, wanted)``, called once for each relevant step, with the complete
        gradient `t` of the step and those operands that take part; yields pairs of an operand's
        key and the contribution to its gradient.

    Returns
    -------
    dict
        The complete gradient with respect to each target that the output depends on.
    """
    op = _Step(contributions)
    nodes: dict[Any, Node] = {}
    for key, operands in steps:
        args = tuple(nodes[o] for o in dict.fromkeys(operands) if o in nodes)
        nodes[key] = Node(op, args, {"key": key}, _SPACE)
    chosen = [k for k in targets if k in nodes]
    if output not in nodes or not chosen:
        return {}
    seeds = {nodes[output]: OpaqueValue(seed)}
    bars = pullback(seeds, [nodes[k] for k in chosen], record=False)
    return {k: bar.value for k, bar in zip(chosen, bars, strict=True) if bar is not None}


def total(values: Iterable[Any]) -> Any:
    """The sum of contributions of any type; None if there are none."""
    carried = [OpaqueValue(v) for v in values if v is not None]
    return functools.reduce(operator.add, carried).value if carried else None


def fitted(bar: Any, value: Any, what: str, where: str | None = None) -> Any:
    """A contribution converted to the shape and dtype of its value.

    Arrays and tensors get the value's shape (broadcasting undone) and floating dtype; for a number
    the contribution is summed; values of other types are not checked.

    Raises
    ------
    RuleError
        The contribution does not match the value.
    """
    if isinstance(value, Handle | np.ndarray | np.generic):
        spec = describe(value)
        given = describe(bar)
        if given is None or isinstance(given, tuple) or given.dtype.kind not in "biufc":
            raise _misfit(what, type(bar).__name__ if given is None else given, spec, where)
        if given.shape != spec.shape and not fits(given.shape, spec.shape):
            raise _misfit(what, given, spec, where)
        if spec.dtype.kind not in "fc":  # integers: their shape, but not their dtype
            value = np.broadcast_to(np.zeros((), given.dtype), spec.shape)
        return project(bar, value.node if isinstance(value, Handle) else constant(value))
    if isinstance(value, Number):
        if isinstance(bar, str | bytes | list | tuple | dict | set):
            raise _misfit(what, type(bar).__name__, type(value).__name__, where)
        if shape_of(bar):  # the number was broadcast to an array: sum
            return lookup("sum_to")(bar, shape=())  # type: ignore[operator]
    return bar


def _misfit(what: str, given: Any, wanted: Any, where: str | None) -> RuleError:
    return RuleError(
        f"{what} gave {given} for a value that is {wanted}. A gradient has the shape of its value "
        f"and is numeric{at(where)}."
    )


def one_like(value: Any, what: str) -> Any:
    """The number one of a value's type: the gradient of a value with respect to itself.

    Raises
    ------
    NotScalarError
        The value is not one number.
    """
    if isinstance(value, Handle):
        return wrap(constant(one_like(stand_in(value), what)))
    if isinstance(value, np.ndarray | np.generic) and value.size == 1:
        return np.ones_like(value)[()]
    if isinstance(value, Number) and not isinstance(value, np.generic):
        return type(value)(1)  # type: ignore[call-arg]
    given = spec_of(value) or f"a {type(value).__name__}"
    raise NotScalarError(
        f"{what} is {given}, and only one number has a gradient without a given cotangent. "
        f"Reduce it to one number, or pass a seed of its type{at(user_line())}."
    )


def stand_in(handle: Handle) -> Any:
    """The value of a tensor; while tracing, a placeholder of its dtype and number of axes."""
    if not is_traced(handle):
        return handle.node.value
    spec = handle.node.spec
    return np.zeros([n if isinstance(n, int) else 2 for n in spec.shape], spec.dtype)


def pull(function: Callable[..., Any], operands: Sequence[Any], t: Any) -> list[Any]:
    """Contributions of any differentiable function to its operands, None for integers."""
    slots = [i for i, x in enumerate(operands) if has_derivative(x)]

    def of_chosen(*chosen: Any) -> Any:
        full = list(operands)
        for i, x in zip(slots, chosen, strict=True):
            full[i] = x
        return function(*full)

    _, back = vjp_of(of_chosen, *[operands[i] for i in slots])
    bars: list[Any] = [None] * len(operands)
    for i, bar in zip(slots, back(t), strict=True):
        bars[i] = bar
    return bars


def has_derivative(x: Any) -> bool:
    """Whether `x` is a number or array of floating or complex dtype."""
    spec = describe(x)
    return spec is not None and not isinstance(spec, tuple) and is_inexact(spec.dtype)


def params_key(params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Static parameters as a cache key: equal only for equal types and values."""
    return tuple((k, type(params[k]).__name__, params[k]) for k in sorted(params))


NAME = "static_operands"
_NUMBERS = (Handle, np.ndarray, np.generic, bool, int, float, complex, list, tuple)


def separated(args: Sequence[Any], params: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Numeric operands, and parameters that include the others with their positions."""
    static = tuple([(k, x) for k, x in enumerate(args) if not isinstance(x, _NUMBERS)])
    if not static:
        return list(args), params
    return [x for x in args if isinstance(x, _NUMBERS)], {**params, NAME: static}


def joined(
    args: Sequence[Any], params: dict[str, Any], keep: bool = True
) -> tuple[list[Any], dict[str, Any]]:
    """All operands, and the parameters without them; static operands are None unless `keep`."""
    full = list(args)
    for k, x in params.get(NAME, ()):
        full.insert(k, x if keep else None)
    return full, {k: x for k, x in params.items() if k != NAME}


def of_numbers(found: Any, params: dict[str, Any]) -> Any:
    """The cotangents of numeric operands, from a sequence with one for each operand."""
    static = {k for k, _ in params.get(NAME, ())}
    if not static or not isinstance(found, list | tuple):
        return found
    return tuple([bar for k, bar in enumerate(found) if k not in static])
