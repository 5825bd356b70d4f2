"""Graph: a Wengert list with everything that can be done with it.

A graph is itself a function: called with arrays it runs, called with tensors its lines are written
down again.  So transforming a graph is tracing the transformed function, and there is one engine.

    calling       here: run, profile (pytree_signature.py: arguments and results;
                  core/replay.py: on tensors)
    transforming  transform.py: grad, vjp, jvp, vmap, jacobian, hessian
    parts         subgraphs.py: ancestors, descendants, the flow between, sub-graphs
    changing      substitute.py: substitute, with_operation, copy
    finding       query.py: unique names, select (node_selectors.py: what a pattern means)
    looking       export.py: simplify, equals, show, to_dot, report, save
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from wengert._engine.backends import Executable
from wengert._engine.backends.registry import Backend
from wengert._engine.backends.registry import backend as backend_of
from wengert._engine.core import graph as lists
from wengert._engine.core.handle import Handle
from wengert._engine.core.lazy_import import Late
from wengert._engine.core.node import INPUT, Node
from wengert._engine.core.replay import fed_anywhere, written_again

from .export import Looking
from .pytree_signature import Signature, restored
from .query import Finding
from .subgraphs import Parts
from .substitute import Surgery
from .transform import Transforming

if TYPE_CHECKING:
    from wengert._engine.backends import interpreter_profile
    from wengert._engine.backends.interpreter_profile import Profile
else:
    interpreter_profile = Late("wengert._engine.backends.interpreter_profile")


class Graph(lists.Graph, Transforming, Parts, Surgery, Finding, Looking):
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

    __module__ = "wengert"

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

    def __getitem__(self, item: Any) -> Node:
        """A line by index or by name; `line` takes tensors and nodes too."""
        return self.line(item) if isinstance(item, str) else super().__getitem__(item)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Values of the outputs: run on plain arrays, written down again on tensors."""
        values = self.signature.leaves(args, kwargs, f"the graph {self.name}")
        if self.is_open or any(isinstance(v, Handle) for v in values):
            return restored(self.structure[1], written_again(self, values))
        if self._executable is None:
            self._executable = Executable(fed_anywhere(self), backend_of("interpret"))
        return restored(self.structure[1], self._executable(values))

    @functools.cached_property
    def is_open(self) -> bool:
        """Whether lines from outside take part: recorded ones, or those of an outer graph.

        Then a call writes the lines down again, so that outer derivatives and graphs see them.
        """
        fed = set(self.inputs)
        return any(
            (n.op is INPUT and n.is_traced and n not in fed)
            or (n.info is not None and n.info.source is not None)
            for n in self.leaves
        )

    def run(self, *args: Any, backend: str | Backend = "interpret", **kwargs: Any) -> Any:
        """Values of the outputs, by a backend of choice; see `wengert.computation`."""
        values = self.signature.leaves(args, kwargs, f"the graph {self.name}")
        run = Executable(fed_anywhere(self), backend_of(backend))
        return restored(self.structure[1], run(values))

    def profile(self, *args: Any, repeat: int = 5, **kwargs: Any) -> Profile:
        """How long each line takes for these arguments; ``print`` it.

        Parameters
        ----------
        *args, **kwargs
            As when it is called; plain arrays.
        repeat : int, default 5
            How many times it runs, updates included; the least time of each line counts.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(lambda x: np.sum(np.exp(x)))(wg.spec("n"))
        >>> seen = graph.profile(np.ones(1000))
        >>> sorted(line.name for line in seen.lines), seen.seconds > 0.0
        (['exp', 'sum'], True)
        """
        fed = self.signature.leaves(args, kwargs, f"the graph {self.name}")
        return interpreter_profile.profile(self, fed, repeat)
