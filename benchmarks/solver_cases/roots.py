"""Roots: n equations by Newton's method, and Kepler's equation for a batch.

y + tanh(W y) / 2 = theta, and the loss sum(y^2) with its gradient with respect to theta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case, generator

from . import by_numba

TITLE = "Roots: value and gradient"
TEXT = (
    "*n equations*: y + tanh(W y) / 2 = theta with a dense W; sum(y^2) and its gradient with "
    "respect to theta. *wengert* and *JAX* are `custom_root` with the same Newton iteration in "
    "a `while_loop`, *CasADi* is `rootfinder` with `newton` and `lapacklu`, *NumPy* the same "
    "iteration with `lu_factor` and the derivative by hand. *wengert, SciPy's root* calls "
    "`scipy.optimize.root`, *SciPy* does so with Jacobian and derivative by hand: Powell's hybrid "
    "method, with fewer Jacobians and more steps. *Kepler, batch*: 10,000 anomalies with both "
    "gradients of their sum; *wengert* is `vmap` of `scipy.optimize.brentq`, *numba* the same "
    "method and its derivative by hand, *JAX* `vmap` of `custom_root` with "
    "Newton's method, and with bisection."
)
PEERS = ("JAX", "CasADi", "SciPy")
TARGET = "a gradient costs one linear solve; not slower than JAX and CasADi"
TOLERANCE, HALVINGS = 1e-10, 50


def cases(quick: bool) -> Iterator[Case]:
    """Of several sizes."""
    for n in (5,) if quick else (20, 400):
        random = generator(91, n)
        w, theta = random.normal(size=(n, n)) / np.sqrt(n), random.normal(size=n)
        yield Case(f"{n} equations", equations(w, theta), within=1e-7)
    number = 100 if quick else 10_000
    random = generator(92)
    orbits = random.uniform(0.0, 0.9, number), random.uniform(0.0, 3.0, number)
    yield Case(f"Kepler, batch of {number}", kepler(*orbits), within=1e-6)


def residual(xp: Any, w: Any, theta: Any) -> Callable[[Any], Any]:
    """The equations."""
    return lambda y: y + 0.5 * xp.tanh(w @ y) - theta


def newton(xp: Any, jacobian: Callable[..., Any], loop: Callable[..., Any]) -> Callable[..., Any]:
    """Newton's method, as a solver for `custom_root` of a library."""

    def solve(f: Any, start: Any) -> Any:
        matrix = jacobian(f)

        def step(state: Any) -> Any:
            y, r = state
            y = y - xp.linalg.solve(matrix(y), r)
            return y, f(y)

        return loop(lambda s: xp.abs(s[1]).max() > TOLERANCE, step, (start, f(start)))[0]

    return solve


def equations(w: Any, theta: Any) -> dict[str, Callable[[], Call]]:
    """Contestants for n equations."""
    start = np.zeros(theta.size)

    def wengert() -> Call:
        import wengert as wg

        solve = newton(np, wg.jacobian, wg.while_loop)

        def loss(theta: Any) -> Any:
            return np.sum(wg.custom_root(residual(np, w, theta), start, solve) ** 2)

        return libraries.wengert(loss, theta)

    def root() -> Call:
        from scipy import optimize

        return libraries.wengert(
            lambda t: np.sum(optimize.root(residual(np, w, t), start, tol=1e-9).x ** 2), theta
        )

    def jax() -> Call:
        j = libraries.jax()
        solve, matrix = newton(j.numpy, j.jacobian, j.lax.while_loop), j.numpy.asarray(w)

        def tangent(g: Any, b: Any) -> Any:
            return j.numpy.linalg.solve(j.jacobian(g)(b), b)

        def loss(theta: Any) -> Any:
            f = residual(j.numpy, matrix, theta)
            return (j.lax.custom_root(f, j.numpy.asarray(start), solve, tangent) ** 2).sum()

        return libraries.jax_gradient(loss, theta)

    return {
        "wengert": wengert,
        "JAX": jax,
        "CasADi": lambda: casadi(w, theta),
        "NumPy": lambda: Call(by_hand(w, start, False), (theta,)),
        "wengert, SciPy's root": root,
        "SciPy": lambda: Call(by_hand(w, start, True), (theta,)),
    }


def casadi(w: Any, theta: Any) -> Call:
    """The root finder of CasADi and its reverse mode."""
    import casadi as c

    y, t = c.MX.sym("y", theta.size), c.MX.sym("t", theta.size)
    f = y + 0.5 * c.tanh(c.mtimes(c.DM(w), y)) - t
    options = {"abstol": TOLERANCE, "linear_solver": "lapacklu", "error_on_fail": True}
    finder = c.rootfinder("root", "newton", {"x": y, "p": t, "g": f}, options)
    value = c.sumsqr(finder(x0=c.DM.zeros(theta.size), p=t)["x"])
    return Call(c.Function("f", [t], [value, c.gradient(value, t)]), (c.DM(theta),))


def by_hand(w: Any, start: Any, library: bool) -> Callable[[Any], Any]:
    """Value and gradient with the adjoint equation; SciPy's `root` or Newton's method."""
    from scipy import optimize
    from scipy.linalg import lu_factor, lu_solve

    def matrix(y: Any) -> Any:
        jacobian = (0.5 / np.cosh(w @ y) ** 2)[:, None] * w
        jacobian.flat[:: w.shape[0] + 1] += 1.0
        return jacobian

    def run(theta: Any) -> Any:
        f = residual(np, w, theta)
        y = start
        if library:
            y = optimize.root(f, start, jac=matrix, tol=1e-9).x
        else:
            r = f(y)
            while np.abs(r).max() > TOLERANCE:
                y = y - lu_solve(lu_factor(matrix(y), check_finite=False), r)
                r = f(y)
        factors = lu_factor(matrix(y), check_finite=False)
        return y @ y, lu_solve(factors, 2.0 * y, trans=1)

    return run


def anomaly(xp: Any, e: Any, m: Any) -> Callable[[Any], Any]:
    """Kepler's equation."""
    return lambda x: x - e * xp.sin(x) - m


def kepler(eccentricities: Any, means: Any) -> dict[str, Callable[[], Call]]:
    """Contestants for the batch."""

    def wengert() -> Call:
        from scipy import optimize

        import wengert as wg

        def one(e: Any, m: Any) -> Any:
            return optimize.brentq(anomaly(np, e, m), m - 2.0, m + 2.0)

        def loss(e: Any, m: Any) -> Any:
            return np.sum(wg.vmap(one)(e, m))

        return libraries.wengert(loss, eccentricities, means, argnums=(0, 1))

    def jax(bisection: bool) -> Call:
        j = libraries.jax()

        def newton(f: Any, x: Any) -> Any:
            def step(s: Any) -> Any:
                value, slope = j.value_and_grad(f)(s[0])
                return s[0] - value / slope, value

            return j.lax.while_loop(lambda s: abs(s[1]) > TOLERANCE, step, (x, 1.0 + 0.0 * x))[0]

        def bisect(f: Any, x: Any) -> Any:
            def step(_: Any, ends: Any) -> Any:
                low, high = ends
                middle = (low + high) / 2
                left = f(middle) >= 0
                return j.numpy.where(left, low, middle), j.numpy.where(left, middle, high)

            return j.lax.fori_loop(0, HALVINGS, step, (x - 2.0, x + 2.0))[0]

        def one(e: Any, m: Any) -> Any:
            f, solve = anomaly(j.numpy, e, m), bisect if bisection else newton
            start = m if bisection else m + e * j.numpy.sin(m)
            return j.lax.custom_root(f, start, solve, lambda g, b: b / g(1.0))

        def loss(e: Any, m: Any) -> Any:
            return j.vmap(one)(e, m).sum()

        return libraries.jax_gradient(loss, eccentricities, means, argnums=(0, 1))

    def numba() -> Call:
        call = libraries.numba_call(by_numba.kepler, eccentricities, means, fast=False)
        return Call(call.function, call.arguments, numbers=lambda r: (r[0], (r[1], r[2])))

    return {
        "wengert": wengert,
        "numba": numba,
        "JAX": lambda: jax(False),
        "JAX, bisection": lambda: jax(True),
    }
