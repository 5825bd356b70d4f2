"""Graph: a computation graph that can be called, transformed, changed, shown and saved.

A graph is a function: called with arrays, it runs; called with tensors, it records its nodes again.
So transformations are done by tracing the transformed function.

Nodes, their order, names and dependencies are in core/graph.py.  The methods here delegate to
transform.py, transform.py, transform.py and other packages.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wengert._engine import rewrite, serialization
from wengert._engine.autodiff import grad as gradients
from wengert._engine.autodiff import jacobians, jvp_vjp
from wengert._engine.backends import Executable
from wengert._engine.backends.registry import Backend
from wengert._engine.backends.registry import backend as backend_of
from wengert._engine.core import graph as core_graph
from wengert._engine.core import graph_fingerprint, pytree
from wengert._engine.core.graph import Item
from wengert._engine.core.graph_copies import inline_graph, with_placeholders
from wengert._engine.core.handle import Handle
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import INPUT, Node
from wengert._engine.core.op import Op
from wengert._engine.core.symbolic.dim import Dim

from .pytree_signature import Signature, Static, restored
from .transform import (
    argument_specs,
    batched,
    built,
    copied,
    output_specs,
    reduced,
    subgraph,
    substituted,
    traced,
    with_operation,
)

if TYPE_CHECKING:
    from wengert._engine import visualization
    from wengert._engine.backends import cost_report, interpreter_profile
    from wengert._engine.backends.cost_report import Report
    from wengert._engine.backends.interpreter_profile import NodeTimes
    from wengert._engine.core.types import Array
    from wengert._engine.rewrite.pass_manager import Passes
else:
    visualization = LazyModule("wengert._engine.visualization")
    cost_report = LazyModule("wengert._engine.backends.cost_report")
    interpreter_profile = LazyModule("wengert._engine.backends.interpreter_profile")


class Graph(core_graph.BaseGraph):
    """A computation graph (Wengert list) that can be called, transformed, edited, shown and saved.

    Made by `wengert.trace`, by hand from `wengert.input` (then `Graph(outputs)`), or from recorded
    tensors.

    Attributes
    ----------
    nodes : tuple of Node
        The nodes, in evaluation order; ``graph[i]`` is node i.
    inputs, outputs : tuple of Node
        The arguments and results.
    variables : tuple of Node
        Leaves that read the value of a tensor at each run.
    updates : dict
        For the node of each variable that is updated, the node of its value after a run.

    Notes
    -----
    Graphs are immutable: a transformation returns another graph, which shares nodes.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.input("x", shape=("n",))
    >>> graph = wg.Graph(np.sum(np.sin(x)))
    >>> float(graph(np.zeros(3))), graph.grad()(np.zeros(3))
    (0.0, array([1., 1., 1.]))
    """

    __module__ = "wengert"

    _executable: Executable | None = None

    @property
    def signature(self) -> Signature:
        """The signature of a call: containers of arguments and results."""
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

    def __getitem__(self, item: Any) -> Node:
        """A node by index or name; the method `node` also takes tensors and nodes."""
        return self.node(item) if isinstance(item, str) else super().__getitem__(item)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph on plain arrays, or record its nodes again on tensors."""
        values = self.signature.leaves(args, kwargs, f"the graph {self.name}")
        if self.is_open or any(isinstance(v, Handle) for v in values):
            return restored(self.structure[1], inline_graph(self, values))
        if self._executable is None:
            self._executable = Executable(with_placeholders(self), backend_of("interpret"))
        return restored(self.structure[1], self._executable(values))

    @functools.cached_property
    def is_open(self) -> bool:
        """Whether it depends on outer nodes: recorded ones, or those of an outer graph.

        Then a call records its nodes again, as part of outer derivatives and graphs.
        """
        fed = set(self.inputs)
        return any(
            (n.op is INPUT and n.is_traced and n not in fed)
            or (n.info is not None and n.info.source is not None)
            for n in self.leaves
        )

    def run(self, *args: Any, backend: str | Backend = "interpret", **kwargs: Any) -> Any:
        """Run the graph with a given backend; see `wengert.computation`."""
        values = self.signature.leaves(args, kwargs, f"the graph {self.name}")
        run = Executable(with_placeholders(self), backend_of(backend))
        return restored(self.structure[1], run(values))

    def profile(self, *args: Any, repeat: int = 5, **kwargs: Any) -> NodeTimes:
        """Measure the time of each node for given arguments; ``print`` the result.

        Parameters
        ----------
        *args, **kwargs
            Arguments of a call; plain arrays.
        repeat : int, default 5
            The number of runs, including updates; the minimum time of each node is used.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(lambda x: np.sum(np.exp(x)))(wg.spec("n"))
        >>> seen = graph.profile(np.ones(1000))
        >>> sorted(node.name for node in seen.nodes), seen.seconds > 0.0
        (['exp', 'sum'], True)
        """
        values = self.signature.leaves(args, kwargs, f"the graph {self.name}")
        return interpreter_profile.profile(self, values, repeat)

    # ---- transformations

    def grad(
        self,
        argnums: int | Sequence[int] = 0,
        *,
        argnames: str | Sequence[str] | None = None,
        unconnected: str = "zero",
    ) -> Graph:
        """The graph of the gradient with respect to some arguments; see `wengert.grad`.

        Parameters
        ----------
        argnums : int or sequence of int, default 0
        argnames : str or sequence of str, optional
            Inputs by name.
        unconnected : {"zero", "warn", "raise"}

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(lambda x, y: np.sum(x**2 * y))(wg.spec(3), wg.spec(3))
        >>> graph.grad(argnames="y")(np.array([1.0, 2.0, 3.0]), np.zeros(3))
        array([1., 4., 9.])
        """
        gradient = gradients.grad(self, argnums, argnames=argnames, unconnected=unconnected)
        return traced(self, gradient, "grad")

    def value_and_grad(
        self, argnums: int | Sequence[int] = 0, *, argnames: str | Sequence[str] | None = None
    ) -> Graph:
        """The graph of the value and the gradient; see `wengert.value_and_grad`."""
        function = gradients.value_and_grad(self, argnums, argnames=argnames)
        return traced(self, function, "value_and_grad")

    def jacobian(self, argnums: int | Sequence[int] = 0, *, mode: str = "auto") -> Graph:
        """The graph of the Jacobian; see `wengert.jacobian`."""
        return traced(self, jacobians.jacobian(self, argnums, mode=mode), "jacobian")

    def hessian(self, argnums: int | Sequence[int] = 0) -> Graph:
        """The graph of the Hessian; see `wengert.hessian`."""
        return traced(self, jacobians.hessian(self, argnums), "hessian")

    def vjp(self) -> Graph:
        """The graph from the inputs and a cotangent to the value and the pullback.

        Returns
        -------
        Graph
            ``(args, cotangents) -> (outputs, cotangents of the arguments)``.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(np.sin)(wg.spec(2)).vjp()
        >>> graph((np.zeros(2),), np.array([1.0, 10.0]))
        (array([0., 0.]), (array([ 1., 10.]),))
        """

        def value_and_cotangents(args: tuple[Array | Static, ...], cotangents: Array) -> Any:
            out, pull = jvp_vjp.vjp(self, *args)
            return out, pull(cotangents)

        specs = argument_specs(self)[0], output_specs(self)
        return built(self, value_and_cotangents, specs, {}, "vjp")

    def jvp(self) -> Graph:
        """The graph from the inputs and their tangents to the value and its tangent.

        Returns
        -------
        Graph
            ``(args, tangents) -> (outputs, tangents of the outputs)``.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(np.sin)(wg.spec(2)).jvp()
        >>> graph((np.zeros(2),), (np.array([1.0, 10.0]),))
        (array([0., 0.]), array([ 1., 10.]))
        """

        def value_and_tangent(
            args: tuple[Array | Static, ...], tangents: tuple[Array | None, ...]
        ) -> Any:
            return jvp_vjp.jvp(self, args, tangents)

        specs = argument_specs(self)[0]
        directions = pytree.tree_map(lambda x: None if isinstance(x, Static) else x, specs)
        return built(self, value_and_tangent, (specs, directions), {}, "jvp")

    def vmap(
        self,
        in_axes: int | tuple[int | None, ...] = 0,
        out_axes: int = 0,
        axis_size: int | str | Dim | None = None,
    ) -> Graph:
        """The graph applied to each element of a batch; see `wengert.vmap`.

        Parameters
        ----------
        in_axes, out_axes
            As in `wengert.vmap`.
        axis_size : int, str or Dim, optional
            The size of the batch; a string is a symbolic size. By default "rows", or "rows_2" and
            so on if the graph already has a size of that name.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(lambda x: np.sum(x * x))(wg.spec(3)).grad().vmap()
        >>> graph.inputs[0].spec.shape, graph(np.ones((2, 3))).shape
        ((Dim('rows'), 3), (2, 3))
        """
        return batched(self, in_axes, out_axes, axis_size)

    # ---- changed copies

    def subgraph(
        self, outputs: Item | Sequence[Item], inputs: Item | Sequence[Item] | None = None
    ) -> Graph:
        """The part of the graph that computes some nodes, as a graph.

        Parameters
        ----------
        outputs : node or sequence of nodes
            Its outputs.
        inputs : node or sequence of nodes, optional
            Its inputs, whose values are passed instead of computed; by default the inputs of this
            graph that are needed.

        Returns
        -------
        Graph
            Called with one value for each input, in the order given.

        Raises
        ------
        GraphError
            An output cannot be computed from the given inputs.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(lambda x: np.sum(np.sin(x)))(wg.spec(3))
        >>> tail = graph.subgraph("sum", inputs="sin")
        >>> float(tail(np.ones(3)))
        3.0
        """
        return subgraph(self, outputs, inputs)

    def substitute(self, replacements: Mapping[Item, Any]) -> Graph:
        """The graph with some nodes replaced.

        Parameters
        ----------
        replacements : mapping
            From a node (node, tensor, index or name) to its replacement: a tensor built from nodes
            of this graph or from `wengert.input`, an array, or a number.

        Returns
        -------
        Graph
            Replaced inputs are no longer arguments; new inputs come after the others.

        Raises
        ------
        ShapeError, DtypeError
            A node that uses the replaced one does not accept the replacement.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(lambda x, y: x * y)(1.0, 1.0)
        >>> float(graph.substitute({"y": 10.0})(3.0))
        30.0
        """
        return substituted(self, replacements)

    def with_operation(self, item: Item, op: str | Op, **params: Any) -> Graph:
        """The graph with another operation at a node, on the same operands.

        Parameters
        ----------
        item : node, tensor, index or name
        op : str or Op
            The operation, or its name in the registry.
        **params
            Its parameters; by default those of the replaced operation, which it must accept.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(lambda x: np.sum(np.sin(x)))(wg.spec(2))
        >>> float(graph.with_operation("sin", "cos")(np.zeros(2)))
        2.0
        """
        return with_operation(self, item, op, params)

    def copy(self) -> Graph:
        """A copy with new nodes and inputs; variables are shared."""
        return copied(self)

    def __copy__(self) -> Graph:
        return self.copy()

    def __deepcopy__(self, memo: dict[Any, Any]) -> Graph:
        return self.copy()

    # ---- simplification, comparison, display, files

    def simplify(self, passes: Passes = rewrite.DEFAULT, **options: Any) -> Graph:
        """The same function with fewer, cheaper and more accurate nodes.

        Parameters
        ----------
        passes, **options
            As in `wengert.rewrite.simplify`: ``verify=``, and ``history=True`` to keep the steps
            as ``graph.history``.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(lambda x: np.log(1.0 + x) * 1.0)(wg.spec(3)).simplify()
        >>> [node.op.name for node in graph]
        ['input', 'log1p']
        """
        return rewrite.simplify(self, passes, **options)

    def equals(self, other: Any) -> bool:
        """Whether another graph computes the same by equal nodes; see `wengert.rewrite.equals`.

        Nodes are compared by operation, parameters and operands (in either order if commutative),
        inputs by position, constants by value; names and source lines are ignored.
        """
        return isinstance(other, core_graph.BaseGraph) and graph_fingerprint.equals(self, other)

    def show(self, path: Any = None, **options: Any) -> Path | None:
        """Open the graph as an interactive page; see `wengert.show.show_graph`."""
        return visualization.show_graph(self, path, **self._with_history(options))

    def _repr_html_(self) -> str:
        return visualization.repr_html(self, **self._with_history({}))

    def to_dot(self, **options: Any) -> str:
        """The graph in Graphviz's DOT language; see `wengert.show.to_dot`."""
        return visualization.to_dot(self, **options)

    def to_svg(self, **options: Any) -> str:
        """A picture of a small graph; see `wengert.show.to_svg`."""
        return visualization.to_svg(self, **options)

    def report(self, sizes: Mapping[str, int] | None = None, **more: int) -> Report:
        """The estimated cost of a run; see `wengert.backends.report`."""
        return cost_report.report(self, sizes, **more)

    def save(self, file: Any, *, where: str | None = "name") -> None:
        """Write the graph to a file; see `wengert.save`. `wengert.load` reads it."""
        serialization.save(self, file, where=where)

    def __reduce__(self) -> Any:
        return reduced(self)

    def _with_history(self, options: dict[str, Any]) -> dict[str, Any]:
        history = getattr(self, "history", None)
        return options if history is None else {"history": history, **options}
