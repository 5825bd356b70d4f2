"""Transforming: graph to graph, by tracing the transformed function.

Each method is the function of the same name applied to the graph, which is a function, traced for
the specs of its inputs.  So derivatives of any order are graphs again, with levels that say which.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from wengert._engine.autodiff import grad as transforms
from wengert._engine.autodiff import jacobians, jvp_vjp
from wengert._engine.autodiff.vmap import axes_of_arguments, vmap
from wengert._engine.core import pytree
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Dim, names_in
from wengert._engine.core.symbolic.parsing import dim
from wengert.errors import ShapeError, at, user_line

from .pytree_signature import Static, restored
from .tracing_session import built

if TYPE_CHECKING:
    from .graph import Graph


class Transforming:
    """Mixin: derivatives of a graph, as graphs."""

    def grad(
        self,
        argnums: int | Sequence[int] = 0,
        *,
        argnames: str | Sequence[str] | None = None,
        unconnected: str = "zero",
    ) -> Graph:
        """The graph of the gradient by some arguments; see `wengert.grad`.

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
        made = transforms.grad(cast(Any, self), argnums, argnames=argnames, unconnected=unconnected)
        return self._traced(made, "grad")

    def value_and_grad(
        self, argnums: int | Sequence[int] = 0, *, argnames: str | Sequence[str] | None = None
    ) -> Graph:
        """The graph of the value and the gradient; see `wengert.value_and_grad`."""
        made = transforms.value_and_grad(cast(Any, self), argnums, argnames=argnames)
        return self._traced(made, "value_and_grad")

    def jacobian(self, argnums: int | Sequence[int] = 0, *, mode: str = "auto") -> Graph:
        """The graph of the Jacobian; see `wengert.jacobian`."""
        return self._traced(jacobians.jacobian(cast(Any, self), argnums, mode=mode), "jacobian")

    def hessian(self, argnums: int | Sequence[int] = 0) -> Graph:
        """The graph of the Hessian; see `wengert.hessian`."""
        return self._traced(jacobians.hessian(cast(Any, self), argnums), "hessian")

    def vjp(self) -> Graph:
        """The graph that takes the inputs, then a cotangent, and gives value and pullback.

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

        def pulled(args: Any, cotangents: Any) -> Any:
            out, pull = jvp_vjp.vjp(cast(Any, self), *args)
            return out, pull(cotangents)

        return self._built(pulled, (self._argument_specs(), self._output_specs()), {}, "vjp")

    def jvp(self) -> Graph:
        """The graph that takes the inputs, then a tangent for each, and gives value and tangent.

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

        def pushed(args: Any, tangents: Any) -> Any:
            return jvp_vjp.jvp(cast(Any, self), args, tangents)

        specs = self._argument_specs()
        directions = pytree.tree_map(lambda x: None if isinstance(x, Static) else x, specs)
        return self._built(pushed, (specs, directions), {}, "jvp")

    def vmap(
        self, in_axes: Any = 0, out_axes: Any = 0, axis_size: int | str | Dim | None = None
    ) -> Graph:
        """The graph that does for many rows at once what this does for one; see `wengert.vmap`.

        Parameters
        ----------
        in_axes, out_axes
            As in `wengert.vmap`.
        axis_size : int, str or Dim, optional
            The number of rows; a name stands for any. By default "rows", or "rows_2" and so on if
            that is a size of the graph already.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(lambda x: np.sum(x * x))(wg.spec(3)).grad().vmap()
        >>> graph.inputs[0].spec.shape, graph(np.ones((2, 3))).shape
        ((Dim('rows'), 3), (2, 3))
        """
        graph = cast("Graph", self)
        what = f"vmap of {graph.name}"
        args, kwargs = graph.signature.arguments([n.spec for n in graph.inputs])
        leaves, structure = pytree.flatten((args, kwargs))
        axes = axes_of_arguments(in_axes, args, kwargs, len(leaves), what)
        size = dim(_new_name(graph)) if axis_size is None else _rows(axis_size, what)
        wide = [_widened(s, axis, size, what) for s, axis in zip(leaves, axes, strict=True)]
        args, kwargs = pytree.unflatten(structure, wide)
        made = vmap(graph, in_axes, out_axes)
        return self._built(made, args, kwargs, "vmap", graph.signature.names)

    # ---- what they share -----------------------------------------------------------------------

    def _traced(self, fun: Callable[..., Any], what: str) -> Graph:
        graph = cast("Graph", self)
        args, kwargs = graph.signature.arguments([n.spec for n in graph.inputs])
        return self._built(fun, args, kwargs, what, graph.signature.names)

    def _built(self, fun: Any, args: Any, kwargs: Any, what: str, names: Any = None) -> Graph:
        graph = cast("Graph", self)
        return built(type(graph), fun, args, kwargs, names=names, name=f"{what} of {graph.name}")

    def _argument_specs(self) -> tuple[Any, ...]:
        graph = cast("Graph", self)
        return graph.signature.arguments([n.spec for n in graph.inputs])[0]

    def _output_specs(self) -> Any:
        graph = cast("Graph", self)
        return restored(graph.structure[1], [n.spec for n in graph.outputs])


def _rows(size: Any, what: str) -> Any:
    if isinstance(size, str):
        return dim(size)
    if isinstance(size, Dim) or (isinstance(size, int | np.integer) and size >= 0):
        return size if isinstance(size, Dim) else int(size)
    raise ShapeError(
        f"{what}: axis_size={size!r} is no number of rows: a whole number, or a name"
        f"{at(user_line())}."
    )


def _new_name(graph: Graph) -> str:
    """A name for a number of rows that is no size of the graph yet."""
    taken = names_in([d for n in graph.inputs for d in n.spec.shape])
    names = itertools.chain(["rows"], (f"rows_{k}" for k in itertools.count(2)))
    return next(name for name in names if name not in taken)


def _widened(spec: Any, axis: int | None, size: Any, what: str) -> Any:
    """The spec of many rows, from that of one."""
    if axis is None or not isinstance(spec, Spec):
        return spec
    ndim = spec.ndim + 1
    if not -ndim <= axis < ndim:
        raise ShapeError(f"{what}: {spec} with rows has no axis {axis}{at(user_line())}.")
    shape = list(spec.shape)
    shape.insert(axis % ndim, size)
    return Spec(tuple(shape), spec.dtype)
