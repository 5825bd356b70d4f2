"""Basis vectors: all columns, or all rows, of a Jacobian in one batched pass.

A pass is linear, so it is traced once along a placeholder and evaluated for the batch of all unit
vectors (vmap.py).  With more than a few elements this is faster than one pass per element, and it
is the only possibility if their number is symbolic.

    columns_of         the derivatives along each unit vector of the inputs
    rows_of            the derivatives of each element of the outputs
    is_faster_batched  whether batching is faster than one pass at a time
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import is_symbolic

from .batch_graph import map_over_batch
from .pullback import Result
from .reverse import gathered, has_nan

if TYPE_CHECKING:
    from wengert._engine.core.types import Size

FEW_PASSES = 12  # passes that cost less than tracing one
# An operation on a part of an array (`vjp_into`) touches only that part in a single pass, and the
# whole array in a batched one, which is slower if the array has more elements than this (forward,
# reverse).
PARTIAL_ACCESS_LIMITS = (2000, 300)
CHUNK = 1 << 22  # elements of the largest value in a batched pass
Block = Any  # array or handle with the unit vectors along the first axis, or None for zero


def is_faster_batched(result: Result, count: Size, reverse: bool) -> bool:
    """Whether one batched pass is faster than `count` passes."""
    if result.tape.traced or not isinstance(count, int):
        return True
    if count <= FEW_PASSES:
        return False
    limit, partial_accesses = PARTIAL_ACCESS_LIMITS[reverse], 0
    for node in result.tape.nodes:
        if node.info is not None and node.info.hooks is not None:
            return False
        if node.op.vjp_into is not None and node.args:
            partial_accesses += node.args[0].spec.size > limit
    return partial_accesses <= FEW_PASSES


def unit_vector(spec: Spec, k: int) -> Any:
    """An array that is 1 at element k and 0 elsewhere."""
    e = np.zeros(spec.size, spec.dtype)
    e[k] = 1.0
    return e.reshape(spec.shape)[()]


def columns_of(result: Result, in_specs: Sequence[Spec], factor: Any = 1) -> list[list[Block]]:
    """The derivatives along the unit vectors of each input, for each output."""

    def push(*dots: Any) -> list[Any]:
        return result.push(dots)

    return _batched_pass(push, in_specs, result, factor)


def rows_of(result: Result, out_specs: Sequence[Spec], factor: Any = 1) -> list[list[Block]]:
    """The derivatives of the elements of each output, for each input."""
    reached = set(result.tape.nodes)
    nodes = [n if n in reached else None for n in result.out_nodes]

    def pull(*seeds: Any) -> list[Any]:
        return result.pull(gathered(zip(nodes, seeds, strict=True)))

    return _batched_pass(pull, out_specs, result, factor)


def _batched_pass(
    run: Callable[..., list[Any]], specs: Sequence[Spec], result: Result, factor: int
) -> list[list[Block]]:
    sizes = [s.size for s in specs]
    total: Any = sum(sizes)
    plain = not (result.recorded or result.tape.traced)
    step = total
    if plain:
        largest = max((n.spec.size for n in result.tape.nodes if type(n.spec) is Spec), default=1)
        step = max(FEW_PASSES, 1, CHUNK // max(largest, 1))
    chunks = []
    start: Any = 0
    while True:
        count = total - start if not isinstance(total, int) else min(step, total - start)
        chunks.append(_run_chunk(run, specs, start, count, factor, not plain))
        start = start + count
        if not isinstance(total, int) or start >= total:
            break
    blocks = [_joined(column) for column in zip(*chunks, strict=True)]
    return _split(blocks, sizes)


def _run_chunk(
    run: Callable[..., Any],
    specs: Sequence[Spec],
    start: int,
    count: Size,
    factor: int,
    record: bool,
) -> list[Block]:
    """The results of the pass along consecutive unit vectors of the product of all spaces."""
    units = []
    offset: Any = 0
    for spec in specs:
        units.append(_units(spec, count, start - offset, factor))
        offset = offset + spec.size
    pairs = map_over_batch(run, units, count, "the pass", record)
    blocks = []
    for value, batched in pairs:
        if value is not None and not batched:
            value = lookup("broadcast_to")(value, shape=(count, *shape_of(value)))
        blocks.append(value)
    return blocks


def _units(spec: Spec, count: Any, first: Any, factor: int) -> Any:
    """The unit vectors from `first` to `first + count`; zeros for indices of other spaces."""
    if is_symbolic((count, first, *spec.shape)):
        params = {"rows": count, "columns": spec.size, "offset": first, "dtype": spec.dtype}
        eye = lookup("eye").record(**params)
    else:
        length: Any = spec.size
        eye = np.eye(count, length, first, spec.dtype)
    if factor != 1:  # the imaginary unit, which a real space does not have
        eye = eye * (spec.dtype.type(factor) if spec.dtype.kind == "c" else 0.0)
    return lookup("reshape")(eye, shape=(count, *spec.shape))


def _joined(parts: Sequence[Block]) -> Block:
    if len(parts) == 1 or parts[0] is None:
        return parts[0]
    return np.concatenate(parts)


def _split(blocks: Sequence[Block], sizes: Sequence[Any]) -> list[list[Block]]:
    """The results along all unit vectors, split into those of each space."""
    rows = []
    start: Any = 0
    for size in sizes:
        part = slice(start, start + size)
        if len(sizes) == 1:
            rows.append(list(blocks))
        else:
            rows.append(
                [None if x is None else lookup("getitem")(x, index=(part,)) for x in blocks]
            )
        start = start + size
    return rows


def has_no_nan(blocks: Sequence[Sequence[Block]]) -> bool:
    """Whether no result is NaN; a pass along a single vector may avoid one."""
    with np.errstate(invalid="ignore"):  # sums of infinities of both signs
        return not any(has_nan(x) for row in blocks for x in row)
