"""The law of memory layout: results do not depend on how operands are stored.

Operands with negative or permuted strides, unaligned memory, or the other byte order give the same
values and cotangents, up to the order of NumPy's sums.

    memory_does_not_matter   values and cotangents, for the layouts in turn
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np

from wengert._engine.autodiff.jvp_vjp import vjp
from wengert.errors import CheckError

from .common import arguments_of, floating, law

RTOL = 1e-9  # sums in another order, and factorizations of them


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
            _compare(op, layout, op.run(*moved, **params), op.run(*args, **params), "the value")
            if op.discrete or not op.differentiable:
                continue
            found, wanted = (_pulled(op, xs, params) for xs in (moved, args))
        _compare(op, layout, found, wanted, "a cotangent")


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


def _compare(op: Any, layout: Any, found: Any, wanted: Any, what: str) -> None:
    founds = found if isinstance(found, tuple) else (found,)
    wanteds = wanted if isinstance(wanted, tuple) else (wanted,)
    for g, w in zip(founds, wanteds, strict=True):
        if not isinstance(w, np.ndarray | np.generic) or w.dtype.kind not in "bifc":
            continue  # unsigned results contain the bytes of operands
        array = np.asarray(w)
        scale = np.max(np.abs(array[np.isfinite(array)]), initial=0.0)
        same = np.shape(g) == w.shape and np.allclose(
            g, w, rtol=RTOL, atol=RTOL * scale, equal_nan=True
        )
        if not same or np.asarray(g).dtype.newbyteorder("=") != w.dtype:
            raise CheckError(
                f"{op.name}: {what} is {g!r} for operands that are {layout.__name__[1:]} in "
                f"memory, and {w!r} for contiguous ones."
            )
