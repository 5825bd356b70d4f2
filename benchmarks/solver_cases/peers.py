"""Problems of optimistix and lineax, by the same algorithms: roots, fixed points, fits, systems.

newton         n equations with a dense matrix, Newton's method
fixed point    the same equations, iterated
bisection      Kepler's equation for a batch, by bisection
Gauss-Newton   a exp(-b x) + c fitted to data
tridiagonal    a bar, by a method for three diagonals
CG, LU         a dense positive definite matrix
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case, generator

TITLE = "Beside optimistix and lineax: value and gradient"
TEXT = (
    "The same algorithm and tolerance for both; values and gradients are compared before times. "
    "*equations*: y + tanh(W y) / 2 = theta by Newton's method (`optimistix.Newton`; `custom_root` "
    "with the steps in a `while_loop`), and as a fixed point (`FixedPointIteration`). *Kepler*: a "
    "batch by bisection (`optimistix.Bisection`; `scipy.optimize.bisect`). *curve*: "
    "`optimistix.GaussNewton`; `custom_root` with Gauss-Newton. Linear systems: "
    "`lineax.Tridiagonal`, `lineax.CG` and `lineax.LU`; `custom_linear_solve` of a function, whose "
    "pattern it finds, and for CG with the same steps in a `while_loop`. optimistix and lineax are "
    "compiled by JAX."
)
PEERS = ("optimistix", "lineax")
TARGET = "not slower"
STRICT = 1e-11  # tolerances of the solvers


def cases(quick: bool) -> Iterator[Case]:
    """One of each."""
    n = 6 if quick else 50
    yield Case(f"Newton, {n} equations", equations(n, newton=True))
    yield Case(f"fixed point, {n} equations", equations(n, newton=False))
    batch = 20 if quick else 1000
    yield Case(f"bisection, batch of {batch}", kepler(batch))
    yield Case("Gauss-Newton, curve", curve(30 if quick else 200))
    rows = 12 if quick else 1000
    yield Case(f"tridiagonal, {rows} unknowns", bar(rows))
    size = 8 if quick else 200
    for method in ("CG", "LU"):
        yield Case(f"{method}, {size} unknowns", system(size, method))


def peers() -> tuple[Any, Any, Any]:
    """JAX with float64, optimistix and lineax."""
    j = libraries.jax()
    import lineax
    import optimistix

    return j, optimistix, lineax


def equations(n: int, newton: bool) -> dict[str, Callable[[], Call]]:
    """Contestants for dense equations."""
    random = generator(121)
    w, theta = random.normal(size=(n, n)) / n**0.5 / 2.0, random.normal(size=n)

    def wengert() -> Call:
        import wengert as wg

        def residual(theta: Any) -> Callable[[Any], Any]:
            return lambda y: y + np.tanh(w @ y) / 2.0 - theta

        def solve(f: Any, y: Any) -> Any:
            def step(s: Any) -> Any:
                change = np.linalg.solve(wg.jacobian(f)(s[0]), s[1]) if newton else s[1]
                return s[0] - change, f(s[0] - change)

            return wg.while_loop(lambda s: np.max(np.abs(s[1])) > STRICT, step, (y, f(y)))[0]

        def loss(theta: Any) -> Any:
            return np.sum(wg.custom_root(residual(theta), np.zeros(n), solve) ** 2)

        return libraries.wengert(loss, theta)

    def optimistix() -> Call:
        j, optx, _ = peers()

        def residual(y: Any, theta: Any) -> Any:
            return y + j.numpy.tanh(w @ y) / 2.0 - theta

        def iterated(y: Any, theta: Any) -> Any:
            return y - residual(y, theta)

        def loss(theta: Any) -> Any:
            if newton:
                method = optx.Newton(rtol=STRICT, atol=STRICT)
                found = optx.root_find(residual, method, j.numpy.zeros(n), theta, max_steps=100)
            else:
                method = optx.FixedPointIteration(rtol=STRICT, atol=STRICT)
                found = optx.fixed_point(iterated, method, j.numpy.zeros(n), theta, max_steps=500)
            return (found.value**2).sum()

        return libraries.jax_gradient(loss, theta)

    return {"wengert": wengert, "optimistix": optimistix}


def kepler(batch: int) -> dict[str, Callable[[], Call]]:
    """Contestants for Kepler's equation; the gradient is by the eccentricities."""
    random = generator(122)
    eccentricity = random.uniform(0.0, 0.9, batch)
    mean = random.uniform(0.1, 3.0, batch)

    def wengert() -> Call:
        from scipy import optimize

        import wengert as wg

        def anomaly(e: Any, m: Any) -> Any:
            return optimize.bisect(lambda x: x - e * np.sin(x) - m, 0.0, 4.0, xtol=1e-12)

        def loss(e: Any) -> Any:
            return np.sum(wg.vmap(anomaly)(e, mean) ** 2)

        return libraries.wengert(loss, eccentricity)

    def optimistix() -> Call:
        j, optx, _ = peers()

        def anomaly(e: Any, m: Any) -> Any:
            ends = {"lower": 0.0, "upper": 4.0}
            method = optx.Bisection(rtol=1e-15, atol=1e-12)
            f = lambda x, _: x - e * j.numpy.sin(x) - m  # noqa: E731
            return optx.root_find(f, method, 2.0, options=ends, max_steps=100).value

        def loss(e: Any) -> Any:
            return (j.vmap(anomaly)(e, mean) ** 2).sum()

        return libraries.jax_gradient(loss, eccentricity)

    return {"wengert": wengert, "optimistix": optimistix}


def curve(points: int) -> dict[str, Callable[[], Call]]:
    """Contestants for a fit with a residual that is not zero."""
    t = np.linspace(0.0, 4.0, points)
    y = 2.5 * np.exp(-1.3 * t) + 0.5 + 0.01 * generator(123).normal(size=points)
    start = np.array([2.0, 1.0, 0.0])

    def wengert() -> Call:
        import wengert as wg

        def loss(y: Any) -> Any:
            def residual(p: Any) -> Any:
                return p[0] * np.exp(-p[1] * t) + p[2] - y

            def solve(f: Any, p: Any) -> Any:
                def step(s: Any) -> Any:
                    matrix = wg.jacfwd(residual)(s[0])
                    p = s[0] - np.linalg.solve(matrix.T @ matrix, s[1])
                    return p, f(p)

                return wg.while_loop(lambda s: np.max(np.abs(s[1])) > STRICT, step, (p, f(p)))[0]

            optimality = wg.grad(lambda p: 0.5 * np.sum(residual(p) ** 2))
            return np.sum(wg.custom_root(optimality, start, solve) ** 2)

        return libraries.wengert(loss, y)

    def optimistix() -> Call:
        j, optx, _ = peers()

        def residual(p: Any, y: Any) -> Any:
            return p[0] * j.numpy.exp(-p[1] * t) + p[2] - y

        def loss(y: Any) -> Any:
            method = optx.GaussNewton(rtol=STRICT, atol=STRICT)
            given = j.numpy.asarray(start)
            return (optx.least_squares(residual, method, given, y, max_steps=100).value ** 2).sum()

        return libraries.jax_gradient(loss, y)

    return {"wengert": wengert, "optimistix": optimistix}


def bar(n: int) -> dict[str, Callable[[], Call]]:
    """Contestants for -(k u')' = 1 with n unknowns; the gradient is by the n + 1 k."""
    k = np.exp(0.3 * generator(124).normal(size=n + 1))

    def wengert() -> Call:
        import wengert as wg

        def loss(k: Any) -> Any:
            def flow(u: Any) -> Any:
                return -np.diff(k * np.diff(u, prepend=0.0, append=0.0))

            return np.mean(wg.custom_linear_solve(flow, np.ones(n)) ** 2)

        return libraries.wengert(loss, k)

    def lineax() -> Call:
        j, _, lx = peers()

        def loss(k: Any) -> Any:
            matrix = lx.TridiagonalLinearOperator(k[:-1] + k[1:], -k[1:-1], -k[1:-1])
            u = lx.linear_solve(matrix, j.numpy.ones(n), lx.Tridiagonal()).value
            return (u**2).mean()

        return libraries.jax_gradient(loss, k)

    return {"wengert": wengert, "lineax": lineax}


def system(n: int, method: str) -> dict[str, Callable[[], Call]]:
    """Contestants for a positive definite matrix; the gradient is by its n factors."""
    random = generator(125)
    a = random.normal(size=(n, 2 * n))
    b, scale = random.normal(size=n), random.uniform(0.5, 1.5, 2 * n)

    def wengert() -> Call:
        import wengert as wg

        def loss(scale: Any) -> Any:
            matrix = (a * scale) @ a.T / n + np.eye(n)
            products = lambda x: matrix @ x  # noqa: E731
            if method == "LU":
                return np.sum(wg.custom_linear_solve(products, b) ** 2)

            def conjugate_gradients(f: Any, b: Any) -> Any:
                def step(s: Any) -> Any:
                    x, r, p = s
                    q = f(p)
                    length = (r @ r) / (p @ q)
                    new = r - length * q
                    return x + length * p, new, new + (new @ new) / (r @ r) * p

                go_on = lambda s: np.max(np.abs(s[1])) > STRICT  # noqa: E731
                return wg.while_loop(go_on, step, (0.0 * b, b, b))[0]

            found = wg.custom_linear_solve(products, b, conjugate_gradients, symmetric=True)
            return np.sum(found**2)

        return libraries.wengert(loss, scale)

    def lineax() -> Call:
        j, _, lx = peers()

        def loss(scale: Any) -> Any:
            matrix = (a * scale) @ a.T / n + j.numpy.eye(n)
            tags = lx.positive_semidefinite_tag if method == "CG" else ()
            solver = lx.CG(rtol=STRICT, atol=STRICT) if method == "CG" else lx.LU()
            operator = lx.MatrixLinearOperator(matrix, tags)
            return (lx.linear_solve(operator, j.numpy.asarray(b), solver).value ** 2).sum()

        return libraries.jax_gradient(loss, scale)

    return {"wengert": wengert, "lineax": lineax}
