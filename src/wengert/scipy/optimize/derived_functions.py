"""Functions of a solver that are made from the graphs of the user's functions.

The user's functions are traced at each call, since what they capture may have changed.  Gradients,
conditions of a minimum and the like depend on their graphs alone: they are kept for equal graphs,
with captured values, and the numbers in them, as operands (implicit/lifted_constants.py).

    TracedFunctions   the user's functions as graphs, and functions made from these
    DerivedFunction   a derivative of one function of the unknowns
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from wengert._engine.core.handle import describe
from wengert._engine.core.recording import current_trace
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.implicit.kept_graphs import KeptGraphs
from wengert._engine.implicit.lifted_constants import with_lifted_constants

from .solver_operation import Function

# From functions of the unknowns, and the values that are shared, to another function.
Maker = Callable[[Sequence[Function], Sequence[Any]], Function]
_kept: KeptGraphs[GraphFunction] = KeptGraphs()


class TracedFunctions(NamedTuple):
    """Functions of the user as graphs, which have the same captured values.

    graphs : sequence of GraphFunction
    consts : list
        The captured values, then the values that are shared.
    shared : int
        The number of the latter; the graphs do not have them.
    name : str
    """

    graphs: Sequence[GraphFunction]
    consts: list[Any]
    shared: int
    name: str

    @classmethod
    def of(
        cls, functions: Sequence[Function], spec: Spec, name: str, shared: Sequence[Any] = ()
    ) -> TracedFunctions:
        """Trace functions of one argument.

        Parameters
        ----------
        functions : sequence of callable
        spec : Spec
            Of the argument.
        name : str
            For messages.
        shared : sequence
            Further values on which functions that are made from these depend.
        """
        of_leaves = [lambda *ys, f=f: [f(*ys)] for f in functions]
        graphs, consts = GraphFunction.traced_together(of_leaves, [spec], name)
        if current_trace() is None:
            bodies, values = with_lifted_constants([g.body for g in graphs], len(consts))
            consts = [*consts, *values]
            graphs = [GraphFunction(body, len(consts)) for body in bodies]
        return cls(graphs, [*consts, *shared], len(shared), name)

    def made(self, key: Hashable, make: Maker, spec: Spec) -> GraphFunction:
        """A function that is made from these, as a graph with all captured and shared values.

        Parameters
        ----------
        key : hashable
            Of everything else that the function depends on.
        make : callable
        spec : Spec
            Of its argument.
        """
        count = len(self.consts)
        own = count - self.shared
        shared = [describe(x) for x in self.consts[own:]]
        captured = self.graphs[0].body.inputs[:own] if self.graphs else []
        specs = [*[n.spec for n in captured], *shared, spec]

        def made(*xs: Any) -> list[Any]:
            given = [lambda y, f=f: f(xs[:own], [y])[0] for f in self.graphs]
            return [make(given, xs[own:count])(xs[-1])]

        def traced() -> GraphFunction:
            found = GraphFunction.traced_alone(made, specs, self.name)
            return GraphFunction(found.body, count)

        return _kept.get((key, spec, *shared, *self.graphs), traced)


class DerivedFunction(NamedTuple):
    """A function that is the derivative of another one of the unknowns.

    position : of the other among the functions.
    transform : from a function to its derivative.
    """

    position: int
    transform: Callable[[Function], Function]

    def traced(self, functions: Sequence[GraphFunction]) -> GraphFunction:
        """The graph, made from that of the other; it captures the same values."""
        given = functions[self.position]
        return _kept.get((given, self.transform), lambda: self._made(given))

    def _made(self, given: GraphFunction) -> GraphFunction:
        def derivative(*xs: Any) -> list[Any]:
            return [self.transform(lambda y: given(xs[:-1], [y])[0])(xs[-1])]

        specs = [n.spec for n in given.body.inputs]
        found = GraphFunction.traced_alone(derivative, specs, given.body.name)
        return GraphFunction(found.body, given.captured)
