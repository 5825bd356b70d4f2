"""The law of batching: a batch gives what a Python loop gives.

The witness is eager execution of one row.  Each operand in turn has rows or is the same for all,
in the first axis or in the last; then derivatives of each row, no rows at all, and a number of rows
that is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from wengert._engine.autodiff.grad import grad
from wengert._engine.autodiff.vmap import vmap
from wengert._engine.core.handle import dtype_of
from wengert._engine.core.spec import Spec, spec_of
from wengert._engine.core.symbolic.parsing import dim
from wengert._engine.graphs.trace import trace
from wengert.errors import CheckError, ShapeError, TraceError, WengertError

from .common import arguments_of, function_of, law

ROWS = 3
RTOL = 1e-10  # sums in another order, one factorization for all rows


@law
def batching_is_right(op: Any, rng: np.random.Generator) -> None:
    """vmap over rows gives what a loop over them gives, and so do derivatives."""
    for rows, params in _examples(op, rng):
        try:
            _check(op, function_of(op, params), rows)
        except CheckError:
            raise
        except (WengertError, TypeError, ValueError, IndexError) as error:
            raise CheckError(f"{op.name}: rows cannot be taken together: {error}") from error


def _check(op: Any, f: Any, rows: Sequence[Any]) -> None:
    for flags in _choices(rows[0]):
        operands = [
            np.stack([row[k] for row in rows]) if flag else x
            for k, (x, flag) in enumerate(zip(rows[0], flags, strict=True))
        ]
        looped = [[row[k] if flag else rows[0][k] for k, flag in enumerate(flags)] for row in rows]
        _check_values(op, f, operands, flags, looped)
        _check_gradients(op, f, operands, flags, looped)
        _check_no_rows(op, f, operands, flags, looped[0])
    _check_unknown_number(op, f, [np.stack(column) for column in zip(*rows, strict=True)])


def _examples(op: Any, rng: np.random.Generator) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Operands of some rows, and the parameters they have in common."""
    streams = [list(arguments_of(op, rng)) for _ in range(ROWS)]
    for drawn in zip(*streams, strict=True):
        rows = [args for args, _ in drawn]
        if rows[0]:  # a creation has no operands
            yield rows, drawn[0][1]


def _choices(args: Sequence[Any]) -> Iterator[tuple[bool, ...]]:
    """Which operands have rows: all combinations of few, else one or all of them."""
    n = len(args)
    if n <= 3:
        yield from (flags for flags in product((True, False), repeat=n) if any(flags))
        return
    yield (True,) * n
    yield from (tuple(i == k for i in range(n)) for k in range(n))


def _axes(flags: Sequence[bool], axis: int) -> tuple[int | None, ...]:
    return tuple(axis if flag else None for flag in flags)


def _is_refused(op: Any, operands: Sequence[Any], flags: Sequence[bool]) -> bool:
    """Whether rows may be of different lengths: a mask for each, what is not zero in each."""
    if op.name in ("getitem", "setitem", "scatter"):
        masks = [np.asarray(x).dtype == bool for x in operands[1:]]
        return any(m and flag for m, flag in zip(masks, flags[1:], strict=True))
    return bool(op.effects.value_dependent_shape)


def _check_values(op: Any, f: Any, operands: Any, flags: Any, looped: Any) -> None:
    if _is_refused(op, operands, flags):
        try:
            vmap(f, _axes(flags, 0))(*operands)
        except (ShapeError, TraceError):
            return
        if op.name != "setitem":  # which may be a choice
            raise CheckError(f"{op.name}: rows of different lengths were not refused.")
    want = _stacked([f(*row) for row in looped])
    for axis in (0, -1):
        moved = [
            np.moveaxis(x, 0, axis) if flag else x for x, flag in zip(operands, flags, strict=True)
        ]
        got = vmap(f, _axes(flags, axis), out_axes=axis)(*moved)
        gots = got if isinstance(got, tuple) else (got,)
        _compare(op, [np.moveaxis(g, axis, 0) for g in gots], want, f"rows in {flags}")


def _stacked(results: Sequence[Any]) -> list[Any]:
    outs = [r if isinstance(r, tuple) else (r,) for r in results]
    return [np.stack(column) for column in zip(*outs, strict=True)]


def _compare(op: Any, gots: Sequence[Any], wants: Sequence[Any], what: str) -> None:
    for got, want in zip(gots, wants, strict=True):
        scale = np.max(np.abs(want), initial=0.0, where=np.isfinite(want))
        if got.shape != want.shape or got.dtype != want.dtype:
            raise CheckError(
                f"{op.name}, {what}: vmap gives {spec_of(got)}, a loop {spec_of(want)}."
            )
        if not np.allclose(got, want, rtol=RTOL, atol=RTOL * float(scale), equal_nan=True):
            raise CheckError(f"{op.name}, {what}: vmap gives {got}, a loop {want}.")


def _check_gradients(op: Any, f: Any, operands: Any, flags: Any, looped: Any) -> None:
    slots = [i for i, x in enumerate(operands) if np.asarray(x).dtype.kind in "fc"]
    if op.discrete or not op.differentiable or not slots or _is_refused(op, operands, flags):
        return
    total = grad(lambda *xs: _total(f(*xs)), argnums=slots)
    got = vmap(total, _axes(flags, 0))(*operands)
    want = _stacked([total(*row) for row in looped])
    _compare(op, got, want, f"derivatives with rows in {flags}")


def _total(out: Any) -> Any:
    """One real number of all floating results, in which elements count differently."""
    total: Any = 0.0
    for y in out if isinstance(out, tuple) else (out,):
        if dtype_of(y).kind in "fc":
            real = y.real if dtype_of(y).kind == "c" else y
            weights = np.cos(np.arange(np.prod(real.shape, dtype=int))).reshape(real.shape)
            total = total + np.sum(real * weights)
    return total


def _check_no_rows(op: Any, f: Any, operands: Any, flags: Any, row: Any) -> None:
    none = [x[:0] if flag else x for x, flag in zip(operands, flags, strict=True)]
    if _is_refused(op, operands, flags):
        return
    got, want = vmap(f, _axes(flags, 0))(*none), f(*row)
    gots, wants = (x if isinstance(x, tuple) else (x,) for x in (got, want))
    for g, w in zip(gots, wants, strict=True):
        if g.shape != (0, *np.shape(w)):
            raise CheckError(f"{op.name} of no rows of {np.shape(w)} has the shape {g.shape}.")


def _check_unknown_number(op: Any, f: Any, operands: Sequence[Any]) -> None:
    """In a graph for any number of rows: the same, or an error that names the operation."""
    flags = (True,) * len(operands)
    if _is_refused(op, operands, flags):
        return
    specs = [Spec((dim("rows"), *x.shape[1:]), x.dtype) for x in operands]
    try:
        graph = trace(vmap(f))(*specs)
    except TraceError as error:
        if op.name not in str(error):
            raise
        return
    got, want = graph(*operands), vmap(f)(*operands)
    gots, wants = (x if isinstance(x, tuple) else (x,) for x in (got, want))
    _compare(op, gots, wants, "in a graph")
