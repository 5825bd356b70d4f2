"""Explain: what a function does, line by line, with notes on cost and derivatives.

The function is traced; if it cannot be traced (it branches on a value), one run of it is explained.

    explain    the public function; it returns an `Explanation` (findings.py)
"""

from __future__ import annotations

import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine import rewrite
from wengert._engine.autodiff.arguments import name_of
from wengert._engine.autodiff.tape import fresh
from wengert._engine.backends.registry import Backend
from wengert._engine.backends.registry import backend as backend_of
from wengert._engine.core import graph as core_graph
from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, describe, wrap
from wengert._engine.core.recording import enable_grad, note_lines
from wengert._engine.core.spec import Spec, is_inexact
from wengert._engine.core.trace_notes import collected
from wengert._engine.core.user_functions import signature_of
from wengert._engine.graphs.captures import captured_by
from wengert._engine.graphs.graph import Graph
from wengert._engine.graphs.trace import trace
from wengert.errors import BackendError, TraceError, at, user_line

from .findings import Explanation, Finding, unique
from .graph_notes import loop_costs, notes_on
from .slow_gradients import slow

if TYPE_CHECKING:
    from wengert._engine.autodiff.arguments import Derived
    from wengert._engine.core.types import Operand


def explain(
    fun: Any,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    simplify: bool = False,
    backend: str | Backend | None = None,
) -> Callable[..., Explanation]:
    """Return a function that explains what `fun` does for given arguments.

    Parameters
    ----------
    fun : callable or Graph
        A function of arrays; the nodes of a derivative, such as ``wg.grad(f)``, are distinguished
        by level. A graph is explained as it is, regardless of the arguments.
    static_argnums, static_argnames
        Arguments to pass on as they are, as in `trace`.
    simplify : bool, default False
        Also report the lines that `Graph.simplify` would change, and the rules.
    backend : str or Backend, optional
        Also describe how it runs the simplified graph, if it compiles ("llvm"): fused loops,
        library calls, buffers, bytes and operations (``program``).

    Returns
    -------
    callable
        ``explain(fun)(*args)`` takes arrays, of which only shape and dtype matter, or specs
        (`wengert.spec`), and returns an `Explanation`: print it, show it in a notebook, or read
        ``graph``, ``lines``, ``notes``, ``kinds``, ``flops``, ``bytes``.

    Raises
    ------
    TraceError
        `fun` cannot be traced, and specs were passed, with which it cannot be run.

    Notes
    -----
    Operations and bytes are estimates. The cost is that of a trace.

    See Also
    --------
    why : why a gradient is None, zero, NaN or slow.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> def f(x, w):
    ...     return np.sum(np.log(x) * w)
    >>> explanation = wg.explain(f)(np.ones(3, np.float32), np.ones(3))
    >>> [(note.kind, note.line) for note in explanation.notes]
    [('widened', 2)]
    >>> explanation.lines[-1].text
    'return np.sum(np.log(x) * w)'
    >>> wg.explain(f)(wg.spec("n"), 2.0).flops
    Dim('3*n')
    """

    def explained(*args: Any, **kwargs: Any) -> Explanation:
        """What the function does with these arguments."""
        if isinstance(fun, core_graph.BaseGraph):
            return _explanation(fun, simplify=simplify, backend=backend)
        more = _unguarded(fun)
        try:
            build = trace(fun, static_argnums=static_argnums, static_argnames=static_argnames)
            with collected() as decisions:
                graph = build(*args, **kwargs)
            more = [*more, *[Finding(d.kind, d.text, None, d.where) for d in decisions]]
            more += loop_costs(graph, _is_compiled(fun))
            return _explanation(graph, simplify=simplify, backend=backend, more=more)
        except TraceError as error:
            if any(isinstance(x, Spec) or _is_traced(x) for x in pytree.flatten((args, kwargs))[0]):
                raise
            graph = _run(fun, args, kwargs)
            more += loop_costs(graph, is_compiled=False)
            return _explanation(graph, str(error), more=more)

    return explained


def _is_compiled(fun: Any) -> bool:
    """Whether a function, or one that it wraps, is compiled."""
    while fun is not None:
        if hasattr(fun, "cache_info") and hasattr(fun, "lower"):
            return True
        fun = getattr(fun, "__wrapped__", None)
    return False


def _unguarded(fun: Any) -> list[Finding]:
    """Captured objects that `jit` can neither pass as inputs nor compare."""
    captured = captured_by(fun, (), lambda array: False)
    return [
        Finding(
            "captured",
            f"{name} is captured, but when a compiled function is called, it can neither be passed "
            f"as an input nor compared: {why}. Changes of it are not noticed; pass what is needed "
            "as an argument",
        )
        for name, why in captured.unguarded.items()
    ]


def _is_traced(x: Operand) -> bool:
    return isinstance(x, Handle) and x.node.is_traced


def _explanation(
    graph: core_graph.BaseGraph,
    reason: str = "",
    simplify: bool = False,
    backend: Any = None,
    more: Sequence[Finding] = (),
) -> Explanation:
    notes = [*more, *notes_on(graph), *slow(graph.outputs, wasted=1)]
    if simplify:
        notes += _rewrites(graph)
    program = None if backend is None else _program(graph, backend_of(backend))
    return Explanation(graph, unique(notes, limit=1000), reason, program)


def _program(graph: core_graph.BaseGraph, backend: Backend) -> Any:
    """A description of the simplified graph as compiled by a backend."""
    summarize = getattr(backend, "summarize", None)
    if summarize is None:
        raise BackendError(
            f"the backend {backend.name!r} does not compile programs. Use 'llvm'{at(user_line())}."
        )
    executed = rewrite.without_calls(graph)
    simplified = rewrite.simplify(executed)  # the program is freed with this graph
    return summarize(simplified)


def _rewrites(graph: core_graph.BaseGraph) -> list[Finding]:
    """The rules that simplifying would apply in each line of the program."""
    history: Any = rewrite.simplify(graph, history=True).history  # type: ignore[attr-defined]
    rules: dict[str | None, Counter[str]] = defaultdict(Counter)
    for step in history:
        for applied in step.applied:
            rules[applied.node.where][applied.rule] += 1
    return [
        Finding("simplify", ", ".join(f"{n} x {rule}" for rule, n in counts.items()), None, where)
        for where, counts in rules.items()
    ]


def _run(
    fun: Callable[..., Any] | Derived, args: tuple[Operand, ...], kwargs: dict[Any, Any]
) -> Graph:
    """The graph that one run of a function records."""
    bound = _signature(fun).bind(*args, **kwargs)
    leaves, structure = pytree.flatten(dict(bound.arguments))
    paths = pytree.paths(dict(bound.arguments))
    items = [_variable(x, path) for x, path in zip(leaves, paths, strict=True)]
    bound.arguments.update(pytree.unflatten(structure, items))
    with note_lines(), enable_grad(), np.errstate(all="ignore"):
        out = fun(*bound.args, **bound.kwargs)
    outputs = [x for x in pytree.flatten(out)[0] if describe(x) is not None]
    inputs = [x.node for x in items if isinstance(x, Handle) and x.node.op.aliasing.transparent]
    return Graph(*outputs, inputs=inputs, name=name_of(fun))


def _signature(fun: Callable[..., Any] | Derived) -> inspect.Signature:
    try:
        return signature_of(fun)
    except ValueError:  # a type or a C function without a signature
        return signature_of(lambda *args, **kwargs: None)


def _variable(x: Operand, path: str) -> Any:
    spec = describe(x)
    if not isinstance(spec, Spec) or isinstance(x, Handle) or not is_inexact(spec.dtype):
        return x
    node = fresh(x)
    node.note(name=re.sub(r"^\['(\w+)'\]", r"\1", path))
    return wrap(node)
