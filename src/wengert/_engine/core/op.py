"""Op: the base class of operations, and their registry by name.

An operation has five parts; its kind (kinds/) implements most of them for all its operations:

    run(*values, **params)             the value, from plain values
    infer(specs, params)               the spec of the value, from the specs of the operands
    vjp(node, t, out, inputs, ctx)     the cotangents of the operands, from that of the value
    jvp(node, dots, out, inputs, ctx)  the tangent of the value, from those of the operands
    oracle, domain, examples           reference and test values for the laws (wengert.testing)

In `vjp` and `jvp`, `out` and `inputs` are plain values if nothing is recorded, and handles if the
derivative itself is to be differentiated: the rule is the same code in both cases.

The buffers of a derivative pass, as `Op.vjp_into` and `Op.jvp_into` use them.

An operation on a few elements of a large array adds to the cotangent of that array in place: a
separate contribution would be as large as the array, and mostly zeros.  The two protocols are
implemented in `autodiff.eager_passes`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from wengert.errors import NotDifferentiableError, RegistryError, at, user_line

from .lazy_import import load_families
from .node import Node
from .op_facts import (
    NO_OPERANDS,
    NOTHING_KNOWN,
    Aliasing,
    Cost,
    Differentiation,
    Effects,
    InverseProduct,
    Jump,
    Remedy,
)
from .spec import example_of, has_sizes, probed, spec_of
from .types import Array

if TYPE_CHECKING:
    from wengert._engine.core.spec import Spec
    from wengert._engine.core.types import Operand

REGISTRY: dict[str, Op] = {}
AnyOp = TypeVar("AnyOp", bound="Op")


@dataclass(frozen=True, slots=True)
class RuleContext:
    """The state of the pass that calls a rule.

    wanted : the nodes that take part, or None if all nodes do.
    recorded : whether values are handles, and the derivative is being recorded.
    guarded : whether zeros are strong: a zero cotangent stays zero, also times infinity
        (docs/conventions.md, "a branch not taken"). A pass whose result is NaN is repeated so.
    linear : for nodes of derivatives with values, which operands are tangents or cotangents; see
        `linear_operands`.
    overflowed : whether a node has overflowed, so that a slope of 0 may be 1 / inf
        (autodiff/infinities.py).
    masked : in a graph, the nodes whose (co)tangents may be zero because a branch was not taken;
        a rule that transforms whole bodies adds to them.
    """

    wanted: Any = None
    recorded: bool = False
    guarded: bool = False
    linear: Any = None
    masked: Any = None
    overflowed: bool = False

    def mask(self, nodes: Iterable[Any]) -> None:
        """Note operands (in forward mode the node itself) whose (co)tangent may be zero."""
        if self.masked is not None:
            self.masked.update([n for n in nodes if isinstance(n, Node)])

    def wants(self, arg: Operand | Node) -> bool:
        """Whether this argument takes part in the derivative."""
        return type(arg) is Node and (self.wanted is None or arg in self.wanted)

    def linear_operands(self, node: Node) -> tuple[int, ...]:
        """The operands of a node that are (co)tangents of an earlier derivative.

        The result of that derivative is zero if such an operand is zero, and so are its derivatives
        with respect to all other operands: zeros of a branch not taken are zeros at all orders.
        """
        if not self.guarded:
            return ()
        if self.linear is not None:
            return self.linear.get(node, ())  # type: ignore[no-any-return]
        return linear_in(node)


def linear_in(node: Node) -> tuple[int, ...]:
    """The operands of a node that are (co)tangents, and may be zero: a branch not taken."""
    return () if node.info is None else node.info.linear


class Op:
    """The base class of all operations.  Kinds derive from it; users call its instances.

    Attributes
    ----------
    name : str
        Unique in the registry.
    kind : str
        elementwise, reduction, view, contraction, indexing, control or opaque.
    discrete : bool
        The derivative is known to be zero (comparisons, argmax, floor).
    differentiable : bool
        False for an operation registered without a rule: it works forward, and raises when a
        derivative needs it.
    notes_where : bool
        Whether the user's file and line are stored when it is recorded.
    commutative : bool
        Its two operands may be exchanged.
    casts : bool
        It only changes the dtype; recorded by a Python operator, it gives a Python number.
    effects, aliasing, differentiation : Effects, Aliasing, Differentiation
        Further traits (core/op_facts.py).
    cost, onnx, remedy, zero_slope, range, host_callback, control_flow, selectors
        Facts that other parts of the engine read (core/op_facts.py).
    implementations : dict
        Functions to run instead of `run`, by the name of the backend; see `implement`.
    composition : callable or None
        The same value computed by other operations, ``composition(*operands, **params)``, for a
        backend that does not have this one; it may return NotImplemented. See `compose`.
    promotes : bool
        Its operands are cast to a common dtype.
    native : bool
        Eager values of large arrays are computed by native code (core/device_arrays.py).
    is_built_in : bool
        Its rule is defined in this package, so that native code may run it.
    special_numbers : bool
        Its rules are simpler for some operands that are numbers (an exponent of 2).
    multilinear : bool
        The result is linear in each operand (a product).
    quotient : InverseProduct or None
        The product that it inverts (core/op_facts.py).
    involution : bool
        Applied twice it is the identity.
    jump : Jump or None
        Where it jumps (core/op_facts.py); None if it does so nowhere or at single points.
    series : callable or None
        The Taylor coefficients of all orders at once, for an operation with bodies:
        ``series(call)``, with a `SeriesCall` (autodiff/series_terms.py).
    constant_partials : bool
        Its rules read neither the operands nor the result, as those of a sum.
    """

    kind = "opaque"
    discrete = False
    differentiable = True
    commutative = False
    casts = False
    effects = Effects()
    aliasing = Aliasing()
    differentiation = Differentiation()
    cost: Cost | None = None  # None: the cost of its kind, or of its body
    onnx: str | None = None
    remedy = Remedy()
    zero_slope = ""
    range = NOTHING_KNOWN
    host_callback = ""
    control_flow = ""  # of a node with bodies: LOOP, BRANCH ... (core/op_facts.py)
    selectors = NO_OPERANDS
    promotes = False
    native = is_built_in = special_numbers = constant_partials = False
    multilinear = involution = False
    quotient: InverseProduct | None = None
    jump: Jump | None = None
    series: Callable[[Any], Any] | None = None
    implementations: dict[str, Callable[..., Any]] = {}  # noqa: RUF012 - replaced, never changed
    composition: Callable[..., Any] | None = None
    notes_where = False
    pulls: tuple[Any, ...] | None = None  # the partials, if the vjp needs nothing else
    has_jvp = True
    has_vjp = True
    # Whether `operands_of(node)` has the operands for the vjp of an eager pass.
    finds_operands = False
    oracle: Any = None
    run: Callable[..., Any]
    # `vjp_into(node, t, buffers)`, for an operation on a few elements of a large array: the vjp,
    # added to the buffers of the backward pass (core/types.py).
    vjp_into: Callable[..., None] | None = None
    jvp_into: Callable[..., Any] | None = None  # `jvp_into(node, dots, tangents)`: forward mode
    # `spec_rule(*specs, **params)`: the spec of the result, if the operation defines a rule.
    spec_rule: Callable[..., Any] | None = None
    batch_rule: Callable[..., Any] | None = None

    def __init__(self, name: str, doc: str | None = None) -> None:
        self.name = name
        self.__name__ = name
        self.__doc__ = doc

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Any:
        """The spec of the result, by default that of running the operation on an example."""
        if self.spec_rule is not None:
            return self.spec_rule(*specs, **params)
        if has_sizes(specs, params):
            return probed(self, specs, params)
        with np.errstate(all="ignore"):
            return spec_of(self.run(*[self.example(s) for s in specs], **params))

    def spec(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Define the spec of the result: `rule(*specs, **params)` (a decorator)."""
        self.spec_rule = rule
        return rule

    def example(self, spec: Spec) -> Any:
        """A value of that spec, on which the operation is run to infer the spec of its result."""
        return example_of(spec)

    def updated_operand(self, node: Node, output: int) -> int | None:
        """The index of the operand that a result is a copy of, except for elements written to it.

        None if there is none. A backend may write such a result in the memory of the operand.
        """
        return None

    def vjp(self, node: Node, t: Any, out: Any, inputs: Sequence[Any], ctx: RuleContext) -> Any:
        """Cotangents of the operands, aligned with `node.args`; None for zero."""
        raise self.no_rule(node)

    def jvp(self, node: Node, dots: Sequence[Any], out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The tangent of the value; `dots` are the operands' tangents, None where zero."""
        raise self.no_rule(node)

    def implement(self, backend: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register an implementation of this operation for a backend (a decorator).

        Parameters
        ----------
        backend : str
            Its name. The decorated function takes plain values of the operands, and the parameters
            by name.
        """

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            self.implementations = {**self.implementations, backend: function}
            return function

        return decorate

    def compose(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Define the value by other operations: `composition` (a decorator)."""
        self.composition = function
        return function

    def batch(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Define the batching rule, which `vmap` uses (a decorator).

        The rule is ``rule(args, batched, size, **params)``: `batched` is true for operands whose
        first axis is the batch, of length `size`; the first axis of the result is the batch too.
        It uses wengert operations. Without a rule the elements of the batch are computed one by
        one.
        """
        self.batch_rule = rule
        return rule

    def batched(
        self, args: Sequence[Any], batched: Sequence[bool], size: Any, params: dict[str, Any]
    ) -> Any:
        """The result for a batch, by the rule of the operation or else of its kind.

        NotImplemented if there is neither.
        """
        if self.batch_rule is not None:
            out = self.batch_rule(args, batched, size, **params)
            if out is not NotImplemented:
                return out
        return self.batched_as_kind(args, batched, size, params)

    def batched_as_kind(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """The batching rule of the kind; NotImplemented if there is none."""
        return NotImplemented

    def no_rule(self, node: Node) -> NotDifferentiableError:
        """The error for an operation without a derivative."""
        return NotDifferentiableError(
            f"The derivative of {self.name} was needed, but {self.name} was registered without "
            f"one. Register a rule (wengert.extend), or apply wengert.stop_gradient if it is "
            f"meant to be a constant{at(node.where)}."
        )

    def __repr__(self) -> str:
        return f"<wengert {self.kind} operation {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return lookup, (self.name,)


def register(op: AnyOp, replace: bool = False) -> AnyOp:
    """Add an operation to the registry under its name.

    Raises
    ------
    RegistryError
        The name is taken, and `replace` is False.
    """
    if op.name in REGISTRY and not replace:
        raise RegistryError(
            f"An operation named {op.name!r} is registered already. Choose another name, or pass "
            f"replace=True{at(user_line())}."
        )
    REGISTRY[op.name] = op
    return op


def lookup(name: str) -> Any:
    """The operation of that name; families not yet imported (`FAMILIES`) are searched too.

    Raises
    ------
    RegistryError
        There is none; the message lists similar names.
    """
    try:
        return REGISTRY[name]
    except KeyError:
        load_families(lambda: name in REGISTRY, name.partition(".")[0])
        if name in REGISTRY:
            return REGISTRY[name]
        near = difflib.get_close_matches(name, REGISTRY, 3)
        hint = "Import the module that defines it."
        if near:
            hint = f"Did you mean {', '.join(near)}?"
        raise RegistryError(
            f"No operation named {name!r} is registered. {hint}{at(user_line())}"
        ) from None


class CotangentBuffers(Protocol):
    """The cotangents of one backward pass."""

    def wants(self, a: Any) -> bool:
        """Whether this operand takes part in the derivative."""

    def writable(self, a: Node) -> Any:
        """The cotangent of `a` as an array to add into; zeros if it has no contributions yet."""

    def add(self, a: Node, bar: Array) -> None:
        """Add a contribution, which the caller must not write to afterwards."""

    def take(self, node: Node, t: Array) -> Any:
        """The complete cotangent `t` of `node` as an array that the caller may write to."""

    def donate(self, a: Node, t: Array) -> None:
        """Add a contribution whose memory the pass may use."""


class TangentBuffers(Protocol):
    """The tangents of one forward pass."""

    def take(self, a: Node, reader: Node) -> Any:
        """The tangent of `a` as an array that its reader may write to."""
