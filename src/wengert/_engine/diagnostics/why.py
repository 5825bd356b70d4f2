"""Why: an answer to why a gradient is None, zero, NaN, huge, tiny or slow.

`why` accepts tensors, functions and graphs; it runs functions and graphs while source lines are
recorded.  The checks (run_checks.py) then examine the graph and a backward pass of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.arguments import Argnums, DifferentiatedCall, Variables, name_of
from wengert._engine.core import graph as core_graph
from wengert._engine.core import pytree
from wengert._engine.core.graph_copies import inline_graph
from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.node import Node, constant, is_variable, owner_of
from wengert._engine.core.recording import note_lines
from wengert._engine.core.user_functions import known_signature
from wengert._engine.graphs.graph import Graph
from wengert.errors import ArgumentError, at, user_line

from .disconnected import Reads
from .findings import Finding, Findings
from .recorded_pass import ancestors, step_by_step
from .run_checks import DifferentiatedInput, Options, examine

if TYPE_CHECKING:
    from wengert._engine.autodiff.arguments import Derived
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

        *Functions of arrays*: ``why(f, *args)`` runs ``f(*args)`` and examines its gradient with
        respect to the arguments that `argnums` and `argnames` choose, as in `wengert.grad`.

        *Graphs*: ``why(graph, *args)`` runs the graph on values; ``why(graph)`` only examines it.
    *args, **kwargs
        x, or the arguments of the function or graph.
    argnums : int or sequence of int, default 0
    argnames : str or sequence of str, optional
    index : index, optional
        An element of the gradient with respect to x, a single array: why is it zero?
    time : bool, default False
        Also run every operation three times, forward and backward, and take the fastest.

    Returns
    -------
    Findings
        A sequence of `Finding` with ``kind``, ``symptom``, ``message``, ``node``, ``where``,
        ``line``, ``text``; true if there are any. Print it for a report.

    Raises
    ------
    ArgumentError
        y has no gradient, or x cannot be differentiated with respect to.

    Notes
    -----
    If y is an array, the gradient of the sum of its elements is examined.

    *Lines.* Functions and graphs are run with source lines recorded. Tensors have lines if they
    were computed in a block ``with wengert.note_lines():``.

    *Thresholds.* A gradient is huge above 1e8 and tiny below 1e-12, for a cotangent of y of 1. A
    gradient is reported as zero if all elements are; examine one element with ``index=``.

    *Cost.* One run of the function with lines recorded (about twice the time of each operation),
    one backward pass that stores every cotangent, and one traversal of the graph.

    See Also
    --------
    explain : what a function does, line by line.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> findings = wg.why(lambda x: np.sqrt(x - 1.0), 1.0)
    >>> [(f.kind, f.symptom) for f in findings]
    [('singular', 'infinite')]
    >>> bool(wg.why(np.sin, 1.0))
    False
    >>> x = wg.tensor([-1.0, -2.0], requires_grad=True)
    >>> wg.why(wg.nn.functional.relu(x).sum(), x).kinds
    ('saturated',)
    """
    options = Options(time, index)
    if isinstance(y, core_graph.BaseGraph):
        return _of_graph(y, args, kwargs, options)
    if not isinstance(y, Handle) and callable(y):
        return _of_function(y, args, kwargs, argnums, argnames, options)
    outputs = [x.node for x in pytree.flatten(y)[0] if isinstance(x, Handle)]
    if not outputs or kwargs or len(args) > 1:
        raise ArgumentError(
            f"why of a {type(y).__name__} with {len(args)} arguments. Give two tensors, why(y, x), "
            f"or a function and its arguments, why(f, *args){at(user_line())}."
        )
    targets = _targets(args[0], outputs) if args else _leaves(outputs)
    if not targets:
        return Findings(
            "y depends on no tensor that requires a gradient: no tensor that it was computed from "
            "has requires_grad=True, or it was computed under no_grad. Call why(y, x)."
        )
    return _examined(outputs, targets, None, options, None)


def _examined(
    outputs: Sequence[Node],
    targets: Sequence[DifferentiatedInput],
    reads: Reads | None,
    options: Options,
    structure: Callable[..., Any] | None,
) -> Findings:
    if options.index is not None and len(targets) != 1:
        raise ArgumentError(
            f"why(..., index={options.index!r}) for {len(targets)} arrays: an index needs a single "
            f"array. Choose it with argnums, or pass it as x{at(user_line())}."
        )
    examined = examine(outputs, targets, reads, options)
    gradients = examined.gradients
    gradient = structure(gradients) if structure is not None else gradients
    if structure is None and len(gradients) == 1:
        gradient = gradients[0]
    items = [_with_step(f) for f in examined.findings]
    notes = [*examined.notes, *([UNROLLED] if items != list(examined.findings) else [])]
    return Findings(examined.summary, items, gradient, notes)


UNROLLED = (
    "Loops were run step by step for this report, and a finding names the step that its line "
    "belongs to. A compiled function keeps the loop as one node; its derivative is the same."
)


def _with_step(finding: Finding) -> Finding:
    """A finding that also names the step of the loop in which its line ran."""
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
        invalid = next((leaf for leaf in leaves if not isinstance(leaf, Handle)), x)
        raise ArgumentError(
            f"why(y, x): x is a {type(invalid).__name__}, but y is a tensor, which can only depend "
            f"on tensors. For functions of arrays call why(f, *args){at(user_line())}."
        )
    nodes = dict.fromkeys(ancestors(outputs))
    return [
        DifferentiatedInput(f"x{path}" if path else leaf.node.name or "x", _node_in(nodes, leaf))
        for leaf, path in zip(leaves, paths, strict=True)
    ]


def _node_in(nodes: dict[Node, None], x: Handle) -> Node:
    """The node of a tensor when y was computed; the tensor may have been written to since."""
    if x.node in nodes:
        return x.node
    for node in nodes:
        if is_variable(node) and owner_of(node) is x:
            return node
    return x.node


def _leaves(outputs: Sequence[Node]) -> list[DifferentiatedInput]:
    leaves: list[DifferentiatedInput] = []
    for node in ancestors(outputs):
        if type(node) is Node and (is_variable(node) or (node.is_traced and not node.args)):
            leaves.append(DifferentiatedInput(node.name or f"leaf {len(leaves)}", node))
    return leaves


# ---- functions and graphs ----------------------------------------------------------------------


def _of_function(
    fun: Callable[..., Any] | np.ufunc | Derived,
    args: tuple[Operand | dict[Any, Any], ...],
    kwargs: dict[Any, Any],
    argnums: Argnums,
    argnames: Any,
    options: Options,
) -> Findings:
    call = DifferentiatedCall(fun, args, kwargs, argnums, argnames, f"why of {name_of(fun)}")
    with note_lines() as notes, np.errstate(all="ignore"):
        start = len(notes.reads)
        out = call.run_noting_reads()
        reads = notes.reads[start:]
    outputs = _nodes(out)
    names = _names(fun, call.variables, argnums, argnames)
    targets = [DifferentiatedInput(n, node) for n, node in zip(names, call.nodes, strict=True)]
    return _examined(outputs, targets, reads, options, call.results)


def _nodes(out: Operand) -> list[Node]:
    leaves = [x for x in pytree.flatten(out)[0] if not isinstance(x, str | bytes | None)]
    return [x.node if isinstance(x, Handle) else constant(x) for x in leaves]


def _names(
    fun: Callable[..., Any] | np.ufunc | Derived,
    variables: Variables,
    argnums: Argnums,
    argnames: Any,
) -> list[str]:
    """The names of the chosen arguments, by the parameters of the function, with their paths."""
    signature = known_signature(fun)
    known = [] if signature is None else list(signature.parameters)
    keywords = [argnames] if isinstance(argnames, str) else list(argnames or ())
    numbers = [argnums] if isinstance(argnums, int | np.integer) else list(argnums)
    if keywords and argnums == 0:
        numbers = []
    positions = [known[k] if -len(known) <= k < len(known) else f"argument {k}" for k in numbers]
    chosen = [*positions, *keywords]
    paths = pytree.paths(variables.restore(range(len(variables.nodes))))
    return [re.sub(r"^\[(\d+)\]", lambda m: chosen[int(m[1])], paths[k]) for k in variables.slots]


def _of_graph(graph: Any, args: Any, kwargs: Any, options: Options) -> Findings:
    if not args and not kwargs and graph.inputs:
        targets = [
            DifferentiatedInput(n.name or f"input {k}", n)
            for k, n in enumerate(graph.inputs)
            if type(n) is Node
        ]
        return _examined(graph.outputs, targets, (), options, None)
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
    return _examined(outputs, targets, (), options, None)


def _handle(x: Any) -> Any:
    return x if isinstance(x, Handle) else wrap(constant(x))
