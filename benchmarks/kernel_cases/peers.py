"""The libraries as a kernel sees them, and a kernel handed to all of them.

    Library   its NumPy, its jvp, its scan and its solver of tridiagonal systems
    values    the outputs of a kernel, compiled where the library compiles
    adjoints  the weighted sum of the outputs and its gradient with respect to all fields
    chosen    without those that take seconds at the largest size

A kernel is ``build(library)``, a function ``f(*fields, *fixed)`` of arrays that returns a tuple of
arrays.  PyTorch has NumPy's functions under other names and with other arguments; the few that
kernels use are spelt here as NumPy spells them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from native import libraries
from native.case import Call

from . import grid

Function = Callable[..., Any]
Build = Callable[["Library"], Function]


@dataclass(frozen=True)
class Library:
    """What kernels need of a library beside operators; a function that it lacks is None.

    ``tridiagonal(a, b, c, d)`` solves a system for each column of the last axis, a below the
    diagonal (its first unused), b on it, c above it (its last unused).
    """

    xp: Any
    jvp: Function | None = None
    scan: Function | None = None
    tridiagonal: Function | None = None


def wengert() -> Library:
    """wengert on NumPy."""
    import wengert as wg

    return Library(np, wg.jvp, wg.scan)


def numpy() -> Library:
    """NumPy alone, with LAPACK's solver, which all columns are handed to as one system."""

    def tridiagonal(a: Any, b: Any, c: Any, d: Any) -> Any:
        from scipy.linalg.lapack import dgtsv

        a, c = a.copy(), c.copy()
        a[..., 0] = c[..., -1] = 0.0
        return dgtsv(a.ravel()[1:], b.ravel(), c.ravel()[:-1], d.ravel())[3].reshape(d.shape)

    return Library(np, tridiagonal=tridiagonal)


def jax(solver: bool = False) -> Library:
    """JAX; with its own solver of tridiagonal systems, or a scan."""
    j = libraries.jax()

    def tridiagonal(a: Any, b: Any, c: Any, d: Any) -> Any:
        return j.lax.linalg.tridiagonal_solve(a, b, c, d[..., None])[..., 0]

    return Library(j.numpy, j.jvp, j.lax.scan, tridiagonal if solver else None)


def torch() -> Library:
    """PyTorch, under NumPy's names."""
    t = libraries.torch()

    def pad(x: Any, widths: Sequence[tuple[int, int]]) -> Any:
        return t.nn.functional.pad(x, [n for pair in reversed(widths) for n in pair])

    def scan(f: Function, carry: Any, xs: Any, reverse: bool = False) -> Any:
        rows = list(zip(*(x.unbind() for x in xs), strict=True))
        found = []
        for row in reversed(rows) if reverse else rows:
            carry, y = f(carry, row)
            found.append(y)
        if reverse:
            found.reverse()
        if isinstance(found[0], tuple):
            return carry, tuple(map(t.stack, zip(*found, strict=True)))
        return carry, t.stack(found)

    names = "abs concatenate log moveaxis ones_like sqrt tanh where zeros_like"
    xp = SimpleNamespace(
        **{name: getattr(t, name) for name in names.split()},
        stack=lambda xs, axis: t.stack(xs, dim=axis),
        minimum=lambda c, x: t.clamp(x, max=c),
        maximum=lambda c, x: t.maximum(c, x) if hasattr(c, "dim") else t.clamp(x, min=c),
        pad=pad,
    )
    return Library(xp, t.func.jvp, scan)


def chosen(found: dict[str, Any], arrays: Sequence[Any]) -> dict[str, Any]:
    """The contestants that are measured at this size."""
    if arrays[0].size > grid.EAGER:
        del found["torch"]
    return found


def in_torch(x: Any) -> Any:
    """Arrays of a nest as PyTorch's."""
    if isinstance(x, np.ndarray):
        return libraries.torch().from_numpy(x)
    if hasattr(x, "_fields"):
        return type(x)(*map(in_torch, x))
    return [in_torch(y) for y in x]


def values(
    build: Build, arrays: Sequence[Any], *fixed: Any, more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The outputs, in every library; `more` are further libraries by name, in place of JAX's."""

    def run_torch() -> Call:
        t, f = libraries.torch(), build(torch())

        def run(*x: Any) -> Any:
            with t.no_grad():
                return f(*x)

        return Call(run, tuple(map(in_torch, (*arrays, *fixed))))

    def run_jax(library: Function) -> Call:
        return libraries.jax_call(build(library()), *arrays, *fixed)

    found = {
        "wengert": lambda: Call(libraries.jit(build(wengert())), (*arrays, *fixed)),
        "NumPy": lambda: Call(build(numpy()), (*arrays, *fixed)),
        "JAX": lambda: run_jax(jax),
        **{name: lambda m=make: run_jax(m) for name, make in (more or {}).items()},
        "torch": run_torch,
    }
    return chosen(found, arrays)


def adjoints(
    build: Build,
    arrays: Sequence[Any],
    by: Sequence[Any],
    *fixed: Any,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The weighted sum and its gradient with respect to all fields, in every library."""
    inputs = tuple(range(len(arrays)))
    arguments = (*arrays, *fixed, by)

    def loss(library: Library) -> Function:
        f = build(library)
        return lambda *x: grid.weighted(f(*x[:-1]), x[-1])

    def run_jax(library: Function) -> Call:
        return libraries.jax_gradient(loss(library()), *arguments, argnums=inputs)

    def run_torch() -> Call:
        t, f = libraries.torch(), loss(torch())
        placed = tuple(map(in_torch, arguments))
        leaves = [placed[i].requires_grad_() for i in inputs]

        def run(*x: Any) -> Any:
            out = f(*x)
            return out, t.autograd.grad(out, leaves)

        return Call(run, placed)

    found = {
        "wengert": lambda: libraries.wengert(loss(wengert()), *arguments, argnums=inputs),
        "JAX": lambda: run_jax(jax),
        **{name: lambda m=make: run_jax(m) for name, make in (more or {}).items()},
        "torch": run_torch,
    }
    return chosen(found, arrays)
