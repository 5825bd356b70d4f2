"""Graph: a Wengert list with everything that can be done with it.

A graph is itself a function: called with arrays it runs, called with tensors its lines are written
down again.  So transforming a graph is tracing the transformed function, and there is one engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..autodiff import transforms
from ..backends import Executable
from ..backends.base import backend as backend_of
from ..backends.executable import restored
from ..core import graph as lists
from ..core import tree
from ..core.handle import Handle, describe, wrap
from ..core.node import Leaf, Node
from ..core.tracing import derivation, record
from ..errors import StructureError, at, user_line


class Graph(lists.Graph):
    """A Wengert list with everything that can be done with it; see `core.graph.Graph`."""

    _executable: Executable | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Values of the outputs: run on plain arrays, written down again on tensors."""
        values = self._flat(args, kwargs)
        if any(isinstance(v, Handle) for v in values) or self._captured():
            return restored(self, self.inlined(values))
        if self._executable is None:
            self._executable = Executable(self, backend_of("interpret"))
        return restored(self, self._executable(values))

    def _captured(self) -> bool:
        return any("source" in (n.extra or {}) for n in self.nodes)

    def _flat(self, args: Any, kwargs: Any) -> list[Any]:
        fixed = self.structure[0]
        if fixed is None:
            return list(args)
        structure, dynamic = fixed
        leaves, given = tree.flatten((args, kwargs))
        if given != structure:
            raise StructureError(
                f"the graph {self.name} was built for {structure}, but was called with {given}"
                f"{at(user_line())}."
            )
        return [x for x, is_fed in zip(leaves, dynamic, strict=True) if is_fed]

    def inlined(self, values: Sequence[Any]) -> list[Any]:
        """Write the lines down again with `values` in the place of the inputs."""
        place: dict[Node, Any] = dict(zip(self.inputs, values, strict=True))
        with derivation(0) as stem:
            for node in self.nodes:
                if node in place:
                    continue
                if isinstance(node.op, Leaf):
                    source = (node.extra or {}).get("source", node)
                    place[node] = wrap(source)
                    continue
                stem.enter(node)
                stem.level = node.level
                op: Any = node.op
                args = [place[a] if isinstance(a, Node) else a for a in node.args]
                place[node] = op(*args, **node.params) if args else record(op, args, node.params)
        return [place[n] for n in self.outputs]

    def specs(self) -> Any:
        """The specs of the inputs, in the structure the graph is called with: args and kwargs."""
        return [n.spec for n in self.inputs]

    def grad(self, argnums: Any = 0) -> Graph:
        """The graph of the gradient; see `wengert.grad`."""
        return self._transformed(transforms.grad(self, argnums))

    def _transformed(self, fun: Callable[..., Any]) -> Graph:
        from .trace import trace

        args, kwargs = self._arguments()
        return trace(fun)(*args, **kwargs)

    def _arguments(self) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        if self.structure[0] is None:
            return tuple(n.spec for n in self.inputs), {}
        structure, dynamic = self.structure[0]
        specs = iter([n.spec for n in self.inputs])
        return tree.unflatten(structure, [next(specs) if d else None for d in dynamic])


def described(x: Any) -> Any:
    """The spec of what is given."""
    return describe(x)
