"""Derivatives of tensors with respect to tensors, for graphs that are built by hand.

`gradients(y, x)` corresponds to `grad` of functions: the nodes of the derivative are added to the
graph, and returned as tensors.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wengert._engine.autodiff.cotangent_space import uniform, zeros
from wengert._engine.autodiff.reverse import pullback
from wengert._engine.autodiff.tape import tape_between
from wengert._engine.core import graph as lists
from wengert._engine.core import pytree
from wengert._engine.core.copy_graph import rebuilt, valueless
from wengert._engine.core.handle import Handle, describe, wrap
from wengert._engine.core.node import Node, constant, is_variable, owner_of
from wengert._engine.core.policy import chosen
from wengert._engine.core.recording import tracing
from wengert._engine.core.spec import Spec, is_inexact
from wengert.errors import (
    ArgumentError,
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
        One real number, or anything else with a `seed`.
    xs : Tensor, or nested containers of them
        Inputs, variables, leaves that require a gradient, or intermediate values.
    seed : array or Tensor of the shape of `y`, optional
        The cotangent to start from; 1 for a single real number.
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
        `y` is not one real number, and no seed is given.
    NotDifferentiableError
        A tensor of integers, or one that does not require a gradient.
    UnconnectedError
        `y` does not depend on one of them, and ``unconnected="raise"``.
    GraphError
        `y` was computed from a variable by a function that depends on its value (a mask, an
        order); use `wengert.trace` on that function.

    Notes
    -----
    Costs a small constant times the computation of `y`, for all `xs` together.

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
    rules = chosen()
    if rules is not None and rules.independent is not None and unconnected == "zero":
        unconnected = rules.independent
    leaves, structure = pytree.flatten(xs)
    targets = [_target(x) for x in leaves]
    bars: list[Any] = [None] * len(targets)
    node = _differentiable(y)
    if node is not None:
        nodes = lists.BaseGraph(node).nodes
        if any(map(_is_symbolic, nodes)):
            with tracing() as opened:  # the derivative is valid for all values of variables
                opened.general = True
                place = rebuilt(nodes, change=valueless)
                by = [[place.get(n, n) for n in _leaves_of(t, nodes)] for t in targets]
                bars = _pulled_back(place[node], by, seed, create_graph)
        else:
            by = [_leaves_of(t, nodes) for t in targets]
            bars = _pulled_back(node, by, seed, create_graph)
    for i, (target, bar) in enumerate(zip(targets, bars, strict=True)):
        if bar is None and unconnected != "none":
            if unconnected != "zero":
                _complain(target, unconnected)
            bar = zeros(target.spec)
        bars[i] = bar if bar is None or isinstance(bar, Handle) else wrap(constant(bar))
    return pytree.unflatten(structure, bars)


def _leaves_of(target: Node, nodes: Sequence[Node]) -> list[Node]:
    """The node of a target; for a variable that has been modified, the node before."""
    owner = owner_of(target) if is_variable(target) else None
    if owner is None:
        return [target]
    return [n for n in nodes if n is target or (is_variable(n) and owner_of(n) is owner)]


def _pulled_back(
    node: Node, targets: Sequence[Sequence[Node]], seed: Array | None, create_graph: bool
) -> list[Any]:
    """The sum of the cotangents of the nodes of each target."""
    seeds = {node: _seed(node, seed)}
    flat = [n for several in targets for n in several]
    tape = tape_between([node], set(flat))
    bars = iter(pullback(seeds, flat, create_graph or None, tape))
    found = [
        [bar for bar in (next(bars) for _ in several) if bar is not None] for several in targets
    ]
    return [functools.reduce(operator.add, parts) if parts else None for parts in found]


def _is_symbolic(node: Node) -> bool:
    return node.info is not None and node.info.symbolic


def _complain(target: Node, choice: str) -> None:
    message = (
        f"gradients: the tensor does not depend on {target.name or target!r}. Look for a "
        f"comparison, an integer cast or detach on the way{at(user_line())}."
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
                f"gradients of {spec}: without a seed only a real scalar has a gradient. Sum it, "
                f"or pass seed={at(user_line())}."
            )
        one = Spec((), spec.dtype)
        return uniform(one, 1.0) if node.is_traced else spec.dtype.type(1)
    given = describe(seed)
    if not isinstance(given, Spec) or given.shape != spec.shape:
        raise ShapeError(
            f"gradients(seed=...): it is {given}, but the tensor is {spec}. Give them the same "
            f"shape{at(user_line())}."
        )
    return seed if isinstance(seed, Handle) else spec.dtype.type(seed)
