"""Rules of users: 1000 square roots by Newton's iteration, whose derivative is stated.

The function is a loop of 20 steps, as one writes it for one number, and is applied to all of them
by vmap; the rule says that the derivative of the root r is 1 / (2 r).  *wengert* and *JAX* state it
by custom_vjp, *wengert, primitive* by a primitive, torch by an autograd.Function of the whole
array; *wengert, no rule* differentiates through the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case

TITLE = "Derivatives that the user states"
TEXT = (
    "1000 square roots by 20 steps of Newton's iteration, one by one under `vmap`, and the "
    "gradient of their sum by a rule, 1 / (2 r): `custom_vjp`, a *primitive* with the same rule, "
    "and *no rule*, through the loop."
)
TARGET = "with a rule no slower than through the loop, and ahead of the peers"
STEPS = 20


def cases(quick: bool) -> Iterator[Case]:
    """The gradient of the sum of many roots."""
    n = 50 if quick else 1000
    a = np.linspace(1.0, 2.0, n)
    found = {
        "wengert": lambda: libraries.wengert(total(_wengert_rule()), a),
        "wengert, primitive": lambda: libraries.wengert(total(_wengert_primitive()), a),
        "wengert, no rule": lambda: libraries.wengert(total(_wengert_newton()), a),
        "JAX": lambda: _jax(a),
        "torch": lambda: _torch(a),
    }
    yield Case(f"Newton's roots, n = {n}", found, within=1e-10)


def total(root: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of the roots of all rows."""
    import wengert as wg

    return lambda a: np.sum(wg.vmap(root)(a))


def _step(a: Any) -> Callable[..., Any]:
    return lambda i, x: 0.5 * (x + a / x)


def _wengert_newton() -> Callable[..., Any]:
    import wengert as wg

    return lambda a: wg.fori_loop(0, STEPS, _step(a), a)


def _wengert_rule() -> Callable[..., Any]:
    import wengert as wg

    root = wg.custom_vjp(_wengert_newton())
    root.defvjp(lambda a: (root(a),) * 2, lambda r, g: (g / (2.0 * r),))
    return root


def _wengert_primitive() -> Callable[..., Any]:
    from wengert import extend

    root = extend.primitive(_wengert_newton(), name="benchmarks.newton", callback=False)
    extend.vjp[root] = lambda g, r, a: (g / (2.0 * r),)
    return root


def _jax(a: Any) -> Call:
    j = libraries.jax()
    root = j.custom_vjp(lambda a: j.lax.fori_loop(0, STEPS, _step(a), a))
    root.defvjp(lambda a: (root(a),) * 2, lambda r, g: (g / (2.0 * r),))
    return libraries.jax_gradient(lambda a: j.numpy.sum(j.vmap(root)(a)), a)


def _torch(a: Any) -> Call:
    t = libraries.torch()

    class Root(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            x = a
            for i in range(STEPS):
                x = _step(a)(i, x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (r,) = ctx.saved_tensors
            return g / (2.0 * r)

    return libraries.torch_gradient(lambda a: Root.apply(a).sum(), a)
