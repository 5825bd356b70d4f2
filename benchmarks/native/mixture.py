"""ADBench's objective: the log-likelihood of a Gaussian mixture, with a Wishart prior.

    sum_i logsumexp_k(alpha_k + log|Q_k| - |Q_k (x_i - mu_k)|^2 / 2)
        - n logsumexp(alpha) + prior + constant

Q_k is lower triangular: its diagonal is the exponential of the first d numbers of icf_k, and the
others fill the columns below.  Parameters: alpha (k,), mu (k, d), icf (k, d (d + 1) / 2); points
(n, d).  Written over batches, as one does in NumPy; the C goes through the points in blocks and
uses that Q is triangular.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import lgamma
from typing import Any

import numpy as np

from . import by_numba, compiled, libraries
from .case import Call, Case, generator

TITLE = "Gaussian mixture: ADBench's objective"
TEXT = (
    "Value and gradient with respect to all parameters, k = 25 components, n = 1,000 points, "
    "float64. *C* by hand goes through blocks of points and uses that the factors are triangular; "
    "*NumPy* by hand is batched as the others are; *numba* by hand takes a point after the other. "
    "*CasADi* maps the function of a point."
)
TARGET = "1.5 times faster than the best"
GAMMA, M = 1.0, 0.0  # of the Wishart prior


def cases(quick: bool) -> Iterator[Case]:
    """Two dimensions of space."""
    for d in (10, 64):
        k, n = 25, 200 if quick else 1_000
        random = generator(6, d)
        parameters = (
            random.normal(size=k),
            random.normal(size=(k, d)),
            random.normal(size=(k, d * (d + 1) // 2)) / d,
        )
        points = random.normal(size=(n, d))
        yield Case(f"d = {d}, n = {n:,}", contestants(*parameters, points))


def constant(n: int, d: int, k: int) -> float:
    """What does not depend on the parameters."""
    degrees = d + M + 1
    log_gamma = 0.25 * d * (d - 1) * np.log(np.pi) + sum(
        lgamma(0.5 * degrees - 0.5 * j) for j in range(d)
    )
    prior = degrees * d * (np.log(GAMMA) - 0.5 * np.log(2.0)) - log_gamma
    return float(-0.5 * n * d * np.log(2.0 * np.pi) - k * prior)


def below(d: int) -> tuple[Any, Any]:
    """Rows and columns below the diagonal, column by column."""
    columns, rows = np.triu_indices(d, 1)
    return rows, columns


def objective(
    xp: Any, triangle: Any, logsumexp: Any, n: int, d: int, k: int, eye: Any = None
) -> Any:
    """The objective over a namespace; ``triangle(icf)`` makes (k, d, d) of what is below."""
    fixed = constant(n, d, k)
    unit = np.eye(d) if eye is None else eye

    def f(alphas: Any, means: Any, icf: Any, points: Any) -> Any:
        diagonals = xp.exp(icf[:, :d])
        logdets = icf[:, :d].sum(1)
        factors = triangle(icf[:, d:]) + diagonals[:, :, None] * unit
        centered = points[None, :, :] - means[:, None, :]
        y = centered @ xp.swapaxes(factors, 1, 2)
        terms = (alphas + logdets)[:, None] - 0.5 * (y * y).sum(2)
        value = logsumexp(terms, 0).sum() - n * logsumexp(alphas, 0)
        squares = (diagonals**2).sum() + (icf[:, d:] ** 2).sum()
        return value + 0.5 * GAMMA**2 * squares - M * logdets.sum() + fixed

    return f


def by_hand(n: int, d: int, k: int) -> Any:
    """Value and gradient in NumPy."""
    rows, columns = below(d)
    fixed = constant(n, d, k)
    axis = np.arange(d)

    def run(alphas: Any, means: Any, icf: Any, points: Any) -> Any:
        diagonals = np.exp(icf[:, :d])
        factors = np.zeros((k, d, d))
        factors[:, rows, columns] = icf[:, d:]
        factors[:, axis, axis] = diagonals
        logdets = icf[:, :d].sum(1)
        centered = points[None] - means[:, None]
        y = centered @ factors.swapaxes(1, 2)
        terms = (alphas + logdets)[:, None] - 0.5 * np.einsum("knd,knd->kn", y, y)
        top = terms.max(0)
        weights = np.exp(terms - top)
        total = weights.sum(0)
        weights /= total
        shares = np.exp(alphas - alphas.max())
        value = (np.log(total) + top).sum() - n * (np.log(shares.sum()) + alphas.max())
        lower = icf[:, d:]
        value += 0.5 * GAMMA**2 * (np.vdot(diagonals, diagonals) + np.vdot(lower, lower))
        value += fixed - M * logdets.sum()
        held = weights.sum(1)
        y *= weights[:, :, None]
        products = y.swapaxes(1, 2) @ centered
        icf_bar = np.empty_like(icf)
        icf_bar[:, :d] = held[:, None] - diagonals * products[:, axis, axis]
        icf_bar[:, :d] += GAMMA**2 * diagonals**2 - M
        icf_bar[:, d:] = GAMMA**2 * lower - products[:, rows, columns]
        means_bar = (y.sum(1)[:, None, :] @ factors)[:, 0]
        return value, (held - n * shares / shares.sum(), means_bar, icf_bar)

    return run


def contestants(alphas: Any, means: Any, icf: Any, points: Any) -> dict[str, Any]:
    """All of them, by name."""
    arguments = (alphas, means, icf, points)
    (n, d), k = points.shape, alphas.size
    rows, columns = below(d)

    def wengert() -> Call:
        import wengert as wg

        def triangle(lower: Any) -> Any:
            full = np.zeros((k, d, d), like=lower)
            full[:, rows, columns] = lower
            return full

        def logsumexp(x: Any, axis: int) -> Any:
            return wg.numpy.logsumexp(x, axis=axis)

        f = objective(np, triangle, logsumexp, n, d, k)
        return libraries.wengert(f, *arguments, argnums=(0, 1, 2))

    def c() -> Call:
        outs = [np.empty_like(a) for a in (alphas, means, icf)]
        function = compiled.library("mixture").mixture
        function.restype = type(compiled.real(0.0, "float64"))
        numbers = [compiled.real(v, "float64") for v in (GAMMA, M, constant(n, d, k))]
        given = (
            *map(compiled.size, (n, d, k)), *map(compiled.address, arguments), *numbers,
            *map(compiled.address, outs),
        )  # fmt: skip
        return Call(function, given, numbers=lambda value: (value, outs))

    def jax() -> Call:
        j = libraries.jax()

        def triangle(lower: Any) -> Any:
            return j.numpy.zeros((k, d, d)).at[:, rows, columns].set(lower)

        f = objective(j.numpy, triangle, j.nn.logsumexp, n, d, k)
        return libraries.jax_gradient(f, *arguments, argnums=(0, 1, 2))

    def torch(compile: bool) -> Call:
        t = libraries.torch()
        r, c = t.from_numpy(rows), t.from_numpy(columns)

        def triangle(lower: Any) -> Any:
            full = t.zeros((k, d, d), dtype=t.float64)
            full[:, r, c] = lower
            return full

        eye = t.eye(d, dtype=t.float64)
        f = objective(t, triangle, t.logsumexp, n, d, k, eye)
        return libraries.torch_gradient(f, *arguments, by=(0, 1, 2), compile=compile)

    def pytensor() -> Call:
        def build(pt: Any, *symbols: Any) -> Any:
            def triangle(lower: Any) -> Any:
                return pt.zeros((k, d, d))[:, rows, columns].set(lower)

            f = objective(pt, triangle, pt.logsumexp, n, d, k)
            value = f(*symbols)
            return [value, *pt.grad(value, list(symbols[:3]))]

        return libraries.pytensor_call(build, *arguments)

    def autograd() -> Call:
        import autograd.numpy as anp
        from autograd import value_and_grad
        from autograd.scipy.special import logsumexp

        where = np.full((d, d), d * (d - 1) // 2)
        where[rows, columns] = np.arange(rows.size)

        def triangle(lower: Any) -> Any:
            return anp.concatenate([lower, np.zeros((k, 1))], 1)[:, where]

        f = objective(anp, triangle, logsumexp, n, d, k)
        return Call(value_and_grad(f, (0, 1, 2)), arguments)

    def numba() -> Call:  # M is 0, so its terms are left out
        fixed = constant(n, d, k)
        return libraries.numba_call(by_numba.mixture, *arguments, GAMMA, fixed)

    return {
        "wengert": wengert,
        "C": c,
        "numba": numba,
        "NumPy": lambda: Call(by_hand(n, d, k), arguments),
        "JAX": jax,
        "torch": lambda: torch(False),
        "torch.compile": lambda: torch(True),
        "PyTensor": pytensor,
        **in_casadi(*arguments),
        "autograd": autograd,
    }


def in_casadi(alphas: Any, means: Any, icf: Any, points: Any) -> dict[str, Any]:
    """CasADi, and its C."""

    def numbers(result: Any) -> Any:
        value, alphas_bar, means_bar, icf_bar = result
        return value, (alphas_bar, means_bar.full().T, icf_bar.full().T)

    def read(called: Any) -> Any:
        return lambda: replace(called(), numbers=numbers)

    made = libraries.casadi(
        lambda: casadi_function(alphas, means, icf, points),
        alphas, means.T.copy(), icf.T.copy(), points.T.copy(),
    )  # fmt: skip
    return {name: read(called) for name, called in made.items()}


def casadi_function(alphas: Any, means: Any, icf: Any, points: Any) -> Any:
    """The function of a point, mapped over all, and the gradient of their sum."""
    import casadi as c

    (n, d), k = points.shape, alphas.size
    a, m, q, x = (c.SX.sym(*s) for s in (("a", k), ("m", d, k), ("q", icf.shape[1], k), ("x", d)))
    rows, columns = below(d)
    terms = []
    for j in range(k):
        factor = c.diag(c.exp(q[:d, j]))
        for at, (r, s) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
            factor[r, s] = q[d + at, j]
        terms.append(a[j] + c.sum1(q[:d, j]) - 0.5 * c.sumsqr(factor @ (x - m[:, j])))
    column = c.vertcat(*terms)
    top = c.mmax(column)
    # The largest term is taken as a constant: its derivative cancels.
    one = c.Function("one", [x, a, m, q], [c.log(c.sum1(c.exp(column - top))) + top])
    given = [c.MX.sym(*s) for s in (("a", k), ("m", d, k), ("q", icf.shape[1], k), ("x", d, n))]
    ma, mm, mq, mx = given
    total = c.sum2(one.map(n)(mx, c.repmat(ma, 1, n), c.repmat(mm, 1, n), c.repmat(mq, 1, n)))
    squares = c.sumsqr(c.exp(mq[:d, :])) + c.sumsqr(mq[d:, :])
    value = total - n * c.logsumexp(ma) + 0.5 * GAMMA**2 * squares + constant(n, d, k)
    return c.Function("f", given, [value, *(c.gradient(value, s) for s in given[:3])])
