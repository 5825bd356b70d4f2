"""Laws of batching, of memory layout and of Taylor series.

    memory_does_not_matter  values and cotangents, for the layouts in turn
    series_agree            derivatives of order 1 to 3 along a curve

The reference of batching is eager execution of each item.  Operands are batched along the first or
the last axis, or shared by all items, in various combinations.  Derivatives, empty batches and
batches of symbolic size are checked too.

Operands with negative or permuted strides, unaligned memory, or the other byte order give the same
values and cotangents, up to the order of NumPy's sums.

The reference of series is forward mode, which the laws in common.py compare with finite
differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, product
from typing import Any

import numpy as np

from wengert._engine.autodiff.grad import grad
from wengert._engine.autodiff.jet import jet
from wengert._engine.autodiff.jvp_vjp import jvp, vjp
from wengert._engine.autodiff.vmap import vmap
from wengert._engine.core.handle import dtype_of
from wengert._engine.core.spec import Spec, spec_of
from wengert._engine.core.symbolic.constraints import dim
from wengert._engine.graphs.trace import trace
from wengert.errors import CheckError, ShapeError, TraceError, WengertError

from .common import arguments_of, floating, function_of, has_derivative, law

# ---- batching ----------------------------------------------------------------------------------


BATCH_SIZE = 3
RTOL = 1e-10  # sums in another order, shared factorizations


@law
def batching_is_right(op: Any, rng: np.random.Generator) -> None:
    """vmap agrees with a loop over the batch, for values and derivatives."""
    for items, params in _examples(op, rng):
        try:
            _check(op, function_of(op, params), items)
        except CheckError:
            raise
        except (WengertError, TypeError, ValueError, IndexError) as error:
            raise CheckError(f"{op.name}: vmap fails: {error}") from error


def _check(op: Any, f: Any, items: Sequence[Any]) -> None:
    for flags in _batched_operands(items[0]):
        operands = [
            np.stack([item[k] for item in items]) if flag else x
            for k, (x, flag) in enumerate(zip(items[0], flags, strict=True))
        ]
        looped = [
            [item[k] if flag else items[0][k] for k, flag in enumerate(flags)] for item in items
        ]
        _check_values(op, f, operands, flags, looped)
        _check_gradients(op, f, operands, flags, looped)
        _check_empty_batch(op, f, operands, flags, looped[0])
    _check_symbolic_size(op, f, [np.stack(column) for column in zip(*items, strict=True)])


def _examples(op: Any, rng: np.random.Generator) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Operands of each item of a batch, and common parameters."""
    streams = [list(arguments_of(op, rng)) for _ in range(BATCH_SIZE)]
    for drawn in zip(*streams, strict=True):
        items = [args for args, _ in drawn]
        if items[0]:  # creation operations have no operands
            yield items, drawn[0][1]


def _batched_operands(args: Sequence[Any]) -> Iterator[tuple[bool, ...]]:
    """Which operands are batched: all combinations if they are few, else one or all of them."""
    n = len(args)
    if n <= 3:
        yield from (flags for flags in product((True, False), repeat=n) if any(flags))
        return
    yield (True,) * n
    yield from (tuple(i == k for i in range(n)) for k in range(n))


def _axes(flags: Sequence[bool], axis: int) -> tuple[int | None, ...]:
    return tuple(axis if flag else None for flag in flags)


def _has_unequal_shapes(op: Any, operands: Sequence[Any], flags: Sequence[bool]) -> bool:
    """Whether the items may have results of different shapes, which vmap rejects."""
    if op.name in ("getitem", "setitem", "scatter", "scatter_add"):
        masks = [np.asarray(x).dtype == bool for x in operands[1:]]
        return any(m and flag for m, flag in zip(masks, flags[1:], strict=True))
    return bool(op.effects.value_dependent_shape)


def _check_values(op: Any, f: Any, operands: Any, flags: Any, looped: Any) -> None:
    if _has_unequal_shapes(op, operands, flags):
        try:
            vmap(f, _axes(flags, 0))(*operands)
        except (ShapeError, TraceError):
            return
        if op.name != "setitem":  # a masked assignment may be a selection
            raise CheckError(f"{op.name}: results of different lengths were not rejected.")
    want = _stacked([f(*item) for item in looped])
    for axis in (0, -1):
        moved = [
            np.moveaxis(x, 0, axis) if flag else x for x, flag in zip(operands, flags, strict=True)
        ]
        got = vmap(f, _axes(flags, axis), out_axes=axis)(*moved)
        gots = got if isinstance(got, tuple) else (got,)
        _compare(op, [np.moveaxis(g, axis, 0) for g in gots], want, f"batched operands {flags}")


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
    if (
        op.discrete
        or not op.differentiable
        or not slots
        or _has_unequal_shapes(op, operands, flags)
    ):
        return
    total = grad(lambda *xs: _total(f(*xs)), argnums=slots)
    got = vmap(total, _axes(flags, 0))(*operands)
    want = _stacked([total(*item) for item in looped])
    _compare(op, got, want, f"derivatives, batched operands {flags}")


def _total(out: Any) -> Any:
    """A weighted sum of all floating-point results."""
    total: Any = 0.0
    for y in out if isinstance(out, tuple) else (out,):
        if dtype_of(y).kind in "fc":
            real = y.real if dtype_of(y).kind == "c" else y
            weights = np.cos(np.arange(np.prod(real.shape, dtype=int))).reshape(real.shape)
            total = total + np.sum(real * weights)
    return total


def _check_empty_batch(op: Any, f: Any, operands: Any, flags: Any, item: Any) -> None:
    none = [x[:0] if flag else x for x, flag in zip(operands, flags, strict=True)]
    if _has_unequal_shapes(op, operands, flags):
        return
    got, want = vmap(f, _axes(flags, 0))(*none), f(*item)
    gots, wants = (x if isinstance(x, tuple) else (x,) for x in (got, want))
    for g, w in zip(gots, wants, strict=True):
        if g.shape != (0, *np.shape(w)):
            raise CheckError(
                f"{op.name} of an empty batch of items {np.shape(w)} has shape {g.shape}."
            )


def _check_symbolic_size(op: Any, f: Any, operands: Sequence[Any]) -> None:
    """In a graph of symbolic batch size: the same, or an error that names the operation."""
    flags = (True,) * len(operands)
    if _has_unequal_shapes(op, operands, flags):
        return
    specs = [Spec((dim("items"), *x.shape[1:]), x.dtype) for x in operands]
    try:
        graph = trace(vmap(f))(*specs)
    except TraceError as error:
        if op.name not in str(error):
            raise
        return
    got, want = graph(*operands), vmap(f)(*operands)
    gots, wants = (x if isinstance(x, tuple) else (x,) for x in (got, want))
    _compare(op, gots, wants, "in a graph")


# ---- memory layout -----------------------------------------------------------------------------


LAYOUT_RTOL = 1e-9  # sums in another order, and factorizations of them


def _reversed(x: Any) -> Any:
    """A copy with negative strides in Fortran order."""
    turned = tuple([slice(None, None, -1)] * x.ndim)
    return np.asfortranarray(x[turned])[turned]


def _unaligned(x: Any) -> Any:
    """A copy at an odd address."""
    memory = np.zeros(x.nbytes + 1, np.uint8)
    view = memory[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    return view


def _swapped(x: Any) -> Any:
    """A copy in the other byte order, as every second element of an array."""
    wide = np.repeat(x.astype(x.dtype.newbyteorder()), 2, axis=-1)
    return wide[..., ::2]


LAYOUTS: tuple[Callable[[Any], Any], ...] = (_reversed, _unaligned, _swapped)


@law
def memory_does_not_matter(op: Any, rng: np.random.Generator) -> None:
    """Values and cotangents do not depend on the memory layout of operands."""
    for (args, params), layout in zip(arguments_of(op, rng), cycle(LAYOUTS), strict=False):
        moved = tuple([layout(a) if _is_array(a) else a for a in args])
        if not any(map(_is_array, args)):
            continue
        with np.errstate(all="ignore"):
            _compare_layouts(
                op, layout, op.run(*moved, **params), op.run(*args, **params), "the value"
            )
            if op.discrete or not op.differentiable:
                continue
            found, wanted = (_pulled(op, xs, params) for xs in (moved, args))
        _compare_layouts(op, layout, found, wanted, "a cotangent")


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.ndim > 0 and x.dtype.kind in "biufc"


def _pulled(op: Any, args: Any, params: dict[str, Any]) -> tuple[Any, ...]:
    """The cotangents of the floating-point operands, for a cotangent of the results."""
    f, point = floating(op, args, params)
    if not point:
        return ()
    outs, pull = vjp(f, *point)
    seeds = tuple([np.cos(np.arange(np.size(y))).reshape(np.shape(y)) for y in outs])
    fitted = tuple([s.astype(np.asarray(y).dtype) for s, y in zip(seeds, outs, strict=True)])
    return pull(fitted)  # type: ignore[no-any-return]


def _compare_layouts(op: Any, layout: Any, found: Any, wanted: Any, what: str) -> None:
    founds = found if isinstance(found, tuple) else (found,)
    wanteds = wanted if isinstance(wanted, tuple) else (wanted,)
    for g, w in zip(founds, wanteds, strict=True):
        if not isinstance(w, np.ndarray | np.generic) or w.dtype.kind not in "bifc":
            continue  # unsigned results contain the bytes of operands
        array = np.asarray(w)
        scale = np.max(np.abs(array[np.isfinite(array)]), initial=0.0)
        same = np.shape(g) == w.shape and np.allclose(
            g, w, rtol=LAYOUT_RTOL, atol=LAYOUT_RTOL * scale, equal_nan=True
        )
        if not same or np.asarray(g).dtype.newbyteorder("=") != w.dtype:
            raise CheckError(
                f"{op.name}: {what} is {g!r} for operands that are {layout.__name__[1:]} in "
                f"memory, and {w!r} for contiguous ones."
            )


# ---- Taylor series -----------------------------------------------------------------------------


ORDER = 3
SERIES_RTOL = 1e-9


@law(applies=has_derivative)
def series_agree(op: Any, rng: np.random.Generator) -> None:
    """`jet` agrees with nested forward mode along a curve, and its results have the same specs."""
    prepare = getattr(op, "prepare", None)
    for args, params in arguments_of(op, rng):
        plain, point = floating(op, args, params)
        if not point:
            continue

        def f(*xs: Any, plain: Any = plain) -> Any:
            return plain(*(xs if prepare is None else prepare(*xs)))

        curve = [[0.3 * _like(x, rng) for _ in range(ORDER)] for x in point]
        values, terms = jet(f, point, curve)
        for k, want in enumerate(_nested(f, point, curve)):
            got = values if k == 0 else [of[k - 1] for of in terms]
            for g, w in zip(got, want, strict=True):
                _compare_terms(op, k, g, w)


def _like(x: Any, rng: np.random.Generator) -> Any:
    v = rng.normal(size=x.shape)
    return (v + 1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else v).astype(x.dtype)


def _nested(f: Any, point: Any, curve: Any) -> Any:
    """The values and derivatives of f along the curve, by forward mode of forward mode."""

    def along(t: Any) -> Any:
        return f(*[
            (x + t * (a + t * (b / 2 + t * (c / 6)))).astype(x.dtype)
            for x, (a, b, c) in zip(point, curve, strict=True)
        ])  # fmt: skip

    for _ in range(ORDER + 1):
        yield along(np.zeros(()))
        along = _derivative(along)


def _derivative(g: Any) -> Any:
    return lambda t: jvp(g, (t,), (np.ones(()),))[1]


def _compare_terms(op: Any, order: int, got: Any, want: Any) -> None:
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        raise CheckError(
            f"{op.name}: the series has terms {got.dtype}{got.shape}, but forward mode gives "
            f"{want.dtype}{want.shape}."
        )
    finite = np.abs(want)[np.isfinite(want)]
    scale = float(np.max(finite, initial=0.0))
    rtol = SERIES_RTOL if want.dtype.itemsize > 4 else 1e-3
    if not np.allclose(got, want, rtol=rtol, atol=rtol * scale, equal_nan=True):
        raise CheckError(
            f"{op.name}: the term of order {order} is {got}, but nested forward mode gives {want}."
        )
