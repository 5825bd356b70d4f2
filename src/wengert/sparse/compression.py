"""Compressed evaluation: the entries of a sparse derivative from as few passes as there are colors.

All passes of a mode are batched: traced once along a placeholder, and evaluated for all seeds
(_engine/autodiff/vmap.py).  Entries are then gathered at the positions of the plan.  All of it is
traced and compiled, so it runs as one native program.

    CompressionPasses  the seeds of both modes, and the positions of the entries in the results
    entries            the values of the entries, in order
    has_diagonals_only whether entries are computed without passes, and none one by one
    summed_entries     those of a Hessian that is computed by elements
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.arguments import DifferentiatedCall
from wengert._engine.autodiff.batch_graph import map_over_batch
from wengert._engine.autodiff.pullback import Result
from wengert._engine.autodiff.reverse import gathered
from wengert._engine.core import pytree
from wengert._engine.core.handle import shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec

from .coupled_nodes import result_of
from .diagonal_entries import diagonals
from .element_hessians import DiagonalProduct, second_order, summed
from .reading_entries import read
from .rule_context import size_of

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
