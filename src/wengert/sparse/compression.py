"""Compressed evaluation: the entries of a sparse derivative from few passes, or from diagonals.

    read                the entries at some rows and columns
    divided             which nodes of a function are coupled, found once for shapes and dtypes
    Division            these, for a plan
    coupled_part        R, as a function of y and the arguments
    CompressionPasses   the seeds of both modes, and the positions of the entries in the results
    entries             the values of the entries, in order
    has_diagonals_only  whether entries are computed without passes, and none one by one
    summed_entries      those of a Hessian that is computed by elements

Diagonals are joined so that the entries of a row follow each other, and sliced or gathered.  Where
neighbors are far apart, or many derivatives belong to one entry, each is added to its entry
(coloring_and_order.py).

The part of a coupled node n is the Jacobian, with respect to y at y = x, of

    R(y)  =  J(x)^T  vjp_n(w(x); operands of n at y)

with its cotangent w and the Jacobian J of its operands at x: only the operands of coupled nodes
depend on y.  So the pattern and the colors are those of these nodes alone, however many entries
others have (element_hessians.py).

All passes of a mode are batched: traced once along a placeholder, and evaluated for all seeds
(_engine/autodiff/vmap.py).  Entries are then gathered at the positions of the plan.  All of it is
traced and compiled, so it runs as one native program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.arguments import DifferentiatedCall, zeros_like
from wengert._engine.autodiff.batch_graph import map_over_batch
from wengert._engine.autodiff.pullback import Result
from wengert._engine.autodiff.reverse import gathered, pullback
from wengert._engine.autodiff.tape import tape_between
from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec

from .coloring_and_order import summed_at
from .diagonal_entries import Piece, diagonals, middle
from .element_hessians import Curvature, DiagonalProduct, second_order, summed, weights_of
from .rule_context import Numbers, size_of
from .scattered_entries import Diagonal, Scattered

# ---- entries from diagonals --------------------------------------------------------------------


TIMES = 4  # diagonals that may be summed for an entry
RUNS = 32  # slices of consecutive entries; more are gathered one by one
CONSECUTIVE = 8  # mean length of runs of elements, below which each is added to its entry


def read(found: Sequence[Piece], rows: Numbers, columns: Numbers, width: int) -> Any:
    """The entries at some rows and columns, all of which are in the pattern.

    Parameters
    ----------
    found : sequence of Piece
    rows, columns : ndarray
        Positions of the entries; rows are numbered through all outputs.
    width : int
        The number of columns.

    Returns
    -------
    tensor, or None if there are no derivatives
    """
    if any(isinstance(d, Scattered) for piece in found for d in piece.diagonals):
        return _read_one_by_one(found, rows * width + columns, width)
    parts, keys, places = [], [], []
    down = start = 0
    for size, of_one in found:
        if not of_one:
            down += size
            continue
        ordered = sorted([d for d in of_one if isinstance(d, Diagonal)], key=middle)
        by = np.stack([d.by.ravel() for d in ordered], axis=-1)
        wide = lookup("stack")(*[d.dot for d in ordered], axis=-1)
        parts.append(lookup("reshape")(wide, shape=(-1,)))
        inside = np.flatnonzero(by.ravel() >= 0)
        keys.append((inside // len(ordered) + down) * width + by.ravel()[inside])
        places.append(inside + start)
        down, start = down + size, start + by.size
    if not parts:
        return None
    wanted = rows * width + columns
    values = _gathered(parts, np.concatenate(keys), np.concatenate(places), wanted)
    return _read_one_by_one(found, wanted, width) if values is None else values


def _read_one_by_one(found: Sequence[Piece], wanted: Numbers, width: int) -> Any:
    """The entries with some keys, as sums of all derivatives that have them."""
    parts = []
    down = 0
    for size, of_one in found:
        for d in of_one:
            at = np.arange(size) if isinstance(d, Diagonal) else d.at
            by = d.by.ravel()
            keys = np.where((by >= 0) & (at >= 0), (at + down) * width + by, -1)
            parts.append((keys, lookup("reshape")(d.dot, shape=(by.size,))))
        down += size
    return summed_at(parts, wanted)


def _gathered(parts: Sequence[Any], keys: Numbers, places: Numbers, wanted: Numbers) -> Any:
    """For each wanted key the sum of the elements that have it; None if another way is better."""
    order = np.argsort(keys, kind="stable")
    keys, places = keys[order], places[order]
    begin = np.searchsorted(keys, wanted, side="left")
    count = np.searchsorted(keys, wanted, side="right") - begin
    if count.min() < 1 or count.max() > TIMES:
        return None
    runs = np.count_nonzero(np.diff(places[begin]) != 1)
    if runs > RUNS and runs * CONSECUTIVE > len(wanted):
        return None
    values = _taken(parts, places[begin])
    several = np.flatnonzero(count > 1)
    if not several.size:
        return values
    total = values[several]
    for k in range(1, TIMES):
        more = np.flatnonzero(count[several] > k)
        if more.size:
            extra = _taken(parts, places[begin[several[more]] + k])
            if more.size < several.size:
                padded = np.zeros(several.size, np.int64)
                padded[more] = np.arange(more.size)
                extra = np.where(count[several] > k, extra[padded], 0.0)
            total = total + extra
    values = values.copy()
    values[several] = total
    return values


def _taken(parts: Sequence[Any], places: Numbers) -> Any:
    """The elements at some positions of concatenated arrays: slices, if they are few."""
    ends = np.cumsum([p.shape[0] for p in parts])
    part = np.searchsorted(ends, places, side="right")
    cuts = np.flatnonzero((np.diff(places) != 1) | (np.diff(part) != 0)) + 1
    if len(cuts) >= RUNS:
        return _joined(parts)[places]
    runs = []
    for run in np.split(places, cuts):
        k = int(np.searchsorted(ends, run[0], side="right"))
        first = int(run[0] - ends[k]) + parts[k].shape[0]
        whole = len(run) == parts[k].shape[0]
        runs.append(parts[k] if whole else parts[k][first : first + len(run)])
    return _joined(runs)


def _joined(parts: Sequence[Any]) -> Any:
    return lookup("concatenate")(*parts, axis=0) if len(parts) > 1 else parts[0]


# ---- coupled nodes of a Hessian ----------------------------------------------------------------


TERM = 3  # elementwise operations for a term of a product
PASS = 10  # elementwise operations of a pass for each node of the function
Caller = Callable[[Any, Any], DifferentiatedCall]


class Division(NamedTuple):
    """How the entries of a Hessian are computed.

    products : the number of products of diagonals that are added to entries.
    nodes : the number of nodes of which these are.
    coupled : operation and source line of each coupled node.
    """

    products: int
    nodes: int
    coupled: list[str]


def result_of(call: DifferentiatedCall) -> Result:
    """The value of a function whose first result is its value, the others its gradient."""
    outs, _ = pytree.flatten(call())
    return Result(outs[:1], call.nodes, call.variables)


def divided(call: DifferentiatedCall, passes: int) -> Division | None:
    """How a Hessian is divided; None if all of it is computed by passes, which is faster.

    Parameters
    ----------
    passes : int
        The number of passes for all of it.
    """
    result = result_of(call)
    found = second_order(result)
    if found is None or (found.coupled and not found.products):
        return None
    if found.terms * TERM > passes * len(result.tape.nodes) * PASS:
        return None
    return Division(len(found.products), found.nodes, [_named(n) for n in found.coupled])


def _named(node: Node) -> str:
    return f"{node.op.name} at {node.where}" if node.where else str(node.op.name)


def coupled_part(make: Caller) -> Callable[..., Any]:
    """The function R of a list of leaves y and the arguments of the function.

    Parameters
    ----------
    make : callable
        A call of the function, for ``args`` and ``kwargs``.
    """

    def part(y: Sequence[Any], /, *args: Any, **kwargs: Any) -> list[Any]:
        call = make(args, kwargs)
        result = result_of(call)
        found: Curvature | None = second_order(result)
        assert found is not None
        targets = [leaf.node for leaf in y]
        twin = _twins(result, _value_at(make(args, kwargs), y), targets)
        weights, masked = weights_of(result, found.coupled)
        pairs: list[tuple[Node, Any]] = []
        for node, weight in zip(found.coupled, weights, strict=True):
            if weight is None:
                continue
            at_x = {twin[a]: a for a in node.args_as_nodes() if a in twin}
            tape = tape_between([twin[node]], at_x, ends=True)
            seed, is_masked = {twin[node]: weight}, node in masked
            bars = pullback(seed, list(at_x), tape=tape, masked=is_masked)
            pairs += zip(at_x.values(), bars, strict=True)
        bars = result.pull(gathered(pairs))
        zeros = [zeros_like(n) for n in call.nodes]
        return [z if b is None else b for b, z in zip(bars, zeros, strict=True)]

    return part


def _value_at(call: DifferentiatedCall, y: Sequence[Any]) -> Node:
    """The node of the value, with other leaves in place of the variables."""
    leaf_of = dict(zip(call.nodes, y, strict=True))

    def leaf(x: Any) -> Any:
        return leaf_of.get(x.node, x) if isinstance(x, Handle) else x

    args, kwargs = pytree.tree_map(leaf, (tuple(call.args), call.kwargs))
    outs, _ = pytree.flatten(call.fun(*args, **kwargs))
    node: Node = outs[0].node
    return node


def _twins(result: Result, value: Node, targets: Sequence[Node]) -> dict[Node, Node]:
    """The nodes of a run with other leaves, by those of the first run."""
    twin: dict[Node, Node] = dict(zip(result.targets, targets, strict=True))
    inside = set(result.tape.nodes)
    open_pairs: list[tuple[Any, Any]] = [(result.out_nodes[0], value)]
    while open_pairs:
        node, other = open_pairs.pop()
        if node in twin:
            continue
        assert node.op is other.op
        twin[node] = other
        pairs = zip(node.args, other.args, strict=True)
        open_pairs += [(a, b) for a, b in pairs if isinstance(a, Node) and a in inside]
    return twin


# ---- passes ------------------------------------------------------------------------------------


Array = np.ndarray[Any, Any]
DERIVATIVES = 8  # derivatives of a node that are kept one by one, for each entry of the result


class CompressionPasses(NamedTuple):
    """The passes, and the positions of the entries in their results.

    forward, reverse : tangents of all inputs, and cotangents of all outputs, one row per pass.
    positions : of each entry in the flattened results of the forward passes followed by those of
        the reverse passes.
    rows, columns : of the entries.
    symmetric : whether it is a Hessian, and the first output of the function its value.
    limit : the number of diagonals of a node up to which entries are computed by diagonals.
    """

    forward: Array
    reverse: Array
    positions: Array
    rows: Array
    columns: Array
    symmetric: bool
    limit: int


def entries(
    call: DifferentiatedCall,
    passes: CompressionPasses,
    in_specs: Sequence[Spec],
    out_specs: Sequence[Spec],
) -> tuple[Any, bool]:
    """The values of the entries, for one call of the function; whether they took passes."""
    outs, _ = pytree.flatten(call())
    dtype = np.result_type(*[s.dtype for s in (*in_specs, *out_specs)], np.float16)
    if not passes.positions.size:
        return np.zeros(0, dtype), False
    if passes.symmetric:
        outs = outs[1:]
    result = Result(outs, call.nodes, call.variables)
    values = _without_passes(result, passes, in_specs, out_specs, DERIVATIVES * len(passes.rows))
    if values is not None:
        return values, False

    def push(*dots: Any) -> list[Any]:
        return result.push(dots)

    lines = set(result.tape.nodes)
    live = [n if n in lines else None for n in result.out_nodes]

    def pull(*bars: Any) -> list[Any]:
        return result.pull(gathered(zip(live, bars, strict=True)))

    parts = []
    if len(passes.forward):
        parts.append(_batched(push, passes.forward, in_specs, out_specs))
    if len(passes.reverse):
        parts.append(_batched(pull, passes.reverse, out_specs, in_specs))
    flat = lookup("concatenate")(*parts, axis=0) if len(parts) > 1 else parts[0]
    return flat[passes.positions], True


def has_diagonals_only(
    call: DifferentiatedCall,
    passes: CompressionPasses,
    in_specs: Sequence[Spec],
    out_specs: Sequence[Spec],
) -> bool:
    """Whether the entries of a Hessian are diagonals of the gradient, none kept one by one."""
    outs, _ = pytree.flatten(call())
    result = Result(outs[1:], call.nodes, call.variables)
    return _without_passes(result, passes, in_specs, out_specs, 0) is not None


def _without_passes(
    result: Result,
    passes: CompressionPasses,
    in_specs: Sequence[Spec],
    out_specs: Sequence[Spec],
    most: int,
) -> Any:
    """The values of the entries by diagonals; None if they take passes."""
    if not passes.limit:
        return None
    found = diagonals(result, [size_of(s) for s in out_specs], passes.limit, most)
    if found is None:
        return None
    width = sum(size_of(s) for s in in_specs)
    return read(found, passes.rows, passes.columns, width)


def summed_entries(
    call: DifferentiatedCall,
    passes: CompressionPasses,
    in_specs: Sequence[Spec],
    out_specs: Sequence[Spec],
    rest: Sequence[DiagonalProduct],
) -> Any:
    """The values of the entries of a Hessian that is computed by elements; `rest` is added."""
    curvature = second_order(result_of(call))
    assert curvature is not None
    width = sum(size_of(s) for s in in_specs)
    dtype = np.result_type(*[s.dtype for s in (*in_specs, *out_specs)], np.float16)
    return summed([*curvature.products, *rest], passes.rows, passes.columns, width, dtype)


def _batched(
    linear: Callable[..., list[Any]], seeds: Array, given: Sequence[Spec], back: Sequence[Spec]
) -> Any:
    """The flattened results for all seeds, seed by seed."""
    count = len(seeds)
    ends = accumulate([s.size for s in given], initial=0)
    columns = [
        seeds[:, first : first + s.size].reshape(count, *s.shape).astype(s.dtype)
        for first, s in zip(ends, given, strict=False)
    ]
    made = []
    for (value, batched), spec in zip(
        map_over_batch(linear, columns, count, "the pass"), back, strict=True
    ):
        if value is None:
            value = np.zeros((count, spec.size), spec.dtype)
        elif not batched:
            value = lookup("broadcast_to")(value, shape=(count, *shape_of(value)))
        made.append(lookup("reshape")(value, shape=(count, spec.size)))
    wide = made[0] if len(made) == 1 else lookup("concatenate")(*made, axis=1)
    return lookup("reshape")(wide, shape=(-1,))
