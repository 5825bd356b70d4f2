"""Laws of Taylor series: an operation propagates them as nested forward mode does.

The reference is forward mode, which the laws in common.py compare with finite differences.

series_agree    derivatives of order 1 to 3 along a curve
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.autodiff.jet import jet
from wengert._engine.autodiff.jvp_vjp import jvp
from wengert.errors import CheckError

from .common import arguments_of, floating, has_derivative, law

ORDER = 3
RTOL = 1e-9


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
                _compare(op, k, g, w)


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


def _compare(op: Any, order: int, got: Any, want: Any) -> None:
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        raise CheckError(
            f"{op.name}: the series has terms {got.dtype}{got.shape}, but forward mode gives "
            f"{want.dtype}{want.shape}."
        )
    finite = np.abs(want)[np.isfinite(want)]
    scale = float(np.max(finite, initial=0.0))
    rtol = RTOL if want.dtype.itemsize > 4 else 1e-3
    if not np.allclose(got, want, rtol=rtol, atol=rtol * scale, equal_nan=True):
        raise CheckError(
            f"{op.name}: the term of order {order} is {got}, but nested forward mode gives {want}."
        )
