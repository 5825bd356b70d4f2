"""Why: an answer to why a gradient is None, zero, NaN, huge, tiny or slow.

`why` determines the kinds of y and x, and runs functions and graphs while lines are recorded;
the checks (run_checks.py) examine the graph and a backward pass of it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.arguments import Argnums, DifferentiatedCall, Variables, name_of
from wengert._engine.core import graph as lists
from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.node import Node, constant, is_variable, owner_of
from wengert._engine.core.recording import note_lines
from wengert._engine.core.replay import inline_graph
from wengert._engine.graphs.graph import Graph
from wengert.errors import ArgumentError, at, user_line

from .dependency_trace import ancestors
from .disconnected import Reads
from .findings import Finding, Findings
from .run_checks import DifferentiatedInput, How, examine
from .unrolled_loops import step_by_step

if TYPE_CHECKING:
    from wengert._engine.autodiff.wrapper import Derived
    from wengert._engine.core.types import Operand


def why(
    y: Any,
    /,
    *args: Any,
    argnums: Argnums = 0,
    argnames: str | Sequence[str] | None = None,
    index: int | slice | tuple[int, ...] | None = None,
    time: bool = False,
    **kwargs: Any,
) -> Findings:
    """Why a gradient is None, zero, NaN, infinite, huge, tiny or slow: cause, line and remedy.

    Parameters
    ----------
    y : Tensor, callable or Graph
        *Tensors*: ``why(y, x)`` examines the gradient of y with respect to x, a tensor, a container
        of tensors or a module; ``why(y)`` with respect to all leaves that require a gradient.

        *Functions of arrays*: ``why(f, *args)`` runs ``f(*args)`` and examines its gradient
        by the arguments that `argnums` and `argnames` choose, as in `wengert.grad`.
        *Graphs*: ``why(graph, *args)`` runs the graph on values; ``why(graph)`` only examines it.
    *args, **kwargs
        x, or the arguments of the function or graph.
    argnums : int or sequence of int, default 0
    argnames : str or sequence of str, optional
    index : index, optional
        Why this element of the gradient with respect to x, one array, is zero.
    time : bool, default False
        Also run every operation again and measure it, forward and backward.

    Returns
    -------
    Findings
        True if something was found; printed, it is text to read; a sequence of `Finding` with
        ``kind``, ``symptom``, ``message``, ``node``, ``where``, ``line``, ``text``.

    Raises
    ------
    ArgumentError
        y has no gradient, or x is nothing to differentiate with respect to.

    Notes
    -----
    If y is an array, its gradient here is that of the sum of its elements.

    *Lines.* Functions and graphs are run with source lines recorded. Tensors made before have
    lines if they were computed in a block ``with wengert.note_lines():``.

    *Thresholds.* A gradient is huge above 1e8 and tiny below 1e-12, for a cotangent of y of 1. A
    gradient is reported as zero if all elements are; examine one element with ``index=``.

    *Cost.* That of the function with lines recorded (about twice the time of each operation), one
    backward pass that keeps every cotangent, and one traversal of the graph.

    See Also
    --------
    explain : what a function does, line by line.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> found = wg.why(lambda x: np.sqrt(x - 1.0), 1.0)
    >>> [(f.kind, f.symptom) for f in found]
    [('singular', 'infinite')]
    >>> bool(wg.why(np.sin, 1.0))
    False
    >>> x = wg.tensor([-1.0, -2.0], requires_grad=True)
    >>> wg.why(wg.nn.functional.relu(x).sum(), x).kinds
    ('saturated',)
    """
    how = How(time, index)
    if isinstance(y, lists.BaseGraph):
        return _of_graph(y, args, kwargs, how)
    if not isinstance(y, Handle) and callable(y):
        return _of_function(y, args, kwargs, argnums, argnames, how)
    outputs = [x.node for x in pytree.flatten(y)[0] if isinstance(x, Handle)]
    if not outputs or kwargs or len(args) > 1:
        raise ArgumentError(
            f"why of a {type(y).__name__} with {len(args)} arguments. Give two tensors, why(y, x), "
            f"or a function and its arguments, why(f, *args){at(user_line())}."
        )
    targets = _targets(args[0], outputs) if args else _leaves(outputs)
    if not targets:
        return Findings(
            "y depends on no tensor that requires a gradient: nothing it was computed from has "
            "requires_grad=True, or it was computed under no_grad. Ask why(y, x)."
        )
    return _examined(outputs, targets, None, how, None)


def _examined(
    outputs: Sequence[Node],
    targets: Sequence[DifferentiatedInput],
    reads: Reads | None,
    how: How,
    structure: Callable[..., Any] | None,
) -> Findings:
    if how.index is not None and len(targets) != 1:
        raise ArgumentError(
            f"why(..., index={how.index!r}) for {len(targets)} arrays: an index is of one. Choose "
            f"it with argnums, or pass it as x{at(user_line())}."
        )
    found = examine(outputs, targets, reads, how)
    gradients = found.gradients
    whole = structure(gradients) if structure is not None else gradients
    if structure is None and len(gradients) == 1:
        whole = gradients[0]
    items = [_with_step(f) for f in found.findings]
    notes = [*found.notes, *([UNROLLED] if items != list(found.findings) else [])]
    return Findings(found.summary, items, whole, notes)


UNROLLED = (
    "Where values are known, loops run step by step, and each of their steps is recorded: the step "
    "is named to which a line belongs. A compiled function keeps the loop, and its derivative is "
    "the same."
)


def _with_step(finding: Finding) -> Finding:
    """A finding with the step of the loop in which its line ran."""
    info = finding.node.info if finding.node is not None else None
    if info is None or not info.step:
        return finding
    return replace(finding, message=f"in {info.step}: {finding.message}")


# ---- tensors -----------------------------------------------------------------------------------


def _targets(x: Any, outputs: Sequence[Node]) -> list[DifferentiatedInput]:
    if hasattr(x, "named_parameters"):
        x = dict(x.named_parameters())
    leaves, _ = pytree.flatten(x)
    paths = [""] if len(leaves) == 1 and leaves[0] is x else pytree.paths(x)
    if not leaves or not all(isinstance(leaf, Handle) for leaf in leaves):
        odd = next((leaf for leaf in leaves if not isinstance(leaf, Handle)), x)
        raise ArgumentError(
            f"why(y, x): x is a {type(odd).__name__}, and y a tensor, which can only depend on "
            f"tensors. For functions of arrays ask why(f, *args){at(user_line())}."
        )
    nodes = dict.fromkeys(ancestors(outputs))
    return [
        DifferentiatedInput(
            f"x{path}" if path else leaf.node.name or "x", _as_known_to(nodes, leaf)
        )
        for leaf, path in zip(leaves, paths, strict=True)
    ]


def _as_known_to(nodes: dict[Node, None], x: Handle) -> Node:
    """The node that a tensor was when y was computed: its own leaf, if it has been written to."""
    if x.node in nodes:
        return x.node
    for node in nodes:
        if is_variable(node) and owner_of(node) is x:
            return node
    return x.node


def _leaves(outputs: Sequence[Node]) -> list[DifferentiatedInput]:
    found: list[DifferentiatedInput] = []
    for node in ancestors(outputs):
        if type(node) is Node and (is_variable(node) or (node.is_traced and not node.args)):
            found.append(DifferentiatedInput(node.name or f"leaf {len(found)}", node))
    return found


# ---- functions and graphs ----------------------------------------------------------------------


def _of_function(
    fun: Callable[..., Any] | np.ufunc | Derived,
    args: tuple[Operand | dict[Any, Any], ...],
    kwargs: dict[Any, Any],
    argnums: Argnums,
    argnames: Any,
    how: How,
) -> Findings:
    call = DifferentiatedCall(fun, args, kwargs, argnums, argnames, f"why of {name_of(fun)}")
    with note_lines() as notes, np.errstate(all="ignore"):
        already = len(notes.reads)
        out = call.run_noting_reads()
        reads = notes.reads[already:]
    outputs = _nodes(out)
    names = _names(fun, call.variables, argnums, argnames)
    targets = [DifferentiatedInput(n, node) for n, node in zip(names, call.nodes, strict=True)]
    return _examined(outputs, targets, reads, how, call.results)


def _nodes(out: Operand) -> list[Node]:
    leaves = [x for x in pytree.flatten(out)[0] if not isinstance(x, str | bytes | None)]
    return [x.node if isinstance(x, Handle) else constant(x) for x in leaves]


def _names(
    fun: Callable[..., Any] | np.ufunc | Derived,
    variables: Variables,
    argnums: Argnums,
    argnames: Any,
) -> list[str]:
    """The chosen arguments by the names of the function's parameters, with their paths."""
    try:
        known = list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):
        known = []
    keywords = [argnames] if isinstance(argnames, str) else list(argnames or ())
    numbers = [argnums] if isinstance(argnums, int | np.integer) else list(argnums)
    if keywords and argnums == 0:
        numbers = []
    positions = [known[k] if -len(known) <= k < len(known) else f"argument {k}" for k in numbers]
    chosen = [*positions, *keywords]
    paths = pytree.paths(variables.restore(range(len(variables.nodes))))
    return [re.sub(r"^\[(\d+)\]", lambda m: chosen[int(m[1])], paths[k]) for k in variables.slots]


def _of_graph(graph: Any, args: Any, kwargs: Any, how: How) -> Findings:
    if not args and not kwargs and graph.inputs:
        targets = [
            DifferentiatedInput(n.name or f"input {k}", n)
            for k, n in enumerate(graph.inputs)
            if type(n) is Node
        ]
        return _examined(graph.outputs, targets, (), how, None)
    graph = graph if isinstance(graph, Graph) else Graph(*graph.outputs, inputs=graph.inputs)
    values = list(graph.signature.leaves(args, kwargs, f"the graph {graph.name}"))
    floating = [k for k, n in enumerate(graph.inputs) if type(n) is Node]
    variables = Variables([values[k] for k in floating], f"why of {graph.name}")
    for k, handle in zip(floating, variables.handles(), strict=True):
        values[k] = handle
    with note_lines(), np.errstate(all="ignore"):
        outs = inline_graph(graph, values, step_by_step)
        outputs = [x.node for x in map(_handle, outs)]
    targets = [
        DifferentiatedInput(graph.inputs[k].name or f"input {k}", node)
        for k, node in zip(floating, variables.nodes, strict=True)
    ]
    return _examined(outputs, targets, (), how, None)


def _handle(x: Any) -> Any:
    return x if isinstance(x, Handle) else wrap(constant(x))
