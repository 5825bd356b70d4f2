"""Minima: penalties of a logistic regression by the validation error, and a curve fitted to data.

regression   20 weights, each with its own penalty exp(theta); the validation error of the minimum,
             and its gradient with respect to all theta
curve        a exp(-b x) + c; the sum of squares of a, b, c, and its gradient with respect to data
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case, generator

TITLE = "Minima: value and gradient"
TEXT = (
    "*regression*: validation error of a logistic regression with 20 weights and 200 rows, and its "
    "gradient with respect to the penalty of each weight. *wengert* and *JAX* are `custom_root` of "
    "the gradient, with Newton's method in a `while_loop`; *NumPy* is the same with all "
    "derivatives by hand. *wengert, minimize* calls `scipy.optimize.minimize` (BFGS), *SciPy* does "
    "so with derivatives by hand. *curve*: a exp(-b x) + c fitted to 200 numbers, gradient "
    "with respect to these: *wengert* is `scipy.optimize.curve_fit`, *SciPy* the same "
    "with derivatives by hand, *JAX* `custom_root` with Gauss-Newton."
)
PEERS = ("JAX", "SciPy")
TARGET = "not slower than SciPy with derivatives by hand"
TOLERANCE = 1e-10


def cases(quick: bool) -> Iterator[Case]:
    """One of each."""
    rows, weights = (40, 4) if quick else (200, 20)
    yield Case(f"regression, {weights} weights", regression(rows, weights), within=1e-5)
    yield Case("curve, 3 parameters", curve(50 if quick else 200), within=1e-5)


def error(xp: Any, x: Any, sign: Any, w: Any) -> Any:
    """The mean logistic loss."""
    return xp.logaddexp(0.0, -sign * (x @ w)).mean()


def regression(rows: int, weights: int) -> dict[str, Callable[[], Call]]:
    """Contestants for penalties."""
    random = generator(96)
    x, other = random.normal(size=(2, rows, weights))
    true = random.normal(size=weights)
    sign, sign_of_other = (np.sign(a @ true + random.normal(size=rows)) for a in (x, other))
    start, theta = np.zeros(weights), random.uniform(-5.0, -2.0, weights)

    def penalized(xp: Any, x: Any, theta: Any) -> Callable[[Any], Any]:
        return lambda w: error(xp, x, sign, w) + (xp.exp(theta) * w * w).sum() / 2

    def wengert() -> Call:
        import wengert as wg

        def solve(f: Any, w: Any) -> Any:
            def step(s: Any) -> Any:
                w = s[0] - np.linalg.solve(wg.jacobian(f)(s[0]), s[1])
                return w, f(w)

            return wg.while_loop(lambda s: np.max(np.abs(s[1])) > TOLERANCE, step, (w, f(w)))[0]

        def loss(theta: Any) -> Any:
            w = wg.custom_root(wg.grad(penalized(np, x, theta)), start, solve)
            return error(np, other, sign_of_other, w)

        return libraries.wengert(loss, theta)

    def minimize() -> Call:
        from scipy import optimize

        def loss(theta: Any) -> Any:
            w = optimize.minimize(penalized(np, x, theta), start, method="BFGS", tol=1e-8).x
            return error(np, other, sign_of_other, w)

        return libraries.wengert(loss, theta)

    def jax() -> Call:
        j = libraries.jax()

        def solve(f: Any, w: Any) -> Any:
            def step(s: Any) -> Any:
                w = s[0] - j.numpy.linalg.solve(j.jacobian(f)(s[0]), s[1])
                return w, f(w)

            return j.lax.while_loop(lambda s: abs(s[1]).max() > TOLERANCE, step, (w, f(w)))[0]

        def tangent(g: Any, b: Any) -> Any:
            return j.numpy.linalg.solve(j.jacobian(g)(b), b)

        def loss(theta: Any) -> Any:
            f = j.grad(penalized(j.numpy, x, theta))
            w = j.lax.custom_root(f, j.numpy.asarray(start), solve, tangent)
            return error(j.numpy, other, sign_of_other, w)

        return libraries.jax_gradient(loss, theta)

    given = (x, sign, other, sign_of_other, start)
    return {
        "wengert": wengert,
        "JAX": jax,
        "NumPy": lambda: Call(regression_by_hand(*given, False), (theta,)),
        "wengert, minimize": minimize,
        "SciPy": lambda: Call(regression_by_hand(*given, True), (theta,)),
    }


def regression_by_hand(
    x: Any, sign: Any, other: Any, sign_of_other: Any, start: Any, library: bool
) -> Callable[[Any], Any]:
    """Value and gradient; BFGS of SciPy or Newton's method."""
    from scipy import optimize
    from scipy.linalg import cho_factor, cho_solve
    from scipy.special import expit

    def run(theta: Any) -> Any:
        scale = np.exp(theta)

        def slope(w: Any) -> Any:
            return -(sign * expit(-sign * (x @ w))) @ x / sign.size + scale * w

        def factors(w: Any) -> Any:
            p = expit(x @ w)
            matrix = x.T @ ((p * (1.0 - p) / sign.size)[:, None] * x)
            matrix.flat[:: w.size + 1] += scale
            return cho_factor(matrix, check_finite=False)

        if library:
            w = optimize.minimize(
                lambda w: (error(np, x, sign, w) + (scale * w * w).sum() / 2, slope(w)),
                start, jac=True, method="BFGS", tol=1e-8,
            ).x  # fmt: skip
        else:
            w = start
            g = slope(w)
            while np.abs(g).max() > TOLERANCE:
                w = w - cho_solve(factors(w), g, check_finite=False)
                g = slope(w)
        by_w = -(sign_of_other * expit(-sign_of_other * (other @ w))) @ other / sign_of_other.size
        adjoint = cho_solve(factors(w), by_w, check_finite=False)
        return error(np, other, sign_of_other, w), -adjoint * scale * w

    return run


def curve(points: int) -> dict[str, Callable[[], Call]]:
    """Contestants for the fit."""
    t = np.linspace(0.0, 4.0, points)
    y = 2.5 * np.exp(-1.3 * t) + 0.5 + 0.1 * generator(97).normal(size=points)
    start = np.array([2.0, 1.0, 0.0])

    def model(xp: Any, t: Any, a: Any, b: Any, c: Any) -> Any:
        return a * xp.exp(-b * t) + c

    def wengert() -> Call:
        from scipy import optimize

        def loss(y: Any) -> Any:
            def f(t: Any, a: Any, b: Any, c: Any) -> Any:
                return model(np, t, a, b, c)

            return np.sum(optimize.curve_fit(f, t, y, start, xtol=1e-10)[0] ** 2)

        return libraries.wengert(loss, y)

    def jax() -> Call:
        j = libraries.jax()

        def loss(y: Any) -> Any:
            def residual(p: Any) -> Any:
                return model(j.numpy, t, *p) - y

            def optimality(p: Any) -> Any:
                r, back = j.vjp(residual, p)
                return back(r)[0]

            def solve(f: Any, p: Any) -> Any:
                def step(s: Any) -> Any:
                    matrix = j.jacfwd(residual)(s[0])
                    p = s[0] - j.numpy.linalg.solve(matrix.T @ matrix, s[1])
                    return p, f(p)

                go_on = lambda s: abs(s[1]).max() > 1e-9  # noqa: E731
                return j.lax.while_loop(go_on, step, (p, f(p)))[0]

            def tangent(g: Any, b: Any) -> Any:
                return j.numpy.linalg.solve(j.jacfwd(g)(b), b)

            p = j.lax.custom_root(optimality, j.numpy.asarray(start), solve, tangent)
            return (p**2).sum()

        return libraries.jax_gradient(loss, y)

    return {
        "wengert": wengert,
        "JAX": jax,
        "SciPy": lambda: Call(curve_by_hand(t, start), (y,)),
    }


def curve_by_hand(t: Any, start: Any) -> Callable[[Any], Any]:
    """Value and gradient: the Jacobian, and the Hessian of the sum of squares at the minimum."""
    from scipy import optimize

    def f(t: Any, a: Any, b: Any, c: Any) -> Any:
        return a * np.exp(-b * t) + c

    def matrix(t: Any, a: Any, b: Any, _c: Any) -> Any:
        e = np.exp(-b * t)
        return np.stack([e, -a * t * e, np.ones_like(t)], axis=1)

    def run(y: Any) -> Any:
        p, _ = optimize.curve_fit(f, t, y, start, jac=matrix, xtol=1e-10)
        a, b, _c = p
        jacobian, r, e = matrix(t, *p), f(t, *p) - y, np.exp(-b * t)
        hessian = jacobian.T @ jacobian
        mixed = -(r * t) @ e
        hessian[0, 1] += mixed
        hessian[1, 0] += mixed
        hessian[1, 1] += a * (r * t * t) @ e
        return p @ p, jacobian @ np.linalg.solve(hessian, 2.0 * p)

    return run
