"""Looking and keeping: pictures, pages, costs, files; and whether two graphs are the same.

Thin methods over the packages that do it (rewrite, show, backends, keep), which know lists and not
this class.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from wengert._engine import rewrite
from wengert._engine import serialization as keep
from wengert._engine.core import graph as lists
from wengert._engine.core import graph_fingerprint
from wengert._engine.core.lazy_import import Late

from .pickle_support import reduced

if TYPE_CHECKING:
    from wengert._engine import visualization as show
    from wengert._engine.backends import cost_report
    from wengert._engine.backends.cost_report import Report

    from .graph import Graph
else:
    show = Late("wengert._engine.visualization")
    cost_report = Late("wengert._engine.backends.cost_report")


class Looking:
    """Mixin: what is done with a graph without changing it; and its simplest form."""

    def simplify(self, passes: Any = rewrite.DEFAULT, **options: Any) -> Graph:
        """The same function with fewer, cheaper and more accurate lines.

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
        return rewrite.simplify(cast("Graph", self), passes, **options)

    def equals(self, other: Any) -> bool:
        """Whether another graph says the same; see `wengert._engine.core.graph_fingerprint.equals`.

        Lines are compared by operation, parameters and operands (in either order where that does
        not matter), inputs by position, constants by value; names and source lines do not count.
        """
        return isinstance(other, lists.Graph) and graph_fingerprint.equals(self, other)

    def show(self, path: Any = None, **options: Any) -> Path | None:
        """Open the graph as a page to walk through; see `wengert.show.show_graph`."""
        return show.show_graph(cast(Any, self), path, **self._with_history(options))

    def _repr_html_(self) -> str:
        return show.repr_html(cast(Any, self), **self._with_history({}))

    def to_dot(self, **options: Any) -> str:
        """The graph in Graphviz's language; see `wengert.show.to_dot`."""
        return show.to_dot(self, **options)

    def to_svg(self, **options: Any) -> str:
        """A picture of a small graph; see `wengert.show.to_svg`."""
        return show.to_svg(self, **options)

    def report(self, sizes: Mapping[str, int] | None = None, **more: int) -> Report:
        """What a run costs, counted without running; see `wengert.backends.report`."""
        return cost_report.report(cast("Graph", self), sizes, **more)

    def save(self, file: Any, *, where: str | None = "name") -> None:
        """Write the graph to a file; see `wengert.save`. `wengert.load` reads it."""
        keep.save(self, file, where=where)

    def __reduce__(self) -> Any:
        return reduced(cast("Graph", self))

    def _with_history(self, options: dict[str, Any]) -> dict[str, Any]:
        history = getattr(self, "history", None)
        return options if history is None else {"history": history, **options}
