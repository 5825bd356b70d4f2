"""Gradients of tensors: leaves, `.grad`, `.backward()`, hooks.  PyTorch's names.

The gradient belongs to the handle: `backward` runs from one value to all leaves that require a
gradient, and adds to the `.grad` of the handles that own them.  A second `backward` adds again;
`zero_grad` starts over.  A leaf that is written in place keeps the gradient with respect to its
original value.

While a function is traced, gradients are nodes, and the final gradient of a parameter is an output
of the graph.  After each run it is stored in `.grad` (jit/compiled_program.py), or added to it if
the step has not set it first.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.infinities import cast
from wengert._engine.autodiff.messages import counted_once
from wengert._engine.autodiff.reverse import pullback, vjp_from_jvp
from wengert._engine.autodiff.tape import tape_between, tape_to_owners
from wengert._engine.core import pytree, recording
from wengert._engine.core.dispatch import PART
from wengert._engine.core.handle import Handle, leaf, shape_of, stopped, value_of, wrap
from wengert._engine.core.message_order import is_used
from wengert._engine.core.node import (
    NO_PARAMS,
    RELEASED,
    DiscreteLeaf,
    Node,
    constant,
    is_variable,
    owner_of,
)
from wengert._engine.core.op import RuleContext, lookup
from wengert._engine.core.recording import current_trace
from wengert.errors import (
    NotDifferentiableError,
    NotScalarError,
    RuleError,
    ShapeError,
    TraceError,
    at,
    user_line,
)

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

    from .tensor import Tensor

_hook_number = itertools.count(1).__next__


class GradFn:
    """The gradient function of the operation that computed a tensor: callable with a cotangent."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def name(self) -> str:
        """PyTorch's form of the name: ``MultiplyBackward``."""
        op = self.node.op  # a user's operation may define the name
        words = "".join(w.capitalize() for w in op.name.split("_"))
        return getattr(op, "backward_name", None) or words + "Backward"

    @property
    def next_functions(self) -> tuple[tuple[GradFn | None, int], ...]:
        """The gradient functions of the operands, as PyTorch's pairs."""
        return tuple((GradFn(a) if a.args else None, 0) for a in self.node.args_as_nodes())

    def __call__(self, gradient: Any) -> tuple[Any, ...]:
        """Cotangents of the operands (None for operands without derivative).

        An operation with several outputs takes a tuple of cotangents.
        """
        node, value = self.node, self.node.value
        if node.is_traced:
            raise TraceError(
                f"{self!r} of a node of a graph, whose operands have no values yet. Take "
                f"derivatives of functions, wengert.vjp{at(user_line())}."
            )
        inputs = [a.value if isinstance(a, Node) else a for a in node.args]
        if type(value) is tuple:
            t: Any = tuple(map(_like, gradient, value))
        else:
            t = _like(gradient, value)
        op: Any = node.op
        rule = op.vjp if op.has_vjp else vjp_from_jvp
        bars = rule(node, t, value, inputs, RuleContext())
        if node.op is PART:  # an output of an operation with several
            bars = [tuple(bars[0].get(i) for i in range(len(inputs[0])))]
        return pytree.tree_map(
            lambda b: None if b is None else wrap(constant(value_of(b))), tuple(bars)
        )

    def __repr__(self) -> str:
        return f"<{self.name()}>"


def _like(gradient: Any, value: Any) -> Any:
    """A cotangent with the dtype of a value; zeros if it is None."""
    if gradient is None:
        return np.zeros_like(value)
    return cast(np.asarray(value_of(gradient)), np.asarray(value).dtype)


def _checked(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The hook, with a check that its result has the shape of the gradient."""

    def call(gradient: Array) -> Any:
        result = hook(gradient)
        shape = () if result is None else np.shape(value_of(result))
        if shape not in ((), gradient.shape):
            name = getattr(hook, "__name__", type(hook).__name__)
            raise RuleError(
                f"the hook {name} returned shape {shape} for a gradient of shape {gradient.shape}. "
                f"Return one of the same shape, or None to leave it{at(user_line())}."
            )
        return result

    return call


class RemovableHook:
    """The result of `register_hook`; `remove()` removes the hook."""

    def __init__(self, hooks: dict[int, Any]) -> None:
        self._hooks, self._number = hooks, _hook_number()

    def remove(self) -> None:
        """Remove the hook; does nothing the second time."""
        self._hooks.pop(self._number, None)


class GradAttributes:
    """Mixin: PyTorch's autograd names."""

    __slots__ = ()
    node: Node
    _grad: Any

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has accumulated here, or None."""
        if recording.switches.count:
            check_read(self)
        return getattr(self, "_grad", None)

    @grad.setter
    def grad(self, value: Array | None) -> None:
        if value is not None:
            value = value if isinstance(value, Handle) else wrap(constant(np.array(value)))
            if value.shape != self.shape:  # type: ignore[attr-defined]
                raise ShapeError(
                    f"grad has shape {value.shape}, the tensor {self.shape}. "  # type: ignore[attr-defined]
                    f"A gradient has the shape of its tensor{at(user_line())}."
                )
        if recording.switches.count:
            note_set(self)
        self._grad = value

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded for a derivative."""
        return type(self.node) is Node

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.requires_grad_(flag)

    def requires_grad_(self, flag: bool = True) -> Tensor:
        """Make a leaf require a gradient, or not; return it."""
        if flag == self.requires_grad:
            return self  # type: ignore[return-value]
        if not self.is_leaf and not (flag and _is_diagnostic_only(self.node)):
            raise NotDifferentiableError(
                "requires_grad of the result of an operation follows from its operands. Use "
                f"detach() for a constant{at(user_line())}."
            )
        if self.node.is_traced:
            raise TraceError(
                f"requires_grad of {self.node.spec} in a graph: an input of floating numbers has "
                "derivatives, and others have none. Take derivatives of functions, wengert.grad, "
                f"or of the graph; detach() gives a constant{at(user_line())}."
            )
        value = self.node.value
        if flag and np.asarray(value).dtype.kind not in "fc":
            raise NotDifferentiableError(
                f"a tensor of {np.asarray(value).dtype} cannot require a gradient: only floating "
                f"and complex numbers have derivatives. Cast it, x.astype(float){at(user_line())}."
            )
        handle: Any = self
        handle.node = leaf(value, handle) if flag else constant(value)
        recording.Changes.note()
        return self  # type: ignore[return-value]

    @property
    def is_leaf(self) -> bool:
        """Whether it is not the result of a recorded operation."""
        return not self.node.args

    @property
    def grad_fn(self) -> GradFn | None:
        """The gradient function of the operation that computed it; None for a leaf."""
        return GradFn(self.node) if type(self.node) is Node and self.node.args else None

    @property
    def grad_fn_name(self) -> str | None:
        """The name of `grad_fn`."""
        return None if self.grad_fn is None else self.grad_fn.name()

    @property
    def parents(self) -> tuple[Any, ...]:
        """The operands with a derivative, each once, in order."""
        return tuple(_handle(a) for a in dict.fromkeys(self.node.args_as_nodes()))

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The operands without derivative: constants, conditions, indices."""
        return tuple(_handle(a) for a in self.node.inputs if type(a) is not Node)

    def detach(self) -> Tensor:
        """The same value as a constant, without derivative."""
        node = self.node
        if node.value is None:
            return stopped(node)
        # While lines are noted, record the operation so that diagnostics can show it.
        if recording.recording_session() is not None and type(node) is Node:
            detached = DiscreteLeaf(lookup("stop_gradient"), (node,), NO_PARAMS, node.value)
            detached.note(where=user_line())
            return wrap(detached)
        return wrap(constant(node.value))

    def zero_grad(self) -> None:
        """Clear the accumulated gradient."""
        self.grad = None

    def retain_grad(self) -> None:
        """Also fill `.grad` of this result of an operation, in later `backward` calls."""
        if type(self.node) is Node:
            self.node.note(owner=weakref.ref(self))

    def register_hook(self, hook: Callable[[Any], Any]) -> RemovableHook:
        """Call `hook(gradient)` when the gradient with respect to this value is complete.

        The result of the hook, if not None, replaces the gradient.
        """
        if type(self.node) is not Node:
            raise NotDifferentiableError(
                f"a hook on a tensor that requires no gradient would never run{at(user_line())}."
            )
        hooks = None if self.node.info is None else self.node.info.hooks
        if hooks is None:
            hooks = {}
            self.node.note(hooks=hooks)
        removable = RemovableHook(hooks)
        hooks[removable._number] = _checked(hook)
        return removable

    def backward(
        self,
        gradient: list[float] | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Sequence[Any] | None = None,
    ) -> None:
        """Add the gradient of this value to `.grad` of the leaves that it depends on.

        Parameters
        ----------
        gradient : array of this shape, optional
            The cotangent to start from; 1 for a single real number.
        retain_graph : bool, optional
            False frees the history of this value, and a later `backward` raises ReleasedError.
            By default it is kept as long as the tensor exists.
        create_graph : bool, default False
            Record the backward pass, so that the gradients are differentiable.
        inputs : sequence of Tensor, optional
            Only these receive a gradient; all leaves by default.

        Raises
        ------
        NotDifferentiableError
            The tensor does not require a gradient.
        NotScalarError
            It is not one real number and no `gradient` is given.

        Examples
        --------
        >>> import wengert as wg
        >>> x = wg.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        Tensor([2., 4.], dtype=float64)
        """
        seed_backward(self, gradient, retain_graph, create_graph, inputs, is_used())


def backward_of_part(x: Any) -> None:
    """`backward()` of the part of this process of an output: the sum of `x` over all processes.

    So a value that is the same in all processes is not counted once.
    """
    seed_backward(x, None, None, False, None, False)


def seed_backward(
    x: Any,
    gradient: Any,
    retain_graph: bool | None,
    create_graph: bool,
    inputs: Sequence[Any] | None,
    counts_once: bool,
) -> None:
    """`backward`; with `counts_once` a value that is the same in all processes is one output."""
    node = x.node
    check_backward(x)
    if type(node) is not Node:
        raise NotDifferentiableError(
            "backward() of a tensor that does not require a gradient: nothing it was computed "
            "from has requires_grad=True, or a comparison, an integer cast, detach() or "
            f"no_grad() came between{at(user_line())}."
        )
    seed = _seed(node, gradient)
    if inputs is None:
        tape, owners = tape_to_owners(node)
        check_owners(node, owners)
    else:
        owners = [t.node for t in inputs]
        if any(type(n) is not Node for n in owners):
            raise NotDifferentiableError(
                "backward(inputs=...): one of them does not require a gradient. Leave it out, "
                f"or create it with requires_grad=True{at(user_line())}."
            )
        tape = tape_between([node], set(owners))
    with recording.enable_grad() if create_graph else contextlib.nullcontext():
        seeds = counted_once({node: seed}) if counts_once else {node: seed}
        bars = pullback(seeds, owners, create_graph, tape)
    for n, bar in zip(owners, bars, strict=True):
        owner = _handle(n) if inputs is None else inputs[owners.index(n)]
        if bar is not None and node.is_traced:
            accumulate(owner, bar, create_graph)
        elif bar is not None:
            _accumulate(owner, bar)
    if retain_graph is False and not node.is_traced:
        x.node = Node(RELEASED, (), NO_PARAMS, node.value)


def _seed(node: Node, gradient: Any) -> Any:
    spec = node.spec
    if gradient is None:
        if spec.size != 1 or spec.dtype.kind == "c":
            raise NotScalarError(
                f"backward() of {node.spec}: only one real number has a gradient without a "
                "given cotangent. Sum it, or pass gradient= an array of its shape"
                f"{at(user_line())}."
            )
        return np.ones(spec.shape, spec.dtype)[()]
    t = gradient if isinstance(gradient, Handle) else np.asarray(gradient)
    shape = shape_of(t)
    if shape != spec.shape:
        raise ShapeError(
            f"backward(gradient=...): it has shape {shape}, the tensor {spec.shape}. Give "
            f"them the same shape{at(user_line())}."
        )
    return cast(t, spec.dtype)


def _accumulate(owner: Any, bar: Array) -> None:
    new = bar if isinstance(bar, Handle) else wrap(constant(bar))
    owner._grad = new if owner.grad is None else owner._grad + new


def _is_diagnostic_only(node: Node) -> bool:
    """Whether a node is recorded for diagnostics only (`note_lines`), otherwise a constant."""
    op: Any = node.op
    return type(node) is DiscreteLeaf and (not op.discrete or op.name == "stop_gradient")


def _handle(node: Node) -> Any:
    owner = owner_of(node)
    return wrap(node) if owner is None else owner


def check_backward(tensor: Any) -> None:
    """Raise an error for a backward pass that is not part of the graph being built."""
    session, node = current_trace(), tensor.node
    inside = session is not None and session.general and not session.isolated
    if node.is_traced and not inside:
        raise _refusal(node)
    if inside and not node.is_traced:
        raise TraceError(
            f"backward() of {node.spec}, which was computed before this function is traced, would "
            f"run once and not each time. Compute it in the function{at(user_line())}."
        )


def check_owners(node: Node, owners: Sequence[Node]) -> None:
    """Raise an error for a traced pass that reaches only inputs, which have no gradient."""
    if node.is_traced and not owners:
        raise _refusal(node)


def _refusal(node: Node) -> TraceError:
    return TraceError(
        f"backward() of {node.spec}, whose value is not known while a graph is built, does not "
        "reach a parameter that has a gradient. Take derivatives of functions, "
        "wengert.grad(loss)(w), in the graph too, or of the graph when it is finished, "
        f"graph.grad(){at(user_line())}."
    )


def accumulate(owner: Any, bar: Any, differentiable: bool) -> None:
    """Add a node to the gradient of a tensor."""
    session = current_trace()
    assert session is not None
    session.grads.setdefault(owner, (getattr(owner, "_grad", None), False))
    total = owner._grad if session.grads[owner][1] or owner in session.added else None
    new = bar if differentiable else wrap(stopped(bar.node).node)
    owner._grad = new if total is None else total + new
    session.added.add(owner)


def note_set(tensor: Any) -> None:
    """Record that `.grad` is replaced."""
    session = current_trace()
    if session is not None and session.general:
        old = session.grads.get(tensor, (getattr(tensor, "_grad", None), True))
        session.grads[tensor] = old[0], True


def check_read(tensor: Any) -> None:
    """Raise an error for reading a gradient that is not a node of this graph."""
    session = current_trace()
    if session is None or not session.general:
        return
    if not is_variable(session.written.get(tensor, tensor.node)):
        return
    if not session.grads.get(tensor, (None, False))[1]:
        raise TraceError(
            f"the gradient of {tensor.node.name or 'a tensor'} is read while a graph is built, but "
            "it depends on its earlier value, which is not part of the graph. Call zero_grad() "
            f"in the same function, before backward(){at(user_line())}."
        )
