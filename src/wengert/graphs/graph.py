"""Graph: a Wengert list with everything that can be done with it.

A graph is itself a function: called with arrays it runs, called with tensors its lines are written
down again.  So transforming a graph is tracing the transformed function, and there is one engine.

    calling       here: run, write down again (calling.py: arguments and results)
    transforming  transforming.py: grad, vjp, jvp, vmap, jacobian, hessian, simplify
    parts         parts.py: ancestors, descendants, the flow between, sub-graphs
    changing      surgery.py: substitute, with_operation, copy
    finding       finding.py: unique names, select
    looking       here: show, to_dot, report, save
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ..backends import Executable, Report, report
from ..backends.base import Backend
from ..backends.base import backend as backend_of
from ..core import graph as lists
from ..core.dims import Dim
from ..core.equality import is_stopped
from ..core.handle import Handle, is_traced, shape_of, wrap
from ..core.node import CONSTANT, Constant, Leaf, Node
from ..core.params import substituted
from ..core.recording import no_grad, session
from ..core.sizes import solve
from ..core.tracing import derivation, record, size_value
from ..keep import save
from .calling import Signature, restored
from .finding import Finding
from .parts import Parts
from .surgery import Surgery
from .transforming import Transforming


class Graph(lists.Graph, Transforming, Parts, Surgery, Finding):
    """A Wengert list that can be called, transformed, taken apart, looked at and kept.

    Made by `wengert.trace`, by hand from `wengert.input` (then `Graph(outputs)`), or from tensors
    that have a history. Parameters and attributes are those of the list:

    Attributes
    ----------
    nodes : tuple of Node
        The lines, in an order in which they can be computed; ``graph[i]`` is line i.
    inputs, outputs : tuple of Node
        What is fed, and what is computed.
    variables : tuple of Node
        Leaves whose value belongs to a tensor, and is read whenever the graph runs.
    updates : dict
        For a variable's line the line that becomes its value after a run.

    Notes
    -----
    Nothing changes a graph: whatever transforms one returns another, sharing lines.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.input("x", shape=("n",))
    >>> graph = wg.Graph(np.sum(np.sin(x)))
    >>> float(graph(np.zeros(3))), graph.grad()(np.zeros(3))
    (0.0, array([1., 1., 1.]))
    """

    _executable: Executable | None = None

    @property
    def signature(self) -> Signature:
        """How the graph is called."""
        known = self.structure[0]
        if known is None:
            return Signature.flat([n.name or f"x{i}" for i, n in enumerate(self.inputs)])
        return known  # type: ignore[no-any-return]

    @property
    def __signature__(self) -> inspect.Signature:
        return self.signature.inspected()

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Values of the outputs: run on plain arrays, written down again on tensors."""
        values = self.signature.leaves(args, kwargs, f"the graph {self.name}")
        if self.is_open or any(isinstance(v, Handle) for v in values):
            return restored(self.structure[1], self.written_again(values))
        if self._executable is None:
            self._executable = Executable(self, backend_of("interpret"))
        return restored(self.structure[1], self._executable(values))

    @functools.cached_property
    def is_open(self) -> bool:
        """Whether recorded lines from outside take part, so that an outer derivative passes."""
        return any(n.extra is not None and "source" in n.extra for n in self.nodes)

    def run(self, *args: Any, backend: str | Backend = "interpret", **kwargs: Any) -> Any:
        """Values of the outputs, by a backend of choice; see `wengert.computation`."""
        values = self.signature.leaves(args, kwargs, f"the graph {self.name}")
        return restored(self.structure[1], Executable(self, backend_of(backend))(values))

    def written_again(self, values: Sequence[Any]) -> list[Any]:
        """The lines written down again with tensors in the place of the inputs.

        Parameters
        ----------
        values : sequence
            For each input a tensor, an array or a number.

        Returns
        -------
        list
            One tensor for each output.

        Raises
        ------
        ShapeError
            The shapes are not those the graph was built for.
        """
        sizes = self._sizes(values)
        known = session() is None and not any(map(is_traced, values))
        place: dict[Node, Any] = dict(zip(self.inputs, values, strict=True))
        with derivation(0) as stem:
            for node in self.nodes:
                if node in place:
                    continue
                if isinstance(node.op, Leaf):
                    place[node] = self._leaf(node, sizes)
                    continue
                stem.enter(node)
                stem.level = node.level
                op: Any = node.op
                params = substituted(node.params, sizes) if sizes else node.params
                args = [place[a] if isinstance(a, Node) else a for a in node.args]
                if args and is_stopped(node):
                    with no_grad():
                        place[node] = op(*args, **params)
                elif args:
                    place[node] = op(*args, **params)
                else:  # a creation: its value, where a graph is not being built
                    place[node] = op.run(**params) if known else record(op, args, params)
        return [place[n] for n in self.outputs]

    def _leaf(self, node: Node, sizes: Mapping[str, Any]) -> Any:
        if "size" in node.params:
            size = substituted(node.params["size"], sizes)
            return size_value(size) if isinstance(size, Dim) else size
        if node.op is CONSTANT and isinstance(node, Constant):
            return node.value  # plain, as the rules of operations knew it
        return wrap((node.extra or {}).get("source", node))

    def _sizes(self, values: Sequence[Any]) -> dict[str, Any]:
        pairs = [
            (length, number, f"axis {k} of {node.name or 'an input'}")
            for node, value in zip(self.inputs, values, strict=True)
            for k, (length, number) in enumerate(
                zip(node.spec.shape, shape_of(value), strict=len(node.spec.shape) > 0)
            )
            if isinstance(length, Dim)
        ]
        return solve(pairs) if pairs else {}

    # ---- looking and keeping -------------------------------------------------------------------

    def report(self, sizes: Mapping[str, int] | None = None, **more: int) -> Report:
        """What a run costs, counted without running; see `wengert.backends.report`."""
        return report(self, sizes, **more)

    def save(self, file: Any, *, where: str | None = "name") -> None:
        """Write the graph to a file; see `wengert.save`. `wengert.load` reads it."""
        save(self, file, where=where)
