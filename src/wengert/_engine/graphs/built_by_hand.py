"""Graphs that are built by hand: their inputs, and gradients of tensors.

Inputs of graphs that are built by hand.

spec       shape and dtype of an array
input      a tensor without a value: an argument of a graph
variable   a tensor with a value, which graphs read and update

Gradients of tensors with respect to tensors, for graphs that are built by hand.

`gradients(y, x)` corresponds to `grad` for functions: it adds the nodes of the derivative to the
graph, and returns them as tensors.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.messages import counted_once
from wengert._engine.autodiff.reverse import pullback
from wengert._engine.autodiff.tape import tape_between
from wengert._engine.core import graph as lists
from wengert._engine.core import pytree
from wengert._engine.core.device_arrays import host_values
from wengert._engine.core.graph_copies import rebuilt, valueless
from wengert._engine.core.handle import Handle, describe, leaf, wrap
from wengert._engine.core.implicit_conversions import chosen
from wengert._engine.core.message_order import is_used
from wengert._engine.core.node import Node, constant, is_variable, owner_of
from wengert._engine.core.recording import tracing
from wengert._engine.core.spec import Spec, is_inexact
from wengert._engine.core.symbolic.constraints import dim
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import placeholder
from wengert._engine.core.uniform_arrays import uniform, zeros
from wengert._engine.core.validation import spelled, word
from wengert._engine.tensor.operand_conversion import returned_value
from wengert.errors import (
    ArgumentError,
    DtypeError,
    NotDifferentiableError,
    NotScalarError,
    ShapeError,
    UnconnectedError,
    UnconnectedWarning,
    at,
    user_level,
    user_line,
)

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

Lengths = int | str | Dim | Sequence[int | str | Dim]


def spec(shape: Lengths = (), dtype: str | type[Any] | np.dtype[Any] = "float64") -> Spec:
    """Shape and dtype of an array, for tracing.

    Parameters
    ----------
    shape : length or sequence of lengths
        A length is an integer, a name (a symbolic size of at least one), or an expression of names
        such as ``"2*n + 1"``. Axes with the same name have the same length.
    dtype : dtype, default float64

    Returns
    -------
    Spec

    Raises
    ------
    ShapeError
        A length is negative, or is not a size.
    DtypeError
        The dtype is not numeric.

    Examples
    --------
    >>> import wengert as wg
    >>> print(wg.spec(("n", 3)))
    float64[n,3]
    """
    try:
        kind = np.dtype(dtype)
    except TypeError as error:
        raise DtypeError(f"dtype={dtype!r}: {error}{at(user_line())}.") from error
    if kind.kind not in "biufc":
        raise DtypeError(f"dtype={dtype!r}: its elements must be numbers{at(user_line())}.")
    single = isinstance(shape, int | str | Dim | np.integer) or not isinstance(shape, Iterable)
    lengths: Any = (shape,) if single else shape
    return Spec(tuple(map(_length, lengths)), kind)


def _length(n: Any) -> Any:
    if isinstance(n, Dim):
        return n
    if isinstance(n, str):
        return dim(n)
    try:
        number = operator.index(n)
    except TypeError as error:
        raise ShapeError(
            f"{n!r} is not a length. Give an integer, or a name in quotes{at(user_line())}."
        ) from error
    if number < 0:
        raise ShapeError(
            f"a length cannot be {number}. Give a length of 0 or more{at(user_line())}."
        )
    return number


def input(name: str, shape: Lengths = (), dtype: str = "float64") -> Any:
    """A tensor without a value: an argument of a graph that is built by hand.

    Parameters
    ----------
    name : str
        The name of the argument and of its node.
    shape, dtype
        As in `spec`.

    Returns
    -------
    Tensor
        A tensor; operations on it are recorded, not computed.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.input("x", shape=("n",))
    >>> f = wg.computation(np.sum(x * x), x)
    >>> float(f(np.array([1.0, 2.0]))), float(f(np.ones(5)))
    (5.0, 5.0)
    """
    node = placeholder(spec(shape, dtype), word(name, "the name of an input"))
    node.note(by_hand=True)  # it can be the key of a dictionary of values
    return wrap(node)


def variable(value: Any, name: str | None = None, *, differentiable: bool | None = None) -> Any:
    """A tensor with a value, which graphs read whenever they run and may update.

    Parameters
    ----------
    value : array_like
        The initial value; copied.
    name : str, optional
    differentiable : bool, optional
        Whether it is a leaf that requires a gradient; by default, if its dtype is inexact.

    Examples
    --------
    >>> import wengert as wg
    >>> count = wg.variable(0, "count")
    >>> step = wg.computation(count, updates={count: count + 1})
    >>> [int(step()) for _ in range(3)], int(count)
    ([0, 1, 2], 3)
    """
    if isinstance(value, Handle):
        value = returned_value(value, "a variable")
    try:
        array = np.array(host_values(value))
    except ValueError as error:
        raise ShapeError(
            f"a variable of {spelled(value)}: {str(error).rstrip('.')}. Give numbers in rows of "
            f"equal length{at(user_line())}."
        ) from error
    if array.dtype.kind not in "biufc":
        raise DtypeError(
            f"a variable of {array.dtype}: its elements must be numbers{at(user_line())}."
        )
    if differentiable is None:
        differentiable = is_inexact(array.dtype)
    tensor: Any = object.__new__(_handle_class())
    tensor.node = leaf(array, tensor, differentiable)
    tensor.node.note(symbolic=True)
    if name is not None:
        tensor.node.note(name=word(name, "the name of a variable"))
    return tensor


def _handle_class() -> type:
    return type(wrap(placeholder(Spec((), np.dtype(float)))))


def gradients(
    y: Array,
    xs: Array | list[Array | dict[Any, Any]],
    seed: Array | None = None,
    *,
    unconnected: str = "zero",
    create_graph: bool = True,
) -> Any:
    """The gradient of a tensor with respect to tensors that it was computed from.

    Parameters
    ----------
    y : Tensor
        A real scalar; with a `seed`, of any shape.
    xs : Tensor, or nested containers of them
        Inputs, variables, leaves that require a gradient, or intermediate values.
    seed : array or Tensor of the shape of `y`, optional
        The cotangent of `y`; by default 1, for a real scalar.
    unconnected : {"zero", "none", "warn", "raise"}
        The result if y does not depend on an x: zeros, None, zeros with a warning, or an error. A
        policy may change the default, "zero" (`wengert.policy`).
    create_graph : bool, default True
        Whether gradients of tensors with values can be differentiated again; those of a graph
        always can.

    Returns
    -------
    Tensor, or containers of them as `xs`

    Raises
    ------
    NotScalarError
        `y` is not a real scalar, and no seed is given.
    NotDifferentiableError
        A tensor of integers, or one that does not require a gradient.
    UnconnectedError
        `y` does not depend on one of `xs`, and ``unconnected="raise"``.
    GraphError
        `y` was computed from a variable by a function that depends on its value (a mask, an
        order); use `wengert.trace` on that function.

    Notes
    -----
    The cost is a small constant times that of computing `y`, for all `xs` together.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.input("x", shape="n")
    >>> energy = np.sum(x**3)
    >>> force = wg.gradients(energy, x)
    >>> stiffness = wg.gradients(np.sum(force), x)
    >>> wg.computation([force, stiffness], x)(np.array([1.0, 2.0]))
    [array([ 3., 12.]), array([ 6., 12.])]
    """
    if unconnected not in ("zero", "none", "warn", "raise"):
        raise ArgumentError(
            f"unconnected={unconnected!r} is not 'zero', 'none', 'warn' or 'raise'"
            f"{at(user_line())}."
        )
    policy = chosen()
    if policy is not None and policy.independent is not None and unconnected == "zero":
        unconnected = policy.independent
    leaves, structure = pytree.flatten(xs)
    targets = [_target(x) for x in leaves]
    cotangents: list[Any] = [None] * len(targets)
    node = _differentiable(y)
    if node is not None:
        nodes = lists.BaseGraph(node).nodes
        if any(map(_is_symbolic, nodes)):
            with tracing() as opened:  # so that the derivative is valid for all variable values
                opened.general = True
                copies = rebuilt(nodes, change=valueless)
                leaves_by_target = [
                    [copies.get(n, n) for n in _leaves_of(t, nodes)] for t in targets
                ]
                cotangents = _cotangents(copies[node], leaves_by_target, seed, create_graph)
        else:
            leaves_by_target = [_leaves_of(t, nodes) for t in targets]
            cotangents = _cotangents(node, leaves_by_target, seed, create_graph)
    for i, (target, cotangent) in enumerate(zip(targets, cotangents, strict=True)):
        if cotangent is None and unconnected != "none":
            if unconnected != "zero":
                _report_unconnected(target, unconnected)
            cotangent = zeros(target.spec)
        cotangents[i] = (
            cotangent
            if cotangent is None or isinstance(cotangent, Handle)
            else wrap(constant(cotangent))
        )
    return pytree.unflatten(structure, cotangents)


def _leaves_of(target: Node, nodes: Sequence[Node]) -> list[Node]:
    """The nodes of a target; a variable that has been modified has earlier nodes too."""
    owner = owner_of(target) if is_variable(target) else None
    if owner is None:
        return [target]
    return [n for n in nodes if n is target or (is_variable(n) and owner_of(n) is owner)]


def _cotangents(
    node: Node, targets: Sequence[Sequence[Node]], seed: Array | None, create_graph: bool
) -> list[Any]:
    """The sum of the cotangents of the nodes of each target."""
    seeds = {node: _seed(node, seed)}
    seeds = counted_once(seeds) if is_used() else seeds
    flat = [n for nodes in targets for n in nodes]
    tape = tape_between([node], set(flat))
    cotangents = iter(pullback(seeds, flat, create_graph or None, tape))
    contributions = [
        [cotangent for cotangent in (next(cotangents) for _ in nodes) if cotangent is not None]
        for nodes in targets
    ]
    return [functools.reduce(operator.add, terms) if terms else None for terms in contributions]


def _is_symbolic(node: Node) -> bool:
    return node.info is not None and node.info.symbolic


def _report_unconnected(target: Node, choice: str) -> None:
    message = (
        f"gradients: the tensor does not depend on {target.name or target!r}. Look for a "
        f"comparison, an integer cast or detach between them{at(user_line())}."
    )
    if choice == "raise":
        raise UnconnectedError(message)
    warnings.warn(message, UnconnectedWarning, stacklevel=user_level())


def _target(x: Array) -> Node:
    node = x.node if isinstance(x, Handle) else x
    if type(node) is not Node:
        spec = describe(x)
        inexact = isinstance(spec, Spec) and is_inexact(spec.dtype)
        remedy = "Make it with requires_grad=True, or as an input" if inexact else "Cast it first"
        raise NotDifferentiableError(
            f"gradients with respect to {spec or type(x).__name__}, which is not differentiable. "
            f"{remedy}{at(user_line())}."
        )
    return node


def _differentiable(y: Array) -> Node | None:
    node = y.node if isinstance(y, Handle) else y
    return node if type(node) is Node else None


def _seed(node: Node, seed: Array | None) -> Any:
    spec = node.spec
    if seed is None:
        if spec.shape != () or spec.dtype.kind != "f":
            raise NotScalarError(
                f"gradients of {spec}: without a seed, only a real scalar has a gradient. Sum it, "
                f"or pass seed={at(user_line())}."
            )
        scalar = Spec((), spec.dtype)
        return uniform(scalar, 1.0) if node.is_traced else spec.dtype.type(1)
    seed_spec = describe(seed)
    if not isinstance(seed_spec, Spec) or seed_spec.shape != spec.shape:
        raise ShapeError(
            f"gradients: the seed is {seed_spec}, but the tensor is {spec}. Give a seed of the "
            f"same shape{at(user_line())}."
        )
    return seed if isinstance(seed, Handle) else spec.dtype.type(seed)
