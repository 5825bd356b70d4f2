"""Plan: the pattern, the coloring and the compiled function for given argument shapes.

Tracing, the pattern and its coloring cost far more than the derivative itself; a plan stores them,
with the compiled function from arguments to entries.

    Plan        pattern, passes, and ``values``
    planned     the plan for some arguments
    traced      the graph of a function, and which of its inputs are differentiated
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.arguments import DifferentiatedCall
from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import describe, wrap
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import Changes
from wengert._engine.core.spec import Spec
from wengert._engine.graphs import Graph
from wengert._engine.graphs.captures import Captured, captured_by
from wengert._engine.graphs.tracing_session import built, parameter_names
from wengert._engine.jit import jit
from wengert._engine.jit.call_signature import is_object
from wengert._engine.jit.compiled_graph import traced_without_draws
from wengert.errors import NotDifferentiableError, StructureError, at, user_line

from . import compression
from .coloring_and_order import (
    Coloring,
    EntryOrder,
    Given,
    Positions,
    bidirectional_coloring,
    color_columns,
    least,
)
from .element_hessians import DiagonalProduct
from .propagation import dependence
from .rule_context import Sets, turned, united

# From this number of products on, diagonals of the gradient are preferred where it has them: wide
# stencils, whose diagonals are slices that are summed before they are stored.
MANY_PRODUCTS = 13


class TracedFunction(NamedTuple):
    """The traced graph of a function.

    pattern : which elements of the outputs depend on which of the inputs.
    ins, outs : specs of the differentiated leaves, and of the results.
    restore : from a list of blocks, in the order of `ins`, to the caller's result.
    structure : of the results.
    guards : other state that it was traced for, such as the mode of a module.
    captured : captured values of the function, compared at each call.
    graph : called instead of the function, whose closure may have changed.
    """

    pattern: Sets
    ins: list[Spec]
    outs: list[Spec]
    restore: Callable[[list[Any]], Any]
    structure: Any
    guards: list[tuple[Callable[[], Any], Any]]
    captured: Captured
    graph: Graph

    def is_valid(self) -> bool:
        """Whether that state is unchanged."""
        return all(ask() == answer for ask, answer in self.guards)


class Plan:
    """The pattern of a sparse derivative, and how its entries are computed; made by `plan`.

    Attributes
    ----------
    shape : tuple of int
        The number of output elements and of input elements.
    rows, cols : ndarray
        The position of each entry, in the order of ``values``.
    indptr, indices : ndarray
        The entries that are computed in compressed rows, columns in order; in compressed columns
        with ``order="csc"``.
    mode : {"fwd", "rev", "both"}
    passes : int
        The number of tangents and cotangents that are propagated for all entries, where they are
        not computed directly (see `explain`).
    values : callable
        The compiled function from the arguments to the vector of all entries, row by row or in the
        order that was asked for. In a graph its nodes become nodes of that graph, so it can be
        differentiated.
    """

    def __init__(
        self,
        given: Given,
        found: TracedFunction,
        coloring: Coloring,
        mode: str,
        specs: tuple[Any, Any],
        parts: HessianParts | None = None,
    ) -> None:
        pattern = found.pattern
        self.shape: tuple[int, int] = pattern.shape
        few = max(*pattern.shape, pattern.nnz) < 1 << 31  # SciPy's solvers need 32-bit indices
        kind = np.int32 if few else np.int64
        order = given.order or EntryOrder("csr", None, None, None, given.what)
        positions = order.positions(pattern)
        self._empty = order.empty(positions, self.shape, kind)
        self.rows, self.cols = positions.rows.astype(kind), positions.cols.astype(kind)
        by_rows = self._empty.tocsr() if order.order == "coo" else self._empty
        self.indptr, self.indices = by_rows.indptr, by_rows.indices
        self.coloring, self.passes = coloring, coloring.passes
        self.mode = "both" if len(coloring.rows) and not given.symmetric else mode
        self._found, self._seen = found, Changes.count
        passes = _passes(positions, pattern.shape, coloring, mode, given)
        given = given._replace(fun=found.graph)
        self._parts, self._specs, self._what = parts, specs, given.what
        self._given, self._passes = given, passes
        self._by_passes: bool | None = None  # not known before the entries have been traced

        def values(*args: Any, **kwargs: Any) -> Any:
            call = given.call(args, kwargs)
            if parts is None:
                some, self._by_passes = compression.entries(call, passes, found.ins, found.outs)
            else:
                rest = parts.coupled_products(call, args, kwargs)
                some = compression.summed_entries(call, passes, found.ins, found.outs, rest)
            return some if positions.inside is None else _widened(some, positions)

        values.__name__ = f"values of {given.what}"
        self.values: Callable[..., Any] = jit(values)

    def is_valid(self) -> bool:
        """Whether the captured values are unchanged."""
        if self._found.captured.arrays() is None:
            return False
        if self._seen != Changes.count:
            if not self._found.is_valid():
                return False
            self._seen = Changes.count
        return True

    def rebase(self) -> None:
        """Use the present lengths of captured containers from now on."""
        self._found.captured.rebase()

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return len(self.rows)

    def matrix(self, values: Any, format: str = "csr") -> Any:
        """The matrix with these entries; blocks in containers if arguments or results are.

        With ``triangle`` it has the entries of that triangle only.

        Parameters
        ----------
        values : ndarray
            The result of `values`.
        format : {"csr", "csc", "coo"}
        """
        whole = copy.copy(self._empty)  # a third of the time of making one
        whole.data = values
        # A copy of the pattern, which methods like eliminate_zeros modify.
        if whole.format == "coo":
            whole.coords = tuple([c.copy() for c in whole.coords])
        else:
            whole.indices, whole.indptr = self.indices.copy(), self.indptr.copy()
        ins, outs = self._found.ins, self._found.outs
        if len(ins) == len(outs) == 1:
            rows = [[whole]]
        else:
            whole = whole if self._empty.format == "csr" else whole.tocsr()
            across = list(accumulate([s.size for s in ins], initial=0))
            down = list(accumulate([s.size for s in outs], initial=0))
            rows = [
                [whole[down[i] : down[i + 1], across[k] : across[k + 1]] for k in range(len(ins))]
                for i in range(len(outs))
            ]
        made = [self._found.restore([block.asformat(format) for block in row]) for row in rows]
        return pytree.unflatten(self._found.structure, made)

    def explain(self) -> str:
        """How the entries are computed, as text.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> hess = wg.sparse_hessian(lambda x: np.sum(np.sin(x[1:] * x[:-1])))
        >>> print(hess.plan(np.ones(5)).explain())
        sparse_hessian of <lambda>: 5 x 5, 13 entries
          2 nodes by elements: 3 products of diagonals, each added to its entry
        """
        lines = [f"{self._what}: {self.shape[0]} x {self.shape[1]}, {self.nnz} entries"]
        if self._parts is None:
            return "\n".join([*lines, f"  {self._method()}"])
        division, coupled = self._parts
        lines.append(
            f"  {_counted(division.nodes, 'node')} by elements: "
            f"{_counted(division.products, 'product')} of diagonals, each added to its entry"
        )
        if coupled is not None:
            lines.append(
                f"  {_counted(len(division.coupled), 'coupled node')}, {coupled.nnz} entries "
                + coupled._method()
            )
            lines += [f"    {name}" for name in division.coupled]
        return "\n".join(lines)

    def takes_passes(self) -> bool:
        """Whether entries that are not computed by elements take passes."""
        if self._by_passes is None:
            built(Graph, self.values, *self._specs)
        return bool(self._by_passes)

    def has_diagonals_only(self) -> bool:
        """Whether the entries of a Hessian are diagonals of the gradient."""
        found: list[bool] = []

        def probed(*args: Any, **kwargs: Any) -> Any:
            call = self._given.call(args, kwargs)
            ins, outs = self._found.ins, self._found.outs
            found.append(compression.has_diagonals_only(call, self._passes, ins, outs))
            return call.args

        built(Graph, probed, *self._specs)
        return found[-1]

    def _method(self) -> str:
        """How the entries are computed, if not by elements."""
        if self.takes_passes():
            return f"by passes: {self.passes}, mode {self.mode}"
        return "by diagonals, without passes"

    def pattern(self) -> Any:
        """The pattern as a matrix of True."""
        return self.matrix(np.ones(self.nnz, np.bool_))

    def __repr__(self) -> str:
        return (
            f"<plan of {self.shape[0]} x {self.shape[1]}, {self.nnz} entries by {self.passes} "
            f"passes, {self.mode}>"
        )


def traced(given: Given, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TracedFunction:
    """The graph of the function for specs, and the pattern of its derivative."""
    calls: list[DifferentiatedCall] = []

    def probed(*args: Any, **kwargs: Any) -> Any:
        call = given.call(args, kwargs)
        calls.append(call)
        out = converted(given.fun)(*args, **kwargs)
        # A Hessian is that of the first, the Jacobian of the second.
        structures.append(pytree.flatten(out[1] if given.symmetric else out))
        return out

    structures: list[Any] = []
    names = parameter_names(given.fun, len(args))
    captured = captured_by(given.fun, _objects(args, kwargs), lambda array: False)
    captured.objects = {}

    def trace() -> tuple[Graph, list[Any]]:
        guards: list[Any] = []
        return built(Graph, probed, args, kwargs, names=names, guards=guards), guards

    leaves = pytree.flatten((args, kwargs))[0]
    graph, guards = traced_without_draws(given.fun, leaves, trace)
    captured.rebase()
    variables, single = calls[-1].variables, calls[-1].single
    outs, structure = structures[-1]
    specs = [describe(o) for o in outs]
    for out, spec in zip(outs, specs, strict=True):
        if not isinstance(spec, Spec):
            raise StructureError(
                f"{given.what}: it returned a {type(out).__name__}, which has no derivative. "
                f"Return arrays{at(user_line())}."
            )
    inputs = [variables.leaves[k].node for k in variables.slots]

    def restore(blocks: list[Any]) -> Any:
        trees = variables.restore(blocks)
        return trees[0] if single else trees

    pattern = dependence(graph, inputs, first=int(given.symmetric))
    ins = [n.spec for n in inputs]
    return TracedFunction(pattern, ins, specs, restore, structure, guards, captured, graph)


def _objects(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """The leaves that are passed on unchanged."""
    leaves = enumerate(pytree.flatten((args, kwargs))[0])
    return [(f"argument {k}", x) for k, x in leaves if describe(x) is None and is_object(x)]


def planned(given: Given, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan:
    """The plan for arguments, of which only shapes and dtypes matter."""
    found = traced(given, args, kwargs)
    specs = args, kwargs
    if given.symmetric and not any(s.dtype.kind == "c" for s in found.ins):
        both = united([found.pattern, turned(found.pattern)])
        coloring = bidirectional_coloring(both, symmetric=True)
        parts = _parts(given, found, coloring.passes, args, kwargs) if both.nnz else None
        found = found._replace(pattern=both)
        if parts is not None and parts.division.products >= MANY_PRODUCTS:
            direct = Plan(given, found, coloring, "fwd", specs)
            if direct.has_diagonals_only():
                return direct
        return Plan(given, found, coloring, "fwd", specs, parts)
    mode = _mode(given, found)
    across = turned(found.pattern)
    if mode == "fwd":
        return Plan(given, found, color_columns(found.pattern), mode, specs)
    if mode == "rev":
        return Plan(given._replace(mode=mode), found, color_columns(across), mode, specs)
    columns = bidirectional_coloring(found.pattern)
    if least(across) < columns.passes:
        rows = bidirectional_coloring(across)
        if rows.passes < columns.passes:
            return Plan(given, found, rows, "rev", specs)
    return Plan(given, found, columns, "fwd", specs)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


class HessianParts(NamedTuple):
    """How a Hessian is divided, and the plan for the part of its coupled nodes, if it has some."""

    division: compression.Division
    coupled: Plan | None

    def coupled_products(
        self, call: DifferentiatedCall, args: Any, kwargs: Any
    ) -> list[DiagonalProduct]:
        """The entries of that part."""
        if self.coupled is None:
            return []
        plan = self.coupled
        y = [wrap(node.args[0]) for node in call.nodes]
        value = plan.values(y, *args, **kwargs)
        rows, cols = plan.rows.astype(np.int64), plan.cols.astype(np.int64)
        return [DiagonalProduct(rows, cols, value, False)]


def _parts(
    given: Given, found: TracedFunction, passes: int, args: Any, kwargs: Any
) -> HessianParts | None:
    """The parts of a Hessian; None if all of it is computed by passes."""
    on_graph = given._replace(fun=found.graph)
    divisions: list[compression.Division | None] = []

    def probed(*args: Any, **kwargs: Any) -> Any:
        call = on_graph.call(args, kwargs)
        divisions.append(compression.divided(call, passes))
        return call.args

    built(Graph, probed, args, kwargs, names=parameter_names(given.fun, len(args)))
    division = divisions[-1]
    if division is None or not division.coupled:
        return None if division is None else HessianParts(division, None)
    lower = EntryOrder("csr", None, None, "lower", given.what)
    part = Given(compression.coupled_part(on_graph.call), 0, None, "auto", False, given.what, lower)
    return HessianParts(division, planned(part, (found.ins, *args), kwargs))


def _mode(given: Given, found: TracedFunction) -> str:
    """The requested mode, or the one that complex numbers allow."""
    from_complex = [s.dtype.kind == "c" for s in found.ins]
    to_complex = [s.dtype.kind == "c" for s in found.outs]
    if not any(from_complex) and not any(to_complex):
        return given.mode
    if any(to_complex):
        only, why = "fwd", "results are complex"
    else:
        only, why = "rev", "arguments are complex and results real"
    mixed = any(from_complex) and any(to_complex) and not all(to_complex)
    if mixed or given.mode not in ("auto", only):
        raise NotDifferentiableError(
            f"{given.what}: {why}{', some of them,' if mixed else ''} so it cannot be computed in "
            f"mode={given.mode!r}. "
            + ("Return the real ones" if mixed else f'Use mode="{only}"')
            + f"{' from a function of their own' if mixed else ''}{at(user_line())}."
        )
    return only


def _passes(
    positions: Positions, shape: tuple[int, int], coloring: Coloring, mode: str, given: Given
) -> compression.CompressionPasses:
    """The seeds, and the position of each entry in the results.

    `coloring` is of the columns, for forward mode, or of the rows, for reverse mode; rows set apart
    are computed in the other mode, or, for a symmetric matrix, in the same one.
    """
    rows, columns = positions.in_pattern()
    limit = 0 if given.mode == "rev" else 2 * coloring.passes + 2
    i, j, (down, across) = rows, columns, shape
    if mode == "rev":
        i, j, down, across = j, i, across, down
    # From here on columns have colors, and rows may be set apart.
    count, alone = coloring.number, len(coloring.rows)
    number = np.full(max(down, across), -1, np.int64)
    number[coloring.rows] = np.arange(alone)
    seeds = np.zeros((count, across))
    some = np.flatnonzero(coloring.colors >= 0)
    seeds[coloring.colors[some], some] = 1.0
    units = np.zeros((alone, across if given.symmetric else down))
    units[np.arange(alone), coloring.rows] = 1.0
    places = coloring.colors[j] * down + i
    if given.symmetric:
        places = np.where(number[j] >= 0, (count + number[j]) * down + i, places)
        places = np.where(number[i] >= 0, (count + number[i]) * down + j, places)
        return compression.CompressionPasses(
            np.concatenate([seeds, units]), units[:0], places, rows, columns, True, limit
        )
    by_themselves = number[i] * across + j
    if mode == "fwd":  # rows set apart come second
        places = np.where(number[i] >= 0, count * down + by_themselves, places)
        return compression.CompressionPasses(seeds, units, places, rows, columns, False, limit)
    places = np.where(number[i] >= 0, by_themselves, alone * across + places)
    return compression.CompressionPasses(units, seeds, places, rows, columns, False, limit)


def _widened(some: Any, positions: Positions) -> Any:
    """All entries, from those that are in the pattern."""
    place = np.full(len(positions.rows), len(some))
    place[positions.inside] = np.arange(len(some))
    zero = np.zeros(1, some.dtype)
    return lookup("concatenate")(some, zero, axis=0)[place]
